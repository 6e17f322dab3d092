"""rearrange: train mobile-manipulation skills with VER and chain them to solve the Home Assistant Benchmark.

`import rearrange` makes the environments known to Gymnasium: `gymnasium.make("rearrange/Pick-v0")`. In the processes of
the command line `rearrange.command_line.commands` does it, since Gymnasium takes longer to import than `rearrange
--help` to answer.

`rearrange.load_pretrained("pick")` gives an environment and a trained policy for it.
"""

from __future__ import annotations

import os
import sys

if sys.version_info < (3, 11):  # before anything that it does not know is imported
    needed = ("rearrange needs Python 3.11 or newer, and this is %d.%d: make a virtual environment with a newer one, "
              "as in make quickstart PYTHON=python3.11." % tuple(sys.version_info[:2]))
    if (getattr(sys, "argv", None) or [""])[0] != "-m":
        raise ImportError(needed)
    print(needed, file=sys.stderr)
    sys.exit(2)

import warnings  # noqa: E402
from importlib import import_module  # noqa: E402
from itertools import pairwise  # noqa: E402
from typing import TYPE_CHECKING, Any  # noqa: E402

from rearrange.home import old_names, own_packages  # noqa: E402

if TYPE_CHECKING:
    from eval.trained_policy import load_pretrained
    from rearrange.env.skill_env import RearrangeEnv
    from rearrange.home.errors import UserError
    from skills import make_env

__version__ = "0.3.0"
__all__ = ["RearrangeEnv", "UserError", "load_pretrained", "make_env"]

_HOME = {"RearrangeEnv": "rearrange.env.skill_env", "UserError": "rearrange.home.errors",
         "load_pretrained": "eval.trained_policy", "make_env": "skills"}  # loaded on first use


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'rearrange' has no attribute '{name}'")
    own_packages.claim(*own_packages.IMPORTED if name == "load_pretrained" else ("trainer", "skills"))
    return getattr(import_module(_HOME[name]), name)


def _is_command_line() -> bool:
    """Whether this process is `rearrange ...` or `python -m rearrange ...`."""
    program = os.path.basename((getattr(sys, "argv", None) or [""])[0])
    if program != "-m":  # which stands there while the package of the module to be run is imported
        return program in ("rearrange", "rearrange.exe")
    return any(word == "-m" and run.partition(".")[0] == "rearrange" for word, run in pairwise(sys.orig_argv))


old_names.install()
if not _is_command_line():  # which says it itself
    for sentence in own_packages.overwritten():
        warnings.warn(sentence, RuntimeWarning, stacklevel=2)
    import_module("rearrange.env.registration").register_envs()
