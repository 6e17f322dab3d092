"""The page of `rearrange report`: what it reads, that its pictures show the figures, and that it stands alone."""

from __future__ import annotations

import base64
import csv
import json
import os
import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.report import page as report_page
from eval.report import sections
from eval.report.run_names import labels
from eval.report.runs import newest, read, read_all
from eval.report.sections import mean_curve
from eval.report.svg import Shares, curves, intervals, nice_ticks, short_number, thinned
from rearrange.command_line.cli import main
from rearrange.home.errors import UserError
from tests.eval.report.report_directories import (
    add_video,
    scenario_evaluation,
    skill_evaluation,
    training,
    write_rows,
)
from trainer.checkpoints.owner import hold

SHARES = {"tp_srl": [0.9, 0.7, 0.42, 0.32], "tp_srl_nonav": [0.5, 0.2, 0.0, 0.0]}


@pytest.fixture(scope="module")
def outputs(tmp_path_factory) -> Path:
    """Three seeds of a training run, two evaluations of a skill, two agents on a scenario, three videos."""
    folder = tmp_path_factory.mktemp("report") / "outputs"
    for seed in range(3):
        training(folder / f"train/pick/seed={seed}", seed)
    skill = skill_evaluation(folder / "eval/pick/first")
    skill_evaluation(folder / "eval/pick/random", "random", successes=1)
    for agent, shares in SHARES.items():
        run = scenario_evaluation(folder / f"eval/set_table/{agent}", agent, shares, scenario="set_table")
    add_video(skill, 0, "episode_0000_success.mp4", "libvpx-vp9")
    add_video(skill, 33, "episode_0033_failure.mp4")
    add_video(run, 0, "first_failure.mp4")
    return folder


@pytest.fixture(scope="module")
def made(outputs) -> Path:
    """The report of all of them."""
    return report_page.make([str(outputs)], outputs.parent / "report.html", outputs, None, 100).path


def page_of(*runs: Path, title: str | None = None) -> str:
    """The text of a report of these runs, which stands beside the first."""
    return report_page.make(list(map(str, runs)), runs[0].parent / "r.html", runs[0], title, 0).path.read_text()


class Elements(HTMLParser):
    """All elements, and those that were never closed or closed out of turn."""

    ALONE = {"meta", "br", "input", "link", "img"}

    def __init__(self, text: str):
        super().__init__()
        self.found: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))
        if tag not in self.ALONE:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)


def test_the_page_is_well_formed_and_asks_for_nothing(made):
    text = made.read_text()
    elements = Elements(text)
    assert not elements.open and not elements.wrong
    for tag, attributes in elements.found:
        for name in ("src", "href", "poster", "data", "action", "srcset"):
            assert attributes.get(name, "#").startswith(("#", "data:")), (tag, name, attributes[name][:80])
        assert tag not in ("link", "iframe", "object", "embed")
    style = text.split("<style>")[1].split("</style>")[0]
    assert "url(" not in style and "@import" not in style
    ids = [attributes["id"] for _, attributes in elements.found if "id" in attributes]
    assert len(ids) == len(set(ids))
    for _, attributes in elements.found:
        assert attributes.get("href", "#")[1:] in {*ids, ""}


def test_videos_are_whole_and_belong_to_their_rows(made, outputs):
    text = made.read_text()
    embedded = [base64.b64decode(found) for found in re.findall(r'src="data:video/mp4;base64,([^"]*)"', text)]
    files = {file.name: file.read_bytes() for file in outputs.rglob("*.mp4")}
    assert sorted(embedded) == sorted(files.values())
    posters = [base64.b64decode(found) for found in re.findall(r'poster="data:image/jpeg;base64,([^"]*)"', text)]
    assert len(posters) == 3 and all(poster.startswith(b"\xff\xd8") for poster in posters)
    data = episode_data(text)
    index = data["columns"].index("index") + 1
    named = {
        embedded[number]: (data["runs"][int(data["rows"][int(row)][0])], data["rows"][int(row)][index])
        for row, number in data["videos"].items()
    }
    assert named == {
        files["episode_0000_success.mp4"]: ("pick: policy", "0"),
        files["episode_0033_failure.mp4"]: ("pick: policy", "33"),
        files["first_failure.mp4"]: ("set table: tp_srl_nonav", "0"),
    }


def episode_data(text: str) -> dict:
    return json.loads(text.split('id="episode-data">')[1].split("</script>")[0])


def test_every_episode_and_column_is_there(made, outputs):
    data = episode_data(made.read_text())
    assert len(data["rows"]) == 2 * 40 + 2 * 100
    for file in outputs.rglob("episodes.csv"):
        with open(file, newline="") as opened:
            rows = list(csv.DictReader(opened))
        agent = json.loads((file.parent / "metrics.json").read_text())["agent"]
        mine = [row for row in data["rows"] if data["runs"][int(row[0])].split(": ")[1] == agent]
        for column in rows[0].keys() - {"video"}:
            at = data["columns"].index("reason" if column == "failure" else column) + 1
            assert [row[at] for row in mine] == [row[column] for row in rows], column


def test_a_page_cannot_be_broken_by_what_it_shows(tmp_path):
    """Names with signs of HTML and of scripts."""
    evil = "</script><script>alert(1)</script>&\"'"
    run = skill_evaluation(tmp_path / "eval/pick/x", agent=evil)
    text = (run / "episodes.csv").read_text().replace("pick/val/3,", '"' + evil.replace('"', '""') + '",')
    (run / "episodes.csv").write_text(text)
    page = page_of(run, title=evil)
    elements = Elements(page)
    assert not elements.open and not elements.wrong
    assert [tag for tag, _ in elements.found].count("script") == 2
    assert evil in episode_data(page)["rows"][3]


def test_the_plot_of_interactions_shows_the_shares():
    """Markers and whiskers back from pixels to shares."""
    values = tuple((s, max(0, s - 0.07), min(1, s + 0.05)) for s in SHARES["tp_srl"])
    places = ["pick 1", "place 1", "pick 2", "place 2"]
    svg = ElementTree.fromstring(intervals([Shares("a & b", 0, values)], places, "success", width=600))
    grid = [
        float(re.match(r"M[\d.]+ ([\d.]+)H", path.get("d"))[1])
        for path in svg.iter("path")
        if path.get("class") == "grid"
    ]
    zero, one = max(grid), min(grid)

    def as_share(y: float) -> float:
        return (zero - y) / (zero - one)

    circles = list(svg.iter("circle"))
    assert [as_share(float(c.get("cy"))) for c in circles] == pytest.approx(SHARES["tp_srl"], abs=2e-3)
    assert [float(c.get("cx")) for c in circles] == sorted(float(c.get("cx")) for c in circles)
    whiskers = [
        re.match(r"M[\d.]+ ([\d.]+)V([\d.]+)", p.get("d")).groups()
        for p in svg.iter("path")
        if p.get("class") == "whisker"
    ]
    assert [tuple(as_share(float(y)) for y in ends) for ends in whiskers] == [
        pytest.approx(v[1:], abs=2e-3) for v in values
    ]
    assert [text.text for text in svg.iter("text")][-4:] == places


def test_an_interaction_that_was_not_measured_leaves_a_gap():
    values = ((0.9, 0.8, 1.0), None, (0.5, 0.4, 0.6))
    svg = ElementTree.fromstring(intervals([Shares("a", 0, values)], ["1", "2", "3"], "success", width=600))
    assert len(list(svg.iter("circle"))) == 2
    line = next(path.get("d") for path in svg.iter("path") if path.get("class") == "line")
    assert line.count("M") == 2 and "L" not in line


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6))
def test_ticks_are_round_and_cover(low, span):
    ticks = nice_ticks(low, low + span)
    slack = 1e-6 * max(span, abs(low))
    assert ticks[0] <= low + slack and ticks[-1] >= low + span - slack and 2 <= len(ticks) <= 8
    step = ticks[1] - ticks[0]
    assert f"{step:.6e}"[0] in "125" or abs(low) > 1e6 * span  # 1, 2 or 5 times a power of ten


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=3000))
def test_thinning_keeps_the_peaks_and_the_end(values):
    points = tuple((float(i), v) for i, v in enumerate(values))
    kept = thinned(points)
    assert len(kept) <= 402 and kept == sorted(kept) and kept[-1] == points[-1]
    assert {min(values), max(values)} <= {y for _, y in kept} and set(kept) <= set(points)


def test_mean_of_seeds_by_hand():
    """Where both have values, at the steps of either: (2 + 4) / 2, (3 + 4) / 2, (4 + 4) / 2."""
    assert mean_curve([((0.0, 0.0), (2.0, 2.0), (4.0, 4.0)), ((2.0, 4.0), (3.0, 4.0), (9.0, 4.0))]) == (
        (2.0, 3.0),
        (3.0, 3.5),
        (4.0, 4.0),
    )


def test_numbers_are_short():
    assert [short_number(v) for v in (0, 0.25, 950, 1500, 2_000_000, -3e9)] == ["0", "0.25", "950", "1.5k", "2M", "-3G"]


def test_training_shows_each_seed_and_their_mean(outputs):
    page = page_of(outputs / "train")
    plots = re.findall(r'<svg class="plot".*?</svg>', page)
    assert len(plots) == 3  # success, return, steps per second
    for plot in plots:
        lines = [
            path.get("class") for path in ElementTree.fromstring(plot).iter("path") if "line" in path.get("class", "")
        ]
        assert sorted(lines) == ["line", "line faint", "line faint", "line faint"]
    assert "(3 runs)" in page


def test_runs_are_told_apart_by_the_fewest_settings(tmp_path):
    runs = [
        training(tmp_path / f"train/pick/{name}", seed, top=top) for name, seed, top in (("a", 0, 0.8), ("b", 1, 0.4))
    ]
    assert labels([read(run) for run in runs]) == ["top 0.8", "top 0.4"]
    long = training(tmp_path / "train/pick/long", 2)
    (long / "config.yaml").write_text("steps: 5\npolicy:\n  size: 3\n")
    (long / "overrides.yaml").write_text("- policy=light\n- steps=5\n- skill=pick\n")
    assert labels([read(run) for run in (*runs, long)]) == ["top 0.8", "top 0.4", "long"]
    twice = [scenario_evaluation(tmp_path / f"eval/set_table/{name}", "tp_srl", [0.5, 0.5]) for name in ("old", "new")]
    assert labels([read(run) for run in twice]) == ["tp_srl, old", "tp_srl, new"]
    assert labels([read(twice[0])]) == ["tp_srl"]


def changed(run: Path, **figures) -> Path:
    """An evaluation with some of its figures changed."""
    (run / "metrics.json").write_text(json.dumps(json.loads((run / "metrics.json").read_text()) | figures))
    return run


def test_shipped_policies_are_named_so(tmp_path):
    def agent(name: str, **figures) -> str:
        return read(changed(skill_evaluation(tmp_path / "eval/pick" / name), **figures)).agent

    shipped, own = (f"/somewhere/{folder}/pick.pt" for folder
                    in ("skills/pretrained", "outputs/train/pick/a/checkpoints"))
    assert agent("shipped", checkpoint=shipped) == agent("word", agent="pretrained",
                                                         checkpoint=shipped) == "pretrained (shipped)"
    assert agent("own", checkpoint=own) == "policy" and agent("expert", agent="expert", checkpoint=None) == "expert"
    scenario = {"scenario": "set_table", "skill": None, "checkpoint": None, "agent": "tp_srl"}
    assert agent("all", **scenario, skills={"pick": shipped, "place": shipped}) == "tp_srl, pretrained (shipped)"
    assert agent("some", **scenario, skills={"pick": shipped, "place": "expert"}) == "tp_srl"
    assert agent("mixed", **scenario, skills={"pick": shipped, "place": own}) == "tp_srl"
    assert agent("experts", **scenario, skills={"pick": "expert"}) == "tp_srl"
    both = [read(tmp_path / "eval/pick" / name) for name in ("shipped", "own")]
    assert labels(both) == ["pretrained (shipped)", "policy"]
    agent("only experts", **scenario, skills={"pick": "expert", "place": "expert"})
    plans = [read(tmp_path / "eval/pick" / name) for name in ("all", "some", "mixed", "only experts")]
    assert labels(plans) == ["tp_srl, pretrained (shipped)", "tp_srl, place expert", "tp_srl, place a",
                             "tp_srl, skills expert"]
    assert len(newest(tmp_path)) == 5  # agents


def test_a_summary_of_all_evaluations_leads_to_their_parts(made):
    text = made.read_text()
    summary = text.split('<section id="summary">')[1].split("</section>")[0]
    assert text.index('<section id="summary">') == min(found.start() for found in re.finditer("<section", text))
    rows = [re.sub(r"<[^>]*>|&nbsp;", " ", row).split() for row in re.findall("<tr>(.*?)</tr>", summary)[1:]]
    assert [row[:2] for row in rows] == [["pick", "policy"], ["pick", "random"], ["set", "table"], ["set", "table"]]
    assert [" ".join(row[row.index("%") - 1 : row.index("%") + 1]) for row in rows] == ["75 %", "2.5 %", "32 %", "0 %"]
    assert re.findall(r'href="(#[^"]*)"', summary) == ["#skill-pick"] * 2 + ["#scenario-set_table"] * 2


@pytest.mark.parametrize("episodes, grey", [(29, True), (30, False)])
def test_few_episodes_are_grey_also_beside_the_paper(tmp_path, episodes, grey):
    run = scenario_evaluation(tmp_path / "a", "tp_srl", [1.0, 1.0, 1.0, 1.0], episodes, "set_table")
    text = page_of(run)
    for part in ("summary", "paper"):
        section = text.split(f'<section id="{part}">')[1].split("</section>")[0]
        assert ('<span class="few">100 %</span>' in section, "<strong>100 %</strong>" in section) == (grey, not grey)
        assert ("Grey: fewer than 30 episodes" in section) == grey
    assert '<section id="caveats"><h2>Caveats</h2>' in text


def test_no_caveats_without_figures_of_the_paper(tmp_path):
    run = skill_evaluation(tmp_path / "a")
    text = page_of(run)
    assert 'id="caveats"' not in text and 'id="paper"' not in text


@pytest.mark.parametrize("skills, scenarios, title", [
    (["pick"], [], "Report on pick"), ([], ["set_table"], "Report on set table"),
    (["pick", "place"], ["tidy_house"], "Report on pick, place and tidy house"),
    (["pick", "place", "navigate", "open_fridge"], ["tidy_house"], "Report on 4 skills and 1 scenario"),
    (["pick", "place", "navigate", "open_fridge"], [], "Report on 4 skills"),
])
def test_the_title_is_plain(tmp_path, skills, scenarios, title):
    for skill in skills:
        changed(skill_evaluation(tmp_path / f"eval/{skill}/a"), skill=skill)
    for name in scenarios:
        scenario_evaluation(tmp_path / f"eval/{name}/a", "tp_srl", [0.5, 0.5], 4, name)
    text = page_of(tmp_path)
    assert f"<title>{title}</title>" in text and f"<h1>{title}</h1>" in text


def test_protocols_stand_apart(tmp_path):
    protocols = ("honest", "paper", "honest, knowledge=state")
    runs = [scenario_evaluation(tmp_path / f"eval/set_table/{number}", "tp_srl", [0.5, 0.5]) for number in range(3)]
    for run, protocol in zip(runs, protocols, strict=True):
        changed(run, protocol=protocol)
    found = read_all([str(run) for run in runs])
    text = sections.scenarios(found)
    assert all(f"<h3>tidy house <small>planner {protocol}</small></h3>" in text for protocol in protocols)
    assert text.count('id="scenario-tidy_house"') == 1 and text.count("<article") == 3
    assert labels(found) == [f"tp_srl, planner {protocol}" for protocol in protocols]
    assert sorted(newest(tmp_path)) == sorted(runs)


def rows_of(text: str, anchor: str) -> list[list[str]]:
    """The cells of the table that `anchor` stands in, without markup."""
    cells = [re.findall("<t[hd].*?>(.*?)</t[hd]>", row) for row
             in re.findall("<tr>.*?</tr>", text.split(anchor)[1].split("</table>")[0])]
    return [[" ".join(re.sub(r"<[^>]*>|&nbsp;", " ", cell).split()) for cell in row] for row in cells]


def test_whole_tasks_stand_by_protocol_beside_others(tmp_path):
    """Plans with trained skills that were evaluated whole; the scenarios' tables have disturbed objects, too."""
    told = {"protocol": "honest", "problem": "set_table", "mean_disturbed_objects": 0.625,
            "success_015_interval_95": [0.25, 0.75]}
    runs = [changed(scenario_evaluation(tmp_path / f"eval/set_table/{name}", agent, [0.5, 0.5], scenario="set_table"),
                    **told | more) for name, agent, more
            in (("a", "tp_srl", {}), ("b", "expert", {}), ("c", "tp_srl", {"interrupted": True}),
                ("d", "tp_srl", {"protocol": "paper", "problem": "set_table_paper", "mean_disturbed_objects": None}))]
    text = page_of(*runs)
    assert rows_of(text, 'id="protocols"')[1:] == [
        ["Set table, drawer and fridge closed "
         "again tp_srl", "honest", "val", "100", "47 % 25 to 75 %", "50 % 40 to 60 %", "1544", "0.62", "50 %",
         "29 %"], ["Set table, drawer and fridge left open tp_srl", "paper", "val", "100", "47 % 25 to 75 %",
                   "50 % 40 to 60 %", "1544", "", "50 %", "29 %"]]
    whole = rows_of(text, 'class="numbers bars">')
    assert whole[0][-3:] == ["objects disturbed", "homes", "protocol"] and whole[1][-3:] == ["0.62", "val", "honest"]
    assert "orientation only" in text and 'href="#protocols"' in text


def test_tables_of_substitution_and_of_subtasks_are_shown(tmp_path):
    run = scenario_evaluation(tmp_path / "eval/set_table/a", "tp_srl", [0.5, 0.5], scenario="set_table")
    row = {"episodes": 40, "success": 0.5, "success_interval_95": [0.25, 0.75]}
    more = {"success_015": 0.25, "success_015_interval_95": [0.125, 0.5], "mean_steps": 900.4,
            "ends": {"pick: time_limit": 0.5, "place: x": 0.1}}
    (run / "substitution.json").write_text(json.dumps({"experts only": row | {"success": 1.0, "ends": {}},
                                                       "pick alone": row | more}))
    (run / "subtasks.json").write_text(json.dumps({"pick 1": row, "close fridge": row | {"success": 1.0}}))
    text = sections.scenarios([read(run)])
    assert rows_of(text, "numbers substitution")[1:] == [
        ["experts only n = 40", "&ndash;", "100 % 25 to 75 %", "", ""],
        ["pick alone n = 40", "25 % 12 to 50 %", "50 % 25 to 75 %", "900", "pick: time limit 50 %"]]
    assert rows_of(text, "numbers subtasks")[1:] == [
        ["pick 1", "50 % 25 to 75 %", "40"], ["close fridge", "100 % 25 to 75 %", "40"], ["mean", "75 %", ""]]
    (run / "subtasks.json").write_text(json.dumps({"pick 1": {"success": 2}}))
    with pytest.raises(UserError, match="subtasks.json is not that of an evaluation: 'pick 1' needs episodes"):
        read(run)


def test_by_default_the_newest_of_each_is_taken(outputs, tmp_path):
    """Of each agent the newest evaluation; the newest training run with its other seeds, not an older experiment."""
    folder = tmp_path / "outputs"
    old = skill_evaluation(folder / "eval/pick/old")
    new = skill_evaluation(folder / "eval/pick/new")
    other = skill_evaluation(folder / "eval/pick/other", agent="random")
    before = training(folder / "train/pick/before", 0, top=0.3)
    seeds = [training(folder / f"train/pick/s{seed}", seed) for seed in (0, 1)]
    for age, run in enumerate((old, new, other, before, *seeds)):
        os.utime(run / "config.yaml", (1000 + age, 1000 + age))
    (folder / "eval/pick/latest").symlink_to("new")
    (folder / "eval/pick/unfinished").mkdir()
    assert sorted(newest(folder)) == sorted([new, other, *seeds])
    changed(new, interrupted=True, episodes_asked=100)
    assert sorted(newest(folder)) == sorted([old, other, *seeds]), "a whole evaluation, even if it is older"
    assert read(new).about.status == "finished, only 40 of 100 episodes"


def test_what_stands_at_the_end_is_shown_where_it_was_measured(tmp_path):
    runs = [scenario_evaluation(tmp_path / f"eval/set_table/{name}", name, [0.5, 0.5], scenario="set_table")
            for name in ("tp_srl", "expert")]
    changed(runs[0], success_stable=0.25, success_stable_interval_95=[0.125, 0.5], goal_share=0.75, mean_driven_m=41.26,
            mean_hand_path_m=88.0)
    assert rows_of(page_of(*runs), "at the end, and until then") == [
        ["tp_srl n = 100", "25 % 12 to 50 %", "75 %", "41.3", "88.0"]]
    with pytest.raises(UserError, match="goal_share is '2'"):
        read(changed(runs[0], goal_share=2))


def test_a_running_evaluation_does_not_hide_the_finished_one_and_is_named(tmp_path, capsys):
    """One that has figures already, while its videos are drawn, and one that has none."""
    folder = tmp_path / "outputs"
    old, new, bare = (skill_evaluation(folder / f"eval/pick/{name}") for name in ("old", "new", "bare"))
    (bare / "metrics.json").unlink()
    for age, run in enumerate((old, new, bare)):
        os.utime(run / "config.yaml", (1000 + age, 1000 + age))
    for run in (new, bare):
        (run / "status.json").write_text(json.dumps({"status": "running", "result": {}, "time": 1}))
    with hold(new), hold(bare):
        assert newest(folder) == [old]
        report_page.make(None, tmp_path / "report.html", folder, None, 1)
        assert f"{bare} is still running: its figures come at its end." in capsys.readouterr().err
        assert "n&nbsp;=&nbsp;40, running" in page_of(new) and ", running" not in page_of(old)


def test_training_shows_evaluations_at_their_steps_and_hyper_parameters(tmp_path):
    run = training(tmp_path / "train/pick/a", 0)
    rows = list(csv.DictReader((run / "metrics.csv").read_text(encoding="utf-8").splitlines()))
    for number, row in enumerate(rows):  # each is told in every row until the next
        row |= {"eval/success": 0.25 * (number // 20 + 1), "eval/at_step": 10_000 * (number // 20 + 1)}
    write_rows(run / "metrics.csv", rows)
    (run / "config.yaml").write_text((run / "config.yaml").read_text() + "ppo:\n  learning_rate: 0.00025\n")
    assert sections._points(read(run), "eval/success") == ((10_000, 0.25), (20_000, 0.5))
    text = page_of(run)
    assert "success in evaluations" in text
    assert rows_of(text, 'class="plots"')[-1][-1] == "0.00025" and "learning rate" in text


def test_one_run_is_not_called_runs(tmp_path, capsys):
    run = skill_evaluation(tmp_path / "outputs/eval/pick/a")
    assert main(["report", str(run), f"out={tmp_path}/report.html"]) == 0
    assert "   1 run   40 episodes   0 videos" in capsys.readouterr().out


def test_a_link_and_its_run_count_once(outputs, tmp_path):
    run = skill_evaluation(tmp_path / "eval/pick/a")
    (run.parent / "latest").symlink_to("a")
    assert [found.about.name for found in read_all([str(run.parent / "latest"), str(run), str(tmp_path)])] == ["a"]


def test_videos_beyond_the_limit_are_named(outputs, tmp_path):
    made = report_page.make([str(outputs)], tmp_path / "r.html", outputs, None, 0)
    page = made.path.read_text()
    assert (made.videos, made.left_out) == (0, 3) and "data:video" not in page
    assert all(file.name in page for file in outputs.rglob("*.mp4"))
    smallest = min(file.stat().st_size for file in outputs.rglob("*.mp4")) * 4 / 3 / 1e6
    assert report_page.make([str(outputs)], tmp_path / "r.html", outputs, None, 1.01 * smallest).videos == 1


def test_a_report_is_complete_or_absent(outputs, tmp_path, monkeypatch):
    """An error while writing leaves the report of before, and no other file."""
    out = report_page.make([str(outputs / "train")], tmp_path / "r.html", outputs, None, 1).path
    before = out.read_bytes()

    def breaks(*_):
        yield "<!DOCTYPE html>"
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(report_page, "page", breaks)
    with pytest.raises(report_page.UserError, match="No space left on device"):
        report_page.make([str(outputs / "train")], out, outputs, None, 1)
    assert out.read_bytes() == before and os.listdir(tmp_path) == ["r.html"]


@pytest.fixture
def spoiled(tmp_path, monkeypatch) -> Path:
    """A directory of things that cannot be reported."""
    monkeypatch.chdir(tmp_path)
    run = skill_evaluation(tmp_path / "good")
    (tmp_path / "letter.html").write_text("Dear reader,")
    (tmp_path / "hollow").mkdir()
    (tmp_path / "started").mkdir()
    (tmp_path / "started/config.yaml").write_text("seed: 0\n")
    for name, text in (("torn", '{"skill": "pick", '), ("listed", "[1, 2]"), ("other", '{"steps_per_s": 3}'),
                       ("none", '{"skill": "pick", "episodes": 0, "success": 0}')):
        (tmp_path / name).mkdir()
        (tmp_path / name / "metrics.json").write_text(text)
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty/metrics.csv").write_text("step,steps_per_s\n")
    return run


@pytest.mark.parametrize(
    "line, words",
    [("report nowhere", ("nowhere does not exist",)), ("report letter.html", ("letter.html is not a directory",)),
     ("report hollow", ("hollow is not a run", "metrics.json")), ("report started", ("started has no figures yet",)),
     ("report torn", ("torn/metrics.json cannot be read",)), ("report listed", ("listed/metrics.json cannot be read",)),
     ("report other", ("other/metrics.json is not that of an evaluation",)),
     ("report none", ("episodes (at least 1)",)), ("report empty", ("empty/metrics.csv holds no row",)),
     ("report good nowhere", ("nowhere does not exist",)),
     ("report", ("no run with figures in outputs/", "rearrange train")),
     ("report output=elsewhere", ("no run with figures in elsewhere/",)),
     ("report good out=letter.html", ("letter.html exists already and is not a report", "out=")),
     ("report good out=hollow", ("hollow", "directory", "out=")),
     ("report good out=letter.html/r.html", ("cannot write to", "out=")), ("report good ouput=x", ("'output'",)),
     ("report good video_mb=-1", ("video_mb=-1", "at least 0")),
     ("report good video_mb=lots", ("video_mb=lots", "a number")), ("report good runs=[good]", ("without runs=",)),
     ("report --watch", ("--watch",))])
def test_bad_input_is_one_sentence(spoiled, capsys, line, words):
    before = sorted(str(path) for path in Path().rglob("*"))
    assert main(line.split()) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and err.startswith("rearrange report: ")
    for word in words:
        assert word in err, err
    assert sorted(str(path) for path in Path().rglob("*")) == before


@pytest.mark.parametrize("words", [["good"], ["runs=good"], ["runs=[good]"], ["runs=good,good"],
                                   ["./good/", "title=A page of mine"]])
def test_directories_can_be_written_as_people_like(spoiled, capsys, words):
    assert main(["report", *words, "out=new/r.html"]) == 0, capsys.readouterr().err
    assert Path("new/r.html").read_text().startswith("<!DOCTYPE html>")


def test_a_directory_may_have_an_equals_sign_and_a_quote(tmp_path, monkeypatch, capsys):
    """As those of sweeps have."""
    monkeypatch.chdir(tmp_path)
    training(tmp_path / "pick/seed=1,it's", 1)
    assert main(["report", "pick/seed=1,it's", "out=r.html"]) == 0, capsys.readouterr().err
    assert "pick/seed=1,it&#x27;s" in Path("r.html").read_text()


def test_what_a_run_lacks_is_left_out(tmp_path):
    """Figures that a later or an older version writes differently do not stop a report."""
    run = scenario_evaluation(tmp_path / "eval/set_table/a", "tp_srl", [0.5, 0.5])
    figures = json.loads((run / "metrics.json").read_text())
    for key in ("interactions", "ends", "success_015", "mean_steps", "mean_simulated_s", "success_interval_95",
                "split"):
        del figures[key]
    (run / "metrics.json").write_text(json.dumps(figures))
    for name in ("episodes.csv", "git.txt", "git.diff", "overrides.yaml", "config.yaml", "status.json", "plan.txt"):
        (run / name).unlink()
    page = page_of(run)
    assert "50 %" in page and "40.4 % to 59.6 %" in page  # Wilson's interval of 50 of 100


def test_curves_of_a_flat_line_and_of_one_point():
    from eval.report.svg import Curve

    for points in (((0.0, 0.0), (10.0, 0.0)), ((5.0, 3.0),), ((0.0, -2.0), (1.0, -2.0))):
        ElementTree.fromstring(curves([Curve("x", 0, points)], "return"))


@pytest.mark.parametrize("name, text", [
    ("metrics.json", "{"), ("metrics.json", "[]"), ("failures", [1]), ("failures", {"late": "often"}),
    ("success_interval_95", [0, "x"]), ("success_interval_95", 0.5),
    ("interactions", [3]), ("mean_steps", "many"), ("ends", "pick"),
])
def test_a_run_that_cannot_be_read_is_left_out_by_name(tmp_path, capsys, name, text):
    outputs = tmp_path / "outputs"
    skill_evaluation(outputs / "eval/pick/whole", "random")
    broken = skill_evaluation(outputs / "eval/pick/broken") / "metrics.json"
    broken.write_text(text if name == "metrics.json" else json.dumps(json.loads(broken.read_text()) | {name: text}))
    for runs in (None, [str(outputs)]):
        made = report_page.make(runs, tmp_path / "report.html", outputs, None, 0)
        assert [path.name for path in made.runs] == ["whole"]
        said = capsys.readouterr().err.strip().splitlines()
        assert len(said) == 1 and said[0].startswith("left out: ") and str(broken) in said[0]
    with pytest.raises(UserError, match="metrics.json"):
        report_page.make([str(broken.parent)], tmp_path / "report.html", outputs, None, 0)


@pytest.mark.parametrize("text", ["{", "[]", "null", '{"status": "finished", "result": {}, "time": 1e300}'])
def test_an_odd_status_leaves_the_run_in_the_page(tmp_path, text):
    run = skill_evaluation(tmp_path / "outputs/eval/pick/odd")
    (run / "status.json").write_text(text)
    assert len(report_page.make(None, tmp_path / "report.html", tmp_path / "outputs", None, 0).runs) == 1


def test_an_empty_list_of_runs_is_a_mistake(tmp_path, capsys):
    assert main(["report", "runs=[]", f"output={tmp_path}"]) == 2
    assert "runs=[] names no run" in capsys.readouterr().err and not list(tmp_path.iterdir())
