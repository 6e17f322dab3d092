"""Which version of the policy acts, and how a newer one takes its place while environments are answered."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor


class Weights:
    """The version of the policy that several inference workers act with. Another thread may offer newer weights at any
    time: each worker's next batch is answered with them, and no batch with a mixture."""

    def __init__(self, workers: int):
        self.version = 0
        self._offered: deque[tuple[list[Tensor], int]] = deque(maxlen=1)  # the newest
        self._acting = [threading.Lock() for _ in range(workers)]

    def offer(self, policy: Any, version: int) -> None:
        """Let the weights that `policy` has now, after `version` updates, act from the next batch on."""
        copies = [values.detach().clone() for values in policy.state_dict().values()]
        _finish_on(copies)  # another stream reads them
        self._offered.append((copies, version))

    @contextmanager
    def act(self, worker: int, policy: Any) -> Iterator[int]:
        """The version of the acting policy, which stays as it is meanwhile."""
        if self._offered:
            self._renew(policy)
        with self._acting[worker]:
            yield self.version

    @torch.no_grad()
    def _renew(self, policy: Any) -> None:
        with ExitStack() as nobody_acts:
            for lock in self._acting:
                nobody_acts.enter_context(lock)
            if self._offered:  # else another worker was quicker
                values, version = self._offered.pop()
                for mine, newer in zip(policy.state_dict().values(), values):
                    mine.copy_(newer)
                _finish_on(values)  # their memory is free from here on
                self.version = version


def _finish_on(tensors: list[Tensor]) -> None:
    """Wait until a GPU has done what this thread has asked it for."""
    if tensors and tensors[0].is_cuda:
        torch.cuda.current_stream(tensors[0].device).synchronize()
