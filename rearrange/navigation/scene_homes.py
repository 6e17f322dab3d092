"""Scenes of a Habitat data set, or homes in MJCF, as homes of navigation tasks: without Habitat, and without physics.

Floor, walls and furniture are those that the embedded simulator finds. Everything that opens is shut. Frame: z up,
metres, the low corner of the floor at 0.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from rearrange.home.errors import UserError
from rearrange.home.pictures.meshes import mesh_table
from rearrange.home.scene_files.scene_data import scene_name
from rearrange.home.simulation.scenes.floor import blocked_cells, floor_of
from rearrange.home.simulation.scenes.scene import KEPT_SCENES, data_set, name_of, pieces_of
from rearrange.home.simulation.scenes.scene_parts import STILL
from rearrange.navigation.distances import ways
from rearrange.navigation.episodes import SHORTEST_M, NavEpisode
from rearrange.navigation.habitat_episodes import HabitatEpisode, read_habitat_episodes
from rearrange.navigation.home_cache import Field, Home
from rearrange.navigation.homes import Building, whole_floor
from rearrange.navigation.shapes import NO_SHAPES, Meshes

BESIDE_M, LEVEL_M = 0.3, 0.5  # how far Habitat's places may be from our floor, beside it and in height


@lru_cache(maxsize=KEPT_SCENES)
def load_scene_home(dataset: Path, name: str, radius_m: float, height_m: float) -> Home:
    """A scene by its name in the data set, for an agent of a size.

    UserError for a damaged file, and for a scene in which such an agent can go nowhere.
    """
    pieces = pieces_of(dataset, name)
    if not len(pieces.floor):
        raise UserError(f"scene {name} of {dataset} has no floor: it needs a stage with one, or in MJCF a level "
                        "plane or something with \"floor\" in its name.")
    height, low, high = floor_of(pieces, name)
    free = whole_floor(~blocked_cells(pieces, height, low, high, radius_m, height_m, shut=True))
    cells = np.argwhere(free).astype(np.int32)
    building = Building(name_of(dataset, name), tuple((high - low).tolist()), (), (), (), ())
    shift = np.array((*low, height))
    frames = np.array([np.eye(4), *(part.frame for part in pieces.parts)])
    frames[1:, :3, 3] -= shift
    meshes = [replace(mesh, row=0, vertices=mesh.vertices - shift) if mesh.row == STILL
              else replace(mesh, row=mesh.row + 1) for mesh in pieces.meshes]
    drawn = Meshes(mesh_table(meshes), frames[:, :3, 3].copy(), frames[:, :3, :3].reshape(-1, 9).copy())
    home = Home(building, NO_SHAPES, free, ways(free), cells, drawn, tuple(shift.tolist()))
    if not len(cells) or Field(home, cells[:1]).distance_m[free].max() < SHORTEST_M:
        raise UserError(f"scene {name} of {dataset} has no way of {SHORTEST_M:g} m for an agent of radius "
                        f"{radius_m:g} m.")
    return home


def point_episodes(file: str, dataset: Path) -> list[HabitatEpisode]:
    """The episodes of a file of PointNav. UserError for one of ObjectNav, or in a scene that the data set lacks."""
    found, there = read_habitat_episodes(file), set(data_set(dataset).scenes)
    for episode in found:
        if episode.category is not None:
            raise UserError(f"{file} has episodes of ObjectNav, whose categories are not those of our furniture: "
                            "nav.episodes= takes PointNav's.")
        if scene_name(episode.scene) not in there:
            raise UserError(f"{file}: episode {episode.id} is in the scene {episode.scene}, and {dataset} has no "
                            f"{scene_name(episode.scene)!r}.")
    return found


def placed(episode: HabitatEpisode, home: Home) -> NavEpisode:
    """An episode in the frame of its scene, on the nearest free cells. UserError where they are not near."""
    places = []
    for what, (x, y, z) in (("start", episode.start), ("goal", episode.goals[0])):
        x, y, z = x - home.origin_m[0], y - home.origin_m[1], z - home.origin_m[2]
        near = home.nearest(x, y)
        beside_m = float(np.hypot(near[0] - x, near[1] - y))
        if beside_m > BESIDE_M or abs(z) > LEVEL_M:
            raise UserError(f"the {what} of episode {episode.id} is not on the floor of {home.building.name} on "
                            f"which the agent drives: it is {beside_m:.1f} m beside it and {z:.1f} m above.")
        places.append(near)
    name = home.building.name
    return NavEpisode(f"{name}/{episode.id}", name, (*places[0], episode.yaw_rad), places[1])
