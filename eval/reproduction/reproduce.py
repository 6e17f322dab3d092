"""`rearrange reproduce`: the trainings that are missing, then the evaluations, then the paper's figures beside them.

Each job is a process of its own. Stopped or killed, the same command goes on: what is finished is not repeated, a
training resumes, an evaluation that was not finished begins again.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from eval.reproduction import result as reproduce_result
from eval.reproduction.jobs import Plan, make_plan
from rearrange.runs.text_table import columns
from rearrange.errors import UserError
from rearrange.runs.processes import launch_process
from rearrange.runs.run_directory import hold
from trainer.checkpoints import owner
from trainer.faults import signals

Launch = Callable[[list[str]], int]  # runs `rearrange <words>`; returns its exit status


def run(plain: dict[str, Any], launch: Launch | None = None) -> int:
    """All of it; 0 if every job is finished, the exit status of a job that was stopped, else 1. Everything is checked before anything
    starts."""
    print("looking at what there is ...", flush=True)
    plan = make_plan(plain)
    folder = Path(plain["output"]) / "reproduce" / plain["name"]
    with _alone(folder):
        print("\n".join(overview(plan, plain)), flush=True)
        states, status = _carry_out(plan, launch or launch_process)
        print("\n" + "\n".join(columns([(job.what, states[job.path], str(job.path)) for job in plan.jobs])))
        if "stopped" in states.values():
            print("\nstopped; the same command goes on from here.")
            return status
        done = [job for job in plan.evaluations if states[job.path].startswith("finished")]
        if done:
            for line in reproduce_result.write(folder, plan, [job.path for job in done], plain):
                print(line)
    return 0 if all(state.startswith("finished") for state in states.values()) else 1


def overview(plan: Plan, plain: dict[str, Any]) -> list[str]:
    """Where policies come from, and how much there is to do."""
    rows = [(f"  {name}", policy.why) for name, policy in plan.policies.items()]
    todo = [job for job in plan.jobs if job.state != "finished"]
    counts = [f"{sum(job.words[0] == command for job in todo)} {name} to do"
              for command, name in (("train", "trainings"), ("eval", "evaluations"))]
    note = [plain["note"]] if plain["note"] else []
    return [*note, *(["policies", *columns(rows)] if rows else []),
            f"{', '.join(counts)}, {len(plan.jobs) - len(todo)} finished before"]


def _carry_out(plan: Plan, launch: Launch) -> tuple[dict[Path, str], int]:
    """Run what is not finished, in order; run directory -> how it is now, and the last exit status. One that fails does not stop
    the others."""
    code = 0
    states = {job.path: "finished before" if job.state == "finished" else "not started" for job in plan.jobs}
    for number, job in enumerate(plan.jobs, 1):
        if job.state == "finished":
            continue
        if lacking := [path for path in job.needs if not states[path].startswith("finished")]:
            states[job.path] = f"not possible without {lacking[0]}"
            continue
        if job.words[0] == "eval" and job.state == "unfinished":
            shutil.rmtree(job.path)  # it has no figures yet, and episodes cannot be taken up in the middle
        print(f"\n[{number}/{len(plan.jobs)}] {job.line()}", flush=True)
        code = launch(list(job.words))
        states[job.path] = signals.outcome(code)
        if code in signals.BEFORE_THE_END:
            break
    return states, code


def _alone(folder: Path) -> owner.Hold:
    """Nobody else works under this name."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return hold(folder)
    except OSError as error:
        raise UserError(f"cannot write to {folder}: {error.strerror}. Choose another place with output=.") from error
