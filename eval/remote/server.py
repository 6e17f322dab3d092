"""`rearrange serve`: a policy of ours behind a websocket, for `agent=remote`, OpenPI's and BEHAVIOR's clients."""

from __future__ import annotations

import ipaddress
import logging
import numbers
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

import gymnasium
import numpy as np
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.sync.server import Server, ServerConnection, serve

from eval.remote import behavior
from eval.remote.wire import MOST_BYTES, BadMessage, pack, unpack
from rearrange.home.robot.robot import RANGE_M
from rearrange.home.settings.remote import MOST_ACTIONS
from trainer.logs.printable import first_line

PREFIX = "observation/"
GIVE = 0.01  # of the range of an observation by which a number may be outside, and is brought back
_MOST = float(np.finfo(np.float32).max)
_QUIET = logging.Logger("serve", logging.CRITICAL)  # who connects and says nonsense, or leaves, is no news


class Fails(Exception):
    """The policy cannot go on, in words for who asked."""


def make_server(make_policy: Callable[[], Any], spaces: Mapping[str, gymnasium.spaces.Box], about: Mapping[str, Any],
                host: str, port: int, chunk: int = 1, range_m: float = RANGE_M) -> Server:
    """A server that answers observations with actions. Pages of other sites in a browser are refused.

    Each connection has a thread, and a policy with its own memory.

    Args:
        make_policy: gives an agent of `eval.agents` with one slot.
        spaces: of the observations that it needs, by name.
        about: what the server says of itself to who connects.
        host: is listened at.
        port: 0 takes a free one.
        chunk: actions of an answer, where a client does not ask for another number.
        range_m: the depth that the policy sees as 1; BEHAVIOR's clients send metres.
    """

    def talk(connection: ServerConnection) -> None:
        policy = make_policy()
        policy.begin(0, 0)
        try:
            connection.send(pack(dict(about)))
            for data in connection:
                try:
                    message = unpack(data) if isinstance(data, bytes) else None
                    answer = _answered(policy, message, spaces, chunk, range_m)
                    if answer is not None:
                        connection.send(pack(answer))
                except BadMessage as error:
                    connection.send(f"{error}.")
                except Fails as error:  # its memory may hold anything: it ends with the connection
                    connection.send(f"{error}.")
                    return
        except ConnectionClosed:
            pass

    def before_talk(connection: ServerConnection, request: Request) -> Response | None:
        """Say that it is there to who asks for /healthz; refuse a page that did not come from this very address, which
        no name of another site leads to."""
        origins, named = request.headers.get_all("Origin"), request.headers.get_all("Host")
        if not origins or len(origins) == len(named) == 1 and _is_address(named[0], host) and origins[0] in (
                f"http://{named[0]}", f"https://{named[0]}"):
            return connection.respond(HTTPStatus.OK, "OK\n") if request.path == "/healthz" else None
        return connection.respond(HTTPStatus.FORBIDDEN,
                                  "web pages of other sites are refused: leave the header Origin out\n")

    return serve(talk, host, port, compression=None, max_size=MOST_BYTES, process_request=before_talk, logger=_QUIET)


def _is_address(named: str, host: str) -> bool:
    """Whether `name:port` names this machine by a number, as localhost, or as it was told to listen."""
    name = named.rpartition(":")[0] if named.rpartition(":")[2].isdigit() else named
    try:
        ipaddress.ip_address(name.strip("[]"))
        return True
    except ValueError:
        return name in ("localhost", host)


def _answered(policy: Any, message: Any, spaces: Mapping[str, gymnasium.spaces.Box],
              chunk: int, range_m: float) -> dict[str, Any] | None:
    """The answer to an observation; None to BEHAVIOR's word that an episode begins. BadMessage; Fails."""
    if not isinstance(message, dict):
        raise BadMessage(f"an observation is a map of arrays, {', '.join(PREFIX + name for name in spaces)}")
    if message.keys() == behavior.RESET.keys() and message["reset"] is True:
        _tried(policy.begin, 0, 0)
        return None
    of_behavior = behavior.is_observation(message)
    if of_behavior:
        given, prefix = behavior.observation_of(message, spaces, range_m), ""
    else:
        given, prefix = message, PREFIX
    observation = {name: _within(prefix + name, given.get(prefix + name), space) for name, space in spaces.items()}
    count = message.get(behavior.CHUNK_SIZE, 1 if of_behavior else chunk)
    if isinstance(count, bool) or not isinstance(count, numbers.Integral) or not 1 <= count <= MOST_ACTIONS:
        raise BadMessage(f"{behavior.CHUNK_SIZE} is a whole number from 1 to {MOST_ACTIONS:,}")
    reset, seed = message.get("reset", False), message.get("seed", 0)
    if not isinstance(reset, bool | np.bool_):
        raise BadMessage("reset is true or false")
    if isinstance(seed, bool) or not isinstance(seed, numbers.Integral) or not 0 <= seed < 2**63:
        raise BadMessage("seed is a whole number from 0 to 2**63 - 1")
    if reset:
        _tried(policy.begin, 0, int(seed))
    actions = np.array([np.ravel(_tried(policy.act, {0: observation})[0]) for _ in range(count)], np.float32)
    if not np.isfinite(actions).all():
        raise Fails("the policy answers this observation with numbers that are not finite")
    if of_behavior:
        return behavior.answer_of(actions, message)
    return {"actions": actions} | {key: message[key] for key in ("question",)
                                   if isinstance(message.get(key), numbers.Integral)}


def _tried(call: Callable[..., Any], *values: Any) -> Any:
    """What a call of the policy gives. Fails for whatever a network of one's own raises."""
    try:
        return call(*values)
    except Exception as error:
        raise Fails(f"the policy fails: {type(error).__name__}: {first_line(error)}") from error


def _within(name: str, value: Any, space: gymnasium.spaces.Box) -> np.ndarray:
    """An observation in its space. BadMessage for one of another shape, or that is more than a little outside."""
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "biuf":
        raise BadMessage(f"{name} is missing: an array of shape {space.shape}")
    if [size for size in value.shape if size != 1] != [size for size in space.shape if size != 1]:
        raise BadMessage(f"{name} has shape {value.shape}, not {space.shape}")
    value, low, high = value.reshape(space.shape), space.low.astype(np.float64), space.high.astype(np.float64)
    if not np.isfinite(value).all():
        raise BadMessage(f"{name} has a number that is not finite")
    with np.errstate(over="ignore"):
        give = GIVE * (high - low)
        wrong = (value < low - give) | (value > high + give)
    if wrong.any():
        raise BadMessage(f"{name} has the number {float(value[wrong][0]):g}, and it lies between {low[wrong][0]:g} "
                         f"and {high[wrong][0]:g}")
    return np.clip(value.astype(np.float64), low, high).clip(-_MOST, _MOST).astype(np.float32)
