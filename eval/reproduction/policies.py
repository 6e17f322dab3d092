"""`rearrange reproduce policies`: the package's policies, trained anew by their recipes and evaluated beside them."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

from eval.reproduction.jobs import Job, make_job
from eval.task_from_settings import group_of
from rearrange.command_line.composition.options import ReproduceOptions
from rearrange.command_line.runs.names import checked_name
from rearrange.command_line.runs.run_directory import read_status
from rearrange.home.errors import UserError
from rearrange.home.files import read_json
from skills import pretrained, recipes

SPLITS = ("val", "test")
OF_FIGURE_6 = ("agents", "scenarios", "protocols", "pretrained", "experiment", "monolithic_steps", "video", "split")
PLANS_SEED = 5  # of the plans in training homes


def jobs(options: ReproduceOptions) -> tuple[Job, ...]:
    """Lessons and evaluations of every policy that is asked for, each after what it needs. UserError."""
    checked_name(options.name)
    if not options.policies:
        raise UserError(f"policies=[] leaves nothing to do. Choices: {', '.join(recipes.names())}.")
    for each in fields(ReproduceOptions):
        if each.name in OF_FIGURE_6 and getattr(options, each.name) != each.default:
            raise UserError(f"{each.name}= is a setting of Figure 6, and recipes do without it: leave out {each.name}= "
                            "or policies=.")
    for task in options.policies:
        if task not in recipes.names():
            raise UserError(f"policies: there is no recipe for {task!r}; there are those "
                            f"of {', '.join(recipes.names())}.")
    return tuple(job for task in dict.fromkeys(options.policies) for job in _of_task(task, options))


def _of_task(task: str, options: ReproduceOptions) -> list[Job]:
    """The lessons of one policy, before each the plans that it needs, and the evaluations of the last."""
    made: list[Job] = []
    before: Job | None = None
    for number, lesson in enumerate(recipes.lessons(task), 1):
        name = f"{options.name}_{number}"
        words = [f"{group_of(task)}={task}", *_shortened(lesson.words, options.steps), f"seed={options.seed}"]
        needs = () if before is None else (before.path,)
        if before is not None:
            words.append(f"checkpoint={before.path}")
        if lesson.plans:
            plans = [_plans(task, scenario, lesson, before, f"{name}_{task}", options) for scenario in lesson.plans]
            words.append(
                f"sim.episodes={Path(options.output) / 'eval/*' / f'{name}_{task}' / 'handoffs' / f'{task}.json.gz'}")
            made += plans
            needs += tuple(each.path for each in plans)
        before = make_job(f"train {task} {number}", "train", (*words, f"name={name}", f"output={options.output}"),
                          options, needs)
        made.append(before)
    return made + [_evaluation(task, split, before, options) for split in SPLITS]


def _shortened(words: tuple[str, ...], most: int) -> list[str]:
    """The same lesson, of at most so many steps."""
    return [f"steps={most}" if word.startswith("steps=") and int(word.split("=")[1]) > most else word for word in words]


def _plans(task: str, scenario: str, lesson: recipes.Lesson, before: Job | None, name: str,
           options: ReproduceOptions) -> Job:
    """Episodes of a scenario in training homes, in which the skill has the policy of the lesson before."""
    words = [f"hab={scenario}", "split=train", f"seed={PLANS_SEED}",
             f"episodes={min(lesson.plans[scenario], options.episodes)}", "video=0", "handoffs=true", f"name={name}",
             f"output={options.output}", *(word for word in lesson.words if word.startswith("sim.furniture="))]
    if lesson.tries is not None:
        words.append(f"handoff_tries={lesson.tries}")
    if before is not None:
        words.append(f"skills.{task}={before.path}")
    return make_job(f"plans for {task} in {scenario}", "eval", tuple(words), options,
                    () if before is None else (before.path,))


def _evaluation(task: str, split: str, last: Job, options: ReproduceOptions) -> Job:
    words = (f"{group_of(task)}={task}", f"checkpoint={last.path}", f"split={split}", f"episodes={options.episodes}",
             f"name={options.name}_{split}", f"output={options.output}")
    return make_job(f"eval {task} {split}", "eval", words, options, (last.path,))


def table(made: tuple[Job, ...], options: ReproduceOptions) -> str:
    """What came out, beside the policies of the package, as Markdown."""
    rows = ["| policy | homes | protocol | trained now | n | in the package | to publish |",
            "|---|---|---|---|---|---|---|"]
    for job in made:
        is_there = job.what.startswith("eval ") and (job.path / "metrics.json").exists()
        if not is_there or read_status(job.path)["status"] != "finished":
            continue
        _, task, split = job.what.split()
        now = read_json(job.path / "metrics.json")
        card = pretrained.card(task)["evaluations"] if task in pretrained.names() else []
        rule = now["protocol"]
        there = [row for row in card if row["split"] == split and not row["deterministic"] and row["protocol"] == rule]
        rows.append(f"| {task} | {split} | {rule} | {_figures(now)} | {now['episodes']} | "
                    f"{_figures(there[0]) if there else 'not measured'} | `python -m benchmarks.publish_policy "
                    f"{job.needs[0]}` |")
    return "\n".join(rows)


def _figures(of: dict[str, Any]) -> str:
    """Success with its interval, and SPL where there is one."""
    low, high = of["success_interval_95"]
    spl = of.get("spl", of.get("measures", {}).get("spl"))
    return f"{of['success']:.1%} ({low:.1%} .. {high:.1%})" + (f", SPL {spl:.3f}" if spl is not None else "")
