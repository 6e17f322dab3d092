"""`hydra/sweeper=population`: who takes over whose weights and settings, and that a second time nothing runs."""

from __future__ import annotations

import random
import shlex
from pathlib import Path

import pytest

from rearrange.command_line.cli import main
from rearrange.command_line.composition.swept import Sweeper, read
from rearrange.command_line.population import Member, Range, first_generation, next_generation, range_of
from rearrange.command_line.runs import job
from rearrange.home.errors import UserError

RATE = Range("ppo.learning_rate", 1e-4, 1e-2, log=True)
EPOCHS = Range("ppo.epochs", values=("1", "2", "4", "8"))
LINE = ("train -m skill=pick ppo.clip=interval(0.1,0.9) ppo.epochs=1,2,3 hydra/sweeper=population objective=success "
        "hydra.sweeper.members=4 hydra.sweeper.every=100 steps=300 seed=20 name=p")


def members(*rates: str) -> list[Member]:
    return [Member({"ppo.learning_rate": rate, "ppo.epochs": "2"}, number) for number, rate in enumerate(rates)]


def next_of(scores, rates=("0.001", "0.002", "0.003", "0.004"), resample=0.0, seed=0):
    return next_generation(members(*rates), scores, [RATE, EPOCHS], 0.25, 1.25, resample, random.Random(seed))


def test_the_worst_takes_over_the_best_and_changes_its_settings():
    for seed in range(20):
        made = next_of([0.5, 0.9, 0.1, 0.6], seed=seed)
        assert [each.parent for each in made] == [0, 1, 1, 3]
        assert [made[k].settings for k in (0, 1, 3)] == [each.settings for each in members("0.001", "0.002", "",
                                                                                             "0.004")][:2] + [
            members("", "", "", "0.004")[3].settings]
        assert float(made[2].settings["ppo.learning_rate"]) in (pytest.approx(0.0025), pytest.approx(0.0016))
        assert made[2].settings["ppo.epochs"] in ("1", "4")


def test_who_failed_is_replaced_and_nobody_follows_one_that_failed():
    for seed in range(20):
        assert [each.parent for each in next_of([None, 0.2, None, None], seed=seed)] == [1, 1, 1, 1]
    with pytest.raises(UserError, match="no member of the population has a result"):
        next_of([None] * 4)


def test_settings_stay_within_their_bounds():
    rng = random.Random(1)
    value, label = "0.009", "8"
    for _ in range(200):
        value, label = RATE.change(value, 3.0, rng), EPOCHS.change(label, 3.0, rng)
        assert 1e-4 <= float(value) <= 1e-2 and label in EPOCHS.values
    drawn = [float(each.settings[RATE.key]) for each in first_generation(400, [RATE], rng)]
    assert min(drawn) < 2e-4 and max(drawn) > 5e-3 and 150 < sum(each < 1e-3 for each in drawn) < 250  # log-uniform
    assert {Range("x", 2, 4).draw(rng) for _ in range(60)} == {"2", "3", "4"}
    assert {next_of([0.5, 0.9, 0.1, 0.6], resample=1.0, seed=seed)[2].settings["ppo.epochs"]
            for seed in range(60)} == {*EPOCHS.values}


def test_a_population_trains_by_generations_and_a_second_time_not_at_all(front_door, work, monkeypatch):
    words = []
    monkeypatch.setattr(job, "launch_process", lambda typed, *_: (words.append(typed), main(typed))[1])
    work.behave = lambda config, run: {"episode/success": 1 - abs(config.ppo.clip - 0.3)}
    status, out, _ = front_door(LINE)
    assert status == 0 and len(words) == 12, out
    runs = [config for _, config, _ in work.calls]
    assert {config.steps for config in runs} == {100} and {config.ppo.schedule for config in runs} == {"constant"}
    assert [config.seed for config in runs] == list(range(20, 32))
    assert [config.checkpoint for config in runs[:4]] == [None] * 4
    for generation in (1, 2):
        before, now = runs[4 * generation - 4:4 * generation], runs[4 * generation:4 * generation + 4]
        scores = [1 - abs(config.ppo.clip - 0.3) for config in before]
        worst, best = scores.index(min(scores)), scores.index(max(scores))
        parents = [int(Path(config.checkpoint).name.rpartition("_")[2]) for config in now]
        assert parents == [best if number == worst else number for number in range(4)]
        assert all(now[k].ppo == before[k].ppo for k in range(4) if k != worst) and now[worst].ppo != before[worst].ppo
    assert "3 generations of 100 steps, 4 members each: 12 runs" in out and "generation 3 of 3: best" in out
    assert f"best success {max(1 - abs(config.ppo.clip - 0.3) for config in runs):.3g}" in out
    words.clear()
    status, out, _ = front_door(LINE)
    assert status == 0 and not words and out.count("finished before") == 12


def test_a_run_that_is_repeated_changes_nothing_of_what_came_after(front_door, work, monkeypatch):
    monkeypatch.setattr(job, "launch_process", lambda typed, *_: main(typed))
    broken = [True]

    def behave(config, run):
        if broken[0] and config.seed == 21:
            raise UserError("no room")
        return {"episode/success": 1 - abs(config.ppo.clip - 0.3)}

    work.behave = behave
    status, out, _ = front_door(LINE)
    before = {run.path.name: config.ppo for _, config, run in work.calls}
    assert status == 1 and len(before) == 12 and "1 of 12 jobs failed" in out
    broken[0] = False
    work.calls.clear()
    status, out, _ = front_door(f"{LINE} resume=true")
    assert status == 0 and [run.path.name for _, _, run in work.calls] == ["p_0_1"], out


def test_a_generation_without_a_result_ends_it_with_the_table(front_door, work, monkeypatch):
    monkeypatch.setattr(job, "launch_process", lambda typed, *_: main(typed))

    def behave(config, run):
        if config.seed >= 24:
            raise UserError("no room")
        return {"episode/success": config.ppo.clip}

    work.behave = behave
    status, out, _ = front_door(f"{LINE} hydra.sweeper.direction=minimize name=a,b".replace(" name=p", "").replace(
        "name=a,b", "name='a,b'"))
    assert status == 1 and "generation 2 of 3: no run has a result" in out and "best success" in out
    least = min(config.ppo.clip for _, config, _ in work.calls)
    assert f"generation 1 of 3: best {least:.4g}" in out
    assert shlex.split(out.splitlines()[-1])[-1].startswith("checkpoint='outputs/train/pick/a,b_0_")


def test_ranges_are_read_as_they_are_typed():
    swept = read("train", "ppo.clip=range(0.1,0.5,0.1)", Sweeper("population"))
    assert range_of("train", swept).values == ("0.1", "0.2", "0.3", "0.4")
    whole, rng = Range("ppo.epochs", 1, 10), random.Random(0)
    assert {whole.change("1", 1.25, rng) for _ in range(40)} == {"1", "2"}


@pytest.mark.parametrize("words, said", [
    ("++steps=100,200", "steps= has one value here"),
    ("skill=pick,place", "skill= has one value here: the members"),
    ("policy.body_size=64,128", "policy.body_size= has one value here: the members"),
    ("steps=250", "steps=250 is no multiple of hydra.sweeper.every=100"),
    ("hydra.sweeper.members=1", "hydra.sweeper.members=1 is not allowed: it must be at least 2"),
    ("hydra.sweeper.share=0.7", "hydra.sweeper.share=0.7 is not allowed: it must be from 0 to 0.5"),
    ("hydra.sweeper.factor=1", "hydra.sweeper.factor=1.0 is not allowed: it must be greater than 1"),
    ("seed=1,2", "seed= has one value here"),
    ("ppo.clip=interval(-1,0.5)", "ppo.clip=-1"),
])
def test_what_cannot_train_is_said_before_anything_is_written(front_door, work, words, said):
    typed = [word for word in LINE.split() if word.partition("=")[0] != words.partition("=")[0]]
    status, _, err = front_door([*typed, words])
    assert status == 2 and said in err and not work.calls and not Path("outputs").exists()


def test_it_is_for_trainings(front_door):
    status, _, err = front_door("eval -m skill=pick sim.random_light=interval(0.1,0.9) hydra/sweeper=population "
                                "objective=success")
    assert status == 2 and "hydra/sweeper=population trains: write rearrange train -m" in err
