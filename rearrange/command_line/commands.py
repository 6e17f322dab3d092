"""What the commands do, once the command line has been checked: the glue between homes, skills, engine and evaluation.

`rearrange.command_line.cli` imports this module last; everything here may import torch and the simulator.
"""

from __future__ import annotations

import dataclasses
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omegaconf import DictConfig, OmegaConf

from eval.engine_settings import check_device, engine_config, per_action
from eval.own_agents import OwnAgent
from eval.point_goal import JUDGED
from eval.remote.connecting import remote_at
from eval.task_from_settings import (
    Task,
    group_of,
    held_out,
    load_listed,
    navigation_task,
    skill_task,
    trained_settings,
    training_task,
)
from rearrange.env.registration import register_envs
from rearrange.home.errors import UserError
from rearrange.home.files import may_be_written
from rearrange.home.settings import own_networks
from rearrange.home.settings.engine_messages import in_keys
from rearrange.home.settings.environment import NAVIGATION_AGENTS
from rearrange.home.settings.remote import RemoteError, RemoteSettings
from trainer.config import OF_THE_WEIGHTS
from trainer.faults import signals

if TYPE_CHECKING:
    import gymnasium

    from eval.evaluate import EpisodeResult
    from eval.policy_choice import Choice
    from eval.recording.demonstrations import Recording
    from eval.recording.record import Prepared
    from rearrange.command_line.runs.run_directory import Run
    from rearrange.home.settings.composed_config import Settings
    from trainer.config import TrainConfig
    from trainer.loop import TrainResult

register_envs()  # a policy may be of any environment that `gymnasium.make` knows


def train(config: DictConfig, run: Run) -> dict[str, float] | None:
    """`rearrange train`: one run of the engine on one task. Returns the final figures; None where a signal ended it in
    good order."""
    from trainer.errors import CheckpointError, NonFinite, RankError, WorkerError
    from trainer.logs.run_files import recording
    from trainer.policy import Policy
    from trainer.ranks import rank_watch

    rank_watch.before_forced_end = lambda: run.finish("failed")
    plain = OmegaConf.to_container(config, resolve=True)
    task = training_task(plain, run.settings.overrides)
    resume_from = _newest_checkpoint(run) if run.resumed else None
    begun_with = plain.get("checkpoint")  # runs of before have no such setting
    transfer = plain.get("transfer")
    start_from = None if resume_from else _first_policy(begun_with, task, transfer)
    plain["policy"] |= _network_of(resume_from or start_from, config, run.settings.overrides)
    network = plain["policy"].get("network")
    make_policy = own_networks.load(network, "policy") if network else Policy
    engine = engine_config(plain)
    try:
        engine.check()
    except ValueError as error:
        raise UserError(in_keys(error)) from error
    probe = _probe(task, silent=run.silent)
    engine = per_action(engine, task, probe)
    meta = task.meta() | ({"started_from": begun_with} if begun_with else {}) | ({"network": network} if network else {})
    other = transfer if start_from else None
    taken = _check_network(engine, probe, make_policy, resume_from or start_from, bool(resume_from), other)
    phases = _phases(engine, plain, task, probe, _step_of(resume_from), run)
    run.create()
    if run.resumed and _newest_checkpoint(run) != resume_from:  # before the directory was this process's own
        raise UserError(f"another process has just worked in {run.path}; repeat the command.")
    run.say(f"{'continues' if resume_from else 'run'} {run.path}   {task.word.replace('=', ' ')}   "
            f"policy {network or plain['policy']['encoder'] or 'blind'}   {engine.collect.num_envs} environments   "
            f"{engine.steps:,} steps")
    if taken:
        run.say(taken)
    for phase in phases:
        for line in phase.lines:
            run.say(line)
    where = "" if plain["output"] == "outputs" else f" output={shlex.quote(plain['output'])}"
    name = "" if run.silent and plain["name"] is None else f" name={shlex.quote(run.path.name)}"
    again = f"rearrange train {task.word}{name}{where}{own_networks.as_typed('policy', network)} resume=true"
    try:
        if run.silent:  # of several ranks, the first writes and prints
            result = _one_after_another(phases, task.make, make_policy=make_policy, transfer=bool(other))
            run.stopped_by = result.reason
            return {} if result.reason == "complete" else None
        with recording(run.path, engine, _step_of(resume_from), f"train {task.name}", plain["logger"]["progress"], run.log,
                       plain["logger"]["wandb"], plain) as (logger, progress):
            if phases[-1].demonstrations:
                progress.total = engine.steps  # not whole rollouts
            result = _one_after_another(phases, task.make, resume_from, start_from, run_dir=run.path, meta=meta, make_policy=make_policy,
                                        callbacks=(run, logger, progress), transfer=bool(other),
                                        eval_env=held_out(task, plain["eval_split"], engine.eval_film).make)
    except KeyboardInterrupt:
        _tell(run, f"stopped at once; {_newest_in_words(run)}. Continue with: {again}")
        raise
    except CheckpointError as error:
        raise UserError(in_keys(error)) from error
    except (WorkerError, NonFinite, RankError) as error:
        if getattr(error, "told_elsewhere", False):
            run.log(in_keys(error))
        else:
            _tell(run, f"{in_keys(error)}\nThe run ended; {_newest_in_words(run)}. Continue with: {again}")
        run.finish("failed")
        raise SystemExit(1) from None
    final = {k: v for k, v in (result.history[-1] if result.history else {}).items() if k.startswith(("episode/", "step"))}
    if result.reached:
        run.say(f"{result.reason}, as good as stop_at={engine.stop_at:g}")
    elif result.reason != "complete":
        if result.checkpoint and result.checkpoint.parent != run.checkpoints:  # another process works in the place of this run
            again = f"rearrange train {task.word} checkpoint={shlex.quote(str(result.checkpoint))}{where}"
        run.say(f"stopped by {result.reason} after {result.steps:,} steps; {_saved_in_words(result)}. Continue with: "
                f"{again}")
        run.stopped_by = result.reason
        return None
    if result.unsaved_steps:
        _tell(run, f"all {result.steps:,} steps are done, but {_saved_in_words(result)}. Make room, and continue "
                   f"with: {again}")
        run.finish("failed")
        raise SystemExit(1)
    if result.best:
        run.say(f"the best of its evaluations: {result.best[0]:.3g} at step {result.best[1]:,}, kept as best.pt")
    for line in progress.curve() if not phases[-1].demonstrations or engine.eval_every else ():
        run.say(line)
    run.say(f"done: {result.steps:,} steps, {result.checkpoint}")
    who = "agent=monolithic " if task.scenario else ""
    run.say(f"next: rearrange eval {task.word} "
            f"{who}checkpoint={shlex.quote(str(run.path))}{own_networks.as_typed('network', network)} video=3")
    return final


@dataclass(frozen=True)
class _Phase:
    """A part of a training, until `engine.steps`. lines: what there is to say of it."""

    engine: TrainConfig
    demonstrations: Recording | None = None
    lines: tuple[str, ...] = ()


def _one_after_another(phases: list[_Phase], make: Callable[[], Any], resume_from: Path | None = None,
                       start_from: Path | None = None, **others: Any) -> TrainResult:
    """Train in these phases, each from the checkpoint of the one before. others: arguments of `trainer.train`."""
    from trainer.loop import train as run_engine

    for phase in phases:
        result = run_engine(make, phase.engine, resume_from=resume_from, start_from=start_from, demonstrations=phase.demonstrations,
                            **others)
        if result.reason != "complete" or result.unsaved_steps:
            break
        resume_from, start_from = result.checkpoint, None
    return result


def _phases(engine: TrainConfig, plain: dict[str, Any], task: Task, env: gymnasium.Env, done: int, run: Run) -> list[_Phase]:
    """What is left of a training of which so many steps are done: from demonstrations, in homes, or first one and
    then the other."""
    folder, steps = plain.get("demos"), plain.get("demos_steps")
    if folder is None:
        if unused := next((key for key in ("demos_steps", "demos_episodes") if plain.get(key) is not None), None):
            raise UserError(f"{unused}={plain[unused]} needs demos=, the folder of a recording.")
        return [_Phase(engine)]
    until = engine.steps if steps is None else steps
    if until > engine.steps:
        raise UserError(f"demos_steps={until:,} exceeds steps={engine.steps:,}, all of which there are: raise "
                        "steps=, or choose fewer.")
    then = [_Phase(engine)] if until < engine.steps else []
    if then and engine.deterministic:
        raise UserError("deterministic=true goes with demonstrations or with homes alone: leave demos_steps= out.")
    if then and done >= until:
        return then
    from eval.recording.demonstrations import Recording
    from trainer.cloning.demonstrations import check

    shown = Recording(Path(folder), task.name, env, plain.get("demos_episodes"), run.silent)
    try:
        check(shown, engine.steps_per_rollout)
    except ValueError as error:
        raise UserError(in_keys(error)) from error
    lines = (f"clones {len(shown.lengths):,} episodes of {folder} ({sum(shown.lengths):,} frames)"
             + (f", without {shown.left_out:,} that did not succeed" if shown.left_out else "")
             + (f"; from step {until:,} on, PPO in homes" if then else ""),
             *(f"note: {difference}" for difference in shown.differences(task.env)))
    return [_Phase(dataclasses.replace(engine, steps=until), shown, lines), *then]


def _first_policy(checkpoint: str | None, task: Task, transfer: str | None) -> Path | None:
    """The file of the policy that a new run begins with; None = a new policy. transfer: the other task that it is
    of."""
    if transfer and checkpoint is None:
        raise UserError(f"transfer={transfer} needs checkpoint=: pretrained, a run or a file.")
    if transfer:
        return _policy_file(checkpoint, transfer)
    if checkpoint == "pretrained" and task.scenario:
        raise UserError("checkpoint=pretrained is for skill=: no policy of a whole scenario comes with the package.")
    return None if checkpoint is None else _policy_file(checkpoint, task.name)


def _policy_file(checkpoint: str | Path, skill: str) -> Path:
    """The file that `checkpoint=` means: a file, the best or newest of a run, or the one that comes with the
    package."""
    from skills import pretrained
    from trainer.checkpoint import CheckpointError, best

    try:
        return pretrained.path(skill) if checkpoint == "pretrained" else best(Path(checkpoint))
    except CheckpointError as error:
        raise UserError(str(error)) from error


def _network_of(checkpoint: Path | None, config: DictConfig, typed: tuple[str, ...]) -> dict[str, Any]:
    """The settings of the policy that a checkpoint's weights were learned with, but for those that were typed; set in
    `config`, too."""
    from trainer.checkpoint import CheckpointError, load_checkpoint, policy_config

    if checkpoint is None:
        return {}
    try:
        content = load_checkpoint(checkpoint)
    except CheckpointError as error:
        raise UserError(str(error)) from error
    learned = policy_config(content["policy_config"])
    kept = {word.split("=")[0].removeprefix("policy.") for word in typed}
    values = {name: getattr(learned, name) for name in OF_THE_WEIGHTS if name not in kept and name in config.policy}
    for name, value in values.items():
        OmegaConf.update(config, f"policy.{name}", value)
    return values


def _tell(run: Run, sentence: str) -> None:
    """Say how a training ended that did not reach its end; the first rank speaks for all, and the log keeps it."""
    run.log(sentence)
    if not run.silent:
        print(f"rearrange train: {sentence}", file=sys.stderr)


def _saved_in_words(result: TrainResult) -> str:
    """The newest checkpoint, and what it lacks."""
    if not result.unsaved_steps:
        return f"saved {result.checkpoint}"
    if result.checkpoint is None:
        return f"no checkpoint could be written: the {result.unsaved_steps:,} steps are lost"
    return (f"the last checkpoint could not be written: the newest is {result.checkpoint}, and the "
            f"{result.unsaved_steps:,} steps after it are lost")


def _newest_in_words(run: Run) -> str:
    """The newest checkpoint, where nobody is left to say what it lacks; of a rank that does not write, nobody knows."""
    newest = _newest_checkpoint(run)
    return f"its newest checkpoint is {newest}" if newest else "it has no checkpoint yet"


def evaluate(config: DictConfig, run: Run) -> dict[str, float]:
    """`rearrange eval`: success over many episodes, metrics.json, episodes.csv and videos."""
    from eval.processes import ProcessDied
    from eval.video import VideoError
    from trainer.errors import RankError

    plain = OmegaConf.to_container(config, resolve=True)
    try:
        if plain.get("hab"):
            from eval.scenario import command as hab_command

            return hab_command.evaluate(plain, run)
        return _evaluate_skill(plain, run)
    except (ProcessDied, RemoteError, VideoError, RankError) as error:
        run.log(str(error))
        if not getattr(error, "told_elsewhere", False):
            print(f"rearrange eval: {error}", file=sys.stderr)
        run.finish("failed")
        raise SystemExit(1) from None


def _evaluate_skill(plain: dict[str, Any], run: Run) -> dict[str, float]:
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
        OwnAgent(plain["agent"], "agent", 1, probe.observation_space, probe.action_space)  # which says what is wrong with it
    if plain["agent"] in NAVIGATION_AGENTS:
        from rearrange.navigation.scripted_agents import SCRIPTED

        SCRIPTED[plain["agent"]](probe)  # which says what it cannot do
    run.create()
    count = min(plain["episodes"], probe.listed or plain["episodes"])  # of a file none twice
    job = evaluation.Job(skill, env, plain["agent"], checkpoint and str(checkpoint), count, plain["seed"],
                         plain["deterministic"], plain["video"], str(run.videos), recorded, default_speed(plain), plain["network"],
                         remote)
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


def record(settings: Settings) -> int:
    """`rearrange record`: episodes as a data set, or the check that a recording replays; the exit status."""
    from eval.recording.record import record as record_all

    plain = OmegaConf.to_container(settings.config, resolve=True)
    if plain["replay"] is None:
        return record_all(settings, plain, _recorded_skill)
    from eval.recording.replay import replay, said

    folder = Path(plain["replay"])
    results = replay(folder, plain["episodes"], plain["workers"])
    print("\n".join(said(results, folder)))
    return int(not results or any(result.frame is not None for result in results))


def _recorded_skill(plain: dict[str, Any], settings: Settings) -> Prepared:
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
    probe = _fit_to_policy(task.name, env, choice.checkpoint, None, plain["episodes"], SEED_STRIDE * plain["seed"], False)
    if ":" in agent:
        OwnAgent(agent, "agent", 1, probe.observation_space, probe.action_space)  # which says what is wrong with it
    job = SkillJob(task.name, env, "policy" if learned else agent, choice.checkpoint and str(choice.checkpoint),
                   deterministic=plain["deterministic"], seed=plain["seed"])
    return prepared_skill(job, probe, table([choice]))


def view(settings: Settings) -> int:
    """`rearrange view`: until Ctrl-C."""
    from eval.view.server import require_package

    require_package()
    from eval.view.viewer import view as look

    look(settings, _recorded_skill)
    return 0


def serve(config: DictConfig) -> None:
    """`rearrange serve`: until Ctrl-C."""
    from rearrange.command_line.serving import run

    run(OmegaConf.to_container(config, resolve=True))


def bench(config: DictConfig, run: Run) -> dict[str, float]:
    """`rearrange bench <what>`: measurements on this machine."""
    from importlib import import_module

    from rearrange.command_line.composition.bench_settings import MODULES

    plain = OmegaConf.to_container(config, resolve=True)
    module = import_module(MODULES[plain["what"]])
    if hasattr(module, "check"):
        module.check(plain)
    run.create()
    return module.run_bench(plain, run)


def report(config: DictConfig) -> None:
    """`rearrange report`: runs as one HTML page."""
    from eval.report.page import report as write_report

    made = write_report(OmegaConf.to_container(config, resolve=True))
    for path in made.runs:
        print(f"  {path}")
    left_out = f", {made.left_out} left out (raise video_mb=)" if made.left_out else ""
    print(f"{made.path}   {made.path.stat().st_size / 1e6:.1f} MB   {len(made.runs)} runs   {made.episodes:,} "
          f"episodes   {made.videos} videos{left_out}")


def reproduce(config: DictConfig, hydras: list[str]) -> int:
    """`rearrange reproduce`: trainings, evaluations and the report, each once, where `hydra/launcher=` says; the exit
    status."""
    from eval.reproduction.reproduce import run as reproduce_all

    return reproduce_all(OmegaConf.to_container(config, resolve=True), hydras)


def export(config: DictConfig) -> None:
    """`rearrange export`."""
    from rearrange.home.settings.own_networks import of_checkpoint
    from trainer.checkpoint import CheckpointError, load_checkpoint, load_policy
    from trainer.export import FORMATS
    from trainer.export import export as write

    if config.checkpoint is None:
        raise UserError("which policy? For example: rearrange export checkpoint=outputs/train/pick/latest.")
    out = Path(config.out or f"policy{FORMATS[config.format]}")
    if not out.parent.is_dir() or out.is_dir() or not may_be_written(out):
        why = "it is a folder" if out.is_dir() else "its folder is not there" if not out.parent.is_dir() else "it is a pipe or a device"
        raise UserError(f"out={out} cannot be written: {why}.")
    if out.exists() and out.suffix not in FORMATS.values():
        raise UserError(f"out={out} exists, and by its name it is no policy that was exported "
                        f"({', '.join(FORMATS.values())}): choose another.")
    try:
        content = load_checkpoint(config.checkpoint)
        write(load_policy(content, of_checkpoint(content, config.network)), out, config.format, config.batch)
    except (CheckpointError, ValueError) as error:
        raise UserError(str(error)) from error
    except ImportError as error:
        raise UserError(f"format=onnx needs the package {error.name}: pip install 'rearrange[onnx]'.") from error
    except OSError as error:
        raise UserError(f"out={out} cannot be written: {error.strerror or error}.") from error
    print(f"{out}: one step of the policy of {config.checkpoint}.")


def scenes(config: DictConfig) -> None:
    """`rearrange scenes export | list | check | view`."""
    if config.action != "export":
        from trainer.logs.progress import Progress

        def progress_of(count: int) -> Progress:
            return Progress(count, "reading scenes", unit="scenes", out=sys.stderr)

        if config.action == "view" and config.dataset is not None:
            from rearrange.home.simulation.scenes.contact_sheet import view

            return view(config.dataset, config.scenes, config.out, progress_of)
        if config.dataset is not None and config.dataset.endswith(".json.gz"):
            from rearrange.navigation.habitat_episodes import show as show_episodes

            return show_episodes(config.action, config.dataset)
        from rearrange.home.episodes.generator import KINDS
        from rearrange.home.scene_files.list_and_check import show
        from rearrange.home.simulation.scenes.scene import data_set, load_scene
        from rearrange.home.simulation.scenes.scene_selection import refused

        return show(config.action, config.dataset, data_set, tuple(KINDS),
                    lambda path, name: refused(load_scene.__wrapped__(path, name).home), progress_of)  # not kept: each is looked at once
    from planner.scenarios import load_scenario
    from rearrange import __version__
    from rearrange.habitat.export.data_set import FromAbove, export

    export(OmegaConf.to_container(config, resolve=True), FromAbove(__version__, lambda name: load_scenario(name).scenario))


def list_(config: DictConfig) -> None:
    """`rearrange list`."""
    from rearrange.command_line.listing import show

    show(config)


def _probe(task: Task, episodes: int = 500, first: int = 0, silent: bool = False):
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


def _check_network(engine, env, make_policy, checkpoint: Path | None, to_continue: bool = False,
                   transfer: str | None = None) -> str | None:
    """Refuse a device that is not there, what does not fit into memory, and a network that does not fit the
    environment or the checkpoint to go on from. What is taken over of one of the task `transfer`, in words."""
    from eval.trained_policy import of_what, training_of
    from trainer.checkpoint import CheckpointError, load_checkpoint, seen
    from trainer.checkpoints.transfer import take_over
    from trainer.networks import make, refuse_another
    from trainer.policy import Policy
    from trainer.sizes import check_memory
    from trainer.spaces import action_numbers

    actions = action_numbers(env.action_space)
    for name in ("mean_init", "log_std_init"):
        value = getattr(engine.policy, name)
        if isinstance(value, tuple) and len(value) != actions:
            raise UserError(f"policy.{name} has {len(value)} numbers; it must be one number, or one for each of the "
                            f"{actions} actions.")
    check_device(engine)
    try:
        check_memory(engine, env.observation_space, actions)
    except ValueError as error:
        raise UserError(in_keys(error)) from error
    try:
        policy = make(make_policy, env.observation_space, env.action_space, engine.policy)
    except Exception as error:
        if make_policy is Policy and not isinstance(error, (RuntimeError, ValueError)):
            raise
        why = str(error).splitlines()[0] if make_policy is Policy else f"{own_networks.told(error)}."
        raise UserError("this policy cannot be built for these observations: "
                        f"{why.replace('make_policy', 'policy=')}") from error
    if checkpoint is not None:
        try:
            content = load_checkpoint(checkpoint, to_continue)
        except CheckpointError as error:
            raise UserError(str(error)) from error
        try:
            if transfer:
                meta = training_of(content)
                if transfer not in (meta.get("skill"), meta.get("nav")):
                    raise UserError(f"{checkpoint} is a checkpoint of {of_what(meta)}, not of transfer={transfer}.")
                return str(take_over(policy, content, make_policy))
            refuse_another(content, make_policy)
            theirs, ours = seen(content), policy.seen
            other = next((key for key in {**theirs, **ours} if theirs.get(key) != ours.get(key)), None)
            if other is not None and not to_continue:
                what = " and ".join(f"{who} {'none' if key_shape is None else f'of shape {key_shape}'}" for who, key_shape in (
                    ("its policy sees", theirs.get(other)), ("this run's has", ours.get(other))))
                meta = training_of(content)
                task = meta.get("skill") or meta.get("nav")
                fits = f", or begin with what fits of it: transfer={task}" if task else ""
                raise UserError(f"{checkpoint} is a checkpoint of another network: of observation {other!r} {what}. "
                                f"Choose the settings that it was trained with{fits}.")
            policy.load_state_dict(content["policy"])
        except CheckpointError as error:
            raise UserError(f"{checkpoint} cannot be used: {str(error).replace('make_policy', 'policy=')}.") from error
        except RuntimeError as error:
            raise UserError(f"{checkpoint} is a checkpoint of another network: "
                            f"{str(error).splitlines()[-1].strip().rstrip('.')}. Choose the policy=, observations "
                            "and actions that it was trained with.") from error
    return None


def _newest_checkpoint(run: Run) -> Path | None:
    """The checkpoint to resume from; None where the run stopped before its first."""
    from trainer.checkpoint import list_checkpoints

    found = list_checkpoints(run.checkpoints)
    return found[-1] if found else None


def _step_of(checkpoint: Path | None) -> int:
    return 0 if checkpoint is None else int(checkpoint.stem.removeprefix("step_"))


def _evaluated_policy(plain: dict[str, Any], skill: str, env: dict[str, Any],
                      typed: tuple[str, ...]) -> tuple[Choice, dict[str, Any]]:
    """Who acts, and the environment: with the settings that a policy was trained with, but for what was typed."""
    from eval.policy_choice import ASKED, Choice, choose
    from eval.trained_policy import of_what, settings_of, training_of
    from trainer.checkpoint import CheckpointError, load_checkpoint

    kept = {word.split("=")[0].split(".")[1] for word in typed if "." in word.split("=")[0]}
    if plain["agent"] == "pointnav":
        return _point_goal(plain, skill), env | {"depth_size": 0} | {key: value for key, value in JUDGED.items() if key not in kept}
    if plain["agent"] != "policy":
        look = plain["agent"] == "remote" or ":" in plain["agent"]
        seen = plain["remote"]["image_size"] if look else 128 if plain["agent"] == "map" else env["depth_size"]  # others look at nothing
        if plain["agent"] == "remote":
            return Choice(skill, plain["url"], ASKED), env | {"depth_size": seen}
        return Choice(skill, plain["agent"], ASKED), env | {"depth_size": seen}
    choice = choose(plain["checkpoint"], skill, Path(plain["output"]), "checkpoint")
    try:
        meta = training_of(load_checkpoint(choice.checkpoint))
    except CheckpointError as error:
        raise UserError(str(error)) from error
    if meta.get(group_of(skill)) != skill:
        other = next((f"write {group}={meta[group]}, or "
                      "another" for group in ("skill", "nav") if group in meta), "give another")
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
    probe = _probe(Task(skill, env, 0), episodes, first, silent)
    if checkpoint is None:
        return probe
    from eval.trained_policy import check_fit
    from trainer.checkpoint import load_checkpoint
    from trainer.policy import observation_shapes
    from trainer.spaces import action_numbers, choices, flat_space

    check_fit(checkpoint, load_checkpoint(checkpoint), observation_shapes(flat_space(probe.observation_space)),
              action_numbers(probe.action_space), "this environment", network, choices(probe.action_space))
    return probe
