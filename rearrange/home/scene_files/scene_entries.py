"""Entries of a scene's file, as {"template_name": "chair", "translation": [1, 0, 2]}: are they usable, and where they stand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rearrange.home.errors import UserError
from rearrange.home.geometry import quat_matrix
from rearrange.home.scene_files.reading import MOST_NUMBER, flag, numbers, shown
from rearrange.home.scene_files.templates import ARTICULATED, OBJECTS, STAGES, Template, unused_keys

AS_FILE, _BY_MASS = "asset_local", "com"  # values of translation_origin
_USED_OF_ALL = {"template_name", "translation", "rotation", "uniform_scale", "user_defined", "mass_scale",
                "apply_scale_to_mass", "motion_type", "translation_origin"}  # the mass of what stands still changes nothing
_USED = {STAGES: _USED_OF_ALL | {"non_uniform_scale", "is_instance_visible"},
         OBJECTS: _USED_OF_ALL | {"non_uniform_scale", "is_instance_visible"},
         ARTICULATED: _USED_OF_ALL | {"auto_clamp_joint_limits"}}
_NAMES = {STAGES: "stages in scenes", OBJECTS: "objects in scenes", ARTICULATED: "articulated objects in scenes"}


def check_entry(path: Path, entry: Any, kind: str) -> None:
    """Raises UserError unless an entry of a scene has a template, a valid place, and scales that leave something of it."""
    if not isinstance(entry, dict) or not isinstance(entry.get("template_name"), str):
        raise UserError(f"{path}: an entry has no template_name.")
    try:
        for key, count in (("translation", 3), ("rotation", 4), ("non_uniform_scale", 3), ("uniform_scale", 1),
                           ("mass_scale", 1)):
            values = numbers(path, entry, key, count)
            if values is not None and not (values.any() if key == "rotation" else key == "translation" or values.all()):
                raise UserError(f"{path}: {key} should not be {shown(entry[key])}.")
        if kind == ARTICULATED and min(factor(entry, "uniform_scale"), factor(entry, "mass_scale")) <= 0.0:
            raise UserError(f"{path}: uniform_scale and mass_scale should be above 0.")
        for key in ("is_instance_visible", "apply_scale_to_mass"):
            flag(path, entry, key, True)
        origin_of(path, entry)
        if np.abs(scaled(entry)).max() > MOST_NUMBER:
            raise UserError(f"{path}: uniform_scale and non_uniform_scale should together be at most {MOST_NUMBER:g}.")
    except UserError as error:
        raise UserError(f"{str(error).removesuffix('.')}, at {shown(entry['template_name'])}.") from None


def unused_of(entry: dict, kind: str) -> Iterator[str]:
    """What an entry asks for and does not get: keys that are not used, and a motion type that is not."""
    yield from unused_keys(entry, _USED[kind], _NAMES[kind])
    if kind == ARTICULATED and motion_of(entry) == "STATIC":
        yield f"motion_type STATIC of {_NAMES[kind]} (their joints move)"


def motion_of(entry: dict) -> str:
    """The motion type of an entry in capitals, as DYNAMIC, which it is where nothing is said."""
    return str(entry.get("motion_type") or "DYNAMIC").upper()


def origin_of(path: Path, given: dict) -> str:
    """Which point stands at the `translation` of an entry, or of all entries of a scene; "" where it is not said.

    Where neither says it, it is the centre of mass: SceneInstanceAttributesManager reads a missing origin as unknown, and
    only for "asset_local" does PhysicsManager::addObjectAndSaveAttributes correct for the centre. Articulated objects are
    placed by their roots in either case.
    """
    value = given.get("translation_origin")
    word = value.lower() if isinstance(value, str) else value
    if word in (None, "", "unknown"):
        return ""
    if word not in (_BY_MASS, AS_FILE):
        raise UserError(f"{path}: translation_origin should be COM or asset_local, not {shown(value)}.")
    return word


def factor(entry: dict, key: str) -> float:
    """A factor of an entry, 1 where none is given."""
    return 1.0 if entry.get(key) is None else entry[key]


def as_shown(template: Template, entry: dict) -> Template:
    """The template, whose triangles only collide where the scene says that the entry is not visible."""
    if entry.get("is_instance_visible", True) is not False:
        return template
    return replace(template, seen=tuple(replace(piece, visible=False) for piece in template.seen))


def frame_of(entry: dict, center: np.ndarray | None = None) -> np.ndarray:
    """(4, 4) of an entry of a scene, without its scale. center: the point of an object, in the template's frame, that stands at
    its `translation`; None: the template's origin.
    """
    frame = np.eye(4)
    quat = np.array(entry.get("rotation") or (1.0, 0.0, 0.0, 0.0), float)
    frame[:3, :3] = quat_matrix(quat / np.linalg.norm(quat))
    frame[:3, 3] = entry.get("translation") or (0.0, 0.0, 0.0)
    if center is not None:
        frame[:3, 3] -= frame[:3, :3] @ (scaled(entry)[:3, :3] @ center)
    return frame


def scaled(entry: dict) -> np.ndarray:
    """(4, 4) of the scale of an entry."""
    along = np.array(entry.get("non_uniform_scale") or (1.0, 1.0, 1.0), float)
    return square(np.diag(float(factor(entry, "uniform_scale")) * along))


def square(turn: np.ndarray) -> np.ndarray:
    """(4, 4) of a turn or a scale (3, 3)."""
    frame = np.eye(4)
    frame[:3, :3] = turn
    return frame
