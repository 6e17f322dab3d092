"""`rearrange reproduce`: the trainings that are missing, then the evaluations, then the paper's figures beside them.

Each job is a process of its own, where `hydra/launcher=` says: one after another here, or each as soon as what it needs
is finished. Stopped or killed, the same command goes on: what is finished is not repeated, a training resumes, and an
evaluation that was not finished begins again.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from eval.reproduction import policies
from eval.reproduction import result as reproduce_result
from eval.reproduction.jobs import Job, Policy, make_plan
from rearrange.command_line.composition.options import ReproduceOptions
from rearrange.command_line.runs.launching import Launching, check, launching
from rearrange.home.text_table import columns
from trainer.faults import signals


def run(options: ReproduceOptions, hydras: Sequence[str] = ()) -> int:
    """Do all of it; 0 if every job is finished, the exit status of a job that was stopped, else 1.

    Everything is checked before anything starts. hydras: the words that are Hydra's.
    """
    check(hydras)
    print("looking at what there is ...", flush=True)
    plan = make_plan(options) if options.policies is None else None
    jobs = plan.jobs if plan else policies.jobs(options)
    folder = Path(options.output) / "reproduce" / options.name
    with launching(hydras, folder) as launched:
        print("\n".join(overview(jobs, plan.policies if plan else {}, options)), flush=True)
        states = _carry_out(jobs, launched)
        print("\n" + "\n".join(columns([(job.what, states[job.path], str(job.path)) for job in jobs])))
        status = launched.stopped() or signals.exit_of_all(launched.codes.values())
        if status in signals.BEFORE_THE_END:
            print("\nstopped; the same command goes on from here.")
            return status
        if plan is None:
            text = policies.table(jobs, options)
            (folder / "policies.md").write_text(text + "\n", encoding="utf-8")
            print(f"\n{text}\n\ntable     {folder / 'policies.md'}")
        elif done := [job for job in plan.evaluations if states[job.path].startswith("finished")]:
            for line in reproduce_result.write(folder, plan, [job.path for job in done], options):
                print(line)
    return 0 if all(state.startswith("finished") for state in states.values()) else 1


def overview(jobs: Sequence[Job], sources: Mapping[str, Policy], options: ReproduceOptions) -> list[str]:
    """Where policies come from, and how much there is to do."""
    rows = [(f"  {name}", policy.why) for name, policy in sources.items()]
    todo = [job for job in jobs if job.state != "finished"]
    counts = [f"{sum(job.words[0] == command for job in todo)} {name} to do"
              for command, name in (("train", "trainings"), ("eval", "evaluations"))]
    note = [options.note] if options.note else []
    return [*note, *(["policies", *columns(rows)] if rows else []),
            f"{', '.join(counts)}, {len(jobs) - len(todo)} finished before"]


def _carry_out(jobs: Sequence[Job], launched: Launching) -> dict[Path, str]:
    """Run what is not finished; run directory -> how it is now. One that fails stops only those that need it."""
    todo = [job for job in jobs if job.state != "finished"]
    for job in todo:
        if job.words[0] == "eval" and job.state == "unfinished":
            shutil.rmtree(job.path)  # it has no figures yet, and episodes cannot be taken up in the middle
    launched.run(todo, needs={job.path: job.needs for job in todo})
    states: dict[Path, str] = {}
    for job in jobs:
        lacking = [path for path in job.needs if not states[path].startswith("finished")]
        states[job.path] = (signals.outcome(launched.codes[job.path]) if job.path in launched.codes
                            else "finished before" if job.state == "finished"
                            else f"not possible without {lacking[0]}" if lacking else "not started")
    return states
