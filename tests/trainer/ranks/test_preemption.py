"""The rule that ends a rollout: against trying every S, and what it must do in plain cases."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainer.ranks.preemption import Preemption, completion_times, optimal_plan

step_times = st.lists(st.floats(0.01, 3.0), min_size=1, max_size=4)


def simulated(step_s, quota):
    """The first `quota` completions of environments that step again and again, by stepping a clock."""
    due = [(s, e) for e, s in enumerate(step_s)]
    times = []
    count = [1] * len(step_s)
    while len(times) < quota:
        now, e = min(due)
        times.append(now)
        count[e] += 1
        due[e] = (count[e] * step_s[e], e)
    return times


@given(step_times, st.integers(1, 40))
@settings(max_examples=100, deadline=None)
def test_completion_times_are_those_of_stepping_clocks(step_s, quota):
    assert np.allclose(completion_times(np.array(step_s), quota), simulated(step_s, quota))


@given(st.lists(st.tuples(*[st.floats(0.01, 3.0)] * 3), min_size=1, max_size=4),
       st.integers(1, 20), st.floats(0, 10), st.booleans())
@settings(max_examples=100, deadline=None)
def test_no_other_number_of_steps_is_better(step_s, quota, learning_s, overlap):
    times = sorted(t for rank in step_s for t in simulated(rank, quota))
    cost = lambda t: max(t, learning_s) if overlap else t + learning_s  # noqa: E731
    best = max((s + 1) / cost(t) for s, t in enumerate(times))
    plan = optimal_plan(np.array(step_s), quota, learning_s, overlap)
    assert 1 <= plan.steps <= len(step_s) * quota
    assert plan.seconds == pytest.approx(times[plan.steps - 1])
    assert plan.steps / cost(plan.seconds) == pytest.approx(best)


def test_equal_ranks_are_never_preempted():
    assert optimal_plan(np.full((8, 16), 0.01), 2048, 1.0).steps == 8 * 2048


def test_a_slow_rank_is_preempted_when_learning_is_cheap_and_not_when_it_is_dear():
    step_s = np.full((4, 2), 0.01)
    step_s[3] *= 100  # 1 s a step: its last steps would come after 10 s, the others are done after 0.1 s
    cheap, dear = optimal_plan(step_s, 20, 0.05), optimal_plan(step_s, 20, 1000.0)
    assert cheap.steps == 3 * 20 and cheap.seconds == pytest.approx(0.1)
    assert dear.steps == 4 * 20


def test_256_ranks_collect_faster_with_it_than_without():
    step_s = np.random.default_rng(0).lognormal(-5, 1, (256, 16))
    plan, all_of_it = optimal_plan(step_s, 2048, 1.0), 256 * 2048
    slowest_s = max(completion_times(rank, 2048)[-1] for rank in step_s)
    assert plan.steps < all_of_it and plan.steps / (plan.seconds + 1.0) > all_of_it / (slowest_s + 1.0)


class Store:
    """Counts of one process."""

    def __init__(self):
        self.counts = {}

    def add(self, key, amount):
        self.counts[key] = self.counts.get(key, 0) + amount
        return self.counts[key]

    def delete_key(self, key):
        return self.counts.pop(key, None) is not None


def test_ddppo_waits_for_60_percent_of_ranks_and_a_quarter_of_the_steps(monkeypatch):
    monkeypatch.setattr("trainer.ranks.preemption.POLL_EVERY_S", 0.0)
    store = Store()
    ranks = [Preemption("fraction", 100, 0.6, 0.25, 5, store) for _ in range(5)]
    for _ in range(5):
        for rank in ranks:
            rank.begin()
        assert not ranks[4].over(30)
        for rank in ranks[:2]:
            rank.finish(100)
        assert not ranks[4].over(99), "two of five are not 60 %"
        ranks[2].finish(100)
        assert not ranks[4].over(24) and ranks[4].over(25)
        assert ranks[3].over(60)
        ranks[3].finish(60)
        ranks[4].finish(25)
    assert len(store.counts) <= 3, "counts of old rollouts are deleted"


def test_optimal_counts_the_steps_of_all_ranks(monkeypatch):
    monkeypatch.setattr("trainer.ranks.preemption.POLL_EVERY_S", 0.0)
    store = Store()
    fast, slow = (Preemption("optimal", 100, 0.6, 0.25, 2, store) for _ in range(2))
    for rank in (fast, slow):
        rank.begin()
    fast.finish(100)
    assert not slow.over(99) and slow.over(100), "without a plan, to the end"
    from trainer.ranks.preemption import Plan

    for rank in (fast, slow):
        rank.plan = Plan(130, 1.0)
        rank.begin()
    assert not fast.over(50) and not slow.over(20)
    fast.finish(100)
    assert not slow.over(29) and slow.over(30)
