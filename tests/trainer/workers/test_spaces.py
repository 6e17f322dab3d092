"""Any Gymnasium environment: its observations reach the policy, its actions are of its space and its own."""

import copy

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces

from tests.trainer.toys import Masked, small
from trainer import Player, PolicyConfig, PPOConfig, train
from trainer.checkpoint import CheckpointError, space_from_plain, space_to_plain
from trainer.learner import Learner
from trainer.policy import Policy, observation_shapes
from trainer.sequences import Sequences
from trainer.spaces import as_action, badly_explored, choices, flat_space, flattener, whole

OBSERVATIONS = {
    "box": spaces.Box(-1, 1, (2, 3), np.float64),
    "scalar": spaces.Box(-1, 1, ()),
    "discrete": spaces.Discrete(5, start=-2),
    "multi-discrete": spaces.MultiDiscrete([[3, 4], [2, 2]]),
    "multi-binary": spaces.MultiBinary(4),
    "tuple": spaces.Tuple((spaces.Discrete(3), spaces.Box(-1, 1, (2,)))),
    "dict": spaces.Dict(image=spaces.Box(0, 255, (16, 16, 3), np.uint8),
                        inner=spaces.Dict(a=spaces.Discrete(2), b=spaces.Box(0, 1, (2,)))),
}
VECTOR = spaces.Box(-1, 1, (4,))
ACTIONS = {
    "box": spaces.Box(-2, 3, (2, 3), np.float64),
    "scalar": spaces.Box(-1, 1, ()),
    "bytes": spaces.Box(0, 255, (2,), np.uint8),
    "discrete": spaces.Discrete(3, start=2),
    "multi-discrete": spaces.MultiDiscrete([[2, 5], [3, 3]], start=[[1, 0], [0, -1]]),
    "multi-binary": spaces.MultiBinary((2, 3)),
}


@pytest.fixture
def learned_from(monkeypatch):
    """Of every batch: the policy that learned from it as it was before, and what the rollout had."""
    update, seen = Learner.update, []

    def watched(self, rollout, stats):
        rows = stats.rows
        seen.append((copy.deepcopy(self.policy), {"obs": {k: v[rows].clone() for k, v in rollout.obs.items()},
                                                  "action": rollout.action[rows].clone(),
                                                  "next_value": rollout.next_value[rows].copy()}))
        return update(self, rollout, stats)

    monkeypatch.setattr(Learner, "update", watched)
    return seen


class Odd(gym.Env):
    """Seven random observations; insists on actions of its space, and that the last one is still what it was."""

    def __init__(self, observations: str, actions: str):
        self.observation_space, self.action_space = OBSERVATIONS[observations], ACTIONS[actions]

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.t, self.last, self.copy = 0, None, None
        return self.observation_space.sample(), {}

    def step(self, action):
        assert self.action_space.contains(action), repr(action)
        assert self.last is None or np.array_equal(self.last, self.copy), "the action that was kept has changed"
        self.last, self.copy = action, np.copy(action)
        self.t += 1
        return self.observation_space.sample(), float(np.mean(action)), self.t >= 7, False, {}


@pytest.mark.parametrize("name", OBSERVATIONS)
def test_observations_fit_the_space_that_the_policy_sees(name):
    space, flat, flatten = OBSERVATIONS[name], flat_space(OBSERVATIONS[name]), flattener(OBSERVATIONS[name])
    for _ in range(5):
        value = space.sample()
        seen = flatten(value) if flatten else value
        seen = seen if isinstance(seen, dict) else {"obs": seen}
        assert {key: np.shape(v) for key, v in seen.items()} == observation_shapes(flat)
    assert space_to_plain(space_from_plain(space_to_plain(flat))) == space_to_plain(flat)


@pytest.mark.parametrize("name", ACTIONS)
def test_actions_lie_in_their_space_and_have_the_likelihood_that_is_learned_from(name):
    torch.manual_seed(0)
    space = ACTIONS[name]
    policy = Policy(spaces.Box(-1, 1, (4,)), space, PolicyConfig(lstm_layers=0, body_size=8, log_std_init=1.0))
    obs, state, previous = {"obs": torch.randn(32, 4)}, torch.zeros(32, 0), torch.zeros(32, policy.action_size)
    act = policy.act(obs, state, previous)
    numbers = policy.action_features(act.action) if not policy.choices else act.action
    for row in numbers.numpy():
        assert space.contains(as_action(space)(row.reshape(space.shape)))
    log_prob, entropy, value, _ = policy.evaluate(obs, previous, act.action,
                                                  Sequences(np.ones(32, int), torch.device("cpu")), state)
    assert torch.allclose(log_prob, act.log_prob, atol=1e-5) and torch.allclose(value, act.value, atol=1e-5)
    assert policy.action_features(act.action).shape == (32, policy.action_size) and entropy.shape == (32,)
    again = space_from_plain(space_to_plain(space))
    assert choices(again) == choices(space) == policy.choices and whole(again) == whole(space)
    assert np.array_equal(np.ravel(getattr(again, "start", 0)),
                          np.ravel(getattr(space, "start", np.zeros(len(policy.choices) or 1))))


def test_independent_parts_multiply_and_their_entropies_add():
    torch.manual_seed(0)
    policy = Policy(spaces.Box(-1, 1, (4,)), spaces.MultiDiscrete([2, 5]), PolicyConfig(lstm_layers=0, body_size=8))
    policy.mean.weight.data.normal_()
    obs, none, previous = {"obs": torch.randn(6, 4)}, torch.zeros(6, 0), torch.zeros(6, 7)
    act = policy.act(obs, none, previous)
    _, entropy, *_ = policy.evaluate(obs, previous, act.action, Sequences(np.ones(6, int), torch.device("cpu")), none)
    parts = policy.mean(policy.body(policy._inputs(obs, previous))).split([2, 5], -1)
    references = [torch.distributions.Categorical(logits=part) for part in parts]
    assert torch.allclose(act.log_prob, sum(d.log_prob(act.action[:, i]) for i, d in enumerate(references)), atol=1e-5)
    assert torch.allclose(entropy, sum(d.entropy() for d in references), atol=1e-5)


@pytest.mark.parametrize("workers", [1, 0])
@pytest.mark.parametrize("observations, actions",
                         [("dict", "multi-binary"), ("tuple", "multi-discrete"), ("discrete", "box"),
                                                   ("scalar", "bytes"), ("box", "scalar")])
def test_train_and_play(tmp_path, observations, actions, workers):
    assert train(lambda: Odd(observations, actions), small(num_workers=workers), tmp_path).steps == 64
    env = Odd(observations, actions)
    player = Player(tmp_path, env)
    observation, _ = env.reset()
    for _ in range(7):
        observation, *_ = env.step(player.act(observation))
    with pytest.raises(CheckpointError, match="another network: it .* this environment"):
        Player(tmp_path, Odd(observations, "discrete"))


def test_a_masked_option_is_never_taken_and_each_step_is_learned_with_its_own_mask(tmp_path):
    """Collected unevenly from several environments; with one gradient step per update its ratios are 1, unless masks
    are mixed up."""
    config = small(4096, log_every_s=1e-9, policy=PolicyConfig(body_size=16), mode="nover", num_envs=4, num_workers=2,
                   rollout_steps=32, ppo=PPOConfig(epochs=1, mini_batches=1, learning_rate=3e-2))
    result = train(Masked, config, tmp_path, progress=False)
    moved = [row["learn/kl"] for row in result.history if "learn/kl" in row]
    assert len(moved) > 20 and max(moved) < 1e-5
    env = Masked()
    player, (observation, _), rewards = Player(tmp_path, env, deterministic=True), env.reset(seed=0), []
    while len(rewards) < 10:
        observation, reward, *_ = env.step(player.act(observation))
        rewards.append(reward)
    assert sum(rewards) == 10


class NothingAllowed(gym.Env):
    """Of two parts with three and two options, the second has none that is allowed from the third step on."""

    observation_space = spaces.Dict(action_mask=spaces.MultiBinary(5), x=spaces.Box(-1, 1, (1,)))
    action_space = spaces.MultiDiscrete([3, 2])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return {"action_mask": np.array([1, 0, 1, 1, 0], np.int8), "x": np.zeros(1, np.float32)}, {}

    def step(self, action):
        self.t += 1
        return {"action_mask": np.array([1, 0, 1, self.t < 3, 0], np.int8),
                "x": np.zeros(1, np.float32)}, 0.0, False, self.t == 9, {}


@pytest.mark.parametrize("workers", [1, 0])
def test_a_mask_that_allows_nothing_is_refused(workers):
    config = small(policy=PolicyConfig(body_size=16), device="cpu", num_workers=workers)
    with pytest.raises(ValueError, match="'action_mask' allows none of the 2 options of part 1 of the action; it must "
                                         "allow at least one"):
        train(NothingAllowed, config)


class NothingAtTheEnd(gym.Env):
    """Shows its step; at its time limit nothing is allowed any more."""

    observation_space = spaces.Dict(action_mask=spaces.MultiBinary(3), x=spaces.Box(0, 9, (1,)))
    action_space = spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return self._obs(), {}

    def _obs(self):
        return {"action_mask": np.full(3, self.t < 5, np.int8), "x": np.array([self.t], np.float32)}

    def step(self, action):
        self.t += 1
        return self._obs(), 1.0, False, self.t == 5, {}


@pytest.mark.parametrize("workers", [1, 0])
def test_a_state_that_a_time_limit_cut_off_has_its_own_value_whatever_its_mask(workers, learned_from):
    train(NothingAtTheEnd, small(96, policy=PolicyConfig(body_size=16), device="cpu", num_workers=workers,
                                 mode="nover" if workers else "ver"))
    checked = 0
    for policy, rows in learned_from[1:]:  # once it is known what values are in
        for x, action, value in zip(rows["obs"]["x"], rows["action"], rows["next_value"]):
            if x == 4:
                last = {"x": torch.tensor([[5.0]]), "action_mask": torch.ones(1, 3)}
                true = policy.act(last, torch.zeros(1, 0), policy.action_features(action[None]),
                                  deterministic=True).value.item()
                assert value == pytest.approx(true, abs=1e-5) and abs(true) > 1e-6
                checked += 1
    assert checked > 5


class Nested(gym.Env):
    """An image inside another space; all of a moment's pixels, and its speed, are one number."""

    action_space = spaces.Discrete(2)

    def __init__(self, in_a_tuple: bool):
        image, speed = spaces.Box(0, 255, (16, 16, 3), np.uint8), spaces.Box(0, 255, (2,))
        self.in_a_tuple = in_a_tuple
        self.observation_space = (spaces.Tuple((image, speed)) if in_a_tuple else
                                  spaces.Dict(sensors=spaces.Dict(cam=image, speed=speed), task=spaces.Discrete(3)))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return self._obs(), {}

    def _obs(self):
        number = int(self.np_random.integers(256))
        image, speed = np.full((16, 16, 3), number, np.uint8), np.full(2, number, np.float32)
        return (image, speed) if self.in_a_tuple else {"sensors": {"cam": image, "speed": speed},
                                                       "task": np.int64(self.t % 3)}

    def step(self, action):
        self.t += 1
        return self._obs(), 0.0, False, self.t == 5, {}


@pytest.mark.parametrize("workers", [1, 0])
@pytest.mark.parametrize("in_a_tuple, image, others",
                         [(True, "0", ["1"]), (False, "sensors/cam", ["sensors/speed", "task"])])
def test_an_image_inside_another_space_has_its_encoder_and_is_kept_as_bytes(in_a_tuple, image, others, workers,
                                                                            learned_from, tmp_path):
    config = small(policy=PolicyConfig(body_size=16, embedding_size=8), device="cpu", num_workers=workers)
    policy = train(lambda: Nested(in_a_tuple), config, tmp_path, progress=False).policy
    assert policy.image_keys == [image] and policy.vector_keys == others
    for _, rows in learned_from:
        assert rows["obs"][image].dtype == torch.uint8 and rows["obs"][others[0]].dtype == torch.float32
        assert torch.equal(rows["obs"][image][:, 3, 4, 0].float(), rows["obs"][others[0]][:, 1])
    env = Nested(in_a_tuple)
    player, (observation, _) = Player(tmp_path, env), env.reset(seed=0)
    for _ in range(3):
        observation, *_ = env.step(player.act(observation))


@pytest.mark.parametrize("deterministic", [False, True])
def test_a_mask_that_allows_nothing_is_refused_when_it_is_played(deterministic):
    env = NothingAllowed()
    policy = Policy(flat_space(env.observation_space), env.action_space, PolicyConfig(body_size=16))
    player, (observation, _) = Player.of(policy, env, deterministic=deterministic), env.reset()
    for _ in range(3):
        observation, *_ = env.step(player.act(observation))
    with pytest.raises(ValueError, match="'action_mask' allows none of the 2 options of part 1"):
        player.act(observation)


def test_playing_again_gives_the_same_actions(tmp_path):
    train(lambda: gym.make("Pendulum-v1"), small(), tmp_path)

    def episode(**settings):
        env = gym.make("Pendulum-v1")
        player, (observation, _), actions = Player(tmp_path, env, **settings), env.reset(seed=3), []
        for _ in range(5):
            actions.append(player.act(observation))
            observation, *_ = env.step(actions[-1])
        return np.array(actions)

    assert np.array_equal(episode(), episode()) and not np.array_equal(episode(), episode(seed=1))
    assert np.array_equal(episode(deterministic=True), episode(deterministic=True, seed=1))


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("own, within", [(0.1, 0.1), (5.0, 2.0)], ids=["narrower", "wider"])
def test_actions_are_played_within_the_bounds_of_the_environment_and_of_training(own, within, kind):
    """And the policy is told, as its previous action, what was done."""
    torch.manual_seed(0)
    policy = Policy(VECTOR, spaces.Box(-2, 2, (3,)), PolicyConfig(body_size=8, log_std_init=2.0, log_std_max=2.0))
    env = gym.Env()
    env.observation_space, env.action_space = VECTOR, spaces.Box(-own, own, (3,), kind)
    player = Player.of(policy, env)
    played = np.array([player.act(np.zeros(4, np.float32)) for _ in range(32)])
    assert all(env.action_space.contains(action) for action in played)
    assert np.abs(played).max() == pytest.approx(within) and np.abs(played).max() <= kind(within)
    assert np.allclose(player._previous.numpy(), played[-1])


@pytest.mark.parametrize("space, words", [
    (spaces.Sequence(spaces.Discrete(2)), "the observation is of the space Sequence"),
    (spaces.Dict(a=spaces.Sequence(spaces.Discrete(2))), "observation key 'a' is of the space"),
    (spaces.Box(-1, 1, (0,)), r"the observation is of the space .* of shape \(0,\); it must have at least one number"),
    (spaces.Dict(a=spaces.Box(-1, 1, (3, 0)), b=spaces.Discrete(2)),
     "observation key 'a' is of the space .* at least one number"),
    (spaces.Dict({}), r"the observation is of the space Dict\(\); it must have at least one number"),
    (spaces.Tuple(()), r"the observation is of the space Tuple\(\); it must have at least one number"),
    (spaces.Dict(a=spaces.Dict({}), b=spaces.Discrete(2)),
     "observation key 'a' is of the space .* at least one number"),
    (spaces.Dict(a=spaces.Tuple((spaces.Tuple(()),)), b=spaces.Discrete(2)),
     "observation key 'a' is of the space .* at least one number"),
    (spaces.Tuple((spaces.Dict({}), spaces.Discrete(2))),
     "the observation is of the space .* at least one number in each of its parts"),
    (spaces.Dict({"a/b": spaces.Discrete(2), "a": spaces.Dict(b=spaces.Box(0, 255, (16, 16, 3), np.uint8))}),
     "two parts of the observation would both be called 'a/b'"),
])
def test_observations_of_no_fixed_size_or_without_numbers_are_refused(space, words):
    with pytest.raises(ValueError, match=words):
        flat_space(space)


def test_other_actions_are_refused():
    with pytest.raises(ValueError, match="none of Box, Discrete, MultiDiscrete and MultiBinary"):
        choices(spaces.Tuple((spaces.Discrete(2),)))


@pytest.mark.parametrize("workers", [1, 0])
@pytest.mark.parametrize("space", [spaces.Box(-1, 1, (0,)), spaces.MultiDiscrete([])], ids=["box", "multi-discrete"])
def test_actions_without_numbers_are_refused(space, workers, monkeypatch):
    monkeypatch.setitem(ACTIONS, "none", space)
    with pytest.raises(ValueError, match="the action is of the space .* at least one number"):
        train(lambda: Odd("box", "none"), small(num_workers=workers))


def test_spaces_of_older_checkpoints_are_read():
    assert space_from_plain({"choices": [2, 3]}) == spaces.MultiDiscrete([2, 3])
    plain = {"box": [2], "low": 0.0, "high": 255.0, "dtype": "uint8"}
    assert space_from_plain(plain) == spaces.Box(0, 255, (2,), np.uint8)


@pytest.mark.parametrize("low, high, mean, is_bad", [
    (-1, 1, 0.0, False), (-0.4, 0.4, 0.0, False), (-1000, 1000, 0.0, False), (0, 1, 0.0, False), (-1, 1, 1.5, False),
    (-np.inf, np.inf, 0.0, False),
    (10, 20, 0.0, True), (10, 20, 15.0, False), (0, 1000, 0.0, True), (-0.01, 0.01, 0.0, True)])
def test_a_range_of_actions_that_is_hardly_explored_is_told(low, high, mean, is_bad, caplog):
    space = spaces.Box(low, high, (2,), np.float32)
    problem = badly_explored(space, mean, 1.0)
    assert (problem is not None) == is_bad and badly_explored(spaces.Discrete(3), mean, 1.0) is None
    if not is_bad or low != 10:
        return
    assert problem.startswith("number 0 of an action lies between 10 and 20, and the policy begins with 0, give or "
                              "take 1")

    class Far(gym.Env):
        observation_space, action_space = spaces.Box(-1, 1, (1,)), space

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            return np.zeros(1, np.float32), {}

        def step(self, action):
            return np.zeros(1, np.float32), 0.0, False, bool(self.np_random.random() < 0.2), {}

    train(Far, small(32, num_workers=0))
    assert caplog.text.count("RescaleAction(env, -1.0, 1.0)") == 1
