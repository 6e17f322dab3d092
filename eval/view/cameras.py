"""From where each browser looks at the home: it orbits, follows the robot, or looks through the robot's eye."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rearrange.home.pictures.looks import PLAIN
from rearrange.home.pictures.picture import follow_camera

LOOK_FROM_M = (-2.0, 1.9, 3.6)  # where an orbiting camera begins, from the robot, whose x axis is ahead
LOOK_AT_M = 0.7  # height


class Cameras:
    """The cameras of all browsers. server: viser's. ways: number of a browser -> "orbit", "follow" or "robot's eye"."""

    def __init__(self, server: Any, ways: Mapping[int, str]) -> None:
        self._server, self._ways = server, ways
        self._views: dict[int, Any] = {}  # of browsers whose camera follows

    def begin(self, sim: Any) -> None:
        """Turn orbiting cameras to where the robot stands now; so is the camera of a page that is opened later."""
        at = np.array([*sim.base_pose[:2], LOOK_AT_M])
        ahead, left, up = LOOK_FROM_M
        eye = np.array([*sim.from_base((ahead, left, 0.0))[:2], up])
        self._server.initial_camera.position, self._server.initial_camera.look_at = eye, at
        self._views.clear()
        for number, client in self._server.get_clients().items():
            if self._ways.get(number) == "orbit":
                offset = client.camera.position - client.camera.look_at
                with client.atomic():
                    client.camera.position, client.camera.look_at = at + offset, at

    def move(self, sim: Any) -> None:
        """Move the cameras that do not orbit to where the robot is now."""
        clients = self._server.get_clients()
        followed = {number: client for number, client in clients.items() if self._ways.get(number, "orbit") != "orbit"}
        self._views = {number: view for number, view in self._views.items() if number in followed}
        for number, client in followed.items():
            if self._ways.get(number) == "follow":
                eye, target = self._views[number] = follow_camera(sim.base_pose, self._views.get(number))
            else:
                _, _, ahead, eye = sim.twin.camera_pose("head", PLAIN)
                target = eye + ahead
            with client.atomic():
                client.camera.position, client.camera.look_at = eye, target
