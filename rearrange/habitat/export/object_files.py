"""The household objects as Habitat's rigid objects: a mesh to draw, a primitive that collides, mass and friction."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from rearrange.habitat.export.home_files import MARGIN_M
from rearrange.habitat.export.json_files import write_json
from rearrange.habitat.export.links import link_of
from rearrange.habitat.export.meshes import write_glb
from rearrange.habitat.export.urdf import turned
from rearrange.home.apartments.layouts import Layout
from rearrange.home.apartments.objects import OBJECTS
from rearrange.home.simulation.mujoco.build_model import compile_home

# Habitat's names of the primitives of size 1 that Bullet makes boxes, cylinders (axis y) and spheres of.
_PRIMITIVES = {
    "box": "cubeSolid", "sphere": "icosphereSolid_subdivs_1",
    "cylinder": "cylinderSolid_rings_1_segments_12_halfLen_1_useTexCoords_false_useTangents_false_capEnds_true"}


def write_objects(folder: Path, layout: Layout) -> None:
    """<name>.glb and <name>.object_config.json of every object; frame in its middle, y up as it stands."""
    model, place = compile_home(layout, tuple(OBJECTS)), folder / "objects"
    for i, (name, kind) in enumerate(OBJECTS.items()):
        (link,) = turned([link_of(model, f"object_{i}", None, name)], {name})
        write_glb(place / f"{name}.glb", link.shapes, np.eye(3))
        sliding, spinning_m, rolling_m = model.geom_friction[model.geom(f"object_{i}").id].tolist()
        x, y, z = kind.half_size_m if kind.shape == "box" else (kind.half_size_m[0],) * 2 + (kind.half_height_m,)
        write_json(place / f"{name}.object_config.json", {
            "render_asset": f"{name}.glb",
            "collision_asset": _PRIMITIVES[kind.shape], "collision_asset_size": [x, z, y],
            "up": [0, 1, 0], "front": [0, 0, -1], "units_to_meters": 1.0,
            "mass": link.mass_kg, "COM": link.center_of_mass_m, "inertia": np.diag(link.inertia_kg_m2),
            "friction_coefficient": sliding, "restitution_coefficient": 0.0,
            "spinning_friction_coefficient": spinning_m, "rolling_friction_coefficient": rolling_m,
            "margin": MARGIN_M, "shader_type": "phong",
            "user_defined": {"shape": kind.shape, "half_size_m": list(kind.half_size_m)}})
