"""What the experts of Pick and Place have in common: reach for something, and once it is done leave with the hand at
rest. Where no way in is found, step back and plan again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from skills.experts.action import assemble
from skills.experts.clearance import Clearance
from skills.experts.reach_plan import REST_RAD, Reach, plan_retreat
from skills.experts.trajectory import Follower
from skills.experts.withdraw import plan_exit

if TYPE_CHECKING:
    from rearrange.home.simulation.simulator_interface import Simulator
    from skills.skill import Skill

_PLANS, _NO_END = 8, 10_000  # after so many plans that failed it waits for the end
_STEPS_BETWEEN_PLANS = 15


class ReachingExpert(ABC):
    """`_leaving`: it is done, and goes. `_ready`: the way that is followed leads to where it is to be done.

    `in_plan`: another skill comes after this one, so it leaves with the arm as that one finds it at its start.
    """

    in_plan = False

    def __init__(self, sim: Simulator, skill: Skill) -> None:
        self.sim, self.skill = sim, skill
        self._may_drive = "base" in skill.action_parts
        self._follower: Follower | None = None
        self._leaving = self._ready = False
        self._patience = self._exits = self._failed = 0
        self.reach: Reach | None = None
        self.note = ""

    def act(self) -> np.ndarray:
        """The action of the next step, in the skill's order."""
        return assemble(self.skill, self.command())

    @abstractmethod
    def command(self) -> dict[str, np.ndarray | tuple | float]:
        """The parts of the next action by name."""

    @abstractmethod
    def _ways_in(self) -> Iterator[Reach | None]:
        """Plans to try one after another; None where there is none."""

    def _plan(self, done: bool) -> None:
        """Plan what is to be followed next, if anything: the way out once it is `done`, else the way in."""
        if done:
            if not self._leaving or self._follower.stuck:
                self._leaving, self._exits = True, self._exits + 1
                rest_m = self.skill.config.rest_position_m
                way = plan_exit(self.sim, self._may_drive, rest_m, self._exits, REST_RAD if self.in_plan else None)
                self._follower = Follower(self.sim, way)
            return
        if self._leaving:  # it was lost on the way out
            self._leaving, self._ready, self._follower = False, False, None
        if self._patience == 0 and (self._follower is None or self._follower.stuck or self._retreated):
            self._reach_in()
        self._patience = max(0, self._patience - 1)

    @property
    def busy(self) -> bool:
        """It is done, but still on its way out."""
        return self._leaving and not self._follower.done

    @property
    def _retreated(self) -> bool:
        return self._follower.done and not self._ready

    def _reach_in(self) -> None:
        for self.reach in self._ways_in():
            if self.reach is not None:
                self._follower, self._ready = Follower(self.sim, self.reach.motion), True
                return
        self.note, self._ready, self._failed = "no plan", False, self._failed + 1
        self._patience = _STEPS_BETWEEN_PLANS if self._failed < _PLANS else _NO_END
        retreat = plan_retreat(self.sim, Clearance(self.sim)) if self._may_drive else None
        self._follower = None if retreat is None else Follower(self.sim, retreat)
