"""Meshes of GLB files (glTF 2.0): triangles where the file's nodes put them.

Only what scene data sets use is read: triangles, node transforms, and one colour for each triangle, of its material, its corners and
the middle of its image. Whatever else a file needs to be understood, as compressed geometry, is an error that names it; an image that
cannot be read is not.
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

from rearrange.errors import UserError
from rearrange.files import parse_json, read_bytes
from rearrange.geometry import quat_matrix
from rearrange.scene_files.whole import MOST_BYTES, need_mesh

MOST_TRIANGLES = 500_000  # of a file
_MOST_DEPTH = 200  # of nodes in nodes
_TYPES = {5120: np.int8, 5121: np.uint8, 5122: np.int16, 5123: np.uint16, 5125: np.uint32, 5126: np.float32}
_WIDTHS = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4}
_GREY, _GAMMA = 0.5, 2.2  # of what has no material; between linear light and sRGB
_IMAGE_PX = 128  # on a side, of an image that colours are taken from
_TRIANGLES = 4  # the mode of a primitive
_KNOWN = ("KHR_texture_transform", "KHR_materials_unlit", "KHR_materials_ior", "KHR_materials_specular", "KHR_texture_basisu",
          "KHR_materials_pbrSpecularGlossiness", "KHR_mesh_quantization", "KHR_lights_punctual", "EXT_texture_webp")


@dataclass(frozen=True, eq=False)
class Piece:
    """Triangles of one material. vertices: (n, 3) in the file's frame, y up (m). triangles: (m, 3), seen from where their corners are
    counterclockwise, or with `two_sided` from both sides. linear: (m, 3) or (3,), colour in linear light without the image. image: the
    file of an image, and uv: (m, 2), where the middle of each triangle is in it.
    """

    vertices: np.ndarray
    triangles: np.ndarray
    linear: np.ndarray
    two_sided: bool = False
    image: bytes | None = None
    uv: np.ndarray | None = None

    @property
    def rgb(self) -> np.ndarray:
        """(m, 3) or (3,), sRGB, each in [0, 1]; reads the image, which takes its time."""
        linear, image = self.linear, None if self.image is None else _small_image(self.image)
        if image is not None:
            rows, columns = (np.clip((self.uv[:, 1 - k] % 1.0) * image.shape[k], 0, image.shape[k] - 1).astype(int) for k in (0, 1))
            linear = linear * (image[rows, columns] / 255.0) ** _GAMMA
        return np.clip(linear, 0.0, 1.0) ** (1.0 / _GAMMA)


@lru_cache(maxsize=64)
def _small_image(raw: bytes) -> np.ndarray | None:
    """(rows, columns, 3) uint8 of the file of an image; None where it cannot be read."""
    from PIL import Image

    try:
        image = Image.open(io.BytesIO(raw))
        image.draft("RGB", (_IMAGE_PX, _IMAGE_PX))
        return np.array(image.resize((_IMAGE_PX, _IMAGE_PX)).convert("RGB"))
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return None


class _Damaged(Exception):
    """What is wrong with a file, as the end of a sentence."""


@lru_cache(maxsize=512)
def read_glb(path: Path, of: Path) -> tuple[Piece, ...]:
    """The pieces of a mesh that the file `of` names. Raises UserError, naming the file and the reason."""
    need_mesh(path, of)
    if path.suffix.lower() != ".glb":
        raise UserError(f"{path}, which {of} names, should be a GLB file: others are not read.")
    try:
        pieces = tuple(_Reader(read_bytes(path, MOST_BYTES)).pieces())
        if not pieces:
            raise _Damaged("it has no triangles")
    except _Damaged as error:
        raise UserError(f"{path}, which {of} names, cannot be used: {error}.") from None
    except OSError as error:
        raise UserError(f"{path}, which {of} names, cannot be read ({error.strerror or error}).") from None
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, struct.error) as error:
        raise UserError(f"{path}, which {of} names, is a damaged GLB file ({type(error).__name__}: {error}).") from None
    return pieces


class _Reader:
    """One file."""

    def __init__(self, raw: bytes) -> None:
        self._binary, at = b"", 12
        self._json: dict = {}
        while at + 8 <= len(raw):
            length, kind = struct.unpack_from("<II", raw, at)
            chunk = raw[at + 8:at + 8 + length]
            if kind == 0x4E4F534A:
                self._json = parse_json(chunk)
            elif kind == 0x004E4942 and not self._binary:
                self._binary = chunk
            at += 8 + length
        needs = [name for name in self._json.get("extensionsRequired", ()) if name not in _KNOWN]
        if needs:
            raise _Damaged(f"it needs {needs[0]}, which is not read; save it without compression")
        self._count = 0

    def pieces(self) -> Iterator[Piece]:
        """Of the default scene, or of all nodes where there is none."""
        nodes, scenes = self._json.get("nodes", []), self._json.get("scenes", [])
        roots = scenes[self._json.get("scene", 0)].get("nodes", []) if scenes else range(len(nodes))
        for root in roots:
            yield from self._of_node(nodes, root, np.eye(4), 0)

    def _of_node(self, nodes: list, index: int, above: np.ndarray, depth: int) -> Iterator[Piece]:
        if depth > _MOST_DEPTH:
            raise _Damaged("its nodes are nested in a circle")
        node = nodes[index]
        frame = above @ _matrix(node)
        if "mesh" in node:
            for primitive in self._json["meshes"][node["mesh"]]["primitives"]:
                if primitive.get("mode", _TRIANGLES) == _TRIANGLES:
                    yield self._piece(primitive, frame)
        for child in node.get("children", ()):
            yield from self._of_node(nodes, child, frame, depth + 1)

    def _piece(self, primitive: dict, frame: np.ndarray) -> Piece:
        attributes = primitive["attributes"]
        wanted = primitive.get("indices", attributes["POSITION"])
        self._count += self._json["accessors"][wanted]["count"] // 3
        if self._count > MOST_TRIANGLES:
            raise _Damaged(f"it has more than {MOST_TRIANGLES:,} triangles; make it coarser")
        vertices = self._values(attributes["POSITION"]).astype(float)
        if "indices" in primitive:
            triangles = self._values(primitive["indices"]).astype(np.int64).reshape(-1, 3)
        else:
            triangles = np.arange(len(vertices) // 3 * 3).reshape(-1, 3)
        if len(triangles) and triangles.max() >= len(vertices):
            raise _Damaged(f"a triangle has the corner {triangles.max()} of {len(vertices)}")
        used = vertices[np.unique(triangles)]
        if not np.isfinite(used).all() or not np.isfinite(frame).all():
            raise _Damaged("it has a corner that is no number")
        if np.linalg.det(frame[:3, :3]) < 0.0:
            triangles = triangles[:, ::-1]
        material = self._json["materials"][primitive["material"]] if "material" in primitive else {}
        surface = material.get("pbrMetallicRoughness", {})
        linear = np.array(surface.get("baseColorFactor", (1.0,) * 3 if material else (_GREY,) * 3), float)[:3]
        if "COLOR_0" in attributes:
            linear = linear * self._values(attributes["COLOR_0"])[:, :3].astype(float)[triangles].mean(axis=1)
        image = self._image(surface.get("baseColorTexture", {}))
        places = f"TEXCOORD_{surface.get('baseColorTexture', {}).get('texCoord', 0)}"
        uv = None
        if image is not None and places in attributes:
            uv = self._values(attributes[places]).astype(float)[triangles].mean(axis=1)
        return Piece(vertices @ frame[:3, :3].T + frame[:3, 3], np.ascontiguousarray(triangles, np.int32), linear,
                     material.get("doubleSided") is True, None if uv is None else image, uv)

    def _image(self, texture: dict) -> bytes | None:
        """The file of an image inside this file; None where there is none."""
        source = self._json["textures"][texture["index"]].get("source") if "index" in texture else None
        if source is None or "bufferView" not in self._json["images"][source]:
            return None
        view = self._json["bufferViews"][self._json["images"][source]["bufferView"]]
        start = view.get("byteOffset", 0)
        return self._binary[start:start + view["byteLength"]]

    def _values(self, index: int) -> np.ndarray:
        """An accessor: (count,) or (count, width)."""
        accessor = self._json["accessors"][index]
        if "bufferView" not in accessor or "sparse" in accessor:
            raise _Damaged("it has sparse geometry, which is not read")
        view = self._json["bufferViews"][accessor["bufferView"]]
        dtype, width, count = np.dtype(_TYPES[accessor["componentType"]]), _WIDTHS[accessor["type"]], accessor["count"]
        start = view.get("byteOffset", 0) + accessor.get("byteOffset", 0)
        stride = view.get("byteStride", dtype.itemsize * width)
        if view.get("buffer", 0) != 0 or count and start + (count - 1) * stride + dtype.itemsize * width > len(self._binary):
            raise _Damaged("it is shorter than its geometry")
        shape, strides = (count, width), (stride, dtype.itemsize)
        values = np.ndarray(shape, dtype, self._binary, start, strides)
        if accessor.get("normalized") and dtype.kind in "iu":
            values = values / np.iinfo(dtype).max
        return values[:, 0] if width == 1 else values


def _matrix(node: dict[str, Any]) -> np.ndarray:
    """(4, 4) of a node in that above it."""
    if "matrix" in node:
        return np.array(node["matrix"], float).reshape(4, 4).T
    frame = np.eye(4)
    x, y, z, w = node.get("rotation", (0.0, 0.0, 0.0, 1.0))
    length = math.sqrt(w * w + x * x + y * y + z * z) or 1.0
    frame[:3, :3] = quat_matrix(np.array((w, x, y, z)) / length) * np.array(node.get("scale", (1.0, 1.0, 1.0)), float)
    frame[:3, 3] = node.get("translation", (0.0, 0.0, 0.0))
    return frame
