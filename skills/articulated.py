"""Base of opening and closing: a drawer or door, its handle, and how far its joint is from its goal.

Rewards, thresholds and start poses are HAB's (habitat-lab v0.2.2, `ArtObjReward` and its skills' configs), with the
mobile action space of VER (Wijmans et al. 2022, section 4). The four skills differ in numbers only; each has its own
file and its own config dataclass.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from rearrange.home.errors import NoStartPose, UserError
from rearrange.home.plane_geometry import from_frame, just_before
from rearrange.home.settings.setting_fields import block, setting
from skills.arguments import SkillArguments
from skills.picture_marks import handle_ball, held_name, rest_ball
from skills.settings import SLOW_BASE, SkillConfig, action_parts, initial_mean, initial_std, observation_keys
from skills.skill import Skill, can_start, contact_terms, distance_to_rest

if TYPE_CHECKING:
    import numpy as np

    from rearrange.home.apartments.containers import Openings
    from rearrange.home.apartments.episodes import Episode
    from rearrange.home.plane_geometry import PlanePose
    from rearrange.home.simulation.simulator_interface import Simulator
    from skills.skill import Mark


@dataclass(frozen=True)
class ArticulatedConfig(SkillConfig):
    """Settings of all four skills. Openings are metres of a drawer, radians of a door."""

    action_parts: tuple[str, ...] = action_parts("arm", "grip", "base")
    observation_keys: tuple[str, ...] = observation_keys(
        "depth", "joint", "is_holding", "relative_resting_position", "ee_pos", "marker_rel_pos", "marker_state")
    max_steps: int = setting(200, "steps of an episode, 30 a second", above=0, at_most=1_000_000)
    target_opening: float = setting(0.0, "of the drawer, m, or of the door, rad", at_least=0)
    opening_tolerance: float = setting(0.05, "m or rad; how near to the target counts", above=0)
    start_distance_m: tuple[float, float] = setting(
        (1.0, 1.083), "least and greatest distance of the robot out of the front of the drawer's handle, or of the "
                      "fridge's middle; more where it would touch something")
    start_aside_m: float = setting(0.07, "the robot starts at most so far to either side", at_least=0)
    start_yaw_noise_rad: float = setting(
        0.15, "standard deviation of the robot's start direction, which is towards the handle", at_least=0)
    rest_position_m: tuple[float, float, float] | None = setting(
        None, "where the end-effector rests, in the base frame; null = the robot's, of the Fetch (0.5, 0, 1)")
    rest_radius_m: float = setting(
        0.15, "success: the target opening, nothing held, and the end-effector this close to rest", above=0)
    max_accumulated_force_n: float | None = setting(  # HAB's from v0.2.3 on; none before
        20_000.0, "sum of the arm's contact force that ends an episode", above=0)
    max_force_step_n: float = setting(1000.0, "cap of the force term in one step", above=0)
    reward_scales: Mapping[str, float] = block()
    initial_std: Mapping[str, float | None] = initial_std("arm", "grip", "base", base=SLOW_BASE)

    def __post_init__(self) -> None:
        super().__post_init__()
        low, high = self.start_distance_m
        if low > high:
            raise UserError(f"skill.start_distance_m={[low, high]} must start with the lesser distance.")


def scales(what: str, unit: str, done: str, *, rest: float, grasped: float, hold_broken: float) -> Any:
    """The reward scales of a `what` (drawer, door) that is to be `done` (open, closed)."""
    return block(
        opening=setting(10.0, f"per {unit} that the {what} comes nearer to its target, until it first stands there"),
        handle=setting(
            1.0, f"per metre nearer: end-effector to handle, while it is not held and the {what} not yet {done}"),
        rest=setting(rest, f"per metre nearer: end-effector to rest, once the {what} is {done}"),
        grasped=setting(grasped, "once, when the handle is first held"),
        reached=setting(5.0, f"once, when the {what} is first {done}"),
        released=setting(
            0.0, f"when the handle is let go after the {what} has been {done}; taken back where it is held again"),
        kept=setting(
            0.0, f"per {unit} that the {what}, once {done}, stands off its goal again; given back as it returns"),
        success=setting(10.0, "once, at success"),
        wrong_grasp=setting(-5.0, "anything but the handle taken; ends the episode"),
        hold_broken=setting(hold_broken, "the hold was torn off; ends the episode"),
        force_limit=setting(0.0, "too much force on the arm; ends the episode"),
        force=setting(0.0, "per newton that the arm's contact force rises"),
        base_contact=setting(-0.005, "at the full push of the base's motors"),
        slack=setting(0.0, "every step"),
    )


def holding_on() -> Any:
    """The initial mean of what opens something."""
    return initial_mean(
        "arm", "grip", "base", grip=(1.5, "more than 0 holds on to what it takes, so that pulling can be found"))


class Articulated(Skill):
    """Bring the joint of a drawer or a door to an opening, let go, and bring the hand back to rest."""

    failures = ("wrong_grasp", "hold_broken", "force_limit")
    joint_prefix: ClassVar[str]  # of the joints that it may be about: "drawer" or "fridge"
    about = "handle"
    config: ArticulatedConfig

    def start(self, sim: Simulator, episode: Episode, rng: np.random.Generator) -> None:
        handle = self._handle_of(sim, episode, rng)
        start_before(sim, handle, self.config, rng)
        self.begin(sim, SkillArguments(handle=handle))

    def may_be_about(self, sim: Simulator, episode: Episode) -> list[int | str]:
        return [joint for joint in sim.home.handles if joint.startswith(self.joint_prefix)]

    def begin(self, sim: Simulator, arguments: SkillArguments) -> None:
        self.arguments = arguments
        sim.want(handle=arguments.handle)
        self._grasped = self._reached = self._released = False
        self._lost = 0.0
        self._off, self._handle_m, self._rest_m = self._distances(sim)

    def _handle_of(self, sim: Simulator, episode: Episode, rng: np.random.Generator) -> str:
        """The drawer or door behind which an object of the episode lies that is to be moved."""
        links = [sim.home.layout.receptacle(name).link for name in episode.target_receptacles]
        links = [link for link in links if link is not None and link.startswith(self.joint_prefix)]
        if not links:
            raise NoStartPose(f"nothing that is to be moved lies in a {self.joint_prefix} in episode {episode.id}")
        return links[int(rng.integers(len(links)))]

    # ------------------------------------------------------------------ judging

    def at_target(self, world: Openings) -> bool:
        """The drawer or door stands where it belongs: open at least so far, or closed; or it is believed to."""
        return self._outside(world.joint_position(self.arguments.handle)) < 0

    def _outside(self, opening: float) -> float:
        """How far an opening lies outside the tolerance of the goal (m or rad), less than 0 within."""
        off = self.config.target_opening - opening
        return (abs(off) if self.closes else off) - self.config.opening_tolerance

    def success(self, sim: Simulator) -> bool:
        at_rest = distance_to_rest(sim, self.rest_m(sim)) < self.config.rest_radius_m
        return at_rest and not sim.is_holding and self.at_target(sim)

    def begins_solved(self, sim: Simulator) -> bool:
        """Whether the drawer or door stands where it belongs already, wherever the hand is."""
        return self.at_target(sim)

    def failure(self, sim: Simulator) -> str | None:
        if sim.hold_broken:
            return "hold_broken"
        if sim.held is not None or sim.held_handle not in (None, self.arguments.handle):
            return "wrong_grasp"
        limit = self.config.max_accumulated_force_n
        if limit is not None and sim.accumulated_arm_force_n > limit:
            return "force_limit"
        return None

    def reward_terms(self, sim: Simulator) -> dict[str, float]:
        failure = self.failure(sim)
        off, handle_m, rest_m = self._distances(sim)
        reached_before, held = self._reached, sim.held_handle == self.arguments.handle
        grasped_now = held and not self._grasped
        self._grasped = self._grasped or grasped_now
        self._reached = self._reached or self.at_target(sim)
        lost_before, self._lost = self._lost, self._reached * max(0.0, self._outside(self._opening))
        released_before, self._released = self._released, self._grasped and self._reached and not held
        terms = {
            "opening": 0.0 if reached_before else self._off - off,
            "handle": 0.0 if held or self._reached else self._handle_m - handle_m,
            "rest": self._rest_m - rest_m if reached_before else 0.0,
            "grasped": float(grasped_now),
            "reached": float(self._reached and not reached_before),
            "released": float(self._released) - float(released_before),
            "kept": lost_before - self._lost,
            "success": float(failure is None and self.success(sim)),
            **{name: float(failure == name) for name in self.failures},
            **contact_terms(sim, self.config.max_force_step_n),
            "slack": 1.0,
        }
        self._off, self._handle_m, self._rest_m = off, handle_m, rest_m
        return terms

    def _distances(self, sim: Simulator) -> tuple[float, float, float]:
        """From the joint to its target (m or rad), from the end-effector to the handle, and to rest (m)."""
        self._opening = sim.joint_position(self.arguments.handle)
        return (abs(self._opening - self.config.target_opening),
                math.dist(sim.ee_position, sim.handle_position(self.arguments.handle)),
                distance_to_rest(sim, self.rest_m(sim)))

    def measures(self) -> dict[str, float]:
        """How far the episode got."""
        return {"grasped": float(self._grasped), "reached": float(self._reached), "released": float(self._released),
                "opening": self._opening}

    # ------------------------------------------------------------------ showing

    def marks(self, sim: Simulator) -> list[Mark]:
        return [handle_ball(sim, self.arguments.handle), rest_ball(sim, self.rest_m(sim))]

    def status_lines(self, sim: Simulator) -> list[str]:
        handle = self.arguments.handle
        opening, unit = sim.joint_position(handle), "rad" if handle.startswith("fridge") else "m"
        to_handle = math.dist(sim.ee_position, sim.handle_position(handle))
        to_rest = distance_to_rest(sim, self.rest_m(sim))
        held = "the handle" if sim.held_handle == handle else held_name(sim, self.arguments.target)
        return [f"{handle.replace('_', ' ')}: open {opening:.2f} {unit}", f"holds {held}",
                f"hand to handle {to_handle:.2f} m", f"hand to rest {to_rest:.2f} m"]

    def instructions(self, sim: Simulator) -> tuple[str, ...]:
        verb, what = self.name.split("_")
        part, pull = ("fridge", "door of the fridge") if what == "fridge" else ("drawer", "drawer of the cabinet")
        other = ("pull the {} open" if verb == "open" else "push the {} shut").format(pull)
        return f"{verb} the {part}", f"{verb} the {pull}", other


def start_before(sim: Simulator, handle: str, config: ArticulatedConfig, rng: np.random.Generator) -> None:
    """HAB's start: in a small region before the handle of a drawer, or before the fridge, facing the handle.

    Where the robot would touch something everywhere in the region, as the hand touches a door that stands open, the
    region moves back. The robot could have driven there, so it never starts with its arm hooked around a door. Raises
    NoStartPose.
    """
    target = sim.handle_position(handle)
    frame = front_frame(sim, handle)
    low, high = config.start_distance_m
    for back in range(_BACK_STEPS):
        for _ in range(_TRIES_PER_STEP):
            forward = rng.uniform(low, high) + _BACK_M * back
            aside = rng.uniform(-config.start_aside_m, config.start_aside_m)
            x, y = from_frame(forward, aside, frame)
            facing = sim.robot.arm.heading_to(math.atan2(target[1] - y, target[0] - x))
            facing += config.start_yaw_noise_rad * rng.standard_normal()
            if can_start(sim, x, y, facing, just_before(x, y, target[:2])) and _driven_there(sim, x, y, facing):
                return
    raise NoStartPose(f"no collision-free pose before {handle} in scene {sim.episode.scene}")


def starts_around_handle(sim: Simulator, handle: str) -> list[PlanePose]:
    """Poses from which a drawer or door can be opened or closed, in a wider region than HAB's start; perhaps none.

    These are the poses of a grid at which the robot touches nothing and to which it could have driven. Where there is
    none, as before a door that stands open, they are the nearest ones behind the grid. The robot is left anywhere.
    """
    target, frame = sim.handle_position(handle), front_frame(sim, handle)
    grid = _AROUND_M["fridge" if handle.startswith("fridge") else "drawer"]

    def pose_at(forward: float, aside: float) -> list[PlanePose]:
        x, y = from_frame(forward, aside, frame)
        facing = sim.robot.arm.heading_to(math.atan2(target[1] - y, target[0] - x))
        free = can_start(sim, x, y, facing, just_before(x, y, target[:2])) and _driven_there(sim, x, y, facing)
        return [(x, y, facing)] if free else []

    poses = []
    for aside in _ASIDE_M:
        line = [pose for forward in grid for pose in pose_at(forward, aside)]
        behind = (pose for k in range(1, _BACK_STEPS) for pose in pose_at(grid[-1] + k * _BACK_M, aside))
        poses += line or [pose for pose in [next(behind, None)] if pose]
    return poses


# Out of the front and to the sides (m). Trained policies also succeed from 0.15 m and more around these places
# (docs/results.md).
_AROUND_M = {"drawer": (0.8, 0.9, 1.0), "fridge": (0.95, 1.05, 1.15)}
_ASIDE_M = (-0.15, 0.0, 0.15)
_BACK_M, _BACK_STEPS, _TRIES_PER_STEP = 0.05, 16, 6
_DRIVEN_M = (0.1, 0.2, 0.3, 0.4)  # straight behind the start pose, where the robot touches nothing either


def _driven_there(sim: Simulator, x: float, y: float, yaw: float) -> bool:
    """The way straight from behind is free; leaves the robot at the pose."""
    free = all(sim.stands_free(x - back * math.cos(yaw), y - back * math.sin(yaw), yaw) for back in _DRIVEN_M)
    sim.place_robot(x, y, yaw)
    return free


def front_frame(sim: Simulator, handle: str) -> PlanePose:
    """The frame of HAB's start regions, x out of the front: at the handle of a drawer, in the middle of the fridge."""
    if handle.startswith("fridge"):
        return sim.home.layout.fridge_pose
    x, y, _ = sim.handle_position(handle)
    _, rotation = sim.body_frame(handle)
    return x, y, math.atan2(rotation[1, 0], rotation[0, 0])
