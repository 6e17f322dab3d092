"""One interface of simulators: nothing else is asked of one, and both offer all of it."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

from rearrange.habitat.habitat_simulator import HabitatSimulator
from rearrange.home.simulation.mujoco.simulator import MujocoSimulator
from rearrange.home.simulation.simulator_interface import Home, Simulator

ROOT = Path(__file__).resolve().parents[2]
ELSEWHERE = ("rearrange/home/simulation/mujoco", "rearrange/habitat", "eval/bench",  # which know what simulator they have
             "rearrange/home/pictures")  # where a shadow is one
NAMES = ("sim", "shadow", "_sim")  # of variables and attributes that are a simulator


def members(protocol: type) -> set[str]:
    names = {*vars(protocol), *getattr(protocol, "__annotations__", {})}
    return {name for name in names if not name.startswith("_")}


def asked() -> dict[str, str]:
    """Every attribute of something that is called like a simulator, and a place where it is used."""
    found = {}
    for folder in ("rearrange", "skills", "planner", "eval"):
        for path in (ROOT / folder).rglob("*.py"):
            place = path.relative_to(ROOT).as_posix()
            if place.startswith(ELSEWHERE):
                continue
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Attribute):
                    owner = node.value
                    name = owner.id if isinstance(owner, ast.Name) else owner.attr if isinstance(owner, ast.Attribute) else None
                    if name in NAMES:
                        found[node.attr] = f"{place}:{node.lineno}"
    return found


def test_nothing_else_is_asked_of_a_simulator_and_nothing_is_offered_in_vain():
    used, offered = asked(), members(Simulator)
    assert {name: place for name, place in used.items() if name not in offered} == {}
    assert offered - set(used) == set()


def test_of_a_home_layout_and_handles_are_asked():
    found = set()
    for folder in ("skills", "planner", "eval"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                owner = node.value if isinstance(node, ast.Attribute) else None
                if isinstance(owner, ast.Attribute) and owner.attr == "home" and ast.unparse(owner.value).endswith("sim"):
                    found.add(node.attr)
    assert found == members(Home)


def attributes_of(made: type) -> set[str]:
    """Names of a class: its methods, and the attributes that its methods, or its bases', set."""
    names = set(dir(made))
    for base in made.__mro__[:-1]:
        names |= set(getattr(base, "__annotations__", {}))
        for node in ast.walk(ast.parse(inspect.getsource(base))) if base.__module__.startswith("rearrange") else ():
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == "self":
                names.add(node.attr)
    return names


@pytest.mark.parametrize("made", [MujocoSimulator, HabitatSimulator])
def test_both_simulators_offer_all_of_it(made):
    assert members(Simulator) - attributes_of(made) == set()
    for name, method in inspect.getmembers(Simulator, inspect.isfunction):
        if not name.startswith("_"):
            wanted, given = inspect.signature(method).parameters, inspect.signature(getattr(made, name)).parameters
            assert list(given) == list(wanted), name
            assert [p.default for p in given.values()] == [p.default for p in wanted.values()], name


def test_the_interface_says_what_each_method_is_for():
    for name in members(Simulator):
        member = vars(Simulator).get(name)
        if inspect.isfunction(member) or isinstance(member, property):
            assert (member.__doc__ or "").strip(), name
