"""Where clients count on what exactly a Kubernetes API server answers."""

from __future__ import annotations

import pytest

from cluster.store import Create, Patch, store
from kube.resources import NODES, PODS, QUEUES
from tests.builders import config_map, node, of, pod, pod_group
from tests.cluster.api.conftest import admin, person  # noqa: F401  fixtures
from tests.tables import cases

WHERE = "/api/v1/namespaces/default/pods"
MAPS = "/api/v1/namespaces/default/configmaps"
QUEUE = "/apis/scheduling.volcano.sh/v1beta1/queues"
GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"
APPLY = "application/apply-patch+yaml"
STRATEGIC = "application/strategic-merge-patch+json"
GATES = [{"name": "example.com/quota"}, {"name": "example.com/licence"}]
BINDING = {"kind": "Binding", "apiVersion": "v1", "metadata": {"name": "p"}, "target": {"name": "n"}}


def affinity(*terms):
    required = {"nodeSelectorTerms": [{"matchExpressions": list(term)} for term in terms]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}


def preference(key, weight):
    preferred = [{"weight": weight, "preference": {"matchExpressions": [exists(key)]}}]
    return {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}}


def exists(key):
    return {"key": key, "operator": "Exists"}


def scheduled(obj):
    """Return what a pod says of its scheduling, without the time."""
    found = [each for each in obj["status"].get("conditions", ()) if each["type"] == "PodScheduled"]
    return [{key: value for key, value in each.items() if key != "lastTransitionTime"} for each in found]


def causes(answer):
    assert answer.status_code == 422, answer.text
    return [cause["field"] for cause in answer.json()["details"]["causes"]]


@cases("method, content_type", {
    "on creation": ("POST", "application/json"),
    "on an update": ("PUT", "application/json"),
    "on a patch": ("PATCH", "application/merge-patch+json"),
    "on an apply": ("PATCH", f"{APPLY}?fieldManager=tests&force=true"),
})  # fmt: skip
def test_the_namespace_of_a_cluster_scoped_object_is_dropped(api, method, content_type):
    kind, _, options = content_type.partition("?")
    if method != "POST":
        assert api.post(QUEUE, {"metadata": {"name": "q"}}).status_code == 201
    sent = of(QUEUES, "q", namespace="other", weight=2)
    path = QUEUE if method == "POST" else f"{QUEUE}/q"
    answer = api.request(method, f"{path}?{options}", sent, kind)
    assert answer.status_code in (200, 201), answer.text
    for found in (answer.json(), api.get(f"{QUEUE}/q").json()):
        assert (found["metadata"].get("namespace"), found["spec"]["weight"]) == (None, 2)
    assert causes(api.post(QUEUE, {"metadata": {"name": "r", "namespace": 5}})) == ["metadata.namespace"]


@pytest.fixture
def gated(api):
    """A pod that two gates hold back."""
    made = api.post(WHERE, pod(schedulingGates=GATES, nodeSelector={"disk": "ssd"}))
    assert made.status_code == 201, made.text
    return made.json()


def test_a_gated_pod_says_so_from_its_creation(api, gated):
    message = "Scheduling is blocked due to non-empty scheduling gates"
    said = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "message": message}
    assert scheduled(gated) == [said]
    table = api.get(WHERE, headers={"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}).json()
    names = [column["name"] for column in table["columnDefinitions"]]
    assert table["rows"][0]["cells"][names.index("Status")] == "SchedulingGated"
    assert scheduled(api.post(WHERE, pod("free")).json()) == []
    store.write(Create(PODS, pod("made", schedulingGates=GATES)))  # by a controller
    assert scheduled(api.get(f"{WHERE}/made").json()) == [said]


@cases("left", {"both": [], "the first": GATES[1:], "the last": GATES[:1]})
def test_gates_can_be_taken_away(api, gated, left):
    changed = api.patch(f"{WHERE}/p", {"spec": {"schedulingGates": left or None}})
    assert (changed.status_code, changed.json()["spec"].get("schedulingGates", [])) == (200, left)
    # Kubernetes leaves the condition to the scheduler.
    assert scheduled(changed.json()) == scheduled(gated)


def test_one_gate_is_taken_away_by_its_name_and_none_is_added(api, gated):
    patch = {"spec": {"schedulingGates": [{"$patch": "delete", "name": GATES[0]["name"]}]}}
    assert api.patch(f"{WHERE}/p", patch, STRATEGIC).json()["spec"]["schedulingGates"] == GATES[1:]
    api.post(WHERE, pod("free"))
    for name, before in (("p", GATES[1:]), ("free", [])):
        added = [*before, {"name": "example.com/late"}]
        refused = api.patch(f"{WHERE}/{name}", {"spec": {"schedulingGates": added}})
        field = f"spec.schedulingGates[{len(before)}].name"
        assert causes(refused) == [field]
        said = "Forbidden: only deletion is allowed, but found new scheduling gate 'example.com/late'"
        assert refused.json()["message"].endswith(f"{field}: {said}")


def test_what_is_held_back_is_not_bound(api, gated):
    store.write(Create(NODES, node("n")))
    refused = api.post(f"{WHERE}/p/binding", BINDING).json()
    assert (refused["code"], refused["reason"]) == (409, "Conflict")
    said = 'Operation cannot be fulfilled on pods/binding "p": pod p has non-empty .spec.schedulingGates'
    assert refused["message"] == said
    api.patch(f"{WHERE}/p", {"spec": {"schedulingGates": None}})
    other = {"type": "example.com/ready", "status": "True"}
    unscheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    store.write(Patch(PODS, "default", "p", {"status": {"conditions": [unscheduled, other]}}, "status"))
    assert api.post(f"{WHERE}/p/binding", BINDING).status_code == 201
    bound = api.get(f"{WHERE}/p").json()
    assert (bound["spec"]["nodeName"], scheduled(bound)) == ("n", [{"type": "PodScheduled", "status": "True"}])
    assert other in bound["status"]["conditions"], "what else was said"


TERMS = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
A, B = exists("a"), exists("b")


@cases("before, after, field", {
    "a label more": ({}, {"nodeSelector": {"disk": "ssd", "zone": "a"}}, ""),
    "an affinity where there was none": ({}, affinity([A], [B]), ""),
    "an expression more": (affinity([A]), affinity([A, B]), ""),
    "another preference": (preference("a", 1), preference("b", 9), ""),
    "the gates with it": ({}, {"nodeSelector": {"zone": "a"}, "schedulingGates": None}, ""),
    "a label less": ({}, {"nodeSelector": None}, "spec.nodeSelector"),
    "another label": ({}, {"nodeSelector": {"disk": "hdd"}}, "spec.nodeSelector"),
    "a term more": (affinity([A]), affinity([A], [B]), TERMS),
    "no affinity": (affinity([A]), {"affinity": None}, TERMS),
    "another expression": (affinity([A]), affinity([B]), f"{TERMS}[0]"),
    "something of what chose no node": (affinity([], [A]), affinity([B], [A]), f"{TERMS}[0]"),
    "what is not about nodes": ({}, {"affinity": {"podAntiAffinity": {"x": []}}, "hostNetwork": True}, "spec"),
    "a label without gates": ({"schedulingGates": None}, {"nodeSelector": {"zone": "a"}}, "spec"),
    "an affinity without gates": ({"schedulingGates": None}, affinity([A]), "spec"),
})  # fmt: skip
def test_a_gated_pod_may_ask_for_more_of_its_node_and_not_for_less(api, before, after, field):
    api.post(WHERE, pod(**{"schedulingGates": GATES, "nodeSelector": {"disk": "ssd"}, **before}))
    changed = api.patch(f"{WHERE}/p", {"spec": after})
    if field:
        assert causes(changed) == [field]
    else:
        assert changed.status_code == 200, changed.text
        spec = changed.json()["spec"]
        assert spec["nodeSelector"] == {"disk": "ssd"} | after.get("nodeSelector", {})
        assert spec.get("affinity") == after.get("affinity", before.get("affinity"))


def test_a_node_and_a_pod_group_bring_their_status_and_others_start_with_the_servers(api, admin):  # noqa: F811
    api = api.as_(admin)
    made = api.post("/api/v1/nodes", node("n")).json()
    assert made["status"] == made["status"] | node("n")["status"]
    status = {"phase": "Inqueue", "running": 1}
    assert api.post(GROUPS, pod_group("g", status=status)).json()["status"] == status
    made = api.post(WHERE, pod(status={"phase": "Running", "podIP": "10.0.0.1"})).json()
    assert made["status"] == {"phase": "Pending", "qosClass": "BestEffort"}


def test_who_may_bind_pods_may_choose_the_node_at_once(api, node, admin):  # noqa: F811
    node.begin()
    name = store.find(NODES)[0].name
    made = api.as_(admin).post(WHERE, pod(nodeName=name, restartPolicy="Never"))
    assert (made.status_code, made.json()["spec"]["nodeName"]) == (201, name)
    node.until(lambda: api.get(f"{WHERE}/p").json()["status"]["phase"] == "Succeeded")


@pytest.mark.parametrize("role", ["submitter", "operator"])
def test_who_may_not_bind_pods_is_refused_its_choice(api, person, role):  # noqa: F811
    alice = api.as_(person("alice", default=role, other="administrator"))
    refused = alice.post(WHERE, pod(nodeName="n"))
    assert causes(refused) == ["spec.nodeName"]
    said = "the scheduler sets it when there is room; choose nodes with nodeSelector."
    assert refused.json()["message"] == f'Pod "p" is invalid: spec.nodeName: Forbidden: {said}'
    assert alice.post("/api/v1/namespaces/other/pods", pod(namespace="other", nodeName="n")).status_code == 201
    viewer = api.as_(person("vera", default="viewer"))
    assert viewer.post(WHERE, pod(nodeName="n")).status_code == 403, "who may not create pods learns only that"


def test_clients_read_from_the_details_what_a_conflict_is_about(api):
    api.post(MAPS, config_map("a"))
    of_map, of_queue = {"name": "a", "kind": "configmaps"}, {"kind": "queues", "group": "scheduling.volcano.sh"}
    other = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": "x"}}
    for answer, reason, details in (
        (api.post(MAPS, config_map("a")), "AlreadyExists", of_map),
        (api.post(QUEUE, {"metadata": {"name": "default"}}), "AlreadyExists", {"name": "default", **of_queue}),
        (api.delete(f"{MAPS}/a", other), "Conflict", of_map),
    ):
        status = answer.json()
        assert (status["code"], status["reason"], status["details"]) == (409, reason, details)
