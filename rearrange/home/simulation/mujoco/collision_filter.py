"""What the robot and other moving things are near: only that is tested for collision with them.

MuJoCo looks for contacts among all bodies and in the furniture of the whole home, a tree of boxes, four times in an
environment step, although most of it is far from everything that moves. Comparing the boxes around bodies and furniture
once in a step tells what can touch within it. For that step, the other bodies are left out, and the tree holds only the
near pieces. It changes no result: a thing is left out only when nothing can reach it before the next step.
Gain: 1.26 times the steps per second of a core, 1.24 to 1.31 (Pick without images or resets, 4,000 steps with and
without in turn, six times, on a busy machine; the median).
"""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from rearrange.home.numba_cache import float64, int32, int64, njit

_SLACK_M = 0.06  # more than what motors and gravity can add to the present speed, over a step


@dataclass(frozen=True, eq=False)
class Nearness:
    """What is measured once of a home. Body 0 is the furniture."""

    body: np.ndarray  # (bodies, 6) contype and conaffinity, kinematic tree, one after its last body, the first of the
    # joint velocities that move the body itself, and one after the last
    box: np.ndarray  # (bodies, 6) middle and half size of the box around what collides, in the inertial frame (m)
    size_m: np.ndarray  # (bodies,) how far at most that box ends from the middle of the frame, however it is turned
    reach_m: np.ndarray  # (dofs,) how far at most a point of them moves per unit of it; 1 for a sliding joint
    piece: np.ndarray  # (pieces, 2) geom and contype of each piece of furniture, the floor among them
    piece_box: np.ndarray  # (pieces, 6) middle and half size of the box around it, world frame (m)
    child: np.ndarray  # (rows, 2) MuJoCo's tree of the furniture: children of each row, or -1,
    geom: np.ndarray  # (rows,) geom, or -1,
    row_box: np.ndarray  # (rows, 6) and box, as piece_box


def measure(model: mujoco.MjModel) -> Nearness:
    """Prepare a home. Its kinematic trees are chains."""
    box = np.zeros((model.nbody, 6))
    for body in np.flatnonzero(model.body_contype | model.body_conaffinity):
        box[body] = model.bvh_aabb[model.body_bvhadr[body]]
    last = {int(tree): body for body, tree in enumerate(model.body_treeid)}
    end = [last[int(tree)] + 1 for tree in model.body_treeid]
    body = np.column_stack([model.body_contype, model.body_conaffinity, model.body_treeid, end, model.body_dofadr,
                            model.body_dofadr + model.body_dofnum])
    rows = slice(0, int(model.body_bvhnum[0]))
    leaves = np.flatnonzero(model.bvh_nodeid[rows] >= 0)
    geoms = model.bvh_nodeid[leaves]
    return Nearness(
        body=body.astype(np.int32), box=box, size_m=np.abs(box).sum(axis=1), reach_m=_reach_m(model, box),
        piece=np.column_stack([geoms, model.geom_contype[geoms]]), piece_box=model.bvh_aabb[leaves].copy(),
        child=model.bvh_child[rows].copy(), geom=model.bvh_nodeid[rows].copy(), row_box=model.bvh_aabb[rows].copy())


def _reach_m(model: mujoco.MjModel, box: np.ndarray) -> np.ndarray:
    """For each joint velocity the longest way along the bodies to the end of a box that it moves (m); 1 for sliding."""
    reach, behind = np.ones(model.nv), {}
    for k in range(model.nv):
        joint, first = model.dof_jntid[k], int(model.dof_bodyid[k])
        kind, is_shift = model.jnt_type[joint], k - model.jnt_dofadr[joint] < 3
        if kind == mujoco.mjtJoint.mjJNT_SLIDE or kind == mujoco.mjtJoint.mjJNT_FREE and is_shift:
            continue
        if first not in behind:  # the three turns of a free thing reach equally far
            behind[first] = _longest_way_m(model, box, first)
        reach[k] = behind[first]
    return reach


def _longest_way_m(model: mujoco.MjModel, box: np.ndarray, first: int) -> float:
    """From the middle of a body, along those that hang on it, to the end of a box."""
    way, longest = {first: 0.0}, 0.0
    for body in np.flatnonzero(model.body_treeid == model.body_treeid[first]):
        parent = int(model.body_parentid[body])
        if parent in way:
            way[body] = way[parent] + float(np.linalg.norm(model.body_pos[body]))
        if body in way and box[body].any():
            own = np.linalg.norm(model.body_ipos[body]) + np.linalg.norm(np.abs(box[body, :3]) + box[body, 3:])
            longest = max(longest, way[body] + own)
    return longest


class Everything:
    """The collision test of MuJoCo as it is."""

    def narrow(self, duration_s: float) -> None:
        """Leave out what nothing can touch in the next `duration_s`: here nothing."""

    def widen(self) -> None:
        """Undo `narrow`."""


class NearOnly(Everything):
    """The collision test of one model, which is written to, with its state."""

    def __init__(self, home: Nearness, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        rows, bodies = slice(0, len(home.geom)), len(home.box)
        room, state = np.empty((bodies + 1, 7)), np.zeros((4, max(bodies, len(home.piece))), np.int32)
        written = (model.body_contype, model.body_conaffinity, model.bvh_child[rows], model.bvh_nodeid[rows],
                   model.bvh_aabb[rows])
        self._near = (home.body, home.box, home.size_m, home.reach_m, home.piece, home.piece_box, data.xipos,
                      data.ximat, data.qvel, data.tree_asleep, room, state, *written)
        self._all = home.body, home.child, home.geom, home.row_box, *written
        self._pieces = 0

    def narrow(self, duration_s: float) -> None:
        self._pieces = _keep_near(duration_s, *self._near)

    def widen(self) -> None:
        _keep_all(self._pieces, *self._all)


# Rows are named by their number: a view of each would cost more than what is done with it.
@njit(cache=True, nogil=True, inline="always")
def _overlap(box, a, b):
    return (box[a, 0] <= box[b, 3] and box[a, 3] >= box[b, 0] and box[a, 1] <= box[b, 4]
            and box[a, 4] >= box[b, 1] and box[a, 2] <= box[b, 5] and box[a, 5] >= box[b, 2])


@njit(cache=True, nogil=True, inline="always")
def _meets(box, a, piece, p):
    return (abs(box[a, 0] + box[a, 3] - 2.0 * piece[p, 0]) <= box[a, 3] - box[a, 0] + 2.0 * piece[p, 3]
            and abs(box[a, 1] + box[a, 4] - 2.0 * piece[p, 1]) <= box[a, 4] - box[a, 1] + 2.0 * piece[p, 4]
            and abs(box[a, 2] + box[a, 5] - 2.0 * piece[p, 2]) <= box[a, 5] - box[a, 2] + 2.0 * piece[p, 5])


@njit(cache=True, nogil=True, inline="always")
def _comes_near(box, a, point, b, distance):
    return (point[b, 0] - distance <= box[a, 3] and point[b, 0] + distance >= box[a, 0]
            and point[b, 1] - distance <= box[a, 4] and point[b, 1] + distance >= box[a, 1]
            and point[b, 2] - distance <= box[a, 5] and point[b, 2] + distance >= box[a, 2])


@njit(cache=True, nogil=True, inline="always")
def _put_around(room, b, middle, turn, box):
    """Put the box of a body, turned and with as much room on each side as its last number says, into the first six."""
    for i in range(3):
        m, n, o = turn[b, 3 * i], turn[b, 3 * i + 1], turn[b, 3 * i + 2]
        centre = middle[b, i] + m * box[b, 0] + n * box[b, 1] + o * box[b, 2]
        half = abs(m) * box[b, 3] + abs(n) * box[b, 4] + abs(o) * box[b, 5] + room[b, 6]
        room[b, i], room[b, i + 3] = centre - half, centre + half


@njit((float64, int32[:, ::1], float64[:, ::1], float64[::1], float64[::1], int32[:, ::1], float64[:, ::1],
       float64[:, ::1], float64[:, ::1], float64[::1], int32[::1], float64[:, ::1], int32[:, ::1], int32[::1],
       int32[::1], int32[:, ::1], int32[::1], float64[:, ::1]), cache=True, nogil=True)
def _keep_near(duration_s, body, box, size, reach, piece, piece_box, xipos, ximat, velocity, asleep, room, state,
               contype, conaffinity, child, geom, row_box):
    """Leave out of a model what cannot touch anything in the next `duration_s`; return how many pieces of furniture
    stay.

    Args:
        duration_s: Until the next call.
        body, box, size, reach, piece, piece_box: Of Nearness.
        xipos, ximat, velocity, asleep: Of MuJoCo's data, the last by kinematic tree.
        room, state: (1 + bodies, 7) and (4, bodies or pieces), to work in.
        contype, conaffinity: Of the model's bodies, written.
        child, geom, row_box: Of the model's tree of furniture, written.
    """
    bodies = box.shape[0]
    moves, near, queue, chosen = state
    for b in range(1, bodies):
        moves[b] = near[b] = 0
        room[b, 6] = _SLACK_M
    # The box around each body that moves, with room for how far it can: every joint before it adds to that. What sleeps
    # has no speed, and of what sleeps far away only the middle is read, since memory that no step has read lately is
    # slow: about 0.85 of the time with all of it (16 homes in turn, median of 900 steps).
    movers = 0
    for b in range(1, bodies):
        if asleep[body[b, 2]] >= 0:
            continue
        for k in range(body[b, 4], body[b, 5]):
            for c in range(b, body[b, 3]):
                room[c, 6] += duration_s * reach[k] * abs(velocity[k])
        if body[b, 0]:
            moves[b], queue[movers] = 1, b
            movers += 1
            _put_around(room, b, xipos, ximat, box)
    # What moves, and what that may wake by touching it, which counts as moving in the next round.
    for i in range(3):
        room[bodies, i], room[bodies, i + 3] = np.inf, -np.inf
    first, last = 0, movers
    while first < last:
        for q in range(first, last):
            a = queue[q]
            for i in range(3):
                room[bodies, i] = min(room[bodies, i], room[a, i])
                room[bodies, i + 3] = max(room[bodies, i + 3], room[a, i + 3])
        for b in range(1, bodies):
            if not moves[b]:
                if not body[b, 0] or not _comes_near(room, bodies, xipos, b, size[b] + _SLACK_M):
                    continue
                _put_around(room, b, xipos, ximat, box)
            for q in range(first, last):
                a = queue[q]
                meet = (body[a, 0] & body[b, 1]) | (body[b, 0] & body[a, 1])
                if meet and body[a, 2] != body[b, 2] and _overlap(room, a, b):
                    near[a] = near[b] = 1
                    if not moves[b]:
                        moves[b], queue[movers] = 1, b
                        movers += 1
        first, last = last, movers
    pieces = 0
    for p in range(piece.shape[0]):
        if _meets(room, bodies, piece_box, p):
            found = False
            for q in range(movers):
                a = queue[q]
                if piece[p, 1] & body[a, 1] and _meets(room, a, piece_box, p):
                    near[a] = 1
                    found = True
            if found:
                chosen[pieces] = p
                pieces += 1
    for b in range(1, bodies):
        contype[b] = body[b, 0] if near[b] else 0
        conaffinity[b] = body[b, 1] if near[b] else 0
    contype[0] = body[0, 0] if pieces else 0
    # The near pieces as a chain: an even row is the box around the next piece, in the row behind it, and all others.
    low, high = room[bodies, :3], room[bodies, 3:6]
    for k in range(pieces - 1, -1, -1):
        p = chosen[k]
        leaf = 2 * k if k == pieces - 1 else 2 * k + 1
        child[leaf, 0] = child[leaf, 1] = -1
        geom[leaf] = piece[p, 0]
        for i in range(3):
            row_box[leaf, i], row_box[leaf, i + 3] = piece_box[p, i], piece_box[p, i + 3]
            low_k, high_k = piece_box[p, i] - piece_box[p, i + 3], piece_box[p, i] + piece_box[p, i + 3]
            low[i] = low_k if k == pieces - 1 else min(low[i], low_k)
            high[i] = high_k if k == pieces - 1 else max(high[i], high_k)
        if k < pieces - 1:
            child[2 * k, 0], child[2 * k, 1], geom[2 * k] = 2 * k + 1, 2 * k + 2, -1
            for i in range(3):
                row_box[2 * k, i], row_box[2 * k, i + 3] = 0.5 * (low[i] + high[i]), 0.5 * (high[i] - low[i])
    return pieces


@njit((int64, int32[:, ::1], int32[:, ::1], int32[::1], float64[:, ::1], int32[::1], int32[::1], int32[:, ::1],
       int32[::1], float64[:, ::1]), cache=True, nogil=True)
def _keep_all(pieces, body, all_child, all_geom, all_box, contype, conaffinity, child, geom, row_box):
    """Undo `_keep_near`, which left so many pieces. The arguments are of Nearness and of the model, as there."""
    for b in range(body.shape[0]):  # loops, as assignments to slices take numba ten times as long to compile
        contype[b], conaffinity[b] = body[b, 0], body[b, 1]
    for row in range(2 * pieces - 1):
        child[row, 0], child[row, 1], geom[row] = all_child[row, 0], all_child[row, 1], all_geom[row]
        for i in range(6):
            row_box[row, i] = all_box[row, i]
