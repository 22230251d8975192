"""Readers of JSON of any shape answer with something empty, and never raise."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kube import lenient
from tests.tables import cases

OBJECT = {"spec": {"tasks": [1, "a", None], "name": "x", "replicas": 3, "on": True, "none": None}}


@cases("reader, path, expected", {
    "mapping": (lenient.mapping, ("spec",), OBJECT["spec"]),
    "mapping: a text": (lenient.mapping, ("spec", "name"), {}),
    "mapping: below a text": (lenient.mapping, ("spec", "name", "deeper"), {}),
    "list": (lenient.sequence, ("spec", "tasks"), [1, "a", None]),
    "list: null": (lenient.sequence, ("spec", "none"), []),
    "texts of a mixed list": (lenient.texts, ("spec", "tasks"), ["a"]),
    "text": (lenient.text, ("spec", "name"), "x"),
    "text: a number": (lenient.text, ("spec", "replicas"), ""),
    "number": (lenient.whole, ("spec", "replicas"), 3),
    "number: a truth value": (lenient.whole, ("spec", "on"), None),
    "number: absent": (lenient.whole, ("absent", "replicas"), None),
})  # fmt: skip
def test_read(reader, path, expected):
    assert reader(OBJECT, *path) == expected


@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=3),
        lambda i: st.lists(i) | st.dictionaries(st.sampled_from("ab"), i),
    ),
    st.lists(st.sampled_from("ab"), max_size=3),
)
def test_nothing_raises(value, path):
    for reader in (lenient.mapping, lenient.sequence, lenient.text, lenient.texts, lenient.whole):
        reader(value, *path)
