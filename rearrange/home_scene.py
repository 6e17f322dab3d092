"""What every environment in a home holds: a simulator, its camera and what it has shown, the episodes of a file, a spectator.

Time: the policy acts at 30 Hz. The image in an observation was taken before the physics of the step that led to it,
while everything else is measured after it, as on a system whose rendering overlaps physics; `image_lag=False` takes it
after. The first image of an episode, or of a skill in a plan, is not delayed.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rearrange.apartments.episodes import Episode, read_episodes
from rearrange.episode_making.generator import generate_episode
from rearrange.errors import UserError
from rearrange.mapping.floor_map import FloorMap
from rearrange.observations import OBSERVATIONS, Observation
from rearrange.simulator import Point, SimulatorConfig
from rearrange.settings.environment import HomeSettings
from rearrange.simulators import make_simulator, scene_data

if TYPE_CHECKING:
    from skills.skill import Skill


class HomeScene:
    """depth_size: pixels of the images that are taken. maps_floor: whether they are entered in `floor_map`. image: the last one that
    an observation has. Whoever runs a skill sets the first two.
    """

    start_base_pose: Point  # x, y (m), yaw (rad), world frame: what `gps`, `compass` and the map of the floor are relative to
    floor_map: FloorMap | None  # what images have shown since the start

    def __init__(self, settings: HomeSettings) -> None:
        self.settings, path = settings, settings.episodes
        self.episodes = None if path is None else read_episodes(path)
        if self.episodes == []:
            raise UserError(f"the episode file {path} has no episodes.")
        data = scene_data(settings.scene_dataset, settings.robot, settings.gpu_device, settings.render_mode is not None,
                          settings.split, settings.num_layouts, self.episodes)
        limits = SimulatorConfig(base_speed_m_s=settings.base_speed_m_s, base_turn_rad_s=settings.base_turn_rad_s,
                                 suction_max_angle_rad=settings.suction_max_angle_rad, substeps=settings.substeps)
        self.sim = make_simulator(settings.sim, limits, data)
        self.depth_size, self.maps_floor = settings.depth_size, False
        self.image: np.ndarray | None = None
        self._view: tuple[np.ndarray, np.ndarray] | None = None

    def listed_episode(self, index: int) -> Episode:
        """An episode of the file, from which they are drawn again after the last."""
        return self.sim.in_own_terms(self.episodes[index % len(self.episodes)])

    def generated_episode(self, kind: str, index: int) -> Episode:
        """Episode `index` of a kind, in our homes, or in scenes of a data set that the embedded simulator was given."""
        settings = self.settings
        if settings.sim == "mujoco" and settings.scene_dataset is not None:
            from rearrange.mujoco_scenes.choice import generated_episode

            return generated_episode(Path(settings.scene_dataset), kind, settings.split, settings.scenes, settings.num_layouts, index)
        return generate_episode(kind, settings.split, index, settings.num_layouts)

    # ------------------------------------------------------------------ time

    def begin_episode(self) -> None:
        """The robot stands where an episode begins."""
        self._view = None
        self.start_here()

    def start_here(self) -> None:
        """What is relative to the start begins here; what was seen before is forgotten, and a first image is taken."""
        self.start_base_pose, self.floor_map = self.sim.base_pose, None
        self.image = self.take_image()

    def step(self, arm: list[float] | None = None, grip: float | None = None, base: list[float] | None = None,
             look: bool = True) -> None:
        """1/30 s of physics; `look`: with a new image."""
        if look and self.settings.image_lag:
            self.image = self.take_image()
        self.sim.step(arm, grip, base)
        if look and not self.settings.image_lag:
            self.image = self.take_image()

    # ------------------------------------------------------------------ seeing

    def take_image(self, size: int | None = None) -> np.ndarray | None:
        """Depth now, (size, size, 1), 0..1 over 10 m; None for size 0. Default: `depth_size`."""
        size = self.depth_size if size is None else size
        if not size:
            return None
        image = self.sim.depth_image(size)
        if self.maps_floor:
            self.floor_map = self.floor_map or FloorMap(self.start_base_pose)
            self.floor_map.add(image, self.sim.base_pose, self.sim.ee_in_base)
        return image

    def observe(self, keys: Iterable[str], skill: Skill | None) -> Observation:
        """These observations as they are now, with the last image among them; `skill`: what it was told."""
        observation = {"depth": self.image} if "depth" in keys else {}
        for key in keys:
            if key != "depth":
                observation[key] = np.array(OBSERVATIONS[key][1](self, skill), np.float32)
        return observation

    def follow(self) -> None:
        """Let the spectator's camera follow the robot for one step; `picture` does it too."""
        from rearrange.pictures.picture import follow_camera

        self._view = follow_camera(self.sim.base_pose, self._view)

    def picture(self, marks: list[Any]) -> np.ndarray:
        """The scene from behind the robot's left shoulder, (512, 512, 3) uint8, with what a spectator shall see."""
        self.follow()
        return self.sim.picture(*self._view, marks)
