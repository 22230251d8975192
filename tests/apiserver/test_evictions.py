from __future__ import annotations

from cluster import access
from cluster.store import Create, Patch, store
from kube.resources import NODES, PODS
from tests.builders import node, pod
from tests.tables import cases

WHERE = "/api/v1/namespaces/default/pods"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
BINDINGS = "/api/v1/namespaces/default/bindings"


def running(*names, ready="True"):
    for name in names:
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]}
        store.write(Create(PODS, pod(name, nodeName="n1", labels={"app": "web"}, status=status)))


def budget(api, **spec):
    body = {"metadata": {"name": "few"}, "spec": {"selector": {"matchLabels": {"app": "web"}}, **spec}}
    assert api.post(BUDGETS, body).status_code == 201


def evict(api, name, **options):
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}, **options}
    return api.post(f"{WHERE}/{name}/eviction", body)


def test_a_pod_without_a_budget_is_evicted_and_says_why(api):
    running("a")
    assert evict(api.as_(access.Actor("nobody")), "a").status_code == 403
    assert evict(api, "a", deleteOptions={"dryRun": ["All"]}).status_code == 201
    assert "deletionTimestamp" not in api.get(f"{WHERE}/a").json()["metadata"]
    answer = evict(api, "a")
    assert (answer.status_code, answer.json()["status"]) == (201, "Success")
    left = api.get(f"{WHERE}/a").json()
    assert left["metadata"]["deletionTimestamp"]
    condition = left["status"]["conditions"][-1]
    assert (condition["type"], condition["reason"]) == ("DisruptionTarget", "EvictionByEvictionAPI")


@cases("spec, codes", {
    "at least two": ({"minAvailable": 2}, [201, 429, 429]),
    "at least half": ({"minAvailable": "50%"}, [201, 429, 429]),
    "at most one": ({"maxUnavailable": 1}, [201, 429, 429]),
    "none": ({"maxUnavailable": 0}, [429, 429, 429]),
    "all": ({"minAvailable": 0}, [201, 201, 201]),
})  # fmt: skip
def test_a_budget_lets_only_so_many_go(api, spec, codes):
    running("a", "b", "c")
    budget(api, **spec)
    answers = [evict(api, name) for name in ("a", "b", "c")]
    assert [answer.status_code for answer in answers] == codes
    for answer in answers:
        if answer.status_code == 429:
            (cause,) = answer.json()["details"]["causes"]
            assert (cause["reason"], "healthy pods" in cause["message"]) == ("DisruptionBudget", True)


def test_a_pod_that_is_not_ready_may_go_when_enough_others_are(api):
    running("a")
    running("broken", ready="False")
    budget(api, minAvailable=1)
    assert evict(api, "broken").status_code == 201


@cases("body, code", {
    "another name": ({"metadata": {"name": "b"}}, 400),
    "another uid": ({"deleteOptions": {"preconditions": {"uid": "other"}}}, 409),
    "another kind": ({"kind": "Pod", "apiVersion": "v1"}, 400),
})  # fmt: skip
def test_what_is_no_eviction_is_refused(api, body, code):
    running("a")
    assert api.post(f"{WHERE}/a/eviction", body).status_code == code


def test_a_pod_is_bound_once_by_the_name_in_the_path_or_in_the_body(api):
    store.write(Create(NODES, node("n1")), *(Create(PODS, pod(name)) for name in "ab"))
    for name in "ab":
        store.write(Patch(PODS, "default", name, {"status": {"phase": "Pending"}}, "status"))
    body = {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n1"}}
    assert api.as_(access.Actor("nobody")).post(BINDINGS, body).status_code == 403
    one = f"{WHERE}/b/binding"
    for path, sent, code in (
        (BINDINGS, {**body, "metadata": {}}, 400), (BINDINGS, body, 201), (BINDINGS, body, 409),
        (one, {"target": {"name": "nope"}}, 404), (one, {"target": {"kind": "Pod"}}, 422),
        (one, {**body, "metadata": {"name": "b"}}, 201), (one, {**body, "metadata": {"name": "b"}}, 409),
    ):  # fmt: skip
        assert api.post(path, sent).status_code == code, (path, sent)
    for name in "ab":
        bound = api.get(f"{WHERE}/{name}").json()
        assert (bound["spec"]["nodeName"], bound["metadata"]["generation"]) == ("n1", 1)
    assert api.get(BINDINGS).status_code == 405
