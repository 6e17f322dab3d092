"""`rearrange bench train`: what a step of training costs, in processor time of all processes together, and where it
goes.

Processor time says the same on a busy machine as on an idle one, up to caches and clock; steps per second do not. With
`against=`, the folder of another version of this program, both train in turn, from the command line and with their own
defaults, and the ratio is taken within each repeat. The split comes from one more run of this version, with clocks
around its parts.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval.bench.processor_time import spent_s
from rearrange.home.errors import UserError

if TYPE_CHECKING:
    from rearrange.command_line.composition.bench_settings import Train
    from rearrange.command_line.runs.run_directory import Run

HERE = Path(__file__).resolve().parents[2]
LOOK_EVERY_S = 0.02  # for a new row of metrics
ROW_EVERY_S = 0.2
LONGEST_S = 3600.0


@dataclass(frozen=True)
class Cost:
    """Of the measured steps of one training: processor time per step (microseconds) by kind of process, and steps per
    second."""

    steps: int
    learner_us: float
    workers_us: float
    steps_per_s: float

    @property
    def all_us(self) -> float:
        return self.learner_us + self.workers_us


def check(settings: Train) -> None:
    """Refuse a folder that is no version of this program, and a run without steps to measure."""
    against = settings.against
    if against and not (Path(against) / "rearrange" / "__main__.py").is_file():
        raise UserError(f"against={against} is not a folder of this program: it has no rearrange/__main__.py. Make one "
                        "with git worktree add <folder> <commit>.")
    if settings.warm_up_steps >= settings.steps:
        raise UserError(f"warm_up_steps={settings.warm_up_steps} leaves nothing of steps={settings.steps} "
                        "to measure.")
    if not Path("/proc/self/stat").is_file():
        raise UserError("bench train reads processor times from /proc, which this system does not have.")


def run_bench(settings: Train, run: Run) -> dict[str, float]:
    """Measure, print the table and keep the figures in bench.json; returns the headline ones."""
    from eval.bench.train_split import split

    versions = {"this": HERE} | ({"against": Path(settings.against).resolve()} if settings.against else {})
    costs: dict[str, list[Cost]] = {name: [] for name in versions}
    for repeat in range(settings.repeats):
        order = list(versions.items())
        for name, folder in order if repeat % 2 == 0 else order[::-1]:
            cost = measured(folder, words(settings, settings.seed + repeat), settings.warm_up_steps)
            costs[name].append(cost)
            run.say(f"{name:8} {cost.all_us:7.1f} us of processor time per step (learner {cost.learner_us:.1f}, "
                    f"workers {cost.workers_us:.1f})   {cost.steps_per_s:,.0f} steps/s")
    result = summary(costs) | {"split": split(words(settings, settings.seed)) if settings.split else None}
    for line in table(result):
        run.say(line)
    plain = result | {"runs": {name: [vars(cost) for cost in of] for name, of in costs.items()}}
    (run.path / "bench.json").write_text(json.dumps(plain, indent=1) + "\n", encoding="utf-8")
    run.say(f"figures: {run.path / 'bench.json'}")
    return {f"{name}/{key}": value for name, row in result["versions"].items() for key, value in row.items()} | (
        {"ratio": result["ratio"]["median"]} if result["ratio"] else {})


def words(settings: Train, seed: int) -> list[str]:
    """The training as words of a command line that every version knows."""
    return [f"skill={settings.skill}", f"policy={settings.policy}", f"steps={settings.steps}", f"seed={seed}",
            f"log_every_s={ROW_EVERY_S}", *settings.words]


def measured(folder: Path, words: list[str], warm_up_steps: int) -> Cost:
    """Train with the version in a folder, in processes of its own; its first `warm_up_steps` do not count."""
    with tempfile.TemporaryDirectory(prefix="rearrange-bench-") as place:
        command = [sys.executable, "-P", "-m", "rearrange", "train", *words, f"output={place}", "name=measured"]
        with open(Path(place) / "log.txt", "w+", encoding="utf-8") as log:
            process = subprocess.Popen(command, cwd=place, env=os.environ | {"PYTHONPATH": str(folder)}, stdout=log,
                                       stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
            try:
                seen = list(looks(process, Path(place)))
            finally:
                process.terminate()
                process.wait()
            log.seek(0)
            last_words = log.read()[-2000:]
    counted = [look for look in seen if look[0] >= warm_up_steps]
    if process.returncode or len(counted) < 2:
        raise UserError(f"the training in {folder} could not be measured (exit status {process.returncode}, "
                        f"{len(counted)} rows after the warm-up): {' '.join(command)}\n{last_words}")
    (first, began_s, before), (last, ended_s, after) = counted[0], counted[-1]
    us = {name: 1e6 * (after[name] - before[name]) / (last - first) for name in after}
    return Cost(int(last - first), us["learner"], us["workers"], (last - first) / (ended_s - began_s))


def looks(process: subprocess.Popen, place: Path) -> Iterator[tuple[float, float, dict[str, float]]]:
    """Whenever a training has written a row of metrics: its steps, the time, and the processor seconds so far."""
    ends, size, file = time.monotonic() + LONGEST_S, 0, None
    while process.poll() is None and time.monotonic() < ends:
        time.sleep(LOOK_EVERY_S)
        file = file or next(place.glob("**/metrics.jsonl"), None)
        if file is None or file.stat().st_size == size:
            continue
        now, spent = time.monotonic(), spent_s(process.pid)
        rows = file.read_bytes()
        size = len(rows)
        whole = rows[: rows.rfind(b"\n")].rsplit(b"\n", 1)[-1]
        if whole and spent["workers"]:  # without workers it has just ended
            yield json.loads(whole)["step"], now, spent


def summary(costs: dict[str, list[Cost]]) -> dict[str, Any]:
    """Medians over the repeats, and the ratio of both versions within each."""
    rows = {name: {key: statistics.median(getattr(cost, key) for cost in of)
                   for key in ("all_us", "learner_us", "workers_us", "steps_per_s")} for name, of in costs.items()}
    ratio = None
    if "against" in costs:
        ratios = [mine.all_us / other.all_us for mine, other in zip(costs["this"], costs["against"])]
        ratio = {"median": statistics.median(ratios), "least": min(ratios), "greatest": max(ratios),
                 "repeats": len(ratios)}
    return {"versions": rows, "ratio": ratio}


def table(result: dict[str, Any]) -> list[str]:
    """The result as lines to print."""
    lines = [f"{name:8} {row['all_us']:7.1f} us of processor time per step: learner {row['learner_us']:.1f}, workers "
             f"{row['workers_us']:.1f}   {row['steps_per_s']:,.0f} "
             "steps/s   (medians)" for name, row in result["versions"].items()]
    if result["ratio"]:
        ratio = result["ratio"]
        lines.append(f"ratio    {ratio['median']:.3f} of the other version's processor time per step "
                     f"({ratio['least']:.3f} .. {ratio['greatest']:.3f} in {ratio['repeats']} repeats)")
    if result["split"]:
        whole = sum(result["split"]["parts_us"].values())
        lines += [f"  {name:<26}{us:8.1f} us "
                  f"{100 * us / whole:4.0f} %" for name, us in result["split"]["parts_us"].items()]
        lines.append(f"  the learner waits for environments {100 * result['split']['waiting_share']:.0f} % of the time")
    return lines
