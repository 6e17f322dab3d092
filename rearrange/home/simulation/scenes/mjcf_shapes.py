"""Geoms of a MuJoCo model as what collides and as triangles, in the geom's frame (m)."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np

from rearrange.home.scene_files.surfaces import moved, surface
from rearrange.home.simulation.scenes.convex_parts import Solid, hull
from rearrange.home.simulation.scenes.mjcf_compile import fail

_SAMPLE = 1 << 16  # pixels of a texture
_INFINITE_M = 20.0  # half a side of a plane that has none
_THICK_M = 0.01  # half, of a plane that stands upright
_GEOM = mujoco.mjtGeom
_KINDS = {_GEOM.mjGEOM_BOX: ("box", 3), _GEOM.mjGEOM_CYLINDER: ("cylinder", 2), _GEOM.mjGEOM_CAPSULE: ("capsule", 2),
          _GEOM.mjGEOM_SPHERE: ("sphere", 1)}  # with how many of MuJoCo's three sizes each has
_DEFAULT_RGBA = np.array((0.5, 0.5, 0.5, 1.0), np.float32)  # of a geom
_SEEN_GROUPS = 3  # geoms of the first so many are seen, as in MuJoCo's viewer
_COLOR_ROLES = (int(mujoco.mjtTextureRole.mjTEXROLE_RGB), int(mujoco.mjtTextureRole.mjTEXROLE_RGBA))


def solid_of(model: mujoco.MjModel, geom: int, frame: np.ndarray, file: Path) -> Solid | None:
    """What of a geom at `frame` (4, 4) collides: of a mesh its hull, as in MuJoCo; None for a level plane.

    Raises UserError, naming the file, for height fields and the like.
    """
    check_kind(model, geom, file)
    kind, size = int(model.geom_type[geom]), model.geom_size[geom]
    if kind in _KINDS:
        name, count = _KINDS[kind]
        return Solid(name, frame, tuple(size[:count].tolist()))
    if kind == _GEOM.mjGEOM_PLANE:
        if abs(frame[2, 2]) > 0.5:
            return None
        behind = frame.copy()
        behind[:3, 3] -= _THICK_M * frame[:3, 2]
        return Solid("box", behind, (*_plane_half(size), _THICK_M))
    return hull(moved(seen_of(model, geom)[0], frame))


def check_kind(model: mujoco.MjModel, geom: int, file: Path) -> None:
    """Raise UserError, naming the file, for height fields and the like, whose surface is not known here."""
    kind = int(model.geom_type[geom])
    if kind not in _KINDS and kind not in (_GEOM.mjGEOM_PLANE, _GEOM.mjGEOM_MESH, _GEOM.mjGEOM_ELLIPSOID):
        known = ", ".join(["plane", "mesh", "ellipsoid", *(name for name, _ in _KINDS.values())])
        fail(file, f"geom {model.geom(geom).name!r} is of the type {_type_name(kind)}; there are {known}")


def rgba_of(model: mujoco.MjModel, geom: int) -> np.ndarray:
    """(4,) of a geom, without its texture. As MuJoCo draws it, its own colour, if it is not the default, wins over that
    of its material.
    """
    own, material = model.geom_rgba[geom], int(model.geom_matid[geom])
    return own if material < 0 or not np.array_equal(own, _DEFAULT_RGBA) else model.mat_rgba[material]


def visible(model: mujoco.MjModel) -> np.ndarray:
    """(geoms,) whether each is seen, as in MuJoCo's viewer."""
    opaque = [rgba_of(model, geom)[3] > 0.0 for geom in range(model.ngeom)]
    return np.array(opaque, bool) & (model.geom_group < _SEEN_GROUPS)


def texture_rgb(model: mujoco.MjModel) -> np.ndarray:
    """(textures, 3) mean colour of each texture, 0 .. 1; of a large one that of a sample of its pixels."""
    means, chance = np.ones((model.ntex, 3)), np.random.default_rng(0)
    for texture in range(model.ntex):
        channels, first = int(model.tex_nchannel[texture]), int(model.tex_adr[texture])
        count = int(model.tex_width[texture]) * int(model.tex_height[texture])
        pixels = model.tex_data[first:first + count * channels].reshape(count, channels)
        sample = pixels if count <= _SAMPLE else pixels[chance.integers(count, size=_SAMPLE)]
        means[texture] = sample[:, :3].mean(axis=0) / 255.0  # one channel is grey
    return means


def color_of(model: mujoco.MjModel, geom: int, textures: np.ndarray) -> np.ndarray:
    """(3,) sRGB of a geom: `rgba_of`, times the mean (`texture_rgb`) of its material's texture, which is not drawn."""
    rgb, material = rgba_of(model, geom)[:3].astype(float), int(model.geom_matid[geom])
    given = () if material < 0 else model.mat_texid[material][list(_COLOR_ROLES)].tolist()
    texture = next((texture for texture in given if texture >= 0), None)
    return np.clip(rgb if texture is None else rgb * textures[texture], 0.0, 1.0)


def seen_of(model: mujoco.MjModel, geom: int) -> tuple[np.ndarray, np.ndarray]:
    """Vertices (n, 3) and triangles (m, 3) of a geom, counterclockwise from outside."""
    kind, size = int(model.geom_type[geom]), model.geom_size[geom]
    if kind == _GEOM.mjGEOM_MESH:
        mesh = int(model.geom_dataid[geom])
        first, faces = int(model.mesh_vertadr[mesh]), int(model.mesh_faceadr[mesh])
        return (model.mesh_vert[first:first + int(model.mesh_vertnum[mesh])].astype(float),
                model.mesh_face[faces:faces + int(model.mesh_facenum[mesh])].astype(int))
    if kind == _GEOM.mjGEOM_PLANE:
        x, y = _plane_half(size)
        return np.array([(-x, -y, 0.0), (x, -y, 0.0), (x, y, 0.0), (-x, y, 0.0)]), np.array([(0, 1, 2), (0, 2, 3)])
    return surface(_type_name(kind), size)


def is_endless(model: mujoco.MjModel, geom: int) -> bool:
    """Whether a geom is a plane without an end in either direction."""
    return bool(model.geom_type[geom] == _GEOM.mjGEOM_PLANE and (model.geom_size[geom][:2] <= 0.0).any())


def _plane_half(size: np.ndarray) -> tuple[float, float]:
    """Half sides of a plane."""
    x, y = (float(value) if value > 0.0 else _INFINITE_M for value in size[:2])
    return x, y


def _type_name(kind: int) -> str:
    return mujoco.mjtGeom(kind).name.removeprefix("mjGEOM_").lower()
