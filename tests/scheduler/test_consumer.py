"""The scheduler on the real store, alone and with the controller of jobs: what is committed of what it decides."""

import json

import pytest

from cluster import clock
from cluster.api import backend
from cluster.consumers.consumer import RETRY
from cluster.runtime.registry import get
from cluster.store import Create, Delete, Patch, decisions, store
from cluster.writes import Timer
from jobs.consumers.job_controller import JobConsumer
from jobs.rules import admission
from kube import resources
from kube.errors import Forbidden
from node import usage
from node.paths import Layout
from proof.modes.mode import Runner, others
from scheduler.consumer import SchedulerConsumer
from tests.builders import container, job, task
from tests.tables import cases

from .world import configuration, group, made, node, priority_class, queue, situation

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("runner_mode"), pytest.mark.each_backend]


@pytest.fixture(autouse=True)
def _namespace(runner_mode):
    create((resources.NAMESPACES, {"metadata": {"name": "ns"}}))


class Hasty(SchedulerConsumer):
    """Something happens between the decision and its commit."""

    meanwhile = None

    def plan(self, state, changes, timers, now):
        plan = super().plan(state, changes, timers, now)
        if self.meanwhile is not None and plan.groups:
            callback, self.meanwhile = self.meanwhile, None
            with others():
                callback()
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


def pods():
    return {each.name: each.object for each in store.find(resources.PODS)}


def going():
    return sorted(name for name, pod in pods().items() if "deletionTimestamp" in pod["metadata"])


def bound():
    """The nodes of the pods that stay there, by their names."""
    placed = {name: pod["spec"].get("nodeName") for name, pod in pods().items() if name not in going()}
    return {name: node_name for name, node_name in placed.items() if node_name}


def stored_decisions(mode):
    """What is kept of decisions where the scheduler runs, oldest first, as (kind, group, how many pods)."""
    with mode.ours():
        found = decisions.find(decisions.Filters(), limit=100)[::-1]
    return [(each.decision.kind, each.decision.name, each.decision.pods) for each in found]


def make_again(*names):
    """Let nodes end what is going, and a controller make pods again of which there are none.

    Where bindings are requests, the bound pods of half a gang are taken back.
    """
    for name in going():
        store.write(Delete(resources.PODS, "ns", name, grace=0))
    create(*(made(name) for name in names if name not in pods()))


def status(name="g"):
    return store.get(resources.POD_GROUPS, "ns", name).object["status"]


@pytest.mark.shows("scheduler 1.6/period")
@cases("is_new", {"the same process": False, "another process": True})
def test_a_gang_is_bound_when_its_last_pod_appears(runner_mode, is_new):
    leader = runner()
    create("node n1; queue default", group(minimum=2), made("g-0"))
    drain(leader)
    assert bound() == {}
    create(made("g-1"))
    drain(runner() if is_new else leader)
    assert bound() == {"g-0": "n1", "g-1": "n1"}
    assert status()["phase"] == "Running"
    assert store.find(resources.EVENTS) == []
    assert stored_decisions(runner_mode) == [("bind", "g", 2)]


@pytest.mark.shows("scheduler 1.9/cannot be bound", "coscheduling 3/all at once")
@cases("again", {"vanished": [], "was replaced": [made("g-1")]})
def test_a_gang_whose_pod_vanished_meanwhile_is_not_bound_until_there_is_another_and_others_are(again, runner_mode):
    def happening():
        store.write(Delete(resources.PODS, "ns", "g-1"))
        create(*again)

    leader = runner(Hasty)
    create("node n1; queue default", group(minimum=2), group("other"))
    drain(leader)
    create(made("g-0"), made("g-1"), made("other-0", "other"))
    leader.consumer.meanwhile = happening
    drain(leader)
    if not again:
        assert bound() == {"other-0": "n1"}
        assert status()["phase"] != "Running"
        assert ("bind", "g", 2) not in stored_decisions(runner_mode)
    make_again("g-0", "g-1")
    drain(leader)
    assert len(bound()) == 3


@pytest.mark.shows("scheduler 1.6/one by one")
def test_room_is_given_out_once_however_far_the_log_runs_ahead(monkeypatch):
    monkeypatch.setattr("cluster.consumers.consumer.BATCH", 3)
    leader = runner()
    create("node n1 4 pods:99; queue default")
    drain(leader)
    for i in reversed(range(9)):
        create(group(f"g{i}"), made(f"g{i}-0", f"g{i}"))
    drain(leader)
    assert len(bound()) == 4


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


def test_waiting_is_looked_at_again_when_the_node_has_room():
    leader = runner()
    create("node n1 1; queue default", group(minimum=2), made("g-0"), made("g-1"))
    drain(leader)
    condition = status()["conditions"][0]
    assert (condition["type"], condition["status"]) == ("Unschedulable", "True")
    store.write(Patch(resources.NODES, "", "n1", {"status": {"allocatable": {"cpu": "2"}}}, subresource="status"))
    drain(leader)
    assert len(bound()) == 2


@cases("is_new", {"the same process": False, "another process": True})
def test_a_quota_is_heard_when_it_has_room(is_new):
    leader = runner()
    # What is no quantity counts as left out.
    quota = {"metadata": {"name": "q", "namespace": "ns"}, "spec": {"hard": {"memory": "much", "cpu": "1"}}}
    create("node n1; queue default; group g 2 phase=", (resources.RESOURCE_QUOTAS, quota))
    drain(leader)
    assert (status()["phase"], status()["conditions"][0]["reason"]) == ("Pending", "QuotaExceeded")
    store.write(Patch(resources.RESOURCE_QUOTAS, "ns", "q", {"spec": {"hard": {"cpu": "2"}}}))
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
CONFIG_MAP = ("volcano-system", "volcano-scheduler-configmap")


@pytest.fixture
def _system():
    create((resources.NAMESPACES, {"metadata": {"name": "volcano-system"}}))


def configure(text):
    store.write(Patch(resources.CONFIGMAPS, *CONFIG_MAP, {"data": {"volcano-scheduler.conf": text}}))


def warnings():
    """What is told of the configuration that is stored, by its uid."""
    about = {"reason": "ConfigurationRefused", "uid": store.get(resources.CONFIGMAPS, *CONFIG_MAP).uid}
    found = (stored.object for stored in store.find(resources.EVENTS, namespace="volcano-system"))
    return [one["message"] for one in found if about == {"reason": one["reason"], "uid": one["involvedObject"]["uid"]}]


@pytest.mark.shows("scheduler 2.2/no allocate", "scheduler 4.1/reloading", "scheduler 4.1/invalid")
@pytest.mark.usefixtures("_system")
def test_a_configuration_takes_effect_without_a_restart_and_behind_a_bad_one_the_last_holds():
    leader = runner()
    create(configuration(NO_ALLOCATE), "node n1; queue default", group(), made("g-0"))
    drain(leader)
    assert status()["conditions"][0]["reason"] == "NotAllocating"
    configure("actions: alocate")
    drain(leader)
    create(made("g-1"))
    drain(leader)
    warning = "Line 1: There is no action alocate. Did you mean allocate? The configuration before it holds."
    assert (bound(), warnings()) == ({}, [warning])
    another = runner()
    drain(another)
    assert bound() == {}
    configure(NO_ENQUEUE)
    drain(another)
    assert bound() == {"g-0": "n1", "g-1": "n1"}
    configure(NO_ALLOCATE)
    create(made("g-2"))
    drain(another)
    assert len(bound()) == 2
    store.write(Delete(resources.CONFIGMAPS, *CONFIG_MAP))
    drain(runner())
    assert len(bound()) == 3, "that of the product holds again"


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
    for namespace, name in (("ns", CONFIG_MAP[1]), (CONFIG_MAP[0], "other")):
        kind, one = configuration(NO_ALLOCATE)
        one["metadata"] = {"namespace": namespace, "name": name}
        create((kind, one))
    assert store.changes(leader.position, get("scheduler").resources) == []
    assert not get("scheduler").reads(resources.CONFIGMAPS.id)
    create(configuration(NO_ALLOCATE))
    (change,) = store.changes(leader.position, get("scheduler").resources)
    assert (change.namespace, change.name) == CONFIG_MAP


@pytest.fixture
def settle(runner_mode):
    """A function that lets job controller and scheduler work until there is nothing left to do."""
    create(queue(), node("n1", cpu="2"), priority_class("high", 100))
    runners = [Runner(get("jobs"), 0, JobConsumer()), Runner(get("scheduler"), 0, SchedulerConsumer())]

    def run():
        while any(list(map(Runner.step, runners))):
            pass

    return run


def submit(name, replicas, **spec):
    obj = job(name, task("t", replicas, container(requests={"cpu": "1"})), namespace="ns", **spec)
    admission.default(obj, None, None)
    create((resources.JOBS, obj))


def full(settle, **spec):
    """A job whose two pods run on all of the node."""
    submit("low", 2, **spec)
    settle()
    for name in bound():
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        store.write(Patch(resources.PODS, "ns", name, {"status": status}, "status"))


def status_of(kind, name):
    return next(each.object["status"] for each in store.find(kind) if each.name.startswith(name))


def urgent(settle):
    """A job that is more urgent."""
    submit("high", 1, priorityClassName="high")
    settle()


def end_all(settle):
    """Let nodes end what is going."""
    for name in going():
        store.write(Delete(resources.PODS, "ns", name, grace=0))
    settle()


def reasons(kind):
    return {e.object["reason"] for e in store.find(resources.EVENTS) if e.object["involvedObject"]["kind"] == kind}


@pytest.mark.shows("coscheduling 2/controllers", "scheduler 10.1/16")
def test_evicted_pod_is_made_again_and_who_is_more_urgent_runs(settle):
    full(settle, minAvailable=1, policies=[{"event": "PodEvicted", "action": "RestartPod"}])
    urgent(settle)
    drain(Runner(get("scheduler"), 0, SchedulerConsumer()))
    assert going() == ["low-t-1"], "a scheduler that comes next evicts nobody else"
    conditions = status_of(resources.POD_GROUPS, "high")["conditions"]
    assert {each["reason"] for each in conditions if each["status"] == "True"} == {"WaitingForVictims"}
    assert "Evict" in reasons("Pod")
    end_all(settle)
    assert sorted(bound()) == ["high-t-0", "low-t-0"]
    assert "PodEvicted" in reasons("Job")
    assert sorted(pods()) == ["high-t-0", "low-t-0", "low-t-1"]


def test_a_budget_that_comes_and_goes_is_heard(settle):
    """Also by a scheduler that loads the world anew."""
    full(settle, minAvailable=1)
    spec = {"minAvailable": 2, "selector": {"matchLabels": {"volcano.sh/job-name": "low"}}}
    create((resources.DISRUPTION_BUDGETS, {"metadata": {"name": "calm", "namespace": "ns"}, "spec": spec}))
    urgent(settle)
    assert "2 pods by disruption budget ns/calm" in str(status_of(resources.POD_GROUPS, "high")["conditions"])
    drain(Runner(get("scheduler"), 0, SchedulerConsumer()))
    assert going() == []
    store.write(Delete(resources.DISRUPTION_BUDGETS, "ns", "calm"))
    settle()
    assert going() == ["low-t-1"]


@pytest.mark.shows("scheduler 2.4/gangs", "coscheduling 2/controllers", "coscheduling 4/preemption")
def test_whole_gang_goes_and_its_job_begins_anew(settle):
    full(settle, policies=[{"event": "PodEvicted", "action": "RestartJob"}])
    urgent(settle)
    assert going() == ["low-t-0", "low-t-1"]
    end_all(settle)
    end_all(settle)
    assert sorted(bound()) == ["high-t-0"]
    low, groups = store.get(resources.JOBS, "ns", "low").object, store.find(resources.POD_GROUPS)
    assert low["status"]["state"]["phase"] in ("Restarting", "Pending")
    assert low["status"]["retryCount"] == 1
    annotation = "ui.volcano.sh/first-evicted"
    noted = {each.object["metadata"].get("annotations", {}).get(annotation) for each in groups}
    assert noted == {None, low["metadata"]["annotations"][annotation]}, "its next pod group was evicted as well"


def test_victim_that_ended_meanwhile_costs_nobody_else_his_place(settle):
    full(settle, minAvailable=1)
    submit("high", 1, priorityClassName="high")
    jobs, hasty = Runner(get("jobs"), 0, JobConsumer()), Runner(get("scheduler"), 0, Hasty())
    while not any(name.startswith("high") for name in pods()):
        jobs.step()
        hasty.step()
    hasty.consumer.meanwhile = lambda: store.write(Delete(resources.PODS, "ns", "low-t-1", grace=0))
    drain(hasty)
    settle()
    end_all(settle)
    assert sorted(bound()) == ["high-t-0", "low-t-0"]
    assert going() == []


EVEN = """
actions: enqueue, allocate, shuffle
tiers:
- plugins:
  - name: nodeorder
  - name: rescheduling
    arguments: {strategies: [{name: lowNodeUtilization, params: {targetThresholds: {cpu: 50}}}]}
"""


@pytest.mark.shows("scheduler 2.7/shuffle")
def test_moved_pod_is_made_again_on_the_emptier_node(settle):
    full(settle, minAvailable=1)
    create(node("n2", cpu="2"), configuration(EVEN))
    settle()
    assert going() == ["low-t-1"]
    end_all(settle)
    assert bound() == {"low-t-0": "n1", "low-t-1": "n2"}
    assert "PodEvicted" in reasons("Job")
    assert status_of(resources.JOBS, "low")["state"]["phase"] == "Running"
