"""A recording is a LeRobotDataset v3.0: of what its files hold, and read by LeRobot itself where that is installed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess

import numpy as np
import pytest

pq = pytest.importorskip("pyarrow.parquet")
import imageio.v3 as iio
from imageio_ffmpeg import get_ffmpeg_exe

from eval.recording.features import depth_codes, depth_of_codes, features_of, from_image_file, rounded_depth
from eval.recording.folder import Folder
from eval.recording.lerobot import LeRobotFiles
from eval.recording.statistics import of_rows, together
from eval.recording.video import Stream, write_mp4
from rearrange.home.errors import UserError
from tests.eval.recording.fake import FEATURES, FPS, SPACE, files, recorded, seen

LENGTHS = {0: 5, 1: 7, 2: 4}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Three episodes in two files."""
    path = tmp_path_factory.mktemp("recording") / "out"
    made = Folder(path, files(path), {"format": "lerobot"}, {}, 1e9)
    for number, frames in LENGTHS.items():
        made.add(recorded(number, frames), keep=True)
        if number == 1:
            made.write()
    made.write()
    made.close()
    return path


def test_every_space_has_its_place():
    assert {name: feature.kind for name, feature in FEATURES.items()} == {
        "observation.state": "vector", "observation.images.depth": "depth", "observation.images.rgb": "video",
        "observation.images.segmentation": "image", "observation.floor_map": "array", "action": "vector",
        "next.reward": "vector", "next.done": "vector", "next.success": "vector"}
    assert FEATURES["observation.state"].names == ("is_holding", "joint.0", "joint.1")
    import gymnasium

    with pytest.raises(UserError, match="compass.*Discrete"):
        features_of(gymnasium.spaces.Dict({"compass": gymnasium.spaces.Discrete(4)}), ("a",))


def test_what_info_says_is_what_there_is(folder):
    info = json.loads((folder / "meta/info.json").read_text())
    assert (info["codebase_version"], info["total_episodes"], info["total_frames"], info["total_tasks"]) == (
        "v3.0", 3, 16, 2)
    assert info["features"]["observation.images.rgb"]["dtype"] == "video"
    assert info["features"]["observation.images.depth"]["dtype"] == "image"
    episodes = [row for number in (0, 1)
                for row in pq.read_table(folder / f"meta/episodes/chunk-000/file-00{number}.parquet").to_pylist()]
    assert [row["length"] for row in episodes] == list(LENGTHS.values())
    assert [(row["dataset_from_index"], row["dataset_to_index"]) for row in episodes] == [(0, 5), (5, 12), (12, 16)]
    key = "videos/observation.images.rgb/"
    assert [(row[key + "file_index"], row[key + "from_timestamp"]) for row in episodes] == [
        (0, 0.0), (0, 5 / FPS), (1, 0.0)]
    frames = [row for number in (0, 1)
              for row in pq.read_table(folder / f"data/chunk-000/file-00{number}.parquet").to_pylist()]
    assert [row["index"] for row in frames] == list(range(16))
    assert [row["frame_index"] for row in frames] == [i for length in LENGTHS.values() for i in range(length)]
    assert frames[6]["timestamp"] == pytest.approx(1 / FPS)
    assert frames[6]["observation.state"] == [1.0, pytest.approx(np.sin(1.0)), 1.0]
    assert [row["next.done"] for row in frames].count(True) == 3 and frames[4]["next.success"]


def test_images_are_what_was_seen(folder):
    rows = pq.read_table(folder / "data/chunk-000/file-000.parquet").to_pylist()
    before = seen(1, 6)
    assert np.array_equal(from_image_file(rows[11]["observation.images.segmentation"]["bytes"]), before["segmentation"])
    depth = from_image_file(rows[11]["observation.images.depth"]["bytes"])
    assert np.array_equal(depth, rounded_depth(before["depth"])) and np.abs(depth - before["depth"]).max() <= 2 ** -17
    assert np.array_equal(rows[11]["observation.floor_map"], before["floor_map"])
    file = folder / "videos/observation.images.rgb/chunk-000/file-000.mp4"
    video = iio.imread(file, plugin="FFMPEG").astype(int)
    wanted = np.stack([seen(episode, frame)["rgb"] for episode in (0, 1)
                       for frame in range(LENGTHS[episode])]).astype(int)
    # colours are at half the resolution, and of 8 bits
    assert video.shape == wanted.shape and np.abs(video - wanted).max() <= 8
    read = [each["observation.images.rgb"] for each
            in LeRobotFiles.read(folder, 0, ["observation.images.rgb", "action"])]
    assert [len(each) for each in read] == [5, 7] and np.array_equal(np.concatenate(read), video)


def test_a_damaged_video_is_one_sentence(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "a")
    file = tmp_path / "a/videos/observation.images.rgb/chunk-000/file-000.mp4"
    for damage, said in ((b"", "file-000.mp4 is damaged"),
                         ((folder / "videos/observation.images.rgb/chunk-000/file-001.mp4").read_bytes(), "4 frames")):
        file.write_bytes(damage)
        with pytest.raises(UserError, match=said):
            list(LeRobotFiles.read(tmp_path / "a", 0, ["observation.images.rgb"]))


@pytest.mark.parametrize("fps", [30, 7.5])
def test_frames_of_long_videos_are_in_time(tmp_path, fps):
    """Each at its number / fps, though many streams follow one another; ffmpeg tells the times of packets."""
    stream = Stream((16, 16, 3), fps)
    for frame in range(60):
        stream.add(np.full((16, 16, 3), frame, np.uint8))
    content = stream.content()
    write_mp4(tmp_path / "a.mp4", [content] * 40, fps)
    told = subprocess.run([get_ffmpeg_exe(), "-i", str(tmp_path / "a.mp4"), "-c", "copy", "-copyts", "-f", "framehash",
                           "-"], capture_output=True, text=True, check=True).stdout
    base = eval(next(line for line in told.splitlines() if line.startswith("#tb")).split()[-1])
    times = [int(line.split(",")[2]) * base for line in told.splitlines() if not line.startswith("#")]
    assert len(times) == 2400 and max(abs(time - i / fps) for i, time in enumerate(times)) < 2e-5


def test_statistics_are_of_all_frames(folder):
    stats = json.loads((folder / "meta/stats.json").read_text())
    state = np.concatenate([[[frame % 2, np.sin(np.float32(frame)), episode] for frame in range(length)]
                            for episode, length in LENGTHS.items()])
    assert stats["observation.state"]["mean"] == pytest.approx(state.mean(0), abs=1e-6)
    assert stats["observation.state"]["count"] == [16]
    assert stats["observation.state"]["q90"] == pytest.approx(np.quantile(state, 0.9, axis=0), abs=1e-6)
    assert np.shape(stats["observation.images.rgb"]["std"]) == (3, 1, 1)
    assert stats["observation.images.rgb"]["max"][2][0][0] == pytest.approx(100 / 255)
    assert np.shape(stats["observation.floor_map"]["min"]) == (4, 4, 2)


OF_VIDEO = features_of(SPACE, ("left", "right"), depth_video=True)
DEPTH = "observation.images.depth"


@pytest.fixture(scope="module")
def depth_folder(tmp_path_factory):
    """Two episodes whose depth is a video."""
    path = tmp_path_factory.mktemp("depth") / "out"
    made = Folder(path, LeRobotFiles(path, OF_VIDEO, FPS), {"format": "lerobot"}, {}, 1e9)
    for number in (0, 1):
        made.add(recorded(number, LENGTHS[number], features=OF_VIDEO), keep=True)
    made.write()
    made.close()
    return path


def test_depth_as_video_comes_back_to_the_last_of_twelve_bits(depth_folder):
    wanted = [seen(number, frame)["depth"] for number in (0, 1) for frame in range(LENGTHS[number])]
    read = np.concatenate([columns[DEPTH] for columns in LeRobotFiles.read(depth_folder, 0, [DEPTH])])
    assert read.dtype == np.float32 and read.shape == (12, 16, 24, 1)
    assert np.array_equal(read, depth_of_codes(depth_codes(np.stack(wanted)))), "the video itself loses nothing"
    off, far = np.abs(read - np.stack(wanted)), np.stack(wanted) > 0.0011
    assert off[far].max() < 0.00023 and off.max() <= 0.001, "steps of 1.2 mm near by, and 4.5 mm ten metres away"
    info = json.loads((depth_folder / "meta/info.json").read_text())["features"][DEPTH]
    assert info["dtype"] == "video" and info["info"]["is_depth_map"] and info["info"]["video.pix_fmt"] == "gray12le"
    assert (np.diff(depth_codes(np.linspace(0.001, 1.0, 200)).astype(int)) > 0).all()


LOAD_DEPTH = """
import json, sys
from lerobot.datasets.lerobot_dataset import LeRobotDataset
data = LeRobotDataset("local/depth", root=sys.argv[1], video_backend="pyav", depth_output_unit="m")
frames = [data[number]["observation.images.depth"].tolist() for number in (0, 7)]
print(json.dumps({"keys": data.meta.depth_keys, "frames": frames,
                  "most": data.meta.stats["observation.images.depth"]["max"].tolist()}))
"""


def test_lerobot_reads_depth_videos_in_metres(depth_folder):
    python = os.environ.get("REARRANGE_LEROBOT_PYTHON")
    if not python:
        pytest.skip("REARRANGE_LEROBOT_PYTHON does not name the python of an environment with "
                    "lerobot (docs/recording.md)")
    done = subprocess.run([python, "-W", "ignore", "-c", LOAD_DEPTH, str(depth_folder)], capture_output=True,
                          text=True, timeout=300, env={**os.environ, "HF_HUB_OFFLINE": "1"})
    if "unexpected keyword argument 'depth_output_unit'" in done.stderr:
        pytest.skip("this LeRobot is older than 0.6, which reads depth videos")
    assert done.returncode == 0, done.stderr[-3000:]
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["keys"] == [DEPTH] and 9.0 < np.max(said["most"]) <= 10.0
    for frame, (number, of_episode) in zip(said["frames"], ((0, 0), (1, 2)), strict=True):
        wanted = depth_of_codes(depth_codes(seen(number, of_episode)["depth"])) * 10
        assert np.allclose(np.squeeze(frame), wanted[..., 0], atol=1e-3)


def test_statistics_of_parts_are_those_of_the_whole():
    rng = np.random.default_rng(0)
    parts = [rng.normal(i, 1 + i, (10 * (i + 1), 3)) for i in range(3)]
    whole, made = of_rows(np.concatenate(parts)), together([of_rows(part) for part in parts])
    for name in ("min", "max", "mean", "std", "count"):
        assert made[name] == pytest.approx(whole[name])


LOAD = """
import json, sys, torch
from lerobot.datasets.lerobot_dataset import LeRobotDataset
data = LeRobotDataset("local/recording", root=sys.argv[1], video_backend=sys.argv[2])
batches = list(torch.utils.data.DataLoader(data, batch_size=8))
one = batches[0]
print(json.dumps({"frames": len(data), "episodes": data.num_episodes, "batches": len(batches), "task": data[11]["task"],
                  "depth": [str(one["observation.images.depth"].dtype), list(one["observation.images.depth"].shape)],
                  "rgb": one["observation.images.rgb"].shape[1:],
                  "green": [round(v.item() * 255) for v in one["observation.images.rgb"][:, 1, 0, 0]],
                  "state": data[11]["observation.state"].tolist(), "stats": sorted(data.meta.stats)}))
"""


def test_lerobot_loads_it_and_iterates_a_batch(folder):
    python = os.environ.get("REARRANGE_LEROBOT_PYTHON")
    if not python:
        pytest.skip("REARRANGE_LEROBOT_PYTHON does not name the python of an environment with "
                    "lerobot (docs/recording.md)")
    done = subprocess.run([python, "-W", "ignore", "-c", LOAD, str(folder),
                           os.environ.get("REARRANGE_LEROBOT_VIDEO", "pyav")], capture_output=True, text=True,
                          timeout=300, env={**os.environ, "HF_HUB_OFFLINE": "1"})
    assert done.returncode == 0, done.stderr[-3000:]
    said = json.loads(done.stdout.splitlines()[-1])
    assert (said["frames"], said["episodes"], said["batches"], said["task"]) == (16, 3, 2, "task 1")
    assert said["depth"] == ["torch.float32", [8, 1, 16, 24]] and said["rgb"] == [3, 16, 24]
    wanted = [8 * (frame % 25) + 20 for episode in (0, 1) for frame in range(LENGTHS[episode])][:8]
    assert np.abs(np.array(said["green"]) - wanted).max() <= 4  # each frame of a video is the right one
    assert said["state"] == pytest.approx([0.0, np.sin(6.0), 1.0], abs=1e-6)
    assert "observation.images.depth" in said["stats"]
