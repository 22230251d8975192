"""What is asked of an API server for a plan's writes, in which order, what its answers mean, and how far a group is."""

import hypothesis.strategies as st
import pytest
from hypothesis import given

from cluster.remote.dispatch import gangs, order, requests, verdicts
from cluster.remote.dispatch.progress import Progress
from cluster.remote.dispatch.verdicts import Again, Done, Refused
from cluster.remote.http import encoding
from cluster.writes import Create, Decision, Delete, Group, Minimum, Mirror, Patch, Timer, Update
from kube import errors
from kube.kinds.pod import OUT_OF_SYNC
from kube.resources import COMMANDS, EVENTS, JOBS, POD_GROUPS, PODS, QUEUES
from tests.blocks import blocks
from tests.builders import of, pod
from tests.cluster.objects import as_yaml, of_values
from tests.tables import cases

STATE = {"state": {"phase": "Running"}}
JOB_STATUS = Update(JOBS, {"metadata": {"name": "j", "namespace": "default", "uid": "u"}, "status": STATE}, "status")
GROUP_STATUS = Update(POD_GROUPS, of(POD_GROUPS, "g", uid="u", status=STATE), "status")
WAITS = {"type": "PodScheduled", "status": "False"}
CONDITIONS = {"status": {"conditions": [{"type": "Ready", "status": "True"}, WAITS]}}
QUEUE = {"metadata": {"name": "q", "resourceVersion": "3"}, "spec": {}}


def patch(kind, name, change, *more, **options):
    return Patch(kind, "default", name, change, *more, uid="u", **options)


REQUESTS = {
    "create": Create(PODS, pod()),
    "status": JOB_STATUS,
    "patch": patch(JOBS, "j", {"spec": {"queue": "q"}}, version="7"),
    "condition-of-a-pod": patch(PODS, "p", CONDITIONS, "status"),
    "binding": patch(PODS, "p", {"spec": {"nodeName": "n"}, "status": {}}, "binding"),
    "delete": Delete(JOBS, "default", "j", uid="u", propagation="Foreground", grace=5),
    "status-in-the-object": GROUP_STATUS,
    "replace": Update(QUEUES, QUEUE),
}


def request(name):
    sent = requests.of(REQUESTS[name])
    return [f"{sent.method} {sent.path}", sent.body]


@blocks("requests", folder="cluster")
def test_request(block, golden):
    golden(block, of_values(request))


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
        list(REQUESTS.values()),
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


def test_runs_of_writes_that_go_out_together_and_changes_of_what_goes():
    claim, event = Delete(COMMANDS, "d", "c"), Create(EVENTS, of(EVENTS, "e"))
    ending = [claim, mark("a"), drop("a"), mark("b"), drop("b"), JOB_STATUS, event]
    assert order.runs(ending) == [[0], [1, 3], [2, 4], [5], [6]], "marked together, then deleted, then the status"
    bindings = [Patch(PODS, "d", name, {}, "binding") for name in "abc"]
    assert order.runs([*bindings, Patch(POD_GROUPS, "d", "g", {}, "status")]) == [[0, 1, 2], [3]], (
        "a gang is bound as one"
    )
    assert order.doomed([mark("a"), drop("a"), mark("b"), JOB_STATUS, drop("c"), mark("c")]) == {0}


NAMES = st.sampled_from("abc")
CREATES = st.builds(lambda name: Create(PODS, of(PODS, name, namespace="d")), NAMES)
WRITES = st.lists(st.one_of(st.builds(mark, NAMES), st.builds(drop, NAMES), CREATES, st.just(JOB_STATUS)), max_size=12)


@given(WRITES)
def test_each_write_goes_once_and_those_about_one_object_in_their_order(writes):
    runs = order.runs(writes)
    sequence = [number for run in runs for number in run]
    assert sorted(sequence) == list(range(len(writes)))
    for key in {order.key_of(write) for write in writes}:
        own = [number for number in sequence if order.key_of(writes[number]) == key]
        assert own == sorted(own)
    for run in runs:
        assert len({order.key_of(writes[number]) for number in run}) == len(run)
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
GONE, TAKEN, LATE = errors.NotFound(), errors.AlreadyExists("taken"), errors.Conflict("late")
NO, WRONG = errors.Forbidden("no"), errors.Invalid("test")


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


def there(uid="u", node="", owner=OWNER, labels=None, **fields):
    metadata = {"name": "p", "namespace": "d", "uid": uid, "ownerReferences": [owner] if owner else []}
    metadata["labels"] = {"job": "j", "more": "1"} if labels is None else labels
    return {"metadata": metadata, "spec": {"nodeName": node} if node else {}, **fields}


WRITES = {
    "create": CREATE, "event": EVENT, "mark": MARK, "bind": BIND, "delete": DELETE, "claim": CLAIM, "status": STATUS,
}  # fmt: skip
ERRORS = {"gone": GONE, "taken": TAKEN, "late": LATE, "forbidden": NO, "wrong": WRONG}


def refused(write, error, **how):
    return type(verdicts.of_error(WRITES[write], ERRORS[error], **{"is_repeat": False, **how})).__name__


def verdict_of(write, error, found, is_repeat):
    found = None if found is None else there(**found)
    return type(verdicts.of_current(WRITES[write], ERRORS[error], found, is_repeat=is_repeat)).__name__


FUNCTIONS = {
    "what a refusal means": lambda write, error, how: refused(write, error, **how),
    "what is there decides": verdict_of,
}


@blocks("verdicts", folder="cluster")
def test_what_becomes_of_a_write(block, golden):
    golden(block, of_values(FUNCTIONS[block.title]))


def test_what_stands_in_the_way_is_told_and_a_server_that_cannot_be_looked_at_is_asked_again():
    assert verdicts.of_current(CREATE, TAKEN, there("v"), is_repeat=False) == Refused(TAKEN, there("v"))
    assert isinstance(verdicts.of_unreadable(LATE, errors.ServiceUnavailable("away")), Again)
    assert verdicts.of_unreadable(LATE, NO) == Refused(LATE), "a refusal to show it is no absence"


ENDS = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


@cases("waits_for, grace, has_object", {
    "its end": (ENDS, None, True),
    "its end no longer": (ENDS, 0, False),
    "a finalizer": ({"finalizers": ["a/b"]}, 0, True),
    "nothing": ({}, None, False),
})  # fmt: skip
def test_success_tells_an_object_unless_it_is_gone_or_a_status(waits_for, grace, has_object):
    assert verdicts.of_answer(MARK, there()) == Done(there())
    deletion = Delete(PODS, "d", "p", uid="u", grace=grace)
    assert verdicts.of_answer(deletion, {"kind": "Status", "status": "Success"}) == Done(None)
    answer = there()
    answer["metadata"] |= waits_for
    assert verdicts.of_answer(deletion, answer) == Done(answer if has_object else None)


def bind(name):
    return Patch(PODS, "d", name, {"spec": {"nodeName": "n"}}, "binding", uid=f"u-{name}")


VERDICTS = {
    "done": Done(), "told": Done({"metadata": {}}), "refused": Refused(NO), "seen": Refused(GONE, current={"metadata": {}}),
    "failed": Again(errors.InternalError("x")), "busy": Again(errors.TooManyRequests("x"), may_be_done=False),
    "away": Again(errors.ServiceUnavailable("x"), is_away=True),
}  # fmt: skip


class Way:
    """A group on its way to an API server, a step a line: `minimum 2 0 1` is a gang's, of the writes that are named.

    `group make:a bind:b delete:c` begins with its writes and `again` after a crash, `send` sends what can be sent, or what
    is named; `heard 0 refused` is an answer (`HEARD`); `state` is how far it is; `back u-a` what is taken back if that has ended.
    """

    makes = {"make": lambda name: Create(PODS, pod(name)), "bind": bind, "delete": drop}

    def tell(self, line):
        verb, *words = line.split()
        found = getattr(self, verb)(*words)
        return [] if found is None else [as_yaml(found)]

    def group(self, *words):
        writes = [self.makes[kind](name) for kind, name in (word.split(":") for word in words if word != "again")]
        self.progress = Progress(Group(writes, minima=[]), is_repeat="again" in words)

    def minimum(self, number, *members):
        self.progress.group.minima.append(Minimum(int(number), list(map(int, members))))

    def send(self, *numbers):
        numbers = list(map(int, numbers)) or self.progress.to_send()
        for number in numbers:
            self.progress.note_sent(number)
        return numbers

    def heard(self, number, answer):
        again = self.progress.note_verdict(int(number), VERDICTS[answer])
        assert again in (None, VERDICTS[answer])
        return again and "it is sent again"

    def state(self):
        progress = self.progress
        objects = "".join(f", told of {number}" for number, _ in progress.objects())
        repeated = [number for number in range(len(progress.group.writes)) if progress.is_repeated(number)]
        return f"{'answered' if progress.is_answered else 'under way'}, {progress.error}, repeats {repeated}{objects}"

    def back(self, *ended):
        rollback = self.progress.roll_back(ended)
        assert self.progress.roll_back(ended) is rollback
        marks = [write for write in rollback.group.writes if isinstance(write, Patch)]
        deletions = [(write.name, write.uid) for write in rollback.group.writes if isinstance(write, Delete)]
        assert all(write.patch["metadata"]["annotations"] == {OUT_OF_SYNC: "true"} for write in marks)
        assert deletions == [(write.name, f"u-{write.name}") for write in marks]
        return [write.name for write in marks]


@blocks("progress", folder="cluster")
def test_how_far_a_group_is(block, golden):
    golden(block, Way().tell)


def test_only_bindings_that_were_made_are_bound():
    group = Group([bind("a"), bind("b"), CREATE])
    assert gangs.bound(group, {0: Done(), 1: Refused(errors.NotFound()), 2: Done()}) == [group.writes[0]]
