"""Hydra's sweepers: which one is chosen, its settings, and whether it would begin with what is typed."""

from __future__ import annotations

import importlib
import logging
import math
import warnings
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.plugins import Plugins
from hydra.errors import HydraException
from hydra.plugins.launcher import Launcher
from omegaconf import DictConfig, OmegaConf, open_dict

from rearrange.command_line.composition.swept import Sweeper, Swept
from rearrange.command_line.population import Plan, Population
from rearrange.command_line.runs import launching
from rearrange.command_line.runs.hydra_settings import composed
from rearrange.home.errors import UserError

PARAMS = "hydra.sweeper.params"
COUNTS = ("n_trials", "n_jobs", "max_batch_size")


class Begun(Exception):
    """A sweeper has asked for its first jobs."""


class NoLauncher(Launcher):
    """Runs nothing."""

    def setup(self, **_: Any) -> None:
        """Nothing: there is nothing to start."""

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Any:
        raise Begun


def params(hydras: Sequence[str]) -> tuple[list[str], list[str]]:
    """`hydra.sweeper.params.seed=1,2` and `hydra.sweeper.params={seed: '1,2'}` as `seed=1,2`, and the other words."""
    found: list[str] = []
    others = [word for word in hydras if not word.lstrip("+").startswith((f"{PARAMS}.", f"{PARAMS}="))]
    for word in hydras:
        if word in others:
            continue
        rest = word.lstrip("+").removeprefix(PARAMS)
        if rest.startswith("."):
            value = rest.partition("=")[2]
            quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\"" and value[0] not in value[1:-1]
            found.append(f"{rest[1:].partition('=')[0]}={value[1:-1] if quoted else value}")
            continue
        try:
            made = OverridesParser.create().parse_overrides([f"params{rest}"])[0].value()
        except HydraException as error:
            raise UserError(_unreadable(word)) from error
        if made is not None and not isinstance(made, dict):
            raise UserError(_unreadable(word))
        found += [f"{key}={'null' if value is None else value}" for key, value in (made or {}).items()]
    return found, others


def _unreadable(word: str) -> str:
    return f"cannot read '{word}': write {PARAMS}.seed=1,2, or \"{PARAMS}={{seed: '1,2'}}\"."


def checked(hydras: Sequence[str]) -> DictConfig:
    """Hydra's settings of launcher and sweeper. One sentence for a value with which no study could run."""
    if old := next((word for word in hydras if word.lstrip("+").startswith("hydra.sweeper.search_space")), None):
        raise UserError(f"'{old}': Hydra has given search_space up; write {PARAMS}.key=value, or the key itself.")
    config = composed(hydras, Path("nowhere"), "nothing")
    made = config.hydra.sweeper
    for name in COUNTS:
        if (value := made.get(name)) is not None and value < 1:
            raise UserError(f"hydra.sweeper.{name}={value} is not allowed: it must be an integer of at least 1.")
    if (rate := made.get("max_failure_rate")) is not None and not 0 <= rate <= 1:
        raise UserError(f"hydra.sweeper.max_failure_rate={rate} is not allowed: it must be a number from 0 to 1.")
    direction = getattr(made.get("direction"), "name", made.get("direction"))
    if "direction" in made and direction not in ("minimize", "maximize"):
        raise UserError(f"hydra.sweeper.direction={'null' if direction is None else direction} is not allowed: it "
                        "must be minimize or maximize, as objective= is one figure.")
    return config


def chosen(config: DictConfig) -> Sweeper:
    """The sweeper that the settings name."""
    return Sweeper(str(config.hydra.runtime.choices["hydra/sweeper"]),
                   str(OmegaConf.select(config, "hydra.sweeper.sampler._target_")).endswith(".GridSampler"))


def most_jobs(config: DictConfig, swept: Sequence[Swept], sweeper: Sweeper) -> int | None:
    """How many different jobs a sweeper may ask for; None if its settings do not tell."""
    made = config.hydra.sweeper
    if sweeper.is_population:
        return None
    combinations = math.inf if made.get("custom_search_space") else math.prod(each.count for each in swept)
    most = min(combinations, made.get("n_trials") or math.inf if sweeper.is_optuna else math.inf)
    return int(most) if math.isfinite(most) else None


def make(config: DictConfig, launcher: Launcher, population: Plan | None = None) -> Any:
    """The sweeper, whose jobs `launcher` gets; `population`: what our own needs beside Hydra's settings."""
    if population:
        return Population(config.hydra.sweeper, launcher, population, Path(config.hydra.sweep.dir))
    made: Any = Plugins.instance().instantiate_sweeper(
        config=config, hydra_context=launching.context(config), task_function=lambda _: None)
    getattr(made, "sweeper", made).launcher = launcher  # of a sweeper that is made of two, the inner one
    return made


def rehearse(config: DictConfig, sweeper: Sweeper, asked: list[str], population: Plan | None = None) -> None:
    """Let the sweeper ask for its first jobs, which nobody runs, in no storage. One sentence for what it cannot do."""
    config, storage = config.copy(), config.hydra.sweeper.get("storage")
    with TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with open_dict(config):
            config.hydra.sweep.dir = folder
            if storage:
                config.hydra.sweeper.storage = None
        before = logging.root.manager.disable
        logging.disable(logging.CRITICAL)
        try:
            try:
                make(config, NoLauncher(), population).sweep(asked or ["job=0,1"])
            except Begun:
                pass
            if sweeper.is_optuna and isinstance(storage, str):  # which a study would open next
                importlib.import_module("optuna").storages.get_storage(storage)
        except Exception as error:  # whatever a sweeper raises
            raise UserError(f"hydra/sweeper={sweeper.name}: {line(error)}.") from error
        finally:
            logging.disable(before)


def line(error: Exception) -> str:
    """An error in a line."""
    cause = error.__cause__ if isinstance(error, HydraException) and error.__cause__ else error
    return next((each.strip().rstrip(".:") for each in str(cause).splitlines() if each.strip()), type(cause).__name__)
