"""Settings of environments: of the home that each of them has, and of the group `sim=`, one dataclass for each
simulator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

from rearrange.home.errors import UserError, suggestion
from rearrange.home.robot import DEFAULT, robot_named
from rearrange.home.settings.presets import NAVIGATION
from rearrange.home.settings.setting_fields import Rule, check, checked, keys_of, like, setting

__all__ = ["NAVIGATION", "HomeSettings", "SimulatorConfig", "suggestion"]

SPLITS = ("train", "val", "test", "unseen")
FURNITURE = ("standard", "wide")
BOTH = "both"  # half of the episodes in homes of each
SIMULATORS = ("mujoco", "habitat")
RENDER_MODES = ("rgb_array", "human")
NAVIGATION_AGENTS = ("forward", "goal_follower", "map", "oracle")  # scripted, for these tasks alone
SEEN = ("rgb", "arm_rgb", "arm_depth", "segmentation", "instruction")
"""What can be seen beside the observations of a task: colours of the head's camera; colours and depth of one at the
wrist; what each pixel of the head's camera shows; the task in words."""
RANDOM = ("random_colors", "random_light", "random_camera_m", "random_camera_deg", "random_depth_noise",
          "random_depth_holes")
"""Settings of domain randomisation: for training, not for what is measured afterwards."""
SEEING = ("observations", "camera_size", *RANDOM)
"""Settings of what is seen, which navigation tasks have too."""
ROBOT = ("robot", "hand")
SHARED = (*ROBOT, "base_speed_m_s", "base_turn_rad_s", "suction_max_angle_rad", "image_lag")
"""Settings of the robot and its camera that all skills of a plan have in common."""
WHERE = ("split", "furniture", "num_layouts", "num_homes", "episodes", "episodes_share", "sim", "scene_dataset",
         "scenes", "mix", "robot_urdf", "gpu_device", "substeps", *RANDOM)
"""Settings of an environment that say where a policy was trained, not how: it acts as well with others."""


def renewed(env: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of an environment that a file holds, as this version has them: in version 0.2 `robot` was the URDF that
    Habitat loads, and the Fetch's place of rest was written out."""
    made = dict(env)
    if made.get("robot") is None or str(made["robot"]).endswith(".urdf"):
        urdf = made.pop("robot", None)
        made |= {} if urdf is None else {"robot_urdf": urdf}
    if made.get("robot", DEFAULT) == DEFAULT and list(made.get("rest_position_m") or ()) == [0.5, 0.0, 1.0]:
        made["rest_position_m"] = None
    return made


@dataclass(frozen=True)
class SimulatorConfig:
    """The robot, its limits, and the time steps of the physics. Full command reaches `base_speed_m_s` and
    `base_turn_rad_s`."""

    _: KW_ONLY
    robot: str = setting(DEFAULT, "who acts: a name that rearrange list says, or one of your own: package.module:Name")
    hand: str | None = setting(None, "of the robot; null = its usual one, as the suction of the Fetch")
    base_speed_m_s: float = setting(
        1.0, "of a full forward command; the real Fetch's is 1.0, HAB's 2.5", above=0, at_most=100)
    base_turn_rad_s: float = setting(1.5, "of a full turn command; HAB's is 2.5", above=0, at_most=100)
    suction_max_angle_rad: float | None = setting(
        None, "largest angle between cup and surface; null = any touch, as HAB", above=0)
    substeps: int = setting(
        4, "of physics in a step of 1/30 s; 2 takes two thirds of the time and makes contacts softer", at_least=2,
        at_most=64)
    settle_steps: int = 30  # most environment steps for which objects come to rest at a reset


@dataclass(frozen=True)
class HomeSettings(SimulatorConfig):
    """Where an environment takes place, how its robot drives and sees. Raises UserError for what cannot be."""

    split: str = setting("train", "apartments: train, val, test, or unseen, for a last look", choices=SPLITS)
    depth_size: int = setting(128, "pixels on a side of the depth image; 0 = no image", at_least=0, at_most=1024)
    sim: str = setting("mujoco", "simulator", choices=SIMULATORS)
    image_lag: bool = setting(True, "the policy sees the image from before the step's physics, as HAB")
    furniture: str = setting(
        "standard", "of the apartments: as in version 0.2, or wide: as varied as the world's; both: half of the "
                    "episodes in each", choices=(*FURNITURE, BOTH))
    num_layouts: int = setting(
        96, "different apartments of the split; episodes are unlimited", above=0, at_most=1_000_000)
    episodes: str | None = setting(
        None, "an episode file (.json, .json.gz), or a pattern with * of several, instead of generated episodes",
        path=True)
    episodes_share: float = setting(
        1.0, "share of training episodes that are drawn from that file; the others are generated", at_least=0,
        at_most=1)
    render_mode: str | None = setting(
        None, "what `render` gives: rgb_array; human = nothing, a window shows each step", choices=RENDER_MODES)
    scene_dataset: str | None = setting(None, "the *.scene_dataset_config.json of the homes; must be given", path=True)
    scenes: str | None = setting(
        None, "scenes of scene_dataset in which episodes are generated, names with *, separated by commas; null = "
              "those of the split")
    mix: float = setting(
        1.0, "share of generated episodes that take place in those scenes; the others in procedural apartments",
        at_least=0, at_most=1)
    robot_urdf: str | None = setting(
        None, "URDF of the Fetch; null = robots/fetch.urdf beside scene_dataset, or else ours", path=True)
    gpu_device: int | None = setting(
        None, "number of the GPU that draws; -1 = CPU; null = 0 where there is one, else the CPU", at_least=-1)
    observations: tuple[str, ...] | None = setting(
        None, "seen beside the observations of the task: colours and depth of head and wrist, what each pixel shows, "
              "the task in words", choices=SEEN)
    camera_size: int = setting(
        128, "pixels on a side of rgb, arm_rgb, arm_depth and segmentation", at_least=2, at_most=1024)
    random_colors: float = setting(
        0.0, "domain randomisation: in every episode other colours of everything, from 0, its own, to 1, any",
        at_least=0, at_most=1)
    random_light: float = setting(
        0.0, "the same of the light: direction, strength and tint, from 0, always the same, to 1", at_least=0,
        at_most=1)
    random_camera_m: float = setting(
        0.0, "the same of the cameras: the farthest that each is shifted along its axes", at_least=0, at_most=0.5)
    random_camera_deg: float = setting(
        0.0, "the farthest that each camera is turned about its axes", at_least=0, at_most=45)
    random_depth_noise: float = setting(
        0.0, "multiplier of the Redwood noise on depth (shifted pixels, coarser with distance); 1.0 is a real camera's",
        at_least=0, at_most=10)
    random_depth_holes: float = setting(
        0.0, "share of depth pixels that read 0: patches, most of them along edges", at_least=0, at_most=0.9)

    def __post_init__(self) -> None:
        if str(self.robot).endswith(".urdf"):  # what robot_urdf was called in version 0.2
            if self.sim != "habitat":
                raise UserError(f"sim.robot={self.robot}: a URDF is for sim=habitat, as sim.robot_urdf=.")
            object.__setattr__(self, "robot_urdf", self.robot_urdf or self.robot)
            object.__setattr__(self, "robot", DEFAULT)
        check(self)
        if (self.robot, self.hand) != (DEFAULT, None):
            robot_named(self.robot, self.hand)
        check_depth_size(self.depth_size)
        if self.furniture == BOTH and self.sim != "mujoco":
            raise UserError(f"sim.furniture={BOTH} is for sim=mujoco, which makes both kinds of homes: choose one of "
                            f"{', '.join(FURNITURE)}.")
        if self.scenes is not None and self.scene_dataset is None:
            raise UserError(f"sim.scenes={self.scenes} chooses among the scenes of a data set, which "
                            "sim.scene_dataset= should name.")
        if self.mix < 1.0 and self.scene_dataset is None:
            raise UserError(f"sim.mix={self.mix:g} mixes the scenes of a data set with procedural apartments: "
                            "sim.scene_dataset= should name it.")


    @property
    def homes(self) -> str:
        """What the generated apartments are called together."""
        return homes_called(self.split, self.furniture)


def homes_called(split: str, furniture: str) -> str:
    """What generated apartments of a split are called with their furniture: "val", or "wide/val"."""
    return split if furniture == "standard" else f"{furniture}/{split}"


HOME_SETTINGS = tuple(key.name for key in keys_of(HomeSettings))
"""The settings that every environment of a skill or scenario has."""


def check_depth_size(pixels: int) -> None:
    """Raise UserError for an image that the camera does not take."""
    if pixels == 1:
        raise UserError(f"depth_size={pixels} (policy.image_size) should be 0 (no image) or 2 to 1024 pixels.")


@dataclass(frozen=True)
class MujocoSettings(HomeSettings):
    """The embedded simulator on MuJoCo, without a GPU: procedural apartments, or scenes of a Habitat data set or in
    MJCF."""

    SHOWN = ("scene_dataset", "scenes", "mix", "furniture", "num_layouts", "episodes", "episodes_share", *SHARED,
             "substeps", *SEEING)
    scene_dataset: str | None = like(
        HomeSettings, "scene_dataset",
        text="a *.scene_dataset_config.json, as ReplicaCAD's, or a folder of MuJoCo XML; null = procedural apartments")


@dataclass(frozen=True)
class HabitatSettings(HomeSettings):
    """Homes in Habitat-Sim with Bullet: ReplicaCAD, or our own apartments exported by rearrange scenes export."""

    SHOWN = ("scene_dataset", "scenes", "robot_urdf", "gpu_device", "furniture", "num_layouts", "episodes", *SHARED,
             *SEEING)
    num_layouts: int = like(
        HomeSettings, "num_layouts", 10,
        "different apartments of the split that the data set has; episodes are unlimited")


SETTINGS_OF = {"mujoco": MujocoSettings, "habitat": HabitatSettings}
"""Simulator -> its settings; those of mujoco, where it is not here."""


def checked_settings(what: str, known: Iterable[str], task: type, given: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of the environment of `what`, such as "skill pick", in the type of their rules: those above, and those
    of the dataclass `task`. UserError for the first that is not `known`, or that its rule refuses."""
    rules = {key.name: key.rule for settings in (HomeSettings, task) for key in keys_of(settings)}
    rules["expert_action"] = Rule.of("bool")
    for name in given:
        if name not in known:
            raise UserError(f"{what} has no setting {name!r}{suggestion(name, known)}; settings are "
                            f"{', '.join(known)}.")
    return {name: _scales(what, rules, value) if name == "reward_scales" else checked(rules.get(name), name, value)
            for name, value in given.items()}


def _scales(what: str, rules: dict[str, Rule], given: Any) -> dict[str, float]:
    if not isinstance(given, Mapping):
        raise UserError(f"reward_scales={given!r} is not allowed: it must be a mapping from names of reward terms to "
                        "numbers.")
    terms = {key.removeprefix("reward_scales."): key for key in rules if key.startswith("reward_scales.")}
    if unknown := [name for name in given if name not in terms]:
        raise UserError(f"{what} has no reward term {unknown[0]!r}; its terms are {', '.join(terms)}.")
    return {name: checked(rules[terms[name]], terms[name], value) for name, value in given.items()}
