"""Drawers and doors of a scene: Habitat's articulated objects and links behind the names of their joints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Joints:
    """Openings by the name of the joint (m or rad)."""

    def __init__(self, where: Mapping[str, tuple[Any, int]]) -> None:
        """`where`: joint -> articulated object and link."""
        self.where = dict(where)
        self._names = {(body.object_id, link): name for name, (body, link) in self.where.items()}
        self._position_at = {name: body.get_link_joint_pos_offset(link) for name, (body, link) in self.where.items()}
        self._speed_at = {name: body.get_link_dof_offset(link) for name, (body, link) in self.where.items()}

    def name_of(self, object_id: int, link: int) -> str | None:
        """The joint of a link; None when it has none."""
        return self._names.get((object_id, link))

    def position(self, name: str) -> float:
        """m or rad."""
        return self.where[name][0].joint_positions[self._position_at[name]]

    def velocity(self, name: str) -> float:
        """m/s or rad/s."""
        return self.where[name][0].joint_velocities[self._speed_at[name]]

    def set(self, openings: Mapping[str, float]) -> None:
        """Put joints somewhere, at rest; the others stay where they are, at rest too."""
        for body in {body.object_id: body for body, _ in (self.where[name] for name in openings)}.values():
            positions = body.joint_positions
            for name, value in openings.items():
                if self.where[name][0].object_id == body.object_id:
                    positions[self._position_at[name]] = float(value)
            body.joint_positions = positions
            body.joint_velocities = [0.0] * len(body.joint_velocities)
