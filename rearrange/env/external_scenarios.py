"""Whole scenarios in scenes of a data set: their episodes, and which scene allows which scenario."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path

from rearrange.env.scenario_episodes import Homes, NotPossible, Scenario, scenario_episode_in
from rearrange.home.apartments.episodes import Episode
from rearrange.home.episodes.generator import SceneLacks
from rearrange.home.robot import DEFAULT
from rearrange.home.settings.environment import HomeSettings
from rearrange.home.simulation.scenes.scene_selection import generated_episode, selected
from rearrange.home.simulation.scenes.scene_simulator import SceneSimulator
from rearrange.home.simulation.simulator_interface import SimulatorConfig

MOST_SCENES = HomeSettings().num_layouts  # in which episodes are drawn unless another number is asked for
_DRAWS_TO_CHECK = 12


def external_homes(dataset: Path, split: str, scenes: str | None = None, most: int | None = None,
                   robot: str = DEFAULT, hand: str | None = None) -> Homes:
    """The scenes of a split, or those that match `scenes`, of which the first `most` are used, for a robot.

    Their episodes are the same for all simulators: they are drawn and tried in the embedded one.
    """
    called, names, layout_of = selected(dataset, split, scenes, most)
    return Homes(called, names, layout_of, lambda: _simulator(dataset, robot, hand), external=True)


def refused_scenarios(dataset: Path, scene: str, scenarios: Sequence[Scenario], robot: str = DEFAULT,
                      hand: str | None = None) -> dict[str, str]:
    """Scenario -> why its first episode cannot be drawn in a scene for a robot with a hand; None: its usual one."""
    homes, found = external_homes(dataset, "val", scene, robot=robot, hand=hand), {}
    for scenario in scenarios:
        try:
            scenario_episode_in(homes, scenario, 0, _DRAWS_TO_CHECK)
        except NotPossible as error:
            found[scenario.name] = error.why
    return found


def drawn_episodes(dataset: Path, kind: str | Scenario, split: str, scenes: str | None, count: int,
                   progress: Callable[[int], None]) -> tuple[list[Episode], list[str]]:
    """The first `count` episodes of a skill or scenario in scenes of a data set, and why some are left out."""
    episodes, left_out = [], []
    homes = external_homes(dataset, split, scenes, MOST_SCENES)
    for index in range(count):
        try:
            episodes.append(generated_episode(dataset, kind, split, scenes, MOST_SCENES, index)
                            if isinstance(kind, str) else scenario_episode_in(homes, kind, index))
        except (NotPossible, SceneLacks) as error:
            left_out.append(f"episode {index}: {error}")
        progress(index + 1)
    return episodes, left_out


@lru_cache(maxsize=1)
def _simulator(dataset: Path, robot: str, hand: str | None) -> SceneSimulator:
    """In which episodes are tried."""
    return SceneSimulator(SimulatorConfig(robot=robot, hand=hand), dataset)
