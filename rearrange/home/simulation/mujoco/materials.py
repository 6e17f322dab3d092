"""What geoms are made of, for pictures from outside: by the colour of a part in its palette, or by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rearrange.home.apartments.palettes import PALETTES
from rearrange.home.pictures.raster_kernels import BOX, CYLINDER
from rearrange.home.pictures.textures import FABRIC, LABEL, PLAIN, TILES, WINDOW, WOOD

if TYPE_CHECKING:
    import mujoco

_OF_COLOUR = {"wood": WOOD, "wood_dark": WOOD, "fabric": FABRIC, "fabric_light": FABRIC, "worktop": TILES}
_PRINTED = ("can", "box")  # how the names of objects with a label end


def materials_of(model: mujoco.MjModel, objects: tuple[str, ...]) -> np.ndarray:
    """(ngeom,) int32 of `rearrange.home.pictures.textures`; objects: name of each slot."""
    known = {_key(getattr(palette, name)): material for palette in PALETTES for name, material in _OF_COLOUR.items()}
    made = np.full(model.ngeom, PLAIN, np.int32)
    for geom in range(model.ngeom):
        name = model.geom(geom).name
        if name.startswith("object_"):
            made[geom] = LABEL if objects[int(name.split("_")[1])].endswith(_PRINTED) else PLAIN
        elif name.startswith("window_"):
            made[geom] = WINDOW
        elif name == "rug":
            made[geom] = FABRIC
        elif int(model.geom_type[geom]) in (BOX, CYLINDER):
            made[geom] = known.get(_key(model.geom_rgba[geom, :3]), PLAIN)
    return made


def _key(rgb: tuple[float, ...] | np.ndarray) -> tuple[int, ...]:
    """A colour as the model rounds it."""
    return tuple(round(1000 * float(value)) for value in rgb)
