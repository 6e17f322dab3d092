"""A real browser without a window, and the few commands of the Chrome DevTools protocol that a test needs.

The browser is Chromium: the one inside PySide6 (QtWebEngine, which the `test` extra installs), else one on the machine.
"""

from __future__ import annotations

import base64
import importlib.util
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.waiting import until

START_S, ANSWER_S = 60.0, 60.0
CLICKS = 3  # a page that is still being laid out on a busy machine can move between a look and a press
FLAGS = ("--no-sandbox", "--remote-allow-origins=*")  # it opens our own pages alone, also as root
# drawn by the processor
FLAT, WEBGL = ("--disable-gpu",), ("--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist")
INSTALLED = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# Scrolls to an element, waits until it stays in its place for three frames, and gives its middle.
REST = """new Promise((done) => {
  let before = "", still = 0;
  const look = () => {
    const found = %s;
    found.scrollIntoView({block: "center", behavior: "instant"});
    const {x, y, width, height} = found.getBoundingClientRect();
    still = before === `${x} ${y}` ? still + 1 : 0;
    before = `${x} ${y}`;
    if (still >= 3) done([x + width / 2, y + height / 2]); else requestAnimationFrame(look);
  };
  look();
})"""
QT = """
import sys
from PySide6.QtCore import QUrl
from PySide6.QtWebEngineWidgets import QWebEngineView
from PySide6.QtWidgets import QApplication
application = QApplication(sys.argv)
view = QWebEngineView()
view.resize(1280, 900)
view.load(QUrl("about:blank"))
view.show()
application.exec()
"""


def missing() -> str | None:
    """Why no browser can be started here; None if one can."""
    if importlib.util.find_spec("websockets") is None:
        return "the package websockets is not installed: pip install -e '.[test]'"
    if _installed():
        return None
    if importlib.util.find_spec("PySide6") is None:
        return "there is no browser: neither PySide6 (pip install -e '.[test]') nor Chromium is installed"
    tried = subprocess.run([sys.executable, "-c", "import PySide6.QtWebEngineWidgets"], capture_output=True, text=True)
    return (None if tried.returncode == 0 else "QtWebEngine cannot be loaded "
            f"here: {tried.stderr.strip().splitlines()[-1]}")


def _installed() -> str | None:
    return next(filter(None, map(shutil.which, INSTALLED)), None)


class Page:
    """One page of the browser."""

    def __init__(self, connection: Any):
        self._connection, self._number = connection, 0
        self.messages: list[str] = []  # errors of scripts, and what the browser refused to load or run
        self.requests: list[str] = []  # addresses that the page asked for

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command of the protocol, and its result."""
        self._number += 1
        self._connection.send(json.dumps({"id": self._number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._connection.recv(timeout=ANSWER_S))
            if message.get("id") == self._number:
                assert "error" not in message, f"{method}: {message['error']}"
                return message["result"]
            self._notice(message)

    def _notice(self, message: dict[str, Any]) -> None:
        method, about = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.messages.append(json.dumps(about["exceptionDetails"]))
        elif method == "Log.entryAdded" and about["entry"]["level"] in ("error", "warning"):
            self.messages.append(about["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(about["request"]["url"][:200])

    def open(self, file: Path) -> None:
        """Load a file and wait until it is complete."""
        self.go(file.resolve().as_uri())

    def go(self, address: str) -> None:
        """Load what is at an address and wait until it is complete."""
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Page.navigate", url=address)
        self.until(f"location.href === {json.dumps(address)} && document.readyState === 'complete'")

    def value(self, script: str) -> Any:
        """The value of a JavaScript expression; a promise is awaited."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, f"{script}: {result['exceptionDetails']}"
        return result["result"].get("value")

    def until(self, script: str, timeout_s: float = ANSWER_S) -> None:
        """Wait until an expression is true."""
        until(lambda: self.value(f"Boolean({script})"), script, timeout_s)

    def click(self, selector: str) -> None:
        """Scroll to the middle of the first element of a selector and press the mouse button there; again, where the
        page moved under the mouse."""
        find = f"document.querySelector({json.dumps(selector)})"
        assert self.value(f"{find} !== null"), f"there is no {selector}"
        for _ in range(CLICKS):
            x, y = self.value(REST % find)
            self.value("window.clicked = null; addEventListener('click', (event) => { clicked = event.target; }, "
                       "{capture: true, once: true})")
            for kind in ("mousePressed", "mouseReleased"):
                self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
            self.until("window.clicked")
            if self.value(f"!clicked.isConnected || {find}?.contains(clicked) !== false || "
                          f"clicked.closest('label')?.control === {find}"):
                return
        raise AssertionError(f"{self.value('clicked.outerHTML.slice(0, 200)')} covers {selector}")

    def write(self, text: str) -> None:
        """Type a text into what has the focus."""
        self.call("Input.insertText", text=text)

    def press(self, key: str) -> None:
        """Press a named key, such as Escape, or a letter."""
        number = {"Escape": 27, "Enter": 13}.get(key) or ord(key.upper())
        code = key if len(key) > 1 else f"Key{key.upper()}"
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=code, windowsVirtualKeyCode=number)

    def choose(self, selector: str, option: str) -> None:
        """Take an option of a list by its value, as the keyboard would: the list of options is not part of the page."""
        found = json.dumps(selector)
        self.value(f"(() => {{ const s = document.querySelector({found}); s.value = {json.dumps(option)}; "
                   "s.dispatchEvent(new Event('input', {bubbles: true})); })()")

    def window(self, width: int, height: int, *, dark: bool = False, media: str = "") -> None:
        """Give the window a size in pixels, the reader's wish for dark or light, and a medium, such as print."""
        self.call("Emulation.setEmulatedMedia", media=media,
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                  mobile=width < 600)
        self.until(f"innerWidth === {width}")

    def look(self) -> bytes:
        """A PNG of what the window shows."""
        return base64.b64decode(self.call("Page.captureScreenshot")["data"])


@contextmanager
def browser(webgl: bool = False) -> Iterator[Page]:
    """A page in a new browser process, which ends with the block. webgl: with 3D graphics."""
    from websockets.sync.client import connect

    process = _start((*FLAGS, *(WEBGL if webgl else FLAT)))
    try:
        port = _port(process)
        pages = json.load(
            urllib.request.build_opener(urllib.request.ProxyHandler({})).open(f"http://127.0.0.1:{port}/json"))
        address = next(page["webSocketDebuggerUrl"] for page in pages if page["type"] == "page")
        with connect(address, max_size=None, proxy=None) as connection:
            yield Page(connection)
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def _start(flags: tuple[str, ...]) -> subprocess.Popen:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]  # free now; QtWebEngine does not take 0
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen", "QTWEBENGINE_REMOTE_DEBUGGING": f"127.0.0.1:{port}",
                   "QTWEBENGINE_CHROMIUM_FLAGS": " ".join(flags)}
    command = [sys.executable, "-c", QT]
    if importlib.util.find_spec("PySide6") is None:
        command = [_installed(), "--headless=new", f"--remote-debugging-port={port}", *flags, "about:blank"]
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def _port(process: subprocess.Popen) -> int:
    """The port at which the browser listens, from what it prints; its further lines are read and dropped."""
    lines: list[str] = []
    ready = threading.Event()

    def drain() -> None:
        for line in process.stderr:
            lines.append(line)
            if "DevTools listening" in line:
                ready.set()
        ready.set()

    threading.Thread(target=drain, daemon=True).start()
    ready.wait(START_S)
    found = re.search(r"ws://127\.0\.0\.1:(\d+)/", "".join(lines))
    assert found, f"the browser did not start: {''.join(lines)[-2000:]}"
    return int(found[1])
