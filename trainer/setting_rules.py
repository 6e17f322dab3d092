"""What a setting is: typed dataclasses hold its default, its bounds and its meaning, once, and one checker reads them.

    @dataclass(frozen=True)
    class PickConfig:
        max_steps: int = setting(200, "steps of an episode, 30 a second", above=0, at_most=1_000_000)
        split: str = setting("train", "apartments to train in", choices=("train", "val", "test"))

A setting may be what its annotation says, within its bounds: `int`, `float`, `bool`, `str` (one of `choices`, if
there are any; `path=True`: a path, or one of them; `also=`: or a text of one of the forms in TEXTS), `tuple[str,
...]` (of `choices`), `tuple[float, float]`, and `| None`. Numbers are finite. `beyond` is what Python may give and a
command line may not.

The standard library is enough here: help and answers to mistakes are quick.
"""

from __future__ import annotations

import difflib
import functools
import math
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from typing import Any, TypeVar

_Settings = TypeVar("_Settings")
_SPOKEN = {"int": "an integer", "float": "a number", "str": "a word", "path": "a path", "words": "a list of words",
           "numbers": "a list of numbers"}
TEXTS = {"importable": (re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*"), "package.module:Name"),
         "url": (re.compile(r"wss?://\S+"), "ws://host:port")}
"""Forms of a text: what it matches, and how it is written."""
_SAME: Any = object()


def setting(default: Any = MISSING, text: str = "", *, above: float | None = None, at_least: float | None = None,
            at_most: float | None = None, choices: tuple[str, ...] = (), path: bool = False, also: tuple[str, ...] = (),
            beyond: type | float | None = None) -> Any:
    """A field of a dataclass that is a setting.

    Args:
        default: its value where nothing is said; MISSING: it must be given.
        text: what it means.
        above, at_least, at_most: bounds of a number.
        choices: words that it may be, or of which a list may consist.
        path, also: whether it may be a path; forms of a text, see TEXTS.
        beyond: a type, or a single number, that is allowed in Python although the rest is not met.
    """
    bounds = {"above": above, "at_least": at_least, "at_most": at_most, "choices": choices or None,
              "path": path or None, "also": also or None, "beyond": beyond}
    return field(default=default,
                 metadata={"text": text} | {name: bound for name, bound in bounds.items() if bound is not None})


def block(whole: Any = None, /, **settings: Any) -> Any:
    """A field that is a mapping of settings of one type: `Mapping[str, float]`. `whole`: what the block itself may be
    set to, which then goes for every setting in it."""
    return field(default_factory=lambda: {name: each.default for name, each in settings.items()},
                 metadata={"block": settings, "whole": whole})


def like(owner: type, name: str, default: Any = _SAME, text: str = "") -> Any:
    """The same setting as one of another dataclass, with another default or meaning if they are given."""
    same: Field = owner.__dataclass_fields__[name]
    said = {**same.metadata, **({"text": text} if text else {})}
    if same.default_factory is not MISSING:
        return field(default_factory=same.default_factory, metadata=said)
    return field(default=same.default if default is _SAME else default, metadata=said)


class NotAllowed(ValueError):
    """A value that a setting does not take, in one sentence."""


def _is_number(value: Any) -> bool:
    """Whether a value is a number that something can be computed with: not infinite, and not nan."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _spoken(number: float) -> str:
    """A bound, without an exponent if it is an integer; none if it is infinite."""
    if not math.isfinite(number):
        return ""
    return str(int(number)) if number == int(number) and abs(number) < 1e15 else f"{number:g}"


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

    def convert(self, value: Any) -> Any:
        """`value` as this alternative holds it, or NotAllowed."""
        kind, number = self.type, _is_number(value)
        if self.word is not None and ("null" if value is None else value) == self.word:
            return value
        if kind == "bool" and isinstance(value, bool):
            return value
        if kind in ("int", "float") and number and (kind == "float" or value == int(value)):
            if (value > self.low if self.open_low else value >= self.low) and value <= self.high:
                return int(value) if kind == "int" else float(value)  # 1e6 is an integer to a person
        if kind == "words" and isinstance(value, list) and all(isinstance(item, str) for item in value):
            if not self.items or value and set(value) <= set(self.items) and len(set(value)) == len(value):
                return value
        if kind == "numbers" and isinstance(value, list) and value and all(map(_is_number, value)):
            if self.count in (None, len(value)):
                return [float(item) for item in value]
        if kind in TEXTS and isinstance(value, str) and TEXTS[kind][0].fullmatch(value):
            return value
        if kind in ("str", "path") and value != "" and (isinstance(value, str) or number):
            return str(value)
        raise NotAllowed

    def __str__(self) -> str:
        if self.word is not None:
            return self.word
        if self.items:
            return f"a list of some of {', '.join(self.items)}, each once"
        if self.count:
            return f"a list of {self.count} numbers"
        spoken = TEXTS[self.type][1] if self.type in TEXTS else _SPOKEN[self.type]
        low, high = _spoken(self.low), _spoken(self.high)
        if high and not self.open_low:
            return f"{spoken} from {low} to {high}"
        return spoken + (f" {'greater than' if self.open_low else 'of at least'} {low}" if low else "") + (
            f" and at most {high}" if low and high else "")

    @property
    def short(self) -> str:
        """As `--help` has it: `float > 0 <= 100`, `int 0..1024`, `words of arm grip`."""
        if self.word is not None:
            return self.word
        if self.type in TEXTS:
            return TEXTS[self.type][1]
        several = f"{self.count} numbers" if self.count else self.type
        kind = f"words of {' '.join(self.items)}" if self.items else several
        low, high = ("1e12" if bound == 1e12 else _spoken(bound) for bound in (self.low, self.high))
        if low and high and not self.open_low:
            return f"{kind} {low}..{high}"
        return kind + (f" {'>' if self.open_low else '>='} {low}" if low else "") + (f" <= {high}" if high else "")


@dataclass(frozen=True)
class Rule:
    """What a setting may be."""

    alternatives: tuple[Alternative, ...]
    beyond: type | float | None = None  # what Python may give, too

    @staticmethod
    def only(word: str) -> Rule:
        """Nothing but one word."""
        return Rule((Alternative(word=word),))

    @staticmethod
    def of(annotation: str, above: float | None = None, at_least: float | None = None, at_most: float | None = None,
           choices: tuple[str, ...] = (), path: bool = False, also: tuple[str, ...] = (),
           beyond: type | float | None = None, **_: Any) -> Rule:
        """The rule of a field of a dataclass, from its annotation and its metadata."""
        low = above if above is not None else at_least if at_least is not None else -math.inf
        found: list[Alternative] = []
        for kind in annotation.split(" | "):
            if kind in ("int", "float"):
                high = math.inf if at_most is None else at_most
                found.append(Alternative(kind, low=low, high=high, open_low=above is not None))
            elif kind == "str":
                found += [Alternative(word=word) for word in choices]
                found += [Alternative(form) for form in also]
                found += [Alternative("path" if path else "str")] if path or not (choices or also) else []
            elif kind.startswith("tuple[str"):
                found.append(Alternative("words", items=choices))
            elif kind.startswith("tuple["):
                found.append(Alternative("numbers", count=None if "..." in kind else kind.count(",") + 1))
            elif kind in ("bool", "None"):
                found.append(Alternative("bool") if kind == "bool" else Alternative(word="null"))
            else:
                raise ValueError(f"a setting cannot be of type {annotation}: it is int, float, bool, str, a tuple of "
                                 "them, or None.")
        return Rule(tuple(found), beyond)

    def convert(self, value: Any) -> Any:
        """`value` in the first alternative that takes it; NotAllowed if none does."""
        for alternative in self.alternatives:
            try:
                return alternative.convert(value)
            except NotAllowed:
                continue
        raise NotAllowed

    def _has(self, *kinds: str) -> bool:
        return any(alternative.type in kinds for alternative in self.alternatives)

    @property
    def has_words(self) -> bool:
        """Whether there are words to choose from."""
        return any(a.items or a.word not in (None, "null") for a in self.alternatives)

    @property
    def is_text(self) -> bool:
        """Whether the value is free text or a path, to be taken as typed."""
        return self._has("str", "path", *TEXTS)

    @property
    def is_path(self) -> bool:
        return self._has("path")

    @property
    def is_fixed(self) -> bool:
        """Whether only one value is allowed, as for the name of a choice."""
        return len(self.alternatives) == 1 and self.alternatives[0].word is not None

    def words(self) -> list[str]:
        """The values that can be listed, for completion."""
        listed = [a.word for a in self.alternatives if a.word] + [item for a in self.alternatives for item in a.items]
        return listed + (["true", "false"] if self._has("bool") else [])

    @property
    def short(self) -> str:
        """As `--help` has it: `int > 0 | null`."""
        return " | ".join(alternative.short for alternative in self.alternatives)

    def __str__(self) -> str:
        spoken = ["true", "false"] if self._has("bool") else []
        spoken += [str(a) for a in self.alternatives if a.type != "bool"]
        return spoken[0] if len(spoken) == 1 else f"{', '.join(spoken[:-1])} or {spoken[-1]}"


def converted(rule: Rule, name: str, value: Any, hint: str = "") -> Any:
    """A plain value in the type of its rule. NotAllowed, with `hint` behind the sentence, where the rule refuses it."""
    try:
        return rule.convert(value)
    except NotAllowed:
        raise NotAllowed(_sentence(name, value, rule) + hint) from None


def _sentence(name: str, value: Any, rule: Rule) -> str:
    """What is wrong with a value, and what it must be."""
    wrong = next((item for item in value if item not in rule.words()), value) if isinstance(value, list) else value
    near = difflib.get_close_matches(str(wrong), rule.words(), 1, cutoff=0.5)
    finite = all(math.isfinite(item) for item in (value if isinstance(value, list) else [value])
                 if isinstance(item, float))
    hint = f" Did you mean {near[0]}?" if near and near[0] != wrong else ""
    shown = "null" if value is None else str(value).lower() if isinstance(value, bool) else value
    return f"{name}={shown} is not allowed: it must be {rule}{'' if finite else ', and finite'}.{hint}"


def checked(rule: Rule | None, name: str, given: Any) -> Any:
    """A value given in Python in the type of its rule, or NotAllowed: a number of numpy is a number, a tuple a list,
    a path a text."""
    if rule is None or _is_beyond(rule, given):
        return given
    value = os.fspath(given) if isinstance(given, os.PathLike) else _plain(given)
    value = [_plain(item) for item in value] if isinstance(value, list | tuple) else value
    try:
        return rule.convert(value)
    except NotAllowed:
        shown = repr(given) if isinstance(given, str) and not rule.has_words else value  # "4" is not 4
        raise NotAllowed(_sentence(name, shown, rule)) from None


def _is_beyond(rule: Rule, given: Any) -> bool:
    return isinstance(given, rule.beyond) if isinstance(rule.beyond,
                                                        type) else rule.beyond is not None and given == rule.beyond


def _plain(value: Any) -> Any:
    """A number or array of numpy as numbers of Python."""
    return value.tolist() if hasattr(value, "tolist") else value


def check(settings: Any, prefix: str = "") -> None:
    """NotAllowed for the first setting of a dataclass that its rule refuses, or that is of another type: 1e6 is no
    int."""
    for key in keys_of(type(settings)):
        value = settings
        for part in key.name.split("."):
            value = value.get(part, key.default) if isinstance(value, Mapping) else getattr(value, part)
        if not key.is_block:
            made = checked(key.rule, prefix + key.name, value)
            if isinstance(made, int | str) and not isinstance(_plain(value), type(made) | os.PathLike):
                raise NotAllowed(_sentence(prefix + key.name, value, key.rule))


def leaves(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """(full name, value) of all nested settings; lists are values, and so is a dictionary that holds nothing."""
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by their full names, such as `ppo.clip`, as nested dictionaries of their own."""
    made: dict[str, Any] = {}
    for name, value in values.items():
        *groups, last = name.split(".")
        inside = made
        for group in groups:
            if not isinstance(inside.get(group), dict):
                inside[group] = {}
            inside = inside[group]
        inside[last] = plain_of(value)
    return made


def shown(value: Any) -> str:
    """A value as it is written on a command line and in YAML."""
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value).replace("'", "")


@dataclass(frozen=True)
class Key:
    """One setting by its full name."""

    name: str  # dotted
    default: Any  # as YAML has it: lists, no tuples; MISSING where it has to be given
    rule: Rule
    text: str
    is_block: bool = False  # which can be set as one


@functools.cache
def keys_of(settings: type, prefix: str = "") -> tuple[Key, ...]:
    """The settings of a dataclass, with those of blocks and of dataclasses in it; a block that can be set as one is a
    key, too.

    Fields without a meaning are no settings. Their order is that of the fields, or of the names in SHOWN, which may
    leave some out. """
    there, found = {each.name: each for each in fields(settings)}, []
    for each in (there[name] for name in getattr(settings, "SHOWN", there)):
        name, said = prefix + each.name, each.metadata
        if is_dataclass(each.default_factory):
            found += keys_of(each.default_factory, f"{name}.")
        elif "block" in said:
            inner = _annotation(each).partition(", ")[2][:-1]  # of Mapping[str, inner]
            if said["whole"]:
                found.append(_key(name, said["whole"], inner, is_block=True))
            found += [_key(f"{name}.{part}", of_part, inner) for part, of_part in said["block"].items()]
        elif "text" in said:
            found.append(_key(name, each, _annotation(each)))
    return tuple(found)


def _annotation(each: Field) -> str:
    """`tuple[str, ...]`, be it a text, as in a file that has `from __future__ import annotations`, or a type."""
    return each.type.__name__ if type(each.type) is type else str(each.type)


def _key(name: str, setting: Field, annotation: str, is_block: bool = False) -> Key:
    default = list(setting.default) if isinstance(setting.default, tuple) else setting.default
    return Key(name, default, Rule.of(annotation, **setting.metadata), setting.metadata["text"], is_block)


def plain_of(settings: Any) -> Any:
    """Settings of a dataclass, or nested values, as dictionaries and lists of their own, as YAML and checkpoints have
    them."""
    if is_dataclass(settings):
        names = dict.fromkeys(key.name.partition(".")[0] for key in keys_of(type(settings)))
        settings = {name: getattr(settings, name) for name in names}
    if isinstance(settings, Mapping):
        return {name: plain_of(value) for name, value in settings.items()}
    return [plain_of(value) for value in settings] if isinstance(settings, list | tuple) else settings


def made_of(settings: type[_Settings], plain: Mapping[str, Any]) -> _Settings:
    """A dataclass of nested plain values, as YAML and checkpoints have them; a name that it does not have is left
    out."""
    values: dict[str, Any] = {}
    for each in fields(settings):  # type: ignore[arg-type]
        if each.name in plain:
            value, inner = plain[each.name], each.default_factory
            values[each.name] = (made_of(inner, value) if isinstance(inner, type) and is_dataclass(inner) else
                                 tuple(value) if isinstance(value, list) else value)
    return settings(**values)
