"""What an agent that calls tools is told of things, places and the hand, as far as the robot knows."""

from __future__ import annotations

import math
from collections.abc import Sequence

from planner.predicates import in_
from planner.single_steps import SingleSteps
from rearrange.home.apartments.containers import kind_of
from rearrange.home.geometry import to_frame
from rearrange.home.simulation.simulator_interface import STEP_S
from skills.picture_marks import place_name, spoken_name

_SHUT = 0.005  # m or rad: a drawer or door that is not farther open is called shut


class Words:
    """Words for the names of an episode."""

    def __init__(self, run: SingleSteps) -> None:
        self._run = run

    def of(self, name: str) -> str:
        """A name with what it stands for: `object_0 (bowl)`."""
        kind = self._kind(name)
        return f"{name} ({kind})" if kind else name

    def _kind(self, name: str) -> str:
        symbols = self._run.symbols
        if name in symbols.objects:
            return spoken_name(self._run.sim, symbols.objects[name])
        joint = symbols.joints.get(name, name)
        return "" if joint.startswith(name) else joint.replace("_", " ")

    def line(self, name: str) -> str:
        """A name, what it stands for, and where that is."""
        run, symbols = self._run, self._run.symbols
        away = f"{self.distance_m(name):.1f} m away"
        if name in symbols.joints:
            where = [self.opening(name), away]
        elif self.held() == name:
            where = ["in the hand"]
        else:
            container = next((each for each in symbols.joints if in_(run.world, symbols, name, each)), None)
            place = f"in {container}" if container else place_name(run.sim, symbols.position(run.world, name))
            where = [place or "on the floor", away]
        return f"{self.of(name)}: {', '.join(where)}"

    def opening(self, container: str) -> str:
        """How far a drawer or door stands open."""
        joint = self._run.symbols.joints[container]
        opening = self._run.world.joint_position(joint)
        unit = "m" if kind_of(joint) == "drawer" else "rad"
        return "shut" if abs(opening) < _SHUT else f"open by {opening:.2f} {unit}"

    def direction(self, point: Sequence[float]) -> str:
        """Where a point of the world is, seen from the robot."""
        x, y = to_frame(point[0], point[1], self._run.world.base_pose)
        ahead, left = "ahead" if x > 0 else "behind", "left" if y > 0 else "right"
        return f"{abs(x):.1f} m {ahead}, {abs(y):.1f} m to the {left}, {point[2]:.1f} m above the floor"

    def distance_m(self, name: str) -> float:
        """From the base to a thing, along the floor."""
        return math.dist(self._run.world.base_pose[:2], self._run.symbols.position(self._run.world, name)[:2])

    def held(self) -> str | None:
        """The name of the object in the hand."""
        held = self._run.world.held
        return next((name for name, index in self._run.symbols.objects.items() if index == held), None)

    def hand(self) -> str:
        """What the hand holds."""
        held = self.held()
        other = "something that has no name" if self._run.world.is_holding else "nothing"
        return f"the hand holds {self.of(held) if held else other}"

    def time_left(self) -> str:
        """How many steps of the episode are left."""
        env = self._run.env
        return f"{env.max_steps - env.steps:,} of {env.max_steps:,} steps are left."


def spoken_time(steps: float) -> str:
    """Steps, and how long they last."""
    return f"{steps:,.0f} steps ({steps * STEP_S:.1f} s)"
