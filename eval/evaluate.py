"""Evaluation of one skill or navigation task: many episodes on all cores, with batched inference.

The result is the same however many processes share the work.
"""

from __future__ import annotations

import csv
import io
import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from eval import began_solved, shared_episodes
from eval.agents import make_agent
from eval.intervals import wilson
from eval.path_figures import path_figures
from eval.processes import share_out
from eval.protocol import protocol
from eval.slots import SEED_STRIDE, agent_seed, episode_seed, failure_of, kept, run_slots
from eval.task_from_settings import group_of, json_safe, make_env
from rearrange.command_line.runs.run_directory import write_whole
from rearrange.home.errors import CannotStart
from rearrange.home.settings.remote import Remote

if TYPE_CHECKING:
    from eval.episode_video import EpisodeRecorder

__all__ = ["EpisodeResult", "Job", "evaluate", "left_out", "summary", "write"]

SLOTS = 8  # environments per process, stepped together; fixed, because a batch of another size may round differently
CHUNK = 16  # episodes handed to a process at a time
JUDGED = ("success", "success_at_end", "episode_steps")  # of the measures of an episode, what has figures of its own
NOT_STARTED = "the robot would touch something, or objects do not rest"  # why episodes of a file are left out


@dataclass(frozen=True)
class Job:
    """What to evaluate."""

    skill: str  # or a navigation task
    env: dict[str, Any]  # settings of its make_env
    agent: str
    checkpoint: str | None
    episodes: int
    seed: int = 0
    deterministic: bool = False
    videos: int = 0  # the first so many episodes are recorded
    video_dir: str | None = None
    video_env: dict[str, Any] | None = None  # settings of the environments of those; None = `env`
    video_speed: float = 1.0  # times as fast as the robot
    network: str | None = None  # of the checkpoint, where the user typed it
    remote: Remote | None = None  # of agent=remote
    to_the_end: bool = False  # episodes of a skill go on after their success


@dataclass(frozen=True)
class EpisodeResult:
    """How one episode went."""

    index: int
    episode_id: str
    scene: str
    success: bool
    failure: str | None  # None on success
    steps: int
    reward: float
    measures: dict[str, float] = field(default_factory=dict)
    video: str | None = None
    video_problem: str | None = None  # why there is none
    began_solved: bool = False  # success held before the agent did anything
    took_s: float = field(default=0.0, compare=False)  # in its environment, with its film


def evaluate(job: Job, workers: int | None = None, progress: Callable[..., None] | None = None,
             keep: Callable[[list[EpisodeResult]], None] | None = None) -> list[EpisodeResult]:
    """Run all episodes of a job and return their results by index.

    Args:
        job: what to evaluate. Episodes of a file that cannot be started are left out.
        workers: processes; None means one for each core.
        progress: is told (episodes done, successes so far), and where some are filmed the share of work that is done.
        keep: gets what is finished when the rest cannot be.

    Raises:
        UserError: no episode can be started.
    """
    recorded = min(job.videos, job.episodes)
    spans = [(a, min(a + SLOTS, recorded)) for a in range(0, recorded, SLOTS)]  # pictures take time: small chunks
    spans += [(a, min(a + CHUNK, job.episodes)) for a in range(recorded, job.episodes, CHUNK)]
    chunks = [list(range(*span)) for span in spans]
    work_done = WorkDone(job) if recorded < job.episodes and recorded else None
    results = run_chunks(run_chunk, job, chunks, workers, progress, keep, work_done)
    if not results:
        raise CannotStart(f"no episode of {job.env['episodes']} can be started: in each {NOT_STARTED}.")
    return results


class WorkDone:
    """Called with all results so far, the share of the work that is done: an episode that is filmed takes longer than
    one that is not."""

    def __init__(self, job: Job) -> None:
        self._counts = job.videos, job.episodes - job.videos  # filmed, and not
        self._took_s, self._seen = [0.0, 0.0], [0, 0]

    def __call__(self, results: Sequence[EpisodeResult]) -> float:
        for result in results[sum(self._seen):]:
            other = int(result.index >= self._counts[0])
            self._took_s[other] += result.took_s
            self._seen[other] += 1
        known = [took_s / seen for took_s, seen in zip(self._took_s, self._seen) if seen]
        each_s = [took_s / seen if seen else min(known, default=0.0) for took_s, seen in zip(self._took_s, self._seen)]
        total_s = sum(count * each for count, each in zip(self._counts, each_s))
        return sum(self._took_s) / total_s if total_s else len(results) / sum(self._counts)


def left_out(job: Job, results: Sequence[EpisodeResult]) -> list[str]:
    """A line that says how many episodes of a file could not be started; none where all were."""
    left = job.episodes - len(results)
    return [f"{left} of {job.episodes} episodes cannot be started and are left out: {NOT_STARTED}"] if left else []


def run_chunks(work: Callable[[Any, Any], Iterable[Any]], job: Any, chunks: Sequence[Any], workers: int | None,
               progress: Callable[..., None] | None, keep: Callable[[list[Any]], None] | None = None,
               work_done: Callable[[list[Any]], float] | None = None) -> list[Any]:
    """The results of all chunks, ordered by index; `progress` and `keep` as for `evaluate`, `work_done` gives the share
    of the work that is done.

    Ctrl-C or the death of a process ends this early. Tasks of one launcher share the chunks, and each of them gets all
    results.
    """
    results: list[Any] = []

    def take(result: Any) -> None:
        results.append(result)
        if progress:
            progress(len(results), sum(result.success for result in results),
                     *([work_done(results)] if work_done else []))

    try:
        if shared_episodes.together():
            results = shared_episodes.run_shared(work, job, chunks, workers, results.append, progress)
        else:
            share_out(work, job, chunks, workers, take)
    except BaseException:
        if keep and results:
            keep(_ordered(results))
        raise
    return _ordered(results)


def _ordered(results: list[Any]) -> list[Any]:
    return sorted(results, key=lambda result: result.index)


def run_chunk(job: Job, indices: list[int]) -> Iterator[EpisodeResult]:
    """Some episodes, SLOTS at a time, in this process, as they end."""
    import torch

    from trainer.checkpoint import load_checkpoint

    torch.set_num_threads(1)
    settings = (job.video_env or job.env) if indices[0] < job.videos else job.env
    envs = kept_environments(job.skill, settings)
    for env in envs:
        env.goes_on = job.to_the_end
    checkpoint = load_checkpoint(job.checkpoint) if job.checkpoint else None
    agent = make_agent(job.agent, checkpoint, envs, job.deterministic, job.network, job.remote)
    return run_slots([_Slot(env, agent, number, job) for number, env in enumerate(envs)], agent, indices)


class _Slot:
    """One environment and the episode that runs in it."""

    def __init__(self, env: Any, agent: Any, number: int, job: Job):
        self.env, self.agent, self.number, self.job = env, agent, number, job
        self.index: int | None = None
        self.recorder: EpisodeRecorder | None = None
        self.video_problem: str | None = None

    def next(self, waiting: Iterator[int]) -> tuple[()]:
        """Begin the next episode. One of a file that cannot be started is left out: another one stands in for it."""
        for self.index in waiting:
            seed, number = episode_seed(self.job.seed, self.index), self.index + SEED_STRIDE * self.job.seed
            self.observation, self.info = self.env.reset(seed=seed, options={"episode": number})
            if not (self.env.listed and self.info.get("skipped_episodes")):
                break
        else:
            self.index = None
            return ()
        self.agent.begin(self.number, agent_seed(seed))
        self.reward = self.took_s = 0.0
        if self.index < self.job.videos:
            from eval.episode_video import EpisodeRecorder

            self.recorder = EpisodeRecorder(self.env, Path(self.job.video_dir), self.index, self.observation,
                                            self.job.video_speed)
            self.video_problem = None
        return ()

    def step(self, action: np.ndarray) -> EpisodeResult | None:
        began_s = time.perf_counter()
        try:
            self.observation, reward, terminated, truncated, info = self.env.step(action)
            self.reward += reward
            over = terminated or truncated
            video = self._record(reward, info, over)
        except BaseException:
            self._drop_recorder()
            raise
        self.took_s += time.perf_counter() - began_s
        if not over:
            return None
        metrics = info["metrics"]
        problem, self.video_problem = self.video_problem, None
        return EpisodeResult(self.index, self.info["episode_id"], self.info["scene"], bool(metrics["success"]),
                             failure_of(metrics), int(metrics["episode_steps"]), self.reward, metrics, video, problem,
                             bool(self.env.begins_solved), self.took_s)

    def _record(self, reward: float, info: dict[str, Any], over: bool) -> str | None:
        """Film this step; the file at the end of an episode. A video that cannot be written is given up."""
        if not self.recorder:
            return None
        from eval.video import VideoError

        try:
            self.recorder.frame(self.observation, reward, self.reward, info, over)
            if not over:
                return None
            video, self.recorder = self.recorder.close(bool(info["metrics"]["success"])), None
            return video
        except VideoError as error:
            self.video_problem = str(error)
            self._drop_recorder()
            return None

    def _drop_recorder(self) -> None:
        if self.recorder:
            self.recorder.discard()
            self.recorder = None

    def close(self) -> None:
        self.agent.end(self.number)


def kept_environments(task: str, settings: dict[str, Any]) -> list[Any]:
    """SLOTS environments of a skill or navigation task with these settings."""
    key = json.dumps([task, settings], sort_keys=True, default=str)
    return kept(key, lambda: make_env(task, **settings), SLOTS)


def summary(job: Job, results: list[EpisodeResult]) -> dict[str, Any]:
    """The figures of the episodes that did not begin solved. Means of no episodes are None."""
    results, solved = began_solved.apart(results)
    n, wins, mean = len(results), sum(r.success for r in results), began_solved.mean
    failures = Counter(r.failure for r in results if not r.success)
    keys = sorted({k for r in results for k in r.measures if "/" not in k and k not in JUDGED})
    at_end = sum(bool(r.measures["success_at_end"]) for r in results) if job.to_the_end else 0
    return {
        group_of(job.skill): job.skill, "agent": job.agent, "checkpoint": job.checkpoint, "split": job.env.get("split"),
        "seed": job.seed, "deterministic": job.deterministic, "episodes": n,
        "protocol": protocol(job.skill, job.env) + (", to the end" if job.to_the_end else ""),
        **began_solved.figures(solved, [r.measures for r in solved]),
        "success": began_solved.share(wins, n), "success_interval_95": list(wilson(wins, n)) if n else None,
        "success_once": began_solved.share(wins, n),
        "success_at_end": began_solved.share(at_end, n) if job.to_the_end else None,
        "success_at_end_interval_95": list(wilson(at_end, n)) if job.to_the_end and n else None,
        "failures": {reason: count / n for reason, count in failures.most_common()},
        "mean_steps": mean([r.steps for r in results]),
        "mean_steps_of_successes": mean([r.steps for r in results if r.success]),
        "mean_reward": mean([r.reward for r in results]),
        "measures": {k: mean([r.measures[k] for r in results if k in r.measures]) for k in keys},
        **path_figures([r.measures for r in results]),
        "env": json_safe(job.env),
    }


def cut_short(figures: dict[str, Any], asked: int) -> dict[str, Any]:
    """Mark the figures of an interrupted evaluation. Short episodes end first, so success differs from that of all."""
    return figures | {"interrupted": True, "episodes_asked": asked}


def headline(figures: dict[str, Any]) -> dict[str, float]:
    """Of the figures those that a run's status.json holds; of how many episodes, if not of all."""
    keys = ["episodes"] if "interrupted" in figures or figures["began_solved"] else []
    return {key: figures[key] for key in (*keys, "success", "mean_steps") if figures[key] is not None}


def missing(figures: dict[str, Any]) -> list[str]:
    """A line that says what an evaluation which was cut short lacks; none for another."""
    if not figures.get("interrupted"):
        return []
    n, asked = figures["episodes"] + figures["began_solved"], figures["episodes_asked"]
    return [f"interrupted: {n} of {asked} episodes were finished, {asked - n} are missing; these are figures of "
            f"the {n}."]


def write(directory: Path, figures: dict[str, Any], results: list[EpisodeResult]) -> None:
    """metrics.json and episodes.csv."""
    measures = sorted({k for r in results for k in r.measures} - {"success", "episode_steps"})
    text = io.StringIO()
    table = csv.writer(text)
    table.writerow(["index", "episode_id", "scene", "began_solved", "success", "failure", "steps", "reward", "video",
                    *measures])
    for r in results:
        table.writerow([r.index, r.episode_id, r.scene, int(r.began_solved), int(r.success), r.failure or "", r.steps,
                        f"{r.reward:.4f}", r.video or "",
                        *(f"{r.measures.get(k, float('nan')):.5g}" for k in measures)])
    write_whole(directory / "episodes.csv", text.getvalue())
    write_whole(directory / "metrics.json", json.dumps(figures, indent=2) + "\n")  # last: a directory with it is whole
