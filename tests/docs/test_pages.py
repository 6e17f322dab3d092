"""What the pages tell people to type works, and what they point at exists."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from rearrange.command_line.cli import main
from tests.docs.markdown import HOME, PAGES, blocks, commands, prose, shown

NAMES = [page.relative_to(HOME).as_posix() for page in PAGES]
WITHOUT_CFG = {"list"}  # commands that have no settings to compose
FINDINGS = HOME / "docs" / "findings"
GUIDES = [page for page in PAGES if page.parent == HOME / "docs" and not page.name.startswith("results")]
COMMANDS = sorted({line for page in PAGES for line in commands(page)})


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_is_understood(line, capsys):
    """Composed by the real front door, which refuses unknown commands, choices, keys and values."""
    words = shlex.split(line)[1:]
    if "-m" in words:
        compose_sweep([word for word in words if word != "-m"])
        return
    look_only = [] if not words or words[0] in WITHOUT_CFG or {"--help", "--cfg"} & set(words) else ["--cfg", "job"]
    assert main([*words, *look_only]) == 0, capsys.readouterr().err


def compose_sweep(words: list[str]) -> None:
    """Compose each job of a sweep."""
    from rearrange.command_line import launcher_words, sweep_jobs
    from rearrange.command_line.composition.parse_overrides import compose
    from rearrange.command_line.composition.swept import Sweeper, expand
    from rearrange.command_line.runs import launching

    command, (overrides, hydras) = words[0], launcher_words.split(words[1:])
    overrides = [word for word in overrides if not word.startswith("objective=")]
    if hydras:
        pytest.importorskip("hydra_plugins.hydra_submitit_launcher")
        pytest.importorskip("hydra_plugins.hydra_optuna_sweeper")
        launching.check(hydras)
    for sweeper in ("optuna", "population"):
        if f"hydra/sweeper={sweeper}" in hydras:
            sweep_jobs.check_ends(command, overrides, Sweeper(sweeper))
            return
    jobs = expand(command, overrides)
    assert len(jobs) > 1
    for job in jobs:
        fixed = [word for word in overrides if word.split("=")[0] not in job]
        compose(command, fixed + [f"{key}={value}" for key, value in job.items()])


def test_the_pages_have_commands():
    assert len(COMMANDS) > 20


def test_the_page_of_the_command_line_lists_every_command():
    from rearrange.command_line.composition.command_names import COMMANDS

    page = (HOME / "docs/command_line.md").read_text(encoding="utf-8")
    assert {cells.split()[0].strip("`") for cells in re.findall(r"^\| (`.+?) \|", page, re.MULTILINE)} >= set(COMMANDS)
    assert all(re.search(rf"^    rearrange .*\b{name}\b", page, re.MULTILINE) for name in COMMANDS)


EXAMPLES = [(name, i) for name, page in zip(NAMES, PAGES) for i, code in enumerate(blocks(page, "python"))
            # those have tests of their own, and so have examples
            if not re.search("stable_baselines3|lerobot|onnxruntime|from mcp", code)
            and code not in [block for _, block in shown(page)]]


@pytest.mark.parametrize("name, number", EXAMPLES)
def test_every_python_example_runs(name, number, tmp_path, monkeypatch):
    """With 512 steps instead of a hundred thousand: the examples shall run, not learn."""
    monkeypatch.chdir(tmp_path)
    code = blocks(HOME / name, "python")[number]
    if "import mjx" in code:
        missing = "needs MJX and JAX: pip install 'rearrange[mjx]'"
        pytest.importorskip("mujoco.mjx", reason=missing, exc_type=ImportError)
    small = "num_envs=2, num_workers=1, rollout_steps=128)"
    short = "steps=512, torch_threads=1, ppo=PPOConfig(epochs=1),"
    for full, less in (("num_envs=4096", "num_envs=8"), ("steps=100_000)", f"{short} collect=CollectConfig({small})"),
                       ("steps=100_000,", short), ("num_envs=8, num_workers=2)", small)):
        code = code.replace(full, less)
    assert "100_000" not in code, "this example would run for minutes"
    imports = "from trainer import CollectConfig\nfrom trainer.config import PPOConfig\n"
    exec(compile(imports + code, f"{name}[{number}]", "exec"), {"__name__": "example"})


@pytest.mark.parametrize("name", NAMES)
def test_every_link_leads_somewhere(name):
    text = (HOME / name).read_text(encoding="utf-8")
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)]+))?\)", text):
        if target.startswith("http"):
            continue
        page = (HOME / name).parent / target if target else HOME / name
        assert page.exists(), target
        heads = {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-")
                 for head in re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)} if anchor else set()
        assert not anchor or anchor in heads, f"{target}#{anchor}"
    for target in re.findall(r"`((?:rearrange|skills|trainer|eval|configs|tests|docs|planner)/[\w./]+)`", text):
        assert (HOME / target).exists(), target


def test_prose_has_short_lines():
    """No line of more than 120 characters outside of code, tables, pictures and headings, where it can be cut."""
    for page in PAGES:
        lines = prose(page).splitlines() if page.parent.name != "api" else []  # api: docstrings
        long = [line for line in lines if len(line) > 120 and not line.startswith(("|", "![", "#", "    "))]
        assert not [line for line in long if " " in line.strip("- ")[:110]], f"{page}: {long}"


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.name)
def test_a_guide_is_for_one_task(page):
    assert len(page.read_text(encoding="utf-8").splitlines()) <= 120


def test_guides_leave_figures_to_tables():
    """At most three measured figures in a paragraph of a guide; results stand in tables and findings."""
    for page in PAGES:
        if page.parent.name in ("findings", "skills", "api"):
            continue
        for paragraph in re.split(r"\n\s*\n|\n(?=- |\d+\. )", prose(page)):
            words = "\n".join(line for line in paragraph.splitlines() if not line.startswith("|"))
            figures = re.findall(r"[\d.,]+ ?(?:%|points\b|steps/s|times as|of \d+ episodes|hours|minutes)", words)
            assert len(figures) <= 3, f"{page}: {figures}"


def test_every_finding_is_listed():
    listed = re.findall(r"\]\(([a-z0-9_]+\.md)\)", (FINDINGS / "README.md").read_text(encoding="utf-8"))
    assert sorted(listed) == [page.name for page in sorted(FINDINGS.glob("*.md")) if page.name != "README.md"]


@pytest.mark.parametrize("name", sorted(page.name for page in FINDINGS.glob("*.md") if page.name != "README.md"))
def test_a_finding_asks_answers_and_then_shows_how(name):
    """A question, an answer of at most ten lines; folded below: the set-up with a command, the result with a table."""
    shown, _, folded = (FINDINGS / name).read_text(encoding="utf-8").partition("\n<details>\n")
    question, *answer = shown.strip().splitlines()
    assert re.fullmatch(r"# .+\?", question)
    assert 1 <= len([line for line in answer if line]) <= 10 and not any(line.startswith(("#", "|")) for line in answer)
    assert folded.startswith("<summary>") and folded.endswith("\n</details>\n")
    setup, result = folded.split("## Set-up", 1)[1].split("## Result", 1)
    assert "```bash" in setup and "\n|" in result.split("\n## ")[0]


def test_the_pages_name_no_machine_of_ours():
    for page in PAGES:
        assert not re.search(r"/tmp/|/root/|(?<!rearrange)/home/", page.read_text(encoding="utf-8")), page


def test_folders_of_the_map_are_the_folders():
    mapped = set(re.findall(r"^\| `(\w+)/` \|", (HOME / "README.md").read_text(encoding="utf-8"), re.MULTILINE))
    assert {Path(p).parent.name for p in HOME.glob("*/__init__.py")} | {"docs"} == mapped - {"examples"}
