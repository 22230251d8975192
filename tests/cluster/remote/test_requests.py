"""What is asked of an API server for a plan's writes, and plans as bytes."""

from __future__ import annotations

import pytest

from cluster.remote import encoding, requests
from cluster.writes import Create, Decision, Delete, Group, Minimum, Mirror, Patch, Timer, Update
from kube.resources import JOBS, POD_GROUPS, PODS, QUEUES

JOB = {"metadata": {"name": "j", "namespace": "d", "uid": "u"}, "status": {"state": {"phase": "Running"}}}
OTHER = {"type": "Ready", "status": "True"}
WAITS = {"type": "PodScheduled", "status": "False"}
JOB_PATH = "/apis/batch.volcano.sh/v1alpha1/namespaces/d/jobs/j"


@pytest.mark.parametrize(
    ("write", "method", "path", "body"),
    [
        (
            Create(PODS, {"metadata": {"name": "p", "namespace": "d"}}),
            "POST",
            "/api/v1/namespaces/d/pods",
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "d"}},
        ),
        (
            Update(JOBS, JOB, "status"),
            "PATCH",
            f"{JOB_PATH}/status",
            [
                {"op": "test", "path": "/metadata/uid", "value": "u"},
                {"op": "add", "path": "/status", "value": JOB["status"]},
            ],
        ),
        (
            Patch(JOBS, "d", "j", {"spec": {"queue": "q"}}, uid="u", version="7"),
            "PATCH",
            JOB_PATH,
            {"spec": {"queue": "q"}, "metadata": {"uid": "u", "resourceVersion": "7"}},
        ),
        (
            Patch(PODS, "d", "p", {"status": {"conditions": [OTHER, WAITS]}}, "status", uid="u"),
            "PATCH",
            "/api/v1/namespaces/d/pods/p/status",
            {"metadata": {"uid": "u"}, "status": {"conditions": [WAITS]}},
        ),
        (
            Patch(PODS, "d", "p", {"spec": {"nodeName": "n"}, "status": {}}, "binding", uid="u"),
            "POST",
            "/api/v1/namespaces/d/pods/p/binding",
            {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"namespace": "d", "name": "p", "uid": "u"},
                "target": {"apiVersion": "v1", "kind": "Node", "name": "n"},
            },
        ),
        (
            Delete(JOBS, "d", "j", uid="u", propagation="Foreground", grace=5),
            "DELETE",
            JOB_PATH,
            {
                "apiVersion": "v1",
                "kind": "DeleteOptions",
                "propagationPolicy": "Foreground",
                "preconditions": {"uid": "u"},
                "gracePeriodSeconds": 5,
            },
        ),
        (
            Update(QUEUES, {"metadata": {"name": "q", "resourceVersion": "3"}, "spec": {}}),
            "PUT",
            "/apis/scheduling.volcano.sh/v1beta1/queues/q",
            {"metadata": {"name": "q", "resourceVersion": "3"}, "spec": {}},
        ),
    ],
    ids=["create", "status", "patch", "pod's condition", "binding", "delete", "replace"],
)
def test_request(write, method, path, body):
    asked = requests.of(write)
    assert (asked.method, asked.path, asked.body) == (method, path, body)


def test_status_of_a_kind_without_the_subresource_is_changed_in_the_object():
    write = Update(POD_GROUPS, {"metadata": {"name": "g", "namespace": "d"}, "status": {}}, "status")
    assert requests.of(write).path.endswith("/podgroups/g")


def test_patched_status_is_sent_whole():
    patch = Patch(POD_GROUPS, "d", "g", {"status": {"phase": "Running", "old": None}}, "status", uid="u")
    whole = requests.settled(patch, {"status": {"phase": "Pending", "old": 1, "kept": 2}})
    assert whole.subresource == "status"
    assert whole.object["status"] == {"phase": "Running", "kept": 2}
    assert whole.object["metadata"] == {"namespace": "d", "name": "g", "uid": "u"}
    assert requests.settled(patch, None).object["status"] == {"phase": "Running"}
    for same in (Update(JOBS, JOB, "status"), Patch(PODS, "d", "p", {"status": {}}, "status")):
        assert requests.settled(same, None) is same


def test_what_is_mirrored_is_never_asked_for():
    with pytest.raises(TypeError, match="comes from the cluster"):
        requests.of(Mirror(PODS, {}))


def test_groups_are_the_same_after_they_were_written_down():
    group = Group(
        [
            Create(PODS, {"metadata": {"name": "p", "namespace": "d"}}),
            Update(JOBS, JOB, "status"),
            Patch(PODS, "d", "p", {"spec": {"nodeName": "n"}}, "binding", uid="u", version="3"),
            Delete(PODS, "d", "p", uid="u", grace=0, propagation="Foreground"),
        ],
        "d/j",
        timers=[Timer("asked", "d/j", 5, {"a": 1})],
        cancel=[("asked", "d/j")],
        minima=[Minimum(1, [2])],
        decisions=[Decision(7, "bind", "MinimumFits", "d", "j", "q", 1, "p got node n.", nodes=[("n", 1)])],
    )
    assert encoding.decode(encoding.encode(group)) == group
