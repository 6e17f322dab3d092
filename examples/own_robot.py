"""A robot of one's own: a narrow base, a column, and an arm of six joints, the first of which slides. It picks.

    python examples/own_robot.py
"""

from rearrange.home.robot.cameras import camera_mjcf
from rearrange.home.robot.robot import Arm, Base, Camera, Hand, Joint, Mjcf, Robot

# Place on the body before it (m), axis, length (m), and the joint itself.
LINKS = (("0.05 0 0.62", "0 0 1", 0.0, Joint("lift", 0.0, 0.5, delta=0.01, lag=0.1, unit="m")),
         ("0.06 0 0.06", "0 0 1", 0.0, Joint("pan", -2.6, 2.6, delta=0.02, lag=0.2)),
         ("0.05 0 0.05", "0 1 0", 0.28, Joint("upper", -1.6, 1.6, delta=0.02, lag=0.2)),
         ("0.28 0 0", "0 1 0", 0.26, Joint("elbow", -2.4, 2.4, delta=0.02, lag=0.2)),
         ("0.26 0 0", "0 1 0", 0.10, Joint("bend", -2.1, 2.1, delta=0.02, lag=0.2)),
         ("0.10 0 0", "1 0 0", 0.06, Joint("roll", -3.1, 3.1, delta=0.02, lag=0.2)))
HEAD = Camera(position_m=(0.12, 0.0, 1.3), target_m=(0.62, 0.0, 1.0))


def model(base_bits: str, arm_bits: str) -> Mjcf:
    """Cylinders, capsules and a cup, and their servos."""
    body = ['<body name="base"><joint name="base_x" type="slide" axis="1 0 0"/>'
            '<joint name="base_y" type="slide" axis="0 1 0"/><joint name="base_yaw" type="hinge" axis="0 0 1"/>'
            f'<geom type="cylinder" size="0.22 0.12" pos="0 0 0.18" mass="30" group="3" {base_bits}/>'
            f'<geom type="cylinder" size="0.06 0.5" pos="-0.05 0 0.8" mass="10" group="3" {base_bits}/>',
            camera_mjcf("head", HEAD)]
    servos = [f'<velocity name="{name}" joint="{name}" kv="{kv}" forcerange="-{force} {force}"/>'
              for name, kv, force in (("base_x", 3000, 400), ("base_y", 3000, 400), ("base_yaw", 800, 120))]
    for place, axis, length, joint in LINKS:
        kind, kp, kv, force = ("slide", 8000, 800, 450) if joint.unit == "m" else ("hinge", 500, 50, 120)
        shape = f'type="capsule" fromto="0 0 0 {length} 0 0" size="0.035"' if length else 'type="sphere" size="0.05"'
        body.append(f'<body name="{joint.name}" pos="{place}" gravcomp="1"><joint name="{joint.name}" type="{kind}" '
                    f'axis="{axis}" range="{joint.low} {joint.high}" armature="0.3" damping="2"/>'
                    f'<geom {shape} mass="1" group="3" {arm_bits}/>')
        servos.append(f'<position name="{joint.name}" joint="{joint.name}" kp="{kp}" kv="{kv}" '
                      f'forcerange="-{force} {force}" ctrlrange="{joint.low} {joint.high}"/>')
    body += ['<body name="hand" pos="0.09 0 0" gravcomp="1"><geom name="cup" type="cylinder" size="0.02 0.02" '
             f'pos="0.02 0 0" euler="0 1.5707963 0" mass="0.1" group="3" {arm_bits}/><site name="tip" pos="0.04 0 0"/>',
             "</body>" * (len(LINKS) + 2)]
    return Mjcf("", "\n".join(body), "\n".join(servos))


SMALL = Robot(
    "small", Base(radius_m=0.22, footprint_m=0.24, standing_m=0.26, push_n=400.0, height_m=0.3,
                  trunk_m=(-0.05, 0.06, 1.3)),
    Arm(joints=tuple(joint for *_, joint in LINKS), start=(0.3, 0.0, -1.2, 2.0, 0.6, 0.0),
        tucked=(0.3, 2.5, -1.4, 2.3, 0.6, 0.0), ahead=(0.3, 0.0, -0.3, 0.6, 0.0, 0.0), rest_m=(0.45, 0.0, 1.0),
        elbow_m=(0.2, 0.0, 1.0), reach_m=0.7, still={}),
    Hand("suction", body="hand", site="tip", pads=("cup",), depth_m=0.0005, break_m=0.12,
         balls_m=((0.02, 0.03),), command="0 or more: suction on; less: release"),
    head=HEAD, wrist=Camera(position_m=(-0.06, 0.0, 0.06), target_m=(0.2, 0.0, 0.0)), mjcf=model,
    parts={"hand": "gripper"})

if __name__ == "__main__":
    from skills import make_env
    from skills.experts import expert_class

    env = make_env("pick", robot="own_robot:SMALL", depth_size=0, split="val", num_layouts=4)
    for episode in range(2):
        env.reset(options={"episode": episode})
        expert, done = expert_class("pick")(env.sim, env.skill), False
        while not done:
            *_, terminated, truncated, info = env.step(expert.act())
            done = terminated or truncated
        print(f"pick: success {info['success']} after {env.steps} steps")
