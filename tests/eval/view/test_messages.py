"""No message of a browser ends a viewer, or reaches a handler with a value that the page does not offer."""

from __future__ import annotations

import json
import math
import random
import sys

import msgspec
import pytest

viser = pytest.importorskip("viser", reason="the page needs viser: pip install -e '.[view]'")

from tests.eval.view.visitor import CAMERA, Visitor  # noqa: E402
from tests.waiting import until  # noqa: E402

NAN, INF = math.nan, math.inf
ODD = [
    NAN,
    INF,
    -INF,
    1e300,
    -1,
    -1e-300,
    2**63 - 1,
    2**32,
    0.5,
    "",
    "0",
    "x" * 100_000,
    "\x1b[2J",
    None,
    True,
    [],
    [1],
    {},
    {"a": 1},
    b"\0",
    [[[]]],
    msgspec.msgpack.Ext(5, b"x"),
    "os:system",
    "tests.eval.view.never:Agent",
    "/etc/passwd",
    "../..",
    "skill=nothing",
    "x 3",
    "Quit",
]
ELEMENTS = (
    "Task",
    "Agent",
    "Seed",
    "Episode",
    "Speed",
    "Camera",
    "Grip",
    "Record",
    "Cut walls down",
    "Play",
    "forward",
    "up",
    "left",
    "ahead",
    "it is done",
)
CLICK = {
    "type": "ScenePointerMessage",
    "event_type": "click",
    "ray_origin": [0.0, 0.0, 2.0],
    "ray_direction": [0.0, 0.6, -0.8],
    "screen_pos": [[0.5, 0.5]],
    "modifier": "shift",
}
PULL = {
    "type": "TransformControlsUpdateMessage",
    "name": "/hand",
    "wxyz": [1.0, 0.0, 0.0, 0.0],
    "position": [1.0, 1.0, 1.0],
    "owner": "",
}
OTHERS = (
    {"type": "GuiButtonHoldMessage", "uuid": "x", "frequency": 1.0},
    {"type": "GuiFormSubmitMessage", "uuid": "x"},
    {"type": "GuiFormDirtyMessage", "uuid": "x"},
    {"type": "RunJavascriptMessage", "source": "alert()"},
    {"type": "ShareUrlRequest"},
    {"type": "ShareUrlDisconnect"},
    {"type": "ResetGuiMessage"},
    {"type": "GetRenderResponseMessage", "payload": b"", "render_uuid": "x"},
    {
        "type": "FileTransferStartUpload",
        "source_component_uuid": "x",
        "transfer_uuid": "x",
        "filename": "/etc/x",
        "mime_type": "",
        "part_count": 0,
        "size_bytes": 0,
    },
    {"type": "FileTransferPart", "source_component_uuid": None, "transfer_uuid": "x", "part_index": 0, "content": b""},
    {"type": "LocalStorageGetItemResponseMessage", "value": None, "error": None, "request_uuid": "x"},
    {
        "type": "SceneNodeClickMessage",
        "name": "/hand",
        "instance_index": 0,
        "ray_origin": [0, 0, 0],
        "ray_direction": [0, 0, 1],
        "screen_pos": [0, 0],
        "modifier": None,
        "owner": "",
    },
    {"type": "SceneNodeUpdateMessage", "name": "/hand", "updates": {"position": NAN}},
)


def damaged(message: dict, rng: random.Random):
    """Every way in which one part of a message is odd, missing or too much."""
    for name, value in message.items():
        for odd in ODD:
            yield message | {name: odd}
            if isinstance(value, list) and value:
                at = rng.randrange(len(value))
                yield message | {name: [*value[:at], odd, *value[at + 1 :]]}
        yield {other: each for other, each in message.items() if other != name}
        if isinstance(value, list):
            yield message | {name: value + value}
            yield message | {name: [0.0] * len(value)}
    yield message | {"more": 1}


def test_no_message_ends_a_viewer_or_sets_what_is_not_offered(running, capfd):
    made = running("skill=pick", "agent=teleop")
    viewer, rng = made.viewer, random.Random(0)
    page, session = viewer._page, viewer.session
    begun = (page.task.value, page.agent.value, page.seed.value, page.episode.value, page._speed.value)
    with made.visit() as visitor:
        elements = [visitor.element(label) for label in ELEMENTS]
        keys = [message["uuid"] for message in visitor.shown if message["type"] == "RegisterCommandMessage"]
        assert keys
        for data in (b"", b"\xc1", b"\x81", b"\xff" * 50, b"\x91" * 60_000, "text", "{}", b"\xdf\xff\xff\xff\xff",
                     rng.randbytes(60_000)):
            visitor.raw(data)
        for odd in ODD:
            visitor.say(odd)
            visitor.say({"type": odd})
            for element in elements:
                if odd is not True:
                    visitor.set(element, odd)
                visitor.say({"type": "GuiUpdateMessage", "uuid": element, "updates": {"update_cb": odd}})
                visitor.say({"type": "GuiUpdateMessage", "uuid": element, "updates": {"value": odd, "removed": odd}})
            visitor.say({"type": "GuiUpdateMessage", "uuid": odd, "updates": {"value": odd}})
            visitor.say({"type": "CommandTriggerMessage", "uuid": odd})
        for message in (*damaged(CAMERA, rng), *damaged(PULL, rng), *damaged(CLICK, rng), *OTHERS):
            visitor.say(message)
        assert visitor.look(), "one bad message is dropped, the next one is heard"
        made.lives()
        assert visitor.look()
    assert (page.task.value, page.agent.value, page.seed.value, page.episode.value - 1, page._speed.value) == begun
    assert viewer.session is session and "tests.eval.view.never" not in sys.modules
    assert all(type(element.value) is bool for element in (page.grip, page.record, page.low_walls))
    for client in viewer._server.get_clients().values():
        assert all(map(math.isfinite, (*client.camera.position, *client.camera.look_at)))
    said = capfd.readouterr().err
    assert "Traceback" not in said and "rearrange view: a message of a browser was dropped: " in said
    assert all(len(line) < 500 and line.isprintable() for line in said.splitlines())


@pytest.mark.parametrize("label, value, reason",
                         [("Seed", 1e300, "Seed is an integer from 0 to 4294967295, not 1e+300"),
                          ("Seed", NAN, "not nan"), ("Episode", 2**40, "Episode is an integer from 0"),
                          ("Seed", 0.5, "not 0.5"), ("Agent", "os:system", "Agent is one of expert, not 'os:system'"),
                          ("Task", "skill=x", "Task is one of hab="), ("Speed", "x 1e9", "Speed is one of x 0.25, "),
                          ("Play", "Quit", "a button is one of Play, Pause, "),
                          ("Record", 1, "Record is one of True, False")])
def test_a_value_that_is_not_offered_is_one_sentence_and_is_put_back(page, label, value, reason, capfd):
    server, page = page
    with Visitor(server.get_port()) as visitor, Visitor(server.get_port()) as other:
        element = visitor.element(label)
        other.element(label)
        visitor.shown, other.shown = [], []
        visitor.set(element, value)
        until(lambda: visitor.look() and any(message.get("uuid") == element for message in visitor.shown),
              "the value that it has")
        assert {json.dumps(message["updates"]) for message in visitor.shown if message.get("uuid") == element} == {
            json.dumps({"value": server.gui._gui_input_handle_from_uuid[element].value})
        }
    said = capfd.readouterr().err
    assert reason in said and said.count("\n") == 1 and page.pressed() == []
    with Visitor(server.get_port()) as later:
        assert later.element(label) == element, "who comes later is not locked out"


@pytest.fixture
def page():
    from eval.view.page import Page
    from eval.view.server import make_server, stop

    server = make_server("127.0.0.1", 0)
    yield server, Page(server, ["hab=tidy_house", "skill=pick"], 1.0)
    stop(server)


def test_what_a_page_offers_arrives_in_the_order_in_which_it_was_pressed(page):
    server, page = page
    page.on_floor_click("drive_to")
    with Visitor(server.get_port()) as visitor:
        buttons, seed, base = visitor.element("Play"), visitor.element("Seed"), visitor.element("forward")
        for name in ("Pause", "Step", "Next", "Play"):
            visitor.set(buttons, name)
        visitor.set(seed, 2**32 - 1)
        visitor.set(seed, 7.0)
        visitor.set(base, "turn left")
        visitor.say(CLICK)
        found = []
        until(lambda: found.extend(page.pressed()) or len(found) >= 8, "what was pressed")
    assert found[:7] == [
        ("pause", ()),
        ("step", ()),
        ("next", ()),
        ("play", ()),
        ("seed", (2**32 - 1,)),
        ("seed", (7,)),
        ("drive", (0.0, 1.0)),
    ]
    assert found[7][0] == "drive_to" and found[7][1] == pytest.approx((0.0, 1.5))


def test_a_flood_is_dropped_not_kept(page, capfd):
    server, page = page
    with Visitor(server.get_port()) as visitor:
        buttons = visitor.element("Play")
        for _ in range(3000):
            visitor.set(buttons, "Step")
            visitor.say({"type": "x"})
        until(lambda: page.dropped > 2500, "the flood")
    assert len(page.pressed()) <= 64 and capfd.readouterr().err.count("\n") < 200


def test_a_message_of_megabytes_closes_its_own_connection(page, capfd):
    server, _ = page
    with Visitor(server.get_port()) as visitor:
        visitor.raw(b"x" * (1 << 21))
        until(lambda: not visitor.look(), "the end of the connection that says too much at once")
    until(lambda: "closed" in capfd.readouterr().err, "a sentence about it")


def test_connections_give_their_memory_back(page):
    import gc

    server, page = page

    def left() -> int:
        gc.collect()
        return sum(type(each).__name__ in ("ClientHandle", "WebsockClientConnection") for each in gc.get_objects())

    for camera in (True, False):
        for _ in range(80):
            with Visitor(server.get_port(), camera=camera):
                pass
    until(lambda: not left() and not page.cameras and not server.get_clients(),
          "the end of what belongs to 160 connections")
    assert len(page.looks._children) == 4 - 1
