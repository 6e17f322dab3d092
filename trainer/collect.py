"""How experience is collected: the one place where the modes differ.

Environment workers step; here are the inference workers. They answer environments that are ready, write their
experience straight into the rollout, and stop when the rollout is full:

    mode     who is answered together            a rollout is                   who waits
    ver      whoever is ready (dynamic batches)  T x N steps from whomever      nobody
    nover    whoever is ready                    T steps of each environment    environments that have given T steps
    ddppo    all N                               T steps of each environment    all, at every step, for the slowest
    hts      as nover, while the learner learns from the rollout before (trainer/experience.py)
    appo     as ver, while the learner learns; the newest weights act, from their first batch on (trainer/acting.py)

VER: variable experience rollout (VER paper 2.1, 2.2); NoVER: its ablation (5.1); DD-PPO: Wijmans et al. 2020; APPO:
Petrenko et al. 2020.

The thread that collects is the first inference worker; `inference_workers` - 1 threads more do the same (paper 2.1).
One at a time chooses who is answered next (`_choosing`), and one at a time takes note of what was answered (`_noting`);
the network runs outside of both, where torch lets other threads go on.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from trainer.acting import RecordedActs, Weights
from trainer.errors import Cancelled, WorkerError
from trainer.networks import PolicyNetwork, check_acts
from trainer.policy import ACTION_MASK, Act
from trainer.ranks.preemption import POLL_EVERY_S, Preemption
from trainer.rollout import NO_ROW, Rollout
from trainer.workers.batched import BatchedEnvironments
from trainer.workers.environments import Environments
from trainer.workers.fixed_order import FixedOrder

if TYPE_CHECKING:
    from trainer.learner import RankReport


@dataclass
class CollectStats:
    """What happened while one rollout was collected."""

    rows: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))  # the batch to learn from
    steps: int = 0  # of it, newly collected
    seconds: float = 0.0
    held_s: float = 0.0  # between the rollout before and this one, where both are collected while the learner learns
    wait_s: float = 0.0  # no environment was ready; of each inference worker, in the mean, like the two that follow
    inference_s: float = 0.0
    storage_s: float = 0.0
    batches: int = 0
    step_s: np.ndarray = field(default_factory=lambda: np.empty(0))  # (N,) mean time of a step with its inference
    episodes: list[dict[str, float]] = field(default_factory=list)  # return, length and the environment's own metrics

    def spent(self) -> dict[str, float]:
        """Where the time went, in seconds."""
        return {"collect_s": self.seconds, "held_s": self.held_s, "wait_s": self.wait_s,
                "inference_s": self.inference_s, "storage_s": self.storage_s}


class Collector:
    """The inference that drives N environments."""

    def __init__(self, environments: Environments | BatchedEnvironments, policy: PolicyNetwork, seed: int,
                 device: torch.device, order: FixedOrder | None = None, saved: dict[str, Any] | None = None,
                 preemption: Preemption | None = None, cancelled: threading.Event | None = None):
        """
        Args:
            environments: the N environments.
            policy: its recurrent state and last action are kept per environment.
            seed: of sampled actions.
            device: of the policy.
            order: in which environments are answered whatever their speed, so that a run can be repeated.
            saved: the `content` of a collector with such an order, to go on from.
            preemption: on several ranks, when to end a rollout early.
            cancelled: set, by any thread, when collection is to end.
        """
        self.environments, self.device, self.order, self.preemption = environments, device, order, preemption
        self.cancelled = cancelled or threading.Event()
        self.config = config = environments.config
        n = config.num_envs
        workers = min(config.num_workers or os.cpu_count() or 1, n)
        # One worker's worth: while its environments are answered, the others step. One environment per worker: any.
        self.together = environments.batched  # all that are ready are stepped at once
        if config.mode == "ddppo":
            self.min_batch, self.max_batch, self.max_wait_s = n, n, math.inf
        else:
            least = n // workers // 2 if config.mode == "appo" else min(n // workers, n // 2)
            least = config.min_batch or max(1, least)
            self.min_batch, self.max_batch = 1 if self.together else least, config.max_batch or n
            self.max_wait_s = config.max_wait_s
        self.generator = torch.Generator(device).manual_seed(seed)
        # Per inference worker: observations on their way to the device; used again only after the actions they led to
        # have come back.
        arrays = {k: v for k, v in environments.obs.items() if not isinstance(v, Tensor)}
        pinned, dtypes = device.type == "cuda", {k: torch.from_numpy(v[:0]).dtype for k, v in arrays.items()}
        self._staging = [{k: torch.empty(v.shape, dtype=dtypes[k], pin_memory=pinned) for k, v in arrays.items()}
                         for _ in range(config.inference_workers)]
        self._staged = [{k: v.numpy() for k, v in staging.items()} for staging in self._staging]  # the same memory
        self._others = ThreadPoolExecutor(max(1, config.inference_workers - 1), "inference")
        self._choosing, self._noting = threading.Lock(), threading.Lock()
        self._promised = 0  # steps of this rollout that are being closed
        self._waiting: list[int] = []  # environments that have given their share, and go first in the next rollout
        self._given = np.zeros(n, np.int64)  # steps of this rollout per environment
        self._step_s = np.zeros(n)  # time they took together, of those that were begun in this rollout
        self._timed = np.zeros(n, np.int64)  # how many those are
        self._late = np.zeros(n, bool)  # environments whose open step has to be in this rollout
        self._broken = False  # an inference worker failed
        self._began = 0.0  # this rollout, by time.monotonic
        # Per environment, what goes with the observation that waits for an action: whether it begins an episode, and,
        # on the device, recurrent state and previous action.
        self._starts = np.ones(n, bool)
        self._state = torch.zeros(n, policy.state_size, device=device)
        self._previous = torch.zeros(n, policy.action_size, device=device)
        self._acts = RecordedActs(policy, device, config.cuda_graphs)
        self.weights = Weights(config.inference_workers)
        if saved:
            self._state.copy_(saved["state"])
            self._previous.copy_(saved["previous"])
            self._starts[:] = saved["starts"].numpy()
            self._waiting = list(saved["waiting"])
            self.generator.set_state(saved["generator"])

    def content(self) -> dict[str, Any]:
        """What the next rollout depends on, but for the open rows and the policy: tensors and plain values."""
        return self.order.content() | {
            "state": self._state.cpu(), "previous": self._previous.cpu(), "generator": self.generator.get_state(),
            "starts": torch.from_numpy(self._starts.copy()), "waiting": list(self._waiting)}

    def prepare(self, everyone: Sequence[RankReport]) -> None:
        """All ranks have learned: plan where to end the next rollout early."""
        if self.preemption:
            self.preemption.prepare(everyone)

    def collect(self, policy: PolicyNetwork, rollout: Rollout, version: int, oldest: int = 0) -> CollectStats:
        """Fill `rollout` with its number of closed steps under `policy`, the `version`-th; fewer if all ranks end it
        early. No step under way at its end is of a version before `oldest`: for such a step it waits."""
        stats = CollectStats()
        started = time.perf_counter()
        rollout.begin()
        self._given[:] = self._step_s[:] = self._timed[:] = 0
        self._promised, self._broken = 0, False
        if policy is not self._acts.policy:
            self._acts = RecordedActs(policy, self.device, self.config.cuda_graphs)
        self.weights.version = version
        self._late = (rollout.open_row != NO_ROW) & (rollout.version[rollout.open_row] < oldest)
        self._began = time.monotonic()
        self.environments.ready[:0], self._waiting = self._waiting, []
        if self.preemption:
            self.preemption.begin()
        self._all_work(policy, rollout, stats)
        if self.preemption:
            self.preemption.finish(rollout.num_closed)
        stats.rows, stats.steps = rollout.finish(fill=self.config.preempted_by == "optimal"), rollout.num_closed
        stats.seconds = time.perf_counter() - started
        slow = time.monotonic() - self._began  # an environment that gave no whole step takes at least so long for one
        stats.step_s = np.where(self._timed > 0, self._step_s / np.maximum(self._timed, 1), slow)
        return stats

    def _all_work(self, policy: PolicyNetwork, rollout: Rollout, stats: CollectStats) -> None:
        """Let every inference worker do its part of a rollout; the first that fails ends the work of all, and its error
        is raised. All use one CUDA stream: what one of them wrote the others read in order."""
        workers = self.config.inference_workers
        stream = torch.cuda.current_stream(self.device) if self.device.type == "cuda" else None
        work = (policy, rollout, stats, stream)
        others = [self._others.submit(self._work, worker, *work) for worker in range(1, workers)]
        try:
            self._work(0, *work)
        finally:
            wait(others)
        while others:  # one by one: an error that is raised here would otherwise hold itself through the list
            others.pop().result()
        for part in ("wait_s", "inference_s", "storage_s"):
            setattr(stats, part, getattr(stats, part) / workers)

    @torch.inference_mode()
    def _work(self, worker: int, policy: PolicyNetwork, rollout: Rollout, stats: CollectStats, stream: Any) -> None:
        """One inference worker: answer environments until the rollout is over."""
        if worker:
            torch.set_num_threads(1)  # threads of torch's own are counted per thread
        over = False
        try:
            with torch.cuda.stream(stream):  # None: no CUDA, no effect
                while not over:
                    begin = time.perf_counter()
                    with self._choosing:
                        envs, over = self._choose(rollout)
                    waited = time.perf_counter() - begin
                    if len(envs):
                        with self.weights.act(worker, policy) as version:
                            self._infer(worker, policy, rollout, envs, version, stats, closing_only=over)
                    with self._noting:
                        stats.wait_s += waited
                        stats.batches += len(envs) > 0
        except BaseException:
            self._broken = True
            raise

    def _choose(self, rollout: Rollout) -> tuple[np.ndarray, bool]:
        """The environments to answer next, (B,), once there are enough, and whether the rollout is then over."""
        nobody = np.empty(0, np.int64)
        if self.cancelled.is_set():
            raise Cancelled("collection was told to end.")
        if self._broken or not self._needed(rollout):
            return nobody, True
        over = self.preemption is not None and self.preemption.over(rollout.num_closed)
        if over and self.config.mode != "ddppo":
            return nobody, True
        envs = self._next_batch(rollout)
        left_over = self.together and not self.environments.asynchronous and bool(self.environments.ready)
        return envs, over or left_over  # nobody is stepped while another waits for the next rollout

    def _needed(self, rollout: Rollout) -> int:
        """Steps that the rollout lacks and that nobody is closing."""
        with self._noting:
            return rollout.remaining - self._promised

    def _next_batch(self, rollout: Rollout) -> np.ndarray:
        """Wait for a batch: at least `min_batch` environments, or all there are, or what came within `max_wait_s`.
        Empty if collection is to end meanwhile."""
        environments, waited_since = self.environments, None
        wanted = self.order.next(self._waiting) if self.order else None
        while True:
            ready = self._answerable(rollout)
            if wanted is not None:
                if not environments.under_way[wanted].any():
                    break
            elif len(ready) >= self.min_batch or (ready and not environments.under_way.any()):
                break
            timeout = POLL_EVERY_S if self.preemption else 1.0
            if ready and wanted is None:
                now = time.monotonic()
                waited_since = waited_since or now
                timeout = min(timeout, waited_since + self.max_wait_s - now)
                if timeout <= 0:
                    break
            environments.read(timeout)
            if self.cancelled.is_set() or self._broken or (
                    self.preemption and self.config.mode != "ddppo" and self.preemption.over(rollout.num_closed)):
                return np.empty(0, np.int64)
        environments.read(0.0)  # whatever else is there already
        # A closed step per environment, but only as many as the rollout still needs. Those left over stay ready, their
        # open rows stay open: they are the first of the next rollout. So are those for which no place is left beside
        # the steps that have to be in this one.
        envs = np.array(self._answerable(rollout)[: self.max_batch] if wanted is None else wanted)
        late = self._late[envs]
        with self._noting:  # who is ready may have been answered only now
            has_open = rollout.open_row[envs] != NO_ROW
            fit = np.cumsum(has_open & ~late) <= rollout.remaining - self._promised - self._late.sum()
            envs = envs[fit]
            self._promised += int(has_open[fit].sum())
        if self.order:
            self.order.answered(envs)
        if self.order or late.any():
            environments.ready[:] = [e for e in environments.ready if e not in set(envs.tolist())]
        else:
            del environments.ready[: len(envs)]
        self._late[envs] = False
        return envs

    def _answerable(self, rollout: Rollout) -> list[int]:
        """Environments that are ready; first those whose step has to be in this rollout, and they alone where only
        their places are left."""
        ready, late = self.environments.ready, self._late
        if not late.any():
            return ready
        others = [] if self._needed(rollout) <= late.sum() else [e for e in ready if not late[e]]
        return [e for e in ready if late[e]] + others

    def _infer(self, worker: int, policy: PolicyNetwork, rollout: Rollout, envs: np.ndarray, version: int,
               stats: CollectStats, closing_only: bool = False) -> None:
        """Close the environments' open steps, choose their next actions, send them off, open the new steps."""
        begin = time.perf_counter()
        has_open = rollout.open_row[envs] != NO_ROW
        reward, terminated, truncated = (a[envs] for a in (
            self.environments.reward, self.environments.terminated, self.environments.truncated))
        done = has_open & (terminated | truncated)
        starts = self._starts[envs] | done
        where = torch.from_numpy(envs).to(self.device)
        state, previous = self._state.index_select(0, where), self._previous.index_select(0, where)
        cut = np.flatnonzero(done & truncated & ~terminated)
        cut_value = self._values_cut_off(worker, policy, envs[cut], state, previous, cut)
        if starts.any():
            keep = torch.from_numpy(~starts).to(self.device).unsqueeze(1)
            state, previous = state * keep, previous * keep
        obs = self._gather(worker, self.environments.obs, envs)
        act = self._acts(obs, state, previous, self.generator)
        value, action = _to_cpu(act)
        if not math.isfinite(value.sum() + action.sum()):
            check_acts(policy, obs, state, previous, act)
        with self._noting:
            self._given[envs] += has_open
            self._time(envs[has_open & (self.environments.asked_at[envs] >= self._began)])
            goes = (self._given[envs] < self._share(rollout)) & (not closing_only)  # others wait for the next policy
            all_go, some_go = bool(goes.all()), bool(goes.any())
            go = slice(None) if all_go else np.flatnonzero(goes)
            if self.order:
                self.order.ended(envs[done])
            stats.episodes += [self.environments.ended.pop(e) for e in envs[done].tolist()]
            if some_go:
                self.environments.step(envs[go], action[go])  # from here on they may answer, and another worker hear it
                if self.order:
                    self.order.acted(envs[go], self.environments.shared["action"])
            inferred = time.perf_counter()
            next_value = np.where(done, 0.0, value).astype(np.float32)
            next_value[cut] = cut_value
            rollout.close(envs[has_open], reward[has_open], next_value[has_open])
            self._promised -= int(has_open.sum())
            self._keep(where, envs, goes, act, policy, state, previous, starts)
            if some_go:
                fields = obs, previous, state, act.action, act.log_prob
                if not all_go:
                    there = torch.from_numpy(go).to(self.device)
                    fields = {k: v[there] for k, v in obs.items()}, *(v[there] for v in fields[1:])
                rollout.open(envs[go], *fields, value[go], starts[go], version)
            stats.inference_s += inferred - begin
            stats.storage_s += time.perf_counter() - inferred

    def _time(self, envs: np.ndarray) -> None:
        """Note how long the steps took that are answered now, from asking for them to answering."""
        self._step_s[envs] += time.monotonic() - self.environments.asked_at[envs]
        self._timed[envs] += 1

    def _share(self, rollout: Rollout) -> int:
        """Steps that one environment may give to a rollout."""
        return rollout.steps + 1 if self.config.is_variable else self.config.rollout_steps

    def _values_cut_off(self, worker: int, policy: PolicyNetwork, envs: np.ndarray, state: Tensor, previous: Tensor,
                        cut: np.ndarray) -> np.ndarray:
        """A time limit is not an end: the value of the state it cut off, never of the next episode's first."""
        if not len(envs):
            return np.empty(0, np.float32)
        at, obs = torch.from_numpy(cut).to(self.device), self._gather(worker, self.environments.final_obs, envs)
        if getattr(policy, "masked", False):
            obs[ACTION_MASK] = torch.ones_like(obs[ACTION_MASK])  # where nothing is done any more, it may allow nothing
        return policy.act(obs, state[at], previous[at], deterministic=True).value.cpu().numpy()

    def _keep(self, where: Tensor, envs: np.ndarray, goes: np.ndarray, act: Act, policy: PolicyNetwork, state: Tensor,
              previous: Tensor, starts: np.ndarray) -> None:
        """What each environment's next inference starts from: one that waits will see the same observation again."""
        after, features = act.state, policy.action_features(act.action)
        if not goes.all():
            went = torch.from_numpy(goes).to(self.device).unsqueeze(1)
            after, features = torch.where(went, after, state), torch.where(went, features, previous)
        self._state.index_copy_(0, where, after)
        self._previous.index_copy_(0, where, features)
        self._starts[envs] = starts & ~goes
        self._waiting += envs[~goes].tolist()

    def _gather(self, worker: int, arrays: dict[str, np.ndarray], envs: np.ndarray) -> dict[str, Tensor]:
        """Observations of some environments on the device; WorkerError for one that is not finite."""
        batch, staging, staged = {}, self._staging[worker], self._staged[worker]
        for k, slots in arrays.items():
            if isinstance(slots, Tensor):  # of a batched environment, on its device
                batch[k] = slots.index_select(0, torch.from_numpy(envs).to(slots.device)).float().to(self.device)
                if not torch.isfinite(batch[k].sum()):
                    self._refuse(envs[[not bool(torch.isfinite(v).all()) for v in batch[k]]], k)
                continue
            values = slots.take(envs, 0, staged[k][: len(envs)], "clip")
            if values.dtype != np.uint8 and not math.isfinite(values.sum()):
                self._refuse(envs[[not np.isfinite(v).all() for v in values]], k)
            batch[k] = staging[k][: len(envs)].to(self.device, non_blocking=True).float()
        return batch

    def _refuse(self, bad: np.ndarray, key: str) -> None:
        if len(bad):  # else the sum alone overflowed
            raise WorkerError(f"{self.environments.worker_name(bad[0])} failed: environment {bad[0]} returned an "
                              f"observation '{key}' that is not finite.")

    def cancel(self) -> None:
        """End `collect` from another thread; it raises Cancelled."""
        self.cancelled.set()

    def close(self) -> None:
        """End the threads; `collect` must have returned."""
        self._others.shutdown()

    def __enter__(self) -> Collector:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _to_cpu(act: Act) -> tuple[np.ndarray, np.ndarray]:
    """Values (B,) and actions (B, A) on the CPU, in one transfer."""
    both = torch.cat([act.value.unsqueeze(1), act.action.float()], 1).cpu().numpy()
    return both[:, 0], both[:, 1:]
