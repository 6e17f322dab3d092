"""Which scenes of a data set episodes are drawn in, and what of a scene they use."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np

from rearrange.home.apartments.containers import opens_far
from rearrange.home.apartments.episodes import Episode
from rearrange.home.apartments.layouts import Layout
from rearrange.home.apartments.parts import Receptacle
from rearrange.home.episodes.generator import KINDS, LOW_CLEARANCE_M, REACH_UNDER_M, SceneLacks, generate_in_scenes
from rearrange.home.errors import UserError
from rearrange.home.robot.robot import Robot
from rearrange.home.simulation.scenes.scene import data_set, load_scene, matching, name_of, short_name
from rearrange.home.simulation.scenes.scene_layout import SceneHome

# What HAB's authors train, validate and test on: whole macro layouts are held out.
_OF_REPLICA_CAD = {"train": "v3_sc[0-2]_staging_*", "val": "v3_sc3_staging_*", "test": "v3_sc4_staging_*"}
_SPLITS = ("train", "val", "test")
_REACHED_M = (0.1, 1.3)  # heights of surfaces from which the arm picks
_NOTHING = "declares no receptacle, and none is found from its shape"
EPISODES_TRIED = 8
"""Of each skill in a scene, before it is said that the skill can be learned there."""


def scenes_of(dataset: Path, split: str, wanted: str | None, setting: str = "sim.scenes") -> list[str]:
    """Names of scenes: those that match a pattern of `wanted` ("v3_sc1_*,apt_0"), which `setting` gave, else those of
    the split. Raises UserError when there are none.
    """
    names = data_set(dataset).scenes
    if wanted is not None:
        return matching(dataset, wanted, setting)
    found = _of_split(short_name(dataset), names, split)
    if not found:
        example = f", as {setting}={names[0]}" if names else ""
        raise UserError(f"{dataset} has no scene of split {split}: choose scenes with {setting}={example}.")
    return found


def _of_split(dataset: str, names: Sequence[str], split: str) -> list[str]:
    """ReplicaCAD's as HAB's authors split them; those that are called so (val_0003); else by groups.

    Scenes of a group differ only in the number at their end; where there are fewer than three groups, each scene is
    one. The last group is for tests, the one before it for validation.
    """
    if dataset.lower() == "replicacad":
        return [name for name in names if split in _OF_REPLICA_CAD and fnmatchcase(name, _OF_REPLICA_CAD[split])]
    if any(re.fullmatch(r"(train|val|test|unseen)_\d+", name) for name in names):
        return [name for name in names if re.fullmatch(rf"{split}_\d+", name)]
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(re.sub(r"_?\d+$", "", name), []).append(name)
    listed = list(groups.values()) if len(groups) >= len(_SPLITS) else [[name] for name in names]
    if len(listed) < len(_SPLITS):  # too few to hold any back
        return list(names)
    parts = {"train": listed[:-2], "val": listed[-2:-1], "test": listed[-1:]}
    return [name for group in parts.get(split, []) for name in group]


def generated_episode(dataset: Path, kind: str, split: str, wanted: str | None, most: int, index: int) -> Episode:
    """Episode `index` of a kind in the scenes of `scenes_of`, of which the first `most` are used, in turn."""
    called, scenes, layout_of = selected(dataset, split, wanted, most)  # layouts are looked at where there are objects
    return generate_in_scenes(kind, called, scenes, index, layout_of)


def selected(dataset: Path, split: str, wanted: str | None,
             most: int | None) -> tuple[str, list[str], Callable[[str], Layout]]:
    """What the first `most` scenes of `scenes_of` are called together, and in episodes, and what gives the usable
    layout of one.
    """
    def layout_of(scene: str) -> Layout:
        return usable(load_scene(dataset, scene.rpartition("/")[2]).home)

    names = scenes_of(dataset, split, wanted)[:most]
    called = f"{short_name(dataset)}/{split if wanted is None else wanted}"
    return called, [name_of(dataset, name) for name in names], layout_of


def refused(home: SceneHome, robot: Robot | None = None) -> dict[str, str]:
    """Skill -> why one of its first `EPISODES_TRIED` episodes cannot be generated in a scene for a robot; None: the
    usual one.
    """
    found: dict[str, str] = {}
    for kind in KINDS:
        try:
            for index in range(EPISODES_TRIED):
                generate_in_scenes(kind, home.layout.name, [home.layout.name], index, lambda _: usable(home, robot))
        except SceneLacks as error:
            found[kind] = error.lacking
    return found


def usable(home: SceneHome, robot: Robot | None = None) -> Layout:
    """A layout without receptacles that the arm cannot reach, or in what does not open as far as skills open it.
    robot: None for the usual one.

    What has a board close above it is a shelf, whatever it is called. Raises SceneLacks when nothing is left.
    """
    openings = {body.name: body.range_m_or_rad[1] for body in home.layout.bodies}

    low, high = _REACHED_M if robot is None else np.clip(robot.arm.heights_m, *_REACHED_M).tolist()

    def is_usable(place: Receptacle) -> bool:
        if place.name in home.shut_off:
            return False
        if place.link is not None and not opens_far(place.link, openings[place.link]):
            return False
        return place.parent is not None or low <= place.center_m[2] <= high

    def as_reached(place: Receptacle) -> Receptacle:
        under_board = place.parent is None and place.clearance_m < LOW_CLEARANCE_M
        return replace(place, kind="shelf") if under_board and place.kind not in REACH_UNDER_M else place

    kept = tuple(as_reached(place) for place in home.layout.receptacles if is_usable(place))
    if not kept:
        count = len(home.layout.receptacles)
        what = f"declares {count} receptacles, but none that the robot can reach" if count else _NOTHING
        raise SceneLacks(home.layout.name, what, "choose others with sim.scenes=")
    return replace(home.layout, receptacles=kept)
