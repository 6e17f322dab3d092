"""One home in MJCF, taken apart into the pieces of a scene.

What MJCF does not say is said by names: a site `receptacle_<name>` is a box over a surface, a site `handle_<joint>` a
handle; a body with "fridge" in its name is one; geoms or bodies with "floor" in theirs are the floor. A body with one
hinge or slide joint moves. A site `thing_<name>` marks a body on a free or hinge joint as a thing to be moved, as a
chair. What else is free, as an apple, is left out: episodes bring their own objects.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import mujoco
import numpy as np

from rearrange.home.apartments.episodes import Marker
from rearrange.home.axis_conventions import to_z_up
from rearrange.home.pictures.meshes import Mesh
from rearrange.home.scene_files.surfaces import moved, transform, upward
from rearrange.home.scene_files.urdf_elements import HINGE, SLIDE
from rearrange.home.simulation.mujoco.compiled_home import THING
from rearrange.home.simulation.scenes.convex_parts import Solid
from rearrange.home.simulation.scenes.drawers_and_doors import found_receptacle, is_fridge
from rearrange.home.simulation.scenes.floor import ground_around
from rearrange.home.simulation.scenes.mjcf_compile import compiled, fail
from rearrange.home.simulation.scenes.mjcf_shapes import (
    check_kind,
    color_of,
    is_endless,
    seen_of,
    solid_of,
    texture_rgb,
    visible,
)
from rearrange.home.simulation.scenes.reach import limit_leaders
from rearrange.home.simulation.scenes.scene_parts import FREE, STILL, Part, Pieces, Standing

_RECEPTACLE, _HANDLE, _FLOOR = "receptacle_", "handle_", "floor"  # in names
_FREE = (mujoco.mjtJoint.mjJNT_FREE, mujoco.mjtJoint.mjJNT_BALL)
_KINDS = {mujoco.mjtJoint.mjJNT_HINGE: HINGE, mujoco.mjtJoint.mjJNT_SLIDE: SLIDE, mujoco.mjtJoint.mjJNT_FREE: FREE}
_WORLD = 0


def followings(model: mujoco.MjModel) -> list[int]:
    """Numbers of the constraints by which one joint follows another."""
    kinds = (model.eq_type == mujoco.mjtEq.mjEQ_JOINT) & (model.eq_active0 != 0) & (model.eq_obj2id >= 0)
    return np.flatnonzero(kinds).tolist()


class Reader:
    """Takes one file apart. Raises UserError, with the file and the reason, if it cannot be used."""

    def __init__(self, file: Path) -> None:
        self._file, self.model = file, compiled(file)
        self._data, self._textures = mujoco.MjData(self.model), texture_rgb(self.model)
        mujoco.mj_kinematics(self.model, self._data)
        parents = self.model.body_parentid.tolist()
        marked = {body for site in self._marks() for body in self._above(int(self.model.site_bodyid[site]))}
        free = set(self.model.jnt_bodyid[np.isin(self.model.jnt_type, _FREE)].tolist()) - marked
        self._left_out: set[int] = set()
        for body in range(1, self.model.nbody):  # a parent comes before its children
            if body in free or parents[body] in self._left_out:
                self._left_out.add(body)
        self._joints = list(self._moving_joints())  # of each part
        self._visible = visible(self.model)
        self._collides = (self.model.geom_contype | self.model.geom_conaffinity) != 0
        self._has_shapes_for_the_eye = set(self.model.geom_bodyid[self._visible & ~self._collides].tolist()) - {_WORLD}
        own = {int(self.model.jnt_bodyid[joint]): number for number, joint in enumerate(self._joints)}
        self._part_of = [STILL]  # of each body the number of the part that it belongs to, or STILL
        for body in range(1, self.model.nbody):
            self._part_of.append(own.get(body, self._part_of[parents[body]]))

    def pieces(self) -> Pieces:
        found, floors = Pieces(parts=[self._part(joint) for joint in self._joints]), []
        for site in self._marks():
            self._mark(found, site)
        self._link_followers(found)
        limit_leaders(found.parts)
        self._endless: list[float] = []  # heights of planes without an end
        self._standing = {body: Standing(self._name(body) if body != _WORLD else None)
                          for body in range(self.model.nbody) if self._part_of[body] == STILL}
        for geom in range(self.model.ngeom):
            if int(self.model.geom_bodyid[geom]) not in self._left_out:
                self._add_geom(found, geom, floors)
        floors += [ground_around((*found.walls, *found.solids), height) for height in self._endless]
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
        self._tell_declaring(found)
        found.standing = list(self._standing.values())
        return found

    # ------------------------------------------------------------------ bodies

    def _name(self, body: int) -> str:
        return self.model.body(body).name or f"body_{body}"

    def _above(self, body: int) -> Iterator[int]:
        """The body and those that it hangs in, without the world."""
        while body != _WORLD:
            yield body
            body = int(self.model.body_parentid[body])

    def _marks(self) -> Iterator[int]:
        """The sites of things to be moved."""
        yield from (site for site in range(self.model.nsite) if self.model.site(site).name.startswith(THING))

    def _mark(self, found: Pieces, site: int) -> None:
        name, body = self.model.site(site).name, int(self.model.site_bodyid[site])
        number = self._part_of[body]
        kind = None if number == STILL else found.parts[number].kind
        if kind not in (FREE, HINGE):
            fail(self._file, f"site {name} should be in a body with a free or a hinge joint, or in one fixed to it")
        frame = transform(self._data.site_xmat[site], self._data.site_xpos[site])
        found.parts[number].things[name.removeprefix(THING)] = np.linalg.inv(found.parts[number].frame) @ frame

    def _moving_joints(self) -> Iterator[int]:
        """The joint of each body that moves, in the order of the bodies."""
        for body in sorted(set(range(1, self.model.nbody)) - self._left_out):
            first, count = int(self.model.body_jntadr[body]), int(self.model.body_jntnum[body])
            joints = [joint for joint in range(first, first + count) if int(self.model.jnt_type[joint]) in _KINDS]
            if len(joints) > 1:
                names = " and ".join(repr(self.model.joint(joint).name) for joint in joints[:2])
                fail(self._file, f"body {self._name(body)!r} has {len(joints)} joints, {names}; "
                                 "one hinge or slide can be used: put a body between them")
            yield from joints

    def _handle(self, body: int) -> str:
        """What a body that moves belongs to: the outermost with "fridge" in its name, or else its parent."""
        fridges = [above for above in self._above(body) if above != body and is_fridge(self._name(above))]
        parent = int(self.model.body_parentid[body])
        return self._name(fridges[-1] if fridges else parent if parent != _WORLD else body)

    def _part(self, joint: int) -> Part:
        """The opening is counted from how the file has the body, in the direction in which there is more of it."""
        model, body = self.model, int(self.model.jnt_bodyid[joint])
        frame = transform(self._data.xmat[body], self._data.xanchor[joint])
        axis, (low, high) = frame[:3, :3].T @ self._data.xaxis[joint], (-math.inf, math.inf)
        if model.jnt_limited[joint]:
            low, high = (model.jnt_range[joint] - model.qpos0[model.jnt_qposadr[joint]]).tolist()
            if abs(low) > abs(high):
                axis, low, high = -axis, -high, -low
        if _KINDS[int(model.jnt_type[joint])] == FREE:
            frame = transform(self._data.xmat[body], self._data.xpos[body])
        dof = int(model.jnt_dofadr[joint])
        welded = np.flatnonzero(np.array(self._part_of) == self._part_of[body])
        parent = self._part_of[int(model.body_parentid[body])]
        return Part(self._handle(body), self._name(body), parent, _KINDS[int(model.jnt_type[joint])], frame, axis,
                    (low, high), float(model.dof_damping[dof]), float(model.dof_frictionloss[dof]),
                    float(model.body_mass[welded].sum()))

    def _link_followers(self, found: Pieces) -> None:
        """Set `follows` of the parts whose joint <equality> ties to another. Both openings are 0 in the file's pose."""
        model, number = self.model, {joint: number for number, joint in enumerate(self._joints)}
        for equality in followings(model):
            follower, leader = (number.get(int(joints[equality])) for joints in (model.eq_obj1id, model.eq_obj2id))
            if follower is None or leader is None:
                continue
            if found.parts[follower].follows is not None or model.eq_data[equality][0] != 0.0:
                fail(self._file, f"the joint of body {found.parts[follower].link!r} follows two others, or has a "
                                 "polycoef that does not begin with 0")
            own, other = (1.0 if self._is_along(part, found) else -1.0 for part in (follower, leader))
            terms = [own * value * other**power for power, value in enumerate(model.eq_data[equality][:5].tolist())]
            found.parts[follower].follows = leader, tuple(terms)
        for part in range(len(found.parts)):
            seen, above = {part}, found.parts[part].follows
            while above is not None and above[0] not in seen:
                seen.add(above[0])
                above = found.parts[above[0]].follows
            if above is not None:
                fail(self._file, f"the joint of body {found.parts[part].link!r} follows itself in <equality>")

    def _is_along(self, number: int, found: Pieces) -> bool:
        """Whether a part opens in the direction in which its joint's value grows."""
        axis = found.parts[number].frame[:3, :3] @ found.parts[number].axis
        return float(axis @ self._data.xaxis[self._joints[number]]) > 0.0

    def _add_roots(self, found: Pieces) -> None:
        """(4, 4) of each handle: axes of its body, in the middle of what stands still of it."""
        model = self.model
        named = {self._name(body): body for body in range(model.nbody - 1, _WORLD, -1)}
        handles = {named[part.handle]: part.handle for part in found.parts}
        inside, spans = [False] * model.nbody, np.full((model.nbody, 2, 3), ((math.inf,), (-math.inf,)))
        for body in range(1, model.nbody):  # a parent comes before its children
            inside[body] = self._part_of[body] == STILL and (body in handles or inside[int(model.body_parentid[body])])
        for geom, body in enumerate(model.geom_bodyid.tolist()):
            if inside[body] and body not in self._left_out and (solid := self._solid(geom)) is not None:
                _widen(spans[body], solid.corners())
        for body in range(model.nbody - 1, _WORLD, -1):
            if inside[body]:
                _widen(spans[int(model.body_parentid[body])], spans[body])
        for body, handle in handles.items():
            frame = found.roots[handle] = transform(self._data.xmat[body], self._data.xpos[body])
            if np.isfinite(spans[body]).all():
                frame[:2, 3] = spans[body].mean(axis=0)[:2]

    # ------------------------------------------------------------------ geoms

    def _solid(self, geom: int) -> Solid | None:
        return solid_of(self.model, geom, self._frame(geom), self._file)

    def _frame(self, geom: int) -> np.ndarray:
        return transform(self._data.geom_xmat[geom], self._data.geom_xpos[geom])

    def _add_geom(self, found: Pieces, geom: int, floors: list[np.ndarray]) -> None:
        """Put a geom where it belongs, and the level triangles of a floor to `floors`."""
        model, body = self.model, int(self.model.geom_bodyid[geom])
        number = self._part_of[body]
        to_part = np.eye(4) if number == STILL else np.linalg.inv(found.parts[number].frame)
        is_floor = number == STILL and (_FLOOR in f"{model.geom(geom).name} {self._name(body) if body else ''}".lower()
                                        or model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_PLANE)
        if self._is_seen(geom) or is_floor:
            check_kind(model, geom, self._file)
            vertices, triangles = seen_of(model, geom)
            color = color_of(model, geom, self._textures)
            placed = moved(vertices, to_part @ self._frame(geom))
            if self._is_seen(geom):
                found.meshes.append(Mesh(number, placed, triangles, lambda rgb=color: rgb, body))
                if body != _WORLD:
                    found.owners[body] = self._name(body)
            if is_floor and is_endless(model, geom):
                self._endless += upward(placed[triangles])[:1, :, 2].mean(axis=1).tolist()
            elif is_floor:
                floors.append(upward(placed[triangles]))
        if self._collides[geom] and (solid := self._solid(geom)) is not None:
            solids = found.parts[number].solids if number != STILL else found.walls if is_floor else found.solids
            solids.append(solid.moved(to_part))
            if number == STILL:
                self._standing[body].solids.append(solid)

    def _is_seen(self, geom: int) -> bool:
        """What is visible; of a body that has shapes for the eye alone, those."""
        for_the_eye = int(self.model.geom_bodyid[geom]) in self._has_shapes_for_the_eye
        return bool(self._visible[geom] and not (for_the_eye and self._collides[geom]))

    # ------------------------------------------------------------------ sites

    def _add_receptacle(self, found: Pieces, site: int, name: str) -> None:
        if self.model.site_type[site] != mujoco.mjtGeom.mjGEOM_BOX:
            fail(self._file, f"site {_RECEPTACLE}{name} should be a box over the surface: type=\"box\" with half sizes")
        body = int(self.model.site_bodyid[site])
        number, handle, link = self._part_of[body], self._name(body) if body != _WORLD else None, None
        if number != STILL:
            handle, link = found.parts[number].handle, found.parts[number].link
        frame, half = transform(self._data.site_xmat[site], self._data.site_xpos[site]), self.model.site_size[site]
        found.receptacles.append(found_receptacle(name, handle, link, np.zeros(3), half, frame))

    def _tell_declaring(self, found: Pieces) -> None:
        """A receptacle is declared for its body, what the body belongs to, and all that hangs in either."""
        declaring = {receptacle.handle for receptacle in found.receptacles}
        for body, thing in self._standing.items():
            names = {self._name(above) for above in self._above(body)} or {None}
            thing.declares = not declaring.isdisjoint(names)

    def _marker(self, found: Pieces, site: int, joint: str) -> Marker:
        name = f"{_HANDLE}{joint}"
        number = next((k for k, own in enumerate(self._joints) if self.model.joint(own).name == joint), None)
        if number is None:
            fail(self._file, f"site {name} is the handle of a hinge or slide joint {joint!r}, which there is not")
        part = found.parts[number]
        if self._part_of[int(self.model.site_bodyid[site])] != number:
            fail(self._file, f"site {name} should be in the body that joint {joint!r} moves, {part.link!r}")
        local = np.linalg.inv(part.frame) @ (*self._data.site_xpos[site], 1.0)
        return Marker(name, part.handle, part.link, to_z_up(*local[:3].tolist()))


def _widen(span: np.ndarray, points: np.ndarray) -> None:
    """Make room in a span, (2, 3), least and greatest corner, for points (n, 3)."""
    span[0], span[1] = np.minimum(span[0], points.min(axis=0)), np.maximum(span[1], points.max(axis=0))
