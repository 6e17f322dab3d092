"""Habitat's agent of navigation in Habitat-Sim: a point on the navigation mesh of any scene, with a level camera, without physics.

Points are x, y, z (m), z up, in the frame of the scene's file (`rearrange.home.axis_conventions`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rearrange.habitat.installed import device, need_habitat
from rearrange.habitat.open_simulators import kept
from rearrange.habitat.silence_log import one_line, quiet_loading
from rearrange.home.axis_conventions import Point, to_y_up, to_z_up
from rearrange.home.errors import UserError
from rearrange.home.nvidia import has_nvidia_device
from rearrange.home.scene_files.reading import need_json
from rearrange.home.scene_files.scene_data import scene_name

DATA_SET, INSTANCE = ".scene_dataset_config.json", ".scene_instance.json"
_SAME_M = 0.01  # a navigation mesh for a radius or a height that differs by less is used as it is
_BLOCKED_M = 1e-4  # as much less than wanted counts as blocked


class Walker:
    """One agent in one Habitat-Sim, which holds one scene at a time.

    scenes: a *.scene_dataset_config.json, or a folder in which the files of scenes lie, as Gibson's. sizes: "depth" and "rgb" -> pixels on a
    side of the image.
    """

    def __init__(self, scenes: Path, radius_m: float, height_m: float, camera_height_m: float, fov_deg: float, sizes: dict[str, int],
                 gpu_device: int | None = None) -> None:
        self._habitat, self._scenes = need_habitat(), scenes.resolve()
        if scenes.is_file() and scenes.name.endswith(DATA_SET):
            need_json(scenes, "nav.scene_dataset:")
        elif not scenes.is_dir():
            raise UserError(f"nav.scene_dataset={scenes} should be a file *{DATA_SET}, or with sim=habitat also a folder with the files of "
                            "scenes.")
        self._device = device(gpu_device, has_nvidia_device())
        self._agent = self._habitat.agent.AgentConfiguration(radius=radius_m, height=height_m)
        self._agent.sensor_specifications = [self._camera(kind, size, camera_height_m, fov_deg) for kind, size in sizes.items()]
        self._simulator: Any = None
        self._scene: str | None = None
        self.point: Point = (0.0, 0.0, 0.0)  # where the agent is; a motion ends on the mesh

    def _camera(self, kind: str, size: int, height_m: float, fov_deg: float) -> Any:
        camera = self._habitat.CameraSensorSpec()
        camera.uuid, camera.sensor_type = kind, {"depth": self._habitat.SensorType.DEPTH, "rgb": self._habitat.SensorType.COLOR}[kind]
        camera.resolution, camera.hfov, camera.position = [size, size], fov_deg, [0.0, height_m, 0.0]
        return camera

    # ------------------------------------------------------------------ scenes

    def load(self, scene: str) -> bool:
        """Load the scene that an episode of Habitat names, unless it is loaded; True when it was not. UserError where it is not."""
        if scene == self._scene:
            return False
        backend = self._habitat.SimulatorConfiguration()
        backend.gpu_device_id, backend.load_semantic_mesh = self._device, False
        backend.enable_physics = True  # without, it loads no drawers and doors
        try:
            with quiet_loading():
                if self._scenes.is_dir():
                    backend.scene_id = self._file(scene)
                else:
                    backend.scene_dataset_config_file = str(self._scenes)
                    backend.scene_id = self._handle(backend, scene)
                configuration = self._habitat.Configuration(backend, [self._agent])
                if self._simulator is None:
                    self._simulator = kept(self._habitat.Simulator(configuration))
                else:
                    self._simulator.reconfigure(configuration)
        except (AssertionError, RuntimeError, OSError) as error:
            raise UserError(f"Habitat cannot load scene {scene} of nav.scene_dataset={self._scenes} ({one_line(error)}).") from None
        self._scene = scene
        self._need_mesh()
        return True

    def _file(self, scene: str) -> str:
        """The file of a scene in the folder: under the whole of its name, "gibson/Adrian.glb", or under the end of it."""
        parts = Path(scene).parts
        found = next((path for k in range(len(parts)) if (path := self._scenes.joinpath(*parts[k:])).is_file()), None)
        if found is None:
            raise UserError(f"nav.scene_dataset={self._scenes} has no file {scene} of a scene in which episodes take place.")
        return str(found)

    def _handle(self, backend: Any, scene: str) -> str:
        """How the data set calls a scene, or the stage of that name, which is one without furniture."""
        metadata = self._simulator.metadata_mediator if self._simulator else self._habitat.metadata.MetadataMediator(backend)
        name = scene_name(scene)
        handles = [*metadata.get_scene_handles(), *metadata.stage_template_manager.get_template_handles(name)]
        found = next((handle for handle in handles if scene_name(handle) == name), None)
        if found is None:
            raise UserError(f"nav.scene_dataset={self._scenes} has no scene {name!r}, in which episodes take place.")
        return found

    def _need_mesh(self) -> None:
        """The scene's own navigation mesh, where it is for an agent of this size, or else one that Habitat computes."""
        paths, agent = self._simulator.pathfinder, self._agent
        has = paths.nav_mesh_settings if paths.is_loaded else None
        if has is not None and abs(has.agent_radius - agent.radius) < _SAME_M and abs(has.agent_height - agent.height) < _SAME_M:
            return
        mesh = self._habitat.NavMeshSettings()
        mesh.set_defaults()
        mesh.agent_radius, mesh.agent_height, mesh.include_static_objects = agent.radius, agent.height, True
        if not self._simulator.recompute_navmesh(paths, mesh) or not paths.navigable_area > 0:
            raise UserError(f"scene {self._scene} of nav.scene_dataset={self._scenes} has no floor on which an agent of radius "
                            f"{agent.radius:g} m and height {agent.height:g} m can be.")

    def floor(self, height_m: float, cell_m: float) -> tuple[np.ndarray, tuple[float, float]]:
        """The floor within 0.5 m of a height: (cells in x, cells in y) bool, and the low corner (x, y) of the first cell."""
        paths = self._simulator.pathfinder
        low = paths.get_bounds()[0]
        view = np.asarray(paths.get_topdown_view(cell_m, height_m))  # rows along Habitat's z, columns along its x
        return np.ascontiguousarray(view[::-1].T), (float(low[0]), -float(low[2]) - view.shape[0] * cell_m)

    # ------------------------------------------------------------------ the agent

    def nearest(self, point: Point) -> Point:
        """The nearest point of the mesh; nan where none is near."""
        return to_z_up(*map(float, self._simulator.pathfinder.snap_point(np.array(to_y_up(point), np.float32))))

    def drive(self, dx: float, dy: float, slide: bool) -> tuple[float, bool]:
        """Drive so far (m) along the mesh: metres that were driven, and whether something was in the way."""
        before, self.point = self.point, self.driven(self.point, dx, dy, slide)
        return math.dist(before, self.point), math.dist(before[:2], self.point[:2]) < math.hypot(dx, dy) - _BLOCKED_M

    def driven(self, point: Point, dx: float, dy: float, slide: bool) -> Point:
        """Where a motion from a point of the mesh ends."""
        paths, start = self._simulator.pathfinder, to_y_up(point)
        move = paths.try_step if slide else paths.try_step_no_sliding
        end = move(np.array(start, np.float32), np.add(start, to_y_up((dx, dy, 0.0))).astype(np.float32))
        return to_z_up(*map(float, end))

    def way(self, start: Point, goals: Sequence[Point]) -> tuple[float, np.ndarray]:
        """The shortest way along the mesh to the nearest of some goals, which are on it: metres, inf where there is none, and its corners
        (n, 3)."""
        path = self._habitat.MultiGoalShortestPath()
        path.requested_start = np.array(to_y_up(self.nearest(start)), np.float32)
        path.requested_ends = np.array([to_y_up(goal) for goal in goals], np.float32)
        found = self._simulator.pathfinder.find_path(path)
        return (float(path.geodesic_distance) if found else math.inf), np.array([to_z_up(*map(float, p)) for p in path.points]).reshape(-1, 3)

    def images(self, yaw: float) -> dict[str, np.ndarray]:
        """What the cameras see, looking along `yaw` (rad): depth in metres, 0 where nothing was, (size, size) float32; rgb (size, size, 3)
        uint8."""
        half = (yaw - math.pi / 2) / 2  # Habitat's agent faces -z
        self._simulator.get_agent(0).set_state(self._habitat.AgentState(
            position=np.array(to_y_up(self.point), np.float32), rotation=[0.0, math.sin(half), 0.0, math.cos(half)]))
        seen = self._simulator.get_sensor_observations()
        return {kind: image[:, :, :3] if kind == "rgb" else image for kind, image in seen.items()}
