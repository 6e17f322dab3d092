"""The house as docs/architecture.md shows it: who may import whom, no circles, no crowded rooms."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.rooms import FILES, HOME, circle, imports, room_of, rooms

MOST_FILES = 24  # side by side in a folder
MOST_ROOMS, MOST_FLOORS = 20, 12
MOST_ENTRIES = 8  # of rearrange/


@pytest.fixture(scope="module")
def graph():
    """file -> files of ours that it imports."""
    return {file: imports(file) for file in FILES}


def test_no_files_import_each_other_in_a_circle(graph):
    assert not (path := circle(graph)), " imports ".join(path)


def test_a_room_imports_only_what_stands_below_it(graph):
    floors = rooms()
    wrong = [f"{file} (floor {floors[room_of(file)]}) imports {other} (floor {floors[room_of(other)]})"
             for file, others in graph.items() for other in sorted(others)
             if room_of(file) != room_of(other) and floors[room_of(other)] >= floors[room_of(file)]]
    assert not wrong, "\n".join(wrong)


def test_robots_are_imported_by_their_own_files_and_those_of_habitat_alone(graph):
    """All others ask `rearrange.home.robot`, which loads what the settings name."""
    of_one = {"rearrange/home/robot/fetch.py", "rearrange/home/robot/fetch_looks.py"}
    importers = {file for file, others in graph.items() if others & of_one}
    assert importers - of_one == {"rearrange/habitat/robot.py", "rearrange/habitat/export/fetch_links.py"}


def test_every_room_of_the_page_exists_and_is_not_crowded():
    files = Counter(file.rpartition("/")[0] for file in FILES)
    assert {room_of(file) for file in FILES} == set(rooms())
    assert max(files.values()) <= MOST_FILES, files.most_common(2)


def test_the_house_stays_small():
    assert len(rooms()) <= MOST_ROOMS and set(rooms().values()) <= set(range(1, MOST_FLOORS + 1))
    entries = {Path(file).parts[1] for file in FILES if file.startswith("rearrange/")}
    assert len(entries | {"py.typed"}) <= MOST_ENTRIES, entries


def test_a_circle_is_found_and_named():
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"] and circle({"a": {"b"}, "b": set()}) == []


def test_imports_inside_functions_count_and_those_for_types_do_not(graph):
    assert "eval/episode_video.py" in graph["eval/evaluate.py"], "imported inside a function"
    assert "rearrange/env/skill_env.py" not in graph["eval/agents.py"], "imported for type checkers alone"


def test_the_picture_is_that_of_today(monkeypatch):
    monkeypatch.syspath_prepend(str(HOME))
    sys.modules.pop("docs.rooms_picture", None)
    picture = pytest.importorskip("docs.rooms_picture").picture()
    assert (HOME / "docs/images/rooms.svg").read_text(encoding="utf-8") == picture, "run `python -m docs.rooms_picture`"
