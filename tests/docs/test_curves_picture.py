"""Learning curves: each run is read between its logged steps, up to the end of the shortest."""

import json

import numpy as np
import pytest

from docs.curves_picture import line, main


def logged(run, *rows):
    run.mkdir()
    (run / "metrics.jsonl").write_text("\n".join(json.dumps({"step": step, **({} if value is None else {"episode/flee": value})})
                                                 for step, value in rows))


def test_a_line_is_of_the_steps_that_all_seeds_have(tmp_path):
    logged(tmp_path / "flee_0", (0, 0.0), (100, 1.0))
    logged(tmp_path / "flee_1", (5, None), (20, 0.4), (200, 0.4))
    steps, values = line([tmp_path / "flee_0", tmp_path / "flee_1"], "episode/flee")
    assert steps[0] == 20 and steps[-1] == 100
    assert values[:, 0].tolist() == pytest.approx([0.2, 0.4]) and values[:, -1].tolist() == pytest.approx([1.0, 0.4])
    assert np.all(np.diff(values[0]) > 0)
    with pytest.raises(SystemExit, match="has no episode/success"):
        line([tmp_path / "flee_0"], "episode/success")
    pytest.importorskip("matplotlib", reason="there is no picture without matplotlib")
    with pytest.raises(SystemExit, match="is no run directory"):
        main(str(tmp_path / "a.png"), "episode/flee", f"transfer={tmp_path}/nothing_*")
    main(str(tmp_path / "a.png"), "episode/flee", f"transfer={tmp_path}/flee_*")
    assert (tmp_path / "a.png").stat().st_size > 1000
