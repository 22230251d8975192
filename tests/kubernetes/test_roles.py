"""The cluster roles of deploy/kubernetes: they are enough for all that the pages do, and each right in them is needed."""

from __future__ import annotations

import pytest

from cluster.remote.kinds import KINDS
from kube.resources import COMMANDS, JOBS, PODS, QUEUES
from proof.harness.waiting import until
from proof.kubernetes import world
from proof.kubernetes.cluster import DEPLOY
from proof.systems.parts import stopped
from proof.systems.work import Person, Watcher, problems
from tests.kubernetes.samples import sample
from tests.system import changes

pytestmark = pytest.mark.system
ROLES = ("volcano-ui-read-only", "volcano-ui-beside")
STATES = dict.fromkeys(changes.LASTING, "Running") | {"paused": "Aborted", "ended": "Completed"}


@pytest.fixture
def objects(kubernetes):
    """What the changes are made to, as Volcano's controllers would have brought it there."""
    for kind, obj in changes.objects():
        place = {"namespace": "default"} if kind.namespaced else {}
        whole = {"apiVersion": kind.api_version, "kind": kind.kind, **obj}
        kubernetes.apply({**whole, "metadata": {**obj["metadata"], **place}})
    for name, phase in STATES.items():
        kubernetes.set_status(JOBS.id, name, {"state": {"phase": phase}, "running": 1})
    kubernetes.set_status(QUEUES.id, "closed", {"state": "Closed"})
    owner = kubernetes.get(JOBS.id, "long")["metadata"]["uid"]
    reference = {"apiVersion": JOBS.api_version, "kind": "Job", "name": "long", "uid": owner, "controller": True}
    pod = sample(PODS, "long-main-0")
    pod["metadata"]["ownerReferences"] = [reference]
    kubernetes.apply(pod)
    yield
    for kind in (JOBS, COMMANDS):
        kubernetes.clear(kind)


def test_each_right_is_used_and_no_other_is_asked_for(kubernetes, objects, tmp_path):
    kubernetes.kubectl("apply", "-f", DEPLOY / "base" / "roles.yaml")
    config = world.account(kubernetes, *ROLES)
    before = len(kubernetes.asked_by(world.USER))
    with world.showing(tmp_path, config) as system, system.store() as store, Person(system) as person:
        world.live(system)
        here = Watcher(store)
        until(lambda: here.pods("long")["long-main-0"]["status"]["phase"] != "Pending", what="a pod that ran")
        log = person.get("/jobs/default/long/log/", pod="long-main-0")
        assert log.status_code == 404, "its node is played and keeps no logs"
        assert changes.sweep(person, "old").status_code == 302
        for change in changes.CHANGES:
            answer = changes.send(person, change)
            assert answer.status_code == 302, (change.name, problems(answer))
        save_behind_the_mirror(kubernetes, system, person)
    asked = kubernetes.asked_by(world.USER)[before:]
    assert [each["requestURI"] for each in asked if each["responseStatus"]["code"] == 403] == []
    used = {right(each) for each in asked if "objectRef" in each}
    granted = set().union(*(rights(kubernetes, role) for role in ROLES))
    assert granted - used == set(), "nobody needs these"
    assert {each for each in used if each[0] == "watch"} == {("watch", kind.group, kind.plural) for kind in KINDS}


def save_behind_the_mirror(kubernetes, system, person):
    """Save a form while the mirror is behind: the object is read."""
    with stopped(system, "mirror"):
        kubernetes.kubectl("annotate", JOBS.id, "long", "note=newer")
        assert person.fill("/jobs/default/long/edit/", labels="team: speech").status_code == 302


def right(entry):
    """What an entry of the audit needed: verb, group, and resource with its part."""
    about = entry["objectRef"]
    part = f"/{about['subresource']}" if about.get("subresource") else ""
    return entry["verb"], about.get("apiGroup", ""), about["resource"] + part


def rights(kubernetes, role):
    """What a cluster role grants, one by one."""
    return {
        (verb, group, resource)
        for rule in kubernetes.get("clusterrole", role)["rules"]
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
