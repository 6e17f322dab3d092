"""A trained policy as a file that runs without this package: ONNX, or a program of torch.export.

It is one step of `Player(deterministic=True)`, with all that the policy normalises by inside:

    in    every observation that it sees, by name, (B, ...) in single precision; `state` (B, state_size) and `previous`
          (B, A), zeros where an episode begins. An observation that is itself called `state` or `previous` keeps its
          name, and the engine's own is `recurrent_state` or `recurrent_previous`.
    out   `action` (B, numbers), within the bounds of its space and rounded where that is of whole numbers, or the
          chosen options, counted from the first of the space; `next_state` and `next_previous` for the next step

An output whose name an observation has is likewise `recurrent_action` and so on. In a program of torch.export the
inputs come in this order, with `state` and `previous` last. B is 1 unless `batch` says otherwise. The file holds what
`description` says of all of them: an ONNX file as metadata, a program of torch.export in its extra file METADATA.
"""

from __future__ import annotations

import copy
import io
import json
import logging
import os
import warnings
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from trainer.logs.printable import first_line
from trainer.nets.heads import LIMIT
from trainer.spaces import whole

__all__ = ["FORMATS", "METADATA", "export"]

FORMATS = {"onnx": ".onnx", "torch": ".pt2"}
METADATA = "metadata.json"


class Step(nn.Module):
    """One step of a policy: the likeliest action."""

    def __init__(self, policy: Any):
        super().__init__()
        self.policy = policy
        space = getattr(policy, "action_space", None)
        self.whole = whole(space)
        first_options = torch.as_tensor(getattr(space, "start", 0)).reshape(-1)
        self.register_buffer("of_first_options", first_options, persistent=False)
        self.keys = [key for key in policy.seen if key not in getattr(policy, "critic_keys", ())]

    def forward(self, *inputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The observations in the order of `keys`, state, previous."""
        *values, state, previous = inputs
        act = self.policy.act(dict(zip(self.keys, values)), state, previous, deterministic=True)
        features = self.policy.action_features(act.action)
        numbers = act.action + self.of_first_options if self.policy.choices else features
        return (torch.round(numbers) if self.whole else numbers), act.state, features

    def names(self) -> list[str]:
        """Of the inputs."""
        return [*self.keys, *self._own("state", "previous")]

    def outputs(self) -> list[str]:
        """Names of the outputs."""
        return self._own("action", "next_state", "next_previous")

    def _own(self, *names: str) -> list[str]:
        """These names, those of observations with `recurrent_` before them."""
        own = list(names)
        for i in range(len(own)):
            while own[i] in self.keys:
                own[i] = f"recurrent_{own[i]}"
        return own

    def example(self, batch: int) -> tuple[Tensor, ...]:
        """Inputs of the right shapes."""
        sizes = [*(self.policy.seen[key] for key in self.keys), (self.policy.state_size,), (self.policy.action_size,)]
        return tuple(torch.zeros(batch, *size) for size in sizes)


def description(step: Step, batch: int, meanings: Mapping[str, str], there: Collection[str]) -> dict[str, str]:
    """What goes in and out: `inputs` and `outputs`, each a list in JSON, and `memory` in words.

    Args:
        step: what is exported.
        batch: environments that it acts in at once.
        meanings: of observations, and of `action`, with their units, by name.
        there: the inputs that the file has; one that nothing depends on may be left out of it.
    """
    policy, (state, previous), outputs = step.policy, step.names()[-2:], step.outputs()
    boxes = getattr(policy.observation_space, "spaces", {"obs": policy.observation_space})
    normalised = policy.vector_keys if getattr(policy, "normalizer", None) else ()
    inputs = []
    for name in step.keys:
        factor = getattr(policy, "units", {}).get(name, 1)
        inside = ([f"times {factor:.6g}"] if factor != 1 else []) + (
            [f"mean and standard deviation of training, limited to ±{LIMIT:g}"] if name in normalised else [])
        inputs.append({"name": name, "shape": [batch, *policy.seen[name]], "dtype": "float32", **_bounds(boxes[name]),
                       "meaning": meanings.get(name, ""), "normalised_inside": ", then ".join(inside) or "no"})
    sizes = {"shape": [batch, policy.state_size]}, {"shape": [batch, policy.action_size]}
    zeros = "zeros where an episode begins, then what {} was"
    inputs += [{"name": state, **sizes[0], "dtype": "float32", "meaning": zeros.format(outputs[1])},
               {"name": previous, **sizes[1], "dtype": "float32", "meaning": zeros.format(outputs[2])}]
    options = [int(first) for first in step.of_first_options.reshape(-1)]
    action = {"name": outputs[0], "shape": [batch, len(policy.choices) or policy.action_size],
              "dtype": "int64" if policy.choices else "float32", "meaning": meanings.get("action", "")}
    action |= ({"options": list(policy.choices), "first_options": options} if policy.choices else
               _bounds(policy.action_space))
    return {"inputs": json.dumps([each for each in inputs if each["name"] in there]),
            "outputs": json.dumps([action, {"name": outputs[1], **sizes[0], "dtype": "float32", "meaning": state},
                                   {"name": outputs[2], **sizes[1], "dtype": "float32", "meaning": previous}]),
            "memory": f"{state} is {_memory(policy)}; {previous} is the action before, as it was carried out"
                      + (", one-hot" if policy.choices else "")}


def _bounds(box: Any) -> dict[str, Any]:
    """Of each number of a vector, or of all pixels of an image; null where there is none."""
    found = {"low": box.low, "high": box.high} if len(box.shape) < 2 else {"low": box.low.min(), "high": box.high.max()}
    return {name: np.where(np.isfinite(bound), bound, None).tolist() for name, bound in found.items()}


def _memory(policy: Any) -> str:
    config = getattr(policy, "config", None)
    if not policy.state_size or config is None:
        return "empty" if not policy.state_size else "what the network keeps"
    layers = f"{config.lstm_layers} x {config.hidden_size} numbers"
    return f"h of an LSTM ({layers}), then c ({layers})" if config.memory == "lstm" else f"h of a GRU ({layers})"


def export(policy: Any, file: str | os.PathLike, format: str = "onnx", batch: int = 1,
           meanings: Mapping[str, str] | None = None, notes: Mapping[str, str] | None = None) -> Path:
    """Write one step of a policy; the file is complete, or as it was before.

    Args:
        policy: as `load_policy` gives it.
        file: to write.
        format: "onnx" or "torch".
        batch: environments that it acts in at once.
        meanings: of observations, and of `action`, with their units, by name.
        notes: further texts for the file's metadata.

    Raises:
        OSError: the file cannot be written.
        ValueError: the format cannot hold this network.
        ImportError: the package onnx is missing.
    """
    path, content = Path(file), io.BytesIO()
    step = Step(copy.deepcopy(policy.eval())).requires_grad_(False)  # else outputs would ask for gradients
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            logging.getLogger("torch.onnx").setLevel(logging.ERROR)
            program = torch.export.export(step, step.example(batch))
            if format == "torch":
                about = dict(notes or {}) | description(step, batch, meanings or {}, step.names())
                torch.export.save(program, content, extra_files={METADATA: json.dumps(about)})
            else:
                written = torch.onnx.export(program, args=(), input_names=step.names(), output_names=step.outputs(),
                                            verbose=False)
                for node in written.model.graph:  # an intermediate value may have the name of an observation
                    for value in node.outputs:
                        if value.name in step.keys:
                            value.name = f" {value.name}"
                there = [each.name for each in written.model.graph.inputs]
                written.model.metadata_props.update(dict(notes or {}) | description(step, batch, meanings or {}, there))
                content.write(written.model_proto.SerializeToString())
    except (RuntimeError, TypeError, AssertionError, torch.onnx.errors.OnnxExporterError) as error:
        raise ValueError(f"the network {type(policy).__name__} cannot be written as format={format}: "
                         f"{first_line(error)}") from error
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.write_bytes(content.getbuffer())
        part.replace(path)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
    return path
