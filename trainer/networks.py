"""Networks of the user's own: what the engine asks of one, and how a checkpoint knows whose it is.

`train(..., make_policy=MyPolicy)` takes any callable (observation_space, action_space, config) -> nn.Module with the
methods of `PolicyNetwork`. The quickest way to one is a subclass of `trainer.Policy`. A checkpoint keeps the network's
name and weights, not its code: whoever loads it gives the same `make_policy`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Protocol

import torch
from gymnasium import spaces
from torch import Tensor, nn

from trainer.config import PolicyConfig
from trainer.errors import CheckpointError, NonFinite
from trainer.logs.printable import printable
from trainer.policy import Act, Policy
from trainer.sequences import Sequences
from trainer.spaces import action_numbers, choices

__all__ = ["MakePolicy", "PolicyNetwork"]

MakePolicy = Callable[[spaces.Space, spaces.Space, PolicyConfig], Any]
"""(observation_space, action_space, config) -> a PolicyNetwork."""


class PolicyNetwork(Protocol):
    """What the engine asks of a network, an nn.Module. B environments; M steps in K sequences; A numbers of an action,
    or options of all its parts where it is discrete."""

    choices: tuple[int, ...]
    """Options of each part of a discrete action; () for a Box."""
    action_size: int
    """A."""
    state_size: int
    """Floats of recurrent state per environment; 0 for none."""
    seen: dict[str, tuple[int, ...]]
    """Shapes of the observations that it uses, by key; a plain Box is "obs"."""

    def action_features(self, action: Tensor) -> Tensor:
        """An action as the network's next input, (B, A): as executed, so clipped to a Box; one-hot where discrete."""

    def act(self, obs: dict[str, Tensor], state: Tensor, previous: Tensor, deterministic: bool = False,
            noise: Tensor | None = None, generator: torch.Generator | None = None) -> Act:
        """One step. obs: key -> (B, ...); state (B, state_size); previous (B, A): `action_features` of the last action,
        zeros at an episode's start. `generator`, on the policy's device, gives random numbers; `noise` (B, A) replaces
        them. The engine asks without gradients."""

    def evaluate(self, obs: dict[str, Tensor], previous: Tensor, action: Tensor, sequences: Sequences,
                 state: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Log-probability (M,), entropy (M,), value (M,) and mean action, or logits where it is discrete, (M, A), of M
        steps laid out in sequences; state (K, state_size) entered their first steps. The numbers are those of `act`."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """`forward = evaluate`: what DistributedDataParallel calls."""


NEEDED = ("choices", "action_size", "state_size", "seen", "action_features", "act", "evaluate")


def make(make_policy: MakePolicy, observation_space: spaces.Space, action_space: spaces.Space,
         config: PolicyConfig) -> Any:
    """The network. Raises ValueError for one that the engine cannot use."""
    try:
        policy = make_policy(observation_space, action_space, config)
    except SystemExit as error:  # a run that it ends would look finished
        raise RuntimeError(f"make_policy ends Python (SystemExit: {error})") from error
    if not isinstance(policy, nn.Module):
        raise ValueError(f"make_policy gave {printable(repr(policy), 100)}, which is no torch.nn.Module.")
    missing = [name for name in NEEDED if not hasattr(policy, name)]
    missing += ["forward"] * (type(policy).forward is nn.Module.forward)
    if missing:
        raise ValueError(f"make_policy gave a {type(policy).__name__} without {', '.join(missing)}: "
                         "trainer.networks.PolicyNetwork says what the engine needs.")
    theirs, ours = (tuple(policy.choices), policy.action_size), (choices(action_space), action_numbers(action_space))
    if theirs != ours:
        raise ValueError(f"make_policy gave a {type(policy).__name__} with choices={theirs[0]} and "
                         f"action_size={theirs[1]}; the environments' actions have choices={ours[0]} and "
                         f"action_size={ours[1]}.")
    return policy


def name_of(make_policy: MakePolicy) -> str:
    """Of the network that it makes, for checkpoints: `module.Name`, with (...) where arguments are bound."""
    if isinstance(make_policy, functools.partial):
        return f"{name_of(make_policy.func)}(...)"
    named: Any = make_policy if hasattr(make_policy, "__qualname__") else type(make_policy)
    return f"{named.__module__}.{named.__qualname__}"


def content_of(make_policy: MakePolicy, policy: Any) -> dict[str, Any]:
    """What a checkpoint says of a network that is not the engine's own."""
    if make_policy is Policy:
        return {}
    return {"network": {"name": name_of(make_policy), "seen": {k: list(shape) for k, shape in policy.seen.items()}}}


def refuse_another(content: dict[str, Any], make_policy: MakePolicy) -> None:
    """Raise CheckpointError if a checkpoint's network was made by another `make_policy`. The module's name does not
    count: a script is `__main__` when it trains, and may be imported later."""
    own, ours = name_of(Policy), name_of(make_policy)
    theirs = content["network"]["name"] if "network" in content else own
    if ("network" in content) != (make_policy is not Policy) or _last(theirs) != _last(ours):
        raise CheckpointError(f"the checkpoint is of the network {theirs}, this one is {ours}: give the make_policy "
                              "that it was trained with")


def _last(name: str) -> str:
    return name.removesuffix("(...)").rpartition(".")[2]


def check_finite(policy: nn.Module) -> None:
    """Raise NonFinite if a parameter is NaN or infinite."""
    bad = [name for name, p in policy.named_parameters() if not torch.isfinite(p).all()]
    if bad:
        raise NonFinite(f"parameters became NaN or infinite ({', '.join(bad[:3])}{' ...' if len(bad) > 3 else ''})")


def check_acts(policy: Any, obs: dict[str, Tensor], state: Tensor, previous: Tensor, act: Any) -> None:
    """Raise NonFinite if what the policy gave for these inputs is NaN or infinite."""
    if not (torch.isfinite(act.value).all() and torch.isfinite(act.log_prob).all()):
        raise NonFinite("the policy's output became NaN or infinite while it acted",
                        {f"obs/{k}": v.cpu() for k, v in obs.items()}
                        | {"state": state.cpu(), "previous": previous.cpu()})
