"""Does it matter for learning how experience is collected? Return per step of experience in every mode, over several seeds.

The modes share network, optimiser, number of environments and steps per update; they differ in whose steps make up a rollout
and, where collection overlaps learning, in that the policy that acts is one update older than the one that learns.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rearrange.errors import UserError
from rearrange.settings.engine_words import in_keys

if TYPE_CHECKING:
    from rearrange.runs.run_directory import Run
    from trainer.config import CollectConfig, TrainConfig

ENV, ENVS, STEPS_PER_ENV = "Pendulum-v1", 4, 256  # short rollouts: one update late is then 1 % of a run of 100,000 steps
POINTS = 40  # of a curve
Curve = list[tuple[float, float]]  # (environment steps, mean return of the episodes that ended in that update)


def check(settings: dict[str, Any]) -> None:
    """Refuse what is no mode or no skill, and more environments than there can be."""
    _, config = _task(settings)
    for mode in settings["modes"]:
        _with(config, collect=_collect(mode, config.collect))


def run_bench(settings: dict[str, Any], run: Run) -> dict[str, float]:
    """Train every mode with every seed, print and write the table, curves.json and, with matplotlib, curves.png."""
    from trainer import train

    make_env, config = _task(settings)
    collects = {mode: _collect(mode, config.collect) for mode in settings["modes"]}
    measure = "return" if settings["env"] == "pendulum" else "success"
    curves: dict[str, list[Curve]] = {mode: [] for mode in collects}
    for seed in range(settings["seed"], settings["seed"] + settings["seeds"]):  # interleaved, so that all meet the same machine
        for mode, collect in collects.items():
            print(f"{mode:12} seed {seed}   {settings['steps']:,} steps ...", flush=True)
            result = train(make_env, _with(config, seed=seed, collect=collect))
            if result.reason != "complete":  # Ctrl-C or SIGTERM, which ends a training in good order
                raise KeyboardInterrupt
            curves[mode].append([(row["step"], row[f"episode/{measure}"]) for row in result.history if f"episode/{measure}" in row])
            run.say(f"{mode:12} seed {seed}   {measure} per fifth: "
                    + "  ".join(f"{v:8.2f}" for v in fifths(curves[mode][-1], settings["steps"])))
            (run.path / "curves.json").write_text(json.dumps(curves), encoding="utf-8")
    rows = table(curves, settings["steps"])
    for line in rows_as_text(rows, measure):
        run.say(line)
    draw(curves, settings["steps"], f"{ENV if measure == 'return' else settings['env']}, {settings['seeds']} seeds (mean, range)",
         measure, run.path / "curves.png")
    run.say(f"curves: {run.path / 'curves.json'}")
    return {f"{mode}/{name}": value for mode, row in rows.items() for name, value in row.items() if name != "seeds"}


def _task(settings: dict[str, Any]) -> tuple[Any, TrainConfig]:
    """Environment and engine settings: Pendulum's are those that RL Baselines3 Zoo tuned for SB3 there, with shorter rollouts, a skill's those
    of `rearrange train`."""
    from trainer import CollectConfig, PolicyConfig, PPOConfig, TrainConfig
    from trainer.config import BEFORE_0_2

    if settings["env"] == "pendulum":
        import gymnasium

        config = TrainConfig(
            steps=settings["steps"], log_every_s=1e-6, episode_window=20, torch_threads=1,
            policy=PolicyConfig(encoder=None, lstm_layers=0, body_size=64, log_std_init=0.0, **BEFORE_0_2),
            ppo=PPOConfig(discount=0.9, epochs=10, mini_batches=ENVS * STEPS_PER_ENV // 64, learning_rate=1e-3,
                          schedule="constant", reward_scale=0.1),
            collect=CollectConfig(num_envs=ENVS, rollout_steps=STEPS_PER_ENV))
        return functools.partial(gymnasium.make, ENV), config
    from eval.engine_settings import engine_config, per_action
    from eval.tasks import skill_task
    from rearrange.composition import options
    from rearrange.composition.compose import compose

    if settings["env"] not in options.choices("skill"):
        raise UserError(f"env={settings['env']} is neither pendulum nor a skill: {', '.join(options.choices('skill'))}.")
    from omegaconf import OmegaConf

    words = [f"skill={settings['env']}", f"policy={settings['policy']}", "ppo=fast", f"trainer.num_envs={settings['num_envs']}",
             f"steps={settings['steps']}", "log_every_s=1e-6", "torch_threads=1"]
    plain = OmegaConf.to_container(compose("train", words).config, resolve=True)
    task = skill_task(plain, plain["split"], plain["policy"]["image_size"])
    return task.make, per_action(engine_config(plain), task, task.make())


def _collect(mode: str, base: CollectConfig) -> CollectConfig:
    import dataclasses

    from trainer.config import MODES

    name, _, overlap = mode.partition("+")
    if name not in MODES or overlap not in ("", "overlap"):
        raise UserError(f"modes={mode} is not one of {', '.join(MODES)}, ver+overlap.")
    return dataclasses.replace(base, mode=name, overlap=bool(overlap) or name == "hts")


def _with(config: TrainConfig, **changes: Any) -> TrainConfig:
    import dataclasses

    changed = dataclasses.replace(config, **changes)
    try:
        changed.check()
    except ValueError as error:
        raise UserError(in_keys(error)) from error
    return changed


def fifths(curve: Curve, steps: int) -> list[float]:
    """Mean of a curve over each fifth of the run; NaN where no episode ended."""
    at, value = np.array(curve, float).reshape(-1, 2).T
    edges = np.linspace(0, steps, 6)
    edges[-1] = np.inf
    inside = [(at > a) & (at <= b) for a, b in zip(edges, edges[1:])]
    return [float(value[i].mean()) if i.any() else float("nan") for i in inside]


def table(curves: dict[str, list[Curve]], steps: int) -> dict[str, dict[str, Any]]:
    """Per mode: mean over the whole run (the area under the curve) and over its last fifth, of every seed and of all."""
    rows = {}
    for mode, runs in curves.items():
        parts = np.array([fifths(curve, steps) for curve in runs])
        rows[mode] = {"whole": float(np.nanmean(parts)), "last_fifth": float(parts[:, -1].mean()), "seeds": parts[:, -1].tolist()}
    return rows


def rows_as_text(rows: dict[str, dict[str, Any]], measure: str) -> list[str]:
    """The table, as Markdown."""
    lines = [f"| mode | {measure}, whole run | last fifth | seeds |", "|---|---|---|---|"]
    digits = 0 if measure == "return" else 3
    return lines + [f"| {mode} | {row['whole']:.{digits}f} | {row['last_fifth']:.{digits}f} | "
                    f"{', '.join(f'{v:.{digits}f}' for v in row['seeds'])} |"
                    for mode, row in rows.items()]


def draw(curves: dict[str, list[Curve]], steps: int, title: str, measure: str, path: Path) -> None:
    """One line per mode, the mean over seeds, with their range; nothing without matplotlib."""
    try:
        import matplotlib
    except ImportError:
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6.4, 4))
    grid = np.linspace(0, steps, POINTS)
    for number, (mode, runs) in enumerate(curves.items()):
        values = np.array([np.interp(grid, *np.array(curve, float).T) for curve in runs])
        axes.plot(grid, values.mean(0), color=f"C{number}", label=mode)
        axes.fill_between(grid, values.min(0), values.max(0), color=f"C{number}", alpha=0.12, linewidth=0)
    axes.set(xlabel="environment steps", ylabel=measure, title=title)
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
