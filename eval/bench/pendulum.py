"""The engine on a public environment, beside a public PPO: Gymnasium's Pendulum-v1 against Stable-Baselines3.

Both run PPO with the settings that RL Baselines3 Zoo tuned for SB3 on Pendulum (discount 0.9, 10 epochs, mini-batches of 64,
rate 1e-3, 4 environments of 1,024 steps). Ours adds nothing but VER's collection.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from rearrange.runs.run_directory import Run

ENV, ENVS, STEPS_PER_ENV, BINS = "Pendulum-v1", 4, 1024, 5
Curve = list[tuple[int, float]]  # (environment steps, return of an episode that ended then)


def run_bench(settings: dict[str, Any], run: Run) -> dict[str, float]:
    """Train with every seed, print mean return per fifth of the run, write curves.json and, with matplotlib, curves.png."""
    systems = {"rearrange": train_ours}
    try:
        import stable_baselines3  # noqa: F401

        systems["stable-baselines3"] = train_sb3
    except ImportError:
        run.say("stable-baselines3 is not installed (pip install 'rearrange[peers]'): running the engine alone.")
    curves = {name: [] for name in systems}
    for seed in range(settings["seed"], settings["seed"] + settings["seeds"]):  # interleaved, so that both meet the same machine
        for name, system in systems.items():
            curves[name].append(system(settings["steps"], seed))
            run.say(f"{name:18} seed {seed}   return per fifth of the run: "
                    + "  ".join(f"{v:7.0f}" for v in binned(curves[name][-1], settings["steps"])))
    result = {}
    for name in systems:
        last = [binned(curve, settings["steps"])[-1] for curve in curves[name]]
        result[f"{name}/final_return"] = float(np.mean(last))
        run.say(f"{name:18} mean return over the last fifth: {np.mean(last):.0f}   (seeds {', '.join(f'{v:.0f}' for v in last)})")
    (run.path / "curves.json").write_text(json.dumps(curves), encoding="utf-8")
    _draw(curves, settings["steps"], run.path / "curves.png")
    run.say(f"curves: {run.path / 'curves.json'}")
    return result


def binned(curve: Curve, steps: int) -> list[float]:
    """Mean return of the episodes that ended in each fifth of the run."""
    at, value = np.array(curve).T
    edges = np.linspace(0, steps, BINS + 1)
    edges[-1] = np.inf
    return [float(value[(at >= a) & (at < b)].mean()) for a, b in zip(edges, edges[1:])]


def train_ours(steps: int, seed: int) -> Curve:
    """One run of the engine."""
    import functools

    import gymnasium

    from trainer import CollectConfig, PolicyConfig, PPOConfig, TrainConfig, train

    config = TrainConfig(
        steps=steps, seed=seed, log_every_s=1e-6, episode_window=ENVS * STEPS_PER_ENV // 200, torch_threads=1,
        policy=PolicyConfig(encoder=None, lstm_layers=0, body_size=64, log_std_init=0.0),
        ppo=PPOConfig(discount=0.9, epochs=10, mini_batches=ENVS * STEPS_PER_ENV // 64, learning_rate=1e-3, schedule="constant"),
        collect=CollectConfig(num_envs=ENVS, rollout_steps=STEPS_PER_ENV),
    )
    result = train(functools.partial(gymnasium.make, ENV), config)
    if result.reason != "complete":
        raise KeyboardInterrupt
    return [(int(row["step"]), row["episode/return"]) for row in result.history]


def train_sb3(steps: int, seed: int) -> Curve:
    """One run of Stable-Baselines3's PPO."""
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.env_util import make_vec_env

    curve: Curve = []

    class Episodes(BaseCallback):
        def _on_step(self) -> bool:
            curve.extend((self.num_timesteps, info["episode"]["r"]) for info in self.locals["infos"] if "episode" in info)
            return True

    torch.set_num_threads(1)
    PPO("MlpPolicy", make_vec_env(ENV, ENVS, seed=seed), n_steps=STEPS_PER_ENV, batch_size=64, n_epochs=10, gamma=0.9,
        gae_lambda=0.95, learning_rate=1e-3, clip_range=0.2, seed=seed, device="cpu").learn(steps, callback=Episodes())
    return curve


def _draw(curves: dict[str, list[Curve]], steps: int, path: Path) -> None:
    try:
        import matplotlib
    except ImportError:
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 4))
    for color, (name, runs) in zip(("tab:blue", "tab:orange"), curves.items()):
        grid = np.linspace(0, steps, 50)
        smooth = np.array([np.interp(grid, *_smoothed(curve)) for curve in runs])
        axes.plot(grid, smooth.mean(0), color=color, label=name)
        axes.fill_between(grid, smooth.min(0), smooth.max(0), color=color, alpha=0.2)
    axes.set(xlabel="environment steps", ylabel="return", title=f"PPO on {ENV}, {len(runs)} seeds (mean, range)")
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def _smoothed(curve: Curve, window: int = 20) -> tuple[np.ndarray, np.ndarray]:
    """Steps and the running mean of returns over `window` episodes (rows of ours are means over a rollout already)."""
    at, value = np.array(curve, float).T
    width = min(window, len(value)) if len(value) > 100 else 1
    return np.convolve(at, np.ones(width) / width, "valid"), np.convolve(value, np.ones(width) / width, "valid")
