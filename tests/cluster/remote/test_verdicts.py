"""What the answers to a plan's writes mean."""

from __future__ import annotations

import pytest

from cluster.remote import verdicts
from cluster.remote.verdicts import Again, Done, Look, Refused
from cluster.writes import Create, Delete, Patch, Update
from kube.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Forbidden,
    InternalError,
    Invalid,
    NotFound,
    ServiceUnavailable,
    Timeout,
    TooManyRequests,
    Unauthorized,
)
from kube.resources import COMMANDS, EVENTS, JOBS, PODS

OWNER = {"controller": True, "kind": "Job", "name": "j", "uid": "u-j"}
SENT = {"metadata": {"name": "p", "namespace": "d", "labels": {"job": "j"}, "ownerReferences": [OWNER]}}
CREATE = Create(PODS, SENT)
EVENT = Create(EVENTS, {"metadata": {"name": "e", "namespace": "d"}})
MARK = Patch(PODS, "d", "p", {"metadata": {"annotations": {"a": "1"}}}, uid="u")
BIND = Patch(PODS, "d", "p", {"spec": {"nodeName": "n"}}, "binding", uid="u")
DELETE = Delete(PODS, "d", "p", uid="u")
CLAIM = Delete(COMMANDS, "d", "c", uid="u")
STATUS = Update(JOBS, {"metadata": {"name": "j", "namespace": "d", "uid": "u"}, "status": {"a": 1}}, "status")
GONE, TAKEN, LATE = NotFound(), AlreadyExists("taken"), Conflict("late")


def kind(verdict):
    return type(verdict).__name__


@pytest.mark.parametrize(
    ("error", "again"),
    [
        (TooManyRequests("slowly", retry_after_s=7), (False, False, 7.0)),
        (TooManyRequests("slowly"), (False, False, 1.0)),
        (InternalError("webhook"), (True, False, 0.0)),
        (Timeout("slow"), (True, False, 0.0)),
        (ServiceUnavailable("starting", retry_after_s=2), (True, True, 2.0)),
        (Unauthorized("who"), (True, True, 0.0)),
    ],
    ids=lambda value: value.reason if isinstance(value, ApiError) else "",
)
@pytest.mark.parametrize("write", [CREATE, EVENT, DELETE, BIND], ids=["create", "event", "delete", "bind"])
def test_what_is_said_of_the_server_is_sent_again(write, error, again):
    found = verdicts.of_error(write, error, is_repeat=False)
    assert (found.may_be_done, found.is_away, found.after_s) == again


@pytest.mark.parametrize(
    ("write", "error", "is_repeat", "is_doomed", "verdict"),
    [
        (DELETE, GONE, False, False, "Done"),
        (CLAIM, GONE, False, False, "Refused"),
        (CLAIM, GONE, True, False, "Done"),
        (MARK, GONE, False, True, "Done"),
        (MARK, GONE, False, False, "Refused"),
        (BIND, GONE, True, False, "Refused"),
        (CREATE, GONE, False, False, "Refused"),
        (CREATE, TAKEN, False, False, "Look"),
        (CREATE, Invalid("spec"), True, False, "Refused"),
        (STATUS, Invalid("test failed"), False, False, "Look"),
        (BIND, LATE, False, False, "Look"),
        (MARK, Forbidden("no"), False, False, "Refused"),
        (MARK, Forbidden("no"), True, False, "Look"),
        (EVENT, Forbidden("no"), False, False, "Done"),
        (EVENT, GONE, False, False, "Done"),
    ],
    ids=str,
)
def test_refusal(write, error, is_repeat, is_doomed, verdict):
    found = verdicts.of_error(write, error, is_repeat=is_repeat, is_doomed=is_doomed)
    assert kind(found) == verdict


def there(uid="u", node="", owner=OWNER, labels=None, **fields):
    metadata = {"name": "p", "namespace": "d", "uid": uid, "ownerReferences": [owner] if owner else []}
    metadata["labels"] = {"job": "j", "more": "1"} if labels is None else labels
    return {"metadata": metadata, "spec": {"nodeName": node} if node else {}, **fields}


@pytest.mark.parametrize(
    ("write", "error", "found", "is_repeat", "verdict"),
    [
        (CREATE, TAKEN, there(), True, "Done"),
        (CREATE, TAKEN, there(), False, "Refused"),
        (CREATE, TAKEN, there(owner={**OWNER, "uid": "other"}), True, "Refused"),
        (CREATE, TAKEN, there(owner=None), True, "Refused"),
        (CREATE, TAKEN, there(labels={"job": "k"}), True, "Refused"),
        (CREATE, TAKEN, None, False, "Again"),
        (CREATE, Forbidden("no"), None, True, "Refused"),
        (CREATE, Forbidden("no"), there(), True, "Done"),
        (DELETE, Forbidden("no"), there(), True, "Refused"),
        (CLAIM, Forbidden("no"), None, True, "Done"),
        (BIND, LATE, there(node="n"), False, "Done"),
        (BIND, LATE, there(node="m"), True, "Refused"),
        (BIND, LATE, there("v", "n"), True, "Refused"),
        (BIND, LATE, there(), False, "Refused"),
        (DELETE, LATE, there("v"), False, "Done"),
        (DELETE, LATE, there(), False, "Refused"),
        (CLAIM, LATE, there("v"), False, "Refused"),
        (STATUS, Invalid("test"), there(status={"a": 1}), False, "Done"),
        (STATUS, Invalid("test"), there(status={"a": 2}), True, "Refused"),
        (STATUS, Invalid("test"), there("v", status={"a": 1}), True, "Refused"),
    ],
)
def test_what_is_there_decides(write, error, found, is_repeat, verdict):
    assert kind(verdicts.by_sight(write, error, found, is_repeat=is_repeat)) == verdict


def test_what_stands_in_the_way_is_told():
    assert verdicts.by_sight(CREATE, TAKEN, there("v"), is_repeat=False) == Refused(TAKEN, there("v"))


def test_server_that_cannot_be_looked_at_is_asked_again():
    assert isinstance(verdicts.not_shown(LATE, ServiceUnavailable("away")), Again)
    assert verdicts.not_shown(LATE, Forbidden("no")) == Refused(LATE), "a refusal to show it is no absence"


def test_success_tells_an_object_but_a_status_does_not():
    assert verdicts.of_answer(MARK, there()) == Done(there())
    assert verdicts.of_answer(DELETE, {"kind": "Status", "status": "Success"}) == Done(None)
    assert Look(LATE).error is LATE


@pytest.mark.parametrize(
    ("waits_for", "grace", "is_told"),
    [
        pytest.param({"deletionTimestamp": "2026-01-01T00:00:00Z"}, None, True, id="its end"),
        pytest.param({"deletionTimestamp": "2026-01-01T00:00:00Z"}, 0, False, id="its end no longer"),
        pytest.param({"finalizers": ["a/b"]}, 0, True, id="a finalizer"),
        pytest.param({}, None, False, id="nothing"),
    ],
)
def test_deletion_tells_no_object_that_is_gone(waits_for, grace, is_told):
    answer = there()
    answer["metadata"] |= waits_for
    deletion = Delete(PODS, "d", "p", uid="u", grace=grace)
    assert verdicts.of_answer(deletion, answer) == Done(answer if is_told else None)
