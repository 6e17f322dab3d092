"""In which scene of the data set an episode takes place: one of our homes, or an external scene."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rearrange.habitat.export.home_files import scene_name
from rearrange.home.apartments.episodes import Episode
from rearrange.home.apartments.layouts import WIDE
from rearrange.home.errors import UserError
from rearrange.home.scene_files.data_set import OUR_SCENE, SCENE_FILE
from rearrange.home.simulation.mujoco.compiled_home import CompiledHome, load_home
from rearrange.home.simulation.mujoco.simulator import slots_for
from rearrange.home.simulation.scenes.scene import load_scene, name_of
from rearrange.home.simulation.scenes.scene_layout import SceneHome

_OTHER_EPISODES = "sim.episodes should be made for the data set of sim.scene_dataset"


def is_ours(scene: str) -> bool:
    """Whether a scene is one of our homes, by its name, such as val/3."""
    return OUR_SCENE.fullmatch(scene) is not None


def _in_data_set(scene: str) -> str:
    """How a data set calls the scene of an episode."""
    return scene_name(scene) if is_ours(scene) else Path(scene).name.removesuffix(SCENE_FILE)


def _advice(scene: str, there: int) -> str:
    """What to do when a scene is missing, of which so many others before it are not."""
    if not is_ours(scene):
        return _OTHER_EPISODES
    homes = scene.rpartition("/")[0]
    split = f"{homes.removeprefix(WIDE)}{' furniture=wide' if homes.startswith(WIDE) else ''}"
    if not there:  # it may be no data set of ours at all
        return (f"export them with rearrange scenes export split={split} count=..., or name an episode file of this "
                "data set with sim.episodes")
    fewer = f", or ask for fewer homes with sim.num_layouts={there}" if scene == f"{homes}/{there}" else ""
    return f"export more with rearrange scenes export split={split} count=...{fewer}"


class Homes:
    """The homes of a data set. The embedded simulator reads what an external scene is to a robot."""

    def __init__(self, world: Any, dataset: Path) -> None:
        self._world, self._dataset = world, dataset

    def enter(self, episode: Episode) -> tuple[CompiledHome | SceneHome, bool]:
        """Load the scene of an episode; what is held must be let go before.

        Returns: its home, and whether the scene had to be loaded.

        Raises: UserError when the data set has no such scene, or a file of it is missing or cannot be used. Habitat
            would not say so, or would end the process.
        """
        world, ours = self._world, is_ours(episode.scene)
        name = _in_data_set(episode.scene)
        if name != world.scene and not world.knows(name):
            advice = ("export it with rearrange scenes export, ask for fewer homes with sim.num_layouts, or give the "
                      "data set's own episodes with sim.episodes" if ours else _OTHER_EPISODES)
            raise UserError(f"the data set has no scene {name}: {advice}.")
        home = load_home(episode.scene, slots_for(episode.objects)) if ours else self.of_scene(episode)
        return home, world.load(name, ours)

    def of_scene(self, episode: Episode) -> SceneHome:
        """What the external scene of an episode is; it need not be loaded."""
        return load_scene(self._dataset, _in_data_set(episode.scene), episode.markers).home

    def need(self, scenes: Iterable[str]) -> None:
        """Raises UserError when the data set lacks one of these scenes of episodes."""
        names: Iterable[str] | None = None
        for there, scene in enumerate(scenes):
            names = self._world.scene_names() if names is None else names
            name = _in_data_set(scene)
            if name not in names and not self._world.knows(name):
                raise UserError(f"the data set has no scene {name}, which episodes take place in: "
                                f"{_advice(scene, there)}.")

    def is_converted(self, episode: Episode) -> bool:
        """Whether an episode has the frame and the names of this data set."""
        return is_ours(episode.scene) or episode.scene == name_of(self._dataset, _in_data_set(episode.scene))
