from __future__ import annotations

import contextlib

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kube import selector
from tests.tables import parts

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


POD = {"metadata": {"name": "a,b"}, "status": {"phase": "Running"}, "spec": {"unschedulable": True}}


@parts("kube/selectors")
def test_a_selector_selects_or_is_refused(part):
    parse, obj = {
        "labels": (selector.parse_labels, WEB),
        "objects": (lambda text: selector.from_object(yaml.safe_load(text)), WEB),
        "fields": (selector.parse_fields, POD),
    }[part.title]

    def selects(text):
        try:
            return parse("" if text == "''" else text).matches(obj)
        except selector.SelectorError:
            return "refused"

    part.check(selects)


@pytest.mark.parametrize("text", ["a" * 100, "a=" + "b" * 64, "a," * 10_000], ids=len)
def test_what_is_too_long_is_refused(text):
    with pytest.raises(selector.SelectorError):
        selector.parse_labels(text)


@given(selectors, labels)
def test_a_selector_written_and_read_again_selects_the_same(written, present):
    assert selector.parse_labels(str(written)).matches(present) == written.matches(present)


@given(selectors, selectors, labels)
def test_a_comma_is_and(a, b, present):
    both = selector.LabelSelector(a.requirements + b.requirements)
    assert both.matches(present) == (a.matches(present) and b.matches(present))


def test_node_affinity_may_compare_numbers():
    found = selector.requirements([{"key": "cores", "operator": "Gt", "values": ["4"]}])
    assert (found.matches(WEB), found.matches({})) == (True, False)


@given(st.text(max_size=20))
def test_a_field_value_survives_escaping(value):
    written = selector.FieldSelector((("metadata.name", True, value),))
    assert selector.parse_fields(str(written)) == written


@given(st.text(max_size=40))
def test_any_text_is_a_selector_or_refused(text):
    for parse in (selector.parse_labels, selector.parse_fields):
        with contextlib.suppress(selector.SelectorError):
            parse(text)
