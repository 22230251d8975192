from __future__ import annotations

from cluster import access
from cluster.store import Create, Patch, store
from kube.resources import NODES, PODS
from tests.tables import cases

WHERE = "/api/v1/namespaces/default/pods"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
READY = [{"type": "Ready", "status": "True"}]


def pod(name, *, ready=True, node="n1"):
    store.write(
        Create(
            PODS,
            {
                "metadata": {"name": name, "namespace": "default", "labels": {"app": "web"}},
                "spec": {"nodeName": node, "containers": [{"name": "c", "image": "x", "command": ["x"]}]},
                "status": {"phase": "Running", "conditions": READY if ready else []},
            },
        )
    )


def budget(api, **spec):
    body = {"metadata": {"name": "few"}, "spec": {"selector": {"matchLabels": {"app": "web"}}, **spec}}
    assert api.post(BUDGETS, body).status_code == 201


def evict(api, name, **options):
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}, **options}
    return api.post(f"{WHERE}/{name}/eviction", body)


def test_a_pod_without_a_budget_is_evicted_and_says_why(api):
    pod("a")
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
    for name in ("a", "b", "c"):
        pod(name)
    budget(api, **spec)
    answers = [evict(api, name) for name in ("a", "b", "c")]
    assert [answer.status_code for answer in answers] == codes
    for answer in answers:
        if answer.status_code == 429:
            (cause,) = answer.json()["details"]["causes"]
            assert cause["reason"] == "DisruptionBudget"
            assert "healthy pods" in cause["message"]


def test_a_pod_that_is_not_ready_may_go_when_enough_others_are(api):
    pod("a")
    pod("broken", ready=False)
    budget(api, minAvailable=1)
    assert evict(api, "broken").status_code == 201


def test_a_dry_run_evicts_nobody(api):
    pod("a")
    assert evict(api, "a", deleteOptions={"dryRun": ["All"]}).status_code == 201
    assert "deletionTimestamp" not in api.get(f"{WHERE}/a").json()["metadata"]


@cases("body, code", {
    "another name": ({"metadata": {"name": "b"}}, 400),
    "another uid": ({"deleteOptions": {"preconditions": {"uid": "other"}}}, 409),
    "another kind": ({"kind": "Pod", "apiVersion": "v1"}, 400),
})  # fmt: skip
def test_what_is_no_eviction_is_refused(api, body, code):
    pod("a")
    assert api.post(f"{WHERE}/a/eviction", body).status_code == code


def test_only_who_may_evicts(api):
    pod("a")
    assert evict(api.as_(access.Actor("nobody")), "a").status_code == 403


def test_a_pod_is_bound_by_the_name_in_the_body(api):
    store.write(Create(NODES, {"metadata": {"name": "n1"}}))
    pod("a", node="")
    bindings = "/api/v1/namespaces/default/bindings"
    body = {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n1"}}
    assert api.as_(access.Actor("nobody")).post(bindings, body).status_code == 403
    assert api.post(bindings, {**body, "metadata": {}}).status_code == 400
    assert api.post(bindings, body).status_code == 201
    assert api.get(f"{WHERE}/a").json()["spec"]["nodeName"] == "n1"
    assert api.post(bindings, body).status_code == 409
    assert api.get(bindings).status_code == 405


def test_a_pod_is_bound_once(api):
    store.write(Create(NODES, {"metadata": {"name": "n1"}}))
    pod("a", node="")
    store.write(Patch(PODS, "default", "a", {"status": {"phase": "Pending"}}, "status"))
    body = {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n1"}}
    assert api.post(f"{WHERE}/a/binding", {**body, "target": {"name": "nope"}}).status_code == 404
    assert api.post(f"{WHERE}/a/binding", {"target": {"kind": "Pod"}}).status_code == 422
    assert api.post(f"{WHERE}/a/binding", body).status_code == 201
    bound = api.get(f"{WHERE}/a").json()
    assert (bound["spec"]["nodeName"], bound["metadata"]["generation"]) == ("n1", 1)
    assert api.post(f"{WHERE}/a/binding", body).status_code == 409
