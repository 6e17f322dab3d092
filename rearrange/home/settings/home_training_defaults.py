"""The engine's settings as the homes have them: where they were measured, and differ from what `trainer.train` begins
with."""

from __future__ import annotations

from dataclasses import dataclass

from rearrange.home.settings.setting_fields import like
from trainer.config import CollectConfig, PolicyConfig, PPOConfig


@dataclass(frozen=True)
class HomePolicy(PolicyConfig):
    """Network of a policy in a home."""

    hidden_size: int = like(PolicyConfig, "hidden_size", 128)
    lstm_layers: int = like(PolicyConfig, "lstm_layers", 1)
    body_size: int = like(PolicyConfig, "body_size", 256)
    learn_precision: str = like(PolicyConfig, "learn_precision", "auto")
    log_std_init: float | tuple[float, ...] = like(PolicyConfig, "log_std_init", -0.5)


@dataclass(frozen=True)
class HomePPO(PPOConfig):
    """PPO in a home: what learns fastest on a small budget of steps and a CPU."""

    epochs: int = like(PPOConfig, "epochs", 3)
    mini_batches: int = like(PPOConfig, "mini_batches", 4)
    learning_rate: float = like(PPOConfig, "learning_rate", 7e-4)
    schedule: str = like(PPOConfig, "schedule", "cosine")
    reward_scale: float = like(PPOConfig, "reward_scale", 0.1)


@dataclass(frozen=True)
class HomeCollect(CollectConfig):
    """Collection in homes."""

    num_envs: int = like(CollectConfig, "num_envs", 32)
    rollout_steps: int = like(CollectConfig, "rollout_steps", 128)
