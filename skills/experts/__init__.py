"""Scripted experts: privileged controllers that solve the skills through the same actions and limits as a policy.

An expert can be made at any moment of an episode, from the simulator and a skill that has been started. It is asked for
an action before every step: `Expert(sim, skill).act()`. It plans with MuJoCo's poses, Jacobians and contacts, in a copy
of the simulator's state that it never writes back.
"""

from __future__ import annotations

from rearrange.home.errors import UserError
from rearrange.home.settings.installed_parts import SKILLS as OFFERED
from skills import own_skills
from skills.experts.door import CloseDoorExpert
from skills.experts.handle import CloseDrawerExpert, OpenExpert
from skills.experts.navigate import NavigateExpert
from skills.experts.pick_and_place import PickExpert, PlaceExpert
from skills.experts.steering import Steering

EXPERTS: dict[str, type] = {
    "navigate": NavigateExpert,
    "pick": PickExpert,
    "place": PlaceExpert,
    "open_cabinet": OpenExpert,
    "close_cabinet": CloseDrawerExpert,
    "open_fridge": OpenExpert,
    "close_fridge": CloseDoorExpert,
}
ADVISERS: dict[str, type] = {"navigate": Steering}
"""Experts that can be asked in any state to which another agent has brought the robot, as
`Adviser(sim, skill).advice()`."""


def expert_class(skill: str) -> type:
    """The expert of a skill: `expert_class(name)(sim, skill)`. UserError where there is none."""
    own = own_skills.load(skill)[0].expert if skill not in EXPERTS and OFFERED.is_own(skill) else None
    if own is None and skill not in EXPERTS:
        raise UserError(f"skill {skill} has no scripted expert; there is one for {', '.join(EXPERTS)}.")
    return own or EXPERTS[skill]


def has_expert(skill: str) -> bool:
    """Whether a skill has one, as far as its code can be loaded."""
    try:
        return bool(expert_class(skill))
    except UserError:
        return False
