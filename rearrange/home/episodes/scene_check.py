"""Can the robot do what an episode asks, in the scene where it takes place? Every mistake is one sentence."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from rearrange.home.apartments.containers import inside_at, kind_of, opened_to
from rearrange.home.apartments.episodes import Episode
from rearrange.home.apartments.floor_grid import FloorGrid, floor_grid
from rearrange.home.apartments.layouts import Layout
from rearrange.home.apartments.parts import Receptacle
from rearrange.home.episodes.generator import REACH_M, REACH_UNDER_M, _Surface, _surfaces
from rearrange.home.errors import UserError
from rearrange.home.geometry import PlanePose, from_frame, rotate, to_frame
from rearrange.home.plane_geometry import just_before
from rearrange.home.robot.robot import Arm

if TYPE_CHECKING:
    from rearrange.home.simulation.simulator_interface import Simulator

MAX_SETTLE_M = 0.03  # farther than this from where the episode puts it, an object does not rest there
_REACH_SLACK_M = 0.05  # for objects that settled a little farther in, and for episodes of external scenes
_ABOVE_M = (-0.03, 0.25)  # the middle of an object over the surface on which it stands
# Where skills look for a place to stand: out of the edge and along it (m), in this order.
_OFFSETS_M = sorted(((0.30 + 0.05 * out, 0.15 * aside) for out in range(16) for aside in (0, -1, 1, -2, 2)),
                    key=lambda offset: offset[0] + 2.0 * abs(offset[1]))
_HANDLE_OUT_M = tuple(0.875 + 0.05 * i for i in range(12))  # before the front of a drawer, or the middle of the fridge
_MAX_SNAP_M = 0.2  # from where a skill would start to the nearest floor that a robot can drive to, as Navigate
_MAX_STAND_M = 0.8  # from the edge: farther back, what is there is reached around a corner, as that of an open door
_EYE_HEIGHT_M = 1.3
_START_TRIES = 500


class Unsolvable(UserError):
    """An episode asks for what its scene does not allow."""


def check_episode(sim: Simulator, episode: Episode, drawn: bool = False) -> None:
    """Load an episode and raise Unsolvable if it cannot be solved where it takes place. The robot is left outside.

    drawn: by our rules; an episode that others drew in an external scene is tried, and failed.
    """
    where = f"episode {episode.id!r}"
    if not episode.targets:
        raise Unsolvable(f"{where} moves no object; its 'targets' should hold at least one.")
    check_joints(sim, episode)
    sim.reset(episode)
    if not (drawn or sim.refuses_unsolvable(episode)):
        return
    layout = sim.home.layout
    moved = [math.dist(now, pose[:3]) for now, pose in zip(sim.start_positions, episode.start_poses)]
    worst = int(np.argmax(moved))
    if moved[worst] > MAX_SETTLE_M:
        raise Unsolvable(f"{where}: {episode.objects[worst]} does not rest where the episode puts it; it moved "
                         f"{moved[worst]:.2f} m.")
    for index, goal in episode.targets.items():
        name = episode.objects[index]
        heights_m = sim.start_positions[index][2], goal[2]
        if reason := sim.robot.refuses(name, sim.object_half_extents(index), heights_m):
            raise Unsolvable(f"{where}: {reason}.")
        for what, point, held in (("object", sim.start_positions[index], None), ("goal of", goal[:3], index)):
            if standing_pose(sim, episode, point, held) is None:
                spot = ", ".join(f"{value:.2f}" for value in point)
                raise Unsolvable(f"{where}: the robot cannot reach the {what} {name} at ({spot}) in scene "
                                 f"{episode.scene}.")
            for joint in _shut_around(layout, episode, point, is_goal=held is not None):
                if _before_handle(sim, episode, joint) is None:
                    raise Unsolvable(f"{where}: the robot cannot stand before {joint}, where the {what} {name} is, to "
                                     f"open it in scene {episode.scene}.")
    if episode.robot_start is not None and not _free(sim, episode, *episode.robot_start):
        x, y, yaw = episode.robot_start
        raise Unsolvable(f"{where}: the robot cannot start at ({x:.2f}, {y:.2f}), {yaw:.2f} rad: it would touch "
                         "something or stand off the floor that it can drive on.")


def check_joints(sim: Simulator, episode: Episode) -> None:
    """Raise Unsolvable for a drawer or door that the home does not have, or that cannot stand where the episode puts
    it.
    """
    if not sim.refuses_unsolvable(episode):
        return
    where = f"episode {episode.id!r}"
    ranges = {body.name: body.range_m_or_rad for body in sim.layout_of(episode).bodies}
    for joint, value in episode.articulated.items():
        if joint not in ranges:
            raise Unsolvable(f"{where}: scene {episode.scene} has no joint {joint!r}; it has {', '.join(ranges)}.")
        if not ranges[joint][0] - 1e-6 <= value <= ranges[joint][1] + 1e-6:
            raise Unsolvable(f"{where}: joint {joint} cannot stand at {value:g}; it moves from {ranges[joint][0]:g} to "
                             f"{ranges[joint][1]:g}.")


def random_start(sim: Simulator, episode: Episode, rng: np.random.Generator) -> PlanePose:
    """A pose anywhere on the floor, facing anywhere, where the robot touches nothing; the episode is loaded."""
    grid = _grid(sim.home.layout, sim.robot.base.footprint_m, _openings(episode))
    for _ in range(_START_TRIES):
        x, y = grid.draw_point(rng)
        yaw = float(rng.uniform(-math.pi, math.pi))
        if _free(sim, episode, x, y, yaw):
            return x, y, yaw
    raise Unsolvable(f"episode {episode.id!r}: found no place for the robot in scene {episode.scene}.")


def standing_pose(sim: Simulator, episode: Episode, point: tuple[float, ...],
                  held: int | None = None) -> PlanePose | None:
    """Where a skill would start, facing a point: the nearest place before the receptacle under it where the robot
    touches nothing and sees the point. None when there is none, or it cannot drive there, or the point is too far in.
    `held`: the object in its hand, for a goal. What is shut is opened first: an object in a shut drawer moves out with
    it, but a goal is given where it is when the drawer is out.
    """
    layout, openings = sim.home.layout, dict(_openings(episode))
    for joint in _shut_around(layout, episode, point, is_goal=held is not None):
        wide = opened_to(layout, joint)
        if kind_of(joint) == "drawer" and held is None:
            body = next(body for body in layout.bodies if body.name == joint)
            (x0, y0, _), (x1, y1, _) = body.pose(openings.get(joint, 0.0)), body.pose(wide)
            point = (point[0] + x1 - x0, point[1] + y1 - y0, point[2])
        openings[joint] = wide
    surface = _surface_under(_surfaces(layout, openings), point)
    if surface is None:
        return None
    for joint, opening in openings.items():
        sim.set_joint(joint, opening)
    found = _first_free(sim, episode, openings, _before(surface, point, sim.robot.arm), held, _MAX_STAND_M)
    sim.reset(episode)
    return found


def _shut_around(layout: Layout, episode: Episode, point: tuple[float, ...], is_goal: bool) -> list[str]:
    """The joints that have to be opened to get at a point."""
    found = []
    for body in layout.bodies:
        now, wide = episode.articulated.get(body.name, 0.0), opened_to(layout, body.name)
        there = inside_at(layout, point, body.name, now) or (is_goal and inside_at(layout, point, body.name, wide))
        if there and now < 0.5 * wide:
            found.append(body.name)
    return found


def _before_handle(sim: Simulator, episode: Episode, joint: str) -> PlanePose | None:
    """Where the skill that opens a drawer or door would start."""
    layout = sim.home.layout
    if kind_of(joint) == "fridge":
        frame = layout.fridge_pose
    else:
        frame = next(body for body in layout.bodies if body.name == joint).pose(0.0)
    sim.place_robot(*frame)  # brings the positions of handles up to date
    handle = sim.handle_position(joint)
    heading_to = sim.robot.arm.heading_to
    poses = ((*from_frame(out, 0.0, frame), heading_to(math.atan2(handle[1] - y, handle[0] - x)))
             for out in _HANDLE_OUT_M for x, y in [from_frame(out, 0.0, frame)])
    return _first_free(sim, episode, dict(_openings(episode)),
                       ((pose, just_before(*pose[:2], handle[:2])) for pose in poses), None)


def _first_free(sim: Simulator, episode: Episode, openings: dict[str, float],
                poses: Iterable[tuple[PlanePose, tuple[float, float]]], held: int | None,
                within_m: float = math.inf) -> PlanePose | None:
    """The first of some poses, each with what it faces, where the robot touches nothing and nothing is in between; None
    when there is none, or when it cannot drive there, or when it is farther away than `within_m`.
    """
    grid = _grid(sim.home.layout, sim.robot.base.footprint_m, tuple(sorted(openings.items())))
    size = sim.home.layout.size_m
    for (x, y, yaw), (to_x, to_y) in poses:
        if not all(0.3 < value < limit - 0.3 for value, limit in zip((x, y), size)):
            continue
        if sim.stands_free(x, y, yaw, held) and not sim.blocked((x, y, _EYE_HEIGHT_M), (to_x, to_y, _EYE_HEIGHT_M)):
            drivable = math.dist(grid.nearest(x, y), (x, y)) <= _MAX_SNAP_M
            return (x, y, yaw) if drivable and math.dist((x, y), (to_x, to_y)) <= within_m else None
    return None


def _surface_under(surfaces: dict[str, _Surface], point: tuple[float, ...]) -> _Surface | None:
    """The receptacle on which a point lies: the highest one under it."""
    found = []
    for surface in surfaces.values():
        if not _ABOVE_M[0] <= point[2] - surface.center_m[2] <= _ABOVE_M[1]:
            continue
        x, y = to_frame(point[0], point[1], (surface.center_m[0], surface.center_m[1], surface.yaw_rad))
        half = surface.receptacle.half_extents_m
        if abs(x) <= half[0] + 0.01 and abs(y) <= half[1] + 0.01:
            found.append(surface)
    return max(found, key=lambda surface: surface.center_m[2], default=None)


def _before(surface: _Surface, point: tuple[float, ...],
            arm: Arm) -> Iterator[tuple[PlanePose, tuple[float, float]]]:
    """Poses before the edges from which a point is within reach, the nearest first, each with the point of the edge."""
    x, y = to_frame(point[0], point[1], (surface.center_m[0], surface.center_m[1], surface.yaw_rad))
    limit = REACH_UNDER_M.get(surface.receptacle.kind, REACH_M) + _REACH_SLACK_M
    for side in sorted(surface.local_sides, key=lambda normal: surface.depth_behind(x, y, normal)):
        depth = surface.depth_behind(x, y, side)
        if depth > limit:
            continue
        out_x, out_y = rotate(*side, surface.yaw_rad)
        for out, aside in _OFFSETS_M:
            at_x = point[0] + out_x * (depth + out) - out_y * aside
            at_y = point[1] + out_y * (depth + out) + out_x * aside
            facing = arm.heading_to(math.atan2(point[1] - at_y, point[0] - at_x))
            yield (at_x, at_y, facing), (point[0] + out_x * depth, point[1] + out_y * depth)


def _free(sim: Simulator, episode: Episode, x: float, y: float, yaw: float) -> bool:
    return _stands(sim, _grid(sim.home.layout, sim.robot.base.footprint_m, _openings(episode)), x, y, yaw)


def _stands(sim: Simulator, grid: FloorGrid, x: float, y: float, yaw: float) -> bool:
    """The robot can drive to this pose and touches nothing there, its arm in its start posture."""
    return grid.is_reachable(x, y) and sim.stands_free(x, y, yaw)


def _openings(episode: Episode) -> tuple[tuple[str, float], ...]:
    return tuple(sorted(episode.articulated.items()))


@lru_cache(maxsize=512)
def _grid(layout: Layout, radius_m: float, openings: tuple[tuple[str, float], ...]) -> FloorGrid:
    return floor_grid(layout, radius_m, dict(openings))


def receptacle_under(sim: Simulator, point: tuple[float, ...]) -> Receptacle | None:
    """What a point lies on, as drawers and doors stand now; None on the floor."""
    openings = {body.name: sim.joint_position(body.name) for body in sim.home.layout.bodies}
    surface = _surface_under(_surfaces(sim.home.layout, openings), point)
    return None if surface is None else surface.receptacle
