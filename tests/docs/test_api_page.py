"""The reference of the Python interface is what the code says, and the code's types hold."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec

import pytest

from tests.docs.markdown import HOME, PAGES, blocks


@pytest.fixture(scope="module")
def script():
    return import_module("docs.api_page")


def test_the_page_is_up_to_date(script):
    assert script.PAGE.read_text(encoding="utf-8") == script.page(), "run python docs/api_page.py"


def test_public_names_are_there_and_say_what_they_are(script):
    for name in script.modules():
        module = import_module(name)
        assert module.__all__ == list(dict.fromkeys(module.__all__)) and module.__doc__, name
        for public in module.__all__:
            thing = getattr(module, public)
            assert thing.__doc__ or not script.is_called(thing), f"{name}.{public} says nothing"


@pytest.mark.parametrize("package", ["rearrange", "planner", "trainer", "eval"])
def test_names_loaded_on_first_use_are_those_that_type_checkers_see(package):
    module = import_module(package)
    guarded = [node for node in ast.parse(inspect.getsource(module)).body if isinstance(node, ast.If)][0]
    seen = {alias.name: node.module for node in guarded.body for alias in node.names}
    homes = {name: home if home.startswith(("rearrange", "skills", "eval.")) else f"{package}.{home}" for name, home in module._HOME.items()}
    assert seen == homes and set(module.__all__) == set(seen)
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nothing'"):
        module.nothing


def test_a_signature_is_the_sources(script):
    def example(a: int, b: str = "x", *rest: int, flag: bool = False, **more: float) -> None:
        """Says what it does."""

    assert script.entry("example", example)[3] == "example(a: int, b: str = 'x', *rest: int, flag: bool = False, **more: float) -> None"


def test_the_types_hold(tmp_path):
    """mypy, on the public modules and on the Python examples of the pages."""
    pytest.importorskip("mypy", reason="mypy is not installed: pip install -e '.[test]'")
    examples = []
    for page in PAGES:
        for number, code in enumerate(blocks(page, "python")):
            if "stable_baselines3" in code and not find_spec("stable_baselines3"):
                continue
            if "import mjx" in code and not find_spec("mujoco.mjx"):
                continue
            examples.append(tmp_path / f"{page.stem}_{number}.py")
            examples[-1].write_text(code, encoding="utf-8")
    for arguments in ([], [*map(str, examples)]):
        done = subprocess.run([sys.executable, "-m", "mypy", "--config-file", str(HOME / "pyproject.toml"), "--cache-dir",
                               str(tmp_path / "cache"), *arguments], cwd=HOME, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
