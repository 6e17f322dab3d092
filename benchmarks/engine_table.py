"""The table and the plot of `python -m benchmarks.engine`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.engine_bounds import OVERLAPPING
from benchmarks.settings import ENGINE_FIGURES

NAMES = {"ddppo": "DD-PPO", "nover": "NoVER", "ver": "VER", "hts": "HTS", "ver_overlap": "VER, overlapped",
         "appo": "APPO", "sample_factory": "Sample Factory 2"}


def table(result: dict[str, Any]) -> list[str]:
    """The result as lines to print."""
    s = result["settings"]
    what = (f"synthetic environments, times '{s['preset']}' x {s['time_scale']:g}, {s['burn']}ing"
            if s["env"] == "synthetic" else f"home, skill {s['env']}")
    lines = [
        f"{what}; {s['num_envs']} environments in {result['environment_processes']} processes, "
        f"T = {s['rollout_steps']}, network "
        f"{result['network']}, {result['machine']['cores']} cores; {s['repeats']} repeats of {s['seconds']:g} s", "",
        f"{'':<17}{'steps/s':>8}{'':>18}{'fastest':>9}{'x DD-PPO':>10}{'':>15}{'collection':>12}{'no-wait':>9}"
        f"{'own':>7}{'latency':>9}{'system':>8}{'batch':>7}{'lag':>6}{'reward':>8}",
    ]
    for name, row in result["systems"].items():
        ratio = row.get("times_ddppo")
        lines.append(
            f"{NAMES[name]:<17}{_number(row['steps_per_s'], 0):>8}{_range(row['steps_per_s'], 0):>18}"
            f"{_number(row['fastest_steps_per_s'], 0):>9}{_number(ratio, 2):>10}{_range(ratio, 2):>15}"
            f"{_number(row['collection_steps_per_s'], 0):>12}{_percent(row['of_no_wait']):>9}"
            f"{_percent(row['of_trace']):>7}"
            f"{_percent(row['of_latency']):>9}{_percent(row['of_system']):>8}{_number(row['batch'], 1):>7}"
            f"{_number(row['lag'], 2):>6}"
            f"{_number(row['reward'], 3):>8}")
    lines += ["", *_ratios(result), *_load(result), "", *ENGINE_FIGURES, *_lost(result)]
    return lines


def _ratios(result: dict[str, Any]) -> list[str]:
    """VER over NoVER, and ours that learn as VER or APPO over Sample Factory."""
    systems, lines = result["systems"], []
    if "ver" in systems and "times_nover" in systems["ver"]:
        ratio = systems["ver"]["times_nover"]
        lines.append(f"VER over NoVER: {_number(ratio, 2)} {_range(ratio, 2)}")
    for name in ("ver", "ver_overlap", "appo"):
        if ratio := systems.get(name, {}).get("times_sample_factory"):
            lines.append(f"{NAMES[name]} over Sample Factory 2: {_number(ratio, 2)} {_range(ratio, 2)}")
    return lines


def _load(result: dict[str, Any]) -> list[str]:
    """How busy the machine was, so that a reader can tell a quiet one from a shared one."""
    rows = result["systems"].values()
    busy = max(max(row["cores_busy"]["values"]) for row in rows)
    load = max(max(row["load"]["values"]) for row in rows)
    return [f"busiest run: {busy:.1f} of {result['machine']['cores']} cores busy, load average {load:.1f}"]


def _lost(result: dict[str, Any]) -> list[str]:
    """A system whose own count of steps is not what its environments did."""
    envs, rollout = result["settings"]["num_envs"], result["settings"]["num_envs"] * result["settings"]["rollout_steps"]
    lines = []
    for name, row in result["systems"].items():
        # under way, or in a rollout under way, at either end
        allowed = 2 * envs + (rollout if name in OVERLAPPING else 0)
        lines += [f"warning: {NAMES[name]} says it took {told:.0f} steps, its environments took {steps:.0f}."
                  for told, steps in zip(row["steps_told"]["values"], row["steps"]["values"])
                  if name != "sample_factory" and abs(told - steps) > allowed]
    return lines


def _number(figure: dict[str, Any] | None, digits: int) -> str:
    return "-" if figure is None or figure["mean"] is None else f"{figure['mean']:,.{digits}f}"


def _percent(figure: dict[str, Any]) -> str:
    return "-" if figure["mean"] is None else f"{100 * figure['mean']:.0f} %"


def _range(figure: dict[str, Any] | None, digits: int) -> str:
    if figure is None or figure["mean"] is None or len(figure["values"]) < 2:
        return ""
    return f"({figure['low']:,.{digits}f} .. {figure['high']:,.{digits}f})"


def draw(result: dict[str, Any], path: Path) -> bool:
    """Bars of steps/s with intervals, the system bound of each as a line; nothing without matplotlib."""
    try:
        import matplotlib
    except ImportError:
        return False
    matplotlib.use("Agg")
    from matplotlib import pyplot

    systems = result["systems"]
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4), width_ratios=(3, 2))
    for x, row in enumerate(systems.values()):
        sps, bound = row["steps_per_s"], row["system_bound"]["mean"]
        left.bar(x, sps["mean"], 0.7, color="tab:blue", yerr=[[sps["mean"] - sps["low"]], [sps["high"] - sps["mean"]]],
                 capsize=4)
        if bound is not None:
            left.plot([x - 0.4, x + 0.4], [bound, bound], color="black", label="system bound" if x == 0 else None)
        left.text(x, 0.02 * sps["mean"], f"{sps['mean']:,.0f}", ha="center", va="bottom", color="white")
    left.set_xticks(range(len(systems)), [NAMES[name].replace(" ", "\n") for name in systems], fontsize=8)
    left.set_ylabel("environment steps/s, learning included")
    left.legend(frameon=False)
    shares = [("of_trace", "no-wait"), ("of_latency", "latency")]
    for offset, (key, label) in enumerate(shares):
        values = [100 * (row[key]["mean"] or 0.0) for row in systems.values()]
        right.bar([x + 0.4 * offset - 0.2 for x in range(len(systems))], values, 0.38, label=label)
    right.axhline(95, color="grey", linewidth=0.8, linestyle=":")
    right.set_xticks(range(len(systems)), [NAMES[name].replace(" ", "\n") for name in systems], fontsize=8)
    right.set_ylabel("collection, % of its bound")
    right.legend(frameon=False, loc="lower right")
    s = result["settings"]
    figure.suptitle(f"{s['env']}" + (f" '{s['preset']}'" if s["env"] == "synthetic" else "") +
                    f", {s['num_envs']} environments, {s['repeats']} repeats", fontsize=10)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
    return True
