"""What a person sees: the introduction, help, mistakes, exit statuses; and that answers bring nothing heavy with
them.
"""

from __future__ import annotations

import errno
import io
import logging
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rearrange import __version__
from rearrange.command_line import sweep_jobs
from rearrange.command_line.cli import COMMANDS
from rearrange.command_line.composition.parse_overrides import compose

HOME = Path(__file__).resolve().parents[2]
HEAVY = ("torch", "mujoco", "numba", "gymnasium", "wandb", "numpy")


def test_alone_it_introduces_itself_and_starts_nothing(front_door, work):
    status, out, err = front_door("")
    assert status == 0 and not err and not work.calls
    assert 8 <= len(out.strip().splitlines()) <= 14
    assert not [command for command in COMMANDS if not re.search(rf"(rearrange|\|) {command}\b", out)]


def test_version(front_door):
    assert front_door("--version")[:2] == (0, f"rearrange {__version__}\n")


MISTAKES = {
    "trian skill=pick": "'train'",
    "--versio": "'--version'",
    "train skill=pik": "skill=pick",
    "train skill=": "Choices:",
    "train skil=pick": "'skill'",
    "train pick": "skill=pick",
    "train --multirum": "--multirun",
    "train skill=pick ppo.learning_rat=1e-3": "'ppo.learning_rate'",
    "train skill=pick +ppo.learning_rat=1e-3": "'ppo.learning_rate'",
    "train skill=pick ++ppo.learning_rat=1e-3": "'ppo.learning_rate'",
    "train skill=pick learning_rate=1e-3": "'ppo.learning_rate'",
    "train skill=pick ppo.lr=1e-3": "'ppo.learning_rate'",
    "train skill=pick num_envs=4": "'trainer.num_envs'",
    "train skill=pick +seed=1": "without the +",
    "train +skill=pick": "without the +",
    "train skill=pick ~seed": "cannot be removed",
    "train skill=pick ~seed=0": "cannot be removed",
    "train skill=pick ~ppo": "cannot be removed",
    "train skill=pick ppo@x=fast": "ppo=value",
    "train skill=pick policy=ligth": "policy=light",
    "train skill=pick policy=null": "Choices:",
    "train skill=pick ppo=3": "Choices:",
    "train skill=pick ppo.x=[1,2": "cannot read",
    "train skill=pick seed=${": "cannot read",
    "train skill=pick seed=${oc.env:NO_SUCH_VARIABLE}": "NO_SUCH_VARIABLE",
    "train skill=pick steps=0": "greater than 0",
    "train skill=pick steps=-5": "greater than 0",
    "train skill=pick steps=many": "an integer",
    "train skill=pick steps=1.5": "an integer",
    "train skill=pick steps=null": "an integer",
    "train skill=pick seed=true": "an integer",
    "train skill=pick ppo.discount=1.5": "from 0 to 1",
    "train skill=pick ppo.clip=nan": "a number",
    "train skill=pick ppo.schedule=cosin": "cosine",
    "train skill=navigate ppo.imitation_coef=-1": "ppo.imitation_coef=-1",
    "train skill=pick ppo.imitation_coef=1": "which skill pick does not have",
    "train skill=all ppo.imitation_coef=1":
        "does not have: set it to 0, or train skill=navigate or nav=pointnav or nav=objectnav.",
    "train nav=flee ppo.imitation_coef=1": "which navigation task flee does not have",
    "train hab=set_table ppo.imitation_coef=1": "which scenario set_table does not have",
    "train skill=pick ppo.entropy_bounds=3": "a list of 2 numbers",
    "train skill=pick policy.skip=maybe": "true",
    "train skill=pick trainer=[ver]": "Choices:",
    "train skill=pick skill.reward_scales=3": "skill.reward_scales.distance",
    "train skill=pick skill.reward_scales={distanc:3}": "'skill.reward_scales.distance'",
    "train skill=pick logger.wandb.mode=online": "logger=wandb",
    "train skill=pick hydra.run.dir=x": "hydra.run.dir",
    "train skill=pick seed=1,2": "add -m",
    "train -m skill=pick": "seed=0,1,2",
    "train -m skill=pick seed=interval(0,1)": "list its values",
    "train -m skill=pick,plac seed=1": "no skill called 'plac'",
    "train": "skill=pick",
    "train seed=1": "skill=pick",
    "train skill=pick name=../up": "name=",
    "train skill=pick name=latest": "latest",
    "train skill=pick resume=true": "no run at",
    "train --cfg hydra": "--cfg job",
    "train --cfg": "--cfg job",
    "eval": "skill=pick",
    "eval skill=pick episodes=0": "greater than 0",
    "eval skill=pick agent=polcy": "policy",
    "eval skill=pick ppo.clip=1": "unknown key",
    "bench": "Choices: gym, navigation, sim, train",
    "bench smi": "bench=sim",
    "bench engine": "engine is measured in a clone of the repository: python -m benchmarks.engine",
    "train skill=pick skill.rest_position_m=[nan,0,1]": "and finite",
    "train skill=pick skill.reward_scales.success=inf": "and finite",
    "train skill=pick ppo.learning_rate=inf": "and finite",
    "train skill=pick name=${ppo}": "name=${ppo} is not allowed: that is a group of settings",
    "eval skill=pick agent=random video=${sim}": "video=${sim} is not allowed: that is a group of settings",
    "train skill=pick sim.robot=a.urdf": "sim.robot=a.urdf: a URDF is for sim=habitat, as sim.robot_urdf=",
    "train skill=pick sim.base_speed_m_s=1e30": "at most 100",
    "train skill=pick ppo.entropy_bounds=[1]": "a list of 2 numbers",
    "train skill=pick episode_window=1e30": "at most 1000000",
    "train skill=pick torch_threads=1e10": "at most 1024",
    "train skill=pick seed=1e30": "from 0 to 4294967295",
    "train skill=pick policy.log_std_min=3 policy.log_std_max=2": "policy.log_std_max=2.0",
    "train skill=pick trainer.max_batch=1 trainer.min_batch=2": "trainer.min_batch=2 is greater",
    "train skill=pick skill.action_parts=[arm,arm]": "each once",
    "train skill=pick skill.action_parts=[arm,gripp]": "Did you mean grip?",
    "train skill=pick policy=blind skill.observation_keys=[depth]": "nothing to see",
    "train skill=pick naïve=1": "'naïve' cannot be a key",
    "train skill=pick seed=0,": "beside a comma",
    "train skill=pick seed=choice()": "in the parentheses",
    "train -m skill=pick name=a:b,c":
        "name=a:b is not allowed: use at most 200 letters a to z, digits, spaces and - _ . , = +",
    "train skill=pick checkpoint=nowhere": "no checkpoint at nowhere",
    "train -m skill=pick checkpoint=a,b": "no checkpoint at a",
    "eval skill=pick agent=random checkpoint=nope": "agent=random takes no checkpoint=nope",
    "eval skill=pick agent=zero checkpoint=nope": "agent=zero takes no checkpoint=nope",
    "eval skill=pick agent=expert checkpoint=pretrained": "agent=expert takes no checkpoint=pretrained",
    "eval skill=pick agent=pretrained checkpoint=nope": "agent=pretrained takes no checkpoint=nope",
    "eval skill=all agent=tp_srl episodes=1": "agent=tp_srl is for hab=",
    "reproduce seed=0,1": "reproduce has no sweeps",
    "reproduce -m seed=0,1": "reproduce has no sweeps: leave -m out",
    "list -m output=a,b": "list has no sweeps: leave -m out",
    "list x=1": "unknown key",
    "report x=1": "unknown key",
    "--install-completion tcsh": "bash",
    # habits of Stable-Baselines3, CleanRL, ManiSkill, Habitat and LeRobot
    "train --skill pick": "Did you mean skill=pick?",
    "train --env=pick": "Did you mean skill=pick?",
    "eval --task tidy_house": "Did you mean hab=tidy_house?",
    "train skill=pick --lr 1e-3": "Did you mean ppo.learning_rate=1e-3?",
    "train skill=pick --num-envs 4": "Did you mean trainer.num_envs=4?",
    "train skill=pick --wandb": "Did you mean logger=wandb?",
    "train task=pick": "Did you mean skill=pick?",
    "train habitat.task=pick": "Did you mean skill=pick?",
    "train env_id=rearrange/Pick-v0": "Did you mean 'skill'?",
    "eval scenario=set_table": "Did you mean hab=set_table?",
    "train skill=pick total_timesteps=1e6": "Did you mean 'steps'?",
    "train skill=pick max_steps=1e6": "Did you mean 'steps'?",
    "train skill=pick n_steps=128": "Did you mean 'trainer.rollout_steps'?",
    "train skill=pick algo=sac": "unknown key 'algo'. The engine has PPO only",
    "train skill=pick policy.type=act": "unknown key 'policy.type'. A policy of LeRobot or OpenPI acts behind a server",
    "train skill=pick --policy.type=act": "A policy of LeRobot or OpenPI acts behind a server",
    "train skill=pick learning_starts=100": "the engine has PPO only",
    "train skill=pick verbose=1": "Did you mean 'log_every_s'?",
    "train skill=pick data_path=x": "Did you mean 'sim.episodes'?",
    "eval skill=pick evaluate=true": "unknown key 'evaluate'. 'rearrange eval --help'",
    "view headless=true": "unknown key 'headless'. 'rearrange view --help'",
    "record skill=pick agent=teleop": "Did you mean 'rearrange view agent=teleop'?",
    "train skill=pick algo=ppo": "Did you mean trainer=ver?",
    "train skill=pick gpu=0": "Did you mean device=cuda?",
    "train skill=pick wandb=true": "Did you mean logger=wandb?",
    "train skill=pick wandb.enable=true": "Did you mean logger=wandb?",
    "train skill=pick logger.wandb=true": "Did you mean logger=wandb?",
    "train skill=pick n_envs=4": "Did you mean 'trainer.num_envs'?",
    "train skill=pick gamma=0.9": "Did you mean 'ppo.discount'?",
    "train skill=pick render=true": "Did you mean 'rearrange view'?",
    "eval skill=pick render_mode=human": "Did you mean 'rearrange view'?",
    "eval skill=pick capture_video=true": "Did you mean video=3?",
    "eval skill=pick ckpt=x": "Did you mean 'checkpoint'?",
    "eval skill=pick policy.path=x": "Did you mean 'checkpoint'?",
    "eval skill=pick n_eval_episodes=3": "Did you mean 'episodes'?",
    "train skill=pick n_eval_episodes=3": "Did you mean 'eval_episodes'?",
    "train skill=pick output_dir=x": "Did you mean 'output'?",
    "record skill=pick repo_id=me/x": "Did you mean 'out'?",
    "eval skill=pick agent=foo": "it must be policy, pretrained, expert, random, zero, remote, package.module:Name or",
    "eval hab=set_table agent=foo": "tp_srl, tp_srl_nonav, monolithic, tp_spa, expert, random, zero or null.",
    "eval nav=pointnav agent=foo": "policy, pretrained, random, forward, goal_follower, map, oracle, remote, package",
}


def test_words_of_other_programs_lead_to_settings_that_there_are():
    """Each of them is one of some command, and no such word is a setting itself there."""
    from rearrange.command_line.composition.options import COMMANDS as OF
    from rearrange.command_line.composition.options import groups
    from rearrange.command_line.composition.other_words import CALLED, meant
    from rearrange.command_line.composition.parse_overrides import every_key

    known = {command: {*every_key(command), *groups(command)} for command in OF}
    for here, others in CALLED.items():
        heads = [command for command in OF if here.partition("=")[0] in known[command]]
        assert heads or here.removeprefix("rearrange ") in COMMANDS, here
        for word in others.split():
            assert not [command for command in heads if word in known[command]], word
            assert not heads or any(meant(word, command, known[command]) for command in heads)


@pytest.mark.parametrize("line", MISTAKES)
def test_a_mistake_is_one_line_with_a_way_out(front_door, work, tmp_path, line):
    status, out, err = front_door(line)
    assert status == 2 and not out and not work.calls
    assert err.startswith("rearrange") and len(err.strip().splitlines()) == 1, err
    assert MISTAKES[line] in err
    assert not list(tmp_path.iterdir()), "something was written"


@pytest.mark.parametrize(
    "line",
    [
        "train --help",
        "train -h skill=pick",
        "eval --help",
        "bench --help",
        "bench sim --help",
        "report --help",
        "reproduce --help",
        "list --help",
        "view --help",
        "serve --help",
        "scenes --help",
        "help train",
    ],
)
def test_help_explains_every_key_and_hides_hydra(front_door, work, line, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    status, out, err = front_door(line)
    assert status == 0 and not err and not work.calls
    ours = out.replace("hydra/launcher=", "").replace("hydra/sweeper=", "")
    assert out.startswith("usage: rearrange") and "hydra" not in ours.lower()
    shown = [row for row in out.splitlines() if row.startswith("  ") and "=" in row.split()[0] and "[" in row]
    assert shown or "list" in line
    if line == "train --help":
        assert "ppo.learning_rate=" in out and "Adam" in out and "policy=resnet18" in out and "paper" in out


def test_cfg_job_prints_settings_and_choices(front_door, work):
    from omegaconf import OmegaConf

    status, out, _ = front_door("train skill=pick seed=3 ppo.clip=0.1 --cfg job")
    config = OmegaConf.create(out)
    assert status == 0 and not work.calls
    assert config.seed == 3 and config.ppo.clip == 0.1 and config.skill.name == "pick" and "hydra" not in config
    assert "skill=pick" in out.splitlines()[0]


def test_work_gets_the_checked_settings(front_door, work):
    assert front_door("train skill=pick steps=1e5 ppo.clip=1 name=12")[0] == 0
    _, config, run = work.calls[0]
    assert config.steps == 100_000 and type(config.steps) is int
    assert type(config.ppo.clip) is float
    assert run.path == Path("outputs/train/pick/12") and run.checkpoints.is_dir()


def test_bench_takes_its_measurement_as_a_word(front_door, work):
    assert front_door("bench sim seconds=1")[0] == 0
    settings = work.calls[0][1].written
    assert settings["what"] == "sim" and settings["seconds"] == 1.0


def test_report_takes_directories_as_words(front_door, work):
    assert front_door(["report", "outputs/train/pick/seed=1", "~/it's", "out=r.html"])[0] == 0
    config = work.calls[0][1]
    assert list(config.runs) == ["outputs/train/pick/seed=1", os.path.expanduser("~/it's")] and config.out == "r.html"


def test_list_names_skills_simulators_and_runs(front_door):
    front_door("train skill=pick name=one")
    status, out, _ = front_door("list")
    assert status == 0 and "pick" in out and "mujoco" in out and "train/pick/one" in out and "75%" in out


def test_a_crash_keeps_its_traceback_and_is_recorded(front_door, work):
    def crash(config, run):
        raise RuntimeError("boom")

    work.behave = crash
    with pytest.raises(RuntimeError, match="boom"):
        front_door("train skill=pick name=crashed")
    run = Path("outputs/train/pick/crashed")
    assert '"failed"' in (run / "status.json").read_text()
    assert "RuntimeError: boom" in (run / "log.txt").read_text()


def test_ctrl_c_is_exit_status_130(front_door, work):
    def interrupt(config, run):
        raise KeyboardInterrupt

    work.behave = interrupt
    status, _, err = front_door("train skill=pick name=stopped")
    assert status == 130 and "Traceback" not in err
    assert '"stopped"' in Path("outputs/train/pick/stopped/status.json").read_text()


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="no terminal to close")
def test_a_closed_terminal_ends_a_command_tidily(front_door, work, monkeypatch):
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    work.behave = lambda config, run: os.kill(os.getpid(), signal.SIGHUP) or {}
    try:
        assert front_door("train skill=pick name=closed")[0] == 130
        assert '"stopped"' in Path("outputs/train/pick/closed/status.json").read_text()
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # nohup
        assert front_door("train skill=pick name=nohup")[0] == 0
    finally:
        signal.signal(signal.SIGHUP, before)


class Broken(io.StringIO):
    """A stream that cannot be written."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.error = OSError(number, os.strerror(number))

    def write(self, text):
        raise self.error


@pytest.mark.parametrize("number", [errno.EIO, errno.EPIPE, errno.ENOSPC])
def test_nobody_to_print_to_does_not_end_a_run(front_door, monkeypatch, number):
    monkeypatch.setattr(sys, "stdout", Broken(number))
    assert front_door("train skill=pick name=a")[0] == 0
    log = Path("outputs/train/pick/a/log.txt").read_text()
    assert "working" in log and log.count("warning: standard output cannot be written") == 1


@pytest.mark.parametrize("line", ["--help", "train --help", "list", "train skill=pick --cfg job"])
def test_an_answer_that_nobody_can_read_is_no_answer(front_door, monkeypatch, line):
    monkeypatch.setattr(sys, "stdout", Broken(errno.ENOSPC))
    status, _, err = front_door(line)
    assert status == 1 and err == "rearrange: standard output cannot be written: No space left on device.\n"
    monkeypatch.setattr(sys, "stdout", Broken(errno.EPIPE))  # | head
    assert front_door(line) == (0, "", "")


def test_warnings_of_the_parts_are_in_the_log(front_door, work):
    work.behave = lambda config, run: logging.getLogger(
        "trainer.callbacks").warning("checkpoint not written") or {}
    assert front_door("train skill=pick name=a")[0] == 0
    assert "warning: checkpoint not written" in Path("outputs/train/pick/a/log.txt").read_text()


def test_a_full_disk_is_one_sentence(front_door, work):
    def full(config, run):
        raise OSError(errno.ENOSPC, "No space left on device")

    work.behave = full
    status, _, err = front_door("train skill=pick name=a")
    assert status == 1 and len(
        err.splitlines()) == 1 and "outputs/train/pick/a cannot be written: No space left on device" in err
    assert '"failed"' in Path("outputs/train/pick/a/status.json").read_text()


def test_a_mistake_found_by_the_work_is_one_line_too(front_door, tmp_path):
    status, _, err = front_door("train skill=pick seed=13")
    assert status == 2 and err == "rearrange train: nothing works with seed 13.\n" and not list(tmp_path.iterdir())


def test_paths_and_names_may_hold_any_character(front_door, work, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / "my run (2)" / "seed=0's"
    folder.mkdir(parents=True)
    for file in (folder / "a.pt", tmp_path / "a.pt", tmp_path / "a,b c.pt"):
        file.touch()
    front_door(["eval", "skill=pick", "checkpoint=my run (2)/seed=0's/a.pt"])
    assert work.calls[0][1].checkpoint == "my run (2)/seed=0's/a.pt"
    front_door(["eval", "skill=pick", "checkpoint=~/a.pt", "name=second"])
    assert work.calls[1][1].checkpoint == os.path.expanduser("~/a.pt")
    jobs = sweep_jobs.plan("eval", ["skill=pick", "checkpoint='a,b c.pt',a.pt"])
    assert [front_door(list(job.words))[0] for job in jobs] == [0, 0] and work.calls[2][1].checkpoint == "a,b c.pt"


@pytest.mark.parametrize(
    "line", ["--help", "train --help", "train skill=pick ppo.learning_rat=1", "train skill=pick --cfg job", "--version"]
)
def test_answers_are_quick_and_import_nothing_heavy(line):
    """What is imported is their time: 320 modules, Hydra's, are a quarter of a second; torch alone brings a
    thousand.
    """
    done = subprocess.run([sys.executable, "-X", "importtime", "-m", "rearrange", *line.split()], cwd=HOME,
                          capture_output=True, text=True)
    imported = re.findall(r"^import time: .*\| +(\S+)$", done.stderr, re.M)
    assert 10 < len(imported) < 400 and not set(HEAVY) & set(imported), done.stderr


def test_python_dash_m_and_a_closed_pipe():
    done = subprocess.run(
        f"{sys.executable} -m rearrange train --help | head -1", shell=True, cwd=HOME, capture_output=True, text=True
    )
    assert done.stdout.startswith("usage: rearrange train") and not done.stderr
    buffered = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}
    nobody = subprocess.Popen([sys.executable, "-m", "rearrange", "--version"], cwd=HOME, env=buffered,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    nobody.stdout.close()  # before anything is written: the last buffer, too, finds nobody
    assert nobody.stderr.read() == b"" and nobody.wait() == 0
    bad = subprocess.run([sys.executable, "-m", "rearrange", "trian"], cwd=HOME, capture_output=True, text=True)
    assert bad.returncode == 2


@pytest.mark.parametrize("words, released", [
    ("skill=open_cabinet", 0.0),
    ("skill=open_cabinet experiment=laptop", 5.0),
    ("skill=open_fridge experiment=laptop skill.reward_scales.released=2", 2.0),  # what is typed comes last
    ("skill=close_fridge experiment=laptop", 0.0),
])
def test_an_experiment_can_set_something_for_single_skills(words, released):
    config = compose("train", words.split())
    assert config.value("skill.reward_scales.released") == released and "of_skill" not in config.config
    assert config.value("ppo.imitation_coef") == 0


def test_the_laptop_lets_navigate_imitate_its_expert():
    assert compose("train", ["skill=navigate", "experiment=laptop"]).value("ppo.imitation_coef") == 0.5
    assert compose("train",
                   ["skill=navigate", "experiment=laptop", "ppo.imitation_coef=0"]).value("ppo.imitation_coef") == 0
    assert compose("train", ["skill=navigate"]).value("ppo.imitation_coef") == 0
