"""One run of the engine or of Stable-Baselines3 on an EnvPool task: `python -m benchmarks.batched_run '{"task":
...}'`.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from benchmarks.batched_clock import Clock

if TYPE_CHECKING:
    from trainer.callbacks import TrainState


def ours(job: dict[str, Any], clock: Clock, batch_size: int | None = None) -> None:
    """The engine, one process. `batch_size`: asynchronous, whoever is ready first."""
    import envpool

    from trainer import CollectConfig, PPOConfig, TrainConfig, train

    def make_env() -> Any:
        return envpool.make_gymnasium(job["task"], num_envs=job["num_envs"], seed=job["seed"],
                                      batch_size=batch_size or job["num_envs"])

    class Watch:
        def at_log(self, state: TrainState) -> str | None:
            return "measured" if clock.tick(state.step) else None

    train(make_env, TrainConfig(steps=10**12, seed=job["seed"], log_every_s=1e-9, torch_threads=1, device="cpu",
                                ppo=PPOConfig(epochs=job["epochs"], mini_batches=job["mini_batches"]),
                                collect=CollectConfig(num_workers=0, num_envs=job["num_envs"],
                                                      rollout_steps=job["rollout_steps"])), callbacks=(Watch(),))


def asynchronous(job: dict[str, Any], clock: Clock) -> None:
    """VER on what EnvPool's `recv` gives: half of the environments at a time."""
    ours(job, clock, max(1, job["num_envs"] // 2))


def sb3(job: dict[str, Any], clock: Clock) -> None:
    """Stable-Baselines3's PPO, with its own normalisation."""
    import envpool
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.vec_env import VecMonitor, VecNormalize
    from stable_baselines3.common.vec_env.base_vec_env import VecEnv

    class Pool(VecEnv):
        def __init__(self) -> None:
            self.pool = envpool.make_gymnasium(job["task"], num_envs=job["num_envs"], seed=job["seed"])
            self.render_mode = None
            super().__init__(job["num_envs"], self.pool.observation_space, self.pool.action_space)

        def reset(self) -> np.ndarray:
            return self.pool.reset()[0]

        def step_async(self, actions: np.ndarray) -> None:
            self.actions = actions

        def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
            seen, reward, terminated, truncated, _ = self.pool.step(self.actions)
            over = terminated | truncated
            told: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
            if over.any():  # SB3 expects the first observation of the next episode
                for i in np.flatnonzero(over):
                    told[i] = {"terminal_observation": seen[i].copy(),
                               "TimeLimit.truncated": bool(truncated[i] and not terminated[i])}
                seen[over] = self.pool.reset(np.flatnonzero(over).astype(np.int32))[0]
            return seen, reward, over, told

        def close(self) -> None:
            self.pool.close()

        def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
            return [getattr(self, attr_name)] * self.num_envs

        def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
            setattr(self, attr_name, value)

        def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
            return [getattr(self.pool, method_name)(*args, **kwargs)] * self.num_envs

        def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
            return [False] * self.num_envs

    class Watch(BaseCallback):
        going = True

        def _on_rollout_start(self) -> None:  # also after every update
            if self.num_timesteps:
                self.going = not clock.tick(self.num_timesteps)

        def _on_step(self) -> bool:
            return self.going

    rollout = job["num_envs"] * job["rollout_steps"]
    PPO("MlpPolicy", VecNormalize(VecMonitor(Pool())), n_steps=job["rollout_steps"],
        batch_size=rollout // job["mini_batches"], n_epochs=job["epochs"], seed=job["seed"],
        device="cpu").learn(10**9, callback=Watch())


def main(job: dict[str, Any]) -> dict[str, Any]:
    """The steps of the job, and what they cost: seconds, and seconds of all processors in this process."""
    torch.set_num_threads(1)
    clock = Clock(job["seconds"])
    globals()[job["trainer"]](job, clock)
    return clock.result()


if __name__ == "__main__":
    try:
        print(json.dumps(main(json.loads(sys.argv[1]))))
    except KeyboardInterrupt:
        sys.exit(130)
