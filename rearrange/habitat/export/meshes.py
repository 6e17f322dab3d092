"""Primitives as triangles in GLB files: what Habitat draws, and collides the building with.

Round shapes have so many sides that their faces lie within 0.1 mm of the true surface, but at most 64. All shapes of a
file are one mesh with colours at its vertices, which Habitat draws in one call. Its material is for Habitat's Phong
shader, by `shader_type` in the files that name the mesh: the physically based one prepares light maps for ten seconds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from rearrange.habitat.export.links import Shape
from rearrange.home.errors import UserError

SIDES = 64
FLOOR_DEPTH_M = 0.1  # of the solid floor: a plane has none
_SAGITTA_M = 1e-4


def need_trimesh():
    """The library that writes GLB files."""
    try:
        import trimesh
    except ImportError:
        raise UserError("exporting scenes needs trimesh, which is not installed: pip install 'trimesh>=4'.") from None
    return trimesh


def write_glb(path: Path, shapes: Iterable[Shape], turn: np.ndarray) -> None:
    """The shapes as one mesh; `turn` (3, 3) takes their frame to the file's. Makes the folder."""
    trimesh = need_trimesh()
    parts = [triangles(shape) for shape in shapes]
    counts = [len(part["points"]) for part in parts]
    points, normals = (np.concatenate([part[key] for part in parts]) @ turn.T for key in ("points", "normals"))
    faces = np.concatenate([part["faces"] + start for part, start in zip(parts, np.cumsum([0, *counts]))])
    colours = [[*(round(255 * value) for value in shape.rgb), 255] for shape in shapes]
    white = trimesh.visual.material.PBRMaterial(
        "white", baseColorFactor=[1.0] * 4, metallicFactor=0.0, roughnessFactor=1.0)
    looks = trimesh.visual.TextureVisuals(material=white)
    looks.vertex_attributes["color"] = np.repeat(np.array(colours, np.uint8), counts, axis=0)
    mesh = trimesh.Trimesh(vertices=points, faces=faces, vertex_normals=normals, visual=looks, process=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(trimesh.exchange.gltf.export_glb(trimesh.Scene({path.stem: mesh}), include_normals=True))


def triangles(shape: Shape) -> dict[str, np.ndarray]:
    """points and normals (N, 3), faces (M, 3) of a shape, in the frame of its link."""
    creation = need_trimesh().creation
    half = shape.half_size_m
    if shape.kind == "plane":
        corners = np.array([(-1, -1, 0), (1, -1, 0), (1, 1, 0), (-1, 1, 0)]) * (*half, 1)
        made = {"points": corners, "faces": np.array([(0, 1, 2), (0, 2, 3)]), "normals": np.tile((0, 0, 1.0), (4, 1))}
    elif shape.kind == "box":
        made = _faceted(creation.box(extents=[2 * side for side in half]))
    elif shape.kind == "cylinder":
        made = _faceted(creation.cylinder(radius=half[0], height=2 * half[1], sections=sides(half[0])))
    elif shape.kind == "capsule":
        count = sides(half[0])
        mesh = creation.capsule(radius=half[0], height=2 * half[1], count=[count // 4 * 2, count])
        made = _round(mesh, mesh.vertices.clip((0, 0, -half[1]), (0, 0, half[1])))
    else:
        made = _round(creation.icosphere(subdivisions=3, radius=half[0]), np.zeros(3))
    made["points"] = made["points"] @ shape.rotation.T + shape.position_m
    made["normals"] = made["normals"] @ shape.rotation.T
    return made


def sides(radius_m: float) -> int:
    """Of a circle, a multiple of four so that it reaches its radius along both axes."""
    enough = math.pi / math.acos(1.0 - min(1.0, _SAGITTA_M / radius_m))
    return min(SIDES, 4 * math.ceil(enough / 4))


def _faceted(mesh) -> dict[str, np.ndarray]:
    """With the normal of its triangle at each corner."""
    return {"points": mesh.triangles.reshape(-1, 3), "faces": np.arange(3 * len(mesh.faces)).reshape(-1, 3),
            "normals": np.repeat(mesh.face_normals, 3, axis=0)}


def _round(mesh, nearest_on_axis: np.ndarray) -> dict[str, np.ndarray]:
    """With normals that point away from its axis or middle, of which the nearest points are (N, 3) or (3,)."""
    away = mesh.vertices - nearest_on_axis
    return {"points": np.asarray(mesh.vertices), "faces": np.asarray(mesh.faces),
            "normals": away / np.linalg.norm(away, axis=1, keepdims=True)}


def solid(shape: Shape, less_m: float = 0.0) -> Shape:
    """A plane as the top of a slab, for physics, which ends `less_m` before it; other shapes as they are."""
    if shape.kind != "plane":
        return shape
    x, y = (half - less_m for half in shape.half_size_m)
    below = shape.position_m - shape.rotation[:, 2] * FLOOR_DEPTH_M / 2
    return replace(shape, kind="box", half_size_m=(x, y, FLOOR_DEPTH_M / 2), position_m=below)
