"""Homes of all splits (a thousand of them in the slow test): nothing overlaps, everything moves freely, everything can
be reached.
"""

import itertools
import math

import numpy as np
import pytest

from rearrange.home import geometry
from rearrange.home.apartments.floor_grid import ROBOT_RADIUS_M, floor_grid
from rearrange.home.apartments.layouts import SPLIT_FAMILIES, Layout, make_layout
from rearrange.home.apartments.parts import Part, box
from rearrange.home.errors import UserError
from rearrange.home.geometry import compose, from_frame, rectangles_overlap, rotate, to_frame

KINDS = {"table", "coffee_table", "counter", "sink", "chair", "sofa", "tv_stand", "shelf", "fridge", "drawer"}
FEW = {"train": 80, "val": 40, "test": 40, "unseen": 40}
THOUSAND = {"train": 400, "val": 200, "test": 200, "unseen": 200}
FEW_WIDE, THOUSAND_WIDE = ({f"wide/{split}": count // few for split, count in counts.items()}
                            for counts, few in ((FEW, 2), (THOUSAND, 1)))
DEPTH_M = 0.001
"""Two parts overlap when they share more than this in every direction."""


@pytest.mark.parametrize("counts", [FEW, FEW_WIDE, *(pytest.param(counts, marks=pytest.mark.slow)
                                                     for counts in (THOUSAND, THOUSAND_WIDE))],
                         ids=["few", "few_wide", "thousand", "thousand_wide"])
def test_layouts_are_sound(counts):
    """Every check on every layout; the first failure names the layout."""
    for split, count in counts.items():
        for index in range(count):
            layout = make_layout(split, index)
            for check in (check_contents, check_nothing_overlaps, check_moving_parts_are_free,
                          check_receptacles_hold_things, check_robot_reaches_everything):
                problem = check(layout)
                assert not problem, f"{layout.name}: {problem}"


def check_contents(layout: Layout) -> str:
    kinds = [r.kind for r in layout.receptacles]
    names = [r.name for r in layout.receptacles]
    if set(kinds) != KINDS:
        return f"kinds {sorted(KINDS ^ set(kinds))} missing or unknown"
    if len(set(names)) != len(names):
        return "a receptacle name twice"
    if kinds.count("drawer") < 4 or kinds.count("chair") < 2 or kinds.count("table") < 1 or kinds.count("counter") != 2:
        return f"too few drawers, chairs, tables or counters: {sorted(kinds)}"
    drawers = sorted(b.name for b in layout.bodies if b.joint == "slide")
    in_kitchen = [name for name in drawers if "sideboard" not in name]
    doors = [b.name for b in layout.bodies if b.joint == "hinge"]
    if in_kitchen != [f"drawer_{k}" for k in range(len(in_kitchen))] or doors != ["fridge_door"]:
        return f"bodies {[b.name for b in layout.bodies]}"
    if not (7.0 <= min(layout.size_m) and max(layout.size_m) <= (16.0 if layout.name.startswith("wide/") else 11.0)):
        return f"size {layout.size_m}"
    is_wide = layout.name.startswith("wide/")
    if drawers != in_kitchen and not is_wide:
        return "drawers outside the kitchen"
    parts = len(layout.parts) + sum(len(b.parts) for b in layout.bodies)
    if not is_wide and not 100 <= parts <= 165 and layout.family != 3:
        return "number of parts"
    heights = [r.center_m[2] for r in layout.receptacles if r.parent is None]
    low, high = (0.1, 1.31) if is_wide else (0.37, 1.0)
    return "" if low <= min(heights) and max(heights) <= high else f"heights {min(heights)} to {max(heights)}"


class Solids:
    """Parts with their boxes as one array: x, y, z, half x, half y, half z."""

    def __init__(self, parts):
        self.parts = list(parts)
        self.boxes = np.array([(*p.center_m, *p.half_extent_m) for p in self.parts])


def still_parts(layout: Layout) -> Solids:
    return Solids(p for p in layout.parts if p.solid)


def all_parts(layout: Layout) -> Solids:
    """Everything solid, drawers and door shut."""
    return Solids([p for p in layout.parts if p.solid] + [p for b in layout.bodies for p in b.parts_at()])


def check_nothing_overlaps(layout: Layout) -> str:
    """No two solid parts, moving ones shut, share space; all furniture is inside the outer walls."""
    solid = all_parts(layout)
    for a, b in overlapping_pairs(solid, solid):
        return f"{a} overlaps {b}"
    for part in solid.parts:
        x, y = part.center_m[:2]
        if not part.name.startswith("wall_") and not (0 < x < layout.size_m[0] and 0 < y < layout.size_m[1]):
            return f"{part} outside"
    return ""


def check_moving_parts_are_free(layout: Layout) -> str:
    """Drawers slide and the door swings through their whole range without touching what stands still."""
    still = still_parts(layout)
    for body in layout.bodies:
        low, high = body.range_m_or_rad
        if high < (0.45 if body.joint == "slide" else 1.22) or low != 0:
            return f"range of {body.name}"
        openings = np.linspace(low, high, 5 if body.joint == "slide" else 13)
        for a, b in overlapping_pairs(Solids(p for opening in openings for p in body.parts_at(opening)), still):
            return f"{body.name}: {a} meets {b}"
    return ""


def check_receptacles_hold_things(layout: Layout) -> str:
    """Below the middle and corners of every receptacle lies a part's top, and the room above it is free."""
    solid = all_parts(layout)
    tops = solid.boxes[:, 2] + solid.boxes[:, 5]
    for r in layout.receptacles:
        body = next((b for b in layout.bodies if b.name == r.parent), None)
        pose = body.pose() if body else (0.0, 0.0, 0.0)
        x, y, yaw = compose(pose, (r.center_m[0], r.center_m[1], r.yaw_rad))
        z = r.center_m[2] + (body.position_m[2] if body else 0.0)
        level = [solid.parts[k] for k in np.flatnonzero(np.abs(tops - z) < 1e-6)]
        for u, v in itertools.product((-0.98, 0, 0.98), repeat=2):
            px, py = from_frame(u * r.half_extents_m[0], v * r.half_extents_m[1], (x, y, yaw))
            if not any(covers(p, px, py) for p in level):
                return f"nothing below {r.name} at {px:.3f}, {py:.3f}, {z:.3f}"
        free = min(r.clearance_m, 1.0) - 0.002
        if free < 0.1:
            return f"{r.name} has only {free:.2f} m above it"
        half = (0.98 * r.half_extents_m[0], 0.98 * r.half_extents_m[1], free / 2 - 0.002)
        space = Part("box", (x, y, z + 0.002 + free / 2), half, (0, 0, 0), yaw)
        for _, b in overlapping_pairs(Solids([space]), solid):
            return f"{b} stands in {r.name}"
    return ""


def check_robot_reaches_everything(layout: Layout) -> str:
    """The rooms are connected and before each listed side of each receptacle there is reachable floor."""
    grid = floor_grid(layout)
    points = grid.points_m
    for room in layout.rooms:
        inside = ((points > (room.low_x, room.low_y)) & (points < (room.high_x, room.high_y))).all(1)
        if inside.sum() < 100:
            return f"{room.name} offers {inside.sum()} reachable cells"
    for r in layout.receptacles:
        if not r.sides:
            return f"{r.name} has no side"
        pose = next((b.pose() for b in layout.bodies if b.name == r.parent), (0.0, 0.0, 0.0))
        x, y = from_frame(r.center_m[0], r.center_m[1], pose)
        for side in r.sides:
            nx, ny = rotate(*side, pose[2])
            delta = points - (x, y)
            ahead, across = delta @ (nx, ny) - r.half_along_m(side), np.abs(delta @ (-ny, nx))
            near, far = (0.79, 1.10) if r.parent else (ROBOT_RADIUS_M, 0.78)
            if not ((ahead > near) & (ahead < far) & (across < r.half_across_m(side) + 0.05)).any():
                return f"no place before {r.name} side {side}"
    return ""


def overlapping_pairs(first: Solids, second: Solids):
    """Pairs of parts (as turned boxes) that share more than `DEPTH_M` in every direction."""
    a, b = first.boxes, second.boxes
    reach = np.hypot(a[:, 3], a[:, 4])[:, None] + np.hypot(b[:, 3], b[:, 4])[None]
    near = (a[:, None, 0] - b[None, :, 0]) ** 2 + (a[:, None, 1] - b[None, :, 1]) ** 2 < reach**2
    near &= np.abs(a[:, None, 2] - b[None, :, 2]) < a[:, None, 5] + b[None, :, 5] - DEPTH_M
    for i, j in np.argwhere(np.triu(near, 1) if first is second else near):
        p, q = first.parts[i], second.parts[j]
        if rectangles_overlap(shrunk(p), shrunk(q)):
            yield p, q


def shrunk(part: Part):
    x, y, half_x, half_y, yaw = part.rectangle
    return x, y, half_x - DEPTH_M / 2, half_y - DEPTH_M / 2, yaw


def covers(part: Part, x: float, y: float) -> bool:
    u, v = to_frame(x, y, (*part.center_m[:2], part.yaw_rad))
    half = part.half_extent_m
    if part.shape == "cylinder":
        return math.hypot(u, v) <= half[0]
    return abs(u) <= half[0] and abs(v) <= half[1]


def test_the_checks_can_fail():
    """A box put into a fridge's swing, a table or a doorway is found."""
    layout = make_layout("train", 0)
    door = next(b for b in layout.bodies if b.joint == "hinge")
    x, y = from_frame(0.3, 0.0, layout.fridge_pose)
    x, y = x + math.cos(layout.fridge_pose[2]) * 0.4, y + math.sin(layout.fridge_pose[2]) * 0.4
    crate = box((x - 0.1, y - 0.1, 0.0), (x + 0.1, y + 0.1, 0.9), (0, 0, 0))
    blocked = Layout(**{**vars(layout), "parts": (*layout.parts, crate)})
    assert door.name in check_moving_parts_are_free(blocked)
    table = layout.receptacle("dining_table").center_m
    crate = box((table[0] - 0.1, table[1] - 0.1, table[2] - 0.3), (table[0] + 0.1, table[1] + 0.1, table[2] + 0.3),
                (0, 0, 0))
    blocked = Layout(**{**vars(layout), "parts": (*layout.parts, crate)})
    assert check_nothing_overlaps(blocked) and check_receptacles_hold_things(blocked)


def test_same_split_and_index_give_the_same_home():
    for split in SPLIT_FAMILIES:
        assert make_layout(split, 3) == make_layout(split, 3)
    homes = [make_layout("train", k) for k in range(0, 30, 3)]
    assert len({h.size_m for h in homes}) == len(homes), "one family repeats itself"


def test_families_are_held_out():
    for split, families in SPLIT_FAMILIES.items():
        assert {make_layout(split, k).family for k in range(6)} == set(families)
    used = list(itertools.chain(*SPLIT_FAMILIES.values()))
    assert sorted(used) == [0, 1, 2, 3, 4, 5]


def test_heights_of_receptacles_vary():
    for name, spread in (("dining_table", 0.04), ("coffee_table", 0.04), ("counter_left", 0.04), ("sofa", 0.03),
                         ("tv_stand", 0.08)):
        heights = [make_layout("train", k).receptacle(name).center_m[2] for k in range(40)]
        assert max(heights) - min(heights) > spread, name


@pytest.mark.parametrize("split, index, words", [("trian", 0, "train, val, test, unseen"), ("train", -1, "negative")])
def test_a_wrong_split_or_index_is_said_plainly(split, index, words):
    with pytest.raises(UserError, match=words):
        make_layout(split, index)


def test_geometry_round_trips():
    rng = np.random.default_rng(0)
    for _ in range(50):
        pose = tuple(rng.uniform(-4, 4, 3))
        assert np.allclose(to_frame(*from_frame(1.2, -0.7, pose), pose), (1.2, -0.7))
        quat = rng.normal(size=4)
        quat /= np.linalg.norm(quat) * (1 if quat[0] > 0 else -1)
        assert np.allclose(geometry.matrix_quat(geometry.quat_matrix(quat)), quat)
        assert np.allclose(geometry.quat_multiply(quat, geometry.quat_inverse(quat)), (1, 0, 0, 0))
        other = geometry.yaw_quat(pose[2])
        both = geometry.quat_matrix(quat) @ geometry.quat_matrix(other)
        assert np.allclose(geometry.quat_matrix(geometry.quat_multiply(quat, other)), both)
        assert math.isclose(geometry.quat_yaw(other), geometry.wrap_angle(pose[2]), abs_tol=1e-9)


def test_rectangles_overlap_agrees_with_sampling():
    rng = np.random.default_rng(1)
    grid = np.stack(np.meshgrid(*[np.linspace(-1, 1, 41)] * 2), -1).reshape(-1, 2)
    for _ in range(300):
        a, b = ((*rng.uniform(-1, 1, 2), *rng.uniform(0.1, 1, 2), rng.uniform(-4, 4)) for _ in range(2))
        points = np.array([from_frame(u * a[2], v * a[3], (a[0], a[1], a[4])) for u, v in grid])
        c, s = math.cos(b[4]), math.sin(b[4])
        local = (points - b[:2]) @ np.array([[c, -s], [s, c]])
        if (np.abs(local) < (b[2] - 1e-3, b[3] - 1e-3)).all(1).any():
            assert rectangles_overlap(a, b)
        elif not (np.abs(local) < (b[2] + 0.1, b[3] + 0.1)).all(1).any():
            assert not rectangles_overlap(a, b)
