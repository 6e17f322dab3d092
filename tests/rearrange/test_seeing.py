"""What can be seen beside a task's own observations: exact pixels, colours, numbers of things, the wrist, random looks,
words.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from planner.scenario_env import make_env as make_scenario
from planner.scenarios import scenarios
from rearrange import navigation
from rearrange.habitat.frames import camera_transform
from rearrange.habitat.mujoco_twin import Twin
from rearrange.habitat.segmentation import number_things, part_of_link
from rearrange.home.apartments import segmentation
from rearrange.home.errors import UserError
from rearrange.home.pictures.depth_noise import punch_holes
from rearrange.home.pictures.looks import PLAIN, draw_looks, linear_colors
from rearrange.home.pictures.photograph import photograph
from rearrange.home.pictures.raster_kernels import BOX, CAPSULE, CYLINDER, PLANE, SPHERE
from rearrange.home.robot.cameras import mounting
from rearrange.home.robot.fetch import FETCH
from rearrange.home.settings.environment import NAVIGATION, SEEN
from rearrange.home.simulation.mujoco.simulator import MujocoSimulator
from rearrange.home.simulation.observations import LONGEST_INSTRUCTION
from rearrange.home.simulation.scenes.drawers_and_doors import plain_name
from rearrange.home.simulation.simulator_interface import FIRST_JOINT, NOTHING
from skills import SKILLS, make_env
from tests.habitat.test_twin import seen_as_habitat

SIZE = 24
ALL = list(SEEN)
SMALL = {"depth_size": SIZE, "camera_size": SIZE, "num_layouts": 2}
GOLDEN = "5f14110521ef45a3"


# ---------------------------------------------------------------------- exact pixels

def still_life() -> dict[str, np.ndarray]:
    """Images (32, 32) of one shape of each kind, in poses of plain decimals."""
    shapes = np.array([(PLANE, 0), (BOX, 1), (SPHERE, 2), (CAPSULE, 3), (CYLINDER, 4)], np.int32)
    half = np.array([(50, 50, 0), (0.4, 0.3, 0.2), (0.3, 0.3, 0.3), (0.1, 0.1, 0.4), (0.2, 0.2, 0.3)])
    halves = np.column_stack([half, np.sqrt((half**2).sum(1))]).astype(np.float32)
    xpos = np.array([(0, 0, 0), (2.0, 0.5, 0.2), (2.5, -0.6, 0.3), (1.8, -0.1, 0.9), (3.0, 0.9, 0.9)], float)
    turned = np.array([0.8, -0.6, 0, 0.6, 0.8, 0, 0, 0, 1.0])
    tilted = np.array([1.0, 0, 0, 0, 0.8, -0.6, 0, 0.6, 0.8])
    xmat = np.array([np.eye(3).ravel(), turned, np.eye(3).ravel(), tilted, tilted])
    colors = np.array([(0.4, 0.3, 0.2), (0.1, 0.2, 0.7), (0.8, 0.1, 0.1), (0.2, 0.7, 0.2), (0.6, 0.6, 0.1)], np.float32)
    pose = np.array([(0, -1.0, 0), (-0.28, 0, -0.96), (0.96, 0, -0.28), (0, 0, 1.2)])
    ids = np.array([6, 20, 21, 22, 23, 0], np.uint16)
    light = np.array([(-0.48, -0.6, 0.64), (0.5, 0.5, 0.4), (0.5, 0.5, 0.6)], np.float32)
    return photograph(("depth", "rgb", "segmentation"), (shapes, halves, xpos, xmat), pose, 32, colors, light, ids)


def digest(images: dict[str, np.ndarray]) -> str:
    return hashlib.sha256(b"".join(images[name].tobytes() for name in sorted(images))).hexdigest()[:16]


def test_pixels_are_those_of_every_machine():
    images = still_life()
    assert {name: (image.shape, image.dtype.name) for name, image in images.items()} == {
        "depth": ((32, 32, 1), "float32"), "rgb": ((32, 32, 3), "uint8"), "segmentation": ((32, 32, 1), "uint16")}
    assert set(np.unique(images["segmentation"])) == {0, 6, 20, 21, 22, 23}, "sky, floor and all shapes are seen"
    assert digest(images) == GOLDEN


@pytest.mark.slow
def test_pixels_are_those_of_a_processor_that_can_do_less(tmp_path):
    """Without vector units and fused operations, which this machine's processor may have."""
    code = "from tests.rearrange.test_seeing import digest, still_life; print(digest(still_life()))"
    env = os.environ | {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=300)
    assert done.stdout.strip() == GOLDEN, done.stderr


# ---------------------------------------------------------------------- what the cameras show

@pytest.fixture(scope="module")
def pick():
    env = make_env("pick", observations=["rgb", "segmentation", "arm_rgb", "arm_depth"], **SMALL)
    env.reset(options={"episode": 1})
    return env


def test_depth_is_the_same_as_alone_and_of_the_same_drawing_as_colours(pick):
    alone = make_env("pick", depth_size=SIZE, num_layouts=2)
    a, b = alone.reset(options={"episode": 1})[0]["depth"], pick.reset(options={"episode": 1})[0]["depth"]
    assert np.abs(a - b).max() < 1e-5
    for _ in range(3):
        action = np.full(alone.action_space.shape, 0.5, np.float32)
        assert np.abs(alone.step(action)[0]["depth"] - pick.step(action)[0]["depth"]).max() < 1e-4


def test_numbers_are_of_what_the_detector_sees(pick):
    pick.reset(options={"episode": 1})
    names = pick.sim.segmentation_names()
    _, owners = pick.sim.owner_image(SIZE)
    seen = pick.sim.photograph("head", SIZE, ("segmentation",), PLAIN)["segmentation"][:, :, 0]
    handles = pick.sim.home.handles
    told = np.vectorize(lambda n: int(names[n].split("/")[1]) if names[n].startswith("object/")
                        else FIRST_JOINT - handles.index(name) if (name := names[n].partition("/")[2]) in handles
                        else NOTHING)(seen)
    assert (told == owners).mean() > 0.995 and len(np.unique(owners)) > 1
    target = pick.skill.target
    assert names[segmentation.OBJECT + target] == f"object/{target}/{pick.episode.objects[target]}"


def test_things_have_their_colours_and_faces_their_light():
    images = still_life()
    rgb, numbers = images["rgb"].astype(int), images["segmentation"][:, :, 0]
    for number, channel in ((20, 2), (21, 0), (22, 1)):  # blue box, red ball, green capsule
        mean = rgb[numbers == number].mean(0)
        assert mean.argmax() == channel and mean.max() > 1.5 * np.median(mean)
    ball = rgb[:, :, 0] * (numbers == 21)
    rows, columns = np.nonzero(numbers == 21)
    assert ball[rows.min() + 1].max() > ball[rows.max()].max(), "lit from above"
    boxes = np.unique(rgb[numbers == 20], axis=0)
    assert 2 <= len(boxes) <= 3, "a face of a box has one colour"


def test_the_wrist_sees_the_hand_and_what_is_before_it(pick):
    pick.reset(options={"episode": 1})
    sim = pick.sim
    pose = sim.camera_pose("arm", PLAIN)
    down = np.array(sim.to_ee(pose[3])) - (-0.05, 0.0, 0.05)
    assert np.abs(down).max() < 1e-9 and abs(pose[2] @ pose[0]) < 1e-12
    seen = sim.photograph("arm", 48, ("segmentation", "depth"), PLAIN)
    cup = seen["segmentation"][:, :, 0] == segmentation.ROBOT["gripper"]
    rows, columns = np.nonzero(cup)
    assert rows.min() > 30 and abs(columns.mean() - 23.5) < 1, "at the lower edge, in the middle"
    assert seen["depth"][:, :, 0][cup].max() * 10 < 0.2
    before = sim.photograph("arm", 16, ("rgb",), PLAIN)["rgb"]
    for _ in range(10):
        pick.step(np.full(pick.action_space.shape, 0.9, np.float32))
    assert not np.array_equal(before, sim.photograph("arm", 16, ("rgb",), PLAIN)["rgb"])


def test_images_lag_by_one_step_as_depth_does():
    lagged, now = (make_env("pick", observations=["rgb", "arm_depth"], image_lag=lag, **SMALL) for lag in (True, False))
    images = [[env.reset(options={"episode": 2})[0]] + [env.step(np.full(10, 0.7, np.float32))[0] for _ in range(3)]
              for env in (lagged, now)]
    for name in ("rgb", "arm_depth", "depth"):
        assert all(np.array_equal(images[0][k + 1][name], images[1][k][name]) for k in range(3))
        assert not np.array_equal(images[1][3][name], images[1][0][name])


@pytest.mark.parametrize("name", [*SKILLS, *scenarios(), *NAVIGATION])
def test_everything_can_be_seen_everywhere_and_the_same_seed_shows_the_same(name):
    def made():
        if name in NAVIGATION:
            own = {"segmentation": False} if name == "objectnav" else {}
            return navigation.make_env(name, depth_size=SIZE, camera_size=16, num_homes=2,
                                       observations=["rgb", "segmentation", "instruction"], **own)
        make = make_env if name in SKILLS else make_scenario
        return make(name, observations=ALL, **SMALL | {"camera_size": 16})

    rollouts = []
    for env in (made(), made()):
        observation, info = env.reset(seed=3)
        seen = [observation]
        env.action_space.seed(0)
        for _ in range(2):
            seen.append(env.step(env.action_space.sample() * 0 if name in NAVIGATION
                                 else np.full(env.action_space.shape, -0.4, np.float32))[0])
        assert all(env.observation_space.contains(each) for each in seen)
        assert seen[0]["instruction"] == info["instruction"] and 0 < len(info["instruction"]) <= LONGEST_INSTRUCTION
        assert set(np.unique(observation["segmentation"])) <= set(info["segmentation_names"])
        rollouts.append(seen)
    for a, b in zip(*rollouts):
        assert all(np.array_equal(a[key], b[key]) for key in a), "same seed, same pixels"


def test_furniture_has_a_number_for_each_piece_drawer_and_door():
    home = make_env("pick", num_layouts=2, depth_size=0)
    home.reset(options={"episode": 0})
    layout = home.sim.home.layout
    still, moving = segmentation.numbers_of(layout, 7)
    names = segmentation.names_of(layout, ["x_y"] * 7)
    for k, piece in enumerate(layout.furniture):
        own = {still[part] for part in piece.parts}
        assert len(own) == 1 and names[own.pop()].startswith(f"furniture/{piece.kind}")
    assert [names[number] for number in moving] == [f"furniture/{body.name}" for body in layout.bodies]
    assert len(set(names.values())) == len(names)
    assert {names[n] for i, n in enumerate(still) if layout.parts[i].name.startswith("wall")} == {"building/wall"}


# ---------------------------------------------------------------------- random looks

def test_nothing_is_random_unless_asked_for():
    assert draw_looks(np.random.default_rng(0)).light is PLAIN.light and not draw_looks(np.random.default_rng(0)).moves
    rgb = np.array([(0.2, 0.4, 0.6)] * 3)
    assert np.allclose(linear_colors(rgb, np.arange(3), PLAIN), rgb**2.2)


@pytest.mark.parametrize("setting, changes, keeps",
                         [({"random_colors": 1.0}, {"rgb", "arm_rgb"}, {"depth", "arm_depth", "segmentation"}),
                          ({"random_light": 1.0}, {"rgb", "arm_rgb"}, {"depth", "arm_depth", "segmentation"}),
                          ({"random_camera_m": 0.1}, {"rgb", "depth", "arm_rgb", "arm_depth", "segmentation"}, set()),
                          ({"random_camera_deg": 9.0}, {"rgb", "depth", "arm_rgb", "arm_depth", "segmentation"}, set()),
                          ({"random_depth_noise": 1.0}, {"depth", "arm_depth"}, {"rgb", "arm_rgb", "segmentation"}),
                          ({"random_depth_holes": 0.2}, {"depth", "arm_depth"}, {"rgb", "arm_rgb", "segmentation"})])
def test_each_kind_of_randomness_changes_its_images_by_the_seed(setting, changes, keeps):
    images = ["rgb", "arm_rgb", "arm_depth", "segmentation"]
    plain, env = (make_env("pick", observations=images, **SMALL, **more) for more in ({}, setting))
    asked = {"options": {"episode": 1}}
    as_it_is, random = plain.reset(seed=1, **asked)[0], env.reset(seed=1, **asked)[0]
    assert all(not np.array_equal(as_it_is[key], random[key]) for key in changes)
    assert all(np.abs(as_it_is[key].astype(float) - random[key]).max() < 1e-5 for key in keeps)
    next_one, again = env.reset(**asked)[0], env.reset(seed=1, **asked)[0]
    other = env.reset(seed=2, **asked)[0]
    for key in changes:
        assert np.array_equal(random[key], again[key]), "same seed"
        assert not np.array_equal(random[key], other[key]), "another seed"
    by_number = env.reset(**asked)[0], env.reset(options={"episode": 0}), env.reset(**asked)[0]
    assert all(np.array_equal(next_one[key], by_number[k][key]) for key in changes
               for k in (0, 2)), "an episode alone is always the same"


def test_parts_of_one_colour_keep_one_and_half_as_much_is_half_way():
    rgb, things = np.array([(0.2, 0.4, 0.6), (0.2, 0.4, 0.6), (0.2, 0.4, 0.6), (0.9, 0.9, 0.9)]), np.array([1, 1, 2, 2])
    full, half = (linear_colors(rgb, things, draw_looks(np.random.default_rng(4), share)) ** (1 / 2.2)
                  for share in (1.0, 0.5))
    assert np.array_equal(full[0], full[1]) and len(np.unique(full, axis=0)) == 3
    assert np.allclose(half, 0.5 * rgb + 0.5 * full, atol=1e-5)


def test_cameras_move_no_farther_than_asked():
    for seed in range(20):
        looks = draw_looks(np.random.default_rng(seed), camera_m=0.1, camera_deg=5.0)
        for camera in ("head", "arm"):
            was, now = mounting(FETCH.camera(camera)), looks.mounted(camera, FETCH.camera(camera))
            assert np.abs(was[:3] @ (now[3] - was[3])).max() <= 0.1 + 1e-9
            assert np.allclose(now[:3] @ now[:3].T, np.eye(3)) and np.linalg.det(now[:3]) > 0
            assert np.degrees(np.arccos(np.clip((np.trace(now[:3] @ was[:3].T) - 1) / 2, -1, 1))) <= 5.0 * 3**0.5 + 1e-6


def test_holes_take_their_share_in_patches_and_along_edges():
    depth = np.full((64, 64, 1), 0.5, np.float32)
    depth[:, 32:] = 0.2
    punch_holes(depth, 0.1, np.random.default_rng(0))
    holes = depth[:, :, 0] == 0
    assert holes.sum() == round(0.1 * 64 * 64)
    assert holes[:, 31].mean() > 3 * holes.mean(), "along the edge"
    away = holes[:, :30]
    beside = (away[1:] & away[:-1]).sum() / max(away[1:].sum(), 1)
    assert beside > 2 * away.mean(), "in patches"


# ---------------------------------------------------------------------- words and mistakes

def test_a_scenario_says_what_belongs_where_in_several_wordings():
    env = make_scenario("set_table", depth_size=0, split="val", num_layouts=4)
    said = [env.reset(options={"episode": index})[1]["instruction"] for index in (0, 1, 2, 3, 4, 5, 0)]
    assert said[0] == said[-1] and len({words.split()[0] for words in said}) > 1
    assert all("bowl" in words and "out of the drawer" in words and "out of the fridge" in words for words in said)
    assert all(words.endswith("close the drawer; close the fridge") for words in said)


def test_navigation_says_where_to_go():
    env = navigation.make_env("objectnav", depth_size=0, num_homes=4)
    for seed in range(3):
        _, info = env.reset(seed=seed)
        assert env.episode.category.replace("_", " ") in info["instruction"]
    point = navigation.make_env("pointnav", depth_size=0, num_homes=4, observations=["instruction"])
    observation, info = point.reset(seed=0)
    away = np.hypot(*np.subtract(point.episode.goal, point.episode.start[:2]))
    assert f"{away:.1f} m" in info["instruction"] == observation["instruction"]


@pytest.mark.parametrize(
    "make, said", [(lambda: make_env("pick", observations=["rgbd"]), "observations=.*rgbd.*Did you mean rgb"),
                   (lambda: make_env("pick", observations=["rgb"], camera_size=1), "camera_size=1"),
                   (lambda: make_env("pick", random_colors=1.5), "random_colors=1.5"),
                   (lambda: navigation.make_env("pointnav", observations=["arm_rgb"]), "'arm_rgb', for want of an arm"),
                   (lambda: navigation.make_env("objectnav", observations=["segmentation"]), "nav.segmentation=false")])
def test_a_mistake_is_one_sentence(make, said):
    with pytest.raises(UserError, match=said) as error:
        make()
    assert "\n" not in str(error.value)


# ---------------------------------------------------------------------- Habitat

def test_the_twin_of_a_home_in_habitat_shows_the_same(pick):
    pick.reset(options={"episode": 1})
    sim, twin = pick.sim, Twin(MujocoSimulator(pick.sim.config))
    other = twin.of(seen_as_habitat(sim))
    for camera in ("head", "arm"):
        here, there = (each.photograph(camera, 32, ("rgb", "segmentation"), PLAIN) for each in (sim, other))
        assert all((here[name] == there[name]).mean() > 0.999 for name in here)


def test_a_camera_of_habitat_looks_the_same_way():
    made = camera_transform(np.array([(0.0, -1.0, 0.0), (0.0, 0.0, -1.0), (1.0, 0.0, 0.0), (1.0, 2.0, 3.0)]))
    assert np.allclose(made, [(0, 0, -1, 1), (0, 1, 0, 3), (1, 0, 0, -2), (0, 0, 0, 1)])


def test_things_of_an_external_scene_get_our_numbers():
    def nodes(count=1):
        return [SimpleNamespace(semantic_id=0) for _ in range(count)]

    objects, sofa = [SimpleNamespace(visual_scene_nodes=nodes())
                     for _ in range(2)], SimpleNamespace(handle="x/sofa_:0000", visual_scene_nodes=nodes())
    links = {3: nodes(), 4: nodes()}
    cabinet = SimpleNamespace(visual_scene_nodes=[*links[3], *links[4]], get_link_visual_nodes=links.__getitem__)
    own = {link: nodes() for link in (-1, 9, 18, 25, 26)}
    robot = SimpleNamespace(get_link_ids=lambda: [9, 18, 25, 26], get_link_visual_nodes=own.__getitem__)
    names = number_things(objects, robot, [sofa], {"kitchen:0000": cabinet}, {"drawer_0": (cabinet, 4)})
    assert [thing.visual_scene_nodes[0].semantic_id for thing in objects] == [12, 13]
    assert names == {14: "furniture/sofa", 15: "furniture/kitchen", 16: "furniture/drawer_0"}
    assert [node.semantic_id for node in (sofa.visual_scene_nodes[0], links[3][0], links[4][0])] == [14, 15, 16]
    assert [node[0].semantic_id for node in own.values()] == [
        segmentation.ROBOT[part] for part in ("base", "torso", "arm", "gripper", "gripper")]
    assert part_of_link(11) == "head" and plain_name("frl_apartment_chair_:0012") == "frl_apartment_chair"
