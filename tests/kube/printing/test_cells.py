"""The cells of Kubernetes' own kinds, as kubectl prints them; those of pods are in `test_pods`."""

from __future__ import annotations

import pytest

from kube.printing.cells import CELLS, PrintedRow
from kube.resources import CLAIMS, CONFIGMAPS, EVENTS, LEASES, NODES, PRIORITY_CLASSES, SECRETS, SERVICES
from tests.kube.printing.cases import BORN, HOUR, MINUTE, NOW, ago, shown
from tests.tables import cases

LABEL = "node-role.kubernetes.io"
WIDE = ("Version", "Internal-IP", "External-IP", "OS-Image", "Kernel-Version", "Container-Runtime")
INFO = {"kubeletVersion": "v1", "osImage": "os", "kernelVersion": "6.1", "containerRuntimeVersion": "containerd://2"}
IPS = {"Hostname": "h", "ExternalIP": "1.1.1.1", "InternalIP": "10.0.0.1"}
ADDRESSES = [{"type": kind, "address": address} for kind, address in IPS.items()]
CORDONED = {"spec": {"unschedulable": True}}


def ready(status):
    conditions = [{"type": "DiskPressure", "status": "True"}, {"type": "Ready", "status": status}]
    return {"status": {"conditions": conditions}}


@cases("obj, titles, row", {
    "ready": (ready("True"), ["Status"], ["Ready"]),
    "not ready": (ready("False"), ["Status"], ["NotReady"]),
    "not heard of": (ready("Unknown"), ["Status"], ["NotReady"]),
    "no conditions": ({}, ["Status"], ["Unknown"]),
    "cordoned": ({**CORDONED, **ready("True")}, ["Status"], ["Ready,SchedulingDisabled"]),
    "cordoned, unknown": (CORDONED, ["Status"], ["Unknown,SchedulingDisabled"]),
    "no roles": ({}, ["Roles"], ["<none>"]),
    "two roles": ({"metadata": {"labels": {f"{LABEL}/worker": "", f"{LABEL}/control-plane": ""}}}, ["Roles"], ["control-plane,worker"]),
    "empty roles": ({"metadata": {"labels": {f"{LABEL}/": "", "kubernetes.io/role": ""}}}, ["Roles"], ["<none>"]),
    "a role twice": ({"metadata": {"labels": {"kubernetes.io/role": "gpu", f"{LABEL}/gpu": ""}}}, ["Roles"], ["gpu"]),
    "nothing known": ({}, WIDE, ["", "<none>", "<none>", "<unknown>", "<unknown>", "<unknown>"]),
    "wide": ({"status": {"addresses": ADDRESSES, "nodeInfo": INFO}}, WIDE, ["v1", "10.0.0.1", "1.1.1.1", "os", "6.1", "containerd://2"]),
})  # fmt: skip
def test_nodes(obj, titles, row):
    assert shown(NODES, obj, *titles) == row


TIMES, WORDS = ("Last Seen", "First Seen", "Count"), ("Object", "Subobject", "Source", "Message")
POD = {"kind": "Pod", "name": "web-0", "fieldPath": "spec.containers{c}"}


@cases("event, titles, row", {
    "counted": ({"firstTimestamp": ago(HOUR), "lastTimestamp": ago(MINUTE), "count": 6}, TIMES, ["60s", "60m", 6]),
    "a single one of the new kind": ({"eventTime": ago(5 * MINUTE)}, TIMES, ["5m", "5m", 1]),
    "series": ({"eventTime": ago(HOUR), "series": {"count": 3, "lastObservedTime": ago(2 * MINUTE)}}, TIMES, ["2m", "60m", 3]),
    "no last time": ({"firstTimestamp": ago(HOUR), "lastTimestamp": None}, TIMES, ["60m", "60m", 1]),
    "no times": ({}, TIMES, ["<unknown>", "<unknown>", 1]),
    "pod": ({"involvedObject": POD, "source": {"component": "kubelet", "host": "n1"}, "message": " Pulled \n"}, WORDS,
        ["pod/web-0", "spec.containers{c}", "kubelet, n1", "Pulled"]),
    "no name, no host": ({"involvedObject": {"kind": "Node"}, "source": {"component": "scheduler"}}, WORDS, ["node", "", "scheduler", ""]),
    "reported in the new way": ({"reportingComponent": "agent", "reportingInstance": "agent-1"}, WORDS, ["", "", "agent, agent-1", ""]),
})  # fmt: skip
def test_events(event, titles, row):
    assert shown(EVENTS, event, *titles) == row


PORTS = [{"port": 80, "nodePort": 30080, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}]
EXTERNAL = {"clusterIPs": ["10.0.0.9", "fd::9"], "externalIPs": ["1.1.1.1", "2.2.2.2"]}
INGRESS = {"loadBalancer": {"ingress": [{"ip": "2.2.2.2"}, {"hostname": "a.example"}, {"ip": "1.1.1.1"}]}}


@cases("spec, status, row", {
    "cluster IP": ({"type": "ClusterIP", "clusterIP": "10.0.0.9"}, {}, ["10.0.0.9", "<none>", "<none>", "<none>"]),
    "node port": ({"type": "NodePort", **EXTERNAL, "ports": PORTS}, {}, ["10.0.0.9", "1.1.1.1,2.2.2.2", "80:30080/TCP,53/UDP", "<none>"]),
    "load balancer": ({"type": "LoadBalancer", "externalIPs": ["3.3.3.3"]}, INGRESS, ["<none>", "1.1.1.1,2.2.2.2,a.example,3.3.3.3", "<none>", "<none>"]),
    "load balancer to come": ({"type": "LoadBalancer"}, {}, ["<none>", "<pending>", "<none>", "<none>"]),
    "external name": ({"type": "ExternalName", "externalName": "db.example"}, {}, ["<none>", "db.example", "<none>", "<none>"]),
    "no type": ({}, {}, ["<none>", "<unknown>", "<none>", "<none>"]),
    "selector": ({"selector": {"b": "2", "a": "1"}}, {}, ["<none>", "<unknown>", "<none>", "a=1,b=2"]),
})  # fmt: skip
def test_services(spec, status, row):
    assert shown(SERVICES, {"spec": spec, "status": status}, "Cluster-IP", "External-IP", "Port(s)", "Selector") == row


CLAIM = ("Status", "Volume", "Capacity", "Access Modes", "StorageClass", "VolumeMode")
BOUND = {
    "phase": "Bound",
    "capacity": {"storage": "2048Mi"},
    "accessModes": ["ReadWriteMany", "ReadWriteOnce", "ReadWriteOnce"],
}
GOING = {"deletionTimestamp": BORN, "annotations": {"volume.beta.kubernetes.io/storage-class": "old"}}


@cases("kind, titles, obj, row", {
    "pending claim": (CLAIMS, CLAIM, {"status": {"phase": "Pending"}}, ["Pending", "", "", "", "", "<unset>"]),
    "bound claim": (CLAIMS, CLAIM, {"spec": {"volumeName": "v", "storageClassName": "fast", "volumeMode": "Filesystem"}, "status": BOUND},
        ["Bound", "v", "2Gi", "RWO,RWX", "fast", "Filesystem"]),
    "claim that is deleted": (CLAIMS, CLAIM, {"metadata": GOING, "spec": {"storageClassName": "new"}, "status": {"phase": "Bound"}},
        ["Terminating", "", "", "", "old", "<unset>"]),
    "config map": (CONFIGMAPS, ["Data"], {"data": {"a": "1"}, "binaryData": {"b": "", "c": ""}}, [3]),
    "empty config map": (CONFIGMAPS, ["Data"], {}, [0]),
    "secret": (SECRETS, ["Type", "Data"], {"type": "Opaque", "data": {"a": ""}}, ["Opaque", 1]),
    "priority class": (PRIORITY_CLASSES, ["Value", "Global-Default", "PreemptionPolicy"], {"value": 10, "globalDefault": True, "preemptionPolicy": "Never"}, [10, True, "Never"]),
    "empty priority class": (PRIORITY_CLASSES, ["Value", "Global-Default", "PreemptionPolicy"], {}, [0, False, ""]),
    "lease": (LEASES, ["Holder"], {"spec": {"holderIdentity": "me"}}, ["me"]),
})  # fmt: skip
def test_other_kinds(kind, titles, obj, row):
    assert shown(kind, obj, *titles) == row


def status(*true, **metadata):
    return {"metadata": metadata, "status": {"conditions": [{"type": each, "status": "True"} for each in true]}}


def completions(succeeded, **spec):
    return {"spec": spec, "status": {"succeeded": succeeded}}


def subsets(*found):
    return {"subsets": [{"addresses": [{"ip": host} for host in hosts], "ports": [{"port": port} for port in ports]} for hosts, ports in found]}  # fmt: skip


TEMPLATE = {
    "spec": {"template": {"spec": {"containers": [{"name": "a", "image": "x:1"}, {"name": "b", "image": "y:2"}]}}}
}
HARD = {"pods": "10", "limits.cpu": "4", "requests.memory": "1024Mi", "cpu": 2}
QUOTA = {"status": {"hard": HARD, "used": {"pods": "3", "limits.cpu": "1500m"}}}


@cases("name, obj, text", {
    "running job": ("job_status", {}, "Running"),
    "complete job": ("job_status", status("Complete", "SuccessCriteriaMet"), "Complete"),
    "failed job": ("job_status", status("FailureTarget", "Failed"), "Failed"),
    "job that is deleted": ("job_status", status("Suspended", deletionTimestamp=BORN), "Terminating"),
    "complete job that is deleted": ("job_status", status("Complete", deletionTimestamp=BORN), "Complete"),
    "suspended job": ("job_status", status("Suspended"), "Suspended"),
    "job about to fail": ("job_status", status("FailureTarget"), "FailureTarget"),
    "job about to complete": ("job_status", status("SuccessCriteriaMet"), "SuccessCriteriaMet"),
    "job not failed": ("job_status", {"status": {"conditions": [{"type": "Failed", "status": "False"}]}}, "Running"),
    "1 of 3": ("job_completions", completions(1, completions=3, parallelism=2), "1/3"),
    "0 of 1": ("job_completions", completions(0, completions=1), "0/1"),
    "of some": ("job_completions", completions(2, parallelism=4), "2/1 of 4"),
    "of one": ("job_completions", completions(1, parallelism=1), "1/1"),
    "of what is not said": ("job_completions", completions(0), "0/1"),
    "not begun": ("job_duration", {}, ""),
    "begun": ("job_duration", {"status": {"startTime": ago(5 * MINUTE)}}, "5m"),
    "ended": ("job_duration", {"status": {"startTime": ago(HOUR), "completionTime": ago(30 * MINUTE)}}, "30m"),
    "containers": ("job_containers", TEMPLATE, "a,b"),
    "images": ("job_images", TEMPLATE, "x:1,y:2"),
    "no endpoints": ("endpoints_addresses", subsets(), "<none>"),
    "endpoints": ("endpoints_addresses", subsets((["1.1.1.1", "2.2.2.2"], [80])), "1.1.1.1:80,2.2.2.2:80"),
    "many endpoints": ("endpoints_addresses", subsets((["1.1.1.1", "2.2.2.2"], [80, 443])), "1.1.1.1:80,2.2.2.2:80,1.1.1.1:443 + 1 more..."),
    "endpoints without ports": ("endpoints_addresses", subsets((["1.1.1.1"], []), (["fd::1"], [80])), "1.1.1.1,[fd::1]:80"),
    "endpoints without addresses": ("endpoints_addresses", subsets(([], [])), ""),
    "requests of a quota": ("quota_request", QUOTA, "cpu: 0/2, pods: 3/10, requests.memory: 0/1Gi"),
    "limits of a quota": ("quota_limit", QUOTA, "limits.cpu: 1500m/4"),
    "no bound of a budget": ("budget_min_available", {}, "N/A"),
    "no other bound": ("budget_max_unavailable", {}, "N/A"),
    "at least none": ("budget_min_available", {"spec": {"minAvailable": 0}}, "0"),
    "at most a quarter": ("budget_max_unavailable", {"spec": {"maxUnavailable": "25%"}}, "25%"),
    "secrets": ("service_account_secrets", {"secrets": [{"name": "a"}]}, 1),
    "created": ("created_at", {"metadata": {"creationTimestamp": BORN}}, BORN),
    "never created": ("created_at", {}, "0001-01-01T00:00:00Z"),
})  # fmt: skip
def test_cells(name, obj, text):
    assert CELLS[name](PrintedRow(obj, NOW)) == text


def expression(key, operator, *values):
    return {"key": key, "operator": operator, "values": list(values)}


EXPRESSIONS = [
    expression("z", "In", "b", "a"),
    expression("a", "NotIn", "c"),
    expression("n", "Exists"),
    expression("o", "DoesNotExist"),
]


@cases("selector, text", {
    "none": (None, "<none>"),
    "empty": ({}, "<none>"),
    "labels": ({"matchLabels": {"b": "2", "a": "1"}}, "a=1,b=2"),
    "expressions": ({"matchLabels": {"m": "x"}, "matchExpressions": EXPRESSIONS}, "a notin (c),m=x,n,!o,z in (a,b)"),
    "wrong": ({"matchExpressions": [{"key": "a", "operator": "Like"}]}, "<error>"),
    "not a selector": ("a=b", "<error>"),
})  # fmt: skip
def test_label_selectors(selector, text):
    for name, field in (("job_selector", "selector"), ("network_policy_pod_selector", "podSelector")):
        assert CELLS[name](PrintedRow({"spec": {field: selector}}, NOW)) == text


@pytest.mark.parametrize("name", CELLS)
def test_a_cell_of_nothing(name):
    for nothing in ({}, []):
        CELLS[name](PrintedRow(nothing, NOW))
