"""The household objects as Habitat's rigid objects: a mesh, and a file that says how heavy and rough it is."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from rearrange.home import compile_home
from rearrange.layouts import Layout
from rearrange.objects import OBJECTS
from rearrange.to_habitat.home_files import MARGIN_M
from rearrange.to_habitat.json_files import plain, write_json
from rearrange.to_habitat.links import link_of
from rearrange.to_habitat.meshes import write_glb
from rearrange.to_habitat.urdf import turned


def write_objects(folder: Path, layout: Layout) -> None:
    """<name>.glb and <name>.object_config.json of every object; frame in its middle, y up as it stands."""
    model = compile_home(layout, tuple(OBJECTS))
    place = folder / "objects"
    place.mkdir(parents=True, exist_ok=True)
    for i, (name, kind) in enumerate(OBJECTS.items()):
        (link,) = turned([link_of(model, f"object_{i}", None, name)], {name})
        write_glb(place / f"{name}.glb", link.shapes, np.eye(3))
        sliding, spinning_m, rolling_m = model.geom_friction[model.geom(f"object_{i}").id].tolist()
        write_json(place / f"{name}.object_config.json", plain({
            "render_asset": f"{name}.glb", "up": [0, 1, 0], "front": [0, 0, -1], "units_to_meters": 1.0,
            "mass": link.mass_kg, "COM": link.center_of_mass_m, "inertia": np.diag(link.inertia_kg_m2),
            "friction_coefficient": sliding, "restitution_coefficient": 0.0,
            "spinning_friction_coefficient": spinning_m, "rolling_friction_coefficient": rolling_m,
            "margin": MARGIN_M, "join_collision_meshes": True, "use_bounding_box_for_collision": kind.shape == "box",
            "shader_type": "phong", "user_defined": {"shape": kind.shape, "half_size_m": list(kind.half_size_m)}}))
