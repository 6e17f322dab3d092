"""The table of what each learned skill costs: which chains are run, and the real command."""

from __future__ import annotations

import json

import pytest

from eval.scenario.skill_sources import Source
from eval.scenario.substitution import EXPERT, variants
from rearrange.command_line.cli import main


def learned(made):
    return {name: {skill for skill, source in skills.items() if source.kind != "expert"} for name, skills in made}


def test_each_skill_is_learned_alone_and_left_out_once():
    own = {name: Source("policy", name) for name in ("navigate", "pick", "place")}
    made = learned(variants(own | {"open_fridge": EXPERT}, own))
    assert made == {"experts only": set(), "navigate alone": {"navigate"}, "pick alone": {"pick"},
                    "place alone": {"place"}, "all but navigate": {"pick", "place"},
                    "all but pick": {"navigate", "place"}, "all but place": {"navigate", "pick"}}
    assert learned(variants({"pick": own["pick"], "place": own["place"]},
                            own)).keys() == {"experts only", "pick alone", "place alone"}
    unused = dict(variants(own | {"open_fridge": Source("random"), "open_cabinet": Source("policy", "x")}, own))
    assert unused.keys() == made.keys(), "what no plan needs has no rows"


def test_the_command_prints_the_table_and_keeps_it(tmp_path, capsys):
    words = ["eval", "hab=tidy_house", "skills.pick=random", "skills.place=random", "skills.navigate=expert",
             "skills.open_fridge=random", "planner=paper", "planner.max_steps.pick=3", "episodes=1", "video=0",
             "workers=1", "substitute=true", f"output={tmp_path}", "name=x"]
    assert main(words) == 0
    out = capsys.readouterr().out
    rows = json.loads((tmp_path / "eval/tidy_house/x/substitution.json").read_text())
    assert list(rows) == ["experts only", "pick alone", "place alone", "all learned"]
    printed = out[out.index("what is learned"):].splitlines()[1:5]
    assert [line.split("   ")[0] for line in printed] == list(rows)
    assert rows["experts only"]["success"] == 0.0 and rows["experts only"]["skills"][
        "pick"] == "expert", "three steps are too few"
    assert rows["all learned"] == json.loads((tmp_path / "eval/tidy_house/x/metrics.json").read_text())


@pytest.mark.parametrize("words, said", [
    (["hab=tidy_house", "agent=expert", "substitute=true"], "which agent=expert does not have"),
    (["skill=pick", "substitute=true"], "substitute is a setting of scenarios")])
def test_there_has_to_be_something_to_replace(words, said, tmp_path, capsys):
    assert main(["eval", *words, f"output={tmp_path}"]) == 2
    assert said in capsys.readouterr().err and not list(tmp_path.iterdir())
