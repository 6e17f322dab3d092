"""Numbers and names of what a pixel can show: the robot, the building, objects, furniture with its drawers and doors.

0 is nothing. Robot and building have the same numbers everywhere. Object i of an episode is OBJECT + i, then furniture.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Protocol

from rearrange.home.apartments.parts import Body, Furniture, Part

NOTHING = 0
MOST = 1023
"""No home has more things; also the bound of the observation."""
ROBOT = {"base": 1, "torso": 2, "head": 3, "arm": 4, "gripper": 5}
BUILDING = {"floor": 6, "ceiling": 7, "wall": 8, "door": 9, "window": 10, "rug": 11}
OBJECT = 12
_OF_PART = {"entrance": "door", "window": "window", "rug": "rug", "wall": "wall"}  # by how the name of a part begins


class Furnished(Protocol):
    """A layout, or the home of a navigation task."""

    @property
    def parts(self) -> Sequence[Part]: ...

    @property
    def bodies(self) -> Sequence[Body]: ...

    @property
    def furniture(self) -> Sequence[Furniture]: ...


def furniture_names(home: Furnished) -> list[str]:
    """Of each piece, `chair_1` where there are several of a kind, then of each drawer and door."""
    return numbered(piece.kind for piece in home.furniture) + [body.name for body in home.bodies]


def numbered(kinds: Iterable[str]) -> list[str]:
    """The kinds, `chair_0` and `chair_1` where there are several of one."""
    kinds, seen = list(kinds), Counter[str]()
    count, names = Counter(kinds), []
    for kind in kinds:
        names.append(f"{kind}_{seen[kind]}" if count[kind] > 1 else kind)
        seen[kind] += 1
    return names


def names_of(home: Furnished, objects: Sequence[str] = ()) -> dict[int, str]:
    """Number -> name: `robot/arm`, `building/wall`, `object/3/024_bowl`, `furniture/sofa`."""
    first = OBJECT + len(objects)
    return robot_and_objects(objects) | {first + k: f"furniture/{name}" for k, name in enumerate(furniture_names(home))
                                         if first + k <= MOST}


def robot_and_objects(objects: Sequence[str]) -> dict[int, str]:
    """The same without furniture."""
    names = {NOTHING: "nothing", **{n: f"robot/{name}" for name, n in ROBOT.items()}}
    names |= {n: f"building/{name}" for name, n in BUILDING.items()}
    return names | {OBJECT + i: f"object/{i}/{name}" for i, name in enumerate(objects)}


def numbers_of(home: Furnished, objects: int = 0) -> tuple[list[int], list[int]]:
    """The number of each part that stands still and of each drawer and door, in a home with so many objects."""
    first = OBJECT + objects
    of_piece = {part: first + k for k, piece in enumerate(home.furniture) for part in piece.parts}
    still = [of_piece.get(i) or _of_building(part, home.parts, i) for i, part in enumerate(home.parts)]
    moving = [first + len(home.furniture) + k for k in range(len(home.bodies))]
    return [[n if n <= MOST else NOTHING for n in numbers] for numbers in (still, moving)]


def _of_building(part: Part, parts: Sequence[Part], i: int) -> int:
    """Of a wall, a window, the front door; frames without a name belong to what follows them."""
    name = part.name or (parts[i + 1].name if i + 1 < len(parts) else "")
    return BUILDING[next((kind for begin, kind in _OF_PART.items() if name.startswith(begin)), "wall")]
