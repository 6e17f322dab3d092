"""`rearrange scenes view`: a picture of each scene of a data set on one sheet, and what skills find in it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from rearrange.home.apartments.floor_grid import CELL_M, floor_grid
from rearrange.home.apartments.parts import Receptacle
from rearrange.home.errors import UserError
from rearrange.home.geometry import compose
from rearrange.home.pictures.meshes import MeshTable
from rearrange.home.pictures.picture import Painter, Sphere, WireBox
from rearrange.home.simulation.mujoco.build_model import handle_part
from rearrange.home.simulation.scenes.scene import CompiledScene, compiled_scene, data_set, matching
from rearrange.home.simulation.scenes.scene_parts import STAGE
from rearrange.home.simulation.scenes.scene_selection import usable
from rearrange.home.text_table import columns

SIDE_PX, TITLE_PX, IN_A_ROW = 288, 20, 6
MOST_SCENES = 400

_LARGE = 3  # times as wide is the picture of a single scene
_CEILING_M = 2.1  # what of a stage is wholly higher hides the rooms from above
_FOV_DEG = 50.0
_HEAD = ("scene", "floor m2", "receptacles", "found", "reached", "drawers", "fridge")
_MARKS = {"drawer": (0.1, 0.3, 1.0), "fridge": (1.0, 0.5, 0.0)}  # colours of what is in drawers and the fridge
_OPEN_RGB, _HANDLE_RGB, _HANDLE_M = (0.0, 0.7, 0.1), (0.9, 0.0, 0.0), 0.03
_LEGEND = "marked is what skills use, green: surfaces, blue: in drawers, orange: in the fridge, red: handles of both"


def view(dataset: str, wanted: str | None, out: str | None,
         progress_of: Callable[[int], AbstractContextManager[Any]]) -> None:
    """Write the sheet and print a row for each scene. Raises UserError, at the end, for scenes that cannot be used.

    Args:
        dataset: Path of the data set.
        wanted: Names of scenes with *, separated by commas; None: all.
        out: The PNG file; None: scenes.png.
        progress_of: Makes a `trainer.logs.progress.Progress` for a number of scenes.
    """
    path, file = Path(dataset), Path(out or "scenes.png")
    if file.suffix.lower() != ".png":
        raise UserError(f"out={file} should be a file *.png.")
    names = data_set(path).scenes if wanted is None else matching(path, wanted, "scenes")
    if not names or len(names) > MOST_SCENES:
        raise UserError(f"dataset={dataset} has {len(names):,} scenes; a sheet has room for 1 to {MOST_SCENES}: choose "
                        "some with scenes=.")
    pictures, rows, problems = [], [], []
    with progress_of(len(names)) as progress:
        for done, name in enumerate(names, 1):
            try:
                scene = compiled_scene.__wrapped__(path, name, ())  # not kept: each is looked at once
                pictures.append((name, from_above(scene, SIDE_PX * max(1, _LARGE // len(names)))))
                rows.append(_row(name, scene))
            except UserError as error:
                problems.append(str(error))
            progress.update(done, {})
    if rows:
        print("\n".join(columns([_HEAD, *rows])))
        try:
            _sheet(pictures).save(file)
        except OSError as error:
            raise UserError(f"out={file} cannot be written ({error.strerror or error}).") from None
        print(f"{file}: {len(pictures)} of {len(names)} scenes from above\n  {_LEGEND}")
    for problem in problems:
        print(f"  {problem}")
    if problems:
        raise UserError(f"dataset={dataset}: {len(problems)} scene{'s' if len(problems) > 1 else ''} cannot be used.")


def from_above(scene: CompiledScene, size_px: int = SIDE_PX) -> np.ndarray:
    """(size, size, 3) uint8: the scene without ceiling and robot, with marks on what skills use."""
    model, (x, y) = scene.model, scene.layout.size_m
    data = mujoco.MjData(model)
    data.qpos[scene.base_qpos] = (-60.0, -60.0, 0.0)
    mujoco.mj_forward(model, data)
    height = 0.58 * max(x, y) / math.tan(math.radians(_FOV_DEG) / 2)
    aside = (0.0, -0.35 * height) if x >= y else (0.35 * height, 0.0)  # so that the longer side lies across
    painter = Painter(model, size_px, size_px, _FOV_DEG, hide_groups=scene.unseen_groups,
                      meshes=_without_ceiling(scene.meshes), cut_above_m=math.inf)
    eye = (x / 2 + aside[0], y / 2 + aside[1], height)
    return painter.render(data, eye, (x / 2, y / 2, 0.5), list(_marks(scene)))


def _marks(scene: CompiledScene) -> Iterator[WireBox | Sphere]:
    """The receptacles that skills use, everything closed, and the handles of what shuts them."""
    bodies, opened = {body.name: body for body in scene.layout.bodies}, set()
    for place in _reached(scene):
        (x, y, z), yaw = place.center_m, place.yaw_rad
        if place.parent is not None:
            body = bodies[place.parent]
            x, y, turn = compose(body.pose(), (x, y, yaw))
            z, yaw = z + body.position_m[2], turn
        quat = math.cos(yaw / 2), 0.0, 0.0, math.sin(yaw / 2)
        yield WireBox((x, y, z), (*place.half_extents_m, 0.005), quat, _MARKS.get(place.kind, _OPEN_RGB))
        opened |= {place.link} - {None}
    for name in sorted(opened):
        body = bodies[name]
        handle = handle_part(body).at(body.pose(), body.position_m[2])
        yield Sphere(handle.center_m, _HANDLE_M, _HANDLE_RGB, 0.9)


def _reached(scene: CompiledScene) -> tuple[Receptacle, ...]:
    try:
        return usable(scene.scene).receptacles
    except UserError:
        return ()


def _without_ceiling(table: MeshTable) -> MeshTable:
    low = table.vertices[table.triangles][:, :, 2].min(axis=1)
    triangles = table.triangles.copy()
    hidden = (table.owners == STAGE) & (low > _CEILING_M)
    triangles[hidden] = triangles[hidden][:, :1]  # without area they are not drawn
    return replace(table, triangles=triangles)


def _row(name: str, scene: CompiledScene) -> tuple[str, ...]:
    layout = scene.layout
    reached = _reached(scene)
    floor_m2 = floor_grid(layout).reachable.sum() * CELL_M**2
    kinds = [place.kind for place in reached]
    return (name, f"{floor_m2:.0f}", str(len(layout.receptacles)), str(len(scene.scene.found)),
            str(len(reached)), str(kinds.count("drawer")),
            "yes" if "fridge" in kinds else "no")


def _sheet(pictures: list[tuple[str, np.ndarray]]) -> Any:
    """Pictures with their names, row by row, as one image."""
    from PIL import Image, ImageDraw

    across = min(IN_A_ROW, len(pictures))
    down = math.ceil(len(pictures) / across)
    side_px = len(pictures[0][1])
    sheet = Image.new("RGB", (across * side_px, down * (side_px + TITLE_PX)), "white")
    draw = ImageDraw.Draw(sheet)
    for k, (name, pixels) in enumerate(pictures):
        x, y = k % across * side_px, k // across * (side_px + TITLE_PX)
        sheet.paste(Image.fromarray(pixels), (x, y + TITLE_PX))
        draw.text((x + 4, y + 3), name, fill="black")
    return sheet
