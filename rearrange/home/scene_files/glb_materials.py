"""Colours of a GLB file: materials, images, and which of its extensions are read.

What changes how a mesh looks or what it is, and is not read, is noted in words, which `rearrange scenes check` shows.
"""

from __future__ import annotations

import io
import math
import struct
from typing import Any

import numpy as np

from rearrange.home.scene_files.glb_accessors import Accessors, Damaged
from rearrange.home.scene_files.reading import finite, word

GREY = 0.5  # of what has no material
_GLOSS, _WEBP, _BASIS, _MOVED = ("KHR_materials_pbrSpecularGlossiness", "EXT_texture_webp", "KHR_texture_basisu",
                                 "KHR_texture_transform")
_READ = {_GLOSS, _WEBP, _MOVED, "KHR_materials_unlit", "KHR_mesh_quantization"}
_OF_LOOKS = ("KHR_materials_", "KHR_lights_", "KHR_texture_", "EXT_texture_", "EXT_lights_", "KHR_xmp", "MSFT_texture_")
_IMAGES = ("PNG", "JPEG", "WEBP")
_CLAMPED, _MIRRORED = 33071, 33648  # of samplers
UNREADABLE = (OSError, ValueError, SyntaxError, LookupError, EOFError, struct.error)
"""What Pillow raises for an image that it cannot read, beside its own DecompressionBombError."""


def check_extensions(content: dict, notes: set[str]) -> None:
    """Note the extensions that a file has and nobody reads. Raises Damaged for one that it cannot be read without."""
    for name in content.get("extensionsRequired", ()):
        if name not in _READ and not str(name).startswith(_OF_LOOKS):
            raise Damaged(f"it needs {word(name)}, which is not read; save it without compression and extensions")
    listed = {str(name) for key in ("extensionsUsed", "extensionsRequired") for name in content.get(key, ())}
    notes.update(f"{word(name)} of meshes" for name in listed | _extensions_in(content) if name not in _READ)
    if content.get("animations"):
        notes.add("animations of meshes")


def _extensions_in(content: dict) -> set[str]:
    """Names of the extensions that a file has, whether it lists them or not."""
    found, todo = set[str](), [content]
    while todo:
        value = todo.pop()
        if isinstance(value, dict):
            if isinstance(extensions := value.get("extensions"), dict):
                found.update(extensions)
            todo += [inner for key, inner in value.items() if key != "extras" and isinstance(inner, dict | list)]
        else:
            todo += [inner for inner in value if isinstance(inner, dict | list)]
    return found


class Looks:
    """The looks of the primitives of one file. notes: collects what is not read."""

    def __init__(self, content: dict, accessors: Accessors, notes: set[str]) -> None:
        self._content, self._accessors, self._notes, self._images = content, accessors, notes, {}

    def of(self, primitive: dict, triangles: np.ndarray) -> dict[str, Any]:
        """The fields of `rearrange.home.scene_files.glb.Piece` that are its look. triangles: (m, 3) of its corners."""
        attributes = primitive["attributes"]
        material = self._accessors.at("materials", primitive["material"]) if "material" in primitive else {}
        factor, texture = self._surface(material)
        linear, alpha = factor[:3], factor[3:]
        if "COLOR_0" in attributes:
            colours = self._of_corners(attributes["COLOR_0"], triangles)
            linear = linear * colours[:, :3]
            alpha = alpha * (colours[:, 3] if colours.shape[1] > 3 else 1.0)
        image, uv = self._image(texture), None
        if image is not None and (places := f"TEXCOORD_{self._coordinates(texture)}") in attributes:
            uv = self._wrapped(texture, self._moved(texture, self._of_corners(attributes[places], triangles)[:, :2]))
        visible = self._visible(material, alpha, uv is not None)
        if np.any(np.array(material.get("emissiveFactor", 0.0), float) != 0.0):
            self._notes.add("emissiveFactor of meshes")
        return {"linear": linear, "two_sided": material.get("doubleSided") is True,
                "image": None if uv is None else image, "uv": uv, "visible": visible}

    def _surface(self, material: dict) -> tuple[np.ndarray, dict]:
        """Colour with alpha (4,), linear, and the texture that multiplies it."""
        glossy = material.get("extensions", {}).get(_GLOSS)
        surface = material.get("pbrMetallicRoughness", {}) if glossy is None else glossy
        names = ("baseColorFactor", "baseColorTexture") if glossy is None else ("diffuseFactor", "diffuseTexture")
        grey = (1.0 if material else GREY,) * 3
        factor = _floats(surface.get(names[0]), (*grey, 1.0))
        return factor, surface.get(names[1], {})

    def _of_corners(self, accessor: Any, triangles: np.ndarray) -> np.ndarray:
        """(m, width): the mean over the corners of each triangle."""
        values = self._accessors.values(accessor)
        if values.ndim < 2 or len(triangles) and triangles.max() >= len(values):
            raise Damaged(f"its corners have {len(values)} colours or places in images, too few")
        mean = values.astype(float)[triangles].mean(axis=1)
        if not np.isfinite(mean).all():
            raise Damaged("it has a colour or a place in an image that is no number")
        return mean

    def _visible(self, material: dict, alpha: np.ndarray, has_image: bool) -> bool:
        mode = material.get("alphaMode", "OPAQUE")
        if mode not in ("MASK", "BLEND"):
            return True
        least = float(material.get("alphaCutoff", 0.5)) if mode == "MASK" else 1e-6
        shown = alpha >= least
        if shown.any() and (has_image or not shown.all() or mode == "BLEND" and (alpha < 1.0).any()):
            self._notes.add(f"alphaMode {mode} of meshes (what is partly transparent is drawn opaque)")
        return bool(shown.any())

    def _coordinates(self, texture: dict) -> Any:
        """Number of the list of places in an image that a texture uses."""
        return texture.get("extensions", {}).get(_MOVED, {}).get("texCoord", texture.get("texCoord", 0))

    def _moved(self, texture: dict, uv: np.ndarray) -> np.ndarray:
        """Places in an image by KHR_texture_transform: its rotation is counterclockwise as one sees it, v downwards."""
        given = texture.get("extensions", {}).get(_MOVED)
        if given is None:
            return uv
        (angle,), offset, scale = (_floats(given.get(key), default) for key, default in (
            ("rotation", (0.0,)), ("offset", (0.0, 0.0)), ("scale", (1.0, 1.0))))
        c, s = math.cos(angle), math.sin(angle)
        return (uv * scale) @ np.array([(c, -s), (s, c)]) + offset

    def _wrapped(self, texture: dict, uv: np.ndarray) -> np.ndarray:
        """Places in [0, 1), as the sampler repeats, mirrors or ends the image."""
        sampler = self._accessors.at("textures", texture["index"]).get("sampler")
        sampler = {} if sampler is None else self._accessors.at("samplers", sampler)
        ways = {_CLAMPED: lambda x: x, _MIRRORED: lambda x: 1.0 - np.abs(x % 2.0 - 1.0)}
        sides = [ways.get(sampler.get(key), lambda x: x % 1.0)(uv[:, k]) for k, key in enumerate(("wrapS", "wrapT"))]
        return np.clip(np.stack(sides, axis=1), 0.0, 1.0 - 1e-9)

    def _image(self, texture: dict) -> bytes | None:
        """The file of an image inside this file; None where there is none that can be read."""
        if "index" not in texture:
            return None
        entry = self._accessors.at("textures", texture["index"])
        source = entry.get("extensions", {}).get(_WEBP, {}).get("source", entry.get("source"))
        if source is None:
            if _BASIS not in entry.get("extensions", {}):  # which is noted already
                self._notes.add("textures of meshes without an image")
            return None
        if source not in self._images:
            self._images[source] = self._file_of(self._accessors.at("images", source))
        return self._images[source]

    def _file_of(self, image: dict) -> bytes | None:
        """The file of an image inside this file; None, with a note, for one that cannot be read."""
        from PIL import Image

        if "bufferView" not in image:
            self._notes.add("images of meshes outside their GLB files")
            return None
        raw = bytes(self._accessors.bytes_of(image["bufferView"]))
        try:
            Image.open(io.BytesIO(raw), formats=_IMAGES)
        except (*UNREADABLE, Image.DecompressionBombError):
            self._notes.add("images of meshes that are no whole PNG, JPEG or WebP")
            return None
        return raw


def _floats(given: Any, default: tuple[float, ...]) -> np.ndarray:
    """Numbers of a JSON file, as many as `default` has."""
    values = default if given is None else given if isinstance(given, list) else [given]
    if len(values) not in (len(default), 3 if len(default) == 4 else len(default)) or not all(map(finite, values)):
        raise Damaged(f"a material or texture has the numbers {word(values)}")
    return np.array([*values, *default[len(values):]], float)
