"""The expert as an agent of an evaluation."""

from __future__ import annotations

from eval.evaluate import Job, evaluate, summary


def test_the_expert_solves_episodes_and_the_number_of_processes_does_not_matter(monkeypatch):
    monkeypatch.setattr("eval.evaluate.CHUNK", 3)
    job = Job("pick", {"split": "val", "depth_size": 0}, "expert", None, episodes=6)
    alone, shared = evaluate(job, workers=1), evaluate(job, workers=2)
    assert alone == shared
    figures = summary(job, alone)
    assert figures["success"] >= 5 / 6 and figures["agent"] == "expert"
