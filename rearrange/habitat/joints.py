"""Drawers and doors of a scene: Habitat's articulated objects and links behind the names of their joints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from rearrange.containers import kind_of
from rearrange.home import TIMESTEP_S

DAMPING = {"drawer": 6.0, "fridge": 2.0}
"""N s/m and N m s/rad, as `rearrange.home` has them."""
_SAME = 0.05  # share by which a motor's strength may be off


class Joints:
    """Openings by the name of the joint (m or rad)."""

    def __init__(self, where: Mapping[str, tuple[Any, int]], damped: bool) -> None:
        """`where`: joint -> articulated object and link. `damped`: as those of our homes are."""
        self.where = dict(where)
        self._names = {(body.object_id, link): name for name, (body, link) in self.where.items()}
        self._position_at = {name: body.get_link_joint_pos_offset(link) for name, (body, link) in self.where.items()}
        self._speed_at = {name: body.get_link_dof_offset(link) for name, (body, link) in self.where.items()}
        self._motors: dict[str, tuple[int, Any, float, float]] = {}
        for name, (body, link) in self.where.items() if damped else ():
            for motor, on in body.existing_joint_motor_ids.items():
                if on == link:
                    settings = body.get_joint_motor_settings(motor)
                    self._motors[name] = motor, settings, settings.max_impulse, TIMESTEP_S * DAMPING[kind_of(name)]

    def name_of(self, object_id: int, link: int) -> str | None:
        """The joint of a link; None when it has none."""
        return self._names.get((object_id, link))

    def position(self, name: str) -> float:
        """m or rad."""
        return self.where[name][0].joint_positions[self._position_at[name]]

    def velocity(self, name: str) -> float:
        """m/s or rad/s."""
        return self.where[name][0].joint_velocities[self._speed_at[name]]

    def damp(self) -> None:
        """Resist motion for the next step as the embedded home's joints do: by dry friction, which Habitat has, and by a
        force that grows with speed, which it has not. The motor that stands for friction becomes as strong as both.
        """
        for name, (body, link) in self.where.items():
            if name not in self._motors:
                continue
            motor, settings, dry, viscous = self._motors[name]
            strength = dry + viscous * abs(body.joint_velocities[self._speed_at[name]])
            if abs(strength - settings.max_impulse) > _SAME * strength:
                settings.max_impulse = strength
                body.update_joint_motor(motor, settings)

    def set(self, openings: Mapping[str, float]) -> None:
        """Put joints somewhere, at rest; the others stay where they are, at rest too."""
        for body in {body.object_id: body for body, _ in (self.where[name] for name in openings)}.values():
            positions = body.joint_positions
            for name, value in openings.items():
                if self.where[name][0].object_id == body.object_id:
                    positions[self._position_at[name]] = float(value)
            body.joint_positions = positions
            body.joint_velocities = [0.0] * len(body.joint_velocities)
