"""Triangle meshes in depth images, against MuJoCo's own ray caster, which draws no face away and cuts nothing."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from rearrange.home.pictures.meshes import GROUP_TRIANGLES, Mesh, draw_meshes, mesh_table
from rearrange.home.pictures.raster import DepthCamera
from rearrange.home.pictures.raster_kernels import FACES
from tests.rearrange.scene_data import box
from tests.rearrange.test_raster import assert_agrees, cast_rays, numbers


def GREY():
    return np.array((0.5, 0.5, 0.5))


def ball(radius, rings=9):
    """A closed mesh of a ball that is a little dented: vertices and triangles, counterclockwise from outside."""
    rng = np.random.default_rng(rings)
    theta = np.linspace(0, np.pi, rings + 1)[1:-1]
    phi = np.arange(2 * rings) * np.pi / rings
    ring = [(np.sin(t) * np.cos(p), np.sin(t) * np.sin(p), np.cos(t)) for t in theta for p in phi]
    vertices = np.array([*ring, (0, 0, 1), (0, 0, -1)]) * radius
    vertices *= rng.uniform(0.8, 1.0, (len(vertices), 1))
    n, top, triangles = 2 * rings, len(ring), []
    for j in range(n):
        k = (j + 1) % n
        triangles += [(top, j, k), (top + 1, (rings - 2) * n + k, (rings - 2) * n + j)]
        for i in range(rings - 2):
            a, b, c, d = i * n + j, i * n + k, (i + 1) * n + j, (i + 1) * n + k
            triangles += [(a, c, d), (a, d, b)]
    return vertices, np.array(triangles)


def scene_of(meshes, poses, camera, primitives=""):
    """A model with each mesh on a body of its own, what `DepthCamera` draws of it, and its state."""
    assets = bodies = ""
    for n, ((vertices, triangles), (position, quat)) in enumerate(zip(meshes, poses)):
        corners, faces = numbers(vertices.ravel()), numbers(triangles.ravel())
        assets += f'<mesh name="m{n}" vertex="{corners}" face="{faces}" inertia="shell"/>'
        bodies += (f'<body pos="{numbers(position)}" quat="{numbers(quat)}">'
                   f'<geom type="mesh" mesh="m{n}" group="3"/></body>')
    model = mujoco.MjModel.from_xml_string(f'<mujoco><asset>{assets}</asset><worldbody><camera name="head" '
                                           f'{camera}/>{primitives}{bodies}</worldbody></mujoco>')
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return model, data, mesh_table(Mesh(n + 1, *mesh, GREY) for n, mesh in enumerate(meshes))


def drawn(model, data, table, size):
    return DepthCamera(model, size, hide_groups=(3,), meshes=table).render(data, np.empty((size, size), np.float32))


@pytest.mark.parametrize("size", [64, 128])
def test_meshes_and_primitives_agree_with_rays(size):
    """Balls, boxes and primitives around the camera, small and large, that stand before and in one another."""
    depths, oracles, ids = [], [], []
    for seed in range(800 // size):
        rng = np.random.default_rng(seed)
        meshes = [ball(rng.uniform(0.05, 0.6), int(rng.integers(3, 14))) if k % 2
                  else box(-(h := rng.uniform(0.02, 0.5, 3)), h) for k in range(14)]
        spots = [position * max(1.0, 1.0 / np.linalg.norm(position)) for position in rng.uniform(-2.5, 2.5, (14, 3))]
        primitives = "".join(f'<geom type="{kind}" size="0.2 0.3 0.2" '
                             f'pos="{numbers(rng.uniform(-2, 2, 3) + (0, 0, -3))}"/>'
                             for kind in ("box", "sphere", "capsule"))
        model, data, table = scene_of(meshes, [(spot, rng.normal(size=4)) for spot in spots],
                                      f'pos="0 0 0" quat="{numbers(rng.normal(size=4))}"', primitives)
        depths.append(drawn(model, data, table, size))
        depth, hit = cast_rays(model, data, size)
        oracles.append(depth)
        ids.append(hit)
    assert_agrees(depths, oracles, ids)


@pytest.mark.parametrize("eye", [(0, 0, 1.1), (1.93, 1.9, 1.1), (-1.5, 0.3, 0.02), (1.96, 0, 0.5)])
def test_walls_that_reach_behind_the_camera(eye):
    """In a room of six slabs, from its middle, from a corner, near the floor, and nearer to a wall than corners are
    projected.
    """
    slabs = [box(low, high)
             for low, high in (((-2, -2, -0.1), (2, 2, 0)), ((-2, -2, 2.5), (2, 2, 2.6)), ((-2.1, -2, 0), (-2, 2, 2.5)),
                               ((2, -2, 0), (2.1, 2, 2.5)), ((-2, -2.1, 0), (2, -2, 2.5)), ((-2, 2, 0), (2, 2.1, 2.5)))]
    still = [((0, 0, 0), (1, 0, 0, 0))] * len(slabs)
    for yaw in np.linspace(0, 2 * np.pi, 8):
        c, s = np.cos(yaw), np.sin(yaw)
        looking = f'pos="{numbers(eye)}" xyaxes="{s} {-c} 0 {0.3 * c} {0.3 * s} 1"'
        model, data, table = scene_of(slabs, still, looking)
        depth, (oracle, _) = drawn(model, data, table, 64), cast_rays(model, data, 64)
        assert (oracle < 1).all()
        assert np.abs(depth - oracle).max() < 1e-4


def test_there_is_no_gap_between_triangles():
    """A wall of many small triangles in several groups, before which nothing stands, hides all that is behind it."""
    n = 30
    grid = np.array([(x, y, -2.0) for y in np.linspace(-3, 3, n) for x in np.linspace(-3, 3, n)])
    grid += np.random.default_rng(0).uniform(-0.09, 0.09, grid.shape) * (1, 1, 0)
    cells = [(i * n + j, i * n + j + 1, (i + 1) * n + j, (i + 1) * n + j + 1) for i in range(n - 1)
             for j in range(n - 1)]
    wall = np.array([corner for a, b, c, d in cells for corner in ((a, b, d), (a, d, c))])
    assert len(wall) > 4 * GROUP_TRIANGLES
    model, data, _ = scene_of([box((-1, -1, -1), (1, 1, 1))], [((0, 0, -9), (1, 0, 0, 0))], 'pos="0 0 0"')
    depth = drawn(model, data, mesh_table([Mesh(0, grid, wall, GREY)]), 256)
    assert np.abs(depth - 0.2).max() < 1e-5


def test_faces_that_turn_away_are_not_drawn():
    vertices, triangles = box((-1, -1, -4), (1, 1, -3))
    model, data, _ = scene_of([box((-1, -1, -1), (1, 1, 1))], [((0, 0, 9), (1, 0, 0, 0))], 'pos="0 0 0"')
    front = drawn(model, data, mesh_table([Mesh(0, vertices, triangles, GREY)]), 32)
    back = drawn(model, data, mesh_table([Mesh(0, vertices, triangles[:, ::-1], GREY)]), 32)
    assert front[16, 16] == pytest.approx(0.3, abs=1e-5)
    assert back[16, 16] == pytest.approx(0.4, abs=1e-5)
    both = [drawn(model, data, mesh_table([Mesh(0, vertices, faces, GREY, two_sided=True)]), 32)[16, 16]
            for faces in (triangles, triangles[:, ::-1], triangles[4:, ::-1])]
    # The last is open: its faces, which look inwards, are seen from outside.
    assert both == pytest.approx([0.3, 0.4, 0.3], abs=1e-5)


def test_codes_name_the_triangle_that_is_seen():
    vertices, triangles = box((-1, -1, -4), (1, 1, -3))
    model, data, _ = scene_of([box((-1, -1, -1), (1, 1, 1))], [((0, 0, 9), (1, 0, 0, 0))], 'pos="0 0 0"')
    table = mesh_table([Mesh(0, vertices, triangles, GREY)])
    image, codes, slopes = np.full((9, 9), 0.1, np.float32), np.full((9, 9), -1,
                                                                     np.int32), np.linspace(-1, 1, 9, dtype=np.float32)
    draw_meshes(table, data.xpos, data.xmat, data.cam_xpos, data.cam_xmat, 0, slopes, slopes, np.float32(10), image,
                codes, 100)
    assert codes[0, 0] == -1
    seen = table.triangles[(codes[4, 4] - 100) // FACES]
    assert (table.vertices[seen][:, 2] == -3).all()  # the front
