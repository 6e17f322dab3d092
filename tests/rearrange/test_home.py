"""Compiled homes: the contract's names, and physics that leaves things where they are put."""

import gc
import math
import re
import subprocess
import sys
import weakref
from pathlib import Path

import mujoco
import numpy as np
import pytest

from rearrange.home.apartments.layouts import make_layout
from rearrange.home.apartments.objects import OBJECTS, STANDARD_SET
from rearrange.home.episodes.generator import generate_episode
from rearrange.home.errors import UserError
from rearrange.home.geometry import from_frame, yaw_quat
from rearrange.home.robot import fetch
from rearrange.home.robot.robot import BASE_JOINTS
from rearrange.home.simulation.mujoco.build_model import ARM, BASE, HEADER, compile_home, home_mjcf
from rearrange.home.simulation.mujoco.compiled_home import load_home
from rearrange.home.simulation.mujoco.simulator import MujocoSimulator

SAMPLE = [
    (split, index) for split, count in (("train", 18), ("val", 11), ("test", 11)) for index in range(1000, 1000 + count)
]
STEPS_PER_S = 120


@pytest.fixture(scope="module")
def home():
    layout = make_layout("train", 0)
    return layout, compile_home(layout, tuple(OBJECTS))


def place(model, data, index, position, yaw=0.0):
    address = model.joint(f"object_{index}").qposadr[0]
    data.qpos[address : address + 7] = (*position, *yaw_quat(yaw))


def receptacle_point(layout, receptacle, u=0.0, v=0.0):
    """World point on a receptacle (drawers shut) at fractions u, v of its half extents."""
    body = next((b for b in layout.bodies if b.name == receptacle.parent), None)
    x, y = from_frame(
        u * receptacle.half_extents_m[0],
        v * receptacle.half_extents_m[1],
        (*receptacle.center_m[:2], receptacle.yaw_rad),
    )
    if body is None:
        return np.array((x, y, receptacle.center_m[2]))
    return np.array((*from_frame(x, y, body.pose()), receptacle.center_m[2] + body.position_m[2]))


def filled(split, index):
    """A home with one object on every receptacle that it fits, and where each was put."""
    layout = make_layout(split, index)
    model = compile_home(layout)
    data = mujoco.MjData(model)
    put, rng = {}, np.random.default_rng(index)
    free = list(rng.permutation(len(STANDARD_SET)))
    for receptacle in layout.receptacles:
        for k in free:
            kind = OBJECTS[STANDARD_SET[k]]
            if 2 * kind.half_height_m < receptacle.clearance_m - 0.01 and kind.radius_m < min(
                receptacle.half_extents_m
            ):
                put[k] = receptacle_point(layout, receptacle) + (0, 0, kind.half_height_m + 0.0005)
                place(model, data, k, put[k], rng.uniform(-math.pi, math.pi))
                free.remove(k)
                break
    return layout, model, data, put


@pytest.mark.parametrize("split, index", SAMPLE)
def test_objects_rest_where_they_are_put_and_fall_asleep(split, index):
    layout, model, data, put = filled(split, index)
    data.qpos[model.joint("base_x").qposadr[0]] = -5.0
    mujoco.mj_forward(model, data)
    depth = max((-c.dist for c in data.contact), default=0.0)
    assert depth < 0.001, f"something starts {1000 * depth:.1f} mm inside something else"
    mujoco.mj_step(model, data, nstep=3 * STEPS_PER_S)
    assert len(put) >= 15
    for k, position in put.items():
        moved = np.linalg.norm(data.xpos[model.body(f"object_{k}").id] - position)
        assert moved < 0.004, f"{STANDARD_SET[k]} moved {1000 * moved:.1f} mm"
        tree = model.body_treeid[model.body(f"object_{k}").id]
        assert data.tree_awake[tree] == 0, f"{STANDARD_SET[k]} is awake after 3 s"
    assert max((-c.dist for c in data.contact), default=0.0) < 0.001
    assert not data.warning.number.any()
    for body in layout.bodies:
        assert abs(data.qpos[model.joint(body.name).qposadr[0]]) < 1e-3, f"{body.name} opened by itself"


@pytest.mark.parametrize("split, index", SAMPLE[::4])
def test_all_but_the_robot_sleeps_until_an_episode_begins(split, index):
    model, parked = (home := load_home(f"{split}/{index}")).model, home.parked
    robot = model.body_treeid[model.body("gripper").id]
    assert {tree for tree in range(model.ntree) if parked.tree_asleep[tree] < 0} == {robot}
    assert not parked.warning.number.any() and parked.time == 0.0 and not parked.ncon


@pytest.mark.parametrize("split, index", SAMPLE[::4])
def test_doors_and_drawers_move_freely(split, index):
    """With furniture made to feel furniture, no opening of any joint brings two pieces into contact."""
    layout = make_layout(split, index)
    model = compile_home(layout, ())
    model.geom_conaffinity[model.geom_contype == 1] |= 2
    data = mujoco.MjData(model)
    for body in layout.bodies:
        joint = model.joint(body.name)
        assert np.allclose(joint.range, body.range_m_or_rad)
        for opening in np.linspace(*joint.range, 25):
            data.qpos[:] = model.qpos0
            data.qpos[joint.qposadr[0]] = opening
            mujoco.mj_kinematics(model, data)
            mujoco.mj_collision(model, data)
            for contact in data.contact:
                touching = {model.body(model.geom_bodyid[g]).name for g in contact.geom}
                assert body.name not in touching or contact.dist > -0.001, f"{body.name} at {opening:.2f}"


def test_a_pulled_drawer_takes_its_contents_along_and_stays(home):
    layout, model = home
    data = mujoco.MjData(model)
    data.qpos[model.joint("base_x").qposadr[0]] = -5.0
    for k, name in enumerate(("drawer_0", "drawer_1")):
        place(
            model,
            data,
            k + 4,
            receptacle_point(layout, layout.receptacle(name)) + (0, 0, OBJECTS[STANDARD_SET[k + 4]].half_height_m),
        )
        body = model.body(name).id
        handle, grip = model.site(f"{name}_handle").id, np.zeros(6)
        for _ in range(STEPS_PER_S * 3):
            opening, speed = data.qpos[model.joint(name).qposadr[0]], data.qvel[model.joint(name).dofadr[0]]
            grip[:3] = data.xmat[body].reshape(3, 3)[:, 0] * np.clip(
                60 * (0.46 - opening) + 20 * (0.3 - speed), -40, 40
            )
            data.qfrc_applied[:] = 0
            mujoco.mj_applyFT(model, data, grip[:3], grip[3:], data.site_xpos[handle], body, data.qfrc_applied)
            mujoco.mj_step(model, data)
        data.qfrc_applied[:] = 0
        mujoco.mj_step(model, data, nstep=STEPS_PER_S)
        opening = data.qpos[model.joint(name).qposadr[0]]
        assert opening > 0.45
        mujoco.mj_step(model, data, nstep=STEPS_PER_S)
        assert abs(data.qpos[model.joint(name).qposadr[0]] - opening) < 1e-3
        local = data.xmat[body].reshape(3, 3).T @ (data.xpos[model.body(f"object_{k + 4}").id] - data.xpos[body])
        receptacle = layout.receptacle(name)
        assert np.all(np.abs(local[:2] - receptacle.center_m[:2]) < receptacle.half_extents_m)
        assert abs(local[2] - OBJECTS[STANDARD_SET[k + 4]].half_height_m) < 0.005


def test_the_fridge_door_opens_by_its_handle_and_stays(home):
    _, model = home
    data = mujoco.MjData(model)
    data.qpos[model.joint("base_x").qposadr[0]] = -5.0
    body, handle = model.body("fridge_door").id, model.site("fridge_door_handle").id
    joint = model.joint("fridge_door")
    mujoco.mj_forward(model, data)
    for _ in range(STEPS_PER_S * 4):
        outwards = data.xmat[body].reshape(3, 3)[:, 0] * (15.0 if data.qvel[joint.dofadr[0]] < 0.8 else 0.0)
        data.qfrc_applied[:] = 0
        if data.qpos[joint.qposadr[0]] < 1.5:
            mujoco.mj_applyFT(model, data, outwards, np.zeros(3), data.site_xpos[handle], body, data.qfrc_applied)
        mujoco.mj_step(model, data)
    opening = data.qpos[joint.qposadr[0]]
    assert 1.4 < opening < 2.4
    mujoco.mj_step(model, data, nstep=2 * STEPS_PER_S)
    assert abs(data.qpos[joint.qposadr[0]] - opening) < 2e-3


@pytest.mark.parametrize("name", OBJECTS)
def test_a_pressed_object_does_not_sink(home, name):
    """A press that grows to 300 N sinks it into a table by less than 5 mm; released, it rests on the table again."""
    layout, model = home
    data = mujoco.MjData(model)
    data.qpos[model.joint("base_x").qposadr[0]] = -5.0
    k, kind = list(OBJECTS).index(name), OBJECTS[name]
    table = receptacle_point(layout, layout.receptacle("dining_table"))
    place(model, data, k, table + (0, 0, kind.half_height_m))
    body = model.body(f"object_{k}").id
    lowest = np.inf
    mujoco.mj_step(model, data, nstep=STEPS_PER_S // 2)
    for step in range(2 * STEPS_PER_S):
        data.xfrc_applied[body, 2] = -min(300.0, 10.0 * step) if step < STEPS_PER_S else 0.0
        mujoco.mj_step(model, data)
        lowest = min(lowest, data.xpos[body, 2])
    assert table[2] + kind.half_height_m - lowest < 0.005
    assert abs(data.xpos[body, 2] - table[2] - kind.half_height_m) < 0.002


@pytest.mark.parametrize("name", ["013_apple", "005_tomato_soup_can", "024_bowl"])
def test_round_things_do_not_roll_away(home, name):
    layout, model = home
    data = mujoco.MjData(model)
    data.qpos[model.joint("base_x").qposadr[0]] = -5.0
    k, kind = list(OBJECTS).index(name), OBJECTS[name]
    start = receptacle_point(layout, layout.receptacle("dining_table")) + (0, 0, kind.half_height_m)
    place(model, data, k, start)
    data.qvel[model.joint(f"object_{k}").dofadr[0]] = 0.1
    mujoco.mj_step(model, data, nstep=4 * STEPS_PER_S)
    body = model.body(f"object_{k}").id
    assert np.linalg.norm(data.xpos[body] - start) < 0.08
    assert data.tree_awake[model.body_treeid[body]] == 0


def test_names_of_the_model(home):
    layout, model = home
    arm = ["torso_lift", *fetch.ARM.names]
    assert [model.actuator(i).name for i in range(model.nu)] == [*BASE_JOINTS, *arm]
    for name in (*BASE_JOINTS, *arm):
        assert model.joint(name).name == name
    for k in range(len(OBJECTS)):
        assert (
            model.geom(f"object_{k}").bodyid[0] == model.joint(f"object_{k}").bodyid[0] == model.body(f"object_{k}").id
        )
        weld = model.equality(f"hold_object_{k}")
        assert (weld.type[0], weld.active0[0]) == (mujoco.mjtEq.mjEQ_WELD, 0)
        assert (weld.obj1id[0], weld.obj2id[0]) == (model.body("gripper").id, model.body(f"object_{k}").id)
    for body in layout.bodies:
        assert (
            model.geom(f"{body.name}_handle").bodyid[0]
            == model.site(f"{body.name}_handle").bodyid[0]
            == model.body(body.name).id
        )
        assert model.equality(f"hold_{body.name}").type[0] == mujoco.mjtEq.mjEQ_CONNECT
    assert model.site("end_effector").bodyid[0] == model.geom("suction_cup").bodyid[0] == model.body("gripper").id
    groups = {0: 1, 1: 2, 2: 8, 3: 4}
    for g in range(model.ngeom):
        if model.geom_contype[g] and model.geom(g).name != "floor":
            assert model.geom_contype[g] == groups[model.geom_group[g]], model.geom(g).name
        if model.geom_group[g] == 3:
            assert model.geom(g).name.startswith(("base_", "arm_", "gripper_palm", "suction_cup"))
            if model.geom_contype[g]:
                assert (model.geom_conaffinity[g] == 3) == model.geom(g).name.startswith("base_")
    assert compile_home(layout).ngeom <= 195


def test_what_is_seen_of_the_robot_is_inside_what_collides(home):
    """Links and torso collide through simpler shapes, which enclose what is drawn at the start pose."""
    _, model = home
    data = mujoco.MjData(model)
    for name, value in zip((*fetch.ARM.names, "torso_lift"), (*fetch.ARM.start, fetch.TORSO_START_M)):
        data.qpos[model.joint(name).qposadr[0]] = value
    mujoco.mj_forward(model, data)
    robot = np.flatnonzero(model.geom_group == 3)
    solid = [g for g in robot if model.geom_contype[g]]
    seen = [g for g in robot if not model.geom_contype[g] and model.geom_rgba[g, 3] > 0]
    assert len(seen) >= 9
    for g in seen:
        if model.geom(g).name in ("base_neck", "base_visor"):  # between torso and head; before the face
            continue
        end = model.geom_size[g, 1] if model.geom_type[g] == mujoco.mjtGeom.mjGEOM_CAPSULE else 0.0
        for side in (-1, 0, 1):
            point = data.geom_xpos[g] + side * end * data.geom_xmat[g].reshape(3, 3)[:, 2]
            probe = min(_distance_outside(model, data, s, point) for s in solid)
            assert probe < 1e-6, model.geom(g).name


def _distance_outside(model, data, g, point) -> float:
    """Distance (m) of a point from a box, cylinder (as its box) or capsule; 0 inside."""
    local = data.geom_xmat[g].reshape(3, 3).T @ (point - data.geom_xpos[g])
    size = model.geom_size[g]
    if model.geom_type[g] == mujoco.mjtGeom.mjGEOM_CAPSULE:
        local[2] -= np.clip(local[2], -size[1], size[1])
        return max(0.0, float(np.linalg.norm(local)) - size[0])
    return float(np.linalg.norm(np.maximum(np.abs(local) - model.geom_aabb[g, 3:], 0.0)))


def test_arm_starts_where_hab_says_and_the_camera_sees_it(home):
    """HAB's start pose puts the end-effector about (0.64, -0.24, 0.94) m before the base, hand downwards."""
    _, model = home
    data = mujoco.MjData(model)
    for name, value in zip(fetch.ARM.names, fetch.ARM.start, strict=True):
        data.qpos[model.joint(name).qposadr[0]] = value
    data.qpos[model.joint("torso_lift").qposadr[0]] = fetch.TORSO_START_M
    mujoco.mj_forward(model, data)
    tip = data.site("end_effector").xpos
    assert np.allclose(tip, (0.64, -0.24, 0.94), atol=0.03)
    assert data.site("end_effector").xmat.reshape(3, 3)[2, 0] < -0.9
    camera = data.camera("head")
    assert np.allclose(camera.xpos, (0.25, 0, 1.2))
    forward = -camera.xmat.reshape(3, 3)[:, 2]
    assert np.allclose(forward, np.array((0.5, 0, -0.2)) / np.linalg.norm((0.5, 0, -0.2)), atol=1e-5)
    x, y, depth = camera.xmat.reshape(3, 3).T @ (tip - camera.xpos) * (1, 1, -1)
    assert depth > 0.1 and abs(x) < depth and abs(y) < depth, "the hand is outside the picture"
    for g in np.flatnonzero(model.geom_group == 3):
        inside = data.geom_xmat[g].reshape(3, 3).T @ (camera.xpos - data.geom_xpos[g])
        assert np.any(np.abs(inside) > model.geom_aabb[g, 3:] + 0.02), f"the camera sits in {model.geom(g).name}"


def test_the_arm_holds_its_pose_and_furniture_stops_the_base(home):
    layout, model = home
    data = mujoco.MjData(model)
    x, y, yaw = layout.counter_pose
    stand = from_frame(1.0, 0.0, layout.counter_pose)
    for name, value in zip(
        (*BASE_JOINTS, "torso_lift", *fetch.ARM.names),
        (*stand, yaw + math.pi, fetch.TORSO_START_M, *fetch.ARM.start),
        strict=True,
    ):
        data.qpos[model.joint(name).qposadr[0]] = value
    data.ctrl[3:] = (fetch.TORSO_START_M, *fetch.ARM.start)
    mujoco.mj_step(model, data, nstep=2 * STEPS_PER_S)
    joints = [data.qpos[model.joint(name).qposadr[0]] for name in fetch.ARM.names]
    assert np.allclose(joints, fetch.ARM.start, atol=2e-3)
    data.ctrl[:2] = (-math.cos(yaw), -math.sin(yaw))
    mujoco.mj_step(model, data, nstep=3 * STEPS_PER_S)
    gap = (data.body("base").xpos[:2] - (x, y)) @ (math.cos(yaw), math.sin(yaw))
    assert 0.5 < gap < 0.75, f"the base stands {gap:.2f} m before the middle of the counter"


def test_objects_have_their_published_sizes_and_masses(home):
    """Calli et al. 2015: extents in mm and mass in kg."""
    published = {
        "002_master_chef_can": (102, 102, 139, 0.414),
        "003_cracker_box": (60, 158, 210, 0.411),
        "004_sugar_box": (38, 89, 175, 0.514),
        "005_tomato_soup_can": (66, 66, 101, 0.349),
        "007_tuna_fish_can": (85, 85, 33, 0.171),
        "008_pudding_box": (35, 110, 89, 0.187),
        "009_gelatin_box": (28, 85, 73, 0.097),
        "010_potted_meat_can": (50, 97, 82, 0.370),
        "013_apple": (75, 75, 75, 0.068),
        "024_bowl": (159, 159, 53, 0.147),
    }
    assert set(published) == set(OBJECTS) and set(STANDARD_SET) == set(OBJECTS) and len(STANDARD_SET) == 20
    _, model = home
    for k, name in enumerate(OBJECTS):
        extent = sorted(2000 * model.geom_aabb[model.geom(f"object_{k}").id, 3:])
        assert np.allclose(extent, sorted(published[name][:3]), atol=0.01), name
        assert math.isclose(model.body(f"object_{k}").mass[0], published[name][3]), name


def test_an_unknown_object_is_said_plainly():
    with pytest.raises(UserError, match="003_cracker_box"):
        home_mjcf(make_layout("train", 0), ("003_craker_box",))


def test_the_corner_of_furniture_pushes_the_base_straight_away():
    """MuJoCo takes the normal of one of the box's faces for a cylinder there, which is 39 degrees off in the median."""
    corner, height = np.array([1.0, 2.0]), 0.2
    model = mujoco.MjModel.from_xml_string(
        f'{HEADER}<asset>{fetch.robot_assets()}</asset><worldbody>'
        f'<geom type="box" size="0.3 0.4 {height}" pos="{corner[0] - 0.3} {corner[1] - 0.4} {height}"/>'
        f'{fetch.robot_body(BASE, ARM)}</worldbody>'
        f'<actuator>{fetch.robot_actuators()}</actuator></mujoco>')
    data, rng, touched = mujoco.MjData(model), np.random.default_rng(0), 0
    for _ in range(200):
        direction = rng.uniform(0.0, math.pi / 2)
        away = np.array([math.cos(direction), math.sin(direction)])
        data.qpos[:3] = (*(corner + (fetch.BASE.radius_m - rng.uniform(0.001, 0.01)) * away), rng.uniform(-3, 3))
        mujoco.mj_forward(model, data)
        for contact in data.contact:
            if "base_body_space" in (model.geom(g).name for g in contact.geom):
                touched += 1
                assert abs(contact.frame[:2] @ away) > math.cos(math.radians(8)) and abs(contact.frame[2]) < 1e-6
                assert -0.015 < contact.dist < 0.0
    assert touched >= 200


def test_a_lying_can_touches_a_round_table_where_it_is():
    """MuJoCo's own cylinders meet, one time in a thousand, as deep as the table is wide, and the can flies off."""
    mjcf = next(text for text in (home_mjcf(make_layout("val", i), ("005_tomato_soup_can",)) for i in range(20))
                if "disc_" in text)
    table, disc = (re.search(kind, mjcf)[0] for kind in ("<mesh name=.disc_[^>]*>", "<geom type=.mesh. "
                                                         "mesh=.disc_[^>]*>"))
    can = re.search("<body name=.object_0.*?</body>", mjcf)[0]
    model = mujoco.MjModel.from_xml_string(f"<mujoco><asset>{table}</asset><worldbody>{disc}{can}</worldbody></mujoco>")
    data, depths = mujoco.MjData(model), []
    half_m = float(re.search(r"disc_[\d.]+_([\d.]+)", table)[1])
    lift = model.geom_pos[0] + (0, 0, half_m + model.geom_size[1][0] - 0.001)
    for around, out, yaw, lean in np.random.default_rng(0).uniform((0, 0, 0, -0.02),
                                                                   (2 * math.pi, 0.4, 2 * math.pi, 0.02), (20000, 4)):
        data.qpos[:3] = lift + (out * math.cos(around), out * math.sin(around), 0)
        half = math.pi / 4 + lean
        mujoco.mju_mulQuat(data.qpos[3:], yaw_quat(yaw), np.array([math.cos(half), math.sin(half), 0.0, 0.0]))
        mujoco.mj_kinematics(model, data)
        mujoco.mj_collision(model, data)
        depths.append(min(data.contact.dist, default=0.0))
    assert np.count_nonzero(depths) > 19000 and min(depths) > -0.01


ARENAS = '''
import gc
import mujoco
from rearrange.home.simulation.mujoco.compiled_home import load_home

def size_mb():
    return int(next(line for line in open("/proc/self/status") if line.startswith("VmSize")).split()[1]) / 1024

model = load_home("val/0").model
mujoco.MjData(model)  # is freed: from now on glibc would take such blocks from its heap
before, states, others = size_mb(), [], []
for _ in range(12):
    states.append(mujoco.MjData(model))
    others.append(bytearray(100_000))  # what comes behind keeps a heap from shrinking
taken = size_mb() - before
del states
gc.collect()
print(taken, size_mb() - before)
'''


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the size of a process from /proc")
def test_what_states_of_homes_took_the_system_has_back():
    done = subprocess.run([sys.executable, "-c", ARENAS], capture_output=True, text=True, check=True)
    taken, left = map(float, done.stdout.split())
    assert taken > 12 * 16 and left < 30, done.stdout


def test_a_home_that_is_no_longer_kept_is_freed_at_once():
    """Without Python's search for cycles, which comes seldom where few objects are made."""
    load_home.cache_clear()  # and with it homes that somebody else looks at
    sim = MujocoSimulator()
    sim.reset(generate_episode("pick", "val", 0))
    used = [weakref.ref(sim._copy), weakref.ref(sim.home)]
    gc.disable()
    try:
        sim.reset(generate_episode("pick", "val", 1))
        assert all(ref() is not None for ref in used), "kept for the next episode there"
        load_home.cache_clear()
        assert all(ref() is None for ref in used)
    finally:
        gc.enable()
