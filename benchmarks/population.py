"""Does population-based training find more return than independent runs of the same steps? On a standard task.

The population draws its first settings at random and changes them as `hydra/sweeper=population` does, with the same
functions; the independent runs have the engine's defaults, whose learning rate decays to zero. Runs take turns in one
process on one thread. After each generation a row is printed and kept.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import run as run_as_command
from eval.bench.gym.tasks import TASKS
from rearrange.command_line.population import Range, first_generation, next_generation
from rearrange.home.errors import UserError

if TYPE_CHECKING:
    from benchmarks.settings import Population
    from rearrange.command_line.runs.run_directory import Run
    from trainer import TrainConfig

RANGES = (Range("learning_rate", 1e-4, 3e-3, log=True), Range("clip", 0.1, 0.4),
          Range("epochs", values=("4", "6", "8", "10", "14")))
SHARE, FACTOR, RESAMPLE = 0.25, 1.25, 0.25
EPISODES = 100  # in the mean return


def check(settings: Population) -> None:
    """Refuse a task whose steps are no whole number of generations."""
    steps = settings.steps or TASKS[settings.task].steps
    if steps < settings.every or steps % settings.every:
        raise UserError(f"steps={steps:,} of {settings.task} is no multiple of every={settings.every:,}, the steps of "
                        "a generation: choose another every=.")


def run_bench(settings: Population, run: Run) -> dict[str, float]:
    """Train the population, then the independent runs; keep both in bench.json. Returns best and mean of both."""
    steps = settings.steps or TASKS[settings.task].steps
    rows = [*population(settings, steps, run)]
    alone = []
    for number in range(settings.members if settings.independent else 0):
        folder = run.path / "independent" / str(number)
        value, _ = _train(settings.task, _config(steps, settings.seed + number, {}), folder, None)
        alone.append(value)
        run.say(f"independent {number + 1} of {settings.members}: return {value:,.1f}")
    result = {"generations": rows, "independent": alone}
    (run.path / "bench.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    run.say(f"figures: {run.path / 'bench.json'}")
    ends = {"population": rows[-1]["returns"]} | ({"independent": alone} if alone else {})
    return {f"{name}/{what}": figure(values) for name, values in ends.items()
            for what, figure in (("best", max), ("mean", lambda values: sum(values) / len(values)))}


def population(settings: Population, steps: int, run: Run) -> list[dict[str, Any]]:
    """Train all generations; of each the settings, parents and returns of its members."""
    rng = random.Random(settings.seed)
    members, rows = first_generation(settings.members, RANGES, rng), []
    with tempfile.TemporaryDirectory(prefix="rearrange-population-") as place:
        kept: list[Path | None] = [None] * settings.members
        for generation in range(steps // settings.every):
            ended = []
            for number, member in enumerate(members):
                seed = settings.seed + generation * settings.members + number
                start = kept[member.parent] if member.parent is not None else None
                ended.append(_train(settings.task, _config(settings.every, seed, member.settings),
                                    Path(place) / f"{generation}_{number}", start))
            returns, kept = [value for value, _ in ended], [path for _, path in ended]
            rows.append({"returns": returns, "members": [vars(member) for member in members]})
            run.say(f"generation {generation + 1} of {steps // settings.every}: best {max(returns):,.1f}, mean "
                    f"{sum(returns) / len(returns):,.1f}   learning rates "
                    f"{', '.join(member.settings['learning_rate'] for member in members)}")
            members = next_generation(members, returns, RANGES, SHARE, FACTOR, RESAMPLE, rng)
    return rows


def _config(steps: int, seed: int, chosen: dict[str, str]) -> TrainConfig:
    from trainer import CollectConfig, PolicyConfig, PPOConfig, TrainConfig

    ppo = PPOConfig(learning_rate=float(chosen["learning_rate"]), clip=float(chosen["clip"]),
                    epochs=int(chosen["epochs"]), schedule="constant") if chosen else PPOConfig()
    return TrainConfig(steps=steps, seed=seed, log_every_s=1e-9, episode_window=EPISODES, torch_threads=1,
                       device="cpu", policy=PolicyConfig(), ppo=ppo, collect=CollectConfig(num_workers=1))


def _train(task: str, config: TrainConfig, folder: Path, start: Path | None) -> tuple[float, Path | None]:
    """The return of a run's last episodes, and its checkpoint."""
    from trainer import train

    result = train(TASKS[task].make, config, run_dir=folder, start_from=start)
    if result.reason != "complete":  # Ctrl-C or SIGTERM, which ends a training in good order
        raise KeyboardInterrupt
    returns = [row["episode/return"] for row in result.history if "episode/return" in row]
    return (returns[-1] if returns else float("-inf")), result.checkpoint


if __name__ == "__main__":
    sys.exit(run_as_command("population"))
