"""The floor of an external scene, from a navigation mesh: where a robot can stand, and how high the floor is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from rearrange.apartments.floor_grid import CELL_M, HEAD_HEIGHT_M
from rearrange.errors import UserError
from rearrange.robot.fetch import ROBOT_RADIUS_M

_MESH_CELL_M = 0.025  # the mesh grows obstacles by whole cells
_CLIMB_M = 0.05  # rugs, sills
_SHARE = 0.2  # of the largest island: what is smaller is no floor, but the top of some furniture
_SAME_M = 0.1  # islands whose heights differ by less belong to one floor
_SAMPLES = 40


@dataclass(frozen=True, eq=False)
class Floor:
    """origin_m: Habitat's point, z up, that is the corner of our grid, on the floor. blocked: see `FloorGrid`."""

    origin_m: np.ndarray
    blocked: np.ndarray


def find_floor(world: Any) -> Floor:
    """Of the loaded scene with its joints closed. A roof is an island of the mesh, too: the floor is the lowest large one."""
    finder = _navmesh(world)
    areas = [finder.island_area(i) for i in range(finder.num_islands)]
    heights = [_height(world, finder, i) for i in range(finder.num_islands)]
    large = [i for i, area in enumerate(areas) if area > _SHARE * max(areas, default=0.0)]
    if not large:
        raise UserError(f"scene {world.scene} has no floor on which a robot could stand.")
    height, on_mesh = min(heights[i] for i in large)
    low, high = (np.array(bound) for bound in finder.get_bounds())
    view = np.array(finder.get_topdown_view(CELL_M, on_mesh, _SAME_M))  # (along z, along x), from the low corner
    last_z = low[2] + (view.shape[0] - 1) * CELL_M
    return Floor(np.array((low[0] - CELL_M / 2, -last_z - CELL_M / 2, height)), np.ascontiguousarray(~view[::-1].T))


def _navmesh(world: Any) -> Any:
    """Of a robot as large as ours, with everything that belongs to the scene in it."""
    settings = world.habitat.NavMeshSettings()
    settings.set_defaults()
    settings.cell_size, settings.cell_height = _MESH_CELL_M, _MESH_CELL_M
    settings.agent_radius, settings.agent_height, settings.agent_max_climb = ROBOT_RADIUS_M, HEAD_HEIGHT_M, _CLIMB_M
    settings.include_static_objects = True
    finder = world.habitat.PathFinder()
    with _standing_still(world):
        if not world.simulator.recompute_navmesh(finder, settings):
            raise UserError(f"Habitat finds no floor in scene {world.scene}.")
    return finder


@contextmanager
def _standing_still(world: Any) -> Iterator[None]:
    """Habitat puts only what is static into a mesh."""
    things = [*world.bodies.values(), *world.furniture()]
    before = [thing.motion_type for thing in things]
    for thing in things:
        thing.motion_type = world.habitat.physics.MotionType.STATIC
    try:
        yield
    finally:
        for thing, motion in zip(things, before):
            thing.motion_type = motion


def _height(world: Any, finder: Any, island: int) -> tuple[float, float]:
    """Of the floor under an island (m), and of the mesh itself, which lies a little above."""
    points = [np.array(finder.get_random_navigable_point(10, island)) for _ in range(_SAMPLES)]
    points = [point for point in points if np.isfinite(point).all()]
    if not points:
        return np.inf, np.inf
    hits = [world.below((*point[:1], point[1] + 0.3, point[2]), 1.0) for point in points]
    found = [hit for hit in hits if hit is not None]
    on_mesh = float(np.median([point[1] for point in points]))
    return float(np.median(found)) if found else on_mesh, on_mesh
