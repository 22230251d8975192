"""Each edge is told once and in order, however many shards there are and become: by a consumer that writes down each."""

from __future__ import annotations

import json
import uuid

import hypothesis.strategies as st
import pytest
from hypothesis import given
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from cluster import clock
from cluster.consumers import consumer
from cluster.consumers.consumer import Consumer, Plan, Runner
from cluster.runtime import division
from cluster.runtime.division import Position
from cluster.runtime.registry import Registration, shard_of
from cluster.store import Create, Delete, Group, Patch, Store, sql
from cluster.writes import Timer
from kube.errors import ApiError
from kube.resources import CONFIGMAPS, PODS
from tests import campaign
from tests.cluster.store.conftest import empty

KEYS = [f"d/p{number}" for number in range(6)]


class Killed(Exception):
    """The process ended before its transaction."""


class Recorder(Consumer[dict]):
    name = "recorder"

    def __init__(self, registration, using):
        self.shards, self.store = registration.shards, using
        self.shard = -1
        self.is_doomed = False

    def load(self, shard, revision):
        self.shard = shard
        return {}

    def apply(self, state, change):
        state[change.key] = change.revision

    def plan(self, state, changes, timers, now):
        mine = [c for c in changes if shard_of(c.key, self.shards) == self.shard]
        return Plan([Group([record(change)]) for change in mine])


class Mortal(Runner):
    """A runner that can be killed in the middle of its transaction."""

    def _set_timers(self, timers):
        super()._set_timers(timers)
        if self.consumer.is_doomed:
            raise Killed


def record(change):
    """Write an edge down under a new name each time: one that is told twice is there twice."""
    edge = [change.key, change.revision, version(change.previous), version(change.body)]
    metadata = {"name": str(uuid.uuid4()), "namespace": "d"}
    return Create(CONFIGMAPS, {"metadata": metadata, "data": {"edge": json.dumps(edge)}})


def version(body):
    return None if body is None else json.loads(body).get("metadata", {}).get("resourceVersion")


def starting(shards, using):
    """Return what a new process has for each of so many shards."""
    registration = Registration("recorder", "", (PODS,), hears="edges", shards=shards)
    return [Mortal(registration, n, Recorder(registration, using), using, holder="the same") for n in range(shards)]


def touch(using, key):
    name = key.partition("/")[2]
    try:
        using.write(Create(PODS, {"metadata": {"name": name, "namespace": "d"}, "spec": {}}))
    except ApiError:
        using.write(Patch(PODS, "d", name, {"metadata": {"labels": {"n": str(using.revision())}}}))


def remove(using, key):
    try:
        using.write(Delete(PODS, "d", key.partition("/")[2], grace=0))
    except ApiError:
        touch(using, key)


def recorded(using):
    rows = sql.rows(using.using, "SELECT body FROM cluster_change WHERE resource = 'configmaps' ORDER BY revision")
    return [json.loads(json.loads(bytes(body))["data"]["edge"]) for (body,) in rows]


def made(using):
    changes = using.changes(0, (PODS,), limit=10**6, previous=True)
    return [[c.key, c.revision, version(c.previous), version(c.body)] for c in changes]


NUMBERS = st.integers(1, 3)
HOUR_MS = 3_600_000


def drain(runners):
    going = list(runners)
    while going:
        going = [runner for runner in going if runner.step()]


def by_key(edges):
    found = {}
    for key, *edge in edges:
        found.setdefault(key, []).append(edge)
    return found


def cursors(using):
    found = sql.rows(using.using, "SELECT name, position, handled FROM cluster_cursor ORDER BY name")
    return {name: (position, division.decoded(layers)) for name, position, layers in found}


class ShardMachine(RuleBasedStateMachine):
    store: Store

    def __init__(self):
        super().__init__()
        empty(self.store.using)
        self.batch, consumer.BATCH = consumer.BATCH, 2
        self.ended = []

    def teardown(self):
        try:
            consumer.BATCH = 4000
            self.runners = starting(len(self.runners), self.store)
            drain(self.runners)
            assert by_key(recorded(self.store)) == by_key(made(self.store))
            head = self.store.revision()
            touch(self.store, KEYS[0])
            drain(self.runners)
            assert all(position >= head and not layers for position, layers in cursors(self.store).values())
        finally:
            consumer.BATCH = self.batch

    @initialize(shards=NUMBERS, shard=st.integers(0, 2))
    def begin(self, shards, shard):
        """The first shard that comes makes each hear what follows."""
        self.runners = starting(shards, self.store)
        self.runners[shard % shards].step()
        assert cursors(self.store).keys() == set(self.runners[0].registration.cursors)

    @rule(keys=st.lists(st.sampled_from(KEYS), min_size=1, max_size=5))
    def write(self, keys):
        for key in keys:
            touch(self.store, key)

    @rule(key=st.sampled_from(KEYS))
    def delete(self, key):
        remove(self.store, key)

    @rule(shard=st.integers(0, 2), batch=st.integers(1, 3))
    def step(self, shard, batch):
        consumer.BATCH = batch
        self.runners[shard % len(self.runners)].step()

    @rule(shard=st.integers(0, 2))
    def another_process(self, shard):
        shard %= len(self.runners)
        self.ended += [self.runners[shard]] if self.runners[shard].has_taken_over else []
        self.runners[shard] = starting(len(self.runners), self.store)[shard]

    @rule(shard=st.integers(0, 2), batch=st.integers(1, 3))
    def kill_in_its_transaction(self, shard, batch):
        consumer.BATCH = batch
        shard %= len(self.runners)
        self.runners[shard].consumer.is_doomed = True
        try:
            self.runners[shard].step()
        except Killed:
            pass
        self.runners[shard] = starting(len(self.runners), self.store)[shard]

    @rule(shards=NUMBERS, shard=st.integers(0, 2), steps=st.booleans())
    def become(self, shards, shard, steps):
        """Start again with another number, of which one may be first to take over at once."""
        self.ended += [runner for runner in self.runners if runner.has_taken_over]
        self.runners = starting(shards, self.store)
        if steps:
            self.runners[shard % shards].step()

    @rule(data=st.data())
    def one_that_should_have_ended_goes_on(self, data):
        if self.ended:
            data.draw(st.sampled_from(self.ended)).step()

    @invariant()
    def nothing_is_told_twice(self):
        for key, edges in by_key(recorded(self.store)).items():
            revisions = [revision for revision, *_ in edges]
            assert revisions == sorted(set(revisions)), key


@pytest.mark.campaign
def test_each_edge_is_told_once_whatever_the_number_of_shards_becomes(database, django_db_blocker):
    with django_db_blocker.unblock():
        ShardMachine.store = Store(database)
        campaign.play(ShardMachine, *((15, 150) if "sqlite" in database else (5, 60)), steps=25)


def test_timers_go_to_the_shard_of_their_key_at_once(store):
    old = starting(1, store)
    drain(old)
    old[0]._set_timers([Timer("look", key, clock.milliseconds() + HOUR_MS) for key in KEYS])
    old[0]._set_timers([Timer("all", "", clock.milliseconds() + HOUR_MS)])
    for shards in (3, 2):
        new = starting(shards, store)
        new[shards - 1].step()
        found = sql.rows(store.using, "SELECT kind, key, cursor FROM cluster_timer")
        expected = {("look", key, f"recorder/{shard_of(key, shards)}") for key in KEYS}
        assert set(found) == expected | {("all", "", "recorder/0")}


positions = st.dictionaries(
    st.integers(0, 3),
    st.builds(Position, st.integers(0, 20), st.integers(1, 9), st.just("who"), st.just(1), st.just(())),
    min_size=1,
)


@given(positions, st.integers(1, 4), st.sampled_from(KEYS), st.integers(1, 25))
def test_a_change_was_told_if_the_shard_of_its_key_had_read_so_far(old, shards, key, revision):
    new = division.divided_anew(old, shards)
    of_key = old.get(shard_of(key, max(old) + 1))
    is_delivered = of_key is not None and revision <= of_key.position
    assert len(new) == shards
    for each in new:
        assert each.generation > max(cursor.generation for cursor in old.values())
        if revision > each.position:
            assert division.was_delivered(each.handled, key, revision) == is_delivered
        assert not division.was_delivered(each.handled, "", revision)
