"""The Gymnasium environment of a whole scenario: several objects, all parts of the action, minutes instead of seconds.

The plan executor (`planner.execute`) runs skills in it, and one policy for the whole task can be trained in it. Time
and the lag of the image are as in `rearrange.env.home_env`.

Observation: see `OBSERVATION_KEYS`; `all_obj_start` and `all_obj_goal` are the coordinates of every object to be moved,
in the end-effector frame, one after another. Action: arm joint deltas, grip, base, stop (11). Reward: HAB's for
rearrangement, see `planner.scenario_settings.WholeTaskSettings`.
Success: when stop is called the goal of the problem holds, and the hand is empty unless the goal holds something. The
goal is that every object is at its goal unless a scenario of one's own says otherwise. Stop ends the episode.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np

from planner.episode_motion import EpisodeMotion
from planner.instructions import instructions
from planner.pddl import Atom
from planner.predicates import at, holds
from planner.rules import AT_M
from planner.scenario import goal_of
from planner.scenario_settings import REWARD_SCALES, WholeTaskSettings
from planner.scenarios import ScenarioConfig, load_scenario
from planner.stages import latch, stage_names, stages_now
from rearrange.env.home_env import HomeEnv, HomeSettings
from rearrange.env.skill_env import NEXT_EPISODE, asked_episode, success_info
from rearrange.home.action_layout import ACTION_PARTS, action_size, action_slices
from rearrange.home.apartments.episodes import Episode
from rearrange.home.episodes.scene_check import check_episode, random_start
from rearrange.home.errors import UserError
from rearrange.home.settings.environment import HOME_SETTINGS, checked_settings
from rearrange.home.simulation import observations as seen
from rearrange.home.simulation.observations import OBSERVATIONS, Observation
from skills.settings import merge_scales

__all__ = ["OBSERVATION_KEYS", "ScenarioEnv", "make_env"]

OBSERVATION_KEYS = ("depth", "all_obj_start", "all_obj_goal", "joint", "ee_pos", "is_holding",
                    "relative_resting_position", "gps", "compass")
ENDS = ("bad_stop", "time_limit", "unstable")  # how an episode can end without success
AT_ALSO_M = 0.15  # reported beside HAB's 0.30 m
ON_FLOOR_M = 0.2  # an object whose middle is lower lies on the floor: no furniture of the generated homes is as low
_DRAWN = 20  # episodes that are generated, one after another, while they begin solved
DISTURBED_M = 0.05  # an object that the task does not move has been moved if it is farther from its start


class ScenarioEnv(HomeEnv):
    """One scenario in the homes of a split.

    config: the scenario. home: where it takes place, what the robot sees.
    """

    def __init__(self, config: ScenarioConfig, home: HomeSettings = HomeSettings(split="val"),
                 reward_scales: Mapping[str, float] = REWARD_SCALES) -> None:
        if home.episodes_share < 1.0:
            raise UserError(f"sim.episodes_share={home.episodes_share:g} is for training skills; a scenario takes "
                            "every episode from sim.episodes=. Leave it out.")
        super().__init__(home)
        self.config, self.max_steps = config, round(config.max_steps * self.sim.robot.time)
        self._scales = dict(reward_scales)
        self._slices = action_slices(self.sim.robot, ACTION_PARTS)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (action_size(self.sim.robot),), np.float32)
        many = seen.vector(3 * len(config.scenario.objects), -seen.FAR_M, seen.FAR_M)
        boxes: dict[str, gymnasium.Space] = {"all_obj_start": many, "all_obj_goal": many}
        others = [key for key in OBSERVATION_KEYS if key not in boxes]
        boxes |= seen.space_of(others, self.home.depth_size, self.sim.robot)
        own = {key: boxes[key] for key in OBSERVATION_KEYS if key in boxes}  # in this order, the image if there is one
        own |= seen.seen_space(self.home.observations, self.home.camera_size)
        self.observation_space = gymnasium.spaces.Dict(own)
        self._keys = [key for key in self.observation_space if key == "depth" or key in OBSERVATIONS]

    # ------------------------------------------------------------------ reset

    def reset(self, *, seed: int | None = None,
              options: dict[str, Any] | None = None) -> tuple[Observation, dict[str, Any]]:
        """Start an episode: a random one, or options["episode"], a number or an Episode.

        Raises:
            UserError: the episode cannot be solved in its scene, or nothing is left to do in it.
        """
        super().reset(seed=seed)
        asked = asked_episode(options)
        generated = not isinstance(asked, Episode) and self.scene.episodes is None
        for again in range(_DRAWN):
            self._begin(self._episode(asked, again))
            if not (generated and self.begins_solved):
                break
        else:
            raise UserError(f"the goal of scenario {self.config.name} holds at the start of all {_DRAWN} episodes that "
                            f"were drawn, so that there is nothing to do: change the goal in {self.config.problem}, or "
                            "what its episodes are like.")
        words = instructions(self.sim, self.symbols, self._goal)
        self._begin_scene(words, seed, fixed=asked is not None and seed is None)
        self._show()
        return self.observe(), self.scene.told() | {"episode_id": self.episode.id, "scene": self.episode.scene}

    def _begin(self, episode: Episode) -> None:
        """Load an episode, and note which part of its goal holds already."""
        self.episode = episode
        if len(self.episode.targets) != len(self.config.scenario.objects):
            raise UserError(f"episode {self.episode.id!r} moves {len(self.episode.targets)} objects; scenario "
                            f"{self.config.name} moves {len(self.config.scenario.objects)}.")
        sim = self.sim
        sim.reset(self.episode)
        sim.place_robot(*self.episode.robot_start)
        self.steps = 0
        self._stood = [tuple(sim.object_position(index)) for index in range(len(self.episode.objects))]
        self._targets = list(self.episode.targets.items())
        self._motion = EpisodeMotion(sim, [index for index, _ in self._targets])
        self.symbols, self._goal = goal_of(self.episode, sim.home.layout, self.config.problem)
        # Of each object that the goal is about, in order: its place among the targets, and what is wanted of it.
        wanted = ([atom for atom in self._goal if name in atom and atom[0] != "robot_at"]
                  for name in self.symbols.objects)
        self._wanted = [(k, atoms) for k, atoms in enumerate(wanted) if atoms]
        self._once: set[Atom] = set()
        self.begins_solved = self._is_solved(self._goal_now())
        self.stages = [False] * (2 * len(self._wanted))
        self._picked: set[int] = set()
        self._placed: set[int] = set()
        self._sums = dict.fromkeys(self._scales, 0.0)
        self._distance_m = self._distance()

    def _episode(self, asked: int | Episode | None, again: int = 0) -> Episode:
        """The episode asked for, with a start for the robot; `again`: how many generated before it began solved."""
        index = int(asked) if isinstance(asked, (int, np.integer)) else int(self.np_random.integers(2**31))
        if isinstance(asked, Episode) or self.scene.episodes is not None:
            episode = self.scene.given_episode(asked if isinstance(asked, Episode) else index)
            check_episode(self.sim, episode)
            if episode.robot_start is None:
                rng = np.random.default_rng(zlib.crc32(episode.id.encode()))
                self.sim.reset(episode)
                episode = replace(episode, robot_start=random_start(self.sim, episode, rng))
            return episode
        index += 0 if asked is None else again * NEXT_EPISODE
        return self.scene.scenario_episode(self.config.scenario, index)

    # ------------------------------------------------------------------ step

    def step(self, action: np.ndarray) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        values = np.asarray(action, float).tolist()
        if len(values) != self.action_space.shape[0] or not all(map(math.isfinite, values)):
            raise ValueError(f"an action of a scenario has {self.action_space.shape[0]} finite numbers, not {values}.")
        values = np.clip(values, -1.0, 1.0).tolist()
        parts = {name: values[part] for name, part in self._slices.items()}
        command = parts["arm"], parts["grip"][0], parts["base"], parts["stop"][0] > 0.0
        reward, terminated, truncated, info = self.advance(*command)
        self._show()
        return self.observe(), reward, terminated, truncated, info

    def advance(self, arm: list[float] | None = None, grip: float | None = None, base: list[float] | None = None,
                stop: bool = False) -> tuple[float, bool, bool, dict[str, Any]]:
        """One step with commands of some parts of the action; the image is kept in `scene.image`."""
        sim = self.sim
        self._motion.before_step()
        self.scene.step(arm, grip, base)
        self.steps += 1
        if sim.unstable:
            return 0.0, False, True, success_info(False) | {"metrics": self._metrics(False, "unstable")}
        self._motion.after_step()
        at_goal = [self.at_goal(k) for k in range(len(self._targets))]
        held = next((k for k, (index, _) in enumerate(self._targets) if sim.held == index), None)
        true = self._goal_now()
        done = [all(atom in true for atom in atoms) for _, atoms in self._wanted]
        order = next((i for i, (k, _) in enumerate(self._wanted) if k == held), None)
        self.stages = latch(self.stages, stages_now(done, order, not sim.is_holding))
        success = stop and self._is_solved(true)
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
        """The atoms of the goal that hold now; `never_held` remembers them."""
        true = {atom for atom in self._goal if holds(self.sim, self.symbols, atom)}
        self._once |= true
        return true

    def _is_solved(self, true: set[Atom]) -> bool:
        """Whether a stop would be a success when these atoms of the goal are true."""
        keeps = any(atom[0] == "holding" for atom in self._goal)
        return len(true) == len(set(self._goal)) and (keeps or not self.sim.is_holding)

    @property
    def never_held(self) -> tuple[Atom, ...]:
        """The atoms of the goal that have not held at any step of the episode."""
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
        motion = self._motion
        stands = [(motion.upright(index), motion.at_rest(index)) for index, _ in self._targets]
        return {
            "success": float(success),
            "success_15cm": float(success and strict),
            "success_stable": float(success and strict and all(map(all, stands))),
            "goal_share": sum(holds(self.sim, self.symbols, atom) for atom in set(self._goal)) / len(set(self._goal)),
            "episode_steps": float(self.steps),
            "driven_m": motion.driven_m,
            "hand_path_m": motion.hand_path_m,
            "objects_upright": float(sum(upright for upright, _ in stands)),
            "objects_at_rest": float(sum(at_rest for _, at_rest in stands)),
            "objects_at_goal": float(sum(self.at_goal(k) for k in range(count))),
            "objects_on_floor": float(self._on_floor()),
            "disturbed_objects": float(self._disturbed()),
            **{name: float(value) for name, value in zip(stage_names(len(self._wanted)), self.stages)},
            **{f"failure/{name}": float(name == failure) for name in ENDS},
            **{f"reward/{name}": value for name, value in self._sums.items()},
            "arm_force_n": self.sim.accumulated_arm_force_n,
        }

    def _on_floor(self) -> int:
        """How many of the objects that the task moves lie on the floor."""
        return sum(index != self.sim.held and self.sim.object_position(index)[2] < ON_FLOOR_M
                   for index, _ in self._targets)

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
        own = {key: np.array(values, np.float32) for key, values in several.items()}
        observation = self.scene.observe(self._keys, None) | own
        return seen.within(self.observation_space, observation) if sim.unstable else observation

    def picture(self) -> np.ndarray:
        """The scene from outside, uint8 (512, 512, 3) or as `scene.picture_size` says."""
        return self.scene.picture([])


def make_env(scenario: str, **settings: Any) -> ScenarioEnv:
    """A Gymnasium environment for a scenario, for one policy without a plan.

    `settings`: max_steps, of the scenario's YAML file; fields of HomeSettings; reward_scales. Homes are of the split
    `train` unless said otherwise, as with skills. Raises UserError for settings that do not exist or are not allowed.
    """
    known = ["max_steps", *(name for name in HOME_SETTINGS if name != "episodes_share"), "reward_scales"]
    what = f"scenario {scenario}"
    settings = checked_settings(what, known, WholeTaskSettings, settings)
    scales = merge_scales(what, REWARD_SCALES, settings.pop("reward_scales", {}))
    config = load_scenario(scenario)
    config = replace(config, max_steps=settings.pop("max_steps", config.max_steps))
    return ScenarioEnv(config, HomeSettings(**settings), scales)
