"""Which training run `newest` means: the newest that is finished and no `experiment=debug`. Read from its files
alone.
"""

from __future__ import annotations

import json
from pathlib import Path

from rearrange.command_line.runs.run_directory import has_checkpoints, read_status, runs
from rearrange.home.settings.yaml_files import plain_yaml


def newest_finished(output: Path, what: str) -> tuple[Path | None, list[tuple[Path, str]]]:
    """The newest training run of a skill or scenario that counts, and those newer than it that have a checkpoint too,
    each with why it does not.
    """
    newer: list[tuple[Path, str]] = []
    for run in filter(has_checkpoints, reversed(runs(output, "train", what))):
        if (why := why_not(run)) is None:
            return run, newer
        newer.append((run, why))
    return None, newer


def why_not(run: Path) -> str | None:
    """What keeps a training run that has a checkpoint from being taken by `newest`; None: nothing."""
    status = read_status(run)["status"]
    return status if status != "finished" else "experiment=debug" if _is_debug(run) else None


def _is_debug(run: Path) -> bool:
    """Whether a run was started with experiment=debug, which trains for seconds."""
    try:
        return "experiment=debug" in plain_yaml(run / "overrides.yaml")
    except (OSError, ValueError, TypeError):  # there is none, or it is damaged
        return False


def success(run: Path, output: Path, of_best: str | None = None) -> str | None:
    """How often the policy of a training run succeeds, in words: in its newest evaluation, else what its best
    checkpoint says of itself (`of_best`), else at the end of its training.
    """
    files = [path / "metrics.json" for path in reversed(runs(output, "eval", run.parent.name))]
    for figures in map(_figures, files):
        checkpoint = figures.get("checkpoint")
        if isinstance(checkpoint, str) and run.resolve() in Path(checkpoint).resolve().parents:
            return measured(figures)
    for key, value in read_status(run)["result"].items() if of_best is None else ():
        if key.split("/")[-1] == "success":
            return f"{value:.0%} at the end of its training"
    return of_best


def measured(figures: dict) -> str | None:
    """The success of an evaluation, in words; None where its figures do not say it."""
    try:
        actions = ", mean actions" if figures["deterministic"] else ""
        rule = f", {figures['protocol']}" if figures.get("protocol") else ""
        return f"{figures['success']:.1%} of {figures['episodes']} episodes, split={figures['split']}{actions}{rule}"
    except (KeyError, TypeError, ValueError):
        return None


def _figures(file: Path) -> dict:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
