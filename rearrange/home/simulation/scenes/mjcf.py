"""Homes in MuJoCo's own XML (MJCF): a folder of files, or one file; each is a scene."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import mujoco

from rearrange.home.errors import UserError
from rearrange.home.scene_files.data_set import Figures
from rearrange.home.scene_files.reading import scene_bytes
from rearrange.home.scene_files.urdf_elements import HINGE, SLIDE
from rearrange.home.simulation.scenes.mjcf_compile import compiled
from rearrange.home.simulation.scenes.mjcf_reader import Reader, followings
from rearrange.home.simulation.scenes.scene_parts import FREE, MOST_DAMPING, Pieces, check_size

ENDING = ".xml"


def is_mjcf(path: Path) -> bool:
    """Whether a path is read as homes in MJCF: a folder, or a file *.xml."""
    return path.is_dir() or path.suffix == ENDING


class MjcfHomes:
    """A folder, of which every file *.xml with a <worldbody> or an <include> is a scene, or one such file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.exists():
            raise UserError(f"{path} does not exist; it should be a folder of MuJoCo XML files, or one of them.")
        files = sorted(path.glob(f"*{ENDING}")) if path.is_dir() else [path]
        self._files = {file.name.removesuffix(ENDING): file for file in files if _is_scene(file)}
        if not self._files:
            raise UserError(f"{path} has no MuJoCo XML file with a <worldbody>; a scene is a file *.xml; of a Habitat "
                            "data set, name its *.scene_dataset_config.json.")

    @property
    def scenes(self) -> list[str]:
        """Names of all scenes, in order."""
        return list(self._files)

    def object_file(self, name: str) -> None:
        """There are no objects with meshes of their own: those that stand in a scene belong to it."""

    def pieces(self, name: str) -> Pieces:
        """What a scene consists of. Raises UserError, with the file and the reason, if it cannot be used."""
        if name not in self._files:
            raise UserError(f"{self.path} has no scene {name!r}; it has {', '.join(self.scenes[:5])}"
                            f"{', ...' if len(self.scenes) > 5 else ''}.")
        pieces = Reader(self._files[name]).pieces()
        check_size(pieces, name)
        return pieces

    def figures(self, name: str) -> tuple[Figures | None, list[str]]:
        """What is in a scene, or a sentence on why it cannot be used."""
        try:
            reader = Reader(self._files[name])
            pieces = reader.pieces()
        except UserError as error:
            return None, [str(error)]
        kinds = [part.kind for part in pieces.parts]
        free = int((reader.model.jnt_type == mujoco.mjtJoint.mjJNT_FREE).sum()) - kinds.count(FREE)
        solids = [*pieces.solids, *pieces.walls, *(solid for part in pieces.parts for solid in part.solids)]
        return Figures(free, free, len({part.handle for part in pieces.parts}), kinds.count(SLIDE), kinds.count(HINGE),
                       len(pieces.receptacles), sum(len(mesh.triangles) for mesh in pieces.meshes),
                       sum(solid.kind == "hull" for solid in solids)), []

    def unused(self, name: str) -> list[str]:
        """What a scene's file says and nobody here reads."""
        model = compiled(self._files[name])
        bare = mujoco.MjModel.from_xml_string("<mujoco><worldbody><geom size='1'/></worldbody></mujoco>")
        tied = int((model.eq_active0 != 0).sum()) - len(followings(model))
        rubbed = any((getattr(model, name) != getattr(bare, name)[0]).any()
                     for name in ("geom_friction", "geom_solref", "geom_solimp", "geom_condim", "geom_margin"))
        has = {"<actuator>": model.nu, "<tendon>": model.ntendon, "<keyframe>": model.nkey,
               "<contact> of pairs": model.npair + model.nexclude, "<equality> other than joint to joint": tied,
               "stiffness of a joint": (model.jnt_stiffness != 0.0).any(), "friction and softness of geoms": rubbed,
               "pictures of textures (their mean colour is)": (model.mat_texid >= 0).any(),
               "damping of a joint above what a hand overcomes": any(
                   part.damping > MOST_DAMPING[part.kind] for part in self.pieces(name).parts if part.kind != FREE),
               "gravity and wind of <option>": (model.opt.gravity != bare.opt.gravity).any() or model.opt.wind.any()}
        return [what for what, there in has.items() if there]


def _is_scene(file: Path) -> bool:
    """A file that is damaged counts as one: why it cannot be used is told when it is read."""
    try:
        root = ElementTree.fromstring(scene_bytes(file))
    except (ValueError, LookupError, ElementTree.ParseError):
        return True
    return root.tag == "mujoco" and any(child.tag in ("worldbody", "include") for child in root)
