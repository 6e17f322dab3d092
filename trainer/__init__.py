"""The VER training engine: trains any Gymnasium environment, knows nothing of homes or robots.

    import gymnasium as gym
    from trainer import TrainConfig, train
    result = train(lambda: gym.make("Pendulum-v1"), TrainConfig(steps=100_000))

Names are loaded on first use, so that environment workers, which import only `trainer.workers`, never load torch.
"""

_HOME = {
    "train": "loop", "TrainResult": "loop", "TrainConfig": "config", "PPOConfig": "config", "PolicyConfig": "config",
    "CollectConfig": "config", "Policy": "policy", "load_checkpoint": "checkpoint", "load_policy": "checkpoint",
    "Player": "player",
}
__all__ = list(_HOME)


def __getattr__(name: str):
    if name not in _HOME:
        raise AttributeError(f"module 'trainer' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(f"trainer.{_HOME[name]}"), name)
