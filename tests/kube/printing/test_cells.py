from __future__ import annotations

import pytest

from kube.printing.cells import CELLS, PrintedRow
from kube.resources import CLAIMS, CONFIGMAPS, EVENTS, LEASES, NODES, PRIORITY_CLASSES, SECRETS, SERVICES
from tests.kube.printing.cases import BORN, HOUR, MINUTE, NOW, ago, shown
from tests.tables import cases


def cell(name, obj):
    return CELLS[name](PrintedRow(obj, NOW))


def ready(status):
    return {"conditions": [{"type": "DiskPressure", "status": "True"}, {"type": "Ready", "status": status}]}


@cases("obj, said", {
    "ready": ({"status": ready("True")}, "Ready"),
    "not ready": ({"status": ready("False")}, "NotReady"),
    "not heard of": ({"status": ready("Unknown")}, "NotReady"),
    "no conditions": ({}, "Unknown"),
    "cordoned": ({"spec": {"unschedulable": True}, "status": ready("True")}, "Ready,SchedulingDisabled"),
    "cordoned, unknown": ({"spec": {"unschedulable": True}}, "Unknown,SchedulingDisabled"),
})  # fmt: skip
def test_node_status(obj, said):
    assert shown(NODES, obj, "Status") == [said]


@pytest.mark.parametrize(
    ("labels", "roles"),
    [
        ({}, "<none>"),
        ({"node-role.kubernetes.io/worker": "", "node-role.kubernetes.io/control-plane": ""}, "control-plane,worker"),
        ({"node-role.kubernetes.io/": "", "kubernetes.io/role": ""}, "<none>"),
        ({"kubernetes.io/role": "gpu", "node-role.kubernetes.io/gpu": ""}, "gpu"),
    ],
)
def test_node_roles(labels, roles):
    assert shown(NODES, {"metadata": {"labels": labels}}, "Roles") == [roles]


def test_wide_columns_of_a_node():
    titles = ("Version", "Internal-IP", "External-IP", "OS-Image", "Kernel-Version", "Container-Runtime")
    assert shown(NODES, {}, *titles) == ["", "<none>", "<none>", "<unknown>", "<unknown>", "<unknown>"]
    addresses = [
        {"type": "Hostname", "address": "h"},
        {"type": "ExternalIP", "address": "1.1.1.1"},
        {"type": "InternalIP", "address": "10.0.0.1"},
    ]
    info = {
        "kubeletVersion": "v1",
        "osImage": "os",
        "kernelVersion": "6.1",
        "containerRuntimeVersion": "containerd://2",
    }
    assert shown(NODES, {"status": {"addresses": addresses, "nodeInfo": info}}, *titles) == [
        "v1",
        "10.0.0.1",
        "1.1.1.1",
        "os",
        "6.1",
        "containerd://2",
    ]


EVENT_TIMES = ("Last Seen", "First Seen", "Count")


@cases("event, row", {
    "counted": ({"firstTimestamp": ago(HOUR), "lastTimestamp": ago(MINUTE), "count": 6}, ["60s", "60m", 6]),
    "a single one of the new kind": ({"eventTime": ago(5 * MINUTE)}, ["5m", "5m", 1]),
    "series": ({"eventTime": ago(HOUR), "series": {"count": 3, "lastObservedTime": ago(2 * MINUTE)}}, ["2m", "60m", 3]),
    "no last time": ({"firstTimestamp": ago(HOUR), "lastTimestamp": None}, ["60m", "60m", 1]),
    "no times": ({}, ["<unknown>", "<unknown>", 1]),
})  # fmt: skip
def test_event_times(event, row):
    assert shown(EVENTS, event, *EVENT_TIMES) == row


@cases("event, row", {
    "pod": ({"involvedObject": {"kind": "Pod", "name": "web-0", "fieldPath": "spec.containers{c}"}, "source": {"component": "kubelet", "host": "n1"}, "message": " Pulled \n"},
        ["pod/web-0", "spec.containers{c}", "kubelet, n1", "Pulled"]),
    "no name, no host": ({"involvedObject": {"kind": "Node"}, "source": {"component": "scheduler"}},
        ["node", "", "scheduler", ""]),
    "reported in the new way": ({"reportingComponent": "agent", "reportingInstance": "agent-1"},
        ["", "", "agent, agent-1", ""]),
})  # fmt: skip
def test_event_words(event, row):
    assert shown(EVENTS, event, "Object", "Subobject", "Source", "Message") == row


@cases("spec, status, row", {
    "cluster IP": ({"type": "ClusterIP", "clusterIP": "10.0.0.9"}, {}, ["10.0.0.9", "<none>", "<none>"]),
    "node port": ({"type": "NodePort", "clusterIPs": ["10.0.0.9", "fd::9"], "externalIPs": ["1.1.1.1", "2.2.2.2"], "ports": [{"port": 80, "nodePort": 30080, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}]},
        {}, ["10.0.0.9", "1.1.1.1,2.2.2.2", "80:30080/TCP,53/UDP"]),
    "load balancer": ({"type": "LoadBalancer", "externalIPs": ["3.3.3.3"]},
        {"loadBalancer": {"ingress": [{"ip": "2.2.2.2"}, {"hostname": "a.example"}, {"ip": "1.1.1.1"}]}},
        ["<none>", "1.1.1.1,2.2.2.2,a.example,3.3.3.3", "<none>"]),
    "load balancer to come": ({"type": "LoadBalancer"}, {}, ["<none>", "<pending>", "<none>"]),
    "external name": ({"type": "ExternalName", "externalName": "db.example"}, {}, ["<none>", "db.example", "<none>"]),
    "no type": ({}, {}, ["<none>", "<unknown>", "<none>"]),
})  # fmt: skip
def test_service(spec, status, row):
    obj = {"spec": spec, "status": status}
    assert shown(SERVICES, obj, "Cluster-IP", "External-IP", "Port(s)") == row


def test_service_selector():
    assert shown(SERVICES, {"spec": {"selector": {"b": "2", "a": "1"}}}, "Selector") == ["a=1,b=2"]
    assert shown(SERVICES, {"spec": {}}, "Selector") == ["<none>"]


CLAIM = ("Status", "Volume", "Capacity", "Access Modes", "StorageClass", "VolumeMode")


@cases("claim, row", {
    "pending": ({"status": {"phase": "Pending"}}, ["Pending", "", "", "", "", "<unset>"]),
    "bound": ({"spec": {"volumeName": "v", "storageClassName": "fast", "volumeMode": "Filesystem"}, "status": {"phase": "Bound", "capacity": {"storage": "2048Mi"}, "accessModes": ["ReadWriteMany", "ReadWriteOnce", "ReadWriteOnce"]}},
        ["Bound", "v", "2Gi", "RWO,RWX", "fast", "Filesystem"]),
    "being deleted": ({"metadata": {"deletionTimestamp": BORN, "annotations": {"volume.beta.kubernetes.io/storage-class": "old"}}, "spec": {"storageClassName": "new"}, "status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}},
        ["Terminating", "", "", "", "old", "<unset>"]),
})  # fmt: skip
def test_claim(claim, row):
    assert shown(CLAIMS, claim, *CLAIM) == row


def test_entries_are_counted():
    assert shown(CONFIGMAPS, {"data": {"a": "1"}, "binaryData": {"b": "", "c": ""}}, "Data") == [3]
    assert shown(CONFIGMAPS, {}, "Data") == [0]
    assert shown(SECRETS, {"type": "Opaque", "data": {"a": ""}}, "Type", "Data") == ["Opaque", 1]
    assert cell("service_account_secrets", {"secrets": [{"name": "a"}]}) == 1


def test_priority_class_and_lease():
    titles = ("Value", "Global-Default", "PreemptionPolicy")
    assert shown(PRIORITY_CLASSES, {}, *titles) == [0, False, ""]
    full = {"value": 10, "globalDefault": True, "preemptionPolicy": "Never"}
    assert shown(PRIORITY_CLASSES, full, *titles) == [10, True, "Never"]
    assert shown(LEASES, {"spec": {"holderIdentity": "me"}}, "Holder") == ["me"]


def conditions(*true):
    return [{"type": each, "status": "True"} for each in true]


@cases("job, said", {
    "running": ({}, "Running"),
    "complete": ({"status": {"conditions": conditions("Complete", "SuccessCriteriaMet")}}, "Complete"),
    "failed": ({"status": {"conditions": conditions("FailureTarget", "Failed")}}, "Failed"),
    "being deleted": ({"metadata": {"deletionTimestamp": BORN}, "status": {"conditions": conditions("Suspended")}},
        "Terminating"),
    "complete and being deleted": (
        {"metadata": {"deletionTimestamp": BORN}, "status": {"conditions": conditions("Complete")}}, "Complete"),
    "suspended": ({"status": {"conditions": conditions("Suspended")}}, "Suspended"),
    "about to fail": ({"status": {"conditions": conditions("FailureTarget")}}, "FailureTarget"),
    "about to complete": ({"status": {"conditions": conditions("SuccessCriteriaMet")}}, "SuccessCriteriaMet"),
    "not failed": ({"status": {"conditions": [{"type": "Failed", "status": "False"}]}}, "Running"),
})  # fmt: skip
def test_job_status(job, said):
    assert cell("job_status", job) == said


@pytest.mark.parametrize(
    ("spec", "succeeded", "said"),
    [
        ({"completions": 3, "parallelism": 2}, 1, "1/3"),
        ({"completions": 1}, 0, "0/1"),
        ({"parallelism": 4}, 2, "2/1 of 4"),
        ({"parallelism": 1}, 1, "1/1"),
        ({}, 0, "0/1"),
    ],
)
def test_job_completions(spec, succeeded, said):
    assert cell("job_completions", {"spec": spec, "status": {"succeeded": succeeded}}) == said


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ({}, ""),
        ({"startTime": ago(5 * MINUTE)}, "5m"),
        ({"startTime": ago(HOUR), "completionTime": ago(30 * MINUTE)}, "30m"),
    ],
)
def test_job_duration(status, said):
    assert cell("job_duration", {"status": status}) == said


def test_containers_of_a_template():
    containers = [{"name": "a", "image": "x:1"}, {"name": "b", "image": "y:2"}]
    obj = {"spec": {"template": {"spec": {"containers": containers}}}}
    assert (cell("job_containers", obj), cell("job_images", obj)) == ("a,b", "x:1,y:2")
    assert cell("job_containers", {}) == ""


@cases("selector, said", {
    "none": (None, "<none>"),
    "empty": ({}, "<none>"),
    "labels": ({"matchLabels": {"b": "2", "a": "1"}}, "a=1,b=2"),
    "expressions": ({"matchLabels": {"m": "x"}, "matchExpressions": [{"key": "z", "operator": "In", "values": ["b", "a"]}, {"key": "a", "operator": "NotIn", "values": ["c"]}, {"key": "n", "operator": "Exists"}, {"key": "o", "operator": "DoesNotExist"}]},
        "a notin (c),m=x,n,!o,z in (a,b)"),
    "wrong": ({"matchExpressions": [{"key": "a", "operator": "Like"}]}, "<error>"),
    "not a selector": ("a=b", "<error>"),
})  # fmt: skip
def test_label_selector(selector, said):
    assert cell("job_selector", {"spec": {"selector": selector}}) == said
    assert cell("network_policy_pod_selector", {"spec": {"podSelector": selector}}) == said


def subset(*hosts, ports=()):
    return {"addresses": [{"ip": host} for host in hosts], "ports": [{"port": port} for port in ports]}


@pytest.mark.parametrize(
    ("subsets", "said"),
    [
        ([], "<none>"),
        ([subset("1.1.1.1", "2.2.2.2", ports=[80])], "1.1.1.1:80,2.2.2.2:80"),
        ([subset("1.1.1.1", "2.2.2.2", ports=[80, 443])], "1.1.1.1:80,2.2.2.2:80,1.1.1.1:443 + 1 more..."),
        ([subset("1.1.1.1"), subset("fd::1", ports=[80])], "1.1.1.1,[fd::1]:80"),
        ([subset()], ""),
    ],
)
def test_endpoints(subsets, said):
    assert cell("endpoints_addresses", {"subsets": subsets}) == said


def test_quota():
    hard = {"pods": "10", "limits.cpu": "4", "requests.memory": "1024Mi", "cpu": 2}
    obj = {"status": {"hard": hard, "used": {"pods": "3", "limits.cpu": "1500m"}}}
    assert cell("quota_request", obj) == "cpu: 0/2, pods: 3/10, requests.memory: 0/1Gi"
    assert cell("quota_limit", obj) == "limits.cpu: 1500m/4"
    assert cell("quota_request", {}) == cell("quota_limit", {}) == ""


@pytest.mark.parametrize(
    ("spec", "said"),
    [({}, ("N/A", "N/A")), ({"minAvailable": 0}, ("0", "N/A")), ({"maxUnavailable": "25%"}, ("N/A", "25%"))],
)
def test_disruption_budget(spec, said):
    obj = {"spec": spec}
    assert (cell("budget_min_available", obj), cell("budget_max_unavailable", obj)) == said


def test_a_moment_of_creation():
    assert cell("created_at", {"metadata": {"creationTimestamp": BORN}}) == BORN
    assert cell("created_at", {}) == "0001-01-01T00:00:00Z"


@pytest.mark.parametrize("name", CELLS)
def test_a_cell_of_nothing(name):
    cell(name, {})
    cell(name, [])
