"""What there is: skills, simulators, training runs. Read from files; nothing heavy is imported."""

from __future__ import annotations

import importlib.util
import time
from pathlib import Path

from rearrange.command_line.composition import options
from rearrange.command_line.runs.finished_runs import why_not
from rearrange.command_line.runs.run_directory import read_status, runs
from rearrange.env.registration import environment_id
from rearrange.home.robot import OFFERED, ROBOTS, hands_of
from rearrange.home.text_table import columns
from skills import pretrained

# Simulator -> module that must be there, where one must, and how to get it.
NEEDED = {"mujoco": ("mujoco", "pip install mujoco"), "habitat": ("habitat_sim", "docs/habitat.md")}


def text(output: Path) -> str:
    """The text of `rearrange list`."""
    lines: list[str] = []
    for title, group in (("skills", "skill"), ("navigation tasks", "nav"), ("scenarios", "hab")):
        lines += [f"{title}, with their Gymnasium ids"]
        lines += [f"  {name:<18} {_id_of(group, name):<30} {options.title(group, name)}"
                  for name in options.choices(group)]
        offered = options.OFFERED.get(group)
        lines += [f"  {said}" for said in (offered.left_out(options.ours(group)) if offered else ())]
        lines += [""]
    lines += ["simulators"]
    for name in options.choices("sim"):
        module, how = NEEDED.get(name, ("rearrange", ""))
        there = "installed" if importlib.util.find_spec(module) else f"not installed ({how})"
        lines.append(f"  {name:<16}{there:<33}{options.title('sim', name)}")
    lines += ["", "robots (sim.robot=), with their hands (sim.hand=)", *(f"  {line}" for line in _robot_lines())]
    lines += ["", "trained policies that come with the package (pretrained)"]
    lines += [f"  {line}" for line in _pretrained_lines(pretrained.names())]
    lines += ["", f"training runs in {output}/, the newest first (newest: the first of a skill that is finished)"]
    found = [_run_line(path, output) for path in reversed(runs(output, "train"))]
    return "\n".join(lines + (found or ["  none yet; start one with: rearrange train experiment=quickstart"]))


def _id_of(group: str, name: str) -> str:
    """The id of a choice; those of installed packages share one."""
    return environment_id(name if name in options.ours(group) else options.OFFERED[group].kind)


def _robot_lines() -> list[str]:
    """Ours with their hands; of installed packages, which are not imported, where each is."""
    rows = [(name, ", ".join(robot.hand.kind for robot in hands_of(name)), "") for name in ROBOTS]
    rows += [(name, "", value) for name, value in sorted(OFFERED.installed().items()) if name not in ROBOTS]
    return [*columns(rows), *OFFERED.left_out(ROBOTS)]


def _pretrained_lines(names: list[str]) -> list[str]:
    """A table of the published policies: steps of training, and success in validation and test homes by each
    protocol."""
    rows = [("policy", "robot", "trained", "episodes begin by", "success, val", "success, test")]
    for name in names:
        card = pretrained.card(name)
        trained = f"{pretrained.steps(card) / 1e6:.1f} M steps"
        found: dict[str, dict[str, str]] = {}
        for row in card["evaluations"]:
            found.setdefault(row["protocol"], {})[row["split"]] = f"{row['success']:.1%}, n = {row['episodes']}"
        for number, (protocol, of) in enumerate(found.items()):
            rows.append(("", "", "", protocol, of.get("val", ""), of.get("test", "")) if number else
                        (name, card.get("robot", "any"), trained, protocol, of.get("val", ""), of.get("test", "")))
        rows += [] if found else [(name, card.get("robot", "any"), trained, "not evaluated", "", "")]
    return columns(rows)


def _run_line(path: Path, output: Path) -> str:
    """One line for a training run: name, how it ended, its success, its newest checkpoint."""
    status, why = read_status(path), why_not(path)
    success = next(
        (f"success {value:.0%}" for key, value in status["result"].items() if key.split("/")[-1] == "success"), ""
    )
    ended = status["status"] + (f", {why}" if why not in (None, status["status"]) else "")
    saved = sorted((path / "checkpoints").glob("*.pt"), key=lambda file: file.stat().st_mtime)
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(saved[-1].stat().st_mtime)) if saved else ""
    newest = f"{saved[-1].relative_to(path)}, {when}" if saved else "no checkpoint"
    return f"  {str(path.relative_to(output)):<44} {ended:<26} {success:<13} {newest}"
