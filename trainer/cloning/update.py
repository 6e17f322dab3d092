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
from trainer.rollout import Rollout
from trainer.sequences import find_sequences, gae, whole_sequences


def update(policy: PolicyNetwork, optimizer: torch.optim.Optimizer, rollout: Rollout, config: PPOConfig,
           rng: np.random.Generator, batch: np.ndarray, ranks: Ranks, evaluate: Callable[..., Any],
           learns: bool = True) -> dict[str, float]:
    """One pass over whole episodes, in mini-batches; gives mean statistics.

    The loss is -log pi(a | what was seen so far) of the distribution that PPO draws from, and PPO's value loss with the
    discounted rewards of the rest of the episode as targets: PPO that goes on from here has a critic. Last actions are
    shuffled, since a policy that can copy its last action learns that alone, and never begins (de Haan et al. 2019).

    Args:
        policy: the network.
        optimizer: of its parameters.
        rollout: where the episodes are.
        config: mini-batches, discount, weight of the value loss, largest norm of gradients.
        rng: deals episodes to mini-batches.
        batch: (S,) rows of `rollout` to learn from.
        ranks: over which gradients and returns are averaged.
        evaluate: `policy.evaluate` with those gradients (Ranks.evaluator).
        learns: False: a policy that normalises only looks at the episodes.
    """
    device = rollout.log_prob.device
    order, starts = find_sequences(rollout.env[batch], rollout.step[batch], rollout.starts_episode[batch])
    rows = batch[order]
    none = np.zeros(len(rows), np.float32)
    reward = rollout.reward[rows] * config.reward_scale
    returns = torch.from_numpy(gae(reward, none, none, starts, config.discount, 1.0)).to(device)
    unit = ppo.take_returns(policy, returns, ranks)
    stats: list[dict[str, float]] = []
    where = torch.from_numpy(rows).to(device)
    rollout.previous[where] = rollout.previous[where[torch.from_numpy(rng.permutation(len(rows))).to(device)]]
    for positions, lengths in whole_sequences(starts, len(rows), config.mini_batches, rng) if learns else ():
        part = rollout.gather(rows[positions], lengths)
        log_prob, entropy, value, mean = part.given_to(evaluate)
        target = returns[torch.from_numpy(positions).to(device)]
        cloning, value_error = -log_prob.mean(), ppo.value_loss(value, target, torch.ones_like(target), unit)
        norm = ppo.gradient_step(policy, optimizer, cloning + config.value_coef * value_error, config)
        told = {"cloning_loss": cloning.item(), "value_loss": value_error.item(), "entropy": entropy.mean().item(),
                "grad_norm": norm}
        if not policy.choices:
            with torch.no_grad():
                told["action_error"] = (policy.action_features(mean) - part.action).square().mean().sqrt().item()
        stats.append(told)
    return ppo.means(stats)
