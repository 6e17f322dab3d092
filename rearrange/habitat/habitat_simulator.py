"""Habitat-Sim with Bullet behind the interface of every simulator, `rearrange.home.simulation.simulator_interface`.

World frame: z up, metres; Habitat's is y up (`rearrange.home.axis_conventions`). Time: four substeps of 1/120 s in a
step. Forces and contacts are those of the last substep.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from pathlib import Path

import numpy as np

from rearrange.habitat.contacts import Touch, collides, forces, within_angle
from rearrange.habitat.frames import matrix4, numbers, turn_of_object, vector
from rearrange.habitat.homes import Homes, is_ours
from rearrange.habitat.joints import Joints
from rearrange.habitat.mujoco_twin import Twin
from rearrange.habitat.robot import Fetch
from rearrange.habitat.segmentation import Box, number_things, owners_in, part_box
from rearrange.habitat.sim_instance import SUBSTEPS, World
from rearrange.habitat.suction import Hold
from rearrange.home.apartments.episodes import Episode, Pose
from rearrange.home.apartments.kept_layouts import scene_layout
from rearrange.home.apartments.layouts import Layout
from rearrange.home.apartments.parts import Body
from rearrange.home.apartments.segmentation import names_of, robot_and_objects
from rearrange.home.axis_conventions import pose_to_matrix, to_y_up, to_z_up
from rearrange.home.episodes.scene_episodes import in_terms_of
from rearrange.home.errors import UserError
from rearrange.home.geometry import matrix_quat, quat_matrix
from rearrange.home.pictures.looks import PLAIN, Looks
from rearrange.home.robot.motors import move_targets
from rearrange.home.scene_files.scene_data import SceneData
from rearrange.home.simulation.mujoco.build_model import handle_part
from rearrange.home.simulation.mujoco.compiled_home import CompiledHome
from rearrange.home.simulation.mujoco.contacts import cos_limit
from rearrange.home.simulation.scenes.scene_layout import SceneHome, before_end
from rearrange.home.simulation.scenes.scene_parts import THIN_M
from rearrange.home.simulation.scenes.scene_simulator import SceneSimulator
from rearrange.home.simulation.simulator_base import RobotInHome
from rearrange.home.simulation.simulator_interface import (
    FIRST_JOINT,
    MAX_SPEED,
    PICTURE_SIZE,
    Point,
    Simulator,
    SimulatorConfig,
)

_TOUCH_TOLERANCE_M = 1e-3  # Bullet's contacts at rest are about as deep
_AWAY_M = (-50.0, -50.0)  # where the robot is while objects come to rest
_SETTLE_CHUNK = 12  # physics steps between two looks whether all objects rest
_RESTS_M_S = 0.01
_HANDLE_REACH_M = 0.01  # so near to the handle's box a contact is one with the handle


class HabitatSimulator(RobotInHome):
    """One robot in one home of a Habitat scene data set. What methods without a docstring do is said at `Simulator`.

    What has to know the geometry, such as experts and painters, looks at the twin; poses are tried out in the shadow.
    Both are embedded simulators.
    """

    def __init__(self, config: SimulatorConfig, data: SceneData, nvidia: bool = False) -> None:
        super().__init__(config)
        dataset = Path(data.scene_dataset)
        self.world = World(data, nvidia)
        self._homes = Homes(self.world, dataset)
        self._homes.need(data.scenes)
        self.home: CompiledHome | SceneHome | None = None
        self._twin = Twin(SceneSimulator(config, dataset, mixed=True))
        self._shadow = SceneSimulator(config, dataset, mixed=True)
        self._target_rad, self._ctrl = np.zeros(7), np.zeros(7)
        self._numbered: Episode | None = None  # of which what is in the scene has its numbers
        self._least_cosine = cos_limit(config.suction_max_angle_rad)

    # ------------------------------------------------------------------ episodes

    def convert_episode(self, episode: Episode) -> Episode:
        if self._homes.is_converted(episode):
            return episode
        return in_terms_of(self._homes.of_scene(episode), episode)

    def refuses_unsolvable(self, episode: Episode) -> bool:
        return is_ours(episode.scene)

    def layout_of(self, episode: Episode) -> Layout:
        return scene_layout(episode.scene) if is_ours(episode.scene) else self._homes.of_scene(episode).layout

    def reset(self, episode: Episode) -> None:
        loaded = self._enter(episode)
        world = self.world
        self.episode, self._numbered = episode, None
        self.held = None
        self.body.place(*_AWAY_M, 0.0, self.robot.arm.start)
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

    def _enter(self, episode: Episode) -> bool:
        """Be in the home of an episode, with nothing in the hand; whether its scene had to be loaded."""
        if self.home is not None:
            self._hold.release()
        world = self.world
        home, loaded = self._homes.enter(episode)
        self._scene = home if isinstance(home, SceneHome) else None  # None in one of our homes
        if loaded:
            self.body = Fetch(world.habitat, world.robot)
            world.camera.ride_on(self.body.base_node)
            self._hold = Hold(world.habitat, world.simulator, self.body)
        if self._scene is None:
            self._origin = (0.0, 0.0, 0.0)
            if loaded:
                self.joints = Joints({name: world.link_of(name) for name in home.handles}, damped=True)
        elif loaded or home is not self.home:
            self._origin = home.origin_m
            x, up, z = to_y_up(home.origin_m)
            self.body.stand_on(vector(x, up + world.stage_margin_m, z))
            links = {name: world.link_called(handle, link) for name, (handle, link) in home.links.items()}
            self.joints = Joints(links, damped=False)
            world.let_pass(home.origin_m[2] + THIN_M)
        self.home = home
        return loaded

    def _set_object(self, i: int, pose: Pose) -> None:
        thing = self._objects[i]
        place = (a + b for a, b in zip(pose[:3], self._origin))
        thing.transformation = matrix4(pose_to_matrix((*place, *pose[3:])))
        thing.linear_velocity = thing.angular_velocity = vector(0.0, 0.0, 0.0)

    def _settle(self) -> None:
        """Until nothing moves; then put everything to sleep, as habitat-lab does."""
        for _ in range(0, 4 * self.config.settle_steps, _SETTLE_CHUNK):
            self.world.advance(_SETTLE_CHUNK)
            if all(thing.linear_velocity.length() < _RESTS_M_S for thing in self._objects):
                break
        for thing in self._objects:
            thing.awake = False

    def place_robot(self, x: float, y: float, yaw: float, arm_rad: tuple[float, ...] | None = None) -> None:
        arm_rad = self.robot.arm.start if arm_rad is None else arm_rad
        self.body.place(x, y, yaw, arm_rad)
        self._target_rad[:] = arm_rad
        self._read_pose()
        self._forget_forces()

    def robot_collides(self) -> bool:
        simulator = self.world.simulator
        simulator.perform_discrete_collision_detection()
        return collides(simulator.get_physics_contact_points(), self.body.id, self._held_id, _TOUCH_TOLERANCE_M)

    def blocked(self, start: Point, end: Point) -> bool:
        """True when walls, furniture, doors or drawers cross the straight line between two points (world frame).

        In external scenes, which have no handles of their own, what the end lies on is not in between.
        """
        if self._scene is not None and (end := before_end(start, end)) is None:
            return False
        start = self._there(start)
        ray = self.world.habitat.geo.Ray(vector(*start), vector(*np.subtract(self._there(end), start)))
        passed = {self.body.id, *self.body.body.link_object_ids, *self._index_of}
        return any(hit.object_id not in passed for hit in self.world.simulator.cast_ray(ray, 1.0).hits)

    # ------------------------------------------------------------------ one step

    def step(self, arm: list[float] | None = None, grip: float | None = None, base: list[float] | None = None) -> None:
        config = self.config
        if arm is not None:
            of = self.robot.arm
            move_targets(self._target_rad, np.array(arm, float), self._arm_rad, of.delta, of.lag, of.low, of.high,
                         self._ctrl)
        forward, turn = (0.0, 0.0) if base is None else base
        speed = config.base_speed_m_s * forward
        self.joints.damp()
        self.body.drive((speed * self._cos, speed * self._sin, config.base_turn_rad_s * turn))
        self.body.follow(self._target_rad.tolist())
        self.world.advance(SUBSTEPS)
        arm_n, base_n, self._touches = forces(self.world.contacts(), self.body.parts, self._held_id)
        self._take_forces(arm_n, base_n)
        self._read_pose()
        speeds = self.body.speeds()
        self.unstable = not (max(speeds) < MAX_SPEED and min(speeds) > -MAX_SPEED and math.isfinite(sum(speeds)))
        self._hold_or_release(grip)

    def _read_pose(self) -> None:
        base_pose, self._arm_rad = self.body.read()
        self._cup, tip, matrix = self.body.hand()
        self._take_pose(base_pose, self._here(*numbers(tip)), matrix)
        self._twin.is_current = False

    @property
    def _held_id(self) -> int | None:
        return None if self.held is None else self._objects[self.held].object_id

    def _hold_or_release(self, grip: float | None) -> None:
        self.hold_broken = self.released = False
        if self._hold.holding:
            if self._hold.stretch_m(self._cup) > self.robot.hand.break_m:
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
            if index is not None or (handle is not None and self._is_handle(handle, self._here(*touch.position))):
                found.append((index, handle))
        wanted = [(i, name) for i, name in found
                  if (i is not None and i == self._wanted) or (name is not None and name == self._wanted_handle)]
        for i, name in (wanted or found)[:1]:
            if i is not None:
                self._hold_object(i)
            else:
                self._hold.link(*self.joints.where[name], vector(*self._there(self.ee_position)))
                self.held_handle = name

    def _is_handle(self, name: str, point: Point) -> bool:
        """Whether a world point is on the handle of a drawer or door, not elsewhere on it."""
        origin, rotation = self.body_frame(name)
        part = handle_part(self._body(name))
        off = np.abs(rotation.T @ np.subtract(point, origin) - part.center_m)
        return bool((off <= np.array(part.half_extent_m) + _HANDLE_REACH_M).all())

    def _hold_object(self, i: int) -> None:
        self._hold.object(self._objects[i])
        self.held = i

    # ------------------------------------------------------------------ reading and setting the state

    def arm_positions(self) -> np.ndarray:
        return self._arm_rad

    def arm_velocities(self) -> np.ndarray:
        return self.body.arm_speeds()

    def arm_targets(self) -> np.ndarray:
        return self._target_rad

    def object_position(self, i: int) -> list[float]:
        return list(self._here(*numbers(self._objects[i].translation)))

    def object_pose(self, i: int) -> Pose:
        return (*self.object_position(i), *turn_of_object(self._objects[i].rotation))

    def object_half_extents(self, i: int) -> tuple[float, float, float]:
        x, y, z = numbers(self._objects[i].root_scene_node.cumulative_bb.size() / 2)
        return x, z, y

    def _body(self, name: str) -> Body:
        return next(body for body in self.home.layout.bodies if body.name == name)

    def body_frame(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        body = self._body(name)
        x, y, yaw = body.pose(self.joint_position(name))
        c, s = math.cos(yaw), math.sin(yaw)
        return np.array((x, y, body.position_m[2])), np.array([(c, -s, 0.0), (s, c, 0.0), (0.0, 0.0, 1.0)])

    def handle_position(self, name: str) -> list[float]:
        origin, rotation = self.body_frame(name)
        return (origin + rotation @ handle_part(self._body(name)).center_m).tolist()

    def joint_position(self, name: str) -> float:
        return self.joints.position(name)

    def joint_velocity(self, name: str) -> float:
        return self.joints.velocity(name)

    def set_joint(self, name: str, value: float) -> None:
        self.joints.set({name: value})

    def put_in_hand(self, i: int, pose: Pose | None = None) -> None:
        self._hold.release()
        self._set_object(i, pose or self._hanging(i))
        self._hold_object(i)

    def _hanging(self, i: int) -> Pose:
        """By the middle of its top, as it stands: ours upright in their own frame, others as the episode begins."""
        if self._scene is None:
            center, half, stood = np.zeros(3), self.object_half_extents(i), np.eye(3)
        else:
            box = self._objects[i].root_scene_node.cumulative_bb
            low, high = np.array(to_z_up(*numbers(box.min))), np.array(to_z_up(*numbers(box.max)))
            stood = quat_matrix(np.array(self.episode.start_poses[i][3:]))
            center, half = stood @ ((low + high) / 2), np.abs(stood) @ np.abs((high - low) / 2)
        middle, upright = self.in_hand(half)
        return (*(middle - upright @ center).tolist(), *matrix_quat(upright @ stood).tolist())

    def cup_touches(self) -> bool:
        return bool(self._touches)

    def touched_objects(self) -> set[int | None]:
        return {self._index_of.get(touch.object_id) for touch in self._touches}

    # ------------------------------------------------------------------ frames

    def _there(self, point: Point) -> Point:
        """A point of the world in Habitat's."""
        return to_y_up(tuple(value + low for value, low in zip(point, self._origin)))

    def _here(self, x: float, y: float, z: float) -> Point:
        """A point of Habitat's world in the simulator's."""
        low_x, low_y, low_z = self._origin
        return x - low_x, -z - low_y, y - low_z

    # ------------------------------------------------------------------ seeing

    def depth_image(self, size: int) -> np.ndarray:
        return self.world.camera.depth(size)

    def owner_image(self, size: int) -> tuple[np.ndarray, np.ndarray]:
        shapes = []
        for i, thing in enumerate(self._objects):
            x, y, z, *turn = self.object_pose(i)
            turned = quat_matrix(np.array(turn))
            middle = turned @ np.array(to_z_up(*numbers(thing.root_scene_node.cumulative_bb.center())))
            shapes.append((i, Box(middle + (x, y, z), turned, np.array(self.object_half_extents(i)))))
        for k, name in enumerate(self.home.handles):
            frame = self.body_frame(name)
            shapes += [(FIRST_JOINT - k, part_box(part, *frame)) for part in self._body(name).parts if part.solid]
        return owners_in(self.depth_image(size)[:, :, 0], self.base_pose, shapes)

    def photograph(self, camera: str, size: int, wanted: Collection[str], looks: Looks) -> dict[str, np.ndarray]:
        """What a camera of the robot sees now: those images that are wanted (see Simulator).

        Our homes are drawn by the twin, external scenes by Habitat. UserError for other colours or light of these.
        """
        if self._scene is None:
            return self.twin.photograph(camera, size, wanted, looks)
        if looks.color_share or looks.light is not PLAIN.light:
            raise UserError(f"scene {self.home.layout.name} is none of ours, and keeps its colours and its light: "
                            "leave out sim.random_colors= and sim.random_light=.")
        pose = self.camera_pose(camera, looks)
        pose[3] += self._origin
        self._number_things()
        return self.world.camera.photograph(pose, wanted, size)

    def segmentation_names(self) -> dict[int, str]:
        if self._scene is None:
            return names_of(self.home.layout, self.episode.objects)
        self._number_things()
        return robot_and_objects(self.episode.objects) | self._furniture

    def _number_things(self) -> None:
        """Number what is in the external scene, once in an episode."""
        if self._numbered is not self.episode:
            world, robot = self.world, self.body
            bodies = {handle: body for handle, body in world.bodies.items() if body.object_id != robot.id}
            self._furniture = number_things(self._objects, robot.body, world.furniture, bodies, self.joints.where)
            self._numbered = self.episode

    def picture(self, eye: np.ndarray, target: np.ndarray, marks: list,
                size: tuple[int, int] = PICTURE_SIZE) -> np.ndarray:
        return self.twin.picture(eye, target, marks, size)

    def frame(self, eye: np.ndarray, target: np.ndarray, marks: list, size: tuple[int, int],
              hand_size: int) -> Callable[[], tuple[np.ndarray, np.ndarray | None]]:
        return self.twin.frame(eye, target, marks, size, hand_size)

    def head_picture(self, size: int) -> np.ndarray | None:
        return self.twin.head_picture(size)

    # ------------------------------------------------------------------ trying out

    @property
    def twin(self) -> SceneSimulator:
        """The embedded simulator of the same home with everything where it is here."""
        return self._twin.of(self)

    def shadow(self) -> SceneSimulator:
        return self._shadow

    def copy_state(self, other: Simulator) -> None:
        self.joints.set({name: other.joint_position(name) for name in self.home.handles})
        for i in range(len(self._objects)):
            self._set_object(i, other.object_pose(i))
