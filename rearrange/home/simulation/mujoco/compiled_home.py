"""A home compiled for MuJoCo, with the addresses that the simulator needs; the last ones used are kept per process."""

from __future__ import annotations

import copy
import ctypes
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np

from rearrange.home.apartments import segmentation
from rearrange.home.apartments.kept_layouts import layout_sources, scene_layout
from rearrange.home.apartments.layouts import Layout
from rearrange.home.apartments.objects import STANDARD_SET
from rearrange.home.kept_files import KeptFiles
from rearrange.home.robot import ROBOTS, robot_named
from rearrange.home.robot.robot import BASE_BODY, BASE_JOINTS, Robot
from rearrange.home.simulation.mujoco.build_model import compile_home, handle_part
from rearrange.home.simulation.mujoco.collision_filter import Everything, Nearness, measure
from rearrange.home.simulation.mujoco.contacts import ARM, BASE, NO_OWNER, SCENE
from rearrange.home.simulation.simulator_interface import FIRST_JOINT, NOTHING

if TYPE_CHECKING:
    from rearrange.home.pictures.meshes import MeshTable

CACHED_HOMES = 128

KEPT = KeptFiles("homes", lambda: [*layout_sources(), *Path(__file__).resolve().parent.glob("*.py")],
                 mujoco.__version__)
"""Models of the first homes of a split, with the standard set of objects, and what is measured of them: three fifths of
a first visit."""

FRONT_REACH_M = 0.15
"""Where a front has no bar, the cup holds it so near to the middle of its handle."""
THING = "thing_"  # before the name of a thing, in that of its site
_SETTLE_CHUNK = 3  # substeps between two looks whether all objects sleep
_ALMOST_ASLEEP = -2  # of MuJoCo's counters of calm substeps, which begin at -11 and put to sleep at 0
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of glibc's mallopt
_AWAY = (-50.0, -50.0, 0.0)  # base pose while objects settle


@dataclass(frozen=True, eq=False)
class CompiledHome:
    """A compiled layout with the addresses that the simulator needs, and a state in which everything is asleep."""

    robot: Robot
    layout: Layout
    objects: tuple[str, ...]  # name of each slot
    model: mujoco.MjModel
    parked: mujoco.MjData
    base_qpos: slice
    arm_qpos: slice
    coupled_qpos: np.ndarray  # (coupled,) of the joints that follow the arm's
    arm_dofs: slice
    base_ctrl: slice
    arm_ctrl: slice
    handles: tuple[str, ...]  # joints of drawers and doors
    geom_role: np.ndarray  # (ngeom,) SCENE, BASE or ARM
    object_of_geom: np.ndarray  # (ngeom,) slot or -1
    handle_of_geom: np.ndarray  # (ngeom,) index into handles or -1
    moving_of_geom: np.ndarray  # (ngeom,) FIRST_JOINT - k where it is part of the k-th drawer or door, else NOTHING
    silent_while_held: tuple[tuple[int, ...], ...]  # of each handle the geoms that touch nothing while the cup holds it
    nearness: Nearness
    handle_reach_m: tuple[float, ...] = ()  # how near to the middle of each handle the cup's tip must be to hold it
    things: tuple[str, ...] = ()  # furniture to be moved as a whole
    meshes: MeshTable | None = None  # what is drawn beside the geoms
    unseen_groups: tuple[int, ...] = ()  # of geoms that are not drawn
    spare: list = field(default_factory=list)  # of rearrange.home.simulation.mujoco.model_copy: waiting for a simulator

    def put_arm(self, qpos: np.ndarray, posture: np.ndarray) -> None:
        """Write a posture of the arm, and what follows it, into `qpos` (nq,)."""
        qpos[self.arm_qpos] = posture
        if len(self.coupled_qpos):
            qpos[self.coupled_qpos] = self.robot.arm.coupling @ posture

    def things_of_triangles(self, index_of_slot: Mapping[int, int]) -> np.ndarray:
        """Number of each triangle of `meshes` in a segmentation. index_of_slot: as in `things_of_geoms`."""
        return np.empty(0, np.int32)

    def names_of_things(self, objects: Sequence[str]) -> dict[int, str]:
        """Number -> name of what a segmentation can show, with these objects of an episode."""
        return segmentation.names_of(self.layout, objects)


@cache
def _return_arenas() -> None:
    """Let the system have back what a home that is no longer kept took.

    The arena of an MjData has 16 MB, of which one or two are ever touched. glibc takes the first such block from the
    system, and later ones from its heap, where what is freed is cut up for small things until all of it is touched:
    with 160 homes a process grew to 1.6 GB, and on. Blocks from 12 MB on stay apart with this; then it was 1.0 GB.
    """
    if "MALLOC_MMAP_THRESHOLD_" not in os.environ and (mallopt := getattr(ctypes.CDLL(None), "mallopt", None)):
        mallopt(_M_MMAP_THRESHOLD, 12 << 20)
        mallopt(_M_TRIM_THRESHOLD, 64 << 20)  # which glibc would raise by itself otherwise


@lru_cache(maxsize=CACHED_HOMES)
def load_home(scene: str, objects: tuple[str, ...] = STANDARD_SET, robot: Robot | None = None) -> CompiledHome:
    """Compile the home of a scene such as "train/17" with these objects in its slots and a robot, None for the usual
    one; the last ones are kept.
    """
    _return_arenas()
    robot, layout = robot or robot_named(), scene_layout(scene)
    made = partial(_compile, layout, objects, robot)
    is_kept = objects == STANDARD_SET and int(scene.rpartition("/")[2]) < CACHED_HOMES  # a quarter of a megabyte each
    is_kept &= robot.name in ROBOTS and robot is robot_named(robot.name, robot.hand.kind)
    name = f"{scene.replace('/', '-')}-{robot.name}-{robot.hand.kind}"
    model, nearness = KEPT.get(name, made) if is_kept else made()
    joint_names = [model.joint(i).name for i in range(model.njnt)]
    handles = tuple(name for name in joint_names if name.startswith("drawer_") or name == "fridge_door")
    bodies = {body.name: body for body in layout.bodies}
    has_bar = [handle_part(bodies[name]).solid for name in handles]
    handle_geoms = tuple(_handle_geoms(model, name, bar) for name, bar in zip(handles, has_bar))
    pads = tuple(model.geom(name).id for name in robot.hand.pads)
    trees = [int(model.body_treeid[model.body(name).id]) for name in handles]
    return CompiledHome(layout=layout, robot=robot,
                        silent_while_held=tuple(geoms if bar else pads for geoms, bar in zip(handle_geoms, has_bar)),
                        handle_reach_m=tuple(math.inf if bar else FRONT_REACH_M for bar in has_bar),
                        **addresses(model, robot, objects, handles, handle_geoms, trees, nearness))


def _handle_geoms(model: mujoco.MjModel, name: str, has_bar: bool) -> tuple[int, ...]:
    """What the cup touches to hold a drawer or door: its bar, or else anything of it."""
    if has_bar:
        return (model.geom(f"{name}_handle").id,)
    return tuple(np.flatnonzero(model.geom_bodyid == model.body(name).id).tolist())


def _compile(layout: Layout, objects: tuple[str, ...], robot: Robot) -> tuple[mujoco.MjModel, Nearness]:
    model = compile_home(layout, objects, robot)
    return model, measure(model)


def addresses(model: mujoco.MjModel, robot: Robot, objects: tuple[str, ...], handles: tuple[str, ...],
              handle_geoms: tuple[tuple[int, ...], ...], trees: list[int], nearness: Nearness) -> dict[str, Any]:
    """Fields of `CompiledHome` that follow from its model.

    Args:
        model: Of the home.
        robot: In it.
        objects: Name of the object in each slot.
        handles: Joints of drawers and doors.
        handle_geoms: Of each handle, what the cup touches when it touches it.
        trees: Kinematic trees of everything that can be opened.
        nearness: Of the model.
    """
    role, object_of = _label_geoms(model, robot)
    handle_of = np.full(model.ngeom, NO_OWNER, np.int32)
    for k, geoms in enumerate(handle_geoms):
        handle_of[list(geoms)] = k
    return dict(
        objects=objects, model=model, parked=_park(model, robot, trees),
        base_qpos=_joint_slice(model.jnt_qposadr, model, BASE_JOINTS),
        arm_qpos=_joint_slice(model.jnt_qposadr, model, robot.arm.names),
        coupled_qpos=np.array([int(model.jnt_qposadr[model.joint(name).id]) for name in robot.arm.coupled], int),
        arm_dofs=_joint_slice(model.jnt_dofadr, model, robot.arm.names),
        base_ctrl=_contiguous([model.actuator(name).id for name in BASE_JOINTS]),
        arm_ctrl=_contiguous([model.actuator(name).id for name in robot.arm.names]),
        handles=handles, geom_role=role, object_of_geom=object_of, handle_of_geom=handle_of,
        moving_of_geom=_moving(model, handles), nearness=nearness)


def _joint_slice(addresses: np.ndarray, model: mujoco.MjModel, names: tuple[str, ...]) -> slice:
    return _contiguous([int(addresses[model.joint(name).id]) for name in names])


def _contiguous(ids: list[int]) -> slice:
    if ids != list(range(ids[0], ids[0] + len(ids))):
        raise ValueError(f"addresses {ids} are not one after another")
    return slice(ids[0], ids[0] + len(ids))


def _label_geoms(model: mujoco.MjModel, robot: Robot) -> tuple[np.ndarray, np.ndarray]:
    """Role and object slot of every geom: of the robot by its body, of objects by its name."""
    root, first = model.body(BASE_BODY).id, int(model.jnt_bodyid[model.joint(robot.arm.names[0]).id])
    role_of_body = np.where(model.body_rootid == root, BASE, SCENE)
    for body in range(first, model.nbody):  # parents come first
        if body == first or role_of_body[model.body_parentid[body]] == ARM:
            role_of_body[body] = ARM
    role = role_of_body[model.geom_bodyid].astype(np.int8)
    object_of = np.full(model.ngeom, NO_OWNER, np.int32)
    for geom in range(model.ngeom):
        name = model.geom(geom).name
        if name.startswith("object_"):
            object_of[geom] = int(name.split("_")[1])  # one of several convex parts is object_3_1
    return role, object_of


def _moving(model: mujoco.MjModel, handles: tuple[str, ...]) -> np.ndarray:
    """Which drawer or door each geom belongs to, as in `Simulator.owner_image`."""
    moving = np.full(model.ngeom, NOTHING, np.int32)
    for k, name in enumerate(handles):
        moving[model.geom_bodyid == model.body(name).id] = FIRST_JOINT - k
    return moving


def put_to_rest(model: mujoco.MjModel, data: mujoco.MjData, trees: list[int], most_substeps: int,
                collision_test: Everything = Everything()) -> None:
    """Step until these free objects sleep.

    Most rest from the start. Those are told from the others by how they move in the first substeps, instead of the ten
    that MuJoCo waits. `collision_test`: of this model; what it leaves out makes this 1.17 times as fast (processor
    time of 200 resets of Pick with and without in turn).
    """
    mujoco.mj_kinematics(model, data)  # wakes what has been put somewhere
    try:
        collision_test.narrow(model.opt.timestep)
        mujoco.mj_step(model, data)
        data.tree_asleep[trees] = _ALMOST_ASLEEP
        for _ in range(0, most_substeps, _SETTLE_CHUNK):
            collision_test.widen()
            collision_test.narrow(_SETTLE_CHUNK * model.opt.timestep)
            mujoco.mj_step(model, data, nstep=_SETTLE_CHUNK)
            if (data.tree_asleep[trees] >= 0).all():
                return
    finally:
        collision_test.widen()


def _park(model: mujoco.MjModel, robot: Robot, trees: list[int]) -> mujoco.MjData:
    """A state with every object asleep where the model parks it, far outside, drawers and doors (`trees`) asleep, and
    the robot elsewhere, in its start posture.
    """
    data = mujoco.MjData(model)
    data.qpos[_joint_slice(model.jnt_qposadr, model, BASE_JOINTS)] = _AWAY
    for name, value in (*zip(robot.arm.names, robot.arm.start), *robot.arm.still.items()):
        data.qpos[model.joint(name).qposadr[0]] = value
        data.ctrl[model.actuator(name).id] = value
    for name, value in zip(robot.arm.coupled, robot.arm.coupling @ robot.arm.start):
        data.qpos[model.joint(name).qposadr[0]] = value
    put_to_rest(model, data, trees, most_substeps=30)
    data.time = 0.0
    return copy.copy(data)  # without the memory that the robot's contacts took where the model puts it, inside walls
