"""What is made for a job, whole (tests/golden/jobs) and key by key (reference: volcano-job §4)."""

from pathlib import Path

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from msgspec import json

from cluster.store import Create, Update, store
from jobs.consumers.state import JobEntry, JobsState
from jobs.controller import facts, late_defaults, plan, plugin_objects, pod_diff, pod_group
from jobs.controller.observed import ObservedJob, World
from jobs.lifecycle import dependencies
from jobs.lifecycle.dependencies import Dependency
from jobs.lifecycle.situation import Task
from jobs.plugins.contract import KeyPair
from kube.kinds.batch import JobEvent
from kube.priorities import PriorityClass, PriorityClasses
from kube.resources import CLAIMS, CREATOR_ANNOTATION, POD_GROUPS, PODS
from tests.costs.meter import counted
from tests.jobs.builders import NOW, UID, container, defaulted, group_fact, job, job_fact, pod_fact, task
from tests.jobs.control import pods, state
from tests.tables import cases

GOLDEN = Path(__file__).parents[1] / "golden" / "jobs"
WORLD = World(PriorityClasses(PriorityClass("master-pri", 1000), PriorityClass("low", 1)), {"default": {"data"}})
events = st.lists(st.sampled_from(["PodFailed", "PodEvicted", "TaskCompleted", "Unknown"]), max_size=2)
KEYS = KeyPair("the private key", "the public key\n")
VOLCANO = "volcano.sh/"
OF_DISRUPTION = f"{VOLCANO}jdb-max-unavailable"
OF_JOB = {"schedulerName": "mine", "priorityClassName": "a"}


def after(observed, writes):
    """What is known once the writes were carried out and the scheduler has let the pod group in."""
    for write in writes:
        obj = msgspec.json.encode(write.object) if isinstance(write, Create | Update) else b""
        if isinstance(write, Create) and write.resource == PODS:
            observed.pods[write.object["metadata"]["name"]] = facts.read_pod(obj)[1]
        if isinstance(write, Create) and write.resource == POD_GROUPS:
            observed.group = group_fact(write.object, "Inqueue")
        if isinstance(write, Create) and write.resource.id in plugin_objects.RESOURCES:
            id_ = write.resource.id, write.object["metadata"]["name"]
            observed.plugin_objects[id_] = plugin_objects.read(plugin_objects.ids(observed.job)[id_], obj)
        if isinstance(write, Update):
            whole = {**observed.job.whole(), "status": write.object["status"]}
            observed.job = facts.read_job(msgspec.json.encode(whole))
    return observed


def created(writes, resource):
    return [write.object for write in writes if isinstance(write, Create) and write.resource == resource]


def rounds(fact, **fields):
    """What is written for a job before and after the scheduler lets its group in."""
    observed = ObservedJob(fact)
    first = plan.reconcile(observed, WORLD, NOW, **fields).writes
    return first, plan.reconcile(after(observed, first), WORLD, NOW).writes


def made(written, resource=PODS):
    """What is made for a job after two runs and a retry, by name."""
    first, second = rounds(job_fact(written, phase="Pending", version=2, retryCount=1))
    return {each["metadata"]["name"]: each for each in created([*first, *second], resource)}


def group_of(written):
    (found,) = made(written, POD_GROUPS).values()
    return found


def golden_items(path):
    """The items of the reference that a golden file shows, by its own words."""
    lines = [line.removeprefix("# shows ") for line in path.read_text().splitlines() if line.startswith("# shows ")]
    return f" | {' + '.join(lines)}" if lines else ""


@cases(
    "path", {path.name.removesuffix(".in.yaml") + golden_items(path): path for path in sorted(GOLDEN.glob("*.in.yaml"))}
)
def test_golden(path, request):
    first, second = rounds(job_fact(yaml.safe_load(path.read_text())), keys=KEYS)
    found = [each for kind in (*plugin_objects.RESOURCES.values(), POD_GROUPS) for each in created(first, kind)]
    found += created(second, PODS)
    text = yaml.safe_dump_all(msgspec.json.decode(msgspec.json.encode(found)), sort_keys=True)
    expected = path.with_name(path.name.replace(".in.", ".out."))
    if request.config.getoption("--update-golden"):
        expected.write_text(text)
    assert text == expected.read_text()


def test_of_two_bounds_of_disruption_pods_get_the_one_that_there_is():
    pod = made(job(annotations={OF_DISRUPTION: "1"}))["demo-main-0"]
    assert pod["metadata"]["annotations"][OF_DISRUPTION] == "1"


@pytest.mark.shows("1.1/schedulerName", "4.1/schedulerName", "1.1/priorityClassName", "4.1/priorityClassName")
@cases("of_template, of_job, expected", {
    "left out": ({}, {}, ("volcano", None)),
    "the job's": ({}, OF_JOB, ("mine", "a")),
    "the template's": ({"schedulerName": "own", "priorityClassName": "b"}, OF_JOB, ("own", "b")),
})  # fmt: skip
def test_scheduler_and_priority_class_are_the_templates_or_the_jobs(of_template, of_job, expected):
    spec = made(job(task(pod=of_template), **of_job))["demo-main-0"]["spec"]
    assert (spec["schedulerName"], spec.get("priorityClassName")) == expected


@pytest.mark.shows("4.1/hostname, subdomain")
def test_ports_in_the_network_of_the_machine_are_those_of_the_machine_and_a_hostname_that_is_written_stays():
    ports = [{"containerPort": 80}, {"containerPort": 81, "hostPort": 81}]
    pod = {"hostNetwork": True, "containers": [container(ports=ports)], "hostname": "h", "subdomain": "s"}
    spec = made(job(task(pod=pod)))["demo-main-0"]["spec"]
    assert [each["hostPort"] for each in spec["containers"][0]["ports"]] == [80, 81]
    assert (spec["hostname"], spec["subdomain"]) == ("h", "s")


@pytest.mark.parametrize("noted", [{CREATOR_ANNOTATION: "alice"}, {}], ids=["alice", "the system"])
def test_what_is_made_for_a_job_says_whose_it_is_and_believes_no_template(noted):
    claimed = {"mountPath": "/data", "volumeClaim": {"accessModes": ["ReadWriteOnce"]}}
    written = job(volumes=[claimed], annotations=noted)
    written["spec"]["tasks"][0]["template"]["metadata"] = {"annotations": {CREATOR_ANNOTATION: "root", "own": "1"}}
    first, second = rounds(job_fact(written))
    for kind in (PODS, POD_GROUPS, CLAIMS):
        (found,) = created([*first, *second], kind)
        notes = found["metadata"].get("annotations") or {}
        assert notes.get(CREATOR_ANNOTATION) == noted.get(CREATOR_ANNOTATION), kind.id


def test_pods_that_ask_for_simulated_nodes_tolerate_their_taint():
    tolerations = [{"key": "gpu", "operator": "Exists"}]
    asking = {"nodeSelector": {"ui.volcano.sh/simulated": "true"}, "tolerations": tolerations}
    simulated, real = (each["spec"] for each in made(job(task("a", pod=asking), task("b"))).values())
    taint = {"key": "ui.volcano.sh/simulated", "operator": "Exists", "effect": "NoSchedule"}
    assert simulated["tolerations"] == [*tolerations, taint]
    assert "tolerations" not in real
    assert len(tolerations) == 1


# ---- the pod group
@pytest.mark.shows("4.4/networkTopology")
def test_the_tier_is_named_or_numbered():
    name, number = {"highestTierName": "rack"}, {"highestTierAllowed": 0}
    for written in (name, number, {"mode": "soft"}):
        assert group_of(job(networkTopology=written))["spec"]["networkTopology"] == {"mode": "hard", **written}


def asking(name, replicas, cpu, minimum, **pod):
    requests = {"cpu": cpu, f"example.com/{name}": "1"}
    return task(name, replicas, {**pod, "containers": [container(requests=requests)]}, minAvailable=minimum)


def both(masters, workers):
    return [asking("master", 2, "50m", masters), asking("worker", 2, "100m", workers)]


A, B = asking("a", 3, "1", 3), asking("b", 3, "10", 3)
A_BY_ONE, B_BY_ONE = asking("a", 3, "1", 1), asking("b", 3, "10", 1)
HIGH, NO_CLASS = {"priorityClassName": "master-pri"}, {"priorityClassName": "none"}
LOW = {"priorityClassName": "low"}
PARTITIONED = {"partitionPolicy": {"totalPartitions": 2, "partitionSize": 2, "minPartitions": 1}}


@cases("tasks, of_job, least, cpu", {
    "below: all of the first, then of the next | 4.5/below the tasks' minimums": ([A, B], {}, 4, 13_000),
    "otherwise: each minimum | 4.5/otherwise": ([A_BY_ONE, B_BY_ONE], {}, 2, 11_000),
    "otherwise: then the rest in order | 4.5/otherwise": ([A_BY_ONE, B_BY_ONE], {}, 5, 23_000),
    "the higher priority first | 4.5/order + 9.1/24": ([A, asking("b", 3, "10", 3, **HIGH)], {}, 4, 31_000),
    "an unknown class is none | 4.5/order": ([asking("a", 3, "1", 3, **NO_CLASS), B], {}, 4, 13_000),
    "a task without a class has the job's": ([asking("a", 1, "1", 0, **LOW), asking("b", 1, "10", 0)], HIGH, 1, 10_000),
    "all pods of a task without a minimum": ([asking("a", 3, "1", None), B_BY_ONE], {}, 4, 13_000),
    "its partitions' minimum": ([asking("a", 4, "1", None) | PARTITIONED, B_BY_ONE], {}, 3, 12_000),
    "2 of 1 and 2 | 4.5/examples": (both(1, 2), {}, 2, 100),
    "2 of 2 and 1 | 4.5/examples": (both(2, 1), {}, 2, 100),
    "3 of 2 and 2 | 4.5/examples": (both(2, 2), {}, 3, 200),
    "3 of 1 and 1 | 4.5/examples": (both(1, 1), {}, 3, 200),
    "3 of 1 and 2 | 4.5/examples": (both(1, 2), {}, 3, 250),
    "2 of 1 and 1 | 4.5/examples": (both(1, 1), {}, 2, 150),
})  # fmt: skip
def test_which_pods_make_the_minimum(tasks, of_job, least, cpu):
    found = pod_group.min_resources({"tasks": tasks, **of_job}, least, WORLD.priorities)
    assert (found["cpu"], 0 in found.values()) == (cpu, False), "nothing of tasks that have no pod among them"


@pytest.mark.shows("4.5/pod", "4.5/e2e")
def test_what_pods_are_charged_names_everything_that_a_quota_counts(golden):
    amounts = {"memory": "1000Mi", "ephemeral-storage": "2Gi", "hugepages-2Mi": "4Mi", "nvidia.com/gpu": "1"}
    main = container(requests={"cpu": "1", **amounts}, limits={"cpu": "2", **amounts})
    first = container("first", requests={"cpu": "4"})
    spec = {"containers": [main], "initContainers": [first], "overhead": {"cpu": "500m"}}
    golden("charged", group_of(job(task("a", pod=spec), task("b", pod=spec)))["spec"]["minResources"])


@pytest.mark.shows("2.2/1", "2.4/1", "6.1/while it is deleted")
def test_job_that_is_being_deleted_is_left_alone():
    obj = defaulted(job(uid=UID, deletionTimestamp="2026-01-01T00:00:00Z"))
    assert plan.reconcile(ObservedJob(facts.read_job(msgspec.json.encode(obj))), WORLD, NOW).writes == []


@pytest.mark.shows("1.5/state.lastTransitionTime", "10/Q-9")
def test_only_the_phase_moves_the_time_of_the_last_transition():
    observed = ObservedJob(job_fact(job(task(replicas=2))))
    for now in (NOW, NOW + 5000):
        after(observed, plan.reconcile(observed, WORLD, now).writes)
    assert observed.job.status["pending"] == 2
    assert observed.job.status["state"]["lastTransitionTime"] == "2026-01-01T00:00:00.000000Z"


def test_each_pod_costs_the_census_the_same_however_many_there_are():
    def census(pods):
        observed = ObservedJob(job_fact(job(task(replicas=pods))))
        while writes := plan.reconcile(observed, WORLD, NOW).writes:
            after(observed, writes)
        with counted() as cost:
            pod_diff.compare(observed.job, observed.pods.values())
        return cost.total()

    few, some, many = map(census, (100, 200, 1_100))
    assert many - some == 9 * (some - few) > 0


@pytest.mark.shows("4.2/ready")
@cases("of_pod, containers, is_ready", {
    "succeeded": ("Succeeded", [False], True), "all containers are ready": ("Running", [True, True], True),
    "one container is not": ("Running", [True, False], False), "no container yet": ("Running", [], False),
    "pending": ("Pending", [True], False), "failed": ("Failed", [True], False),
})  # fmt: skip
def test_a_pod_that_others_wait_for_is_ready(of_pod, containers, is_ready):
    statuses = [{"name": str(n), "ready": ready} for n, ready in enumerate(containers)]
    assert pod_fact(phase=of_pod, containerStatuses=statuses).is_ready_for_others is is_ready


@cases("wanted, ready, expected", {
    "waits for nothing": (None, {}, True),
    "all are ready | 4.2/all": (Dependency(("a", "b")), {"a": 1, "b": 1}, True),
    "one is missing | 4.2/all": (Dependency(("a", "b")), {"a": 1}, False),
    "any is enough | 4.2/any": (Dependency(("a", "b"), any=True), {"a": 1}, True),
    "unknown task": (Dependency(("x",)), {}, False),
})  # fmt: skip
def test_task_may_start(wanted, ready, expected):
    tasks = {"a": Task("a", 1, 1), "b": Task("b", 1, 1)}
    assert dependencies.may_start("c", {"c": wanted} if wanted else {}, tasks, ready) is expected


# ---- what the controller reads of jobs, those that came by a cluster's own API and no admission filled in, too
def sent(**spec):
    """A job as vcctl sends it: without a queue, and tasks without names."""
    tasks = [{"replicas": 2, "template": task()["template"]}]
    return {"metadata": {"name": "tiny", "namespace": "default"}, "spec": {"tasks": tasks, **spec}}


@cases("spec", {
    "nothing": {},
    "of vcctl": {"minAvailable": 1, "schedulerName": "volcano"},
    "without a task's name": {"queue": "default", "schedulerName": "volcano", "maxRetry": 3},
    "without a queue": {"tasks": [task()]},
    "with a plugin that needs another": {"tasks": [task()], "plugins": {"pytorch": []}},
})  # fmt: skip
def test_job_is_read_as_admission_would_have_stored_it(spec):
    assert json.decode(late_defaults.filled_in(json.encode(sent(**spec)))) == defaulted(sent(**spec))


@pytest.mark.django_db(transaction=True)
def test_unfilled_job_gets_its_pods_and_one_that_was_admitted_is_taken_as_it_is(controller):
    """Nobody judges it here, as in a cluster that has no webhooks."""
    lowered = defaulted(sent())
    lowered["spec"]["minAvailable"] = 0
    body = json.encode(lowered)
    assert late_defaults.filled_in(body) is body
    assert facts.read_job(body).min_available == 0
    controller.submit(sent())
    assert [group.object["spec"]["minMember"] for group in store.find(POD_GROUPS)] == [2]
    controller.admit()
    assert (pods(), state("tiny")["pending"]) == (["tiny-default0-0", "tiny-default0-1"], 2)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.none() | st.tuples(events, events)), max_size=12))
def test_an_event_is_heeded_as_long_as_a_job_answers_it(steps):
    found, answered = JobsState(0, 1), {}
    for name, policies in steps:
        if policies is None:
            found.forget(f"default/{name}")
            answered.pop(name, None)
        else:
            of_job, of_task = ([{"event": each, "action": "AbortJob"} for each in events] for events in policies)
            obj = job(task(policies=of_task), name=name, policies=of_job)
            found.add(JobEntry(ObservedJob(facts.read_job(json.encode(obj)))))
            answered[name] = {JobEvent(event) for each in policies for event in each}
        assert found.heeded == set().union(*answered.values())
