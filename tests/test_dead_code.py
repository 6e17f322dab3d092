"""Functions, classes and methods that nothing but a test uses are deleted."""

from __future__ import annotations

import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

from vulture import Vulture

from rearrange.env.make_simulator import CLASSES
from skills import SKILLS
from tests.rooms import HOME, PACKAGES

# Found by name, or called by a library.
CALLED = (
    "__getattr__", "_do_*",  # of a module; the viewer's messages
    "LeRobotFiles", "MinariFiles", "first_step",  # formats of recordings; a process that compiles
    "start_facing",  # skills of packages, as in docs/push_chair.md
    # whichever logger has it; the viewer's page and driver
    "write_film", "_", "call_stop", "hand_to", "move_hand",
    "create_module", "close_extras", "on_start", "on_end", "ignore_aliases",  # importlib, Gymnasium, numba, YAML
    "load_sweep_config", "syntaxError", "request_share_url", "handle_error",  # Hydra, ANTLR, viser, socketserver
    "sb3", "cleanrl", "recurrent", "step_async", "step_wait", "get_attr", "set_attr", "env_method",
    "env_is_wrapped",  # Stable-Baselines3
    "_on_rollout_start", "_on_rollout_end", "_on_step", "get_out_size",
    "on_training_step",  # its callbacks, Sample Factory's
    "configure_render", "get_tasks", "make_obs", "get_step_result", "get_metric_keys", "get_metadata",
    "get_action_spec", "get_observation_spec",  # vla-eval's runner
)


BY_NAME = {*SKILLS.values(), *(place.partition(":")[2] for place in CLASSES.values())}  # skills and simulators


def unused(*folders: Path) -> set[str]:
    found = Vulture()
    found.scavenge(list(map(str, folders)))
    return {item.name for item in found.get_unused_code(min_confidence=60)
            if item.typ in ("function", "class", "method", "property")}


def test_nothing_is_there_for_nobody():
    dead = unused(*(HOME / package for package in PACKAGES)) - BY_NAME
    assert not (left := {name for name in dead if not any(fnmatch(name, called) for called in CALLED)}), left
    assert not (known := {called for called in CALLED
                          if not any(fnmatch(name, called) for name in dead)}), f"no longer there: {known}"


def test_a_function_that_nobody_calls_is_found(tmp_path):
    (tmp_path / "module.py").write_text("def used():\n    pass\n\n\ndef left():\n    used()\n")
    assert unused(tmp_path) == {"left"}


def test_the_linter_finds_nothing():
    done = subprocess.run([sys.executable, "-m", "ruff", "check", "--quiet", "."], cwd=HOME, capture_output=True,
                          text=True)
    assert done.returncode == 0, done.stdout + done.stderr
