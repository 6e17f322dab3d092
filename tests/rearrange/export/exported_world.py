"""An exported home put together from its files alone, and what a camera sees of it; without Habitat and without
MuJoCo.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np

from rearrange.home.axis_conventions import AXES, pose_to_matrix, to_y_up
from rearrange.home.geometry import from_frame
from rearrange.home.robot.fetch import HEAD
from tests.rearrange.export.urdf_reader import Urdf, origin

Pose = tuple[float, float, float]


def world(folder: Path, entry: dict, robot: Pose, joints: dict[str, float]) -> np.ndarray:
    """All triangles (N, 3, 3), y up: stage, counter and fridge, the objects of an episode, and the robot at a base pose
    of ours with these joint positions.
    """
    scene = json.loads((folder / "scenes" / entry["scene_id"]).read_text())
    parts = [mesh(folder / f"{scene['stage_instance']['template_name']}.glb")]
    for instance in scene["articulated_object_instances"]:
        w, x, y, z = instance["rotation"]
        assert x == z == 0
        place = turned_about_up(2 * math.atan2(y, w), instance["translation"])
        path = folder / f"{instance['template_name']}.urdf"
        urdf = Urdf(path)
        numbers = {number: name for name, number in urdf.numbers().items()}
        states = entry["ao_states"].get(f"{path.stem}_:0000", {})
        parts += articulated(path, urdf, place, {numbers[int(link)]: value for link, value in states.items()})
    for name, matrix in entry["rigid_objs"]:
        parts.append(moved(mesh(folder / "objects" / name.replace(".object_config.json", ".glb")), np.array(matrix)))
    path = folder / "robots" / "fetch.urdf"
    parts += articulated(path, Urdf(path), turned_about_up(robot[2], to_y_up((*robot[:2], 0.0))), joints)
    return np.concatenate(parts)


def articulated(path: Path, urdf: Urdf, place: np.ndarray, joints: dict[str, float]) -> list[np.ndarray]:
    links = urdf.place(joints)
    return [
        moved(mesh(path.parent / visual.find("geometry/mesh").get("filename")), place @ links[name] @ origin(visual))
        for name, link in urdf.links.items() for visual in link.findall("visual")]


def mesh(path: Path) -> np.ndarray:
    import trimesh

    return np.asarray(trimesh.load(path, force="mesh", process=False).triangles)


def moved(triangles: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    return triangles @ matrix[:3, :3].T + matrix[:3, 3]


def turned_about_up(yaw: float, position) -> np.ndarray:
    matrix = np.array(pose_to_matrix((0.0, 0.0, 0.0, math.cos(yaw / 2), 0.0, 0.0, math.sin(yaw / 2))))
    matrix[:3, 3] = position
    return matrix


def depth(triangles: np.ndarray, pose: Pose, size: int, far_m: float) -> np.ndarray:
    """(size, size) z-depth of the head camera at a base pose, field of view 90 degrees; far_m where there is
    nothing.
    """
    eye, target = (AXES @ (*from_frame(p[0], p[1], pose), p[2]) for p in (HEAD.position_m, HEAD.target_m))
    forward = (target - eye) / np.linalg.norm(target - eye)
    right = np.cross(forward, (0.0, 1.0, 0.0))
    right /= np.linalg.norm(right)
    slopes = (np.arange(size) - (size - 1) / 2) * 2.0 / size
    rays = forward + slopes[None, :, None] * right - slopes[:, None, None] * np.cross(right, forward)
    image = np.full(size * size, far_m)
    a, ab, ac = triangles[:, 0], triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0]
    from_a = eye - a
    q = np.cross(from_a, ab)
    z = np.einsum("ti,ti->t", ac, q)
    for n, ray in enumerate(rays.reshape(-1, 3)):  # Moeller and Trumbore; a ray's length is its z-depth
        p = np.cross(ray, ac)
        with np.errstate(divide="ignore", invalid="ignore"):
            inverse = 1.0 / np.einsum("ti,ti->t", ab, p)
            u, v, t = np.einsum("ti,ti->t", from_a, p) * inverse, (q @ ray) * inverse, z * inverse
            hit = (u >= -1e-9) & (v >= -1e-9) & (u + v <= 1 + 1e-9) & (t > 0.01)
        image[n] = min(far_m, t[hit].min(initial=far_m))
    return image.reshape(size, size)
