"""Proximal Policy Optimisation (Schulman et al. 2017) on variable-length rollouts: the losses and one update."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Callable

import numpy as np
import torch
from torch import Tensor

from trainer.config import PPOConfig
from trainer.errors import NonFiniteLoss
from trainer.nets import distributions
from trainer.policy import EXPERT_ACTION, Policy
from trainer.ranks.launch import RankInfo
from trainer.ranks.ranks import Ranks
from trainer.returns import gae, importance_weights
from trainer.rollout import Batch, Rollout
from trainer.sequences import Sequences, find_sequences, mini_batches

RATES = (1e-5, 1e-2)  # between which the KL divergence moves the learning rate


def policy_loss(log_prob: Tensor, old_log_prob: Tensor, advantage: Tensor, weight: Tensor, clip: float) -> tuple[Tensor, Tensor]:
    """Clipped surrogate, mean of -w min(r A, clip(r, 1-c, 1+c) A), and the ratio r. All inputs (M,)."""
    ratio = torch.exp(log_prob - old_log_prob)
    surrogate = torch.minimum(ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage)
    return -(weight * surrogate).mean(), ratio


def value_loss(value: Tensor, target: Tensor, weight: Tensor, unit: float = 1.0) -> Tensor:
    """Mean of w ((V - R) / unit)^2 / 2, not clipped (Table A1). `unit` 0: nothing is known of rewards, and nothing to learn."""
    return (0.5 * weight * ((value - target) / unit).square()).mean() if unit else 0.0 * value.sum()


def imitation_loss(policy: Policy, mean: Tensor, advice: Tensor) -> Tensor:
    """How far the policy is from what an expert would do in the states that the policy itself came to (DAgger, Ross et al. 2011),
    times the weight of that advice, mean over steps.

    mean (M, A): of the policy's actions, or logits. advice (M, A + 1): the expert's action and its weight. Continuous: squared
    distance of what would be executed, so a mean beyond a bound is as good as at it; the gradient is that at the bound, so that a
    mean beyond the wrong one comes back. Discrete: cross-entropy.
    """
    action, weight = advice[:, :-1], advice[:, -1]
    if policy.choices:
        error = -distributions.categorical_log_prob(action.long(), mean.split(policy.choices, -1))
    else:
        executed = mean + (policy.action_features(mean) - mean).detach()
        error = (executed - action).square().sum(-1)
    return (weight * error).mean()


def imitation_weight(config: PPOConfig, optimizer: torch.optim.Optimizer) -> float:
    """`imitation_coef`, which falls as the learning rate does: at the end reward alone is left."""
    return config.imitation_coef * optimizer.param_groups[0]["lr"] / config.learning_rate


class EntropyCoefficient:
    """The weight alpha of the entropy bonus, fixed or learned so that entropy stays at or above a target.

    Learned (VER paper section 4, after Haarnoja et al. 2018): alpha moves down the gradient of alpha (H - target), so it
    rises while the entropy H is below the target and falls while it is above, within bounds. `log_alpha` is optimised.
    """

    def __init__(self, config: PPOConfig, device: torch.device):
        self.target, self.bounds = config.entropy_target, config.entropy_bounds
        self.fixed = config.entropy_coef
        start = min(max(config.entropy_coef, self.bounds[0]), self.bounds[1])
        self.log_alpha = torch.tensor(math.log(start), device=device, requires_grad=True)

    @property
    def learned(self) -> bool:
        return self.target is not None

    def value(self) -> Tensor | float:
        return self.log_alpha.exp() if self.learned else self.fixed

    def loss(self, entropy: Tensor, weight: Tensor) -> Tensor:
        """Entropy term of the objective; its gradient reaches both the policy and, if learned, log_alpha."""
        mean = (weight * entropy).mean()
        if not self.learned:
            return -self.fixed * mean
        return self.log_alpha.exp() * (entropy.mean().detach() - self.target) - self.log_alpha.exp().detach() * mean

    def clamp(self) -> None:
        with torch.no_grad():
            self.log_alpha.clamp_(math.log(self.bounds[0]), math.log(self.bounds[1]))


@dataclass
class UpdateStats:
    """Means over the mini-batches of one update."""

    sums: dict[str, float] = field(default_factory=dict)
    count: int = 0

    def add(self, **values: float) -> None:
        self.count += 1
        for k, v in values.items():
            self.sums[k] = self.sums.get(k, 0.0) + v

    def means(self) -> dict[str, float]:
        return {k: v / max(1, self.count) for k, v in self.sums.items()}


def _uncompiled(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of an optimiser without torch's decorator, which imports torch's compiler: two seconds at the start of a run that
    compiles nothing."""
    return getattr(method, "__wrapped__", method)


class Adam(torch.optim.Adam):
    """torch's, bit for bit."""

    step = torch.no_grad()(_uncompiled(torch.optim.Adam.step))
    zero_grad = _uncompiled(torch.optim.Adam.zero_grad)
    add_param_group = _uncompiled(torch.optim.Adam.add_param_group)
    state_dict = _uncompiled(torch.optim.Adam.state_dict)
    load_state_dict = _uncompiled(torch.optim.Adam.load_state_dict)


def make_optimizer(policy: Policy, entropy: EntropyCoefficient, config: PPOConfig) -> torch.optim.Adam:
    """Adam over the policy and, when it is learned, the entropy coefficient."""
    parameters = list(policy.parameters()) + ([entropy.log_alpha] if entropy.learned else [])
    return Adam(parameters, lr=config.learning_rate, eps=config.adam_epsilon)


def rate_by_kl(rate: float, kl: float, goal: float) -> float:
    """The next learning rate (the rule of rsl_rl): less where a gradient step moved the policy by more than twice the goal, more where
    it moved by less than half of it."""
    return max(rate / 1.5, RATES[0]) if kl > 2 * goal else min(rate * 1.5, RATES[1]) if kl < goal / 2 else rate


def scheduled_rate(config: PPOConfig, progress: float) -> float:
    """Learning rate after a fraction `progress` of the run's steps; cosine and linear reach zero at the end."""
    progress = min(max(float(progress), 0.0), 1.0)
    if config.schedule == "cosine":
        return config.learning_rate * 0.5 * (1 + math.cos(math.pi * progress))
    return config.learning_rate * (1 - progress) if config.schedule == "linear" else config.learning_rate


def update(policy: Policy, optimizer: torch.optim.Optimizer, entropy_coef: EntropyCoefficient, rollout: Rollout,
           config: PPOConfig, rng: np.random.Generator, batch: np.ndarray | None = None,
           ranks: Ranks | None = None, evaluate: Callable[..., Any] | None = None, late: bool = False,
           learns: bool = True) -> dict[str, float]:
    """Learn from the rows `batch` of `rollout`, by default those that are closed: returns, then epochs over shuffled
    mini-batches. Gives mean statistics.

    `late`: the policy has been updated since it acted, because collection overlaps learning. Then ratios are taken to the policy
    as it is now, and each step is weighted by how much likelier its action has become, at most `max_importance_weight`
    (decoupled objective, Hilton et al. 2021): with ratios to the policy that acted, the last update would already have used up
    the clipping range of this one. On several ranks, `evaluate` is `policy.evaluate` with gradients that are averaged over
    `ranks` (Ranks.evaluator). Not `learns`: the returns are only looked at, for a policy that normalises by them.
    """
    ranks = ranks or Ranks(RankInfo())
    evaluate = evaluate or policy.evaluate
    device = rollout.log_prob.device
    batch = rollout.closed[: rollout.num_closed] if batch is None else batch
    order, starts = find_sequences(rollout.env[batch], rollout.step[batch], rollout.starts_episode[batch])
    rows = batch[order]  # sequence after sequence
    advantage = gae(rollout.reward[rows] * config.reward_scale, rollout.value[rows], rollout.next_value[rows], starts,
                    config.discount, config.gae_lambda)
    weight = importance_weights(rollout.env[rows], rollout.num_envs, config.max_importance_weight)
    target = advantage + rollout.value[rows]
    unit = 1.0
    if hasattr(policy, "take_returns"):
        policy.take_returns(torch.from_numpy(target).to(device), ranks.sum_)
        unit = policy.unit_of_values()
    advantages, targets, weights = (torch.from_numpy(x).to(device) for x in (advantage, target, weight))
    policy_weights, log_probs = weights, rollout.log_prob[torch.from_numpy(rows).to(device)]
    if late and learns:
        now = log_probs_now(policy, rollout, rows, starts, config.mini_batches)
        policy_weights = weights * torch.exp(now - log_probs).clamp(max=config.max_importance_weight or math.inf)
        log_probs = now
    stats = UpdateStats()
    stop = False
    epochs_done = 0
    for _ in range(config.epochs if learns else 0):
        for positions, lengths in mini_batches(starts, len(rows), config.mini_batches, rng):
            where = torch.from_numpy(positions).to(device)
            first = np.cumsum(lengths) - lengths
            kl = _learn(policy, evaluate, ranks, optimizer, entropy_coef, rollout.gather(rows[positions], rows[positions[first]]),
                        Sequences(lengths, device), log_probs[where], advantages[where], targets[where], weights[where],
                        policy_weights[where], unit, config, stats)
            if config.target_kl is not None or config.schedule == "kl":
                kl = float(ranks.average_(torch.tensor(kl, device=device)))
            if config.schedule == "kl":
                for group in optimizer.param_groups:
                    group["lr"] = rate_by_kl(group["lr"], kl, config.kl_goal)
            if stop := config.target_kl is not None and kl > config.target_kl:
                break
        epochs_done += 1
        if stop:
            break
    version = rollout.version[rows]
    explained = 1 - float(np.var(target - rollout.value[rows]) / (np.var(target) + 1e-8))
    return stats.means() | {
        "explained_variance": explained, "epochs": float(epochs_done), "sequences": float(len(starts)),
        "importance_weight_mean": float(weight.mean()), "importance_weight_min": float(weight.min()),
        "stale_fraction": float((version < version.max()).mean()), "oldest_age": float(version.max() - version.min()),
        "value_mean": float(rollout.value[rows].mean()), "target_mean": float(target.mean()),
    }


@torch.no_grad()
def log_probs_now(policy: Policy, rollout: Rollout, rows: np.ndarray, starts: np.ndarray, parts: int) -> Tensor:
    """Log-probability of the actions in `rows` (S,), laid out in sequences that begin at `starts`, under the policy as it is;
    computed in `parts`. -> (S,)."""
    device = rollout.log_prob.device
    out = torch.empty(len(rows), device=device)
    for positions, lengths in mini_batches(starts, len(rows), parts, np.random.default_rng(0)):
        first = np.cumsum(lengths) - lengths
        part = rollout.gather(rows[positions], rows[positions[first]])
        log_prob, *_ = policy.evaluate(part.obs, part.previous, part.action, Sequences(lengths, device), part.state)
        out[torch.from_numpy(positions).to(device)] = log_prob
    return out


def normalized(advantage: Tensor, ranks: Ranks) -> Tensor:
    """To zero mean and unit variance over the mini-batches of all ranks; a single step stays as it is. (M,) -> (M,)."""
    if ranks.size == 1 and len(advantage) == 1:
        return advantage
    if ranks.size == 1:
        return (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    x = advantage.double()
    count, total, squares = ranks.average_(torch.stack([torch.ones_like(x).sum(), x.sum(), x.square().sum()])) * ranks.size
    mean = total / count
    std = ((squares - count * mean.square()) / (count - 1)).clamp(min=0).sqrt()
    return ((x - mean) / (std + 1e-8)).to(advantage.dtype)


def gradient_step(policy: Policy, optimizer: torch.optim.Optimizer, loss: Tensor, config: PPOConfig,
                  before: Callable[[], Any] = lambda: None) -> float:
    """Down the gradient of a loss, scaled down to `max_grad_norm`; gives its norm. `before` the step, gradients may be looked at.
    NonFiniteLoss, and no step."""
    optimizer.zero_grad(set_to_none=True)
    loss.backward()  # averages the policy's gradients over ranks
    before()
    norm = torch.nn.utils.clip_grad_norm_(policy.parameters(), config.max_grad_norm or math.inf)
    if not (math.isfinite(loss.item()) and math.isfinite(norm.item())):
        optimizer.zero_grad(set_to_none=True)
        raise NonFiniteLoss(f"the loss became {loss.item()} (gradient norm {norm.item()})")
    optimizer.step()
    return norm.item()


def _learn(policy: Policy, evaluate: Callable[..., Any], ranks: Ranks, optimizer: torch.optim.Optimizer,
           entropy_coef: EntropyCoefficient, batch: Batch, sequences: Sequences, old_log_prob: Tensor, advantage: Tensor,
           target: Tensor, weight: Tensor, policy_weight: Tensor, unit: float, config: PPOConfig, stats: UpdateStats) -> float:
    """One gradient step. Returns the approximate KL divergence from the policy that ratios are taken to."""
    if config.normalize_advantages:
        advantage = normalized(advantage, ranks)
    log_prob, entropy, value, mean = evaluate(batch.obs, batch.previous, batch.action, sequences, batch.state)
    surrogate, ratio = policy_loss(log_prob, old_log_prob, advantage, policy_weight, config.clip)
    value_error = value_loss(value, target, weight, unit)
    loss = surrogate + config.value_coef * value_error + entropy_coef.loss(entropy, weight)
    imitated = {}
    if config.imitation_coef:
        imitation = imitation_loss(policy, mean, batch.obs[EXPERT_ACTION])
        loss = loss + imitation_weight(config, optimizer) * imitation
        imitated["imitation_loss"] = imitation.item()
    norm = gradient_step(policy, optimizer, loss, config, lambda: ranks.average_(entropy_coef.log_alpha.grad))
    entropy_coef.clamp()
    with torch.no_grad():
        log_ratio = log_prob - old_log_prob
        kl = (torch.exp(log_ratio) - 1 - log_ratio).mean().item()
        stats.add(policy_loss=surrogate.item(), value_loss=value_error.item(), entropy=entropy.mean().item(), kl=kl,
                  clip_fraction=((ratio - 1).abs() > config.clip).float().mean().item(), grad_norm=norm,
                  entropy_coef=float(entropy_coef.value()), **imitated)
    return kl
