"""From the words of a command line, and what is chosen in the page instead of some of them, to what runs behind it."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from eval.recording.record import Prepared, scenario
from eval.scenario import command as of_scenario
from eval.skill_command import watched_navigation
from eval.view.driver import Driver
from eval.view.navigation import NavigationSession
from eval.view.own_code import LOAD_S, Apart
from eval.view.sessions import DrivenScenario, PlanSession, Session, SkillSession
from planner.monolithic import NAME as WHOLE_TASK
from rearrange.command_line.composition import options as there
from rearrange.command_line.composition.options import RecordOptions, ViewOptions, options_as, options_of
from rearrange.command_line.composition.parse_overrides import compose, require
from rearrange.command_line.runs.names import folder_name
from rearrange.command_line.runs.run_directory import has_checkpoints, runs
from rearrange.home.errors import UserError
from rearrange.home.settings.environment import NAVIGATION_AGENTS
from skills import experts, names
from trainer import checkpoint

WORDS = ("expert", "pretrained", "newest", "random", "zero", "teleop")  # of agent=, beside paths and names
GROUPS = ("hab", "skill", "nav")
OF_NAVIGATION = {"pointnav": ("oracle", "map", "goal_follower", "forward"), "objectnav": ("oracle",)}
"""Scripted agents of the tasks that have a goal; these have a shipped policy, too."""
PATIENCE = 5  # times the steps of an episode that a person has for a skill
EPISODES = 2  # of a scenario whose plans are looked at beforehand
OF_ONE_TASK = ("skill.", "nav.", "hab.", "skills.", "planner")  # words that say nothing about another task

Prepare = Callable[[RecordOptions], Prepared]
"""Makes the job of a skill, which the command line knows how to."""


@dataclass
class Chosen:
    """What runs, and what came with it.

    options: the settings. followed: skill, or `whole task` -> the run whose newest checkpoint each episode takes.
    files: those that were loaded. made: what recording needs, where a person drives.
    """

    session: Session
    options: RecordOptions
    followed: dict[str, Path] = field(default_factory=dict)
    files: dict[str, Path] = field(default_factory=dict)
    made: Prepared | None = None

    def take_newest(self) -> None:
        """Load newer checkpoints of the runs that are followed; one that is gone before it is read is left out."""
        for skill, run in self.followed.items():
            try:
                file = checkpoint.newest(run)
                if file != self.files[skill]:
                    self.session.reload(skill, file)
                    self.files[skill] = file
            except checkpoint.CheckpointError:
                continue


def tasks() -> list[str]:
    """Every scenario, skill and navigation task, by the word that chooses it."""
    return [f"{group}={name}" for group in GROUPS for name in there.choices(group)]


def words_of(task: str) -> list[str]:
    """The words of `agent=` that a task takes, the usual one first."""
    group, _, name = task.partition("=")
    if group == "nav":
        shipped = ["pretrained"] if name in OF_NAVIGATION else []
        return [*OF_NAVIGATION.get(name, ()), *shipped, "random", "newest"]
    words = [word for word in WORDS if group == "skill" or word != "zero"]
    if group == "skill" and not experts.has_expert(name):
        words.remove("expert")
    return words


def asked_agent(options: ViewOptions, task: str) -> str:
    """Who was asked for; where nobody was, the usual agent of a navigation task."""
    typed = any(word.startswith("agent=") for word in options.words) or not task.startswith("nav=")
    return options.agent if typed else words_of(task)[0]


def agents(task: str, output: Path, *chosen: str) -> list[str]:
    """Who can act in a task: the words of `agent=`, the runs that have a checkpoint, and what was chosen."""
    found = [str(run) for run in runs(output, "train", task.partition("=")[2]) if has_checkpoints(run)]
    return list(dict.fromkeys([*words_of(task), *reversed(found), *chosen]))


def choose(typed: Sequence[str], task: str, agent: str, seed: int, prepare: Prepare) -> Chosen:
    """What is to run. UserError for what cannot.

    Args:
        typed: the words of the command line.
        task: `skill=`, `nav=` or `hab=` and a name.
        agent: a word or path, as of `agent=`.
        seed: of the episodes.
        prepare: makes the job of a skill.
    """
    chosen = tuple(f"{group}=" for group in GROUPS)
    before = next((word for word in typed if word.startswith(chosen)), None)
    kept = [word for word in typed if not word.startswith((*chosen, "agent=", "seed="))
            and (task == before or not word.startswith(OF_ONE_TASK))]
    settings = compose("view", [task, f"seed={seed}", *kept])
    require(settings)
    if settings.choices["sim"] != "mujoco":
        raise UserError(f"sim={settings.choices['sim']} is not shown in a page: leave it out, and homes are those of "
                        "the embedded simulator.")
    options = options_as(RecordOptions, options_of(settings), agent=agent, episodes=1)
    _check_agent(agent, task, Path(options.output))
    if agent == "teleop":
        return _driven(options, prepare)
    if options.nav:
        return _navigation(options)
    return _scenario(options) if options.hab else _skill(options, prepare)


def _skill(options: RecordOptions, prepare: Prepare) -> Chosen:
    name, output = options.choices["skill"], Path(options.output)
    run = run_of(options.agent, name, output)
    file = checkpoint.newest(run) if run else None
    asked = replace(options, agent=str(file)) if file else options
    if ":" in options.agent:
        made = Apart(f"agent={options.agent}").call("load", LOAD_S, prepare, asked)
    else:
        made = prepare(asked)
    if run:
        return Chosen(SkillSession(made), options, {name: run}, {name: file})
    return Chosen(SkillSession(made), options, {}, {name: Path(made.job.checkpoint)} if made.job.checkpoint else {})


def _navigation(options: RecordOptions) -> Chosen:
    name = options.choices["nav"]
    run = run_of(options.agent, name, Path(options.output))
    file = checkpoint.newest(run) if run else None
    asked = replace(options, agent=str(file)) if file else options
    if ":" in options.agent:
        job = Apart(f"agent={options.agent}").call("load", LOAD_S, watched_navigation, asked)
    else:
        job = watched_navigation(asked)
    loaded = {name: Path(job.checkpoint)} if job.checkpoint else {}
    return Chosen(NavigationSession(job), options, {name: run} if run else {}, loaded)


def _scenario(options: RecordOptions) -> Chosen:
    agent, output, whole = options.agent, Path(options.output), None
    asked = dict(options.skills)
    followed: dict[str, Path] = {}
    if agent == "zero" or ":" in agent:
        raise UserError(f"agent={agent} is for skill=; a scenario is watched with agent=expert, pretrained, newest, "
                        "random, teleop, or a run of one policy for all of it.")
    for skill in names():
        if run := run_of(asked[skill] or ("newest" if agent == "newest" else ""), skill, output):
            followed[skill] = run
    if agent not in ("expert", "pretrained", "newest", "random"):
        if run := run_of(agent, options.hab.name, output):
            followed[WHOLE_TASK] = run
        agent, whole = "monolithic", agent
    files = {skill: checkpoint.newest(run) for skill, run in followed.items()}
    asked |= {skill: str(file) for skill, file in files.items() if skill != WHOLE_TASK}
    whole = str(files.get(WHOLE_TASK, whole)) if whole else None
    job = of_scenario.watched_job(replace(options, skills=asked, episodes=EPISODES), agent, whole)
    loaded = {skill: Path(source.checkpoint) for skill, source in job.skills.items() if source.checkpoint}
    return Chosen(PlanSession(job), options, {skill: run for skill, run in followed.items() if skill in loaded}, loaded)


def _driven(options: RecordOptions, prepare: Prepare) -> Chosen:
    """The session of a person who drives."""
    if options.hab:
        made = scenario(replace(options, agent="random", episodes=EPISODES))
        return Chosen(DrivenScenario(made, Driver()), options, made=made)
    if "max_steps" not in options.typed("skill"):
        most = PATIENCE * options.skill.max_steps
        options = replace(options, skill=replace(options.skill, max_steps=most),
                          written=options.written | {"skill": options.written["skill"] | {"max_steps": most}})
    made = prepare(replace(options, agent="zero"))
    return Chosen(SkillSession(made, Driver()), options, made=made)


def _check_agent(agent: str, task: str, output: Path) -> None:
    """Raise UserError for a word that is neither one of `agent=` nor an existing run or file."""
    (group, _, name), words = task.partition("="), words_of(task)
    there = words if group == "nav" else WORDS  # what else a skill or scenario does not take is told with a reason
    if agent in there or ":" in agent or Path(agent).exists() or run_of(agent, name, output):
        return
    if agent in (*WORDS, *NAVIGATION_AGENTS):
        raise UserError(f"agent={agent} is not for {task}, which takes {', '.join(words)}, or a checkpoint or run.")
    near = difflib.get_close_matches(agent, [*there, *(run.name for run in runs(output, "train", name))], 1)
    hint = f" Did you mean agent={near[0]}?" if near else ""
    raise UserError(f"agent={agent}: there is no such file or run, and no run of that name with a checkpoint in "
                    f"{output / 'train' / folder_name(name)}.{hint} Or take {', '.join(words)}.")


def run_of(word: str, task: str, output: Path) -> Path | None:
    """The training run that a word means; None for other words, for a file, and where there is no run yet.

    The word is a directory, the name of one below `output`, or "newest": the newest run that has a checkpoint.
    """
    if word == "newest":
        return next(filter(has_checkpoints, reversed(runs(output, "train", task))), None)
    for path in (Path(word), output / "train" / folder_name(task) / word):
        if word and path.is_dir() and (has_checkpoints(path) or path.name == "checkpoints"):
            return path
    return None
