"""What a person has driven, as the data sets of `rearrange record`: one folder for each skill and scenario."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

from eval.recording.folder import STATE, Folder, Full, files_of, read_state, refuse_another
from eval.recording.record import Prepared, spoken_size, usual_of
from eval.recording.tape import Recorded
from rearrange.command_line.composition.options import RecordOptions
from rearrange.command_line.runs.names import folder_name
from rearrange.command_line.runs.run_directory import check_writable
from rearrange.home.errors import UserError

FORMAT = "lerobot"
OF_THE_DATA = ("skill", "hab", "sim", "split", "image_size")  # settings that episodes of one data set share


class Demonstrations:
    """Data sets below one folder. An episode that cannot be written waits in memory, for the next one or the end.

    Other processes may write there, too: a data set is this process's own only while an episode is added to it.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._waiting: list[tuple[Prepared, RecordOptions, Recorded]] = []

    def check(self) -> None:
        """UserError where a package that recording needs is not installed, or nothing can be written."""
        files_of(FORMAT)
        try:
            check_writable(self.root)
        except UserError as error:
            raise UserError(str(error).replace("output=", "out=")) from error

    def check_fits(self, made: Prepared, options: RecordOptions) -> None:
        """UserError, before anybody has driven, where a data set of other settings is there."""
        path = self.root / folder_name(made.name)
        if (path / STATE).exists():
            refuse_another(path, read_state(path)["command"], _command(options))

    def add(self, made: Prepared, options: RecordOptions, episode: Recorded) -> str:
        """Add an episode to the data set of its task; failed ones where the settings keep them. A line for people.

        UserError where it cannot be written: it waits then.
        """
        self._waiting.append((made, options, episode))
        while self._waiting:
            try:
                line = _add(self.root, *self._waiting[0])
            except UserError as error:
                count = len(self._waiting)
                waits = "This episode waits" if count == 1 else f"{count} episodes wait"
                raise UserError(f"{str(error).rstrip('.')}. {waits} in memory, to be written with the next one or when "
                                "the viewer ends.") from error
            self._waiting.pop(0)
        return line

    def close(self) -> None:
        """Write what waits. What cannot be written is lost, and told."""
        for each in self._waiting:
            try:
                print(_add(self.root, *each), flush=True)
            except UserError as error:
                print(f"rearrange view: an episode of {each[0].name} that was driven is lost: {error}", file=sys.stderr,
                      flush=True)
        self._waiting = []


def _command(options: RecordOptions) -> dict[str, Any]:
    """What a data set was recorded with, as JSON holds it."""
    return json.loads(json.dumps({key: options.written[key] for key in OF_THE_DATA if key in options.written}
                                 | {"agent": "teleop", "format": FORMAT}))


def _add(root: Path, made: Prepared, options: RecordOptions, episode: Recorded) -> str:
    """Add one episode. A line for people. UserError where it is not in the data set afterwards."""
    path, keep = root / folder_name(made.name), episode.success or not options.successes_only
    folder = Folder(path, files_of(FORMAT)(path, made.features, made.fps), _command(options), made.about,
                    options.max_gb * 1e9, usual_of(options))
    try:
        folder.add(dataclasses.replace(episode, attempt=len(folder.tried)), keep)
        folder.write()
    except Full:
        raise UserError(f"{path} would be larger than max_gb={options.max_gb:g}: raise it, or choose "
                        "another out=.") from None
    except OSError as error:
        raise UserError(f"{error.filename or path} cannot be written: {error.strerror or error}. Make room, or choose "
                        "another out=.") from error
    finally:
        folder.close()
    what = "kept" if keep else "not kept, since it failed"
    return f"{what}: {folder.kept} episodes, {spoken_size(folder.size)} in {path}"
