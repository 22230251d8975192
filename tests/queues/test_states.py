"""The state of a queue, what is in it and below it, its fair share, and what it can in each state."""

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster import api
from cluster.store import Change, store
from dashboard.cluster_usage import Picture
from kube.errors import Forbidden, Invalid
from kube.resources import EVENTS, JOBS, NAMESPACES, POD_GROUPS, PODS, QUEUES
from kube.usage import QUEUE_ANNOTATION
from queues import share_table
from queues.controller import QueueConsumer, QueuesState, _with_ancestors, status_of
from queues.rules import states
from queues.rules.shares import FairShare, fair_shares
from queues.rules.states import closed_above, next_state
from scheduler.records.records import Queue
from tests import builders
from tests.campaign import examples
from tests.cluster.api.conftest import admin, person
from tests.queues.story import Controller, Story, status, wished
from tests.queues.story import group as make_group
from tests.scheduler import world
from tests.tables import cases

NONE, SOME = {"Completed": 5, "Running": 0}, {"Running": 2, "Pending": 1}
TREE = ("default", "a", "b", "c", "d")
PHASES = ("Pending", "Inqueue", "Running", "Unknown", "Completed")
GROUPS_OF_OWNERS = ("batch.volcano.sh/v1alpha1", "batch/v1", "apps/v1")
OWNERS = ([], *([{"apiVersion": each, "kind": "Job", "name": "j", "controller": True}] for each in GROUPS_OF_OWNERS))
some, parts = st.sampled_from, st.fixed_dictionaries
__all__ = ["admin", "person"]  # fixtures


@pytest.mark.shows(
    "queues 1.3/state", "queue state 2/spec.state", "queue state 2/status.state", "queue state 2/empty wish",
    "queue state 2/wish Open", "queue state 2/wish Closed, in use", "queue state 2/wish Closed, empty",
)  # fmt: skip
@cases("wish, above, groups, state, reason", {
    "open with work": ("Open", "", SOME, "Open", "Opened"),
    "no wish is Open": ("", "", NONE, "Open", "Opened"),
    "unknown wish is Open": ("Unheard", "", NONE, "Open", "Opened"),
    "closing with work": ("Closed", "", SOME, "Closing", "Closing"),
    "finished groups do not hold it": ("Closed", "", NONE, "Closed", "Closed"),
    "closing with its parent": ("Open", "team", SOME, "Closing", "ClosedByParent"),
    "closed with its parent": ("Open", "team", NONE, "Closed", "ClosedByParent"),
    "its own wish explains more": ("Closed", "team", SOME, "Closing", "Closing"),
})  # fmt: skip
def test_standing(wish, above, groups, state, reason):
    found = next_state(wish, above, groups)
    assert (found.state, found.reason) == (state, reason)
    assert found.message.endswith(".")
    assert ("3 unfinished pod groups are left (1 pending, 2 running)" in found.message) is (state == "Closing")
    assert ("parent queue team" in found.message) is (reason == "ClosedByParent")


def test_a_circle_of_parents_ends():
    assert closed_above("a", {"a": "b", "b": "a"}, {}) == ""


@cases("groups, loose, message", {
    "nothing": ({}, 0, ""),
    "numbers of nought": ({"Completed": 3, "Running": 0}, 0, ""),
    "a group": ({"Inqueue": 1}, 0, "1 unfinished pod group is left (1 inqueue)"),
    "a pod": ({"Completed": 3}, 1, "1 pod without a group is left"),
    "both": ({"Running": 2}, 3, "2 unfinished pod groups are left (2 running) and 3 pods without a group are left"),
})  # fmt: skip
def test_what_is_left_in_words(groups, loose, message):
    assert states.what_is_left(groups, loose) == message


@pytest.mark.shows("queues 2.3/Unknown")
@cases("stored, state, by_parent, wish", {
    "it keeps Open": ("Open", "Closed", False, "Open"), "it keeps Closed": ("Closed", "Open", False, "Closed"),
    "new": ("", "", False, "Open"), "left Open": ("", "Open", False, "Open"),
    "left Unknown": ("", "Unknown", False, "Open"),
    "left Closing": ("", "Closing", False, "Closed"), "left Closed": ("", "Closed", False, "Closed"),
    "closed by its parent": ("", "Closed", True, "Open"), "closing by its parent": ("", "Closing", True, "Open"),
})  # fmt: skip
def test_wish(stored, state, by_parent, wish):
    assert states.wish(stored, state, is_closed_by_parent=by_parent) == wish


def metadata(owners=OWNERS, **annotations):
    names = {"group": "scheduling.k8s.io/group-name", "own": "volcano.sh/queue-name", "default": QUEUE_ANNOTATION}
    chosen = parts({names[key]: some(values) for key, values in annotations.items()})
    return parts({"annotations": chosen, "ownerReferences": some(owners)})


def a_queue(name):
    parents = ["root", "", *(each for each in TREE if each > name and each != "default")]  # no circles
    spec = parts({"parent": some(parents), "state": some(["Open", "Closed"])})
    return st.tuples(st.just(QUEUES), st.just(""), st.just(name), parts({"spec": spec}))


def of_phase(*phases, spec, **of_metadata):
    return parts({"metadata": metadata(**of_metadata), "spec": parts(spec), "status": parts({"phase": some(phases)})})


GROUP = of_phase("", *PHASES, "Completed", spec={"queue": some([*TREE, ""])})
CONTAINERS = some([[{"resources": {"requests": {"cpu": cpu}}}] for cpu in "12"])
SCHEDULERS = some(["volcano", "volcano", "other"])
SPEC = {"nodeName": some(["", "node"]), "schedulerName": SCHEDULERS, "containers": CONTAINERS}
NAMES = {"group": ["", "g", "g", "h", "gone"], "own": ["", *TREE]}
POD = of_phase("Pending", "Running", "Succeeded", "Failed", spec=SPEC, **NAMES)
NAMESPACE = parts({"metadata": metadata([[]], default=["", *TREE])})
A_GROUP = st.tuples(st.just(POD_GROUPS), some("mn"), some("gh"), GROUP)
A_POD = st.tuples(st.just(PODS), some("mn"), some("pqr"), POD)
A_NAMESPACE = st.tuples(st.just(NAMESPACES), st.just(""), some("mn"), NAMESPACE)
ONE = st.one_of(some(TREE).flatmap(a_queue), A_GROUP, A_GROUP, A_POD, A_POD, A_NAMESPACE)
FIRST = [((QUEUES, "", name, {"spec": {"parent": "", "state": "Open"}}), True) for name in ("root", "default")]
STEPS = st.lists(st.tuples(ONE, some([True, True, True, False])), min_size=10, max_size=25)


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
        namespace = self.objects.get((NAMESPACES.id, "", space), {"metadata": {"annotations": {}}})
        named = namespace["metadata"]["annotations"].get(QUEUE_ANNOTATION)
        return own or named or "default"

    def alive(self, queues):
        for (space, _), pod in self.of(PODS).items():
            if pod["status"]["phase"] in ("Pending", "Running") and self.queue_of(space, pod) in queues:
                yield pod, self.group_of(space, pod)

    def phases(self, queues):
        counts = Counter()
        for group in self.of(POD_GROUPS).values():
            if (group["spec"]["queue"] or "default") in queues:
                members = [pod for pod, its in self.alive(queues) if its is group]
                phase = group["status"]["phase"] or "Pending"
                if phase == "Completed" and members:
                    phase = "Running" if any(is_placed(pod) for pod in members) else "Inqueue"
                counts[phase] += 1
        return counts

    def loose(self, queues):
        return sum(is_placed(pod) and group is None for pod, group in self.alive(queues))

    def cpu(self, queues):
        placed = (pod for pod, _ in self.alive(queues) if is_placed(pod))
        return sum(int(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"]) for pod in placed)

    def is_closed(self, name):
        wishes = [self.objects.get((QUEUES.id, "", each)) for each in self.above(name)[0]]
        return any(queue and queue["spec"]["state"] == "Closed" for queue in wishes)

    def others(self, queues):
        """Return how many pods of others are on nodes and wait."""
        found = Counter()
        for pod, group in self.alive(queues):
            if not is_jobs(group if group is not None else pod):
                found[is_placed(pod)] += 1
        return found[True], found[False]


def is_ours(pod):
    return pod["spec"]["schedulerName"] != "other"


def is_placed(pod):
    return bool(pod["spec"]["nodeName"])


def is_jobs(obj):
    return any(each["apiVersion"].startswith("batch.volcano") for each in obj["metadata"]["ownerReferences"])


@pytest.mark.shows(
    "queues 1.3/pending, running, unknown, inqueue, completed", "queues 1.4/closed-by-parent",
    "queues 2.5/new child of a closed queue", "queues 2.5/moved",
)  # fmt: skip
@given(steps=STEPS)
@examples(2000, deadline=None)
def test_what_is_said_of_a_queue_is_what_is_in_it_and_below_it(steps):
    """What status and page say, kept up to date change by change, is what a slow count over all raw objects gives."""
    raw, state, picture, statuses = Raw(), QueuesState(), Picture(), {}
    for revision, ((kind, namespace, name, obj), is_there) in enumerate([*FIRST, *steps], 1):
        if is_there:
            raw.objects[kind.id, namespace, name] = obj
        else:
            obj = raw.objects.pop((kind.id, namespace, name), obj)
        about = {"name": name, "namespace": namespace, "uid": name, **obj.get("metadata", {})}
        body = json.dumps({**obj, "metadata": about}).encode()
        verb = "MODIFIED" if is_there else "DELETED"
        change = Change(revision, kind.id, namespace, name, name, verb, 0, body)
        QueueConsumer().apply(state, change)
        picture.take(change)
        # The controller writes no other statuses than those that may have changed.
        changed = _with_ancestors(state, state.stale & {*state.queues})
        statuses |= {each: status_of(state, state.queues[each]) for each in changed}
        state.stale.clear()
        for _, each in raw.of(QUEUES):
            check(raw, statuses[each], picture, each)


def check(raw, queue_status, picture, name):
    queues = raw.below(name)
    phases, loose = raw.phases(queues), raw.loose(queues)
    work = sum(phases.values()) - phases["Completed"] + loose
    assert queue_status["state"] == (("Closing" if work else "Closed") if raw.is_closed(name) else "Open")
    assert {phase: queue_status.get(phase.lower(), 0) for phase in PHASES} == {each: phases[each] for each in PHASES}
    assert queue_status["allocated"]["cpu"] == str(raw.cpu(queues))
    assert +picture.groups_in(name) == +phases
    assert picture.loose_in(name) == loose
    assert bool(states.what_is_left(picture.groups_in(name), picture.loose_in(name))) is bool(work)
    holders = picture.holders(name)
    assert (sum(each.placed for each in holders), sum(each.waiting for each in holders)) == raw.others(queues)


# ---- fair shares as people see them: what each queue gets when every queue wants more
def shares(*queues, used=None, foreign=None):
    return fair_shares({queue.name: queue for queue in queues}, {"gpu": 4, "cpu": 12}, foreign or {}, used or {})


def queue(name, parent="root", capability=None, **fields):
    return Queue(name, "Open", capability or {}, parent, **fields)


@cases("queues, more, deserved", {
    "by weight": ([queue("a"), queue("b", weight=3)], {}, {"a": 3, "b": 9}),
    "no more than it may take": ([queue("a", capability={"cpu": 2}), queue("b")], {}, {"a": 2, "b": 10}),
    "as stated": ([queue("a", deserved={"cpu": 4}), queue("b")], {}, {"a": 4, "b": 8}),
    "it is shared out below a queue": ([queue("a"), queue("b"), queue("c", "b")], {}, {"a": 6, "b": 6, "c": 6}),
    "less what uses no queue": ([queue("a")], {"foreign": {"cpu": 5}}, {"a": 7}),
})  # fmt: skip
def test_what_queues_deserve(queues, more, deserved):
    found = shares(*queues, **more)
    assert {name: found[name].deserved["cpu"] for name in deserved} == deserved


NOTHING = queue("a", deserved={"cpu": 0, "gpu": 0})


@pytest.mark.shows("scheduler 3.6/share")
@cases("queues, used, part, resource, borrowed", {
    "nothing": ([queue("a"), queue("b")], {"a": {}}, 0.0, "cpu", 0),
    "of resources with equal parts the first by name decides": ([queue("a"), queue("b")], {"a": {"cpu": 3, "gpu": 1}}, 0.5, "cpu", 0),
    "the resource of which it uses most decides": ([queue("a"), queue("b")], {"a": {"cpu": 3, "gpu": 3}}, 1.5, "gpu", 1),
    "what pods below it use": ([queue("a"), queue("b", "a")], {"b": {"cpu": 6}}, 0.5, "cpu", 0),
    "who deserves nothing has no part": ([NOTHING], {"a": {"cpu": 2}}, None, "", 0),
})  # fmt: skip
def test_how_much_of_it_is_used(queues, used, part, resource, borrowed):
    found = shares(*queues, used=used)["a"]
    assert (found.part, found.resource, found.borrowed(resource)) == (part, resource, borrowed)


def test_a_queue_that_deserves_nothing_borrows_all_that_it_uses():
    assert shares(NOTHING, used={"a": {"cpu": 2}})["a"].borrowed("cpu") == 2


def test_only_what_was_reckoned_is_rounded():
    """So that what pods use reads as in every other place."""
    share = FairShare({"cpu": 44_444}, {"cpu": 10_250}, {"cpu": 60_125}, 1.3, "cpu")
    (row,) = share_table.rows(share, {"cpu": 12_345}, {"cpu": 98_765})
    assert row[2:] == ("10.25", "44.4", "60.125", "15.7", "12.345", "98.765")
    summary = share_table.summary(share, {"cpu": 12_345}, 1)
    assert summary == "It uses 60.125 CPU, 15.7 CPU more than it deserves; jobs that wait ask for 12.345 CPU."


def new(name="team", **spec):
    return builders.of(QUEUES, name, weight=1, **spec)


def bring(controller, admin, state):
    """Make the queue team and bring it into a state as people do."""
    api.create(admin, QUEUES, new())
    if state != "Open":
        if state == "Closing":
            make_group("work", "team", "Running")
        api.patch(admin, QUEUES, "", "team", {"spec": {"state": "Closed"}})
    controller.later()
    assert status("team")["state"] == state


def is_refused(error, step):
    try:
        step()
    except error:
        return True
    return False


@pytest.mark.shows(
    "queues 4/Open", "queues 4/Closed, Closing", "queue state 2/default", "queue state 2/only two",
    "queue state 3/Open", "queue state 3/not Open", "queue state 4/Closing", "queues 1.2/type",
)  # fmt: skip
@cases("state, is_default, can_be_set, receives, can_be_deleted, is_scheduled", {
    "Open | queue state 1/Open": ("Open", True, True, True, False, True),
    "Closed | queue state 1/Closed": ("Closed", False, True, False, True, True),
    "Closing | queue state 1/Closing": ("Closing", False, False, False, False, True),
})  # fmt: skip
def test_what_a_queue_can(controller, admin, state, is_default, can_be_set, receives, can_be_deleted, is_scheduled):
    fields = {"type": "research", "extendClusters": [{"name": "far", "weight": 2, "capacity": {"cpu": "4"}}]}
    made = api.create(admin, QUEUES, new("plain", **fields))
    assert fields.items() <= made.object["spec"].items(), "nothing reads them"
    assert (status("plain")["state"] == state) is is_default
    assert is_refused(Invalid, lambda: api.create(admin, QUEUES, new("made", state=state))) is not can_be_set

    bring(controller, admin, state)
    wished = {"spec": {"state": state}}
    assert is_refused(Invalid, lambda: api.patch(admin, QUEUES, "", "plain", wished)) is not can_be_set
    delivered = builders.job("new", queue="team", minAvailable=1)
    assert is_refused((Invalid, Forbidden), lambda: api.create(admin, JOBS, delivered)) is not receives
    assert is_refused(Forbidden, lambda: api.delete(admin, QUEUES, "", "team")) is not can_be_deleted

    placed = world.World(world.node("n"), world.queue("team", state=state), world.group(queue="team"), world.pod("p"))
    placed.cycle()
    assert (placed.where() == {"p": "n"}) is is_scheduled


@pytest.mark.shows("queue state 1/Open", "queue state 1/Closed", "queue state 1/Closing")
@pytest.mark.parametrize("state", ["Open", "Closed", "Closing"])
def test_a_queue_deserves_the_same_in_each_state(state):
    """The last column of the table: a queue that is closed gets its share before another that has had his."""
    placed = world.World(
        world.node("n", cpu="2"), world.queue("team", state=state), world.queue("other"),
        *(world.group(name, queue=queue) for name, queue in (("a", "team"), ("b", "other"), ("c", "other"))),
        world.pod("b", "b", node="n", phase="Running"), world.pod("c", "c"), world.pod("a", "a"),
    )  # fmt: skip
    placed.cycle()
    assert placed.where() == {"a": "n", "b": "n"}


def write_state(admin, wanted, name="team", **more):
    """Write a state as a client of Volcano does."""
    obj = store.get(QUEUES, "", name).object
    remaining = {key: value for key, value in obj["status"].items() if key not in ("reason", "message")}
    api.update(admin, QUEUES, {**obj, "status": {**remaining, "state": wanted, **more}}, subresource="status")


@pytest.mark.shows("queues 1.1/status")
@pytest.mark.parametrize("keeps_reason", [False, True], ids=["without reason", "with what was there"])
@cases("before, written, wish, after", {
    "close an open queue": ("Open", "Closed", "Closed", "Closed"),
    "open a closed queue": ("Closed", "Open", "Open", "Open"),
    "open a closing queue": ("Closing", "Open", "Open", "Open"),
    "close a closing queue": ("Closing", "Closed", "Closed", "Closing"),
    "open an open queue": ("Open", "Open", "Open", "Open"),
    "Closing is nothing to wish": ("Open", "Closing", "Open", "Open"),
    "nor is Unknown": ("Closed", "Unknown", "Closed", "Closed"),
})  # fmt: skip
def test_a_state_that_a_client_writes_is_a_wish(controller, admin, before, written, wish, after, keeps_reason):
    bring(controller, admin, before)
    previous = status("team")
    write_state(admin, written, **({key: previous[key] for key in ("reason", "message")} if keeps_reason else {}))
    controller.later()
    assert (wished("team"), status("team")["state"]) == (wish, after)
    assert status("team")["reason"]
    if (wish == "Open") != (before == "Open"):
        assert status("team")["message"] in [each.object["message"] for each in store.find(EVENTS)]


@pytest.mark.shows("queue state 2/closing ends nothing", "queues 2.4/root")
def test_closing_by_the_status_waits_for_work_and_a_controller_and_is_nothing_for_root(admin, controller, moved_clock):
    bring(controller, admin, "Open")
    make_group("work", "team", "Running")
    write_state(admin, "Closed")
    write_state(admin, "Closed", "root")
    story = Story(Controller(moved_clock)).goes("later → team.wish Closed; team Closing; root Open")
    story.goes("ungroup work, later → team Closed")


@pytest.mark.shows("queue state 2/deleted when Closed")
@pytest.mark.parametrize("waits", [False, True], ids=["at once", "a second later"])
@pytest.mark.parametrize("has_work", [False, True], ids=["empty", "with work"])
def test_closing_by_the_status_and_deleting(controller, admin, waits, has_work):
    bring(controller, admin, "Open")
    if has_work:
        make_group("work", "team")
    make_group("done", "team", "Completed")
    write_state(admin, "Closed")
    if waits:
        controller.later()
    if has_work:
        with pytest.raises(Forbidden, match="state is `Closing`; wait until what is left in it has ended"):
            api.delete(admin, QUEUES, "", "team")
    else:
        api.delete(admin, QUEUES, "", "team")
        assert "team" not in [each.name for each in store.find(QUEUES)]
