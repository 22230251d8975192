"""Readers of the log: what they get has no gaps, or they are told that it may have some."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from cluster.store import AllBut, Create, Delete, Patch, Single, Store, retention
from kube.errors import ApiError, Expired
from kube.resources import CONFIGMAPS, PODS
from tests.campaign import scaled
from tests.cluster.store.conftest import empty
from tests.cluster.store.forgetting import between_queries, forget, forget_elsewhere

DAY_MS = 24 * 3_600_000
OLD = 1000
NOW = OLD + DAY_MS + 1  # when all that was written at OLD is old
NAMES = st.sampled_from(["a", "b", "c"])
ONE = Single(CONFIGMAPS, "d", "b")
KINDS = st.sampled_from([None, (PODS,), (PODS, CONFIGMAPS), AllBut((CONFIGMAPS,)), (PODS, ONE), (ONE,)])


def pod(name, **fields):
    return Create(PODS, {"metadata": {"name": name, "namespace": "d"}, **fields})


def phase(name, value):
    return Patch(PODS, "d", name, {"status": {"phase": value}}, "status")


@pytest.fixture
def elsewhere(store, database, monkeypatch):
    monkeypatch.setattr(retention, "store", store)
    return lambda: forget_elsewhere(database, NOW)


@pytest.mark.parametrize("kinds", [None, (PODS,), (PODS, CONFIGMAPS)], ids=["all kinds", "one", "some"])
@pytest.mark.parametrize("previous", [False, True], ids=["plain", "with what was replaced"])
def test_what_retention_removes_while_the_log_is_read_is_no_silence(store, database, elsewhere, kinds, previous):
    store.write(pod("a"), pod("b"), now=OLD)
    store.write(Delete(PODS, "d", "a"), now=OLD)
    with between_queries(elsewhere, database), pytest.raises(Expired):
        store.changes(0, kinds, previous=previous)
    assert store.compacted() == 3


def test_a_state_that_is_being_read_outlives_retention(store, database, elsewhere):
    store.write(pod("a"), pod("b"), now=OLD)
    store.write(Delete(PODS, "d", "a"), now=OLD)
    with store.reading() as head:
        elsewhere()
        assert [change.revision for change in store.changes(0)] == [1, 2, 3]
    assert head == 3


def test_a_change_brings_what_it_replaced_to_who_asks(store):
    (first,) = store.write(pod("a"), now=OLD)
    (second,) = store.write(phase("a", "Running"), now=OLD)
    store.write(Delete(PODS, "d", "a"), pod("a"), now=OLD)
    changes = store.changes(0, previous=True)
    assert [(change.verb, change.previous) for change in changes] == [
        ("ADDED", None),
        ("MODIFIED", first.body),
        ("DELETED", second.body),
        ("ADDED", None),
    ]
    assert [change.previous for change in store.changes(0)] == [None] * 4


def test_what_the_first_change_after_a_readers_position_replaced_is_kept(store, monkeypatch):
    """Retention may remove what lies before a position, but not what changes after it replaced."""
    monkeypatch.setattr(retention, "store", store)
    (first,) = store.write(pod("a"), now=OLD)
    store.write(phase("a", "Running"), now=OLD + DAY_MS)
    forget(NOW)
    (change,) = store.changes(store.compacted(), previous=True)
    assert change.previous == first.body


class ReaderMachine(RuleBasedStateMachine):
    """Readers that come back now and then, while somebody writes and retention forgets.

    Model: every change that ever was, by revision, and what was forgotten.
    """

    database: str

    @initialize()
    def start(self):
        empty(self.database)
        self.store = retention.store = Store(self.database)
        self.now = OLD
        self.log = [None]
        self.positions = [0, 0]

    def write(self, write):
        self.now += 1000
        try:
            (stored,) = self.store.write(write, now=self.now)
        except ApiError:
            return
        # A deleted object is returned as it last was; a write that changes nothing leaves no trace.
        if isinstance(write, Delete) or stored.revision == len(self.log):
            self.log.append((stored.resource, stored.name))

    @rule(kind=st.sampled_from([PODS, CONFIGMAPS]), name=NAMES)
    def create(self, kind, name):
        self.write(Create(kind, {"metadata": {"name": name, "namespace": "d"}}))

    @rule(name=NAMES, value=st.sampled_from(["Pending", "Running"]))
    def change(self, name, value):
        self.write(phase(name, value))

    @rule(kind=st.sampled_from([PODS, CONFIGMAPS]), name=NAMES)
    def delete(self, kind, name):
        self.write(Delete(kind, "d", name))

    @rule(ago=st.integers(0, 8))
    def forget(self, ago):
        forget(self.now - ago * 1000 + DAY_MS)

    @rule(
        reader=st.integers(0, 1),
        kinds=KINDS,
        limit=st.integers(1, 10),
        previous=st.booleans(),
        meanwhile=st.one_of(st.none(), st.integers(0, 8)),
    )
    def read(self, reader, kinds, limit, previous, meanwhile):
        """Read on, perhaps while retention runs; who is told that it expired goes on from the head."""
        position = self.positions[reader]
        try:
            if meanwhile is None:
                found = self.store.changes(position, kinds, limit=limit, previous=previous)
            else:
                now = self.now - meanwhile * 1000 + DAY_MS
                with between_queries(lambda: forget_elsewhere(self.database, now), self.database):
                    found = self.store.changes(position, kinds, limit=limit, previous=previous)
        except Expired:
            assert position < self.store.compacted()
            self.positions[reader] = self.store.revision()
            return
        expected = [
            (revision, *logged)
            for revision, logged in enumerate(self.log)
            if revision > position and (kinds is None or _is_of(kinds, *logged))
        ]
        assert [(c.revision, c.resource, c.name) for c in found] == expected[:limit]
        if previous:
            assert all((change.previous is None) == (change.verb == "ADDED") for change in found)
        if found:
            self.positions[reader] = found[-1].revision


def _is_of(kinds, resource, name):
    if isinstance(kinds, AllBut):
        return resource in kinds
    return any(
        (each.resource.id, each.name) == (resource, name) if isinstance(each, Single) else each.id == resource
        for each in kinds
    )


@pytest.mark.campaign
def test_a_reader_gets_all_that_follows_or_hears_that_it_expired(database, django_db_blocker, monkeypatch):
    monkeypatch.setattr(retention, "store", None)
    ReaderMachine.database = database
    with django_db_blocker.unblock():
        run_state_machine_as_test(
            ReaderMachine,
            settings=settings(
                max_examples=scaled(40, 200),
                stateful_step_count=30,
                deadline=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
