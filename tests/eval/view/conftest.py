"""Viewers for tests: of words, turned by the test or by a thread, and a browser's part of the conversation."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.eval.view.visitor import Visitor
from tests.waiting import until


@pytest.fixture
def view() -> Iterator[Callable[..., Any]]:
    """Makes viewers of words."""
    pytest.importorskip("viser", reason="the page needs viser: pip install -e '.[view]'")
    from eval.view.server import make_server, stop
    from eval.view.viewer import Viewer
    from tests.eval.view.views import made

    opened = []

    def make(*words: str, allowed_hosts: tuple[str, ...] = ()) -> Viewer:
        server = make_server("127.0.0.1", 0, allowed_hosts)
        opened.append((server, Viewer(server, *made(*words, "speed=100"))))
        opened[-1][1]._page.was_seen = True  # it plays without waiting for a browser
        return opened[-1][1]

    yield make
    for server, viewer in opened:
        viewer.close()
        stop(server)


@dataclass
class Running:
    """A viewer that a thread turns. errors: what ended that thread."""

    viewer: Any
    port: int
    errors: list[BaseException] = field(default_factory=list)

    def visit(self, **options: Any) -> Visitor:
        """A browser that looks at it."""
        return Visitor(self.port, **options)

    def lives(self) -> None:
        """It still does what is pressed in a new browser, and shows it."""
        with self.visit() as visitor:
            number = self.viewer.session.number
            visitor.set(visitor.element("Play"), "Next")
            until(lambda: self.viewer.session.number == number + 1 or self.errors, "the next episode")
        assert not self.errors


@pytest.fixture
def running(view) -> Iterator[Callable[..., Running]]:
    """Makes viewers that run by themselves."""
    over, threads = threading.Event(), []

    def make(*words: str, **options: Any) -> Running:
        viewer = view(*words, **options)
        made = Running(viewer, viewer._server.get_port())

        def turn() -> None:
            try:
                while not over.is_set():
                    viewer.turn()
            except BaseException as error:
                made.errors.append(error)

        threads.append(threading.Thread(target=turn))
        threads[-1].start()
        return made

    yield make
    over.set()
    for thread in threads:
        thread.join()
