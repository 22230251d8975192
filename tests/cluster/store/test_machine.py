"""The store against a dictionary: any sequence of writes gives the same objects, versions, owners and log."""

from __future__ import annotations

import copy
import time
from itertools import groupby
from random import Random

import hypothesis.strategies as st
import pytest
from django.db import connections
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from cluster import clock
from cluster.store import Create, Delete, Group, Mirror, Patch, Store, pages, retention, sql
from kube.errors import AlreadyExists, ApiError, Conflict, Invalid, NotFound
from kube.resources import PODS
from tests.campaign import scaled

GENERATED = [f"g-bbbb{last}" for last in "bcd"]
NAMES = st.sampled_from(["a", "b", *GENERATED])
VALUES = st.integers(0, 3)
UIDS = ["x", "y", "z"]
OWNERS = st.tuples(st.lists(st.sampled_from(UIDS), unique=True, max_size=3), st.booleans())
FINALIZERS = st.lists(st.sampled_from(["f/one", "f/two"]), unique=True, max_size=2)


class Narrow(Random):
    """A source of randomness with three suffixes for names."""

    drawn = 0

    def choice(self, seq):
        self.drawn += 1
        return seq[0] if self.drawn % 5 else super().choice(seq[:3])


def references(owners):
    """The owner references for drawn owners: the first may be the controller."""
    uids, controlled = owners
    return [
        {"apiVersion": "v1", "kind": "X", "name": uid, "uid": uid}
        | ({"controller": True} if controlled and n == 0 else {})
        for n, uid in enumerate(uids)
    ]


def pod(value, owners=((), False), finalizers=(), **metadata):
    about = {"namespace": "d", **metadata}
    if owners[0]:
        about["ownerReferences"] = references(owners)
    if finalizers:
        about["finalizers"] = list(finalizers)
    return {"metadata": about, "spec": {"value": value}}


class StoreMachine(RuleBasedStateMachine):
    """Model: name → what the object says, beside the log that its writes must leave."""

    database: str
    empty: object

    @initialize()
    def start(self):
        type(self).empty(self.database)
        self.store = Store(self.database, random=Narrow(0))
        self.model: dict[str, dict] = {}
        self.expected: list[tuple[str, str]] = []
        self.log = []  # every row that the store ever logged
        with connections[self.database].cursor() as cursor:
            cursor.execute(
                "INSERT INTO cluster_cursor (name, position, generation, holder, held_until)"
                " VALUES ('nobody/0', 0, 1, '', 0)"
            )

    # The model's side of each write: it notes the log row, or raises what the store must raise.

    def note(self, verb, name, **values):
        self.expected.append((verb, name))
        if verb == "DELETED":
            del self.model[name]
        else:
            revision = len(self.expected)
            known = self.model.get(name, {}) if verb == "MODIFIED" else {"status": None, "deleting": False}
            self.model[name] = {**known, "revision": revision, "version": str(revision), **values}

    def known(self, name):
        if name not in self.model:
            raise NotFound("")
        return self.model[name]

    def put(self, name, value, owners, finalizers):
        if name in self.model:
            raise AlreadyExists("")
        self.note("ADDED", name, value=value, owners=references(owners), finalizers=finalizers)

    def set(self, name, **values):
        known = self.known(name)
        if known["deleting"] and set(values.get("finalizers", ())) - set(known["finalizers"]):
            raise Invalid("")
        if any(known[field] != value for field, value in values.items()):
            gone = known["deleting"] and values.get("finalizers") == []
            self.note("DELETED" if gone else "MODIFIED", name, **values)

    def drop(self, name):
        if not self.known(name)["finalizers"]:
            self.note("DELETED", name)
        elif not self.model[name]["deleting"]:
            self.note("MODIFIED", name, deleting=True)

    def agree(self, writes, *steps):
        """Do the writes as one group, and the steps in the model: both fail in the same way, or neither does."""
        before = copy.deepcopy((self.model, self.expected))
        outcome = self.store.commit([Group(writes)])[0]
        expected = list
        try:
            for step in steps:
                step()
        except ApiError as error:
            self.model, self.expected = before
            expected = type(error)
        assert type(outcome) is expected, outcome

    @rule(name=NAMES, value=VALUES, owners=OWNERS, finalizers=FINALIZERS)
    def create(self, name, value, owners, finalizers):
        write = Create(PODS, pod(value, owners, finalizers, name=name))
        self.agree([write], lambda: self.put(name, value, owners, finalizers))

    @rule(count=st.integers(1, 4), value=VALUES, owners=OWNERS)
    def generate(self, count, value, owners):
        """What is made gets a name of its own; what gets none is not made."""
        write = Create(PODS, pod(value, owners, generateName="g-"))
        for outcome in self.store.commit([Group([write])] * count):
            if isinstance(outcome, ApiError):
                assert isinstance(outcome, AlreadyExists)
                assert any(name in self.model for name in GENERATED)
            else:
                assert outcome[0].name in GENERATED
                self.put(outcome[0].name, value, owners, [])

    @rule(name=NAMES, value=VALUES, stale=st.booleans())
    def change_spec(self, name, value, stale):
        version = "stale" if stale else self.model.get(name, {}).get("version", "")

        def expect():
            if self.known(name)["version"] != version:
                raise Conflict("")
            self.set(name, value=value)

        self.agree([Patch(PODS, "d", name, {"spec": {"value": value}}, version=version)], expect)

    @rule(name=NAMES, value=VALUES)
    def change_twice_from_one_version(self, name, value):
        """Of two changes made from the same state only the first is done, also within one transaction."""
        version = self.model.get(name, {}).get("version", "none")
        patches = [
            Patch(PODS, "d", name, {"spec": {"value": number}}, version=version) for number in (value, value + 1)
        ]
        outcomes = self.store.commit([Group([each]) for each in patches])
        if name in self.model:
            changed = self.model[name]["value"] != value
            self.set(name, value=value)
            assert isinstance(outcomes[1], Conflict) == changed
            if not changed:
                self.set(name, value=value + 1)

    @rule(name=NAMES, value=VALUES)
    def change_status(self, name, value):
        write = Patch(PODS, "d", name, {"status": {"phase": str(value)}}, "status")
        self.agree([write], lambda: self.set(name, status={"phase": str(value)}))

    @rule(name=NAMES, owners=OWNERS)
    def change_owners(self, name, owners):
        wanted = references(owners)
        write = Patch(PODS, "d", name, {"metadata": {"ownerReferences": wanted or None}})
        self.agree([write], lambda: self.set(name, owners=wanted))

    @rule(name=NAMES, finalizers=FINALIZERS)
    def change_finalizers(self, name, finalizers):
        write = Patch(PODS, "d", name, {"metadata": {"finalizers": finalizers or None}})
        self.agree([write], lambda: self.set(name, finalizers=finalizers))

    @rule(name=NAMES)
    def delete(self, name):
        self.agree([Delete(PODS, "d", name)], lambda: self.drop(name))

    @rule(name=NAMES, value=VALUES, owners=OWNERS)
    def make_anew_in_one_group(self, name, value, owners):
        writes = [Delete(PODS, "d", name), Create(PODS, pod(value, owners, name=name))]
        self.agree(writes, lambda: self.drop(name), lambda: self.put(name, value, owners, []))

    @rule(names=st.lists(NAMES, min_size=1, max_size=4), value=VALUES)
    def patch_then_delete_in_one_group(self, names, value):
        """A group that fails midway leaves no trace."""
        writes = [Patch(PODS, "d", names[0], {"spec": {"value": value}}), *(Delete(PODS, "d", name) for name in names)]

        def expect():
            self.set(names[0], value=value)
            for name in names:
                self.drop(name)

        self.agree(writes, expect)

    @rule(
        name=NAMES,
        value=VALUES,
        owners=OWNERS,
        uid=st.sampled_from(["u1", "u2"]),
        version=st.sampled_from(["v1", "v2", "v3"]),  # no number: other rules write to these objects too
        deleted=st.booleans(),
    )
    def mirror(self, name, value, owners, uid, version, deleted):
        obj = pod(value, owners, name=name, uid=uid, resourceVersion=version)
        known = self.model.get(name)

        def expect():
            same = known is not None and known.get("uid") == uid
            values = {"value": value, "owners": references(owners), "finalizers": [], "version": version}
            if deleted:
                if same:
                    self.note("DELETED", name)
            elif same:
                if known["version"] != version:
                    self.note("MODIFIED", name, **values, status=None, deleting=False)
            else:
                if known is not None:
                    self.note("DELETED", name)
                self.note("ADDED", name, **values, uid=uid)

        self.agree([Mirror(PODS, obj, deleted)], expect)

    @rule(hold=st.integers(0, 40))
    def forget(self, hold):
        """Retention goes as far as the registered consumers have read, whoever else has a cursor."""
        self.follow()
        with connections[self.database].cursor() as cursor:
            cursor.execute("DELETE FROM cluster_cursor WHERE name = 'garbage/0'")
            cursor.execute(
                "INSERT INTO cluster_cursor (name, position, generation, holder, held_until)"
                " VALUES ('garbage/0', %s, 1, '', 0)",
                [hold],
            )
        retention.run(time.monotonic() + 30, now=clock.milliseconds() + 10**11, source=self.store)
        assert self.store.compacted() >= min(hold, len(self.expected))

    def follow(self):
        """Read what is new in the log."""
        self.log += self.store.changes(self.log[-1].revision if self.log else 0)

    @invariant()
    @precondition(lambda self: hasattr(self, "store"))
    def objects_are_the_models(self):
        found = {s.name: s for s in self.store.find(PODS)}
        assert found.keys() == self.model.keys()
        for name, known in self.model.items():
            obj = found[name].object
            metadata = obj["metadata"]
            assert obj["spec"] == {"value": known["value"]}
            assert obj.get("status") == known["status"]
            assert metadata.get("ownerReferences", []) == known["owners"]
            assert metadata.get("finalizers", []) == known["finalizers"]
            assert ("deletionTimestamp" in metadata) == known["deleting"]
            assert (found[name].revision, found[name].version) == (known["revision"], known["version"])

    @invariant()
    @precondition(lambda self: hasattr(self, "store"))
    def log_has_every_write_in_order(self):
        self.follow()
        assert [c.revision for c in self.log] == list(range(1, len(self.expected) + 1))
        assert [(c.verb, c.name) for c in self.log] == self.expected

    @invariant()
    @precondition(lambda self: hasattr(self, "store"))
    def every_keys_log_alternates(self):
        """Read from the log alone: an object is added, changed, deleted, and only then may its name be given again."""
        self.follow()
        for key, rows in groupby(sorted(self.log, key=lambda c: (c.key, c.revision)), key=lambda c: c.key):
            living = ""
            for change in rows:
                assert (change.verb == "ADDED") == (not living), (key, change.revision)
                assert change.uid == (living or change.uid)
                living = "" if change.verb == "DELETED" else change.uid

    @invariant()
    @precondition(lambda self: hasattr(self, "store"))
    def what_is_stored_is_the_logs_newest(self):
        self.follow()
        newest = {change.key: change for change in self.log}
        living = {key: c for key, c in newest.items() if c.verb != "DELETED"}
        found = {s.key: s for s in self.store.find(PODS)}
        assert {key: (s.revision, s.uid, s.version, s.body) for key, s in found.items()} == {
            key: (c.revision, c.uid, c.version, c.body) for key, c in living.items()
        }

    @invariant()
    @precondition(lambda self: hasattr(self, "store"))
    def objects_are_found_by_what_they_say(self):
        columns = ", ".join(sql.INDEXED)
        rows = sql.rows(self.database, f"SELECT name, {columns} FROM cluster_object")
        assert {name: values for name, *values in rows} == {
            s.name: [s.uid, s.created, *PODS.index(s.object)] for s in self.store.find(PODS)
        }

    @invariant()
    @precondition(lambda self: hasattr(self, "store"))
    def history_is_whole_from_where_it_begins(self):
        at = self.store.compacted()
        state = {c.key: c for c in self.log if c.revision <= at}
        with self.store.reading():
            found = {s.key: s.revision for s in pages.read(self.store, PODS, at=at)}
        assert found == {key: c.revision for key, c in state.items() if c.verb != "DELETED"}

    @invariant()
    @precondition(lambda self: hasattr(self, "store"))
    def owners_are_those_that_objects_name(self):
        named = {
            (f"pods/{s.key}", reference["uid"])
            for s in self.store.find(PODS)
            for reference in s.object["metadata"].get("ownerReferences", ())
            if not reference.get("controller")
        }
        kept = sql.rows(self.database, "SELECT key, owner FROM cluster_ownership")
        assert sorted(kept) == sorted(named)
        for uid in UIDS:
            dependents = {s.name for s in self.store.dependents(uid)}
            assert dependents == {
                name for name, known in self.model.items() if uid in {r["uid"] for r in known["owners"]}
            }


@pytest.mark.campaign
def test_store_behaves_like_its_model(database, django_db_blocker):
    from tests.cluster.store.conftest import empty

    StoreMachine.database = database
    StoreMachine.empty = staticmethod(empty)
    with django_db_blocker.unblock():
        run_state_machine_as_test(
            StoreMachine,
            settings=settings(
                max_examples=scaled(40, 200),
                stateful_step_count=30,
                deadline=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
