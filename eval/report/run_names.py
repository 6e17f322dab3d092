"""Short names for runs that stand beside each other: what tells one from the others, and no more."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from eval.report.runs import OWN_KEYS, SHIPPED, SHIPPED_IN, Evaluation, Found, Training, parsed, same_settings, texts

LAST_TOLD = ("steps", "seed", "run")  # what tells two runs apart only where nothing else does


def labels(runs: Iterable[Found]) -> list[str]:
    """A short name for each of some runs of one thing: the agent, and the fewest settings that tell it from others."""
    runs = list(runs)
    facts = [_facts(run) for run in runs]
    shown = ["agent"] if all(isinstance(run, Evaluation) for run in runs) else []
    known = dict.fromkeys(key for fact in facts for key in fact)
    for key in sorted(known, key=lambda key: LAST_TOLD.index(key) if key in LAST_TOLD else -1):  # else in their order
        if _different(facts, [*shown, key]) > _different(facts, shown):
            shown.append(key)
    return [_label(fact, shown) or run.about.name for fact, run in zip(facts, runs, strict=True)]


def _different(facts: list[dict[str, str]], keys: list[str]) -> int:
    """How many runs can be told apart by some facts."""
    return len({tuple(fact.get(key) for key in keys) for fact in facts})


def _label(fact: dict[str, str], shown: list[str]) -> str:
    plain = ("agent", "split", "actions", "protocol", "skills", "checkpoint", "run")
    return ", ".join(fact[k] if k in plain else f"{k.split('.')[-1]} {fact[k]}"
                     for k in shown if fact.get(k) not in (None, ""))


def _facts(run: Found) -> dict[str, str]:
    """Facts that may tell a run from others, the most telling first."""
    if isinstance(run, Training):
        typed = {key: value for key, value in run.about.typed if key.split(".")[0] not in {*OWN_KEYS, "skill"}}
        plain = {key: value for key, value in same_settings(run) if key != "skill.name"}
        return {**typed, **plain, "seed": str(run.config.get("seed")), "run": run.about.name}
    figures = run.figures
    config = parsed(run.about.settings)
    kept = {key: value for key, value in texts(config).items() if key.split(".")[0] in ("skill", "planner")}
    mean = "mean actions" if figures.get("deterministic") else ""
    return {"agent": run.agent, "split": str(figures.get("split") or ""), "actions": mean,
            "skills": _own_skills(figures.get("skills")), "planner" if run.is_scenario else "protocol": run.protocol,
            **kept, "checkpoint": "" if run.agent == SHIPPED else _source(figures.get("checkpoint")),
            "seed": str(figures.get("seed")), "run": run.about.name}


def _source(checkpoint: Any) -> str:
    """The name of the run that a checkpoint is of; "" where there is none."""
    parts = Path(checkpoint).parts if isinstance(checkpoint, str) else ()
    return next((part for part in reversed(parts) if part != "checkpoints" and not part.endswith(".pt")), "")


def _own_skills(skills: Any) -> str:
    """What ran the skills of a plan, other than policies of the package: "pick my_run, place expert"."""
    ran = {skill: _source(by) for skill, by in skills.items()} if isinstance(skills, dict) else {}
    if len(ran) > 1 and len(only := set(ran.values())) == 1:
        ran = {"skills": only.pop()}
    return ", ".join(f"{skill} {by}" for skill, by in ran.items() if by != SHIPPED_IN[-1])
