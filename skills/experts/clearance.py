"""How far a planned pose of the robot is from everything else: MuJoCo's collision detection on a copy of the state."""

from __future__ import annotations

import copy
from functools import lru_cache

import mujoco
import numpy as np

from rearrange.home.numba_cache import boolean, float64, int8, int32, int64, njit_when_called
from rearrange.home.simulation.mujoco.build_model import FLOOR_TYPE
from rearrange.home.simulation.mujoco.compiled_home import CompiledHome
from rearrange.home.simulation.mujoco.contacts import BASE, NO_OWNER, SCENE
from rearrange.home.simulation.mujoco.simulator import MujocoSimulator
from rearrange.home.simulation.simulator_interface import Simulator

MARGIN_M = 0.03  # distances are known up to this one


class Clearance:
    """Distances of the robot, and of what it holds, in poses that it does not have yet. Nothing is written back."""

    def __init__(self, sim: Simulator) -> None:
        twin = sim.twin
        self._home = twin.home
        self.checks = 0  # asked so far
        self._model, self._data = _scratch(twin.home)
        mujoco.mj_copyData(self._data, self._model, twin.data)
        self._gripper = self._model.body(sim.robot.hand.body).id
        self._is_pad = np.zeros(self._model.ngeom, np.bool_)
        self._is_pad[[self._model.geom(name).id for name in sim.robot.hand.pads]] = True
        self._held = NO_OWNER if sim.held is None else twin.slot_of(sim.held)
        _let_collide(self._model, twin.home, self._held)
        if sim.held is not None:
            self._held_qpos = int(self._model.joint(f"object_{self._held}").qposadr[0])
            self._held_position, self._held_quat = _relative(twin, self._held)

    def set_joint(self, name: str, opening: float) -> None:
        """Suppose that a drawer (m) or door (rad) stands elsewhere."""
        self._data.qpos[self._model.joint(name).qposadr[0]] = opening

    def distance(self, pose: tuple[float, float, float], arm_rad: np.ndarray, touching: int = NO_OWNER,
                 base_only: bool = False) -> float:
        """Smallest distance of the robot from everything: m, at most MARGIN_M, negative inside something.

        Args:
            pose: of the base, (x, y, yaw), world frame.
            arm_rad: posture of the arm.
            touching: slot of the object that the hand may touch.
            base_only: leaves the arm out.
        """
        self.checks += 1
        data, home = self._data, self._home
        data.qpos[home.base_qpos] = pose
        home.put_arm(data.qpos, arm_rad)
        mujoco.mj_kinematics(self._model, data)
        if self._held != NO_OWNER:
            self._carry()
        mujoco.mj_collision(self._model, data)
        contact = data.contact
        return _least(contact.geom, contact.dist, home.geom_role, home.object_of_geom, self._held, touching,
                      self._is_pad, base_only)

    def _carry(self) -> None:
        """Put the held object where the hand has it."""
        data, address = self._data, self._held_qpos
        position, quat = np.zeros(3), np.zeros(4)
        mujoco.mju_rotVecQuat(position, self._held_position, data.xquat[self._gripper])
        mujoco.mju_mulQuat(quat, data.xquat[self._gripper], self._held_quat)
        data.qpos[address:address + 3] = data.xpos[self._gripper] + position
        data.qpos[address + 3:address + 7] = quat
        mujoco.mj_kinematics(self._model, data)


_BASE_BIT, _ARM_BIT = 1, 2


@lru_cache(maxsize=4)
def _scratch(home: CompiledHome) -> tuple[mujoco.MjModel, mujoco.MjData]:
    """A model in which only the robot collides, and what is within MARGIN_M of it is reported, with its own state."""
    model = copy.copy(home.model)
    role = home.geom_role
    model.geom_margin[role != SCENE] = MARGIN_M
    solid = (home.model.geom_contype != 0) | (home.model.geom_conaffinity != 0)
    model.geom_contype[:] = np.where(role == SCENE, 0, np.where(role == BASE, _BASE_BIT, _ARM_BIT))
    model.geom_conaffinity[:] = np.where((role == SCENE) & solid, _BASE_BIT | _ARM_BIT, 0)
    model.geom_conaffinity[home.model.geom_contype == FLOOR_TYPE] = _ARM_BIT  # the base stands on it
    _share(model)
    model.opt.enableflags &= ~int(mujoco.mjtEnableBit.mjENBL_SLEEP)  # what sleeps would not be looked at
    return model, mujoco.MjData(model)


def _share(model: mujoco.MjModel) -> None:
    """Give each body the bits and the margin of its geoms, as the compiler does: it skips bodies farther apart."""
    model.body_contype[:], model.body_conaffinity[:], model.body_margin[:] = 0, 0, 0.0
    np.maximum.at(model.body_margin, model.geom_bodyid, model.geom_margin)
    np.bitwise_or.at(model.body_contype, model.geom_bodyid, model.geom_contype)
    np.bitwise_or.at(model.body_conaffinity, model.geom_bodyid, model.geom_conaffinity)


def _let_collide(model: mujoco.MjModel, home: CompiledHome, slot: int) -> None:
    """Make the object of a slot (NO_OWNER: none) collide as a part of the arm."""
    of_object = home.object_of_geom != NO_OWNER
    held = of_object & (home.object_of_geom == slot)
    model.geom_contype[of_object] = np.where(held, _ARM_BIT, 0)[of_object]
    model.geom_conaffinity[of_object] = np.where(held, 0, _BASE_BIT | _ARM_BIT)[of_object]
    model.geom_margin[of_object] = np.where(held, MARGIN_M, 0.0)[of_object]
    _share(model)


def _relative(twin: MujocoSimulator, slot: int) -> tuple[np.ndarray, np.ndarray]:
    """Position and orientation of the held object in the gripper's frame."""
    data, hand, body = twin.data, twin.model.body(twin.robot.hand.body).id, twin.model.body(f"object_{slot}").id
    inverse, position, quat = np.zeros(4), np.zeros(3), np.zeros(4)
    mujoco.mju_negQuat(inverse, data.xquat[hand])
    mujoco.mju_rotVecQuat(position, data.xpos[body] - data.xpos[hand], inverse)
    mujoco.mju_mulQuat(quat, inverse, data.xquat[body])
    return position, quat


@njit_when_called((int32[:, :], float64[:], int8[::1], int32[::1], int64, int64, boolean[::1], boolean))
def _least(geom, distance, role, owner, held, touching, is_pad, base_only):
    """Smallest distance between the robot with what it holds and all else; see `Clearance.distance`."""
    least = MARGIN_M
    for i in range(geom.shape[0]):
        if distance[i] >= least:
            continue
        a, b = geom[i, 0], geom[i, 1]
        held_a, held_b = held != NO_OWNER and owner[a] == held, held != NO_OWNER and owner[b] == held
        ours_a, ours_b = role[a] != SCENE or held_a, role[b] != SCENE or held_b
        if ours_a == ours_b:
            continue
        if base_only and role[a] != BASE and role[b] != BASE:
            continue
        if touching != NO_OWNER and ((is_pad[a] and owner[b] == touching) or (is_pad[b] and owner[a] == touching)):
            continue
        least = distance[i]
    return least
