"""How far a group is, and what is taken back of a gang."""

from __future__ import annotations

import pytest

from cluster.remote import gangs
from cluster.remote.progress import MOST_FAILURES, Progress
from cluster.remote.verdicts import Again, Done, Refused
from cluster.writes import Create, Delete, Group, Minimum, Patch
from kube.errors import Forbidden, InternalError, NotFound, ServiceUnavailable, TooManyRequests
from kube.kinds.pod import OUT_OF_SYNC
from kube.resources import PODS


def made(name):
    return Create(PODS, {"metadata": {"name": name, "namespace": "d"}})


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
    assert progress.is_answered
    assert progress.error is None


def test_refusal_ends_the_group_once_what_is_under_way_is_answered():
    progress = Progress(Group([made("a"), made("b"), Delete(PODS, "d", "c")]))
    sent(progress)
    progress.heard(0, Refused(error := Forbidden("no")))
    assert not progress.is_answered
    progress.heard(1, Done({"metadata": {}}))
    assert progress.is_answered
    assert progress.error is error
    assert list(progress.objects()) == [(1, {"metadata": {}})]


@pytest.mark.parametrize(
    ("again", "is_repeat"),
    [
        (Again(InternalError("x")), True),
        (Again(TooManyRequests("x"), may_be_done=False), False),
        (Again(ServiceUnavailable("x"), is_away=True), True),
    ],
    ids=["failed", "busy", "away"],
)
def test_what_may_be_done_is_a_repeat(again, is_repeat):
    progress = Progress(Group([made("a")]))
    sent(progress)
    assert progress.heard(0, again) is again
    assert progress.to_send() == [0]
    assert progress.is_repeated(0) is is_repeat


def test_write_at_which_the_server_fails_is_given_up_and_one_that_it_is_away_for_is_not():
    for again, is_given_up in ((Again(InternalError("x")), True), (Again(InternalError("x"), is_away=True), False)):
        progress = Progress(Group([made("a")]))
        for _ in range(MOST_FAILURES):
            sent(progress)
            progress.heard(0, again)
        assert progress.is_answered is is_given_up


ALL = [0, 1, 2]


@pytest.mark.parametrize(
    ("minima", "ended", "back"),
    [
        ([(3, ALL)], (), ["a", "b"]),
        ([(2, ALL)], (), []),
        ([], (), []),
        ([(3, ALL)], ("u-a",), ["b"]),
        ([(2, ALL), (1, [2])], (), ["a", "b"]),
        ([(2, ALL), (1, [0, 2])], (), []),
        ([(1, [0]), (1, [1]), (1, [2])], ("u-b",), ["a"]),
    ],
    ids=[
        "below its minimum",
        "still whole",
        "already whole",
        "one has ended",
        "below the minimum of a task",
        "whole in each task",
        "each task lacks its own",
    ],
)
def test_bindings_are_taken_back_below_a_minimum(minima, ended, back):
    group = Group([bind("a"), bind("b"), bind("c")], minima=[Minimum(*each) for each in minima])
    progress = Progress(group)
    for number in sent(progress):
        progress.heard(number, Refused(NotFound()) if number == 2 else Done())
    undoing = progress.take_back(ended)
    marked = [write.name for write in undoing.group.writes if isinstance(write, Patch)]
    deleted = [(write.name, write.uid) for write in undoing.group.writes if isinstance(write, Delete)]
    assert marked == back
    assert deleted == [(name, f"u-{name}") for name in back]
    if back:
        assert undoing.group.writes[0].patch["metadata"]["annotations"] == {OUT_OF_SYNC: "true"}
    assert progress.take_back(ended) is undoing


@pytest.mark.parametrize(
    ("is_repeat", "heard", "back"),
    [
        (False, Again(InternalError("x")), ["a"]),
        (False, None, []),
        (True, None, ["a"]),
        (True, Refused(NotFound(), found={"metadata": {}}), []),
    ],
    ids=["not heard of", "never sent", "sent before a crash", "looked at"],
)
def test_bindings_that_may_have_been_made_are_taken_back_too(is_repeat, heard, back):
    group = Group([bind("a"), bind("b")], minima=[Minimum(2, [0, 1])])
    progress = Progress(group, is_repeat=is_repeat)
    progress.sent(1)
    if heard is not None:
        progress.sent(0)
        progress.heard(0, heard)
    progress.heard(1, Refused(NotFound(), found={"metadata": {}}))
    assert progress.is_answered
    undoing = progress.take_back(())
    assert [write.name for write in undoing.group.writes if isinstance(write, Delete)] == back


def test_only_bindings_that_were_made_are_bound():
    group = Group([bind("a"), bind("b"), made("c")])
    assert gangs.bound(group, {0: Done(), 1: Refused(NotFound()), 2: Done()}) == [group.writes[0]]
