"""What a robot knows of the world while it carries out a plan: the coordinates that it was told when the episode began,
its own body, and what its head camera has seen since.

A `Belief` answers what the planner asks of a simulator (`planner.predicates`), so that plans, effects and the
coordinates for skills come from it. It reaches the world through `Eyes` alone: joint angles, odometry, whether the
hand holds something, and a detector, which says to which thing each pixel of the depth image belongs. It is perfect
unless the rules say how often it errs. Poses of objects and openings of drawers and doors follow from those pixels
(`planner.detector`) and from the hand that holds a thing, and from nothing else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from planner.detector import Sighting, fit_opening, looks_through, opening_at, sight
from planner.spa.senses import Senses
from rearrange.home.apartments.containers import inside_at
from rearrange.home.apartments.episodes import Episode
from rearrange.home.apartments.layouts import Layout
from rearrange.home.apartments.parts import Body
from rearrange.home.simulation.simulator_interface import FIRST_JOINT, STEP_S, Simulator

LOOK_EVERY = 5  # steps
IMAGE_SIZE = 128  # pixels of the detector's image

_SAME_PLACE_M = 0.08  # two sightings this near are of a thing that did not move
_POORER = 0.6  # a sighting of less than this share of the largest surface seen does not replace a better one
_IN_HAND_M = 0.20  # from the cup to the middle of what it holds, at most
_NOT_IN_HAND_M = 0.35
_FLOOR_M = 0.05  # assumed height of a thing that is not where it was
_SURE = 3  # looks, one after another, before the hand is believed to hold another thing, or a place to be empty
_NEAR_M = 1.2  # from the base: base or arm may have moved what is nearer


class Eyes(Senses):
    """`Senses` with a perfect detector."""

    def owner_image(self) -> tuple[np.ndarray, np.ndarray]:
        """Depth (m) and owner of each pixel, both one row after another; owners as in `Simulator.owner_image`."""
        depth, owners = self._sim.owner_image(IMAGE_SIZE)
        return depth.ravel(), owners.ravel()

    def hand_position(self) -> tuple[float, float, float]:
        """The hand in the frame of the odometry, from the joint angles."""
        return tuple(self.hand()[0])


@dataclass(frozen=True)
class Home:
    """Walls, furniture and where it opens, as the robot knows them."""

    layout: Layout


@dataclass
class _Thing:
    """What is believed about one object."""

    position: tuple[float, float, float]  # of its middle
    area_m2: float = 0.0  # of its surface, in the best sighting at this place
    seen_step: int = 0  # the last look that showed it
    near_step: int = -1  # the last look at which the robot was near enough to have moved it since
    missed: int = 0  # looks, one after another, that went through the place where it should be


@dataclass
class Belief:
    """What is known in one episode.

    least_pixels: of a thing that the detector recognises. noise_m: standard deviation of the error of each coordinate.
    misses, confusions: shares of looks in which it does not recognise a thing in view, or takes an object for another.
    """

    eyes: Eyes
    episode: Episode
    home: Home
    handles: tuple[str, ...]  # drawers and doors, in the order of the detector's codes
    things: list[_Thing]
    openings: dict[str, float]  # of drawers (m) and doors (rad)
    least_pixels: int
    noise_m: float
    rng: np.random.Generator
    misses: float = 0.0
    confusions: float = 0.0
    held: int | None = None
    held_handle: str | None = None
    steps: int = 0
    # Speeds of drawers (m/s) and doors (rad/s) when they were last seen or felt, and the step of that.
    speeds: dict[str, float] = field(default_factory=dict)
    _noted: dict[str, int] = field(default_factory=dict)
    _wanted: int | str | None = None  # the object, or the handle, that the running skill is about to take
    _doubts: dict[int | None, int] = field(default_factory=dict)  # looks in which the hand held this instead

    @classmethod
    def begin(cls, sim: Simulator, least_pixels: int, noise_m: float, rng: np.random.Generator, misses: float = 0.0,
              confusions: float = 0.0) -> Belief:
        """At the beginning of an episode: objects, drawers and doors are as every agent is told.

        Args:
            sim: in which the robot is.
            least_pixels, noise_m, misses, confusions: of the detector, see `Belief`.
            rng: what it draws its errors from.
        """
        told = [_Thing(tuple(position)) for position in sim.start_positions]
        handles = tuple(sim.home.handles)
        openings = {name: sim.episode.articulated.get(name, 0.0) for name in handles}
        return cls(Eyes(sim), sim.episode, Home(sim.home.layout), handles, told, openings, least_pixels, noise_m, rng,
                   misses, confusions)

    # ------------------------------------------------------------------ what a plan asks

    @property
    def is_holding(self) -> bool:
        return self.eyes.is_holding

    @property
    def base_pose(self) -> tuple[float, float, float]:
        return self.eyes.base_pose

    def object_position(self, index: int) -> tuple[float, float, float]:
        """Where the middle of an object is believed to be, world frame."""
        return self.things[index].position

    def joint_position(self, name: str) -> float:
        """How far a drawer (m) or door (rad) is believed to stand open."""
        return self.openings[name]

    def joint_velocity(self, name: str) -> float:
        """How fast a drawer (m/s) or door (rad/s) is believed to move; 0 if not seen or felt in the last look."""
        return self.speeds.get(name, 0.0) if self.steps - self._noted.get(name, 0) <= LOOK_EVERY else 0.0

    def handle_position(self, name: str) -> tuple[float, float, float]:
        """Where the handle of a drawer or door is believed to be, world frame."""
        return self._handle_at(name, self.openings[name])

    def _handle_at(self, name: str, opening: float) -> tuple[float, float, float]:
        parts = self._body(name).parts_at(opening)
        return next(part.center_m for part in parts if part.name == f"{name}_handle")

    def missing(self, index: int) -> bool:
        """The place where the object should be was seen to be empty."""
        return self.things[index].missed >= _SURE

    def unsure(self, index: int) -> bool:
        """The robot has been near the object since it last saw it."""
        thing = self.things[index]
        return index != self.held and thing.near_step > thing.seen_step

    # ------------------------------------------------------------------ what changes it

    def intend(self, thing: int | str | None) -> None:
        """Note which object or handle the hand is about to take."""
        self._wanted = thing

    def step(self) -> None:
        """Take in one step of the robot's own body; every few steps, look."""
        self.steps += 1
        hand = self.eyes.hand_position()
        if not self.eyes.is_holding:
            self.held, self.held_handle = None, None
        elif self.held is None and self.held_handle is None:
            self.held = self._wanted if isinstance(self._wanted, int) else None
            self.held_handle = self._wanted if isinstance(self._wanted, str) else None
            self._doubts = {}
        if self.held is not None:
            self._put(self.held, hand)
        if self.held_handle is not None:
            self._open(self.held_handle, opening_at(self._body(self.held_handle), hand))
        if self.steps % LOOK_EVERY == 0:
            self.look()

    def look(self) -> tuple[list[int], list[str]]:
        """Take in what the head camera shows now: which objects, and which drawers and doors."""
        depth, owners = self.eyes.owner_image()
        pose, hand, camera = self.eyes.base_pose, self.eyes.hand_position(), self.eyes.robot.head
        lowest = FIRST_JOINT - len(self.handles)
        enough = np.bincount(owners - lowest) >= self.least_pixels  # by owner, the least first
        recognised = [owner + lowest for owner in np.flatnonzero(enough).tolist()]
        if self.misses:
            recognised = [owner for owner in recognised if self.rng.random() >= self.misses]
        seen = {index: sight(camera, depth, owners, index, self.episode.objects[index], pose)
                for index in recognised if index >= 0}
        if self.confusions:
            seen = self._confused(seen)
        if self.is_holding and self.held_handle is None:
            self._check_hand(seen, hand)
        shown = [name for k, name in enumerate(self.handles) if FIRST_JOINT - k in recognised]
        for k, name in enumerate(self.handles):
            if name in shown and name != self.held_handle:
                body = self._body(name)
                opening = fit_opening(body, camera, depth, owners == FIRST_JOINT - k, pose, self.openings[name])
                if self.noise_m:  # as of an object, here of the handle
                    opening = opening_at(body, self._noisy(self._handle_at(name, opening)))
                self._open(name, opening)
        empty = looks_through(camera, depth, np.array([thing.position for thing in self.things]), pose)
        for index, thing in enumerate(self.things):
            if index == self.held:
                continue
            if math.dist(pose[:2], thing.position[:2]) < _NEAR_M:
                thing.near_step = self.steps
            if index in seen:
                self._see(thing, seen[index])
            elif thing.missed < _SURE:
                thing.missed = thing.missed + 1 if empty[index] else 0
                if thing.missed == _SURE and self._in_the_open(thing):
                    thing.position = (*thing.position[:2], _FLOOR_M)  # it fell
        return list(seen), shown

    def _confused(self, seen: dict[int, Sighting]) -> dict[int, Sighting]:
        """Sightings under the names that the detector gives; of two of one name the larger counts."""
        named: dict[int, Sighting] = {}
        for index, sighting in seen.items():
            if len(self.things) > 1 and self.rng.random() < self.confusions:
                index = (index + int(self.rng.integers(1, len(self.things)))) % len(self.things)
            if index not in named or sighting.area_m2 > named[index].area_m2:
                named[index] = sighting
        return named

    def _see(self, thing: _Thing, sighting: Sighting) -> None:
        """An object was seen; a glimpse does not replace a better view of the same place."""
        thing.seen_step, thing.missed = self.steps, 0
        moved = math.dist(sighting.position, thing.position) > _SAME_PLACE_M
        if moved or sighting.area_m2 > _POORER * thing.area_m2:
            thing.position = self._noisy(sighting.position)
            thing.area_m2 = sighting.area_m2 if moved else max(sighting.area_m2, thing.area_m2)

    def _noisy(self, position: tuple[float, float, float]) -> tuple[float, float, float]:
        noise = self.rng.normal(0.0, self.noise_m, 3) if self.noise_m else np.zeros(3)
        return tuple(float(a + b) for a, b in zip(position, noise))

    def _check_hand(self, seen: dict[int, Sighting], hand: tuple[float, float, float]) -> None:
        """Correct what the hand holds: the detector sees which object hangs there."""
        if self.held in seen and math.dist(seen[self.held].position, hand) < _NOT_IN_HAND_M:
            self._doubts = {}
            return
        near = [index for index, sighting in seen.items() if math.dist(sighting.position, hand) < _IN_HAND_M]
        other = min(near, key=lambda index: math.dist(seen[index].position, hand), default=None)
        if other is None and self.held not in seen:
            return
        self._doubts[other] = self._doubts.get(other, 0) + 1
        if self._doubts[other] >= _SURE:
            self.held = other

    def _in_the_open(self, thing: _Thing) -> bool:
        """It lay in no drawer and not in the fridge."""
        return not any(inside_at(self.home.layout, thing.position, name, self.openings[name]) for name in self.handles)

    def _put(self, index: int, position: tuple[float, float, float]) -> None:
        """An object is where the hand is, and stays there when the hand lets go, until it is seen."""
        thing = self.things[index]
        thing.position, thing.area_m2, thing.missed, thing.seen_step = position, 0.0, 0, self.steps

    def _open(self, name: str, opening: float) -> None:
        """A drawer or door stands at another opening; what lies in a drawer moves with it."""
        body, before = self._body(name), self.openings[name]
        passed = self.steps - self._noted.get(name, 0)
        self.speeds[name] = (opening - before) / (passed * STEP_S) if 0 < passed <= LOOK_EVERY else 0.0
        self.openings[name], self._noted[name] = opening, self.steps
        if body.joint != "slide" or abs(opening - before) < 1e-6:
            return
        (x0, y0, _), (x1, y1, _) = body.pose(before), body.pose(opening)
        for index, thing in enumerate(self.things):
            if index != self.held and inside_at(self.home.layout, thing.position, name, before):
                x, y, z = thing.position
                thing.position = (x + x1 - x0, y + y1 - y0, z)

    def _body(self, name: str) -> Body:
        return next(body for body in self.home.layout.bodies if body.name == name)
