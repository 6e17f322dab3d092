"""Skills and scenarios of somebody else by the commands: of an installed package, or typed as package.module:Name."""

from __future__ import annotations

import re
import subprocess
import sys

import gymnasium
import pytest

from planner.scenarios import load_scenario
from rearrange import load_pretrained, make_env
from rearrange.command_line import completion
from rearrange.command_line.cli import main
from rearrange.command_line.composition import options
from rearrange.command_line.composition.parse_overrides import compose
from rearrange.command_line.listing import text
from rearrange.home.errors import UserError
from rearrange.home.settings import installed_parts
from skills import skill_class
from tests.docs.markdown import HOME, blocks
from tests.e2e.front_door import TINY, rearrange, succeed
from trainer import load_checkpoint

SMALL = (*TINY[1:], "steps=128")
TOUCH = "handy.touch:Touch"
LIFT = '''
from dataclasses import dataclass

from skills.experts.pick_and_place import PickExpert
from skills.pick import Pick, PickConfig


@dataclass(frozen=True)
class LiftConfig(PickConfig):
    skill = "lift"


class Lift(Pick):
    name, episode_kind, settings, expert = "lift", "pick", LiftConfig, PickExpert

    def __init__(self, config=LiftConfig()):
        super().__init__(config)
'''
WRONG = '''
from dataclasses import dataclass

from handy.touch import Touch, TouchConfig
from skills.settings import SkillConfig
from skills.skill import Skill

number = 3


class Bare(Touch):
    pass


class Half(Skill):
    name, failures = "half", ()


@dataclass(frozen=True)
class ThinConfig(SkillConfig):
    skill = "thin"


class Thin(Touch):
    name = "thin"


class NoisyConfig(TouchConfig):
    pass


class Noisy(Touch):
    name = "Not A Name"
'''
POINTS = """[rearrange.skills]
touch = handy.touch:Touch
lift = handy.lift:Lift
gone = handy.gone:Gone
another = handy.touch:Touch
pick = handy.lift:Lift
[rearrange.scenarios]
lift_one = handy:lift_one.yaml
lost = handy:lost.yaml
other_name = handy:lift_one.yaml
"""
YAML = "name: lift_one\nproblem: lift_one.pddl\nobjects: [any]\nstarts: [open]\ngoals: [open]\nmax_steps: 1500\n"
PROBLEM = ("(define (problem lift_one) (:domain lifting) (:objects $objects) (:init $init)\n"
           "(:goal (and (holding object_0))))\n")


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An installed package with two skills, a scenario, and entry points that lead nowhere."""
    folder = tmp_path / "lib/handy"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "touch.py").write_text(blocks(HOME / "docs/add_skill.md", "py")[0])
    (folder / "lift.py").write_text(LIFT)
    (folder / "wrong.py").write_text(WRONG)
    (folder / "lift_one.yaml").write_text(YAML)
    (folder / "lift_one.pddl").write_text(PROBLEM)
    ours = (HOME / "planner/domain.pddl").read_text().replace("(domain home)", "(domain lifting)")
    (folder / "lifting.pddl").write_text(re.sub(r"\(:action pick\n", "(:action lift_object\n", ours))
    install(tmp_path / "lib", "handy", POINTS)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "lib"))
    monkeypatch.syspath_prepend(tmp_path / "lib")
    monkeypatch.chdir(tmp_path)
    installed_parts.forget()
    yield tmp_path
    installed_parts.forget()


def install(folder, name: str, points: str) -> None:
    place = folder / f"{name}-1.0.dist-info"
    place.mkdir()
    (place / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (place / "entry_points.txt").write_text(points)
    installed_parts.forget()


def test_a_skill_of_an_installed_package_is_one_of_the_choices(package):
    assert {"touch", "lift", "gone"} <= set(options.choices("skill")) and "lift_one" in options.choices("hab")
    listed = text(package)
    assert "touch              rearrange/Skill-v0             The skill handy.touch:Touch of an installed" in listed
    assert "skill pick (handy.lift:Lift) of the package handy is left out: rearrange has one of that name" in listed
    assert skill_class("pick").__module__ == "skills.pick"
    assert "skill=touch" in completion.candidates(["train", "skill=t"])
    assert "skill.radius_m=" in completion.candidates(["train", "skill=touch", "skill.r"])
    config = compose("train", ["skill=touch", "skill.radius_m=0.2"])
    assert config.value("skill.name") == "touch" and config.value("skill.radius_m") == 0.2
    for word in ("touch", TOUCH):
        assert make_env(word, num_layouts=1).skill.name == "touch"
        assert gymnasium.make("rearrange/Skill-v0", skill=word, num_layouts=1).unwrapped.skill.max_steps == 150
    for word in ("lift_one", "handy:lift_one.yaml"):
        assert compose("eval", [f"hab={word}"]).value("hab.name") == load_scenario(word).name == "lift_one"


@pytest.mark.parametrize("word, sentence", [
    ("gone", "skill=gone cannot be loaded: ModuleNotFoundError: No module named 'handy.gone'."),
    ("nowhere:Touch", "Put the folder of nowhere on PYTHONPATH, or install it."),
    ("handy.touch:Tuch", "module 'handy.touch' has no attribute 'Tuch'."),
    ("handy.wrong:number", "is no skill, but of type int: give a class derived from skills.skill.Skill."),
    ("handy.touch:TouchConfig", "is no skill, but the class TouchConfig"),
    ("handy.wrong:Half", "is not complete: Half has no begin, failure, reward_terms, start, success;"),
    ("handy.wrong:Bare", "has no settings: beside Bare there has to be a dataclass BareConfig"),
    ("handy.wrong:Thin", "ThinConfig has no field action_parts, observation_keys, max_steps, reward_scales."),
    ("handy.wrong:Noisy", "has name='Not A Name': Noisy.name has to be letters a to z"),
    ("another", "skill=another is called 'touch' by itself"),
    ("tuch", "Did you mean skill=touch?"),
])
def test_what_is_no_skill_is_one_sentence(word, sentence, package, capsys):
    assert main(["eval", f"skill={word}", "agent=random", "episodes=1"]) == 2
    error = capsys.readouterr().err
    assert sentence in error and error.count("\n") == 1
    assert not (package / "outputs").exists()


@pytest.mark.parametrize("word, sentence", [
    ("lost", "there is no file lost.yaml in "), ("handy:other.yaml", "there is no file other.yaml in "),
    ("nowhere:one.yaml", "there is no module nowhere."), ("handy:touch", "names no YAML file"),
    ("other_name", "hab=other_name is called 'lift_one' by itself"), ("lift_on", "Did you mean hab=lift_one?"),
])
def test_what_is_no_scenario_is_one_sentence(word, sentence, package, capsys):
    assert main(["eval", f"hab={word}", "agent=expert", "episodes=1"]) == 2
    error = capsys.readouterr().err
    assert sentence in error and error.count("\n") == 1


def test_two_packages_that_call_different_skills_alike_are_named(package):
    install(package / "lib", "second", "[rearrange.skills]\ntouch = handy.lift:Lift\n")
    with pytest.raises(UserError, match="several installed packages call a skill .handy.lift:Lift by second, "
                       "handy.touch:Touch by handy.: write package.module:Name, or uninstall one"):
        skill_class("touch")
    assert skill_class(TOUCH).__name__ == "Touch"


def test_a_policy_of_such_a_skill_is_trained_and_loads_again(package):
    named = succeed(package, "train", *SMALL, "skill=touch", "name=own")
    assert "next: rearrange eval skill=touch checkpoint=outputs/train/touch/own" in named
    assert load_checkpoint(package / "outputs/train/touch/own")["meta"]["skill"] == "touch"
    env, policy = load_pretrained(package / "outputs/train/touch/own", num_layouts=1)
    assert policy.act(env.reset(seed=0)[0]).shape == env.action_space.shape == (9,)

    succeed(package, "train", *SMALL, f"skill={TOUCH}", "name=own")
    run = "outputs/train/handy.touch.Touch/own"
    assert load_checkpoint(package / run)["meta"]["skill"] == TOUCH
    assert "agent policy" in succeed(package, "eval", f"skill={TOUCH}", f"checkpoint={run}", "episodes=2", "workers=2",
                                     "skill.max_steps=5")
    done = rearrange(package, "train", "name=own", f"output={package / 'outputs'}", "resume=force", "steps=256")
    assert done.returncode == 2 and f"add skill={TOUCH}." in done.stderr
    with pytest.raises(UserError, match=f"add skill='{TOUCH}'"):
        load_pretrained(package / run)
    with pytest.raises(UserError, match="of skill touch, not of skill handy.touch:Touch"):
        load_pretrained(package / "outputs/train/touch/own", skill=TOUCH)
    assert load_pretrained(package / run, num_layouts=1, skill=TOUCH)[0].unwrapped.skill.name == "touch"


def test_a_plan_with_such_a_skill_is_carried_out(package):
    words = "eval hab=lift_one agent=expert planner=paper episodes=1 workers=1 video=0".split()
    done = subprocess.run([sys.executable, "-P", "-c", "import sys; from rearrange.command_line.cli import main; "
                           "sys.exit(main(sys.argv[1:]))", *words], cwd=package, capture_output=True, text=True)
    out = done.stdout  # a process of its own: forked ones know the skills that were there before
    assert not done.returncode, done.stderr
    assert re.search(r"whole task +100.0%", out) and "handoff to lift" in out
    domain = package / "lib/handy/lifting.pddl"
    text = domain.read_text()
    for old, new, sentence in (("lift_object", "raise_object", "'raise_object' of the planning domain names no skill"),
                               ("(hand_empty)\n", "(hand_empty)\n(moved ?o - movable)\n", "the predicate moved is not "
                                "one that can be observed")):
        domain.write_text(text.replace(old, new, 1))
        done = rearrange(package, "eval", "hab=lift_one", "agent=expert", "episodes=1")
        assert done.returncode == 2 and sentence in done.stderr and done.stderr.count("\n") == 1


def test_a_recording_alone_chooses_nothing_that_is_imported(package):
    succeed(package, "record", "skill=handy.lift:Lift", "out=shown", "episodes=1", "workers=1", "image_size=0")
    done = rearrange(package, "record", "replay=shown")
    assert done.returncode == 2 and "add skill=handy.lift:Lift." in done.stderr
    assert "1 of 1 episodes went again" in succeed(package, "record", "replay=shown", "skill=handy.lift:Lift")
