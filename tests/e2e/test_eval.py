"""rearrange eval: the policy that the shared run trained, and the baselines."""

from __future__ import annotations

import csv
import json
import math
import os
import re
import signal
import subprocess
import sys

import pytest

from tests.e2e.front_door import TINY, environment, finish, session_members, start, status, succeed, wait_until

SHORT = ("skill.max_steps=20", "sim.num_layouts=4", "workers=1")


def results(home, name):
    """metrics.json and the rows of episodes.csv."""
    folder = home / "outputs/eval/pick" / name
    with open(folder / "episodes.csv", newline="") as file:
        return json.loads((folder / "metrics.json").read_text()), list(csv.DictReader(file))


@pytest.fixture(scope="module")
def evaluated(trained):
    """Five episodes of the trained policy, two of them recorded."""
    out = succeed(trained.home, "eval", "skill=pick", "checkpoint=outputs/train/pick/tiny", "episodes=5", "video=2",
                  "name=seen", *SHORT)
    return trained.home, out


def test_figures_and_table_agree_with_the_episodes(evaluated):
    home, out = evaluated
    figures, rows = results(home, "seen")
    n = len(rows)
    wins = sum(int(row["success"]) for row in rows)
    assert n == figures["episodes"] == 5 and [int(row["index"]) for row in rows] == list(range(5))
    assert figures["success"] == wins / n
    low, high = figures["success_interval_95"]
    assert 0 <= low <= wins / n <= high <= 1 and high - low > 0.3  # five episodes say little
    assert math.isclose(figures["mean_steps"], sum(int(row["steps"]) for row in rows) / n)
    assert math.isclose(figures["mean_reward"], sum(float(row["reward"]) for row in rows) / n, abs_tol=1e-3)
    assert math.isclose(sum(figures["failures"].values()), 1 - wins / n)
    for row in rows:
        assert (row["failure"] == "") == (row["success"] == "1")
        assert row["scene"].startswith("val/")
    assert {key: figures[key] for key in ("skill", "agent", "split", "seed", "deterministic")} == {
        "skill": "pick", "agent": "policy", "split": "val", "seed": 0, "deterministic": False}
    assert re.search(rf"success +{wins / n:.1%} .*n = 5", out)
    assert all(f"failed: {reason}" in out for reason in figures["failures"])


def test_videos_play_and_show_every_step(evaluated):
    import imageio.v3 as iio

    from eval.video import HOLD_S

    home, _ = evaluated
    _, rows = results(home, "seen")
    files = sorted((home / "outputs/eval/pick/seen/videos").iterdir())
    assert [file.name.rsplit("_", 1)[0] for file in files] == ["episode_0000", "episode_0001"], files
    for file, row in zip(files, rows):
        assert file.name.endswith("_success.mp4" if row["success"] == "1" else "_failure.mp4")
        assert row["video"].endswith(file.name)
        frames = iio.imread(file)
        assert len(frames) == int(row["steps"]) + round(HOLD_S * 15)  # at half speed
        assert frames.shape[1:3] == (720, 1280) and frames.std() > 20
        assert iio.immeta(file)["fps"] == 15
        assert abs(frames[0].astype(int) - frames[int(row["steps"]) - 1]).max() > 50, "nothing moves"


def test_the_same_seed_gives_the_same_figures_however_many_processes_work(trained):
    words = ("eval", "skill=pick", "checkpoint=outputs/train/pick/tiny", "episodes=20", "skill.max_steps=8",
             "sim.num_layouts=4", "seed=5")
    succeed(trained.home, *words, "workers=1", "name=one")
    succeed(trained.home, *words, "workers=2", "name=two")
    assert results(trained.home, "one") == results(trained.home, "two")


@pytest.mark.parametrize("agent", ["random", "zero"])
def test_baselines_need_no_checkpoint(tmp_path, agent):
    out = succeed(tmp_path, "eval", "skill=pick", f"agent={agent}", "episodes=3", "name=base", *SHORT)
    figures, rows = results(tmp_path, "base")
    assert figures["agent"] == agent and figures["checkpoint"] is None and len(rows) == 3
    assert figures["success"] == 0.0 and f"agent {agent}" in out
    assert {row["video"] for row in rows} == {""} and not list((tmp_path / "outputs/eval/pick/base/videos").glob("*"))
    if agent == "zero":
        assert all(row["steps"] == "20" for row in rows)


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_an_evaluation_tidily(tmp_path, signum):
    """No orphan, no traceback, status "stopped", exit status 130; the signal reaches the command's process alone."""
    process = start(tmp_path, "eval", "skill=pick", "agent=zero", "episodes=5000", "workers=2", "name=long")
    wait_until(lambda: len(session_members(process.pid)) == 3, process)  # the command and its two workers
    os.kill(process.pid, signum)
    err = finish(process, 30).stderr
    assert process.returncode == 130 and err.strip() == "rearrange eval: stopped.", err
    assert not session_members(process.pid)
    assert '"stopped"' in (tmp_path / "outputs/eval/pick/long/status.json").read_text(encoding="utf-8")


def test_files_of_the_user_are_not_taken_for_ours(tmp_path):
    """Of processes that nobody has forked: there, ours would be imported already."""
    for name in ("trainer", "eval", "skills", "planner"):
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('this is mine')")
    for words in (("train", *TINY, "steps=128"),
                  ("eval", "skill=pick", "agent=zero", "episodes=17", "workers=2", *SHORT[:2])):
        done = subprocess.run([sys.executable, "-P", "-m", "rearrange", *words], cwd=tmp_path,
                              env=environment(tmp_path), capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def test_a_killed_process_ends_an_evaluation_with_a_sentence(tmp_path):
    process = start(tmp_path, "eval", "skill=pick", "agent=zero", "episodes=5000", "workers=2", "name=killed")
    run = tmp_path / "outputs/eval/pick/killed"
    wait_until(lambda: (run / "log.txt").exists() and "  success " in (run / "log.txt").read_text(), process)
    os.kill(max(set(session_members(process.pid)) - {process.pid}), signal.SIGKILL)
    done = finish(process, 30)
    assert done.returncode == 1 and done.stderr.startswith("rearrange eval: evaluation process "), done.stderr
    assert "was killed by SIGKILL" in done.stderr and "Traceback" not in done.stderr
    assert not session_members(process.pid)
    figures, rows = results(tmp_path, "killed")
    assert status(run) == "failed" and figures["interrupted"] is True and 0 < figures["episodes"] == len(rows)
