"""A browser's part of the conversation with viser's server, without a browser: what it is shown, and whatever it may
say."""

from __future__ import annotations

from typing import Any

import msgspec
import viser
import zstandard
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from tests.waiting import until

CAMERA = {
    "type": "ViewerCameraMessage",
    "wxyz": [1.0, 0.0, 0.0, 0.0],
    "position": [1.0, 1.0, 1.0],
    "fov": 1.0,
    "near": 0.01,
    "far": 100.0,
    "image_height": 400,
    "image_width": 600,
    "look_at": [0.0, 0.0, 0.0],
    "up_direction": [0.0, 0.0, 1.0],
}


class Visitor:
    """A connection. headers: that it sends in addition. shown: the messages it got. camera: it tells its camera, as a
    page does."""

    def __init__(self, port: int, headers: dict[str, str] | None = None, camera: bool = True) -> None:
        self._socket = connect(f"ws://127.0.0.1:{port}", subprotocols=[f"viser-v{viser.__version__}"], max_size=None,
                               compression=None, additional_headers=headers, open_timeout=60, close_timeout=60,
                               ping_interval=None)
        self.shown: list[dict[str, Any]] = []
        if camera:
            self.say(CAMERA)

    def __enter__(self) -> Visitor:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def raw(self, data: bytes | str) -> None:
        """Send anything."""
        self._socket.send(data)

    def say(self, message: Any) -> None:
        """Send a message."""
        self.raw(msgspec.msgpack.encode(message))

    def look(self) -> bool:
        """Take what has come; whether the connection is open."""
        try:
            while True:
                data = self._socket.recv(timeout=0.05)  # timed: one look of those that `until` repeats
                size = int.from_bytes(data[8:16], "little")
                content = msgspec.msgpack.decode(zstandard.ZstdDecompressor().decompress(data[16 : 16 + size]))
                self.shown += content["messages"]
        except TimeoutError:
            return True
        except ConnectionClosed:
            return False

    def element(self, label: str) -> str:
        """The identifier of an element by its label, or of a group of buttons by one of them."""
        found: list[str] = []

        def there() -> bool:
            self.look()
            found.extend(message.get("uuid", "")
                         for message in self.shown if isinstance(props := message.get("props", message), dict)
                         and (props.get("label") == label or label in (props.get("options") or ()))
                         and message["type"].endswith("Message"))
            return bool(found)

        until(there, f"the element {label}")
        return found[0]

    def set(self, element: str, value: Any) -> None:
        """Give an element a value."""
        self.say({"type": "GuiUpdateMessage", "uuid": element, "updates": {"value": value}})
