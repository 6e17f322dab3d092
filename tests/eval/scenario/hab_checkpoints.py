"""Small untrained policies as checkpoints, with the settings that training would leave in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from eval import task_from_settings
from trainer.checkpoint import FORMAT, policy_content
from trainer.config import PolicyConfig
from trainer.policy import Policy


def untrained(folder: Path, skill: str, image_size: int = 0, seed: int = 0, **env: Any) -> Path:
    """A checkpoint of `skill`, or of a navigation task; `env`: settings of its environment that it says it was trained
    with."""
    made = task_from_settings.make_env(skill, depth_size=image_size, **env)
    torch.manual_seed(seed)
    policy = Policy(made.observation_space, made.action_space,
                    PolicyConfig(encoder="light" if image_size else None, lstm_layers=1, hidden_size=32,
                                 log_std_init=-1.0))
    content = policy_content(policy, made.observation_space, made.action_space)
    meta = {task_from_settings.group_of(skill): skill, "env": env | {"split": "train", "depth_size": image_size},
            "image_size": image_size}
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{skill}.pt"
    torch.save(content | {"format": FORMAT, "step": 0, "meta": meta}, path)
    return path
