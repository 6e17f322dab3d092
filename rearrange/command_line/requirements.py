"""Which packages this program asks for, and which installed versions satisfy that. Standard library only."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

PYPROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"

_REQUIREMENT = re.compile(r"^\s*([A-Za-z0-9._-]+)\s*(?:\[[^\]]*\])?\s*\(?([^;)]*)\)?\s*(?:;(.*))?$")
_CLAUSE = re.compile(r"^(==|!=|>=|<=|~=|<|>)\s*([0-9][^\s]*)$")


@dataclass(frozen=True)
class Requirement:
    """A package and the versions of it that will do; `words` is what pip takes."""

    package: str
    versions: str

    @property
    def words(self) -> str:
        return f"{self.package}{self.versions}"

    def installed(self) -> str | None:
        """The version that is installed."""
        try:
            return metadata.version(self.package)
        except metadata.PackageNotFoundError:
            return None

    def is_met_by(self, version: str) -> bool:
        return all(_holds(clause.strip(), version) for clause in self.versions.split(",") if clause.strip())


def own() -> list[Requirement]:
    """What this program needs, from its pyproject.toml, or from what was installed if that is not there."""
    if PYPROJECT.is_file():
        import tomllib  # not there before Python 3.11, which `rearrange doctor` shall say

        lines = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]["dependencies"]
    else:
        lines = metadata.requires("rearrange") or []
    return _parsed(lines)


def of(package: str) -> list[Requirement]:
    """What an installed package asks for; nothing if it is not installed."""
    try:
        return _parsed(metadata.requires(package) or [])
    except metadata.PackageNotFoundError:
        return []


def _parsed(lines: list[str]) -> list[Requirement]:
    """Without those that hold only under a condition, such as an extra."""
    matches = [_REQUIREMENT.match(line) for line in lines]
    return [Requirement(match[1], match[2].strip().replace(" ", "")) for match in matches if match and not match[3]]


def _holds(clause: str, version: str) -> bool:
    """Whether one clause such as ">=2.8" holds. Compares release numbers; what follows them (+cpu) does not count."""
    match = _CLAUSE.match(clause)
    if not match:
        return True
    sign, wanted = match[1], match[2]
    if wanted.endswith(".*"):
        same = release(version)[:wanted.count(".")] == release(wanted[:-2])
        return same if sign == "==" else not same
    have, want = release(version), release(wanted)
    length = max(len(have), len(want))
    a, b = (numbers + (0,) * (length - len(numbers)) for numbers in (have, want))
    if sign == "~=":
        return a >= b and a[:len(want) - 1] == b[:len(want) - 1]
    return {"==": a == b, "!=": a != b, ">=": a >= b, "<=": a <= b, "<": a < b, ">": a > b}[sign]


def release(version: str) -> tuple[int, ...]:
    """(2, 8, 0) of "2.8.0+cpu"."""
    match = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(number) for number in match[0].split(".")) if match else ()
