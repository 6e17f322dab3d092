"""Episodes of external scenes, as HAB's, in our frame and with our names of joints and receptacles.

HAB's episodes name a receptacle only by its object and link, and those of the stage not at all. So the receptacle is
the one under the object. Needs no simulator.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from rearrange.home.apartments.episodes import Episode, Pose
from rearrange.home.apartments.layouts import Layout
from rearrange.home.episodes.generator import _Surface, _surfaces
from rearrange.home.episodes.scene_check import _surface_under
from rearrange.home.errors import UserError
from rearrange.home.geometry import to_frame
from rearrange.home.scene_files.templates import BOX

if TYPE_CHECKING:
    from rearrange.home.simulation.scenes.scene_layout import SceneHome

_NEAR_M = 0.3  # an object that is over no receptacle belongs to the one within this


def in_terms_of(home: SceneHome, episode: Episode) -> Episode:
    """The same episode with the names of its scene's layout. Raises UserError when an object is on no known receptacle.
    """
    layout, origin = home.layout, home.origin_m

    def moved(pose: Pose) -> Pose:
        return (*(value - low for value, low in zip(pose[:3], origin)), *pose[3:])

    names = {f"{handle}|{home.numbers[name]}": name for name, (handle, _) in home.links.items()}
    articulated = {names.get(joint, joint): value for joint, value in episode.articulated.items()}
    poses = tuple(moved(pose) for pose in episode.start_poses)
    targets = {index: moved(goal) for index, goal in episode.targets.items()}
    openings = {body.name: articulated.get(body.name, 0.0) for body in layout.bodies}
    surfaces = _surfaces(layout, openings)

    def receptacles(named: tuple[str, ...], points: list[Pose], what: str) -> tuple[str, ...]:
        named = (*named, *("" for _ in points[len(named):]))
        return tuple(_receptacle(layout, surfaces, name, point, f"episode {episode.id!r}: the {what} "
                                 f"{episode.objects[index]}") for name, point, index in zip(named, points, targets))

    start = episode.robot_start
    return replace(
        episode, scene=layout.name, start_poses=poses, targets=targets, articulated=articulated,
        target_receptacles=receptacles(episode.target_receptacles, [poses[index] for index in targets], "object"),
        goal_receptacles=receptacles(episode.goal_receptacles, list(targets.values()), "goal of"),
        robot_start=start and (start[0] - origin[0], start[1] - origin[1], start[2]))


def _receptacle(layout: Layout, surfaces: dict[str, _Surface], named: str, point: Pose, what: str) -> str:
    """Name of the receptacle that the file names, or of that under a point, or of the nearest."""
    name = named.rpartition("|")[2].removeprefix(BOX)
    if name in surfaces:
        return name
    under = _surface_under(surfaces, point)
    if under is None:
        near = min(surfaces.values(), key=lambda surface: _distance(surface, point), default=None)
        if near is None or _distance(near, point) > _NEAR_M:
            spot = ", ".join(f"{value:.2f}" for value in point[:3])
            raise UserError(f"{what} at ({spot}) is on no receptacle that scene {layout.name} declares.")
        under = near
    return under.receptacle.name


def _distance(surface: _Surface, point: Pose) -> float:
    """From a point to a surface (m)."""
    x, y = to_frame(point[0], point[1], (surface.center_m[0], surface.center_m[1], surface.yaw_rad))
    half_x, half_y = surface.receptacle.half_extents_m
    return math.hypot(max(abs(x) - half_x, 0.0), max(abs(y) - half_y, 0.0), point[2] - surface.center_m[2])
