"""Where clients count on what exactly a Kubernetes API server answers."""

from __future__ import annotations

import pytest

from cluster.store import Create, Patch, store
from kube.resources import NODES, PODS
from tests.cluster.door.conftest import admin, config_map, person  # noqa: F401  fixtures

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

    @pytest.mark.parametrize(
        ("method", "content_type"),
        [
            pytest.param("PUT", "application/json", id="update"),
            pytest.param("PATCH", "application/merge-patch+json", id="patch"),
            pytest.param("PATCH", f"{APPLY}?fieldManager=tests&force=true", id="apply"),
        ],
    )
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


class TestStatusOfANewObject:
    """A node brings its own, and so does a kind whose status has no path of its own; others start with the server's."""

    @pytest.fixture
    def api(self, api, admin):  # noqa: F811
        return api.as_(admin)

    def test_of_a_node_is_kept(self, api):
        status = {"capacity": {"cpu": "4"}, "conditions": [{"type": "Ready", "status": "True"}]}
        made = api.post("/api/v1/nodes", {"metadata": {"name": "n"}, "status": status})
        assert (made.status_code, made.json()["status"]) == (201, status)

    def test_of_a_pod_group_is_kept(self, api):
        status = {"phase": "Inqueue", "running": 1}
        made = api.post(GROUPS, {"metadata": {"name": "g"}, "spec": {"minMember": 1}, "status": status})
        assert (made.status_code, made.json()["status"]) == (201, status)

    def test_of_a_pod_is_the_servers(self, api):
        made = api.post(WHERE, {**pod(), "status": {"phase": "Running", "podIP": "10.0.0.1"}})
        assert made.json()["status"] == {"phase": "Pending", "qosClass": "BestEffort"}


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
