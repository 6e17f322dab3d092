"""The tables of the pages against the code."""

from __future__ import annotations

import re

import pytest

from tests.docs.markdown import table


@pytest.fixture(scope="module")
def config():
    """The configuration of `rearrange train skill=pick policy=light`."""
    from rearrange.settings import compose

    return compose("train", ["skill=pick", "policy=light"]).config


def test_pick_observation(config):
    from skills import make_env

    keys = list(config.skill.observation_keys)
    space = make_env("pick", depth_size=config.policy.image_size, observation_keys=keys).observation_space
    shapes = {row["key"]: tuple(int(n) for n in row["shape"].split(" x ")) for row in table("pick.md", "key")}
    assert shapes == {key: box.shape for key, box in space.items()}


def test_pick_action(config):
    from rearrange.env import ACTION_SIZES

    rows = table("pick.md", "part")
    assert [row["part"] for row in rows] == list(config.skill.action_parts)
    assert all(ACTION_SIZES[row["part"]] == int(row["numbers"]) for row in rows)


def test_pick_numbers_in_the_text(config):
    """What sentences and tables say in figures."""
    from rearrange.fetch import ARM_DELTA_RAD
    from tests.docs.markdown import HOME

    text = (HOME / "docs/pick.md").read_text(encoding="utf-8")
    skill, sim = config.skill, config.sim
    for fact in (f"{skill.max_steps} steps", f"within {skill.rest_radius_m:g} m",
                 f"passed {skill.max_accumulated_force_n:g} N", f"at most {skill.max_force_step_n:g} N a step",
                 f"noise ({skill.start_position_noise_m:g} m, {skill.start_yaw_noise_rad:g} rad)",
                 f"({', '.join(f'{x:g}' for x in skill.rest_position_m)}) m", f"±{ARM_DELTA_RAD:g} rad",
                 f"±{sim.base_speed_m_s:g} m/s, ±{sim.base_turn_rad_s:g} rad/s"):
        assert fact in text, fact


def test_pick_reward(config):
    from skills.pick import REWARD_SCALES

    scales = {row["term"]: float(row["scale"]) for row in table("pick.md", "term")}
    assert scales == REWARD_SCALES == dict(config.skill.reward_scales)


def test_pick_failures():
    from rearrange.env import ENV_FAILURES
    from skills.pick import Pick

    assert [row["failure"] for row in table("pick.md", "failure")] == [*Pick.failures, *ENV_FAILURES]


def test_home_families():
    from rearrange.layouts import SPLIT_FAMILIES

    rows = [(int(row["family"].split()[0]), row["split"]) for row in table("home.md", "family")]
    assert rows == [(family, split) for split, families in SPLIT_FAMILIES.items() for family in families]


def test_home_objects():
    from rearrange.objects import OBJECTS

    rows = {row["object"]: row for row in table("home.md", "object")}
    assert list(rows) == list(OBJECTS)
    for name, model in OBJECTS.items():
        assert rows[name]["shape"] == model.shape and float(rows[name]["mass (kg)"]) == model.mass_kg
        size_mm = [float(n) for n in rows[name]["size (mm)"].split(" x ")]
        assert size_mm == pytest.approx([2000 * half for half in model.half_size_m])


def test_home_receptacle_kinds_are_all_there():
    from rearrange.layouts import make_layout
    from tests.docs.markdown import HOME

    text = (HOME / "docs/home.md").read_text(encoding="utf-8")
    listed = set(re.search(r"`rearrange.layout_parts.Receptacle`\): ([^.]+)\.", text)[1].replace("\n", " ").split(", "))
    assert listed == {r.kind for index in range(6) for r in make_layout("train", index).receptacles}


def test_evaluation_fields():
    """The fields of metrics.json, all of them and no others."""
    from eval.evaluate import EpisodeResult, Job, summary

    job = Job("pick", {"split": "val"}, "zero", None, 1)
    figures = summary(job, [EpisodeResult(0, "pick/val/0", "val/0", False, "time_limit", 200, -2.0, {"picked": 0.0})])
    fields = [field for row in table("evaluation.md", "field") for field in row["field"].split(", ")]
    assert sorted(fields) == sorted(figures)


def test_command_line_presets_exist():
    from rearrange import keys

    named = [row["preset"].strip("`").split("=") for row in table("command_line.md", "preset")]
    for group, choice in named:
        assert choice in keys.choices(group), f"{group}={choice}"
    for group in ("policy", "ppo", "experiment"):
        assert {c for g, c in named if g == group} == set(keys.choices(group))
