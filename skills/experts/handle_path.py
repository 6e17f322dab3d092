"""The way of a handle as its drawer or door opens."""

from __future__ import annotations

import math

import numpy as np

from rearrange.home.simulation.mujoco.build_model import handle_part
from rearrange.home.simulation.simulator_interface import Simulator
from skills.experts.motion import turned


class HandlePath:
    """Where a handle is, and which way it moves, at every opening."""

    def __init__(self, sim: Simulator, name: str) -> None:
        self.name = name
        body = next(body for body in sim.home.layout.bodies if body.name == name)
        self.slides, self.sign, self.has_bar = body.joint == "slide", body.hinge_sign, handle_part(body).solid
        x, y, yaw = body.pose(0.0)
        self.out = np.array([math.cos(yaw), math.sin(yaw), 0.0])  # out of the closed front
        self.first_opening = sim.joint_position(name)
        self._handle = np.array(sim.handle_position(name))
        self.hinge = np.array([x, y, 0.0])
        self.bar_half_m = handle_part(body).half_size_m[1] if self.slides and self.has_bar else 0.0
        self.bar_m = 2 * handle_part(body).half_extent_m[2 if self.slides else 1]  # as thick as fingers meet it
        solid = [part for part in body.parts if part.solid]
        self.half_width_m = max(abs(part.center_m[1]) + part.half_extent_m[1] for part in solid)
        middle_m = body.position_m[2] + (min(part.center_m[2] - part.half_extent_m[2] for part in solid)
                                         + max(part.center_m[2] + part.half_extent_m[2] for part in solid)) / 2
        self.above_middle_m = max(0.0, float(self._handle[2]) - middle_m)  # of the front
        x, y, _ = body.pose(self.first_opening)
        self.stands_out_m = float(self.out @ (self._handle - (x, y, 0.0))) if self.slides else 0.0  # before the front

    def at(self, opening: float) -> np.ndarray:
        """Position (3,) of the handle in the world."""
        by = opening - self.first_opening
        if self.slides:
            return self._handle + by * self.out
        return self.hinge + turned(self._handle - self.hinge, self.sign * by)

    def direction(self, opening: float) -> np.ndarray:
        """Unit vector (3,) along which the handle moves as it opens."""
        if self.slides:
            return self.out
        arm = self.at(opening) - self.hinge
        along = self.sign * np.array([-arm[1], arm[0], 0.0])
        return along / np.linalg.norm(along)
