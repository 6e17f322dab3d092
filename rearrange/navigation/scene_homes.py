"""Scenes of a Habitat data set, or homes in MJCF, as homes of navigation tasks: read without Habitat, and without physics.

Floor, walls and furniture are those that the embedded simulator finds; everything that opens is shut. A scene's frame: z up, metres,
the low corner of its floor at 0.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from rearrange.errors import UserError
from rearrange.mujoco_scenes.floor import blocked_cells, floor_of
from rearrange.mujoco_scenes.pieces import STILL
from rearrange.mujoco_scenes.scene import KEPT_SCENES, name_of, pieces_of
from rearrange.navigation.distances import ways
from rearrange.navigation.episodes import SHORTEST_M
from rearrange.navigation.homes import Building, whole_floor
from rearrange.navigation.homes_in_use import Field, Home
from rearrange.navigation.shapes import NO_SHAPES, Meshes
from rearrange.pictures.meshes import mesh_table


@lru_cache(maxsize=KEPT_SCENES)
def load_scene_home(dataset: Path, name: str, radius_m: float, height_m: float) -> Home:
    """A scene by its name in the data set, for an agent of a size. UserError for a file that is not as it should be, and for a scene in
    which such an agent can go nowhere.
    """
    pieces = pieces_of(dataset, name)
    height, low, high = floor_of(pieces, name)
    free = whole_floor(~blocked_cells(pieces, height, low, high, radius_m, height_m, shut=True))
    cells = np.argwhere(free).astype(np.int32)
    building = Building(name_of(dataset, name), tuple((high - low).tolist()), (), (), (), ())
    shift = np.array((*low, height))
    frames = np.array([np.eye(4), *(part.frame for part in pieces.parts)])
    frames[1:, :3, 3] -= shift
    meshes = [replace(mesh, row=0, vertices=mesh.vertices - shift) if mesh.row == STILL else replace(mesh, row=mesh.row + 1)
              for mesh in pieces.meshes]
    drawn = Meshes(mesh_table(meshes), frames[:, :3, 3].copy(), frames[:, :3, :3].reshape(-1, 9).copy())
    home = Home(building, NO_SHAPES, free, ways(free), cells, drawn)
    if not len(cells) or Field(home, cells[:1]).distance_m[free].max() < SHORTEST_M:
        raise UserError(f"scene {name} of {dataset} has no way of {SHORTEST_M:g} m for an agent of radius {radius_m:g} m.")
    return home
