"""What a robot is: all that homes, skills, experts, planner and pictures ask of one. A robot is a file that fills it.

Frames. Base: on the floor under the middle of the base, x forward, y left, z up. Hand: its origin is where it holds, x
points the way it reaches out. Joints are in radians, those that slide in metres.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

Point = tuple[float, float, float]
Rgb = tuple[float, float, float]

BASE_BODY = "base"
BASE_JOINTS = ("base_x", "base_y", "base_yaw")
"""Of every model: two slides along the world's x and y, and a hinge about z, with velocity servos of the same names."""
PARTS = ("base", "torso", "head", "arm", "gripper")
"""What a segmentation tells apart."""
RANGE_M = 10.0
"""Depth that images of every robot show as 1."""
_BESIDE_M = 0.004  # on either side of a thing that goes between fingers
_BEFORE_END_M = 0.008  # fingers end so far before the other side, which may stand on something


@dataclass(frozen=True)
class Base:
    """What drives ahead and turns."""

    radius_m: float
    """Of the body around its middle."""
    footprint_m: float
    """Radius of the disc that must be free on a floor plan."""
    standing_m: float
    """How far from furniture its middle begins an episode, at least."""
    push_n: float
    """What its motors can push."""
    height_m: float
    """Up to which it is as wide as its radius."""
    trunk_m: tuple[float, float, float]
    """What stands on it, as a cylinder: how far ahead of the middle its axis is, its radius, its top."""
    most_m_s: float = math.inf
    """What it drives at most, whatever `sim.base_speed_m_s` says."""
    most_rad_s: float = math.inf
    """What it turns at most, whatever `sim.base_turn_rad_s` says."""


@dataclass(frozen=True)
class Joint:
    """A joint of the arm, in radians, or in metres where it slides. The model has a position servo of its name."""

    name: str
    low: float
    high: float
    delta: float
    """Change of the target in 1/30 s at full action."""
    lag: float
    """How far the target may lead the joint."""
    unit: str = "rad"


@dataclass(frozen=True)
class Arm:
    """Joints in the order of the action and of the observation `joint`, one after another in the model."""

    joints: tuple[Joint, ...]
    start: tuple[float, ...]
    """Posture in which episodes begin."""
    tucked: tuple[float, ...]
    """Posture for driving about: above the base."""
    ahead: tuple[float, ...]
    """Posture with the whole arm reaching straight out, as a pole."""
    rest_m: Point
    """Where the hand rests, base frame."""
    elbow_m: Point
    """From here to the hand the head camera sees the arm, base frame."""
    reach_m: float
    """Horizontally from the middle of the base to what the hand takes without driving."""
    still: Mapping[str, float]
    """Joints beside those of the arm that a servo of their name keeps in place, as of a torso, and where."""
    bearing_rad: float = 0.0
    """The direction in which it reaches out, base frame: 0 ahead, -pi/2 to the right."""
    heights_m: tuple[float, float] = (-math.inf, math.inf)
    """Between which heights of their middle it takes things."""
    coupled: Mapping[str, tuple[str, float]] = field(default_factory=dict)
    """Joints that a constraint makes follow a joint of the arm, as the tubes of a telescope: which one, and their share
    of its way.
    """

    @property
    def reaches_ahead(self) -> bool:
        """Whether the base drives the way in which it reaches out."""
        return self.bearing_rad == 0.0

    def heading_to(self, bearing_rad: float) -> float:
        """Heading of a base whose arm reaches out in this direction of the world."""
        return bearing_rad - self.bearing_rad

    @cached_property
    def coupling(self) -> np.ndarray:
        """(coupled, joints): times a posture it gives where the coupled joints are."""
        rows = [[share * (name == joint.name) for joint in self.joints] for name, share in self.coupled.values()]
        return np.array(rows, float).reshape(len(rows), len(self.joints))

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(joint.name for joint in self.joints)

    @cached_property
    def low(self) -> np.ndarray:
        """(joints,) lowest positions."""
        return np.array([joint.low for joint in self.joints])

    @cached_property
    def high(self) -> np.ndarray:
        """(joints,) highest positions."""
        return np.array([joint.high for joint in self.joints])

    @cached_property
    def delta(self) -> np.ndarray:
        """(joints,) changes of the targets in 1/30 s at full action."""
        return np.array([joint.delta for joint in self.joints])

    @cached_property
    def lag(self) -> np.ndarray:
        """(joints,) how far the targets may lead the joints."""
        return np.array([joint.lag for joint in self.joints])


@dataclass(frozen=True)
class Camera:
    """A camera: its place and a point that it looks at, in the frame of the base, or of the hand."""

    position_m: Point
    target_m: Point
    fov_deg: float = 90.0

    @property
    def bearing_rad(self) -> float:
        """The direction in which it looks, seen from above: 0 along the x axis of the frame, to the left positive."""
        return math.atan2(self.target_m[1] - self.position_m[1], self.target_m[0] - self.position_m[0])


@dataclass(frozen=True)
class Hand:
    """What holds objects and handles. The frame of the hand is that of the site."""

    kind: str
    """How it holds, one of `rearrange.home.simulation.mujoco.hands.HANDS`: suction what its cup touches, fingers what
    they press from both sides.
    """
    body: str
    site: str
    pads: tuple[str, ...]
    """Geoms that hold what they touch: a cup, or two fingers."""
    break_m: float
    """A hold that is stretched farther than this is lost; inf where friction decides."""
    balls_m: tuple[tuple[float, float], ...]
    """Balls that fill it: their places on the x axis of its body, and their radii."""
    command: str
    """What the part `grip` of an action does."""
    depth_m: float = 0.0
    """How deep a cup is in an object that is put into it by its top: no more than touching."""
    fingers: tuple[str, ...] = ()
    """Joints that close them along the y axis of the frame, m: 0 is open. A position servo of its name moves each."""
    speed_m_s: float = 0.0
    """Of a finger."""
    opening_m: float = math.inf
    """Between the open fingers."""
    deepest_m: float = 0.0
    """How far behind the surface of a thing its origin gets, before the palm meets it."""
    past_m: float = 0.0
    """How far the fingers reach past its origin."""

    def takes(self, half_extents_m: Sequence[float]) -> bool:
        """Whether a thing that stands upright fits between the fingers, given half the size of the box around it."""
        return 2.0 * min(half_extents_m[:2]) + 2.0 * _BESIDE_M <= self.opening_m

    def refuses(self, name: str, half_extents_m: Sequence[float]) -> str | None:
        """Why it does not take the thing of that name; None where it does."""
        if self.takes(half_extents_m):
            return None
        return (f"{name} is {2000.0 * min(half_extents_m[:2]):.0f} mm wide, and the {self.kind} open "
                f"{1000.0 * self.opening_m:.0f} mm")

    def held_m(self, thickness_m: float) -> float:
        """How far behind the surface of a thing it holds it. Fingers end before its other side."""
        if not self.fingers:
            return self.depth_m
        return min(self.deepest_m, max(0.0, thickness_m - self.past_m - _BEFORE_END_M))


@dataclass(frozen=True)
class Mjcf:
    """Text of a model: meshes, the body BASE_BODY at the origin with a camera `head`, and the servos of its joints."""

    assets: str
    body: str
    actuators: str
    equalities: str = ""
    """Constraints that couple joints."""
    option: str = ""
    """What the solver of contacts needs beside what a home asks for."""


@dataclass(frozen=True)
class Shape:
    """One shape on a body. size_m: as MuJoCo's `size`. axis: of the body, along which the shape's z axis lies."""

    body: str
    kind: str
    size_m: tuple[float, ...]
    place_m: Point
    rgb: Rgb
    axis: str = "z"


@dataclass(frozen=True, eq=False)
class Robot:
    """A robot with one hand.

    Of its model, what hangs on the first joint of the arm is the arm with the hand; everything else is the base.
    """

    name: str
    base: Base
    arm: Arm
    hand: Hand
    head: Camera
    """In the base frame."""
    wrist: Camera
    """In the hand's frame."""
    mjcf: Callable[[str, str], Mjcf]
    """Its model. The arguments are the attributes contype and conaffinity of what collides: of the base, of the arm."""
    parts: Mapping[str, str]
    """Geoms or bodies of the model that are another of PARTS than base or arm."""
    looks: tuple[Shape, ...] = ()
    """What spectators see of it beside the geoms of the model."""
    hidden: tuple[str, ...] = ()
    """Geoms that these shapes stand for."""
    time: float = 1.0
    """How many times as long as a skill says its episodes last: a slow robot needs more."""

    @property
    def said(self) -> str:
        """As in `fetch with suction`."""
        return f"{self.name} with {self.hand.kind}"

    def refuses(self, name: str, half_extents_m: Sequence[float], heights_m: Sequence[float]) -> str | None:
        """Why it does not move the thing of that name between these heights of its middle; None where it does."""
        low, high = self.arm.heights_m
        beyond = [height for height in heights_m if not low <= height <= high]
        if beyond:
            return (f"{name} begins or ends {beyond[0]:.2f} m above the floor, and the arm takes things from {low:g} "
                    f"to {high:g} m")
        return self.hand.refuses(name, half_extents_m)

    def camera(self, name: str) -> Camera:
        """Of "head" or "arm"."""
        return self.head if name == "head" else self.wrist
