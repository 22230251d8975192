"""Lists against a model of every past state: whatever is written, listed and forgotten in between, pages are exact."""

from __future__ import annotations

import time
from typing import NamedTuple

import hypothesis.strategies as st
import psycopg
import pytest
from django.db import connections
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, multiple, rule

from apiserver.http import listing
from apiserver.http.query import ListOptions
from cluster.runtime import retention
from cluster.store import Create, Delete, Group, Patch, Store, log, pages
from kube import selector
from kube.errors import Expired, Timeout
from kube.resources import CONFIGMAPS, PODS, PRIORITY_CLASSES
from proof.harness.waiting import HANG_S
from tests import campaign
from tests.builders import of
from tests.cluster.store.conftest import each_database, empty

HOURS_MS = 24 * 3_600_000
# Bytewise: B < Z < a < a-b < a.b < a0 < ab < ä; by locale: a < a0 < ab < a-b < a.b < ä < B < Z.
NAMES = st.sampled_from(["a", "B", "a-b", "a.b", "a0", "ab", "Z", "ä"])
NAMESPACES = st.sampled_from(["a", "a-b", "a0", "B"])
PLACES = st.one_of(st.just(""), NAMESPACES)
KINDS = st.sampled_from([PODS, PODS, CONFIGMAPS, PRIORITY_CLASSES])
APPS = st.sampled_from(["x", "y"])
PHASES = st.sampled_from(["Pending", "Running"])
NUMBERED = st.integers(0, 5)  # 0 is no limit
SELECTORS = st.sampled_from([
    *[("", "")] * 8, ("app=x", ""), ("app!=x", ""), ("", "metadata.name=a-b"), ("", "metadata.name!=a"),
    ("", "metadata.namespace=a"), ("", "status.phase=Running"), ("app=y", "status.phase!=Running"),
    ("", "metadata.name=a,metadata.name=B"),
])  # fmt: skip


class Listed(NamedTuple):
    """A list that was begun: what it asks for, of which state it is, and how far it came."""

    query: tuple
    at: int
    token: str
    last: bytes


def key(row):
    return f"{row.resource}/{row.namespace}/{row.name}".encode()


def creation(kind, namespace, name, app):
    return Create(kind, of(kind, name, labels={"app": app}, namespace=namespace if kind.namespaced else None))


def is_selected(obj, selectors):
    about = obj["metadata"]
    values = {
        "metadata.name": about["name"],
        "metadata.namespace": about.get("namespace", ""),
        "app": about["labels"]["app"],
    }
    values["status.phase"] = obj.get("status", {}).get("phase", "")
    terms = [term.rpartition("=") for term in filter(None, ",".join(selectors).split(","))]
    return all((values[path.rstrip("!")] == value) is not path.endswith("!") for path, _, value in terms)


class ListMachine(RuleBasedStateMachine):
    """Model: every row of the log, from which the state at each revision follows."""

    database: str
    begun = Bundle("begun")

    @initialize()
    def start(self):
        empty(self.database)
        self.store = listing.store
        self.now = self.compacted = 0
        self.log, self.times = [], [0]

    @property
    def head(self):
        return len(self.log)

    def write(self, *writes):
        self.now += 1000
        self.store.commit([Group(writes)], now=self.now)
        new = self.store.changes(self.head)
        self.log += new
        self.times += [self.now] * len(new)

    def expected(self, at, kind, namespace, selectors, after=b""):
        state = {key(row): row for row in self.log[:at] if row.resource == kind.id and namespace in ("", row.namespace)}
        rows = [row for at, row in sorted(state.items()) if at > after and row.verb != "DELETED"]
        return [row for row in rows if is_selected(row.object, selectors)]

    def list(self, kind, namespace, selectors, **options):
        labels, fields = selectors
        labels = selector.parse_labels(labels) if labels else None
        fields = selector.parse_fields(fields) if fields else None
        return listing.find(kind, namespace, ListOptions(labels=labels, fields=fields, **options))

    def check(self, page, at, query, limit, after=b""):
        """Compare a page with the model; return the list's next step, if it has one."""
        expected = self.expected(at, *query, after)
        cut = expected[:limit] if limit else expected
        assert [(key(each), each.revision, each.body) for each in page.items] == [
            (key(row), row.revision, row.body) for row in cut
        ]
        assert page.revision == at
        assert bool(page.token) == (len(cut) < len(expected))
        if not page.token:
            return multiple()
        last = key(cut[-1])
        kind, namespace, selectors = query
        behind = self.expected(self.head, kind, namespace, ("", ""), last)
        assert page.remaining == (None if any(selectors) else max(len(behind), 1))
        return Listed(query, at, page.token, last)

    @rule(kind=KINDS, namespace=NAMESPACES, name=NAMES, app=APPS)
    def create(self, kind, namespace, name, app):
        self.write(creation(kind, namespace, name, app))

    @rule(kind=KINDS, namespace=NAMESPACES, name=NAMES, app=APPS, phase=PHASES)
    def change(self, kind, namespace, name, app, phase):
        object_key = (kind, namespace if kind.namespaced else "", name)
        status = [Patch(*object_key, {"status": {"phase": phase}}, "status")] if kind is PODS else []
        self.write(Patch(*object_key, {"metadata": {"labels": {"app": app}}}), *status)

    @rule(kind=KINDS, namespace=NAMESPACES, name=NAMES, again=st.booleans())
    def delete(self, kind, namespace, name, again):
        more = [creation(kind, namespace, name, "x")] if again else []
        self.write(Delete(kind, namespace if kind.namespaced else "", name), *more)

    @rule(kind=KINDS, apps=st.lists(st.tuples(NAMESPACES, NAMES, APPS), min_size=5, max_size=20))
    def create_many(self, kind, apps):
        for each in apps:
            self.create(kind, *each)

    @rule(ago=st.integers(0, 10))
    def forget(self, ago):
        oldest = max(self.now - ago * 1000, 0)
        retention.run(time.monotonic() + HANG_S, now=oldest + HOURS_MS)
        old = [revision for revision, at in enumerate(self.times) if revision and at < oldest]
        self.compacted = max([self.compacted, *old])
        assert self.store.compacted() == self.compacted

    @rule(target=begun, kind=KINDS, namespace=PLACES, selectors=SELECTORS, limit=st.integers(1, 5))
    def begin(self, kind, namespace, selectors, limit):
        query = kind, namespace if kind.namespaced else "", selectors
        return self.check(self.list(*query, limit=limit), self.head, query, limit)

    @rule(target=begun, listed=begun, limit=NUMBERED)
    def go_on(self, listed, limit):
        """A token may be used again, whatever was written meanwhile."""
        try:
            page = self.list(*listed.query, limit=limit, continue_=listed.token)
        except Expired as error:
            assert listed.at < self.compacted
            fresh = error.status()["metadata"]["continue"]
            page = self.list(*listed.query, limit=limit, continue_=fresh)
            return self.check(page, self.head, listed.query, limit, listed.last)
        assert listed.at >= self.compacted
        return self.check(page, listed.at, listed.query, limit, listed.last)

    @rule(target=begun, kind=KINDS, namespace=PLACES, selectors=SELECTORS, limit=NUMBERED, ago=st.integers(-1, 30))
    def begin_at(self, kind, namespace, selectors, limit, ago):
        query = kind, namespace if kind.namespaced else "", selectors
        at = max(self.head - ago, 1)
        options = {"limit": limit, "resource_version": str(at), "match": "Exact"}
        if at > self.head:
            with pytest.raises(Timeout):
                self.list(*query, **options)
            return multiple()
        if at < self.compacted:
            with pytest.raises(Expired, match="The resourceVersion for the provided list is too old"):
                self.list(*query, **options)
            return multiple()
        return self.check(self.list(*query, **options), at, query, limit)

    @rule(kind=KINDS, selectors=SELECTORS, ago=st.integers(0, 30))
    def not_older_than(self, kind, selectors, ago):
        """A list without a limit may be newer than what it names."""
        page = self.list(kind, "", selectors, resource_version=str(max(self.head - ago, 0)))
        self.check(page, self.head, (kind, "", selectors), 0)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def ordered_database(request, tmp_path_factory, django_db_blocker):
    """The alias of a database whose own order of text is a language's, where it can have one."""
    with each_database(request, tmp_path_factory, django_db_blocker, "pages", create_database) as alias:
        yield alias


def create_database(url, name):
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name}")
        connection.execute(f"CREATE DATABASE {name} TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en-US'")
    return name


@pytest.fixture
def lists(ordered_database, monkeypatch, settings, django_db_blocker):
    """Lists and retention on this database, which read a few objects at a time."""
    store = Store(ordered_database)
    monkeypatch.setattr(listing, "store", store)
    monkeypatch.setattr(retention, "store", store)
    monkeypatch.setattr(retention, "BATCH", 4)
    monkeypatch.setattr(pages, "CHUNK", 3)
    settings.HISTORY_HOURS = 24
    with django_db_blocker.unblock():
        yield ordered_database


@pytest.mark.campaign
def test_lists_are_exact_whatever_happens_between_their_pages(lists):
    ListMachine.database = lists
    campaign.play(ListMachine, 10, 100, steps=40)


def plan(database, text, params):
    with connections[database].cursor() as cursor:
        if connections[database].vendor == "sqlite":
            cursor.execute(f"EXPLAIN QUERY PLAN {text}", params)
        else:
            for what in ("seqscan", "bitmapscan", "sort"):  # of a small table all of it is read and sorted
                cursor.execute(f"SET enable_{what} = off")
            cursor.execute(f"EXPLAIN {text}", params)
        return str(cursor.fetchall())


def test_a_list_reads_from_where_it_goes_on(lists):
    """Neither database looks at more objects than a page has: keys have an index in the order of lists."""
    where, params = pages._Span(listing.store, PODS, "", "pods/a/x", {}).where()
    found = plan(lists, f"SELECT o.* FROM cluster_object o WHERE {where} ORDER BY o.key LIMIT 3", params)
    assert "key>" in found or "Index Scan using cluster_object_pkey" in found
    assert "B-TREE" not in found
    assert "Sort" not in found


@pytest.mark.parametrize(("kinds", "index"), [([PODS], True), ([PODS, CONFIGMAPS], False)], ids=["one", "several"])
def test_sqlite_reads_the_log_in_its_order(lists, kinds, index):
    """One kind has its index; of several the log is read until there are enough, and nothing is sorted."""
    if connections[lists].vendor != "sqlite":
        pytest.skip("PostgreSQL chooses by its statistics")
    where, params = log._of_kinds(kinds, lists)
    text = f"SELECT * FROM cluster_change c WHERE c.revision > 5 AND {where} ORDER BY c.revision LIMIT 3"
    found = plan(lists, text, params)
    assert ("change_kind" in found) is index
    assert "B-TREE" not in found
