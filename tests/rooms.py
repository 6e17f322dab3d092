"""The rooms of the house: which file stands in which, by the table of docs/architecture.md, and what each file
imports.
"""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

HOME = Path(__file__).resolve().parents[1]
PACKAGES = ("rearrange", "skills", "planner", "trainer", "eval", "benchmarks")
FILES = sorted(str(path.relative_to(HOME)) for package in PACKAGES for path in (HOME / package).rglob("*.py"))
MODULES = {file.removesuffix(".py").removesuffix("/__init__").replace("/", "."): file for file in FILES}


@functools.cache
def rooms() -> dict[str, int]:
    """Room -> floor, as the table has them."""
    page = (HOME / "docs" / "architecture.md").read_text(encoding="utf-8")
    return {room: int(floor) for floor, room in re.findall(r"^\| (\d+) \| `([\w./]+)` \|", page, re.MULTILINE)}


def room_of(file: str) -> str:
    """The room in which a file stands: the most exact entry of the table."""
    return max((room for room in rooms() if file == room or file.startswith(room + "/")), key=len)


@functools.cache
def imports(file: str) -> set[str]:
    """The files of ours that a file imports, inside functions too; not what is there for type checkers alone."""
    tree = ast.parse((HOME / file).read_text(encoding="utf-8"))
    for_types = {id(node) for block in ast.walk(tree) if isinstance(block, ast.If)
                 and "TYPE_CHECKING" in ast.unparse(block.test) for node in ast.walk(block)}
    names: list[str] = []
    for node in ast.walk(tree):
        if id(node) in for_types:
            continue
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{file} has a relative import; write the package out"
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return {found for name in names if (found := _file(name))} - {file}


def _file(name: str) -> str | None:
    """The file of a module, or of the module that holds a name."""
    while name not in MODULES and "." in name:
        name = name.rpartition(".")[0]
    return MODULES.get(name)


def circle(graph: dict[str, set[str]]) -> list[str]:
    """The path of a circle in a graph, its first node again at the end; empty if there is none."""
    done: set[str] = set()

    def search(node: str, path: list[str]) -> list[str]:
        if node in path:
            return [*path[path.index(node):], node]
        if node in done:
            return []
        for other in sorted(graph.get(node, ())):
            if found := search(other, [*path, node]):
                return found
        done.add(node)
        return []

    return next((found for node in sorted(graph) if (found := search(node, []))), [])
