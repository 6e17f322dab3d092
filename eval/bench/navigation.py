"""How fast the environment of PointNav steps on one core, resets included, and where the time goes.

Episodes as a good policy drives them: the actions of the scripted oracle, found before anything is timed, in homes that
have been used before and in fours that share a goal, as in training. Times are CPU times of the process, so that other
work on the machine distorts them little. With sim=habitat, steps in Habitat-Sim are measured beside ours in its scenes.
"""

from __future__ import annotations

import json
import platform
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from eval.bench.navigation_habitat import bench_both
from eval.bench.navigation_habitat import check as check_habitat
from rearrange import navigation
from rearrange.home.errors import UserError
from rearrange.home.settings.environment import check_depth_size
from rearrange.navigation.scripted_agents import oracle_actions

if TYPE_CHECKING:
    from rearrange.command_line.composition.bench_settings import Navigation
    from rearrange.command_line.runs.run_directory import Run

NUM_HOMES, EPISODES = 16, 200  # more episodes than distance fields are kept, so that each is computed
MOST_STEPS = 150  # of an episode


def check(settings: Navigation) -> None:
    """Refuses an image that the camera does not take, and a Habitat that is not there."""
    check_depth_size(settings.depth_size)
    if settings.sim.sim == "habitat":
        check_habitat(settings)


def run_bench(settings: Navigation, run: Run) -> dict[str, float]:
    """`rearrange bench navigation`: print the table and keep the figures in bench.json; returns the headline ones."""
    result = bench_navigation(settings.size, settings.depth_size, settings.seconds, settings.seed)
    lines, sim = table(result), settings.sim
    if sim.sim == "habitat":
        result["beside_habitat"] = both = bench_both(sim.scene_dataset, sim.gpu_device, settings.depth_size,
                                                     settings.seconds, settings.seed)
        lines.append(f"in scenes of {sim.scene_dataset}, {both['steps']:,} steps without resets: ours "
                     f"{both['mujoco_steps_per_s']:,.0f} steps/s, Habitat-Sim {both['habitat_steps_per_s']:,.0f}: "
                     f"{both['ratio']:.1f} times; agents end {both['apart_m']:.2f} m apart")
    for line in lines:
        run.say(line)
    (run.path / "bench.json").write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    run.say(f"figures: {run.path / 'bench.json'}")
    return {"steps_per_s": result["steps_per_s_with_resets"], "reset_ms": result["reset_ms"]}


def bench_navigation(size: str = "small", depth_size: int = 64, seconds: float = 10.0, seed: int = 0) -> dict[str, Any]:
    """Play episodes again for about `seconds` and return speed, microseconds by part, and the machine; plain values
    only."""
    if seconds <= 0:
        raise UserError(f"seconds={seconds} must be greater than 0.")
    env = navigation.make_env("pointnav", depth_size=depth_size, size=size, num_homes=NUM_HOMES, max_steps=MOST_STEPS)
    first = 4 * np.random.default_rng(seed).integers(1 << 28, size=EPISODES // 4)
    played = [(int(episode), oracle_actions(env, int(episode))) for episode in (first[:, None] + np.arange(4)).ravel()]
    clock, spent = time.thread_time, {"steps": 0.0, "resets": 0.0}
    steps = resets = 0
    start = clock()
    while clock() - start < seconds:
        episode, actions = played[resets % EPISODES]
        before = clock()
        env.reset(options={"episode": episode})
        middle = clock()
        for action in actions:
            env.step(action)
        spent["resets"] += middle - before
        spent["steps"] += clock() - middle
        steps, resets = steps + len(actions), resets + 1
    look_s = 0.0
    if depth_size:
        before = clock()
        for _ in range(200):
            env._look()  # noqa: SLF001 the benchmark looks inside
        look_s = (clock() - before) / 200
    return {
        "size": size, "depth_size": depth_size, "steps": steps, "resets": resets, "steps_per_episode": steps / resets,
        "steps_per_s": steps / spent["steps"], "steps_per_s_with_resets": steps / (spent["steps"] + spent["resets"]),
        "step_us": 1e6 * spent["steps"] / steps, "image_us": 1e6 * look_s, "reset_ms": 1e3 * spent["resets"] / resets,
        "machine": f"{platform.processor() or platform.machine()}, Python {platform.python_version()}",
    }


def table(result: dict[str, Any]) -> list[str]:
    """The result as lines to print."""
    image = f"{result['depth_size']}x{result['depth_size']} depth" if result["depth_size"] else "no image"
    return [
        f"{result['steps_per_s_with_resets']:,.0f} steps/s on one core with resets, {result['steps_per_s']:,.0f} "
        "without: PointNav, "
        f"{result['size']} homes, {image}, {result['steps']:,} steps, {result['steps_per_episode']:.0f} an episode",
        f"step {result['step_us']:.1f} us of CPU   last image {result['image_us']:.1f} us   reset "
        f"{result['reset_ms']:.2f} ms",
    ]
