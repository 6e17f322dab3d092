"""A trained policy and the environment that it was trained in: what its checkpoint says, and both of them for Python.

    env, policy = rearrange.load_pretrained("navigate")
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rearrange.home.errors import UserError
from rearrange.home.robot import DEFAULT, robot_named
from rearrange.home.settings import presets
from rearrange.home.settings.environment import NAVIGATION, WHERE, renewed
from rearrange.home.settings.installed_parts import is_importable
from rearrange.home.settings.own_networks import of_checkpoint

__all__ = ["load_pretrained"]

if TYPE_CHECKING:
    import gymnasium

    from trainer.networks import MakePolicy
    from trainer.player import Player


def training_of(content: dict[str, Any]) -> dict[str, Any]:
    """What a checkpoint says about the training of its policy: `skill`, `nav` or `scenario`; `env`, the settings of the
    environment; `image_size`. `environment` instead, an id of Gymnasium's, where it is something else than ours.

    `rearrange train` writes this itself; `trainer.train` keeps what `gymnasium.make` made the environment from.
    """
    meta = content.get("meta", {})
    if isinstance(meta.get("env"), Mapping):
        meta = meta | {"env": renewed(meta["env"])}
    made = meta.get("gymnasium")
    if made is None or any(group in meta for group in ("skill", "nav", "scenario")):
        return meta
    from rearrange.env.home_env import HomeSettings
    from rearrange.env.registration import environment_id
    from skills import SKILLS

    for what, names in (("skill", (*SKILLS, "skill")), ("nav", NAVIGATION),
                        ("scenario", (*presets.names("hab"), "scenario"))):
        for name in names:
            if environment_id(name) == made["id"]:
                env = renewed({key: value for key, value in made["kwargs"].items()
                               if key not in ("name_of_id", "render_mode")})
                name = env.pop(name, name)  # of the ids for all others
                return {what: name, "env": env, "image_size": env.get("depth_size", HomeSettings.depth_size)}
    return {"environment": made["id"]}


def of_what(meta: dict[str, Any]) -> str:
    """What a checkpoint is of, in words, by what `training_of` says."""
    return next((f"{what} {meta[what]}" for what in ("skill", "nav", "scenario", "environment") if what in meta),
                "something unknown")


def settings_of(meta: dict[str, Any]) -> dict[str, Any]:
    """Settings of `skills.make_env` that suit a policy. meta: what `training_of` says of it.

    A robot of the user's own is not among them: it is imported only where the user typed it.
    """
    env = meta.get("env", {})
    left_out = {*WHERE, *(("robot", "hand") if is_importable(str(env.get("robot"))) else ()),
                *(("agent",) if is_importable(str(env.get("agent"))) else ())}
    how = {key: value for key, value in env.items() if key not in left_out}
    return how | {"depth_size": meta.get("image_size", 0)}


def check_robot(file: Path, trained: Mapping[str, Any], env: Mapping[str, Any]) -> None:
    """UserError for a policy or recording of another robot or hand than an environment has.

    trained, env: settings of both environments.
    """
    if is_importable(str(agent := trained.get("agent"))) and env.get("agent") != agent:
        raise UserError(f"{file} was trained with nav.agent={agent}, which is imported only where you type it: add "
                        f"nav.agent={agent}.")
    of, here = ((settings.get("robot") or DEFAULT, settings.get("hand")) for settings in (trained, env))
    if of == here or of[0] == here[0] and robot_named(*of) is robot_named(*here):
        return
    (robot, hand), (other, others) = of, here
    words = f"write sim.robot={robot}" + (f" sim.hand={hand}" if hand else "")
    if robot == other and not hand:
        words = f"leave sim.hand={others} out"
    raise UserError(f"{file} is of the robot {robot}{f' with {hand}' if hand else ''}, not of "
                    f"{other}{f' with {others}' if others else ''}: {words}, or take another.")


def check_fit(file: Path, content: dict[str, Any], shapes: Mapping[str, tuple[int, ...]], actions: int, where: str,
              network: str | None = None, choices: Sequence[int] = ()) -> None:
    """Refuse a checkpoint whose policy cannot act in a place, with UserError.

    Args:
        file: of the checkpoint.
        content: what it holds.
        shapes: of the observations there, by name.
        actions: how many numbers an action has there.
        where: the place, for people.
        network: the word of the policy's network, where the user typed it.
        choices: of each part of a discrete action.
    """
    from trainer.checkpoint import CheckpointError, load_policy
    from trainer.checkpoints.compatibility import misfit

    try:
        policy = load_policy(content, of_checkpoint(content, network))
    except CheckpointError as error:
        raise UserError(f"{file} cannot be "
                        f"used: {str(error).replace('make_policy', 'network=').rstrip('.')}.") from error
    if problem := misfit(policy, shapes, actions, choices, where):
        raise UserError(f"{file} is a checkpoint of another network: {problem}.")


def load_pretrained(policy: str | os.PathLike[str], *, deterministic: bool = False, seed: int = 0,
                    make_policy: MakePolicy | None = None, skill: str | None = None,
                    **settings: Any) -> tuple[gymnasium.Env, Player]:
    """A trained policy, and the environment of its skill or navigation task with the settings of its training.

    Call `policy.reset()` wherever the environment is reset.

    Args:
        policy: a skill or navigation task, whose policy comes with the package, or a checkpoint or run of your own.
        deterministic: the mean action instead of a drawn one.
        seed: of what is drawn.
        make_policy: that of the training, where its network was one of your own.
        skill: `package.module:Name`, where it was trained in a skill of your own that is not installed by a name.
        settings: of the environment, such as split="test" or render_mode="rgb_array". Homes are those of split="val"
            unless told otherwise.

    Raises:
        UserError: a ValueError, for what is not there or does not fit.
    """
    import gymnasium

    from eval.task_from_settings import trained_settings
    from rearrange.env.registration import environment_id, register_envs
    from skills import SKILLS, names, pretrained
    from trainer.checkpoint import CheckpointError, best, load_checkpoint
    from trainer.player import Player

    try:
        path = pretrained.path(str(policy)) if policy in (*SKILLS, *NAVIGATION) else best(Path(policy))
        content = load_checkpoint(path)
        meta = training_of(content)
    except CheckpointError as error:
        near = difflib.get_close_matches(str(policy), (*SKILLS, *NAVIGATION), 1)
        raise UserError(
            f"{error} Skills and navigation "
            f"tasks: {', '.join((*SKILLS, *NAVIGATION))}.{f' Did you mean {near[0]!r}?' if near else ''}") from error
    task = meta.get("skill") or meta.get("nav")
    if skill is not None and skill != task or is_importable(str(task)) and skill is None:
        raise UserError(f"{path} is a checkpoint of {of_what(meta)}" + (
            f", not of skill {skill}." if skill is not None else
            f", which is imported only where you type it: add skill={task!r}."))
    if task is None or task not in (*names(), *NAVIGATION, skill):
        raise UserError(f"{path} is a checkpoint of {of_what(meta)}, not of a skill or navigation task: "
                        f"{', '.join((*names(), *NAVIGATION))}.")
    register_envs()
    trained_env = trained_settings(path, meta, task)
    trained = settings_of(meta | {"env": trained_env})
    check_robot(path, trained_env, trained | settings)
    which = {} if task in (*SKILLS, *NAVIGATION) else {"skill": task}
    made = environment_id("skill" if which else task)
    env = gymnasium.make(made, **{"split": "val"} | trained | settings | which)
    try:
        return env, Player(path, env, deterministic, seed, make_policy or of_checkpoint(content))
    except CheckpointError as error:
        raise UserError(str(error).replace("add network=", "give it as make_policy=")) from error
