"""Networks of the user's own, by a word: the name of an entry point of installed packages, or `package.module:Name`.

A checkpoint keeps the word that its network was trained with. An installed entry point is loaded for it;
`package.module:Name` is imported only where the user typed it, since a file from elsewhere must not choose what is
imported. """

from __future__ import annotations

import functools
import os
import traceback
from importlib import metadata
from typing import TYPE_CHECKING, Any

from rearrange.home.errors import UserError
from rearrange.home.settings.setting_fields import TEXTS
from trainer.logs.printable import first_line, printable

if TYPE_CHECKING:
    from trainer.networks import MakePolicy

GROUP = "rearrange.policies"  # of entry points
WHAT = "a class or function (observation_space, action_space, config) -> torch.nn.Module"


@functools.cache
def installed() -> dict[str, str]:
    """Name -> `package.module:Name` of the networks that installed packages offer; of two of one name the first."""
    return {entry.name: entry.value for entry in reversed(tuple(metadata.entry_points(group=GROUP)))}


def _refuse_two(word: str, key: str) -> None:
    """UserError where several packages offer different networks of one name."""
    values = {entry.value: entry.dist.name if entry.dist else "?"
              for entry in metadata.entry_points(group=GROUP, name=word)}
    if len(values) > 1:
        offered = ", ".join(f"{value} by {package}" for value, package in sorted(values.items()))
        raise UserError(f"{key}={word} is what several installed packages call a network ({printable(offered)}): "
                        "write package.module:Name, or uninstall one.")


def is_own(word: str) -> bool:
    """Whether a word may be that of a network."""
    return bool(TEXTS["importable"][0].fullmatch(word)) or word in installed()


def as_typed(key: str, word: str | None) -> str:
    """The setting that a later command needs to load a network again, after a space; empty where it needs none."""
    return f" {key}={word}" if word and word not in installed() else ""


def load(word: str, key: str) -> MakePolicy:
    """The network that `key`=`word` means. UserError if there is none."""
    if not is_own(word):
        there = f", or one of the installed: {', '.join(sorted(installed()))}" if installed() else ""
        raise UserError(f"{key}={word} is no network: write package.module:Name{there}.")
    _refuse_two(word, key)
    network = imported(word, key, installed().get(word, word))
    if not callable(network):
        raise UserError(f"{key}={word} is no network, but of type {type(network).__name__}: give {WHAT}.")
    return network


def imported(word: str, key: str, value: str | None = None) -> Any:
    """What `package.module:Name` is, the word itself or the value that it stands for. UserError if it cannot be
    imported."""
    try:
        return metadata.EntryPoint(word, value or word, GROUP).load()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # whatever foreign code raises, SystemExit too
        missing = isinstance(error, ModuleNotFoundError)
        hint = f" Put the folder of {error.name} on PYTHONPATH, or install it." if missing else ""
        raise UserError(f"{key}={word} cannot be loaded: {told(error)}.{hint}") from error


def told(error: BaseException) -> str:
    """An error of the user's code in one line, and where in it."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    callers = ("importlib", os.path.join("trainer", "networks.py"))
    where = "" if any(caller in place.filename for caller in callers) else f" ({place.filename}, line {place.lineno})"
    return f"{type(error).__name__}: {first_line(error)}{where}"


def of_checkpoint(content: dict[str, Any], typed: str | None = None) -> MakePolicy:
    """The network that a checkpoint's policy is loaded into. `typed`: what the user gave as network=. CheckpointError
    where only the user may name it."""
    from trainer.errors import CheckpointError
    from trainer.policy import Policy

    if typed:
        return load(typed, "network")
    if "network" not in content:
        return Policy
    word = str(content.get("meta", {}).get("network"))
    if word in installed():
        return load(word, "network")
    name = content["network"]["name"]
    again = word if TEXTS["importable"][0].fullmatch(
        word) else f"package.module:{name.removesuffix('(...)').rpartition('.')[2]}"
    raise CheckpointError(f"its network {name} is one of your own, which is imported only where you type it: add "
                          f"network={again}.")
