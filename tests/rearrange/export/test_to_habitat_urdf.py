"""The exported Fetch and furniture move, weigh and collide as the MuJoCo model does; read back from the URDF files."""

import mujoco
import numpy as np
import pytest

from rearrange.habitat.export.fetch_links import EE_OFFSET_M, fetch_links
from rearrange.habitat.export.home_files import root_pose, write_home
from rearrange.habitat.export.links import shapes_of
from rearrange.habitat.export.urdf import roll_pitch_yaw
from rearrange.home.apartments.layouts import make_layout
from rearrange.home.axis_conventions import AXES, pose_to_matrix, to_y_up
from rearrange.home.robot import fetch
from rearrange.home.simulation.mujoco.build_model import compile_home
from tests.rearrange.export.urdf_reader import Urdf, origin, turn

pytest.importorskip("trimesh", reason="exporting scenes needs trimesh")

# habitat-lab 0.3.3, articulated_agents/robots/fetch_robot.py and fetch_suction.py
FETCH_ROBOT = {"wheels": [2, 4], "back": 6, "head": [8, 9], "arm": list(range(15, 22)), "gripper": 22,
               "fingers": [23, 24]}
BASE_LINKS = {"base_link", "r_wheel_link", "l_wheel_link", "bellows_link", "bellows_link2", "estop_link", "laser_link",
              "torso_fixed_link"}
BODIES = {"torso_lift_link": "torso", "gripper_link": "gripper"}  # link -> body, where they are not called alike


@pytest.fixture(scope="module")
def layout():
    return make_layout("val", 3)


@pytest.fixture(scope="module")
def model(layout):
    return compile_home(layout, ())


@pytest.fixture(scope="module")
def folder(tmp_path_factory, layout):
    from rearrange.habitat.export.data_set import write_robot

    made = tmp_path_factory.mktemp("exported")
    write_home(made, layout)
    write_robot(made)
    return made


@pytest.fixture(scope="module")
def robot(folder):
    return Urdf(folder / "robots" / "fetch.urdf")


def posed(model, rng):
    """MuJoCo at random joint positions, the robot at the origin; and the same positions by the URDF's joints."""
    data, positions = mujoco.MjData(model), {}
    data.qpos[:] = 0.0
    for name, (low, high) in zip(fetch.ARM.names, zip(fetch.ARM.low.tolist(), fetch.ARM.high.tolist())):
        positions[f"{name}_joint"] = data.joint(name).qpos[0] = rng.uniform(max(low, -3), min(high, 3))
    positions["torso_lift_joint"] = data.joint(fetch.TORSO).qpos[0] = rng.uniform(*model.joint(fetch.TORSO).range)
    mujoco.mj_forward(model, data)
    return data, positions


def test_the_links_have_the_numbers_of_habitat_lab(robot):
    numbers = robot.numbers()
    joints = {numbers[joint.find("child").get("link")]: name for name, joint in robot.joints.items()}
    assert [joints[i] for i in FETCH_ROBOT["arm"]] == [f"{name}_joint" for name in fetch.ARM.names]
    assert [joints[i] for i in FETCH_ROBOT["wheels"]] == ["l_wheel_joint", "r_wheel_joint"]
    assert joints[FETCH_ROBOT["back"]] == "torso_lift_joint"
    assert [joints[i] for i in FETCH_ROBOT["head"]] == ["head_pan_joint", "head_tilt_joint"]
    assert numbers["gripper_link"] == FETCH_ROBOT["gripper"] and BASE_LINKS <= set(numbers)
    driven = [FETCH_ROBOT["back"], *(i for part in ("arm", "wheels", "head", "fingers") for i in FETCH_ROBOT[part])]
    assert all(robot.joints[joints[i]].get("type") != "fixed" for i in driven), "habitat-lab drives a motor of each"


@pytest.mark.parametrize("seed", range(3))
def test_the_robot_moves_as_in_mujoco(robot, model, seed):
    data, positions = posed(model, np.random.default_rng(seed))
    placed = robot.place(positions)
    for link in ("torso_lift_link", *(f"{name}_link" for name in fetch.ARM.names), "gripper_link"):
        body = data.body(BODIES.get(link, link))
        assert placed[link][:3, 3] == pytest.approx(AXES @ body.xpos, abs=1e-7), link
        assert placed[link][:3, :3] == pytest.approx(AXES @ body.xmat.reshape(3, 3), abs=1e-7), link
    cup = placed["suction_cup_link"] @ [EE_OFFSET_M, 0, 0, 1]
    assert cup[:3] == pytest.approx(AXES @ data.site("end_effector").xpos, abs=1e-7)


def test_limits_and_efforts_of_the_arm(robot, model):
    for name, (low, high) in zip(fetch.ARM.names, zip(fetch.ARM.low.tolist(), fetch.ARM.high.tolist())):
        joint = robot.joints[f"{name}_joint"]
        limit = joint.find("limit")
        if name.endswith("_roll"):
            assert joint.get("type") == "continuous"
        else:
            assert (float(limit.get("lower")), float(limit.get("upper"))) == (low, high)
        assert float(limit.get("effort")) == model.actuator(name).forcerange[1]


def test_masses_and_inertias(robot, model):
    for link in ("torso_lift_link", *(f"{name}_link" for name in fetch.ARM.names)):
        i = model.body(BODIES.get(link, link)).id
        assert robot.mass(link) == pytest.approx(model.body_mass[i])
        assert robot.center_of_mass(link) == pytest.approx(model.body_ipos[i], abs=1e-8)
        principal = np.linalg.eigvalsh(robot.inertia(link))
        assert np.sort(principal) == pytest.approx(np.sort(model.body_inertia[i]), abs=1e-7)
    hand = robot.mass("gripper_link") + robot.mass("suction_cup_link")
    assert hand == pytest.approx(model.body("gripper").mass[0])


def test_what_collides_is_where_it_is_in_mujoco(robot, model):
    data, positions = posed(model, np.random.default_rng(5))
    placed = robot.place(positions)
    found = {}
    for link, element in robot.links.items():
        for collision in element.findall("collision"):
            found[collision.get("name")] = placed[link] @ origin(collision), collision.find("geometry")[0].attrib
    robots = [g for g in range(model.ngeom) if model.geom_group[g] == 3 and model.geom_contype[g]]
    # The prisms of the base stand for cylinders, which Bullet can collide.
    robots = [model.geom(model.geom(g).name.removesuffix("_space")).id
              if model.geom_type[g] == mujoco.mjtGeom.mjGEOM_MESH else g for g in robots]
    assert set(found) == {model.geom(g).name for g in robots}
    for g in robots:
        place, size = found[model.geom(g).name]
        assert place[:3, 3] == pytest.approx(AXES @ data.geom_xpos[g], abs=1e-7)
        axis = AXES @ data.geom_xmat[g].reshape(3, 3)[:, 2]
        assert abs(place[:3, 2] @ axis) == pytest.approx(1.0)
        if "radius" in size:
            assert (float(size["radius"]), float(size["length"]) / 2) == pytest.approx(tuple(model.geom_size[g][:2]))
        else:
            assert [float(v) / 2 for v in size["size"].split()] == pytest.approx(model.geom_size[g])


@pytest.mark.parametrize("opening", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("kind, name", [("drawer", "kitchen_counter"), ("fridge", "fridge")])
def test_drawers_and_door_open_as_in_mujoco(folder, layout, model, kind, name, opening):
    """`opening` as a part of the range; every handle is compared in the world."""
    urdf, data = Urdf(folder / "articulated" / "val_0003" / f"{name}.urdf"), mujoco.MjData(model)
    joints = [body for body in layout.bodies if body.name.startswith(kind)]
    positions = {}
    for body in joints:
        limit = urdf.joints[body.name].find("limit")
        assert (float(limit.get("lower")), float(limit.get("upper"))) == body.range_m_or_rad
        positions[body.name] = data.joint(body.name).qpos[0] = opening * body.range_m_or_rad[1]
    mujoco.mj_forward(model, data)
    x, y, yaw = root_pose(layout, kind)
    root = np.array(pose_to_matrix((x, y, 0.0, np.cos(yaw / 2), 0.0, 0.0, np.sin(yaw / 2))))
    placed = urdf.place(positions)
    for body in joints:
        (handle,) = [s for s in shapes_of(model, body.name) if s.name == f"{body.name}_handle"]
        there = root @ placed[body.name] @ [*to_y_up(handle.position_m), 1.0]
        assert there[:3] == pytest.approx(AXES @ data.site(f"{body.name}_handle").xpos, abs=1e-6)
        assert urdf.mass(body.name) == pytest.approx(model.body(body.name).mass[0])


def test_angles_of_a_rotation():
    rng = np.random.default_rng(0)
    for angles in [*rng.uniform(-1.5, 1.5, (5, 3)), (0.4, np.pi / 2, 0.3), (0.4, -np.pi / 2, 0.3)]:
        rotation = turn("z", angles[2]) @ turn("y", angles[1]) @ turn("x", angles[0])
        roll, pitch, yaw = roll_pitch_yaw(rotation)
        assert turn("z", yaw) @ turn("y", pitch) @ turn("x", roll) == pytest.approx(rotation, abs=1e-8)


def test_every_seen_shape_of_the_robot_is_in_a_mesh(folder, model):
    seen_links = {link.name: [shape.name for shape in link.shapes if shape.seen] for link in fetch_links()}
    seen = {model.geom(g).name for g in range(model.ngeom) if model.geom_group[g] == 3 and model.geom_rgba[g][3] > 0}
    assert {name for names in seen_links.values() for name in names} == seen
    files = {path.name for path in (folder / "robots").glob("*.glb")}
    assert files == {f"fetch_{link}.glb" for link, names in seen_links.items() if names}
