from __future__ import annotations

import pytest

from kube.resources import PODS
from tests.kube.printing.cases import BORN, DAY, HOUR, MINUTE, ago, shown


def pod(phase="Running", containers=1, *, init=(), inits=(), states=(), **status):
    """A pod of so many containers, with the statuses of its init containers and containers."""
    return {
        "metadata": {"name": "p", "creationTimestamp": BORN},
        "spec": {"containers": [{"name": f"c{number}"} for number in range(containers)], "initContainers": list(init)},
        "status": {"phase": phase, "initContainerStatuses": list(inits), "containerStatuses": list(states), **status},
    }


def deleted(obj):
    return {**obj, "metadata": {**obj["metadata"], "deletionTimestamp": BORN}}


def status(state, *, name="c0", ready=False, restarts=0, last=None, **extra):
    return {
        "name": name,
        "ready": ready,
        "restartCount": restarts,
        "state": state,
        "lastState": {"terminated": {"finishedAt": last}} if last else {},
        **extra,
    }


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


@pytest.mark.parametrize(
    ("obj", "ready", "said", "restarts"),
    [
        pytest.param(pod("Pending"), "0/1", "Pending", "0", id="pending"),
        pytest.param(pod(""), "0/1", "", "0", id="no phase"),
        pytest.param(pod(containers=2, states=[running(), running(restarts=3)]), "2/2", "Running", "3", id="running"),
        pytest.param(
            pod(containers=2, states=[running(), running(ready=False)]), "1/2", "Running", "0", id="half ready"
        ),
        pytest.param(pod("Failed", reason="Evicted"), "0/1", "Evicted", "0", id="evicted"),
        pytest.param(
            pod("Pending", states=[waiting("ContainerCreating")]), "0/1", "ContainerCreating", "0", id="creating"
        ),
        pytest.param(
            pod(states=[waiting("CrashLoopBackOff", restarts=4, last=ago(2 * MINUTE))]),
            "0/1",
            "CrashLoopBackOff",
            "4 (2m ago)",
            id="crash loop",
        ),
        pytest.param(
            pod(containers=2, states=[waiting("ErrImagePull"), waiting("CrashLoopBackOff")]),
            "0/2",
            "ErrImagePull",
            "0",
            id="the first container has the last word",
        ),
        pytest.param(pod("Succeeded", states=[ended(0, "Completed")]), "0/1", "Completed", "0", id="completed"),
        pytest.param(pod("Failed", states=[ended(1, "Error")]), "0/1", "Error", "0", id="error"),
        pytest.param(pod("Failed", states=[ended(137, "OOMKilled")]), "0/1", "OOMKilled", "0", id="out of memory"),
        pytest.param(pod("Failed", states=[ended(3)]), "0/1", "ExitCode:3", "0", id="exit code"),
        pytest.param(pod("Failed", states=[ended(137, signal=9)]), "0/1", "Signal:9", "0", id="signal"),
        pytest.param(
            pod(containers=2, states=[ended(0, "Completed"), running()], conditions=READY),
            "1/2",
            "Running",
            "0",
            id="one completed, ready",
        ),
        pytest.param(
            pod(containers=2, states=[ended(0, "Completed"), running()]),
            "1/2",
            "NotReady",
            "0",
            id="one completed, not ready",
        ),
        pytest.param(
            pod("Failed", containers=2, states=[ended(0, "Completed"), ended(1, "Error")]),
            "0/2",
            "Error",
            "0",
            id="an error behind one that completed",
        ),
        pytest.param(
            pod(states=[running(restarts=2, last=ago(DAY)), running(restarts=1, last=ago(HOUR))]),
            "2/1",
            "Running",
            "3 (60m ago)",
            id="the last of all restarts",
        ),
        pytest.param(
            pod("Pending", conditions=[{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]),
            "0/1",
            "SchedulingGated",
            "0",
            id="gated",
        ),
        pytest.param(deleted(pod(states=[running()])), "1/1", "Terminating", "0", id="being deleted"),
        pytest.param(deleted(pod(reason="NodeLost")), "0/1", "Unknown", "0", id="deleted with its node lost"),
        pytest.param(
            deleted(pod("Succeeded", states=[ended(0, "Completed")])),
            "0/1",
            "Completed",
            "0",
            id="being deleted after its end",
        ),
        pytest.param(
            pod("Pending", init=[INIT, {"name": "i1"}], inits=[running(name="i0")]),
            "0/1",
            "Init:0/2",
            "0",
            id="first init container at work",
        ),
        pytest.param(
            pod(
                "Pending",
                init=[INIT, {"name": "i1"}],
                inits=[ended(name="i0", restarts=2), waiting("PodInitializing", name="i1")],
            ),
            "0/1",
            "Init:1/2",
            "2",
            id="second init container next",
        ),
        pytest.param(
            pod("Pending", init=[INIT], inits=[waiting("CrashLoopBackOff", restarts=3, last=ago(5 * MINUTE))]),
            "0/1",
            "Init:CrashLoopBackOff",
            "3 (5m ago)",
            id="init crash loop",
        ),
        pytest.param(pod("Failed", init=[INIT], inits=[ended(1, "Error")]), "0/1", "Init:Error", "0", id="init error"),
        pytest.param(pod("Failed", init=[INIT], inits=[ended(2)]), "0/1", "Init:ExitCode:2", "0", id="init exit code"),
        pytest.param(
            pod("Failed", init=[INIT], inits=[ended(137, signal=9)]), "0/1", "Init:Signal:9", "0", id="init signal"
        ),
        pytest.param(
            pod(init=[INIT], inits=[ended(restarts=5)], states=[running(restarts=1)]),
            "1/1",
            "Running",
            "1",
            id="restarts of finished init containers are forgotten",
        ),
        pytest.param(
            pod(
                init=[SIDECAR],
                inits=[running(name="s0", started=True, restarts=2, last=ago(MINUTE))],
                states=[running()],
            ),
            "2/2",
            "Running",
            "2 (60s ago)",
            id="sidecar",
        ),
        pytest.param(
            pod("Pending", init=[SIDECAR], inits=[running(name="s0", started=False, ready=False)]),
            "0/2",
            "Init:0/1",
            "0",
            id="sidecar that has not started",
        ),
        pytest.param(
            pod(
                init=[SIDECAR],
                inits=[waiting("CrashLoopBackOff", name="s0", restarts=1)],
                states=[running()],
                conditions=INITIALIZED,
            ),
            "1/2",
            "Init:CrashLoopBackOff",
            "1",
            id="sidecar that broke after the start",
        ),
    ],
)
def test_pod(obj, ready, said, restarts):
    assert shown(PODS, obj, "Ready", "Status", "Restarts", "Age") == [ready, said, restarts, "3m"]


@pytest.mark.parametrize(
    ("gates", "conditions", "cell"),
    [
        pytest.param([], [], "<none>", id="no gates"),
        pytest.param(["a"], [], "0/1", id="closed"),
        pytest.param(["a", "b"], [{"type": "a", "status": "True"}], "1/2", id="one of two"),
        pytest.param(["a"], [{"type": "a", "status": "False"}], "0/1", id="false"),
    ],
)
def test_readiness_gates(gates, conditions, cell):
    obj = pod(conditions=conditions)
    obj["spec"]["readinessGates"] = [{"conditionType": gate} for gate in gates]
    assert shown(PODS, obj, "Readiness Gates") == [cell]


def test_wide_columns():
    titles = ("IP", "Node", "Nominated Node")
    obj = pod(podIP="10.0.0.1", nominatedNodeName="m")
    obj["spec"]["nodeName"] = "n"
    assert shown(PODS, obj, *titles) == ["10.0.0.1", "n", "m"]
    assert shown(PODS, pod(), *titles) == ["<none>"] * 3
