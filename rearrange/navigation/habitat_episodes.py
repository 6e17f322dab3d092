"""Habitat's own episodes of PointNav and ObjectNav (`val.json.gz`, or files in `content` beside it), without Habitat.

Frame: z up, metres: Habitat's point (x, y, z) is (x, -z, y). Its agent looks along -z, ours along x at yaw 0.
"""

from __future__ import annotations

import json
import math
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rearrange.home.apartments.episodes import MOST_BYTES, repeated_ids
from rearrange.home.axis_conventions import Point, to_z_up
from rearrange.home.errors import UserError
from rearrange.home.files import parse_json, read_bytes, unzipped

_MOST_M = 1e6  # of a number; a greater one, or none, is not meant
_AT_M = 1e-6  # from a goal; who is nearer is there
_LEANS = 0.02  # of a quaternion that should turn about the vertical
_SHOWN = 60  # characters of a value in an error

_A_LIST, _A_TEXT = (list, "a list"), (str, "a text")


@dataclass(frozen=True)
class HabitatEpisode:
    """scene: path of its file by Habitat. goals: points (m), of ObjectNav the view points. shortest_m: by Habitat."""

    id: str
    scene: str
    start: Point
    yaw_rad: float
    goals: tuple[Point, ...]
    shortest_m: float
    category: str | None = None

    @property
    def ratio(self) -> float:
        """The shortest way over the straight line to the nearest goal; 1 where it begins at a goal."""
        straight_m = min(math.dist(self.start, goal) for goal in self.goals)
        return self.shortest_m / straight_m if straight_m > _AT_M else 1.0


def read_habitat_episodes(path: str | Path) -> list[HabitatEpisode]:
    """The episodes of a file, and of the files in a folder `content` beside it, as in Habitat's splits for training.

    UserError for the first mistake: the file, the episode, the field, the value.
    """
    path = Path(path)
    found = _read(path)
    for part in sorted((path.parent / "content").glob("*.json.gz")):
        found += _read(part)
    if not found:
        raise UserError(f"the episode file {path} has no episodes, and there is no "
                        f"{path.parent / 'content'}/*.json.gz beside it.")
    return found


def categories_of(path: str | Path, episodes: Sequence[HabitatEpisode]) -> tuple[str, ...]:
    """The categories of a file of ObjectNav in the order of their numbers, else of the alphabet. UserError for another.
    """
    numbers = _content(Path(path)).get("category_to_task_category_id")
    there = {episode.category for episode in episodes if episode.category is not None}
    if numbers is None:
        return tuple(sorted(there))
    if not isinstance(numbers, dict) or not all(isinstance(number, int) for number in numbers.values()):
        raise UserError(f"{path}: field 'category_to_task_category_id' should be an object of category: number, "
                        f"not {_shown(numbers)}.")
    if not there <= set(numbers):
        raise UserError(f"{path}: an episode looks for {sorted(there - set(numbers))[0]!r}, which "
                        "'category_to_task_category_id' does not name.")
    return tuple(sorted(numbers, key=numbers.get))


def _content(path: Path) -> dict[str, Any]:
    try:
        content = parse_json(unzipped(read_bytes(path, MOST_BYTES), MOST_BYTES, path))
    except (OSError, EOFError, ValueError, zlib.error) as error:
        why = f" ({getattr(error, 'strerror', None) or error})"
        raise UserError(
            f"{path} is not an episode file of Habitat: expected JSON, or JSON compressed by gzip{why}.") from None
    if not isinstance(content, dict) or not isinstance(content.get("episodes"), list):
        raise UserError(f'{path} is not an episode file of Habitat: expected an object with a list under "episodes".')
    return content


def _read(path: Path) -> list[HabitatEpisode]:
    content = _content(path)
    goals = content.get("goals_by_category", {})
    if not isinstance(goals, dict):
        raise UserError(f"{path}: field 'goals_by_category' should be an object of scene and category: goals, not "
                        f"{_shown(goals)}.")
    views: dict[str, tuple[Point, ...]] = {}
    return [_Reader(path, k, goals, views).episode(entry) for k, entry in enumerate(content["episodes"])]


class _Reader:
    """Reads one entry of the list of episodes. views: the view points of categories that were read before."""

    def __init__(self, path: Path, number: int, goals: dict[str, Any], views: dict[str, tuple[Point, ...]]) -> None:
        self._where, self._goals, self._views = f"{path}, episode {number}", goals, views

    def episode(self, entry: Any) -> HabitatEpisode:
        if not isinstance(entry, dict):
            raise UserError(f"{self._where}: expected an object, not {type(entry).__name__}.")
        scene, category = self._get(entry, "scene_id", *_A_TEXT), entry.get("object_category")
        if category is None:
            goals = tuple(self._point(f"goals[{k}]", goal)
                          for k, goal in enumerate(self._get(entry, "goals", *_A_LIST)))
            if not goals:
                raise UserError(f"{self._where}: field 'goals' is empty; expected at least one goal, or an "
                                "'object_category'.")
        else:
            goals = self._view_points(scene, self._get(entry, "object_category", *_A_TEXT))
        info = self._get(entry, "info", dict, "an object with geodesic_distance")
        start = to_z_up(*self._numbers("start_position", entry.get("start_position"), 3))
        return HabitatEpisode(str(entry.get("episode_id", "")), scene, start, self._yaw(entry.get("start_rotation")),
                              goals, self._shortest(info.get("geodesic_distance")), category)

    def _view_points(self, scene: str, category: str) -> tuple[Point, ...]:
        key = f"{scene.rsplit('/', 1)[-1]}_{category}"
        if key not in self._goals:
            raise UserError(f"{self._where}: scene {scene} has no {category}: there is no {key!r} under "
                            "'goals_by_category'.")
        if key not in self._views:
            things = self._goals[key] if isinstance(self._goals[key],
                                                    list) else self._fail(key, "a list of goals", self._goals[key])
            states = [self._get(view, "agent_state", dict, "an object") for thing in things
                      for view in self._get(thing, "view_points", *_A_LIST)]
            points = [self._point(f"goals_by_category[{key}], view point {k}", state) for k, state in enumerate(states)]
            if not points:
                raise UserError(f"{self._where}: {category} of scene {scene} is seen from nowhere: its "
                                "'view_points' are empty.")
            self._views[key] = tuple(points)
        return self._views[key]

    def _get(self, entry: Any, name: str, kind: type, expected: str) -> Any:
        if not isinstance(entry, dict) or name not in entry:
            raise UserError(f"{self._where}: field {name!r} is missing; expected {expected}.")
        return entry[name] if isinstance(entry[name], kind) else self._fail(name, expected, entry[name])

    def _fail(self, name: str, expected: str, value: object) -> Any:
        raise UserError(f"{self._where}: field {name!r} should be {expected}, not {_shown(value)}.")

    def _numbers(self, name: str, value: Any, count: int) -> list[float]:
        good = isinstance(value, list) and len(value) == count and all(
            isinstance(x, (int, float)) and not isinstance(x, bool) and abs(x) <= _MOST_M for x in value)
        return [float(x) for x in value] if good else self._fail(name, f"a list of {count} finite numbers", value)

    def _point(self, name: str, entry: Any) -> Point:
        position = entry.get("position") if isinstance(entry, dict) else None
        return to_z_up(*self._numbers(f"{name}.position", position, 3))

    def _yaw(self, value: Any) -> float:
        x, y, z, w = self._numbers("start_rotation", value, 4)
        if abs(x) > _LEANS or abs(z) > _LEANS or abs(math.hypot(y, w) - 1.0) > _LEANS:
            self._fail("start_rotation", "a quaternion (x, y, z, w) that turns about the vertical", value)
        turned = 2.0 * math.atan2(y, w) + math.pi / 2
        return math.atan2(math.sin(turned), math.cos(turned))

    def _shortest(self, value: Any) -> float:
        if isinstance(value, float) and math.isinf(value):
            raise UserError(f"{self._where}: its goal cannot be reached from its start: they are on two islands of "
                            "floor ('info.geodesic_distance' is infinite).")
        good = isinstance(value, (int, float)) and not isinstance(value, bool) and 0.0 <= value <= _MOST_M
        return float(value) if good else self._fail("info.geodesic_distance", "a number of metres", value)


def _shown(value: object) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= _SHOWN else text[:_SHOWN - 3] + "..."


EDGES_M = (0, 2, 4, 6, 8, 10, 15, 20, 30)
EDGES_RATIO = (1.0, 1.05, 1.1, 1.2, 1.4, 1.8, 2.5)


def summary(shortest_m: Sequence[float], ratio: Sequence[float]) -> list[str]:
    """Lines of text: how far goals are to drive, and how much longer that is than the straight line."""
    lines = []
    for name, values, edges, unit in (("to drive", shortest_m, EDGES_M, " m"),
                                      ("driving / straight line", ratio, EDGES_RATIO, "")):
        found = np.asarray(values, float)
        low, middle, high = np.percentile(found, (10, 50, 90))
        lines.append(f"{name}: mean {found.mean():.2f}{unit}, median {middle:.2f}, 10 % below {low:.2f}, 90 % "
                     f"below {high:.2f}, most {found.max():.2f}")
        shares = np.histogram(np.maximum(found, edges[0]), (*edges, math.inf))[0] / len(found)
        names = [f"{a:g} to {b:g}" for a, b in zip(edges, edges[1:])] + [f"{edges[-1]:g} and more"]
        lines += [f"  {each + unit:<16} {share:6.1%}" for each, share in zip(names, shares) if share]
    return lines


def show(action: str, path: str) -> None:
    """`rearrange scenes list` and `check` of an episode file: its scenes with their episodes, or how far goals are."""
    episodes = read_habitat_episodes(path)
    scenes = Counter(episode.scene for episode in episodes)
    if action == "list":
        print("\n".join(f"{name}   {count:,} episodes" for name, count in sorted(scenes.items())))
        return
    kinds = Counter(episode.category for episode in episodes if episode.category is not None)
    counts = ", ".join(f"{name} {count:,}" for name, count in sorted(kinds.items()))
    of = f"ObjectNav: {counts}" if kinds else "PointNav"
    print(f"{path}: {len(episodes):,} episodes in {len(scenes):,} scenes   {of}")
    print("\n".join([*repeated_ids(path, episodes),
                     *summary([episode.shortest_m for episode in episodes], [episode.ratio for episode in episodes])]))
