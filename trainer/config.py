"""Typed configuration of the engine: one frozen dataclass per part, checked once in `TrainConfig.check`."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field, fields, replace
from numbers import Integral, Real
from typing import Any

__all__ = ["CollectConfig", "PPOConfig", "PolicyConfig", "TrainConfig"]

MAX_ENVS = 16384
MAX_UNITS, MAX_LAYERS = 16384, 64  # of each part of a network
MAX_ROLLOUT_STEPS, MAX_STEPS, MAX_EPOCHS = 1_000_000, 10**12, 1000
PRECISIONS = ("float32", "bfloat16")
MODES = ("ver", "nover", "ddppo", "hts")
PREEMPTION = ("optimal", "fraction", "none")  # VER's rule, DD-PPO's, nothing (trainer/ranks/preemption.py)


@dataclass(frozen=True)
class PolicyConfig:
    """Network of the policy. `encoder` names an image encoder in `trainer.encoders.ENCODERS`; None ignores images."""

    encoder: str | None = "light"
    embedding_size: int = 128  # units of the image embedding
    image_precision: str = "float32"  # in which the image encoder computes: one of PRECISIONS
    hidden_size: int = 128  # LSTM units per layer
    lstm_layers: int = 1  # 0 = feed-forward policy
    skip: bool = True  # features also reach the heads beside the LSTM
    body_size: int = 256  # width of the MLP before the LSTM; 0 = none
    body_layers: int = 2
    tanh_mean: bool = False  # squash the Gaussian's mean with tanh
    mean_init: float | tuple[float, ...] = 0.0  # of the Gaussian's mean: one value, or one per action dimension
    log_std_init: float | tuple[float, ...] = -0.5  # one value, or one per action dimension
    log_std_min: float = -5.0
    log_std_max: float = 2.0


@dataclass(frozen=True)
class PPOConfig:
    """PPO and its optimiser. The defaults are the `fast` preset; `configs/ppo/paper.yaml` is Table A1 of the VER paper."""

    epochs: int = 3
    mini_batches: int = 4
    clip: float = 0.2
    learning_rate: float = 7e-4
    schedule: str = "cosine"  # "cosine" or "linear" decay to zero over the run's steps, or "constant"
    adam_epsilon: float = 1e-5
    max_grad_norm: float | None = 0.5
    discount: float = 0.99
    gae_lambda: float = 0.95
    value_coef: float = 0.5
    normalize_advantages: bool = True
    entropy_coef: float = 0.0  # initial value when learned
    entropy_target: float | None = None  # None: fixed coefficient; a number: coefficient learned to keep entropy >= target
    entropy_bounds: tuple[float, float] = (1e-4, 1.0)
    max_importance_weight: float | None = 1.0  # truncation of VER's importance weights; None = no weighting
    imitation_coef: float = 0.0  # weight of the imitation of an expert; falls with the learning rate
    reward_scale: float = 0.1  # rewards are multiplied by this before learning (logged unscaled)
    target_kl: float | None = None  # stop the epochs of an update early above this approximate KL


@dataclass(frozen=True)
class CollectConfig:
    """How experience is collected."""

    mode: str = "ver"  # one of MODES
    overlap: bool = False  # collect a rollout while learning from the one before
    preemption: str = "auto"  # what ends a rollout of several ranks early: one of PREEMPTION, or the mode's own
    preemption_fraction: float = 0.6  # of the ranks, that ends the rollout of the others, for "fraction"
    preemption_min_share: float = 0.25  # of its steps, that a rank collects in any case, for "fraction"
    num_envs: int = 32  # N
    num_workers: int | None = None  # environment processes; None = one per CPU core, at most num_envs
    inference_workers: int = 1  # threads that answer environments
    rollout_steps: int = 128  # T: a rollout is T x N steps, whichever environments give them
    min_batch: int | None = None  # environments per inference call; None = as many as a worker has, at most N / 2
    max_batch: int | None = None  # None = N
    max_wait_s: float = 0.002  # longest an observation waits for a fuller batch
    step_timeout_s: float = 120.0  # a worker silent for this long while it owes a step is reported as hung

    @property
    def preempted_by(self) -> str:
        """One of PREEMPTION."""
        return self.preemption if self.preemption != "auto" else {"ver": "optimal", "ddppo": "fraction"}.get(self.mode, "none")


@dataclass(frozen=True)
class TrainConfig:
    """One training run."""

    steps: int = 1_000_000  # environment steps in total
    seed: int = 0
    device: str = "auto"  # "auto" = cuda where available
    deterministic: bool = False  # one order of answering environments; a resumed run is the same as one without a break
    torch_threads: int | None = None  # threads while learning; None = one or all cores, whichever is faster
    checkpoint_every_s: float = 300.0
    stop_within_s: float = 10.0  # after a signal the rollout under way may take so long; then it is given up
    log_every_s: float = 10.0
    episode_window: int = 300  # episodes in the logged rolling means
    policy: PolicyConfig = field(default_factory=PolicyConfig)
    ppo: PPOConfig = field(default_factory=PPOConfig)
    collect: CollectConfig = field(default_factory=CollectConfig)

    @property
    def steps_per_rollout(self) -> int:
        """T x N."""
        return self.collect.num_envs * self.collect.rollout_steps

    def last_step(self, start: int = 0, ranks: int = 1) -> int:
        """The step at which a run ends that begins at `start`: `steps`, rounded up to whole rollouts of all ranks. Where ranks cut
        each other's rollouts short nobody can know it before, and it is `steps`."""
        if ranks > 1 and self.collect.preempted_by != "none":
            return max(start, self.steps)
        rollout = ranks * self.steps_per_rollout
        return start + max(0, -(-(self.steps - start) // rollout)) * rollout

    def for_ranks(self, local_size: int) -> TrainConfig:
        """These settings for one of several ranks on one machine: they share its cores."""
        if self.deterministic and not self.torch_threads:
            self = replace(self, torch_threads=1)  # sums in another order give other numbers
        if local_size == 1:
            return self
        share = max(1, (os.cpu_count() or 1) // local_size)
        collect = replace(self.collect, num_workers=self.collect.num_workers or share)
        return replace(self, torch_threads=self.torch_threads or share, collect=collect)

    def check(self) -> None:
        """Raise ValueError with one sentence for the first setting that cannot work: its key on the command line (where
        `collect` is called `trainer`, by the choice of how to collect), value and rule."""
        c, p = self.collect, self.ppo
        parts: dict[str, Any] = {"": self, "policy.": self.policy, "ppo.": p, "trainer.": c}
        for prefix, part in parts.items():
            for setting in fields(part):
                _check_number(prefix + setting.name, getattr(part, setting.name), str(setting.type))
        positive = {
            "steps": self.steps, "trainer.num_envs": c.num_envs, "trainer.inference_workers": c.inference_workers,
            "trainer.rollout_steps": c.rollout_steps,
            "ppo.epochs": p.epochs, "ppo.mini_batches": p.mini_batches, "ppo.learning_rate": p.learning_rate,
            "ppo.clip": p.clip, "trainer.step_timeout_s": c.step_timeout_s, "log_every_s": self.log_every_s,
            "policy.hidden_size": self.policy.hidden_size, "policy.embedding_size": self.policy.embedding_size,
            "checkpoint_every_s": self.checkpoint_every_s, "stop_within_s": self.stop_within_s, "episode_window": self.episode_window,
            "ppo.reward_scale": p.reward_scale,
        }
        optional = {
            "trainer.num_workers": c.num_workers, "trainer.min_batch": c.min_batch, "trainer.max_batch": c.max_batch,
            "torch_threads": self.torch_threads, "ppo.max_grad_norm": p.max_grad_norm, "ppo.target_kl": p.target_kl,
            "ppo.max_importance_weight": p.max_importance_weight,
        }
        positive |= {k: v for k, v in optional.items() if v is not None}
        for key, value in positive.items():
            if not value > 0:
                raise ValueError(f"{key}={value} must be greater than 0.")
        least_zero = {
            "seed": self.seed, "policy.lstm_layers": self.policy.lstm_layers, "policy.body_size": self.policy.body_size,
            "policy.body_layers": self.policy.body_layers, "ppo.value_coef": p.value_coef, "ppo.entropy_coef": p.entropy_coef,
            "ppo.imitation_coef": p.imitation_coef,
            "trainer.max_wait_s": c.max_wait_s,
        }
        for key, value in least_zero.items():
            if value < 0:
                raise ValueError(f"{key}={value} must be at least 0.")
        for key, (value, most) in {
            "policy.hidden_size": (self.policy.hidden_size, MAX_UNITS), "policy.body_size": (self.policy.body_size, MAX_UNITS),
            "policy.embedding_size": (self.policy.embedding_size, MAX_UNITS),
            "policy.body_layers": (self.policy.body_layers, MAX_LAYERS),
            "policy.lstm_layers": (self.policy.lstm_layers, MAX_LAYERS),
            "trainer.rollout_steps": (c.rollout_steps, MAX_ROLLOUT_STEPS),
            "steps": (self.steps, MAX_STEPS), "episode_window": (self.episode_window, MAX_STEPS), "ppo.epochs": (p.epochs, MAX_EPOCHS),
        }.items():
            if value > most:
                raise ValueError(f"{key}={value} is too great: {most:,} is the most.")
        for name in ("encoder", "image_precision"):
            if not isinstance(getattr(self.policy, name), str) and (name != "encoder" or self.policy.encoder is not None):
                raise ValueError(f"policy.{name}={getattr(self.policy, name)!r} must be a name.")
        for name in ("skip", "tanh_mean"):
            if not isinstance(getattr(self.policy, name), bool):
                raise ValueError(f"policy.{name}={getattr(self.policy, name)!r} must be True or False.")
        for key, value in {"ppo.discount": p.discount, "ppo.gae_lambda": p.gae_lambda}.items():
            if not 0 <= value <= 1:
                raise ValueError(f"{key}={value} must lie in [0, 1].")
        if c.num_envs > MAX_ENVS:
            raise ValueError(f"trainer.num_envs={c.num_envs} exceeds {MAX_ENVS}, the most that one learner drives.")
        if p.schedule not in ("cosine", "linear", "constant"):
            raise ValueError(f"ppo.schedule={p.schedule} is not one of cosine, linear, constant.")
        if self.policy.image_precision not in PRECISIONS:
            raise ValueError(f"policy.image_precision={self.policy.image_precision} is not one of {', '.join(PRECISIONS)}.")
        if c.mode not in MODES:
            raise ValueError(f"trainer.mode={c.mode} is not one of {', '.join(MODES)}.")
        if c.preemption not in ("auto", *PREEMPTION):
            raise ValueError(f"trainer.preemption={c.preemption} is not one of auto, {', '.join(PREEMPTION)}.")
        for key, value in {"preemption_fraction": c.preemption_fraction, "preemption_min_share": c.preemption_min_share}.items():
            if not 0 < value <= 1:
                raise ValueError(f"trainer.{key}={value} must lie in (0, 1].")
        if c.overlap != (c.mode == "hts") and c.mode != "ver":
            raise ValueError(f"trainer.overlap={str(c.overlap).lower()} is not possible with trainer={c.mode}: " + (
                "hts overlaps by definition; without it, that is trainer=nover." if c.mode == "hts" else
                "choose trainer=ver trainer.overlap=true, or trainer=hts, which is nover with overlap."))
        if c.inference_workers > 1 and (c.mode == "ddppo" or self.deterministic):
            raise ValueError(f"trainer.inference_workers={c.inference_workers} is not possible with "
                             f"{'deterministic=true' if self.deterministic else 'trainer=ddppo'}, where environments are answered "
                             "in one order; leave it at 1.")
        if c.inference_workers > c.num_envs:
            raise ValueError(f"trainer.inference_workers={c.inference_workers} exceeds trainer.num_envs={c.num_envs}.")
        if p.mini_batches > self.steps_per_rollout:
            raise ValueError(f"ppo.mini_batches={p.mini_batches} exceeds the {self.steps_per_rollout} steps of a rollout "
                             f"(trainer.num_envs={c.num_envs} x trainer.rollout_steps={c.rollout_steps}).")
        if c.min_batch and c.min_batch > c.num_envs:
            raise ValueError(f"trainer.min_batch={c.min_batch} exceeds trainer.num_envs={c.num_envs}.")
        if not 0 < p.entropy_bounds[0] <= p.entropy_bounds[1]:
            raise ValueError(f"ppo.entropy_bounds={p.entropy_bounds} must be (low, high) with 0 < low <= high.")


def _check_number(key: str, value: Any, kind: str) -> None:
    """Raise ValueError if a setting that is declared as a number is something else. Times may be infinite."""
    if not kind.startswith(("int", "float")) or (value is None and "None" in kind):
        return
    for number in value if isinstance(value, (tuple, list)) and "tuple" in kind else (value,):
        if kind.startswith("int"):
            fine, wanted = isinstance(number, Integral) and not isinstance(number, bool), "a whole number"
        else:
            fine, wanted = isinstance(number, Real) and not isinstance(number, bool), "a number"
            fine = fine and (math.isfinite(number) or key.endswith("_s") and number == math.inf)
        if not fine:
            raise ValueError(f"{key}={value!r} must be {wanted}.")
