"""The directory of one run: `<output>/<command>/<skill>/<name>/`. Never overwritten, complete enough to repeat the run.

    config.yaml      every setting               log.txt          what the run printed
    overrides.yaml   the settings typed          metrics.csv, metrics.jsonl, tb/
    git.txt, git.diff   the code                 checkpoints/, videos/
    status.json      running, finished, stopped or failed, and the final figures
    lock             held by the process that works here (trainer/checkpoints/owner.py)

`rearrange.command_line.composition.plan_run` decides where a run goes, writing nothing; `Run.create` writes, once all
is checked.
"""

from __future__ import annotations

import json
import logging
import os
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rearrange.command_line.runs.names import LATEST, folder_name
from rearrange.home.errors import UserError
from rearrange.home.files import not_waiting, read_json
from rearrange.home.settings.yaml_files import as_yaml, plain_yaml, resolved
from trainer.checkpoints import owner
from trainer.ranks.launch import CLOCKS_WITHIN_S

if TYPE_CHECKING:
    from rearrange.command_line.composition.options import Settings

HOW_TO_GO_ON = "Wait for it, stop it, or choose another name=."  # where another process works


@dataclass
class Run:
    """Where a run keeps its things, and what it is made from."""

    path: Path
    settings: Settings
    resumed: bool = False
    # of a training that ended in good order before its end: a signal, or what a callback said
    stopped_by: str | None = None
    silent: bool = False  # of a rank that is not the first: it writes and prints nothing
    result: dict[str, float] = field(default_factory=dict)  # figures so far, for a run that does not reach its end
    # this process has written the directory, or taken up an existing one
    created: bool = field(default=False, init=False)
    _own: owner.Hold | None = field(default=None, init=False)

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def videos(self) -> Path:
        return self.path / "videos"

    def _make(self) -> None:
        try:
            self.path.mkdir(parents=True, exist_ok=self.resumed)
        except FileExistsError:
            if self.settings.value("name") is not None or not os.path.lexists(self.path):
                raise
            # another run has taken the second of the clock for its name
            self.path = unused_path(self.path.parent, self.path.name)
            self._make()

    def create(self) -> None:
        """Write the directory: settings, code version, status. One sentence if that is not permitted."""
        if self.silent:
            return
        made = False
        try:
            self._make()
            made = not self.resumed
            self._own = hold(self.path)
            remove_unfinished(self.path)
            self._write_settings()
            _write_git_state(self.path)
            self.created = True
            self._write_status("running")
        except FileExistsError:
            raise UserError(exists_already(self.path, self.settings.command)) from None
        except OSError as error:
            self.created = False
            self._release()
            if made:  # what has only just begun shall not keep its name
                shutil.rmtree(self.path, ignore_errors=True)
            raise UserError(
                f"cannot write to {self.path}: {error.strerror}. "
                + ("Make room, and repeat the command." if self.resumed else "Choose another place with output=.")
            ) from error
        _point_latest(self.path)
        self.log(f"$ {shlex.join(['rearrange', self.settings.command, *self.settings.overrides])}")
        self._compare_clocks()
        for note in self.settings.notes:
            self.say(note)

    def _write_settings(self) -> None:
        for folder in (self.checkpoints, self.videos):
            folder.mkdir(exist_ok=True)
        config = self.settings.config
        # the wish to resume belongs to a command line and not to a run
        config = config | {"resume": False} if "resume" in config else config
        write_whole(self.path / "config.yaml", as_yaml(config))
        write_whole(self.path / "overrides.yaml", as_yaml(list(self.settings.overrides)))

    def keep(self, *_: object) -> None:
        """Write anew what somebody has removed of the directory while the command goes on, as far as that is known, and
        say so.
        """
        if not self.created:
            return
        gone = [name for name in ("config.yaml", "overrides.yaml", "status.json") if not (self.path / name).exists()]
        if not gone:
            return
        try:
            if self._own and self._own.is_lost():
                self._own.take_again()
            self._write_settings()
            _write_git_state(self.path)
            self._write_status("running")
        except (OSError, owner.InUse):  # as long as it cannot be written
            return
        _point_latest(self.path)
        self.say(f"warning: {', '.join(gone)} of {self.path} had been removed while this command goes on, and "
                 f"{'is' if len(gone) == 1 else 'are'} written anew.")

    after_update = keep  # as a callback of a training

    def _compare_clocks(self) -> None:
        """Warn of a file server whose clock is another than ours."""
        with suppress(OSError):
            ahead_s = (self.path / "status.json").stat().st_mtime - time.time()
            if abs(ahead_s) > CLOCKS_WITHIN_S:
                self.say(f"warning: the clock of the file system of {self.path} is {abs(ahead_s):,.0f} s "
                         f"{'ahead of' if ahead_s > 0 else 'behind'} that of {socket.gethostname()}: which run is "
                         "the newest goes by the former; set both by NTP.")

    def _release(self) -> None:
        if self._own:
            self._own.release()

    @contextmanager
    def keeps_warnings(self) -> Iterator[None]:
        """Meanwhile warnings of the parts are kept in log.txt, and shown as otherwise."""
        root, ours = logging.getLogger(), _ToLog(self)
        shown = [] if root.handlers else [logging.lastResort]
        for handler in (ours, *shown):
            root.addHandler(handler)
        try:
            yield
        finally:
            for handler in (ours, *shown):
                root.removeHandler(handler)

    def say(self, text: str) -> None:
        """Print a line, and keep it in log.txt."""
        if self.silent:
            return
        self.keep()
        self.log(text)
        print(text, flush=True)

    def log(self, text: str) -> None:
        """Keep a line in log.txt. A full disk does not end a run."""
        if not self.created:
            return
        try:
            with open(self.path / "log.txt", "a", encoding="utf-8", errors="surrogateescape",
                      opener=not_waiting) as file:
                file.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {text}\n")
        except OSError:
            pass

    def finish(self, status: str, result: dict[str, float] | None = None) -> None:
        """Record how the run ended, finished, stopped or failed, with its final figures; the directory is free
        again.
        """
        if self.created:
            self.keep()
            remove_unfinished(self.path)
            try:
                self._write_status(status, result or self.result)
            except OSError as error:
                print(f"warning: cannot write {self.path / 'status.json'}: {error.strerror}", file=sys.stderr)
        self._release()

    def _write_status(self, status: str, result: dict[str, float] | None = None) -> None:
        text, file = json.dumps(
            {"status": status, "result": result or {}, "time": int(time.time())}), self.path / "status.json"
        try:
            write_whole(file, text)
        except OSError:  # on a full disk there is still room for what takes the place of something as long
            if not file.exists() or len(text) > (size := file.stat().st_size):
                raise
            with open(file, "r+b") as opened:
                opened.write(text.ljust(size).encode())


class _ToLog(logging.Handler):
    """Warnings, into a run's log.txt."""

    def __init__(self, run: Run) -> None:
        super().__init__(logging.WARNING)
        self.run = run

    def emit(self, record: logging.LogRecord) -> None:
        self.run.log(f"{record.levelname.lower()}: {record.getMessage()}")


def hold(path: Path) -> owner.Hold:
    """The directory for this process alone. UserError that names the process which has it."""
    try:
        return owner.hold(path)
    except owner.InUse as error:
        raise UserError(f"{error}. {HOW_TO_GO_ON}") from None


def refuse_if_held(path: Path) -> None:
    """UserError if another process works in a run directory. Writes nothing."""
    try:
        owner.refuse_if_held(path)
    except owner.InUse as error:
        raise UserError(f"{error}. {HOW_TO_GO_ON}") from None


def remove_unfinished(path: Path) -> None:
    """Remove what a process that was killed in the middle of writing has left; only who holds the directory may."""
    for pattern in ("*.part", "videos/.*.partial.mp4"):
        for file in path.glob(pattern):
            file.unlink(missing_ok=True)


def write_whole(path: Path, text: str) -> None:
    """Write a file that is complete or as it was before. Names that are no UTF-8 keep their bytes."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        temporary.write_text(text, encoding="utf-8", errors="surrogateescape")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def folder_of(config: Mapping[str, Any], command: str) -> Path:
    """`<output>/<command>/<what>`, where the runs of one skill, scenario or measurement lie."""
    what = config["what"] if command == "bench" else next(config[group]["name"] for group in ("hab", "nav", "skill")
                                                          if config.get(group))
    return Path(config["output"]) / command / folder_name(what)


def runs(output: Path, command: str, what: str | None = None) -> list[Path]:
    """All runs of a command, newest last."""
    found = [path.parent for path in Path(output).glob(f"{command}/{folder_name(what or '*')}/*/config.yaml")]
    return sorted(
        (path for path in found if not path.is_symlink()), key=lambda path: (path / "config.yaml").stat().st_mtime
    )


def has_checkpoints(path: Path) -> bool:
    """Whether a training run has saved something to go on from."""
    return any((path / "checkpoints").glob("step_*.pt"))


def read_status(path: Path) -> dict[str, Any]:
    """How a run ended; `died` if it says that it is running and no process works in it, `unknown` if it does not
    say.
    """
    unknown = {"status": "unknown", "result": {}}
    try:
        found = read_json(path / "status.json")
    except (OSError, ValueError):
        return unknown
    if not isinstance(found, dict) or not isinstance(found.get("status"),
                                                     str) or not isinstance(found.get("result"), dict):
        return unknown
    if not all(isinstance(value, int | float) for value in found["result"].values()):
        found = unknown | {"status": found["status"]}
    if found["status"] == "running" and owner.is_held(path) is False:
        found["status"] = "died"
    return found


def saved_config(path: Path) -> dict[str, Any]:
    """The settings that a run was started with, as nested dicts and lists."""
    return _saved_yaml(path / "config.yaml", dict, "a mapping of settings")


def saved_words(path: Path) -> list[str]:
    """The settings that were typed when a run was started."""
    words = _saved_yaml(path / "overrides.yaml", list, "a list of settings")
    if not all(isinstance(word, str) for word in words):
        raise UserError(damaged(path / "overrides.yaml", "it holds something else than settings"))
    return words


def _saved_yaml(file: Path, kind: type, spoken: str) -> Any:
    try:
        content = plain_yaml(file)
        content = resolved(content) if kind is dict else content  # a word may hold "${seed}"
    except OSError as error:
        raise UserError(damaged(file, error.strerror or "no such file")) from error
    except ValueError as error:
        raise UserError(damaged(file, str(error))) from error
    if not isinstance(content, kind) or (kind is dict and not content):
        raise UserError(damaged(file, f"it does not hold {spoken}"))
    return content


def damaged(file: Path, why: str) -> str:
    return (f"{file} cannot be read: {why.rstrip('.')}. Put it back, or begin a new run under another name=, with "
            "checkpoint= if it shall begin with what this one has learned.")


def exists_already(path: Path, command: str) -> str:
    refuse_if_held(path)
    if command == "train":
        return f"{path} exists already. Continue it with resume=true, or choose another name=."
    return f"{path} exists already. Choose another name=."


def unused_path(folder: Path, name: str) -> Path:
    """`folder/name`, or with a number behind it if another run began in the same second."""
    candidates = [folder / name] + [folder / f"{name}-{number}" for number in range(2, 1000)]
    return next(path for path in candidates if not os.path.lexists(path))


def check_writable(path: Path) -> None:
    """Refuse a place where `path` cannot be made."""
    above = path.absolute()
    while not os.path.lexists(above):
        above = above.parent
    if not above.is_dir():
        raise UserError(f"cannot write to {path}: {above} is not a directory. Choose another place with output=.")
    if not os.access(above, os.W_OK | os.X_OK):
        raise UserError(f"cannot write to {path}: no permission in {above}. Choose another place with output=.")


def _point_latest(path: Path) -> None:
    """Make the link `latest` beside the run point at it; file systems without links go without."""
    temporary = path.parent / f".latest-{os.getpid()}"
    try:
        temporary.symlink_to(path.name)
        temporary.replace(path.parent / LATEST)
    except OSError:
        temporary.unlink(missing_ok=True)


def _write_git_state(path: Path) -> None:
    """git.txt (commit, branch, changed files) and git.diff, when the code runs from a git checkout."""
    home = Path(__file__).resolve().parents[3]
    if not (home / ".git").exists():
        return
    commit, status, diff = (
        _git(home, *words)
        for words in (("log", "-1", "--format=%H %cI%n%s"), ("status", "--short", "--branch"), ("diff", "HEAD"))
    )
    write_whole(path / "git.txt", f"{commit}{status}")
    write_whole(path / "git.diff", diff)


def _git(home: Path, *words: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(home), *words], capture_output=True, text=True, errors="replace", timeout=20
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout
