"""What people want is drawn in the same way again, can all be drawn, and is what the API takes."""

from __future__ import annotations

import contextlib
import os
from collections import Counter, defaultdict
from pathlib import Path
from random import Random

import msgspec
import pytest

from cluster.bootstrap import bootstrap
from cluster.rules.simulation import SIMULATED
from cluster.runtime import registry
from cluster.runtime.consumer import Runner
from cluster.store import Create, Delete, Patch, store
from kube import resources
from kube.errors import Conflict, NotFound
from kube.resources import NODES, POD_GROUPS, PODS
from tests.apiserver.client import Api, serving
from tests.cluster.api.conftest import person  # noqa: F401  a fixture
from tests.simulation.client import KINDS, ROLES, Client, Request, setup
from tests.simulation.request import path

WISHES = 200
TURN = 10  # wishes between two turns of the cluster; so old may a picture be
ROUNDS = 30  # at kinds that did not come by themselves
ACCEPTED_SHARE = 0.85
REFUSED_SHARE = 0.9  # a queue may have been opened since it was seen closed
SUBMITTED_SHARE = (0.5, 0.6)


class Shown:
    """A picture of objects that somebody has collected."""

    def __init__(self, objects=None, now=0):
        self.found = objects or {}
        self.now = now

    def objects(self, resource):
        return self.found.get(resource, {})


def wishes_of(seed, count, picture):
    client = Client(Random(seed))
    return [client.wish(picture) for _ in range(count)]


def some_jobs(count, phase="Running"):
    """Return jobs as a watch shows them."""
    return {
        ("default", f"j{number}"): {
            "metadata": {"name": f"j{number}", "namespace": "default", "uid": f"u{number}"},
            "spec": {"tasks": [{"name": "main", "replicas": 2}], "minAvailable": 2},
            "status": {"state": {"phase": phase}},
        }
        for number in range(count)
    }


def test_the_same_seed_and_pictures_give_the_same_wishes():
    picture = Shown({"jobs.batch.volcano.sh": some_jobs(5)})
    assert wishes_of(7, 200, picture) == wishes_of(7, 200, picture)
    assert wishes_of(7, 200, picture) != wishes_of(8, 200, picture)


def test_the_order_in_which_a_watch_showed_objects_does_not_matter():
    jobs = some_jobs(5)
    turned = dict(reversed(jobs.items()))
    shown, other = (Shown({"jobs.batch.volcano.sh": each}) for each in (jobs, turned))
    assert wishes_of(7, 100, shown) == wishes_of(7, 100, other)


def test_a_request_survives_being_written_down():
    for request in wishes_of(3, 200, Shown()):
        assert msgspec.json.decode(msgspec.json.encode(request), type=Request) == request


def test_about_half_of_all_wishes_bring_work():
    weights = Counter()
    for kind in KINDS.values():
        weights[kind.submits] += kind.weight
    assert SUBMITTED_SHARE[0] < weights[True] / weights.total() < SUBMITTED_SHARE[1]


def test_too_many_jobs_make_people_delete():
    def deletions(count):
        picture = Shown({"jobs.batch.volcano.sh": some_jobs(count)})
        return sum(each.method == "DELETE" for each in wishes_of(1, 100, picture))

    assert deletions(300) > 2 * deletions(20)


def test_a_weight_of_nothing_means_never_and_a_wrong_name_is_told():
    client = Client(Random(1), dict.fromkeys(KINDS, 0) | {"submit gang": 1})
    assert {client.draw(Shown())[0] for _ in range(20)} == {"submit gang"}
    with pytest.raises(ValueError, match="no wish called 'dance'"):
        Client(Random(1), {"dance": 1})


# ---- against the real API


class Seen:
    """A picture read from the server; it is as old as the last turn."""

    now = 0

    def __init__(self, api):
        self.api = api
        self.lists = {}

    def forget(self):
        self.lists = {}

    def objects(self, resource):
        if resource not in self.lists:
            items = self.api.get(path(resources.by_id(resource))).json()["items"]
            self.lists[resource] = {_key(each): each for each in items}
        return self.lists[resource]


def _key(obj):
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


class Cluster:
    """The controllers, run by hand, and chance in the place of scheduler and nodes."""

    def __init__(self, seed):
        self.random = Random(seed)
        others = [each for each in registry.every() if each.name != "scheduler"]
        self.runners = [Runner(each, 0, each.make()) for each in others]

    def turn(self):
        for _ in range(2):
            for runner in self.runners:
                while runner.step():
                    pass
            self._admit()
            self._work()

    def _admit(self):
        waiting = [each for each in store.find(POD_GROUPS) if _phase(each) in ("", "Pending")]
        _write(Patch(POD_GROUPS, g.namespace, g.name, {"status": {"phase": "Inqueue"}}) for g in waiting)

    def _work(self):
        """Let some pods start, and some that run end."""
        for pod in store.find(PODS, phase=["Pending", "Running"]):
            if pod.object["metadata"].get("deletionTimestamp"):
                _remove(pod)
            elif self.random.random() < 0.6:
                following = "Running" if _phase(pod) == "Pending" else self._end()
                self._become(pod, following)

    def _end(self):
        return self.random.choice(("Running", "Running", "Running", "Succeeded", "Failed"))

    def _become(self, pod, phase):
        if pod.object["spec"].get("schedulingGates"):
            return
        status = {"phase": phase, "conditions": [{"type": "Ready", "status": "True"}]}
        node = {"spec": {"nodeName": "sim-0001"}}
        _write([
            Patch(PODS, pod.namespace, pod.name, node),
            Patch(PODS, pod.namespace, pod.name, {"status": status}, "status"),
        ])  # fmt: skip


def _write(writes):
    """Write what is still possible: somebody may have been faster."""
    for write in writes:
        with contextlib.suppress(Conflict, NotFound):
            store.write(write)


def _remove(pod):
    _write([Delete(PODS, pod.namespace, pod.name, uid=pod.uid, grace=0)])


def _phase(stored):
    return (stored.object.get("status") or {}).get("phase") or ""


def a_node(name):
    amounts = {"cpu": "8", "memory": "32Gi", "pods": "40"}
    return {
        "metadata": {"name": name, "labels": {SIMULATED: "true"}, "annotations": {SIMULATED: "true"}},
        "spec": {"taints": [{"key": SIMULATED, "value": "true", "effect": "NoSchedule"}]},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


class Answers:
    """What the server said, by kind of wish."""

    def __init__(self):
        self.by_kind = defaultdict(Counter)
        self.refusals = []

    def note(self, kind, request, answer):
        assert answer.status_code < 500, (request, answer.text)
        is_accepted = answer.status_code < 300
        self.by_kind[kind][is_accepted] += 1
        if not is_accepted:
            message = answer.json()["message"]
            assert message, request
            self.refusals.append((KINDS[kind].meant, kind, request.wish, answer.status_code, message))

    def share(self, meant):
        """Return the share of the wishes meant to be accepted, or refused, that were."""
        found = [counts for kind, counts in self.by_kind.items() if KINDS[kind].meant == meant]
        right = sum(counts[meant == "accepted"] for counts in found)
        return right / sum(counts.total() for counts in found)


class Life:
    """A client, the server that it talks to, and the cluster behind that."""

    def __init__(self, url, person, seed):  # noqa: F811
        actors = {name: person(name, everywhere=role) for name, role in ROLES.items()}
        self.apis = {name: Api(url, actor) for name, actor in actors.items()}
        self.picture = Seen(self.apis["admin"])
        self.client = Client(Random(seed))
        self.cluster = Cluster(seed)
        self.answers = Answers()

    def send(self, request):
        api = self.apis[request.actor]
        return api.request(request.method, request.path, request.body, request.content_type)

    def begin(self):
        bootstrap()
        store.write(*(Create(NODES, a_node(f"sim-{number:04d}")) for number in range(1, 11)))
        for request in setup():
            answer = self.send(request)
            assert answer.status_code == 201, (request, answer.text)
        self.turn()

    def turn(self):
        self.cluster.turn()
        self.picture.forget()

    def live(self, count):
        for number in range(count):
            kind, request = self.client.draw(self.picture)
            self.answers.note(kind, request, self.send(request))
            if number % TURN == 0:
                self.turn()

    def insist(self):
        """Live on, with every kind as common as all others, until each was answered as it is meant to be."""
        self.client.weights = dict.fromkeys(KINDS, 1)
        for _ in range(ROUNDS):
            for kind in self.missing():
                self.attempt(kind)
            if not self.missing():
                return
            self.live(TURN)

    def attempt(self, kind):
        request = self.client.make(kind, self.picture)
        if request is not None:
            self.answers.note(kind, request, self.send(request))

    def missing(self):
        """Return the kinds that were never answered as they are meant to be."""
        return [kind for kind in KINDS if not self.answers.by_kind[kind][KINDS[kind].meant != "refused"]]


@pytest.fixture
def life(transactional_db, redis_url, settings, person):  # noqa: F811
    settings.REDIS_URL = redis_url
    with serving() as url:
        yield Life(url, person, seed=1)


def test_the_api_takes_what_people_want(life):
    life.begin()
    life.live(WISHES)
    life.insist()
    report(life.answers)
    assert life.missing() == []
    assert life.answers.share("accepted") >= ACCEPTED_SHARE, life.answers.refusals
    assert life.answers.share("refused") >= REFUSED_SHARE, life.answers.by_kind


def report(answers):
    """Write what was answered to the file that REPORT names, for whoever looks into it."""
    if not (where := os.environ.get("REPORT")):
        return
    counted = [
        f"{kind:38} {KINDS[kind].meant:9} accepted {counts[True]:3} of {counts.total():3}"
        for kind, counts in sorted(answers.by_kind.items())
    ]
    shares = [
        f"{answers.share(meant):.3f} of what was meant to be {meant}" for meant in ("accepted", "refused")
    ]
    Path(where).write_text("\n".join([*counted, *shares, *map(str, answers.refusals)]) + "\n")
