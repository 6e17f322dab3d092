"""Where a run goes, and with which settings: a new one, or one that is resumed. Writes nothing."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from rearrange.command_line.composition import options
from rearrange.command_line.composition.options import Settings
from rearrange.command_line.composition.parse_overrides import UnknownKey, checked_values, compose, every_key
from rearrange.command_line.runs.names import checked_name
from rearrange.command_line.runs.run_directory import (
    Run,
    check_writable,
    damaged,
    exists_already,
    folder_of,
    has_checkpoints,
    read_status,
    refuse_if_held,
    runs,
    saved_config,
    saved_words,
    unused_path,
)
from rearrange.home.errors import UserError
from rearrange.home.settings import installed_parts
from trainer.checkpoints import owner
from trainer.config import OF_THE_WEIGHTS
from trainer.setting_rules import leaves

FREE_KEYS = {"resume", "name", "output", "requeue"}  # may differ when a run is resumed


def plan(settings: Settings) -> Run:
    """The run that `settings` describe. Refuses a directory that exists or cannot be written; writes nothing."""
    resume = settings.value("resume")
    if resume:
        return _plan_resumed(settings, force=resume == "force")
    folder = folder_of(settings.config, settings.command)
    name = settings.value("name")
    if name is None:
        path = unused_path(folder, time.strftime("%Y-%m-%d_%H-%M-%S"))
    else:
        path = folder / checked_name(name)
        if os.path.lexists(path):
            raise UserError(exists_already(path, settings.command))
    check_writable(path)
    return Run(path, settings)


def silent(settings: Settings) -> Run:
    """The run of a rank that is not the first, which looks after the directory alone."""
    path = folder_of(settings.config, settings.command) / str(settings.value("name"))
    return Run(path, settings, bool(settings.value("resume")), silent=True)


def settings_to_resume(command: str, words: list[str]) -> Settings:
    """Settings for `resume=`: those typed now on top of those saved with the run; only what is typed can change."""
    output, what, name = _typed(words, "output") or "outputs", _typed(
        words, "skill") or _typed(words, "nav"), _typed(words, "name")
    if name is not None and "${" in name:
        name = compose(command, words).value("name")
    if what is None and (scenario := _typed(words, "hab")):
        what = compose(command, [f"hab={scenario}"]).value("hab.name")  # which a file may call otherwise
    if what is None and (experiment := _typed(words, "experiment")):
        made = compose(command, [f"experiment={experiment}"]).choices
        what = made.get("skill") or made.get("nav")
    path = find_run(Path(output), command, what, name, free=name is None)
    again = installed_parts.SKILLS.as_typed("skill", _typed(saved_words(path), "skill"))
    if again and not _typed(words, "skill"):
        raise UserError(f"{path} trains a skill of your own, which is imported only where you type it: add{again}.")
    saved = _saved_settings(path, command)
    typed = {word.lstrip("+").split("=")[0]: word for word in words}
    kept = [word for word in saved.overrides if word.lstrip("+").split("=")[0] not in typed]
    now = compose(command, kept + list(typed.values()))
    network = now.value("policy.network")
    if "policy" not in typed and (again := installed_parts.NETWORKS.as_typed("policy", network)):
        raise UserError(f"{path} trains the network {network}, which is imported only where you type it: add{again}.")
    for key in ("sim.robot", "nav.agent"):
        robot = saved.values.get(key)
        if key not in typed and (again := installed_parts.ROBOTS.as_typed(key, robot)):
            raise UserError(f"{path} trains the robot {robot}, which is imported only where you type it: add{again}.")
    typed_now = difference(compose(command, list(saved.overrides)).values, now.values)
    # settings of another choice than the run's are the new one's alone
    values = {key: new if key in typed_now else saved.values.get(key, new) for key, new in now.values.items()}
    values |= {"name": path.name, "output": output, "resume": now.value("resume")}
    try:
        values = checked_values(values, now.keys)
    except UserError as error:
        raise UserError(damaged(path / "config.yaml", str(error))) from error
    return Settings(command, tuple(w for w in now.overrides if w.split("=")[0] != "resume"), now.choices, values,
                    now.keys, saved.notes)


def _saved_settings(path: Path, command: str) -> Settings:
    """The settings of a run as this version has them: those that it did not know yet have their defaults, those that
    are no longer known are left out."""
    saved, words, notes = dict(leaves(saved_config(path))), saved_words(path), []
    if "sim.robot" in saved and "sim.hand" not in saved:  # version 0.2 called Habitat's URDF so
        saved["sim.robot_urdf"] = saved.pop("sim.robot")
    if not (command == "bench" or any(key.split(".")[0] in ("skill", "nav", "hab") for key in saved)):
        raise UserError(damaged(path / "config.yaml", "it names no skill, no navigation task and no scenario"))
    while True:
        try:
            made = compose(command, words)
            break
        except UnknownKey as error:
            known = [word for word in words if word.lstrip("+").split("=")[0] != error.key]
            if known == words:
                raise
            words = known
    known = every_key(command) | set(made.values)
    if group := next((key for key in saved if any(each.startswith(f"{key}.") for each in made.values)), None):
        raise UserError(damaged(path / "config.yaml", f"{group} is not a group of settings there"))
    values = made.values | {key: value for key, value in saved.items() if key in known}
    gone = sorted(set(saved) - known)
    if gone:
        notes.append(f"{', '.join(gone)}: no longer a setting; the run goes on without.")
    return replace(made, overrides=tuple(words), values=values, notes=tuple(notes))


def changes(path: Path, now: Settings) -> dict[str, tuple[Any, Any]]:
    """Key -> (in the run, now) for every setting that differs from that of the run in a directory."""
    saved = dict(leaves(saved_config(path)))
    if saved.keys() != now.values.keys():  # of an older version, or of other choices
        saved = _saved_settings(path, now.command).values
    return {key: values for key, values in difference(saved, now.values).items() if key not in _of_the_network(now)}


def _of_the_network(settings: Settings) -> set[str]:
    """Settings that the weights of a policy were learned with and that were not typed: a run that goes on keeps its
    own."""
    typed = {word.split("=")[0] for word in settings.overrides}
    return {f"policy.{name}" for name in OF_THE_WEIGHTS} - typed


def _plan_resumed(settings: Settings, force: bool) -> Run:
    path = folder_of(settings.config, settings.command) / settings.value("name")
    refuse_if_held(path)
    changed = changes(path, settings)
    if force and "checkpoint" in changed:
        raise UserError(f"{path} has checkpoints of its own and goes on from the newest: leave checkpoint= out, or "
                        "begin a new run with it under another name=.")
    if changed and not force:
        lines = "; ".join(f"{key}: {old} -> {new}" for key, (old, new) in changed.items())
        raise UserError(
            f"{path} was started with other settings ({lines}). Leave them out to continue it as it was, or write "
            f"resume=force to change them."
        )
    if read_status(path)["status"] == "finished" and not changed and has_checkpoints(path):
        raise UserError(f"{path} is finished. To train further, raise steps= and write resume=force.")
    check_writable(path)
    ours, saved = _of_the_network(settings), leaves(saved_config(path))
    kept = {key: value for key, value in saved if key in ours and value is not None}
    return Run(path, replace(settings, values=settings.values | kept), resumed=True)


def difference(old: dict[str, Any], new: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Key -> (old, new) for every setting that differs and matters."""
    return {key: (old.get(key), new.get(key)) for key in old | new
            if key not in FREE_KEYS and old.get(key) != new.get(key)}


def find_run(output: Path, command: str, what: str | None = None, name: str | None = None, free: bool = False) -> Path:
    """The run called `name`, or the newest one; `free`: one that no process works in, if there is one."""
    found = [path for path in runs(output, command, what) if name is None or path.name == name]
    if not found:
        where = Path(output) / command / (what or "*") / (name or "*")
        group = next((group for group in ("skill", "nav") if what is None or what in options.choices(group)), "hab")
        example = f"rearrange {command} {group}={what or 'pick'}" + (f" name={name}" if name else "")
        raise UserError(f"there is no run at {where}. Start one with: {example}")
    unheld = [path for path in found if not owner.is_held(path)] if free else []
    return (unheld or found)[-1]


def _typed(words: list[str], key: str) -> str | None:
    values = [
        word.split("=", 1)[1].strip("'\"") for word in words if word.lstrip("+").split("=")[0] == key and "=" in word
    ]
    return values[-1] if values else None
