"""Laws of two fingers: what they hold by friction, and what they do not hold."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest

from planner.scenarios import load_scenario
from rearrange.command_line.cli import main
from rearrange.env.scenario_episodes import Scenario, scenario_episode
from rearrange.home.apartments.objects import OBJECTS
from rearrange.home.episodes.generator import generate_episode
from rearrange.home.episodes.scene_check import Unsolvable, check_episode
from rearrange.home.errors import UserError
from rearrange.home.robot import robot_named
from rearrange.home.settings.environment import SimulatorConfig
from rearrange.home.simulation.mujoco.simulator import MujocoSimulator
from skills import make_env
from tests.rearrange.grip import NAMES, measure, put_in_hand, simulator, taken

HEAVY = "004_sugar_box"
KITCHEN = Path(__file__).resolve().parents[2] / "examples" / "kitchen.xml"


@pytest.fixture(scope="module")
def sim() -> MujocoSimulator:
    return simulator()


def pads(sim: MujocoSimulator) -> list[int]:
    return [sim.model.geom(name).id for name in sim.robot.hand.pads]


def gap_m(sim: MujocoSimulator) -> float:
    """Between the fingers."""
    return sim.robot.hand.opening_m - sum(sim.data.joint(name).qpos[0] for name in sim.robot.hand.fingers)


def test_it_takes_what_fits_between_its_fingers(sim):
    assert set(NAMES) - set(taken(sim)) == {"002_master_chef_can", "024_bowl"}
    assert all(robot_named().hand.takes(sim.object_half_extents(i)) for i in range(len(NAMES))), "suction has no limit"


@pytest.mark.parametrize(("name", "mass_kg"), [("007_tuna_fish_can", 0.05), (HEAVY, 0.7), ("013_apple", 0.4)])
def test_it_holds_what_neither_creeps_nor_sinks_in(sim, name, mass_kg):
    """The whole table is in docs/findings/fingers.md."""
    still, moved = (measure(sim, name, seconds=3.0, moves=moves, mass_kg=mass_kg) for moves in (False, True))
    assert still.lost_s is None and still.slip_mm < 0.3 and still.turn_deg < 0.5 and still.depth_mm < 0.6
    assert moved.lost_s is None and moved.slip_mm < 2.0 and moved.turn_deg < 3.0 and moved.depth_mm < 2.0


def test_nothing_creeps_outwards_while_the_base_turns(sim):
    """The integrator moves a free body straight on in a substep: without care, 20 mm in two turns."""
    held = put_in_hand(sim, HEAVY)
    for _ in range(15):
        sim.step(grip=1.0)
    before = np.array(sim.to_ee(sim.object_position(held)))
    turned = 0.0
    while turned < 4.0 * math.pi:
        sim.step(grip=1.0, base=[0.0, 0.9])
        turned += 0.9 * sim.config.base_turn_rad_s / 30.0
    assert sim.held == held and np.abs(np.array(sim.to_ee(sim.object_position(held))) - before).max() < 1.5e-3


def test_friction_alone_holds(sim):
    held = put_in_hand(sim, HEAVY)
    for _ in range(20):
        sim.step(grip=1.0)
    height = sim.object_position(held)[2]
    friction = sim.model.geom_friction[pads(sim)].copy()
    sim.model.geom_friction[pads(sim)] = 0.0
    broken = []
    for _ in range(20):
        sim.step(grip=1.0)
        broken.append(sim.hold_broken)
    sim.model.geom_friction[pads(sim)] = friction
    assert sim.held is None and sum(broken) == 1 and not sim.released
    assert sim.object_position(held)[2] < height - 0.3, "it fell, held by nothing else"


def test_one_finger_alone_holds_nothing(sim):
    held = put_in_hand(sim, HEAVY)
    right = pads(sim)[1]
    bits = int(sim.model.geom_contype[right]), int(sim.model.geom_conaffinity[right])
    for _ in range(10):
        sim.step(grip=1.0)
    assert sim.held == held
    sim.model.geom_contype[right] = sim.model.geom_conaffinity[right] = 0
    for _ in range(20):
        sim.step(grip=1.0)
    sim.model.geom_contype[right], sim.model.geom_conaffinity[right] = bits
    assert sim.held is None


def test_a_closed_hand_opens_at_its_speed_and_holds_nothing(sim):
    sim.reset(sim.episode)
    sim.place_robot(-5.0, -5.0, 0.0)
    hand = sim.robot.hand
    steps = math.ceil(hand.opening_m / 2.0 / hand.speed_m_s * 30.0)
    assert gap_m(sim) == pytest.approx(hand.opening_m, abs=1e-3)
    for _ in range(steps + 10):
        sim.step(grip=1.0)
        assert sim.held is None and not sim.is_holding
    assert gap_m(sim) < 1e-3
    for k in range(steps + 10):
        sim.step(grip=-1.0)
        assert not sim.released and (k > steps // 2 or gap_m(sim) < 0.6 * hand.opening_m)
    assert gap_m(sim) == pytest.approx(hand.opening_m, abs=1e-3)


def test_fingers_meet_in_the_middle_and_press_alike(sim):
    put_in_hand(sim, HEAVY)
    for _ in range(20):
        sim.step(grip=1.0)
    left, right = (float(sim.data.joint(name).qpos[0]) for name in sim.robot.hand.fingers)
    assert abs(left - right) < 2e-4 and gap_m(sim) == pytest.approx(2.0 * OBJECTS[HEAVY].half_size_m[0], abs=1e-3)
    normal = {pad: 0.0 for pad in pads(sim)}
    force = np.zeros(6)
    for k, contact in enumerate(sim.data.contact):
        for pad in set(contact.geom.tolist()) & set(normal):
            mujoco.mj_contactForce(sim.model, sim.data, k, force)
            normal[pad] += force[0]
    assert list(normal.values()) == pytest.approx([60.0, 60.0], rel=0.05), "newtons, of its published force"


def test_let_go_of_what_was_held_and_it_falls(sim):
    held = put_in_hand(sim, "013_apple")
    sim.step(grip=1.0)
    assert sim.held == held
    sim.step(grip=-1.0)
    assert sim.released and sim.held is None and not sim.hold_broken
    sim.step(grip=-1.0)
    assert not sim.released


def test_what_is_too_wide_is_said_and_left_out():
    env = make_env("pick", hand="fingers", depth_size=0, split="val", num_layouts=4)
    wide = next(k for k in range(40) if generate_episode("pick", "val", k, 4).objects[
        next(iter(generate_episode("pick", "val", k, 4).targets))] == "024_bowl")
    _, info = env.reset(options={"episode": wide})
    assert info["skipped_episodes"] > 0 and env.sim.robot.hand.takes(env.sim.object_half_extents(env.skill.target))
    sim, episode = env.sim, generate_episode("pick", "val", wide, 4)
    with pytest.raises(Unsolvable, match="024_bowl is 159 mm wide, and the fingers open 100 mm"):
        check_episode(sim, replace(episode, id="bowl"))
    check_episode(MujocoSimulator(SimulatorConfig()), episode)


def test_scenarios_move_what_the_hand_takes():
    tidy, hand = load_scenario("tidy_house").scenario, robot_named("fetch", "fingers").hand
    for index in range(6):
        usual = scenario_episode(tidy, "val", index, 4)
        drawn = scenario_episode(tidy, "val", index, 4, hand="fingers")
        moved = [OBJECTS[drawn.objects[target]] for target in drawn.targets]
        assert all(hand.takes(model.half_extents_m) for model in moved)
        assert usual == scenario_episode(tidy, "val", index, 4, "fetch", "suction")
    with pytest.raises(UserError, match="set_table is not possible in .* 024_bowl is 159 mm wide, and the fingers"):
        scenario_episode(load_scenario("set_table").scenario, "val", 0, 4, hand="fingers")


def test_a_scenario_that_moves_more_than_the_hand_takes_is_refused_with_the_reason():
    many = Scenario("many", objects=("any",) * 15, starts=("open",) * 15, goals=("open",) * 15)
    with pytest.raises(UserError, match="has 14 objects that the hand takes .*, and 15 times any is asked for"):
        scenario_episode(many, "val", 0, 1, hand="fingers")


def test_scenes_check_says_for_a_hand_what_its_robot_does_not_move(capsys):
    for hand, answer in (("suction", 0), ("fingers", 1)):
        main(["scenes", "check", f"dataset={KITCHEN}", f"hand={hand}"])
        said = capsys.readouterr().out
        assert said.count("the scene has what the hand does not take: 024_bowl is 159 mm wide, and the") == answer, said
    assert main(["scenes", "check", f"dataset={KITCHEN}", "hand=hook"]) == 2
    assert "hand=hook is not a hand of robot=fetch; it has suction, fingers." in capsys.readouterr().err


def test_an_object_is_as_wide_in_the_list_as_in_the_home(sim):
    """By the list scenarios draw, by the home episodes are checked."""
    sim.reset(generate_episode("pick", "val", 0, 4))
    for i, name in enumerate(sim.episode.objects):
        assert sim.object_half_extents(i) == pytest.approx(OBJECTS[name].half_extents_m, abs=1e-6)
