"""One interface of simulators: nothing else is asked of one, and every one offers all of it."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from rearrange.env.make_simulator import CLASSES
from rearrange.home.settings.environment import SIMULATORS
from rearrange.home.simulation.simulator_interface import Home, Simulator

ROOT = Path(__file__).resolve().parents[2]
ELSEWHERE = (  # folders that know what simulator they have, and pictures, in which a shadow is one
    "rearrange/home/simulation/mujoco", "rearrange/habitat", "eval/bench", "rearrange/home/pictures")
NAMES = ("sim", "shadow", "_sim")  # of variables and attributes that are a simulator


def members(protocol: type) -> set[str]:
    names = {*vars(protocol), *getattr(protocol, "__annotations__", {})}
    return {name for name in names if not name.startswith("_")}


def attributes(*folders: str) -> Iterator[tuple[str, str, str]]:
    """What an attribute is of, its name, and a place where it is used."""
    for folder in folders:
        for path in (ROOT / folder).rglob("*.py"):
            place = path.relative_to(ROOT).as_posix()
            for node in ast.walk(ast.parse(path.read_text())) if not place.startswith(ELSEWHERE) else ():
                if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name | ast.Attribute):
                    yield ast.unparse(node.value), node.attr, f"{place}:{node.lineno}"


def test_nothing_else_is_asked_of_a_simulator_and_nothing_is_offered_in_vain():
    used = {name: place for owner, name, place in attributes("rearrange", "skills", "planner", "eval")
            if owner.rpartition(".")[2] in NAMES and owner != "options.sim"}  # which are settings of one
    offered = members(Simulator)
    assert {name: place for name, place in used.items() if name not in offered} == {}
    assert offered - set(used) == set()


def test_of_a_home_layout_and_handles_are_asked():
    found = {name for owner, name, _ in attributes("skills", "planner", "eval") if owner.endswith("sim.home")}
    assert found == members(Home)


def attributes_of(made: type) -> set[str]:
    """Names of a class: its methods, and the attributes that its methods, or its bases', set."""
    names = set(dir(made))
    for base in made.__mro__[:-1]:
        names |= set(getattr(base, "__annotations__", {}))
        for node in ast.walk(ast.parse(inspect.getsource(base))) if base.__module__.startswith("rearrange") else ():
            is_set = isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
            if is_set and ast.unparse(node.value) == "self":
                names.add(node.attr)
    return names


def test_every_simulator_that_can_be_chosen_has_a_class():
    assert set(CLASSES) == set(SIMULATORS)


@pytest.mark.parametrize("name", CLASSES)
def test_every_simulator_offers_all_of_it(name):
    module, _, kind = CLASSES[name].partition(":")
    made = getattr(import_module(module), kind)
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
