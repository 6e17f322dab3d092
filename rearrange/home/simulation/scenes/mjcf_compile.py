"""MJCF files that others wrote: their elements are counted, they are compiled in a process of their own, and the model
that comes out is checked.

A few lines of MJCF can stand for millions of bodies (replicate in replicate) or gigabytes of texture. Counts refuse
those with the number. On a small file MuJoCo's reader can also take hours or gigabytes, or crash, and it answers no
signal meanwhile. The child process ends at its limits, and with its parent. It costs 0.2 s for each file, once per
process.
"""

from __future__ import annotations

import json
import math
import os
import signal
import stat
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from functools import lru_cache
from pathlib import Path

import mujoco
import numpy as np

from rearrange.home.errors import UserError
from rearrange.home.scene_files.reading import MOST_BYTES, MOST_NUMBER, scene_bytes

MOST_CPU_S, MOST_WAIT_S = 60, 300
MOST_MEMORY = 4 << 30  # bytes
MOST_ELEMENTS = 100_000  # XML elements of a scene, those counted that replicate, composite and flexcomp make
MOST_SAMPLES = 1 << 26  # pixels of one texture, or heights of one field
MOST_SIZE = 1_000_000  # of an attribute of <size>
MOST_BODIES, MOST_GEOMS, MOST_JOINTS = 20_000, 50_000, 500  # of a model; joints: hinges and slides
MOST_TRIANGLES = 5_000_000  # of a model's mesh geoms; a mesh counts once for each geom that shows it
_CHILD = Path(__file__).with_name("mjcf_child.py")
_NAME = "model.mjb"
_NUMBERS = ("body_pos", "body_quat", "body_mass", "geom_pos", "geom_quat", "geom_size", "geom_rgba", "site_pos",
            "site_quat", "site_size", "mesh_vert", "mat_rgba", "jnt_pos", "jnt_axis", "dof_damping", "dof_frictionloss",
            "eq_data")
_FOLDERS = ("meshdir", "texturedir", "assetdir")  # attributes of <compiler>
_COPIES = ("replicate", "composite", "flexcomp")  # elements with an attribute `count`


@lru_cache(maxsize=8)
def compiled(file: Path) -> mujoco.MjModel:
    """The model of an MJCF file. Raises UserError, with the file and the reason, if it cannot be used."""
    _check_documents(file)
    limits = map(str, (os.getpid(), MOST_CPU_S, MOST_MEMORY))
    command = [sys.executable, "-P", str(_CHILD), str(file.absolute()), *limits, json.dumps(sys.path)]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=MOST_WAIT_S,
                              env=os.environ | {"OPENBLAS_NUM_THREADS": "1"})
    except subprocess.TimeoutExpired:
        fail(file, f"MuJoCo has not compiled it in {MOST_WAIT_S} s")
    kind, answer = done.stdout[:1], done.stdout[1:]
    if done.returncode == 0 and kind == b"m":
        model = mujoco.MjModel.from_binary_path(_NAME, {_NAME: answer})
        _check_model(file, model)
        return model
    if done.returncode == 0 and kind == b"e":
        why = f"MuJoCo says {' '.join(answer.decode(errors='replace').split()).rstrip('.')}"
    elif done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        limits = f"{MOST_CPU_S} s of processor time and {MOST_MEMORY >> 30} GiB of memory"
        why = f"MuJoCo has not compiled it in {limits}"
    elif done.returncode < 0:
        why = f"MuJoCo crashed on it ({signal.Signals(-done.returncode).name})"
    else:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        why = f"MuJoCo ended with {done.returncode} on it ({said[-1] if said else 'no word'})"
    fail(file, why)


def fail(file: Path, why: str) -> None:
    """Raise UserError for a file, and the reason."""
    raise UserError(f"{file} cannot be used: {why}.")


def _check_documents(main: Path) -> None:
    """Refuse a file, or one that it includes or names, that is no regular file or is too large, and one with elements
    that stand for too many. What is no XML is left to MuJoCo, which says where.
    """
    todo, seen, folders, named, total = [(main, 1)], set(), {""}, [], 0
    while todo:
        file, times = todo.pop()
        if file in seen:
            continue
        seen.add(file)
        if file != main and not _is_there(file):
            continue
        raw = scene_bytes(file, "the scene's file" if file == main else f"the part of {main} in")
        try:
            root = ElementTree.fromstring(raw)
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
                fail(main, f"its <{element.tag}> elements and those around them stand for more than "
                           f"{MOST_ELEMENTS:,} elements")
            width, height = ("width", "height") if element.tag == "texture" else ("nrow", "ncol")
            samples = math.prod(_numbers(element, width) + _numbers(element, height))
            if element.tag in ("texture", "hfield") and samples > MOST_SAMPLES:
                size = f"{element.get(width)} x {element.get(height)}"
                fail(main, f"{element.tag} {element.get('name')!r} is {size}, more than {MOST_SAMPLES:,} values")
            for key in element.attrib if element.tag == "size" else ():
                if key != "memory" and _numbers(element, key)[0] > MOST_SIZE:
                    fail(main, f"<size> has {key}={element.get(key)}, more than {MOST_SIZE:,}")
            beside = {main.parent, file.parent}
            if element.tag == "compiler":
                folders.update(element.get(key, "") for key in _FOLDERS)
            elif element.tag in ("include", "model") and (name := element.get("file")):
                todo += [(folder / name, times) for folder in beside]
            else:
                named += [(folder, value) for key, value in element.attrib.items() if key.startswith("file")
                          for folder in beside]
            elements += [(child, times) for child in element]
    for path in sorted({folder / part / each for folder, name in named for part in folders
                        for each in (name, Path(name).name)}):  # the last part alone: strippath
        if _is_there(path) and (not path.is_file() or path.stat().st_size > MOST_BYTES):
            why = f"larger than {MOST_BYTES >> 20:,} MiB" if path.is_file() else "no regular file"
            fail(main, f"it names {path}, which is {why}")


def _check_model(file: Path, model: mujoco.MjModel) -> None:
    """Refuse a model that is larger than its readers here are made for, or has numbers that are not finite."""
    shown = model.geom_dataid[model.geom_type == mujoco.mjtGeom.mjGEOM_MESH]
    moving = int(np.isin(model.jnt_type, (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE)).sum())
    for count, most, what in ((model.nbody, MOST_BODIES, "bodies"), (model.ngeom, MOST_GEOMS, "geoms"),
                              (moving, MOST_JOINTS, "hinge and slide joints"),
                              (int(model.mesh_facenum[shown].sum()), MOST_TRIANGLES, "triangles of meshes")):
        if count > most:
            fail(file, f"it has {count:,} {what}, more than {most:,}")
    if model.nflex or model.nskin:
        fail(file, "it has a flex or a skin, as flexcomp makes them; what is soft cannot be used")
    for name in _NUMBERS:
        if not (np.abs(getattr(model, name)) <= MOST_NUMBER).all():  # nor of NaN
            kind = name.partition("_")[0]
            fail(file, f"it has {kind} elements with numbers that are not finite, or above {MOST_NUMBER:g}")


def _numbers(element: ElementTree.Element, key: str) -> list[float]:
    """Those of an attribute that counts something, at least 1 each; 1 where it is wrong, which MuJoCo says."""
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
