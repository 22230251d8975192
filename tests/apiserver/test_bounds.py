"""What quotas and limit ranges refuse, as a client sees it."""

from __future__ import annotations

POD = {
    "metadata": {"generateName": "p-"},
    "spec": {"containers": [{"name": "c", "image": "busybox:1", "command": ["true"]}]},
}


def test_pods_beyond_the_quota_are_forbidden(api):
    spec = {"hard": {"pods": "1"}}
    assert api.post("/api/v1/namespaces/default/resourcequotas", {"metadata": {"name": "q"}, "spec": spec})
    assert api.post("/api/v1/namespaces/default/pods", POD).status_code == 201
    answer = api.post("/api/v1/namespaces/default/pods", POD)
    assert answer.status_code == 403
    assert answer.json()["reason"] == "Forbidden"
    assert answer.json()["message"] == (
        'pods "p-" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1'
    )


def test_pods_out_of_bounds_are_forbidden(api):
    spec = {"limits": [{"type": "Container", "max": {"cpu": "1"}, "defaultRequest": {"cpu": "100m"}}]}
    answer = api.post("/api/v1/namespaces/default/limitranges", {"metadata": {"name": "l"}, "spec": spec})
    assert answer.status_code == 201
    large = [{"name": "c", "image": "i", "command": ["true"], "resources": {"limits": {"cpu": "2"}}}]
    answer = api.post("/api/v1/namespaces/default/pods", {**POD, "spec": {"containers": large}})
    assert (answer.status_code, answer.json()["details"]["kind"]) == (403, "pods")
    assert answer.json()["message"].endswith("maximum cpu usage per Container is 1, but limit is 2")
    made = api.post("/api/v1/namespaces/default/pods", POD).json()
    assert made["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "100m"}, "limits": {"cpu": "1"}}
