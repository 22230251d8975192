"""The smaller kinds: what is refused, accepted and may change, and what is filled in beside and by the defaults of Kubernetes."""

from __future__ import annotations

import base64
import json

import pytest

from cluster.api import admission
from kube import conversion
from kube import resources as kinds
from kube.errors import Forbidden
from proof.systems.system import PROJECT
from tests import builders
from tests.tables import cases

from .defaulted import CASES, seen
from .known import DROP, Known, admit, admitted, causes, changed, messages, of, priority_class

CLASSES, SECRETS, MAPS = kinds.PRIORITY_CLASSES, kinds.SECRETS, kinds.CONFIGMAPS
SERVICES, CLAIMS, POLICIES = kinds.SERVICES, kinds.CLAIMS, kinds.NETWORK_POLICIES
BUDGETS, QUOTAS, RANGES = kinds.DISRUPTION_BUDGETS, kinds.RESOURCE_QUOTAS, kinds.LIMIT_RANGES
ENDPOINTS, NODES, LEASES = kinds.ENDPOINTS, kinds.NODES, kinds.LEASES
EVENTS, VIEW = kinds.EVENTS, kinds.EVENTS_VIEW
ACCOUNTS, HYPERS = kinds.SERVICE_ACCOUNTS, kinds.HYPER_NODES
TEXT = base64.b64encode(b"text").decode()
DEFAULTS = json.loads((PROJECT / "tests/golden/kubernetes/defaults.json").read_text())


@pytest.mark.parametrize("case", CASES)
def test_object_is_stored_as_a_kube_apiserver_was_seen_to_store_it(case):
    assert seen(admitted(*CASES[case])) == DEFAULTS[case]


def a_class(name="x", value=1, **fields):
    return {"metadata": {"name": name}, "value": value, **fields}


def with_spec(kind, **spec):
    return of(kind, spec=spec)


def service(**spec):
    return of(SERVICES, spec={"ports": [{"port": 80}], **spec})


def claim(**spec):
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return of(CLAIMS, spec={**wanted, **spec})


def quota(hard=None, **spec):
    return of(QUOTAS, spec={"hard": hard or {}, **spec})


def limits(kind="Container", **item):
    return of(RANGES, spec={"limits": [{"type": kind, **item}]})


def event(namespace="default", about="default", **fields):
    involved = {"kind": "Pod", "name": "p", **({"namespace": about} if about else {})}
    return {"metadata": {"name": "x", "namespace": namespace}, "involvedObject": involved, **fields}


def node(**spec):
    return {"metadata": {"name": "n"}, "spec": spec}


def taints(*pairs):
    return node(taints=[{"key": key, "effect": effect} for key, effect in pairs])


def hyper(*members, **spec):
    return with_spec(HYPERS, **{"tier": 1, "members": list(members), **spec})


def member(type="Node", **selector):  # noqa: A002  the field's name
    return {"type": type, "selector": selector}


NAME, SELECTOR = {"exactMatch": {"name": "a"}}, "spec.members[0].selector"


@cases("kind, obj, field", {
    "a high priority": (CLASSES, a_class(value=1_000_000_001), "value"),
    "a priority beyond 32 bits": (CLASSES, a_class(value=2**31), "value"),
    "a reserved class": (CLASSES, a_class("system-mine"), "metadata.name"),
    "a system class of another value": (CLASSES, a_class("system-node-critical", 5), "metadata.name"),
    "an unknown preemption policy": (CLASSES, a_class(preemptionPolicy="Always"), "preemptionPolicy"),
    "a secret that is no base64": (SECRETS, of(SECRETS, data={"a": "%%"}), "data[a]"),
    "a secret with a bad key": (SECRETS, of(SECRETS, stringData={"a b": "x"}), "data[a b]"),
    "a key that leads upwards": (SECRETS, of(SECRETS, data={"..": TEXT}), "data[..]"),
    "TLS without a key": (SECRETS, of(SECRETS, type="kubernetes.io/tls", data={"tls.crt": TEXT}), "data[tls.key]"),
    "a token of nobody": (SECRETS, of(SECRETS, type="kubernetes.io/service-account-token"), "metadata.annotations[kubernetes.io/service-account.name]"),
    "a key in both halves": (MAPS, of(MAPS, data={"a": "x"}, binaryData={"a": TEXT}), "data[a]"),
    "binary data that is no base64": (MAPS, of(MAPS, binaryData={"a": "%"}), "binaryData[a]"),
    "no port": (SERVICES, service(ports=[]), "spec.ports"),
    "port 0": (SERVICES, service(ports=[{"port": 0}]), "spec.ports[0].port"),
    "ports without names": (SERVICES, service(ports=[{"port": 1, "name": "a"}, {"port": 2}]), "spec.ports[1].name"),
    "a port name twice": (SERVICES, service(ports=[{"port": 1, "name": "a"}, {"port": 2, "name": "a"}]), "spec.ports[1].name"),
    "a port twice": (SERVICES, service(ports=[{"port": 1, "name": "a"}, {"port": 1, "name": "b"}]), "spec.ports[1]"),
    "an unknown protocol": (SERVICES, service(ports=[{"port": 1, "protocol": "HTTP"}]), "spec.ports[0].protocol"),
    "a node port without need": (SERVICES, service(ports=[{"port": 1, "nodePort": 30000}]), "spec.ports[0].nodePort"),
    "an unknown type": (SERVICES, service(type="Magic"), "spec.type"),
    "an address that is none": (SERVICES, service(clusterIP="here"), "spec.clusterIPs[0]"),
    "a headless NodePort": (SERVICES, service(clusterIP="None", type="NodePort"), "spec.clusterIPs[0]"),
    "an external name left out": (SERVICES, service(type="ExternalName"), "spec.externalName"),
    "a service named by a number": (SERVICES, changed(service(), "metadata.name", "1a"), "metadata.name"),
    "endpoints without addresses": (ENDPOINTS, of(ENDPOINTS, subsets=[{"ports": [{"port": 1}]}]), "subsets[0]"),
    "an endpoint that is no address": (ENDPOINTS, of(ENDPOINTS, subsets=[{"addresses": [{"ip": "x"}]}]), "subsets[0].addresses[0].ip"),
    "no access mode": (CLAIMS, claim(accessModes=[]), "spec.accessModes"),
    "an unknown access mode": (CLAIMS, claim(accessModes=["Often"]), "spec.accessModes[0]"),
    "no size": (CLAIMS, claim(resources={}), "spec.resources[storage]"),
    "size 0": (CLAIMS, claim(resources={"requests": {"storage": "0"}}), "spec.resources[storage]"),
    "a peer that is nobody": (POLICIES, with_spec(POLICIES, ingress=[{"from": [{}]}]), "spec.ingress[0].from[0]"),
    "a peer that is two": (POLICIES, with_spec(POLICIES, egress=[{"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}, "podSelector": {}}]}]), "spec.egress[0].to[0]"),
    "a block that is none": (POLICIES, with_spec(POLICIES, ingress=[{"from": [{"ipBlock": {"cidr": "x"}}]}]), "spec.ingress[0].from[0].ipBlock.cidr"),
    "an end without a port": (POLICIES, with_spec(POLICIES, ingress=[{"ports": [{"endPort": 9}]}]), "spec.ingress[0].ports[0].port"),
    "an end before the port": (POLICIES, with_spec(POLICIES, ingress=[{"ports": [{"port": 10, "endPort": 9}]}]), "spec.ingress[0].ports[0].endPort"),
    "an unknown policy type": (POLICIES, with_spec(POLICIES, policyTypes=["Sideways"]), "spec.policyTypes[0]"),
    "both bounds of a budget": (BUDGETS, with_spec(BUDGETS, minAvailable=1, maxUnavailable=1), "spec"),
    "a negative bound": (BUDGETS, with_spec(BUDGETS, minAvailable=-1), "spec.minAvailable"),
    "more than all": (BUDGETS, with_spec(BUDGETS, maxUnavailable="101%"), "spec.maxUnavailable"),
    "a percentage that is none": (BUDGETS, with_spec(BUDGETS, maxUnavailable="half"), "spec.maxUnavailable"),
    "a bad selector": (BUDGETS, with_spec(BUDGETS, selector={"matchExpressions": [{"key": "a", "operator": "Like"}]}), "spec.selector"),
    "an unknown eviction policy": (BUDGETS, with_spec(BUDGETS, unhealthyPodEvictionPolicy="No"), "spec.unhealthyPodEvictionPolicy"),
    "a negative quota": (QUOTAS, quota({"pods": -1}), "spec.hard[pods]"),
    "half a pod": (QUOTAS, quota({"pods": "500m"}), "spec.hard[pods]"),
    "an unknown scope": (QUOTAS, quota(scopes=["Sometimes"]), "spec.scopes[0]"),
    "scopes that exclude each other": (QUOTAS, quota(scopes=["BestEffort", "NotBestEffort"]), "spec.scopes"),
    "a scope without values": (QUOTAS, quota(scopeSelector={"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In"}]}), "spec.scopeSelector.matchExpressions[0].values"),
    "limits of a type twice": (RANGES, of(RANGES, spec={"limits": [{"type": "Pod"}, {"type": "Pod"}]}), "spec.limits[1].type"),
    "defaults for pods": (RANGES, limits("Pod", default={"cpu": 1}), "spec.limits[0].default"),
    "a minimum above the maximum": (RANGES, limits("Pod", min={"cpu": 2}, max={"cpu": 1}), "spec.limits[0].min[cpu]"),
    "a default above the maximum": (RANGES, limits(default={"cpu": 2}, max={"cpu": 1}), "spec.limits[0].default[cpu]"),
    "a ratio below one": (RANGES, limits(maxLimitRequestRatio={"cpu": "500m"}), "spec.limits[0].maxLimitRequestRatio[cpu]"),
    "limits of claims without a size": (RANGES, limits("PersistentVolumeClaim", max={"cpu": 1}), "spec.limits[0]"),
    "an event that lies elsewhere": (EVENTS, event("default", "other"), "involvedObject.namespace"),
    "an event about the cluster that lies in a namespace": (EVENTS, event("work", ""), "involvedObject.namespace"),
    "a new event that nobody reports": (EVENTS, event(eventTime="2026-01-01T00:00:00Z"), "reportingComponent"),
    "a taint without effect": (NODES, taints(("a", "")), "spec.taints[0].effect"),
    "a taint twice": (NODES, taints(("a", "NoSchedule"), ("a", "NoSchedule")), "spec.taints[1]"),
    "a lease of no time": (LEASES, of(LEASES, spec={"leaseDurationSeconds": 0}), "spec.leaseDurationSeconds"),
    "no members": (HYPERS, hyper(), "spec.members"),
    "no tier": (HYPERS, with_spec(HYPERS, members=[member(**NAME)]), "spec.tier"),
    "a tier below 0": (HYPERS, hyper(member(**NAME), tier=-1), "spec.tier"),
    "a member of another type": (HYPERS, hyper(member("Rack", **NAME)), "spec.members[0].type"),
    "a member without selector": (HYPERS, hyper(member(**NAME), member()), "spec.members[1].selector"),
    "a member of two selectors": (HYPERS, hyper(member(**NAME, labelMatch={})), SELECTOR),
    "a member of no name": (HYPERS, hyper(member(exactMatch={"name": "A b"})), f"{SELECTOR}.exactMatch.name"),
    "a member of no pattern": (HYPERS, hyper(member(regexMatch={"pattern": "("})), f"{SELECTOR}.regexMatch.pattern"),
    "a member of no labels": (HYPERS, hyper(member(labelMatch={"matchLabels": {"a b": "c"}})), f"{SELECTOR}.labelMatch"),
    "a member of itself": (HYPERS, hyper(member("HyperNode", exactMatch={"name": "x"})), f"{SELECTOR}.exactMatch.name"),
    "an account with a bad secret": (ACCOUNTS, of(ACCOUNTS, imagePullSecrets=[{"name": "A b"}]), "imagePullSecrets[0].name"),
})  # fmt: skip
def test_refusals(kind, obj, field):
    assert field in [where for where, _ in causes(kind, obj)]


@cases("kind, obj", {
    "a class": (CLASSES, a_class(value=-5)),
    "a system class": (CLASSES, a_class("system-node-critical", 2_000_001_000)),
    "a secret": (SECRETS, of(SECRETS, stringData={"a.b_c-d": "x"})),
    "TLS": (SECRETS, of(SECRETS, type="kubernetes.io/tls", data={"tls.crt": TEXT, "tls.key": ""})),
    "a config map": (MAPS, of(MAPS, data={"a": "x"}, binaryData={"b": TEXT})),
    "a service": (SERVICES, service(selector={"app": "x"})),
    "a headless service": (SERVICES, service(clusterIP="None", ports=[])),
    "an external name": (SERVICES, service(type="ExternalName", externalName="example.com", ports=[])),
    "named ports": (SERVICES, service(ports=[{"port": 1, "name": "a", "targetPort": "web"}, {"port": 1, "name": "b", "protocol": "UDP"}])),
    "endpoints": (ENDPOINTS, of(ENDPOINTS, subsets=[{"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 80}]}])),
    "a claim": (CLAIMS, claim()),
    "a policy": (POLICIES, with_spec(POLICIES, ingress=[{"from": [{"podSelector": {}}], "ports": [{"port": "web"}]}])),
    "a budget": (BUDGETS, with_spec(BUDGETS, minAvailable="50%", selector={"matchLabels": {"a": "b"}})),
    "a quota": (QUOTAS, quota({"pods": "5", "requests.cpu": "500m", "count/jobs.batch": 3})),
    "a limit range": (RANGES, limits(max={"cpu": 2}, min={"cpu": "100m"}, maxLimitRequestRatio={"cpu": 4})),
    "an event": (EVENTS, event()),
    "an event about a node": (EVENTS, event("default", "")),
    "a node": (NODES, taints(("a", "NoSchedule"), ("a", "NoExecute"))),
    "a lease": (LEASES, of(LEASES, spec={"holderIdentity": "a", "leaseDurationSeconds": 15})),
    "a node by its name": (HYPERS, hyper(member(**NAME))),
    "a HyperNode by its name": (HYPERS, hyper(member("HyperNode", **NAME), tier=0, tierName="row")),
    "nodes by a pattern": (HYPERS, hyper(member(regexMatch={"pattern": "^a[0-9]+$"}))),
    "nodes by labels": (HYPERS, hyper(member(labelMatch={"matchLabels": {"rack": "a"}}))),
    "an account": (ACCOUNTS, of(ACCOUNTS, automountServiceAccountToken=False)),
})  # fmt: skip
def test_acceptances(kind, obj):
    stored = admitted(kind, obj)
    assert causes(kind, stored, stored) == []
    assert admit(kind, stored, stored).object == stored


@cases("kind, obj, path, value, field", {
    "a class's value": (CLASSES, a_class(), "value", 2, "value"),
    "a class's preemption policy": (CLASSES, a_class(), "preemptionPolicy", "Never", "preemptionPolicy"),
    "a class's description": (CLASSES, a_class(), "description", "new", None),
    "a secret's type": (SECRETS, of(SECRETS), "type", "mine", "type"),
    "a secret's data": (SECRETS, of(SECRETS), "data", {"a": TEXT}, None),
    "an immutable secret's data": (SECRETS, of(SECRETS, immutable=True), "data", {"a": TEXT}, "data"),
    "an immutable secret made mutable": (SECRETS, of(SECRETS, immutable=True), "immutable", False, "immutable"),
    "an immutable config map's data": (MAPS, of(MAPS, immutable=True), "data", {"a": "b"}, "data"),
    "an immutable config map's binary data": (MAPS, of(MAPS, immutable=True), "binaryData", {"a": TEXT}, "binaryData"),
    "an immutable config map's labels": (MAPS, of(MAPS, immutable=True), "metadata.labels", {"a": "b"}, None),
    "a service's address": (SERVICES, service(clusterIP="None"), "spec.clusterIP", "10.0.0.1", "spec.clusterIP"),
    "a claim's mode": (CLAIMS, claim(), "spec.accessModes", ["ReadWriteMany"], "spec"),
    "a claim's class": (CLAIMS, claim(), "spec.storageClassName", "fast", "spec"),
    "a claim grows": (CLAIMS, claim(), "spec.resources.requests.storage", "2Gi", None),
    "a claim shrinks": (CLAIMS, claim(), "spec.resources.requests.storage", "1Mi", "spec.resources.requests.storage"),
    "a quota's scopes": (QUOTAS, quota(), "spec.scopes", ["BestEffort"], "spec.scopes"),
    "a quota's bounds": (QUOTAS, quota(), "spec.hard", {"pods": 1}, None),
    "a node is closed": (NODES, node(), "spec.unschedulable", True, None),
    "a node's address range": (NODES, node(podCIDR="10.0.0.0/24"), "spec.podCIDR", "10.0.1.0/24", "spec.podCIDR"),
    "a lease's transitions": (LEASES, of(LEASES, spec={"leaseTransitions": 2}), "spec.leaseTransitions", 1, "spec.leaseTransitions"),
})  # fmt: skip
def test_updates(kind, obj, path, value, field):
    old = admitted(kind, obj)
    found = [where for where, _ in causes(kind, changed(old, path, value), old)]
    assert found == ([] if field is None else [field])


@cases("kind, obj, path, value", {
    "plain texts win": (SECRETS, of(SECRETS, data={"a": ""}, stringData={"a": "text"}), "data", {"a": TEXT}),
    "a service gets no address": (SERVICES, service(), "spec.clusterIP", None),
    "a claim has its volume": (CLAIMS, claim(), "status", {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}}),
    "a node says its name": (NODES, node(), "metadata.labels", {"kubernetes.io/hostname": "n"}),
})  # fmt: skip
def test_what_is_filled_in(kind, obj, path, value):
    found = admitted(kind, obj)
    for name in path.split("."):
        found = found.get(name) if found else None
    assert found == value


def test_only_one_class_is_the_default_and_those_of_the_system_stay():
    other = priority_class("first", 1, globalDefault=True)
    with pytest.raises(Forbidden) as refused:
        admitted(CLASSES, a_class("second", globalDefault=True), other)
    assert refused.value.message == (
        'priorityclasses.scheduling.k8s.io "second" is forbidden: PriorityClass first is already marked as default.'
        " Only one default can exist"
    )
    stored = admitted(CLASSES, a_class("first", globalDefault=True))
    assert causes(CLASSES, changed(stored, "description", "x"), stored, other) == []
    for name in ("system-cluster-critical", "system-node-critical"):
        with pytest.raises(Forbidden, match="may not be deleted"):
            admission.release(CLASSES, a_class(name), Known())


def test_a_secret_is_not_repeated_in_a_message():
    assert messages(SECRETS, of(SECRETS, data={"a": "%very-secret%"})) == ["data[a]: Invalid value: must be base64"]


@cases("kind, obj, word", {
    "service": (SERVICES, service(), "no virtual addresses"),
    "policy": (POLICIES, with_spec(POLICIES), "has no effect"),
    "HyperNodes by a pattern": (HYPERS, hyper(member("HyperNode", regexMatch={"pattern": "^rack-"})),
        f"{SELECTOR}: HyperNodes are members by exactMatch only"),
})  # fmt: skip
def test_what_has_no_effect_here_says_so(kind, obj, word):
    assert any(word in text for text in admit(kind, obj, warnings=True).warnings)


# Events: what each form asks of them, for a new one and for a change.

MOMENT, EARLIER = "2026-01-01T00:00:00.000001Z", "2026-01-01T00:00:00Z"
FIELDS = {
    "eventTime": MOMENT, "reportingController": "example.com/agent", "reportingInstance": "agent-1", "action": "Look",
    "reason": "New", "regarding": {"kind": "Pod", "name": "web-0", "namespace": "default"}, "note": "It was looked at.",
    "type": "Normal",
}  # fmt: skip
NEW = builders.of(VIEW, "web-0.1", FIELDS)
SERIES, SHORT = {"count": 2, "lastObservedTime": MOMENT}, {"count": 1}
OLD = conversion.stored(VIEW, NEW)


@pytest.mark.parametrize("fields", [{}, {"series": SERIES}, {"deprecatedSource": {}}, {"note": "ü" * 512}], ids=str)
def test_a_new_event_is_complete(fields):
    assert causes(VIEW, {**NEW, **fields}) == []


@cases("path, value, field", {
    "no time": ("eventTime", DROP, "eventTime"),
    "no reporter": ("reportingController", DROP, "reportingComponent"),
    "a reporter that is no name": ("reportingController", "a b", "reportingComponent"),
    "no instance": ("reportingInstance", "", "reportingInstance"),
    "a long instance": ("reportingInstance", "x" * 129, "reportingInstance"),
    "no action": ("action", DROP, "action"),
    "a long action": ("action", "x" * 129, "action"),
    "no reason": ("reason", DROP, "reason"),
    "a long reason": ("reason", "x" * 129, "reason"),
    "a long note": ("note", "ü" * 513, "message"),
    "no type": ("type", DROP, "type"),
    "another type": ("type", "Odd", "type"),
    "another namespace": ("regarding.namespace", "other", "involvedObject.namespace"),
    "a series of one": ("series", {**SERIES, **SHORT}, "series.count"),
    "a series without a time": ("series", {"count": 2}, "series.lastObservedTime"),
    "an old client's source": ("deprecatedSource", {"component": "x"}, "source"),
    "an old client's count": ("deprecatedCount", 1, "count"),
    "an old client's first time": ("deprecatedFirstTimestamp", EARLIER, "firstTimestamp"),
    "an old client's last time": ("deprecatedLastTimestamp", EARLIER, "lastTimestamp"),
})  # fmt: skip
def test_a_new_event_that_is_not_complete_is_refused(path, value, field):
    assert [where for where, _ in causes(VIEW, changed(NEW, path, value))] == [field]


def test_old_clients_write_what_they_always_wrote():
    old = {**OLD, "source": {"component": "x"}, "count": 1, "firstTimestamp": EARLIER}
    assert causes(EVENTS, changed(old, "type", DROP)) == []
    assert causes(EVENTS, changed(old, "message", "another"), old) == []


@pytest.mark.parametrize(
    ("path", "value"),
    {
        "eventTime": "2027-01-01T00:00:00.000001Z", "reportingController": "other", "reportingInstance": "other",
        "action": "Other", "reason": "Other", "regarding.name": "other", "related": {"kind": "Pod", "name": "other"},
        "note": "Other.", "type": "Warning", "deprecatedSource": {"component": "x"}, "deprecatedCount": 1,
        "deprecatedFirstTimestamp": EARLIER, "deprecatedLastTimestamp": EARLIER,
    }.items(),
)  # fmt: skip
def test_only_the_series_of_an_event_changes(path, value):
    field = conversion.stored_path(VIEW, path).partition(".")[0]
    assert causes(VIEW, changed(NEW, path, value), NEW) == [(field, "FieldValueInvalid")]


@cases("fields, fields_refused", {
    "the series": ({"series": SERIES}, []),
    "what is empty is absent": ({"deprecatedSource": {}, "deprecatedCount": 0}, []),
    "another way to write a time": ({"eventTime": "2026-01-01T00:00:00.000001+00:00"}, []),
    "labels": ({"metadata": {**NEW["metadata"], "labels": {"a": "b"}}}, []),
    "a series that is short": ({"series": SHORT}, ["series.count", "series.lastObservedTime"]),
})  # fmt: skip
def test_what_may_change(fields, fields_refused):
    change = {**NEW, **fields}
    assert [where for where, _ in causes(VIEW, change, NEW)] == fields_refused
    assert causes(VIEW, change, change) == []
