"""Moving links of an external scene in Habitat, found by moving them.

No file is read: each link is looked at closed and a little open, which gives the axis whatever frames its URDF has. Points
are world points with z up, unless said otherwise.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rearrange.external_scenes.joints import MovingLink, is_opening
from rearrange.habitat_axes import AXES


def moving_links(bodies: dict[str, Any], origin: np.ndarray) -> list[MovingLink]:
    """Every link that slides or turns, in the order of objects and links. `bodies`: handle -> articulated object; `origin`:
    of our world in Habitat's, z up. Leaves the joints where they were.
    """
    found = []
    for handle, body in sorted(bodies.items()):
        before = list(body.joint_positions)
        low, high = body.joint_position_limits
        body.joint_positions = [0.0] * len(before)
        closed = {link: link_frame(body, link, origin) for link in body.get_link_ids()}
        corners = {link: _corners(body, link, closed[link]) for link in closed}
        for link in closed:
            at = body.get_link_joint_pos_offset(link)
            if body.get_link_num_dofs(link) != 1:
                continue
            span = float(low[at]), float(high[at])
            opened = [0.0] * len(before)
            opened[at] = probe = min(0.2, span[1])
            body.joint_positions = opened
            motion = _motion(closed[link], link_frame(body, link, origin), probe)
            body.joint_positions = [0.0] * len(before)
            if motion is not None and is_opening(motion[0], span):
                found.append(MovingLink(handle, link, body.get_link_name(link), *motion, span, corners[link], closed[link]))
        body.joint_positions = before
    return found


def link_frame(body: Any, link: int, origin: np.ndarray) -> np.ndarray:
    """(4, 4) of a link in our world; the axes of the link itself are Habitat's."""
    matrix = np.array(body.get_link_scene_node(link).absolute_transformation())
    frame = np.eye(4)
    frame[:3] = AXES.T @ matrix[:3]
    frame[:3, 3] -= origin
    return frame


def _corners(body: Any, link: int, frame: np.ndarray) -> np.ndarray:
    box = body.get_link_scene_node(link).cumulative_bb
    low, high = np.array(box.min), np.array(box.max)
    points = np.array([[(low, high)[i][0], (low, high)[j][1], (low, high)[k][2]]
                       for i in (0, 1) for j in (0, 1) for k in (0, 1)])
    return points @ frame[:3, :3].T + frame[:3, 3]


def _motion(closed: np.ndarray, opened: np.ndarray, probe: float) -> tuple[str, np.ndarray, np.ndarray] | None:
    """Kind, axis and origin of the motion between two frames of a link; None when it does not move."""
    turn = opened[:3, :3] @ closed[:3, :3].T
    way = opened[:3, 3] - turn @ closed[:3, 3]
    spin = np.array([turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]])
    if np.linalg.norm(spin) < 1e-4:
        length = np.linalg.norm(way)
        return None if length < 1e-4 else ("slide", way / length * math.copysign(1.0, probe), closed[:3, 3])
    axis = spin / np.linalg.norm(spin) * math.copysign(1.0, probe)
    return "hinge", axis, np.linalg.lstsq(np.eye(3) - turn, way, rcond=None)[0]
