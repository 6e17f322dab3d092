"""Marks in a spectator's picture (`rearrange.home.pictures.picture`) and words that several skills use.

No policy sees them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rearrange.home.apartments.objects import OBJECTS

if TYPE_CHECKING:
    from rearrange.home.apartments.layouts import Layout
    from rearrange.home.apartments.parts import Receptacle
    from rearrange.home.pictures.picture import Ghost, Sphere, WireBox
    from rearrange.home.simulation.simulator_interface import Simulator

_BOX_RGB, _REST_RGB, _GOAL_RGB = (1.0, 0.8, 0.0), (0.2, 0.8, 1.0), (0.2, 0.9, 0.4)
_BOX_MARGIN_M = 0.01


def object_box(sim: Simulator, i: int) -> WireBox:
    """A wire box around object i, where it is now."""
    import numpy as np

    from rearrange.home.pictures.picture import WireBox

    pose = sim.object_pose(i)
    half = np.array(sim.object_half_extents(i)) + _BOX_MARGIN_M
    return WireBox(np.array(pose[:3]), half, np.array(pose[3:]), _BOX_RGB)


def object_ghost(name: str, pose: tuple[float, ...]) -> Ghost | Sphere:
    """A translucent copy of an object at a world pose: where it belongs; a ball for an object of an external scene."""
    from rearrange.home.pictures.picture import Ghost

    if name not in OBJECTS:
        return _ball(pose[:3], 0.05, _GOAL_RGB, 0.5)
    model = OBJECTS[name]
    return Ghost(model.shape, model.half_size_m, pose[:3], pose[3:], _GOAL_RGB)


def rest_ball(sim: Simulator, rest_m: tuple[float, float, float] | None = None) -> Sphere:
    """A small ball where the end-effector has to come to rest (`rest_m`: base frame; None: that of the robot)."""
    return _ball(sim.from_base(sim.robot.arm.rest_m if rest_m is None else rest_m), 0.03, _REST_RGB, 0.6)


def handle_ball(sim: Simulator, handle: str) -> Sphere:
    """A ball at the handle of a drawer or door."""
    return _ball(sim.handle_position(handle), 0.05, _BOX_RGB, 0.6)


def goal_ball(point: tuple[float, float]) -> Sphere:
    """A ball on the floor where the robot has to drive."""
    return _ball((*point, 0.1), 0.1, _GOAL_RGB, 0.5)


def _ball(center_m: Sequence[float], radius_m: float, rgb: tuple[float, float, float], alpha: float) -> Sphere:
    import numpy as np

    from rearrange.home.pictures.picture import Sphere

    return Sphere(np.array(center_m), radius_m, rgb, alpha)


def spoken_name(sim: Simulator, i: int) -> str:
    """Name of object i without its number: `tomato soup can`."""
    return sim.episode.objects[i].partition("_")[2].replace("_", " ")


def place_name(sim: Simulator, point: tuple[float, ...]) -> str:
    """What a point lies on or in, in words: `on the sofa`, `in the fridge`; nothing on the floor."""
    from rearrange.home.episodes.scene_check import receptacle_under  # not for `--help`

    receptacle = receptacle_under(sim, point)
    return "" if receptacle is None else spoken_place(sim.home.layout, receptacle)


def spoken_place(layout: Layout, receptacle: Receptacle) -> str:
    """What lies there is `on the sofa`, or `in the fridge`; furniture of others is called by its kind."""
    external = layout.blocked_floor is not None
    name = receptacle.kind if external or receptacle.kind in ("drawer", "fridge") else receptacle.name
    words = (word for word in name.split("_") if not word.isdigit() and word not in ("left", "right"))
    return f"{'on' if receptacle.link is None else 'in'} the {' '.join(words)}"


def away_from(place: str) -> str:
    """What is taken from `on the sofa` is taken `from the sofa`; `in the fridge`: `out of the fridge`."""
    return place.replace("on", "from", 1) if place.startswith("on") else place.replace("in", "out of", 1)


def onto(place: str) -> str:
    """What comes to lie `on the sofa` is moved `onto the sofa`; `in the fridge`: `into the fridge`."""
    return place.replace("on", "onto", 1) if place.startswith("on") else place.replace("in", "into", 1)


def held_name(sim: Simulator, target: int | None) -> str:
    """What the hand holds, in words."""
    if sim.held is not None:
        return "the object" if sim.held == target else "another object"
    return "nothing" if sim.held_handle is None else "a handle"
