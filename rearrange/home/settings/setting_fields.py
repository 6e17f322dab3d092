"""Settings of our own dataclasses, as `trainer.setting_rules` has them; a value that is not allowed is a mistake of
the user."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rearrange.home.errors import UserError
from trainer import setting_rules
from trainer.setting_rules import TEXTS, Key, NotAllowed, Rule, block, keys_of, like, made_of, plain_of, setting, shown

__all__ = ["TEXTS", "Key", "NotAllowed", "Rule", "block", "check", "checked", "keys_of", "like",
           "made_of", "plain_of", "setting", "shown"]


@contextmanager
def _of_the_user() -> Iterator[None]:
    try:
        yield
    except NotAllowed as error:
        raise UserError(str(error)) from None


def check(settings: Any, prefix: str = "") -> None:
    """UserError for the first setting of a dataclass that is not allowed."""
    with _of_the_user():
        setting_rules.check(settings, prefix)


def checked(rule: Rule | None, name: str, given: Any) -> Any:
    """A value given in Python in the type of its rule, or UserError."""
    with _of_the_user():
        return setting_rules.checked(rule, name, given)
