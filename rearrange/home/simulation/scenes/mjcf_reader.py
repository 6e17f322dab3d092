"""One home in MJCF, taken apart into the pieces of a scene.

What MJCF does not say is said by names: a site `receptacle_<name>` is a box over a surface, a site `handle_<joint>` a handle;
a body with "fridge" in its name is one; geoms or bodies with "floor" in theirs are the floor. A body with one hinge or slide
joint moves. What is free, as an apple, is left out: episodes bring their own objects.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np

from rearrange.home.apartments.episodes import Marker
from rearrange.home.axis_conventions import to_z_up
from rearrange.home.errors import UserError
from rearrange.home.pictures.meshes import Mesh
from rearrange.home.scene_files.urdf_elements import HINGE, SLIDE
from rearrange.home.simulation.scenes.drawers_and_doors import is_fridge
from rearrange.home.simulation.scenes.mjcf_compile import compiled
from rearrange.home.simulation.scenes.mjcf_limits import followings
from rearrange.home.simulation.scenes.mjcf_shapes import check_kind, color_of, seen_of, solid_of, texture_rgb, visible
from rearrange.home.simulation.scenes.reach import limit_leaders
from rearrange.home.simulation.scenes.receptacles import found_receptacle
from rearrange.home.simulation.scenes.scene_parts import STILL, Part, Pieces

_RECEPTACLE, _HANDLE, _FLOOR = "receptacle_", "handle_", "floor"  # in names
_FREE = (mujoco.mjtJoint.mjJNT_FREE, mujoco.mjtJoint.mjJNT_BALL)
_KINDS = {mujoco.mjtJoint.mjJNT_HINGE: HINGE, mujoco.mjtJoint.mjJNT_SLIDE: SLIDE}
_WORLD = 0


@dataclass(frozen=True)
class _Mover:
    """The joint that moves a body, and whose part it is."""

    body: int
    joint: int


class Reader:
    """Takes one file apart. Raises UserError, with the file and the reason, if it cannot be used."""

    def __init__(self, file: Path) -> None:
        self._file, self.model = file, compiled(file)
        self._data, self._textures = mujoco.MjData(self.model), texture_rgb(self.model)
        mujoco.mj_kinematics(self.model, self._data)
        parents = self.model.body_parentid.tolist()
        free = {int(self.model.jnt_bodyid[joint]) for joint in range(self.model.njnt) if int(self.model.jnt_type[joint]) in _FREE}
        self._left_out: set[int] = set()
        for body in range(1, self.model.nbody):  # a parent comes before its children
            if body in free or parents[body] in self._left_out:
                self._left_out.add(body)
        self._movers = list(self._find_movers())
        self._visible, self._collides = visible(self.model), (self.model.geom_contype | self.model.geom_conaffinity) != 0
        self._has_shapes_for_the_eye = set(self.model.geom_bodyid[self._visible & ~self._collides].tolist()) - {_WORLD}
        own = {mover.body: number for number, mover in enumerate(self._movers)}
        self._part_of = [STILL]  # of each body the number of the part that it belongs to, or STILL
        for body in range(1, self.model.nbody):
            self._part_of.append(own.get(body, self._part_of[parents[body]]))

    def pieces(self) -> Pieces:
        found, floors = Pieces(), []
        for mover in self._movers:
            found.parts.append(self._part(mover))
        self._link_followers(found)
        limit_leaders(found.parts)
        for geom in range(self.model.ngeom):
            if int(self.model.geom_bodyid[geom]) not in self._left_out:
                self._add_geom(found, geom, floors)
        found.floor = np.concatenate([found.floor, *floors])
        self._add_roots(found)
        for site in range(self.model.nsite):
            name = self.model.site(site).name
            if int(self.model.site_bodyid[site]) in self._left_out:
                continue
            if name.startswith(_RECEPTACLE):
                self._add_receptacle(found, site, name.removeprefix(_RECEPTACLE))
            elif name.startswith(_HANDLE):
                found.markers.append(self._marker(found, site, name.removeprefix(_HANDLE)))
        return found

    # ------------------------------------------------------------------ bodies

    def _fail(self, why: str) -> None:
        raise UserError(f"{self._file} cannot be used: {why}.")

    def _name(self, body: int) -> str:
        return self.model.body(body).name or f"body_{body}"

    def _above(self, body: int) -> Iterator[int]:
        """The body and those that it hangs in, without the world."""
        while body != _WORLD:
            yield body
            body = int(self.model.body_parentid[body])

    def _find_movers(self) -> Iterator[_Mover]:
        for body in sorted(set(range(1, self.model.nbody)) - self._left_out):
            first, count = int(self.model.body_jntadr[body]), int(self.model.body_jntnum[body])
            joints = [joint for joint in range(first, first + count) if int(self.model.jnt_type[joint]) in _KINDS]
            if len(joints) > 1:
                self._fail(f"body {self._name(body)!r} has {len(joints)} joints, {self.model.joint(joints[0]).name!r} and "
                           f"{self.model.joint(joints[1]).name!r}; one hinge or slide can be used: put a body between them")
            if joints:
                yield _Mover(body, joints[0])

    def _handle(self, body: int) -> str:
        """What a body that moves belongs to: the outermost with "fridge" in its name, or else the one that it hangs in."""
        fridges = [above for above in self._above(body) if above != body and is_fridge(self._name(above))]
        parent = int(self.model.body_parentid[body])
        return self._name(fridges[-1] if fridges else parent if parent != _WORLD else body)

    def _part(self, mover: _Mover) -> Part:
        """The opening is counted from how the file has the body, in the direction in which there is more of it."""
        model, body, joint = self.model, mover.body, mover.joint
        frame = _frame(self._data.xanchor[joint], self._data.xmat[body])
        axis, (low, high) = frame[:3, :3].T @ self._data.xaxis[joint], (-math.inf, math.inf)
        if model.jnt_limited[joint]:
            low, high = (model.jnt_range[joint] - model.qpos0[model.jnt_qposadr[joint]]).tolist()
            if abs(low) > abs(high):
                axis, low, high = -axis, -high, -low
        dof = int(model.jnt_dofadr[joint])
        welded = np.flatnonzero(np.array(self._part_of) == self._part_of[body])
        parent = self._part_of[int(model.body_parentid[body])]
        return Part(self._handle(body), self._name(body), parent, _KINDS[int(model.jnt_type[joint])], frame, axis, (low, high),
                    float(model.dof_damping[dof]), float(model.dof_frictionloss[dof]), float(model.body_mass[welded].sum()))

    def _link_followers(self, found: Pieces) -> None:
        """Set `follows` of the parts whose joint <equality> ties to another. Both openings are 0 in the file's pose."""
        model, number = self.model, {mover.joint: number for number, mover in enumerate(self._movers)}
        for equality in followings(model):
            follower, leader = (number.get(int(joint)) for joint in (model.eq_obj1id[equality], model.eq_obj2id[equality]))
            if follower is None or leader is None:
                continue
            names = [found.parts[part].link for part in (follower, leader)]
            if found.parts[follower].follows is not None or model.eq_data[equality][0] != 0.0:
                self._fail(f"the joint of body {names[0]!r} follows two others, or has a polycoef that does not begin with 0")
            own, other = (1.0 if self._is_along(part, found) else -1.0 for part in (follower, leader))
            terms = [own * value * other**power for power, value in enumerate(model.eq_data[equality][:5].tolist())]
            found.parts[follower].follows = leader, tuple(terms)
        for part in range(len(found.parts)):
            seen, above = {part}, found.parts[part].follows
            while above is not None and above[0] not in seen:
                seen.add(above[0])
                above = found.parts[above[0]].follows
            if above is not None:
                self._fail(f"the joint of body {found.parts[part].link!r} follows itself in <equality>")

    def _is_along(self, number: int, found: Pieces) -> bool:
        """Whether a part opens in the direction in which its joint's value grows."""
        axis = found.parts[number].frame[:3, :3] @ found.parts[number].axis
        return float(axis @ self._data.xaxis[self._movers[number].joint]) > 0.0

    def _add_roots(self, found: Pieces) -> None:
        """(4, 4) of each handle: axes of its body, in the middle of what stands still of it."""
        model = self.model
        named = {self._name(body): body for body in range(model.nbody - 1, _WORLD, -1)}
        handles = {named[part.handle]: part.handle for part in found.parts}
        inside, spans = [False] * model.nbody, [np.array(((math.inf,) * 3, (-math.inf,) * 3)) for _ in range(model.nbody)]
        for body in range(1, model.nbody):  # a parent comes before its children
            inside[body] = self._part_of[body] == STILL and (body in handles or inside[int(model.body_parentid[body])])
        for geom, body in enumerate(model.geom_bodyid.tolist()):
            if inside[body] and body not in self._left_out and (solid := self._solid(geom)) is not None:
                _widen(spans[body], solid.corners())
        for body in range(model.nbody - 1, _WORLD, -1):
            if inside[body]:
                _widen(spans[int(model.body_parentid[body])], spans[body])
        for body, handle in handles.items():
            frame = found.roots[handle] = _frame(self._data.xpos[body], self._data.xmat[body])
            if np.isfinite(spans[body]).all():
                frame[:2, 3] = spans[body].mean(axis=0)[:2]

    # ------------------------------------------------------------------ geoms

    def _solid(self, geom: int):
        return solid_of(self.model, geom, _frame(self._data.geom_xpos[geom], self._data.geom_xmat[geom]), str(self._file))

    def _add_geom(self, found: Pieces, geom: int, floors: list[np.ndarray]) -> None:
        """Put a geom where it belongs, and the level triangles of a floor to `floors`."""
        model, body = self.model, int(self.model.geom_bodyid[geom])
        number = self._part_of[body]
        frame = _frame(self._data.geom_xpos[geom], self._data.geom_xmat[geom])
        to_part = np.eye(4) if number == STILL else np.linalg.inv(found.parts[number].frame)
        is_floor = number == STILL and (_FLOOR in f"{model.geom(geom).name} {self._name(body) if body else ''}".lower()
                                        or model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_PLANE)
        if self._is_seen(geom) or is_floor:
            check_kind(model, geom, str(self._file))
            vertices, triangles = seen_of(model, geom)
            color = color_of(model, geom, self._textures)
            local = to_part @ frame
            placed = vertices @ local[:3, :3].T + local[:3, 3]
            if self._is_seen(geom):
                found.meshes.append(Mesh(number, placed, triangles, lambda rgb=color: rgb, body))
                if body != _WORLD:
                    found.owners[body] = self._name(body)
            if is_floor:
                corners = placed[triangles]
                normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
                floors.append(corners[normals[:, 2] > 0.9 * np.linalg.norm(normals, axis=1)])
        if self._collides[geom] and (solid := self._solid(geom)) is not None:
            solids = found.parts[number].solids if number != STILL else found.walls if is_floor else found.solids
            solids.append(solid.moved(to_part))

    def _is_seen(self, geom: int) -> bool:
        """What is visible; of a body that has shapes for the eye alone, those."""
        for_the_eye = int(self.model.geom_bodyid[geom]) in self._has_shapes_for_the_eye
        return bool(self._visible[geom] and not (for_the_eye and self._collides[geom]))

    # ------------------------------------------------------------------ sites

    def _add_receptacle(self, found: Pieces, site: int, name: str) -> None:
        if self.model.site_type[site] != mujoco.mjtGeom.mjGEOM_BOX:
            self._fail(f"site {_RECEPTACLE}{name} should be a box over the surface: type=\"box\" with half sizes")
        body = int(self.model.site_bodyid[site])
        number = self._part_of[body]
        handle, link = (found.parts[number].handle, found.parts[number].link) if number != STILL else \
            (self._name(body) if body != _WORLD else None, None)
        frame = _frame(self._data.site_xpos[site], self._data.site_xmat[site])
        found.receptacles.append(found_receptacle(name, handle, link, np.zeros(3), self.model.site_size[site].copy(), frame))

    def _marker(self, found: Pieces, site: int, joint: str) -> Marker:
        number = next((k for k, mover in enumerate(self._movers) if self.model.joint(mover.joint).name == joint), None)
        if number is None:
            self._fail(f"site {_HANDLE}{joint} is the handle of a hinge or slide joint {joint!r}, which there is not")
        if self._part_of[int(self.model.site_bodyid[site])] != number:
            self._fail(f"site {_HANDLE}{joint} should be in the body that joint {joint!r} moves, {found.parts[number].link!r}")
        local = np.linalg.inv(found.parts[number].frame) @ (*self._data.site_xpos[site], 1.0)
        return Marker(f"{_HANDLE}{joint}", found.parts[number].handle, found.parts[number].link, to_z_up(*local[:3].tolist()))


def _widen(span: np.ndarray, points: np.ndarray) -> None:
    """Make room in a span, (2, 3), least and greatest corner, for points (n, 3)."""
    span[0], span[1] = np.minimum(span[0], points.min(axis=0)), np.maximum(span[1], points.max(axis=0))


def _frame(position: np.ndarray, turn: np.ndarray) -> np.ndarray:
    """(4, 4) of a position (3,) and a rotation matrix (9,)."""
    frame = np.eye(4)
    frame[:3, :3], frame[:3, 3] = turn.reshape(3, 3), position
    return frame
