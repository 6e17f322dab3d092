"""The recurrent actor-critic: image encoder + vectors + previous action -> LSTM -> action distribution and value.

Two ways in: `act` for inference, one step for many environments; `evaluate` for learning, whole sequences of unequal
length. Both give the same numbers for the same steps (tests/trainer/test_policy.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from trainer.nets import distributions
from trainer.config import PolicyConfig
from trainer.nets.encoders import ENCODERS, orthogonal
from trainer.nets.precision import learning_in
from trainer.sequences import Sequences
from trainer.spaces import action_numbers, choices


SMALLEST_IMAGE = 8  # pixels; what is smaller is a vector
EXPERT_ACTION = "expert_action"
"""The observation of this name is not for the policy but for its teacher: what an expert would do now, and, as a last number,
the weight of that advice (0: none). `ppo.imitation_coef` says how much is learned from it."""


@dataclass
class Act:
    """What `Policy.act` returns for a batch of B environments."""

    action: Tensor  # (B, A) float, not clipped to the action space; for discrete spaces (B, parts) long
    log_prob: Tensor  # (B,)
    value: Tensor  # (B,)
    state: Tensor  # (B, state_size) recurrent state after this step


class Policy(nn.Module):
    """Actor-critic for a Dict (or Box) observation space and a Box, Discrete, MultiDiscrete or MultiBinary action space.

    Keys that are images, (H, W, C) of 8 pixels or more, have an encoder each; all others are flattened and concatenated. Without
    an encoder images are not seen.
    """

    def __init__(self, observation_space: spaces.Space, action_space: spaces.Space, config: PolicyConfig,
                 encoders: Mapping[str, Callable[..., nn.Module]] = ENCODERS):
        """`encoders`: what `config.encoder` may name, each called with the shape of an image and `config.embedding_size`."""
        super().__init__()
        self.config = config
        self.choices = choices(action_space)  # options of each part of a discrete action; () for a Box
        self.action_size = action_numbers(action_space)
        if config.encoder and config.encoder not in encoders:
            raise ValueError(f"policy.encoder={config.encoder} is none of {', '.join(encoders)}.")
        shapes = observation_shapes(observation_space)
        self.image_keys = [k for k, s in shapes.items() if is_image(s)] if config.encoder else []
        boxes = observation_space.spaces if isinstance(observation_space, spaces.Dict) else {"obs": observation_space}
        self.image_scale = {k: image_scale(boxes[k]) for k in self.image_keys}
        self.vector_keys = [k for k, s in shapes.items() if not is_image(s) and k != EXPERT_ACTION]
        self.seen = {k: s for k, s in shapes.items() if k in self.image_keys or k in self.vector_keys}
        self.encoders = nn.ModuleDict(
            {_module_name(k): encoders[config.encoder](shapes[k], config.embedding_size) for k in self.image_keys}
        )
        width = (sum(int(np.prod(shapes[k])) for k in self.vector_keys) + config.embedding_size * len(self.image_keys)
                 + self.action_size)
        layers: list[nn.Module] = []
        for _ in range(config.body_layers if config.body_size else 0):
            layers += [orthogonal(nn.Linear(width, config.body_size)), nn.Tanh()]
            width = config.body_size
        self.body = nn.Sequential(*layers)
        self.lstm = _lstm(width, config.hidden_size, config.lstm_layers) if config.lstm_layers else None
        head_width = (config.hidden_size if self.lstm else 0) + (width if config.skip or not self.lstm else 0)
        for name in ("mean_init", "log_std_init"):
            given = getattr(config, name)
            if np.ndim(given) and len(given) not in (1, self.action_size):
                raise ValueError(f"policy.{name} has {len(given)} values, the actions have {self.action_size}.")
        self.mean = orthogonal(nn.Linear(head_width, self.action_size), 0.01)
        if not self.choices:
            mean = torch.as_tensor(config.mean_init, dtype=torch.float32).expand(self.action_size)
            self.mean.bias.data[:] = torch.atanh(mean.clamp(-0.9, 0.9)) if config.tanh_mean else mean
        self.value = orthogonal(nn.Linear(head_width, 1), 1.0)
        log_std = torch.as_tensor(config.log_std_init, dtype=torch.float32).expand(self.action_size).clone()
        self.log_std = None if self.choices else nn.Parameter(log_std)
        if not self.choices:
            low, high = action_space.low.reshape(-1), action_space.high.reshape(-1)
            self.register_buffer("low", torch.as_tensor(low, dtype=torch.float32), persistent=False)
            self.register_buffer("high", torch.as_tensor(high, dtype=torch.float32), persistent=False)

    @property
    def state_size(self) -> int:
        """Floats of recurrent state per environment: h and c of every layer."""
        return 2 * self.config.lstm_layers * self.config.hidden_size

    def action_features(self, action: Tensor) -> Tensor:
        """Previous action as network input: executed (clipped) action, or a one-hot for each discrete part. -> (B, A)."""
        if self.choices:
            return torch.cat([nn.functional.one_hot(part, n) for part, n in zip(action.unbind(-1), self.choices)], -1).float()
        return torch.clamp(action, self.low, self.high)

    @torch.no_grad()
    def act(self, obs: dict[str, Tensor], state: Tensor, previous: Tensor, deterministic: bool = False,
            noise: Tensor | None = None, generator: torch.Generator | None = None) -> Act:
        """One step. obs: key -> (B, ...); state (B, state_size); previous: `action_features` of the last action, zeros at
        an episode's start (B, A). `noise` (B, A) replaces the standard normal draw, for reproducible evaluation, also
        where actions are discrete (0: the likeliest);
        `generator` is where random numbers come from otherwise, torch's global one by default."""
        features = self._features(obs, previous)
        out = features
        if self.lstm:
            y, state = self._step_lstm(features, state)
            out = torch.cat([features, y], -1) if self.config.skip else y
        params, value, log_std = self._heads(out)
        if self.choices:
            parts = params.split(self.choices, -1)
            if deterministic or noise is not None:
                drawn = parts if deterministic else (params + distributions.gumbel(noise)).split(self.choices, -1)
                action = torch.cat([part.argmax(-1, keepdim=True) for part in drawn], -1)
            else:
                action = torch.cat([torch.multinomial(torch.softmax(part, -1), 1, generator=generator) for part in parts], -1)
            log_prob = distributions.categorical_log_prob(action, parts)
        else:
            if deterministic:
                action = params
            else:
                if noise is None:
                    noise = torch.randn(params.shape, generator=generator, device=params.device, dtype=params.dtype)
                action = params + log_std.exp() * noise
            log_prob = distributions.gaussian_log_prob(action, params, log_std)
        return Act(action, log_prob, value, state)

    def evaluate(self, obs: dict[str, Tensor], previous: Tensor, action: Tensor, sequences: Sequences,
                 state: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Log-probability (M,), entropy (M,), value (M,) and mean action (M, A), or logits where it is discrete, of M steps
        stored sequence after sequence.

        `sequences` says where each of the K sequences starts and how long it is; `state` (K, state_size) is the
        recurrent state that entered its first step. Heads and probabilities are float32 whatever `learn_precision` says.
        """
        with learning_in(self.config.learn_precision, previous.device):
            out = features = self._features(obs, previous)
            if self.lstm:
                y = self._run_lstm(features, sequences, state)
                out = torch.cat([features, y], -1) if self.config.skip else y
        out = out.float()
        params, value, log_std = self._heads(out)
        if self.choices:
            parts = params.split(self.choices, -1)
            return distributions.categorical_log_prob(action, parts), distributions.categorical_entropy(parts), value, params
        entropy = distributions.gaussian_entropy(log_std).expand(len(value))
        return distributions.gaussian_log_prob(action, params, log_std), entropy, value, params

    forward = evaluate  # what DistributedDataParallel calls

    def _features(self, obs: dict[str, Tensor], previous: Tensor) -> Tensor:
        parts = [obs[k].flatten(1) for k in self.vector_keys]
        parts += [self._encode(k, obs[k] * s if (s := self.image_scale[k]) != 1 else obs[k]) for k in self.image_keys]
        return self.body(torch.cat([*parts, previous], -1))

    def _encode(self, key: str, image: Tensor) -> Tensor:
        """Features of an image; in bfloat16 if asked, while weights, gradients and all else stay float32. The same when
        acting and when learning, so that the ratio of their probabilities begins at 1."""
        if self.config.image_precision == "float32":
            return self.encoders[_module_name(key)](image)
        with torch.autocast(image.device.type, torch.bfloat16):
            return self.encoders[_module_name(key)](image).float()

    def _heads(self, out: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        mean = self.mean(out)
        if self.choices:
            return mean, self.value(out).squeeze(-1), None
        if self.config.tanh_mean:
            mean = torch.tanh(mean)
        return mean, self.value(out).squeeze(-1), self.log_std.clamp(self.config.log_std_min, self.config.log_std_max)

    def _split(self, state: Tensor) -> tuple[Tensor, Tensor]:
        """(K, state_size) -> h, c of shape (layers, K, hidden)."""
        layers, hidden = self.config.lstm_layers, self.config.hidden_size
        hc = state.view(len(state), 2 * layers, hidden).transpose(0, 1).contiguous()
        return hc[:layers], hc[layers:]

    def _step_lstm(self, features: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """One step of the LSTM, (B, F) -> (B, hidden), and the state after it. On the CPU without oneDNN's LSTM, which packs all
        weights anew at every call: with 16 environments that takes as long as the step."""
        h, c = self._split(state)
        if features.is_cuda:
            y, (h, c) = self.lstm(features.unsqueeze(0), (h, c))
            return y[0], torch.cat([h, c]).transpose(0, 1).flatten(1)
        y, after = features, []
        for layer, weights in enumerate(self.lstm.all_weights):
            after.append(torch.lstm_cell(y, (h[layer], c[layer]), *weights))
            y = after[-1][0]
        return y, torch.cat([*(h for h, _ in after), *(c for _, c in after)], 1)

    def _run_lstm(self, features: Tensor, sequences: Sequences, state: Tensor) -> Tensor:
        """LSTM over K sequences of unequal length, (M, F) -> (M, hidden), in the order the steps are stored.

        On CUDA as a PackedSequence (VER paper 2.2, figure 3C). On CPU padded: oneDNN's fused LSTM does not accept packed
        input and is several times faster although it computes the padding. Same result either way.
        """
        if features.is_cuda:
            packed = PackedSequence(features[sequences.packed_order], sequences.batch_sizes)
            h, c = self._split(state[sequences.by_length])
            y, _ = self.lstm(packed, (h.contiguous(), c.contiguous()))
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
            raise ValueError(f"observation key '{bad[0]}' is a {type(space[bad[0]]).__name__}; the engine takes Box keys only.")
        return {k: tuple(s.shape) for k, s in space.items()}
    if isinstance(space, spaces.Box):
        return {"obs": tuple(space.shape)}
    raise ValueError(f"observation space {space} is neither a Box nor a Dict of Boxes.")


def is_image(shape: tuple[int, ...]) -> bool:
    """Whether an observation of this shape is an image. ValueError for one with its channels in front."""
    if len(shape) != 3:
        return False
    if shape[0] <= 4 and min(shape[1:]) >= SMALLEST_IMAGE:
        raise ValueError(f"an observation of shape {shape} looks like an image with its channels in front; the engine takes "
                         "(height, width, channels): gymnasium.wrappers.TransformObservation can turn it.")
    return min(shape[:2]) >= SMALLEST_IMAGE


def _module_name(key: str) -> str:
    """The name of a key's encoder, which may have no dot and not be a method's of its container."""
    name = key.replace(".", "/")
    return f"{name}/" if hasattr(nn.ModuleDict, name) or name in nn.ModuleDict().__dict__ else name


def image_scale(space: spaces.Box) -> float:
    """Factor that brings an image into [0, 1]: 1/255 for bytes, 1 where the space has no finite bound or is there already."""
    high = float(np.max(space.high))
    return 1 / high if 1 < high < np.inf else 1.0


def _lstm(width: int, hidden: int, layers: int) -> nn.LSTM:
    lstm = nn.LSTM(width, hidden, layers)
    for name, parameter in lstm.named_parameters():
        if "weight" in name:
            nn.init.orthogonal_(parameter)
        else:
            nn.init.zeros_(parameter)
    return lstm
