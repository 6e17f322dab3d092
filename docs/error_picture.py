"""Errors of navigation against steps of training, on logarithmic axes, as DD-PPO's Figure 1.

    python -m docs.error_picture outputs/train/pointnav/recipe_1,outputs/train/pointnav/recipe_2

Each word is a line of docs/images/pointnav_error.png. Runs with a comma between them are lessons that follow each
other: their steps add up. A point is the mean over the training episodes of a tenth of a decade. It is left out if
nothing failed, since a logarithmic axis has no zero.
"""

from __future__ import annotations

import json
import sys
from itertools import cycle
from pathlib import Path

import numpy as np

FILE = Path(__file__).resolve().parent / "images" / "pointnav_error.png"
PER_DECADE = 10
SHOWN = {"episode/success": "1 - success", "episode/spl": "1 - SPL"}


def errors(runs: list[Path], key: str) -> list[tuple[float, float]]:
    """(steps, one minus the mean of a figure) by tenths of a decade of all steps."""
    rows, before = [], 0
    for run in runs:
        found = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
        rows += [(before + row["step"], 1 - row[key]) for row in found if key in row]
        before += found[-1]["step"]
    steps, values = np.array(rows).T
    bins = np.floor(PER_DECADE * np.log10(steps))
    points = [(float(np.exp(np.log(steps[here]).mean())), float(values[here].mean()))
              for here in (bins == number for number in np.unique(bins))]
    return [point for point in points if point[1] > 0]


def main(trainings: list[list[Path]], file: Path = FILE) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, panel = pyplot.subplots(figsize=(6.4, 3.6), dpi=110)
    for runs, style in zip(trainings, cycle(("-", "--", ":"))):
        for number, (key, label) in enumerate(SHOWN.items()):
            told = label if runs is trainings[0] else None
            panel.loglog(*zip(*errors(runs, key)), style, color=f"C{number}", marker=".", label=told)
    panel.set(xlabel="steps of training", ylabel="error, sampled actions, training homes")
    panel.grid(which="both", color="0.92")
    panel.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(file)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main([[Path(run) for run in word.split(",")] for word in sys.argv[1:]])
