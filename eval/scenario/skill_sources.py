"""Where each skill of a plan comes from: a scripted expert, random actions, or a checkpoint with its own settings."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval.own_agents import OwnAgent
from eval.policy_choice import ASKED, WORDS, Choice, choose
from eval.remote.connecting import remote_at
from eval.task_from_settings import trained_settings
from eval.trained_policy import check_fit, check_robot, of_what, training_of
from planner.spa.controllers import CONTROLLERS
from rearrange.home.errors import UserError
from rearrange.home.robot import robot_of
from rearrange.home.settings.environment import SEEN, SHARED
from rearrange.home.settings.installed_parts import is_importable
from rearrange.home.settings.remote import Remote, RemoteSettings
from rearrange.home.settings.setting_fields import TEXTS
from skills import SKILLS, config_class, make_skill, names
from skills.experts import expert_class, has_expert

if TYPE_CHECKING:
    import gymnasium

    from planner.scenario_env import ScenarioEnv
    from rearrange.home.robot.robot import Robot

# Agent -> what runs a skill of which nothing else is said. monolithic has no skills.
AGENTS = {"tp_srl": "pretrained", "tp_srl_nonav": "pretrained", "expert": "expert", "monolithic": None, "tp_spa": "spa",
          "random": "random"}
POINTNAV = "pointnav"  # a word for skills.navigate


@dataclass(frozen=True)
class Source:
    """What runs one skill. Without a checkpoint, a skill of kind expert, random or spa has its own defaults."""

    kind: str  # expert, random, spa, policy, pointnav (a policy of that task as Navigate), remote or own
    checkpoint: str | None = None
    image_size: int = 0
    config: dict[str, Any] = field(default_factory=dict)  # fields of the skill's config, as it was trained
    shared: dict[str, Any] = field(default_factory=dict)  # those of SHARED that it was trained with
    network: str | None = None  # of the checkpoint, where the user typed it
    seen: tuple[str, ...] = ()  # beside the observations of the skill, see rearrange.home.settings.environment.SEEN
    camera_size: int = 128  # of those images
    remote: Remote | None = None  # of kind remote
    word: str | None = None  # of kind own: package.module:Name
    choice: Choice | None = field(default=None, repr=False, compare=False)  # why this one, for people

    def make(self, skill: str) -> Any:
        """The skill with the settings it was trained with."""
        return make_skill(skill, **self.config)

    def spaces(self, skill: str) -> tuple[gymnasium.spaces.Dict, gymnasium.spaces.Box]:
        """Of its observations and actions."""
        import gymnasium
        import numpy as np

        from rearrange.home.action_layout import action_size
        from rearrange.home.simulation.observations import seen_space, space_of

        made, robot = self.make(skill), robot_of(self.shared)
        width = action_size(robot, made.action_parts)
        boxes = space_of(made.observation_keys, self.image_size, robot) | seen_space(self.seen, self.camera_size)
        return gymnasium.spaces.Dict(boxes), gymnasium.spaces.Box(-1.0, 1.0, (width,), np.float32)

    def own_agent(self, skill: str, slots: int) -> OwnAgent:
        """The agent of the user's own, of kind own."""
        return OwnAgent(self.word, f"skills.{skill}", slots, *self.spaces(skill))


def sources(agent: str, chosen: Mapping[str, str | None], needed: Iterable[str], output: Path,
            scenario: str, network: str | None = None, asked: RemoteSettings = RemoteSettings(),
            seen: Sequence[str] | None = None, camera_size: int = 128,
            robot: Mapping[str, Any] = {}) -> dict[str, Source]:
    """Skill -> what runs it: all skills of the plan, and others for which an expert, say, or a path was chosen.

    Args:
        agent: one of AGENTS, or "pretrained".
        chosen: skill -> expert, random, pretrained, newest, a checkpoint's path, ws://host:port of a policy server,
            package.module:Name, or None: as the agent has it.
        needed: skills of the plan.
        output: where runs are kept.
        scenario: its name, for people.
        network: the word of the network of those checkpoints that have one of the user's own.
        asked: how policy servers are asked.
        seen, camera_size: what policies from outside see beside the observations of the skill.
        robot: sim.robot and sim.hand, where they were typed.

    Raises:
        UserError: a needed skill has nothing to run it.
    """
    found: dict[str, Source] = {}
    needed = set(needed)
    for skill in (name for name in names() if name in SKILLS or name in needed or chosen.get(name)):
        word, key = chosen.get(skill), f"skills.{skill}"
        which = word or AGENTS.get(agent, agent)
        if which == "expert" and (skill in needed or word):
            expert_class(skill)  # there may be none
        elif which == "expert" and not has_expert(skill):
            continue
        outside = {"image_size": asked.image_size, "seen": tuple(seen or ()), "camera_size": camera_size,
                   "shared": dict(robot), "choice": Choice(skill, which, ASKED)}
        if which == "spa" and (skill in needed or word):
            _check_controlled(robot_of(robot), f"agent={agent}" if word is None else f"{key}={word}")
        if which in ("expert", "random") or which == "spa" and skill in CONTROLLERS:
            found[skill] = Source(which, choice=outside["choice"])
        elif which == POINTNAV and skill == "navigate":
            chose = choose("pretrained", POINTNAV, output, key)
            found[skill] = point_goal(dataclasses.replace(chose, what=skill, run_by=POINTNAV, why=ASKED), key, network)
        elif which and TEXTS["url"][0].fullmatch(which):
            found[skill] = Source("remote", remote=remote_at(which, asked), **outside)
        elif which and TEXTS["importable"][0].fullmatch(which):
            found[skill] = Source("own", word=which, **outside)
            found[skill].own_agent(skill, 1)  # which says what is wrong with it
        elif which == "spa" and skill in needed:
            raise UserError(f"the plan of {scenario} needs skill {skill}, which agent={agent} does not have: take the "
                            f"scripted expert with {key}=expert, or another agent.")
        elif which != "spa" and (skill in needed or word not in (None, *WORDS)):
            word = word or ("pretrained" if agent == "pretrained" else None)
            found[skill] = _read(choose(word, skill, output, key, which), network, robot)
    if network and not any(source.network for source in found.values()):
        raise UserError(f"network={network}: no skill of {scenario} is run by a checkpoint of a network of your own; "
                        "leave it out.")
    return found


def _check_controlled(robot: Robot, said: str) -> None:
    """UserError for a robot that the controllers of sense, plan, act do not move."""
    if robot.hand.fingers or not robot.arm.reaches_ahead:
        raise UserError(f"{said} takes things by suction with an arm that reaches ahead, and the robot is "
                        f"{robot.said}: take agent=expert.")


def whole_task_source(checkpoint: str | None, env: ScenarioEnv, output: Path, network: str | None = None) -> Source:
    """The policy of agent=monolithic: a checkpoint, or that of the newest finished training run of the scenario.

    UserError where there is none, or it does not fit.
    """
    from rearrange.home.simulation.observations import seen_space

    name = env.config.name
    choice = choose(checkpoint, name, output, "checkpoint")
    content, meta = _loaded(choice, "checkpoint")
    if meta.get("scenario") != name:
        raise UserError(f"{choice.checkpoint} is a checkpoint of {of_what(meta)}, not of scenario {name}: give "
                        "another checkpoint=.")
    size, seen = meta.get("image_size", 0), _seen(meta.get("env", {}))
    shapes = {key: box.shape for key, box in env.observation_space.items() if key != "depth" and key not in SEEN}
    shapes |= _shapes(seen_space(*seen.values())) | ({"depth": (size, size, 1)} if size else {})
    check_fit(choice.checkpoint, content, shapes, env.action_space.shape[0], f"scenario {name}", network)
    shared = {k: v for k, v in meta.get("env", {}).items() if k in SHARED}  # their rules are those of any skill
    shared = trained_settings(choice.checkpoint, {"env": shared}, "navigate")
    check_robot(choice.checkpoint, shared, dataclasses.asdict(env.home))
    return Source("policy", str(choice.checkpoint), size, shared=shared, **seen, network=network, choice=choice)


def _seen(env: Mapping[str, Any]) -> dict[str, Any]:
    """What a policy saw beside the observations of its task, as a Source has it. env: of its training."""
    return {"seen": tuple(env.get("observations") or ()), "camera_size": env.get("camera_size", 128)}


def _shapes(spaces: Mapping[str, gymnasium.Space]) -> dict[str, tuple[int, ...]]:
    """The shapes of observations that a network can read, which a text is not."""
    return {name: space.shape for name, space in spaces.items() if name != "instruction"}


def _loaded(choice: Choice, key: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A checkpoint and what it says about its training. UserError where it cannot be read."""
    from trainer.checkpoint import CheckpointError, load_checkpoint

    try:
        content = load_checkpoint(choice.checkpoint)
    except CheckpointError as error:
        raise UserError(f"{key}: {error}") from error
    return content, training_of(content)


def _read(choice: Choice, network: str | None, robot: Mapping[str, Any]) -> Source:
    """The source of a skill's checkpoint. UserError if it is not one of this skill, or of the robot that was typed."""
    skill, path = choice.what, choice.checkpoint
    content, meta = _loaded(choice, f"skills.{skill}")
    if skill == "navigate" and meta.get("nav") == POINTNAV:
        return point_goal(choice, f"skills.{skill}", network)
    if meta.get("skill") != skill:
        raise UserError(f"{path} is a checkpoint of {of_what(meta)}, not of {skill}: write another path "
                        f"as skills.{skill}=.")
    env = trained_settings(path, meta, skill)
    if robot or is_importable(str(env.get("robot"))):  # which is imported only where the user typed it
        # a robot that was typed without a hand has the policy's
        check_robot(path, env, {"hand": env.get("hand")} | dict(robot) if "robot" in robot else robot)
    fields = {each.name for each in dataclasses.fields(config_class(skill))}
    source = Source("policy", str(path), meta.get("image_size", 0), {k: v for k, v in env.items() if k in fields},
                    {k: v for k, v in env.items() if k in SHARED}, network if "network" in content else None,
                    **_seen(env), choice=choice)
    observed, actions = source.spaces(skill)
    check_fit(path, content, _shapes(observed.spaces), actions.shape[0], f"skill {skill}", source.network)
    return source


def point_goal(choice: Choice, key: str, network: str | None) -> Source:
    """A policy of PointNav as Navigate, which is judged as the policy of Navigate that comes with the package."""
    from eval.point_goal import JUDGED, pointnav_config
    from rearrange.navigation.agent import action_space
    from rearrange.navigation.gps_compass import EGOMOTION_SPACE
    from rearrange.navigation.pointnav import GOAL_SPACE
    from trainer.spaces import action_numbers, choices

    content, meta = _loaded(choice, key)
    name, size = str(choice.checkpoint), meta.get("image_size", 0)
    space = action_space(pointnav_config(trained_settings(choice.checkpoint, meta, POINTNAV), name))
    shapes = {"pointgoal": GOAL_SPACE.shape,
              "egomotion": EGOMOTION_SPACE.shape} | ({"depth": (size, size, 1)} if size else {})
    check_fit(choice.checkpoint, content, shapes, action_numbers(space), "skill navigate",
              network if "network" in content else None, choices(space))
    return Source(POINTNAV, name, size, dict(JUDGED), network=network if "network" in content else None,
                  choice=choice)


def shared_settings(found: Mapping[str, Source], typed: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of the simulator that all skills share: what was typed, else what the policies were trained with.

    Policies that were trained with different ones are refused, since one robot has one base.
    """
    from rearrange.env.home_env import HomeSettings

    defaults = {name: getattr(HomeSettings, name) for name in SHARED}
    settings = {}
    for name, default in defaults.items():
        if name in typed:
            settings[name] = typed[name]
            continue
        trained = {skill: source.shared.get(name, default)
                   for skill, source in found.items() if source.kind == "policy"}
        skill, value = next(iter(trained.items()), ("", default))
        other = next((each for each, setting in trained.items() if setting != value), None)
        if other:
            raise UserError(f"{skill} was trained with sim.{name}={value} and {other} with {trained[other]}: one robot "
                            f"cannot have both, so choose one by writing sim.{name}=, or other checkpoints.")
        settings[name] = value
    return settings
