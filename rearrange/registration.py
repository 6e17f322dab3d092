"""Registers the environments with Gymnasium: `import rearrange; gymnasium.make("rearrange/Pick-v0")`.

Gymnasium 1.0 and newer have no plug-in discovery, so `rearrange/__init__.py` calls this; without that import,
`gymnasium.make("rearrange:rearrange/Pick-v0")` does it in one go.
"""

from __future__ import annotations

NAMESPACE = "rearrange"
ENVIRONMENTS = {"Pick-v0": {"skill": "pick"}}  # id -> settings of skills.make_env


def register_envs() -> None:
    """Register every environment of `ENVIRONMENTS` that is not registered yet. Episodes end by the skill's own step
    limit.
    """
    from gymnasium.envs.registration import register, registry

    for name, settings in ENVIRONMENTS.items():
        if f"{NAMESPACE}/{name}" not in registry:
            register(id=f"{NAMESPACE}/{name}", entry_point="skills:make_env", kwargs=dict(settings))
