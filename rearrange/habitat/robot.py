"""The Fetch in Habitat: habitat-lab's URDF on a driving base, its motors, and where its parts are.

Links have the numbers of habitat-lab's FetchSuctionRobot, moved up by those of the base's slides. The arm's motors
follow positions, as strongly as the real Fetch's can; those of the base hold a speed.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rearrange.habitat.contacts import RobotParts
from rearrange.habitat.driving_base import BASE_JOINTS, SHIFT
from rearrange.habitat.export.fetch_links import EE_OFFSET_M
from rearrange.habitat.frames import rotation_of_link, vector
from rearrange.home.errors import UserError
from rearrange.home.robot.fetch import FETCH, SERVOS, TORSO
from rearrange.home.simulation.mujoco.build_model import TIMESTEP_S

ROBOT = FETCH
"""The only robot in Habitat."""
# habitat-lab's FetchSuctionRobot.
ARM_LINKS = tuple(range(15, 22))
CUP_LINK = 23
TORSO_LINK, HEAD_LINKS = 6, (8, 9)
_HEAD_TILT_RAD = math.pi / 2

# A motor of Bullet goes for the velocity gain_p * error / dt + (1 - gain_v) * velocity, the embedded robot's servos for
# error * stiffness / damping, 10 to 15 1/s. With habitat-lab's gains, 0.3 and 0.3, that would be 120 1/s: a motor at
# its limit, as the shoulder's when the base turns, swings far beyond its target, and every jerk of a policy's noise is
# passed on.
_ARM_GAINS = [(1.0 - math.exp(-TIMESTEP_S * stiff / damped), 1.0) for stiff, damped, _ in SERVOS]
_TORSO_GAINS = (1.0, 1.0)  # of position and of velocity; with the arm's, its weight would lower the torso by 2 mm
_OTHER_GAINS = (0.3, 0.3)
# Bullet multiplies the coefficients of what touches, and exported furniture has 1; MuJoCo takes the greater one, 0.7
# for robot and furniture.
FRICTION = 0.7
_BASE_FORCE = (400.0, 400.0, 120.0)  # N, N, N m
_TORSO_FORCE_N, _HOLDING_IMPULSE = 900.0, 10.0


class Fetch:
    """One robot in a Habitat scene, as an articulated object."""

    def __init__(self, habitat: Any, body: Any) -> None:
        """`habitat`: the module; `body`: the articulated object."""
        self.body, self.id = body, body.object_id
        joint_of = {link: body.get_link_joint_name(link) for link in body.get_link_ids()}
        number = {name: link for link, name in joint_of.items()}
        self._base = [number[name] for name, _, _ in BASE_JOINTS]
        self._arm, self._torso, self.cup = [link + SHIFT for link in ARM_LINKS], TORSO_LINK + SHIFT, CUP_LINK + SHIFT
        for link, name in zip(self._arm, FETCH.arm.names):
            there = joint_of.get(link, "missing")
            if not there.startswith(name):
                raise UserError(f"sim.robot_urdf: the URDF is not a Fetch as habitat-lab knows it: its joint "
                                f"{link - SHIFT} should be {name}, not {there}; take robots/fetch.urdf of rearrange "
                                "scenes export.")
        if self.cup not in joint_of:
            raise UserError("sim.robot_urdf: the URDF is not a Fetch with a suction cup: it has no link "
                            f"{CUP_LINK}; take robots/fetch.urdf of rearrange scenes export.")
        self.parts = RobotParts(self.id, frozenset(range(-1, self._arm[0])), self.cup)
        self._cup_node, self.base_node = (body.get_link_scene_node(link) for link in (self.cup, self._base[-1]))
        self._tip = vector(EE_OFFSET_M, 0.0, 0.0)
        position_at, speed_at = body.get_link_joint_pos_offset, body.get_link_dof_offset
        self._base_at, self._base_speed_at = ([at(link) for link in self._base] for at in (position_at, speed_at))
        self._arm_at = _slice_of([position_at(link) for link in self._arm])
        self._arm_speed_at = _slice_of([speed_at(link) for link in self._arm])
        self._torso_at = position_at(self._torso)
        self._rest = [0.0] * len(body.joint_positions)
        self._rest[self._torso_at] = FETCH.arm.still[TORSO]
        self._rest[position_at(HEAD_LINKS[1] + SHIFT)] = _HEAD_TILT_RAD
        for link in body.get_link_ids():
            body.set_link_friction(link, FRICTION)
        self._make_motors(habitat.physics.JointMotorSettings)
        self._targets = list(self._rest)
        self._speeds = [0.0] * len(body.joint_velocities)

    def _make_motors(self, settings: Any) -> None:
        """One for each joint, in place of those that Habitat makes of the URDF's damping."""
        body = self.body
        for motor in list(body.existing_joint_motor_ids):
            body.remove_joint_motor(motor)
        base = dict(zip(self._base, _BASE_FORCE))
        servos = {self._torso: (_TORSO_GAINS, _TORSO_FORCE_N * TIMESTEP_S)}
        for link, gains, (_, _, force) in zip(self._arm, _ARM_GAINS, SERVOS):
            servos[link] = gains, force * TIMESTEP_S
        for link in body.get_link_ids():
            if body.get_link_num_dofs(link) != 1:
                continue
            if link in base:
                motor = settings(0.0, 0.0, 0.0, 1.0, base[link] * TIMESTEP_S)
            else:
                (gain, gain_v), impulse = servos.get(link, (_OTHER_GAINS, _HOLDING_IMPULSE))
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
        """Let the base's motors go for these world speeds along x and y (m/s), and this turn (rad/s)."""
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
        # Bullet ends a substep with the links where they were before it; setting the joints moves them.
        self.body.joint_positions = positions
        self.still = {TORSO: positions[self._torso_at]}
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
        """The cup's transform and the end-effector's position, Habitat's, and its rotation (9,), world z up."""
        transform = self._cup_node.absolute_transformation()
        return transform, transform.transform_point(self._tip), rotation_of_link(np.array(transform))


def _slice_of(places: list[int]) -> slice:
    """Places that follow one another."""
    if places != list(range(places[0], places[0] + len(places))):
        raise ValueError(f"places {places} are not one after another")
    return slice(places[0], places[0] + len(places))
