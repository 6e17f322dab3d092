"""How fast the embedded simulator steps on one core, and where the time goes.

Random smooth actions (noise that forgets over half a second) in crowded episodes, a new one whenever one ends, on
layouts that have been used before, as in training. Times are CPU times of the process, so that other work on the
machine distorts them little.

Then each kind of image alone, as large as the depth image, in turn: a share of the time for one, then for the next,
three times over.
"""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from eval.bench.train_split import Clock
from rearrange.home.episodes.generator import MAX_OBJECTS
from rearrange.home.errors import UserError
from rearrange.home.settings.environment import check_depth_size
from skills import make_env

if TYPE_CHECKING:
    from rearrange.command_line.composition.bench_settings import Sim
    from rearrange.command_line.runs.run_directory import Run

NOISE_MEMORY = 0.93  # of the action noise per step
NOISE_STD = 0.5
WARM_UP_STEPS = 200
NUM_LAYOUTS = 8
IMAGES, ROUNDS = ("depth", "rgb", "segmentation", "arm_rgb", "arm_depth"), 3
_MOST_NUMBERS = 20_000


def check(settings: Sim) -> None:
    """Refuses another simulator, and an image that the camera does not take."""
    check_depth_size(settings.depth_size)
    if settings.sim.sim != "mujoco":
        raise UserError(f"bench sim measures the embedded simulator; for both write python -m benchmarks.habitat "
                        f"sim={settings.sim.sim} sim.scene_dataset=...")


def run_bench(settings: Sim, run: Run) -> dict[str, float]:
    """`rearrange bench sim`: print the table and keep the figures in bench.json; returns the headline ones."""
    sim = settings.sim
    common = settings.skill, settings.depth_size, settings.seconds, settings.seed
    where = {"scene_dataset": sim.scene_dataset, "scenes": sim.scenes}
    result = bench_sim(*common, sim.observations, sim.camera_size, **where)
    result["images"] = bench_images(*common, **where)
    for line in [*table(result), *image_table(result["images"], settings.depth_size)]:
        run.say(line)
    (run.path / "bench.json").write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    run.say(f"figures: {run.path / 'bench.json'}")
    return {"steps_per_s": result["steps_per_s"], **{f"{name}_ms": ms for name, ms in result["parts_ms"].items()}}


def bench_images(skill: str, size: int, seconds: float, seed: int, **where: str | None) -> dict[str, float]:
    """Steps per second with no image but one, by its name; nothing for size 0."""
    if not size:
        return {}
    parts, stepped = {}, {name: [0, 0.0] for name in IMAGES}
    for name in IMAGES:
        seen = {"depth_size": size} if name == "depth" else {
            "depth_size": 0, "observations": [name], "camera_size": size}
        parts[name] = _warm(skill, seed, Clock(), **seen, **where)
    for _ in range(ROUNDS):
        for name, part in parts.items():
            start = time.thread_time()
            steps, _, _, step_s, _, _ = _run(*part, lambda _,
                                             start=start: time.thread_time() - start >= seconds / (ROUNDS * len(parts)))
            stepped[name][0] += steps
            stepped[name][1] += sum(step_s)
    return {name: steps / total_s for name, (steps, total_s) in stepped.items()}


def image_table(steps_per_s: dict[str, float], size: int) -> list[str]:
    """The result of `bench_images` as lines to print."""
    return [f"{'alone':<14}steps/s   of depth   ({size}x{size})",
            *(f"  {name:<12}{each:>7,.0f}   {each / steps_per_s['depth']:>7.0%}"
              for name, each in steps_per_s.items())] if steps_per_s else []


def _warm(skill: str, seed: int, clock: Clock, **seen: Any) -> tuple[Any, Iterator[int], np.random.Generator]:
    """An environment that has been stepped for a while, its episodes and what draws the actions; `clock` times its
    parts."""
    env = make_env(skill, num_layouts=NUM_LAYOUTS, **seen)
    env.sim._advance = clock.timed("physics", env.sim._advance)  # noqa: SLF001 the benchmark looks inside
    env.scene.look = clock.timed("images" if seen.get("observations") else "depth", env.scene.look)
    # Other scenes may have no room for more objects.
    most = MAX_OBJECTS if seen.get("scene_dataset") is None else MAX_OBJECTS - 5
    episodes = (number for number in _numbers()
                if len(env.scene.generated_episode(env.skill.episode_kind, number).objects) >= most)
    rng = np.random.default_rng(seed)
    for _ in range(NUM_LAYOUTS):
        _reset(env, episodes)
    _run(env, episodes, rng, lambda steps: steps >= WARM_UP_STEPS)
    clock.total_s = dict.fromkeys(clock.total_s, 0.0)
    return env, episodes, rng


def bench_sim(skill: str = "pick", depth_size: int = 128, seconds: float = 10.0, seed: int = 0,
              observations: Sequence[str] | None = None, camera_size: int = 128, scene_dataset: str | None = None,
              scenes: str | None = None) -> dict[str, Any]:
    """Step one environment for about `seconds` and return speed, mean milliseconds by part, and the machine; plain
    values only. In homes of ours, or in `scenes` of a data set.
    """
    if seconds <= 0:
        raise UserError(f"seconds={seconds} must be greater than 0.")
    clock = Clock()
    env, episodes, rng = _warm(skill, seed, clock, depth_size=depth_size, observations=observations,
                               camera_size=camera_size, scene_dataset=scene_dataset, scenes=scenes)
    start = time.thread_time()
    steps, resets, objects, step_s, reset_s, in_reset_s = _run(
        env, episodes, rng, lambda _: time.thread_time() - start >= seconds, clock)
    parts = {name: 1e3 * (clock.total_s[name] - in_reset_s[name]) / steps for name in clock.total_s}
    step_ms = 1e3 * np.array(step_s)
    reset_ms = 1e3 * np.array(reset_s)
    return {
        "skill": skill, "depth_size": depth_size, "observations": list(observations or ()), "objects": objects,
        "steps": steps, "resets": resets,
        "steps_per_s": steps / sum(step_s),
        "steps_per_s_with_resets": steps / (sum(step_s) + sum(reset_s)),
        "step_ms": {"mean": float(step_ms.mean()), **{f"p{q}": float(np.percentile(step_ms, q)) for q in (50, 95, 99)}},
        "parts_ms": {**parts, "rest": float(step_ms.mean()) - sum(parts.values())},
        "reset_ms": {"mean": float(reset_ms.mean()), "max": float(reset_ms.max())} if resets else None,
        "machine": f"{platform.processor() or platform.machine()}, Python {platform.python_version()}",
    }


def table(result: dict[str, Any]) -> list[str]:
    """The result as lines to print."""
    step = result["step_ms"]
    size = result["depth_size"]
    image = f"{size}x{size} depth" if size else "no depth" if result["observations"] else "no image"
    image = ", ".join([image, *result["observations"]])
    lines = [
        f"{result['steps_per_s']:,.0f} steps/s on one core "
        f"({result['steps_per_s_with_resets']:,.0f} with resets): Fetch, {result['objects']:.0f} objects, {image}, "
        f"skill {result['skill']}, {result['steps']:,} steps",
        f"step   {step['mean']:.3f} ms of CPU   p50 {step['p50']:.3f}   p95 {step['p95']:.3f}   p99 {step['p99']:.3f}",
    ]
    for name, part_ms in result["parts_ms"].items():
        lines.append(f"  {name:<8} {part_ms:.3f} ms  {100 * part_ms / step['mean']:3.0f} %")
    if result["reset_ms"]:
        reset = result["reset_ms"]
        lines.append(f"reset  {reset['mean']:.1f} ms   max {reset['max']:.1f}   ({result['resets']} resets)")
    return lines


def _numbers() -> Iterator[int]:
    """Numbers of episodes to choose crowded ones from."""
    for number in range(_MOST_NUMBERS):
        yield number
    raise UserError(f"none of the last of {_MOST_NUMBERS:,} episodes is crowded: choose other scenes with sim.scenes=.")


def _reset(env: Any, episodes: Iterator[int]) -> float:
    """Start the next episode that can be started; returns the seconds that its reset took."""
    while True:
        number = next(episodes)
        start = time.thread_time()
        try:
            env.reset(options={"episode": number})
        except UserError:  # the robot finds no place before a crowded piece of furniture
            continue
        return time.thread_time() - start


def _run(env: Any, episodes: Iterator[int], rng: np.random.Generator, enough: Callable[[int], bool],
         clock: Clock | None = None) -> tuple:
    """Step until `enough`; steps, resets, mean objects, seconds of each step and reset, and of each part in resets."""
    step_s: list[float] = []
    reset_s: list[float] = []
    counts: list[int] = []
    in_reset_s = dict.fromkeys(clock.total_s, 0.0) if clock else {}
    size = env.action_space.shape[0]
    noise, done, steps = np.zeros(size), True, 0
    while not enough(steps):
        if done:
            before = dict(clock.total_s) if clock else {}
            reset_s.append(_reset(env, episodes))
            counts.append(len(env.episode.objects))
            for name, value in before.items():
                in_reset_s[name] += clock.total_s[name] - value
        noise = NOISE_MEMORY * noise + NOISE_STD * np.sqrt(1 - NOISE_MEMORY**2) * rng.standard_normal(size)
        action = np.clip(noise, -1.0, 1.0).astype(np.float32)
        start = time.thread_time()
        _, _, terminated, truncated, _ = env.step(action)
        step_s.append(time.thread_time() - start)
        done = terminated or truncated
        steps += 1
    return steps, len(reset_s), float(np.mean(counts)), step_s, reset_s, in_reset_s
