"""Evaluation of rearrange: success with intervals, videos, throughput."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eval.evaluate import EpisodeResult, Job
    from eval.intervals import bootstrap, wilson

__all__ = ["EpisodeResult", "Job", "bootstrap", "wilson"]  # and the function eval.evaluate.evaluate
_HOME = {"EpisodeResult": "evaluate", "Job": "evaluate", "bootstrap": "intervals", "wilson": "intervals"}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'eval' has no attribute '{name}'")
    return getattr(import_module(f"eval.{_HOME[name]}"), name)
