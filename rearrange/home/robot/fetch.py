"""The Fetch robot as a primitive MuJoCo model, from its published kinematics (fetch_description; HAB's constants).

Base frame: on the floor under the middle of the base, x forward, y left, z up. The base drives on two slides and a
hinge with force-limited velocity servos, so furniture stops it. The arm follows position targets and carries its own
weight. One hand is HAB's suction gripper: the cup's face is the site `end_effector`, which looks along its x axis. The
other is the Fetch's own parallel gripper: 0.1 m open, 60 N, 0.05 m/s; the site is between its fingers, which close
along its y axis.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from rearrange.home.robot.cameras import camera_mjcf
from rearrange.home.robot.fetch_looks import INSTEAD_OF, SHAPES, SHAPES_WITH_FINGERS
from rearrange.home.robot.robot import Arm, Base, Camera, Hand, Joint, Mjcf, Robot

_JOINTS: tuple[tuple[str, float, float], ...] = (
    ("shoulder_pan", -1.6056, 1.6056), ("shoulder_lift", -1.221, 1.518), ("upperarm_roll", -12.6, 12.6),
    ("elbow_flex", -2.251, 2.251), ("forearm_roll", -12.6, 12.6), ("wrist_flex", -2.16, 2.16),
    ("wrist_roll", -12.6, 12.6))
"""Name and limits (rad); the three rolls turn without end and are bounded at two turns either way."""
TORSO, TORSO_START_M, _TORSO_LIMITS_M = "torso_lift", 0.15, (0.0, 0.386)

BASE = Base(radius_m=0.275, footprint_m=0.29, standing_m=0.30, push_n=400.0, height_m=0.38, trunk_m=(-0.07, 0.17, 1.3))
"""standing_m: HAB's agent is that wide."""
ARM = Arm(
    joints=tuple(Joint(*joint, delta=0.0125, lag=0.15) for joint in _JOINTS),
    start=(-0.45, -1.08, 0.1, 0.935, -0.001, 1.573, 0.005),
    # `tuck` of Fetch Robotics' demo (fetch_gazebo, demo.py): within 0.24 m of the base's middle, 0.53 to 0.99 m high.
    tucked=(1.32, 1.40, -0.2, 1.72, 0.0, 1.66, 0.0), ahead=(0.0, -1.2, 0.0, 1.1, 0.0, 1.7, 0.0),
    rest_m=(0.5, 0.0, 1.0), elbow_m=(0.4, -0.12, 1.25), reach_m=0.85, still={TORSO: TORSO_START_M})
SUCTION = Hand("suction", body="gripper", site="end_effector", pads=("suction_cup",), depth_m=0.0005,
               break_m=0.15, balls_m=((-0.07, 0.05), (-0.03, 0.05), (0.03, 0.025)),  # palm and cup
               command="0 or more: suction on; less: release")
FINGERS = Hand(
    "fingers", body="gripper", site="end_effector", pads=("finger_left", "finger_right"), break_m=math.inf,
    balls_m=((-0.07, 0.06), (0.0, 0.06)), command="0 or more: close; less: open",
    fingers=("finger_left", "finger_right"), speed_m_s=0.05, opening_m=0.1, deepest_m=0.045, past_m=0.0185)
HEAD = Camera((0.25, 0.0, 1.2), (0.75, 0.0, 1.0))
# On top of the gripper, like HAB's arm camera; at its lower edge it sees the tip of the cup and what hangs there. HAB's
# is 0.1 m above the middle, which is inside a wall or shelf in 8 of 60 starts of Pick; 0.05 m is in none.
WRIST = Camera((-0.05, 0.0, 0.05), (0.2, 0.0, 0.0))

DARK, LIGHT, BLUE, BLACK = "0.20 0.21 0.24 1", "0.90 0.90 0.88 1", "0.22 0.38 0.60 1", "0.09 0.09 0.10 1"

# Each arm link: offset from its parent, joint axis, capsule to the next joint, radius, mass (fetch_description).
_LINKS: tuple[tuple[str, str, str, float, float, str], ...] = (
    ("0.119525 0 0.34858", "0 0 1", "0 0 0 0.117 0 0.06", 0.055, 2.56, LIGHT),
    ("0.117 0 0.06", "0 1 0", "0 0 0 0.21 0 0", 0.055, 2.66, BLUE),
    ("0.219 0 0", "1 0 0", "0 0 0 0.12 0 0", 0.052, 2.33, LIGHT),
    ("0.133 0 0", "0 1 0", "0 0 0 0.19 0 0", 0.050, 2.10, BLUE),
    ("0.197 0 0", "1 0 0", "0 0 0 0.11 0 0", 0.048, 1.66, LIGHT),
    ("0.1245 0 0", "0 1 0", "0 0 0 0.13 0 0", 0.045, 1.66, BLUE),
    ("0.1385 0 0", "1 0 0", "0 0 0 0.06 0 0", 0.045, 0.135, LIGHT))
# What collides is fewer and simpler shapes, unseen, because each costs time: three capsules from joint to joint, which
# a roll of the links does not move, with the links' own radii; and the torso, which stays at its height, as a part of
# the base. Body: (name, type, size, place).
_COLLISION: dict[str, tuple[tuple[str, str, str, str], ...]] = {
    "shoulder_pan": (("arm_shoulder", "capsule", "0.055", 'fromto="0 0 0 0.117 0 0.06"'),),
    "shoulder_lift": (("arm_upperarm", "capsule", "0.055", 'fromto="0 0 0 0.339 0 0"'),),
    "elbow_flex": (("arm_forearm", "capsule", "0.050", 'fromto="0 0 0 0.307 0 0"'),),
    "wrist_flex": (("arm_wrist", "capsule", "0.045", 'fromto="0 0 0 0.1985 0 0"'),)}
_TORSO_COLLISION: tuple[tuple[str, str, str, str], ...] = (
    ("base_torso_space", "box", "0.085 0.135 0.22", f'pos="-0.071875 0 {0.69743 + TORSO_START_M:.5f}"'),
    ("base_head_space", "box", "0.085 0.12 0.045", f'pos="-0.001875 0 {1.03243 + TORSO_START_M:.5f}"'))
# Of the base: name, radius, from and to which height (m), mass (kg), colour, and from which height it collides: the
# skirt from below the floor, which it does not touch. One that ends above it is pushed up at the edge of something 3 cm
# high, and held down by the base's joints with 300 kN.
_ROUND: tuple[tuple[str, float, float, float, float, str, float], ...] = (
    ("base_body", BASE.radius_m, 0.07, 0.31, 48, DARK, 0.07),
    ("base_skirt", 0.24, 0.01, 0.07, 2, BLACK, -0.09),
    ("base_deck", 0.25, 0.31, 0.36, 2, LIGHT, 0.31))
_SIDES = 24
_NOTHING = 'contype="0" conaffinity="0"'
_PAD = 'priority="2" condim="4" friction="1 0.01 0.0001" solref="0.0167 1" solimp="0.95 0.999 0.0005"'
"""Contacts of a finger: of the pad, whatever it touches."""
_OPTION = '<option cone="elliptic" impratio="10"/>'
"""Friction that holds: with a home's own cones objects slip by up to 16 mm in 10 s at rest, with these by 0.6 mm
(docs/findings/fingers.md)."""
SERVOS: tuple[tuple[float, float, float], ...] = ((400, 40, 34), (700, 70, 130), (300, 30, 76), (400, 40, 66),
                                                   (150, 12, 30), (150, 12, 26), (60, 4, 8))
"""Of each arm joint: position gain (N m/rad), velocity gain (N m s/rad), torque limit (N m)."""


def robot_assets() -> str:
    """MJCF of the prisms that stand for the round parts of the base in collisions.

    At the edge of a box, MuJoCo 3.15 to 4.0 turns the normal of a cylinder by 39 degrees in the median (3.9 does not).
    A base of cylinders then sinks centimetres into the corners of furniture.
    """
    def vertices(radius: float, low: float, top: float) -> str:
        outer = radius / math.cos(math.pi / _SIDES)  # the sides touch the circle
        angles = [2 * math.pi * (k + 0.5) / _SIDES for k in range(_SIDES)]
        return " ".join(f"{outer * math.cos(a):.6f} {outer * math.sin(a):.6f} {z:.6g}" for z in (low, top)
                        for a in angles)

    return "".join(f'<mesh name="{name}" vertex="{vertices(radius, low, top)}"/>'
                   for name, radius, _, top, *_, low in _ROUND)


def _geom(name: str, kind: str, size: str, position: str, mass: float, rgba: str, bits: str) -> str:
    return (f'<geom name="{name}" type="{kind}" size="{size}" pos="{position}" mass="{mass}" rgba="{rgba}" '
            f'group="3" {bits}/>')


def _cup(bits: str) -> tuple[str, ...]:
    """MJCF of the suction gripper, in the body of the hand."""
    return (_geom("gripper_palm", "box", "0.055 0.045 0.035", "-0.045 0 0", 1.2, DARK, bits),
            # The cup's axis is the hand's x axis.
            _geom("suction_cup", "cylinder", "0.025 0.02", "0.03 0 0", 0.1, BLACK, f'euler="0 1.5707963 0" {bits}'),
            '<site name="end_effector" pos="0.05 0 0" size="0.01"/>')


def _fingers(bits: str) -> tuple[str, ...]:
    """MJCF of the parallel gripper, in the body of the hand: a palm and two fingers of 77 x 14 x 27 mm that slide."""
    made = [_geom("gripper_palm", "box", "0.031 0.065 0.03", "-0.0695 0 0", 1.35, DARK, bits),
            '<site name="end_effector" pos="0.02 0 0" size="0.01"/>']
    for name, side in zip(FINGERS.fingers, (1, -1)):
        made.append(f'<body name="{name}" pos="0 {side * 0.057} 0" gravcomp="1"><joint name="{name}" type="slide" '
                    f'axis="0 {-side} 0" range="0 {FINGERS.opening_m / 2}" armature="1" damping="20"/>'
                    + _geom(name, "box", "0.0385 0.007 0.0135", "0 0 0", 0.08, BLACK, f"{_PAD} {bits}") + "</body>")
    return tuple(made)


def robot_body(base_bits: str, arm_bits: str, prisms: bool = True,
               hand: Callable[[str], tuple[str, ...]] = _cup) -> str:
    """MJCF of the robot at the origin.

    Args:
        base_bits, arm_bits: Attributes contype and conaffinity of base and arm geoms.
        prisms: The round parts of the base collide as those of `robot_assets`, not as cylinders.
        hand: What is in the body of the hand, given the attributes of its geoms.
    """
    bits = _NOTHING if prisms else base_bits

    def spaces(shapes: tuple[tuple[str, str, str, str], ...], bits: str) -> list[str]:
        return [f'<geom name="{name}" type="{kind}" size="{size}" {place} mass="0" rgba="0 0 0 0" group="3" {bits}/>'
                for name, kind, size, place in shapes]

    geom = partial(_geom, bits=base_bits)
    s = ['<body name="base">',
         '<joint name="base_x" type="slide" axis="1 0 0"/><joint name="base_y" type="slide" axis="0 1 0"/>',
         '<joint name="base_yaw" type="hinge" axis="0 0 1"/>',
         *(geom(name, "cylinder", f"{radius} {(top - bottom) / 2:.6g}", f"0 0 {(top + bottom) / 2:.6g}", mass, rgba,
                bits=bits) for name, radius, bottom, top, mass, rgba, _ in _ROUND),
         geom("base_column", "box", "0.10 0.14 0.20", "-0.10 0 0.55", 20, DARK),
         *(f'<geom name="{name}_space" type="mesh" mesh="{name}" mass="0" rgba="0 0 0 0" group="3" {base_bits}/>'
           for name, *_ in (_ROUND if prisms else ())), *spaces(_TORSO_COLLISION, base_bits), camera_mjcf("head", HEAD),
         '<body name="torso" pos="-0.086875 0 0.37743" gravcomp="1">', f'<joint name="{TORSO}" '
         f'type="slide" axis="0 0 1" range="{_TORSO_LIMITS_M[0]} {_TORSO_LIMITS_M[1]}" armature="5" damping="20"/>',
         geom("base_torso", "box", "0.085 0.135 0.22", "0.015 0 0.32", 11, LIGHT, bits=_NOTHING),
         geom("base_neck", "cylinder", "0.045 0.04", "0.045 0 0.57", 1, DARK, bits=_NOTHING),
         geom("base_head", "box", "0.085 0.12 0.045", "0.085 0 0.655", 3, LIGHT, bits=_NOTHING),
         geom("base_visor", "box", "0.008 0.10 0.028", "0.172 0 0.66", 0.2, BLACK, bits=_NOTHING)]
    for (name, low, high), link in zip(_JOINTS, _LINKS, strict=True):
        offset, axis, line, radius, mass, rgba = link
        span = f'range="{low} {high}"' if abs(low) < 12 else ""
        s += [f'<body name="{name}_link" pos="{offset}" gravcomp="1">',
              f'<joint name="{name}" axis="{axis}" {span} armature="0.3" damping="2"/>',
              f'<geom name="arm_{name}" type="capsule" fromto="{line}" size="{radius}" mass="{mass}" rgba="{rgba}" '
              f'group="3" {_NOTHING}/>', *spaces(_COLLISION.get(name, ()), arm_bits)]
    s += ['<body name="gripper" pos="0.16645 0 0" gravcomp="1">', *hand(arm_bits), "</body>" * (len(_JOINTS) + 3)]
    return "\n".join(s)


def robot_actuators() -> str:
    """MJCF of the servos: base velocities (m/s, rad/s, world axes), torso height (m), arm joint positions (rad)."""
    s = [f'<velocity name="{name}" joint="{name}" kv="{kv}" forcerange="-{force} {force}"/>'
         for name, kv, force in (("base_x", 3000, 400), ("base_y", 3000, 400), ("base_yaw", 800, 120))]
    s.append(f'<position name="{TORSO}" joint="{TORSO}" kp="8000" kv="800" forcerange="-450 '
             '450" inheritrange="1"/>')
    for (name, low, high), (kp, kv, force) in zip(_JOINTS, SERVOS, strict=True):
        s.append(f'<position name="{name}" joint="{name}" kp="{kp}" kv="{kv}" forcerange="-{force} {force}" '
                 f'ctrlrange="{low} {high}"/>')
    return "\n".join(s)


def _with_cup(base_bits: str, arm_bits: str) -> Mjcf:
    return Mjcf(robot_assets(), robot_body(base_bits, arm_bits), robot_actuators())


def _with_fingers(base_bits: str, arm_bits: str) -> Mjcf:
    """One motor moves both fingers, which a constraint stands for."""
    left, right = FINGERS.fingers
    servos = "".join(f'<position name="{name}" joint="{name}" kp="6000" kv="150" forcerange="-60 60"/>'
                     for name in FINGERS.fingers)
    return Mjcf(robot_assets(), robot_body(base_bits, arm_bits, hand=_fingers), robot_actuators() + servos,
                f'<joint joint1="{left}" joint2="{right}" solref="0.01 1" solimp="0.99 0.999 0.0005"/>', _OPTION)


FETCH = Robot(
    "fetch", BASE, ARM, SUCTION, HEAD, WRIST, _with_cup, looks=SHAPES, hidden=INSTEAD_OF,
    parts={"torso": "torso", "gripper": "gripper"} | dict.fromkeys(("base_neck", "base_head", "base_visor"), "head"))
WITH_FINGERS = replace(
    # The palm is wider than a cup's; and fingers have to be turned, which at HAB's 0.4 rad/s takes 4 s for a drawer's
    # bar: 1.5 rad/s, of the 2.3 that are published.
    FETCH, arm=replace(ARM, tucked=(*ARM.tucked[:5], 1.46, 0.0),
                       joints=(*ARM.joints[:-1], replace(ARM.joints[-1], delta=0.05))),
    hand=FINGERS, mjcf=_with_fingers, looks=SHAPES_WITH_FINGERS, hidden=INSTEAD_OF[:-1],
    parts={**FETCH.parts, **dict.fromkeys(FINGERS.fingers, "gripper")})
HANDS = (FETCH, WITH_FINGERS)
"""The Fetch with each of its hands, the usual one first."""
