"""The embedded simulator in scenes of a Habitat data set: one robot in one scene, without Habitat.

A home comes from elsewhere than ours, and drawers and doors have no handles of their own: the cup holds one by its
front, near the middle of where its handle should be.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from rearrange.home.apartments.episodes import Episode, Marker, Pose
from rearrange.home.apartments.layouts import Layout
from rearrange.home.episodes.scene_episodes import in_terms_of
from rearrange.home.errors import UserError
from rearrange.home.geometry import matrix_quat, quat_matrix
from rearrange.home.scene_files.data_set import OUR_SCENE, SCENE_FILE
from rearrange.home.simulation.mujoco.compiled_home import CompiledHome
from rearrange.home.simulation.mujoco.simulator import MujocoSimulator, slots_for
from rearrange.home.simulation.scenes.objects import OwnObject, files_of
from rearrange.home.simulation.scenes.scene import CompiledScene, compiled_scene, data_set, load_scene, name_of
from rearrange.home.simulation.scenes.scene_layout import before_end
from rearrange.home.simulation.simulator_interface import SimulatorConfig


class SceneSimulator(MujocoSimulator):
    """One robot in one scene of a data set. mixed: episodes in our homes take place there, not in the data set."""

    home: CompiledScene | CompiledHome | None

    def __init__(self, config: SimulatorConfig, dataset: str | Path, mixed: bool = False) -> None:
        super().__init__(config)
        self._dataset, self._mixed = Path(dataset), mixed

    # ------------------------------------------------------------------ scenes

    def convert_episode(self, episode: Episode) -> Episode:
        """An episode of a file, as HAB's, in the frame of its scene's floor, and with names of joints as ours."""
        if self._is_in_home(episode):
            return episode
        name, markers = self._of(episode)
        if episode.scene == name_of(self._dataset, name):
            return episode
        return in_terms_of(load_scene(self._dataset, name, markers).home, episode)

    def refuses_unsolvable(self, episode: Episode) -> bool:
        """Whether an episode that cannot be solved is refused. One of an external scene is tried, and failed."""
        return self._is_in_home(episode)

    def layout_of(self, episode: Episode) -> Layout:
        if self._is_in_home(episode):
            return super().layout_of(episode)
        return load_scene(self._dataset, *self._of(episode)).home.layout

    def _is_in_home(self, episode: Episode) -> bool:
        return self._mixed and OUR_SCENE.fullmatch(episode.scene) is not None

    def _home_of(self, episode: Episode) -> CompiledHome:
        if self._is_in_home(episode):
            return super()._home_of(episode)
        name, markers = self._of(episode)
        files = files_of(data_set(self._dataset), episode.objects, episode.object_paths)
        if any(files):
            return compiled_scene(self._dataset, name, episode.objects, markers, files, self.robot)
        return compiled_scene(self._dataset, name, slots_for(episode.objects), markers, robot=self.robot)

    def _of(self, episode: Episode) -> tuple[str, tuple[Marker, ...]]:
        """What the data set calls the scene of an episode, and the episode's points on drawers and doors."""
        ours = OUR_SCENE.fullmatch(episode.scene)
        if ours:
            return f"{ours[1].replace('/', '_')}_{int(ours[2]):04d}", episode.markers
        return Path(episode.scene).name.removesuffix(SCENE_FILE), episode.markers

    # ------------------------------------------------------------------ drawers and doors

    def set_joint(self, name: str, value: float) -> None:
        """As in our homes; what follows it opens, too."""
        super().set_joint(name, value)
        todo = [(name, value)] if isinstance(self.home, CompiledScene) else []
        while todo:
            leader, value = todo.pop()
            for follower, terms in self.home.followers.get(leader, ()):
                opening = sum(term * value**power for power, term in enumerate(terms))
                self.data.joint(follower).qpos = opening
                todo.append((follower, opening))

    def body_frame(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """As in our homes, of its layout, not of its document."""
        if not isinstance(self.home, CompiledScene):
            return super().body_frame(name)
        body = next((body for body in self.home.layout.bodies if body.name == name), None)
        if body is None:
            known = ", ".join(self.home.handles)
            raise UserError(f"scene {self.home.layout.name} has no joint {name!r}; it has {known}.")
        x, y, yaw = body.pose(self.joint_position(name))
        c, s = math.cos(yaw), math.sin(yaw)
        return np.array((x, y, body.position_m[2])), np.array([(c, -s, 0.0), (s, c, 0.0), (0.0, 0.0, 1.0)])

    def blocked(self, start: tuple[float, float, float], end: tuple[float, float, float]) -> bool:
        """As in our homes; what the end lies on, as the front of a drawer with its handle, is not in between."""
        if not isinstance(self.home, CompiledScene):
            return super().blocked(start, end)
        before = before_end(start, end)
        return before is not None and super().blocked(start, before)

    def head_picture(self, size: int) -> np.ndarray | None:
        """As in our homes; not drawn of a scene."""
        return None if isinstance(self.home, CompiledScene) else super().head_picture(size)

    # ------------------------------------------------------------------ objects with meshes of their own

    def _own(self, i: int) -> OwnObject | None:
        return self.home.own.get(self._slots[i]) if isinstance(self.home, CompiledScene) else None

    def object_half_extents(self, i: int) -> tuple[float, float, float]:
        thing = self._own(i)
        return super().object_half_extents(i) if thing is None else tuple(((thing.high - thing.low) / 2).tolist())

    def _hanging(self, i: int) -> Pose:
        """By the middle of its top as it stands where the episode begins."""
        thing = self._own(i)
        if thing is None:
            return super()._hanging(i)
        stood = quat_matrix(np.array(self.episode.start_poses[i][3:]))
        center, half = stood @ (thing.low + thing.high) / 2, np.abs(stood) @ (thing.high - thing.low) / 2
        middle, upright = self.in_hand(half)
        return (*(middle - upright @ center).tolist(), *matrix_quat(upright @ stood).tolist())

    # ------------------------------------------------------------------ a second simulator

    def _another(self) -> SceneSimulator:
        return SceneSimulator(self.config, self._dataset, self._mixed)
