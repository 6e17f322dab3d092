"""Objects of an episode that have a mesh of their own, as YCB's, instead of a primitive.

Their frame has its origin where Habitat has it, at the centre of mass that the file gives, or else in the middle of the
box around what is seen; its axes are the file's, turned as the world is, z up.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from rearrange.home.apartments.objects import OBJECTS
from rearrange.home.axis_conventions import AXES
from rearrange.home.errors import UserError
from rearrange.home.pictures.meshes import Mesh
from rearrange.home.scene_files.data_set import DataSet, read_object
from rearrange.home.simulation.scenes.convex_parts import Solid, hull
from rearrange.home.simulation.scenes.mjcf import MjcfHomes

MOST_TRIANGLES = 2_000  # that are drawn of an object: those of YCB have 16,000, of which a camera sees nothing
_CONFIG = ".object_config.json"
_FIRST_CELL_M, _COARSER = 0.002, 1.4  # corners in one cell become one
_MASS_KG = 0.3  # of an object whose file gives none


@dataclass(frozen=True, eq=False)
class OwnObject:
    """In its own frame. low, high: (3,) corners of the box around it."""

    solids: tuple[Solid, ...]
    meshes: tuple[Mesh, ...]
    mass_kg: float
    low: np.ndarray
    high: np.ndarray


def files_of(data: DataSet | MjcfHomes, objects: tuple[str, ...], folders: tuple[str, ...]) -> tuple[Path | None, ...]:
    """The configuration of each object that has a mesh of its own; None for the others.

    It is in one of the folders that an episode names, from where the command runs or from a folder above the data set,
    or, for one that is no primitive of ours, in the data set. Raises UserError for an object that is nowhere.
    """
    found: dict[str, Path | None] = {}
    for name in dict.fromkeys(objects):
        wanted = [Path(folder) / (name + _CONFIG) for folder in folders]
        # HAB's episodes say data/objects/ycb/configs/ beside data/replica_cad/.
        beside = [above / place for place in wanted if not place.is_absolute()
                  for above in data.path.resolve().parents[:4]]
        path = next((place for place in (*wanted, *beside) if place.is_file()), None)
        path = path or (None if name in OBJECTS else data.object_file(name))
        if path is None and name not in OBJECTS:
            where = ", ".join(folders) or "no folder"
            raise UserError(f"there is no object called {name!r}: the data set {data.path} has none, nor has {where}, "
                            f"which the episode names; primitives are {', '.join(OBJECTS)}.")
        found[name] = None if path is None or name in OBJECTS and read_object(path, data.path).is_primitive else path
    return tuple(found[name] for name in objects)


@lru_cache(maxsize=64)
def own_object(path: Path, dataset: Path | None = None) -> OwnObject:
    """An object by its configuration, under the defaults of a data set. Raises UserError if it cannot be used."""
    template = read_object(path, dataset)
    if not template.seen:
        raise UserError(f"{path} has no render_asset that can be drawn: it should name a GLB file.")
    solids = tuple(filter(None, (hull((points - template.center) @ AXES) for points in template.hulls())))
    if not solids:
        raise UserError(f"{path} has nothing that collides, so that it cannot be picked.")
    most = MOST_TRIANGLES // len(template.seen)
    meshes = tuple(_coarser(Mesh(0, (piece.vertices - template.center) @ AXES, piece.triangles,
                                 lambda piece=piece: piece.rgb, two_sided=piece.two_sided), most)
                   for piece in template.seen if piece.visible)
    points = np.concatenate([solid.corners() for solid in solids])
    return OwnObject(solids, meshes, template.mass_kg or _MASS_KG, points.min(axis=0), points.max(axis=0))


def _coarser(mesh: Mesh, most: int) -> Mesh:
    """The mesh with at most so many triangles: corners that lie close together become one."""
    cell, triangles, vertices, kept = _FIRST_CELL_M, mesh.triangles, mesh.vertices, np.arange(len(mesh.triangles))
    while len(triangles) > most:
        _, corner = np.unique(np.floor(mesh.vertices / cell).astype(np.int64), axis=0, return_inverse=True)
        corner = corner.reshape(-1)
        sums = np.stack([np.bincount(corner, mesh.vertices[:, k]) for k in range(3)], axis=1)
        vertices = sums / np.bincount(corner)[:, None]
        triangles = corner[mesh.triangles]
        a, b, c = triangles.T
        kept = np.flatnonzero((a != b) & (b != c) & (c != a))
        triangles = triangles[kept]
        cell *= _COARSER

    def rgb(read=mesh.rgb) -> np.ndarray:
        colours = read()
        return colours if colours.ndim == 1 else colours[kept]

    return Mesh(mesh.row, vertices, triangles, rgb, mesh.owner, mesh.two_sided)
