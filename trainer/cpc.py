"""CPC|A: contrastive predictive coding, conditioned on actions, as an auxiliary loss (Guo et al. 2018; after DD-PPO: Ye
et al., "Auxiliary Tasks Speed Up Learning PointGoal Navigation", 2020).

From the policy's memory at a step and the actions that follow, a second LSTM predicts which image the agent sees k
steps later, k from 1 to 20, against 20 others of the mini-batch. The network `policy=cpc` has this loss: the value that
its `evaluate` returns carries the gradient, and nothing in PPO knows of it.

Sizes are those of habitat-baselines (cpc_aux_loss.py). There the mean over valid predictions is multiplied by their
share a second time; here it is a mean.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from trainer.config import PolicyConfig
from trainer.policy import Policy
from trainer.sequences import Sequences

__all__ = ["CPCPolicy"]

STEPS = 20  # k at most
STARTS = 6  # of each sequence, from which predictions are made
OF_A_START = 2  # predictions that count of each start, so that they are not all alike
NEGATIVES = 20
WEIGHT = 0.1
ACTION_SIZE = 32


def starts_and_reach(lengths: np.ndarray, generator: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
    """Up to `STARTS` random steps, not the last, of each of K sequences laid end to end: their rows (n,), and how many
    steps follow each in its own sequence, at most `STEPS` (n,)."""
    rows, reach, first = [], [], 0
    for length in lengths.tolist():
        at = torch.randperm(max(length - 1, 0), generator=generator)[:STARTS]
        rows.append(first + at)
        reach.append((length - 1 - at).clamp(max=STEPS))
        first += length
    return torch.cat(rows), torch.cat(reach)


class CPC(nn.Module):
    """The loss. `memory_size`: of what the policy remembers; `image_size`: of the embeddings of its images."""

    def __init__(self, memory_size: int, image_size: int, action_size: int):
        super().__init__()
        self.action = nn.Linear(action_size, ACTION_SIZE)
        self.future = nn.LSTM(ACTION_SIZE, memory_size)
        self.of_future = nn.Linear(memory_size, memory_size)
        self.of_image = nn.Linear(image_size, memory_size, bias=False)
        self.score = nn.Sequential(nn.ReLU(), nn.Linear(memory_size, memory_size), nn.ReLU(), nn.Linear(memory_size, 1))
        for name, parameter in self.named_parameters():
            nn.init.zeros_(parameter) if "bias" in name else nn.init.orthogonal_(parameter)

    def forward(self, memory: Tensor, images: Tensor, previous: Tensor, lengths: np.ndarray) -> Tensor:
        """Mean loss of the predictions, none of which crosses the end of a sequence; 0 where all sequences are too
        short.

        Args:
            memory: (M, F) of M steps laid out as K sequences.
            images: (M, E) embeddings.
            previous: (M, A) the action before each step.
            lengths: (K,) of the sequences.
        """
        rows, reach = starts_and_reach(lengths)
        if not len(rows):
            return 0.0 * sum(parameter.sum() for parameter in self.parameters())
        rows, reach = rows.to(memory.device), reach.to(memory.device)
        after = torch.arange(1, STEPS + 1, device=memory.device)[:, None]  # (STEPS, 1)
        valid = after <= reach  # (STEPS, n)
        at = torch.where(valid, rows + after, rows)
        start = memory[rows].unsqueeze(0)
        predicted, _ = self.future(self.action(previous[at]), (start, torch.zeros_like(start)))  # (STEPS, n, F)
        drawn = torch.rand(valid.shape, device=memory.device).masked_fill(~valid, -1.0).topk(OF_A_START, 0).indices
        counts = valid.gather(0, drawn)
        k, n = drawn[counts], torch.arange(len(rows), device=memory.device).expand_as(drawn)[counts]
        future = self.of_future(predicted[k, n]).unsqueeze(1)  # (p, 1, F)
        right = at[k, n]
        others = torch.randint(max(len(images) - 1, 1), (len(right), NEGATIVES), device=memory.device)
        others = others + (others >= right[:, None]).long() if len(images) > 1 else others  # never the right one
        candidates = self.of_image(images[torch.cat([right[:, None], others], 1)])
        scores = self.score(future + candidates).squeeze(-1)  # (p, 1 + NEGATIVES)
        truth = torch.zeros_like(scores)
        truth[:, 0] = 1.0
        errors = binary_cross_entropy_with_logits(scores, truth, reduction="none")
        return errors[:, 0].mean() + errors[:, 1:].mean()


class _Carry(torch.autograd.Function):
    """`value` as it is, with the gradient of a loss beside its own."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, loss: Tensor) -> Tensor:
        return value.view_as(value)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        return gradient, gradient.new_ones(())


class CPCPolicy(Policy):
    """The engine's policy with CPC|A beside PPO's losses."""

    def __init__(self, observation_space: spaces.Space, action_space: spaces.Space, config: PolicyConfig):
        super().__init__(observation_space, action_space, config)
        if not self.image_keys or not self.lstm:
            raise ValueError("CPC|A needs images and an LSTM: policy.encoder and policy.lstm_layers must be set.")
        self.cpc = CPC(config.hidden_size, config.embedding_size * len(self.image_keys), self.action_size)
        self._images: list[Tensor] = []
        self._memory: Tensor | None = None

    def _encode(self, key: str, image: Tensor) -> Tensor:
        self._images.append(super()._encode(key, image))
        return self._images[-1]

    def _run_lstm(self, features: Tensor, sequences: Sequences, state: Tensor) -> Tensor:
        self._memory = super()._run_lstm(features, sequences, state)
        return self._memory

    def _inputs(self, obs: dict[str, Tensor], previous: Tensor) -> Tensor:
        self._images = []
        inputs = super()._inputs(obs, previous)
        self._seen = torch.cat(self._images, -1)  # what a critic of its own encodes later is not among it
        return inputs

    def evaluate(self, obs: dict[str, Tensor], previous: Tensor, action: Tensor, sequences: Sequences,
                 state: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """As the engine's; while it learns, the value carries the gradient of the auxiliary loss."""
        log_prob, entropy, value, mean = super().evaluate(obs, previous, action, sequences, state)
        if torch.is_grad_enabled():
            loss = self.cpc(self._memory.float(), self._seen.float(), previous, sequences.lengths)
            value = _Carry.apply(value, WEIGHT * loss)
        return log_prob, entropy, value, mean

    forward = evaluate
