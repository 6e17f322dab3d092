"""`rearrange eval` and `rearrange record` of one skill or navigation task: who acts in which environment, and what
becomes of it.
"""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval.own_agents import OwnAgent
from eval.point_goal import JUDGED
from eval.remote.connecting import remote_at
from eval.task_from_settings import Task, group_of, load_listed, navigation_task, skill_task, trained_settings
from rearrange.home.errors import UserError
from rearrange.home.settings.environment import NAVIGATION_AGENTS
from rearrange.home.settings.remote import RemoteSettings
from trainer.faults import signals

if TYPE_CHECKING:
    import gymnasium

    from eval.evaluate import EpisodeResult
    from eval.policy_choice import Choice
    from eval.recording.record import Prepared
    from rearrange.command_line.runs.run_directory import Run
    from rearrange.home.settings.composed_config import Settings


def evaluate_skill(plain: dict[str, Any], run: Run) -> dict[str, float]:
    from eval import evaluate as evaluation
    from eval.policy_choice import table
    from eval.summary_table import print_table
    from eval.video import default_speed
    from rearrange.home.apartments.episodes import repeated_ids

    plain |= {"agent": plain["agent"] or "policy", "video": plain["video"] or 0}
    if plain["agent"] == "pretrained":
        plain |= {"agent": "policy", "checkpoint": "pretrained"}
    task = (navigation_task if plain.get("nav") else skill_task)(plain, plain["split"], 0)
    if plain["agent"] == "expert":
        from skills.experts import expert_class

        expert_class(task.name)  # there may be none
    skill, env = task.name, task.env
    choice, env = _evaluated_policy(plain, skill, env, run.settings.overrides)
    checkpoint = choice.checkpoint
    recorded = env | {"depth_size": env["depth_size"] or 128,  # videos show depth to us, if not to a blind policy
                      "render_mode": "rgb_array"}
    acts_here = None if plain["agent"] == "pointnav" else checkpoint  # which looks at other things
    probe = _fit_to_policy(skill, recorded if plain["video"] else env, acts_here, plain["network"], plain["episodes"],
                           evaluation.SEED_STRIDE * plain["seed"], run.silent)
    remote = remote_at(plain["url"], RemoteSettings(**plain["remote"])) if plain["agent"] == "remote" else None
    if ":" in plain["agent"]:
        # which says what is wrong with it
        OwnAgent(plain["agent"], "agent", 1, probe.observation_space, probe.action_space)
    if plain["agent"] in NAVIGATION_AGENTS:
        from rearrange.navigation.scripted_agents import SCRIPTED

        SCRIPTED[plain["agent"]](probe)  # which says what it cannot do
    run.create()
    count = min(plain["episodes"], probe.listed or plain["episodes"])  # of a file none twice
    job = evaluation.Job(skill, env, plain["agent"], checkpoint and str(checkpoint), count, plain["seed"],
                         plain["deterministic"], plain["video"], str(run.videos), recorded, default_speed(plain),
                         plain["network"], remote, plain["to_the_end"])
    run.say(f"eval {run.path}   {group_of(skill)} {skill}   agent {plain['agent']}")
    for line in table([choice]):
        run.say(line)
    if count < plain["episodes"]:
        run.say(f"{env['episodes']} has {count} episodes: each is run once, instead of episodes={plain['episodes']}")
    for line in repeated_ids(str(env.get("episodes")), probe.listed_episodes):
        run.say(line)
    from trainer.logs.progress import counting

    def keep(finished: list[EpisodeResult]) -> None:
        if run.silent:
            return
        figures = evaluation.cut_short(evaluation.summary(job, finished), count)
        run.result = evaluation.headline(figures)
        print_table(figures, run)
        evaluation.write(run.path, figures, finished)

    with counting(count, f"eval {skill}", log=run.log) as progress:
        results = evaluation.evaluate(job, plain["workers"], progress, keep)
    figures = evaluation.summary(job, results)
    if run.silent:  # of several tasks, the first writes and prints
        return evaluation.headline(figures)
    print_table(figures, run)  # which a full disk does not prevent
    for line in evaluation.left_out(job, results):
        run.say(line)
    evaluation.write(run.path, figures, results)
    if problem := next((result.video_problem for result in results if result.video_problem), None):
        lost = sum(result.video_problem is not None for result in results)
        run.log(f"warning: {lost} videos are missing: {problem}")
        print(f"warning: {lost} of {min(plain['video'], plain['episodes'])} videos are missing: "
              f"{problem}", file=sys.stderr)
    return evaluation.headline(figures)


def recorded_skill(plain: dict[str, Any], settings: Settings) -> Prepared:
    """Who acts in which environment, of `rearrange record skill=`. UserError for what cannot work."""
    from eval.evaluate import SEED_STRIDE
    from eval.policy_choice import table
    from eval.recording.record import prepared_skill
    from eval.recording.skill_episodes import SkillJob

    agent, asked = plain["agent"], plain["image_size"]
    learned = agent not in ("expert", "random", "zero") and ":" not in agent
    task = skill_task(plain, plain["split"], 128 if asked is None else asked)
    if agent == "expert":
        from skills.experts import expert_class

        expert_class(task.name)  # there may be none
    of_eval = plain | {"agent": "policy" if learned else agent, "checkpoint": agent if learned else None,
                       "remote": {"image_size": task.env["depth_size"]}}
    choice, env = _evaluated_policy(of_eval, task.name, task.env, settings.overrides)
    seen = env["depth_size"] if learned else 0
    if seen and asked not in (None, seen):
        raise UserError(f"image_size={asked}: the policy of {choice.checkpoint} sees {seen} pixels; leave it out.")
    env |= {"depth_size": seen or task.env["depth_size"]}
    probe = _fit_to_policy(task.name, env, choice.checkpoint, None, plain["episodes"], SEED_STRIDE * plain["seed"],
                           False)
    if ":" in agent:
        OwnAgent(agent, "agent", 1, probe.observation_space, probe.action_space)  # which says what is wrong with it
    job = SkillJob(task.name, env, "policy" if learned else agent, choice.checkpoint and str(choice.checkpoint),
                   deterministic=plain["deterministic"], seed=plain["seed"])
    return prepared_skill(job, probe, table([choice]))


def probe_env(task: Task, episodes: int = 500, first: int = 0, silent: bool = False):
    """Build an environment here and step it once, before anything is written or started; of an episode file, load so
    many `episodes` from the `first` on.

    A setting that cannot work is told at once, and what has to be compiled is compiled once, not in every process.
    """
    import threading

    hint = threading.Timer(2.0, print, ["preparing the simulator (the first time on a machine it is compiled, "
                                        "which takes some ten seconds) ..."], {"flush": True})
    hint.daemon = True
    if not silent and sys.stdout.isatty():  # for who waits; of a screen that is lost, the run tells later
        hint.start()
    try:
        probe = task.make()
        probe.reset(seed=0)
        probe.step(probe.action_space.sample() * 0)
        probe.render()
    finally:
        hint.cancel()
    signals.raise_again()
    if probe.listed:
        for _ in load_listed(probe, episodes if probe.refuses_listed else 1, first, silent):
            pass
    return probe


def _evaluated_policy(plain: dict[str, Any], skill: str, env: dict[str, Any],
                      typed: tuple[str, ...]) -> tuple[Choice, dict[str, Any]]:
    """Who acts, and the environment: with the settings that a policy was trained with, but for what was typed."""
    from eval.policy_choice import ASKED, Choice, choose
    from eval.trained_policy import of_what, settings_of, training_of
    from trainer.checkpoint import CheckpointError, load_checkpoint

    kept = {word.split("=")[0].split(".")[1] for word in typed if "." in word.split("=")[0]}
    if plain["agent"] == "pointnav":
        return _point_goal(plain, skill), env | {"depth_size": 0} | {key: value for key, value in JUDGED.items()
                                                                     if key not in kept}
    if plain["agent"] != "policy":
        look = plain["agent"] == "remote" or ":" in plain["agent"]
        # others look at nothing
        seen = plain["remote"]["image_size"] if look else 128 if plain["agent"] == "map" else env["depth_size"]
        who = plain["url"] if plain["agent"] == "remote" else plain["agent"]
        return Choice(skill, who, ASKED), env | {"depth_size": seen}
    choice = choose(plain["checkpoint"], skill, Path(plain["output"]), "checkpoint")
    try:
        meta = training_of(load_checkpoint(choice.checkpoint))
    except CheckpointError as error:
        raise UserError(str(error)) from error
    if meta.get(group_of(skill)) != skill:
        group = next((group for group in ("skill", "nav") if group in meta), None)
        other = f"write {group}={meta[group]}, or another" if group else "give another"
        raise UserError(f"{choice.checkpoint} is a checkpoint of {of_what(meta)}, not of {skill}: {other} checkpoint=.")
    trained = trained_settings(choice.checkpoint, meta, skill)
    return choice, env | {key: value for key, value in settings_of(meta | {"env": trained}).items() if key not in kept}


def _point_goal(plain: dict[str, Any], skill: str) -> Choice:
    """The policy of PointNav that drives in Navigate."""
    from eval.policy_choice import choose
    from eval.scenario.skill_sources import POINTNAV, point_goal

    word = plain["checkpoint"] or "pretrained"
    choice = dataclasses.replace(choose(word, POINTNAV, Path(plain["output"]), "checkpoint"), what=skill)
    return point_goal(choice, "checkpoint", plain["network"]).choice


def _fit_to_policy(skill: str, env: dict[str, Any], checkpoint: Path | None, network: str | None, episodes: int,
                   first: int, silent: bool) -> gymnasium.Env:
    """Refuse a checkpoint whose spaces are not those of the environment, which is returned."""
    probe = probe_env(Task(skill, env, 0), episodes, first, silent)
    if checkpoint is None:
        return probe
    from eval.trained_policy import check_fit
    from trainer.checkpoint import load_checkpoint
    from trainer.policy import observation_shapes
    from trainer.spaces import action_numbers, choices, flat_space

    check_fit(checkpoint, load_checkpoint(checkpoint), observation_shapes(flat_space(probe.observation_space)),
              action_numbers(probe.action_space), "this environment", network, choices(probe.action_space))
    return probe
