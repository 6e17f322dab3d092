"""Episodes of skills that go on after their success: success once and at the end."""

from __future__ import annotations

import pytest

from eval.evaluate import EpisodeResult, Job, run_chunk, summary
from eval.summary_table import table_lines
from rearrange.command_line.composition.parse_overrides import compose, require
from rearrange.home.errors import UserError
from skills import pretrained
from tests.skills.begun import action, let_go, started


def test_an_episode_goes_on_after_its_success_and_may_lose_it():
    for loses in (False, True):
        env = started("pick", max_steps=4, rest_radius_m=3.0)
        env.goes_on = True
        env.sim.put_in_hand(env.skill.target)
        *_, terminated, truncated, info = env.step(action(env, 1.0))
        assert info["success"] and not (terminated or truncated)
        if loses:
            let_go(env.sim)
        while not (terminated or truncated):
            *_, terminated, truncated, info = env.step(action(env, -1.0 if loses else 1.0))
        metrics = info["metrics"]
        assert metrics["success"] == 1.0 and metrics["success_at_end"] == float(not loses)
        assert not any(value for name, value in metrics.items() if name.startswith("failure/"))
        assert loses or env.steps == 4


def test_an_episode_ends_with_its_success_unless_told_otherwise():
    env = started("pick", max_steps=4, rest_radius_m=3.0)
    env.sim.put_in_hand(env.skill.target)
    *_, terminated, _, info = env.step(action(env, 1.0))
    assert terminated and info["metrics"]["success"] == 1.0 and "success_at_end" not in info["metrics"]


def test_a_table_names_the_policy_of_the_package_as_it_is_typed():
    def title(agent, checkpoint):
        return table_lines(summary(Job("pick", {"split": "val"}, agent, checkpoint, 0), []))[0]

    assert "agent pretrained   " in title("policy", str(pretrained.path("pick")))
    assert "agent policy   " in title("policy", "outputs/train/pick/mine/checkpoints/1.pt")
    assert "agent zero   " in title("zero", None)


def test_both_shares_stand_in_figures_and_table():
    job = Job("pick", {"split": "val"}, "zero", None, 4, to_the_end=True)
    results = [EpisodeResult(i, f"pick/val/{i}", "val/0", once, None if once else "time_limit", 200, 0.0,
                             {"success_at_end": float(end)})
               for i, (once, end) in enumerate([(True, True), (True, False), (True, False), (False, False)])]
    figures = summary(job, results)
    assert (figures["success"], figures["success_once"], figures["success_at_end"]) == (0.75, 0.75, 0.25)
    assert "success_at_end" not in figures["measures"] and figures["protocol"] == "HAB's start, to the end"
    assert any(line.split()[:4] == ["at", "the", "end", "25.0%"] for line in table_lines(figures))
    ended = summary(Job("pick", {"split": "val"}, "zero", None, 4), results)
    assert ended["success_at_end"] is None and not any("at the end" in line for line in table_lines(ended))


def test_a_job_says_whether_episodes_go_on():
    """Kept environments do not remember it."""
    for goes_on in (True, False):
        job = Job("pick", {"split": "val", "depth_size": 0, "max_steps": 2, "num_layouts": 1}, "zero", None, 1,
                  to_the_end=goes_on)
        result, = run_chunk(job, [0])
        assert ("success_at_end" in result.measures) == goes_on


def test_it_is_for_skills():
    with pytest.raises(UserError, match="to_the_end=true is for skill="):
        require(compose("eval", ["hab=tidy_house", "to_the_end=true"]))
