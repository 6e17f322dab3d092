"""What is done to MuJoCo's insides changes nothing that happens: far things are left out, the clock is not read."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import mujoco
import numpy as np
import pytest

from rearrange.home.simulation.mujoco.compiled_home import load_home, put_to_rest
from rearrange.home.simulation.mujoco.model_copy import PLAIN, HomeCopy
from skills import make_env

FIELDS = ("body_contype", "body_conaffinity", "bvh_child", "bvh_nodeid", "bvh_aabb")  # of a model, changed in a step


ROOT = Path(__file__).resolve().parents[2]
DRIVES = (("pick", 1.0), ("pick", 2.5), ("place", 1.0), ("close_fridge", 2.5))  # skill, speed of the base (m/s)


def drive_around(skill: str, steps: int, base_speed_m_s: float) -> tuple[np.ndarray, int]:
    """States of a robot that is driven and waved into things, and how many contacts there were."""
    env = make_env(skill, depth_size=0, base_speed_m_s=base_speed_m_s)
    rng = np.random.default_rng(0)
    env.reset(seed=1)
    states, contacts = [], 0  # homes differ in their number of drawers
    for i in range(steps):
        if i % 40 == 0:
            drift = rng.normal(0.0, 1.5, env.action_space.shape)
        _, _, terminated, truncated, _ = env.step(np.clip(drift + 0.3 * rng.standard_normal(drift.shape), -1, 1))
        states += [env.sim.data.qpos.copy(), env.sim.data.qvel.copy(), env.sim.data.qacc_warmstart.copy()]
        contacts += env.sim.data.ncon
        if terminated or truncated:
            env.reset()
    return np.concatenate(states), contacts


def starts(skill: str, count: int) -> str:
    """A digest of the states in which episodes begin, after their objects have come to rest."""
    env, digest = make_env(skill, depth_size=0), hashlib.sha256()
    for _ in range(count):
        env.reset(seed=None if env.episode else 2)
        for state in (env.sim.data.qpos, env.sim.data.qvel, env.sim.data.qacc, env.sim.data.tree_asleep):
            digest.update(state.tobytes())
    return digest.hexdigest()


def report() -> dict[str, list]:
    """Of each drive, a digest of its states and the number of contacts; and whether MuJoCo reads the clock."""
    said = {}
    for skill, speed in DRIVES:
        states, contacts = drive_around(skill, 700, speed)
        said[f"{skill} {speed}"] = [hashlib.sha256(states.tobytes()).hexdigest(), contacts]
    began = {skill: starts(skill, 40) for skill in ("pick", "place", "open_fridge")}
    copy = HomeCopy(load_home("train/0"))
    for _ in range(20):
        mujoco.mj_step(copy.model, copy.data)
    return said | {"starts": began, "clock": bool(copy.data.timer.duration.any())}


def test_the_motion_is_the_same_bit_for_bit_with_mujoco_as_it_is():
    code = "import json; from tests.rearrange.test_collision_filter import report; print(json.dumps(report()))"
    done = [subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=os.environ | {PLAIN: switch},
                           capture_output=True, text=True) for switch in ("0", "1")]
    tricks, plain = (json.loads(each.stdout or f'"{each.stderr}"') for each in done)
    assert plain.pop("clock") and not tricks.pop("clock"), "the switch works"
    assert tricks == plain and plain.pop("starts")
    assert min(contacts for _, contacts in plain.values()) > 50  # or nothing would have been tested


@pytest.fixture
def home():
    """A copy of a home whose robot stands far outside."""
    copy = HomeCopy(load_home("train/0"))
    mujoco.mj_copyData(copy.data, copy.model, copy.home.parked)
    return copy


def place(home: HomeCopy, x: float, y: float) -> None:
    home.base_qpos[:] = (x, y, 0.0)
    mujoco.mj_kinematics(home.model, home.data)
    mujoco.mj_comPos(home.model, home.data)


def kept(home: HomeCopy) -> tuple[set[str], list[str]]:
    """Names of the bodies and of the pieces of furniture that are tested for contacts in the next step."""
    home.collision_test.narrow(1 / 30)
    model, names, rows = home.model, [], [0] if home.model.body_contype[0] else []
    while rows:
        row = rows.pop()
        if model.bvh_nodeid[row] >= 0:
            names.append(model.geom(int(model.bvh_nodeid[row])).name)
        rows += [int(child) for child in model.bvh_child[row] if child >= 0]
    bodies = {model.body(b).name for b in range(1, model.nbody) if model.body_contype[b]}
    home.collision_test.widen()
    return bodies, names


def test_far_from_everything_nothing_is_tested(home):
    place(home, -30.0, -30.0)
    assert kept(home) == (set(), [])


def test_near_a_wall_the_wall_is_tested_and_what_is_far_is_not(home):
    wall = home.model.geom("wall_0")
    place(home, float(wall.pos[0]) - 0.3, float(wall.pos[1]))
    bodies, pieces = kept(home)
    assert "base" in bodies and "wall_0" in pieces
    assert not any(body.startswith("object_") for body in bodies)
    assert 0 < len(pieces) < len(home.home.nearness.piece) / 2


def test_at_a_high_speed_everything_is_near(home):
    place(home, -30.0, -30.0)
    home.arm_qvel[:] = 10_000.0
    bodies, pieces = kept(home)
    assert {"gripper", "object_0", "drawer_0"} <= bodies and len(pieces) == len(home.home.nearness.piece)


def test_a_thing_that_could_be_woken_by_one_that_is_near_is_tested_too(home):
    """The hand can touch only the first of two objects; the second has to be there when the first is pushed."""
    place(home, -30.0, -30.0)
    near, behind = home.body_of_slot[:2]
    home.data.xipos[behind] = home.ee_xpos + (0.32, 0.0, 0.0)
    assert kept(home)[0] == set()
    home.data.xipos[near] = home.ee_xpos + (0.15, 0.0, 0.0)
    assert {"gripper", "object_0", "object_1"} <= kept(home)[0]


def test_what_sleeps_has_no_speed():
    """Only of trees that are awake speeds are read."""
    env = make_env("pick", depth_size=0)
    env.reset(seed=0)
    data, of_dof = env.sim.data, env.sim.model.dof_treeid
    for _ in range(60):
        env.step(env.action_space.sample())
        asleep = data.tree_asleep[of_dof] >= 0
        assert asleep.any() and not data.qvel[asleep].any()


def test_what_turns_never_leaves_the_ball_that_is_asked_for_first(home):
    """A body that sleeps is left out by the distance from its middle alone."""
    nearness, rng = home.home.nearness, np.random.default_rng(0)
    for _ in range(50):
        turn, _ = np.linalg.qr(rng.standard_normal((3, 3)))
        ends = np.abs(nearness.box[:, :3] @ turn.T) + nearness.box[:, 3:] @ np.abs(turn).T
        assert (ends.max(axis=1) <= nearness.size_m).all()


def test_the_model_is_as_before_afterwards(home):
    model = home.model
    before = [getattr(model, name).copy() for name in FIELDS]
    for point in ((-30.0, -30.0), (1.0, 1.0), (3.0, 2.0)):
        place(home, *point)
        home.collision_test.narrow(1 / 30)
        home.collision_test.widen()
        assert all(np.array_equal(was, getattr(model, name)) for was, name in zip(before, FIELDS))


def test_an_interrupted_step_leaves_the_whole_home(monkeypatch):
    env = make_env("pick", depth_size=0)
    env.reset(seed=0)
    model = env.sim.model
    before = [getattr(model, name).copy() for name in FIELDS]

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(mujoco, "mj_step", interrupted)
    with pytest.raises(KeyboardInterrupt):
        env.step(env.action_space.sample())
    assert all(np.array_equal(was, getattr(model, name)) for was, name in zip(before, FIELDS))


def test_objects_come_to_rest_among_what_is_near_and_the_model_is_whole_afterwards(home, monkeypatch):
    before, seen = {name: getattr(home.model, name).copy() for name in FIELDS}, []

    def step(model, data, nstep=1):
        seen.append(model.body_contype.copy())
        raise mujoco.FatalError("too many contacts")

    monkeypatch.setattr(mujoco, "mj_step", step)
    with pytest.raises(mujoco.FatalError):
        put_to_rest(home.model, home.data, [0], 12, home.collision_test)
    assert len(seen) == 1 and not np.array_equal(seen[0], before["body_contype"])
    assert all(np.array_equal(getattr(home.model, name), before[name]) for name in FIELDS)
