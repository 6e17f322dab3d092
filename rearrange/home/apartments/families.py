"""The six families of flats. A family fixes the floor plan, the choice of furniture and where it goes.

0 quarters    a living room and a bedroom beside a kitchen and a dining room, walls between all four
1 open plan   living, dining and kitchen in one L-shaped space around a bedroom
2 corridor    rooms on both sides of a corridor
3 studio      one long space with half walls and a sleeping alcove
4 two wings   a dining hall across the middle, kitchen and bedroom at one side, the living room at the other
5 ring        rooms all around a closed core, so that there are two ways from one to another

Each draws its plan looking north with the kitchen where the comment says; `draw` then mirrors and turns it at random.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rearrange.home.apartments import furnishing
from rearrange.home.apartments.catalogue import Catalogue
from rearrange.home.apartments.floor_plan import WALL_HALF_M, FloorPlan
from rearrange.home.apartments.furnishing import Furnishing
from rearrange.home.apartments.furniture import plant, round_table
from rearrange.home.apartments.palettes import PALETTES
from rearrange.home.apartments.parts import Piece

T = WALL_HALF_M


def _door(rng: np.random.Generator, low: float, high: float,
          width_m: tuple[float, float] = (1.0, 1.25)) -> tuple[float, float]:
    """A doorway (centre, width) somewhere in [low, high]."""
    width = rng.uniform(*width_m)
    return rng.uniform(low + width / 2 + 0.05, high - width / 2 - 0.05), width


def _coffee_table(home: Furnishing, *sizes_and_style) -> Piece:
    return home.catalogue.table(home.rng, home.palette, "coffee_table", "coffee_table", *sizes_and_style)


def _plan_quarters(rng: np.random.Generator) -> FloorPlan:
    x, y = rng.uniform(9.2, 10.8), rng.uniform(7.2, 8.4)
    middle = x * rng.uniform(0.47, 0.53)
    left, right = y * rng.uniform(0.50, 0.58), y * rng.uniform(0.46, 0.54)
    plan = FloorPlan((x, y))
    plan.wall_y(middle, 0, y, (_door(rng, 0.2, min(left, right) - 0.2), _door(rng, max(left, right) + 0.2, y - 0.9)))
    plan.wall_x(left, 0, middle - T, (_door(rng, 0.3, middle - 0.8),))
    plan.wall_x(right, middle + T, x, (_door(rng, middle + 0.6, x - 0.6, (1.3, 1.9)),))
    plan.room("living", 0, 0, middle - T, left - T)
    plan.room("bedroom", 0, left + T, middle - T, y)
    plan.room("dining", middle + T, 0, x, right - T)
    plan.room("kitchen", middle + T, right + T, x, y)
    return plan


def _furnish_quarters(home: Furnishing) -> None:
    rng, palette, pieces = home.rng, home.palette, home.catalogue
    sides = {"row": ("north",), "counter": ("north",), "fridge": ("east", "west", "north")}
    furnishing.kitchen(home, "kitchen", ("DDSC", "DSDC", "CDSD", "DDSD"), sides)
    furnishing.dining_group(home, "dining", pieces.table(rng, palette, "dining_table"), (2, 5))
    coffee = _coffee_table(home, (0.8, 1.1), (0.5, 0.65), (0.40, 0.48))
    furnishing.lounge(home, "living", ("south", "west"), ("north", "east"), coffee)
    home.against(pieces.bookcase(rng, palette), "living", ("west", "south", "north", "east"), 0.6)
    furnishing.bedroom(home, "bedroom", ("west", "north"), ("east", "north", "south"))
    home.optional(pieces.sideboard(rng, palette), "dining", ("south", "east"), 0.5)
    home.optional(pieces.armchair(rng, palette), "living", ("east", "west", "north"), 0.5)
    home.optional(plant(rng, palette), "living", ("west", "south"), 0.6, 1.0)


def _plan_open(rng: np.random.Generator) -> FloorPlan:
    x, y = rng.uniform(8.6, 10.2), rng.uniform(7.4, 8.8)
    bed_x, bed_y = rng.uniform(3.0, 3.7), rng.uniform(3.1, 3.7)
    plan = FloorPlan((x, y))
    door_in_side = rng.random() < 0.5
    plan.wall_y(bed_x, y - bed_y + T, y, (_door(rng, y - bed_y + 0.3, y - 0.6),) if door_in_side else ())
    plan.wall_x(y - bed_y, 0, bed_x + T, () if door_in_side else (_door(rng, 0.6, bed_x - 0.2),))
    plan.room("bedroom", 0, y - bed_y + T, bed_x - T, y)
    plan.room("kitchen", bed_x + T, y - rng.uniform(2.9, 3.4), x, y)
    plan.room("living", 0, 0, x * rng.uniform(0.50, 0.56), y - bed_y - T)
    plan.room("dining", plan.rooms["living"].high_x, 0, x, plan.rooms["kitchen"].low_y + 0.3)
    return plan


def _furnish_open(home: Furnishing) -> None:
    rng, palette, pieces = home.rng, home.palette, home.catalogue
    sides = {"row": ("north",), "counter": ("north", "east"), "fridge": ("east", "west", "north")}
    furnishing.kitchen(home, "kitchen", ("DDSC", "DDSD", "CDSDC", "DSDC", "DDSDC"), sides)
    style = ("legs", "panels")[rng.integers(2)]
    dining = pieces.table(rng, palette, "dining_table", length_m=(1.3, 1.7), style=style)
    furnishing.dining_group(home, "dining", dining, (2, 5), 0.5)
    coffee = _coffee_table(home, (0.7, 1.0), (0.5, 0.7), (0.40, 0.46), "panels")
    furnishing.lounge(home, "living", ("west",), ("north", "south"), coffee)
    home.against(pieces.low_shelf(rng, palette), "living", ("south", "north"), 0.4)
    furnishing.bedroom(home, "bedroom", ("west", "north"), ("north", "east", "south"))
    home.optional(pieces.bookcase(rng, palette, "tall_bookcase"), "dining", ("east", "south"), 0.4)
    home.optional(plant(rng, palette), "dining", ("east", "south"), 0.6, 1.0)


def _plan_corridor(rng: np.random.Generator) -> FloorPlan:
    x, y = rng.uniform(9.6, 11.0), rng.uniform(7.8, 8.8)
    width = rng.uniform(1.25, 1.5)
    low = (y - width) * rng.uniform(0.46, 0.52)
    high = low + width
    split_high, split_low = x * rng.uniform(0.58, 0.64), x * rng.uniform(0.54, 0.62)
    plan = FloorPlan((x, y))
    plan.wall_x(high, 0, x, (_door(rng, 0.4, split_high - 0.4, (1.2, 1.8)), _door(rng, split_high + 0.3, x - 0.4)))
    plan.wall_x(low, 0, x, (_door(rng, 0.4, split_low - 0.4, (1.2, 1.8)), _door(rng, split_low + 0.3, x - 0.4)))
    plan.wall_y(split_high, high + T, y)
    plan.wall_y(split_low, 0, low - T)
    plan.room("corridor", 0, low + T, x, high - T)
    plan.room("kitchen", 0, high + T, split_high - T, y)
    plan.room("bedroom", split_high + T, high + T, x, y)
    plan.room("living", 0, 0, split_low - T, low - T)
    plan.room("dining", split_low + T, 0, x, low - T)
    return plan


def _furnish_corridor(home: Furnishing) -> None:
    rng, palette, pieces = home.rng, home.palette, home.catalogue
    furnishing.kitchen_corner(home, "kitchen", ("north",), ("west", "east", "north"),
                              ("CDSD", "DSDC", "DDSDC", "CDSDC"), rng.random() < 0.5)
    dining = pieces.table(rng, palette, "dining_table", length_m=(1.0, 1.4), style="pedestal")
    furnishing.dining_group(home, "dining", dining, (2, 4), 0.4)
    coffee = _coffee_table(home, (0.7, 1.0), (0.5, 0.65), (0.40, 0.48))
    furnishing.lounge(home, "living", ("south", "west", "east"), ("north", "south", "west", "east"), coffee)
    home.against(pieces.bookcase(rng, palette), "living", ("north", "west", "east", "south"), 0.6)
    furnishing.bedroom(home, "bedroom", ("north", "east"), ("west", "east", "south"))
    home.optional(pieces.sideboard(rng, palette), "dining", ("south", "east", "west"), 0.6)
    home.optional(pieces.armchair(rng, palette), "living", ("west", "east"), 0.5)
    home.optional(plant(rng, palette), "corridor", ("west", "east"), 0.5, 1.0)


def _plan_studio(rng: np.random.Generator) -> FloorPlan:
    x, y = rng.uniform(9.2, 10.8), rng.uniform(7.0, 7.8)
    first, second = x * rng.uniform(0.36, 0.42), x * rng.uniform(0.60, 0.66)
    bed_y = rng.uniform(2.8, 3.2)
    plan = FloorPlan((x, y))
    plan.wall_y(first, y - rng.uniform(1.4, 2.4), y)
    plan.wall_y(second, 0, bed_y - T)
    plan.wall_x(bed_y, second - T, x, (_door(rng, second + 0.5, x - 0.4, (1.4, 1.9)),))
    plan.room("kitchen", 0, y * rng.uniform(0.48, 0.54), first - T, y)
    plan.room("dining", 0, 0, first, plan.rooms["kitchen"].low_y + 0.3)
    plan.room("living", first + T, bed_y, x, y)
    plan.room("bedroom", second + T, 0, x, bed_y - T)
    plan.room("hall", first, 0, second - T, bed_y)
    return plan


def _furnish_studio(home: Furnishing) -> None:
    rng, palette, pieces = home.rng, home.palette, home.catalogue
    furnishing.kitchen_row(home, "kitchen", ("north", "west"), ("DSDC", "CDSD", "DDSC"), rng.random() < 0.7)
    if rng.random() < 0.5:
        dining = round_table(rng, palette, "dining_table")
    else:
        dining = pieces.table(rng, palette, "dining_table", length_m=(1.0, 1.5), style="panels")
    furnishing.dining_group(home, "dining", dining, (2, 5), 0.5)
    coffee = _coffee_table(home, (0.6, 0.9), (0.55, 0.75), (0.42, 0.5), "pedestal")
    furnishing.lounge(home, "living", ("north", "east"), ("south", "east", "west", "north"), coffee)
    home.against(pieces.low_shelf(rng, palette), "hall", ("east", "south"), 0.5)
    furnishing.bedroom(home, "bedroom", ("south", "east"), ("east", "west", "south"))
    home.optional(pieces.armchair(rng, palette), "living", ("east", "south", "west"), 0.7)
    home.optional(pieces.sideboard(rng, palette), "living", ("north", "east", "south"), 0.4)


def _plan_wings(rng: np.random.Generator) -> FloorPlan:
    x, y = rng.uniform(10.0, 11.0), rng.uniform(7.2, 8.4)
    west, east = x * rng.uniform(0.34, 0.38), x * rng.uniform(0.64, 0.68)
    split = y * rng.uniform(0.44, 0.50)
    plan = FloorPlan((x, y))
    plan.wall_y(west, 0, y, (_door(rng, 0.3, split - 0.4), _door(rng, split + 0.3, y - 1.3, (1.2, 1.7))))
    plan.wall_x(split, 0, west - T)
    plan.wall_y(east, 0, y, (_door(rng, y * 0.25, y * 0.75, (1.4, 2.2)),))
    plan.room("bedroom", 0, 0, west - T, split - T)
    plan.room("kitchen", 0, split + T, west - T, y)
    plan.room("dining", west + T, 0, east - T, y)
    plan.room("living", east + T, 0, x, y)
    return plan


def _furnish_wings(home: Furnishing) -> None:
    rng, palette, pieces = home.rng, home.palette, home.catalogue
    furnishing.kitchen_corner(home, "kitchen", ("west", "north"), ("north", "south", "west"),
                              ("DDSC", "DSDC", "CDSD", "DSD"), rng.random() < 0.6)
    if rng.random() < 0.4:
        dining = round_table(rng, palette, "dining_table")
    else:
        dining = pieces.table(rng, palette, "dining_table", length_m=(1.2, 1.8), depth_m=(0.8, 1.0), style="pedestal")
    furnishing.dining_group(home, "dining", dining, (3, 5), 0.7)
    coffee = _coffee_table(home, (0.8, 1.0), (0.55, 0.7), (0.38, 0.46), "panels")
    furnishing.lounge(home, "living", ("east", "north", "south"), ("west", "north", "south"), coffee)
    case = (pieces.bookcase, pieces.low_shelf)[rng.integers(2)](rng, palette)
    home.against(case, "dining", ("north", "south", "east"), 0.5)
    furnishing.bedroom(home, "bedroom", ("south", "west"), ("north", "west", "east"))
    home.optional(pieces.sideboard(rng, palette), "dining", ("north", "south", "east", "west"), 0.6)
    home.optional(pieces.armchair(rng, palette), "living", ("east", "north", "south"), 0.6)
    home.optional(plant(rng, palette), "dining", ("south", "north"), 0.6, 1.0)


def _plan_ring(rng: np.random.Generator) -> FloorPlan:
    x, y = rng.uniform(9.8, 11.0), rng.uniform(7.6, 8.6)
    west, east = x * rng.uniform(0.40, 0.43), x * rng.uniform(0.57, 0.60)
    south, north = y * rng.uniform(0.32, 0.36), y * rng.uniform(0.54, 0.58)
    plan = FloorPlan((x, y))
    plan.wall_x(south, west - T, east + T)  # the core: a bathroom, shut
    plan.wall_y(west, south + T, north - T)
    plan.wall_y(east, south + T, north - T)
    plan.wall_x(north, 0, east + T, (_door(rng, 0.5, west - 0.5),))
    plan.wall_y(east, north + T, y, (_door(rng, north + 0.3, y - 0.5),))
    plan.wall_x(north, east + T, x, (_door(rng, east + 0.4, x - 0.4, (1.4, 2.0)),))
    plan.room("bedroom", 0, north + T, west + T, y)
    plan.room("hall", west + T, north + T, east - T, y)
    plan.room("kitchen", east + T, north + T, x, y)
    plan.room("dining", east + T, 0, x, north - T)
    plan.room("living", 0, 0, west - T, north - T)
    return plan


def _furnish_ring(home: Furnishing) -> None:
    rng, palette, pieces = home.rng, home.palette, home.catalogue
    sides = {"row": ("north",), "counter": ("north", "east"), "fridge": ("east", "north")}
    furnishing.kitchen(home, "kitchen", ("DDSC", "DSDC", "CDSD"), sides)
    style = ("legs", "pedestal")[rng.integers(2)]
    dining = pieces.table(rng, palette, "dining_table", length_m=(1.1, 1.5), style=style)
    furnishing.dining_group(home, "dining", dining, (2, 5), 0.5)
    coffee = _coffee_table(home, (0.7, 1.0), (0.5, 0.65), (0.40, 0.48))
    furnishing.lounge(home, "living", ("west", "south"), ("north", "south", "west"), coffee)
    home.against(pieces.bookcase(rng, palette), "dining", ("east", "south"), 0.5)
    furnishing.bedroom(home, "bedroom", ("north", "west"), ("west", "south", "north"))
    home.optional(pieces.armchair(rng, palette), "living", ("west", "south", "north"), 0.6)
    home.optional(pieces.sideboard(rng, palette), "dining", ("south", "east"), 0.5)
    home.optional(plant(rng, palette), "hall", ("north",), 0.6, 1.0)


FAMILIES: tuple[tuple[Callable[[np.random.Generator], FloorPlan], Callable[[Furnishing], None]], ...] = (
    (_plan_quarters, _furnish_quarters),
    (_plan_open, _furnish_open),
    (_plan_corridor, _furnish_corridor),
    (_plan_studio, _furnish_studio),
    (_plan_wings, _furnish_wings),
    (_plan_ring, _furnish_ring),
)


def draw(family: int, rng: np.random.Generator, catalogue: Catalogue) -> Furnishing:
    """One furnished flat of a family; raises `DoesNotFit` when this draw does not work out."""
    make_plan, furnish = FAMILIES[family]
    mirror_x, mirror_y, swap = (bool(b) for b in rng.integers(2, size=3))
    plan = make_plan(rng).turned(mirror_x, mirror_y, swap)
    if catalogue.largest > 1.0:
        plan = plan.scaled(*rng.uniform(1.0, catalogue.largest, 2).tolist())
    home = Furnishing(plan, PALETTES[family], rng, catalogue)
    furnish(home)
    return home
