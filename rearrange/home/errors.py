"""The exception for a user's mistake, and the one of an episode in which the robot cannot start."""

__all__ = ["NoStartPose", "UserError"]


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
