from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.printing import paths

READY = {"type": "Ready", "status": "True", "count": 2, "on": True}
OBJECT = {
    "spec": {"name": "a", "ports": [80, 443, 8080], "empty": [], "none": None},
    "metadata": {"labels": {"example.org/team": "red", "app": "web"}},
    "status": {"conditions": [READY, {"type": "Old", "status": "False", "count": 1}]},
}


CONDITIONS = {
    '?(@.type=="Ready")': ["Ready"], "?(@.type=='Ready')": ["Ready"], '?(@.type == "Ready")': ["Ready"],
    '?(@.type!="Ready")': ["Old"], "?(@.count>=1)": ["Ready", "Old"], "?(@.count<2)": ["Old"], "?(@.on)": ["Ready"],
    "?(@.on==true)": ["Ready"], '?(@.type=="Gone")': [],
}  # fmt: skip


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".", [OBJECT]), (".spec.name", ["a"]), (".spec.absent", []), (".spec.absent.deeper", []), (".spec.none", [None]),
        (".spec.name.deeper", []), (r".metadata.labels.example\.org/team", ["red"]),
        (".metadata.labels['example.org/team']", ["red"]), ('.metadata.labels["app"]', ["web"]),
        (".metadata.labels['app','example.org/team']", ["web", "red"]), (".spec.ports", [[80, 443, 8080]]),
        (".spec.ports[0]", [80]), (".spec.ports[-1]", [8080]), (".spec.ports[1:]", [443, 8080]),
        (".spec.ports[:2]", [80, 443]), (".spec.ports[0:3:2]", [80, 8080]), (".spec.ports[-2:]", [443, 8080]),
        (".spec.ports[0,2]", [80, 8080]), (".spec.ports[*]", [80, 443, 8080]), (".spec.ports[1:1]", []),
        (".metadata.labels.*", ["red", "web"]), (".spec.empty[*].x", []), (".absent[?(@.x==1)]", []), ("..team", []),
        ("..type", ["Ready", "Old"]), ("..conditions[0].type", ["Ready"]),
        *((f".status.conditions[{test}].type", found) for test, found in CONDITIONS.items()),
    ],
)  # fmt: skip
def test_values_at_a_path(path, found):
    assert paths.parse(path)(OBJECT) == found


@pytest.mark.parametrize(
    "path", [".spec[", ".spec[x]", ".spec[?(@.a=!1)]", ".spec[?(a==1)]", ".a b", "[]", ".ports[::0]", "." + "a" * 5000]
)
def test_what_is_not_a_path_is_refused(path):
    with pytest.raises(paths.PathError):
        paths.parse(path)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (".spec.ports[3]", OBJECT), (".spec.name[0]", OBJECT), (".spec[?(@.a==1)]", OBJECT),
        ('.status.conditions[?(@.count=="1")]', OBJECT), ("[*][*]", [[0] * 200] * 200), ("..[*]", [[[0]] * 200] * 200),
    ],
    ids=["no such item", "no list", "no list to choose from", "a number as a text", "many values", "many below"],
)  # fmt: skip
def test_a_path_that_does_not_suit_the_object_is_a_path_error(path, value):
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
