"""The folder of a recording: what it was made with, which episodes were tried, and files that are complete or absent.

    meta/rearrange/recording.json               the command, every attempt and how it went, the number of files
    meta/rearrange/chunk-000/file-000.json.gz   how each episode in the files of that number begins again

Episodes wait in memory until there are enough for the next files. recording.json is written after those, together with
the files about all episodes. What it does not know of is removed when the same command goes on.
"""

from __future__ import annotations

import errno
import gzip
import hashlib
import json
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from eval.recording.tape import Recorded
from rearrange import __version__
from rearrange.command_line.composition.options import RECORD_FORMATS
from rearrange.home.errors import UserError
from rearrange.home.files import open_regular, parse_json, read_bytes, read_json, unzipped
from rearrange.home.robot import DEFAULT
from rearrange.home.settings.environment import renewed
from trainer.checkpoints import owner
from trainer.logs.printable import first_line, printable
from trainer.workers.worker import signals_held

STATE = Path("meta", "rearrange", "recording.json")
STARTS = "meta/rearrange/chunk-{:03d}/file-{:03d}.json.gz"
IN_FILE, FRAMES_IN_FILE, BYTES_IN_FILE = 16, 20_000, 100 << 20
"""Of one file, whichever is reached first; of more frames, LeRobot's 32-bit times would not be exact enough."""
PART = ".part"  # at the end of the name of a file that is not complete
MOST_STATE = 1 << 28  # bytes of recording.json
EACH, OF_ALL = 1 << 16, 1 << 20  # bytes that the lists of episodes take: of each, and of all at least


def files_of(name: Any) -> type[Files]:
    """The class of a format's files. UserError for an unknown format, or where a package that it needs is missing."""
    if not isinstance(name, str) or name not in RECORD_FORMATS:
        raise UserError(f"format={printable(name, 60)} is none of {', '.join(RECORD_FORMATS)}.")
    module, _, what = RECORD_FORMATS[name].partition(":")
    files = getattr(import_module(module), what)
    missing = [package for package in files.packages if find_spec(package) is None]
    if missing:
        raise UserError(f"format={name} needs {' and '.join(missing)}: pip install 'rearrange[record]'.")
    return files


class Files(Protocol):
    """What writes and reads the files of a format."""

    packages: tuple[str, ...]  # that it needs
    raw: bool  # images stay arrays
    robot_type: str  # who acts

    def remove_from(self, number: int) -> None:
        """Remove what an interrupted command may have written of the files from this number on."""

    def add(self, number: int, episodes: Sequence[Recorded], first_episode: int, first_frame: int,
            tasks: Mapping[str, int]) -> list[Path]:
        """Write the files of one number and return their paths in the folder. OSError.

        Args:
            number: of the files.
            episodes: what is written.
            first_episode: number of the first of these episodes in the data set.
            first_frame: number of their first frame in the data set.
            tasks: the task in words -> its number, of all episodes so far.
        """

    def of_all(self, files: int, episodes: int, frames: int, tasks: Mapping[str, int]) -> dict[Path, bytes]:
        """The files about all episodes, which make the data set complete. OSError; UserError for a damaged data set."""

    @classmethod
    def described(cls, folder: Path) -> dict[str, tuple[tuple[int, ...], tuple[str, ...]]]:
        """Column -> its shape, and the names of its numbers. UserError for a damaged folder."""

    @classmethod
    def read(cls, folder: Path, number: int, columns: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
        """The columns of each episode in the files of one number: these, or all but videos. UserError for a damaged
        file."""


@dataclass(frozen=True)
class Attempt:
    """How one attempt went. kept: it is in the data set."""

    number: int
    kept: bool
    success: bool
    failure: str | None
    steps: int
    reward: float
    episode_id: str


class Full(Exception):
    """The next episode would make the data set larger than it may be."""


class Folder:
    """An open recording, which this process works in.

    command: settings, which must be the same again; usual: see `refuse_another`. about: what replaying needs.
    """

    def __init__(self, path: Path, files: Files, command: Mapping[str, Any], about: Mapping[str, Any],
                 most_bytes: float, usual: Mapping[str, Any] = {}) -> None:
        self.path, self._files, self._most, self._usual = path, files, most_bytes, usual
        files.robot_type = (about.get("env") or {}).get("robot") or DEFAULT
        self._command, self._about = json.loads(json.dumps(command)), dict(about)
        self.attempts: list[Attempt] = []
        self.tasks: dict[str, int] = {}
        self._sums: dict[str, str] = {}  # SHA-256 of each file that is never written again
        self.number = self.frames = 0  # of complete files; of frames in them
        self._waiting: list[Recorded] = []
        self._tried: list[Attempt] = []  # since the last files were written
        self._hold = _made(path)
        try:
            self._open()
        except BaseException as error:
            self._hold.release()
            if isinstance(error, OSError):
                raise _cannot_be_written(path, error) from error
            raise

    def _open(self) -> None:
        if (self.path / STATE).exists():
            state = read_state(self.path)
            refuse_another(self.path, state["command"], self._command, self._usual)
            self.attempts = [Attempt(*row) for row in state["attempts"]]
            self.tasks = {task: number for number, task in enumerate(state["tasks"])}
            self.number, self.frames, self._sums = state["files"], state["frames"], state.get("sha256", {})
        elif strangers := [entry.name for entry in self.path.iterdir() if entry.name not in (owner.FILE, "meta")]:
            raise UserError(f"out={self.path} is not empty and no recording (it has {strangers[0]}): choose a "
                            "new folder.")
        self._files.remove_from(self.number)
        for part in self.path.glob(f"**/*{PART}"):  # of a command that was killed
            part.unlink()
        self._write_state(self.number, self.frames, self.attempts, self.tasks, self._sums)
        self._bytes = size_of(self.path)

    @property
    def kept(self) -> int:
        """Episodes in the data set, those that wait among them."""
        return sum(attempt.kept for attempt in (*self.attempts, *self._tried))

    @property
    def written(self) -> int:
        """Episodes in the data set, whatever becomes of those that wait."""
        return sum(attempt.kept for attempt in self.attempts)

    @property
    def tried(self) -> list[Attempt]:
        """All attempts."""
        return self.attempts + self._tried

    @property
    def size(self) -> int:
        """Bytes of it, at most."""
        return self._bytes + sum(episode.size + EACH for episode in self._waiting)

    def add(self, episode: Recorded, keep: bool) -> None:
        """Take an attempt; keep: into the data set, else only how it went. Full; OSError."""
        if keep and self.size + episode.size + EACH + OF_ALL > self._most:
            raise Full
        start = episode.start.get("episode", {})
        self._tried.append(Attempt(episode.attempt, keep, episode.success, episode.failure, episode.steps,
                                   round(episode.reward, 4), start.get("id", "")))
        if not keep:
            return
        self._waiting.append(episode)
        if len(self._waiting) >= IN_FILE or sum(each.steps for each in self._waiting) >= FRAMES_IN_FILE or (
                sum(each.size for each in self._waiting) >= BYTES_IN_FILE):
            self.write()

    def write(self) -> None:
        """Write what waits: the folder is a complete data set then. OSError, after which it is as it was before."""
        if not (self.path / STATE).is_file():
            raise OSError(errno.ENOENT, "it was removed or moved away, and the episodes in it with it", str(self.path))
        episodes, tasks = self._waiting, dict(self.tasks)
        for episode in episodes:
            tasks.setdefault(episode.task, len(tasks))
        number, frames = self.number + bool(episodes), self.frames + sum(episode.steps for episode in episodes)
        attempts, sums = self.attempts + self._tried, dict(self._sums)
        try:
            if episodes:
                made = self._files.add(self.number, episodes, self.written, self.frames, tasks)
                made.append(self._write_starts(episodes, self.written))
                sums |= {file.as_posix(): sha256_of(self.path / file) for file in made}
            self._write_state(number, frames, attempts, tasks, sums)
        except BaseException:
            with suppress(OSError):  # what recording.json does not know of goes when the command is repeated
                self._files.remove_from(self.number)
            raise
        self.number, self.frames, self.attempts, self.tasks, self._sums = number, frames, attempts, tasks, sums
        self._waiting, self._tried = [], []
        if episodes:
            self._bytes = size_of(self.path)

    def _write_starts(self, episodes: list[Recorded], first: int) -> Path:
        rows = [{"episode_index": first + i, "attempt": episode.attempt, "task": episode.task,
                 "success": episode.success, "failure": episode.failure, "steps": episode.steps,
                 "reward": episode.reward, **episode.start} for i, episode in enumerate(episodes)]
        path = self.path / starts_file(self.number)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(json.dumps(rows, default=float).encode(), mtime=0))
        return Path(starts_file(self.number))

    def _write_state(self, files: int, frames: int, attempts: list[Attempt], tasks: dict[str, int],
                     sums: dict[str, str]) -> None:
        """The files that are of all episodes and recording.json, all of them or none."""
        rows = [[a.number, a.kept, a.success, a.failure, a.steps, a.reward, a.episode_id] for a in attempts]
        state = {"version": __version__, "command": self._command, "about": self._about, "files": files,
                 "frames": frames, "tasks": list(tasks), "attempts": rows, "sha256": sums}
        kept = sum(attempt.kept for attempt in attempts)
        _write_together((self._files.of_all(files, kept, frames, tasks) if files else {}) | {
            self.path / STATE: json.dumps(state).encode(errors="surrogateescape")})

    def close(self) -> None:
        """Let go of it."""
        self._hold.release()


def _write_together(contents: Mapping[Path, bytes]) -> None:
    """Write files that are all complete, or all as they were: all there has to be room for comes first. OSError."""
    parts = {path.with_name(f"{path.name}.{os.getpid()}{PART}"): path for path in contents}
    try:
        for part, path in parts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            part.write_bytes(contents[path])
        with signals_held():
            for part, path in parts.items():
                part.replace(path)
    finally:
        for part in parts:
            with suppress(OSError):
                part.unlink(missing_ok=True)


def _cannot_be_written(path: Path, error: OSError) -> UserError:
    return UserError(f"out={path} cannot be written: {error.strerror or printable(error)}. Make room, or choose "
                     "another out=.")


def _made(path: Path) -> owner.Hold:
    """Make the folder and take it for this process. UserError where that is impossible."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        return owner.hold(path)
    except owner.InUse as error:
        raise UserError(f"{error}. Wait for it, stop it, or choose another out=.") from error
    except OSError as error:
        raise _cannot_be_written(path, error) from error


def refuse_another(path: Path, before: Mapping[str, Any], now: Mapping[str, Any],
                   usual: Mapping[str, Any] = {}) -> None:
    """UserError where the recording in a folder was made with other settings. usual: those of whoever types nothing, by
    whole name, for settings that an earlier version did not have."""
    before, now = (_flat({key: renewed(value) if key in ("skill", "sim") and isinstance(value, Mapping) else value
                          for key, value in command.items()}) for command in (before, now))
    before = {key: usual[key] for key in now if key in usual} | before
    different = [f"{key}={before.get(key)}, now {now.get(key)}" for key in {**before, **now}
                 if before.get(key) != now.get(key)]
    if different:
        raise UserError(f"out={path} was recorded by another command ({'; '.join(different)}): repeat that one to go "
                        "on, or choose another out=.")


def _flat(settings: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Settings by their whole names: `skill.max_steps`."""
    return {name: value for key, each in settings.items() for name, value
            in (_flat(each, f"{before}{key}.") if isinstance(each, Mapping) else {f"{before}{key}": each}).items()}


def starts_file(number: int) -> str:
    """Where it is kept how the episodes of the files of a number begin."""
    return STARTS.format(*divmod(number, 1000))


def read_state(path: Path) -> dict[str, Any]:
    """What recording.json holds. UserError for a folder that is no recording."""
    try:
        state = read_json(path / STATE, MOST_STATE)
        if not isinstance(state, dict) or not {"command", "about", "files", "frames", "tasks",
                                               "attempts"} <= set(state):
            raise ValueError("it lacks some of what a recording has")
        kinds = {"command": dict, "about": dict, "sha256": dict, "tasks": list, "attempts": list, "files": int,
                 "frames": int}
        wrong = [key for key, kind in kinds.items() if key in state and type(state[key]) is not kind]
        if wrong or min(state["files"], state["frames"]) < 0 or not (
                all(isinstance(task, str) for task in state["tasks"]) and all(map(_is_attempt, state["attempts"]))):
            raise ValueError(f"what it says of {wrong[0] if wrong else 'the recording'} is not of the kind that it "
                             "should be")
        if isinstance(state["about"].get("env"), dict):
            state["about"]["env"] = renewed(state["about"]["env"])
        return state
    except FileNotFoundError:
        raise UserError(f"{path} is no recording of rearrange: it has no {STATE}.") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{path / STATE} is damaged: {_why(error)}.") from error


def _is_attempt(row: Any) -> bool:
    kinds = (int, bool, bool, str | None, int, int | float, str)
    return isinstance(row,
                      list) and len(row) == len(kinds) and all(map(isinstance, row, kinds)) and row[0] >= 0 <= row[4]


def _why(error: Exception) -> str:
    return getattr(error, "strerror", None) or first_line(error)


def check_sums(path: Path, state: Mapping[str, Any]) -> None:
    """UserError where a file is another than was recorded. Recordings of versions before know no checksums."""
    for name, sum_ in state.get("sha256", {}).items():
        file = path / name
        try:
            if ".." in Path(name).parts or Path(name).is_absolute() or sha256_of(file) != sum_:
                raise OSError(errno.EINVAL, "it is not what was recorded, by its checksum")
        except OSError as error:
            raise UserError(f"{file} is damaged: {_why(error)}. Take the recording from where it came from, or record "
                            "it again.") from error


def sha256_of(file: Path) -> str:
    """OSError."""
    with open_regular(file) as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def starts(path: Path) -> Iterator[dict[str, Any]]:
    """How each episode of a recording begins, and how it went, in order."""
    for number in range(read_state(path)["files"]):
        yield from read_starts(path / starts_file(number))


def read_starts(file: Path) -> list[dict[str, Any]]:
    """The same of the episodes in the files of one number. UserError for a damaged file."""
    try:
        rows = parse_json(unzipped(read_bytes(file, MOST_STATE), MOST_STATE, file))
        if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows) or not all(
                type(row.get("episode_index")) is int and row["episode_index"] == rows[0]["episode_index"] + i >= 0
                and type(row.get("steps")) is int and row["steps"] > 0 for i, row in enumerate(rows)):
            raise ValueError("it does not say how episodes begin")
        return rows
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise UserError(f"{file} is damaged: {_why(error)}.") from error


def size_of(path: Path) -> int:
    """Bytes of the files in a folder."""
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
