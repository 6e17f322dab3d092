"""The Gymnasium environment: a home, a robot and one skill. `rearrange.env.home_env` says what is seen when."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import gymnasium
import numpy as np

from rearrange.env.home_env import HomeEnv, HomeSettings
from rearrange.home.action_layout import action_size, action_slices
from rearrange.home.apartments.episodes import Episode, NoStartPose
from rearrange.home.episodes.scene_check import check_joints
from rearrange.home.errors import CannotStart, UserError
from rearrange.home.simulation.observations import (
    FAR_M,
    OBSERVATIONS,
    OF_MAP,
    Observation,
    check_observations,
    seen_space,
    shown,
    space_of,
    takes_images,
    within,
)
from rearrange.home.simulation.simulator_interface import Simulator

if TYPE_CHECKING:
    from skills.skill import Skill

__all__ = ["ENV_FAILURES", "FAR_M", "OBSERVATIONS", "HomeSettings", "Observation", "RearrangeEnv"]

ENV_FAILURES = ("time_limit", "unstable")  # ends of an episode beside the skill's own; both truncate
_MAX_SKIPPED = 50  # episodes tried at one reset
# from the number of a skipped episode to that of its substitute, which nobody else asks for
NEXT_EPISODE = 1_000_000_000_039
_MAX_SETTLE_M = 0.03  # an episode whose objects move farther while they come to rest is skipped


class Adviser(Protocol):
    """An expert that can be asked anywhere, wherever another agent has brought the robot."""

    def advice(self) -> np.ndarray:
        """The action, in the skill's order, and the weight of this advice (0: none), float32."""


class RearrangeEnv(HomeEnv):
    """One skill in the homes of one split.

    home: where it takes place, what the robot sees. episodes_share: instead of that of `home`. adviser: makes an
    expert at each reset, of the simulator and the skill, whose advice is the observation `expert_action`, for
    learning from it. goes_on: an episode does not end with its success, but at its time limit or with a failure. """

    goes_on = False

    def __init__(self, skill: Skill, home: HomeSettings = HomeSettings(), episodes_share: float | None = None,
                 adviser: Callable[[Simulator, Skill], Adviser] | None = None) -> None:
        check_observations(skill)
        super().__init__(home)
        self.skill = skill
        # one picture per action
        self.metadata = self.metadata | {"render_fps": self.metadata["render_fps"] / skill.action_repeat}
        self.during_action: Callable[[], None] | None = None  # called after each 1/30 s of an action but its last
        self.scene.depth_size = home.depth_size if takes_images(skill.observation_keys) else 0
        self.scene.maps_floor = any(key in OF_MAP for key in skill.observation_keys)
        self._episodes_share = home.episodes_share if episodes_share is None else episodes_share
        robot = self.sim.robot
        self._slices, width = action_slices(robot, skill.action_parts), action_size(robot, skill.action_parts)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (width,), np.float32)
        self._keys = shown(skill.observation_keys, self.scene.depth_size > 0)
        boxes = space_of(self._keys, self.scene.depth_size, robot) | seen_space(home.observations, home.camera_size)
        self._adviser: Adviser | None = None
        self._make_adviser = adviser
        if adviser is not None:
            boxes["expert_action"] = gymnasium.spaces.Box(-1.0, 1.0, (width + 1,), np.float32)
        self.observation_space = gymnasium.spaces.Dict(boxes)

    # ------------------------------------------------------------------ reset

    def reset(self, *, seed: int | None = None,
              options: dict[str, Any] | None = None) -> tuple[Observation, dict[str, Any]]:
        """Start an episode: a random one, or options["episode"], a number or an Episode.

        A number always gives the same episode with the same start of the robot, unless a seed is given beside it.
        """
        super().reset(seed=seed)
        asked = asked_episode(options)
        fixed = asked is not None and seed is None
        skipped = self._start_episode(asked, fixed_rng=fixed)
        self._begin_scene(self.skill.instructions(self.sim), seed, fixed)
        self.steps, self._succeeded = 0, False
        self._sums = dict.fromkeys(self.skill.reward_scales, 0.0)
        self._skipped = skipped
        self._adviser = self._make_adviser and self._make_adviser(self.sim, self.skill)
        info = {"episode_id": self.episode.id, "scene": self.episode.scene, "skipped_episodes": skipped}
        self._show()
        return self._observe(), self.scene.told() | info

    def _start_episode(self, asked: int | Episode | None, fixed_rng: bool) -> int:
        """Load the asked or a random episode; return how many were skipped. Skipped are episodes in which the robot
        finds no place, and generated ones whose task is done already. """
        reason = "its objects do not rest where it puts them"
        listed = asked is not None or self._episodes_share >= 1.0 or self.np_random.random() < self._episodes_share
        index = asked if isinstance(asked, (int, np.integer)) else int(self.np_random.integers(2**31))
        generated = not isinstance(asked, Episode) and (self.scene.episodes is None or not listed)
        for skipped in range(1 if isinstance(asked, Episode) else _MAX_SKIPPED):
            step = NEXT_EPISODE if generated else 1
            given = isinstance(asked, Episode)
            self.episode = self.scene.given_episode(
                asked) if given else self._episode(int(index) + skipped * step, listed)
            check_joints(self.sim, self.episode)
            rng = np.random.default_rng(zlib.crc32(self.episode.id.encode())) if fixed_rng else self.np_random
            self.sim.reset(self.episode)
            strict = generated or self.sim.refuses_unsolvable(self.episode)
            if strict and self.sim.settle_distance_m > _MAX_SETTLE_M:
                continue
            try:
                if self.episode.handoff is None:
                    self.skill.start(self.sim, self.episode, rng)
                else:
                    self.skill.start_at_handoff(self.sim, self.episode)
            except UserError as error:
                if generated or isinstance(asked, Episode):
                    raise
                raise UserError(f"{self.scene.settings.episodes}, {error}") from None
            except NoStartPose as error:
                reason = str(error)
                continue
            self.begins_solved = self.skill.begins_solved(self.sim)
            if generated and self.begins_solved:
                reason = "nothing is left to do where it begins"
                continue
            return skipped
        raise CannotStart(f"episode {self.episode.id!r} cannot be started: {reason}.")

    def numbered_episode(self, number: int) -> Episode:
        """The episode that `reset` starts where it is asked for this number and the robot finds a place."""
        return self._episode(number, listed=True)

    def _episode(self, index: int, listed: bool) -> Episode:
        if self.scene.episodes is not None and listed:
            return self.scene.given_episode(index)
        return self.scene.generated_episode(self.skill.episode_kind, index)

    # ------------------------------------------------------------------ step

    def step(self, action: np.ndarray) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        command = self._command(action)
        total = 0.0
        for left in range(self.skill.action_repeat - 1, -1, -1):  # steps of this action that come after this one
            self._move(command, look=not left)
            reward, terminated, truncated, info = self._judge()
            total += reward
            if terminated or truncated:
                if left:
                    self.scene.look()
                break
            if left and self.during_action:
                self.during_action()
        self._show()
        return self._observe(), total, terminated, truncated, info

    def _move(self, command: dict[str, list[float]], look: bool) -> None:
        """1/30 s of physics; `look`: with a new image."""
        grip = command.get("grip")
        grip_command = None if grip is None else self.skill.grip_command(self.sim, grip[0])
        self.scene.step(command.get("arm"), grip_command, command.get("base"), look)
        if "stop" in command:
            self.skill.stop_called = command["stop"][0] > 0.0
        self.steps += 1

    def _judge(self) -> tuple[float, bool, bool, dict[str, Any]]:
        """Reward, terminated, truncated and info of the step that was made."""
        skill, sim = self.skill, self.sim
        if sim.unstable:  # nothing that is measured now means anything
            return 0.0, False, True, success_info(False) | {"metrics": self._outcome(False, "unstable")}
        failure = skill.failure(sim)
        success = failure is None and skill.success(sim)
        self._succeeded |= success
        reward = self._reward()
        terminated = success and not self.goes_on or failure is not None
        truncated = not terminated and self.steps >= self.max_steps
        info = success_info(success)
        if terminated or truncated:
            info["metrics"] = self._outcome(success, "time_limit" if truncated else failure)
        return reward, terminated, truncated, info

    def _outcome(self, success: bool, failure: str | None) -> dict[str, float]:
        """The metrics of an episode that ends with this step: of one that went on, success is that of any step."""
        found = self._metrics(self._succeeded, None if self._succeeded else failure)
        return found | {"success_at_end": float(success)} if self.goes_on else found

    def _command(self, action: np.ndarray) -> dict[str, list[float]]:
        """The parts of an action, limited to [-1, 1]."""
        if self.episode is None:
            raise RuntimeError("step before reset: an episode has to be started first.")
        given = np.asarray(action)
        if given.shape != self.action_space.shape or given.dtype.kind not in "fiub":
            size = self.action_space.shape[0]
            what = f"shape {given.shape}" if given.dtype.kind in "fiub" else repr(action)
            raise ValueError(f"an action of skill {self.skill.name} has {size} numbers, shape ({size},), not {what}.")
        values = given.tolist()
        # of finite ones the sum may be infinite
        if not math.isfinite(sum(values)) and not all(map(math.isfinite, values)):
            raise ValueError(f"the action contains a number that is not finite: {values}.")
        values = [-1.0 if v < -1.0 else 1.0 if v > 1.0 else v for v in values]
        return {name: values[part] for name, part in self._slices.items()}

    def _reward(self) -> float:
        """Sum of the scaled terms, which are also added up by name for the log."""
        total, sums, scales = 0.0, self._sums, self.skill.reward_scales
        for name, term in self.skill.reward_terms(self.sim).items():
            if term:
                if name not in scales:
                    raise UserError(f"skill {self.skill.name} gives the reward term {name!r}, for which there is no "
                                    "scale: add one to reward_scales of its config.")
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

    def _observe(self) -> Observation:
        observation = self.scene.observe(self._keys, self.skill)
        if self._adviser:
            observation["expert_action"] = self._adviser.advice()
        return within(self.observation_space, observation) if self.sim.unstable else observation

    # ------------------------------------------------------------------ picture

    @property
    def max_steps(self) -> int:
        """Steps of an episode: those of the skill, or more for a slow robot."""
        return round(self.skill.max_steps * self.sim.robot.time)

    def picture(self) -> np.ndarray:
        """The scene from outside, uint8 (512, 512, 3) or as `scene.picture_size` says, with the marks of the skill."""
        return self.scene.picture(self.skill.marks(self.sim))

    def status_lines(self) -> list[str]:
        """What a spectator wants to read beside the picture."""
        return self.skill.status_lines(self.sim)


def success_info(success: bool) -> dict[str, Any]:
    """What `step` says about success, under the name that Stable-Baselines3 looks for, too."""
    return {"success": success, "is_success": success}


def asked_episode(options: dict[str, Any] | None) -> int | Episode | None:
    """The episode that `reset` is asked for; None for a random one. UserError for other options."""
    if options is None:
        return None
    asked: Any = options.get("episode") if isinstance(options, dict) and not set(options) - {"episode"} else "other"
    number = isinstance(asked, (int, np.integer)) and not isinstance(asked, bool) and asked >= 0
    if asked is None or number or isinstance(asked, Episode):
        return asked
    raise UserError(f"reset takes options={{'episode': ...}} with a number from 0 on or an Episode, not {options!r}.")
