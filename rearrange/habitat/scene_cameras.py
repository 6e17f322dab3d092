"""Cameras in an external scene, of which Habitat alone knows how it looks: depth, colours and numbers of things, from any pose.

Habitat's semantic camera shows a number that each piece of a body has; `number_things` writes ours there. What has none, as the
stage with its walls and floor, shows 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from rearrange.habitat.camera import FAR_M, matrix4
from rearrange.habitat.driving_base import SHIFT
from rearrange.habitat.robot import ARM_LINKS, HEAD_LINKS, TORSO_LINK
from rearrange.home.apartments import segmentation
from rearrange.home.axis_conventions import to_y_up
from rearrange.home.robot.cameras import FOV_DEG
from rearrange.home.simulation.scenes.drawers_and_doors import plain_name

# Image -> Habitat's type of sensor, Magnum's format of pixels, and the array that they are read into.
_KINDS = {"depth": ("DEPTH", "R32F", np.float32, ()), "rgb": ("COLOR", "RGBA8_UNORM", np.uint8, (4,)),
          "segmentation": ("SEMANTIC", "R32UI", np.uint32, ())}


class SceneCameras:
    """Square cameras on the scene node of the agent, which is put to wherever a picture is taken from."""

    def __init__(self, habitat: Any) -> None:
        self._habitat = habitat

    def specification(self, kind: str, size: int) -> Any:
        """For a Habitat simulator that is about to load: one that has loaded without colours has no textures."""
        import magnum

        camera = self._habitat.CameraSensorSpec()
        camera.uuid, camera.sensor_type = f"scene_{kind}_{size}", getattr(self._habitat.SensorType, _KINDS[kind][0])
        camera.resolution, camera.hfov = [size, size], FOV_DEG
        camera.position = camera.orientation = magnum.Vector3(0.0, 0.0, 0.0)
        return camera

    def photograph(self, simulator: Any, pose: np.ndarray, kinds: Iterable[str], size: int) -> dict[str, np.ndarray]:
        """Images of `rearrange.home.pictures.photograph`. pose (4, 3): right, down, forward and place in Habitat's world, z up."""
        node = simulator.get_agent(0).scene_node
        node.transformation = matrix4(camera_transform(pose))
        return {kind: _as_ours(kind, self._draw(simulator, node, kind, size)) for kind in kinds}

    def _draw(self, simulator: Any, node: Any, kind: str, size: int) -> np.ndarray:
        """As Habitat has it, the lowest row first."""
        import magnum

        name, (_, pixels, dtype, channels) = f"scene_{kind}_{size}", _KINDS[kind]
        if name not in node.subtree_sensors:
            simulator.add_sensor(self.specification(kind, size))
        sensor, image = node.subtree_sensors[name], np.empty((size, size, *channels), dtype)
        simulator.renderer.draw(sensor, simulator)
        view = magnum.MutableImageView2D(getattr(magnum.PixelFormat, pixels), sensor.framebuffer_size, image)
        target = sensor.render_target
        read = {"depth": target.read_frame_depth, "rgb": target.read_frame_rgba, "segmentation": target.read_frame_object_id}[kind]
        read(view)
        return image


def camera_transform(pose: np.ndarray) -> np.ndarray:
    """(4, 4) of a camera that looks along its -z with y up, in a world y up. pose (4, 3): right, down, forward, place, z up."""
    made = np.eye(4)
    for column, vector in enumerate((pose[0], -pose[1], -pose[2], pose[3])):
        made[:3, column] = to_y_up(tuple(vector))
    return made


def _as_ours(kind: str, image: np.ndarray) -> np.ndarray:
    """Of what Habitat reads: the highest row first, in our type and range. 0 m means that nothing was there."""
    image = image[::-1]
    if kind == "rgb":
        return np.ascontiguousarray(image[:, :, :3])
    if kind == "depth":
        return np.where(image == 0.0, np.float32(1.0), np.minimum(image / np.float32(FAR_M), np.float32(1.0)))[:, :, None]
    return np.where(image <= segmentation.MOST, image, segmentation.NOTHING).astype(np.uint16)[:, :, None]


def number_things(objects: Sequence[Any], robot: Any, furniture: Sequence[Any], bodies: dict[str, Any],
                  links: dict[str, tuple[Any, int]]) -> dict[int, str]:
    """Give what is in a scene the numbers of `rearrange.home.apartments.segmentation`, and return furniture's names by number.

    objects: of the episode. furniture: rigid objects of the scene, bodies: articulated ones by handle. links: joint -> articulated object and link.
    """
    for i, thing in enumerate(objects):
        _number(thing.visual_scene_nodes, segmentation.OBJECT + i)
    for link in (-1, *robot.get_link_ids()):
        _number(robot.get_link_visual_nodes(link), segmentation.ROBOT[part_of_link(link)])
    names: dict[int, str] = {}
    first = segmentation.OBJECT + len(objects)
    for thing in furniture:
        names[first + len(names)] = f"furniture/{plain_name(thing.handle)}"
        _number(thing.visual_scene_nodes, first + len(names) - 1)
    for handle, body in bodies.items():
        names[first + len(names)] = f"furniture/{plain_name(handle)}"
        _number(body.visual_scene_nodes, first + len(names) - 1)
    for joint, (body, link) in links.items():
        names[first + len(names)] = f"furniture/{joint}"
        _number(body.get_link_visual_nodes(link), first + len(names) - 1)
    return {number: name for number, name in names.items() if number <= segmentation.MOST}


def part_of_link(link: int) -> str:
    """Part of the robot, by the number of a link of its URDF on a driving base."""
    own = link - SHIFT
    if own >= ARM_LINKS[0]:
        return "arm" if own in ARM_LINKS else "gripper"
    return "head" if own in HEAD_LINKS else "torso" if own == TORSO_LINK else "base"


def _number(nodes: Iterable[Any], number: int) -> None:
    for node in nodes:
        node.semantic_id = number
