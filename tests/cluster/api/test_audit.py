from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.access import audit
from cluster.access.audit import DAY_MS, MASK, Filters, changes
from cluster.access.roles import ALL
from cluster.models import AuditEntry
from tests.tables import cases


def env(name, value):
    return {"spec": {"env": [{"name": name, "value": value}]}}


@cases("old, new, expected", {
    "a value": ({"spec": {"a": 1}}, {"spec": {"a": 2}}, [("spec.a", 1, 2)]),
    "a new part": ({"spec": {}}, {"spec": {"a": {"b": 1}}}, [("spec.a", None, '{"b":1}')]),
    "a shorter list": ({"spec": {"a": [1, 2]}}, {"spec": {"a": [1]}}, [("spec.a[1]", 2, None)]),
    "inside a list": ({"spec": {"t": [{"r": 1}]}}, {"spec": {"t": [{"r": 3}]}}, [("spec.t[0].r", 1, 3)]),
    "a key with a dot": ({"metadata": {"labels": {"a.io/b": "x"}}}, {"metadata": {"labels": {}}},
        [("metadata.labels[a.io/b]", "x", None)]),
    "what the store marks is no change": ({"metadata": {"resourceVersion": "1", "generation": 1}, "status": {"x": 1}},
        {"metadata": {"resourceVersion": "2", "generation": 2}, "status": {}}, []),
    "a long value is cut": ({"spec": {"a": "x" * 500}}, {"spec": {"a": ""}}, [("spec.a", "x" * 199 + "…", "")]),
    "a secret variable": (env("DB_PASSWORD", "old"), env("DB_PASSWORD", "new"), [("spec.env[0].value", MASK, MASK)]),
    "a renamed variable": (env("MODE", "hunter2"), env("API_TOKEN", "hunter2"),
        [("spec.env[0].name", "MODE", "API_TOKEN")]),
    "a new secret variable": ({"spec": {}}, env("apiKey", "hunter2"),
        [("spec.env", None, '[{"name":"apiKey","value":"•••"}]')]),
    "a copy of the whole object": ({"metadata": {"annotations": {}}},
        {"metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"}}},
        [("metadata.annotations[kubectl.kubernetes.io/last-applied-configuration]", None, MASK)]),
    "a config map": ({"data": {"db-password": "a", "mode": "a"}}, {"data": {"db-password": "b", "mode": "b"}},
        [("data.db-password", MASK, MASK), ("data.mode", "a", "b")]),
})  # fmt: skip
def test_changes(old, new, expected):
    assert [(c["path"], c["old"], c["new"]) for c in changes(old, new)] == expected


def test_many_changes_end_with_how_many_more_there_are():
    found = changes({}, {f"f{n}": n for n in range(60)})
    assert len(found) == 51
    assert found[-1] == {"path": "", "old": None, "new": "and 10 more"}


secrets = st.dictionaries(st.sampled_from(["user", "password", "k"]), st.text("hunter2", min_size=9))


@given(secrets, secrets)
def test_no_data_of_a_secret_ever_shows(old, new):
    shown = changes({"data": old, "stringData": new, "x": 1}, {"data": new, "stringData": old, "x": 2}, secret=True)
    assert not any(value in str(shown) for value in [*old.values(), *new.values()])


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
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


@pytest.mark.django_db
def test_entries_are_filtered_and_paged_newest_first():
    for number in range(5):
        entry(at=number, name=f"pod-{number}", actor="alice" if number % 2 else "bob")
    page = audit.entries(Filters(namespaces=ALL), page=2, size=2)
    assert [row.name for row in page.entries] == ["pod-2", "pod-1"]
    assert (page.total, page.pages) == (5, 3)
    assert audit.entries(Filters(namespaces=ALL, actor="bob")).total == 3
    assert audit.entries(Filters(namespaces=ALL, since=1, until=3)).total == 2
    assert audit.entries(Filters(namespaces=ALL, text="POD-3")).total == 1


@pytest.mark.django_db
def test_a_reader_sees_the_namespaces_that_he_may_and_what_is_in_none_only_with_all():
    for place in ("a", "b", ""):
        entry(namespace=place)
    seen = audit.entries(Filters(namespaces=frozenset({"a", ""}))).entries
    assert [row.namespace for row in seen] == ["a"]
    assert audit.entries(Filters(namespaces=ALL)).total == 3
    assert audit.entries(Filters(namespaces=frozenset({"a"}), namespace="b")).total == 0


@pytest.mark.django_db
def test_old_rows_are_removed_and_hostile_texts_are_cut_and_cleaned(settings):
    settings.AUDIT_DAYS = 2
    entry(at=DAY_MS)
    entry(at=DAY_MS * 3, name="x" * 999, message="\0\udc80" + "m" * 9999)
    assert audit.prune(DAY_MS * 5) == 1
    row = AuditEntry.objects.get()
    assert (row.at, len(row.name), len(row.message)) == (DAY_MS * 3, 253, 1000)
