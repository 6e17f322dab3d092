"""The agent of `agent=remote`: observations go to a policy server, and what it answers is carried out.

There is a connection for each slot, so that a server with a memory keeps one for each episode. Sent is a map: each
observation as `observation/<name>`; `prompt`, the task in words; `question`, a number; in the first step of an episode
also `reset` (true) and `seed`; with `remote.chunk` also `__action_chunk_size__`. Answered is a map with `actions`: one
action, or a chunk (actions, numbers), whose actions are carried out one after another. With `remote.protocol=behavior`
messages are those of `eval.remote.behavior`.

An answer belongs to its question. A server that sends `question` back has to send the same number. From any other
server no message may be there that nobody asked for, neither when a question is sent nor after its answer.
"""

from __future__ import annotations

import itertools
import logging
import math
import socket
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping
from typing import Any
from urllib.parse import urlsplit

import gymnasium
import numpy as np
from websockets.exceptions import InvalidHandshake, InvalidURI, WebSocketException
from websockets.sync.client import ClientConnection, connect

from eval.remote import behavior
from eval.remote.wire import MOST_BYTES, BadMessage, pack, unpack
from rearrange.home.settings.remote import MOST_ACTIONS, Remote, RemoteError
from trainer.logs.printable import last_line, printable

_log = logging.getLogger(__name__)
_AGAIN_S = 0.2  # between two tries to connect
_CLOSE_S = 1.0  # for a server to say goodbye
_HERE = ("localhost", "127.0.0.1", "::1")


class RemoteAgent:
    """Asks a server for actions in `space`. prompt: of a slot, what is to be done, in words."""

    def __init__(self, remote: Remote, slots: int, space: gymnasium.Space, prompt: Callable[[int], str]) -> None:
        self._remote, self._url, self._settings = remote, remote.url, remote.settings
        self._space, self._prompt = space, prompt
        self._size = math.prod(space.shape)  # 1 for a choice
        self._of_behavior = self._settings.protocol == "behavior"
        self._asked = self._settings.chunk  # actions of an answer; None: as many as the server gives
        self._connections: list[ClientConnection | None] = [None] * slots
        self._about: list[bytes | None] = [None] * slots  # what the server said of itself
        self._questions, self._numbers = itertools.count(1), [0] * slots  # the number of a slot's question
        self._chunks: list[deque[np.ndarray]] = [deque() for _ in range(slots)]
        self._seeds: list[int | None] = [None] * slots  # of an episode whose first observation has not been sent

    def begin(self, slot: int, seed: int) -> None:
        self._seeds[slot] = seed
        self._chunks[slot].clear()

    def forget(self, slot: int) -> None:
        self.begin(slot, self._seeds[slot] or 0)

    def act(self, observations: Mapping[int, Mapping[str, np.ndarray]],
            mean: Collection[int] = ()) -> dict[int, np.ndarray]:
        asking = [slot for slot in observations if not self._chunks[slot]]
        messages = {slot: self._message(slot, observations[slot]) for slot in asking}
        # All questions are sent before an answer is waited for.
        sent = {slot: self._send(slot, message) for slot, message in messages.items()}
        for slot in asking:
            self._chunks[slot].extend(self._actions(slot, self._answer(slot, messages[slot], sent[slot])))
            self._seeds[slot] = None
        return {slot: self._in_space(self._chunks[slot].popleft()) for slot in observations}

    def end(self, slot: int) -> None:
        connection, self._connections[slot] = self._connections[slot], None
        if connection:
            connection.close()

    def _in_space(self, action: np.ndarray) -> Any:
        """A row of numbers as an action: limited to its bounds, or one of the choices."""
        if isinstance(self._space, gymnasium.spaces.Discrete):
            return int(action[0])
        return np.clip(action, self._space.low, self._space.high).astype(np.float32)

    def _message(self, slot: int, observation: Mapping[str, np.ndarray]) -> list[bytes]:
        """What is sent, one after another; the last is answered."""
        asked = {behavior.CHUNK_SIZE: self._asked} if self._asked else {}
        self._numbers[slot] = next(self._questions)
        if self._of_behavior:
            begin = [pack(behavior.RESET)] if self._seeds[slot] is not None else []
            return [*begin, pack(behavior.message_of(observation, self._settings.task_id) | asked)]
        message: dict[str, Any] = {f"observation/{name}": value if isinstance(value, str) else np.asarray(value)
                                   for name, value in observation.items()}
        message |= {"prompt": self._prompt(slot), "question": self._numbers[slot]} | asked
        if (seed := self._seeds[slot]) is not None:
            message |= {"reset": True, "seed": seed}
        return [pack(message)]

    def _send(self, slot: int, message: list[bytes]) -> bool:
        """Send a message; False where the connection is lost."""
        try:
            if self._connections[slot] is None:
                self._connect(slot)
            self._refuse_unasked(slot)
            self._say(slot, message)
            return True
        except (WebSocketException, OSError):
            return False

    def _say(self, slot: int, message: list[bytes]) -> None:
        for part in message:
            self._connections[slot].send(part)

    def _connect(self, slot: int) -> None:
        """Connect, and refuse a server that says something else of itself than before."""
        self._connections[slot], about = connect_to(self._remote)
        before, self._about[slot] = self._about[slot], about
        if before not in (None, about):
            raise RemoteError(f"the server at {self._url} says something else of itself than before its connection was "
                              "lost: another policy may act there. Run it again.")
        self._refuse_unasked(slot)

    def _refuse_unasked(self, slot: int) -> None:
        """RemoteError where a message nobody asked for is there: answers and questions cannot be matched any more."""
        try:
            _decoded(self._url, self._connections[slot].recv(0))
        except TimeoutError:
            return
        raise RemoteError(f"the server at {self._url} sends more than one answer to a question, or one to none: it has "
                          "to send one for each.")

    def _answer(self, slot: int, message: list[bytes], sent: bool) -> Any:
        """Wait for the answer. A lost connection is made once again."""
        for again in (False, True):
            try:
                if again or not sent:
                    self.end(slot)
                    self._connect(slot)
                    if self._seeds[slot] is None:
                        _log.warning("the connection to %s was lost in an episode and made again: a policy with a "
                                     "memory has forgotten how the episode began.", self._url)
                    self._say(slot, message)
                return self._connections[slot].recv(self._settings.timeout_s)
            except TimeoutError:
                raise RemoteError(f"the server at {self._url} has not answered within {self._settings.timeout_s:g} s: "
                                  "look at what it does, or raise remote.timeout_s=.") from None
            except (WebSocketException, OSError) as error:
                lost = error
        raise RemoteError(f"the server at {self._url} closes the connection: {printable(lost).rstrip('.')}.")

    def _actions(self, slot: int, data: Any) -> np.ndarray:
        """The actions of an answer that are carried out, (actions, numbers)."""
        answer = _decoded(self._url, data)
        says = f"the server at {self._url} answers"
        answer = answer if isinstance(answer, dict) else {}
        if self._of_behavior:
            actions = _numbers(behavior.actions_of(answer, self._asked))
            wanted = "an array 'action' of numbers, and with it 'action_chunk', as many as were asked for, or none"
        else:
            actions, wanted = _numbers(answer.get("actions")), "an array 'actions' of numbers"
        if actions is None or not actions.size or actions.ndim > 2:
            raise RemoteError(f"{says} without actions: it has to send a map with {wanted}.")
        number = answer.get("question", self._numbers[slot])
        if not isinstance(number, int | np.integer) or number != self._numbers[slot]:
            raise RemoteError(f"{says} question {printable(number, 20)}, and was asked question {self._numbers[slot]}: "
                              "it has to answer one after another.")
        actions = np.atleast_2d(actions)
        if actions.shape[1] != self._size:
            raise RemoteError(f"{says} with actions of {actions.shape[1]} numbers, and here they have {self._size}.")
        if len(actions) > MOST_ACTIONS:
            raise RemoteError(f"{says} with {len(actions):,} actions at once: it may send {MOST_ACTIONS:,}.")
        if not np.isfinite(actions).all():
            raise RemoteError(f"{says} with actions that are not finite.")
        if isinstance(self._space,
                      gymnasium.spaces.Discrete) and (wrong := actions[~np.isin(actions, range(self._space.n))]).size:
            raise RemoteError(f"{says} with the choice {wrong[0]:g}, and here they are 0 to {self._space.n - 1}.")
        try:
            self._refuse_unasked(slot)
        except (WebSocketException, OSError):  # closed after its answer: the next question finds out
            pass
        return actions[:self._settings.chunk]


def _numbers(given: Any) -> np.ndarray | None:
    """Numbers, or lists of them, as an array; None for anything else, such as texts and truth values."""
    if isinstance(given, np.generic | np.ndarray):
        return np.asarray(given, np.float64) if given.dtype.kind in "iuf" else None
    try:
        array = np.array(given, object)
        return array.astype(np.float64) if all(type(value) in (int, float) for value in array.flat) else None
    except ValueError:  # rows of different lengths
        return None


def connect_to(remote: Remote) -> tuple[ClientConnection, bytes]:
    """A connection to a server that has said what it is, and what it said. RemoteError where there is none."""
    url, timeout_s = remote.url, remote.settings.timeout_s
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            return _opened(url, timeout_s)
        except (InvalidURI, ValueError) as error:  # ValueError: of a port or a host's name
            raise RemoteError(f"{url} is no address of a server: write ws://host:port.") from error
        except (InvalidHandshake, TimeoutError) as error:
            raise RemoteError(f"what listens at {url} is no policy "
                              f"server: {printable(error).rstrip('.') or 'it says nothing'}.") from error
        except (WebSocketException, OSError) as error:
            if time.monotonic() > deadline:
                raise RemoteError(f"no policy server answers at {url}: {printable(error).rstrip('.')}. Start one, as "
                                  "with 'rearrange serve skill=pick', or give another address.") from error
            time.sleep(_AGAIN_S)


def _opened(url: str, timeout_s: float) -> tuple[ClientConnection, bytes]:
    """Try to connect once; raise what that fails with. A server of this machine is reached without any proxy."""
    there = urlsplit(url)
    here = there.scheme in ("ws", "wss") and there.hostname in _HERE and there.port
    sock = socket.create_connection((there.hostname, there.port), timeout_s) if here else None
    if sock:
        sock.settimeout(None)  # it would count on: a connection that is silent for so long would be lost
    connection = connect(url, sock=sock, compression=None, max_size=MOST_BYTES, open_timeout=timeout_s,
                         close_timeout=_CLOSE_S)
    try:
        about = connection.recv(timeout_s)
        if not isinstance(_decoded(url, about), dict):
            raise RemoteError(f"what listens at {url} is no policy server: it does not say in a map what it is.")
        connection.ping().wait(timeout_s)  # what it sent before it heard this is there then
        return connection, about
    except BaseException:
        connection.close()
        raise


def _decoded(url: str, data: Any) -> Any:
    """Unpack a message of the server. RemoteError where it reports an error or cannot be read."""
    if isinstance(data, str):  # OpenPI's servers send errors so
        raise RemoteError(f"the server at {url} reports an error: {last_line(data)}.")
    try:
        return unpack(data)
    except BadMessage as error:
        raise RemoteError(f"the server at {url} sends a message that cannot be read: {error}.") from error
