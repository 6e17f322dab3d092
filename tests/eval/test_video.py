"""Video frames and files: sizes, contents, and that no broken file is left behind."""

from __future__ import annotations

import imageio.v3 as iio
import imageio_ffmpeg
import numpy as np
import pytest

from eval.video import FAILURE_RGB, PANEL_RGB, SUCCESS_RGB, VideoWriter, compose, fit
from rearrange.overlay import text_width


def frames(count=6, shape=(64, 96, 3)):
    """Frames of one colour each, from dark to bright."""
    return [np.full(shape, 30 + 30 * k, np.uint8) for k in range(count)]


def test_the_file_holds_every_frame_and_the_last_one_longer(tmp_path):
    path = tmp_path / "made" / "on the way" / "episode.mp4"
    with VideoWriter(path, fps=10) as video:
        for frame in frames():
            video.add(frame)
    read = iio.imread(path, plugin="FFMPEG")
    assert read.shape == (6 + 7, 64, 96, 3)
    means = read.reshape(len(read), -1).mean(axis=1)
    assert np.allclose(means[:6], [30 + 30 * k for k in range(6)], atol=3)
    assert np.allclose(means[6:], means[5], atol=1)
    assert [entry.name for entry in path.parent.iterdir()] == ["episode.mp4"]


def test_the_format_is_one_that_browsers_play(tmp_path):
    with VideoWriter(tmp_path / "a.mp4", fps=30) as video:
        for frame in frames():
            video.add(frame)
    reader = imageio_ffmpeg.read_frames(str(tmp_path / "a.mp4"))
    meta = next(reader)
    reader.close()
    assert (
        meta["codec"] == "h264"
        and meta["pix_fmt"].startswith("yuv420p")
        and meta["fps"] == 30
        and meta["size"] == (96, 64)
    )
    head = (tmp_path / "a.mp4").read_bytes()
    assert head.index(b"moov") < head.index(b"mdat")  # can be played while it loads


def test_an_error_leaves_no_file_and_keeps_the_old_one(tmp_path):
    path = tmp_path / "a.mp4"
    path.write_text("the old video")
    with pytest.raises(RuntimeError, match="the policy broke"), VideoWriter(path) as video:
        for frame in frames():
            video.add(frame)
        raise RuntimeError("the policy broke")
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.mp4"]
    assert path.read_text() == "the old video"


def test_no_frames_and_bad_frames_are_errors_without_a_file(tmp_path):
    with pytest.raises(ValueError, match="no frame"), VideoWriter(tmp_path / "a.mp4"):
        pass
    for first, second in (((63, 96, 3), None), ((64, 96), None), ((64, 96, 3), (32, 96, 3))):
        with pytest.raises(ValueError, match="frame"), VideoWriter(tmp_path / "a.mp4") as video:
            video.add(np.zeros(first, np.uint8))
            video.add(np.zeros(second, np.uint8))
    with pytest.raises(ValueError, match="fps"):
        VideoWriter(tmp_path / "a.mp4", fps=0)
    assert list(tmp_path.iterdir()) == []


def test_a_frame_shows_the_scene_the_depth_and_the_text():
    third_person = np.random.default_rng(0).integers(0, 255, (512, 512, 3), dtype=np.uint8)
    depth = np.ones((128, 128, 1), np.float32)
    depth[:64] = 0.05
    frame = compose(third_person, depth, ["step 12 of 200"], title="pick", footer="val/3")
    assert frame.dtype == np.uint8 and frame.shape == (512, 800, 3)
    assert np.array_equal(frame[:, :512], third_person)
    panel = frame[:, 512:].astype(int)
    near, far = panel[80:140, 60:200].mean(), panel[200:260, 60:200].mean()
    assert near > far + 60
    for rows in (slice(8, 36), slice(330, 360), slice(480, 500)):  # title, first line, footer
        assert np.abs(panel[rows] - PANEL_RGB).max() > 80


def test_lines_change_the_frame_and_what_does_not_fit_is_cut():
    third_person = np.zeros((512, 512, 3), np.uint8)
    short, other = (compose(third_person, None, [text]) for text in ("reward 0.1", "reward 0.2"))
    assert not np.array_equal(short, other)
    many = compose(third_person, None, [f"line {k} " + "long " * 30 for k in range(100)], footer="the end")
    assert many.shape == short.shape
    assert np.all(many[:, -8:] == PANEL_RGB)  # nothing runs over the margin
    assert fit("short", 16) == "short"
    cut = fit("wide " * 40, 16, 200)
    assert cut.endswith("...") and 150 < text_width(cut, 16) <= 200


def test_odd_pictures_give_even_frames_and_the_outcome_is_shown():
    for outcome, rgb in ((True, SUCCESS_RGB), (False, FAILURE_RGB)):
        frame = compose(np.zeros((301, 333, 3), np.uint8), None, [], outcome=outcome)
        assert frame.shape[0] % 2 == 0 and frame.shape[1] % 2 == 0
        assert (frame[:80, :140] == rgb).all(axis=2).sum() > 500
    plain = compose(np.zeros((301, 333, 3), np.uint8), None, [])
    assert not plain[:301, :333].any()
