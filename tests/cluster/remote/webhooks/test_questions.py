"""Which webhooks there are, what the API server is told of them, its questions, and the answers that it understands."""

from __future__ import annotations

import json

import httpx
import pytest
from asgiref.sync import sync_to_async
from django.db import connection

from cluster.models import MirroredKind
from cluster.remote import recorder
from cluster.remote.reflection import News, Step
from cluster.remote.webhooks import app, hooks
from cluster.remote.webhooks.hooks import Address
from cluster.remote.webhooks.review import Question, Ruling, review
from kube.errors import BadRequest, Cause, Invalid
from kube.resources import QUEUES
from tests.builders import job
from tests.cluster.remote.servers import ObjectServer, connected
from tests.cluster.remote.webhooks.questions import patch_of, question
from tests.tables import cases

SERVICE = Address("webhooks.pages.svc", 443)


@cases("text, address, service", {
    "IPv4": ("192.0.2.7:9443", Address("192.0.2.7", 9443), None),
    "IPv6": ("[2001:db8::1]:9443", Address("2001:db8::1", 9443), None),
    "a service": ("webhooks.pages.svc:443", SERVICE, ("webhooks", "pages")),
    "a name that goes on": ("webhooks.pages.svc.cluster.local:443", Address("webhooks.pages.svc.cluster.local", 443), None),
    "a host of that name": ("svc:1", Address("svc", 1), None),
    "the last port": ("host:65535", Address("host", 65535), None),
})  # fmt: skip
def test_address_is_read(text, address, service):
    assert hooks.address(text) == address
    assert address.service == service


@pytest.mark.parametrize("text", ["", "host", "host:", ":443", "host:0", "host:65536", "https://host:1", "host:x"])
def test_what_is_no_address_is_refused(text):
    with pytest.raises(ValueError, match="not a host and a port"):
        hooks.address(text)


@cases("host, usual, interface", {
    "the pages are for this machine only": ("192.0.2.7", "127.0.0.1", "0.0.0.0"),
    "an API server that speaks IPv6": ("2001:db8::1", "127.0.0.1", "::"),
    "an API server on this machine": ("127.0.0.1", "127.0.0.1", "127.0.0.1"),
    "in a cluster": ("webhooks.pages.svc", "::", "::"),
})  # fmt: skip
def test_webhooks_listen_where_the_api_server_reaches_them(host, usual, interface):
    assert hooks.interface(Address(host, 443), usual) == interface


def entries(at, verb, bundle="b", user="u"):
    """What the API server is told of the webhooks, by their names."""
    return {each["name"]: each for each in hooks.configurations(at, bundle, user)[verb]["webhooks"]}


def test_api_server_finds_each_webhook_at_its_path():
    found = entries(SERVICE, "validate", "bundle")["validatejob.volcano.sh"]["clientConfig"]
    service = {"name": "webhooks", "namespace": "pages", "path": "/jobs/validate", "port": 443}
    assert found == {"service": service, "caBundle": "bundle"}
    outside = entries(Address("2001:db8::1", 9443), "mutate")["mutatequeue.volcano.sh"]["clientConfig"]
    assert outside["url"] == "https://[2001:db8::1]:9443/queues/mutate"


def test_operations_are_volcanos_and_no_status_is_asked_about():
    found = entries(SERVICE, "mutate") | entries(SERVICE, "validate")
    rules = {name: each["rules"][0] for name, each in found.items()}
    assert rules["mutatejob.volcano.sh"]["operations"] == ["CREATE"]
    assert rules["validatejob.volcano.sh"]["operations"] == ["CREATE", "UPDATE"]
    assert rules["validatequeue.volcano.sh"]["operations"] == ["CREATE", "UPDATE", "DELETE"]
    assert not [rule for rule in rules.values() if "/" in rule["resources"][0]]
    ignored = [name for name, each in found.items() if each["failurePolicy"] == "Ignore"]
    assert ignored == ["validatecommand.volcano.sh"], "what refuses nothing holds nothing up"


def test_user_cannot_write_into_the_condition():
    [entry, *_] = entries(SERVICE, "mutate", user='a" || true || "').values()
    assert r'"a\" || true || \""' in entry["matchConditions"][0]["expression"]


def test_configuration_is_written_only_when_it_differs():
    old, wanted = (hooks.configurations(SERVICE, bundle, "u")["mutate"] for bundle in ("old", "new"))
    changed = hooks.changed({**old, "metadata": {"name": "x", "resourceVersion": "7"}}, wanted)
    assert changed["metadata"]["resourceVersion"] == "7"
    assert changed["webhooks"] == wanted["webhooks"]
    assert hooks.changed(changed, wanted) is None


def test_a_configuration_trusts_what_all_its_webhooks_do():
    old, new = (hooks.configurations(SERVICE, bundle, "u")["mutate"] for bundle in ("old", "new"))
    assert hooks.trusts(new, "new")
    assert not hooks.trusts(new, "newer")
    assert not hooks.trusts({"webhooks": []}, "new")
    assert not hooks.trusts({"webhooks": [*new["webhooks"][1:], old["webhooks"][0]]}, "new")


PATH = "/jobs/validate"
VALIDATE = hooks.BY_PATH[PATH]
JOB = {"metadata": {"name": "a"}}
GOOD = json.dumps(question("/jobs/mutate", job()))


@pytest.fixture
def mirror(settings, tmp_path, transactional_db):
    """A mirror of a cluster without queues."""
    settings.WAY = "in-place"
    with connected(ObjectServer(), tmp_path, settings):
        recorder.claim("https://one")
        recorder.record([News(QUEUES, Step.LISTED, version="1")])
        yield


async def ask(path, content, method="POST"):
    transport = httpx.ASGITransport(app=app.App())
    async with httpx.AsyncClient(transport=transport, base_url="https://webhooks") as client:
        return await client.request(method, path, content=content)


async def test_each_webhook_answers_at_its_path(mirror):
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


async def test_database_that_fails_is_a_failure_of_the_webhook(mirror):
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


def test_question_is_read_as_it_was_meant():
    heard = []
    old = {"metadata": {"name": "a", "uid": "1"}}
    review(VALIDATE, question(PATH, JOB, old), lambda *about: heard.append(about) or Ruling())
    assert heard == [(VALIDATE, Question("705ab4f5", "UPDATE", JOB, old))]


def test_refusal_has_code_reason_and_each_cause_at_its_field():
    causes = [Cause("FieldValueRequired", "Required value", "spec.tasks"), Cause("FieldValueInvalid", "no", "spec")]
    refusal = Ruling(Invalid.of("Job.batch.volcano.sh", "a", causes), patch=[{"op": "remove", "path": "/spec"}])
    answer = review(VALIDATE, question(PATH, JOB), lambda *_: refusal)
    assert (answer["apiVersion"], answer["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    response, status = answer["response"], answer["response"]["status"]
    assert (response["uid"], response["allowed"], "patch" in response) == ("705ab4f5", False, False)
    assert (status["code"], status["reason"]) == (422, "Invalid")
    assert [each["field"] for each in status["details"]["causes"]] == ["spec.tasks", "spec"]


def test_warnings_and_patch_go_with_a_yes():
    ops = [{"op": "add", "path": "/spec", "value": {}}]
    answer = review(VALIDATE, question(PATH, JOB), lambda *_: Ruling(None, ["odd"], ops))
    assert (answer["response"]["warnings"], patch_of(answer)) == (["odd"], ops)
    plain = review(VALIDATE, question(PATH, JOB), lambda *_: Ruling())["response"]
    assert plain == {"uid": "705ab4f5", "allowed": True}
