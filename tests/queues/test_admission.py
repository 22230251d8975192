"""Which queues are accepted, changed and deleted: the rules of volcano-queue-podgroup-cli §1.7 to §1.10."""

from __future__ import annotations

import copy
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queues import admission
from tests.campaign import examples
from tests.tables import cases

PATH, WEIGHTS = "volcano.sh/hierarchy", "volcano.sh/hierarchy-weights"


def queue(name="team", annotations=None, status=None, **spec):
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name, "annotations": annotations or {}},
        "spec": spec,
        "status": status or {"state": "Open"},
    }


class Cluster:
    """The queues that are stored."""

    def __init__(self, *queues):
        self.queues = {
            each["metadata"]["name"]: each for each in (queue("root"), queue("default", parent="root"), *queues)
        }

    def queue(self, name):
        return self.queues.get(name)

    def queue_children(self, name):
        return [each for each in self.queues.values() if each["spec"].get("parent") == name]

    def groups_in(self, queue):
        return {}

    def keeps_wishes(self):
        return True


def refusals(new, *others, old=None):
    new = copy.deepcopy(new)
    cluster = Cluster(*others, *([old] if old else []))
    admission.default(new, old, cluster)
    return {cause.field: cause.message for cause in admission.validate(new, old, cluster)}


def guarantee(**resources):
    return {"resource": resources}


def hierarchy(path, weights):
    return {PATH: path, WEIGHTS: weights}


def chain(length):
    names = ["root", *(f"level-{n}" for n in range(1, length + 1))]
    return [queue(name, parent=parent) for parent, name in itertools.pairwise(names)]


REFUSED = [
    pytest.param(queue(weight=0x10000), [], "spec.weight", "", id="weight too high", marks=pytest.mark.shows("queues 1.2/weight", "queues 1.9/weight")),
    pytest.param(queue(weight=-1), [], "spec.weight", "greater than or equal to 1", id="weight too low", marks=pytest.mark.shows("queues 1.2/weight", "queues 1.9/weight")),
    pytest.param(queue(capability={"cpu": "-1"}), [], "spec.capability[cpu]", "greater than or equal to 0", id="negative", marks=pytest.mark.shows("queues 1.2/capability", "queues 1.9/quantity sign")),
    pytest.param(queue(deserved={"nvidia.com/gpu": "1.5"}), [], "spec.deserved[nvidia.com/gpu]", "must be an integer", id="fraction of a device", marks=pytest.mark.shows("queues 1.9/integers")),
    pytest.param(queue(guarantee=guarantee(cpu="1")), [], "spec.deserved[cpu]", "must be >= guarantee", id="guarantee without deserved", marks=pytest.mark.shows("queues 1.9/guarantee, no deserved")),
    pytest.param(queue(guarantee=guarantee(cpu="2"), deserved={"cpu": "1"}), [], "spec.deserved[cpu]", "must be >= guarantee", id="deserved below guarantee", marks=pytest.mark.shows("queues 1.9/guarantee above deserved")),
    pytest.param(queue(deserved={"cpu": "2"}, capability={"cpu": "1"}), [], "spec.deserved[cpu]", "must be <= capability", id="deserved above capability", marks=pytest.mark.shows("queues 1.9/deserved above capability")),
    pytest.param(queue(state="Closing"), [], "spec.state", "", id="wish is Open or Closed", marks=pytest.mark.shows("queues 1.9/state", "queue state 2/only two")),
    pytest.param(queue(annotations=hierarchy("root/a/b", "1/2/3/4")), [], "metadata.annotations", "must have the same length", id="hierarchy lengths", marks=pytest.mark.shows("queues 1.4/hierarchy", "queues 1.9/hierarchy length")),
    pytest.param(queue(annotations=hierarchy("root/a", "1/-1")), [], "metadata.annotations", "must be larger than 0", id="negative weight in a path", marks=pytest.mark.shows("queues 1.9/hierarchy weights")),
    pytest.param(queue(annotations=hierarchy("root/a", "1/a")), [], "metadata.annotations", "is invalid number", id="text as weight in a path", marks=pytest.mark.shows("queues 1.9/hierarchy weights")),
    pytest.param(
        queue(annotations=hierarchy("root/node1", "1/2")),
        [queue("other", parent="root", annotations=hierarchy("root/node1/node2", "1/2/3"))],
        "metadata.annotations", "is not allowed to be in the sub path of", id="path of another queue goes through it", marks=pytest.mark.shows("queues 1.9/hierarchy path"),
    ),
    pytest.param(queue(parent="team"), [], "spec.parent", "cannot use itself as parent", id="own parent", marks=pytest.mark.shows("queues 1.9/self")),
    pytest.param(queue(parent="none"), [], "spec.parent", "failed to get parent queue", id="parent is missing", marks=pytest.mark.shows("queues 1.9/parent missing")),
    pytest.param(queue(parent="level-5"), chain(5), "spec.parent", "exceeds the maximum allowed depth of 5", id="too deep", marks=pytest.mark.shows("queues 1.9/depth")),
    pytest.param(
        queue(parent="busy"), [queue("busy", parent="root", status={"state": "Open", "allocated": {"pods": "3"}})],
        "spec.parent", "because it has allocated Pods: 3", id="parent is busy", marks=pytest.mark.shows("queues 1.9/parent busy"),
    ),
    pytest.param(
        queue(parent="up", capability={"cpu": "20"}), [queue("up", parent="root", capability={"cpu": "10"})],
        "spec.capability[cpu]", "exceeds its ancestor's capability", id="capability above the parent's", marks=pytest.mark.shows("queues 1.9/ancestor's capability"),
    ),
    pytest.param(
        queue(parent="mid", capability={"cpu": "20"}),
        [queue("up", parent="root", capability={"cpu": "10"}), queue("mid", parent="up")],
        "spec.capability[cpu]", "exceeds its ancestor's capability", id="capability above an ancestor's", marks=pytest.mark.shows("queues 1.9/ancestor's capability"),
    ),
    pytest.param(
        queue(parent="up", deserved={"cpu": "3"}),
        [queue("up", parent="root", deserved={"cpu": "5"}), queue("sister", parent="up", deserved={"cpu": "3"})],
        "spec.deserved[cpu]", "sum of children's deserved", id="siblings deserve too much", marks=pytest.mark.shows("queues 1.9/siblings"),
    ),
    pytest.param(
        queue(parent="up", deserved={"cpu": "1"}), [queue("up", parent="root")],
        "spec.deserved[cpu]", "sum of children's deserved", id="parent deserves nothing", marks=pytest.mark.shows("queues 1.9/siblings"),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("new", "others", "field", "text"), REFUSED)
def test_refused_at_its_field(new, others, field, text):
    found = refusals(new, *others)
    assert field in found
    assert text in found[field]


@cases("new, others", {
    "plain": (queue(), []),
    "created closed | queue state 2/created Closed": (queue(state="Closed"), []),
    "resource without a limit | queues 1.9/deserved above capability": (queue(capability={"cpu": "1"}, deserved={"cpu": "1", "memory": "1Gi"}),
        []),
    "deserved equals guarantee": (queue(deserved={"memory": "1Gi"}, guarantee=guarantee(memory="1Gi"), capability={"cpu": "1"}),
        []),
    "deepest | queues 1.9/depth": (queue(parent="level-4"), chain(4)),
    "whole segments | queues 1.9/hierarchy path": (queue(annotations=hierarchy("root/sci", "1/2")),
        [queue("o", parent="root", annotations=hierarchy("root/scidev", "1/2"))]),
    "root has no sums | queues 1.9/root's children": (queue(deserved={"cpu": "99"}),
        [queue("o", parent="root", deserved={"cpu": "99"})]),
})  # fmt: skip
def test_accepted(new, others):
    assert refusals(new, *others) == {}


@pytest.mark.shows(
    "queues 1.2/weight",
    "queues 1.2/reclaimable",
    "queues 1.2/parent",
    "queues 1.3/state of a new queue",
    "queues 1.7/reclaimable",
    "queues 1.7/weight",
    "queue state 2/default",
)
def test_new_queue_has_defaults_and_is_open_at_once():
    new = queue(status={"state": "Closing"})
    admission.default(new, None, Cluster())
    assert new["spec"] == {
        "reclaimable": True,
        "weight": 1,
        "state": "Open",
        "parent": "root",
        "dequeueStrategy": "traverse",
    }
    assert new["status"] == {"state": "Open", "reason": "Opened", "message": "The queue accepts jobs."}


@pytest.mark.shows("queues 1.2/state", "queue state 2/created Closed", "queue state 5/create")
@cases("spec, status, wish", {
    "in the spec": ({"state": "Closed"}, {}, "Closed"),
    "in the status, as vcctl writes it": ({}, {"state": "Closed"}, "Closed"),
    "the spec counts": ({"state": "Open"}, {"state": "Closed"}, "Open"),
    "no wish": ({}, {"state": "Unknown"}, "Open"),
})  # fmt: skip
def test_new_queue_is_what_it_wishes_to_be(spec, status, wish):
    new = queue(status={**status, "allocated": {"cpu": "9"}}, **spec)
    admission.default(new, None, Cluster())
    assert (new["spec"]["state"], new["status"].pop("state")) == (wish, wish)
    assert new["status"].keys() == {"reason", "message"}


@pytest.mark.shows("queues 1.7/rootless", "queues 1.4/hierarchy", "queues 1.7/hierarchy")
@pytest.mark.parametrize("path", ["sci/dev", "rootless/dev"])
def test_path_of_the_annotations_begins_at_root(path):
    new = queue(annotations=hierarchy(path, "2/3"))
    admission.default(new, None, Cluster())
    assert new["metadata"]["annotations"] == hierarchy(f"root/{path}", "1/2/3")


@pytest.mark.shows("queues 1.9/Closing")
def test_update_of_a_closing_queue_is_allowed():
    old = queue(parent="root", state="Closed", status={"state": "Closing"}, weight=1)
    assert refusals({**old, "spec": {**old["spec"], "weight": 9}}, old=old) == {}


@pytest.mark.shows("queues 1.9/circle")
def test_circle_of_parents_is_refused():
    old, child = queue(parent="root"), queue("child", parent="team")
    assert "is below queue team" in refusals(queue(parent="child"), child, old=old)["spec.parent"]


@pytest.mark.shows("queues 1.9/depth")
def test_moved_queue_brings_its_own_depth():
    old = queue(parent="root")
    below = [queue("child", parent="team"), queue("grandchild", parent="child")]
    moved = queue(parent="level-3")
    assert "maximum allowed depth" in refusals(moved, *below, *chain(3), old=old)["spec.parent"]
    assert refusals(queue(parent="level-2"), *below, *chain(2), old=old) == {}


@pytest.mark.shows("queues 1.9/descendants' capability")
def test_capability_below_that_of_a_descendant_is_refused():
    old = queue(parent="root", capability={"cpu": "20"})
    child = queue("child", parent="team", capability={"cpu": "12"})
    found = refusals(queue(parent="root", capability={"cpu": "10"}), child, old=old)
    assert "smaller than its descendants' max capability" in found["spec.capability[cpu]"]


def test_negative_capability_above_queues_without_one_is_refused():
    found = refusals(queue(capability={"cpu": "-1"}), queue("child", parent="team"), old=queue())
    assert "must be greater than or equal to 0" in found["spec.capability[cpu]"]


@pytest.mark.shows("queues 1.9/children")
def test_children_may_not_deserve_more_than_their_parent():
    old = queue(parent="root", deserved={"cpu": "4"})
    child = queue("child", parent="team", deserved={"cpu": "4"})
    assert (
        "sum of children's deserved"
        in refusals(queue(parent="root", deserved={"cpu": "3"}), child, old=old)["spec.deserved[cpu]"]
    )


@pytest.mark.shows("queues 1.5/root", "queues 1.9/root")
@pytest.mark.parametrize(
    ("change", "field"),
    [({"capability": {"cpu": "1"}}, "spec.capability"), ({"state": "Closed"}, "spec.state"), ({"parent": "default"}, "spec.parent")],
)  # fmt: skip
def test_root_is_protected(change, field):
    assert field in refusals(queue("root", **change), old=queue("root"))


DELETIONS = [
    pytest.param(queue(status={"state": "Closed"}), [], [], id="closed and empty", marks=pytest.mark.shows("queues 1.10/state")),
    pytest.param(queue("default", status={"state": "Closed"}), [], ["`default` queue can not be deleted"], id="default", marks=pytest.mark.shows("queues 1.5/default", "queues 1.10/default", "queue state 2/default stays")),
    pytest.param(queue("root"), [], ["`root` queue can not be deleted"], id="root", marks=pytest.mark.shows("queues 1.5/root", "queues 1.10/root")),
    pytest.param(queue(), [], ["close it first"], id="open", marks=pytest.mark.shows("queues 1.10/state")),
    pytest.param(queue(status={"state": "Closing"}), [], ["wait until"], id="closing", marks=pytest.mark.shows("queues 1.10/state")),
    pytest.param(
        queue(status={"state": "Closed"}), [queue("b", parent="team"), queue("a", parent="team")],
        ["has 2 child queues: a, b; delete or move them first"], id="children", marks=pytest.mark.shows("queues 1.10/children"),
    ),
    pytest.param(queue(), [queue("a", parent="team")], ["close it first", "1 child queues"], id="open with children"),
]  # fmt: skip


@pytest.mark.shows("queue state 2/deleted when Closed")
@pytest.mark.parametrize(("stored", "others", "texts"), DELETIONS)
def test_deletion_says_what_to_do(stored, others, texts):
    found = [cause.message for cause in admission.deletion(stored, Cluster(stored, *others))]
    assert len(found) == len(texts)
    assert all(text in message for text, message in zip(texts, found, strict=True))


@pytest.mark.shows("queues 1.2/dequeueStrategy")
@cases("old", {
    "new": None,
    "changed": queue(dequeueStrategy="fifo"),
})  # fmt: skip
def test_strategy_is_filled_in_where_it_is_left_out_and_stays_where_it_is_given(old):
    for written, stored in ((None, "traverse"), ("fifo", "fifo"), ("traverse", "traverse")):
        new = queue(**({"dequeueStrategy": written} if written else {}))
        admission.default(new, old, Cluster())
        assert new["spec"]["dequeueStrategy"] == stored


@pytest.mark.shows("queues 1.9/all at once")
def test_all_that_is_wrong_is_said_at_once():
    found = refusals(queue(weight=-1, parent="none", state="Closing", capability={"cpu": "-1"}))
    assert found.keys() == {"spec.weight", "spec.parent", "spec.state", "spec.capability[cpu]"}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=6), inner, max_size=2),
    max_leaves=5,
)
FIELDS = (
    "capability", "deserved", "guarantee", "parent", "state", "weight", "reclaimable", "dequeueStrategy",
)  # fmt: skip


@examples(200)
@given(st.dictionaries(st.sampled_from(FIELDS), JSON), JSON)
def test_hostile_input_is_refused_and_never_raises(spec, metadata):
    for new in ({"metadata": {"name": "q"}, "spec": spec}, {"metadata": metadata, "spec": {}}, {"spec": metadata}):
        for old in (None, queue("q", parent="root")):
            copied = copy.deepcopy(new)
            admission.default(copied, old, Cluster())
            assert all(cause.message for cause in admission.validate(copied, old, Cluster()))
