"""Typed configuration of the engine: one frozen dataclass per part, checked once in `TrainConfig.check`."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field, replace
from typing import Any

from trainer.setting_rules import check, setting

__all__ = ["CollectConfig", "PPOConfig", "PolicyConfig", "TrainConfig"]

MAX_ENVS = 16384
MAX_UNITS, MAX_LAYERS = 16384, 64  # of each part of a network
MAX_ROLLOUT_STEPS, MAX_STEPS, MAX_EPOCHS = 1_000_000, 10**12, 1000
PRECISIONS = ("float32", "bfloat16")
LEARN_PRECISIONS = ("auto", *PRECISIONS)
MODES = ("ver", "nover", "ddppo", "hts", "appo")
PREEMPTION = ("optimal", "fraction", "none")  # VER's rule, DD-PPO's, nothing (trainer/ranks/preemption.py)


@dataclass(frozen=True)
class PolicyConfig:
    """Network of the policy. `encoder` names an image encoder in `trainer.nets.encoders.ENCODERS`."""

    encoder: str | None = setting(
        "light", "image encoder; null ignores images", choices=("light", "resnet18"), beyond=str)
    embedding_size: int = setting(128, "units of the image embedding", above=0, at_most=MAX_UNITS)
    image_precision: str = setting(
        "float32", "in which the image encoder computes; bfloat16 is for GPUs", choices=PRECISIONS)
    learn_precision: str = setting(
        "float32", "of the gradient step's matrix products; auto = bfloat16 on a CPU that has it (AVX512-BF16, AMX), "
                   "else float32; acting is not touched", choices=LEARN_PRECISIONS)
    hidden_size: int = setting(64, "units of the memory per layer", above=0, at_most=MAX_UNITS)
    lstm_layers: int = setting(
        0, "layers of the memory; 0 = none, a feed-forward policy", at_least=0, at_most=MAX_LAYERS)
    memory: str = setting("lstm", "kind of memory", choices=("lstm", "gru"))
    skip: bool = setting(True, "features also reach the heads beside the memory")
    body_size: int = setting(64, "width of the MLP before the memory; 0 = none", at_least=0, at_most=MAX_UNITS)
    body_layers: int = setting(2, "layers of that MLP", at_least=0, at_most=MAX_LAYERS)
    separate_value: bool = setting(True, "the value has an MLP of its own; encoders and memory are shared")
    critic_keys: tuple[str, ...] = setting((), "observations that only the value sees, while training")
    normalize_observations: bool = setting(True, "vectors by the mean and deviation of those that were seen")
    normalize_returns: bool = setting(
        True, "values are learned in the unit of the returns' deviation (PopArt): the scale of rewards does not matter")
    tanh_mean: bool = setting(False, "squash the mean of the Gaussian with tanh")
    mean_init: float | tuple[float, ...] = setting(0.0, "initial mean of the actions: one value, or one per action")
    log_std_init: float | tuple[float, ...] = setting(
        -0.5, "initial log standard deviation: one value, or one per action")
    log_std_min: float = setting(-5.0, "lower bound of the log standard deviation")
    log_std_max: float = setting(2.0, "upper bound of the log standard deviation")

    @property
    def state_size(self) -> int:
        """Floats of recurrent state per environment."""
        return (2 if self.memory == "lstm" else 1) * self.lstm_layers * self.hidden_size


OF_THE_WEIGHTS = ("embedding_size", "hidden_size", "lstm_layers", "memory", "skip", "body_size", "body_layers",
                  "separate_value", "normalize_observations", "normalize_returns", "tanh_mean")
"""Settings of a policy that its weights were learned with: a training that begins with a checkpoint takes them from
there."""

BEFORE_0_2: dict[str, Any] = {"separate_value": False, "normalize_observations": False, "normalize_returns": False}
"""Settings of policies that did not exist in version 0.1, as its checkpoints have them."""


@dataclass(frozen=True)
class PPOConfig:
    """PPO and its optimiser."""

    epochs: int = setting(10, "passes over a rollout", above=0, at_most=MAX_EPOCHS)
    mini_batches: int = setting(8, "gradient steps per pass", above=0, at_most=1_000_000)
    clip: float = setting(0.2, "clipping of the policy ratio", above=0)
    learning_rate: float = setting(1e-3, "Adam", above=0)
    schedule: str = setting(
        "linear", "decay of the learning rate to zero over the run's steps; kl = it follows the KL divergence of each "
                  "gradient step", choices=("cosine", "linear", "constant", "kl"))
    kl_goal: float = setting(0.01, "for schedule kl: divergence of a gradient step from the policy that acted", above=0)
    adam_epsilon: float = setting(1e-5, "Adam's epsilon", above=0)
    max_grad_norm: float | None = setting(0.5, "gradients are scaled down to this norm", above=0)
    discount: float = setting(0.99, "gamma", at_least=0, at_most=1)
    gae_lambda: float = setting(0.95, "lambda of generalised advantage estimation", at_least=0, at_most=1)
    value_coef: float = setting(0.5, "weight of the value loss", at_least=0)
    normalize_advantages: bool = setting(True, "to zero mean and unit variance, per mini-batch")
    entropy_coef: float = setting(0.0, "weight of the entropy; initial value when it is learned", at_least=0)
    entropy_target: float | None = setting(
        None, "null = fixed weight; a number = weight learned to keep the entropy above it")
    entropy_bounds: tuple[float, float] = setting((1e-4, 1.0), "limits of a learned weight")
    max_importance_weight: float | None = setting(
        1.0, "truncation of VER's importance weights; null = no weighting", above=0)
    vtrace: bool | None = setting(
        None, "values and advantages are corrected for what the policy has learned since it acted (V-trace); null = by "
              "the mode: true for appo")
    vtrace_rho: float = setting(1.0, "truncation of V-trace's ratios rho, of each step's own error", above=0)
    vtrace_c: float = setting(1.0, "truncation of V-trace's ratios c, of the errors of later steps", above=0)
    imitation_coef: float = setting(
        0.0, "weight of the imitation of an expert, falling with the learning rate (Navigate)", at_least=0)
    reward_scale: float = setting(1.0, "rewards are multiplied by this before learning, and logged without it", above=0)
    target_kl: float | None = setting(
        None, "ends the passes over a rollout early above this approximate KL divergence", above=0)


@dataclass(frozen=True)
class CollectConfig:
    """How experience is collected. The engine's word for these settings is `collect`, as in `Collector` and
    trainer/collect.py; on the command line the group is `trainer=`, where `trainer=ver` chooses a mode with what
    suits it."""

    mode: str = setting("ver", "how experience is collected", choices=MODES)
    overlap: bool = setting(
        False, "collect a rollout while learning from the one before, with the policy of the last update; hts always "
               "does, and nover and ddppo never; appo does so with the newest policy")
    max_lag: int = setting(
        2, "for appo: a step is learned from at most so many updates after the policy that took it; collection waits "
           "where it would become older", at_least=2, at_most=1000)
    preemption: str = setting(
        "auto", "what ends a rollout of several ranks early: most steps per second, a share of ranks being done, "
                "nothing; auto = optimal for ver, fraction for ddppo, none for the others",
        choices=("auto", *PREEMPTION))
    preemption_fraction: float = setting(0.6, "for fraction: share of the ranks that are done", above=0, at_most=1)
    preemption_min_share: float = setting(
        0.25, "for fraction: share of its rollout that every rank collects", above=0, at_most=1)
    num_envs: int = setting(8, "environments (N)", above=0, at_most=MAX_ENVS)
    num_workers: int | None = setting(
        None, "environment processes; null = one per CPU core, at most num_envs; 0 = none: environments are stepped "
              "together in the process that learns (docs/batched.md)", at_least=0, at_most=1024)
    inference_workers: int = setting(
        1, "threads that answer environments; more than one pays where inference waits for a device; 1 for ddppo",
        above=0, at_most=1024)
    cuda_graphs: bool = setting(
        True, "on a GPU the engine's network acts as one launch, recorded for each size of batch, instead of some two "
              "hundred")
    rollout_steps: int = setting(
        256, "T: a rollout is T x N steps: of ver and appo from whichever environments give them, else T of each",
        above=0, at_most=MAX_ROLLOUT_STEPS)
    min_batch: int | None = setting(
        None, "fewest environments per inference call; null = as many as a worker has, at most N / 2; half a worker's "
              "for appo; ddppo: always N",
        above=0, at_most=MAX_ENVS)
    max_batch: int | None = setting(
        None, "most environments per inference call; null = N; ddppo: always N", above=0, at_most=MAX_ENVS)
    max_wait_s: float = setting(
        0.002, "longest that an observation waits for a fuller batch; not of ddppo", at_least=0, beyond=math.inf)
    step_timeout_s: float = setting(
        120.0, "a worker silent for so long while it owes a step is reported as hung", above=0, beyond=math.inf)

    @property
    def is_variable(self) -> bool:
        """Whether a rollout's steps come from whichever environments give them."""
        return self.mode in ("ver", "appo")

    @property
    def while_learning(self) -> bool:
        """Whether collection goes on while the learner learns."""
        return self.overlap or self.mode == "appo"

    @property
    def kept_rollouts(self) -> int:
        """Rollouts that are kept at once: the one that is learned from, and those that are collected meanwhile."""
        return self.max_lag if self.mode == "appo" else 2 if self.overlap else 1

    @property
    def preempted_by(self) -> str:
        """One of PREEMPTION."""
        return self.preemption if self.preemption != "auto" else {"ver": "optimal",
                                                                  "ddppo": "fraction"}.get(self.mode, "none")


@dataclass(frozen=True)
class TrainConfig:
    """One training run."""

    steps: int = setting(1_000_000, "environment steps in total", above=0, at_most=MAX_STEPS)
    seed: int = setting(0, "of network, environments and sampling", at_least=0, at_most=2**32 - 1)
    device: str = setting("auto", "auto = CUDA where there is one; or cpu, cuda, cuda:1 ...")
    deterministic: bool = setting(
        False, "environments are answered in one order; a resumed run is the same as one without a break; slower")
    torch_threads: int | None = setting(
        None, "threads while learning; null = one or all cores, whichever is faster", above=0, at_most=1024)
    checkpoint_every_s: float = setting(
        300.0, "seconds between checkpoints, of which the newest three stay", above=0, beyond=math.inf)
    keep_every: int | None = setting(
        None, "steps between checkpoints that stay for good, as checkpoints/kept_STEP.pt; null = none", above=0,
        at_most=MAX_STEPS)
    stop_within_s: float = setting(
        10.0, "after a signal that asks to stop, the rollout under way may take so long; then it is given up", above=0,
        beyond=math.inf)
    log_every_s: float = setting(10.0, "seconds between rows of metrics", above=0, beyond=math.inf)
    eval_every: int | None = setting(
        None, "steps between two evaluations of the policy while it trains, in a process of their own; null = none",
        above=0, at_most=MAX_STEPS)
    eval_episodes: int = setting(20, "of each evaluation", above=0, at_most=1_000_000)
    eval_film: bool = setting(
        True, "a short film of the first episode of each goes to TensorBoard and W&B, where its environment draws "
              "pictures (render_mode=rgb_array)")
    stop_at: float | None = setting(
        None, "success, or return where there is none, of an evaluation that ends the run; null = none")
    episode_window: int = setting(300, "episodes in the rolling means that are shown", above=0, at_most=1_000_000)
    policy: PolicyConfig = field(default_factory=PolicyConfig)
    ppo: PPOConfig = field(default_factory=PPOConfig)
    collect: CollectConfig = field(default_factory=CollectConfig)

    @property
    def steps_per_rollout(self) -> int:
        """T x N."""
        return self.collect.num_envs * self.collect.rollout_steps

    def last_step(self, start: int = 0, ranks: int = 1) -> int:
        """The step at which a run ends that begins at `start`: `steps`, rounded up to whole rollouts of all ranks.
        Where ranks cut each other's rollouts short nobody can know it before, and it is `steps`."""
        if ranks > 1 and self.collect.preempted_by != "none":
            return max(start, self.steps)
        rollout = ranks * self.steps_per_rollout
        return start + max(0, -(-(self.steps - start) // rollout)) * rollout

    def for_ranks(self, local_size: int) -> TrainConfig:
        """These settings for one of several ranks on one machine, which share its cores; with what follows from the
        mode."""
        if self.ppo.vtrace is None:
            self = replace(self, ppo=replace(self.ppo, vtrace=self.collect.mode == "appo"))
        if self.deterministic and not self.torch_threads:
            self = replace(self, torch_threads=1)  # sums in another order give other numbers
        if local_size == 1:
            return self
        share = max(1, (os.cpu_count() or 1) // local_size)
        workers = share if self.collect.num_workers is None else self.collect.num_workers
        collect = replace(self.collect, num_workers=workers)
        return replace(self, torch_threads=self.torch_threads or share, collect=collect)

    def check(self) -> None:
        """Raise ValueError with one sentence for the first setting that cannot work: its place here
        (`collect.num_envs`), value and rule. The command line says it with its own keys
        (rearrange/home/settings/engine_messages.py)."""
        check(self)
        c, p = self.collect, self.ppo
        if c.overlap != (c.mode == "hts") and c.mode != "ver":
            raise ValueError(f"collect.overlap={c.overlap} is not possible with collect.mode={c.mode}: " + (
                "hts overlaps by definition; without it, that is collect.mode=nover." if c.mode == "hts" else
                "appo always collects while it learns; leave it out." if c.mode == "appo" else
                "choose collect.mode=ver collect.overlap=True, or collect.mode=hts, which is nover with overlap."))
        if self.stop_at is not None and not self.eval_every:
            raise ValueError(f"stop_at={self.stop_at} needs evaluations: say after how many steps with eval_every.")
        if c.mode == "appo" and self.deterministic:
            raise ValueError("deterministic=True is not possible with collect.mode=appo, whose policy changes whenever "
                             "an update ends: choose collect.mode=ver collect.overlap=True.")
        if c.mode == "appo" and c.preempted_by != "none":
            raise ValueError(f"collect.preemption={c.preemption} is not possible with collect.mode=appo, whose "
                             "rollouts begin on each rank when they can: leave it at auto.")
        if c.num_workers == 0 and (not c.is_variable or c.inference_workers > 1 or self.deterministic):
            raise ValueError("collect.num_workers=0, environments that are stepped together, needs "
                             "collect.mode=ver or appo, one inference worker and deterministic=False.")
        if c.inference_workers > 1 and (c.mode == "ddppo" or self.deterministic):
            raise ValueError(f"collect.inference_workers={c.inference_workers} is not possible with "
                             f"{'deterministic=True' if self.deterministic else 'collect.mode=ddppo'}, where "
                             "environments are answered in one order; leave it at 1.")
        if p.imitation_coef and p.schedule == "kl":
            raise ValueError(f"ppo.imitation_coef={p.imitation_coef} needs a learning rate that falls, with which it "
                             "ends: choose ppo.schedule=cosine or linear.")
        if c.inference_workers > c.num_envs:
            raise ValueError(f"collect.inference_workers={c.inference_workers} exceeds collect.num_envs={c.num_envs}.")
        if p.mini_batches > self.steps_per_rollout:
            raise ValueError(f"ppo.mini_batches={p.mini_batches} exceeds the {self.steps_per_rollout} steps of a "
                             f"rollout (collect.num_envs={c.num_envs} x collect.rollout_steps={c.rollout_steps}).")
        if c.min_batch and c.min_batch > c.num_envs:
            raise ValueError(f"collect.min_batch={c.min_batch} exceeds collect.num_envs={c.num_envs}.")
        if not 0 < p.entropy_bounds[0] <= p.entropy_bounds[1]:
            raise ValueError(f"ppo.entropy_bounds={p.entropy_bounds} must be (low, high) with 0 < low <= high.")
