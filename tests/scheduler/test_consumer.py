"""The scheduler on the real store: what it decides is committed with its cursor."""

from __future__ import annotations

import json

import pytest

from cluster import clock
from cluster.api import backend
from cluster.runtime.consumer import RETRY
from cluster.runtime.registry import get
from cluster.store import Create, Delete, Patch, decisions, store
from cluster.writes import Timer
from kube.errors import Forbidden
from kube.resources import CONFIGMAPS, EVENTS, NAMESPACES, NODES, POD_GROUPS, PODS, RESOURCE_QUOTAS
from node import usage
from node.paths import Layout
from proof.modes.mode import Runner, others
from scheduler.consumer import SchedulerConsumer
from tests.tables import cases

from .world import configuration, group, made, situation

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("runner_mode"), pytest.mark.each_backend]


@pytest.fixture(autouse=True)
def _namespace(runner_mode):
    create((NAMESPACES, {"metadata": {"name": "ns"}}))


class Hasty(SchedulerConsumer):
    """Something happens between the decision and its commit."""

    meanwhile = None

    def plan(self, state, changes, timers, now):
        plan = super().plan(state, changes, timers, now)
        if self.meanwhile is not None and plan.groups:
            happening, self.meanwhile = self.meanwhile, None
            with others():
                happening()
        return plan


def create(*objects):
    """Create objects, also those of situations in text."""
    for each in objects:
        found = situation(each) if isinstance(each, str) else [each]
        store.write(*(Create(resource, obj) for resource, obj in found))


def runner(kind=SchedulerConsumer):
    return Runner(get("scheduler"), 0, kind())


def drain(*runners):
    for some in runners:
        while some.step():
            pass


def bound():
    """The nodes of the pods that stay there, by their names."""
    found = {stored.name: stored.object for stored in store.find(PODS)}
    placed = {name: one["spec"].get("nodeName") for name, one in found.items() if not is_going(one)}
    return {name: place for name, place in placed.items() if place}


def is_going(one):
    return "deletionTimestamp" in one["metadata"]


def kept(mode):
    """What is kept of decisions where the scheduler runs, oldest first, as (kind, group, how many pods)."""
    with mode.ours():
        found = decisions.find(decisions.Filters(), limit=100)[::-1]
    return [(each.decision.kind, each.decision.name, each.decision.pods) for each in found]


def make_again(*names):
    """Let nodes end what is going, and a controller make pods again of which there are none.

    Where bindings are requests, the bound pods of half a gang are taken back.
    """
    for stored in store.find(PODS):
        if is_going(stored.object):
            store.write(Delete(PODS, "ns", stored.name, grace=0))
    left = {stored.name for stored in store.find(PODS)}
    create(*(made(name) for name in names if name not in left))


def status(name="g"):
    return store.get(POD_GROUPS, "ns", name).object["status"]


@pytest.mark.shows("scheduler 1.6/period")
def test_a_gang_is_bound_when_its_last_pod_appears(runner_mode):
    leader = runner()
    create("node n1; queue default", group(minimum=2), made("g-0"))
    drain(leader)
    assert bound() == {}
    create(made("g-1"))
    drain(leader)
    assert bound() == {"g-0": "n1", "g-1": "n1"}
    assert status()["phase"] == "Running"
    assert store.find(EVENTS) == []
    assert kept(runner_mode) == [("bind", "g", 2)]


@pytest.mark.shows("scheduler 1.9/cannot be bound", "coscheduling 3/all at once")
@cases("again", {"vanished": [], "was replaced": [made("g-1")]})
def test_a_gang_whose_pod_vanished_meanwhile_is_not_bound_until_there_is_another(again, runner_mode):
    def happening():
        store.write(Delete(PODS, "ns", "g-1"))
        create(*again)

    leader = runner(Hasty)
    create("node n1; queue default", group(minimum=2))
    drain(leader)
    create(made("g-0"), made("g-1"))
    leader.consumer.meanwhile = happening
    drain(leader)
    if not again:
        assert bound() == {}
        assert status()["phase"] != "Running"
        assert ("bind", "g", 2) not in kept(runner_mode)
    make_again("g-0", "g-1")
    drain(leader)
    assert len(bound()) == 2


def test_a_conflict_of_one_gang_leaves_the_others_alone():
    leader = runner(Hasty)
    create("node n1; queue default", group("a"), group("b"))
    drain(leader)
    create(made("a-0", "a"), made("b-0", "b"))
    leader.consumer.meanwhile = lambda: store.write(Delete(PODS, "ns", "a-0"))
    drain(leader)
    assert bound() == {"b-0": "n1"}


@pytest.mark.shows("scheduler 1.6/one by one")
def test_room_is_given_out_once_however_far_the_log_runs_ahead(monkeypatch):
    monkeypatch.setattr("cluster.runtime.consumer.BATCH", 3)
    leader = runner()
    create("node n1 4 pods:99; queue default")
    drain(leader)
    for i in reversed(range(9)):
        create(group(f"g{i}"), made(f"g{i}-0", f"g{i}"))
    drain(leader)
    assert len(bound()) == 4


def test_a_new_process_takes_over_what_the_last_one_left():
    create("node n1; queue default", group(minimum=2), made("g-0"))
    drain(runner())
    create(made("g-1"))
    drain(runner())
    assert len(bound()) == 2


@pytest.mark.shows("scheduler 4.2/--leader-elect")
def test_two_processes_that_both_lead_bind_nothing_twice():
    one, other = runner(), runner(Hasty)
    create("node n1 1; queue default", group("a"), group("b"))
    drain(one, other)
    create(made("a-0", "a"), made("b-0", "b"))
    other.consumer.meanwhile = lambda: drain(one)
    drain(other)
    assert len(bound()) == 1
    before = store.revision()
    drain(one, runner())
    assert store.revision() == before, "at rest nothing is written"


@pytest.mark.shows("groups 3.6/which")
def test_a_pod_without_a_group_gets_one_and_a_node():
    create("node n1; queue default; pod solo")
    drain(runner())
    solo = store.get(PODS, "ns", "solo")
    found = store.get(POD_GROUPS, "ns", f"podgroup-{solo.uid}")
    assert found.object["metadata"]["ownerReferences"][0]["uid"] == solo.uid
    assert bound() == {"solo": "n1"}


def test_waiting_is_looked_at_again_when_the_node_has_room():
    leader = runner()
    create("node n1 1; queue default", group(minimum=2), made("g-0"), made("g-1"))
    drain(leader)
    condition = status()["conditions"][0]
    assert (condition["type"], condition["status"]) == ("Unschedulable", "True")
    store.write(Patch(NODES, "", "n1", {"status": {"allocatable": {"cpu": "2"}}}, subresource="status"))
    drain(leader)
    assert len(bound()) == 2


@cases("is_new", {"the same process": False, "another process": True})
def test_a_quota_is_heard_when_it_has_room(is_new):
    leader = runner()
    quota = {"metadata": {"name": "q", "namespace": "ns"}, "spec": {"hard": {"cpu": "1"}}}
    create("node n1; queue default; group g 2 phase=", (RESOURCE_QUOTAS, quota))
    drain(leader)
    assert (status()["phase"], status()["conditions"][0]["reason"]) == ("Pending", "QuotaExceeded")
    store.write(Patch(RESOURCE_QUOTAS, "ns", "q", {"spec": {"hard": {"cpu": "2"}}}))
    drain(runner() if is_new else leader)
    assert status()["phase"] == "Inqueue"


@pytest.mark.shows("scheduler 1.6/period", "scheduler 4.2/--schedule-period")
def test_what_is_refused_of_a_group_that_waits_for_nothing_is_written_when_it_comes_back():
    create("node n1; queue default", group(phase="Running"), made("g-0", phase="Running", node="n1"))
    consumer, now = SchedulerConsumer(), clock.milliseconds() + 5000
    with store.reading() as head:
        state = consumer.load(0, head)
    refused = consumer.plan(state, [], [], now).groups
    consumer.committed(state, refused, [Forbidden("no")] * len(refused))
    assert [each.key for each in refused] == ["ns/g/about"]
    assert consumer.plan(state, [], [], now + 1000).groups == []
    again = consumer.plan(state, [], [Timer(RETRY, "ns/g/about", now)], now + 2000).groups
    assert [each.key for each in again] == ["ns/g/about"]


NO_ENQUEUE = "actions: allocate"
NO_ALLOCATE = "actions: enqueue"
KEPT = ("volcano-system", "volcano-scheduler-configmap")


@pytest.fixture
def _system():
    create((NAMESPACES, {"metadata": {"name": "volcano-system"}}))


def configure(text):
    store.write(Patch(CONFIGMAPS, *KEPT, {"data": {"volcano-scheduler.conf": text}}))


def warnings():
    found = (stored.object for stored in store.find(EVENTS, namespace="volcano-system"))
    return [one["message"] for one in found if one["reason"] == "ConfigurationRefused"]


@pytest.mark.shows("scheduler 2.2/no allocate", "scheduler 4.1/reloading", "scheduler 4.1/invalid")
@pytest.mark.usefixtures("_system")
def test_a_configuration_takes_effect_without_a_restart_and_behind_a_bad_one_the_last_holds_after_one():
    leader = runner()
    create(configuration(NO_ALLOCATE), "node n1; queue default", group(), made("g-0"))
    drain(leader)
    assert status()["conditions"][0]["reason"] == "NotAllocating"
    configure("actions: alocate")
    drain(leader)
    create(made("g-1"))
    drain(leader)
    said = "Line 1: There is no action alocate. Did you mean allocate? The configuration before it holds."
    assert (bound(), warnings()) == ({}, [said])
    another = runner()
    drain(another)
    assert bound() == {}
    configure(NO_ENQUEUE)
    drain(another)
    assert bound() == {"g-0": "n1", "g-1": "n1"}


@pytest.mark.usefixtures("_system")
def test_a_configuration_that_is_gone_is_that_of_the_product():
    create(configuration(NO_ALLOCATE), "node n1; queue default", group(), made("g-0"))
    drain(runner())
    assert bound() == {}
    store.write(Delete(CONFIGMAPS, *KEPT))
    drain(runner())
    assert bound() == {"g-0": "n1"}


@pytest.mark.shows("scheduler 3.11 usage/metrics")
@pytest.mark.usefixtures("_system")
@cases("cores", {"idle": 0.5, "busy": 3.9})
def test_a_busy_node_takes_no_pods_where_its_load_is_measured(tmp_path, settings, cores):
    """What the agent wrote down closes the node; on a cluster with nodes of its own nobody asks this machine."""
    settings.DATA = tmp_path
    figures = {"node": "n1", "at": clock.milliseconds(), "machine": [int(cores * 1e9), 0, 15_000], "containers": []}
    path = Layout(tmp_path).root / usage.NAME
    path.parent.mkdir()
    path.write_text(json.dumps(figures))
    text = "actions: enqueue, allocate\ntiers: [{plugins: [{name: usage}]}]"
    create(configuration(text), "node n1; queue default", group(), made("g-0"))
    drain(runner())
    is_measured = not backend.is_mirror
    assert bound() == ({} if cores > 3 and is_measured else {"g-0": "n1"})


@pytest.mark.usefixtures("_system")
def test_no_other_config_map_is_read():
    leader = runner()
    create("node n1; queue default", group(), made("g-0"))
    drain(leader)
    for namespace, name in (("ns", KEPT[1]), (KEPT[0], "other")):
        kind, one = configuration(NO_ALLOCATE)
        one["metadata"] = {"namespace": namespace, "name": name}
        create((kind, one))
    assert store.changes(leader.position, get("scheduler").resources) == []
    assert not get("scheduler").reads(CONFIGMAPS.id)
    create(configuration(NO_ALLOCATE))
    (change,) = store.changes(leader.position, get("scheduler").resources)
    assert (change.namespace, change.name) == KEPT
