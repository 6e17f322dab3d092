"""Agents of the user's own, `agent=package.module:Name`: a function of the observation, or an object with `act`.

    class Agent:
        def __init__(self, observation_space, action_space): ...
        def reset(self, seed): ...                # optional: an episode, or a skill of a plan, begins
        def act(self, observation): ...           # an action

The name of a class, or of a function (observation_space, action_space), makes an agent for each episode that runs side
by side. The name of an object with `act`, or of a function of one observation, serves all of them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from rearrange.home.errors import UserError
from rearrange.home.settings.installed_parts import imported, told

if TYPE_CHECKING:
    import gymnasium


class OwnAgent:
    """The agents that a word means, one in each slot."""

    def __init__(self, word: str, key: str, slots: int, seen: gymnasium.spaces.Dict, actions: gymnasium.Space) -> None:
        self._said, self._actions = f"{key}={word}", actions
        found = imported(word, key)
        self._agents = [self._agent(found, seen) for _ in range(slots)]

    def begin(self, slot: int, seed: int) -> None:
        if reset := getattr(self._agents[slot], "reset", None):
            self._call(reset, seed)

    def forget(self, slot: int) -> None:
        self.begin(slot, 0)

    def act(self, observations: Mapping[int, Mapping[str, np.ndarray]], mean: Collection[int] = ()) -> dict[int, Any]:
        return {slot: self._action(self._agents[slot], observation) for slot, observation in observations.items()}

    def end(self, slot: int) -> None:
        pass

    def _agent(self, found: Any, seen: gymnasium.spaces.Dict) -> Any:
        if callable(found) and (inspect.isclass(found) or _arguments(found) == 2):
            self._check_arguments(found)
            found = self._call(found, seen, self._actions)
        if not (callable(getattr(found, "act", None)) or callable(found)):
            raise UserError(f"{self._said} gives no agent, but something of type {type(found).__name__}: an agent has "
                            "act(observation), or is a function of an observation.")
        return found

    def _check_arguments(self, found: Callable[..., Any]) -> None:
        """UserError for a class that cannot be called with the two spaces."""
        try:
            inspect.signature(found).bind(None, None)
        except ValueError:  # it says nothing about its arguments
            return
        except TypeError:
            raise UserError(f"{self._said} is called with (observation_space, action_space), which it does not take: "
                            f"give {found.__name__} an __init__(self, observation_space, action_space), or name an "
                            "object that is made already.") from None

    def _action(self, agent: Any, observation: Mapping[str, np.ndarray]) -> Any:
        given = self._call(getattr(agent, "act", agent), dict(observation))
        shape, number = self._actions.shape, np.asarray(given)
        if number.dtype.kind not in "biuf" or number.shape != shape or not np.isfinite(number).all():
            what = f"shape {number.shape}" if number.dtype.kind in "biuf" and number.shape != shape else repr(given)
            raise UserError(f"{self._said} gives an action of {what}: it has to be finite numbers, shape {shape}.")
        return given if not shape else np.asarray(given, np.float32)

    def _call(self, function: Callable[..., Any], *values: Any) -> Any:
        try:
            return function(*values)
        except (Exception, SystemExit) as error:  # a command that it ends would look finished
            raise UserError(f"{self._said} fails: {told(error)}.") from error


def _arguments(function: Callable[..., Any]) -> int:
    """Number of arguments that a function has to be given."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 1
    return sum(each.default is each.empty and each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
               for each in parameters)
