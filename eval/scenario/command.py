"""`rearrange eval hab=<scenario>`: from settings to a run directory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval import policy_choice
from eval.evaluate import cut_short, headline
from eval.scenario import evaluate as hab
from eval.scenario import figures as hab_figures
from eval.scenario import substitution, subtasks, video
from eval.scenario.skill_sources import AGENTS, SHARED, Source, shared_settings, sources, whole_task_source
from eval.shared_episodes import refuse_together
from eval.slots import SEED_STRIDE
from eval.task_from_settings import load_listed, sim_settings
from eval.video import default_speed
from planner import monolithic as whole_task
from planner.rules import Rules, steps_of
from planner.scenario import observe, plan, require_solved
from planner.scenario_env import ScenarioEnv
from rearrange.command_line.composition.options import EvalOptions, RecordOptions, options_as
from rearrange.env.home_env import HomeSettings
from rearrange.home.apartments.episodes import Episode, read_episodes, repeated_ids, write_episodes
from rearrange.home.errors import UserError
from rearrange.home.settings.environment import ROBOT
from skills import SKILLS

if TYPE_CHECKING:
    from rearrange.command_line.runs.run_directory import Run

VIDEOS = 3  # first success, first failure, longest


def evaluate(options: EvalOptions, run: Run) -> dict[str, float]:
    """One scenario, one agent, many episodes. Everything is checked before the directory is made."""
    if options.substitute:
        refuse_together("substitute=true")
    if options.subtasks:
        refuse_together("subtasks=true")
    if options.handoff_tries is not None and not options.handoffs:
        raise UserError(f"handoff_tries={options.handoff_tries} is for handoffs=true, which keeps the states that it "
                        "counts: add that, or leave it out.")
    job = make_job(options, str(run.videos))
    run.create()
    run.say(f"eval {run.path}   {job.scenario.name}   agent {job.agent}")
    for line in policy_choice.table(source.choice for source in job.skills.values() if source.choice):
        run.say(line)
    if job.episodes < options.episodes:
        run.say(f"{job.env['episodes']} has {job.episodes} episodes: each is run once, instead "
                f"of episodes={options.episodes}")
    if (file := job.env.get("episodes")) is not None:
        for line in repeated_ids(file, read_episodes(file)):
            run.say(line)
    from trainer.logs.progress import Progress, counting

    def keep(finished: list[hab.EpisodeResult]) -> None:
        if run.silent:
            return
        figures = cut_short(hab_figures.summary(job, finished), job.episodes)
        run.result = headline(figures)
        hab_figures.print_table(figures, run)
        _write(run, job, figures, finished, options.handoff_tries)

    with counting(job.episodes, f"eval {job.scenario.name}", run.silent, log=run.log) as progress:
        results = hab.evaluate(job, options.workers, progress, keep)
    figures = hab_figures.summary(job, results)
    if run.silent:  # of several tasks, the first writes, films and prints
        return headline(figures)
    try:
        _write(run, job, figures, results, options.handoff_tries)  # safe before videos take their time
    except OSError:  # a full disk
        hab_figures.print_table(figures, run)
        raise
    run.result = headline(figures)
    wanted = video.shown(results, VIDEOS if options.video is None else options.video)
    if wanted:
        with Progress(video.frames_of(job, wanted), "videos", unit="frames") as progress:
            videos = video.record(job, wanted, options.workers, lambda frames: progress.update(frames, {}))
        hab_figures.write(run.path, job, figures, results, videos)
    hab_figures.print_table(figures, run)
    if not figures["episodes"]:  # all began solved
        return run.result
    if options.substitute:
        substitution.substitute(job, figures, run, options.workers, counting)
    if options.subtasks:
        subtasks.measure(job, run, options.workers, counting)
    return run.result


def _write(run: Run, job: hab.Job, figures: dict[str, Any], results: Sequence[hab.EpisodeResult],
           tries: int | None) -> None:
    hab_figures.write(run.path, job, figures, results, {})
    if job.handoffs:
        _write_handoffs(run, results, tries)


def _write_handoffs(run: Run, results: Sequence[hab.EpisodeResult], tries: int | None) -> None:
    """Write an episode file for each skill with the states in which it began: `handoffs/pick.json.gz`.

    tries: the first so many tries of a skill at the same thing in an episode; None means all.
    """
    found: dict[str, list[Episode]] = {}
    for result in results:
        tried: Counter[tuple[str, int | str]] = Counter()
        for episode in result.handoffs:
            about = (episode.handoff.skill, episode.handoff.about)
            tried[about] += 1
            if tries is None or tried[about] <= tries:
                found.setdefault(episode.handoff.skill, []).append(episode)
    folder = run.path / "handoffs"
    folder.mkdir(exist_ok=True)
    for skill, episodes in found.items():
        write_episodes(folder / f"{skill}.json.gz", episodes)
        run.say(f"handoffs  {folder / skill}.json.gz ({len(episodes)}; for sim.episodes=)")


def make_job(options: EvalOptions, videos: str = "", every_skill: bool = False) -> hab.Job:
    """The job that settings describe. Raises UserError for what cannot work: agent, checkpoints, scenario, plan.

    videos: folder of films. every_skill: not only those that plans need have something that runs them.
    """
    asked = options.agent or "tp_srl"
    agent = "tp_srl" if asked == "pretrained" else asked
    if agent not in AGENTS:
        of = "skill=navigate, in plans skills.navigate=pointnav" if agent == "pointnav" else "skill="
        raise UserError(f"agent={agent} is for {of}; a scenario is done by agent=pretrained, {', '.join(AGENTS)}, and "
                        "each of its skills can be chosen, as in skills.pick=expert.")
    if options.checkpoint is not None and agent != "monolithic":
        word = options.checkpoint
        instead = f"skills={word}" if word in policy_choice.WORDS else f"skills.pick={word}, or another skill's name"
        raise UserError(f"checkpoint={word} is for skill= and agent=monolithic; for the skills of a scenario "
                        f"write {instead}.")
    scenario, homes, rules = options.hab, options.sim, replace(options.planner, navigate=agent != "tp_srl_nonav")
    if options.substitute and agent not in ("tp_srl", "tp_srl_nonav"):
        raise UserError(f"substitute=true puts experts in the place of learned skills, which agent={agent} does not "
                        "have: take agent=tp_srl.")
    if options.subtasks and agent in ("monolithic", "tp_spa"):
        raise UserError(f"subtasks=true evaluates the skills of a plan alone, which agent={agent} does not have: "
                        "take agent=tp_srl.")
    needed, typed = [], options.typed("sim")
    if agent == "monolithic":
        found = _whole_task(options)
    else:
        needed = list(SKILLS) if every_skill else needed_skills(options, rules)
        found = sources(asked, options.skills, needed, Path(options.output), scenario.name, options.network,
                        options.remote, homes.observations, homes.camera_size,
                        {key: getattr(homes, key) for key in ROBOT if key in typed})
    env = _homes(homes) | {"split": options.split}
    env |= shared_settings(found, {key: getattr(homes, key) for key in SHARED if key in typed})
    # An episode of a file that is run twice is no second sample.
    count, file = options.episodes, env.get("episodes")
    count = count if file is None else min(count, len(read_episodes(file)))
    return hab.Job(scenario, agent, env, found, rules, count, options.seed, options.deterministic,
                   videos, default_speed(vars(options)), options.handoffs, _protocol(options), tuple(needed))


def watched_job(options: RecordOptions, agent: str, checkpoint: str | None) -> hab.Job:
    """The job of `rearrange record` and `rearrange view`, whose settings lack some of an evaluation's."""
    agent = "tp_srl" if agent == "newest" else agent
    return make_job(options_as(EvalOptions, options, agent=agent, checkpoint=checkpoint))


def _protocol(options: EvalOptions) -> str:
    """The choice of `planner`, and what was typed to differ from it: `honest, knowledge=state`."""
    typed = [word.removeprefix("planner.") for word in options.words if word.startswith("planner.")]
    return ", ".join([options.choices["planner"], *typed])


def _homes(sim: HomeSettings) -> dict[str, Any]:
    """The settings of the group `sim` that do not depend on how a policy was trained, and the robot."""
    return {key: value for key, value in sim_settings(sim).items() if key not in SHARED or key in ROBOT}


def _whole_task(options: EvalOptions) -> dict[str, Source]:
    """The one policy of agent=monolithic, by the name that it has in place of a skill's."""
    chosen = next((skill for skill, source in options.skills.items() if source is not None), None)
    if chosen:
        raise UserError(f"skills.{chosen}={options.skills[chosen]}: agent=monolithic has no skills; leave it out, "
                        "or choose another agent.")
    env = ScenarioEnv(options.hab, HomeSettings(options.split, 0, **_homes(options.sim)))
    for _ in load_listed(env, options.episodes, SEED_STRIDE * options.seed):  # of ours the first; they were tried
        pass
    return {whole_task.NAME: whole_task_source(options.checkpoint, env, Path(options.output), options.network)}


def needed_skills(options: EvalOptions, rules: Rules) -> list[str]:
    """Skills that plans need, or may need when they are made again. UserError for an episode that has no plan."""
    env = ScenarioEnv(options.hab, HomeSettings(options.split, 0, **_homes(options.sim)))
    needed: dict[str, None] = {}
    for _ in load_listed(env, options.episodes, SEED_STRIDE * options.seed):  # of ours the first; they were tried
        found = plan(env.sim, options.hab.problem)
        require_solved(found, env.episode.scene)
        needed |= dict.fromkeys(step.skill for step in steps_of(found.steps, rules))
        if rules.recovery == "replan":  # a door that falls shut has to be opened again
            used = {atom[2] for atom in observe(env.sim, found.symbols) if atom[0] == "in"}
            needed |= dict.fromkeys(f"open_{found.symbols.types[name]}" for name in sorted(used))
    return list(needed)
