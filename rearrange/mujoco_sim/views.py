"""What a MuJoCo home looks like: to the robot's head camera, and to a spectator."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from rearrange.mujoco_sim.compiled_home import CACHED_HOMES, CompiledHome
from rearrange.pictures.raster import DepthCamera

if TYPE_CHECKING:
    import mujoco
    import numpy as np


CEILING_GROUP = 4


@lru_cache(maxsize=CACHED_HOMES)
def head_camera(home: CompiledHome, size: int) -> DepthCamera:
    """The head camera in a home, shared by the environments of a process (which step one after another)."""
    return DepthCamera(home.model, size, hide_groups=home.unseen_groups, meshes=home.meshes)


class Spectator:
    """Makes pictures from outside; remembers what it prepared for the home that it painted last."""

    def __init__(self) -> None:
        self._last: tuple[Any, Any] | None = None

    def picture(self, home: CompiledHome, data: mujoco.MjData, eye: np.ndarray, target: np.ndarray,
                marks: list[Any]) -> np.ndarray:
        """From `eye` towards `target` (world, m), with marks: (512, 512, 3) uint8."""
        from rearrange.pictures.picture import Painter  # compiles for seconds; only videos need it

        if self._last is None or self._last[0] is not home:
            groups = home.unseen_groups or (CEILING_GROUP,)
            self._last = (home, Painter(home.model, hide_groups=groups, meshes=home.meshes))
        return self._last[1].render(data, eye, target, marks)
