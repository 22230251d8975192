"""What the check before submitting says of a job that would be accepted and could not start on the cluster as it is."""

from __future__ import annotations

import pytest

from cluster import access
from cluster.store import Create, Delete, store
from jobs.editor import editor, foreseen, yaml_write
from kube.resources import HYPER_NODES, LIMIT_RANGES, NODES, QUEUES
from tests.builders import of
from tests.jobs.builders import container, defaulted, job, task
from tests.scheduler import world as scheduling
from tests.tables import cases

NEVER = "This can never start: "
BIG_GANG = f"{NEVER}its minimum needs 1998 CPU, the whole cluster has 12 CPU."
BIG_POD = f"{NEVER}a pod needs 9 CPU, the largest node that it may use has 8 CPU (large)."
SELECTED = {"nodeSelector": {"gpu": "a100"}}


@pytest.fixture(autouse=True)
def nodes(alice):
    store.write(node("large", 8), node("small", 4, gpu="t4"), queue("narrow", {"cpu": "2"}))


def node(name, cpu, **labels):
    _, made = scheduling.node(name, cpu=str(cpu), labels=labels)
    return Create(NODES, of(NODES, name) | made)


def queue(*about, **fields):
    _, made = scheduling.queue(*about, **fields)
    return Create(QUEUES, {"apiVersion": QUEUES.api_version, "kind": QUEUES.kind, **made})


def asking(cpu, replicas=1, pod=None, **spec):
    requests = {"resources": {"requests": {"cpu": str(cpu)}}}
    return job(task(replicas=replicas, pod={"containers": [container(**requests)], **(pod or {})}), **spec)


def report(user, obj):
    return editor.check(access.for_user(user), yaml_write.dump(obj))


@cases("obj, field, said, remedy", {
    "2 x 999 CPU": (asking(999, 2), "spec.tasks", BIG_GANG, "lower minAvailable"),
    "larger than each node": (asking(9), "spec.tasks", BIG_POD, "Ask for less in each pod"),
    "as much as all nodes have, and they do not add up": (asking(3, 4, minAvailable=4), "spec.tasks",
        f"{NEVER}of the 4 pods that must start together only 3 fit, even on empty nodes.", "add nodes"),
    "no node with the labels": (asking(1, pod=SELECTED), "spec.tasks",
        "No node has the label gpu=a100 (2 nodes looked at).", "Correct nodeSelector"),
    "more than the queue may have": (asking(3, queue="narrow"), "spec.queue",
        f"{NEVER[:-2]} in queue narrow: it needs more than the queue's limit of 2 CPU.", "choose a larger queue"),
    "more pods than are rehearsed": (asking(1, 9000), "spec.tasks",
        f"{NEVER}its minimum needs 9000 CPU, the whole cluster has 12 CPU.", "Ask for less"),
})  # fmt: skip
def test_what_cannot_start_is_told_with_the_number_and_the_remedy(alice, obj, field, said, remedy):
    found = report(alice, obj)
    assert (found.accepted, found.verdict) == (True, editor.COULD_NOT_START)
    told = next(each for each in found.warnings if each.field == field)
    assert told.message.startswith(said)
    assert remedy in told.message
    assert told.line > 0


@cases("obj", {
    "the whole of a node": asking(8),
    "a minimum that fits": asking(3, 9, minAvailable=3),
    "a node has the labels": asking(1, pod={"nodeSelector": {"gpu": "t4"}}),
    "what the queue may have": asking(2, queue="narrow"),
    "another scheduler's": job(task(pod={"schedulerName": "another"}), schedulerName="another"),
})  # fmt: skip
def test_what_could_start_is_not_spoken_of(alice, obj):
    assert report(alice, obj).verdict != editor.COULD_NOT_START


def test_what_guarantees_of_others_leave_counts(alice):
    store.write(queue("kept", **scheduling.keeping(5)))
    assert report(alice, asking(8)).verdict == editor.COULD_NOT_START
    assert report(alice, asking(7)).verdict != editor.COULD_NOT_START
    told = [each.message for each in report(alice, asking(999, 2)).warnings]
    assert any(each.startswith(BIG_GANG) for each in told)


@pytest.mark.parametrize(("tier", "starts"), [(1, False), (2, True)])
def test_hyper_nodes_count(alice, tier, starts):
    for name in ("large", "small"):
        member = {"type": "Node", "selector": {"exactMatch": {"name": name}}}
        store.write(Create(HYPER_NODES, of(HYPER_NODES, f"of-{name}", tier=1, members=[member])))
    gang = asking(3, 3, networkTopology={"mode": "hard", "highestTierAllowed": tier})
    assert (report(alice, gang).verdict != editor.COULD_NOT_START) is starts


def test_a_limit_range_counts_as_it_will_for_the_pods(alice):
    limits = [{"type": "Container", "defaultRequest": {"cpu": "9"}, "default": {"cpu": "9"}}]
    store.write(Create(LIMIT_RANGES, of(LIMIT_RANGES, "a", limits=limits)))
    assert report(alice, job(task())).verdict == editor.COULD_NOT_START


def test_the_world_is_as_before_and_follows_what_changes(alice):
    large = defaulted(asking(9))
    assert foreseen.warnings(large) == foreseen.warnings(large) != []
    assert foreseen.warnings(defaulted(asking(8))) == []
    store.write(node("larger", 16))
    assert foreseen.warnings(large) == []
    store.write(*(Delete(NODES, "", name) for name in ("larger", "large", "small")))
    assert foreseen.warnings(large) == []  # that there is no node yet is no matter of the job


def test_the_status_of_a_job_that_is_copied_counts_for_nothing(alice):
    done = {"state": {"phase": "Completed"}, "version": 3, "retryCount": 2}
    assert report(alice, {**asking(9), "status": done}).verdict == editor.COULD_NOT_START
    assert foreseen.warnings({**defaulted(asking(9)), "status": {"state": 3}}) != []
