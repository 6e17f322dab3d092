"""Best-first search with the FF heuristic.

States are sets of facts, kept as the bits of an integer. The heuristic is the length of a plan for the task without
delete effects (Hoffmann and Nebel, 2001: The FF Planning System). The order is by cost so far plus heuristic, then by
heuristic, then first come first served. So among plans of one length the one that follows the order of the problem file
wins, and the same task gives the same plan everywhere. The limit is a number of states, and on request of seconds: then
the outcome depends on the machine.

Two facts of a goal that can never be true together, as a door opened and closed, are found before the search. Pairs of
facts are followed through all actions (h2 of Haslum and Geffner, 2000), where the search would see every state.
"""

from __future__ import annotations

import heapq
import itertools
import math
import time
from dataclasses import dataclass
from enum import Enum

from planner.pddl import Atom, Operator, Task


class Outcome(Enum):
    """How a search ended."""

    SOLVED = "solved"
    UNSOLVABLE = "unsolvable"  # proved: everything that can be reached was seen
    NODE_LIMIT = "node limit"
    TIMEOUT = "time out"


@dataclass(frozen=True)
class Result:
    """A search: its outcome, the plan if there is one (empty when the goal holds already), and what it cost."""

    outcome: Outcome
    plan: tuple[Operator, ...] | None
    expanded: int
    seconds: float
    unreachable: tuple[Atom, ...] = ()  # parts of the goal that nothing could ever bring about
    exclusive: tuple[Atom, ...] = ()  # two parts of the goal that are never true together


@dataclass(frozen=True)
class _Action:
    """An operator as bits."""

    needs: int
    add: int
    keep: int  # every fact but the deleted ones
    operator: Operator


def search(task: Task, max_nodes: int = 200_000, timeout_s: float = math.inf) -> Result:
    """A plan for a task, or why there is none."""
    begin = time.perf_counter()
    bit = {fact: 1 << i for i, fact in enumerate(sorted(_facts(task)))}
    init, goal = _bits(task.init, bit), _bits(task.goal, bit)
    actions = _reachable([_Action(_bits(operator.preconditions, bit), _bits(operator.add, bit),
                                  ~_bits(operator.delete, bit), operator) for operator in task.operators], init)
    everything = init
    for action in actions:
        everything |= action.add
    missing = tuple(sorted(fact for fact in task.goal if not bit[fact] & everything))

    def result(outcome: Outcome, plan: tuple[Operator, ...] | None = None) -> Result:
        return Result(outcome, plan, expanded, time.perf_counter() - begin, missing, exclusive)

    expanded, exclusive = 0, ()
    if not missing:
        exclusive = _never_together(actions, init, {fact: bit[fact] for fact in sorted(task.goal)})
    if missing or exclusive:
        return result(Outcome.UNSOLVABLE)
    heuristic = _Heuristic(actions, goal)
    first = heuristic(init)
    if first is None:
        return result(Outcome.UNSOLVABLE)
    came_from: dict[int, tuple[int, _Action] | None] = {init: None}
    cost = {init: 0}
    queue, pushed = [(first, first, 0, init)], 0
    while queue:
        _, _, _, state = heapq.heappop(queue)
        if state & goal == goal:
            return result(Outcome.SOLVED, _path(came_from, state))
        expanded += 1
        if expanded >= max_nodes:
            return result(Outcome.NODE_LIMIT)
        if time.perf_counter() - begin > timeout_s:
            return result(Outcome.TIMEOUT)
        so_far = cost[state] + 1
        for action in actions:
            if action.needs & ~state:
                continue
            after = (state & action.keep) | action.add
            if cost.get(after, so_far + 1) <= so_far:
                continue
            cost[after] = so_far
            left = heuristic(after)
            if left is None:
                continue
            came_from[after] = (state, action)
            pushed += 1
            heapq.heappush(queue, (so_far + left, left, pushed, after))
    return result(Outcome.UNSOLVABLE)


class _Heuristic:
    """Length of a relaxed plan, None when there is none; remembered by state."""

    def __init__(self, actions: list[_Action], goal: int) -> None:
        self._actions, self._goal = actions, goal
        self._known: dict[int, int | None] = {}

    def __call__(self, state: int) -> int | None:
        if state not in self._known:
            self._known[state] = self._relaxed_plan_length(state)
        return self._known[state]

    def _relaxed_plan_length(self, state: int) -> int | None:
        """Build layers of facts until the goal is among them, then collect the actions that it takes, last layer first.

        A fact is brought about in the earliest layer that can, by the action that asks for the least that is not wanted
        anyway and gives the most that is; among equals by the first in the order of the domain.
        """
        goal, reached, waiting = self._goal, state, self._actions
        layers: list[list[tuple[int, _Action]]] = []  # of each layer: actions, each with the new facts that it adds
        while goal & ~reached:
            layer, later, after = [], [], reached
            for action in waiting:
                if action.needs & ~reached:
                    later.append(action)
                elif new := action.add & ~reached:
                    layer.append((new, action))
                    after |= new
            if not layer:
                return None
            layers.append(layer)
            reached, waiting = after, later
        wanted, length = goal & ~state, 0
        for layer in reversed(layers):
            useful = [(new, action) for new, action in layer if new & wanted]
            while useful:
                given = wanted | state
                new, action = min(useful, key=lambda entry: (entry[1].needs & ~given).bit_count()
                                  - (entry[0] & wanted).bit_count())
                wanted = (wanted | (action.needs & ~state)) & ~new
                length += 1
                useful = [(new, action) for new, action in useful if new & wanted]
        return length


def _facts(task: Task) -> set[Atom]:
    facts = set(task.init | task.goal)
    for operator in task.operators:
        facts |= operator.preconditions | operator.add | operator.delete
    return facts


def _bits(facts: frozenset[Atom], bit: dict[Atom, int]) -> int:
    return sum(bit[fact] for fact in facts)


def _reachable(actions: list[_Action], reached: int) -> list[_Action]:
    """The actions that can ever be done, deletes left aside; in the same order."""
    kept, waiting, grown = set(), list(enumerate(actions)), True
    while grown:
        grown = False
        for i, action in waiting:
            if not action.needs & ~reached:
                kept.add(i)
                reached |= action.add
                grown = True
        waiting = [(i, action) for i, action in waiting if i not in kept]
    return [action for i, action in enumerate(actions) if i in kept]


def _never_together(actions: list[_Action], init: int, goal: dict[Atom, int]) -> tuple[Atom, ...]:
    """Two facts of the goal of which no state has both, as far as pairs of facts show it; none: ()."""
    beside = {fact: init for fact in _single(init)}  # fact -> the facts with which it can be true, itself among them
    grown = True
    while grown:
        grown = False
        for action in actions:
            together = -1
            for fact in _single(action.needs):
                together &= beside.get(fact, 0)
            if action.needs & ~together:  # what it needs is not true together, so far
                continue
            # Beside what it adds: what it adds, and what can be true beside all that it needs and is not deleted.
            stays = sum(fact for fact in beside if fact & together & action.keep)
            for fact in _single(action.add):
                new = (stays | action.add) & ~beside.get(fact, 0)
                if new:
                    grown = True
                    beside[fact] = beside.get(fact, 0) | new
                    for other in _single(new):
                        beside[other] = beside.get(other, 0) | fact
    pairs = itertools.combinations(goal, 2)
    return next((pair for pair in pairs if not beside.get(goal[pair[0]], 0) & goal[pair[1]]), ())


def _single(bits: int) -> list[int]:
    """The facts among some bits."""
    return [1 << i for i in range(bits.bit_length()) if bits >> i & 1]


def _path(came_from: dict[int, tuple[int, _Action] | None], state: int) -> tuple[Operator, ...]:
    steps = []
    while came_from[state] is not None:
        state, action = came_from[state]
        steps.append(action.operator)
    return tuple(reversed(steps))
