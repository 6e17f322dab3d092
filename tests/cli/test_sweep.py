"""`-m`: one directory per job, a table, an exit status, and nothing done twice."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rearrange.command_line.cli import main
from rearrange.launchers import job

HOME = Path(__file__).resolve().parents[2]


@pytest.fixture
def launched(work, monkeypatch):
    """Jobs run in this process; `launched` lists their words."""
    words = []
    monkeypatch.setattr(job, "launch_process", lambda typed, *_: (words.append(typed), main(typed))[1])
    return words


def test_one_directory_per_job_and_a_table(front_door, launched):
    status, out, _ = front_door("train -m skill=pick seed=0,1 ppo.clip=0.1,0.2 name=clip")
    assert status == 0 and len(launched) == 4
    assert sorted(p.name for p in Path("outputs/train/pick").glob("clip*")) == [
        f"clip_seed-{s}_clip-{c}" for s in (0, 1) for c in (0.1, 0.2)
    ]
    table = out.strip().splitlines()[-4:]
    assert all("finished" in row and "success 0.75" in row for row in table)
    assert "seed=1 ppo.clip=0.2" in table[-1]


def test_finished_jobs_are_skipped(front_door, launched):
    front_door("train -m skill=pick seed=0,1")
    launched.clear()
    status, out, _ = front_door("train -m skill=pick seed=0,1,2")
    assert status == 0 and [word for words in launched for word in words if word.startswith("seed=")] == ["seed=2"]
    assert out.count("finished before") >= 2


def test_a_failed_job_fails_the_sweep_and_not_the_others(front_door, launched):
    status, out, _ = front_door("train -m skill=pick seed=13,1")
    assert status == 1 and "failed (2)" in out and len(launched) == 2
    assert Path("outputs/train/pick/seed-1/status.json").exists()


def test_a_stopped_sweep_is_continued_with_resume(front_door, launched, work):
    def interrupt(config, run):
        raise KeyboardInterrupt

    work.behave = interrupt
    status, out, _ = front_door("train -m skill=pick seed=0,1")
    assert status == 130 and len(launched) == 1 and "not started" in out
    work.behave = lambda config, run: {}
    status, _, err = front_door("train -m skill=pick seed=0,1")
    assert status == 2 and "resume=true" in err
    launched.clear()
    assert front_door("train -m skill=pick seed=0,1 resume=true")[0] == 0
    assert ["resume=true" in words for words in launched] == [True, False]


def test_a_sweep_of_evaluations_says_what_it_can_do(front_door, launched):
    """There is no resume= to advise, and an evaluation without its figures is none."""
    line = "eval -m skill=pick agent=random,zero name=a"
    assert front_door(line)[0] == 0
    Path("outputs/eval/pick/a_agent-random/metrics.json").unlink()
    launched.clear()
    status, _, err = front_door(line)
    assert status == 2 and not launched and "resume" not in err and "Remove it" in err and "name=" in err
    shutil.rmtree("outputs/eval/pick/a_agent-random")
    assert front_door(line)[0] == 0 and len(launched) == 1 and "resume=true" not in launched[0]


def test_nothing_starts_if_any_job_is_wrong(front_door, launched):
    status, _, err = front_door("train -m skill=pick ppo.clip=0.1,0")
    assert status == 2 and "ppo.clip=0" in err and not launched


def test_another_sweep_needs_another_name(front_door, launched):
    front_door("train -m skill=pick seed=0,1 steps=10")
    launched.clear()
    status, _, err = front_door("train -m skill=pick seed=0,1 steps=20")
    assert status == 2 and "steps: 10 -> 20" in err and "name=" in err and not launched


def test_optuna_asks_for_jobs_by_their_figures_and_a_second_time_for_none(front_door, launched, work):
    pytest.importorskip("hydra_plugins.hydra_optuna_sweeper")
    work.behave = lambda config, run: {"episode/success": 1 - abs(config.ppo.clip - 0.2)}
    line = "train -m skill=pick ppo.clip=interval(0.1,0.9) seed=1,2 hydra/sweeper=optuna objective=success hydra.sweeper.n_trials=5 name=o"
    status, out, _ = front_door(line)
    assert status == 0 and len(launched) == 5, out
    clips = [float(word.split("=")[1]) for words in launched for word in words if word.startswith("ppo.clip=")]
    best = min(clips, key=lambda clip: abs(clip - 0.2))
    assert f"ppo.clip={best}" in out.strip().splitlines()[-1] and "best success" in out
    assert f"ppo.clip: {best}" in Path("outputs/sweeps/train_o/optimization_results.yaml").read_text()
    launched.clear()
    status, out, _ = front_door(line)  # the same seed asks for the same jobs
    assert status == 0 and not launched and out.count("finished before") == 5


def test_a_job_of_optuna_that_fails_does_not_end_the_others_and_one_that_is_stopped_does(front_door, launched, work):
    pytest.importorskip("hydra_plugins.hydra_optuna_sweeper")
    line = "train -m skill=pick seed=13,13,1 hydra/sweeper=optuna hydra/sweeper/sampler=random objective=success hydra.sweeper.n_trials=6"
    status, out, _ = front_door(line)
    assert status == 1 and "failed (2)" in out and len(launched) > 1 and "best success 0.75: seed=1" in out

    def interrupt(config, run):
        raise KeyboardInterrupt

    work.behave = interrupt
    launched.clear()
    assert front_door(line.replace("13,13,1", "2,3,4"))[0] == 130 and len(launched) == 1


@pytest.mark.parametrize("words, said", [
    ("seed=0,1 hydra/launcher=jobli", ("hydra/launcher", "jobli", "Did you mean hydra/launcher=joblib?", "submitit_slurm")),
    ("seed=0,1 hydra/launcher=absent", ("'absent'", "Choices: basic")),
    ("seed=0,1 hydra.launcher.partition=gpu", ("hydra.launcher.partition",)),
    ("seed=0,1 hydra.run.dir=x", ("hydra.run.dir=x", "hydra.launcher.")),
    ("seed=0,1 hydra/sweeper=optuna", ("hydra/sweeper=optuna", "objective=success")),
    ("ppo.clip=interval(0,1) hydra/sweeper=optuna objective=success", ("ppo.clip=0.0",)),
    ("seed=interval(0,9) hydra/sweeper=optuna objective=success", ("seed=5.19", "an integer")),
    ("ppo.clip=interval(0.1,1)", ("ppo.clip", "hydra/sweeper=optuna")),
])
def test_a_mistake_in_the_launcher_or_the_sweeper_is_one_sentence(front_door, launched, words, said):
    pytest.importorskip("hydra_plugins.hydra_optuna_sweeper")
    status, _, error = front_door(f"train -m skill=pick {words}")
    assert status == 2 and all(part in error for part in said) and "\n" not in error.strip(), error
    assert not launched and not list(Path().iterdir())


def test_a_launcher_that_is_not_installed_is_named_with_its_package(front_door, launched, monkeypatch):
    from hydra.core.config_store import ConfigStore

    monkeypatch.delitem(ConfigStore.instance().repo["hydra"]["launcher"], "joblib.yaml", raising=False)
    status, _, error = front_door("train -m skill=pick seed=0,1 hydra/launcher=joblib")
    assert status == 2 and "hydra-joblib-launcher" in error and "rearrange[cluster]" in error and not launched


@pytest.mark.parametrize("line, said", [
    ("train skill=pick hydra/launcher=joblib", "add -m"),
    ("train skill=pick objective=success", "add -m"),
    ("eval skill=all objective=success", "add -m"),
    ("list hydra/launcher=joblib", "list has no jobs"),
])
def test_words_about_jobs_need_jobs(front_door, launched, line, said):
    status, _, error = front_door(line)
    assert status == 2 and said in error and not launched


def test_one_job_is_a_sweep_where_a_launcher_is_named(front_door, launched):
    assert front_door("train -m skill=pick hydra/launcher=basic name=one")[0] == 0 and len(launched) == 1
    assert Path("outputs/train/pick/one/status.json").exists()


def test_a_job_is_a_process_of_its_own(tmp_path):
    """The real launch, up to a mistake that each job finds by itself."""
    trap = tmp_path / "trainer"
    trap.mkdir()
    (trap / "__init__.py").write_text("raise SystemExit('imported from the working directory')")
    call = "launch_process(['train', 'skill=pick', 'name=../x'])"
    code = f"import sys; from rearrange.runs.processes import launch_process; sys.exit({call})"
    environment = {**os.environ, "PYTHONPATH": str(HOME)}
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], cwd=tmp_path, capture_output=True, text=True, env=environment
    )
    assert done.returncode == 2 and "name=../x" in done.stderr


def test_skill_all_trains_every_skill_and_goes_on_where_it_stopped(front_door, launched, work):
    from skills import SKILLS

    status, out, _ = front_door("train skill=all policy=blind")
    assert status == 0 and [next(w for w in words if w.startswith("skill=")) for words in launched] == [
        f"skill={name}" for name in sorted(SKILLS)]
    assert all(Path(f"outputs/train/{name}/all/status.json").exists() for name in SKILLS)
    assert out.count("skill=navigate  ") >= len(SKILLS)  # the table is shown after every skill
    launched.clear()
    status, out, _ = front_door("train skill=all policy=blind")
    assert status == 0 and not launched and out.count("finished before") >= len(SKILLS)


def test_skill_all_shows_its_settings_as_any_other_training(front_door):
    status, out, _ = front_door("train skill=all experiment=laptop --cfg job")
    assert status == 0 and "steps: 5000000" in out
    assert front_door("train skill=all --help")[0] == 0


PARENT = """
import subprocess, sys
from rearrange.runs import processes
real = subprocess.Popen
processes.subprocess.Popen = lambda command, **how: real([sys.executable, "-c", sys.argv[1]], **how)
sys.exit(processes.launch_process([]))
"""
CHILD = """
import os, signal, sys, time
from rearrange.runs.lifeline import follow_parent
def end(signum, _):
    print(signal.Signals(signum).name, flush=True)
    came.append(signum)
came = []
for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
    signal.signal(signum, end)
follow_parent()
print(os.getpid(), flush=True)
while not came:
    time.sleep(0.01)
time.sleep(0.3)
print("saved", "REARRANGE_LIFELINE" in os.environ, flush=True)
sys.exit(75 if signal.SIGUSR1 in came else 3)
"""


@pytest.mark.parametrize("signum, whom, said, code", [
    (signal.SIGINT, "parent", "SIGINT", 130),
    (signal.SIGTERM, "parent", "SIGTERM", 130),
    (signal.SIGHUP, "parent", "SIGHUP", 130),
    (signal.SIGUSR1, "parent", "SIGUSR1", 75),
    (signal.SIGINT, "group", "SIGINT", 130),  # Ctrl-C in a terminal
    (signal.SIGKILL, "parent", "SIGTERM", -9),
    (signal.SIGKILL, "group", "SIGTERM", -9),
])
def test_a_job_gets_every_signal_once_and_does_not_outlive_the_sweep(signum, whom, said, code):
    process = subprocess.Popen([sys.executable, "-c", PARENT, CHILD], cwd=HOME, stdout=subprocess.PIPE, text=True,
                               start_new_session=True, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL))
    assert int(process.stdout.readline()) != process.pid
    os.kill(process.pid, signum) if whom == "parent" else os.killpg(process.pid, signum)
    out, _ = process.communicate(timeout=20)  # until the child, too, has closed the pipe
    assert out.split("\n") == [said, "saved False", ""] and process.returncode == code


def test_a_sweep_goes_on_without_its_screen(launched, work, monkeypatch):
    from tests.cli.test_front_door import Broken

    monkeypatch.setattr(sys, "stdout", Broken(32))
    assert main(["train", "-m", "skill=pick", "seed=0,1"]) == 0 and len(launched) == 2


def test_a_sweep_that_its_scheduler_starts_again_goes_on(front_door, work, launched, monkeypatch):
    def interrupt(config, run):
        raise KeyboardInterrupt

    monkeypatch.setenv("SLURM_RESTART_COUNT", "1")
    work.behave = interrupt
    front_door("train skill=pick seed=1 name=seed-1")
    work.behave = lambda config, run: {}
    assert front_door("train -m skill=pick seed=0,1")[0] == 0
    assert len(launched) == 2 and work.calls[-1][2].resumed
    assert front_door("train -m skill=pick seed=0,1")[0] == 0 and len(launched) == 2
