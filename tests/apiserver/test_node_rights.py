"""What a node may do over the API and what not, asked as a node asks."""

from __future__ import annotations

import pytest

from cluster import access
from cluster.models import AuditEntry
from cluster.store import Create, store
from kube.resources import CLAIMS, CONFIGMAPS, LEASES, NAMESPACES, NODES, PODS, SECRETS
from tests.builders import namespace, of, pod

NODE, OTHER = "lab", "first"
ME, ANOTHER = f"/api/v1/nodes/{NODE}", f"/api/v1/nodes/{OTHER}"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
CORE = "/api/v1/namespaces/default"
PLACED = "?fieldSelector=spec.nodeName="
REVIEW = "/apis/authorization.k8s.io/v1"


def put(kind, name, body=None, **fields):
    return store.write(Create(kind, of(kind, name, body, **fields)))[0]


@pytest.fixture
def lab(api):
    """A client that is the node lab, which has the pod `mine`; `other` is on another node, and `free` on none."""
    for name in (NODE, OTHER):
        put(NODES, name, {"spec": {}, "status": {}})
    store.write(Create(NAMESPACES, namespace("kube-node-lease")))
    put(LEASES, OTHER, namespace="kube-node-lease", holderIdentity=OTHER)
    volumes = [{"name": "c", "configMap": {"name": "mine"}}, {"name": "s", "secret": {"secretName": "mine"}}]
    volumes.append({"name": "p", "persistentVolumeClaim": {"claimName": "mine"}})
    others = [{"name": "s", "secret": {"secretName": "others"}}]
    for one in (pod("mine", nodeName=NODE, volumes=volumes), pod("other", nodeName=OTHER, volumes=others), pod("free")):
        store.write(Create(PODS, one))
    for name in ("mine", "others", "nobodys"):
        put(CONFIGMAPS, name, {"data": {}})
        put(SECRETS, name, {"data": {}})
    for name in ("mine", "others"):
        put(CLAIMS, name, {"spec": {}})
    return api.as_(access.Actor(f"system:node:{NODE}", ("system:nodes", "system:authenticated")))


def event(name, kind="Pod", **about):
    about = {"kind": kind, "apiVersion": "v1", "namespace": "default", "name": name, **about}
    body = {"metadata": {"generateName": "e-"}, "involvedObject": about, "reason": "BackOff", "message": "m"}
    return {**body, "type": "Warning", "source": {"component": "kubelet"}}


def labels(**found):
    return {"metadata": {"labels": found}}


HOST = "kubernetes.io/hostname"
STATUS = {"status": {"phase": "Running"}}
READY = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
BINDING = {"metadata": {"name": "free"}, "target": {"kind": "Node", "name": NODE}}
LEASE_BODY = {"spec": {"holderIdentity": NODE}}
TRUSTED = labels(**{"node-restriction.kubernetes.io/safe": "1"})
BY_LEASE = {"metadata": {"annotations": {"ui.volcano.sh/lease": OTHER}}}
TOKEN = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}

MAY = {
    "read its node": ("GET", ME, None),
    "label its node": ("PATCH", ME, labels(rack="7")),
    "say which host it is": ("PATCH", ME, labels(**{HOST: NODE})),
    "say how it is": ("PATCH", f"{ME}/status", READY),
    "make its lease": ("POST", LEASE, {"metadata": {"name": NODE}, **LEASE_BODY}),
    "list its pods": ("GET", f"/api/v1/pods{PLACED}{NODE}", None),
    "list its pods in a namespace": ("GET", f"{CORE}/pods{PLACED}{NODE}", None),
    "read its pod": ("GET", f"{CORE}/pods/mine", None),
    "say how its pod is": ("PATCH", f"{CORE}/pods/mine/status", STATUS),
    "take its pod away": ("DELETE", f"{CORE}/pods/mine", None),
    "read a mentioned ConfigMap": ("GET", f"{CORE}/configmaps/mine", None),
    "read a mentioned Secret": ("GET", f"{CORE}/secrets/mine", None),
    "read a mentioned claim": ("GET", f"{CORE}/persistentvolumeclaims/mine", None),
    "ask which claims there are": ("POST", "/node/claims", {"uids": ["a-uid"]}),
    "tell of its pod": ("POST", f"{CORE}/events", event("mine")),
    "ask who it is": ("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {}),
    "ask whose its pod is": ("GET", "/node/makers?namespace=default&name=mine", None),
}
MAY_NOT = {
    "read another node": ("GET", ANOTHER, None),
    "list nodes": ("GET", "/api/v1/nodes", None),
    "make another node": ("POST", "/api/v1/nodes", {"metadata": {"name": "third"}}),
    "label another node": ("PATCH", ANOTHER, labels(rack="7")),
    "say how another node is": ("PATCH", f"{ANOTHER}/status", READY),
    "label itself as trusted": ("PATCH", ME, TRUSTED),
    "call itself by another host's name": ("PATCH", ME, labels(**{HOST: OTHER})),
    "take a taint or cordon off itself": ("PATCH", ME, {"spec": {"unschedulable": True}}),
    "live by another's lease": ("PATCH", ME, BY_LEASE),
    "delete its node": ("DELETE", ME, None),
    "renew another's lease": ("PATCH", f"{LEASE}/{OTHER}", LEASE_BODY),
    "list leases": ("GET", LEASE, None),
    "list all pods": ("GET", "/api/v1/pods", None),
    "list another node's pods": ("GET", f"/api/v1/pods{PLACED}{OTHER}", None),
    "watch all pods": ("GET", "/api/v1/pods?watch=1", None),
    "read another node's pod": ("GET", f"{CORE}/pods/other", None),
    "read a pod of no node": ("GET", f"{CORE}/pods/free", None),
    "read a pod that is not there": ("GET", f"{CORE}/pods/absent", None),
    "say how another node's pod is": ("PATCH", f"{CORE}/pods/other/status", STATUS),
    "change what its pod is": ("PATCH", f"{CORE}/pods/mine", labels(a="b")),
    "take another node's pod away": ("DELETE", f"{CORE}/pods/other", None),
    "take many pods away": ("DELETE", f"{CORE}/pods{PLACED}{NODE}", None),
    "bind a pod to itself": ("POST", f"{CORE}/pods/free/binding", BINDING),
    "make a pod of its own": ("POST", f"{CORE}/pods", pod("own", nodeName=NODE)),
    "evict its pod": ("POST", f"{CORE}/pods/mine/eviction", {"metadata": {"name": "mine"}}),
    "read its pod's log": ("GET", f"{CORE}/pods/mine/log", None),
    "read a Secret of another node's pod": ("GET", f"{CORE}/secrets/others", None),
    "read a Secret of nobody": ("GET", f"{CORE}/secrets/nobodys", None),
    "read a Secret of that name elsewhere": ("GET", "/api/v1/namespaces/other/secrets/mine", None),
    "read a claim of nobody": ("GET", f"{CORE}/persistentvolumeclaims/others", None),
    "list claims": ("GET", f"{CORE}/persistentvolumeclaims", None),
    "list Secrets": ("GET", f"{CORE}/secrets", None),
    "watch one mentioned Secret": ("GET", f"{CORE}/secrets?watch=1&fieldSelector=metadata.name=mine", None),
    "change a mentioned ConfigMap": ("PATCH", f"{CORE}/configmaps/mine", {"data": {"a": "b"}}),
    "tell of another node's pod": ("POST", f"{CORE}/events", event("other")),
    "tell of what has another's uid": ("POST", f"{CORE}/events", event("mine", uid="another-one")),
    "tell of a node": ("POST", f"{CORE}/events", event(NODE, "Node")),
    "read events": ("GET", f"{CORE}/events", None),
    "make a job": ("POST", "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs", {"metadata": {"name": "j"}}),
    "make a token": ("POST", f"{CORE}/serviceaccounts/default/token", TOKEN),
    "ask what others may": ("POST", f"{REVIEW}/subjectaccessreviews", {"spec": {"user": "a"}}),
    "ask whose another's pod is": ("GET", "/node/makers?namespace=default&name=other", None),
}


def ask(client, method, path, body):
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    return client.request(method, path, body, kind)


@pytest.mark.parametrize("what", [*MAY, *MAY_NOT])
def test_what_a_node_may_and_what_not(lab, what):
    answer = ask(lab, *(MAY | MAY_NOT)[what])
    assert (answer.status_code in (200, 201), answer.status_code == 403) == (what in MAY, what in MAY_NOT), answer.text


def test_a_group_without_a_name_is_no_node(lab):
    for actor in (
        access.Actor("system:node:", ("system:nodes", "system:authenticated")),
        access.Actor("alice", ("system:nodes", "system:authenticated")),
        access.Actor(f"system:node:{NODE}", ("system:authenticated",)),
    ):
        for path in (f"/api/v1/pods{PLACED}{NODE}", f"{CORE}/pods/mine"):
            assert lab.as_(actor).get(path).status_code == 403


def test_a_pod_that_was_taken_away_takes_its_secrets_along(lab):
    for name, allowed in (("mine", True), ("others", False)):  # it is told the same where it asks
        asked = {"namespace": "default", "verb": "get", "resource": "secrets", "name": name}
        answer = lab.post(f"{REVIEW}/selfsubjectaccessreviews", {"spec": {"resourceAttributes": asked}}).json()
        assert answer["status"]["allowed"] == allowed
    assert lab.get(f"{CORE}/secrets/mine").status_code == 200
    assert lab.delete(f"{CORE}/pods/mine", {"gracePeriodSeconds": 0}).status_code == 200
    assert lab.get(f"{CORE}/secrets/mine").status_code == 403


def test_what_a_node_does_is_not_audited_and_what_it_may_not_is(lab):
    ask(lab, *MAY["say how its pod is"])
    ask(lab, *MAY["say how it is"])
    pinned = {"metadata": {"resourceVersion": "1"}, **STATUS}
    assert ask(lab, "PATCH", f"{CORE}/pods/mine/status", pinned).status_code == 409
    assert not AuditEntry.objects.filter(actor=f"system:node:{NODE}").exists()
    ask(lab, *MAY_NOT["say how another node's pod is"])
    entry = AuditEntry.objects.get(actor=f"system:node:{NODE}")
    assert (entry.outcome, entry.name) == ("denied", "other")


def test_nothing_that_a_node_makes_is_anybodys_nor_has_an_owner(lab, api):
    assert "annotations" not in ask(lab, *MAY["tell of its pod"]).json()["metadata"]
    owner = {"apiVersion": "v1", "kind": "Node", "name": OTHER, "uid": api.get(ANOTHER).json()["metadata"]["uid"]}
    assert lab.post(LEASE, {"metadata": {"name": NODE, "ownerReferences": [owner]}, **LEASE_BODY}).status_code == 403


def test_a_node_learns_which_claims_are_left_whose_files_it_keeps(lab, api):
    uid = store.get(CLAIMS, "default", "others").uid
    for asked, existing in (([uid, "another"], [uid]), (["another", 7, None], []), ("nonsense", [])):
        assert lab.post("/node/claims", {"uids": asked}).json() == {"existing": existing}
    somebody = api.as_(access.Actor("somebody", ("system:authenticated",)))
    assert somebody.post("/node/claims", {"uids": []}).status_code == 403
