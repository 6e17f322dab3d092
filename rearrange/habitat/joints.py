"""Drawers and doors of a scene: Habitat's articulated objects and links behind the names of their joints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rearrange.home.apartments.containers import kind_of
from rearrange.home.simulation.mujoco.build_model import TIMESTEP_S

DAMPING = {"drawer": 6.0, "fridge": 2.0}
"""N s/m and N m s/rad, as `rearrange.home.simulation.mujoco.build_model` has them."""
_SAME = 0.05  # share by which a motor's strength may be off


@dataclass(frozen=True)
class _Motor:
    """A motor that stands for the friction of a joint."""

    body: Any  # articulated object
    number: int
    speed_at: int  # place in the speeds of the articulated object
    settings: Any
    dry_n_s: float  # impulse in a substep; N m s for a door
    viscous: float  # impulse in a substep for a unit of speed


class Joints:
    """Openings by the name of the joint (m or rad)."""

    def __init__(self, where: Mapping[str, tuple[Any, int]], damped: bool) -> None:
        """where: joint -> articulated object and link. damped: as those of our homes are."""
        self.where = where
        self._names = {(body.object_id, link): name for name, (body, link) in self.where.items()}
        self._position_at = {name: body.get_link_joint_pos_offset(link) for name, (body, link) in self.where.items()}
        self._speed_at = {name: body.get_link_dof_offset(link) for name, (body, link) in self.where.items()}
        self._motors: dict[int, list[_Motor]] = {}  # by articulated object
        for name, (body, link) in self.where.items() if damped else ():
            for number in (motor for motor, on in body.existing_joint_motor_ids.items() if on == link):
                settings, viscous = body.get_joint_motor_settings(number), TIMESTEP_S * DAMPING[kind_of(name)]
                motor = _Motor(body, number, self._speed_at[name], settings, settings.max_impulse, viscous)
                self._motors.setdefault(body.object_id, []).append(motor)

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
        """Resist motion for the next step as the embedded home's joints do: by friction, dry and viscous.

        Habitat has dry friction alone: the motor that stands for it becomes as strong as both.
        """
        for motors in self._motors.values():
            speeds = motors[0].body.joint_velocities
            for motor in motors:
                strength = motor.dry_n_s + motor.viscous * abs(speeds[motor.speed_at])
                if abs(strength - motor.settings.max_impulse) > _SAME * strength:
                    motor.settings.max_impulse = strength
                    motor.body.update_joint_motor(motor.number, motor.settings)

    def set(self, openings: Mapping[str, float]) -> None:
        """Put joints somewhere, at rest; the others stay where they are, at rest too."""
        for body in {body.object_id: body for body, _ in (self.where[name] for name in openings)}.values():
            positions = body.joint_positions
            for name, value in openings.items():
                if self.where[name][0].object_id == body.object_id:
                    positions[self._position_at[name]] = float(value)
            body.joint_positions = positions
            body.joint_velocities = [0.0] * len(body.joint_velocities)
