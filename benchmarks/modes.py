"""Does it matter for learning how experience is collected? Return per step of experience in every mode, over several
seeds.

The modes share network, optimiser, number of environments and steps per update; they differ in whose steps make up a
rollout and, where collection overlaps learning, in that the policy that acts is older than the one that learns.
"""

from __future__ import annotations

import functools
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks import run as run_as_command
from rearrange.home.errors import UserError
from rearrange.home.settings.engine_messages import in_keys

if TYPE_CHECKING:
    from benchmarks.settings import Modes
    from rearrange.command_line.runs.run_directory import Run
    from trainer.config import CollectConfig, TrainConfig

# short rollouts: one update late is then 1 % of a run of 100,000 steps
ENV, ENVS, STEPS_PER_ENV = "Pendulum-v1", 4, 256
POINTS = 40  # of a curve
# (environment steps, mean return of the episodes that ended in that update, minutes)
Curve = list[tuple[float, float, float]]


def check(settings: Modes) -> None:
    """Refuse what is no mode or no task, and more environments than there can be."""
    _, config = _task(settings)
    for mode in settings.modes:
        _with(config, collect=_collect(mode, config.collect))


def run_bench(settings: Modes, run: Run) -> dict[str, float]:
    """Train every mode with every seed, print and write the table, curves.json and, with matplotlib, curves.png."""
    from trainer import train

    make_env, config = _task(settings)
    collects = {mode: _collect(mode, config.collect) for mode in settings.modes}
    measure = "return" if settings.env == "pendulum" else "success"
    curves: dict[str, list[Curve]] = {mode: [] for mode in collects}
    # interleaved, so that all meet the same machine
    for seed in range(settings.seed, settings.seed + settings.seeds):
        for mode, collect in collects.items():
            print(f"{mode:12} seed {seed}   {settings.steps:,} steps ...", flush=True)
            result = train(make_env, _with(config, seed=seed, collect=collect))
            if result.reason != "complete":  # Ctrl-C or SIGTERM, which ends a training in good order
                raise KeyboardInterrupt
            curves[mode].append([(row["step"], row[f"episode/{measure}"], row["wall_s"] / 60) for row in result.history
                                 if f"episode/{measure}" in row])
            run.say(f"{mode:12} seed {seed}   {measure} per fifth: "
                    + "  ".join(f"{v:8.2f}" for v in fifths(curves[mode][-1], settings.steps)))
            (run.path / "curves.json").write_text(json.dumps(curves), encoding="utf-8")
    rows = table(curves, settings.steps)
    for line in rows_as_text(rows, measure):
        run.say(line)
    seeds = "one seed" if settings.seeds == 1 else f"{settings.seeds} seeds (mean, range)"
    draw(curves, settings.steps, f"{ENV if measure == 'return' else settings.env}, {seeds}",
         measure, run.path / "curves.png")
    run.say(f"curves: {run.path / 'curves.json'}")
    return {f"{mode}/{name}": value for mode, row in rows.items() for name, value in row.items() if name != "seeds"}


def _task(settings: Modes) -> tuple[Any, TrainConfig]:
    """Environment and engine settings: Pendulum's are those that RL Baselines3 Zoo tuned for SB3 there, with shorter
    rollouts, others those of `rearrange train`."""
    from trainer import CollectConfig, PolicyConfig, PPOConfig, TrainConfig
    from trainer.config import BEFORE_0_2

    if settings.env == "pendulum":
        import gymnasium

        config = TrainConfig(
            steps=settings.steps, log_every_s=1e-6, episode_window=20, torch_threads=1,
            policy=PolicyConfig(encoder=None, lstm_layers=0, body_size=64, log_std_init=0.0, **BEFORE_0_2),
            ppo=PPOConfig(discount=0.9, epochs=10, mini_batches=ENVS * STEPS_PER_ENV // 64, learning_rate=1e-3,
                          schedule="constant", reward_scale=0.1),
            collect=CollectConfig(num_envs=ENVS, rollout_steps=STEPS_PER_ENV))
        return functools.partial(gymnasium.make, ENV), config
    from eval.engine_settings import engine_config, per_action
    from eval.task_from_settings import training_task
    from rearrange.command_line.composition import options
    from rearrange.command_line.composition.parse_overrides import compose

    group = next((group for group in ("skill", "nav") if settings.env in options.choices(group)), None)
    if group is None:
        raise UserError(f"env={settings.env} is neither pendulum nor a skill nor a task of navigation: "
                        f"{', '.join([*options.choices('skill'), *options.choices('nav')])}.")
    words = [f"{group}={settings.env}", f"policy={settings.policy}", "ppo=fast",
             f"trainer.num_envs={settings.num_envs}", f"steps={settings.steps}", "log_every_s=1e-6",
             "torch_threads=1"]
    made = options.options_of(compose("train", words))
    task = training_task(made)
    return task.make, per_action(engine_config(made), task, task.make())


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
    at, value, _ = np.array(curve, float).reshape(-1, 3).T
    edges = np.linspace(0, steps, 6)
    edges[-1] = np.inf
    inside = [(at > a) & (at <= b) for a, b in zip(edges, edges[1:])]
    return [float(value[i].mean()) if i.any() else float("nan") for i in inside]


def table(curves: dict[str, list[Curve]], steps: int) -> dict[str, dict[str, Any]]:
    """Per mode: mean over the whole run (the area under the curve) and over its last fifth, of every seed and of all;
    steps/s.
    """
    rows = {}
    for mode, runs in curves.items():
        parts = np.array([fifths(curve, steps) for curve in runs])
        speed = float(np.mean([curve[-1][0] / (60 * curve[-1][2]) for curve in runs]))
        rows[mode] = {"whole": float(np.nanmean(parts)), "last_fifth": float(parts[:, -1].mean()),
                      "seeds": parts[:, -1].tolist(), "steps_per_s": speed}
    return rows


def rows_as_text(rows: dict[str, dict[str, Any]], measure: str) -> list[str]:
    """The table, as Markdown."""
    lines = [f"| mode | {measure}, whole run | last fifth | seeds | steps/s |", "|---|---|---|---|---|"]
    digits = 0 if measure == "return" else 3
    return lines + [f"| {mode} | {row['whole']:.{digits}f} | {row['last_fifth']:.{digits}f} | "
                    f"{', '.join(f'{v:.{digits}f}' for v in row['seeds'])} | {row['steps_per_s']:,.0f} |"
                    for mode, row in rows.items()]


def draw(curves: dict[str, list[Curve]], steps: int, title: str, measure: str, path: Path) -> None:
    """One line per mode, the mean over seeds, with their range, against steps and against time; nothing without
    matplotlib.
    """
    try:
        import matplotlib
    except ImportError:
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(11, 4), sharey=True)
    shortest_min = min(curve[-1][2] for runs in curves.values() for curve in runs)
    for each, column, end in ((axes[0], 0, steps), (axes[1], 2, shortest_min)):
        grid = np.linspace(0, end, POINTS)
        for number, (mode, runs) in enumerate(curves.items()):
            values = np.array([np.interp(grid, *np.array(curve, float).T[[column, 1]]) for curve in runs])
            each.plot(grid, values.mean(0), color=f"C{number}", label=mode)
            each.fill_between(grid, values.min(0), values.max(0), color=f"C{number}", alpha=0.12, linewidth=0)
    axes[0].set(xlabel="environment steps", ylabel=measure)
    axes[1].set(xlabel="minutes of training")
    axes[0].legend()
    figure.suptitle(title)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


if __name__ == "__main__":
    sys.exit(run_as_command("modes"))
