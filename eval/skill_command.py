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
from rearrange.command_line.composition.options import EvalOptions, RecordOptions, options_as
from rearrange.home.errors import UserError
from rearrange.home.settings.environment import NAVIGATION_AGENTS
from rearrange.home.settings.remote import RemoteSettings
from trainer.faults import signals

if TYPE_CHECKING:
    import gymnasium

    from eval.evaluate import EpisodeResult, Job
    from eval.policy_choice import Choice
    from eval.recording.record import Prepared
    from rearrange.command_line.runs.run_directory import Run


PICTURE_PIXELS = 128  # of depth that is shown to us, where the agent sees none


def evaluate_skill(options: EvalOptions, run: Run) -> dict[str, float]:
    from eval import evaluate as evaluation
    from eval.policy_choice import table
    from eval.summary_table import acting, print_table
    from eval.video import default_speed
    from rearrange.home.apartments.episodes import repeated_ids

    options = dataclasses.replace(options, agent=options.agent or "policy", video=options.video or 0)
    if options.agent == "pretrained":
        options = dataclasses.replace(options, agent="policy", checkpoint="pretrained")
    task = (navigation_task if options.nav else skill_task)(options, options.split, 0)
    if options.agent == "expert":
        from skills.experts import expert_class

        expert_class(task.name)  # there may be none
    skill, env = task.name, task.env
    choice, env = _evaluated_policy(options, skill, env)
    checkpoint = choice.checkpoint
    # videos show depth to us, if not to a blind policy
    recorded = env | {"depth_size": env["depth_size"] or PICTURE_PIXELS, "render_mode": "rgb_array"}
    acts_here = None if options.agent == "pointnav" else checkpoint  # which looks at other things
    probe = _fit_to_policy(skill, recorded if options.video else env, acts_here, options.network, options.episodes,
                           evaluation.SEED_STRIDE * options.seed, run.silent)
    if options.nav and options.agent == "remote" and options.remote.protocol == "behavior":
        raise UserError("remote.protocol=behavior is for skill= and hab=, whose robot has cameras and numbers such as "
                        "BEHAVIOR's: leave it out.")
    remote = remote_at(options.url, options.remote) if options.agent == "remote" else None
    _try_agent(options.agent, probe)
    run.create()
    count = min(options.episodes, probe.listed or options.episodes)  # of a file none twice
    job = evaluation.Job(skill, env, options.agent, checkpoint and str(checkpoint), count, options.seed,
                         options.deterministic, options.video, str(run.videos), recorded, default_speed(vars(options)),
                         options.network, remote, options.to_the_end)
    run.say(f"eval {run.path}   {group_of(skill)} {skill}   agent {acting(options.agent, checkpoint)}")
    for line in table([choice]):
        run.say(line)
    if count < options.episodes:
        run.say(f"{env['episodes']} has {count} episodes: each is run once, instead of episodes={options.episodes}")
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

    with counting(count, f"eval {skill}", run.silent, log=run.log) as progress:
        results = evaluation.evaluate(job, options.workers, progress, keep)
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
        print(f"warning: {lost} of {min(options.video, options.episodes)} videos are missing: "
              f"{problem}", file=sys.stderr)
    return evaluation.headline(figures)


def recorded_skill(options: RecordOptions) -> Prepared:
    """Who acts in which environment, of `rearrange record skill=`. UserError for what cannot work."""
    from eval.evaluate import SEED_STRIDE
    from eval.policy_choice import table
    from eval.recording.record import prepared_skill
    from eval.recording.skill_episodes import SkillJob

    agent, asked = options.agent, options.image_size
    learned = agent not in ("expert", "random", "zero") and ":" not in agent
    task = skill_task(options, options.split, 128 if asked is None else asked)
    if agent == "expert":
        from skills.experts import expert_class

        expert_class(task.name)  # there may be none
    of_eval = options_as(EvalOptions, options, agent="policy" if learned else agent,
                         checkpoint=agent if learned else None,
                         remote=RemoteSettings(image_size=task.env["depth_size"]))
    choice, env = _evaluated_policy(of_eval, task.name, task.env)
    seen = env["depth_size"] if learned else 0
    if seen and asked not in (None, seen):
        raise _other_size(asked, choice, seen)
    env |= {"depth_size": seen or task.env["depth_size"]}
    probe = _fit_to_policy(task.name, env, choice.checkpoint, None, options.episodes, SEED_STRIDE * options.seed,
                           False)
    _try_agent(agent, probe)
    job = SkillJob(task.name, env, "policy" if learned else agent, choice.checkpoint and str(choice.checkpoint),
                   deterministic=options.deterministic, seed=options.seed, depth_video=options.depth_video)
    return prepared_skill(job, probe, table([choice]))


def watched_navigation(options: RecordOptions) -> Job:
    """Who acts in which environment, of `rearrange view nav=`. UserError for what cannot work."""
    from eval.evaluate import SEED_STRIDE, Job

    agent, asked = options.agent, options.image_size
    task, pixels = navigation_task(options, options.split, 0), asked or PICTURE_PIXELS
    learned = agent != "random" and agent not in NAVIGATION_AGENTS and ":" not in agent
    of_eval = options_as(EvalOptions, options, agent="policy" if learned else agent,
                         checkpoint=agent if learned else None, remote=RemoteSettings(image_size=pixels))
    choice, env = _evaluated_policy(of_eval, task.name, task.env)
    if env["depth_size"] and asked not in (None, env["depth_size"]):
        raise _other_size(asked, choice, env["depth_size"])
    env |= {"depth_size": env["depth_size"] or pixels}
    probe = _fit_to_policy(task.name, env, choice.checkpoint, None, 1, SEED_STRIDE * options.seed, False)
    _try_agent(agent, probe)
    return Job(task.name, env, of_eval.agent, choice.checkpoint and str(choice.checkpoint), 1, options.seed,
               options.deterministic)


def _other_size(asked: int, choice: Choice, seen: int) -> UserError:
    return UserError(f"image_size={asked}: the policy of {choice.checkpoint} sees {seen} pixels; leave it out.")


def _try_agent(agent: str, probe: gymnasium.Env) -> None:
    """Make an agent of the user's own, or a scripted one of navigation tasks, once. UserError for what it cannot do."""
    if ":" in agent:
        OwnAgent(agent, "agent", 1, probe.observation_space, probe.action_space)
    if agent in NAVIGATION_AGENTS:
        from rearrange.navigation.scripted_agents import SCRIPTED

        SCRIPTED[agent](probe)


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


def _evaluated_policy(options: EvalOptions, skill: str, env: dict[str, Any]) -> tuple[Choice, dict[str, Any]]:
    """Who acts, and the environment: with the settings that a policy was trained with, but for what was typed."""
    from eval.policy_choice import ASKED, Choice, choose
    from eval.trained_policy import check_robot, of_what, settings_of, training_of
    from trainer.checkpoint import CheckpointError, load_checkpoint

    kept = {word.split("=")[0].split(".")[1] for word in options.words if "." in word.split("=")[0]}
    if options.agent == "pointnav":
        return _point_goal(options, skill), env | {"depth_size": 0} | {key: value for key, value in JUDGED.items()
                                                                     if key not in kept}
    if options.agent != "policy":
        look = options.agent == "remote" or ":" in options.agent
        # others look at nothing
        seen = options.remote.image_size if look else 128 if options.agent == "map" else env["depth_size"]
        who = options.url if options.agent == "remote" else options.agent
        return Choice(skill, who, ASKED), env | {"depth_size": seen}
    choice = choose(options.checkpoint, skill, Path(options.output), "checkpoint")
    try:
        meta = training_of(load_checkpoint(choice.checkpoint))
    except CheckpointError as error:
        raise UserError(str(error)) from error
    if meta.get(group_of(skill)) != skill:
        group = next((group for group in ("skill", "nav") if group in meta), None)
        other = f"write {group}={meta[group]}, or another" if group else "give another"
        raise UserError(f"{choice.checkpoint} is a checkpoint of {of_what(meta)}, not of {skill}: {other} checkpoint=.")
    trained = trained_settings(choice.checkpoint, meta, skill)
    env = env | {key: value for key, value in settings_of(meta | {"env": trained}).items() if key not in kept}
    check_robot(choice.checkpoint, trained, env)
    return choice, env


def _point_goal(options: EvalOptions, skill: str) -> Choice:
    """The policy of PointNav that drives in Navigate."""
    from eval.policy_choice import choose
    from eval.scenario.skill_sources import POINTNAV, point_goal

    word = options.checkpoint or "pretrained"
    choice = dataclasses.replace(choose(word, POINTNAV, Path(options.output), "checkpoint"), what=skill)
    return point_goal(choice, "checkpoint", options.network).choice


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
