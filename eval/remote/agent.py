"""The agent of `agent=remote`: observations go to a policy server, and what it answers is carried out.

A connection for each slot, so that a server with a memory keeps one for each episode. Sent is a map: each observation of the skill as
`observation/<name>`; `prompt`, what is to be done, in words; in the first step of an episode also `reset` (true) and `seed`. Answered is
a map with `actions`: one action, or a chunk of them, (actions, numbers), which are carried out one after another.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping
from typing import Any

import gymnasium
import numpy as np
from websockets.exceptions import InvalidHandshake, InvalidURI, WebSocketException
from websockets.sync.client import ClientConnection, connect

from eval.remote.settings import Remote, RemoteError
from eval.remote.wire import MOST_BYTES, BadMessage, pack, unpack

_AGAIN_S = 0.2  # between two tries to connect
_CLOSE_S = 1.0  # for a server to say goodbye


class RemoteAgent:
    """Asks a server for actions in `space`. prompt: of a slot, what is to be done, in words."""

    def __init__(self, remote: Remote, slots: int, space: gymnasium.Space, prompt: Callable[[int], str]) -> None:
        self._remote, self._url, self._settings, self._space, self._prompt = remote, remote.url, remote.settings, space, prompt
        self._size = math.prod(space.shape)  # 1 for a choice
        self._connections: list[ClientConnection | None] = [None] * slots
        self._chunks: list[deque[np.ndarray]] = [deque() for _ in range(slots)]
        self._seeds: list[int | None] = [None] * slots  # of an episode whose first observation has not been sent

    def begin(self, slot: int, seed: int) -> None:
        self._seeds[slot] = seed
        self._chunks[slot].clear()

    def forget(self, slot: int) -> None:
        self.begin(slot, self._seeds[slot] or 0)

    def act(self, observations: Mapping[int, Mapping[str, np.ndarray]], mean: Collection[int] = ()) -> dict[int, np.ndarray]:
        asking = [slot for slot in observations if not self._chunks[slot]]
        messages = {slot: self._message(slot, observations[slot]) for slot in asking}
        sent = {slot: self._send(slot, message) for slot, message in messages.items()}  # all of them, before one is waited for
        for slot in asking:
            self._chunks[slot].extend(self._actions(self._answer(slot, messages[slot], sent[slot])))
            self._seeds[slot] = None
        return {slot: self._in_space(self._chunks[slot].popleft()) for slot in observations}

    def end(self, slot: int) -> None:
        connection, self._connections[slot] = self._connections[slot], None
        if connection:
            connection.close()

    def _in_space(self, action: np.ndarray) -> Any:
        """A row of numbers as an action: limited to its bounds, or one of the choices."""
        if isinstance(self._space, gymnasium.spaces.Discrete):
            return int(min(max(round(float(action[0])), 0), self._space.n - 1))
        return np.clip(action, self._space.low, self._space.high)

    def _message(self, slot: int, observation: Mapping[str, np.ndarray]) -> bytes:
        message: dict[str, Any] = {f"observation/{name}": value if isinstance(value, str) else np.asarray(value)
                                   for name, value in observation.items()}
        message["prompt"] = self._prompt(slot)
        if (seed := self._seeds[slot]) is not None:
            message |= {"reset": True, "seed": seed}
        return pack(message)

    def _send(self, slot: int, message: bytes) -> bool:
        """False: the connection is lost."""
        self._connections[slot] = self._connections[slot] or connect_to(self._remote)
        try:
            self._connections[slot].send(message)
            return True
        except (WebSocketException, OSError):
            return False

    def _answer(self, slot: int, message: bytes, sent: bool) -> Any:
        """What the server answers; a connection that is lost is made once again."""
        for again in (False, True):
            try:
                if again or not sent:
                    self.end(slot)
                    self._connections[slot] = connect_to(self._remote)
                    self._connections[slot].send(message)
                return self._connections[slot].recv(self._settings.timeout_s)
            except TimeoutError:
                raise RemoteError(f"the server at {self._url} has not answered within {self._settings.timeout_s:g} s: look at what it "
                                  "does, or raise remote.timeout_s=.") from None
            except (WebSocketException, OSError) as error:
                lost = error
        raise RemoteError(f"the server at {self._url} closes the connection: {lost}.")

    def _actions(self, data: Any) -> np.ndarray:
        """The actions of an answer that are carried out, (actions, numbers)."""
        answer = _decoded(self._url, data)
        given = answer.get("actions") if isinstance(answer, dict) else None
        if isinstance(given, (int, float)):
            given = [given]
        try:
            actions = np.asarray(given, np.float32)
        except (TypeError, ValueError):
            actions = np.empty(0)
        if given is None or not actions.size or actions.ndim > 2:
            raise RemoteError(f"the server at {self._url} answers without actions: it has to send a map with an array 'actions'.")
        actions = np.atleast_2d(actions)
        if actions.shape[1] != self._size:
            raise RemoteError(f"the server at {self._url} answers with actions of {actions.shape[1]} numbers, and here they have "
                              f"{self._size}.")
        if not np.isfinite(actions).all():
            raise RemoteError(f"the server at {self._url} answers with actions that are not finite.")
        return actions[:self._settings.chunk]


def connect_to(remote: Remote) -> ClientConnection:
    """A connection to a server that has said what it is. RemoteError where there is none."""
    url, timeout_s = remote.url, remote.settings.timeout_s
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            connection = connect(url, compression=None, max_size=MOST_BYTES, open_timeout=timeout_s,
                                 close_timeout=_CLOSE_S).__enter__()  # closed by `end`
            _decoded(url, connection.recv(timeout_s))
            return connection
        except InvalidURI as error:
            raise RemoteError(f"{url} is no address of a server: write ws://host:port.") from error
        except (InvalidHandshake, TimeoutError) as error:
            raise RemoteError(f"what listens at {url} is no policy server: {error or 'it says nothing'}.") from error
        except (WebSocketException, OSError) as error:
            if time.monotonic() > deadline:
                raise RemoteError(f"no policy server answers at {url}: {error}. Start one, as with 'rearrange serve skill=pick', or give "
                                  "another address.") from error
            time.sleep(_AGAIN_S)


def _decoded(url: str, data: Any) -> Any:
    """What a message of the server says."""
    if isinstance(data, str):  # OpenPI's servers send errors so
        raise RemoteError(f"the server at {url} reports an error: {(data.strip().splitlines() or ['nothing'])[-1].rstrip('.')}.")
    try:
        return unpack(data)
    except BadMessage as error:
        raise RemoteError(f"the server at {url} sends a message that cannot be read: {error}.") from error
