"""Proximal Policy Optimisation (Schulman et al. 2017) on variable-length rollouts: the losses and one update."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Callable

import numpy as np
import torch
from torch import Tensor

from trainer.config import PPOConfig
from trainer.errors import NonFiniteLoss
from trainer.nets import heads
from trainer.policy import EXPERT_ACTION, Policy
from trainer.ranks.launch import RankInfo
from trainer.ranks.ranks import Ranks
from trainer.rollout import Batch, Rollout
from trainer.sequences import find_sequences, gae, importance_weights, mini_batches, vtrace, whole_sequences

RATES = (1e-5, 1e-2)  # between which the KL divergence moves the learning rate


@dataclass(frozen=True)
class Targets:
    """What M steps are to teach the policy, each (M,)."""

    log_prob: Tensor  # of the policy that ratios are taken to
    advantage: Tensor
    value: Tensor
    weight: Tensor
    policy_weight: Tensor  # the same, times how much likelier an action has become since a late batch was collected

    def at(self, where: Tensor) -> Targets:
        return Targets(*(values[where] for values in vars(self).values()))


def policy_loss(log_prob: Tensor, old_log_prob: Tensor, advantage: Tensor, weight: Tensor,
                clip: float) -> tuple[Tensor, Tensor]:
    """Clipped surrogate, mean of -w min(r A, clip(r, 1-c, 1+c) A), and the ratio r (M,). All tensors are (M,)."""
    ratio = torch.exp(log_prob - old_log_prob)
    surrogate = torch.minimum(ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage)
    return -(weight * surrogate).mean(), ratio


def value_loss(value: Tensor, target: Tensor, weight: Tensor, unit: float = 1.0) -> Tensor:
    """Mean of w ((V - R) / unit)^2 / 2, not clipped (Table A1). `unit` 0: no reward was seen, nothing is to be
    learned."""
    return (0.5 * weight * ((value - target) / unit).square()).mean() if unit else 0.0 * value.sum()


def imitation_loss(policy: Policy, mean: Tensor, advice: Tensor) -> Tensor:
    """Weighted distance to an expert's actions in states that the policy came to (DAgger, Ross et al. 2011); the mean.

    mean (M, A): of the policy's actions, or logits. advice (M, A + 1): the expert's action and its weight. Continuous
    actions: squared distance of what would be executed, so a mean beyond a bound counts as at the bound; its gradient
    is that at the bound, so that a mean beyond the wrong bound comes back. Discrete actions: cross-entropy.
    """
    action, weight = advice[:, :-1], advice[:, -1]
    if policy.choices:
        error = -heads.categorical_log_prob(action.long(), mean.split(policy.choices, -1))
    else:
        executed = mean + (policy.action_features(mean) - mean).detach()
        error = (executed - action).square().sum(-1)
    return (weight * error).mean()


def imitation_weight(config: PPOConfig, optimizer: torch.optim.Optimizer) -> float:
    """`imitation_coef`, which falls as the learning rate does: at the end reward alone is left."""
    return config.imitation_coef * optimizer.param_groups[0]["lr"] / config.learning_rate


class EntropyCoefficient:
    """The weight alpha of the entropy bonus, fixed or learned so that entropy stays at or above a target.

    Learned (VER paper section 4, after Haarnoja et al. 2018): alpha moves down the gradient of alpha (H - target). It
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


def _uncompiled(method: Callable[..., Any]) -> Callable[..., Any]:
    """An optimiser's method without torch's decorator, which takes two seconds to import a compiler."""
    return getattr(method, "__wrapped__", method)


class Adam(torch.optim.Adam):
    """torch's, bit for bit."""

    step = torch.no_grad()(_uncompiled(torch.optim.Adam.step))
    zero_grad = _uncompiled(torch.optim.Adam.zero_grad)
    add_param_group = _uncompiled(torch.optim.Adam.add_param_group)
    state_dict = _uncompiled(torch.optim.Adam.state_dict)
    load_state_dict = _uncompiled(torch.optim.Adam.load_state_dict)


def make_optimizer(policy: Policy, entropy: EntropyCoefficient, config: PPOConfig) -> torch.optim.Adam:
    """Adam over the policy and, when it is learned, the entropy coefficient. On a CPU as one operation, a third of the
    processor time (20 steps of blind Pick's network in turn). That goes through memory without a look at strides, so
    not where a parameter has gaps, as a slice of something larger has."""
    parameters = list(policy.parameters()) + ([entropy.log_alpha] if entropy.learned else [])
    can_fuse = all(p.device.type == "cpu" and p.stride() == torch.empty_like(p).stride() for p in parameters)
    return Adam(parameters, lr=config.learning_rate, eps=config.adam_epsilon, fused=can_fuse or None)


def rate_by_kl(rate: float, kl: float, goal: float) -> float:
    """The next learning rate (the rule of rsl_rl): less above twice the goal, more below half of it."""
    return max(rate / 1.5, RATES[0]) if kl > 2 * goal else min(rate * 1.5, RATES[1]) if kl < goal / 2 else rate


def scheduled_rate(config: PPOConfig, progress: float) -> float:
    """Learning rate after a fraction `progress` of the run's steps; cosine and linear reach zero at the end."""
    progress = min(max(float(progress), 0.0), 1.0)
    if config.schedule == "cosine":
        return config.learning_rate * 0.5 * (1 + math.cos(math.pi * progress))
    return config.learning_rate * (1 - progress) if config.schedule == "linear" else config.learning_rate


def take_returns(policy: Any, returns: Tensor, ranks: Ranks) -> float:
    """Let a policy that normalises values see these returns (M,); the unit in which its value errors count."""
    if not hasattr(policy, "take_returns"):
        return 1.0
    policy.take_returns(returns, ranks.sum_)
    return policy.unit_of_values()


def update(policy: Policy, optimizer: torch.optim.Optimizer, entropy_coef: EntropyCoefficient, rollout: Rollout,
           config: PPOConfig, rng: np.random.Generator, batch: np.ndarray | None = None,
           ranks: Ranks | None = None, evaluate: Callable[..., Any] | None = None, late: bool = False,
           learns: bool = True) -> dict[str, float]:
    """Learn from rows of a rollout: returns, then epochs over shuffled mini-batches. Gives mean statistics.

    Args:
        policy: the network.
        optimizer: of its parameters, and of a learned entropy coefficient.
        entropy_coef: the weight of the entropy.
        rollout: where the experience is.
        config: settings of PPO.
        rng: deals sequences to mini-batches.
        batch: (S,) the rows to learn from; by default those that are closed.
        ranks: over which gradients and statistics are averaged; by default this process alone.
        evaluate: `policy.evaluate` with those gradients (Ranks.evaluator).
        late: the policy has been updated since it acted, because collection goes on while it learns. Then ratios are
            taken to the policy as it is now: with ratios to the policy that acted, the last update would already have
            used up the clipping range of this one. Each step is weighted by how much likelier its action has become, at
            most `max_importance_weight` (decoupled objective, Hilton et al. 2021). So it is with `config.vtrace`, which
            also corrects values and advantages; the weight is then at most `config.vtrace_rho`.
        learns: False: a policy that normalises values only looks at the returns.
    """
    ranks = ranks or Ranks(RankInfo())
    evaluate = evaluate or policy.evaluate
    device = rollout.log_prob.device
    batch = rollout.closed[: rollout.num_closed] if batch is None else batch
    order, starts = find_sequences(rollout.env[batch], rollout.step[batch], rollout.starts_episode[batch])
    rows = batch[order]  # sequence after sequence
    reward, value, next_value = (fields[rows] for fields in (rollout.reward, rollout.value, rollout.next_value))
    reward = reward * config.reward_scale
    weight = importance_weights(rollout.env[rows], rollout.num_envs, config.max_importance_weight)
    weights = policy_weights = torch.from_numpy(weight).to(device)
    log_prob, most = rollout.log_prob[torch.from_numpy(rows).to(device)], config.max_importance_weight or math.inf
    corrects = learns and bool(config.vtrace)
    if learns and late or corrects:
        now, value_now = evaluated_now(policy, rollout, rows, starts, config.mini_batches)
        ratio, log_prob = torch.exp(now - log_prob), now
        policy_weights = weights * ratio.clamp(max=config.vtrace_rho if corrects else most)
    if corrects:
        value = value_now.cpu().numpy()
        advantage, error = vtrace(reward, value, next_value, ratio.cpu().numpy(), starts, config.discount,
                                  config.gae_lambda, config.vtrace_rho, config.vtrace_c)
    else:
        advantage = error = gae(reward, value, next_value, starts, config.discount, config.gae_lambda)
    target = value + error
    advantages, values = (torch.from_numpy(x).to(device) for x in (advantage, target))
    unit = take_returns(policy, values, ranks)
    targets = Targets(log_prob, advantages, values, weights, policy_weights)
    stats: list[dict[str, float]] = []
    stop, epochs = False, 0
    while epochs < config.epochs and learns and not stop:
        epochs += 1
        for positions, lengths in mini_batches(starts, len(rows), config.mini_batches, rng):
            part = rollout.gather(rows[positions], lengths)
            stats.append(_learn(policy, evaluate, ranks, optimizer, entropy_coef, part,
                                targets.at(torch.from_numpy(positions).to(device)), unit, config))
            kl = stats[-1]["kl"]
            if config.target_kl is not None or config.schedule == "kl":
                kl = float(ranks.average_(torch.tensor(kl, device=device)))
            if config.schedule == "kl":
                for group in optimizer.param_groups:
                    group["lr"] = rate_by_kl(group["lr"], kl, config.kl_goal)
            if stop := config.target_kl is not None and kl > config.target_kl:
                break
    version = rollout.version[rows]
    explained = 1 - float(np.var(error) / (np.var(target) + 1e-8))
    return means(stats) | {
        "explained_variance": explained, "epochs": float(epochs), "sequences": float(len(starts)),
        "importance_weight_mean": float(weight.mean()), "importance_weight_min": float(weight.min()),
        "stale_fraction": float((version < version.max()).mean()), "oldest_age": float(version.max() - version.min()),
        "value_mean": float(value.mean()), "target_mean": float(target.mean()),
    }


def means(stats: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Of each figure over the mini-batches of one update; none where there was no mini-batch."""
    return {key: sum(each[key] for each in stats) / len(stats) for key in (stats[0] if stats else ())}


@torch.no_grad()
def evaluated_now(policy: Policy, rollout: Rollout, rows: np.ndarray, starts: np.ndarray,
                  parts: int) -> tuple[Tensor, Tensor]:
    """Log-probability (S,) of the actions in `rows` (S,), and value (S,), under the policy as it is, computed in at
    most `parts`. The rows are laid out in sequences that begin at `starts`; none is split."""
    device = rollout.log_prob.device
    log_prob, value = torch.empty(2, len(rows), device=device)
    for positions, lengths in whole_sequences(starts, len(rows), parts, np.random.default_rng(0)):
        where = torch.from_numpy(positions).to(device)
        log_prob[where], _, value[where], _ = rollout.gather(rows[positions], lengths).given_to(policy.evaluate)
    return log_prob, value


def normalized(advantage: Tensor, ranks: Ranks) -> Tensor:
    """To zero mean and unit variance over the mini-batches of all ranks; a single step stays as it is. (M,) -> (M,)."""
    if ranks.size == 1 and len(advantage) == 1:
        return advantage
    if ranks.size == 1:
        return (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    x = advantage.double()
    sums = torch.stack([torch.ones_like(x).sum(), x.sum(), x.square().sum()])
    count, total, squares = ranks.average_(sums) * ranks.size
    mean = total / count
    std = ((squares - count * mean.square()) / (count - 1)).clamp(min=0).sqrt()
    return ((x - mean) / (std + 1e-8)).to(advantage.dtype)


def gradient_step(policy: Policy, optimizer: torch.optim.Optimizer, loss: Tensor, config: PPOConfig,
                  before: Callable[[], Any] = lambda: None) -> float:
    """A step down the gradient of a loss, scaled down to `max_grad_norm`; gives the norm. `before` is called before the
    step. Raises NonFiniteLoss instead of a step with a loss or norm that is not finite."""
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
           entropy_coef: EntropyCoefficient, batch: Batch, targets: Targets, unit: float,
           config: PPOConfig) -> dict[str, float]:
    """One gradient step; its statistics. "kl": approximate divergence from the policy that ratios are taken to."""
    advantage = normalized(targets.advantage, ranks) if config.normalize_advantages else targets.advantage
    log_prob, entropy, value, mean = batch.given_to(evaluate)
    surrogate, ratio = policy_loss(log_prob, targets.log_prob, advantage, targets.policy_weight, config.clip)
    value_error = value_loss(value, targets.value, targets.weight, unit)
    loss = surrogate + config.value_coef * value_error + entropy_coef.loss(entropy, targets.weight)
    imitated = {}
    if config.imitation_coef:
        imitation = imitation_loss(policy, mean, batch.obs[EXPERT_ACTION])
        loss = loss + imitation_weight(config, optimizer) * imitation
        imitated["imitation_loss"] = imitation.item()
    norm = gradient_step(policy, optimizer, loss, config, lambda: ranks.average_(entropy_coef.log_alpha.grad))
    entropy_coef.clamp()
    with torch.no_grad():
        log_ratio = log_prob - targets.log_prob
        return {"policy_loss": surrogate.item(), "value_loss": value_error.item(), "entropy": entropy.mean().item(),
                "kl": (torch.exp(log_ratio) - 1 - log_ratio).mean().item(),
                "clip_fraction": ((ratio - 1).abs() > config.clip).float().mean().item(), "grad_norm": norm,
                "entropy_coef": float(entropy_coef.value()), **imitated}
