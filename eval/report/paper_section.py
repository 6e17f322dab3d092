"""The section of a report that sets scenarios beside the figures that the VER paper states."""

from __future__ import annotations

from html import escape

from eval.report.paper import DIFFERENCES, IN_WORDS, PUBLISHED, Beside, beside
from eval.report.runs import Evaluation
from eval.report.sections import FEW, figure, section, share, table, words


def paper(found: list[Evaluation]) -> str:
    """Nothing where no agent of the paper did a scenario of the paper. The newest evaluation of an agent counts."""
    rows = _measured(found)
    cells = []
    for row in rows:
        stated, here = row.stated, "not measured"
        if row.measured is not None:
            low, high = (f"{100 * value:.0f}" for value in row.interval)
            here = f"{figure(row.measured, row.episodes)}<small>{low} to {high} %, n = {row.episodes}</small>"
        name = f"{words(stated.scenario)}, {escape(stated.after)}"
        cells.append([name, escape(stated.agent), share(stated.success), here, escape(stated.words)])
    note = ("Success that the text of the VER paper (Wijmans et al. 2022) states, beside what was measured here. The "
            "other points of its Figure 6 are only drawn; none is read off it.")
    if any(row.measured is not None and row.episodes < FEW for row in rows):
        note += f" Grey: fewer than {FEW} episodes, too few to compare."
    head = ["scenario, after", "agent", "paper", "here", "in the paper"]
    return section("paper", "Beside the paper", table(head, cells, "numbers paper") + _others(found) if cells else "",
                   note)


def _others(found: list[Evaluation]) -> str:
    """Whole tasks of other systems, for the scenarios that are shown."""
    scenarios = [name for name in dict.fromkeys(run.what for run in found if run.is_scenario)
                 if name in PUBLISHED[0].success]
    rows = [[escape(each.system), *(share(each.success[name]) for name in scenarios), escape(each.conditions),
             escape(each.source)] for each in PUBLISHED]
    return table(["whole tasks of others", *map(words, scenarios), "conditions", "source"], rows,
                 "numbers others") if scenarios else ""


def caveats(found: list[Evaluation]) -> str:
    """Why the figures here and those of the paper cannot be compared one to one. Nothing where none is shown."""
    if not _measured(found):
        return ""
    said = "".join(f"<li>{escape(text)}</li>" for text in (*DIFFERENCES, *IN_WORDS))
    return section("caveats", "Caveats", f"<ul>{said}</ul>", "Before you compare with the paper: what differs.")


def _measured(found: list[Evaluation]) -> list[Beside]:
    """The figures of the paper beside ours; none where no agent of the paper did a scenario of the paper."""
    rows = beside(run.figures for run in found if run.is_scenario)
    return rows if any(row.measured is not None for row in rows) else []
