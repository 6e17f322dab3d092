"""Reads URDF files independently of what writes them: forward kinematics, masses, shapes."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np


class Urdf:
    """A URDF file; `place(joints)` gives every link's 4x4 transform in the frame of the root."""

    def __init__(self, path: Path) -> None:
        self.robot = ET.parse(path).getroot()
        self.links = {link.get("name"): link for link in self.robot.findall("link")}
        self.joints = {joint.get("name"): joint for joint in self.robot.findall("joint")}
        self.above = {joint.find("child").get("link"): joint for joint in self.joints.values()}
        (self.root,) = set(self.links) - set(self.above)

    def place(self, positions: dict[str, float]) -> dict[str, np.ndarray]:
        placed = {self.root: np.eye(4)}
        while len(placed) < len(self.links):
            for name, joint in self.above.items():
                parent = joint.find("parent").get("link")
                if name not in placed and parent in placed:
                    placed[name] = placed[parent] @ origin(joint) @ moved(joint, positions.get(joint.get("name"), 0.0))
        return placed

    def numbers(self) -> dict[str, int]:
        """As Habitat counts links: depth first, siblings by the names of their joints."""
        order = []

        def walk(link: str) -> None:
            order.append(link)
            for name in sorted(self.joints):
                if self.joints[name].find("parent").get("link") == link:
                    walk(self.joints[name].find("child").get("link"))

        walk(self.root)
        return {name: number - 1 for number, name in enumerate(order)}

    def mass(self, link: str) -> float:
        return float(self.links[link].find("inertial/mass").get("value"))

    def center_of_mass(self, link: str) -> np.ndarray:
        return origin(self.links[link].find("inertial"))[:3, 3]

    def inertia(self, link: str) -> np.ndarray:
        values = self.links[link].find("inertial/inertia")
        return np.array([[float(values.get("i" + "".join(sorted(a + b)))) for b in "xyz"] for a in "xyz"])


def origin(element: ET.Element) -> np.ndarray:
    found = element.find("origin")
    roll, pitch, yaw = (float(v) for v in found.get("rpy").split())
    matrix = np.eye(4)
    matrix[:3, :3] = turn("z", yaw) @ turn("y", pitch) @ turn("x", roll)
    matrix[:3, 3] = [float(v) for v in found.get("xyz").split()]
    return matrix


def turn(axis: str, angle: float) -> np.ndarray:
    i, j = {"x": (1, 2), "y": (2, 0), "z": (0, 1)}[axis]
    matrix = np.eye(3)
    matrix[i, i] = matrix[j, j] = math.cos(angle)
    matrix[i, j], matrix[j, i] = -math.sin(angle), math.sin(angle)
    return matrix


def moved(joint: ET.Element, position: float) -> np.ndarray:
    matrix = np.eye(4)
    if joint.get("type") == "fixed":
        return matrix
    axis = np.array([float(v) for v in joint.find("axis").get("xyz").split()])
    if joint.get("type") == "prismatic":
        matrix[:3, 3] = position * axis
        return matrix
    x, y, z = axis  # Rodrigues
    cross = np.array([(0, -z, y), (z, 0, -x), (-y, x, 0)])
    matrix[:3, :3] += math.sin(position) * cross + (1 - math.cos(position)) * cross @ cross
    return matrix
