"""Everything that a step is trained with, computed again from what its environment shows: identity, episode and step.

`train_watched` trains in an environment whose rewards, lengths and ends are functions of these three, keeps a copy of
every policy that acted or learned and every mini-batch that was learned from, and compares each trained step with a
walk through its environment's own story: recurrent state, previous action, value, log-probability, value of what
followed, advantage, target, weight.
"""

from __future__ import annotations

import copy
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import gymnasium as gym
import numpy as np
import torch

from trainer import PolicyConfig, PPOConfig, TrainConfig, ppo, train
from trainer.acting import Weights
from trainer.collect import Collector
from trainer.config import CollectConfig
from trainer.learner import Learner
from trainer.rollout import NO_ROW
from trainer.sequences import Sequences

Key = tuple[int, int, int]  # identity, episode, step
POLICY = PolicyConfig(encoder=None, lstm_layers=1, hidden_size=8, body_size=16, learn_precision="float32")


class Story(gym.Env):
    """Shows (identity, episode, step); all else follows from these, but for how long a step takes."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (3,), np.float32)
    action_space = gym.spaces.Box(-1, 1, (2,), np.float32)

    def __init__(self, delay_s: float = 0.0005):
        self.delay_s, self.identity, self.episode = delay_s, None, -1

    @staticmethod
    def ends(identity: int, episode: int) -> tuple[int, bool]:
        """The length of an episode, and whether a time limit alone ends it."""
        number = identity * 31 + episode * 17
        return 1 + number % 11, number % 3 == 0

    @classmethod
    def ends_with_the_limit(cls, identity: int, episode: int) -> bool:
        """Whether the end of an episode falls on its time limit: terminated and truncated."""
        return not cls.ends(identity, episode)[1] and (identity + episode) % 2 == 0

    @staticmethod
    def reward(identity: int, episode: int, t: int) -> float:
        return (identity % 7) - 3 + 0.5 * (episode % 5) + 0.1 * t

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if self.identity is None:
            self.identity = int(self.np_random.integers(1000))
            self.pace = self.delay_s * float(self.np_random.exponential())
        self.episode, self.t = self.episode + 1, 0
        return self._obs(), {}

    def _obs(self):
        return np.array([self.identity, self.episode, self.t], np.float32)

    def step(self, action):
        time.sleep(self.pace)  # timed: the speed of an environment
        reward = self.reward(self.identity, self.episode, self.t)
        self.t += 1
        length, by_limit = self.ends(self.identity, self.episode)
        over = self.t >= length
        truncated = by_limit or self.ends_with_the_limit(self.identity, self.episode)
        return self._obs(), reward, over and not by_limit, over and truncated, {}


@dataclass
class Watch:
    """What was seen of a run."""

    versions: dict[int, Any] = field(default_factory=dict)  # the policy that acted
    closed_under: dict[tuple[int, int], int] = field(default_factory=dict)  # (environment, step) -> the version then
    batches: list[dict[str, Any]] = field(default_factory=list)  # per update: its rows and mini-batches


def _kept(values: torch.Tensor) -> torch.Tensor:
    """A copy that nothing changes, on the CPU wherever the run is."""
    return values.detach().cpu().clone()


def train_watched(steps: int, make_env: Any = Story, **collect: Any) -> Watch:
    """Train in environments that are stories; what was seen."""
    watch = Watch()
    collect_, infer, offer = Collector.collect, Collector._infer, Weights.offer
    update, learn = Learner.update, ppo._learn

    def collected(self, policy, rollout, version, *rest):
        watch.versions.setdefault(version, copy.deepcopy(policy).cpu())
        return collect_(self, policy, rollout, version, *rest)

    def offered(self, policy, version):
        watch.versions[version] = copy.deepcopy(policy).cpu()
        offer(self, policy, version)

    def inferred(self, worker, policy, rollout, envs, version, *rest, **words):
        for e in envs[rollout.open_row[envs] != NO_ROW].tolist():
            watch.closed_under[e, int(rollout.step[rollout.open_row[e]])] = version
        return infer(self, worker, policy, rollout, envs, version, *rest, **words)

    def updated(self, rollout, stats):
        rows = stats.rows
        watch.batches.append({"rows": {
            "obs": _kept(rollout.obs["obs"][rows]),
            **{k: _kept(getattr(rollout, k)[rows]) for k in ("action", "state", "previous", "log_prob")},
            **{k: getattr(rollout, k)[rows].copy()
               for k in ("value", "next_value", "reward", "env", "step", "starts_episode", "version")},
        }, "closed": stats.steps, "late": self.late, "vtrace": bool(self.config.ppo.vtrace), "version": self.updates,
            "policy": copy.deepcopy(self.policy).cpu(), "learned": []})
        return update(self, rollout, stats)

    def learned(policy, evaluate, ranks, optimizer, coef, batch, targets, *rest):
        seen = {"obs": batch.obs["obs"], "state": batch.state} | vars(targets)
        watch.batches[-1]["learned"].append(
            {"first": batch.sequences.starts} | {name: _kept(value) for name, value in seen.items()})
        return learn(policy, evaluate, ranks, optimizer, coef, batch, targets, *rest)

    config = TrainConfig(steps=steps, torch_threads=1, policy=POLICY, ppo=PPOConfig(mini_batches=3, epochs=2),
                         collect=CollectConfig(
        **{"num_envs": 5, "num_workers": 2, "rollout_steps": 16} | collect))
    with ExitStack() as stack:
        for owner, name, wrapper in ((Collector, "collect", collected), (Collector, "_infer", inferred),
                                     (Weights, "offer", offered), (Learner, "update", updated),
                                     (ppo, "_learn", learned)):
            stack.enter_context(patch.object(owner, name, wrapper))
        train(make_env, config)
    return watch


def check(watch: Watch, config: PPOConfig = PPOConfig()) -> dict[str, int]:
    """Compare every trained step. Gives what was checked, by kind."""
    story = _walked(watch)
    counts = {"batches": len(watch.batches), "late": sum(batch["late"] for batch in watch.batches), "steps": 0,
              "by limit": 0, "ended": 0, "cut": 0, "learned": 0, "states": 0, "filled": 0,
              "versions": len(watch.versions), "oldest": 0}
    for batch in watch.batches:
        rows, keys = batch["rows"], _keys(batch["rows"]["obs"])
        for i, key in enumerate(keys):
            true = story[key]
            for name in ("state", "previous", "log_prob", "value", "next_value"):
                np.testing.assert_allclose(rows[name][i], true[name], rtol=2e-4, atol=2e-4, err_msg=f"{name} of {key}")
            assert abs(rows["reward"][i] - Story.reward(*key)) < 1e-5 and rows["starts_episode"][i] == (key[2] == 0)
        counts["steps"] += batch["closed"]
        counts["filled"] += len(keys) - batch["closed"]
        counts["oldest"] = max(counts["oldest"], int((batch["version"] - rows["version"]).max()))
        now = _now(batch, keys) if batch["late"] or batch["vtrace"] else None
        advantages, targets = (_vtrace(rows, keys, *now, config) if batch["vtrace"] else
                               _advantages(rows, keys, config))
        weights = _weights(rows, config)
        for kind in ("by limit", "ended", "cut"):
            counts[kind] += sum(story[key]["end"] == kind for key in keys)
        for part in batch["learned"]:
            part_keys = _keys(part["obs"])
            where = [keys.index(key) for key in part_keys]
            np.testing.assert_allclose(part["advantage"], advantages[where], rtol=1e-3, atol=1e-3)
            np.testing.assert_allclose(part["value"], targets[where], rtol=1e-3, atol=1e-3)
            np.testing.assert_allclose(part["weight"], weights[where], rtol=1e-5)
            acted = np.array([story[key]["log_prob"] for key in part_keys])
            ratios_to = acted if now is None else now[0][where]
            np.testing.assert_allclose(part["log_prob"], ratios_to, rtol=2e-4, atol=2e-4)
            most = config.vtrace_rho if batch["vtrace"] else config.max_importance_weight
            late_weights = weights[where] * np.minimum(np.exp(ratios_to - acted), most)
            np.testing.assert_allclose(part["policy_weight"], late_weights, rtol=1e-3)
            for k, first in enumerate(part["first"].tolist()):
                np.testing.assert_allclose(part["state"][k], story[part_keys[first]]["state"], rtol=2e-4, atol=2e-4)
            counts["learned"] += len(part_keys)
            counts["states"] += len(part["first"])
    return counts


def _keys(obs: torch.Tensor) -> list[Key]:
    return [tuple(map(int, row)) for row in obs.tolist()]


@torch.no_grad()
def _walked(watch: Watch) -> dict[Key, dict[str, Any]]:
    """Every step as its environment's own story has it: each closed step once, in its order, without gap."""
    steps: dict[int, list[tuple[int, Key, int, int, torch.Tensor]]] = {}
    for batch in watch.batches:
        rows = batch["rows"]
        for i, key in enumerate(_keys(rows["obs"])[: batch["closed"]]):
            closed_under = watch.closed_under[int(rows["env"][i]), int(rows["step"][i])]
            steps.setdefault(key[0], []).append((int(rows["step"][i]), key, int(rows["version"][i]), closed_under,
                                                 rows["action"][i]))
    story: dict[Key, dict[str, Any]] = {}
    for identity, taken in steps.items():
        taken.sort(key=lambda each: each[0])
        assert [each[0] for each in taken] == list(range(len(taken))), "no gap, none twice"
        episode, t = 0, 0
        for _, key, version, closed_under, action in taken:
            assert key == (identity, episode, t), "as the environment tells"
            policy, one = watch.versions[version], Sequences(np.array([1]), torch.device("cpu"))
            if t == 0:
                state, previous = torch.zeros(1, policy.state_size), torch.zeros(1, policy.action_size)
            seen = {"obs": torch.tensor([key], dtype=torch.float32)}
            log_prob, _, value, _ = policy.evaluate(seen, previous, action[None], one, state)
            true = {"state": state[0], "previous": previous[0], "log_prob": log_prob.item(), "value": value.item(),
                    "end": "cut"}
            state, previous = policy.act(seen, state, previous,
                                         deterministic=True).state, policy.action_features(action[None])
            length, by_limit = Story.ends(identity, episode)
            after, t = {"obs": torch.tensor([(identity, episode, t + 1)], dtype=torch.float32)}, t + 1
            follows = watch.versions[closed_under].act(after, state, previous, deterministic=True)
            true["next_value"] = follows.value.item()
            if t == length:
                true["end"] = "by limit" if by_limit else "ended"
                true["next_value"] *= by_limit
                episode, t = episode + 1, 0
            story[key] = true
    return story


@torch.no_grad()
def _now(batch: dict[str, Any], keys: list[Key]) -> tuple[np.ndarray, np.ndarray]:
    """Log-probability and value of each step under the policy that is about to learn, which remembers each sequence
    from the stored state of its first step."""
    policy, rows, one = batch["policy"], batch["rows"], Sequences(np.array([1]), torch.device("cpu"))
    out, state = np.zeros((2, len(keys))), {}
    for i, (identity, episode, t) in sorted(enumerate(keys), key=lambda each: each[1]):
        entered = state.get((identity, episode, t), rows["state"][i : i + 1])
        seen, previous = {"obs": rows["obs"][i : i + 1]}, rows["previous"][i : i + 1]
        log_prob, _, value, _ = policy.evaluate(seen, previous, rows["action"][i : i + 1], one, entered)
        out[:, i] = log_prob.item(), value.item()
        state[identity, episode, t + 1] = policy.act(seen, entered, previous, deterministic=True).state
    return out[0], out[1]


def _vtrace(rows: dict[str, Any], keys: list[Key], log_prob: np.ndarray, value: np.ndarray,
            config: PPOConfig) -> tuple[np.ndarray, np.ndarray]:
    """Advantages and targets by the sum of Espeholt et al. (2018), equation 1, with lambda in the factors c."""
    there, ratio = {key: i for i, key in enumerate(keys)}, np.exp(log_prob - rows["log_prob"].numpy())
    after = [there.get((identity, episode, t + 1)) for identity, episode, t in keys]
    follows = np.array([rows["next_value"][i] if j is None else value[j] for i, j in enumerate(after)])
    reward = rows["reward"] * config.reward_scale
    delta = np.minimum(config.vtrace_rho, ratio) * (reward + config.discount * follows - value)
    target = value.copy()
    for i in range(len(keys)):
        factor, t = 1.0, i
        while t is not None:
            target[i] += factor * delta[t]
            factor, t = factor * config.discount * config.gae_lambda * min(config.vtrace_c, ratio[t]), after[t]
    mixed = [follows[i] if j is None else config.gae_lambda * target[j] + (1 - config.gae_lambda) * value[j]
             for i, j in enumerate(after)]
    return reward + config.discount * np.array(mixed) - value, target


def _advantages(rows: dict[str, Any], keys: list[Key], config: PPOConfig) -> tuple[np.ndarray, np.ndarray]:
    """Advantages by the sum of their definition, delta_t + (discount lambda) delta_{t+1} + ... as far as the batch
    holds what follows; and targets."""
    there = {key: i for i, key in enumerate(keys)}
    delta = rows["reward"] * config.reward_scale + config.discount * rows["next_value"] - rows["value"]
    out = np.zeros(len(keys))
    for i, (identity, episode, t) in enumerate(keys):
        decay = 1.0
        while (key := (identity, episode, t)) in there:
            out[i] += decay * delta[there[key]]
            decay, t = decay * config.discount * config.gae_lambda, t + 1
    return out, out + rows["value"]


def _weights(rows: dict[str, Any], config: PPOConfig) -> np.ndarray:
    given = np.bincount(rows["env"])
    return np.minimum(config.max_importance_weight, len(rows["env"]) / 5 / given[rows["env"]])
