"""Which queues are accepted, changed and deleted: the rules of volcano-queue-podgroup-cli §1.7 to §1.10."""

import copy
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.resources import QUEUES
from queues.rules import admission
from tests import builders
from tests.campaign import examples
from tests.cluster.rules.known import ClusterStub
from tests.jobs.builders import nested
from tests.tables import cases

CLOSED = {"state": "Closed"}
JSON = nested(st.none() | st.booleans() | st.integers() | st.text(max_size=6), st.text(max_size=6), 5)
FIELDS = ("capability", "deserved", "guarantee", "parent", "state", "weight", "reclaimable", "dequeueStrategy")


def queue(name="team", status=None, **fields):
    return builders.of(QUEUES, name, status=status or {"state": "Open"}, **fields)


def stored_in(*queues):
    return ClusterStub(builders.queue("root"), builders.queue("default", parent="root"), *queues)


def refusals(new, *stored):
    """Return what is wrong by field. A stored queue of the same name is what it was."""
    new = copy.deepcopy(new)
    old = next((each for each in stored if each["metadata"]["name"] == new["metadata"]["name"]), None)
    admission.default(new, old, stored_in(*stored))
    return {cause.field: cause.message for cause in admission.validate(new, old, stored_in(*stored))}


def guarantee(**resources):
    return {"resource": resources}


def path(written, weights):
    return {"volcano.sh/hierarchy": written, "volcano.sh/hierarchy-weights": weights}


def chain(length):
    names = ["root", *(f"level-{n}" for n in range(1, length + 1))]
    return [queue(name, parent=parent) for parent, name in itertools.pairwise(names)]


OLD = queue(parent="root")
FAMILY = [OLD, queue("child", parent="team"), queue("grandchild", parent="child")]
BUSY = queue("busy", {"state": "Open", "allocated": {"pods": "3"}}, parent="root")
TEN, TOP = queue("up", parent="root", capability={"cpu": "10"}), queue("up", parent="root", deserved={"cpu": "5"})
ON_THE_WAY = queue("other", parent="root", annotations=path("root/node1/node2", "1/2/3"))
DONGLE = {"nvidia.com/gpu": "1.5"}
ABOVE = "exceeds its ancestor's capability"
SUM = "sum of children's deserved"
CPU = "spec.capability[cpu]", "spec.deserved[cpu]"


@cases("new, stored, field, text", {
    "weight too high | queues 1.2/weight + queues 1.9/weight": (queue(weight=0x10000), [], "spec.weight", ""),
    "weight too low | queues 1.2/weight + queues 1.9/weight": (queue(weight=-1), [], "spec.weight", "greater than or equal to 1"),
    "negative | queues 1.2/capability + queues 1.9/quantity sign": (queue(capability={"cpu": "-1"}), [], CPU[0], "greater than or equal to 0"),
    "negative above queues that have none": (queue(capability={"cpu": "-1"}), FAMILY, CPU[0], "must be greater than or equal to 0"),
    "fraction of a device | queues 1.9/integers": (queue(deserved=DONGLE), [], "spec.deserved[nvidia.com/gpu]", "must be an integer"),
    "guarantee without deserved | queues 1.9/guarantee, no deserved": (queue(guarantee=guarantee(cpu="1")), [], CPU[1], "must be >= guarantee"),
    "deserved below guarantee | queues 1.9/guarantee above deserved": (queue(guarantee=guarantee(cpu="2"), deserved={"cpu": "1"}), [], CPU[1], "must be >= guarantee"),
    "deserved above capability | queues 1.9/deserved above capability": (queue(deserved={"cpu": "2"}, capability={"cpu": "1"}), [], CPU[1], "must be <= capability"),
    "wish is Open or Closed | queues 1.9/state + queue state 2/only two": (queue(state="Closing"), [], "spec.state", ""),
    "hierarchy lengths | queues 1.4/hierarchy + queues 1.9/hierarchy length": (queue(annotations=path("root/a/b", "1/2/3/4")), [], "metadata.annotations", "must have the same length"),
    "negative weight in a path | queues 1.9/hierarchy weights": (queue(annotations=path("root/a", "1/-1")), [], "metadata.annotations", "must be larger than 0"),
    "text as weight in a path | queues 1.9/hierarchy weights": (queue(annotations=path("root/a", "1/a")), [], "metadata.annotations", "is invalid number"),
    "path of another queue goes through it | queues 1.9/hierarchy path": (queue(annotations=path("root/node1", "1/2")), [ON_THE_WAY], "metadata.annotations", "is not allowed to be in the sub path of"),
    "own parent | queues 1.9/self": (queue(parent="team"), [], "spec.parent", "cannot use itself as parent"),
    "parent is missing | queues 1.9/parent missing": (queue(parent="none"), [], "spec.parent", "failed to get parent queue"),
    "a circle of parents | queues 1.9/circle": (queue(parent="child"), FAMILY, "spec.parent", "is below queue team"),
    "too deep | queues 1.9/depth": (queue(parent="level-5"), chain(5), "spec.parent", "exceeds the maximum allowed depth of 5"),
    "too deep with what is below it | queues 1.9/depth": (queue(parent="level-3"), [*FAMILY, *chain(3)], "spec.parent", "maximum allowed depth"),
    "parent is busy | queues 1.9/parent busy": (queue(parent="busy"), [BUSY], "spec.parent", "because it has allocated Pods: 3"),
    "capability above the parent's | queues 1.9/ancestor's capability": (queue(parent="up", capability={"cpu": "20"}), [TEN], CPU[0], ABOVE),
    "capability above an ancestor's | queues 1.9/ancestor's capability": (queue(parent="mid", capability={"cpu": "20"}), [TEN, queue("mid", parent="up")], CPU[0], ABOVE),
    "capability below a descendant's | queues 1.9/descendants' capability": (queue(parent="root", capability={"cpu": "10"}), [OLD, queue("child", parent="team", capability={"cpu": "12"})], CPU[0],
        "smaller than its descendants' max capability"),
    "siblings deserve too much | queues 1.9/siblings": (queue(parent="up", deserved={"cpu": "3"}), [TOP, queue("sister", parent="up", deserved={"cpu": "3"})], CPU[1], SUM),
    "parent deserves nothing | queues 1.9/siblings": (queue(parent="up", deserved={"cpu": "1"}), [queue("up", parent="root")], CPU[1], SUM),
    "children deserve more | queues 1.9/children": (queue(parent="root", deserved={"cpu": "3"}), [OLD, queue("child", parent="team", deserved={"cpu": "4"})], CPU[1], SUM),
    "root's capability | queues 1.5/root + queues 1.9/root": (queue("root", capability={"cpu": "1"}), [queue("root")], "spec.capability", ""),
    "root's state | queues 1.5/root + queues 1.9/root": (queue("root", state="Closed"), [queue("root")], "spec.state", ""),
    "root's parent | queues 1.5/root + queues 1.9/root": (queue("root", parent="default"), [queue("root")], "spec.parent", ""),
})  # fmt: skip
def test_refused_at_its_field(new, stored, field, text):
    assert text in refusals(new, *stored)[field]


@pytest.mark.shows("queues 1.9/all at once")
def test_all_that_is_wrong_is_said_at_once():
    found = refusals(queue(weight=-1, parent="none", state="Closing", capability={"cpu": "-1"}))
    assert found.keys() == {"spec.weight", "spec.parent", "spec.state", "spec.capability[cpu]"}


@cases("new, stored", {
    "plain": (queue(), []),
    "created closed | queue state 2/created Closed": (queue(state="Closed"), []),
    "resource without a limit | queues 1.9/deserved above capability": (queue(capability={"cpu": "1"}, deserved={"cpu": "1", "memory": "1Gi"}), []),
    "deserved equals guarantee": (queue(deserved={"memory": "1Gi"}, guarantee=guarantee(memory="1Gi"), capability={"cpu": "1"}), []),
    "deepest | queues 1.9/depth": (queue(parent="level-4"), chain(4)),
    "deepest with what is below it | queues 1.9/depth": (queue(parent="level-2"), [*FAMILY, *chain(2)]),
    "as much as a descendant may have | queues 1.9/descendants' capability": (queue(parent="root", capability={"cpu": "12"}), [OLD, queue("child", parent="team", capability={"cpu": "12"})]),
    "what it deserved before counts no more | queues 1.9/siblings": (queue(parent="up", deserved={"cpu": "4"}), [TOP, queue(parent="up", deserved={"cpu": "3"})]),
    "whole segments | queues 1.9/hierarchy path": (queue(annotations=path("root/sci", "1/2")), [queue("o", parent="root", annotations=path("root/scidev", "1/2"))]),
    "root has no sums | queues 1.9/root's children": (queue(deserved={"cpu": "99"}), [queue("o", parent="root", deserved={"cpu": "99"})]),
    "while it is closing | queues 1.9/Closing": (queue(parent="root", state="Closed", weight=9), [queue(status={"state": "Closing"}, parent="root", state="Closed")]),
})  # fmt: skip
def test_accepted(new, stored):
    assert refusals(new, *stored) == {}


def defaulted(new, old=None):
    admission.default(new, old, stored_in())
    return new


@pytest.mark.shows(
    "queues 1.2/weight", "queues 1.2/reclaimable", "queues 1.2/parent", "queues 1.3/state of a new queue",
    "queues 1.7/reclaimable", "queues 1.7/weight", "queue state 2/default",
)  # fmt: skip
def test_new_queue_has_defaults_and_is_open_at_once():
    new = defaulted(queue(status={"state": "Closing"}))
    filled = {"reclaimable": True, "weight": 1, "state": "Open", "parent": "root", "dequeueStrategy": "traverse"}
    assert new["spec"] == filled
    assert new["status"] == {"state": "Open", "reason": "Opened", "message": "The queue accepts jobs."}


@pytest.mark.shows("queues 1.2/state", "queue state 2/created Closed", "queue state 5/create")
@cases("spec, status, wish", {
    "in the spec": ({"state": "Closed"}, {}, "Closed"), "no wish": ({}, {"state": "Unknown"}, "Open"),
    "in the status, as vcctl writes it": ({}, {"state": "Closed"}, "Closed"),
    "the spec counts": ({"state": "Open"}, {"state": "Closed"}, "Open"),
})  # fmt: skip
def test_new_queue_is_what_it_wishes_to_be(spec, status, wish):
    new = defaulted(queue(status={**status, "allocated": {"cpu": "9"}}, **spec))
    assert (new["spec"]["state"], new["status"].pop("state")) == (wish, wish)
    assert new["status"].keys() == {"reason", "message"}


@pytest.mark.shows("queues 1.7/rootless", "queues 1.4/hierarchy", "queues 1.7/hierarchy")
@pytest.mark.parametrize("written", ["sci/dev", "rootless/dev"])
def test_path_of_the_annotations_begins_at_root(written):
    new = defaulted(queue(annotations=path(written, "2/3")))
    assert new["metadata"]["annotations"] == path(f"root/{written}", "1/2/3")


@pytest.mark.shows("queues 1.2/dequeueStrategy")
@cases("old", {"new": None, "changed": queue(dequeueStrategy="fifo")})
def test_strategy_is_filled_in_where_it_is_left_out_and_stays_where_it_is_given(old):
    for written, stored in ((None, "traverse"), ("fifo", "fifo"), ("traverse", "traverse")):
        assert defaulted(queue(dequeueStrategy=written), old)["spec"]["dequeueStrategy"] == stored


@pytest.mark.shows("queue state 2/deleted when Closed")
@cases("stored, children, texts", {
    "closed and empty | queues 1.10/state": (queue(status=CLOSED), "", []),
    "default | queues 1.5/default + queues 1.10/default + queue state 2/default stays": (queue("default", CLOSED), "", ["`default` queue can not be deleted"]),
    "root | queues 1.5/root + queues 1.10/root": (queue("root"), "", ["`root` queue can not be deleted"]),
    "open | queues 1.10/state": (queue(), "", ["close it first"]),
    "closing | queues 1.10/state": (queue(status={"state": "Closing"}), "", ["wait until"]),
    "children | queues 1.10/children": (queue(status=CLOSED), "ba", ["has 2 child queues: a, b; delete or move them first"]),
    "open with children": (queue(), "a", ["close it first", "1 child queues"]),
})  # fmt: skip
def test_deletion_says_what_to_do(stored, children, texts):
    cluster = stored_in(stored, *(queue(name, parent="team") for name in children))
    found = [cause.message for cause in admission.deletion(stored, cluster)]
    assert len(found) == len(texts)
    assert all(text in message for text, message in zip(texts, found, strict=True))


@examples(200)
@given(st.dictionaries(st.sampled_from(FIELDS), JSON), JSON)
def test_hostile_input_is_refused_and_never_raises(spec, metadata):
    for new in ({"metadata": {"name": "q"}, "spec": spec}, {"metadata": metadata, "spec": {}}, {"spec": metadata}):
        for old in (None, queue("q", parent="root")):
            copied = defaulted(copy.deepcopy(new), old)
            assert all(cause.message for cause in admission.validate(copied, old, stored_in()))
