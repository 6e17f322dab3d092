"""`rearrange report`: evaluations and training runs as one HTML page that needs no server, network or other file.

Functions from runs to text make the page, which the type checker reads. Templates of Jinja2 would hold the same markup
in as many lines, and write quotes in another way.

Everything stands in the page: style, script, pictures (SVG), videos (mp4 as base64), the table of episodes (JSON). Its
security policy forbids it to load anything.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path

from eval.report import episodes as episode_parts
from eval.report import sections
from eval.report.paper_section import caveats, paper
from eval.report.run_names import labels
from eval.report.runs import Evaluation, Found, Training, newest, read_all, read_some
from eval.report.whole_tasks import whole_tasks
from rearrange.command_line.composition.options import ReportOptions
from rearrange.home.errors import UserError
from rearrange.home.files import may_be_written, open_regular

MARK = '<meta name="generator" content="rearrange report">'  # of a report; other files are not overwritten
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; media-src data: blob:; "
    "connect-src data: blob:"
)
MOST_NAMED = 3  # skills and scenarios, in a title
HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Made:
    """What was written."""

    path: Path
    runs: tuple[Path, ...]
    episodes: int
    videos: int
    left_out: int  # videos that were too large


def make(runs: list[str] | None, out: Path, output: Path, title: str | None, video_mb: float,
         note: str | None = None) -> Made:
    """Write the report of runs. The file is complete or absent.

    Args:
        runs: directories; None means the newest runs below `output`.
        out: the file.
        output: where runs are kept.
        title: of the page; None means one that names what was run.
        video_mb: the megabytes that videos may take of the page.
        note: stands below the title.
    """
    check_place(out)
    problems: list[str] = []
    found = read_all(runs, problems) if runs else read_some(newest(output, problems), problems)
    for problem in problems:
        print(f"left out: {problem}", file=sys.stderr)
    if not found:
        raise UserError(problems[0])
    evaluations = [run for run in found if isinstance(run, Evaluation)]
    trainings = [run for run in found if isinstance(run, Training)]
    episodes = episode_parts.collect(evaluations, _names(evaluations), video_mb * 1e6)
    partial = out.with_name(f".{out.name}.{os.getpid()}.partial")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with open(partial, "w", encoding="utf-8", errors="replace") as file:  # names of files may be no UTF-8
            file.writelines(page(title or _title(found), evaluations, trainings, episodes, note))
        partial.replace(out)
    except OSError as error:
        raise UserError(f"cannot write to {out}: {error.strerror}. Choose another place with out=.") from error
    finally:
        partial.unlink(missing_ok=True)
    return Made(out, tuple(run.about.path for run in found), len(episodes.rows), len(episodes.videos),
                len(episodes.left_out))


def check_place(out: Path) -> None:
    """Refuse a file that cannot be written, and one that is there and is something else than a report."""
    above = out.absolute().parent
    while not os.path.lexists(above):
        above = above.parent
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        why = "no permission" if above.is_dir() else f"{above} is not a directory"
        raise UserError(f"cannot write to {out}: {why}. Choose another place with out=.")
    if out.is_dir():
        raise UserError(f"cannot write to {out}: it is a directory. Name a file, as in out={out / 'report.html'}.")
    if not may_be_written(out):
        raise UserError(f"cannot write to {out}: it is no regular file, but a pipe, a socket or a device. Choose "
                        "another place with out=.")
    if out.exists() and not _is_report(out):
        raise UserError(f"{out} exists already and is not a report of rearrange. Choose another place with out=.")


def _is_report(file: Path) -> bool:
    try:
        with open_regular(file) as opened:
            return MARK.encode() in opened.read(1000)
    except OSError as error:
        raise UserError(f"cannot write to {file}: what is there cannot be read ({error.strerror}). Choose another "
                        "place with out=.") from None


def page(title: str, evaluations: list[Evaluation], trainings: list[Training], episodes: episode_parts.Episodes,
         note: str | None = None) -> Iterator[str]:
    """The text of the page, in pieces."""
    parts = {"summary": sections.summary(evaluations),
             "scenarios": sections.scenarios([run for run in evaluations if run.is_scenario]),
             "protocols": whole_tasks(evaluations), "paper": paper(evaluations), "caveats": caveats(evaluations),
             "skills": sections.skills([run for run in evaluations if not run.is_scenario]),
             "training": sections.training(trainings)}
    table = episode_parts.table_section(episodes)
    settings = sections.settings([*evaluations, *trainings])
    links = [name for name, text in parts.items() if text]
    links += ["videos"] * bool(episodes.videos) + ["episodes"] * bool(table) + ["settings"]
    said = f"<p><strong>{escape(note)}</strong></p>" if note else ""
    menu = "".join(f'<a href="#{name}">{name.capitalize()}</a>' for name in links)
    yield (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">{MARK}\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title>\n<style>\n{_file('page.css')}</style></head>\n<body>"
    )
    counts = _summary(evaluations, trainings)
    yield f"<header><h1>{escape(title)}</h1>{said}<p>{counts}</p><nav>{menu}</nav></header>\n<main>"
    yield from parts.values()
    yield from episode_parts.videos_section(episodes)
    yield table + settings + "</main>\n" + DIALOG
    yield f"{episode_parts.data(episodes)}\n<script>\n{_file('page.js')}</script>\n</body></html>\n"


DIALOG = (
    '<dialog id="episode" aria-labelledby="episode-title"><form method="dialog"><h2 id="episode-title"></h2>'
    '<button aria-label="Close">&times;</button></form><div id="episode-video"></div>'
    '<dl id="episode-facts"></dl></dialog>\n'
)


def _file(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")


def _names(evaluations: list[Evaluation]) -> list[str]:
    """A name for each evaluation that no other has: what, and what tells it from the others of the same."""
    names = {
        id(run): f"{run.what.replace('_', ' ')}: {label}"
        for runs in sections.grouped(evaluations, lambda run: run.what).values()
        for run, label in zip(runs, labels(runs), strict=True)
    }
    return [names[id(run)] for run in evaluations]


def _title(found: list[Found]) -> str:
    """`Report on pick and tidy house`; where there are many, how many skills and scenarios."""
    skills, scenarios = (list(dict.fromkeys(run.what.replace("_", " ") for run in found if run.is_scenario == kind))
                         for kind in (False, True))
    names = [*skills, *scenarios]
    if len(names) > MOST_NAMED:
        names = [_count(len(group), word) for group, word in ((skills, "skill"), (scenarios, "scenario")) if group]
    return "Report on " + " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _summary(evaluations: list[Evaluation], trainings: list[Training]) -> str:
    episodes = sum(run.figures["episodes"] for run in evaluations)
    parts = [_count(len(evaluations), "evaluation") + f" with {episodes:,} episodes"] if evaluations else []
    parts += [_count(len(trainings), "training run")] if trainings else []
    return f"{' and '.join(parts)}. Written on {time.strftime('%Y-%m-%d at %H:%M')} by <code>rearrange report</code>."


def _count(n: int, word: str) -> str:
    return f"{n} {word}{'s' if n != 1 else ''}"


def report(options: ReportOptions) -> Made:
    """The report that the settings of `rearrange report` describe."""
    if options.runs == ():
        raise UserError("runs=[] names no run: leave it out for the newest ones, or name directories.")
    output = Path(options.output)
    out = Path(options.out) if options.out else output / "report.html"
    return make(options.runs, out, output, options.title, options.video_mb)
