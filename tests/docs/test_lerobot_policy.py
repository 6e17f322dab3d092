"""A policy of LeRobot, trained on recorded data and evaluated remotely, as docs/remote.md says; where LeRobot is installed."""

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

PAGE = HOME / "docs" / "remote.md"
SMALL = ("--steps=2", "--save_freq=2", "--batch_size=2", "--num_workers=0", "--policy.device=cpu", "--policy.dim_model=32", "--policy.n_heads=2",
         "--policy.dim_feedforward=32")


def test_it_is_trained_served_and_evaluated_as_the_page_says(tmp_path, monkeypatch):
    python = os.environ.get("REARRANGE_LEROBOT_PYTHON")
    if not python:
        pytest.skip("REARRANGE_LEROBOT_PYTHON does not name the python of an environment with lerobot (docs/remote.md)")
    (record,) = (line for line in commands(PAGE) if "out=pick_rgb" in line)
    (evaluate,) = (line for line in commands(PAGE) if "sim.camera_size=96" in line and "agent=remote" in line)
    (train,) = (line for block in blocks(PAGE, "text") for line in block.replace("\\\n", " ").splitlines() if line.startswith("lerobot-train"))
    (server,) = (code for code in blocks(PAGE, "python") if "lerobot" in code)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    monkeypatch.chdir(tmp_path)
    assert main([*shlex.split(record.replace("episodes=150", "episodes=2"))[1:], "workers=1"]) == 0
    own = {**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(HOME)}
    done = subprocess.run([python, "-m", "lerobot.scripts.lerobot_train", *shlex.split(train)[1:], *SMALL], env=own, capture_output=True, text=True,
                          timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    (tmp_path / "act_server.py").write_text(server.replace("8000", port))
    serving = subprocess.Popen([python, "act_server.py", "act/checkpoints/last/pretrained_model"], env=own)
    try:
        wait_for(int(port), serving)
        words = shlex.split(evaluate.replace("8000", port))[1:]
        assert main([*words, "episodes=1", "workers=1", "skill.max_steps=35", "video=0", "name=act"]) == 0  # of a second chunk, too
    finally:
        serving.kill()
        serving.wait()
    assert json.loads((tmp_path / "outputs/eval/pick/act/metrics.json").read_text())["mean_steps"] == 35


def wait_for(port: int, server: subprocess.Popen) -> None:
    """Until somebody listens there."""
    def listens() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    until(listens, "the server to listen", 120.0, server)
