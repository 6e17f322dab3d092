"""docs/add_skill.md and docs/extend.md, step by step, in a copy of the code: what the pages say is enough."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rearrange.navigation.start_tasks import Explore, StartTask
from tests.docs.markdown import HOME, blocks

PAGES = HOME / "docs"
LINE = '    "pick": "Pick",\n'


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """The code, with the skill's file."""
    folder = tmp_path_factory.mktemp("copy")
    for name in ("rearrange", "skills", "planner", "trainer", "eval", "configs", "docs", "tests"):
        shutil.copytree(HOME / name, folder / name, ignore=shutil.ignore_patterns("*.pt", "images", "findings"))
    shutil.copy(HOME / "pyproject.toml", folder)
    shutil.copy(HOME / "examples" / "own_skill.py", folder / "skills" / "touch.py")
    return folder


@pytest.fixture(scope="module")
def added(copy):
    """And with its line."""
    file = copy / "skills" / "__init__.py"
    text = file.read_text(encoding="utf-8")
    if '"touch": "Touch"' in text:  # of a clone in which somebody has done what the page says
        return copy
    assert text.count(LINE) == 1
    file.write_text(text.replace(LINE, LINE + '    "touch": "Touch",\n'), encoding="utf-8")
    return copy


def run(folder: Path, *words: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, *words], cwd=folder, capture_output=True, text=True,
                          env=os.environ | {"PYTHONPATH": str(folder)})


def rearrange(folder: Path, line: str) -> subprocess.CompletedProcess:
    return run(folder, "-m", "rearrange", *line.split())


def test_without_its_line_the_missing_step_is_named(copy):
    if '"touch": "Touch"' in (copy / "skills" / "__init__.py").read_text(encoding="utf-8"):
        pytest.skip("the skill of the page has its line already")
    done = rearrange(copy, "eval skill=touch agent=random")
    assert done.returncode == 2 and "add a line 'touch': 'Touch' to SKILLS" in done.stderr


def test_a_skill(added):
    listed = rearrange(added, "list")
    assert re.search(r"touch +rearrange/Touch-v0 +Bring the hand to an object\.", listed.stdout), listed.stderr
    told = rearrange(added, "train skill=touch --help").stdout
    assert "skill.radius_m=0.1" in told and "skill.reward_scales.distance=20.0" in told
    wrong = rearrange(added, "train skill=touch skill.radius_m=banana")
    refused = "skill.radius_m=banana is not allowed: it must be a number greater than 0"
    assert wrong.returncode == 2 and refused in wrong.stderr
    expert = rearrange(added, "eval skill=touch agent=expert")
    assert expert.returncode == 2 and expert.stderr.count("\n") == 1 and "touch" in expert.stderr, expert.stderr
    plan = rearrange(added, "eval hab=tidy_house agent=expert episodes=1 workers=1 name=plan hab.max_steps=5")
    assert plan.returncode == 0, plan.stderr  # which a skill without an expert is no part of
    done = rearrange(added, "eval skill=touch agent=random episodes=2 workers=1 name=a")
    assert done.returncode == 0 and (added / "outputs/eval/touch/a/metrics.json").exists(), done.stderr


def test_gymnasium_knows_it_and_the_contract_tests_take_it_up(added):
    make = "gymnasium.make('rearrange/Touch-v0', depth_size=0)"
    code = f"import gymnasium, rearrange; print({make}.reset(seed=0))"
    assert "obj_start" in (done := run(added, "-c", code)).stdout, done.stderr
    done = run(added, "-m", "pytest", "-q", "tests/skills/test_contract.py", "-k", "touch", "-p", "no:cacheprovider")
    assert done.returncode == 0 and re.search(r"(\d+) passed", done.stdout), done.stdout[-3000:]


def test_its_pages_write_themselves_and_the_table_takes_its_id(added):
    (added / "docs" / "images" / "skills").mkdir(parents=True, exist_ok=True)
    page = added / "docs" / "skills" / "touch.md"
    page.unlink(missing_ok=True)  # of a clone in which somebody has done what the page says
    done = run(added, "docs/skill_pages.py")
    assert "docs/skills/touch.md written" in done.stdout.splitlines(), done.stderr[-2000:]
    assert page.read_text(encoding="utf-8").startswith("# Touch\n\nBring the hand to an object.\n")
    assert run(added, "docs/api_page.py").returncode == 0
    table, pick = added / "docs" / "gymnasium.md", "| `rearrange/Navigate-v0`, "
    text = table.read_text(encoding="utf-8")
    if "rearrange/Touch-v0" not in text:
        table.write_text(text.replace(pick, f"{pick}`rearrange/Touch-v0`, ", 1), encoding="utf-8")
    asked = ("tests/docs/test_skill_pages.py", "tests/docs/test_api_page.py", "tests/docs/test_tables.py")
    done = run(added, "-m", "pytest", "-q", *asked, "-k", "touch or up_to_date or gymnasium_ids", "-p",
               "no:cacheprovider")
    assert done.returncode == 0 and "4 passed" in done.stdout, done.stdout[-3000:]


def test_a_preset(added):
    preset = blocks(PAGES / "extend.md", "yaml")[0]
    (added / "configs" / "experiment" / "fast_base.yaml").write_text(preset, encoding="utf-8")
    done = rearrange(added, "train skill=touch experiment=fast_base --cfg job")
    assert "base_speed_m_s: 2.5" in done.stdout, done.stderr


def test_what_a_navigation_task_has_is_all_named():
    """All that is asked of any task, and how much of it is left to one that begins anywhere."""
    source = (HOME / "rearrange/navigation/env.py").read_text(encoding="utf-8")
    of_some = {"best_action", "wanted"}  # of tasks with a goal, and of ObjectNav
    asked = set(re.findall(r"self\.task\.(\w+)", source)) - of_some
    text = (PAGES / "extend.md").read_text(encoding="utf-8").split("## A navigation task")[1].split("## ")[0]
    assert {"episode", "spaces", "status_lines"} < asked and asked <= set(re.findall(r"`(\w+)`", text))
    left = asked - {"spaces", *vars(StartTask)}
    assert len(left) == 6 and "it writes six of these methods and `share`" in " ".join(text.split())
    assert left | {"share"} <= set(vars(Explore))


def test_every_example_of_the_pages_is_one_of_these():
    for page, languages in (("add_skill.md", ["py", "text"]), ("extend.md", ["yaml"])):
        assert re.findall(r"^```(\w+)$", (PAGES / page).read_text(encoding="utf-8"), re.MULTILINE) == languages
