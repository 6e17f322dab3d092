"""URDF documents mean what they mean to other readers: MuJoCo's own, and yourdfpy where it is installed.

What is not used is said.
"""

from __future__ import annotations

import json
import math

import mujoco
import numpy as np
import pytest

from rearrange.command_line.cli import main
from rearrange.home.errors import UserError
from rearrange.home.scene_files.data_set import Scene
from rearrange.home.scene_files.scene_entries import PlacedArticulated
from rearrange.home.scene_files.urdf import Urdf, read_urdf
from rearrange.home.scene_files.urdf_elements import FIXED, SLIDE
from rearrange.home.simulation.scenes.scene import data_set, load_scene, pieces_of
from rearrange.home.simulation.scenes.scene_parts import Pieces, collect
from rearrange.home.simulation.scenes.scene_selection import refused
from tests.rearrange.scene_data import declare_in_cupboard, make_furnished_room
from tests.rearrange.test_mujoco_scenes import in_room

INERTIA = '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
KINDS = ("prismatic", "revolute", "continuous", "fixed")


def drawn_document(seed: int, scale: float = 1.0) -> str:
    """A tree of eight links with several shapes each, and joints of all kinds, one of which mimics another.

    Every length is times `scale`.
    """
    chance = np.random.default_rng(seed)

    def words(values) -> str:
        return " ".join(f"{value:.6g}" for value in np.atleast_1d(values))

    def origin() -> str:
        place, turn = (chance.uniform(-span, span, 3).round(2) for span in (1, 3))
        return f'<origin xyz="{words(scale * place)}" rpy="{words(turn)}"/>'

    def shape() -> str:
        a, b, c = scale * chance.uniform(0.1, 0.5, 3).round(2)
        return ("<geometry>" + (f'<box size="{words((a, b, c))}"/>', f'<sphere radius="{words(a)}"/>',
                                f'<cylinder radius="{words(a)}" length="{words(b)}"/>')[chance.integers(3)]
                + "</geometry>")

    lines = ['<robot name="drawn"><mujoco><compiler fusestatic="false" discardvisual="false"/></mujoco>',
             '<material name="green"><color rgba="0 1 0 1"/></material>']
    for link in range(8):
        color = ('<material name="green"/>', '<material name="red"/>')[link % 2]
        if link == 5:  # those before and behind it name what it says
            color = '<material name="red"><color rgba="1 0 0 1"/></material>'
        lines.append(f'<link name="l{link}"><inertial>{origin()}<mass value="{1 + link}"/>{INERTIA}</inertial>')
        lines += [f"<visual>{origin()}{shape()}{color}</visual><collision>{origin()}{shape()}</collision>"
                  for _ in range(2)]
        lines.append("</link>")
    for link in range(1, 8):
        kind = KINDS[(link - 1) % 4]
        low, high = ((scale if kind == "prismatic" else 1.0) * value for value in (-0.1 * link, 0.3 * link))
        limit = ""
        if kind in ("prismatic", "revolute"):
            limit = f'<limit lower="{low:.6g}" upper="{high:.6g}" effort="9" velocity="9"/>'
        mimic = '<mimic joint="j2" multiplier="-0.5"/>' if link == 6 else ""
        lines.append(f'<joint name="j{link}" type="{kind}">{origin()}<parent link="l{chance.integers(link)}"/>'
                     f'<child link="l{link}"/><axis xyz="{words(chance.uniform(-1, 1, 3).round(2))}"/>{limit}'
                     f'<dynamics damping="{link}" friction="0.{link}"/>{mimic}</joint>')
    return "".join([*lines, "</robot>"])


def written(tmp_path, text: str, name: str = "drawn.urdf") -> Urdf:
    (tmp_path / name).write_text(text)
    return read_urdf(tmp_path / name)


def pieces(urdf: Urdf, scale: float = 1.0) -> Pieces:
    return collect(Scene("it", None, (), (PlacedArticulated("thing_:0000", urdf, {}, np.eye(4), scale),)))


def link_frames(urdf: Urdf, values: dict[str, float]) -> dict[str, np.ndarray]:
    """(4, 4) of each link in the root, its joints at these values."""
    frames = {urdf.root: np.eye(4)}
    for joint in urdf.joints:
        motion, value = np.eye(4), values.get(joint.name, 0.0)
        if joint.kind == SLIDE:
            motion[:3, 3] = value * joint.axis
        elif joint.kind != FIXED:
            quat, turn = np.zeros(4), np.zeros(9)
            mujoco.mju_axisAngle2Quat(quat, joint.axis, value)
            mujoco.mju_quat2Mat(turn, quat)
            motion[:3, :3] = turn.reshape(3, 3)
        frames[joint.child] = frames[joint.parent] @ joint.frame @ motion
    return frames


@pytest.mark.parametrize("seed", range(5))
def test_a_urdf_is_to_mujocos_reader_what_it_is_to_ours(tmp_path, seed):
    text = drawn_document(seed)
    urdf, model = written(tmp_path, text), mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    for joint in urdf.joints:
        theirs = model.joint(joint.name) if joint.kind != FIXED else None
        if theirs is not None:
            data.joint(joint.name).qpos = 0.2
            assert bool(theirs.limited[0]) == math.isfinite(joint.range[0])
            assert not theirs.limited[0] or np.allclose(theirs.range, joint.range)
            assert np.allclose((theirs.damping[0], theirs.frictionloss[0]), (joint.damping, joint.friction))
    mujoco.mj_kinematics(model, data)
    frames = link_frames(urdf, {joint.name: 0.2 for joint in urdf.joints})
    for name, link in urdf.links.items():
        body = model.body(name)
        assert np.allclose(data.body(name).xpos, frames[name][:3, 3])
        assert np.allclose(data.body(name).xmat.reshape(3, 3), frames[name][:3, :3])
        assert body.mass[0] == link.mass_kg and np.allclose(body.ipos, link.inertial[:3, 3])
        geoms = range(body.geomadr[0], body.geomadr[0] + body.geomnum[0])
        ours = [(shape, True) for shape in link.visuals] + [(shape, False) for shape in link.collisions]
        assert len(geoms) == len(ours) == 4
        theirs = [model.geom(geom) for geom in geoms]
        for shape, is_seen in ours:
            (geom,) = (geom for geom in theirs if np.allclose(geom.pos, shape.frame[:3, 3]))
            turn = np.zeros(9)
            mujoco.mju_quat2Mat(turn, geom.quat)
            assert np.allclose(turn.reshape(3, 3), shape.frame[:3, :3])
            assert mujoco.mjtGeom(geom.type[0]).name == f"mjGEOM_{shape.kind.upper()}"
            assert bool(geom.contype[0]) != is_seen and (not is_seen or np.allclose(geom.rgba, shape.rgba))
    (constraint,) = range(model.neq)
    leader, times = next(joint.mimic for joint in urdf.joints if joint.mimic)
    assert model.joint(model.eq_obj2id[constraint]).name == leader and model.eq_data[constraint][1] == times == -0.5


@pytest.mark.parametrize("seed", range(3))
def test_a_urdf_is_to_yourdfpy_what_it_is_to_ours(tmp_path, seed):
    yourdfpy = pytest.importorskip("yourdfpy")
    ours = written(tmp_path, drawn_document(seed))
    theirs = yourdfpy.URDF.load(str(tmp_path / "drawn.urdf"), build_scene_graph=True, load_meshes=False)
    values = {"j1": 0.2, "j2": 0.1, "j3": 0.3, "j5": -0.2, "j7": 0.4}
    longer = {joint.name: np.linalg.norm(joint.axis) if joint.type == "prismatic" else 1.0
              for joint in theirs.robot.joints}
    theirs.update_cfg({name: value / longer[name] for name, value in values.items()})  # its axes are of any length
    frames = link_frames(ours, values | {"j6": -0.5 * 0.1})
    for name, frame in frames.items():
        assert np.allclose(theirs.get_transform(name, ours.root), frame, atol=1e-6)


@pytest.mark.parametrize("scale", [0.37, 0.6, 1.7, 25.0])
def test_an_object_at_a_scale_is_the_document_with_every_length_times_the_scale(tmp_path, scale):
    scaled = pieces(written(tmp_path, drawn_document(3)), scale)
    rewritten = pieces(written(tmp_path, drawn_document(3, scale), "large.urdf"))
    for a, b in zip(scaled.parts, rewritten.parts, strict=True):
        assert np.allclose(a.frame, b.frame, atol=1e-4 * scale) and np.allclose(a.axis, b.axis)
        assert np.allclose(a.range, b.range, rtol=1e-4)
        assert (a.mass_kg, a.damping, a.friction) == (b.mass_kg, b.damping, b.friction)
        assert np.allclose(a.mass_center, b.mass_center, atol=1e-4 * scale)
        for one, other in zip(a.solids, b.solids, strict=True):
            assert np.allclose(one.corners(), other.corners(), atol=1e-4 * scale)
    for one, other in zip(scaled.meshes, rewritten.meshes, strict=True):
        assert np.allclose(one.vertices, other.vertices, atol=1e-4 * scale)
    assert [part.range for part in scaled.parts if part.kind == SLIDE][0] == pytest.approx((-0.1 * scale, 0.3 * scale))


def with_cupboard(folder, old: str = "", new: str = "", scale: float = 1.0):
    """A room with a cupboard at a scale, with a receptacle in its drawer; some text of its document replaced."""
    room = make_furnished_room(folder)
    urdf = folder / "urdf" / "cupboard" / "cupboard.urdf"
    assert old in urdf.read_text()
    urdf.write_text(urdf.read_text().replace(old, new, 1) if old else urdf.read_text())
    declare_in_cupboard(folder)
    scene = folder / "configs" / "scenes" / "furnished.scene_instance.json"
    content = json.loads(scene.read_text())
    content["articulated_object_instances"][0]["uniform_scale"] = scale
    scene.write_text(json.dumps(content))
    return room


@pytest.mark.parametrize("scale, reach_m", [(0.6, 0.3), (0.89, 0.445), (0.91, None), (1.0, None), (1.7, None)])
def test_a_drawer_that_its_scale_makes_too_short_is_said_with_both_lengths(tmp_path, scale, reach_m, capsys):
    room = with_cupboard(tmp_path, scale=scale)
    (drawer,) = pieces_of(room, "furnished").parts
    assert drawer.range == pytest.approx((0.0, 0.5 * scale))
    why = refused(load_scene(room, "furnished").home).get("open_cabinet")
    assert why == (reach_m and f"has 1 drawer, which opens {reach_m} m, below the 0.45 m that skills need")
    main(["scenes", "check", f"dataset={room}"])
    assert reach_m is None or f"the scene {why} (furnished)" in capsys.readouterr().out


def test_a_scale_below_zero_is_refused(tmp_path):
    with pytest.raises(UserError, match="above 0"):
        pieces_of(with_cupboard(tmp_path, scale=-1.0), "furnished")


TWO_DRAWERS = """<link name="drawer2"><inertial><mass value="2"/></inertial>
<collision><origin xyz="0.01 -0.3 0"/><geometry><box size="0.02 0.2 0.8"/></geometry></collision></link>
<joint name="second" type="prismatic"><origin xyz="0 0.5 0"/><parent link="body"/><child link="drawer2"/>
<axis xyz="1 0 0"/><limit lower="0" upper="0.5"/><mimic joint="slide" multiplier="0.5"/></joint></robot>"""


@pytest.mark.parametrize("pulls", ["drawer_1", "part_1"])
def test_a_joint_that_mimics_another_follows_it_and_is_no_drawer_of_its_own(tmp_path, pulls):
    room = with_cupboard(tmp_path, "</robot>", TWO_DRAWERS)
    assert set(load_scene(room, "furnished").home.links) == {"drawer_1"}
    sim = in_room(room)
    joint = {name: sim.model.joint(name) for name in ("drawer_1", "part_1")}
    assert (sim.data.tree_asleep[[sim.model.body_treeid[sim.model.body(name).id] for name in joint]] >= 0).all()
    sim.place_robot(0.5, 0.5, 0.0)
    sim.data.qvel[joint[pulls].dofadr[0]] = 2.0
    for step in range(30):
        sim.step()
        first, second = (float(sim.data.qpos[one.qposadr[0]]) for one in joint.values())
        assert step < 10 or second == pytest.approx(0.5 * first, abs=1e-3)  # the push comes upon one of them alone
    assert first > 0.03
    sim.set_joint("drawer_1", 0.4)
    assert sim.data.joint("part_1").qpos[0] == 0.2


@pytest.mark.parametrize("multiplier, upper, scale, reach_m", [
    ("0.5", "0.5", 1.0, None), ("1", "0.2", 1.0, 0.2), ("1", "0.2", 1.4, 0.28), ("-1", "0.5", 1.0, 0.0),
    ("0.1", "0.045", 1.0, 0.45), ("0.7", "0.35", 2.0, None)])
def test_a_drawer_opens_no_farther_than_what_follows_it(tmp_path, multiplier, upper, scale, reach_m):
    follower = TWO_DRAWERS.replace('multiplier="0.5"', f'multiplier="{multiplier}"')
    follower = follower.replace('upper="0.5"', f'upper="{upper}"')
    room = with_cupboard(tmp_path, "</robot>", follower, scale)
    drawer = next(part for part in pieces_of(room, "furnished").parts if part.follows is None)
    assert drawer.range == pytest.approx((0.0, 0.5 * scale if reach_m is None else reach_m))
    said = refused(load_scene(room, "furnished").home).get("open_cabinet")
    assert (said is not None) == (reach_m is not None and reach_m < 0.45)
    assert reach_m is None or said is None or reach_m == 0.0 or f"opens {reach_m} m, below the 0.45 m" in said


def test_the_last_of_a_chain_of_followers_limits_the_first(tmp_path):
    """Named before the one that it follows: 0.5 m of the first is 0.25 m of the second and 0.5 m of the third."""
    third = TWO_DRAWERS.removesuffix("</robot>").replace("drawer2", "drawer3").replace('"second"', '"third"')
    third = third.replace('joint="slide" multiplier="0.5"', 'joint="second" multiplier="2"')
    room = with_cupboard(tmp_path, "</robot>", third.replace('upper="0.5"', 'upper="0.3"') + TWO_DRAWERS)
    parts = {part.link: part for part in pieces_of(room, "furnished").parts}
    assert [parts[f"drawer{number}"].range[1] for number in (1, 2, 3)] == pytest.approx([0.3, 0.15, 0.3])


@pytest.mark.parametrize("scale", [0.5, 3.0])
def test_a_hinge_that_mimics_a_slide_turns_as_far_at_every_scale(tmp_path, scale):
    text = drawn_document(1).replace('joint="j2"', 'joint="j1"')  # j1 slides, j6 turns
    part = next(part for part in pieces(written(tmp_path, text), scale).parts if part.follows)
    assert part.follows[1] == pytest.approx((0.0, -0.5 / scale))


END, LIMIT = "</robot>", '<limit lower="0"'
URDFS = {  # what of the cupboard's document is replaced, by what, and what is said
    "two links of a name": (END, '<link name="body"/></robot>', "two links of the name 'body'"),
    "two joints of a name": (END, '<link name="x"/><joint name="slide" type="fixed"><parent link="body"/>'
                             '<child link="x"/></joint></robot>', "two joints of the name 'slide'"),
    "two materials of a name": (END, 2 * '<material name="wood"><color rgba="1 1 1 1"/></material>' + END,
                                "two materials of the name"),
    "a link without a name": (END, "<link/></robot>", "a link has no name"),
    "a colour that is none": (END, '<material name="wood"><color rgba="1 1 1"/></material></robot>',
                              "should be 4 finite numbers"),
    "mimics nothing": (LIMIT, f'<mimic joint="slid"/>{LIMIT}', "mimics 'slid', but 'slid' is no joint that moves"),
    "mimics what is fixed": (LIMIT, f'<mimic joint="fix"/>{LIMIT}', "mimics 'fix', but 'fix' is no joint"),
    "is fixed and mimics": ('<child link="body"/>', '<child link="body"/><mimic joint="slide"/>',
                            "but 'fix' is no joint"),
    "mimics itself": (LIMIT, f'<mimic joint="slide"/>{LIMIT}', "mimics itself"),
    "an offset": (LIMIT, f'<mimic joint="slide" offset="0.1"/>{LIMIT}', "has the offset 0.1; only 0"),
    "a multiplier that is none": (LIMIT, f'<mimic joint="slide" multiplier="x"/>{LIMIT}', "multiplier='x'"),
    "a size below 0": ('size="0.6 0.2 0.8"', 'size="0.6 -0.2 0.8"', "3 finite numbers from 0 to"),
    "a mass below 0": ('mass value="4"', 'mass value="-4"', "the mass of link 'drawer1' has value='-4'"),
    "a home of a light year": ('xyz="0 0.5 0"', 'xyz="0 1e16 0"', "3 finite numbers from -1e+06 to 1e+06"),
    "a joint of two ways": ('"prismatic"', '"planar"', "has the type 'planar'"),
    "a joint of six ways": ('"prismatic"', '"floating"', "has the type 'floating'"),
}


@pytest.mark.parametrize("name", URDFS)
def test_a_urdf_that_can_be_read_in_two_ways_is_a_sentence(tmp_path, name, capsys):
    old, new, words = URDFS[name]
    assert main(["scenes", "check", f"dataset={with_cupboard(tmp_path, old, new)}"]) == 2
    (line,) = (line for line in capsys.readouterr().out.splitlines() if words in line)
    assert "cupboard.urdf" in line


def test_check_says_what_of_a_urdf_is_not_used(tmp_path, capsys):
    more = ('<safety_controller k_velocity="1"/><calibration rising="0"/></joint><transmission name="t"><type>x</type>'
            '</transmission><gazebo reference="body"><x/></gazebo></robot>')
    room = with_cupboard(tmp_path, "</joint></robot>", more)
    assert main(["scenes", "check", f"dataset={room}"]) == 0
    lines = capsys.readouterr().out.splitlines()
    (line,) = (line for line in lines if line.startswith("  not used, though files have it:"))
    for what in ("<safety_controller>", "<calibration>", "<transmission>", "<gazebo>", "<limit effort=>",
                 "<limit velocity=>"):
        assert f"{what} of " in line
    assert "<x>" not in line and data_set(room).unused("bare_table") == []


def test_shapes_of_a_urdf_without_a_mesh_are_seen_in_the_colour_of_their_material(tmp_path):
    found = pieces(written(tmp_path, drawn_document(2)))
    assert len(found.meshes) == 16
    assert {tuple(mesh.rgb()) for mesh in found.meshes} == {(0.0, 1.0, 0.0), (1.0, 0.0, 0.0)}
    hidden = pieces(written(tmp_path, drawn_document(2).replace("1 0 0 1", "1 0 0 0"), "hidden.urdf"))
    assert {tuple(mesh.rgb()) for mesh in hidden.meshes} == {(0.0, 1.0, 0.0)}


@pytest.mark.parametrize("place", ["homes/box/urdf", "homes/urdf", "homes"])
def test_a_mesh_of_a_package_is_found_in_the_folder_of_that_name(tmp_path, place):
    mesh = tmp_path / "homes" / "box" / "meshes" / "a.glb"
    for folder in (mesh.parent, tmp_path / place):
        folder.mkdir(parents=True, exist_ok=True)
    mesh.touch()
    named = '<mesh filename="package://box/meshes/a.glb"/>'
    link = f'<link name="a"><visual><geometry>{named}</geometry></visual></link>'
    urdf = written(tmp_path / place, f'<robot name="r">{link}</robot>')
    assert urdf.links["a"].visuals[0].file.resolve() == mesh.resolve()


def test_simulators_of_one_scene_count_openings_of_followers_apart(tmp_path):
    room = with_cupboard(tmp_path, "</robot>", TWO_DRAWERS)
    one, other = in_room(room), in_room(room)
    one.set_joint("drawer_1", 0.3)
    assert one.data.joint("part_1").qpos[0] == 0.15 and other.data.joint("part_1").qpos[0] == 0.0
