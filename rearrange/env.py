"""The Gymnasium environment: a home, a robot and one skill.

Time: the policy acts at 30 Hz. The image in an observation was taken before the physics of the step that led to it,
while everything else is measured after it, as on a system whose rendering overlaps physics; `image_lag=False` takes it
after. The observation of a reset is not delayed.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np

from rearrange.episode_making.generator import generate_episode
from rearrange.apartments.episodes import Episode, NoStartPose, read_episodes
from rearrange.errors import UserError
from rearrange.robot.fetch import ARM_LIMITS_RAD, REST_POSITION_M
from rearrange.mapping.floor_map import MAP_SIZE, SHOWN_CELL_M
from rearrange.geometry import wrap_angle
from rearrange.apartments.layouts import SPLIT_FAMILIES
from rearrange.simulator import MAX_SPEED, Point, Simulator, SimulatorConfig
from rearrange.episode_making.scene_check import check_joints
from rearrange.simulators import SIMULATORS, make_simulator, scene_data

if TYPE_CHECKING:
    from skills.skill import Skill

__all__ = ["ACTION_SIZES", "ENV_FAILURES", "FAR_M", "OBSERVATIONS", "Observation", "RearrangeEnv"]

Observation = dict[str, np.ndarray]
ACTION_SIZES = {"arm": 7, "grip": 1, "base": 2, "stop": 1}  # parts of an action, always in this order

ENV_FAILURES = ("time_limit", "unstable")  # ends of an episode beside the skill's own; both truncate
_MAX_SKIPPED = 50  # episodes tried at one reset
_MAX_SETTLE_M = 0.03  # an episode whose objects move farther while they come to rest is skipped


class RearrangeEnv(gymnasium.Env):
    """One skill in the homes of one split.

    split: train, val or test. num_layouts: homes to draw from; the number of episodes has no limit.
    depth_size: pixels of the square depth image, 0 for none. sim: the simulator, "mujoco" or "habitat"; of the latter
    scene_dataset, robot and gpu_device (`rearrange.habitat.data`).
    image_lag: see the top of this file. base_speed_m_s, base_turn_rad_s: of the base at full command (Habitat's: 2.5,
    2.5). suction_max_angle_rad: largest angle between cup and surface, None for any touch. episodes: an episode file
    instead of generated episodes; episodes_share: of the episodes that are drawn at random, the others are generated.
    render_mode: "rgb_array" or None. expert_action: observations also say what an expert would
    do, for learning from it: an action, and the weight of this advice (0: none).
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 30}
    observation_space: gymnasium.spaces.Dict
    action_space: gymnasium.spaces.Box

    def __init__(self, skill: Skill, split: str = "train", depth_size: int = 128, sim: str = "mujoco",
                 image_lag: bool = True, base_speed_m_s: float = 1.0, base_turn_rad_s: float = 1.5,
                 suction_max_angle_rad: float | None = None, num_layouts: int = 96, episodes: str | Path | None = None,
                 render_mode: str | None = None, scene_dataset: str | None = None, robot: str | None = None,
                 gpu_device: int | None = None, expert_action: bool = False, episodes_share: float = 1.0) -> None:
        _check(split, depth_size, sim, num_layouts, render_mode, skill)
        self.skill = skill
        self.split, self.num_layouts = split, num_layouts
        self.render_mode = render_mode
        self.metadata = self.metadata | {"render_fps": self.metadata["render_fps"] / skill.action_repeat}  # one picture per action
        self.during_action: Callable[[], None] | None = None  # called after each 1/30 s of an action but its last
        limits = SimulatorConfig(base_speed_m_s=base_speed_m_s, base_turn_rad_s=base_turn_rad_s,
                                 suction_max_angle_rad=suction_max_angle_rad)
        self._episodes_share = episodes_share
        self._listed = None if episodes is None else _not_empty(episodes, read_episodes(episodes))
        data = scene_data(scene_dataset, robot, gpu_device, render_mode is not None, split, num_layouts, self._listed)
        self.sim = make_simulator(sim, limits, data)
        self.episode: Episode | None = None
        self._image_lag = image_lag
        self._depth_size = depth_size if takes_images(skill.observation_keys) else 0
        self._maps_floor = any(key in OF_MAP for key in skill.observation_keys)
        self._view: tuple[np.ndarray, np.ndarray] | None = None
        self._slices = action_slices(skill.action_parts)
        width = sum(ACTION_SIZES[name] for name in self._slices)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (width,), np.float32)
        there = [key for key in skill.observation_keys if self._depth_size or key not in OF_IMAGES]
        self._readers = [(key, OBSERVATIONS[key][1]) for key in there if key != "depth"]
        boxes: dict[str, gymnasium.Space] = {key: OBSERVATIONS[key][0] for key in there if key != "depth"}
        if "depth" in there:
            boxes = {"depth": gymnasium.spaces.Box(0.0, 1.0, (depth_size, depth_size, 1), np.float32), **boxes}
        self._adviser: Any = None
        self._make_adviser = _adviser_of(skill) if expert_action else None
        if expert_action:
            boxes["expert_action"] = gymnasium.spaces.Box(-1.0, 1.0, (width + 1,), np.float32)
        self.observation_space = gymnasium.spaces.Dict(boxes)

    @property
    def listed(self) -> int:
        """How many episodes the episode file has; 0 without one."""
        return len(self._listed or ())

    @property
    def action_parts(self) -> list[tuple[str, slice]]:
        """Name and place of each part of an action."""
        return list(self._slices.items())

    # ------------------------------------------------------------------ reset

    def reset(self, *, seed: int | None = None,
              options: dict[str, Any] | None = None) -> tuple[Observation, dict[str, Any]]:
        """Start an episode: a random one, or options["episode"], a number or an Episode.

        A number always gives the same episode with the same start of the robot, unless a seed is given beside it.
        """
        super().reset(seed=seed)
        asked = asked_episode(options)
        skipped = self._start_episode(asked, fixed_rng=asked is not None and seed is None)
        self.steps = 0
        self._view = None
        self._sums = dict.fromkeys(self.skill.reward_scales, 0.0)
        self._skipped = skipped
        self._adviser = self._make_adviser and self._make_adviser(self.sim, self.skill)
        info = {"episode_id": self.episode.id, "scene": self.episode.scene, "skipped_episodes": skipped}
        return self._observe(self._take_image()), info

    def _start_episode(self, asked: int | Episode | None, fixed_rng: bool) -> int:
        """Load the asked or a random episode, or the next ones where the robot finds no place; return how many were
        skipped.
        """
        reason = "its objects do not rest where it puts them"
        listed = asked is not None or self._episodes_share >= 1.0 or self.np_random.random() < self._episodes_share
        index = asked if isinstance(asked, (int, np.integer)) else int(self.np_random.integers(2**31))
        for skipped in range(1 if isinstance(asked, Episode) else _MAX_SKIPPED):
            self.episode = self.sim.in_own_terms(asked) if isinstance(asked, Episode) else self._episode(int(index) + skipped, listed)
            layout = self.sim.layout_of(self.episode)
            check_joints(layout, self.episode)
            rng = np.random.default_rng(zlib.crc32(self.episode.id.encode())) if fixed_rng else self.np_random
            self.sim.reset(self.episode)
            if layout.is_ours and self.sim.settle_distance_m > _MAX_SETTLE_M:  # those of others count as they are
                continue
            try:
                if self.episode.handoff is None:
                    self.skill.start(self.sim, self.episode, rng)
                else:
                    self.skill.start_at_handoff(self.sim, self.episode)
            except NoStartPose as error:
                reason = str(error)
                continue
            return skipped
        raise UserError(f"episode {self.episode.id!r} cannot be started: {reason}.")

    def _episode(self, index: int, listed: bool) -> Episode:
        if self._listed is not None and listed:
            return self.sim.in_own_terms(self._listed[index % len(self._listed)])
        return generate_episode(self.skill.episode_kind, self.split, index, self.num_layouts)

    # ------------------------------------------------------------------ step

    def step(self, action: np.ndarray) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        command = self._command(action)
        total = 0.0
        for left in range(self.skill.action_repeat - 1, -1, -1):  # steps of this action that come after this one
            image = self._take_image() if self._image_lag and not left else None
            self._move(command)
            reward, terminated, truncated, info = self._judge()
            total += reward
            if terminated or truncated:
                break
            if left and self.during_action:
                self.during_action()
        image = self._take_image() if image is None else image
        return self._observe(image), total, terminated, truncated, info

    def _move(self, command: dict[str, list[float]]) -> None:
        """1/30 s of physics."""
        sim, grip = self.sim, command.get("grip")
        sim.step(command.get("arm"), None if grip is None else self.skill.grip_command(sim, grip[0]), command.get("base"))
        if "stop" in command:
            self.skill.stop_called = command["stop"][0] > 0.0
        self.steps += 1

    def _judge(self) -> tuple[float, bool, bool, dict[str, Any]]:
        """Reward, terminated, truncated and info of the step that was made."""
        skill, sim = self.skill, self.sim
        if sim.unstable:  # nothing that is measured now means anything
            return 0.0, False, True, success_info(False) | {"metrics": self._metrics(False, "unstable")}
        failure = skill.failure(sim)
        success = failure is None and skill.success(sim)
        reward = self._reward()
        terminated = success or failure is not None
        truncated = not terminated and self.steps >= skill.max_steps
        info = success_info(success)
        if terminated or truncated:
            info["metrics"] = self._metrics(success, "time_limit" if truncated else failure)
        return reward, terminated, truncated, info

    def _command(self, action: np.ndarray) -> dict[str, list[float]]:
        """The parts of an action, limited to [-1, 1]."""
        if self.episode is None:
            raise RuntimeError("step before reset: an episode has to be started first.")
        given = np.asarray(action)
        if given.shape != self.action_space.shape or given.dtype.kind not in "fiub":
            size, what = self.action_space.shape[0], f"shape {given.shape}" if given.dtype.kind in "fiub" else repr(action)
            raise ValueError(f"an action of skill {self.skill.name} has {size} numbers, shape ({size},), not {what}.")
        values = given.tolist()
        if not all(map(math.isfinite, values)):  # their sum may be infinite though they are not
            raise ValueError(f"the action contains a number that is not finite: {values}.")
        values = [-1.0 if v < -1.0 else 1.0 if v > 1.0 else v for v in values]
        return {name: values[part] for name, part in self._slices.items()}

    def _reward(self) -> float:
        """Sum of the scaled terms, which are also added up by name for the log."""
        total, sums, scales = 0.0, self._sums, self.skill.reward_scales
        for name, term in self.skill.reward_terms(self.sim).items():
            if term:
                scaled = scales[name] * term
                sums[name] += scaled
                total += scaled
        return total

    def _metrics(self, success: bool, failure: str | None) -> dict[str, float]:
        """What is logged about a finished episode."""
        return {
            "success": float(success),
            "episode_steps": float(self.steps),
            **{f"failure/{name}": float(name == failure) for name in (*self.skill.failures, *ENV_FAILURES)},
            **{f"reward/{name}": value for name, value in self._sums.items()},
            **self.skill.measures(),
            "arm_force_n": self.sim.accumulated_arm_force_n,
            "skipped_episodes": float(self._skipped),
        }

    # ------------------------------------------------------------------ observation

    def _observe(self, image: np.ndarray | None) -> Observation:
        observation = {} if image is None or "depth" not in self.observation_space.spaces else {"depth": image}
        for key, read in self._readers:
            observation[key] = np.array(read(self.sim, self.skill), np.float32)
        if self._adviser:
            observation["expert_action"] = self._adviser.advice()
        return within(self.observation_space, observation) if self.sim.unstable else observation

    def _take_image(self) -> np.ndarray | None:
        """Depth now, (size, size, 1), 0..1 over 10 m; None when the skill or the settings leave it out."""
        if not self._depth_size:
            return None
        image = self.sim.depth_image(self._depth_size)
        if self._maps_floor:
            self.sim.remember(image)
        return image

    # ------------------------------------------------------------------ picture

    def render(self) -> np.ndarray | None:
        """The scene from behind the robot's left shoulder, (512, 512, 3) uint8, with the marks of the skill."""
        if self.render_mode is None or self.episode is None:
            return None
        from rearrange.pictures.picture import follow_camera

        self._view = follow_camera(self.sim.base_pose, self._view)
        return self.sim.picture(*self._view, self.skill.marks(self.sim))

    def status_lines(self) -> list[str]:
        """What a spectator wants to read beside the picture."""
        return self.skill.status_lines(self.sim)


def _polar(sim: Simulator, point: Point) -> tuple[float, float]:
    """Distance (m) and angle (rad, positive to the right, as Habitat's) of a world point in the base frame."""
    x, y, _ = sim.to_base(point)
    return math.hypot(x, y), -math.atan2(y, x)


def _start(sim: Simulator, skill: Skill) -> Point:
    return skill.arguments.position


def _goal(sim: Simulator, skill: Skill) -> Point:
    return skill.arguments.goal[:3]


def _to_rest(sim: Simulator, skill: Skill) -> tuple[float, float, float]:
    (x, y, z), rest = sim.ee_in_base, REST_POSITION_M if skill is None else skill.rest_position_m
    return rest[0] - x, rest[1] - y, rest[2] - z


def _gps(sim: Simulator, skill: Skill) -> tuple[float, float]:
    (x0, y0, yaw0), (x, y, _) = sim.start_base_pose, sim.base_pose
    cos, sin = math.cos(yaw0), math.sin(yaw0)
    return cos * (x - x0) + sin * (y - y0), cos * (y - y0) - sin * (x - x0)


def _compass(sim: Simulator, skill: Skill) -> tuple[float]:
    return (wrap_angle(sim.base_pose[2] - sim.start_base_pose[2]),)


def _marker_state(sim: Simulator, skill: Skill) -> tuple[float, float]:
    handle = skill.target_handle
    return sim.joint_position(handle), sim.joint_velocity(handle)


def _floor_map(sim: Simulator, skill: Skill) -> np.ndarray:
    return sim.floor_map.around(sim.base_pose, skill.nav_point[:2])


def _route(sim: Simulator, skill: Skill) -> np.ndarray:
    in_fridge = skill.next_skill in ("open_fridge", "close_fridge", "pick_inside", "place_inside")  # at least it may be
    x, y, _ = skill.nav_point
    return sim.floor_map.route(sim.base_pose, (x, y), in_fridge)


def success_info(success: bool) -> dict[str, Any]:
    """What `step` says about success, under the name that Stable-Baselines3 looks for, too."""
    return {"success": success, "is_success": success}


def within(space: Mapping[str, Any], observation: Observation) -> Observation:
    """The observation limited to its space: physics that has broken down may be anywhere."""
    return {key: np.clip(value, space[key].low, space[key].high) for key, value in observation.items()}


def vector(size: int, low: float | Sequence[float], high: float | Sequence[float]) -> gymnasium.spaces.Box:
    """The space of a vector; bounds for each number, or one for all."""
    return gymnasium.spaces.Box(np.full(size, low, np.float32), np.full(size, high, np.float32), (size,), np.float32)


FAR_M = 50.0
"""No home is larger: the bound of every place and distance in an observation."""
_GIVE_RAD = 0.3  # by how much a joint may be pushed beyond its limit
_JOINTS = vector(7, [low - _GIVE_RAD for low, _ in ARM_LIMITS_RAD], [high + _GIVE_RAD for _, high in ARM_LIMITS_RAD])
_POLAR = vector(2, (0.0, -math.pi), (FAR_M, math.pi))
PLACE = vector(3, -FAR_M, FAR_M)


# Every observation but the image: space, how to read it, and what it is. Metres and radians. The bounds are what the home, the
# arm and the physics allow, not what is usual.
OBSERVATIONS: dict[str, tuple[gymnasium.spaces.Box, Callable[[Simulator, Skill], Any], str]] = {
    "joint": (_JOINTS, lambda sim, skill: sim.arm_positions(), "arm joint angles (rad)"),
    "joint_vel": (vector(7, -MAX_SPEED, MAX_SPEED), lambda sim, skill: sim.arm_velocities(), "arm joint speeds (rad/s)"),
    "ee_pos": (vector(3, (-1.5, -1.5, -0.5), (1.5, 1.5, 2.5)), lambda sim, skill: sim.ee_in_base, "end-effector, base frame (m)"),
    "is_holding": (
        vector(1, 0.0, 1.0), lambda sim, skill: (float(sim.is_holding),), "1 while the suction holds something"),
    "relative_resting_position": (
        vector(3, -4.0, 4.0), _to_rest, "from the end-effector to its resting place, base frame (m)"),
    "obj_start": (
        PLACE, lambda sim, skill: sim.to_ee(_start(sim, skill)), "where the object stood at the start, end-effector frame (m)"),
    "obj_goal": (
        PLACE, lambda sim, skill: sim.to_ee(_goal(sim, skill)), "where the object belongs, end-effector frame (m)"),
    "obj_start_gps_compass": (
        _POLAR, lambda sim, skill: _polar(sim, _start(sim, skill)),
        "where the object stood at the start: distance (m) and angle (rad, positive to the right) from the base"),
    "obj_goal_gps_compass": (
        _POLAR, lambda sim, skill: _polar(sim, _goal(sim, skill)),
        "where the object belongs: distance (m) and angle (rad, positive to the right) from the base"),
    "object_to_agent_gps_compass": (
        _POLAR, lambda sim, skill: _polar(sim, skill.nav_point),
        "what to drive to, the object, its goal or a handle: distance (m) and angle (rad, positive to the right) "
        "from the base"),
    "nav_to_skill": (
        vector(8, 0.0, 1.0), lambda sim, skill: skill.next_one_hot(), "the skill that comes next, one-hot"),
    "gps": (vector(2, -FAR_M, FAR_M), _gps, "place of the base relative to its start, start frame (m)"),
    "compass": (vector(1, -math.pi, math.pi), _compass, "heading of the base relative to its start (rad)"),
    "floor_map": (
        gymnasium.spaces.Box(0.0, 1.0, (MAP_SIZE, MAP_SIZE, 2), np.float32), _floor_map,
        f"what the depth images have shown of the floor around the base, ahead on top, in cells of {SHOWN_CELL_M} m: 0 nothing, "
        "0.5 free, 1 occupied; and where what to drive to is"),
    "route": (
        vector(5, (0.0, *(-FAR_M,) * 4), (4 * FAR_M, *(FAR_M,) * 4)), _route,
        "the shortest way to what to drive to through that map, what is unknown counting as free: its length (m), and the points "
        "0.5 m and 1.5 m along it, ahead and left of the base (m)"),
    "marker_rel_pos": (
        PLACE, lambda sim, skill: sim.to_ee(sim.handle_position(skill.target_handle)),
        "handle of the drawer or door, end-effector frame (m)"),
    "marker_state": (
        vector(2, (-math.pi, -MAX_SPEED), (math.pi, MAX_SPEED)), _marker_state, "opening of the drawer or door and its speed (m and m/s, or rad and rad/s)"),
}


OF_MAP = ("floor_map", "route")
"""Observations of what depth images have shown since the start."""
OF_IMAGES = ("depth", *OF_MAP)
"""Observations that there are not where no depth image is taken."""

# Of those, what only a skill about an object sees, and what only one about the handle of a drawer or door does.
_OF = {**dict.fromkeys(("obj_start", "obj_goal", "obj_start_gps_compass", "obj_goal_gps_compass", "object_to_agent_gps_compass",
                        *OF_MAP),
                       "object"), **dict.fromkeys(("marker_rel_pos", "marker_state"), "handle")}


def takes_images(observation_keys: Sequence[str]) -> bool:
    """Whether a skill with these observations needs the depth image."""
    return any(key in OF_IMAGES for key in observation_keys)


def action_slices(parts: Sequence[str]) -> dict[str, slice]:
    """Where each part stands in the action of a skill that commands these parts."""
    unknown = [part for part in parts if part not in ACTION_SIZES]
    if unknown or not parts:
        raise UserError(f"action_parts={list(parts)} should be some of {', '.join(ACTION_SIZES)}.")
    slices, start = {}, 0
    for name, size in ACTION_SIZES.items():
        if name in parts:
            slices[name] = slice(start, start + size)
            start += size
    return slices


def _not_empty(path: str | Path, episodes: list[Episode]) -> list[Episode]:
    if not episodes:
        raise UserError(f"the episode file {path} has no episodes.")
    return episodes


def asked_episode(options: dict[str, Any] | None) -> int | Episode | None:
    """The episode that `reset` is asked for; None for a random one. UserError for other options."""
    if options is None:
        return None
    asked: Any = options.get("episode") if isinstance(options, dict) and not set(options) - {"episode"} else "other"
    number = isinstance(asked, (int, np.integer)) and not isinstance(asked, bool) and asked >= 0
    if asked is None or number or isinstance(asked, Episode):
        return asked
    raise UserError(f"reset takes options={{'episode': ...}} with a number from 0 on or an Episode, not {options!r}.")


def _check(split: str, depth_size: int, sim: str, num_layouts: int, render_mode: str | None,
           skill: Skill) -> None:
    """Raise UserError for the first setting that cannot be."""
    if split not in SPLIT_FAMILIES:
        raise UserError(f"split={split} is not one of {', '.join(SPLIT_FAMILIES)}.")
    if sim not in SIMULATORS:
        raise UserError(f"sim={sim} is not one of: {', '.join(SIMULATORS)}.")
    check_depth_size(depth_size)
    if num_layouts < 1:
        raise UserError(f"num_layouts={num_layouts} should be at least 1.")
    if render_mode not in (None, "rgb_array"):
        raise UserError(f"render_mode={render_mode} should be rgb_array or None.")
    keys, there = skill.observation_keys, ("depth", *(key for key in OBSERVATIONS if _OF.get(key, skill.about) == skill.about))
    if not keys:
        raise UserError(f"observation_keys=[] leaves the policy nothing to see; there are {', '.join(there)}.")
    wrong = [key for key in keys if key not in there]
    if wrong:
        of = f"skill {skill.name} has no observation" if wrong[0] in OBSERVATIONS else "there is no observation called"
        raise UserError(f"{of} {wrong[0]!r}; there are {', '.join(there)}.")


def _adviser_of(skill: Skill) -> type:
    """What makes the expert of a skill that can be asked anywhere. UserError where there is none."""
    from skills.experts import ADVISERS

    if skill.name not in ADVISERS:
        raise UserError(f"skill {skill.name} has no expert that can be asked in every state (ppo.imitation_coef, expert_action); "
                        f"there is one for {', '.join(ADVISERS)}.")
    return ADVISERS[skill.name]


def check_depth_size(pixels: int) -> None:
    """Raise UserError for an image that the camera does not take."""
    if pixels and not 2 <= pixels <= 1024:
        raise UserError(f"depth_size={pixels} (policy.image_size) should be 0 (no image) or 2 to 1024 pixels.")
