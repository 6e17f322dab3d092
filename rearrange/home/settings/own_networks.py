"""Networks of the user's own, by a word. A checkpoint keeps the word that its network was trained with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rearrange.home.errors import UserError
from rearrange.home.settings.installed_parts import NETWORKS, is_importable

if TYPE_CHECKING:
    from trainer.networks import MakePolicy

WHAT = "a class or function (observation_space, action_space, config) -> torch.nn.Module"


def load(word: str, key: str) -> MakePolicy:
    """The network that `key`=`word` means. UserError if there is none."""
    if not NETWORKS.is_own(word):
        known = NETWORKS.installed()
        there = f", or one of the installed: {', '.join(sorted(known))}" if known else ""
        raise UserError(f"{key}={word} is no network: write package.module:Name{there}.")
    network = NETWORKS.load(word, key)
    if not callable(network):
        raise UserError(f"{key}={word} is no network, but of type {type(network).__name__}: give {WHAT}.")
    return network


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
    if word in NETWORKS.installed():
        return load(word, "network")
    name = content["network"]["name"]
    again = word if is_importable(word) else f"package.module:{name.removesuffix('(...)').rpartition('.')[2]}"
    raise CheckpointError(f"its network {name} is one of your own, which is imported only where you type it: add "
                          f"network={again}.")
