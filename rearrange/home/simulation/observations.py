"""What a policy can see: every observation by its name, its space and how it is read."""

from __future__ import annotations

import math
import string
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np

from rearrange.home.apartments.segmentation import MOST
from rearrange.home.errors import UserError
from rearrange.home.geometry import to_frame, wrap_angle
from rearrange.home.mapping.floor_map import MAP_SIZE, SHOWN_CELL_M
from rearrange.home.robot.robot import Robot
from rearrange.home.simulation.simulator_interface import MAX_SPEED, STEP_S, Point

if TYPE_CHECKING:
    from rearrange.env.home_env import HomeScene
    from skills.skill import Skill

Observation = dict[str, Any]
"""Name -> array; `instruction` is a text."""


def vector(size: int, low: float | Sequence[float], high: float | Sequence[float]) -> gymnasium.spaces.Box:
    """The space of a vector; bounds for each number, or one for all."""
    return gymnasium.spaces.Box(np.full(size, low, np.float32), np.full(size, high, np.float32), (size,), np.float32)


FAR_M = 50.0
"""No home is larger: the bound of every place and distance in an observation."""
_GIVE = 0.3  # by how much a joint may be pushed beyond its limit (rad, m)
_POLAR = vector(2, (0.0, -math.pi), (FAR_M, math.pi))
PLACE = vector(3, -FAR_M, FAR_M)


def _polar(scene: HomeScene, point: Point) -> tuple[float, float]:
    """Distance (m) and angle (rad, positive to the right, as Habitat's) of a world point in the base frame."""
    x, y, _ = scene.sim.to_base(point)
    return math.hypot(x, y), -math.atan2(y, x)


def _to_rest(scene: HomeScene, skill: Skill | None) -> tuple[float, float, float]:
    sim = scene.sim
    (x, y, z), rest = sim.ee_in_base, sim.robot.arm.rest_m if skill is None else skill.rest_m(sim)
    return rest[0] - x, rest[1] - y, rest[2] - z


def _gps(scene: HomeScene, skill: Skill | None) -> tuple[float, float]:
    (x0, y0, yaw0), (x, y, _) = scene.start_base_pose, scene.sim.base_pose
    cos, sin = math.cos(yaw0), math.sin(yaw0)
    return cos * (x - x0) + sin * (y - y0), cos * (y - y0) - sin * (x - x0)


def _compass(scene: HomeScene, skill: Skill | None) -> tuple[float]:
    return (wrap_angle(scene.sim.base_pose[2] - scene.start_base_pose[2]),)


def _base_vel(scene: HomeScene, skill: Skill | None) -> tuple[float, float, float]:
    before, (x, y, yaw) = scene.base_pose_before, scene.sim.base_pose
    ahead, left = to_frame(x, y, before)
    return ahead / STEP_S, left / STEP_S, wrap_angle(yaw - before[2]) / STEP_S


def _marker_state(scene: HomeScene, skill: Skill) -> tuple[float, float]:
    handle = skill.target_handle
    return scene.known.joint_position(handle), scene.known.joint_velocity(handle)


def _floor_map(scene: HomeScene, skill: Skill) -> np.ndarray:
    return scene.floor_map.around(scene.sim.base_pose, skill.nav_point[:2])


def _route(scene: HomeScene, skill: Skill) -> np.ndarray:
    in_fridge = skill.next_skill in ("open_fridge", "close_fridge", "pick_inside", "place_inside")  # at least it may be
    x, y, _ = skill.nav_point
    return scene.floor_map.route(scene.sim.base_pose, (x, y), in_fridge)


def _joints(robot: Robot) -> gymnasium.spaces.Box:
    return vector(len(robot.arm.joints), robot.arm.low - _GIVE, robot.arm.high + _GIVE)


def _joint_speeds(robot: Robot) -> gymnasium.spaces.Box:
    return vector(len(robot.arm.joints), -MAX_SPEED, MAX_SPEED)


Space = gymnasium.spaces.Box | Callable[[Robot], gymnasium.spaces.Box]

# Every observation but the image: space, perhaps of a robot; how to read it, and what it is. Metres and radians. The
# bounds are what the home, the arm and the physics allow, not what is usual.
OBSERVATIONS: dict[str, tuple[Space, Callable[[HomeScene, Any], Any], str]] = {
    "joint": (_joints, lambda scene, skill: scene.sim.arm_positions(), "arm joint angles (rad)"),
    "joint_vel": (
        _joint_speeds, lambda scene, skill: scene.sim.arm_velocities(), "arm joint speeds (rad/s)"),
    "ee_pos": (
        vector(3, (-1.5, -1.5, -0.5), (1.5, 1.5, 2.5)), lambda scene, skill: scene.sim.ee_in_base,
        "end-effector, base frame (m)"),
    "is_holding": (
        vector(1, 0.0, 1.0), lambda scene, skill: (float(scene.sim.is_holding),),
        "1 while the hand holds something"),
    "relative_resting_position": (
        vector(3, -4.0, 4.0), _to_rest, "from the end-effector to its resting place, base frame (m)"),
    "obj_start": (
        PLACE, lambda scene, skill: scene.sim.to_ee(skill.arguments.position),
        "where the object stood at the start, end-effector frame (m)"),
    "obj_goal": (
        PLACE, lambda scene, skill: scene.sim.to_ee(skill.arguments.goal[:3]),
        "where the object belongs, end-effector frame (m)"),
    "obj_start_gps_compass": (
        _POLAR, lambda scene, skill: _polar(scene, skill.arguments.position),
        "where the object stood at the start: distance (m) and angle (rad, positive to the right) from the base"),
    "obj_goal_gps_compass": (
        _POLAR, lambda scene, skill: _polar(scene, skill.arguments.goal[:3]),
        "where the object belongs: distance (m) and angle (rad, positive to the right) from the base"),
    "object_to_agent_gps_compass": (
        _POLAR, lambda scene, skill: _polar(scene, skill.nav_point),
        "what to drive to, the object, its goal or a handle: distance (m) and angle (rad, positive to the right) "
        "from the base"),
    "nav_to_skill": (
        vector(8, 0.0, 1.0), lambda scene, skill: skill.next_one_hot(), "the skill that comes next, one-hot"),
    "gps": (vector(2, -FAR_M, FAR_M), _gps, "place of the base relative to its start, start frame (m)"),
    "compass": (vector(1, -math.pi, math.pi), _compass, "heading of the base relative to its start (rad)"),
    "base_vel": (
        vector(3, -MAX_SPEED, MAX_SPEED), _base_vel,
        "speed of the base ahead and to the left (m/s), and turning to the left (rad/s): what odometry has measured in "
        "the last 1/30 s"),
    "floor_map": (
        gymnasium.spaces.Box(0.0, 1.0, (MAP_SIZE, MAP_SIZE, 2), np.float32), _floor_map,
        f"what the depth images have shown of the floor around the base, ahead on top, in cells of {SHOWN_CELL_M} m: "
        "0 nothing, 0.5 free, 1 occupied; and where what to drive to is"),
    "route": (
        vector(5, (0.0, *(-FAR_M,) * 4), (4 * FAR_M, *(FAR_M,) * 4)), _route,
        "the shortest way to what to drive to through that map, what is unknown counting as free: its length (m), and "
        "the points 0.5 m and 1.5 m along it, ahead and left of the base (m)"),
    "marker_rel_pos": (
        PLACE, lambda scene, skill: scene.sim.to_ee(scene.known.handle_position(skill.target_handle)),
        "handle of the drawer or door, end-effector frame (m)"),
    "marker_state": (
        vector(2, (-math.pi, -MAX_SPEED), (math.pi, MAX_SPEED)), _marker_state,
        "opening of the drawer or door and its speed (m and m/s, or rad and rad/s)"),
}


OF_MAP = ("floor_map", "route")
"""Observations of what depth images have shown since the start."""
OF_IMAGES = ("depth", *OF_MAP)
"""Observations that there are not where no depth image is taken."""

# Of those, what only a skill about an object sees, and what only one about the handle of a drawer or door does.
_OF = dict.fromkeys(("obj_start", "obj_goal", "obj_start_gps_compass", "obj_goal_gps_compass",
                     "object_to_agent_gps_compass", *OF_MAP), "object")
_OF |= dict.fromkeys(("marker_rel_pos", "marker_state"), "handle")


LONGEST_INSTRUCTION = 1000  # characters
_CHARACTERS = string.ascii_letters + string.digits + string.punctuation + " "
CAMERA_OF = {"rgb": "head", "segmentation": "head", "arm_rgb": "arm", "arm_depth": "arm"}
"""Which camera shows what of `rearrange.home.settings.environment.SEEN`; a photograph names it without the camera."""


def seen_space(names: Sequence[str] | None, size: int) -> dict[str, gymnasium.Space]:
    """The spaces of what is seen beside the observations of a task, some of SEEN; `size`: pixels of the images."""
    spaces = gymnasium.spaces
    there = {"rgb": spaces.Box(0, 255, (size, size, 3), np.uint8),
             "arm_rgb": spaces.Box(0, 255, (size, size, 3), np.uint8),
             "arm_depth": spaces.Box(0.0, 1.0, (size, size, 1), np.float32),
             "segmentation": spaces.Box(0, MOST, (size, size, 1), np.uint16),
             "instruction": spaces.Text(LONGEST_INSTRUCTION, charset=_CHARACTERS)}
    return {name: there[name] for name in names or ()}


def wording(wordings: Sequence[str], episode_id: str) -> str:
    """One of several wordings of a task, always the same for an episode."""
    return wordings[zlib.crc32(episode_id.encode()) % len(wordings)]


def takes_images(observation_keys: Sequence[str]) -> bool:
    """Whether a skill with these observations needs the depth image."""
    return any(key in OF_IMAGES for key in observation_keys)


def within(space: Mapping[str, Any], observation: Observation) -> Observation:
    """The observation limited to its space: physics that has broken down may be anywhere."""
    return {key: np.clip(value, box.low, box.high) if isinstance(box := space[key], gymnasium.spaces.Box) else value
            for key, value in observation.items()}


def shown(observation_keys: Sequence[str], images: bool) -> list[str]:
    """Those of some observations that there are with depth images, or without."""
    return [key for key in observation_keys if images or key not in OF_IMAGES]


def space_of(observation_keys: Sequence[str], depth_size: int, robot: Robot) -> dict[str, gymnasium.Space]:
    """The space of each of these observations, the image first; `depth_size`: its pixels, 0 for none."""
    boxes: dict[str, gymnasium.Space] = {}
    if depth_size and "depth" in observation_keys:
        boxes["depth"] = gymnasium.spaces.Box(0.0, 1.0, (depth_size, depth_size, 1), np.float32)
    for key in shown(observation_keys, bool(depth_size)):
        if key != "depth":
            space = OBSERVATIONS[key][0]
            boxes[key] = space(robot) if callable(space) else space
    return boxes


def check_observations(skill: Skill) -> None:
    """Raise UserError for observations that there are not, or that a skill does not have."""
    keys = skill.observation_keys
    there = ("depth", *(key for key in OBSERVATIONS if _OF.get(key, skill.about) == skill.about))
    if not keys:
        raise UserError(f"observation_keys=[] leaves the policy nothing to see; there are {', '.join(there)}.")
    wrong = [key for key in keys if key not in there]
    if wrong:
        of = f"skill {skill.name} has no observation" if wrong[0] in OBSERVATIONS else "there is no observation called"
        raise UserError(f"{of} {wrong[0]!r}; there are {', '.join(there)}.")
