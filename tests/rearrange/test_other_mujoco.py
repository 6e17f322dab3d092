"""MuJoCo 3.17 and 4: the one that is not installed here passes the tests that compare physics, too."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import mujoco
import pytest

ROOT = Path(__file__).resolve().parents[2]
OTHER = "3.17.0" if mujoco.__version__.startswith("4.") else "4.0.0"
OF_PHYSICS = ("tests/test_behaviour.py", "tests/rearrange/test_collision_filter.py")


@pytest.fixture(scope="module")
def environment(tmp_path_factory) -> dict[str, str]:
    """The environment variables with which Python imports the other version."""
    folder = tmp_path_factory.mktemp("mujoco")
    packages = ["mujoco", "mujoco-core", "mujoco-studio"] if OTHER.startswith("4.") else ["mujoco"]
    words = ["install", "--quiet", "--no-deps", "--only-binary=:all:", "--target", folder]
    done = subprocess.run([sys.executable, "-m", "pip", *words, *(f"{package}=={OTHER}" for package in packages)],
                          capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"no index of packages is reached: {done.stderr.strip().splitlines()[-1]}")
    return os.environ | {"PYTHONPATH": str(folder)}


def test_the_other_version_passes_the_tests_of_physics(environment):
    version = subprocess.run([sys.executable, "-c", "import mujoco; print(mujoco.__version__)"], env=environment,
                             capture_output=True, text=True, check=True)
    assert version.stdout.strip() == OTHER
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *OF_PHYSICS], cwd=ROOT,
                          env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
