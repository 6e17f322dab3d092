"""`rearrange train`: from settings to a run directory. The glue between homes, skills and the engine."""

from __future__ import annotations

import dataclasses
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval.engine_settings import check_device, crowded, engine_config, per_action
from eval.skill_command import probe_env
from eval.task_from_settings import Task, held_out, training_task
from rearrange.home.errors import UserError
from rearrange.home.settings import own_networks
from rearrange.home.settings.engine_messages import in_keys
from rearrange.home.settings.installed_parts import NETWORKS, told
from rearrange.home.settings.setting_fields import plain_of
from trainer.config import OF_THE_WEIGHTS

if TYPE_CHECKING:
    import gymnasium

    from eval.recording.demonstrations import Recording
    from rearrange.command_line.composition.options import TrainOptions
    from rearrange.command_line.runs.run_directory import Run
    from trainer.config import TrainConfig
    from trainer.loop import TrainResult


def train(options: TrainOptions, run: Run) -> dict[str, float] | None:
    """`rearrange train`: one run of the engine on one task. Returns the final figures; None where a signal ended it in
    good order."""
    from trainer.errors import CheckpointError, NonFinite, RankError, WorkerError
    from trainer.logs.run_files import recording
    from trainer.policy import Policy
    from trainer.ranks import rank_watch

    rank_watch.before_forced_end = lambda: run.finish("failed")
    task = training_task(options)
    resume_from = _newest_checkpoint(run) if run.resumed else None
    begun_with, transfer = options.checkpoint, options.transfer
    start_from = None if resume_from else _first_policy(begun_with, task, transfer)
    learned = _network_of(resume_from or start_from, options)
    run.settings.values.update({f"policy.{name}": value for name, value in learned.items()})
    options = dataclasses.replace(options, policy=dataclasses.replace(options.policy, **learned))
    network = options.policy.network
    make_policy = own_networks.load(network, "policy") if network else Policy
    engine = engine_config(options)
    try:
        engine.check()
    except ValueError as error:
        raise UserError(in_keys(error)) from error
    probe = probe_env(task, silent=run.silent)
    engine = per_action(engine, task, probe)
    meta = task.meta() | ({"started_from": begun_with} if begun_with else {}) | ({"network": network} if network
                                                                                 else {})
    other = transfer if start_from else None
    taken = _check_network(engine, probe, make_policy, resume_from or start_from, bool(resume_from), other)
    phases = _phases(engine, options, task, probe, _step_of(resume_from), run)
    run.create()
    if run.resumed and _newest_checkpoint(run) != resume_from:  # before the directory was this process's own
        raise UserError(f"another process has just worked in {run.path}; repeat the command.")
    is_whole = phases[-1].demonstrations or engine.last_step() == engine.steps
    whole = "" if is_whole else f", in whole rollouts of {engine.steps_per_rollout:,}"
    run.say(f"{'continues' if resume_from else 'run'} {run.path}   {task.word.replace('=', ' ')}   "
            f"policy {network or options.policy.encoder or 'blind'}   {engine.collect.num_envs} environments   "
            f"{engine.steps:,} steps{whole}")
    for line in (taken, crowded(engine)):
        if line:
            run.say(line)
    for phase in phases:
        for line in phase.lines:
            run.say(line)
    where = "" if options.output == "outputs" else f" output={shlex.quote(options.output)}"
    name = "" if run.silent and options.name is None else f" name={shlex.quote(run.path.name)}"
    again = f"rearrange train {task.word}{name}{where}{NETWORKS.as_typed('policy', network)} resume=true"
    try:
        if run.silent:  # of several ranks, the first writes and prints
            result = _one_after_another(phases, task.make, make_policy=make_policy, transfer=bool(other))
            run.stopped_by = result.reason
            return {} if result.reason == "complete" else None
        wandb = plain_of(options.logger.wandb) if options.logger.wandb else None
        with recording(run.path, engine, _step_of(resume_from), f"train {task.name}", options.logger.progress,
                       run.log, wandb, run.settings.config) as (logger, progress):
            if phases[-1].demonstrations:
                progress.total = engine.steps  # not whole rollouts
            result = _one_after_another(phases, task.make, resume_from, start_from, run_dir=run.path, meta=meta,
                                        make_policy=make_policy, callbacks=(run, logger, progress),
                                        transfer=bool(other),
                                        eval_env=held_out(task, options.eval_split, engine.eval_film).make)
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
    final = {k: v for k, v in (result.history[-1] if result.history else {}).items()
             if k.startswith(("episode/", "step"))}
    if result.reached:
        run.say(f"{result.reason}, as good as stop_at={engine.stop_at:g}")
    elif result.reason != "complete":
        # another process works in the place of this run
        if result.checkpoint and result.checkpoint.parent != run.checkpoints:
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
            f"{who}checkpoint={shlex.quote(str(run.path))}{NETWORKS.as_typed('network', network)} video=3")
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
        result = run_engine(make, phase.engine, resume_from=resume_from, start_from=start_from,
                            demonstrations=phase.demonstrations, **others)
        if result.reason != "complete" or result.unsaved_steps:
            break
        resume_from, start_from = result.checkpoint, None
    return result


def _phases(engine: TrainConfig, options: TrainOptions, task: Task, env: gymnasium.Env, done: int,
            run: Run) -> list[_Phase]:
    """What is left of a training of which so many steps are done: from demonstrations, in homes, or first one and
    then the other."""
    folder, steps = options.demos, options.demos_steps
    if folder is None:
        given = {"demos_steps": steps, "demos_episodes": options.demos_episodes}
        if unused := next((key for key, value in given.items() if value is not None), None):
            raise UserError(f"{unused}={given[unused]} needs demos=, the folder of a recording.")
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

    shown = Recording(Path(folder), task.name, env, options.demos_episodes, run.silent)
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


def _network_of(checkpoint: Path | None, options: TrainOptions) -> dict[str, Any]:
    """The settings of the policy that a checkpoint's weights were learned with, but for those that were typed."""
    from trainer.checkpoint import CheckpointError, load_checkpoint, policy_config

    if checkpoint is None:
        return {}
    try:
        content = load_checkpoint(checkpoint)
    except CheckpointError as error:
        raise UserError(str(error)) from error
    learned = policy_config(content["policy_config"])
    typed = options.typed("policy")
    return {name: getattr(learned, name) for name in OF_THE_WEIGHTS if name not in typed}


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


def _check_network(engine, env, make_policy, checkpoint: Path | None, to_continue: bool = False,
                   transfer: str | None = None) -> str | None:
    """Refuse a device that is not there, what does not fit into memory, and a network that does not fit the
    environment or the checkpoint to go on from. What is taken over of one of the task `transfer`, in words."""
    from eval.trained_policy import of_what, training_of
    from trainer.checkpoint import CheckpointError, load_checkpoint, seen
    from trainer.checkpoints.transfer import take_over
    from trainer.machine import check_memory
    from trainer.networks import make, refuse_another
    from trainer.policy import Policy
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
        why = str(error).splitlines()[0] if make_policy is Policy else f"{told(error)}."
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
                what = " and ".join(
                    f"{who} {'none' if key_shape is None else f'of shape {key_shape}'}"
                    for who, key_shape in (("its policy sees", theirs.get(other)), ("this run's has", ours.get(other))))
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
