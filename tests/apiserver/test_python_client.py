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
from tests.tables import cases

SOMEBODY = Actor("ann", ("system:authenticated",))
STRICT = {"field_validation": "Strict"}
FIXED = {"metadata": {"name": "fixed"}, "immutable": True}


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
    """The client of somebody who may do everything. The config map `there` is there, once changed, and `fixed`."""
    found = core_of(SYSTEM)
    found.create_namespaced_config_map("default", config_map("there"))
    found.create_namespaced_config_map("default", FIXED)
    return found


def config_map(name, **data):
    return {"metadata": {"name": name}, "data": data}


def pod(name, **spec):
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "main", "image": "busybox"}], **spec}}


def options(**preconditions):
    return client.V1DeleteOptions(preconditions=client.V1Preconditions(**preconditions))


def stale(name="there"):
    return {"metadata": {"name": name, "resourceVersion": "1"}}


def refused(call, *arguments):
    """Return the exception of a call, and its Status."""
    with pytest.raises(ApiException) as caught:
        call(*arguments)
    status = json.loads(caught.value.body)
    assert (status["kind"], status["code"]) == ("Status", caught.value.status)
    return caught.value, status


def causes(status):
    return [(each.get("field"), each["reason"]) for each in status["details"].get("causes", ())]


@cases("call, code, reason, about, why", {
    "not there": (lambda core: core.read_namespaced_pod("none", "default"), 404, "NotFound", ("pods", "none"), []),
    "there": (lambda core: core.create_namespaced_config_map("default", config_map("there")), 409, "AlreadyExists",
        ("configmaps", "there"), []),
    "changed": (lambda core: core.replace_namespaced_config_map("there", "default", stale()), 409, "Conflict",
        ("configmaps", "there"), []),
    "another uid": (lambda core: core.delete_namespaced_config_map("there", "default", body=options(uid="a")), 409,
        "Conflict", ("configmaps", "there"), []),
    "another version": (
        lambda core: core.delete_namespaced_config_map("there", "default", body=options(resource_version="1")), 409,
        "Conflict", ("configmaps", "there"), []),
    "a name": (lambda core: core.create_namespaced_config_map("default", config_map("A b")), 422, "Invalid",
        ("ConfigMap", "A b"), [("metadata.name", "FieldValueInvalid")]),
    "two fields": (lambda core: core.create_namespaced_pod("default", pod("a", restartPolicy="x", dnsPolicy="y")), 422,
        "Invalid", ("Pod", "a"),
        [("spec.restartPolicy", "FieldValueNotSupported"), ("spec.dnsPolicy", "FieldValueNotSupported")]),
    "fixed": (lambda core: core.patch_namespaced_config_map("fixed", "default", config_map("fixed", a="1")), 422,
        "Invalid", ("ConfigMap", "fixed"), [("data", "FieldValueForbidden")]),
    "a patch that does not apply": (
        lambda core: core.patch_namespaced_config_map("there", "default", [{"op": "remove", "path": "/data/b"}]), 422,
        "Invalid", (None, None), []),
    "another type": (lambda core: core.create_namespaced_config_map("default", config_map("a", a=1)), 400, "BadRequest",
        None, []),
    "an unknown field": (
        lambda core: core.create_namespaced_config_map("default", {**config_map("a"), "datta": {}}, **STRICT), 400,
        "BadRequest", None, []),
    "a selector": (lambda core: core.list_namespaced_pod("default", label_selector="a in ("), 400, "BadRequest", None,
        []),
    "the future": (lambda core: core.list_namespaced_pod("default", resource_version="9" * 9), 504, "Timeout",
        (None, None), [(None, "ResourceVersionTooLarge")]),
})  # fmt: skip
def test_a_refusal_says_why_and_of_what(core, call, code, reason, about, why):
    error, status = refused(call, core)
    assert (error.status, status["reason"]) == (code, reason)
    details = status.get("details")
    assert (None if details is None else (details.get("kind"), details.get("name"))) == about
    assert not why or causes(status) == why


def test_who_may_not_is_told_so(core_of):
    error, status = refused(core_of(SOMEBODY).list_namespaced_pod, "default")
    assert (error.status, status["reason"], status["details"]) == (403, "Forbidden", {"kind": "pods"})
    error, status = refused(core_of(Actor(ANONYMOUS)).list_namespaced_pod, "default")
    assert (error.status, status["reason"]) == (401, "Unauthorized")


def test_a_conflict_is_over_with_what_is_read_anew(core):
    error, _ = refused(core.replace_namespaced_config_map, "there", "default", stale())
    assert error.status == 409
    again = core.read_namespaced_config_map("there", "default")
    again.data = {"a": "2"}
    assert core.replace_namespaced_config_map("there", "default", again).data == {"a": "2"}


def test_a_name_is_made_and_refused_by_what_it_is_made_of(core):
    made = core.create_namespaced_config_map("default", {"metadata": {"generateName": "made-"}})
    assert len(made.metadata.name) == len("made-") + 5
    _, status = refused(core.create_namespaced_config_map, "default", {"metadata": {"generateName": "Made_"}})
    assert ("metadata.generateName", "FieldValueInvalid") in causes(status)


def test_a_past_that_is_forgotten_is_410_and_a_list_goes_on(core, settings, monkeypatch):
    settings.HISTORY_HOURS = 0
    monkeypatch.setattr("apiserver.watch.window.MOST_ENTRIES", 0)
    old = core.list_namespaced_config_map("default").metadata.resource_version
    for number in "123":
        core.patch_namespaced_config_map("there", "default", {"data": {"a": number}})
    world.forget()
    with pytest.raises(ApiException) as caught:
        next(watch.Watch().stream(core.list_namespaced_config_map, "default", resource_version=old))
    assert caught.value.status == 410
    now = core.list_namespaced_config_map("default").metadata.resource_version
    core.delete_namespaced_config_map("there", "default")
    with contextlib.closing(
        watch.Watch().stream(core.list_namespaced_config_map, "default", resource_version=now)
    ) as events:
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
