"""The programs and notebooks of examples/: each runs and does what it says; pages show programs as they are."""

from __future__ import annotations

import ast
import json
import os
import re

import numpy as np
import pytest
from PIL import Image

from tests.docs.markdown import HOME, PAGES, PROGRAMS, shown
from tests.e2e.front_door import environment, finish
from tests.e2e.warm import forked

SAYS = {  # what each prints when all went well
    "roll_out": r"(episode \d: success True after \d+ steps\n){3}",
    "own_environment": r"stops at its place in (1[5-9]|20) of 20 episodes",
    "own_skill": r"train +4,096/4,096 100%.*success",
    "own_scenario": r"navigate_to_fridge fridge\nopen_fridge fridge\n(.*\n)*end: success",
    "record_and_clone": r"success 100% of 8 attempts(.*\n)*clones 8 episodes(.*\n)*done: 8,\d+ steps(.*\n)*.* n = 4\n",
    "remote_policy": r"(.* \(7,\)\n){4}(.*\n)*.* n = 4\n",
    "home_in_mjcf": r"receptacles: table_top \(table\)(.*\n)pick: success True .*\nopen_cabinet: success True",
    "own_robot": r"(pick: success True after \d+ steps\n){2}",
    "run_onnx": r"base\.left_turn.*rad/s(.*\n)*success: True",
}


@pytest.mark.parametrize("name", SAYS)
def test_it_does_what_it_says(name, tmp_path):
    """`python examples/<name>.py`, in an empty directory."""
    if name == "run_onnx":
        pytest.importorskip("onnxruntime")
        pytest.importorskip("onnxscript")
    variables = environment(tmp_path)
    variables["PYTHONPATH"] = os.pathsep.join([variables["PYTHONPATH"], str(HOME / "examples")])
    done = finish(forked([], tmp_path, variables, name))
    assert done.returncode == 0 and re.search(SAYS[name], done.stdout), done.stdout + done.stderr


def run_cells(cells: list[dict]) -> list[object]:
    """Run code cells one after another; the value that each ends with, as a notebook would show it."""
    names: dict[str, object] = {"__name__": "__main__"}
    values = []
    for cell in cells:
        *lines, last = ast.parse("".join(cell["source"])).body
        ends = isinstance(last, ast.Expr)
        exec(compile(ast.Module(lines if ends else [*lines, last], []), "cell", "exec"), names)
        values.append(eval(compile(ast.Expression(last.value), "cell", "eval"), names) if ends else None)
    return values


@pytest.mark.parametrize("name, prints, pictures", [
    ("first_steps", r"success: True after \d+ steps\n", 3),
    ("whole_tasks", r"open_cabinet cabinet_0\n(.*\n)*end: success after", 1)])
def test_the_cells_of_a_notebook_do_what_they_say(name, prints, pictures, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    book = json.loads((PROGRAMS / f"{name}.ipynb").read_text(encoding="utf-8"))
    assert (book["nbformat"], book["nbformat_minor"]) == (4, 5)
    code = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
    values = run_cells(code)
    assert re.search(prints, capsys.readouterr().out)
    drawn = [isinstance(value, Image.Image) for value in values]
    assert sum(drawn) == pictures and drawn == [bool(cell["outputs"]) for cell in code], "pictures are kept"
    assert all(np.asarray(value).std() > 20 for value in values if isinstance(value, Image.Image))
    assert f"(examples/{name}.ipynb)" in (HOME / "README.md").read_text(encoding="utf-8")


def test_every_program_is_run_short_and_listed():
    programs = {path.stem: path.read_text(encoding="utf-8") for path in PROGRAMS.glob("*.py")}
    listed = (HOME / "README.md").read_text(encoding="utf-8")
    assert programs.keys() == SAYS.keys()
    for name, text in programs.items():
        assert f"(examples/{name}.py)" in listed and text.count("\n") <= (85 if name.startswith("own_") else 60)
        assert name == "own_skill" or f"    python examples/{name}.py\n" in text, "its first lines say how it is run"


def test_a_page_shows_an_example_as_it_is():
    """So that it is run once, and what is shown is what is run."""
    found = [(page.name, file, block) for page in PAGES for file, block in shown(page)]
    assert {file for _, file, _ in found} > {"roll_out.py", "own_environment.py", "own_skill.py", "put_away.yaml"}
    for page, file, block in found:
        assert block in (PROGRAMS / file).read_text(encoding="utf-8"), f"{page} shows another {file} than there is"
