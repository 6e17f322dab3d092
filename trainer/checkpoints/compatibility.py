"""Whether a trained policy fits an environment: the one place that asks, and answers with the reason."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainer.policy import Policy


def misfit(policy: Policy, shapes: Mapping[str, tuple[int, ...]], action_size: int, choices: Sequence[int] = (),
           where: str = "this environment", units: Mapping[str, float] | None = None) -> str | None:
    """Why a policy cannot act in `where`, which shows observations of these `shapes` and takes `action_size` numbers (or has the
    `choices` of each discrete part of its action); None if it can. Observations that the policy does not use may be there, too.
    `units`: `trainer.spaces.units` of its observations, where they are known.
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
        return f"it gives {_actions(policy.action_size, policy.choices)}, {where} takes {_actions(action_size, choices)}"
    return None


def other_unit(trained: Mapping[str, float], given: Mapping[str, float], keys: Iterable[str]) -> str | None:
    """Which of these observations is given in another unit than in training (`trainer.spaces.units`), in words with a place {} for where;
    None if none is, or it is not known."""
    for key in keys:
        if key in trained and key in given and not math.isclose(trained[key], given[key], rel_tol=1e-3):
            return f"'{key}' in the range of 0 to {1 / trained[key]:g}, which {{}} gives in that of 0 to {1 / given[key]:g}"
    return None


def _actions(size: int, choices: Sequence[int]) -> str:
    if not choices:
        return f"{size} actions"
    return f"a choice among {' and '.join(map(str, choices))}"
