"""Environment ids that the processes of a run know: of installed packages, and of the training script."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Sequence
from contextlib import nullcontext
from functools import cache
from importlib import metadata

__all__ = ["load_plugins", "register", "registered"]

GROUP = "gymnasium.envs"  # of entry points; Gymnasium 1.0 and newer do not load it themselves
_COMPLETE = ("__root__", "__internal__")  # entry points that register complete ids; others are named as their namespace


@cache
def load_plugins() -> None:
    """Register the environments of installed packages, once per process. One that cannot be loaded is a warning."""
    from gymnasium.envs.registration import namespace

    for entry in metadata.entry_points(group=GROUP):
        with nullcontext() if entry.name in _COMPLETE else namespace(entry.name):
            try:
                loaded = entry.load()
                if callable(loaded):  # else a module, which has registered its environments
                    loaded()
            except (Exception, SystemExit) as error:  # of a package that this run may not need
                logging.getLogger(__name__).warning("the environments of the plug-in %s are not known (%s: %s).",
                                                    entry.value, type(error).__name__, error)


def registered() -> list[bytes]:
    """What this process has registered beside Gymnasium's own environments: specs for `register` in another process.
    One that cannot be pickled is left out.
    """
    import cloudpickle
    import gymnasium

    pickled = []
    for spec in gymnasium.registry.values():
        made_by = spec.entry_point if isinstance(spec.entry_point, str) else getattr(spec.entry_point, "__module__", "")
        if not made_by.startswith("gymnasium."):
            try:
                pickled.append(cloudpickle.dumps(spec))
            except Exception:  # as many kinds as there are objects
                continue
    return pickled


def register(specs: Sequence[bytes]) -> None:
    """Make the environments of `registered` known here. One that cannot be loaded is left out: `make` will name it."""
    import gymnasium

    for pickled in specs:
        try:
            spec = pickle.loads(pickled)
        except Exception:
            continue
        gymnasium.registry.setdefault(spec.id, spec)
