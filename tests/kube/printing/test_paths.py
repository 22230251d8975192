from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.printing import paths

OBJECT = {
    "spec": {"name": "a", "ports": [80, 443, 8080], "empty": [], "none": None},
    "metadata": {"labels": {"example.org/team": "red", "app": "web"}},
    "status": {
        "conditions": [
            {"type": "Ready", "status": "True", "count": 2, "on": True},
            {"type": "Old", "status": "False", "count": 1},
        ]
    },
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".", [OBJECT]),
        (".spec.name", ["a"]),
        (".spec.absent", []),
        (".spec.absent.deeper", []),
        (".spec.name.deeper", []),
        (".spec.none", [None]),
        (r".metadata.labels.example\.org/team", ["red"]),
        (".metadata.labels['example.org/team']", ["red"]),
        ('.metadata.labels["app"]', ["web"]),
        (".metadata.labels['app','example.org/team']", ["web", "red"]),
        (".spec.ports", [[80, 443, 8080]]),
        (".spec.ports[0]", [80]),
        (".spec.ports[-1]", [8080]),
        (".spec.ports[1:]", [443, 8080]),
        (".spec.ports[:2]", [80, 443]),
        (".spec.ports[0:3:2]", [80, 8080]),
        (".spec.ports[-2:]", [443, 8080]),
        (".spec.ports[0,2]", [80, 8080]),
        (".spec.ports[*]", [80, 443, 8080]),
        (".spec.ports[1:1]", []),
        (".metadata.labels.*", ["red", "web"]),
        (".spec.empty[*].x", []),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".status.conditions[?(@.type=='Ready')].status", ["True"]),
        ('.status.conditions[?(@.type == "Ready")].status', ["True"]),
        ('.status.conditions[?(@.type!="Ready")].type', ["Old"]),
        (".status.conditions[?(@.count>=1)].type", ["Ready", "Old"]),
        (".status.conditions[?(@.count<2)].type", ["Old"]),
        (".status.conditions[?(@.on)].type", ["Ready"]),
        (".status.conditions[?(@.on==true)].type", ["Ready"]),
        ('.status.conditions[?(@.type=="Gone")].status', []),
        (".absent[?(@.x==1)]", []),
        ("..team", []),
        ("..type", ["Ready", "Old"]),
        ("..conditions[0].type", ["Ready"]),
    ],
)
def test_values_at_a_path(path, found):
    assert paths.parse(path)(OBJECT) == found


@pytest.mark.parametrize(
    "path", [".spec[", ".spec[x]", ".spec[?(@.a=!1)]", ".spec[?(a==1)]", ".a b", "[]", ".ports[::0]", "." + "a" * 5000]
)
def test_what_is_not_a_path_is_refused(path):
    with pytest.raises(paths.PathError):
        paths.parse(path)


@pytest.mark.parametrize(
    "path", [".spec.ports[3]", ".spec.name[0]", ".spec[?(@.a==1)]", '.status.conditions[?(@.count=="1")]']
)
def test_a_path_that_does_not_suit_the_object_is_a_path_error(path):
    with pytest.raises(paths.PathError):
        paths.parse(path)(OBJECT)


def test_a_path_gives_a_bounded_number_of_values():
    wide = [[0] * 200] * 200
    with pytest.raises(paths.PathError):
        paths.parse("[*][*]")(wide)
    with pytest.raises(paths.PathError):
        paths.parse("....x"[:2] + "[*]")([[[0]] * 200] * 200)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abx"), inner, max_size=3),
    max_leaves=10,
)
pieces = st.lists(
    st.sampled_from([*".ab*[]?()@='\"x0123-:,<> \\", "..", "[0]", "[*]", "[?(@.a==1)]", ".a", "[?(@.b)]"]), max_size=8
)


@given(pieces.map("".join), json_values)
def test_no_path_and_no_object_raises_anything_else(text, value):
    try:
        paths.parse("." + text)(value)
    except paths.PathError:
        pass
