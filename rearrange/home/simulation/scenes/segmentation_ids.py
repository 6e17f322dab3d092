"""Whose each triangle of a scene is, by the numbers of `rearrange.home.apartments.segmentation`, and what these are called.

After the objects of an episode come furniture, in the order of the scene's file, then drawers and doors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import mujoco
import numpy as np

from rearrange.home.apartments import segmentation
from rearrange.home.apartments.segmentation import BUILDING, MOST, NOTHING, OBJECT
from rearrange.home.pictures.meshes import MeshTable
from rearrange.home.simulation.scenes.scene_parts import STAGE

_LEVEL, _FLOOR_M, _CEILING_M = 0.9, 0.1, 2.0  # how upright the normal of a floor or ceiling is, how high a floor and how low a ceiling may be


def things_of_triangles(model: mujoco.MjModel, meshes: MeshTable, owners: Mapping[int, str], joints: Sequence[str],
                        index_of_slot: Mapping[int, int]) -> np.ndarray:
    """(T,) int32. owners: names of what owns triangles, but of the stage. joints: bodies of drawers and doors. index_of_slot: which object
    of the episode each slot holds; those that wait outside are nothing.
    """
    first = OBJECT + len(index_of_slot)
    of_owner = {owner: first + k for k, owner in enumerate(owners)}
    of_body = {name: first + len(owners) + k for k, name in enumerate(joints)}
    of_body |= {f"object_{slot}": OBJECT + index for slot, index in index_of_slot.items()}
    things = np.array([of_owner.get(int(owner), NOTHING) for owner in meshes.owners], np.int32)
    for row in np.unique(meshes.rows):
        name = model.body(int(row)).name
        if name in of_body:
            things[meshes.rows == row] = of_body[name]
    stage = meshes.owners == STAGE
    height_m, up = meshes.vertices[meshes.triangles][:, :, 2].mean(axis=1), meshes.normals[:, 2]
    things[stage] = BUILDING["wall"]
    things[stage & (abs(up) > _LEVEL) & (height_m > _CEILING_M)] = BUILDING["ceiling"]
    things[stage & (up > _LEVEL) & (height_m < _FLOOR_M)] = BUILDING["floor"]
    return np.where(things <= MOST, things, NOTHING)


def names_of(owners: Mapping[int, str], joints: Sequence[str], objects: Sequence[str]) -> dict[int, str]:
    """Number -> name, as `rearrange.home.apartments.segmentation.names_of`."""
    first, names = OBJECT + len(objects), [*segmentation.numbered(owners.values()), *joints]
    return segmentation.robot_and_objects(objects) | {first + k: f"furniture/{name}" for k, name in enumerate(names) if first + k <= MOST}
