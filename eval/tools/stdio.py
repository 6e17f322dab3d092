"""The Model Context Protocol on standard input and output. It runs in a thread; calls are carried out in the main one.

Standard output belongs to the protocol: whatever else is printed goes to standard error.
"""

from __future__ import annotations

import base64
import io
import os
import queue
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import numpy as np

from eval.tools.manual import MANUAL, TOOLS
from eval.tools.toolbox import Answer
from rearrange import __version__
from rearrange.home.errors import UserError

BUSY = Answer("Another call is under way, and one is carried out at a time: wait for its answer.", refused=True)


def require_package() -> None:
    """UserError where the protocol is not installed."""
    if find_spec("mcp") is None:
        raise UserError("rearrange tools needs one more package: pip install 'rearrange[tools]'.")


@dataclass
class Call:
    """A call that waits for its answer."""

    name: str
    arguments: dict[str, Any]
    answer: Future[Answer] = field(default_factory=Future)


class Stdio:
    """A client on standard input and output, which is greeted at once: clients wait no longer than some seconds.

    closed: it has gone.
    """

    def __init__(self) -> None:
        sys.stdout.flush()
        self._input, self._output = os.fdopen(os.dup(0), encoding="utf-8", errors="replace"), os.dup(1)
        os.dup2(2, 1)
        self.closed = threading.Event()
        self._busy = False
        self._calls: queue.SimpleQueue[Call | None] = queue.SimpleQueue()
        threading.Thread(target=self._serve, name="protocol", daemon=True).start()

    def calls(self) -> Iterator[Call]:
        """The calls of the client until it goes. A call that comes before the last one is answered is refused."""
        while (call := self._calls.get()) is not None:
            yield call

    def reply(self, call: Call, answer: Answer) -> None:
        """Answer a call; the next one may come."""
        self._busy = False
        call.answer.set_result(answer)

    def _serve(self) -> None:
        import anyio

        try:
            anyio.run(self._talk)
        except* OSError:  # it does not listen any more
            pass
        finally:
            self.closed.set()
            self._calls.put(None)

    async def _talk(self) -> None:
        import anyio
        from mcp.server.lowlevel import Server
        from mcp.server.stdio import stdio_server

        server = Server("rearrange", version=__version__, instructions=MANUAL, on_list_tools=_tools,
                        on_call_tool=self._called)
        output = anyio.wrap_file(os.fdopen(self._output, "w", encoding="utf-8"))
        async with stdio_server(self._lines(), output) as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())

    async def _lines(self) -> AsyncIterator[str]:
        import anyio

        async for line in anyio.wrap_file(self._input):
            yield line
        self.closed.set()

    async def _called(self, context: Any, params: Any) -> Any:
        import asyncio

        if self._busy:
            return _result(BUSY)
        self._busy = True
        call = Call(params.name, params.arguments or {})
        call.answer.set_running_or_notify_cancel()  # who no longer waits does not keep it from being given
        self._calls.put(call)
        return _result(await asyncio.wrap_future(call.answer))


async def _tools(context: Any, params: Any) -> Any:
    from mcp import types

    return types.ListToolsResult(tools=[types.Tool(name=tool.name, description=tool.text, input_schema=tool.schema())
                                        for tool in TOOLS.values()])


def _result(answer: Answer) -> Any:
    """An answer as the protocol has it."""
    from mcp import types

    content: list[Any] = [types.TextContent(text=answer.text)]
    if answer.picture is not None:
        content.append(types.ImageContent(data=_png(answer.picture), mime_type="image/png"))
    return types.CallToolResult(content=content, is_error=answer.refused)


def _png(image: np.ndarray) -> str:
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(image).save(file, "png")
    return base64.b64encode(file.getvalue()).decode()
