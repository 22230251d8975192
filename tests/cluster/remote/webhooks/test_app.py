"""Questions over HTTP, and what is answered to those that are none."""

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
from kube.resources import QUEUES
from tests.cluster.remote.log_server import connected
from tests.cluster.remote.webhooks.object_server import ObjectServer
from tests.cluster.remote.webhooks.questions import question
from tests.jobs.builders import job

pytestmark = pytest.mark.django_db(transaction=True)
GOOD = json.dumps(question("/jobs/mutate", job()))


@pytest.fixture
def mirror(settings, tmp_path):
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


@pytest.mark.parametrize("path", hooks.BY_PATH)
async def test_each_webhook_answers_at_its_path(mirror, path):
    obj = {"metadata": {"name": "a", "namespace": "default"}, "spec": {}}
    found = await ask(path, json.dumps(question(path, obj)))
    assert found.status_code == 200
    assert found.json()["response"]["uid"] == "705ab4f5"


@pytest.mark.parametrize(
    ("method", "path", "content", "code", "text"),
    [
        ("POST", "/", GOOD, 404, "Webhooks are asked by POST: /jobs/mutate,"),
        ("GET", "/jobs/mutate", "", 404, "Webhooks are asked by POST"),
        ("POST", "/jobs/mutate", "{", 400, "The question cannot be read"),
        ("POST", "/jobs/mutate", "[" * 100_000, 400, "The question cannot be read"),
        ("POST", "/jobs/mutate", "{}", 400, "is asked with a AdmissionReview"),
        ("POST", "/queues/mutate", GOOD, 400, "/queues/mutate is about queues.scheduling.volcano.sh"),
        ("POST", "/jobs/mutate", " " * (app.LARGEST + 1), 413, "A question may have 8,388,608 bytes."),
    ],
    ids=["no path", "no POST", "no JSON", "too deep", "no review", "another kind", "too large"],
)
async def test_what_is_no_question_is_refused_in_plain_text(mirror, method, path, content, code, text):
    found = await ask(path, content, method)
    assert (found.status_code, found.headers["content-type"]) == (code, "text/plain; charset=utf-8")
    assert text in found.text


async def test_database_that_fails_is_a_failure_of_the_webhook(mirror):
    """So that the API server goes by the failure policy, and the next question may be answered."""
    table = MirroredKind._meta.db_table
    path = "/jobs/validate"
    await _run(f"ALTER TABLE {table} RENAME TO away")
    try:
        found = await ask(path, json.dumps(question(path, job())))
    finally:
        await _run(f"ALTER TABLE away RENAME TO {table}")
    assert found.status_code == 503
    assert found.text.startswith("The database failed: ")
    assert (await ask(path, json.dumps(question(path, job())))).status_code == 200


async def _run(statement):
    def run():
        with connection.cursor() as cursor:
            cursor.execute(statement)

    await sync_to_async(run)()
