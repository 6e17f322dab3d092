"""`rearrange eval hab=<scenario>`: from settings to a run directory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval import hab, hab_figures
from eval.evaluate import SEED_STRIDE
from eval.hab_skills import AGENTS, SHARED, Source, shared_settings, sources, whole_task_source
from planner import whole_task
from planner.deploy import Rules, steps_of
from planner.scenario import plan, require_solved
from planner.scenario_env import ScenarioEnv
from planner.scenarios import ScenarioConfig, make_scenario
from rearrange.episodes import read_episodes
from rearrange.errors import UserError
from rearrange.tasks import load_listed, sim_settings

if TYPE_CHECKING:
    from rearrange.run_directory import Run

VIDEOS = 3  # first success, first failure, longest


def evaluate(plain: dict[str, Any], run: Run) -> dict[str, float]:
    """One scenario, one agent, many episodes. Everything is checked before the directory is made."""
    job = make_job(plain, run)
    run.create()
    run.say(f"eval {run.path}   {job.scenario.name}   agent {job.agent}   {spoken_sources(job.skills)}")
    if job.episodes < plain["episodes"]:
        run.say(f"{job.env['episodes']} has {job.episodes} episodes: each is run once, instead of episodes={plain['episodes']}")
    from trainer.progress import counting

    with counting(job.episodes, f"eval {job.scenario.name}") as progress:
        results = hab.evaluate(job, plain["workers"], progress)
    figures = hab_figures.summary(job, results)
    hab_figures.write(run.path, job, figures, results, {})  # the figures are safe before videos take their time
    wanted = hab.shown(results, VIDEOS if plain["video"] is None else plain["video"])
    if wanted:
        with counting(len(wanted), "videos") as progress:
            videos = hab.record(job, wanted, plain["workers"], progress)
        hab_figures.write(run.path, job, figures, results, videos)
    hab_figures.print_table(figures, run)
    return {"success": figures["success"], "mean_steps": figures["mean_steps"]}


def make_job(plain: dict[str, Any], run: Run) -> hab.Job:
    """The job that settings describe. Raises UserError for what cannot work: agent, checkpoints, scenario, plan."""
    agent = plain["agent"] or "tp_srl"
    if agent not in AGENTS:
        raise UserError(f"agent={agent} is for skill=; a scenario is done by agent={', '.join(AGENTS)}, and each of its skills "
                        "can be chosen, as in skills.pick=pretrained.")
    if plain["checkpoint"] is not None and agent != "monolithic":
        raise UserError(f"checkpoint={plain['checkpoint']} is for skill= and agent=monolithic; for the skills of a scenario write "
                        f"skills.pick={plain['checkpoint']}, or another skill's name.")
    scenario = make_scenario(plain["hab"], "hab")
    rules = Rules(**plain["planner"], navigate=agent != "tp_srl_nonav")
    typed = {word.split("=")[0].removeprefix("sim.") for word in run.settings.overrides if word.startswith("sim.")}
    if agent == "monolithic":
        found = _whole_task(scenario, plain)
    else:
        needed = needed_skills(scenario, rules, plain)
        found = sources(agent, plain["skills"], needed, Path(plain["output"]), scenario.name)
    sim = plain["sim"]
    env = _homes(sim) | {"split": plain["split"]}
    env |= shared_settings(found, {key: sim[key] for key in SHARED if key in typed})
    # An episode of a file that is run twice is no second sample.
    count = plain["episodes"] if env.get("episodes") is None else min(plain["episodes"], len(read_episodes(env["episodes"])))
    return hab.Job(scenario, agent, env, found, rules, count, plain["seed"], plain["deterministic"],
                   str(run.videos), plain["video_speed"])


def _homes(sim: dict[str, Any]) -> dict[str, Any]:
    """The settings of the group `sim` that do not depend on how a policy was trained."""
    return {key: value for key, value in sim_settings(sim).items() if key not in SHARED}


def _whole_task(scenario: ScenarioConfig, plain: dict[str, Any]) -> dict[str, Source]:
    """The one policy of agent=monolithic, by the name that it has in place of a skill's."""
    chosen = next((skill for skill, source in plain["skills"].items() if source is not None), None)
    if chosen:
        raise UserError(f"skills.{chosen}={plain['skills'][chosen]}: agent=monolithic has no skills; leave it out, "
                        "or choose another agent.")
    env = ScenarioEnv(scenario, plain["split"], 0, **_homes(plain["sim"]))
    for _ in load_listed(env, plain["episodes"], SEED_STRIDE * plain["seed"]):  # of ours the first; they were tried
        pass
    return {whole_task.NAME: whole_task_source(plain["checkpoint"], env, Path(plain["output"]))}


def needed_skills(scenario: ScenarioConfig, rules: Rules, plain: dict[str, Any]) -> list[str]:
    """The skills that plans need. Raises UserError for an episode that cannot be solved or has no plan."""
    env = ScenarioEnv(scenario, plain["split"], 0, **_homes(plain["sim"]))
    needed: dict[str, None] = {}
    for _ in load_listed(env, plain["episodes"], SEED_STRIDE * plain["seed"]):  # of ours the first; they were tried
        found = plan(env.sim, scenario.problem)
        require_solved(found, env.episode.scene)
        needed |= dict.fromkeys(step.skill for step in steps_of(found.steps, rules))
    return list(needed)


def spoken_sources(found: dict[str, Source]) -> str:
    """`pick, place: expert   navigate: outputs/...`."""
    by_source: dict[str, list[str]] = {}
    for skill, source in found.items():
        by_source.setdefault(source.checkpoint or source.kind, []).append(skill)
    if len(by_source) == 1:
        return f"all skills: {next(iter(by_source))}"
    return "   ".join(f"{', '.join(skills)}: {source}" for source, skills in by_source.items())
