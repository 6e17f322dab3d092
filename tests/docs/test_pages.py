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
        from rearrange.command_line.compose import compose, expand

        words.remove("-m")
        command, overrides = words[0], words[1:]
        jobs = expand(command, overrides)
        assert len(jobs) > 1
        for job in jobs:
            fixed = [word for word in overrides if word.split("=")[0] not in job]
            compose(command, fixed + [f"{key}={value}" for key, value in job.items()])
        return
    would_work = (words and words[0] in ("train", "eval", "reproduce", "bench", "report", "scenes", "doctor")
                  and not {"--help", "--cfg"} & set(words))
    look_only = ["--cfg", "job"] if would_work else []
    assert main([*words, *look_only]) == 0, capsys.readouterr().err


def test_the_pages_have_commands():
    assert len([line for page in PAGES for line in commands(page)]) > 20


EXAMPLES = [(name, i) for name, page in zip(NAMES, PAGES) for i, code in enumerate(blocks(page, "python"))
            if "stable_baselines3" not in code]  # that one has tests of its own


@pytest.mark.parametrize("name, number", EXAMPLES)
def test_every_python_example_runs(name, number, tmp_path, monkeypatch):
    """With 512 steps instead of a hundred thousand: the examples shall run, not learn."""
    monkeypatch.chdir(tmp_path)
    code = blocks(HOME / name, "python")[number]
    small = "num_envs=2, num_workers=1, rollout_steps=128)"
    code = code.replace("steps=100_000)", f"steps=512, torch_threads=1, collect=CollectConfig({small})")
    code = code.replace("steps=100_000,", "steps=512, torch_threads=1,").replace("num_envs=8, num_workers=2)", small)
    assert "100_000" not in code, "this example would run for minutes"
    exec(compile("from trainer import CollectConfig\n" + code, f"{name}[{number}]", "exec"), {"__name__": "example"})


@pytest.mark.parametrize("name", NAMES)
def test_every_link_leads_somewhere(name):
    text = (HOME / name).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert target.startswith("http") or ((HOME / name).parent / target).exists(), target
    for target in re.findall(r"`((?:rearrange|skills|trainer|eval|configs|tests|docs|planner)/[\w./]+)`", text):
        assert (HOME / target).exists(), target


def test_the_picture_is_small_and_made_by_the_script(tmp_path, monkeypatch):
    """docs/picture.py on a video of the shape that an evaluation writes."""
    import numpy as np
    from PIL import Image

    from eval.video import VideoWriter, compose

    monkeypatch.syspath_prepend(HOME / "docs")
    import picture as script

    with VideoWriter(tmp_path / "episode.mp4") as video:
        for shade in (40, 90, 200):
            scene, depth = np.full((512, 512, 3), shade, np.uint8), np.full((8, 8), shade / 255, np.float32)
            video.add(compose(scene, depth, ["step"], title="pick"))
    script.main(str(tmp_path / "episode.mp4"), str(tmp_path / "out.png"))
    made = np.asarray(Image.open(tmp_path / "out.png"))
    committed = Image.open(HOME / "docs/images/pick.png")
    assert made.shape[1::-1] == committed.size
    assert [abs(int(made[9, x, 0]) - shade) < 8 for x, shade in ((9, 40), (made.shape[1] - 9, 200))] == [True, True]
    assert (HOME / "docs/images/pick.png").stat().st_size < 300_000


def test_the_pages_name_no_machine_of_ours():
    for page in PAGES:
        assert not re.search(r"/tmp/|/root/|/home/", page.read_text(encoding="utf-8")), page


def test_folders_of_the_map_are_the_folders():
    mapped = set(re.findall(r"^\| `(\w+)/` \|", (HOME / "README.md").read_text(encoding="utf-8"), re.MULTILINE))
    packages = {Path(p).parent.name for p in HOME.glob("*/__init__.py")}
    assert packages | {"docs"} == mapped
