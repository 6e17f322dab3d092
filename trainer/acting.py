"""How a policy acts: as one launch on a GPU, recorded for each size of batch, and with which version of its weights."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor

from trainer.nets.encoders import ENCODERS
from trainer.policy import Act, Policy

SIZES = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256)  # a batch is padded to the next; larger ones need no graph


class RecordedActs:
    """`policy.act` for whoever collects with it. Weights may change in place, as optimisers and load_state_dict change
    them. Only the engine's own network with its own encoders is recorded: another may decide in Python what it
    computes, and a recording would not see that. The paper's network takes some two hundred kernels of microseconds:
    the GPU runs them faster than they are started."""

    def __init__(self, policy: Any, device: torch.device, wanted: bool = True):
        self.policy = policy
        self.records = (wanted and device.type == "cuda" and type(policy) is Policy
                        and {type(encoder) for encoder in policy.encoders.values()} <= set(ENCODERS.values()))
        self._recorded: dict[int, tuple[torch.cuda.CUDAGraph, dict[str, Tensor], Act]] = {}
        self._replaying = threading.Lock()  # inference workers share a stream: one at a time fills, replays and reads

    @torch.inference_mode()
    def __call__(self, obs: dict[str, Tensor], state: Tensor, previous: Tensor, generator: torch.Generator) -> Act:
        """As `Policy.act`, with actions drawn by `generator`."""
        count = len(state)
        if not self.records or count > SIZES[-1]:
            return self.policy.act(obs, state, previous, generator=generator)
        # Beside the observations, under names that none of them has.
        given = {k: obs[k] for k in self.policy.seen if k in obs} | {
            " state": state, " previous": previous,
            " noise": torch.randn(count, self.policy.action_size, generator=generator, device=state.device)}
        size = next(s for s in SIZES if s >= count)
        with self._replaying:
            if size not in self._recorded:
                self._recorded[size] = self._record(size, given)
            graph, inputs, act = self._recorded[size]
            for k, values in given.items():
                inputs[k][:count].copy_(values)
            graph.replay()
            return Act(**{k: v[:count].clone() for k, v in vars(act).items()})

    def _record(self, size: int, given: dict[str, Tensor]) -> tuple[torch.cuda.CUDAGraph, dict[str, Tensor], Act]:
        inputs = {k: v.new_zeros(size, *v.shape[1:]) for k, v in given.items()}
        obs = {k: v for k, v in inputs.items() if k in self.policy.seen}

        def act() -> Act:
            return self.policy.act(obs, inputs[" state"], inputs[" previous"], noise=inputs[" noise"])

        device, graph = given[" state"].device, torch.cuda.CUDAGraph()
        aside = torch.cuda.Stream(device)
        aside.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(aside):  # libraries choose their kernels and take their memory before they are recorded
            for _ in range(2):
                act()
        torch.cuda.current_stream(device).wait_stream(aside)
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):  # a learner may be at work on another stream
            acted = act()
        return graph, inputs, acted


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
