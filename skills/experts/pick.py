"""The expert of Pick: stand and reach in, touch, pull back, rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rearrange.env import ACTION_SIZES
from skills.experts.clearance import Clearance
from skills.experts.motion import Pose2, servo
from skills.experts.reach import FREE_M, Reach, _back, plan_reach, rest_posture, spread
from skills.experts.trajectory import Follower, Motion, move, variants
from skills.experts.motion import ik, arm_model
from rearrange.contacts import NO_OWNER

if TYPE_CHECKING:
    from rearrange.simulator import Simulator
    from skills.skill import Skill


class PickExpert:
    """Picks the object `skill.target`."""

    def __init__(self, sim: Simulator, skill: Skill) -> None:
        self.sim, self.skill = sim, skill
        self._may_drive = "base" in skill.action_parts
        self._follower: Follower | None = None
        self._leaving = False
        self._pressed = self._patience = 0
        self.reach: Reach | None = None
        self.note = ""

    def act(self) -> np.ndarray:
        """The action of the next step, in the skill's order."""
        return assemble(self.skill, self.command())

    def command(self) -> dict[str, np.ndarray | tuple | float]:
        """The parts of the next action by name."""
        sim = self.sim
        if sim.held == self.skill.target:
            if not self._leaving or self._follower.stuck:
                self._leaving, self._follower = True, Follower(sim, plan_exit(sim, self._may_drive, self.skill.config.rest_position_m))
        elif self._patience == 0 and (self._follower is None or self._follower.stuck):
            self._start_reach()
        self._patience = max(0, self._patience - 1)
        arm, base = np.zeros(7), (0.0, 0.0)
        if self._follower is not None and not self._follower.done:
            arm, base = self._follower.command()
        elif self._leaving:
            arm = servo(sim, np.array(sim.from_base(self.skill.config.rest_position_m)), 0.02)
        elif self._follower is not None:
            arm = servo(sim, np.array(sim.object_position(self.skill.target)), 0.01)
            self._pressed += 1
            if self._pressed > 20:
                self._follower, self._pressed = None, 0
        return {"arm": arm, "grip": 1.0, "base": base}

    def _start_reach(self) -> None:
        sim = self.sim
        slot = sim.slot_of(self.skill.target)
        aim = surface_aim(sim, self.skill.target)
        self.reach = plan_reach(sim, Clearance(sim), aim, touching=slot, may_drive=self._may_drive)
        if self.reach is None:
            self.note = "no plan"
            self._patience = 60
        self._follower = None if self.reach is None else Follower(sim, self.reach.motion)


def assemble(skill: Skill, command: dict) -> np.ndarray:
    """An action from its parts, in the order of the skill."""
    parts = [np.atleast_1d(command[name]) for name in ACTION_SIZES if name in skill.action_parts]
    return np.clip(np.concatenate(parts), -1.0, 1.0).astype(np.float32)


def surface_aim(sim: Simulator, i: int, into_m: float = 0.004):
    """Aims at the place where a straight line to the middle of object i meets its surface, `into_m` inside it."""
    position = np.array(sim.object_position(i))
    rotation = sim.data.body(f"object_{sim.slot_of(i)}").xmat.reshape(3, 3).copy()
    geom = sim.model.geom(f"object_{sim.slot_of(i)}")
    size, kind = sim.model.geom_size[geom.id].copy(), int(sim.model.geom_type[geom.id])

    def aim(axis: np.ndarray) -> np.ndarray:
        local = np.abs(rotation.T @ axis) + 1e-9
        if kind == 2:  # sphere
            depth = size[0]
        elif kind == 5:  # cylinder
            depth = min(size[0] / float(np.hypot(local[0], local[1])), size[1] / local[2])
        else:
            depth = float((size / local).min())
        return position - (depth - into_m) * axis

    return aim


def plan_exit(sim: Simulator, may_drive: bool, rest_m: tuple[float, float, float]) -> Motion:
    """The quickest free way from what was just taken (or put down) to rest: lift, drive back, bring the arm in."""
    clearance = Clearance(sim)
    start = (sim.base_pose, sim.arm_positions().copy())
    motions = []
    for lift, up in _lifts(start[1], rest_m):
        first = move(sim.config, start, (start[0], up)) if lift else None
        rest = rest_posture(up, rest_m)
        for back in ((0.0, 0.15, 0.3, 0.5) if may_drive else (0.0,)):
            away = _back(start[0], back)
            ways = list(variants(sim.config, (start[0], up), (away, rest)))
            if back:
                ways.append(move(sim.config, (start[0], up), (away, up)).then(move(sim.config, (away, up), (away, rest))))
            motions += [way if first is None else first.then(way) for way in ways]
    motions.sort(key=len)
    for motion in motions:
        if _exit_gap(clearance, motion, start, FREE_M / 2) >= FREE_M / 2:
            return motion
    return max(motions[:8], key=lambda motion: _exit_gap(clearance, motion, start, -1.0))


def _lifts(arm_rad: np.ndarray, rest_m: tuple[float, float, float]) -> list[tuple[float, np.ndarray]]:
    """Heights (m) and postures straight above the present one: on the way to rest, and with the hand kept as it is."""
    tip, matrix = arm_model().hand(arm_rad)
    rest = rest_posture(arm_rad, rest_m)
    found = [(0.0, arm_rad)]
    for lift in (0.05, 0.1, 0.2, 0.3):
        near = arm_rad + (rest - arm_rad) * min(1.0, lift / max(0.05, rest_m[2] - tip[2]))
        for axis in (None, matrix[:, 0]):
            up = ik(tip + (0, 0, lift), axis, arm_rad, near_rad=near, tolerance_m=0.01, tolerance_rad=0.2)
            if up is not None:
                found.append((lift, up))
    return found


def _exit_gap(clearance: Clearance, motion: Motion, start: tuple[Pose2, np.ndarray], enough_m: float) -> float:
    """Smallest distance on the way out, not counting what is there at the start and in the first centimetres.

    The search ends at a distance below `enough_m`.
    """
    now, least = clearance.distance(*start), 1.0
    for i in spread(len(motion)):
        gap = clearance.distance(motion.base[i], motion.arm[i])
        if i >= 10 or gap < now - 0.003:
            least = min(least, gap)
            if least < enough_m:
                break
    return least
