"""One Habitat-Sim instance: scenes of a data set, objects that are used again, drawers and doors, the cameras."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from rearrange.habitat.camera import Cameras
from rearrange.habitat.driving_base import with_driving_base
from rearrange.habitat.export.data_set import PHYSICS_SETTINGS, write_robot
from rearrange.habitat.export.object_files import write_objects
from rearrange.habitat.export.urdf import ARTICULATED
from rearrange.habitat.frames import vector
from rearrange.habitat.installed import device, need_habitat
from rearrange.habitat.loading import load, one_sentence, quiet_loading
from rearrange.habitat.temporary_folder import own_folder
from rearrange.home.apartments.kept_layouts import scene_layout
from rearrange.home.apartments.objects import OBJECTS
from rearrange.home.errors import UserError
from rearrange.home.scene_files.data_set import SCENE_FILE
from rearrange.home.scene_files.reading import need_json
from rearrange.home.scene_files.scene_data import SceneData, files_called, need_template, templates_of
from rearrange.home.scene_files.urdf import need_urdf

SUBSTEPS = 4  # of physics in 1/30 s

_OBJECT_FILE = ".object_config.json"
_PARKING_M = (-20.0, 1.0, 20.0)  # y up; object i waits 0.5 m * i further
_APART_SUBSTEPS = 60
_AGAIN = ": export or download the data set again"


class World:
    """Habitat-Sim, of which everything is asked in its own frame, y up."""

    def __init__(self, data: SceneData, nvidia: bool) -> None:
        self.habitat = need_habitat()
        data.check()
        self._data, self._device = data, device(data.gpu_device, nvidia)
        self._dataset = Path(data.scene_dataset).resolve()
        self._files = own_folder()
        self._own = folder = Path(self._files.name).resolve()
        self._robot_file = data.robot_file() or write_robot(folder)
        need_urdf(self._robot_file, f"sim.robot_urdf={data.robot_urdf or 'null'}:")
        self._physics = folder / "physics_config.json"
        self._physics.write_text(json.dumps(PHYSICS_SETTINGS), encoding="utf-8")
        text = self._robot_file.read_text(encoding="utf-8")
        urdf = folder / "fetch.urdf"
        urdf.write_text(with_driving_base(text, self._robot_file.parent.resolve()), encoding="utf-8")
        self._robot = folder / "driving_fetch.ao_config.json"
        # Whole, because Habitat would first look for a relative path where the user stands.
        self._robot.write_text(json.dumps({"urdf_filepath": str(urdf)} | ARTICULATED), encoding="utf-8")
        self.camera = Cameras(self.habitat)
        self.simulator: Any = None
        self._first_metadata: Any = None
        self.scene: str | None = None

    # ------------------------------------------------------------------ scenes

    def load(self, scene: str, ours: bool = True) -> bool:
        """Load a scene, unless it is loaded; True when it was not.

        Args:
            scene: name of an instance in the data set.
            ours: what the robot's cameras see of it is drawn without Habitat, which takes its time for colours.
        """
        if scene == self.scene:
            return False
        backend = self._backend()  # a new one: Habitat does nothing when it gets the one it has
        handle = self.scene_names().get(scene)
        if handle is not None:
            self._check_files(scene, Path(handle))
        backend.scene_id = handle or scene
        seen = () if ours else [name.removeprefix("arm_") for name in self._data.seen if name != "instruction"]
        configuration = self.habitat.Configuration(backend, [self.camera.agent(seen, self._data.camera_size)])
        said = f"Habitat cannot load scene {scene} of sim.scene_dataset={self._data.scene_dataset}"
        with one_sentence(said, _AGAIN), quiet_loading():
            self.simulator = load(self.simulator, self.habitat.Simulator, configuration)
        self.scene = scene
        self.camera.loaded(self.simulator)
        self._pool: dict[str, list[Any]] = {}
        self._places: dict[int, int] = {}  # of an object: the number of its parking place
        rigid = self.simulator.get_rigid_object_manager()
        self.furniture = [rigid.get_object_by_handle(handle) for handle in rigid.get_object_handles()]
        articulated = self.simulator.get_articulated_object_manager()
        self.bodies = {name: articulated.get_object_by_handle(name) for name in articulated.get_object_handles()}
        said = f"Habitat cannot load the robot {self._robot_file}"
        with one_sentence(said, ": sim.robot_urdf= should be the URDF of a Fetch"):
            self.simulator.metadata_mediator.ao_template_manager.load_configs(str(self._robot))
            self.robot = articulated.add_articulated_object_by_template_handle(str(self._robot))
            if self.robot is None:
                raise RuntimeError("it gives no reason")
        return True

    def _check_files(self, scene: str, handle: Path) -> None:
        """Raises UserError when a file of a scene is missing or damaged; Habitat itself would end the process."""
        metadata = self._metadata()
        managers = {"stage": metadata.stage_template_manager, "ao": metadata.ao_template_manager}
        for kind, name in templates_of(need_json(handle)):
            known = managers[kind].get_template_handles(name)
            for path in known[:1] or files_called(self._dataset.parent, name, f".{kind}_config.json"):
                need_template(Path(path))
            if not known:
                what = "stage" if kind == "stage" else "articulated object"
                raise UserError(f"scene {scene} needs the {what} {name!r}, which sim.scene_dataset="
                                f"{self._data.scene_dataset} does not have{_AGAIN}.")

    def _backend(self) -> Any:
        backend = self.habitat.SimulatorConfiguration()
        backend.scene_dataset_config_file = str(self._dataset)
        backend.physics_config_file, backend.gpu_device_id = str(self._physics), self._device
        backend.enable_physics = True
        return backend

    def scene_names(self) -> dict[str, str]:
        """Name of each scene of the data set -> how Habitat calls it: by the path of its file, of several the first."""
        handles = reversed(self._metadata().get_scene_handles())
        return {Path(handle).name.removesuffix(SCENE_FILE): handle for handle in handles}

    def knows(self, scene: str) -> bool:
        """Whether the data set has such a scene. Raises UserError when its file is damaged."""
        if scene in self.scene_names():
            return True
        for path in files_called(self._dataset.parent, f"{scene}{SCENE_FILE}", SCENE_FILE):
            if path.name == f"{scene}{SCENE_FILE}":
                need_json(path)
        return False

    def _metadata(self) -> Any:
        """What Habitat has read of the data set. Raises UserError when it does not take it."""
        if self.simulator is not None:
            return self.simulator.metadata_mediator
        if self._first_metadata is None:
            said = f"Habitat does not take sim.scene_dataset={self._data.scene_dataset}"
            with one_sentence(said, _AGAIN), quiet_loading():
                self._first_metadata = self.habitat.metadata.MetadataMediator(self._backend())
        return self._first_metadata

    def link_of(self, joint: str) -> tuple[Any, int]:
        """Articulated object and link of a joint, by the joint's or the link's name."""
        for body in self.bodies.values():
            for link in body.get_link_ids():
                if joint in (body.get_link_joint_name(link), body.get_link_name(link)):
                    return body, link
        raise UserError(f"scene {self.scene} has no joint {joint!r}.")

    def link_called(self, handle: str, name: str) -> tuple[Any, int]:
        """Articulated object and link by what both are called in an external scene."""
        body = self.bodies.get(handle)
        for link in () if body is None else body.get_link_ids():
            if body.get_link_name(link) == name:
                return body, link
        raise UserError(f"Habitat has not loaded link {name!r} of the articulated object {handle!r} of scene "
                        f"{self.scene}.")

    @property
    def stage_margin_m(self) -> float:
        """How far from a stage Bullet lets things touch it: by so much its floor is higher than what is seen."""
        return self.simulator.get_stage_initialization_template().margin

    def let_pass(self, height_m: float) -> None:
        """Let a robot drive over what ends below a height (m), as a rug, which then lies there whatever happens."""
        for thing in self.furniture:
            box, frame = thing.root_scene_node.cumulative_bb, np.array(thing.transformation)
            low, high = np.array(box.min), np.array(box.max)
            middle, half = frame[:3] @ (*(low + high) / 2, 1.0), np.abs(frame[:3, :3]) @ (high - low) / 2
            if middle[1] + half[1] < height_m:
                thing.motion_type = self.habitat.physics.MotionType.KINEMATIC  # else it would fall
                thing.collidable = False

    # ------------------------------------------------------------------ objects

    def take_objects(self, names: tuple[str, ...], paths: tuple[str, ...] = ()) -> list[Any]:
        """One rigid object for each name, free to move; those that are not needed wait outside.

        Objects are made once in a scene: what is made at one place stays paired in Bullet until it has moved far, and
        would keep everything awake.

        Args:
            names: of objects; one name several times is several objects.
            paths: folders beside the data set in which more objects are looked for.
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
            handle = self._template(name, paths)
            if Path(handle).is_file():
                need_template(Path(handle))
            thing = rigid.add_object_by_template_handle(handle)
            self._pool.setdefault(name, []).append(thing)
            self._places[thing.object_id] = len(self._places)
            self._park(thing, self.habitat.physics.MotionType.DYNAMIC)
        self.forget_pairs()

    def _template(self, name: str, paths: tuple[str, ...]) -> str:
        """How Habitat calls an object of this name: of the data set, of the folders `paths`, or a primitive of ours."""
        templates = self.simulator.get_object_template_manager()

        def known() -> str | None:
            handles = templates.get_template_handles(name)
            return next((handle for handle in handles if Path(handle).name.removesuffix(_OBJECT_FILE) == name), None)

        handle = known()
        if handle is None:
            for path in self._folders(paths):
                templates.load_configs(str(path))
            handle = known()
        if handle is None and name in OBJECTS:
            templates.load_configs(str(self._primitives()))
            handle = known()
        if handle is None:
            for path in files_called(self._dataset.parent, f"{name}{_OBJECT_FILE}", _OBJECT_FILE):
                need_template(path)
            searched = f", nor is it in {', '.join(paths)}" if paths else ""
            raise UserError(f"sim.scene_dataset={self._data.scene_dataset} has no object called {name!r}{searched}.")
        return handle

    def _primitives(self) -> Path:
        """The folder of our own objects, for names of YCB's of which there is no file."""
        folder = self._own / "objects"
        if not folder.is_dir():
            write_objects(self._own, scene_layout("val/0"))
        return folder

    def _folders(self, paths: tuple[str, ...]) -> list[Path]:
        """Those that are there. Habitat-Lab's paths begin where it is run; here also in a folder above the data set."""
        above = [Path.cwd(), *self._dataset.parents]
        there = ([at / path for at in above if (at / path).is_dir()] for path in paths)
        return [found[0] for found in there if found]

    def forget_pairs(self) -> None:
        """Step until Bullet no longer believes that what was made at the same place, and moved, is near each other."""
        self.advance(_APART_SUBSTEPS)

    def _park(self, thing: Any, motion: Any) -> None:
        x, y, z = _PARKING_M
        thing.motion_type = motion
        thing.translation = vector(x - 0.5 * self._places[thing.object_id], y, z)

    # ------------------------------------------------------------------ physics

    def advance(self, steps: int) -> None:
        """So many steps of physics, of 1/120 s each."""
        for _ in range(steps):
            self.simulator.step_physics(-1)  # -1: exactly one of the fixed steps

    def contacts(self) -> list[Any]:
        """Contact points of the last substep; none when all that touches sleeps."""
        simulator = self.simulator
        return simulator.get_physics_contact_points() if simulator.get_physics_num_active_contact_points() else []
