"""Whose each pixel of a depth image is, from the boxes around objects, drawers and doors: Habitat's own semantic camera knows the
classes of a scene, not the instances of an episode.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rearrange.home.apartments.parts import Part
from rearrange.home.geometry import PlanePose
from rearrange.home.robot.cameras import camera_points, to_world
from rearrange.home.robot.fetch import HEAD_CAMERA_RANGE_M
from rearrange.home.simulation.simulator_interface import NOTHING

_SLACK_M = 0.004  # around a box


@dataclass(frozen=True)
class Box:
    """A turned box: middle (3,), rotation matrix (3, 3), half size (3,); world frame, m."""

    middle: np.ndarray
    turned: np.ndarray
    half: np.ndarray


def part_box(part: Part, origin: np.ndarray, turned: np.ndarray) -> Box:
    """The box around a part of a drawer or door whose frame is at `origin` (3,), `turned` (3, 3)."""
    c, s = math.cos(part.yaw_rad), math.sin(part.yaw_rad)
    own = np.array([(c, -s, 0.0), (s, c, 0.0), (0.0, 0.0, 1.0)])
    return Box(origin + turned @ np.array(part.center_m), turned @ own, np.array(part.half_extent_m))


def owners_in(depth: np.ndarray, base_pose: PlanePose, shapes: Sequence[tuple[int, Box]]) -> tuple[np.ndarray, np.ndarray]:
    """Depth in metres and owners, both (size, size), of a depth image (size, size), 0..1 over 10 m. shapes: what there is, each
    with the number of its owner; the first that a pixel lies in has it.
    """
    metres = np.where(depth >= 1.0, np.float32(np.inf), depth * np.float32(HEAD_CAMERA_RANGE_M)).astype(np.float32)
    flat = metres.ravel()
    seen = np.flatnonzero(np.isfinite(flat))
    points = to_world(camera_points(flat, seen), base_pose)
    owners, found = np.full(flat.size, NOTHING, np.int32), np.full(len(seen), NOTHING, np.int32)
    for owner, box in shapes:
        near = np.flatnonzero((np.abs(points - box.middle) <= np.linalg.norm(box.half) + _SLACK_M).all(1) & (found == NOTHING))
        inside = (np.abs((points[near] - box.middle) @ box.turned) <= box.half + _SLACK_M).all(1)
        found[near[inside]] = owner
    owners[seen] = found
    return metres, owners.reshape(depth.shape)
