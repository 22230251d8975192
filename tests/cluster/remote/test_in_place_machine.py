"""A controller on a model server: whatever becomes of requests and processes, each of its plans comes true once.

The controller is a small one that has all that real ones have: Commands that count once, pods that are made, gangs
that are bound whole. What it plans, it plans from the mirror alone.
"""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from django.db import transaction
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from cluster import clock, models
from cluster.remote import outbox, recorder
from cluster.remote.election import Leadership, note
from cluster.remote.in_place import InPlace
from cluster.remote.reflection import Standing
from cluster.remote.reflector import Reflector
from cluster.runtime import consumer as consuming
from cluster.runtime.consumer import Consumer, Plan, Runner
from cluster.runtime.registry import Registration
from cluster.store import Create, Delete, Group, Patch, Update, store
from cluster.writes import Minimum
from kube.resources import COMMANDS, PODS, QUEUES
from proof.harness.clocks import ManualClock
from proof.modes.answers import REFUSALS, Answer, Killed
from proof.modes.inline import Inline
from tests.campaign import scaled
from tests.cluster.remote.write_server import WriteServer

KINDS = (COMMANDS, QUEUES, PODS)
REGISTRATION = Registration("counter", "tests.cluster.remote.test_in_place_machine.Counter", KINDS)
GANGS = ("one", "two")
SIZE = 3


class Counter(Consumer[dict]):
    """Counts Commands in a queue's status, keeps three pods for each gang, and binds them together.

    Its state is what the mirror shows: by kind, name → object.
    """

    name = "counter"

    def load(self, shard, revision):
        return {kind.id: {one.name: one.object for one in store.find(kind)} for kind in KINDS}

    def apply(self, state, change):
        if change.verb == "DELETED":
            state[change.resource].pop(change.name, None)
        else:
            state[change.resource][change.name] = change.object

    def plan(self, state, changes, timers, now):
        groups = [*self.counted(state), *self.made(state), *self.bound(state)]
        return Plan(groups)

    def counted(self, state):
        """Carry out the first Command: it goes, and the count grows."""
        for name, command in sorted(state[COMMANDS.id].items())[:1]:
            (queue,) = state[QUEUES.id].values()
            count = queue.get("status", {}).get("count", 0) + 1
            metadata = {"name": "q", "uid": queue["metadata"]["uid"]}
            writes = [
                Delete(COMMANDS, "d", name, uid=command["metadata"]["uid"]),
                Update(QUEUES, {"metadata": metadata, "status": {"count": count}}, "status"),
            ]
            yield Group(writes, name)

    def made(self, state):
        for gang in GANGS:
            names = [f"{gang}-{number}" for number in range(SIZE)]
            missing = [name for name in names if name not in state[PODS.id]]
            if missing:
                yield Group([Create(PODS, pod(gang, name)) for name in missing], gang)

    def bound(self, state):
        for gang in GANGS:
            pods = [one for name, one in sorted(state[PODS.id].items()) if name.startswith(gang)]
            free = [one for one in pods if not one["spec"].get("nodeName")]
            if free and len(pods) == SIZE and not any("deletionTimestamp" in p["metadata"] for p in pods):
                yield Group(
                    [bind(one) for one in free], f"bind-{gang}", minima=[Minimum(len(free), list(range(len(free))))]
                )


def is_held(name, one, gang):
    """Whether a pod of a gang holds a node and stays."""
    return name.startswith(gang) and "nodeName" in one["spec"] and "deletionTimestamp" not in one["metadata"]


def pod(gang, name):
    return {"metadata": {"name": name, "namespace": "d", "labels": {"gang": gang}}, "spec": {}}


def bind(one):
    metadata = one["metadata"]
    return Patch(PODS, "d", metadata["name"], {"spec": {"nodeName": "n"}}, "binding", uid=metadata["uid"])


class InPlaceMachine(RuleBasedStateMachine):
    """Model: the server, and how often a person has asked to count."""

    @initialize(world=st.sampled_from(["faithful", "refusing", "contested"]))
    def start(self, world):
        self.world = world
        for table in (
            models.Object,
            models.Change,
            models.Log,
            models.MirroredKind,
            models.MirroredCluster,
            models.Outgoing,
            models.Cursor,
            models.Refusal,
            models.Timer,
        ):
            table.objects.all().delete()
        self.clock = ManualClock()
        self.before = clock.use(self.clock)
        self.server = WriteServer()
        self.server.put("queues", {"metadata": {"name": "q"}, "status": {}})
        self.asked = 0
        recorder.claim("https://model")
        self.reflectors = {kind.id: self.reflector(kind) for kind in KINDS}
        self.term = 0
        self.lead()
        self.begin()
        self.mirror_hears(None)

    def reflector(self, kind):
        known = recorder.standings([kind]).get(kind.id, Standing())
        return Reflector(self.server, kind, known, lambda news: self.heard.append(news), wait=lambda seconds: None)

    def lead(self):
        note(Leadership("me", f"me/{self.term}", clock.milliseconds() + 3_600_000))

    def begin(self):
        """Start as a new process does."""
        self.backend = InPlace(lambda: self.server, Inline)
        self.runner = Runner(REGISTRATION, 0, Counter(), holder="me")

    @rule(
        asks=st.integers(0, 2),
        hears=st.sampled_from(["", "commands", "commands", "pods", "queues", *[None] * 4]),
        data=st.data(),
    )
    def controller_works(self, asks, hears, data):
        """A person may ask, the mirror may hear of some of what happened, and what is sent may fail in any way."""
        for _ in range(asks):
            self.asked += 1
            self.server.put("commands", {"metadata": {"name": f"c{self.asked}", "namespace": "d"}})
        self.mirror_hears(hears)
        possible = [each for each in Answer if each not in REFUSALS or self.world != "faithful"]
        self.server.next_answers = data.draw(st.lists(st.sampled_from(possible), max_size=6))
        self.controller_runs()

    def controller_runs(self):
        for _ in range(3):
            consuming.backend, before = self.backend, consuming.backend
            try:
                self.runner.step()
            except Killed:
                self.begin()
            finally:
                consuming.backend = before
            self.check_gangs()
        self.clock.move(0.5)

    def check_gangs(self):
        """What is settled holds no half gang; another leader may have stopped in the middle of one."""
        if self.world == "contested" or outbox.cursors("default"):
            return
        for gang in GANGS:
            held = [one for name, one in self.server.all("pods").items() if is_held(name, one, gang)]
            assert len(held) in (0, SIZE), "a half gang holds nothing"

    @rule()
    def process_is_killed(self):
        self.begin()

    @rule()
    def database_fails_when_it_is_settled(self):
        """The transaction that mirrors the answers is lost."""
        consuming.backend, before = self.backend, consuming.backend
        try:
            with transaction.atomic():
                self.runner.step()
                transaction.set_rollback(True)
        except Killed:
            pass
        finally:
            consuming.backend = before
        self.begin()

    def mirror_hears(self, plural):
        self.heard = []
        for each in (kind for kind in KINDS if plural in (None, kind.plural)):
            self.reflectors[each.id].turn()
        recorder.record(self.heard)

    @precondition(lambda self: self.server.all("pods"))
    @rule(data=st.data())
    def others_delete_a_pod(self, data):
        name = data.draw(st.sampled_from(sorted(self.server.all("pods"))))
        one = self.server.objects["pods", name]
        if not one["spec"].get("nodeName"):
            self.server.remove("pods", name)

    @rule(gang=st.sampled_from(GANGS))
    def gang_is_over(self, gang):
        for name in [name for name in self.server.all("pods") if name.startswith(gang)]:
            self.server.remove("pods", name)

    @rule()
    def nodes_end_pods(self):
        for name, one in self.server.all("pods").items():
            if "deletionTimestamp" in one["metadata"]:
                self.server.remove("pods", name)

    @precondition(lambda self: self.world == "contested")
    @rule()
    def another_installation_led_meanwhile(self):
        self.term += 1
        self.lead()

    @rule()
    def all_is_well_for_a_while(self):
        self.server.next_answers = []
        for _ in range(30):
            quiet = self.server.version, store.revision(), len(outbox.cursors("default"))
            self.nodes_end_pods()
            self.controller_runs()
            self.mirror_hears(None)
            self.clock.move(20)
            self.lead()
            if quiet == (self.server.version, store.revision(), 0):
                break
        assert not outbox.cursors("default"), "nothing is forgotten"
        assert not self.server.all("commands")
        self.check()
        pods = self.server.all("pods")
        assert sorted(pods) == [f"{gang}-{number}" for gang in GANGS for number in range(SIZE)]
        assert all(one["spec"].get("nodeName") == "n" for one in pods.values()), "gangs are bound whole"
        assert not any("deletionTimestamp" in one["metadata"] for one in pods.values())

    def check(self):
        count = self.server.objects["queues", "q"]["status"].get("count", 0)
        if self.world == "faithful":
            assert count == self.asked
        # Who has deleted a Command carries it out, unless that is refused or somebody else leads meanwhile.
        lost = self.server.refused["queues"] + self.server.refused["commands"] + self.term
        assert self.asked - lost <= count <= self.asked, "each Command counts once"
        assert len(set(self.server.deleted)) == len(self.server.deleted)

    def teardown(self):
        try:
            self.all_is_well_for_a_while()
        finally:
            clock.use(self.before)


@pytest.mark.campaign
@pytest.mark.django_db(transaction=True)
def test_each_plan_comes_true_once(settings_of_a_worker):
    run_state_machine_as_test(
        InPlaceMachine,
        settings=settings(
            max_examples=scaled(20, 3000),
            stateful_step_count=25,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
        ),
    )


@pytest.fixture
def settings_of_a_worker(settings):
    settings.WAY = "in-place"
