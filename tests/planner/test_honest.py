"""With `planner=honest` no decision, no argument of a skill, and no reading of drawers and doors comes from the
objects, drawers and doors of the simulator: whole plans go alike when it answers every question about these wrongly.
"""

import math
from dataclasses import replace

import numpy as np
import pytest

from planner.arguments import StepArguments
from rearrange.home.simulation.observations import OBSERVATIONS
from tests.planner.puppet import Puppet, begun, executor, finish, scenario_env
from tests.planner.test_execute import HONEST

PLANS = {
    "all goes well": ("set_table", {}),
    "in the fridge": ("prepare_groceries", {}),
    "a pick and a place fail": ("tidy_house", {1: "nothing", 7: "elsewhere"}),
    "the wrong object is picked": ("tidy_house", {1: "wrong_object"}),
    "nothing opens at first": ("set_table", {1: "nothing", 4: "nothing"}),
    "what was to be looked at is not found at once": ("tidy_house", {}),
    "a hand that pushes a door shut stays where it began": ("set_table", {}),
}


@pytest.fixture(scope="module")
def envs():
    return {name: scenario_env(name) for name in {name for name, _ in PLANS.values()}}


class Lying:
    """A simulator that tells a robot about itself and its camera alone; of all else it tells what is not so."""

    def __init__(self, sim):
        self.real = sim

    def __getattr__(self, name):
        return getattr(self.real, name)

    def object_position(self, i):
        x, y, z = self.real.object_position(i)
        return x + 0.4, y - 0.3, z

    def object_pose(self, i):
        return (*self.object_position(i), 1.0, 0.0, 0.0, 0.0)

    def handle_position(self, name):
        x, y, z = self.real.handle_position(name)
        return x - 0.3, y + 0.4, z

    def joint_position(self, name):
        return 0.21 if self.real.joint_position(name) < 0.1 else 0.0

    def joint_velocity(self, name):
        return 1.0

    def touched_objects(self, *_):
        raise AssertionError("contacts were read from the simulator")

    cup_touches = slot_of = body_frame = touched_objects

    @property
    def held(self):
        return None if self.real.held is not None else 0

    @property
    def held_handle(self):
        return None


def story(env, name, monkeypatch, sim):
    """What was decided and told in an episode whose executor asks `sim`; experts and physics know how things are."""
    told, fails = [], PLANS[name][1]

    class Watched(Puppet):
        def __init__(self, _, skill):
            super().__init__(env.sim, skill)
            if "looked" in name and run._is_look(run.steps[run.at]):
                self.failure = "nothing"
            if "stays" in name and skill.closes:
                self.count = 1  # the hand does not leave its place first
            arguments = skill.arguments
            told.append((skill.name, arguments))
            if skill.about == "handle":
                told.append([np.ravel(OBSERVATIONS[key][1](env.scene, skill)).tolist()
                             for key in ("marker_rel_pos", "marker_state")])

        def place(self, sim, skill):
            held = sim.held
            super().place(sim, skill)
            if "looked" in name and held is not None:  # as if it had been seen to stand there
                run.belief.things[held].position = tuple(skill.arguments.goal[:3])

    def find(self, *words):  # where the next skill would really start is for the judge
        asked, self.sim = self.sim, env.sim
        try:
            return find_goal_pose(self, *words)
        finally:
            self.sim = asked

    find_goal_pose = StepArguments._find_goal_pose
    with monkeypatch.context() as patch:
        patch.setattr(StepArguments, "_find_goal_pose", find)
        rules = replace(HONEST, max_steps={"close_cabinet": 30, "close_fridge": 30})
        run = executor(env, rules, Watched, fails=fails)
        run.sim = sim
        run.reset(0)
        finish(run)
    return told, [(record.operator, record.steps, record.ended) for record in run.report.records], run.report


@pytest.mark.parametrize("name", PLANS)
def test_no_answer_of_the_simulator_about_things_changes_a_plan(envs, name, monkeypatch):
    env = envs[PLANS[name][0]]
    told, records, report = story(env, name, monkeypatch, env.sim)
    assert len(records) > 10 and (report.end == "success" or "stays" in name)
    lied_to, recorded, lied_report = story(env, name, monkeypatch, Lying(env.sim))
    assert lied_to == told and recorded == records and lied_report.end == report.end


def test_what_policies_see_of_a_door_is_what_the_robot_believes(envs, monkeypatch):
    env = envs["set_table"]
    run = begun(env, HONEST)
    joint = "fridge_door"
    skill = run.skills["open_fridge"]
    run.belief.openings[joint] = 0.3
    monkeypatch.setattr(type(skill), "target_handle", joint)
    x, y, z = env.sim.to_ee(run.belief.handle_position(joint))
    assert OBSERVATIONS["marker_state"][1](env.scene, skill) == (0.3, 0.0)
    assert OBSERVATIONS["marker_rel_pos"][1](env.scene, skill) == pytest.approx((x, y, z))
    assert math.dist((x, y, z), env.sim.to_ee(env.sim.handle_position(joint))) > 0.1
    env.reset(options={"episode": 0})
    assert env.scene.known is env.sim, "a belief ends with its episode"
