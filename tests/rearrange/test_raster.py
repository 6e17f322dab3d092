"""The depth rasteriser against MuJoCo's own ray caster, and the laws that need no oracle."""

from __future__ import annotations

import os
import subprocess
import sys

import mujoco
import numpy as np
import pytest

from rearrange.home.pictures.raster import DepthCamera, box_half_extents, draw, pixel_slopes, shape_table
from rearrange.home.pictures.raster_kernels import FACES, NO_CODE, PLANE

FAR_M = 10.0
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SHAPES = ("box", "cylinder", "capsule", "sphere", "plane")


def cast_rays(model, data, size, fov_deg=90.0, normals=False):
    """Normalised depth (size, size), geom ids and, if asked, normals of mj_multiRay along the head's pixel rays."""
    head = model.camera("head").id
    rotation = data.cam_xmat[head].reshape(3, 3)
    u = ((np.arange(size) + 0.5) / size * 2 - 1) * np.tan(np.radians(fov_deg) / 2)
    rays = np.stack(np.broadcast_arrays(u[None, :], -u[:, None], -1.0), -1).reshape(-1, 3) @ rotation.T
    distance, ids, normal = np.empty(size * size), np.empty(size * size, np.int32), np.empty(3 * size * size)
    mujoco.mj_multiRay(model, data, data.cam_xpos[head].copy(), np.ascontiguousarray(rays).ravel(), None, 1, -1, ids,
                       distance, normal if normals else None, size * size, 1e3)
    depth = np.where(distance < 0, 1.0, np.minimum(distance / FAR_M, 1.0)).reshape(size, size)
    ids = ids.reshape(size, size)
    return (depth, ids, normal.reshape(size, size, 3)) if normals else (depth, ids)


def inner_pixels(ids):
    """Pixels whose eight neighbours show the same geom: not on a silhouette."""
    padded = np.pad(ids, 1, mode="edge")
    rows, columns = ids.shape
    return np.all([padded[i : i + rows, j : j + columns] == ids for i in range(3) for j in range(3)], axis=0)


def assert_agrees(depths, oracles, ids):
    """Where either sees something: median under 1 mm; 99.9 % off the silhouettes and 99 % of all within 1 cm."""
    depths, oracles = np.array(depths), np.array(oracles)
    seen = (depths < 1) | (oracles < 1)
    assert seen.mean() > 0.02
    error_m = np.abs(depths - oracles)[seen] * FAR_M
    inner = np.array([inner_pixels(one) for one in ids])[seen]
    assert np.median(error_m) < 1e-3
    assert (error_m[inner] < 1e-2).mean() > 0.999
    assert (error_m < 1e-2).mean() > 0.99


def scene(geoms, camera='pos="0 0 0"', extra=""):
    """A model with the given geoms and a camera called head that looks along world -z unless told otherwise."""
    model = mujoco.MjModel.from_xml_string('<mujoco><worldbody><camera name="head" '
                                           f'{camera}/>{geoms}</worldbody>{extra}</mujoco>')
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return model, data


def numbers(values):
    return " ".join(map(str, values))


def random_scene(seed, count=40):
    """Primitives of every kind, size (5 mm to 1 m) and pose around the camera, some touching or enclosing it."""
    rng = np.random.default_rng(seed)
    geoms = ""
    for k in range(count):
        size = np.exp(rng.uniform(np.log(0.005), np.log(0.8), 3))
        position, quat = rng.uniform(-2.5, 2.5, 3), rng.normal(size=4)
        geoms += (f'<geom type="{SHAPES[k % len(SHAPES)]}" size="{numbers(size)}" pos="{numbers(position)}" '
                  f'quat="{numbers(quat)}"/>')
    q = rng.normal(size=4)
    return scene(geoms, f'pos="{rng.uniform(-0.5, 0.5)} 0 0" quat="{q[0]} {q[1]} {q[2]} {q[3]}"')


def render(model, data, size=128, **options):
    return DepthCamera(model, size, **options).render(data, np.empty((size, size), np.float32))


@pytest.mark.parametrize("size", [64, 128, 256])
def test_random_scenes_agree_with_rays(size):
    depths, oracles, ids = [], [], []
    for seed in range(6400 // size):
        model, data = random_scene(seed)
        depths.append(render(model, data, size))
        depth, hit = cast_rays(model, data, size)
        oracles.append(depth)
        ids.append(hit)
    assert_agrees(depths, oracles, ids)


@pytest.mark.parametrize("size", [64, 128])
def test_homes_agree_with_rays(size):
    from rearrange.home.apartments.layouts import make_layout
    from rearrange.home.simulation.mujoco.build_model import compile_home

    depths, oracles, ids = [], [], []
    for split in ("train", "val", "test"):
        layout = make_layout(split, 0)
        model = compile_home(layout)
        data = mujoco.MjData(model)
        camera = DepthCamera(model, size)
        rng = np.random.default_rng(0)
        for _ in range(6):
            for joint, value in (("base_x", rng.uniform(0.5, layout.size_m[0] - 0.5)),
                                 ("base_y", rng.uniform(0.5, layout.size_m[1] - 0.5)),
                                 ("base_yaw", rng.uniform(-np.pi, np.pi)), ("shoulder_lift", rng.uniform(-1, 1)),
                                 ("elbow_flex", rng.uniform(-2, 2))):
                data.joint(joint).qpos = value
            mujoco.mj_forward(model, data)
            depths.append(camera.render(data, np.empty((size, size), np.float32)).copy())
            depth, hit = cast_rays(model, data, size)
            oracles.append(depth)
            ids.append(hit)
    assert_agrees(depths, oracles, ids)


@pytest.mark.parametrize("shape", ["box", "cylinder", "capsule", "sphere"])
@pytest.mark.parametrize("offset_m", [0.0, 0.31, 0.42, 0.5005, 0.502, 0.51, 0.6, 0.75])
def test_from_inside_to_close_outside(shape, offset_m):
    """The camera leaves a shape along an oblique line; at 0.5 m it is at the surface of the sphere."""
    direction = np.array([0.48, 0.6, 0.64])
    depths, oracles, ids = [], [], []
    for sign in (-1, 1):
        x, y, z = sign * offset_m * direction
        model, data = scene(f'<geom type="{shape}" size=".5 .35 .25" quat="1 .2 .3 .1" pos="{x} {y} {z}"/>', 'quat="1 '
                            '.3 -.5 .2"')
        depths.append(render(model, data))
        depth, hit = cast_rays(model, data, 128)
        oracles.append(depth)
        ids.append(hit)
    assert_agrees(depths, oracles, ids)


def test_a_wall_along_the_camera_reaches_behind_it():
    """A long wall 2 cm beside the camera, and a table edge that passes under it: no clipping artefacts."""
    model, data = scene('<geom type="box" size=".01 5 5" pos=".03 0 0"/><geom type="box" size="2 .01 2" pos="0 '
                        '-.05 .5"/>', 'quat="1 .02 .03 .01"')
    depth, ids = cast_rays(model, data, 128)
    image = render(model, data)
    assert_agrees([image], [depth], [ids])
    assert image.min() < 0.01


def test_codes_name_the_shape_and_the_face_that_is_seen():
    slopes = pixel_slopes(128, 2 / 128)
    same_shape, same_normal = [], []
    for seed in range(20):
        model, data = random_scene(seed)
        shapes, halves = shape_table(model)
        inverse_depth, codes = np.empty((128, 128), np.float32), np.empty((128, 128), np.int32)
        draw(shapes, halves, data.geom_xpos, data.geom_xmat, data.cam_xpos, data.cam_xmat, 0, slopes, slopes,
             np.float32(FAR_M), inverse_depth, codes)
        _, ids, normals = cast_rays(model, data, 128, normals=True)
        seen = (codes != NO_CODE) & (ids >= 0)
        geoms = shapes[codes // FACES, 1]
        same_shape.append((geoms == ids)[seen])
        flat = seen & (geoms == ids) & np.isin(model.geom_type[ids], (0, 6))
        axes = data.geom_xmat.reshape(-1, 3, 3).transpose(0, 2, 1)[ids[flat], codes[flat] % FACES]
        same_normal.append(np.abs((axes * normals[flat]).sum(axis=1)) > 0.999)
    assert np.concatenate(same_shape).mean() > 0.99
    assert np.concatenate(same_normal).mean() > 0.99


def test_row_zero_is_up_and_column_zero_is_left():
    model, data = scene('<geom type="sphere" size=".4" pos="-1 1.4 -2"/>')
    image = render(model, data, 64)
    seen = np.argwhere(image < 1).mean(axis=0)
    assert seen[0] < 20 and seen[1] < 25


def test_a_known_distance_and_the_far_limit():
    model, data = scene('<geom type="box" size="9 9 .5" pos="0 0 -4.5"/>')
    assert np.allclose(render(model, data, 64), 0.4,
                       atol=1e-6)  # z-depth: the same for all pixels of a wall across the view
    assert np.allclose(render(model, data, 64, far_m=5.0), 0.8, atol=1e-6)
    assert np.all(render(model, data, 64, far_m=3.0) == 1.0)


def test_hidden_groups_and_transparent_geoms_are_not_seen():
    model, data = scene('<geom type="box" size="9 9 .5" pos="0 0 -2.5" group="4"/><geom type="sphere" size="1" '
                        'pos="0 0 -6" rgba="1 1 1 0"/>')
    assert np.allclose(render(model, data, 64), 0.2, atol=1e-6)
    assert np.all(render(model, data, 64, hide_groups=(4,)) == 1.0)


def test_an_endless_plane_is_seen_from_its_front_only():
    model, data = scene('<geom type="plane" size="0 0 .1" pos="0 0 -1"/>')
    assert np.allclose(render(model, data, 64), 0.1, atol=1e-6)
    model, data = scene('<geom type="plane" size="0 0 .1" pos="0 0 1"/>', 'quat="0 1 0 0"')
    assert np.all(render(model, data, 64) == 1.0)


def test_moving_bodies_are_followed_and_the_image_repeats_bit_for_bit():
    model, data = scene('<body name="ball"><freejoint/><geom type="sphere" size=".2"/></body>')
    camera, out = DepthCamera(model, 64), np.empty((64, 64), np.float32)
    minima = []
    for z_m in (-1.0, -3.0, 50.0):
        data.qpos[:3] = (0, 0, z_m)
        mujoco.mj_forward(model, data)
        first = camera.render(data, out).copy()
        assert np.array_equal(first, camera.render(data, out))
        minima.append(first.min())
    assert np.allclose(minima, [0.08, 0.28, 1.0], atol=1e-3)


def test_shapes_that_cannot_be_drawn_are_named():
    model, _ = scene('<geom name="egg" type="ellipsoid" size=".1 .2 .3"/>')
    with pytest.raises(ValueError, match="egg.*capsule"):
        DepthCamera(model)


def test_cameras_and_pictures_compile_their_kernels_for_one_set_of_argument_types():
    """In a process of its own, so that nothing else compiles; one set: see `raster_kernels.compiled`."""
    code = """
import mujoco, numpy as np
from rearrange.home.pictures import paint, picture, raster, raster_kernels as kernels, shading
from rearrange.home.simulation.mujoco import compile_kernels
for compile_now in (compile_kernels.depth, compile_kernels.codes, compile_kernels.paint):
    compile_now()
def counts(module, *names):
    return [len(getattr(module, name).signatures) for name in names]
def shown(model, depth, width, height, place, marks):
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    raster.DepthCamera(model, len(depth)).render(data, depth)
    painter = picture.Painter(model, width, height)
    painter.render(data, place, np.zeros(3), marks)
    assert counts(kernels, "draw_depth", "normalise", "draw_depth_and_codes") == [1, 1, 1]
    assert counts(shading, "occlusion", "blur", "blend_shapes", "blend_line") + counts(paint, "paint") == [1] * 5
xml = "<mujoco><worldbody><camera name='head'/><geom size='.1' pos='0 0 -1'/>{}</worldbody></mujoco>"
place, far = (0.0, 0.0, -1.0), np.ones(3)
marks = [picture.WireBox(place, (0.1, 0.1, 0.1)), picture.Sphere((0.0, 0.0, 0.0), 0.1)]
shown(mujoco.MjModel.from_xml_string(xml.format("")), np.empty((16, 16), np.float32), 16, 16, (0.0, -1.0, 0.0), marks)
marks = [picture.WireBox(place, place), picture.Ghost("box", (1, 1, 1), place), picture.Sphere(place, 1)]
other = mujoco.MjModel.from_xml_string(xml.format("<geom size='.2'/>"))
shown(other, np.empty((64, 64, 1), np.float32)[:, :, 0], 40, 32, far, marks)
"""
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr


def test_a_plane_without_a_size_is_endless():
    assert box_half_extents(PLANE, np.array([0.0, 2.0, 0.1])) == (1e3, 2.0, 0.0)
