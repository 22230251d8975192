from __future__ import annotations

from kube.resources import PODS
from tests.kube.printing.cases import BORN, DAY, HOUR, MINUTE, ago, shown
from tests.tables import cases


def pod(phase="Running", containers=1, *, init=(), inits=(), states=(), **status):
    """A pod of so many containers, with the statuses of its init containers and containers."""
    spec = {"containers": [{"name": f"c{number}"} for number in range(containers)], "initContainers": list(init)}
    status = {"phase": phase, "initContainerStatuses": list(inits), "containerStatuses": list(states), **status}
    return {"metadata": {"name": "p", "creationTimestamp": BORN}, "spec": spec, "status": status}


def deleted(obj):
    return {**obj, "metadata": {**obj["metadata"], "deletionTimestamp": BORN}}


def status(state, *, name="c0", ready=False, restarts=0, last=None, **extra):
    last = {"terminated": {"finishedAt": last}} if last else {}
    return {"name": name, "ready": ready, "restartCount": restarts, "state": state, "lastState": last, **extra}


def waiting(reason="", **extra):
    return status({"waiting": {"reason": reason}}, **extra)


def running(ready=True, **extra):
    return status({"running": {}}, ready=ready, **extra)


def ended(code=0, reason="", signal=0, **extra):
    return status({"terminated": {"exitCode": code, "reason": reason, "signal": signal}}, **extra)


INIT = {"name": "i0"}
SIDECAR = {"name": "s0", "restartPolicy": "Always"}
READY = [{"type": "Ready", "status": "True"}]
INITIALIZED = [{"type": "Initialized", "status": "True"}]


@cases("obj, ready, said, restarts", {
    "pending": (pod("Pending"), "0/1", "Pending", "0"),
    "no phase": (pod(""), "0/1", "", "0"),
    "running": (pod(containers=2, states=[running(), running(restarts=3)]), "2/2", "Running", "3"),
    "half ready": (pod(containers=2, states=[running(), running(ready=False)]), "1/2", "Running", "0"),
    "evicted": (pod("Failed", reason="Evicted"), "0/1", "Evicted", "0"),
    "creating": (pod("Pending", states=[waiting("ContainerCreating")]), "0/1", "ContainerCreating", "0"),
    "crash loop": (pod(states=[waiting("CrashLoopBackOff", restarts=4, last=ago(2 * MINUTE))]), "0/1",
        "CrashLoopBackOff", "4 (2m ago)"),
    "the first container has the last word": (
        pod(containers=2, states=[waiting("ErrImagePull"), waiting("CrashLoopBackOff")]), "0/2", "ErrImagePull", "0"),
    "completed": (pod("Succeeded", states=[ended(0, "Completed")]), "0/1", "Completed", "0"),
    "error": (pod("Failed", states=[ended(1, "Error")]), "0/1", "Error", "0"),
    "out of memory": (pod("Failed", states=[ended(137, "OOMKilled")]), "0/1", "OOMKilled", "0"),
    "exit code": (pod("Failed", states=[ended(3)]), "0/1", "ExitCode:3", "0"),
    "signal": (pod("Failed", states=[ended(137, signal=9)]), "0/1", "Signal:9", "0"),
    "one completed, ready": (pod(containers=2, states=[ended(0, "Completed"), running()], conditions=READY), "1/2",
        "Running", "0"),
    "one completed, not ready": (pod(containers=2, states=[ended(0, "Completed"), running()]), "1/2", "NotReady", "0"),
    "an error behind one that completed": (
        pod("Failed", containers=2, states=[ended(0, "Completed"), ended(1, "Error")]), "0/2", "Error", "0"),
    "the last of all restarts": (pod(states=[running(restarts=2, last=ago(DAY)), running(restarts=1, last=ago(HOUR))]),
        "2/1", "Running", "3 (60m ago)"),
    "gated": (pod("Pending", conditions=[{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]),
        "0/1", "SchedulingGated", "0"),
    "being deleted": (deleted(pod(states=[running()])), "1/1", "Terminating", "0"),
    "deleted with its node lost": (deleted(pod(reason="NodeLost")), "0/1", "Unknown", "0"),
    "being deleted after its end": (deleted(pod("Succeeded", states=[ended(0, "Completed")])), "0/1", "Completed", "0"),
    "first init container at work": (pod("Pending", init=[INIT, {"name": "i1"}], inits=[running(name="i0")]), "0/1",
        "Init:0/2", "0"),
    "second init container next": (pod("Pending", init=[INIT, {"name": "i1"}], inits=[ended(name="i0", restarts=2), waiting("PodInitializing", name="i1")]),
        "0/1", "Init:1/2", "2"),
    "init crash loop": (
        pod("Pending", init=[INIT], inits=[waiting("CrashLoopBackOff", restarts=3, last=ago(5 * MINUTE))]), "0/1",
        "Init:CrashLoopBackOff", "3 (5m ago)"),
    "init error": (pod("Failed", init=[INIT], inits=[ended(1, "Error")]), "0/1", "Init:Error", "0"),
    "init exit code": (pod("Failed", init=[INIT], inits=[ended(2)]), "0/1", "Init:ExitCode:2", "0"),
    "init signal": (pod("Failed", init=[INIT], inits=[ended(137, signal=9)]), "0/1", "Init:Signal:9", "0"),
    "restarts of finished init containers are forgotten": (
        pod(init=[INIT], inits=[ended(restarts=5)], states=[running(restarts=1)]), "1/1", "Running", "1"),
    "sidecar": (
        pod(init=[SIDECAR], inits=[running(name="s0", started=True, restarts=2, last=ago(MINUTE))], states=[running()]),
        "2/2", "Running", "2 (60s ago)"),
    "sidecar that has not started": (
        pod("Pending", init=[SIDECAR], inits=[running(name="s0", started=False, ready=False)]), "0/2", "Init:0/1", "0"),
    "sidecar that broke after the start": (pod(init=[SIDECAR], inits=[waiting("CrashLoopBackOff", name="s0", restarts=1)], states=[running()], conditions=INITIALIZED),
        "1/2", "Init:CrashLoopBackOff", "1"),
})  # fmt: skip
def test_pod(obj, ready, said, restarts):
    assert shown(PODS, obj, "Ready", "Status", "Restarts", "Age") == [ready, said, restarts, "3m"]


@cases("gates, status, titles, row", {
    "no gates": ([], {}, ["Readiness Gates"], ["<none>"]),
    "closed": (["a"], {}, ["Readiness Gates"], ["0/1"]),
    "one of two": (["a", "b"], {"conditions": [{"type": "a", "status": "True"}]}, ["Readiness Gates"], ["1/2"]),
    "false": (["a"], {"conditions": [{"type": "a", "status": "False"}]}, ["Readiness Gates"], ["0/1"]),
    "wide": ([], {"podIP": "10.0.0.1", "nominatedNodeName": "m"}, ["IP", "Node", "Nominated Node"], ["10.0.0.1", "n", "m"]),
    "nothing known": ([], {}, ["IP", "Nominated Node"], ["<none>"] * 2),
})  # fmt: skip
def test_other_columns(gates, status, titles, row):
    obj = pod(**status)
    obj["spec"] |= {"nodeName": "n", "readinessGates": [{"conditionType": gate} for gate in gates]}
    assert shown(PODS, obj, *titles) == row
    assert shown(PODS, pod(), "Node") == ["<none>"]
