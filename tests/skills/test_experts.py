"""Experts solve every skill, and nobody gets there by cheating: not by holding without touch, not through furniture."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from planner.rules import Rules
from skills import SKILLS, make_env, pretrained
from skills.experts import EXPERTS, reach_plan
from tests.rearrange.penetration import robot_depth_m
from tests.skills.begun import run, started

EPISODES = (0, 1, 2, 4)
DEEPEST_M = 0.015  # of any robot part, in anything; the random runs of test_contract allow more


class Watch:
    """Looks at the simulator after every step for what no robot can do."""

    def __init__(self, env) -> None:
        self.sim, self.skill, self.deepest_m = env.sim, env.skill, 0.0
        self._held = (env.sim.held, env.sim.held_handle)
        self._base = env.sim.base_pose
        self._touched: set[int] = set()  # bodies
        self._start = self._before = self._openings()

    def _openings(self) -> dict[str, float]:
        return {name: self.sim.joint_position(name) for name in self.sim.home.handles}

    def look(self) -> None:
        sim, skill = self.sim, self.skill
        contact = sim.data.contact
        robot = sim.home.geom_role[contact.geom].any(axis=1) if contact.geom.size else np.zeros(0, bool)
        self.deepest_m = max(self.deepest_m, robot_depth_m(sim))
        held, holding_before = (sim.held, sim.held_handle), self._held[1] is not None
        if sim.is_holding and held != self._held:
            assert self._is_touched() and sim.hand.stretch_m() < 0.02, "held without touch"
        self._held = held
        assert math.dist(sim.base_pose[:2], self._base[:2]) < 1.3 * sim.config.base_speed_m_s / 30, "the base jumped"
        self._base = sim.base_pose
        self._touched |= {int(sim.model.geom_bodyid[geom]) for pair in contact.geom[robot] for geom in pair}
        openings = self._openings()
        for name, start in self._start.items():
            if sim.model.body(name).id not in self._touched and sim.held_handle != name:
                # A push may bounce off within a step, so that the touch itself is not seen.
                assert abs(openings[name] - start) < 0.06, f"{name} moved before it was touched"
        if skill.name.startswith("open") and not holding_before and sim.held_handle is None:
            now, before = openings[skill.target_handle], self._before[skill.target_handle]
            assert now > skill.config.target_opening - 0.2 or now - before < 0.01, "it opened by itself"
        self._before = openings

    def _is_touched(self) -> bool:
        sim = self.sim
        for geom in sim.hand.touches():
            if sim.held is not None and sim.home.object_of_geom[geom] == sim.slot_of(sim.held):
                return True
            if sim.held_handle is not None:
                if sim.home.handle_of_geom[geom] == sim.home.handles.index(sim.held_handle):
                    return True
        return False


def solved(env, episode: int) -> tuple[dict, Watch]:
    """How the expert ends an episode, and what was seen."""
    env.reset(options={"episode": episode})
    expert, watch = EXPERTS[env.skill.name](env.sim, env.skill), Watch(env)

    def act() -> np.ndarray:
        assert env.action_space.contains(taken := expert.act())
        return taken

    return run(env, act, watch.look), watch


def test_every_expert_is_of_a_skill_and_those_of_the_package_have_one():
    assert {name for name in SKILLS if name in pretrained.names()} <= set(EXPERTS) <= set(SKILLS)


@pytest.mark.parametrize("name", EXPERTS)
def test_the_expert_solves_it_without_cheating(name):
    env, successes = make_env(name, depth_size=0, split="val"), 0
    for episode in EPISODES:
        info, watch = solved(env, episode)
        successes += info["success"]
        assert watch.deepest_m < DEEPEST_M, f"{1000 * watch.deepest_m:.0f} mm deep in something in episode {episode}"
    assert successes >= len(EPISODES) - 1


@pytest.mark.parametrize("name", ["open_fridge", "close_cabinet"])
def test_experts_with_fingers_keep_to_the_time_and_lose_no_handle(name):
    ends = []
    for episode in EPISODES:
        env = started(name, episode, split="val", hand="fingers")
        ends.append(run(env, EXPERTS[name](env.sim, env.skill).act)["success"])
    assert sum(ends) >= len(EPISODES) - 1


@pytest.mark.parametrize("name", ["pick", "place"])
def test_an_expert_can_take_over_in_the_middle_of_an_episode(name):
    env = started(name, 1, split="val", max_steps=500)
    rng = np.random.default_rng(3)
    for _ in range(40):
        random = rng.uniform(-1, 1, env.action_space.shape)
        random[dict(env.action_parts)["grip"]] = 1.0 if env.sim.is_holding else -1.0
        env.step(random)
    watch = Watch(env)
    assert run(env, EXPERTS[name](env.sim, env.skill).act, watch.look)["success"]


def test_picking_holds_nothing_on_the_way_and_lets_go_of_what_is_wrong():
    env = started("pick", 1, split="val")
    expert = EXPERTS["pick"](env.sim, env.skill)
    assert expert.command()["grip"] < 0.0
    env.sim.put_in_hand(next(i for i in range(len(env.episode.objects)) if i != env.skill.target))
    assert expert.command()["grip"] < 0.0


@pytest.mark.parametrize("name, homes, episodes, what", [
    ("pick", 96, (0, 1, 3, 4, 7), "success"), ("open_cabinet", 6, (0, 1, 2, 3), "reached")])
def test_an_expert_without_a_base_to_drive_uses_the_arm_alone(name, homes, episodes, what):
    """Szot et al.'s limited action space is enough from the start pose."""
    env, ends = make_env(name, depth_size=0, action_parts=("arm", "grip"), split="val", num_layouts=homes), []
    for episode in episodes:
        info, watch = solved(env, episode)
        ends.append(info["metrics"][what])
        assert name != "pick" or math.dist(env.scene.start_base_pose[:2], env.sim.base_pose[:2]) < 0.03
    assert sum(ends) >= 3


def test_where_no_way_is_found_the_next_search_waits(monkeypatch):
    from skills.experts import navigate

    env, searches = started("navigate"), []
    monkeypatch.setattr(navigate, "plan_drive", lambda *_: (searches.append(env.steps), (None, (0.2, 0.2)))[1])
    expert = EXPERTS["navigate"](env.sim, env.skill)
    for _ in range(60):
        env.step(expert.act())
    assert len(searches) == 3 and min(b - a for a, b in zip(searches, searches[1:])) > 10


def test_the_same_episode_gives_the_same_run():
    ends = []
    for _ in range(2):
        env = make_env("place", depth_size=0, split="val")
        solved(env, 2)
        ends.append((env.steps, env.sim.data.qpos.tolist()))
    assert ends[0] == ends[1]


def test_the_hand_leaves_its_start_so_that_a_plan_goes_on():
    env = started("open_fridge", split="val", num_layouts=6)
    first, farthest, expert = env.sim.ee_in_base, 0.0, EXPERTS["open_fridge"](env.sim, env.skill)
    for _ in range(env.skill.max_steps):
        values = expert.act().tolist()
        env.sim.step(values[:7], values[7], values[8:10])
        farthest = max(farthest, math.dist(env.sim.ee_in_base, first))
    to_rest_m = math.dist(env.sim.ee_in_base, env.skill.rest_m(env.sim))
    assert farthest > Rules().start_zone_m and to_rest_m < env.skill.config.rest_radius_m


@pytest.mark.parametrize("first_steps, taken", [(250, 100), (170, 170)])  # too late for a skill; in time
def test_the_search_for_a_motion_goes_on_where_the_one_found_is_too_late(monkeypatch, first_steps, taken):
    clearance, found = SimpleNamespace(checks=0), iter([first_steps, 100])
    pose, arm = (0.0, 0.0, 0.0), np.zeros(7)
    target = reach_plan.Target(*(np.zeros(3),) * 3)

    def way_in(*_):
        clearance.checks += reach_plan._MAX_CHECKS // 3  # more than are looked at to find something better
        length = next(found)
        return reach_plan.Reach(reach_plan.Motion(np.zeros((length, 3)), np.zeros((length, 7))), pose, arm, target)

    monkeypatch.setattr(reach_plan, "_candidates", lambda *_: [reach_plan._Candidate(0.0, pose, arm, target, 0.0)])
    monkeypatch.setattr(reach_plan, "_way_in", way_in)
    monkeypatch.setattr(reach_plan, "start_posture", lambda *_: arm)
    reach = reach_plan.plan_reach(SimpleNamespace(base_pose=pose), clearance, (1.0, 0.0), lambda heading: [])
    assert len(reach.motion) == taken
