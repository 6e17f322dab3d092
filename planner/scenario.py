"""From an episode to a plan: name what it is about, observe what is true, fill in the scenario's problem, search."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from string import Template

from planner.pddl import Atom, Operator, domain_of, goal_atoms, ground, read_text
from planner.predicates import PREDICATES, Symbols, World, holds
from planner.rules import AT_M
from planner.search import Outcome, Result, search
from rearrange.home.apartments.containers import inside_at, kind_of, opened_to
from rearrange.home.apartments.episodes import Episode
from rearrange.home.apartments.layouts import Layout
from rearrange.home.errors import UserError

PROBLEMS = Path(__file__).with_name("problems")
_PLACEHOLDERS = ("objects", "init", "at_goals")


@dataclass(frozen=True)
class Plan:
    """A search and what it was about."""

    result: Result
    problem: str  # PDDL text of this episode's problem, as given to the search
    symbols: Symbols
    goal: frozenset[Atom]

    @property
    def steps(self) -> tuple[Operator, ...]:
        return self.result.plan or ()


def plan(sim: World, problem_path: Path | str, at_m: float = AT_M, put_off: Collection[str] = ()) -> Plan:
    """The plan of the running episode from the state that is observed now; look at `result.outcome`.

    Args:
        sim: the simulator, or what is believed about it (`planner.belief`).
        problem_path: the name of a problem, or a PDDL file.
        at_m: an object this near to its goal is at it.
        put_off: objects about which the goal is left out.
    """
    path = problem_file(problem_path)
    symbols = name_things(sim.episode, sim.home.layout)
    text = fill_in(read_text(path), path, symbols, observe(sim, symbols, at_m=at_m))
    task = ground(text, path, domain_of(text, path), symbols.types)
    task = replace(task, goal=frozenset(atom for atom in task.goal if not set(atom) & set(put_off)))
    return Plan(search(task), text, symbols, task.goal)


def goal_of(episode: Episode, layout: Layout, problem_path: Path | str) -> tuple[Symbols, tuple[Atom, ...]]:
    """What a problem asks for in an episode, and what its names stand for."""
    path = problem_file(problem_path)
    symbols = name_things(episode, layout)
    text = fill_in(read_text(path), path, symbols, frozenset())
    return symbols, goal_atoms(text, path, symbols.types, domain_of(text, path))


def require_solved(found: Plan, scene: str) -> None:
    """Raise UserError when there is no plan, saying why."""
    result = found.result
    if result.outcome is Outcome.SOLVED:
        return
    wanted = " ".join(f"({' '.join(atom)})" for atom in result.unreachable or result.exclusive or sorted(found.goal))
    if result.outcome is not Outcome.UNSOLVABLE:
        raise UserError(f"no plan in scene {scene}: the search ended with {result.outcome.value!r} after "
                        f"{result.expanded} states; the goal is {wanted}.")
    if result.unreachable:
        why = "; check the goal of the problem and what the episode contains"
    elif result.exclusive:
        why = " together; check the goal of the problem"
    else:
        why = f" together, as a search of all {result.expanded} states proved; check the goal of the problem"
    raise UserError(f"there is no plan in scene {scene}: no sequence of skills brings about {wanted}{why}.")


def problem_file(problem: Path | str) -> Path:
    """The file of a problem: its name in planner/problems, or a path."""
    listed, path = PROBLEMS / f"{problem}.pddl", Path(problem)
    if listed.is_file():
        return listed
    if not path.is_file() and path.name == str(problem) and (PROBLEMS / path).is_file():  # with its ending
        return PROBLEMS / path
    if not path.is_file():
        known = ", ".join(sorted(entry.stem for entry in PROBLEMS.glob("*.pddl")))
        raise UserError(f"there is no planning problem {str(problem)!r}: it should be one of {known}, or the path of a "
                        "PDDL file.")
    return path


def name_things(episode: Episode, layout: Layout) -> Symbols:
    """object_k and goal_k for the k-th object that the episode moves, cabinet_j for the drawers where one of them lies
    or belongs, in that order, and fridge.
    """
    objects = {f"object_{k}": index for k, index in enumerate(episode.targets)}
    goals = {f"goal_{k}": pose for k, pose in enumerate(episode.targets.values())}
    drawers: list[str] = []
    closed_or_not = [body.name for body in layout.bodies if kind_of(body.name) == "drawer"]
    for index, goal in episode.targets.items():
        for joint in closed_or_not:
            now = episode.articulated.get(joint, 0.0)
            there = (inside_at(layout, episode.start_poses[index], joint, now)
                     or any(inside_at(layout, goal, joint, opening) for opening in (now, opened_to(layout, joint))))
            if there and joint not in drawers:
                drawers.append(joint)
    joints = {f"cabinet_{j}": joint for j, joint in enumerate(drawers)}
    fridges = [body.name for body in layout.bodies if kind_of(body.name) == "fridge"]
    return Symbols(objects, goals, joints | {"fridge": joint for joint in fridges})


def observe(sim: World, symbols: Symbols, robot: bool = False, at_m: float = AT_M) -> frozenset[Atom]:
    """Every fact about the named things that is true now; `robot`: also where the robot is.

    A plan navigates before each interaction, because skills begin within reach, and `robot_at` means within two metres.
    """
    types = symbols.types
    facts = {("robot_free",)}
    for name, (_, kinds) in PREDICATES.items():
        if name == "robot_at" and not robot:
            continue
        choices = [[thing for thing, kind in types.items() if kind in allowed] for allowed in kinds]
        facts |= {(name, *args) for args in itertools.product(*choices) if holds(sim, symbols, (name, *args), at_m)}
    return frozenset(facts)


def fill_in(template: str, path: Path, symbols: Symbols, facts: frozenset[Atom]) -> str:
    """The problem of an episode. Every placeholder is replaced within its line, so that lines keep their numbers."""
    code = re.sub(r";[^\n]*", "", template)
    used = set()
    for match in re.finditer(r"\$(\{?)(\w*)(\}?)", code):
        used.add(match[2])
        if match[2] not in _PLACEHOLDERS or (match[1] and not match[3]):
            line = code[:match.start()].count("\n") + 1
            raise UserError(f"{path}, line {line}: expected one of ${', $'.join(_PLACEHOLDERS)}, "
                            f"found ${match[1]}{match[2]}.")
    if "init" not in used:
        line = next((i for i, text in enumerate(code.splitlines(), 1) if "(:init" in text), 1)
        raise UserError(f"{path}, line {line}: expected (:init $init), as the initial state of a plan is what is "
                        "observed.")
    types = symbols.types
    listed = {kind: [name for name in types if types[name] == kind] for kind in dict.fromkeys(types.values())}
    return Template(code).substitute(
        objects=" ".join(f"{' '.join(names)} - {kind}" for kind, names in listed.items()),
        init=" ".join(f"({' '.join(fact)})" for fact in sorted(facts)),
        at_goals=" ".join(f"(at {thing} {goal})" for thing, goal in zip(symbols.objects, symbols.goals)))


def spoken(step: Operator, symbols: Symbols, episode: Episode) -> str:
    """A step for people: `pick_from_cabinet object_0 (bowl) cabinet_0 (drawer_3)`."""
    words = [step.name]
    for arg in step.args:
        if arg in symbols.objects:
            kind = episode.objects[symbols.objects[arg]].partition("_")[2].replace("_", " ")
            words.append(f"{arg} ({kind})")
        elif arg in symbols.joints and symbols.joints[arg] != arg:
            words.append(f"{arg} ({symbols.joints[arg]})")
        else:
            words.append(arg)
    return " ".join(words)
