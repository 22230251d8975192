"""Lists against a model of every past state: whatever is written, listed and forgotten in between, pages are exact."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import hypothesis.strategies as st
import psycopg
import pytest
from django.db import connections
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, multiple, rule, run_state_machine_as_test

from apiserver.http.query import ListOptions
from apiserver.objects import listing
from cluster.store import Create, Delete, Group, Patch, Store, log, pages, retention
from kube import selector
from kube.errors import AlreadyExists, ApiError, Expired, NotFound, Timeout
from kube.resources import CONFIGMAPS, PODS, PRIORITY_CLASSES
from proof.harness.waiting import HANG_S
from tests.campaign import scaled
from tests.cluster.store.conftest import database_opened, empty
from volcano_ui import env

HOURS_MS = 24 * 3_600_000
# Bytewise: B < Z < a < a-b < a.b < a0 < ab < ä; by locale: a < a0 < ab < a-b < a.b < ä < B < Z.
NAMES = st.sampled_from(["a", "B", "a-b", "a.b", "a0", "ab", "Z", "ä"])
NAMESPACES = st.sampled_from(["a", "a-b", "a0", "B"])
KINDS = st.sampled_from([PODS, PODS, CONFIGMAPS, PRIORITY_CLASSES])
APPS = st.sampled_from(["x", "y"])
PHASES = st.sampled_from(["Pending", "Running"])
LIMITS = st.integers(1, 5)
SELECTORS = st.one_of(
    st.just(("", "")),
    st.sampled_from(
        [
            ("app=x", ""),
            ("app!=x", ""),
            ("", "metadata.name=a-b"),
            ("", "metadata.name!=a"),
            ("", "metadata.namespace=a"),
            ("", "status.phase=Running"),
            ("app=y", "status.phase!=Running"),
            ("", "metadata.name=a,metadata.name=B"),
        ]
    ),
)


@dataclass(frozen=True)
class Item:
    """What the model knows of an object."""

    kind: str
    namespace: str
    name: str
    app: str
    phase: str
    revision: int

    @property
    def key(self):
        return f"{self.kind}/{self.namespace}/{self.name}".encode()

    @property
    def shown(self):
        return (self.namespace, self.name, self.app, self.phase, self.revision)


@dataclass(frozen=True)
class Listed:
    """A list that was begun: what it asks for, of which state it is, and how far it came."""

    kind: object
    namespace: str
    selectors: tuple[str, str]
    at: int
    token: str
    last: bytes


def shown(stored):
    obj = stored.object
    metadata = obj["metadata"]
    assert (stored.namespace, stored.name) == (metadata.get("namespace") or "", metadata["name"])
    assert stored.revision == int(metadata["resourceVersion"])
    phase = obj.get("status", {}).get("phase", "")
    return (stored.namespace, stored.name, metadata["labels"]["app"], phase, stored.revision)


def chosen(item, selectors):
    values = {
        "metadata.name": item.name,
        "metadata.namespace": item.namespace,
        "status.phase": item.phase,
        "app": item.app,
    }
    for term in filter(None, ",".join(selectors).split(",")):
        path, _, value = term.partition("!=" if "!=" in term else "=")
        if (values[path] == value) is ("!=" in term):
            return False
    return True


class ListMachine(RuleBasedStateMachine):
    """Model: the whole state after every revision."""

    database: str
    begun = Bundle("begun")

    @initialize()
    def start(self):
        empty(self.database)
        self.store = listing.store
        self.now = 0
        self.states: list[dict[bytes, Item]] = [{}]
        self.times = [0]
        self.compacted = 0

    @property
    def head(self):
        return len(self.states) - 1

    def note(self, key, item):
        state = dict(self.states[-1])
        if item is None:
            del state[key]
        else:
            state[key] = replace(item, revision=self.head + 1)
        self.states.append(state)
        self.times.append(self.now)

    def write(self, *writes):
        self.now += 1000
        return self.store.commit([Group(writes)], now=self.now)[0]

    def expected(self, at, kind, namespace, selectors, after=b""):
        items = sorted(self.states[at].values(), key=lambda item: item.key)
        return [
            item
            for item in items
            if item.kind == kind.id
            and namespace in ("", item.namespace)
            and item.key > after
            and chosen(item, selectors)
        ]

    def list(self, kind, namespace, selectors, **options):
        labels, fields = selectors
        return listing.find(
            kind,
            namespace,
            ListOptions(
                labels=selector.parse_labels(labels) if labels else None,
                fields=selector.parse_fields(fields) if fields else None,
                **options,
            ),
        )

    def check(self, page, at, kind, namespace, selectors, limit, after=b""):
        """Compare a page with the model; return the list's next step, if it has one."""
        expected = self.expected(at, kind, namespace, selectors, after)
        cut = expected[:limit] if limit else expected
        assert [shown(stored) for stored in page.items] == [item.shown for item in cut]
        assert page.revision == at
        assert bool(page.token) == (len(cut) < len(expected))
        if not page.token:
            return multiple()
        last = cut[-1].key
        behind = self.expected(self.head, kind, namespace, ("", ""), last)
        assert page.remaining == (None if any(selectors) else max(len(behind), 1))
        return Listed(kind, namespace, selectors, at, page.token, last)

    @rule(kind=KINDS, namespace=NAMESPACES, name=NAMES, app=APPS, phase=PHASES)
    def create(self, kind, namespace, name, app, phase):
        item = Item(kind.id, namespace if kind.namespaced else "", name, app, phase if kind is PODS else "", 0)
        outcome = self.write(self.creation(kind, item))
        assert isinstance(outcome, AlreadyExists) == (item.key in self.states[-1])
        if not isinstance(outcome, ApiError):
            # A status is set by a write of its own.
            self.note(item.key, replace(item, phase=""))
            if kind is PODS:
                self.change(kind, namespace, name, app, phase)

    def creation(self, kind, item):
        metadata = {"name": item.name, "labels": {"app": item.app}}
        if kind.namespaced:
            metadata["namespace"] = item.namespace
        return Create(kind, {"metadata": metadata})

    @rule(kind=KINDS, namespace=NAMESPACES, name=NAMES, app=APPS, phase=PHASES)
    def change(self, kind, namespace, name, app, phase):
        namespace = namespace if kind.namespaced else ""
        writes = [Patch(kind, namespace, name, {"metadata": {"labels": {"app": app}}})]
        if kind is PODS:
            writes.append(Patch(kind, namespace, name, {"status": {"phase": phase}}, "status"))
        outcome = self.write(*writes)
        key = f"{kind.id}/{namespace}/{name}".encode()
        known = self.states[-1].get(key)
        assert isinstance(outcome, NotFound) == (known is None)
        if known is None:
            return
        if known.app != app:
            self.note(key, replace(known, app=app))
        if kind is PODS and known.phase != phase:
            self.note(key, replace(known, app=app, phase=phase))

    @rule(kind=KINDS, namespace=NAMESPACES, name=NAMES, again=st.booleans())
    def delete(self, kind, namespace, name, again):
        namespace = namespace if kind.namespaced else ""
        item = Item(kind.id, namespace, name, "x", "", 0)
        writes = [Delete(kind, namespace, name), *([self.creation(kind, item)] if again else [])]
        outcome = self.write(*writes)
        assert isinstance(outcome, NotFound) == (item.key not in self.states[-1])
        if not isinstance(outcome, ApiError):
            self.note(item.key, None)
            if again:
                self.note(item.key, item)

    @rule(kind=KINDS, apps=st.lists(st.tuples(NAMESPACES, NAMES, APPS), min_size=5, max_size=20))
    def create_many(self, kind, apps):
        for namespace, name, app in apps:
            self.create(kind, namespace, name, app, "Running")

    @rule(ago=st.integers(0, 10))
    def forget(self, ago):
        """Let retention remove all but the newest changes."""
        oldest = max(self.now - ago * 1000, 0)
        retention.run(time.monotonic() + HANG_S, now=oldest + HOURS_MS)
        old = [revision for revision, at in enumerate(self.times) if revision and at < oldest]
        self.compacted = max([self.compacted, *old])
        assert self.store.compacted() == self.compacted

    @rule(target=begun, kind=KINDS, namespace=st.one_of(st.just(""), NAMESPACES), selectors=SELECTORS, limit=LIMITS)
    def begin(self, kind, namespace, selectors, limit):
        namespace = namespace if kind.namespaced else ""
        page = self.list(kind, namespace, selectors, limit=limit)
        return self.check(page, self.head, kind, namespace, selectors, limit)

    @rule(target=begun, listed=begun, limit=st.integers(0, 5))
    def go_on(self, listed, limit):
        """A token may be used again, whatever was written meanwhile."""
        asked = (listed.kind, listed.namespace, listed.selectors)
        try:
            page = self.list(*asked, limit=limit, continue_=listed.token)
        except Expired as error:
            assert listed.at < self.compacted
            fresh = error.status()["metadata"]["continue"]
            page = self.list(*asked, limit=limit, continue_=fresh)
            return self.check(page, self.head, *asked, limit, listed.last)
        assert listed.at >= self.compacted
        return self.check(page, listed.at, *asked, limit, listed.last)

    @rule(
        target=begun,
        kind=KINDS,
        namespace=st.one_of(st.just(""), NAMESPACES),
        selectors=SELECTORS,
        limit=st.integers(0, 5),
        ago=st.integers(-1, 30),
    )
    def begin_at(self, kind, namespace, selectors, limit, ago):
        namespace = namespace if kind.namespaced else ""
        at = max(self.head - ago, 1)
        options = {"limit": limit, "resource_version": str(at), "match": "Exact"}
        if at > self.head:
            with pytest.raises(Timeout):
                self.list(kind, namespace, selectors, **options)
            return multiple()
        if at < self.compacted:
            with pytest.raises(Expired, match="The resourceVersion for the provided list is too old"):
                self.list(kind, namespace, selectors, **options)
            return multiple()
        page = self.list(kind, namespace, selectors, **options)
        return self.check(page, at, kind, namespace, selectors, limit)

    @rule(kind=KINDS, selectors=SELECTORS, ago=st.integers(0, 30))
    def not_older_than(self, kind, selectors, ago):
        """A list without a limit may be newer than what it names."""
        page = self.list(kind, "", selectors, resource_version=str(max(self.head - ago, 0)))
        self.check(page, self.head, kind, "", selectors, 0)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def ordered_database(request, tmp_path_factory, django_db_blocker):
    """The alias of a database whose own order of text is a language's, where it can have one."""
    alias = f"pages_{request.param}"
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("DATABASE_URL", raising=False)
        if request.param == "postgresql":
            url = request.getfixturevalue("postgres_url")
            patch.setenv("DATABASE_URL", url)
        values = env.database(tmp_path_factory.mktemp("pages") / "db.sqlite3")
    if request.param == "postgresql":
        values["NAME"] = create_database(url, alias)
    with django_db_blocker.unblock(), database_opened(alias, values):
        yield alias


def create_database(url, name):
    """Create a database that orders text as English does; return its name."""
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
    run_state_machine_as_test(
        ListMachine,
        settings=hypothesis_settings(
            max_examples=scaled(25, 100), stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )


def test_a_token_outlives_what_an_old_object_was(lists):
    """Retention keeps the whole state of every revision that is young enough, as a compaction of etcd does."""
    empty(lists)
    store, now = listing.store, 2 * HOURS_MS
    for name in ("a", "b", "c"):
        store.write(Create(CONFIGMAPS, {"metadata": {"name": name, "namespace": "d"}}), now=1000)
    first = listing.find(CONFIGMAPS, "d", ListOptions(limit=1))
    store.write(Patch(CONFIGMAPS, "d", "b", {"data": {"new": "1"}}), now=now)
    store.write(Delete(CONFIGMAPS, "d", "c"), now=now)
    retention.run(time.monotonic() + HANG_S, now=now + 1000)
    assert store.compacted() == 3
    rest = listing.find(CONFIGMAPS, "d", ListOptions(continue_=first.token))
    assert [(stored.name, "data" in stored.object) for stored in rest.items] == [("b", False), ("c", False)]


def test_a_list_reads_from_where_it_goes_on(lists):
    """Neither database looks at more objects than a page has: keys have an index in the order of lists."""
    where, params = pages._Span(listing.store, PODS, "", "pods/a/x", {}).where()
    text = f"SELECT o.* FROM cluster_object o WHERE {where} ORDER BY o.key LIMIT 3"
    with connections[lists].cursor() as cursor:
        if connections[lists].vendor == "sqlite":
            cursor.execute(f"EXPLAIN QUERY PLAN {text}", params)
        else:
            for what in ("seqscan", "bitmapscan", "sort"):  # of a small table all of it is read and sorted
                cursor.execute(f"SET enable_{what} = off")
            cursor.execute(f"EXPLAIN {text}", params)
        plan = str(cursor.fetchall())
    assert "key>" in plan or "Index Scan using cluster_object_pkey" in plan
    assert "B-TREE" not in plan
    assert "Sort" not in plan


@pytest.mark.parametrize(("kinds", "index"), [([PODS], True), ([PODS, CONFIGMAPS], False)], ids=["one", "several"])
def test_sqlite_reads_the_log_in_its_order(lists, kinds, index):
    """One kind has its index; of several the log is read until there are enough, and nothing is sorted."""
    if connections[lists].vendor != "sqlite":
        pytest.skip("PostgreSQL chooses by its statistics")
    where, params = log._of_kinds(kinds, lists)
    text = f"SELECT * FROM cluster_change c WHERE c.revision > 5 AND {where} ORDER BY c.revision LIMIT 3"
    with connections[lists].cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {text}", params)
        plan = str(cursor.fetchall())
    assert ("change_kind" in plan) is index
    assert "B-TREE" not in plan
