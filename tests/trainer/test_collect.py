"""VER's collection: nothing lost, nothing doubled, whatever the timing."""

import functools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from tests.trainer.toys import Counter
from tests.waiting import until
from trainer.collect import Collector
from trainer.config import CollectConfig, PolicyConfig
from trainer.policy import Policy, observation_shapes
from trainer.rollout import Rollout
from trainer.workers.environments import Environments

CPU = torch.device("cpu")


def collect(config: CollectConfig, make_env, rollouts: int, seed: int = 3, check=None):
    """Collect some rollouts; `check(rollout, rows, stats, policy)` sees each."""
    with Environments(make_env, config, seed) as environments:
        torch.manual_seed(0)
        policy = Policy(environments.observation_space, environments.action_space,
                        # The unit of normalised returns is 0 before anything is learned.
                        PolicyConfig(lstm_layers=1, hidden_size=8, body_size=16, normalize_returns=False))
        rollout = Rollout(config.num_envs, config.num_envs * config.rollout_steps,
                          observation_shapes(environments.observation_space), policy.action_size, len(policy.choices),
                          policy.state_size, CPU)
        with Collector(environments, policy, seed, CPU) as collector:
            for version in range(rollouts):
                stats = collector.collect(policy, rollout, version)
                check(rollout, rollout.closed[: rollout.num_closed].copy(), stats, policy)


@pytest.mark.parametrize("inference_workers", [1, 2, 3])
@pytest.mark.parametrize("workers, min_batch, max_batch", [(1, 1, 2), (2, 2, None), (3, None, 3), (2, 7, None)])
def test_no_step_is_lost_doubled_or_mixed_up(workers, min_batch, max_batch, inference_workers):
    """Over many rollouts with random delays, each environment's closed steps are 0, 1, 2, ... without gap or repeat,
    and each carries the reward, the end and the next value that belong to its own observation."""
    config = CollectConfig(num_envs=7, num_workers=workers, rollout_steps=9, min_batch=min_batch, max_batch=max_batch,
                           inference_workers=inference_workers)
    seen: dict[int, list[int]] = {e: [] for e in range(7)}
    place: dict[int, tuple] = {}
    identity: dict[int, int] = {}
    counts = []

    def check(rollout, rows, stats, policy):
        assert len(rows) == len(set(rows)) == 63
        counts.append(np.bincount(rollout.env[rows], minlength=7))
        for row in sorted(rows, key=lambda r: (rollout.env[r], rollout.step[r])):
            e, (who, episode, t) = int(rollout.env[row]), rollout.obs["obs"][row].int().tolist()
            seen[e].append(int(rollout.step[row]))
            assert identity.setdefault(e, who) == who
            assert rollout.starts_episode[row] == (t == 0)
            if t == 0:
                assert rollout.state[row].abs().sum() == 0 and rollout.previous[row].abs().sum() == 0
            assert rollout.reward[row] == pytest.approx(Counter.reward(who, episode, t), abs=1e-4)
            if e in place:  # the step that follows in the environment's own story
                assert (episode, t) in ((place[e][0], place[e][1] + 1), (place[e][0] + 1, 0))
            place[e] = (episode, t)

    collect(config, functools.partial(Counter, delay_s=0.001), 12, check=check)
    for e, steps in seen.items():
        assert steps == list(range(len(steps))), f"environment {e}"
    if workers > 1 and min_batch != 7:
        assert np.ptp(counts, 1).max() > 1  # the experience really is variable, beyond where a rollout ends


@pytest.mark.parametrize("inference_workers", [1, 2])
def test_values_that_follow_a_step(inference_workers):
    """`next_value` is the value of the next step, of the cut-off state at a time limit, and 0 at a true end."""
    values = {"limit": 0, "end": 0}

    def check(rollout, rows, stats, policy):
        at = {(int(rollout.env[r]), int(rollout.step[r])): r for r in range(rollout.rows)}
        for row in rows:
            e, (who, episode, t) = int(rollout.env[row]), rollout.obs["obs"][row].tolist()
            following = at[e, int(rollout.step[row]) + 1] if (e, int(rollout.step[row]) + 1) in at else None
            if following is None:
                continue
            if not rollout.starts_episode[following]:
                assert rollout.next_value[row] == rollout.value[following]
                continue
            if rollout.next_value[row] == 0:
                values["end"] += 1
                continue
            obs = {"obs": torch.tensor([[who, episode, t + 1]])}  # the state the time limit cut off
            act = policy.act({"obs": rollout.obs["obs"][row : row + 1]}, rollout.state[row : row + 1],
                             rollout.previous[row : row + 1])
            cut = policy.act(obs, act.state, policy.action_features(rollout.action[row : row + 1]))
            assert rollout.next_value[row] == pytest.approx(cut.value.item(), abs=1e-4)
            values["limit"] += 1

    config = CollectConfig(num_envs=4, num_workers=2, rollout_steps=32, inference_workers=inference_workers)
    collect(config, Counter, 4, check=check)
    assert min(values.values()) > 5


class Halts(Counter):
    """From a worker's third environment on, a step takes until a file is there."""

    made = 0

    def __init__(self, file):
        super().__init__()
        Halts.made += 1
        self.file = None if Halts.made <= 2 else file

    def step(self, action):
        if self.file:
            until(self.file.exists, "the other half to be answered")
        return super().step(action)


def test_a_worker_tells_of_one_half_of_its_environments_while_it_steps_the_other(tmp_path):
    """Double-buffered sampling."""
    config = CollectConfig(mode="appo", num_envs=4, num_workers=1)
    with Environments(functools.partial(Halts, tmp_path / "file"), config, 3) as environments:
        def ready(count):
            until(lambda: environments.read(0.1) or len(environments.ready) == count, f"{count} environments")

        ready(4)
        environments.ready.clear()
        environments.step(np.arange(4), np.zeros((4, 2), np.float32))
        ready(2)
        assert environments.ready == [0, 1] and environments.under_way.tolist() == [False, False, True, True]
        (tmp_path / "file").touch()
        ready(4)
        policy = Policy(environments.observation_space, environments.action_space, PolicyConfig(body_size=8))
        with Collector(environments, policy, 3, CPU) as collector:
            assert collector.min_batch == 2


class OneHalts(Counter):
    """A step of the first that is made takes until a file is there."""

    def __init__(self, directory):
        super().__init__()
        self.file = directory / "go"
        try:
            (directory / "made").touch(exist_ok=False)
        except FileExistsError:
            self.file = None

    def step(self, action):
        if self.file:
            until(self.file.exists, "the others to wait")
        return super().step(action)


def test_a_rollout_keeps_a_place_for_a_step_that_would_become_too_old(tmp_path):
    """The two others are answered together, and five places are left for them: of the third pair one waits."""
    config = CollectConfig(mode="appo", num_envs=3, num_workers=3, rollout_steps=2, min_batch=2, max_wait_s=60.0)
    with Environments(functools.partial(OneHalts, tmp_path), config, 3) as environments:
        policy = Policy(environments.observation_space, environments.action_space, PolicyConfig(body_size=8))
        rollout = Rollout(3, 6, observation_shapes(environments.observation_space), 2, False, 0, CPU, batches=2)
        with Collector(environments, policy, 3, CPU) as collector, ThreadPoolExecutor(1) as thread:
            until(lambda: environments.read(0.1) or len(environments.ready) == 3, "all to begin")
            collector.collect(policy, rollout, 0)
            halted = set(range(3)) - set(rollout.env[rollout.batch].tolist())
            second = thread.submit(collector.collect, policy, rollout, 1, oldest=1)
            until(lambda: rollout.total >= 6 + 5, "the others to give their steps")
            assert rollout.total == 6 + 5 and not second.done()
            (tmp_path / "go").touch()
            rows = second.result().rows
    assert len(halted) == 1 and len(rows) == 6 and rollout.env[rows[-1]] in halted


def test_even_speeds_and_full_batches_give_synchronous_rollouts():
    """With every environment in every batch, VER is plain synchronous collection: T steps of each."""
    def check(rollout, rows, stats, policy):
        assert np.bincount(rollout.env[rows]).tolist() == [16] * 4

    collect(CollectConfig(num_envs=4, num_workers=1, rollout_steps=16, min_batch=4, max_wait_s=60), Counter, 3,
            check=check)


def test_same_seed_same_rollout_when_the_order_is_fixed():
    """One worker and full batches: two runs collect identical experience."""
    runs = []
    for _ in range(2):
        got = []
        collect(CollectConfig(num_envs=3, num_workers=1, rollout_steps=16, min_batch=3, max_wait_s=60), Counter, 2,
                check=lambda rollout, rows, *_: got.append((
                    rollout.obs["obs"][rows].clone(), rollout.action[rows].clone(), rollout.reward[rows].copy())))
        runs.append(got)
    for a, b in zip(*runs):
        assert torch.equal(a[0], b[0]) and torch.equal(a[1], b[1]) and (a[2] == b[2]).all()


def test_steps_under_way_are_collected_in_the_next_rollout():
    """Rows carried over keep the version of the policy that acted, at most one per environment."""
    stale = []

    def check(rollout, rows, stats, policy):
        stale.append((rollout.version[rows] < rollout.version[rows].max()).sum())

    collect(CollectConfig(num_envs=6, num_workers=2, rollout_steps=8), functools.partial(Counter, delay_s=0.001), 6,
            check=check)
    assert stale[0] == 0 and 0 < max(stale) <= 6


def exact(num_envs, rollout_steps):
    """A check: T steps of each environment, all by the policy of this rollout, in one piece per environment."""
    ends: dict[int, int] = {}

    def check(rollout, rows, stats, policy):
        assert np.bincount(rollout.env[rows], minlength=num_envs).tolist() == [rollout_steps] * num_envs
        assert np.ptp(rollout.version[rows]) == 0
        for e in range(num_envs):
            steps = np.sort(rollout.step[rows[rollout.env[rows] == e]])
            assert steps[0] == ends.get(e, 0) and (np.diff(steps) == 1).all()
            ends[e] = int(steps[-1]) + 1
        for row in rows:
            who, episode, t = rollout.obs["obs"][row].int().tolist()
            assert rollout.reward[row] == pytest.approx(Counter.reward(who, episode, t), abs=1e-4)
            assert rollout.starts_episode[row] == (t == 0)

    return check


@pytest.mark.parametrize("mode, inference_workers", [("nover", 1), ("nover", 3), ("ddppo", 1)])
@pytest.mark.parametrize("workers", [1, 3])
def test_fixed_rollouts_have_t_steps_of_each_environment(mode, inference_workers, workers):
    """Whatever the timing, nothing lost between rollouts, and every step by the newest policy."""
    config = CollectConfig(mode=mode, num_envs=6, num_workers=workers, rollout_steps=9,
                           inference_workers=inference_workers)
    collect(config, functools.partial(Counter, delay_s=0.001), 6, check=exact(6, 9))


def test_ddppo_answers_all_environments_together():
    def check(rollout, rows, stats, policy):
        assert stats.batches == 16 + 1  # the last one closes the T-th steps, without an action

    collect(CollectConfig(mode="ddppo", num_envs=4, num_workers=2, rollout_steps=16),
            functools.partial(Counter, delay_s=0.001), 3,
            check=check)


def test_without_uneven_speeds_nover_is_ddppo():
    """One worker and full batches: both collect the same experience, bit for bit."""
    runs = []
    for mode in ("nover", "ddppo"):
        got = []
        collect(CollectConfig(mode=mode, num_envs=3, num_workers=1, rollout_steps=16, min_batch=3, max_wait_s=60),
                Counter, 3,
                check=lambda rollout, rows, *_: got.append([x.copy() for x in (
                    rollout.obs["obs"][rows].numpy(), rollout.action[rows].numpy(), rollout.state[rows].numpy(),
                    rollout.next_value[rows])]))
        runs.append(got)
    assert all((x == y).all() for a, b in zip(*runs) for x, y in zip(a, b))


def test_an_environment_that_waits_continues_where_it_stopped():
    """Recurrent state and previous action of a rollout's first steps are those that its last steps led to."""
    last = {}

    def check(rollout, rows, stats, policy):
        for e in range(3):
            mine = rows[rollout.env[rows] == e]
            first, final = mine[rollout.step[mine].argmin()], mine[rollout.step[mine].argmax()]
            if e in last and not rollout.starts_episode[first]:
                state, previous = last[e]
                assert torch.equal(rollout.state[first], state) and torch.equal(rollout.previous[first], previous)
            act = policy.act({"obs": rollout.obs["obs"][final : final + 1]}, rollout.state[final : final + 1],
                             rollout.previous[final : final + 1], deterministic=True)
            last[e] = act.state[0].clone(), policy.action_features(rollout.action[final : final + 1])[0].clone()

    # batches of one: an LSTM gives the same bits for one environment only in batches of one size
    collect(CollectConfig(mode="nover", num_envs=3, num_workers=3, rollout_steps=5, min_batch=1, max_batch=1), Counter,
            6,
            check=check)
