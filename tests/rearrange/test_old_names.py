"""What the documentation of version 0.2 named is found under its old name, says the new one, and is the same module."""

import subprocess
import sys
from importlib import import_module

import pytest

from rearrange.home.old_names import MOVED, new_name
from tests.e2e.warm import HOME

INSIDE = ["rearrange.apartments.layouts", "rearrange.episode_making.generator", "rearrange.mujoco_sim.simulator",
          "rearrange.settings.environment", "rearrange.robot.fetch", "rearrange.pictures.overlay"]


@pytest.mark.parametrize("old", [*MOVED, *INSIDE])
def test_an_old_name_is_the_new_module_and_says_so(old, monkeypatch):
    new = new_name(old)
    pytest.importorskip(new, exc_type=ImportError) if ".habitat." in new else None
    module = import_module(new)
    spec = module.__spec__
    for name in [name for name in sys.modules if new_name(name)]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.warns(DeprecationWarning, match=f"{old} is now {new}"):
        assert import_module(old) is module
    assert module.__spec__ is spec and module.__name__ == new


def test_a_command_of_an_old_name_runs_the_new_one():
    done = subprocess.run([sys.executable, "-m", "eval.publish"], capture_output=True, text=True, cwd=HOME)
    assert done.returncode == 2 and "python -m benchmarks.publish_policy outputs/train/pick/long" in done.stdout, done
    done = subprocess.run([sys.executable, "-m", "trainer.faults.nonfinite"], capture_output=True, text=True, cwd=HOME)
    assert "usage: python -m trainer.faults.nan_dump" in done.stderr, done


def test_names_of_the_environments_module_are_found_in_its_package():
    from rearrange.env import HomeSettings, RearrangeEnv, skill_env

    assert RearrangeEnv is skill_env.RearrangeEnv and HomeSettings is skill_env.HomeSettings
    with pytest.raises(ImportError, match="cannot import name 'NoSuchThing'"):
        from rearrange.env import NoSuchThing  # noqa: F401
