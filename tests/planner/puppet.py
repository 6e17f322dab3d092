"""Stands in for skills where what comes before and after them is tested: brings about what a skill promises at once, by
setting the state of the simulator. `Puppet.fails` names the steps that go wrong instead.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

import mujoco
import numpy as np

from planner.execute import Executor, Report
from planner.rules import Rules
from planner.scenario_env import ScenarioEnv
from planner.scenarios import load_scenario
from rearrange.env.home_env import HomeSettings
from rearrange.home.action_layout import action_size
from rearrange.home.apartments.containers import inside
from rearrange.home.apartments.episodes import Episode
from rearrange.home.robot.fetch import ARM, FETCH
from skills import SKILLS, make_skill
from skills.experts.arm_model import arm_model

REST_RAD = tuple(arm_model(FETCH).ik(np.array(ARM.rest_m)))  # the hand at rest
AWAY_RAD = tuple(a + (0.9 if k == 3 else 0.0) for k, a in enumerate(REST_RAD))

class Puppet:
    """An expert that needs no more than a few steps."""

    fails: dict[int, str] = {}  # how many skills were begun before it -> "nothing", "wrong_object" or "elsewhere"
    begun = 0

    def __init__(self, sim, skill) -> None:
        self.sim, self.skill, self.count = sim, skill, 0
        self.failure = Puppet.fails.get(Puppet.begun)
        Puppet.begun += 1

    def act(self) -> np.ndarray:
        self.count += 1
        sim, skill = self.sim, self.skill
        if self.failure != "nothing":
            getattr(self, skill.name)(sim, skill)
        size = action_size(FETCH, skill.action_parts)
        action = np.zeros(size, np.float32)
        if skill.name == "navigate":
            action[-1] = 1.0 if self.failure != "nothing" else -1.0
        elif "grip" in skill.action_parts:
            action[7] = 1.0 if sim.held is not None else -1.0
        return action

    def navigate(self, sim, skill) -> None:
        self._put(*skill.goal_pose, ARM.start)

    def _put(self, x: float, y: float, yaw: float, arm: tuple[float, ...]) -> None:
        """Move the robot with what it holds."""
        held = self.sim.held
        self.sim.place_robot(x, y, yaw, arm)
        if held is not None:
            self.sim.put_in_hand(held)

    def pick(self, sim, skill) -> None:
        self._put(*sim.episode.robot_start, REST_RAD)  # where there is room
        if sim.held is None:
            wrong = next(i for i in range(len(sim.episode.objects)) if i not in sim.episode.targets)
            sim.put_in_hand(wrong if self.failure == "wrong_object" else skill.target)

    def place(self, sim, skill) -> None:
        self._put(*sim.episode.robot_start, REST_RAD)  # where there is room
        if sim.held is not None:
            held = sim.held
            sim.hand.release()
            sim._read_hold()
            elsewhere = self.failure == "elsewhere"
            sim._set_object(held, sim.episode.start_poses[held] if elsewhere else skill.arguments.goal)
            mujoco.mj_forward(sim.model, sim.data)  # or the hold would still push it in the next step

    def open_cabinet(self, sim, skill) -> None:
        self._open(sim, skill, 0.45)

    def open_fridge(self, sim, skill) -> None:
        self._open(sim, skill, 1.3)

    def close_fridge(self, sim, skill) -> None:
        self._open(sim, skill, 0.0)

    close_cabinet = close_fridge

    def _open(self, sim, skill, opening: float) -> None:
        """The joint moves at once, with what lies in the drawer; the hand leaves its place and comes back."""
        joint = skill.target_handle
        by = opening - sim.joint_position(joint)
        if joint.startswith("drawer") and abs(by) > 0.01:
            x, y, yaw = next(body for body in sim.home.layout.bodies if body.name == joint).pose(0.0)
            for i in range(len(sim.episode.objects)):
                pose = sim.object_pose(i)
                if inside(sim, pose[:3], joint):
                    sim._set_object(i, (pose[0] + by * math.cos(yaw), pose[1] + by * math.sin(yaw), *pose[2:]))
        sim.set_joint(joint, opening)
        sim.place_robot(*sim.episode.robot_start, AWAY_RAD if self.count == 1 else REST_RAD)


def scenario_env(which, depth_size: int = 0, **home: Any) -> ScenarioEnv:
    return ScenarioEnv(load_scenario(which), HomeSettings("val", depth_size=depth_size, **home))


def executor(env: ScenarioEnv, rules: Rules = Rules(), puppets: type[Puppet] | None = Puppet,
             without: Collection[str] = (), fails: Mapping[int, str] | None = None, **more: Any) -> Executor:
    """What carries out plans with puppets, or None for policies."""
    Puppet.fails, Puppet.begun = dict(fails or {}), 0
    skills = {name: make_skill(name) for name in SKILLS if name not in without}
    return Executor(env, skills, dict.fromkeys(skills, puppets) if puppets else {}, rules, **more)


def begun(*args: Any, **more: Any) -> Executor:
    """An executor whose first episode has begun."""
    run = executor(*args, **more)
    run.reset(0)
    return run


def run_episode(run: Executor, episode: int | Episode, policies: Mapping[str, Any] | None = None) -> Report:
    """One episode from beginning to end. `policies`: skill -> callable (observation, first) -> action, for the skills
    that no expert runs.
    """
    run.reset(episode)
    return finish(run, policies)


def finish(run: Executor, policies: Mapping[str, Any] | None = None) -> Report:
    """The rest of an episode."""
    while not run.done:
        request = run.request
        run.advance(None if request is None else policies[request.skill](request.observation, request.first))
    return run.report
