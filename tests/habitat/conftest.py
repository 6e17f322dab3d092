"""Exported homes for the tests that need a real habitat-sim, which are skipped with the reason where it is not."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from rearrange.command_line.cli import main

HOMES = 2
MISSING = [name for name in ("habitat_sim", "trimesh") if importlib.util.find_spec(name) is None]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if MISSING and item.get_closest_marker("habitat"):
            item.add_marker(pytest.mark.skip(reason=f"{' and '.join(MISSING)} not installed: see docs/habitat.md"))


@pytest.fixture(scope="session")
def homes(tmp_path_factory) -> Path:
    """The data set of the first validation homes."""
    out = tmp_path_factory.mktemp("habitat") / "homes"
    assert main(["scenes", "export", f"out={out}", f"count={HOMES}", "episodes_of=[pick]"]) == 0
    return out / "rearrange.scene_dataset_config.json"


@pytest.fixture(scope="session")
def settings(homes) -> dict:
    """Of an environment in these homes."""
    return {"sim": "habitat", "scene_dataset": str(homes), "split": "val", "num_layouts": HOMES}
