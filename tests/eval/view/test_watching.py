"""The page waits for who watches, says how many do, and turns their cameras to the robot."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.eval.view.visitor import CAMERA, Visitor
from tests.waiting import until


@pytest.fixture
def pick(view):
    viewer = view("skill=pick", "agent=zero")
    viewer._page.was_seen = False
    return viewer


def visit(viewer: Any) -> Visitor:
    return Visitor(viewer._server.get_port())


def turned(viewer: Any, done: Any, what: str) -> None:
    """Turn the viewer until something is so."""
    until(lambda: viewer.turn() or done(), what)


def look_at(viewer: Any) -> np.ndarray:
    (client,) = viewer._server.get_clients().values()
    return client.camera.look_at


def test_it_plays_once_a_browser_is_there_and_goes_on_when_it_leaves(pick):
    for _ in range(5):
        pick.turn()
    assert pick.playing and pick.session.env.steps == 0 and "0 browsers watch" in pick._page.now.content
    with visit(pick):
        turned(pick, lambda: pick.session.env.steps > 2, "it plays")
        turned(pick, lambda: "1 browser watches" in pick._page.now.content, "it says so")
    steps, number = pick.session.env.steps, pick.session.number
    turned(pick, lambda: (pick.session.number, pick.session.env.steps) > (number, steps + 2), "it goes on")


def test_a_camera_is_turned_to_the_robot_and_goes_along_unless_it_is_told_not_to(pick):
    pick._do_pause()
    sim = pick.session.sim
    with visit(pick):
        turned(pick, lambda: pick._page.cameras and np.allclose(look_at(pick)[:2], sim.base_pose[:2]), "it is aimed")
        (number, client), = pick._server.get_clients().items()
        eye = client.camera.position.copy()
        for way, goes in (("follow", True), ("orbit", False)):
            pick._page.cameras[number] = way
            x, y, yaw = sim.base_pose
            before = client.camera.position.copy(), look_at(pick).copy()
            sim.place_robot(x + 0.3, y, yaw)
            pick._cameras.move(sim)
            moved = client.camera.position - before[0], look_at(pick) - before[1]
            assert all(np.allclose(by, (0.3 * goes, 0.0, 0.0), atol=1e-3) for by in moved), way
        assert eye[2] > 2.0


def test_on_an_upright_screen_the_robot_is_above_the_panel(pick, monkeypatch):
    pick._do_pause()
    monkeypatch.setitem(CAMERA, "image_width", 390)
    monkeypatch.setitem(CAMERA, "image_height", 800)
    with visit(pick):
        turned(pick, lambda: pick._page.cameras and look_at(pick)[2] < 0.0, "it looks below the robot")
