"""Environments that are stepped together: Gymnasium's vectors in every autoreset mode, torch tensors, EnvPool."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.spaces.utils import flatten
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from tests.trainer.every_step import Story, check, train_watched
from tests.trainer.toys import Masked, Pointer
from trainer import CollectConfig, PolicyConfig, PPOConfig, TrainConfig, train
from trainer.errors import WorkerError
from trainer.spaces import as_action
from trainer.workers.batched import BatchedEnvironments

SMALL = PolicyConfig(encoder=None, hidden_size=8, body_size=16, lstm_layers=1)


def stories(mode: AutoresetMode, n: int = 5):
    return SyncVectorEnv([partial(Story, 0.0)] * n, autoreset_mode=mode)


class WithMask(SyncVectorEnv):
    """Resets when it is told."""

    def __init__(self, n: int = 5):
        super().__init__([partial(Story, 0.0)] * n, autoreset_mode=AutoresetMode.DISABLED)


class OnDevice(gym.vector.VectorWrapper):
    """Gives and takes torch tensors."""

    def reset(self, **words):
        obs, info = self.env.reset(**words)
        return torch.from_numpy(obs), info

    def step(self, actions):
        assert isinstance(actions, torch.Tensor)
        obs, reward, terminated, truncated, info = self.env.step(actions.numpy())
        return torch.from_numpy(obs), *(torch.from_numpy(each) for each in (reward, terminated, truncated)), info


MAKES = {"same step": partial(stories, AutoresetMode.SAME_STEP), "next step": partial(stories, AutoresetMode.NEXT_STEP),
         "disabled": WithMask, "tensors": lambda: OnDevice(stories(AutoresetMode.NEXT_STEP)),
         "one environment": partial(Story, 0.0)}


@pytest.mark.parametrize("kind", MAKES)
@pytest.mark.parametrize("collect", [{}, {"overlap": True}, {"mode": "appo"}], ids=str)
def test_every_trained_step_is_what_its_environment_tells(kind, collect):
    """The brute-force check: also recurrent states, and the value of what a time limit cut off, in every mode of
    resetting."""
    counts = check(train_watched(480, MAKES[kind], num_workers=0, **collect))
    assert counts["steps"] >= 480 and min(counts["by limit"], counts["ended"], counts["cut"]) > 5


def settings(steps: int, envs: int = 8, **collect) -> TrainConfig:
    return TrainConfig(steps=steps, policy=SMALL, torch_threads=1, ppo=PPOConfig(mini_batches=2, epochs=1),
                       collect=CollectConfig(num_envs=envs, num_workers=0, rollout_steps=16, **collect))


def test_gymnasiums_own_vector_trains_and_says_how_many_it_has():
    result = train(lambda: gym.make_vec("CartPole-v1", 32, vectorization_mode="vector_entry_point"), settings(2048))
    assert result.steps == 2048 and result.history[-1]["episode/length"] == result.history[-1]["episode/return"] > 5


@pytest.mark.parametrize("make",
                         [lambda: gym.make_vec("CartPole-v1", 8, vectorization_mode="vector_entry_point"), Pointer],
                         ids=["a vector", "one environment"])
def test_fewer_at_once_than_are_stepped_together_are_refused_in_a_sentence(make):
    with pytest.raises(ValueError, match="collect.max_batch=4 is not possible with 8 environments that are stepped "
                                         "together"):
        train(make, settings(64, max_batch=4))
    assert train(make, settings(64, max_batch=8)).steps >= 64


class Kept(gym.Wrapper):
    """Keeps what it shows: now, and at the end of its last episode."""

    def reset(self, **words):
        self.now, info = self.env.reset(**words)
        return self.now, info

    def step(self, action):
        self.now, reward, over, cut, info = self.env.step(action)
        if over or cut:
            self.last = self.now
        return self.now, reward, over, cut, info


@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.parametrize("name", ["FrozenLake-v1", "Blackjack-v1"])
def test_a_vector_of_observations_that_are_no_box_shows_what_its_environments_show(name, mode):
    make = partial(gym.make_vec, name, 3, vectorization_mode="sync", vector_kwargs={"autoreset_mode": mode},
                   wrappers=(Kept,))
    ended, seen, chance = 0, set(), np.random.default_rng(0)
    with BatchedEnvironments(make, settings(64).collect, 5) as environments:
        space = environments.env.single_observation_space
        for _ in range(80):
            while not environments.ready:
                environments.read(0.0)
            who = np.array(environments.ready)
            environments.ready.clear()
            for e in who:
                env = environments.env.envs[e]
                assert np.array_equal(environments.obs["obs"][e], flatten(space, env.now))
                seen.add(environments.obs["obs"][e].tobytes())
                if environments.ended.pop(e, None):
                    assert np.array_equal(environments.final_obs["obs"][e], flatten(space, env.last))
                    ended += 1
            environments.step(who, chance.integers(environments.action_space.n, size=(len(who), 1)))
    assert ended > 10 and len(seen) > 5
    assert train(make, settings(256)).steps >= 256


def test_ranks_share_no_seed_whatever_the_vector_holds():
    """More environments than `num_envs` says."""
    began = []
    for rank in (0, 1):
        make = partial(SyncVectorEnv, [lambda: gym.make("CartPole-v1")] * 32)
        with BatchedEnvironments(make, settings(64).collect, 5, rank) as environments:
            began += [row.tobytes() for row in environments.obs["obs"]]
    assert len(set(began)) == 64


class Given(Pointer):
    """Keeps the action that it is given, a whole number."""

    def __init__(self):
        super().__init__()
        self.action_space = gym.spaces.Box(-3, 9, (2,), np.int32)

    def step(self, action):
        self.given = action.copy()
        return self._obs(), 0.0, False, False, {}


def test_whole_numbers_are_rounded_as_they_are_for_one_environment():
    with BatchedEnvironments(lambda: SyncVectorEnv([Given] * 3), settings(64).collect, 5) as environments:
        space, numbers = environments.action_space, np.array([[4.6, 4.4], [-1.7, 12.0], [-0.4, -5.0]], np.float32)
        environments.step(np.arange(3), numbers)
        for env, row in zip(environments.env.envs, np.clip(numbers, space.low, space.high)):
            assert env.given.tolist() == as_action(space)(row).tolist()


class Telling(gym.Wrapper):
    """Every second of its episodes tells a success."""

    ended = 0

    def step(self, action):
        *others, over, cut, info = self.env.step(action)
        self.ended += over or cut
        told = {"ended": self.ended, "name": "x"} | ({"success": True} if self.ended % 2 else {})
        return *others, over, cut, {"metrics": told} if over or cut else info


@pytest.mark.parametrize("make", [lambda: Telling(Masked()), lambda: SyncVectorEnv([lambda: Telling(Pointer())] * 4)],
                         ids=["one environment, of another space", "a vector that resets in the next step"])
def test_what_episodes_tell_is_kept(make):
    last = train(make, settings(1024)).history[-1]
    assert last["episode/success"] == 1.0 and last["episode/ended"] > 1 and "episode/name" not in last


def test_figures_are_not_cut_to_the_type_of_the_first():
    """Episodes of all environments end in the same step; the first of them says 0 and True, the others fractions."""
    made = []

    class Scored(gym.Wrapper):
        def step(self, action):
            *others, over, cut, info = self.env.step(action)
            first = self.number == 0
            return *others, over, cut, info | ({"metrics": {"score": 0 if first else 0.9}} if over or cut else {})

    def make():
        env = Scored(gym.make("Pendulum-v1", max_episode_steps=8))
        env.number = len(made) - 1  # one is made first to see what it is
        made.append(env)
        return env

    assert train(make, settings(256)).history[-1]["episode/score"] == pytest.approx(7 / 8 * 0.9)


def test_envpool_is_a_batch_too():
    envpool = pytest.importorskip("envpool")
    result = train(lambda: envpool.make_gymnasium("HalfCheetah-v5", num_envs=4, seed=0, max_episode_steps=20),
                   settings(512))
    assert result.steps == 512 and result.history[-1]["episode/length"] == 20


def test_asynchronous_envpool_answers_whoever_is_ready():
    envpool = pytest.importorskip("envpool")
    make = partial(envpool.make_gymnasium, "CartPole-v1", num_envs=6, batch_size=2, seed=0, max_episode_steps=30)
    result = train(make, settings(960))
    last = result.history[-1]
    assert result.steps == 960 and 5 < last["episode/length"] == last["episode/return"] <= 30


def test_what_is_no_batch_is_one_sentence():
    class Nan(OnDevice):
        def step(self, actions):
            obs, *others = super().step(actions)
            return obs * torch.nan, *others

    for make, error, words in ((lambda: 3, ValueError, "make_env gave 3 without num_envs"),
                               (lambda: Nan(stories(AutoresetMode.NEXT_STEP)), WorkerError,
                                "observation 'obs' that is not finite")):
        with pytest.raises(error, match=words):
            train(make, settings(64))
    with pytest.raises(ValueError, match="stepped together, needs collect.mode=ver"):
        train(Story, settings(64, mode="nover"))


class Wrong(gym.vector.VectorWrapper):
    """Whose third step is answered with what `change` makes of the answer."""

    steps = 0

    def __init__(self, change):
        super().__init__(stories(AutoresetMode.NEXT_STEP))
        self.change = change

    def step(self, actions):
        self.steps += 1
        answer = super().step(actions)
        return self.change(*answer) if self.steps == 3 else answer


class Raises(Pointer):
    """The third of those that are made, at its third step."""

    made = 0

    def __init__(self):
        super().__init__()
        Raises.made += 1
        self.bad = Raises.made % 5 == 3

    def step(self, action):
        return {}["drawer"] if self.bad and self.t == 2 else super().step(action)


@pytest.mark.parametrize("change, words", [
    (lambda obs, reward, *others: (obs, reward[:, None], *others),
     r"step 3: reward has shape \(5, 1\) and type float64, not a"),
    (lambda obs, reward, *others: (obs, reward[:4], *others), r"step 3: reward has shape \(4,\)"),
    (lambda obs, *others: (obs[:4], *others),
     r"step 3: observation 'obs' has shape \(4, \d+\), its space says \(\d+,\) for each of 5"),
    (lambda obs, reward, over, cut, info: (obs, reward, over, info), "step 3: step gave 4 values; Gymnasium's gives"),
    (lambda obs, reward, over, cut, info: (obs, reward, None, cut, info),
     "step 3: terminated is None, not a number for each"),
    (lambda obs, reward, over, *others: (obs, reward, [None] * 5, *others),
     "step 3: terminated is .*None.*, not a number for each"),
    (lambda obs, *others: (["a"] * 5, *others), "step 3: observation 'obs' has shape"),
    (lambda obs, *others: (obs.astype(str), *others), "step 3: observation 'obs' is of type <U.*, not of numbers"),
    (lambda obs, reward, over, *others: (obs, reward, over + 0.5, *others),
     "step 3: terminated is 0.5, not true or false"),
    (lambda obs, reward, over, cut, info: (obs, reward, over, cut * np.nan, info),
     "step 3: truncated is nan, not true or false"),
])
def test_an_answer_that_is_none_of_a_batch_is_one_sentence(change, words):
    with pytest.raises(WorkerError, match=r"^the batched environment Wrong \(of 5\) failed at " + words) as told:
        train(lambda: Wrong(change), settings(512))
    assert "\n" not in str(told.value)


class Asynchronous:
    """Answers two at a time, whose numbers `change` gives."""

    def __init__(self, change):
        self.env, self.change, self.answers, self.batch_size = stories(AutoresetMode.NEXT_STEP, 4), change, 0, 2
        self.num_envs, self.config = 4, {"batch_size": 2}

    def __getattr__(self, name):
        return getattr(self.env, name)

    def async_reset(self):
        self.obs, self.waiting = self.env.reset(seed=0)[0], [0, 1, 2, 3]

    def send(self, actions, ids):
        self.waiting += ids.tolist()

    def recv(self):
        self.answers += 1
        ids, self.waiting = np.array(self.waiting[:2]), self.waiting[2:]
        info = {"env_id": ids if self.answers < 4 else self.change(ids)}
        return self.obs[ids], np.zeros(2), np.zeros(2, bool), np.zeros(2, bool), info


@pytest.mark.parametrize("change", [lambda ids: ids * 0, lambda ids: ids + 4, lambda ids: -1 - ids,
                                    lambda ids: ids + 0.5, lambda ids: None,
                                    lambda ids: ids[:, None], lambda ids: ["0", "1"]])
def test_an_asynchronous_batch_that_answers_for_others_is_one_sentence(change):
    with pytest.raises(WorkerError,
                       match=r"^the batched environment Asynchronous \(of 4\) failed at step \d+: its recv has "):
        train(lambda: Asynchronous(change), settings(512))


@pytest.mark.parametrize("make", [lambda: SyncVectorEnv([Raises] * 5), Raises], ids=["a vector", "one environment"])
def test_an_environment_of_a_batch_that_raises_is_named(make):
    Raises.made = 0 if make is not Raises else -1
    words = r"^the batched environment SyncVectorEnv \(number 2 of 5\) failed at step 3 of its episode:\n"
    with pytest.raises(WorkerError, match=words) as told:
        train(make, settings(512, envs=5))
    assert "KeyError: 'drawer'" in str(told.value)


class Elsewhere(torch.Tensor):
    """A tensor as on another device: numpy cannot read it."""

    def __array__(self, *given, **words):
        raise TypeError("it is on another device")


class ShownAs(SyncVectorEnv):
    """Three CartPoles that begin with what they are told to, of a space that they are told."""

    def __init__(self, space, shown):
        super().__init__([lambda: gym.make("CartPole-v1")] * 3, autoreset_mode=AutoresetMode.SAME_STEP)
        self.single_observation_space, self.shown = space, shown

    def reset(self, **words):
        return self.shown, super().reset(**words)[1]


BYTES, WHOLE = gym.spaces.Box(0, 255, (2,), np.uint8), gym.spaces.Box(0, 1 << 40, (2,), np.int64)


@pytest.mark.parametrize("space, kind",
                         [(BYTES, torch.uint8), (BYTES, torch.int32), (BYTES, torch.float32), (WHOLE, torch.int64)])
def test_tensors_of_whole_numbers_stay_where_they_are(space, kind):
    shown = torch.full((3, 2), 7, dtype=kind).as_subclass(Elsewhere)
    with BatchedEnvironments(lambda: ShownAs(space, shown), settings(64).collect, 5) as environments:
        assert environments.obs["obs"].tolist() == [[7, 7]] * 3


@pytest.mark.parametrize("space, shown, words", [
    (BYTES, torch.full((3, 2), 300), "observation 'obs' has the value 300, its space says uint8"),
    (BYTES, torch.full((3, 2), torch.nan), "observation 'obs' has the value nan, its space says uint8"),
    (BYTES, torch.full((3, 2), 0.5), "observation 'obs' has the value 0.5, its space says uint8"),
    (BYTES, np.full((3, 2), 0.5, np.float32), "observation 'obs' has the value 0.5, its space says uint8"),
    (WHOLE, torch.full((3, 2), (1 << 24) + 1), "observation 'obs' has the whole number 16777217"),
    (WHOLE, np.full((3, 2), -(1 << 24) - 1), "observation 'obs' has the whole number 16777217"),
    (gym.spaces.Discrete(3), torch.zeros(3),
     "torch tensors: they have to be of a Box or a Dict of Boxes, and are of the space Discrete"),
    (gym.spaces.Discrete(4, start=1), np.zeros(3, int), "observation 'obs' is 0, which is not of its space Discrete"),
])
def test_a_value_of_a_batch_that_would_become_another_one_is_one_sentence(space, shown, words):
    with pytest.raises(WorkerError,
                       match=r"^the batched environment ShownAs \(of 3\) failed at reset: .*" + words) as told:
        train(lambda: ShownAs(space, shown), settings(64))
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("space, shown, wrong, words", [
    (WHOLE, np.ones((3, 2), int), 1 << 25, "has the whole number 33554432"),
    (BYTES, np.ones((3, 2), np.float32), 0.5, "has the value 0.5, its space says uint8"),
    (gym.spaces.Discrete(4, start=1), np.ones(3, int), 0, "is 0, which is not of its space"),
])
@pytest.mark.parametrize("singly", [False, True], ids=["one array", "an array for each"])
def test_what_an_episode_ends_with_is_looked_at_and_nothing_beside_it(space, shown, wrong, words, singly):
    """The first episode of three ends. What stands there for the others does not matter."""
    for which, refused in ((0, True), (1, False)):
        last = shown.copy()
        last[which] = wrong
        if singly:
            last, each = np.empty(3, object), last
            last[0], last[1] = each[0], each[1]
        with BatchedEnvironments(lambda: ShownAs(space, shown), settings(64).collect, 5) as environments:
            environments.env.step = lambda _: (shown, np.zeros(3), np.arange(3) == 0, np.zeros(3, bool),
                                               {"final_obs": last})
            with pytest.raises(WorkerError, match=words) if refused else nullcontext():
                environments.step(np.arange(3), np.zeros((3, 1), int))
            assert refused or np.array_equal(environments.final_obs["obs"][0], environments.obs["obs"][0])
