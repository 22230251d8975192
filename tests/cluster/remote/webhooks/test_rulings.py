"""Which webhooks there are, how they are asked, and what our rules say over the mirror: refusals with causes, defaults as patches."""

import copy
import json

import httpx
import pytest
import yaml
from asgiref.sync import sync_to_async
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cluster.api import admission
from cluster.api.cluster_view import ClusterView
from cluster.models import MirroredKind
from cluster.remote import recorder
from cluster.remote.http import paths
from cluster.remote.http.target import Target
from cluster.remote.mirroring.reflection import Step, Update
from cluster.remote.webhooks import app, hooks, rulings
from cluster.remote.webhooks.hooks import Address
from cluster.remote.webhooks.review import Question, Ruling, review
from cluster.store import store
from cluster.writes import Mirror
from kube import patch, resources
from kube.errors import BadRequest, Cause, InternalError, Invalid
from kube.resources import QUEUES
from tests.blocks import blocks
from tests.builders import container, job, namespace, pod_group, queue
from tests.cluster.objects import as_yaml, of_values, otherwise, parsed
from tests.cluster.remote.servers import ObjectServer, connected, patch_of, question
from tests.tables import cases

KUBERNETES = Target("dev", "https://dev", "")
TREE = {"root": ("Open", ""), "default": ("Open", "root"), "shut": ("Closed", "root"), "up": ("Open", "root"), "below": ("Open", "up")}  # fmt: skip


def mirror(kind, obj, version="5"):
    metadata = {"uid": f"{kind.plural}-{obj['metadata']['name']}", "resourceVersion": version, **obj["metadata"]}
    store.write(Mirror(kind, {**obj, "metadata": metadata}))


@pytest.fixture
def cluster(tmp_path, settings, db):
    """A cluster that is mirrored: open queues, one that is closed, one with queues below it. What it has beyond is in `objects`."""
    settings.WAY, settings.IMPERSONATE, settings.LEASE_NAMESPACE = "in-place", False, "volcano-system"
    with connected(ObjectServer(), tmp_path, settings) as running:
        recorder.claim("https://one")
        recorder.record([Update(resources.QUEUES, Step.LISTED, version="1")])
        mirror(resources.NAMESPACES, namespace())
        for name, (state, parent) in TREE.items():
            mirror(resources.QUEUES, queue(name, state, weight=1, parent=parent))
        yield running


def reviewed(path, obj=None, old=None):
    body = question(path, copy.deepcopy(obj), copy.deepcopy(old))
    return review(hooks.BY_PATH[path], body, rulings.rule)


class Rulings:
    """What is said of objects, a line a question, as tests/cluster/objects.py has them.

    `validate job …` asks about a new one, with `| …` behind it about an update; also `delete` and `mutate`. Meanwhile
    `mirror` lets the mirror have an object and `put` the cluster, `gone` and `deny 403` take or refuse that; pods run `here` or `elsewhere`.
    """

    def __init__(self, cluster, settings):
        self.cluster = cluster
        self.deeds = {
            "gone": lambda _: cluster.objects.pop(self.path),
            "deny": lambda code: cluster.denied.update({("GET", self.path): int(code)}),
            "unread": lambda _: MirroredKind.objects.filter(resource=resources.QUEUES.id).update(version=""),
            "here": lambda _: setattr(settings, "TARGET", None),
            "elsewhere": lambda _: setattr(settings, "TARGET", KUBERNETES),
        }

    def tell(self, line):
        verb, _, rest = line.partition(" ")
        found = self.deeds[verb](rest) if verb in self.deeds else getattr(self, verb)(rest)
        return found if isinstance(found, list) else []

    def response(self, verb, kind, new, old=None):
        path = next(path for path, hook in hooks.BY_PATH.items() if (hook.resource, hook.verb) == (kind, verb))
        response = reviewed(path, new, old)["response"]
        if response["allowed"]:
            return response.get("warnings") or ["allowed"]
        status = response["status"]
        causes = [f"{each['field']}: {each['message']}" for each in status.get("details", {}).get("causes", ())]
        return [f"{status['code']} {each}" for each in causes or [status["message"]]]

    def validate(self, text):
        written, _, change = text.partition(" | ")
        kind, obj = parsed(written)
        return self.response("validate", kind, otherwise(obj, change), obj if change else None)

    def delete(self, text):
        kind, obj = parsed(text)
        return self.response("validate", kind, None, obj)

    def mutate(self, text):
        kind, obj = parsed(text)
        path = next(path for path, hook in hooks.BY_PATH.items() if (hook.resource, hook.verb) == (kind, "mutate"))
        ops = patch_of(reviewed(path, obj))
        assert patch_of(reviewed(path, patch.json_patch(obj, ops))) == [], "nothing is left to fill in"
        return list(map(as_yaml, ops))

    def mirror(self, text):
        mirror(*parsed(text), version="6")

    def put(self, text):
        kind, obj = parsed(text)
        self.path = paths.one(kind, obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
        self.cluster.put(self.path, obj)


@blocks("rulings", folder="cluster")
def test_what_the_webhooks_say(block, golden, cluster, settings):
    golden(block, Rulings(cluster, settings).tell)


@cases("number, looked_up", {
    "as many as are": (rulings.MAX_LOOKED_UP, True),
    "more": (rulings.MAX_LOOKED_UP + 1, False),
})  # fmt: skip
def test_many_groups_of_a_queue_are_not_looked_up(cluster, number, looked_up):
    for each in range(number):
        mirror(resources.POD_GROUPS, pod_group(f"g{each}", queue="shut", status={"phase": "Running"}))
    cluster.requests.clear()
    reviewed("/queues/validate", None, queue("shut", "Closed", weight=1))
    assert bool(cluster.requests) is looked_up


numbers = st.none() | st.integers(0, 3)
tasks = st.fixed_dictionaries(
    {"template": st.just({"spec": {"containers": [container()], "hostNetwork": True}})},
    optional={"name": st.sampled_from(["", "main", "other"]), "replicas": numbers, "minAvailable": numbers, "maxRetry": numbers},
)  # fmt: skip
specs = st.fixed_dictionaries(
    {},
    optional={
        "queue": st.sampled_from(["", "default", "none"]),
        "schedulerName": st.sampled_from(["", "volcano"]),
        "maxRetry": numbers,
        "minAvailable": numbers,
        "networkTopology": st.sampled_from([{}, {"highestTierAllowed": 1}, None]),
        "plugins": st.dictionaries(st.sampled_from(["mpi", "ray", "svc", "env"]), st.just([]), max_size=2),
        "tasks": st.lists(tasks, max_size=3),
    },
)


@pytest.mark.usefixtures("cluster")
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(specs)
def test_patch_makes_of_a_job_what_our_own_defaults_do(spec):
    obj = {**job(), "spec": spec}
    before = copy.deepcopy(obj)
    assert patch.json_patch(obj, patch_of(reviewed("/jobs/mutate", obj))) == admission.completed(
        resources.JOBS, obj, None, ClusterView()
    )
    assert obj == before


def test_error_of_a_rule_is_not_swallowed(cluster):
    def broken(*_):
        raise InternalError("defect")

    admission.register(resources.JOBS, validate=broken)
    try:
        assert reviewed("/jobs/validate", job())["response"]["status"]["code"] == 500
    finally:
        admission._rules[resources.JOBS.id].pop()


SERVICE = Address("webhooks.pages.svc", 443)


def address(text):
    found = hooks.address(text)
    return f"{found.host}, {found.port}, service {found.service}"


FUNCTIONS = {
    "an address": address,
    "where the webhooks listen": lambda host, usual: hooks.interface(Address(host, 443), usual),
}


@blocks("webhooks", folder="cluster")
def test_where_webhooks_are(block, golden):
    golden(block, of_values(FUNCTIONS[block.title], ValueError))


def configurations(host, port, user, verb):
    return [as_yaml(each) for each in hooks.configurations(Address(host, port), "bundle", user)[verb]["webhooks"]]


@blocks("configurations", folder="cluster")
def test_what_the_api_server_is_told_of_webhooks(block, golden):
    golden(block, lambda line: configurations(*yaml.safe_load(f"[{line}]")))


def test_configuration_is_written_only_when_it_differs_and_trusts_what_all_its_webhooks_do():
    old, new = (hooks.configurations(SERVICE, bundle, "u")["mutate"] for bundle in ("old", "new"))
    changed = hooks.changed({**old, "metadata": {"name": "x", "resourceVersion": "7"}}, new)
    assert (changed["metadata"]["resourceVersion"], changed["webhooks"]) == ("7", new["webhooks"])
    assert hooks.changed(changed, new) is None
    assert hooks.trusts(new, "new")
    assert not hooks.trusts(new, "newer")
    for webhooks in ([], [*new["webhooks"][1:], old["webhooks"][0]]):
        assert not hooks.trusts({"webhooks": webhooks}, "new")


PATH = "/jobs/validate"
VALIDATE = hooks.BY_PATH[PATH]
JOB = {"metadata": {"name": "a"}}
GOOD = json.dumps(question("/jobs/mutate", job()))


@pytest.fixture
def mirrored(settings, tmp_path, transactional_db):
    """A mirror of a cluster without queues."""
    settings.WAY = "in-place"
    with connected(ObjectServer(), tmp_path, settings):
        recorder.claim("https://one")
        recorder.record([Update(QUEUES, Step.LISTED, version="1")])
        yield


async def ask(path, content, method="POST"):
    transport = httpx.ASGITransport(app=app.App())
    async with httpx.AsyncClient(transport=transport, base_url="https://webhooks") as client:
        return await client.request(method, path, content=content)


async def test_each_webhook_answers_at_its_path(mirrored):
    for path in hooks.BY_PATH:
        obj = {"metadata": {"name": "a", "namespace": "default"}, "spec": {}}
        found = await ask(path, json.dumps(question(path, obj)))
        assert (found.status_code, found.json()["response"]["uid"]) == (200, "705ab4f5")


@cases("method, path, content, code, text", {
    "no path": ("POST", "/", GOOD, 404, "Webhooks are asked by POST: /jobs/mutate,"),
    "no POST": ("GET", "/jobs/mutate", "", 404, "Webhooks are asked by POST"),
    "no JSON": ("POST", "/jobs/mutate", "{", 400, "The question cannot be read"),
    "too deep": ("POST", "/jobs/mutate", "[" * 100_000, 400, "The question cannot be read"),
    "no review": ("POST", "/jobs/mutate", "{}", 400, "is asked with a AdmissionReview"),
    "too large": ("POST", "/jobs/mutate", " " * (app.LARGEST + 1), 413, "A question may have 8,388,608 bytes."),
})  # fmt: skip
async def test_what_is_no_question_is_refused_in_plain_text(method, path, content, code, text):
    found = await ask(path, content, method)
    assert (found.status_code, found.headers["content-type"]) == (code, "text/plain; charset=utf-8")
    assert text in found.text


async def test_database_that_fails_is_a_failure_of_the_webhook(mirrored):
    """So that the API server goes by the failure policy, and the next question may be answered."""
    table = MirroredKind._meta.db_table
    await run(f"ALTER TABLE {table} RENAME TO away")
    try:
        found = await ask(PATH, json.dumps(question(PATH, job())))
    finally:
        await run(f"ALTER TABLE away RENAME TO {table}")
    assert found.status_code == 503
    assert found.text.startswith("The database failed: ")
    assert (await ask(PATH, json.dumps(question(PATH, job())))).status_code == 200


@sync_to_async
def run(statement):
    with connection.cursor() as cursor:
        cursor.execute(statement)


@cases("body, message", {
    "nothing": (None, "is asked with a AdmissionReview"),
    "a list": ([], "is asked with a AdmissionReview"),
    "an older version": ({**question(PATH, JOB), "apiVersion": "admission.k8s.io/v1beta1"}, "admission.k8s.io/v1"),
    "no request": ({**question(PATH, JOB), "request": None}, "request.uid is missing"),
    "another kind": (question("/queues/validate", JOB), 'not "queues.scheduling.volcano.sh"'),
    "another operation": (question(PATH, operation="CONNECT"), 'not "CONNECT"'),
    "no object": (question(PATH, operation="CREATE"), "request.object is missing"),
    "no old object": (question(PATH, JOB, operation="UPDATE"), "request.oldObject is missing"),
})  # fmt: skip
def test_why_something_is_no_question_is_told(body, message):
    with pytest.raises(BadRequest, match=message):
        review(VALIDATE, body, lambda *_: Ruling())


def test_question_is_read_as_it_was_meant_and_warnings_and_patch_go_with_a_yes():
    calls, old = [], {"metadata": {"name": "a", "uid": "1"}}
    plain = review(VALIDATE, question(PATH, JOB, old), lambda *about: calls.append(about) or Ruling())
    assert calls == [(VALIDATE, Question("705ab4f5", "UPDATE", JOB, old))]
    assert plain["response"] == {"uid": "705ab4f5", "allowed": True}
    ops = [{"op": "add", "path": "/spec", "value": {}}]
    answer = review(VALIDATE, question(PATH, JOB), lambda *_: Ruling(None, ["odd"], ops))
    assert (answer["response"]["warnings"], patch_of(answer)) == (["odd"], ops)


def test_refusal_has_code_reason_and_each_cause_at_its_field():
    causes = [Cause("FieldValueRequired", "Required value", "spec.tasks"), Cause("FieldValueInvalid", "no", "spec")]
    refusal = Ruling(Invalid.of("Job.batch.volcano.sh", "a", causes), patch=[{"op": "remove", "path": "/spec"}])
    answer = review(VALIDATE, question(PATH, JOB), lambda *_: refusal)
    assert (answer["apiVersion"], answer["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    response, status = answer["response"], answer["response"]["status"]
    assert (response["uid"], response["allowed"], "patch" in response) == ("705ab4f5", False, False)
    assert (status["code"], status["reason"]) == (422, "Invalid")
    assert [each["field"] for each in status["details"]["causes"]] == ["spec.tasks", "spec"]
