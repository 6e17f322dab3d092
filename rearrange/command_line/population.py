"""`hydra/sweeper=population`: population-based training (Jaderberg et al. 2017, arXiv:1711.09846).

All members train for some steps with settings of their own. Then the worst take over the weights and settings of the
best, each of those settings is changed, and all train on. A generation is a sweep's batch of jobs: training runs that
begin with `checkpoint=`, the run of the member whose weights they go on with. So a population runs on every launcher,
and the same line again skips runs that are finished.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hydra.core.override_parser.types import IntervalSweep

from rearrange.command_line.composition import parse_overrides as front
from rearrange.command_line.composition.swept import Swept, as_typed
from rearrange.command_line.runs.hydra_settings import POPULATION as NAME
from rearrange.command_line.runs.run_directory import write_whole
from rearrange.home.errors import UserError
from trainer.config import OF_THE_WEIGHTS

OF_A_RUN = ("name", "steps", "seed", "checkpoint")


@dataclass(frozen=True)
class Range:
    """What a setting may be: between two numbers, on a logarithmic scale or not, or one of some values in order."""

    key: str
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    values: tuple[str, ...] = ()

    def draw(self, rng: random.Random) -> str:
        """A value at random."""
        if self.values:
            return rng.choice(self.values)
        if self.log:
            return self._text(self.low * (self.high / self.low) ** rng.random())
        return self._text(rng.uniform(self.low, self.high))

    def change(self, value: str, factor: float, rng: random.Random) -> str:
        """A value near by: a number times or divided by `factor`, within the bounds; of a list the next or last."""
        up = rng.random() < 0.5
        if self.values:
            at = self.values.index(value) + (1 if up else -1)
            return self.values[min(max(at, 0), len(self.values) - 1)]
        changed = float(value) * (factor if up else 1 / factor)
        if self._is_whole and abs(changed - float(value)) < 1:
            changed = float(value) + (1 if up else -1)
        return self._text(min(max(changed, self.low), self.high))

    @property
    def _is_whole(self) -> bool:
        return isinstance(self.low, int) and isinstance(self.high, int)

    def _text(self, value: float) -> str:
        if self._is_whole:
            return str(round(value))
        return str(min(max(float(f"{value:.4g}"), self.low), self.high))


def range_of(command: str, swept: Swept) -> Range:
    """What a sweep's word lets a setting be."""
    value = front.parse(command, swept.asked).value()
    if isinstance(value, IntervalSweep):
        return Range(swept.key, value.start, value.end, "log" in value.tags)
    return Range(swept.key, values=tuple(swept.values))


@dataclass(frozen=True)
class Member:
    """settings: key -> value. parent: number of the member in the generation before whose weights it goes on with."""

    settings: dict[str, str]
    parent: int | None = None


def first_generation(count: int, ranges: Sequence[Range], rng: random.Random) -> list[Member]:
    """Members with settings at random."""
    return [Member({each.key: each.draw(rng) for each in ranges}) for _ in range(count)]


def next_generation(members: Sequence[Member], scores: Sequence[float | None], ranges: Sequence[Range], share: float,
                    factor: float, resample: float, rng: random.Random) -> list[Member]:
    """The members after a generation (truncation selection, section 4.1.1 of the paper).

    Args:
        members: those that trained.
        scores: what each reached, higher is better; None: its run failed.
        ranges: what each setting may be.
        share: of the members that take over weights and settings from as many of the best, at least one.
        factor: settings that are taken over are multiplied or divided by it.
        resample: chance that such a setting is drawn anew instead.
        rng: of the draws.

    Raises: UserError where every run failed.
    """
    alive = [number for number, score in enumerate(scores) if score is not None]
    if not alive:
        raise UserError("no member of the population has a result: see what their runs printed.")
    ranked = sorted(range(len(members)), key=lambda number: (scores[number] is None, -(scores[number] or 0.0), number))
    count = min(max(1, int(share * len(members))), len(members) // 2)
    best, worst = ranked[:count], {*ranked[len(members) - count:], *(set(ranked) - set(alive))}
    made = []
    for number, member in enumerate(members):
        if number not in worst:
            made.append(replace(member, parent=number))
            continue
        parent = rng.choice([each for each in best if each in alive])
        taken = members[parent].settings
        made.append(Member({each.key: each.draw(rng) if rng.random() < resample
                            else each.change(taken[each.key], factor, rng) for each in ranges}, parent))
    return made


@dataclass(frozen=True)
class Plan:
    """What is searched and how far: `generations` of runs, the first of seed `seed`, whose names begin with `name`."""

    ranges: Sequence[Range]
    generations: int
    seed: int
    name: str

    def said(self, settings: Any) -> str:
        """The plan in a line."""
        return (f"{self.generations} generations of {settings.every:,} steps, {settings.members} members each: "
                f"{self.generations * settings.members:,} runs")


class Population:
    """Asks a launcher for one generation after another, as sweepers of Hydra do."""

    def __init__(self, settings: Any, launcher: Any, plan: Plan, folder: Path):
        """
        Args:
            settings: Hydra's view of `hydra_settings.PopulationConfig`.
            launcher: runs a batch of jobs, and knows the directory of each (`sweep.Between`).
            plan: what is searched.
            folder: where the members of each generation are kept: a run that failed at first and is repeated later
                changes nothing of what has been trained meanwhile.
        """
        self.settings, self.launcher, self.plan, self.file = settings, launcher, plan, folder / "population.json"

    def sweep(self, _: Sequence[str]) -> None:
        """Train all generations."""
        s, rng = self.settings, random.Random(self.settings.seed)
        members, paths = first_generation(s.members, self.plan.ranges, rng), []
        made = [members]
        kept = self._kept()
        if kept[:1] == made:  # else of other words
            made = kept
        for generation in range(self.plan.generations):
            jobs = [self._words(member, generation, number, paths) for number, member in enumerate(members)]
            told = self.launcher.launch(jobs, generation * s.members)
            sign = -1.0 if s.direction == "minimize" else 1.0
            scores = [None if each.return_value is None else sign * each.return_value for each in told]
            paths = [str(self.launcher.asked[tuple(words)].path.absolute()) for words in jobs]
            print(self._line(generation, [sign * score for score in scores if score is not None]), flush=True)
            if all(score is None for score in scores) or generation + 1 == self.plan.generations:
                return
            if len(made) == generation + 1:
                rng = random.Random(f"{s.seed}/{generation}")
                made = [*made, next_generation(members, scores, self.plan.ranges, s.share, s.factor, s.resample, rng)]
                write_whole(self.file, json.dumps([[vars(each) for each in members] for members in made], indent=1))
            members = made[generation + 1]

    def _kept(self) -> list[list[Member]]:
        """The generations that an earlier command planned."""
        try:
            return [[Member(**each) for each in members] for members in json.loads(self.file.read_text("utf-8"))]
        except (OSError, ValueError, TypeError):
            return []

    def _words(self, member: Member, generation: int, number: int, paths: Sequence[str]) -> list[str]:
        words = [f"name={as_typed(f'{self.plan.name}_{generation}_{number}')}", f"steps={self.settings.every}",
                 f"seed={self.plan.seed + generation * self.settings.members + number}"]
        return words + [f"{key}={value}" for key, value in member.settings.items()] + (
            [f"checkpoint={as_typed(paths[member.parent])}"] if member.parent is not None else [])

    def _line(self, generation: int, values: Sequence[float]) -> str:
        done = f"generation {generation + 1} of {self.plan.generations}"
        if not values:
            return f"{done}: no run has a result"
        best, worst = (max, min) if self.settings.direction == "maximize" else (min, max)
        return f"{done}: best {best(values):.4g}, mean {sum(values) / len(values):.4g}, worst {worst(values):.4g}"


def plan_of(settings: Any, command: str, fixed: Sequence[str], swept: Sequence[Swept]) -> Plan:
    """The plan of what is typed. UserError for a population that could not train.

    Args:
        settings: Hydra's view of `hydra_settings.PopulationConfig`.
        command: the command that is swept.
        fixed: the words that have one value; `steps=` are a member's, over all generations.
        swept: the settings that are searched.
    """
    if command != "train":
        raise UserError(f"hydra/sweeper={NAME} trains: write rearrange train -m.")
    made = front.compose(command, list(fixed))
    steps = made.value("steps")
    for name, low in (("members", 2), ("every", 1)):
        if (value := settings[name]) < low:
            raise UserError(f"hydra.sweeper.{name}={value} is not allowed: it must be at least {low}.")
    if not settings.factor > 1:
        raise UserError(f"hydra.sweeper.factor={settings.factor} is not allowed: it must be greater than 1.")
    for name, high in (("share", 0.5), ("resample", 1.0)):
        if not 0 <= (value := settings[name]) <= high:
            raise UserError(f"hydra.sweeper.{name}={value} is not allowed: it must be from 0 to {high:g}.")
    if steps < settings.every or steps % settings.every:
        raise UserError(f"steps={steps:,} is no multiple of hydra.sweeper.every={settings.every:,}, the steps of a "
                        "generation.")
    keys = [each.key.lstrip("+") for each in swept]
    if wrong := next((key for key in keys if key in (*OF_A_RUN, "transfer", "resume")), None):
        raise UserError(f"{wrong}= has one value here: hydra/sweeper={NAME} gives each run its own.")
    alike = ("skill", "nav", "hab", "policy", *(f"policy.{name}" for name in OF_THE_WEIGHTS))
    if wrong := next((key for key in keys if key in alike), None):
        raise UserError(f"{wrong}= has one value here: the members of hydra/sweeper={NAME} take over each other's "
                        "weights.")
    if made.value("transfer"):
        raise UserError(f"transfer= is for one training: hydra/sweeper={NAME} begins runs with each other's weights.")
    return Plan([range_of(command, each) for each in swept], steps // settings.every, made.value("seed"),
                made.value("name") or NAME)


def words_of_run(fixed: Sequence[str], asked: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """The words of a member's run without its settings, and those: what it is asked with stands for what is typed. The
    learning rate does not decay to zero in each generation."""
    given = dict(word.split("=", 1) for word in asked)
    own = [f"{key}={given.pop(key)}" for key in OF_A_RUN if key in given]
    keys = {word.partition("=")[0] for word in own}  # of words of which the typed ones may begin with +
    typed = [word for word in fixed if word.partition("=")[0].lstrip("+") not in keys]
    schedule = [] if any(word.lstrip("+").startswith("ppo.schedule=") for word in typed) else ["ppo.schedule=constant"]
    return [*typed, *schedule, *own], given
