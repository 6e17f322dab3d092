"""The measurement of populations: generations follow each other, and independent runs have the same steps."""

from __future__ import annotations

import json

from benchmarks import run as run_benchmark


def test_a_population_beside_independent_runs(tmp_path, capsys):
    words = ["task=cartpole", "members=2", "every=2048", "steps=4096", "name=a", f"output={tmp_path}"]
    assert run_benchmark("population", words) == 0
    result = json.loads((tmp_path / "bench" / "population" / "a" / "bench.json").read_text())
    first, second = result["generations"]
    assert len(result["independent"]) == len(first["returns"]) == 2 and max(result["independent"]) > 9
    best = max(range(2), key=lambda number: first["returns"][number])
    assert [each["parent"] for each in second["members"]] == [best, best]
    kept, changed = second["members"][best]["settings"], second["members"][1 - best]["settings"]
    assert kept == first["members"][best]["settings"] != changed
    assert "generation 2 of 2" in capsys.readouterr().out
