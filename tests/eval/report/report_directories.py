"""Directories in the form that `rearrange train` and `rearrange eval` leave, with made-up figures."""

from __future__ import annotations

import csv
import json
import math
import subprocess
from pathlib import Path

import numpy as np

from eval.intervals import wilson


def write_run(path: Path, config: str, overrides: list[str], command_ended: float = 1_760_000_000.0) -> Path:
    """What all runs have: settings, code version, status."""
    path.mkdir(parents=True)
    (path / "videos").mkdir()
    (path / "config.yaml").write_text(config)
    (path / "overrides.yaml").write_text("".join(f"- {word}\n" for word in overrides))
    (path / "git.txt").write_text("0123456789abcdef0123456789abcdef01234567 2026-01-01T00:00:00+00:00\nA "
                                  "message\n## main\n")
    (path / "git.diff").write_text("")
    (path / "status.json").write_text(json.dumps({"status": "finished", "result": {}, "time": command_ended}))
    return path


def write_rows(file: Path, rows: list[dict[str, object]]) -> None:
    """A table with the union of the columns."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    with open(file, "w", newline="", encoding="utf-8") as opened:
        table = csv.DictWriter(opened, columns, restval="")
        table.writeheader()
        table.writerows(rows)


def training(path: Path, seed: int, rows: int = 40, top: float = 0.8) -> Path:
    """A training run of pick whose success grows to about `top`."""
    words = ["skill=pick", f"seed={seed}", f"name={path.name}"]
    write_run(path, f"seed: {seed}\nname: {path.name}\nskill:\n  name: pick\npolicy:\n  top: {top}\n", words)
    noise = np.random.default_rng(seed).normal(0, 0.03, rows)
    table = [{"step": 5000 * (i + 1), "steps_per_s": 2000 + 3000 * noise[i]} for i in range(rows)]
    for i, row in enumerate(table[1:], 1):  # no episode is over at the first row
        row["episode/success"] = min(1.0, max(0.0, top * (1 - math.exp(-4 * i / rows)) + noise[i]))
        row["episode/return"] = 100 * row["episode/success"] - 10
    write_rows(path / "metrics.csv", table)
    return path


def skill_evaluation(path: Path, agent: str = "policy", successes: int = 30, episodes: int = 40) -> Path:
    """An evaluation of pick; of the episodes without success every third broke the force limit."""
    write_run(path, "skill:\n  name: pick\n", ["skill=pick", f"agent={agent}", "video=2"])
    rows = []
    for i in range(episodes):
        won = i % episodes < successes
        failure = "" if won else "force_limit" if i % 3 == 0 else "time_limit"
        rows.append({"index": i, "episode_id": f"pick/val/{i}", "scene": f"val/{i % 5}", "success": int(won),
                     "failure": failure, "steps": 200 - 3 * i, "reward": f"{10 * won - i / 7:.4f}", "video": "",
                     "reward/slack": -0.01 * i})
    failures = {
        reason: sum(row["failure"] == reason for row in rows) / episodes for reason in ("time_limit", "force_limit")
    }
    figures = {
        "skill": "pick",
        "agent": agent,
        "checkpoint": "outputs/train/pick/a/checkpoints/step_1.pt",
        "split": "val",
        "seed": 0,
        "deterministic": False,
        "episodes": episodes,
        "success": successes / episodes,
        "success_interval_95": wilson(successes, episodes),
        "failures": failures,
        "mean_steps": 141.5,
    }
    (path / "metrics.json").write_text(json.dumps(figures))
    write_rows(path / "episodes.csv", rows)
    return path


def scenario_evaluation(path: Path, agent: str, shares: list[float], episodes: int = 100,
                        scenario: str = "tidy_house") -> Path:
    """An evaluation of a scenario; `shares` after pick 1, place 1, pick 2, ..."""
    write_run(path, f"hab:\n  name: {scenario}\n", [f"hab={scenario}", f"agent={agent}"])
    (path / "plan.txt").write_text("1 navigate(object_1)\n2 pick(object_1)\n")
    names = [f"{('pick', 'place')[i % 2]} {i // 2 + 1}" for i in range(len(shares))]
    reached = [sum(i < share * episodes for share in shares) for i in range(episodes)]
    rows = []
    for i in range(episodes):
        won = reached[i] == len(shares)
        rows.append({"index": i, "episode_id": f"{scenario}/{i}", "scene": f"val/{i % 7}", "success": int(won),
                     "stage": reached[i], "ended_in": "" if won else ("navigate", "pick", "place")[i % 3], "reason": ""
                     if won else "time_limit", "steps": 900 + 13 * i, "video": "", "handoff_m": f"{0.01 * i:.2f}"})
    ends = {
        f"{skill}: time_limit": sum(row["ended_in"] == skill for row in rows) / episodes
        for skill in ("navigate", "pick", "place")
    }
    wins = sum(row["success"] for row in rows)
    figures = {
        "scenario": scenario,
        "agent": agent,
        "episodes": episodes,
        "split": "val",
        "seed": 0,
        "success": wins / episodes,
        "success_interval_95": wilson(wins, episodes),
        "success_015": max(0, wins - 3) / episodes,
        "interactions": [
            {"name": name, "success": share, "interval_95": wilson(round(share * episodes), episodes)}
            for name, share in zip(names, shares, strict=True)
        ],
        "ends": {key: value for key, value in ends.items() if value},
        "mean_steps": 1543.5,
        "mean_simulated_s": 51.4,
    }
    (path / "metrics.json").write_text(json.dumps(figures))
    write_rows(path / "episodes.csv", rows)
    return path


def add_video(run: Path, index: int, name: str, codec: str = "libx264", seconds: float = 2.0) -> Path:
    """A small video of a growing square, named in the row of an episode; libvpx-vp9 plays in every Chromium."""
    import imageio_ffmpeg

    file = run / "videos" / name
    frames, size = round(10 * seconds), 64
    pictures = np.zeros((frames, size, size, 3), np.uint8)
    for i in range(frames):
        pictures[i, : 3 * i + 4, : 3 * i + 4] = (200, 120, 40)
    subprocess.run([imageio_ffmpeg.get_ffmpeg_exe(), "-v", "error", "-f", "rawvideo", "-pix_fmt", "rgb24", "-s",
                    f"{size}x{size}", "-r", "10", "-i", "-", "-c:v", codec, "-pix_fmt", "yuv420p", str(file)],
                   input=pictures.tobytes(), check=True)
    with open(run / "episodes.csv", newline="", encoding="utf-8") as opened:
        rows = list(csv.DictReader(opened))
    rows[index]["video"] = f"outputs/elsewhere/videos/{name}"  # the run may have been moved since
    write_rows(run / "episodes.csv", rows)
    return file
