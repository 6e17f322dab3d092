"""The Gymnasium environment of a whole scenario: several objects, every skill's actions at once, minutes instead of
seconds.

The plan executor (`planner.execute`) runs skills in it, and one policy for the whole task can be trained in it. Time
and the lag of the image are as in `rearrange.env`.

Observation: see `OBSERVATION_KEYS`; `all_obj_start` and `all_obj_goal` are the coordinates of every object to be moved,
in the end-effector frame, one after another. Action: arm joint deltas, grip, base, stop (11). Reward: HAB's for
rearrangement, see `REWARD_SCALES`.
Success: when stop is called the goal of the problem holds, which is that every object is at its goal unless a scenario of
one's own says otherwise, and the hand is empty, unless the goal holds something. Stop ends the episode.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np

from planner.pddl import Atom
from planner.predicates import AT_M, at, holds
from planner.scenario import goal_of
from planner.scenarios import ScenarioConfig
from planner.stages import latch, stage_names, stages_now
from rearrange.env import (
    ACTION_SIZES, FAR_M, OBSERVATIONS, OF_IMAGES, Observation, action_slices, asked_episode, check_depth_size, success_info,
    vector, within,
)
from rearrange.apartments.episodes import Episode, read_episodes
from rearrange.errors import UserError
from rearrange.episode_making.scenario_episodes import scenario_episode
from rearrange.episode_making.scene_check import check_episode, random_start
from rearrange.simulator import SimulatorConfig
from rearrange.simulators import SIMULATORS, make_simulator, scene_data

if TYPE_CHECKING:
    from skills.skill import Skill

__all__ = ["OBSERVATION_KEYS", "REWARD_SCALES", "ScenarioEnv"]

OBSERVATION_KEYS = ("depth", "all_obj_start", "all_obj_goal", "joint", "ee_pos", "is_holding",
                    "relative_resting_position", "gps", "compass")
REWARD_SCALES = {
    "distance": 1.0,  # per metre nearer: hand to the next object, or object in the hand to its goal
    "picked": 1.0,  # once for every object
    "placed": 1.0,  # once for every object
    "hold_broken": -10.0,
    "success": 100.0,
    "slack": -0.01,  # every step
}
ENDS = ("bad_stop", "time_limit", "unstable")  # how an episode can end without success
AT_ALSO_M = 0.15  # reported beside HAB's 0.30 m
DISTURBED_M = 0.05  # an object that the task does not move has been moved if it is farther from its start


class ScenarioEnv(gymnasium.Env):
    """One scenario in the homes of a split.

    config: the scenario. split, num_layouts: the homes. depth_size: pixels of the square depth image, 0 for none.
    episodes: an episode file instead of generated episodes. The rest as in RearrangeEnv.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 30}
    observation_space: gymnasium.spaces.Dict
    action_space: gymnasium.spaces.Box
    maps_floor = False  # whether images are kept in mind for a skill that sees a map of the floor

    def __init__(self, config: ScenarioConfig, split: str = "val", depth_size: int = 128, image_lag: bool = True,
                 base_speed_m_s: float = 1.0, base_turn_rad_s: float = 1.5, suction_max_angle_rad: float | None = None,
                 num_layouts: int = 96, episodes: str | Path | None = None, render_mode: str | None = None,
                 reward_scales: Mapping[str, float] = REWARD_SCALES, sim: str = SIMULATORS[0], scene_dataset: str | None = None,
                 robot: str | None = None, gpu_device: int | None = None) -> None:
        check_depth_size(depth_size)
        self.config, self.split, self.num_layouts = config, split, num_layouts
        limits = SimulatorConfig(base_speed_m_s=base_speed_m_s, base_turn_rad_s=base_turn_rad_s,
                                 suction_max_angle_rad=suction_max_angle_rad)
        self._listed = None if episodes is None else read_episodes(episodes)
        if self._listed == []:
            raise UserError(f"the episode file {episodes} has no episodes.")
        data = scene_data(scene_dataset, robot, gpu_device, render_mode is not None, split, num_layouts, self._listed)
        self.sim = make_simulator(sim, limits, data)
        self.episode: Episode | None = None
        self.depth_size = depth_size
        self.render_mode = render_mode
        self.max_steps = config.max_steps
        self._image_lag = image_lag
        self._scales = dict(reward_scales)
        self._view: tuple[np.ndarray, np.ndarray] | None = None
        self._slices = action_slices(tuple(ACTION_SIZES))
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (sum(ACTION_SIZES.values()),), np.float32)
        self.observation_space = gymnasium.spaces.Dict(self._boxes(len(config.scenario.objects)))

    @property
    def listed(self) -> int:
        """How many episodes the episode file has; 0 without one."""
        return len(self._listed or ())

    @property
    def action_parts(self) -> list[tuple[str, slice]]:
        """Name and place of each part of an action."""
        return list(self._slices.items())

    def _boxes(self, count: int) -> dict[str, gymnasium.Space]:
        boxes: dict[str, gymnasium.Space] = {key: OBSERVATIONS[key][0] for key in OBSERVATION_KEYS if key in OBSERVATIONS}
        many = vector(3 * count, -FAR_M, FAR_M)
        boxes |= {"all_obj_start": many, "all_obj_goal": many}
        if self.depth_size:
            boxes["depth"] = gymnasium.spaces.Box(0.0, 1.0, (self.depth_size, self.depth_size, 1), np.float32)
        return {key: boxes[key] for key in OBSERVATION_KEYS if key in boxes}

    # ------------------------------------------------------------------ reset

    def reset(self, *, seed: int | None = None,
              options: dict[str, Any] | None = None) -> tuple[Observation, dict[str, Any]]:
        """Start an episode: a random one, or options["episode"], a number or an Episode. An episode that cannot be
        solved in its scene raises UserError.
        """
        super().reset(seed=seed)
        asked = asked_episode(options)
        self.episode = self._episode(asked)
        if len(self.episode.targets) != len(self.config.scenario.objects):
            raise UserError(f"episode {self.episode.id!r} moves {len(self.episode.targets)} objects; scenario "
                            f"{self.config.name} moves {len(self.config.scenario.objects)}.")
        sim = self.sim
        sim.reset(self.episode)
        sim.place_robot(*self.episode.robot_start)
        self.steps = 0
        self._stood = [tuple(sim.object_position(index)) for index in range(len(self.episode.objects))]
        self._targets = list(self.episode.targets.items())
        self.symbols, self._goal = goal_of(self.episode, sim.home.layout, self.config.problem)
        # Of each object that the goal is about, in order: its place among the targets, and what is wanted of it.
        wanted = {name: [atom for atom in self._goal if name in atom and atom[0] != "robot_at"] for name in self.symbols.objects}
        self._wanted = [(k, atoms) for k, atoms in enumerate(wanted.values()) if atoms]
        self._once: set[Atom] = set()
        self._goal_now()
        self.stages = [False] * (2 * len(self._wanted))
        self._picked: set[int] = set()
        self._placed: set[int] = set()
        self._sums = dict.fromkeys(self._scales, 0.0)
        self._view = None
        self._distance_m = self._distance()
        self.image = self.take_image()
        return self.observe(), {"episode_id": self.episode.id, "scene": self.episode.scene}

    def _episode(self, asked: int | Episode | None) -> Episode:
        """The episode asked for, with a start for the robot; one that is given is checked, generated ones have been."""
        if isinstance(asked, Episode) or self._listed is not None:
            index = asked if isinstance(asked, (int, np.integer)) else int(self.np_random.integers(2**31))
            episode = asked if isinstance(asked, Episode) else self._listed[int(index) % len(self._listed)]
            episode = self.sim.in_own_terms(episode)
            check_episode(self.sim, episode)
            if episode.robot_start is None:
                rng = np.random.default_rng(zlib.crc32(episode.id.encode()))
                self.sim.reset(episode)
                episode = replace(episode, robot_start=random_start(self.sim, episode, rng))
            return episode
        index = int(self.np_random.integers(2**31)) if asked is None else int(asked)
        return scenario_episode(self.config.scenario, self.split, index, self.num_layouts)

    # ------------------------------------------------------------------ step

    def step(self, action: np.ndarray) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        values = np.asarray(action, float).tolist()
        if len(values) != self.action_space.shape[0] or not all(map(math.isfinite, values)):
            raise ValueError(f"an action of a scenario has {self.action_space.shape[0]} finite numbers, not {values}.")
        values = np.clip(values, -1.0, 1.0).tolist()
        parts = {name: values[part] for name, part in self._slices.items()}
        command = parts["arm"], parts["grip"][0], parts["base"], parts["stop"][0] > 0.0
        reward, terminated, truncated, info = self.advance(*command)
        return self.observe(), reward, terminated, truncated, info

    def advance(self, arm: list[float] | None = None, grip: float | None = None, base: list[float] | None = None,
                stop: bool = False) -> tuple[float, bool, bool, dict[str, Any]]:
        """One step with commands of parts, each of which may be left out; the image is kept in `image`."""
        sim = self.sim
        if self._image_lag:
            self.image = self.take_image()
        sim.step(arm, grip, base)
        if not self._image_lag:
            self.image = self.take_image()
        self.steps += 1
        if sim.unstable:
            return 0.0, False, True, success_info(False) | {"metrics": self._metrics(False, "unstable")}
        at_goal = [self.at_goal(k) for k in range(len(self._targets))]
        held = next((k for k, (index, _) in enumerate(self._targets) if sim.held == index), None)
        true = self._goal_now()
        done = [all(atom in true for atom in atoms) for _, atoms in self._wanted]
        order = next((i for i, (k, _) in enumerate(self._wanted) if k == held), None)
        self.stages = latch(self.stages, stages_now(done, order, not sim.is_holding))
        keeps = any(atom[0] == "holding" for atom in self._goal)
        success = stop and len(true) == len(set(self._goal)) and (keeps or not sim.is_holding)
        reward = self._reward(at_goal, held, success)
        truncated = not stop and self.steps >= self.max_steps
        info = success_info(success)
        if stop or truncated:
            info["metrics"] = self._metrics(success, None if success else "time_limit" if truncated else "bad_stop")
        return reward, stop, truncated, info

    def at_goal(self, k: int, within_m: float = AT_M) -> bool:
        """Object k of those to be moved lies within `within_m` of its goal and is not in the hand."""
        index, goal = self._targets[k]
        return self.sim.held != index and math.dist(self.sim.object_position(index), goal[:3]) < within_m

    def _goal_now(self) -> set[Atom]:
        """What of the goal holds now; remembered."""
        true = {atom for atom in self._goal if holds(self.sim, self.symbols, atom)}
        self._once |= true
        return true

    @property
    def never_held(self) -> tuple[Atom, ...]:
        """What of the goal has not held at any step of the episode."""
        return tuple(atom for atom in self._goal if atom not in self._once)

    def _distance(self) -> float:
        """From the object in the hand to its goal, else from the hand to the first one that is not at its goal (m)."""
        sim = self.sim
        for index, goal in self._targets:
            if sim.held == index:
                return math.dist(sim.object_position(index), goal[:3])
        first = next((index for k, (index, _) in enumerate(self._targets) if not self.at_goal(k)), None)
        return 0.0 if first is None else math.dist(sim.ee_position, sim.object_position(first))

    def _reward(self, at_goal: list[bool], held: int | None, success: bool) -> float:
        picked_now = held is not None and held not in self._picked
        placed_now = {k for k, here in enumerate(at_goal) if here and k in self._picked} - self._placed
        distance = self._distance()
        # Where the distance changes its meaning no progress is counted.
        changed = picked_now or bool(placed_now) or self.sim.released or self.sim.hold_broken
        terms = {
            "distance": 0.0 if changed else self._distance_m - distance,
            "picked": float(picked_now),
            "placed": float(len(placed_now)),
            "hold_broken": float(self.sim.hold_broken),
            "success": float(success),
            "slack": 1.0,
        }
        self._distance_m = distance
        self._picked |= {held} if picked_now else set()
        self._placed |= placed_now
        for name, term in terms.items():
            self._sums[name] += self._scales[name] * term
        return sum(self._scales[name] * term for name, term in terms.items())

    def _metrics(self, success: bool, failure: str | None) -> dict[str, float]:
        count = len(self._targets)
        strict = all(at(self.sim, self.symbols, atom[1], atom[2], AT_ALSO_M) for atom in self._goal if atom[0] == "at")
        return {
            "success": float(success),
            "success_15cm": float(success and strict),
            "episode_steps": float(self.steps),
            "objects_at_goal": float(sum(self.at_goal(k) for k in range(count))),
            "disturbed_objects": float(self._disturbed()),
            **{name: float(value) for name, value in zip(stage_names(len(self._wanted)), self.stages)},
            **{f"failure/{name}": float(name == failure) for name in ENDS},
            **{f"reward/{name}": value for name, value in self._sums.items()},
            "arm_force_n": self.sim.accumulated_arm_force_n,
        }

    def _disturbed(self) -> int:
        """How many of the objects that the task does not move are elsewhere than at the beginning."""
        others = [index for index in range(len(self._stood)) if index not in self.episode.targets]
        return sum(math.dist(self.sim.object_position(index), self._stood[index]) > DISTURBED_M for index in others)

    def end_now(self) -> dict[str, float]:
        """The metrics of an episode that is given up here."""
        return self._metrics(False, None)

    # ------------------------------------------------------------------ observation

    def observe(self) -> Observation:
        """What one policy for the whole task sees."""
        sim = self.sim
        several = {
            "all_obj_start": [value for index, _ in self._targets for value in sim.to_ee(sim.start_positions[index])],
            "all_obj_goal": [value for _, goal in self._targets for value in sim.to_ee(goal[:3])],
        }
        observation = {} if self.image is None else {"depth": self.image}
        for key in self.observation_space:
            if key != "depth":
                observation[key] = np.array(several[key] if key in several else OBSERVATIONS[key][1](self.sim, None), np.float32)
        return within(self.observation_space, observation) if sim.unstable else observation

    def observe_skill(self, skill: Skill, image: np.ndarray | None) -> Observation:
        """What a skill sees, about its own object or handle."""
        observation = {} if image is None or "depth" not in skill.observation_keys else {"depth": image}
        for key in skill.observation_keys:
            if key != "depth" and (image is not None or key not in OF_IMAGES):
                observation[key] = np.array(OBSERVATIONS[key][1](self.sim, skill), np.float32)
        return observation

    def take_image(self, size: int | None = None) -> np.ndarray | None:
        """Depth now, (size, size, 1), 0..1 over 10 m; None for size 0. Default: the size of the environment."""
        size = self.depth_size if size is None else size
        image = self.sim.depth_image(size) if size else None
        if image is not None and self.maps_floor:
            self.sim.remember(image)
        return image

    def follow(self) -> None:
        """Let the spectator's camera follow the robot for one step; `render` does it too."""
        from rearrange.pictures.picture import follow_camera

        self._view = follow_camera(self.sim.base_pose, self._view)

    def render(self, marks: list[Any] | None = None) -> np.ndarray | None:
        """The scene from behind the robot's left shoulder, (512, 512, 3) uint8, with what a spectator shall see."""
        if self.render_mode is None or self.episode is None:
            return None
        self.follow()
        eye, target = self._view
        return self.sim.picture(eye, target, marks or [])
