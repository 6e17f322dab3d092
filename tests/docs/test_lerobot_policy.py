"""docs/lerobot_policy.md: a policy of LeRobot, trained on recorded data and evaluated, where LeRobot is installed."""

from __future__ import annotations

import json
import os
import shlex
import socket
import subprocess

import pytest

from rearrange.command_line.cli import main
from tests.docs.markdown import HOME, blocks, commands
from tests.waiting import until

PAGE = HOME / "docs" / "lerobot_policy.md"
SMALL = ("--steps=2", "--save_freq=2", "--batch_size=2", "--num_workers=0", "--policy.device=cpu",
         "--policy.dim_model=32", "--policy.n_heads=2", "--policy.dim_feedforward=32")


def test_it_is_trained_served_and_evaluated_as_the_page_says(tmp_path, monkeypatch):
    python = os.environ.get("REARRANGE_LEROBOT_PYTHON")
    if not python:
        pytest.skip(f"REARRANGE_LEROBOT_PYTHON does not name the python of an environment with lerobot ({PAGE.name})")
    (record,) = (line for line in commands(PAGE) if "out=pick_rgb" in line)
    (evaluate,) = (line for line in commands(PAGE) if "sim.camera_size=96" in line and "agent=remote" in line)
    text = "\n".join(blocks(PAGE, "text")).replace("\\\n", " ")
    (train,) = (line for line in text.splitlines() if line.startswith("lerobot-train"))
    (server,) = (code for code in blocks(PAGE, "python") if "lerobot" in code)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    monkeypatch.chdir(tmp_path)
    assert main([*shlex.split(record.replace("episodes=150", "episodes=2"))[1:], "workers=1"]) == 0
    own = {**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(HOME)}
    done = subprocess.run([python, "-m", "lerobot.scripts.lerobot_train", *shlex.split(train)[1:], *SMALL], env=own,
                          capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    (tmp_path / "act_server.py").write_text(server.replace("8000", port))
    serving = subprocess.Popen([python, "act_server.py", "act/checkpoints/last/pretrained_model"], env=own)
    try:
        until(lambda: listens(int(port)), "the server to listen", 120.0, serving)
        words = shlex.split(evaluate.replace("8000", port))[1:]
        few = ["episodes=1", "workers=1", "skill.max_steps=35", "video=0", "name=act"]  # steps of a second chunk, too
        assert main([*words, *few]) == 0
    finally:
        serving.kill()
        serving.wait()
    assert json.loads((tmp_path / "outputs/eval/pick/act/metrics.json").read_text())["mean_steps"] == 35


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
