"""The grid of a sweep's outcomes as HTML, put together by hand: a template for each of 10,000 cells would take a second."""

from __future__ import annotations

from html import escape
from urllib.parse import quote

from django.urls import reverse
from django.utils.safestring import mark_safe

from dashboard.parts import phases
from jobs.sweeps.outcomes import Grid, Outcomes

# One character for each phase, where its word has no room; the word is the cell's name all the same.
GLYPHS = {
    "Pending": "·",
    "Running": "▸",
    "Restarting": "↻",
    "Completing": "▸",
    "Completed": "✓",
    "Aborting": "‖",
    "Aborted": "‖",
    "Terminating": "■",
    "Terminated": "■",
    "Failed": "✗",
    "Deleted": "–",
}
UNKNOWN = "?"
MOST_WORDS = 8  # columns of a grid whose cells have room for the word


def rows(grid: Grid, outcomes: Outcomes, namespace: str, phase: str = "") -> dict[str, str]:
    """Return each row of a grid by its id; cells of other phases than the one asked for are pale."""
    jobs = reverse("jobs:list") + quote(namespace) + "/"
    wide = len(grid.columns) <= MOST_WORDS
    templates = {}  # word → what stands before and behind the address and the name of a job
    for word in set(outcomes.phases):
        hue, label = phases.appearance(word).hue, escape(word)
        pale = "" if phase in ("", word) else " data-pale"
        glyph = GLYPHS.get(word, UNKNOWN) + (f" {label}" if wide else "")
        before, after = f'<td data-hue="{hue}"{pale}><a href="', f'{label}" aria-label="{label}">{glyph}</a></td>'
        templates[word] = before, after
    names, words = outcomes.record.jobs, outcomes.phases
    rows_by_id: dict[str, str] = {}
    for number, head in enumerate(grid.heads):
        cells = []
        for column in grid.columns:
            row = grid.cells.get((head, column))
            if row is None:
                cells.append("<td></td>")
                continue
            before, after = templates[words[row]]
            name = names[row]
            cells.append(f'{before}{jobs}{quote(name)}/" title="{escape(name)}: {after}')
        line = f"grid-{number}"
        html = f'<tr id="{line}"><th scope="row">{escape(head)}</th>{"".join(cells)}</tr>'
        rows_by_id[line] = mark_safe(html)  # noqa: S308  what it shows is escaped
    return rows_by_id
