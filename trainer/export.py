"""A trained policy as a file that runs without this package: ONNX, or a program of torch.export.

It is one step of `Player(deterministic=True)`, with all that the policy normalises by inside:

    in    every observation that it sees, by name, (B, ...) in single precision; `state` (B, state_size) and `previous`
          (B, A), zeros where an episode begins. An observation that is itself called `state` or `previous` keeps its
          name, and the engine's own is `recurrent_state` or `recurrent_previous`.
    out   `action` (B, numbers), within the bounds of its space and rounded where that is of whole numbers, or the
          chosen options, counted from the first of the space; `next_state` and `next_previous` for the next step

An output whose name an observation has is likewise `recurrent_action` and so on. In a program of torch.export the
inputs come in this order, with `state` and `previous` last. B is 1 unless `batch` says otherwise.
"""

from __future__ import annotations

import copy
import io
import logging
import os
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from trainer.logs.printable import first_line
from trainer.spaces import whole

__all__ = ["FORMATS", "export"]

FORMATS = {"onnx": ".onnx", "torch": ".pt2"}


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


def export(policy: Any, file: str | os.PathLike, format: str = "onnx", batch: int = 1) -> Path:
    """Write `policy`, as `load_policy` gives it; the file is complete or as it was before. Raises OSError where it
    cannot be written, ValueError for a network that this format cannot hold, ImportError without the package onnx."""
    path, content = Path(file), io.BytesIO()
    step = Step(copy.deepcopy(policy.eval())).requires_grad_(False)  # else outputs would ask for gradients
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            logging.getLogger("torch.onnx").setLevel(logging.ERROR)
            program = torch.export.export(step, step.example(batch))
            if format == "torch":
                torch.export.save(program, content)
            else:
                written = torch.onnx.export(program, args=(), input_names=step.names(), output_names=step.outputs(),
                                            verbose=False)
                for node in written.model.graph:  # an intermediate value may have the name of an observation
                    for value in node.outputs:
                        if value.name in step.keys:
                            value.name = f" {value.name}"
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
