"""What `rearrange reproduce` has to do: which policies there are, which trainings and evaluations are missing.

Nothing is remembered but the run directories themselves: a run that is finished is done, one that is not goes on.
"""

from __future__ import annotations

import difflib
import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from eval.scenario.skill_sources import AGENTS
from rearrange.command_line.composition import options as there
from rearrange.command_line.composition import parse_overrides as front
from rearrange.command_line.composition.options import ReproduceOptions, options_of
from rearrange.command_line.composition.plan_run import changes
from rearrange.command_line.runs import launching
from rearrange.command_line.runs.names import checked_name
from rearrange.command_line.runs.run_directory import folder_of, read_status, refuse_if_held, runs, saved_config
from rearrange.home.errors import UserError
from rearrange.home.files import read_json
from skills import pretrained

TRAINED = ("tp_srl", "tp_srl_nonav")  # agents whose skills are trained policies
PAPER = "paper"  # the protocol of every agent; tp_srl has others, too


@dataclass(frozen=True)
class Job(launching.Job):
    """One training or evaluation."""

    what: str  # in a word or two
    state: str  # finished, unfinished or new
    needs: tuple[Path, ...] = ()  # runs of training that must be finished before


@dataclass(frozen=True)
class Policy:
    """What runs a skill, or a whole scenario: the package's, a run that was there, or one that is to be trained."""

    source: str  # "pretrained", or the directory of a run
    why: str  # for people
    training: Job | None = None


@dataclass(frozen=True)
class Plan:
    """Everything, in order; `policies` by skill, and by scenario for the whole task."""

    policies: dict[str, Policy]
    evaluations: tuple[Job, ...]

    @property
    def jobs(self) -> tuple[Job, ...]:
        """Trainings that are to be done or were, then evaluations."""
        return (*(policy.training for policy in self.policies.values() if policy.training), *self.evaluations)


def make_plan(options: ReproduceOptions) -> Plan:
    """What the settings of `rearrange reproduce` ask for. Raises UserError for what cannot be, and writes nothing."""
    agents = _checked(options.agents, AGENTS, "agents")
    scenarios = _checked(options.scenarios, there.choices("hab"), "scenarios")
    protocols = _checked(options.protocols, there.choices("planner"), "protocols")
    checked_name(options.name)
    wanted = [(scenario, agent, protocol) for scenario in scenarios for agent in agents for protocol in protocols
              if protocol == PAPER or agent == "tp_srl"]
    if not wanted:
        raise UserError(f"protocols=[{','.join(protocols)}] are of tp_srl alone: add it to agents=, or {PAPER} "
                        "to protocols=.")
    policies: dict[str, Policy] = {}
    for scenario, agent, protocol in wanted:
        for skill in _trained(scenario, agent, protocol, options):
            if skill not in policies:
                policies[skill] = _policy("skill", skill, options.steps, options)
    if any(agent == "monolithic" for _, agent, _ in wanted):
        for scenario in scenarios:
            if policy := _policy("hab", scenario, options.monolithic_steps, options):
                policies[scenario] = policy
    evaluations = [_evaluation(scenario, agent, protocol, policies, options)
                   for scenario, agent, protocol in wanted if agent != "monolithic" or scenario in policies]
    return Plan(policies, tuple(evaluations))


def _checked(chosen: Sequence[str], known: Iterable[str], key: str) -> list[str]:
    known = list(known)
    for name in chosen:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1, cutoff=0.5)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise UserError(f"{key}: there is no {name!r}.{hint} Choices: {', '.join(known)}.")
    if not chosen:
        raise UserError(f"{key}=[] leaves nothing to do. Choices: {', '.join(known)}.")
    return list(dict.fromkeys(chosen))


def by_protocol(scenario: str, protocol: str) -> list[str]:
    """The words that evaluate a scenario by the rules of a protocol, by the paper's with the paper's goal."""
    goal = [f"hab.problem={scenario}_paper"] if (scenario, protocol) == ("set_table", PAPER) else []
    return [f"hab={scenario}", *goal, f"planner={protocol}"]


def _trained(scenario: str, agent: str, protocol: str, options: ReproduceOptions) -> list[str]:
    """Skills of the plan that trained policies run."""
    found = _needed(scenario, protocol, options.split, options.seed) if agent in TRAINED else []
    return [skill for skill in found if skill != "navigate" or agent == "tp_srl"]


@functools.cache
def _needed(scenario: str, protocol: str, split: str, seed: int) -> list[str]:
    """The skills that the plan of the scenario's first episode needs."""
    from eval.scenario.command import needed_skills

    made = front.compose("eval", [*by_protocol(scenario, protocol), f"split={split}", f"seed={seed}"])
    options = options_of(made)
    return needed_skills(options, options.planner)


def _policy(group: str, what: str, steps: int | None, options: ReproduceOptions) -> Policy | None:
    """Where a policy comes from: the run of this name, another finished run, the package, or a training.

    None where there is none and none is to be trained.
    """
    typed = (f"{group}={what}", f"experiment={options.experiment}", f"steps={steps or options.steps}",
             f"seed={options.seed}", f"name={options.name}", f"output={options.output}")
    own = make_job(f"train {what}", "train", typed, options)
    if own.state == "finished":
        return Policy(str(own.path), f"{own.path}, finished", own)
    if own.state == "new":
        if found := _finished_run(group, what, typed):
            return Policy(str(found), f"{found}, a finished run")
        if group == "skill" and options.pretrained and what in pretrained.names():
            return Policy("pretrained", "comes with the package")
        if steps is None:
            return None
    return Policy(str(own.path), f"{'goes on' if own.state == 'unfinished' else 'to be trained'}: {own.path}", own)


def _finished_run(group: str, what: str, typed: tuple[str, ...]) -> Path | None:
    """The newest finished training run under any name, of as many steps and with the same parts of the action."""
    wanted = options_of(front.compose("train", list(typed)))
    for path in reversed(runs(Path(wanted.output), "train", what)):
        made = saved_config(path)
        fits = group != "skill" or made["skill"]["action_parts"] == [*wanted.skill.action_parts]
        whole = read_status(path)["status"] == "finished" and any((path / "checkpoints").glob("*.pt"))
        if whole and fits and made["steps"] >= wanted.steps:
            return path
    return None


def _evaluation(scenario: str, agent: str, protocol: str, policies: dict[str, Policy],
                options: ReproduceOptions) -> Job:
    """One agent in one scenario; every policy that it uses is named, so that a later training changes nothing."""
    other = () if protocol == PAPER else (protocol,)
    words = [*by_protocol(scenario, protocol), f"agent={agent}"]
    words += [f"{key}={getattr(options, key)}" for key in ("episodes", "video", "split", "seed", "output")]
    words.append(f"name={'_'.join((options.name, agent, *other))}")
    used: list[Policy] = []
    if agent in TRAINED:
        run_by = {skill: policies[skill] for skill in _trained(scenario, agent, protocol, options)}
        words += [f"skills.{skill}={policy.source}" for skill, policy in run_by.items()]
        used = list(run_by.values())
    elif agent == "monolithic":
        used = [policies[scenario]]
        words.append(f"checkpoint={policies[scenario].source}")
    needs = tuple(policy.training.path for policy in used if policy.training)
    return make_job(" ".join(("eval", scenario, agent, *other)), "eval", tuple(words), options, needs)


def make_job(what: str, command: str, typed: tuple[str, ...], options: ReproduceOptions,
             needs: tuple[Path, ...] = ()) -> Job:
    """A job and how far it is. Raises UserError where a run of this name has other settings."""
    made = front.compose(command, list(typed))
    path = folder_of(made.config, command) / made.value("name")
    if not path.exists():
        return Job((command, *typed), path, what, "new", needs)
    if not (path / "config.yaml").exists():
        raise UserError(f"{path} exists already and is not a run. Choose another name=.")
    if changed := changes(path, made):
        shown = "; ".join(f"{key}: {old} -> {new}" for key, (old, new) in changed.items())
        raise UserError(f"{path} exists already with other settings ({shown}). Give this a name= of its own.")
    if read_status(path)["status"] == "finished" and (command == "train" or _has_figures(path)):
        return Job((command, *typed), path, what, "finished", needs)
    refuse_if_held(path)
    again = ("resume=true",) if command == "train" else ()
    return Job((command, *typed, *again), path, what, "unfinished", needs)


def _has_figures(path: Path) -> bool:
    """Whether the figures of an evaluation are still there, and whole."""
    try:
        return bool(read_json(path / "metrics.json")["episodes"])
    except (OSError, ValueError, KeyError, TypeError):
        return False
