"""From where each browser looks at the home: it goes along with the robot, stays, or looks as the robot does."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from rearrange.home.pictures.looks import PLAIN
from rearrange.home.pictures.picture import follow_camera

LOOK_FROM_M = (-2.0, 1.9, 3.6)  # where an orbiting camera begins, from the robot, whose x axis is ahead
LOOK_AT_M, LOOK_UNDER_M = 0.7, -2.0  # height; of an upright screen, whose lower half the panel covers
NEARER_M = 0.005  # a robot that has moved less is not followed


WAYS = ("follow", "orbit", "shoulder", "robot's eye")
"""The mouse turns the first two: one around the robot, wherever it drives, the other around where the robot was."""


class Cameras:
    """The cameras of all browsers. server: viser's. ways: number of a browser -> one of WAYS."""

    def __init__(self, server: Any, ways: Mapping[int, str]) -> None:
        self._server, self._ways = server, ways
        self._views: dict[int, Any] = {}  # of browsers that look over the shoulder
        self._aimed: set[int] = set()  # browsers whose camera has been turned to the robot

    def begin(self, sim: Any) -> None:
        """Turn all cameras to where the robot stands now; so is the camera of a page that is opened later."""
        eye, at = self._usual(sim)
        self._server.initial_camera.position, self._server.initial_camera.look_at = eye, at
        self._views.clear()
        for number, client in self._server.get_clients().items():
            if self._ways.get(number) == "orbit":
                self._turn_to(client, _at(client, sim))

    def _usual(self, sim: Any) -> tuple[np.ndarray, np.ndarray]:
        """Where a camera is at first, and what it looks at: the robot."""
        ahead, left, up = LOOK_FROM_M
        return (np.array([*sim.from_base((ahead, left, 0.0))[:2], up]), np.array([*sim.base_pose[:2], LOOK_AT_M]))

    @staticmethod
    def _turn_to(client: Any, at: np.ndarray) -> None:
        """Let a camera look at a point from the side from which it looks now, and from as high and as far."""
        eye = client.camera.position + (at - client.camera.look_at) * (1.0, 1.0, 0.0)
        with client.atomic():
            client.camera.position, client.camera.look_at = eye, at

    def move(self, sim: Any) -> None:
        """Turn the camera of a browser that has just come to the robot, and move those that go along with it."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a browser may leave meanwhile
            self._move(self._server.get_clients(), sim)

    def _move(self, clients: Mapping[int, Any], sim: Any) -> None:
        self._aimed &= clients.keys()
        self._views = {number: view for number, view in self._views.items() if self._ways.get(number) == "shoulder"}
        for number, client in clients.items():
            way = self._ways.get(number)
            if way is None:  # it has not been greeted yet
                continue
            if number not in self._aimed:
                self._aimed.add(number)
                eye, _ = self._usual(sim)
                target = _at(client, sim)
            elif way == "orbit":
                continue
            elif way == "follow":
                at = _at(client, sim)
                if np.abs(client.camera.look_at - at).max() > NEARER_M:
                    self._turn_to(client, at)
                continue
            elif way == "shoulder":
                eye, target = self._views[number] = follow_camera(sim.base_pose, self._views.get(number))
            else:
                _, _, ahead, eye = sim.twin.camera_pose("head", PLAIN)
                target = eye + ahead
            with client.atomic():
                client.camera.position, client.camera.look_at = eye, target


def _at(client: Any, sim: Any) -> np.ndarray:
    """What a camera that is turned to the robot looks at: the robot, or below it, where only the upper part of the
    screen is free."""
    camera = client.camera
    upright = camera.image_width < 0.75 * camera.image_height
    return np.array([*sim.base_pose[:2], LOOK_UNDER_M if upright else LOOK_AT_M])
