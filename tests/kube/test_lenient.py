"""Readers of JSON of any shape answer with something empty, and never raise."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube import lenient

OBJECT = {"spec": {"tasks": [1, "a", None], "name": "x", "replicas": 3, "on": True, "none": None}}


@pytest.mark.parametrize(
    ("reader", "path", "expected"),
    [
        pytest.param(lenient.mapping, ("spec",), OBJECT["spec"], id="mapping"),
        pytest.param(lenient.mapping, ("spec", "name"), {}, id="mapping: a text"),
        pytest.param(lenient.mapping, ("spec", "name", "deeper"), {}, id="mapping: below a text"),
        pytest.param(lenient.sequence, ("spec", "tasks"), [1, "a", None], id="list"),
        pytest.param(lenient.sequence, ("spec", "none"), [], id="list: null"),
        pytest.param(lenient.texts, ("spec", "tasks"), ["a"], id="texts of a mixed list"),
        pytest.param(lenient.text, ("spec", "name"), "x", id="text"),
        pytest.param(lenient.text, ("spec", "replicas"), "", id="text: a number"),
        pytest.param(lenient.whole, ("spec", "replicas"), 3, id="number"),
        pytest.param(lenient.whole, ("spec", "on"), None, id="number: a truth value"),
        pytest.param(lenient.whole, ("absent", "replicas"), None, id="number: absent"),
    ],
)
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
