"""`-m`: one directory per job, a table, an exit status, and nothing done twice."""

from __future__ import annotations

import copy
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from omegaconf import OmegaConf

from rearrange.command_line import sweepers
from rearrange.command_line.cli import main
from rearrange.command_line.composition.swept import Sweeper, expand, read
from rearrange.command_line.runs import job
from tests.cli import sweepers_for_tests

HOME = Path(__file__).resolve().parents[2]


@pytest.fixture
def launched(work, monkeypatch):
    """Jobs run in this process; `launched` lists their words."""
    words = []
    monkeypatch.setattr(job, "launch_process", lambda typed, *_: (words.append(typed), main(typed))[1])
    return words


def test_one_directory_per_job_and_a_table(front_door, launched):
    status, out, _ = front_door("train -m skill=pick seed=0,1 ppo.clip=0.1,0.2 name=clip")
    assert status == 0 and len(launched) == 4
    assert sorted(p.name for p in Path("outputs/train/pick").glob("clip*")) == [
        f"clip_seed-{s}_clip-{c}" for s in (0, 1) for c in (0.1, 0.2)
    ]
    table = out.strip().splitlines()[-4:]
    assert all("finished" in row and "success 0.75" in row for row in table)
    assert "seed=1 ppo.clip=0.2" in table[-1]


def test_finished_jobs_are_skipped(front_door, launched):
    front_door("train -m skill=pick seed=0,1")
    launched.clear()
    status, out, _ = front_door("train -m skill=pick seed=0,1,2")
    assert status == 0 and [word for words in launched for word in words if word.startswith("seed=")] == ["seed=2"]
    assert out.count("finished before") >= 2


def test_a_failed_job_fails_the_sweep_and_not_the_others(front_door, launched):
    status, out, _ = front_door("train -m skill=pick seed=13,1")
    assert status == 1 and "failed (2)" in out and len(launched) == 2
    assert Path("outputs/train/pick/seed-1/status.json").exists()


def test_a_stopped_sweep_is_continued_with_resume(front_door, launched, work):
    def interrupt(config, run):
        raise KeyboardInterrupt

    work.behave = interrupt
    status, out, _ = front_door("train -m skill=pick seed=0,1")
    assert status == 130 and len(launched) == 1 and "not started" in out
    work.behave = lambda config, run: {}
    status, _, err = front_door("train -m skill=pick seed=0,1")
    assert status == 2 and "resume=true" in err
    launched.clear()
    assert front_door("train -m skill=pick seed=0,1 resume=true")[0] == 0
    assert ["resume=true" in words for words in launched] == [True, False]


def test_a_sweep_of_evaluations_says_what_it_can_do(front_door, launched):
    """There is no resume= to advise, and an evaluation without its figures is none."""
    line = "eval -m skill=pick agent=random,zero name=a"
    assert front_door(line)[0] == 0
    Path("outputs/eval/pick/a_agent-random/metrics.json").unlink()
    launched.clear()
    status, _, err = front_door(line)
    assert status == 2 and not launched and "resume" not in err and "Remove it" in err and "name=" in err
    shutil.rmtree("outputs/eval/pick/a_agent-random")
    assert front_door(line)[0] == 0 and len(launched) == 1 and "resume=true" not in launched[0]


def test_nothing_starts_if_any_job_is_wrong(front_door, launched):
    status, _, err = front_door("train -m skill=pick ppo.clip=0.1,0")
    assert status == 2 and "ppo.clip=0" in err and not launched


def test_another_sweep_needs_another_name(front_door, launched):
    front_door("train -m skill=pick seed=0,1 steps=10")
    launched.clear()
    status, _, err = front_door("train -m skill=pick seed=0,1 steps=20")
    assert status == 2 and "steps: 10 -> 20" in err and "name=" in err and not launched


def test_optuna_asks_for_jobs_by_their_figures_and_a_second_time_for_none(front_door, launched, work):
    pytest.importorskip("hydra_plugins.hydra_optuna_sweeper")
    work.behave = lambda config, run: {"episode/success": 1 - abs(config.ppo.clip - 0.2)}
    line = ("train -m skill=pick ppo.clip=interval(0.1,0.9) seed=1,2 hydra/sweeper=optuna objective=success "
            "hydra.sweeper.n_trials=5 name=o")
    status, out, _ = front_door(line)
    assert status == 0 and len(launched) == 5, out
    clips = [float(word.split("=")[1]) for words in launched for word in words if word.startswith("ppo.clip=")]
    best = min(clips, key=lambda clip: abs(clip - 0.2))
    told, then = out.strip().splitlines()[-2:]
    assert f"ppo.clip={best}" in told and told.startswith("best success")
    assert then == f"next: rearrange eval skill=pick checkpoint={told.split()[-1]}"
    assert f"ppo.clip: {best}" in Path("outputs/sweeps/train_o/optimization_results.yaml").read_text()
    launched.clear()
    status, out, _ = front_door(line)  # the same seed asks for the same jobs
    assert status == 0 and not launched and out.count("finished before") == 5


def test_a_job_of_optuna_that_fails_does_not_end_the_others_and_one_that_is_stopped_does(front_door, launched, work):
    pytest.importorskip("hydra_plugins.hydra_optuna_sweeper")
    line = ("train -m skill=pick seed=13,13,1 hydra/sweeper=optuna hydra/sweeper/sampler=random objective=success "
            "hydra.sweeper.n_trials=6")
    status, out, _ = front_door(line)
    assert status == 1 and "failed (2)" in out and len(launched) > 1 and "best success 0.75: seed=1" in out

    def interrupt(config, run):
        raise KeyboardInterrupt

    work.behave = interrupt
    launched.clear()
    assert front_door(line.replace("13,13,1", "2,3,4"))[0] == 130 and len(launched) == 1


COMPOSED: dict = {}


@pytest.fixture
def hydra_once(monkeypatch):
    """Hydra composes its settings of the same words once: that takes most of the time of what is refused."""
    compose = sweepers.composed

    def composed(words, *others):
        if (*words,) not in COMPOSED:
            COMPOSED[*words,] = compose(words, *others)
        return copy.deepcopy(COMPOSED[*words,])

    monkeypatch.setattr(sweepers, "composed", composed)


STUDY = "hydra/sweeper=optuna objective=success"
GRID = f"{STUDY} hydra/sweeper/sampler=grid"


@pytest.mark.parametrize("words, said", [
    (f"ppo.discount=range(0.5,1.5,0.5) {STUDY}", "ppo.discount=1.5 is not allowed"),
    (f"ppo.discount=range(0.25,1.25,0.25) {STUDY}", "ppo.discount=1.25"),
    ("ppo.discount=range(0.5,2,0.5)", "ppo.discount=1.5"),
    (f"ppo.discount=shuffle(range(0.5,2,0.5)) {STUDY}", "ppo.discount=1.5"),
    (f"trainer.num_envs=range(1,4,0.5) {STUDY}", "trainer.num_envs=1.5 is not allowed: it must be an integer"),
    (f"trainer.num_envs=tag(range(-1,3)) {STUDY}", "trainer.num_envs=-1"),
    (f"policy=light policy.image_size=int(interval(0,32)) {STUDY}", "policy.image_size=1 is too small"),
    (f"policy=light policy.image_size=range(0,32) {STUDY}", "policy.image_size=1 is too small"),
    (f"ppo.discount=int(interval(0,2)) {STUDY}", "ppo.discount=2"),
    (f"ppo.clip=tag(log,interval(-1,1)) {STUDY}", "must begin above 0"),
    (f"ppo.clip=interval(0.3,0.1) {STUDY}", "the smaller one first"),
    (f"ppo.clip=interval(0.1,inf) {STUDY}", "finite"),
    (f"ppo.clip=tag(log,range(1,3)) {STUDY}", "log has a meaning for interval() alone"),
    (f"ppo.clip=interval(0.1,0.3) {GRID}", "sampler=grid"),
    (f"seed=range(3,3) {GRID}", "no value"),
    (f"seed=range(5,1,-1) {STUDY}", "ranges that rise"),
    ("seed=range(5,1)", "no value"),
    ("seed=range(0,3,0)", "a step that is not 0"),
    (f"seed=range(0,3.0,0) {STUDY}", "a step that is not 0"),
    ("seed=range(0,inf)", "finite"),
    ("seed=range(0,1e12)", "10,000 are the most"),
    (f"seed=shuffle(range(0,1000000000000)) {STUDY}", "10,000 are the most"),
    ("seed=range(0,1000) ppo.epochs=range(1,1000)", "999,000 jobs"),
    ("seed=sort(range(1,9,3),reverse=true)", "makes values that the range does not have"),
    ("seed=[1,choice(2,3)]", "a whole value"),
    ("seed=choice(choice(1,2),3)", "a whole value"),
    ("seed=interval(1,2),3", "a whole value"),
    ("ppo={clip:choice(0.1,0.2)}", "a whole value"),
    ("ppo={clip:0.1},{clip:-1}", "no ppo called"),
    (f"ppo={{clip:0.1}},{{clip:-1}} {STUDY}", "no ppo called"),
    (f"skill.observation_keys=[arm,depth],[3] {STUDY}", "skill.observation_keys=[3]"),
    (f"ppo.clip=0.1,null {GRID}", "values of one type"),
    ("ppo.clip=0.1,null", "ppo.clip=null"),
    (f"ppo.clip=0.1,true {STUDY}", "ppo.clip=true"),
    ("seed=glob(*)", "is none"),
    (f"policy=glob(zz*) {STUDY}", "matches no choice"),
    ("+seed=1,2", "without the +"),
    ("seed=1,1.0", "twice, in two forms"),
    (f"seed=1,2 {STUDY} hydra.sweeper.storage=nonsense://x", "nonsense"),
    (f"seed=1,2 {STUDY} hydra.sweeper.storage=sqlite:////nowhere/x.db", "unable to open"),
    (f"seed=1,2 {STUDY} hydra.sweeper.direction=null", "direction=null"),
    (f"seed=1,2 {STUDY} hydra.sweeper.n_trials=0", "n_trials=0"),
    (f"seed=1,2 {STUDY} hydra.sweeper.n_jobs=-1", "n_jobs=-1"),
    ("seed=1,2 hydra.sweeper.max_batch_size=0", "max_batch_size=0"),
    (f"seed=1,2 {STUDY} hydra.sweeper.max_failure_rate=1.5", "max_failure_rate=1.5"),
    (f"seed=1,2 {STUDY} hydra.sweeper.direction=[maximize,minimize]", "one figure"),
    (f"seed=1,2 {STUDY} hydra.sweeper.direction=maximise", "direction=maximise"),
    (f"seed=1,2 {STUDY} +hydra.sweeper.search_space.seed.type=int", "hydra.sweeper.params"),
    (f"{STUDY} +hydra.sweeper.params.ppo.discount=range(0.5,1.5,0.5)", "ppo.discount=1.5"),
    (f"{STUDY} hydra.sweeper.params={{ppo.discount:'0.5,1.5'}}", "ppo.discount=1.5"),
    ("seed=1,2 hydra.sweeper.params=3", "cannot read"),
    ("seed=1,2 +hydra.sweeper.more=3", "'more'"),
    (f"policy.log_std_min=interval(-3,1) policy.log_std_max=interval(-1,2) {STUDY}", "is greater than"),
    ("ppo.discount=range(0.5,1.5,0.5) hydra/sweeper=ends objective=success", "ppo.discount=1.5"),
])
def test_what_a_sweeper_cannot_ask_for_is_one_sentence_before_anything_exists(front_door, launched, words, said,
                                                                              hydra_once):
    pytest.importorskip("hydra_plugins.hydra_optuna_sweeper")
    sweepers_for_tests.register()
    status, out, error = front_door(["train", "-m", "skill=pick", *words.split()])
    assert status == 2 and said in error and error.count("\n") == 1 and not out, error + out
    assert not launched and not list(Path().iterdir())


RANGES = ["range(2,4)", "range(0,5,2)", "range(0.5,1.5,0.5)", "range(0,0.8,0.1)", "range(0.1,0.7,0.1)",
          "range(-3,3,1.5)", "range(2.5)", "range(0,1,0.25)", "range(7,8)", "range(1,9,3)", "float(range(1,4))",
          "range(start=-2,stop=3)", "sort(range(1,5))"]
CHOICES = ["1,2,3", "true,false,null", "0.1,1e-5,-2", "shuffle(range(0,4))", "sort(3,1,2)", "shuffle(5,6)", "[1,2],[3]",
           "{a:1},{b:2}", "choice(1,a,'b c')", "tag(x,choice(1,2))", "int(interval(2,5))",
           "int(tag(log,interval(1,4)))", "'a,b',c", "range(4,5)"]


@pytest.mark.parametrize("sampler", ["random", "grid"])
@pytest.mark.parametrize("word", RANGES + CHOICES)
def test_optuna_asks_for_the_values_that_were_checked_and_for_no_other(word, sampler, tmp_path):
    """Of few values, in many trials, for each."""
    impl = pytest.importorskip("hydra_plugins.hydra_optuna_sweeper._impl")
    optuna = pytest.importorskip("optuna")
    if sampler == "grid" and ("interval" in word or word in ("true,false,null", "choice(1,a,'b c')")):
        return  # refused above
    swept = read("train", f"seed={word}", Sweeper("optuna", sampler == "grid"))
    asked = set()

    class Told:
        def launch(self, jobs, initial_job_idx):
            asked.update(word.split("=", 1)[1] for words in jobs for word in words)
            return [type("Return", (), {"return_value": 1.0})] * len(jobs)

    made = optuna.samplers.GridSampler if sampler == "grid" else optuna.samplers.RandomSampler(seed=1)
    made = impl.functools.partial(made) if sampler == "grid" else made
    sweeper = impl.OptunaSweeperImpl(made, "maximize", None, None, 90, 1, 1.0, None, None, None)
    sweeper.config = OmegaConf.create({"hydra": {"sweep": {"dir": str(tmp_path)}}})
    sweeper.launcher, sweeper.hydra_context = Told(), True
    sweeper.sweep([swept.asked])

    def plain(texts):  # floats to twelve digits: Optuna computes them in another order
        return {f"{float(text):.12g}" if "." in text and text[-1].isdigit() else text.strip("'").replace("\\ ", " ")
                for text in texts}

    assert plain(asked) == plain(swept.values) and len(swept.values) == swept.count, (asked, swept)


@pytest.mark.parametrize("word", RANGES + [choice for choice in CHOICES if "interval" not in choice])
def test_the_jobs_of_the_basic_sweeper_are_those_that_hydra_makes(word):
    from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
    from hydra.core.override_parser.overrides_parser import OverridesParser

    hydras = BasicSweeper.split_arguments(OverridesParser.create().parse_overrides([f"seed={word}"]), None)[0]
    ours = [[f"seed={each['seed']}"] for each in expand("train", [f"seed={word}"])]
    assert sorted(ours) == sorted(hydras) and (ours == hydras or "shuffle" in word)


def test_the_number_of_jobs_is_that_of_the_sweeper(front_door, launched):
    pytest.importorskip("hydra_plugins.hydra_optuna_sweeper")
    for words, said, seeds in (("name=b", "2 jobs,", {"2", "3"}), (f"name=o {STUDY}", "3 at most", {"2", "3", "4"}),
                               (f"name=g {GRID}", "2 at most", {"2", "3"})):
        launched.clear()
        status, out, _ = front_door(f"train -m skill=pick seed=range(2,4) {words}")
        asked = [word.split("=")[1] for typed in launched for word in typed if word.startswith("seed=")]
        assert status == 0 and said in out and set(asked) == seeds and len(asked) == len(seeds), out
        rows = [row for row in out.split("\n\n")[-1 if words == "name=b" else -2].splitlines()
                if row.startswith("seed=")]
        assert len(rows) == len(seeds), "each job once"


def test_a_job_that_failed_and_is_asked_for_again_is_one_failed_job(front_door, launched, work, monkeypatch):
    pytest.importorskip("hydra_plugins.hydra_optuna_sweeper")

    def behave(config, run):
        if config.seed == 3:
            raise RuntimeError("this job is ill")
        return {"episode/success": config.seed / 10}

    work.behave = behave
    in_process = job.launch_process

    def as_process(typed, *rest):  # whose end is an exit status
        try:
            return in_process(typed, *rest)
        except RuntimeError:
            return 1

    monkeypatch.setattr(job, "launch_process", as_process)
    how = "hydra/sweeper/sampler=random hydra.sweeper.n_trials=12 hydra.sweeper.n_jobs=4"
    status, out, _ = front_door(f"train -m skill=pick seed=2,3,4 {STUDY} {how}")
    seeds = [word for typed in launched for word in typed if word.startswith("seed=")]
    assert status == 1 and sorted(seeds) == ["seed=2", "seed=3", "seed=4"], out
    assert "1 of 3 jobs failed" in out and "best success 0.4: seed=4" in out
    assert sum(row.startswith("seed=3") for row in out.split("\n\n")[-3].splitlines()) == 1


def test_what_a_function_adds_to_a_study_may_be_refused_and_the_others_go_on(front_door, launched):
    pytest.importorskip("hydra_plugins.hydra_optuna_sweeper")
    line = f"train -m skill=pick seed=1,2 {STUDY} hydra/sweeper/sampler=random hydra.sweeper.n_trials=40"
    own = "hydra.sweeper.custom_search_space=tests.cli.sweepers_for_tests.also_clip"
    status, out, _ = front_door(f"{line} {own}")
    assert status == 1 and "2 of 6 jobs failed" in out and len(
        launched) == 4 and "ppo.clip=-0.1 is not allowed" in out, out
    assert "failed (2)" in out and "best success 0.75" in out


def test_a_study_ends_early_only_where_its_rate_of_failures_says_so(front_door, launched):
    pytest.importorskip("hydra_plugins.hydra_optuna_sweeper")
    line = (f"train -m skill=pick seed=13,1 ppo.epochs=range(1,9) {STUDY} hydra/sweeper/sampler=random "
            "hydra.sweeper.n_jobs=1 name=")
    status, out, _ = front_door(f"{line}all")
    assert status == 1 and out.count("failed (2)") > 3, out
    launched.clear()
    status, out, _ = front_door(f"{line}few hydra.sweeper.max_failure_rate=0.5")
    assert status == 1 and "max_failure_rate=0.5" in out and "1 of" in out


def test_a_sweeper_of_another_package_asks_for_what_was_checked(front_door, launched):
    sweepers_for_tests.register()
    status, out, error = front_door("train -m skill=pick seed=range(1,4) hydra/sweeper=ends objective=success")
    assert status == 0 and [word for typed in launched for word in typed
                            if word.startswith("seed=")] == ["seed=1", "seed=4"], out + error


@pytest.mark.parametrize("line, jobs", [
    ("seed=5 +hydra.sweeper.params.seed=1,2 ppo.clip=0.1,0.2", [(5, 0.1), (5, 0.2)]),  # what is typed counts more
    ("hydra.sweeper.params={seed:'1,2',ppo.clip:0.3}", [(1, 0.3), (2, 0.3)]),
    ("seed=1,2 seed=7 ppo.clip=0.1,0.2", [(7, 0.1), (7, 0.2)]),  # of one key, what comes last
    ("seed=7 seed=1,2 ppo.clip=0.4", [(1, 0.4), (2, 0.4)]),
])
def test_cfg_job_shows_the_settings_of_every_job(front_door, launched, line, jobs):
    status, out, _ = front_door(f"train -m skill=pick {line} --cfg job")
    made = list(yaml.safe_load_all(out))
    assert status == 0 and [(each["seed"], each["ppo"]["clip"])
                            for each in made] == jobs and f"# job 1 of {len(jobs)}: " in out
    assert not launched and not list(Path().iterdir()) and front_door(f"train -m skill=pick {line} --help")[0] == 0


def test_cfg_job_of_a_study_shows_the_first_values_and_says_so(front_door):
    pytest.importorskip("hydra_plugins.hydra_optuna_sweeper")
    status, out, _ = front_door(f"train -m skill=pick ppo.clip=interval(0.1,0.3) {STUDY} --cfg job")
    assert status == 0 and yaml.safe_load(out)["ppo"]["clip"] == 0.1
    assert "# hydra/sweeper=optuna chooses ppo.clip=interval(0.1,0.3); here" in out
    assert front_door("train -m skill=pick ppo.clip=0.1,0 --cfg job")[0] == 2


def test_texts_of_a_study_come_back_as_they_were_typed(front_door, launched):
    pytest.importorskip("hydra_plugins.hydra_optuna_sweeper")
    for name in ("a,b.pt", "c d.pt", "e(1)=f.pt"):
        Path(name).touch()
    words = "checkpoint='a,b.pt',c d.pt,'e(1)=f.pt',null"
    for how in ([], [*STUDY.split(), "hydra/sweeper/sampler=grid"]):
        launched.clear()
        status, out, error = front_door(["train", "-m", "skill=pick", words, f"name=n{len(how)}", *how])
        assert status == 0 and len(launched) == 4, out + error
        texts = [word.removeprefix("checkpoint=").strip("'") for typed in launched for word in typed
                 if word.startswith("checkpoint=")]
        assert sorted(texts) == ["a,b.pt", "c d.pt", "e(1)=f.pt", "null"]


@pytest.mark.parametrize("words, said",
                         [("seed=0,1 hydra/launcher=jobli", ("hydra/launcher", "jobli", "Did you mean "
                                                             "hydra/launcher=joblib?", "submitit_slurm")),
                          ("seed=0,1 hydra/launcher=absent", ("'absent'", "Choices: basic")),
                          ("seed=0,1 hydra.launcher.partition=gpu", ("hydra.launcher.partition",)),
                          ("seed=0,1 hydra.run.dir=x", ("hydra.run.dir=x", "hydra.launcher.")),
                          ("seed=0,1 hydra/sweeper=optuna", ("hydra/sweeper=optuna", "objective=success")),
                          ("ppo.clip=interval(0,1) hydra/sweeper=optuna objective=success", ("ppo.clip=0.0",)),
                          ("seed=interval(0,9) hydra/sweeper=optuna objective=success", ("seed=5.19", "an integer")),
                          ("ppo.clip=interval(0.1,1)", ("ppo.clip", "hydra/sweeper=optuna"))])
def test_a_mistake_in_the_launcher_or_the_sweeper_is_one_sentence(front_door, launched, words, said):
    pytest.importorskip("hydra_plugins.hydra_optuna_sweeper")
    status, _, error = front_door(f"train -m skill=pick {words}")
    assert status == 2 and all(part in error for part in said) and "\n" not in error.strip(), error
    assert not launched and not list(Path().iterdir())


def test_a_launcher_that_is_not_installed_is_named_with_its_package(front_door, launched, monkeypatch):
    from hydra.core.config_store import ConfigStore

    monkeypatch.delitem(ConfigStore.instance().repo["hydra"]["launcher"], "joblib.yaml", raising=False)
    status, _, error = front_door("train -m skill=pick seed=0,1 hydra/launcher=joblib")
    assert status == 2 and "hydra-joblib-launcher" in error and "rearrange[cluster]" in error and not launched


@pytest.mark.parametrize("line, said", [
    ("train skill=pick hydra/launcher=joblib", "add -m"),
    ("train skill=pick objective=success", "add -m"),
    ("eval skill=all objective=success", "add -m"),
    ("list hydra/launcher=joblib", "list has no jobs"),
])
def test_words_about_jobs_need_jobs(front_door, launched, line, said):
    status, _, error = front_door(line)
    assert status == 2 and said in error and not launched


def test_one_job_is_a_sweep_where_a_launcher_is_named(front_door, launched):
    assert front_door("train -m skill=pick hydra/launcher=basic name=one")[0] == 0 and len(launched) == 1
    assert Path("outputs/train/pick/one/status.json").exists()


def test_a_job_is_a_process_of_its_own(tmp_path):
    """The real launch, up to a mistake that each job finds by itself."""
    trap = tmp_path / "trainer"
    trap.mkdir()
    (trap / "__init__.py").write_text("raise SystemExit('imported from the working directory')")
    call = "launch_process(['train', 'skill=pick', 'name=../x'])"
    code = f"import sys; from rearrange.command_line.runs.processes import launch_process; sys.exit({call})"
    environment = {**os.environ, "PYTHONPATH": str(HOME)}
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], cwd=tmp_path, capture_output=True, text=True, env=environment
    )
    assert done.returncode == 2 and "name=../x" in done.stderr


def test_skill_all_trains_every_skill_and_goes_on_where_it_stopped(front_door, launched, work):
    from skills import SKILLS

    status, out, _ = front_door("train skill=all policy=blind")
    assert status == 0 and [next(w for w in words if w.startswith("skill=")) for words in launched] == [
        f"skill={name}" for name in sorted(SKILLS)]
    assert all(Path(f"outputs/train/{name}/all/status.json").exists() for name in SKILLS)
    assert out.count("skill=navigate  ") >= len(SKILLS)  # the table is shown after every skill
    launched.clear()
    status, out, _ = front_door("train skill=all policy=blind")
    assert status == 0 and not launched and out.count("finished before") >= len(SKILLS)


def test_skill_all_shows_its_settings_as_any_other_training(front_door):
    status, out, _ = front_door("train skill=all experiment=laptop --cfg job")
    assert status == 0 and "steps: 5000000" in out
    assert front_door("train skill=all --help")[0] == 0


PARENT = """
import subprocess, sys
from rearrange.command_line.runs import processes
real = subprocess.Popen
processes.subprocess.Popen = lambda command, **how: real([sys.executable, "-c", sys.argv[1]], **how)
sys.exit(processes.launch_process([]))
"""
CHILD = """
import os, signal, sys, time
from rearrange.command_line.runs.exit_with_parent import follow_parent
def end(signum, _):
    print(signal.Signals(signum).name, flush=True)
    came.append(signum)
came = []
for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
    signal.signal(signum, end)
follow_parent()
print(os.getpid(), flush=True)
while not came:
    time.sleep(0.01)  # timed: between two looks
time.sleep(0.3)  # timed: a second signal would come meanwhile
print("saved", "REARRANGE_LIFELINE" in os.environ, flush=True)
sys.exit(75 if signal.SIGUSR1 in came else 3)
"""


@pytest.mark.parametrize("signum, whom, said, code", [
    (signal.SIGINT, "parent", "SIGINT", 130),
    (signal.SIGTERM, "parent", "SIGTERM", 130),
    (signal.SIGHUP, "parent", "SIGHUP", 130),
    (signal.SIGUSR1, "parent", "SIGUSR1", 75),
    (signal.SIGINT, "group", "SIGINT", 130),  # Ctrl-C in a terminal
    (signal.SIGKILL, "parent", "SIGTERM", -9),
    (signal.SIGKILL, "group", "SIGTERM", -9),
])
def test_a_job_gets_every_signal_once_and_does_not_outlive_the_sweep(signum, whom, said, code):
    process = subprocess.Popen([sys.executable, "-c", PARENT, CHILD], cwd=HOME, stdout=subprocess.PIPE, text=True,
                               start_new_session=True, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL))
    assert int(process.stdout.readline()) != process.pid
    os.kill(process.pid, signum) if whom == "parent" else os.killpg(process.pid, signum)
    out, _ = process.communicate(timeout=60)  # until the child, too, has closed the pipe
    assert out.split("\n") == [said, "saved False", ""] and process.returncode == code


def test_a_sweep_goes_on_without_its_screen(launched, work, monkeypatch):
    from tests.cli.test_front_door import Broken

    monkeypatch.setattr(sys, "stdout", Broken(32))
    assert main(["train", "-m", "skill=pick", "seed=0,1"]) == 0 and len(launched) == 2


def test_a_sweep_that_its_scheduler_starts_again_goes_on(front_door, work, launched, monkeypatch):
    def interrupt(config, run):
        raise KeyboardInterrupt

    monkeypatch.setenv("SLURM_RESTART_COUNT", "1")
    work.behave = interrupt
    front_door("train skill=pick seed=1 name=seed-1")
    work.behave = lambda config, run: {}
    assert front_door("train -m skill=pick seed=0,1")[0] == 0
    assert len(launched) == 2 and work.calls[-1][2].resumed
    assert front_door("train -m skill=pick seed=0,1")[0] == 0 and len(launched) == 2
