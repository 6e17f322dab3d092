"""A kitchen in MuJoCo's XML: a room, a table, a counter with a drawer, and a fridge that opens the other way round."""

from __future__ import annotations

from pathlib import Path

KITCHEN = (Path(__file__).resolve().parents[2] / "examples/kitchen.xml").read_text()


def make_homes(folder: Path) -> Path:
    """Write `kitchen`, `empty` and a file that is no scene; returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kitchen.xml").write_text(KITCHEN)
    (folder / "empty.xml").write_text('<mujoco><worldbody><geom type="plane" size="3 3 1"/></worldbody></mujoco>')
    (folder / "textures.xml").write_text("<mujocoinclude/>")
    return folder
