"""`rearrange serve`: a policy of ours behind a websocket, for `agent=remote` and for OpenPI's clients."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import Server, ServerConnection, serve

from eval.remote.wire import MOST_BYTES, BadMessage, pack, unpack

PREFIX = "observation/"


def make_server(make_policy: Callable[[], Any], shapes: Mapping[str, tuple[int, ...]], about: Mapping[str, Any], host: str,
                port: int) -> Server:
    """A server that answers observations with actions; a thread, and a policy with its own memory, for each connection.

    make_policy: gives an agent of `eval.agents` with one slot. shapes: of the observations that it needs. about: what the server says of
    itself to who connects. port: 0 takes a free one.
    """

    def talk(connection: ServerConnection) -> None:
        policy = make_policy()
        policy.begin(0, 0)
        try:
            connection.send(pack(dict(about)))
            for data in connection:
                try:
                    message = unpack(data) if isinstance(data, bytes) else None
                    connection.send(pack(_answered(policy, message, shapes)))
                except BadMessage as error:
                    connection.send(f"{error}.")
        except ConnectionClosed:
            pass

    return serve(talk, host, port, compression=None, max_size=MOST_BYTES)


def _answered(policy: Any, message: Any, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Any]:
    """The answer to an observation; BadMessage for what is none."""
    if not isinstance(message, dict):
        raise BadMessage(f"an observation is a map of arrays, {', '.join(PREFIX + name for name in shapes)}")
    observation = {}
    for name, shape in shapes.items():
        value = message.get(PREFIX + name)
        if not isinstance(value, np.ndarray) or value.dtype.kind not in "biuf":
            raise BadMessage(f"{PREFIX}{name} is missing: an array of shape {shape}")
        if value.size != math.prod(shape):
            raise BadMessage(f"{PREFIX}{name} has shape {value.shape}, not {shape}")
        value = value.reshape(shape).astype(np.float32)
        if not np.isfinite(value).all():
            raise BadMessage(f"{PREFIX}{name} has a number that is not finite")
        observation[name] = value
    if message.get("reset"):
        seed = message.get("seed", 0)
        policy.begin(0, seed if isinstance(seed, int) and 0 <= seed < 2**63 else 0)
    action = policy.act({0: observation})[0]
    return {"actions": np.atleast_2d(np.asarray(action, np.float32))}
