"""Navigate: drive to where the next skill starts, and stop there.

Observation: depth image; distance and direction of the object, of its goal when the object is in the hand, or, with
`to_handle`, of the handle that is opened or closed next; which skill comes next; place and heading relative to the
start; arm joint angles; whether something is held (see `NavigateConfig.observation_keys`); when asked for, `floor_map`,
what the depth images have shown of the floor, and `route`, the way through it. The pose that has to be reached is not
shown.
Action: base speed and turn, stop. The hand keeps what it holds. Reward: HAB's with a penalty for touching things, see
`NavigateConfig.reward_scales`.
Success: stop is called less than 0.3 m (driving distance) and 0.3 rad from that pose.
Failure: stop is called elsewhere.
Start: anywhere in the home where the robot touches nothing, facing anywhere. What comes next is drawn from what the
episode allows: to pick the object, from an open receptacle or from inside an opened drawer or fridge; to open the
drawer or fridge that it is shut in, or to close an open one; and, in the one episode of six that starts with the object
in the hand, to place it on an open receptacle or inside. The pose to reach is where that skill would start, without
noise. With `any_start`, every place counts from which that skill's object or handle is in reach, and the robot has to
face the object, or the handle if there is one, from where it stands.

Sources: Habitat 2.0's Navigate (habitat-lab v0.2.2); VER (Wijmans et al. 2022), appendix B: a stop action of its own, a
force penalty in training, stop masked while the target is more than 2 m away in evaluation (`stop_within_m`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rearrange.home.errors import NoStartPose
from rearrange.home.plane_geometry import wrap_angle
from rearrange.home.settings.setting_fields import block, setting
from skills.arguments import SkillArguments, about_object
from skills.articulated import start_before, starts_around_handle
from skills.close_cabinet import CloseCabinetConfig
from skills.close_fridge import CloseFridgeConfig
from skills.open_cabinet import OpenCabinetConfig
from skills.open_fridge import OpenFridgeConfig
from skills.picture_marks import goal_ball, held_name, object_box, object_ghost, place_name, spoken_name
from skills.settings import SkillConfig, action_parts, initial_mean, initial_std, observation_keys
from skills.skill import Skill, contact_terms, draw_target, receptacle_of, start_near, starts_around

if TYPE_CHECKING:
    import numpy as np

    from rearrange.home.apartments.episodes import Episode
    from rearrange.home.apartments.parts import Receptacle
    from rearrange.home.plane_geometry import PlanePose
    from rearrange.home.simulation.simulator_interface import Simulator
    from skills.skill import Mark

_ARTICULATED = {"open_cabinet": OpenCabinetConfig(), "close_cabinet": CloseCabinetConfig(),
                "open_fridge": OpenFridgeConfig(), "close_fridge": CloseFridgeConfig()}
CLOSED_BELOW = 0.15  # m or rad, HAB's predicates closed_cab and closed_fridge
OPENED_ABOVE = {"cabinet": 0.35, "fridge": 1.07}  # m or rad, opened_cab and opened_fridge
_MAX_SNAP_M = 0.2  # from the pose at which the next skill starts to the nearest floor that a robot can drive to
_START_TRIES = 100
# A way that is longer than 1.2 times the straight line and a metre leads around something.
_DETOUR, _DETOUR_M, _DETOUR_TRIES = 1.2, 1.0, 50


@dataclass(frozen=True)
class NavigateConfig(SkillConfig):
    """Choices of the Navigate task; the defaults are HAB's and VER's where they have them."""

    skill = "navigate"
    action_parts: tuple[str, ...] = action_parts("base", "stop")
    observation_keys: tuple[str, ...] = observation_keys(
        "depth", "object_to_agent_gps_compass", "nav_to_skill", "gps", "compass", "joint", "is_holding")
    max_steps: int = setting(
        900, "steps of an episode, 30 a second, as in a plan; HAB: 400 with a base 3.75 times as fast", above=0,
        at_most=1_000_000)
    goal_radius_m: float = setting(
        0.3, "success: stop called at this driving distance of the pose where the next skill starts", above=0)
    goal_angle_rad: float = setting(0.3, "and facing this close to its direction", above=0)
    rewarded_share: float = setting(
        1.0, "share of both within which a stop is paid as success, others as stops elsewhere", above=0, at_most=1)
    any_start: bool = setting(
        False, "every place counts from which the next skill has its object or handle in reach, not only the nearest")
    to_handle: bool = setting(
        False, "what is driven to before opening or closing is the handle, not the object behind it")
    angle_reward_within_m: float = setting(0.6, "where turning towards that direction is rewarded", above=0)
    object_in_hand_probability: float = setting(
        0.167, "share of episodes with the object in the hand, on the way to Place", at_least=0, at_most=1)
    stop_within_m: float | None = setting(
        None, "stop is ignored while the target is farther away; VER: 2.0 in evaluation only", above=0)
    max_path_m: float | None = setting(
        None, "driving distance from start to goal pose at most, for a first lesson; null = anywhere", above=0)
    detour_probability: float = setting(
        0.0, "share of episodes that start where the way to the goal leads around something", at_least=0, at_most=1)
    action_repeat: int = setting(
        1, "steps for which an action holds; a policy that looks less often learns in fewer decisions", above=0,
        at_most=1000)
    max_force_step_n: float = setting(1000.0, "cap of the force term in one step", above=0)
    reward_scales: Mapping[str, float] = block(
        distance=setting(10.0, "per metre of driving distance nearer to the goal pose"),
        angle=setting(1.0, "per radian nearer to its heading, near it"),
        success=setting(10.0, "once, at success"),
        bad_stop=setting(0.0, "stop called elsewhere; ends the episode"),
        near_stop=setting(0.0, "the same, times how near it was: 1 at the goal pose, 0 from 2 m or 90 degrees on"),
        hold_broken=setting(-10.0, "what was held is lost; the episode goes on"),
        force=setting(-0.001, "per newton that the contact force on arm and load rises"),
        base_contact=setting(-0.05, "at the full push of the base's motors"),
        slack=setting(0.0, "every step"),
    )
    initial_std: Mapping[str, float | None] = initial_std("base", "stop")
    initial_mean: Mapping[str, float | None] = initial_mean(
        "base", "stop", stop=(-1.5, "less than 0 lets it drive before it has found out where to stop"))


class Navigate(Skill):
    """The Navigate task. See the top of this file."""

    name = "navigate"
    settings = NavigateConfig
    config: NavigateConfig
    failures = ("bad_stop",)

    _faced: tuple[tuple[float, float], ...] = ()  # points, one of which the robot has to face; none: as the goal pose

    @property
    def action_repeat(self) -> int:
        return self.config.action_repeat

    def start(self, sim: Simulator, episode: Episode, rng: np.random.Generator) -> None:
        order = draw_target(episode, rng, sim)
        arguments = about_object(sim, episode, list(episode.targets)[order])
        start = receptacle_of(sim, episode, "target_receptacles", order)
        goal = receptacle_of(sim, episode, "goal_receptacles", order)
        in_hand = rng.random() < self.config.object_in_hand_probability and not _is_shut(sim, goal)
        kinds = place_kinds(goal) if in_hand else kinds_at(sim, start)
        arguments = replace(arguments, next_skill=kinds[int(rng.integers(len(kinds)))])
        self.set_goal(sim, arguments, goal if in_hand else start, rng)
        self._start_anywhere(sim, rng)
        self.begin(sim, self.arguments)

    def may_be_about(self, sim: Simulator, episode: Episode) -> list[int | str]:
        return []  # plans keep no states in which it begins

    def begin(self, sim: Simulator, arguments: SkillArguments) -> None:
        """Start from where the robot stands; `set_goal` or `drive_to` has found the pose to reach."""
        self.arguments, self.stop_called = arguments, False
        self._distance_m = math.inf
        self._distance_m = self._path_m = self.distance_m(sim)
        self._angle_rad = self.angle_rad(sim)

    def set_goal(self, sim: Simulator, arguments: SkillArguments, receptacle: Receptacle | None,
                 rng: np.random.Generator) -> None:
        """Find the pose at which the next skill would start at a receptacle, and move the robot there.

        Sets `goal_pose` (x, y, yaw), `goal_poses` (it and all others that count) and `field`, the driving distances to
        the nearest of them. The goals of `field` are the nearest cells of the floor grid, as HAB snaps the pose to its
        navigation mesh. Adds the handle of the next skill to the arguments.

        Raises:
            NoStartPose: the next skill cannot start there, or nobody can drive there.
        """
        self.arguments, self._faced = arguments, ()
        others, any_start = [], self.config.any_start
        if receptacle is None:
            raise NoStartPose("what the next skill is about is on nothing")
        if arguments.next_skill in _ARTICULATED:
            self.arguments = replace(
                arguments, handle=receptacle.link, handle_position=tuple(sim.handle_position(receptacle.link)))
            others = starts_around_handle(sim, receptacle.link) if any_start else []
            start_before(sim, receptacle.link, _without_noise(_ARTICULATED[arguments.next_skill]), rng)
        else:
            point, held = arguments.object_point, arguments.placed
            others = starts_around(sim, point, receptacle, held) if any_start else []
            start_near(sim, point, receptacle, rng, position_noise_m=0.0, yaw_noise_rad=0.0, held=held)
        self._faced = self._faced_points(sim) if any_start else ()
        self.drive_to(sim, sim.base_pose, others)

    def drive_to(self, sim: Simulator, pose: PlanePose, others: Sequence[PlanePose] = ()) -> None:
        """Make a pose the goal, and others as good as it. Raises NoStartPose when nobody can drive to the pose."""
        from rearrange.home.apartments.floor_grid import floor_grid  # imports numba, which `--help` must not

        self.goal_pose = pose
        openings = {name: sim.joint_position(name) for name in sim.home.handles}
        grid = floor_grid(sim.home.layout, sim.robot.base.footprint_m, openings)
        self.goal_poses = [p for p in (pose, *others) if math.dist(grid.nearest(*p[:2]), p[:2]) <= _MAX_SNAP_M]
        if pose not in self.goal_poses:
            raise NoStartPose(f"nobody can drive to where {self.next_skill} starts, ({pose[0]:.2f}, {pose[1]:.2f})")
        self.grid, self.field = grid, grid.distances_to(*(p[:2] for p in self.goal_poses))

    def _faced_points(self, sim: Simulator) -> tuple[tuple[float, float], ...]:
        """Object or goal of the next skill on the floor plan, and its handle; what the policy is shown comes first."""
        handle = self.target_handle
        points = [self.arguments.object_point] + ([] if handle is None else [sim.handle_position(handle)])
        return tuple((x, y) for x, y, _ in (points[::-1] if self._shows_handle else points))

    @property
    def _shows_handle(self) -> bool:
        return self.config.to_handle and self.arguments.handle_position is not None

    def _start_anywhere(self, sim: Simulator, rng: np.random.Generator) -> None:
        """Put the robot somewhere on the floor from which it can drive to the goal pose. Raises NoStartPose."""
        farthest = math.inf if self.config.max_path_m is None else self.config.max_path_m
        detour = self.config.detour_probability > 0.0 and rng.random() < self.config.detour_probability
        for tried in range(_START_TRIES):
            x, y = self.grid.draw_point(rng)
            yaw = rng.uniform(-math.pi, math.pi)
            path_m = self.field.at(x, y)
            if detour and tried < _DETOUR_TRIES and path_m < _DETOUR * self._straight_m(x, y) + _DETOUR_M:
                continue
            if math.isfinite(path_m) and path_m <= farthest and sim.stands_free(x, y, yaw, self.arguments.placed):
                return
        raise NoStartPose(f"found no place for the robot in scene {sim.episode.scene}")

    def _straight_m(self, x: float, y: float) -> float:
        """From a point to the nearest goal pose, through walls."""
        return min(math.dist((x, y), pose[:2]) for pose in self.goal_poses)

    # ------------------------------------------------------------------ judging

    @property
    def nav_point(self) -> tuple[float, float, float]:
        """What the policy drives to: the object, its goal, or with `to_handle` the handle where it was at the start."""
        return self.arguments.handle_position if self._shows_handle else self.arguments.object_point

    def distance_m(self, sim: Simulator) -> float:
        """Driving distance to the nearest goal pose.

        Where the robot is nearer to furniture than the floor grid allows, the way leads over the nearest free cell.
        Where nothing fits between the robot and the pose, a straight line counts if it is shorter.
        """
        x, y, _ = sim.base_pose
        straight = self._straight_m(x, y)
        distance = self.field.at(x, y)
        if not math.isfinite(distance):
            cell = self.grid.nearest(x, y)
            distance = self.field.at(*cell) + math.dist(cell, (x, y))
        return min(distance, straight) if straight < 2 * sim.robot.base.footprint_m else distance

    def angle_rad(self, sim: Simulator) -> float:
        """Between the heading and the one that is asked for, 0 to pi."""
        return abs(wrap_angle(sim.base_pose[2] - self.heading_rad(sim)))

    def heading_rad(self, sim: Simulator) -> float:
        """Heading of the goal pose; with `any_start` towards object or handle, whichever needs the smaller turn."""
        if not self._faced:
            return self.goal_pose[2]
        x, y, yaw = sim.base_pose
        headings = (sim.robot.arm.heading_to(math.atan2(py - y, px - x)) for px, py in self._faced)
        return min(headings, key=lambda heading: abs(wrap_angle(yaw - heading)))

    def shown_heading_rad(self, sim: Simulator) -> float:
        """Like `heading_rad`, but where object and handle both count, towards the one that the policy is shown."""
        if not self._faced:
            return self.goal_pose[2]
        x, y, _ = sim.base_pose
        return sim.robot.arm.heading_to(math.atan2(self._faced[0][1] - y, self._faced[0][0] - x))

    def success(self, sim: Simulator) -> bool:
        return self.stopped(sim) and self._is_there(sim)

    def begins_solved(self, sim: Simulator) -> bool:
        return self._is_there(sim)

    def failure(self, sim: Simulator) -> str | None:
        return "bad_stop" if self.stopped(sim) and not self._is_there(sim) else None

    def _is_there(self, sim: Simulator, share: float = 1.0) -> bool:
        near = self.distance_m(sim) < share * self.config.goal_radius_m
        return near and self.angle_rad(sim) < share * self.config.goal_angle_rad

    def stopped(self, sim: Simulator) -> bool:
        """Stop was called, and counts."""
        within = self.config.stop_within_m
        return self.stop_called and (within is None or math.dist(sim.base_pose[:2], self.nav_point[:2]) <= within)

    def reward_terms(self, sim: Simulator) -> dict[str, float]:
        distance, angle = self.distance_m(sim), self.angle_rad(sim)
        # HAB starts to count the angle one step after the robot has come near.
        near = max(distance, self._distance_m) < self.config.angle_reward_within_m
        stopped = self.stopped(sim)
        there = self._is_there(sim, self.config.rewarded_share)
        terms = {
            "distance": self._distance_m - distance,
            "angle": self._angle_rad - angle if near else 0.0,
            "success": float(stopped and there),
            "bad_stop": float(stopped and not there),
            "near_stop": _nearness(distance, angle) if stopped and not there else 0.0,
            "hold_broken": float(sim.hold_broken),
            **contact_terms(sim, self.config.max_force_step_n),
            "slack": 1.0,
        }
        self._distance_m, self._angle_rad = distance, angle
        return terms

    # ------------------------------------------------------------------ showing

    def measures(self) -> dict[str, float]:
        """Where the episode ended relative to the goal pose, and how far the way was at its start."""
        return {"goal_distance_m": self._distance_m, "goal_angle_rad": self._angle_rad, "path_m": self._path_m}

    def marks(self, sim: Simulator) -> list[Mark]:
        marks = [object_box(sim, self.target), *(goal_ball(pose[:2]) for pose in self.goal_poses)]
        if self.arguments.placed is not None:
            marks.append(object_ghost(sim.episode.objects[self.target], self.arguments.goal))
        return marks

    def status_lines(self, sim: Simulator) -> list[str]:
        return [f"next: {self.next_skill.replace('_', ' ')}", f"object: {spoken_name(sim, self.target)}",
                f"holds {held_name(sim, self.target)}",
                f"to goal pose {self._distance_m:.2f} m, {self._angle_rad:.2f} rad"]

    def instructions(self, sim: Simulator) -> tuple[str, ...]:
        if self.target_handle is not None:
            thing = "fridge" if self.target_handle.startswith("fridge") else "drawer"
        elif self.target is None:
            thing = "place where the work is"
        else:
            thing = spoken_name(sim, self.target)
        if self.target_handle is None and self.arguments.placed is not None:
            thing = f"place for the {thing} {place_name(sim, self.arguments.goal[:3])}".strip()
        return f"go to the {thing}", f"drive to the {thing}", f"move to the {thing}"


def _nearness(distance_m: float, angle_rad: float) -> float:
    return max(0.0, 1.0 - distance_m / 2.0) * max(0.0, 1.0 - angle_rad / (0.5 * math.pi))


def kinds_at(sim: Simulator, start: Receptacle) -> list[str]:
    """Skills that could come next with an empty hand, for an object on or in `start`, as in HAB's planning domain."""
    if start.link is None:
        return ["pick"]
    what = "fridge" if start.kind == "fridge" else "cabinet"
    if _is_shut(sim, start):
        return [f"open_{what}"]
    opened = sim.joint_position(start.link) > OPENED_ABOVE[what]
    return ["pick_inside", f"close_{what}"] if opened else [f"close_{what}"]


def place_kinds(goal: Receptacle) -> list[str]:
    """Skills that could come next with the object in the hand, for a goal on or in `goal`."""
    return ["place" if goal.link is None else "place_inside"]


def _is_shut(sim: Simulator, receptacle: Receptacle) -> bool:
    return receptacle.link is not None and abs(sim.joint_position(receptacle.link)) < CLOSED_BELOW


def _without_noise(config):
    """The config of an articulated skill whose start region is its middle (HAB: SPAWN_REGION_SCALE 0)."""
    middle = sum(config.start_distance_m) / 2
    return replace(config, start_distance_m=(middle, middle), start_aside_m=0.0, start_yaw_noise_rad=0.0)
