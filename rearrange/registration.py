"""Registers the environments with Gymnasium: `import rearrange; gymnasium.make("rearrange/Pick-v0")`.

Gymnasium 1.0 and newer have no plug-in discovery, so `rearrange/__init__.py` calls this; without that import,
`gymnasium.make("rearrange:rearrange/Pick-v0")` does it in one go.
"""

from __future__ import annotations

NAMESPACE = "rearrange"
ENVIRONMENTS = {  # id -> settings of skills.make_env
    "Navigate-v0": {"skill": "navigate"},
    "Pick-v0": {"skill": "pick"},
    "Place-v0": {"skill": "place"},
    "OpenCabinet-v0": {"skill": "open_cabinet"},
    "CloseCabinet-v0": {"skill": "close_cabinet"},
    "OpenFridge-v0": {"skill": "open_fridge"},
    "CloseFridge-v0": {"skill": "close_fridge"},
}


def register_envs() -> None:
    """Register every environment of `ENVIRONMENTS` that is not registered yet. Episodes end by the skill's own step
    limit.
    """
    from gymnasium.envs.registration import register, registry

    for name, settings in ENVIRONMENTS.items():
        if f"{NAMESPACE}/{name}" not in registry:
            register(id=f"{NAMESPACE}/{name}", entry_point="skills:make_env", kwargs=dict(settings))
