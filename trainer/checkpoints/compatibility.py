"""Whether a trained policy fits an environment: the one place that asks, and answers with the reason."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainer.policy import Policy


def misfit(policy: Policy, shapes: Mapping[str, tuple[int, ...]], action_size: int, choices: Sequence[int] = (),
           where: str = "this environment", units: Mapping[str, float] | None = None) -> str | None:
    """Why a policy cannot act in an environment; None if it can.

    Args:
        policy: what it needs is `policy.seen`, `policy.action_size` and `policy.choices`.
        shapes: of the environment's observations by key; the policy need not use all.
        action_size: numbers of an action, or options of all its parts where it is discrete.
        choices: options of each part of a discrete action.
        where: the environment in words.
        units: `trainer.spaces.units` of the observations, where they are known.
    """
    for key, shape in policy.seen.items():
        if key in getattr(policy, "critic_keys", ()):
            continue  # which only training needs
        if shapes.get(key) != shape:
            given = f"with shape {tuple(shapes[key])}" if key in shapes else "not at all"
            return f"it needs observation '{key}' with shape {tuple(shape)}, which {where} gives {given}"
    if problem := other_unit(getattr(policy, "units", {}), units or {}, policy.seen):
        return f"it was trained with {problem.format(where)}"
    if (policy.action_size, tuple(policy.choices)) != (action_size, tuple(choices)):
        given, taken = _actions(policy.action_size, policy.choices), _actions(action_size, choices)
        return f"it gives {given}, {where} takes {taken}"
    return None


def other_unit(trained: Mapping[str, float], given: Mapping[str, float], keys: Iterable[str]) -> str | None:
    """Which observation is given in another unit (`trainer.spaces.units`) than in training; None if none is known to
    be. The sentence has a place {} for who gives it."""
    for key in keys:
        if key in trained and key in given and not math.isclose(trained[key], given[key], rel_tol=1e-3):
            then, now = 1 / trained[key], 1 / given[key]
            return f"'{key}' in the range of 0 to {then:g}, which {{}} gives in that of 0 to {now:g}"
    return None


def _actions(size: int, choices: Sequence[int]) -> str:
    return f"a choice among {' and '.join(map(str, choices))}" if choices else f"{size} actions"
