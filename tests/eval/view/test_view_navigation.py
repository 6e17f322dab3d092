"""Navigation tasks in the page: the episodes of `rearrange eval`, what the agent sees, and the home around it."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from eval.evaluate import run_chunk
from rearrange.home.errors import UserError

pytest.importorskip("viser", reason="the page needs viser: pip install -e '.[view]'")

from eval.view import choices  # noqa: E402
from eval.view.home_in_scene import LOW_WALL_M, _still_pieces  # noqa: E402
from rearrange.command_line.composition.options import options_of  # noqa: E402
from rearrange.command_line.composition.parse_overrides import compose  # noqa: E402
from tests.eval.view.views import made  # noqa: E402


def test_an_episode_is_that_of_an_evaluation(view):
    viewer = view("nav=pointnav", "agent=goal_follower", "episode=3", "seed=5", "nav.max_steps=60")
    session = viewer.session
    pictures = session.pictures(64)
    assert [picture.shape for picture in pictures] == [(64, 64, 3), (64, 64, 3), (512, 512, 3)]
    assert all(picture.std() > 5 for picture in pictures), "something is seen"
    while not session.done:
        session.step()
    viewer._show(everything=True)
    (result,) = run_chunk(session.job, [3])
    env = session.env
    assert (env.steps, session.success, env.episode.id) == (result.steps, result.success, result.episode_id)
    assert math.isclose(sum(env.reward_sums.values()), result.reward, rel_tol=1e-5)
    assert session.success or session.reason == result.failure.replace("_", " ")
    driven = np.abs(session.pictures(64)[2].astype(int) - pictures[2]).max(axis=-1) > 60
    assert driven.sum() > 30, "the map shows what was driven"
    assert viewer._page.map.label == session.map_label and session.words in viewer._page.head.content.lower()
    assert session.words == env.instruction


def test_the_home_and_the_cylinder_are_where_they_are(view):
    viewer = view("nav=objectnav", "agent=oracle", "paused=true")
    session, env = viewer.session, viewer.session.env
    assert viewer._page.agent.value == "oracle" and viewer._page.task.value == "nav=objectnav"
    for _ in range(4):
        session.step()
    x, y, yaw = env.pose
    _, _, ahead, eye = session.sim.camera_pose("head", None)
    assert np.allclose(eye, (x, y, env.config.camera_height_m))
    assert np.allclose(ahead, (math.cos(yaw), math.sin(yaw), 0.0))
    body, _, *boxes = session.marks()
    assert np.allclose(body.position_m[:2], (x, y)) and len(boxes) == len(session._wanted()) > 0
    for box, piece in zip(boxes, session._wanted(), strict=True):
        assert math.dist(box.center_m[:2], env.home.building.furniture[piece].footprint[:2]) < 0.3
    _, low, _ = _still_pieces(env.home, True)
    _, high, places = _still_pieces(env.home, False)

    def top(pieces):
        return max(places.geom_xpos[piece.geom, 2] + piece.offset_m + piece.half_m[2] for piece in pieces)

    assert LOW_WALL_M < top(low) < 1.4 and top(high) > 2.0
    viewer._show(everything=True)
    assert viewer._home._shown == (env.home, True) and len(viewer._home._marks) == 2 + len(boxes)


def test_it_is_chosen_in_the_page_and_left_again(view, capsys):
    viewer = view("skill=pick", "agent=zero", "paused=true", "skill.max_steps=9")
    press = viewer._page.calls.put
    for task, agent, robot in (("nav=explore", "random", False), ("nav=pointnav", "random", False),
                               ("skill=pick", "random", True)):
        press(("task", (task,)))
        viewer.turn()
        assert (viewer._page.task.value, viewer._page.agent.value) == (task, agent), capsys.readouterr().err
        assert (viewer._home._moving in viewer._home._batches) == robot
    assert "nav=flee" in viewer._page.task.options and "map" not in viewer._page.agent.options


@pytest.mark.parametrize("robot", ["fetch", "own_robot:SMALL"])
def test_a_robot_stands_in_its_own_physics(robot, view, monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).resolve().parents[3] / "examples")
    session = view("nav=pointnav", f"nav.agent={robot}", "agent=oracle", "paused=true").session
    (goal,) = session.marks()
    for _ in range(3):
        session.step()
    (x, y, _), (px, py, _) = session.sim.base_pose, session.env.pose
    assert np.allclose(np.subtract(goal.position_m[:2], (x, y)), np.subtract(session.env.episode.goal, (px, py)))


def test_the_usual_agent_is_one_that_the_task_has():
    usual = {task: choices.asked_agent(options_of(compose("view", [task])), task) for task in choices.tasks()}
    assert usual["nav=pointnav"] == usual["nav=objectnav"] == "oracle" and usual["nav=flee"] == "random"
    assert usual["skill=pick"] == usual["hab=set_table"] == "expert"
    typed = options_of(compose("view", ["nav=pointnav", "agent=map"]))
    assert choices.asked_agent(typed, "nav=pointnav") == "map"


@pytest.mark.parametrize("words, said", [
    (("nav=pointnav", "agent=expert"), "agent=expert is not for nav=pointnav, which takes oracle, map"),
    (("nav=explore", "agent=oracle"), "agent=oracle is not for nav=explore, which takes random, newest"),
    (("nav=pointnav", "agent=orakle"), "Did you mean agent=oracle?"),
    (("skill=pick", "agent=map"), "agent=map is not for skill=pick, which takes expert"),
    (("nav=pointnav", "agent=forward", "nav.actions=velocity"), "scripted agents of navigation take discrete actions")])
def test_mistakes_are_one_sentence(words, said):
    with pytest.raises(UserError, match=said.replace("?", r"\?")):
        made(*words)
