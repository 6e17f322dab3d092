"""What each configuration key means and may be, read from the comments of the YAML files.

A key is one line, so that number, rule and explanation stand in one place:

    clip: 0.2  # [float > 0] clipping of the policy ratio

The head of a nested block has a rule where the whole block can be given one value.

The rule is a list of alternatives separated by `|`: a type (`int`, `float`, `bool`, `str`, `path`, `words`, `numbers`),
optionally with a range (`> 0`, `>= 1`, `> 0 <= 100`, `0..1`), a number of items (`2 numbers`) or what they may be (`words of arm
grip`), or a word that stands for itself (`cosine`, `null`). Numbers are finite.
"""

from __future__ import annotations

import difflib
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CONFIGS = Path(__file__).resolve().parents[2] / "configs"

_LINE = re.compile(
    r"^(?P<indent> *)(?P<key>[A-Za-z_]\w*):(?P<value>[^#]*)(?:#\s*(?:\[(?P<rule>[^\]]*)\])?\s*(?P<text>.*))?$"
)
_ALTERNATIVE = re.compile(r"^(int|float|bool|str|path|words|numbers)(?: *(>=|>) *(\S+)(?: *<= *(\S+))?| +(\S+)\.\.(\S+))?$")
_WORDS_OF = re.compile(r"^words of (.+)$")
_SO_MANY_NUMBERS = re.compile(r"^(\d+) numbers$")
_SPOKEN = {
    "int": "an integer",
    "float": "a number",
    "str": "a word",
    "path": "a path",
    "words": "a list of words",
    "numbers": "a list of numbers",
}


def _is_number(value: Any) -> bool:
    """Whether a value is a number that something can be computed with: not infinite, and not nan."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _spoken(number: float) -> str:
    """A bound, without an exponent if it is an integer."""
    return str(int(number)) if number == int(number) and abs(number) < 1e15 else f"{number:g}"


class NotAllowed(ValueError):
    """A value that a rule refuses."""


@dataclass(frozen=True)
class Alternative:
    """One alternative of a rule: a type with bounds, or a literal word (`word`)."""

    type: str | None = None
    word: str | None = None
    low: float = -math.inf
    high: float = math.inf
    open_low: bool = False  # the lower bound itself is not allowed
    count: int | None = None  # of a list of numbers
    items: tuple[str, ...] = ()  # of a list of words: what they may be, each once

    @staticmethod
    def parse(text: str) -> Alternative:
        if match := _WORDS_OF.match(text):
            return Alternative("words", items=tuple(match[1].split()))
        if match := _SO_MANY_NUMBERS.match(text):
            return Alternative("numbers", count=int(match[1]))
        match = _ALTERNATIVE.match(text)
        if not match:
            return Alternative(word=text)
        kind, sign, bound, most, low, high = match.groups()
        if sign:
            return Alternative(kind, low=float(bound), high=float(most or math.inf), open_low=sign == ">")
        return Alternative(kind, low=float(low or -math.inf), high=float(high or math.inf))

    def convert(self, value: Any) -> Any:
        """`value` as this alternative holds it, or NotAllowed."""
        if self.word is not None:
            spoken = "null" if value is None else value
            if isinstance(spoken, str) and spoken == self.word:
                return value
            raise NotAllowed
        return self._within(self._typed(value))

    def _typed(self, value: Any) -> Any:
        number = _is_number(value)
        if self.type == "bool" and isinstance(value, bool):
            return value
        if self.type == "words" and isinstance(value, list) and all(isinstance(item, str) for item in value):
            if self.items and not (value and set(value) <= set(self.items) and len(set(value)) == len(value)):
                raise NotAllowed
            return value
        if self.type == "numbers" and isinstance(value, list) and value and all(map(_is_number, value)):
            if self.count not in (None, len(value)):
                raise NotAllowed
            return [float(item) for item in value]
        if self.type == "int" and number and value == int(value):
            return int(value)  # 1e6 is an integer to a person
        if self.type == "float" and number:
            return float(value)
        if self.type in ("str", "path") and value != "" and (isinstance(value, str) or number):
            return str(value)
        raise NotAllowed

    def _within(self, value: Any) -> Any:
        if _is_number(value):
            above = value > self.low if self.open_low else value >= self.low
            if not (above and value <= self.high):
                raise NotAllowed
        return value

    def __str__(self) -> str:
        if self.word is not None:
            return self.word
        if self.items:
            return f"a list of some of {', '.join(self.items)}, each once"
        if self.count:
            return f"a list of {self.count} numbers"
        spoken = _SPOKEN[self.type]
        if math.isfinite(self.high) and not self.open_low:
            return f"{spoken} from {_spoken(self.low)} to {_spoken(self.high)}"
        if math.isfinite(self.low):
            most = f" and at most {_spoken(self.high)}" if math.isfinite(self.high) else ""
            return f"{spoken} {'greater than' if self.open_low else 'of at least'} {_spoken(self.low)}{most}"
        return spoken


@dataclass(frozen=True)
class Rule:
    """What a key may be."""

    alternatives: tuple[Alternative, ...]
    text: str = ""  # as written in the YAML file

    @staticmethod
    def parse(text: str) -> Rule:
        return Rule(tuple(Alternative.parse(part.strip()) for part in text.split("|")), text)

    def convert(self, value: Any) -> Any:
        """`value` in the first alternative that takes it; NotAllowed if none does."""
        for alternative in self.alternatives:
            try:
                return alternative.convert(value)
            except NotAllowed:
                continue
        raise NotAllowed

    @property
    def is_text(self) -> bool:
        """Whether the value is free text or a path, to be taken as typed."""
        return any(a.type in ("str", "path") for a in self.alternatives)

    @property
    def is_path(self) -> bool:
        return any(a.type == "path" for a in self.alternatives)

    @property
    def is_fixed(self) -> bool:
        """Whether only one value is allowed, as for the name of a choice."""
        return len(self.alternatives) == 1 and self.alternatives[0].word is not None

    def words(self) -> list[str]:
        """The values that can be listed, for completion."""
        listed = [a.word for a in self.alternatives if a.word]
        listed += [item for a in self.alternatives for item in a.items]
        return listed + (["true", "false"] if any(a.type == "bool" for a in self.alternatives) else [])

    def __str__(self) -> str:
        spoken = ["true", "false"] if any(a.type == "bool" for a in self.alternatives) else []
        spoken += [str(a) for a in self.alternatives if a.type != "bool"]
        return spoken[0] if len(spoken) == 1 else f"{', '.join(spoken[:-1])} or {spoken[-1]}"


def not_allowed(name: str, value: Any, rule: Rule) -> str:
    """The sentence for a value that a rule refuses."""
    shown = "null" if value is None else str(value).lower() if isinstance(value, bool) else value
    wrong = next((item for item in value if item not in rule.words()), value) if isinstance(value, list) else value
    near = difflib.get_close_matches(str(wrong), rule.words(), 1, cutoff=0.5)
    finite = all(math.isfinite(item) for item in (value if isinstance(value, list) else [value]) if isinstance(item, float))
    hint = f" Did you mean {near[0]}?" if near and near[0] != wrong else ""
    return f"{name}={shown} is not allowed: it must be {rule}{'' if finite else ', and finite'}.{hint}"


@dataclass(frozen=True)
class Key:
    """One line of a YAML file."""

    name: str  # dotted
    default: str  # as written
    rule: Rule | None
    text: str


@dataclass(frozen=True)
class ConfigFile:
    """One YAML file: its first comment line, the groups of its defaults list, its keys, and its notes (lines `#: text`)."""

    title: str
    groups: tuple[str, ...]
    keys: tuple[Key, ...]
    notes: tuple[str, ...] = ()


def read_file(path: Path, package: str = "") -> ConfigFile:
    """Read a YAML file of `key: value  # [rule] text` lines; keys get the prefix `package` unless it is global."""
    title, groups, keys, parents = "", [], [], []
    lines = path.read_text(encoding="utf-8").splitlines()
    if "# @package _global_" in lines:
        package = ""
    for line in lines:
        if line.startswith("# ") and not title and "@package" not in line:
            title = line[2:].strip()
        if line.startswith("  - ") and parents == ["defaults"]:
            groups += [g for g in [line[4:].split(":")[0].strip()] if g != "_self_" and not g.startswith("override")]
            continue
        match = _LINE.match(line)
        if not match:
            continue
        depth = len(match["indent"]) // 2
        parents = parents[:depth] + [match["key"]]
        if parents[0] in ("defaults", "of_skill") or not (match["value"].strip() or match["rule"]):
            continue  # the defaults list, overrides for single skills, or the head of a nested block
        name = ".".join(([package] if package else []) + parents)
        rule = Rule.parse(match["rule"]) if match["rule"] else None
        keys.append(Key(name, match["value"].strip(), rule, match["text"] or ""))
    notes = tuple(line[3:] for line in lines if line.startswith("#: "))
    return ConfigFile(title, tuple(groups), tuple(keys), notes)


def command_file(command: str) -> ConfigFile:
    """The root file of a command."""
    return read_file(CONFIGS / f"{command}.yaml")


def choices(group: str) -> list[str]:
    """The choices of a group, by name."""
    return sorted(path.stem for path in (CONFIGS / group).glob("*.yaml"))


def choice_file(group: str, choice: str) -> ConfigFile:
    """The file of a choice."""
    return read_file(CONFIGS / group / f"{choice}.yaml", package=group)
