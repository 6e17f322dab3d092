"""What a policy reaches in homes of three kinds and in plans, before it is published: nothing ships that is better in
one of them and worse in another without somebody having said so.

The homes: test homes as they are; test homes whose furniture is as varied as the world's; scenes of a data set that
nobody here drew, where one is given. In plans it takes its part beside the policies that ship, in test homes: they hand
over states which no episode of the skill itself begins in. Old and new policy meet the same episodes.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rearrange.home.errors import UserError
from rearrange.home.files import read_json

SEED = 90_001  # of the episodes; not used while policies are developed
_KEPT = ("protocol", "episodes", "success", "success_interval_95", "failures", "mean_steps")
# The scenario whose plans need a skill; of the others Prepare Groceries, in which they fail most often.
_PLANS = {"open_cabinet": "set_table", "close_cabinet": "set_table", "open_fridge": "set_table",
          "close_fridge": "set_table"}


def kinds(group: str, task: str, begin: Sequence[str], dataset: str | None,
          scenes: str | None) -> dict[str, list[str]]:
    """Kind of homes -> words of `rearrange eval` that choose it and the task.

    Args:
        group: `skill`, or `nav`, whose tasks have homes of their own only.
        task: its name.
        begin: words that say where episodes begin, of `starts`.
        dataset: path of a *.scene_dataset_config.json, or None.
        scenes: names of its scenes, with *, separated by commas; None = those of its validation split.
    """
    by_itself = [f"{group}={task}", *begin]
    found = {"test homes": [*by_itself, "split=test"]}
    if group == "skill":
        found["test homes, wide furniture"] = [*by_itself, "split=test", "sim.furniture=wide"]
        if dataset:
            chosen = [f"sim.scenes='{scenes}'"] if scenes else []
            found[_name(dataset)] = [*by_itself, f"sim.scene_dataset={Path(dataset).absolute()}", *chosen]
        found["plans in test homes"] = [f"hab={_PLANS.get(task, 'prepare_groceries')}", "split=test"]
    return found


def _name(dataset: str) -> str:
    return Path(dataset).name.removesuffix(".scene_dataset_config.json")


def starts(task: str, env: Mapping[str, Any]) -> list[str]:
    """The words that have episodes of a skill begin as in an environment with these settings, whoever acts."""
    from eval.protocol import hab_settings, typed

    return typed(task, {key: env.get(key, value) for key, value in hab_settings(task).items()})


def measured(file: Path, task: str, words: dict[str, list[str]], episodes: int) -> list[dict[str, Any]]:
    """The figures of a policy in each kind of homes, with the hash of its file. Of plans they are those of whole tasks,
    within 0.15 m.

    Args:
        file: the policy, in the form in which it ships.
        task: its name.
        words: of `kinds`.
        episodes: of each kind.

    Raises: UserError where an evaluation fails; it says what was printed last.
    """
    rows = []
    for kind, chosen in words.items():
        with tempfile.TemporaryDirectory(prefix="rearrange-homes-") as place:
            given = f"skills.{task}={file}" if (plans := chosen[0].startswith("hab=")) else f"checkpoint={file}"
            command = [sys.executable, "-P", "-m", "rearrange", "eval", *chosen, given, f"episodes={episodes}",
                       f"seed={SEED}", f"output={place}", "name=homes"]
            print(f"{file.name} in {kind}: {episodes:,} episodes", flush=True)
            done = subprocess.run(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            if done.returncode:
                last = done.stderr.strip().splitlines()[-1:]
                raise UserError(f"the evaluation in {kind} failed ({done.returncode}): {' '.join(last)}")
            figures = read_json(next(Path(place).glob("**/metrics.json")))
        if plans:
            figures |= {key: figures[key.replace("success", "success_015")] for key in _KEPT[2:4]}
        row = {"homes": kind, "policy": digest(file), **{key: figures[key] for key in _KEPT if key in figures}}
        rows.append(row | {"protocol": without_folders(str(row["protocol"]), chosen)})
    return rows


def without_folders(protocol: str, words: Sequence[str]) -> str:
    """A protocol in which a data set is called by the name of its file, not by where it lies on this machine."""
    for path in (word.partition("=")[2] for word in words if word.startswith("sim.scene_dataset=")):
        protocol = protocol.replace(path, Path(path).name)
    return protocol


def digest(file: Path) -> str:
    """The first twelve digits of a file's SHA-256."""
    return hashlib.sha256(file.read_bytes()).hexdigest()[:12]


def refuse_a_fall(new: list[dict[str, Any]], old: list[dict[str, Any]]) -> None:
    """UserError where a policy is worse in a kind of homes than the one that it would replace: where its success lies
    below the 95 % interval of that one's."""
    before = {row["homes"]: row for row in old}
    falls = [f"{row['homes']}: {100 * before[row['homes']]['success']:.1f} to {100 * row['success']:.1f} %"
             for row in new if row["homes"] in before
             and row["success"] < before[row["homes"]]["success_interval_95"][0]]
    if falls:
        raise UserError(f"the policy is worse than the one that ships, by more than the interval ({'; '.join(falls)}). "
                        "Write worse=true to publish it all the same.")


def lines(new: list[dict[str, Any]], old: list[dict[str, Any]]) -> list[str]:
    """Both policies side by side, to print."""
    before = {row["homes"]: row for row in old}
    return [f"{row['homes']:28} {_rate(row)}   before {_rate(before[row['homes']])}" if row["homes"] in before
            else f"{row['homes']:28} {_rate(row)}" for row in new]


def _rate(row: dict[str, Any]) -> str:
    low, high = row["success_interval_95"]
    return f"{100 * row['success']:5.1f} % ({100 * low:.1f} .. {100 * high:.1f}), n = {row['episodes']}"
