"""The executor: what is run after what, what skills are told, how episodes end. Puppets stand in for the skills."""

from __future__ import annotations

import math

import mujoco
import numpy as np
import pytest

from planner.arguments import moved_with_drawer
from planner.progress import Progress
from planner.rules import Rules
from planner.stages import stage_names
from rearrange.home.apartments.episodes import write_episodes
from rearrange.home.errors import UserError
from rearrange.home.robot.fetch import ARM
from skills import SKILLS, make_env, make_skill
from skills.arguments import SkillArguments
from tests.planner.puppet import Puppet, begun, executor, finish, run_episode, scenario_env
from tests.planner.worlds import SOLUTIONS
from tests.skills.begun import let_go, put

SCENARIOS = "tidy_house", "prepare_groceries", "set_table"


@pytest.fixture(scope="module")
def envs():
    return {name: scenario_env(name) for name in SCENARIOS}


def hold(sim, **where) -> None:
    """Put base or arm back where it was, as if something held it there."""
    for part, value in where.items():
        sim.data.qpos[getattr(sim.home, f"{part}_qpos")] = value
    if "arm" in where:
        sim.data.qvel[sim.home.arm_dofs] = 0.0
    mujoco.mj_forward(sim.model, sim.data)
    if "base" in where:
        sim._read_pose()


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_is_solved_when_every_skill_does_what_it_promises(envs, name):
    report = run_episode(executor(envs[name]), 0)
    assert report.end == "success", [record for record in report.records if not record.effects_hold]
    assert [record.operator for record in report.records] == SOLUTIONS[name]
    assert all(record.ended == "done" and record.effects_hold for record in report.records)
    metrics = report.metrics
    stages = stage_names(len(envs[name].episode.targets))
    assert metrics["success"] == 1.0 and all(metrics[stage] == 1.0 for stage in stages)
    handed = [record for record in report.records if record.skill == "navigate"]
    assert all(record.goal_distance_m < 0.25 and record.goal_angle_rad < 0.01 for record in handed)


def test_skills_are_told_by_arguments_and_the_simulator_keeps_its_episode(envs):
    told = []

    class Watched(Puppet):
        def __init__(self, sim, skill):
            super().__init__(sim, skill)
            told.append((skill.name, skill.arguments))

    run = begun(envs["set_table"], puppets=Watched)
    stood = list(run.sim.start_positions)
    finish(run)
    assert run.report.end == "success" and run.sim.episode is run.episode and run.sim.start_positions == stood
    bowl, apple = run.symbols.objects["object_0"], run.symbols.objects["object_1"]
    picked, placed = ([arguments for name, arguments in told if name == skill] for skill in ("pick", "place"))
    assert [arguments.target for arguments in picked] == [arguments.target for arguments in placed] == [bowl, apple]
    assert all(arguments.position == stood[arguments.target] for arguments in (*picked, *placed))
    assert [arguments.goal for arguments in placed] == [run.symbols.goals[f"goal_{k}"] for k in (0, 1)]
    opened = [arguments.handle for name, arguments in told if name.startswith(("open", "close"))]
    assert opened[:1] == [run.symbols.joints["cabinet_0"]] and set(opened) == set(run.symbols.joints.values())


def test_without_navigation_the_steps_are_left_out_and_the_first_pick_fails_from_afar(envs):
    run = executor(envs["tidy_house"], Rules(navigate=False), fails={0: "nothing"})
    report = run_episode(run, 0)
    assert [record.operator for record in report.records] == ["pick object_0"]
    assert report.end == "pick: time limit" and report.records[0].steps == 400
    assert report.metrics["success"] == 0.0 and report.metrics["stage_0_5"] == 0.0


def test_a_navigation_that_never_stops_hands_over_all_the_same(envs):
    report = run_episode(executor(envs["tidy_house"], Rules(max_steps={"navigate": 7}), fails={0: "nothing"}), 0)
    first = report.records[0]
    assert first.ended == "time_limit" and first.steps == 7 and first.goal_distance_m > 1.0
    assert len(report.records) == 20, "the plan goes on"


def test_a_navigation_without_a_stop_runs_to_its_limit(envs):
    run = executor(envs["tidy_house"], Rules(max_steps={"navigate": 4, "pick": 3}), puppets=None)
    run.skills["navigate"] = make_skill("navigate", action_parts=("base",))
    report = run_episode(run, 0, {"navigate": lambda *_: np.zeros(2), "pick": lambda *_: np.zeros(10)})
    assert [(record.steps, record.ended) for record in report.records] == [(4, "time_limit"), (3, "time_limit")]


@pytest.mark.parametrize("recovery, seen", [("none", False), ("retry", True), ("replan", True)])
def test_who_recovers_has_looked_where_the_objects_are_now(envs, recovery, seen):
    rules = Rules(recovery=recovery, max_steps={"navigate": 3, "pick": 1})
    run = begun(envs["tidy_house"], rules, puppets=None)
    sim, skill, (x, y, _) = run.sim, run.skills["navigate"], run.sim.base_pose
    assert math.dist(skill.nav_point[:2], (x, y)) > 2.0
    put(sim, skill.target, x + 1.0, y, 1.5)
    for _ in range(3):  # the stop is not believed: what it was told of is far away
        assert (run.request.skill, len(run.report.records)) == ("navigate", 1)
        run.advance(np.array([0.0, 0.0, 1.0]))
    assert run.report.records[0].ended == "time_limit"
    told = []
    while not run.done and run.report.recoveries < 2:  # of a pick that takes nothing
        told += [run._arguments.start_of(skill.target)] if run.request and run.request.first else []
        run.advance(np.zeros(10 if run.request.skill == "pick" else 3) if run.request else None)
    assert math.dist(told[0][:2], (x, y)) > 2.0, "the first pick is told where it stood"
    assert any(math.dist(place[:2], (x + 1.0, y)) < 0.5 for place in told) == seen


def test_the_hand_rests_where_the_skill_says(envs):
    run = executor(envs["tidy_house"], Rules(navigate=False), puppets=None)
    run.skills["pick"] = make_skill("pick", rest_position_m=(0.7, 0.2, 1.0))
    run.reset(0)
    sim = run.sim
    shown = run.request.observation["relative_resting_position"]
    np.testing.assert_allclose(shown, np.subtract((0.7, 0.2, 1.0), sim.ee_in_base), atol=1e-6)
    run.skills["pick"] = run._skill = make_skill("pick", rest_position_m=sim.ee_in_base)
    run._skill.begin(sim, SkillArguments(run.symbols.objects["object_0"]))
    sim.put_in_hand(run.symbols.objects["object_0"])
    run.advance(np.array([*np.zeros(7), 1.0, 0.0, 0.0]))
    assert run.report.records[0].ended == "done", "there it is at rest"


@pytest.mark.parametrize("off_rad, stuck", [(0.4, False), (-0.4, False), (0.1, True)])
def test_an_arm_that_was_led_home_stays_there_or_goes_on_to_it_when_it_comes_free(envs, off_rad, stuck):
    run = begun(envs["tidy_house"], Rules(max_steps={"navigate": 1}), puppets=None)
    sim, home, limit = run.sim, np.array(ARM.start), Rules().reset_arm_rad
    sim.place_robot(*sim.base_pose, tuple(home + off_rad * np.array([1.0, 1.0, 0.5, -1.0, 1.0, -0.5, 1.0])))
    run.advance(np.array([0.0, 0.0, -1.0]))
    off, steps = sim.arm_positions() - home, 0
    assert run.report.records[0].ended == "time_limit" and np.abs(off).max() == pytest.approx(abs(off_rad), abs=0.02)
    while run.request is None:
        run.advance(None)
        steps += 1
        if stuck:
            hold(sim, arm=home + off)
    assert run.request.skill == "pick" and (steps == Rules().reset_arm_steps) == stuck
    for _ in range(60):  # of a pick that does not move
        assert stuck or np.abs(sim.arm_positions() - home).max() < limit
        run.advance(np.array([*np.zeros(7), -1.0, 0.0, 0.0]))
    assert np.abs(sim.arm_positions() - home).max() < 0.01


@pytest.mark.parametrize("frees", [True, False])
def test_where_the_arm_cannot_be_led_home_the_base_backs_off_once(envs, frees):
    run = begun(envs["tidy_house"], Rules(retreat_m=0.3, max_steps={"navigate": 1}), puppets=None)
    sim, start, retreats = run.sim, run.sim.base_pose, 0
    off = np.array(ARM.start) + 0.3
    sim.place_robot(*start, tuple(off))
    run.advance(np.array([0.0, 0.0, -1.0]))
    while run.request is None:
        before = run._phase
        run.advance(None)
        retreats += run._phase == "retreat" and before != "retreat"
        if not (frees and retreats):
            hold(sim, arm=off)
    assert retreats == 1 and math.dist(sim.base_pose[:2], start[:2]) > 0.2
    assert (np.abs(sim.arm_positions() - ARM.start).max() < Rules().reset_arm_rad) == frees


def test_hab_s_own_plan_picks_straight_after_open_cabinet(envs):
    report = run_episode(executor(envs["set_table"], Rules(navigate_after_open_cabinet=False)), 0)
    names = [record.operator for record in report.records]
    assert names == [step for step in SOLUTIONS["set_table"] if step != "navigate_to_object object_0"]


def test_a_wrong_object_in_the_hand_passes_unless_the_rules_look(envs):
    report = run_episode(executor(envs["tidy_house"], fails={1: "wrong_object"}), 1)
    assert report.records[1].ended == "done" and report.records[1].effects_hold is False
    assert report.metrics["stage_0_5"] == 0.0 and report.end != "success"
    rules = Rules(recovery="replan", drop_wrong_object=True)
    report = run_episode(executor(envs["tidy_house"], rules, fails={1: "wrong_object"}), 1)
    assert report.recoveries == 1 and report.end == "success" and report.metrics["stage_5"] == 1.0


@pytest.mark.parametrize("recovery", ["retry", "replan"])
def test_recovery_does_again_what_did_not_work(envs, recovery):
    rules = Rules(recovery=recovery, max_steps={"pick": 5})
    report = run_episode(executor(envs["tidy_house"], rules, fails={1: "nothing"}), 0)
    assert report.records[1].ended == "time_limit" and report.recoveries == 1
    again = "pick object_0" if recovery == "retry" else "navigate_to_object object_0"
    assert report.records[2].operator == again and report.end == "success"


@pytest.mark.parametrize("recovery, end", [
    ("none", "pick: time limit"), ("hand_over", "success"), ("retry", "success")])
def test_a_skill_whose_effects_hold_may_hand_over_at_its_time_limit(envs, recovery, end):
    class Slow(Puppet):
        busy = True  # never over by itself

        def pick(self, sim, skill):
            super().pick(sim, skill)
            self._put(*sim.episode.robot_start, ARM.start)

    run = executor(envs["tidy_house"], Rules(recovery=recovery, max_steps={"pick": 20}))
    run.experts["pick"] = Slow
    report = run_episode(run, 0)
    assert report.records[1].ended == "time_limit" and report.records[1].effects_hold
    assert report.end == end and report.recoveries == 0


def test_a_place_that_let_go_elsewhere_is_not_retried_with_an_empty_hand(envs):
    report = run_episode(executor(envs["tidy_house"], Rules(recovery="retry"), fails={3: "elsewhere"}), 0)
    assert report.records[3].effects_hold is False and report.recoveries == 0
    assert report.records[4].operator == "navigate_to_object object_1" and report.end == "bad_stop"
    report = run_episode(executor(envs["tidy_house"], Rules(recovery="replan"), fails={3: "elsewhere"}), 0)
    assert report.records[4].operator == "navigate_to_object object_0" and report.end == "success"


def test_a_new_plan_that_needs_a_skill_without_a_policy_is_no_way_out(envs):
    rules = Rules(recovery="replan", max_steps={"pick": 3})
    run = begun(envs["prepare_groceries"], rules, without=("open_fridge",), fails={1: "nothing"})
    while not run.done:
        if run.report.records[-1].skill == "pick":
            run.sim.set_joint("fridge_door", 0.0)  # it fell shut
        run.advance()
    assert run.report.end == "pick: time limit" and len(run.report.records) == 2


def test_recoveries_come_to_an_end(envs):
    rules = Rules(recovery="retry", max_recoveries=2, max_steps={"pick": 3})
    report = run_episode(executor(envs["tidy_house"], rules, fails=dict.fromkeys(range(1, 50), "nothing")), 0)
    assert report.recoveries == 2 and report.end == "pick: time limit" and len(report.records) == 4


def test_an_expert_on_its_way_out_is_not_over_until_the_time_limit(envs):
    class Busy(Puppet):
        busy = True

    run = executor(envs["tidy_house"], Rules(max_steps={"pick": 20}))
    run.experts["pick"] = Busy
    report = run_episode(run, 0)
    assert [record.steps for record in report.records if record.skill == "pick"] == [20] * 5
    assert report.end == "success", "at the limit it counts as done"


def test_a_policy_is_asked_with_its_own_observation_and_told_when_it_begins(envs):
    run = begun(envs["set_table"], puppets=None)
    request, skill = run.request, run.skills["navigate"]
    assert request.skill == "navigate" and request.first
    assert set(request.observation) == set(skill.observation_keys) - {"depth"}
    bowl = run.symbols.objects["object_0"]
    distance = math.dist(run.sim.base_pose[:2], run.sim.start_positions[bowl][:2])
    assert request.observation["object_to_agent_gps_compass"][0] == pytest.approx(distance, abs=1e-4)
    assert skill.next_one_hot()[4] == 1.0, "navigate knows that open_cabinet comes next"
    stop = np.array([0.0, 0.0, 1.0])
    run.advance(stop)
    assert (run.request.skill, run.request.first) == ("navigate", False), "stop is masked beyond two metres"
    assert distance > 2.0
    x, y, yaw = skill.goal_pose
    run.sim.place_robot(x, y, yaw)
    run.advance(stop)
    while run.request is None:
        run.advance()
    request = run.request
    assert (request.skill, request.first) == ("open_cabinet", True)
    handle = run.sim.to_ee(run.sim.handle_position(run.symbols.joints["cabinet_0"]))
    np.testing.assert_allclose(request.observation["marker_rel_pos"], handle, atol=1e-5)


def test_the_image_has_the_size_that_the_policy_of_the_skill_sees(envs):
    run = executor(scenario_env("tidy_house", 16), puppets=None, depth_sizes={"navigate": 32})
    run.reset(1)
    assert run.request.observation["depth"].shape == (32, 32, 1)
    before = run.request.observation["depth"]
    run.advance(np.array([0.0, 1.0, -1.0]))
    lagged = run.request.observation["depth"]
    np.testing.assert_array_equal(lagged, before)  # the image is from before the step's physics
    run.advance(np.array([0.0, 1.0, -1.0]))
    assert not np.array_equal(run.request.observation["depth"], lagged)


def test_a_policy_that_looks_less_often_is_asked_less_often(envs):
    run = executor(envs["tidy_house"], puppets=None)
    run.skills["navigate"] = make_skill("navigate", action_repeat=3)
    run.reset(0)
    poses, asked = [run.sim.base_pose[2]], []
    for _ in range(7):
        asked.append(run.request is not None)
        run.advance(np.array([0.0, 1.0, -1.0]) if run.request else None)
        poses.append(run.sim.base_pose[2])
    assert asked == [True, False, False, True, False, False, True]
    assert len(set(poses)) == len(poses), "the base turns on between two looks"


def test_navigate_is_told_the_handle_of_the_drawer_if_it_learned_that_else_the_object_in_it(envs):
    for to_handle in (False, True):
        run = executor(envs["set_table"], puppets=None)
        run.skills["navigate"] = make_skill("navigate", any_start=True, to_handle=to_handle)
        run.reset(0)
        sim, skill = run.sim, run.skills["navigate"]
        assert run.step.skill == "navigate" and skill.next_skill == "open_cabinet" and run.has_goal_pose
        told = sim.handle_position(skill.target_handle) if to_handle else sim.start_positions[skill.target]
        assert skill.nav_point == pytest.approx(tuple(told))
        away_m = math.dist(sim.base_pose[:2], told[:2])
        assert run.request.observation["object_to_agent_gps_compass"][0] == pytest.approx(away_m, abs=1e-5)


def test_where_a_handle_is_comes_from_what_is_believed_of_the_drawer(envs):
    run = executor(envs["set_table"], Rules(knowledge="seen"), puppets=None)
    run.skills["navigate"] = make_skill("navigate", any_start=True, to_handle=True)
    run.reset(0)
    sim, skill = run.sim, run.skills["navigate"]
    shut = sim.handle_position(skill.target_handle)
    sim.set_joint(skill.target_handle, 0.3)  # out of the robot's sight
    mujoco.mj_forward(sim.model, sim.data)
    run._arguments.give(skill, run.step)
    assert math.dist(sim.handle_position(skill.target_handle), shut) == pytest.approx(0.3, abs=1e-3)
    assert skill.nav_point == pytest.approx(tuple(shut), abs=1e-3)


def test_a_skill_that_nobody_has_is_named_before_anything_moves(envs):
    with pytest.raises(UserError, match="needs skill open_fridge.*train skill=open_fridge.*expert"):
        executor(envs["set_table"], without=("open_fridge",)).reset(0)
    executor(envs["tidy_house"], without=("open_fridge",)).reset(0)  # not needed here


def test_coordinates_follow_the_drawer_only_when_asked(envs):
    run = begun(envs["set_table"])
    sim, bowl = run.sim, run.symbols.objects["object_0"]
    start = sim.start_positions[bowl]
    sim.set_joint(run.symbols.joints["cabinet_0"], 0.4)
    moved = moved_with_drawer(sim, run.episode.articulated, start)
    assert math.dist(moved, start) == pytest.approx(0.4)
    assert run._arguments.start_of(bowl) == tuple(start)
    apple = sim.start_positions[run.symbols.objects["object_1"]]
    assert moved_with_drawer(sim, run.episode.articulated, apple) == tuple(apple)


def test_the_same_seed_gives_the_same_run(envs):
    def once():
        rng = np.random.default_rng(3)
        run = executor(envs["tidy_house"], Rules(max_steps={"navigate": 40, "pick": 30}), puppets=None)

        def policy(skill):
            return lambda observation, first: rng.uniform(-1, 1, 3 if skill == "navigate" else 10)

        report = run_episode(run, 2, {name: policy(name) for name in SKILLS})
        return report.end, report.metrics, run.sim.base_pose, [record.steps for record in report.records]

    assert once() == once()


# ------------------------------------------------------------------ the rules beyond the paper

HONEST = Rules(recovery="replan", knowledge="seen", at_m=0.15, retreat_m=0.5, last_look=True, drop_wrong_object=True,
               max_recoveries=10)


def test_after_pick_and_place_the_base_backs_off_before_the_arm_moves(envs):
    run = begun(envs["tidy_house"], Rules(retreat_m=0.5))
    away, arms = [], []
    while not run.done and len(run.report.records) < 3:
        phase, (x, y, yaw) = run._phase, run.sim.base_pose
        arm = run.sim.arm_positions().copy()
        run.advance()
        if phase == "retreat":
            ahead = (run.sim.base_pose[0] - x) * math.cos(yaw) + (run.sim.base_pose[1] - y) * math.sin(yaw)
            away.append(ahead)
            arms.append(np.abs(run.sim.arm_positions() - arm).max())
    assert sum(away) == pytest.approx(-0.5, abs=0.03) and max(away) < 1e-3 and max(arms) < 0.02
    assert [record.skill for record in run.report.records][:3] == ["navigate", "pick", "navigate"]


def test_before_it_backs_off_the_hand_goes_straight_up(envs):
    run = begun(envs["tidy_house"], Rules(retreat_m=0.5, lift_m=0.1))
    while run._phase != "retreat":
        run.advance()
    (x, y, z), base = run.sim.ee_position, run.sim.base_pose
    while run._lift_to is not None:
        run.advance()
    assert math.dist(run.sim.ee_position, (x, y, z + 0.1)) < 0.03 and math.dist(run.sim.base_pose[:2], base[:2]) < 0.01
    while run._phase == "retreat":
        run.advance()
    assert run.sim.ee_position[2] > z + 0.07
    assert math.dist(run.sim.base_pose[:2], base[:2]) == pytest.approx(0.5, abs=0.03)


def test_a_retreat_that_something_holds_up_comes_to_an_end(envs):
    run = begun(envs["tidy_house"], Rules(retreat_m=2.0))
    while run._phase != "retreat":
        run.advance()
    pose, count = run.sim.base_pose, 0
    while run._phase == "retreat":
        run.advance()
        hold(run.sim, base=pose)
        count += 1
    assert count < 20


@pytest.mark.parametrize("forward", [1.0, -1.0])
def test_a_base_that_something_holds_up_gives_way_and_the_plan_is_made_again(envs, forward):
    run = begun(envs["tidy_house"], Rules(recovery="replan", retreat_m=0.3), puppets=None)
    sim, (x, y, yaw) = run.sim, run.sim.base_pose
    while run._phase == "skill":
        run.advance(np.array([forward, 0.0, -1.0]))
        hold(sim, base=(x, y, yaw))  # as if against a wall
    assert run.report.records[-1].ended == "held_up" and 60 <= run.report.records[-1].steps <= 62
    while run.request is None:
        run.advance(None)
    moved = (sim.base_pose[0] - x) * math.cos(yaw) + (sim.base_pose[1] - y) * math.sin(yaw)
    assert moved == pytest.approx(-forward * 0.3, abs=0.04)
    assert run.request.skill == "navigate" and run.request.first and run.report.recoveries == 1 and run.at == 0


def test_a_base_that_comes_on_or_turns_is_not_held_up():
    for pose in (lambda k: (0.002 * k, 0.0, 0.0), lambda k: (0.0, 0.0, 0.01 * k)):
        driven = Progress(60, 0.05, 0.15)
        for k in range(200):
            driven.step(pose(k), 1.0)
            assert not driven.held_up
    for k in range(61):
        assert not driven.held_up
        driven.step((5.0, 1.0, 2.0), 1.0)
    assert driven.held_up and driven.way_out == -1.0


@pytest.mark.parametrize("name", SCENARIOS)
def test_with_what_the_robot_sees_every_scenario_is_solved_and_drawer_and_door_are_shut(envs, name):
    report = run_episode(executor(envs[name], HONEST), 0)
    assert report.end == "success" and report.metrics["success_15cm"] == 1.0, report.records
    assert report.metrics["disturbed_objects"] <= 3.0


def test_what_lies_on_the_floor_is_counted(envs, monkeypatch):
    """Objects of the task alone, and not what is held."""
    env = envs["tidy_house"]
    env.reset(seed=0, options={"episode": 0})
    first, second, *_ = env.episode.targets
    other = next(i for i in range(len(env.episode.objects)) if i not in env.episode.targets)
    assert env.end_now()["objects_on_floor"] == 0
    real = env.sim.object_position
    low = (first, second, other)
    monkeypatch.setattr(env.sim, "object_position", lambda i: [*real(i)[:2], 0.05] if i in low else real(i))
    assert env.end_now()["objects_on_floor"] == 2
    env.sim.put_in_hand(first)
    assert env.sim.held == first and env.end_now()["objects_on_floor"] == 1


def all_known(run):
    """At the end of the plan of an episode in which the robot saw everything, though puppets move it about."""
    run.reset(0)
    step = run.belief.step

    def knows():
        step()
        for index, thing in enumerate(run.belief.things):
            thing.position = tuple(run.sim.object_position(index))
            thing.seen_step, thing.near_step = run.belief.steps, -1
        run.belief.openings = {name: run.sim.joint_position(name) for name in run.belief.handles}

    run.belief.step = knows
    while run.at < len(run.steps):
        run.advance()
    run.belief.step = step
    return run


def test_before_the_stop_it_plans_again_for_what_has_moved_and_looks_where_it_was_near(envs):
    run = all_known(executor(envs["tidy_house"], HONEST))
    assert run.report.recoveries == 0 and not run.done
    index, goal = run.symbols.objects["object_4"], run.symbols.goals["goal_4"]
    run.belief.things[index].position = run.episode.start_poses[index][:3]  # as if it had been seen there
    run._begin_next()
    assert run.report.recoveries == 1 and str(run.steps[run.at].operator) == "navigate_to_object object_4"
    assert run.steps[run.at].next is not None
    run.belief.things[index].position = goal[:3]
    run.at = len(run.steps)
    run.belief.things[run.symbols.objects["object_1"]].near_step = 10**6
    run._looked_at.clear()
    run._begin_next()
    look = run.steps[run.at]
    assert str(look.operator) == "navigate_to_object object_1" and look.next is None, "a look"
    run.belief.things[run.symbols.objects["object_1"]].near_step = -1
    run.experts = {}  # drives on until it has seen
    run._expert = None
    run.advance(np.zeros(3))
    assert run.report.records[-1].ended == "seen"


def test_the_arm_is_home_when_a_look_begins(envs):
    """Set Table ends with closing the fridge, after which the hand is at rest, which is not home."""
    run = all_known(executor(envs["set_table"], HONEST))
    assert str(run.steps[-1].operator) == "close_fridge fridge" and run.report.recoveries == 0
    run.belief.things[run.symbols.objects["object_0"]].near_step = 10**6  # it may have been moved
    while run._phase == "reset_arm":
        run.advance()
    assert run._phase == "skill" and run._is_look(run.steps[run.at])
    assert np.abs(run.sim.arm_positions() - ARM.start).max() < HONEST.reset_arm_rad


def test_no_look_is_begun_when_the_time_is_short(envs):
    run = all_known(executor(envs["tidy_house"], HONEST))
    run.belief.things[run.symbols.objects["object_1"]].near_step = 10**6
    run._looked_at.clear()
    run.env.steps = run.env.max_steps - HONEST.look_steps
    count = len(run.steps)
    run._begin_next()
    assert run._phase == "wait" and len(run.steps) == count


def test_what_was_tried_in_vain_comes_after_the_rest_unless_it_is_in_the_hand(envs):
    run = begun(envs["tidy_house"], HONEST)
    run._failures["object_0"] = 1
    assert run._plan_again()
    assert str(run.steps[0].operator) == "navigate_to_object object_0" and len(run.steps) == 20
    run._failures["object_0"] = 2
    assert run._plan_again()
    assert not any("object_0" in str(step.operator) for step in run.steps) and len(run.steps) == 16
    run.sim.put_in_hand(run.symbols.objects["object_0"])
    run.belief.intend(run.symbols.objects["object_0"])
    run.belief.step()
    assert run._plan_again()
    assert str(run.steps[0].operator) == "navigate_to_goal goal_0"


def test_what_is_lost_on_the_way_ends_the_way(envs):
    run = begun(envs["tidy_house"], HONEST)
    while run.at < 2 or run._phase != "skill":
        run.advance()
    assert run.steps[run.at].skill == "navigate" and run.sim.is_holding
    run.experts, run._expert = {}, None
    let_go(run.sim)
    run.advance(np.zeros(3))
    assert run.report.records[-1].ended == "lost" and run.report.recoveries == 1
    assert run.steps[0].operator.name == "navigate_to_object"


@pytest.mark.parametrize("actions, first, second", [
    ("sampled", False, False), ("mean", True, True), ("mean_first", True, False)])
def test_policies_are_asked_for_their_mean_as_the_rules_say(envs, actions, first, second):
    run = begun(envs["tidy_house"], Rules(recovery="retry", actions=actions, max_steps={"navigate": 3}), puppets=None)
    assert run.request.mean is first
    for _ in range(3):
        run.advance(np.zeros(3))
    while run.request is None:
        run.advance()
    assert run.report.recoveries == 1 and run.request.mean is second


@pytest.mark.parametrize("words, reason", [
    ({"knowledge": "all"}, "knowledge=all is not allowed: it must be state or seen"),
    ({"actions": "best"}, "actions=best is not allowed: it must be sampled"),
    ({"retreat_after": ("navigate",)},
     r"retreat_after=.*navigate.* is not allowed: it must be a list of some of pick")])
def test_rules_that_make_no_sense_are_refused(words, reason):
    with pytest.raises(UserError, match=reason):
        Rules(**words)


def test_the_states_in_which_plans_hand_over_are_kept_and_skills_begin_there(envs):
    report = run_episode(executor(envs["set_table"], records_handoffs=True), 0)
    kept = {episode.handoff.skill: episode for episode in report.handoffs}
    manipulations = [record.skill for record in report.records if record.skill != "navigate"]
    assert [episode.handoff.skill for episode in report.handoffs] == manipulations
    assert kept["close_fridge"].articulated["fridge_door"] > 1.0 and kept["close_fridge"].handoff.about == "fridge_door"
    for episode in report.handoffs:  # what was taken out of the drawer waits in the closed one no more
        handoff, skill = episode.handoff, episode.handoff.skill
        env = make_env(skill, depth_size=0, split="val")
        env.reset(options={"episode": episode})
        sim = env.sim
        np.testing.assert_allclose(sim.base_pose, episode.robot_start, atol=1e-6)
        assert sim.held == handoff.held and (skill == "place") == (handoff.held is not None)
        assert (env.skill.target if skill in ("pick", "place") else env.skill.target_handle) == handoff.about
    with pytest.raises(UserError, match="was handed over to skill pick, not to place"):
        make_env("place", depth_size=0, split="val").reset(options={"episode": kept["pick"]})


def test_half_of_the_episodes_can_come_from_a_file(envs, tmp_path):
    report, ids = run_episode(executor(envs["tidy_house"], records_handoffs=True), 0), {}
    write_episodes(tmp_path / "p.json.gz", [episode for episode in report.handoffs if episode.handoff.skill == "pick"])
    for share in (1.0, 0.5, 0.0):
        env = make_env("pick", depth_size=0, split="val", episodes=tmp_path / "p.json.gz", episodes_share=share)
        env.reset(seed=1)
        ids[share] = [env.reset()[1]["episode_id"].startswith("tidy_house") for _ in range(20)]
        asked = env.reset(options={"episode": 3})[1]["episode_id"]
        assert asked.startswith("tidy_house"), "what is asked for is of the file"
    assert all(ids[1.0]) and not any(ids[0.0]) and 4 <= sum(ids[0.5]) <= 16
