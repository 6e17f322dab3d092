"""The Tab key: commands, choices, keys, values and paths.

bash, zsh and fish each call `rearrange --complete <shell> ...` and show the lines that it prints.

Written here: shtab and argcomplete complete the options of argparse, while keys, choices and values stand in the
dataclasses of settings. """

from __future__ import annotations

import glob
import os
import sys
from pathlib import Path

from rearrange.command_line.composition.command_names import COMMANDS, FLAGS
from rearrange.home.errors import UserError

SHELLS = {
    "bash": ("~/.bashrc", 'complete -o nospace -C "rearrange --complete bash" rearrange'),
    "zsh": (
        "~/.zshrc",
        "autoload -Uz compinit && compinit; _rearrange() { compadd -Q -S '' -- "
        '${(f)"$(rearrange --complete zsh "${(@)words[2,CURRENT]}")"} }; compdef _rearrange rearrange',
    ),
    "fish": (
        "~/.config/fish/config.fish",
        'complete -c rearrange -f -a "(rearrange --complete fish (commandline -opc)[2..] (commandline -ct))"',
    ),
}


def install(words: list[str]) -> int:
    """`--install-completion [shell]`: print the line that sets completion up, and where it belongs."""
    shell = words[0] if words else Path(os.environ.get("SHELL", "")).name
    if shell not in SHELLS:
        if words:
            raise UserError(f"no completion for '{shell}'. Shells: {', '.join(SHELLS)}.")
        shell = "bash"
    place, line = SHELLS[shell]
    print(
        f"# add this line to {place} and open a new shell (other shells: {', '.join(s for s in SHELLS if s != shell)})",
        file=sys.stderr,
    )
    print(line)
    return 0


def complete(words: list[str]) -> int:
    """`--complete <shell> [words]`: print the candidates for the last word."""
    shell, typed = (words or ["bash"])[0], words[1:]
    if shell == "bash":  # bash gives the line in the environment
        line = os.environ.get("COMP_LINE", "")[: int(os.environ.get("COMP_POINT", "10000"))]
        typed = line.split(" ")[1:]
    typed = [word for word in typed[:-1] if word] + (typed[-1:] or [""])
    try:
        found = candidates(typed)
    except UserError:
        return 0
    if shell == "bash":
        found = [_for_bash(typed[-1], word) for word in found]
    print("\n".join(found))
    return 0


def _for_bash(typed: str, word: str) -> str:
    """bash completes from the last `=` or `:` on, and adds no space of its own here."""
    cut = max(typed.rfind(sign) for sign in "=:") + 1
    return word[cut:] + ("" if word.endswith(("=", ".", "/")) else " ")


def candidates(typed: list[str]) -> list[str]:
    """What the last of `typed` may become; the other words are what stands before it, command first."""
    last = typed[-1]
    if len(typed) == 1:
        return [word for word in (*COMMANDS, "--version", "--help", "--install-completion") if word.startswith(last)]
    command = typed[0]
    if command not in COMMANDS:
        return []
    settings = _settings(command, typed[1:-1])
    name, equals, value = last.lstrip("+").partition("=")
    if equals:
        return [f"{name}={word}" for word in _values(command, settings, name, value)]
    return _names(command, settings, last, first=len(typed) == 2)


def _settings(command: str, words: list[str]):
    """The configuration that the words before give, or the default one if they do not make sense yet."""
    from rearrange.command_line.composition.parse_overrides import compose

    sensible = [word for word in words if "=" in word and not word.startswith("-") and "," not in word]
    try:
        return compose(command, sensible)
    except UserError:
        return compose(command, [])


def _names(command: str, settings, typed: str, first: bool) -> list[str]:
    """Flags, groups, and keys up to their next dot."""
    from rearrange.command_line.composition import options

    if typed.startswith("-"):
        return [flag for flag in FLAGS if flag.startswith(typed)]
    groups = options.groups(command)
    directories = [path for path in _paths(typed) if path.endswith("/")] if command == "report" else []
    names = [f"{group}=" for group in groups] + (options.choices("bench") if command == "bench" and first else [])
    depth = typed.count(".")
    for key in settings.values:
        line = settings.keys.get(key)
        parts = key.split(".")
        if line is None or not line.rule.is_fixed:
            names.append(f"{key}=" if len(parts) == depth + 1 else ".".join(parts[: depth + 1]) + ".")
            if (block := ".".join(parts[: depth + 1])) in settings.keys:  # one that can be set as a whole
                names.append(f"{block}=")
    return directories + list(dict.fromkeys(name for name in names if name.startswith(typed)))


def _values(command: str, settings, name: str, typed: str) -> list[str]:
    """Choices of a group, words of a rule, or paths."""
    from rearrange.command_line.composition import options

    if name in options.groups(command):
        every = (command, name) in (("train", "skill"), ("eval", "skill"), ("eval", "hab"))
        words = options.choices(name) + (["all"] if every else [])
    else:
        line = settings.keys.get(name)
        words = line.rule.words() if line else []
        if line and line.rule.is_path:
            words = words + _paths(typed)
    before = typed.rpartition(",")[0]
    before = f"{before}," if before else ""
    return [before + word for word in words if (before + word).startswith(typed)]


def _paths(typed: str) -> list[str]:
    """Files and directories that begin with `typed`."""
    return sorted(
        path + ("/" if os.path.isdir(path) else "") for path in glob.glob(glob.escape(os.path.expanduser(typed)) + "*")
    )
