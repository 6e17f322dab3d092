"""Video frames and files: sizes, contents, and that no broken file is left behind."""

from __future__ import annotations

import errno
import threading
from functools import partial

import imageio.v3 as iio
import imageio_ffmpeg
import numpy as np
import pytest

from eval import video as of_video
from eval.evaluate import EpisodeResult, Job, WorkDone, run_chunk, write
from eval.scenario.video import PLAN_LINES
from eval.video import FAILURE_RGB, PANEL_RGB, SUCCESS_RGB, VideoError, VideoWriter, compose, fit
from rearrange.command_line.runs.run_directory import write_whole
from rearrange.home.pictures.overlay import text_width
from skills import SKILLS, make_env


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
    assert meta["codec"] == "h264" and meta["pix_fmt"].startswith("yuv420p") and meta["fps"] == 30
    assert meta["size"] == (96, 64)
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


@pytest.mark.parametrize("script, said", [
    ("cat > /dev/null; echo No space left on device >&2; exit 1", "No space left on device"),  # at the end
    ("exit 3", "status 3"),  # at once
    ("kill -9 $$", "SIGKILL"),
    ("cat > /dev/null", "status 0"),  # without a file
])
def test_a_video_that_ffmpeg_could_not_write_is_an_error_without_a_file(tmp_path, monkeypatch, script, said):
    encoder = tmp_path / "ffmpeg"
    encoder.write_text(f"#!/bin/sh\n{script}\n")
    encoder.chmod(0o755)
    monkeypatch.setattr(imageio_ffmpeg, "get_ffmpeg_exe", lambda: str(encoder))
    with pytest.raises(VideoError, match=said), VideoWriter(tmp_path / "made" / "a.mp4") as video:
        for _ in range(40):  # more than a pipe holds
            video.add(np.zeros((256, 256, 3), np.uint8))
    assert list((tmp_path / "made").iterdir()) == []


def test_frames_that_are_drawn_at_the_same_time_keep_their_order_and_an_error_in_one_leaves_no_file(tmp_path):
    first_may_end = threading.Event()

    def frame(k):
        assert k or first_may_end.wait(60)  # timed: a limit, for a run that would hang
        return np.full((64, 96, 3), 20 * k, np.uint8)

    with VideoWriter(tmp_path / "a.mp4", fps=10, hold_s=0) as video:
        for k in range(10):
            if k == 2:
                first_may_end.set()
            video.draw(partial(frame, k))
    assert np.all(np.diff(iio.imread(tmp_path / "a.mp4", plugin="FFMPEG").mean(axis=(1, 2, 3))) > 10)
    with pytest.raises(ZeroDivisionError), VideoWriter(tmp_path / "b.mp4") as video:
        for k in (1, 0, 2):
            video.draw(lambda k=k: frame(1 // k))
    assert [path.name for path in tmp_path.iterdir()] == ["a.mp4"]


def test_an_evaluation_goes_on_without_a_video_that_cannot_be_written(tmp_path, monkeypatch):
    class Recorder:
        def __init__(self, env, directory, index, observation, speed):
            self.index, self.frames = index, 0

        def frame(self, *_):
            self.frames += 1
            if self.index == 0 and self.frames == 3:
                raise VideoError("no room")

        def close(self, success):
            if self.index == 1:
                raise VideoError("no room")
            return "a.mp4"

        def discard(self):
            discarded.append(self.index)

    discarded = []
    monkeypatch.setattr("eval.episode_video.EpisodeRecorder", Recorder)
    monkeypatch.setattr("eval.slots._KEPT", {})
    job = Job("pick", {"depth_size": 0, "max_steps": 5, "num_layouts": 4}, "zero", None, 4, videos=3,
              video_dir=str(tmp_path))
    results = list(run_chunk(job, [0, 1, 2, 3]))
    assert sorted(discarded) == [0, 1] and [r.steps for r in results] == [5] * 4
    found = {result.index: (result.video, result.video_problem) for result in results}
    assert found == {0: (None, "no room"), 1: (None, "no room"), 2: ("a.mp4", None), 3: (None, None)}


@pytest.mark.parametrize("repeat", [1, 4])
def test_a_video_has_a_frame_for_every_step_and_says_why_it_failed(tmp_path, monkeypatch, repeat):
    frames = []

    def compose(picture, depth, lines, outcome, reason, **_):
        frames.append((lines[0], depth.copy(), outcome, reason))
        return np.zeros((64, 96, 3), np.uint8)

    monkeypatch.setattr(of_video, "compose", compose)
    monkeypatch.setattr("eval.slots._KEPT", {})
    settings = {"depth_size": 16, "max_steps": 10, "num_layouts": 4, "action_repeat": repeat,
                "render_mode": "rgb_array", "action_parts": ["base"]}
    job = Job("navigate", settings, "random", None, 2, videos=1, video_dir=str(tmp_path))
    first, second = run_chunk(job, [0, 1])
    assert first.steps == second.steps == 10 and second.video is None
    frames.sort(key=lambda frame: int(frame[0].split()[1]))  # several are drawn at the same time
    assert [frame[0] for frame in frames] == [f"step {k} of 10" for k in range(1, 11)]
    assert [frame[2:] for frame in frames] == [(None, "")] * 9 + [(False, "time limit")]
    looks = [frame[1] for frame in frames]  # the policy looks once an action
    assert sum(not np.array_equal(a, b) for a, b in zip(looks, looks[1:])) == {1: 9, 4: 3}[repeat]
    assert len(iio.imread(first.video, plugin="FFMPEG")) == 10 + round(0.7 * 30)


def test_a_slower_video_has_the_same_frames_for_longer_and_a_faster_one_fewer():
    assert of_video.pace(1) == (1, 30) and of_video.pace(0.5) == (1, 15) and of_video.pace(0.1) == (1, 3)
    assert of_video.pace(4) == (4, 30)
    for speed in (0.3, 1.0, 1.7, 2.5, 7, 1000):
        steps, fps = of_video.pace(speed)
        assert steps * fps / 30 == pytest.approx(speed) and steps >= 1 and 3 <= fps <= 45
    kinds = ({}, {"nav": "pointnav"}, {"hab": "tidy_house"})
    assert [of_video.default_speed(kind) for kind in kinds] == [0.5, 1.0, 4.0]
    assert [of_video.default_speed(kind | {"video_speed": 2}) for kind in kinds] == [2.0] * 3


@pytest.mark.parametrize("speed, count, fps", [(0.5, 6, 15), (3, 2, 30)])
def test_the_speed_of_a_video_says_which_steps_have_a_frame_of_what_size(tmp_path, monkeypatch, speed, count, fps):
    monkeypatch.setattr("eval.slots._KEPT", {})
    settings = {"depth_size": 16, "max_steps": 6, "num_layouts": 4, "render_mode": "rgb_array"}
    (result,) = run_chunk(Job("pick", settings, "zero", None, 1, videos=1, video_dir=str(tmp_path), video_speed=speed),
                          [0])
    read = iio.imread(result.video, plugin="FFMPEG")
    assert read.shape == (count + round(0.7 * fps), 720, 1280, 3)
    assert iio.immeta(result.video, plugin="FFMPEG")["fps"] == fps


def test_the_hands_view_is_in_the_upper_right_corner_of_the_scene():
    scene, hand = np.zeros((720, 960, 3), np.uint8), np.full((224, 224, 3), 200, np.uint8)
    plain, frame = compose(scene, None, []), compose(scene, None, [], hand=hand)
    assert frame.shape == (720, 1280, 3)
    assert (frame[16:200, 960 - 16 - 224 : 960 - 16] == 200).all()
    changed = np.argwhere((frame != plain).any(2))
    assert changed.min(0).tolist() == [14, 960 - 18 - 224] and changed.max(0).tolist() == [16 + 225, 960 - 15]


def test_a_file_that_cannot_be_written_within_an_action_ends_no_episode(tmp_path, monkeypatch):
    def full(*_, **__):
        raise VideoError("no room")

    monkeypatch.setattr(of_video, "compose", full)
    monkeypatch.setattr("eval.slots._KEPT", {})
    settings = {"depth_size": 0, "max_steps": 10, "num_layouts": 4, "action_repeat": 4, "render_mode": "rgb_array"}
    (result,) = run_chunk(Job("navigate", settings, "zero", None, 1, videos=1, video_dir=str(tmp_path)), [0])
    assert (result.steps, result.video, result.video_problem) == (10, None, "no room") and not list(tmp_path.iterdir())


@pytest.mark.parametrize("skill", SKILLS)
def test_every_line_about_a_skill_is_in_the_frame(skill):
    env = make_env(skill, depth_size=0, num_layouts=4, split="val")
    env.reset(options={"episode": 0})
    lines = ["step", "reward", *env.status_lines()]
    shown, last_cut = (compose(np.zeros((512, 512, 3), np.uint8), np.zeros((16, 16, 1)), said, title=skill,
                               footer="val/3") for said in (lines, lines[:-1]))
    assert not np.array_equal(shown, last_cut)


def test_the_lines_of_a_skill_take_as_much_room_as_those_of_a_plan():
    """So that those of a scenario fit as well."""
    envs = (make_env(skill, depth_size=0, num_layouts=4, split="val") for skill in SKILLS)
    assert max(len(env.status_lines()) for env in envs if env.reset(options={"episode": 0})) >= PLAN_LINES


def test_pictures_of_a_repeated_action_are_shown_in_real_time():
    assert make_env("navigate", depth_size=0, num_layouts=4, action_repeat=4).metadata["render_fps"] == 7.5
    assert make_env("pick", depth_size=0, num_layouts=4).metadata["render_fps"] == 30


def test_figures_are_written_whole_or_not_at_all(tmp_path, monkeypatch):
    def full(path, text):
        if path.name == "metrics.json":
            raise OSError(errno.ENOSPC, "No space left on device")
        write_whole(path, text)

    monkeypatch.setattr("eval.evaluate.write_whole", full)
    with pytest.raises(OSError):
        write(tmp_path, {}, [EpisodeResult(0, "a", "val/0", True, None, 3, 1.0)])
    assert [path.name for path in tmp_path.iterdir()] == ["episodes.csv"]


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
    assert frame.dtype == np.uint8 and frame.shape == (512, 832, 3)
    assert np.array_equal(frame[:, :512], third_person)
    panel = frame[:, 512:].astype(int)
    near, far = panel[80:140, 60:200].mean(), panel[200:260, 60:200].mean()
    assert near > far + 60
    for rows in (slice(8, 36), slice(330, 360), slice(480, 500)):  # title, first line, footer
        assert np.abs(panel[rows] - PANEL_RGB).max() > 80


def test_the_map_of_the_floor_is_in_the_corner_of_the_scene():
    scene, known = np.zeros((512, 512, 3), np.uint8), np.zeros((64, 64, 2), np.float32)
    known[:, :20, 0], known[:, 20:24, 0], known[4:7, 40:43, 1] = 0.5, 1.0, 1.0
    with_map, without = compose(scene, None, [], floor=(known, None)), compose(scene, None, [])
    corner = with_map[512 - 16 - 128 : 512 - 16, 16 : 16 + 128].astype(int)
    assert not without[:, :512].any() and np.array_equal(with_map[:, 512:], without[:, 512:])
    assert with_map[:512, :512].any(2).sum() <= 132 * 132
    unknown, free, occupied = (corner[100, column].sum() for column in (120, 10, 44))
    assert unknown < free < occupied
    assert corner[10, 82, 0] > corner[10, 82, 2] + 100  # the target, orange
    assert corner[64, 64, 2] > corner[64, 64, 0] + 100  # the robot, blue
    route = np.array([9.0, 0.5, 0.0, 1.5, -1.0], np.float32)  # m: its length, two points ahead and left
    with_route = compose(scene, None, [], floor=(known, route))[512 - 16 - 128 : 512 - 16, 16 : 16 + 128].astype(int)
    dots = np.argwhere((with_route != corner).any(2))
    assert tuple(dots[dots[:, 0] < 55].mean(0)) == (49.0, 74.0)  # 10 pixels a metre
    assert tuple(dots[dots[:, 0] > 55].mean(0).round()) == (59.0, 64.0)  # partly under the robot


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
    scene, sizes = np.zeros((301, 333, 3), np.uint8), []
    for reason in ("", "arm force", "stop: bad stop: (at bowl_1 goal_1) (not holding bowl_1) never held " * 2):
        frame = compose(scene, None, [], outcome=False, reason=reason)
        red = np.argwhere((frame == FAILURE_RGB).all(axis=2))
        assert red[:, 1].max() < 333 and red[:, 0].max() < 200
        sizes.append(len(red))
    assert sizes == sorted(set(sizes))
    assert of_video.wrap("one two three", 16, text_width("one two", 16)) == ["one two", "three"]
    assert of_video.wrap("", 16, 9) == []
    plain = compose(np.zeros((301, 333, 3), np.uint8), None, [])
    assert not plain[:301, :333].any()


def test_the_work_that_is_done_counts_the_film_where_there_is_one():
    """Two of ten episodes are filmed, each at ten times the cost of another."""
    job = Job("pick", {}, "random", None, 10, videos=2)
    of = {index: EpisodeResult(index, "", "", True, None, 3, 1.0, took_s=10.0 if index < 2 else 1.0)
          for index in range(10)}
    done = [WorkDone(job)([of[index] for index in indices]) for indices in ((0, 1), (0, 2), range(2, 10), range(10))]
    assert done == pytest.approx([20 / 100, 11 / 28, 8 / 10, 1.0]), "one kind stands for the other until both are known"
    assert WorkDone(job)([]) == 0.0
    share, results = WorkDone(job), [of[index] for index in range(10)]
    assert [share(results[:count]) for count in (3, 3, 10)] == [WorkDone(job)(results[:count]) for count in (3, 3, 10)]
