"""The environments as Gymnasium knows them, and that of one skill: `from rearrange.env import RearrangeEnv,
HomeSettings`.

`RearrangeEnv` and all else of `rearrange.env.skill_env` is loaded on first use, since ids are registered by whoever
imports `rearrange`. """

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rearrange.env.skill_env import ENV_FAILURES, HomeSettings, RearrangeEnv

__all__ = ["ENV_FAILURES", "HomeSettings", "RearrangeEnv"]


def __getattr__(name: str) -> Any:
    if name.startswith("__") or not hasattr(skill_env := import_module("rearrange.env.skill_env"), name):
        raise AttributeError(f"module 'rearrange.env' has no attribute '{name}'")
    return getattr(skill_env, name)
