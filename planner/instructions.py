"""What a scenario asks for, in words, from the goal of its planning problem."""

from __future__ import annotations

from collections.abc import Sequence

from planner.pddl import Atom
from planner.predicates import Symbols
from rearrange.home.simulation.simulator_interface import Simulator
from skills.picture_marks import away_from, onto, place_name, spoken_name, spoken_place

_MOVES = ("move the {thing} {off} {onto}", "take the {thing} {off} and put it {on}", "bring the {thing} {off} {onto}")
_OTHERS = {"in": "put the {} in the {}", "in_the_open": "leave the {} in the open", "holding": "hold the {}",
           "opened": "open the {}", "closed": "close the {}", "robot_at": "go to the {}"}


def instructions(sim: Simulator, symbols: Symbols, goal: Sequence[Atom]) -> tuple[str, ...]:
    """The task of the episode that has just begun, in several wordings: `move the bowl from the counter onto the table;
    close the fridge`.
    """
    wordings = ((_in_words(sim, symbols, atom, move) for atom in goal) for move in _MOVES)
    return tuple("; ".join(filter(None, words)) or "do nothing" for words in wordings)


def _in_words(sim: Simulator, symbols: Symbols, atom: Atom, move: str) -> str:
    """The command that brings about one atom of a goal; empty for an empty hand, which goes without saying."""
    name, *args = atom
    if name == "at":
        thing, goal = args
        index = symbols.objects[thing]
        source = _place(sim, list(symbols.objects).index(thing), "target_receptacles", sim.object_position(index))
        there = _place(sim, list(symbols.goals).index(goal), "goal_receptacles", symbols.goals[goal][:3])
        words = move.format(thing=spoken_name(sim, index), off=away_from(source), onto=onto(there), on=there)
        return " ".join(words.split())
    return _OTHERS.get(name, "").format(*(_thing(sim, symbols, arg) for arg in args))


def _place(sim: Simulator, order: int, field: str, point: Sequence[float]) -> str:
    """`on the sofa`, by what the episode says of the k-th object, else by where the point is."""
    names = getattr(sim.episode, field)
    if order < len(names):
        return spoken_place(sim.home.layout, sim.home.layout.receptacle(names[order]))
    return place_name(sim, tuple(point)) or "on the floor"


def _thing(sim: Simulator, symbols: Symbols, name: str) -> str:
    if name in symbols.objects:
        return spoken_name(sim, symbols.objects[name])
    if name in symbols.goals:
        index = dict(zip(symbols.goals, symbols.objects.values()))[name]
        return f"place for the {spoken_name(sim, index)}"
    return "fridge" if symbols.joints[name].startswith("fridge") else "drawer"
