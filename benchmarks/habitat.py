"""How fast both simulators step the same homes, and what the adapter adds to a step in Habitat.

Both load the same episodes, from the same start poses, and get the same smooth random actions, in turns on one core.
Times are CPU times of the thread. What physics and renderer do not need of the simulator's step and of the image is the
adapter's: motor commands, contact points, reading poses, the hold.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks import run as run_as_command
from eval.bench.navigation_habitat import check
from eval.bench.sim import NOISE_MEMORY, NOISE_STD
from eval.task_from_settings import sim_settings
from rearrange.home.scene_files.scene_data import is_exported
from skills import make_env

if TYPE_CHECKING:
    from benchmarks.settings import Habitat
    from rearrange.command_line.runs.run_directory import Run

__all__ = ["check", "run_bench"]

STEPS = 90  # of an episode


def of_homes(sim: dict[str, Any], name: str) -> tuple[str, ...]:
    """Keys of `sim` that say, in the simulator of that name, where episodes take place. Our homes, which a data set of
    rearrange scenes export holds, the embedded simulator has itself; external scenes it reads from the same files.
    """
    where = ("scene_dataset", "scenes", "episodes")
    if name == "habitat":
        return (*where, "robot_urdf", "gpu_device")
    return ("episodes",) if is_exported(Path(sim["scene_dataset"])) else where


def run_bench(settings: Habitat, run: Run) -> dict[str, float]:
    """`python -m benchmarks.habitat`: print the table and keep the figures in bench.json; returns the headline ones."""
    result = bench_habitat(settings)
    for line in table(result):
        run.say(line)
    (run.path / "bench.json").write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    run.say(f"figures: {run.path / 'bench.json'}")
    return {f"{name}/steps_per_s": row["steps_per_s"] for name, row in result.items()} | {
        "adapter_share": result["habitat"]["adapter_share"]}


def bench_habitat(settings: Habitat) -> dict[str, dict[str, float]]:
    """Simulator -> steps/s, and milliseconds of CPU per step by part."""
    sim = sim_settings(settings.sim)
    of_home = {"num_layouts": sim["num_layouts"], "split": settings.split, "depth_size": settings.depth_size}
    embedded = of_home | {key: sim[key] for key in of_homes(sim, "mujoco") if sim.get(key) is not None}
    envs = {"habitat": make_env(settings.skill, **(sim | of_home)),
            "mujoco": make_env(settings.skill, **embedded)}
    clocks = {name: _watch(name, env.sim) for name, env in envs.items()}
    rows: dict[str, list[dict[str, float]]] = {name: [] for name in envs}
    for episode in range(settings.episodes + 1):
        for name, env in envs.items():
            row = _episode(env, clocks[name], episode, np.random.default_rng([settings.seed, episode]))
            if episode:  # the first compiles and loads
                rows[name].append(row)
    return {name: _mean(found) for name, found in rows.items()}


def table(result: dict[str, dict[str, float]]) -> list[str]:
    """The result as lines to print."""
    lines = [f"{'':8} {'steps/s':>8} {'ms/step':>8} {'physics':>8} {'render':>8} {'rest':>8} {'reset ms':>9} "
             f"{'objects':>8}"]
    for name, row in result.items():
        lines.append(f"{name:8} {row['steps_per_s']:8,.0f} {row['step_ms']:8.3f} {row['physics_ms']:8.3f} "
                     f"{row['render_ms']:8.3f} {row['rest_ms']:8.3f} {row['reset_ms']:9.1f} {row['objects']:8.1f}")
    lines.append(f"the adapter's share of a step in Habitat: {result['habitat']['adapter_share']:.1%} "
                 f"({result['habitat']['adapter_ms']:.3f} ms)")
    return lines


class _Clock:
    """CPU time spent in functions that were wrapped, by name.

    To read the clock costs microseconds, which the caller of a function is charged with. How many is measured where it
    happens: before every call of "step" a function is timed that does nothing.
    """

    def __init__(self) -> None:
        self.ms: dict[str, float] = {}
        self.calls: dict[str, int] = {}
        self.clear()

    def clear(self) -> None:
        """Forget what was counted."""
        self.ms, self.calls = dict.fromkeys(self.ms, 0.0), dict.fromkeys(self.calls, 0)
        self._empty_ms = 0.0

    def wrap(self, owner: Any, method: str, name: str) -> None:
        """Count the time of `owner.method` under `name`."""
        setattr(owner, method, self._timed(getattr(owner, method), name))

    def calibrate(self, owner: Any, method: str) -> None:
        """Find the clock's own cost before each call of `owner.method`."""
        inner, empty = getattr(owner, method), self._timed(lambda: None, "nothing")

        def calibrating(*args: Any, **settings: Any) -> Any:
            start = time.thread_time()
            empty()
            self._empty_ms += 1e3 * (time.thread_time() - start)
            return inner(*args, **settings)

        setattr(owner, method, calibrating)

    def cost_ms(self, *names: str) -> float:
        """What the callers of these functions were charged with for the clock; with no names, all callers."""
        each = (self._empty_ms - self.ms["nothing"]) / max(1, self.calls["nothing"])
        return each * sum(self.calls.get(name, 0)
                          for name in names) if names else each * sum(self.calls.values()) + self._empty_ms

    def _timed(self, inner: Callable, name: str) -> Callable:
        self.ms[name], self.calls[name] = 0.0, 0

        def timed(*args: Any, **settings: Any) -> Any:
            self.calls[name] += 1
            start = time.thread_time()
            try:
                return inner(*args, **settings)
            finally:
                self.ms[name] += 1e3 * (time.thread_time() - start)

        return timed


def _watch(name: str, sim: Any) -> _Clock:
    """Count what passes in the simulator and, of Habitat, in its physics and its renderer."""
    clock = _Clock()
    clock.wrap(sim, "step", "step")
    clock.calibrate(sim, "step")
    clock.wrap(sim, "depth_image", "image")
    if name == "habitat":
        clock.wrap(sim.world, "advance", "physics")
        clock.wrap(sim.world.camera, "draw", "render")
    else:
        clock.wrap(sim, "_advance", "physics")
    return clock


def _episode(env: Any, clock: _Clock, number: int, rng: np.random.Generator) -> dict[str, float]:
    """Sums of one episode, times in ms."""
    start = time.thread_time()
    env.reset(options={"episode": number})
    reset_ms = 1e3 * (time.thread_time() - start)
    clock.clear()
    noise, steps, total, over = np.zeros(env.action_space.shape), 0, 0.0, False
    while steps < STEPS and not over:
        noise = NOISE_MEMORY * noise + NOISE_STD * np.sqrt(1 - NOISE_MEMORY**2) * rng.standard_normal(noise.shape)
        action = np.clip(noise, -1.0, 1.0).astype(np.float32)
        start = time.thread_time()
        _, _, terminated, truncated, _ = env.step(action)
        total += 1e3 * (time.thread_time() - start)
        steps, over = steps + 1, terminated or truncated
    return clock.ms | {"total": total - clock.cost_ms(), "clock": clock.cost_ms("physics", "render"), "steps": steps,
                       "reset": reset_ms, "objects": len(env.episode.objects)}


def _mean(rows: list[dict[str, float]]) -> dict[str, float]:
    """Figures per step. In Habitat, what its physics and its renderer do not need is the adapter's."""
    steps = sum(row["steps"] for row in rows)
    per_step = {name: sum(row[name] for row in rows) / steps for name in ("total", "step", "image", "physics", "clock")}
    render = sum(row["render"] for row in rows) / steps if "render" in rows[0] else per_step["image"]
    adapter = per_step["step"] + per_step["image"] - per_step["physics"] - render - per_step["clock"]
    return {
        "steps_per_s": 1e3 / per_step["total"], "step_ms": per_step["total"], "physics_ms": per_step["physics"],
        "render_ms": render, "rest_ms": per_step["total"] - per_step["physics"] - render, "adapter_ms": adapter,
        "adapter_share": adapter / per_step["total"], "reset_ms": sum(row["reset"] for row in rows) / len(rows),
        "objects": sum(row["objects"] for row in rows) / len(rows), "steps": steps}


if __name__ == "__main__":
    sys.exit(run_as_command("habitat"))
