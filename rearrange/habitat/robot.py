"""The Fetch in Habitat: habitat-lab's URDF on a driving base, its motors, and where its parts are.

Links have the numbers of habitat-lab's FetchSuctionRobot, moved up by those of the base's slides. Motors: the arm's follow
positions with habitat-lab's gains, as strongly as the real Fetch's can; those of the base hold a speed.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rearrange.habitat.contacts import RobotParts
from rearrange.habitat.driving_base import BASE_JOINTS, SHIFT
from rearrange.habitat.frames import rotation_of_link
from rearrange.home.errors import UserError
from rearrange.home.robot import fetch
from rearrange.home.simulation.mujoco.build_model import TIMESTEP_S

# habitat-lab's FetchSuctionRobot.
ARM_LINKS = tuple(range(15, 22))
CUP_LINK = 23
TORSO_LINK, HEAD_LINKS = 6, (8, 9)
HEAD_RAD = (0.0, math.pi / 2)
EE_OFFSET_M = 0.08  # of the cup's face from the frame of its link, along x
_GAIN, _TORSO_GAIN = 0.3, 1.0  # of position and of velocity; with the arm's, its weight would lower the torso by 2 mm
_FIRST_ARM_LINK = 15  # everything before belongs to the base and the torso

# A motor of Bullet goes for the velocity gain_p * error / dt + (1 - gain_v) * velocity, the embedded robot's servos for
# error * stiffness / damping, 10 to 15 1/s. With habitat-lab's gains, 0.3 and 0.3, that would be 120 1/s: a motor at its
# limit, as the shoulder's when the base turns, swings far beyond its target, and every jerk of a policy's noise is passed on.
_ARM_GAINS = [(1.0 - math.exp(-TIMESTEP_S * stiff / damped), 1.0) for stiff, damped, _ in fetch._SERVOS]  # noqa: SLF001
# Bullet multiplies the coefficients of what touches, and exported furniture has 1; MuJoCo takes the greater one, 0.7 for
# robot and furniture.
FRICTION = 0.7
_BASE_FORCE = (400.0, 400.0, 120.0)  # N, N, N m
_TORSO_FORCE_N, _HOLDING_IMPULSE = 900.0, 10.0


class Fetch:
    """One robot in a Habitat scene, as an articulated object."""

    def __init__(self, habitat: Any, body: Any) -> None:
        """`habitat`: the module; `body`: the articulated object."""
        self.body = body
        self.id = body.object_id
        names = {body.get_link_joint_name(link): link for link in body.get_link_ids()}
        self._base = [names[name] for name, _, _ in BASE_JOINTS]
        self._arm = [link + SHIFT for link in ARM_LINKS]
        joint_of = {link: name for name, link in names.items()}
        for link, name in zip(self._arm, fetch.JOINT_NAMES):
            there = joint_of.get(link, "missing")
            if not there.startswith(name):
                raise UserError(f"sim.robot: the URDF is not a Fetch as habitat-lab knows it: its joint {link - SHIFT} should be "
                                f"{name}, not {there}; take robots/fetch.urdf of rearrange scenes export.")
        if CUP_LINK + SHIFT not in joint_of:
            raise UserError(f"sim.robot: the URDF is not a Fetch with a suction cup: it has no link {CUP_LINK}; take "
                            "robots/fetch.urdf of rearrange scenes export.")
        self.cup = CUP_LINK + SHIFT
        self.parts = RobotParts(self.id, frozenset(range(-1, _FIRST_ARM_LINK + SHIFT)), self.cup)
        self._node = body.get_link_scene_node(self.cup)
        self.base_node = body.get_link_scene_node(self._base[-1])
        self._tip = habitat_vector(habitat, (EE_OFFSET_M, 0.0, 0.0))
        self._base_at = [body.get_link_joint_pos_offset(link) for link in self._base]
        self._arm_at = slice_of([body.get_link_joint_pos_offset(link) for link in self._arm])
        self._arm_speed_at = slice_of([body.get_link_dof_offset(link) for link in self._arm])
        self._base_speed_at = [body.get_link_dof_offset(link) for link in self._base]
        self._rest = [0.0] * len(body.joint_positions)
        fixed = {TORSO_LINK: fetch.TORSO_START_M, HEAD_LINKS[0]: HEAD_RAD[0], HEAD_LINKS[1]: HEAD_RAD[1]}
        for link, value in fixed.items():
            self._rest[body.get_link_joint_pos_offset(link + SHIFT)] = value
        for link in body.get_link_ids():
            body.set_link_friction(link, FRICTION)
        self._torso_at = body.get_link_joint_pos_offset(TORSO_LINK + SHIFT)
        self._make_motors(habitat.physics.JointMotorSettings)
        self._targets = list(self._rest)
        self._speeds = [0.0] * len(body.joint_velocities)

    def _make_motors(self, settings: Any) -> None:
        """One for each joint, in place of those that Habitat makes of the URDF's damping."""
        body = self.body
        for motor in list(body.existing_joint_motor_ids):
            body.remove_joint_motor(motor)
        strength = dict(zip(self._arm, (force for _, _, force in fetch._SERVOS)))  # noqa: SLF001 one table of motors
        strength[TORSO_LINK + SHIFT] = _TORSO_FORCE_N
        base = dict(zip(self._base, _BASE_FORCE))
        for link in body.get_link_ids():
            if body.get_link_num_dofs(link) != 1:
                continue
            if link in base:
                motor = settings(0.0, 0.0, 0.0, 1.0, base[link] * TIMESTEP_S)
            else:
                impulse = strength[link] * TIMESTEP_S if link in strength else _HOLDING_IMPULSE
                torso = _TORSO_GAIN, _TORSO_GAIN
                arm = dict(zip(self._arm, _ARM_GAINS))
                gain, gain_v = torso if link == TORSO_LINK + SHIFT else arm.get(link, (_GAIN, _GAIN))
                motor = settings(self._rest[body.get_link_joint_pos_offset(link)], gain, 0.0, gain_v, impulse)
            body.create_joint_motor(link, motor)

    # ------------------------------------------------------------------ commands

    def place(self, x: float, y: float, yaw: float, arm_rad: Any) -> None:
        """Put it at a base pose with its arm at these angles, at rest."""
        positions = list(self._rest)
        for at, value in zip(self._base_at, (x, y, yaw)):
            positions[at] = value
        positions[self._arm_at] = angles = [float(angle) for angle in arm_rad]
        self.body.joint_positions = positions
        self.body.joint_velocities = [0.0] * len(self._speeds)
        self.drive((0.0, 0.0, 0.0))
        self.follow(angles)

    def drive(self, base: tuple[float, float, float]) -> None:
        """Let the base's motors go for these speeds along our x, our y (m/s), and its turn (rad/s)."""
        for at, value in zip(self._base_speed_at, base):
            self._speeds[at] = value
        self.body.update_all_motor_targets(self._speeds, velocities=True)

    def follow(self, arm_rad: list[float]) -> None:
        """Send the arm's motors to these angles."""
        self._targets[self._arm_at] = arm_rad
        self.body.update_all_motor_targets(self._targets, velocities=False)

    # ------------------------------------------------------------------ where it is

    def read(self) -> tuple[list[float], np.ndarray]:
        """Base pose (x, y, yaw) and arm angles (7,)."""
        positions = self.body.joint_positions
        # Bullet ends a substep with the links where they were before it; setting the joints to where they are moves them.
        self.body.joint_positions = positions
        self.torso_m = positions[self._torso_at]
        return [positions[at] for at in self._base_at], np.array(positions[self._arm_at], float)

    def speeds(self) -> list[float]:
        """Of all joints, m/s or rad/s."""
        return self.body.joint_velocities

    def arm_speeds(self) -> np.ndarray:
        """(7,) rad/s."""
        return np.array(self.body.joint_velocities[self._arm_speed_at], float)

    def stand_on(self, origin: Any) -> None:
        """Make Habitat's point `origin` the one from which the base's slides count."""
        import magnum

        self.body.transformation = magnum.Matrix4.translation(origin)

    def hand(self) -> tuple[Any, Any, list[float]]:
        """The cup's transform and the end-effector's position as Habitat has them, and its rotation (9,), world z up."""
        transform = self._node.absolute_transformation()
        return transform, transform.transform_point(self._tip), rotation_of_link(np.array(transform))


def habitat_vector(habitat: Any, values: tuple[float, float, float]) -> Any:
    """A vector of Magnum, which Habitat's functions take."""
    import magnum

    return magnum.Vector3(*values)


def slice_of(places: list[int]) -> slice:
    """Places that follow one another."""
    if places != list(range(places[0], places[0] + len(places))):
        raise ValueError(f"places {places} are not one after another")
    return slice(places[0], places[0] + len(places))
