"""Hello Robot's Stretch 3 as a primitive MuJoCo model, from its published kinematics, masses, limits and speeds.

Sources: the model of the MuJoCo Menagerie (places, axes and limits of joints, masses of base, mast and head), the
parameters of hello-robot/stretch_body for the SE3 (speeds: "max" of base, lift and arm, "fast" of wrist and gripper;
0.3153 m between the wheels; how far the fingers open), the hardware guide (wheels of 4 inches). Shapes, the masses of
what moves, gains and forces of the servos are ours.

Base frame: on the floor between the driven wheels, x forward, y left, z up. The arm reaches out to the right, along
-y: a telescope on a lift, then a wrist of yaw, pitch and roll. Frames from the lift on have their x axis along the arm.
The telescope has four tubes instead of five; those in the middle go a third and two thirds as far as the last. The
fingers, which bend in the real gripper, slide: 0.125 m open between pads of 40 by 40 mm, with 30 N.
"""

from __future__ import annotations

import math

from rearrange.home.robot.cameras import camera_mjcf
from rearrange.home.robot.robot import Arm, Base, Camera, Hand, Joint, Mjcf, Robot

_JOINTS: tuple[tuple[Joint, str, str, float, tuple[float, float, float]], ...] = (
    (Joint("lift", 0.0, 1.1, delta=0.15 / 30, lag=0.05, unit="m"),
     'pos="-0.104385 0.135 0.2" euler="0 0 -1.5707963"', "0 0 1", 5.0, (8000, 800, 150)),
    (Joint("arm", 0.0, 0.52, delta=0.4 / 30, lag=0.1, unit="m"), 'pos="0.28 0 0"', "1 0 0", 1.0, (4000, 300, 80)),
    (Joint("wrist_yaw", -1.39, 4.42, delta=2.5 / 30, lag=0.3), 'pos="0 0.083 -0.0307"', "0 0 1", 0.05, (100, 4, 8)),
    (Joint("wrist_pitch", -1.57, 0.56, delta=2.0 / 30, lag=0.3), 'pos="0 -0.0195 -0.0305"', "0 -1 0", 0.05,
     (100, 4, 8)),
    (Joint("wrist_roll", -3.14, 3.14, delta=3.0 / 30, lag=0.3), 'pos="0.0399 0.0195 -0.0241"', "1 0 0", 0.02,
     (60, 2.5, 4)))
"""Of each joint: where its body is on the one before, axis, armature, gains and force limit of its servo (N, N m)."""
_TUBES = {"arm_tube_1": ("arm", 1 / 3), "arm_tube_2": ("arm", 2 / 3)}
BASE = Base(radius_m=0.29, footprint_m=0.29, standing_m=0.38, push_n=100.0, height_m=0.17, trunk_m=(-0.067, 0.15, 1.4),
            most_m_s=0.3, most_rad_s=1.9)
"""standing_m: the hand, drawn in, is then before the furniture. most_rad_s: its wheels, 0.3153 m apart, at most_m_s."""
ARM = Arm(
    joints=tuple(joint for joint, *_ in _JOINTS), start=(1.0, 0.0, 0.0, -0.5, 0.0),
    tucked=(0.4, 0.0, 3.0, -0.5, 0.0), ahead=(0.8, 0.3, 0.0, 0.0, 0.0), rest_m=(0.0, -0.40, 1.0),
    elbow_m=(-0.1, -0.1, 1.0), reach_m=0.8, still={}, bearing_rad=-math.pi / 2,
    heights_m=(0.0, 1.15), coupled=_TUBES)
FINGERS = Hand(
    "fingers", body="gripper", site="grasp", pads=("pad_left", "pad_right"), break_m=math.inf,
    balls_m=((0.05, 0.06), (0.12, 0.05), (0.2, 0.06)), command="0 or more: close; less: open",
    fingers=("finger_left", "finger_right"), speed_m_s=0.036, opening_m=0.125, deepest_m=0.06, past_m=0.02)
HEAD = Camera((0.0, 0.0, 1.33), (0.0, -0.5, 1.0))
"""Its head is panned to the side to which the arm reaches, as it is for all that the arm does."""
WRIST = Camera((-0.172, 0.0, 0.06), (0.0, 0.0, 0.0))
_GRASP_M = 0.215  # of the pads before the joint that rolls

WHITE, GREY, DARK, BLACK = "0.92 0.92 0.92 1", "0.48 0.49 0.50 1", "0.16 0.16 0.17 1", "0.07 0.07 0.08 1"
_NOTHING = 'contype="0" conaffinity="0"'
_PAD = 'priority="2" condim="4" friction="1 0.01 0.0001" solref="0.0167 1" solimp="0.95 0.999 0.0005"'
_OPTION = '<option cone="elliptic" impratio="10"/>'  # friction that holds: docs/findings/fingers.md
# Boxes of the base: half sizes and middle (m), mass (kg), colour. They collide from below the floor on, which they do
# not touch: what ends above it climbs what is lower than itself.
_SHELL = (("base_front", (0.125, 0.17, 0.07), (-0.075, 0.0, 0.10), 9.0, WHITE),
          ("base_rear", (0.0375, 0.09, 0.07), (-0.2375, 0.0, 0.10), 6.0, WHITE))
# What hangs on each joint: name, half sizes and middle (m), mass, colour.
_ON_JOINT: dict[str, tuple[tuple[str, tuple[float, float, float], tuple[float, float, float], float, str], ...]] = {
    "lift": (("lift_carriage", (0.05, 0.055, 0.06), (0.0, 0.035, 0.0), 2.5, WHITE),
             ("lift_tube", (0.115, 0.036, 0.036), (0.155, 0.0, 0.0), 0.67, DARK)),
    "arm": (("arm_last", (0.095, 0.024, 0.024), (-0.095, 0.0, 0.0), 0.28, BLACK),
            ("arm_wrist", (0.024, 0.055, 0.026), (0.0, 0.055, 0.0), 0.14, GREY)),
    "wrist_yaw": (("wrist_turning", (0.026, 0.026, 0.024), (0.0, 0.0, -0.024), 0.15, DARK),),
    "wrist_pitch": (("wrist_bending", (0.03, 0.02, 0.022), (0.012, 0.012, -0.012), 0.12, DARK),),
    "wrist_roll": (("gripper_body", (0.035, 0.035, 0.025), (0.04, 0.0, 0.0), 0.29, DARK),
                   ("gripper_rail", (0.008, 0.075, 0.010), (0.073, 0.0, 0.0), 0.05, GREY),
                   ("gripper_camera", (0.012, 0.021, 0.021), (0.028, 0.0, 0.056), 0.06, GREY))}


def _vector(values: tuple[float, ...]) -> str:
    return " ".join(f"{value:.6g}" for value in values)


def _box(name: str, half_m: tuple[float, ...], middle_m: tuple[float, ...], mass_kg: float, rgba: str,
         bits: str) -> str:
    return (f'<geom name="{name}" type="box" size="{_vector(half_m)}" pos="{_vector(middle_m)}" mass="{mass_kg}" '
            f'rgba="{rgba}" group="3" {bits}/>')


def _base(bits: str) -> list[str]:
    """MJCF of shell, wheels, mast and head."""
    made = [_box(*part, bits) for part in _SHELL]
    made += [_box(f"{name}_below", (half[0], half[1], 0.06), (middle[0], middle[1], -0.03), 0.0, "0 0 0 0", bits)
             for name, half, middle, *_ in _SHELL]
    made += [f'<geom name="wheel_{side}" type="cylinder" size="0.0508 0.012" pos="0 {y} 0.0508" '
             f'euler="1.5707963 0 0" mass="0.15" rgba="{BLACK}" group="3" {_NOTHING}/>'
             for side, y in (("left", 0.158), ("right", -0.158))]
    made += [f'<geom name="base_laser" type="cylinder" size="0.035 0.02" pos="0.004 0 0.19" mass="0.24" rgba="{BLACK}" '
             f'group="3" {bits}/>',
             _box("mast", (0.034, 0.034, 0.6), (-0.067, 0.135, 0.77), 1.83, BLACK, bits),
             _box("head_case", (0.05, 0.09, 0.025), (-0.03, 0.075, 1.385), 0.83, WHITE, bits),
             _box("head_camera", (0.045, 0.014, 0.025), (0.0, 0.025, 1.33), 0.26, GREY, _NOTHING)]
    return made


def _finger(name: str, side: int, bits: str) -> str:
    """MJCF of a pad and the bar that carries it; they slide to the middle of the hand."""
    y = side * FINGERS.opening_m / 2
    return (f'<body name="{name}" pos="0 {y:.6g} 0" gravcomp="1"><joint name="{name}" type="slide" axis="0 {-side} 0" '
            f'range="0 {FINGERS.opening_m / 2}" armature="0.3" damping="10"/>'
            + _box(f"pad_{name.partition('_')[2]}", (0.02, 0.01, 0.02), (_GRASP_M, side * 0.01, 0.0), 0.02, BLACK,
                   f"{_PAD} {bits}")
            + _box(f"{name}_bar", (0.065, 0.004, 0.009), (0.14, side * 0.016, 0.0), 0.06, GREY, bits) + "</body>")


def _tube(name: str, half_m: float, bits: str) -> str:
    """MJCF of a tube in the middle of the telescope."""
    return (f'<body name="{name}" pos="0.28 0 0" gravcomp="1"><joint name="{name}" type="slide" axis="1 0 0" '
            f'range="0 {0.52 * _TUBES[name][1]:.6g}" armature="0.5" damping="1"/>'
            + _box(f"{name}_space", (0.095, half_m, half_m), (-0.1, 0.0, 0.0), 0.16, DARK, bits) + "</body>")


def model(base_bits: str, arm_bits: str) -> Mjcf:
    """Boxes and cylinders, and their servos."""
    body = ['<body name="base"><joint name="base_x" type="slide" axis="1 0 0"/>'
            '<joint name="base_y" type="slide" axis="0 1 0"/><joint name="base_yaw" type="hinge" axis="0 0 1"/>',
            *_base(base_bits), camera_mjcf("head", HEAD)]
    servos = [f'<velocity name="{name}" joint="{name}" kv="{kv}" forcerange="-{force} {force}"/>'
              for name, kv, force in (("base_x", 1500, 100), ("base_y", 1500, 100), ("base_yaw", 300, 30))]
    for joint, place, axis, armature, (kp, kv, force) in _JOINTS:
        kind, name = "slide" if joint.unit == "m" else "hinge", joint.name
        body.append(f'<body name="{"gripper" if name == "wrist_roll" else name}" {place} gravcomp="1"><joint '
                    f'name="{name}" type="{kind}" axis="{axis}" range="{joint.low} {joint.high}" '
                    f'armature="{armature}" damping="1"/>')
        body += [_box(*part, arm_bits) for part in _ON_JOINT[name]]
        servos.append(f'<position name="{name}" joint="{name}" kp="{kp}" kv="{kv}" forcerange="-{force} {force}" '
                      f'ctrlrange="{joint.low} {joint.high}"/>')
    body += [f'<site name="grasp" pos="{_GRASP_M} 0 0" size="0.01"/>',
             *(_finger(name, side, arm_bits) for name, side in zip(FINGERS.fingers, (1, -1))), "</body>" * 4,
             *(_tube(name, 0.032 - 0.004 * k, arm_bits) for k, name in enumerate(_TUBES)), "</body></body>"]
    servos += [f'<position name="{name}" joint="{name}" kp="6000" kv="150" forcerange="-30 30"/>'
               for name in FINGERS.fingers]
    left, right = FINGERS.fingers
    stiff = 'solref="0.01 1" solimp="0.99 0.999 0.0005"'
    return Mjcf("", "\n".join(body), "\n".join(servos),
                f'<joint joint1="{left}" joint2="{right}" {stiff}/>'
                + "".join(f'<joint joint1="{name}" joint2="{of}" polycoef="0 {share:.6g} 0 0 0" {stiff}/>'
                          for name, (of, share) in _TUBES.items()), _OPTION)


STRETCH3 = Robot(
    "stretch3", BASE, ARM, FINGERS, HEAD, WRIST, model,
    parts={"gripper": "gripper", **dict.fromkeys(FINGERS.fingers, "gripper"), "mast": "torso", "head_case": "head",
           "head_camera": "head"}, time=3.0)
