"""What the pages tell people to type works, and what they point at exists."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from rearrange.command_line.cli import main
from tests.docs.markdown import HOME, PAGES, blocks, commands

NAMES = [page.relative_to(HOME).as_posix() for page in PAGES]


@pytest.mark.parametrize("line", sorted({line for page in PAGES for line in commands(page)}))
def test_every_command_is_understood(line, capsys):
    """Composed by the real front door, which refuses unknown commands, choices, keys and values."""
    words = shlex.split(line)[1:]
    if "-m" in words:  # each job of a sweep
        from rearrange.command_line import launcher_words, sweep_jobs
        from rearrange.command_line.composition.parse_overrides import compose
        from rearrange.command_line.composition.swept import Sweeper, expand
        from rearrange.command_line.runs import launching

        words.remove("-m")
        overrides, hydras = launcher_words.split(words[1:])
        command, overrides = words[0], [word for word in overrides if not word.startswith("objective=")]
        if hydras:
            pytest.importorskip("hydra_plugins.hydra_submitit_launcher")
            pytest.importorskip("hydra_plugins.hydra_optuna_sweeper")
            launching.check(hydras)
        if "hydra/sweeper=optuna" in hydras:
            sweep_jobs.check_ends(command, overrides, Sweeper("optuna"))
            return
        jobs = expand(command, overrides)
        assert len(jobs) > 1
        for job in jobs:
            fixed = [word for word in overrides if word.split("=")[0] not in job]
            compose(command, fixed + [f"{key}={value}" for key, value in job.items()])
        return
    would_work = (words and words[0] in ("train", "eval", "record", "reproduce", "bench", "report", "export", "scenes", "serve", "view", "doctor")
                  and not {"--help", "--cfg"} & set(words))
    look_only = ["--cfg", "job"] if would_work else []
    assert main([*words, *look_only]) == 0, capsys.readouterr().err


def test_the_pages_have_commands():
    assert len([line for page in PAGES for line in commands(page)]) > 20


EXAMPLES = [(name, i) for name, page in zip(NAMES, PAGES) for i, code in enumerate(blocks(page, "python"))
            if not re.search("stable_baselines3|lerobot", code)]  # those have tests of their own


@pytest.mark.parametrize("name, number", EXAMPLES)
def test_every_python_example_runs(name, number, tmp_path, monkeypatch):
    """With 512 steps instead of a hundred thousand: the examples shall run, not learn."""
    monkeypatch.chdir(tmp_path)
    code = blocks(HOME / name, "python")[number]
    if "import mjx" in code:
        pytest.importorskip("mujoco.mjx", reason="needs MJX and JAX: pip install 'rearrange[mjx]'", exc_type=ImportError)
        code = code.replace("num_envs=4096", "num_envs=8")
    small = "num_envs=2, num_workers=1, rollout_steps=128)"
    code = code.replace("steps=100_000)", f"steps=512, torch_threads=1, ppo=PPOConfig(epochs=1), collect=CollectConfig({small})")
    code = code.replace("steps=100_000,", "steps=512, torch_threads=1, ppo=PPOConfig(epochs=1),").replace("num_envs=8, num_workers=2)", small)
    assert "100_000" not in code, "this example would run for minutes"
    exec(compile("from trainer import CollectConfig\nfrom trainer.config import PPOConfig\n" + code, f"{name}[{number}]", "exec"), {"__name__": "example"})


@pytest.mark.parametrize("name", NAMES)
def test_every_link_leads_somewhere(name):
    text = (HOME / name).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert target.startswith("http") or ((HOME / name).parent / target).exists(), target
    for target, anchor in re.findall(r"\]\(([^)#\s]*)#([^)]+)\)", text):
        page = (HOME / name).parent / target if target else HOME / name
        if not target.startswith("http"):
            heads = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}, f"{target}#{anchor}"
    for target in re.findall(r"`((?:rearrange|skills|trainer|eval|configs|tests|docs|planner)/[\w./]+)`", text):
        assert (HOME / target).exists(), target


def test_the_moving_picture_is_small_and_made_by_the_script(tmp_path, monkeypatch):
    """docs/picture.py on videos of the shape that evaluations write: successes only, one panel for each evaluation."""
    import numpy as np
    from PIL import Image, ImageSequence

    from eval.video import VideoWriter, compose

    monkeypatch.syspath_prepend(HOME / "docs")
    import picture as script

    monkeypatch.setattr(script, "SECONDS", 1)
    for name, settings, shade in (("pick", "hab: null", 40), ("tidy_house", "hab: {name: tidy_house}\nvideo_speed: 4", 200)):
        for video, value in (("episode_0000_failure", 0), ("episode_0001_success", shade)):
            with VideoWriter(tmp_path / name / "run" / "videos" / f"{video}.mp4") as writer:
                scene, depth = np.full((512, 512, 3), value, np.uint8), np.full((8, 8), 0.5, np.float32)
                writer.add(compose(scene, depth, ["step"], title="pick"))
        (tmp_path / name / "run" / "config.yaml").write_text(settings)
    assert script.caption(tmp_path / "tidy_house" / "run") == "Tidy House, 4 times as fast"
    script.main(str(tmp_path / "out.webp"), str(tmp_path / "pick/run"), str(tmp_path / "tidy_house/run"))
    made = [np.asarray(frame.convert("RGB"))[250] for frame in ImageSequence.Iterator(Image.open(tmp_path / "out.webp"))]
    assert all(abs(int(row[9, 0]) - 40) < 8 and abs(int(row[-99, 0]) - 200) < 8 for row in made)
    with VideoWriter(tmp_path / "pick" / "run" / "videos" / "episode_0001_success.mp4") as writer:
        for value in (0, 60, 120, 180, 240):
            writer.add(compose(np.full((512, 512, 3), value, np.uint8), depth, ["step"], title="pick"))
    script.main(str(tmp_path / "whole.webp"), str(tmp_path / "pick/run"))  # one alone: from its beginning to its end
    shades = [int(np.asarray(frame.convert("RGB"))[250, 9, 0]) for frame in ImageSequence.Iterator(Image.open(tmp_path / "whole.webp"))]
    assert shades[0] < 12 and shades[-1] > 228 and shades == sorted(shades)
    for name in ("skills", "tidy_house", "prepare_groceries", "set_table"):
        committed = HOME / "docs/images" / f"{name}.webp"
        assert Image.open(committed).n_frames > 60 and committed.stat().st_size < 3_000_000


def test_prose_has_short_lines():
    """No line of more than 200 characters outside of tables; commands may be longer."""
    for page in PAGES:
        text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        long = [line[:60] for line in text.splitlines() if len(line) > 200 and not line.lstrip().startswith("|")]
        assert not long, f"{page}: {long}"


def test_guides_leave_figures_to_tables():
    """At most three measured figures in a paragraph of a guide; results stand in tables and findings."""
    for page in PAGES:
        if page.parent.name in ("findings", "skills") or page.name == "api.md":
            continue
        text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        for paragraph in re.split(r"\n\s*\n|\n(?=- |\d+\. )", text):
            prose = "\n".join(line for line in paragraph.splitlines() if not line.startswith("|"))
            figures = re.findall(r"[\d.,]+ ?(?:%|points\b|steps/s|times as|of \d+ episodes|hours|minutes)", prose)
            assert len(figures) <= 3, f"{page}: {figures}"


def test_every_finding_has_a_question_a_set_up_an_answer_and_a_place_in_the_list():
    findings = HOME / "docs" / "findings"
    listed = re.findall(r"\]\(([a-z0-9_]+\.md)\)", (findings / "README.md").read_text(encoding="utf-8"))
    pages = [page for page in PAGES if page.parent == findings and page.name != "README.md"]
    assert sorted(listed) == [page.name for page in pages]
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert re.match(r"# .+\?\n", text), page
        heads = re.findall(r"^## (.+)$", text, re.MULTILINE)
        assert heads[0] == "Set-up" and heads[1] == "Result" and "Answer" in heads, page
        setup = text.split("## Set-up")[1].split("## Result")[0]
        assert "```bash" in setup, f"{page} has no command"
        assert "\n|" in text.split("## Result")[1].split("## Answer")[0], f"{page} has no table"


def test_the_pages_name_no_machine_of_ours():
    for page in PAGES:
        assert not re.search(r"/tmp/|/root/|(?<!rearrange)/home/", page.read_text(encoding="utf-8")), page


def test_folders_of_the_map_are_the_folders():
    mapped = set(re.findall(r"^\| `(\w+)/` \|", (HOME / "README.md").read_text(encoding="utf-8"), re.MULTILINE))
    packages = {Path(p).parent.name for p in HOME.glob("*/__init__.py")}
    assert packages | {"docs"} == mapped
