from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.printing import paths
from tests.tables import parts

READY = {"type": "Ready", "status": "True", "count": 2, "on": True}
OBJECT = {
    "spec": {"name": "a", "ports": [80, 443, 8080], "empty": [], "none": None},
    "metadata": {"labels": {"example.org/team": "red", "app": "web"}},
    "status": {"conditions": [READY, {"type": "Old", "status": "False", "count": 1}]},
}


@parts("kube/paths")
def test_values_at_a_path(part):
    part.check(lambda path: paths.parse(path)(OBJECT))


def test_what_is_no_path_and_what_does_not_suit_the_object_is_a_path_error():
    for path in (
        ".spec[",
        ".spec[x]",
        ".spec[?(@.a=!1)]",
        ".spec[?(a==1)]",
        ".a b",
        "[]",
        ".ports[::0]",
        "." + "a" * 5000,
    ):
        with pytest.raises(paths.PathError):
            paths.parse(path)
    for path, value in (
        (".spec.ports[3]", OBJECT), (".spec.name[0]", OBJECT), (".spec[?(@.a==1)]", OBJECT),
        ('.status.conditions[?(@.count=="1")]', OBJECT), ("[*][*]", [[0] * 200] * 200), ("..[*]", [[[0]] * 200] * 200),
    ):  # fmt: skip
        with pytest.raises(paths.PathError):
            paths.parse(path)(value)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abx"), inner, max_size=3),
    max_leaves=10,
)
PIECES = [*".ab*[]?()@='\"x0123-:,<> \\", "..", "[0]", "[*]", "[?(@.a==1)]", ".a", "[?(@.b)]"]
pieces = st.lists(st.sampled_from(PIECES), max_size=8)


@given(pieces.map("".join), json_values)
def test_no_path_and_no_object_raises_anything_else(text, value):
    with contextlib.suppress(paths.PathError):
        paths.parse("." + text)(value)
