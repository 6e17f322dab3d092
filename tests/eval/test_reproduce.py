"""`rearrange reproduce`: what is missing is done once, in order, and stands beside the paper."""

from __future__ import annotations

import json
import signal
import threading
from fnmatch import fnmatch
from pathlib import Path

import pytest

from eval.report.paper import STATED, WHOLE, beside
from eval.reproduction import policies, reproduce
from rearrange.command_line.cli import main
from rearrange.command_line.composition import parse_overrides as front
from rearrange.command_line.composition.options import options_of
from rearrange.command_line.runs import job
from rearrange.command_line.runs.run_directory import Run, folder_of
from rearrange.home.errors import UserError
from skills import pretrained, recipes
from tests.e2e.front_door import finish, rearrange, somebody_works_in, start, steps_logged, wait_until

NAMES = [f"{what} {k}" for k in range(1, 6) for what in ("pick", "place")]


class Worker:
    """Stands in for the processes: leaves what a training or an evaluation leaves. `codes`: what -> its exit status."""

    def __init__(self) -> None:
        self.composing = threading.Lock()  # joblib calls from several threads; Hydra composes for one at a time
        self.seen: list[str] = []
        self.words: list[list[str]] = []
        self.codes: dict[str, int] = {}

    def __call__(self, words: list[str]) -> int:
        with self.composing:
            made = front.compose(words[0], words[1:])
        config = made.config
        what = (config.get("hab") or config["skill"])["name"]
        protocol = made.choices.get("planner", "paper")
        job = f"{words[0]} {what}" + (f" {config['agent']}" if words[0] == "eval"
                                      else "") + f" {protocol}" * (protocol != "paper")
        code = self.codes.get(job, 0)
        self.seen.append(job)
        self.words.append(words)
        run = Run(folder_of(config, words[0]) / config["name"], made, resumed="resume=true" in words)
        run.create()
        if words[0] == "train":
            (run.checkpoints / "step_000000000001.pt").touch()
            (run.path / "metrics.csv").write_text("step,episode/return\n1,0.5\n")
        elif code == 0:
            figures = {"scenario": what, "agent": config["agent"], "split": "val", "seed": 0, "episodes": 10,
                       "success": 0.3, "success_interval_95": [0.1, 0.6], "success_015": 0.2,
                       "success_015_interval_95": [0.05, 0.5], "skills": {}, "ends": {}, "mean_steps": 9.0,
                       "mean_disturbed_objects": 0.25, "protocol": protocol,
                       "problem": Path(config["hab"]["problem"]).stem,
                       "interactions": [{"name": name, "success": 0.5, "interval_95": [0.2, 0.8]} for name in NAMES]}
            (run.path / "metrics.json").write_text(json.dumps(figures))
        run.finish({0: "finished", 130: "stopped"}.get(code, "failed"))
        return code


@pytest.fixture
def work(tmp_path, monkeypatch):
    """`work(setting=value)` -> (exit status, worker): one `rearrange reproduce` of Tidy House, with a package that has
    no policy of Navigate.
    """
    names = [name for name in pretrained.names() if name != "navigate"]
    monkeypatch.setattr(pretrained, "names", lambda: names)

    def call(codes: dict[str, int] | None = None, hydras: tuple[str, ...] = (), **changed) -> tuple[int, Worker]:
        words = {"preset": "smoke", "scenarios": "[tidy_house]", "agents": "[tp_srl,monolithic,random]",
                 "protocols": "[paper]", "output": tmp_path} | changed
        options = options_of(front.compose("reproduce", [f"{key}={value}" for key, value in words.items()]))
        worker = Worker()
        worker.codes = codes or {}
        monkeypatch.setattr(job, "launch_process", lambda words, *_: worker(words))
        return reproduce.run(options, hydras), worker

    return call


ALL = ["train navigate", "train tidy_house", "eval tidy_house tp_srl", "eval tidy_house monolithic",
       "eval tidy_house random"]


def test_what_is_missing_is_done_once(work, tmp_path, capsys):
    code, worker = work()
    assert code == 0 and worker.seen == ALL  # Pick and Place come with the package
    run = tmp_path / "train/navigate/reproduce_smoke"
    assert {"skills.pick=pretrained", f"skills.navigate={run}", "episodes=2"} <= set(worker.words[2])
    assert f"checkpoint={tmp_path}/train/tidy_house/reproduce_smoke" in worker.words[3]
    assert "steps=128" in worker.words[0] and "experiment=debug" in worker.words[0]
    text = (tmp_path / "reproduce/reproduce_smoke/figure6.md").read_text()
    assert "| M3 (Gu et al. 2023) | 71 % |" in text
    assert text in capsys.readouterr().out and "Smoke run" in text and "nothing is read off" in text
    row = next(line for line in text.splitlines() if "| whole task | tp_srl |" in line)
    assert row.startswith("| Tidy house | whole task | tp_srl | 32 % | 30 % (10 .. 60, 10) |")
    assert "| Tidy house | pick 1 | tp_srl_nonav | 50 % | not measured |" in text
    steps = pretrained.steps(pretrained.card("pick"))
    assert f"| pick | comes with the package: {steps:,} steps |" in text and f"| navigate | {run}: 128 steps |" in text
    page = (tmp_path / "reproduce/reproduce_smoke/report.html").read_text()
    assert 'id="paper"' in page and "Smoke run" in page and 'id="training-navigate"' in page
    again, worker = work()
    assert again == 0 and not worker.seen


@pytest.mark.parametrize("at", range(len(ALL)))
def test_stopped_anywhere_it_goes_on_there(work, at, capsys):
    code, worker = work({ALL[at]: 130})
    assert code == 130 and worker.seen == ALL[:at + 1]
    assert "the same command goes on" in capsys.readouterr().out
    code, worker = work()
    assert code == 0 and worker.seen == ALL[at:]
    assert ("resume=true" in worker.words[0]) == ALL[at].startswith("train")


def test_a_launcher_of_several_begins_each_job_once_what_it_needs_is_finished(work):
    pytest.importorskip("hydra_plugins.hydra_joblib_launcher")
    joblib = ("hydra/launcher=joblib", "hydra.launcher.n_jobs=2")
    code, worker = work({"train navigate": 1}, joblib)
    assert code == 1 and sorted(worker.seen) == sorted(job for job in ALL if job != "eval tidy_house tp_srl")
    assert worker.seen.index("train tidy_house") < worker.seen.index("eval tidy_house monolithic")
    code, worker = work(hydras=joblib)
    assert code == 0 and worker.seen == ["train navigate", "eval tidy_house tp_srl"]
    code, worker = work(hydras=joblib)
    assert code == 0 and not worker.seen


def test_an_evaluation_that_lost_its_figures_is_repeated(work, tmp_path):
    work(agents="[random]")
    for text in ("{\"episodes\": 2, ", "[]"):
        (tmp_path / "eval/tidy_house/reproduce_smoke_random/metrics.json").write_text(text)
        code, worker = work(agents="[random]")
        assert code == 0 and worker.seen == ["eval tidy_house random"]


def test_a_failure_stops_only_what_needs_it(work, capsys):
    code, worker = work({"train navigate": 1})
    assert code == 1 and worker.seen == [job for job in ALL if job != "eval tidy_house tp_srl"]
    out = capsys.readouterr().out
    assert "not possible without" in out and "reproduce_smoke: training failed |" in out
    code, worker = work()
    assert code == 0 and worker.seen == ["train navigate", "eval tidy_house tp_srl"]


def test_other_finished_runs_count_if_they_are_long_enough(work, tmp_path):
    limited = ["skill.action_parts=[arm,grip]"]
    for name, steps, more in (("short", 64, []), ("limited", 256, limited), ("long", 256, [])):
        Worker()(["train", "skill=pick", f"name={name}", f"steps={steps}", f"output={tmp_path}", *more])
    _, worker = work(agents="[tp_srl_nonav]", pretrained="false")
    assert worker.seen == ["train place", "eval tidy_house tp_srl_nonav"]
    assert f"skills.pick={tmp_path}/train/pick/long" in worker.words[1]


def test_whole_tasks_stand_by_protocol(work, tmp_path, capsys):
    """tp_srl by each, in Set Table with closing but by the paper's; random by the paper's alone."""
    code, worker = work(scenarios="[set_table]", agents="[tp_srl,random]", protocols="[paper,honest,oracle]")
    assert code == 0
    assert worker.seen == ["train navigate", "eval set_table tp_srl", "eval set_table tp_srl honest",
                           "eval set_table tp_srl oracle", "eval set_table random"]
    assert [sum("skills.close_fridge=pretrained" in words for words in worker.words),
            "hab.problem=set_table_paper" in worker.words[1]] == [2, True]
    folder, out = tmp_path / "reproduce/reproduce_smoke", capsys.readouterr().out
    text, figure_6 = ((folder / name).read_text() for name in ("whole_tasks.md", "figure6.md"))
    assert text in out and figure_6 in out and "Smoke run" in text and "orientation only" in text
    told = "| val | 10 | 20 % (5.0 .. 50.0) | 30 % (10.0 .. 60.0) | 9 | 0.25 | 50 % | 29 % |"
    rows = [("left open", "paper"), ("closed again", "honest"), ("closed again", "oracle")]
    assert [line for line in text.splitlines()
            if "| val |" in line] == [f"| Set table, drawer and fridge {goal} | {name} {told}" for goal, name in rows]
    kept = json.loads((folder / "whole_tasks.json").read_text())
    assert [row["protocol"] for row in kept] == ["paper", "honest", "oracle"]
    assert kept[0]["mean_disturbed_objects"] == 0.25
    measured = [line for line in figure_6.split("## Set table")[1].splitlines() if line.endswith("| 9 | 0.25 | 10 |")]
    assert [line.split()[1] for line in measured] == ["tp_srl", "random"], "by the paper's rules alone"
    page = (folder / "report.html").read_text().split('<section id="protocols">')[1].split("</section>")[0]
    assert [name for name in ("paper", "honest", "oracle",
                              "random") if f"<td>{name}</td>" in page] == ["paper", "honest", "oracle"]


def test_without_the_papers_protocol_there_is_no_figure_6(work, tmp_path):
    assert work(agents="[tp_srl,random]", protocols="[honest]")[1].seen == [
        "train navigate", "eval tidy_house tp_srl honest"]
    folder = tmp_path / "reproduce/reproduce_smoke"
    assert "comes with the package" in (folder / "whole_tasks.md").read_text() and not (folder / "figure6.md").exists()
    assert "<h1>Whole tasks by protocol</h1>" in (folder / "report.html").read_text()


@pytest.mark.parametrize("preset, protocols",
                         [("smoke", ["paper", "honest"]), ("laptop", ["paper", "honest", "oracle"]),
                          ("paper", ["paper", "honest", "oracle"])])
def test_presets_make_the_table_of_whole_tasks(preset, protocols):
    assert list(front.compose("reproduce", [f"preset={preset}"]).value("protocols")) == protocols


def test_without_monolithic_steps_it_is_left_out(work):
    assert work(agents="[monolithic,random]", monolithic_steps="null")[1].seen == ["eval tidy_house random"]


def test_other_settings_need_another_name(work):
    work(agents="[random]")
    with pytest.raises(UserError, match="episodes: 2 -> 3.*name="):
        work(agents="[random]", episodes=3)
    assert work(agents="[random]", episodes=3, name="three")[1].seen == ["eval tidy_house random"]


def test_two_at_once_are_refused(work, tmp_path):
    (folder := tmp_path / "reproduce/reproduce_smoke").mkdir(parents=True)
    with somebody_works_in(folder) as pid, pytest.raises(UserError,
                                                         match=f"reproduce_smoke is in use by process {pid} on "):
        work()


def test_a_job_that_somebody_else_runs_is_left_alone(work, tmp_path):
    """It was killed, say, with its evaluation still under way."""
    run = tmp_path / "eval/tidy_house/reproduce_smoke_random"
    work({"eval tidy_house random": 130}, agents="[random]")
    with somebody_works_in(run) as pid, pytest.raises(UserError, match=f"{run} is in use by process {pid} on "):
        work(agents="[random]")
    assert (run / "config.yaml").exists()
    assert work(agents="[random]")[1].seen == ["eval tidy_house random"]


@pytest.mark.parametrize("words, said", [
    ("agents=[tp_srl,expret]", ("agents", "Did you mean expert")),
    ("agents=[]", ("agents=[]", "tp_srl")),
    ("agents=[expert] protocols=[onest]", ("protocols", "Did you mean honest")),
    ("agents=[expert] protocols=[honest]", ("protocols=[honest]", "tp_srl", "agents=")),
    ("scenarios=[tidy_hous]", ("scenarios", "Did you mean tidy_house")),
    ("agents=[monolithic] experiment=laptp", ("experiment", "laptop")),
    ("preset=lapto", ("Did you mean preset=laptop",)),
    ("step=3", ("unknown key", "'steps'")),
    ("episodes=0", ("episodes=0",)),
    ("name=../x", ("name=../x",)),
])
def test_a_mistake_is_one_sentence_and_leaves_nothing(words, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = words if "agents" in words else f"{words} agents=[monolithic]"
    assert main(["reproduce", "scenarios=[tidy_house]", *words.split()]) == 2
    error = capsys.readouterr().err.strip()
    assert all(part in error for part in said), error
    assert "\n" not in error and error.startswith("rearrange reproduce: ") and not list(tmp_path.iterdir())


@pytest.mark.parametrize("task", recipes.names())
def test_recipes_are_carried_out_lesson_by_lesson(task, tmp_path):
    """Each lesson is as the recipe says and composes so; it begins with the one before, and in states of plans that
    were run with that."""
    def jobs(*words):
        words = ["preset=policies", f"policies=[{task}]", f"output={tmp_path}", *words]
        return policies.jobs(options_of(front.compose("reproduce", words)))

    whole = [job for job in jobs() if job.words[0] == "train"]
    assert all(set(lesson.words) <= set(job.words) for lesson, job in zip(recipes.lessons(task), whole, strict=True))
    assert recipes.recipe_of(list(whole[-1].words)) == task
    made = jobs("steps=64", "episodes=2")
    assert [job.state for job in made] == ["new"] * len(made)
    assert [job.what for job in made[-2:]] == [f"eval {task} {s}" for s in ("val", "test")]
    trained = [job for job in made if job.words[0] == "train"]
    assert len(trained) == len(recipes.lessons(task)) and all("steps=64" in job.words for job in trained)
    for before, after in zip(trained, trained[1:]):
        assert f"checkpoint={before.path}" in after.words and before.path in after.needs
    for lesson, training in zip(recipes.lessons(task), trained):
        plans = [each for each in made if each.path in training.needs and each.words[0] == "eval"]
        assert not (lesson.plans and task == "navigate")  # no states of it are kept
        assert len(plans) == len(lesson.plans) and all("split=train" in each.words for each in plans)
        assert all((f"handoff_tries={lesson.tries}" in each.words) == (lesson.tries is not None) for each in plans)
        assert all(("sim.furniture=both" in each.words) == ("sim.furniture=both" in lesson.words) for each in plans)
        pattern = next((word.split("=")[1] for word in training.words if word.startswith("sim.episodes=")), None)
        assert all(fnmatch(str(each.path / f"handoffs/{task}.json.gz"), pattern) for each in plans)
    assert made[-1].needs == (trained[-1].path,)


def test_a_policy_is_trained_anew_and_set_beside_that_of_the_package(tmp_path, monkeypatch, capsys):
    def worker(words: list[str]) -> int:
        made = front.compose(words[0], words[1:])
        run = Run(folder_of(made.config, words[0]) / made.value("name"), made)
        run.create()
        (run.checkpoints / "step_000000000001.pt").touch()
        (run.path / "metrics.json").write_text(json.dumps(
            {"episodes": 2, "success": 0.5, "success_interval_95": [0.1, 0.9], "protocol": "wide start"}))
        run.finish("finished")
        return 0

    monkeypatch.setattr(job, "launch_process", lambda words, *_: worker(words))
    words = ["reproduce", "policies", "policies=[close_fridge]", "steps=64", "episodes=2", f"output={tmp_path}"]
    assert main(words) == 0
    text = (tmp_path / "reproduce/recipe/policies.md").read_text()
    row = next(line for line in text.splitlines() if "| close_fridge | test |" in line)
    there = next(row for row in pretrained.card("close_fridge")["evaluations"]
                 if (row["split"], row["protocol"]) == ("test", "wide start"))
    assert f"| 50.0% (10.0% .. 90.0%) | 2 | {there['success']:.1%}" in row
    assert "python -m benchmarks.publish_policy" in row
    assert text in capsys.readouterr().out
    assert main(words) == 0 and "0 trainings to do, 0 evaluations to do, 5 finished before" in capsys.readouterr().out
    for wrong, said in ((["policies=[chess]"], "there is no recipe for 'chess'"),
                        (["policies=[]"], "leaves nothing to do"),
                        (["policies=[pick]", "scenarios=[set_table]"], "scenarios= is a setting of Figure 6"),
                        (["policies=[pick]", "split=test"], "split= is a setting of Figure 6")):
        assert main([*words[:2], *wrong]) == 2 and said in capsys.readouterr().err


def test_a_published_policy_names_its_recipe():
    last = recipes.lessons("pick")[-1].words
    assert recipes.recipe_of(["skill=pick", *last, "seed=3"]) == "pick"
    assert recipes.recipe_of(["skill=place", *last]) is None
    assert recipes.recipe_of(["skill=pick", "experiment=laptop"]) is None


def test_figures_of_the_paper():
    places = {"tidy_house": NAMES, "prepare_groceries": NAMES[:6], "set_table": NAMES[:4]}
    assert all(0 <= each.success <= 1 and each.after in (*places[each.scenario], WHOLE) for each in STATED)
    made = {"scenario": "tidy_house", "agent": "tp_srl", "episodes": 4, "success": 0.25, "interactions": []}
    rows = {(row.stated.agent, row.stated.after): row for row in beside([made])}
    assert rows["tp_srl", WHOLE].measured == 0.25 and rows["tp_srl", WHOLE].interval[0] < 0.25
    assert rows["tp_srl", "place 1"].measured is None and len(rows) == 6
    assert not beside([made | {"skills": {"pick": "expert"}}]), "the agent of the paper has no experts"
    assert not beside([made | {"beyond_paper": ["recovery=retry"]}]), "and does not retry"
    assert not beside([made | {"interrupted": True}]), "figures of a part are not set beside the whole"
    limited = made | {"limited_skills": ["pick", "place"],
                      "mean_skill_steps": {"navigate": 9.0, "pick": 9.0, "place": 9.0}}
    rows = {(row.stated.agent, row.stated.after): row for row in beside([limited])}
    assert rows["tp_srl, limited actions", WHOLE].measured == 0.25 and rows["tp_srl", WHOLE].measured is None
    drives = limited | {"mean_skill_steps": limited["mean_skill_steps"] | {"open_fridge": 9.0}}
    assert beside([drives]) == beside([limited]), "Open fridge has the base there, too"
    assert not beside([limited | {"limited_skills": ["pick"]}]), "half of it is no agent of the paper"
    never = limited | {"limited_skills": ["pick"], "skills": dict.fromkeys(("navigate", "pick", "place"), "x.pt"),
                       "mean_skill_steps": {"navigate": 9.0, "pick": 9.0}}
    assert not beside([never]), "nor is it where the other half never began"
    by = dict.fromkeys(("navigate", "pick", "place"), "policy")
    assert beside([made | {"run_by": by}]) and beside([made | {"changed": [], "problem": "tidy_house"}])
    for other in ("pointnav", "remote", "own"):
        assert not beside([made | {"run_by": by | {"navigate": other}}]), "its Navigate is no other agent's"
    for word in ("hab.clutter=0", "hab.objects=[any]", "sim.base_speed_m_s=2.5", "sim.episodes=my.json"):
        assert not beside([made | {"changed": [word]}]), "which is another task"
    assert beside([made | {"changed": ["sim=habitat", "sim.scene_dataset=replica_cad.json",
                                       "sim.episodes=hab.json.gz"]}]), "as the paper's homes"
    assert not beside([made | {"problem": "set_table_paper"}])
    assert not beside([made | {"deterministic": True}]), "whose actions are drawn"


def test_the_real_command_is_stopped_and_goes_on(tmp_path):
    words = ("reproduce", "preset=smoke", "scenarios=[tidy_house]", "agents=[tp_srl_nonav]", "pretrained=false",
             "steps=1024", "episodes=1")
    process = start(tmp_path, *words)
    run = tmp_path / "outputs/train/pick/reproduce_smoke"
    wait_until(lambda: len(steps_logged(run)) > 0, process)
    process.send_signal(signal.SIGTERM)
    stopped = finish(process)
    assert stopped.returncode == 130 and "stopped by SIGTERM" in stopped.stdout
    assert "goes on from here" in stopped.stdout
    reached = steps_logged(run)[-1]
    assert 0 < reached < 1024
    done = rearrange(tmp_path, *words)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "name=reproduce_smoke output=outputs resume=true" in done.stdout
    assert steps_logged(run)[-1] == 1024 and Path(tmp_path / "outputs/reproduce/reproduce_smoke/report.html").exists()
