"""What touches what: contact forces on the robot and the geoms that the suction cup touches, from MuJoCo's contact
list.

Compiled with numba because it runs at every environment step over arrays of a few rows, where numpy's overhead would be
larger than the work.
"""

from __future__ import annotations

import math

from rearrange.home.numba_cache import boolean, float64, int8, int32, int64, njit

# Roles of a geom in the bookkeeping of forces.
SCENE, BASE, ARM = 0, 1, 2
NO_OWNER = -1

# MuJoCo's contact list is an array of structs, so its columns are strided ("A"). With explicit types each function is
# compiled once: with two sets of types, workers that start on an empty cache could store each other's code.
_PAIRS, _INTS, _FLOATS, _FRAMES = int32[:, :], int32[:], float64[:], float64[:, :]


@njit((_PAIRS, _INTS, _INTS, float64[::1], boolean, int8[::1], int32[::1], int64), cache=True, nogil=True)
def robot_forces(geom, dim, address, efc_force, elliptic, role, owner, held):
    """Largest normal contact force (N) on the arm and on the base, as HAB measures it (a maximum, not a sum).

    The held object counts as part of the arm; contacts between it and the robot do not count, because they are the hold
    itself.

    geom: (n, 2) geom ids of each contact; dim, address: (n,) contact dimension and first constraint row, negative when
    inactive; efc_force: constraint forces; elliptic: friction cone of the model; role: (ngeom,) SCENE, BASE or ARM;
    owner: (ngeom,) object slot of a geom or NO_OWNER; held: slot in the hand or NO_OWNER.
    """
    arm = 0.0
    base = 0.0
    for i in range(geom.shape[0]):
        a, b = geom[i, 0], geom[i, 1]
        first = address[i]
        if first < 0 or a < 0 or b < 0:
            continue
        role_a, role_b = role[a], role[b]
        held_a = held != NO_OWNER and owner[a] == held
        held_b = held != NO_OWNER and owner[b] == held
        if role_a == SCENE and role_b == SCENE and not (held_a or held_b):
            continue
        if (held_a and role_b != SCENE) or (held_b and role_a != SCENE):
            continue
        if elliptic or dim[i] == 1:
            force = abs(efc_force[first])
        else:  # pyramidal cone: the normal force is the sum over the 2 (dim - 1) edges
            force = 0.0
            for k in range(first, first + 2 * (dim[i] - 1)):
                force += efc_force[k]
        if role_a == BASE or role_b == BASE:
            base = max(base, force)
        else:
            arm = max(arm, force)
    return arm, base


@njit((_PAIRS, _FRAMES, _FLOATS, int64, _FLOATS, float64, int32[::1]), cache=True, nogil=True)
def cup_touches(geom, frame, distance, cup, suction_axis, cos_limit, touched):
    """Write the geoms in contact with the suction cup into `touched` and return their number.

    geom: (n, 2); frame: (n, 9) contact frames, the normal first, pointing from geom 0 to geom 1; distance: (n,) m,
    negative inside; cup: geom id; suction_axis: (3,) world direction of suction; cos_limit: least cosine between axis
    and normal, -1 = any.
    """
    count = 0
    for i in range(geom.shape[0]):
        if distance[i] > 0.0:
            continue
        if geom[i, 0] == cup:
            other, sign = geom[i, 1], 1.0
        elif geom[i, 1] == cup:
            other, sign = geom[i, 0], -1.0
        else:
            continue
        cosine = sign * (frame[i, 0] * suction_axis[0] + frame[i, 1] * suction_axis[1] + frame[i, 2] * suction_axis[2])
        if cosine >= cos_limit and count < touched.shape[0]:
            touched[count] = other
            count += 1
    return count


@njit((_PAIRS, _FLOATS, int8[::1], int32[::1], int64, float64), cache=True, nogil=True)
def robot_touches(geom, distance, role, owner, held, tolerance):
    """True when any contact deeper than `tolerance` (m) is between the robot, or the object in its hand, and something
    else. Arguments as of `robot_forces`.
    """
    for i in range(geom.shape[0]):
        a, b = geom[i, 0], geom[i, 1]
        if distance[i] < -tolerance and a >= 0 and b >= 0:
            own_a = role[a] != SCENE or (held != NO_OWNER and owner[a] == held)
            own_b = role[b] != SCENE or (held != NO_OWNER and owner[b] == held)
            if own_a != own_b:
                return True
    return False


@njit((_PAIRS, int32[::1], int32[::1]), cache=True, nogil=True)
def touches_sleeping(geom, tree, asleep):
    """True when anything that sleeps is touched. geom: (n, 2); tree: (ngeom,) kinematic tree of a geom, negative for
    none; asleep: (ntree,) of MuJoCo's data.
    """
    for i in range(geom.shape[0]):
        for k in range(2):
            g = geom[i, k]
            if g >= 0 and tree[g] >= 0 and asleep[tree[g]] >= 0:
                return True
    return False


@njit((float64[::1], float64), cache=True, nogil=True)
def slower_than(velocity, limit):
    """True when every generalised velocity (m/s or rad/s) is below `limit`; False also for one that is not a number."""
    for v in velocity:
        if not -limit < v < limit:
            return False
    return True


def cos_limit(max_angle_rad: float | None) -> float:
    """Least cosine between suction axis and contact normal for a largest angle; None allows every contact."""
    return -2.0 if max_angle_rad is None else math.cos(max_angle_rad)
