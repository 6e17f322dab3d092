"""The engine's settings, from those of the command line."""

from __future__ import annotations

import dataclasses
import math
import os
import warnings
from typing import Any

from eval.task_from_settings import Task
from rearrange.command_line.composition.options import engine_config
from rearrange.home.errors import UserError
from trainer.config import TrainConfig

__all__ = ["check_device", "crowded", "engine_config", "per_action"]

MOST_A_CORE = 4  # processes of environments, before more of them are warned of


def per_action(engine: TrainConfig, task: Task, env: Any) -> TrainConfig:
    """Initial mean and standard deviation of each part of the action, where the skill or scenario names them
    (initial_mean, initial_std of `skill` or `whole_task`).
    """
    if task.initial is None:
        return engine
    policy, changes = engine.policy, {}
    for key, field, convert in (("initial_mean", "mean_init", float), ("initial_std", "log_std_init", math.log)):
        chosen, default = task.initial.get(key), getattr(policy, field)
        if not chosen or isinstance(default, tuple):
            continue
        values: list[float] = []
        for name, part in env.action_parts:
            value = chosen.get(name)
            values += [default if value is None else convert(value)] * (part.stop - part.start)
        changes[field] = tuple(values)
    return dataclasses.replace(engine, policy=dataclasses.replace(policy, **changes))


def crowded(engine: TrainConfig) -> str | None:
    """A warning of many more environment processes than the machine has cores."""
    asked, cores = engine.collect.num_workers or 0, os.cpu_count() or 1
    if asked <= MOST_A_CORE * cores:
        return None
    return (f"warning: trainer.num_workers={asked} is far above the number of cores of this machine ({cores}), which "
            f"{min(asked, engine.collect.num_envs)} processes of environments will share; null starts one a core.")


def check_device(engine: TrainConfig) -> None:
    """Refuse a device that is not there, or that holds no numbers."""
    import torch

    try:
        with warnings.catch_warnings(action="ignore"):  # the refusal says it
            if engine.device != "auto":
                torch.zeros(1, device=engine.device).item()
    except (RuntimeError, AssertionError, ImportError) as error:
        why = str(error).splitlines()[0].split(". ")[0].rstrip(".")
        if why.startswith("Expected one of"):  # and then all that PyTorch knows
            raise UserError(f"device={engine.device} is not a device: choose auto, cpu, cuda or cuda:0.") from None
        raise UserError(f"device={engine.device} cannot be used here: {why}. Choose auto or cpu.") from None
