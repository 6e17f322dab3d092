"""Words of a command line that say how its jobs run. Imports next to nothing: the quick answers need it."""

from __future__ import annotations

from collections.abc import Sequence

from rearrange.command_line.composition.command_names import SINGLE
from rearrange.home.errors import UserError

OBJECTIVE = "objective"
HELP = """
jobs of -m, skill=all, hab=all and reproduce (docs/cluster.md):
  hydra/launcher=basic|joblib|submitit_local|submitit_slurm   where they run
  hydra/sweeper=basic|optuna|population, objective=success    which -m runs, and what is to be best"""


def split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words that are not Hydra's, and those that are: `hydra/launcher=joblib`, `hydra.launcher.n_jobs=4`."""
    hydras = [word for word in words if word.lstrip("+~").startswith(("hydra.", "hydra/"))]
    return [word for word in words if word not in hydras], hydras


def of_settings(command: str, words: Sequence[str], several: str | None, sweep: bool) -> list[str]:
    """The words that are settings. One sentence if another has no meaning, since there are not several jobs."""
    others, hydras = split(words)
    if hydras and not several:
        how = f"{command} has no jobs: leave it out." if command in SINGLE else "add -m, which runs them."
        raise UserError(f"'{hydras[0]}' says how several jobs run, and {how}")
    objective = next((word for word in others if word.split("=")[0] == OBJECTIVE), None)
    if objective and not sweep:
        raise UserError(f"'{objective}' says what is to be best among the jobs of a sweep: add -m, which runs them.")
    return [word for word in others if word != objective]
