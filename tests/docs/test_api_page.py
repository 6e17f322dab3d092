"""The reference of the Python interface is what the code says, and the code's types hold."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec

import pytest

from docs import api_page
from tests.docs.markdown import HOME, PAGES, PROGRAMS, blocks


def test_the_pages_are_up_to_date():
    written = {path: path.read_text(encoding="utf-8") for path in api_page.PAGES.glob("*.md")}
    assert written == api_page.pages(), "run python docs/api_page.py"


def test_public_names_are_there_and_say_what_they_are():
    for name in api_page.modules():
        module = import_module(name)
        assert module.__all__ == list(dict.fromkeys(module.__all__)) and module.__doc__, name
        for public in module.__all__:
            thing = getattr(module, public)
            assert thing.__doc__ or not api_page.is_called(thing), f"{name}.{public} says nothing"


@pytest.mark.parametrize("package", ["rearrange", "planner", "trainer", "eval"])
def test_names_loaded_on_first_use_are_those_that_type_checkers_see(package):
    module = import_module(package)
    guarded = [node for node in ast.parse(inspect.getsource(module)).body
               if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"][0]
    seen = {alias.name: node.module for node in guarded.body for alias in node.names}
    homes = {name: home if home.startswith(("rearrange", "skills", "eval.")) else f"{package}.{home}"
             for name, home in module._HOME.items()}
    assert seen == homes and set(module.__all__) == set(seen)
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nothing'"):
        module.nothing


def test_a_signature_is_the_sources():
    def example(a: int, b: str = "x", *rest: int, flag: bool = False, **more: float) -> None:
        """Says what it does."""

    called = "example(a: int, b: str = 'x', *rest: int, flag: bool = False, **more: float) -> None"
    assert api_page.entry("example", example)[3] == called


def test_the_types_hold(tmp_path):
    """mypy, on the public modules and on the Python code of the pages and of examples/."""
    pytest.importorskip("mypy", reason="mypy is not installed: pip install -e '.[test]'")
    absent = [words for words, module in (("stable_baselines3", "stable_baselines3"), ("import mjx", "mujoco.mjx"),
                                           ("from mcp", "mcp"))
              if not find_spec(module)]
    for page in PAGES:
        for number, code in enumerate(blocks(page, "python")):
            if not any(words in code for words in absent):
                (tmp_path / f"{page.stem}_{number}.py").write_text(code, encoding="utf-8")
    mypy = [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", "--cache-dir", str(tmp_path / "cache")]
    for arguments in ([], sorted(map(str, [*tmp_path.glob("*.py"), *PROGRAMS.glob("*.py")]))):
        done = subprocess.run([*mypy, *arguments], cwd=HOME, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
