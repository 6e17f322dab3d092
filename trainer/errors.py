"""How a run of the engine fails: every error that says which part failed, in one sentence."""

from __future__ import annotations

from typing import Any


class CheckpointError(Exception):
    """A file that is not a checkpoint of this program, is damaged, or belongs to something else."""


class WorkerError(RuntimeError):
    """An environment worker failed, died or hung; the message names it and says how."""


class RankError(RuntimeError):
    """Another rank died or failed. `told_elsewhere`: another rank prints the message; this one is to be silent."""

    def __init__(self, message: str, told_elsewhere: bool):
        super().__init__(message)
        self.told_elsewhere = told_elsewhere


class NonFinite(RuntimeError):
    """The policy, its loss or its parameters became NaN or infinite. The learner was put back to before that update.

    `inputs`: of a policy that failed while it acted: observations, recurrent state, previous action (tensors).
    """

    def __init__(self, message: str, inputs: dict[str, Any] | None = None):
        super().__init__(message)
        self.inputs = inputs


class NonFiniteLoss(NonFinite):
    """The loss or its gradient became NaN or infinite."""


class Cancelled(Exception):
    """Collection was told to end from another thread."""
