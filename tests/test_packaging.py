"""What `pip install` gives: all code, all YAML, the command, and nothing else."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import rearrange

HOME = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((HOME / "pyproject.toml").read_text())
PACKAGES = [pattern.rstrip("*") for pattern in PROJECT["tool"]["setuptools"]["packages"]["find"]["include"]]


def test_every_folder_with_code_is_a_package():
    folders = {path.parent.relative_to(HOME) for path in HOME.glob("*/**/*.py")}
    code = {folder for folder in folders
            if folder.parts[0] not in ("tests", "docs", "benchmarks", "build") and not folder.parts[0].startswith(".")}
    assert {folder.parts[0] for folder in code} == set(PACKAGES)
    assert all((HOME / folder / "__init__.py").exists() for folder in code)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    if not importlib.util.find_spec("setuptools") or int(importlib.metadata.version("setuptools").split(".")[0]) < 77:
        pytest.skip("needs setuptools 77 in this environment, to build without a network")
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in [*PACKAGES, "pyproject.toml", "LICENSE", "README.md"]:
        if (HOME / name).is_dir():
            shutil.copytree(HOME / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif (HOME / name).exists():
            shutil.copy(HOME / name, source / name)
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", target, source],
        check=True,
    )
    return next(target.glob("*.whl"))


def test_the_wheel_holds_everything(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    ours = {name for name in names if ".dist-info/" not in name}
    expected = {
        str(path.relative_to(HOME))
        for package in PACKAGES
        for suffix in ("*.py", "*.yaml", "*.pddl", "*.css", "*.js", "*.pt", "py.typed")
        for path in (HOME / package).rglob(suffix)
    }
    assert ours == expected
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert {f"{package}/py.typed" for package in PACKAGES if "." not in package and package != "configs"} <= ours


def test_the_wheel_works_from_another_directory(wheel, tmp_path):
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    (tmp_path / "elsewhere").mkdir()
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path / 'site')!r}); import rearrange; "
        "assert 'site' in rearrange.__file__; "
        "from rearrange.command_line.cli import main; sys.exit(main(['train', 'skill=pick', '--cfg', 'job']))"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], cwd=tmp_path / "elsewhere", capture_output=True, text=True
    )
    assert done.returncode == 0 and "learning_rate" in done.stdout, done.stderr


def test_the_wheel_tells_gymnasium_where_the_environments_are(wheel):
    with zipfile.ZipFile(wheel) as archive:
        words = {name.rpartition("/")[2]: archive.read(name).decode() for name in archive.namelist() if ".dist-info/" in name}
    assert "[gymnasium.envs]\n__root__ = rearrange.registration:register_envs" in words["entry_points.txt"]
    assert "Classifier: Typing :: Typed" in words["METADATA"] and "# rearrange" in words["METADATA"]


def test_the_version_is_the_same_everywhere():
    cited = re.search(r"^version: (.+)$", (HOME / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)[1]
    changes = (HOME / "CHANGELOG.md").read_text(encoding="utf-8")
    assert cited == rearrange.__version__ and f"\n## [{cited}]" in changes


def test_version_and_command():
    assert PROJECT["project"]["scripts"] == {"rearrange": "rearrange.command_line.cli:main"}
    assert rearrange.__version__.count(".") == 2


def test_continuous_integration_runs_the_tests():
    run = HOME / ".ci" / "run"
    assert run.stat().st_mode & 0o111 and "make test" in run.read_text()
    done = subprocess.run(["make", "-n", "test", "PYTHON=" + sys.executable], cwd=HOME, capture_output=True, text=True)
    assert done.returncode == 0 and "pytest" in done.stdout


def test_an_old_python_is_one_clear_sentence(tmp_path):
    if not shutil.which("make"):
        pytest.skip("make is not installed")
    done = subprocess.run(
        ["make", "test", "PYTHON=false", f"VENV={tmp_path / 'venv'}"], cwd=HOME, capture_output=True, text=True
    )
    assert done.returncode != 0 and "needs Python 3.11 or newer" in done.stdout
    assert not (tmp_path / "venv").exists()
