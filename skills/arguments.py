"""What a skill is told to do. In training an episode says it, in a plan the planner (`planner.arguments`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rearrange.home.apartments.episodes import Episode, Pose
    from rearrange.home.simulation.simulator_interface import Point, Simulator


@dataclass(frozen=True)
class SkillArguments:
    """Positions are in the world frame, in metres. None: not known, or it does not matter to the skill."""

    target: int | None = None  # index of the object in the episode
    handle: str | None = None  # joint of the drawer or door to open or close; for Navigate that of the next skill
    position: Point | None = None  # where the middle of the object is believed to be
    goal: Pose | None = None  # where the object belongs: its middle and its quaternion (w, x, y, z)
    next_skill: str | None = None  # for Navigate: one of NEXT_SKILLS
    point: Point | None = None  # for Navigate: what to drive to, where that is neither the object nor its goal
    handle_position: Point | None = None  # for Navigate: where the handle is, for a policy that learned to drive to it

    @property
    def placed(self) -> int | None:
        """The object in the hand that the next skill places; None when another skill comes next."""
        return self.target if self.next_skill is not None and self.next_skill.startswith("place") else None

    @property
    def object_point(self) -> Point | None:
        """Where Navigate drives to: `point` if given, the goal if the next skill places the object, else the object."""
        if self.point is not None:
            return self.point
        return self.position if self.placed is None else self.goal[:3]


def about_object(sim: Simulator, episode: Episode, target: int) -> SkillArguments:
    """What an episode that has just begun says about an object: where it came to rest and where it belongs."""
    return SkillArguments(target, position=sim.start_positions[target], goal=episode.targets.get(target))
