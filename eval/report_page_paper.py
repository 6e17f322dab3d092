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
        here = "not measured"
        if row.measured is not None:
            low, high = row.interval
            here = f"<strong>{share(row.measured)}</strong><small>{100 * low:.0f} to {100 * high:.0f} %, n = {row.episodes}</small>"
        stated = row.stated
        cells.append([words(stated.scenario), escape(stated.after), escape(stated.agent or "–"), share(stated.success), here,
                      escape(stated.words)])
    head = ["scenario", "after", "agent", "paper", "here", "in the paper"]
    said = "".join(f"<li>{escape(text)}</li>" for text in (*IN_WORDS, *DIFFERENCES))
    note = ("Success that the text of the VER paper (Wijmans et al. 2022) states, beside what was measured here. The other "
            "points of its Figure 6 are only drawn; none is read off it.")
    return section("paper", "Beside the paper", table(head, cells, "numbers") + f"<h3>Settings</h3><ul>{said}</ul>", note)
