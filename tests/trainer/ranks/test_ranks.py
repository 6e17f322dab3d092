"""Several processes that learn one policy (gloo, CPU): the same parameters everywhere, and one end for all."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.e2e.warm import forked
from tests.trainer.ranks import rank_jobs
from tests.waiting import LIMIT_S, until
from trainer.checkpoint import list_checkpoints, load_checkpoint
from trainer.ranks.launch import RankInfo, first_host, this_rank
from trainer.ranks.ranks import _backend

ROOT = Path(__file__).parents[3]


def start(size: int, job: str, out: Path, *words: str) -> list[subprocess.Popen]:
    """`size` ranks as torchrun starts them."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    base = {k: v for k, v in os.environ.items() if not k.startswith("SLURM")}
    base |= {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    ranks = [{"RANK": str(r), "LOCAL_RANK": str(r), "WORLD_SIZE": str(size), "LOCAL_WORLD_SIZE": str(size),
              "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)} for r in range(size)]
    return [forked([job, str(out), *words], ROOT, base | rank, "tests.trainer.ranks.rank_jobs") for rank in ranks]


def finish(processes: list[subprocess.Popen], timeout_s: float = 300.0) -> list[tuple[int, str]]:
    """Exit status and standard error of each."""
    try:
        return [(p.wait(timeout_s), p.communicate()[1]) for p in processes]
    finally:
        for p in processes:
            if p.poll() is None:
                p.kill()


def run(size: int, job: str, out: Path, *words: str) -> None:
    ended = finish(start(size, job, out, *words))
    assert all(code == 0 for code, _ in ended), [text[-1500:] for _, text in ended]


@pytest.mark.parametrize("size, modes", [(2, ["ver", "ver+overlap", "ddppo", "nover", "hts", "appo"]), (4, ["ver"])])
def test_parameters_are_identical_after_every_update(tmp_path, size, modes):
    run(size, "identical", tmp_path, *modes)
    for mode in modes:
        seen = [json.loads((tmp_path / f"{mode}_{r}.json").read_text()) for r in range(size)]
        history = [[(u["parameters"], u["alpha"]) for u in rank["updates"]] for rank in seen]
        assert len(set(history[0])) == len(history[0]) >= 5  # every update changed them
        assert all(h == history[0] for h in history), mode
        total = sum(u["steps"] for rank in seen for u in rank["updates"])
        assert all(rank["steps"] == total and rank["reason"] == "complete" for rank in seen)
        assert seen[0]["logged"] and not any(rank["logged"] for rank in seen[1:]), "one rank writes"
        assert len(list_checkpoints(tmp_path / mode / "checkpoints")) == 1
        assert load_checkpoint(tmp_path / mode)["step"] == total
        if mode in ("nover", "hts", "appo"):
            assert {u["steps"] for rank in seen for u in rank["updates"]} == {64}


def test_an_auxiliary_loss_is_learned_by_all_ranks_alike(tmp_path):
    """CPC|A, with and without overlap: every gradient step leaves all ranks with the same weights, those of the loss
    too."""
    modes = ("ver", "ver+overlap")
    run(2, "auxiliary", tmp_path, *modes)
    for mode in modes:
        seen = [json.loads((tmp_path / f"{mode}_{r}.json").read_text()) for r in range(2)]
        first, second = ([update["parameters"] for update in rank["updates"]] for rank in seen)
        assert first == second and len(set(first)) == len(first) >= 8, mode
        weights = seen[0]["weights"]
        assert weights == seen[1]["weights"]
        assert len(set(weights)) == len(weights) >= len(first), "after every gradient step, all the same"
        assert seen[0]["losses"] != seen[1]["losses"]
        assert np.isfinite([rank["losses"] for rank in seen]).all(), "each of its own experience"


def test_a_callback_stops_all_ranks(tmp_path):
    """Asked by the first after its third update, all stop after the fourth, with the same network."""
    modes = ("ver", "ver+overlap", "nover", "ddppo", "hts", "appo")
    run(2, "stopped", tmp_path, *modes)
    for mode in modes:
        first, second = (json.loads((tmp_path / f"{mode}_{r}.json").read_text()) for r in (0, 1))
        assert len(first.pop("seen")) == 4 and second.pop("seen") == [] and first == second
        assert first["reason"] == "enough", mode
        content = load_checkpoint(tmp_path / mode)
        assert content["counters"]["updates"] == 4 and content["step"] == first["steps"]


def test_one_rank_is_no_ranks_bit_for_bit(tmp_path):
    rank_jobs.ordered(tmp_path)
    run(1, "ordered", tmp_path)
    assert (tmp_path / "ordered_True").read_text() == (tmp_path / "ordered_False").read_text()


@pytest.mark.parametrize("size", [2, 4])
def test_ranks_learn_like_one_process_with_the_same_total_batch(tmp_path, size):
    rank_jobs.fixed(tmp_path)
    run(size, "fixed", tmp_path)
    alone = torch.load(tmp_path / "fixed_1_0.pt")
    for rank in range(size):
        shared = torch.load(tmp_path / f"fixed_{size}_{rank}.pt")
        assert torch.allclose(shared["alpha"], alone["alpha"], atol=1e-6)
        for name, value in alone["policy"].items():
            assert torch.allclose(shared["policy"][name], value, atol=1e-5), name


@pytest.mark.parametrize("size, victim", [(2, 1), (4, 2), (2, 0)])
def test_a_rank_that_dies_ends_all_with_one_message(tmp_path, size, victim):
    processes = start(size, "forever", tmp_path)
    until(lambda: list_checkpoints(tmp_path / "checkpoints"), "the first checkpoint", process=processes[0])
    os.kill(int((tmp_path / f"pid_{victim}").read_text()), signal.SIGKILL)
    ended = finish(processes, LIMIT_S)
    assert [code for code, _ in ended] == [-signal.SIGKILL if r == victim else 1 for r in range(size)], ended
    told = [text for _, text in ended if f"rank {victim} (" in text]
    pid = processes[victim].pid
    assert len(told) == 1 and told[0].count(f"pid {pid}) died") == 1, ended
    assert all(torch.isfinite(v).all() for v in load_checkpoint(tmp_path)["policy"].values())
    assert not list(tmp_path.rglob("*.partial"))


@pytest.mark.parametrize("mode", ["ver", "nover", "hts", "appo"])
def test_ranks_that_have_no_time_left_for_their_rollout_save_what_they_learned(tmp_path, mode):
    processes = start(2, "signalled", tmp_path, mode)
    until((tmp_path / "step").exists, "the first update", process=processes[0])
    (tmp_path / "slow").touch()
    # the other may be done with its rollout, and wait for this one
    until(lambda: list(tmp_path.glob("slowly_*")), "a rank to be in a slow step", process=processes[0])
    for process in processes:
        process.send_signal(signal.SIGUSR1)
    ended = finish(processes, 60.0)
    assert [code for code, _ in ended] == [0, 0], ended
    reasons = [json.loads((tmp_path / f"ended_{rank}.json").read_text()) for rank in range(2)]
    assert [reason for reason, _ in reasons] == ["SIGUSR1", "SIGUSR1"]
    assert load_checkpoint(tmp_path)["step"] == reasons[0][1] > 0


@pytest.mark.parametrize("fault, words", [("raises", "rank 1 failed: environment worker"),
                                          ("bug", "rank 1 failed: shapes do not fit"),
                                          ("overflow",
                                           "rank 1 failed: the policy's output became NaN or infinite while it acted")])
def test_a_rank_that_fails_is_named_by_the_first(tmp_path, fault, words):
    ended = finish(start(2, "failing", tmp_path, fault), 60.0)
    assert [code for code, _ in ended] == [1, 1]
    assert ended[0][1].count(words) == 1 and ("the drawer fell out" in ended[0][1]) == (fault == "raises")
    assert "drawer" not in ended[1][1] and ("shapes" in ended[1][1]) == (fault == "bug")
    assert (tmp_path / "diverged_rank1.pt").exists() == (fault == "overflow")


def test_stragglers_are_preempted(tmp_path):
    """The slow rank gives less; under VER's rule its batch is filled with its previous rollout, in DD-PPO it is
    smaller."""
    modes = ("ver", "ver+overlap", "ddppo")
    run(2, "preempted", tmp_path, *modes)
    for mode in modes:
        fast, slow = (json.loads((tmp_path / f"{mode}_{r}.json").read_text()) for r in (0, 1))
        assert [u["parameters"] for u in fast] == [u["parameters"] for u in slow]
        assert any(u["steps"] < 64 for u in slow[2:])
        assert sum(u["steps"] for u in slow) < sum(u["steps"] for u in fast), mode
        for rank in (fast, slow):
            for before, u in zip([{"steps": 0}, *rank], rank):
                assert u["distinct"] == u["batch"]
                assert u["batch"] == (u["steps"] if mode == "ddppo" else min(64, u["steps"] + before["steps"]))
        if mode == "ddppo":
            assert all(u["steps"] >= 16 for u in slow), "at least a quarter of T"


@pytest.mark.parametrize("gpus, backend", [
    (["a", "b"], "nccl"), (["a", "a"], "gloo"), ([None, None], "gloo"), (["a", None], "gloo"), (["a"], "nccl"),
    (["a", "b", "a"], "gloo")])
def test_ranks_that_share_a_gpu_or_have_none_meet_by_gloo(gpus, backend):
    """Also where each sees one GPU alone, as of srun --gpus-per-task=1: what counts is which."""
    store = torch.distributed.HashStore()
    with ThreadPoolExecutor(len(gpus)) as pool:
        chosen = pool.map(lambda rank: _backend(store, RankInfo(rank, len(gpus), 0, 1, "here"), gpus[rank]),
                          range(len(gpus)))
        assert list(chosen) == [backend] * len(gpus)


def test_torchruns_variables():
    torchrun = {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4",
                "MASTER_ADDR": "gpu1", "MASTER_PORT": "29500"}
    assert this_rank(torchrun) == RankInfo(5, 8, 1, 4, "gpu1", 29500)
    assert this_rank(torchrun | {"TORCHELASTIC_RUN_ID": "7"}).job == "torchrun's job 7"
    assert this_rank({}) == RankInfo() and not this_rank({}).launched
    with pytest.raises(ValueError, match="rank 8 of 8"):
        this_rank(torchrun | {"RANK": "8"})


def test_the_rank_is_read_from_submitits_variables():
    """Of its local executor: several processes on this machine."""
    local = {"SUBMITIT_EXECUTOR": "local", "SUBMITIT_LOCAL_JOB_ID": "41234", "SUBMITIT_LOCAL_NTASKS": "2",
             "SUBMITIT_LOCAL_GLOBALID": "1", "SUBMITIT_LOCAL_LOCALID": "1"}
    assert this_rank(local) == RankInfo(1, 2, 1, 2, "127.0.0.1", 0, "submitit's job 41234")
    assert this_rank(local | {"SUBMITIT_LOCAL_NTASKS": "1"}) == RankInfo()


def test_the_rank_is_read_from_slurms_variables():
    srun = {"SLURM_JOB_ID": "4242", "SLURM_STEP_ID": "0", "SLURM_PROCID": "9", "SLURM_LOCALID": "1",
            "SLURM_STEP_NUM_TASKS": "16",
            "SLURM_STEP_TASKS_PER_NODE": "8(x2)", "SLURM_STEP_NODELIST": "gpu[003-004]"}
    assert this_rank(srun) == RankInfo(9, 16, 1, 8, "gpu003", 0, "SLURM's job 4242 step 0")
    assert this_rank(srun | {"SLURM_RESTART_COUNT": "1"}).job == "SLURM's job 4242 step 0 restart 1"
    assert this_rank({"SLURM_JOB_ID": "1", "SLURM_NTASKS": "16", "SLURM_PROCID": "0"}) == RankInfo(), "no srun: alone"
    assert this_rank(srun | {"MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "5000"}) == RankInfo(
        9, 16, 1, 8, "10.0.0.1", 5000, "SLURM's job 4242 step 0")
    for nodes, host in (("a,b", "a"), ("node[1,3-5]", "node1"), ("rack[01-02]-cpu,x", "rack01-cpu"), ("one", "one")):
        assert first_host(nodes) == host


def test_a_port_that_is_none_is_one_sentence():
    with pytest.raises(ValueError, match="MASTER_PORT=99999 is no port"):
        this_rank({"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "99999"})


@pytest.mark.parametrize("variable, value", [("RANK", "-1"), ("WORLD_SIZE", "two"), ("MASTER_PORT", "port")])
def test_a_launchers_variable_that_makes_no_sense_is_one_sentence(variable, value):
    said = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500", variable: value}
    out = subprocess.run([sys.executable, "-m", "rearrange", "train", "skill=pick"], cwd=ROOT, env=os.environ | said,
                         capture_output=True, text=True)
    assert out.returncode == 2 and out.stderr == (
        f"rearrange train: the environment variable {variable}={value} is not a whole number; "
        "torchrun and srun set it, else unset it.\n")
