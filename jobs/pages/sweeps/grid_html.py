"""The grid of a sweep's outcomes as HTML, built from strings: templates for 10,000 cells would take a second."""

from __future__ import annotations

from html import escape
from urllib.parse import quote

from django.urls import reverse
from django.utils.safestring import mark_safe

from dashboard.parts import phases
from jobs.sweeps.outcomes import Grid, Outcomes

# One character for each phase, if its word does not fit; the word is still the cell's label.
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
MAX_WORDS = 8  # columns of a grid whose cells have room for the word


def rows(grid: Grid, outcomes: Outcomes, namespace: str, phase: str = "") -> dict[str, str]:
    """Return each row of a grid by its id; cells of other phases than `phase` (if not "") are pale."""
    jobs = reverse("jobs:list") + quote(namespace) + "/"
    wide = len(grid.columns) <= MAX_WORDS
    templates = {}  # phase → the HTML before and after the URL and the name of a job
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
