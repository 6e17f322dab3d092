"""The settings of one command, composed and checked; `rearrange.command_line.composition.parse_overrides` makes them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from omegaconf import DictConfig, ListConfig, OmegaConf

from rearrange.home.settings.setting_fields import Key


@dataclass(frozen=True)
class Settings:
    """A composed and checked configuration, and how it came about."""

    command: str
    overrides: tuple[str, ...]  # as typed, each `key=value`
    choices: dict[str, str]  # group -> choice, defaults included
    config: DictConfig
    keys: dict[str, Key] = field(repr=False)  # full name -> what it may be and means
    notes: tuple[str, ...] = ()  # what a person should know about them


def leaves(config: DictConfig, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """(dotted key, value) of every key that is not a mapping; lists count as values."""
    for name in config:
        value = config[name]
        if isinstance(value, DictConfig):
            yield from leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", OmegaConf.to_container(value) if isinstance(value, ListConfig) else value
