"""Behaviour cloning: the update that makes what was shown likelier, with the losses and the optimiser of PPO."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from trainer import ppo
from trainer.config import PPOConfig
from trainer.networks import PolicyNetwork
from trainer.ranks.ranks import Ranks
from trainer.returns import gae
from trainer.rollout import Rollout
from trainer.sequences import Sequences, find_sequences, whole_sequences


def update(policy: PolicyNetwork, optimizer: torch.optim.Optimizer, rollout: Rollout, config: PPOConfig, rng: np.random.Generator,
           batch: np.ndarray, ranks: Ranks, evaluate: Callable[..., Any], learns: bool = True) -> dict[str, float]:
    """One pass over the rows `batch` of `rollout`, whole episodes, in mini-batches; gives mean statistics.

    The loss is -log pi(a | what was seen so far), of the distribution that PPO draws from, and PPO's value loss, whose targets are
    the discounted rewards of the rest of the episode: PPO that goes on from here has a critic. Last actions are shuffled: most of
    the time who shows goes on as before, and a policy that may copy itself learns that alone, and never begins (de Haan et al.
    2019). Not `learns`: a policy that normalises looks only.
    """
    device = rollout.log_prob.device
    order, starts = find_sequences(rollout.env[batch], rollout.step[batch], rollout.starts_episode[batch])
    rows = batch[order]
    none = np.zeros(len(rows), np.float32)
    returns = torch.from_numpy(gae(rollout.reward[rows] * config.reward_scale, none, none, starts, config.discount, 1.0)).to(device)
    unit = 1.0
    if hasattr(policy, "take_returns"):
        policy.take_returns(returns, ranks.sum_)
        unit = policy.unit_of_values()
    stats = ppo.UpdateStats()
    where = torch.from_numpy(rows).to(device)
    rollout.previous[where] = rollout.previous[where[torch.from_numpy(rng.permutation(len(rows))).to(device)]]
    for positions, lengths in whole_sequences(starts, len(rows), config.mini_batches, rng) if learns else ():
        first = np.cumsum(lengths) - lengths
        part = rollout.gather(rows[positions], rows[positions[first]])
        log_prob, entropy, value, mean = evaluate(part.obs, part.previous, part.action, Sequences(lengths, device), part.state)
        target = returns[torch.from_numpy(positions).to(device)]
        cloning, value_error = -log_prob.mean(), ppo.value_loss(value, target, torch.ones_like(target), unit)
        norm = ppo.gradient_step(policy, optimizer, cloning + config.value_coef * value_error, config)
        with torch.no_grad():
            error = {} if policy.choices else {"action_error": (policy.action_features(mean) - part.action).square().mean().sqrt().item()}
        stats.add(cloning_loss=cloning.item(), value_loss=value_error.item(), entropy=entropy.mean().item(), grad_norm=norm, **error)
    return stats.means()
