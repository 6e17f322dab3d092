"""A policy of nav=pointnav as the Navigate of a plan: a neural PointGoal controller on a robot (DD-PPO, section 1).

PointNav does not say where to stand: an object is on a counter, and a PointGoal is on the floor. The place is found on
the map that the camera has drawn, as the sense-plan-act baseline finds it (`planner.spa`). The policy drives there by
what it sees, not along a way on the map. The last 0.35 m, and the turn to the object, are driven straight.

What differs between the agent of the training and the robot:

- Action: a step ahead or a turn is carried out at the base's speeds until odometry says that it is done. A policy that
  was trained on a robot itself (`nav.agent=fetch`) may have velocities as actions, which are the base's.
- Camera: the robot's own, ahead of the middle of the base, turned level and drawn from the height of the
  training. The image is cut to the field of view of the training, and depth is limited as there.
- Body: the arm hangs before the camera. The robot knows its shape; its pixels get the depth of their row's neighbours.
- Width: a robot is wider than Habitat's cylinder. Held up by something, it backs off (`NavigateSPA`).
"""

from __future__ import annotations

import math
import zlib
from functools import lru_cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np

from eval.trained_policy import training_of
from planner.spa.controllers import AWAY_M, Memory, NavigateSPA
from rearrange.home.apartments.segmentation import OBJECT, ROBOT
from rearrange.home.errors import UserError
from rearrange.home.pictures.looks import Looks
from rearrange.home.robot.cameras import mounting
from rearrange.home.robot.robot import RANGE_M, Camera
from rearrange.home.settings.installed_parts import is_importable
from rearrange.home.settings.own_networks import of_checkpoint
from rearrange.navigation import CONFIGS
from rearrange.navigation.agent import CarriedOut, Held, action_space, limited
from rearrange.navigation.gps_compass import EGOMOTION_SPACE, egomotion
from rearrange.navigation.pointnav import GOAL_SPACE, polar_goal
from rearrange.navigation.settings import CYLINDER, PointNavConfig
from trainer.checkpoint import load_policy
from trainer.player import Player

if TYPE_CHECKING:
    from rearrange.home.geometry import PlanePose
    from rearrange.home.simulation.simulator_interface import Simulator
    from skills.skill import Skill

JUDGED = {"any_start": True, "to_handle": True, "stop_within_m": 2.0}
"""Settings of Navigate beside it: those of the policy of Navigate that comes with the package."""
_STRAIGHT_M = 0.35  # from its place on it drives straight to it
_STOPS = 5  # calls of stop elsewhere, after which the place is another
_HELD_UP = 2  # times that something holds it up, after which the place is another
_SOON = 15  # steps after which a place is looked for again where there was none
_FROM_HANDLE_M = (0.82, 1.05)  # where drawers and doors are opened and closed from


def pointnav_config(env: dict[str, Any], name: str) -> PointNavConfig:
    """The settings of PointNav that a policy was trained with.

    Args:
        env: settings of the environment of its training.
        name: of its file, for people.

    Raises:
        UserError: such a policy cannot drive a robot.
    """
    if is_importable(agent := str(env.get("agent"))):
        raise UserError(f"{name} was trained with nav.agent={agent}, which is imported only where it is typed: take a "
                        "policy of nav.agent=cylinder or of a robot that has a name.")
    env = {key: value for key, value in env.items() if key in PointNavConfig.__dataclass_fields__}
    config = CONFIGS["pointnav"](**env).resolved()
    if config.actions != "discrete" and config.agent == CYLINDER:
        raise UserError(f"{name} was trained with nav.actions={config.actions}: a robot is driven by a policy of "
                        "discrete actions, or by one of velocities that was trained with nav.agent= and a robot.")
    if config.fov_deg > Camera.fov_deg or config.far_m > RANGE_M:
        raise UserError(f"{name} was trained with nav.fov_deg={config.fov_deg:g} and nav.far_m={config.far_m:g}: a "
                        f"robot's camera sees {Camera.fov_deg:g} degrees and {RANGE_M:g} m at most.")
    return config


class Pilot:
    """Drives the base with a policy of PointNav, one episode at a time."""

    def __init__(self, content: dict[str, Any], name: str, deterministic: bool = False,
                 network: str | None = None) -> None:
        meta = training_of(content)
        self.config, self._size = pointnav_config(meta.get("env", {}), name), meta.get("image_size", 0)
        self._policy, self._deterministic = load_policy(content, of_checkpoint(content, network)), deterministic
        boxes = {"pointgoal": GOAL_SPACE, "egomotion": EGOMOTION_SPACE}
        if self._size:
            boxes["depth"] = gymnasium.spaces.Box(0.0, 1.0, (self._size, self._size, 1), np.float32)
        self._spaces = SimpleNamespace(observation_space=gymnasium.spaces.Dict(boxes),
                                       action_space=action_space(self.config))

    def begin(self, seed: int, mean: bool = False) -> None:
        """A way begins; mean: the likeliest actions, not drawn ones."""
        self._player = Player.of(self._policy, self._spaces, mean or self._deterministic, seed)
        self._motion: CarriedOut | Held | None = None  # the action that is being carried out
        self._ahead_m = self._turn_rad = 0.0
        self._before: PlanePose | None = None  # where it was asked last

    def command(self, sim: Simulator, goal: tuple[float, float]) -> tuple[float, float] | None:
        """Forward and turning command of the base, -1..1, towards a goal (world, m); None: the policy calls stop."""
        if self._motion is None or self._motion.is_done(sim.base_pose):
            self._ask(sim, goal)
        return None if self._motion is None else self._motion.command(sim.base_pose)

    def _ask(self, sim: Simulator, goal: tuple[float, float]) -> None:
        pose = tuple(sim.base_pose)
        seen = {"pointgoal": polar_goal(pose, goal), "egomotion": egomotion(self._before or pose, pose)}
        self._before = pose
        if self._size:
            seen["depth"] = level_depth(sim, self._size, self.config)
        action = self._player.act(seen)
        if self.config.actions == "velocity":
            speeds = limited(*action)
            self._motion = Held(speeds, self.config.action_repeat) if any(speeds) else None
            return
        self._ahead_m = self.config.forward_m if action == 1 else 0.0
        self._turn_rad = {2: 1.0, 3: -1.0}.get(int(action), 0.0) * math.radians(self.config.turn_deg)
        self._motion = CarriedOut(sim.config, sim.base_pose, self._ahead_m, self._turn_rad) if action else None


class NavigatePointNav(NavigateSPA):
    """Navigate with a policy of PointNav between where it stands and where it shall stand. `act` as an expert's."""

    looks_around = False
    straight_m = _STRAIGHT_M
    look_every, replan_steps = 8, 90  # the map is for the place alone

    def __init__(self, pilot: Pilot, memory: Memory, sim: Simulator, skill: Skill, actions: str = "sampled") -> None:
        super().__init__(memory, sim, skill)
        self._sim, self._pilot, self._stops, self._held_up = sim, pilot, 0, 0
        again = memory.ways.get(self.target, 0)
        memory.ways[self.target] = again + 1
        seed = zlib.crc32(f"{sim.episode.id}/{sum(memory.ways.values())}".encode())
        pilot.begin(seed, actions == "mean" or (actions == "mean_first" and not again))

    def _find_way(self, stood: list[tuple[float, float]]) -> tuple[PlanePose, Any] | None:
        memory, point = self.memory.map, self.target[:2]
        handle = self.skill.target_handle is not None
        side = memory.open_side(point) if handle else None  # of a front, as far as it has been seen
        found = memory.place_at(self.senses, point, _FROM_HANDLE_M if handle else AWAY_M, stood, side)
        if found is not None:
            return found
        # It stands too near to something to plan; meanwhile it drives towards the thing itself.
        self._planned += _SOON - self.replan_steps
        if self._way is not None:
            return None
        (x, y), (px, py) = self.senses.base_pose[:2], self.target[:2]
        return (px, py, math.atan2(py - y, px - x)), None

    def _towards(self, pose: PlanePose, field: Any) -> tuple[float, float]:
        command = self._pilot.command(self._sim, pose[:2])
        if command is not None:
            return command
        self._stops += 1
        if self._stops % _STOPS == 0:
            self._give_up_place()
        return 0.0, 0.0

    def _watch(self) -> None:
        waiting = self._back
        super()._watch()
        if self._back > waiting:
            self._held_up += 1
            if self._held_up % _HELD_UP == 0:
                self._give_up_place()

    def _give_up_place(self) -> None:
        """Drive to another place, since this one is not reached."""
        self.memory.stood.setdefault(self.target, []).append(self._way[0][:2])
        self._planned = -math.inf


def level_depth(sim: Simulator, size: int, config: PointNavConfig) -> np.ndarray:
    """What a level camera sees on the robot: depth as a policy of PointNav with these settings sees it.

    The robot and what it holds are not in the image, (size, size, 1) float32.
    """
    head = sim.robot.head
    if head.bearing_rad != 0.0:
        raise UserError(f"this policy of PointNav sees what is ahead, and the head camera of {sim.robot.said} looks "
                        "aside: take another policy, or another robot.")
    if config.fov_deg > head.fov_deg:
        raise UserError(f"this policy of PointNav sees {config.fov_deg:g} degrees, and the head camera of "
                        f"{sim.robot.said} {head.fov_deg:g}: take another policy, or another robot.")
    drawn = _pixels(size, config.fov_deg, head.fov_deg)
    images = sim.photograph("head", drawn, ("depth", "segmentation"), _level_head(head, config.camera_height_m))
    depth, things = images["depth"][:, :, 0], images["segmentation"][:, :, 0]
    own = (things >= min(ROBOT.values())) & (things <= max(ROBOT.values()))
    if sim.held is not None:
        own |= things == OBJECT + sim.held
    filled = _without(depth, own) * np.float32(RANGE_M / config.far_m)
    first = (drawn - size) // 2
    shown = filled[first:first + size, first:first + size, None]
    return np.clip(shown, np.float32(config.near_m / config.far_m), np.float32(1.0))


def _pixels(size: int, fov_deg: float, of_camera_deg: float) -> int:
    """Pixels on a side of the camera's image whose middle `size` pixels span the policy's field of view."""
    more = size * math.tan(math.radians(of_camera_deg) / 2) / math.tan(math.radians(fov_deg) / 2)
    return size + 2 * round((more - size) / 2)


@lru_cache(maxsize=4)
def _level_head(head: Camera, height_m: float) -> Looks:
    """The head's camera turned up until it looks ahead, and lifted."""
    right, down, forward, eye = mounting(head)
    lift = np.array([right, down, forward]) @ np.array([0.0, 0.0, height_m - eye[2]])
    return Looks(moves={"head": (lift, np.array([math.atan2(-forward[2], forward[0]), 0.0, 0.0]))})


def _without(depth: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Fill the pixels of `own` from both sides of their row, in inverse depth, in which flat surfaces are linear."""
    filled = depth.copy()
    columns = np.arange(depth.shape[1])
    for row in np.flatnonzero(own.any(axis=1)):
        hidden = own[row]
        if not hidden.all():
            inverse = 1.0 / np.maximum(depth[row, ~hidden], 1e-3)
            filled[row, hidden] = 1.0 / np.interp(columns[hidden], columns[~hidden], inverse)
    return filled
