"""Reading YAML that others may have written: limited in size, depth and number of values, and without aliases.

A few lines in which each names the one before ten times ("billion laughs") would fill any memory, and nothing here
writes aliases. """

from __future__ import annotations

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
    from omegaconf import OmegaConf

    text = read_text(path, MOST_BYTES)
    try:
        check_yaml(text)
        return OmegaConf.to_container(OmegaConf.load(io.StringIO(text)))
    except Exception as error:  # YAML and OmegaConf have no common base for what a text can have wrong
        raise ValueError(" ".join(str(error).split()) or type(error).__name__) from None


def check_yaml(text: str) -> None:
    """Raise ValueError for a text that asks for too much, before anything is made of it; yaml.YAMLError if it is no
    YAML."""
    import yaml

    depth = values = 0
    # the C loader gives up 1,000 brackets deep before it tells of the first
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
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
