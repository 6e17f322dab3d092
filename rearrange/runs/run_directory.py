"""The directory of one run: `<output>/<command>/<skill>/<name>/`. Never overwritten, complete enough to repeat the run.

    config.yaml      every setting               log.txt          what the run printed
    overrides.yaml   the settings typed          metrics.csv, metrics.jsonl, tb/
    git.txt, git.diff   the code                 checkpoints/, videos/
    status.json      running, finished, stopped or failed, and the final figures
    lock             held by the process that works here (trainer/owner.py)

`plan` decides where a run goes and refuses what cannot be, writing nothing; `Run.create` writes, once all is checked.
"""

from __future__ import annotations

import json
import logging
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from rearrange.settings import keys
from rearrange.errors import UserError
from rearrange.files import not_waiting, read_json
from rearrange.settings.compose import Settings, UnknownKey, check_values, compose, every_key, leaves
from rearrange.settings.yaml_files import plain_yaml
from trainer import owner

FREE_KEYS = {"resume", "name", "output", "requeue"}  # may differ when a run is resumed
LATEST = "latest"
HOW_TO_GO_ON = "Wait for it, stop it, or choose another name=."  # where another process works


@dataclass
class Run:
    """Where a run keeps its things, and what it is made from."""

    path: Path
    settings: Settings
    resumed: bool = False
    silent: bool = False  # of a rank that is not the first: it writes and prints nothing
    result: dict[str, float] = field(default_factory=dict)  # figures so far, for a run that does not reach its end
    created: bool = field(default=False, init=False)  # this process has written the directory, or taken up an existing one
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
            if self.settings.config.name is not None or not os.path.lexists(self.path):
                raise
            self.path = _unused(self.path.parent, self.path.name)  # another run has taken the second of the clock for its name
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
            for folder in (self.checkpoints, self.videos):
                folder.mkdir(exist_ok=True)
            write_whole(self.path / "config.yaml", _yaml(self.settings.config))
            write_whole(self.path / "overrides.yaml", OmegaConf.to_yaml(list(self.settings.overrides)))
            _write_git_state(self.path)
            self.created = True
            self._write_status("running")
        except FileExistsError:
            raise UserError(_exists(self.path, self.settings.command)) from None
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
        for note in self.settings.notes:
            self.say(note)

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
        self.log(text)
        print(text, flush=True)

    def log(self, text: str) -> None:
        """Keep a line in log.txt. A full disk does not end a run."""
        if not self.created:
            return
        try:
            with open(self.path / "log.txt", "a", encoding="utf-8", errors="surrogateescape", opener=not_waiting) as file:
                file.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {text}\n")
        except OSError:
            pass

    def finish(self, status: str, result: dict[str, float] | None = None) -> None:
        """Record how the run ended, finished, stopped or failed, with its final figures; the directory is free again."""
        if self.created:
            remove_unfinished(self.path)
            try:
                self._write_status(status, result or self.result)
            except OSError as error:
                print(f"warning: cannot write {self.path / 'status.json'}: {error.strerror}", file=sys.stderr)
        self._release()

    def _write_status(self, status: str, result: dict[str, float] | None = None) -> None:
        text, file = json.dumps({"status": status, "result": result or {}, "time": int(time.time())}), self.path / "status.json"
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


def _yaml(config: DictConfig) -> str:
    """The settings as YAML, all of them values, without the wish to resume, which belongs to a command line and not to a run."""
    config = config.copy()
    if "resume" in config:
        config.resume = False
    return OmegaConf.to_yaml(config, resolve=True)


def plan(settings: Settings) -> Run:
    """The run that `settings` describe. Refuses a directory that exists or cannot be written; writes nothing."""
    resume = settings.config.get("resume", False)
    if resume:
        return _plan_resumed(settings, force=resume == "force")
    folder = folder_of(settings.config, settings.command)
    name = settings.config.name
    if name is None:
        path = _unused(folder, time.strftime("%Y-%m-%d_%H-%M-%S"))
    else:
        path = folder / checked_name(name)
        if os.path.lexists(path):
            raise UserError(_exists(path, settings.command))
    _check_writable(path)
    return Run(path, settings)


def silent(settings: Settings) -> Run:
    """The run of a rank that is not the first, which looks after the directory alone."""
    path = folder_of(settings.config, settings.command) / str(settings.config.name)
    return Run(path, settings, bool(settings.config.get("resume", False)), silent=True)


def folder_of(config: DictConfig, command: str) -> Path:
    """`<output>/<command>/<what>`, where the runs of one skill, scenario or measurement lie."""
    what = config.what if command == "bench" else (config.get("hab") or config.skill).name
    return Path(config.output) / command / what


def checked_name(name: str) -> str:
    """`name` if it can be a directory's."""
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.,=+ -]{0,199}", name) or name == LATEST:
        raise UserError(
            f"name={name} is not allowed: use at most 200 letters a to z, digits, spaces and - _ . , = +, beginning with a letter, "
            f"a digit or _, and not '{LATEST}', which is the link to the newest run."
        )
    return name


def settings_to_resume(command: str, words: list[str]) -> Settings:
    """Settings for `resume=`: those typed now on top of those saved with the run; only what is typed can change."""
    output, what, name = _typed(words, "output") or "outputs", _typed(words, "skill"), _typed(words, "name")
    if name is not None and "${" in name:
        name = compose(command, words).config.name
    if what is None and (scenario := _typed(words, "hab")):
        what = compose(command, [f"hab={scenario}"]).config.hab.name  # which a file may call otherwise
    if what is None and (experiment := _typed(words, "experiment")):
        what = compose(command, [f"experiment={experiment}"]).choices.get("skill")
    path = find_run(Path(output), command, what, name, free=name is None)
    saved = _saved_settings(path, command)
    typed = {word.lstrip("+").split("=")[0]: word for word in words}
    kept = [word for word in saved.overrides if word.lstrip("+").split("=")[0] not in typed]
    now = compose(command, kept + list(typed.values()))
    before, config = compose(command, list(saved.overrides)).config, saved.config
    for key, (_, new) in difference(before, now.config).items():
        OmegaConf.update(config, key, new, force_add=True)
    config.name, config.output, config.resume = path.name, output, now.config.resume
    try:
        check_values(config, now.keys)
    except UserError as error:
        raise UserError(_damaged(path / "config.yaml", str(error))) from error
    return Settings(command, tuple(w for w in now.overrides if w.split("=")[0] != "resume"), now.choices, config, now.keys,
                    saved.notes)


def _saved_settings(path: Path, command: str) -> Settings:
    """The settings of a run as this version has them: those that it did not know yet have their defaults, those that are no
    longer known are left out."""
    saved, words, notes = saved_config(path), _saved_words(path), []
    if not (saved.get("skill") or saved.get("hab") or command == "bench"):
        raise UserError(_damaged(path / "config.yaml", "it names neither a skill nor a scenario"))
    while True:
        try:
            made = compose(command, words)
            break
        except UnknownKey as error:
            known = [word for word in words if word.lstrip("+").split("=")[0] != error.key]
            if known == words:
                raise
            words = known
    config, known = made.config.copy(), every_key(command) | {key for key, _ in leaves(made.config)}
    values = dict(leaves(saved))
    for key, value in values.items():
        if isinstance(OmegaConf.select(config, key), DictConfig):
            raise UserError(_damaged(path / "config.yaml", f"{key} is not a group of settings there"))
        if key in known:
            OmegaConf.update(config, key, value, force_add=True)
    gone = sorted(set(values) - known)
    if gone:
        notes.append(f"{', '.join(gone)}: no longer a setting; the run goes on without.")
    return replace(made, overrides=tuple(words), config=config, notes=tuple(notes))


def changes(path: Path, now: Settings) -> dict[str, tuple[Any, Any]]:
    """Key -> (in the run, now) for every setting that differs from that of the run in a directory."""
    saved = saved_config(path)
    if {key for key, _ in leaves(saved)} != {key for key, _ in leaves(now.config)}:  # of an older version, or of other choices
        saved = _saved_settings(path, now.command).config
    return difference(saved, now.config)


def _plan_resumed(settings: Settings, force: bool) -> Run:
    path = folder_of(settings.config, settings.command) / settings.config.name
    refuse_if_held(path)
    changed = changes(path, settings)
    if force and "checkpoint" in changed:
        raise UserError(f"{path} has checkpoints of its own and goes on from the newest: leave checkpoint= out, or begin a new run "
                        "with it under another name=.")
    if changed and not force:
        lines = "; ".join(f"{key}: {old} -> {new}" for key, (old, new) in changed.items())
        raise UserError(
            f"{path} was started with other settings ({lines}). Leave them out to continue it as it was, or write "
            f"resume=force to change them."
        )
    if read_status(path)["status"] == "finished" and not changed and has_checkpoints(path):
        raise UserError(f"{path} is finished. To train further, raise steps= and write resume=force.")
    _check_writable(path)
    return Run(path, settings, resumed=True)


def difference(old: DictConfig, new: DictConfig) -> dict[str, tuple[Any, Any]]:
    """Key -> (old, new) for every setting that differs and matters."""
    a, b = dict(leaves(old)), dict(leaves(new))
    return {key: (a.get(key), b.get(key)) for key in {**a, **b} if key not in FREE_KEYS and a.get(key) != b.get(key)}


def runs(output: Path, command: str, what: str | None = None) -> list[Path]:
    """All runs of a command, newest last."""
    found = [path.parent for path in Path(output).glob(f"{command}/{what or '*'}/*/config.yaml")]
    return sorted(
        (path for path in found if not path.is_symlink()), key=lambda path: (path / "config.yaml").stat().st_mtime
    )


def find_run(output: Path, command: str, what: str | None = None, name: str | None = None, free: bool = False) -> Path:
    """The run called `name`, or the newest one; `free`: one that no process works in, if there is one."""
    found = [path for path in runs(output, command, what) if name is None or path.name == name]
    if not found:
        where = Path(output) / command / (what or "*") / (name or "*")
        group = "skill" if what is None or what in keys.choices("skill") else "hab"
        example = f"rearrange {command} {group}={what or 'pick'}" + (f" name={name}" if name else "")
        raise UserError(f"there is no run at {where}. Start one with: {example}")
    unheld = [path for path in found if not owner.is_held(path)] if free else []
    return (unheld or found)[-1]


def has_checkpoints(path: Path) -> bool:
    """Whether a training run has saved something to go on from."""
    return any((path / "checkpoints").glob("step_*.pt"))


def read_status(path: Path) -> dict[str, Any]:
    """How a run ended; `died` if it says that it is running and no process works in it, `unknown` if it does not say."""
    unknown = {"status": "unknown", "result": {}}
    try:
        found = read_json(path / "status.json")
    except (OSError, ValueError):
        return unknown
    if not isinstance(found, dict) or not isinstance(found.get("status"), str) or not isinstance(found.get("result"), dict):
        return unknown
    if not all(isinstance(value, int | float) for value in found["result"].values()):
        found = unknown | {"status": found["status"]}
    if found["status"] == "running" and owner.is_held(path) is False:
        found["status"] = "died"
    return found


def saved_config(path: Path) -> DictConfig:
    """The settings that a run was started with."""
    return OmegaConf.create(_saved_yaml(path / "config.yaml", dict, "a mapping of settings"))


def _saved_words(path: Path) -> list[str]:
    """The settings that were typed when a run was started."""
    words = _saved_yaml(path / "overrides.yaml", list, "a list of settings")
    if not all(isinstance(word, str) for word in words):
        raise UserError(_damaged(path / "overrides.yaml", "it holds something else than settings"))
    return words


def _saved_yaml(file: Path, kind: type, spoken: str) -> Any:
    try:
        content = plain_yaml(file)  # values as they are: a word may hold "${seed}"
    except OSError as error:
        raise UserError(_damaged(file, error.strerror or "no such file")) from error
    except ValueError as error:
        raise UserError(_damaged(file, str(error))) from error
    if not isinstance(content, kind) or (kind is dict and not content):
        raise UserError(_damaged(file, f"it does not hold {spoken}"))
    return content


def _damaged(file: Path, why: str) -> str:
    return (f"{file} cannot be read: {why.rstrip('.')}. Put it back, or begin a new run under another name=, with checkpoint= "
            "if it shall begin with what this one has learned.")


def _typed(words: list[str], key: str) -> str | None:
    values = [
        word.split("=", 1)[1].strip("'\"") for word in words if word.lstrip("+").split("=")[0] == key and "=" in word
    ]
    return values[-1] if values else None


def _exists(path: Path, command: str) -> str:
    refuse_if_held(path)
    if command == "train":
        return f"{path} exists already. Continue it with resume=true, or choose another name=."
    return f"{path} exists already. Choose another name=."


def _unused(folder: Path, name: str) -> Path:
    """`folder/name`, or with a number behind it if another run began in the same second."""
    candidates = [folder / name] + [folder / f"{name}-{number}" for number in range(2, 1000)]
    return next(path for path in candidates if not os.path.lexists(path))


def _check_writable(path: Path) -> None:
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
    home = Path(__file__).resolve().parents[2]
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
