"""Is there an NVIDIA device? Asked without importing torch."""

from __future__ import annotations

import os


def has_nvidia_device() -> bool:
    """Whether one is visible."""
    if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
        return False
    return os.path.exists("/dev/nvidia0") or os.path.exists("/proc/driver/nvidia/version")
