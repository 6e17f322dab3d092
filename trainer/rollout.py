"""The one place experience lives: a linear buffer of steps, filled by whichever environment is ready.

A *row* is one step: what the policy saw and did, and, once the environment has answered, the reward and the value of
the state that followed. A row is *open* until that answer arrives; every environment has at most one open row. A
rollout ends when S = T x N rows have been closed, wherever they came from. Open rows, of environments that still
simulate, keep their place and are closed in the next rollout (VER paper 2.2, "Inflight actions"): nothing simulated is
lost and nothing is copied.

The rows of a finished rollout are its *batch*: a list of row numbers. The oldest experience is overwritten first, so a
rollout that was ended early can fill its batch with rows that the rollout before has closed (VER paper 2.3). It never
takes rows that had filled that one, so no step is learned from more than twice. With room for two batches, one is
collected while the other is learned from; with room for more, others wait meanwhile.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from trainer.sequences import Sequences

if TYPE_CHECKING:
    from trainer.cloning.demonstrations import Demonstration
    from trainer.networks import PolicyNetwork

NO_ROW = -1


@dataclass(frozen=True)
class Batch:
    """Steps of one mini-batch, on the learner's device; M steps in K sequences."""

    obs: dict[str, Tensor]  # key -> (M, ...)
    previous: Tensor  # (M, A) previous action as network input
    action: Tensor  # (M, A), or (M, parts) where it is discrete
    sequences: Sequences
    state: Tensor  # (K, state_size) recurrent state that entered the first step of each sequence

    def given_to(self, evaluate: Callable[..., Any]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """What `evaluate`, a `PolicyNetwork.evaluate`, gives for it."""
        return evaluate(self.obs, self.previous, self.action, self.sequences, self.state)


class Rollout:
    """Storage of `batches` S + N rows: while one batch is collected, the others before it are kept.

    Large fields are tensors on `device`, book-keeping is numpy on the CPU.
    """

    def __init__(self, num_envs: int, steps: int, obs_shapes: dict[str, tuple[int, ...]], action_size: int,
                 discrete: int, state_size: int, device: torch.device, batches: int = 1,
                 obs_types: Mapping[str, np.dtype] | None = None):
        """
        Args:
            num_envs: N.
            steps: S, of a whole rollout.
            obs_shapes: by key.
            action_size: A.
            discrete: parts of a discrete action; 0 for a Box.
            state_size: floats of recurrent state.
            device: of the large fields.
            batches: 1, or more where collection goes on while the learner learns.
            obs_types: uint8 for observations that are kept as bytes; all are handed out as floats.
        """
        rows = batches * steps + num_envs
        self.num_envs, self.steps, self.rows, self.batches = num_envs, steps, rows, batches
        of_bytes = {k for k, kind in (obs_types or {}).items() if kind == np.uint8}
        self.obs = {k: torch.zeros(rows, *shape, device=device, dtype=torch.uint8 if k in of_bytes else torch.float32)
                    for k, shape in obs_shapes.items()}
        self.previous = torch.zeros(rows, action_size, device=device)
        self.action = (torch.zeros(rows, discrete, dtype=torch.long, device=device) if discrete
                       else torch.zeros(rows, action_size, device=device))
        self.log_prob = torch.zeros(rows, device=device)
        self.state = torch.zeros(rows, state_size, device=device)
        self.value = np.zeros(rows, np.float32)
        self.reward = np.zeros(rows, np.float32)
        self.next_value = np.zeros(rows, np.float32)
        self.env = np.zeros(rows, np.int64)
        self.step = np.zeros(rows, np.int64)  # running step count of its environment
        self.starts_episode = np.zeros(rows, bool)
        self.version = np.zeros(rows, np.int64)  # policy version that acted
        self.open_row = np.full(num_envs, NO_ROW, np.int64)  # per environment
        self.env_steps = np.zeros(num_envs, np.int64)
        self._free = np.arange(rows)
        self._used = 0
        self.closed: np.ndarray = np.empty(steps, np.int64)  # rows closed in this rollout, in order
        self.num_closed = 0
        self.total = 0  # rows closed since the beginning
        self.batch = np.empty(0, np.int64)  # rows of the newest finished rollout
        self._older: deque[np.ndarray] = deque(maxlen=max(0, batches - 2))  # those before it that are kept, too
        self._closed_before = np.zeros(rows, bool)  # rows that were closed in it

    def begin(self) -> None:
        """Start a rollout. Open rows stay; of the others, the oldest experience is overwritten first. With room for
        several batches all but the oldest are not overwritten."""
        is_free = np.ones(self.rows, bool)
        is_free[self.open_row[self.open_row != NO_ROW]] = False
        for rows in (self.batch, *self._older):
            is_free[rows] = False
        age = np.lexsort((self.version[self.batch], self._closed_before[self.batch]))  # what filled it up goes first
        self.batch = self.batch[age]
        self._free = np.flatnonzero(is_free)
        if self.batches == 1:
            self._free = np.concatenate([self._free, self.batch])
        self._used = 0
        self.num_closed = 0

    def finish(self, fill: bool = True) -> np.ndarray:
        """End the rollout: its batch, the rows closed in it. If it ends early and `fill` is true, the newest steps that
        the rollout before has closed take the place of missing ones, as far as there are any."""
        closed = self.closed[: self.num_closed]
        batch = closed.copy()
        if fill and self.remaining and len(self.batch):
            # At least S - closed rows of the batch before are left: each row used beyond the free ones was opened after
            # a step was closed.
            old = self._free[self._used :] if self.batches == 1 else self.batch
            batch = np.concatenate([batch, old[self._closed_before[old]][-self.remaining :]])
        self._closed_before[:] = False
        self._closed_before[closed] = True
        self._older.append(self.batch)
        self.batch = batch
        return batch

    @property
    def remaining(self) -> int:
        """Rows still to be closed before the rollout is complete."""
        return self.steps - self.num_closed

    def close(self, envs: np.ndarray, reward: np.ndarray, next_value: np.ndarray) -> None:
        """The environments' answers to their open rows. envs, reward, next_value: (B,); next_value 0 if terminated."""
        rows = self.open_row[envs]
        self.reward[rows] = reward
        self.next_value[rows] = next_value
        self.closed[self.num_closed : self.num_closed + len(rows)] = rows
        self.num_closed += len(rows)
        self.total += len(rows)
        self.open_row[envs] = NO_ROW

    def open(self, envs: np.ndarray, obs: dict[str, Tensor], previous: Tensor, state: Tensor, action: Tensor,
             log_prob: Tensor, value: np.ndarray, starts_episode: np.ndarray, version: int) -> None:
        """New steps of B environments whose answers are awaited. Leading dimension B everywhere."""
        rows = self._free[self._used : self._used + len(envs)]
        self._used += len(envs)
        where = torch.from_numpy(rows).to(self.log_prob.device)
        for k, tensor in self.obs.items():
            tensor.index_copy_(0, where, obs[k].to(tensor.dtype))
        self.previous.index_copy_(0, where, previous)
        self.state.index_copy_(0, where, state)
        self.action.index_copy_(0, where, action)
        self.log_prob.index_copy_(0, where, log_prob)
        self.value[rows] = value
        self.env[rows] = envs
        self.step[rows] = self.env_steps[envs]
        self.starts_episode[rows] = starts_episode
        self.version[rows] = version
        self.env_steps[envs] += 1
        self.open_row[envs] = rows

    def take(self, episodes: Sequence[Demonstration], policy: PolicyNetwork, version: int) -> np.ndarray:
        """Put whole demonstrated episodes, at most S steps together, in the place of all that there is; their rows."""
        lengths = [len(episode.reward) for episode in episodes]
        total = sum(lengths)
        first = np.cumsum(lengths) - lengths
        for k, tensor in self.obs.items():
            tensor[:total] = torch.from_numpy(np.concatenate([episode.obs[k] for episode in episodes]))
        self.action[:total] = torch.from_numpy(np.concatenate([episode.action for episode in episodes]))
        self.previous[1:total] = policy.action_features(self.action[: total - 1])
        self.previous[torch.from_numpy(first)] = 0
        self.reward[:total] = np.concatenate([episode.reward for episode in episodes])
        self.env[:total] = np.repeat(np.arange(len(lengths)), lengths)
        self.step[:total] = np.arange(total)
        self.starts_episode[:total] = False
        self.starts_episode[first] = True
        self.version[:total] = version
        self.total += total
        return np.arange(total)

    def gather(self, rows: np.ndarray, lengths: np.ndarray) -> Batch:
        """Copy steps `rows` (M,), laid out as sequences of `lengths` (K,), into one batch."""
        device = self.log_prob.device
        where = torch.from_numpy(rows).to(device)
        first = torch.from_numpy(rows[np.cumsum(lengths) - lengths]).to(device)
        return Batch(self.observations(rows), self.previous.index_select(0, where), self.action.index_select(0, where),
                     Sequences(lengths, device), self.state.index_select(0, first))

    def observations(self, rows: np.ndarray) -> dict[str, Tensor]:
        """Of steps `rows` (M,), as floats: key -> (M, ...)."""
        where = torch.from_numpy(rows).to(self.log_prob.device)
        return {k: tensor.index_select(0, where).float() for k, tensor in self.obs.items()}

    def content(self) -> dict[str, Any]:
        """What must outlive a restart: the open rows and, with room for two batches, the newest batch. As tensors."""
        is_open = self.open_row[self.open_row != NO_ROW]
        batch = self.batch if self.batches == 2 else np.empty(0, np.int64)
        rows = np.concatenate([is_open, batch])
        fields = {k: v[torch.from_numpy(rows).to(v.device)].cpu() for k, v in self.tensors().items()}
        fields |= {k: torch.from_numpy(v[rows]) for k, v in self.arrays().items()}
        return {"fields": fields, "open": len(is_open), "env_steps": torch.from_numpy(self.env_steps.copy()),
                "closed": torch.from_numpy(self._closed_before[rows])}

    def restore(self, content: dict[str, Any]) -> None:
        """The inverse of `content`; row numbers may differ, which matters to nothing."""
        fields, count = content["fields"], content["open"]
        total = len(fields["log_prob"])
        for k, tensor in self.tensors().items():
            tensor[:total] = fields[k].to(tensor.device)
        for k, array in self.arrays().items():
            array[:total] = fields[k].numpy()
        self.open_row[:] = NO_ROW
        self.open_row[self.env[:count]] = np.arange(count)
        self.batch = np.arange(count, total)
        self._closed_before[:total] = content["closed"].numpy() if "closed" in content else True
        self.total = total - count
        self.env_steps[:] = content["env_steps"].numpy()

    def tensors(self) -> dict[str, Tensor]:
        """The fields on the device, by name."""
        fields = {"previous": self.previous, "action": self.action, "log_prob": self.log_prob, "state": self.state}
        return {f"obs/{k}": v for k, v in self.obs.items()} | fields

    def arrays(self) -> dict[str, np.ndarray]:
        """The fields on the CPU that describe rows, by name."""
        names = ("value", "reward", "next_value", "env", "step", "starts_episode", "version")
        return {k: getattr(self, k) for k in names}

    def nbytes(self) -> int:
        """Memory of all fields, in bytes."""
        tensors, arrays = self.tensors().values(), self.arrays().values()
        return sum(t.numel() * t.element_size() for t in tensors) + sum(a.nbytes for a in arrays)
