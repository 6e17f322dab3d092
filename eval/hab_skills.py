"""Where each skill of a plan comes from: a scripted expert, random actions, or a checkpoint with its own settings."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.spa import CONTROLLERS
from rearrange.errors import UserError
from skills import SKILL_CONFIGS, SKILLS, pretrained

if TYPE_CHECKING:
    from planner.scenario_env import ScenarioEnv

# Agent -> what runs a skill of which nothing else is said: None = its newest training run. monolithic has no skills.
AGENTS = {"tp_srl": None, "tp_srl_nonav": None, "expert": "expert", "monolithic": None, "tp_spa": "spa", "random": "random"}
SHARED = ("base_speed_m_s", "base_turn_rad_s", "suction_max_angle_rad", "image_lag")  # settings of the one simulator


@dataclass(frozen=True)
class Source:
    """What runs one skill. Without a checkpoint: `kind` is expert or random, and the skill has its own defaults."""

    kind: str  # expert, random or policy
    checkpoint: str | None = None
    image_size: int = 0
    config: dict[str, Any] = field(default_factory=dict)  # fields of the skill's config, as it was trained
    shared: dict[str, Any] = field(default_factory=dict)  # those of SHARED that it was trained with

    def make(self, skill: str) -> Any:
        """The skill with the settings it was trained with."""
        values = {key: tuple(value) if isinstance(value, list) else value for key, value in self.config.items()}
        return SKILLS[skill](SKILL_CONFIGS[skill](**values))


def sources(agent: str, chosen: Mapping[str, str | None], needed: Iterable[str], output: Path,
            scenario: str) -> dict[str, Source]:
    """Skill -> what runs it, for all skills that were chosen or are needed.

    agent: one of AGENTS. chosen: skill -> expert, random, pretrained, the path of a checkpoint, or None: as the agent
    has it. needed: skills of the plan. Raises UserError where a needed skill has nothing to run it.
    """
    found: dict[str, Source] = {}
    needed = set(needed)
    for skill in SKILLS:
        which = chosen.get(skill) or AGENTS[agent]
        if which in ("expert", "random"):
            found[skill] = Source(which)
        elif which == "spa":
            if skill in CONTROLLERS:
                found[skill] = Source(which)
            elif skill in needed:
                raise UserError(f"the plan of {scenario} needs skill {skill}, which agent={agent} does not have: take the scripted "
                                f"expert with skills.{skill}=expert, or another agent.")
        elif which is not None or skill in needed:
            found[skill] = _policy(skill, which, output, scenario)
    return found


def _policy(skill: str, which: str | None, output: Path, scenario: str) -> Source:
    from trainer.checkpoint import CheckpointError, newest

    if which == "pretrained":
        return _read(skill, pretrained.path(skill))
    if which is None:
        if (path := _newest_run(skill, output)) is None:
            ready = f", take the trained one with skills.{skill}=pretrained" if skill in pretrained.names() else ""
            raise UserError(f"the plan of {scenario} needs skill {skill}, and there is no checkpoint of it in "
                            f"{output / 'train' / skill}: train one with 'rearrange train skill={skill}'{ready}, or take the "
                            f"scripted expert with skills.{skill}=expert.")
        return _read(skill, path)
    try:
        return _read(skill, newest(Path(which)))
    except CheckpointError as error:
        raise UserError(f"skills.{skill}: {error} Train one with 'rearrange train skill={skill}', or take the scripted "
                        f"expert with skills.{skill}=expert.") from error


def whole_task_source(checkpoint: str | None, env: ScenarioEnv, output: Path) -> Source:
    """The policy of agent=monolithic: a checkpoint, or the newest training run of the scenario of `env`. Raises UserError
    where there is none, or it does not fit.
    """
    from trainer.checkpoint import CheckpointError, load_checkpoint, newest

    name = env.config.name
    path = _newest_run(name, output) if checkpoint is None else Path(checkpoint)
    if path is None:
        raise UserError(f"agent=monolithic needs one policy for all of {name}, and there is no checkpoint of it in "
                        f"{output / 'train' / name}: train one with 'rearrange train hab={name}', or give checkpoint=.")
    try:
        path = newest(path)
        content = load_checkpoint(path)
    except CheckpointError as error:
        raise UserError(f"checkpoint: {error} Train one with 'rearrange train hab={name}'.") from error
    meta = content.get("meta", {})
    if meta.get("scenario") != name:
        of = f"scenario {meta['scenario']}" if "scenario" in meta else f"skill {meta.get('skill', '(unknown)')}"
        raise UserError(f"{path} is a checkpoint of {of}, not of scenario {name}: give another checkpoint=.")
    size = meta.get("image_size", 0)
    shapes = {key: box.shape for key, box in env.observation_space.items() if key != "depth"}
    _fits(f"scenario {name}", str(path), content, shapes | ({"depth": (size, size, 1)} if size else {}), env.action_space.shape[0])
    return Source("policy", str(path), size, shared={k: v for k, v in meta.get("env", {}).items() if k in SHARED})


def _newest_run(skill: str, output: Path) -> Path | None:
    """The newest checkpoint of the newest training run that has one."""
    from rearrange.run_directory import runs
    from trainer.checkpoint import CheckpointError, newest

    for run in reversed(runs(output, "train", skill)):
        try:
            return newest(run)
        except CheckpointError:
            continue
    return None


def _read(skill: str, path: Path) -> Source:
    """What a checkpoint says about how it was trained; refused if it is not one of this skill."""
    from rearrange.env import ACTION_SIZES, OBSERVATIONS, OF_IMAGES
    from trainer.checkpoint import CheckpointError, load_checkpoint

    try:
        content = load_checkpoint(path)
    except CheckpointError as error:
        raise UserError(f"skills.{skill}: {error}") from error
    meta = content.get("meta", {})
    if meta.get("skill") != skill:
        of = f"skill {meta['skill']}" if "skill" in meta else "something else than a skill"
        raise UserError(f"{path} is a checkpoint of {of}, not of {skill}: write another path as skills.{skill}=.")
    env = meta.get("env", {})
    fields = {each.name for each in dataclasses.fields(SKILL_CONFIGS[skill])}
    source = Source("policy", str(path), meta.get("image_size", 0), {k: v for k, v in env.items() if k in fields},
                    {k: v for k, v in env.items() if k in SHARED})
    made, size = source.make(skill), source.image_size
    there = [key for key in made.observation_keys if size or key not in OF_IMAGES]
    shapes = {key: OBSERVATIONS[key][0].shape for key in there if key != "depth"}
    if size and "depth" in made.observation_keys:
        shapes["depth"] = (size, size, 1)
    _fits(f"skill {skill}", str(path), content, shapes, sum(ACTION_SIZES[part] for part in made.action_parts))
    return source


def _fits(what: str, checkpoint: str, content: dict[str, Any], shapes: Mapping[str, tuple[int, ...]], actions: int) -> None:
    """Refuse a checkpoint that needs other observations than `shapes`, or gives another number of actions."""
    from trainer.checkpoint import CheckpointError, load_policy, space_from_plain
    from trainer.policy import observation_shapes

    try:
        policy = load_policy(content)
        seen = observation_shapes(space_from_plain(content["observation_space"]))
    except (CheckpointError, KeyError, TypeError) as error:
        raise UserError(f"{checkpoint} cannot be used: {error}") from error
    wrong = [key for key in (*policy.vector_keys, *policy.image_keys) if shapes.get(key) != tuple(seen[key])]
    if wrong:
        raise UserError(f"{checkpoint} is a checkpoint of another network: it needs observation '{wrong[0]}' with shape "
                        f"{tuple(seen[wrong[0]])}, which {what} gives "
                        f"{f'with shape {shapes[wrong[0]]}' if wrong[0] in shapes else 'not at all'}.")
    if policy.action_size != actions:
        raise UserError(f"{checkpoint} is a checkpoint of another network: it gives {policy.action_size} actions, {what} takes "
                        f"{actions}.")


def shared_settings(found: Mapping[str, Source], typed: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of the simulator that all skills share: what was typed, else what the policies were trained with.

    Policies that were trained with different ones are refused, since one robot has one base.
    """
    from planner.scenario_env import ScenarioEnv

    defaults = {name: inspect.signature(ScenarioEnv).parameters[name].default for name in SHARED}
    settings = {}
    for name, default in defaults.items():
        if name in typed:
            settings[name] = typed[name]
            continue
        trained = {skill: source.shared.get(name, default) for skill, source in found.items() if source.kind == "policy"}
        skill, value = next(iter(trained.items()), ("", default))
        other = next((each for each, setting in trained.items() if setting != value), None)
        if other:
            raise UserError(f"{skill} was trained with sim.{name}={value} and {other} with {trained[other]}: one robot cannot "
                            f"have both, so choose one by writing sim.{name}=, or other checkpoints.")
        settings[name] = value
    return settings
