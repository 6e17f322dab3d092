"""Experts solve every skill, and nobody gets there by cheating: not by holding without touch, not through furniture."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from skills import SKILLS, make_env
from skills.experts import EXPERTS, reach_plan
from tests.rearrange.penetration import robot_depth_m

EPISODES = (0, 1, 2, 4)
DEEPEST_M = 0.015  # of any robot part, in anything; the random runs of test_contract allow more


class Watch:
    """Looks at the simulator after every step for what no robot can do."""

    def __init__(self, env) -> None:
        self.sim, self.deepest_m = env.sim, 0.0
        self._held = (env.sim.held, env.sim.held_handle)
        self._base = env.sim.base_pose
        self._touched: set[int] = set()  # bodies
        self._openings = {name: env.sim.joint_position(name) for name in env.sim.home.handles}

    def look(self) -> None:
        sim = self.sim
        contact = sim.data.contact
        robot = sim.home.geom_role[contact.geom].any(axis=1) if contact.geom.size else np.zeros(0, bool)
        self.deepest_m = max(self.deepest_m, robot_depth_m(sim))
        held = (sim.held, sim.held_handle)
        if sim.is_holding and held != self._held:
            assert self._is_touched(), "held without touch"
        self._held = held
        limit_m = 1.3 * sim.config.base_speed_m_s / 30
        assert math.dist(sim.base_pose[:2], self._base[:2]) < limit_m, "the base jumped"
        self._base = sim.base_pose
        self._touched |= {int(sim.model.geom_bodyid[geom]) for pair in contact.geom[robot] for geom in pair}
        for name, start in self._openings.items():
            if sim.model.body(name).id not in self._touched and sim.held_handle != name:
                # A push may bounce off within a step, so that the touch itself is not seen.
                assert abs(sim.joint_position(name) - start) < 0.06, f"{name} moved before it was touched"

    def _is_touched(self) -> bool:
        sim = self.sim
        for geom in sim.suction.touches():
            if sim.held is not None and sim.home.object_of_geom[geom] == sim.slot_of(sim.held):
                return True
            if sim.held_handle is not None and sim.home.handle_of_geom[geom] == sim.home.handles.index(sim.held_handle):
                return True
        return False


def run(env, expert) -> tuple[bool, Watch]:
    """One episode to its end."""
    watch, done = Watch(env), False
    while not done:
        _, _, terminated, truncated, info = env.step(expert.act())
        done = terminated or truncated
        watch.look()
    return info["success"], watch


def test_every_skill_has_an_expert():
    assert set(EXPERTS) == set(SKILLS)


@pytest.mark.parametrize("name", EXPERTS)
def test_the_expert_solves_it_without_cheating(name):
    env = make_env(name, depth_size=0, split="val")
    solved = 0
    for episode in EPISODES:
        env.reset(options={"episode": episode})
        success, watch = run(env, EXPERTS[name](env.sim, env.skill))
        solved += success
        assert watch.deepest_m < DEEPEST_M, f"{1000 * watch.deepest_m:.0f} mm deep in something in episode {episode}"
    assert solved >= len(EPISODES) - 1


@pytest.mark.parametrize("name", ["pick", "place"])
def test_an_expert_can_take_over_in_the_middle_of_an_episode(name):
    env = make_env(name, depth_size=0, split="val", max_steps=500)
    env.reset(options={"episode": 1})
    rng = np.random.default_rng(3)
    for _ in range(40):
        action = rng.uniform(-1, 1, env.action_space.shape)
        action[dict(env.action_parts)["grip"]] = 1.0 if env.sim.is_holding else -1.0
        env.step(action)
    success, _ = run(env, EXPERTS[name](env.sim, env.skill))
    assert success


def test_picking_holds_nothing_on_the_way_and_lets_go_of_what_is_wrong():
    env = make_env("pick", depth_size=0, split="val")
    env.reset(options={"episode": 1})
    sim, expert = env.sim, EXPERTS["pick"](env.sim, env.skill)
    assert expert.command()["grip"] < 0.0
    other = next(i for i in range(len(env.episode.objects)) if i != env.skill.target)
    sim.put_in_hand(other)
    assert expert.command()["grip"] < 0.0


def test_an_expert_without_a_base_to_drive_uses_the_arm_alone():
    env = make_env("pick", depth_size=0, action_parts=("arm", "grip"), split="val")
    solved = 0
    for episode in (0, 1, 3, 4, 7):
        env.reset(options={"episode": episode})
        start = env.sim.base_pose
        success, _ = run(env, EXPERTS["pick"](env.sim, env.skill))
        solved += success
        assert math.dist(start[:2], env.sim.base_pose[:2]) < 0.03
    assert solved >= 3


def test_where_no_way_is_found_the_next_search_waits(monkeypatch):
    from skills.experts import navigate

    env, searches = make_env("navigate", depth_size=0), []
    env.reset(options={"episode": 0})
    monkeypatch.setattr(navigate, "plan_drive", lambda *_: (searches.append(len(done)), (None, (0.2, 0.2)))[1])
    expert, done = EXPERTS["navigate"](env.sim, env.skill), []
    for _ in range(60):
        env.step(expert.act())
        done.append(None)
    assert len(searches) == 3 and min(b - a for a, b in zip(searches, searches[1:])) > 10
    env.close()


def test_the_same_episode_gives_the_same_run():
    ends = []
    for _ in range(2):
        env = make_env("place", depth_size=0, split="val")
        env.reset(options={"episode": 2})
        run(env, EXPERTS["place"](env.sim, env.skill))
        ends.append((env.steps, env.sim.data.qpos.copy()))
    assert ends[0][0] == ends[1][0] and (ends[0][1] == ends[1][1]).all()


@pytest.mark.parametrize("first_steps, taken", [(250, 100), (170, 170)])  # too late for the time that a skill has; in time
def test_the_search_for_a_motion_goes_on_where_the_one_found_is_too_late(monkeypatch, first_steps, taken):
    clearance = SimpleNamespace(checks=0)
    found = iter([first_steps, 100])

    def way_in(*_):
        clearance.checks += reach_plan._MAX_CHECKS // 3  # more than are looked at to find something better
        length = next(found)
        return reach_plan.Reach(reach_plan.Motion(np.zeros((length, 3)), np.zeros((length, 7))), (0.0, 0.0, 0.0), np.zeros(7), target)

    target = reach_plan.Target(np.zeros(3), np.zeros(3), np.zeros(3))
    candidate = reach_plan._Candidate(0.0, (0.0, 0.0, 0.0), np.zeros(7), target, 0.0)
    monkeypatch.setattr(reach_plan, "_candidates", lambda *_: [candidate])
    monkeypatch.setattr(reach_plan, "_way_in", way_in)
    monkeypatch.setattr(reach_plan, "start_posture", lambda *_: np.zeros(7))
    reach = reach_plan.plan_reach(SimpleNamespace(base_pose=(0.0, 0.0, 0.0)), clearance, (1.0, 0.0), lambda heading: [])
    assert len(reach.motion) == taken
