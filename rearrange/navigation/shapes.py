"""A home as the depth rasteriser takes it: shapes with their places, the floor and a ceiling."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rearrange.home.apartments import segmentation
from rearrange.home.apartments.floor_plan import WALL_HEIGHT_M
from rearrange.home.apartments.parts import Part
from rearrange.home.numba_cache import njit
from rearrange.home.pictures.meshes import MeshTable, draw_meshes
from rearrange.home.pictures.raster_kernels import FACES, KINDS, PLANE, draw_depth, draw_depth_and_codes
from rearrange.navigation.homes import NOTHING, Building

ENDLESS_M = 1e3


@dataclass(frozen=True, eq=False)
class Shapes:
    """Arguments of `raster.draw`, and of each shape its piece of furniture (-1: none), its colour and what it is."""

    shapes: np.ndarray  # (n, 2) int32
    halves: np.ndarray  # (n, 4) float32
    centers: np.ndarray  # (n, 3) float64
    rotations: np.ndarray  # (n, 9) float64
    piece: np.ndarray  # (n,) int32
    rgb: np.ndarray  # (n, 3) float32
    things: np.ndarray  # (n,) uint16, numbers of `rearrange.home.apartments.segmentation`


@dataclass(frozen=True, eq=False)
class Meshes:
    """Triangles beside the shapes, and the frames of what they belong to."""

    table: MeshTable
    positions: np.ndarray  # (rows, 3) float64
    rotations: np.ndarray  # (rows, 9) float64


NO_SHAPES = Shapes(np.empty((0, 2), np.int32), np.empty((0, 4), np.float32), np.empty((0, 3)), np.empty((0, 9)),
                   np.empty(0, np.int32), np.empty((0, 3), np.float32), np.empty(0, np.uint16))


def shapes_of(building: Building) -> Shapes:
    """Everything in a home, drawers and doors shut, between an endless floor and ceiling."""
    owner = [-1] * len(building.parts)
    for k, piece in enumerate(building.furniture):
        for number in piece.parts:
            owner[number] = k
    found = [(part, owner[k]) for k, part in enumerate(building.parts) if part is not NOTHING]
    of_body = {number: k for k, piece in enumerate(building.furniture) for number in piece.bodies}
    found += [(part, of_body.get(k, -1)) for k, body in enumerate(building.bodies) for part in body.parts_at()]
    count = len(found) + 2
    halves, centers, rotations = np.zeros((count, 4), np.float32), np.zeros((count, 3)), np.zeros((count, 9))
    kinds = [PLANE, PLANE] + [KINDS[part.shape] for part, _ in found]
    halves[:2, :2] = ENDLESS_M
    centers[1, 2] = WALL_HEIGHT_M
    rotations[0], rotations[1] = np.eye(3).ravel(), np.diag((1.0, -1.0, -1.0)).ravel()
    for k, (part, _) in enumerate(found, 2):
        halves[k, :3] = _half_extents(part)
        centers[k], rotations[k] = part.center_m, _rotation(part)
    halves[:, 3] = np.sqrt((halves[:, :3].astype(float) ** 2).sum(axis=1))
    shapes = np.column_stack([kinds, np.arange(count)]).astype(np.int32)
    piece = np.array([-1, -1] + [k for _, k in found], np.int32)
    rgb = np.array([(0.6, 0.5, 0.4), (1.0, 1.0, 1.0)] + [part.rgb for part, _ in found], np.float32)
    still, moving = segmentation.numbers_of(building)
    things = [segmentation.BUILDING["floor"], segmentation.BUILDING["ceiling"]]
    things += [still[k] for k, part in enumerate(building.parts) if part is not NOTHING]
    things += [number for body, number in zip(building.bodies, moving) for _ in body.parts]
    return Shapes(shapes, halves, centers, rotations, piece, rgb, np.array(things, np.uint16))


def _half_extents(part: Part) -> tuple[float, float, float]:
    """Of the box around a part in the frame of `_rotation`, in which a capsule lies along z."""
    if part.shape == "box":
        return part.half_size_m
    radius, half_length = part.half_size_m
    return radius, radius, half_length + (radius if part.shape == "capsule" else 0.0)


def _rotation(part: Part) -> np.ndarray:
    c, s = math.cos(part.yaw_rad), math.sin(part.yaw_rad)
    if part.shape == "capsule" and part.axis == "y":
        return np.array([c, 0.0, -s, s, 0.0, c, 0.0, -1.0, 0.0])
    return np.array([c, -s, 0.0, s, c, 0.0, 0.0, 0.0, 1.0])


@njit(cache=True, nogil=True)
def look(shapes, halves, centers, rotations, x, y, z, yaw, slopes, near, far, inverse, out):
    """Draw what a level camera at (x, y, z) sees along `yaw` into `out` (size, size, 1): depth over far, at least near.
    """
    draw_depth(shapes, halves, centers, rotations, np.array([[x, y, z]]), _camera(yaw), 0, slopes, slopes, far, inverse)
    _shown(inverse, near, far, out)


def look_at_meshes(meshes, shapes, halves, centers, rotations, x, y, z, yaw, slopes, near, far, inverse, out):
    """As `look`, with meshes."""
    place, turned = np.array([[x, y, z]]), _camera(yaw)
    draw_depth(shapes, halves, centers, rotations, place, turned, 0, slopes, slopes, far, inverse)
    draw_meshes(meshes.table, meshes.positions, meshes.rotations, place, turned, 0, slopes, slopes, far, inverse)
    _shown(inverse, near, far, out)


@njit(cache=True, nogil=True)
def look_for(shapes, halves, centers, rotations, x, y, z, yaw, slopes, near, far, inverse, out, codes, wanted, mask):
    """The same; and into `mask` (size, size, 1) 1 where a shape that is `wanted` is seen, else 0."""
    draw_depth_and_codes(shapes, halves, centers, rotations, np.array([[x, y, z]]), _camera(yaw), 0, slopes, slopes,
                         far, inverse, codes)
    _shown(inverse, near, far, out)
    for i in range(mask.shape[0]):
        for j in range(mask.shape[1]):
            mask[i, j, 0] = 1.0 if codes[i, j] >= 0 and wanted[codes[i, j] // FACES] else 0.0


@njit(nogil=True)
def _camera(yaw):
    """Right, up and back of a level camera as the columns of a matrix, (1, 9)."""
    c, s = math.cos(yaw), math.sin(yaw)
    return np.array([[s, 0.0, -c, -c, 0.0, -s, 0.0, 1.0, 0.0]])


@njit(nogil=True)
def _shown(inverse, near, far, out):
    scale, least = np.float32(1) / far, near / far
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j, 0] = max(scale / inverse[i, j], least)
