"""`python -m benchmarks.scaling`: what several ranks gain, and what preemption of slow ranks gives back.

Gradients are averaged over ranks, so every rollout lasts as long as the slowest rank collects. Three ways to end it are
compared: wait for all, DD-PPO's rule (60 % of the ranks are done), and VER's (the S that maximises S / (Time(S) + L)).

    model      2 to 256 ranks in the model of `benchmarks/collection_model.py`, with the engine's own planning of S;
    `best` is the
               same maximum with the times that the rollout really took, which no rule can know
    measured   1 to `measured_ranks` ranks of this machine, sleeping environments, the whole engine
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks import run as run_as_command
from benchmarks.collection_model import LONGEST, RULES, Workload, variable
from benchmarks.engine import START_UP_S, run_process
from benchmarks.engine_bounds import mean
from benchmarks.step_trace import cut, read_traces
from benchmarks.synthetic_env import PRESETS, StepCost
from eval.intervals import bootstrap
from rearrange.home.errors import UserError
from trainer.machine import memory_bytes

if TYPE_CHECKING:
    from benchmarks.settings import Scaling
    from rearrange.command_line.runs.run_directory import Run

NAMES = {"none": "no preemption", "ddppo": "DD-PPO's rule", "ver": "VER's rule", "best": "best in hindsight"}
COLORS = {"none": "tab:gray", "ddppo": "tab:orange", "ver": "tab:blue", "best": "black"}
MEASURED = {"none": "none", "ddppo": "fraction", "ver": "optimal"}  # rule -> trainer.preemption


def check(settings: Scaling) -> None:
    """Refuse more steps than fit into memory."""
    steps = (settings.model_ranks * settings.num_envs * LONGEST * settings.rollout_steps
             * (settings.rollouts + 2))
    wanted, there = 8 * steps, memory_bytes()
    if wanted > there:
        factors = " x ".join(f"{key}={getattr(settings, key)}"
                             for key in ("model_ranks", "num_envs", "rollout_steps", "rollouts"))
        raise UserError(f"the step times of {factors} would take {wanted / 1e9:,.1f} GB of memory, and this "
                        f"machine has {there / 1e9:,.1f} GB: choose less.")


def run_bench(settings: Scaling, run: Run) -> dict[str, float]:
    """Print both tables, write bench.json and, with matplotlib, bench.png."""
    cost = workload(settings)
    result: dict[str, Any] = {"settings": {k: v for k, v in vars(settings).items() if k != "sim"},
                              "cost": vars(cost)}
    result["model"] = model(cost, settings, run.say)
    result["measured"] = measured(cost, settings, run) if settings.measured_ranks else {}
    (run.path / "bench.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    draw(result, run.path / "bench.png")
    run.say(f"figures: {run.path / 'bench.json'}")
    most = str(max(map(int, result["model"])))
    return {f"model/{rule}/share_at_{most}_ranks": row["share_of_best"]["mean"]
            for rule, row in result["model"][most].items()}


def workload(settings: Scaling) -> StepCost:
    """The preset with spread between environments, as on machines and in scenes that are not alike."""
    return StepCost(**(vars(PRESETS[settings.preset]) | {"sigma_env": settings.sigma_env}))


def model(cost: StepCost, settings: Scaling, say: Any) -> dict[str, Any]:
    """ranks -> rule -> steps/s per rank, share of `best`, share of T x N that is collected: mean and interval over
    seeds.
    """
    table: dict[str, Any] = {}
    say(f"{'ranks':>6}" + "".join(f"{NAMES[rule]:>24}" for rule in RULES) + "     steps/s per rank (share of the best)")
    for ranks in [n for n in (1, 2, 4, 8, 16, 32, 64, 128, 256) if n <= settings.model_ranks]:
        work = Workload(cost, ranks, settings.num_envs, settings.rollout_steps, settings.learn_s)
        runs: dict[str, Any] = {rule: [] for rule in RULES}
        for s in range(settings.seeds):
            times = work.step_times(settings.seed + s, settings.rollouts + 2)
            for rule, function in RULES.items():
                runs[rule].append(variable(work, function, times))
        runs = {rule: np.array(values) for rule, values in runs.items()}
        table[str(ranks)] = {rule: {
            "steps_per_s_per_rank": _interval(values[:, 0] / ranks), "collected_share": _interval(values[:, 1]),
            "share_of_best": _interval(values[:, 0] / runs["best"][:, 0])} for rule, values in runs.items()}
        say(f"{ranks:>6}" + "".join(f"{row['steps_per_s_per_rank']['mean']:>15.0f} "
                                    f"({100 * row['share_of_best']['mean']:5.1f} %)"
                                    for row in table[str(ranks)].values()))
    return table


def measured(cost: StepCost, settings: Scaling, run: Run) -> dict[str, Any]:
    """ranks -> rule -> steps/s of all ranks together, from the traces: mean and interval over repeats."""
    table: dict[str, Any] = {}
    sizes = [n for n in (1, 2, 4, 8) if n <= settings.measured_ranks]
    values: dict[tuple[int, str], list[float]] = {}
    rng = np.random.default_rng(settings.seed)
    for repeat in range(settings.repeats):
        cells = [(ranks, rule) for ranks in sizes for rule in (MEASURED if ranks > 1 else ("none",))]
        for ranks, rule in [cells[i] for i in rng.permutation(len(cells))]:
            run.say(f"repeat {repeat + 1} of {settings.repeats}: {ranks} ranks, {NAMES[rule]}")
            folder = run.path / "jobs" / f"{repeat}_{ranks}_{rule}"
            values.setdefault((ranks, rule),
                              []).append(run_ranks(cost, settings, ranks, rule, settings.seed + repeat, folder))
    for (ranks, rule), found in sorted(values.items()):
        table.setdefault(str(ranks), {})[rule] = _interval(found)
    alone = table["1"]["none"]["mean"]
    for ranks, row in table.items():
        run.say(f"{ranks:>3} ranks  " + "   ".join(
            f"{NAMES[rule]} {v['mean']:,.0f} steps/s, {v['mean'] / alone:.2f} x one rank" for rule, v in row.items()))
    return table


def run_ranks(cost: StepCost, settings: Scaling, ranks: int, rule: str, seed: int, folder: Path) -> float:
    """Steps/s of all ranks of one run, from the end of the first update to that of the last."""
    file = write_job(cost, settings, ranks, rule, seed, folder)
    run_process(["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}", "-m",
                 "benchmarks.engine_job", str(file)], folder / "log.txt", START_UP_S)
    return pace(folder, ranks)


def write_job(cost: StepCost, settings: Scaling, ranks: int, rule: str, seed: int, folder: Path,
              **more: Any) -> Path:
    """The file of a job that `ranks` processes of benchmarks/engine_job.py run together."""
    scale, envs, steps = settings.time_scale, settings.measured_envs, settings.measured_steps
    job = {"system": "ver", "env": "synthetic", "cost": vars(cost.scaled(scale)), "burn": "sleep", "image_size": 16,
           "network": "linear", "device_time": "v100",
           "time_scale": scale * settings.learn_s / 1.5 * 2048 / (envs * steps), "num_envs": envs,
           "num_workers": envs, "inference_workers": 1, "rollout_steps": steps, "epochs": 3, "mini_batches": 2,
           "learning_rate": 2.5e-4, "torch_threads": 1, "warm_up_updates": 1, "seconds": 1e9, "seed": seed,
           "traces": str(folder / "traces"), "preemption": MEASURED[rule], "updates": settings.updates + 1} | more
    for rank in range(ranks):
        (folder / "traces" / str(rank)).mkdir(parents=True)
    (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")
    return folder / "job.json"


def pace(folder: Path, ranks: int) -> float:
    """Steps/s of all ranks of a run that is over."""
    updates = json.loads((folder / "result.json").read_text(encoding="utf-8"))["updates"]
    begin, end = updates[0]["end_s"], updates[-1]["end_s"]
    taken = sum(t.steps for rank in range(ranks)
                for t in cut(read_traces(folder / "traces" / str(rank)), begin, end))
    figures = {"seconds": end - begin, "steps": taken, "learn_s": mean(updates[1:], "learn_s")}
    (folder / "figures.json").write_text(json.dumps(figures), encoding="utf-8")
    return taken / (end - begin)


def _interval(values: Any) -> dict[str, Any]:
    values = np.asarray(values, float)
    low, high = bootstrap(values)
    return {"mean": float(values.mean()), "low": low, "high": high, "values": values.tolist()}


def draw(result: dict[str, Any], path: Path) -> bool:
    """Steps/s per rank over ranks, model and measured; nothing without matplotlib."""
    try:
        import matplotlib
    except ImportError:
        return False
    matplotlib.use("Agg")
    from matplotlib import pyplot

    tables = [("model: % of the best end in hindsight", result["model"], lambda row: row["share_of_best"],
               lambda ranks: 0.01)]
    if result["measured"]:
        tables.append(("measured: steps/s per rank", result["measured"], lambda row: row, lambda ranks: ranks))
    figure, panels = pyplot.subplots(1, len(tables), figsize=(5.5 * len(tables), 3.6), squeeze=False)
    for axes, (title, table, pick, divisor) in zip(panels[0], tables):
        for rule in RULES:
            points = [(int(ranks), pick(row[rule])) for ranks, row in table.items() if rule in row]
            if not points:
                continue
            x = [ranks for ranks, _ in points]
            low, mid, high = ([p[key] / divisor(ranks) for ranks, p in points] for key in ("low", "mean", "high"))
            axes.plot(x, mid, "--" if rule == "best" else "o-", color=COLORS[rule], label=NAMES[rule], markersize=4)
            axes.fill_between(x, low, high, color=COLORS[rule], alpha=0.15)
        axes.set_xscale("log", base=2)
        axes.set_xticks([int(ranks) for ranks in table], list(table))
        axes.set(xlabel="ranks", title=title)
        axes.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
    return True


if __name__ == "__main__":
    sys.exit(run_as_command("scaling"))
