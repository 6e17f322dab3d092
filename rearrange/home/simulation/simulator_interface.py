"""What a simulator offers: all that skills, planner, environments, evaluation and videos may ask of one.

`rearrange.home.simulation.mujoco.simulator` (MuJoCo) and `rearrange.habitat.habitat_simulator` (Habitat-Sim) offer it;
`rearrange.env.make_simulator` chooses.

Frames. World: z up, metres. Base and end-effector, which is the hand: `rearrange.home.robot.robot`. Objects are
referred to by their index in the episode, drawers and doors by the name of their joint; joints of drawers are in
metres, those of doors in radians.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from rearrange.home.robot.robot import Robot
from rearrange.home.settings.environment import SimulatorConfig

if TYPE_CHECKING:
    from rearrange.home.apartments.episodes import Episode, Pose
    from rearrange.home.apartments.layouts import Layout
    from rearrange.home.pictures.looks import Looks
    from rearrange.home.simulation.mujoco.simulator import MujocoSimulator

__all__ = ["Home", "Simulator", "SimulatorConfig"]

Point = tuple[float, float, float]

STEP_S = 1 / 30  # of every simulator
PICTURE_SIZE = (512, 512)  # width and height of a spectator's pictures, where no other is asked for (pixels)
MAX_SPEED = 200.0  # m/s or rad/s of any joint or object: where something is faster the physics has broken down
NOTHING = -1  # in an image of owners: neither an object nor a drawer or door
FIRST_JOINT = -2  # the k-th drawer or door of `home.handles` is FIRST_JOINT - k


class Home(Protocol):
    """What is known of a home that is loaded."""

    @property
    def layout(self) -> Layout: ...

    @property
    def handles(self) -> Sequence[str]:
        """Joints of its drawers and doors."""

    @property
    def things(self) -> Sequence[str]:
        """Names of furniture to be moved as a whole, as a chair, which an MJCF scene marks."""


class Simulator(Protocol):
    """One robot in one home. `reset` loads an episode, `place_robot` puts the robot into it, `step` advances 1/30 s."""

    # ------------------------------------------------------------------ episode

    config: SimulatorConfig
    robot: Robot
    home: Any
    """The `Home` that is loaded; None before the first `reset`."""
    episode: Episode
    """The one that was loaded last, as it was given."""
    start_positions: list[Point]
    """Where the middle of each object came to rest at `reset`, world frame."""

    def reset(self, episode: Episode) -> None:
        """Load the episode's home, put its objects where it says and let them rest. The robot is left outside."""

    def convert_episode(self, episode: Episode) -> Episode:
        """An episode of a file in this simulator's frame and with its names; one that was converted stays as it is."""

    def refuses_unsolvable(self, episode: Episode) -> bool:
        """Whether an episode that cannot be solved is refused. One of an external scene is tried, and failed."""

    def layout_of(self, episode: Episode) -> Layout:
        """The layout of an episode's home, which need not be loaded."""

    @property
    def settle_distance_m(self) -> float:
        """How far the object that moved most came to rest from where the episode put it, without one in the hand."""

    # ------------------------------------------------------------------ one step

    unstable: bool
    """The physics broke down in the last step: the episode has to end."""

    def step(self, arm: list[float] | None = None, grip: float | None = None, base: list[float] | None = None) -> None:
        """Advance 1/30 s. Commands lie in [-1, 1]; None leaves a part as it is and stops the base.

        Args:
            arm: Changes of the joints' targets.
            grip: At least 0: hold; below: release.
            base: Forward and left turn.
        """

    # ------------------------------------------------------------------ robot

    base_pose: Point
    """x, y (m), yaw (rad), world frame."""
    ee_position: Point
    """The end-effector, world frame."""
    ee_in_base: Point
    """The end-effector, base frame."""
    arm_force_n: float
    """Largest contact force on arm and load in the last step."""
    base_force_n: float
    """Largest contact force on the base in the last step."""
    arm_force_rise_n: float
    """By how much the force on the arm rose in the last step, if by more than 20 N: HAB's measure."""
    accumulated_arm_force_n: float
    """The sum of these rises since the robot was placed."""

    def place_robot(self, x: float, y: float, yaw: float, arm_rad: tuple[float, ...] | None = None) -> None:
        """Put the robot at a base pose (m, rad; world frame) with its arm in a posture, None for that in which episodes
        begin, at rest, without forces.
        """

    def arm_positions(self) -> np.ndarray:
        """Positions of the arm joints (rad, or m where they slide); it may be a view."""

    def arm_velocities(self) -> np.ndarray:
        """Speeds of the arm joints (rad/s, m/s); it may be a view."""

    def arm_targets(self) -> np.ndarray:
        """Where the motors of the arm joints are sent (rad, m); a view."""

    def robot_collides(self) -> bool:
        """True when any part of the robot, or what it holds, is in contact with something else."""

    def stands_free(self, x: float, y: float, yaw: float, held: int | None = None) -> bool:
        """Put the robot at a base pose with its arm in the start posture, and the object `held` into its hand; True
        when neither touches anything. Where it is False, only poses and contacts are up to date.
        """

    def blocked(self, start: Point, end: Point) -> bool:
        """True when walls, furniture, doors or drawers cross the straight line between two points (world frame)."""

    # ------------------------------------------------------------------ hold

    held: int | None
    """The object that the hand holds."""
    held_handle: str | None
    """The drawer or door by whose handle it holds."""
    hold_broken: bool
    """The hold was torn off in the last step."""
    released: bool
    """Something was let go by command in the last step."""

    @property
    def is_holding(self) -> bool:
        """True when the hand holds an object or a handle."""

    def want(self, target: int | None = None, handle: str | None = None) -> None:
        """Say which object or handle the hand takes when it touches several things; None: the first."""

    def cup_touches(self) -> bool:
        """True when the hand touches something that it could hold."""

    def touched_objects(self) -> set[int | None]:
        """The objects that the hand could hold; None among them for anything else."""

    def put_in_hand(self, i: int, pose: Pose | None = None) -> None:
        """Hold object i at a pose, world frame; None: by the middle of its top, as if picked from above."""

    # ------------------------------------------------------------------ things

    def object_position(self, i: int) -> list[float]:
        """Middle of object i, world frame (m)."""

    def object_pose(self, i: int) -> Pose:
        """Middle (m) and quaternion (w, x, y, z) of object i, world frame."""

    def object_half_extents(self, i: int) -> tuple[float, float, float]:
        """Half size (m) of the box around object i, in its own frame."""

    def thing_pose(self, name: str) -> Pose:
        """Point (m) and quaternion (w, x, y, z) of the mark on a thing of `home.things`, world frame."""

    def body_frame(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Origin (3,) (m) and rotation matrix (3, 3) of a drawer or door, world frame."""

    def handle_position(self, name: str) -> list[float]:
        """Middle of the handle of a drawer or door, world frame (m)."""

    def joint_position(self, name: str) -> float:
        """Opening of a drawer (m) or door (rad); 0 is shut."""

    def joint_velocity(self, name: str) -> float:
        """Opening speed of a drawer (m/s) or door (rad/s)."""

    def set_joint(self, name: str, value: float) -> None:
        """Open a drawer (m) or door (rad), before the robot is placed."""

    # ------------------------------------------------------------------ frames

    def to_base(self, point: Sequence[float]) -> Point:
        """A world point in the base frame."""

    def from_base(self, point: Sequence[float]) -> Point:
        """A point of the base frame in the world."""

    def to_ee(self, point: Sequence[float]) -> Point:
        """A world point in the end-effector frame."""

    # ------------------------------------------------------------------ seeing

    def depth_image(self, size: int) -> np.ndarray:
        """What the head camera sees now: (size, size, 1) float32, 0..1 over 10 m along its axis."""

    def owner_image(self, size: int) -> tuple[np.ndarray, np.ndarray]:
        """What the head camera sees now: depth, and whose each pixel is.

        Returns:
            Depth (size, size) float32, metres along its axis, inf beyond 10 m; and (size, size) int32: the index of an
            object, FIRST_JOINT - k for the k-th drawer or door, else NOTHING.
        """

    def photograph(self, camera: str, size: int, wanted: Collection[str], looks: Looks) -> dict[str, np.ndarray]:
        """What a camera of the robot sees now.

        Args:
            camera: "head" or "arm".
            size: Pixels on a side.
            wanted: Of these images: `depth` (size, size, 1) float32, 0..1 over 10 m along its axis; `rgb`
                (size, size, 3) uint8; `segmentation` (size, size, 1) uint16, see `segmentation_names`.
            looks: Colours, light and mounting of the cameras.
        """

    def segmentation_names(self) -> dict[int, str]:
        """What each number in a segmentation stands for now; see `rearrange.home.apartments.segmentation`."""

    def picture(self, eye: np.ndarray, target: np.ndarray, marks: list,
                size: tuple[int, int] = PICTURE_SIZE) -> np.ndarray:
        """What a spectator sees: (height, width, 3) uint8. Walls in the way fade from one picture to the next.

        Args:
            eye, target: Where the spectator is, and looks at (world frame, m).
            marks: What is drawn into the picture.
            size: Width and height (pixels).
        """

    def frame(self, eye: np.ndarray, target: np.ndarray, marks: list, size: tuple[int, int],
              hand_size: int) -> Callable[[], tuple[np.ndarray, np.ndarray | None]]:
        """`picture`, and what the camera at the wrist sees, of now; drawn when the result is called, in any thread.

        The second is (hand_size, hand_size, 3) uint8, or None where it cannot be drawn.
        """

    def head_picture(self, size: int) -> np.ndarray | None:
        """What the head camera sees in colour, drawn for a spectator: (size, size, 3) uint8; None where it cannot be
        drawn.
        """

    # ------------------------------------------------------------------ trying out

    def shadow(self) -> Simulator:
        """A simulator in which poses are tried out that this one must not take; always the same one."""

    def copy_state(self, other: Simulator) -> None:
        """Put everything where it is in another simulator that has loaded the same home and objects."""

    @property
    def twin(self) -> MujocoSimulator:
        """MuJoCo's simulator of the same home with everything where it is here, for what has to know the geometry, as
        scripted experts; not to be stepped. Raises UserError where there is none.
        """
