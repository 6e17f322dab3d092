r"""Learning curves of several trainings in one picture: the mean over seeds, and their range.

    python -m docs.curves_picture flee.png episode/flee \
        "from scratch=outputs/train/flee/alone_*" "transfer=outputs/train/flee/transfer_*"

Arguments: the picture, the figure of metrics.jsonl that it shows, and for each line its name and run directories, one
for each seed.
"""

from __future__ import annotations

import glob
import json
import sys
from pathlib import Path

import numpy as np

POINTS = 50  # of a line


def curve(run: Path, key: str) -> tuple[np.ndarray, np.ndarray]:
    """Steps of training and the figure, where it was logged."""
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    found = [(row["step"], row[key]) for row in rows if key in row]
    if not found:
        raise SystemExit(f"{run}/metrics.jsonl has no {key}")
    return tuple(np.array(found, float).T)


def line(runs: list[Path], key: str) -> tuple[np.ndarray, np.ndarray]:
    """Steps (POINTS,) up to the end of the shortest run, and the figure of each run there, (runs, POINTS)."""
    curves = [curve(run, key) for run in runs]
    steps = np.linspace(max(steps[0] for steps, _ in curves), min(steps[-1] for steps, _ in curves), POINTS)
    return steps, np.array([np.interp(steps, *one) for one in curves])


def main(file: str, key: str, *lines: str) -> None:
    """Write the picture."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.ticker import EngFormatter

    figure, panel = pyplot.subplots(figsize=(5.2, 3.2), dpi=110)
    for word in lines:
        name, _, pattern = word.partition("=")
        runs = [Path(run) for run in sorted(glob.glob(pattern))]
        if not runs:
            raise SystemExit(f"{pattern} is no run directory")
        steps, values = line(runs, key)
        (drawn,) = panel.plot(steps, values.mean(0), label=name)
        panel.fill_between(steps, values.min(0), values.max(0), color=drawn.get_color(), alpha=0.15, linewidth=0)
    panel.set(xlabel="steps of training", ylabel=key.removeprefix("episode/").replace("_", " ").replace("spl", "SPL"))
    panel.xaxis.set_major_formatter(EngFormatter())
    panel.grid(color="0.92")
    panel.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(file)


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
