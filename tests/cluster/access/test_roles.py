from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.access.roles import ALL, CLUSTER, LETTER, NAMESPACED, Grants, Role, decide, needed, places
from kube import resources
from tests.tables import cases

GOLDEN = Path(__file__).with_name("rights.txt")
PARTS = ("jobs.batch.volcano.sh/status", "namespaces/finalize", "namespaces/status")
RESOURCES = [*(name for name in NAMESPACED if not name.startswith("*/")), *PARTS, *CLUSTER, "namespaces"]
PLACES = {"role here": "here", "role elsewhere": "there", "role everywhere": "*"}


def verdict(role, verb, resource, held_in):
    grants = Grants("alice", {held_in: role})
    namespace = "" if resource.partition("/")[0] in CLUSTER else "here"
    if decide(grants, verb, resource, namespace, owner="bob"):
        return "any"
    return "own" if decide(grants, verb, resource, namespace, owner="alice") else "-"


def matrix():
    for resource in RESOURCES:
        yield f"{resource}"
        for place, held_in in PLACES.items():
            for role in Role:
                row = " ".join(f"{verb}={verdict(role, verb, resource, held_in)}" for verb in LETTER)
                yield f"  {place}, {role}: {row}"


def test_every_role_may_do_exactly_what_the_recorded_matrix_says(request):
    text = "\n".join(matrix()) + "\n"
    if request.config.getoption("--update-golden"):
        GOLDEN.write_text(text)
    assert text == GOLDEN.read_text()


@pytest.mark.parametrize("resource", resources.ALL, ids=lambda r: r.id)
def test_the_table_knows_every_resource(resource):
    table = NAMESPACED if resource.namespaced else {**CLUSTER, "namespaces": ()}
    assert resource.id in table


@cases("roles, verb, resource, namespace, owner, expected", {
    "nobody may do anything": ({}, "get", "jobs.batch.volcano.sh", "a", None, False),
    "what belongs to nobody is not theirs": ({"a": "submitter"}, "delete", "jobs.batch.volcano.sh", "a", None, False),
    "an unknown verb": ({"*": "administrator"}, "fly", "pods", "a", None, False),
    "an unknown resource": ({"*": "administrator"}, "get", "unicorns", "a", None, False),
    "all namespaces need a role everywhere": ({"a": "operator"}, "list", "pods", "", None, False),
})  # fmt: skip
def test_decide(roles, verb, resource, namespace, owner, expected):
    grants = Grants("me", {place: Role(role) for place, role in roles.items()})
    assert decide(grants, verb, resource, namespace, owner) is expected


def test_who_has_no_name_owns_nothing():
    assert not decide(Grants("", {"a": Role.SUBMITTER}), "delete", "pods", "a", owner="")


def test_lists_are_limited_to_where_the_role_is_held():
    grants = Grants("me", {"a": Role.VIEWER, "b": Role.OPERATOR})
    assert places(grants, "pods") == places(grants, "namespaces") == {"a", "b"}
    assert places(grants, "secrets") == places(grants, "audit") == {"b"}
    assert places(grants, "queues.scheduling.volcano.sh") is places(Grants("me", {"*": Role.VIEWER}), "pods") is ALL
    assert places(Grants("me"), "nodes") == frozenset()
    assert needed("delete", "jobs.batch.volcano.sh") is Role.OPERATOR
    assert needed("create", "pods/nosuch") is None


@pytest.fixture
def custom(monkeypatch):
    """Two kinds that users added: crons in namespaces and crowns of the cluster."""
    crons = replace(resources.CONFIGMAPS, group="example.com", plural="crons", schema={"type": "object"})
    kinds = {each.id: each for each in (crons, replace(crons, plural="crowns", namespaced=False))}
    built_in = resources.by_id
    monkeypatch.setattr(resources, "by_id", lambda name: kinds.get(name) or built_in(name))


@pytest.mark.parametrize("verb", LETTER)
@pytest.mark.parametrize("role", Role)
@cases("kind, like, namespace", {
    "in namespaces": ("crons.example.com", "configmaps", "a"),
    "of the cluster": ("crowns.example.com", "priorityclasses.scheduling.k8s.io", ""),
    "a status": ("crons.example.com/status", "configmaps/status", "a"),
})  # fmt: skip
@pytest.mark.usefixtures("custom")
def test_kinds_that_users_add_are_for_whom_the_like_of_them_is(kind, like, namespace, role, verb):
    for held in ("a", "*"):
        grants = Grants("me", {held: role})
        for owner in ("me", "you"):
            expected = decide(grants, verb, like, namespace, owner)
            assert decide(grants, verb, kind, namespace, owner) is expected
        assert places(grants, kind, verb) == places(grants, like, verb)


roles = st.dictionaries(st.sampled_from(["a", "b", "*"]), st.sampled_from(Role))
questions = st.tuples(
    st.sampled_from(list(LETTER)), st.sampled_from(RESOURCES), st.sampled_from(["a", "b", ""]), st.sampled_from(["me", "you", None])
)  # fmt: skip


@given(roles, st.sampled_from(["a", "b", "*"]), questions)
def test_a_stronger_role_takes_nothing_away(held, place, question):
    ranks = list(Role)
    for weaker, stronger in pairwise(ranks):
        if decide(Grants("me", {**held, place: weaker}), *question):
            assert decide(Grants("me", {**held, place: stronger}), *question)


@given(roles, questions)
def test_whatever_is_allowed_somewhere_is_allowed_everywhere(held, question):
    if held and decide(Grants("me", held), *question):
        best = max(held.values(), key=list(Role).index)
        assert decide(Grants("me", {"*": best}), *question)
