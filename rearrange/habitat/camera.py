"""The head camera in Habitat. Only the size that is asked for is drawn, where Habitat's own function draws every sensor."""

from __future__ import annotations

from typing import Any

import numpy as np

from rearrange.habitat.frames import camera_in_base
from rearrange.home.numba_cache import float32, njit
from rearrange.home.robot.fetch import HEAD_CAMERA_FOV_DEG, HEAD_CAMERA_POSITION_M, HEAD_CAMERA_TARGET_M

FAR_M = 10.0  # range of the depth camera
_SMALLEST = 8  # pixels of the camera that is always there: with none, Habitat makes no renderer
_IN_BASE = camera_in_base(HEAD_CAMERA_POSITION_M, HEAD_CAMERA_TARGET_M)


class HeadCamera:
    """Depth cameras of several sizes in one place, which follow the robot."""

    def __init__(self, habitat: Any) -> None:
        self._habitat = habitat
        self._views: dict[int, tuple[Any, np.ndarray, Any]] = {}

    def agent(self, *others: Any) -> Any:
        """Configuration of what carries the cameras, for a Habitat simulator that is about to load; `others`: of cameras
        beside these.
        """
        agent = self._habitat.agent.AgentConfiguration()
        agent.sensor_specifications = [*(self._specification(size) for size in (self._views or (_SMALLEST,))), *others]
        return agent

    def _specification(self, size: int) -> Any:
        import magnum

        camera = self._habitat.CameraSensorSpec()
        camera.uuid, camera.sensor_type = f"depth_{size}", self._habitat.SensorType.DEPTH
        camera.resolution, camera.hfov = [size, size], HEAD_CAMERA_FOV_DEG
        camera.position = camera.orientation = magnum.Vector3(0.0, 0.0, 0.0)
        return camera

    def loaded(self, simulator: Any) -> None:
        """The simulator has loaded a scene, and made its sensors anew."""
        self._simulator, sizes = simulator, list(self._views)
        self._node = simulator.get_agent(0).scene_node
        self._views = {}
        for size in sizes:
            self._open(size)

    def _open(self, size: int) -> None:
        import magnum

        node = self._simulator.get_agent(0).scene_node
        if f"depth_{size}" not in node.subtree_sensors:
            self._simulator.add_sensor(self._specification(size))
        sensor, image = node.subtree_sensors[f"depth_{size}"], np.empty((size, size), np.float32)
        view = magnum.MutableImageView2D(magnum.PixelFormat.R32F, sensor.framebuffer_size, image)
        self._views[size] = (sensor, image, view)

    def ride_on(self, base: Any) -> None:
        """Follow the scene node of a base, which stands at the origin of its slides, not turned."""
        node = np.array(base.absolute_transformation(), float)  # Habitat puts it at the centre of mass of the link
        self._base, self._in_base = base, matrix4(np.linalg.inv(node) @ _IN_BASE)

    def depth(self, size: int) -> np.ndarray:
        """What the camera of the robot sees: (size, size, 1) float32, 0..1 over 10 m."""
        if size not in self._views:
            self._open(size)
        self._node.transformation = self._base.absolute_transformation() @ self._in_base
        metres = self.draw(size)
        out = np.empty((size, size, 1), np.float32)
        _share_of_range(metres, out)
        return out

    def draw(self, size: int) -> np.ndarray:
        """Metres along the axis, the lowest row first."""
        sensor, image, view = self._views[size]
        self._simulator.renderer.draw(sensor, self._simulator)
        sensor.render_target.read_frame_depth(view)
        return image


@njit((float32[:, ::1], float32[:, :, ::1]), cache=True, nogil=True)
def _share_of_range(metres, out):
    """Rows in the other order, 0..1 over the range; 0 m means that nothing was there."""
    rows, columns = metres.shape
    for i in range(rows):
        for j in range(columns):
            value = metres[rows - 1 - i, j] * np.float32(1.0 / FAR_M)
            out[i, j, 0] = np.float32(1.0) if value > 1.0 or value == 0.0 else value


def matrix4(rows: Any) -> Any:
    """A matrix of Magnum from rows (4, 4)."""
    import magnum

    return magnum.Matrix4(np.transpose(rows).tolist())
