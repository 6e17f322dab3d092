"""What knows the geometry of a home, experts and painters, looks at an embedded simulator with the same state: the twin.

External scenes have none: Habitat draws their pictures, and a second Habitat is where poses are tried out.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rearrange.apartments.episodes import Episode
from rearrange.errors import UserError
from rearrange.habitat import spectator
from rearrange.habitat.data import HabitatData
from rearrange.habitat.homes import Found
from rearrange.habitat.robot_in_scene import InScene
from rearrange.habitat.mujoco_twin import show
from rearrange.simulator import Simulator, SimulatorConfig
from rearrange.mujoco_sim.simulator import MujocoSimulator


class WithTwin(InScene):
    """A robot in a scene, its twin and its shadow."""

    def __init__(self, config: SimulatorConfig, data: HabitatData, nvidia: bool, found: Found | None) -> None:
        super().__init__(config, data, nvidia, found)
        self._data, self._nvidia = data, nvidia
        self._shadows: dict[bool, Simulator] = {}
        self._twin: MujocoSimulator | None = None
        self._twin_episode: Episode | None = None
        self._twin_is_current = False

    def picture(self, eye: np.ndarray, target: np.ndarray, marks: list) -> np.ndarray:
        """What a spectator at `eye` sees who looks at `target`, with marks: (512, 512, 3) uint8. Of our homes drawn from
        the state by the embedded home's painter, of external ones by Habitat.
        """
        if self._is_ours:
            return self.twin.picture(eye, target, marks)
        return spectator.picture(self.world.simulator, eye, target, np.array(self._origin), marks)

    @property
    def twin(self) -> MujocoSimulator:
        """The embedded simulator of the same home with everything where it is here; for what knows the geometry: experts,
        pictures and the search for start poses of plans. It is never stepped. Raises UserError in an external scene.
        """
        if not self._is_ours:
            raise UserError(f"scripted experts need to know every piece of a home, and scene {self.home.layout.name} is none of "
                            "ours: take agent=pretrained or a checkpoint there.")
        if self._twin_episode is not self._loaded:
            self._twin = self._twin or MujocoSimulator(self.config)
            self._twin.reset(self._loaded)
            self._twin_episode, self._twin_is_current = self._loaded, False
        if not self._twin_is_current:
            poses = [self.object_pose(i) for i in range(len(self._objects))]
            openings = {name: self.joint_position(name) for name in self.home.handles}
            show(self._twin, self.base_pose, self.robot.torso_m, self._arm_rad, poses, openings)
            self._twin_is_current = True
        return self._twin

    def shadow(self) -> Simulator:
        """A simulator in which poses are tried out that this one must not take; always the same one: of our homes an
        embedded one, of external ones another Habitat.
        """
        ours = self._is_ours
        if ours not in self._shadows:
            self._shadows[ours] = MujocoSimulator(self.config) if ours else type(self)(
                self.config, replace(self._data, pictures=False, scenes=()), self._nvidia, self._homes.found)
        return self._shadows[ours]
