"""A folder with the name of one of our packages is named in one sentence, however the program is started."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rearrange.command_line import doctor
from rearrange.home import own_packages
from tests.e2e.front_door import HOME, environment

START = {
    "python -m": ["-m", "rearrange", "list"],
    "console script": ["-P", "-c", "import sys; from rearrange.command_line.cli import main; sys.exit(main(['list']))"],
    "gymnasium": ["-c", "import gymnasium, rearrange; gymnasium.make('rearrange/Pick-v0')"],
    "sweep": ["-m", "rearrange", "train", "-m", "skill=pick", "seed=0,1"],
}


def start(directory: Path, how: str, *ahead: Path) -> subprocess.CompletedProcess:
    """-P leaves the working directory out, as the console script does; `ahead`: in front of PYTHONPATH."""
    paths = {"PYTHONPATH": os.pathsep.join(map(str, (*ahead, HOME)))}
    return subprocess.run([sys.executable, *START[how]], cwd=directory, env=environment(directory) | paths,
                          capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("name", own_packages.IMPORTED)
@pytest.mark.parametrize("how", ["python -m", "sweep"])
def test_in_the_working_directory(tmp_path, name, how):
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").touch()
    done = start(tmp_path, how)
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    assert f"{tmp_path / name} is in the way" in done.stderr


@pytest.mark.parametrize("how, name", [("console script", "trainer"), ("python -m", "eval"), ("gymnasium", "skills")])
def test_on_the_path(tmp_path, how, name):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / f"{name}.py").touch()
    done = start(tmp_path, how, tmp_path / "other")
    assert done.returncode in (1, 2) and f"{tmp_path / 'other' / name}.py is in the way" in done.stderr.splitlines()[-1]


def test_what_is_not_imported_is_in_nobodys_way(tmp_path):
    """A folder `configs` or `tests` is no package of ours to Python, and the console script does not see the working
    directory.
    """
    for name in ("configs", "tests"):
        (tmp_path / name).mkdir()
    assert start(tmp_path, "python -m").returncode == 0
    (tmp_path / "trainer").mkdir()
    assert start(tmp_path, "console script").returncode == 0


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
        own_packages.check()


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
