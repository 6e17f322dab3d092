"""What a scenario asks for, in words, from the goal of its planning problem."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from planner.pddl import Atom
from planner.predicates import Symbols
from skills.picture_marks import away_from, onto, place_name, spoken_name, spoken_place

if TYPE_CHECKING:
    from rearrange.home.simulation.simulator_interface import Simulator

_MOVES = ("move the {thing} {off} {onto}", "take the {thing} {off} and put it {on}", "bring the {thing} {off} {onto}")


def instructions(sim: Simulator, symbols: Symbols, goal: Sequence[Atom]) -> tuple[str, ...]:
    """The task of the episode that has just begun, in several wordings: `move the bowl from the counter onto the table; close the
    fridge`."""
    return tuple("; ".join(words for atom in goal if (words := _in_words(sim, symbols, atom, move))) or "do nothing" for move in _MOVES)


def _in_words(sim: Simulator, symbols: Symbols, atom: Atom, move: str) -> str:
    """What brings about one atom of a goal; nothing for an empty hand, which goes without saying."""
    name, *args = atom
    if name == "at":
        source = _place(sim, list(symbols.objects).index(args[0]), "target_receptacles", sim.object_position(symbols.objects[args[0]]))
        there = _place(sim, list(symbols.goals).index(args[1]), "goal_receptacles", symbols.goals[args[1]][:3])
        words = move.format(thing=spoken_name(sim, symbols.objects[args[0]]), off=away_from(source), onto=onto(there), on=there)
        return " ".join(words.split())
    things = [_thing(sim, symbols, arg) for arg in args]
    return {"in": "put the {} in the {}", "in_the_open": "leave the {} in the open", "holding": "hold the {}", "opened": "open the {}",
            "closed": "close the {}", "robot_at": "go to the {}"}.get(name, "").format(*things)


def _place(sim: Simulator, order: int, field: str, point: Sequence[float]) -> str:
    """`on the sofa`, by what the episode says of the k-th object, else by where the point is."""
    names = getattr(sim.episode, field)
    if order < len(names):
        return spoken_place(sim.home.layout.receptacle(names[order]))
    return place_name(sim, tuple(point)) or "on the floor"


def _thing(sim: Simulator, symbols: Symbols, name: str) -> str:
    if name in symbols.objects:
        return spoken_name(sim, symbols.objects[name])
    if name in symbols.goals:
        return f"place for the {spoken_name(sim, list(symbols.objects.values())[list(symbols.goals).index(name)])}"
    return "fridge" if symbols.joints[name].startswith("fridge") else "drawer"
