"""A recording as demonstrations that a policy learns from: `rearrange train demos=`."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from eval.recording.features import (
    ACTION,
    DEPTH_STEPS,
    STATE,
    Feature,
    features_of,
    from_image_file,
    kind_of,
    names_of_action,
    numbers_of,
)
from eval.recording.folder import STATE as STATE_FILE
from eval.recording.folder import check_sums, files_of, read_state, starts
from eval.trained_policy import check_robot
from rearrange.home.errors import UserError
from rearrange.home.settings.environment import WHERE, renewed
from trainer.cloning.demonstrations import Demonstration
from trainer.logs.printable import first_line, printable
from trainer.machine import memory_bytes
from trainer.policy import EXPERT_ACTION

REWARD, SUCCESS = "next.reward", "next.success"
# Settings that may differ: what is seen is compared as columns.
NOT_DIFFERENT = {*WHERE, "depth_size", "camera_size", "observations", "observation_keys"}
MANY = 50  # episodes, from which on reading them shows its progress
GIVE = 0.01  # of the range of what is seen or done by which a number may be outside
MOST = 1e9  # of a reward
Columns = dict[str, Any]
# Column -> its shape, and the names of its numbers.
Described = Mapping[str, tuple[tuple[int, ...], tuple[str, ...]]]


class Recording:
    """The successful episodes of a recording as `Demonstrations` of the engine, checked and in memory."""

    def __init__(self, folder: Path, task: str, env: gymnasium.Env, most: int | None = None,
                 silent: bool = False) -> None:
        """Read a recording.

        Args:
            folder: of the recording.
            task: the skill or scenario that is learned.
            env: an environment of the task.
            most: only so many episodes, the first ones; None means all.
            silent: without a progress line.

        Raises:
            UserError: the folder does not hold what it takes, or is damaged.
        """
        state = read_state(folder)
        about = state["about"]
        if (of := about.get("skill", about.get("scenario"))) != task:
            raise UserError(f"demos={folder} shows {of}, and {task} is to be learned: record another with "
                            "rearrange record.")
        seen = {key: space for key, space in env.observation_space.spaces.items() if key != EXPERT_ACTION}
        self.folder, self.observation_space, self.action_space = folder, gymnasium.spaces.Dict(seen), env.action_space
        self._about = about
        if not isinstance(about.get("env"), dict):
            raise UserError(f"{folder / STATE_FILE} is damaged: it does not say what environment was recorded.")
        check_robot(folder, about["env"], {"robot": env.home.robot, "hand": env.home.hand})
        self._features = features_of(self.observation_space, names_of_action(env.sim.robot, env.action_parts))
        check_sums(folder, state)
        files = files_of(state["command"].get("format"))
        described = files.described(folder)
        _check(folder, self._features, described)
        self._columns = _columns_of_state(self._features, described)
        lengths = [start["steps"] for start in starts(folder)]
        kept = sum(bool(attempt[1]) for attempt in state["attempts"])
        if not kept:
            raise UserError(f"demos={folder} has no episode yet.")
        if (len(lengths), steps := sum(lengths)) != (kept, state["frames"]):
            raise UserError(f"demos={folder} is damaged: it has {len(lengths):,} episodes of {steps:,} frames, and "
                            f"{STATE_FILE} says {kept:,} of {state['frames']:,}.")
        self._check_memory(steps)
        self._episodes: list[Demonstration] = []
        self.left_out = 0  # episodes that did not succeed
        self._read(files, state, most, silent)
        self.lengths = [len(episode.action) for episode in self._episodes]

    def _check_memory(self, frames: int) -> None:
        frame = sum(math.prod(feature.shape) * (2 if feature.kind == "depth" else np.dtype(feature.dtype).itemsize)
                    for feature in self._features.values())
        if (size := frame * frames) > (there := memory_bytes()):
            raise UserError(f"demos={self.folder} takes {size / 1e9:.1f} GB of memory, and this machine has "
                            f"{there / 1e9:.1f} GB: record fewer episodes or smaller images.")

    def _read(self, files: Any, state: Mapping[str, Any], most: int | None, silent: bool) -> None:
        from trainer.logs.progress import Progress

        wanted = [name for name, feature in self._features.items() if feature.of] + [ACTION, REWARD, SUCCESS]
        there = sum(bool(attempt[1]) for attempt in state["attempts"])
        total = there if most is None else min(most, there)
        with Progress(total, "reading demonstrations",
                      unit="episodes") if total >= MANY and not silent else nullcontext() as progress:
            for number in range(state["files"]):
                for columns in files.read(self.folder, number, wanted):
                    if len(self._episodes) == total:
                        return
                    if np.asarray(columns[SUCCESS])[-1].all():
                        self._episodes.append(self._checked(columns))
                    else:
                        self.left_out += 1
                    if progress:
                        progress.update(len(self._episodes) + self.left_out, {})
        if not self._episodes:
            raise UserError(f"demos={self.folder} has no episode that succeeded.")
        if most is not None and most > len(self._episodes):
            raise UserError(f"demos_episodes={most:,}, and demos={self.folder} has {len(self._episodes):,} that "
                            "succeeded: choose fewer, or repeat its command with a larger episodes=.")

    def _checked(self, columns: Columns) -> Demonstration:
        """An episode as the engine takes it. UserError for numbers that are not finite or out of bounds."""
        where = f"demos={self.folder} is damaged in its episode {len(self._episodes) + self.left_out}"
        if len({len(column) for column in columns.values()}) > 1:
            raise UserError(f"{where}: its columns are of unequal length.")
        try:
            state = np.asarray(columns[STATE], np.float32) if STATE in columns else None
            obs = {key: state[:, places] for key, places in self._columns.items()}
            action, reward = (np.asarray(columns[name], np.float32) for name in (ACTION, REWARD))
            reward = reward.reshape(-1)
            for name, feature in self._features.items():
                if feature.of and name != STATE:
                    obs[feature.of[0]] = _images(feature, columns[name])
        except Exception as error:  # whatever image files that are none make Pillow raise
            raise UserError(f"{where}: {first_line(error)}.") from error
        spaces = {**self.observation_space.spaces, "the action": self.action_space,
                  "the reward": gymnasium.spaces.Box(-MOST, MOST, ())}
        for name, values in (*obs.items(), ("the action", action), ("the reward", reward)):
            if wrong := _outside(spaces[name], values):
                raise UserError(f"{where}: {name} {wrong}.")
        return Demonstration({key: _compact(values, self.observation_space[key]) for key, values in obs.items()},
                             action, reward)

    def episode(self, index: int) -> Demonstration:
        """One of them."""
        shown = self._episodes[index]
        return replace(shown,
                       obs={key: _unpacked(values, self.observation_space[key]) for key, values in shown.obs.items()})

    def differences(self, env: Mapping[str, Any]) -> list[str]:
        """Settings, in words, that differ between the recording's environment and `env`, but for what is seen and
        where."""
        theirs, ours = self._about["env"], renewed(json.loads(json.dumps(env)))
        return [f"{key}={printable(theirs[key], 60)} there, {ours[key]} here" for key in ours
                if key not in NOT_DIFFERENT and theirs.get(key, ours[key]) != ours[key]]


def _images(feature: Feature, values: Any) -> np.ndarray:
    """Images as an array (N, ...). ValueError for another shape; whatever Pillow raises for damaged files."""
    if isinstance(values, list):
        values = np.stack([from_image_file(content, feature) for content in values])
    if values.shape[1:] != feature.shape or values.dtype.kind not in "iuf":
        raise ValueError(f"it has images of shape {values.shape[1:]} instead of {feature.shape}")
    return values


def _outside(space: gymnasium.spaces.Box, values: np.ndarray) -> str | None:
    """What is wrong with numbers of a space: not finite, or outside by more than a hundredth of its range."""
    if not np.isfinite(values).all():
        return "is not finite"
    low, high = (np.asarray(bound, np.float64) for bound in (space.low, space.high))
    give = GIVE * (high - low)
    wrong = (values < low - give) | (values > high + give)
    return f"is {values[wrong][0]:g}, outside of its bounds" if wrong.any() else None


def _compact(values: np.ndarray, space: gymnasium.spaces.Box) -> np.ndarray:
    """Images as they take little memory; depth in its steps, the farthest one step nearer than recorded."""
    if _is_depth(space):
        return np.clip(np.rint(values * DEPTH_STEPS), 0, DEPTH_STEPS - 1).astype(np.uint16)
    return values.astype(np.float32 if space.dtype.kind == "f" else space.dtype, copy=False)


def _unpacked(values: np.ndarray, space: gymnasium.spaces.Box) -> np.ndarray:
    """Undo `_compact`: images as the engine takes them, bytes or floats."""
    if _is_depth(space):
        return values / np.float32(DEPTH_STEPS)
    return values if values.dtype == np.uint8 else values.astype(np.float32, copy=False)


def _is_depth(space: gymnasium.spaces.Box) -> bool:
    return kind_of(space) == "depth"


def _check(folder: Path, features: Mapping[str, Feature], described: Described) -> None:
    """Raise UserError where a recording lacks an observation or the action."""
    for name, feature in features.items():
        if name not in described:
            has = ", ".join(key for key in described if key.startswith("observation"))
            raise UserError(f"demos={folder} has no {name}, which the policy sees; it has {has}. Record it again with "
                            "what is needed, or let the policy see less (policy.image_size=0, "
                            "skill.observation_keys=, sim.observations=).")
        shape, names = described[name]
        if name == ACTION and names != feature.names:
            raise UserError(f"demos={folder} shows actions of {len(names)} numbers ({', '.join(names)}), and the "
                            f"policy commands {len(feature.names)} ({', '.join(feature.names)}): choose the "
                            "skill.action_parts= of the recording.")
        if name == STATE and (missing := [part for part in feature.names if part not in names]):
            raise UserError(f"demos={folder} does not show {missing[0].rpartition('.')[0] or missing[0]}, which the "
                            "policy sees: leave it out of skill.observation_keys=, or record it again with it.")
        if feature.of and name != STATE and shape != feature.shape:
            size = f"{'policy.image_size' if feature.kind == 'depth' else 'sim.camera_size'}={shape[0] if shape else 0}"
            raise UserError(f"demos={folder} has {name} of shape {shape}, and the policy sees {feature.shape}: choose "
                            f"{size}, or record it again.")


def _columns_of_state(features: Mapping[str, Feature], described: Described) -> dict[str, list[int]]:
    """For each vector that the policy sees, its numbers in the recorded state."""
    if STATE not in features:
        return {}
    ours, place = features[STATE].names, {name: number for number, name in enumerate(described[STATE][1])}
    return {key: [place[ours[number]] for number in numbers] for key, numbers in numbers_of(features[STATE]).items()}
