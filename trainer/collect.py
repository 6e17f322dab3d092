"""VER: variable experience rollout (VER paper 2.1, 2.2).

Environment workers step; the learner's process, while it collects, is the inference worker. It answers whichever
environments are ready (dynamic batching between a minimum and a maximum), writes their experience straight into the
rollout, and stops when T x N steps are closed, however many each environment gave. No environment ever waits for another.
"""

from __future__ import annotations

import math
import os
import pickle
import selectors
import time
from dataclasses import dataclass, field
from typing import Any, Callable

import numpy as np
import torch
from torch import Tensor

from trainer.channel import MESSAGE, STEP, Closed, SharedArrays
from trainer.config import CollectConfig
from trainer.policy import Policy, observation_shapes
from trainer.rollout import NO_ROW, Rollout
from trainer.workers import Setup, WorkerProcess

START_TIMEOUT_S = 300.0


class WorkerError(RuntimeError):
    """An environment worker failed, died or hung; the message names it and says how."""


@dataclass
class CollectStats:
    """What happened while one rollout was collected."""

    seconds: float = 0.0
    wait_s: float = 0.0  # no environment was ready
    inference_s: float = 0.0
    storage_s: float = 0.0
    batches: int = 0
    episodes: list[dict[str, float]] = field(default_factory=list)  # return, length and the environment's own metrics


class Collector:
    """N environments in worker processes, and the inference that drives them."""

    def __init__(self, make_env: Callable[[], Any], config: CollectConfig, seed: int, device: torch.device):
        self.config, self.device = config, device
        workers = min(config.num_workers or os.cpu_count() or 1, config.num_envs)
        # One worker's worth: while its environments are answered, the others step. One environment per worker: any.
        self.min_batch = config.min_batch or max(1, min(config.num_envs // workers, config.num_envs // 2))
        self.max_batch = config.max_batch or config.num_envs
        self.workers: list[WorkerProcess] = []
        self.shared: SharedArrays | None = None
        self._selector = selectors.DefaultSelector()
        try:
            self._start(make_env, workers, seed)
        except BaseException:
            self.close()
            raise
        n = config.num_envs
        self._ready: list[int] = []  # environments whose answer waits for inference, oldest first
        self._asked_at = np.full(n, time.monotonic())  # since when a step (or the first reset) has been under way
        self._under_way = np.ones(n, bool)
        self._episodes: list[dict[str, float]] = []
        self._needs_reset_state = np.ones(n, bool)  # the next step starts an episode

    def _start(self, make_env: Callable[[], Any], workers: int, seed: int) -> None:
        import cloudpickle
        import sys

        blob = cloudpickle.dumps(make_env)
        shares = np.array_split(np.arange(self.config.num_envs), workers)
        for i, share in enumerate(shares):
            worker = WorkerProcess(i, Setup(blob, int(share[0]), len(share), seed, [p for p in sys.path]))
            self.workers.append(worker)
            self._selector.register(worker.channel, selectors.EVENT_READ, worker)
        self.worker_of = np.concatenate([np.full(len(s), i) for i, s in enumerate(shares)])
        spaces: dict[int, tuple] = {}
        deadline = time.monotonic() + START_TIMEOUT_S
        while len(spaces) < workers:
            for worker, messages in self._poll(max(0.0, deadline - time.monotonic())):
                for _, payload in messages:
                    message = pickle.loads(payload)
                    if message[0] == "error":
                        raise WorkerError(_failure_text(worker, message))
                    spaces[worker.index] = message[1]
            if time.monotonic() > deadline:
                slow = [w.name for w in self.workers if w.index not in spaces]
                raise WorkerError(f"{slow[0]} did not start within {START_TIMEOUT_S:.0f} s.")
        self.observation_space, self.action_space = spaces[0]
        self._allocate()

    def _allocate(self) -> None:
        n = self.config.num_envs
        shapes = observation_shapes(self.observation_space)
        action = self.action_space
        action_dtype = "i8" if action.shape == () else "f4"
        fields = {f"obs/{k}": ((n, *s), "f4") for k, s in shapes.items()}
        fields |= {f"final/{k}": ((n, *s), "f4") for k, s in shapes.items()}
        fields |= {"action": ((n, *action.shape), action_dtype), "reward": ((n,), "f4"), "step_s": ((n,), "f4"),
                   "terminated": ((n,), "?"), "truncated": ((n,), "?")}
        self.shared = SharedArrays(fields)
        for worker in self.workers:
            worker.channel.send_with_fd(pickle.dumps(fields), self.shared.fd)
        self._obs = {k: self.shared[f"obs/{k}"] for k in shapes}
        self._final = {k: self.shared[f"final/{k}"] for k in shapes}

    def begin_states(self, policy: Policy) -> None:
        """Per-environment recurrent state and previous action, on the device."""
        n = self.config.num_envs
        self._state = torch.zeros(n, policy.state_size, device=self.device)
        self._previous = torch.zeros(n, policy.action_size, device=self.device)

    def collect(self, policy: Policy, rollout: Rollout, version: int) -> CollectStats:
        """Fill `rollout` with exactly its number of closed steps under `policy`."""
        stats = CollectStats()
        started = time.perf_counter()
        rollout.begin()
        while rollout.remaining:
            before = time.perf_counter()
            envs = self._next_batch(rollout)
            stats.wait_s += time.perf_counter() - before
            self._infer(policy, rollout, envs, version, stats)
            stats.batches += 1
        stats.seconds = time.perf_counter() - started
        stats.episodes, self._episodes = self._episodes, []
        return stats

    def _next_batch(self, rollout: Rollout) -> np.ndarray:
        """Wait for a batch: at least `min_batch` environments, or all there are, or what came within `max_wait_s`."""
        waited_since: float | None = None
        while True:
            if len(self._ready) >= self.min_batch or (self._ready and not self._under_way.any()):
                break
            if self._ready:
                now = time.monotonic()
                waited_since = waited_since or now
                timeout = waited_since + self.config.max_wait_s - now
                if timeout <= 0:
                    break
            else:
                timeout = 1.0
            self._read(timeout)
        self._read(0.0)  # whatever else is there already
        # A closed step per environment, but only as many as the rollout still needs. Those left over stay ready, their
        # open rows stay open: they are the first of the next rollout.
        envs = np.array(self._ready[: self.max_batch])
        closing = np.cumsum(rollout.open_row[envs] != NO_ROW)
        envs = envs[closing <= rollout.remaining]
        del self._ready[: len(envs)]
        return envs

    def _infer(self, policy: Policy, rollout: Rollout, envs: np.ndarray, version: int, stats: CollectStats) -> None:
        """Close the environments' open steps, choose their next actions, send them off, open the new steps."""
        begin = time.perf_counter()
        where = torch.from_numpy(envs).to(self.device)
        fresh = self._needs_reset_state[envs]
        has_open = rollout.open_row[envs] != NO_ROW
        reward, terminated, truncated = (self.shared[k][envs] for k in ("reward", "terminated", "truncated"))
        done = has_open & (terminated | truncated)
        state, previous = self._state[where], self._previous[where]
        next_value = np.zeros(len(envs), np.float32)
        cut = np.flatnonzero(done & truncated & ~terminated)
        if len(cut):  # a time limit is not an end: the value of the state it cut off, never of the next episode's first
            at = torch.from_numpy(cut).to(self.device)
            next_value[cut] = policy.act(self._gather(self._final, envs[cut]), state[at], previous[at]).value.cpu().numpy()
        starts = fresh | done
        if starts.any():
            keep = torch.from_numpy(~starts).to(self.device).unsqueeze(1)
            state, previous = state * keep, previous * keep
        obs = self._gather(self._obs, envs)
        act = policy.act(obs, state, previous)
        value = act.value.cpu().numpy()
        next_value = np.where(done, next_value, value)
        self._send(envs, act.action.cpu().numpy())
        inferred = time.perf_counter()
        rollout.close(envs[has_open], reward[has_open], next_value[has_open])
        rollout.open(envs, obs, previous, state, act.action, act.log_prob, value, starts, version)
        self._state[where] = act.state
        self._previous[where] = policy.action_features(act.action)
        self._needs_reset_state[envs] = False
        stats.inference_s += inferred - begin
        stats.storage_s += time.perf_counter() - inferred

    def _gather(self, arrays: dict[str, np.ndarray], envs: np.ndarray) -> dict[str, Tensor]:
        batch = {k: a[envs] for k, a in arrays.items()}
        for k, values in batch.items():
            if not math.isfinite(values.sum()):
                bad = envs[[not np.isfinite(v).all() for v in values]]
                if len(bad):  # else the sum alone overflowed
                    raise WorkerError(f"{self.workers[self.worker_of[bad[0]]].name} failed: environment {bad[0]} returned an "
                                      f"observation '{k}' that is not finite.")
        return {k: torch.from_numpy(v).to(self.device, non_blocking=True) for k, v in batch.items()}

    def _send(self, envs: np.ndarray, action: np.ndarray) -> None:
        """Write the actions (clipped to the space) and tell the workers."""
        space = self.action_space
        if space.shape != ():
            action = np.clip(action.reshape(len(envs), *space.shape), space.low, space.high)
        self.shared["action"][envs] = action
        self._asked_at[envs] = time.monotonic()
        self._under_way[envs] = True
        owner = self.worker_of[envs]
        for worker in self.workers:
            mine = envs[owner == worker.index]
            if len(mine):
                try:
                    worker.step(mine - worker.setup.first_env)
                except Closed:
                    self._raise_death(worker)

    def _read(self, timeout_s: float) -> None:
        """Take in what workers say within `timeout_s`; raise WorkerError for one that failed, died or hangs."""
        for worker, messages in self._poll(timeout_s):
            for tag, payload in messages:
                if tag == STEP:
                    envs = (np.frombuffer(payload, "<u2").astype(np.int64) + worker.setup.first_env).tolist()
                    self._under_way[envs] = False
                    self._ready += envs
                else:
                    self._message(worker, pickle.loads(payload))
        if timeout_s > 0 and self._under_way.any():
            silent = np.where(self._under_way, time.monotonic() - self._asked_at, 0.0)
            if silent.max() > self.config.step_timeout_s:
                e = int(silent.argmax())
                raise WorkerError(f"{self.workers[self.worker_of[e]].name} hangs: environment {e} has not finished its step "
                                  f"for {silent[e]:.0f} s (trainer.step_timeout_s={self.config.step_timeout_s:g}).")

    def _poll(self, timeout_s: float) -> list[tuple[WorkerProcess, list[tuple[bytes, bytes]]]]:
        out = []
        for key, _ in self._selector.select(timeout_s):
            try:
                out.append((key.data, key.data.channel.receive()))
            except Closed:
                self._raise_death(key.data)
        return out

    def _message(self, worker: WorkerProcess, message: tuple) -> None:
        if message[0] == "error":
            raise WorkerError(_failure_text(worker, message))
        _, _, episode = message
        self._episodes.append(episode)

    def _raise_death(self, worker: WorkerProcess) -> None:
        """A closed socket: prefer the worker's own last words to the bare fact of its end."""
        try:
            for tag, payload in worker.channel.receive():
                if tag == MESSAGE and (message := pickle.loads(payload))[0] == "error":
                    raise WorkerError(_failure_text(worker, message))
        except Closed:
            pass
        raise WorkerError(f"{worker.name} {worker.death()}.")

    def close(self) -> None:
        """Stop all workers; none outlives this call."""
        for worker in self.workers:
            worker.stop()
        for worker in self.workers:
            worker.kill()
        self._selector.close()
        if self.shared is not None:
            self.shared.close()
            self.shared = None

    def __enter__(self) -> Collector:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _failure_text(worker: WorkerProcess, message: tuple) -> str:
    _, where, trace = message
    return f"{worker.name} failed: {where}\n{trace.rstrip()}"
