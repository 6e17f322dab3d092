"""Messages with numpy arrays as OpenPI's policy servers and clients send them: MessagePack; nothing is executed.

An array is a map {b"__ndarray__": true, b"data": bytes, b"dtype": text, b"shape": list}, a number of numpy
{b"__npgeneric__": true, b"data": value, b"dtype": text} (github.com/Physical-Intelligence/openpi, openpi_client).
"""

from __future__ import annotations

import math
import numbers
from typing import Any

import msgpack
import numpy as np

from trainer.logs.printable import printable

MOST_BYTES = 64 * 2**20
"""No message is longer."""
# The most values of a message outside arrays, in one map or list, and the most sides of an array.
MOST_VALUES, MOST_IN_ONE, MOST_SIDES = 1 << 18, 1 << 14, 32


class BadMessage(ValueError):
    """Something else than such a message."""


def pack(message: Any) -> bytes:
    """A message of maps, lists, texts, numbers and arrays as bytes."""
    return msgpack.packb(message, default=_plain)


def unpack(data: bytes) -> Any:
    """The message. BadMessage for anything else, and for more values outside arrays than a message has."""
    count = 0

    def counted(values: Any) -> Any:
        nonlocal count
        count += 1 + len(values)
        if count > MOST_VALUES:
            raise BadMessage(f"it has more than {MOST_VALUES:,} values outside arrays")
        return values

    try:
        return msgpack.unpackb(data, object_hook=lambda entries: _array(counted(entries)), list_hook=counted,
                               strict_map_key=False, max_array_len=MOST_IN_ONE, max_map_len=MOST_IN_ONE)
    except BadMessage:
        raise
    except Exception as error:  # of many kinds: msgpack's own, ValueError, UnicodeDecodeError, RecursionError
        raise BadMessage(f"it is no MessagePack ({type(error).__name__})") from error


def _plain(value: Any) -> dict[bytes, Any]:
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        return {b"__ndarray__": True, b"data": value.tobytes(), b"dtype": value.dtype.str, b"shape": value.shape}
    if isinstance(value, np.generic) and value.dtype.kind in "biuf":
        return {b"__npgeneric__": True, b"data": value.item(), b"dtype": value.dtype.str}
    raise TypeError(f"{type(value).__name__} cannot be sent")


def _array(entries: dict[Any, Any]) -> Any:
    of = {key.encode() if isinstance(key, str) else key: value for key, value in entries.items()}
    if b"__ndarray__" not in of and b"__npgeneric__" not in of:
        return entries
    data, shape, name = of.get(b"data"), of.get(b"shape", ()), of.get(b"dtype")
    try:
        dtype = np.dtype(name if isinstance(name, str) else object)
    except Exception:  # of many kinds: TypeError, ValueError, SyntaxError
        dtype = np.dtype(object)
    if dtype.kind not in "biuf":
        raise BadMessage(f"it has an array of type {printable(repr(name), 40)}, which is none of numbers")
    if b"__npgeneric__" in of:
        if not isinstance(data, numbers.Real):
            raise BadMessage("it has a number that is none")
        return dtype.type(data)
    sizes = isinstance(shape, (list, tuple)) and len(shape) <= MOST_SIDES
    sizes = sizes and all(type(size) is int and size >= 0 for size in shape)
    if not sizes or not isinstance(data, bytes) or math.prod(shape) * dtype.itemsize != len(data):
        raise BadMessage("it has an array whose shape does not fit its data")
    return np.frombuffer(data, dtype).reshape(shape)
