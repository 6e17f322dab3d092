"""In which precision a network learns: bfloat16 where the processor computes in it, which is twice as fast, else float32."""

from __future__ import annotations

from contextlib import nullcontext
from functools import lru_cache
from typing import Any

import torch


@lru_cache
def processor_has_bfloat16() -> bool:
    """Whether matrix products in bfloat16 are instructions of this processor (AVX512-BF16 or AMX); elsewhere they are slower."""
    known = getattr(torch.cpu, "get_capabilities", dict)()  # torch before 2.10 does not tell
    return bool(known.get("avx512_bf16") or known.get("amx_bf16"))


def learning_in(precision: str, device: torch.device) -> Any:
    """Context in which matrix products and convolutions are computed as `precision` says, one of `trainer.config.LEARN_PRECISIONS`;
    weights and their gradients stay float32."""
    if precision == "bfloat16" or precision == "auto" and device.type == "cpu" and processor_has_bfloat16():
        return torch.autocast(device.type, torch.bfloat16)
    return nullcontext()
