"""What `bench gym` shows of its runs: a table, and curves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from eval.intervals import bootstrap

NAMES = {"ours": "rearrange", "sb3": "SB3 PPO", "cleanrl": "SB3 PPO, CleanRL's settings", "recurrent": "RecurrentPPO"}
Runs = list[dict[str, Any]]


def groups(runs: Runs) -> dict[tuple[str, str], Runs]:
    """Runs by task and trainer, in their order."""
    found: dict[tuple[str, str], Runs] = {}
    for each in runs:
        found.setdefault((each["task"], each["trainer"]), []).append(each)
    return found


def figures(runs: Runs) -> dict[str, float]:
    """Mean return of the last 100 episodes, and microseconds of processor per step, of each trainer on each task."""
    out = {}
    for (task, trainer), same in groups(runs).items():
        out[f"{task}/{trainer}/return"] = float(np.mean(_last(same)))
        out[f"{task}/{trainer}/processor_us"] = float(np.mean([1e6 * each["cpu_s"] / each["steps"] for each in same]))
    return out


def as_text(runs: Runs) -> list[str]:
    """The table, as Markdown."""
    lines = ["| task | steps | trainer | return of the last 100 episodes | seeds | steps/s | us of processor per "
             "step |", "|---|---|---|---|---|---|---|"]
    for (task, trainer), same in sorted(groups(runs).items()):
        last = _last(same)
        low, high = bootstrap(last)
        lines.append(f"| {task} | {same[0]['steps']:,} | {NAMES[trainer]} | {np.mean(last):.4g} ({low:.4g} .. "
                     f"{high:.4g}) | {', '.join(f'{each:.4g}' for each in last)} | "
                     f"{np.mean([e['steps'] / e['wall_s'] for e in same]):,.0f} | "
                     f"{np.mean([1e6 * e['cpu_s'] / e['steps'] for e in same]):,.0f} |")
    return lines


def draw(runs: Runs, path: Path) -> None:
    """A picture per task: the mean over seeds of every trainer, with their range; nothing without matplotlib."""
    tasks = sorted({each["task"] for each in runs})
    try:
        import matplotlib
    except ImportError:
        return
    if not tasks:
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot

    columns = min(4, len(tasks))
    rows = -(-len(tasks) // columns)
    figure, axes = pyplot.subplots(rows, columns, figsize=(3.6 * columns, 2.8 * rows), squeeze=False)
    for axis in axes.flat[len(tasks) :]:
        axis.axis("off")
    for (task, trainer), same in groups(runs).items():
        axis = axes.flat[tasks.index(task)]
        grid = np.linspace(0, same[0]["steps"], 60)
        values = np.array([np.interp(grid, *np.array(each["curve"], float).T) for each in same])
        color = f"C{list(NAMES).index(trainer)}"
        axis.plot(grid, values.mean(0), color=color, label=NAMES[trainer])
        axis.fill_between(grid, values.min(0), values.max(0), color=color, alpha=0.15, linewidth=0)
        axis.set(title=task.replace("_", " "), xlabel="thousands of steps")
        axis.xaxis.set_major_formatter(lambda steps, _: f"{steps / 1000:g}")
    handles = {label: line for axis in axes.flat for line, label in zip(*axis.get_legend_handles_labels())}
    figure.legend(handles.values(), handles, loc="lower center", ncols=len(handles))
    figure.tight_layout(rect=(0, 0.08, 1, 1))
    figure.savefig(path, dpi=100)
    pyplot.close(figure)


def _last(runs: Runs) -> list[float]:
    return [each["curve"][-1][1] for each in runs]
