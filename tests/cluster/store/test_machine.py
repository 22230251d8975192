"""The store against a dictionary: any sequence of writes gives the same objects, versions and log."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from cluster.store import Create, Delete, Group, Patch, Store
from kube.errors import AlreadyExists, ApiError, Conflict, NotFound
from kube.resources import PODS

NAMES = st.sampled_from(["a", "b", "c", "d"])
VALUES = st.integers(0, 3)


class StoreMachine(RuleBasedStateMachine):
    """Model: name → (spec value, status value, revision, bound, being deleted)."""

    database: str
    empty: object

    written = Bundle("written")

    @initialize()
    def start(self):
        type(self).empty(self.database)
        self.store = Store(self.database)
        self.model: dict[str, dict] = {}
        self.revision = 0
        self.log: list[tuple[str, str]] = []

    def note(self, verb, name):
        self.revision += 1
        self.log.append((verb, name))
        return self.revision

    @rule(target=written, name=NAMES, value=VALUES)
    def create(self, name, value):
        write = Create(PODS, {"metadata": {"name": name, "namespace": "d"}, "spec": {"value": value}})
        if name in self.model:
            try:
                self.store.write(write)
            except AlreadyExists:
                return multiple()
            raise AssertionError("a taken name was given away")
        self.store.write(write)
        self.model[name] = {"spec": {"value": value}, "status": None, "revision": self.note("ADDED", name)}
        return name

    @rule(name=NAMES, value=VALUES, stale=st.booleans())
    def change_spec(self, name, value, stale):
        known = self.model.get(name)
        revision = 0 if known is None else known["revision"] + (1000 if stale else 0)
        try:
            self.store.write(Patch(PODS, "d", name, {"spec": {"value": value}}, revision=revision))
        except NotFound:
            assert known is None
        except Conflict:
            assert stale
        else:
            assert known is not None
            assert not stale
            if known["spec"]["value"] != value:
                known["spec"] = {**known["spec"], "value": value}
                known["revision"] = self.note("MODIFIED", name)

    @rule(name=NAMES, value=VALUES)
    def change_status(self, name, value):
        known = self.model.get(name)
        try:
            self.store.write(Patch(PODS, "d", name, {"status": {"value": value}}, "status"))
        except NotFound:
            assert known is None
        else:
            if known["status"] != {"value": value}:
                known["status"] = {"value": value}
                known["revision"] = self.note("MODIFIED", name)

    @rule(name=consumes(written))
    def delete(self, name):
        try:
            self.store.write(Delete(PODS, "d", name))
        except NotFound:
            assert name not in self.model
        else:
            del self.model[name]
            self.note("DELETED", name)

    @rule(names=st.lists(NAMES, min_size=1, max_size=4), value=VALUES)
    def delete_then_patch_in_one_group(self, names, value):
        """A group that fails midway leaves no trace."""
        writes = [
            Patch(PODS, "d", names[0], {"spec": {"value": value}}),
            *(Delete(PODS, "d", n) for n in names),
        ]
        outcome = self.store.commit([Group(writes)])[0]
        if isinstance(outcome, ApiError):
            assert len(set(names)) < len(names) or any(n not in self.model for n in names)
            return
        if self.model[names[0]]["spec"]["value"] != value:
            self.note("MODIFIED", names[0])
        for name in names:
            del self.model[name]
            self.note("DELETED", name)

    @invariant()
    def objects_are_the_models(self):
        if not hasattr(self, "store"):
            return
        found = {s.name: s for s in self.store.find(PODS)}
        assert found.keys() == self.model.keys()
        for name, known in self.model.items():
            obj = found[name].object
            assert obj["spec"] == known["spec"]
            assert obj.get("status") == known["status"]
            assert found[name].revision == int(obj["metadata"]["resourceVersion"]) == known["revision"]

    @invariant()
    def log_has_every_write_in_order(self):
        if not hasattr(self, "store"):
            return
        changes = self.store.changes(0)
        assert [c.revision for c in changes] == list(range(1, self.revision + 1))
        assert [(c.verb, c.name) for c in changes] == self.log


def test_store_behaves_like_its_model(database, django_db_blocker):
    from tests.cluster.store.conftest import empty

    StoreMachine.database = database
    StoreMachine.empty = staticmethod(empty)
    with django_db_blocker.unblock():
        run_state_machine_as_test(
            StoreMachine,
            settings=settings(
                max_examples=40,
                stateful_step_count=30,
                deadline=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
