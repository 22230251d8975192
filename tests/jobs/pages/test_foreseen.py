"""What the check before submitting says of a job that would be accepted and could not start on the cluster as it is."""

from __future__ import annotations

import pytest
import yaml

from cluster import access
from cluster.store import Create, Delete, store
from jobs.editor import editor, foreseen, yaml_write
from kube.resources import HYPER_NODES, LIMIT_RANGES, NODES, QUEUES
from tests.blocks import blocks
from tests.builders import of
from tests.jobs.builders import container, defaulted, job, task
from tests.scheduler import world as scheduling


@pytest.fixture(autouse=True)
def nodes(alice):
    store.write(node("large", 8), node("small", 4, gpu="t4"), queue("narrow", {"cpu": "2"}))


def node(name, cpu, **labels):
    return Create(NODES, of(NODES, name) | scheduling.node(name, cpu=str(cpu), labels=labels)[1])


def queue(name, *about, **fields):
    return Create(QUEUES, of(QUEUES, name) | scheduling.queue(name, *about, **fields)[1])


def asking(cpu, replicas=1, pod=None, **spec):
    requests = {"resources": {"requests": {"cpu": str(cpu)}}}
    return job(task(replicas=replicas, pod={"containers": [container(**requests)], **(pod or {})}), **spec)


def report(user, obj):
    return editor.check(access.for_user(user), yaml_write.dump(obj))


def starts(user, obj):
    return report(user, obj).verdict != editor.COULD_NOT_START


@blocks("foreseen", folder="pages")
def test_what_cannot_start_is_told_with_the_number_and_the_remedy(alice, block, golden):
    def said(line):
        found = report(alice, asking(**yaml.safe_load(line)))
        assert found.accepted
        return [found.verdict, *(f"line {each.line}, {each.field}: {each.message}" for each in found.warnings)]

    golden(block, said, by_line=True)


def test_what_guarantees_of_others_leave_counts(alice):
    store.write(queue("kept", **scheduling.keeping(5)))
    assert [starts(alice, asking(cpu)) for cpu in (8, 7)] == [False, True]


def test_hyper_nodes_count(alice):
    for name in ("large", "small"):
        member = {"type": "Node", "selector": {"exactMatch": {"name": name}}}
        store.write(Create(HYPER_NODES, of(HYPER_NODES, f"of-{name}", tier=1, members=[member])))
    for tier, can_start in ((1, False), (2, True)):
        gang = asking(3, 3, networkTopology={"mode": "hard", "highestTierAllowed": tier})
        assert starts(alice, gang) is can_start


def test_a_limit_range_counts_as_it_will_for_the_pods(alice):
    limits = [{"type": "Container", "defaultRequest": {"cpu": "9"}, "default": {"cpu": "9"}}]
    store.write(Create(LIMIT_RANGES, of(LIMIT_RANGES, "a", limits=limits)))
    assert not starts(alice, job(task()))


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
    assert not starts(alice, {**asking(9), "status": done})
    assert foreseen.warnings({**defaulted(asking(9)), "status": {"state": 3}}) != []
