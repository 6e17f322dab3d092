"""What a run of the engine benchmark reached, and what it could have reached at most.

All rates are environment steps per second, counted in the traces. Upper bounds, from loose to tight:

    no-wait     environments step without ever waiting for an action. `trace`: the sum over environments of steps / time
    spent
                in the environment, from this very run, so the luck of the draw cancels; `unhindered`: measured, the
                same
                environments in the same number of processes without a policy.
    latency     as no-wait, but every step also waits for one inference of the run's mean batch: the sum over
    environments of
                1 / (mean time of a step and its share of resets + latency).
    system      learning counted in: S / (S / no-wait + L) where collection and learning alternate, min(no-wait, S / L)
    where
                they overlap, with S steps per rollout and L seconds of learning per rollout when nothing else runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.step_trace import Trace, cut

OVERLAPPING = ("hts", "ver_overlap", "appo", "sample_factory")


@dataclass(frozen=True)
class Measured:
    """One run, between the end of the warm-up and the last update."""

    steps_per_s: float  # of the whole system
    fastest_steps_per_s: float  # of the fastest update
    collection_steps_per_s: float  # while collecting
    trace_bound: float
    latency_bound: float  # NaN where the latency was not measured
    learn_s: float  # per update; NaN where it cannot be told
    batch: float  # environments per inference; NaN where it cannot be told
    wait_share: float  # of the collection time in which inference had nothing to do; NaN likewise
    stale: float  # share of steps by an older policy than the newest in their rollout, or NaN
    reward: float  # mean per step
    steps: int
    steps_told: int  # by the system itself
    seconds: float
    updates: int

    @property
    def of_latency(self) -> float:
        """Share of the latency bound that collection reached."""
        return self.collection_steps_per_s / self.latency_bound

    @property
    def of_trace(self) -> float:
        """Share of the run's own no-wait bound that collection reached."""
        return self.collection_steps_per_s / self.trace_bound


def measure(traces: list[Trace], result: dict[str, Any], warm_up: int, overlapping: bool,
            latency_s: dict[int, float] | None = None) -> Measured:
    """From the traces and the result of a run (`benchmarks.engine_job`). `latency_s`: batch size -> seconds of
    inference.
    """
    updates = result["updates"]
    ends = [u["end_s"] for u in updates[warm_up - 1:]]
    inside = cut(traces, ends[0], ends[-1])
    seconds, steps = ends[-1] - ends[0], sum(t.steps for t in inside)
    counted = updates[warm_up:]
    per_update = [sum(t.steps for t in cut(traces, a, b)) / (b - a) for a, b in zip(ends, ends[1:])]
    collect_s = seconds if overlapping else total(counted, "collect_s")
    batch = mean(counted, "batch")
    return Measured(steps_per_s=steps / seconds, fastest_steps_per_s=max(per_update),
                    collection_steps_per_s=steps / collect_s, trace_bound=trace_bound(inside),
                    latency_bound=latency_bound(inside, at_batch(latency_s or {}, batch)),
                    learn_s=mean(counted, "learn_s"), batch=batch,
                    wait_share=total(counted, "wait_s") / total(counted, "collect_s"), stale=mean(counted, "stale"),
                    reward=float(np.mean(np.concatenate([t.reward[~t.is_reset] for t in inside]))), steps=steps,
                    steps_told=int(updates[-1].get("steps", 0) - updates[warm_up - 1].get("steps", 0)), seconds=seconds,
                    updates=len(counted))


def trace_bound(traces: list[Trace]) -> float:
    """Steps/s of environments that never wait: the sum of steps / busy time."""
    return sum(t.steps / t.busy_s for t in traces if t.steps)


def latency_bound(traces: list[Trace], latency_s: float) -> float:
    """Steps/s of environments that wait for one inference per step, and for nothing else."""
    return sum(1 / (t.busy_s / t.steps + latency_s) for t in traces if t.steps)


def at_batch(latency_s: dict[int, float], batch: float) -> float:
    """Latency at a mean batch size, between the sizes that were measured; NaN without any."""
    sizes = sorted(latency_s)
    return float(np.interp(batch, sizes, [latency_s[b] for b in sizes])) if sizes else float("nan")


def inference_bound(latency_s: dict[int, float]) -> float:
    """Steps/s of inference alone, at its best batch size."""
    return max((b / seconds for b, seconds in latency_s.items()), default=float("nan"))


def system_bound(no_wait: float, steps: int, learn_s: float, overlapping: bool) -> float:
    """Steps/s with learning: rollouts of `steps` steps, each followed by, or beside, `learn_s` of learning."""
    if overlapping:
        return min(no_wait, steps / learn_s) if learn_s else no_wait
    return steps / (steps / no_wait + learn_s)


def mean(updates: list[dict[str, float]], key: str) -> float:
    """Mean of a figure over updates; NaN where they lack it."""
    values = [u[key] for u in updates if key in u]
    return float(np.mean(values)) if values else float("nan")


def total(updates: list[dict[str, float]], key: str) -> float:
    """Sum of a figure over updates; NaN where they lack it."""
    return mean(updates, key) * len(updates)
