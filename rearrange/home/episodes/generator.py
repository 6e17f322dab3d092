"""Draws episodes: the same (kind, split, index) gives the same episode everywhere, and there is no last index.

Rules after habitat-lab's `all_receptacles` data set: one object that is to be moved, up to nineteen more around, on
every kind of receptacle; the fridge and the drawers count when they are open, and are opened only for the object that
is to be moved, or its goal. For the skills that open and close, the object that is to be moved lies in the drawer or
fridge that they are about, as in habitat-lab's `in_drawer` and `in_fridge` data sets; the drawer is one of the top
row, as there: to a handle near the floor and back the arm alone needs more than the 200 steps of an episode.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from rearrange.home.apartments.containers import LEAST_OPEN_M_OR_RAD, kind_of, opened_to
from rearrange.home.apartments.episodes import Episode, Pose
from rearrange.home.apartments.kept_layouts import scene_layout
from rearrange.home.apartments.layouts import Layout
from rearrange.home.apartments.objects import OBJECTS, STANDARD_SET, ObjectModel
from rearrange.home.apartments.parts import Body, Receptacle
from rearrange.home.errors import UserError
from rearrange.home.geometry import from_frame, rotate, to_frame

__all__ = ["KINDS", "generate_episode"]

THINGS = "things"
"""The kind of episodes that are about a thing which an MJCF scene marks: they bring no objects."""
MAX_OBJECTS = 20
CLOSE_FROM_M_OR_RAD = {"drawer": (0.4, 0.5), "fridge": (math.pi / 4, 2 * math.pi / 3)}  # where the close skills start
REACH_M = 0.3  # what is to be moved stands at most this far behind an edge before which the robot can stand
REACH_UNDER_M = {"fridge": 0.15, "shelf": 0.15}  # where a board above forces the arm to come in level
# At 0.0125 rad a step the arm needs more than the 200 steps of an episode to a hand that comes in low and level, or
# near the floor, and back: nothing is moved from or to a board lower than this with another one less far above it, or a
# drawer below the top row. Tall objects stay out from under boards: they are held by their top.
LOW_BOARD_M, LOW_CLEARANCE_M = 0.7, 0.5
UNDER_BOARD_HEIGHT_M = 0.12
# An open door stands before the side of the fridge on which it hinges, a table before a chair: what is moved keeps this
# far from that side, and is at most this wide on a chair.
BESIDE_DOOR_M = 0.2
CHAIR_RADIUS_M = 0.06
MIN_MOVE_M = 0.5  # between start and goal
MAX_ON = {"chair": 2, "sink": 2}  # objects on one receptacle of these kinds

_EDGE_M = 0.01  # between an object and the edge of what it stands on
_GAP_M = 0.015  # between two objects
_HEADROOM_M = 0.02
_HAND_HALF_WIDTH_M = 0.08  # kept free in front of the object under a shelf, where the hand cannot come from above
_TRIES = 60
_FRONTS_APART_M, _SAME_WAY = 0.15, 0.9  # of drawers of one column: along the way they open, cosine between their ways


class SceneLacks(UserError):
    """An external scene lacks what an episode of some kind is about. lacking: what, without the scene's name."""

    def __init__(self, scene: str, lacking: str, advice: str = "choose other scenes") -> None:
        super().__init__(f"scene {scene} {lacking}: {advice}.")
        self.lacking = lacking


@dataclass
class _Surface:
    """A receptacle where it is in the world in this episode, and what stands on it: (x, y, radius) in its own frame."""

    receptacle: Receptacle
    center_m: tuple[float, float, float]
    yaw_rad: float
    taken: list[tuple[float, float, float]] = field(default_factory=list)
    kept_free: list[tuple[float, float, float, float]] = field(default_factory=list)  # low x, low y, high x, high y
    hinge_side: float = 0.0  # of the door before it: +1 left, -1 right, 0 none

    def is_reached(self, x: float, y: float, model: ObjectModel) -> bool:
        """The hand gets to an object at a point of its own frame."""
        if self.receptacle.kind == "chair" and model.radius_m > CHAIR_RADIUS_M:
            return False
        return self.hinge_side * y <= self.receptacle.half_extents_m[1] - BESIDE_DOOR_M or self.hinge_side == 0.0

    @property
    def local_sides(self) -> list[tuple[float, float]]:
        """Outward normals of the accessible edges in its own frame."""
        turn = -self.receptacle.yaw_rad if self.receptacle.parent else -self.yaw_rad
        return [rotate(*side, turn) for side in self.receptacle.sides]

    def depth_behind(self, x: float, y: float, side: tuple[float, float]) -> float:
        """Distance of a point of its own frame from the edge that faces `side`."""
        half = self.receptacle.half_extents_m
        return abs(side[0]) * half[0] + abs(side[1]) * half[1] - side[0] * x - side[1] * y

    def fits(self, model: ObjectModel) -> bool:
        half = self.receptacle.half_extents_m
        free = min(half) - model.radius_m - _EDGE_M
        return free >= 0.0 and 2 * model.half_height_m + _HEADROOM_M <= self.receptacle.clearance_m

    def is_free(self, x: float, y: float, radius: float) -> bool:
        for a, b, r in self.taken:
            if math.hypot(x - a, y - b) < radius + r + _GAP_M:
                return False
        for low_x, low_y, high_x, high_y in self.kept_free:
            if low_x - radius <= x <= high_x + radius and low_y - radius <= y <= high_y + radius:
                return False
        return True

    def pose(self, x: float, y: float, yaw_rad: float, model: ObjectModel) -> Pose:
        """World pose of an object that stands at a point of its own frame."""
        px, py = from_frame(x, y, (self.center_m[0], self.center_m[1], self.yaw_rad))
        return px, py, self.center_m[2] + model.half_height_m, math.cos(yaw_rad / 2), 0.0, 0.0, math.sin(yaw_rad / 2)


def generate_episode(kind: str, split: str, index: int, num_layouts: int = 96) -> Episode:
    """Episode `index` (0, 1, 2, ...) of a kind in a split; its home is layout `index` modulo `num_layouts`."""
    if kind == THINGS:
        raise UserError("our homes mark no thing to be moved: choose a scene that does with sim.scene_dataset=.")
    if kind not in KINDS:
        raise UserError(f"there are no episodes of kind {kind!r}; kinds are {', '.join(KINDS)}.")
    if index < 0:
        raise UserError(f"episode {index} does not exist; episodes are numbered from 0.")
    scene = f"{split}/{index % num_layouts}"
    rng = np.random.default_rng([zlib.crc32(f"{kind}/{split}".encode()), index])
    try:
        return KINDS[kind](f"{kind}/{split}/{index}", scene, scene_layout(scene), rng)
    except SceneLacks as error:  # homes are drawn so that this does not happen
        raise RuntimeError(f"scene {scene} {error.lacking}") from None


def generate_in_scenes(kind: str, where: str, scenes: Sequence[str], index: int,
                       layout_of: Callable[[str], Layout]) -> Episode:
    """Episode `index` of a kind in external scenes, which take turns.

    Args:
        where: What the scenes are called together.

    Raises:
        SceneLacks: A scene has nothing that such an episode is about.
    """
    scene = scenes[index % len(scenes)]
    if kind == THINGS:
        return Episode(f"{kind}/{where}/{index}", scene, (), ())
    rng = np.random.default_rng([zlib.crc32(f"{kind}/{where}".encode()), index])
    return replace(KINDS[kind](f"{kind}/{where}/{index}", scene, layout_of(scene), rng), object_paths=())  # primitives


# Of an episode: the receptacle that the object is on, the one that it belongs on, and how far joints stand open.
_Task = tuple[Receptacle, Receptacle, dict[str, float]]


def _one_object(draw_task: Callable[[Layout, np.random.Generator], _Task], episode_id: str, scene: str, layout: Layout,
                rng: np.random.Generator) -> Episode:
    """One object to move, with clutter around it and on every other receptacle that is open."""
    count = int(rng.integers(1, MAX_OBJECTS + 1))
    for _ in range(_TRIES):
        start, goal, openings = draw_task(layout, rng)
        surfaces = _surfaces(layout, openings)
        name = STANDARD_SET[rng.integers(len(STANDARD_SET))]
        model = OBJECTS[name]
        at_start = _place(surfaces[start.name], model, rng, reachable=True)
        at_goal = at_start and _place(surfaces[goal.name], model, rng, reachable=True)
        if at_start and at_goal and math.dist(at_start[:3], at_goal[:3]) >= MIN_MOVE_M:
            break
    else:
        raise SceneLacks(scene, f"has no room for an object that is to be moved, in {_TRIES} draws")
    objects = [(name, at_start), *_clutter(list(surfaces.values()), count - 1, name, rng)]
    return Episode(id=episode_id, scene=scene, objects=tuple(n for n, _ in objects),
                   start_poses=tuple(pose for _, pose in objects), targets={0: at_goal},
                   target_receptacles=(start.name,), goal_receptacles=(goal.name,),
                   articulated={link: opening for link, opening in sorted(openings.items()) if opening},
                   labels={i: f"any_targets|{i}" if i == 0 else f"clutter|{i - 1}" for i in range(len(objects))})


def _anywhere(layout: Layout, rng: np.random.Generator) -> _Task:
    """From any receptacle to any other; what shuts them is opened."""
    start, goal = _draw_receptacle(layout, rng), _draw_receptacle(layout, rng)
    return start, goal, {r.link: opened_to(layout, r.link) for r in (start, goal) if r.link}


def _out_of(kind: str, opened: bool, layout: Layout, rng: np.random.Generator) -> _Task:
    """Out of a drawer or the fridge (`kind`), which is closed, or open somewhere within `CLOSE_FROM_M_OR_RAD`."""
    compartments = _compartments(layout, kind)
    goals = [receptacle for receptacle in layout.receptacles if not receptacle.closed]
    if not goals:
        raise SceneLacks(layout.name, "has no receptacle outside drawers and fridges")
    start, goal = compartments[rng.integers(len(compartments))], goals[rng.integers(len(goals))]
    return start, goal, {start.link: _drawn_opening(layout, start.link, rng) if opened else 0.0}


def _drawn_opening(layout: Layout, joint: str, rng: np.random.Generator) -> float:
    """How far a drawer (m) or door (rad) stands open that is to be closed."""
    body = next(body for body in layout.bodies if body.name == joint)
    return min(float(rng.uniform(*CLOSE_FROM_M_OR_RAD[kind_of(joint)])), body.range_m_or_rad[1])


def _for_each_next_skill(layout: Layout, rng: np.random.Generator) -> _Task:
    """A task for which every skill is often the next one.

    The object is on an open receptacle, in a drawer or in the fridge, a third each; the latter two are shut in half of
    the episodes. The goal is in a drawer or the fridge in a third.
    """
    shut: dict[bool, list[Receptacle]] = {True: [], False: []}
    for receptacle in layout.receptacles:
        shut[receptacle.closed].append(receptacle)
    kinds = [("open", shut[False]),
             *((kind, [r for r in shut[True] if r.kind == kind]) for kind in ("drawer", "fridge"))]
    kinds = [(kind, starts) for kind, starts in kinds if starts]  # in homes of ours all three
    kind, starts = kinds[rng.integers(len(kinds))]
    start = starts[rng.integers(len(starts))]
    goals = [r for r in shut[rng.random() < 1 / 3] or shut[False] if r.link is None or r.link != start.link] or [start]
    goal = goals[rng.integers(len(goals))]
    openings = {} if goal.link is None else {goal.link: opened_to(layout, goal.link)}
    if start.link is not None:
        openings[start.link] = _drawn_opening(layout, start.link, rng) if rng.random() < 0.5 else 0.0
    return start, goal, openings


def _compartments(layout: Layout, kind: str) -> list[Receptacle]:
    """The drawers with no other above them, or the boards of the fridge."""
    of_kind = [receptacle for receptacle in layout.receptacles if receptacle.kind == kind]
    if not of_kind:
        # A fridge with nothing in it is not among them.
        opens = [body.range_m_or_rad[1] for body in layout.bodies if kind_of(body.name) == kind]
        least = LEAST_OPEN_M_OR_RAD[kind]
        unit, many = "m" if kind == "drawer" else "rad", "s" if len(opens) > 1 else ""
        if opens and max(opens) < least:
            raise SceneLacks(layout.name, f"has {len(opens)} {kind}{many}, which open{'' if many else 's'} "
                             f"{max(opens):.3g} {unit}{' at most' if many else ''}, below the {least:.3g} {unit} "
                             "that skills need")
        if kind == "fridge" or not opens:
            raise SceneLacks(layout.name,
                             f"has no {kind}" + (" with a receptacle behind its door" if kind == "fridge" else ""))
        raise SceneLacks(layout.name, f"has {len(opens)} {kind}{many}, but no receptacle in one that opens "
                         f"{least:.3g} {unit}")
    if kind == "fridge":
        return of_kind
    drawers = {body.name: body for body in layout.bodies if kind_of(body.name) == "drawer"}
    top = [receptacle for receptacle in of_kind
           if not any(_is_above(other, drawers[receptacle.link]) for other in drawers.values())]
    if not top:
        raise SceneLacks(layout.name, "has drawers that can be used only below others")
    return top


def _is_above(body: Body, other: Body) -> bool:
    """Whether a drawer is over another one of the same column."""
    x, y = to_frame(*body.position_m[:2], other.pose())
    half_width_m = max(abs(part.center_m[1]) + part.half_extent_m[1] for part in other.parts if part.solid)
    return (body.position_m[2] > other.position_m[2] and abs(x) < _FRONTS_APART_M and abs(y) < half_width_m
            and math.cos(body.yaw_rad - other.yaw_rad) > _SAME_WAY)


def _draw_receptacle(layout: Layout, rng: np.random.Generator) -> Receptacle:
    """A kind uniformly among those of the home, then one of that kind that the arm reaches in time."""
    drawers = {r.name for r in layout.receptacles if r.kind == "drawer"}
    bottom_row = drawers and drawers - {r.name for r in _compartments(layout, "drawer")}
    receptacles = [r for r in layout.receptacles if r.name not in bottom_row and not _is_low_board(r)]
    if not receptacles:  # in homes of ours never
        raise SceneLacks(layout.name, "has only low boards with others close above them")
    kinds = sorted({receptacle.kind for receptacle in receptacles})
    kind = kinds[rng.integers(len(kinds))]
    of_kind = [receptacle for receptacle in receptacles if receptacle.kind == kind]
    return of_kind[rng.integers(len(of_kind))]


def _is_low_board(receptacle: Receptacle) -> bool:
    return _is_under_board(receptacle) and receptacle.center_m[2] < LOW_BOARD_M


def _is_under_board(receptacle: Receptacle) -> bool:
    """A board of a shelf or a fridge with another one close above it."""
    return receptacle.kind in REACH_UNDER_M and receptacle.clearance_m < LOW_CLEARANCE_M


def _surfaces(layout: Layout, openings: dict[str, float]) -> dict[str, _Surface]:
    """Every receptacle that is never closed or whose joint is in `openings` (m or rad, by joint), where it is then."""
    bodies = {body.name: body for body in layout.bodies}
    surfaces = {}
    for receptacle in layout.receptacles:
        if receptacle.closed and receptacle.link not in openings:
            continue
        center, yaw = receptacle.center_m, receptacle.yaw_rad
        if receptacle.parent is not None:
            body = bodies[receptacle.parent]
            frame = body.pose(openings[receptacle.link])
            center = (*from_frame(center[0], center[1], frame), body.position_m[2] + center[2])
            yaw += frame[2]
        door = bodies.get(receptacle.link) if receptacle.parent is None else None
        surfaces[receptacle.name] = _Surface(receptacle, center, yaw, hinge_side=door.hinge_sign if door else 0.0)
    return surfaces


def _place(surface: _Surface, model: ObjectModel, rng: np.random.Generator, reachable: bool = False) -> Pose | None:
    """A free pose on a surface, or None; `reachable` keeps to the accessible edges and keeps the way in free."""
    if not surface.fits(model):
        return None
    if reachable and _is_under_board(surface.receptacle) and 2 * model.half_height_m > UNDER_BOARD_HEIGHT_M:
        return None
    room_x, room_y = (half - model.radius_m - _EDGE_M for half in surface.receptacle.half_extents_m)
    for _ in range(_TRIES):
        x, y, yaw = up_to(room_x, rng), up_to(room_y, rng), up_to(math.pi, rng)
        if not surface.is_free(x, y, model.radius_m):
            continue
        if reachable:
            if not surface.is_reached(x, y, model):
                continue
            side = min(surface.local_sides, key=lambda normal: surface.depth_behind(x, y, normal))
            if surface.depth_behind(x, y, side) > REACH_UNDER_M.get(surface.receptacle.kind, REACH_M):
                continue
            if math.isfinite(surface.receptacle.clearance_m):
                surface.kept_free.append(_way_in(x, y, side))
        surface.taken.append((x, y, model.radius_m))
        return surface.pose(x, y, yaw, model)
    return None


def up_to(most: float, rng: np.random.Generator) -> float:
    """The number that rng.uniform(-most, most) draws, in a quarter of its time."""
    return 2.0 * most * rng.random() - most


def _way_in(x: float, y: float, side: tuple[float, float]) -> tuple[float, float, float, float]:
    """Rectangle between a point and the edge that faces `side`, as wide as the hand."""
    far_x, far_y = x + round(side[0]), y + round(side[1])
    w = _HAND_HALF_WIDTH_M
    across_x, across_y = w * abs(round(side[1])), w * abs(round(side[0]))
    return (min(x, far_x) - across_x, min(y, far_y) - across_y, max(x, far_x) + across_x, max(y, far_y) + across_y)


def _clutter(surfaces: list[_Surface], count: int, taken_name: str, rng: np.random.Generator) -> list[tuple[str, Pose]]:
    """Up to `count` more objects of the standard set, each on a surface drawn uniformly."""
    left = list(STANDARD_SET)
    left.remove(taken_name)
    placed: list[tuple[str, Pose]] = []
    for _ in range(count):
        name = left[rng.integers(len(left))]
        for _ in range(4):
            surface = surfaces[rng.integers(len(surfaces))]
            if len(surface.taken) >= MAX_ON.get(surface.receptacle.kind, MAX_OBJECTS):
                continue
            pose = _place(surface, OBJECTS[name], rng)
            if pose is not None:
                placed.append((name, pose))
                left.remove(name)
                break
    return placed


# kind -> draw
_TASKS: dict[str, Callable[[Layout, np.random.Generator], _Task]] = {
    "pick": _anywhere, "place": _anywhere, "navigate": _for_each_next_skill,
    "open_cabinet": partial(_out_of, "drawer", False), "close_cabinet": partial(_out_of, "drawer", True),
    "open_fridge": partial(_out_of, "fridge", False), "close_fridge": partial(_out_of, "fridge", True)}
# kind -> (id, scene, layout, rng) -> Episode
KINDS: dict[str, Callable[[str, str, Layout, np.random.Generator], Episode]] = {kind: partial(_one_object, draw_task)
                                                                                for kind, draw_task in _TASKS.items()}
