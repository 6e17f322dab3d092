"""Agents of the user's own beside a page that others look at.

Their code runs in a thread of its own. An agent that never answers, or ends the program, stops the episode alone.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, wait
from typing import Any

import numpy as np

from rearrange.home.errors import UserError
from trainer.logs.printable import first_line

LOAD_S, ANSWER_S = 120.0, 10.0  # for which loading, and any other call, is waited for


class Apart:
    """One thread for the calls of one agent, which ends with this object. said: how a sentence names it."""

    def __init__(self, said: str) -> None:
        self._said = said
        self._asked: queue.SimpleQueue[tuple[Future, Callable[..., Any], tuple[Any, ...]] | None] = queue.SimpleQueue()
        self._open: tuple[str, Future] | None = None
        threading.Thread(target=_work, args=(self._asked, said), name=said, daemon=True).start()

    def __del__(self) -> None:
        self._asked.put(None)

    def call(self, name: str, limit_s: float, function: Callable[..., Any], *values: Any) -> Any:
        """The result of a function. UserError after the limit; the next call of this name waits for the same answer."""
        if self._open and self._open[0] != name and self._open[1].done():
            self._open = None
        if self._open is None:
            self._open = name, Future()
            self._asked.put((self._open[1], function, values))
        asked, answer = self._open
        if asked != name or not wait([answer], limit_s).done:
            raise UserError(f"{self._said} has not answered ({asked}) for {limit_s:.0f} s: press Play to wait on, or "
                            "choose another agent.")
        self._open = None
        return answer.result()


def _work(asked: queue.SimpleQueue, said: str) -> None:
    while (question := asked.get()) is not None:
        answer, call, values = question
        try:
            answer.set_result(call(*values))
        except Exception as error:
            answer.set_exception(error)
        except BaseException as error:  # sys.exit
            answer.set_exception(UserError(f"{said} ends the program ({type(error).__name__}: {first_line(error)})."))
        del question, answer, call, values


class OwnAgentApart:
    """An agent whose every call happens in that thread, its making included."""

    def __init__(self, said: str, make: Callable[[], Any]) -> None:
        self._thread = Apart(said)
        self._agent = self._thread.call("load", LOAD_S, make)

    def begin(self, slot: int, seed: int) -> None:
        self._thread.call("reset", ANSWER_S, self._agent.begin, slot, seed)

    def forget(self, slot: int) -> None:
        self._thread.call("forget", ANSWER_S, self._agent.forget, slot)

    def act(self, observations: Mapping[int, Mapping[str, np.ndarray]], mean: Collection[int] = ()) -> dict[int, Any]:
        return self._thread.call("act", ANSWER_S, self._agent.act, observations, mean)

    def end(self, slot: int) -> None:
        self._thread.call("end", ANSWER_S, self._agent.end, slot)
