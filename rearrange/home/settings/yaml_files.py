"""YAML as OmegaConf reads and writes it. What others may have written is limited in size, depth and number of values,
and has no aliases.

A few lines in which each names the one before ten times ("billion laughs") would fill any memory, and nothing here
writes aliases. """

from __future__ import annotations

import functools
import io
import os
from typing import Any

from rearrange.home.files import read_text

MOST_BYTES = 1 << 20
MOST_DEPTH = 20
MOST_VALUES = 20_000


def plain_yaml(path: str | os.PathLike) -> Any:
    """What a YAML file holds, as dicts, lists and plain values. Raises OSError if it cannot be read, is no regular
    file or too large, and ValueError, with the reason on one line, for what is wrong in it."""
    return parsed(read_text(path, MOST_BYTES))


def parsed(text: str) -> Any:
    """What a text holds, as `plain_yaml` of a file."""
    from omegaconf import OmegaConf

    try:
        check_yaml(text)
        values = None if "${" in text else _read(text)  # an interpolation has a grammar of its own
        return values if _is_plain(values) else OmegaConf.to_container(OmegaConf.load(io.StringIO(text)))
    except Exception as error:  # YAML and OmegaConf have no common base for what a text can have wrong
        raise ValueError(" ".join(str(error).split()) or type(error).__name__) from None


def resolved(values: Any, only_read: bool = False) -> Any:
    """Nested values with what interpolations in them stand for, such as `${seed}` and `${oc.env:HOME}`; `only_read`:
    as they are. Raises ValueError for one that cannot be read, or stands for nothing."""
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    if "${" not in str(values):
        return values
    try:
        made = OmegaConf.create(values)
        if not only_read:
            OmegaConf.resolve(made)
        return OmegaConf.to_container(made, resolve=not only_read)
    except OmegaConfBaseException as error:
        raise ValueError(str(error).splitlines()[0]) from error


def as_yaml(values: Any) -> str:
    """Plain values as OmegaConf writes them: a text that reads as a number stands in quotes."""
    import yaml

    return yaml.dump(values, default_flow_style=False, allow_unicode=True, sort_keys=False, Dumper=_dumper())


@functools.cache
def _dumper() -> type:
    """OmegaConf's dumper, which writes a list twice that stands in two places, and a tuple as a list."""
    import yaml
    from omegaconf._utils import get_omega_conf_dumper

    class Dumper(get_omega_conf_dumper()):
        def ignore_aliases(self, _: Any) -> bool:
            return True

    Dumper.add_representer(tuple, yaml.Dumper.represent_list)
    return Dumper


def check_yaml(text: str) -> None:
    """Raise ValueError for a text that asks for too much, before anything is made of it; yaml.YAMLError if it is no
    YAML."""
    import yaml

    try:
        _check_parts(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError:  # of which the C parser says less; 1,000 nested brackets end it before it gives an event
        _check_parts(text, yaml.SafeLoader)


def _check_parts(text: str, loader: Any) -> None:
    import yaml

    depth = values = 0
    for event in yaml.parse(text, Loader=loader):
        if isinstance(event, yaml.AliasEvent):
            raise ValueError(f"it has the alias *{event.anchor}; aliases are not read: write the values out")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        values += isinstance(event, yaml.NodeEvent)
        if depth > MOST_DEPTH:
            raise ValueError(f"its values are nested more than {MOST_DEPTH} deep")
        if values > MOST_VALUES:
            raise ValueError(f"it holds more than {MOST_VALUES:,} values")


def _read(text: str) -> Any:
    """What OmegaConf's loader makes of a text, by the C parser, which takes a third of the time; None where it cannot.
    """
    import yaml

    try:
        return yaml.load(text, _loader()) if yaml.__with_libyaml__ else None
    except yaml.YAMLError:
        return None


@functools.cache
def _loader() -> type:
    """OmegaConf's loader with the parser in C."""
    import yaml
    from omegaconf._utils import get_yaml_loader

    class Loader(yaml.cyaml.CParser, get_yaml_loader()):
        def __init__(self, stream: str) -> None:
            yaml.cyaml.CParser.__init__(self, stream)
            yaml.constructor.SafeConstructor.__init__(self)
            yaml.resolver.Resolver.__init__(self)

    return Loader


def _is_plain(values: Any, inside: bool = False) -> bool:
    """Whether these are dicts and lists of values that OmegaConf would leave as they are."""
    if isinstance(values, dict):
        return all(isinstance(key, str) and _is_plain(value, True) for key, value in values.items())
    if isinstance(values, list):
        return all(_is_plain(value, True) for value in values)
    return inside and (values is None or isinstance(values, str | int | float))
