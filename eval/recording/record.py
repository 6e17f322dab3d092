"""`rearrange record`: from settings to a data set of episodes."""

from __future__ import annotations

import itertools
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from eval.intervals import wilson
from eval.processes import ProcessDied, share_out
from eval.recording import skill_episodes
from eval.recording.features import Feature
from eval.recording.folder import Folder, Full, files_of, size_of
from eval.recording.scenario_episodes import ScenarioJob, record_scenario
from eval.recording.skill_episodes import BEGAN_SOLVED, STEPS_PER_S, SkillJob
from eval.recording.tape import Recorded
from rearrange.command_line.composition.options import RecordOptions
from rearrange.command_line.composition.parse_overrides import compose
from rearrange.home.errors import UserError
from trainer.logs.printable import printable

FREE = ("out", "episodes", "max_gb", "workers", "replay", "output")  # may differ when a recording goes on
MOST_AT_A_TIME = 16  # attempts handed to a process; of few episodes fewer, so that all processes have some
TRIES_EACH = 20  # attempts for every episode, and 100 more, before an agent is given up


class Enough(Exception):
    """All episodes are there."""


def record(options: RecordOptions, prepare: Callable[[RecordOptions], Prepared]) -> int:
    """Record what the settings say; the exit status. prepare: makes the job of a skill, which the command line can
    do."""
    if options.out is None:
        raise UserError("where to? For example: rearrange record skill=pick out=pick_demonstrations.")
    of_format = files_of(options.format)
    if options.depth_video and of_format.raw:
        raise UserError(f"depth_video=true is for format=lerobot; format={options.format} keeps images as they are: "
                        "leave it out.")
    if options.depth_video and options.image_size == 0:
        raise UserError("depth_video=true with image_size=0: there is no depth image; leave one of them out.")
    made = (scenario if options.hab else prepare)(options)
    made = replace(made, job=replace(made.job, raw=of_format.raw))
    command = {key: value for key, value in options.written.items() if key not in FREE} | {"policy": made.policy}
    out = Path(options.out)
    folder = Folder(out, of_format(out, made.features, made.fps), command, made.about, options.max_gb * 1e9,
                    usual_of(options))
    try:
        return _record(folder, made, options)
    finally:
        folder.close()


def usual_of(options: RecordOptions) -> dict[str, Any]:
    """The settings, by whole name, of who chooses the same and types nothing else."""
    return compose("record", [f"{group}={choice}" for group, choice in options.choices.items()]).values


@dataclass(frozen=True)
class Prepared:
    """What is recorded.

    work: the generator function that does `job` for some attempts, in another process. about: what replaying needs.
    lines: for people, before it begins. listed: episodes of a file, 0 without one. policy: the files of policies, by
    which a recording that goes on knows them.
    """

    name: str
    job: Any
    work: Callable[[Any, Sequence[int]], Iterator[Recorded]]
    features: dict[str, Feature]
    fps: float
    about: dict[str, Any]
    lines: list[str]
    listed: int
    policy: Any


def scenario(options: RecordOptions) -> Prepared:
    """The job of a scenario. UserError for what cannot work."""
    from eval.scenario import command

    agent, checkpoint = options.agent, None
    if agent == "zero" or ":" in agent:
        raise UserError(f"agent={agent} is for skill=; a scenario is recorded with agent=expert, pretrained, newest, "
                        "random, or the path of a policy for all of it.")
    if agent not in ("expert", "pretrained", "random", "newest"):
        agent, checkpoint = "monolithic", agent
    hab = command.watched_job(options, agent, checkpoint)
    size = options.image_size
    job = ScenarioJob(hab, 128 if size is None else size, tuple(options.sim.observations or ()),
                      options.sim.camera_size, depth_video=options.depth_video)
    env = job.make()
    about = {"scenario": options.written["hab"], "env": dict(hab.env)}
    from eval.policy_choice import table

    lines = table(source.choice for source in hab.skills.values() if source.choice)
    return Prepared(name=hab.scenario.name, job=job, work=record_scenario, features=env.features(), fps=STEPS_PER_S,
                    about=about, lines=lines, listed=env.listed,
                    policy={skill: source.checkpoint for skill, source in hab.skills.items() if source.checkpoint})


def prepared_skill(job: SkillJob, env: Any, lines: list[str]) -> Prepared:
    """The job of a skill. env: one of its environments."""
    return Prepared(name=job.skill, job=job, work=skill_episodes.record_skill,
                    features=skill_episodes.features_of_skill(env, job.depth_video),
                    fps=skill_episodes.frames_per_s(env),
                    about={"skill": job.skill, "env": job.env}, lines=lines, listed=env.listed, policy=job.checkpoint)


def _record(folder: Folder, made: Prepared, options: RecordOptions) -> int:
    from trainer.logs.progress import Progress

    wanted, only = options.episodes, options.successes_only
    order = _Order(folder, wanted, only)
    if folder.kept:
        print(f"{folder.path} has {folder.kept:,} of "
              f"{wanted:,} episodes" + ("; goes on" if folder.kept < wanted else ": nothing is left to do"))
    print(f"record {folder.path}   {made.name}   agent {options.agent}   format {options.format}")
    for line in made.lines:
        print(line)
    why = failed = stopped = None
    if folder.kept < wanted:
        try:
            with Progress(wanted, f"record {made.name}", start=folder.kept, unit="episodes") as progress:
                def take(episode: Recorded) -> None:
                    try:
                        order.take(episode)
                    finally:
                        successes = sum(attempt.success for attempt in folder.tried)
                        progress.note = spoken_size(folder.size)
                        progress.update(folder.kept, {"episode/success": successes / max(len(folder.tried), 1)})

                share_out(made.work, made.job, order.chunks(made.listed), options.workers, take)
            if folder.kept < wanted:
                why = (f"the file has {made.listed:,} episodes, each of which was tried once" if made.listed else
                       f"of {len(folder.tried):,} attempts no more succeeded")
        except Enough:
            pass
        except Full:
            why = f"max_gb={options.max_gb:g} is reached; the same command with a larger one goes on"
        except (ProcessDied, OSError) as error:
            failed = error
        except (KeyboardInterrupt, Exception) as error:  # a mistake in the user's agent, say: what is finished is kept
            stopped = error
    try:
        _keep(order, folder)
    except OSError as error:
        failed = failed or error
    if failed:
        print(f"rearrange record: {_sentence(failed, folder)}", file=sys.stderr)
    if stopped or failed:
        why = "the same command goes on"
        why = f"interrupted; {why}" if isinstance(stopped, KeyboardInterrupt) else why
    _say(folder, made, wanted, why)
    if stopped:
        raise stopped
    return int(failed is not None)


def spoken_size(size: float) -> str:
    """12 MB, 1.23 GB."""
    return f"{size / 1e6:.0f} MB" if size < 1e9 else f"{size / 1e9:.2f} GB"


def _sentence(error: Exception, folder: Folder) -> str:
    if isinstance(error, OSError):
        why = error.strerror or printable(error)
        return f"{error.filename or folder.path} cannot be written: {why}. Make room, and repeat the command."
    return str(error)


def _keep(order: _Order, folder: Folder) -> None:
    try:
        order.rest()
    except (Full, Enough):
        pass
    folder.write()


class _Order:
    """Attempts in the order of their numbers, however they come; the rest in any order where it is not to be had."""

    def __init__(self, folder: Folder, wanted: int, only_successes: bool) -> None:
        self._folder, self._wanted, self._only = folder, wanted, only_successes
        self._done = {attempt.number for attempt in folder.attempts}
        self._next = next(number for number in itertools.count() if number not in self._done)
        self._early: dict[int, Recorded] = {}

    def chunks(self, listed: int) -> Iterator[list[int]]:
        """Attempts that are left, some at a time."""
        most = listed or 100 + TRIES_EACH * self._wanted
        left = (number for number in range(most) if number not in self._done)
        size = max(1, min(MOST_AT_A_TIME, self._wanted // 8))
        while chunk := list(itertools.islice(left, size)):
            yield chunk

    def take(self, episode: Recorded) -> None:
        """An attempt that has ended. Enough, Full, OSError."""
        self._early[episode.attempt] = episode
        while (first := self._early.pop(self._next, None)) is not None:
            self._done.add(self._next)
            while self._next in self._done:
                self._next += 1
            self._add(first)

    def rest(self) -> None:
        """Those before which one is missing."""
        for number in sorted(self._early):
            self._add(self._early.pop(number))

    def _add(self, episode: Recorded) -> None:
        if self._folder.kept >= self._wanted:
            raise Enough
        self._folder.add(episode, keep=bool(episode.steps) and (episode.success or not self._only))
        if self._folder.kept >= self._wanted:
            raise Enough


def _say(folder: Folder, made: Prepared, wanted: int, why: str | None) -> None:
    """Print the figures at the end."""
    tried = [attempt for attempt in folder.attempts if attempt.steps]
    size = size_of(folder.path)
    print(f"{folder.path}   {folder.written:,} of {wanted:,} episodes   {folder.frames:,} frames "
          f"({folder.frames / made.fps / 3600:.2f} "
          f"h)   {spoken_size(size)}" + (f" ({size / folder.frames / 1e3:.1f} kB a frame)" if folder.frames else ""))
    if tried:
        wins = sum(attempt.success for attempt in tried)
        low, high = wilson(wins, len(tried))
        failures = Counter(attempt.failure for attempt in tried if not attempt.success)
        words = ", ".join(f"{reason} {count}" for reason, count in failures.most_common(4))
        print(f"success {wins / len(tried):.0%} of {len(tried):,} attempts (95% interval {low:.0%} to {high:.0%}), "
              f"{len(folder.tasks):,} tasks in words" + (f"; failures: {words}" if words else ""))
    if solved := sum(attempt.failure == BEGAN_SOLVED for attempt in folder.attempts):
        print(f"{solved:,} of {len(folder.attempts):,} attempts began solved, with nothing to show, and are left out")
    if why:
        print(f"not all: {why}." if folder.written < wanted else f"{why}.")
