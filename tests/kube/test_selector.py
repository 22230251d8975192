from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube import selector
from tests.tables import cases

keys = st.sampled_from(["a", "b", "app.kubernetes.io/name", "in", "notin"])
values = st.sampled_from(["", "x", "y", "1", "20"])
labels = st.dictionaries(keys, values)
requirement = st.one_of(
    st.builds(selector.Requirement, keys, st.sampled_from(["In", "NotIn"]), st.frozensets(values, min_size=1)),
    st.builds(selector.Requirement, keys, st.sampled_from(["Exists", "DoesNotExist"])),
    st.builds(selector.Requirement, keys, st.sampled_from(["Gt", "Lt"]), st.just(frozenset({"5"}))),
)
selectors = st.lists(requirement, max_size=4).map(lambda found: selector.LabelSelector(tuple(found)))
WEB = {"app": "web", "tier": "front", "cores": "8"}


SELECTED = """app=web | app == web | app!=db | owner!=me | app in (db, web) | app in(web) | owner notin (me) | app | ! owner | cores>4
 | app=web , tier in (front, back),!owner | """
NOT_SELECTED = "app=db | owner= | app notin (db,web) | !app | cores<4 | tier>4 | app=web,tier=back"


@pytest.mark.parametrize(
    ("text", "selected"),
    [*((text, True) for text in SELECTED.split("|")), *((text, False) for text in NOT_SELECTED.split("|"))],
)
def test_labels(text, selected):
    assert selector.parse_labels(text).matches(WEB) is selected


@pytest.mark.parametrize(
    "text",
    [
        "a=b,", ",a", "a b", "a in", "a in b", "a in (b", "a in b)", "a in (b c)", "a=b=c", "=b", "!", "!a=b", "a!b",
        "a>b", "a>", "a/b/c=d", "-a=b", "a=b!", "a=-", "a=(b)", "(a)", "é=1", "a" * 100, "a=" + "b" * 64, "a," * 10_000,
    ],
    ids=lambda text: text[:20],
)  # fmt: skip
def test_what_is_no_label_selector_is_refused(text):
    with pytest.raises(selector.SelectorError):
        selector.parse_labels(text)


@given(selectors, labels)
def test_a_selector_written_and_read_again_selects_the_same(written, present):
    assert selector.parse_labels(str(written)).matches(present) == written.matches(present)


@given(selectors, selectors, labels)
def test_a_comma_is_and(a, b, present):
    both = selector.LabelSelector(a.requirements + b.requirements)
    assert both.matches(present) == (a.matches(present) and b.matches(present))


@cases("written, selected", {
    "none selects nothing": (None, False),
    "empty selects everything": ({}, True),
    "match labels": ({"matchLabels": {"app": "web"}}, True),
    "match labels are all needed": ({"matchLabels": {"app": "web", "tier": "back"}}, False),
    "expressions": ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}, {"key": "x", "operator": "DoesNotExist"}]},
        True),
})  # fmt: skip
def test_label_selector_of_an_object(written, selected):
    assert selector.from_object(written).matches(WEB) is selected


def test_node_affinity_may_compare_numbers():
    found = selector.requirements([{"key": "cores", "operator": "Gt", "values": ["4"]}])
    assert (found.matches(WEB), found.matches({})) == (True, False)


def expressed(**fields):
    return {"matchExpressions": [fields]}


@pytest.mark.parametrize(
    "written",
    [
        expressed(key="a", operator="Gt", values=["1"]), expressed(key="a", operator="In"), expressed(operator="Exists"),
        expressed(key="a", operator="Exists", values=["b"]), {"matchExpressions": ["a"]}, {"matchLabels": {"a": 1}},
        {"matchLabels": "a"}, "a=b",
    ],
    ids=str,
)  # fmt: skip
def test_what_is_no_selector_object_is_refused(written):
    with pytest.raises(selector.SelectorError):
        selector.from_object(written)


@pytest.mark.parametrize(
    ("text", "selected"),
    [
        ("", True), (r"metadata.name=a\,b", True), ("status.phase!=Running", False), ("spec.unschedulable=true", True),
        ("status.phase==Running,spec.nodeName=", True), ("status.phase.deeper=", True),
        ("metadata.name=a,b", None), ("=x", None), ("a", None), ("a=b\\", None),
    ],
)  # fmt: skip
def test_fields(text, selected):
    pod = {"metadata": {"name": "a,b"}, "status": {"phase": "Running"}, "spec": {"unschedulable": True}}
    if selected is None:
        with pytest.raises(selector.SelectorError):
            selector.parse_fields(text)
    else:
        assert selector.parse_fields(text).matches(pod) is selected


@given(st.text(max_size=20))
def test_a_field_value_survives_escaping(value):
    written = selector.FieldSelector((("metadata.name", True, value),))
    assert selector.parse_fields(str(written)) == written


@given(st.text(max_size=40))
def test_any_text_is_a_selector_or_refused(text):
    for parse in (selector.parse_labels, selector.parse_fields):
        with contextlib.suppress(selector.SelectorError):
            parse(text)
