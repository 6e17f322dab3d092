"""The way out: from where something was taken or put down, back to rest."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np

from rearrange.home.simulation.simulator_interface import Simulator
from skills.experts.arm_model import ArmModel, arm_model
from skills.experts.clearance import MARGIN_M, Clearance
from skills.experts.reach_plan import spread
from skills.experts.trajectory import ARM_LAG, Motion, back_from, move, variants


@dataclass(frozen=True)
class _Rule:
    """What a way out has to keep. Of several rules, the first that some way keeps decides."""

    room_m: float  # from everything, as the load swings a little; less where there is no room for that
    end_m: float = 0.0  # at its end: from there, in a plan, the arm goes to its start posture, and the base drives
    lifts: bool = True  # it leaves what is near at the start, and does not slide along it: that would fall over


_RULES = (_Rule(0.014), _Rule(0.005), _Rule(0.014, lifts=False), _Rule(0.005, lifts=False))
_IN_A_PLAN = tuple(replace(rule, end_m=0.029) for rule in _RULES) + _RULES
_FIRST_STEPS, _AWAY_M = 10, 0.001  # of a way out, and how much farther away it is in each of them
_WORSE_STEPS = 40.0  # what another posture at rest than the wanted one counts


def plan_exit(sim: Simulator, may_drive: bool, rest_m: tuple[float, float, float], attempt: int = 1,
              last_rad: np.ndarray | None = None, clearance: Clearance | None = None) -> Motion:
    """The quickest free way from what was just taken or put down to rest: lift, drive back, bring the arm in.

    Args:
        rest_m: where the hand rests, base frame.
        attempt: number of the attempt, from 1; after one that got stuck the next one lifts first.
        last_rad: posture at rest that is better than the nearest one.
        clearance: what knows the distances to everything; None = the simulator.
    """
    clearance = clearance or Clearance(sim)
    model, start = arm_model(sim.robot), (sim.base_pose, sim.arm_positions().copy())
    found: list[tuple[float, Motion]] = []
    for lift, up in _lifts(model, start[1], rest_m):
        if lift == 0.0 and attempt > 1:
            continue
        first = move(sim, start, (start[0], up)) if lift else None
        ends = [(model.rest_posture(up, rest_m), 0.0 if last_rad is None else _WORSE_STEPS)]
        ends += [] if last_rad is None else [(last_rad, 0.0)]
        for (rest, worse), back in itertools.product(ends, (0.0, 0.15, 0.3, 0.5) if may_drive else (0.0,)):
            away = back_from(start[0], back)
            ways = list(variants(sim, (start[0], up), (away, rest)))
            if back:
                drive = move(sim, (start[0], up), (away, up))
                ways.append(drive.then(move(sim, (away, up), (away, rest))))
            found += [(worse, way if first is None else first.then(way)) for way in ways]
    motions = [motion for _, motion in sorted(found, key=lambda way: way[0] + len(way[1]))]

    @cache  # asked again by the next rule
    def gap(k: int, i: int) -> float:
        return clearance.distance(*motions[k].real(i))

    @cache
    def end_gap(k: int) -> float:
        return min(clearance.distance(motions[k].base[-1], arm) for arm in (motions[k].arm[-1], model.start))

    def exit_gap(k: int, enough_m: float, lifts: bool = False) -> float:
        return _exit_gap(partial(gap, k), len(motions[k]), now_m, enough_m, lifts)

    now_m = clearance.distance(*start)
    for rule in _RULES if last_rad is None else _IN_A_PLAN:
        for k, motion in enumerate(motions):
            if rule.end_m and end_gap(k) < rule.end_m:
                continue
            if exit_gap(k, rule.room_m, rule.lifts) >= rule.room_m:
                return motion
    return motions[max(range(min(8, len(motions))), key=lambda k: exit_gap(k, -1.0))]


def _lifts(arm: ArmModel, arm_rad: np.ndarray,
           rest_m: tuple[float, float, float]) -> list[tuple[float, np.ndarray]]:
    """Ways (m) straight up, with and without a turn of the hand, or straight back, and the postures at their ends."""
    tip, matrix = arm.hand(arm_rad)
    rest = arm.rest_posture(arm_rad, rest_m)
    found = [(0.0, arm_rad)]
    across = matrix[:, 1] if arm.robot.hand.fingers else None  # they do not turn about what they have just let go
    for lift in (0.05, 0.1, 0.2, 0.3):
        near = arm_rad + (rest - arm_rad) * min(1.0, lift / max(0.05, rest_m[2] - tip[2]))
        for axis in (None, matrix[:, 0]):
            up = arm.ik(tip + (0, 0, lift), axis, arm_rad, near=near, tolerance_m=0.01, tolerance_rad=0.2,
                        across=across)
            if up is not None:
                found.append((lift, up))
    if not arm.robot.arm.reaches_ahead:
        found += [(float(np.linalg.norm(arm.hand(drawn)[0] - tip)), drawn) for drawn in arm.drawn_in(arm_rad)]
    for back in (0.05, 0.1):
        away = arm.ik(tip - back * matrix[:, 0], matrix[:, 0], arm_rad, tolerance_m=0.01, tolerance_rad=0.2,
                      across=across)
        if away is not None:
            found.append((back, away))
    return found


def _exit_gap(gap: Callable[[int], float], steps: int, now_m: float, enough_m: float, lifts: bool) -> float:
    """Smallest distance on the way out, but for the room that there is at the start and in the first centimetres.

    Args:
        gap: gives the distance (m) at a step of the way.
        now_m: the distance at its start.
        enough_m: the search ends at a distance below this.
        lifts: there has to be more room with every step.
    """
    least = 1.0
    for i in spread(steps):
        grown = now_m + _AWAY_M * (i - ARM_LAG) if lifts else now_m - 0.003
        if i >= _FIRST_STEPS or gap(i) < min(grown, MARGIN_M):
            least = min(least, gap(i))
            if least < enough_m:
                break
    return least
