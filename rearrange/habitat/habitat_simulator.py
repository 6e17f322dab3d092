"""Habitat-Sim with Bullet behind the interface of every simulator (`rearrange.home.simulation.simulator_interface.Simulator`).

World frame: z up, metres, as everywhere else here; Habitat's is y up (`rearrange.home.axis_conventions`). Time: four substeps of 1/120 s in
a step. Forces and contacts are those of the last substep.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np

from rearrange.habitat.camera import matrix4
from rearrange.habitat.contacts import Touch, collides, forces, within_angle
from rearrange.habitat.frames import numbers, turn_of_object
from rearrange.habitat.homes import Homes, is_ours
from rearrange.habitat.joints import Joints
from rearrange.habitat.mujoco_twin import Twin
from rearrange.habitat.robot import Fetch
from rearrange.habitat.scene_cameras import number_things
from rearrange.habitat.segmentation import Box, owners_in, part_box
from rearrange.habitat.sim_instance import SUBSTEPS, World
from rearrange.habitat.suction import Hold
from rearrange.home.apartments.episodes import Episode, Pose
from rearrange.home.apartments.kept_layouts import scene_layout
from rearrange.home.apartments.layouts import Layout
from rearrange.home.apartments.segmentation import names_of, robot_and_objects
from rearrange.home.axis_conventions import pose_to_matrix, to_y_up, to_z_up
from rearrange.home.episodes.scene_episodes import in_terms_of
from rearrange.home.errors import UserError
from rearrange.home.geometry import matrix_quat, quat_matrix
from rearrange.home.pictures.looks import PLAIN, Looks
from rearrange.home.robot.fetch import ARM_LIMITS_RAD, ARM_START_RAD
from rearrange.home.robot.motors import move_targets
from rearrange.home.scene_files.scene_data import SceneData
from rearrange.home.simulation.mujoco.build_model import handle_part
from rearrange.home.simulation.mujoco.compiled_home import CompiledHome
from rearrange.home.simulation.mujoco.contacts import cos_limit
from rearrange.home.simulation.mujoco.simulator import MujocoSimulator
from rearrange.home.simulation.scenes.scene_layout import SceneHome, before_end
from rearrange.home.simulation.scenes.scene_parts import THIN_M
from rearrange.home.simulation.scenes.scene_simulator import SceneSimulator
from rearrange.home.simulation.simulator_base import RobotInHome
from rearrange.home.simulation.simulator_interface import FIRST_JOINT, PICTURE_SIZE, Point, Simulator, SimulatorConfig

_TOUCH_TOLERANCE_M = 1e-3  # Bullet's contacts at rest are about as deep
_HOLD_DEPTH_M = 0.0005  # of the cup in an object that is put into the hand
_NO_SHIFT = (0.0, 0.0, 0.0)
_AWAY_M = (-50.0, -50.0)  # where the robot is while objects come to rest
_SETTLE_CHUNK = 12  # substeps between two looks whether all objects rest
_RESTS_M_S = 0.01
_HANDLE_REACH_M = 0.01  # so near to the handle's box a contact is one with the handle
_MAX_SPEED = 200.0  # m/s or rad/s of any joint of the robot
_ARM_LOW_RAD, _ARM_HIGH_RAD = (np.array(bound) for bound in zip(*ARM_LIMITS_RAD))


class HabitatSimulator(RobotInHome):
    """One robot in one home of a Habitat scene data set. What has to know the geometry, as experts and painters, looks at its twin, and
    poses are tried out in an embedded simulator.
    """

    def __init__(self, config: SimulatorConfig, data: SceneData, nvidia: bool = False) -> None:
        super().__init__(config)
        self._dataset = Path(data.scene_dataset)
        self.world = World(data, nvidia)
        self._homes = Homes(self.world, self._dataset)
        self._homes.need(data.scenes)
        self.home: CompiledHome | SceneHome | None = None
        self._twins: dict[bool, Twin] = {}
        self._shadows: dict[bool, MujocoSimulator] = {}
        self._target_rad, self._ctrl = np.zeros(7), np.zeros(7)
        self._numbered: Episode | None = None  # of which what is in the scene has its numbers
        self._least_cosine = cos_limit(config.suction_max_angle_rad)

    # ------------------------------------------------------------------ episodes

    def _enter(self, episode: Episode) -> bool:
        """Be in the home of an episode, with nothing in the hand; whether its scene had to be loaded."""
        if self.home is not None:
            self._hold.release()
        world = self.world
        home, loaded = self._homes.enter(episode)
        if loaded:
            self.robot = Fetch(world.habitat, world.robot)
            world.camera.ride_on(self.robot.base_node)
            self._hold = Hold(world.habitat, world.simulator, self.robot)
            if not isinstance(home, SceneHome):
                self.joints = Joints({name: world.link_of(name) for name in home.handles}, damped=True)
        if isinstance(home, SceneHome) and (loaded or home is not self.home):
            x, up, z = to_y_up(home.origin_m)
            self.robot.stand_on(world.vector(x, up + world.stage_margin_m, z))
            self.joints = Joints({name: world.link_called(handle, link) for name, (handle, link) in home.links.items()}, damped=False)
            world.let_pass(home.origin_m[2] + THIN_M)
        self.home, self._origin = home, home.origin_m if isinstance(home, SceneHome) else _NO_SHIFT
        return loaded

    def convert_episode(self, episode: Episode) -> Episode:
        """An episode of an external scene, as HAB's, in our frame and with our names; episodes of our homes as they are."""
        if self._homes.is_converted(episode):
            return episode
        return in_terms_of(self._homes.of_scene(episode), episode)

    def refuses_unsolvable(self, episode: Episode) -> bool:
        """Whether an episode that cannot be solved is refused. One of an external scene is tried, and failed."""
        return is_ours(episode.scene)

    def layout_of(self, episode: Episode) -> Layout:
        """The layout of an episode's home, which need not be loaded."""
        if is_ours(episode.scene):
            return scene_layout(episode.scene)
        return self._homes.of_scene(episode).layout

    @property
    def _is_ours(self) -> bool:
        return not isinstance(self.home, SceneHome)

    def reset(self, episode: Episode) -> None:
        """Load the episode's home, put its objects where it says and let them come to rest. The robot is left
        outside.
        """
        loaded = self._enter(episode)
        world = self.world
        self.episode, self._numbered = episode, None
        self.held = None
        self.robot.place(*_AWAY_M, 0.0, ARM_START_RAD)
        if loaded:
            world.forget_pairs()
        self._objects = world.take_objects(episode.objects, episode.object_paths)
        self._index_of = {thing.object_id: i for i, thing in enumerate(self._objects)}
        self.joints.set({name: episode.articulated.get(name, 0.0) for name in self.home.handles})
        for i, pose in enumerate(episode.start_poses):
            self._set_object(i, pose)
        self._settle()
        self._touches: list[Touch] = []
        self._begin_episode()

    def _set_object(self, i: int, pose: Pose) -> None:
        thing, still = self._objects[i], self.world.vector(0.0, 0.0, 0.0)
        thing.transformation = matrix4(pose_to_matrix((*(a + b for a, b in zip(pose[:3], self._origin)), *pose[3:])))
        thing.linear_velocity = thing.angular_velocity = still

    def _settle(self) -> None:
        """Until nothing moves; then put everything to sleep, as habitat-lab does."""
        for _ in range(0, 4 * self.config.settle_steps, _SETTLE_CHUNK):
            self.world.advance(_SETTLE_CHUNK)
            if all(thing.linear_velocity.length() < _RESTS_M_S for thing in self._objects):
                break
        for thing in self._objects:
            thing.awake = False

    def place_robot(self, x: float, y: float, yaw: float, arm_rad: tuple[float, ...] = ARM_START_RAD) -> None:
        """Put the robot at a base pose with its arm at these angles, at rest."""
        self.robot.place(x, y, yaw, arm_rad)
        self._target_rad[:] = arm_rad
        self._read_pose()
        self._forget_forces()

    def robot_collides(self) -> bool:
        """True when any part of the robot, or what it holds, is in contact with something else."""
        simulator = self.world.simulator
        simulator.perform_discrete_collision_detection()
        return collides(simulator.get_physics_contact_points(), self.robot.id, self._held_id, _TOUCH_TOLERANCE_M)

    def blocked(self, start: Point, end: Point) -> bool:
        """True when walls, furniture, doors or drawers cross the straight line between two points (world frame). In external scenes,
        which have no handles of their own, what the end lies on is not in between.
        """
        if not self._is_ours and (end := before_end(start, end)) is None:
            return False
        vector, start = self.world.vector, self._there(start)
        way = np.subtract(self._there(end), start)
        ray = self.world.habitat.geo.Ray(vector(*start), vector(*way))
        hits = self.world.simulator.cast_ray(ray, 1.0).hits
        own = {self.robot.id, *self.robot.body.link_object_ids}
        return any(hit.object_id not in self._index_of and hit.object_id not in own for hit in hits)

    # ------------------------------------------------------------------ one step

    def step(self, arm: list[float] | None = None, grip: float | None = None, base: list[float] | None = None) -> None:
        """Advance 1/30 s. Commands lie in [-1, 1]: `arm` (7) joint deltas, `grip` >= 0 suction on, `base` forward
        and left turn.
        """
        config = self.config
        if arm is not None:
            move_targets(self._target_rad, np.array(arm, float), self._arm_rad, config.max_joint_delta_rad,
                         config.max_joint_lag_rad, _ARM_LOW_RAD, _ARM_HIGH_RAD, self._ctrl)
        forward, turn = (0.0, 0.0) if base is None else base
        speed = config.base_speed_m_s * forward
        self.joints.damp()
        self.robot.drive((speed * self._cos, speed * self._sin, config.base_turn_rad_s * turn))
        self.robot.follow(self._target_rad.tolist())
        self.world.advance(SUBSTEPS)
        arm_n, base_n, self._touches = forces(self.world.contacts(), self.robot.parts, self._held_id)
        self._take_forces(arm_n, base_n)
        self._read_pose()
        speeds = self.robot.speeds()
        self.unstable = not (max(speeds) < _MAX_SPEED and min(speeds) > -_MAX_SPEED and math.isfinite(sum(speeds)))
        self._hold_or_release(grip)

    def _read_pose(self) -> None:
        base_pose, self._arm_rad = self.robot.read()
        self._cup, tip, matrix = self.robot.hand()
        self._take_pose(base_pose, self._here(*numbers(tip)), matrix)
        self._moved()

    @property
    def _held_id(self) -> int | None:
        return None if self.held is None else self._objects[self.held].object_id

    def _hold_or_release(self, grip: float | None) -> None:
        self.hold_broken = self.released = False
        if self._hold.holding:
            if self._hold.stretch_m(self._cup) > self.config.hold_break_m:
                self.hold_broken = True
            elif grip is not None and grip < 0.0:
                self.released = True
            if self.hold_broken or self.released:
                self._hold.release()
                self.held = self.held_handle = None
        elif grip is not None and grip >= 0.0 and self._touches:
            self._hold_touched()

    def _hold_touched(self) -> None:
        """Hold what the cup touches: the wanted thing if it is among that, else the first."""
        found: list[tuple[int | None, str | None]] = []
        axis = to_y_up(self._ee_matrix[0::3])
        for touch in self._touches:
            if not within_angle(touch, axis, self._least_cosine):
                continue
            index = self._index_of.get(touch.object_id)
            handle = self.joints.name_of(touch.object_id, touch.link_id) if index is None else None
            if index is not None:
                found.append((index, None))
            elif handle is not None and self._is_handle(handle, self._here(*touch.position)):
                found.append((None, handle))
        wanted = [(i, name) for i, name in found
                  if (i is not None and i == self._wanted) or (name is not None and name == self._wanted_handle)]
        for i, name in (wanted or found)[:1]:
            self._hold_object(i) if i is not None else self._hold_handle(name)

    def _is_handle(self, name: str, point: Point) -> bool:
        """Whether a world point is on the handle of a drawer or door, not elsewhere on it."""
        origin, rotation = self.body_frame(name)
        part = handle_part(self._body(name))
        off = np.abs(rotation.T @ np.subtract(point, origin) - part.center_m)
        return bool((off <= np.array(part.half_extent_m) + _HANDLE_REACH_M).all())

    def _hold_object(self, i: int) -> None:
        self._hold.object(self._objects[i])
        self.held = i

    def _hold_handle(self, name: str) -> None:
        body, link = self.joints.where[name]
        self._hold.link(body, link, self.world.vector(*self._there(self.ee_position)))
        self.held_handle = name

    # ------------------------------------------------------------------ reading and setting the state

    def arm_positions(self) -> np.ndarray:
        """Angles of the seven arm joints (rad)."""
        return self._arm_rad

    def arm_velocities(self) -> np.ndarray:
        """Speeds of the seven arm joints (rad/s)."""
        return self.robot.arm_speeds()

    def arm_targets(self) -> np.ndarray:
        """Where the motors of the seven arm joints are sent (rad); a view."""
        return self._target_rad

    def object_position(self, i: int) -> list[float]:
        """Middle of object i, world frame."""
        return list(self._here(*numbers(self._objects[i].translation)))

    def object_pose(self, i: int) -> Pose:
        """Pose of object i, world frame."""
        thing = self._objects[i]
        return (*self._here(*numbers(thing.translation)), *turn_of_object(thing.rotation))

    def object_half_extents(self, i: int) -> tuple[float, float, float]:
        """Half size of the box around object i, in its own frame."""
        x, y, z = numbers(self._objects[i].root_scene_node.cumulative_bb.size() / 2)
        return x, z, y

    def _body(self, name: str) -> Any:
        return next(body for body in self.home.layout.bodies if body.name == name)

    def body_frame(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Origin (3,) and rotation matrix (3, 3) of a drawer or door, world frame."""
        body = self._body(name)
        x, y, yaw = body.pose(self.joint_position(name))
        c, s = math.cos(yaw), math.sin(yaw)
        return np.array((x, y, body.position_m[2])), np.array([(c, -s, 0.0), (s, c, 0.0), (0.0, 0.0, 1.0)])

    def handle_position(self, name: str) -> list[float]:
        """Middle of the handle of a drawer or door, world frame."""
        origin, rotation = self.body_frame(name)
        return (origin + rotation @ handle_part(self._body(name)).center_m).tolist()

    def joint_position(self, name: str) -> float:
        """Opening of a drawer (m) or door (rad)."""
        return self.joints.position(name)

    def joint_velocity(self, name: str) -> float:
        """Opening speed of a drawer (m/s) or door (rad/s)."""
        return self.joints.velocity(name)

    def set_joint(self, name: str, value: float) -> None:
        """Open a drawer (m) or door (rad), before the robot is placed."""
        self.joints.set({name: value})

    def put_in_hand(self, i: int, pose: Pose | None = None) -> None:
        """Hold object i at a pose; None: by the middle of its top, as if it had been picked from above."""
        self._hold.release()
        self._set_object(i, pose or self._hanging(i))
        self._hold_object(i)

    def _hanging(self, i: int) -> Pose:
        low, high, stood = self._standing(i)
        middle, upright = self.in_hand((high[2] - low[2]) / 2, _HOLD_DEPTH_M)
        middle = middle - upright @ ((low + high) / 2)
        return (*middle.tolist(), *matrix_quat(upright @ stood).tolist())

    def _standing(self, i: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Object i as it stands: the corners (3,) of the box around it, from its origin, and its turn (3, 3). Ours stand
        upright in their own frame, with their origin in the middle; others as the episode begins.
        """
        if self._is_ours:
            half = np.array(self.object_half_extents(i))
            return -half, half, np.eye(3)
        box, turn = self._objects[i].root_scene_node.cumulative_bb, quat_matrix(np.array(self.episode.start_poses[i][3:]))
        low, high = np.array(to_z_up(*numbers(box.min))), np.array(to_z_up(*numbers(box.max)))
        middle, half = turn @ ((low + high) / 2), np.abs(turn) @ np.abs((high - low) / 2)
        return middle - half, middle + half, turn

    def cup_touches(self) -> bool:
        """True when the suction cup touches something."""
        return bool(self._touches)

    def touched_objects(self) -> set[int | None]:
        """The objects that the suction cup touches; None among them for anything else."""
        return {self._index_of.get(touch.object_id) for touch in self._touches}

    # ------------------------------------------------------------------ our world in Habitat's

    def _there(self, point: Point) -> Point:
        """A point of our world in Habitat's."""
        return to_y_up(tuple(value + low for value, low in zip(point, self._origin)))

    def _here(self, x: float, y: float, z: float) -> Point:
        """A point of Habitat's world in ours."""
        low_x, low_y, low_z = self._origin
        return x - low_x, -z - low_y, y - low_z

    # ------------------------------------------------------------------ seeing

    def depth_image(self, size: int) -> np.ndarray:
        """What the head camera sees now: (size, size, 1) float32, 0..1 over 10 m."""
        return self.world.camera.depth(size)

    def owner_image(self, size: int) -> tuple[np.ndarray, np.ndarray]:
        """What the head camera sees now: depth (size, size) in metres, and whose each pixel is (see Simulator)."""
        shapes = []
        for i in range(len(self._objects)):
            x, y, z, *turn = self.object_pose(i)
            box = self._objects[i].root_scene_node.cumulative_bb
            turned, middle = quat_matrix(np.array(turn)), np.array(to_z_up(*numbers(box.center())))
            shapes.append((i, Box(turned @ middle + (x, y, z), turned, np.array(self.object_half_extents(i)))))
        for k, name in enumerate(self.home.handles):
            origin, turned = self.body_frame(name)
            for part in filter(lambda part: part.solid, self._body(name).parts):
                shapes.append((FIRST_JOINT - k, part_box(part, origin, turned)))
        return owners_in(self.depth_image(size)[:, :, 0], self.base_pose, shapes)

    def photograph(self, camera: str, size: int, wanted: Collection[str], looks: Looks) -> dict[str, np.ndarray]:
        """What a camera of the robot sees now: those images that are wanted (see Simulator). Of our homes drawn from the state by the
        embedded home's rasteriser, of external scenes by Habitat. Raises UserError for other colours or light of these.
        """
        if self._is_ours:
            return self.twin.photograph(camera, size, wanted, looks)
        if looks.color_share or looks.light is not PLAIN.light:
            raise UserError(f"scene {self.home.layout.name} is none of ours, and keeps its colours and its light: leave out "
                            "sim.random_colors= and sim.random_light=.")
        pose = self.camera_pose(camera, looks)
        pose[3] += self._origin
        self._number_things()
        return self.world.scene_cameras.photograph(self.world.simulator, pose, wanted, size)

    def segmentation_names(self) -> dict[int, str]:
        """What each number in a segmentation stands for."""
        if self._is_ours:
            return names_of(self.home.layout, self.episode.objects)
        self._number_things()
        return robot_and_objects(self.episode.objects) | self._furniture

    def _number_things(self) -> None:
        """Number what is in the external scene, once in an episode."""
        if self._numbered is not self.episode:
            bodies = {handle: body for handle, body in self.world.bodies.items() if body.object_id != self.robot.id}
            self._furniture = number_things(self._objects, self.robot.body, self.world.furniture(), bodies, self.joints.where)
            self._numbered = self.episode

    def picture(self, eye: np.ndarray, target: np.ndarray, marks: list, size: tuple[int, int] = PICTURE_SIZE) -> np.ndarray:
        """What a spectator at `eye` sees who looks at `target`, with marks: (height, width, 3) uint8, drawn from the state by
        the embedded simulator's painter.
        """
        return self.twin.picture(eye, target, marks, size)

    def hand_picture(self, size: int) -> np.ndarray | None:
        """What the camera at the wrist sees, drawn for a spectator: (size, size, 3) uint8."""
        return self.twin.hand_picture(size)

    def head_picture(self, size: int) -> np.ndarray | None:
        """What the head camera sees in colour, drawn for a spectator: (size, size, 3) uint8; None in an external scene."""
        return self.twin.head_picture(size)

    # ------------------------------------------------------------------ trying out

    @property
    def twin(self) -> MujocoSimulator:
        """The embedded simulator of the same home with everything where it is here."""
        ours = self._is_ours
        if ours not in self._twins:
            self._twins[ours] = Twin(self._embedded())
        return self._twins[ours].of(self)

    def shadow(self) -> MujocoSimulator:
        """A simulator in which poses are tried out that this one must not take: an embedded one, always the same one."""
        ours = self._is_ours
        if ours not in self._shadows:
            self._shadows[ours] = self._embedded()
        return self._shadows[ours]

    def _embedded(self) -> MujocoSimulator:
        return MujocoSimulator(self.config) if self._is_ours else SceneSimulator(self.config, self._dataset)

    def _moved(self) -> None:
        """The twins no longer show what is here."""
        for twin in self._twins.values():
            twin.is_current = False

    def copy_state(self, other: Simulator) -> None:
        """Put everything where it is in another simulator that has loaded the same home and objects."""
        self.joints.set({name: other.joint_position(name) for name in self.home.handles})
        for i in range(len(self._objects)):
            self._set_object(i, other.object_pose(i))
