"""One run of Sample Factory 2 (Petrenko et al. 2020) on an EnvPool task, in its own interpreter (it needs numpy < 2,
gymnasium < 1):

    python benchmarks/batched_sample_factory.py '{"task": ...}'

One process with batched sampling, as its own EnvPool examples are set up; network, N, T, epochs and mini-batches are
the job's.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import sys
import tempfile

os.environ["OMP_NUM_THREADS"] = "1"  # as the others; torch reads it when it is imported

import envpool
import gymnasium
import numpy as np
from clock import Clock
from sample_factory.algo.runners.runner import AlgoObserver
from sample_factory.cfg.arguments import parse_full_cfg, parse_sf_args
from sample_factory.envs.env_utils import register_env
from sample_factory.train import make_runner


class Pool(gymnasium.Env):
    """EnvPool's environments with what Sample Factory asks of a batch: they begin anew in the step that ends an
    episode.
    """

    is_multiagent = True

    def __init__(self, job):
        self.pool, self.num_agents = envpool.make_gymnasium(job["task"], num_envs=job["num_envs"],
                                                            seed=job["seed"]), job["num_envs"]
        self.observation_space, self.action_space = self.pool.observation_space, self.pool.action_space

    def reset(self, **kwargs):
        return self.pool.reset()

    def step(self, actions):
        seen, reward, terminated, truncated, info = self.pool.step(np.asarray(actions))
        if (over := np.flatnonzero(terminated | truncated)).size:
            seen[over] = self.pool.reset(over.astype(np.int32))[0]
        return seen, reward, terminated, truncated, {}


def make_pool(job, name, cfg=None, env_config=None, render_mode=None):
    return Pool(job)


class Watch(AlgoObserver):
    def __init__(self, clock):
        self.clock = clock

    def on_training_step(self, runner, training_iteration_since_resume: int) -> None:
        if self.clock.tick(sum(runner.env_steps.values())):
            runner.cfg.train_for_env_steps = 0


def main(job):
    register_env("pool", functools.partial(make_pool, job))
    with tempfile.TemporaryDirectory() as folder:
        settings = {"env": "pool", "experiment": "run", "train_dir": folder, "device": "cpu", "seed": job["seed"],
                    "algo": "APPO", "batched_sampling": True, "serial_mode": True, "async_rl": False, "num_workers": 1,
                    "num_envs_per_worker": 1, "worker_num_splits": 1, "use_rnn": False, "recurrence": 1,
                    "rollout": job["rollout_steps"],
                    "batch_size": job["num_envs"] * job["rollout_steps"] // job["mini_batches"],
                    "num_batches_per_epoch": job["mini_batches"], "num_epochs": job["epochs"],
                    "actor_critic_share_weights": False, "nonlinearity": "tanh", "adaptive_stddev": False,
                    "normalize_input": True, "normalize_returns": True, "shuffle_minibatches": True,
                    "save_every_sec": 10**6, "save_best_every_sec": 10**6, "experiment_summaries_interval": 10**6,
                    "train_for_env_steps": 10**12}
        words = [f"--{key}={value}" for key, value in settings.items()] + ["--encoder_mlp_layers", "64", "64"]
        parser, _ = parse_sf_args(words)
        cfg, runner = make_runner(parse_full_cfg(parser, words))
        clock = Clock(job["seconds"])
        runner.register_observer(Watch(clock))
        if runner.init() != 0 or runner.run() != 0 or len(clock.ticks) < 2:
            sys.exit("Sample Factory failed.")
    return clock.result()


if __name__ == "__main__":
    try:
        with contextlib.redirect_stdout(sys.stderr):
            result = main(json.loads(sys.argv[1]))
        print(json.dumps(result))
    except KeyboardInterrupt:
        sys.exit(130)
