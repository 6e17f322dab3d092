"""The actor-critic: image encoder + vectors + previous action -> MLP -> memory -> action distribution and value.

Two ways in: `act` for inference, one step for many environments; `evaluate` for learning, whole sequences of unequal
length. Both give the same numbers for the same steps (tests/trainer/test_policy.py).

The value may have an MLP of its own, which also sees what only the critic may see (`config.critic_keys`). Encoders and
memory are shared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from trainer.config import PolicyConfig
from trainer.nets import heads
from trainer.nets.encoders import ENCODERS
from trainer.nets.heads import ReturnScale, RunningMoments, Sum, alone, learning_in, orthogonal
from trainer.nets.images import image_layout
from trainer.sequences import Sequences
from trainer.spaces import action_numbers, choices, units

EXPERT_ACTION = "expert_action"
"""The observation of this name is not for the policy but for its teacher: what an expert would do now, and, as a last
number, the weight of that advice (0: none). `ppo.imitation_coef` says how much is learned from it."""
ACTION_MASK = "action_mask"
"""This observation says which options of a discrete action are allowed: 1 or 0 for each, of all its parts."""
FORBIDDEN = -1e8  # the logit of an option that is not allowed


@dataclass
class Act:
    """What `Policy.act` returns for a batch of B environments."""

    action: Tensor  # (B, A) float, not clipped to the action space; for discrete spaces (B, parts) long
    log_prob: Tensor  # (B,)
    value: Tensor  # (B,)
    state: Tensor  # (B, state_size) recurrent state after this step


class Policy(nn.Module):
    """Actor-critic for Dict or Box observations, and Box, Discrete, MultiDiscrete or MultiBinary actions.

    Images (trainer.nets.images) have an encoder each, and are not seen without; all other keys are concatenated as
    vectors.
    """

    def __init__(self, observation_space: spaces.Space, action_space: spaces.Space, config: PolicyConfig,
                 encoders: Mapping[str, Callable[..., nn.Module]] = ENCODERS):
        """`encoders`: what `config.encoder` may name, each called with the shape (H, W, C) and
        `config.embedding_size`."""
        super().__init__()
        self.config = config
        self.choices = choices(action_space)  # options of each part of a discrete action; () for a Box
        self.action_size = action_numbers(action_space)
        if config.encoder and config.encoder not in encoders:
            raise ValueError(f"policy.encoder={config.encoder} is none of {', '.join(encoders)}.")
        shapes = observation_shapes(observation_space)
        boxes = observation_space.spaces if isinstance(observation_space, spaces.Dict) else {"obs": observation_space}
        layouts = {k: layout for k in shapes if (layout := image_layout(boxes[k]))}
        self.layouts = layouts if config.encoder else {}
        self.image_keys = list(self.layouts)
        self.masked = bool(self.choices) and ACTION_MASK in shapes
        if self.masked and shapes[ACTION_MASK] != (self.action_size,):
            raise ValueError(f"the observation '{ACTION_MASK}' has shape {shapes[ACTION_MASK]}; the actions have "
                             f"{self.action_size} options, of which it tells which are allowed.")
        self._first_options = np.cumsum((0, *self.choices[:-1]))
        apart = {*layouts, EXPERT_ACTION, *([ACTION_MASK] if self.masked else [])}
        vectors = [k for k in shapes if k not in apart]
        if wrong := [k for k in config.critic_keys if k not in vectors]:
            raise ValueError(f"policy.critic_keys has '{wrong[0]}', which is no vector that the environments show: "
                             f"{', '.join(vectors) or 'there is none'}.")
        if config.critic_keys and not config.separate_value:
            raise ValueError("policy.critic_keys needs policy.separate_value=True: what only the critic may see cannot "
                             "go through what both share.")
        self.critic_keys = [k for k in vectors if k in config.critic_keys]
        self.vector_keys = [k for k in vectors if k not in config.critic_keys]
        self.units = units(observation_space)
        self.seen = {k: s for k, s in shapes.items()
                     if k in self.image_keys or k in vectors or self.masked and k == ACTION_MASK}
        self.encoders = nn.ModuleDict(
            {_module_name(k): encoders[config.encoder](layout.shape, config.embedding_size)
             for k, layout in self.layouts.items()})
        size = sum(int(np.prod(shapes[k])) for k in self.vector_keys)
        extra = sum(int(np.prod(shapes[k])) for k in self.critic_keys)
        inputs = size + config.embedding_size * len(self.image_keys) + self.action_size
        self.normalizer = RunningMoments(size) if config.normalize_observations and size else None
        self.critic_normalizer = RunningMoments(extra) if config.normalize_observations and extra else None
        self.body, width = _mlp(inputs, config)
        self.value_body, value_width = _mlp(inputs + extra, config) if config.separate_value else (None, width)
        self.lstm = _memory(width, config) if config.lstm_layers else None
        self._splits = self.lstm is not None and config.memory == "lstm"  # its state is h and c
        memory = config.hidden_size if self.lstm else 0
        head_width = memory + (width if config.skip or not self.lstm else 0)
        value_width = memory + value_width if config.separate_value else head_width
        for name in ("mean_init", "log_std_init"):
            given = getattr(config, name)
            if np.ndim(given) and len(given) not in (1, self.action_size):
                raise ValueError(f"policy.{name} has {len(given)} values, the actions have {self.action_size}.")
        self.mean = orthogonal(nn.Linear(head_width, self.action_size), 0.01)
        if not self.choices:
            mean = torch.as_tensor(config.mean_init, dtype=torch.float32).expand(self.action_size)
            self.mean.bias.data[:] = torch.atanh(mean.clamp(-0.9, 0.9)) if config.tanh_mean else mean
        self.value = orthogonal(nn.Linear(value_width, 1), 1.0)
        self.return_scale = ReturnScale() if config.normalize_returns else None
        log_std = torch.as_tensor(config.log_std_init, dtype=torch.float32).expand(self.action_size).clone()
        self.log_std = None if self.choices else nn.Parameter(log_std)
        if not self.choices:
            low, high = action_space.low.reshape(-1), action_space.high.reshape(-1)
            self.register_buffer("low", torch.as_tensor(low, dtype=torch.float32), persistent=False)
            self.register_buffer("high", torch.as_tensor(high, dtype=torch.float32), persistent=False)

    @property
    def state_size(self) -> int:
        """Floats of recurrent state per environment: h of every layer, and c of an LSTM's."""
        return self.config.state_size

    def action_features(self, action: Tensor) -> Tensor:
        """Previous action as network input, (B, A): executed (clipped), or a one-hot for each discrete part."""
        if self.choices:
            parts = zip(action.unbind(-1), self.choices)
            return torch.cat([nn.functional.one_hot(part, n) for part, n in parts], -1).float()
        return torch.clamp(action, self.low, self.high)

    @torch.no_grad()
    def act(self, obs: dict[str, Tensor], state: Tensor, previous: Tensor, deterministic: bool = False,
            noise: Tensor | None = None, generator: torch.Generator | None = None) -> Act:
        """One step. obs: key -> (B, ...); state (B, state_size); previous: `action_features` of the last action, zeros
        at an episode's start (B, A). `noise` (B, A) replaces the standard normal draw, for reproducible evaluation,
        also where actions are discrete (0: the likeliest); `generator` is where random numbers come from otherwise,
        torch's global one by default. Raises ValueError on the CPU where a mask allows no action."""
        if self.masked and state.device.type == "cpu" and not torch.compiler.is_compiling():  # a GPU would have to wait
            self._refuse_no_option(obs[ACTION_MASK])
        inputs = self._inputs(obs, previous)
        features, y = self.body(inputs), None
        if self.lstm:
            y, state = self._step_memory(features, state)
        params, log_std = self._action(features, y, obs)
        value = self._value(inputs, features, y, obs)
        if self.choices:
            parts = params.split(self.choices, -1)
            if deterministic or noise is not None:
                drawn = parts if deterministic else (params + heads.gumbel(noise)).split(self.choices, -1)
                action = torch.cat([part.argmax(-1, keepdim=True) for part in drawn], -1)
            else:
                action = torch.cat(
                    [torch.multinomial(torch.softmax(part, -1), 1, generator=generator) for part in parts], -1)
            log_prob = heads.categorical_log_prob(action, parts)
        else:
            if deterministic:
                action = params
            else:
                if noise is None:
                    noise = torch.randn(params.shape, generator=generator, device=params.device, dtype=params.dtype)
                action = params + log_std.exp() * noise
            log_prob = heads.gaussian_log_prob(action, params, log_std)
        return Act(action, log_prob, value, state)

    def _refuse_no_option(self, mask: Tensor) -> None:
        allowed = np.maximum.reduceat(mask.numpy(), self._first_options, axis=1).min(0) >= 0.5  # in every environment
        if not allowed.all():
            part = int(allowed.argmin())
            raise ValueError(f"the observation '{ACTION_MASK}' allows none of the {self.choices[part]} options of part "
                             f"{part} of the action; it must allow at least one.")

    def evaluate(self, obs: dict[str, Tensor], previous: Tensor, action: Tensor, sequences: Sequences,
                 state: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Log-probability (M,), entropy (M,), value (M,) and mean action, or logits where it is discrete, (M, A), of M
        steps.

        `sequences`: where each of the K sequences starts, and how long it is. `state` (K, state_size): recurrent state
        at its first step. Heads and probabilities are float32 whatever `learn_precision` says.
        """
        with learning_in(self.config.learn_precision, previous.device):
            inputs = self._inputs(obs, previous)
            features = self.body(inputs)
            y = self._run_lstm(features, sequences, state).float() if self.lstm else None
        inputs, features = inputs.float(), features.float()
        params, log_std = self._action(features, y, obs)
        value = self._value(inputs, features, y, obs)
        if self.choices:
            parts = params.split(self.choices, -1)
            log_prob = heads.categorical_log_prob(action, parts)
            entropy = heads.categorical_entropy(parts)
        else:
            log_prob = heads.gaussian_log_prob(action, params, log_std)
            entropy = heads.gaussian_entropy(log_std).expand(len(value))
        return log_prob, entropy, value, params

    forward = evaluate  # what DistributedDataParallel calls

    def unit_of_values(self) -> float:
        """The deviation of the returns: value errors are learned from in this unit. 0 while no reward was seen."""
        return float(self.return_scale.std) if self.return_scale else 1.0

    def take_returns(self, returns: Tensor, over_ranks: Sum = alone) -> None:
        """Normalise by these from now on, too: returns (M,) of the newest experience. No value changes."""
        if self.return_scale:
            self.return_scale.take(returns, self.value, over_ranks)

    def knows_observations(self) -> bool:
        """Whether what it normalises by is known."""
        return self.normalizer is None or bool(self.normalizer.count)

    def take_observations(self, obs: dict[str, Tensor], over_ranks: Sum = alone) -> None:
        """Normalise by these from now on, too: key -> (M, ...), each observation once."""
        for normalizer, keys in ((self.normalizer, self.vector_keys), (self.critic_normalizer, self.critic_keys)):
            if normalizer:
                normalizer.take(self._vectors(obs, keys), over_ranks)

    def _vectors(self, obs: dict[str, Tensor], keys: list[str]) -> Tensor:
        parts = [obs[k].flatten(1) * s if (s := self.units[k]) != 1 else obs[k].flatten(1) for k in keys]
        return parts[0] if len(parts) == 1 else torch.cat(parts, -1)

    def _inputs(self, obs: dict[str, Tensor], previous: Tensor) -> Tensor:
        parts = []
        if self.vector_keys:
            vectors = self._vectors(obs, self.vector_keys)
            parts.append(self.normalizer(vectors) if self.normalizer else vectors)
        parts += [self._encode(k, layout.as_hwc(obs[k])) for k, layout in self.layouts.items()]
        return torch.cat([*parts, previous], -1)

    def _action(self, features: Tensor, y: Tensor | None, obs: dict[str, Tensor]) -> tuple[Tensor, Tensor | None]:
        """Mean of the action and logarithm of its deviation, or logits of the options."""
        out = self.mean(self._head(features, y))
        if self.choices:
            return out.masked_fill(obs[ACTION_MASK] < 0.5, FORBIDDEN) if self.masked else out, None
        mean = torch.tanh(out) if self.config.tanh_mean else out
        return mean, heads.bounded(self.log_std, self.config.log_std_min, self.config.log_std_max)

    def _value(self, inputs: Tensor, features: Tensor, y: Tensor | None, obs: dict[str, Tensor]) -> Tensor:
        """(B,); NaN where what only the critic sees is not there, as when a trained policy is played."""
        if self.value_body is None:
            out = self._head(features, y)
        else:
            if self.critic_keys:
                if self.critic_keys[0] not in obs:
                    return torch.full((len(inputs),), torch.nan, device=inputs.device)
                extra = self._vectors(obs, self.critic_keys)
                inputs = torch.cat([inputs, self.critic_normalizer(extra) if self.critic_normalizer else extra], -1)
            own = self.value_body(inputs)
            out = own if y is None else torch.cat([own, y], -1)
        value = self.value(out).squeeze(-1)
        return self.return_scale(value) if self.return_scale else value

    def _head(self, features: Tensor, y: Tensor | None) -> Tensor:
        """What the heads get of the MLP's features and the memory's output."""
        if y is None:
            return features
        return torch.cat([features, y], -1) if self.config.skip else y

    def _encode(self, key: str, image: Tensor) -> Tensor:
        """Features of an image; in bfloat16 if asked, while weights, gradients and all else stay float32. The same when
        acting and when learning, so that the ratio of their probabilities begins at 1."""
        if self.config.image_precision == "float32":
            return self.encoders[_module_name(key)](image)
        with torch.autocast(image.device.type, torch.bfloat16):
            return self.encoders[_module_name(key)](image).float()

    def _step_memory(self, features: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """One step: its output (B, hidden) and the state after it (B, state_size). An LSTM on the CPU without oneDNN,
        which packs all weights anew at every call: with 16 environments that takes as long as the step."""
        before = self._split(state)
        if features.is_cuda or not self._splits:
            y, after = self.lstm(features.unsqueeze(0), before)
            layers = torch.cat(after) if self._splits else after
            return y[0], layers.transpose(0, 1).flatten(1)
        (h, c), y, cells = before, features, []
        for layer, weights in enumerate(self.lstm.all_weights):
            cells.append(torch.lstm_cell(y, (h[layer], c[layer]), *weights))
            y = cells[-1][0]
        return y, torch.cat([*(h for h, _ in cells), *(c for _, c in cells)], 1)

    def _split(self, state: Tensor) -> Any:
        """(K, state_size) -> h, or h and c, of shape (layers, K, hidden)."""
        layers, hidden = self.config.lstm_layers, self.config.hidden_size
        both = state.view(len(state), -1, hidden).transpose(0, 1).contiguous()
        return (both[:layers], both[layers:]) if self._splits else both

    def _run_lstm(self, features: Tensor, sequences: Sequences, state: Tensor) -> Tensor:
        """The memory over K sequences of unequal length, (M, F) -> (M, hidden), in the order the steps are stored.

        On CUDA as a PackedSequence (VER paper 2.2, figure 3C). On CPU padded: oneDNN's fused LSTM does not accept
        packed input and is several times faster although it computes the padding. Same result either way.
        """
        if features.is_cuda:
            packed = PackedSequence(features[sequences.packed_order], sequences.batch_sizes)
            y, _ = self.lstm(packed, self._split(state[sequences.by_length]))
            out = torch.empty_like(y.data)
            out[sequences.packed_order] = y.data
            return out
        padded = features[sequences.padded_index]  # (longest, K, F); padding repeats a step and is dropped below
        y, _ = self.lstm(padded, self._split(state))
        return y[sequences.step_in_sequence, sequences.sequence_of_step]


def observation_shapes(space: spaces.Space) -> dict[str, tuple[int, ...]]:
    """Shape per key; a plain Box (or Discrete as one-hot length) observation is the key "obs"."""
    if isinstance(space, spaces.Dict):
        bad = [k for k, s in space.items() if not isinstance(s, spaces.Box)]
        if bad:
            raise ValueError(f"observation key '{bad[0]}' is a {type(space[bad[0]]).__name__}; the engine takes Box "
                             "keys only.")
        return {k: tuple(s.shape) for k, s in space.items()}
    if isinstance(space, spaces.Box):
        return {"obs": tuple(space.shape)}
    raise ValueError(f"observation space {space} is neither a Box nor a Dict of Boxes.")


def _module_name(key: str) -> str:
    """The name of a key's encoder, which may have no dot and not be a method's of its container."""
    name = key.replace(".", "/")
    return f"{name}/" if hasattr(nn.ModuleDict, name) or name in nn.ModuleDict().__dict__ else name


def _mlp(width: int, config: PolicyConfig) -> tuple[nn.Sequential, int]:
    """The MLP before the memory, and the width of what it gives."""
    layers: list[nn.Module] = []
    for _ in range(config.body_layers if config.body_size else 0):
        layers += [orthogonal(nn.Linear(width, config.body_size)), nn.Tanh()]
        width = config.body_size
    return nn.Sequential(*layers), width


def _memory(width: int, config: PolicyConfig) -> nn.LSTM | nn.GRU:
    made = {"lstm": nn.LSTM, "gru": nn.GRU}[config.memory](width, config.hidden_size, config.lstm_layers)
    for name, parameter in made.named_parameters():
        if "weight" in name:
            nn.init.orthogonal_(parameter)
        else:
            nn.init.zeros_(parameter)
    return made
