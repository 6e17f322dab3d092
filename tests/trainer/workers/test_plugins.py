"""Workers know an environment by its id: of an installed package, and of the script that trains."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from importlib.metadata import EntryPoint

import gymnasium
import pytest

from tests.trainer.toys import Pointer, small
from trainer import train
from trainer.workers import plugins


@pytest.fixture
def registry(monkeypatch):
    """Gymnasium's registry, as it was afterwards."""
    monkeypatch.setattr(gymnasium.envs.registration, "registry", dict(gymnasium.registry))
    monkeypatch.setattr(gymnasium, "registry", gymnasium.envs.registration.registry)
    return gymnasium.registry


def installed(monkeypatch, *entries: tuple[str, str]) -> None:
    """As if packages with these entry points, name and value, were installed."""
    plugins.load_plugins.cache_clear()
    monkeypatch.setattr(plugins.metadata, "entry_points",
                        lambda group: [EntryPoint(name, value, group) for name, value in entries])


def add_pointer() -> None:
    gymnasium.register(id="Pointer-v3", entry_point=Pointer)


def add_nothing() -> None:
    raise RuntimeError("half installed")


def test_an_environment_that_the_script_registered_is_trained(registry):
    class Mine(Pointer):
        """Of no module: as a class of a script or a notebook."""

    gymnasium.register(id="mine/Mine-v1", entry_point=Mine, max_episode_steps=7)
    # which no process can be sent
    gymnasium.register(id="mine/Odd-v1", entry_point=Mine, kwargs={"lock": threading.Lock()})
    assert train(lambda: gymnasium.make("mine/Mine-v1"), small(32)).steps == 32


def test_ids_of_plugins_have_their_namespace(registry, monkeypatch):
    here = f"{__name__}:add_pointer"
    installed(monkeypatch, ("__root__", here), ("toys", here), ("module", "tests.trainer.toys"))
    plugins.load_plugins()
    assert {"Pointer-v3", "toys/Pointer-v3"} <= set(registry)


def test_a_broken_plugin_is_a_warning_once(registry, monkeypatch, caplog):
    here = f"{__name__}:"
    installed(monkeypatch, ("a", "nowhere.to:be_found"), ("b", here + "add_nothing"), ("c", here + "gone"),
              ("d", "sys:exit"),
              ("__root__", here + "add_pointer"))
    with caplog.at_level(logging.WARNING):
        plugins.load_plugins()
        plugins.load_plugins()
    broken = ["nowhere.to:be_found", here + "add_nothing", here + "gone", "sys:exit"]
    assert [record.args[0] for record in caplog.records] == broken
    assert "half installed" in caplog.text and "Pointer-v3" in registry


def test_what_cannot_be_loaded_elsewhere_is_left_out(registry):
    before = set(registry)
    plugins.register([b"no pickle", *plugins.registered()])
    assert set(registry) == before


def test_a_script_that_imports_the_engine_alone_trains_a_home(tmp_path):
    """By the entry point of the installed package."""
    group = [entry.value for entry in plugins.metadata.entry_points(group=plugins.GROUP)]
    if "rearrange.env.registration:register_envs" not in group:
        pytest.skip("the package is not installed, or was before it had this entry point: pip install -e .")
    code = """
import gymnasium
from trainer import CollectConfig, PolicyConfig, TrainConfig, train
config = TrainConfig(steps=32, torch_threads=1, policy=PolicyConfig(encoder=None),
                     collect=CollectConfig(num_envs=2, num_workers=2, rollout_steps=16))
print(train(lambda: gymnasium.make("rearrange/Pick-v0", depth_size=0, num_layouts=2), config).steps)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=120,
                          env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"})
    assert done.stdout.strip() == "32", done.stderr


def test_a_worker_imports_no_torch():
    """Of a process that nobody has forked."""
    code = "import sys, trainer.workers.worker; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
