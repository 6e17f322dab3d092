"""`python -m benchmarks.engine`: DD-PPO, NoVER, VER, HTS, VER with overlap, APPO and Sample Factory 2, side by side.

Every system trains on the same environments with the same network, numbers of environments and processes, in runs of
its own process, one at a time: in each repeat all systems once, in random order, and once the environments alone. What
each reached is counted in the traces that the environments keep (`benchmarks/step_trace.py`), and compared to bounds
(`benchmarks/engine_bounds.py`) of the same repeat.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks import run as run_as_command
from benchmarks.engine_bounds import OVERLAPPING, Measured, inference_bound, measure, system_bound
from benchmarks.engine_job import MODES
from benchmarks.engine_table import draw, table
from benchmarks.step_trace import read_traces
from benchmarks.synthetic_env import PRESETS
from eval.task_from_settings import sim_settings
from rearrange.home.errors import UserError

if TYPE_CHECKING:
    from benchmarks.settings import Engine
    from rearrange.command_line.runs.run_directory import Run

PEER = "sample_factory"
ROOT = Path(__file__).resolve().parents[1]
START_UP_S = 900.0  # a run may take so long beyond what it measures: a loaded machine starts processes slowly


def check(settings: Engine) -> None:
    """Refuse settings that cannot work, before anything is written."""
    if settings.num_envs * settings.rollout_steps < settings.mini_batches:
        raise UserError(f"mini_batches={settings.mini_batches} exceeds the steps of a rollout, num_envs x "
                        f"rollout_steps = {settings.num_envs * settings.rollout_steps}.")
    network = network_of(settings)
    if settings.env != "synthetic" and network == "linear":
        raise UserError(f"network=linear is for env=synthetic only; with env={settings.env} use light or blind.")
    if settings.env == "synthetic" and network == "blind":
        raise UserError("network=blind is for homes only; with env=synthetic use linear or light.")
    if not systems_of(settings):
        raise UserError(f"no system is left to measure: set at least one of {', '.join(MODES)} to true.")
    workers, envs = settings.num_workers, settings.num_envs
    if workers and workers > envs:
        raise UserError(f"num_workers={workers} exceeds num_envs={envs}.")
    if inference_workers_of(settings) > envs:
        raise UserError(f"inference_workers={settings.inference_workers} exceeds num_envs={envs}.")
    peer = getattr(settings, PEER)
    if peer is None:
        return
    if not Path(peer).is_file():
        raise UserError(f"{PEER}={peer} is not a file; it must be the Python interpreter of an environment with "
                        "sample-factory.")
    if workers_of(settings) and envs % workers_of(settings):
        raise UserError(f"num_envs={envs} must be a multiple of the {workers_of(settings)} processes with {PEER}.")
    if problem := _problem(peer, "import sample_factory"):
        raise UserError(f"{PEER}={peer} cannot import sample_factory ({problem}): "
                        f"install it there with pip install sample-factory 'numpy<2'.")
    if settings.env == "synthetic":
        return
    # A worker of Sample Factory that cannot make its environment leaves the others waiting for ever.
    home = (f"import sys; sys.path.append({str(ROOT)!r}); from eval.task_from_settings import make_env; "
            f"make_env({settings.env!r}, depth_size=0)")
    if problem := _problem(peer, home):
        raise UserError(f"{PEER}={peer} cannot make env={settings.env} ({problem}): install what it lacks there, "
                        "mujoco and numba as here (docs/benchmarks.md).")


def _problem(python: str, code: str) -> str | None:
    """The last line of what an interpreter complains of when it runs `code`; None if it does not."""
    done = subprocess.run([python, "-c", code], capture_output=True, text=True)
    return (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1] if done.returncode else None


def run_bench(settings: Engine, run: Run) -> dict[str, float]:
    """Run every system `repeats` times, print the table, write bench.json and, with matplotlib, bench.png."""
    systems = systems_of(settings)
    rng = np.random.default_rng(settings.seed)
    if PEER not in systems:
        run.say("without Sample Factory: sample_factory=<python of an environment with sample-factory> adds it "
                "(docs/benchmarks.md).")
    repeats = []
    for repeat in range(settings.repeats):
        order = ["unhindered", *rng.permutation(systems).tolist()]
        results = {}
        for system in order:
            run.say(f"repeat {repeat + 1} of {settings.repeats}: {system}")
            results[system] = run_job(make_job(settings, system, repeat), run.path / "jobs" / f"{repeat}_{system}",
                                      settings)
        repeats.append(results)
        # after every repeat: who stops a long run keeps what was measured
        result = summarise(settings, systems, repeats)
        (run.path / "bench.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        draw(result, run.path / "bench.png")
    for line in table(result):
        run.say(line)
    run.say(f"figures: {run.path / 'bench.json'}")
    return {f"{name}/steps_per_s": figures["steps_per_s"]["mean"] for name, figures in result["systems"].items()}


def systems_of(settings: Engine) -> list[str]:
    """The systems that the settings ask for."""
    return [name for name in MODES if getattr(settings, name)] + ([PEER] if getattr(settings, PEER) else [])


def network_of(settings: Engine) -> str:
    """The network, where the settings leave it open: the cheapest for synthetic environments, CNN and LSTM for
    homes.
    """
    return settings.network or ("linear" if settings.env == "synthetic" else "light")


def workers_of(settings: Engine) -> int:
    """Environment processes: one per synthetic environment, since sleeping costs no core; one per core for homes."""
    cores = len(os.sched_getaffinity(0))
    usual = settings.num_envs if settings.env == "synthetic" else min(cores, settings.num_envs)
    return settings.num_workers or usual


def inference_workers_of(settings: Engine) -> int:
    """Inference workers of the systems that can have several: two as in the public implementation of VER where
    inference waits for a device, one where it needs a core."""
    waits = network_of(settings) == "linear" and settings.pretend != "none"
    return settings.inference_workers or (min(2, settings.num_envs) if waits else 1)


def make_job(settings: Engine, system: str, repeat: int) -> dict[str, Any]:
    """What one run is told; the same for all systems, with a new draw of all times in each repeat."""
    same = ("env", "burn", "image_size", "time_scale", "num_envs", "rollout_steps", "epochs", "mini_batches",
            "learning_rate", "seconds", "warm_up_updates", "torch_threads")
    cost = PRESETS[settings.preset].scaled(settings.time_scale)
    return {k: getattr(settings, k) for k in same} | {
        "system": system, "seed": settings.seed + repeat, "num_workers": workers_of(settings),
        "inference_workers": inference_workers_of(settings), "cost": vars(cost),
        "device_time": settings.pretend, "network": network_of(settings),
        "sim": sim_settings(settings.sim)}


def run_job(job: dict[str, Any], folder: Path, settings: Engine) -> dict[str, Any]:
    """Run one job in a process of its own; its result with the traces' figures as `measured`."""
    folder.mkdir(parents=True)
    job = job | {"traces": str(folder / "traces")}
    (folder / "traces").mkdir()
    (folder / "job.json").write_text(json.dumps(job, indent=1), encoding="utf-8")
    busy, start = cpu_seconds(), time.monotonic()
    limit_s = START_UP_S + 20 * job["seconds"]
    if job["system"] == PEER:
        script = str(Path(__file__).with_name("engine_sample_factory.py"))
        run_process([script, str(folder / "job.json")], folder / "log.txt", limit_s, getattr(settings, PEER))
    else:
        run_process(["-m", "benchmarks.engine_job", str(folder / "job.json")], folder / "log.txt", limit_s)
    result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    result["latency_s"] = {int(b): seconds for b, seconds in result["latency_s"].items()}
    result |= {"cores_busy": (cpu_seconds() - busy) / (time.monotonic() - start), "load": os.getloadavg()[0]}
    result["measured"] = measure(read_traces(folder / "traces"), result,
                                 1 if job["system"] == "unhindered" else job["warm_up_updates"],
                                 job["system"] in (*OVERLAPPING, "unhindered"), result["latency_s"])
    shutil.rmtree(folder / "traces")
    return result


def run_process(words: list[str], log: Path, timeout_s: float, python: str | None = None) -> None:
    """Run Python with these words, by default this one. It has its own process group, so that none of its children
    outlives it. Raises RuntimeError with the end of its output if it fails."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    if python is None:  # another interpreter is not to see our packages
        environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    else:
        environment.pop("PYTHONPATH", None)
    command = [python, *words] if python else [sys.executable, "-P", *words]
    with log.open("w", encoding="utf-8") as out:
        process = subprocess.Popen(command, env=environment, stdout=out, stderr=subprocess.STDOUT,
                                   stdin=subprocess.DEVNULL, start_new_session=True)
        try:
            status = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            status = f"no end after {timeout_s:.0f} s"
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
    if status != 0:
        tail = "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-15:])
        raise RuntimeError(f"a measured run failed ({status}); its whole output is {log}:\n{tail}")


def cpu_seconds() -> float:
    """CPU time that all programs of the machine have used."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    user, nice, system, _, _, irq, softirq = map(int, fields[:7])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def summarise(settings: Engine, systems: list[str], repeats: list[dict[str, Any]]) -> dict[str, Any]:
    """Plain values: the machine, the settings, per system every figure with its mean, interval and values."""
    figures: dict[str, dict[str, list[float]]] = {name: {} for name in systems}
    for results in repeats:
        for name, row in figures_of(settings, systems, results).items():
            for key, value in row.items():
                figures[name].setdefault(key, []).append(value)
    return {
        "settings": {k: v for k, v in vars(settings).items() if k != "sim"} | {"repeats": len(repeats)},
        "machine": {"processor": platform.processor() or platform.machine(), "cores": len(os.sched_getaffinity(0)),
                    "python": platform.python_version()},
        "environment_processes": workers_of(settings), "inference_workers": inference_workers_of(settings),
        "network": network_of(settings),
        "systems": {name: {key: interval(values) for key, values in row.items()} for name, row in figures.items()},
        "updates": [{name: result["updates"] for name, result in results.items()} for results in repeats],
    }


def figures_of(settings: Engine, systems: list[str], results: dict[str, Any]) -> dict[str, dict[str, float]]:
    """One repeat: figures per system. Ratios and bounds use runs of this repeat only, which met the same draw of
    times.
    """
    measured: dict[str, Measured] = {name: result["measured"] for name, result in results.items()}
    no_wait = measured["unhindered"].trace_bound
    alone = [m.learn_s for name, m in measured.items() if name in MODES and name not in OVERLAPPING]
    learn_s = float(np.mean(alone)) if alone else float("nan")
    rollout = settings.num_envs * settings.rollout_steps
    rows = {}
    for name in systems:
        m, result = measured[name], results[name]
        bound = system_bound(no_wait, rollout, learn_s, name in OVERLAPPING)
        row = {"steps_per_s": m.steps_per_s, "fastest_steps_per_s": m.fastest_steps_per_s,
               "collection_steps_per_s": m.collection_steps_per_s, "no_wait_bound": no_wait,
               "trace_bound": m.trace_bound, "latency_bound": m.latency_bound, "system_bound": bound,
               "inference_bound": inference_bound(result["latency_s"]),
               "of_no_wait": m.collection_steps_per_s / no_wait, "of_trace": m.of_trace, "of_latency": m.of_latency,
               "of_system": m.steps_per_s / bound, "learn_s": m.learn_s, "batch": m.batch, "wait_share": m.wait_share,
               "stale": m.stale, "reward": m.reward,
               "lag": float(np.mean([u.get("lag", np.nan) for u in result["updates"]])), "updates": m.updates,
               "seconds": m.seconds, "steps": m.steps, "steps_told": m.steps_told, "parameters": result["parameters"],
               "peak_mib": result["peak_mib"], "processes": result["processes"], "cores_busy": result["cores_busy"],
               "load": result["load"]}
        for base in ("ddppo", "nover", PEER):
            if base in systems:
                row[f"times_{base}"] = m.steps_per_s / measured[base].steps_per_s
        rows[name] = row
    return rows


def interval(values: list[float]) -> dict[str, Any]:
    """Mean over repeats with its 95 % bootstrap interval; null where it does not apply."""
    from eval.intervals import bootstrap

    if not np.isfinite(values).all():
        return {"mean": None, "low": None, "high": None, "values": [v if np.isfinite(v) else None for v in values]}
    low, high = bootstrap(values)
    return {"mean": float(np.mean(values)), "low": low, "high": high, "values": values}


if __name__ == "__main__":
    sys.exit(run_as_command("engine"))
