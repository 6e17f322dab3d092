"""What the ranks of a run tell each other after every update."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from trainer.collect import CollectStats


@dataclass
class RankReport:
    """Of one rank, after one update."""

    collected: CollectStats  # without its rows, which mean nothing elsewhere
    batch_steps: int  # steps that were learned from, those of an earlier rollout included
    learn_s: float
    stop: str | None  # why this rank asks the run to stop: a signal's name, or a callback's reason
    save: bool  # this rank finds that a checkpoint is due

    @staticmethod
    def of(collected: CollectStats, learn_s: float, stop: str | None, save: bool) -> RankReport:
        return RankReport(replace(collected, rows=np.empty(0, np.int64)), len(collected.rows), learn_s, stop, save)
