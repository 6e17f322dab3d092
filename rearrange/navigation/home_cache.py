"""Homes with all that an environment needs of them. They are kept: drawing a flat takes 8 ms, a large home more."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from rearrange.home.apartments.floor_grid import CELL_M, interpolate
from rearrange.navigation.cylinder import turns_to_goal
from rearrange.navigation.distances import distances, next_corner, shortest_path, ways
from rearrange.navigation.homes import Building, free_floor, make_building
from rearrange.navigation.shapes import Meshes, Shapes, shapes_of

KEPT_HOMES, KEPT_FIELDS = 1024, 64


@dataclass(frozen=True, eq=False)
class Home:
    """A home for one size of agent. Cells: (cells in x, cells in y); points in metres in the home's frame."""

    building: Building
    shapes: Shapes
    free: np.ndarray  # bool: where the agent can be
    ways: np.ndarray  # uint16: the steps of each cell
    cells: np.ndarray  # (n, 2) int32: the free ones
    meshes: Meshes | None = None  # what is drawn beside the shapes
    origin_m: tuple[float, float, float] = (0.0, 0.0, 0.0)  # of its frame in the frame of its files

    def center(self, cell: int) -> tuple[float, float]:
        """The middle of a free cell, by its number."""
        i, j = self.cells[cell]
        return (i + 0.5) * CELL_M, (j + 0.5) * CELL_M

    def is_free(self, x: float, y: float) -> bool:
        """Whether the agent can be at a point."""
        i, j = int(x // CELL_M), int(y // CELL_M)
        return 0 <= i < self.free.shape[0] and 0 <= j < self.free.shape[1] and bool(self.free[i, j])

    def nearest(self, x: float, y: float) -> tuple[float, float]:
        """The point itself if the agent can be there, else the middle of the nearest free cell.

        Physics lets a robot a little nearer to things than the cells.
        """
        if self.is_free(x, y):
            return x, y
        i, j = x / CELL_M - 0.5, y / CELL_M - 0.5
        return self.center(int(((self.cells - (i, j)) ** 2).sum(axis=1).argmin()))


@lru_cache(maxsize=KEPT_HOMES)
def load_home(name: str, radius_m: float, height_m: float) -> Home:
    """The home of a name such as "train/small/17"; the last ones are kept."""
    building = make_building(name)
    free = free_floor(building, radius_m, height_m)
    return Home(building, shapes_of(building), free, ways(free), np.argwhere(free).astype(np.int32))


class Field:
    """Metres to the nearest of some free cells (n, 2), from everywhere."""

    def __init__(self, home: Home, goals: np.ndarray) -> None:
        self._home, self.distance_m = home, distances(home.ways, goals)

    def at(self, x: float, y: float) -> float:
        """From a point, interpolated; from one among blocked cells by the nearest free one."""
        found = float(interpolate(self.distance_m, x, y, CELL_M))
        if math.isfinite(found):
            return found
        near = self._home.nearest(x, y)
        return float(interpolate(self.distance_m, *near, CELL_M)) + math.dist(near, (x, y))

    def shortest(self, x: float, y: float) -> np.ndarray:
        """The shortest way from a point to the nearest goal: corners (n, 2)."""
        return shortest_path(self.distance_m, self._home.free, x, y)

    def turns(self, x: float, y: float, yaw: float, turn_rad: float, forward_m: float, sliding: bool) -> int:
        """How many turns, to the left, come before the next step forward on the shortest way."""
        x, y = self._home.nearest(x, y)
        free, corner = self._home.free, next_corner(self.distance_m, self._home.free, x, y)
        return turns_to_goal(free, self.distance_m, CELL_M, x, y, yaw, corner, turn_rad, forward_m, sliding)


@lru_cache(maxsize=KEPT_FIELDS)
def field_to(home: Home, i: int, j: int) -> Field:
    """The distances to one cell; the last ones are kept."""
    return Field(home, np.array([[i, j]]))
