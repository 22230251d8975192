"""The checker itself must fail on histories that are wrong."""

from __future__ import annotations

import msgspec
import pytest

from cluster.store import Change
from tests.system import replay


def change(revision, resource, name, obj, verb="MODIFIED"):
    obj = {"metadata": {"name": name}, **obj}
    return Change(revision, resource, "d", name, name, verb, 0, msgspec.json.encode(obj))


def node(revision, cpu="1"):
    return change(revision, "nodes", "n", {"status": {"allocatable": {"cpu": cpu, "pods": "10"}}})


def pod(revision, name="p", node="n", phase="Pending", group="g"):
    container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
    metadata = {"name": name, "annotations": {replay.GROUP: group}}
    spec = {"containers": [container], "nodeName": node}
    return change(revision, "pods", name, {"metadata": metadata, "spec": spec, "status": {"phase": phase}})


def group(revision, minimum):
    return change(revision, "podgroups.scheduling.volcano.sh", "g", {"spec": {"minMember": minimum}})


@pytest.mark.parametrize(
    ("history", "message"),
    [
        pytest.param([node(1), pod(3)], "revision 2 is missing", id="gap"),
        pytest.param([node(1), pod(2, "a"), pod(3, "b")], "holds 2000 cpu of 1000", id="overcommitted node"),
        pytest.param(
            [node(1), group(2, 2), pod(3, phase="Running")], "1 of 2 placed", id="gang below its minimum"
        ),
        pytest.param(
            [node(1), pod(2, phase="Failed"), pod(3, phase="Running")], "went from Failed", id="ran again"
        ),
    ],
)
def test_wrong_history_is_found(history, message):
    with pytest.raises(AssertionError, match=message):
        replay.check(history)


def test_right_history_passes():
    history = [
        node(1),
        group(2, 1),
        pod(3, "a"),
        pod(4, "a", phase="Running"),
        pod(5, "a", phase="Succeeded"),
        pod(6, "b"),
    ]
    assert replay.check(history).revision == 6
