"""In which scene of the data set an episode takes place: one of our homes, of which everything is known, or an external scene."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rearrange.apartments.episodes import Episode, Marker
from rearrange.errors import UserError
from rearrange.external_scenes.layout import SceneHome
from rearrange.habitat.export.home_files import scene_name
from rearrange.habitat.external_scenes.layout import find_home
from rearrange.mujoco_sim.compiled_home import CompiledHome, load_home
from rearrange.mujoco_sim.simulator import slots_for

_AWAY_M = (-60.0, 0.0, 60.0)  # y up: where the robot is while a scene is looked at
_FILE = ".scene_instance.json"

Found = dict[tuple[str, tuple[Marker, ...]], SceneHome]


def is_ours(scene: str) -> bool:
    """Whether a scene is one of our homes, by its name, such as val/3."""
    return re.fullmatch(r"(train|val|test)/\d+", scene) is not None


def _in_data_set(scene: str) -> str:
    """How a data set calls the scene of an episode."""
    return scene_name(scene) if is_ours(scene) else Path(scene).name.removesuffix(_FILE)


def _advice(scene: str, there: int) -> str:
    """What to do when a scene is missing, of which so many others before it are not."""
    if not is_ours(scene):
        return "sim.episodes should be made for the data set of sim.scene_dataset"
    split = scene.partition("/")[0]
    if not there:  # it may be no data set of ours at all
        return (f"export them with rearrange scenes export split={split} count=..., or name an episode file of this data set "
                "with sim.episodes")
    fewer = f", or ask for fewer homes with sim.num_layouts={there}" if scene == f"{split}/{there}" else ""
    return f"export more with rearrange scenes export split={split} count=...{fewer}"


class Homes:
    """The homes of a data set. found: those that have been looked at, which simulators of a process share."""

    def __init__(self, world: Any, found: Found) -> None:
        self._world, self.found = world, found

    def enter(self, episode: Episode) -> tuple[CompiledHome | SceneHome, bool]:
        """Load the scene of an episode; its home, and whether the scene had to be loaded. What is held must be let go
        before. Raises UserError when the data set has no such scene.
        """
        world, ours = self._world, is_ours(episode.scene)
        name = _in_data_set(episode.scene)
        if name != world.scene and not world.knows(name):
            asked = ("export it with rearrange scenes export, ask for fewer homes with sim.num_layouts, or give the data set's own "
                     "episodes with sim.episodes" if ours else "sim.episodes should be made for the data set of sim.scene_dataset")
            raise UserError(f"the data set has no scene {name}: {asked}.")
        loaded = world.load(name, ours)
        if ours:
            return load_home(episode.scene, slots_for(episode.objects)), loaded
        key = name, episode.markers
        if key not in self.found:
            import magnum

            world.take_objects(())
            world.robot.transformation = magnum.Matrix4.translation(world.vector(*_AWAY_M))
            self.found[key] = find_home(world, self._name(name), episode.markers)
            world.robot.transformation = magnum.Matrix4.identity_init()
        return self.found[key], loaded

    def need(self, scenes: Iterable[str]) -> None:
        """Raises UserError when the data set lacks one of these scenes of episodes."""
        names: set[str] | None = None
        for there, scene in enumerate(scenes):
            names = self._world.scene_names() if names is None else names
            name = _in_data_set(scene)
            if name not in names and not self._world.knows(name):
                raise UserError(f"the data set has no scene {name}, which episodes take place in: {_advice(scene, there)}.")

    def is_converted(self, episode: Episode) -> bool:
        """Whether an episode is in our terms."""
        return is_ours(episode.scene) or episode.scene == self._name(Path(episode.scene).name)

    def _name(self, scene: str) -> str:
        """What we call an external scene."""
        return f"{self._world.data_set_name}/{scene}"
