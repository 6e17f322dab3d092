"""What a browser may say. Every message passes here before anything else sees it.

So no handler meets a value of a wrong type, out of bounds, or that the page does not offer.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np

from trainer.logs.printable import printable

MOST_BYTES = 1 << 16  # of a message; those of the page have a few hundred
MOST_TEXT = 200  # characters
MOST_M = 1e6  # of a coordinate
SHORTEST = 1e-9  # of a direction

Check = Callable[[str, Any], None]


class Refused(ValueError):
    """A message that is dropped; says why."""


def _refuse(name: str, value: Any, allowed: str) -> None:
    raise Refused(f"{name} is {allowed}, not {printable(repr(value), 80)}")


def number(low: float, high: float, whole: bool = False) -> Check:
    """A finite number within bounds."""

    def check(name: str, value: Any) -> None:
        if (isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high or whole
            and value != int(value)):
            _refuse(name, value, f"{'an integer' if whole else 'a number'} from {low:.10g} to {high:.10g}")

    return check


def vector(count: int, most: float, shortest: float = 0.0) -> Check:
    """As many finite numbers, each at most `most` in size; shortest: least length of it."""
    one = number(-most, most)

    def check(name: str, value: Any) -> None:
        if not isinstance(value, list) or len(value) != count:
            _refuse(name, value, f"a list of {count} numbers")
        for each in value:
            one(name, each)
        if math.hypot(*value) < shortest:
            _refuse(name, value, f"a direction, at least {shortest:g} long")

    return check


def one_of(*allowed: Any) -> Check:
    """One of these values, with their type."""

    def check(name: str, value: Any) -> None:
        if not any(type(value) is type(each) and value == each for each in allowed):
            _refuse(name, value, f"one of {', '.join(map(str, allowed[:12]))}{', ...' if len(allowed) > 12 else ''}")

    return check


def text(name: str, value: Any) -> None:
    """A short text."""
    if not isinstance(value, str) or len(value) > MOST_TEXT:
        _refuse(name, value, f"a text of at most {MOST_TEXT} characters")


def _points(name: str, value: Any) -> None:
    if not isinstance(value, list) or len(value) != 1:
        _refuse(name, value, "a list of one point")
    vector(2, MOST_M)(name, value[0])


def _updates(name: str, value: Any) -> None:
    if not isinstance(value, dict) or set(value) != {"value"}:
        _refuse(name, value, "a value and nothing else")


_DRAG: dict[str, Check] = {"name": text, "owner": one_of("")}
MESSAGES: dict[str, dict[str, Check]] = {
    "ViewerCameraMessage": {
        "wxyz": vector(4, 2.0, 0.5),
        "position": vector(3, MOST_M),
        "look_at": vector(3, MOST_M),
        "up_direction": vector(3, MOST_M, SHORTEST),
        "fov": number(1e-4, math.pi),
        "near": number(0.0, 1e12),
        "far": number(0.0, 1e12),
        "image_height": number(0, 1e5),
        "image_width": number(0, 1e5),
    },
    "GuiUpdateMessage": {"uuid": text, "updates": _updates},
    "CommandTriggerMessage": {"uuid": text},
    "ScenePointerMessage": {
        "event_type": one_of("click"),
        "ray_origin": vector(3, MOST_M),
        "ray_direction": vector(3, 2.0, 0.5),
        "screen_pos": _points,
        "modifier": one_of("shift"),
    },
    "TransformControlsDragStartMessage": _DRAG,
    "TransformControlsDragEndMessage": _DRAG,
    "TransformControlsUpdateMessage": {**_DRAG, "wxyz": vector(4, 2.0, 0.5), "position": vector(3, MOST_M)},
}
"""What the page sends, and what each part of it may be."""


class Gate:
    """The gate of one page. server: viser's. tell: gets a sentence for each message that is dropped."""

    def __init__(self, server: Any, tell: Callable[[str], None]) -> None:
        self._server, self._tell = server, tell

    def lets_in(self, data: bytes | str) -> bool:
        """Whether a message may be handled; one sentence is told if not."""
        try:
            self._check(data)
            return True
        except Refused as error:
            self._tell(f"a message of a browser was dropped: {error}")
        except Exception as error:  # no message can be so odd that it ends its reader
            self._tell(f"a message of a browser was dropped: it cannot be read ({type(error).__name__})")
        return False

    def _check(self, data: bytes | str) -> None:
        if not isinstance(data, bytes) or len(data) > MOST_BYTES:
            raise Refused(f"it is not binary, or longer than {MOST_BYTES:,} bytes")
        try:
            message = msgspec.msgpack.decode(data)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            raise Refused("it is no MessagePack") from None
        kind = message.pop("type", None) if isinstance(message, dict) else None
        if not isinstance(kind, str) or kind not in MESSAGES:
            raise Refused(f"{printable(repr(kind), 60)} is no message of this page")
        checks = MESSAGES[kind]
        if not set(checks) - {"owner"} <= set(message) <= set(checks):
            raise Refused(f"{kind} has {', '.join(checks)}, not {printable(', '.join(map(str, message)), 120)}")
        for name, value in message.items():
            checks[name](f"{name} of {kind}", value)
        if kind == "ViewerCameraMessage":
            away = np.subtract(message["look_at"], message["position"])
            vector(3, 2 * MOST_M, SHORTEST)("look_at - position", away.tolist())
        elif kind == "GuiUpdateMessage":
            self._check_value(message["uuid"], message["updates"]["value"])
        elif kind == "CommandTriggerMessage" and message["uuid"] not in self._server.gui._command_handle_from_uuid:
            raise Refused("it names a key that this page does not have")
        elif (kind.startswith("TransformControls")
              and message["name"] not in self._server.scene._handle_from_transform_controls_name):
            raise Refused(f"name is {printable(message['name'], 60)}, which nothing in the scene is called that can "
                          "be pulled")

    def _check_value(self, uuid: str, value: Any) -> None:
        """Refuse a value that an element of the page cannot have: no option of it, or out of its bounds."""
        for gui in (self._server.gui, *(client.gui for client in self._server.get_clients().values())):
            if (element := gui._gui_input_handle_from_uuid.get(uuid)) is not None:
                break
        else:
            raise Refused("it sets an element that this page does not have")
        name = getattr(element, "label", "") or "a button"
        try:
            if (options := getattr(element, "options", None)) is not None:
                one_of(*options)(name, value)
            elif isinstance(element.value, bool):
                one_of(True, False)(name, value)
            elif None not in (bounds := (getattr(element, "min", None), getattr(element, "max", None))):
                number(*bounds, whole=isinstance(element.value, int))(name, value)
            else:
                raise Refused(f"{name} cannot be set")
        except Refused:
            gui._websock_interface.queue_message(_as_it_is(uuid, element.value))
            raise


def _as_it_is(uuid: str, value: Any) -> Any:
    """The message that puts an element of the page back to its value."""
    from viser._messages import GuiUpdateMessage

    return GuiUpdateMessage(uuid, {"value": value})
