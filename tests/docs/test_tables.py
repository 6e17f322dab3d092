"""The tables of the pages against the code."""

from __future__ import annotations

import re

import pytest

from tests.docs.markdown import HOME, table


def test_home_families():
    from rearrange.home.apartments.layouts import SPLIT_FAMILIES

    rows = [(int(row["family"].split()[0]), row["split"]) for row in table("home.md", "family")]
    assert rows == [(family, split) for split, families in SPLIT_FAMILIES.items() for family in families]


def test_home_objects():
    from rearrange.home.apartments.objects import OBJECTS

    rows = {row["object"]: row for row in table("home.md", "object")}
    assert list(rows) == list(OBJECTS)
    for name, model in OBJECTS.items():
        assert rows[name]["shape"] == model.shape and float(rows[name]["mass (kg)"]) == model.mass_kg
        size_mm = [float(n) for n in rows[name]["size (mm)"].split(" x ")]
        assert size_mm == pytest.approx([2000 * half for half in model.half_size_m])


def test_home_receptacle_kinds_are_all_there():
    from rearrange.home.apartments.layouts import make_layout

    text = " ".join((HOME / "docs/home.md").read_text(encoding="utf-8").split())
    listed = set(re.search(r"`rearrange.home.apartments.parts.Receptacle`\): ([^.]+)\.", text)[1].split(", "))
    assert listed == {r.kind for index in range(6) for r in make_layout("train", index).receptacles}


def test_evaluation_fields():
    """The fields of metrics.json, all of them and no others."""
    from eval.evaluate import EpisodeResult, Job, cut_short, summary

    job = Job("pick", {"split": "val"}, "zero", None, 1)
    figures = summary(job, [EpisodeResult(0, "pick/val/0", "val/0", False, "time_limit", 200, -2.0, {"picked": 0.0})])
    fields = [field for row in table("evaluation_files.md", "field") for field in row["field"].split(", ")]
    assert sorted(fields) == sorted(cut_short(figures, 2))


def test_command_line_presets_exist():
    from rearrange.command_line.composition import options

    named = [row["preset"].strip("`").split("=") for row in table("command_line.md", "preset")]
    for group, choice in named:
        assert choice in options.choices(group), f"{group}={choice}"
    for group in ("policy", "ppo", "experiment"):
        assert {c for g, c in named if g == group} == set(options.choices(group))


def test_gymnasium_ids():
    from rearrange.command_line.composition import options
    from rearrange.env.registration import environment_id

    named = [id for row in table("gymnasium.md", "id") for id in re.findall(r"`(.+?)`", row["id"])]
    names = [name for group in ("skill", "nav", "hab") for name in options.choices(group)]
    assert sorted(named) == sorted(map(environment_id, names))


def test_success_of_the_policies_is_the_same_in_the_readme_the_list_the_cards_and_the_results():
    """Of every protocol and split; the headline of the README is HAB's."""
    from rearrange.command_line.listing import _pretrained_lines
    from skills import SKILLS, pretrained

    shipped = [name for name in SKILLS if name in pretrained.names()]
    cards = {(name, row["protocol"], row["split"]): f"{100 * row['success']:.1f}" for name in shipped
             for row in pretrained.card(name)["evaluations"] if not row["deterministic"]}
    results, name = {}, ""
    for row in table("results.md", "skill"):
        name = row["skill"] or name
        if not name.startswith("-") and not row["skill"].startswith("-"):
            split = {"validation": "val", "test": "test"}[row["split"]]
            results[name.lower().replace(" ", "_"), row["episodes begin by"], split] = row["success"].strip("* %")
    assert results == cards
    listed, name = {}, ""
    for line in _pretrained_lines(shipped)[1:]:
        first, *cells = re.split(r" {3,}", line.rstrip())
        name, (rule, *shares) = (first, cells[2:]) if first else (name, cells)
        listed |= {(name, rule, split): share.split("%")[0] for split, share in zip(("val", "test"), shares)}
    assert listed == cards
    shown, scenarios = {}, {}
    for row in table("../README.md", "task"):
        name = row["task"].split("]")[0].strip("[").lower().replace(" ", "_")
        hab, more = "HAB's pose" if name == "navigate" else "HAB's start", row["other protocol"]
        for split, word in (("val", "validation"), ("test", "test")):
            first, second = (row[column].partition(" %")[0] for column in (f"HAB's start: {word}", f"its {word}"))
            if name in SKILLS:
                shown |= {(name, hab, split): first} | ({(name, more, split): second} if more else {})
            else:
                scenarios |= {(name, "honest", split): first, (name, "paper", split): second}
    assert shown == cards
    plans = {(row["scenario"], row["protocol"], row["split"]): row for row in pretrained.card("pick")["plans"]}
    assert scenarios == {key: f"{100 * row['success' if key[1] == 'paper' else 'success_015']:.1f}"
                         for key, row in plans.items() if key[1] != "oracle"}


def test_success_in_replica_cad_is_the_same_in_the_readme_the_cards_and_the_results():
    """Of the policies whose hash stands in the results."""
    from benchmarks.policy_homes import digest
    from skills import SKILLS, pretrained

    shipped = [name for name in SKILLS if name in pretrained.names()]
    cards = {name: row for name in shipped for row in pretrained.card(name)["homes"] if row["homes"] == "replicaCAD"}
    assert {name: row["policy"] for name, row in cards.items()} == {
        name: digest(pretrained.path(name)) for name in shipped}
    of_skills = {row["skill in ReplicaCAD"].lower().replace(" ", "_"): row for row in
                 table("results.md", "skill in ReplicaCAD")}
    assert {name: (row["policy"].strip("`"), int(row["n"]), row["success"].strip("* %")) for name, row in
            of_skills.items()} == {name: (row["policy"], row["episodes"], f"{100 * row['success']:.1f}")
                                   for name, row in cards.items()}
    tasks = {row["scenario in ReplicaCAD"].partition(",")[0]: row["within 0.15 m"].strip("*").partition(" ")[0]
             for row in table("results.md", "scenario in ReplicaCAD")}
    shown = {row["task"].split("]")[0].strip("["): row["ReplicaCAD"].partition(" ")[0]
             for row in table("../README.md", "task")}
    assert shown == tasks | {row["skill in ReplicaCAD"]: row["success"].strip("* %") for row in of_skills.values()}


def test_protocols_of_the_page_are_those_of_the_code():
    from eval.protocol import protocol
    from rearrange.command_line.composition.parse_overrides import compose

    words = {"any start": ["pick", "place"], "HAB's pose": ["navigate"], "any place": ["navigate"]}
    for row in table("protocols.md", "called"):
        doors = [f"{verb}_{row['of'].split()[-1]}" for verb in ("open", "close")]
        tasks = words.get(row["called"], doors)
        for task in tasks if "`" in row["settings"] else []:
            made = compose("eval", [f"skill={task}", *row["settings"].split("`")[1].split()])
            assert protocol(task, made.config["skill"]) == row["called"]


COMING_FROM = ("from_habitat", "from_maniskill", "from_stable_baselines3", "from_lerobot")
# what stands in the first columns of these pages and is typed nowhere: scenarios, functions, columns and values
NOT_TYPED = {"rearrange_easy", "tidy_house", "prepare_groceries", "set_table", "solution", "torchrun", "set_env",
             "action", "observation.state", "next.reward", "next.done", "next.success", "task",
             "diffusion", "smolvla", "pi0", "seed="}
ALSO = {"num_envs": "num_envs", "render_mode": "rearrange view", "control_mode": "action_parts",  # there, in Python
        "policy_kwargs": "policy", "tensorboard_log": "output", "num_checkpoints": "checkpoint_every_s",
        "--resume": "out", "--env.type": "skill", "--dataset.root": "out", "--robot.type": "robot"}


def words_of_others():
    """(page, word as it is typed, code of the second column) of each table of each page."""
    code, word = r"`([^`]+)`", r"(?:--)?[a-z_]\w*(?:\.\w+)*(?:=\S*)?"
    for page in COMING_FROM:
        for line in (HOME / "docs" / f"{page}.md").read_text(encoding="utf-8").splitlines():
            theirs, ours = line.strip("|").split("|") if line.startswith("| ") else ("", "")
            for span in re.findall(code, theirs):
                for each in span.split():
                    if re.fullmatch(word, each) and (each == span or "=" in each or each.startswith("--")):
                        if each not in NOT_TYPED:
                            yield page, each, " ".join(re.findall(code, ours))


@pytest.mark.parametrize(("page", "word", "ours"), list(dict.fromkeys(words_of_others())))
def test_a_word_of_another_program_is_answered_with_ours(page, word, ours):
    from rearrange.command_line.cli import _split_flags
    from rearrange.command_line.composition.other_words import ANSWERS
    from rearrange.command_line.composition.parse_overrides import compose
    from rearrange.home.errors import UserError

    name, _, value = word.partition("=")
    told = []
    for command in ("train", "eval", "record", "view"):
        with pytest.raises(UserError) as refused:
            compose(command, _split_flags(command, ["skill=pick", f"{name}={value or 1}"])[0])
        told.append(str(refused.value))
    meant = [found for each in told for found in re.findall(r"Did you mean '?([\w. ]+)", each)]
    right = {*re.findall(r"\w+", ours), *re.findall("rearrange [a-z]+", ours), ALSO.get(name)}
    said = [each for each in told if any(sentence in each for sentence in ANSWERS)]
    assert said or any(each.rpartition(".")[2] in right for each in meant), (page, told)
