"""The exception for a user's mistake, and the one of an episode in which the robot cannot start."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["NoStartPose", "UserError", "suggestion"]


class UserError(ValueError):
    """A mistake of the user, told in one sentence: what is wrong, the value, what is allowed, what to do.

    The command line and environment workers pass it on without a traceback; the command line exits with status 2.
    """

    in_plain_words = True


class NoStartPose(Exception):
    """The robot cannot start an episode anywhere that the skill allows."""


class CannotStart(UserError):
    """No episode of those that were asked for can be started."""


class NoGoal(UserError):
    """A home has nothing that could be the goal of a navigation task."""


def suggestion(name: str, known: Iterable[str]) -> str:
    """` (did you mean 'pick'?)`, or nothing."""
    close = difflib.get_close_matches(name, list(known), 1)
    return f" (did you mean {close[0]!r}?)" if close else ""
