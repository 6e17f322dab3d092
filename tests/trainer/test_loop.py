"""Whole training runs: learning, saving, resuming, stopping, failing."""

import functools
import os
import platform
import re
import signal
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import gymnasium as gym
import pytest
import torch

from tests.trainer.faults.fault_tools import workers
from tests.trainer.toys import QUICK, Broken, Faulty, Pointer
from tests.waiting import is_alive, until
from trainer import CollectConfig, PolicyConfig, PPOConfig, TrainConfig, load_checkpoint, load_policy, train
from trainer.checkpoint import CheckpointError, list_checkpoints
from trainer.collect import CollectStats, WorkerError
from trainer.ppo import NonFiniteLoss

ROOT = Path(__file__).parents[2]
SMALL: dict = dict(torch_threads=1, ppo=QUICK,
                   policy=PolicyConfig(encoder=None, lstm_layers=1, hidden_size=8, body_size=32),
                   collect=CollectConfig(num_envs=8, num_workers=2, rollout_steps=32))
ORDERED = CollectConfig(num_envs=4, num_workers=1, rollout_steps=32, min_batch=4, max_wait_s=60.0)


def shared_memory_files() -> set[str]:
    return {f for f in os.listdir("/dev/shm")} if os.path.isdir("/dev/shm") else set()


def children() -> list[str]:
    return subprocess.run(["pgrep", "-P", str(os.getpid()), "-f", "trainer.workers.worker"], capture_output=True,
                          text=True).stdout.split()


def test_learns_to_point(tmp_path):
    """Mean reward per step rises from that of random actions to near 1."""
    learn = PPOConfig(learning_rate=3e-3, discount=0.5, epochs=3, mini_batches=4, schedule="cosine")
    result = train(Pointer, TrainConfig(**SMALL | dict(steps=25_000, log_every_s=0.2, ppo=learn)), tmp_path)
    assert result.reason == "complete" and result.steps >= 25_000
    assert result.history[0]["episode/return"] < 5
    assert result.history[-1]["episode/return"] > 8.5
    assert result.history[-1]["episode/success"] > 0.5


def test_any_gymnasium_environment_trains_in_five_lines(tmp_path):
    """As a script without a main guard, with a lambda, a Box observation and discrete actions."""
    script = tmp_path / "five_lines.py"
    script.write_text(textwrap.dedent("""
        import gymnasium as gym
        from trainer import TrainConfig, train
        result = train(lambda: gym.make("CartPole-v1"), TrainConfig(steps=2048))
        print("steps", result.steps)
    """))
    out = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120,
                         env=os.environ | {"PYTHONPATH": str(ROOT)})
    assert "steps 2048" in out.stdout, out.stderr


def test_images_train(tmp_path):
    config = TrainConfig(steps=512, ppo=QUICK, policy=PolicyConfig(lstm_layers=1, hidden_size=8, body_size=16),
                         collect=CollectConfig(num_envs=4, rollout_steps=32))
    assert train(functools.partial(Pointer, image=True), config).steps == 512


def test_checkpoint_holds_the_policy_and_loads_safely(tmp_path):
    result = train(Pointer, TrainConfig(steps=512, **SMALL), tmp_path, meta={"skill": "point"})
    torch.load(result.checkpoint, weights_only=True)
    content = load_checkpoint(tmp_path)
    assert content["meta"] == {"skill": "point"} and content["counters"]["steps"] == 512
    policy = load_policy(content)
    obs = {"goal": torch.rand(3, 2)}
    state, previous = torch.rand(3, policy.state_size), torch.zeros(3, 2)
    assert torch.equal(policy.act(obs, state, previous, True).action,
                       result.policy.cpu().act(obs, state, previous, True).action)
    assert not list(tmp_path.rglob("*.partial"))


@pytest.mark.parametrize("schedule", ["cosine", "kl"])
def test_a_resumed_run_learns_exactly_as_an_uninterrupted_one(tmp_path, schedule):
    """Weights, optimiser, schedule, counters and random states come back, and all that adapts: the learning rate by the
    KL divergence, what observations and returns are normalised by, the weight of the entropy. The next update on the
    same data is identical."""

    from trainer.learner import Learner

    config = TrainConfig(steps=4096, seed=5, policy=SMALL["policy"], collect=ORDERED,
                         ppo=PPOConfig(epochs=2, mini_batches=2, entropy_coef=1e-3, entropy_target=0.0,
                                       schedule=schedule))
    env = gym.make("Pendulum-v1")
    spaces = env.observation_space, env.action_space
    one = Learner(config, *spaces, torch.device("cpu"))
    rollouts = [_fill_like(one, s) for s in range(4)]
    one.update(*rollouts.pop(0))  # only looked at
    one.update(*rollouts[0])
    one.steps += 128  # as `count` does
    from trainer import checkpoint

    path = checkpoint.save(tmp_path, one.steps, one.content({}))
    two = Learner(config, *spaces, torch.device("cpu"))
    content = load_checkpoint(path)
    for state in content["optimizer"]["state"].values():  # they may lie otherwise in memory than the parameters
        state |= {k: v.contiguous() for k, v in state.items()}
    two.restore(content)
    assert two.steps == one.steps == 128
    for rollout in rollouts[1:]:
        a = one.update(*rollout)
    torch.manual_seed(99)  # the resumed learner must bring its own random state
    two.rng = type(two.rng)(type(two.rng.bit_generator)(0))
    two.restore(content)
    for rollout in rollouts[1:]:
        b = two.update(*rollout)
    assert a == b
    for name, x in one.policy.state_dict().items():
        assert torch.equal(x, two.policy.state_dict()[name]), name
    assert one.policy.normalizer.count == 128 * 4 and one.policy.return_scale.updates == 4
    assert one.optimizer.param_groups[0]["lr"] == two.optimizer.param_groups[0]["lr"] != config.ppo.learning_rate
    assert torch.equal(one.entropy_coef.log_alpha, two.entropy_coef.log_alpha)


FREED = """
import resource, torch
from trainer.learner import keep_freed_memory
keep_freed_memory()
for _ in range(3):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for size in range(1, 14):  # together less than the 60 MB that glibc then leaves at the end of its heap
        [torch.zeros(size << 18) for _ in range(3)]
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="what it changes is glibc's")
def test_memory_that_was_freed_is_used_again_without_page_faults():
    done = subprocess.run([sys.executable, "-c", FREED], capture_output=True, text=True, check=True, cwd=ROOT)
    assert int(done.stdout) < 500  # some 39,000 without


def _fill_like(learner, seed):
    """A rollout of random data of the learner's shapes."""
    import numpy as np

    from trainer.rollout import Rollout

    rng, n = np.random.default_rng(seed), 4
    rollout = Rollout(n, 128, {"obs": (3,)}, 1, False, learner.policy.state_size, torch.device("cpu"))
    rollout.begin()
    generator = torch.Generator().manual_seed(seed)
    for t in range(33):
        if t:
            rollout.close(np.arange(n), rng.normal(size=n), rng.normal(size=n))
        state = (torch.zeros(n, learner.policy.state_size) if t == 0
                 else torch.rand(n, learner.policy.state_size, generator=generator))
        rollout.open(np.arange(n), {"obs": torch.rand(n, 3, generator=generator)},
                     torch.rand(n, 1, generator=generator), state,
                     torch.rand(n, 1, generator=generator), torch.rand(n, generator=generator), rng.normal(size=n),
                     np.full(n, t == 0), 0)
    return rollout, CollectStats(rows=rollout.finish(), steps=rollout.num_closed)


def test_resume_continues_counters_and_weights(tmp_path):
    first = train(Pointer, TrainConfig(steps=1024, **SMALL), tmp_path)
    more = TrainConfig(steps=1800, **SMALL)
    second = train(Pointer, more, tmp_path, resume_from=tmp_path)
    assert second.steps == more.last_step(first.steps) == 2048 and second.history[0]["step"] > first.steps
    assert load_checkpoint(tmp_path)["counters"]["updates"] == 8


def test_the_last_step_is_that_of_the_last_whole_rollout():
    config = TrainConfig(steps=1000, **SMALL)  # rollouts of 256 steps
    assert [config.last_step(start) for start in (0, 100, 1000, 2000)] == [1024, 1124, 1000, 2000]
    assert config.last_step(ranks=3) == 1000, "ranks that preempt each other give fewer steps, nobody knows how many"
    assert replace(config, collect=replace(config.collect, preemption="none")).last_step(ranks=3) == 1536


def test_a_run_that_begins_with_the_policy_of_another_counts_from_zero(tmp_path):
    first = train(Pointer, TrainConfig(steps=1024, **SMALL), tmp_path / "first")
    still = SMALL | {"ppo": PPOConfig(learning_rate=1e-12)}
    second = train(Pointer, TrainConfig(steps=256, **still), tmp_path / "second", start_from=tmp_path / "first")
    assert second.steps == 256
    for name, value in second.policy.named_parameters():
        if not name.startswith("value."):  # whose unit follows the returns
            assert torch.allclose(value, first.policy.state_dict()[name], atol=1e-6), name
    assert second.policy.normalizer.count == 1024 + 256, "what was seen before counts on"
    third = train(Pointer, TrainConfig(steps=256, **still), tmp_path / "third")
    assert any(not torch.allclose(value, first.policy.state_dict()[name], atol=1e-3)
               for name, value in third.policy.state_dict().items())


def test_resume_with_another_network_is_refused(tmp_path):
    train(Pointer, TrainConfig(steps=256, **SMALL), tmp_path)
    other = SMALL | {"policy": PolicyConfig(encoder=None, lstm_layers=1, hidden_size=16, body_size=32)}
    with pytest.raises(CheckpointError, match="another network"):
        train(Pointer, TrainConfig(steps=512, **other), tmp_path, resume_from=tmp_path)
    with pytest.raises(CheckpointError, match="another network"):
        train(Pointer, TrainConfig(steps=512, **other), start_from=tmp_path)


@pytest.mark.parametrize("damage", ["truncated", "not one", "empty", "pickle"])
def test_a_damaged_checkpoint_is_one_sentence(tmp_path, damage):
    path = train(Pointer, TrainConfig(steps=256, **SMALL), tmp_path).checkpoint
    if damage == "truncated":
        path.write_bytes(path.read_bytes()[:2000])
    elif damage == "not one":
        torch.save({"weights": torch.zeros(3)}, path)
    elif damage == "empty":
        path.write_bytes(b"")
    else:
        import pickle

        path.write_bytes(pickle.dumps(Path("/")))
    with pytest.raises(CheckpointError) as error:
        load_checkpoint(path)
    assert str(path) in str(error.value) and "\n" not in str(error.value)


def test_only_the_newest_checkpoints_are_kept(tmp_path):
    train(Pointer, TrainConfig(steps=256 * 6, checkpoint_every_s=1e-6, **SMALL), tmp_path)
    assert len(list_checkpoints(tmp_path / "checkpoints")) == 3


def test_one_in_so_many_steps_stays_for_good(tmp_path):
    """Also when the run goes on; what a run that begins again at an older step had kept beyond it goes aside."""
    folder, every = tmp_path / "checkpoints", {"checkpoint_every_s": 1e-6, "keep_every": 512}
    train(Pointer, TrainConfig(steps=256 * 8, **every, **SMALL), tmp_path)
    kept = {int(path.stem[len("kept_"):]): path for path in folder.glob("kept_*.pt")}
    assert sorted(kept) == [512, 1024, 1536, 2048] and len(list_checkpoints(folder)) == 3
    assert load_checkpoint(kept[512])["counters"]["steps"] == 512
    train(Pointer, TrainConfig(steps=256 * 6, **every, **SMALL), tmp_path, resume_from=kept[1024])
    kept = [path.stem for path in sorted(folder.glob("kept_*.pt"))]
    assert kept == ["kept_000000000512", "kept_000000001024", "kept_000000001536"]
    assert len(list(folder.glob("kept_*.abandoned"))) == 2


def test_where_one_cannot_be_kept_for_good_the_next_one_is(tmp_path, monkeypatch, caplog):
    """The checkpoint itself is there, and nothing is tried again before another one is due."""
    from trainer import checkpoint

    real, tried = checkpoint.write, []

    def failing(path, content):
        if path.name.startswith("kept_"):
            tried.append(content["step"])
            if len(tried) == 1:
                raise OSError(28, "No space left on device")
        real(path, content)

    monkeypatch.setattr(checkpoint, "write", failing)
    result = train(Pointer, TrainConfig(steps=256 * 8, keep_every=512, **SMALL), tmp_path)
    folder = tmp_path / "checkpoints"
    assert result.unsaved_steps == 0 and load_checkpoint(tmp_path)["counters"]["steps"] == 2048
    assert tried == [768, 1280, 1792, 2048], "all ranks hear of one that is due with the next rollout"
    assert [int(path.stem[len("kept_"):]) for path in sorted(folder.glob("kept_*.pt"))] == tried[1:]
    assert caplog.text.count("step 768 is not kept for good") == 1


def test_a_full_disk_does_not_end_the_run(tmp_path, monkeypatch, caplog):
    """Writing fails half-way every other time: training finishes, no partial file stays, the last good one loads."""
    from trainer import checkpoint

    real, calls = torch.save, []

    def failing(content, file):
        calls.append(1)
        if len(calls) % 2:
            file.write(b"half")
            raise OSError(28, "No space left on device")
        real(content, file)

    monkeypatch.setattr(checkpoint.torch, "save", failing)
    result = train(Pointer, TrainConfig(steps=256 * 4, checkpoint_every_s=1e-6, **SMALL), tmp_path)
    assert result.steps == 1024 and "No space left" in caplog.text
    assert not list(tmp_path.rglob("*.partial"))
    assert load_checkpoint(tmp_path)["counters"]["steps"] in (512, 1024)


def test_what_could_not_be_saved_is_told(tmp_path, monkeypatch, caplog):
    """A run that is continued on a full disk ends with the checkpoint that it began with."""
    from trainer import checkpoint

    before = train(Pointer, TrainConfig(steps=256, **SMALL), tmp_path)
    assert before.unsaved_steps == 0
    (tmp_path / "checkpoints/step_000000000999.partial").touch()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint.torch, "save", full)
    result = train(Pointer, TrainConfig(steps=512, **SMALL), tmp_path, resume_from=tmp_path)
    assert (result.steps, result.checkpoint, result.unsaved_steps) == (512, before.checkpoint, 256)
    assert not list(tmp_path.rglob("*.partial")), "of a process that was killed"
    with pytest.raises(WorkerError):
        train(functools.partial(Faulty, "raises", at=100), TrainConfig(steps=10**6, **SMALL), tmp_path,
              resume_from=tmp_path)
    assert re.search(r"\d+ steps learned from since the checkpoint of step 256 are lost", caplog.text)
    with pytest.raises(WorkerError):
        train(functools.partial(Faulty, "raises", at=100), TrainConfig(steps=10**6, **SMALL), tmp_path / "new")
    assert re.search(r"\d+ steps learned from are in no checkpoint and are lost", caplog.text)


def test_a_failing_worker_is_named_and_what_was_learned_is_on_disk(tmp_path):
    before = shared_memory_files()
    with pytest.raises(WorkerError, match=r"environment worker .*pid \d+\) was killed by signal SIGKILL"):
        train(functools.partial(Faulty, "killed", at=200), TrainConfig(steps=10**6, **SMALL), tmp_path)
    assert load_checkpoint(tmp_path)["counters"]["steps"] > 0
    assert not children() and shared_memory_files() <= before


def test_a_mistake_of_the_user_is_told_by_a_worker_in_one_sentence(tmp_path):
    with pytest.raises(WorkerError) as error:
        train(functools.partial(Faulty, "mistake", at=200), TrainConfig(steps=10**6, **SMALL), tmp_path)
    assert str(error.value).endswith(": episode 'x' has no objects.") and "\n" not in str(error.value)


def test_an_environment_that_cannot_start_fails_fast():
    with pytest.raises(WorkerError, match="no such home"):
        train(Broken, TrainConfig(steps=256, **SMALL))
    assert not children()


def test_a_diverging_policy_stops_the_run_with_the_last_good_checkpoint(tmp_path):
    config = TrainConfig(**SMALL | dict(steps=10**6, checkpoint_every_s=1e-6,
                                        ppo=PPOConfig(learning_rate=1e30, schedule="constant", max_grad_norm=None)))
    with pytest.raises((NonFiniteLoss, ValueError)):
        train(Pointer, config, tmp_path)
    if list_checkpoints(tmp_path / "checkpoints"):
        assert all(torch.isfinite(v).all() for v in load_checkpoint(tmp_path)["policy"].values())


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_and_stops(tmp_path, signum):
    sender = SimpleNamespace(after_update=lambda state: os.kill(os.getpid(), signum) if state.updates == 2 else None)
    result = train(Pointer, TrainConfig(steps=10**8, **SMALL), tmp_path, callbacks=[sender])
    assert result.reason == signum.name and 0 < result.steps < 10**8
    assert load_checkpoint(tmp_path)["counters"]["steps"] == result.steps
    assert not children()


def test_workers_die_with_a_killed_learner(tmp_path):
    """kill -9 of the learner leaves no orphan and no shared memory."""
    before = shared_memory_files()
    script = ("from tests.trainer.toys import Pointer; from trainer import *; import trainer\n"
              "train(Pointer, TrainConfig(steps=10**8, collect=CollectConfig(num_envs=4, num_workers=2)))")
    process = subprocess.Popen([sys.executable, "-c", script], cwd=ROOT)
    try:
        until(lambda: len(workers(process.pid)) == 2, "both workers to start", process=process)
        pids = workers(process.pid)
    finally:
        process.kill()
        process.wait()
    until(lambda: not any(map(is_alive, pids)), "the workers to end with their learner")
    until(lambda: shared_memory_files() <= before, "the shared memory to be given back")


@pytest.mark.parametrize(
    "config, words",
    [(dict(steps=0), "steps=0"), (dict(collect=CollectConfig(num_envs=-2)), "num_envs=-2"),
     (dict(ppo=PPOConfig(discount=1.5)), "discount=1.5"),
     (dict(ppo=PPOConfig(schedule="exponential")), "cosine, linear, constant"),
     (dict(ppo=PPOConfig(mini_batches=10**6)), "2048 steps of a rollout"),
     (dict(collect=CollectConfig(inference_workers=0)),
      "inference_workers=0 is not allowed: it must be an integer greater than 0"),
     (dict(collect=CollectConfig(inference_workers=33)), "inference_workers=33 exceeds collect.num_envs=8"),
     (dict(collect=CollectConfig(mode="ddppo", inference_workers=2)),
      "inference_workers=2 is not possible with collect.mode=ddppo"),
     (dict(collect=CollectConfig(inference_workers=2), deterministic=True), "is not possible with deterministic=True"),
     (dict(steps=0.5), "steps=0.5 is not allowed: it must be an integer"),
     (dict(seed=-1), "seed=-1 is not allowed: it must be an integer from 0"),
     (dict(device="foo"), "device=foo is none that torch knows"),
     (dict(policy=PolicyConfig(encoder="foo")), "policy.encoder=foo is none of light, resnet18"),
     (dict(policy=PolicyConfig(hidden_size=0)),
      "policy.hidden_size=0 is not allowed: it must be an integer greater than 0"),
     (dict(policy=PolicyConfig(log_std_init=(0.0, 1.0, 2.0))), "policy.log_std_init has 3 values, the actions have 2"),
     (dict(collect=CollectConfig(rollout_steps="8")),
      "collect.rollout_steps='8' is not allowed: it must be an integer"),
     (dict(collect=CollectConfig(max_wait_s=-1.0)), "collect.max_wait_s=-1.0 is not allowed: it must be a number of "
      "at least 0"),
     (dict(log_every_s=float("nan")), "log_every_s=nan is not allowed: it must be a number greater than 0")])
def test_settings_that_cannot_work_are_refused_before_anything_starts(config, words):
    with pytest.raises(ValueError, match=words):
        train(Pointer, TrainConfig(**config))
