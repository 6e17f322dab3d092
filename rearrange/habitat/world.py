"""One Habitat-Sim instance: scenes of a data set, objects that are used again, drawers and doors, the head camera."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from rearrange.errors import UserError
from rearrange.fetch import HEAD_CAMERA_FOV_DEG, HEAD_CAMERA_POSITION_M, HEAD_CAMERA_TARGET_M
from rearrange.habitat.data import HabitatData
from rearrange.habitat.driving_base import with_driving_base
from rearrange.habitat.frames import base_matrix, camera_in_base
from rearrange.habitat.need import device, need_habitat
from rearrange.home import TIMESTEP_S

FAR_M = 10.0  # range of the depth camera
SUBSTEPS = 4  # of physics in 1/30 s

_PARKING_M = (-20.0, 1.0, 20.0)  # y up; object i waits 0.5 m * i further
_APART_SUBSTEPS = 60  # until Bullet forgets that everything was made at the same place
_ROBOT_AWAY_M = (-50.0, -50.0)
_PHYSICS = {
    "physics_simulator": "bullet", "timestep": TIMESTEP_S, "gravity": [0.0, -9.81, 0.0], "friction_coefficient": 0.7,
    "restitution_coefficient": 0.0}


class World:
    """Habitat-Sim, of which everything is asked in its own frame, y up."""

    def __init__(self, data: HabitatData, nvidia: bool) -> None:
        self.habitat = need_habitat()
        data.check()
        self._robot_file, self._data = data.robot_file(), data
        self._files = tempfile.TemporaryDirectory(prefix="rearrange-habitat-")
        folder = Path(self._files.name)
        (folder / "physics_config.json").write_text(json.dumps(_PHYSICS), encoding="utf-8")
        text = self._robot_file.read_text(encoding="utf-8")
        self._urdf = folder / "fetch.urdf"
        self._urdf.write_text(with_driving_base(text, self._robot_file.parent.resolve()), encoding="utf-8")
        backend = self.habitat.SimulatorConfiguration()
        backend.scene_dataset_config_file = str(Path(data.scene_dataset).resolve())
        backend.physics_config_file = str(folder / "physics_config.json")
        backend.enable_physics, backend.requires_textures = True, True
        backend.gpu_device_id = device(data.gpu_device, nvidia)
        self._backend, self._agent = backend, self.habitat.agent.AgentConfiguration()
        self._agent.sensor_specifications = []
        self._sizes: list[int] = []
        self.simulator: Any = None
        self.scene: str | None = None

    # ------------------------------------------------------------------ scenes

    def load(self, scene: str) -> bool:
        """Load a scene, unless it is loaded; True when it was not. `scene`: name of an instance in the data set."""
        if scene == self.scene:
            return False
        self._backend.scene_id = scene
        configuration = self.habitat.Configuration(self._backend, [self._agent])
        if self.simulator is None:
            known = self.habitat.metadata.MetadataMediator(self._backend).get_scene_handles()
            if not known:
                raise UserError(f"sim.scene_dataset={self._data.scene_dataset} has no scenes.")
            self.simulator = self.habitat.Simulator(configuration)
        else:
            self.simulator.reconfigure(configuration)
        self.scene = scene
        self._pool: dict[str, list[Any]] = {}
        self._places: dict[int, int] = {}  # of an object: the number of its parking place
        articulated = self.simulator.get_articulated_object_manager()
        self.bodies = {handle: articulated.get_object_by_handle(handle) for handle in articulated.get_object_handles()}
        self.robot = articulated.add_articulated_object_from_urdf(
            str(self._urdf), fixed_base=True, intertia_from_urdf=True, force_reload=False)
        return True

    def knows(self, scene: str) -> bool:
        """Whether the data set has such a scene."""
        if self.simulator is not None:
            handles = self.simulator.metadata_mediator.get_scene_handles()
        else:
            handles = self.habitat.metadata.MetadataMediator(self._backend).get_scene_handles()
        return any(Path(handle).name.removesuffix(".scene_instance.json") == scene for handle in handles)

    def link_of(self, joint: str) -> tuple[Any, int]:
        """Articulated object and link of a joint, by the joint's or the link's name."""
        for body in self.bodies.values():
            for link in body.get_link_ids():
                if joint in (body.get_link_joint_name(link), body.get_link_name(link)):
                    return body, link
        raise UserError(f"scene {self.scene} has no joint {joint!r}.")

    # ------------------------------------------------------------------ objects

    def take_objects(self, names: tuple[str, ...]) -> list[Any]:
        """One rigid object for each name, free to move; those that are not needed wait outside.

        Objects are made once in a scene: what is made at one place stays paired in Bullet until it has moved far, and
        would keep everything awake.
        """
        free = {name: list(things) for name, things in self._pool.items()}
        missing = [name for name in names if not (free.get(name) and free[name].pop())]
        if missing:
            self._make(missing)
        free = {name: list(things) for name, things in self._pool.items()}
        taken = [free[name].pop() for name in names]
        motion = self.habitat.physics.MotionType
        for things in free.values():
            for thing in things:
                self._park(thing, motion.KINEMATIC)
        for thing in taken:
            thing.motion_type = motion.DYNAMIC
        return taken

    def _make(self, names: list[str]) -> None:
        rigid = self.simulator.get_rigid_object_manager()
        templates = self.simulator.get_object_template_manager()
        for name in names:
            handles = [handle for handle in templates.get_template_handles(name)
                       if Path(handle).name.removesuffix(".object_config.json") == name]
            if not handles:
                raise UserError(f"sim.scene_dataset={self._data.scene_dataset} has no object called {name!r}.")
            thing = rigid.add_object_by_template_handle(handles[0])
            self._pool.setdefault(name, []).append(thing)
            self._places[thing.object_id] = len(self._places)
            self._park(thing, self.habitat.physics.MotionType.DYNAMIC)
        for _ in range(_APART_SUBSTEPS):
            self.simulator.step_physics(-1)

    def _park(self, thing: Any, motion: Any) -> None:
        x, y, z = _PARKING_M
        thing.motion_type = motion
        thing.translation = self.vector(x - 0.5 * self._places[thing.object_id], y, z)

    # ------------------------------------------------------------------ physics

    def advance(self, substeps: int = SUBSTEPS) -> None:
        """So many substeps of physics."""
        for _ in range(substeps):
            self.simulator.step_physics(-1)  # -1: exactly one of the fixed substeps

    def vector(self, x: float, y: float, z: float) -> Any:
        """A vector of Magnum."""
        return self._magnum.Vector3(x, y, z)

    @property
    def _magnum(self) -> Any:
        import magnum

        return magnum

    def transform(self, rows: Any) -> Any:
        """A matrix of Magnum from rows (4, 4)."""
        magnum = self._magnum
        return magnum.Matrix4(*(magnum.Vector4(*(float(row[k]) for row in rows)) for k in range(4)))

    # ------------------------------------------------------------------ camera

    def depth_m(self, base_pose: tuple[float, float, float], size: int) -> np.ndarray:
        """What the head camera of a robot at a base pose sees: (size, size), metres along its axis, 0 where nothing is."""
        if size not in self._sizes:
            self._add_camera(size)
        place = base_matrix(*base_pose) @ _CAMERA
        self.simulator.get_agent(0).scene_node.transformation = self.transform(place)
        return self.draw()[f"depth_{size}"]

    def draw(self) -> dict[str, np.ndarray]:
        """What all cameras see."""
        return self.simulator.get_sensor_observations()

    def _add_camera(self, size: int) -> None:
        camera = self.habitat.CameraSensorSpec()
        camera.uuid, camera.sensor_type = f"depth_{size}", self.habitat.SensorType.DEPTH
        camera.resolution, camera.hfov = [size, size], HEAD_CAMERA_FOV_DEG
        camera.position = camera.orientation = self.vector(0.0, 0.0, 0.0)
        self._sizes.append(size)
        self._agent.sensor_specifications = [*self._agent.sensor_specifications, camera]
        self.simulator.add_sensor(camera)

    def close(self) -> None:
        """Free what Habitat holds."""
        if self.simulator is not None:
            self.simulator.close()
            self.simulator = self.scene = None


_CAMERA = camera_in_base(HEAD_CAMERA_POSITION_M, HEAD_CAMERA_TARGET_M)
