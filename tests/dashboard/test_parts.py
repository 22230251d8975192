from pathlib import Path

import html5lib
import pytest
from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.http import QueryDict
from django.template import engines
from django.test import RequestFactory
from hypothesis import given
from hypothesis import strategies as st

from dashboard.live.topics import parse
from dashboard.parts import paging, phases, svg, usage_bar
from dashboard.parts.filters import Filter
from dashboard.parts.table import Column, Spec, Table
from tests.dashboard import style
from tests.tables import cases

COLUMNS = (
    Column("Name", sort="name", kind="name"), Column("Phase", sort="phase"), Column("Queue", priority="low"),
    Column("Created", sort="created", kind="time"),
)  # fmt: skip
FILTERS = (Filter("namespace", "Namespace"), Filter("queue", "Queue"))
JOBS_SPEC = Spec(name="jobs:list", columns=COLUMNS, filters=FILTERS, order="-created", noun="job", plural="jobs")


def style_page(query=None, user=None, **headers):
    """Render the page that shows every component."""
    rows = {
        f"job-{word}": f'<tr id="job-{word}"><th scope="row" data-kind="name"><a href="#">train-{word.lower()}</a></th>'
        f'<td data-label="Phase">{style.tag("phase", word)}</td><td data-label="Queue" data-priority="low">default</td>'
        f'<td data-label="Created" data-kind="time">{style.tag("moment", 1767225600000)}</td></tr>'
        for word in phases.JOB_PHASES
    }
    table = Table(
        view=JOBS_SPEC.read(query or {}), rows=rows, page=paging.Page(1, 50, 1234), counts=dict.fromkeys(phases.JOB_PHASES, 7),
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


HUES = sorted({look.hue for look in phases.LOOKS.values()})
TEXTS = {
    "--ink": ["--ground"], "--ink-soft": ["--ground", "--surface", "--sunken", "--hover", "--chosen"],
    "--accent": ["--surface", "--chosen"], "--on-accent": ["--accent-solid", "--danger-solid"],
    **{f"--{hue}-ink": [f"--{hue}-fill"] for hue in HUES},
}  # fmt: skip


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("ink", TEXTS)
def test_text_can_be_read_in_both_themes(ink, theme):
    tokens = style.tokens(settings.BASE_DIR / "frontend/styles/tokens.css", theme)
    for ground in TEXTS[ink]:
        assert style.contrast(tokens[ink], tokens[ground]) >= 4.5, ground


def test_every_job_phase_has_its_own_word_icon_and_colour():
    looks = [phases.appearance(word) for word in phases.JOB_PHASES]
    assert len(phases.JOB_PHASES) == len({look.icon for look in looks}) == len({look.hue for look in looks}) == 10


def test_a_phase_without_an_element_for_its_icon_looks_as_one_with():
    text = (settings.BASE_DIR / "frontend/styles/components/phase.css").read_text()
    for word in phases.JOB_PHASES:
        look = phases.appearance(word)
        rule = f'.phase[data-phase="{word}"]:not(:has(svg))'
        icon = f'mask-image: url("../../../node_modules/lucide-static/icons/{look.icon}.svg");'
        assert f"{rule} {{\n  --hue-ink: var(--{look.hue}-ink);\n  --hue-fill: var(--{look.hue}-fill);" in text
        assert f"{rule}::before {{\n  {icon}" in text


@pytest.mark.parametrize(
    ("used", "capacity", "width", "level"),
    [(0, 8, "0%", "normal"), (4, 8, "50%", "normal"), (7, 8, "87.5%", "high"), (8, 8, "100%", "high"),
     (9, 8, "100%", "over"), (5, 0, "0%", "normal"), (-1, 8, "0%", "normal")],
)  # fmt: skip
def test_a_bar_shows_used_of_capacity(used, capacity, width, level):
    assert f'data-level="{level}" width="{width}"' in svg.bar(used, capacity, "words")


def test_a_label_cannot_break_out():
    drawn = svg.bar(1, 2, '"><script>alert(1)</script>')
    assert not [
        each for each in html5lib.parseFragment(drawn, namespaceHTMLElements=False).iter() if each.tag == "script"
    ]


def test_shares_lie_side_by_side_marks_cross_them_where_they_are_and_a_sparkline_is_drawn_for_any_values():
    drawn = svg.stack([svg.Share(3, "green", "ready"), svg.Share(0, "amber", "odd"), svg.Share(1, "red", "not ready")])
    for attribute in ('x="0%" width="75%"', 'x="75%" width="25%"', 'aria-label="3 ready, 1 not ready"'):
        assert attribute in drawn
    drawn = svg.stack([svg.Share(5, "blue", "used")], 10, "used", marks=[2, 99])
    assert ('class="bar-mark" x1="20%" x2="20%"' in drawn, 'x1="100%"' in drawn) == (True, True)
    assert all(svg.sparkline(values, "x").startswith("<svg") for values in ([], [0], [0, 0], [1, 2, 3]))


def test_use_is_said_without_the_name_that_stands_beside_it():
    rows = usage_bar.table({"cpu": 1500, "nvidia.com/gpu": 1}, {"cpu": 8000, "memory": 2**34, "nvidia.com/gpu": 8})
    assert [(row.title, row.text) for row in rows] == [
        ("CPU", "1.5 of 8"), ("Memory", "0 bytes of 16 GiB"), ("nvidia.com/gpu", "1 of 8"),
    ]  # fmt: skip


SPEC = Spec(
    name="things",
    columns=(Column("Name", sort="name", kind="name"), Column("Made", sort="created", kind="time"), Column("Plain")),
    filters=(Filter("namespace", "Namespace"), Filter("phase", "Phase", choices=("Running", "Failed"), hidden=True)),
    order="-created",
    plural="things",
)


def view(query=""):
    return SPEC.read(QueryDict(query))


def table(query="", total=100, **more):
    list_view = view(query)
    return Table(view=list_view, rows={}, page=paging.Page(list_view.page, list_view.per, total), **more)


@cases("query, note", {
    "page": ("page=x", "Page “x” is not a number; 1 is used."),
    "rows": ("per=7", "Rows per page can be 25, 50, 100, 200; 50 are shown."),
    "order": ("sort=evil", "This list cannot be sorted by “evil”; it is sorted by created."),
    "order of a plain column": ("sort=Plain", "This list cannot be sorted by “Plain”; it is sorted by created."),
    "phase": ("phase=Nonsense", "There is no phase “Nonsense”; the filter was left out."),
    "text": ("q=%00", "The filter q was left out: it is too long or has unprintable characters."),
    "namespace": ("namespace=a%0ab", "The filter namespace was left out: it is too long or has unprintable characters."),
})  # fmt: skip
def test_an_invalid_value_is_left_out_with_a_note(query, note):
    list_view = view(query)
    assert (list_view.notes, list_view.url()) == ((note,), "?")


def test_a_view_is_its_url():
    query = "namespace=team-a&page=2&per=25&phase=Running&q=tf&sort=name"
    assert view(query).params() == QueryDict(query).dict()


NAMES = st.sampled_from(["q", "namespace", "phase", "sort", "page", "per", "other"])


@given(st.dictionaries(NAMES, st.text(max_size=300)))
def test_any_query_is_read_and_its_canonical_form_reads_the_same(query):
    list_view = SPEC.read(query)
    again = SPEC.read(list_view.params())
    assert (again.params(), again.notes) == (list_view.params(), ())


def test_another_filter_or_order_begins_at_page_one():
    changes = ({"page": 3}, {"sort": "name"}, {"phase": "Failed"}, {"per": 100})
    assert [view("page=2").params(**change).get("page") for change in changes] == ["3", None, None, None]


@cases("query, urls", {
    "its own order": ("", {"Name": "?sort=name", "Made": "?sort=created", "Plain": ""}),
    "turned round": ("sort=created", {"Name": "?sort=name", "Made": "?", "Plain": ""}),
    "another": ("sort=name&q=x", {"Name": "?q=x&sort=-name", "Made": "?q=x", "Plain": ""}),
})  # fmt: skip
def test_a_heading_sorts_and_turns_the_order_round(query, urls):
    assert {heading.title: heading.url for heading in table(query).headings} == urls


def test_counts_say_which_filter_they_obey():
    assert table().obeyed == "Counts cover everything you may see"
    assert table("namespace=team-a&q=tf&phase=Running").obeyed == "Counts obey text “tf”, namespace “team-a”"


def test_a_chip_chooses_its_phase_and_the_first_all_of_them():
    chips = table("q=x", counts={"Running": 3, "Odd": 1}, phases=("Running", "Failed")).chips
    assert [(chip.label, chip.count, chip.url) for chip in chips] == [
        ("All", 4, "?q=x"), ("Running", 3, "?q=x&phase=Running"), ("Failed", 0, "?q=x&phase=Failed"), ("Odd", 1, "?q=x&phase=Odd"),
    ]  # fmt: skip


def test_a_topic_says_everything_that_the_page_shows():
    name, params = parse(table("q=a b&page=2", fixed={"name": "one"}).topic)
    assert (name, params.dict()) == ("things", {"q": "a b", "page": "2", "name": "one"})


@given(number=st.integers(-5, 10**6), size=st.sampled_from(paging.SIZES), total=st.integers(0, 10**6))
def test_a_page_always_lies_in_the_list(number, size, total):
    page = paging.Page(number, size, total)
    assert 1 <= page.number <= page.last
    assert 0 <= page.offset <= max(total - 1, 0)
    assert page.last_row - page.first_row + 1 == min(size, total - page.offset) or not total
    assert (page.next is None) == (page.number == page.last)
