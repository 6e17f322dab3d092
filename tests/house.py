"""How large the house is: lines by folder, rooms, floors, entries, and the files that three walks go through.

    python -m tests.house                    of this version
    python -m tests.house against=FOLDER     beside another one: git worktree add FOLDER COMMIT
"""

from __future__ import annotations

import functools
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

PACKAGES = ("rearrange", "skills", "planner", "trainer", "eval")
WIDE = 120  # characters of a line
ROADS = ("rearrange/command_line/*.py", "rearrange/command_line/composition/*.py", "rearrange/composition/*.py",
         "rearrange/home/settings/*.py", "rearrange/settings/*.py", "trainer/setting_rules.py",
         "eval/engine_settings.py", "eval/bench_settings.py", "eval/remote/settings.py", "eval/own_networks.py")
"""From the words of a command line to dataclasses, in this version and in 0.2."""


def python_files(home: Path) -> list[str]:
    """All that git knows, as paths from `home`."""
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=home, capture_output=True, text=True, check=True).stdout
    return [name for name in listed.split("\n") if name and (home / name).is_file()]


def sizes(home: Path) -> dict[str, Any]:
    """Counts of lines, files, rooms and entries."""
    lines = {name: (home / name).read_text(encoding="utf-8").split("\n")[:-1] for name in python_files(home)}
    by_folder = Counter({folder: 0 for folder in sorted({name.split("/")[0] for name in lines if "/" in name})})
    for name, text in lines.items():
        by_folder[name.split("/")[0]] += len(text)
    ours = {name: text for name, text in lines.items() if name.split("/")[0] not in ("tests", "benchmarks")}
    rooms = re.findall(r"^\| (\d+) \| `([\w./]+)` \|", (home / "docs/architecture.md").read_text(encoding="utf-8"),
                       re.MULTILINE)
    road = {path for pattern in ROADS for path in home.glob(pattern)}
    return {**{f"lines of {folder}/": count for folder, count in sorted(by_folder.items())},
            "lines outside tests/ and benchmarks/": sum(map(len, ours.values())), "files of these": len(ours),
            "lines a file": round(sum(map(len, ours.values())) / len(ours)),
            f"lines of more than {WIDE} characters": sum(len(line) > WIDE for text in ours.values() for line in text),
            "rooms": len(rooms), "floors": len({floor for floor, _ in rooms}),
            "entries of rearrange/": len({name.split("/")[1] for name in lines
                                          if name.startswith("rearrange/")} | {"py.typed"}), "lines from words to "
            "dataclasses": sum(len(path.read_text(encoding="utf-8").split("\n")) - 1 for path in road)}


def walk(home: Path, go: Callable[[], Any]) -> dict[str, int]:
    """The files of ours that a call goes through in this thread, without imports, and how often it returns to a file
    that it had left.
    """
    stops: list[str] = []

    def look(frame: Any, event: str, _: Any) -> None:
        name = frame.f_code.co_filename.removeprefix(f"{home}/")
        if event == "call" and name.split("/")[0] in PACKAGES and not name.endswith(
            "old_names.py") and frame.f_code.co_name != "<module>" and stops[-1:] != [name]:
            stops.append(name)

    sys.setprofile(look)
    try:
        go()
    finally:
        sys.setprofile(None)
    return {"files": len(set(stops)), "stops": len(stops), "returns": len(stops) - len(set(stops))}


def walks(home: Path) -> dict[str, int]:
    """Files of the three walks of docs/architecture.md."""

    from eval.agents import make_agent
    from eval.engine_settings import engine_config
    from rearrange.command_line.composition.options import options_of
    from rearrange.command_line.composition.parse_overrides import compose
    from skills import make_env, pretrained
    from tests.trainer.toys import Pointer
    from trainer import CollectConfig, TrainConfig, load_checkpoint, train

    env = make_env("pick")
    tiny = TrainConfig(steps=64, device="cpu", collect=CollectConfig(num_envs=2, num_workers=1, rollout_steps=16))
    ways = {
        "files from words to TrainConfig": lambda: engine_config(options_of(compose("train", ["skill=pick"]))),
        "files of train(config)": functools.partial(train, Pointer, tiny),
        "files from a checkpoint to its agent": lambda: make_agent("policy", load_checkpoint(pretrained.path("pick")),
                                                                   [env], False)}
    return {name: walk(home, way)["files"] for name, way in ways.items()}


def main(words: list[str]) -> int:
    here = Path(__file__).resolve().parents[1]
    if words == ["--json"]:  # of the version in this directory
        home = Path.cwd()
        print(json.dumps(sizes(home) | walks(home)))
        return 0
    if any(not word.startswith("against=") for word in words):
        print(__doc__)
        return 0 if words == ["--help"] else 2
    folders = [*(Path(word.removeprefix("against=")).resolve() for word in words), here]
    found = [json.loads(subprocess.run([sys.executable, "-P", str(Path(__file__).resolve()), "--json"], cwd=folder,
                                       text=True, check=True, stdout=subprocess.PIPE,
                                       env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(folder)}).stdout)
             for folder in folders]
    for name in dict.fromkeys(name for each in found for name in each):
        print(f"{name:42}" + "".join(f"{each.get(name, '-'):>10}" for each in found))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
