"""Check that recorded actions do again what they did: begin an episode as it was, and carry its actions out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from eval.processes import share_out
from eval.recording import features as columns_of
from eval.recording.features import ACTION, STATE, rounded_depth
from eval.recording.folder import STATE as STATE_FILE
from eval.recording.folder import files_of, read_starts, read_state, starts, starts_file
from eval.recording.tape import episode_from
from rearrange.home.errors import UserError
from rearrange.home.settings.installed_parts import is_importable


@dataclass(frozen=True)
class Replayed:
    """How one episode went again. frame, column: the first difference to the recording; None without one."""

    episode: int
    frames: int
    frame: int | None = None
    column: str | None = None
    difference: float = 0.0  # the largest in that frame


@dataclass(frozen=True)
class ReplayJob:
    """Of which recording."""

    folder: str


def replay(folder: Path, episodes: int, workers: int | None, typed: str | None = None,
           robot: str | None = None) -> list[Replayed]:
    """Replay the first episodes of a recording, in order.

    Args:
        folder: of the recording.
        episodes: how many, at most.
        workers: processes; None means one for each core.
        typed, robot: the skill and the robot that the user typed: a recording alone must not choose what is imported.

    Raises:
        UserError: the folder is no recording, or one of a skill or robot that has to be typed.
    """
    from trainer.logs.progress import Progress

    about = read_state(folder)["about"]
    of = {"skill": (about.get("skill"), typed), "sim.robot": ((about.get("env") or {}).get("robot"), robot)}
    for key, (word, given) in of.items():
        if isinstance(word, str) and is_importable(word) and word != given:
            raise UserError(f"{folder} is a recording of the {key.removeprefix('sim.')} {word}, which is imported only "
                            f"where you type it: add {key}={word}.")
    known = [start["episode_index"] for start in starts(folder)][:episodes]
    found: list[Replayed] = []
    if not known:
        return found
    with Progress(len(known), f"replay {folder}", unit="episodes") as progress:
        def take(result: Replayed) -> None:
            found.append(result)
            progress.update(len(found), {"episode/success": sum(each.frame is None for each in found) / len(found)})

        files = range(read_state(folder)["files"])
        share_out(replay_file, ReplayJob(str(folder)), [(number, len(known)) for number in files], workers, take)
    return sorted(found, key=lambda result: result.episode)


def replay_file(job: ReplayJob, chunk: tuple[int, int]) -> Iterator[Replayed]:
    """The episodes in the files of one number, below an episode's number."""
    number, below = chunk
    folder = Path(job.folder)
    state = read_state(folder)
    env = environment(state["about"])
    frames = files_of(state["command"]["format"]).read(folder, number)
    for start, columns in zip(read_starts(folder / starts_file(number)), frames, strict=True):
        if start["episode_index"] < below:
            yield again(env, start, columns)


def environment(about: Mapping[str, Any]) -> gymnasium.Env:
    """The environment in which something was recorded. UserError for what is none."""
    is_skill, is_scenario = isinstance(about.get("skill"), str), isinstance(about.get("scenario"), dict)
    if not isinstance(about.get("env"), dict) or is_skill == is_scenario:
        raise UserError(f"{STATE_FILE} is damaged: it does not say what environment was recorded.")
    if "skill" in about:
        from eval.task_from_settings import make_env

        return make_env(about["skill"], **about["env"])
    from planner.scenario_env import ScenarioEnv
    from planner.scenarios import make_scenario
    from rearrange.env.home_env import HomeSettings

    home = {**about["env"], "depth_size": 0, "observations": None}
    if unknown := sorted(set(home) - {field.name for field in fields(HomeSettings)}):
        raise UserError(f"{STATE_FILE} is damaged: homes have no setting {unknown[0]!r}.")
    return ScenarioEnv(make_scenario(about["scenario"], "hab"), HomeSettings(**home))


def again(env: gymnasium.Env, start: Mapping[str, Any], columns: Mapping[str, np.ndarray | list[bytes]]) -> Replayed:
    """One episode. start: as `starts` has it. columns: its recorded frames."""
    names = columns_of.names_of_action(env.sim.robot, env.action_parts)
    features = {name: feature for name, feature in columns_of.features_of(env.observation_space, names).items()
                if feature.kind not in columns_of.VIDEOS and name in columns}
    try:
        seed, episode = int(start["seed"]), episode_from(start["episode"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UserError(f"the recording does not say how its episode {start['episode_index']} begins.") from error
    observation, _ = env.reset(seed=seed, options={"episode": episode})
    actions = np.asarray(columns[ACTION], np.float32)
    for frame, action in enumerate(actions):
        for name, feature in features.items():
            if feature.of and (off := _difference(feature, name, observation, columns[name][frame])):
                return Replayed(start["episode_index"], len(actions), frame, name, off)
        observation, reward, terminated, truncated, info = env.step(action)
        done = terminated or truncated
        for name, value in (("next.reward", np.float32(reward)), ("next.done", done),
                            ("next.success", bool(info["success"]))):
            if off := abs(float(np.ravel(columns[name][frame])[0]) - float(value)):
                return Replayed(start["episode_index"], len(actions), frame, name, off)
    return Replayed(start["episode_index"], len(actions))


def _difference(feature: Any, name: str, observation: Mapping[str, Any], recorded: Any) -> float:
    """The largest difference between what is seen and what was recorded."""
    if isinstance(recorded, bytes):
        recorded = columns_of.from_image_file(recorded)
    seen = columns_of.state_of(feature, observation) if name == STATE else observation[feature.of[0]]
    if feature.kind == "depth":
        seen, recorded = rounded_depth(seen), rounded_depth(recorded)
    return float(np.abs(np.asarray(seen, np.float64) - np.asarray(recorded, np.float64)).max(initial=0.0))


def said(results: list[Replayed], folder: Path) -> list[str]:
    """Lines for people."""
    off = [result for result in results if result.frame is not None]
    frames = sum(result.frames for result in results)
    if not results:
        return [f"{folder} has no episode yet."]
    lines = [f"{folder}: {len(results) - len(off):,} of {len(results):,} episodes went again as recorded, state by "
             f"state ({frames:,} frames)"]
    return lines + [f"episode {result.episode}: {result.column} is off by {result.difference:.3g} from frame "
                    f"{result.frame} on" for result in off[:5]]
