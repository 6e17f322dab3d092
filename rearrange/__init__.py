"""rearrange: train mobile-manipulation skills with VER and chain them to solve the Home Assistant Benchmark.

`import rearrange` makes the environments known to Gymnasium: `gymnasium.make("rearrange/Pick-v0")`. It imports nothing heavy
itself: where Gymnasium is not loaded yet, the environments are registered at the moment it is.
"""

from importlib.util import find_spec
import sys

__version__ = "0.1.0"


def _register() -> None:
    from rearrange.registration import register_envs

    register_envs()


class _AfterGymnasium:
    """Import hook: registers the environments right after Gymnasium has been imported, then removes itself."""

    def find_spec(self, name: str, path: object = None, target: object = None):
        if name != "gymnasium":
            return None
        sys.meta_path.remove(self)
        try:
            spec = find_spec(name)
        finally:
            sys.meta_path.insert(0, self)  # who only asks whether Gymnasium is there does not load it
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module) -> None:
            sys.meta_path.remove(self)
            execute(module)
            _register()

        spec.loader.exec_module = exec_module
        return spec


if "gymnasium" in sys.modules:
    _register()
else:
    sys.meta_path.insert(0, _AfterGymnasium())
