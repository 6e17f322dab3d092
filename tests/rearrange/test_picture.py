"""Third-person pictures: what is where, light and shadow, marks, cut-away walls, text and depth images."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import mujoco
import numpy as np
import pytest

from rearrange.home.pictures import paint
from rearrange.home.pictures.overlay import depth_picture, draw_text, text_width
from rearrange.home.pictures.picture import SUN_DIRECTION, Ghost, Painter, Sphere, WireBox, camera_axes, follow_camera
from rearrange.home.pictures.raster import Poses
from rearrange.home.pictures.raster_kernels import NO_CODE, compiled
from rearrange.home.pictures.textures import FABRIC, PLAIN, TILES, WOOD

FLOOR = '<geom type="plane" size="9 9 .1" rgba=".6 .6 .6 1"/>'
RED_BALL = '<geom name="ball" type="sphere" size=".3" pos="0 0 .5" rgba="1 0 0 1"/>'
EYE_M, TARGET_M = (0.0, -4.0, 2.0), (0.0, 0.0, 0.5)


def picture(geoms, marks=(), eye=EYE_M, target=TARGET_M, **options):
    """A small picture of some geoms; nothing is cut away unless asked for."""
    model = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{geoms}</worldbody></mujoco>")
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return Painter(model, **{"width": 160, "height": 120, "cut_above_m": 9, **options}).render(data, eye, target, marks)


def pixel(point, eye=EYE_M, target=TARGET_M, width=160, height=120, fov_deg=60.0):
    """(row, column) at which a world point is seen."""
    x, y, z = camera_axes(eye, target)[:3] @ (np.array(point, float) - eye)
    focal = height / 2 / np.tan(np.radians(fov_deg) / 2)
    return round(y / z * focal + (height - 1) / 2), round(x / z * focal + (width - 1) / 2)


def red(image):
    """Where a picture is clearly red."""
    return ((image[..., 0] > 80) & (image[..., 0] > 2 * image[..., 1].astype(int))
            & (image[..., 0] > 2 * image[..., 2].astype(int)))


def blue(image):
    """Where a picture is clearly blue."""
    return image[..., 2] > 1.5 * image[..., 0].astype(int)


def difference(a, b):
    return np.abs(a.astype(int) - b.astype(int)).sum(axis=2)


def test_things_are_where_they_should_be_and_pictures_repeat():
    image = picture(FLOOR + RED_BALL)
    assert image.shape == (120, 160, 3) and image.dtype == np.uint8
    assert red(image)[pixel((0, 0, 0.5))]
    rows, columns = np.nonzero(red(image))
    apparent_radius = 0.3 / np.hypot(4.0, 1.5) * 60 / np.tan(np.radians(30))
    assert abs(np.ptp(columns) / 2 - apparent_radius) < 2 and abs(np.ptp(rows) / 2 - apparent_radius) < 2
    right = picture(FLOOR + RED_BALL.replace('pos="0 0', 'pos="1 0'))
    assert red(right)[pixel((1, 0, 0.5))] and np.nonzero(red(right))[1].mean() > columns.mean() + 10
    assert np.array_equal(image, picture(FLOOR + RED_BALL))


@pytest.mark.parametrize("options", [{"supersample": 1}, {"supersample": 3}, {"width": 97, "height": 301}])
def test_other_sizes_and_samples(options):
    image = picture(FLOOR + RED_BALL, **options)
    width, height = options.get("width", 160), options.get("height", 120)
    assert image.shape == (height, width, 3)
    assert red(image)[pixel((0, 0, 0.5), width=width, height=height)]


def test_near_things_hide_far_ones_and_hidden_groups_are_left_out():
    screen = '<geom type="box" size="1 .05 1" pos="0 -1 1" rgba="0 0 1 1" group="4"/>'
    assert red(picture(RED_BALL + screen, hide_groups=())).sum() == 0
    assert red(picture(RED_BALL + screen)).sum() > 50


WALL = '<geom type="box" size="2 .05 1.2" pos="0 -2 1.2" rgba="0 0 1 1"/>'


def test_a_wall_in_the_way_fades_over_some_pictures_and_comes_back():
    model = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{FLOOR + RED_BALL + WALL}</worldbody></mujoco>")
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    painter = Painter(model, 160, 120, cut_above_m=1.25, fade_frames=5)

    def blueness(target, eye=EYE_M):
        image = painter.render(data, eye, target).astype(int)
        return int(np.clip(image[..., 2] - image[..., 0], 0, None).sum())

    behind, beside = TARGET_M, (2.5, -2.6, 0.5)  # of the wall
    before = blueness(beside)
    assert before > 50_000
    fading = [blueness(behind) for _ in range(7)]
    assert all(a > b for a, b in zip(fading[:5], fading[1:5])) and fading[4] == fading[5] == fading[6] < 0.3 * fading[0]
    returning = [blueness(beside) for _ in range(7)]
    assert all(a < b for a, b in zip(returning[:5], returning[1:5])) and returning[4] == returning[6] == before
    blueness(behind, (0.0, 3.0, 2.3))
    assert blueness(behind) == fading[-1]  # after a jump at once
    blueness(beside)
    painter.forget()
    assert blueness(behind) == fading[-1]


def test_a_floating_box_throws_a_shadow_away_from_the_sun():
    position = np.array([0, 0, 1.0])
    box = f'<body pos="0 0 1"><freejoint/><geom type="box" size=".25 .25 .05"/></body>{FLOOR}'
    eye, target = (0.5, -1.5, 4.0), (0.3, 0.3, 0.0)
    lit, shaded = picture(FLOOR, eye=eye, target=target), picture(box, eye=eye, target=target)
    at = pixel(position - SUN_DIRECTION / SUN_DIRECTION[2], eye, target)
    assert shaded[at].sum() < 0.85 * lit[at].sum()
    beside = pixel(position - SUN_DIRECTION / SUN_DIRECTION[2] + (0.5, 0.5, 0), eye, target)
    assert np.abs(shaded[beside].astype(int) - lit[beside]).max() <= 12


@pytest.mark.parametrize("samples", [1, 2])
def test_pixels_of_a_row_that_are_shaded_together_are_as_each_is_by_itself(samples, monkeypatch):
    """The law of the vector code, for floors, plain boxes, and boxes of every texture, with and without shadow."""
    boxes = "".join(f'<geom type="box" size=".3 .2 .3" pos="{x} {y} .6" euler="0 0 {30 * x}" rgba=".7 .5 .3 1"/>'
                    for x, y in [(-1.2, 0), (-0.4, 0.3), (0.4, 0), (1.2, 0.3)])
    model = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{FLOOR}{boxes}</worldbody></mujoco>")
    data, seen = mujoco.MjData(model), {}
    mujoco.mj_forward(model, data)
    whole = paint.paint
    monkeypatch.setattr(paint, "paint", lambda *arguments: seen.update(of=arguments) or whole(*arguments))
    painter = Painter(model, 96, 72, cut_above_m=9, supersample=samples,
                      materials=np.array([PLAIN, PLAIN, WOOD, FABRIC, TILES], np.int32))
    together = painter.render(data, EYE_M, TARGET_M).astype(int)
    depth, codes, view, surfaces, colors, materials, frames, light, tones, image = seen["of"]
    share = (paint.TONES - 1) / paint.BRIGHTEST
    compared = 0
    for y, x in np.ndindex(image.shape[:2]):
        sy, sx = samples * y + samples - 1, samples * x + samples - 1
        if (codes[samples * y : sy + 1, samples * x : sx + 1] == codes[sy, sx]).all() and codes[sy, sx] != NO_CODE:
            alone = one_sample(sy, sx, depth, codes, view, surfaces, colors, materials, frames, light)
            assert np.abs(together[y, x] - tones[(np.array(alone) * share).astype(int)]).max() <= 1, (y, x)
            compared += 1
    assert compared > 0.5 * image[..., 0].size


@compiled
def one_sample(sy, sx, depth, codes, view, surfaces, colors, materials, frames, light):
    return paint._sample(sy, sx, np.float32(0), depth, codes, view, surfaces, colors, materials, frames, light)


def test_pictures_may_be_drawn_later_in_any_order_and_thread():
    model = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{FLOOR + RED_BALL + WALL}</worldbody></mujoco>")
    data, places = mujoco.MjData(model), [(2.5, -2.6, 0.5), *[TARGET_M] * 7]  # the wall fades from the second on
    mujoco.mj_forward(model, data)
    marks = [Sphere((0, 0, 0.5), 0.3, (1, 0, 0), 0.8)]
    at_once, later = (Painter(model, 160, 120, cut_above_m=1.25, fade_frames=5) for _ in range(2))
    wanted = [at_once.render(data, EYE_M, place, marks) for place in places]
    drawn = [later.later(Poses.of(data), EYE_M, place, marks) for place in places]
    with ThreadPoolExecutor(3) as threads:
        found = list(threads.map(lambda draw: draw(), reversed(drawn)))
    assert all(np.array_equal(a, b) for a, b in zip(wanted, reversed(found)))
    assert not np.array_equal(wanted[2], wanted[3])


def test_flat_faces_are_smooth():
    """A wall has one colour: no self-shadowing, no noise from the occlusion pattern."""
    image = picture('<geom type="box" size="5 .1 5" pos="0 2 0" rgba=".5 .5 .5 1"/>')
    assert np.ptp(image[40:80, 40:120].astype(int), axis=(0, 1)).max() <= 14  # the fill light varies with the angle


@pytest.mark.parametrize("hidden", [False, True])
def test_wire_boxes_are_drawn_on_their_edges_and_faint_behind_things(hidden):
    scene = FLOOR + ('<geom type="box" size="2 .05 .8" pos="0 -1.5 .8"/>' if hidden else "")
    box = WireBox((0, 0, 0.5), (0.4, 0.3, 0.2), (0.9239, 0, 0, 0.3827), rgb=(0, 1, 0))
    change = difference(picture(scene, [box]), picture(scene))
    c = np.sqrt(0.5)
    for sx, sy, sz in ((1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1)):
        corner = np.array([c * (sx * 0.4 - sy * 0.3), c * (sx * 0.4 + sy * 0.3), 0.5 + sz * 0.2])
        row, column = pixel(corner)
        strength = change[row - 1 : row + 2, column - 1 : column + 2].max()
        assert (25 < strength < 200) if hidden else strength > 240
    assert 0 < (change > 0).mean() < 0.1


def test_a_wire_box_around_the_eye_does_not_break():
    change = difference(picture(FLOOR, [WireBox(EYE_M, (0.5, 0.6, 0.7))]), picture(FLOOR))
    assert change.max() > 100
    assert np.array_equal(picture(FLOOR, [WireBox((0, -9, 2), (0.5, 0.5, 0.5))]), picture(FLOOR))  # wholly behind


@pytest.mark.parametrize("mark", [Sphere((0, 0, 0.5), 0.3, (1, 0, 0), 0.8),
                                  Ghost("box", (0.3, 0.3, 0.3), (0, 0, 0.5), rgb=(1, 0, 0), alpha=0.8),
                                  Ghost("cylinder", (0.3, 0.3), (0, 0, 0.5), (0.9, 0.1, 0, 0), (1, 0, 0), 0.8)])
def test_translucent_marks(mark):
    plain, wall = picture(FLOOR), '<geom type="box" size="2 .05 .8" pos="0 -1.5 .8" rgba=".6 .6 .6 1"/>'
    marked = picture(FLOOR, [mark])
    assert red(marked)[pixel((0, 0, 0.5))]
    assert np.array_equal(marked[:, :20], plain[:, :20])
    behind = difference(picture(FLOOR + wall, [mark]), picture(FLOOR + wall))[pixel((0, 0, 0.5))]
    assert 0 < behind < 0.5 * difference(marked, plain)[pixel((0, 0, 0.5))]


def test_only_the_part_of_a_picture_that_marks_may_cover_is_looked_at_for_them(monkeypatch):
    marks = [Sphere((0, 0, 0.5), 0.3, (1, 0, 0), 0.8), Ghost("box", (0.1, 0.1, 0.1), (1.6, 0.2, 0.5))]
    views = [{}, {"eye": (0.0, -0.7, 0.6)}, {"eye": (0.0, -0.2, 0.5)}, {"target": (2.5, -2.0, 0.5)}, {"supersample": 3}]
    near = [picture(FLOOR, marks, **view) for view in views]
    monkeypatch.setattr(Painter, "_window", lambda self, *_: [(0, len(self._vs)), (0, len(self._us))])
    assert all(np.array_equal(a, picture(FLOOR, marks, **view)) for a, view in zip(near, views))


def test_a_mark_of_an_unknown_shape_is_an_error():
    with pytest.raises(ValueError, match="cone.*cylinder"):
        picture(FLOOR, [Ghost("cone", (1, 1, 1), (0, 0, 0))])


def test_tall_walls_in_the_line_of_sight_are_cut_and_others_stay():
    between = '<geom type="box" size="3 .05 1.25" pos="0 -2 1.25" rgba="0 0 1 1"/>'
    behind = between.replace("0 -2 1.25", "0 2 1.25")
    cupboard = between.replace("1.25", ".4").replace("0 -2 .4", "0 -2 1.7")  # hangs at eye level
    assert red(picture(FLOOR + RED_BALL + between)).sum() == 0
    for wall in (between, cupboard):
        assert red(picture(FLOOR + RED_BALL + wall, cut_above_m=1.25)).sum() == red(picture(FLOOR + RED_BALL)).sum()
    assert 0 < blue(picture(FLOOR + RED_BALL + between, cut_above_m=1.25)).mean() < 0.1  # a stub stays
    assert blue(picture(FLOOR + RED_BALL + behind, cut_above_m=1.25)).mean() > 0.2
    moving = f"<body><freejoint/>{between}</body>"  # only what is fixed is cut
    assert red(picture(FLOOR + RED_BALL + moving, cut_above_m=1.25)).sum() == 0


def test_a_piece_of_furniture_is_cut_as_a_whole():
    """A shelf whose side board alone is in the way, and a board beside it that belongs to another piece."""
    parts = [(0.2, 0.05, 0.9), (-0.3, 0.45, 1.7), (-0.8, 0.05, 0.9),
             (-1.3, 0.05, 0.9)]  # centre x, half width, centre z
    shelf = "".join(f'<geom type="box" size="{half} .2 {0.9 if z == 0.9 else 0.05}" pos="{x} -1.5 {z}" rgba="0 0 1 '
                    '1"/>' for x, half, z in parts)
    row, column = pixel((-0.8, -1.7, 1.0))
    assert blue(picture(shelf))[row, column]
    after = blue(picture(shelf, cut_above_m=1.25))
    assert not after[row, column] and after[pixel((-1.3, -1.7, 1.0))]


def test_the_robot_is_seen_everywhere_in_a_home():
    from rearrange.home.apartments.layouts import make_layout
    from rearrange.home.simulation.mujoco.build_model import compile_home

    for split in ("train", "val", "test"):
        layout = make_layout(split, 1)
        model = compile_home(layout)
        model.geom_rgba[(model.geom_group == 3) & (model.geom_rgba[:, 3] > 0)] = (1, 0, 0, 1)
        data, painter = mujoco.MjData(model), Painter(model, 128, 128)
        for receptacle in layout.receptacles:
            if receptacle.parent is not None or receptacle.kind == "fridge":
                continue
            side = np.array(receptacle.sides[0])
            x, y = np.array(receptacle.center_m[:2]) + side * (max(receptacle.half_extents_m) + 0.6)
            pose = (x, y, np.arctan2(-side[1], -side[0]))
            for joint, value in zip(("base_x", "base_y", "base_yaw"), pose, strict=True):
                data.joint(joint).qpos = value
            mujoco.mj_forward(model, data)
            assert red(painter.render(data, *follow_camera(pose))).mean() > 0.02, (layout.name, receptacle.name)


def test_the_following_camera_stands_behind_and_does_not_jump():
    eye, target = follow_camera((2.0, 3.0, np.pi / 2))
    assert eye[1] < 3.0 < target[1] and abs(target[0] - 2.0) < 1e-9 and eye[0] < 2.0
    turned = follow_camera((2.0, 3.0, -np.pi / 2), (eye, target))
    assert 0 < np.linalg.norm(turned[0] - eye) < 0.5
    ends = follow_camera((2.0, 3.0, -np.pi / 2))
    assert np.allclose(turned, [eye + 0.06 * (ends[0] - eye), target + 0.12 * (ends[1] - target)]), "the target leads"
    view = (eye, target)
    for _ in range(200):
        view = follow_camera((2.0, 3.0, -np.pi / 2), view)
    assert np.allclose(view, follow_camera((2.0, 3.0, -np.pi / 2)), atol=1e-3)


def test_impossible_views_and_sizes_are_errors():
    with pytest.raises(ValueError, match="same point"):
        picture(FLOOR, eye=(1, 1, 1), target=(1, 1, 1))
    with pytest.raises(ValueError, match="width 0"):
        picture(FLOOR, width=0)
    assert picture(FLOOR, eye=(0, 0, 3), target=(0, 0, 0)).std() > 1  # straight down is allowed


def test_near_depth_is_bright_and_pixels_stay_square():
    steps = depth_picture(np.linspace(0, 1, 64, dtype=np.float32).reshape(1, 64))
    lightness = steps[0].astype(float) @ (0.3, 0.59, 0.11)
    assert np.all(np.diff(lightness) <= 0) and lightness[0] > 200 and lightness[-1] < 5
    image = np.random.default_rng(0).random((64, 64, 1)).astype(np.float32)
    large = depth_picture(image, 256)
    assert large.shape == (256, 256, 3)
    assert np.array_equal(large[::4, ::4], depth_picture(image)) and np.array_equal(large[3::4, 3::4],
                                                                                    depth_picture(image))


def test_what_is_looked_for_is_green_and_the_rest_as_before():
    depth = np.full((4, 4, 1), 0.5, np.float32)
    mask = np.zeros((4, 4, 1), np.float32)
    mask[1, 2] = 1.0
    plain, marked = depth_picture(depth), depth_picture(depth, mask=mask)
    changed = np.any(plain != marked, axis=2)
    assert changed.sum() == 1 and changed[1, 2] and marked[1, 2, 1] > plain[1, 2, 1] and marked[1, 2].argmax() == 1


def test_text_is_written_in_its_place_and_cut_at_the_border():
    image = np.zeros((80, 200, 3), np.uint8)
    draw_text(image, (20, 10), "episode\nstep 3", 16, (255, 200, 0))
    rows, columns = np.nonzero(image[..., 0])
    assert (rows.min() >= 10 and columns.min() >= 20 and columns.max() <= 20 + text_width("episode", 16) + 1
            and rows.max() < 60)
    assert np.all(image[..., 2] == 0)
    for corner in ((-30, -5), (190, 70), (500, 500), (-900, 3)):
        draw_text(image, corner, "over the edge", shadow=True)
