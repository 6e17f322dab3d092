"""Navigate: where it starts and leads, what it shows, what it rewards, what ends it."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from rearrange.command_line.composition.parse_overrides import ADVISED
from rearrange.home.errors import UserError
from rearrange.home.geometry import from_frame, wrap_angle
from skills import make_env, make_skill
from skills.articulated import front_frame
from skills.experts import ADVISERS
from skills.experts.motion import drive
from skills.experts.trajectory import back_from
from skills.navigate import NavigateConfig
from skills.skill import NEXT_SKILLS, start_near
from tests.skills import begun

STOP, ON = np.array([0.0, 0.0, 1.0], np.float32), np.array([1.0, 0.0, -1.0], np.float32)


def started(episode: int = 0, **settings):
    return begun.started("navigate", episode, num_layouts=12, **settings)


def first(fits, **settings):
    """An environment in the first episode that fits, and its number."""
    env = started(**settings)
    for episode in range(200):
        env.reset(options={"episode": episode})
        if fits(env):
            return env, episode


@pytest.fixture(scope="module")
def sample():
    """Of many episodes: what comes next, and figures of the start."""
    env, rows = make_env("navigate", depth_size=0, num_layouts=12), []
    for episode in range(160):
        _, info = env.reset(options={"episode": episode})
        sim, skill = env.sim, env.skill
        assert not sim.robot_collides()
        assert (sim.held == skill.target) if skill.next_skill.startswith("place") else not sim.is_holding
        rows.append({"next": skill.next_skill, "path_m": skill.distance_m(sim),
                     "skipped": info["skipped_episodes"], "yaw": sim.base_pose[2], "turn": skill.angle_rad(sim)})
    return rows


def test_every_next_skill_occurs_and_one_episode_of_six_has_the_object_in_the_hand(sample):
    count = Counter(row["next"] for row in sample)
    assert set(count) == set(NEXT_SKILLS) and len(NEXT_SKILLS) == 8
    assert min(count.values()) >= 2
    placing = count["place"] + count["place_inside"]
    assert abs(placing - len(sample) / 6) < 4 * math.sqrt(len(sample) * 5 / 36)


def test_it_starts_anywhere_from_where_it_can_drive_to_the_goal(sample):
    paths = np.array([row["path_m"] for row in sample])
    assert np.isfinite(paths).all() and np.median(paths) > 3.0 and paths.min() < 1.5 < 8.0 < paths.max()
    assert np.histogram([row["yaw"] for row in sample], 4, (-math.pi, math.pi))[0].min() > 20
    assert np.median([row["turn"] for row in sample]) == pytest.approx(math.pi / 2, abs=0.35)


def test_few_episodes_are_skipped(sample):
    assert sum(row["skipped"] for row in sample) < 0.06 * len(sample)


@pytest.mark.parametrize("next_skill", NEXT_SKILLS)
def test_the_goal_is_where_the_next_skill_would_start(next_skill):
    env, _ = first(lambda env: env.skill.next_skill == next_skill)
    sim, skill, layout = env.sim, env.skill, env.sim.home.layout
    x, y, yaw = skill.goal_pose
    if next_skill.startswith(("pick", "place")):
        placing = next_skill.startswith("place")
        names = env.episode.goal_receptacles if placing else env.episode.target_receptacles
        receptacle = layout.receptacle(names[0])
        assert (receptacle.link is None) != next_skill.endswith("_inside")
        point = env.episode.targets[skill.target][:3] if placing else sim.start_positions[skill.target]
        start_near(sim, point, receptacle, np.random.default_rng(5), position_noise_m=0.0, yaw_noise_rad=0.0,
                   held=skill.target if placing else None)
        assert sim.base_pose == skill.goal_pose and not sim.robot_collides()
        facing = math.atan2(point[1] - y, point[0] - x)
    else:
        opening, handle = sim.joint_position(skill.target_handle), sim.handle_position(skill.target_handle)
        assert (opening < 0.15) == next_skill.startswith("open")
        config = make_skill(next_skill).config
        middle = sum(config.start_distance_m) / 2
        sx, sy = from_frame(middle, 0.0, front_frame(sim, skill.target_handle))
        facing = math.atan2(handle[1] - y, handle[0] - x)
        assert math.hypot(sx - x, sy - y) < 0.85  # it moves back where the door stands in the way
        assert sim.stands_free(sx, sy, yaw) is False or math.hypot(sx - x, sy - y) < 0.15
        sim.place_robot(x, y, yaw)
    assert skill.distance_m(sim) < 0.2 and skill.angle_rad(sim) < 1e-6
    assert abs(wrap_angle(facing - yaw)) < 0.35


def test_the_policy_is_told_the_object_or_its_goal_but_not_the_pose():
    for episode in range(8):
        env = started(episode)
        sim, skill = env.sim, env.skill
        observation, *_ = env.step(np.array([1.0, 0.5, -1.0], np.float32))
        point = env.episode.targets[skill.target] if sim.is_holding else sim.start_positions[skill.target]
        distance, angle = observation["object_to_agent_gps_compass"]
        x, y, yaw = sim.base_pose
        shown = x + distance * math.cos(yaw - angle), y + distance * math.sin(yaw - angle)
        assert np.allclose(shown, point[:2], atol=1e-4)
        assert observation["nav_to_skill"].tolist() == [float(name == skill.next_skill) for name in NEXT_SKILLS]
        assert observation["is_holding"][0] == float(skill.next_skill.startswith("place"))
        before = {key: value.copy() for key, value in observation.items()}
        skill.goal_pose = (1.0, 1.0, 0.3)
        assert all(np.array_equal(before[key], value) for key, value in env._observe().items())


def shortest_way(env) -> np.ndarray:
    """The action of a driver on the shortest way."""
    sim, skill = env.sim, env.skill
    (x, y, _), to, left_m = sim.base_pose, skill.goal_pose, skill.distance_m(sim)
    if left_m > 0.45:
        next_x, next_y = skill.field.descend(x, y, 0.4)
        to = (next_x, next_y, math.atan2(next_y - y, next_x - x))
    there = left_m < 0.15 and skill.angle_rad(sim) < 0.15
    return np.array([*drive(sim, to), 1.0 if there else -1.0], np.float32)


def test_a_driver_on_the_shortest_way_solves_it_and_the_reward_adds_up():
    returns = []
    for episode in range(12):
        env = started(episode, split="val")
        held, far_m = env.sim.held, env.skill.distance_m(env.sim)
        info = begun.run(env, lambda: shortest_way(env))
        metrics = info["metrics"]
        assert metrics["reward/distance"] == pytest.approx(10.0 * (far_m - metrics["goal_distance_m"]), abs=1e-3)
        if info["success"]:
            total = sum(value for name, value in metrics.items() if name.startswith("reward/"))
            returns.append(total - 10.0 * far_m)
            assert env.sim.held == held and metrics["reward/success"] == 10.0 and metrics["goal_angle_rad"] < 0.3
    assert len(returns) >= 11 and min(returns) > 5.0


def test_stop_elsewhere_ends_it_without_success():
    env = started()
    _, reward, terminated, _, info = env.step(np.array([0.0, 0.0, 0.01], np.float32))
    assert terminated and not info["success"] and info["metrics"]["failure/bad_stop"] == 1.0 and abs(reward) < 0.5


@pytest.mark.parametrize("turn, success", [(0.0, True), (0.25, True), (0.35, False)])
def test_success_needs_place_heading_and_stop(turn, success):
    env = started(3, reward_scales={"bad_stop": -2.0})
    x, y, yaw = env.skill.goal_pose
    env.sim.place_robot(x, y, yaw + turn)
    _, _, terminated, _, _ = env.step(np.zeros(3, np.float32))
    assert not terminated  # nobody stopped
    _, reward, terminated, _, info = env.step(STOP)
    assert terminated and info["success"] == success
    assert reward == pytest.approx(10.0 if success else -2.0, abs=0.2)


def test_with_any_start_every_place_counts_from_which_the_object_or_handle_is_in_reach():
    several, spread = {False: 0, True: 0}, []
    for episode in range(12):
        env, nearest = started(episode, any_start=True), started(episode)
        sim, skill = env.sim, env.skill
        assert skill.goal_pose == nearest.skill.goal_pose == skill.goal_poses[0]
        assert nearest.skill.goal_poses == [nearest.skill.goal_pose]
        several[skill.target_handle is not None] += len(skill.goal_poses) > 2
        held, faced = skill.arguments.placed, [skill.nav_point]
        if skill.target_handle is not None:
            faced.append(sim.handle_position(skill.target_handle))
        for x, y, yaw in skill.goal_poses:
            assert sim.stands_free(x, y, yaw, held) and skill.distance_m(sim) < 1e-9
            off = [abs(wrap_angle(math.atan2(py - y, px - x) - yaw)) for px, py, _ in faced]
            assert skill.angle_rad(sim) == pytest.approx(min(off), abs=1e-9) and min(off) < 0.01
            for px, py, _ in faced:  # the object is as good as the handle
                sim.place_robot(x, y, math.atan2(py - y, px - x))
                assert skill.angle_rad(sim) < 0.01
        for x, y, _ in skill.goal_poses[1:]:
            assert math.dist((x, y), faced[-1][:2]) < (0.86 if skill.target_handle is None else 1.3)
        if skill.target_handle is None:  # the nearest and the farthest places in reach
            away = [math.dist(pose[:2], skill.nav_point[:2]) for pose in skill.goal_poses[1:]]
            spread.append(max(away) - min(away))
            assert max(away) <= 0.85 + 1e-9
    assert min(several.values()) > 1 and len(spread) > 3 and np.median(spread) > 0.2


def test_with_to_handle_what_is_driven_to_before_opening_or_closing_is_the_handle_and_what_counts_is_the_same():
    handles = 0
    for episode in range(12):
        env, usual = started(episode, any_start=True, to_handle=True), started(episode, any_start=True)
        sim, skill = env.sim, env.skill
        assert skill.goal_poses == usual.skill.goal_poses
        assert skill.angle_rad(sim) == usual.skill.angle_rad(usual.sim)
        assert skill.distance_m(sim) == usual.skill.distance_m(usual.sim)
        if skill.target_handle is None:
            assert skill.nav_point == usual.skill.nav_point
            continue
        handles += 1
        told = skill.nav_point
        assert told == pytest.approx(tuple(sim.handle_position(skill.target_handle)))
        assert told != pytest.approx(usual.skill.nav_point, abs=0.05)
        (x, y, _), (hx, hy, _) = sim.base_pose, told
        assert skill.shown_heading_rad(sim) == pytest.approx(math.atan2(hy - y, hx - x))
        away_m = env.reset(options={"episode": episode})[0]["object_to_agent_gps_compass"][0]
        assert away_m == pytest.approx(math.dist((x, y), (hx, hy)), abs=1e-5)
    assert handles > 2


def test_with_any_start_a_stop_at_any_of_the_places_is_a_success():
    env, episode = first(lambda env: len(env.skill.goal_poses) > 2, any_start=True)
    for pose in env.skill.goal_poses[1:]:
        env.reset(options={"episode": episode})
        env.sim.place_robot(*pose)
        assert env.step(STOP)[4]["success"]


def test_stop_can_be_masked_while_the_target_is_far():
    env, _ = first(lambda env: math.dist(env.sim.base_pose[:2], env.skill.nav_point[:2]) > 3.0, stop_within_m=2.0)
    assert not env.step(STOP)[2]
    env.sim.place_robot(*env.skill.goal_pose)
    assert env.step(STOP)[4]["success"]


def test_the_distance_is_known_everywhere_and_changes_smoothly():
    env = started(2)
    sim, skill, rng = env.sim, env.skill, np.random.default_rng(0)
    size, inside = sim.home.layout.size_m, 0
    points = skill.grid.points_m[rng.integers(len(skill.grid.points_m), size=150)]
    for x, y in points + rng.uniform(-0.1, 0.1, points.shape):
        here = []
        for dx, dy in ((0.0, 0.0), (0.02, 0.0), (0.0, 0.02)):
            sim.base_pose = (x + dx, y + dy, 0.0)
            here.append(skill.distance_m(sim))
        inside += not math.isfinite(skill.field.at(x, y))
        assert np.isfinite(here).all() and max(here) - min(here) < 0.2
    assert inside > 3 and size[0] > 3.0


def test_turning_is_rewarded_only_near_the_goal():
    env = started(3)
    x, y, yaw = env.skill.goal_pose
    for offset, factor in ((0.0, 1.0), (1.5, 0.0)):
        px, py = env.skill.grid.nearest(x, y) if not offset else max(
            env.skill.grid.points_m.tolist(), key=lambda p: -abs(env.skill.field.at(*p) - offset))
        env.sim.place_robot(px, py, yaw + 1.0)
        env.skill.reward_terms(env.sim)
        before = env._sums["angle"]
        start = env.skill.angle_rad(env.sim)
        for _ in range(10):
            env.step(np.array([0.0, -1.0, -1.0], np.float32))
        turned = start - env.skill.angle_rad(env.sim)
        assert turned > 0.1 and env._sums["angle"] - before == pytest.approx(factor * turned, abs=1e-3)


def test_bumping_into_things_costs():
    metrics = begun.run(started(1), lambda: ON)["metrics"]
    assert metrics["reward/base_contact"] + metrics["reward/force"] < -1.0
    assert metrics["failure/time_limit"] == 1.0


def test_scales_are_checked():
    assert NavigateConfig(reward_scales={"slack": -0.01}).reward_scales["slack"] == -0.01
    with pytest.raises(UserError, match="bad_stop"):
        NavigateConfig(reward_scales={"stop": 1.0})


def test_max_path_m_starts_near_the_goal_pose():
    env, paths = started(max_path_m=1.5), []
    for episode in range(12):
        env.reset(options={"episode": episode})
        paths.append(env.skill.field.at(*env.sim.base_pose[:2]))
    assert max(paths) <= 1.5 and len(set(paths)) > 8


def test_detour_probability_starts_where_the_way_leads_around_something():
    def detours(share):
        found = []
        for episode in range(20):
            sim, skill = (env := started(episode, detour_probability=share, any_start=True)).sim, env.skill
            straight = min(math.dist(sim.base_pose[:2], pose[:2]) for pose in skill.goal_poses)
            found.append(skill.distance_m(sim) > 1.2 * straight + 0.9)
        return sum(found)

    assert detours(1.0) >= 10 > 5 > detours(0.0)  # in some homes nothing is in the way
    with pytest.raises(UserError, match="detour_probability=2"):
        started(0, detour_probability=2)


def test_action_repeat_is_the_same_action_again_and_one_look():
    env, fast = make_env("navigate", depth_size=16, action_repeat=3), make_env("navigate", depth_size=16)
    for each in (env, fast):
        each.reset(options={"episode": 1})
    for action in np.random.default_rng(0).uniform(-1, 0, (8, 3)).astype(np.float32):
        observation, reward, *_ = env.step(action)
        singles = [fast.step(action) for _ in range(3)]
        assert reward == pytest.approx(sum(single[1] for single in singles), abs=1e-12)
        for key, value in observation.items():
            np.testing.assert_array_equal(value, singles[-1][0][key])
    assert env.steps == fast.steps == 24


def test_action_repeat_ends_with_the_episode():
    env = make_env("navigate", depth_size=16, action_repeat=4, max_steps=6)
    env.reset(options={"episode": 0})
    ends = [env.step(np.array([0.1, 0.0, -1.0], np.float32))[3] for _ in range(2)]
    assert ends == [False, True] and env.steps == 6
    with pytest.raises(UserError, match="action_repeat=0"):
        make_env("navigate", action_repeat=0)


@pytest.mark.parametrize("back_m, turned_rad, expected", [
    (0.5, 0.0, 0.75), (0.5, math.pi / 4, 0.375), (1.0, 0.0, 0.5), (0.5, 1.6, 0.0)])
def test_near_stop_rewards_a_stop_elsewhere_by_how_near_it_was(back_m, turned_rad, expected):
    others = dict.fromkeys(("distance", "angle", "base_contact", "force"), 0.0)
    env = started(3, reward_scales={"near_stop": 1.0, **others})
    x, y, yaw = back_from(env.skill.goal_pose, back_m)
    env.sim.place_robot(x, y, yaw + turned_rad)
    env.skill.begin(env.sim, env.skill.arguments)
    _, reward, terminated, _, info = env.step(STOP)
    assert terminated and info["metrics"]["failure/bad_stop"] == 1.0
    assert reward == pytest.approx(expected, abs=0.06)  # the way is counted along the cells of the floor grid


@pytest.mark.parametrize(("back_m", "turned_rad", "rewarded"), [(0.0, 0.0, 1.0), (0.22, 0.0, -1.0), (0.0, 0.2, -1.0)])
def test_a_rewarded_share_pays_for_stops_well_inside_and_the_others_are_success_as_well(back_m, turned_rad, rewarded):
    """Those others are paid as stops elsewhere."""
    others = dict.fromkeys(("distance", "angle", "base_contact", "force", "near_stop"), 0.0)
    env = started(3, rewarded_share=0.3, reward_scales={"success": 1.0, "bad_stop": -1.0, **others})
    x, y, yaw = back_from(env.skill.goal_pose, back_m)
    env.sim.place_robot(x, y, yaw + turned_rad)
    env.skill.begin(env.sim, env.skill.arguments)
    _, reward, terminated, _, info = env.step(STOP)
    assert terminated and info["success"] and info["metrics"]["failure/bad_stop"] == 0.0
    assert reward == pytest.approx(rewarded)


def test_the_edge_of_a_thin_foot_stops_the_base_and_does_not_hold_it():
    """Whatever it meets while it drives on, it can leave again; nothing holds it with more than a braking takes."""
    env = make_env("navigate", depth_size=0, split="val", num_layouts=12, object_in_hand_probability=0.0)
    rng, touched = np.random.default_rng(0), 0
    for episode in range(80):
        env.reset(options={"episode": episode})
        sim = env.sim
        feet = [part for part in sim.home.layout.parts if part.solid and part.top_m < 0.05]
        if not feet:
            continue
        (x, y), yaw = feet[rng.integers(len(feet))].rectangle[:2], rng.uniform(-math.pi, math.pi)
        start = x - 0.9 * math.cos(yaw), y - 0.9 * math.sin(yaw)
        if not env.skill.grid.is_reachable(*start) or not sim.stands_free(*start, yaw):
            continue
        for _ in range(60):
            sim.step(base=[1.0, rng.uniform(-0.5, 0.5)])
            assert sim.base_force_n < 15_000.0  # 75 kg that brake from 1 m/s within 1/120 s take 9,000
            touched += sim.base_force_n > 0.0
        x, y, _ = sim.base_pose
        for _ in range(30):
            sim.step(base=[-1.0, 0.0])
        assert math.dist(sim.base_pose[:2], (x, y)) > 0.3
    assert touched > 50


# ------------------------------------------------------------------ advice of an expert


def advised(episode: int = 0):
    return started(episode, any_start=True, action_repeat=4, expert_action=True)


def test_who_follows_the_advice_arrives():
    env, arrived = advised(), 0
    for episode in range(30):
        observation, _ = env.reset(options={"episode": episode})
        over = False
        while not over:
            advice = observation["expert_action"]
            assert advice in env.observation_space["expert_action"] and advice[-1] in (0.0, 1.0)
            observation, _, terminated, truncated, info = env.step(advice[:-1])
            over = terminated or truncated
        assert not info["metrics"]["failure/bad_stop"]
        arrived += info["success"]
    assert arrived >= 27


def test_advice_comes_from_where_the_robot_is():
    env, turns = advised(3), []
    for yaw in np.linspace(-math.pi, math.pi, 9)[:-1]:
        env.sim.place_robot(*env.scene.start_base_pose[:2], yaw)
        turns.append(env._adviser.advice()[1])
    assert min(turns) < -0.5 and max(turns) > 0.5  # to the right from one side, to the left from the other


def test_at_a_touch_the_advice_is_to_back_off_and_weighs_nothing_where_the_base_touches():
    env, seen = advised(), Counter()
    for episode in range(8):
        env.reset(options={"episode": episode})
        for _ in range(60):  # straight on, until something is in the way
            observation, _, terminated, truncated, _ = env.step(ON)
            touches, advice = (env.sim.arm_force_n > 0, env.sim.base_force_n > 0), observation["expert_action"]
            assert advice[-1] == float(not touches[1])
            if any(touches) and advice[2] < 0:
                assert advice[0] < 0 and advice[1] == 0
            seen[touches] += 1
            if terminated or truncated:
                break
    assert len(seen) >= 3


def test_only_navigate_has_advice():
    with pytest.raises(UserError, match="skill pick has no expert .* in every state .*there is one for navigate"):
        make_env("pick", depth_size=0, expert_action=True)
    assert "expert_action" not in started().observation_space.spaces
    assert tuple(ADVISERS) == ADVISED["skill"]
