"""Limits of MJCF files that others wrote: what is counted before MuJoCo compiles them, and in the model that comes out.

A few lines of MJCF can stand for millions of bodies (replicate in replicate) or gigabytes of texture. The counts here
refuse those with the number; `mjcf_compile` bounds time and memory for everything that is not counted.
"""

from __future__ import annotations

import math
import os
import stat
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import mujoco
import numpy as np

from rearrange.home.errors import UserError
from rearrange.home.scene_files.reading import MOST_BYTES, MOST_NUMBER, scene_bytes

MOST_ELEMENTS = 100_000  # XML elements of a scene, those counted that replicate, composite and flexcomp make
MOST_SAMPLES = 1 << 26  # pixels of one texture, or heights of one field
MOST_SIZE = 1_000_000  # of an attribute of <size>
MOST_BODIES, MOST_GEOMS, MOST_JOINTS = 20_000, 50_000, 500  # of a model; joints: hinges and slides
MOST_TRIANGLES = 5_000_000  # of a model's mesh geoms; a mesh counts once for each geom that shows it
_NUMBERS = ("body_pos", "body_quat", "body_mass", "geom_pos", "geom_quat", "geom_size", "geom_rgba", "site_pos", "site_quat",
            "site_size", "mesh_vert", "mat_rgba", "jnt_pos", "jnt_axis", "dof_damping", "dof_frictionloss", "eq_data")
_FOLDERS = ("meshdir", "texturedir", "assetdir")  # attributes of <compiler>
_COPIES = ("replicate", "composite", "flexcomp")  # elements with an attribute `count`


def check_documents(main: Path) -> None:
    """Raise UserError for a file, or one that it includes or names, that is no regular file or is too large, and for one
    whose elements stand for too many. What is no XML is left to MuJoCo, which says where.
    """
    todo, seen, folders, named, total = [(main, 1)], set(), {""}, [], 0
    while todo:
        file, times = todo.pop()
        if file in seen:
            continue
        seen.add(file)
        if file != main and not _is_there(file):
            continue
        try:
            root = ElementTree.fromstring(scene_bytes(file, "the scene's file" if file == main else f"the part of {main} in"))
        except UserError:
            raise
        except (ValueError, LookupError, ElementTree.ParseError):  # LookupError: of an encoding that there is not
            continue
        elements = [(root, times)]
        while elements:
            element, times = elements.pop()
            total += times
            if element.tag in _COPIES:
                made = math.prod(_numbers(element, "count"))
                times, total = times * made, total + (0 if element.tag == "replicate" else times * made)
            if total > MOST_ELEMENTS or times > MOST_ELEMENTS:
                _fail(main, f"its <{element.tag}> elements and those around them stand for more than {MOST_ELEMENTS:,} elements")
            width, height = ("width", "height") if element.tag == "texture" else ("nrow", "ncol")
            samples = math.prod(_numbers(element, width) + _numbers(element, height))
            if element.tag in ("texture", "hfield") and samples > MOST_SAMPLES:
                _fail(main, f"{element.tag} {element.get('name')!r} is {element.get(width)} x {element.get(height)}, "
                            f"more than {MOST_SAMPLES:,} values")
            for key in element.attrib if element.tag == "size" else ():
                if key != "memory" and _numbers(element, key)[0] > MOST_SIZE:
                    _fail(main, f"<size> has {key}={element.get(key)}, more than {MOST_SIZE:,}")
            if element.tag == "compiler":
                folders.update(element.get(key, "") for key in _FOLDERS)
            elif element.tag in ("include", "model") and (name := element.get("file")):
                todo += [(folder / name, times) for folder in {main.parent, file.parent}]
            else:
                named += [(folder, value) for key, value in element.attrib.items() if key.startswith("file")
                          for folder in {main.parent, file.parent}]
            elements += [(child, times) for child in element]
    for path in sorted({folder / part / each for folder, name in named for part in folders
                        for each in (name, Path(name).name)}):  # the last part alone: strippath
        if _is_there(path) and (not path.is_file() or path.stat().st_size > MOST_BYTES):
            why = f"larger than {MOST_BYTES >> 20:,} MiB" if path.is_file() else "no regular file"
            _fail(main, f"it names {path}, which is {why}")


def check_model(file: Path, model: mujoco.MjModel) -> None:
    """Raise UserError for a model that is larger than its readers here are made for, or has numbers that are not finite."""
    shown = model.geom_dataid[model.geom_type == mujoco.mjtGeom.mjGEOM_MESH]
    moving = int(np.isin(model.jnt_type, (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE)).sum())
    for count, most, what in ((model.nbody, MOST_BODIES, "bodies"), (model.ngeom, MOST_GEOMS, "geoms"),
                              (moving, MOST_JOINTS, "hinge and slide joints"),
                              (int(model.mesh_facenum[shown].sum()), MOST_TRIANGLES, "triangles of meshes")):
        if count > most:
            _fail(file, f"it has {count:,} {what}, more than {most:,}")
    if model.nflex or model.nskin:
        _fail(file, "it has a flex or a skin, as flexcomp makes them; what is soft cannot be used")
    for name in _NUMBERS:
        if not (np.abs(getattr(model, name)) <= MOST_NUMBER).all():  # nor of NaN
            _fail(file, f"it has {name.split('_')[0]} elements with numbers that are not finite, or above {MOST_NUMBER:g}")


def followings(model: mujoco.MjModel) -> list[int]:
    """Numbers of the constraints by which one joint follows another."""
    kinds = (model.eq_type == mujoco.mjtEq.mjEQ_JOINT) & (model.eq_active0 != 0) & (model.eq_obj2id >= 0)
    return np.flatnonzero(kinds).tolist()


def unused_of(model: mujoco.MjModel) -> list[str]:
    """What a model has that the scene that is made of it has not."""
    tied = int((model.eq_active0 != 0).sum()) - len(followings(model))
    bare = mujoco.MjModel.from_xml_string("<mujoco><worldbody><geom size='1'/></worldbody></mujoco>")
    rubbed = any((getattr(model, name) != getattr(bare, name)[0]).any()
                 for name in ("geom_friction", "geom_solref", "geom_solimp", "geom_condim", "geom_margin"))
    has = {"<actuator>": model.nu, "<tendon>": model.ntendon, "<keyframe>": model.nkey,
           "<contact> of pairs": model.npair + model.nexclude, "<equality> other than joint to joint": tied, "stiffness of a joint": (model.jnt_stiffness != 0.0).any(),
           "friction and softness of geoms": rubbed, "pictures of textures (their mean colour is)": (model.mat_texid >= 0).any(),
           "gravity and wind of <option>": (model.opt.gravity != bare.opt.gravity).any() or model.opt.wind.any()}
    return [what for what, there in has.items() if there]


def _fail(file: Path, why: str) -> None:
    raise UserError(f"{file} cannot be used: {why}.")


def _numbers(element: ElementTree.Element, key: str) -> list[float]:
    """Those of an attribute that count something, at least 1 each; of one that is none 1: MuJoCo says what is wrong with it."""
    try:
        return [max(1.0, number) for number in map(float, element.get(key, "").split())] or [1.0]
    except ValueError:
        return [1.0]


def _is_there(path: Path) -> bool:
    """Whether a path leads to something that is no folder."""
    try:
        return not stat.S_ISDIR(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False
