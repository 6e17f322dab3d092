"""Meshes of GLB files (glTF 2.0): triangles where the file's nodes put them.

Triangles, strips and fans are read, node transforms, and one colour for each triangle: of its material, its corners and
the middle of its image. What else a file needs to be understood, as compressed geometry, is an error that names it.
What else it has, as glass or points, is noted.

trimesh is no substitute. Of 25 damaged files as tests/rearrange/test_glb.py has them it reads 12 without a word: nodes
named twice, numbers that are not finite, compressed geometry. It bounds neither sizes nor visits, does not tell what it
left out or how a sampler wraps an image, and takes 1 s of processor time to import.
"""

from __future__ import annotations

import io
import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from rearrange.home.errors import UserError
from rearrange.home.files import parse_json
from rearrange.home.geometry import quat_matrix
from rearrange.home.scene_files.glb_accessors import Accessors, Damaged
from rearrange.home.scene_files.glb_materials import UNREADABLE, Looks, check_extensions
from rearrange.home.scene_files.reading import MOST_NUMBER, finite, need_mesh, scene_bytes, word
from rearrange.home.scene_files.surfaces import facing_out, moved, transform

MOST_TRIANGLES = 500_000  # of a file
MOST_PIECES = 20_000  # of a file: primitives, counted at every node that has them
MOST_NODES = 100_000
_GAMMA = 2.2  # between linear light and sRGB
_IMAGE_PX = 128  # on a side, of an image that colours are taken from
_TRIANGLES, _STRIP, _FAN = 4, 5, 6  # modes of primitives; those below are points and lines
_INSTANCES, _DRACO = "EXT_mesh_gpu_instancing", "KHR_draco_mesh_compression"
_JSON, _BINARY = 0x4E4F534A, 0x004E4942  # kinds of chunks


@dataclass(frozen=True, eq=False)
class Piece:
    """Triangles of one material. vertices: (n, 3) in the file's frame, y up (m). triangles: (m, 3), seen from where
    their corners are counterclockwise, or with `two_sided` from both sides. linear: (m, 3) or (3,), colour in linear
    light without the image. image: the file of an image, and uv: (m, 2) in [0, 1), where the middle of each triangle is
    in it. visible: False for what only collides.
    """

    vertices: np.ndarray
    triangles: np.ndarray
    linear: np.ndarray
    two_sided: bool = False
    image: bytes | None = None
    uv: np.ndarray | None = None
    visible: bool = True

    @property
    def rgb(self) -> np.ndarray:
        """(m, 3) or (3,), sRGB, each in [0, 1]; reads the image, which takes its time."""
        linear, image = self.linear, None if self.image is None else _small_image(self.image)
        if image is not None:
            rows, columns = ((self.uv[:, 1 - k] * image.shape[k]).astype(int) for k in (0, 1))
            linear = linear * (image[rows, columns] / 255.0) ** _GAMMA
        return np.clip(linear, 0.0, 1.0) ** (1.0 / _GAMMA)


@lru_cache(maxsize=64)
def _small_image(raw: bytes) -> np.ndarray | None:
    """(rows, columns, 3) uint8 of the file of an image; None where it cannot be read."""
    from PIL import Image

    try:
        image = Image.open(io.BytesIO(raw))
        if image.mode.startswith("I"):  # grey in 16 bits, which Pillow's conversion cuts off at 255
            image = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
        image.draft("RGB", (_IMAGE_PX, _IMAGE_PX))
        return np.array(image.resize((_IMAGE_PX, _IMAGE_PX)).convert("RGB"))
    except (*UNREADABLE, Image.DecompressionBombError):
        return None


def read_glb(path: Path, of: Path) -> tuple[Piece, ...]:
    """The pieces of a mesh that the file `of` names. Raises UserError, naming the file and the reason."""
    return _read(path, of)[0]


def glb_notes(path: Path, of: Path) -> frozenset[str]:
    """What of a mesh is not read, in words. Raises UserError as `read_glb`."""
    return _read(path, of)[1]


@lru_cache(maxsize=512)
def _read(path: Path, of: Path) -> tuple[tuple[Piece, ...], frozenset[str]]:
    need_mesh(path, of)
    if path.suffix.lower() != ".glb":
        raise UserError(f"{path}, which {of} names, should be a GLB file: others are not read.")
    raw = scene_bytes(path, "the mesh")
    try:
        reader = _Reader(raw)
        pieces = tuple(reader.pieces())
        if not any(len(piece.triangles) for piece in pieces):
            raise Damaged("it has no triangles")
    except Damaged as damage:
        raise UserError(f"{path}, which {of} names, cannot be used: {damage}.") from None
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError, struct.error) as error:
        why = f"{type(error).__name__}: {word(error)}"
        raise UserError(f"{path}, which {of} names, is a damaged GLB file ({why}).") from None
    return pieces, frozenset(reader.notes)


class _Reader:
    """One file. notes: what of it is not read."""

    def __init__(self, raw: bytes) -> None:
        if (version := struct.unpack_from("<I", raw, 4)[0]) != 2:
            raise Damaged(f"it is of glTF version {version}, and only version 2 is read")
        chunks: dict[int, bytes] = {}
        at, end = 12, struct.unpack_from("<I", raw, 8)[0]
        while at + 8 <= end:
            length, kind = struct.unpack_from("<II", raw, at)
            if at + 8 + length > end:
                raise Damaged(f"a part of {length:,} bytes begins at byte {at:,} of {end:,}")
            chunks.setdefault(kind, raw[at + 8:at + 8 + length])
            at += 8 + length
        self._content = parse_json(chunks[_JSON])
        if not isinstance(self._content, dict):
            raise Damaged("its description is no JSON object")
        self.notes: set[str] = set()
        check_extensions(self._content, self.notes)
        self._accessors = Accessors(self._content, chunks.get(_BINARY, b""))
        self._looks = Looks(self._content, self._accessors, self.notes)
        self._triangles = self._pieces = 0

    def pieces(self) -> Iterator[Piece]:
        """Of the nodes of the default scene, each of which is in one place."""
        todo, seen = [(root, np.eye(4)) for root in reversed(self._roots())], set()
        while todo:
            index, above = todo.pop()
            node = self._accessors.at("nodes", index)
            if index in seen:
                raise Damaged(f"its nodes are no tree: node {index} is named twice, or nested in a circle")
            seen.add(index)
            if len(seen) > MOST_NODES:
                raise Damaged(f"it has more than {MOST_NODES:,} nodes; join them")
            frame = above @ _matrix(node)
            if not np.isfinite(frame).all() or np.abs(frame).max() > MOST_NUMBER:
                raise Damaged(f"the frame of node {index} has numbers that are not finite, or above {MOST_NUMBER:g}")
            if "mesh" in node:
                if _INSTANCES in node.get("extensions", {}):
                    raise Damaged(f"it needs {_INSTANCES}, which is not read; save it without extensions")
                if "skin" in node:
                    self.notes.add("skins of meshes")
                mesh = self._accessors.at("meshes", node["mesh"])
                if any(node.get("weights", mesh.get("weights", ()))):
                    self.notes.add("morph targets of meshes")
                for primitive in mesh["primitives"]:
                    if (piece := self._piece(primitive, frame)) is not None:
                        yield piece
            todo += [(child, frame) for child in reversed(node.get("children", []))]

    def _roots(self) -> list:
        """Nodes of the default scene, or those that are nobody's children where the file has no scenes."""
        if self._content.get("scenes"):
            return self._accessors.at("scenes", self._content.get("scene", 0)).get("nodes", [])
        nodes = self._content.get("nodes", [])
        children = {child for node in nodes for child in node.get("children", ())}
        return [index for index in range(len(nodes)) if index not in children]

    def _piece(self, primitive: dict, frame: np.ndarray) -> Piece | None:
        """None for points and lines."""
        self._pieces += 1
        if self._pieces > MOST_PIECES:
            raise Damaged(f"it has more than {MOST_PIECES:,} parts; join them")
        mode, attributes = primitive.get("mode", _TRIANGLES), primitive["attributes"]
        if mode not in (_TRIANGLES, _STRIP, _FAN):
            self.notes.add("points and lines of meshes")
            return None
        corners = self._accessors.count(primitive.get("indices", attributes["POSITION"]))
        self._triangles += corners // 3 if mode == _TRIANGLES else max(0, corners - 2)
        if self._triangles > MOST_TRIANGLES:
            raise Damaged(f"it has more than {MOST_TRIANGLES:,} triangles; make it coarser")
        has_places = "bufferView" in self._accessors.at("accessors", attributes["POSITION"])
        if _DRACO in primitive.get("extensions", {}) and not has_places:
            raise Damaged(f"it needs {_DRACO}, which is not read; save it without compression")
        vertices = self._accessors.values(attributes["POSITION"])
        if vertices.ndim != 2 or vertices.shape[1] != 3:
            raise Damaged("its corners are no places of three numbers")
        order = np.arange(len(vertices), dtype=np.uint32)
        if "indices" in primitive:
            order = self._accessors.values(primitive["indices"])
        if order.ndim != 1 or order.dtype.kind != "u":
            raise Damaged("its triangles are not given by whole numbers")
        triangles = _triangles(order.astype(np.int64), mode)
        if len(triangles) and triangles.max() >= len(vertices):
            raise Damaged(f"a triangle has the corner {triangles.max()} of {len(vertices)}")
        look = self._looks.of(primitive, triangles)
        used, triangles = np.unique(triangles, return_inverse=True)
        vertices, triangles = vertices[used].astype(float), triangles.reshape(-1, 3)
        if not np.isfinite(vertices).all():
            raise Damaged("it has a corner that is no number")
        vertices = moved(vertices, frame)
        if len(vertices) and np.abs(vertices).max() > MOST_NUMBER:
            raise Damaged(f"it has a corner further than {MOST_NUMBER:g} m away")
        return Piece(vertices, np.ascontiguousarray(facing_out(triangles, frame), np.int32), **look)


def _triangles(order: np.ndarray, mode: int) -> np.ndarray:
    """(m, 3) of corners in the order that a primitive names them, without those of strips and fans that are none."""
    if mode == _TRIANGLES:
        return order[:len(order) // 3 * 3].reshape(-1, 3)
    if len(order) < 3:
        return np.empty((0, 3), np.int64)
    if mode == _FAN:
        found = np.stack([order[1:-1], order[2:], np.full(len(order) - 2, order[0])], axis=1)
    else:
        found = np.stack([order[:-2], order[1:-1], order[2:]], axis=1)
        found[1::2] = found[1::2, (0, 2, 1)]
    return found[(found != np.roll(found, 1, axis=1)).all(axis=1)]


def _matrix(node: dict[str, Any]) -> np.ndarray:
    """(4, 4) of a node in that above it."""
    parts = {}
    for key, count in (("matrix", 16), ("rotation", 4), ("scale", 3), ("translation", 3)):
        values = parts[key] = node.get(key)
        if values is not None and not (isinstance(values, list) and len(values) == count and all(map(finite, values))):
            raise Damaged(f"the {key} of a node is no list of {count} finite numbers of at most {MOST_NUMBER:g}")
    if parts["matrix"]:
        return np.array(parts["matrix"], float).reshape(4, 4).T
    x, y, z, w = parts["rotation"] or (0.0, 0.0, 0.0, 1.0)
    length = math.sqrt(w * w + x * x + y * y + z * z) or 1.0
    scale = np.array(parts["scale"] or (1.0, 1.0, 1.0), float)
    return transform(quat_matrix(np.array((w, x, y, z)) / length) * scale, parts["translation"])
