"""The settings of one command, as `rearrange.command_line.composition.parse_overrides` composes and checks them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from omegaconf import DictConfig, OmegaConf

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

    def update(self, values: Mapping[str, Any]) -> None:
        """Set settings by their full names."""
        for name, value in values.items():
            OmegaConf.update(self.config, name, value)

    def plain(self) -> dict[str, Any]:
        """The settings as nested dicts and lists."""
        return OmegaConf.to_container(self.config, resolve=True)
