"""Begin with what a policy of another task has learned: the weights of the parts that both have.

What both see keeps its encoder and its columns of the first layer; the MLP and the memory follow. The value begins
anew, since rewards differ, as in DD-PPO's transfer of PointNav to other tasks (section 6). Unlike there, actions begin
anew too: a policy that has learned when to stop would stop at once, and explore nothing
(docs/findings/navigation_transfer.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from trainer.checkpoint import load_policy
from trainer.errors import CheckpointError
from trainer.networks import MakePolicy
from trainer.policy import Policy

__all__ = ["Taken", "take_over"]

OF_TASK = ("mean", "log_std", "value", "value_body", "critic_normalizer", "return_scale")
FIRST = ("body.0.weight", "lstm.weight_ih_l0")  # of the layer that gets the inputs; the second where there is no MLP
PREVIOUS = "previous action"


@dataclass(frozen=True)
class Taken:
    """What a policy sees, and its parts: those that it has from another, and those that begin anew."""

    over: tuple[str, ...]
    anew: tuple[str, ...]

    def __str__(self) -> str:
        return f"taken over: {', '.join(self.over)}; new: {', '.join(self.anew)}"


@torch.no_grad()
def take_over(policy: Any, content: dict[str, Any], make_policy: MakePolicy = Policy) -> Taken:
    """Give a new policy what fits of a checkpoint's. `make_policy`: of a checkpoint of another network than the
    engine's.

    Raises CheckpointError for networks that are not built as the engine's, have other sizes, or see nothing alike.
    """
    other = load_policy(content, make_policy if "network" in content else Policy)
    if not (isinstance(policy, Policy) and isinstance(other, Policy)):
        raise CheckpointError("transfer is between networks that are built as the engine's own, trainer.Policy.")
    ours, theirs = _columns(policy), _columns(other)
    same_actions = policy.choices == other.choices and policy.action_size == other.action_size
    shared = [key for key in ours if key in theirs and
              (same_actions if key == PREVIOUS else policy.seen[key] == other.seen[key])]
    if not set(shared) - {PREVIOUS}:
        before, now = (", ".join(each.seen) or "nothing" for each in (other, policy))
        raise CheckpointError(f"its policy sees {before}, this one {now}: there is nothing to take over.")
    anew = {*OF_TASK, *(("normalizer",) if policy.vector_keys != other.vector_keys else ())}
    weights, parts = other.state_dict(), []
    first = next((name for name in FIRST if name in weights), None)
    encoded = dict(zip(policy.encoders, policy.image_keys))
    for name, value in policy.state_dict().items():
        part, _, rest = name.partition(".")
        if part == "encoders":
            if encoded[rest.partition(".")[0]] not in shared:
                continue
        else:
            parts.append(part)
        if name not in weights:
            anew.add(part)
        if part in anew:
            continue
        if value.shape[:1] != weights[name].shape[:1] or name != first and value.shape != weights[name].shape:
            raise CheckpointError(f"it is of a network of other sizes: its {name} is {tuple(weights[name].shape)}, "
                                  f"this one's {tuple(value.shape)}.")
        if name == first:
            for key in shared:
                value[:, ours[key]] = weights[name][:, theirs[key]].to(value)
        else:
            value.copy_(weights[name])
    parts = list(dict.fromkeys(parts))
    return Taken((*shared, *(part for part in parts if part not in anew)),
                 (*(key for key in ours if key not in shared), *(part for part in parts if part in anew)))


def _columns(policy: Policy) -> dict[str, slice]:
    """Which columns of the first layer's weights belong to what it gets, in their order."""
    widths = [(key, int(np.prod(policy.seen[key]))) for key in policy.vector_keys]
    widths += [(key, policy.config.embedding_size) for key in policy.image_keys] + [(PREVIOUS, policy.action_size)]
    ends = np.cumsum([width for _, width in widths]).tolist()
    return {key: slice(end - width, end) for (key, width), end in zip(widths, ends)}
