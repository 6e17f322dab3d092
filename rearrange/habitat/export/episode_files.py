"""Episodes as habitat-lab reads them, for the homes of an exported data set.

Habitat knows drawers and doors by the number of their link, and finds handles by markers. The stock tasks of
habitat-lab use `cab_push_point_5` and `fridge_push_point`: the former is the drawer that the episode is about; every
joint is also a marker under its own name. The fields that name things otherwise than our homes do are also kept in
`info`, as ours, so that `rearrange.home.apartments.episodes.read_episodes` gives back the very episodes.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from rearrange.env.scenario_episodes import Scenario, scenario_episode
from rearrange.habitat.export.home_files import BODIES, HomeFiles
from rearrange.habitat.export.json_files import plain
from rearrange.home.apartments.containers import kind_of
from rearrange.home.apartments.episodes import OUR_FIELDS, Episode, episode_to_habitat
from rearrange.home.apartments.kept_layouts import scene_layout
from rearrange.home.episodes.generator import KINDS, generate_episode
from rearrange.home.errors import UserError
from rearrange.home.settings import presets

HANDLE = {kind: f"{body}_:0000" for kind, body in BODIES.items()}
"""Kind of joint -> how Habitat calls the articulated object in a scene."""
_DRAWERS = [f"cab_push_point_{number}" for number in (5, 7, 6, 4, 8, 9, 10, 11)]
"""Markers of habitat-lab's: the first is of the drawer that an episode is about."""


def episodes_of(kind: str, split: str, count: int, homes: int,
                scenario_called: Callable[[str], Scenario]) -> Iterator[Episode]:
    """The first `count` episodes of a skill or scenario in the first `homes` homes of a split.

    Of a scenario that none of these homes allows there are fewer. `scenario_called` gives a scenario by its name.
    """
    if kind in KINDS:
        yield from (generate_episode(kind, split, index, homes) for index in range(count))
        return
    scenario = scenario_called(kind)
    for index in range(count):
        try:
            yield scenario_episode(scenario, split, index, homes)
        except UserError as error:
            print(f"  left out {kind}/{split}/{index}: {error}")


def kinds() -> tuple[str, ...]:
    """What there are episodes of: the skills, then the scenarios."""
    return (*KINDS, *presets.names("hab"))


def write_habitat_episodes(path: Path, episodes: list[Episode], homes: dict[str, HomeFiles], data_set: str) -> None:
    """An episode file for habitat-lab.

    Args:
        path: the file, *.json.gz.
        episodes: in our homes.
        homes: what was written of each, by our name of the scene.
        data_set: path of its configuration, as habitat-lab shall open it.
    """
    write_entries(path, [_entry(episode, homes[episode.scene], data_set) for episode in episodes])


def write_entries(path: Path, entries: list[dict]) -> None:
    """A file of episodes from its entries, whole or not at all; the same entries give the same bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        partial.write_bytes(gzip.compress(json.dumps({"config": None, "episodes": entries}).encode(), mtime=0))
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _entry(episode: Episode, home: HomeFiles, data_set: str) -> dict:
    states: dict[str, dict[str, float]] = {}
    for joint, value in episode.articulated.items():
        states.setdefault(HANDLE[kind_of(joint)], {})[str(home.links[joint])] = value
    ours = episode_to_habitat(episode)
    theirs = {
        "scene_id": f"{home.name}.scene_instance.json", "scene_dataset_config": data_set,
        "additional_obj_config_paths": [],
        "ao_states": states, "markers": _markers(episode, home),
        "target_receptacles": [_receptacle(episode.scene, name, home) for name in episode.target_receptacles],
        "goal_receptacles": [_receptacle(episode.scene, name, home) for name in episode.goal_receptacles]}
    info = ours["info"] | {OUR_FIELDS: {key: ours[key] for key in theirs}}
    return ours | theirs | {"info": info, "name_to_receptacle": {}}


def _receptacle(scene: str, name: str, home: HomeFiles) -> list:
    """[articulated object, link] of what is inside one, [name, null] of a surface of the stage."""
    link = scene_layout(scene).receptacle(name).link
    return [f"stage|receptacle_aabb_{name}", None] if link is None else [HANDLE[kind_of(link)], home.links[link]]


def _markers(episode: Episode, home: HomeFiles) -> list[dict]:
    """Every joint under its own name and under the one that habitat-lab's tasks and PDDL domain know."""
    layout = scene_layout(episode.scene)
    used = [layout.receptacle(name).link for name in (*episode.target_receptacles, *episode.goal_receptacles)]
    drawers = sorted((joint for joint in home.links if kind_of(joint) == "drawer"), key=lambda joint: joint not in used)
    doors = [joint for joint in home.links if joint not in drawers]
    stock = dict(zip(drawers, _DRAWERS)) | dict.fromkeys(doors, "fridge_push_point")
    return [
        {"name": name, "type": "articulated_object",
         "params": {"offset": plain(home.handles[joint]), "link": joint, "object": HANDLE[kind_of(joint)]}}
        for joint in home.links for name in (stock[joint], joint)]
