"""Networks that are none of the engine's. Not beside the toy environments, whose workers would load torch with them."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from trainer.policy import Act, observation_shapes


class Straight(nn.Module):
    """A policy network that is none of the engine's: one linear layer, no memory, a fixed spread."""

    state_size = 0
    choices = ()

    def __init__(self, observation_space, action_space, config):
        super().__init__()
        self.seen = observation_shapes(observation_space)
        self.action_size = action_space.shape[0]
        width = sum(int(np.prod(shape)) for shape in self.seen.values())
        self.mean, self.value = nn.Linear(width, self.action_size), nn.Linear(width, 1)

    def action_features(self, action):
        return action.clamp(-1, 1)

    def _distribution(self, obs):
        features = torch.cat([obs[key].flatten(1) for key in self.seen], 1)
        return torch.distributions.Normal(self.mean(features), 0.5), self.value(features).squeeze(1)

    def act(self, obs, state, previous, deterministic=False, noise=None, generator=None):
        spread, value = self._distribution(obs)
        if noise is None:
            noise = (torch.zeros_like(spread.mean) if deterministic else
                     torch.randn(spread.mean.shape, generator=generator, device=spread.mean.device))
        action = spread.mean + spread.stddev * noise
        return Act(action, spread.log_prob(action).sum(1), value, state)

    def evaluate(self, obs, previous, action, sequences, state):
        spread, value = self._distribution(obs)
        return spread.log_prob(action).sum(1), spread.entropy().sum(1), value, spread.mean

    forward = evaluate


class Bent(Straight):
    """Weights of the same shapes, put to another use."""

    def _distribution(self, obs):
        spread, value = super()._distribution(obs)
        return torch.distributions.Normal(torch.tanh(spread.mean), 0.5), value
