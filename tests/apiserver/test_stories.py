"""What is asked of the API server, a request after the other: `tests/golden/apiserver`. How to read it, says story.py.

Behind them is what takes a node, and bodies in protobuf as client-go's typed clients write them.
"""

from pathlib import Path

import pytest

from cluster.api import custom_kinds
from kube import resources
from tests import builders
from tests.builders import config_map, container, pod
from tests.cluster.api.conftest import admin  # noqa: F401  a fixture
from tests.tables import cases, parts


@parts("apiserver/objects")
def test_objects(story, part):
    story.goes(part)


@parts("apiserver/pods")
def test_pods(story, part):
    story.goes(part)


@parts("apiserver/kinds")
def test_what_is_particular_to_a_kind(story, part):
    story.goes(part)


@parts("apiserver/events")
def test_events_in_both_forms(story, part):
    story.goes(part)


@parts("apiserver/reviews")
def test_who_asks_whether_he_may_is_told_why(story, part):
    story.goes(part)


@parts("apiserver/nodes")
def test_nodes_by_their_tokens(story, part):
    story.goes(part)


@parts("apiserver/hands")
def test_exec_and_attach_ask_who_might_have_made_the_pod(story, part, settings):
    """A command in it reaches all that it mounts. Without an upgrade the answer is 400 where it is allowed."""
    settings.HOST_PATHS = ["/srv/shared"]
    story.goes(part)


@pytest.fixture
def forgotten():
    """Afterwards nobody knows the kinds that the test defined."""
    yield
    custom_kinds._definitions.clear()
    resources.set_custom(())


@parts("apiserver/custom")
def test_kinds_that_users_define(forgotten, story, part):
    story.goes(part)


CORE = "/api/v1/namespaces/default"
VOLCANO = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"


def test_who_may_bind_pods_may_choose_the_node_at_once(api, node, admin):  # noqa: F811
    node.begin()
    made = api.as_(admin).post(f"{CORE}/pods", pod(nodeName="here", restartPolicy="Never"))
    assert (made.status_code, made.json()["spec"]["nodeName"]) == (201, "here")
    node.until(lambda: api.get(f"{CORE}/pods/p").json()["status"]["phase"] == "Succeeded")


def test_a_program_that_this_machine_lacks_is_a_warning_until_it_is_installed(node, api, monkeypatch):
    monkeypatch.setattr("node.agent.readings.SYSTEM_FOLDERS", [])
    monkeypatch.setenv("PATH", str(node.out))
    node.begin()
    ray = [builders.task(name, 1, container(name)) for name in ("head", "worker")]

    def about_programs(name, query=""):
        """Return the warnings about what nodes lack; others tell what the plugin overwrites."""
        answer = api.post(f"{VOLCANO}{query}", builders.job(name, *ray, plugins={"ray": []}))
        assert answer.status_code == 201, answer.text
        return [each for each in answer.headers.get_list("warning") if "has no ray" in each]

    for query in ("?dryRun=All", ""):
        (warning,) = about_programs("a", query)
        assert "spec.plugins[ray]: node here has no ray, " in warning
        assert "install the Python package ray[default] there." in warning
    (node.out / "ray").touch(0o755)
    node.agent.machine.due = 0
    node.agent.machine.beat()
    assert about_programs("b") == []


LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
PROTOBUF = "application/vnd.kubernetes.protobuf"
GOLDEN = Path(__file__).parents[1] / "kube/protobuf/golden"


def send(api, method, path, body):
    return api.request(method, path, body, PROTOBUF, headers={"accept": f"{PROTOBUF},application/json"})


@cases("method, path, kind, code", {
    "another kind than the path's": ("POST", f"{CORE}/configmaps", "limitrange", 400),
    "limits": ("POST", f"{CORE}/limitranges", "limitrange", 201),
    "events": ("POST", f"{CORE}/events", "event", 201),
    "events of their own group": ("POST", "/apis/events.k8s.io/v1/namespaces/default/events", "events-event", 201),
    "quotas": ("POST", f"{CORE}/resourcequotas", "resourcequota", 201),
    "namespaces": ("POST", "/api/v1/namespaces", "namespace", 201),
    "leases": ("POST", LEASES, "lease", 201),
    "budgets": ("POST", "/apis/policy/v1/namespaces/default/poddisruptionbudgets", "poddisruptionbudget", 201),
    "classes": ("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", "priorityclass", 201),
    "policies": ("POST", "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies", "networkpolicy", 201),
    "jobs": ("POST", "/apis/batch/v1/namespaces/default/jobs", "job", 201),
    "services, by the rules of their kind": ("POST", f"{CORE}/services", "service", 422),
    "options, of another uid": ("DELETE", f"{CORE}/configmaps/a", "deleteoptions", 409),
})  # fmt: skip
def test_bodies_may_be_protobuf(api, method, path, kind, code):
    api.post(f"{CORE}/configmaps", config_map("a"))
    answer = send(api, method, path, (GOLDEN / f"{kind}.pb").read_bytes())
    assert (answer.status_code, answer.headers["content-type"]) == (code, "application/json"), answer.text


def test_protobuf_that_cannot_be_read_is_refused_and_its_defaults_are_those_of_json(api):
    lease = (GOLDEN / "lease.pb").read_bytes()
    assert send(api, "POST", LEASES, lease[:40]).status_code == 400
    unknown = send(api, "POST", LEASES, lease.replace(b"coordination.k8s.io/v1", b"coordination.k8s.io/v7"))
    assert (unknown.status_code, unknown.json()["reason"]) == (415, "UnsupportedMediaType")
    limits = (GOLDEN / "limitrange.pb").read_bytes()
    assert send(api, "POST", f"{CORE}/limitranges", limits).json()["spec"]["limits"][0]["max"] == {"memory": "2Gi"}
    assert send(api, "PUT", f"{CORE}/limitranges/l", limits).status_code == 200
