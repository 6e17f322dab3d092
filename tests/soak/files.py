"""Damaged files: what is read is refused in one sentence or read, whatever was done to it; a changed checkpoint is
always refused."""

# all timed: a soak does harm at random moments

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import random
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LONG_S = 20.0  # of processor time, in which a file is read or refused
PAUSE_S = 0.25  # between two faults: the other sieges need the processor, too
ODD = (b"NaN", b"1e400", b"-1e30", b"9" * 400, b"null", b"[]", b"{}", b'"a"', b"", b"-0", b"0.0", b"true", b"\xff\xfe",
       b"1e-320")


@dataclass(frozen=True)
class Kind:
    """A kind of file: what `read` reads of it, given the path, raises one of our errors or succeeds. exact: every
    change is found."""

    name: str
    file: Path
    read: Callable[[Path], Any]
    exact: bool = False
    in_place: bool = False  # other files name it


def command(*words: str) -> None:
    """A command in this process. UserError for what it refuses."""
    from rearrange.command_line.cli import main
    from rearrange.home.errors import UserError

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(list(words))
    assert "Traceback" not in err.getvalue() + out.getvalue(), err.getvalue()[-3000:]
    if status:
        assert status in (1, 2), (status, err.getvalue())
        raise UserError(err.getvalue().strip().splitlines()[-1])


def kinds(place: Path) -> list[Kind]:
    """Small valid files of every kind that people give this program."""
    from eval.remote.wire import pack, unpack
    from planner.pddl import DOMAIN_FILE, ground, read_text
    from planner.scenarios import load_scenario
    from rearrange.home.apartments.episodes import read_episodes, write_episodes
    from rearrange.home.episodes.generator import generate_episode
    from rearrange.home.scene_files.glb import read_glb
    from rearrange.home.scene_files.urdf import read_urdf
    from skills.pretrained import path as path_of
    from tests.planner.worlds import TIDY_HOUSE
    from tests.rearrange.mjcf_data import make_homes
    from tests.rearrange.scene_data import make_kitchen, write_box_room
    from trainer.checkpoint import load_checkpoint, write_torch_file
    from trainer.logs.logger import read_jsonl

    content = load_checkpoint(path_of("pick"))
    write_torch_file(place / "step_000000000064.pt", content)
    write_episodes(place / "two.json.gz", [generate_episode("pick", "val", index, 4) for index in (3, 8)])
    (place / "two.json").write_bytes(gzip.decompress((place / "two.json.gz").read_bytes()))
    write_box_room(place / "room.glb")
    data_set, home = make_kitchen(place / "kitchen"), make_homes(place / "homes")
    urdf = next((place / "kitchen").rglob("*.urdf"))
    (place / "message.bin").write_bytes(pack({"actions": [0.5, 1.0], "about": {"a": 1}}))
    (place / "metrics.jsonl").write_text("".join(json.dumps({"step": step, "loss": 1 / (step + 1)}) + "\n"
                                                 for step in range(20)))
    (place / "problem.pddl").write_text(TIDY_HOUSE)
    (place / "domain.pddl").write_bytes(DOMAIN_FILE.read_bytes())
    (place / "own.yaml").write_text("name: own\nproblem: tidy_house\nobjects: [any]\nstarts: [any]\ngoals: [any]\n")
    return [
        Kind("checkpoint", place / "step_000000000064.pt", load_checkpoint, exact=True),
        Kind("episodes, compressed", place / "two.json.gz", read_episodes),
        Kind("episodes", place / "two.json", read_episodes),
        Kind("GLB", place / "room.glb", lambda path: read_glb(path, path)),
        Kind("URDF", urdf, read_urdf, in_place=True),
        Kind("data set", data_set, lambda path: command("scenes", "check", f"dataset={data_set}"), in_place=True),
        *(Kind("part of a data set", file, lambda path: command("scenes", "check", f"dataset={data_set}"),
               in_place=True)
          for file in sorted((place / "kitchen").rglob("*.json")) if file != data_set),
        Kind("MJCF", home / "kitchen.xml", lambda path: command("scenes", "check", f"dataset={home}"),
             in_place=True),
        Kind("message", place / "message.bin", lambda path: unpack(path.read_bytes())),
        Kind("metrics", place / "metrics.jsonl", read_jsonl),
        Kind("PDDL problem", place / "problem.pddl", lambda path: ground(read_text(path), path)),
        Kind("PDDL domain", place / "domain.pddl", lambda path: ground(TIDY_HOUSE, "problem.pddl", path)),
        Kind("scenario", place / "own.yaml", load_scenario),
    ]


def damaged(raw: bytes, rng: random.Random) -> tuple[str, bytes]:
    """What was done to a file, and its bytes then."""
    at, to = sorted(rng.randrange(len(raw) + 1) for _ in range(2))
    how = rng.choice(["bit", "byte", "cut", "zeros", "gone", "twice", "noise", "number", "number", "line"])
    if how == "bit":
        at = rng.randrange(len(raw))
        return how, raw[:at] + bytes([raw[at] ^ 1 << rng.randrange(8)]) + raw[at + 1:]
    if how == "byte":
        at = rng.randrange(len(raw))
        return how, raw[:at] + rng.randbytes(1) + raw[at + 1:]
    if how == "number" and (numbers := list(re.finditer(rb"-?\d+(\.\d+)?", raw[:200_000]))):
        which = rng.choice(numbers)
        return how, raw[:which.start()] + rng.choice(ODD) + raw[which.end():]
    if how == "line" and raw.count(b"\n") > 1:
        lines = raw.splitlines(keepends=True)
        which = rng.randrange(len(lines))
        return how, b"".join(lines[:which] + lines[which + 1:] if rng.random() < 0.5 else lines[:which]
                             + lines[which:which + 1] + lines[which:])
    to = min(to, at + 4096)
    return how, {"cut": raw[:at], "zeros": raw[:at] + bytes(to - at) + raw[to:], "gone": raw[:at] + raw[to:],
                 "twice": raw[:to] + raw[at:]}.get(how, raw[:at] + rng.randbytes(to - at) + raw[to:])


def refusals() -> tuple[type[Exception], ...]:
    """The errors that are sentences for people."""
    from eval.remote.wire import BadMessage
    from rearrange.home.errors import UserError
    from trainer.checkpoint import CheckpointError

    return UserError, CheckpointError, BadMessage


def besiege(place: Path, rng: random.Random) -> Iterator[str]:
    """Damage a file, read it, and put it right again."""
    every, refused = kinds(place), refusals()
    contents = {kind.file: kind.file.read_bytes() for kind in every}
    for number in range(10**9):
        kind = rng.choice(every)
        how, changed = damaged(raw := contents[kind.file], rng)
        if changed == raw:
            continue
        file = kind.file if kind.in_place else kind.file.with_name(f"{number}_{kind.file.name}" if not kind.exact
                                                                   else kind.file.name)
        if rng.random() < 0.02 and not kind.in_place and kind.name not in ("message", "metrics"):
            how, changed = "pipe", None
            file.unlink(missing_ok=True)
            os.mkfifo(file)
        else:
            file.write_bytes(changed)
        began = time.process_time()
        try:
            kind.read(file)
            assert not kind.exact, f"{kind.name}, {how}: read as if nothing had happened"
        except refused as error:
            assert 0 < len(str(error)) < 3000 and "\n" not in str(error).strip(), (kind.name, how, str(error))
        except BaseException as error:
            if changed is not None:  # it is kept, to look at
                (place.parent / f"broke_{number}_{kind.file.name}").write_bytes(changed)
            raise AssertionError(f"{kind.name}, {how}, fault {number}") from error
        finally:
            file.unlink(missing_ok=True)
            kind.file.write_bytes(raw)
        took = time.process_time() - began
        if took > LONG_S:
            (place.parent / f"long_{number}_{kind.file.name}").write_bytes(changed or b"")
        assert took < LONG_S, f"{kind.name}, {how}, fault {number}: {took:.0f} s of processor time"
        yield f"damaged {kind.name}"
        time.sleep(PAUSE_S)
