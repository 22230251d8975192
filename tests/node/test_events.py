"""What a node tells of containers that wait to be started again."""

from __future__ import annotations

from cluster.store import Create, store
from kube.kinds.core import Pod
from kube.kinds.pod import ContainerState, ContainerStateWaiting, ContainerStatus, PodStatus
from kube.meta import ObjectMeta
from kube.resources import EVENTS, NAMESPACES
from node.agent import events
from node.agent.local_cluster import LocalCluster
from proof.simulation.machine import Deaf
from tests.tables import cases

T = 1_780_000_000_000
LOOPS = {"waiting": {"reason": "CrashLoopBackOff"}}
WAITS = ContainerState(waiting=ContainerStateWaiting(reason="CrashLoopBackOff"))


def pod(*waiting):
    statuses = [ContainerStatus(name=name, state=WAITS) for name in waiting]
    metadata = ObjectMeta(name="p", namespace="default", uid="u-1")
    return Pod(metadata=metadata, status=PodStatus(container_statuses=statuses))


def status(init=(), **states):
    def entries(states):
        return [{"name": name, "state": state} for name, state in states.items()]

    return {"containerStatuses": entries(states), "initContainerStatuses": entries(dict(init))}


@cases("before, after, expected", {
    "begins to wait": ((), status(a=LOOPS), [("containers", "a")]),
    "goes on waiting": (("a",), status(a=LOOPS), []),
    "runs": (("a",), status(a={"running": {}}), []),
    "is created": ((), status(a={"waiting": {"reason": "ContainerCreating"}}), []),
    "another one": (("a",), status(a=LOOPS, b=LOOPS), [("containers", "b")]),
    "init container": ((), status(init={"i": LOOPS}), [("initContainers", "i")]),
})  # fmt: skip
def test_a_wait_is_told_when_it_begins(before, after, expected):
    assert events.begun(pod(*before), after) == expected


def test_one_event_for_each_container_counts_its_waits(db):
    store.write(Create(NAMESPACES, {"metadata": {"name": "default"}}))
    for number in range(3):
        store.write(*events.writes(LocalCluster(Deaf()), pod(), status(a=LOOPS, b=LOOPS), T + number * 60_000))
    told = [stored.object for stored in store.find(EVENTS)]
    assert sorted((each["involvedObject"]["fieldPath"], each["count"]) for each in told) == [
        ("spec.containers{a}", 3),
        ("spec.containers{b}", 3),
    ]
    assert {each["lastTimestamp"] for each in told} == {"2026-05-28T20:28:40Z"}
    assert {each["firstTimestamp"] for each in told} == {"2026-05-28T20:26:40Z"}
