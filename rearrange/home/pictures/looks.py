"""How everything looks in an episode: as it is, or with domain randomisation, other colours, light and camera poses.

The same settings and the same generator give the same looks. Colours are sRGB in [0, 1]; light is linear.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from rearrange.home.robot.cameras import mounting, shifted
from rearrange.home.robot.robot import Camera

_SUN, _SUN_RGB, _SKY_RGB = (-0.36, -0.50, 0.79), (0.55, 0.52, 0.46), (0.50, 0.53, 0.58)
_HIGHEST_RAD, _LOWEST_RAD = math.radians(80), math.radians(20)  # of the sun, at full strength


def _light(towards: tuple[float, ...], sun: tuple[float, ...], sky: tuple[float, ...]) -> np.ndarray:
    direction = np.array(towards) / np.linalg.norm(towards)
    return np.array([direction, sun, sky], np.float32)


@dataclass(frozen=True, eq=False)
class Looks:
    """How everything looks.

    color_share, color_seed: how far every colour is from its own, 1: any other. light (3, 3): as `exact_kernels` takes
    it. moves: of each camera that was moved, a shift (m) along its axes and a turn about them (rad, a rotation vector).
    """

    color_share: float = 0.0
    color_seed: int = 0
    light: np.ndarray = field(default_factory=lambda: _light(_SUN, _SUN_RGB, _SKY_RGB))
    moves: Mapping[str, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)

    def mounted(self, name: str, camera: Camera | np.ndarray) -> np.ndarray:
        """The mounting (4, 3) of the camera "head" or "arm" in these looks. camera: it, or its own mounting."""
        where = mounting(camera) if isinstance(camera, Camera) else camera
        return shifted(where, *self.moves[name]) if name in self.moves else where


PLAIN = Looks()
"""Everything as it is."""


def draw_looks(rng: np.random.Generator, colors: float = 0.0, light: float = 0.0, camera_m: float = 0.0,
               camera_deg: float = 0.0) -> Looks:
    """Looks of an episode. All numbers are drawn whatever is asked for: one setting does not change another.

    Args:
        colors, light: From 0, as it is, to 1, anything.
        camera_m, camera_deg: The farthest that a camera is shifted along, and turned about, each of its axes.
    """
    seed, drawn = int(rng.integers(2**31)), rng.uniform(-1.0, 1.0, 9)
    moves = {name: rng.uniform(-1.0, 1.0, (2, 3)) for name in ("head", "arm")}
    made = PLAIN.light
    if light:
        height = math.asin(PLAIN.light[0, 2])
        height += light * (0.5 * (_HIGHEST_RAD + _LOWEST_RAD) + 0.5 * (_HIGHEST_RAD - _LOWEST_RAD) * drawn[0] - height)
        around = math.atan2(PLAIN.light[0, 1], PLAIN.light[0, 0]) + light * math.pi * drawn[1]
        towards = math.cos(height) * math.cos(around), math.cos(height) * math.sin(around), math.sin(height)
        sun, sky = ([own * (1.0 + 0.6 * light * strength) * (1.0 + 0.2 * light * tint) for own, tint in zip(rgb, tints)]
                    for rgb, strength, tints in ((_SUN_RGB, drawn[2], drawn[4:7]), (_SKY_RGB, drawn[3], -drawn[4:7])))
        made = _light(towards, tuple(sun), tuple(sky))
    moves = {name: (camera_m * shift, math.radians(camera_deg) * turn) for name, (shift, turn) in moves.items()}
    return Looks(colors, seed, made, moves if camera_m or camera_deg else {})


class LookSeeds:
    """Seeds of looks and depth noise in the episodes of one environment, the same for the same seed of it.

    An episode that is asked for by its number alone is always the same.
    """

    def __init__(self) -> None:
        self._episodes = 0  # since the last seed

    def next(self, episode_id: str, environment_seed: int, seeded: bool, fixed: bool) -> list[int]:
        """The seed of an episode that begins.

        Args:
            seeded: The environment has just been given its seed.
            fixed: The episode alone counts.
        """
        self._episodes = 1 if seeded else self._episodes + 1
        own = zlib.crc32(episode_id.encode())
        return [own] if fixed else [own, abs(environment_seed), self._episodes]


def linear_colors(rgb: np.ndarray, things: np.ndarray, looks: Looks) -> np.ndarray:
    """Colours (n, 3) sRGB of shapes in these looks, linear float32. things (n,): parts of one thing keep one colour."""
    rgb = np.asarray(rgb, float)
    if looks.color_share:
        kinds, which = np.unique(np.column_stack([things, np.round(255 * rgb)]), axis=0, return_inverse=True)
        others = np.random.default_rng(looks.color_seed).uniform(0.0, 1.0, (len(kinds), 3))
        rgb = (1.0 - looks.color_share) * rgb + looks.color_share * others[which.ravel()]
    return (np.clip(rgb, 0.0, 1.0) ** 2.2).astype(np.float32)
