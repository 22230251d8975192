"""What a program that uses the official Python client reads of a refusal: its exception, and the Status in it."""

from __future__ import annotations

import contextlib
import json

import pytest
from kubernetes import client, stream, watch
from kubernetes.client.exceptions import ApiException

from apiserver.http.app import ANONYMOUS
from cluster.access import SYSTEM, Actor
from tests.apiserver.client import ACTORS
from tests.apiserver.watch import world
from tests.builders import config_map
from tests.tables import cases

SOMEBODY = Actor("ann", ("system:authenticated",))
ANOTHER_UID = client.V1DeleteOptions(preconditions=client.V1Preconditions(uid="a"))
STALE = {"metadata": {"name": "there", "resourceVersion": "1"}}
MADE = {"metadata": {"generateName": "Made_"}}


@pytest.fixture
def core_of(server):
    """Return the client of somebody, for core/v1."""
    with contextlib.ExitStack() as stack:

        def make(actor):
            ACTORS[actor.name] = actor
            api = stack.enter_context(client.ApiClient(client.Configuration(host=server)))
            api.set_default_header("x-actor", actor.name)
            stack.callback(api.rest_client.pool_manager.clear)  # it leaves its connections open
            return client.CoreV1Api(api)

        yield make


@pytest.fixture
def core(core_of):
    """The client of somebody who may do everything. The config map `there` is there."""
    found = core_of(SYSTEM)
    found.create_namespaced_config_map("default", config_map("there"))
    return found


def refused(call, *arguments, **options):
    """Return the exception of a call, and its Status."""
    with pytest.raises(ApiException) as caught:
        call(*arguments, **options)
    status = json.loads(caught.value.body)
    assert (status["kind"], status["code"]) == ("Status", caught.value.status)
    return status


@cases("call, code, reason, about, why", {
    "not there": (lambda core: (core.read_namespaced_pod, "none", "default"), 404, "NotFound", ("pods", "none"), []),
    "changed": (lambda core: (core.replace_namespaced_config_map, "there", "default", STALE), 409, "Conflict", ("configmaps", "there"), []),
    "a name": (lambda core: (core.create_namespaced_config_map, "default", config_map("A b")), 422, "Invalid", ("ConfigMap", "A b"), ["metadata.name"]),
    "another type": (lambda core: (core.create_namespaced_config_map, "default", config_map("a", a=1)), 400, "BadRequest", None, []),
})  # fmt: skip
def test_a_refusal_says_why_and_of_what(core, call, code, reason, about, why):
    status = refused(*call(core))
    assert (status["code"], status["reason"]) == (code, reason)
    details = status.get("details")
    assert (None if details is None else (details.get("kind"), details.get("name"))) == about
    assert [cause["field"] for cause in (details or {}).get("causes", ())] == why


def test_who_may_not_is_told_so(core_of):
    status = refused(core_of(SOMEBODY).list_namespaced_pod, "default")
    assert (status["code"], status["reason"], status["details"]) == (403, "Forbidden", {"kind": "pods"})
    assert refused(core_of(Actor(ANONYMOUS)).list_namespaced_pod, "default")["code"] == 401


def test_a_conflict_is_over_with_what_is_read_anew_and_a_name_is_made(core):
    assert refused(core.delete_namespaced_config_map, "there", "default", body=ANOTHER_UID)["code"] == 409
    again = core.read_namespaced_config_map("there", "default")
    again.data = {"a": "2"}
    assert core.replace_namespaced_config_map("there", "default", again).data == {"a": "2"}
    made = core.create_namespaced_config_map("default", {"metadata": {"generateName": "made-"}})
    assert len(made.metadata.name) == len("made-") + 5
    causes = refused(core.create_namespaced_config_map, "default", MADE)["details"]["causes"]
    assert "metadata.generateName" in [cause["field"] for cause in causes]


def test_a_past_that_is_forgotten_is_410_and_a_list_goes_on(core, settings, monkeypatch):
    settings.HISTORY_HOURS = 0
    monkeypatch.setattr("apiserver.watch.window.MOST_ENTRIES", 0)
    maps = core.list_namespaced_config_map
    old = maps("default").metadata.resource_version
    for number in "123":
        core.patch_namespaced_config_map("there", "default", {"data": {"a": number}})
    world.forget()
    with pytest.raises(ApiException) as caught:
        next(watch.Watch().stream(maps, "default", resource_version=old))
    assert caught.value.status == 410
    now = maps("default").metadata.resource_version
    core.delete_namespaced_config_map("there", "default")
    with contextlib.closing(watch.Watch().stream(maps, "default", resource_version=now)) as events:
        assert next(events)["type"] == "DELETED"


@cases("actor, code, words", {
    "no pod": (SYSTEM, 404, 'pods "none" not found'),
    "no right": (SOMEBODY, 403, 'User "ann" cannot create resource "pods/exec"'),
})  # fmt: skip
def test_a_command_that_cannot_run_says_why(core_of, monkeypatch, actor, code, words):
    # The library's WebSockets have no header but that of a token.
    monkeypatch.setitem(ACTORS, "", actor)
    exec_ = core_of(actor).connect_get_namespaced_pod_exec
    with pytest.raises((ApiException, AttributeError)) as caught:
        stream.stream(exec_, "none", "default", command="true", stdout=True)
    # It stumbles over its own exception, which has no body; what a traceback shows is both.
    error = caught.value if isinstance(caught.value, ApiException) else caught.value.__context__
    assert f"Handshake status {code}" in error.reason
    assert json.dumps(words)[1:-1] in error.reason
