"""Ranks that come and go while a training runs: torchrun --nnodes=1:2."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys

from tests.e2e.front_door import checkpoint_steps, environment, finish, status, steps_logged, wait_until
from tests.e2e.test_ranks import TWO, port, ranks_of, saved


def test_a_node_joins_and_is_lost(tmp_path):
    """torchrun --nnodes=1:2: one rank, two, one again; the run is one run."""
    run, rendezvous = tmp_path / "outputs/train/pick/elastic", port()
    # torch 2.13's agents wait for each other for ever when a node joins, unless each start has a store of its own.
    shared = environment(tmp_path) | {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
    command = [sys.executable, "-m", "torch.distributed.run", "--nnodes=1:2", "--nproc-per-node=1",
               "--rdzv-backend=c10d",
               f"--rdzv-endpoint=127.0.0.1:{rendezvous}", "--rdzv-id=1", "--rdzv-conf=last_call_timeout=1",
               "--max-restarts=5",
               "-m", "rearrange", "train", *TWO, "steps=2560", "checkpoint_every_s=0.5", "name=elastic", "resume=auto",
               "ppo.entropy_target=0.5", "ppo.entropy_coef=0.01"]

    def node() -> subprocess.Popen:
        return subprocess.Popen(command, cwd=tmp_path, env=shared, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True,
                                start_new_session=True)

    log = run / "log.txt"
    first = node()
    wait_until(lambda: bool(saved(run)), first, 240.0)
    second = node()
    wait_until(lambda: log.read_text().count(" continues ") == 1, first, 240.0)
    alone = steps_logged(run)[-1]
    wait_until(lambda: steps_logged(run)[-1] > alone + 200, first, 240.0)
    lost = [second.pid, *ranks_of(second)]
    for process in lost:
        os.kill(process, signal.SIGKILL)
    done = finish(first, 300.0)
    finish(second)
    assert done.returncode == 0, done.stderr[-3000:]
    assert log.read_text().count(" continues ") == 2 and f" ({socket.gethostname()}, pid {lost[1]}) died" in done.stderr
    assert status(run) == "finished" and 2560 <= checkpoint_steps(run)[-1] < 2560 + 64
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    steps, rates = [row["step"] for row in rows], [row["learn/learning_rate"] for row in rows]
    assert steps == sorted(set(steps)) and rates == sorted(rates, reverse=True), "one curve, one schedule"
    assert rates[-1] < 0.01 * rates[0]
    # the entropy is above its target all the time; the first rollout alone is measured, not learned from
    coefficients = [row["learn/entropy_coef"] for row in rows[1:]]
    assert 0.0 < coefficients[-1] < coefficients[0]
    assert coefficients == sorted(coefficients, reverse=True), "kept by each restart"
    for key in ("episodes", "updates", "wall_s"):
        assert [row[key] for row in rows] == sorted(row[key] for row in rows), key
