"""Readers of JSON of any shape answer with something empty, and never raise."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kube import lenient

OBJECT = {"spec": {"tasks": [1, "a", None], "name": "x", "replicas": 3, "on": True, "none": None}}


def test_what_is_of_another_shape_is_empty():
    for reader, path, expected in (
        (lenient.mapping, "spec", OBJECT["spec"]), (lenient.mapping, "spec name", {}), (lenient.mapping, "spec name deeper", {}),
        (lenient.sequence, "spec tasks", [1, "a", None]), (lenient.sequence, "spec none", []), (lenient.texts, "spec tasks", ["a"]),
        (lenient.text, "spec name", "x"), (lenient.text, "spec replicas", ""), (lenient.whole, "spec replicas", 3),
        (lenient.whole, "spec on", None), (lenient.whole, "absent replicas", None),
    ):  # fmt: skip
        assert reader(OBJECT, *path.split()) == expected, path


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
