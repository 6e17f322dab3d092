"""Episodes of whole scenarios: several objects to move, drawers and doors open or shut, the robot anywhere.

The three scenarios of the Home Assistant Benchmark are configurations of this generator (configs/hab/*.yaml), as is
whatever a user adds. The same (scenario, split, index) gives the same episode everywhere for the same robot and hand;
a robot is asked to move only what its hand takes, from where and to where it reaches. There is no last index; HAB's
validation sets of 100 and 1,000 episodes are the first 100 and 1,000 of split val, whose family of layouts no training
home belongs to.

Adapted from HAB: its homes hold 30 objects of nine kinds (29 with the apple of Set Table), ours each kind at most
twice; so Tidy House and Prepare Groceries have 18 objects, and Set Table 19. What is not moved is clutter. HAB's fridge
has one board to stand things on, in the middle of the upper compartment; ours has two, and the upper one is used.

Every episode that is given out was tried: nothing that stands in it moves, before every object and every goal there is
floor where the robot can stand and to which it can drive, and the robot touches nothing where it starts.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from rearrange.home.apartments.containers import OPEN_M_OR_RAD, kind_of, opened_to
from rearrange.home.apartments.episodes import Episode, Pose
from rearrange.home.apartments.kept_layouts import scene_layout
from rearrange.home.apartments.layouts import SPLIT_FAMILIES, WIDE, Layout
from rearrange.home.apartments.objects import OBJECTS
from rearrange.home.apartments.parts import Receptacle
from rearrange.home.episodes.generator import (
    MAX_ON,
    MIN_MOVE_M,
    SceneLacks,
    _compartments,
    _place,
    _Surface,
    _surfaces,
)
from rearrange.home.episodes.scene_check import Unsolvable, check_episode, random_start
from rearrange.home.errors import UserError
from rearrange.home.robot import DEFAULT
from rearrange.home.simulation.mujoco.simulator import MujocoSimulator
from rearrange.home.simulation.simulator_interface import SimulatorConfig

if TYPE_CHECKING:
    from rearrange.home.robot.robot import Hand
    from rearrange.home.simulation.simulator_interface import Simulator

__all__ = ["Scenario", "scenario_episode", "scenario_episodes"]

HAB_OPEN = ("chair", "table", "coffee_table", "tv_stand", "sink", "counter", "sofa")  # HAB's open receptacles, by kind
HAB_OBJECTS = tuple(name for name in OBJECTS if name != "013_apple")  # what HAB moves but for Set Table
_DRAWS = 100  # episodes drawn in a home before the next one is taken
_HOMES = 20  # that are tried; of 13 of ReplicaCAD's 8 allowed an episode of Prepare Groceries
_NAMED = 3  # of those that allow none
_PLACE_TRIES = 60
_ROOM_M = 0.3  # above the board of a fridge, from which an object is taken by its top


@dataclass(frozen=True)
class Scenario:
    """What the episodes of a scenario are like.

    Places are kinds of receptacles ("table"), names of one ("dining_table"), or one of `PLACE_WORDS`, which hold in any
    home: "open": any of those on which HAB leaves things; "top_drawer": a drawer with no other above it;
    "top_fridge_board": the highest board of the fridge with room for an object; "widest_table": the table whose
    shorter side is longest, as of a dining table.
    """

    name: str
    objects: tuple[str, ...]  # that are moved, in this order; "any" draws one of HAB's nine
    starts: tuple[str, ...]  # where each stands
    goals: tuple[str, ...]  # and where it belongs
    opened: tuple[str, ...] = ()  # "fridge", "drawer": those that stand open at the start
    clutter: int = 15  # other objects, at most
    clutter_on: tuple[str, ...] = ("open",)
    min_move_m: float = MIN_MOVE_M  # between an object's start and its goal

    def __post_init__(self) -> None:
        lengths = {"objects": len(self.objects), "starts": len(self.starts), "goals": len(self.goals)}
        if len(set(lengths.values())) > 1 or not self.objects:
            said = ", ".join(f"{name} {count}" for name, count in lengths.items())
            raise UserError(f"scenario {self.name}: objects, starts and goals must be lists of one length, at least 1; "
                            f"they have {said} entries.")
        for name in set(self.objects) - {"any"}:
            if name not in OBJECTS:
                raise UserError(f"scenario {self.name}: there is no object called {name!r}; there are any, "
                                f"{', '.join(OBJECTS)}.")
        if self.clutter and not self.clutter_on:
            raise UserError(f"scenario {self.name}: clutter_on=[] leaves no place for the other objects of "
                            f"clutter={self.clutter}; name a place, or set clutter=0.")
        for what in self.opened:
            if what not in OPEN_M_OR_RAD:
                raise UserError(f"scenario {self.name}: opened={what} should be some of {', '.join(OPEN_M_OR_RAD)}.")
        for name in OBJECTS:
            if self.objects.count(name) > 2:
                raise UserError(f"scenario {self.name}: a home has two of every object, not {self.objects.count(name)} "
                                f"of {name}.")
        named = [name for name in self.objects if name in HAB_OBJECTS]
        there, wanted = 2 * len(HAB_OBJECTS) - len(named), self.objects.count("any")
        if wanted > there:
            raise UserError(f"scenario {self.name}: objects has {wanted} times any; a home has {there} objects to "
                            "draw from beside those that are named.")


@dataclass(frozen=True)
class Homes:
    """Homes in which episodes are drawn. called: what they are called together, as the split. sim: tries episodes."""

    called: str
    scenes: Sequence[str]
    layout_of: Callable[[str], Layout]
    sim: Callable[[], Simulator]
    external: bool = False


def scenario_episode(scenario: Scenario, split: str, index: int, num_layouts: int = 96, robot: str = DEFAULT,
                     hand: str | None = None) -> Episode:
    """Episode `index` (0, 1, 2, ...) of a scenario; its home is layout `index` modulo `num_layouts` of the split, or
    the next one if nothing that is drawn there can be solved by the robot with this hand. Raises UserError when these
    homes do not allow it.
    """
    if split.removeprefix(WIDE) not in SPLIT_FAMILIES:
        raise UserError(f"split={split} is not one of {', '.join(SPLIT_FAMILIES)}.")
    scenes = [f"{split}/{number}" for number in range(num_layouts)]
    return scenario_episode_in(Homes(split, scenes, scene_layout, lambda: _simulator(robot, hand)), scenario, index)


class NotPossible(UserError):
    """A scenario is not possible in some scenes; why: of the last of them, as in "has no fridge"."""

    def __init__(self, scenario: str, scenes: Sequence[str], why: str) -> None:
        several, more = len(scenes) > 1, len(scenes) - _NAMED
        named = ", ".join(scenes) if more <= 0 else f"{', '.join(scenes[:_NAMED])} and {more} more"
        super().__init__(f"scenario {scenario} is not possible in scene{'s' * several} {named}, "
                         f"{'the last of ' * several}which {why}.")
        self.why = why


def scenario_episode_in(homes: Homes, scenario: Scenario, index: int, draws: int = _DRAWS) -> Episode:
    """The same in any homes, which take turns; up to `draws` arrangements are tried in each. Raises NotPossible."""
    if index < 0:
        raise UserError(f"episode {index} does not exist; episodes are numbered from 0.")
    rng = np.random.default_rng([zlib.crc32(f"{scenario.name}/{homes.called}".encode()), index])
    count = len(homes.scenes)
    scenes = [homes.scenes[(index + k) % count] for k in range(min(_HOMES, count))]
    hand, why = homes.sim().robot.hand, ""
    for name in scenario.objects:
        if name != "any" and (refused := hand.refuses(name, OBJECTS[name].half_extents_m)):
            raise NotPossible(scenario.name, scenes, f"has what the hand does not take: {refused}")
    if (wanted := scenario.objects.count("any")) > (count_taken := len(_taken(scenario, hand))):
        raise NotPossible(scenario.name, scenes, f"has {count_taken} objects that the hand takes beside those that are "
                                                 f"named, and {wanted} times any is asked for")
    for scene in scenes:
        try:
            layout = homes.layout_of(scene)
            for _ in range(draws):
                try:
                    episode = _draw(scenario, f"{scenario.name}/{homes.called}/{index}", scene, layout, rng, hand)
                    if homes.external:  # whose objects are our primitives
                        episode = replace(episode, object_paths=())
                    sim = homes.sim()
                    check_episode(sim, episode, drawn=True)
                    return replace(episode, robot_start=random_start(sim, episode, rng))
                except (_NoRoom, Unsolvable) as error:
                    why = f"allows none of {draws} arrangements, the last because {str(error).rstrip('.')}"
        except SceneLacks as error:
            why = error.lacking
    raise NotPossible(scenario.name, scenes, why)


def scenario_episodes(scenario: Scenario, count: int, split: str = "val", num_layouts: int = 96) -> Iterator[Episode]:
    """The first `count` episodes; HAB's validation sets for 100 and 1,000 of split val."""
    return (scenario_episode(scenario, split, index, num_layouts) for index in range(count))


class _NoRoom(Exception):
    """An object found no place in one draw."""


@lru_cache(maxsize=2)
def _simulator(robot: str = DEFAULT, hand: str | None = None) -> MujocoSimulator:
    """In which episodes are tried."""
    return MujocoSimulator(SimulatorConfig(robot=robot, hand=hand))


def _draw(scenario: Scenario, episode_id: str, scene: str, layout: Layout, rng: np.random.Generator,
          hand: Hand) -> Episode:
    """One arrangement; raises _NoRoom."""
    names = _draw_names(scenario, rng, hand)
    starts = [_draw_receptacle(layout, word, scenario, rng) for word in scenario.starts]
    goals = [_draw_receptacle(layout, word, scenario, rng) for word in scenario.goals]
    opened = {body.name: opened_to(layout, body.name) for body in layout.bodies
              if kind_of(body.name) in scenario.opened}
    shut = {r.link: 0.0 for r in (*starts, *goals) if r.link and r.link not in opened}
    now = _surfaces(layout, opened | shut)
    later = _surfaces(layout, opened | {link: opened_to(layout, link) for link in shut})
    poses: list[Pose] = []
    targets: dict[int, Pose] = {}
    for k, (name, start) in enumerate(zip(names, starts)):
        poses.append(_put(now[start.name], name, rng))
        targets[k] = None
    for k, (name, goal) in enumerate(zip(names, goals)):
        # On what slides, a goal is where it will be when the drawer is out; elsewhere both are the same surface.
        surface = later[goal.name] if goal.parent in shut else now[goal.name]
        targets[k] = _put(surface, name, rng)
        if math.dist(poses[k][:3], targets[k][:3]) < scenario.min_move_m:
            raise _NoRoom(f"{name} would start nearer than {scenario.min_move_m} m to its goal")
    clutter = _clutter(scenario, layout, now, names, rng)
    objects = (*names, *(name for name, _ in clutter))
    return Episode(id=episode_id, scene=scene, objects=objects, start_poses=(*poses, *(pose for _, pose in clutter)),
                   targets=targets, target_receptacles=tuple(r.name for r in starts),
                   goal_receptacles=tuple(r.name for r in goals), articulated=opened,
                   labels={i: target_label(scenario, i) if i < len(names) else f"clutter|{i - len(names)}"
                           for i in range(len(objects))})


# By which Habitat-Lab's own problems call the objects of HAB's episodes; those of Tidy House are any_targets|i.
_HAB_TARGETS = {"set_table": ("bowl_target", "fruit_target"),
                "prepare_groceries": ("obj0_target", "obj1_target", "obj2_target")}


def target_label(scenario: Scenario, i: int) -> str:
    """Of the object that is moved as number i."""
    called = _HAB_TARGETS.get(scenario.name, ())
    return f"{called[i] if len(called) == len(scenario.objects) else 'any_targets'}|{i}"


def _draw_names(scenario: Scenario, rng: np.random.Generator, hand: Hand) -> list[str]:
    """The objects that are moved, which the hand takes."""
    left, names = _taken(scenario, hand), []
    for name in scenario.objects:
        names.append(left.pop(rng.integers(len(left))) if name == "any" else name)
    return names


def _taken(scenario: Scenario, hand: Hand) -> list[str]:
    """What the hand takes of the two of each kind that a home has, but for what the scenario names."""
    left = [name for name in HAB_OBJECTS if hand.takes(OBJECTS[name].half_extents_m) for _ in range(2)]
    for name in scenario.objects:
        if name in left:
            left.remove(name)
    return left


def receptacles_called(layout: Layout, word: str, scenario: str) -> list[Receptacle]:
    """What a word of a scenario means in a home: see `Scenario`. Raises SceneLacks where there is none."""
    if word in PLACE_WORDS:
        return PLACE_WORDS[word](layout)
    found = [r for r in layout.receptacles if word in (r.kind, r.name)]
    if not found:
        known = sorted({r.kind for r in layout.receptacles})
        raise SceneLacks(layout.name, f"has no place called {word!r}; it has {', '.join((*PLACE_WORDS, *known))}, and "
                         f"by name {', '.join(r.name for r in layout.receptacles)}",
                         f"choose others, or another place in scenario {scenario}")
    return found


def _open_places(layout: Layout) -> list[Receptacle]:
    return [r for r in layout.receptacles if r.kind in HAB_OPEN] or _lacking(layout, "open receptacle")


def _top_fridge_board(layout: Layout) -> list[Receptacle]:
    boards = [r for r in layout.receptacles if r.kind == "fridge"] or _lacking(layout, "fridge with a board")
    roomy = [r for r in boards if r.clearance_m >= _ROOM_M] or [max(boards, key=lambda r: r.clearance_m)]
    return [max(roomy, key=lambda r: r.center_m[2])]


def _widest_table(layout: Layout) -> list[Receptacle]:
    tables = [r for r in layout.receptacles if r.kind == "table"] or _lacking(layout, "table")
    return [max(tables, key=lambda r: min(r.half_extents_m))]


def _lacking(layout: Layout, what: str) -> list[Receptacle]:
    raise SceneLacks(layout.name, f"has no {what}")


PLACE_WORDS: dict[str, Callable[[Layout], list[Receptacle]]] = {
    "open": _open_places, "top_drawer": lambda layout: _compartments(layout, "drawer"),
    "top_fridge_board": _top_fridge_board, "widest_table": _widest_table}
"""Words for places that hold in any home."""


def _draw_receptacle(layout: Layout, word: str, scenario: Scenario, rng: np.random.Generator) -> Receptacle:
    """A kind uniformly among those meant, then one of that kind."""
    found = receptacles_called(layout, word, scenario.name)
    kinds = sorted({receptacle.kind for receptacle in found})
    kind = kinds[rng.integers(len(kinds))]
    of_kind = [receptacle for receptacle in found if receptacle.kind == kind]
    return of_kind[rng.integers(len(of_kind))]


def _put(surface: _Surface, name: str, rng: np.random.Generator) -> Pose:
    """A place within reach for an object that is to be moved, or for its goal."""
    if len(surface.taken) >= MAX_ON.get(surface.receptacle.kind, len(OBJECTS) * 2):
        raise _NoRoom(f"{surface.receptacle.name} is full")
    pose = _place(surface, OBJECTS[name], rng, reachable=True)
    if pose is None:
        raise _NoRoom(f"{name} found no place within reach on {surface.receptacle.name}")
    return pose


def _clutter(scenario: Scenario, layout: Layout, surfaces: dict[str, _Surface], taken: list[str],
             rng: np.random.Generator) -> list[tuple[str, Pose]]:
    """Other objects, where nothing that is shut hides them but what an object has to be taken out of; one that finds no
    place is left out, as in HAB.
    """
    left = [name for name in HAB_OBJECTS for _ in range(2)]
    for name in taken:
        if name in left:
            left.remove(name)
    places = []
    for word in scenario.clutter_on:
        places += [r.name for r in receptacles_called(layout, word, scenario.name) if r.name in surfaces]
    if scenario.clutter and not places:
        raise UserError(f"scenario {scenario.name}: in home {layout.name} all of "
                        f"clutter_on=[{', '.join(scenario.clutter_on)}] is shut; name a place that is open, let it "
                        "stand open with opened=, or set clutter=0.")
    placed: list[tuple[str, Pose]] = []
    for _ in range(_PLACE_TRIES):
        if len(placed) >= scenario.clutter or not left:
            break
        name = left[rng.integers(len(left))]
        surface = surfaces[places[rng.integers(len(places))]]
        if len(surface.taken) >= MAX_ON.get(surface.receptacle.kind, len(OBJECTS) * 2):
            continue
        pose = _place(surface, OBJECTS[name], rng)
        if pose is not None:
            placed.append((name, pose))
            left.remove(name)
    return placed
