"""How far the goals of PointNav are.

`python -m docs.navigation_picture [episode files of Habitat]` writes docs/images/navigation.png and prints a table.

A line for each size of home and, where a file is given, as Gibson's val.json.gz, one for its episodes.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np

from rearrange.navigation import make_env
from rearrange.navigation.habitat_episodes import EDGES_M, EDGES_RATIO, read_habitat_episodes

FILE = Path(__file__).resolve().parent / "images" / "navigation.png"
EPISODES, HOMES = 500, 40
HABITAT_2019_M = (2, 12)  # which "the dataset is dominated by", its validation episodes in Gibson: DD-PPO, section 5.2


def ours(size: str, split: str) -> tuple[np.ndarray, np.ndarray]:
    """Of the first episodes: metres to drive, and how many times as long that is as the straight line."""
    env = make_env("pointnav", size=size, split=split, num_homes=HOMES, depth_size=0)
    rows = []
    for index in range(EPISODES):
        env.reset(options={"episode": index})
        far_m = env.task.shortest_m
        rows.append((far_m, far_m / math.dist(env.episode.start[:2], env.episode.goal)))
    return tuple(np.array(rows).T)


def row(name: str, values: np.ndarray, edges: tuple[float, ...]) -> str:
    """A row of the table: the share of episodes in each bin."""
    shares = np.histogram(np.maximum(values, edges[0]), (*edges, math.inf))[0] / len(values)
    return f"| {name} | {values.mean():.2f} | " + " | ".join(f"{share:.0%}" for share in shares) + " |"


def main(files: list[str]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    of = {f"{size} homes": ours(size, "val") for size in ("small", "large")}
    for file in files:
        episodes = read_habitat_episodes(file)
        of[Path(file).name] = np.array([e.shortest_m for e in episodes]), np.array([e.ratio for e in episodes])
    figure, panels = pyplot.subplots(1, 2, figsize=(9, 3), dpi=110)
    for k, (panel, edges, label) in enumerate(zip(panels, (np.arange(0, 31), np.arange(1, 2.55, 0.05)),
                                                  ("metres to drive", "driving / straight line"))):
        for name, values in of.items():
            percent = np.full(len(values[k]), 100 / len(values[k]))
            panel.hist(np.minimum(values[k], edges[-1]), edges, weights=percent, histtype="step", label=name,
                       linewidth=1.6)
        panel.set_xlabel(label)
        panel.set_ylabel("% of episodes")
    panels[0].axvspan(*HABITAT_2019_M, color="0.92", label="most of Gibson's (2019)")
    panels[0].legend(frameon=False, fontsize=8)
    figure.tight_layout()
    figure.savefig(FILE)
    for k, edges in ((0, EDGES_M), (1, EDGES_RATIO)):
        print("\n".join(row(name, values[k], edges) for name, values in of.items()))


if __name__ == "__main__":
    main(sys.argv[1:])
