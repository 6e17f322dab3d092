"""Which trained policy runs a skill or a scenario, why, its measured success, and which runs are passed over.

    pretrained   the policy that comes with the package
    newest       that of the newest finished training run; the package's where there is none
    a path       a checkpoint file, or the newest of a run's directory
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rearrange.command_line.composition.options import ExportOptions, ServeOptions
from rearrange.command_line.runs.finished_runs import measured, newest_finished, success
from rearrange.command_line.runs.names import folder_name
from rearrange.home.errors import UserError
from rearrange.home.settings.environment import NAVIGATION
from rearrange.home.text_table import columns
from skills import is_skill, pretrained

WORDS = ("pretrained", "newest")
ASKED = "asked for"  # why, where a word or path was typed
NAMED = 2  # runs of one skill that are named as passed over


@dataclass(frozen=True)
class Choice:
    """What runs one skill or scenario."""

    what: str  # the skill or scenario
    run_by: str  # a word or a path, for people
    why: str
    checkpoint: Path | None = None  # None: an expert, say
    success: str | None = None  # as it was measured before
    passed_over: tuple[str, ...] = ()  # training runs of one's own, each with the word that takes it


def choose(word: str | None, what: str, output: Path, key: str, default: str = "newest") -> Choice:
    """The checkpoint that `word` means for skill or scenario `what`; None: nothing was said, which means `default`.

    output: where runs are kept. key: the setting that chooses, for people. UserError where there is no such checkpoint.
    """
    if word not in (None, *WORDS):
        return _given(word, what, output, key)
    asked = word or default
    run, newer = (None, []) if word == "pretrained" else newest_finished(output, what)
    passed = [f"{path} ({why}): {key}={path} takes it" for path, why in newer]
    if asked == "newest" and run:
        return _of_run(run, what, output, passed)
    if what not in pretrained.names():
        raise UserError(_nothing(asked, what, output, key, passed))
    if run:
        passed.insert(0, f"{run} (finished, {success(run, output) or 'success unknown'}): {key}=newest takes it")
    why = "no finished run of your own" if asked == "newest" else ASKED if word else "the default"
    return Choice(what, "pretrained", why, pretrained.path(what), _of_card(what), tuple(passed))


def asked_for(command: str, options: ExportOptions | ServeOptions) -> tuple[Choice, dict[str, Any]]:
    """The policy that skill=, nav= and checkpoint= of `rearrange serve` or `rearrange export` mean, and what its
    checkpoint holds. UserError where there is none, or it is of another skill."""
    from eval.trained_policy import of_what, training_of
    from trainer.checkpoint import CheckpointError, load_checkpoint

    given = {group: options.choices[group] for group in ("skill", "nav") if group in options.choices}
    if len(given) > 1:
        raise UserError(f"skill={given['skill']} and nav={given['nav']} are both given: {command} takes one policy.")
    group, task = next(iter(given.items()), ("skill", None))
    if task is None and options.checkpoint in (None, *WORDS):
        raise UserError(f"which policy? For example: rearrange {command} skill=pick, or checkpoint= of a file or run "
                        "directory.")
    choice = choose(options.checkpoint, task or "a policy", Path(options.output), "checkpoint")
    try:
        content = load_checkpoint(choice.checkpoint)
    except CheckpointError as error:
        raise UserError(str(error)) from error
    meta = training_of(content)
    if task is not None and meta.get(group) != task:
        raise UserError(f"{choice.checkpoint} is a checkpoint of {of_what(meta)}, not of {task}: leave {group}= out.")
    return choice, content


def _of_run(run: Path, what: str, output: Path, passed: Iterable[str]) -> Choice:
    from trainer.checkpoint import best

    path = best(run)
    return Choice(what, str(path), "the newest finished run", path, success(run, output, _of_best(path)), tuple(passed))


def _of_best(path: Path) -> str | None:
    """The success that made a checkpoint the best of its run, in words; None for any other checkpoint."""
    from trainer.checkpoint import BEST, CheckpointError, load_checkpoint

    try:
        content = load_checkpoint(path) if path.name == BEST else {}
        measure, value = content["evaluation"]["measure"], content["evaluation"]["value"]
        return f"{value:.0%} in the evaluation at step {content['step']:,}" if measure == "success" else None
    except (CheckpointError, KeyError, TypeError, ValueError):  # damaged: whoever loads it says so
        return None


def _given(word: str, what: str, output: Path, key: str) -> Choice:
    """The checkpoint at a path."""
    from trainer.checkpoint import CheckpointError, best

    try:
        path = best(Path(word))
    except CheckpointError as error:
        near = difflib.get_close_matches(word, (*WORDS, "expert", "random"), 1)
        hint = f" Did you mean {key}={near[0]}?" if near else ""
        raise UserError(f"{key}: {error}{hint} {_instead(what, key)}") from error
    known = success(path.parents[1], output, _of_best(path)) if path.parent.name == "checkpoints" else None
    return Choice(what, str(path), ASKED, path, known)


def _nothing(asked: str, what: str, output: Path, key: str, passed: Iterable[str]) -> str:
    """The sentence for a policy that does not exist."""
    folder = output / "train" / folder_name(what)
    where = f", and {folder} has no finished training run of it" if asked == "newest" else ""
    there = "".join(f"; there is {run}" for run in passed)
    return f"no policy of {what} comes with the package{where}{there}. {_instead(what, key)}"


def _instead(what: str, key: str) -> str:
    group = "skill" if is_skill(what) else "nav" if what in NAVIGATION else "hab"
    train = f"Train one with 'rearrange train {group}={what}'"
    other = f"take the scripted expert with {key}=expert" if key.startswith("skills.") else f"give {key}="
    return f"{train}, or {other}."


def _of_card(skill: str) -> str | None:
    """Measured success of the package's policy, in validation apartments where it was measured there, by the protocol
    that it was trained with, as it is evaluated: in a card HAB's comes first."""
    rows = pretrained.card(skill)["evaluations"]
    return measured(next((row for row in reversed(rows) if row["split"] == "val"), rows[0])) if rows else None


def table(choices: Iterable[Choice]) -> list[str]:
    """What runs each skill, as lines of text; below it the runs of one's own that are passed over."""
    choices, rows = list(choices), {}
    for choice in choices:  # one row for all experts
        rows.setdefault((choice.run_by, choice.why, choice.success or "-", choice.checkpoint), []).append(choice.what)
    lines = columns([("skill", "run by", "why", "measured success"),
                     *((", ".join(what), *row[:3]) for row, what in rows.items())])
    for choice in choices:
        lines += [f"passed over: {run}" for run in choice.passed_over[:NAMED]]
        if (more := len(choice.passed_over) - NAMED) > 0:
            lines.append(f"passed over: {more} more of {choice.what}")
    return lines
