"""The synthetic workload: its times follow from the seed alone, and they are what the cost model says."""

from __future__ import annotations

import time
import types

import numpy as np
import pytest
import torch
from gymnasium.utils.env_checker import check_env

from benchmarks import pretended_network as device_time
from benchmarks.collection_model import Workload, no_preemption, variable
from benchmarks.step_trace import Traced, cut, has_stepped, read_traces
from benchmarks.synthetic_env import PRESETS, StepCost, SyntheticEnv
from tests.benchmarks.synchronous_model import fixed_s, synchronous_s

QUICK = StepCost(mean_s=1e-4, sigma_env=0.3, sigma_episode=0.5, sigma_step=0.5, episode_steps=20)


@pytest.mark.parametrize("preset", PRESETS)
def test_times_follow_from_seed_environment_and_episode(preset):
    cost = PRESETS[preset]
    first, again = cost.episode(3, 5, 7), cost.episode(3, 5, 7)
    assert first[0] == again[0] and (first[1] == again[1]).all()
    if cost.sigma_episode:
        others = [cost.episode(4, 5, 7), cost.episode(3, 6, 7), cost.episode(3, 5, 8)]
        assert all((first[1] != other[1]).any() for other in others)
    assert len(first[1]) == cost.episode_steps and (first[1] > 0).all()


def test_factors_have_mean_one():
    cost = StepCost(mean_s=0.01, sigma_episode=0.3, sigma_step=0.5, episode_steps=50)
    steps = np.concatenate([cost.episode(0, e, k)[1] for e in range(40) for k in range(40)])
    assert steps.mean() == pytest.approx(0.01, rel=0.03)
    assert cost.scaled(3.0).episode(0, 1, 2)[1] == pytest.approx(3 * cost.episode(0, 1, 2)[1])


def test_expected_speed_counts_slow_episodes_for_as_long_as_they_last():
    cost = StepCost(mean_s=0.01, sigma_episode=1.0, episode_steps=100, reset_steps=10)
    spent, steps = 0.0, 0
    for k in range(4000):
        reset_s, step_s = cost.episode(0, 0, k)
        spent, steps = spent + reset_s + step_s.sum(), steps + len(step_s)
    assert cost.steps_per_s(1) == pytest.approx(1 / (0.01 * 1.1))
    assert steps / spent == pytest.approx(cost.steps_per_s(1), rel=0.1)


def test_it_is_a_proper_environment_that_rewards_the_target():
    env = SyntheticEnv(QUICK, 0, image_size=8)
    check_env(env, skip_render_check=True)
    obs, _ = env.reset(seed=1)
    assert obs["depth"].shape == (8, 8, 1)
    target = env.to_target @ obs["proprioception"]
    obs, reward, terminated, truncated, _ = env.step(target)
    assert reward == pytest.approx(1.0, abs=1e-6) and not (terminated or truncated)
    _, worse, *_ = env.step(env.to_target @ obs["proprioception"] + 0.5)
    assert worse == pytest.approx(0.75, abs=1e-5)
    ends = [env.step(target)[2] for _ in range(18)]
    assert ends == [False] * 17 + [True]


def test_steps_take_the_drawn_time_and_spinning_takes_it_from_the_processor():
    cost = StepCost(mean_s=0.01, sigma_step=0.5, episode_steps=10, reset_steps=2)
    for burn in ("sleep", "spin"):
        env = SyntheticEnv(cost, 0, burn=burn, image_size=0)
        wall, cpu = time.perf_counter(), time.thread_time()  # timed: at least; processor time of this thread
        env.reset(seed=0)
        for _ in range(10):
            env.step(np.zeros(5))
        wall, cpu = time.perf_counter() - wall, time.thread_time() - cpu  # timed: likewise
        drawn = sum(cost.episode(0, 0, 0)[1]) + cost.episode(0, 0, 0)[0]
        assert wall >= drawn
        assert cpu < 0.5 * drawn if burn == "sleep" else cpu >= drawn
    with pytest.raises(ValueError, match="burn=nap"):
        SyntheticEnv(cost, 0, burn="nap")


def test_traces_hold_every_step_and_number_environments_by_first_reset(tmp_path):
    made = []

    def build(number):
        made.append(number)
        return SyntheticEnv(QUICK, number, image_size=0)

    probe, one, two = (Traced(build, tmp_path) for _ in range(3))
    assert probe.observation_space == one.observation_space and not list(tmp_path.iterdir())
    two.reset(seed=0)
    one.reset(seed=0)
    begin = time.monotonic()  # timed: an order of events
    for _ in range(20):
        one.step(np.zeros(5))
    last = time.monotonic()  # timed: an order of events
    one.reset()
    files = sorted(tmp_path.glob("*.trace"))
    assert [[has_stepped(file, since_s) for file in files]
            for since_s in (0.0, begin, last)] == [[False, True], [False, True], [False, False]]
    (tmp_path / "begun").touch()
    assert not has_stepped(tmp_path / "begun")
    traces = read_traces(tmp_path)
    assert made == [0, 0, 0, 1] and one.env.env_id == 1 and two.env.env_id == 0
    assert [t.steps for t in traces] == [0, 20] and [len(t.end_s) for t in traces] == [1, 22]
    assert [t.steps for t in cut(traces, begin, time.monotonic())] == [0, 20]  # timed: an order of events
    assert traces[1].busy_s >= QUICK.episode(0, 1, 0)[1].sum() + QUICK.episode(0, 1, 0)[0] + QUICK.episode(0, 1, 1)[0]
    assert (traces[1].start_s[1:] >= traces[1].end_s[:-1]).all()


def test_the_v100_preset_reproduces_table_1():
    """Steps/s of DD-PPO 174, NoVER 327 and VER 428 on one GPU, in the model with 1.5 s of learning."""
    work, found = Workload(PRESETS["v100"]), []
    for seed in range(24):
        times = work.step_times(seed, 8)
        collect_s = np.array([synchronous_s(work, times), fixed_s(work, times)])
        found.append([*(work.steps / (collect_s + work.learn_s)), variable(work, no_preemption, times)[0]])
    assert np.mean(found, axis=0) == pytest.approx([174, 327, 428], rel=0.01)


@pytest.fixture
def pretended_clock(monkeypatch):
    """A list with the time (s), which passes only while somebody sleeps."""
    clock = [100.0]

    def pass_s(seconds: float) -> None:
        clock[0] += max(seconds, 1e-6)

    monkeypatch.setattr(device_time, "time", types.SimpleNamespace(monotonic=lambda: clock[0], sleep=pass_s))
    return clock


def test_a_pretended_learning_phase_lasts_as_long_as_the_devices_whatever_is_done_meanwhile(pretended_clock):
    clock = pretended_clock
    device = device_time.DeviceTime("v100", scale=2.0)
    x = torch.ones(1024, 1, requires_grad=True)

    def mini_batch() -> float:
        began = clock[0]
        clock[0] += 0.05  # the small network
        device(x, began).sum().backward()
        return clock[0]

    assert mini_batch() == pytest.approx(100.5, abs=1e-4)
    clock[0] += 2.0  # collection: what follows is another phase
    begin = clock[0]
    for _ in range(6):
        end = mini_batch()
        clock[0] += 0.1  # between two mini-batches
    # as the paper's for 3 epochs over 2,048 steps, twice as long
    assert end - begin == pytest.approx(2 * 1.5, abs=1e-4)


def test_a_pretended_inference_lasts_as_long_as_the_devices_in_which_the_small_networks_time_counts(pretended_clock):
    clock = pretended_clock
    device = device_time.DeviceTime("v100")
    began = clock[0]
    clock[0] += 0.001  # the small network
    with torch.no_grad():
        device(torch.ones(16, 1), began)
    assert clock[0] - began == pytest.approx(0.002 + 16 * 0.0001, abs=1e-4)
    clock[0] += 1.0
    ready = clock[0]
    with torch.no_grad():
        device(torch.ones(16, 1), began)
    assert clock[0] == ready  # it has been for long
