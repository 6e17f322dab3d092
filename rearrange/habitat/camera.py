"""The robot's cameras in Habitat. Only the camera that is asked for is drawn, where Habitat draws every sensor.

All cameras share one place: the scene node of Habitat's agent, which is put where a picture is taken from.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from rearrange.habitat.frames import camera_transform, matrix4, vector
from rearrange.habitat.robot import ROBOT
from rearrange.home.apartments.segmentation import MOST, NOTHING
from rearrange.home.numba_cache import float32, njit
from rearrange.home.robot.cameras import mounting
from rearrange.home.robot.robot import RANGE_M

FOV_DEG = ROBOT.head.fov_deg
_SMALLEST = 8  # pixels of the camera that is always there: with none, Habitat makes no renderer
# Image -> Habitat's type of sensor, Magnum's format of pixels, and the array that they are read into.
_KINDS = {"depth": ("DEPTH", "R32F", np.float32, ()), "rgb": ("COLOR", "RGBA8_UNORM", np.uint8, (4,)),
          "segmentation": ("SEMANTIC", "R32UI", np.uint32, ())}


class Cameras:
    """Square cameras of any kind and size, each made when it is first used."""

    def __init__(self, habitat: Any) -> None:
        self._habitat = habitat
        self._views: dict[tuple[str, int], tuple[Any, np.ndarray, Any]] = {}

    def agent(self, images: Iterable[str], size: int) -> Any:
        """Configuration of what carries the cameras, for a Habitat simulator that is about to load.

        images: kinds that will be wanted in this size: a simulator that has loaded without colours has no textures.
        """
        agent = self._habitat.agent.AgentConfiguration()
        depths = [view for view in self._views if view[0] == "depth"] or [("depth", _SMALLEST)]
        wanted = dict.fromkeys([*depths, *((kind, size) for kind in images)])
        agent.sensor_specifications = [self._specification(*view) for view in wanted]
        return agent

    def _specification(self, kind: str, size: int) -> Any:
        camera = self._habitat.CameraSensorSpec()
        camera.uuid, camera.sensor_type = f"{kind}_{size}", getattr(self._habitat.SensorType, _KINDS[kind][0])
        camera.resolution, camera.hfov = [size, size], FOV_DEG
        camera.position = camera.orientation = vector(0.0, 0.0, 0.0)
        return camera

    def loaded(self, simulator: Any) -> None:
        """The simulator has loaded a scene, and made its sensors anew."""
        self._simulator, self._node, self._views = simulator, simulator.get_agent(0).scene_node, {}

    def ride_on(self, base: Any) -> None:
        """Let the head camera follow the scene node of a base, which stands at the origin of its slides, not turned."""
        node = np.array(base.absolute_transformation(), float)  # Habitat puts it at the centre of mass of the link
        self._base, self._in_base = base, matrix4(np.linalg.inv(node) @ camera_transform(mounting(ROBOT.head)))

    def depth(self, size: int) -> np.ndarray:
        """What the head camera sees: (size, size, 1) float32, 0..1 over 10 m."""
        self._node.transformation = self._base.absolute_transformation() @ self._in_base
        out = np.empty((size, size, 1), np.float32)
        _share_of_range(self.draw("depth", size), out)
        return out

    def photograph(self, pose: np.ndarray, kinds: Iterable[str], size: int) -> dict[str, np.ndarray]:
        """Images as those of `rearrange.home.pictures.photograph`.

        pose: (4, 3), right, down, forward and place (m) of the camera in Habitat's world, z up.
        """
        self._node.transformation = matrix4(camera_transform(pose))
        return {kind: _converted(kind, self.draw(kind, size)) for kind in kinds}

    def draw(self, kind: str, size: int) -> np.ndarray:
        """What Habitat draws from where the cameras are, the lowest row first; the array is used again."""
        if (kind, size) not in self._views:
            import magnum

            name, (_, pixels, dtype, channels) = f"{kind}_{size}", _KINDS[kind]
            if name not in self._node.subtree_sensors:
                self._simulator.add_sensor(self._specification(kind, size))
            sensor, image = self._node.subtree_sensors[name], np.empty((size, size, *channels), dtype)
            view = magnum.MutableImageView2D(getattr(magnum.PixelFormat, pixels), sensor.framebuffer_size, image)
            self._views[kind, size] = sensor, image, view
        sensor, image, view = self._views[kind, size]
        self._simulator.renderer.draw(sensor, self._simulator)
        target = sensor.render_target
        {"depth": target.read_frame_depth, "rgb": target.read_frame_rgba,
         "segmentation": target.read_frame_object_id}[kind](view)
        return image


@njit((float32[:, ::1], float32[:, :, ::1]), cache=True, nogil=True)
def _share_of_range(metres, out):
    """Rows in the other order, 0..1 over the range; 0 m means that nothing was there."""
    rows, columns = metres.shape
    for i in range(rows):
        for j in range(columns):
            value = metres[rows - 1 - i, j] * np.float32(1.0 / RANGE_M)
            out[i, j, 0] = np.float32(1.0) if value > 1.0 or value == 0.0 else value


def _converted(kind: str, image: np.ndarray) -> np.ndarray:
    """The highest row first, in the type and range of the embedded simulator's images."""
    image = image[::-1]
    if kind == "rgb":
        return np.ascontiguousarray(image[:, :, :3])
    if kind == "depth":  # 0 m means that nothing was there
        shares = np.minimum(image / np.float32(RANGE_M), np.float32(1.0))
        return np.where(image == 0.0, np.float32(1.0), shares)[:, :, None]
    return np.where(image <= MOST, image, NOTHING).astype(np.uint16)[:, :, None]
