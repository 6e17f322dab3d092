"""The section of a report that sets scenarios beside the figures that the VER paper states."""

from __future__ import annotations

from html import escape

from eval.paper import DIFFERENCES, IN_WORDS, beside
from eval.report_page_runs import Evaluation
from eval.report_page_sections import section, share, table, words


def paper(found: list[Evaluation]) -> str:
    """Nothing where no agent of the paper did a scenario of the paper. The newest evaluation of an agent counts."""
    rows = beside(run.figures for run in found if run.is_scenario)
    if not any(row.measured is not None for row in rows):
        return ""
    cells = []
    for row in rows:
        stated, here = row.stated, "not measured"
        if row.measured is not None:
            low, high = (f"{100 * value:.0f}" for value in row.interval)
            here = f"<strong>{share(row.measured)}</strong><small>{low} to {high} %, n = {row.episodes}</small>"
        first = [words(stated.scenario), escape(stated.after), escape(stated.agent), share(stated.success)]
        cells.append([*first, here, escape(stated.words)])
    head = ["scenario", "after", "agent", "paper", "here", "in the paper"]
    said = "".join(f"<li>{escape(text)}</li>" for text in (*IN_WORDS, *DIFFERENCES))
    note = ("Success that the text of the VER paper (Wijmans et al. 2022) states, beside what was measured here. The "
            "other points of its Figure 6 are only drawn; none is read off it.")
    body = table(head, cells, "numbers") + f"<h3>Settings</h3><ul>{said}</ul>"
    return section("paper", "Beside the paper", body, note)
