"""Numbers of a GLB file: accessors, as the glTF 2.0 specification defines them, with every length and index checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from rearrange.home.scene_files.reading import word

MOST_ELEMENTS = 6_000_000  # of an accessor
MOST_VALUES = 50_000_000  # numbers of a file, counted once for each accessor: many can share a few bytes
_TYPES = {5120: np.int8, 5121: np.uint8, 5122: np.int16, 5123: np.uint16, 5125: np.uint32, 5126: np.float32}
_WIDTHS = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4}
_COMPRESSED = ("EXT_meshopt_compression", "KHR_meshopt_compression")  # of a buffer view


class Damaged(Exception):
    """What is wrong with a file, as the end of a sentence."""


def whole(given: dict, key: str, default: int | None = None) -> int:
    """A whole number, at least 0, of a JSON object."""
    value = given.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 40:
        raise Damaged(f"{key} should be a whole number, not {word(value)}")
    return value


class Accessors:
    """Reads the accessors of a file. content: its JSON. binary: its first buffer."""

    def __init__(self, content: dict, binary: bytes) -> None:
        self._content, self._binary, self._kept, self._values = content, binary, {}, 0

    def at(self, kind: str, index: Any) -> dict:
        """An entry of one of the lists of the file, as "nodes"."""
        listed = self._content.get(kind, [])
        if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < len(listed):
            raise Damaged(f"it names entry {word(index)} of its {len(listed)} {kind}")
        if not isinstance(listed[index], dict):
            raise Damaged(f"entry {index} of its {kind} is no object")
        return listed[index]

    def count(self, index: Any) -> int:
        """Elements of an accessor."""
        return whole(self.at("accessors", index), "count")

    def values(self, index: Any) -> np.ndarray:
        """An accessor: (count,) or (count, width); whole numbers that are normalised as floats in [0, 1] or [-1, 1]."""
        if index not in self._kept:
            self._kept[index] = self._read(self.at("accessors", index))
        return self._kept[index]

    def _read(self, accessor: dict) -> np.ndarray:
        if accessor.get("componentType") not in _TYPES or accessor.get("type") not in _WIDTHS:
            kinds = " ".join(word(accessor.get(key)) for key in ("componentType", "type"))
            raise Damaged(f"it has numbers of the type {kinds}")
        dtype, width = np.dtype(_TYPES[accessor["componentType"]]), _WIDTHS[accessor["type"]]
        if (count := whole(accessor, "count")) > MOST_ELEMENTS:
            found = f"{count:,} corners or indices"
            raise Damaged(f"it has a list of {found}, more than {MOST_ELEMENTS:,}; make it coarser")
        self._values += count * width
        if self._values > MOST_VALUES:
            lists = "its lists of corners, colours and indices"
            raise Damaged(f"{lists} have more than {MOST_VALUES:,} numbers; make it coarser")
        if "bufferView" in accessor:
            values = self._strided(accessor["bufferView"], whole(accessor, "byteOffset", 0), dtype, width, count)
        else:
            values = np.zeros((count, width), dtype)
        if "sparse" in accessor:
            values = self._with_sparse(values.copy(), accessor["sparse"])
        if accessor.get("normalized") and dtype.kind in "iu":
            values = np.maximum(values / np.iinfo(dtype).max, -1.0)
        return values[:, 0] if width == 1 else values

    def _with_sparse(self, values: np.ndarray, sparse: dict) -> np.ndarray:
        count, places, given = whole(sparse, "count"), sparse["indices"], sparse["values"]
        if places.get("componentType") not in (5121, 5123, 5125) or count > len(values):
            raise Damaged(f"{count} of its {len(values)} sparse values are replaced")
        kind = np.dtype(_TYPES[places["componentType"]])
        rows = self._strided(places["bufferView"], whole(places, "byteOffset", 0), kind, 1, count)
        if count and rows.max() >= len(values):
            raise Damaged(f"its sparse value {rows.max()} is not among {len(values)}")
        start, width = whole(given, "byteOffset", 0), values.shape[1]
        values[rows[:, 0]] = self._strided(given["bufferView"], start, values.dtype, width, count)
        return values

    def _strided(self, index: Any, offset: int, dtype: np.dtype, width: int, count: int) -> np.ndarray:
        """(count, width) of a buffer view."""
        view, size = self.at("bufferViews", index), dtype.itemsize * width
        stride = whole(view, "byteStride", size)
        if stride < size or stride > 252 and stride != size:
            raise Damaged(f"its numbers of {size} bytes lie {stride} bytes apart")
        raw = self.bytes_of(index)
        if count and offset + (count - 1) * stride + size > len(raw):
            place = f"{count:,} values from byte {offset:,} on in {len(raw):,} bytes"
            raise Damaged(f"it is shorter than its geometry: {place}")
        found = np.ndarray((count, width), dtype.newbyteorder("<"), raw, offset, (stride, dtype.itemsize))
        return found.astype(dtype, copy=False)

    def bytes_of(self, index: Any) -> memoryview:
        """A buffer view."""
        view = self.at("bufferViews", index)
        if packed := [name for name in _COMPRESSED if name in view.get("extensions", {})]:
            raise Damaged(f"it needs {packed[0]}, which is not read; save it without compression")
        if whole(view, "buffer", 0) != 0 or "uri" in self.at("buffers", 0):
            raise Damaged("it keeps its geometry outside of itself; save it as one GLB file")
        start, length = whole(view, "byteOffset", 0), whole(view, "byteLength")
        if start + length > len(self._binary):
            place = f"{length:,} bytes from byte {start:,} on in {len(self._binary):,}"
            raise Damaged(f"it is shorter than its geometry: {place}")
        return memoryview(self._binary)[start:start + length]
