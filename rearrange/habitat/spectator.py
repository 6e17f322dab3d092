"""What a spectator sees of an external scene: Habitat's colour camera, with marks drawn over it.

Of our homes the embedded painter draws pictures; of external scenes it has no geometry. Marks are lines over the picture, also where
something stands before them.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from rearrange.geometry import quat_matrix
from rearrange.habitat.camera import camera_matrix, matrix4
from rearrange.pictures.picture import Ghost, Sphere, WireBox, camera_axes

SIZE = 512
_NAME = "spectator"
_FOV_DEG = 60.0
_NEAR_M = 0.05
_CIRCLE = np.linspace(0.0, 2 * np.pi, 25)


def specification(habitat: Any) -> Any:
    """Of the camera, for a Habitat simulator that is about to load: afterwards it has no textures."""
    import magnum

    camera = habitat.CameraSensorSpec()
    camera.uuid, camera.sensor_type = _NAME, habitat.SensorType.COLOR
    camera.resolution, camera.hfov = [SIZE, SIZE], _FOV_DEG
    camera.position = camera.orientation = magnum.Vector3(0.0, 0.0, 0.0)
    return camera


def picture(simulator: Any, eye: np.ndarray, target: np.ndarray, origin: np.ndarray, marks: list) -> np.ndarray:
    """(512, 512, 3) uint8. eye, target, marks: our world; origin: of it in Habitat's, z up."""
    import magnum

    node = simulator.get_agent(0).scene_node  # the head camera hangs there, too
    node.transformation = matrix4(camera_matrix(np.add(eye, origin), np.add(target, origin)))
    sensor = node.subtree_sensors[_NAME]
    simulator.renderer.draw(sensor, simulator)
    image = np.empty((SIZE, SIZE, 4), np.uint8)
    view = magnum.MutableImageView2D(magnum.PixelFormat.RGBA8_UNORM, sensor.framebuffer_size, image)
    sensor.render_target.read_frame_rgba(view)
    return _with_marks(np.ascontiguousarray(image[::-1, :, :3]), camera_axes(eye, target), marks)


def _with_marks(image: np.ndarray, axes: np.ndarray, marks: list) -> np.ndarray:
    """Outlines of marks over a picture; `axes` as `camera_axes` gives them."""
    from PIL import Image, ImageDraw

    picture = Image.fromarray(image)
    draw = ImageDraw.Draw(picture)
    for mark in marks:
        color = tuple(int(255 * value) for value in mark.rgb)
        for line in _lines(mark, axes):
            depth = (line - axes[3]) @ axes[2]
            if (depth > _NEAR_M).all():
                scale = 0.5 * SIZE / np.tan(np.radians(_FOV_DEG) / 2) / depth
                across, down = (0.5 * SIZE + scale * ((line - axes[3]) @ axis) for axis in axes[:2])
                draw.line(list(zip(across.tolist(), down.tolist())), fill=color, width=2)
    return np.array(picture)


def _lines(mark: WireBox | Sphere | Ghost, axes: np.ndarray) -> list[np.ndarray]:
    """Lines (n, 3) of a mark: a circle, or the edges of a box."""
    if isinstance(mark, Sphere):
        turn = np.cos(_CIRCLE)[:, None] * axes[0] + np.sin(_CIRCLE)[:, None] * axes[1]
        return [np.asarray(mark.center_m) + mark.radius_m * turn]
    if isinstance(mark, WireBox):
        center, half = mark.center_m, np.asarray(mark.half_size_m)
    else:
        center, half = mark.position_m, _half_extents(mark)
    rotation = quat_matrix(np.asarray(mark.quat))
    corners = [np.asarray(center) + rotation @ (half * signs) for signs in itertools.product((-1, 1), repeat=3)]
    return [np.stack([corners[a], corners[b]]) for a, b in itertools.combinations(range(8), 2) if (a ^ b).bit_count() == 1]


def _half_extents(ghost: Ghost) -> np.ndarray:
    size = [float(value) for value in ghost.size]
    return np.array(size if ghost.shape == "box" else [size[0]] * 3 if ghost.shape == "sphere" else [size[0], size[0], size[1]])
