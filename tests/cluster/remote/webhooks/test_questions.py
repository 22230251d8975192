"""Which webhooks there are, what the API server is told of them, its questions, and the answers that it understands."""

from __future__ import annotations

import json

import httpx
import pytest
import yaml
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
from tests.blocks import blocks
from tests.builders import job
from tests.cluster.objects import shown
from tests.cluster.remote.servers import ObjectServer, connected, patch_of, question
from tests.cluster.texts import of_values
from tests.tables import cases

SERVICE = Address("webhooks.pages.svc", 443)


def address(text):
    found = hooks.address(text)
    return f"{found.host}, {found.port}, service {found.service}"


ANSWERS = {
    "an address": address,
    "where the webhooks listen": lambda host, usual: hooks.interface(Address(host, 443), usual),
}


@blocks("webhooks", folder="cluster")
def test_where_webhooks_are(block, golden):
    golden(block, of_values(ANSWERS[block.title], ValueError))


def configurations(host, port, user, verb):
    """What the API server is told of the webhooks."""
    return [shown(each) for each in hooks.configurations(Address(host, port), "bundle", user)[verb]["webhooks"]]


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


def test_question_is_read_as_it_was_meant_and_warnings_and_patch_go_with_a_yes():
    heard, old = [], {"metadata": {"name": "a", "uid": "1"}}
    plain = review(VALIDATE, question(PATH, JOB, old), lambda *about: heard.append(about) or Ruling())
    assert heard == [(VALIDATE, Question("705ab4f5", "UPDATE", JOB, old))]
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
