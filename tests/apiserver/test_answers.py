"""Where clients count on what exactly a Kubernetes API server answers."""

from __future__ import annotations

import pytest

from cluster.store import Create, Patch, store
from kube.resources import NODES, PODS
from tests.cluster.api.conftest import admin, config_map, person  # noqa: F401  fixtures
from tests.tables import cases

WHERE = "/api/v1/namespaces/default/pods"
MAPS = "/api/v1/namespaces/default/configmaps"
QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"
GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"
APPLY = "application/apply-patch+yaml"
STRATEGIC = "application/strategic-merge-patch+json"
GATES = [{"name": "example.com/quota"}, {"name": "example.com/licence"}]
WITHOUT_GATES = {"spec": {"schedulingGates": None}}


def pod(name="p", **spec):
    containers = [{"name": "main", "image": "busybox", "command": ["true"]}]
    return {"metadata": {"name": name}, "spec": {"containers": containers, **spec}}


def affinity(*terms):
    required = {"nodeSelectorTerms": [{"matchExpressions": list(term)} for term in terms]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def exists(key):
    return {"key": key, "operator": "Exists"}


def scheduled(obj):
    """Return what a pod says of its scheduling, without the time."""
    found = [each for each in obj["status"].get("conditions", ()) if each["type"] == "PodScheduled"]
    return [{key: value for key, value in each.items() if key != "lastTransitionTime"} for each in found]


def causes(answer):
    assert answer.status_code == 422, answer.text
    return [cause["field"] for cause in answer.json()["details"]["causes"]]


class TestNamespaceOfAClusterScopedObject:
    """It is dropped, however it is sent."""

    SENT = {"metadata": {"name": "q", "namespace": "other"}, "spec": {"weight": 2}}

    @pytest.fixture
    def stored(self, api):
        return api.post(QUEUES, {"metadata": {"name": "q"}}).json()

    def test_on_creation(self, api):
        made = api.post(QUEUES, self.SENT)
        assert (made.status_code, made.json()["metadata"].get("namespace")) == (201, None)

    @cases("method, content_type", {
        "update": ("PUT", "application/json"),
        "patch": ("PATCH", "application/merge-patch+json"),
        "apply": ("PATCH", f"{APPLY}?fieldManager=tests&force=true"),
    })  # fmt: skip
    def test_on_a_change(self, api, stored, method, content_type):
        kind, _, query = content_type.partition("?")
        body = {"apiVersion": stored["apiVersion"], "kind": "Queue", **self.SENT}
        changed = api.request(method, f"{QUEUES}/q?{query}", body, kind)
        assert changed.status_code == 200, changed.text
        assert changed.json()["metadata"].get("namespace") is None
        assert changed.json()["spec"]["weight"] == 2
        assert api.get(f"{QUEUES}/q").json()["metadata"].get("namespace") is None

    def test_that_is_no_text_is_refused(self, api):
        assert causes(api.post(QUEUES, {"metadata": {"name": "q", "namespace": 5}})) == ["metadata.namespace"]


class TestSchedulingGates:
    """A gated pod says so from its creation; gates only go, and with them what may still be narrowed."""

    @pytest.fixture
    def gated(self, api):
        made = api.post(WHERE, pod(schedulingGates=GATES, nodeSelector={"disk": "ssd"}))
        assert made.status_code == 201, made.text
        return made.json()

    def test_a_gated_pod_says_so_from_its_creation(self, api, gated):
        said = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }
        assert scheduled(gated) == [said]
        table = api.get(WHERE, headers={"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}).json()
        names = [column["name"] for column in table["columnDefinitions"]]
        assert table["rows"][0]["cells"][names.index("Status")] == "SchedulingGated"

    def test_a_pod_without_gates_says_nothing_of_it(self, api):
        assert scheduled(api.post(WHERE, pod()).json()) == []

    def test_a_gated_pod_that_a_controller_makes_says_so_too(self, api):
        store.write(Create(PODS, {**pod(schedulingGates=GATES), "metadata": {"name": "p", "namespace": "default"}}))
        assert [each["reason"] for each in scheduled(api.get(f"{WHERE}/p").json())] == ["SchedulingGated"]

    @cases("left", {"both": [], "the first": GATES[1:], "the last": GATES[:1]})
    def test_gates_can_be_taken_away(self, api, gated, left):
        changed = api.patch(f"{WHERE}/p", {"spec": {"schedulingGates": left or None}})
        assert (changed.status_code, changed.json()["spec"].get("schedulingGates", [])) == (200, left)
        # Kubernetes leaves the condition to the scheduler.
        assert scheduled(changed.json()) == scheduled(gated)

    def test_one_gate_is_taken_away_by_its_name(self, api, gated):
        patch = {"spec": {"schedulingGates": [{"$patch": "delete", "name": GATES[0]["name"]}]}}
        assert api.patch(f"{WHERE}/p", patch, STRATEGIC).json()["spec"]["schedulingGates"] == GATES[1:]

    @cases("before", {"two": GATES, "one": GATES[:1], "none": None})
    def test_gates_cannot_be_added(self, api, before):
        api.post(WHERE, pod(schedulingGates=before))
        added = [*(before or ()), {"name": "example.com/late"}]
        refused = api.patch(f"{WHERE}/p", {"spec": {"schedulingGates": added}})
        number = len(added) - 1
        assert causes(refused) == [f"spec.schedulingGates[{number}].name"]
        said = "Forbidden: only deletion is allowed, but found new scheduling gate 'example.com/late'"
        assert refused.json()["message"].endswith(f"spec.schedulingGates[{number}].name: {said}")

    @cases("gates", {
        "without a name": [{"name": ""}],
        "of a bad name": [{"name": "a b"}],
        "twice": [{"name": "a"}, {"name": "a"}],
    })  # fmt: skip
    def test_bad_gates_are_refused(self, api, gates):
        (field,) = causes(api.post(WHERE, pod(schedulingGates=gates)))
        assert field.startswith(f"spec.schedulingGates[{len(gates) - 1}]")

    def test_what_is_held_back_has_no_node(self, api):
        refused = api.post(WHERE, pod(schedulingGates=GATES, nodeName="n"))
        assert causes(refused) == ["spec.nodeName"]
        assert "cannot be set until all schedulingGates have been cleared" in refused.json()["message"]

    def test_what_is_held_back_is_not_bound(self, api, gated):
        store.write(Create(NODES, {"metadata": {"name": "n"}}))
        body = {"kind": "Binding", "apiVersion": "v1", "metadata": {"name": "p"}, "target": {"name": "n"}}
        refused = api.post(f"{WHERE}/p/binding", body)
        assert (refused.status_code, refused.json()["reason"]) == (409, "Conflict")
        said = 'Operation cannot be fulfilled on pods/binding "p": pod p has non-empty .spec.schedulingGates'
        assert refused.json()["message"] == said
        api.patch(f"{WHERE}/p", WITHOUT_GATES)
        assert api.post(f"{WHERE}/p/binding", body).status_code == 201
        bound = api.get(f"{WHERE}/p").json()
        assert (bound["spec"]["nodeName"], scheduled(bound)) == ("n", [{"type": "PodScheduled", "status": "True"}])

    NARROWER = {
        "a label more": ({}, {"nodeSelector": {"disk": "ssd", "zone": "a"}}),
        "an affinity where there was none": ({}, {"affinity": affinity([exists("a")], [exists("b")])}),
        "an expression more": (
            {"affinity": affinity([exists("a")])},
            {"affinity": affinity([exists("a"), exists("b")])},
        ),
        "another preference": (
            {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "preference": {"matchExpressions": [exists("a")]}}]}}},
            {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 9, "preference": {"matchExpressions": [exists("b")]}}]}}},
        ),
        "the gates with it": ({}, {"nodeSelector": {"zone": "a"}, "schedulingGates": None}),
    }  # fmt: skip

    @pytest.mark.parametrize(("before", "after"), NARROWER.values(), ids=NARROWER)
    def test_a_gated_pod_may_ask_for_more_of_its_node(self, api, before, after):
        api.post(WHERE, pod(schedulingGates=GATES, nodeSelector={"disk": "ssd"}, **before))
        changed = api.patch(f"{WHERE}/p", {"spec": after})
        assert changed.status_code == 200, changed.text
        spec = changed.json()["spec"]
        assert spec["nodeSelector"] == {"disk": "ssd"} | after.get("nodeSelector", {})
        assert spec.get("affinity") == after.get("affinity", before.get("affinity"))

    TERMS = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
    WIDER = {
        "a label less": ({}, {"nodeSelector": None}, "spec.nodeSelector"),
        "another label": ({}, {"nodeSelector": {"disk": "hdd"}}, "spec.nodeSelector"),
        "a term more": (
            {"affinity": affinity([exists("a")])}, {"affinity": affinity([exists("a")], [exists("b")])}, TERMS,
        ),
        "no affinity": ({"affinity": affinity([exists("a")])}, {"affinity": None}, TERMS),
        "another expression": (
            {"affinity": affinity([exists("a")])}, {"affinity": affinity([exists("b")])}, f"{TERMS}[0]",
        ),
        "something of what chose no node": (
            {"affinity": affinity([], [exists("a")])},
            {"affinity": affinity([exists("b")], [exists("a")])},
            f"{TERMS}[0]",
        ),
        "what is not about nodes": ({}, {"affinity": {"podAntiAffinity": {"x": []}}, "hostNetwork": True}, "spec"),
    }  # fmt: skip

    @pytest.mark.parametrize(("before", "after", "field"), WIDER.values(), ids=WIDER)
    def test_a_gated_pod_may_not_ask_for_less_or_something_else(self, api, before, after, field):
        api.post(WHERE, pod(schedulingGates=GATES, nodeSelector={"disk": "ssd"}, **before))
        assert causes(api.patch(f"{WHERE}/p", {"spec": after})) == [field]

    @cases("after", {
        "node selector": {"nodeSelector": {"zone": "a"}},
        "affinity": {"affinity": affinity([exists("a")])},
    })  # fmt: skip
    def test_without_gates_what_a_pod_asks_of_its_node_stays(self, api, gated, after):
        api.patch(f"{WHERE}/p", WITHOUT_GATES)
        assert causes(api.patch(f"{WHERE}/p", {"spec": after})) == ["spec"]


class TestStatusOfANewObject:
    """A node brings its own, and so does a kind whose status has no path of its own; others start with the server's."""

    @pytest.fixture
    def api(self, api, admin):  # noqa: F811
        return api.as_(admin)

    def test_of_a_node_is_kept(self, api):
        status = {"capacity": {"cpu": "4"}, "conditions": [{"type": "Ready", "status": "True"}]}
        made = api.post("/api/v1/nodes", {"metadata": {"name": "n"}, "status": status})
        assert (made.status_code, made.json()["status"]) == (201, made.json()["status"] | status)

    def test_of_a_pod_group_is_kept(self, api):
        status = {"phase": "Inqueue", "running": 1}
        made = api.post(GROUPS, {"metadata": {"name": "g"}, "spec": {"minMember": 1}, "status": status})
        assert (made.status_code, made.json()["status"]) == (201, status)

    def test_of_a_pod_is_the_servers(self, api):
        made = api.post(WHERE, {**pod(), "status": {"phase": "Running", "podIP": "10.0.0.1"}})
        assert made.json()["status"] == {"phase": "Pending", "qosClass": "BestEffort"}


class TestNodeOfANewPod:
    """Who may bind pods may choose the node at once."""

    def test_it_runs_there(self, api, node, admin):  # noqa: F811
        node.begin()
        name = store.find(NODES)[0].name
        made = api.as_(admin).post(WHERE, pod(nodeName=name, restartPolicy="Never"))
        assert (made.status_code, made.json()["spec"]["nodeName"]) == (201, name)
        node.until(lambda: api.get(f"{WHERE}/p").json()["status"]["phase"] == "Succeeded")

    @pytest.mark.parametrize("role", ["submitter", "operator"])
    def test_who_may_not_bind_is_refused(self, api, person, role):  # noqa: F811
        refused = api.as_(person("alice", default=role)).post(WHERE, pod(nodeName="n"))
        assert causes(refused) == ["spec.nodeName"]
        said = "the scheduler sets it when there is room; choose nodes with nodeSelector."
        assert refused.json()["message"] == f'Pod "p" is invalid: spec.nodeName: Forbidden: {said}'

    def test_who_may_not_create_pods_learns_only_that(self, api, person):  # noqa: F811
        refused = api.as_(person("alice", default="viewer")).post(WHERE, pod(nodeName="n"))
        assert refused.status_code == 403

    def test_an_administrator_of_one_namespace_may_there(self, api, person):  # noqa: F811
        alice = api.as_(person("alice", default="administrator", other="submitter"))
        assert alice.post(WHERE, pod(nodeName="n")).status_code == 201
        assert causes(alice.post("/api/v1/namespaces/other/pods", pod(nodeName="n"))) == ["spec.nodeName"]

    def test_a_name_that_no_node_can_have_is_refused(self, api):
        assert causes(api.post(WHERE, pod(nodeName="A b"))) == ["spec.nodeName"]


class TestConflicts:
    """Clients read from the details what a refusal is about."""

    def test_a_taken_name_is_told_with_its_details(self, api):
        api.post(MAPS, config_map("a"))
        status = api.post(MAPS, config_map("a")).json()
        assert (status["code"], status["reason"]) == (409, "AlreadyExists")
        assert status["message"] == 'configmaps "a" already exists'
        assert status["details"] == {"name": "a", "kind": "configmaps"}

    def test_a_taken_name_of_another_group_is_told_with_that(self, api):
        status = api.post(QUEUES, {"metadata": {"name": "default"}}).json()
        details = {"name": "default", "kind": "queues", "group": "scheduling.volcano.sh"}
        assert status["details"] == details

    def test_another_uid_is_told_with_its_details(self, api):
        api.post(MAPS, config_map("a"))
        body = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": "x"}}
        status = api.delete(f"{MAPS}/a", body).json()
        assert (status["code"], status["reason"]) == (409, "Conflict")
        assert status["details"] == {"name": "a", "kind": "configmaps"}


def test_a_pod_bound_by_hand_is_scheduled_and_keeps_what_else_was_said(api):
    store.write(Create(NODES, {"metadata": {"name": "n"}}))
    api.post(WHERE, pod())
    other = {"type": "example.com/ready", "status": "True"}
    refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    store.write(Patch(PODS, "default", "p", {"status": {"conditions": [refused, other]}}, "status"))
    body = {"kind": "Binding", "apiVersion": "v1", "metadata": {"name": "p"}, "target": {"name": "n"}}
    assert api.post(f"{WHERE}/p/binding", body).status_code == 201
    bound = api.get(f"{WHERE}/p").json()
    assert other in bound["status"]["conditions"]
    assert scheduled(bound) == [{"type": "PodScheduled", "status": "True"}]
