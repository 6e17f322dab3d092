"""`hydra/launcher=`, `hydra/sweeper=` and their settings: which words are Hydra's, and what they make of Hydra's
configuration.

Hydra's launchers and sweepers are used as they are. Not so its composition of a job's settings: see
rearrange/command_line/composition/parse_overrides.py.
"""

from __future__ import annotations

import copy
import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hydra import compose, initialize
from hydra.core.config_loader import ConfigLoader
from hydra.core.config_store import ConfigStore
from hydra.core.plugins import Plugins
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException

from rearrange.home.errors import UserError

GROUPS = ("hydra/launcher", "hydra/sweeper")
PACKAGES = {"joblib": "hydra-joblib-launcher", "submitit_local": "hydra-submitit-launcher",
            "submitit_slurm": "hydra-submitit-launcher", "optuna": "hydra-optuna-sweeper"}
OURS = ("hydra/job_logging=none", "hydra/hydra_logging=none", "hydra.output_subdir=null", "hydra.job.chdir=false",
        "hydra.sweep.subdir=.")
# Where the settings of Hydra's plugins do not suit commands that go on where they were stopped. What is typed stands.
BETTER = {
    "hydra.launcher.max_num_timeout": 1000,  # started again after so many time limits
    "hydra.sweeper.sampler.seed": 0,  # the same command asks for the same jobs, of which finished ones are skipped
    "hydra.sweeper.direction": "maximize",  # success, return
    "hydra.sweeper.max_failure_rate": 1.0,  # a job that fails does not end the others
}
POPULATION = "population"  # the sweeper of our own


@dataclass
class PopulationConfig:
    """Settings of the sweeper `population` (rearrange/command_line/population.py), as `hydra.sweeper.<name>=`."""

    _target_: str = "rearrange.command_line.population.Population"
    members: int = 5  # that train side by side
    every: int = 100_000  # steps of a generation
    share: float = 0.25  # of the members that are replaced, by as many of the best
    factor: float = 1.25  # by which a number that is taken over is multiplied or divided
    resample: float = 0.25  # chance that a setting that is taken over is drawn anew instead
    direction: str = "maximize"
    seed: int = 0  # of the draws
    params: dict[str, str] = field(default_factory=dict)


ConfigStore.instance().store(group="hydra/sweeper", name=POPULATION, node=PopulationConfig, provider="rearrange")


def composed(words: Sequence[str], folder: Path, title: str) -> DictConfig:
    """Hydra's configuration with the words that are Hydra's; `folder`: where launchers keep their files; `title`: what
    jobs are called. One sentence for a mistake."""
    _check(words)
    quoted = str(folder.absolute()).replace("\\", "\\\\").replace("'", "\\'")
    try:
        with initialize(version_base="1.3", config_path=None, job_name=title):
            config = compose(overrides=[*OURS, f"hydra.sweep.dir='{quoted}'", *words], return_hydra_config=True)
    # of OmegaConf, where a mapping is null
    except (HydraException, OmegaConfBaseException, AttributeError, AssertionError) as error:
        raise UserError(_told(error)) from error
    typed = {word.lstrip("+").partition("=")[0] for word in words}
    OmegaConf.set_struct(config, True)
    for key, value in BETTER.items():
        if key not in typed and key.rpartition(".")[2] in (OmegaConf.select(config, key.rpartition(".")[0]) or {}):
            OmegaConf.update(config, key, value)
    return config


def _check(words: Sequence[str]) -> None:
    """Refuse words that have no meaning here, and launchers and sweepers that are not installed."""
    Plugins.instance()  # which reads those that are
    for word in words:
        key, _, value = word.lstrip("+").partition("=")
        if not key.startswith(tuple(f"hydra{sign}{part}" for sign in "./" for part in ("launcher", "sweeper"))):
            raise UserError(f"'{word}': of Hydra's settings hydra/launcher=, hydra/sweeper= and those that begin "
                            "with hydra.launcher. or hydra.sweeper. have a meaning here.")
        if key not in GROUPS:
            continue
        there = [name.removesuffix(".yaml") for name in ConfigStore.instance().list(key) if name.endswith(".yaml")]
        if value in there:
            continue
        if value in PACKAGES:
            raise UserError(f"{key}={value} needs {PACKAGES[value]}, which is not installed: pip install "
                            "'rearrange[cluster]'.")
        choices = [*there,
                   *(name for name in PACKAGES if name not in there and (name == "optuna") == (key == GROUPS[1]))]
        near = difflib.get_close_matches(value, choices, 1, cutoff=0.5)
        hint = f" Did you mean {key}={near[0]}?" if near else ""
        raise UserError(f"no {key} called '{value}'.{hint} Choices: {', '.join(choices)}.")


def _told(error: Exception) -> str:
    """What Hydra says of a mistake, in its first line: it goes on with advice that has no meaning here."""
    line = str(error).splitlines()[0].rstrip(".:")
    if found := re.match(r"Could not override '(.+)'", line):
        return f"unknown setting {found[1]} of Hydra's launcher or sweeper; its documentation lists those that exist."
    why = str(error.__cause__).splitlines()[0].rstrip(".") if error.__cause__ else ""
    return f"{line}: {why}." if why else f"{line}."


class Words(ConfigLoader):
    """What Hydra's plugins ask for a job's configuration: here it is a list of words, the first one the directory of
    the run, and the others a command line, which composes its own settings."""

    def load_sweep_config(self, master_config: DictConfig, sweep_overrides: list[str]) -> DictConfig:
        config = copy.deepcopy(master_config)
        with open_dict(config):
            config.path, config.words = sweep_overrides[0], list(sweep_overrides[1:])
            config.hydra.overrides.task = list(sweep_overrides)
        return config

    def load_configuration(self, *args: Any, **kwargs: Any) -> DictConfig:
        """Hydra's interface has this and the methods below it; launchers and sweepers, which get this loader, load no
        file.
        """
        raise TypeError("a launcher or sweeper of Hydra's asks for a configuration file; a job here is a command line.")

    get_search_path = get_sources = list_groups = get_group_options = compute_defaults_list = load_configuration
