"""The scripts that draw the pictures of the pages."""

import json

import numpy as np
import pytest

from docs import curves_picture, error_picture, picture
from tests.docs.markdown import HOME


def logged(run, *rows):
    """A run directory with rows of metrics."""
    run.mkdir()
    (run / "metrics.jsonl").write_text("\n".join(json.dumps({"step": step, **figures}) for step, figures in rows))
    return run


def test_a_curve_has_the_steps_that_all_seeds_have(tmp_path):
    first = logged(tmp_path / "flee_0", (0, {"episode/flee": 0.0}), (100, {"episode/flee": 1.0}))
    second = logged(tmp_path / "flee_1", (5, {}), (20, {"episode/flee": 0.4}), (200, {"episode/flee": 0.4}))
    steps, values = curves_picture.line([first, second], "episode/flee")
    assert steps[0] == 20 and steps[-1] == 100
    assert values[:, 0].tolist() == pytest.approx([0.2, 0.4]) and values[:, -1].tolist() == pytest.approx([1.0, 0.4])
    assert np.all(np.diff(values[0]) > 0)
    with pytest.raises(SystemExit, match="has no episode/success"):
        curves_picture.line([first], "episode/success")
    pytest.importorskip("matplotlib", reason="there is no picture without matplotlib")
    with pytest.raises(SystemExit, match="is no run directory"):
        curves_picture.main(str(tmp_path / "a.png"), "episode/flee", f"transfer={tmp_path}/nothing_*")
    curves_picture.main(str(tmp_path / "a.png"), "episode/flee", f"transfer={tmp_path}/flee_*")
    assert (tmp_path / "a.png").stat().st_size > 1000


def test_errors_of_lessons_follow_each_other_by_tenths_of_a_decade(tmp_path):
    runs = [logged(tmp_path / name, *((step, {"episode/success": value, "episode/spl": value}) for step, value in rows))
            for name, rows in (("a", [(100, 0.0), (1000, 0.5)]), ("b", [(9000, 0.9), (9100, 0.7)]))]
    steps, errors = zip(*error_picture.errors(runs, "episode/success"))
    assert steps == pytest.approx([100, 1000, (10_000 * 10_100) ** 0.5]) and errors == pytest.approx([1.0, 0.5, 0.2])
    pytest.importorskip("matplotlib", reason="there is no picture without matplotlib")
    error_picture.main([runs], tmp_path / "errors.png")
    assert (tmp_path / "errors.png").stat().st_size > 1000


def test_the_moving_picture_shows_successes_one_panel_for_each_evaluation(tmp_path, monkeypatch):
    """docs/picture.py on videos of the shape that evaluations write; one evaluation alone from beginning to end."""
    from PIL import Image, ImageSequence

    from eval.video import VideoWriter, compose

    def video(name, shades):
        with VideoWriter(tmp_path / name) as writer:
            for shade in shades:
                scene, depth = np.full((512, 512, 3), shade, np.uint8), np.full((8, 8), 0.5, np.float32)
                writer.add(compose(scene, depth, ["step"], title="pick"))

    def rows(*evaluations):
        picture.main(str(tmp_path / "out.webp"), *(str(tmp_path / name / "run") for name in evaluations))
        made = ImageSequence.Iterator(Image.open(tmp_path / "out.webp"))
        return [np.asarray(frame.convert("RGB"))[250, :, 0].astype(int) for frame in made]

    monkeypatch.setattr(picture, "SECONDS", 1)
    for name, settings, shade in (("pick", "hab: null", 40),
                                  ("tidy_house", "hab: {name: tidy_house}\nvideo_speed: 4", 200)):
        video(f"{name}/run/videos/episode_0000_failure.mp4", [0])
        video(f"{name}/run/videos/episode_0001_success.mp4", [shade])
        (tmp_path / name / "run" / "config.yaml").write_text(settings)
    assert picture.caption(tmp_path / "tidy_house" / "run") == "Tidy House, 4 times as fast"
    assert all(abs(row[9] - 40) < 8 and abs(row[-99] - 200) < 8 for row in rows("pick", "tidy_house"))
    video("pick/run/videos/episode_0001_success.mp4", (0, 60, 120, 180, 240))
    shades = [row[9] for row in rows("pick")]
    assert shades[0] < 12 and shades[-1] > 228 and shades == sorted(shades)


@pytest.mark.parametrize("name", ["skills", "tidy_house", "prepare_groceries", "set_table"])
def test_moving_pictures_are_small(name):
    from PIL import Image

    committed = HOME / "docs/images" / f"{name}.webp"
    assert Image.open(committed).n_frames > 60 and committed.stat().st_size < 3_000_000
