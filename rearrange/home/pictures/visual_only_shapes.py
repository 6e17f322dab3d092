"""Shapes that pictures from outside show on bodies of a model, in place of some of its geoms.

They are no part of the model: neither physics, nor depth, nor the robot's cameras know of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import mujoco
import numpy as np

from rearrange.home.pictures.raster import box_half_extents
from rearrange.home.pictures.raster_kernels import KINDS
from rearrange.home.robot.robot import Robot, Shape

_TURNS = {"x": np.array([(0, 0, 1), (0, 1, 0), (-1, 0, 0)], float),
          "y": np.array([(1, 0, 0), (0, 0, 1), (0, -1, 0)], float),
          "z": np.eye(3)}  # of a shape whose long axis shall be that axis of the body


@dataclass(frozen=True, eq=False)
class Attached:
    """Shapes on bodies.

    kinds (n,): as `raster.draw` has them. halves (n, 4): half extents and bounding radius (m). bodies (n,): of the
    model. places (n, 3), turns (n, 3, 3): in the frames of the bodies. rgb (n, 3): sRGB. instead_of: geoms that are not
    drawn.
    """

    kinds: np.ndarray
    halves: np.ndarray
    bodies: np.ndarray
    places: np.ndarray
    turns: np.ndarray
    rgb: np.ndarray
    instead_of: np.ndarray

    def poses(self, data: mujoco.MjData) -> tuple[np.ndarray, np.ndarray]:
        """Where they are now: (n, 3) middles and (n, 9) rotation matrices, world."""
        frames = data.xmat[self.bodies].reshape(-1, 3, 3)
        return data.xpos[self.bodies] + np.einsum("nij,nj->ni", frames,
                                                  self.places), (frames @ self.turns).reshape(-1, 9)


def attach(model: mujoco.MjModel, shapes: Sequence[Shape], instead_of: Sequence[str]) -> Attached:
    """Shapes on bodies of a model, by name, in place of geoms. Raises KeyError where the model lacks a body or geom."""
    halves = np.array([box_half_extents(KINDS[shape.kind], (*shape.size_m, 0.0, 0.0)[:3]) for shape in shapes])
    return Attached(
        np.array([KINDS[shape.kind] for shape in shapes], np.int32),
        np.column_stack([halves, np.linalg.norm(halves, axis=1)]).astype(np.float32),
        np.array([model.body(shape.body).id for shape in shapes]), np.array([shape.place_m for shape in shapes], float),
        np.array([_TURNS[shape.axis] for shape in shapes]), np.array([shape.rgb for shape in shapes], float),
        np.array([model.geom(name).id for name in instead_of]))


def dressed(model: mujoco.MjModel, robot: Robot) -> Attached | None:
    """What a spectator sees of the robot of a model beside its geoms; None for one that has no more."""
    return attach(model, robot.looks, robot.hidden) if robot.looks else None
