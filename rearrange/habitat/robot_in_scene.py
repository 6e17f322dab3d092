"""A robot in a scene of a Habitat data set, one of our homes or an external one: entering it, and its world in Habitat's."""

from __future__ import annotations

from pathlib import Path

from rearrange.apartments.episodes import Episode
from rearrange.apartments.layouts import Layout
from rearrange.external_scenes.episodes import in_terms_of
from rearrange.external_scenes.layout import SceneHome
from rearrange.habitat.data import HabitatData
from rearrange.habitat.homes import Homes, is_ours
from rearrange.habitat.joints import Joints
from rearrange.habitat.robot import Fetch
from rearrange.habitat.suction import Hold
from rearrange.habitat.world import World
from rearrange.habitat_axes import to_y_up
from rearrange.mujoco_scenes.pieces import THIN_M
from rearrange.mujoco_sim.compiled_home import CompiledHome, scene_layout
from rearrange.robot_in_home import RobotInHome
from rearrange.simulator import Point, SimulatorConfig

_NO_SHIFT = (0.0, 0.0, 0.0)


class InScene(RobotInHome):
    """What does not depend on the episode: Habitat, the scene, its joints, the robot and its cup."""

    def __init__(self, config: SimulatorConfig, data: HabitatData, nvidia: bool) -> None:
        super().__init__(config)
        self.world = World(data, nvidia)
        self._homes = Homes(self.world, Path(data.scene_dataset))
        self._homes.need(data.scenes)
        self.home: CompiledHome | SceneHome | None = None

    def _enter(self, episode: Episode) -> bool:
        """Be in the home of an episode, with nothing in the hand; whether its scene had to be loaded."""
        if self.home is not None:
            self._hold.release()
        world = self.world
        home, loaded = self._homes.enter(episode)
        if loaded:
            self.robot = Fetch(world.habitat, world.robot)
            world.camera.ride_on(self.robot.base_node)
            self._hold = Hold(world.habitat, world.simulator, self.robot)
            if not isinstance(home, SceneHome):
                self.joints = Joints({name: world.link_of(name) for name in home.handles}, damped=True)
        if isinstance(home, SceneHome) and (loaded or home is not self.home):
            self.robot.stand_on(world.vector(*to_y_up(home.origin_m)))
            self.joints = Joints({name: world.link_called(handle, link) for name, (handle, link) in home.links.items()}, damped=False)
            world.let_pass(home.origin_m[2] + THIN_M)
        self.home, self._origin = home, home.origin_m if isinstance(home, SceneHome) else _NO_SHIFT
        return loaded

    def in_own_terms(self, episode: Episode) -> Episode:
        """An episode of an external scene, as HAB's, in our frame and with our names; episodes of our homes as they are."""
        if self._homes.is_converted(episode):
            return episode
        return in_terms_of(self._homes.of_scene(episode), episode)

    def layout_of(self, episode: Episode) -> Layout:
        """The layout of an episode's home, which need not be loaded."""
        if is_ours(episode.scene):
            return scene_layout(episode.scene)
        return self._homes.of_scene(episode).layout

    @property
    def _is_ours(self) -> bool:
        return self.home.layout.is_ours

    # ------------------------------------------------------------------ our world in Habitat's

    def _there(self, point: Point) -> Point:
        """A point of our world in Habitat's."""
        return to_y_up(tuple(value + low for value, low in zip(point, self._origin)))

    def _here(self, x: float, y: float, z: float) -> Point:
        """A point of Habitat's world in ours."""
        low_x, low_y, low_z = self._origin
        return x - low_x, -z - low_y, y - low_z
