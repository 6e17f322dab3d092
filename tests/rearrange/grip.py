"""How well the Fetch's fingers hold: slip and penetration of each object, at rest and on the move.

    python -m tests.rearrange.grip
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from itertools import product

import mujoco
import numpy as np

from rearrange.home.apartments.objects import OBJECTS
from rearrange.home.episodes.generator import generate_episode
from rearrange.home.settings.environment import SimulatorConfig
from rearrange.home.simulation.mujoco.simulator import MujocoSimulator
from rearrange.home.simulation.simulator_interface import STEP_S

NAMES = tuple(OBJECTS)
CLOSING_STEPS = 15  # after which the fingers press with all their force
OUTSIDE = (-5.0, -5.0, 0.0)  # of the home, where nothing is near


@dataclass(frozen=True)
class Grip:
    """Greatest slip, turn and penetration, and when it was lost."""

    slip_mm: float
    turn_deg: float
    depth_mm: float
    lost_s: float | None


def simulator(hand: str = "fingers") -> MujocoSimulator:
    """The robot outside a home, with all objects parked in a row."""
    sim = MujocoSimulator(SimulatorConfig(hand=hand))
    poses = tuple((-10.0 - k, -10.0, OBJECTS[name].half_height_m, 1.0, 0.0, 0.0, 0.0) for k, name in enumerate(NAMES))
    sim.reset(replace(generate_episode("pick", "val", 1), objects=NAMES, start_poses=poses))
    return sim


def taken(sim: MujocoSimulator) -> list[str]:
    """Names of the objects that the hand takes."""
    return [name for i, name in enumerate(NAMES) if sim.robot.hand.takes(sim.object_half_extents(i))]


def put_in_hand(sim: MujocoSimulator, name: str, mass_kg: float | None = None) -> int:
    """Start anew with an object, of another mass, between the closed fingers; returns its number."""
    i = NAMES.index(name)
    sim.reset(sim.episode)
    body = sim._bodies[i]
    share = 1.0 if mass_kg is None else mass_kg / sim.home.model.body_mass[body]
    sim.model.body_mass[body] = share * sim.home.model.body_mass[body]
    sim.model.body_inertia[body] = share * sim.home.model.body_inertia[body]
    mujoco.mj_setConst(sim.model, mujoco.MjData(sim.model))  # what follows from a mass
    sim.place_robot(*OUTSIDE)
    sim.put_in_hand(i)
    return i


def moving(k: int) -> dict[str, list[float]]:
    """Commands of step k that swing the arm and drive and turn the base."""
    return {"arm": [0.9 * math.sin(0.12 * k + joint) for joint in range(7)],
            "base": [0.5 * math.sin(0.2 * k), 0.8 * math.sin(0.13 * k)]}


def measure(sim: MujocoSimulator, name: str, seconds: float, moves: bool, mass_kg: float | None = None) -> Grip:
    """Hold an object with the arm in its start posture, hand down. Slip counts from when the fingers press fully."""
    i = put_in_hand(sim, name, mass_kg)
    for _ in range(CLOSING_STEPS):
        sim.step(grip=1.0)
    body, gripper = sim._bodies[i], sim.model.body(sim.robot.hand.body).id
    pads = {sim.model.geom(pad).id for pad in sim.robot.hand.pads}
    first, slip, turn, depth, steps = _in_hand(sim, body, gripper), 0.0, 0.0, 0.0, round(seconds / STEP_S)
    for k in range(steps):
        sim.step(grip=1.0, **(moving(k) if moves else {}))
        if sim.held != i:
            return Grip(1e3 * slip, turn, 1e3 * depth, k * STEP_S)
        place, quat = _in_hand(sim, body, gripper)
        slip = max(slip, math.dist(place, first[0]))
        turn = max(turn, math.degrees(2.0 * math.acos(min(1.0, abs(float(quat @ first[1]))))))
        depth = max([depth, *(-c.dist for c in sim.data.contact if pads & set(c.geom.tolist()))])
    return Grip(1e3 * slip, turn, 1e3 * depth, None)


def _in_hand(sim: MujocoSimulator, body: int, gripper: int) -> tuple[np.ndarray, np.ndarray]:
    """Place and quaternion of a body in the frame of the gripper."""
    data, inverse, quat = sim.data, np.zeros(4), np.zeros(4)
    mujoco.mju_negQuat(inverse, data.xquat[gripper])
    mujoco.mju_mulQuat(quat, inverse, data.xquat[body])
    return data.xmat[gripper].reshape(3, 3).T @ (data.xpos[body] - data.xpos[gripper]), quat


SOLVERS = {"a home's own": ("PYRAMIDAL", 1.0, 0), "no slip, 1 iteration": ("PYRAMIDAL", 1.0, 1),
           "no slip, 3 iterations": ("PYRAMIDAL", 1.0, 3), "elliptic": ("ELLIPTIC", 1.0, 0),
           "elliptic, impratio 10": ("ELLIPTIC", 10.0, 0), "elliptic, impratio 50": ("ELLIPTIC", 50.0, 0)}
"""Cone, impratio and noslip_iterations."""


def _row(name: str, grips: list[Grip]) -> str:
    lost = sum(grip.lost_s is not None for grip in grips)
    worst = [max(getattr(grip, key) for grip in grips) for key in ("slip_mm", "turn_deg", "depth_mm")]
    return f"| {name} | {worst[0]:.2f} | {worst[1]:.1f} | {worst[2]:.2f} | {lost} of {len(grips)} |"


def main() -> None:
    """Print the tables of docs/findings/fingers.md."""
    sim = simulator()
    masses = (0.05, 0.2, 0.4, 0.7)
    for moves, what in ((False, "at rest"), (True, "on the move")):
        print(f"\n{what}, 10 s, masses {masses} kg\n| object | slip, mm | turn, degrees | depth, mm | lost |")
        for name in taken(sim):
            print(_row(name, [measure(sim, name, 10.0, moves, mass) for mass in masses]), flush=True)
    for moves, what in ((False, "at rest"), (True, "on the move")):
        print(f"\n{what}, 10 s, all objects, 0.05 and 0.7 kg\n| solver | slip, mm | turn, degrees | depth, mm | lost |")
        for name, (cone, impratio, noslip) in SOLVERS.items():
            grips = []
            for thing, mass in product(taken(sim), (0.05, 0.7)):
                sim.model.opt.cone = getattr(mujoco.mjtCone, f"mjCONE_{cone}")
                sim.model.opt.impratio, sim.model.opt.noslip_iterations = impratio, noslip
                grips.append(measure(sim, thing, 10.0, moves, mass))
            print(_row(name, grips), flush=True)
    print("\nprocessor time per step, microseconds, median of the objects")
    for hand in ("suction", "fingers"):
        sim = simulator(hand)
        names = taken(simulator())
        for moves in (False, True):
            times = sorted(_step_us(sim, name, moves) for name in names)
            print(hand, "moving" if moves else "at rest", round(times[len(times) // 2]), flush=True)


def _step_us(sim: MujocoSimulator, name: str, moves: bool) -> float:
    put_in_hand(sim, name)
    start_s = time.process_time()  # timed: processor time, for a table
    for k in range(300):
        sim.step(grip=1.0, **(moving(k) if moves else {}))
    return 1e6 * (time.process_time() - start_s) / 300  # timed: the same


if __name__ == "__main__":
    main()
