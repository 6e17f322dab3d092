"""Episodes that were drawn in external scenes, as Habitat-Lab reads them there.

In Habitat's frame of the scene, with its own links; handles are markers under the names of our joints. What our readers
name otherwise, or measure from elsewhere, is also kept in `info`, as in files of our homes, so that
`rearrange.home.apartments.episodes.read_episodes` gives back the very episodes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rearrange.habitat.export.episode_files import write_entries
from rearrange.habitat.export.json_files import plain
from rearrange.home.apartments.episodes import OBJECT_PATHS, OUR_FIELDS, Episode, episode_to_habitat
from rearrange.home.axis_conventions import Pose
from rearrange.home.geometry import rotate
from rearrange.home.scene_files.data_set import SCENE_FILE
from rearrange.home.simulation.mujoco.build_model import handle_part
from rearrange.home.simulation.scenes.scene import LoadedScene, load_scene


def write_external_episodes(path: Path, episodes: Iterable[Episode], dataset: Path) -> None:
    """Write episodes that were drawn in scenes of a data set to a file, *.json.gz."""
    write_entries(path, [_entry(episode, dataset) for episode in episodes])


def _entry(episode: Episode, dataset: Path) -> dict[str, Any]:
    name = episode.scene.rpartition("/")[2]
    loaded = load_scene(dataset, name)
    home, origin = loaded.home, loaded.home.origin_m

    def moved(pose: Pose) -> Pose:
        return (*(value + low for value, low in zip(pose[:3], origin)), *pose[3:])

    start = episode.robot_start
    there = replace(episode, start_poses=tuple(map(moved, episode.start_poses)), object_paths=OBJECT_PATHS,
                    targets={index: moved(goal) for index, goal in episode.targets.items()},
                    robot_start=start and (start[0] + origin[0], start[1] + origin[1], start[2]))
    states: dict[str, dict[str, float]] = {}
    for joint, value in episode.articulated.items():
        states.setdefault(home.links[joint][0], {})[str(home.numbers[joint])] = value

    def receptacles(names: tuple[str, ...]) -> list[list]:
        links = [home.layout.receptacle(receptacle).link for receptacle in names]
        return [[home.holders[receptacle], None if link is None else home.numbers[link]]
                for receptacle, link in zip(names, links)]

    ours, theirs = episode_to_habitat(episode), episode_to_habitat(there)
    theirs |= {"scene_id": f"{name}{SCENE_FILE}", "scene_dataset_config": str(dataset), "ao_states": states,
               "markers": _markers(loaded), "target_receptacles": receptacles(episode.target_receptacles),
               "goal_receptacles": receptacles(episode.goal_receptacles)}
    exact = {"rigid_objs": [[file, list(pose)] for (file, _), pose in zip(ours["rigid_objs"], episode.start_poses)],
             "targets": {handle: list(goal) for handle, goal in zip(ours["targets"], episode.targets.values())},
             "robot_start": start and list(start)}
    kept = {key: ours[key] for key in ("scene_id", "ao_states", "markers", "target_receptacles", "goal_receptacles",
                                       "additional_obj_config_paths")} | exact
    return theirs | {"info": ours["info"] | {OUR_FIELDS: kept}, "name_to_receptacle": {}}


def _markers(loaded: LoadedScene) -> list[dict[str, Any]]:
    """The middle of each handle, in the frame of its link."""
    home, markers = loaded.home, []
    frames = {(link.handle, link.name): link.frame for link in loaded.pieces.moving_links()}
    for body in home.layout.bodies:
        x, y, z = handle_part(body).center_m
        point = np.array(body.position_m) + (*rotate(x, y, body.yaw_rad), z) + home.origin_m
        offset = np.linalg.inv(frames[home.links[body.name]]) @ (*point, 1.0)
        handle, link = home.links[body.name]
        markers.append({"name": body.name, "type": "articulated_object",
                        "params": {"offset": plain(offset[:3]), "link": link, "object": handle}})
    return markers
