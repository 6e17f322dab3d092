"""Every skill, scenario and navigation task does what it did: sums over a seeded rollout are those of behaviour.json.

MuJoCo's floating point differs between processors, so the file holds sums to 1e-4 over 20 steps, not exact values.
MuJoCo 4 chooses other contact points than 3.17: behaviour_mujoco4.json holds the cases in which that shows. To renew
them after a change of behaviour that is meant, and to add a new skill or scenario, with MuJoCo 3 and then with 4:

    python -m tests.test_behaviour

The difference in behaviour.json then shows what has changed, and belongs into the same commit. What it holds for a
case: the steps done, and of the rewards and of each observation the sum and the sum of absolute values.
"""

from __future__ import annotations

import json
from pathlib import Path

import gymnasium
import mujoco
import numpy as np
import pytest

import rearrange  # noqa: F401 - makes the ids known

FILE, OF_MUJOCO_4 = (Path(__file__).with_name(name) for name in ("behaviour.json", "behaviour_mujoco4.json"))
IS_MUJOCO_4 = mujoco.__version__.startswith("4.")
STEPS, TOLERANCE = 20, 1e-4  # of the sum of absolute values
LIMITED = {"Pick": "arm grip", "Place": "arm grip", "OpenCabinet": "arm grip", "CloseCabinet": "arm",
           "OpenFridge": "arm grip", "CloseFridge": "arm"}


def read(file: Path) -> dict[str, dict[str, list[float]]]:
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


RECORDED = read(FILE) | (read(OF_MUJOCO_4) if IS_MUJOCO_4 else {})


def cases() -> list[str]:
    """Every id, and those of skills again with the limited action space: `rearrange/Pick-v0 arm grip`."""
    ids = sorted(id for id in gymnasium.registry if id.startswith("rearrange/"))
    return ids + [f"rearrange/{name}-v0 {parts}" for name, parts in LIMITED.items()]


def measured(case: str) -> dict[str, list[float]]:
    id, *parts = case.split()
    homes = "num_homes" if gymnasium.spec(id).entry_point.endswith("make_navigation") else "num_layouts"
    env = gymnasium.make(id, depth_size=32, **{homes: 2}, **({"action_parts": parts} if parts else {}))
    rng = np.random.default_rng(0)
    seen, rewards, steps = [env.reset(seed=0)[0]], [], 0
    for steps in range(1, STEPS + 1):
        if steps % 5 == 1:  # held for five steps, so that the robot gets somewhere
            action = action_of(env.action_space, rng)
        observation, reward, terminated, truncated, _ = env.step(action)
        seen.append(observation)
        rewards.append(reward)
        if terminated or truncated:
            break
    env.close()
    return {"steps": [steps],
            "reward": sums(rewards)} | {key: sums([observation[key] for observation in seen]) for key in seen[0]}


def action_of(space: gymnasium.Space, rng: np.random.Generator) -> np.ndarray | int:
    """Any action but to stop, which would end an episode."""
    if isinstance(space, gymnasium.spaces.Discrete):
        return int(rng.integers(1, space.n))
    action = rng.uniform(-1, 1, space.shape).astype(np.float32)
    action[-1] = -abs(action[-1])
    return action


def sums(values: list) -> list[float]:
    """The sum and the sum of absolute values, with weights from 1 to 2, so that the order counts."""
    flat = np.asarray(values, np.float64).ravel()
    flat = flat * np.linspace(1, 2, flat.size)
    return [float(f"{flat.sum():.7g}"), float(f"{abs(flat).sum():.7g}")]


@pytest.mark.parametrize("case", RECORDED)
def test_a_rollout_is_as_recorded(case):
    now = measured(case)
    assert set(now) == set(RECORDED[case])
    assert not changed(now, RECORDED[case]), case


def changed(now: dict[str, list[float]], was: dict[str, list[float]]) -> list[str]:
    """What is not as it was."""
    return [what for what, sums in was.items()
            if now[what] != pytest.approx(sums, rel=0, abs=TOLERANCE * max(sums[-1], 1e-2))]


def test_skills_and_scenarios_are_recorded():
    assert RECORDED, f"{FILE.name} is missing or empty; write it with: python -m tests.test_behaviour"


if __name__ == "__main__":
    found = {case: measured(case) for case in cases()}
    if IS_MUJOCO_4:
        found = {case: now for case, now in found.items() if changed(now, read(FILE)[case])}
    written = ",\n".join(f"  {json.dumps(case)}: {json.dumps(now)}" for case, now in found.items())
    (OF_MUJOCO_4 if IS_MUJOCO_4 else FILE).write_text(f"{{\n{written}\n}}\n", encoding="utf-8")
