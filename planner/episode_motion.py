"""How far the robot moved in an episode, and which objects stand upright and at rest at its end."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from rearrange.home.apartments.objects import OBJECTS
from rearrange.home.geometry import quat_matrix
from rearrange.home.simulation.simulator_interface import STEP_S

if TYPE_CHECKING:
    from rearrange.home.simulation.simulator_interface import Simulator

UPRIGHT_RAD = math.radians(30)  # a toppled object leans by more
AT_REST_M_S = 0.05
_BALLS = {name for name, model in OBJECTS.items() if model.shape == "sphere"}


class EpisodeMotion:
    """`driven_m` and `hand_path_m`: paths of the base and of the hand through the room, by the robot's own motion."""

    def __init__(self, sim: Simulator, objects: Sequence[int]) -> None:
        """The episode begins. objects: those that `upright` and `at_rest` are asked about."""
        self._sim = sim
        self.driven_m = self.hand_path_m = 0.0
        # of each object its own direction that points up where the episode begins
        self._up = {index: _up(sim, index) for index in objects}
        self._moved_m = dict.fromkeys(objects, 0.0)

    def before_step(self) -> None:
        """Called before a step of the simulator: what is put elsewhere between steps does not count as motion."""
        sim = self._sim
        self._base, self._hand = sim.base_pose[:2], tuple(sim.ee_position)
        self._stood = {index: tuple(sim.object_position(index)) for index in self._up}

    def after_step(self) -> None:
        sim = self._sim
        self.driven_m += math.dist(self._base, sim.base_pose[:2])
        self.hand_path_m += math.dist(self._hand, sim.ee_position)
        self._moved_m = {index: math.dist(stood, sim.object_position(index)) for index, stood in self._stood.items()}

    def upright(self, index: int) -> bool:
        """Whether an object leans by less than UPRIGHT_RAD from how it stood when the episode began; a ball always."""
        if self._sim.episode.objects[index] in _BALLS:
            return True
        return bool(_up(self._sim, index) @ self._up[index] > math.cos(UPRIGHT_RAD))

    def at_rest(self, index: int) -> bool:
        """Whether an object moved by less than AT_REST_M_S in the last step."""
        return self._moved_m[index] < AT_REST_M_S * STEP_S


def _up(sim: Simulator, index: int) -> np.ndarray:
    """Which direction of an object points up, in its own frame."""
    return quat_matrix(np.array(sim.object_pose(index)[3:]))[2]
