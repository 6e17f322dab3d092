"""How far an episode of a scenario got: the interactions of the paper's Figure 6.

For the k-th object (k = 1, 2, ...) HAB has two stages. `stage_<k-1>_5`: objects 1 to k-1 are at their goals and object
k is in the hand. `stage_<k>`: objects 1 to k are at their goals and the hand is empty (the last one does not ask for
that). A stage counts when it is true at any one step; stages need not be reached in order, but each includes the
objects before it. Interaction 2k-1 is the first of the two, 2k the second.
"""

from __future__ import annotations

from collections.abc import Sequence


def stage_names(count: int) -> list[str]:
    """The 2 * `count` stages of an episode with so many objects, by HAB's names, in the order of interactions."""
    return [name for k in range(1, count + 1) for name in (f"stage_{k - 1}_5", f"stage_{k}")]


def stages_now(at_goal: Sequence[bool], held: int | None, hand_empty: bool) -> list[bool]:
    """Which stages are true in one state. `at_goal`: of each object, in order; `held`: the place in that order of the
    object in the hand, None for nothing or another one.
    """
    stages, before = [], True
    for k, here in enumerate(at_goal):
        stages.append(before and held == k)
        before = before and here
        stages.append(before and (hand_empty or k == len(at_goal) - 1))
    return stages


def latch(reached: Sequence[bool], now: Sequence[bool]) -> list[bool]:
    """Stages reached so far, after a step in which those of `now` are true."""
    return [was or is_now for was, is_now in zip(reached, now, strict=True)]
