"""What a directory of results may be called."""

from __future__ import annotations

import re

from rearrange.home.errors import UserError

LATEST = "latest"


def folder_name(what: str) -> str:
    """The folder of what was trained or evaluated: a skill `package.module:Name` has none with a colon, which would
    make it look like an agent."""
    return what.replace(":", ".")


def checked_name(name: str) -> str:
    """`name` if it can be a directory's."""
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.,=+ -]{0,199}", name) or name == LATEST:
        raise UserError(f"name={name} is not allowed: use at most 200 letters a to z, digits, spaces and - _ . , = "
                        f"+, beginning with a letter, a digit or _, and not '{LATEST}', which is the link to the "
                        "newest run.")
    return name
