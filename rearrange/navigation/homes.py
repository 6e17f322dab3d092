"""The homes of navigation tasks: one flat, or several that are joined by doorways.

Frame: z up, metres; the outer walls begin at x = 0 and y = 0. The same (split, size, index) gives the same home.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rearrange.home.apartments.floor_grid import CELL_M, blocked_cells, label
from rearrange.home.apartments.floor_plan import DOORWAY_CLEAR_M, WALL_HALF_M
from rearrange.home.apartments.layouts import SPLIT_FAMILIES, Layout, make_layout
from rearrange.home.apartments.parts import Body, Furniture, Part
from rearrange.navigation.distances import opened

WALL_M = 2 * WALL_HALF_M
FLATS = (2, 3, 3, 4)  # of a large home, equally likely
DOOR_M = (1.0, 1.4)
HANGS_M = 0.05  # so near to a wall hangs a window or an entrance, which goes with the wall behind it
SHARED_M = 2.4  # of a wall, at least, between two flats that are joined
MAX_DRAWS = 200
MIN_SHARE = 0.9  # of the free floor of every flat that belongs to the rest of the home
_FLAT_NUMBERS = 100_000  # layouts from which the flats of large homes are drawn

Span = tuple[float, float, float, float]  # low x, low y, high x, high y


@dataclass(frozen=True, eq=False)
class Building:
    """Contents of a home. size_m: with its outer walls. inside: rectangles of floor, rooms and doorways between flats.
    """

    name: str
    size_m: tuple[float, float]
    parts: tuple[Part, ...]
    bodies: tuple[Body, ...]
    furniture: tuple[Furniture, ...]
    inside: tuple[Span, ...]


class Apart(Exception):
    """Flats that could not be joined as they were drawn."""


def home_name(split: str, size: str, number: int) -> str:
    """The name of home `number` of a size; of mixed ones every second is large."""
    if size == "mixed":
        size, number = ("small", "large")[number % 2], number // 2
    return f"{split}/{size}/{number}"


def make_building(name: str) -> Building:
    """The home of a name, "<split>/<small|large>/<number>"."""
    split, size, number = name.split("/")
    if size == "small":
        return _moved_in(name, [make_layout(split, int(number))], [(0.0, 0.0)], [])
    rng = np.random.default_rng((list(SPLIT_FAMILIES).index(split), int(number), 7))
    for _ in range(MAX_DRAWS):
        count = FLATS[rng.integers(len(FLATS))]
        flats = [make_layout(split, int(rng.integers(_FLAT_NUMBERS))) for _ in range(count)]
        for _ in range(10):  # the same flats at other places
            try:
                places, doors = _joined(flats, rng)
                building = _moved_in(name, flats, places, doors)
            except Apart:
                continue
            if _whole(building, len(flats)):
                return building
    raise RuntimeError(f"home {name}: {MAX_DRAWS} draws failed the checks")


def free_floor(building: Building, radius_m: float, height_m: float) -> np.ndarray:
    """Where an agent, a cylinder, can stand and from where it gets everywhere, (cells in x, cells in y), bool.

    It is the largest connected set without slivers. The outermost two cells are never free.
    """
    blocked = blocked_cells(building.size_m, building.parts, building.bodies, radius_m, below_m=height_m)
    inside = np.zeros_like(blocked)
    for low_x, low_y, high_x, high_y in building.inside:
        a, b, c, d = (round(value / CELL_M) for value in (low_x, low_y, high_x, high_y))
        inside[a:c, b:d] = True
    return whole_floor(inside & ~blocked)


def whole_floor(free: np.ndarray) -> np.ndarray:
    """Of free cells the largest connected set without slivers, and without the outermost two."""
    free = free.copy()
    free[:2], free[-2:], free[:, :2], free[:, -2:] = False, False, False, False
    free = opened(free)
    labels, sizes = label(~free)
    return labels == int(np.argmax(sizes)) if len(sizes) else free


# ------------------------------------------------------------------ several flats

def _joined(flats: list[Layout], rng: np.random.Generator) -> tuple[list[tuple[float, float]], list[Span]]:
    """Where each flat stands (the low corner of its floor), and the doorways between them."""
    places, doors = [(0.0, 0.0)], []
    walls = [_standing(flat) for flat in flats]
    for k, flat in enumerate(flats[1:], 1):
        for _ in range(30):
            other, axis, ahead = int(rng.integers(k)), int(rng.integers(2)), bool(rng.integers(2))
            low, size = places[other], flats[other].size_m
            place = [0.0, 0.0]
            place[axis] = low[axis] + (size[axis] + 2 * WALL_M if ahead else -flat.size_m[axis] - 2 * WALL_M)
            across = 1 - axis
            place[across] = low[across] + rng.uniform(SHARED_M - flat.size_m[across], size[across] - SHARED_M)
            place = [round(value / CELL_M) * CELL_M for value in place]
            if any(_overlap(place, flat.size_m, p, f.size_m) for p, f in zip(places, flats)):
                continue
            edge = low[axis] + (size[axis] if ahead else -2 * WALL_M)
            span = (max(low[across], place[across]),
                    min(low[across] + size[across], place[across] + flat.size_m[across]))
            here = [(places[other], walls[other]), (place, walls[k])]
            if door := _doorway(edge, axis, span, here, rng):
                places.append((place[0], place[1]))
                doors.append(door)
                break
        else:
            raise Apart
    return places, doors


def _standing(flat: Layout) -> np.ndarray:
    """Boxes (n, 4), low and high corners in the plane, of what stands in a flat, its outer walls not among it."""
    solid = [p for p in flat.parts[4:] if p.solid and p.bottom_m < 2.0] + [p for body in flat.bodies
                                                                           for p in body.parts_at()]
    boxes = []
    for part in solid:
        x, y, half_x, half_y, yaw = part.rectangle
        c, s = abs(np.cos(yaw)), abs(np.sin(yaw))
        reach = c * half_x + s * half_y, s * half_x + c * half_y
        boxes.append((x - reach[0], y - reach[1], x + reach[0], y + reach[1]))
    return np.array(boxes)


def _overlap(place: list[float], size: tuple[float, float], other: tuple[float, float],
             other_size: tuple[float, float]) -> bool:
    """Whether two flats with their outer walls share floor."""
    return all(place[k] - WALL_M < other[k] + other_size[k] + WALL_M - 1e-6
               and other[k] - WALL_M < place[k] + size[k] + WALL_M - 1e-6 for k in range(2))


def _doorway(edge: float, axis: int, span: tuple[float, float], flats: list, rng: np.random.Generator) -> Span | None:
    """A doorway through the two walls that begin at `edge` along `axis`, with nothing before it on either side."""
    width = rng.uniform(*DOOR_M)
    starts = np.arange(span[0] + 0.1, span[1] - width - 0.1, CELL_M)
    rng.shuffle(starts)
    for start in starts[:60]:
        door = [0.0, 0.0, 0.0, 0.0]
        door[axis], door[axis + 2] = edge, edge + 2 * WALL_M
        door[1 - axis], door[3 - axis] = start, start + width
        clear = list(door)
        clear[axis], clear[axis + 2] = edge - DOORWAY_CLEAR_M, edge + 2 * WALL_M + DOORWAY_CLEAR_M
        if all(_is_clear(clear, place, standing) for place, standing in flats):
            return tuple(round(value / CELL_M) * CELL_M for value in door)
    return None


def _is_clear(span: list[float], place: tuple[float, float], boxes: np.ndarray) -> bool:
    x, y = place
    low_x, low_y, high_x, high_y = span
    return not ((boxes[:, 0] + x < high_x) & (boxes[:, 2] + x > low_x) & (boxes[:, 1] + y < high_y)
                & (boxes[:, 3] + y > low_y)).any()


def _moved_in(name: str, flats: list[Layout], places: list[tuple[float, float]], doors: list[Span]) -> Building:
    """The flats at their places, with the doorways cut out of their walls."""
    low = [min(place[k] for place in places) - WALL_M for k in range(2)]
    size = tuple(max(place[k] + flat.size_m[k] for place, flat in zip(places, flats)) + WALL_M - low[k]
                 for k in range(2))
    doors = [(a - low[0], b - low[1], c - low[0], d - low[1]) for a, b, c, d in doors]
    parts: list[Part] = []
    bodies: list[Body] = []
    furniture: list[Furniture] = []
    inside: list[Span] = list(doors)
    for flat, (x, y) in zip(flats, places):
        x, y = x - low[0], y - low[1]
        first, first_body = len(parts), len(bodies)
        parts += [part.at((x, y, 0.0)) for part in flat.parts]
        bodies += [body.at((x, y, 0.0)) for body in flat.bodies]
        inside.append((x, y, x + flat.size_m[0], y + flat.size_m[1]))
        for piece in flat.furniture:
            px, py, *rest = piece.footprint
            furniture.append(replace(piece, footprint=(px + x, py + y, *rest), parts=_shifted(piece.parts, first),
                                     bodies=_shifted(piece.bodies, first_body)))
    walls: list[Part] = []  # remains of cut ones, behind all other parts, so that furniture keeps its numbers
    for door in doors:
        for k, part in enumerate(parts):
            if part is not NOTHING and _cuts(part, door):
                walls += _cut(part, door) if part.solid else []
                parts[k] = NOTHING
        walls = [left for wall in walls for left in (_cut(wall, door) if _cuts(wall, door) else [wall])]
    return Building(name, size, (*parts, *walls), tuple(bodies), tuple(furniture), tuple(inside))


NOTHING = Part("box", (0.0, 0.0, -1.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), solid=False)
"""In the place of a part that was cut."""


def _shifted(numbers: range, by: int) -> range:
    return range(numbers.start + by, numbers.stop + by)


def _span(part: Part) -> Span:
    x, y, half_x, half_y, yaw = part.rectangle
    if abs(np.sin(yaw)) > 0.5:
        half_x, half_y = half_y, half_x
    return x - half_x, y - half_y, x + half_x, y + half_y


def _cuts(part: Part, door: Span) -> bool:
    """Whether a doorway goes through a wall, or what hangs on it."""
    a, b, c, d = _span(part)
    beyond = -1e-6 if part.solid or part.top_m < HANGS_M else HANGS_M  # rugs lie
    return (part.shape == "box" and a < door[2] + beyond and c > door[0] - beyond
            and b < door[3] + beyond and d > door[1] - beyond)


def _cut(wall: Part, door: Span) -> list[Part]:
    """What a doorway leaves of a wall."""
    a, b, c, d = _span(wall)
    spans = [(a, b, door[0], d), (door[2], b, c, d)] if c - a > d - b else [(a, b, c, door[1]), (a, door[3], c, d)]
    left = []
    for low_x, low_y, high_x, high_y in spans:
        if high_x - low_x > 0.01 and high_y - low_y > 0.01:
            center = ((low_x + high_x) / 2, (low_y + high_y) / 2, wall.center_m[2])
            half = ((high_x - low_x) / 2, (high_y - low_y) / 2, wall.half_size_m[2])
            left.append(replace(wall, center_m=center, half_size_m=half, yaw_rad=0.0))
    return left


def _whole(building: Building, flats: int) -> bool:
    """Whether the floor of every flat belongs to the rest, for an agent of usual size."""
    free = free_floor(building, 0.18, 1.5)
    blocked = blocked_cells(building.size_m, building.parts, building.bodies, 0.18, below_m=1.5)
    for span in building.inside[-flats:]:
        a, b, c, d = (round(value / CELL_M) for value in span)
        if free[a:c, b:d].sum() < MIN_SHARE * opened(~blocked[a:c, b:d]).sum():
            return False
    return True
