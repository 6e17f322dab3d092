"""Settings of the navigation tasks, a dataclass for each. Light: `--help` reads them.

The defaults are those of Habitat 1.0 (habitat-lab, default_structured_configs.py and config/habitat/task).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rearrange.settings.rules import block, like, setting

SIZES = ("small", "large", "mixed")
ODOMETRY = ("perfect", "commands", "start")


@dataclass(frozen=True)
class NavigationConfig:
    """What all navigation tasks have: homes, the agent, its camera."""

    size: str = setting("small", "homes: one flat, two to four flats joined by doorways, or half of each", choices=SIZES)
    num_homes: int = setting(512, "different homes of the split; episodes are unlimited", above=0, at_most=1_000_000)
    max_steps: int = setting(500, "actions of an episode", above=0, at_most=1_000_000)
    actions: str = setting("discrete", "stop, forward and turns; or a forward and a turning speed", choices=("discrete", "velocity"))
    forward_m: float = setting(0.25, "of one step forward, or at full speed", above=0, at_most=10)
    turn_deg: float = setting(10.0, "of one turn, or at full speed; challenges since 2020 have 30", above=0, at_most=180)
    sliding: bool = setting(True, "a blocked agent slides along what blocks it; challenges since 2020: false")
    radius_m: float = setting(0.1, "of the agent, a cylinder", at_least=0.05, at_most=0.5)
    height_m: float = setting(1.5, "of the agent; what hangs higher does not block it", above=0, at_most=2.4)
    camera_height_m: float = setting(1.25, "of the camera, which looks straight ahead", above=0, at_most=2.3)
    fov_deg: float = setting(90.0, "field of view of the camera", at_least=10, at_most=150)
    near_m: float = setting(0.0, "depth that is shown at least", at_least=0, at_most=5)
    far_m: float = setting(10.0, "depth that is shown at most, and as 1", above=0.5, at_most=50)
    odometry: str = setting(
        "perfect", "what the goal is told relative to: the true pose (GPS and compass); the pose that the commands would have led to; "
        "the start", choices=ODOMETRY)
    actuation_noise: float = setting(
        0.0, "multiplier of a LoCoBot's measured noise on every motion; Habitat's challenge of 2020: 0.5", at_least=0, at_most=10)
    depth_noise: float = setting(
        0.0, "multiplier of the Redwood noise on depth (shifted pixels, coarser with distance); the challenge of 2020: 1.0",
        at_least=0, at_most=10)


@dataclass(frozen=True)
class PointNavConfig(NavigationConfig):
    """Drive to a point that is given by distance and direction, and stop there."""

    success_m: float = setting(0.2, "success: stop called with this little left to drive", above=0, at_most=5)
    reward_scales: Mapping[str, float] = block(
        distance=setting(1.0, "per metre of the shortest way that is driven"),
        slack=setting(-0.01, "per step"),
        success=setting(0.0, "once, at success; habitat-lab has 2.5 here and none below"),
        spl=setting(2.5, "times the SPL of the episode, at success, as in DD-PPO"),
    )


CONFIGS: dict[str, type[NavigationConfig]] = {"pointnav": PointNavConfig}
