"""The store against a dictionary: any sequence of writes gives the same objects, versions, owners and log, however it is read."""

from __future__ import annotations

import copy
from contextlib import nullcontext
from random import Random

import hypothesis.strategies as st
import pytest
from django.db import connections
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from cluster.store import AllBut, Create, Delete, Group, Mirror, Patch, Single, Store, sql
from kube.errors import AlreadyExists, ApiError, Conflict, Expired, Invalid, NotFound
from kube.resources import CONFIGMAPS, PODS
from tests import campaign
from tests.builders import of
from tests.cluster.store.conftest import empty
from tests.cluster.store.forgetting import between_queries, forget, forget_elsewhere

GENERATED = [f"g-bbbb{last}" for last in "bcd"]
NAMES = st.sampled_from(["a", "b", *GENERATED])
VALUES = st.integers(0, 3)
UIDS = ["x", "y", "z"]
OWNERS = st.lists(st.tuples(st.sampled_from(UIDS), st.booleans()), max_size=3)  # uids, and whether they are controllers
FINALIZERS = st.lists(st.sampled_from(["f/one", "f/two"]), unique=True, max_size=2)


HOLDS = st.integers(0, 40)
ELSEWHERE, VERSIONS = st.sampled_from(["u1", "u2"]), st.sampled_from(["v1", "v2", "v3"])
ONE = Single(CONFIGMAPS, "d", "b")
KINDS = st.sampled_from([None, (PODS,), (PODS, CONFIGMAPS), AllBut((CONFIGMAPS,)), (PODS, ONE), (ONE,)])


def is_of(kinds, change):
    if kinds is None or isinstance(kinds, AllBut):
        return kinds is None or change.resource in kinds
    wanted = [(each.resource.id, each.name) if isinstance(each, Single) else (each.id, change.name) for each in kinds]
    return (change.resource, change.name) in wanted


class Narrow(Random):
    drawn = 0

    def choice(self, seq):
        self.drawn += 1
        return seq[0] if self.drawn % 5 else super().choice(seq[:3])


def references(owners):
    made = [{"apiVersion": "v1", "kind": "X", "name": uid, "uid": uid} for uid, _ in owners]
    return [each | {"controller": True} if controls else each for each, (_, controls) in zip(made, owners, strict=True)]


def pod(value, owners=(), finalizers=(), **metadata):
    more = {"ownerReferences": references(owners), "finalizers": list(finalizers)}
    about = {"namespace": "d", **metadata, **{name: each for name, each in more.items() if each}}
    return {"metadata": about, "spec": {"value": value}}


# What changes of an object, and what it then says.
CHANGES = st.one_of(
    VALUES.map(lambda value: (({"status": {"phase": str(value)}}, "status"), {"status": {"phase": str(value)}})),
    OWNERS.map(lambda owners: (({"metadata": {"ownerReferences": references(owners) or None}},), {"owners": references(owners)})),
    FINALIZERS.map(lambda found: (({"metadata": {"finalizers": found or None}},), {"finalizers": found})),
)  # fmt: skip


class StoreMachine(RuleBasedStateMachine):
    """Model: name → what the object says, beside the log that its writes must leave."""

    database: str

    @initialize()
    def start(self):
        empty(self.database)
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
            previous = self.model.get(name, {}) if verb == "MODIFIED" else {"status": None, "deleting": False}
            self.model[name] = {**previous, "revision": revision, "version": str(revision), **values}

    def model_of(self, name):
        if name not in self.model:
            raise NotFound("")
        return self.model[name]

    def put(self, name, value, owners, finalizers):
        if name in self.model:
            raise AlreadyExists("")
        self.note("ADDED", name, value=value, owners=references(owners), finalizers=finalizers)

    def set(self, name, **values):
        stored = self.model_of(name)
        if stored["deleting"] and set(values.get("finalizers", ())) - set(stored["finalizers"]):
            raise Invalid("")
        if any(stored[field] != value for field, value in values.items()):
            gone = stored["deleting"] and values.get("finalizers") == []
            self.note("DELETED" if gone else "MODIFIED", name, **values)

    def drop(self, name):
        if not self.model_of(name)["finalizers"]:
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
            if self.model_of(name)["version"] != version:
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

    @rule(name=NAMES, change=CHANGES)
    def change(self, name, change):
        patch, values = change
        self.agree([Patch(PODS, "d", name, *patch)], lambda: self.set(name, **values))

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

    # Versions are no numbers: other rules write to these objects too.
    @rule(name=NAMES, value=VALUES, owners=OWNERS, uid=ELSEWHERE, version=VERSIONS, deleted=st.booleans())
    def mirror(self, name, value, owners, uid, version, deleted):
        obj = pod(value, owners, name=name, uid=uid, resourceVersion=version)
        stored = self.model.get(name)

        def expect():
            same = stored is not None and stored.get("uid") == uid
            values = {"value": value, "owners": references(owners), "finalizers": [], "version": version}
            if deleted:
                if same:
                    self.note("DELETED", name)
            elif same:
                if stored["version"] != version:
                    self.note("MODIFIED", name, **values, status=None, deleting=False)
            else:
                if stored is not None:
                    self.note("DELETED", name)
                self.note("ADDED", name, **values, uid=uid)

        self.agree([Mirror(PODS, obj, deleted)], expect)

    @rule(name=st.sampled_from(["b", "c"]))
    def others_write(self, name):
        """The log has objects of another kind as well, which come and go."""
        is_there = self.store.find(CONFIGMAPS, name=name)
        self.store.write(
            Delete(CONFIGMAPS, "d", name) if is_there else Create(CONFIGMAPS, of(CONFIGMAPS, name, namespace="d"))
        )
        self.expected.append(("DELETED" if is_there else "ADDED", name))

    @rule(hold=HOLDS)
    def forget(self, hold):
        """Retention goes as far as the registered consumers have read, whoever else has a cursor."""
        self.follow()
        self.hold(hold)
        forget(self.store)
        assert self.store.compacted() >= min(hold, len(self.expected))

    def hold(self, position):
        fields = "(name, position, generation, holder, held_until)"
        with connections[self.database].cursor() as cursor:
            cursor.execute("DELETE FROM cluster_cursor WHERE name = 'garbage/0'")
            cursor.execute(f"INSERT INTO cluster_cursor {fields} VALUES ('garbage/0', %s, 1, '', 0)", [position])

    @rule(position=HOLDS, kinds=KINDS, limit=st.integers(1, 10), previous=st.booleans(), hold=st.none() | HOLDS)
    def read(self, position, kinds, limit, previous, hold):
        """A reader gets all that follows, or hears that it expired; perhaps retention runs meanwhile."""
        self.follow()
        position = min(position, len(self.log))
        meanwhile = nullcontext()
        if hold is not None:
            self.hold(hold)
            meanwhile = between_queries(lambda: forget_elsewhere(self.store), self.database)
        try:
            with meanwhile:
                found = self.store.changes(position, kinds, limit=limit, previous=previous)
        except Expired:
            assert position < self.store.compacted()
            return
        wanted = [change for change in self.log if change.revision > position and is_of(kinds, change)]
        replaced = self.replaced() if previous else {}
        assert [(c.revision, c.body, c.previous) for c in found] == [
            (c.revision, c.body, replaced.get(c.revision)) for c in wanted[:limit]
        ]

    def replaced(self):
        found, newest = {}, {}
        for change in self.log:
            key = change.resource, change.key
            found[change.revision] = newest.pop(key, None)
            if change.verb != "DELETED":
                newest[key] = change.body
        return found

    def follow(self):
        self.log += self.store.changes(self.log[-1].revision if self.log else 0)

    @invariant()
    def objects_are_the_models(self):
        found = {s.name: s for s in self.store.find(PODS)}
        assert found.keys() == self.model.keys()
        for name, expected in self.model.items():
            obj = found[name].object
            metadata = obj["metadata"]
            assert found[name].uid == metadata["uid"] == expected.get("uid", metadata["uid"])
            assert obj["spec"] == {"value": expected["value"]}
            assert obj.get("status") == expected["status"]
            assert metadata.get("ownerReferences", []) == expected["owners"]
            assert metadata.get("finalizers", []) == expected["finalizers"]
            assert ("deletionTimestamp" in metadata) == expected["deleting"]
            assert (found[name].revision, found[name].version) == (expected["revision"], expected["version"])

    @invariant()
    def log_has_every_write_in_order(self):
        self.follow()
        assert [c.revision for c in self.log] == list(range(1, len(self.expected) + 1))
        assert [(c.verb, c.name) for c in self.log] == self.expected

    @invariant()
    def what_is_stored_is_the_logs_newest(self):
        newest = {change.key: change for change in self.log if change.resource == "pods"}
        living = {key: c for key, c in newest.items() if c.verb != "DELETED"}
        found = {s.key: s for s in self.store.find(PODS)}
        assert {key: (s.revision, s.uid, s.version, s.body) for key, s in found.items()} == {
            key: (c.revision, c.uid, c.version, c.body) for key, c in living.items()
        }

    @invariant()
    def objects_are_found_by_what_they_say(self):
        columns = ", ".join(sql.INDEXED)
        rows = sql.rows(self.database, f"SELECT name, {columns} FROM cluster_object WHERE resource = 'pods'")
        assert {name: values for name, *values in rows} == {
            s.name: [s.uid, s.created, *PODS.index(s.object)] for s in self.store.find(PODS)
        }

    @invariant()
    def owners_are_those_that_objects_name(self):
        uids = {
            s.key: {each["uid"] for each in s.object["metadata"].get("ownerReferences", ())}
            for s in self.store.find(PODS)
        }
        controllers = {s.key: PODS.index(s.object).owner for s in self.store.find(PODS)}
        named = {(f"pods/{key}", uid) for key, each in uids.items() for uid in each - {controllers[key]}}
        rows = sql.rows(self.database, "SELECT key, owner FROM cluster_ownership")
        assert sorted(rows) == sorted(named)
        for uid in UIDS:
            dependents = {s.name for s in self.store.dependents(uid)}
            assert dependents == {
                name for name, entry in self.model.items() if uid in {r["uid"] for r in entry["owners"]}
            }


@pytest.mark.campaign
def test_store_behaves_like_its_model(database, django_db_blocker):
    StoreMachine.database = database
    with django_db_blocker.unblock():
        campaign.play(StoreMachine, 15, 200, steps=30)
