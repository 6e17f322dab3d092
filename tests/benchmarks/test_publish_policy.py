"""Published policies: half precision, small, loadable by name, with a card that says what was measured."""

import json
import re
import shutil

import gymnasium
import numpy as np
import pytest
import torch
from omegaconf import OmegaConf

from benchmarks import policy_homes
from benchmarks.publish_policy import main, measure_with, publish_evaluation, publish_policy, usual_settings
from rearrange.home.errors import UserError
from rearrange.home.settings.environment import NAVIGATION
from rearrange.home.settings.yaml_files import as_yaml, plain_yaml
from skills import SKILLS, pretrained
from trainer.checkpoint import load_checkpoint, load_policy, policy_content, save
from trainer.config import PolicyConfig
from trainer.policy import Policy

PROTOCOLS = ("honest", "oracle", "paper")


@pytest.fixture
def run(tmp_path):
    """A training run as `rearrange train` leaves it, with a policy that was not trained."""
    spaces = (gymnasium.spaces.Dict({"joint": gymnasium.spaces.Box(-1, 1, (7,), np.float32)}),
              gymnasium.spaces.Box(-1, 1, (3,), np.float32))
    policy = Policy(*spaces, PolicyConfig(encoder=None, lstm_layers=1, body_size=16))
    path = tmp_path / "run"
    save(path / "checkpoints", 5000, {**policy_content(policy, *spaces), "window": [{"success": 1.0}] * 1000,
                                      "meta": {"skill": "pick", "env": {}}})
    (path / "overrides.yaml").write_text("- skill=pick\n- policy=blind\n- name=x\n- output=/somewhere\n")
    (path / "git.txt").write_text("0123abc 2026-01-01\n## main\n")
    (path / "metrics.jsonl").write_text(
        "".join(json.dumps({"step": s, "wall_s": w}) + "\n" for s, w in ((1, 1800), (2, 3600), (3, 900))))
    return path


def test_a_published_policy_acts_like_the_one_that_was_trained(run, tmp_path):
    file = publish_policy(run, tmp_path)
    published, trained = load_checkpoint(file), load_checkpoint(run)
    assert set(published) == {"format", "step", "policy", "policy_config", "observation_space", "action_space", "meta"}
    of = {name: value.dtype for name, value in trained["policy"].items()}
    halved = {name: value.dtype for name, value in published["policy"].items()}
    assert halved == {name: torch.float16 if dtype == torch.float32 else dtype for name, dtype in of.items()}
    small, full = load_policy(published), load_policy(trained)
    obs = {"joint": torch.linspace(-1, 1, 14).reshape(2, 7)}
    acts = [p.act(obs, torch.zeros(2, p.state_size), torch.zeros(2, 3), True).action for p in (small, full)]
    assert torch.allclose(*acts, atol=1e-2) and acts[0].dtype == torch.float32


def test_the_card_says_where_it_comes_from_and_what_it_reaches(run, tmp_path):
    file = publish_policy(run, tmp_path)
    card = file.with_suffix(".yaml").read_text()
    assert "command: rearrange train skill=pick policy=blind\n" in card and "commit: 0123abc\n" in card
    assert "steps: 5000" in card and "training_hours: 1.25" in card
    evaluation = tmp_path / "evaluation"
    evaluation.mkdir()
    figures = {"skill": "pick", "checkpoint": str(file), "split": "val", "episodes": 500, "deterministic": False,
               "success": 0.5, "success_interval_95": [0.45, 0.55], "failures": {"time_limit": 0.5},
               "mean_steps": 100.0, "env": usual_settings(file, "skill", "pick")}
    for success in (0.4, 0.5):  # measured again: the newer figure stands
        (evaluation / "metrics.json").write_text(json.dumps(figures | {"success": success}))
        publish_evaluation(evaluation, tmp_path)
    text = file.with_suffix(".yaml").read_text()
    assert text.count("split: val") == 1 and "success: 0.5" in text and "success: 0.4" not in text
    for at_end in (0.2, 0.3):  # whose episodes go on after their success: rows of their own
        (evaluation / "metrics.json").write_text(json.dumps(figures | {
            "success": 0.6, "success_once": 0.6, "success_at_end": at_end, "success_at_end_interval_95": [0.1, 0.4]}))
        publish_evaluation(evaluation, tmp_path)
    card = plain_yaml(file.with_suffix(".yaml"))
    assert [row["success"] for row in card["evaluations"]] == [0.5]
    assert [(row["success_once"], row["success_at_end"], row["split"]) for row in card["to_the_end"]] == [
        (0.6, 0.3, "val")]
    (evaluation / "metrics.json").write_text(json.dumps(figures | {
        "episodes": 400, "success_once": 0.6, "success_at_end": 0.3, "success_at_end_interval_95": [0.1, 0.4]}))
    with pytest.raises(UserError, match="has 400 episodes, and the figure in whose place it would come 500"):
        publish_evaluation(evaluation, tmp_path)


def test_a_policy_of_navigation_is_published_by_the_same_command_with_its_spl(run, tmp_path, monkeypatch):
    content = load_checkpoint(run)
    save(run / "checkpoints", 6000, content | {"step": 6000, "meta": {"nav": "pointnav", "env": {"turn_deg": 10.0}}})
    (run / "overrides.yaml").write_text("- nav=pointnav\n")
    file = publish_policy(run, tmp_path)
    assert file.name == "pointnav.pt" and load_checkpoint(file)["meta"] == {"nav": "pointnav",
                                                                            "env": {"turn_deg": 10.0}}
    (tmp_path / "metrics.json").write_text(
        json.dumps({"nav": "pointnav", "checkpoint": str(file), "split": "test", "episodes": 500, "deterministic": True,
                    "success": 0.9, "success_interval_95": [0.85, 0.95], "failures": {"time_limit": 0.1},
                    "mean_steps": 80.0, "measures": {"spl": 0.8, "collisions": 3}, "spl_interval_95": [0.75, 0.85],
                    "env": usual_settings(file, "nav", "pointnav")}))
    publish_evaluation(tmp_path, tmp_path)
    card = OmegaConf.load(file.with_suffix(".yaml"))
    assert card.nav == "pointnav" and "skill" not in card and card.command == "rearrange train nav=pointnav"
    assert card.evaluations[0].spl == 0.8 and list(card.evaluations[0].spl_interval_95) == [0.75, 0.85]
    monkeypatch.setattr(pretrained, "FOLDER", tmp_path)
    assert pretrained.names() == ["pointnav"] and pretrained.path("pointnav") == file


def test_the_card_says_what_the_policy_began_with(run, tmp_path):
    publish_policy(run, tmp_path)
    content = load_checkpoint(run)
    save(run / "checkpoints", 6000,
         content | {"step": 6000, "meta": {"skill": "pick", "env": {}, "started_from": "pretrained"}})
    card = OmegaConf.load(publish_policy(run, tmp_path).with_suffix(".yaml"))
    assert card.steps == 6000 and card.started_from.steps == 5000
    assert card.started_from.command == "rearrange train skill=pick policy=blind"
    assert "evaluations" not in card.started_from
    then = tmp_path / "then"
    shutil.copytree(run, then)
    (then / "overrides.yaml").write_text(f"- skill=pick\n- checkpoint={run}\n- sim.episodes='/some*/mine.json.gz'\n")
    env = {"episodes": "/somewhere/mine.json.gz", "detour_probability": 0.3, "split": "train"}
    meta = {"skill": "pick", "env": env, "started_from": str(run)}
    save(then / "checkpoints", 7000, content | {"step": 7000, "meta": meta})
    file = publish_policy(then, tmp_path)
    card = OmegaConf.load(file.with_suffix(".yaml"))
    assert card.command == "rearrange train skill=pick checkpoint=run sim.episodes=mine.json.gz"
    assert [card.steps, card.started_from.steps, card.started_from.started_from.steps] == [7000, 6000, 6000]
    assert load_checkpoint(file)["meta"] == {"skill": "pick", "env": {"split": "train"}}
    meta["started_from"] = str(run / "checkpoints" / "step_000000005000.pt")  # not the newest one of that run
    save(then / "checkpoints", 8000, content | {"step": 8000, "meta": meta})
    card = OmegaConf.load(publish_policy(then, tmp_path).with_suffix(".yaml"))
    assert card.started_from.steps == 5000 and card.started_from.command == "rearrange train skill=pick policy=blind"
    meta["started_from"] = "mine.pt"  # a file of no run
    save(then / "checkpoints", 9000, content | {"step": 9000, "meta": meta})
    assert OmegaConf.load(publish_policy(then, tmp_path).with_suffix(".yaml")).started_from == "mine.pt"


def test_a_share_of_the_weights_of_the_one_before_is_kept(run, tmp_path, capsys):
    with pytest.raises(UserError, match=r"keep=0.25 averages with the policy that ships, and there is none"):
        publish_policy(run, tmp_path, keep=0.25)
    old = load_checkpoint(publish_policy(run, tmp_path))["policy"]
    content = load_checkpoint(run)
    new = {name: value + 1 if value.is_floating_point() else value for name, value in content["policy"].items()}
    save(run / "checkpoints", 6000, content | {"step": 6000, "policy": new})
    before = policy_homes.digest(tmp_path / "pick.pt")
    file = publish_policy(run, tmp_path, keep=0.25)
    for name, value in load_checkpoint(file)["policy"].items():
        expected = 0.75 * new[name].double() + 0.25 * old[name].double() if value.is_floating_point() else old[name]
        np.testing.assert_allclose(value.double(), expected, atol=2e-3, err_msg=name)
    assert plain_yaml(file.with_suffix(".yaml"))["kept"] == {"share": 0.25, "policy": before}
    shutil.copy(pretrained.path("pick"), file)  # of another network
    with pytest.raises(UserError, match="keep=0.25 averages policies of one network"):
        publish_policy(run, tmp_path, keep=0.25)
    for word in ("1", "-0.1", "half", "nan"):
        assert main([str(run), f"keep={word}"]) == 2 and f"keep={word} is not allowed" in capsys.readouterr().err


def test_a_stop_while_policies_are_measured_changes_nothing(run, tmp_path, monkeypatch, capsys):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    publish_policy(run, tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.glob("pick.*")}
    with pytest.raises(KeyboardInterrupt):
        publish_policy(run, tmp_path, measure=stopped)
    assert {path: path.read_bytes() for path in tmp_path.glob("*pick*")} == before and not [*tmp_path.glob(".publish*")]
    monkeypatch.setattr(policy_homes, "measured", stopped)
    assert main([str(run)]) == 130 and capsys.readouterr().err == "benchmarks.publish_policy: stopped.\n"


def test_success_of_a_whole_task_stands_in_the_cards_of_the_policies_that_ran(run, tmp_path):
    content = load_checkpoint(run)
    files = []
    for skill in ("pick", "place"):
        save(run / "checkpoints", int(content["step"]) + len(files), content | {"meta": {"skill": skill, "env": {}}})
        files.append(publish_policy(run, tmp_path))
    then = tmp_path / "then"
    then.mkdir()
    figures = {"scenario": "tidy_house", "agent": "tp_srl", "problem": "tidy_house", "protocol": "honest",
               "split": "val", "seed": 97, "episodes": 500, "deterministic": False, "changed": [],
               "skills": {file.stem: str(file) for file in files}, "success": 0.9, "success_015": 0.5,
               "success_015_interval_95": [0.45, 0.55]}
    for near in (0.4, 0.5):  # measured again: the newer figure stands
        (then / "metrics.json").write_text(json.dumps(figures | {"success_015": near}))
        assert publish_evaluation(then, tmp_path) == [file.with_suffix(".yaml") for file in files]
    (then / "metrics.json").write_text(json.dumps(figures | {"protocol": "paper"}))
    publish_evaluation(then, tmp_path)
    (then / "metrics.json").write_text(json.dumps(figures | {"success_015": 0.6}))
    publish_evaluation(then, tmp_path)  # in the place of the old one
    for file in files:
        rows = OmegaConf.load(file.with_suffix(".yaml")).plans
        assert [(row.protocol, row.success_015, row.seed) for row in rows] == [("honest", 0.6, 97), ("paper", 0.5, 97)]
    row = {key: figures[key] for key in ("scenario", "problem", "protocol", "split", "success_015")}
    of_place = files[1].with_suffix(".yaml")
    of_place.write_text(as_yaml(plain_yaml(of_place) | {"plans": [row, *plain_yaml(of_place)["plans"]]}))
    replaced = tmp_path / "replaced"
    shutil.copytree(tmp_path, replaced, ignore=shutil.ignore_patterns("run", "then", "replaced"))
    save(run / "checkpoints", 9000, content | {"meta": {"skill": "pick", "env": {}}})
    publish_policy(run, replaced)  # the whole tasks of the old one are nobody's; one without it stays
    assert "plans" not in plain_yaml(replaced / "pick.yaml") and plain_yaml(replaced / "place.yaml")["plans"] == [row]
    shutil.copy(pretrained.path("pick"), then / "pick.pt")  # another policy than the published one
    (then / "metrics.json").write_text(json.dumps(figures | {"skills": {"pick": str(then / "pick.pt")}}))
    with pytest.raises(UserError, match="did not evaluate the published policy of pick"):
        publish_evaluation(then, tmp_path)
    (then / "metrics.json").write_text(json.dumps(figures | {"skills": figures["skills"] | {"pick": "expert"}}))
    with pytest.raises(UserError, match="did not evaluate the published policy of pick but expert"):
        publish_evaluation(then, tmp_path)
    for other in ({"agent": "tp_srl_nonav"}, {"skills": {}}):
        (then / "metrics.json").write_text(json.dumps(figures | other))
        with pytest.raises(UserError, match="only evaluations of agent=tp_srl are published"):
            publish_evaluation(then, tmp_path)


@pytest.mark.parametrize("other, said", [({"changed": ["hab.objects=[any]", "sim.episodes=my.json"]},
                                          "an evaluation with hab.objects=[any], sim.episodes=my.json, and a card"),
                                         ({"protocol": "honest, knowledge=state, at_m=0.3"},
                                          "an evaluation with planner.knowledge=state, planner.at_m=0.3, and a card"),
                                         ({"deterministic": True}, "an evaluation with deterministic=true, and a card"),
                                         ({"episodes": 499}, "has 499 episodes, and the figure in whose place it "
                                          "would come 500: evaluate again with episodes=500.")])
def test_a_scenario_that_was_changed_or_has_fewer_episodes_leaves_all_cards_as_they_are(other, said, tmp_path,
                                                                                        monkeypatch, capsys):
    shutil.copytree(pretrained.FOLDER, tmp_path / "cards", ignore=shutil.ignore_patterns("__pycache__"))
    cards = {file: file.read_bytes() for file in (tmp_path / "cards").glob("*.yaml")}
    figures = {"scenario": "tidy_house", "agent": "tp_srl", "problem": "tidy_house", "protocol": "honest",
               "split": "val", "seed": 1, "episodes": 500, "deterministic": False, "changed": [], "success": 0.1,
               "success_015": 0.1, "success_015_interval_95": [0.0, 0.2],
               "skills": {skill: str(tmp_path / f"cards/{skill}.pt") for skill in ("pick", "place", "navigate")}}
    (tmp_path / "metrics.json").write_text(json.dumps(figures | other))
    monkeypatch.setattr(publish_evaluation, "__defaults__", (tmp_path / "cards",))
    assert main([str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1 and {file: file.read_bytes() for file in cards} == cards
    (tmp_path / "metrics.json").write_text(json.dumps(figures))
    assert len(publish_evaluation(tmp_path, tmp_path / "cards")) == 3, "what is neither is taken"


@pytest.mark.parametrize(
    "words, said", [(["skill=pick", "skill.max_steps=20"], "an evaluation with skill.max_steps=20, and a card"),
                    (["skill=pick", "skill.max_steps=2", "sim.substeps=2"], "an evaluation with skill.max_steps=2, "
                     "sim.substeps=2, and a card"), (["nav=pointnav", "nav.size=large", "nav.max_steps=5"],
                                                     "an evaluation with nav.size=large, nav.max_steps=5, and a card"),
                    (["skill=pick"], "has 1 episodes, and the figure in whose place it would come 500"),
                    (["nav=pointnav"], "has 1 episodes, and the figure in whose place it would come 1000")])
def test_an_evaluation_of_a_changed_task_leaves_the_card_as_it_is(words, said, tmp_path, monkeypatch, capsys):
    from rearrange.command_line.cli import main as rearrange

    shutil.copytree(pretrained.FOLDER, tmp_path / "cards", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(pretrained, "FOLDER", tmp_path / "cards")
    assert rearrange(
        ["eval", *words, "checkpoint=pretrained", "episodes=1", "workers=1", f"output={tmp_path}", "name=x"]) == 0
    task = words[0].partition("=")[2]
    card = (tmp_path / "cards" / f"{task}.yaml").read_bytes()
    with pytest.raises(UserError, match=re.escape(said)):
        publish_evaluation(tmp_path / "eval" / task / "x", tmp_path / "cards")
    assert (tmp_path / "cards" / f"{task}.yaml").read_bytes() == card


@pytest.mark.parametrize("words, changed", [
    ([], []), (["split=test", "seed=3"], []),
    (["hab.objects=[any]", "hab.starts=[open]", "hab.goals=[open]", "hab.clutter=0", "hab.min_move_m=0"],
     ["hab.objects=[any]", "hab.starts=[open]", "hab.goals=[open]", "hab.clutter=0", "hab.min_move_m=0.0"]),
    (["hab.max_steps=20", "sim.num_layouts=4", "sim.base_speed_m_s=2.5"],
     ["hab.max_steps=20", "sim.base_speed_m_s=2.5", "sim.num_layouts=4"])])
def test_figures_of_a_scenario_say_what_was_changed(words, changed, tmp_path):
    from eval.scenario.command import make_job
    from eval.scenario.figures import changed as changed_in
    from rearrange.command_line.composition import parse_overrides as settings
    from rearrange.command_line.composition.options import options_of

    composed = settings.compose("eval",
                                ["hab=tidy_house", "skills=pretrained", f"output={tmp_path}", "episodes=1", *words])
    assert changed_in(make_job(options_of(composed))) == changed


def test_figures_of_an_interrupted_evaluation_are_refused(run, tmp_path):
    (run / "metrics.json").write_text(json.dumps({"skill": "pick", "checkpoint": str(publish_policy(run, tmp_path)),
                                                  "interrupted": True}))
    with pytest.raises(UserError, match="was interrupted"):
        publish_evaluation(run, tmp_path)


def test_figures_of_another_policy_are_refused(run, tmp_path, capsys):
    publish_policy(run, tmp_path)
    (run / "metrics.json").write_text(
        json.dumps({"skill": "pick", "checkpoint": str(run / "checkpoints/step_000000005000.pt")}))
    with pytest.raises(UserError, match="did not evaluate the published policy"):
        publish_evaluation(run, tmp_path)
    assert main([str(run)]) == 2 and capsys.readouterr().err.count("\n") == 1


def rows(**success: float) -> list[dict]:
    return [{"homes": homes, "success": value, "success_interval_95": [value - 0.04, value + 0.04], "episodes": 100}
            for homes, value in success.items()]


def test_a_policy_that_is_worse_somewhere_by_more_than_the_interval_is_refused():
    policy_homes.refuse_a_fall(rows(home=0.87, wide=0.9), rows(home=0.9, wide=0.2))
    policy_homes.refuse_a_fall(rows(home=0.1), [])
    with pytest.raises(UserError, match=r"wide: 90\.0 to 85\.0 %\)\. Write worse=true"):
        policy_homes.refuse_a_fall(rows(home=0.99, wide=0.85), rows(home=0.5, wide=0.9))


def test_a_card_names_a_data_set_without_its_folder():
    words = policy_homes.kinds("skill", "pick", [], "/somewhere/x/city.scene_dataset_config.json", "a_*")["city"]
    path = words[1].partition("=")[2]
    said = policy_homes.without_folders(f"any start, sim.scene_dataset={path}, sim.scenes=a_*", words)
    assert said == "any start, sim.scene_dataset=city.scene_dataset_config.json, sim.scenes=a_*"


def test_both_policies_are_measured_before_one_replaces_the_other(run, tmp_path, monkeypatch, capsys):
    asked = []

    def measured(file, task, words, episodes):
        asked.append((file.parent == tmp_path, task, words, episodes))
        return rows(**{"test homes": 0.9 if file.parent == tmp_path else 0.5})

    monkeypatch.setattr(policy_homes, "measured", measured)
    words = {"episodes": "7", "dataset": "x/city.scene_dataset_config.json"}
    file = publish_policy(run, tmp_path, measure=measure_with(words))
    assert [each[0] for each in asked] == [False] and asked[0][1] == "pick" and asked[0][3] == 7
    assert list(asked[0][2]) == ["test homes", "test homes, wide furniture", "city", "plans in test homes"]
    assert asked[0][2]["plans in test homes"] == ["hab=prepare_groceries", "split=test"]
    assert plain_yaml(file.with_suffix(".yaml"))["homes"][0]["success"] == 0.5
    before = {path: path.read_bytes() for path in tmp_path.glob("pick.*")}
    save(run / "checkpoints", 6000, load_checkpoint(run) | {"step": 6000})
    with pytest.raises(UserError, match="test homes: 90.0 to 50.0 %"):
        publish_policy(run, tmp_path, measure=measure_with({}))
    assert {path: path.read_bytes() for path in tmp_path.glob("*pick*")} == before and not [*tmp_path.glob(".publish*")]
    publish_policy(run, tmp_path, measure=measure_with({"worse": "true"}))
    assert load_checkpoint(file)["step"] == 6000 and "before  90.0 %" in capsys.readouterr().out
    for words, said in (({"force": "true"}, "force= is no word"), ({"episodes": "0"}, "episodes=0 is not allowed")):
        with pytest.raises(UserError, match=said):
            measure_with(words)


def test_a_policy_is_measured_by_the_command_that_users_type(tmp_path):
    file = tmp_path / "pick.pt"
    shutil.copy(pretrained.path("pick"), file)
    kinds = {"test homes": ["skill=pick", "split=test", "sim.num_layouts=1", "sim.depth_size=0", "skill.max_steps=2"]}
    with pytest.raises(UserError, match="the evaluation in test homes failed"):
        policy_homes.measured(file, "pick", kinds, 1)  # the policy sees the image
    kinds["test homes"].remove("sim.depth_size=0")
    row, = policy_homes.measured(file, "pick", kinds, 1)
    assert row["homes"] == "test homes" and row["episodes"] == 1 and row["policy"] == policy_homes.digest(file)
    kinds = {"plans in test homes": ["hab=tidy_house", "split=test", "hab.max_steps=20"]}
    row, = policy_homes.measured(file, "pick", kinds, 1)
    assert row["success"] == 0.0 and row["success_interval_95"][0] == 0.0 and row["protocol"] == "honest"


@pytest.mark.parametrize("skill", pretrained.names())
def test_every_published_policy_loads_and_is_small(skill):
    file, card = pretrained.path(skill), pretrained.card(skill)
    group = "skill" if skill in SKILLS else "nav"
    assert skill in (*SKILLS, *NAVIGATION) and file.stat().st_size < 3_000_000
    content = load_checkpoint(file)
    load_policy(content)
    assert content["meta"][group] == card[group] == skill and content["step"] == card["steps"]
    assert card["command"].startswith("rearrange train") and card["commit"]
    for row in card["evaluations"]:
        low, high = row["success_interval_95"]
        assert low <= row["success"] <= high and row["episodes"] >= 500
    assert card["limits"] and all(text.endswith(".") for text in card["limits"])
    for row in card.get("plans", []):
        low, high = row["success_015_interval_95"]
        assert low <= row["success_015"] + 1e-9 and row["success_015"] <= min(high,
                                                                              row["success"]) and row["episodes"] >= 500
    # a scenario in which it takes part, by every protocol; the paper's Set Table closes nothing again
    if group == "skill":
        protocols = [name for name in PROTOCOLS if not (name == "paper" and skill.startswith("close_"))]
        assert {(row["protocol"], row["split"]) for row in card["plans"]} == {(p, s) for p in protocols
                                                                              for s in ("val", "test")}


@pytest.mark.parametrize("skill", [name for name in SKILLS if name in pretrained.names()])
def test_failures_of_which_a_limit_counts_some_are_as_many_as_the_card_has(skill):
    card = pretrained.card(skill)
    for text in card["limits"]:
        for scenario, total in re.findall(
            r"In (Set Table|Tidy House|Prepare Groceries) .*?\d+ of (\d+) failed validation episodes", text):
            row = next(row for row in card["plans"] if (row["scenario"], row["protocol"], row["split"])
                       == (scenario.lower().replace(" ", "_"), "honest", "val"))
            assert round((1 - row["success"]) * row["episodes"]) == int(total), text


def test_the_published_cards_agree_on_every_plan():
    """A figure that is measured again replaces the old one in all of them."""
    measured = {}
    for skill in (name for name in SKILLS if name in pretrained.names()):
        for row in pretrained.card(skill)["plans"]:
            assert measured.setdefault((row["problem"], row["protocol"], row["split"]), row) == row, skill


@pytest.mark.parametrize("task, words", [("juggle", "skill=juggle"), ("flee", "nav=flee")])
def test_a_task_without_one_is_one_sentence(task, words):
    with pytest.raises(UserError, match=f"no trained policy of {words} comes .* rearrange train {words}"):
        pretrained.path(task)
