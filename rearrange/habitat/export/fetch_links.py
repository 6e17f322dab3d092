"""The Fetch with the links and joints that habitat-lab's FetchRobot and FetchSuctionRobot expect.

Those classes know links by number: wheels 2 and 4, torso 6, head 8 and 9, arm 15 to 21, gripper 22, fingers 23 and 24
(FetchSuctionRobot: the cup is 23, and the end-effector 0.08 m along x from its frame). The numbers follow from the tree
and the names of its joints (`scene_files.urdf.tree_order`), so the tree is that of the real Fetch. Links that our model
does not have carry nothing and have no shape.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import mujoco
import numpy as np

from rearrange.habitat.export.links import Joint, Link, link_of
from rearrange.home.robot import fetch
from rearrange.home.robot.robot import BASE_JOINTS
from rearrange.home.simulation.mujoco.build_model import ARM, BASE, HEADER

NAME = "fetch"
ROOT = "base_link"
EE_OFFSET_M = 0.08
"""Of the end-effector from the frame of the cup's link, along x, in habitat-lab."""
CUP_LINK = "suction_cup_link"
_CUP_JOINT = "gripper_cup_joint"  # stands before "r_gripper_finger_joint", so that the cup is link 23
_EMPTY_KG = 0.01  # Bullet divides by the mass of what moves

# Link, parent and, where it moves: joint type, axis, range. Joints are called like links with _joint for _link.
_EMPTY: tuple[tuple[Any, ...], ...] = (
    ("bellows_link2", ROOT),
    ("estop_link", ROOT),
    ("l_wheel_link", ROOT, "continuous", (0, 1, 0)),
    ("laser_link", ROOT),
    ("r_wheel_link", ROOT, "continuous", (0, 1, 0)),
    ("torso_fixed_link", ROOT),
    ("bellows_link", "torso_lift_link"),
    ("head_pan_link", "torso_lift_link", "revolute", (0, 0, 1), (-1.57, 1.57)),
    ("head_tilt_link", "head_pan_link", "revolute", (0, 1, 0), (-0.76, 1.58)),
    ("head_camera_link", "head_tilt_link"),
    ("head_camera_depth_frame", "head_camera_link"),
    ("head_camera_depth_optical_frame", "head_camera_depth_frame"),
    ("head_camera_rgb_frame", "head_camera_link"),
    ("head_camera_rgb_optical_frame", "head_camera_rgb_frame"),
    ("r_gripper_finger_link", "gripper_link", "prismatic", (0, 1, 0), (0.0, 0.05)),
)


@lru_cache(maxsize=1)
def fetch_links() -> tuple[Link, ...]:
    """All links, frames z up; the root's frame is the base frame."""
    model = _model()
    made = [link_of(model, "base", None, ROOT), link_of(model, "torso", ROOT, "torso_lift_link", "torso_lift_joint")]
    for name in fetch.ARM.names:
        limited = not name.endswith("_roll")
        made.append(link_of(model, f"{name}_link", made[-1].name, f"{name}_link", f"{name}_joint", limited))
    made.append(link_of(model, "gripper", made[-1].name, "gripper_link", "gripper_axis"))
    made.append(link_of(model, CUP_LINK, "gripper_link", CUP_LINK, _CUP_JOINT))
    # Habitat takes centres of mass for the origins of frames; these two have to be where habitat-lab looks for them.
    made[0], made[-1] = (replace(link, center_of_mass_m=(0.0, 0.0, 0.0)) for link in (made[0], made[-1]))
    return (*made, *(_empty(*row) for row in _EMPTY))


def _model() -> mujoco.MjModel:
    """Our robot, not driving, its cup a body of its own."""
    mjcf = (f"{HEADER}<worldbody>{fetch.robot_body(BASE, ARM, prisms=False)}</worldbody>"
            f"<actuator>{fetch.robot_actuators()}</actuator></mujoco>")
    spec = mujoco.MjSpec.from_string(mjcf)
    for name in BASE_JOINTS:
        spec.delete(spec.actuator(name))
        spec.delete(spec.joint(name))
    gripper, cup, end = spec.body("gripper"), spec.geom("suction_cup"), spec.site("end_effector")
    start = np.array(end.pos) - (EE_OFFSET_M, 0.0, 0.0)
    moved = gripper.add_body(name=CUP_LINK, pos=start)
    moved.add_joint(name=_CUP_JOINT, type=mujoco.mjtJoint.mjJNT_SLIDE, axis=(1, 0, 0), range=(0, 0.0001))
    name, cup.name = cup.name, ""
    moved.add_geom(name=name, type=cup.type, size=cup.size, pos=np.array(cup.pos) - start, mass=cup.mass,
                   rgba=cup.rgba, contype=cup.contype, conaffinity=cup.conaffinity, group=cup.group,
                   euler=cup.alt.euler)
    spec.delete(cup)
    return spec.compile()


def _empty(name: str, parent: str, *moves: Any) -> Link:
    joint = Joint(name.removesuffix("_frame").replace("_link", "") + "_joint", *moves)
    return Link(name, parent, joint, mass_kg=_EMPTY_KG, inertia_kg_m2=_EMPTY_KG * 1e-3 * np.eye(3))
