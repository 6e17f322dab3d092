"""What a MuJoCo home looks like: to the robot's cameras, and to a spectator."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from rearrange.home.apartments import segmentation
from rearrange.home.pictures.looks import Looks, linear_colors
from rearrange.home.pictures.photograph import photograph
from rearrange.home.pictures.raster import DepthCamera, Poses, shape_table
from rearrange.home.robot.robot import RANGE_M, Camera
from rearrange.home.simulation.mujoco.build_model import things_of_shell
from rearrange.home.simulation.mujoco.compile_kernels import FILM, compile_once
from rearrange.home.simulation.mujoco.compiled_home import CACHED_HOMES, CompiledHome
from rearrange.home.simulation.mujoco.contacts import BASE

if TYPE_CHECKING:
    import mujoco

    from rearrange.home.pictures.picture import Painter


CEILING_GROUP = 4
SPECTATOR_FOV_DEG, FADE_FRAMES = 60.0, 10


@lru_cache(maxsize=CACHED_HOMES)
def head_camera(home: CompiledHome, size: int) -> DepthCamera:
    """The head camera in a home, shared by the environments of a process (which step one after another)."""
    camera = home.robot.head
    return DepthCamera(home.model, size, camera.fov_deg, RANGE_M, hide_groups=home.unseen_groups,
                       meshes=home.meshes)


@lru_cache(maxsize=CACHED_HOMES)
def _shapes(home: CompiledHome) -> tuple[np.ndarray, np.ndarray]:
    return shape_table(home.model, home.unseen_groups)


class Photographer:
    """Takes pictures with the robot's cameras; remembers what it prepared for the home, its looks and its objects."""

    def __init__(self) -> None:
        self._home: CompiledHome | None = None
        self._index_of_slot: Mapping[int, int] | None = None
        self._looks: Looks | None = None

    def photograph(self, home: CompiledHome, data: mujoco.MjData, index_of_slot: Mapping[int, int], looks: Looks,
                   camera: Camera, pose: np.ndarray, size: int, wanted: Collection[str]) -> dict[str, np.ndarray]:
        """What a camera at `pose` sees, as `photograph`. index_of_slot: which object each slot holds."""
        shapes, halves = _shapes(home)
        if home is not self._home or index_of_slot is not self._index_of_slot:
            things = things_of_geoms(home, index_of_slot)[shapes[:, 1]]
            of_triangles = home.things_of_triangles(index_of_slot)
            self._ids = np.concatenate([things, of_triangles, [segmentation.NOTHING]]).astype(np.uint16)
            self._home, self._index_of_slot, self._looks = home, index_of_slot, None
        if looks is not self._looks:
            rgb = home.model.geom_rgba[shapes[:, 1], :3]
            rgb = rgb if home.meshes is None else np.concatenate([rgb, home.meshes.rgb])
            self._looks, self._colors = looks, linear_colors(rgb, self._ids[:-1], looks)
        meshes = None if home.meshes is None else (home.meshes, data.xpos, data.xmat)
        return photograph(wanted, (shapes, halves, data.geom_xpos, data.geom_xmat), pose, size, self._colors,
                          looks.light, self._ids, camera.fov_deg, RANGE_M, meshes=meshes)


def things_of_geoms(home: CompiledHome, index_of_slot: Mapping[int, int]) -> np.ndarray:
    """(ngeom,) numbers of `rearrange.home.apartments.segmentation`; objects that wait outside are nothing."""
    model, count, parts = home.model, len(index_of_slot), home.robot.parts
    still, bodies = segmentation.numbers_of(home.layout, count)
    still = [*(segmentation.BUILDING[thing] for thing in things_of_shell(home.layout)), *still]
    of_body = dict(zip((body.name for body in home.layout.bodies), bodies))
    things = np.full(model.ngeom, segmentation.NOTHING, np.int32)
    things[:len(still)] = still
    for geom in range(len(still), model.ngeom):
        slot, body = int(home.object_of_geom[geom]), model.body(model.geom_bodyid[geom]).name
        name = model.geom(geom).name
        if slot >= 0:
            things[geom] = segmentation.OBJECT + index_of_slot[slot] if slot in index_of_slot else segmentation.NOTHING
        elif body in of_body:
            things[geom] = of_body[body]
        else:
            of_robot = parts.get(name, parts.get(body, "base" if home.geom_role[geom] == BASE else "arm"))
            things[geom] = segmentation.ROBOT[of_robot]
    return things


class Spectator:
    """Makes pictures from outside; remembers what it prepared for the home that it painted last."""

    def __init__(self) -> None:
        self._home: CompiledHome | None = None
        self._painters: dict[tuple[int, int, float], Painter] = {}

    def picture(self, home: CompiledHome, data: mujoco.MjData, eye: np.ndarray, target: np.ndarray,
                marks: list[Any], size: tuple[int, int]) -> np.ndarray:
        """From `eye` towards `target` (world, m), with marks: (height, width, 3) uint8; size: width and height."""
        return self._painter(home, *size, SPECTATOR_FOV_DEG).render(data, eye, target, marks)

    def frame(self, home: CompiledHome, data: mujoco.MjData, eye: np.ndarray, target: np.ndarray, marks: list[Any],
              size: tuple[int, int], pose: np.ndarray, camera_size: int) -> Callable[[], tuple[np.ndarray, np.ndarray]]:
        """`picture`, and what a camera at `pose` sees, drawn alike; of now, drawn when the result is called, in any
        thread.
        """
        poses = Poses(*(values.copy() for values in Poses.of(data)))
        scene = self._painter(home, *size, SPECTATOR_FOV_DEG).later(poses, eye, target, marks)
        camera = self._painter(home, camera_size, camera_size, home.robot.wrist.fov_deg)
        return lambda: (scene(), camera.render_from(poses, pose))

    def forget(self) -> None:
        """Another episode begins: nothing fades from the last one."""
        for painter in self._painters.values():
            painter.forget()

    def _painter(self, home: CompiledHome, width: int, height: int, fov_deg: float) -> Painter:
        from rearrange.home.pictures.picture import Painter  # compiles for seconds; only videos need it
        from rearrange.home.pictures.visual_only_shapes import dressed
        from rearrange.home.simulation.mujoco.materials import materials_of

        compile_once(FILM)
        if self._home is not home:
            self._home, self._painters = home, {}
        key = (width, height, fov_deg)
        if key not in self._painters:
            self._painters[key] = Painter(
                home.model, width, height, fov_deg, hide_groups=home.unseen_groups or (CEILING_GROUP,),
                meshes=home.meshes, fade_frames=FADE_FRAMES, attached=dressed(home.model, home.robot),
                materials=materials_of(home.model, home.objects))
        return self._painters[key]
