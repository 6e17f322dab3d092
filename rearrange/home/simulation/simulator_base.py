"""What the simulators share: frames, forces and the bookkeeping of an episode, computed from what each reads."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rearrange.home.apartments.episodes import Episode, Pose
from rearrange.home.errors import UserError
from rearrange.home.robot import robot_named
from rearrange.home.robot.cameras import in_world
from rearrange.home.simulation.simulator_interface import Point, SimulatorConfig

if TYPE_CHECKING:
    from rearrange.home.pictures.looks import Looks
    from rearrange.home.robot.robot import Robot

_MIN_FORCE_RISE_N = 20.0  # HAB's MIN_FORCE


def _within_limits(config: SimulatorConfig, robot: Robot) -> SimulatorConfig:
    """The settings with the speeds that the robot reaches."""
    speed, turn = config.base_speed_m_s, config.base_turn_rad_s
    if speed <= robot.base.most_m_s and turn <= robot.base.most_rad_s:
        return config
    return replace(config, base_speed_m_s=min(speed, robot.base.most_m_s),
                   base_turn_rad_s=min(turn, robot.base.most_rad_s))


class RobotInHome(ABC):
    """`rearrange.home.simulation.simulator_interface.Simulator` in part, which says what each method is for.

    State is read as plain attributes; `_take_pose` and `_take_forces` keep it up to date.
    """

    episode: Episode
    start_positions: list[Point]
    base_pose: Point
    ee_position: Point
    ee_in_base: Point
    held: int | None
    held_handle: str | None

    def __init__(self, config: SimulatorConfig = SimulatorConfig()) -> None:
        self.robot = robot_named(config.robot, config.hand)
        self.config = _within_limits(config, self.robot)
        self.want()
        self.unstable = False

    def convert_episode(self, episode: Episode) -> Episode:
        """An episode of a file in this simulator's frame and with its names; one that was converted stays as it is."""
        return episode

    def refuses_unsolvable(self, episode: Episode) -> bool:
        """Whether an episode that cannot be solved is refused. One of an external scene is tried, and failed."""
        return True

    def _begin_episode(self) -> None:
        """Nothing is held or wanted, and objects are where they came to rest."""
        self.start_positions = [tuple(self.object_position(i)) for i in range(len(self.episode.objects))]
        self.held, self.held_handle, self.hold_broken, self.released, self.unstable = None, None, False, False, False
        self.want()

    def want(self, target: int | None = None, handle: str | None = None) -> None:
        self._wanted, self._wanted_handle = target, handle

    @abstractmethod
    def object_position(self, i: int) -> list[float]: ...

    @abstractmethod
    def place_robot(self, x: float, y: float, yaw: float) -> None: ...

    @abstractmethod
    def put_in_hand(self, i: int) -> None: ...

    @abstractmethod
    def robot_collides(self) -> bool: ...

    def stands_free(self, x: float, y: float, yaw: float, held: int | None = None) -> bool:
        self.place_robot(x, y, yaw)
        if held is not None:
            self.put_in_hand(held)
        return not self.robot_collides()

    @property
    def settle_distance_m(self) -> float:
        held = self.episode.handoff.held if self.episode.handoff else None  # it may wait in a drawer that stands open
        pairs = enumerate(zip(self.start_positions, self.episode.start_poses))
        return max((math.dist(position, pose[:3]) for i, (position, pose) in pairs if i != held), default=0.0)

    def thing_pose(self, name: str) -> Pose:
        raise UserError(f"scene {self.episode.scene} marks no thing {name!r}: only scenes in MJCF mark what is to be "
                        "moved.")

    @property
    def is_holding(self) -> bool:
        return self.held is not None or self.held_handle is not None

    # ------------------------------------------------------------------ forces

    def _forget_forces(self) -> None:
        self.arm_force_n = self.base_force_n = self.arm_force_rise_n = self.accumulated_arm_force_n = 0.0
        self._reference_force_n = 0.0

    def _take_forces(self, arm_n: float, base_n: float) -> None:
        """HAB's force measure on the arm: the sum of rises above 20 N of the largest contact force."""
        self.arm_force_n, self.base_force_n = arm_n, base_n
        rise = self.arm_force_n - self._reference_force_n
        self.arm_force_rise_n = 0.0
        if rise > _MIN_FORCE_RISE_N:
            self.arm_force_rise_n = rise
            self.accumulated_arm_force_n += rise
            self._reference_force_n = self.arm_force_n
        elif rise < 0.0:
            self._reference_force_n = self.arm_force_n

    # ------------------------------------------------------------------ frames

    def _take_pose(self, base_pose: list[float], ee_position: list[float], ee_matrix: list[float]) -> None:
        """Keep the poses that everything else is computed from as plain floats; `ee_matrix`: (9,), row by row."""
        self.base_pose = x, y, yaw = tuple(base_pose)
        self._cos, self._sin = math.cos(yaw), math.sin(yaw)
        self.ee_position = tuple(ee_position)
        self._ee_matrix = ee_matrix
        self.ee_in_base = self.to_base(self.ee_position)

    def to_base(self, point: Sequence[float]) -> Point:
        dx, dy = point[0] - self.base_pose[0], point[1] - self.base_pose[1]
        return (self._cos * dx + self._sin * dy, self._cos * dy - self._sin * dx, point[2])

    def from_base(self, point: Sequence[float]) -> Point:
        (x, y, _), (forward, left, up) = self.base_pose, point
        return (x + self._cos * forward - self._sin * left, y + self._sin * forward + self._cos * left, up)

    def to_ee(self, point: Sequence[float]) -> Point:
        m, e = self._ee_matrix, self.ee_position
        dx, dy, dz = point[0] - e[0], point[1] - e[1], point[2] - e[2]
        return (m[0] * dx + m[3] * dy + m[6] * dz, m[1] * dx + m[4] * dy + m[7] * dz, m[2] * dx + m[5] * dy + m[8] * dz)

    def camera_pose(self, camera: str, looks: Looks) -> np.ndarray:
        """Right, down and forward of a camera of the robot, and its place, (4, 3), world frame."""
        turn, place = np.array(self._ee_matrix).reshape(3, 3), np.array(self.ee_position)
        if camera == "head":
            (x, y, _), cos, sin = self.base_pose, self._cos, self._sin
            turn, place = np.array([(cos, -sin, 0.0), (sin, cos, 0.0), (0.0, 0.0, 1.0)]), np.array([x, y, 0.0])
        return in_world(looks.mounted(camera, self.robot.camera(camera)), turn, place)

    def in_hand(self, half_m: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
        """Middle (3,) and rotation matrix (3, 3), world, of an object that hangs by its top in the hand.

        Args:
            half_m: Half the size of the box around it. Fingers hold it across its narrow side.
        """
        x_axis, y_axis, z_axis = np.array(self._ee_matrix).reshape(3, 3).T
        hand = self.robot.hand
        middle = np.array(self.ee_position) + (half_m[2] - hand.held_m(2.0 * half_m[2])) * x_axis
        if hand.fingers and half_m[0] < half_m[1]:
            return middle, np.column_stack([y_axis, -z_axis, -x_axis])
        return middle, np.column_stack([z_axis, y_axis, -x_axis])
