"""What `pip install` gives: all code, all YAML, the command, and nothing else."""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import rearrange

HOME = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((HOME / "pyproject.toml").read_text())
PACKAGES = [pattern.rstrip("*") for pattern in PROJECT["tool"]["setuptools"]["packages"]["find"]["include"]]


EXTRAS = PROJECT["project"]["optional-dependencies"]
SOURCES = ("antlr4-python3-runtime==4.9.3", "sqlalchemy<2")  # of which there are no wheels, or none for every Python


def required(*extras: str) -> list[str]:
    """What pyproject.toml requires, with extras, and with the extras that they name."""
    found = list(PROJECT["project"]["dependencies"]) if not extras else []
    for extra in extras:
        for line in EXTRAS[extra]:
            made = Requirement(line)
            found += required(*made.extras) if made.name == "rearrange" else [line]
    return found


def test_what_is_installed_satisfies_the_requirements_of_every_extra():
    """As `pip check`, and for the extras, too; of an extra that is not installed, what is there."""
    there = {canonicalize_name(each.name): each for each in importlib.metadata.distributions() if each.name}
    waiting = [(extra or "rearrange", Requirement(line)) for extra in ("", *EXTRAS)
               for line in required(*filter(None, [extra]))]
    wrong, seen, must_be_there = [], set(), {canonicalize_name(Requirement(line).name) for line in required()
                                             + required("test")}
    for who, need in waiting:  # grows
        name, found = canonicalize_name(need.name), there.get(canonicalize_name(need.name))
        if need.marker and not need.marker.evaluate({"extra": ""}):
            continue
        if found is None:
            wrong += [f"{who} needs {need}, which is not installed"] if name in must_be_there or who in there else []
        elif not need.specifier.contains(found.version, prereleases=True):
            wrong.append(f"{who} needs {need}; {found.version} is installed")
        elif (name, *sorted(need.extras)) not in seen:
            seen.add((name, *sorted(need.extras)))
            inner = [Requirement(line) for line in found.requires or []]
            waiting += [(name, each) for each in inner if each.marker is None or any(
                each.marker.evaluate({"extra": extra}) for extra in ("", *need.extras))]
    assert not wrong and len(seen) > 50, wrong


def run_pip(python: Path, *words: object) -> subprocess.CompletedProcess:
    return subprocess.run([python, "-m", "pip", *map(str, words), "--disable-pip-version-check", "--quiet"],
                          capture_output=True, text=True, env={**os.environ, "DISABLE_SQLALCHEMY_CEXT": "1"})


@pytest.fixture(scope="module")
def resolver(tmp_path_factory):
    """A Python with the newest pip, which reads metadata without the packages, and a folder with wheels of SOURCES: for
    another Python than its own, pip takes nothing else."""
    folder = tmp_path_factory.mktemp("resolver")
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    python, links = folder / "venv/bin/python", folder / "links"
    for words in (("install", "--upgrade", "pip"),
                  ("wheel", "--no-deps", "--no-binary=:all:", "--wheel-dir", links, *SOURCES)):
        done = run_pip(python, *words)
        if done.returncode:
            pytest.skip(f"no index of packages is reached: {done.stderr.strip().splitlines()[-1]}")
    for path in links.glob("*.whl"):
        path.rename(links / ("-".join(path.name.split("-")[:2]) + "-py3-none-any.whl"))
    return python, links


@pytest.mark.slow
@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13"])
def test_an_extra_changes_no_version_of_what_is_there(python, resolver, tmp_path):
    """Every extra alone, and all together, can be installed, as pip resolves them. What several of them bring is the
    same version in each, so that no extra lowers what the package or another one has brought. `test` is for an
    environment of its own."""
    versions: dict[str, dict[str, list[str]]] = {}

    def resolved(extras: tuple[str, ...]) -> subprocess.CompletedProcess:
        lines = required() + (required(*extras) if extras else [])
        return run_pip(resolver[0], "install", "--dry-run", "--ignore-installed", "--report", "-",
                       "--only-binary=:all:", "--python-version", python, "--find-links", resolver[1], "--target",
                       tmp_path / "nowhere", *lines)

    sets = [(), *((extra,) for extra in EXTRAS), tuple(EXTRAS)]
    with ThreadPoolExecutor(4) as at_once:
        for extras, done in zip(sets, at_once.map(resolved, sets), strict=True):
            assert done.returncode == 0, f"{extras}: {done.stderr[-1000:]}"
            for each in json.loads(done.stdout)["install"] if "test" not in extras else ():
                name, version = canonicalize_name(each["metadata"]["name"]), each["metadata"]["version"]
                versions.setdefault(name, {}).setdefault(version, []).append("+".join(extras) or "none")
    several = {name: found for name, found in versions.items() if len(found) > 1}
    assert not several and len(versions) > 90, several


def test_every_folder_with_code_is_a_package():
    folders = {path.parent.relative_to(HOME) for path in HOME.glob("*/**/*.py")}
    code = {folder for folder in folders
            if folder.parts[0] not in ("tests", "docs", "examples", "benchmarks", "build")
            and not folder.parts[0].startswith(".")}
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
        words = {name.rpartition("/")[2]: archive.read(name).decode() for name in archive.namelist()
                 if ".dist-info/" in name}
    assert "[gymnasium.envs]\n__root__ = rearrange.env.registration:register_envs" in words["entry_points.txt"]
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


@pytest.mark.parametrize("started, told", [("-m", SystemExit), ("script.py", ImportError)])
def test_in_a_clone_an_old_python_is_told_before_anything_is_imported(started, told, monkeypatch, capsys):
    """Its grammar is that of Python 3.8."""
    source = (HOME / "rearrange/__init__.py").read_text(encoding="utf-8")
    ast.parse(source, feature_version=(3, 8))
    monkeypatch.setattr(sys, "version_info", (3, 10, 13))
    monkeypatch.setattr(sys, "argv", [started])
    with pytest.raises(told) as refused:
        exec(compile(source, "rearrange/__init__.py", "exec"), {"__name__": "rearrange"})
    said = capsys.readouterr().err if told is SystemExit else str(refused.value)
    assert said.startswith("rearrange needs Python 3.11 or newer, and this is 3.10: ") and said.count("\n") <= 1
    assert told is ImportError or refused.value.code == 2
