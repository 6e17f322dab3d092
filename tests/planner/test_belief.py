"""What a robot knows while it carries out a plan: worked out from pixels, never read from the simulator."""

import math

import mujoco
import numpy as np
import pytest

from planner.belief import IMAGE_SIZE, LOOK_EVERY, Belief
from planner.detector import fit_opening, opening_at, sight
from planner.rules import Rules
from planner.scenario import plan
from rearrange.home.apartments.objects import OBJECTS
from rearrange.home.geometry import from_frame, quat_matrix
from rearrange.home.simulation.simulator_interface import FIRST_JOINT, NOTHING
from tests.planner.puppet import begun, scenario_env
from tests.skills.begun import let_go, put

SEEN = Rules(recovery="replan", knowledge="seen", at_m=0.15, max_steps={"navigate": 12, "pick": 3})


@pytest.fixture(scope="module")
def envs():
    return {name: scenario_env(name) for name in ("tidy_house", "set_table")}


def begin(env, episode=0):
    env.reset(seed=0, options={"episode": episode})
    return env.sim, Belief.begin(env.sim, 12, 0.0, np.random.default_rng(0))


def set_joint(sim, name, opening):
    sim.set_joint(name, opening)
    mujoco.mj_forward(sim.model, sim.data)


def flat(image):
    return tuple(part.ravel() for part in image)


def test_the_owner_image_shows_the_same_depth_and_names_what_a_ray_meets(envs):
    sim, _ = begin(envs["set_table"])
    depth, owners = sim.owner_image(64)
    np.testing.assert_allclose(np.minimum(depth / 10.0, 1.0), sim.depth_image(64)[:, :, 0], atol=1e-6)
    put(sim, 1, *sim.from_base((1.2, 0.0, 1.0)))
    _, owners = sim.owner_image(64)
    rows, columns = np.nonzero(owners == 1)
    assert abs(rows.mean() - 32) < 12 and abs(columns.mean() - 31.5) < 2, "it is in the middle of the image"
    assert owners.min() >= FIRST_JOINT - len(sim.home.handles) + 1 and (owners == NOTHING).any()


def test_every_kind_of_object_is_found_from_its_pixels_wherever_it_stands(envs):
    sim, _ = begin(envs["tidy_house"])
    rng, missed = np.random.default_rng(1), []
    for index in range(len(sim.episode.objects)):
        for _ in range(6):
            ahead = rng.uniform(0.9, 2.5)
            place = sim.from_base((ahead, rng.uniform(-0.5, 0.5) * ahead, rng.uniform(0.4, 1.0)))
            put(sim, index, *place)
            depth, owners = flat(sim.owner_image(IMAGE_SIZE))
            if np.count_nonzero(owners == index) < 12:
                continue
            found = sight(sim.robot.head, depth, owners, index, sim.episode.objects[index], sim.base_pose)
            half = max(OBJECTS[sim.episode.objects[index]].half_size_m)
            missed.append(math.dist(found.position, place) / (half + 0.02))
        put(sim, index, -9.0, -9.0, 1.0)
    assert len(missed) > 40 and max(missed) < 1.0 and np.median(missed) < 0.4


@pytest.mark.parametrize("joint, openings", [("drawer_1", (0.0, 0.2, 0.45)), ("fridge_door", (0.0, 0.5, 1.3))])
def test_an_opening_is_worked_out_from_pixels_or_from_the_hand_on_the_handle(envs, joint, openings):
    sim, belief = begin(envs["set_table"])
    body = belief._body(joint)
    code = FIRST_JOINT - belief.handles.index(joint)
    seen = 0
    for opening in openings:
        set_joint(sim, joint, opening)
        handle = sim.handle_position(joint)
        assert opening_at(body, handle) == pytest.approx(opening, abs=1e-4)
        facing = body.yaw_rad + math.pi
        for aside in (-0.4, 0.0, 0.4):
            x, y = (handle[0] - 1.4 * math.cos(facing + aside), handle[1] - 1.4 * math.sin(facing + aside))
            sim.place_robot(x, y, facing + aside)
            depth, owners = flat(sim.owner_image(IMAGE_SIZE))
            if np.count_nonzero(owners == code) > 40:
                seen += 1
                for before in openings:
                    found = fit_opening(body, sim.robot.head, depth, owners == code, sim.base_pose, before)
                    assert found == pytest.approx(opening, abs=0.06), (aside, before)
    assert seen >= 5


def test_nothing_but_body_and_camera_is_asked_for(envs, monkeypatch):
    """Everything else that a simulator could tell about objects, drawers and doors is refused."""
    env = envs["set_table"]
    sim, belief = begin(env)

    def refused(*_, **__):
        raise AssertionError("a pose was read from the simulator")

    for name in ("object_position", "object_pose", "object_half_extents", "joint_position", "joint_velocity",
                 "handle_position", "body_frame", "touched_objects", "cup_touches", "slot_of"):
        assert hasattr(sim, name)
        monkeypatch.setattr(sim, name, refused)
    sim.start_positions = None
    for _ in range(2 * LOOK_EVERY):
        sim.step(None, None, [0.3, 0.5])
        belief.step()
    made = plan(belief, env.config.problem, 0.15)
    assert str(made.steps[1]) == "open_cabinet cabinet_0"
    assert belief.handle_position("fridge_door") and not belief.unsure(0)


def told_in_a_run(env, change):
    """The coordinates and steps of a run in which nothing is ever reached; `change(sim)` is done after its start."""
    run = begun(env, SEEN, None)
    change(run.sim)
    told = []
    while not run.done and run.report.recoveries < 4:
        if run.request and run.request.first:
            told.append((str(run.steps[run.at].operator),
                         *(tuple(run._arguments.start_of(index)) for index in run.symbols.objects.values())))
        run.advance(np.zeros(10 if run.request.skill == "pick" else 3) if run.request else None)
    return told


def test_what_is_moved_out_of_sight_changes_no_decision_and_what_is_seen_does(envs):
    env = envs["tidy_house"]
    first = told_in_a_run(env, lambda sim: None)
    targets = list(env.episode.targets)

    def behind(sim):
        for k, index in enumerate(targets):
            depth, owners = sim.owner_image(IMAGE_SIZE)
            if not (owners == index).any():
                put(sim, index, *sim.from_base((-1.0 - 0.3 * k, 0.0, 0.8)))

    def in_front(sim):
        put(sim, targets[2], *sim.from_base((1.2, 0.0, 1.2)))

    assert told_in_a_run(env, behind) == first
    changed = told_in_a_run(env, in_front)
    at = 1 + list(env.episode.targets).index(targets[2])
    assert changed[0] == first[0] and math.dist(changed[-1][at], first[-1][at]) > 0.3
    assert math.dist(changed[-1][at][:2], env.sim.from_base((1.2, 0.0, 1.0))[:2]) < 0.15


def test_a_place_that_is_seen_to_be_empty_ends_a_belief(envs):
    sim, belief = begin(envs["tidy_house"])
    index = list(sim.episode.targets)[0]
    belief.things[index].position = sim.from_base((1.3, 0.0, 1.15))  # in mid-air, before the camera
    for _ in range(2):
        belief.look()
    assert not belief.missing(index), "one glance is not enough"
    belief.look()
    assert belief.missing(index)
    put(sim, index, *belief.object_position(index))
    belief.look()
    assert not belief.missing(index) and not belief.unsure(index)


def test_what_lies_in_a_drawer_moves_with_the_hand_that_pulls_it(envs):
    sim, belief = begin(envs["set_table"])
    bowl = next(iter(sim.episode.targets))
    made = plan(belief, envs["set_table"].config.problem)
    joint = made.symbols.joints["cabinet_0"]
    before = belief.object_position(bowl)
    belief._open(joint, 0.4)
    assert math.dist(before, belief.object_position(bowl)) == pytest.approx(0.4)
    apple = list(sim.episode.targets)[1]
    assert belief.object_position(apple) == tuple(sim.start_positions[apple])


def test_what_the_hand_takes_is_what_was_intended_until_the_camera_says_otherwise(envs):
    sim, belief = begin(envs["tidy_house"])
    wanted, other = list(sim.episode.targets)[:2]
    belief.intend(wanted)
    sim.put_in_hand(other)
    belief.step()
    assert belief.held == wanted
    for _ in range(4 * LOOK_EVERY):
        sim.step(None, 1.0, None)
        belief.step()
    assert belief.held == other
    let_go(sim)
    belief.step()
    assert belief.held is None
    assert math.dist(belief.object_position(other), sim.ee_position) < 0.2, "it is where the hand let it go"


def test_the_error_of_the_detector_can_be_set(envs):
    sim, _ = begin(envs["tidy_house"])
    belief = Belief.begin(sim, 12, 0.05, np.random.default_rng(3))
    index = list(sim.episode.targets)[0]
    errors = []
    for k in range(30):
        place = sim.from_base((1.2, 0.3 * (-1) ** k, 1.0))
        put(sim, index, *place)
        belief.look()
        errors.append(np.subtract(belief.object_position(index), place))
    assert 0.03 < np.std(errors, axis=0)[2] < 0.08


def before_the_fridge(sim, opening):
    """The door stands open so far, and the robot looks at it."""
    body = next(body for body in sim.home.layout.bodies if body.name == "fridge_door")
    set_joint(sim, "fridge_door", opening)
    ahead = from_frame(1.4, 0.0, (*sim.handle_position("fridge_door")[:2], body.yaw_rad))
    sim.place_robot(*ahead, body.yaw_rad + math.pi)


def test_a_detector_that_errs_misses_and_confuses_as_often_as_it_is_told(envs):
    sim, _ = begin(envs["tidy_house"])
    put(sim, list(sim.episode.targets)[0], *sim.from_base((1.2, 0.0, 1.0)))
    looks, named = 400, {}
    for misses, confusions in ((0.0, 0.0), (0.3, 0.0), (0.0, 0.2)):
        belief = Belief.begin(sim, 12, 0.0, np.random.default_rng(1), misses, confusions)
        named[misses, confusions] = [belief.look()[0] for _ in range(looks)]
    shown = named[0.0, 0.0][0]
    assert shown and all(seen == shown for seen in named[0.0, 0.0]), "a perfect one sees the same each time"
    of_one = shown[0]
    seldom = np.mean([of_one in seen for seen in named[0.3, 0.0]])
    assert seldom == pytest.approx(0.7, abs=0.08) and all(set(seen) <= set(shown) for seen in named[0.3, 0.0])
    wrong = np.mean([set(seen) != set(shown) for seen in named[0.0, 0.2]])
    assert 0.1 < wrong < 1 - 0.8 ** (len(shown) + 1), "under the name of another object of the episode"


def test_the_error_of_the_detector_is_that_of_doors_too(envs):
    sim, _ = begin(envs["set_table"])
    before_the_fridge(sim, 0.4)
    spread = {}
    for noise_m in (0.0, 0.03):
        belief, believed = Belief.begin(sim, 12, noise_m, np.random.default_rng(3)), []
        for _ in range(20):
            belief.look()
            believed.append(belief.joint_position("fridge_door"))
        spread[noise_m] = np.std(believed)
        assert np.mean(believed) == pytest.approx(0.4, abs=0.06)
    assert spread[0.0] < 1e-9 and 0.02 < spread[0.03] < 0.15, "the handle is half a metre from the hinge"


def test_how_fast_a_door_moves_is_worked_out_from_where_it_was_seen(envs):
    sim, belief = begin(envs["set_table"])
    before_the_fridge(sim, 0.5)
    for step in range(6 * LOOK_EVERY):
        set_joint(sim, "fridge_door", 0.5 + 0.6 * step / 30)  # 0.6 rad/s
        belief.step()
    assert belief.joint_velocity("fridge_door") == pytest.approx(0.6, abs=0.35)
    for _ in range(2 * LOOK_EVERY):
        belief.step()
    assert abs(belief.joint_velocity("fridge_door")) < 0.1
    belief._open("drawer_1", 0.1)
    belief.steps += 2
    belief._open("drawer_1", 0.12)
    assert belief.joint_velocity("drawer_1") == pytest.approx(0.3)
    belief.steps += LOOK_EVERY + 1
    assert belief.joint_velocity("drawer_1") == 0.0, "nobody has seen it since"


def test_habitat_s_owner_image_which_is_made_of_boxes_agrees_with_the_rasteriser_s(envs):
    from rearrange.habitat.segmentation import Box, owners_in, part_box

    for name, episode in (("tidy_house", 1), ("set_table", 2)):
        sim, belief = begin(envs[name], episode)
        index = list(sim.episode.targets)[0]
        put(sim, index, *sim.from_base((1.0, 0.2, 0.9)))
        if "set" in name:
            body = belief._body("drawer_1")
            sim.set_joint("drawer_1", 0.3)
            sim.place_robot(*from_frame(1.3, 0.0, (*body.position_m[:2], body.yaw_rad)), body.yaw_rad + math.pi)
        shapes = []
        for i in range(len(sim.episode.objects)):
            middle, turn = np.split(np.array(sim.object_pose(i)), [3])
            shapes.append((i, Box(middle, quat_matrix(turn), np.array(sim.object_half_extents(i)))))
        for k, joint in enumerate(sim.home.handles):
            shapes += [(FIRST_JOINT - k, part_box(part, *sim.body_frame(joint))) for part in belief._body(joint).parts]
        depth, owners = sim.owner_image(IMAGE_SIZE)
        metres, boxes = owners_in(sim.depth_image(IMAGE_SIZE)[:, :, 0], sim.base_pose, shapes)
        np.testing.assert_allclose(depth, metres, rtol=1e-5)
        own = owners != NOTHING
        assert own.sum() > 60 and (boxes[own] == owners[own]).mean() > 0.97
        assert (boxes[~own] == NOTHING).mean() > 0.98, "what furniture hides is not seen"
