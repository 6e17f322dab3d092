"""Settings of the navigation tasks, a dataclass for each. Light: `--help` reads them.

The defaults are those of Habitat 1.0 (habitat-lab, default_structured_configs.py and config/habitat/task).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

from rearrange.home.errors import UserError
from rearrange.home.robot import robot_named
from rearrange.home.settings.setting_fields import block, like, setting

SIZES = ("small", "large", "mixed")
ODOMETRY = ("perfect", "commands", "visual", "start")
CYLINDER = "cylinder"
ROBOT_HEIGHT_M = 1.4  # what hangs higher does not block a robot
STEPS, ROBOT_STEPS = 500, 900
"""Of an episode: Habitat's actions, and steps of 1/30 s."""
OF_CYLINDER = ("sliding", "radius_m", "height_m", "actuation_noise")
"""Settings that a robot has not: physics, or its body, says what they say."""


def default_actions(agent: str) -> str:
    """The actions of an agent where `actions` is null."""
    return "discrete" if agent == CYLINDER else "velocity"


@dataclass(frozen=True)
class NavigationConfig:
    """What all navigation tasks have: homes, the agent, its camera."""

    agent: str = setting(
        CYLINDER, "who drives: cylinder, Habitat's, without physics; or the base of a robot with physics: fetch, or "
                  "another that rearrange list names")
    size: str = setting(
        "small", "homes: one flat, two to four flats joined by doorways, or half of each", choices=SIZES)
    scene_dataset: str | None = setting(
        None, "instead of our homes: a *.scene_dataset_config.json, or a folder or *.xml of homes in MJCF, read "
              "without Habitat; with sim=habitat also a folder with the files of scenes, as Gibson's", path=True)
    scenes: str | None = setting(None, "of scene_dataset: names with *, separated by commas; null = those of the split")
    episodes: str | None = setting(
        None, "of scene_dataset: a file of Habitat's episodes of PointNav (.json.gz) instead of episodes that are "
              "drawn; with sim=habitat it must be given, of PointNav or ObjectNav", path=True)
    num_homes: int = setting(512, "different homes of the split; episodes are unlimited", above=0, at_most=1_000_000)
    max_steps: int | None = setting(
        None, "actions of an episode; null = 500, and of a robot's velocities those of 30 s, as Navigate has, or "
              "of more for a slow robot",
        above=0, at_most=1_000_000)
    actions: str | None = setting(
        None, "stop, forward and turns; or a forward and a turning speed; null = discrete, and of a robot velocity",
        choices=("discrete", "velocity"))
    action_repeat: int = setting(1, "steps of 1/30 s for which a velocity of a robot holds", above=0, at_most=1000)
    forward_m: float = setting(0.25, "of one step forward, or at full speed", above=0, at_most=10)
    turn_deg: float = setting(
        10.0, "of one turn, or at full speed; challenges since 2020 have 30", above=0, at_most=180)
    sliding: bool = setting(True, "a blocked agent slides along what blocks it; challenges since 2020: false")
    radius_m: float = setting(0.1, "of the agent, a cylinder", at_least=0.05, at_most=0.5)
    height_m: float = setting(1.5, "of the agent; what hangs higher does not block it", above=0, at_most=2.4)
    camera_height_m: float = setting(1.25, "of the camera, which looks straight ahead", above=0, at_most=2.3)
    fov_deg: float = setting(90.0, "field of view of the camera", at_least=10, at_most=150)
    near_m: float = setting(0.0, "depth that is shown at least", at_least=0, at_most=5)
    far_m: float = setting(10.0, "depth that is shown at most, and as 1", above=0.5, at_most=50)
    odometry: str = setting(
        "perfect", "what the goal is told relative to: the true pose (GPS and compass); the pose that the commands "
                   "would have led to; that corrected by laying what the depth image shows onto what was seen before; "
                   "the start", choices=ODOMETRY)
    egomotion: bool = setting(True, "the observation `egomotion`: the motion since the last action, by the odometry")
    actuation_noise: float = setting(
        0.0, "multiplier of a LoCoBot's measured noise on every motion; Habitat's challenge of 2020: 0.5", at_least=0,
        at_most=10)
    depth_noise: float = setting(
        0.0,
        "multiplier of the Redwood noise on depth (shifted pixels, coarser with distance); the challenge of 2020: 1.0",
        at_least=0, at_most=10)

    def __post_init__(self) -> None:
        if self.near_m >= self.far_m:
            raise UserError(f"near_m={self.near_m:g} is not below far_m={self.far_m:g}: lower nav.near_m= or raise "
                            "nav.far_m=.")
        self._check_agent()
        for name in ("scenes", "episodes"):
            if self.scene_dataset is None and getattr(self, name) is not None:
                raise UserError(f"nav.{name}={getattr(self, name)} needs nav.scene_dataset=.")
        if self.scenes is not None and self.episodes is not None:
            raise UserError(f"nav.scenes={self.scenes} and nav.episodes={self.episodes} are both given: the file "
                            "says which scenes.")
        if self.scene_dataset is not None and self.agent != CYLINDER:
            raise UserError("nav.scene_dataset= is for nav.agent=cylinder: the physics of robots knows our flats.")

    def resolved(self) -> Self:
        """These settings with what null means for the agent."""
        actions = self.actions or default_actions(self.agent)
        drives = self.agent != CYLINDER and actions == "velocity"
        robot_steps = ROBOT_STEPS * robot_named(self.agent, key="nav.agent").time if drives else 0.0
        steps = math.ceil(robot_steps / self.action_repeat) if drives else STEPS
        return replace(self, actions=actions, max_steps=self.max_steps or steps)

    def _check_agent(self) -> None:
        """UserError for a setting that the agent lacks. Checkpoints name all settings: a default counts as not given.
        """
        if self.agent == CYLINDER:
            if self.action_repeat != 1:
                raise UserError(f"nav.action_repeat={self.action_repeat} is for robots, which are driven "
                                "30 times a second: leave it at 1.")
            return
        actions = self.actions or default_actions(self.agent)
        robot_named(self.agent, key="nav.agent")
        of_steps = ("forward_m", "turn_deg") if actions == "velocity" else ()
        for name in (*OF_CYLINDER, *of_steps):
            value, default = getattr(self, name), type(self).__dataclass_fields__[name].default
            if value != default:
                shown, usual = (str(v).lower() if isinstance(v, bool) else f"{v:g}" for v in (value, default))
                why = "its velocities are those of its base" if name in of_steps else "its body and physics decide that"
                raise UserError(f"nav.{name}={shown} is not for nav.agent={self.agent}, where {why}: leave it at "
                                f"{usual}.")
        if self.size != "small":
            raise UserError(f"nav.size={self.size} is not for nav.agent={self.agent}, whose physics knows single "
                            "flats: it must be small.")
        if self.odometry in ("commands", "visual"):
            raise UserError(f"nav.odometry={self.odometry} is not for nav.agent={self.agent}, which does not jump to "
                            "where a command leads: it must be perfect or start.")
        if actions == "discrete" and self.action_repeat != 1:
            raise UserError(f"nav.action_repeat={self.action_repeat} is for velocities: leave it at 1, or write "
                            "nav.actions=velocity.")

    @property
    def body_m(self) -> tuple[float, float]:
        """Radius and height of what must be free where the agent is."""
        if self.agent == CYLINDER:
            return self.radius_m, self.height_m
        return robot_named(self.agent).base.standing_m, ROBOT_HEIGHT_M

    @property
    def camera_ahead_m(self) -> float:
        """How far the camera is ahead of the middle of the agent."""
        return 0.0 if self.agent == CYLINDER else robot_named(self.agent).head.position_m[0]


@dataclass(frozen=True)
class PointNavConfig(NavigationConfig):
    """Drive to a point that is given by distance and direction, and stop there."""

    success_m: float = setting(0.2, "success: stop called with this little left to drive", above=0, at_most=5)
    reward_scales: Mapping[str, float] = block(
        distance=setting(1.0, "per metre of the shortest way that is driven"), slack=setting(-0.01, "per step"),
        success=setting(0.0, "once, at success; habitat-lab has 2.5 here and none below"),
        spl=setting(2.5, "times the SPL of the episode, at success, as in DD-PPO"))


CATEGORIES: dict[str, tuple[str, ...]] = {
    name: (name,) for name in ("bed", "sofa", "tv_stand", "fridge", "counter", "table", "coffee_table",
                               "chair")} | {"shelf": ("bookcase", "low_shelf")} | {
    name: (name,) for name in ("wardrobe", "armchair", "plant", "sideboard", "nightstand")}
"""Categories of ObjectNav, and which furniture belongs to each. The first nine stand in every home."""


@dataclass(frozen=True)
class ObjectNavConfig(NavigationConfig):
    """Find a piece of furniture of a category, and stop where it is seen from near by."""

    turn_deg: float = like(NavigationConfig, "turn_deg", 30.0)
    sliding: bool = like(NavigationConfig, "sliding", False)
    radius_m: float = like(NavigationConfig, "radius_m", 0.18)
    height_m: float = like(NavigationConfig, "height_m", 0.88)
    camera_height_m: float = like(NavigationConfig, "camera_height_m", 0.88)
    fov_deg: float = like(NavigationConfig, "fov_deg", 79.0)
    near_m: float = like(NavigationConfig, "near_m", 0.5)
    far_m: float = like(NavigationConfig, "far_m", 5.0)
    categories: tuple[str, ...] = setting(tuple(CATEGORIES)[:9], "what is looked for", choices=tuple(CATEGORIES))
    segmentation: bool = setting(True, "the observation `segmentation`: which pixels show the category")
    view_m: float = setting(1.0, "a view point is at most so far from the footprint", above=0, at_most=5)
    success_m: float = setting(
        0.1, "success: stop called with this little left to the nearest view point", above=0, at_most=5)
    reward_scales: Mapping[str, float] = block(
        distance=setting(1.0, "per metre of the shortest way to a view point that is driven"),
        slack=setting(-0.001, "per step"), success=setting(2.5, "once, at success"),
        spl=setting(0.0, "times the SPL of the episode, at success"))


@dataclass(frozen=True)
class FleeConfig(NavigationConfig):
    """Get as far away from the start as the home allows."""

    success_share: float = setting(0.9, "success: this share of the farthest way, at the end", above=0, at_most=1)
    reward_scales: Mapping[str, float] = block(share=setting(5.0, "for the whole of the farthest way"))


@dataclass(frozen=True)
class ExploreConfig(NavigationConfig):
    """Visit as much of a home as possible."""

    success_share: float = setting(0.9, "success: this share of all squares of 1 m, at the end", above=0, at_most=1)
    reward_scales: Mapping[str, float] = block(new_square=setting(0.25, "per square of 1 m that is new"))


CONFIGS: dict[str, type[NavigationConfig]] = {
    "pointnav": PointNavConfig, "objectnav": ObjectNavConfig, "flee": FleeConfig, "explore": ExploreConfig}
