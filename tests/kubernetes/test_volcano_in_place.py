"""Ours and Volcano's own controllers, scheduler and vcctl in turns on one cluster.

With our definitions of Volcano's kinds, and again with Volcano's own.
"""

import re

import pytest
import yaml

from kube.resources import JOBS, QUEUES
from proof.harness.waiting import until
from proof.kubernetes import world
from proof.kubernetes.volcano import NAMESPACE, Volcano
from tests.kubernetes.objects import comes_to, release, staying, there, uids

pytestmark = pytest.mark.system
OURS_WORK = "The controllers and the scheduler of these pages work there."
VOLCANO_WORKS = "Volcano's own controllers or scheduler work there"


@pytest.fixture
def in_place(cluster, tmp_path):
    """A system that works on the cluster as soon as it may."""
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    config = cluster.kubeconfig("in-place", "system:masters")
    with world.showing(tmp_path, config, VOLCANO_UI_WAY="in-place") as system:
        world.live(system)
        yield system


def says(system, sentence):
    until(lambda: sentence in world.strip_text(system).replace("&#x27;", "'"), every_s=0.5, what=f"“{sentence}”")


def submit(cluster, obj):
    cluster.apply({**obj, "spec": {**obj["spec"], "schedulerName": "volcano", "queue": "default"}})


def test_who_works_changes_and_jobs_that_were_begun_go_on(cluster, in_place):
    """Volcano works, ours take over, and Volcano works again; each time a job that the others began is brought to its end."""
    volcano = Volcano(cluster)
    try:
        volcano.start()
        says(in_place, VOLCANO_WORKS)
        submit(cluster, staying("begun-by-volcano", replicas=2))
        comes_to(cluster, "begun-by-volcano", "Running")
        begun = uids(cluster, "begun-by-volcano")
        volcano.vcctl("queue", "create", "-n", "shut")
        becomes(cluster, "shut", "Open")
        volcano.vcctl("queue", "operate", "-n", "shut", "-a", "close")
        becomes(cluster, "shut", "Closed")
        volcano.stop()
        says(in_place, OURS_WORK)
        submit(cluster, staying("begun-by-ours", replicas=2))
        comes_to(cluster, "begun-by-ours", "Running")
        assert uids(cluster, "begun-by-volcano") == begun, "nothing was made anew"
        release(cluster, "begun-by-volcano")
        comes_to(cluster, "begun-by-volcano", "Completed")
        assert queue_state(cluster, "shut") == "Closed", "nobody has opened it"
        begun = uids(cluster, "begun-by-ours")
        volcano.start()
        says(in_place, VOLCANO_WORKS)
        assert uids(cluster, "begun-by-ours") == begun, "nothing was made anew"
        release(cluster, "begun-by-ours")
        comes_to(cluster, "begun-by-ours", "Completed")
    finally:
        volcano.stop()


def becomes(cluster, name, state):
    until(lambda: queue_state(cluster, name) == state, every_s=0.2, what=f"that queue {name} is {state}")


@pytest.mark.shows(
    "queue state 5/get, list",
    "queue state 5/update",
    "queue state 5/delete",
    "queue state 5/operate",
    "scheduler 10.1/20",
)
def test_vcctl_comes_to_the_same_with_volcano_and_with_ours(cluster, tmp_path):
    volcano = Volcano(cluster)
    try:
        volcano.start()
        volcano.start_webhooks()
        theirs = commanded(cluster, volcano.vcctl, tmp_path)
    finally:
        volcano.stop()
    config = cluster.kubeconfig("in-place", "system:masters")
    with world.showing(tmp_path, config, VOLCANO_UI_WAY="in-place") as system:
        says(system, OURS_WORK)
        ours = commanded(cluster, volcano.vcctl, tmp_path)
    assert ours == theirs


def commanded(cluster, vcctl, folder):
    """Do with vcctl what it can do, and return what came of it: what the cluster has, and what vcctl prints of it."""
    found = {}
    vcctl("queue", "create", "-n", "research", "-w", "3")
    becomes(cluster, "research", "Open")
    vcctl("queue", "operate", "-n", "research", "-a", "update", "-w", "5")
    found["queue"] = row(vcctl("queue", "get", "-n", "research"), "research", 3)
    for action, wanted in (("close", "Closed"), ("open", "Open"), ("close", "Closed")):
        vcctl("queue", "operate", "-n", "research", "-a", action)
        becomes(cluster, "research", wanted)
    found["closed"] = row(vcctl("queue", "list"), "research", 3)
    vcctl("queue", "delete", "-n", "research")
    assert there(cluster, QUEUES, "research") is None

    vcctl("job", "run", "-N", "tiny", "-r", "2", "-m", "2", "-R", "cpu=100m", "-L", "cpu=100m")
    comes_to(cluster, "tiny", "Completed")
    found["pods"] = sorted(uids(cluster, "tiny"))
    found["listed"] = row(vcctl("job", "list"), "tiny", 5)
    file = folder / "long.yaml"
    file.write_text(yaml.safe_dump(staying("long")))
    vcctl("job", "run", "-f", file)
    for action, wanted in (("", "Running"), ("suspend", "Aborted"), ("resume", "Running")):
        if action:
            vcctl("job", action, "-N", "long")
        comes_to(cluster, "long", wanted)
    viewed = vcctl("job", "view", "-N", "long")
    found["viewed"] = sorted(set(re.findall(r"Phase:\s+(\w+)|(ExecuteAction)", viewed)))
    for name in ("long", "tiny"):
        vcctl("job", "delete", "-N", name)
        until(lambda name=name: not uids(cluster, name), every_s=0.2, what="that its pods are gone")
    found["left"] = [name for name in ("long", "tiny") if there(cluster, JOBS, name)]
    return found


def queue_state(cluster, name):
    return ((there(cluster, QUEUES, name) or {}).get("status") or {}).get("state")


def row(printed, name, columns):
    """Return the first columns of what vcctl prints of one object; the others are times and counts."""
    values = next(line.split() for line in printed.splitlines() if line.split()[:1] == [name])
    return [each for each in values if not re.fullmatch(r"\d{4}-\d\d-\d\d", each)][:columns]
