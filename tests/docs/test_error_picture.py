"""The curve of errors: lessons follow each other, and points are means of tenths of a decade."""

import json

import pytest

from docs.error_picture import errors, main


def test_steps_of_lessons_add_up(tmp_path):
    rows = {"a": [(100, 0.0), (1000, 0.5)], "b": [(9000, 0.9), (9100, 0.7)]}
    for name, found in rows.items():
        (tmp_path / name).mkdir()
        lines = [json.dumps({"step": step, "episode/success": value, "episode/spl": value}) for step, value in found]
        (tmp_path / name / "metrics.jsonl").write_text("\n".join(lines))
    made = errors([tmp_path / "a", tmp_path / "b"], "episode/success")
    assert [step for step, _ in made] == pytest.approx([100, 1000, (10_000 * 10_100) ** 0.5])
    assert [error for _, error in made] == pytest.approx([1.0, 0.5, 0.2])
    pytest.importorskip("matplotlib", reason="there is no picture without matplotlib")
    main([[tmp_path / "a", tmp_path / "b"]], tmp_path / "errors.png")
    assert (tmp_path / "errors.png").stat().st_size > 1000
