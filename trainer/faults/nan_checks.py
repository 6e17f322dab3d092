"""A policy that becomes NaN or infinite is noticed where it happens; trainer/faults/nan_dump.py keeps what led to it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from trainer.errors import NonFinite


def check_finite(policy: torch.nn.Module) -> None:
    """Raise NonFinite if a parameter is NaN or infinite."""
    bad = [name for name, p in policy.named_parameters() if not torch.isfinite(p).all()]
    if bad:
        raise NonFinite(f"parameters became NaN or infinite ({', '.join(bad[:3])}{' ...' if len(bad) > 3 else ''})")


def check_acts(policy: Any, obs: dict[str, Tensor], state: Tensor, previous: Tensor, act: Any) -> None:
    """Raise NonFinite if what the policy gave for these inputs is NaN or infinite."""
    if not (torch.isfinite(act.value).all() and torch.isfinite(act.log_prob).all()):
        raise NonFinite("the policy's output became NaN or infinite while it acted",
                        {f"obs/{k}": v.cpu() for k, v in obs.items()} | {"state": state.cpu(), "previous": previous.cpu()})
