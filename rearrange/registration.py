"""Registers the environments with Gymnasium: `gymnasium.make("rearrange/Pick-v0")`.

`register_envs` is the entry point of this package in Gymnasium's plugin group `gymnasium.envs`, so it runs whenever Gymnasium is
imported and therefore imports nothing itself.
"""

from __future__ import annotations

NAMESPACE = "rearrange"
ENVIRONMENTS = {"Pick-v0": {"skill": "pick"}}  # id -> settings of skills.make_env


def register_envs() -> None:
    """Register every environment of `ENVIRONMENTS` that is not registered yet. Episodes end by the skill's own step limit."""
    from gymnasium.envs.registration import register, registry

    for name, settings in ENVIRONMENTS.items():
        if f"{NAMESPACE}/{name}" not in registry:
            register(id=f"{NAMESPACE}/{name}", entry_point="skills:make_env", kwargs=dict(settings))
