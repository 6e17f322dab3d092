"""The household objects, as primitives with the sizes and masses of the YCB set (Calli et al. 2015).

Each stands the way people leave it: tall boxes upright, the two flat dessert boxes lying.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class ObjectModel:
    """One kind of object; its frame sits in its middle, z up when it stands."""

    name: str
    shape: str
    """"box", "cylinder" (axis z) or "sphere"."""
    half_size_m: tuple[float, ...]
    """Box: half x, y, z. Cylinder: radius, half height. Sphere: radius."""
    mass_kg: float
    rgba: tuple[float, float, float, float]

    @property
    def half_height_m(self) -> float:
        """Height of the middle above the surface it stands on."""
        return self.half_size_m[-1]

    @property
    def half_extents_m(self) -> tuple[float, float, float]:
        """Half size of the box around it, in its frame."""
        if self.shape == "box":
            return self.half_size_m
        return self.half_size_m[0], self.half_size_m[0], self.half_size_m[-1]

    @cached_property
    def radius_m(self) -> float:
        """Radius of the upright cylinder around it."""
        if self.shape == "box":
            return math.hypot(self.half_size_m[0], self.half_size_m[1])
        return self.half_size_m[0]


def _box(name: str, x_mm: float, y_mm: float, z_mm: float, mass_kg: float,
         rgb: tuple[float, float, float]) -> ObjectModel:
    return ObjectModel(name, "box", (x_mm / 2000, y_mm / 2000, z_mm / 2000), mass_kg, (*rgb, 1.0))


def _cylinder(name: str, diameter_mm: float, z_mm: float, mass_kg: float,
              rgb: tuple[float, float, float]) -> ObjectModel:
    return ObjectModel(name, "cylinder", (diameter_mm / 2000, z_mm / 2000), mass_kg, (*rgb, 1.0))


OBJECTS: dict[str, ObjectModel] = {
    model.name: model for model in (_cylinder("002_master_chef_can", 102, 139, 0.414, (0.10, 0.16, 0.52)),
                                    _box("003_cracker_box", 60, 158, 210, 0.411, (0.80, 0.11, 0.10)),
                                    _box("004_sugar_box", 38, 89, 175, 0.514, (0.95, 0.80, 0.16)),
                                    _cylinder("005_tomato_soup_can", 66, 101, 0.349, (0.86, 0.33, 0.24)),
                                    _cylinder("007_tuna_fish_can", 85, 33, 0.171, (0.20, 0.45, 0.72)),
                                    _box("008_pudding_box", 110, 89, 35, 0.187, (0.46, 0.26, 0.15)),
                                    _box("009_gelatin_box", 85, 73, 28, 0.097, (0.88, 0.42, 0.55)),
                                    _box("010_potted_meat_can", 50, 97, 82, 0.370, (0.16, 0.24, 0.44)),
                                    ObjectModel("013_apple", "sphere", (0.0375,), 0.068, (0.70, 0.09, 0.10, 1.0)),
                                    _cylinder("024_bowl", 159, 53, 0.147, (0.78, 0.28, 0.20)))}
"""The objects of the Home Assistant Benchmark by YCB name."""

STANDARD_SET: tuple[str, ...] = tuple(OBJECTS) * 2
"""What a compiled home contains unless told otherwise: every object twice."""
