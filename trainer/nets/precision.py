"""The precision in which a network learns: bfloat16, twice as fast, where the processor computes in it, else
float32."""

from __future__ import annotations

from contextlib import nullcontext
from functools import lru_cache
from typing import Any

import torch


@lru_cache
def processor_has_bfloat16() -> bool:
    """Whether this processor has instructions for bfloat16 (AVX512-BF16 or AMX); without them it is slower than
    float32."""
    known = getattr(torch.cpu, "get_capabilities", dict)()  # torch before 2.10 does not tell
    return bool(known.get("avx512_bf16") or known.get("amx_bf16"))


def learning_in(precision: str, device: torch.device) -> Any:
    """Context in which matrix products and convolutions are computed as `precision` says, one of
    `trainer.config.LEARN_PRECISIONS`; weights and their gradients stay float32."""
    if precision == "bfloat16" or precision == "auto" and device.type == "cpu" and processor_has_bfloat16():
        return torch.autocast(device.type, torch.bfloat16)
    return nullcontext()
