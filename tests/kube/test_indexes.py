"""By what the store finds pods that do not get on."""

from __future__ import annotations

from kube import indexes
from tests.tables import cases


def waits(reason, kind="containerStatuses"):
    return {kind: [{"name": "a", "state": {"waiting": {"reason": reason}}}]}


@cases("status, trouble", {
    "new": ({}, ""),
    "runs": ({"phase": "Running", "containerStatuses": [{"state": {"running": {}}}]}, ""),
    "starts": (waits("ContainerCreating"), ""),
    "is initialized": (waits("PodInitializing"), ""),
    "starts again and again": (waits("CrashLoopBackOff"), "CrashLoop"),
    "does not get initialized": (waits("CrashLoopBackOff", "initContainerStatuses"), "CrashLoop"),
    "a reason that is no word": (waits("X" * 100), "ContainerWaits"),
    "null runs": ({"phase": "Running", "containerStatuses": [{"state": {"running": None}}]}, "ContainersEnded"),
    "has ended": ({**waits("CrashLoopBackOff"), "phase": "Failed"}, ""),
    "null": ({"containerStatuses": [{"state": {"waiting": None}}]}, ""),
})  # fmt: skip
def test_trouble_of_a_pod_is_why_a_container_waits(status, trouble):
    assert indexes.pod({"metadata": {}, "status": status}).trouble == trouble
