"""A queue is empty when nothing is in it: random trees of queues with groups, pods, closes and opens.

What the status of a queue and its page say, kept up to date change by change, equals what a slow count over the raw
objects gives.
"""

from __future__ import annotations

import json
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from cluster.store import Change
from dashboard.cluster_usage import Picture
from kube.resources import NAMESPACES, POD_GROUPS, PODS, QUEUES
from queues import states
from queues.controller import QueueConsumer, QueuesState, status_of
from tests.campaign import examples
from tests.tables import cases

TREE = ("default", "a", "b", "c", "d")
SPACES = ("m", "n")
PHASES = ("Pending", "Inqueue", "Running", "Unknown", "Completed")
OWNERS = (
    None,
    {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j", "controller": True},
    {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "controller": True},
    {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web"},
)


def metadata(owner=None, annotations=None):
    said = {name: value for name, value in (annotations or {}).items() if value}
    return {"annotations": said, "ownerReferences": [owner] if owner else []}


@st.composite
def a_queue(draw):
    name = draw(st.sampled_from(TREE))
    parents = ["root", "", *(each for each in TREE if each > name and each != "default")]  # no circles
    wish = draw(st.sampled_from(["Open", "Closed"]))
    return QUEUES, "", name, {"spec": {"parent": draw(st.sampled_from(parents)), "state": wish}}


@st.composite
def a_group(draw):
    spec = {"queue": draw(st.sampled_from([*TREE, ""]))}
    status = {"phase": draw(st.sampled_from(["", *PHASES, "Completed"]))}
    obj = {"metadata": metadata(draw(st.sampled_from(OWNERS))), "spec": spec, "status": status}
    return POD_GROUPS, draw(st.sampled_from(SPACES)), draw(st.sampled_from("gh")), obj


@st.composite
def a_pod(draw):
    notes = {
        "scheduling.k8s.io/group-name": draw(st.sampled_from(["", "g", "g", "h", "gone"])),
        "volcano.sh/queue-name": draw(st.sampled_from(["", *TREE])),
    }
    spec = {
        "nodeName": draw(st.sampled_from(["", "node"])),
        "schedulerName": draw(st.sampled_from(["volcano", "volcano", "other"])),
        "containers": [{"resources": {"requests": {"cpu": draw(st.sampled_from(["1", "2"]))}}}],
    }
    status = {"phase": draw(st.sampled_from(["Pending", "Running", "Succeeded", "Failed"]))}
    obj = {"metadata": metadata(draw(st.sampled_from(OWNERS)), notes), "spec": spec, "status": status}
    return PODS, draw(st.sampled_from(SPACES)), draw(st.sampled_from("pqr")), obj


@st.composite
def a_namespace(draw):
    notes = {"scheduling.volcano.sh/queue-name": draw(st.sampled_from(["", *TREE]))}
    return NAMESPACES, "", draw(st.sampled_from(SPACES)), {"metadata": metadata(annotations=notes)}


ONE = st.one_of(a_queue(), a_group(), a_group(), a_pod(), a_pod(), a_namespace())
STEPS = st.lists(st.tuples(ONE, st.sampled_from([True, True, True, False])), min_size=1, max_size=25)


class Raw:
    """The objects as they are written, and what follows from them, found by looking at all of them."""

    def __init__(self):
        self.objects = {}

    def of(self, kind):
        return {key[1:]: obj for key, obj in self.objects.items() if key[0] == kind.id}

    def above(self, name):
        line = []
        while name and name != "root":
            line.append(name)
            found = self.objects.get((QUEUES.id, "", name))
            name = (found["spec"]["parent"] or "root") if found else ""
        return line, name == "root"

    def below(self, name):
        """Return the queues of which this one is above, with itself."""
        if name == "root":
            return {name, *(each for _, each in self.of(QUEUES) if self.above(each)[1])}
        return {name, *(each for _, each in self.of(QUEUES) if name in self.above(each)[0])}

    def group_of(self, space, pod):
        name = pod["metadata"]["annotations"].get("scheduling.k8s.io/group-name")
        return self.objects.get((POD_GROUPS.id, space, name)) if is_ours(pod) else None

    def queue_of(self, space, pod):
        if not is_ours(pod):
            return None
        group = self.group_of(space, pod)
        if group is not None:
            return group["spec"]["queue"] or "default"
        own = pod["metadata"]["annotations"].get("volcano.sh/queue-name")
        namespace = self.objects.get((NAMESPACES.id, "", space), {"metadata": metadata()})
        named = namespace["metadata"]["annotations"].get("scheduling.volcano.sh/queue-name")
        return own or named or "default"

    def alive(self, queues):
        """Yield the pods of some queues that have not ended, each with its namespace and group."""
        for (space, name), pod in self.of(PODS).items():
            if pod["status"]["phase"] in ("Pending", "Running") and self.queue_of(space, pod) in queues:
                yield space, name, pod, self.group_of(space, pod)

    def phases(self, queues):
        counts = Counter()
        for (space, _), group in self.of(POD_GROUPS).items():
            if (group["spec"]["queue"] or "default") in queues:
                members = [pod for at, _, pod, its in self.alive(queues) if its is group and at == space]
                phase = group["status"]["phase"] or "Pending"
                if phase == "Completed" and members:
                    phase = "Running" if any(is_placed(pod) for pod in members) else "Inqueue"
                counts[phase] += 1
        return counts

    def loose(self, queues):
        return sum(is_placed(pod) and group is None for _, _, pod, group in self.alive(queues))

    def cpu(self, queues):
        placed = (pod for _, _, pod, _ in self.alive(queues) if is_placed(pod))
        return sum(int(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"]) for pod in placed)

    def is_closed(self, name):
        wishes = [self.objects.get((QUEUES.id, "", each)) for each in self.above(name)[0]]
        return any(queue and queue["spec"]["state"] == "Closed" for queue in wishes)

    def others(self, queues):
        """Return how many pods of others are on nodes and wait."""
        found = Counter()
        for _, _, pod, group in self.alive(queues):
            if not is_jobs(group if group is not None else pod):
                found[is_placed(pod)] += 1
        return found[True], found[False]


def is_ours(pod):
    return pod["spec"]["schedulerName"] != "other"


def is_placed(pod):
    return bool(pod["spec"]["nodeName"])


def is_jobs(obj):
    return any(each["apiVersion"].startswith("batch.volcano") for each in obj["metadata"]["ownerReferences"])


class Followed:
    """What the queue controller and the pages know from the changes."""

    def __init__(self):
        self.state, self.picture, self.revision = QueuesState(), Picture(), 0

    def take(self, kind, namespace, name, obj, verb):
        self.revision += 1
        about = {"name": name, "namespace": namespace, "uid": name, **obj.get("metadata", {})}
        body = json.dumps({**obj, "metadata": about}).encode()
        change = Change(self.revision, kind.id, namespace, name, name, verb, 0, body)
        QueueConsumer().apply(self.state, change)
        self.picture.take(change)


@given(steps=STEPS)
@examples(2000, deadline=None)
def test_what_is_said_of_a_queue_is_what_is_in_it_and_below_it(steps):
    raw, followed = Raw(), Followed()
    for step in [((QUEUES, "", "root", {"spec": {}}), True), *steps]:
        (kind, namespace, name, obj), is_there = step
        if is_there:
            raw.objects[kind.id, namespace, name] = obj
        else:
            obj = raw.objects.pop((kind.id, namespace, name), obj)
        followed.take(kind, namespace, name, obj, "MODIFIED" if is_there else "DELETED")
        for _, each in raw.of(QUEUES):
            check(raw, followed, each)


def check(raw, followed, name):
    queues = raw.below(name)
    phases, loose = raw.phases(queues), raw.loose(queues)
    work = sum(phases.values()) - phases["Completed"] + loose
    said = status_of(followed.state, followed.state.queues[name])
    assert said["state"] == (("Closing" if work else "Closed") if raw.is_closed(name) else "Open")
    assert {phase: said.get(phase.lower(), 0) for phase in PHASES} == {each: phases[each] for each in PHASES}
    assert said["allocated"]["cpu"] == str(raw.cpu(queues))
    shown = followed.picture
    assert +shown.groups_in(name) == +phases
    assert shown.loose_in(name) == loose
    assert bool(states.what_is_left(shown.groups_in(name), shown.loose_in(name))) is bool(work)
    holders = shown.holders(name)
    assert (sum(each.placed for each in holders), sum(each.waiting for each in holders)) == raw.others(queues)


@cases("groups, loose, said", {
    "nothing": ({}, 0, ""),
    "numbers of nought": ({"Completed": 3, "Running": 0}, 0, ""),
    "a group": ({"Inqueue": 1}, 0, "1 unfinished pod group is left (1 inqueue)"),
    "a pod": ({"Completed": 3}, 1, "1 pod without a group is left"),
    "both": ({"Running": 2}, 3, "2 unfinished pod groups are left (2 running) and 3 pods without a group are left"),
})  # fmt: skip
def test_what_is_left_in_words(groups, loose, said):
    assert states.what_is_left(groups, loose) == said
