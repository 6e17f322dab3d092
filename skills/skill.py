"""What a skill is, and the parts that several skills share.

A skill decides where the robot starts, what it sees and commands, what is rewarded, and when the task is done or
failed. It holds no physics: it reads the simulator. A skill is one file with a frozen dataclass of its settings, and
one line in `skills.SKILLS`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from rearrange.home.errors import NoStartPose, UserError
from skills.arguments import SkillArguments, about_object

if TYPE_CHECKING:
    import numpy as np

    from rearrange.home.apartments.episodes import Episode
    from rearrange.home.apartments.parts import Receptacle
    from rearrange.home.pictures.picture import Ghost, Sphere, WireBox
    from rearrange.home.plane_geometry import PlanePose
    from rearrange.home.simulation.simulator_interface import Simulator

    Mark = WireBox | Sphere | Ghost

__all__ = [
    "NEXT_SKILLS", "Skill", "can_start", "contact_terms", "distance_to_rest", "draw_target", "receptacle_of",
    "start_near", "starts_around", "world_receptacle",
]

# What Navigate can lead to; `_inside`: in an opened drawer or fridge.
NEXT_SKILLS = ("pick", "pick_inside", "place", "place_inside", "open_cabinet", "close_cabinet", "open_fridge",
               "close_fridge")


class Skill(ABC):
    """One task of a few seconds. The environment calls, in this order at each step: grip_command, (physics), failure,
    success, reward_terms; and at each reset: start.
    """

    name: ClassVar[str]
    settings: ClassVar[type]  # of `config`
    failures: ClassVar[tuple[str, ...]]  # every reason that `failure` can give
    about: ClassVar[str] = "object"  # or "handle": of a drawer or door; says which observations there are
    closes: ClassVar[bool] = False  # a drawer or door
    expert: ClassVar[type | None] = None  # of a skill of an installed package; ours are in skills.experts

    config: Any  # frozen dataclass with at least action_parts, observation_keys, max_steps and reward_scales
    arguments = SkillArguments()  # what it has been told
    stop_called = False  # by the last action, where there is a stop

    def __init__(self, config: Any = None) -> None:
        self.config = self.settings() if config is None else config

    @property
    def episode_kind(self) -> str:
        """Kind of the generated episodes that it is trained on (`rearrange.home.episodes.generator`)."""
        return self.name

    @property
    def target(self) -> int | None:
        """Index of the object that it is about."""
        return self.arguments.target

    @property
    def target_handle(self) -> str | None:
        """Joint of the drawer or door that it is about."""
        return self.arguments.handle

    @property
    def next_skill(self) -> str | None:
        """One of NEXT_SKILLS, for a skill that leads to another."""
        return self.arguments.next_skill

    @abstractmethod
    def begin(self, sim: Simulator, arguments: SkillArguments) -> None:
        """Start from where the robot stands."""

    @property
    def action_parts(self) -> tuple[str, ...]:
        """Parts of the action that the skill commands, a subset of arm, grip, base, stop."""
        return tuple(self.config.action_parts)

    @property
    def observation_keys(self) -> tuple[str, ...]:
        return tuple(self.config.observation_keys)

    @property
    def max_steps(self) -> int:
        return self.config.max_steps

    def rest_m(self, sim: Simulator) -> tuple[float, float, float]:
        """Where the end-effector rests, in the base frame."""
        return getattr(self.config, "rest_position_m", None) or sim.robot.arm.rest_m

    @property
    def action_repeat(self) -> int:
        """Steps of the simulator for which a policy's action holds before it looks again."""
        return 1

    @property
    def reward_scales(self) -> Mapping[str, float]:
        """Factor of each reward term, by its name."""
        return self.config.reward_scales

    @abstractmethod
    def start(self, sim: Simulator, episode: Episode, rng: np.random.Generator) -> None:
        """Place the robot for a new episode and forget the last one. Raises NoStartPose."""

    def start_at_handoff(self, sim: Simulator, episode: Episode) -> None:
        """Start where a plan handed over (`episode.handoff`).

        Raises:
            NoStartPose: the robot touches something there.
            UserError: no plan hands over so.
        """
        handoff = episode.handoff
        if handoff.skill != self.name:
            raise UserError(f"episode {episode.id!r} was handed over to skill {handoff.skill}, not to {self.name}: "
                            "give another episode file.")
        self._check_handoff(sim, episode)
        exact = handoff.arm_rad is not None  # then what the robot touches there it touched in the plan, too
        sim.place_robot(*episode.robot_start, handoff.arm_rad if exact else None)
        if handoff.held is not None:
            away_m = 0.0 if handoff.held_pose is None else math.dist(handoff.held_pose[:3], sim.ee_position)
            if away_m > _IN_HAND_M:
                raise UserError(f"episode {episode.id!r}: field 'info.handoff' has held_pose {away_m:.2f} m from the "
                                f"hand, and it must be within {_IN_HAND_M} m; {_ANEW}.")
            sim.put_in_hand(handoff.held, handoff.held_pose)
        if not exact and sim.robot_collides():
            raise NoStartPose("the robot touches something where the plan handed over")
        about = handoff.about
        self.begin(sim, SkillArguments(handle=about) if isinstance(about, str) else about_object(sim, episode, about))

    def may_be_about(self, sim: Simulator, episode: Episode) -> list[int | str]:
        """The objects or joints that a plan can hand over to it in an episode."""
        return list(sim.home.handles) if self.about == "handle" else list(range(len(episode.objects)))

    def _check_handoff(self, sim: Simulator, episode: Episode) -> None:
        """UserError for a handoff that this home, or this skill, cannot have had."""
        about, allowed = episode.handoff.about, self.may_be_about(sim, episode)
        if not allowed:
            raise UserError(f"episode {episode.id!r}: no plan hands over to skill {self.name} there; {_ANEW}.")
        if about not in allowed:
            raise UserError(f"episode {episode.id!r}: field 'info.handoff' has about={about!r}, and {self.name} can be "
                            f"about {', '.join(map(str, allowed))} there; {_ANEW}.")
        low, start = 0.0 - sim.home.layout.ground_m, episode.robot_start  # never -0.0, which is said as -0
        size_x, size_y = (size - low for size in sim.home.layout.size_m)
        if start is None or not (low <= start[0] <= size_x and low <= start[1] <= size_y):
            where = "is missing" if start is None else f"puts the robot at x={start[0]:g}, y={start[1]:g} m"
            raise UserError(f"episode {episode.id!r}: field 'start_position' {where}, and it must be on the floor, "
                            f"{low:g} .. {size_x:.1f} by {low:g} .. {size_y:.1f} m; {_ANEW}.")

    @abstractmethod
    def reward_terms(self, sim: Simulator) -> dict[str, float]:
        """Unscaled reward terms of the last step; always the same names, those of `reward_scales`."""

    @abstractmethod
    def success(self, sim: Simulator) -> bool:
        """The task is done. In a plan it ends a skill of an installed package."""

    def begins_solved(self, sim: Simulator) -> bool:
        """Whether nothing is left to do where an episode has just begun, but to stop or to let it stay so."""
        return self.success(sim)

    @abstractmethod
    def failure(self, sim: Simulator) -> str | None:
        """Why the task has failed, one of `failures`, or None."""

    def measures(self) -> dict[str, float]:
        """Numbers about the episode that are logged at its end beside success, failures and reward."""
        return {}

    @property
    def nav_point(self) -> tuple[float, float, float]:
        """World point that `object_to_agent_gps_compass` shows: where the object is believed to be."""
        return self.arguments.position

    def next_one_hot(self) -> list[float]:
        """`next_skill` as the observation `nav_to_skill`: (8,), zeros when nothing is known to come next."""
        return [float(name == self.next_skill) for name in NEXT_SKILLS]

    def marks(self, sim: Simulator) -> list[Mark]:
        """What is marked in a spectator's picture; the policy does not see it. See `skills.picture_marks`."""
        return []

    def status_lines(self, sim: Simulator) -> list[str]:
        """What a spectator wants to read beside the picture, a few short lines."""
        return []

    def instructions(self, sim: Simulator) -> tuple[str, ...]:
        """What the episode that has just begun asks for, in several wordings."""
        return (self.name.replace("_", " "),)

    def grip_command(self, sim: Simulator, grip: float) -> float:
        """The command that reaches the hand, for skills that must not release or grasp at will."""
        return grip


def contact_terms(sim: Simulator, max_force_n: float) -> dict[str, float]:
    """Penalties for touching things: `force`, the rise of the contact force on the arm (N, capped); `base_contact`, how
    hard the base leans on something, as a share of what its motors can push (0..1).
    """
    return {"force": min(sim.arm_force_rise_n, max_force_n),
            "base_contact": min(sim.base_force_n / sim.robot.base.push_n, 1.0)}


def distance_to_rest(sim: Simulator, rest_m: tuple[float, float, float] | None = None) -> float:
    """Distance (m) from the end-effector to its resting place, in the base frame; None: that of the robot."""
    return math.dist(sim.ee_in_base, sim.robot.arm.rest_m if rest_m is None else rest_m)


def draw_target(episode: Episode, rng: np.random.Generator, sim: Simulator | None = None) -> int:
    """The object that an episode is about: its place in the order of `targets`, drawn at random; with `sim`, among
    those that its robot moves. Raises NoStartPose where it moves none.
    """
    if not episode.targets:
        raise UserError(f"episode {episode.id!r} has no targets: it does not say which object is to be moved.")
    refused = [sim and sim.robot.refuses(episode.objects[target], sim.object_half_extents(target),
                                         (sim.start_positions[target][2], goal[2]))
               for target, goal in episode.targets.items()]
    orders = [order for order, reason in enumerate(refused) if reason is None]
    if not orders:
        raise NoStartPose(refused[0])
    return orders[int(rng.integers(len(orders)))]


def receptacle_of(sim: Simulator, episode: Episode, field: str, order: int) -> Receptacle:
    """The receptacle that `target_receptacles` or `goal_receptacles` (`field`) names for a target."""
    names = getattr(episode, field)
    if order >= len(names):
        raise UserError(f"episode {episode.id!r} has {len(names)} {field} for {len(episode.targets)} targets; it must "
                        "name one for each.")
    return sim.home.layout.receptacle(names[order])


def world_receptacle(
        sim: Simulator, receptacle: Receptacle) -> tuple[tuple[float, ...], float, list[tuple[float, float]]]:
    """Centre, yaw and outward side normals of a receptacle in the world now, wherever its drawer or door stands."""
    if receptacle.parent is None:
        return tuple(receptacle.center_m), receptacle.yaw_rad, [(x, y) for x, y in receptacle.sides]
    origin, rotation = sim.body_frame(receptacle.parent)
    center = origin + rotation @ receptacle.center_m
    yaw = math.atan2(rotation[1, 0], rotation[0, 0])
    sides = [tuple((rotation @ (*side, 0.0))[:2].tolist()) for side in receptacle.sides]
    return tuple(center.tolist()), yaw + receptacle.yaw_rad, sides


def start_near(sim: Simulator, point: tuple[float, float, float], receptacle: Receptacle, rng: np.random.Generator, *,
               position_noise_m: float, yaw_noise_rad: float, held: int | None = None, any_start: bool = False) -> None:
    """HAB's close start: as near to a point on a receptacle as the robot can stand, facing it, with noise.

    The robot stands in front of the side of the receptacle that is nearest to the point. Where it would touch something
    it backs off along the side's normal (in front of a shelf the arm needs room) or moves along the edge, then tries
    the other sides.

    Args:
        point: (x, y, z), world frame.
        position_noise_m: standard deviation of x and y.
        yaw_noise_rad: standard deviation of the direction.
        held: index of an object that the robot has in its hand.
        any_start: any place from which the point is in reach, drawn at random, if there is one.

    Raises:
        NoStartPose: the robot touches something everywhere.
    """
    def free_at(edge: _Edge, offset: tuple[float, float]) -> bool:
        noise = _clipped_noise(rng, position_noise_m), _clipped_noise(rng, position_noise_m)
        x, y = edge.before(offset, noise)
        facing = sim.robot.arm.heading_to(math.atan2(point[1] - y, point[0] - x))
        facing += yaw_noise_rad * rng.standard_normal()
        return can_start(sim, x, y, facing, edge.nearest, held)

    edges = _edges(sim, point, receptacle)
    if any_start:
        lines = _lines_in_reach(edges, sim.robot.arm.reach_m)
        for k in rng.permutation(len(lines)):
            edge, offsets = lines[k]
            if any(free_at(edge, offset) for offset in offsets):
                return
    for edge in edges:
        for offset in _OFFSETS_M:
            if any(free_at(edge, offset) for _ in range(_TRIES_PER_OFFSET)):
                return
    raise NoStartPose(f"no collision-free pose near {receptacle.name} in scene {sim.episode.scene}")


def starts_around(sim: Simulator, point: tuple[float, float, float], receptacle: Receptacle,
                  held: int | None = None) -> list[PlanePose]:
    """Poses from which a point on a receptacle is in reach, on all its sides; perhaps none.

    Of each place along a side these are the nearest one at which the robot touches nothing, and the farthest. It leaves
    the robot at any of them.
    """
    poses: dict[PlanePose, None] = {}
    for edge, offsets in _lines_in_reach(_edges(sim, point, receptacle), sim.robot.arm.reach_m):
        for order in (offsets, offsets[::-1]):
            for offset in order:
                x, y = edge.before(offset)
                facing = sim.robot.arm.heading_to(math.atan2(point[1] - y, point[0] - x))
                if can_start(sim, x, y, facing, edge.nearest, held):
                    poses[(x, y, facing)] = None
                    break
    return list(poses)


@dataclass(frozen=True, order=True)
class _Edge:
    """A side of a receptacle, seen from a point on it."""

    away_m: float  # from the point
    normal: tuple[float, float]  # outwards
    point: tuple[float, float]
    standing_m: float  # of the robot

    @property
    def nearest(self) -> tuple[float, float]:
        """The place on the edge that is nearest to the point."""
        return self.point[0] + self.normal[0] * self.away_m, self.point[1] + self.normal[1] * self.away_m

    def before(self, offset_m: tuple[float, float], noise_m: tuple[float, float] = (0.0, 0.0)) -> tuple[float, float]:
        """Where the robot stands before the edge, moved back and aside."""
        (x, y), (nx, ny), gap = self.point, self.normal, self.away_m + self.standing_m + offset_m[0]
        return x + nx * gap - ny * offset_m[1] + noise_m[0], y + ny * gap + nx * offset_m[1] + noise_m[1]


def _edges(sim: Simulator, point: tuple[float, ...], receptacle: Receptacle) -> list[_Edge]:
    """The sides of a receptacle, the nearest to a point first."""
    center, yaw, sides = world_receptacle(sim, receptacle)
    cos, sin, half = math.cos(yaw), math.sin(yaw), receptacle.half_extents_m
    edges = []
    for side in sides:
        reach = half[0] * abs(cos * side[0] + sin * side[1]) + half[1] * abs(cos * side[1] - sin * side[0])
        away = reach - ((point[0] - center[0]) * side[0] + (point[1] - center[1]) * side[1])
        edges.append(_Edge(away, side, (point[0], point[1]), sim.robot.base.standing_m))
    return sorted(edges)


def _lines_in_reach(edges: list[_Edge], reach_m: float) -> list[tuple[_Edge, list[tuple[float, float]]]]:
    """Lines away from the sides of a receptacle: the offsets, the nearest first, from which the point is in reach."""
    lines = []
    for edge in edges:
        for aside in sorted({aside for _, aside in _OFFSETS_M}, key=abs):
            offsets = [offset for offset in _OFFSETS_M
                       if offset[1] == aside and math.dist(edge.before(offset), edge.point) <= reach_m]
            if offsets:
                lines.append((edge, offsets))
    return lines


_IN_HAND_M = 0.5  # from the hand to the middle of what it holds, at most
_ANEW = "write the file anew, with handoffs=true of rearrange eval hab="
# Backwards and sideways from the nearest place before the edge, the nearest first (m).
_OFFSETS_M = sorted(((0.05 * back, 0.15 * aside) for back in range(16) for aside in (0, -1, 1, -2, 2)),
                    key=lambda offset: offset[0] + 2.0 * abs(offset[1]))
_TRIES_PER_OFFSET = 2
_EYE_HEIGHT_M = 1.3  # above tables and chairs: what crosses the line of sight here is a wall or a cupboard


def _clipped_noise(rng: np.random.Generator, std: float) -> float:
    """Gaussian noise, drawn again beyond twice its standard deviation (HAB: std 0.05 m, limit 0.1 m)."""
    while True:
        value = rng.standard_normal()
        if abs(value) <= 2.0:
            return std * value


def can_start(sim: Simulator, x: float, y: float, yaw: float, edge: tuple[float, float],
              held: int | None = None) -> bool:
    """The robot touches nothing here, stands on the floor of the home, and no wall hides what it faces (`edge`)."""
    (size_x, size_y), room = sim.home.layout.size_m, sim.robot.base.standing_m
    if not (room < x < size_x - room and room < y < size_y - room):
        return False
    return sim.stands_free(x, y, yaw, held) and not sim.blocked((x, y, _EYE_HEIGHT_M), (*edge, _EYE_HEIGHT_M))
