"""The VER training engine of rearrange: trains any Gymnasium environment, knows nothing of homes or robots.

    import gymnasium as gym
    from trainer import TrainConfig, train
    result = train(lambda: gym.make("Pendulum-v1"), TrainConfig(steps=100_000))

Names are loaded on first use, so that environment workers, which import only `trainer.workers.worker`, never load
torch.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainer.checkpoint import load_checkpoint, load_policy
    from trainer.config import CollectConfig, PolicyConfig, PPOConfig, TrainConfig
    from trainer.errors import CheckpointError, WorkerError
    from trainer.loop import TrainResult, train
    from trainer.player import Player
    from trainer.policy import Policy

# Read when torch is loaded. Threads that wait by spinning take processor time like those that work: beside other
# programs an update with two took ten times the processor time of two that sleep (blind Pick, in turn).
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

__all__ = ["CheckpointError", "CollectConfig", "PPOConfig", "Player", "Policy", "PolicyConfig", "TrainConfig",
           "TrainResult", "WorkerError", "load_checkpoint", "load_policy", "train"]
_HOME = {
    "train": "loop", "TrainResult": "loop", "TrainConfig": "config", "PPOConfig": "config", "PolicyConfig": "config",
    "CollectConfig": "config", "Policy": "policy", "load_checkpoint": "checkpoint", "load_policy": "checkpoint",
    "CheckpointError": "errors", "Player": "player", "WorkerError": "errors",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'trainer' has no attribute '{name}'")
    return getattr(import_module(f"trainer.{_HOME[name]}"), name)
