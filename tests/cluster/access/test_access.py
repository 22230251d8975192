"""Who may what: the table of roles, the roles that somebody has, how a refusal reads, and what the audit tells of it all."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from django.contrib.auth.models import AnonymousUser, Group
from django.db import connection
from hypothesis import given
from hypothesis import strategies as st

from cluster import access
from cluster.access import Actor, audit
from cluster.access.audit import DAY_MS, Filters, changes
from cluster.access.roles import ALL, CLUSTER, LETTER, NAMESPACED, Grants, Role, decide, namespaces_of, needed
from cluster.models import AuditEntry, RoleBinding
from kube import resources
from kube.errors import Forbidden
from kube.resources import JOBS
from tests.blocks import blocks
from tests.cluster.api.conftest import make_user
from tests.cluster.objects import as_yaml, of_values
from tests.tables import cases

pytestmark = pytest.mark.django_db
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
        for label, held_in in PLACES.items():
            for role in Role:
                row = " ".join(f"{verb}={verdict(role, verb, resource, held_in)}" for verb in LETTER)
                yield f"  {label}, {role}: {row}"


def test_every_role_may_do_exactly_what_the_recorded_matrix_says(request):
    text = "\n".join(matrix()) + "\n"
    if request.config.getoption("--update-golden"):
        GOLDEN.write_text(text)
    assert text == GOLDEN.read_text()
    for resource in resources.ALL:
        assert resource.id in (NAMESPACED if resource.namespaced else {**CLUSTER, "namespaces": ()})


def test_nobody_may_do_what_nobody_named_or_where_it_takes_a_role_everywhere():
    assert not decide(Grants("me", {}), "get", JOBS.id, "a", None)
    submitter, administrator = Grants("me", {"a": Role.SUBMITTER}), Grants("me", {"*": Role.ADMINISTRATOR})
    assert not decide(submitter, "delete", JOBS.id, "a", None), "what belongs to nobody is not theirs"
    assert not decide(Grants("", {"a": Role.SUBMITTER}), "delete", "pods", "a", owner=""), (
        "who has no name owns nothing"
    )
    assert not decide(administrator, "fly", "pods", "a", None)
    assert not decide(administrator, "get", "unicorns", "a", None)
    assert not decide(Grants("me", {"a": Role.OPERATOR}), "list", "pods", "", None)


def test_lists_are_limited_to_where_the_role_is_held():
    grants = Grants("me", {"a": Role.VIEWER, "b": Role.OPERATOR})
    assert namespaces_of(grants, "pods") == namespaces_of(grants, "namespaces") == {"a", "b"}
    assert namespaces_of(grants, "secrets") == namespaces_of(grants, "audit") == {"b"}
    assert (
        namespaces_of(grants, "queues.scheduling.volcano.sh")
        is namespaces_of(Grants("me", {"*": Role.VIEWER}), "pods")
        is ALL
    )
    assert namespaces_of(Grants("me"), "nodes") == frozenset()
    assert needed("delete", "jobs.batch.volcano.sh") is Role.OPERATOR
    assert needed("create", "pods/nosuch") is None


@pytest.fixture
def custom(monkeypatch):
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
        assert namespaces_of(grants, kind, verb) == namespaces_of(grants, like, verb)


roles = st.dictionaries(st.sampled_from(["a", "b", "*"]), st.sampled_from(Role))
questions = st.tuples(
    st.sampled_from(list(LETTER)), st.sampled_from(RESOURCES), st.sampled_from(["a", "b", ""]), st.sampled_from(["me", "you", None])
)  # fmt: skip


@given(roles, st.sampled_from(["a", "b", "*"]), questions)
def test_a_stronger_role_takes_nothing_away(held, namespace, question):
    ranks = list(Role)
    for weaker, stronger in pairwise(ranks):
        if decide(Grants("me", {**held, namespace: weaker}), *question):
            assert decide(Grants("me", {**held, namespace: stronger}), *question)


@given(roles, questions)
def test_whatever_is_allowed_somewhere_is_allowed_everywhere(held, question):
    if held and decide(Grants("me", held), *question):
        best = max(held.values(), key=list(Role).index)
        assert decide(Grants("me", {"*": best}), *question)


# The roles that somebody has.


def test_superusers_and_the_system_may_do_everything_and_somebody_unknown_nothing(django_assert_num_queries):
    root = access.for_user(make_user("root", is_superuser=True))
    assert access.allowed(root, "delete", "namespaces", "x")
    assert access.namespaces(root, JOBS) is ALL
    inactive = access.for_user(make_user("gone", is_superuser=True, is_active=False))
    assert access.grants(inactive).roles == {}
    unknown = access.for_user(AnonymousUser())
    with django_assert_num_queries(0):
        assert access.allowed(access.SYSTEM, "update", "pods/binding", "default")
        assert access.namespaces(access.SYSTEM, "pods") is ALL
        assert not access.allowed(unknown, "list", JOBS, "default")
        assert access.namespaces(unknown, JOBS) == frozenset()


def test_a_request_has_one_actor_and_without_an_account_the_groups_that_are_vouched_for_count(rf):
    request = rf.get("/")
    request.user = make_user("alice")
    assert access.of(request) is access.of(request)
    request.user = make_user("bob")
    assert access.of(request).name == "bob"
    RoleBinding.objects.create(group=Group.objects.create(name="ci"), namespace="a", role="submitter")
    assert access.allowed(Actor("robot", ("ci",)), "create", JOBS, "a")
    assert not access.allowed(Actor("robot", ("others",)), "create", JOBS, "a")


@pytest.mark.parametrize("where", ["here", "by another process"])
def test_roles_are_read_in_one_query_and_kept_until_they_are_taken_away(
    person, monkeypatch, django_assert_num_queries, django_capture_on_commit_callbacks, where
):
    actor = person("alice", default="operator")
    with django_assert_num_queries(1):
        for verb in ("get", "create", "delete"):
            assert access.allowed(actor, verb, JOBS, "default")
    if where == "here":
        RoleBinding.objects.get().delete()
    else:
        with connection.cursor() as cursor:  # no signal reaches this process
            cursor.execute("DELETE FROM cluster_rolebinding")
        assert access.allowed(actor, "delete", JOBS, "default")
        monkeypatch.setattr(actor._cached, "until", 0.0)
    assert not access.allowed(actor, "delete", JOBS, "default")


OPERATOR = "It takes the role operator in default; ask an administrator for it."
EVERYWHERE = "It takes the role administrator in all namespaces; ask an administrator for it."


@cases("resource, namespace, name, refused", {
    "an object": (JOBS, "default", "x", ('jobs.batch.volcano.sh "x"', '"jobs" in API group "batch.volcano.sh"', OPERATOR)),
    "a kind": ("pods", "default", "", ("pods", '"pods" in API group ""', OPERATOR)),
    "the cluster": ("nodes", "", "n", ('nodes "n"', '"nodes" in API group ""', EVERYWHERE)),
    "what no role may": ("pods/binding", "default", "p", ('pods "p"', '"pods/binding" in API group ""', "Nobody may do this by hand.")),
})  # fmt: skip
def test_a_refusal_says_who_what_where_and_what_it_takes(person, resource, namespace, name, refused):
    what, kind, needed = refused
    where = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
    with pytest.raises(Forbidden) as caught:
        access.require(person("eve"), "delete", resource, namespace, name)
    assert caught.value.message == f'{what} is forbidden: User "eve" cannot delete resource {kind} {where}. {needed}'


def described(old, new):
    return [f"{each['path']}: {as_yaml(each['old'])} → {as_yaml(each['new'])}" for each in changes(old, new)]


@blocks("audit", folder="cluster")
def test_what_is_told_of_a_change(block, golden):
    golden(block, of_values(described))


def test_many_changes_end_with_how_many_more_there_are():
    found = changes({}, {f"f{n}": n for n in range(60)})
    assert len(found) == 51
    assert found[-1] == {"path": "", "old": None, "new": "and 10 more"}


# The audit.

secrets = st.dictionaries(st.sampled_from(["user", "password", "k"]), st.text("hunter2", min_size=9))


@given(secrets, secrets)
def test_no_data_of_a_secret_ever_shows(old, new):
    diff = changes({"data": old, "stringData": new, "x": 1}, {"data": new, "stringData": old, "x": 2}, secret=True)
    assert not any(value in str(diff) for value in [*old.values(), *new.values()])


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text(max_size=4), json_values), st.dictionaries(st.text(max_size=4), json_values))
def test_equal_objects_have_no_changes_and_different_ones_some(old, new):
    assert changes(old, old) == []
    ignored = ("status", "metadata")
    old, new = ({k: v for k, v in o.items() if k not in ignored} for o in (old, new))
    dropped_null = {k for k in old.keys() ^ new.keys() if old.get(k) is None and new.get(k) is None}
    if old != new and not dropped_null:
        assert changes(old, new)


def entry(**values):
    usual = {"at": 1, "actor": "alice", "verb": "create", "resource": "pods", "namespace": "a", "name": "x"}
    audit.record(audit.Deed(**{**usual, "outcome": "done", **values}))


def test_entries_are_filtered_and_paged_newest_first_and_of_the_namespaces_that_one_may_see():
    for number in range(5):
        entry(at=number, name=f"pod-{number}", actor="alice" if number % 2 else "bob")
    page = audit.entries(Filters(namespaces=ALL), page=2, size=2)
    assert [row.name for row in page.entries] == ["pod-2", "pod-1"]
    assert (page.total, page.pages) == (5, 3)
    assert audit.entries(Filters(namespaces=ALL, actor="bob")).total == 3
    assert audit.entries(Filters(namespaces=ALL, since=1, until=3)).total == 2
    assert audit.entries(Filters(namespaces=ALL, text="POD-3")).total == 1
    for namespace in ("b", ""):
        entry(namespace=namespace)
    assert {row.namespace for row in audit.entries(Filters(namespaces=frozenset({"a", ""}))).entries} == {"a"}
    assert audit.entries(Filters(namespaces=ALL)).total == 7, "what is in no namespace is seen only with all"
    assert audit.entries(Filters(namespaces=frozenset({"a"}), namespace="b")).total == 0


def test_old_rows_are_removed_and_hostile_texts_are_cut_and_cleaned(settings):
    settings.AUDIT_DAYS = 2
    entry(at=DAY_MS)
    entry(at=DAY_MS * 3, name="x" * 999, message="\0\udc80" + "m" * 9999)
    assert audit.prune(DAY_MS * 5) == 1
    row = AuditEntry.objects.get()
    assert (row.at, len(row.name), len(row.message)) == (DAY_MS * 3, 253, 1000)
