"""Third-person RGB pictures of a home without GL: visibility by `raster`, then light, shadow and marks.

Frames and units: world z up, metres, quaternions (w, x, y, z); colours sRGB in [0, 1] in the interface and linear
inside; images uint8 (H, W, 3). The scene is rasterised `supersample` times as large as the picture; a pixel whose
samples show one face is shaded once, others once per face that they show.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import mujoco
import numpy as np

from rearrange.home.pictures import paint, shading
from rearrange.home.pictures.meshes import MeshTable
from rearrange.home.pictures.painted_meshes import PaintedMeshes
from rearrange.home.pictures.raster import Poses, box_half_extents, draw, pixel_slopes, shape_table
from rearrange.home.pictures.raster_kernels import BOX, FACES, KINDS, F
from rearrange.home.pictures.visual_only_shapes import Attached
from rearrange.home.robot.cameras import camera_axes

Vector = Sequence[float] | np.ndarray


NEAR_M, FAR_M = 0.02, 60.0
SUN_DIRECTION = np.array([-0.36, -0.50, 0.79]) / np.linalg.norm([-0.36, -0.50, 0.79])  # towards the sun, world
SUN_DISTANCE_M, SHADOW_RADIUS_M = 60.0, 6.0
SHADOW_SIZE, SMALL_PX = 1024, 256  # of the map of shadows; half as many where no side of a picture is longer than this
WALL_HALF_LENGTH_M = 1.3  # boxes this long are walls, others belong to furniture
JUMP_M = 0.5  # of the eye, between two pictures: after it nothing fades
ARTICULATED_GROUP = 1  # geom group of doors and drawers, which are cut away like fixed furniture


@dataclass(frozen=True)
class WireBox:
    """Edges of a box: centre and half extents (m), orientation."""

    center_m: Vector
    half_size_m: Vector
    quat: Vector = (1.0, 0.0, 0.0, 0.0)
    rgb: Vector = (0.1, 0.9, 0.25)


@dataclass(frozen=True)
class Sphere:
    """A translucent ball."""

    center_m: Vector
    radius_m: float
    rgb: Vector = (0.1, 0.9, 0.25)
    alpha: float = 0.5


@dataclass(frozen=True)
class Ghost:
    """A translucent copy of an object; shape and size (m) as in `rearrange.home.apartments.objects.ObjectModel`."""

    shape: str
    size: Vector
    position_m: Vector
    quat: Vector = (1.0, 0.0, 0.0, 0.0)
    rgb: Vector = (0.2, 0.6, 1.0)
    alpha: float = 0.45


def follow_camera(base_pose: Vector, previous: tuple[np.ndarray, np.ndarray] | None = None, distance_m: float = 2.1,
                  height_m: float = 2.3, smoothing: float = 0.06) -> tuple[np.ndarray, np.ndarray]:
    """Eye and target (world, m) of a camera behind and to the left of a robot, which shows where its arm works.

    Args:
        base_pose: x, y (m), yaw (rad) of the robot.
        previous: The result for the frame before. `1 - smoothing` of it is kept: the view does not swing.
    """
    x, y, yaw = (float(value) for value in base_pose)
    c, s = math.cos(yaw), math.sin(yaw)
    behind, left = -0.72 * distance_m, 0.69 * distance_m
    eye = np.array([x + c * behind - s * left, y + s * behind + c * left, height_m])
    target = np.array([x + 0.45 * c, y + 0.45 * s, 0.75])
    if previous is None:
        return eye, target
    return previous[0] + smoothing * (eye - previous[0]), previous[1] + 2 * smoothing * (target - previous[1])


def _mujoco_camera(axes: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """The camera of `camera_axes` as `draw` takes it: cam_xpos (1, 3), cam_xmat (1, 9: right, up, back) and its row."""
    return axes[3:4].copy(), np.ascontiguousarray(np.stack([axes[0], -axes[1], -axes[2]], axis=1)).reshape(1, 9), 0


def _scene_of_marks(marks: Sequence[Sphere | Ghost]) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
    """Shapes, halves, centres and rotations of the marks as `draw` takes them; colours (N, 4) sRGB and alpha."""
    shapes, halves, centers, rotations, colors = [], [], [], np.empty((len(marks), 9)), []
    for n, mark in enumerate(marks):
        if isinstance(mark, Sphere):
            mark = Ghost("sphere", (mark.radius_m,), mark.center_m, rgb=mark.rgb, alpha=mark.alpha)
        if mark.shape not in KINDS:
            raise ValueError(f"a mark has the shape {mark.shape!r}; allowed: {', '.join(KINDS)}")
        half = box_half_extents(KINDS[mark.shape], (*mark.size, 0.0, 0.0)[:3])
        shapes.append((KINDS[mark.shape], n))
        halves.append((*half, math.hypot(*half)))
        centers.append(mark.position_m)
        mujoco.mju_quat2Mat(rotations[n], np.asarray(mark.quat, float))
        colors.append((*mark.rgb, mark.alpha))
    scene = (np.array(shapes, np.int32), np.array(halves, np.float32), np.array(centers, float), rotations)
    return scene, np.array(colors, np.float32)


def _surfaces(shapes: np.ndarray, halves: np.ndarray, centers: np.ndarray, rotations: np.ndarray,
              eye: np.ndarray) -> tuple[np.ndarray, ...]:
    """`surfaces` of the shading kernels: shapes, halves, centers, flat_normals, long_axes."""
    centers = centers[shapes[:, 1]]
    axes = rotations[shapes[:, 1]].reshape(-1, 3, 3).transpose(0, 2, 1)  # axes[n, k]: axis k in the world
    towards = np.einsum("nki,ni->nk", axes, eye - centers)
    normals = np.zeros((len(shapes), FACES, 3), np.float32)
    normals[:, :3] = axes * np.where(towards > 0, 1.0, -1.0)[:, :, None]
    return shapes, halves, centers.astype(np.float32), normals.reshape(-1, 3), axes[:, 2].astype(np.float32)


def _between(eye: np.ndarray, target: np.ndarray, centers: np.ndarray, rotations: np.ndarray,
             halves: np.ndarray) -> np.ndarray:
    """Which boxes (N) stand before a robot-sized surface around the target, by a fan of sight lines to it."""
    sideways = np.cross(target - eye, (0.0, 0.0, 1.0))
    sideways /= max(np.linalg.norm(sideways), 1e-6)
    goals = np.array(
        [target * (1, 1, height) + side * sideways for side in np.linspace(-0.4, 0.4, 7) for height in (0, 1, 1.7)])
    start = np.einsum("gji,gj->gi", rotations, eye - centers)[:, None]  # (boxes, 1, 3), in the boxes' frames
    step = np.einsum("gji,lj->gli", rotations, goals - eye)  # (boxes, lines, 3)
    step = np.where(np.abs(step) < 1e-9, 1e-9, step)
    first, second = (-halves[:, None] - start) / step, (halves[:, None] - start) / step
    enter, leave = np.minimum(first, second).max(axis=2), np.maximum(first, second).min(axis=2)
    return ((enter < leave) & (leave > 0) & (enter < 0.85)).any(axis=1)


class _Canvas:
    """What one thread draws a picture in. samples, size: height and width of the samples, and of the picture."""

    def __init__(self, samples: tuple[int, int], size: tuple[int, int]):
        height, width = size
        self.depth, self.codes = np.empty(samples, np.float32), np.empty(samples, np.int32)
        shadow_size = SHADOW_SIZE if max(size) > SMALL_PX else SHADOW_SIZE // 2
        self.sun_slopes = pixel_slopes(shadow_size, 2 * SHADOW_RADIUS_M / SUN_DISTANCE_M / shadow_size)
        self.shadow = np.empty((shadow_size, shadow_size), np.float32)
        coarse = (max(2, height // shading.COARSE), max(2, width // shading.COARSE))
        self.coarse_z, self.open, self.blurred = (np.empty(coarse, np.float32) for _ in range(3))
        self.image = np.empty((height, width, 3), np.uint8)


class Painter:
    """Third-person pictures of one model, for videos. Several threads may draw at the same time.

    Args:
        fov_deg: Vertical field of view.
        supersample: Samples of a pixel along each side.
        hide_groups: Geom groups that are left out (the ceiling).
        cut_above_m: Higher walls and furniture that stand between the eye and the target are cut down to `stub_m`.
        meshes: Drawn beside the geoms. Those of a thing in between are left out; of thing 0, the triangles in between.
        fade_frames: In so many pictures things fade when they are cut down or whole again; 1: at once, and no picture
            depends on the one before.
        attached: Shapes that are drawn in place of some geoms.
        materials: Of `rearrange.home.pictures.textures`, (ngeom,); None: all plain.
    """

    def __init__(self, model: mujoco.MjModel, width: int = 512, height: int = 512, fov_deg: float = 60.0,
                 supersample: int = 2, hide_groups: tuple[int, ...] = (4,), cut_above_m: float = 1.25,
                 stub_m: float = 0.12, meshes: MeshTable | None = None, fade_frames: int = 1,
                 attached: Attached | None = None, materials: np.ndarray | None = None):
        if min(width, height, supersample, fade_frames) < 1 or not 0.0 < fov_deg < 180.0:
            raise ValueError(f"picture: width {width}, height {height}, supersample {supersample}, fade_frames "
                             f"{fade_frames} (at least 1), fov_deg {fov_deg} (0 to 180)")
        self._cut_above_m, self._stub_m = cut_above_m, stub_m
        self._shapes, self._halves = shape_table(model, hide_groups)
        if attached is not None:
            drawn = ~np.isin(self._shapes[:, 1], attached.instead_of)
            self._shapes, self._halves = self._shapes[drawn], self._halves[drawn]
        geoms = self._shapes[:, 1]
        self._materials = np.zeros(len(geoms), np.int32) if materials is None else materials[geoms].astype(np.int32)
        self._colors = np.clip(model.geom_rgba[geoms], 0, 1).astype(np.float32) ** 2.2
        self._bodies = model.geom_bodyid[geoms]
        self._articulated = model.geom_group[geoms] == ARTICULATED_GROUP
        fixed = (model.body_weldid[self._bodies] == 0) | self._articulated
        self._cuttable = np.flatnonzero(fixed & (self._shapes[:, 0] == BOX))
        self._fade, self._presence = 1.0 / fade_frames, np.ones(len(self._cuttable))  # 1: whole, 0: cut down
        self._last_eye: np.ndarray | None = None
        if attached is not None:
            self._attach(model, attached)
        self._attached = attached
        pitch = 2.0 * math.tan(math.radians(fov_deg) / 2.0) / (height * supersample)
        self._us, self._vs = pixel_slopes(width * supersample, pitch), pixel_slopes(height * supersample, pitch)
        self._focal_px = 1.0 / (pitch * supersample)
        self._size, self._supersample, self._of_thread = (height, width), supersample, threading.local()
        self._pattern = shading.occlusion_pattern()
        self._meshes = None if meshes is None else PaintedMeshes(meshes, cut_above_m)

    def _attach(self, model: mujoco.MjModel, attached: Attached) -> None:
        """Rows for shapes that are no geoms: their poses follow those of the geoms."""
        count = len(attached.kinds)
        rows = np.column_stack([attached.kinds, model.ngeom + np.arange(count)]).astype(np.int32)
        self._shapes, self._halves = np.concatenate(
            [self._shapes, rows]), np.concatenate([self._halves, attached.halves])
        linear = np.column_stack([attached.rgb**2.2, np.ones(count)]).astype(np.float32)
        self._colors, self._bodies = np.concatenate(
            [self._colors, linear]), np.concatenate([self._bodies, attached.bodies])
        self._articulated = np.concatenate([self._articulated, np.zeros(count, bool)])
        self._materials = np.concatenate([self._materials, np.zeros(count, np.int32)])

    def _canvas(self) -> _Canvas:
        """That of this thread."""
        if not hasattr(self._of_thread, "canvas"):
            self._of_thread.canvas = _Canvas((len(self._vs), len(self._us)), self._size)
        return self._of_thread.canvas

    def _poses(self, data: Poses) -> tuple[np.ndarray, np.ndarray]:
        """Middles (n, 3) and rotation matrices (n, 9) of geoms and of what is attached, which may be written to."""
        if self._attached is None:
            return data.geom_xpos.copy(), data.geom_xmat
        places, turns = self._attached.poses(data)
        return np.concatenate([data.geom_xpos, places]), np.concatenate([data.geom_xmat, turns])

    def render(self, data: mujoco.MjData, eye_m: Vector, target_m: Vector,
               marks: Sequence[WireBox | Sphere | Ghost] = ()) -> np.ndarray:
        """The scene from eye_m towards target_m (world), uint8 (height, width, 3); marks are faint behind things."""
        return self.later(Poses.of(data), eye_m, target_m, marks)()

    def later(self, poses: Poses, eye_m: Vector, target_m: Vector,
              marks: Sequence[WireBox | Sphere | Ghost] = ()) -> Callable[[], np.ndarray]:
        """As `render`; it is drawn when the result is called, in any thread. Things fade in the order of these calls.
        """
        axes, target = camera_axes(eye_m, target_m), np.asarray(target_m, float)
        self._advance_fading(self._blocking(poses, axes[3], target), axes[3])
        return partial(self._draw, poses, axes, target, self._presence, tuple(marks))

    def _draw(self, poses: Poses, axes: np.ndarray, target: np.ndarray, presence: np.ndarray,
              marks: Sequence[WireBox | Sphere | Ghost]) -> np.ndarray:
        going = (presence > 0.0) & (presence < 1.0)
        if going.any():  # the picture with what fades, over the picture without
            canvas, kept = self._paint(poses, axes, target, presence == 0.0)
            share, whole = self._shares(canvas, kept, presence), canvas.image.astype(np.float32)
            self._paint(poses, axes, target, presence < 1.0)
            canvas.image[:] = np.round(canvas.image + share[:, :, None] * (whole - canvas.image))
        else:
            canvas, _ = self._paint(poses, axes, target, presence < 1.0)
        self._draw_marks(canvas, axes, marks)
        return canvas.image.copy()

    def render_from(self, data: mujoco.MjData | Poses, axes: np.ndarray) -> np.ndarray:
        """What a camera sees, (height, width, 3) uint8, with nothing cut away; axes: as of `camera_axes`."""
        nothing = np.zeros(len(self._cuttable), bool)
        canvas, _ = self._paint(data, axes, axes[3] + axes[2], nothing, cut_meshes=False)
        return canvas.image.copy()

    def forget(self) -> None:
        """The next picture is of another episode: nothing fades from the last one."""
        self._last_eye = None

    def _advance_fading(self, blocking: np.ndarray, eye: np.ndarray) -> None:
        """One picture nearer to what shall be cut down; at once after a jump of the eye."""
        jumped = self._last_eye is None or np.linalg.norm(eye - self._last_eye) > JUMP_M
        step = 1.0 if jumped else self._fade
        self._presence = np.round(np.clip(self._presence + np.where(blocking, -step, step), 0.0, 1.0), 6)
        self._last_eye = eye.copy()

    def _shares(self, canvas: _Canvas, kept: np.ndarray, presence: np.ndarray) -> np.ndarray:
        """Share of the picture that was painted last in each pixel of the mix, (height, width) float32.

        A thing that fades has its own share. Elsewhere, where its shadow may lie, it is the mean of theirs.
        """
        elsewhere = float(presence[(presence > 0.0) & (presence < 1.0)].mean())
        of_row = np.full(len(self._halves), elsewhere, np.float32)
        of_row[self._cuttable] = np.where(presence < 1.0, presence, elsewhere)
        for body in np.unique(self._bodies[self._cuttable[(presence < 1.0) & self._articulated[self._cuttable]]]):
            of_row[self._bodies == body] = of_row[self._cuttable[self._bodies[self._cuttable] == body]].min()
        of_code = np.append(of_row[kept], np.float32(elsewhere))  # the last of pixels that show nothing, or a mesh
        rows = np.where(canvas.codes >= 0, canvas.codes // FACES, len(kept))
        height, width = self._size
        shares = of_code[np.minimum(rows, len(kept))].reshape(height, rows.shape[0] // height, width, -1)
        return shares.mean(axis=(1, 3))

    def _paint(self, data: mujoco.MjData | Poses, axes: np.ndarray, target: np.ndarray, cut: np.ndarray,
               cut_meshes: bool = True) -> tuple[_Canvas, np.ndarray]:
        """Draw without marks; cut: which of the cuttable rows are cut down. The canvas, and the rows that are drawn."""
        canvas, depth, codes = (found := self._canvas()), found.depth, found.codes
        centers, turns = self._poses(data)
        kept, halves = self._cut_away(data, cut, centers)
        scene = (self._shapes[kept], halves, centers, turns)
        camera = _mujoco_camera(axes)
        draw(*scene, *camera, self._us, self._vs, F(FAR_M), depth, codes)
        meshes = self._meshes and (self._meshes.between(data, axes[3], target) if cut_meshes else self._meshes)
        if meshes:
            meshes.draw(data, *camera, self._us, self._vs, F(FAR_M), depth, codes, FACES * len(kept))
        sun = self._draw_shadows(canvas, data, scene, meshes, target)
        surfaces, colors, materials = _surfaces(*scene, axes[3]), self._colors[kept], self._materials[kept]
        frames = turns[self._shapes[kept, 1]].reshape(-1, 3, 3).transpose(0, 2, 1).astype(np.float32)
        if meshes:
            surfaces, colors = meshes.surfaces(data, surfaces), np.concatenate([colors[:, :3], meshes.linear])
            materials = np.concatenate([materials, np.zeros(len(meshes.linear), np.int32)])
        view = (self._us, self._vs, axes.astype(np.float32))
        shading.occlusion(depth, codes, view, surfaces, self._pattern, canvas.coarse_z, canvas.open)
        shading.blur(canvas.coarse_z, canvas.open, canvas.blurred)
        light = (sun, canvas.shadow, canvas.coarse_z, canvas.blurred)
        paint.paint(depth, codes, view, surfaces, colors, materials, np.ascontiguousarray(frames), light,
                      paint.tone_table(), canvas.image)
        return canvas, kept

    def _draw_marks(self, canvas: _Canvas, axes: np.ndarray, marks: Sequence[WireBox | Sphere | Ghost]) -> None:
        self._draw_translucent(canvas, axes, [mark for mark in marks if not isinstance(mark, WireBox)])
        for mark in marks:
            if isinstance(mark, WireBox):
                self._draw_wire(canvas, axes, mark)

    def _extents(self, data: Poses) -> np.ndarray:
        """Half extents (m) of the cuttable boxes along the world axes."""
        rotations = data.geom_xmat[self._shapes[self._cuttable, 1]].reshape(-1, 3, 3)
        return np.einsum("gij,gj->gi", np.abs(rotations), self._halves[self._cuttable, :3])

    def _blocking(self, data: Poses, eye: np.ndarray, target: np.ndarray) -> np.ndarray:
        """Which of the cuttable rows block the view."""
        geoms, centers = self._shapes[self._cuttable, 1], data.geom_xpos
        rotations, sizes, reach = data.geom_xmat[geoms].reshape(
            -1, 3, 3), self._halves[self._cuttable, :3], self._extents(data)
        tall = centers[geoms, 2] + reach[:, 2] > self._cut_above_m
        blocking = tall & _between(eye, target, centers[geoms], rotations, sizes)
        high = tall | (centers[geoms, 2] - reach[:, 2] > 0.7 * self._cut_above_m)  # would float without the rest
        furniture = high & (sizes.max(axis=1) < WALL_HALF_LENGTH_M)
        to_follow = list(np.flatnonzero(blocking & furniture))
        while to_follow:  # the rest of a piece of furniture goes with any of its parts
            part = to_follow.pop()
            gap = np.abs(centers[geoms, :2] - centers[geoms[part], :2]) - reach[:, :2] - reach[part, :2]
            joined = furniture & ~blocking & (gap.max(axis=1) < 0.01)
            to_follow.extend(np.flatnonzero(joined))
            blocking |= joined
        return blocking

    def _cut_away(self, data: Poses, cut: np.ndarray, centers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows of the shape table to draw and their halves, some of them cut down; moves the centres of these."""
        halves, kept = self._halves.copy(), np.ones(len(self._halves), bool)
        geoms, reach = self._shapes[self._cuttable, 1], self._extents(data)
        for row, geom, half_height in zip(self._cuttable[cut], geoms[cut], reach[cut, 2], strict=True):
            bottom = centers[geom, 2] - half_height
            if bottom > self._stub_m / 2 or abs(data.geom_xmat[geom, 8]) < 0.999:
                kept[row] = False
                continue
            halves[row, 2] = (self._stub_m - bottom) / 2
            centers[geom, 2] = bottom + halves[row, 2]
        kept &= ~np.isin(self._bodies, self._bodies[~kept & self._articulated])  # a door goes with its handle
        return np.flatnonzero(kept), halves[kept]

    def _draw_shadows(self, canvas: _Canvas, data: Poses, scene: tuple[np.ndarray, ...], meshes: PaintedMeshes | None,
                      target: np.ndarray) -> np.ndarray:
        """Rasterise what the sun sees around the target; returns the sun's camera as `paint` takes it."""
        texel = 2 * SHADOW_RADIUS_M / len(canvas.sun_slopes)
        axes = camera_axes(SUN_DIRECTION * SUN_DISTANCE_M, (0.0, 0.0, 0.0))
        along = np.round(axes[:2] @ target / texel) * texel  # steady shadows in a video
        axes[3] += along @ axes[:2]
        slopes = canvas.sun_slopes
        view = (*_mujoco_camera(axes), slopes, slopes, F(2 * SUN_DISTANCE_M), canvas.shadow)
        draw(*scene, *view)
        if meshes:
            meshes.draw(data, *view)
        return np.vstack([axes, (slopes[0], slopes[1] - slopes[0], 0.0)]).astype(np.float32)

    def _draw_translucent(self, canvas: _Canvas, axes: np.ndarray, marks: Sequence[Sphere | Ghost]) -> None:
        """Blend balls and ghosts; where several cover a pixel, the nearest counts."""
        if not marks:
            return
        scene, colors = _scene_of_marks(marks)
        window = self._window(axes, scene[2], scene[1][:, 3])
        if window is None:
            return
        (top, bottom), (left, right) = window
        us, vs = self._us[left:right], self._vs[top:bottom]
        depth, codes = np.empty((len(vs), len(us)), np.float32), np.empty((len(vs), len(us)), np.int32)
        draw(*scene, *_mujoco_camera(axes), us, vs, F(FAR_M), depth, codes)
        view, surfaces = (us, vs, axes.astype(np.float32)), _surfaces(*scene, axes[3])
        shading.blend_shapes(canvas.image, canvas.depth, top, left, depth, codes, view, surfaces, colors)

    def _window(self, axes: np.ndarray, centers: np.ndarray, radii: np.ndarray) -> list[tuple[int, int]] | None:
        """First and last row, and column, of the samples of whole pixels that can show some balls; None: none can."""
        at, s = (centers - axes[3]) @ axes[:3].T, self._supersample
        if (at[:, 2] - radii < NEAR_M).any():
            return [(0, len(self._vs)), (0, len(self._us))]
        window = []
        for across, slopes in ((at[:, 1], self._vs), (at[:, 0], self._us)):
            ends = np.stack([across - radii, across + radii])[:, None] / np.stack([at[:, 2] - radii, at[:, 2] + radii])
            first, last = np.searchsorted(slopes, (ends.min(), ends.max()))
            first, last = first // s * s, min(len(slopes), -(-last // s) * s)
            if last - first < 2:  # a row or column of samples, or none, is not worth a mark
                return None
            window.append((int(first), int(last)))
        return window

    def _draw_wire(self, canvas: _Canvas, axes: np.ndarray, box: WireBox) -> None:
        """Blend the twelve edges of a box."""
        rotation = np.empty(9)
        mujoco.mju_quat2Mat(rotation, np.asarray(box.quat, float))
        signs = np.array([[1 - 2 * (k >> bit & 1) for bit in range(3)] for k in range(8)])
        offsets = (signs * np.asarray(box.half_size_m, float)) @ rotation.reshape(3, 3).T
        corners = np.asarray(box.center_m, float) + offsets
        corners = (corners - axes[3]) @ axes[:3].T  # camera frame
        height, width = self._size
        rgb, thickness = tuple(F(value) for value in box.rgb), F(max(1.5, height / 256))
        for a in range(8):
            for b in (a ^ 1, a ^ 2, a ^ 4):
                start, end = corners[a], corners[b]
                if a > b or max(start[2], end[2]) < NEAR_M:
                    continue
                if min(start[2], end[2]) < NEAR_M:  # clip the end that is behind the eye
                    start, end = (start, end) if start[2] > end[2] else (end, start)
                    end = start + (end - start) * (start[2] - NEAR_M) / (start[2] - end[2])
                ends = [(F(x / z * self._focal_px + (width - 1) / 2), F(y / z * self._focal_px + (height - 1) / 2),
                         F(1 / z)) for x, y, z in (start, end)]
                shading.blend_line(canvas.image, canvas.depth, *ends, rgb, thickness)
