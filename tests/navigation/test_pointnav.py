"""The environment of PointNav: Gymnasium's contract, Habitat's episode rule, rewards that add up, noise, scripted
agents.
"""

import math

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import rearrange  # noqa: F401 registers the ids
from rearrange.home.errors import UserError
from rearrange.home.pictures.depth_noise import noisy_depth
from rearrange.navigation import make_env
from rearrange.navigation.cylinder import motion_noise, usual_motion
from rearrange.navigation.episodes import LONGEST_M, SHORTEST_M, kept_share
from rearrange.navigation.scripted_agents import SCRIPTED
from tests.navigation.player import play

STOP, FORWARD, LEFT, RIGHT = range(4)


@pytest.fixture(scope="module")
def env():
    return make_env("pointnav", depth_size=32, split="val", num_homes=8)


@pytest.mark.parametrize(
    "settings", [{}, {"actions": "velocity"}, {"odometry": "commands", "actuation_noise": 0.5, "depth_noise": 1.0},
                 {"odometry": "visual", "actuation_noise": 0.5, "depth_noise": 1.0}, {"agent": "fetch"}])
def test_gymnasium_finds_nothing_wrong(settings):
    env = gymnasium.make("rearrange/PointNav-v0", depth_size=16, num_homes=4, **settings)
    check_env(env.unwrapped, skip_render_check=True)


def test_the_same_number_is_the_same_episode_everywhere(env):
    other = make_env("pointnav", depth_size=32, split="val", num_homes=8)
    for index in (0, 7, 123456):
        a, b = (e.reset(options={"episode": index})[0] for e in (env, other))
        assert env.episode == other.episode and all(np.array_equal(a[key], b[key]) for key in a)
    episodes = set()
    for index in range(30):
        env.reset(options={"episode": index})
        episodes.add((env.episode.start, env.episode.goal))
    assert len(episodes) == 30


def test_training_draws_four_episodes_of_a_goal_in_a_row_and_all_differ():
    env, goals, starts = make_env("pointnav", depth_size=0, num_homes=8), [], []
    for k in range(12):
        env.reset(seed=3 if k == 0 else None)
        goals.append((env.episode.scene, env.episode.goal))
        starts.append(env.episode.start)
    assert [goals.index(goal) for goal in goals] == [0] * 4 + [4] * 4 + [8] * 4 and len(set(starts)) == 12


def test_episodes_follow_habitats_rule(env):
    """By hand: a ratio of 1 is kept 8 times in 1,000, one just below 1.1 29 times in 100, and from 1.1 on always."""
    assert kept_share(np.array([1.0]))[0] == pytest.approx(0.008)
    assert kept_share(np.array([1.0999]))[0] == pytest.approx(0.287, abs=1e-3) and kept_share(np.array([1.1]))[0] == 1.0
    kept, drawn, rng = [], [], np.random.default_rng(0)
    for index in range(150):
        env.reset(options={"episode": index})
        (x, y, _), goal = env.episode.start, env.episode.goal
        assert SHORTEST_M <= env.task.start_m <= LONGEST_M and env.home.is_free(x, y) and env.home.is_free(*goal)
        kept.append(env.task.start_m / math.dist((x, y), goal))
        for cell in rng.integers(len(env.home.cells), size=10):
            point = env.home.center(int(cell))
            if env.task.field.at(*point) >= SHORTEST_M:
                drawn.append(env.task.field.at(*point) / math.dist(point, goal))
    straight = [np.mean(np.array(ratios) < 1.05) for ratios in (kept, drawn)]
    assert straight[0] < 0.6 * straight[1], "straight ways are kept more rarely than they are drawn"


def test_the_goal_is_told_in_the_agents_frame(env):
    env.reset(options={"episode": 3})
    for action in (LEFT, LEFT, FORWARD, RIGHT, FORWARD):
        observation, *_ = env.step(action)
        x, y, yaw = env.pose
        away, _, cosine, sine = observation["pointgoal"]
        found = x + 5 * away * math.cos(
            yaw + math.atan2(sine, cosine)), y + 5 * away * math.sin(yaw + math.atan2(sine, cosine))
        assert found == pytest.approx(env.task.goal, abs=1e-4)


def test_egomotion_is_what_the_last_action_moved(env):
    """Forward in 0.25 m, turns in 30 degrees; a step that was blocked shows less."""
    assert not env.reset(options={"episode": 3})[0]["egomotion"].any(), "nothing before the first action"
    assert env.step(LEFT)[0]["egomotion"] == pytest.approx([0, 0, 1 / 3], abs=1e-6)
    assert env.step(RIGHT)[0]["egomotion"] == pytest.approx([0, 0, -1 / 3], abs=1e-6)
    free, blocked = [], []
    for _ in range(60):
        before, hits = env.pose, env.collisions
        moved = env.step(FORWARD)[0]["egomotion"]
        (blocked if env.collisions > hits else free).append(moved)
        assert np.hypot(moved[0], moved[1]) == pytest.approx(math.dist(env.pose[:2], before[:2]) / 0.25,
                                                             abs=1e-5) and moved[2] == 0
    assert free and np.allclose(free, [1, 0, 0], atol=1e-5)
    assert blocked and max(moved[0] for moved in blocked) < 0.999


def test_egomotion_is_what_odometry_says():
    """By commands alone a blocked step shows as made; without any odometry nothing shows."""
    for odometry, shown in (("commands", [1, 0, 0]), ("start", [0, 0, 0])):
        env = make_env("pointnav", depth_size=0, num_homes=4, odometry=odometry)
        env.reset(seed=1)
        for _ in range(40):
            assert env.step(FORWARD)[0]["egomotion"] == pytest.approx(shown, abs=1e-5)
        assert env.collisions
    assert "egomotion" not in make_env("pointnav", depth_size=0, num_homes=4, egomotion=False).observation_space.spaces


def test_rewards_add_up_to_the_way_that_was_made(env):
    total, info = play(env, SCRIPTED["oracle"](env), 5)
    metrics = info["metrics"]
    made = env.task.start_m - metrics["distance_to_goal_m"]
    assert metrics["success"] == 1 and metrics["spl"] > 0.9
    assert total == pytest.approx(made - 0.01 * metrics["episode_steps"] + 2.5 * metrics["spl"], abs=1e-6)


def test_stopping_elsewhere_is_a_failure_and_time_runs_out():
    env = make_env("pointnav", depth_size=0, split="val", num_homes=8, max_steps=5)
    env.reset(options={"episode": 0})
    *_, terminated, truncated, info = env.step(STOP)
    assert terminated and not truncated and not info["success"] and info["metrics"]["failure/stopped_elsewhere"] == 1
    assert info["metrics"]["spl"] == 0
    env.reset(options={"episode": 0})
    ends = [env.step(LEFT)[2:4] for _ in range(5)]
    assert ends == [(False, False)] * 4 + [(False, True)]


def test_turns_and_speeds_are_those_of_the_settings():
    env = make_env("pointnav", depth_size=0, num_homes=4, turn_deg=30)
    env.reset(seed=0)
    yaw = env.pose[2]
    env.step(LEFT)
    assert math.remainder(env.pose[2] - yaw, 2 * math.pi) == pytest.approx(math.radians(30))
    fast = make_env("pointnav", depth_size=0, num_homes=4, actions="velocity")
    fast.reset(options={"episode": 1})
    yaw = fast.pose[2]
    *_, terminated, _, _ = fast.step(np.array([1.0, -0.5], np.float32))
    assert math.remainder(fast.pose[2] - yaw, 2 * math.pi) == pytest.approx(-math.radians(5)) and not terminated
    assert fast.driven_m <= 0.25 + 1e-9 and fast.step(np.array([-1.0, 0.05], np.float32))[2], "at rest: stop"


def test_odometry_that_follows_the_commands_drifts_with_noise_and_not_without():
    for noise, agrees in ((0.0, True), (0.5, False)):
        env = make_env("pointnav", depth_size=0, num_homes=4, odometry="commands", actuation_noise=noise)
        env.reset(seed=1)
        for _ in range(30):
            env.step(LEFT)
        assert (math.dist(env.pose, env.believed_pose) < 1e-9) == agrees
    env = make_env("pointnav", depth_size=0, num_homes=4, odometry="start")
    first = env.reset(seed=1)[0]["pointgoal"]
    assert np.array_equal(first, env.step(FORWARD)[0]["pointgoal"])


def followed(odometry, **settings):
    """How far (m, rad) the pose that the agent believes in is from the true one, at the end of ways by the expert."""
    env = make_env("pointnav", depth_size=64, split="val", num_homes=8, odometry=odometry, **settings)
    off = []
    for episode in range(6):
        env.reset(options={"episode": episode})
        while (action := env.task.best_action(env)) != STOP and env.steps < 200:
            env.step(action)
        off.append((math.dist(env.pose[:2], env.believed_pose[:2]),
                    abs(math.remainder(env.pose[2] - env.believed_pose[2], 2 * math.pi))))
    return np.median(off, 0)


def test_visual_odometry_knows_what_slides_and_noise_do_to_motions():
    """By depth alone: with exact motions and images to centimetres, with the challenge's noise far better than the
    commands.
    """
    away_m, turned = followed("visual")
    assert away_m < 0.1 and turned < math.radians(1)
    noise = {"actuation_noise": 0.5, "depth_noise": 1.0}
    (seen_m, seen_rad), (blind_m, blind_rad) = (followed(odometry, **noise) for odometry in ("visual", "commands"))
    assert seen_m < 0.3 * blind_m and seen_rad < 0.3 * blind_rad, (seen_m, blind_m, seen_rad, blind_rad)


def test_noise_has_the_published_numbers():
    rng = np.random.default_rng(0)
    drawn = np.array([motion_noise(0.25, 0.0, 1.0, rng) for _ in range(4000)])
    usual, deviations = usual_motion(0.25, 0.0, 1.0)
    np.testing.assert_allclose(drawn.std(0), deviations, rtol=0.1)
    np.testing.assert_allclose((drawn * (1, -1, 1)).mean(0) + (0.25, 0, 0), usual, atol=0.02)
    assert drawn[:, 0].min() >= -0.95 * 0.25 and np.abs(drawn[:, 1] - 0.042).max() <= 3 * 0.023**0.5
    assert drawn[:, 1].mean() == pytest.approx(0.042,
                                               abs=0.02) and drawn[:, 2].std() == pytest.approx(0.026**0.5, rel=0.05)
    right = np.array([motion_noise(0.0, -math.radians(10), 1.0, rng) for _ in range(4000)])
    assert right[:, 2].max() <= 0.95 * math.radians(10) + 1e-9, "a turn to the right is never undone"
    depth = np.full((64, 64, 1), 0.8, np.float32)
    noisy_depth(depth, 10.0, 1.0, rng)
    assert abs(depth.mean() - 0.8) < 0.01 and {round(float(d), 2)
                                               for d in depth.ravel()} >= {0.78, 0.80}, "steps of 0.22 m at 8 m"


@pytest.mark.parametrize("name, least", [("oracle", 1.0), ("map", 0.9), ("goal_follower", 0.05)])
def test_scripted_agents_reach_what_they_should(name, least):
    env = make_env("pointnav", depth_size=128 if name == "map" else 0, split="val", num_homes=8)
    agent = SCRIPTED[name](env)
    found = [play(env, agent, index)[1]["success"] for index in range(20)]
    assert np.mean(found) >= least


@pytest.mark.parametrize("episode", [36, 58])
def test_the_oracle_turns_away_from_a_corner_that_it_cannot_slide_along(episode):
    env = make_env("pointnav", split="val", depth_size=0, sliding=False)
    assert play(env, SCRIPTED["oracle"](env), episode)[1]["success"]


@pytest.mark.parametrize("task", ["pointnav", "objectnav"])
def test_advice_leads_to_the_goal_from_wherever_the_agent_strays(task):
    env = make_env(task, depth_size=0, split="val", num_homes=8, expert_action=True)
    plain, rng = make_env(task, depth_size=0, split="val", num_homes=8), np.random.default_rng(0)
    for episode in range(6):
        observation, _ = env.reset(options={"episode": episode})
        assert set(observation) == {*plain.reset(options={"episode": episode})[0], "expert_action"}
        for _ in range(60):  # whatever it does
            observation, *_ = env.step(int(rng.integers(FORWARD, RIGHT + 1)))
        left_m, driven_m, over = env.task.left_m, env.driven_m, False
        while not over:
            action, weight = observation["expert_action"]
            assert env.observation_space.contains(observation) and weight == 1.0
            observation, _, terminated, truncated, info = env.step(int(action))
            over = terminated or truncated
        assert info["success"] and env.driven_m - driven_m < 1.1 * left_m + 0.3


FETCH = {"agent": "fetch"}


@pytest.mark.parametrize("settings, words", [
    ({"turn": 3}, "no setting 'turn'.*turn_deg"), ({"size": "huge"}, "size=huge is not allowed.*small, large or mixed"),
    ({"reward_scales": {"spll": 1}}, "no reward term 'spll'"), ({"split": "tst"}, "split=tst"),
    ({"radius_m": 0.0}, "radius_m=0.0"), ({"near_m": 2.0, "far_m": 1.0}, "near_m=2 is not below far_m=1"),
    ({"fov_deg": float("nan")}, "fov_deg=nan.*finite"), ({"scenes": "a"}, "nav.scenes=a needs nav.scene_dataset="),
    ({"depth_size": 0, "odometry": "visual"}, "nav.odometry=visual needs the depth image"),
    ({"task": "flee", "expert_action": True}, "nav=flee has no goal"),
    ({"expert_action": True, "actions": "velocity"}, "need nav.actions=discrete"),
    (FETCH | {"size": "large"}, "nav.size=large is not for nav.agent=fetch, whose physics knows single flats: it must "
     "be small"), (FETCH | {"size": "mixed"}, "nav.size=mixed"),
    (FETCH | {"sliding": False}, "nav.sliding=false is not for.*leave it at true"),
    (FETCH | {"radius_m": 0.2}, "nav.radius_m=0.2 is not for nav.agent=fetch.*leave it at 0.1"),
    (FETCH | {"turn_deg": 30}, "nav.turn_deg=30"), (FETCH | {"actuation_noise": 0.5}, "nav.actuation_noise=0.5"),
    (FETCH | {"odometry": "commands"}, "must be perfect or start"),
    (FETCH | {"odometry": "visual"}, "nav.odometry=visual is not for nav.agent=fetch"),
    (FETCH | {"actions": "discrete", "action_repeat": 2}, "nav.action_repeat=2 is for velocities"),
    ({"action_repeat": 2}, "nav.action_repeat=2 is for robots, which"),
    ({"agent": "fetsch"}, "robots are fetch.*nav.agent=cylinder"),
])
def test_mistakes_are_one_sentence(settings, words):
    with pytest.raises(UserError, match=words) as error:
        make_env(**{"task": "pointnav"} | settings)
    assert "\n" not in str(error.value)


def test_actions_that_are_none_are_refused(env):
    env.reset(seed=0)
    for wrong in (4, -1, 1.0, "left", np.array([1, 2])):
        with pytest.raises(ValueError, match="an action of pointnav"):
            env.step(wrong)
    with pytest.raises(UserError, match="options"):
        env.reset(options={"episode": -1})
