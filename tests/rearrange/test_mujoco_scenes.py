"""Scenes of a data set in the embedded simulator. A home of ours, exported and read again as a scene, is the home that
it was: its pictures, receptacles, drawers and floor. What our homes do not have is made here.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace

import mujoco
import numpy as np
import pytest

from planner.detector import fit_opening
from rearrange.command_line.cli import main
from rearrange.home.apartments.episodes import Episode, read_episodes
from rearrange.home.apartments.floor_grid import floor_grid
from rearrange.home.apartments.objects import OBJECTS
from rearrange.home.episodes.generator import UNDER_BOARD_HEIGHT_M, SceneLacks, generate_in_scenes
from rearrange.home.errors import UserError
from rearrange.home.pictures.exact_kernels import SKY_RGB
from rearrange.home.pictures.looks import PLAIN
from rearrange.home.pictures.photograph import IMAGES
from rearrange.home.simulation.mujoco.simulator import MujocoSimulator
from rearrange.home.simulation.scenes.convex_parts import MOST_CORNERS, flat_pieces, hull
from rearrange.home.simulation.scenes.scene_selection import generated_episode, scenes_of, usable
from rearrange.home.simulation.scenes.scene_simulator import SceneSimulator
from rearrange.home.simulation.simulator_interface import FIRST_JOINT, SimulatorConfig
from skills import make_env
from tests.habitat.others import as_of_others
from tests.rearrange.scene_data import box, make_data_set, make_furnished_room, make_kitchen, write_glb


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """The configuration of val/0 as a data set, and its episode of Pick."""
    folder = tmp_path_factory.mktemp("exported") / "homes"
    assert main(["scenes", "export", f"out={folder}", "count=1", "episodes_of=[pick]"]) == 0
    episode = read_episodes(folder / "episodes" / "val" / "pick.json.gz")[0]
    return folder / "rearrange.scene_dataset_config.json", episode


@pytest.fixture(scope="module")
def both(exported):
    """The same home with the same episode: as a scene, as ours, and where the scene's corner is in ours."""
    config, episode = exported
    scene, ours = SceneSimulator(SimulatorConfig(), config), MujocoSimulator()
    scene.reset(scene.convert_episode(episode))
    ours.reset(episode)
    return scene, ours, np.array(scene.home.scene.origin_m)


def test_numbers_of_links_in_habs_episodes_are_the_joints_that_they_were(tmp_path):
    homes = tmp_path / "homes"
    assert main(["scenes", "export", f"out={homes}", "count=2", "episodes_of=[close_cabinet,close_fridge]"]) == 0
    config = as_of_others(homes / "rearrange.scene_dataset_config.json", tmp_path / "data")
    for kind in ("close_cabinet", "close_fridge"):
        ours, theirs = (read_episodes(folder / "episodes" / "val" / f"{kind}.json.gz")
                        for folder in (homes, config.parent))
        for expected, episode in zip(ours, theirs):
            found = SceneSimulator(SimulatorConfig(), config).convert_episode(episode)
            assert expected.articulated and found.articulated == pytest.approx(expected.articulated)
            assert found.target_receptacles == expected.target_receptacles


@pytest.fixture(scope="module")
def room(tmp_path_factory):
    return make_furnished_room(tmp_path_factory.mktemp("room"))


def in_room(room, *objects, scene="furnished", **articulated) -> SceneSimulator:
    """A simulator with objects (name, point in our world)."""
    sim = SceneSimulator(SimulatorConfig(), room)
    sim.reset(Episode("made", f"small/{scene}", tuple(name for name, _ in objects),
                      tuple((*at, 1.0, 0.0, 0.0, 0.0) for _, at in objects), articulated=articulated))
    return sim


def stands(sims, shift, x, y, yaw) -> None:
    sims[0].place_robot(x - shift[0], y - shift[1], yaw)
    sims[1].place_robot(x, y, yaw)


def test_pictures_of_a_scene_are_those_of_the_home_that_it_was(both):
    scene, ours, shift = both
    points, rng = floor_grid(ours.home.layout).points_m, np.random.default_rng(1)
    off_m = []
    for _ in range(12):
        stands(both[:2], shift, *points[rng.integers(len(points))], rng.uniform(-math.pi, math.pi))
        off_m.append(10.0 * np.abs(scene.depth_image(64) - ours.depth_image(64)))
    assert np.median(off_m) < 1e-4 and np.mean(np.array(off_m) < 0.01) > 0.998


def test_receptacles_are_where_those_of_the_home_are(both):
    scene, ours, shift = both
    for theirs in ours.home.layout.receptacles:
        found = scene.home.layout.receptacle(theirs.name)
        assert (found.kind, found.link, found.closed) == (theirs.kind, theirs.link, theirs.closed)
        assert found.name not in scene.home.scene.shut_off
        if found.parent is None:
            assert np.allclose(np.add(found.center_m, shift), theirs.center_m, atol=2e-3)
            assert all(max(np.dot(side, other) for other in found.sides) > 0.999 for side in theirs.sides)


def test_a_drawer_moves_as_that_of_the_home(both):
    scene, ours, shift = both
    for sim in (scene, ours):
        sim.set_joint("drawer_1", 0.3)
        sim.place_robot(-20.0, -20.0, 0.0)  # brings positions up to date
    theirs, mine = (sim.handle_position("drawer_1") for sim in (scene, ours))
    assert np.allclose(theirs + shift, mine, atol=0.08)  # ours is the bar
    for name in scene.home.handles:
        assert scene.model.joint(name).range == pytest.approx(ours.model.joint(name).range)
    scene.set_joint("drawer_1", 0.0), ours.set_joint("drawer_1", 0.0)


def test_how_far_a_drawer_is_open_is_told_from_the_image(both):
    """By the honest planner: the front of a drawer is not taken for its back half a metre further out."""
    scene, _, _ = both
    body = scene.home.layout.bodies[0]
    frame = body.pose()
    for opening in (0.0, 0.25, 0.45):
        scene.set_joint(body.name, opening)
        scene.place_robot(frame[0] + 1.3 * math.cos(frame[2]), frame[1] + 1.3 * math.sin(frame[2]), frame[2] + math.pi)
        depth, owners = (image.ravel() for image in scene.owner_image(128))
        mine = owners == FIRST_JOINT - list(scene.home.handles).index(body.name)
        assert mine.sum() > 100
        for before in (0.0, 0.25, 0.5):
            found = fit_opening(body, scene.robot.head, depth, mine, scene.base_pose, before)
            assert found == pytest.approx(opening, abs=0.03)
    scene.set_joint(body.name, 0.0)


def test_the_floor_is_that_of_the_home(both):
    scene, ours, shift = both
    theirs, grid = floor_grid(ours.home.layout), floor_grid(scene.home.layout)
    same = [grid.is_reachable(x - shift[0], y - shift[1]) for x, y in theirs.points_m[::7]]
    assert np.mean(same) > 0.97


def test_whose_a_pixel_is(both):
    scene, ours, shift = both
    drawer = ours.home.layout.bodies[0]
    frame = drawer.pose()
    x, y = frame[0] + 1.2 * math.cos(frame[2]), frame[1] + 1.2 * math.sin(frame[2])
    stands(both[:2], shift, x, y, frame[2] + math.pi)
    theirs, mine = (sim.owner_image(64)[1] == FIRST_JOINT - list(sim.home.handles).index(drawer.name)
                    for sim in (scene, ours))
    assert mine.sum() > 50 and np.mean(theirs == mine) > 0.99


def test_an_episode_of_a_file_is_solved_by_its_expert(exported, tmp_path):
    """The same file that the home of ours runs; experts plan on what collides in the scene."""
    config, _ = exported
    assert main(["eval", "skill=pick", "agent=expert", "episodes=1", f"sim.scene_dataset={config}",
                 f"sim.episodes={config.parent / 'episodes' / 'val' / 'pick.json.gz'}", f"output={tmp_path}"]) == 0
    metrics = json.loads(next(tmp_path.rglob("metrics.json")).read_text())
    assert metrics["success"] == 1.0


# ---------------------------------------------------------------------- what is made here


def test_what_lies_flat_on_the_floor_is_driven_over_and_what_stands_is_not(room):
    sim = in_room(room)
    layout, (x0, y0, _) = sim.home.layout, sim.home.scene.origin_m
    grid = floor_grid(layout)
    assert grid.is_reachable(2.0 - x0, -2.0 - y0)  # the rug, at (2, 0, 2) in the file
    assert not grid.is_reachable(-2.0 - x0, 2.0 - y0)  # the table
    sim.place_robot(2.0 - x0, -3.2 - y0, math.pi / 2)
    for _ in range(60):
        sim.step(base=[0.6, 0.0])
    assert sim.base_pose[1] > -2.2 - y0 and sim.base_force_n == 0.0


def test_objects_rest_on_convex_parts(room):
    x0, y0, _ = in_room(room).home.scene.origin_m
    sim = in_room(room, ("003_cracker_box", (-2.0 - x0, 2.0 - y0, 0.45 + 0.105)))
    assert sim.settle_distance_m < 2e-3
    place = sim.home.layout.receptacle("top")
    assert place.center_m == pytest.approx((-2.0 - x0, 2.0 - y0, 0.45), abs=1e-3)
    assert place.kind == "table" and len(place.sides) == 4


def test_a_drawer_is_held_by_its_front_and_pulled_open(room):
    sim = in_room(room)
    front = sim.handle_position("drawer_1")
    out = sim.body_frame("drawer_1")[1][:, 0]
    sim.place_robot(front[0] + 0.9 * out[0], front[1] + 0.9 * out[1], math.atan2(-out[1], -out[0]))
    sim.hand.hold_handle("drawer_1")
    cup = sim.model.geom("suction_cup").id
    assert sim.model.geom_contype[cup] == sim.model.geom_conaffinity[cup] == 0  # it would press against the front
    sim.hand.release()
    assert sim.model.geom_contype[cup] != 0
    sim.data.qvel[sim._copy.handle_dof["drawer_1"]] = 1.5
    for _ in range(90):
        sim.step()
    assert 0.05 < sim.joint_position("drawer_1") < 0.5  # its damping has stopped it
    sim.data.qvel[sim._copy.handle_dof["drawer_1"]] = 8.0
    farthest = max((sim.step(), sim.joint_position("drawer_1"))[1] for _ in range(30))
    assert farthest == pytest.approx(0.5, abs=0.03)  # and its limit


def test_two_environments_share_what_is_drawn(room):
    one, other = in_room(room), in_room(room)
    assert one.home.meshes is other.home.meshes and one.model is not other.model


def test_a_skill_is_played_in_a_scene(room):
    env = make_env("pick", depth_size=32, scene_dataset=str(room), scenes="furnished")
    observation, info = env.reset(seed=0)
    assert info["scene"] == "small/furnished" and 0.0 < observation["depth"].min() < 1.0
    first = [env.reset(options={"episode": 3})[0]["obj_start"].tolist() for _ in range(2)]
    assert first[0] == first[1]
    assert math.isfinite(env.step(env.action_space.sample() * 0)[1])


@pytest.mark.parametrize("skill, what", [("open_fridge", "no fridge"), ("open_cabinet", "no drawer")])
def test_a_scene_without_what_a_skill_needs_is_one_sentence(room, skill, what):
    env = make_env(skill, depth_size=0, scene_dataset=str(room), scenes="bare_table")
    with pytest.raises(UserError, match=what):
        env.reset(seed=0)


# ---------------------------------------------------------------------- objects with meshes of their own

def with_jug(room, name, **fields) -> SceneSimulator:
    """On the table, upright, turned as HAB turns what has z up."""
    sim = SceneSimulator(SimulatorConfig(), room)
    x0, y0, _ = in_room(room).home.scene.origin_m
    turn = (math.sqrt(0.5), math.sqrt(0.5), 0.0, 0.0)
    sim.reset(Episode("jug", "small/furnished", (name, "013_apple"), (
        (-2.0 - x0, 2.0 - y0, 0.551, *turn), (-1.7 - x0, 2.0 - y0, 0.4875, 1.0, 0.0, 0.0, 0.0)), **fields))
    return sim


def test_an_object_of_the_data_set_has_its_own_shape(room):
    sim = with_jug(room, "jug", object_paths=())
    assert sim.settle_distance_m < 2e-3 and sim.object_position(0)[2] == pytest.approx(0.55, abs=2e-3)
    assert sorted(sim.object_half_extents(0)) == pytest.approx([0.03, 0.06, 0.1], abs=1e-3)
    body = sim.model.body("object_0")
    assert body.mass[0] == pytest.approx(0.5) and (sim.model.geom_bodyid == body.id).sum() == 2
    x, y, _ = sim.object_position(0)
    sim.place_robot(x - 1.2, y, 0.0)
    owners = sim.owner_image(128)[1]
    assert (owners == 0).sum() > 40 and (owners == 1).sum() > 5


def test_an_object_is_put_into_the_hand_by_its_top(room):
    sim = with_jug(room, "jug", object_paths=())
    x, y, _ = sim.object_position(0)
    sim.place_robot(x - 1.5, y, 0.0)
    sim.put_in_hand(0)
    assert sim.held == 0
    assert math.dist(sim.object_position(0), sim.ee_position) == pytest.approx(math.hypot(0.1, 0.0), abs=2e-3)


def test_a_folder_of_an_episode_has_meshes_for_our_objects(room):
    own, primitive = (with_jug(room, "003_cracker_box", object_paths=(folder,)) for folder in ("more", "less"))
    assert sorted(own.object_half_extents(0)) == pytest.approx([0.03, 0.06, 0.1], abs=1e-3)
    assert sorted(primitive.object_half_extents(0)) == pytest.approx([0.03, 0.079, 0.105])
    with pytest.raises(UserError, match="there is no object called 'vase': the data set .* has none, nor has less"):
        with_jug(room, "vase", object_paths=("less",))


def test_a_fine_mesh_is_drawn_coarser(tmp_path):
    from rearrange.home.simulation.scenes.objects import MOST_TRIANGLES, own_object
    from tests.rearrange.test_meshes import ball

    vertices, triangles = ball(0.05, 60)
    write_glb(tmp_path / "ball.glb", [(vertices, triangles)])
    (tmp_path / "ball.object_config.json").write_text(json.dumps({"render_asset": "ball.glb"}))
    thing = own_object(tmp_path / "ball.object_config.json")
    assert len(triangles) > 3 * MOST_TRIANGLES
    assert 500 < sum(len(mesh.triangles) for mesh in thing.meshes) <= MOST_TRIANGLES
    radii = np.linalg.norm(thing.meshes[0].vertices, axis=1)
    assert 0.035 < radii.min() and radii.max() < 0.052


# ---------------------------------------------------------------------- solids


def test_eight_corners_of_a_box_are_a_box_however_it_is_turned():
    rng = np.random.default_rng(0)
    for _ in range(50):
        half = rng.uniform(0.02, 1.0, 3)
        turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        points = box(-half, half)[0] @ turn.T + rng.normal(size=3)
        found = hull(points)
        assert found.kind == "box" and sorted(found.size) == pytest.approx(sorted(half), abs=2e-4)
        assert np.linalg.det(found.frame[:3, :3]) == pytest.approx(1.0)
        assert np.allclose(np.sort(found.corners(), axis=0), np.sort(points, axis=0), atol=1e-3)
    sheared = box((-1, -1, -1), (1, 1, 1))[0] @ np.array([(1, 0.2, 0), (0, 1, 0), (0, 0, 1)])
    assert hull(sheared).kind == "hull"


def test_a_flat_hull_has_some_thickness_and_a_large_one_few_corners():
    square = np.array([(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0.0)])
    assert np.ptp(hull(square).corners()[:, 2]) > 1e-3
    points = np.random.default_rng(0).normal(size=(5000, 3))
    points /= np.linalg.norm(points, axis=1)[:, None]
    few = hull(points).points
    assert len(few) <= MOST_CORNERS and np.abs(few).max(axis=0).min() > 0.97


def test_walls_are_cut_into_few_convex_pieces_that_keep_their_surface():
    """An L of eight triangles in one plane, as the wall around a doorway."""
    corners = np.array([(x, y, 0.0) for y in range(4) for x in range(4)])
    cells = [(0, 0), (1, 0), (2, 0), (0, 1), (0, 2)]
    squares = [(4 * y + x, 4 * y + x + 1, 4 * y + x + 5, 4 * y + x + 4) for x, y in cells]
    triangles = np.array([t for a, b, c, d in squares for t in ((a, b, c), (a, c, d))])
    pieces = flat_pieces(corners, triangles)
    assert len(pieces) == 2
    areas = []
    for piece in pieces:
        assert piece[:, 2].max() == 0.0 and piece[:, 2].min() < -0.01  # thickness behind the surface alone
        top = piece[piece[:, 2] == 0.0][:, :2]
        areas.append(np.prod(np.ptp(top, axis=0)))
    assert sum(areas) == pytest.approx(5.0)


def test_a_box_room_is_boxes():
    vertices, triangles = box((0, 0, 0), (4, 3, 0.1))
    assert [hull(piece).kind for piece in flat_pieces(vertices, triangles)] == ["box"] * 6


# ---------------------------------------------------------------------- which scenes


def make_names(folder, name, scenes):
    (folder / "scenes").mkdir(parents=True)
    for scene in scenes:
        (folder / "scenes" / f"{scene}.scene_instance.json").write_text("{}")
    config = folder / f"{name}.scene_dataset_config.json"
    config.write_text(json.dumps({"scene_instances": {"paths": {".json": ["scenes"]}}}))
    return config


def test_splits_hold_out_whole_groups(tmp_path):
    hab = [f"v3_sc{k}_staging_{i:02d}" for k in range(4) for i in range(2)]
    replica = make_names(tmp_path / "a", "replicaCAD", ["apt_0", "empty_stage", *hab])
    assert [scenes_of(replica, split, None) for split in ("train", "val")] == [hab[:6], hab[6:]]
    with pytest.raises(UserError, match="no scene of split test: choose scenes with sim.scenes="):
        scenes_of(replica, "test", None)
    other = make_names(tmp_path / "b", "others", [f"{flat}_{i}" for flat in "abcd" for i in range(2)])
    parts = [scenes_of(other, split, None) for split in ("train", "val", "test")]
    assert parts == [["a_0", "a_1", "b_0", "b_1"], ["c_0", "c_1"], ["d_0", "d_1"]]
    assert scenes_of(other, "val", "a_*, d_1") == ["a_0", "a_1", "d_1"]
    with pytest.raises(UserError, match="sim.scenes=a_0,x: no scene of .* is called 'x'"):
        scenes_of(other, "val", "a_0,x")


def test_generated_episodes_are_the_same_each_time_and_in_turn(room):
    one, again, other = (generated_episode(room, "pick", "train", "furnished,bare_table", 96, index)
                         for index in (0, 0, 1))
    assert one == again and one.scene == "small/bare_table" and other.scene == "small/furnished"


def test_what_the_arm_cannot_reach_is_not_used(room):
    home = in_room(room).home.scene
    there, used = ({place.name for place in layout.receptacles} for layout in (home.layout, usable(home)))
    assert {"top", "high"} <= there and "top" in used and "high" not in used


def test_a_board_close_under_another_is_known_by_the_room_above_it_not_by_its_name(room):
    home = in_room(room).home.scene
    top = home.layout.receptacle("top")
    assert top.kind == "table"
    x, y, _ = top.center_m
    low = replace(top, name="low_tabletop", center_m=(x, y, 0.3), clearance_m=0.3)
    level = replace(low, name="level_tabletop", center_m=(x, y, 0.9))
    layout = usable(replace(home, layout=replace(home.layout, receptacles=(top, low, level))))
    assert [place.kind for place in layout.receptacles] == ["table", "shelf", "shelf"]
    used = set()
    for index in range(60):
        episode = generate_in_scenes("pick", "made", [layout.name], index, lambda _: layout)
        ends = {episode.target_receptacles[0], episode.goal_receptacles[0]}
        used |= ends
        assert ends == {"top"} or 2 * OBJECTS[episode.objects[0]].half_height_m <= UNDER_BOARD_HEIGHT_M
    assert used == {"top", "level_tabletop"}
    with pytest.raises(SceneLacks, match="only low boards"):
        low = replace(layout, receptacles=layout.receptacles[1:2])
        generate_in_scenes("pick", "made", [layout.name], 0, lambda _: low)


# ---------------------------------------------------------------------- bad data


@pytest.mark.parametrize("words, sentence", [
    ("sim.scene_dataset=nowhere.scene_dataset_config.json", "is not a file"),
    ("sim.scene_dataset=nofolder", "or with sim=mujoco a folder of homes in MuJoCo's XML (MJCF), or one such file."),
    ("sim.scenes=palace", "no scene of"),
    ("sim.scenes=nothing", "scene small/nothing declares no receptacle, and none is found from its shape: choose"),
])
def test_what_cannot_be_is_one_sentence(room, words, sentence, capsys, tmp_path):
    given = words.replace("nowhere", str(tmp_path / "nowhere")).split()
    data = [] if "scene_dataset" in words else [f"sim.scene_dataset={room}"]
    assert main(["eval", "skill=pick", "agent=random", "episodes=1", f"output={tmp_path / 'out'}", *data, *given]) == 2
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert sentence in said and not (tmp_path / "out").exists()


def test_a_missing_part_names_its_file(tmp_path):
    config = make_data_set(tmp_path)
    (tmp_path / "objects" / "convex" / "table.glb").unlink()
    with pytest.raises(UserError, match="convex/table.glb, which .*table.object_config.json names, cannot be read"):
        SceneSimulator(SimulatorConfig(), config).reset(Episode("made", "small/flat", (), ()))


def test_a_stage_of_too_many_pieces_is_refused(room, monkeypatch, tmp_path):
    monkeypatch.setattr("rearrange.home.simulation.scenes.scene_parts.MOST_SOLIDS", 10)
    config = make_furnished_room(tmp_path)
    with pytest.raises(UserError, match="scene furnished has .* pieces that collide, more than 10"):
        SceneSimulator(SimulatorConfig(), config).reset(Episode("made", "small/furnished", (), ()))


def test_the_model_is_what_mujoco_says_it_is(room):
    """Nothing of what stands still can move, and what can be opened touches neither the carcass nor other doors."""
    model = in_room(room).model
    still = model.geom_bodyid == 0
    assert set(model.geom_contype[still & (model.geom_group == 0)].tolist()) <= {1, 16}
    moving = model.geom_bodyid == model.body("drawer_1").id
    assert moving.any() and set(model.geom_contype[moving].tolist()) == {2} and not model.geom_conaffinity[moving].any()
    assert model.jnt_type[model.joint("drawer_1").id] == mujoco.mjtJoint.mjJNT_SLIDE


def test_photographs_of_a_scene_are_those_of_the_home_that_it_was(both):
    """Depth, whose a pixel is, and the robot's colours, of both cameras; what the files hold has their colours."""
    scene, ours, shift = both
    points, rng = floor_grid(ours.home.layout).points_m, np.random.default_rng(1)
    known = scene.segmentation_names()
    own = sorted(number for number, name in ours.segmentation_names().items() if name.startswith(("robot", "object")))
    near, owned, robots, lit, shades = [], [], [], [], shades_of(scene)
    for _ in range(6):
        stands(both[:2], shift, *points[rng.integers(len(points))], rng.uniform(-math.pi, math.pi))
        for camera in ("head", "arm"):
            one, other = (sim.photograph(camera, 64, IMAGES, PLAIN) for sim in both[:2])
            near.append(10.0 * np.abs(one["depth"] - other["depth"]) < 0.01)
            theirs, mine = (np.where(np.isin(seen["segmentation"], own), seen["segmentation"], 0)[:, :, 0]
                            for seen in (one, other))
            owned.append(theirs == mine)
            off = np.abs(one["rgb"].astype(int) - other["rgb"]).max(axis=2)
            robots.append(off[(mine > 0) & (theirs == mine)])
            lit += [tuple(rgb) in shades for rgb in one["rgb"][theirs == 0].tolist()]
            assert set(np.unique(one["segmentation"]).tolist()) <= set(known)
        assert np.allclose(scene.photograph("head", 64, ("depth",), PLAIN)["depth"], scene.depth_image(64), atol=1e-4)
    assert np.mean(near) > 0.97 and np.mean(owned) > 0.99
    assert {"furniture/drawer_1", "furniture/fridge_door"} <= set(known.values())
    assert not np.concatenate(robots).any() and np.mean(lit) > 0.99


def shades_of(scene) -> set[tuple[int, ...]]:
    """What a pixel can be, computed from the files' colours: either side of each triangle in the sun, and the sky."""
    meshes, (towards, sun, sky) = scene.home.meshes, PLAIN.light.astype(float)
    normals = np.einsum("tij,tj->ti", scene.data.xmat.reshape(-1, 3, 3)[meshes.rows], meshes.normals)
    found = {SKY_RGB}
    for side in (normals, -normals):
        light = np.maximum(side @ towards, 0)[:, None] * sun + (0.775 + 0.225 * side[:, 2:]) * sky
        linear = np.minimum(np.floor(np.clip(meshes.rgb, 0, 1) ** 2.2 * light * 1023) / 1023, 1)
        srgb = np.where(linear < 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
        found |= set(map(tuple, np.round(255 * srgb).astype(int).tolist()))
    return found


def test_what_a_photograph_of_a_scene_shows_has_names_and_is_where_the_camera_is_turned(room):
    settings = dict(depth_size=16, camera_size=32, scene_dataset=str(room),
                    observations=["segmentation", "rgb", "arm_rgb"])
    (plain, info), (turned, _) = (make_env("pick", random_camera_deg=deg, **settings).reset(options={"episode": 0})
                                  for deg in (0.0, 9.0))
    names = info["segmentation_names"]
    assert len(set(names.values())) == len(names) and "furniture/table" in names.values()
    seen = {names[number] for number in np.unique(plain["segmentation"]).tolist()}
    assert {"building/floor", "building/wall"} <= seen
    assert plain["segmentation"].shape == (32, 32, 1) and plain["arm_rgb"].std() > 0
    assert all((plain[key] != turned[key]).any() for key in plain if key in ("depth", "rgb", "arm_rgb"))


def test_homes_and_scenes_are_mixed_by_their_share(room):
    """The number of an episode says where it takes place; one environment changes between both."""
    mixed = {"depth_size": 16, "split": "train", "scene_dataset": str(room), "scenes": "furnished"}
    env = make_env("place", mix=0.5, **mixed)
    scenes = [env.numbered_episode(number).scene for number in range(40)]
    there = [number for number, scene in enumerate(scenes) if scene == "small/furnished"]
    ours = [number for number in range(40) if number not in there]
    assert all(scenes[number] == f"train/{number}" for number in ours) and 10 <= len(there) <= 30
    for number in (there[0], ours[0], there[1]):
        observation, info = env.reset(options={"episode": number})
        assert info["scene"] == scenes[number] and env.sim.refuses_unsolvable(env.episode) == (number in ours)
        assert env.sim.held == env.skill.target
        assert env.observation_space.contains(env.step(env.action_space.sample() * 0)[0])
        assert env.sim.handle_position(env.sim.home.handles[0]) is not None and env.sim.object_half_extents(0)[2] > 0.0
        assert not env.sim.shadow() is env.sim and env.sim.shadow().layout_of(env.episode) is not None
    alone, homes = make_env("place", **mixed), make_env("place", mix=0.0, **mixed)
    assert {alone.numbered_episode(number).scene for number in range(8)} == {"small/furnished"}
    assert homes.numbered_episode(3) == make_env("place", depth_size=16, split="train").numbered_episode(3)
    with pytest.raises(UserError, match="sim.mix=0.5 .*sim.scene_dataset="):
        make_env("place", mix=0.5)


def test_of_two_doors_the_upper_one_is_the_fridges_and_its_handle_is_behind_the_bar_that_is_seen(tmp_path):
    sim = in_room(make_kitchen(tmp_path), scene="kitchen")
    layout, shift = sim.home.layout, np.array(sim.home.scene.origin_m)
    (door,) = layout.bodies
    (board,) = [place for place in layout.receptacles if place.link == "fridge_door"]
    assert (door.name, sim.home.scene.links["fridge_door"]) == ("fridge_door", ("refrigerator_:0000", "top_door"))
    assert board.closed and board.kind == "fridge" and board.center_m[2] == pytest.approx(0.97, abs=0.01)
    sim.place_robot(-20.0, -20.0, 0.0)
    # In the file x 0.32, y 1.27 - 0.2, z 0.3 - 0.56: on what collides, as high as the bar, not amid the door.
    assert np.allclose(np.add(sim.handle_position("fridge_door"), shift), (0.32, 0.26, 1.07), atol=0.01)
    sim.set_joint("fridge_door", math.pi / 2)
    sim.place_robot(-20.0, -20.0, 0.0)
    assert sim.handle_position("fridge_door")[0] + shift[0] > 0.8  # it opens out of the front
