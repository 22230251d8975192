"""Requests that a server refuses or answers with a Status. What it says is `tests/golden/kubernetes/statuses.json`.

A kube-apiserver says it: `tests/kubernetes/test_golden.py` compares them, and writes the file with `--update-golden`.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple

PODS = "/api/v1/namespaces/default/pods"
MAPS = "/api/v1/namespaces/default/configmaps"
BATCH = "/apis/batch/v1/namespaces/default/jobs"
VOLCANO = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
JSON = "application/json"
SOMEBODY = "ann"  # who is known and may do nothing
LARGEST = 3 * 1024 * 1024
LATER = 10**12  # a revision of the future


class Asked(NamedTuple):
    """One request."""

    method: str
    path: str
    body: object = None
    content_type: str = JSON
    headers: dict[str, str] = {}
    user: str = ""

    def content(self):
        """Return the body as it is sent."""
        return self.body if isinstance(self.body, str | bytes | None) else json.dumps(self.body)


def named(name, **fields):
    return {"metadata": {"name": name}, **fields}


def pod(name="p", **spec):
    containers = [{"name": "main", "image": "busybox:1", "command": ["true"]}]
    return named(name, spec={"automountServiceAccountToken": False, "containers": containers, **spec})


def get(path, **more):
    return Asked("GET", path, **more)


def post(path, body, **more):
    return Asked("POST", path, body, **more)


# What is there before.
THERE = (
    post(f"{MAPS}?fieldManager=a", named("there", data={"a": "1"})),
    post(MAPS, named("fixed", immutable=True)),
    post(PODS, pod("there")),
    post(CLASSES, named("there", value=1)),
)

CASES = {
    # 400
    "400 no JSON": post(MAPS, "{"),
    "400 a list": post(MAPS, []),
    "400 a value of another type": post(MAPS, named("a", data={"a": 1})),
    "400 a value of another type in a replacement": Asked("PUT", f"{MAPS}/there", named("there", data={"a": 1})),
    "400 another kind": post(MAPS, {"apiVersion": "v1", "kind": "Secret", **named("a")}),
    "400 another namespace": post(MAPS, {"metadata": {"name": "a", "namespace": "other"}}),
    "400 another name": Asked("PUT", f"{MAPS}/there", named("other")),
    "400 a version on creation": post(MAPS, {"metadata": {"name": "a", "resourceVersion": "1"}}),
    "400 an unknown field": post(f"{MAPS}?fieldValidation=Strict", named("a", datta={})),
    "400 a field given twice": post(f"{MAPS}?fieldValidation=Strict", '{"metadata": {"name": "a"}, "data": {}, "data": {}}'),
    "400 a label selector": get(f"{MAPS}?labelSelector=a%20b"),
    "400 a field selector": get(f"{MAPS}?fieldSelector=spec.a%3Db"),
    "400 a limit": get(f"{MAPS}?limit=a"),
    "400 a token to go on with": get(f"{MAPS}?continue=a"),
    "400 a patch": Asked("PATCH", f"{MAPS}/there", "{", MERGE),
    "400 a patch of no operations": Asked("PATCH", f"{MAPS}/there", {}, JSON_PATCH),
    "400 options of another kind": Asked("DELETE", f"{MAPS}/there", {"apiVersion": "v1", "kind": "ConfigMap"}),
    # 401
    "401 a wrong token": get(PODS, headers={"Authorization": "Bearer wrong"}),
    "401 a wrong token where everybody may ask": get("/version", headers={"Authorization": "Bearer wrong"}),
    # 403
    "403 a list": get(PODS, user=SOMEBODY),
    "403 a list of all namespaces": get("/api/v1/pods", user=SOMEBODY),
    "403 an object": get(f"{PODS}/none", user=SOMEBODY),
    "403 a log": get(f"{PODS}/none/log", user=SOMEBODY),
    "403 a creation": post(MAPS, named("a"), user=SOMEBODY),
    "403 a deletion": Asked("DELETE", f"{MAPS}/there", user=SOMEBODY),
    "403 an object of the whole cluster": get("/api/v1/nodes/none", user=SOMEBODY),
    "403 a Volcano job": get(f"{VOLCANO}/none", user=SOMEBODY),
    "403 a path": get("/metrics", user=SOMEBODY),
    "403 a namespace that stays": Asked("DELETE", "/api/v1/namespaces/default"),
    "403 a class that is not there": post(PODS, pod("a", priorityClassName="none")),
    "403 an account that is not there": post(PODS, pod("a", serviceAccountName="none")),
    # 404
    "404 an object": get(f"{PODS}/none"),
    "404 an object of a group": get(f"{BATCH}/none"),
    "404 a Volcano job": get(f"{VOLCANO}/none"),
    "404 an object of the whole cluster": get(f"{CLASSES}/none"),
    "404 a deletion": Asked("DELETE", f"{MAPS}/none"),
    "404 a replacement": Asked("PUT", f"{MAPS}/none", {"metadata": {"name": "none", "resourceVersion": "1"}}),
    "404 a patch": Asked("PATCH", f"{MAPS}/none", {}, MERGE),
    "404 a namespace": post("/api/v1/namespaces/none/configmaps", named("a")),
    "404 a resource": get("/api/v1/namespaces/default/nonsense"),
    "404 a resource of the whole cluster": get("/api/v1/nonsense"),
    "404 a part": get(f"{PODS}/there/nonsense"),
    "404 a status": get(f"{MAPS}/there/status"),
    "404 a group": get("/apis/nonsense.example.com"),
    "404 a resource of no group": get("/apis/nonsense.example.com/v1/things"),
    "404 a version": get("/api/v2"),
    "404 a path": get("/nonsense"),
    "404 a check": get("/healthz/nonsense"),
    # 405
    "405 an object to create": post(f"{MAPS}/there", named("there")),
    "405 a replacement of all": Asked("PUT", MAPS, {}),
    "405 a patch of all": Asked("PATCH", MAPS, {}, MERGE),
    "405 all namespaces": Asked("DELETE", "/api/v1/namespaces"),
    "405 a path": post("/version", {}),
    # 406
    "406 a form": get(f"{MAPS}/there", headers={"Accept": "text/html"}),
    "406 discovery": get("/api", headers={"Accept": "text/html"}),
    # 409
    "409 a name": post(MAPS, named("there")),
    "409 a name of the whole cluster": post(CLASSES, named("there", value=1)),
    "409 a version": Asked("PUT", f"{MAPS}/there", {"metadata": {"name": "there", "resourceVersion": "1"}}),
    "409 a version of a patch": Asked("PATCH", f"{MAPS}/there", {"metadata": {"resourceVersion": "1"}}, MERGE),
    "409 a uid": Asked("DELETE", f"{MAPS}/there", {"preconditions": {"uid": "a"}}),
    "409 a version to delete": Asked("DELETE", f"{MAPS}/there", {"preconditions": {"resourceVersion": "1"}}),
    "409 a field of somebody else": Asked("PATCH", f"{MAPS}/there?fieldManager=b", {"apiVersion": "v1", "kind": "ConfigMap", **named("there", data={"a": "2"})}, APPLY),
    # 413
    "413 a body": post(MAPS, named("a", data={"a": "x" * LARGEST})),
    # 415
    "415 a body": post(MAPS, "a", content_type="text/plain"),
    "415 a patch": Asked("PATCH", f"{MAPS}/there", {}, "text/plain"),
    "415 a patch of a custom kind": Asked("PATCH", f"{VOLCANO}/there", {}, "text/plain"),
    # 422
    "422 a name": post(MAPS, named("A b")),
    "422 no name": post(MAPS, {}),
    "422 a label": post(MAPS, {"metadata": {"name": "a", "labels": {"a b": "c"}}}),
    "422 no container": post(PODS, named("a", spec={})),
    "422 two things": post(PODS, pod("a", restartPolicy="x", dnsPolicy="y")),
    "422 a job": post(BATCH, named("a", spec={"parallelism": -1, "template": {"spec": pod(restartPolicy="Never")["spec"]}})),
    "422 a value of another type in a Volcano job": post(VOLCANO, {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", **named("a", spec={"minAvailable": "1"})}),
    "422 what is fixed": Asked("PATCH", f"{MAPS}/fixed", {"data": {"a": "1"}}, MERGE),
    "422 an operation of a patch": Asked("PATCH", f"{MAPS}/there", [{"op": "test", "path": "/data/a", "value": "9"}], JSON_PATCH),
    "422 force without apply": Asked("PATCH", f"{MAPS}/there?force=true", {}, MERGE),
    "422 apply without a manager": Asked("PATCH", f"{MAPS}/there", {"apiVersion": "v1", "kind": "ConfigMap", **named("there")}, APPLY),
    "422 a dry run": post(f"{MAPS}?dryRun=a", named("a")),
    "422 what becomes of dependents": Asked("DELETE", f"{MAPS}/there?propagationPolicy=a"),
    "422 how fields are checked": post(f"{MAPS}?fieldValidation=a", named("a")),
    "422 how a version is meant": get(f"{MAPS}?resourceVersionMatch=a&resourceVersion=1"),
    "422 a version to watch from": get(f"{MAPS}?watch=true&resourceVersionMatch=Exact&resourceVersion=1"),
    # 504
    "504 a version of the future": get(f"{MAPS}?resourceVersion={LATER}"),
    "504 an object of the future": get(f"{MAPS}/there?resourceVersion={LATER}"),
    # Success
    "200 a deletion": Asked("DELETE", f"{MAPS}/there"),
    "200 a deletion of the whole cluster": Asked("DELETE", f"{CLASSES}/there"),
}  # fmt: skip


def seen(answer):
    """Return what an answer says, without what is of each."""
    text = re.sub(r"(current: |audit-id: |in record \()\d+\b(?!-)", r"\1N", answer.text)
    text = re.sub(r"(in record \()[-0-9a-f]{36}", r"\1UID", text)
    kind = answer.headers.get("content-type", "").partition(";")[0]
    said = json.loads(text) if kind == JSON else text
    if isinstance(said, dict) and said.get("details", {}).get("uid"):
        said["details"]["uid"] = "UID"
    found = {"code": answer.status_code, "type": kind, "said": said}
    if "retry-after" in answer.headers:
        found["retry-after"] = answer.headers["retry-after"]
    return found
