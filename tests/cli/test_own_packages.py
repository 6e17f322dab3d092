"""A folder with the name of one of our packages is named in one sentence, however the program is started."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rearrange.command_line import doctor
from rearrange.home import own_packages
from tests.e2e.front_door import HOME, environment

USES = """
import gymnasium
import rearrange
from trainer import CollectConfig, TrainConfig, train

if __name__ == "__main__":
    env, policy = rearrange.load_pretrained("pick", num_layouts=1)
    policy.act(env.reset(seed=0)[0])
    make = lambda: gymnasium.make("rearrange/Pick-v0", num_layouts=1, depth_size=0)
    train(make, TrainConfig(steps=64, collect=CollectConfig(num_envs=2, num_workers=2)))
    gymnasium.make("rearrange/TidyHouse-v0")
"""
MINE = """
import numpy as np

def act(observation):
    return np.zeros(10, np.float32)
"""


@pytest.fixture
def project(tmp_path):
    """Somebody else's project, with all our names in it."""
    for name in ("eval", "skills", "planner"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
    (tmp_path / "trainer.py").write_text("class Trainer: pass\n")
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "uses.py").write_text(USES)
    return tmp_path


def start(directory: Path, *words: str, on_path: bool = False) -> subprocess.CompletedProcess:
    """on_path: the directory is also the first of PYTHONPATH."""
    paths = {"PYTHONPATH": os.pathsep.join([str(directory)] * on_path + [str(HOME)])}
    return subprocess.run([sys.executable, *words], cwd=directory, env=environment(directory) | paths,
                          capture_output=True, text=True)


SCRIPT = "import sys; from rearrange.command_line.cli import main; sys.argv[0] = 'rearrange'; sys.exit(main())"


@pytest.mark.parametrize("ahead", [("-m", "rearrange"), ("-P", "-c", SCRIPT)], ids=["python -m", "console script"])
def test_commands_use_ours(project, ahead):
    done = start(project, *ahead, "eval", "skill=pick", "agent=mine:act", "episodes=2", "workers=2",
                 "skill.max_steps=3", on_path=True)
    assert done.returncode == 0 and "mine:act" in done.stdout, done.stderr


def test_an_agent_of_the_working_directory_needs_no_path(project):
    words = "-P", "-c", SCRIPT, "eval", "skill=pick", "episodes=1", "skill.max_steps=3"
    done = start(project, *words, "agent=mine:act", "workers=2")
    assert done.returncode == 0, done.stderr
    (project / "mine.py").write_text("from eval import figures")
    (project / "json.py").write_text(MINE)
    for agent, ours, theirs in (("mine:act", "eval", "eval"), ("json:act", "json", "json.py")):
        done = start(project, *words, f"agent={agent}")
        assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
        assert str(project / theirs) in done.stderr and f"{ours} is /" in done.stderr and "another name" in done.stderr


def test_python_uses_ours_where_nothing_else_has_been_imported(project):
    done = start(project, "uses.py")
    assert done.returncode == 0, done.stderr
    left = start(project, "-c", "import rearrange; rearrange.make_env; import eval; print(eval.__file__)")
    assert left.stdout.strip() == str(project / "eval/__init__.py"), "what is not needed is theirs"


@pytest.mark.parametrize("name, then", [
    ("trainer", "import rearrange"), ("eval", "import rearrange; rearrange.load_pretrained"),
    ("skills", "import rearrange; rearrange.make_env"),
    ("planner", "import gymnasium, rearrange; gymnasium.make('rearrange/TidyHouse-v0')")])
def test_what_was_imported_before_is_named_with_ours(project, name, then):
    done = start(project, "-c", f"import {name}; {then}")
    assert done.returncode == 1
    said = done.stderr.splitlines()[-1]
    theirs = "trainer.py" if name == "trainer" else name
    assert f"{project / theirs} is in the way: rearrange needs {HOME / name} under the name {name}" in said


def test_what_was_overwritten_is_said_at_the_first_import(tmp_path):
    """A copy of which another package has overwritten `eval`."""
    for name in ("rearrange", "trainer"):
        shutil.copytree(HOME / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("eval", "planner", "skills"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("" if name == "eval" else '"""Of rearrange."""')
    (tmp_path / "skills" / "__init__.py").write_text((HOME / "skills/__init__.py").read_text())
    (tmp_path / "configs").symlink_to(HOME / "configs")
    done = start(tmp_path, "-c", "import rearrange", on_path=True)
    assert done.returncode == 0, done.stderr
    said = f"RuntimeWarning: {tmp_path / 'eval'} is in the way: another installed package has overwritten"
    assert said in done.stderr
    (tmp_path / "trainer/__init__.py").write_text("")
    done = start(tmp_path, "-m", "rearrange", "list", on_path=True)
    assert done.returncode == 2 and f"{tmp_path / 'trainer'} is in the way" in done.stderr
    assert done.stderr.count("\n") == 1, done.stderr


def test_what_is_not_imported_is_in_nobodys_way(tmp_path):
    """A folder `configs` or `tests` is no package of ours to Python."""
    for name in ("configs", "tests"):
        (tmp_path / name).mkdir()
    assert start(tmp_path, "-m", "rearrange", "--version").returncode == 0


@pytest.mark.parametrize("how", [["-m", "rearrange", "list"], ["-c", "import rearrange; rearrange.load_pretrained"]])
def test_a_folder_above_a_clone_can_be_worked_in(tmp_path, how):
    """A folder `rearrange` without __init__.py, as a clone is, lies beside the script; the installation alone finds
    ours.
    """
    (tmp_path / "rearrange").mkdir()
    variables = environment(tmp_path)
    del variables["PYTHONPATH"]
    done = subprocess.run([sys.executable, *how], cwd=tmp_path, env=variables, capture_output=True, text=True,
                          timeout=60)
    assert done.returncode == 0, f"{done.stderr}\nAfter a change of pyproject.toml: pip install -e ."


def test_a_package_that_was_overwritten(tmp_path, monkeypatch):
    for name in own_packages.IMPORTED:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("")
    monkeypatch.setattr(own_packages, "ROOT", tmp_path)
    monkeypatch.setattr(own_packages, "_place", lambda name: tmp_path / name)
    with pytest.raises(own_packages.InTheWay, match="another installed package has overwritten"):
        own_packages.claim()


def test_every_package_has_the_mark():
    assert all(own_packages._is_marked(own_packages.ROOT / name / "__init__.py") for name in own_packages.IMPORTED)


def test_doctor_says_so(monkeypatch):
    assert [finding.good for finding in doctor._own_packages()] == [True]
    monkeypatch.setattr(own_packages, "in_the_way", lambda name: "there is another" if name == "eval" else None)
    (finding,) = doctor._own_packages()
    assert finding.name == "eval" and finding.needed and not finding.good
    monkeypatch.undo()
    monkeypatch.setattr(doctor, "_others_with", lambda name: ["plans"] if name == "planner" else [])
    (finding,) = doctor._own_packages()
    assert "also of the installed package plans" in finding.text and "pip uninstall plans" in finding.mend
