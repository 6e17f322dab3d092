"""Entries of a scene's file, as {"template_name": "chair", "translation": [1, 0, 2]}: are they usable, and what stands
where by them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from rearrange.home.errors import UserError
from rearrange.home.geometry import quat_matrix
from rearrange.home.scene_files.reading import MOST_NUMBER, flag, numbers, shown
from rearrange.home.scene_files.surfaces import transform
from rearrange.home.scene_files.templates import ARTICULATED, OBJECTS, STAGES, Template, unused_keys
from rearrange.home.scene_files.urdf import Urdf

_AS_FILE, _BY_MASS = "asset_local", "com"  # values of translation_origin
_USED_OF_ALL = {  # the mass of what stands still changes nothing
    "template_name", "translation", "rotation", "uniform_scale", "user_defined", "mass_scale", "apply_scale_to_mass",
    "motion_type", "translation_origin"}
_USED = {STAGES: _USED_OF_ALL | {"non_uniform_scale", "is_instance_visible"},
         OBJECTS: _USED_OF_ALL | {"non_uniform_scale", "is_instance_visible"},
         ARTICULATED: _USED_OF_ALL | {"auto_clamp_joint_limits"}}
_UP = (0.0, 1.0, 0.0)  # of a receptacle that does not say it
_LEVEL = 0.9  # Habitat-Lab's tilt_tolerance: the least cosine between a receptacle's way up and the scene's
SINGULAR = {STAGES: "stage", OBJECTS: "object", ARTICULATED: "articulated object"}


@dataclass(frozen=True, eq=False)
class Placed:
    """A stage or an object in a scene. frame: (4, 4) from the template's frame to the scene's, y up, with the scales of
    the scene and of a stage itself.
    """

    template: Template
    frame: np.ndarray
    moves: bool = False


@dataclass(frozen=True, eq=False)
class PlacedArticulated:
    """An articulated object in a scene. handle: its name there, as Habitat counts: fridge_:0000. frame: (4, 4) of its
    root, without the scale, which is that of every length in its document. mass_scale: that of every mass.
    """

    handle: str
    urdf: Urdf
    receptacles: dict[str, dict]
    frame: np.ndarray
    scale: float
    mass_scale: float = 1.0


def check_entry(path: Path, entry: Any, kind: str) -> None:
    """Raises UserError unless an entry has a template, a valid place, and scales that leave something of it."""
    if not isinstance(entry, dict) or not isinstance(entry.get("template_name"), str):
        raise UserError(f"{path}: an entry has no template_name.")
    try:
        for key, count in (("translation", 3), ("rotation", 4), ("non_uniform_scale", 3), ("uniform_scale", 1),
                           ("mass_scale", 1)):
            values = numbers(path, entry, key, count)
            if values is None or key == "translation":
                continue
            if not (values.any() if key == "rotation" else values.all()):
                raise UserError(f"{path}: {key} should not be {shown(entry[key])}.")
        if kind == ARTICULATED and min(_factor(entry, "uniform_scale"), _factor(entry, "mass_scale")) <= 0.0:
            raise UserError(f"{path}: uniform_scale and mass_scale should be above 0.")
        for key in ("is_instance_visible", "apply_scale_to_mass"):
            flag(path, entry, key, True)
        origin_of(path, entry)
        if np.abs(_scale_of(entry)).max() > MOST_NUMBER:
            together = "uniform_scale and non_uniform_scale should together"
            raise UserError(f"{path}: {together} be at most {MOST_NUMBER:g}.")
    except UserError as error:
        raise UserError(f"{str(error).removesuffix('.')}, at {shown(entry['template_name'])}.") from None


def unused_of(entry: dict, kind: str) -> Iterator[str]:
    """What an entry asks for and does not get: keys that are not used, and a motion type that is not."""
    where = f"{SINGULAR[kind]}s in scenes"
    yield from unused_keys(entry, _USED[kind], where)
    if kind == ARTICULATED and _motion_of(entry) == "STATIC":
        yield f"motion_type STATIC of {where} (their joints move)"


def origin_of(path: Path, given: dict) -> str:
    """Which point stands at the `translation` of an entry, or of all entries of a scene; "" where it is not said.

    Where neither says it, it is the centre of mass: SceneInstanceAttributesManager reads a missing origin as unknown,
    and only for "asset_local" does PhysicsManager::addObjectAndSaveAttributes correct for the centre. Articulated
    objects are placed by their roots in either case.
    """
    value = given.get("translation_origin")
    word = value.lower() if isinstance(value, str) else value
    if word in (None, "", "unknown"):
        return ""
    if word not in (_BY_MASS, _AS_FILE):
        raise UserError(f"{path}: translation_origin should be COM or asset_local, not {shown(value)}.")
    return word


def placed(template: Template, entry: dict, kind: str, origin: str) -> Placed:
    """A stage or an object where an entry puts it, by its `origin`, see `origin_of`.

    Its triangles only collide where the entry says that it is not visible.
    """
    if entry.get("is_instance_visible", True) is False:
        template = replace(template, seen=tuple(replace(piece, visible=False) for piece in template.seen))
    frame = _frame_of(entry)
    if kind == STAGES:
        turn = frame[:3, :3] @ template.turn
        template = replace(template, receptacles=_level(template.receptacles, lambda box: turn @ turn_of(box)))
        return Placed(template, frame @ _scale_of(entry) @ transform(template.turn))
    template = replace(template, receptacles=_level(template.receptacles, lambda box: frame[:3, :3]))
    if origin != _AS_FILE and template.center is not None:
        frame[:3, 3] -= frame[:3, :3] @ (_scale_of(entry)[:3, :3] @ template.center)
    return Placed(template, frame @ _scale_of(entry), _motion_of(entry) == "DYNAMIC")


def placed_articulated(handle: str, found: tuple, entry: dict) -> PlacedArticulated:
    """An articulated object where an entry puts it. found: of `read_articulated`."""
    urdf, receptacles, scale, mass_scale, _ = found
    scale *= float(_factor(entry, "uniform_scale"))
    mass_scale *= float(_factor(entry, "mass_scale")) * (1.0 if entry.get("apply_scale_to_mass") is False else scale)
    frame = _frame_of(entry)
    turns = {urdf.root: frame[:3, :3]}
    for joint in urdf.joints:
        turns[joint.child] = turns[joint.parent] @ joint.frame[:3, :3]
    level = _level(receptacles, lambda box: turns.get(box.get("parent_link"), np.eye(3)))
    return PlacedArticulated(handle, urdf, level, frame, scale, mass_scale)


def _level(receptacles: dict[str, dict], turn_of: Callable[[dict], np.ndarray]) -> dict[str, dict]:
    """Those that are not tilted, as Habitat-Lab's ObjectSampler leaves out the others. turn_of: (3, 3) from the box of
    one to the scene, y up.
    """
    def cosine(box: dict) -> float:
        up = turn_of(box) @ np.array(box.get("up") or _UP, float)
        return float(up[1] / (np.linalg.norm(up) or 1.0))

    return {key: box for key, box in receptacles.items() if cosine(box) >= _LEVEL}


def tilted(before: dict[str, dict], after: dict[str, dict], kind: str) -> Iterator[str]:
    """That receptacles of a thing which was placed are not used, for the list of what files have beside that."""
    if len(after) < len(before):
        yield f"receptacles of {SINGULAR[kind]}s that are tilted where these stand"


def _motion_of(entry: dict) -> str:
    """The motion type of an entry in capitals, as DYNAMIC, which it is where nothing is said."""
    return str(entry.get("motion_type") or "DYNAMIC").upper()


def _factor(entry: dict, key: str) -> float:
    return 1.0 if entry.get(key) is None else entry[key]


def _frame_of(entry: dict) -> np.ndarray:
    """(4, 4) of an entry, without its scale."""
    return transform(turn_of(entry), entry.get("translation"))


def turn_of(given: dict) -> np.ndarray:
    """(3, 3) of the `rotation` of an entry, or of a receptacle of a stage."""
    quat = np.array(given.get("rotation") or (1.0, 0.0, 0.0, 0.0), float)
    return quat_matrix(quat / (np.linalg.norm(quat) or 1.0))


def _scale_of(entry: dict) -> np.ndarray:
    """(4, 4) of the scale of an entry."""
    along = np.array(entry.get("non_uniform_scale") or (1.0, 1.0, 1.0), float)
    return transform(np.diag(float(_factor(entry, "uniform_scale")) * along))
