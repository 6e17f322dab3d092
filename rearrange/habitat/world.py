"""One Habitat-Sim instance: scenes of a data set, objects that are used again, drawers and doors, the head camera."""

from __future__ import annotations

import atexit
import json
import tempfile
import weakref
from pathlib import Path
from typing import Any

from rearrange.errors import UserError
from rearrange.habitat.camera import HeadCamera
from rearrange.habitat.data import HabitatData
from rearrange.habitat.driving_base import with_driving_base
from rearrange.habitat.need import device, need_habitat
from rearrange.habitat.spectator import specification
from rearrange.home import TIMESTEP_S

SUBSTEPS = 4  # of physics in 1/30 s

_PARKING_M = (-20.0, 1.0, 20.0)  # y up; object i waits 0.5 m * i further
_APART_SUBSTEPS = 60
_PHYSICS = {
    "physics_simulator": "bullet", "timestep": TIMESTEP_S, "gravity": [0.0, -9.81, 0.0], "friction_coefficient": 0.7,
    "restitution_coefficient": 0.0}

# With Habitat's default shader, of which a file alone can say that it is not wanted, light maps are computed first: ten
# seconds on a CPU.
_ROBOT = {"urdf_filepath": "fetch.urdf", "base_type": "fixed", "inertia_source": "urdf", "shader_type": "phong"}


class World:
    """Habitat-Sim, of which everything is asked in its own frame, y up."""

    def __init__(self, data: HabitatData, nvidia: bool) -> None:
        self.habitat = need_habitat()
        data.check()
        self._robot_file, self._data = data.robot_file(), data
        self._files = tempfile.TemporaryDirectory(prefix="rearrange-habitat-")
        folder = Path(self._files.name)
        self._physics = folder / "physics_config.json"
        self._physics.write_text(json.dumps(_PHYSICS), encoding="utf-8")
        text = self._robot_file.read_text(encoding="utf-8")
        (folder / "fetch.urdf").write_text(with_driving_base(text, self._robot_file.parent.resolve()), encoding="utf-8")
        self._robot = folder / "driving_fetch.ao_config.json"
        self._robot.write_text(json.dumps(_ROBOT), encoding="utf-8")
        self._device = device(data.gpu_device, nvidia)
        self.camera = HeadCamera(self.habitat)
        self.simulator: Any = None
        self.scene: str | None = None

    @property
    def data_set_name(self) -> str:
        """From the file's name: replicaCAD of replicaCAD.scene_dataset_config.json."""
        return Path(self._data.scene_dataset).name.removesuffix(".scene_dataset_config.json")

    # ------------------------------------------------------------------ scenes

    def load(self, scene: str, ours: bool = True) -> bool:
        """Load a scene, unless it is loaded; True when it was not. `scene`: name of an instance in the data set. `ours`:
        pictures of it are drawn without Habitat, which takes its time for colours.
        """
        if scene == self.scene:
            return False
        backend = self._backend()  # a new one: Habitat does nothing when it gets the one it has
        backend.scene_id = self._handle(scene) or scene
        others = [] if ours or not self._data.pictures else [specification(self.habitat)]
        configuration = self.habitat.Configuration(backend, [self.camera.agent(*others)])
        if self.simulator is None:
            self.simulator = _kept(self.habitat.Simulator(configuration))
        else:
            self.simulator.reconfigure(configuration)
        self.scene = scene
        self.camera.loaded(self.simulator)
        self._pool: dict[str, list[Any]] = {}
        self._places: dict[int, int] = {}  # of an object: the number of its parking place
        rigid = self.simulator.get_rigid_object_manager()
        self._furniture = [rigid.get_object_by_handle(handle) for handle in rigid.get_object_handles()]
        articulated = self.simulator.get_articulated_object_manager()
        self.bodies = {handle: articulated.get_object_by_handle(handle) for handle in articulated.get_object_handles()}
        self.simulator.metadata_mediator.ao_template_manager.load_configs(str(self._robot))
        self.robot = articulated.add_articulated_object_by_template_handle(str(self._robot))
        return True

    def _backend(self) -> Any:
        backend = self.habitat.SimulatorConfiguration()
        backend.scene_dataset_config_file = str(Path(self._data.scene_dataset).resolve())
        backend.physics_config_file, backend.gpu_device_id = str(self._physics), self._device
        backend.enable_physics = True
        return backend

    def knows(self, scene: str) -> bool:
        """Whether the data set has such a scene."""
        return self._handle(scene) is not None

    def _handle(self, scene: str) -> str | None:
        """How the data set calls a scene: the path of its file."""
        if self.simulator is not None:
            handles = self.simulator.metadata_mediator.get_scene_handles()
        else:
            handles = self.habitat.metadata.MetadataMediator(self._backend()).get_scene_handles()
        return next((handle for handle in handles if Path(handle).name.removesuffix(".scene_instance.json") == scene), None)

    def furniture(self) -> list[Any]:
        """The rigid objects that belong to the loaded scene, not to an episode."""
        return self._furniture

    # ------------------------------------------------------------------ rays

    def free_way(self, start: tuple[float, float, float], end: tuple[float, float, float]) -> float:
        """Which share of the straight way between two points is free of everything; 1 when all of it is."""
        way = self.vector(*(b - a for a, b in zip(start, end)))
        hits = self.simulator.cast_ray(self.habitat.geo.Ray(self.vector(*start), way), 1.0).hits
        return min((hit.ray_distance for hit in hits), default=1.0)

    def below(self, point: tuple[float, float, float], depth_m: float) -> float | None:
        """Height of what is under a point within so much; None when nothing is."""
        x, y, z = point
        free = self.free_way(point, (x, y - depth_m, z))
        return None if free >= 1.0 else y - free * depth_m

    def link_of(self, joint: str) -> tuple[Any, int]:
        """Articulated object and link of a joint, by the joint's or the link's name."""
        for body in self.bodies.values():
            for link in body.get_link_ids():
                if joint in (body.get_link_joint_name(link), body.get_link_name(link)):
                    return body, link
        raise UserError(f"scene {self.scene} has no joint {joint!r}.")

    # ------------------------------------------------------------------ objects

    def take_objects(self, names: tuple[str, ...], paths: tuple[str, ...] = ()) -> list[Any]:
        """One rigid object for each name, free to move; those that are not needed wait outside. `paths`: folders in which
        the data set's own objects are not.

        Objects are made once in a scene: what is made at one place stays paired in Bullet until it has moved far, and
        would keep everything awake.
        """
        free = {name: list(things) for name, things in self._pool.items()}
        missing = [name for name in names if not (free.get(name) and free[name].pop())]
        if missing:
            self._make(missing, paths)
        free = {name: list(things) for name, things in self._pool.items()}
        taken = [free[name].pop() for name in names]
        motion = self.habitat.physics.MotionType
        for things in free.values():
            for thing in things:
                self._park(thing, motion.KINEMATIC)
        for thing in taken:
            thing.motion_type = motion.DYNAMIC
        return taken

    def _make(self, names: list[str], paths: tuple[str, ...]) -> None:
        rigid = self.simulator.get_rigid_object_manager()
        for name in names:
            handles = self._templates(name)
            if not handles:
                for path in self._folders(paths):
                    self.simulator.get_object_template_manager().load_configs(str(path))
                handles = self._templates(name)
            if not handles:
                searched = f", nor is it in {', '.join(paths)}" if paths else ""
                raise UserError(f"sim.scene_dataset={self._data.scene_dataset} has no object called {name!r}{searched}.")
            thing = rigid.add_object_by_template_handle(handles[0])
            self._pool.setdefault(name, []).append(thing)
            self._places[thing.object_id] = len(self._places)
            self._park(thing, self.habitat.physics.MotionType.DYNAMIC)
        self.forget_pairs()

    def _templates(self, name: str) -> list[str]:
        found = self.simulator.get_object_template_manager().get_template_handles(name)
        return [handle for handle in found if Path(handle).name.removesuffix(".object_config.json") == name]

    def _folders(self, paths: tuple[str, ...]) -> list[Path]:
        """Those that are there. Habitat-Lab's paths begin where it is run; here also in a folder above the data set."""
        above = [Path.cwd(), *Path(self._data.scene_dataset).resolve().parents]
        there = ([at / path for at in above if (at / path).is_dir()] for path in paths)
        return [found[0] for found in there if found]

    def forget_pairs(self) -> None:
        """Step until Bullet no longer believes that what was made at the same place, and moved, is near each other."""
        self.advance(_APART_SUBSTEPS)

    def _park(self, thing: Any, motion: Any) -> None:
        x, y, z = _PARKING_M
        thing.motion_type = motion
        thing.translation = self.vector(x - 0.5 * self._places[thing.object_id], y, z)

    # ------------------------------------------------------------------ physics

    def advance(self, substeps: int) -> None:
        """So many substeps of physics."""
        for _ in range(substeps):
            self.simulator.step_physics(-1)  # -1: exactly one of the fixed substeps

    def contacts(self) -> list[Any]:
        """Contact points of the last substep; none when all that touches sleeps."""
        return self.simulator.get_physics_contact_points() if self.simulator.get_physics_num_active_contact_points() else []

    def vector(self, x: float, y: float, z: float) -> Any:
        """A vector of Magnum."""
        import magnum

        return magnum.Vector3(x, y, z)


_OPEN: list[weakref.ref] = []  # simulators of this process, in the order in which they were made
_FIRST: list[Any] = []


def _kept(simulator: Any) -> Any:
    """The simulator; the first of a process stays open, because all that are made later draw in its GL context, and at the
    end of the process it is closed last.
    """
    if not _FIRST:
        _FIRST.append(simulator)
        atexit.register(_close_all)
    _OPEN.append(weakref.ref(simulator))
    return simulator


def _close_all() -> None:
    for reference in reversed(_OPEN):
        simulator = reference()
        if simulator is not None:
            simulator.close(destroy=True)

