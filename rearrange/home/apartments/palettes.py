"""The colours of the homes, one palette per family."""

from __future__ import annotations

from dataclasses import dataclass

from rearrange.home.apartments.parts import Rgb


@dataclass(frozen=True)
class Palette:
    """Colours of one home."""

    floor: Rgb
    wall: Rgb
    wood: Rgb
    wood_dark: Rgb
    fabric: Rgb
    fabric_light: Rgb
    cabinet: Rgb
    worktop: Rgb
    accent: Rgb
    metal: Rgb = (0.62, 0.64, 0.66)
    white: Rgb = (0.93, 0.93, 0.92)
    screen: Rgb = (0.06, 0.06, 0.07)
    glass: Rgb = (0.66, 0.82, 0.93)


PALETTES: tuple[Palette, ...] = (
    Palette(floor=(0.68, 0.53, 0.38), wall=(0.92, 0.90, 0.85), wood=(0.66, 0.46, 0.28), wood_dark=(0.40, 0.27, 0.17),
            fabric=(0.36, 0.46, 0.60), fabric_light=(0.72, 0.76, 0.80), cabinet=(0.86, 0.83, 0.76),
            worktop=(0.28, 0.28, 0.30), accent=(0.72, 0.38, 0.30)),
    Palette(floor=(0.60, 0.50, 0.42), wall=(0.88, 0.91, 0.90), wood=(0.78, 0.62, 0.42), wood_dark=(0.52, 0.38, 0.25),
            fabric=(0.44, 0.55, 0.46), fabric_light=(0.85, 0.82, 0.74), cabinet=(0.55, 0.65, 0.66),
            worktop=(0.80, 0.72, 0.60), accent=(0.86, 0.66, 0.36)),
    Palette(floor=(0.74, 0.66, 0.55), wall=(0.93, 0.92, 0.92), wood=(0.50, 0.34, 0.24), wood_dark=(0.28, 0.20, 0.16),
            fabric=(0.62, 0.40, 0.38), fabric_light=(0.80, 0.72, 0.68), cabinet=(0.90, 0.90, 0.88),
            worktop=(0.45, 0.40, 0.38), accent=(0.35, 0.48, 0.52)),
    Palette(floor=(0.62, 0.60, 0.58), wall=(0.90, 0.88, 0.84), wood=(0.72, 0.55, 0.36), wood_dark=(0.35, 0.30, 0.28),
            fabric=(0.30, 0.36, 0.42), fabric_light=(0.78, 0.78, 0.76), cabinet=(0.42, 0.50, 0.46),
            worktop=(0.85, 0.84, 0.82), accent=(0.88, 0.74, 0.30)),
    Palette(floor=(0.55, 0.42, 0.32), wall=(0.91, 0.88, 0.86), wood=(0.80, 0.68, 0.52), wood_dark=(0.44, 0.34, 0.28),
            fabric=(0.70, 0.60, 0.46), fabric_light=(0.88, 0.86, 0.82), cabinet=(0.80, 0.72, 0.66),
            worktop=(0.25, 0.30, 0.32), accent=(0.40, 0.30, 0.46)),
    Palette(floor=(0.58, 0.48, 0.36), wall=(0.90, 0.92, 0.88), wood=(0.60, 0.44, 0.30), wood_dark=(0.34, 0.24, 0.18),
            fabric=(0.52, 0.44, 0.58), fabric_light=(0.80, 0.78, 0.84), cabinet=(0.70, 0.74, 0.62),
            worktop=(0.36, 0.32, 0.30), accent=(0.30, 0.52, 0.56)))
"""One per family."""
