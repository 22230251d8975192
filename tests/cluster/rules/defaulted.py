"""Objects that leave open what Kubernetes fills in. What it makes of them is `tests/golden/kubernetes/defaults.json`.

A kube-apiserver says it: `tests/kubernetes/test_golden.py` compares them, and writes the file with `--update-golden`.
"""

from __future__ import annotations

import json

from kube import resources as kinds
from tests import builders
from tests.builders import container, template

# Of each object its own: who made it, when and how often it changed.
OF_EACH = ("uid", "creationTimestamp", "resourceVersion", "generation", "managedFields", "namespace")


def of(kind, name="x", **fields):
    return kind, builders.of(kind, name, fields)


def pod(*containers, **spec):
    # A token would be mounted there, which is no default.
    return kinds.PODS, builders.pod("x", *containers, automountServiceAccountToken=False, **spec)


def job(pod_template=None, **spec):
    return kinds.BATCH_JOBS, builders.of(kinds.BATCH_JOBS, "x", template=pod_template or template(), **spec)


def service(**spec):
    return of(kinds.SERVICES, spec={"selector": {"app": "x"}, "ports": [{"port": 80}], **spec})


def volume(**source):
    return {"name": "v", **source}


def limits(**item):
    return of(kinds.LIMIT_RANGES, spec={"limits": [{"type": "Container", **item}]})


def policy(**spec):
    return of(kinds.NETWORK_POLICIES, spec={"podSelector": {}, **spec})


FIELD = {"fieldPath": "metadata.name"}
HTTP = {"httpGet": {"port": 80}}
DIGEST = "busybox@sha256:" + "0" * 64
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
POLICY_RULES = [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]

CASES = {
    "pod": pod(),
    "pod: pull policy without a tag": pod(container(image="busybox")),
    "pod: pull policy of latest": pod(container(image="example.com:5000/a/busybox:latest")),
    "pod: pull policy with a port and no tag": pod(container(image="example.com:5000/busybox")),
    "pod: pull policy of a digest": pod(container(image=DIGEST)),
    "pod: pull policy of a tag and a digest": pod(container(image="busybox:latest@sha256:" + "0" * 64)),
    "pod: requests of its limits": pod(container(resources={"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}})),
    "pod: requests of an init container's limits": pod(container(), initContainers=[container("init", resources={"limits": {"cpu": "1"}})]),
    "pod: its own requests of its limits": pod(container(resources={"requests": {"cpu": "500m"}}), container("two"), resources={"limits": {"cpu": "2", "memory": "1Gi"}}),
    "pod: its own requests of those of its containers": pod(container(resources={"requests": {"cpu": "500m"}}), container("two", resources={"limits": {"cpu": "250m", "memory": "64Mi"}}), resources={"limits": {"cpu": "2"}}),
    "pod: its own requests of an init container's": pod(container(resources={"requests": {"cpu": "500m"}}), initContainers=[container("init", resources={"requests": {"cpu": "1"}})], resources={"limits": {"cpu": "2"}}),
    "pod: its own requests beside a container that goes on": pod(container(resources={"requests": {"cpu": "500m"}}), initContainers=[container("init", restartPolicy="Always", resources={"requests": {"cpu": "1"}})], resources={"limits": {"cpu": "2"}}),
    "pod: its own huge pages": pod(container(resources={"limits": {"hugepages-2Mi": "4Mi", "cpu": "1"}}), resources={"limits": {"cpu": "1"}}),
    "pod: its own huge pages and memory": pod(container(resources={"limits": {"hugepages-2Mi": "4Mi", "memory": "1Gi"}}), resources={"requests": {"cpu": "1"}}),
    "pod: its own requests alone": pod(container(), resources={"requests": {"cpu": "1"}}),
    "pod: protocol of a port": pod(container(ports=[{"containerPort": 80}])),
    "pod: ports of the host's network": pod(container(ports=[{"containerPort": 80}, {"containerPort": 81, "hostPort": 81}]), hostNetwork=True, initContainers=[container("init", ports=[{"containerPort": 82}])]),
    "pod: a variable of a field": pod(container(env=[{"name": "A", "valueFrom": {"fieldRef": FIELD}}])),
    "pod: a variable of a file": pod(container(env=[{"name": "A", "valueFrom": {"fileKeyRef": {"volumeName": "v", "path": "a", "key": "A"}}}]), volumes=[volume(emptyDir={})]),
    "pod: probes": pod(container(livenessProbe=HTTP, readinessProbe={"tcpSocket": {"port": 80}}, startupProbe={"exec": {"command": ["true"]}, "periodSeconds": 3})),
    "pod: a probe by gRPC": pod(container(livenessProbe={"grpc": {"port": 80}})),
    "pod: hooks": pod(container(lifecycle={"postStart": HTTP, "preStop": {"exec": {"command": ["true"]}}})),
    "pod: an empty volume": pod(volumes=[volume()]),
    "pod: volumes of files": pod(volumes=[{"name": "c", "configMap": {"name": "a"}}, {"name": "s", "secret": {"secretName": "a"}}, {"name": "d", "downwardAPI": {"items": [{"path": "a", "fieldRef": FIELD}]}}]),
    "pod: a projected volume": pod(volumes=[volume(projected={"sources": [{"serviceAccountToken": {"path": "t"}}, {"downwardAPI": {"items": [{"path": "a", "fieldRef": FIELD}]}}, {"configMap": {"name": "a"}}]})]),
    "pod: a volume of its own claim": pod(volumes=[volume(ephemeral={"volumeClaimTemplate": {"spec": CLAIM}})]),
    "pod: a volume of an image": pod(volumes=[volume(image={"reference": "busybox"})]),
    "pod: a volume of a tagged image": pod(volumes=[volume(image={"reference": "busybox:1"})]),
    "pod: a directory of the host": pod(volumes=[volume(hostPath={"path": "/tmp"})]),
    "pod: the account by its old name": pod(serviceAccountName="default"),
    "pod: tolerations of its own": pod(tolerations=[{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}]),
    "pod: a toleration with a value": pod(tolerations=[{"key": "a", "value": "b"}]),
    "pod: gates": pod(schedulingGates=[{"name": "example.com/quota"}]),
    "pod: spreading": pod(topologySpreadConstraints=[{"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}]),
    "job": job(),
    "job: labels of its pods": job(template(labels={"app": "x"})),
    "job: parallelism alone": job(parallelism=3),
    "job: completions alone": job(completions=3),
    "job: failures of each index": job(completions=2, completionMode="Indexed", backoffLimitPerIndex=1),
    "job: a policy for failures": job(podFailurePolicy={"rules": POLICY_RULES}),
    "job: its template's limits": job(template(containers=[container(resources={"limits": {"cpu": "1"}})])),
    "job: its template in the host's network": job(template(hostNetwork=True, containers=[container(ports=[{"containerPort": 80}])])),
    "job: its template's volumes": job(template(volumes=[{"name": "s", "secret": {"secretName": "a"}}, {"name": "e", "ephemeral": {"volumeClaimTemplate": {"spec": CLAIM}}}])),
    "job: its template's probes": job(template(containers=[container(livenessProbe=HTTP)])),
    "service": service(),
    "service: headless": service(clusterIP="None"),
    "service: headless without a selector": of(kinds.SERVICES, spec={"clusterIP": "None", "ports": [{"port": 80}]}),
    "service: a name": of(kinds.SERVICES, spec={"type": "ExternalName", "externalName": "example.com"}),
    "service: a client's address": service(sessionAffinity="ClientIP"),
    "service: no affinity": service(clusterIP="None", sessionAffinityConfig={"clientIP": {"timeoutSeconds": 5}}),
    "service: ports of nodes": service(type="NodePort"),
    "service: a load balancer": service(type="LoadBalancer"),
    "service: addresses from outside": service(externalIPs=["192.0.2.1"]),
    "service: a named target": service(clusterIP="None", ports=[{"name": "a", "port": 80, "targetPort": "web"}, {"name": "b", "port": 81, "protocol": "UDP"}]),
    "endpoints": of(kinds.ENDPOINTS, subsets=[{"addresses": [{"ip": "192.0.2.1"}], "ports": [{"port": 80}]}]),
    "claim": of(kinds.CLAIMS, spec=CLAIM),
    "secret": of(kinds.SECRETS),
    "secret: plain texts": of(kinds.SECRETS, stringData={"a": "text"}),
    "config map": of(kinds.CONFIGMAPS, data={"a": "1"}),
    "service account": of(kinds.SERVICE_ACCOUNTS),
    "quota": of(kinds.RESOURCE_QUOTAS, spec={"hard": {"pods": "1"}}),
    "limits: a maximum": limits(max={"cpu": "2"}),
    "limits: a minimum": limits(min={"cpu": "1"}),
    "limits: a default": limits(default={"cpu": "2"}),
    "limits: of pods": of(kinds.LIMIT_RANGES, spec={"limits": [{"type": "Pod", "max": {"cpu": "2"}}]}),
    "budget": of(kinds.DISRUPTION_BUDGETS, spec={"minAvailable": 1, "selector": {}}),
    "policy": policy(),
    "policy: outwards": policy(egress=[{"ports": [{"port": 80}]}]),
    "policy: inwards": policy(ingress=[{"ports": [{"port": 80}], "from": [{"podSelector": {}}]}]),
    "class": of(kinds.PRIORITY_CLASSES, value=1),
    "lease": of(kinds.LEASES, spec={"holderIdentity": "a"}),
    "namespace": of(kinds.NAMESPACES),
    "namespace: its label": of(kinds.NAMESPACES, **{"spec": {"finalizers": ["example.com/a"]}}),
    "node": of(kinds.NODES),
    "node: allocatable": of(kinds.NODES, status={"capacity": {"cpu": "1"}}),
    "node: taints": of(kinds.NODES, spec={"taints": [{"key": "a", "effect": "NoSchedule"}]}),
    "node: closed": of(kinds.NODES, spec={"unschedulable": True}),
}  # fmt: skip


# What is otherwise here, and why: docs/kubernetes-api-differences.md.
OTHERWISE = {
    "Service": ("spec.clusterIP", "spec.clusterIPs", "spec.ports.nodePort"),  # there are no virtual addresses
    "PersistentVolumeClaim": ("metadata.finalizers", "status"),  # bound at once
    "Pod": ("status.conditions",),  # the scheduler says it
    # Its agent says its name; its controller closes a node that is not ready.
    "Node": ("metadata.labels", "spec.taints"),
}


def seen(obj):
    """Return an object without what is its own or otherwise here, and with its uid written as UID."""
    metadata = {key: value for key, value in obj["metadata"].items() if key not in OF_EACH}
    found = json.loads(json.dumps({**obj, "metadata": metadata}).replace(obj["metadata"].get("uid") or "UID", "UID"))
    headless = found.get("spec", {}).get("clusterIP") == "None"
    for path in () if headless else OTHERWISE.get(obj["kind"], ()):
        _drop(found, path.split("."))
    return found


def _drop(value, path):
    first, *rest = path
    for each in value if isinstance(value, list) else [value]:
        if not rest:
            each.pop(first, None)
        elif first in each:
            _drop(each[first], rest)
