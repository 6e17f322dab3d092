"""GLB files: what is read is what trimesh reads, too; what is not read is said; bad ones are one sentence."""

from __future__ import annotations

import io
import json
import math
import os

import numpy as np
import pytest
from PIL import Image

from rearrange.home.errors import UserError
from rearrange.home.scene_files.glb import MOST_NODES, MOST_PIECES, glb_notes, read_glb
from tests.rearrange.scene_data import box, write_gltf

_NUMPY = {np.dtype(kind): code for kind, code in
          (("i1", 5120), ("u1", 5121), ("<i2", 5122), ("<u2", 5123), ("<u4", 5125), ("<f4", 5126))}
CORNERS, SIDES = box((0.0, 0.0, 0.0), (1.0, 2.0, 3.0))
SQUARE = np.array([(0, 0, 0), (2, 0, 0), (2, 1, 0), (0, 1, 0)], "<f4")


class Gltf:
    """A file that is put together."""

    def __init__(self) -> None:
        self.binary = b""
        self.content = {"asset": {"version": "2.0"}, "buffers": [{}], "bufferViews": [], "accessors": [], "meshes": [],
                        "nodes": []}

    def view(self, raw: bytes, **more) -> int:
        self.binary += b"\0" * (-len(self.binary) % 4)
        self.content["bufferViews"].append({"buffer": 0, "byteOffset": len(self.binary), "byteLength": len(raw)} | more)
        self.binary += raw
        return len(self.content["bufferViews"]) - 1

    def accessor(self, values, view: int | None = None, **more) -> int:
        values = np.asarray(values)
        kind = "SCALAR" if values.ndim == 1 else f"VEC{values.shape[1]}"
        entry = {"componentType": _NUMPY[values.dtype], "type": kind, "count": len(values)} | more
        if "sparse" not in more:
            entry["bufferView"] = self.view(values.tobytes()) if view is None else view
        if kind == "VEC3" and values.dtype == np.dtype("<f4"):
            entry |= {"min": values.min(0).tolist(), "max": values.max(0).tolist()}
        self.content["accessors"].append(entry)
        return len(self.content["accessors"]) - 1

    def mesh(self, attributes: dict, indices: int | None = None, **more) -> int:
        primitive = {"attributes": attributes} | ({} if indices is None else {"indices": indices}) | more
        self.content["meshes"].append({"primitives": [primitive]})
        return len(self.content["meshes"]) - 1

    def box(self, **more) -> int:
        """A mesh of a box."""
        places, order = self.accessor(CORNERS.astype("<f4")), self.accessor(SIDES.astype("<u2").ravel())
        return self.mesh({"POSITION": places}, order, **more)

    def node(self, **node) -> int:
        self.content["nodes"].append(node)
        return len(self.content["nodes"]) - 1

    def save(self, path):
        if not self.content["nodes"]:
            self.node(mesh=0)
            self.content["scenes"] = [{"nodes": [0]}]
        self.content["buffers"][0]["byteLength"] = len(self.binary)
        write_gltf(path, self.content, self.binary)
        return path


def corners_of(path):
    """(n, 3, 3): what this package reads."""
    return np.concatenate([piece.vertices[piece.triangles] for piece in read_glb(path, path)])


def as_trimesh(path):
    """(n, 3, 3): what trimesh reads."""
    trimesh = pytest.importorskip("trimesh")
    return np.asarray(trimesh.load(path, force="mesh", process=False).triangles)


def as_sets(corners):
    """Triangles without an order, each begun at its least corner, which keeps the side from which it is seen."""
    turns = ([tuple(map(tuple, np.roll(one, -k, axis=0).tolist())) for k in range(3)]
             for one in np.round(corners, 5) + 0.0)
    return sorted(map(min, turns))


def one_box(gltf):
    gltf.box()


def interleaved(gltf):
    """Corners 20 bytes apart, with other numbers between them."""
    rows = np.zeros(8, [("place", "<f4", 3), ("uv", "<f4", 2)])
    rows["place"], rows["uv"] = CORNERS, 7.0
    view = gltf.view(rows.tobytes(), byteStride=20)
    gltf.mesh({"POSITION": gltf.accessor(CORNERS.astype("<f4"), view)}, gltf.accessor(SIDES.astype("<u4").ravel()))


def one_view(gltf):
    """Corners and indices in one view, at offsets of their accessors."""
    order = SIDES.astype("u1").ravel()
    view = gltf.view(order.tobytes() + CORNERS.astype("<f4").tobytes())
    places = gltf.accessor(CORNERS.astype("<f4"), view, byteOffset=order.size)
    gltf.mesh({"POSITION": places}, gltf.accessor(order, view))


def without_indices(gltf):
    gltf.mesh({"POSITION": gltf.accessor(CORNERS[SIDES].reshape(-1, 3).astype("<f4"))})


def strip(gltf):
    gltf.mesh({"POSITION": gltf.accessor(SQUARE)}, gltf.accessor(np.array([0, 1, 3, 2], "<u2")), mode=5)


def long_strip(gltf):
    places = np.array([(k // 2, k % 2, 0.1 * k) for k in range(11)], "<f4")
    gltf.mesh({"POSITION": gltf.accessor(places)}, mode=5)


def turned_nodes(gltf):
    """Two nodes, one in the other, by a matrix and by translation, rotation and scale."""
    mesh, c, s = gltf.box(), math.cos(0.3), math.sin(0.3)
    inner = gltf.node(mesh=mesh, translation=[1, 2, 3], rotation=[0, s, 0, c], scale=[2, 0.5, 1])
    outer = gltf.node(children=[inner], matrix=[0, 0, -1, 0, 0, 1, 0, 0, 1, 0, 0, 0, 5, 6, 7, 1])
    gltf.content["scenes"] = [{"nodes": [outer]}]


def second_scene(gltf):
    mesh = gltf.box()
    gltf.node(mesh=mesh), gltf.node(mesh=mesh, translation=[9, 0, 0])
    gltf.content |= {"scenes": [{"nodes": [0]}, {"nodes": [1]}], "scene": 1}


def a_mesh_twice(gltf):
    mesh = gltf.box()
    gltf.content["scenes"] = [{"nodes": [gltf.node(mesh=mesh), gltf.node(mesh=mesh, translation=[4, 0, 0])]}]


def mirrored(gltf):
    gltf.content["scenes"] = [{"nodes": [gltf.node(mesh=gltf.box(), scale=[-1, 1, 1])]}]


def with_camera(gltf):
    gltf.content |= {"cameras": [{"type": "perspective", "perspective": {"yfov": 1.0, "znear": 0.1}}]}
    gltf.content["scenes"] = [{"nodes": [gltf.node(mesh=gltf.box()), gltf.node(camera=0, translation=[0, 0, 9])]}]


@pytest.mark.parametrize("make", (one_box, interleaved, one_view, without_indices, strip, long_strip, turned_nodes,
                                  second_scene, a_mesh_twice, mirrored, with_camera), ids=lambda make: make.__name__)
def test_triangles_are_those_that_trimesh_reads(make, tmp_path):
    gltf = Gltf()
    make(gltf)
    path = gltf.save(tmp_path / "mesh.glb")
    assert as_sets(corners_of(path)) == as_sets(as_trimesh(path)) and not glb_notes(path, path)


def test_without_scenes_the_roots_are_the_nodes_that_are_nobodys_children(tmp_path):
    """trimesh reads nothing of such a file. The inner node comes first."""
    gltf = Gltf()
    inner = gltf.node(mesh=gltf.box(), translation=[1, 0, 0])
    gltf.node(children=[inner], translation=[0, 5, 0])
    assert as_sets(corners_of(gltf.save(tmp_path / "mesh.glb"))) == as_sets(CORNERS[SIDES] + (1.0, 5.0, 0.0))


def test_a_fan_and_a_strip_have_the_area_and_the_side_of_their_polygon(tmp_path):
    for mode, order in ((6, [0, 1, 2, 3]), (5, [0, 1, 3, 2]), (5, [0, 0, 0, 1, 3, 2]), (4, [0, 1, 2, 0, 2, 3])):
        gltf = Gltf()
        gltf.mesh({"POSITION": gltf.accessor(SQUARE)}, gltf.accessor(np.array(order, "<u2")), mode=mode)
        corners = corners_of(gltf.save(tmp_path / f"{mode}_{len(order)}.glb"))
        normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        assert normals[:, 2].min() > 0.0 and normals[:, 2].sum() / 2 == pytest.approx(2.0)


def test_sparse_accessors_replace_some_of_their_values(tmp_path):
    gltf = Gltf()
    moved = CORNERS.astype("<f4")
    moved[7] += 0.5
    rows, values = gltf.view(np.array([7], "u1").tobytes()), gltf.view(moved[7:].tobytes())
    sparse = {"count": 1, "indices": {"bufferView": rows, "componentType": 5121}, "values": {"bufferView": values}}
    dense = gltf.view(CORNERS.astype("<f4").tobytes())
    place = gltf.accessor(CORNERS.astype("<f4"), dense)
    gltf.content["accessors"][place] |= {"sparse": sparse}
    gltf.mesh({"POSITION": place}, gltf.accessor(SIDES.astype("<u2").ravel()))
    assert as_sets(corners_of(gltf.save(tmp_path / "sparse.glb"))) == as_sets(moved[SIDES])
    gltf.content["accessors"][place].pop("bufferView")  # the others are 0
    moved[:7] = 0.0
    assert as_sets(corners_of(gltf.save(tmp_path / "zeros.glb"))) == as_sets(moved[SIDES])


def test_normalised_whole_numbers_are_shares(tmp_path):
    for kind, whole in (("i1", 127), ("u1", 255), ("<i2", 32767), ("<u2", 65535)):
        gltf = Gltf()
        low = 0 if "u" in kind else -whole - 1  # -1, too: what is below is none
        places = np.array([(low, 0, 0), (whole, 0, 0), (0, whole, 0)], kind)
        padded = np.zeros((3, 4), kind)
        padded[:, :3] = places
        view = gltf.view(padded.tobytes(), byteStride=padded.itemsize * 4)
        gltf.mesh({"POSITION": gltf.accessor(places, view, normalized=True)})
        gltf.content |= {"extensionsRequired": ["KHR_mesh_quantization"], "extensionsUsed": ["KHR_mesh_quantization"]}
        path = gltf.save(tmp_path / f"{kind[-2:]}.glb")
        assert corners_of(path)[0].tolist() == [[-1.0 if low else 0.0, 0, 0], [1, 0, 0], [0, 1, 0]]
        assert not glb_notes(path, path)


# ---------------------------------------------------------------------- colours


def picture(colours, form="PNG") -> bytes:
    """The file of an image whose quarters have four colours: upper left, upper right, lower left, lower right."""
    file = io.BytesIO()
    pixels = np.array(colours, np.uint8).reshape(2, 2, 3).repeat(64, axis=0).repeat(64, axis=1)
    Image.fromarray(pixels).save(file, form, **({"lossless": True} if form == "WEBP" else {}))
    return file.getvalue()


RED, GREEN, BLUE, WHITE = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)


def textured(path, uv, material=None, texture=None, form="PNG", extra=None):
    """The colour of one triangle whose corners lie at one place of an image."""
    gltf = Gltf()
    places, uvs = gltf.accessor(SQUARE[:3]), gltf.accessor(np.array([uv] * 3, "<f4"))
    gltf.mesh({"POSITION": places, "TEXCOORD_0": uvs}, material=0)
    view = gltf.view(picture((RED, GREEN, BLUE, WHITE), form))
    gltf.content |= {"images": [{"bufferView": view}], "textures": [texture or {"source": 0}],
                     "materials": [material or {"pbrMetallicRoughness": {"baseColorTexture": {"index": 0}}}]}
    gltf.content |= extra or {}
    (piece,) = read_glb(gltf.save(path), path)
    return np.round(255 * piece.rgb[0]).astype(int).tolist()


def test_a_triangle_has_the_colour_of_its_place_in_the_image(tmp_path):
    for k, (u, v, colour) in enumerate(((.25, .25, RED), (.75, .25, GREEN), (.25, .75, BLUE), (1.25, -.25, BLUE))):
        assert textured(tmp_path / f"{k}.glb", (u, v)) == list(colour)


def test_a_sampler_repeats_mirrors_or_ends_the_image(tmp_path):
    for way, colour in ((10497, RED), (33648, GREEN), (33071, GREEN)):
        given = {"texture": {"source": 0, "sampler": 0}, "extra": {"samplers": [{"wrapS": way, "wrapT": way}]}}
        assert textured(tmp_path / f"{way}.glb", (1.25, .25), **given) == list(colour)


def test_texture_transforms_move_the_place_in_the_image(tmp_path):
    """By hand: a rotation is counterclockwise as the image is seen: what was above comes to the right side."""
    for k, (given, uv, colour) in enumerate((
            ({"offset": [0.5, 0.0]}, (.25, .25), GREEN), ({"scale": [3.0, 1.0]}, (.25, .25), GREEN),
            ({"rotation": math.pi / 2, "offset": [0.0, 1.0]}, (.25, .25), BLUE),
            ({"rotation": math.pi / 2, "offset": [0.0, 1.0]}, (.25, .75), WHITE))):
        info = {"index": 0, "extensions": {"KHR_texture_transform": given}}
        path = tmp_path / f"{k}.glb"
        assert textured(path, uv, {"pbrMetallicRoughness": {"baseColorTexture": info}},
                        extra={"extensionsUsed": ["KHR_texture_transform"]}) == list(colour)
        assert not glb_notes(path, path)


def test_webp_images_and_glossy_materials_are_read(tmp_path):
    webp = {"extensions": {"EXT_texture_webp": {"source": 0}}}
    used = {"extensionsUsed": ["EXT_texture_webp"]}
    assert textured(tmp_path / "webp.glb", (.75, .25), None, webp, "WEBP", used) == list(GREEN)
    glossy = {"extensions": {"KHR_materials_pbrSpecularGlossiness": {"diffuseFactor": [1, 1, 0, 1],
                                                                     "diffuseTexture": {"index": 0}}}}
    assert textured(tmp_path / "glossy.glb", (.75, .75), glossy) == [255, 255, 0]


def test_grey_of_sixteen_bits_is_as_bright_as_that_of_eight(tmp_path):
    found = []
    for kind, times in (("u1", 1), ("<u2", 257)):
        file = io.BytesIO()
        Image.fromarray(np.full((16, 16), 155 * times, kind)).save(file, "PNG")
        gltf = Gltf()
        gltf.box()
        _image(file.getvalue())(gltf)
        path = gltf.save(tmp_path / f"{kind[-2:]}.glb")
        found.append(np.round(255 * read_glb(path, path)[0].rgb[0]).tolist())
    assert found == [[155, 155, 155]] * 2


def test_colours_of_corners_multiply_the_material(tmp_path):
    for kind, whole in (("u1", 255), ("<u2", 65535), ("<f4", 1.0)):
        gltf = Gltf()
        colours = np.array([(whole, 0, whole, whole)] * 3, kind)
        places, colours = gltf.accessor(SQUARE[:3]), gltf.accessor(colours, normalized=kind != "<f4")
        gltf.mesh({"POSITION": places, "COLOR_0": colours}, material=0)
        gltf.content["materials"] = [{"pbrMetallicRoughness": {"baseColorFactor": [1, 1, 0.5, 1]}}]
        path = gltf.save(tmp_path / f"{kind[-2:]}.glb")
        assert read_glb(path, path)[0].linear[0] == pytest.approx([1.0, 0.0, 0.5])


def test_what_is_cut_out_or_fully_transparent_is_not_seen(tmp_path):
    """Of two triangles, each with a material of its own, the one is opaque."""
    for mode, alpha, cutoff, seen, said in (("BLEND", 0.0, None, False, False), ("BLEND", 0.4, None, True, True),
                                            ("MASK", 0.4, None, False, False), ("MASK", 0.4, 0.3, True, False),
                                            ("OPAQUE", 0.0, None, True, False)):
        gltf = Gltf()
        gltf.mesh({"POSITION": gltf.accessor(SQUARE[:3])}, material=0)
        material = {"alphaMode": mode, "pbrMetallicRoughness": {"baseColorFactor": [1, 1, 1, alpha]}}
        gltf.content["materials"] = [material | ({} if cutoff is None else {"alphaCutoff": cutoff})]
        path = gltf.save(tmp_path / f"{mode}_{alpha}_{cutoff}.glb")
        assert read_glb(path, path)[0].visible is seen
        assert any(f"alphaMode {mode}" in note for note in glb_notes(path, path)) is said


# ---------------------------------------------------------------------- what is said


def _points(gltf):
    gltf.content["meshes"][0]["primitives"].append({"attributes": {"POSITION": 0}, "mode": 0})


def _weights(gltf):
    gltf.content["meshes"][0] |= {"weights": [0.5]}
    gltf.content["meshes"][0]["primitives"][0] |= {"targets": [{"POSITION": 0}]}


def _skin(gltf):
    gltf.content |= {"skins": [{"joints": [0]}], "nodes": [{"mesh": 0, "skin": 0}], "scenes": [{"nodes": [0]}]}


def _image(raw):
    def make(gltf):
        uv = gltf.accessor(CORNERS[:, :2].astype("<f4"))
        primitive = gltf.content["meshes"][0]["primitives"][0]
        primitive |= {"attributes": primitive["attributes"] | {"TEXCOORD_0": uv}, "material": 0}
        gltf.content |= {"images": [{"bufferView": gltf.view(raw)} if raw else {"uri": "wood.png"}],
                         "textures": [{"source": 0}],
                         "materials": [{"pbrMetallicRoughness": {"baseColorTexture": {"index": 0}}}]}
    return make


def _put(**content):
    return lambda gltf: gltf.content.update(content)


GLASS = "KHR_materials_transmission"
SAID = {
    "points": (_points, "points and lines"), "glass": (_put(extensionsUsed=[GLASS]), GLASS),
    "basis": (_put(extensionsUsed=["KHR_texture_basisu"]), "KHR_texture_basisu"),
    "unknown": (_put(extensionsUsed=["VENDOR_wobble"]), "VENDOR_wobble"),
    "glass that is not listed": (_put(materials=[{"extensions": {GLASS: {}}}]), GLASS),
    "a node's extension that is not listed": (_put(nodes=[{"mesh": 0, "extensions": {"VENDOR_lod": {}}}]),
                                              "VENDOR_lod"),
    "an animation": (_put(animations=[{"channels": [], "samplers": []}]), "animations"),
    "a skin": (_skin, "skins of meshes"), "a blend of shapes": (_weights, "morph targets"),
    "a cut image": (_image(b"\x89PNG\r\n\x1a\n\0\0"), "no whole PNG"),
    "an image of another form": (_image(b"\xabKTX 20\xbb"), "no whole PNG, JPEG or WebP"),
    "an image outside": (_image(b""), "outside their GLB files"),
}


@pytest.mark.parametrize("name", SAID)
def test_what_of_a_mesh_is_not_read_is_said(name, tmp_path):
    gltf, (change, words) = Gltf(), SAID[name]
    gltf.box()
    change(gltf)
    path = gltf.save(tmp_path / "mesh.glb")
    assert len(corners_of(path)) == 12
    (note,) = glb_notes(path, path)
    assert words in note


# ---------------------------------------------------------------------- bad ones


def _many_parts(gltf):
    primitive = gltf.content["meshes"][0]["primitives"][0] | {"mode": 0}
    gltf.content["meshes"][0]["primitives"] = [primitive] * 200
    gltf.content |= {"nodes": [{"mesh": 0}] * 200}


def _many_nodes(gltf):
    gltf.content["nodes"] = [{"mesh": 0}, *({"children": [k]} for k in range(MOST_NODES + 1))]


def _lists_without_bytes(gltf):
    """Lists that no bytes of the file stand for, each of a primitive of one triangle."""
    first = len(gltf.content["accessors"])
    gltf.content["accessors"] += [{"componentType": 5126, "type": "VEC3", "count": 6_000_000}] * 2000
    gltf.content["meshes"][0]["primitives"] += [{"attributes": {"POSITION": first + k}, "indices": 1}
                                                for k in range(2000)]


def _lists_of_the_same_bytes(gltf):
    kept, first = gltf.view(bytes(4_000_000)), len(gltf.content["accessors"])
    gltf.content["accessors"] += [{"bufferView": kept, "componentType": 5121, "type": "VEC4", "count": 1_000_000,
                                   "normalized": True}] * 50
    gltf.content["meshes"][0]["primitives"] += [
        {"attributes": {"POSITION": 0, "COLOR_0": first + k}, "indices": 1} for k in range(50)]


def _set(kind, index=0, **values):
    return lambda gltf: gltf.content[kind][index].update(values)


def _node(**values):
    return _put(nodes=[{"mesh": 0} | values])


def _corner(**values):
    """A triangle with one corner or one index of its own."""
    def make(gltf):
        places, order = SQUARE.copy(), np.array([0, 1, 2], "<u4")
        places[1, 1], order[1] = values.get("place", 0.0), values.get("index", 1)
        gltf.content["meshes"] = []
        gltf.mesh({"POSITION": gltf.accessor(places)}, gltf.accessor(order))
    return make


BAD = {
    "a million triangles": (_set("accessors", 1, count=3_000_000), "more than 500,000 triangles"),
    "no number": (_corner(place=math.nan), "a corner that is no number"),
    "no such corner": (_corner(index=4), "the corner 4 of 4"),
    "nothing": (_put(meshes=[], nodes=[{}]), "no triangles"),
    "a circle of nodes": (_put(nodes=[{"children": [0]}], scenes=[{"nodes": [0]}]), "nested in a circle"),
    "doubled nodes": (_put(nodes=[*({"children": [k + 1, k + 1]} for k in range(40)), {"mesh": 0}],
                           scenes=[{"nodes": [0]}]), "named twice"),
    "a circle without a root": (_put(nodes=[{"children": [1], "mesh": 0}, {"children": [0]}]), "no triangles"),
    "many nodes": (_many_nodes, f"more than {MOST_NODES:,} nodes"),
    "many parts": (_many_parts, f"more than {MOST_PIECES:,} parts"),
    "a node that there is not": (_node(children=[7]), "entry 7"),
    "a negative node": (_node(children=[-1]), "entry -1"),
    "a scale of letters": (_node(scale=["a", 1, 1]), "scale of a node"),
    "a huge number": (_node(translation=[10**299, 0, 0]), "translation of a node"),
    "nan": (_node(matrix=[math.nan] * 16), "matrix of a node"),
    "scales that multiply": (_node(scale=[1e6, 1e6, 1e6], translation=[0, 0, 0]), "further than"),
    "lists without bytes": (_lists_without_bytes, "more than 50,000,000 numbers"),
    "lists of the same bytes": (_lists_of_the_same_bytes, "more than 50,000,000 numbers"),
    "negative count": (_set("accessors", count=-3), "count should be"),
    "huge count": (_set("accessors", count=10**9), "more than"),
    "no stride": (_set("bufferViews", byteStride=0), "0 bytes apart"),
    "short view": (_set("bufferViews", byteLength=50), "shorter than"),
    "long view": (_set("bufferViews", byteLength=10**6), "shorter than"),
    "offset": (_set("accessors", byteOffset=96), "shorter than"),
    "buffer outside": (_set("buffers", uri="mesh.bin"), "outside of itself"),
    "strange numbers": (_set("accessors", componentType=5130), "type 5130"),
    "meshopt": (_set("bufferViews", extensions={"EXT_meshopt_compression": {}}), "EXT_meshopt_compression"),
    "draco": (_put(extensionsRequired=["KHR_draco_mesh_compression"]), "KHR_draco_mesh_compression"),
    "instances": (_node(extensions={"EXT_mesh_gpu_instancing": {}}), "EXT_mesh_gpu_instancing"),
    "floating indices": (lambda gltf: gltf.content["meshes"][0]["primitives"][0].update(indices=0), "whole numbers"),
    "no scene": (_put(scenes=[{"nodes": [0]}], scene=3), "entry 3"),
    "lists for objects": (_put(nodes=[[]], scenes=[{"nodes": [0]}]), "no object"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_glb_is_a_sentence(name, tmp_path):
    gltf, (change, words) = Gltf(), BAD[name]
    gltf.box()
    change(gltf)
    path = gltf.save(tmp_path / "mesh.glb")
    with pytest.raises(UserError) as refused:
        read_glb(path, tmp_path / "of.json")
    assert words in str(refused.value) and "mesh.glb" in str(refused.value) and "\n" not in str(refused.value)


def test_a_glb_of_random_bytes_changed_is_read_or_refused_in_a_sentence(tmp_path):
    gltf = Gltf()
    gltf.box()
    whole, rng = gltf.save(tmp_path / "whole.glb").read_bytes(), np.random.default_rng(3)
    for k in range(300):
        raw = bytearray(whole)
        for place in rng.integers(4, len(raw), 3):
            raw[place] = rng.integers(256)
        path = tmp_path / f"{k}.glb"
        path.write_bytes(raw[:rng.integers(20, len(raw))] if k % 10 == 0 else raw)
        try:
            assert np.isfinite(corners_of(path)).all()
        except UserError as error:
            assert "\n" not in str(error) and len(str(error)) < 500


def test_a_glb_that_is_no_regular_file_or_no_json_is_a_sentence(tmp_path):
    os.mkfifo(tmp_path / "pipe.glb")
    (tmp_path / "folder.glb").mkdir()
    write_gltf(tmp_path / "deep.glb", b"[" * 200_000 + b"]" * 200_000, b"")
    write_gltf(tmp_path / "digits.glb", b'{"nodes": [{"translation": [1' + b"0" * 400 + b", 0, 0]}]}", b"")
    write_gltf(tmp_path / "latin.glb", '{"asset": "\xe9"}'.encode("latin-1"), b"")
    write_gltf(tmp_path / "list.glb", json.dumps([1]).encode(), b"")
    for name in ("pipe", "folder", "deep", "digits", "latin", "list"):
        with pytest.raises(UserError, match=f"{name}.glb") as refused:
            read_glb(tmp_path / f"{name}.glb", tmp_path / "of.json")
        assert "\n" not in str(refused.value)
