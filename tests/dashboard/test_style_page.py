from __future__ import annotations

from pathlib import Path

import html5lib
import pytest
from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.template import engines
from django.test import RequestFactory

from dashboard.parts import paging, phases, svg
from dashboard.parts.filters import Filter
from dashboard.parts.table import Column, Spec, Table
from tests.dashboard import style

COLUMNS = (
    Column("Name", sort="name", kind="name"), Column("Phase", sort="phase"), Column("Queue", priority="low"),
    Column("Created", sort="created", kind="time"),
)  # fmt: skip
FILTERS = (Filter("namespace", "Namespace"), Filter("queue", "Queue"))
SPEC = Spec(name="jobs:list", columns=COLUMNS, filters=FILTERS, order="-created", noun="job", plural="jobs")


def style_page(query=None, user=None, **headers):
    """Render the page that shows every component."""
    rows = {
        f"job-{word}": f'<tr id="job-{word}"><th scope="row" data-kind="name"><a href="#">train-{word.lower()}</a></th>'
        f'<td data-label="Phase">{style.tag("phase", word)}</td><td data-label="Queue" data-priority="low">default</td>'
        f'<td data-label="Created" data-kind="time">{style.tag("moment", 1767225600000)}</td></tr>'
        for word in phases.JOB_PHASES
    }
    table = Table(
        view=SPEC.read(query or {}), rows=rows, page=paging.Page(1, 50, 1234), counts=dict.fromkeys(phases.JOB_PHASES, 7),
        phases=phases.JOB_PHASES, choices={"queue": ["default"]}, revision=7,
    )  # fmt: skip
    request = RequestFactory().get("/style", query or {}, **headers)
    request.user = user or AnonymousUser()
    template = engines["django"].from_string((Path(__file__).parent / "templates/style_page.html").read_text())
    words = [word for word in phases.LOOKS if word not in ("Normal", "Warning")]
    spark = svg.sparkline([1, 5, 3, 8, 2, 9], "Starts: 9 now")
    return template.render({"table": table, "words": words, "spark": spark, "user": request.user}, request)


def test_every_component_is_well_formed_html_without_inline_styles_and_handlers():
    html5lib.HTMLParser(strict=True).parse(style_page().lstrip())
    for element in html5lib.parse(style_page(), namespaceHTMLElements=False).iter():
        assert not [name for name in element.attrib if name == "style" or name.startswith("on")], element


def test_every_icon_of_templates_and_tables_is_in_the_sprite():
    assert style.icons_used() <= style.icons_in_sprite()


@pytest.mark.parametrize("hue", sorted({look.hue for look in phases.LOOKS.values()}))
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_phase_can_be_read_in_both_themes(hue, theme):
    tokens = style.tokens(settings.BASE_DIR / "frontend/styles/tokens.css", theme)
    assert style.contrast(tokens[f"--{hue}-ink"], tokens[f"--{hue}-fill"]) >= 4.5


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(
    ("ink", "ground"),
    [("--ink", "--ground"), ("--ink-soft", "--ground"), ("--ink-soft", "--surface"), ("--ink-soft", "--sunken"), ("--ink-soft", "--hover"),
     ("--ink-soft", "--chosen"), ("--accent", "--surface"), ("--accent", "--chosen"), ("--on-accent", "--accent-solid"), ("--on-accent", "--danger-solid")],
)  # fmt: skip
def test_text_can_be_read_in_both_themes(ink, ground, theme):
    tokens = style.tokens(settings.BASE_DIR / "frontend/styles/tokens.css", theme)
    assert style.contrast(tokens[ink], tokens[ground]) >= 4.5


def test_every_job_phase_has_its_own_word_icon_and_colour():
    looks = [phases.look(word) for word in phases.JOB_PHASES]
    assert len(phases.JOB_PHASES) == len({look.icon for look in looks}) == len({look.hue for look in looks}) == 10


def test_a_phase_without_an_element_for_its_icon_looks_as_one_with():
    text = (settings.BASE_DIR / "frontend/styles/components/phase.css").read_text()
    for word in phases.JOB_PHASES:
        look = phases.look(word)
        rule = f'.phase[data-phase="{word}"]:not(:has(svg))'
        assert f"{rule} {{\n  --hue-ink: var(--{look.hue}-ink);\n  --hue-fill: var(--{look.hue}-fill);" in text
        assert (
            f'{rule}::before {{\n  mask-image: url("../../../node_modules/lucide-static/icons/{look.icon}.svg");'
            in text
        )
