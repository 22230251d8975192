"""What is asked of an API server for a plan's writes, in which order, what its answers mean, and how far a group is."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from cluster.remote import encoding, gangs, order, requests, verdicts
from cluster.remote.progress import MOST_FAILURES, Progress
from cluster.remote.verdicts import Again, Done, Look, Refused
from cluster.writes import Create, Decision, Delete, Group, Minimum, Mirror, Patch, Timer, Update
from kube import errors
from kube.kinds.pod import OUT_OF_SYNC
from kube.resources import COMMANDS, EVENTS, JOBS, POD_GROUPS, PODS, QUEUES
from tests.builders import of, pod
from tests.tables import cases

STATE = {"state": {"phase": "Running"}}
JOB_STATUS = Update(JOBS, {"metadata": {"name": "j", "namespace": "default", "uid": "u"}, "status": STATE}, "status")
GROUP_STATUS = Update(POD_GROUPS, of(POD_GROUPS, "g", uid="u", status=STATE), "status")
WAITS = {"type": "PodScheduled", "status": "False"}
CONDITIONS = {"status": {"conditions": [{"type": "Ready", "status": "True"}, WAITS]}}
JOB_PATH = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs/j"
POD_PATH = "/api/v1/namespaces/default/pods"
QUEUE = {"metadata": {"name": "q", "resourceVersion": "3"}, "spec": {}}
MADE = pod()


def patch(kind, name, change, *more, **options):
    return Patch(kind, "default", name, change, *more, uid="u", **options)


BINDING_BODY = {
    "apiVersion": "v1", "kind": "Binding", "metadata": {"namespace": "default", "name": "p", "uid": "u"},
    "target": {"apiVersion": "v1", "kind": "Node", "name": "n"},
}  # fmt: skip
OPTIONS = {
    "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Foreground", "preconditions": {"uid": "u"},
    "gracePeriodSeconds": 5,
}  # fmt: skip
OPERATIONS = [{"op": "test", "path": "/metadata/uid", "value": "u"}, {"op": "add", "path": "/status", "value": STATE}]
REQUESTS = {
    "create": (Create(PODS, MADE), f"POST {POD_PATH}", MADE),
    "status": (JOB_STATUS, f"PATCH {JOB_PATH}/status", OPERATIONS),
    "patch": (patch(JOBS, "j", {"spec": {"queue": "q"}}, version="7"), f"PATCH {JOB_PATH}", {"spec": {"queue": "q"}, "metadata": {"uid": "u", "resourceVersion": "7"}}),
    "pod's condition": (patch(PODS, "p", CONDITIONS, "status"), f"PATCH {POD_PATH}/p/status", {"metadata": {"uid": "u"}, "status": {"conditions": [WAITS]}}),
    "binding": (patch(PODS, "p", {"spec": {"nodeName": "n"}, "status": {}}, "binding"), f"POST {POD_PATH}/p/binding", BINDING_BODY),
    "delete": (Delete(JOBS, "default", "j", uid="u", propagation="Foreground", grace=5), f"DELETE {JOB_PATH}", OPTIONS),
    "status in the object": (GROUP_STATUS, "PATCH /apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups/g", OPERATIONS),
    "replace": (Update(QUEUES, QUEUE), "PUT /apis/scheduling.volcano.sh/v1beta1/queues/q", QUEUE),
}  # fmt: skip


@cases("write, line, body", REQUESTS)
def test_request(write, line, body):
    sent = requests.of(write)
    assert (f"{sent.method} {sent.path}", sent.body) == (line, body)


def test_patched_status_is_sent_whole_and_what_is_mirrored_never():
    change = patch(POD_GROUPS, "g", {"status": {"phase": "Running", "old": None}}, "status")
    whole = requests.settled(change, {"status": {"phase": "Pending", "old": 1, "kept": 2}})
    assert whole.subresource == "status"
    assert whole.object["status"] == {"phase": "Running", "kept": 2}
    assert whole.object["metadata"] == {"namespace": "default", "name": "g", "uid": "u"}
    assert requests.settled(change, None).object["status"] == {"phase": "Running"}
    for same in (JOB_STATUS, patch(PODS, "p", {"status": {}}, "status")):
        assert requests.settled(same, None) is same
    with pytest.raises(TypeError, match="comes from the cluster"):
        requests.of(Mirror(PODS, {}))


def test_groups_are_the_same_after_they_were_written_down():
    group = Group(
        [write for write, _, _ in REQUESTS.values()],
        "d/j",
        timers=[Timer("asked", "d/j", 5, {"a": 1})],
        cancel=[("asked", "d/j")],
        minima=[Minimum(1, [2])],
        decisions=[Decision(7, "bind", "MinimumFits", "d", "j", "q", 1, "p got node n.", nodes=[("n", 1)])],
    )
    assert encoding.decode(encoding.encode(group)) == group


def mark(name):
    return Patch(PODS, "d", name, {}, uid=name)


def drop(name):
    return Delete(PODS, "d", name, uid=name)


BINDINGS = [Patch(PODS, "d", name, {}, "binding") for name in "abc"]
ENDING = [
    Delete(COMMANDS, "d", "c"),
    mark("a"),
    drop("a"),
    mark("b"),
    drop("b"),
    JOB_STATUS,
    Create(EVENTS, of(EVENTS, "e")),
]


@cases("writes, runs", {
    "pods are marked together, then deleted, then the status is written": (ENDING, [[0], [1, 3], [2, 4], [5], [6]]),
    "bindings of a gang are one": ([*BINDINGS, Patch(POD_GROUPS, "d", "g", {}, "status")], [[0, 1, 2], [3]]),
})  # fmt: skip
def test_runs_of_writes_that_go_out_together(writes, runs):
    assert order.runs(writes) == runs


def test_changes_of_what_goes_are_doomed():
    assert order.doomed([mark("a"), drop("a"), mark("b"), JOB_STATUS, drop("c"), mark("c")]) == {0}


NAMES = st.sampled_from("abc")
CREATES = st.builds(lambda name: Create(PODS, of(PODS, name, namespace="d")), NAMES)
WRITES = st.lists(st.one_of(st.builds(mark, NAMES), st.builds(drop, NAMES), CREATES, st.just(JOB_STATUS)), max_size=12)


@given(WRITES)
def test_each_write_goes_once_and_those_about_one_object_in_their_order(writes):
    runs = order.runs(writes)
    sequence = [number for run in runs for number in run]
    assert sorted(sequence) == list(range(len(writes)))
    for place in {order.place_of(write) for write in writes}:
        own = [number for number in sequence if order.place_of(writes[number]) == place]
        assert own == sorted(own)
    for run in runs:
        assert len({order.place_of(writes[number]) for number in run}) == len(run)
        assert len({(type(writes[number]), writes[number].resource) for number in run}) == 1


OWNER = {"controller": True, "kind": "Job", "name": "j", "uid": "u-j"}
SENT = {"metadata": {"name": "p", "namespace": "d", "labels": {"job": "j"}, "ownerReferences": [OWNER]}}
CREATE = Create(PODS, SENT)
EVENT = Create(EVENTS, of(EVENTS, "e", namespace="d"))
MARK = Patch(PODS, "d", "p", {"metadata": {"annotations": {"a": "1"}}}, uid="u")
BIND = Patch(PODS, "d", "p", {"spec": {"nodeName": "n"}}, "binding", uid="u")
DELETE = Delete(PODS, "d", "p", uid="u")
CLAIM = Delete(COMMANDS, "d", "c", uid="u")
STATUS = Update(JOBS, of(JOBS, "j", namespace="d", uid="u", status={"a": 1}), "status")
GONE, TAKEN, LATE, NO, WRONG = (
    errors.NotFound(),
    errors.AlreadyExists("taken"),
    errors.Conflict("late"),
    errors.Forbidden("no"),
    errors.Invalid("test"),
)


@cases("error, again", {
    "busy for a while": (errors.TooManyRequests("slowly", retry_after_s=7), (False, False, 7.0)),
    "busy": (errors.TooManyRequests("slowly"), (False, False, 1.0)),
    "failed": (errors.InternalError("webhook"), (True, False, 0.0)),
    "slow": (errors.Timeout("slow"), (True, False, 0.0)),
    "away": (errors.ServiceUnavailable("starting", retry_after_s=2), (True, True, 2.0)),
    "knows nobody": (errors.Unauthorized("who"), (True, True, 0.0)),
})  # fmt: skip
@cases("write", {"create": CREATE, "event": EVENT, "delete": DELETE, "bind": BIND})
def test_what_is_said_of_the_server_is_sent_again(write, error, again):
    found = verdicts.of_error(write, error, is_repeat=False)
    assert (found.may_be_done, found.is_away, found.after_s) == again


@cases("write, error, how, verdict", {
    "deletion of what is gone": (DELETE, GONE, {}, Done),
    "claim of what is gone": (CLAIM, GONE, {}, Refused),
    "claim of what is gone, a second time": (CLAIM, GONE, {"is_repeat": True}, Done),
    "mark on what goes and is gone": (MARK, GONE, {"is_doomed": True}, Done),
    "mark on what is gone": (MARK, GONE, {}, Refused),
    "binding of what is gone": (BIND, GONE, {"is_repeat": True}, Refused),
    "creation where nothing is": (CREATE, GONE, {}, Refused),
    "creation of a name that is taken": (CREATE, TAKEN, {}, Look),
    "creation of what is wrong": (CREATE, WRONG, {"is_repeat": True}, Refused),
    "status of another uid": (STATUS, WRONG, {}, Look),
    "binding too late": (BIND, LATE, {}, Look),
    "mark without the right": (MARK, NO, {}, Refused),
    "mark without the right, a second time": (MARK, NO, {"is_repeat": True}, Look),
    "event without the right": (EVENT, NO, {}, Done),
    "event where nothing is": (EVENT, GONE, {}, Done),
})  # fmt: skip
def test_refusal(write, error, how, verdict):
    assert type(verdicts.of_error(write, error, **{"is_repeat": False, **how})) is verdict


def there(uid="u", node="", owner=OWNER, labels=None, **fields):
    metadata = {"name": "p", "namespace": "d", "uid": uid, "ownerReferences": [owner] if owner else []}
    metadata["labels"] = {"job": "j", "more": "1"} if labels is None else labels
    return {"metadata": metadata, "spec": {"nodeName": node} if node else {}, **fields}


@cases("write, error, found, is_repeat, verdict", {
    "made before": (CREATE, TAKEN, there(), True, Done),
    "made, and not before": (CREATE, TAKEN, there(), False, Refused),
    "made for another owner": (CREATE, TAKEN, there(owner={**OWNER, "uid": "other"}), True, Refused),
    "made for nobody": (CREATE, TAKEN, there(owner=None), True, Refused),
    "made with other labels": (CREATE, TAKEN, there(labels={"job": "k"}), True, Refused),
    "taken and gone": (CREATE, TAKEN, None, False, Again),
    "refused and not there": (CREATE, NO, None, True, Refused),
    "refused and there": (CREATE, NO, there(), True, Done),
    "deletion refused": (DELETE, NO, there(), True, Refused),
    "claimed before": (CLAIM, NO, None, True, Done),
    "bound as wanted": (BIND, LATE, there(node="n"), False, Done),
    "bound elsewhere": (BIND, LATE, there(node="m"), True, Refused),
    "another one bound": (BIND, LATE, there("v", "n"), True, Refused),
    "not bound": (BIND, LATE, there(), False, Refused),
    "deleted and made anew": (DELETE, LATE, there("v"), False, Done),
    "not deleted": (DELETE, LATE, there(), False, Refused),
    "claimed by another": (CLAIM, LATE, there("v"), False, Refused),
    "status as wanted": (STATUS, WRONG, there(status={"a": 1}), False, Done),
    "another status": (STATUS, WRONG, there(status={"a": 2}), True, Refused),
    "status of another one": (STATUS, WRONG, there("v", status={"a": 1}), True, Refused),
})  # fmt: skip
def test_what_is_there_decides(write, error, found, is_repeat, verdict):
    assert type(verdicts.by_sight(write, error, found, is_repeat=is_repeat)) is verdict


def test_what_stands_in_the_way_is_told():
    assert verdicts.by_sight(CREATE, TAKEN, there("v"), is_repeat=False) == Refused(TAKEN, there("v"))


def test_server_that_cannot_be_looked_at_is_asked_again():
    assert isinstance(verdicts.not_shown(LATE, errors.ServiceUnavailable("away")), Again)
    assert verdicts.not_shown(LATE, NO) == Refused(LATE), "a refusal to show it is no absence"


ENDS = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


@cases("waits_for, grace, is_told", {
    "its end": (ENDS, None, True),
    "its end no longer": (ENDS, 0, False),
    "a finalizer": ({"finalizers": ["a/b"]}, 0, True),
    "nothing": ({}, None, False),
})  # fmt: skip
def test_success_tells_an_object_unless_it_is_gone_or_a_status(waits_for, grace, is_told):
    assert verdicts.of_answer(MARK, there()) == Done(there())
    deletion = Delete(PODS, "d", "p", uid="u", grace=grace)
    assert verdicts.of_answer(deletion, {"kind": "Status", "status": "Success"}) == Done(None)
    answer = there()
    answer["metadata"] |= waits_for
    assert verdicts.of_answer(deletion, answer) == Done(answer if is_told else None)


def made(name):
    return Create(PODS, pod(name))


def bind(name):
    return Patch(PODS, "d", name, {"spec": {"nodeName": "n"}}, "binding", uid=f"u-{name}")


def sent(progress):
    """Have what can be sent under way, and return it."""
    numbers = progress.to_send()
    for number in numbers:
        progress.sent(number)
    return numbers


def test_runs_follow_one_another():
    progress = Progress(Group([made("a"), made("b"), Delete(PODS, "d", "c")]))
    assert sent(progress) == [0, 1]
    assert progress.to_send() == []
    assert progress.heard(1, Done()) is None
    assert progress.to_send() == []
    progress.heard(0, Done())
    assert sent(progress) == [2]
    assert not progress.is_answered
    progress.heard(2, Done())
    assert (progress.is_answered, progress.error) == (True, None)


def test_refusal_ends_the_group_once_what_is_under_way_is_answered():
    progress = Progress(Group([made("a"), made("b"), Delete(PODS, "d", "c")]))
    sent(progress)
    progress.heard(0, Refused(error := errors.Forbidden("no")))
    assert not progress.is_answered
    progress.heard(1, Done({"metadata": {}}))
    assert (progress.is_answered, progress.error) == (True, error)
    assert list(progress.objects()) == [(1, {"metadata": {}})]


@cases("again, is_repeat, is_given_up", {
    "failed": (Again(errors.InternalError("x")), True, True),
    "busy": (Again(errors.TooManyRequests("x"), may_be_done=False), False, False),
    "away": (Again(errors.ServiceUnavailable("x"), is_away=True), True, False),
})  # fmt: skip
def test_what_may_be_done_is_a_repeat_and_what_fails_each_time_is_given_up(again, is_repeat, is_given_up):
    progress = Progress(Group([made("a")]))
    for _ in range(MOST_FAILURES):
        assert sent(progress) == [0]
        assert not progress.is_answered
        assert progress.heard(0, again) in (again, None)
        assert progress.is_repeated(0) is is_repeat
    assert progress.is_answered is is_given_up


def deleted(undoing):
    return [(write.name, write.uid) for write in undoing.group.writes if isinstance(write, Delete)]


ALL = [0, 1, 2]


@cases("minima, ended, back", {
    "below its minimum": ([(3, ALL)], (), "ab"),
    "still whole": ([(2, ALL)], (), ""),
    "already whole": ([], (), ""),
    "one has ended": ([(3, ALL)], ("u-a",), "b"),
    "below the minimum of a task": ([(2, ALL), (1, [2])], (), "ab"),
    "whole in each task": ([(2, ALL), (1, [0, 2])], (), ""),
    "each task lacks its own": ([(1, [0]), (1, [1]), (1, [2])], ("u-b",), "a"),
})  # fmt: skip
def test_bindings_are_taken_back_below_a_minimum(minima, ended, back):
    group = Group([bind("a"), bind("b"), bind("c")], minima=[Minimum(*each) for each in minima])
    progress = Progress(group)
    for number in sent(progress):
        progress.heard(number, Refused(errors.NotFound()) if number == 2 else Done())
    undoing = progress.take_back(ended)
    marked = [write for write in undoing.group.writes if isinstance(write, Patch)]
    assert [write.name for write in marked] == list(back)
    assert all(write.patch["metadata"]["annotations"] == {OUT_OF_SYNC: "true"} for write in marked)
    assert deleted(undoing) == [(name, f"u-{name}") for name in back]
    assert progress.take_back(ended) is undoing


@cases("is_repeat, heard, back", {
    "not heard of": (False, Again(errors.InternalError("x")), ["a"]),
    "never sent": (False, None, []),
    "sent before a crash": (True, None, ["a"]),
    "looked at": (True, Refused(errors.NotFound(), found={"metadata": {}}), []),
})  # fmt: skip
def test_bindings_that_may_have_been_made_are_taken_back_too(is_repeat, heard, back):
    progress = Progress(Group([bind("a"), bind("b")], minima=[Minimum(2, [0, 1])]), is_repeat=is_repeat)
    progress.sent(1)
    if heard is not None:
        progress.sent(0)
        progress.heard(0, heard)
    progress.heard(1, Refused(errors.NotFound(), found={"metadata": {}}))
    assert progress.is_answered
    assert [name for name, _ in deleted(progress.take_back(()))] == back


def test_only_bindings_that_were_made_are_bound():
    group = Group([bind("a"), bind("b"), made("c")])
    assert gangs.bound(group, {0: Done(), 1: Refused(errors.NotFound()), 2: Done()}) == [group.writes[0]]
