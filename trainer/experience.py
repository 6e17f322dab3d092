"""Where the learner's next batch comes from: collected now, or collected while it learned.

`Alternating`  collect, learn, collect, learn ...; the policy that collects is the one that was just learned.
`Overlapping`  a thread collects rollout k + 1 while the learner learns from rollout k. The thread has its own copy of
               the policy, renewed between two rollouts: experience is always of the policy before the last update, one
               update late, never more (HTS-RL's delayed gradients, Liu et al. 2020; VER paper appendix E). `ppo.update`
               corrects for the delay.
`Asynchronous` the thread goes on from rollout to rollout, and acts with the newest weights from its next batch of
               environments on (APPO, Petrenko et al. 2020). A step is learned from at most `max_lag` updates after the
               policy that took it: for this alone collection waits, before a rollout for the learner, and at its end
               for a step that would become too old. Nothing is thrown away.
"""

from __future__ import annotations

import copy
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from trainer.collect import Collector, CollectStats
from trainer.policy import Policy
from trainer.rollout import Rollout

if TYPE_CHECKING:
    from trainer.learner import RankReport


class Experience(ABC):
    """Batches for the learner, one after another."""

    @abstractmethod
    def next(self, policy: Policy, version: int, steps_left: int) -> CollectStats:
        """The next batch. `policy`: the learner's newest, of `version` updates; the run ends in `steps_left` steps."""

    def prepare(self, everyone: Sequence[RankReport]) -> None:
        """All ranks have learned: plan where to end the next rollout early."""

    def content(self) -> dict[str, Any]:
        """What is not learned from yet, and how to go on from it: tensors and plain values."""
        return {}

    def close(self) -> None:
        """End collection that is under way."""


class Alternating(Experience):
    """Collects when asked, in the learner's thread."""

    def __init__(self, collector: Collector, rollout: Rollout):
        self.collector, self.rollout = collector, rollout

    def next(self, policy: Policy, version: int, steps_left: int) -> CollectStats:
        return self.collector.collect(policy, self.rollout, version)

    def prepare(self, everyone: Sequence[RankReport]) -> None:
        self.collector.prepare(everyone)

    def content(self) -> dict[str, Any]:
        return {"collector": self.collector.content(), "rollout": self.rollout.content(), "pending": None}


class Overlapping(Alternating):
    """Collects in a thread of its own, and on a CUDA stream of its own; torch frees the interpreter while it
    computes."""

    def __init__(self, collector: Collector, rollout: Rollout, policy: Policy, saved: dict[str, Any] | None = None,
                 over_ranks: Callable[[int], int] = int):
        """`over_ranks`: adds a number of steps up over all ranks."""
        if rollout.batches < 2:
            raise ValueError("collection that overlaps learning needs a rollout with room for two batches.")
        super().__init__(collector, rollout)
        self._over_ranks = over_ranks
        self.acting = copy.deepcopy(policy).requires_grad_(False)
        for memory in (m for m in self.acting.modules() if isinstance(m, torch.nn.RNNBase)):
            memory.flatten_parameters()  # cuDNN wants the weights in one piece, which a copy does not keep
        self._thread = ThreadPoolExecutor(1, "collector")
        self._pending: deque[Future[CollectStats]] = deque()  # rollouts under way, or done and not asked for
        self._ended_at: float | None = None
        self._cuda = collector.device.type == "cuda"
        self._stream = torch.cuda.Stream(collector.device) if self._cuda else None
        if saved and saved["pending"]:
            done = CollectStats(rows=rollout.batch, step_s=np.zeros(rollout.num_envs), **saved["pending"])
            self._pending.append(self._thread.submit(lambda: done))

    def next(self, policy: Policy, version: int, steps_left: int) -> CollectStats:
        if not self._pending:
            self._begin(policy, version)
        stats = self._pending.popleft().result()
        if self._over_ranks(stats.steps) < steps_left:
            self._begin(policy, version)
        return stats

    def _begin(self, policy: Policy, version: int) -> None:
        """Nobody acts now: renew the acting policy, and let it collect."""
        with torch.no_grad():
            for mine, learned in zip(self.acting.state_dict().values(), policy.state_dict().values()):
                mine.copy_(learned)
        if self._cuda:  # the copy, and the learner's last use of the rows that are overwritten now
            torch.cuda.current_stream(self.collector.device).synchronize()
        self._pending.append(self._thread.submit(self._collect, version))

    def _collect(self, version: int, oldest: int = 0) -> CollectStats:
        torch.set_num_threads(1)
        began = time.perf_counter()
        with torch.cuda.stream(self._stream):  # None: no CUDA, no effect
            stats = self.collector.collect(self.acting, self.rollout, version, oldest)
        if self._stream is not None:
            self._stream.synchronize()
        stats.held_s = began - (self._ended_at or began)
        self._ended_at = time.perf_counter()
        return stats

    def content(self) -> dict[str, Any]:
        done = self._pending[0].result() if self._pending else None  # the collector must be between two rollouts
        pending = {"steps": done.steps, "episodes": done.episodes, "batches": done.batches} if done else None
        return super().content() | {"pending": pending}

    def close(self) -> None:
        self.collector.cancel()
        self._thread.shutdown(wait=True, cancel_futures=True)


class Asynchronous(Overlapping):
    """Collects rollout after rollout, ahead of the learner by as many as the rollout has room for beside the one that
    is learned from."""

    def next(self, policy: Policy, version: int, steps_left: int) -> CollectStats:
        self.collector.weights.offer(policy, version)  # by now the learner has used the rows that are overwritten next
        wanted = -(-steps_left // self._over_ranks(self.rollout.steps))  # rollouts, until all steps are there
        while len(self._pending) < min(self.rollout.batches, wanted):
            # What it leaves under way is learned from after update `number` + 1.
            number = version + len(self._pending)
            self._pending.append(self._thread.submit(self._collect_on, number + 1 - self.rollout.batches))
        return self._pending.popleft().result()

    def _collect_on(self, oldest: int) -> CollectStats:
        try:
            return self._collect(self.collector.weights.version, oldest)
        except BaseException:
            self.collector.cancel()  # no rollout follows
            raise
