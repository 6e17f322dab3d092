"""One run of one trainer on one task, as a process of its own: `python -m eval.bench.gym.one_run '{"task": ...}'`.

The curve is the mean return of the newest 100 episodes. Time includes the start of what the trainer starts, and not
that of Python.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections import deque
from typing import Any

import torch

from eval.bench.gym.tasks import TASKS, Task

EPISODES, POINTS = 100, 60  # in the mean, of a curve
Curve = list[tuple[int, float]]


def ours(task: Task, steps: int, seed: int) -> Curve:
    """The engine with its defaults, on one core; with a memory where the task needs one."""
    from trainer import CollectConfig, PolicyConfig, TrainConfig, train

    config = TrainConfig(steps=steps, seed=seed, log_every_s=1e-9, episode_window=EPISODES, torch_threads=1,
                         device="cpu", policy=PolicyConfig(lstm_layers=int(task.memory)),
                         collect=CollectConfig(num_workers=1))
    result = train(task.make, config)
    if result.reason != "complete":
        raise KeyboardInterrupt
    return [(int(row["step"]), row["episode/return"]) for row in result.history if "episode/return" in row]


def sb3(task: Task, steps: int, seed: int) -> Curve:
    """Stable-Baselines3's PPO with its defaults."""
    from stable_baselines3 import PPO

    return _learn(PPO, _policy(task, "MlpPolicy"), _environments(task, seed), steps, seed)


def cleanrl(task: Task, steps: int, seed: int) -> Curve:
    """The settings of CleanRL's ppo_continuous_action, run through Stable-Baselines3."""
    from stable_baselines3 import PPO
    from stable_baselines3.common.vec_env import VecNormalize

    environments = _environments(task, seed)
    vectors = len(environments.observation_space.shape) == 1
    environments = VecNormalize(environments, norm_obs=vectors, norm_reward=True, clip_obs=10.0, clip_reward=10.0,
                                gamma=0.99)
    return _learn(PPO, _policy(task, "MlpPolicy"), environments, steps, seed, n_steps=2048, batch_size=64, n_epochs=10,
                  gamma=0.99, gae_lambda=0.95, clip_range=0.2, clip_range_vf=0.2, ent_coef=0.0, vf_coef=0.5,
                  max_grad_norm=0.5, learning_rate=lambda left: 3e-4 * left)


def recurrent(task: Task, steps: int, seed: int) -> Curve:
    """sb3-contrib's RecurrentPPO with its defaults."""
    from sb3_contrib import RecurrentPPO

    return _learn(RecurrentPPO, _policy(task, "MlpLstmPolicy"), _environments(task, seed), steps, seed)


def _policy(task: Task, name: str) -> str:
    return name.replace("Mlp", "Cnn") if len(task.make().observation_space.shape) == 3 else name


def _environments(task: Task, seed: int) -> Any:
    from stable_baselines3.common.env_util import make_vec_env

    return make_vec_env(task.make, 1, seed=seed)


def _learn(kind: type, policy: str, environments: Any, steps: int, seed: int, **settings: Any) -> Curve:
    from stable_baselines3.common.callbacks import BaseCallback

    curve: Curve = []

    class Episodes(BaseCallback):
        newest: deque[float] = deque(maxlen=EPISODES)

        def _on_step(self) -> bool:
            self.newest.extend(info["episode"]["r"] for info in self.locals["infos"] if "episode" in info)
            return True

        def _on_rollout_end(self) -> None:
            if self.newest:
                curve.append((self.num_timesteps, sum(self.newest) / len(self.newest)))

    kind(policy, environments, seed=seed, device="cpu", **settings).learn(steps, callback=Episodes())
    return curve


def main(job: dict[str, Any]) -> dict[str, Any]:
    """The job, with its curve and what it cost: seconds, and seconds of all processors in this process and its
    children."""
    torch.set_num_threads(1)
    began, before = time.perf_counter(), _processor_s()
    curve = globals()[job["trainer"]](TASKS[job["task"]], job["steps"], job["seed"])
    wall_s, cpu_s = time.perf_counter() - began, _processor_s() - before
    every = max(1, len(curve) // POINTS)
    return job | {"curve": curve[::-1][::every][::-1], "wall_s": wall_s, "cpu_s": cpu_s}


def _processor_s() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


if __name__ == "__main__":
    try:
        print(json.dumps(main(json.loads(sys.argv[1]))))
    except KeyboardInterrupt:
        sys.exit(130)
