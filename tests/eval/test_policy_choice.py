"""Which policy runs a skill: the words `pretrained` and `newest`, paths, and what is said of them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from eval.agents import PolicyAgent
from eval.policy_choice import choose, table
from rearrange.command_line.runs.finished_runs import newest_finished, success
from rearrange.home.errors import UserError
from skills import pretrained
from tests.trainer.toy_networks import Straight
from tests.trainer.toys import Pointer, small
from trainer import train
from trainer.checkpoint import load_checkpoint, write
from trainer.checkpoints.owner import hold


@pytest.fixture
def training(tmp_path):
    """`training("name", status, typed)` leaves a training run of pick as the newest."""
    made: list[Path] = []

    def make(name: str, status: str = "finished", *typed: str, what: str = "pick", checkpoint: bool = True) -> Path:
        run = tmp_path / "train" / what / name
        (run / "checkpoints").mkdir(parents=True)
        (run / "config.yaml").write_text("steps: 1\n")
        (run / "overrides.yaml").write_text("".join(f"- {word}\n" for word in (f"skill={what}", *typed)))
        (run / "status.json").write_text(json.dumps({"status": status, "result": {"episode/success": 0.65}}))
        if checkpoint:
            (run / "checkpoints/step_000000000064.pt").touch()
        made.append(run)
        os.utime(run / "config.yaml", (1e9 + len(made),) * 2)
        return run

    return make


def evaluation(output: Path, name: str, checkpoint: Path, successes: float) -> None:
    run = output / "eval" / "pick" / name
    run.mkdir(parents=True)
    (run / "config.yaml").write_text("{}\n")
    figures = {"checkpoint": str(checkpoint), "success": successes, "episodes": 40, "split": "test",
               "deterministic": False}
    (run / "metrics.json").write_text(json.dumps(figures))


def test_newest_is_the_newest_that_is_finished_and_no_debug_run(training, tmp_path):
    training("older")
    good = training("good", "finished", "experiment=laptop")
    left_out = [training("dbg", "finished", "experiment=debug"), training("cut", "stopped"),
                training("broke", "failed"), training("killed", "running"), training("now", "running")]
    training("empty", "running", checkpoint=False)
    with hold(left_out[-1]):
        found, newer = newest_finished(tmp_path, "pick")
    assert found == good
    assert newer == list(zip(reversed(left_out), ("running", "died", "failed", "stopped", "experiment=debug")))
    assert newest_finished(tmp_path, "place") == (None, [])


def test_a_skill_takes_the_newest_finished_run_or_what_comes_with_the_package(training, tmp_path):
    choice = choose(None, "pick", tmp_path, "checkpoint")
    assert choice.checkpoint == pretrained.path("pick") and choice.run_by == "pretrained" and not choice.passed_over
    cut = training("cut", "stopped")
    choice = choose(None, "pick", tmp_path, "checkpoint")
    assert choice.checkpoint == pretrained.path("pick") and choice.why == "no finished run of your own"
    assert choice.passed_over == (f"{cut} (stopped): checkpoint={cut} takes it",)
    run = training("run")
    for word in (None, "newest"):
        choice = choose(word, "pick", tmp_path, "checkpoint")
        assert choice.checkpoint == run / "checkpoints/step_000000000064.pt" and choice.run_by == str(choice.checkpoint)
        assert choice.success == "65% at the end of its training" and not choice.passed_over
    assert choose("pretrained", "pick", tmp_path, "checkpoint").checkpoint == pretrained.path("pick")
    assert choose(str(cut), "pick", tmp_path, "checkpoint").checkpoint.parents[1] == cut


def test_a_plan_takes_what_comes_with_the_package_and_names_what_it_passes_over(training, tmp_path):
    run, cut = training("run"), training("cut", "stopped")
    choice = choose(None, "pick", tmp_path, "skills.pick", "pretrained")
    assert (choice.checkpoint, choice.why) == (pretrained.path("pick"), "the default")
    assert choice.passed_over == (f"{run} (finished, 65% at the end of its training): skills.pick=newest takes it",
                                  f"{cut} (stopped): skills.pick={cut} takes it")
    assert not choose("pretrained", "pick", tmp_path, "skills.pick").passed_over, "it was asked for"
    assert choose("newest", "pick", tmp_path, "skills.pick").checkpoint.parents[1] == run


def test_success_is_of_the_newest_evaluation_of_that_run(training, tmp_path):
    run, other = training("run"), training("other")
    assert success(run, tmp_path) == "65% at the end of its training"
    evaluation(tmp_path, "a", run / "checkpoints/step_000000000064.pt", 0.725)
    evaluation(tmp_path, "b", other / "checkpoints/step_000000000064.pt", 0.5)
    assert success(run, tmp_path) == "72.5% of 40 episodes, split=test"
    (tmp_path / "eval/pick/a/metrics.json").write_text("[]")
    (run / "status.json").write_text("junk")
    assert success(run, tmp_path) is None


def test_the_best_checkpoint_is_introduced_with_its_own_success(training, tmp_path):
    """Not with the last figures of its run; an evaluation of the run counts before both."""
    run = training("run")
    content = load_checkpoint(pretrained.path("pick"))
    write(run / "checkpoints/best.pt", content | {"step": 5000, "evaluation": {"measure": "success", "value": 0.9}})
    assert choose(None, "pick", tmp_path, "checkpoint").success == "90% in the evaluation at step 5,000"
    assert choose(str(run), "pick", tmp_path, "checkpoint").success == "90% in the evaluation at step 5,000"
    evaluation(tmp_path, "a", run / "checkpoints/best.pt", 0.725)
    assert choose(None, "pick", tmp_path, "checkpoint").success.startswith("72.5% of 40 episodes")


def test_what_is_not_there_is_told_with_what_to_do(training, tmp_path):
    with pytest.raises(UserError,
                       match=r"skills.pick: no checkpoint at nwest.*Did you mean skills.pick=newest\?.*=expert"):
        choose("nwest", "pick", tmp_path, "skills.pick")
    training("cut", "stopped", what="tidy_house")
    with pytest.raises(UserError,
                       match="no finished training run.*cut .stopped.: checkpoint=.*rearrange train hab=tidy_house"):
        choose(None, "tidy_house", tmp_path, "checkpoint")
    with pytest.raises(UserError, match="no policy of tidy_house comes with the package. Train one"):
        choose("pretrained", "tidy_house", tmp_path, "checkpoint")


def test_the_table_names_skill_policy_reason_and_success(training, tmp_path):
    for name in ("a", "b", "c", "d"):
        training(name, "failed")
    lines = table([choose(None, skill, tmp_path, f"skills.{skill}", "pretrained") for skill in ("navigate", "pick")])
    assert lines[0].split("   ")[0] == "skill" and "measured success" in lines[0]
    assert lines[1].startswith("navigate") and "pretrained" in lines[1] and "% of 500 episodes, split=val" in lines[1]
    assert lines[1].endswith("any place"), "as it is evaluated, not HAB's pose"
    assert lines[2].startswith("pick") and [line.split(": ")[0] for line in lines[3:]] == ["passed over"] * 3
    assert lines[-1] == "passed over: 2 more of pick"
    training("e", "failed", what="place")
    for count, shown in ((2, 2), (3, 3)):  # of one skill two are named, the third is counted
        training(str(count), "failed", what="place")
        lines = table([choose(None, "place", tmp_path, "skills.place", "pretrained")])
        assert [line.startswith("passed over: ") for line in lines[2:]] == [True] * shown
    assert lines[-1] == "passed over: 1 more of place"


def test_a_network_of_ones_own_acts_without_switching_gradients_off(tmp_path):
    settings = small(128, num_envs=4, rollout_steps=32)
    train(Pointer, settings, tmp_path, make_policy=Straight, progress=False)
    agent = PolicyAgent(load_checkpoint(tmp_path), 1, True, "tests.trainer.toy_networks:Straight")
    agent.begin(0, 0)
    action = agent.act({0: {"goal": np.array([0.5, -0.5], np.float32)}})[0]
    assert action.shape == (2,) and np.all(np.abs(action) <= 1)
