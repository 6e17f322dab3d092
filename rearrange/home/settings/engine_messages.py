"""The engine's sentences with the keys and values of the command line.

The engine names its own settings, as in Python: `collect.num_envs=0`, `collect.mode=hts`, `deterministic=True`. They
are the keys of the command line but for the group of how experience is collected, which is chosen by `trainer=`
there. """

from __future__ import annotations

import re

_OF_COLLECTION = re.compile(r"(?<![\w.])collect\.(mode=)?(?=\w)")
_TRUTH = re.compile(r"(?<=\w)=(True|False)\b")


def in_keys(sentence: object) -> str:
    """`collect.mode=hts collect.overlap=True` -> `trainer=hts trainer.overlap=true`; also of an error."""
    text = _OF_COLLECTION.sub(lambda found: "trainer=" if found[1] else "trainer.", str(sentence))
    return _TRUTH.sub(lambda found: found[0].lower(), text)
