from __future__ import annotations

import pytest
from django.http import QueryDict
from hypothesis import given
from hypothesis import strategies as st

from dashboard.live.topics import parse
from dashboard.parts import paging
from dashboard.parts.filters import Filter
from dashboard.parts.table import Column, Spec, Table
from tests.tables import cases

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
    shown = view(query)
    return Table(view=shown, rows={}, page=paging.Page(shown.page, shown.per, total), **more)


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
    shown = view(query)
    assert shown.notes == (note,)
    assert shown.url() == "?"


def test_a_view_is_its_url():
    query = "namespace=team-a&page=2&per=25&phase=Running&q=tf&sort=name"
    assert view(query).params() == QueryDict(query).dict()


@given(
    st.dictionaries(st.sampled_from(["q", "namespace", "phase", "sort", "page", "per", "other"]), st.text(max_size=300))
)
def test_any_query_is_read_and_its_canonical_form_reads_the_same(query):
    shown = SPEC.read(query)
    again = SPEC.read(shown.params())
    assert again.params() == shown.params()
    assert again.notes == ()


@pytest.mark.parametrize(
    ("change", "page"),
    [({"page": 3}, "3"), ({"sort": "name"}, None), ({"phase": "Failed"}, None), ({"per": 100}, None)],
)
def test_another_filter_or_order_begins_at_page_one(change, page):
    assert view("page=2").params(**change).get("page") == page


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


@given(asked=st.integers(-5, 10**6), size=st.sampled_from(paging.SIZES), total=st.integers(0, 10**6))
def test_a_page_always_lies_in_the_list(asked, size, total):
    page = paging.Page(asked, size, total)
    assert 1 <= page.number <= page.last
    assert 0 <= page.offset <= max(total - 1, 0)
    assert page.last_row - page.first_row + 1 == min(size, total - page.offset) or not total
    assert (page.next is None) == (page.number == page.last)
