"""docs/extend.md, step by step, in a copy of the code: a skill and a preset are added by what the page says, and by nothing else."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HOME = Path(__file__).resolve().parents[2]
PAGE = (HOME / "docs" / "extend.md").read_text(encoding="utf-8")
LINE = '    "pick": "Pick",\n'


def block(language: str) -> str:
    return re.search(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)[1]


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """The code, with the skill's file."""
    folder = tmp_path_factory.mktemp("copy")
    for name in ("rearrange", "skills", "planner", "trainer", "eval", "configs", "docs", "pyproject.toml", "tests"):
        source = HOME / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("*.pt", "images", "findings"))
        else:
            shutil.copy(source, folder / name)
    (folder / "skills" / "touch.py").write_text(block("py"), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def added(copy):
    """And with its line."""
    file = copy / "skills" / "__init__.py"
    text = file.read_text(encoding="utf-8")
    assert text.count(LINE) == 1
    file.write_text(text.replace(LINE, LINE + '    "touch": "Touch",\n'), encoding="utf-8")
    return copy


def run(folder: Path, *words: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, *words], cwd=folder, capture_output=True, text=True,
                          env=os.environ | {"PYTHONPATH": str(folder)})


def test_without_its_line_the_missing_step_is_named(copy):
    done = run(copy, "-m", "rearrange", "eval", "skill=touch", "agent=random")
    assert done.returncode == 2 and "add a line 'touch': 'Touch' to SKILLS" in done.stderr


def test_a_skill(added):
    listed = run(added, "-m", "rearrange", "list")
    assert re.search(r"touch +rearrange/Touch-v0 +Bring the hand to an object\.", listed.stdout), listed.stderr
    told = run(added, "-m", "rearrange", "train", "skill=touch", "--help")
    assert "skill.radius_m=0.1" in told.stdout and "skill.reward_scales.distance=20.0" in told.stdout
    wrong = run(added, "-m", "rearrange", "train", "skill=touch", "skill.radius_m=banana")
    assert wrong.returncode == 2 and "skill.radius_m=banana is not allowed: it must be a number greater than 0" in wrong.stderr
    expert = run(added, "-m", "rearrange", "eval", "skill=touch", "agent=expert")
    assert expert.returncode == 2 and expert.stderr.count("\n") == 1 and "touch" in expert.stderr, expert.stderr
    done = run(added, "-m", "rearrange", "eval", "skill=touch", "agent=random", "episodes=2", "workers=1", "name=a")
    assert done.returncode == 0 and (added / "outputs/eval/touch/a/metrics.json").exists(), done.stderr


def test_gymnasium_knows_it_and_the_contract_tests_take_it_up(added):
    code = "import gymnasium, rearrange; print(gymnasium.make('rearrange/Touch-v0', depth_size=0).reset(seed=0)[0].keys())"
    assert "obj_start" in (done := run(added, "-c", code)).stdout, done.stderr
    done = run(added, "-m", "pytest", "-q", "tests/skills/test_contract.py", "-k", "touch", "-p", "no:cacheprovider")
    assert done.returncode == 0 and re.search(r"(\d+) passed", done.stdout), done.stdout[-3000:]


def test_its_page_writes_itself(added):
    (added / "docs" / "images" / "skills").mkdir(parents=True, exist_ok=True)
    done = run(added, "-c", "import sys; sys.path.insert(0, 'docs'); import skill_pages; print(skill_pages.page('touch'))")
    assert "# Touch" in done.stdout and "bring the hand to an object" in done.stdout.lower(), done.stderr[-2000:]


def test_a_preset(added):
    (added / "configs" / "experiment" / "fast_base.yaml").write_text(block("yaml"), encoding="utf-8")
    done = run(added, "-m", "rearrange", "train", "skill=touch", "experiment=fast_base", "--cfg", "job")
    assert "base_speed_m_s: 2.5" in done.stdout, done.stderr


def test_what_a_navigation_task_has_is_all_named():
    """All that is asked of any task."""
    source = (HOME / "rearrange/navigation/env.py").read_text(encoding="utf-8")
    asked = set(re.findall(r"self\.task\.(\w+)", source)) - {"best_action", "wanted"}  # of tasks with a goal, and of ObjectNav
    text = PAGE.split("## A navigation task")[1].split("## ")[0]
    assert {"episode", "spaces", "status_lines"} < asked and asked <= set(re.findall(r"`(\w+)`", text))


def test_every_example_of_the_page_is_one_of_these():
    assert re.findall(r"^```(\w+)$", PAGE, re.MULTILINE) == ["py", "text", "yaml"]
