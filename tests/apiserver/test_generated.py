"""Requests that are made from the server's own OpenAPI documents, good ones and bad ones."""

import functools
import json

import hypothesis
import msgspec
import pytest
import requests
import schemathesis
from schemathesis import GenerationMode
from schemathesis.specs.openapi import checks

from apiserver.openapi import documents
from cluster import access
from tests.apiserver.client import ACTORS, Api
from tests.campaign import scaled
from tests.cluster import objects
from tests.cluster.api.conftest import config_map, job

PATHS = list(documents.group_versions())
EXAMPLES = scaled(1, 4)  # of each operation in each mode; each is sent by two actors
WAIT_S = 20
UNAVAILABLE = (503, 504)  # not now; no such revision yet
LASTING = ("watch", "follow")
OWN = "selfsubject"  # what everybody may ask about himself
PLACES = {"namespace": "default", "name": "a"}
CHECKS = [checks.status_code_conformance, checks.content_type_conformance, checks.response_schema_conformance]
TRIED = hypothesis.settings(
    max_examples=EXAMPLES, derandomize=True, database=None, deadline=None,
    suppress_health_check=list(hypothesis.HealthCheck), phases=[hypothesis.Phase.generate],
)  # fmt: skip


@functools.cache
def operations(path):
    schema = schemathesis.openapi.from_dict(msgspec.json.decode(documents.version3(path).body))
    found = [found.ok() for found in schema.get_all_operations()]
    return sorted(found, key=lambda operation: operation.method == "delete")


@pytest.fixture
def actors(server, person):
    """Who may do everything and who may only look, in a cluster that has something called `a` of some kinds."""
    everything, named = Api(server), {"metadata": {"name": "a"}}
    prefix = "v1/namespaces/default"
    for path, obj in {
        f"api/{prefix}/configmaps": config_map("a"), f"api/{prefix}/secrets": named, f"api/{prefix}/pods": {**objects.pod(), **named},
        f"apis/batch/{prefix}/jobs": {**objects.job(), **named}, "apis/scheduling.volcano.sh/v1beta1/queues": named,
        "apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs": job("a"),
    }.items():  # fmt: skip
        assert everything.post(f"/{path}", obj).status_code == 201, path
    found = (access.SYSTEM, person("vera", default="viewer"))
    ACTORS.update((actor.name, actor) for actor in found)
    return found


@pytest.fixture
def send(server):
    with requests.Session() as session:
        yield functools.partial(_send, session, server)


def _send(session, server, case, actor):
    arguments = case.as_transport_kwargs(base_url=server) | {"timeout": WAIT_S}
    arguments["headers"]["x-actor"] = actor.name
    with session.request(**arguments, stream=True, allow_redirects=False) as answer:
        code = answer.status_code
        lasts = code == 200 and any(name in (case.query or {}) for name in LASTING)
        text = "" if lasts else answer.text
        assert code < 500 or code in UNAVAILABLE, text
        assert code < 400 or json.loads(text)["kind"] == "Status"
        assert code >= 400 or actor is access.SYSTEM or case.method == "GET" or OWN in case.path
        if not lasts:
            case.validate_response(answer, checks=CHECKS)


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize("path", PATHS)
def test_every_answer_is_a_documented_one(send, actors, path, mode):
    bodies = {}
    for operation in operations(path):
        _try(operation, mode, send, actors, bodies)


def _try(operation, mode, send, actors, bodies):
    # To make a body takes most of the time, so those of one shape are sent to all operations that take it.
    shape = repr(operation.definition.raw.get("requestBody"))
    options = bodies.get(shape, {})

    @TRIED
    @hypothesis.given(case=operation.as_strategy(mode, **options))
    def sent(case):
        for name in case.path_parameters or ():
            case.path_parameters[name] = PLACES[name]
        if case.media_type:
            bodies[shape] = {"body": case.body, "media_type": case.media_type}
        for actor in actors:
            send(case, actor)

    try:
        sent()
    except hypothesis.errors.Unsatisfiable:
        assert mode is GenerationMode.NEGATIVE  # nothing in the operation can be wrong
