"""Who acts in an evaluation: a trained policy, a scripted expert, or a baseline that a policy must beat.

An agent serves a fixed number of slots; a slot holds one episode at a time. Every slot draws from its own generator,
seeded by its episode, and a batch has a row for every slot. So one episode does not depend on those beside it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from eval.own_agents import OwnAgent
from rearrange.home.settings.environment import NAVIGATION_AGENTS
from rearrange.home.settings.own_networks import of_checkpoint
from rearrange.home.settings.remote import Remote
from trainer.spaces import as_action, choices

if TYPE_CHECKING:
    import gymnasium

    from rearrange.env.skill_env import RearrangeEnv

Observation = Mapping[str, np.ndarray]


class Agent(ABC):
    """Chooses the actions of one skill or scenario, for the slots that ask. Only `act` has to be written."""

    def begin(self, slot: int, seed: int) -> None:
        """A new episode starts in `slot`."""

    def forget(self, slot: int) -> None:
        """The skill begins again within the same episode: its memory is cleared, its random numbers go on."""

    @abstractmethod
    def act(self, observations: Mapping[int, Observation], mean: Collection[int] = ()) -> dict[int, np.ndarray]:
        """Choose an action for every slot that has an observation.

        Args:
            observations: slot -> what is seen there.
            mean: slots in which a policy takes its mean or likeliest action instead of a sample.

        Returns:
            Slot -> action in [-1, 1], or one of a discrete space.
        """

    def end(self, slot: int) -> None:
        """Nothing runs in `slot` any more."""


class ZeroAgent(Agent):
    """Stands still, and releases nothing: every command 0."""

    def __init__(self, action_size: int):
        self._size = action_size

    def act(self, observations: Mapping[int, Observation], mean: Collection[int] = ()) -> dict[int, np.ndarray]:
        return {slot: np.zeros(self._size, np.float32) for slot in observations}


class RandomAgent(Agent):
    """Uniform random commands, or choices."""

    def __init__(self, slots: int, space: gymnasium.Space):
        self._rngs = [np.random.default_rng(0)] * slots
        self._choices, self._shape, self._as_action = choices(space), space.shape, as_action(space)

    def begin(self, slot: int, seed: int) -> None:
        self._rngs[slot] = np.random.default_rng(seed)

    def act(self, observations: Mapping[int, Observation], mean: Collection[int] = ()) -> dict[int, np.ndarray]:
        return {slot: self._draw(self._rngs[slot]) for slot in observations}

    def _draw(self, rng: np.random.Generator) -> Any:
        if self._choices:
            return self._as_action(np.array([rng.integers(count) for count in self._choices]).reshape(self._shape))
        return rng.uniform(-1, 1, self._shape).astype(np.float32)


class ExpertAgent(Agent):
    """The scripted expert of a skill, which sees the simulator's state and plans in it."""

    def __init__(self, envs: Sequence[RearrangeEnv]):
        self._envs = envs
        self._experts: dict[int, Any] = {}

    def begin(self, slot: int, seed: int) -> None:
        from skills.experts import expert_class

        env = self._envs[slot]
        self._experts[slot] = expert_class(env.skill.name)(env.sim, env.skill)

    def act(self, observations: Mapping[int, Observation], mean: Collection[int] = ()) -> dict[int, np.ndarray]:
        return {slot: np.asarray(self._experts[slot].act(), np.float32) for slot in observations}

    def end(self, slot: int) -> None:
        self._experts.pop(slot, None)


class PointGoalAgent(Agent):
    """A policy of PointNav that drives the Fetch in Navigate, one for each slot."""

    def __init__(self, checkpoint: dict[str, Any], envs: Sequence[RearrangeEnv], deterministic: bool,
                 network: str | None):
        from eval.point_goal import Pilot

        self._envs = envs
        self._pilots = [Pilot(checkpoint, "the policy of nav=pointnav", deterministic, network) for _ in envs]
        self._drivers: dict[int, Any] = {}

    def begin(self, slot: int, seed: int) -> None:
        from eval.point_goal import NavigatePointNav
        from planner.spa.controllers import Memory

        env = self._envs[slot]
        self._drivers[slot] = NavigatePointNav(self._pilots[slot], Memory(), env.sim, env.skill)

    def act(self, observations: Mapping[int, Observation], mean: Collection[int] = ()) -> dict[int, np.ndarray]:
        return {slot: self._drivers[slot].act() for slot in observations}

    def end(self, slot: int) -> None:
        self._drivers.pop(slot, None)


class NavigationAgent(Agent):
    """A scripted agent of navigation tasks, one for each slot."""

    def __init__(self, name: str, envs: Sequence[Any]):
        from rearrange.navigation.scripted_agents import SCRIPTED

        self._agents = [SCRIPTED[name](env) for env in envs]

    def begin(self, slot: int, seed: int) -> None:
        self._agents[slot].begin()

    def act(self, observations: Mapping[int, Observation], mean: Collection[int] = ()) -> dict[int, Any]:
        return {slot: self._agents[slot].act(observation) for slot, observation in observations.items()}


class PolicyAgent(Agent):
    """A trained policy with its recurrent state per slot. `space`: its actions, where they are not all in [-1, 1]."""

    def __init__(self, checkpoint: dict[str, Any], slots: int, deterministic: bool, network: str | None = None,
                 space: gymnasium.Space | None = None):
        import torch

        from trainer.checkpoint import load_policy

        self._torch, self._deterministic = torch, deterministic
        self.policy = load_policy(checkpoint, of_checkpoint(checkpoint, network))
        self._state = torch.zeros(slots, self.policy.state_size)
        self._previous = torch.zeros(slots, self.policy.action_size)
        self._rngs = [np.random.default_rng(0)] * slots
        self.values = torch.zeros(slots)  # of what the policy was shown last
        self._shape, self._as_action = (space.shape, as_action(space)) if space is not None else ((), None)
        self._batch = {key: np.zeros((slots, *shape), np.float32) for key, shape in self.policy.seen.items()}

    def begin(self, slot: int, seed: int) -> None:
        self._rngs[slot] = np.random.default_rng(seed)
        self.forget(slot)

    def forget(self, slot: int) -> None:
        self._state[slot] = 0
        self._previous[slot] = 0

    def act(self, observations: Mapping[int, Observation], mean: Collection[int] = ()) -> dict[int, np.ndarray]:
        torch, slots = self._torch, list(observations)
        noise = np.zeros((len(self._rngs), self.policy.action_size), np.float32)
        for slot, observation in observations.items():
            for key, rows in self._batch.items():
                rows[slot] = observation[key]
            drawn = self._rngs[slot].standard_normal(self.policy.action_size, np.float32)
            noise[slot] = 0.0 if slot in mean else drawn
        obs = {key: torch.from_numpy(rows) for key, rows in self._batch.items()}
        with torch.no_grad():
            act = self.policy.act(obs, self._state, self._previous, self._deterministic, torch.from_numpy(noise))
            actions = self.policy.action_features(act.action)  # clipped to the action space
        self._state[slots], self._previous[slots], self.values = act.state[slots], actions[slots], act.value
        if self.policy.choices:
            return {slot: self._as_action(act.action[slot].numpy().reshape(self._shape)) for slot in slots}
        return {slot: actions[slot].numpy() for slot in slots}


AGENTS = ("policy", "expert", "random", "zero", "remote", "pointnav", *NAVIGATION_AGENTS)


def make_agent(name: str, checkpoint: dict[str, Any] | None, envs: Sequence[RearrangeEnv], deterministic: bool,
               network: str | None = None, remote: Remote | None = None) -> Agent:
    """The agent called `name` for these environments, one in each slot.

    Args:
        name: one of AGENTS, or `package.module:Name`.
        checkpoint: of "policy" and "pointnav".
        envs: the environments of the slots.
        deterministic: a policy takes its mean action instead of a sample.
        network: the word of the policy's network, where it is one of the user's own.
        remote: the server of "remote".
    """
    space = envs[0].action_space
    if name == "policy":
        return PolicyAgent(checkpoint, len(envs), deterministic, network, space)
    if name == "remote":
        from eval.remote.agent import RemoteAgent

        return RemoteAgent(remote, len(envs), space, lambda slot: envs[slot].instruction)
    if ":" in name:
        return OwnAgent(name, "agent", len(envs), envs[0].observation_space, space)
    if name == "expert":
        return ExpertAgent(envs)
    if name == "pointnav":
        return PointGoalAgent(checkpoint, envs, deterministic, network)
    if name in NAVIGATION_AGENTS:
        return NavigationAgent(name, envs)
    return RandomAgent(len(envs), space) if name == "random" else ZeroAgent(space.shape[0])
