"""The sections of the page: scenarios, skills, training, settings. Each is a function from runs to HTML text."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from html import escape
from typing import Any

import numpy as np

from eval.began_solved import lines
from eval.intervals import wilson
from eval.report.run_names import labels
from eval.report.runs import RUNNING, Evaluation, Training, same_settings, texts
from eval.report.svg import Curve, Shares, curves, intervals, short_number, swatch

CURVES = (("episode/success", "success", True), ("eval/success", "success in evaluations", True),
          ("episode/return", "return", False),
          ("steps_per_s", "steps per second", False))  # metric, title, whether it is a share
HYPER_PARAMETERS = ("steps", "policy.encoder", "policy.image_size", "policy.memory", "trainer.mode", "trainer.num_envs",
                    "trainer.rollout_steps", "ppo.learning_rate", "ppo.schedule", "ppo.discount", "ppo.gae_lambda",
                    "ppo.clip", "ppo.epochs", "ppo.mini_batches", "ppo.entropy_coef", "ppo.value_coef")
FEW = 30  # a result of fewer episodes is grey
WIDE_PX, NARROW_PX = 860, 360  # of a plot of interactions: the style sheet shows the one that fits


def share(value: float) -> str:
    """0.5 as 50 %, never more exact than a tenth of a percent."""
    return f"{100 * value:.1f}".removesuffix(".0") + " %"


def words(name: str) -> str:
    """`time_limit` as people write it."""
    return escape(name.replace("_", " "))


def interval_of(figures: dict[str, Any], value: float, given: Any) -> tuple[float, float]:
    """The interval that the evaluation wrote, else Wilson's for its number of episodes."""
    if isinstance(given, list | tuple) and len(given) == 2:
        return float(given[0]), float(given[1])
    n = figures["episodes"]
    return wilson(round(value * n), n)


def grouped(runs: Iterable[Any], key: Callable[[Any], Any]) -> dict[Any, list[Any]]:
    """Runs by a key, both in order of appearance."""
    groups: dict[Any, list[Any]] = {}
    for run in runs:
        groups.setdefault(key(run), []).append(run)
    return groups


def section(anchor: str, title: str, body: str, note: str = "") -> str:
    """One part of the page; nothing without a body."""
    intro = f'<p class="note">{note}</p>' if note else ""
    return f'<section id="{anchor}"><h2>{escape(title)}</h2>{intro}{body}</section>' if body else ""


def table(head: list[str], rows: list[list[str]], style: str = "") -> str:
    """A table of HTML cells, whose first column has headings; nothing without rows."""
    top = "".join(f'<th scope="col">{cell}</th>' for cell in head)
    body = "".join(f'<tr><th scope="row">{first}</th>{"".join(f"<td>{cell}</td>" for cell in others)}</tr>'
                   for first, *others in rows)
    made = f'<table class="{style}"><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>'
    return f'<div class="scroll">{made}</div>' if rows else ""


def bar(value: float, low: float | None = None, high: float | None = None, kind: str = "") -> str:
    """A horizontal bar of a share, with its interval as a whisker."""
    whisker = "" if low is None else f'<i style="left:{100 * low:.2f}%;width:{100 * (high - low):.2f}%"></i>'
    filled = f'<b style="width:{100 * min(value, 1):.2f}%"></b>'
    return f'<span class="bar {kind}" aria-hidden="true">{filled}{whisker}</span>'


def figure(value: float, episodes: int) -> str:
    """A share that was measured: bold, or grey where so few episodes say little."""
    return f"<strong>{share(value)}</strong>" if episodes >= FEW else f'<span class="few">{share(value)}</span>'


def success_row(run: Evaluation, label: str) -> list[str]:
    """The cells of an evaluation below SUCCESS_HEAD."""
    figures = run.figures
    low, high = interval_of(figures, figures["success"], figures.get("success_interval_95"))
    return [named(run, label), bar(figures["success"], low, high), figure(figures["success"], figures["episodes"]),
            f"{share(low)} to {share(high)}", number(figures.get("mean_steps")),
            escape(str(figures.get("split") or "")), escape(run.protocol)]


SUCCESS_HEAD = ["", "", "success", "95 % interval", "mean steps", "homes", "protocol"]


def named(run: Evaluation, label: str) -> str:
    """The name of an evaluation, its number of episodes, how many more began solved, and whether it still runs."""
    solved = run.figures.get("began_solved") or 0
    apart = (f", {solved:,} more began solved" if solved else "") + (", running" if run.about.status == RUNNING else "")
    return f"{escape(label)} <small>n&nbsp;=&nbsp;{run.figures['episodes']}{apart}</small>"


def summary(found: list[Evaluation]) -> str:
    """One row for each evaluation, the skills first; each leads to its part of the page."""
    rows = []
    for kind, scenario in (("skill", False), ("scenario", True)):
        for name, runs in grouped((run for run in found if run.is_scenario == scenario), lambda run: run.what).items():
            link = f'<a href="#{kind}-{escape(name)}">{words(name)}</a>'
            for run, label in zip(runs, labels(runs), strict=True):
                heading, *cells = success_row(run, label)
                rows.append([f"{link} {heading}", *cells])
    note = ("Share of episodes with success, of a scenario the whole task. Whiskers are 95 % intervals. Protocol: "
            "where episodes begin, and by which rules; of a scenario those of the planner.")
    note += "".join(f" {words(run.what).capitalize()}: {line}." for run in found for line in lines(run.figures))
    if any(run.figures["episodes"] < FEW for run in found):
        note += f" Grey: fewer than {FEW} episodes, which say little."
    return section("summary", "Summary", table(SUCCESS_HEAD, rows, "numbers bars summary"), note)


def scenarios(found: list[Evaluation]) -> str:
    """For each scenario and protocol: success after each interaction as in Figure 6, and where episodes ended."""
    styles: dict[str, int] = {}
    parts, told = [], set()
    for (name, protocol), runs in grouped(found, lambda run: (run.what, run.protocol)).items():
        names = labels(runs)
        for label in names:
            styles.setdefault(label, len(styles))
        anchor = "" if name in told else f' id="scenario-{escape(name)}"'  # to the first protocol
        told.add(name)
        rules = f" <small>planner {escape(str(protocol))}</small>" if protocol else ""
        whose = [f": {escape(label)}" if len(runs) > 1 else "" for label in names]
        parts += [f'<article class="scenario"{anchor}><h3>{words(name)}{rules}</h3>',
                  _interactions(runs, names, styles), _full_task(runs, names), _endings(runs, names)]
        parts += [_substitution(run, of) + _subtasks(run, of) for run, of in zip(runs, whose, strict=True)]
        parts.append("</article>")
    return section("scenarios", "Scenarios", "".join(parts), "Share of episodes that succeeded up to each interaction "
                   "once, in any step: earlier objects must stand at their goals then, too. The whole task counts at "
                   "the end. Whiskers are 95 % intervals.")


def _interactions(runs: list[Evaluation], names: list[str], styles: dict[str, int]) -> str:
    """Success after each interaction, as a plot and as a table."""
    found = [run.figures.get("interactions") or [] for run in runs]
    places = list(dict.fromkeys(str(row["name"]) for rows in found for row in rows))
    if not places:
        return ""
    series, table_rows = [], []
    for label, run, rows in zip(names, runs, found, strict=True):
        by_name = {str(row["name"]): row for row in rows}
        values = tuple(_with_interval(run.figures, row.get("success"), row.get("interval_95"))
                       for row in (by_name.get(place, {}) for place in places))
        series.append(Shares(label, styles[label], values))
        table_rows.append([f"{swatch(styles[label])} {named(run, label)}",
                           *(_cell(value, run.figures["episodes"]) for value in values)])
    plots = "".join(f'<div class="{kind}">{intervals(series, places, "success", width=width)}</div>'
                    for kind, width in (("wide", WIDE_PX), ("narrow", NARROW_PX)))
    return f"<figure>{plots}</figure>" + table(["agent", *map(escape, places)], table_rows, "numbers")


def _with_interval(figures: dict[str, Any], value: float | None, given: Any) -> tuple[float, float, float] | None:
    """A share and its interval; None where it was not measured."""
    return None if value is None else (float(value), *interval_of(figures, value, given))


def _cell(value: tuple[float, float, float] | None, episodes: int) -> str:
    if value is None:
        return "&ndash;"
    return f"{figure(value[0], episodes)}<small>{100 * value[1]:.0f} to {100 * value[2]:.0f} %</small>"


def measured(figures: dict[str, Any], key: str) -> str:
    """A share with its interval; a dash where it was not measured."""
    return _cell(_with_interval(figures, figures.get(key), figures.get(f"{key}_interval_95")), figures["episodes"])


def number(value: Any, digits: int = 0) -> str:
    """A mean; nothing where it was not measured."""
    return f"{value:.{digits}f}" if isinstance(value, int | float) else ""


def _substitution(run: Evaluation, whose: str) -> str:
    """The same episodes with experts, with one skill learned, and with all but one (docs/evaluation.md)."""
    rows = []
    for name, figures in run.substitution.items():
        ended = [f"{words(end)} {share(value)}" for end, value in (figures.get("ends") or {}).items()]
        rows.append([f"{words(name)} <small>n&nbsp;=&nbsp;{figures['episodes']}</small>",
                     measured(figures, "success_015"), measured(figures, "success"), number(figures.get("mean_steps")),
                     ended[0] if ended else ""])
    head = [f"what is learned{whose}", "success (0.15 m)", "success (0.30 m)", "mean steps", "most often ended by"]
    return table(head, rows, "numbers substitution")


def _subtasks(run: Evaluation, whose: str) -> str:
    """Each manipulation by itself, from the states that experts leave; at the end their mean."""
    rows = [[words(name), measured(figures, "success"), str(figures["episodes"])]
            for name, figures in run.subtasks.items()]
    if rows:
        rows.append(["mean", share(sum(figures["success"] for figures in run.subtasks.values()) / len(rows)), ""])
    return table([f"sub-task, from where experts leave{whose}", "success", "n"], rows, "numbers subtasks")


def _full_task(runs: list[Evaluation], names: list[str]) -> str:
    """Success of the whole task, at 0.30 m and at 0.15 m, and how many other objects were disturbed; below it, where it
    was measured, what stands at the end, how much of the goal holds then, and how far base and hand moved."""
    rows, ends = [], []
    for run, label in zip(runs, names, strict=True):
        near, row = run.figures.get("success_015"), success_row(run, label)
        rows.append([*row[:4], share(near) if isinstance(near, int | float) else "", row[4],
                     number(run.figures.get("mean_simulated_s")),
                     number(run.figures.get("mean_disturbed_objects"), 2), *row[5:]])
        if run.figures.get("goal_share") is not None:
            ends.append([row[0], measured(run.figures, "success_stable"), share(run.figures["goal_share"]),
                         *(number(run.figures.get(f"mean_{name}"), 1) for name in ("driven_m", "hand_path_m"))])
    head = ["whole task", "", "success (0.30 m)", "95 % interval", "success (0.15 m)", "mean steps", "simulated s",
            "objects disturbed", "homes", "protocol"]
    head_of_ends = ["at the end, and until then", "success (0.15 m), all upright and at rest", "share of the goal",
                    "path of the base, m", "path of the hand, m"]
    return table(head, rows, "numbers bars") + table(head_of_ends, ends, "numbers")


def _endings(runs: list[Evaluation], names: list[str]) -> str:
    """Where (skill) and why (reason) episodes ended, most frequent first, side by side for the agents."""
    columns = [run.figures.get("ends") or run.figures.get("failures") or {} for run in runs]
    reasons = sorted({key for ends in columns for key in ends},
                     key=lambda key: (-max(e.get(key, 0) for e in columns), key))
    rows = [[words(reason), *(f"{bar(ends[reason], kind='quiet')} {share(ends[reason])}" if ends.get(reason) else ""
                              for ends in columns)] for reason in reasons]
    return table(["why episodes ended", *map(escape, names)], rows, "numbers endings")


def skills(found: list[Evaluation]) -> str:
    """For each skill: why episodes failed."""
    parts = []
    for name, runs in grouped(found, lambda run: run.what).items():
        body = _endings(runs, labels(runs)) or '<p class="faint">No failure is on record.</p>'
        parts.append(f'<article class="skill" id="skill-{escape(name)}"><h3>{words(name)}</h3>{body}</article>')
    note = "Why episodes failed, as a share of all episodes of an evaluation."
    return section("skills", "Skills", "".join(parts), note)


def training(found: list[Training]) -> str:
    """For each skill: curves of success, return and speed. Runs that differ in their seed alone share a style."""
    parts = []
    for name, runs in grouped(found, lambda run: run.skill).items():
        groups = list(grouped(runs, same_settings).values())
        names = labels([group[0] for group in groups])
        legend = "".join(f"<li>{swatch(style)} {escape(label)}{_runs(group)} {_last(group)}</li>"
                         for style, (label, group) in enumerate(zip(names, groups, strict=True)))
        plots = "".join(_plot(groups, names, key, title, shares) for key, title, shares in CURVES)
        parts.append(f'<article class="training" id="training-{escape(name)}"><h3>{words(name)}</h3>'
                     f'<ul class="legend">{legend}</ul><div class="plots">{plots}</div>'
                     f"{_hyper_parameters(groups, names)}</article>")
    note = ("Success and return are means of the episodes of a time window during training, with sampled actions, "
            "on the training homes; success in evaluations is that of eval_every=, on homes that training does not "
            "see. Thin lines are runs with the same settings, such as other seeds; the thick line is their mean.")
    return section("training", "Training", "".join(parts), note)


def _runs(group: list[Training]) -> str:
    return f" ({len(group)} runs)" if len(group) > 1 else ""


def _last(group: list[Training]) -> str:
    """The end of the runs: steps, and success where it was measured."""
    steps = max(run.rows[-1]["step"] for run in group)
    known = [[row["episode/success"] for row in run.rows if "episode/success" in row] for run in group]
    ends = [values[-1] for values in known if values]
    success = f", success {share(float(np.mean(ends)))}" if ends else ""
    return f'<span class="faint">{short_number(steps)} steps{success}</span>'


def _plot(groups: list[list[Training]], names: list[str], key: str, title: str, shares: bool) -> str:
    drawn = []
    for style, (label, group) in enumerate(zip(names, groups, strict=True)):
        lines = [_points(run, key) for run in group]
        lines = [line for line in lines if line]
        if len(lines) > 1:
            drawn += [Curve(f"{label}, seed {run.config.get('seed')}", style, line, True)
                      for run, line in zip(group, lines, strict=False)]
            lines = [mean_curve(lines)]
        drawn += [Curve(label, style, line) for line in lines if line]
    return f"<figure>{curves(drawn, title, shares=shares)}</figure>" if drawn else ""


def _points(run: Training, key: str) -> tuple[tuple[float, float], ...]:
    """(step, value) of a metric; of evaluations, which rows repeat until the next, the steps of their policies."""
    of = "eval/at_step" if key.startswith("eval/") else "step"
    return tuple(sorted({row[of]: row[key] for row in run.rows if key in row and of in row}.items()))


def _hyper_parameters(groups: list[list[Training]], names: list[str]) -> str:
    """The settings that say most about how it was learned; all of them stand at the end of the page."""
    found = [texts(group[0].config) for group in groups]
    there = [name for name in HYPER_PARAMETERS if any(name in settings for settings in found)]
    rows = [[escape(label), *(escape(settings.get(name, "")) for name in there)]
            for label, settings in zip(names, found, strict=True)]
    return table(["hyper-parameters", *(escape(name.split(".")[-1].replace("_", " ")) for name in there)],
                 rows if there else [], "numbers")


def mean_curve(lines: list[tuple[tuple[float, float], ...]]) -> tuple[tuple[float, float], ...]:
    """Mean over seeds, where all of them have values; between their points they are straight."""
    low, high = max(line[0][0] for line in lines), min(line[-1][0] for line in lines)
    steps = sorted({x for line in lines for x, _ in line if low <= x <= high})
    if not steps:
        return ()
    values = [np.interp(steps, *zip(*line, strict=True)) for line in lines]
    return tuple(zip(steps, np.mean(values, axis=0).tolist(), strict=True))


def settings(found: list[Evaluation | Training]) -> str:
    """How each run was made: command, code, end, all settings."""
    parts = []
    for run in found:
        about = run.about
        code = f"commit <code>{escape(about.commit[:12])}</code>" if about.commit else "no git checkout"
        facts = [code + (" with changes" if about.changed else ""), escape(about.status), escape(about.ended)]
        folded = "".join(f"<details><summary>{title}</summary><pre>{escape(text)}</pre></details>"
                         for title, text in (("all settings", about.settings), ("plan", about.plan)) if text.strip())
        parts.append(f'<article class="run"><h3>{escape(str(about.path))}</h3>'
                     f'<pre class="command">{escape(about.command)}</pre>'
                     f'<p class="faint">{" &middot; ".join(filter(None, facts))}</p>{folded}</article>')
    return section("settings", "How it was made", "".join(parts))
