"""Writes docs/api/, the reference of the public Python interface, from the code, so that it cannot drift.

    python docs/api_page.py             writes a page for each package, and the list of them
    python docs/api_page.py --check     says which pages are not what the code says

The modules are those of `[tool.mypy]` in pyproject.toml, their names those of `__all__`. Signatures and fields are the
source's own lines, texts its docstrings. Each name is described once, where it is first listed.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import sys
import textwrap
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

HOME = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(HOME))

from docs.written_pages import table, wrapped, write  # noqa: E402

PAGES = HOME / "docs" / "api"
WIDTH = 110  # of a signature


def modules() -> list[str]:
    """The public modules."""
    return tomllib.loads((HOME / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mypy"]["modules"]


def pages() -> dict[Path, str]:
    """Each page, as Markdown: one for each package, and the list of packages and modules."""
    parts: dict[str, list[str]] = {}
    rows: list[tuple[str, ...]] = []
    described: set[int] = set()
    for name in modules():
        module, package = import_module(name), name.split(".")[0]
        new = {public: thing for public in module.__all__ if id(thing := getattr(module, public)) not in described}
        described |= {id(thing) for thing in new.values()}
        if not new:
            continue
        called = {public: thing for public, thing in new.items() if is_called(thing)}
        constants = [constant(public, thing) for public, thing in new.items() if public not in called]
        lines = ["", f"## `{name}`", "", text_of(module), *([""] if constants else []), *constants]
        for public, thing in called.items():
            lines += ["", *entry(public, thing)]
        parts.setdefault(package, []).extend(lines)
        rows.append((f"[`{name}`]({package}.md#{name.replace('.', '')})", ", ".join(f"`{public}`" for public in new)))
    head = ["# Python interface", "", "These names can be relied on; others may change without notice. All are typed.",
            "[`docs/api_page.py`](../api_page.py) writes these pages from the docstrings.", ""]
    index = {PAGES / "README.md": [*head, *table(("module", "names"), rows)]}
    bodies = {PAGES / f"{package}.md": [f"# Python interface: `{package}`", "", "[All packages](README.md).", *lines]
              for package, lines in parts.items()}
    return {path: "\n".join(lines) + "\n" for path, lines in (index | bodies).items()}


def is_called(thing: Any) -> bool:
    """Whether it is a class or a function, be it wrapped by another."""
    return inspect.isclass(thing) or inspect.isfunction(inspect.unwrap(thing))


def constant(name: str, value: Any) -> str:
    """A line for a constant: its value, or the keys of a table."""
    told = f"`{name}`: {', '.join(f'`{key}`' for key in value)}" if isinstance(value, dict) else f"`{name} = {value!r}`"
    return wrapped(told, "- ")


def entry(name: str, thing: Any) -> list[str]:
    """What the page says about a class or function."""
    node = source_of(thing)
    shown = dataclass_lines(thing, node) if "__dataclass_fields__" in vars(thing) else signature(node, name)
    said = [text_of(thing)]
    if inspect.isclass(thing):
        own = vars(thing).get("__init__")
        said += ["", text_of(own)] if inspect.isfunction(own) and own.__doc__ else []
        said += methods(thing)
    return [f"### `{name}`", "", "```py", *shown, "```", "", *said]


def text_of(thing: Any) -> str:
    return inspect.cleandoc(thing.__doc__ or "")


def source_of(thing: Any) -> Any:
    """The syntax tree of a class or function."""
    return ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(thing)))).body[0]


def signature(node: Any, name: str, width: int = WIDTH) -> list[str]:
    """The call of a function or class, without `self`; one argument a line if it is wider than `width`."""
    function = node
    if isinstance(node, ast.ClassDef):
        own = [part for part in node.body if isinstance(part, ast.FunctionDef) and part.name == "__init__"]
        if not own:
            return [f"class {name}({', '.join(map(ast.unparse, node.bases))})"]
        (function,) = own
    given, result = arguments(function.args), function.returns
    returns = f" -> {ast.unparse(result)}" if result is not None and function is node else ""
    whole = f"{name}({', '.join(given)}){returns}"
    return [whole] if len(whole) <= width else [f"{name}(", *(f"    {argument}," for argument in given), f"){returns}"]


def arguments(args: ast.arguments) -> list[str]:
    """The arguments of a function, each as in its source, without `self`."""
    def shown(arg: ast.arg, default: ast.expr | None = None) -> str:
        typed = f": {ast.unparse(arg.annotation)}" if arg.annotation else ""
        return f"{arg.arg}{typed}" + (f"{' = ' if typed else '='}{ast.unparse(default)}" if default else "")

    defaults = [None] * (len(args.args) - len(args.defaults)) + list(args.defaults)
    positional = [shown(arg, default) for arg, default in zip(args.args, defaults) if arg.arg not in ("self", "cls")]
    star = [f"*{shown(args.vararg)}"] if args.vararg else ["*"] if args.kwonlyargs else []
    keywords = [shown(arg, default) for arg, default in zip(args.kwonlyargs, args.kw_defaults)]
    return [*positional, *star, *keywords, *([f"**{shown(args.kwarg)}"] if args.kwarg else [])]


def dataclass_lines(thing: type, node: ast.ClassDef) -> list[str]:
    """The fields of a dataclass with the comments beside them."""
    source = textwrap.dedent(inspect.getsource(inspect.unwrap(thing))).splitlines()
    fields = [part for part in node.body if isinstance(part, ast.AnnAssign)]
    return [f"class {node.name}:", *source[fields[0].lineno - 1:fields[-1].end_lineno]]


def methods(thing: type) -> list[str]:
    """A line for each public method and property that says what it does, those of hidden bases of ours included."""
    hidden = [base for base in thing.__mro__[1:]
              if base.__module__.startswith("rearrange.") and base.__module__ not in modules()]
    lines = []
    for part in (part for owner in [*reversed(hidden), thing] for part in source_of(owner).body):
        said = ast.get_docstring(part) if isinstance(part, ast.FunctionDef) else None
        if said and not part.name.startswith("_"):
            is_property = any(ast.unparse(decorator) == "property" for decorator in part.decorator_list)
            call = (f"{part.name}: {ast.unparse(part.returns)}" if is_property and part.returns
                    else signature(part, part.name, width=10_000)[0])
            lines.append(wrapped(f"`{call}`: {' '.join(said.split())}", "- "))
    return ["", *lines] if lines else []


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write the reference of the Python interface from the code.")
    parser.add_argument("--check", action="store_true")
    sys.exit(write(pages(), "api_page", parser.parse_args().check))
