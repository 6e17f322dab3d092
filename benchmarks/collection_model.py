"""A model of how long collection takes: N environments on each of W ranks, no processes, no network, no real time.

Every step of an environment takes the time that the seeded cost model draws for it, plus a fixed latency for inference;
what is modelled is who waits for whom. It calibrates the workload against Table 1 of the VER paper, and shows what the
rules for ending a rollout early (preemption) do on more ranks than this machine can run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.synthetic_env import StepCost

LONGEST = 4  # an environment gives at most so many times T steps to a rollout


@dataclass(frozen=True)
class Workload:
    """N environments per rank, T steps of each per rollout, and what everything costs."""

    cost: StepCost
    ranks: int = 1
    envs: int = 16
    rollout_steps: int = 128
    learn_s: float = 1.5  # per rollout
    latency_s: float = 0.005  # per step: inference, batching

    @property
    def steps(self) -> int:
        """T x N, of one rank."""
        return self.envs * self.rollout_steps

    def step_times(self, seed: int, rollouts: int) -> np.ndarray:
        """(ranks, envs, LONGEST x T x rollouts) seconds from one answer of an environment to its next, with the reset
        before an episode."""
        count = LONGEST * self.rollout_steps * rollouts
        environments = self.ranks * self.envs
        episodes = -(-count // self.cost.episode_steps)
        times = np.empty((environments, episodes, self.cost.episode_steps))
        for e in range(environments):
            for k in range(episodes):
                reset_s, times[e, k] = self.cost.episode(seed, e, k)
                times[e, k, 0] += reset_s
        return times.reshape(self.ranks, self.envs, -1)[..., :count] + self.latency_s


@dataclass(frozen=True)
class Ends:
    """How a rollout ended: seconds of collection until the last rank stopped, and steps of each rank."""

    seconds: float
    steps: np.ndarray


# done_s (ranks, envs, K): when each environment would finish its k-th step of this rollout; mean_s (ranks, envs): mean
# seconds per step of each environment in the rollout before
Rule = Callable[[Workload, np.ndarray, np.ndarray], Ends]


def variable(work: Workload, rule: Rule, times: np.ndarray, warm_up: int = 2) -> tuple[float, float]:
    """VER on all ranks under a rule that ends rollouts, for as many rollouts as `times` (ranks, N, count) is sure to
    last: steps/s of all ranks together with learning, and the mean share of T x N that a rank collects. The first
    `warm_up` rollouts do not count."""
    longest = LONGEST * work.rollout_steps
    rollouts = times.shape[-1] // longest - warm_up
    position = np.zeros((work.ranks, work.envs), int)
    left_s = times[..., 0].copy()  # of the step under way
    mean_s = np.broadcast_to(times.mean((0, 1, 2)), position.shape)
    seconds = steps = 0.0
    for rollout in range(rollouts + warm_up):
        index = np.minimum(position[..., None] + 1 + np.arange(longest - 1), times.shape[-1] - 1)
        done_s = np.cumsum(np.concatenate([left_s[..., None], np.take_along_axis(times, index, -1)], -1), -1)
        ends = rule(work, done_s, mean_s)
        given = (done_s <= ends.seconds).sum(-1)
        if rollout >= warm_up:
            seconds += ends.seconds + work.learn_s
            steps += ends.steps.sum()
        last = np.take_along_axis(done_s, np.maximum(given - 1, 0)[..., None], -1)[..., 0]
        mean_s = np.where(given > 1, (last - done_s[..., 0]) / np.maximum(given - 1, 1), mean_s)
        under_way = np.take_along_axis(done_s, np.minimum(given, longest - 1)[..., None], -1)[..., 0]
        left_s = np.maximum(work.latency_s, under_way - ends.seconds - work.learn_s)  # it went on while all learned
        position += given
    return steps / seconds, steps / (rollouts * work.ranks * work.steps)


def full_at(work: Workload, done_s: np.ndarray, share: float = 1.0) -> np.ndarray:
    """(ranks,) when each rank has `share` of its T x N steps."""
    needed = int(np.ceil(share * work.steps)) - 1
    return np.partition(done_s.reshape(work.ranks, -1), needed, axis=1)[:, needed]


def counted(work: Workload, done_s: np.ndarray, stop_s: np.ndarray | float) -> np.ndarray:
    """(ranks,) steps when rank w stops at stop_s[w], or as soon as it is full."""
    stop = np.broadcast_to(stop_s, work.ranks)[:, None, None]
    return np.minimum((done_s <= stop).sum((1, 2)), work.steps)


def no_preemption(work: Workload, done_s: np.ndarray, mean_s: np.ndarray) -> Ends:
    """All ranks wait until the last is full."""
    return Ends(float(full_at(work, done_s).max()), np.full(work.ranks, work.steps))


def ddppo_preemption(work: Workload, done_s: np.ndarray, mean_s: np.ndarray, fraction: float = 0.6,
                     least: float = 0.25) -> Ends:
    """Once a fraction of ranks is full the others stop, but not before a quarter of their steps (Wijmans et al.
    2020).
    """
    full = np.sort(full_at(work, done_s))
    stop = np.maximum(full[int(np.ceil(fraction * work.ranks)) - 1], full_at(work, done_s, least))
    return Ends(float(stop.max()), counted(work, done_s, stop))


def ver_preemption(work: Workload, done_s: np.ndarray, mean_s: np.ndarray) -> Ends:
    """VER's rule, by the engine's own decision: all stop when they have collected the S steps that were planned from
    the mean step times of the rollout before."""
    from trainer.ranks.preemption import optimal_plan

    moments = _moments(work, done_s)
    stop = moments[optimal_plan(mean_s, work.steps, work.learn_s).steps - 1]
    return Ends(float(stop), counted(work, done_s, stop))


def best_in_hindsight(work: Workload, done_s: np.ndarray, mean_s: np.ndarray) -> Ends:
    """The S that maximises S / (Time(S) + L) with the times that this rollout really took: what VER's rule tries to
    foresee.
    """
    moments = _moments(work, done_s)
    stop = moments[np.argmax(np.arange(1, len(moments) + 1) / (moments + work.learn_s))]
    return Ends(float(stop), counted(work, done_s, stop))


def _moments(work: Workload, done_s: np.ndarray) -> np.ndarray:
    """(ranks x T x N,) when each step arrives that a rank can use, sorted."""
    return np.sort(np.sort(done_s.reshape(work.ranks, -1), axis=1)[:, : work.steps].ravel())


RULES: dict[str, Rule] = {"none": no_preemption, "ddppo": ddppo_preemption, "ver": ver_preemption,
                          "best": best_in_hindsight}
