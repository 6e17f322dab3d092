"""Acting on a GPU as one launch: the network's step is recorded as a CUDA graph for each size of batch, and replayed.

The paper's network takes some two hundred kernels of microseconds: the GPU runs them faster than they are started.
"""

from __future__ import annotations

import threading
from typing import Any

import torch
from torch import Tensor

from trainer.nets.encoders import ENCODERS
from trainer.policy import Act, Policy

SIZES = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256)  # a batch is padded to the next; larger ones need no graph


class RecordedActs:
    """`policy.act` for whoever collects with it. Weights may change in place, as optimisers and load_state_dict change
    them. Only the engine's own network with its own encoders is recorded: another may decide in Python what it
    computes, and a recording would not see that."""

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
