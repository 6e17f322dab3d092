"""Episodes of skills that have begun, actions by hand, and whole episodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mujoco
import numpy as np

from rearrange.env.skill_env import RearrangeEnv
from skills import make_env


def started(skill: str, episode: int = 0, **settings: Any) -> RearrangeEnv:
    env = make_env(skill, depth_size=0, **settings)
    env.reset(options={"episode": episode})
    return env


def action(env: RearrangeEnv, grip: float = -1.0, **parts: Sequence[float]) -> np.ndarray:
    """The grip, `arm` and `base`, as far as the skill commands them; the rest is 0."""
    slices, out = dict(env.action_parts), np.zeros(env.action_space.shape, np.float32)
    for name, command in {"grip": grip, **parts}.items():
        if name in slices:
            out[slices[name]] = command
    return out


def run(env: RearrangeEnv, act: Callable[[], np.ndarray], look: Callable[[], None] = lambda: None) -> dict[str, Any]:
    """The info at the end of an episode in which `act` gives every action; `look` is called after every step."""
    while True:
        *_, terminated, truncated, info = env.step(act())
        look()
        if terminated or truncated:
            return info


def put(sim, i: int, *pose: float) -> None:
    """Object i at rest at a pose, upright unless it says otherwise."""
    sim._set_object(i, (*pose, 1.0, 0.0, 0.0, 0.0)[:7])
    sim.data.qvel[:] = 0.0
    mujoco.mj_forward(sim.model, sim.data)


def let_go(sim) -> None:
    sim.hand.release()
    sim._read_hold()


def tear_off(env: RearrangeEnv) -> None:
    """Make the hold too soft to bring back within a step what is moved away."""
    env.sim.hand._model.eq_solref[:, 0] = 10.0


def aside_rad(sim, point: Sequence[float]) -> float:
    """Angle between the robot's heading and the direction of a point."""
    x, y, yaw = sim.base_pose
    return (np.arctan2(point[1] - y, point[0] - x) - yaw + np.pi) % (2 * np.pi) - np.pi
