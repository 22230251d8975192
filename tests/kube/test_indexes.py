"""By what the store finds pods that do not get on."""

from __future__ import annotations

import pytest

from kube import indexes


def waits(reason, kind="containerStatuses"):
    return {kind: [{"name": "a", "state": {"waiting": {"reason": reason}}}]}


@pytest.mark.parametrize(
    ("status", "trouble"),
    [
        pytest.param({}, "", id="new"),
        pytest.param({"phase": "Running", "containerStatuses": [{"state": {"running": {}}}]}, "", id="runs"),
        pytest.param(waits("ContainerCreating"), "", id="starts"),
        pytest.param(waits("PodInitializing"), "", id="is initialized"),
        pytest.param(waits("CrashLoopBackOff"), "CrashLoop", id="starts again and again"),
        pytest.param(waits("CrashLoopBackOff", "initContainerStatuses"), "CrashLoop", id="does not get initialized"),
        pytest.param(waits("X" * 100), "ContainerWaits", id="a reason that is no word"),
        pytest.param(
            {"phase": "Running", "containerStatuses": [{"state": {"running": None}}]}, "ContainersEnded", id="null runs"
        ),
        pytest.param({**waits("CrashLoopBackOff"), "phase": "Failed"}, "", id="has ended"),
        pytest.param({"containerStatuses": [{"state": {"waiting": None}}]}, "", id="null"),
    ],
)
def test_trouble_of_a_pod_is_why_a_container_waits(status, trouble):
    assert indexes.pod({"metadata": {}, "status": status}).trouble == trouble
