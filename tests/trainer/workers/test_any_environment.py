"""Environments that are unusual, but in order: they train, are closed, and leave nothing behind. And those that cannot
train."""

import dataclasses
import functools
import multiprocessing
import os
import re
import signal
import subprocess
import threading
import time
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from tests.trainer.toys import BLIND, Pointer, small
from tests.waiting import is_alive, until
from trainer import Player, Policy, PolicyConfig, load_checkpoint, load_policy, train
from trainer.checkpoint import CheckpointError, list_checkpoints
from trainer.workers.environments import WorkerError


def config(steps=64, collect={}, **settings):
    return small(steps, **collect, **settings)


class Unusual(Pointer):
    """Rewards of one element, figures that are no numbers, an info that is None."""

    def step(self, action):
        obs, reward, terminated, truncated, _ = super().step(action)
        info = {"metrics": {"good": np.array([2.0]), "word": "odd",
                            "many": [1, 2]}} if terminated or truncated else None
        return obs, np.array([reward]), terminated, truncated, info


def test_odd_rewards_and_figures_do_not_stop_training():
    last = train(Unusual, config(256)).history[-1]
    assert last["episode/good"] == 2.0 and not {"episode/word", "episode/many"} & set(last)


class Busy(Pointer):
    """Starts processes, one of which it ends itself, and says when it is closed."""

    def __init__(self, folder):
        super().__init__()
        self.folder = Path(folder)

    def reset(self, **words):
        if not hasattr(self, "child"):
            helper = subprocess.Popen(["sleep", "60"])
            helper.terminate()
            assert helper.wait() == -signal.SIGTERM
            self.child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(600,), daemon=True)
            self.child.start()
            (self.folder / f"{self.child.pid}.child").touch()
        return super().reset(**words)

    def close(self):
        (self.folder / f"{os.getpid()}-{id(self)}.closed").touch()


def until_ended(folder: Path) -> None:
    """Wait until all children have ended; by themselves they would live for ten minutes."""
    until(lambda: not any(is_alive(int(path.stem)) for path in folder.glob("*.child")),
          "the children of the environments to end")


def test_environments_are_closed_and_what_they_started_ends(tmp_path):
    train(lambda: Busy(tmp_path), config())
    children = [int(path.stem) for path in tmp_path.glob("*.child")]
    assert len(list(tmp_path.glob("*.closed"))) == len(children) == 2
    until_ended(tmp_path)


def test_a_killed_worker_whose_child_lives_is_noticed(tmp_path):
    def kill():
        until(lambda: list(tmp_path.glob("*.child")), "a child")
        there = list(tmp_path.glob("*.child"))
        os.kill(int(Path(f"/proc/{there[0].stem}/stat").read_text().rpartition(")")[2].split()[1]), signal.SIGKILL)

    threading.Thread(target=kill, daemon=True).start()
    with pytest.raises(WorkerError, match="was killed by signal SIGKILL"):
        train(lambda: Busy(tmp_path), config(10**8, collect={"step_timeout_s": 60.0}))
    until_ended(tmp_path)


@pytest.mark.parametrize("key", ["camera.rgb", "keys", "training"])
def test_images_of_any_name(key):
    class Seeing(gym.Env):
        observation_space = spaces.Dict({key: spaces.Box(0, 255, (16, 16, 3), np.uint8),
                                         "tiny": spaces.Box(0, 1, (5, 5, 2))})
        action_space = spaces.Discrete(2)

        def reset(self, seed=None, options=None):
            super().reset(seed=seed)
            return self.observation_space.sample(), {}

        def step(self, action):
            return self.observation_space.sample(), 0.0, False, True, {}

    result = train(Seeing, config(32, policy=PolicyConfig(embedding_size=8, body_size=8, lstm_layers=1, hidden_size=8)))
    assert result.policy.image_keys == [key] and result.policy.vector_keys == ["tiny"]


THE_ONE = None


def the_one():
    global THE_ONE
    THE_ONE = THE_ONE or Pointer()
    return THE_ONE


def of_two_kinds():
    kind = getattr(of_two_kinds, "kind", Pointer)
    of_two_kinds.kind = Unusual
    env = kind()
    if kind is Unusual:
        env.observation_space = spaces.Dict(goal=spaces.Box(-1, 1, (3,), np.float32))
    return env


@pytest.mark.parametrize("make_env, error, words", [
    (the_one, ValueError, "gave the same environment twice"),
    (of_two_kinds, ValueError, "environments of different spaces"),
    (lambda: 3, ValueError, "make_env gave 3, which is no Gymnasium environment"),
    (lambda: gym.make_vec("Pendulum-v1", 2), ValueError, "several environments in one: collect.num_workers=0"),
    (Pointer(), ValueError, "not something that can be called"),
    (lambda lock=threading.Lock(): Pointer(), ValueError, "make_env cannot be sent to the worker processes"),
])
def test_what_cannot_train_is_told(make_env, error, words):
    with pytest.raises(error, match=words):
        train(make_env, config())


class Odd(gym.Env):
    """Spaces as given; with `old`, its step and reset are those of the old Gym."""

    def __init__(self, observation, action=None, old=False):
        self.observation_space, self.action_space, self.old = observation, action or spaces.Discrete(2), old

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        return self.observation_space.sample() if self.old == "reset" else (self.observation_space.sample(), {})

    def step(self, action):
        ends = (False, True) if self.old != "step" else (True,)
        return self.observation_space.sample(), 0.0, *ends, {}


def big_counter():
    env = Odd(spaces.Box(0, 1 << 40, (1,), np.int64))
    env.observation_space.sample = lambda: np.array([(1 << 24) + 1])
    return env


def shown_as(values, space=None):
    def make():
        env = Odd(space or spaces.Box(0, 255, (2,), np.uint8))
        env.observation_space.sample = lambda: values
        return env

    return make


def inside(value, box):
    return shown_as({"a": {"i": value}, "b": 1}, spaces.Dict(a=spaces.Dict(i=box), b=spaces.Discrete(2)))


VECTOR = spaces.Box(-1, 1, (2,), np.float32)


@pytest.mark.parametrize("make_env, error, words", [
    (lambda: Odd(spaces.Box(0, 255, (16, 16, 16), np.uint8)), ValueError, "channels first or last"),
    (lambda: Odd(spaces.Sequence(spaces.Discrete(2))), ValueError, "^the observation is of the space Sequence"),
    (lambda: Odd(spaces.Graph(spaces.Discrete(2), None)), ValueError, "^the observation is of the space Graph"),
    (lambda: Odd(VECTOR, spaces.Tuple([spaces.Discrete(2)])), ValueError, "^action space Tuple"),
    (lambda: Odd(VECTOR, spaces.Dict(a=spaces.Discrete(2))), ValueError, "^action space Dict"),
    (lambda: Odd("gym's"), ValueError, "none of Gymnasium's: the old Gym's are not taken"),
    (lambda: Odd(VECTOR, old="reset"), WorkerError, "at reset: reset gave a ndarray; Gymnasium's gives"),
    (lambda: Odd(VECTOR, old="step"), WorkerError, "at step 1: step gave 4 values; Gymnasium's gives"),
    (big_counter, WorkerError, "has the whole number 16777217"),
    (shown_as(np.array([0, 0.5], np.float32)), WorkerError,
     "at reset: observation 'obs' has the value 0.5, its space says uint8"),
    (shown_as(np.array([0, -1])), WorkerError, "observation 'obs' has the value -1, its space says uint8"),
])
def test_what_the_engine_does_not_take_is_one_sentence(make_env, error, words):
    with pytest.raises(error, match=words) as told:
        train(make_env, config())
    assert "Traceback" not in str(told.value)


BIG = np.array([(1 << 24) + 1])
WHOLE = spaces.Box(0, 1 << 40, (1,), np.int64)


BYTES = spaces.Box(0, 255, (2,), np.uint8)
PAIR = spaces.Tuple((spaces.Discrete(2), spaces.MultiDiscrete([3, 5])))
CHANGED = [
    (shown_as(0, spaces.Discrete(4, start=1)),
     r"observation 'obs' is 0, which is not of its space Discrete\(4, start=1\)"),
    (shown_as(0.5, spaces.Discrete(4)), "observation 'obs' is 0.5, which is not of its space Discrete"),
    (shown_as((1, np.array([2, 5])), PAIR), r"observation 'obs/1' is \[2 5\], which is not"),
    (inside(np.array([0.5, 0]), BYTES), "observation 'a/i' has the value 0.5, its space says uint8"),
    (inside(np.array([1, 300]), BYTES), "observation 'a/i' has the value 300, its space says uint8"),
    (inside(np.array([0.5]), spaces.Box(0, 9, (1,), np.int16)), "'a/i' has the value 0.5, its space says int16"),
    (inside(BIG, WHOLE), "observation 'a/i' has the whole number 16777217"),
    (shown_as(BIG, WHOLE), "observation 'obs' has the whole number 16777217"),
    (shown_as(np.array([1, 300], np.uint16)), "observation 'obs' has the value 300, its space says uint8"),
    (shown_as({"x": np.array([1, 300], np.uint16)}, spaces.Dict(x=BYTES)), "observation 'x' has the value 300"),
]
IN_WORKER = "environment 0 at reset:"
TOGETHER = r"^the batched environment SyncVectorEnv \(number 0 of 2\) failed at reset:"


@pytest.mark.parametrize("make_env, words, workers, who", [
    *((*case, 0, TOGETHER) for case in CHANGED), *((*case, 1, IN_WORKER) for case in CHANGED[::3])])
def test_a_value_that_would_change_is_one_sentence_that_names_the_environment(make_env, words, workers, who):
    with pytest.raises(WorkerError, match=f"{who} .*{words}") as told:
        train(make_env, config(collect={"num_workers": workers}))
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("make_env", [
    shown_as(4, spaces.Discrete(4, start=1)),
    inside(np.array([0.0, 255.0]), spaces.Box(0, 255, (2,), np.uint8)),
    inside(np.array([7.0]), spaces.Box(0, 9, (1,), np.int16)), inside(np.array([1 << 24]), WHOLE)])
@pytest.mark.parametrize("workers", [1, 0])
def test_a_value_of_another_type_that_stays_what_it_is_is_taken(make_env, workers):
    assert train(make_env, config(32, collect={"num_workers": workers})).steps == 32


def test_whole_numbers_of_another_type_fit_a_space_of_bytes():
    assert train(shown_as(np.array([0.0, 255.0])), config(32)).steps == 32


class Ends(Pointer):
    """Ends as it is told."""

    def __init__(self, ended, cut):
        super().__init__()
        self.ends = ended, cut

    def step(self, action):
        obs, reward, _, _, info = super().step(action)
        return obs, reward, *self.ends, info


@pytest.mark.parametrize("ends, words", [(("no", False), "terminated is 'no', not true or false"),
                                         ((False, 0.5), "truncated is 0.5, not true"),
                                         ((np.nan, False), "terminated is nan, not true"),
                                         ((False, []), r"truncated is \[\], not true"),
                                         ((None, False), "terminated is None, not true")])
def test_an_end_that_is_neither_true_nor_false_is_one_sentence(ends, words):
    with pytest.raises(WorkerError, match=words) as told:
        train(lambda: Ends(*ends), config())
    assert "\n" not in str(told.value)
    assert train(lambda: Ends(np.array([0]), np.bool_(True)), config()).steps == 64


def test_bytes_are_kept_as_bytes_and_trained_on(tmp_path):
    seen = []

    class Look:
        def after_update(self, state):
            seen.append(state.policy)

    result = train(lambda: Odd(spaces.Dict(image=spaces.Box(0, 255, (3, 16, 16), np.uint8),
                                           ram=spaces.Box(0, 255, (4,), np.uint8))),
                   config(policy=PolicyConfig(embedding_size=8, body_size=8, lstm_layers=1, hidden_size=8)), tmp_path,
                   callbacks=[Look()])
    assert result.policy.layouts["image"].order == "chw" and result.policy.units == {"image": 1 / 255, "ram": 1 / 255}
    loaded = load_policy(load_checkpoint(tmp_path))
    assert loaded.units == result.policy.units and loaded.layouts == result.policy.layouts


# ---------------------------------------------------------------------- where checkpoints go


def test_a_directory_belongs_to_one_run(tmp_path):
    first = train(Pointer, config(), tmp_path)
    with pytest.raises(ValueError, match="has checkpoints of another run: continue it with resume_from="):
        train(Pointer, config(seed=1), tmp_path)
    assert list_checkpoints(tmp_path / "checkpoints") == [first.checkpoint]


def test_going_on_from_an_older_checkpoint_keeps_what_is_written_then(tmp_path):
    train(Pointer, config(128, checkpoint_every_s=1e-9), tmp_path)
    oldest, *newer = list_checkpoints(tmp_path / "checkpoints")
    result = train(Pointer, config(int(oldest.stem[5:]) + 8, collect={"rollout_steps": 4}), tmp_path,
                   resume_from=oldest)
    assert result.checkpoint.exists() and list_checkpoints(tmp_path / "checkpoints")[-1] == result.checkpoint
    assert len(list((tmp_path / "checkpoints").glob("*.abandoned"))) == len(newer)


def test_a_place_that_cannot_be_written_is_told_before_training():
    with pytest.raises(ValueError, match="checkpoints cannot be written to /proc/nowhere"):
        train(Pointer, config(), "/proc/nowhere")


def test_numbers_of_numpy_and_paths_are_kept_as_plain_values(tmp_path):
    train(Pointer, config(np.int64(64), seed=np.int32(3)), tmp_path,
          meta={"data": Path("/x"), "rates": np.logspace(-1, 0, 2)})
    assert load_checkpoint(tmp_path)["meta"] == {"data": "/x", "rates": [0.1, 1.0]}
    with pytest.raises(ValueError, match="a checkpoint holds numbers, text, lists and dicts only"):
        train(Pointer, config(), tmp_path / "other", meta={"env": Pointer()})


def test_a_policy_that_sees_something_else_is_refused(tmp_path):
    class Other(gym.wrappers.TransformObservation):
        def __init__(self):
            super().__init__(Pointer(), lambda obs: {"target": obs["goal"]},
                             spaces.Dict(target=spaces.Box(-1, 1, (2,), np.float32)))

    train(Pointer, config(), tmp_path)
    told = "sees {'goal': (2,)}; this run's environments show {'target': (2,)}"
    with pytest.raises(CheckpointError, match=re.escape(told)):
        train(Other, config(128), resume_from=tmp_path)


def test_an_image_in_another_unit_is_refused_wherever_a_policy_goes(tmp_path):
    settings = config(32, policy=PolicyConfig(embedding_size=8, body_size=8), device="cpu")
    as_bytes = functools.partial(Odd, spaces.Box(0, 255, (16, 16, 3), np.uint8))
    as_floats = functools.partial(Odd, spaces.Box(0, 1, (16, 16, 3)))
    for run, trained, given, (theirs, ours) in ((tmp_path / "bytes", as_bytes, as_floats, (255, 1)),
                                                (tmp_path / "floats", as_floats, as_bytes, (1, 255))):
        train(trained, settings, run, progress=False)
        words = f"trained with 'obs' in the range of 0 to {theirs}, which {{}} gives in that of 0 to {ours}"
        with pytest.raises(CheckpointError, match=words.format("this environment")):
            Player(run, given())
        for way in ("start_from", "resume_from"):
            with pytest.raises(CheckpointError, match=words.format("this run")):
                train(given, dataclasses.replace(settings, steps=64), **{way: run})
        with pytest.raises(ValueError, match=words.format("that of evaluations")):
            train(trained, dataclasses.replace(settings, eval_every=32), eval_env=given)
        assert Player(run, trained()).act(trained().reset()[0]) in (0, 1)
        assert train(trained, dataclasses.replace(settings, steps=64), resume_from=run).steps == 64


def test_what_the_policy_does_not_use_may_be_of_any_shape_where_it_is_played():
    policy = Policy(spaces.Dict(x=VECTOR), spaces.Discrete(2), BLIND)
    env = Odd(spaces.Dict(x=VECTOR, volume=spaces.Box(0, 1, (16, 16, 16))))
    assert Player.of(policy, env).act(env.reset()[0]) in (0, 1)


def test_a_deterministic_run_keeps_its_environments(tmp_path):
    train(Pointer, config(deterministic=True), tmp_path)
    with pytest.raises(CheckpointError, match="with deterministic=True and 4 environments: it has 2"):
        train(Pointer, config(128, deterministic=True, collect={"num_envs": 4}), resume_from=tmp_path)


class Slow(Pointer):
    """Its steps take long; a file says that it has begun."""

    def __init__(self, begun: Path):
        super().__init__()
        self.begun = begun

    def step(self, action):
        self.begun.touch()
        time.sleep(0.1)  # timed: an environment that is slow
        return super().step(action)


@pytest.mark.parametrize("deterministic, overlap", [(False, False), (True, False), (True, True)])
def test_a_signal_does_not_wait_for_a_slow_rollout(tmp_path, deterministic, overlap):
    def stop():
        # Until the loop listens: while workers start, another handler keeps signals for later.
        until(lambda: "stop_on_signal" in getattr(signal.getsignal(signal.SIGTERM), "__qualname__", ""),
              "the loop to listen")
        until((tmp_path / "begun").exists, "a first step")
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=stop, daemon=True).start()
    settings = config(10**6, deterministic=deterministic, collect={"rollout_steps": 2048, "overlap": overlap})
    result = train(lambda: Slow(tmp_path / "begun"), dataclasses.replace(settings, stop_within_s=0.5), tmp_path)
    assert result.reason == "SIGTERM" and result.steps < 2 * 2048  # it did not wait for the end of the rollout
    assert deterministic or result.checkpoint.exists()
