"""Training under a real SLURM: two nodes, one policy."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

from tests.cluster.slurm import Slurm, documented_script
from tests.e2e.front_door import TINY, checkpoint_steps, status, steps_logged

TWO = (*TINY, "trainer.rollout_steps=16")


def script(folder: Path, *lines: str, options: str = "") -> Path:
    """A batch script in a folder of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "job.sh"
    path.write_text("\n".join(["#!/bin/bash", *filter(None, [options]), *lines, ""]))
    return path


def train(*words: str, srun: str = "") -> str:
    return shlex.join([*srun.split(), "python", "-P", "-m", "rearrange", "train", *words])


def output(folder: Path, number: str) -> str:
    return (folder / f"slurm-{number}.out").read_text()


def test_srun_trains_one_policy_on_two_nodes(slurm: Slurm, tmp_path):
    done = slurm.run("srun", "-N2", "-n2", "--kill-on-bad-exit=1", "python", "-P", "-m", "rearrange", "train", *TWO,
                     "steps=128",
                     "name=two", timeout_s=300.0, directory=tmp_path)
    run = tmp_path / "outputs/train/pick/two"
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count("done: 128 steps") == 1 and "Traceback" not in done.stderr
    assert status(run) == "finished" and checkpoint_steps(run) == [128]


def test_a_plain_script_survives_a_requeue(slurm: Slurm, tmp_path):
    """Saved on SIGTERM, started again by SLURM, gone on with; a third start has nothing to do."""
    run = tmp_path / "outputs/train/pick/one"
    command = train(*TWO, "steps=4000", "name=one", srun="srun --kill-on-bad-exit=1")
    number = slurm.submit(script(tmp_path, command, options="#SBATCH --requeue --open-mode=append -N2 -n2"))
    slurm.wait(lambda: bool(steps_logged(run)), 240.0, "the first metrics")
    assert slurm.run("scontrol", "requeue", number).returncode == 0
    slurm.start_again(number)
    job = slurm.wait_for_end(number)
    told = output(tmp_path, number)
    assert job["JobState"] == "COMPLETED" and job["Restarts"] == "1", told[-3000:]
    assert told.count("stopped by SIGTERM") == 1 and told.count(f"continues {run.relative_to(tmp_path)}") == 1
    assert status(run) == "finished" and 4000 <= checkpoint_steps(run)[-1] < 4064
    assert steps_logged(run) == sorted(set(steps_logged(run)))
    again = slurm.run("bash", "-c", train(*TWO, "steps=4000", "name=one"), directory=tmp_path, SLURM_RESTART_COUNT="2")
    assert again.returncode == 0 and "nothing is left to do" in again.stdout


def test_a_warning_before_the_time_limit_is_a_requeue(slurm: Slurm, tmp_path):
    """#SBATCH --signal, which SLURM sends to all tasks: saved, asked for once, gone on with."""
    run = tmp_path / "outputs/train/pick/one"
    command = train(*TWO, "steps=4000", "name=one", "requeue=true", srun="srun")
    options = "#SBATCH --requeue --open-mode=append -N2 -n2 --time=5 --signal=USR1@30"
    number = slurm.submit(script(tmp_path, command, options=options))
    slurm.wait(lambda: bool(steps_logged(run)), 240.0, "the first metrics")
    # The time limit itself is a matter of minutes, and checked every 30 s: the same signal, sent now.
    assert slurm.run("scancel", "--signal=USR1", number).returncode == 0
    slurm.start_again(number)
    assert status(run) == "stopped"
    job = slurm.wait_for_end(number)
    told = output(tmp_path, number)
    assert job["JobState"] == "COMPLETED" and job["Restarts"] == "1", told[-3000:]
    assert told.count("stopped by SIGUSR1") == 1 and told.count(f"asked SLURM to start job {number} again") == 1
    assert "User defined signal" not in told and status(run) == "finished" and 4000 <= checkpoint_steps(run)[-1] < 4064


def test_a_warned_task_of_an_array_requeues_itself_alone(slurm: Slurm, tmp_path):
    """The task whose number is the array's too, for which `scontrol requeue` without the task would mean all three."""
    command = train(*TINY, "steps=100000", "requeue=true", srun="srun") + " name=task_$SLURM_ARRAY_TASK_ID"
    array = slurm.submit(script(tmp_path, command, options="#SBATCH --requeue --open-mode=append -n1"), "--array=0-2")
    runs = [tmp_path / f"outputs/train/pick/task_{task}" for task in range(3)]
    slurm.wait(lambda: all(steps_logged(run) for run in runs), 240.0, "the first metrics")
    shown = slurm.run("scontrol", "show", "job", "-o", array).stdout.splitlines()
    warned = next(word.split("=")[1] for line in shown if f"JobId={array} " in line for word in line.split()
                  if "ArrayTaskId=" in word)
    run = runs[int(warned)]
    assert slurm.run("scancel", "--signal=USR1", f"{array}_{warned}").returncode == 0
    slurm.wait(lambda: slurm.job(f"{array}_{warned}").get("JobState") == "PENDING", 60.0, "the task to be requeued")
    assert status(run) == "stopped"
    assert f"asked SLURM to start job {array}_{warned} again" in output(tmp_path, f"{array}_{warned}")
    others = [task for task in range(3) if task != int(warned)]
    assert [slurm.job(f"{array}_{task}").get("JobState") for task in others] == ["RUNNING", "RUNNING"]
    slurm.start_again(f"{array}_{warned}")
    slurm.wait(lambda: "continues outputs" in output(tmp_path, f"{array}_{warned}"), 240.0, "the task to go on")
    restarts = [slurm.job(f"{array}_{task}").get("Restarts") for task in range(3)]
    assert restarts == ["1" if task == int(warned) else "0" for task in range(3)]
    assert slurm.run("scancel", array).returncode == 0


def test_the_documented_script_survives_preemption_and_warnings(slurm: Slurm, tmp_path):
    (tmp_path / "train.sh").write_text(documented_script())
    words, run = [*TWO, "steps=6000", "name=two"], tmp_path / "outputs/train/pick/two"
    done = slurm.run("sbatch", "--parsable", "train.sh", *words, directory=tmp_path)
    assert done.returncode == 0, done.stderr
    number = done.stdout.strip()
    for number_of_starts, fault in enumerate((["scancel", "--signal=USR1", number], ["scontrol", "requeue", number]),
                                             1):
        told = steps_logged(run)[-1:] if number_of_starts > 1 else []
        slurm.wait(lambda: steps_logged(run)[-1:] != told, 240.0, "more metrics")
        assert slurm.run(*fault).returncode == 0
        slurm.start_again(number)
        assert status(run) == "stopped"
    job, told = slurm.wait_for_end(number), output(tmp_path, number)
    assert job["JobState"] == "COMPLETED" and job["Restarts"] == "2", told[-3000:]
    assert told.count(f"asked SLURM to start job {number} again") == 1
    assert told.count(" saved outputs/train/pick/two") == 2
    assert status(run) == "finished" and 6000 <= checkpoint_steps(run)[-1] < 6064 and "Traceback" not in told
    again = slurm.wait_for_end(slurm.run("sbatch", "--parsable", "train.sh", *words, directory=tmp_path).stdout.strip())
    assert again["JobState"] == "COMPLETED" and again["ExitCode"] == "0:0"


def test_srun_shares_the_episodes_of_an_evaluation(slurm: Slurm, tmp_path):
    done = slurm.run("srun", "-N2", "-n2", "python", "-P", "-m", "rearrange", "eval", "skill=pick", "agent=zero",
                     "sim.num_layouts=4",
                     "episodes=32", "workers=1", "skill.max_steps=20", "name=two", timeout_s=300.0, directory=tmp_path)
    assert done.returncode == 0 and done.stdout.count("eval pick  32/32 100%") == 1, (done.stdout, done.stderr)
    assert json.loads((tmp_path / "outputs/eval/pick/two/metrics.json").read_text())["episodes"] == 32


def test_a_partition_that_is_not_there_is_one_sentence_of_slurms(slurm: Slurm, tmp_path):
    (tmp_path / "train.sh").write_text(documented_script())
    done = slurm.run("sbatch", "--partition=gpu", "train.sh", *TWO, directory=tmp_path)
    assert done.returncode != 0 and "invalid partition" in done.stderr and not (tmp_path / "outputs").exists()


def test_a_node_that_does_not_see_the_run_is_told(slurm: Slurm, tmp_path):
    """The second rank stands in another directory, as if output= were a disk of its own."""
    for rank in (0, 1):
        (tmp_path / f"disk_{rank}").mkdir()
    command = f"cd {tmp_path}/disk_$SLURM_PROCID && exec {train(*TWO, 'steps=128', 'name=two')}"
    done = slurm.run("srun", "-N2", "-n2", "bash", "-c", command, timeout_s=300.0, directory=tmp_path)
    told = done.stdout + done.stderr
    assert done.returncode == 0 and told.count("does not see outputs/train/pick/two: ") == 1, told[-3000:]
    assert not (tmp_path / "disk_1/outputs").exists()
    assert checkpoint_steps(tmp_path / "disk_0/outputs/train/pick/two") == [128]
