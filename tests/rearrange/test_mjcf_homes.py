"""Homes in MuJoCo's XML: what the file says, and what its names say, is what the simulator and the skills find."""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import mujoco
import numpy as np
import pytest

from rearrange.command_line.cli import main
from rearrange.home.errors import UserError
from rearrange.home.simulation.scenes import mjcf_compile
from rearrange.home.simulation.scenes.mjcf import MjcfHomes
from rearrange.home.simulation.scenes.mjcf_shapes import seen_of
from rearrange.home.simulation.scenes.scene import data_set, load_scene
from rearrange.home.simulation.scenes.scene_selection import refused
from skills import make_env
from tests.rearrange.mjcf_data import KITCHEN, make_homes
from tests.waiting import until


@pytest.fixture(scope="module")
def homes(tmp_path_factory):
    return make_homes(tmp_path_factory.mktemp("mjcf") / "homes")


def changed(tmp_path, *changes):
    """The kitchen with some of its text replaced, in a file of its own."""
    text = KITCHEN
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    file = tmp_path / "kitchen.xml"
    file.write_text(text)
    return file


def test_a_kitchen_has_what_its_names_say(homes):
    home = load_scene(homes, "kitchen").home
    origin = np.array(home.origin_m)
    assert home.layout.name == "homes/kitchen" and np.allclose(origin, (-3, -3, 0))
    assert home.links == {"drawer_1": ("counter", "drawer"), "fridge_door": ("fridge_a", "door")}
    drawer, door = home.layout.bodies
    assert drawer.range_m_or_rad == (0.0, 0.5) and drawer.yaw_rad == pytest.approx(0.0)
    # The door's range is -2.2 .. 0 about an axis downwards: it opens 2.2 rad about one upwards, at (0.35, 0.37) turned.
    assert door.range_m_or_rad == pytest.approx((0.0, 2.2)) and door.hinge_sign == 1.0
    assert np.allclose(np.add(door.position_m, origin), (2.65 - 0.35, -0.37, 0.0), atol=1e-6)
    assert math.cos(door.yaw_rad) == pytest.approx(-1.0)
    places = {place.name: place for place in home.layout.receptacles}
    assert {name: (place.kind, place.closed, place.link) for name, place in places.items()} == {
        "table_top": ("table", False, None), "counter_top": ("counter", False, None),
        "in_drawer": ("drawer", True, "drawer_1"), "shelf": ("fridge", True, "fridge_door")}
    assert np.allclose(np.add(places["table_top"].center_m, origin), (-1, -1, 0.62), atol=1e-3)  # not on the apple
    assert places["shelf"].center_m[2] == pytest.approx(0.71, abs=1e-3)


def test_a_drawer_and_a_door_move_as_in_the_file(homes):
    env = make_env("open_cabinet", depth_size=32, scene_dataset=str(homes), scenes="kitchen")
    env.reset(options={"episode": 0})
    sim = env.unwrapped.sim
    file = mujoco.MjModel.from_xml_path(str(homes / "kitchen.xml"))
    data, origin = mujoco.MjData(file), np.array(sim.home.scene.origin_m)
    # Of the door a point at its far edge; its frame here is at the hinge, 0.02 m beside that of the file.
    for joint, body, name, opening, sign, point, shift in (
            ("slide", "drawer", "drawer_1", 0.3, 1.0, (0.1, 0.2, 0.3), (0.0, 0.0, 0.0)),
            ("door", "door", "fridge_door", 1.1, -1.0, (-0.05, -0.37, 0.85), (0.0, 0.02, 0.0))):
        data.joint(joint).qpos = sign * opening
        mujoco.mj_kinematics(file, data)
        sim.set_joint(name, opening)
        sim.place_robot(3.0, 3.0, 0.0)  # brings positions up to date
        here, there = sim.data.body(name), data.body(body)
        assert np.allclose(here.xpos + here.xmat.reshape(3, 3) @ np.subtract(point, shift) + origin,
                           there.xpos + there.xmat.reshape(3, 3) @ point, atol=1e-6)
    assert np.allclose(sim.handle_position("drawer_1") + origin, data.site("handle_slide").xpos, atol=1e-6)


def test_pictures_show_what_is_for_the_eye_and_contacts_what_collides(homes):
    loaded = load_scene(homes, "kitchen")
    assert [len(part.solids) for part in loaded.pieces.parts] == [2, 1]
    of_door = [mesh for mesh in loaded.pieces.meshes if mesh.row == 1]
    assert len(of_door) == 1 and np.ptp(of_door[0].vertices[:, 0]) == pytest.approx(0.02)  # the thin one
    wood = [mesh for mesh in loaded.pieces.meshes if np.allclose(mesh.rgb(), (0.6, 0.4, 0.2))]
    assert len(wood) == 1
    env = make_env("pick", depth_size=32, scene_dataset=str(homes), scenes="kitchen")
    env.reset(options={"episode": 0})
    sim = env.unwrapped.sim
    sim.place_robot(3.0, 3.0, math.pi / 2)
    depth = sim.depth_image(64)
    assert 0.0 < depth.min() < depth.max() <= 1.0 and np.isfinite(depth).all()


@pytest.mark.parametrize("kind, size, volume", [
    ("box", "0.1 0.2 0.3", 8 * 0.006), ("sphere", "0.2", 4 / 3 * math.pi * 0.008),
    ("cylinder", "0.1 0.3", math.pi * 0.01 * 0.6), ("ellipsoid", "0.1 0.2 0.3", 4 / 3 * math.pi * 0.006),
    ("capsule", "0.1 0.3", math.pi * 0.01 * 0.6 + 4 / 3 * math.pi * 0.001)])
def test_triangles_of_a_shape_enclose_it_and_face_outwards(kind, size, volume):
    geom = f'<geom type="{kind}" size="{size}"/>'
    model = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{geom}</worldbody></mujoco>")
    vertices, triangles = seen_of(model, 0)
    a, b, c = (vertices[triangles[:, k]] for k in range(3))
    assert 0.9 * volume < np.einsum("ij,ij->i", a, np.cross(b, c)).sum() / 6 <= volume * 1.0001


COLOURS = """<mujoco><default><default class="ghost"><geom rgba="0 1 0 0"/></default>
<default class="glazed"><geom material="glass"/></default></default>
<asset><texture name="red_blue" type="2d" builtin="checker" rgb1="1 0 0" rgb2="0 0 1" width="16" height="16"/>
<material name="wood" rgba="0.6 0.4 0.2 1"/><material name="glass" rgba="0.2 0.3 0.4 0"/>
<material name="tiles" texture="red_blue"/></asset>
<worldbody>
<geom name="plain" size="1"/><geom name="painted" size="1" rgba="0 0 1 0.5"/>
<geom name="nothing" size="1" rgba="1 1 1 0"/>
<geom name="wood" size="1" material="wood"/><geom name="red wood" size="1" material="wood" rgba="1 0 0 1"/>
<geom name="no wood" size="1" material="wood" rgba="1 0 0 0"/><geom name="glass" size="1" material="glass"/>
<geom name="red glass" size="1" material="glass" rgba="1 0 0 1"/>
<geom name="default glass" size="1" material="glass" rgba="0.5 0.5 0.5 1"/>
<geom name="ghost" size="1" class="ghost"/><geom name="wooden ghost" size="1" class="ghost" material="wood"/>
<geom name="glazed" size="1" class="glazed"/><geom name="blue glazed" size="1" class="glazed" rgba="0 0 1 1"/>
<geom name="group 2" size="1" group="2"/><geom name="group 3" size="1" group="3" material="wood"/>
<geom name="tiles" size="1" material="tiles"/><geom name="green tiles" size="1" material="tiles" rgba="0.5 1 0.5 1"/>
<body name="thing"><geom name="in a body" size="1" material="wood" rgba="0.1 0.2 0.3 1"/>
<geom name="not in it" size="1" rgba="1 0 0 0"/></body>
</worldbody></mujoco>"""


def test_what_is_seen_and_its_colour_are_those_of_mujocos_own_scene(tmp_path):
    (tmp_path / "room.xml").write_text(COLOURS)
    model = mujoco.MjModel.from_xml_string(COLOURS)
    data, scene = mujoco.MjData(model), mujoco.MjvScene(model, 100)
    mujoco.mj_forward(model, data)
    mujoco.mjv_updateScene(model, data, mujoco.MjvOption(), None, mujoco.MjvCamera(), mujoco.mjtCatBit.mjCAT_ALL, scene)
    drawn = [(model.geom(geom.objid).name, geom.rgba[:3]) for geom in scene.geoms[:scene.ngeom]]
    assert {"no wood", "glass", "group 3", "not in it"}.isdisjoint(name for name, _ in drawn) and len(drawn) == 10
    tiles = {"tiles", "green tiles"}  # the texture, which is half red and half blue, is drawn as its mean
    wanted = [rgb * (0.5, 0.0, 0.5) if name in tiles else rgb for name, rgb in drawn]
    seen = MjcfHomes(tmp_path).pieces("room").meshes
    assert np.allclose([mesh.rgb() for mesh in seen], wanted, atol=1e-3)


def test_depth_images_do_not_show_what_is_invisible_and_intangible(tmp_path):
    table, plain, haunted = '<body name="table" pos="-1 -1 0">', changed(tmp_path), tmp_path / "haunted.xml"
    ghost = '<geom type="box" size="2 2 2" material="wood" rgba="1 0 0 0" contype="0" conaffinity="0"/>'
    haunted.write_text(plain.read_text().replace(table, table + ghost))
    shapes = [[mesh.vertices for mesh in MjcfHomes(file).pieces(file.stem).meshes] for file in (plain, haunted)]
    assert all(np.array_equal(a, b) for a, b in zip(*shapes, strict=True))


def test_every_skill_begins_and_ends_in_a_kitchen(homes):
    assert refused(load_scene(homes, "kitchen").home) == {}
    for skill in ("pick", "place", "navigate", "open_cabinet", "close_cabinet", "open_fridge", "close_fridge"):
        env = make_env(skill, depth_size=0, scene_dataset=str(homes), scenes="kitchen")
        _, info = env.reset(options={"episode": 0})
        assert info["scene"] == "homes/kitchen"
        assert math.isfinite(env.step(env.action_space.sample() * 0)[1])


@pytest.mark.parametrize("skill", ["pick", "open_cabinet", "close_fridge"])
def test_an_expert_solves_a_skill_there(homes, skill, tmp_path):
    assert main(["eval", f"skill={skill}", "agent=expert", "episodes=1", f"sim.scene_dataset={homes}",
                 "sim.scenes=kitchen", f"output={tmp_path}"]) == 0
    assert json.loads(next(tmp_path.rglob("metrics.json")).read_text())["success"] == 1.0


def test_list_check_and_view(homes, tmp_path, capsys):
    assert main(["scenes", "list", f"dataset={homes}"]) == 0
    assert capsys.readouterr().out == "empty\nkitchen\n"
    assert main(["scenes", "check", f"dataset={homes}"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines if line.startswith("kitchen")] == [
        ["kitchen", "1", "1", "2", "1", "1", "4", lines[2].split()[7], "1"],
        ["kitchen", *["yes"] * 7, "no", "yes", "no"]]
    assert "  no skill at all: the scene declares no receptacle, and none is found from its shape (empty)" in lines
    assert main(["scenes", "view", f"dataset={homes / 'kitchen.xml'}", f"out={tmp_path / 'it.png'}"]) == 0
    assert (tmp_path / "it.png").stat().st_size > 1000


BAD = {  # what is replaced, by what, and what is said
    "no XML": ("</worldbody>", "", "MuJoCo says"),
    "a mesh that is not there": ('mesh="roof"', 'mesh="ceiling"', "MuJoCo says"),
    "a number that is none": ('pos="0 3.05 1.2"', 'pos="nan 3.05 1.2"', "geom elements with numbers that are not"),
    "two joints": ('<joint name="slide"', '<joint name="turn"/><joint name="slide"',
                   "body 'drawer' has 2 joints, 'turn' and 'slide'"),
    "a handle of nothing": ("handle_slide", "handle_slid", "joint 'slid', which there is not"),
    "a handle elsewhere": ("handle_slide", "handle_door", "should be in the body that joint 'door' moves, 'door'"),
    "a receptacle that is no box": ('"receptacle_shelf" type="box"', '"receptacle_shelf" type="sphere"',
                                    "site receptacle_shelf should be a box"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_a_sentence(name, tmp_path, capsys):
    old, new, words = BAD[name]
    file = changed(tmp_path, (old, new))
    assert main(["scenes", "check", f"dataset={file}"]) == 2
    shown = capsys.readouterr()
    (line,) = (line for line in shown.out.splitlines() if words in line)
    assert str(file) in line and "1 problem." in shown.err and "Traceback" not in shown.err
    with pytest.raises(UserError, match="kitchen.xml cannot be used"):
        load_scene(file, "kitchen")


GEOM, MESH, FLAT = '<geom size="1"/>', '<geom type="mesh" mesh="m"/>', '<texture name="t" type="2d" builtin="flat"'


def _copies(count: int, what: str) -> str:
    return f'<replicate count="{count}" offset="1 0 0">{what}</replicate>'


UNBOUNDED = {  # what is put before the worldbody, and into it, and what is said
    "replicate": ("", _copies(3000, _copies(3000, GEOM)),
                  "<replicate> elements and those around them stand for more than 100,000"),
    "replicate of all that is in it": ("", _copies(50000, f"<body>{GEOM}</body>"), "<geom>"),
    "composite": ("", '<composite type="cable" count="200000 1 1" curve="s" size="1">'
                      '<geom type="capsule" size=".1"/></composite>', "<composite>"),
    "flexcomp": ("", '<flexcomp name="f" type="grid" count="300 300 300" spacing="1 1 1" radius=".1"/>', "<flexcomp>"),
    "a soft thing": ("", '<flexcomp name="f" type="grid" count="3 3 1" spacing=".1 .1 .1" dim="2" radius=".01"/>',
                     "a flex or a skin"),
    "a texture": (f'<asset>{FLAT} width="90000" height="90000"/></asset>', "", "texture 't' is 90000 x 90000"),
    "a height field": ('<asset><hfield name="h" nrow="90000" ncol="90000" size="1 1 1 1"/></asset>', "",
                       "hfield 'h' is 90000 x 90000"),
    "a height field that only shows": (
        '<asset><hfield name="h" nrow="3" ncol="3" size="1 1 1 1"/></asset>',
        '<geom name="hill" type="hfield" hfield="h" contype="0" conaffinity="0"/>', "'hill' is of the type hfield"),
    "memory": ('<size memory="900G"/>', "", "allocate"),
    "user data": ('<size nuserdata="2000000000"/>', "", "<size> has nuserdata=2000000000, more than 1,000,000"),
    "user data of geoms": ('<size nuser_geom="900000"/>', _copies(3000, GEOM), "4 GiB of memory"),
    "a made mesh": ('<asset><mesh name="m" builtin="plate" params="30000 30000"/></asset>', MESH, "memory"),
    "a colour that is none": ("", '<geom size="1" rgba="nan 0 0 1"/>', "geom elements with numbers that are not"),
    "elements in elements": ("", "<frame>" * 5000 + "</frame>" * 5000, "nesting is too deep"),
    "a file that includes itself": ("", '<include file="home.xml"/>', "already included"),
    "a file that attaches itself": ('<asset><model name="m" file="home.xml"/></asset>',
                                    '<attach model="m" prefix="m"/>', "crashed on it"),
    "a pipe that is included": ("", '<include file="pipe"/>', "pipe cannot be read (it is no regular file"),
    "a pipe as a mesh": ('<asset><mesh name="m" file="pipe"/></asset>', MESH, "pipe, which is no regular file"),
    "a pipe as a mesh whose folder is left out": (
        '<compiler strippath="true"/><asset><mesh name="m" file="there/pipe.stl"/></asset>', "",
        "pipe.stl, which is no"),
    "a pipe as a texture": ('<compiler texturedir="in"/><asset><texture name="t" type="2d" file="pipe"/></asset>', "",
                            "pipe, which is no regular"),
    "a pipe as the model that is attached": ('<asset><model name="m" file="in/pipe"/></asset>',
                                             '<attach model="m" prefix="m"/>', "pipe cannot"),
}


@pytest.mark.parametrize("name", UNBOUNDED)
def test_a_file_that_grows_or_never_ends_is_a_sentence(name, tmp_path, capsys):
    (tmp_path / "in").mkdir()
    for pipe in (tmp_path / "pipe", tmp_path / "pipe.stl", tmp_path / "in" / "pipe"):
        os.mkfifo(pipe)
    before, inside, words = UNBOUNDED[name]
    file, inside = tmp_path / "home.xml", f'<geom name="floor" type="plane" size="3 3 1"/>{inside}'
    file.write_text(f"<mujoco>{before}<worldbody>{inside}</worldbody></mujoco>")
    assert main(["scenes", "check", f"dataset={tmp_path}"]) == 2
    (line,) = (line for line in capsys.readouterr().out.splitlines() if words in line)
    assert str(file) in line


def test_a_pipe_among_the_files_of_a_folder_is_a_sentence(homes, tmp_path, capsys):
    shutil.copy(homes / "kitchen.xml", tmp_path)
    os.mkfifo(tmp_path / "pipe.xml")
    assert main(["scenes", "check", f"dataset={tmp_path}"]) == 2
    shown = capsys.readouterr().out
    assert "pipe.xml cannot be read (it is no regular file" in shown and "1 of 2 scenes have all their files" in shown


SLOW = f"<mujoco><worldbody>{_copies(90000, GEOM)}</worldbody></mujoco>"


@pytest.mark.parametrize("limit, value", [("MOST_CPU_S", 1), ("MOST_WAIT_S", 2.0)])
def test_the_limit_of_time_ends_what_is_not_counted(limit, value, tmp_path, monkeypatch):
    monkeypatch.setattr(mjcf_compile, limit, value)
    (tmp_path / "slow.xml").write_text(SLOW)
    with pytest.raises(UserError, match=f"slow.xml cannot be used: MuJoCo has not compiled it in {value} s"):
        MjcfHomes(tmp_path).pieces("slow")


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_signal_ends_the_check_of_a_slow_file_and_its_compiler(number, tmp_path):
    (tmp_path / "slow.xml").write_text(SLOW)
    process = subprocess.Popen([sys.executable, "-m", "rearrange", "scenes", "check", f"dataset={tmp_path}"],
                               stdout=subprocess.DEVNULL)
    file = str(tmp_path / "slow.xml").encode()

    def compilers() -> list[str]:
        return [pid for pid in os.listdir("/proc") if pid.isdigit() and file in _command_line(pid)]

    try:
        until(compilers, "a compiler")
        process.send_signal(number)
        assert process.wait(60.0) != 0
        until(lambda: not compilers(), "the end of the compiler")
    finally:
        process.kill()


def _command_line(pid: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def test_a_home_of_thousands_of_geoms_and_hundreds_of_drawers_is_read(tmp_path):
    """Each geom is looked at once, not once for each other geom of its body or each piece of furniture."""
    inside = '<joint type="slide" range="0 .5"/><geom size=".1"/>'
    drawers = "".join(f'<body name="drawer_{k}" pos="{k} 0 0">{inside}</body>' for k in range(200))
    geoms = '<geom type="box" size=".1 .1 .1" pos="0 0 1"/>' * 6000
    shelves = f'<body name="shelves">{geoms}<body name="chest">{drawers}</body></body>'
    (tmp_path / "home.xml").write_text(f"<mujoco><worldbody>{shelves}</worldbody></mujoco>")
    code = ("import sys; from pathlib import Path; from rearrange.home.simulation.scenes.mjcf import MjcfHomes;"
            "print(MjcfHomes(Path(sys.argv[1])).figures('home'))")
    process = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    try:
        until(lambda: process.poll() is not None, "the figures of the home")
        assert "slides=200" in process.stdout.read()
    finally:
        process.kill()
        process.wait()


def test_a_door_without_a_receptacle_behind_it_is_no_fridge(tmp_path):
    file = changed(tmp_path, ("fridge_a", "closet"))
    assert set(refused(load_scene(file, "kitchen").home)) == {"open_fridge", "close_fridge"}


@pytest.mark.parametrize("ref, span", [("0", (0.0, 0.5)), ("0.1", (-0.1, 0.4))])
def test_an_opening_is_counted_from_how_the_file_has_the_body(tmp_path, ref, span):
    (drawer, _) = MjcfHomes(changed(tmp_path, ('range="0 0.5"', f'range="0 0.5" ref="{ref}"'))).pieces("kitchen").parts
    assert drawer.range == pytest.approx(span)


FOLLOWERS = """<mujoco><compiler angle="radian"/><worldbody><geom name="floor" type="plane" size="3 3 1"/>
<body name="chest"><body name="upper" pos="0 0 1">
<joint name="upper" type="slide" axis="1 0 0" range="0 0.5" ref="0.1"/><geom size="0.1"/></body>
<body name="lower"><joint name="lower" type="slide" axis="-1 0 0" range="-0.4 0"/><geom size="0.1"/></body>
<body name="lid"><joint name="lid" axis="0 -1 0" range="-2 1" ref="0.2"/><geom size="0.1"/></body></body></worldbody>
<equality><joint joint1="lower" joint2="upper" polycoef="0 -0.7 -0.2 0 0"/>
<joint joint1="lid" joint2="lower" polycoef="0 3 0 5 0"/>
<joint joint1="upper" joint2="lid" active="false"/></equality></mujoco>"""


def test_joints_that_equality_ties_follow_each_other_as_in_the_file(tmp_path):
    (tmp_path / "chest.xml").write_text(FOLLOWERS)
    model = mujoco.MjModel.from_xml_string(FOLLOWERS)
    data = mujoco.MjData(model)
    parts = {part.link: part for part in MjcfHomes(tmp_path).pieces("chest").parts}
    openings = {"upper": 0.37}
    for name in ("lower", "lid"):
        leader, terms = parts[name].follows
        openings[name] = sum(term * openings[list(parts)[leader]] ** power for power, term in enumerate(terms))
    for name, opening in openings.items():  # the joint's value at this opening may count the other way
        sign = 1.0 if float(parts[name].axis @ model.joint(name).axis) > 0.0 else -1.0
        data.joint(name).qpos = model.joint(name).qpos0 + sign * opening
    mujoco.mj_forward(model, data)
    assert np.allclose(data.efc_pos[:data.ne], 0.0, atol=1e-9) and data.ne == 2
    assert openings["lower"] > 0.2 and abs(openings["lid"]) > 0.5 and parts["upper"].follows is None
    (tmp_path / "chest.xml").write_text(FOLLOWERS.replace(' active="false"', ""))
    mjcf_compile.compiled.cache_clear()
    with pytest.raises(UserError, match="follows itself"):
        MjcfHomes(tmp_path).pieces("chest")


def test_an_opening_ends_where_what_follows_it_by_a_polynomial_does(tmp_path):
    """lower = 0.7 x + 0.2 x^2 of the opening x of upper, at most 0.2 m; lid = 3 y + 5 y^3 of it."""
    (tmp_path / "chest.xml").write_text(FOLLOWERS.replace('range="-0.4 0"', 'range="-0.2 0"'))
    mjcf_compile.compiled.cache_clear()
    upper, lower, lid = MjcfHomes(tmp_path).pieces("chest").parts
    assert upper.range == pytest.approx((0.0, (math.sqrt(0.49 + 4 * 0.2 * 0.2) - 0.7) / 0.4), abs=1e-3)
    assert lower.range == pytest.approx((0.0, 0.2)) and lid.range[1] > 0.8


def test_check_says_what_of_a_file_is_not_used(homes, tmp_path, capsys):
    assert data_set(homes).unused("kitchen") == []
    end = "</worldbody>"
    file = changed(tmp_path, ('damping="3"', 'damping="3" stiffness="2"'),
                   ('<geom name="floor"', '<geom name="floor" friction="0.1"'),
                   (end, f'{end}<actuator><motor joint="slide"/></actuator><keyframe><key/></keyframe>'))
    assert main(["scenes", "check", f"dataset={file}"]) == 0
    said = "<actuator> (1), <keyframe> (1), friction and softness of geoms (1), stiffness of a joint (1)"
    assert f"  not used, though files have it: {said}" in capsys.readouterr().out.splitlines()


def test_a_folder_without_scenes_and_a_path_that_is_not_there_are_sentences(tmp_path, capsys):
    for path, words in ((tmp_path, "has no MuJoCo XML file with a <worldbody>"),
                        (tmp_path / "no.xml", "does not exist")):
        assert main(["eval", "skill=pick", "agent=random", "episodes=1", f"sim.scene_dataset={path}",
                     f"output={tmp_path / 'out'}"]) == 2
        assert words in capsys.readouterr().err
        with pytest.raises(UserError, match=words):
            data_set(path)
