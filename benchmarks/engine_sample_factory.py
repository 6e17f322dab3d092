"""A job of the engine benchmark with Sample Factory 2 (Petrenko et al. 2020), asynchronous PPO, as the peer.

Sample Factory needs numpy < 2 and gymnasium < 1, so it lives in an interpreter of its own, which runs this file:

    python benchmarks/engine_sample_factory.py <job.json>

The environments, the image encoder and the pretended device are the files that our engine uses; network, N, T, epochs
and mini-batches are the job's. Everything else is Sample Factory's default, but for what would change the network or
the work: no input or return normalisation, no pinning to cores, no random steps in the beginning.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))  # last: packages of the peer's own environment come first

import gymnasium  # noqa: E402
import torch  # noqa: E402
from sample_factory.algo.runners.runner import AlgoObserver  # noqa: E402
from sample_factory.algo.utils.context import global_model_factory  # noqa: E402
from sample_factory.cfg.arguments import parse_full_cfg, parse_sf_args  # noqa: E402
from sample_factory.envs.env_utils import register_env  # noqa: E402
from sample_factory.model.actor_critic import default_make_actor_critic_func  # noqa: E402
from sample_factory.model.encoder import Encoder  # noqa: E402
from sample_factory.train import make_runner  # noqa: E402
from torch import nn  # noqa: E402

from benchmarks.engine_job import NETWORKS, Clock, count_processes, make_env, peak_mib  # noqa: E402
from benchmarks.pretended_network import PooledEncoder  # noqa: E402
from trainer.nets.encoders import LightEncoder  # noqa: E402

if not hasattr(gymnasium.Env, "np_random_seed"):  # gymnasium < 1 does not keep the seed; homes ask for it
    gymnasium.Env.np_random_seed = 0


class SameNetwork(Encoder):
    """The part of `trainer.policy.Policy` before the LSTM: image encoder, vectors, MLP. (The previous action, which our
    policy also sees, is not offered by Sample Factory.)"""

    def __init__(self, cfg, obs_space):
        super().__init__(cfg)
        job = read_job(cfg)
        kind, embedding, body, layers, _ = NETWORKS[job["network"]]
        shapes = {k: space.shape for k, space in obs_space.spaces.items()}
        self.image_keys = [k for k, shape in shapes.items() if len(shape) == 3 and kind]
        self.vector_keys = [k for k, shape in shapes.items() if len(shape) != 3]
        width = sum(shapes[k][0] for k in self.vector_keys) + embedding * len(self.image_keys)
        self.images = nn.ModuleDict({k: _encoder(job, kind, shapes[k], embedding) for k in self.image_keys})
        mlp: list[nn.Module] = []
        for _ in range(layers):
            mlp += [nn.Linear(width, body), nn.Tanh()]
            width = body
        self.body, self.width = nn.Sequential(*mlp), width

    def forward(self, obs):
        parts = [obs[k] for k in self.vector_keys] + [self.images[k](obs[k]) for k in self.image_keys]
        return self.body(torch.cat(parts, -1))

    def get_out_size(self) -> int:
        return self.width


def make_actor_critic(cfg, obs_space, action_space):
    """Sample Factory's actor-critic, whose first actions are as close to zero as those of our policy."""
    model = default_make_actor_critic_func(cfg, obs_space, action_space)
    nn.init.orthogonal_(model.action_parameterization.distribution_linear.weight, 0.01)
    return model


def _encoder(job, kind, shape, embedding):
    if kind == "pooled":
        return PooledEncoder(shape, embedding, job["device_time"], job["time_scale"])
    return LightEncoder(shape, embedding)


def read_job(cfg) -> dict:
    return json.loads(Path(cfg.job).read_text(encoding="utf-8"))


def make_named_env(name, cfg=None, env_config=None, render_mode=None):
    """Sample Factory's factory of environments; it also builds one to look at the spaces, which never steps."""
    return make_env(read_job(cfg))


class StopByClock(AlgoObserver):
    """Notes every training step and ends the run when the clock says so."""

    def __init__(self, job: dict):
        self.job, self.clock, self.processes = job, Clock(job), 0

    def on_training_step(self, runner, training_iteration_since_resume: int) -> None:
        self.processes = max(self.processes, count_processes())
        # Sample Factory's versions are gradient steps; here an update is all of them over a rollout
        lag = float(runner.policy_lag[0].get("version_diff_avg", 0.0)) / (self.job["epochs"] * self.job["mini_batches"])
        if self.clock.tick(steps=sum(runner.env_steps.values()), lag=lag):
            runner.cfg.train_for_env_steps = 0


def arguments(job: dict, path: Path) -> list[str]:
    """The command line of Sample Factory for a job."""
    hidden = NETWORKS[job["network"]][4]
    batch = job["num_envs"] * job["rollout_steps"] // job["mini_batches"]
    per_worker = job["num_envs"] // job["num_workers"]
    settings = {"env": "bench", "experiment": "run", "train_dir": path.parent / "sample_factory",
                "restart_behavior": "overwrite", "device": "cpu", "seed": job["seed"], "job": path, "algo": "APPO",
                "async_rl": True, "num_workers": job["num_workers"], "num_envs_per_worker": per_worker,
                "worker_num_splits": 2 if per_worker % 2 == 0 else 1,
                "policy_workers_per_policy": job["inference_workers"], "rollout": job["rollout_steps"],
                "recurrence": job["rollout_steps"] if hidden else 1, "batch_size": batch,
                "num_batches_per_epoch": job["mini_batches"], "num_epochs": job["epochs"],
                "learning_rate": job["learning_rate"], "use_rnn": bool(hidden), "rnn_type": "lstm",
                "rnn_size": hidden or 1, "rnn_num_layers": 1, "adaptive_stddev": False, "initial_stddev": 0.6065,
                "reward_scale": 1.0, "exploration_loss_coeff": 0.0, "normalize_input": False,
                "normalize_returns": False, "set_workers_cpu_affinity": False, "decorrelate_envs_on_one_worker": False,
                "decorrelate_experience_max_seconds": 0, "save_every_sec": 10**6, "save_best_every_sec": 10**6,
                "experiment_summaries_interval": 10**6, "train_for_env_steps": 10**12}
    return [f"--{key}={value}" for key, value in settings.items()] + ["--decoder_mlp_layers"]


def main() -> None:
    path = Path(sys.argv[1])
    job = json.loads(path.read_text(encoding="utf-8"))
    register_env("bench", make_named_env)
    global_model_factory().register_encoder_factory(SameNetwork)
    global_model_factory().register_actor_critic_factory(make_actor_critic)
    words = arguments(job, path)
    parser, _ = parse_sf_args(words)
    parser.add_argument("--job", type=str)
    cfg = parse_full_cfg(parser, words)
    cfg, runner = make_runner(cfg)
    watch = StopByClock(job)
    runner.register_observer(watch)
    status = runner.init()
    if status == 0:
        status = runner.run()
    if status != 0 or not watch.clock.updates:
        sys.exit(f"Sample Factory ended with status {status}.")
    result = {"updates": watch.clock.updates, "latency_s": {}, "parameters": parameters(cfg, runner),
              "peak_mib": peak_mib(), "processes": watch.processes}
    path.with_name("result.json").write_text(json.dumps(result), encoding="utf-8")


def parameters(cfg, runner) -> int:
    """Number of parameters of its actor-critic."""
    from sample_factory.model.actor_critic import create_actor_critic

    model = create_actor_critic(cfg, runner.env_info.obs_space, runner.env_info.action_space)
    return sum(p.numel() for p in model.parameters())


if __name__ == "__main__":
    main()
