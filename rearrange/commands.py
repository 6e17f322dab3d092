"""What the commands do, once the command line has been checked: the glue between homes, skills, engine and evaluation.

`rearrange.cli` imports this module last; everything here may import torch and the simulator.
"""

from __future__ import annotations

import functools
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omegaconf import DictConfig, OmegaConf

from rearrange.errors import UserError

if TYPE_CHECKING:
    from rearrange.run_directory import Run

GLUE_KEYS = {"image_size"}  # of policy/*.yaml, meant for the environment's camera


def train(config: DictConfig, run: Run) -> dict[str, float]:
    """`rearrange train`: one run of the engine on one skill. Returns the final figures."""
    from trainer.checkpoint import CheckpointError
    from trainer.collect import WorkerError
    from trainer.logger import MetricsLogger
    from trainer.loop import train as run_engine
    from trainer.ppo import NonFiniteLoss
    from trainer.progress import Progress

    plain = OmegaConf.to_container(config, resolve=True)
    skill, env = env_settings(plain, plain["split"], plain["policy"]["image_size"])
    engine = engine_config(plain)
    try:
        engine.check()
    except ValueError as error:
        raise UserError(str(error)) from error
    probe = _probe(skill, env)
    engine = _per_action_std(engine, plain, probe)
    resume_from = _newest_checkpoint(run) if run.resumed else None
    run.create()
    run.say(f"{'continues' if resume_from else 'run'} {run.path}   skill {skill}   policy {plain['policy']['encoder'] or 'blind'}   "
            f"{engine.collect.num_envs} environments   {engine.steps:,} steps")
    meta = {"skill": skill, "env": _json_safe(env), "image_size": plain["policy"]["image_size"]}
    try:
        start = _step_of(resume_from) if run.resumed else None
        with MetricsLogger(run.path, plain["logger"]["wandb"], resume_step=start, config=plain) as logger, \
                Progress(engine.steps, f"train {skill}", start or 0, plain["logger"]["progress"], log=run.log) as progress:
            result = run_engine(functools.partial(_make_env, skill, env), engine, run.path, resume_from,
                                (logger.log, progress.update), meta)
    except CheckpointError as error:
        raise UserError(str(error)) from error
    except (WorkerError, NonFiniteLoss) as error:
        run.log(str(error))
        print(f"rearrange train: {error}\nThe run ended; its last checkpoint is intact. Continue with: "
              f"rearrange train skill={skill} name={run.path.name} resume=true", file=sys.stderr)
        run.finish("failed")
        raise SystemExit(1) from None
    final = {k: v for k, v in (result.history[-1] if result.history else {}).items() if k.startswith(("episode/", "step"))}
    again = f"rearrange train skill={skill} name={run.path.name} resume=true"
    if result.reason != "complete":
        run.say(f"stopped by {result.reason} after {result.steps:,} steps; saved {result.checkpoint}. Continue with: {again}")
        raise KeyboardInterrupt
    for line in progress.curve():
        run.say(line)
    run.say(f"done: {result.steps:,} steps, {result.checkpoint}")
    run.say(f"next: rearrange eval skill={skill} checkpoint={run.path} video=3")
    return final


def evaluate(config: DictConfig, run: Run) -> dict[str, float]:
    """`rearrange eval`: success over many episodes, metrics.json, episodes.csv and videos."""
    from eval import evaluate as evaluation
    from eval.report import print_table

    plain = OmegaConf.to_container(config, resolve=True)
    skill, env = env_settings(plain, plain["split"], 0)
    checkpoint, env = _evaluated_policy(plain, skill, env)
    if plain["video"]:
        env["depth_size"] = env["depth_size"] or 128  # videos show the depth image also for policies that do not see
        env["render_mode"] = "rgb_array"
    env = _fit_to_policy(skill, env, checkpoint)
    run.create()
    job = evaluation.Job(skill, env, plain["agent"], checkpoint and str(checkpoint), plain["episodes"], plain["seed"],
                         plain["deterministic"], plain["video"], str(run.videos))
    run.say(f"eval {run.path}   skill {skill}   agent {plain['agent']}" + (f" {checkpoint}" if checkpoint else ""))
    from trainer.progress import counting

    with counting(plain["episodes"], f"eval {skill}") as progress:
        results = evaluation.evaluate(job, plain["workers"], progress)
    figures = evaluation.summary(job, results)
    evaluation.write(run.path, figures, results)
    print_table(figures, run)
    return {"success": figures["success"], "mean_steps": figures["mean_steps"]}


def bench(config: DictConfig, run: Run) -> dict[str, float]:
    """`rearrange bench <what>`: measurements on this machine."""
    from importlib import import_module

    plain = OmegaConf.to_container(config, resolve=True)
    run.create()
    return import_module(f"eval.bench_{plain['what']}").run_bench(plain, run)


def list_(config: DictConfig) -> None:
    """`rearrange list`."""
    from rearrange.listing import show

    show(config)


def engine_config(plain: dict[str, Any]):
    """TrainConfig from the plain settings of `rearrange train`."""
    from trainer.config import CollectConfig, PolicyConfig, PPOConfig, TrainConfig

    policy = {k: v for k, v in plain["policy"].items() if k not in GLUE_KEYS}
    ppo = plain["ppo"] | {"entropy_bounds": tuple(plain["ppo"]["entropy_bounds"])}
    if isinstance(policy["log_std_init"], list):
        policy["log_std_init"] = tuple(policy["log_std_init"])
    keys = ("steps", "seed", "device", "torch_threads", "checkpoint_every_s", "log_every_s", "episode_window")
    return TrainConfig(**{k: plain[k] for k in keys}, policy=PolicyConfig(**policy), ppo=PPOConfig(**ppo),
                       collect=CollectConfig(**plain["trainer"]))


def env_settings(plain: dict[str, Any], split: str, image_size: int) -> tuple[str, dict[str, Any]]:
    """Skill name and the settings that `skills.make_env` takes."""
    skill = {k: v for k, v in plain["skill"].items() if k not in ("name", "initial_std")}
    sim = {("sim" if k == "name" else k): v for k, v in plain["sim"].items() if v is not None}
    return plain["skill"]["name"], skill | sim | {"split": split, "depth_size": image_size}


def _make_env(skill: str, env: dict[str, Any]):
    """In a worker process: one environment."""
    from skills import make_env

    return make_env(skill, **env)


def _probe(skill: str, env: dict[str, Any]):
    """Build one environment here first: a setting that cannot work is told before anything is written or started."""
    return _make_env(skill, env)


def _per_action_std(engine, plain: dict[str, Any], env):
    """The initial standard deviation of each part of the action, where the skill names one (skill.initial_std)."""
    import dataclasses
    import math

    stds = plain["skill"].get("initial_std")
    if not stds or isinstance(engine.policy.log_std_init, tuple):
        return engine
    known = [name for name, _ in env.action_parts]
    values: list[float] = []
    for name, part in env.action_parts:
        std = stds.get(name)
        values += [engine.policy.log_std_init if std is None else math.log(std)] * (part.stop - part.start)
    return dataclasses.replace(engine, policy=dataclasses.replace(engine.policy, log_std_init=tuple(values))) if known else engine


def _newest_checkpoint(run: Run) -> Path | None:
    """The checkpoint to resume from; None where the run stopped before its first."""
    from trainer.checkpoint import list_checkpoints

    found = list_checkpoints(run.checkpoints)
    return found[-1] if found else None


def _step_of(checkpoint: Path | None) -> int:
    return 0 if checkpoint is None else int(checkpoint.stem.removeprefix("step_"))


def _evaluated_policy(plain: dict[str, Any], skill: str, env: dict[str, Any]) -> tuple[Path | None, dict[str, Any]]:
    """Checkpoint file and the environment it was trained with; baselines need none."""
    if plain["agent"] != "policy":
        return None, env
    from rearrange.run_directory import find_run
    from trainer.checkpoint import CheckpointError, load_checkpoint, newest

    try:
        path = newest(Path(plain["checkpoint"]) if plain["checkpoint"] else find_run(Path(plain["output"]), "train", skill))
        content = load_checkpoint(path)
    except CheckpointError as error:
        raise UserError(str(error)) from error
    meta = content.get("meta", {})
    if meta.get("skill") != skill:
        raise UserError(f"{path} is a checkpoint of skill {meta.get('skill')}, not of {skill}: write skill={meta.get('skill')}, or "
                        f"another checkpoint=.")
    env["depth_size"] = meta["image_size"]
    for key in ("action_parts", "observation_keys"):  # what the network was built for
        env[key] = meta["env"][key]
    return path, env


def _fit_to_policy(skill: str, env: dict[str, Any], checkpoint: Path | None) -> dict[str, Any]:
    """Refuse a checkpoint whose spaces are not those of the environment."""
    probe = _probe(skill, env)
    if checkpoint is None:
        return env
    from trainer.checkpoint import CheckpointError, load_checkpoint, load_policy
    from trainer.policy import observation_shapes

    try:
        policy = load_policy(load_checkpoint(checkpoint))
    except CheckpointError as error:
        raise UserError(str(error)) from error
    shapes = observation_shapes(probe.observation_space)
    missing = [k for k in (*policy.vector_keys, *policy.image_keys) if k not in shapes]
    if missing or policy.action_size != probe.action_space.shape[0]:
        raise UserError(f"{checkpoint} does not fit this environment: it needs observations {policy.vector_keys + policy.image_keys} "
                        f"and {policy.action_size} actions; the environment gives {list(shapes)} and {probe.action_space.shape[0]}.")
    return env


def _json_safe(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _json_safe(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json_safe(v) for v in value]
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)
