"""Episodes side by side in one process: each runs in a slot, which takes the next episode when one is over."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

SEED_STRIDE = 1_000_003  # episodes of another seed are other ones
_KEPT: dict[str, list[Any]] = {}


def episode_seed(seed: int, index: int) -> int:
    """The seed of an episode, by that of the command and the episode's number."""
    return int(np.random.SeedSequence([seed, index]).generate_state(1)[0])


def agent_seed(seed: int) -> int:
    """The seed of the agent in an episode of this seed. With the same one it would draw the numbers that the
    environment draws (findings/gymnasium_same_seed_same_draws.sh)."""
    return int(np.random.SeedSequence([seed, 1, 1]).generate_state(1)[0])


def failure_of(metrics: Mapping[str, Any]) -> str | None:
    """The name of the failure that ended an episode; None where no failure did."""
    return next((name.removeprefix("failure/") for name, value in metrics.items()
                 if name.startswith("failure/") and value), None)


def kept(key: str, make: Callable[[], Any], count: int) -> list[Any]:
    """`count` environments or executors; they are kept for the next chunks of this process that have the same key."""
    if key not in _KEPT:
        _KEPT.clear()
        _KEPT[key] = [make() for _ in range(count)]
    return _KEPT[key]


def run_slots(slots: Sequence[Any], agent: Any, indices: Iterable[int]) -> Iterator[Any]:
    """Run episodes in slots and yield their results as they end.

    Args:
        slots: each has `number`, `index` (None: nothing runs), `observation`, `next(waiting)` that begins an episode
            and gives results of those it passes over, `step(action)` that gives a result at the end, and `close()`.
        agent: chooses the actions, as `eval.agents.Agent`.
        indices: numbers of the episodes.
    """
    waiting = iter(indices)
    try:
        for slot in slots:
            yield from slot.next(waiting)
        while running := [slot for slot in slots if slot.index is not None]:
            actions = agent.act({slot.number: slot.observation for slot in running})
            for slot in running:
                if result := slot.step(actions[slot.number]):
                    yield result
                    yield from slot.next(waiting)
    finally:
        for slot in slots:
            slot.close()
