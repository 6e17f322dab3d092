"""A small Habitat scene data set of ReplicaCAD's form, made here: a box room, a rug, a table of two convex parts, a
counter with a drawer, a fridge with two doors.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np

CONFIG = "small.scene_dataset_config.json"
_SIDES = [(0, 1, 3), (0, 3, 2), (4, 7, 5), (4, 6, 7), (0, 5, 1), (0, 4, 5),
          (2, 3, 7), (2, 7, 6), (0, 2, 6), (0, 6, 4), (1, 5, 7), (1, 7, 3)]

COUNTER = """<robot name="counter"><link name="root"/>
<link name="body"><collision><geometry><box size="0.6 0.8 1.0"/></geometry></collision>
</link>
<link name="drawer1"><inertial><mass value="5"/></inertial><visual><origin xyz="0.3 0 0"/>
<geometry><mesh filename="front.glb" scale="1, 1, 1"/></geometry></visual></link>
<joint name="fix" type="fixed"><parent link="root"/><child link="body"/></joint>
<joint name="slide" type="prismatic"><origin xyz="0 0.2 0" rpy="0 0 0"/>
<parent link="body"/><child link="drawer1"/><axis xyz="1 0 0"/>
<dynamics damping="0.5" friction="0.1"/><limit lower="0" upper="0.5" effort="1" velocity="1"/></joint></robot>"""

FRIDGE = """<robot name="fridge"><link name="body"/><link name="top_door"/><link name="bottom_door"/>
<joint name="bottom" type="revolute"><parent link="body"/><child link="bottom_door"/>
<axis xyz="0 1 0"/><limit lower="0" upper="2.5"/></joint>
<joint name="top" type="revolute"><parent link="body"/><child link="top_door"/>
<axis xyz="0 2 0"/><limit lower="0" upper="2.3"/></joint>
</robot>"""


def box(low, high) -> tuple[np.ndarray, np.ndarray]:
    """Corners (8, 3) and triangles (12, 3), seen from outside."""
    corners = np.array([[(low, high)[i][0], (low, high)[j][1], (low, high)[k][2]]
                        for i in (0, 1) for j in (0, 1) for k in (0, 1)], float)
    return corners, np.array(_SIDES)


def write_glb(path: Path, meshes: list[tuple[np.ndarray, np.ndarray]], nodes: list[dict] | None = None,
              extra: dict = {}) -> None:
    """A GLB of meshes, each with a node of its own, or with `nodes`."""
    binary, views, accessors = b"", [], []
    for vertices, triangles in meshes:
        for values, kind, width in ((np.asarray(vertices, "<f4"), 5126, "VEC3"),
                                    (np.asarray(triangles, "<u4"), 5125, "SCALAR")):
            views.append({"buffer": 0, "byteOffset": len(binary), "byteLength": values.nbytes})
            accessors.append({"bufferView": len(views) - 1, "componentType": kind, "type": width,
                              "count": len(values) if width == "VEC3" else values.size})
            binary += values.tobytes()
    content = {
        "asset": {"version": "2.0"}, "buffers": [{"byteLength": len(binary)}], "bufferViews": views,
        "accessors": accessors,
        "meshes": [{"primitives": [{"attributes": {"POSITION": 2 * i}, "indices": 2 * i + 1}]}
                   for i in range(len(meshes))],
        "nodes": nodes or [{"mesh": i} for i in range(len(meshes))]} | extra
    write_gltf(path, content, binary)


def write_gltf(path: Path, content: dict | bytes, binary: bytes) -> None:
    """A GLB of a description, as glTF has it, and of one buffer."""
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    text += b" " * (-len(text) % 4)
    size = 12 + 8 + len(text) + 8 + len(binary)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(struct.pack("<4sIIII", b"glTF", 2, size, len(text), 0x4E4F534A) + text
                     + struct.pack("<II", len(binary), 0x004E4942) + binary)


def write_box_room(path: Path, low=(-4.0, 0.0, -4.0), high=(4.0, 2.5, 4.0)) -> None:
    """A floor and four walls, y up."""
    (x0, y0, z0), (x1, y1, z1) = low, high
    walls = [box((x0, y0 - 0.1, z0), (x1, y0, z1)), box((x0 - 0.1, y0, z0), (x0, y1, z1)),
             box((x1, y0, z0), (x1 + 0.1, y1, z1)), box((x0, y0, z0 - 0.1), (x1, y1, z0)),
             box((x0, y0, z1), (x1, y1, z1 + 0.1))]
    write_glb(path, walls)


def _json(path: Path, content: dict) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))


def _at(name: str, x: float = 0.0, y: float = 0.0, z: float = 0.0, motion: str = "STATIC") -> dict:
    return {"template_name": name, "translation": [x, y, z], "rotation": [1.0, 0.0, 0.0, 0.0], "motion_type": motion}


def _scene(folder: Path, name: str, objects: list[dict], bodies: list[dict]) -> None:
    """The room with objects and articulated objects in it."""
    _json(folder / "configs" / "scenes" / f"{name}.scene_instance.json", {
        "translation_origin": "asset_local", "stage_instance": _at("room"), "object_instances": objects,
        "articulated_object_instances": bodies})


def declare_in_cupboard(folder: Path) -> None:
    """Give the drawer of the cupboard of `make_furnished_room` a receptacle."""
    place = {"position": [-0.25, 0.07, 0], "scale": [0.2, 0.05, 0.3], "parent_link": "drawer1"}
    _json(folder / "urdf" / "cupboard" / "cupboard.ao_config.json",
          {"urdf_filepath": "cupboard.urdf", "user_defined": {"receptacle_aabb_in": place}})


def make_data_set(folder: Path) -> Path:
    """Write the data set below `folder`; returns its configuration."""
    write_box_room(folder / "stages" / "room.glb")
    _json(folder / "configs" / "stages" / "room.stage_config.json",
          {"render_asset": "../../stages/room.glb", "up": [0, 1, 0]})
    write_glb(folder / "objects" / "rug.glb", [box((-1, 0, -1), (1, 0.018, 1))])
    _json(folder / "configs" / "objects" / "rug.object_config.json",
          {"render_asset": "../../objects/rug.glb", "use_bounding_box_for_collision": True, "COM": [0, 0, 0]})
    parts = [box((-0.5, 0.4, -0.3), (0.5, 0.45, 0.3)), box((-0.05, 0, -0.05), (0.05, 0.4, 0.05))]
    write_glb(folder / "objects" / "table.glb", parts)
    write_glb(folder / "objects" / "convex" / "table.glb", parts)
    _json(folder / "configs" / "objects" / "table.object_config.json", {
        "render_asset": "../../objects/table.glb", "collision_asset": "../../objects/convex/table.glb",
        "join_collision_meshes": False,
        "user_defined": {"receptacle_aabb_top": {"position": [0, 0.5, 0], "scale": [0.5, 0.05, 0.3]}}})
    write_glb(folder / "urdf" / "counter" / "front.glb", [box((-0.02, -0.1, -0.2), (0.02, 0.1, 0.2))])
    (folder / "urdf" / "counter" / "counter.urdf").write_text(COUNTER)
    (folder / "urdf" / "fridge").mkdir()
    (folder / "urdf" / "fridge" / "fridge.urdf").write_text(FRIDGE)
    _json(folder / "urdf" / "counter" / "counter.ao_config.json", {
        "urdf_filepath": "counter.urdf", "user_defined": {"receptacle_aabb_drawer": {"parent_link": "drawer1"}}})
    _scene(folder, "flat", [_at("rug"), _at("table", motion="DYNAMIC")],
           [_at(name, motion="DYNAMIC") for name in ("counter", "fridge")])
    _json(folder / CONFIG, {
        "stages": {"paths": {".json": ["configs/stages"]}}, "objects": {"paths": {".json": ["configs/objects"]}},
        "articulated_objects": {"paths": {".urdf": ["urdf/*/"]}},
        "scene_instances": {"paths": {".json": ["configs/scenes"]}}})
    return folder / CONFIG


def make_furnished_room(folder: Path) -> Path:
    """The same data set, with three scenes more in which things stand apart: `furnished`, `bare_table` and `nothing`.

    Returns its configuration.
    """
    config = make_data_set(folder)
    write_glb(folder / "objects" / "board.glb", [box((-0.4, 0, -0.15), (0.4, 0.03, 0.15))])
    _json(folder / "configs" / "objects" / "board.object_config.json", {
        "render_asset": "../../objects/board.glb", "COM": [0, 0, 0],
        "user_defined": {"receptacle_aabb_high": {"position": [0, 0.08, 0], "scale": [0.4, 0.05, 0.15]}}})
    # A jug of two convex parts, standing on its origin, whose file has z up.
    parts = [box((-0.04, -0.03, 0.0), (0.04, 0.03, 0.2)), box((0.04, -0.01, 0.05), (0.08, 0.01, 0.15))]
    write_glb(folder / "objects" / "jug.glb", parts)
    for place, name in (("configs/objects", "jug"), ("more", "003_cracker_box")):
        _json(folder / place / f"{name}.object_config.json", {
            "render_asset": str(folder / "objects" / "jug.glb"), "collision_asset": str(folder / "objects" / "jug.glb"),
            "join_collision_meshes": False, "mass": 0.5})
    # The drawer of `counter` has no shape that collides; this one has.
    (folder / "urdf" / "cupboard").mkdir()
    (folder / "urdf" / "cupboard" / "cupboard.urdf").write_text("""<robot name="cupboard"><link name="root"/>
<link name="body"><collision><origin xyz="-0.3 0.35 0"/><geometry><box size="0.6 0.2 0.8"/></geometry></collision>
</link>
<link name="drawer1"><inertial><mass value="4"/></inertial>
<collision><origin xyz="0.01 0.12 0"/><geometry><box size="0.02 0.24 0.8"/></geometry></collision>
<collision><origin xyz="-0.25 0.01 0"/><geometry><box size="0.5 0.02 0.7"/></geometry></collision></link>
<joint name="fix" type="fixed"><parent link="root"/><child link="body"/></joint>
<joint name="slide" type="prismatic"><origin xyz="0 0.5 0"/><parent link="body"/><child link="drawer1"/>
<axis xyz="1 0 0"/><limit lower="0" upper="0.5" effort="1" velocity="1"/></joint></robot>""")

    table = _at("table", -2, 0, -2)
    _scene(folder, "furnished", [_at("rug", 2, 0, 2), table, _at("board", -3, 1.8, 3)],
           [_at("cupboard", 2, 0, -2)])
    _scene(folder, "bare_table", [table], [])
    _scene(folder, "nothing", [], [])
    return config


def make_kitchen(folder: Path) -> Path:
    """The same data set with one scene more, `kitchen`: a fridge with two doors, and bars on them that do not collide.

    Returns its configuration.
    """
    config, there = make_data_set(folder), folder / "urdf" / "refrigerator"
    door, bar = box((-0.02, -0.4, -0.6), (0.02, 0.4, 0.0)), box((0.06, -0.35, -0.58), (0.07, -0.05, -0.54))
    write_glb(there / "door.glb", [door, bar])

    def solid(place: str, size: str) -> str:
        return f'<collision><origin xyz="{place}"/><geometry><box size="{size}"/></geometry></collision>'

    body = solid("0 0.95 0", "0.5 0.04 0.56") + solid("-0.28 0.85 0", "0.04 1.7 0.6")
    doors = "".join(
        f'<link name="{name}_door"><visual><geometry><mesh filename="door.glb"/></geometry></visual>'
        f'{solid("0 0 -0.3", "0.04 0.8 0.6")}</link>'
        f'<joint name="{name}" type="revolute"><origin xyz="0.3 {height} 0.3"/><parent link="body"/>'
        f'<child link="{name}_door"/><axis xyz="0 -1 0"/><limit lower="0" upper="2.3"/></joint>'
        for name, height in (("bottom", 0.45), ("top", 1.27)))
    (there / "refrigerator.urdf").write_text(
        f'<robot name="refrigerator"><link name="body">{body}</link>{doors}</robot>')
    board = {"parent_link": "body", "position": [0.0, 1.07, 0.0], "scale": [0.2, 0.1, 0.25]}
    _json(there / "refrigerator.ao_config.json",
          {"urdf_filepath": "refrigerator.urdf", "user_defined": {"receptacle_aabb_board": board}})
    _scene(folder, "kitchen", [], [_at("refrigerator", motion="DYNAMIC")])
    return config
