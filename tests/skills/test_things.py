"""Furniture that a scene marks to be moved, with the skill and the scene of docs/push_chair.md."""

from __future__ import annotations

import math

import numpy as np
import pytest

import rearrange
from rearrange.home.errors import UserError
from skills.things import place_of
from tests.docs.markdown import HOME, blocks
from tests.e2e.front_door import succeed
from trainer import load_checkpoint

PAGE = HOME / "docs/push_chair.md"
SCENE = blocks(PAGE, "xml")[0]
LID = '''<mujoco model="lid"><worldbody><geom name="floor" type="plane" size="3 3 0.1"/>
<body name="chest"><geom type="box" size="0.3 0.3 0.2" pos="0 0 0.2"/>
<body name="lid" pos="-0.3 0 0.42"><joint type="hinge" axis="0 -1 0" range="0 1.5"/>
<geom type="box" size="0.3 0.3 0.01" pos="0.3 0 0" mass="0.5"/><site name="thing_lid" pos="0.6 0 0"/></body></body>
<body name="stool" pos="1 1 0"><freejoint/><geom type="box" size="0.15 0.15 0.2" pos="0 0 0.2" mass="2"/></body>
</worldbody></mujoco>'''


@pytest.fixture
def folder(tmp_path, monkeypatch):
    package = tmp_path / "lib/my_skills"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "push_chair.py").write_text(blocks(PAGE, "py")[0])
    (tmp_path / "room.xml").write_text(SCENE)
    (tmp_path / "lid.xml").write_text(LID)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "lib"))
    monkeypatch.syspath_prepend(tmp_path / "lib")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def pushing(folder, scene: str | None = "room.xml", **settings):
    """The environment. Scenes are kept by their paths, so these are whole."""
    place = None if scene is None else str(folder / scene)
    return rearrange.make_env("my_skills.push_chair:PushChair", scene_dataset=place, depth_size=0, **settings)


def drive(env, forward: float, steps: int = 300):
    """Drive towards the chair; sum of rewards and the last answer."""
    observation, _ = env.reset(options={"episode": 3})
    total = 0.0
    for _ in range(steps):
        turn = np.clip(-2 * observation["object_to_agent_gps_compass"][1], -1.0, 1.0)
        observation, reward, terminated, truncated, info = env.step(np.array([forward, turn], np.float32))
        total += reward
        if terminated or truncated:
            break
    return total, terminated, info


def test_the_robot_pushes_the_chair(folder):
    env = pushing(folder)
    env.reset(options={"episode": 3})
    assert env.sim.home.things == ("chair",)
    start = place_of(env.sim, "chair")
    total, terminated, info = drive(env, 0.6)
    assert terminated and info["success"] and total > 15
    moved_m = math.dist(start[:2], place_of(env.sim, "chair")[:2])
    assert 0.4 < moved_m < 0.7 and env.sim.thing_pose("chair")[2] == pytest.approx(start[2], abs=0.02)
    assert info["metrics"]["reward/pushed"] == pytest.approx(20 * (0.6 - env.skill._left_m), rel=1e-6)
    env.reset(options={"episode": 3})
    assert place_of(env.sim, "chair") == start, "the next episode has the chair where the scene has it"
    total, terminated, info = drive(env, 0.0, steps=60)
    assert not terminated and place_of(env.sim, "chair") == pytest.approx(start, abs=1e-3)


def test_the_chair_is_seen_where_it_is(folder):
    env = pushing(folder)
    env.reset(options={"episode": 3})
    sim, (x, y, _) = env.sim, env.sim.base_pose
    near = sim.depth_image(64)
    sim.data.joint("part_0").qpos[:2] = 2 * sim.data.joint("part_0").qpos[:2] - (x, y)  # twice as far away
    sim.place_robot(*sim.base_pose)
    assert (sim.depth_image(64) > near + 0.02).sum() > 50, "what was behind the chair is seen"
    assert sim.picture(np.array((x, y, 2.0)), np.array(place_of(sim, "chair")), []).std() > 1.0


def test_a_copy_of_the_state_has_the_chair_there_too(folder):
    env = pushing(folder)
    drive(env, 0.6)
    shadow = env.sim.shadow()
    shadow.reset(env.episode)
    assert shadow.thing_pose("chair") != env.sim.thing_pose("chair")
    shadow.copy_state(env.sim)
    assert shadow.thing_pose("chair") == env.sim.thing_pose("chair")


def test_a_lid_on_a_hinge_is_a_thing_and_no_door_and_what_is_not_marked_is_left_out(folder):
    env = pushing(folder, "lid.xml", thing="lid")
    env.reset(options={"episode": 0})
    sim = env.sim
    assert sim.home.things == ("lid",) and not sim.home.handles
    shut = place_of(sim, "lid")
    sim.data.joint("part_0").qpos[0] = 1.0
    sim.place_robot(0.5, 0.5, 0.0)
    assert place_of(sim, "lid")[2] - shut[2] == pytest.approx(0.6 * math.sin(1.0), abs=1e-6)
    assert not any("stool" in sim.model.body(k).name for k in range(sim.model.nbody))


@pytest.mark.parametrize("scene, settings, said", [
    (SCENE, {"thing": "sofa"}, "marks no thing 'sofa' to be moved; it has chair. A scene in MJCF marks one by a site "
                               "thing_sofa in a body with a free or a hinge joint"),
    (SCENE.replace("<freejoint/>", '<joint type="slide" axis="1 0 0"/>'), {}, "site thing_chair should be in a body "
     "with a free or a hinge joint"),
    (SCENE.replace("<freejoint/>", ""), {}, "site thing_chair should be in a body with a free or a hinge joint"),
    (SCENE, {"scene": None}, "our homes mark no thing to be moved: choose a scene that does with "
                                     "sim.scene_dataset="),
])
def test_what_cannot_be_pushed_is_one_sentence(scene, settings, said, folder):
    (folder / "other.xml").write_text(scene)
    with pytest.raises(UserError) as caught:
        pushing(folder, **{"scene": "other.xml"} | settings).reset(seed=0)
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_it_is_trained(folder):
    out = succeed(folder, "train", "skill=my_skills.push_chair:PushChair", "sim.scene_dataset=room.xml",
                  "policy=blind", "trainer.num_envs=4", "trainer.num_workers=1", "torch_threads=1", "steps=4000",
                  "name=own")
    assert "policy blind" in out
    content = load_checkpoint(folder / "outputs/train/my_skills.push_chair.PushChair/own")
    assert content["meta"]["skill"] == "my_skills.push_chair:PushChair"
    listed = succeed(folder, "scenes", "check", "dataset=room.xml")
    assert "room" in listed
