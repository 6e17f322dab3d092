"""What is inside a drawer or the fridge."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Protocol

from rearrange.home.apartments.layouts import Layout
from rearrange.home.geometry import to_frame

Box = tuple[tuple[float, float, float], tuple[float, float, float]]  # low and high corner

OPEN_M_OR_RAD = {"drawer": 0.5, "fridge": 1.5}  # how far episodes open what they open
LEAST_OPEN_M_OR_RAD = {kind: 0.9 * value for kind, value in OPEN_M_OR_RAD.items()}  # how far they must open to be used
_SLACK_M = 0.02
_ROUNDING = 1e-6  # m or rad: files keep limits such as 0.45 in single precision


def opened_to(layout: Layout, joint: str) -> float:
    """How far episodes open a drawer (m) or door (rad): as far as it goes, at most `OPEN_M_OR_RAD`."""
    body = next(body for body in layout.bodies if body.name == joint)
    return min(OPEN_M_OR_RAD[kind_of(joint)], body.range_m_or_rad[1])


class Openings(Protocol):
    """How far drawers and doors of a home stand open: a simulator, or what is believed of one."""

    home: Any  # with its layout

    def joint_position(self, name: str) -> float: ...


def kind_of(joint: str) -> str:
    """"drawer" or "fridge"."""
    return joint.split("_")[0]


def opens_far(joint: str, most_m_or_rad: float) -> bool:
    """Whether skills can use a drawer or door that opens so far."""
    return most_m_or_rad > LEAST_OPEN_M_OR_RAD[kind_of(joint)] - _ROUNDING


def inside(sim: Openings, point: Sequence[float], joint: str, opened: bool = False) -> bool:
    """Whether a world point is inside the drawer, where it stands now, or inside the fridge, open or not. `opened`:
    as if the drawer stood as far out as episodes open it.
    """
    layout = sim.home.layout
    opening = opened_to(layout, joint) if opened else sim.joint_position(joint)
    return inside_at(layout, point, joint, opening)


def inside_at(layout: Layout, point: Sequence[float], joint: str, opening: float) -> bool:
    """The same for a drawer that stands at `opening` (m); for the fridge its door does not matter."""
    if kind_of(joint) == "drawer":
        body = next(body for body in layout.bodies if body.name == joint)
        (x, y), z = to_frame(point[0], point[1], body.pose(opening)), point[2] - body.position_m[2]
    else:
        (x, y), z = to_frame(point[0], point[1], layout.fridge_pose), point[2]
    low, high = _box(layout, joint)
    return all(low[i] <= value <= high[i] for i, value in enumerate((x, y, z)))


def slid(sim: Openings, point: Sequence[float], joint: str) -> tuple[float, float, float]:
    """Where a point of a drawer is now, which is given where it is once the drawer stands as far out as episodes open
    it (world frame).
    """
    layout = sim.home.layout
    body = next(body for body in layout.bodies if body.name == joint)
    there, here = body.pose(opened_to(layout, joint)), body.pose(sim.joint_position(joint))
    return point[0] + here[0] - there[0], point[1] + here[1] - there[1], point[2]


@lru_cache(maxsize=1024)
def _box(layout: Layout, joint: str) -> Box:
    """Inside of a drawer in the frame of its body, or of the fridge compartment in the frame of the fridge."""
    if kind_of(joint) == "drawer":
        body = next(body for body in layout.bodies if body.name == joint)
        parts = [part for part in body.parts if not part.name]  # without the handle
        low, high = zip(*((c - h, c + h) for part in parts for c, h in zip(part.center_m, part.half_extent_m)))
        return ((min(low[0::3]), min(low[1::3]), min(low[2::3])), (max(high[0::3]), max(high[1::3]), max(high[2::3])))
    boards = [receptacle for receptacle in layout.receptacles if receptacle.link == joint]
    lows, highs = [], []
    for board in boards:
        x, y = to_frame(board.center_m[0], board.center_m[1], layout.fridge_pose)
        half_x, half_y = board.half_extents_m
        lows.append((x - half_x, y - half_y, board.center_m[2]))
        highs.append((x + half_x, y + half_y, board.center_m[2] + board.clearance_m))
    low, high = (min(values) for values in zip(*lows)), (max(values) for values in zip(*highs))
    return tuple(value - _SLACK_M for value in low), tuple(value + _SLACK_M for value in high)
