"""The Fetch robot as a primitive MuJoCo model, from its published kinematics (fetch_description; HAB's constants).

Base frame: on the floor under the middle of the base, x forward, y left, z up. The base drives on two slides and a hinge
with force-limited velocity servos, so furniture stops it. The arm follows position targets and carries its own weight.
The hand is HAB's suction gripper: the cup's face is the site `end_effector`, which looks along its x axis.
"""

from __future__ import annotations

BASE_JOINT_NAMES: tuple[str, ...] = ("base_x", "base_y", "base_yaw")
TORSO_JOINT_NAME = "torso_lift"
JOINT_NAMES: tuple[str, ...] = (
    "shoulder_pan", "shoulder_lift", "upperarm_roll", "elbow_flex", "forearm_roll", "wrist_flex", "wrist_roll")
"""The seven arm joints, in the order of the action and of the `joint` observation."""

ARM_START_RAD: tuple[float, ...] = (-0.45, -1.08, 0.1, 0.935, -0.001, 1.573, 0.005)
TORSO_START_M = 0.15
REST_POSITION_M: tuple[float, float, float] = (0.5, 0.0, 1.0)
"""Where the end-effector rests, in the base frame."""
ARM_DELTA_RAD = 0.0125
"""Change of a joint target at full action, per 30 Hz step."""
ARM_LIMITS_RAD: tuple[tuple[float, float], ...] = (
    (-1.6056, 1.6056), (-1.221, 1.518), (-12.6, 12.6), (-2.251, 2.251), (-12.6, 12.6), (-2.16, 2.16), (-12.6, 12.6))
"""Joint limits; the three rolls turn without end and are bounded at two turns either way."""
TORSO_LIMITS_M: tuple[float, float] = (0.0, 0.386)
BASE_RADIUS_M = 0.275

HEAD_CAMERA_POSITION_M: tuple[float, float, float] = (0.25, 0.0, 1.2)
HEAD_CAMERA_TARGET_M: tuple[float, float, float] = (0.75, 0.0, 1.0)
HEAD_CAMERA_FOV_DEG = 90.0

DARK, LIGHT, BLUE, BLACK = "0.20 0.21 0.24 1", "0.90 0.90 0.88 1", "0.22 0.38 0.60 1", "0.09 0.09 0.10 1"

# Body offset from the parent, joint axis, capsule from the joint to the next one, radius, mass (fetch_description).
_LINKS: tuple[tuple[str, str, str, float, float, str], ...] = (
    ("0.119525 0 0.34858", "0 0 1", "0 0 0 0.117 0 0.06", 0.055, 2.56, LIGHT),
    ("0.117 0 0.06", "0 1 0", "0 0 0 0.21 0 0", 0.055, 2.66, BLUE),
    ("0.219 0 0", "1 0 0", "0 0 0 0.12 0 0", 0.052, 2.33, LIGHT),
    ("0.133 0 0", "0 1 0", "0 0 0 0.19 0 0", 0.050, 2.10, BLUE),
    ("0.197 0 0", "1 0 0", "0 0 0 0.11 0 0", 0.048, 1.66, LIGHT),
    ("0.1245 0 0", "0 1 0", "0 0 0 0.13 0 0", 0.045, 1.66, BLUE),
    ("0.1385 0 0", "1 0 0", "0 0 0 0.06 0 0", 0.045, 0.135, LIGHT),
)
# Gains of the position servos: kp (N m/rad), kv (N m s/rad), force limit (N m).
_SERVOS: tuple[tuple[float, float, float], ...] = (
    (400, 40, 34), (700, 70, 130), (300, 30, 76), (400, 40, 66), (150, 12, 30), (150, 12, 26), (60, 4, 8))


def robot_body(base_bits: str, arm_bits: str) -> str:
    """MJCF of the robot at the origin. The arguments are contype/conaffinity attributes of base and arm geoms."""
    base = f'group="3" {base_bits}'
    arm = f'group="3" {arm_bits}'
    s = [
        '<body name="base">',
        "".join(f'<joint name="{name}" type="{kind}" axis="{axis}"/>' for name, kind, axis in (
            ("base_x", "slide", "1 0 0"), ("base_y", "slide", "0 1 0"), ("base_yaw", "hinge", "0 0 1"))),
        f'<geom name="base_body" type="cylinder" size="{BASE_RADIUS_M} 0.12" pos="0 0 0.19" mass="48" rgba="{DARK}" {base}/>',
        f'<geom name="base_skirt" type="cylinder" size="0.24 0.03" pos="0 0 0.04" mass="2" rgba="{BLACK}" {base}/>',
        f'<geom name="base_deck" type="cylinder" size="0.25 0.025" pos="0 0 0.335" mass="2" rgba="{LIGHT}" {base}/>',
        f'<geom name="base_column" type="box" size="0.10 0.14 0.20" pos="-0.10 0 0.55" mass="20" rgba="{DARK}" {base}/>',
        _head_camera(),
        f'<body name="torso" pos="-0.086875 0 0.37743" gravcomp="1"><joint name="{TORSO_JOINT_NAME}" type="slide" axis="0 0 1" '
        f'range="{TORSO_LIMITS_M[0]} {TORSO_LIMITS_M[1]}" armature="5" damping="20"/>',
        f'<geom name="base_torso" type="box" size="0.085 0.135 0.22" pos="0.015 0 0.32" mass="11" rgba="{LIGHT}" {base}/>',
        f'<geom name="base_neck" type="cylinder" size="0.045 0.04" pos="0.045 0 0.57" mass="1" rgba="{DARK}" {base}/>',
        f'<geom name="base_head" type="box" size="0.085 0.12 0.045" pos="0.085 0 0.655" mass="3" rgba="{LIGHT}" {base}/>',
        f'<geom name="base_visor" type="box" size="0.008 0.10 0.028" pos="0.172 0 0.66" mass="0.2" rgba="{BLACK}" {base}/>',
    ]
    for name, limits, (offset, axis, line, radius, mass, rgba) in zip(JOINT_NAMES, ARM_LIMITS_RAD, _LINKS):
        bounded = abs(limits[0]) < 12
        span = f'range="{limits[0]} {limits[1]}"' if bounded else ""
        s.append(f'<body name="{name}_link" pos="{offset}" gravcomp="1">'
                 f'<joint name="{name}" axis="{axis}" {span} armature="0.3" damping="2"/>'
                 f'<geom name="arm_{name}" type="capsule" fromto="{line}" size="{radius}" mass="{mass}" rgba="{rgba}" {arm}/>')
    s.append(
        '<body name="gripper" pos="0.16645 0 0" gravcomp="1">'
        f'<geom name="gripper_palm" type="box" size="0.055 0.045 0.035" pos="-0.045 0 0" mass="1.2" rgba="{DARK}" {arm}/>'
        f'<geom name="suction_cup" type="cylinder" size="0.025 0.02" pos="0.03 0 0" euler="0 1.5707963 0" mass="0.1" '
        f'rgba="{BLACK}" {arm}/>'
        '<site name="end_effector" pos="0.05 0 0" size="0.01"/></body>')
    s.append("</body>" * len(JOINT_NAMES) + "</body></body>")
    return "\n".join(s)


def robot_actuators() -> str:
    """MJCF of the servos: base velocities (m/s, rad/s, world axes), torso height (m), arm joint positions (rad)."""
    s = [f'<velocity name="{name}" joint="{name}" kv="{kv}" forcerange="-{force} {force}"/>'
         for name, kv, force in (("base_x", 3000, 400), ("base_y", 3000, 400), ("base_yaw", 800, 120))]
    s.append(f'<position name="{TORSO_JOINT_NAME}" joint="{TORSO_JOINT_NAME}" kp="8000" kv="800" forcerange="-450 450" '
             'inheritrange="1"/>')
    for name, (low, high), (kp, kv, force) in zip(JOINT_NAMES, ARM_LIMITS_RAD, _SERVOS):
        s.append(f'<position name="{name}" joint="{name}" kp="{kp}" kv="{kv}" forcerange="-{force} {force}" '
                 f'ctrlrange="{low} {high}"/>')
    return "\n".join(s)


def _head_camera() -> str:
    """HAB's head camera: fixed to the base, so it does not rise with the torso; looks 21.8 degrees down."""
    dx = HEAD_CAMERA_TARGET_M[0] - HEAD_CAMERA_POSITION_M[0]
    dz = HEAD_CAMERA_TARGET_M[2] - HEAD_CAMERA_POSITION_M[2]
    length = (dx * dx + dz * dz) ** 0.5
    position = " ".join(str(v) for v in HEAD_CAMERA_POSITION_M)
    return (f'<camera name="head" pos="{position}" xyaxes="0 -1 0 {-dz / length:.6f} 0 {dx / length:.6f}" '
            f'fovy="{HEAD_CAMERA_FOV_DEG}"/>')
