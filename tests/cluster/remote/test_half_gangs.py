"""The scheduler on a model server: who leads next finishes a gang in whose middle another was stopped, or gives it back."""

from __future__ import annotations

import pytest

import scheduler.consumer
from cluster import clock
from cluster.remote import outbox, recorder
from cluster.remote.election import Leadership, note
from cluster.remote.in_place import InPlace
from cluster.runtime import consumer as consuming
from cluster.runtime import registry, retries
from cluster.runtime.consumer import Runner
from cluster.runtime.division import LEASE_MS
from cluster.runtime.retries import TOLD_AFTER
from kube.errors import Forbidden
from proof.modes.answers import Answer, Killed
from proof.modes.inline import Inline
from scheduler.consumer import SchedulerConsumer
from tests.cluster.remote.model_server import MIRRORED, OWN, Mirror, ModelServer, forget, held
from tests.scheduler import world as objects

pytestmark = pytest.mark.django_db(transaction=True)
GANG = ["p-0", "p-1", "p-2"]


class Refusing(ModelServer):
    """A server that refuses to bind one pod of the gang, for as long as it does."""

    refuses = False
    attempts = 0

    def request(self, method, path, **options):
        if method == "POST" and path.endswith("/p-2/binding"):
            self.attempts += 1
            if self.refuses:
                raise Forbidden("an administrator does not like it")
        return super().request(method, path, **options)


class Cluster:
    """A server with one node, and the scheduler of who leads."""

    def __init__(self, monkeypatch, time):
        self.monkeypatch, self.time = monkeypatch, time
        self.server = Refusing()
        self.term = 0
        self.put(objects.node("n", cpu="3"), objects.queue(), objects.group(minimum=len(GANG)))
        self.make()
        self.begin()

    def put(self, *some):
        for kind, made in some:
            self.server.put(kind.plural, made)

    def make(self):
        """Make the pods that are missing, as their controller does."""
        for name in GANG:
            if name not in self.server.all("pods"):
                kind, made = objects.pod(name)
                made["metadata"]["ownerReferences"] = [{"kind": "Job", "name": "g", "uid": "u", "controller": True}]
                self.put((kind, made))

    def begin(self):
        """Have a new process lead, under a new term, once the cursor of the one before is free."""
        self.time.move(LEASE_MS / 1000 + 1)
        recorder.claim("https://model")
        self.term += 1
        self.lead()
        backend = InPlace(lambda: self.server, Inline)
        self.monkeypatch.setattr(consuming, "backend", backend)
        self.monkeypatch.setattr(scheduler.consumer, "backend", backend)
        registration = registry.get("scheduler")
        self.runner = Runner(registration, 0, SchedulerConsumer(), holder=f"process {self.term}")
        self.mirror = Mirror(self.server, registration.kinds)
        self.mirror.hear()

    def lead(self):
        note(Leadership("me", f"me/{self.term}", clock.milliseconds() + 3_600_000))

    def works(self):
        """Let the mirror hear and the scheduler work, until nothing changes any more."""
        before = None
        while before != (self.server.version, len(outbox.cursors("default"))):
            before = self.server.version, len(outbox.cursors("default"))
            for _ in range(4):
                self.runner.step()
                self.mirror.hear()
            self.time.move(1)
            self.lead()

    def held(self):
        return held(self.server.all("pods"), GANG)


@pytest.fixture
def cluster(settings, monkeypatch, moved_clock):
    settings.WAY = "in-place"
    return Cluster(monkeypatch, moved_clock)


def stop_amid(cluster, lost, *, bindings):
    """Kill the process when it has bound so many pods of the gang, after the announcement; another one leads."""
    cluster.server.next_answers = [Answer.DONE] * bindings + [Answer.KILLED_AFTER]
    with pytest.raises(Killed):
        cluster.runner.run()
    cluster.server.next_answers = []
    assert len(cluster.held()) == bindings
    forget(*lost)


LOST = pytest.mark.parametrize("lost", [(), (*MIRRORED, *OWN)], ids=["the same installation", "another one"])


@LOST
@pytest.mark.parametrize("bindings", [1, 2])
def test_next_leader_binds_the_rest(cluster, lost, bindings):
    stop_amid(cluster, lost, bindings=bindings)
    cluster.begin()
    cluster.works()
    assert cluster.held() == GANG
    assert not cluster.server.deleted


@LOST
def test_next_leader_gives_back_what_finds_no_room_and_binds_it_later(cluster, lost):
    stop_amid(cluster, lost, bindings=2)
    cluster.put(objects.pod("other", "", cpu="1", node="n", phase="Running", scheduler="default-scheduler"))
    cluster.begin()
    cluster.works()
    assert cluster.held() == []
    assert len(cluster.server.deleted) == 2
    assert "GivenBack" in [each["reason"] for each in cluster.server.all("events").values()]
    cluster.server.end_pods()
    cluster.make()
    cluster.works()
    assert cluster.held() == [], "there is no room for all"
    cluster.server.remove("pods", "other")
    cluster.works()
    assert cluster.held() == GANG
    assert len(cluster.server.deleted) == 2
    status = cluster.server.all("podgroups")["g"]["status"]
    assert {each["type"]: each["status"] for each in status["conditions"]}["Scheduled"] == "True"


def test_gang_that_is_refused_is_tried_later_and_later_and_bound_when_it_is_not(cluster):
    cluster.server.refuses = True
    for second in range(260):
        for _ in range(2):
            cluster.runner.step()
            cluster.mirror.hear()
        cluster.server.end_pods()
        if second < 90 or second % 40 == 0:  # later it takes so long that the group is told what it waits for
            cluster.make()
        cluster.mirror.hear()
        cluster.lead()
        cluster.time.move(1)
        assert second < 10 or retries.standing({"scheduler": "ns/g"}), "it stands until the gang is bound"
    assert TOLD_AFTER < cluster.server.attempts < 20, "it is neither given up nor tried with every cycle"
    (refusal,) = retries.standing({"scheduler": "ns/g"})
    assert refusal.tries == cluster.server.attempts
    assert "does not like it" in refusal.error
    assert refusal.due > clock.milliseconds() - 2000
    cluster.server.refuses = False
    cluster.server.end_pods()
    cluster.make()
    cluster.time.move(30)
    cluster.lead()
    cluster.works()
    assert cluster.held() == GANG
    assert retries.standing({"scheduler": "ns/g"}) == []
