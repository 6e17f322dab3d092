"""Which thing each pixel shows: by boxes around objects, drawers and doors, or by Habitat's semantic camera.

That camera shows a number which each piece of a body has. Habitat's own are classes; `number_things` writes instances.
What has no number, as the stage with its walls and floor, shows 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rearrange.habitat.driving_base import SHIFT
from rearrange.habitat.robot import ARM_LINKS, HEAD_LINKS, ROBOT, TORSO_LINK
from rearrange.home.apartments import segmentation
from rearrange.home.apartments.parts import Part
from rearrange.home.geometry import PlanePose
from rearrange.home.robot.cameras import camera_points, to_world
from rearrange.home.robot.robot import RANGE_M
from rearrange.home.simulation.scenes.drawers_and_doors import plain_name
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


def owners_in(depth: np.ndarray, base_pose: PlanePose,
              shapes: Sequence[tuple[int, Box]]) -> tuple[np.ndarray, np.ndarray]:
    """Depth in metres and owners, both (size, size), of a depth image of the head camera.

    Args:
        depth: (size, size), 0..1 over 10 m.
        base_pose: x, y (m) and yaw (rad) of the robot.
        shapes: owner's number and box; a pixel belongs to the first box in which it lies.
    """
    metres = np.where(depth >= 1.0, np.float32(np.inf), depth * np.float32(RANGE_M)).astype(np.float32)
    flat = metres.ravel()
    seen = np.flatnonzero(np.isfinite(flat))
    points = to_world(camera_points(ROBOT.head, flat, seen), base_pose)
    owners, found = np.full(flat.size, NOTHING, np.int32), np.full(len(seen), NOTHING, np.int32)
    for owner, box in shapes:
        close = np.abs(points - box.middle) <= np.linalg.norm(box.half) + _SLACK_M
        near = np.flatnonzero(close.all(1) & (found == NOTHING))
        inside = (np.abs((points[near] - box.middle) @ box.turned) <= box.half + _SLACK_M).all(1)
        found[near[inside]] = owner
    owners[seen] = found
    return metres, owners.reshape(depth.shape)


def number_things(objects: Sequence[Any], robot: Any, furniture: Sequence[Any], bodies: dict[str, Any],
                  links: dict[str, tuple[Any, int]]) -> dict[int, str]:
    """Give what is in a scene the numbers of `rearrange.home.apartments.segmentation`.

    Args:
        objects: rigid objects of the episode.
        robot: articulated object.
        furniture: rigid objects of the scene.
        bodies: articulated objects of the scene by handle.
        links: joint -> articulated object and link.

    Returns: names of the furniture by number.
    """
    for i, thing in enumerate(objects):
        _number(thing.visual_scene_nodes, segmentation.OBJECT + i)
    for link in (-1, *robot.get_link_ids()):
        _number(robot.get_link_visual_nodes(link), segmentation.ROBOT[part_of_link(link)])
    things = [(plain_name(thing.handle), thing.visual_scene_nodes) for thing in furniture]
    things += [(plain_name(handle), body.visual_scene_nodes) for handle, body in bodies.items()]
    things += [(joint, body.get_link_visual_nodes(link)) for joint, (body, link) in links.items()]
    names = {}
    for number, (name, nodes) in enumerate(things, segmentation.OBJECT + len(objects)):
        _number(nodes, number)
        if number <= segmentation.MOST:
            names[number] = f"furniture/{name}"
    return names


def part_of_link(link: int) -> str:
    """Part of the robot, by the number of a link of its URDF on a driving base."""
    own = link - SHIFT
    if own >= ARM_LINKS[0]:
        return "arm" if own in ARM_LINKS else "gripper"
    return "head" if own in HEAD_LINKS else "torso" if own == TORSO_LINK else "base"


def _number(nodes: Iterable[Any], number: int) -> None:
    for node in nodes:
        node.semantic_id = number
