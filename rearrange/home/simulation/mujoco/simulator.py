"""The embedded simulator: one robot in one home, stepped by MuJoCo at 30 Hz.

It offers `rearrange.home.simulation.simulator_interface.Simulator`, which says what each method is for, in which frames
and units.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from itertools import pairwise

import mujoco
import numpy as np

from rearrange.home.apartments.episodes import Episode, Pose
from rearrange.home.apartments.kept_layouts import scene_layout
from rearrange.home.apartments.layouts import Layout
from rearrange.home.apartments.objects import OBJECTS, STANDARD_SET
from rearrange.home.errors import UserError
from rearrange.home.geometry import matrix_quat
from rearrange.home.pictures.looks import PLAIN, Looks
from rearrange.home.robot.motors import move_targets
from rearrange.home.robot.robot import RANGE_M
from rearrange.home.simulation.mujoco.cameras import Photographer, Spectator, head_camera
from rearrange.home.simulation.mujoco.compile_kernels import HOME, compile_once
from rearrange.home.simulation.mujoco.compiled_home import THING, CompiledHome, load_home, put_to_rest
from rearrange.home.simulation.mujoco.contacts import NO_OWNER, robot_forces, robot_touches, slower_than
from rearrange.home.simulation.mujoco.model_copy import give_back, take
from rearrange.home.simulation.simulator_base import RobotInHome
from rearrange.home.simulation.simulator_interface import (
    MAX_SPEED,
    NOTHING,
    PICTURE_SIZE,
    STEP_S,
    Simulator,
    SimulatorConfig,
)

_SUBSTEPS = 4  # of the timestep that a home is compiled with
_REST_DEPTH_M = 2e-5  # how deep the weight of an object presses it into what it stands on
_TOUCH_TOLERANCE_M = 1e-4


class MujocoSimulator(RobotInHome):
    """One robot in one home. After `step`, positions and contacts are of the new state, forces of the last substep."""

    def __init__(self, config: SimulatorConfig = SimulatorConfig()) -> None:
        compile_once(HOME)
        super().__init__(config)
        self.home: CompiledHome | None = None
        self._spectator, self._photographer = Spectator(), Photographer()
        self._shadow: MujocoSimulator | None = None

    # ------------------------------------------------------------------ episodes

    def reset(self, episode: Episode) -> None:
        home = self._home_of(episode)
        if home is not self.home:
            self._use(home)
        mujoco.mj_copyData(self.data, self.model, home.parked)
        self.model.opt.timestep = home.model.opt.timestep  # objects come to rest alike, however many substeps follow
        self.hand.release()
        self._spectator.forget()
        self.episode = episode
        self._slots = _assign_slots(episode.objects, home.objects)
        self._bodies = [self._copy.body_of_slot[slot] for slot in self._slots]
        self._index_of_slot = {slot: i for i, slot in enumerate(self._slots)}
        for joint, value in episode.articulated.items():
            self.set_joint(joint, value)
        for i, pose in enumerate(episode.start_poses):
            self._set_object(i, (*pose[:2], pose[2] - _REST_DEPTH_M, *pose[3:]))
        try:
            put_to_rest(self.model, self.data, self.model.body_treeid[self._bodies].tolist(),
                        _SUBSTEPS * self.config.settle_steps, self._copy.collision_test)
        except mujoco.FatalError:
            raise UserError(f"episode {episode.id!r} cannot be simulated: its {len(episode.objects)} objects touch in "
                            "more places than MuJoCo has memory for. Put fewer of them into one another.") from None
        self.model.opt.timestep = home.model.opt.timestep * (_SUBSTEPS / self.config.substeps)
        self._read_hold()  # of the cup, which holds nothing now
        self._begin_episode()

    def layout_of(self, episode: Episode) -> Layout:
        return scene_layout(episode.scene)

    def place_robot(self, x: float, y: float, yaw: float, arm_rad: tuple[float, ...] | None = None) -> None:
        self._put_robot(x, y, yaw, self.robot.arm.start if arm_rad is None else arm_rad)
        mujoco.mj_forward(self.model, self.data)
        self._stand()

    def _put_robot(self, x: float, y: float, yaw: float, arm_rad: tuple[float, ...]) -> None:
        """Its joints and motors; what follows from them is not computed."""
        data, copy = self.data, self._copy
        copy.base_qpos[:] = x, y, yaw
        copy.arm_ctrl[:] = self._targets = np.array(arm_rad)
        self.home.put_arm(data.qpos, self._targets)
        data.qvel[:] = 0.0
        copy.base_ctrl[:] = 0.0

    def _stand(self) -> None:
        """The robot is where its joints say."""
        self._read_pose()
        self._forget_forces()

    def stands_free(self, x: float, y: float, yaw: float, held: int | None = None) -> bool:
        """All but positions and contacts is computed where the place is free. Most are not: gain of a reset 1.27 times
        for Pick, 1.66 for Place (processor time of 80 resets with and without in turn, five times; the median).
        """
        self._put_robot(x, y, yaw, self.robot.arm.start)
        self._copy.find_contacts()
        self._stand()
        if held is not None:
            self._set_object(held, self._hanging(held))
            self._copy.find_contacts()
        free = not self._collides(self.held if held is None else held)
        if free:
            mujoco.mj_forward(self.model, self.data)
        if held is not None:
            self._hold_now(held)
        return free

    def robot_collides(self) -> bool:
        return self._collides(self.held)

    def _collides(self, held: int | None) -> bool:
        """Whether the robot with an object in its hand touches anything else."""
        contact, home, slot = self.data.contact, self.home, NO_OWNER if held is None else self._slots[held]
        return robot_touches(contact.geom, contact.dist, home.geom_role, home.object_of_geom, slot,
                             _TOUCH_TOLERANCE_M) or self._arm_in_something(held)

    def _arm_in_something(self, held: int | None) -> bool:
        """Whether walls, furniture, doors or drawers cross the line from the base along the arm to what it holds.

        MuJoCo sees no contact of a capsule with its axis in a thin box.
        """
        joints = self._copy.arm_anchors.tolist()
        line = [(*self.base_pose[:2], joints[0][2]), *joints, self.ee_position]
        if held is not None:
            line.append(self.object_position(held))
        return any(self.blocked(start, end) for start, end in pairwise(line))

    def blocked(self, start: tuple[float, float, float], end: tuple[float, float, float]) -> bool:
        return self._copy.is_between(start, end)

    # ------------------------------------------------------------------ one step

    def step(self, arm: list[float] | None = None, grip: float | None = None, base: list[float] | None = None) -> None:
        if arm is not None:
            self._move_arm_target(arm)
        self._drive(base)
        self.hand.before_step(grip)
        self._advance()
        self._take_forces(*self._forces)
        self._read_pose()
        self._hold_or_release(grip)

    def _move_arm_target(self, arm: list[float]) -> None:
        """Add the deltas to the motor targets, which stay near the joint and inside its limits."""
        of, copy = self.robot.arm, self._copy
        move_targets(self._targets, np.array(arm, float), copy.arm_qpos, of.delta, of.lag, of.low, of.high,
                     copy.arm_ctrl)

    def _drive(self, base: list[float] | None) -> None:
        forward, turn = (0.0, 0.0) if base is None else base
        speed, ctrl = self.config.base_speed_m_s * forward, self._copy.base_ctrl
        ctrl[0], ctrl[1], ctrl[2] = speed * self._cos, speed * self._sin, self.config.base_turn_rad_s * turn

    def _advance(self) -> None:
        """The computations of mj_step(nstep=substeps) in another cut: each step ends with new poses and contacts."""
        model, data = self.model, self.data
        before_s = data.time
        self._copy.collision_test.narrow(STEP_S)
        try:  # Ctrl-C between two lines must not leave the model without its furniture
            mujoco.mj_step2(model, data)
            mujoco.mj_step(model, data, nstep=self.config.substeps - 1)
            self._forces = self._contact_forces() if data.ncon else (0.0, 0.0)  # half of all steps have no contact
            mujoco.mj_step1(model, data)
        finally:
            self._copy.collision_test.widen()
        # MuJoCo starts again from nothing when its numbers overflow; long before that, a thing that was squeezed out of
        # a gap flies off at a speed that nothing in a home has.
        self.unstable = data.time < before_s or not slower_than(self._copy.qvel, MAX_SPEED)

    def _contact_forces(self) -> tuple[float, float]:
        """Largest force (N) on the arm and on the base."""
        contact = self.data.contact
        return robot_forces(contact.geom, contact.dim, contact.efc_address, self.data.efc_force, self._copy.elliptic,
                            self.home.geom_role, self.home.object_of_geom, self._held_slot)

    def _read_pose(self) -> None:
        self._take_pose(self._copy.base_qpos.tolist(), self._copy.ee_xpos.tolist(), self._copy.ee_xmat.tolist())

    def _hold_or_release(self, grip: float | None) -> None:
        hand = self.hand
        hand.after_step(grip, None if self._wanted is None else self._slots[self._wanted], self._wanted_handle)
        self.hold_broken, self.released = hand.broken, hand.released
        self._read_hold()

    def _read_hold(self) -> None:
        slot = self.hand.slot
        self._held_slot = NO_OWNER if slot is None else slot
        self.held = None if slot is None else self._index_of_slot[slot]
        self.held_handle = self.hand.handle

    # ------------------------------------------------------------------ reading and setting the state

    def arm_positions(self) -> np.ndarray:
        return self._copy.arm_qpos

    def arm_velocities(self) -> np.ndarray:
        return self._copy.arm_qvel

    def arm_targets(self) -> np.ndarray:
        return self._targets

    def object_position(self, i: int) -> list[float]:
        return self._copy.xpos[self._bodies[i]].tolist()

    def object_pose(self, i: int) -> Pose:
        return (*self.object_position(i), *self.data.xquat[self._bodies[i]].tolist())

    def slot_of(self, i: int) -> int:
        """The slot of the compiled home in which object i is."""
        return self._slots[i]

    def object_half_extents(self, i: int) -> tuple[float, float, float]:
        return tuple(self.model.geom_aabb[self.model.geom(f"object_{self._slots[i]}").id, 3:].tolist())

    def handle_position(self, name: str) -> list[float]:
        return self._copy.handle_xpos[name].tolist()

    def joint_position(self, name: str) -> float:
        return float(self.data.qpos[self._copy.handle_qpos[name]])

    def joint_velocity(self, name: str) -> float:
        return float(self.data.qvel[self._copy.handle_dof[name]])

    def set_joint(self, name: str, value: float) -> None:
        if name not in self.home.handles:
            known = ", ".join(self.home.handles)
            raise UserError(f"scene {self.home.layout.name} has no joint {name!r}; it has {known}.")
        self.data.qpos[self._copy.handle_qpos[name]] = value

    def thing_pose(self, name: str) -> Pose:
        if name not in self.home.things:
            return super().thing_pose(name)
        mark = self.data.site(f"{THING}{name}")
        return (*mark.xpos.tolist(), *matrix_quat(mark.xmat.reshape(3, 3)).tolist())

    def body_frame(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        body = self.data.body(name)
        return body.xpos, body.xmat.reshape(3, 3)

    def cup_touches(self) -> bool:
        return bool(self.hand.touches())

    def touched_objects(self) -> set[int | None]:
        return {self._index_of_slot.get(int(self.home.object_of_geom[geom])) for geom in self.hand.touches()}

    def put_in_hand(self, i: int, pose: Pose | None = None) -> None:
        self._set_object(i, pose or self._hanging(i))
        mujoco.mj_forward(self.model, self.data)
        self._hold_now(i)

    def _hanging(self, i: int) -> Pose:
        middle, upright = self.in_hand(self.object_half_extents(i))
        return (*middle.tolist(), *matrix_quat(upright).tolist())

    def _hold_now(self, i: int) -> None:
        """Hold object i where it has been put."""
        self.hand.hold_object(self._slots[i])
        self._read_hold()

    # ------------------------------------------------------------------ seeing

    def depth_image(self, size: int) -> np.ndarray:
        image = np.empty((size, size, 1), np.float32)
        head_camera(self.home, size).render(self._copy.poses, image[:, :, 0])
        return image

    def owner_image(self, size: int) -> tuple[np.ndarray, np.ndarray]:
        depth = np.empty((size, size), np.float32)
        geoms = head_camera(self.home, size).render_geoms(self.data, depth)
        indices = np.full(len(self.home.objects), NOTHING, np.int32)
        indices[self._slots] = np.arange(len(self._slots))
        of_geom = np.append(self.home.moving_of_geom, NOTHING)  # the last for geom -1: nothing is seen
        objects = np.append(self.home.object_of_geom, NO_OWNER)
        owners = np.where(objects >= 0, indices[objects], of_geom)
        depth_m = np.where(depth >= 1.0, np.float32(np.inf), depth * np.float32(RANGE_M))
        return depth_m, owners[geoms].astype(np.int32)

    def photograph(self, camera: str, size: int, wanted: Collection[str], looks: Looks) -> dict[str, np.ndarray]:
        pose = self.camera_pose(camera, looks)
        of = self.robot.camera(camera)
        return self._photographer.photograph(self.home, self.data, self._index_of_slot, looks, of, pose, size, wanted)

    def segmentation_names(self) -> dict[int, str]:
        return self.home.names_of_things(self.episode.objects)

    def picture(self, eye: np.ndarray, target: np.ndarray, marks: list,
                size: tuple[int, int] = PICTURE_SIZE) -> np.ndarray:
        return self._spectator.picture(self.home, self.data, eye, target, marks, size)

    def frame(self, eye: np.ndarray, target: np.ndarray, marks: list, size: tuple[int, int],
              hand_size: int) -> Callable[[], tuple[np.ndarray, np.ndarray | None]]:
        return self._spectator.frame(self.home, self.data, eye, target, marks, size, self.camera_pose("arm", PLAIN),
                                     hand_size)

    def head_picture(self, size: int) -> np.ndarray | None:
        """What the head camera sees in colour, drawn for a spectator: (size, size, 3) uint8."""
        return self.photograph("head", size, ("rgb",), PLAIN)["rgb"]

    # ------------------------------------------------------------------ a second simulator

    def shadow(self) -> MujocoSimulator:
        self._shadow = self._shadow or self._another()
        return self._shadow

    def _another(self) -> MujocoSimulator:
        return MujocoSimulator(self.config)

    @property
    def twin(self) -> MujocoSimulator:
        """This one: it knows the geometry itself."""
        return self

    def copy_state(self, other: Simulator) -> None:
        mujoco.mj_copyData(self.data, self.model, other.twin.data)

    # ------------------------------------------------------------------ loading

    def _home_of(self, episode: Episode) -> CompiledHome:
        """The home in which an episode takes place, with room for its objects."""
        return load_home(episode.scene, slots_for(episode.objects), self.robot)

    def _use(self, home: CompiledHome) -> None:
        """Switch to a home."""
        if self.home is not None:
            give_back(self._copy)
        self.home = home
        self._copy = used = take(home)
        self.model, self.data, self.hand = used.model, used.data, used.hand
        self.hand.configure(self.config)
        self._held_slot = NO_OWNER

    def _set_object(self, i: int, pose: Pose) -> None:
        address = self._copy.qpos_of_slot[self._slots[i]]
        self.data.qpos[address:address + 7] = pose


def slots_for(objects: tuple[str, ...]) -> tuple[str, ...]:
    """Contents to compile for an episode: the standard set where it suffices, so that episodes can share homes."""
    unknown = sorted(set(objects) - set(OBJECTS))
    if unknown:
        raise UserError(f"there is no object called {unknown[0]!r}; there are {', '.join(OBJECTS)}.")
    return STANDARD_SET if not Counter(objects) - Counter(STANDARD_SET) else objects


def _assign_slots(objects: tuple[str, ...], contents: tuple[str, ...]) -> list[int]:
    """The slot of each object: the first free one of its name."""
    free: dict[str, list[int]] = {}
    for slot in reversed(range(len(contents))):
        free.setdefault(contents[slot], []).append(slot)
    return [free[name].pop() for name in objects]


def first_step() -> None:
    """A step in a home, which compiles what that needs."""
    from rearrange.home.episodes.generator import generate_episode

    simulator = MujocoSimulator()
    simulator.reset(generate_episode("pick", "train", 0))
    simulator.place_robot(1.0, 1.0, 0.0)
    simulator.step()
