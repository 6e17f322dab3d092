"""Habitat's agent of navigation: a point on the navigation mesh of any scene, with a level camera, without physics.

Points are x, y, z (m), z up, in the frame of the scene's file (`rearrange.home.axis_conventions`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rearrange.habitat.installed import device, need_habitat
from rearrange.habitat.loading import load, one_sentence, quiet_loading
from rearrange.home.axis_conventions import Point, to_y_up, to_z_up
from rearrange.home.errors import UserError
from rearrange.home.scene_files.data_set import ENDING
from rearrange.home.scene_files.reading import need_json
from rearrange.home.scene_files.scene_data import scene_name
from rearrange.home.settings.presets import has_nvidia_device

_SAME_M = 0.01  # a navigation mesh for a radius or a height that differs by less is used as it is
_BLOCKED_M = 1e-4  # as much less than wanted counts as blocked


class Walker:
    """One agent in one Habitat-Sim, which holds one scene at a time."""

    def __init__(self, scenes: Path, radius_m: float, height_m: float, camera_height_m: float, fov_deg: float,
                 sizes: dict[str, int], gpu_device: int | None = None) -> None:
        """The simulator starts with the first scene.

        Args:
            scenes: a *.scene_dataset_config.json, or a folder in which the files of scenes lie, as Gibson's.
            radius_m, height_m: of the agent.
            camera_height_m, fov_deg: the camera's height above the floor and its angle of view, across.
            sizes: "depth" and "rgb" -> pixels on a side of the image.
            gpu_device: number of the GPU, -1 for the CPU, None for what there is.
        """
        self._habitat, self._scenes = need_habitat(), scenes.resolve()
        self._said = f"nav.scene_dataset={self._scenes}"
        if scenes.is_file() and scenes.name.endswith(ENDING):
            need_json(scenes, "nav.scene_dataset:")
        elif not scenes.is_dir():
            raise UserError(f"nav.scene_dataset={scenes} should be a file *{ENDING}, or with sim=habitat also a folder "
                            "with the files of scenes.")
        self._device = device(gpu_device, has_nvidia_device())
        self._agent = self._habitat.agent.AgentConfiguration(radius=radius_m, height=height_m)
        kinds = {"depth": self._habitat.SensorType.DEPTH, "rgb": self._habitat.SensorType.COLOR}
        self._agent.sensor_specifications = cameras = []
        for kind, size in sizes.items():
            camera = self._habitat.CameraSensorSpec()
            camera.uuid, camera.sensor_type = kind, kinds[kind]
            camera.resolution, camera.hfov, camera.position = [size, size], fov_deg, [0.0, camera_height_m, 0.0]
            cameras.append(camera)
        self._simulator: Any = None
        self._scene: str | None = None
        self.point: Point = (0.0, 0.0, 0.0)  # where the agent is; a motion ends on the mesh

    # ------------------------------------------------------------------ scenes

    def load(self, scene: str) -> bool:
        """Load the scene that an episode of Habitat names, unless it is loaded; True when it was not. UserError."""
        if scene == self._scene:
            return False
        backend = self._habitat.SimulatorConfiguration()
        backend.gpu_device_id, backend.load_semantic_mesh = self._device, False
        backend.enable_physics = True  # without, it loads no drawers and doors
        with one_sentence(f"Habitat cannot load scene {scene} of {self._said}"), quiet_loading():
            if self._scenes.is_dir():
                backend.scene_id = self._file(scene)
            else:
                backend.scene_dataset_config_file = str(self._scenes)
                backend.scene_id = self._handle(backend, scene)
            configuration = self._habitat.Configuration(backend, [self._agent])
            self._simulator = load(self._simulator, self._habitat.Simulator, configuration)
        self._scene = scene
        self._need_mesh()
        return True

    def _file(self, scene: str) -> str:
        """The file of a scene in the folder: under its whole name, as "gibson/Adrian.glb", or the end of it."""
        parts = Path(scene).parts
        for k in range(len(parts)):
            if (path := self._scenes.joinpath(*parts[k:])).is_file():
                return str(path)
        raise UserError(f"{self._said} has no file {scene} of a scene in which episodes take place.")

    def _handle(self, backend: Any, scene: str) -> str:
        """How the data set calls a scene, or the stage of that name, which is one without furniture."""
        simulator, name = self._simulator, scene_name(scene)
        metadata = simulator.metadata_mediator if simulator else self._habitat.metadata.MetadataMediator(backend)
        for handle in (*metadata.get_scene_handles(), *metadata.stage_template_manager.get_template_handles(name)):
            if scene_name(handle) == name:
                return handle
        raise UserError(f"{self._said} has no scene {name!r}, in which episodes take place.")

    @property
    def _paths(self) -> Any:
        """What knows the navigation mesh of the scene."""
        return self._simulator.pathfinder

    def _need_mesh(self) -> None:
        """The scene's own navigation mesh, where it is for an agent of this size, or else one that Habitat computes."""
        paths, radius_m, height_m = self._paths, self._agent.radius, self._agent.height
        has = paths.nav_mesh_settings if paths.is_loaded else None
        if has is not None and max(abs(has.agent_radius - radius_m), abs(has.agent_height - height_m)) < _SAME_M:
            return
        mesh = self._habitat.NavMeshSettings()
        mesh.set_defaults()
        mesh.agent_radius, mesh.agent_height, mesh.include_static_objects = radius_m, height_m, True
        if not self._simulator.recompute_navmesh(paths, mesh) or not paths.navigable_area > 0:
            raise UserError(f"scene {self._scene} of {self._said} has no floor on which an agent of radius "
                            f"{radius_m:g} m and height {height_m:g} m can be.")

    def floor(self, height_m: float, cell_m: float) -> tuple[np.ndarray, tuple[float, float]]:
        """The floor within 0.5 m of a height.

        Returns: whether a cell is free, (cells in x, cells in y) bool, and the low corner (x, y) of the first cell.
        """
        low = self._paths.get_bounds()[0]
        view = np.asarray(self._paths.get_topdown_view(cell_m, height_m))  # rows along Habitat's z, columns along its x
        return np.ascontiguousarray(view[::-1].T), (float(low[0]), -float(low[2]) - view.shape[0] * cell_m)

    # ------------------------------------------------------------------ the agent

    def nearest(self, point: Point) -> Point:
        """The nearest point of the mesh; nan where none is near."""
        return _here(self._paths.snap_point(_there(point)))

    def drive(self, dx: float, dy: float, slide: bool) -> tuple[float, bool]:
        """Drive so far (m) along the mesh: metres that were driven, and whether something was in the way."""
        before, self.point = self.point, self.driven(self.point, dx, dy, slide)
        blocked = math.dist(before[:2], self.point[:2]) < math.hypot(dx, dy) - _BLOCKED_M
        return math.dist(before, self.point), blocked

    def driven(self, point: Point, dx: float, dy: float, slide: bool) -> Point:
        """Where a motion from a point of the mesh ends."""
        move = self._paths.try_step if slide else self._paths.try_step_no_sliding
        return _here(move(_there(point), np.add(to_y_up(point), to_y_up((dx, dy, 0.0))).astype(np.float32)))

    def way(self, start: Point, goals: Sequence[Point]) -> tuple[float, np.ndarray]:
        """The shortest way along the mesh to the nearest of some goals, which are on it.

        Returns: its length (m), inf where there is none, and its corners (n, 3).
        """
        path = self._habitat.MultiGoalShortestPath()
        path.requested_start = _there(self.nearest(start))
        path.requested_ends = np.array([to_y_up(goal) for goal in goals], np.float32)
        length_m = float(path.geodesic_distance) if self._paths.find_path(path) else math.inf
        return length_m, np.array([_here(corner) for corner in path.points]).reshape(-1, 3)

    def images(self, yaw: float) -> dict[str, np.ndarray]:
        """What the cameras see, looking along `yaw` (rad).

        Returns: depth (size, size) float32, in metres, 0 where nothing was; rgb (size, size, 3) uint8.
        """
        half = (yaw - math.pi / 2) / 2  # Habitat's agent faces -z
        self._simulator.get_agent(0).set_state(self._habitat.AgentState(
            position=_there(self.point), rotation=[0.0, math.sin(half), 0.0, math.cos(half)]))
        seen = self._simulator.get_sensor_observations()
        return {kind: image[:, :, :3] if kind == "rgb" else image for kind, image in seen.items()}


def _there(point: Point) -> np.ndarray:
    """A point in Habitat's frame."""
    return np.array(to_y_up(point), np.float32)


def _here(point: Sequence[float]) -> Point:
    """A point of Habitat's, z up."""
    return to_z_up(*map(float, point))
