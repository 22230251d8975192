"""Pods and pod groups as golden files, and the cost of large jobs."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import pytest
import yaml

from cluster.store import Create, Update
from jobs.controller import dependencies, facts, plan, pod_diff, pod_group, products
from jobs.controller.facts import Dependency
from jobs.controller.plan import Known, World
from jobs.lifecycle.situation import Task
from jobs.plugins.contract import KeyPair
from kube.priorities import PriorityClass, PriorityClasses
from kube.resources import CLAIMS, CREATOR_ANNOTATION, POD_GROUPS, PODS
from tests.jobs.builders import container, defaulted, job, task
from tests.tables import cases

GOLDEN = Path(__file__).parents[1] / "golden" / "jobs"
NOW = 1_767_225_600_000  # 2026-01-01T00:00:00Z
WORLD = World(PriorityClasses(PriorityClass("master-pri", 1000)), {"default": {"data"}})
KEYS = KeyPair("the private key", "the public key\n")
UID = "5a1f7f2e-0000-4000-8000-000000000001"


def stored(written):
    """A job as the store would hold it after admission."""
    obj = defaulted(written)
    obj["metadata"] |= {
        "uid": UID,
        "generation": 1,
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "namespace": "default",
    }
    return facts.read_job(msgspec.json.encode(obj))


def after(known, writes, phase="Inqueue"):
    """What is known once the writes were carried out and the pod group is in a phase."""
    for write in writes:
        obj = msgspec.json.encode(write.object) if isinstance(write, Create | Update) else b""
        if isinstance(write, Create) and write.resource == PODS:
            known.pods[write.object["metadata"]["name"]] = facts.read_pod(obj)[1]
        if isinstance(write, Create) and write.resource == POD_GROUPS:
            known.group = facts.read_group(msgspec.json.encode({**write.object, "status": {"phase": phase}}))
        if isinstance(write, Create) and write.resource.id in products.RESOURCES:
            id_ = write.resource.id, write.object["metadata"]["name"]
            known.products[id_] = products.read(products.ids(known.job)[id_], obj)
        if isinstance(write, Update):
            whole = {**known.job.whole(), "status": write.object["status"]}
            known.job = facts.read_job(msgspec.json.encode(whole))
    return known


def created(writes, resource):
    return [write.object for write in writes if isinstance(write, Create) and write.resource == resource]


@cases("noted", {
    "alice": {CREATOR_ANNOTATION: "alice"},
    "the system": {},
})  # fmt: skip
def test_what_is_made_for_a_job_says_whose_it_is_and_believes_no_template(noted):
    template = {"metadata": {"annotations": {CREATOR_ANNOTATION: "root", "own": "1"}}}
    volume = {"mountPath": "/data", "volumeClaim": {"accessModes": ["ReadWriteOnce"]}}
    written = job(task(), volumes=[volume])
    written["spec"]["tasks"][0]["template"] |= template
    written["metadata"]["annotations"] = dict(noted)
    known = Known(stored(written))
    made = list(plan.reconcile(known, WORLD, NOW).writes)
    made += plan.reconcile(after(known, made), WORLD, NOW).writes
    for kind in (PODS, POD_GROUPS, CLAIMS):
        (found,) = created(made, kind)
        notes = found["metadata"].get("annotations") or {}
        assert notes.get(CREATOR_ANNOTATION) == noted.get(CREATOR_ANNOTATION), kind.id


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.in.yaml")), ids=lambda path: path.name.removesuffix(".in.yaml"))
def test_golden(path, request):
    known = Known(stored(yaml.safe_load(path.read_text())))
    first = plan.reconcile(known, WORLD, NOW, keys=KEYS).writes
    second = plan.reconcile(after(known, first), WORLD, NOW).writes
    made = [each for kind in (*products.RESOURCES.values(), POD_GROUPS) for each in created(first, kind)]
    made += created(second, PODS)
    text = yaml.safe_dump_all(msgspec.json.decode(msgspec.json.encode(made)), sort_keys=True)
    expected = path.with_name(path.name.replace(".in.", ".out."))
    if request.config.getoption("--update-golden"):
        expected.write_text(text)
    assert text == expected.read_text()


def test_each_pod_costs_the_census_the_same_however_many_there_are():
    few, some, many = (_lines_of_census(pods) for pods in (100, 200, 1_100))
    assert many - some == 9 * (some - few)


def _lines_of_census(pods):
    """How many lines of Python the census of a job with so many pods runs through."""
    large = stored(job(task(replicas=pods)))
    known = Known(large)
    while writes := plan.reconcile(known, WORLD, NOW).writes:
        after(known, writes)
    assert len(known.pods) == pods
    lines = 0

    def count(_frame, event, _argument):
        nonlocal lines
        lines += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        pod_diff.compare(large, known.pods.values())
    finally:
        sys.settrace(before)
    return lines


def test_pods_of_a_task_share_what_they_have_in_common():
    known = Known(stored(job(task(replicas=3))))
    after(known, plan.reconcile(known, WORLD, NOW).writes)
    first, second, _ = created(plan.reconcile(known, WORLD, NOW).writes, PODS)
    assert first["spec"] is second["spec"]
    assert first["metadata"]["labels"] is not second["metadata"]["labels"]


def test_pods_that_ask_for_simulated_nodes_tolerate_their_taint():
    tolerations = [{"key": "gpu", "operator": "Exists"}]
    asking = task("a", pod={"nodeSelector": {"ui.volcano.sh/simulated": "true"}, "tolerations": tolerations})
    known = Known(stored(job(asking, task("b"))))
    after(known, plan.reconcile(known, WORLD, NOW).writes)
    made = created(plan.reconcile(known, WORLD, NOW).writes, PODS)
    simulated, real = (next(p["spec"] for p in made if f"-{name}-" in p["metadata"]["name"]) for name in "ab")
    assert simulated["tolerations"] == [
        *tolerations,
        {"key": "ui.volcano.sh/simulated", "operator": "Exists", "effect": "NoSchedule"},
    ]
    assert "tolerations" not in real
    assert len(tolerations) == 1


@pytest.mark.shows("2.2/1", "2.4/1", "6.1/while it is deleted")
def test_job_that_is_being_deleted_is_left_alone():
    obj = defaulted(job())
    obj["metadata"] |= {"uid": UID, "deletionTimestamp": "2026-01-01T00:00:00Z"}
    assert plan.reconcile(Known(facts.read_job(msgspec.json.encode(obj))), WORLD, NOW).writes == []


@pytest.mark.shows("1.5/state.lastTransitionTime", "10/Q-9")
def test_only_the_phase_moves_the_time_of_the_last_transition():
    known = Known(stored(job(task(replicas=2))))
    after(known, plan.reconcile(known, WORLD, NOW).writes)
    after(known, plan.reconcile(known, WORLD, NOW + 5000).writes)
    assert known.job.status["pending"] == 2
    assert known.job.status["state"]["lastTransitionTime"] == "2026-01-01T00:00:00.000000Z"


RESOURCES = [("master", 2, "50m"), ("worker", 2, "100m")]


@pytest.mark.shows("4.5/examples")
@pytest.mark.parametrize(
    ("least", "master", "worker", "cpu"),
    [(2, 1, 2, 100), (2, 2, 1, 100), (3, 2, 2, 200), (3, 1, 1, 200), (3, 1, 2, 250), (2, 1, 1, 150)],
)
def test_min_resources_as_in_the_reference(least, master, worker, cpu):
    """The worked examples of volcano-job §4.5."""
    tasks = [
        task(name, replicas, {"containers": [container(resources={"requests": {"cpu": each}})]}, minAvailable=minimum)
        for (name, replicas, each), minimum in zip(RESOURCES, (master, worker), strict=True)
    ]
    assert pod_group.min_resources({"tasks": tasks}, least, PriorityClasses())["cpu"] == cpu


@pytest.mark.shows("4.5/e2e")
def test_min_resources_name_everything_that_a_quota_counts():
    asked = {"cpu": "1", "memory": "1000Mi", "nvidia.com/gpu": "1"}
    pods = {"containers": [container(resources={"requests": asked, "limits": asked})]}
    group = pod_group.pod_group(
        stored(job(task("a", 1, pods), task("b", 1, pods))),
        defaulted(job(task("a", 1, pods), task("b", 1, pods))),
        PriorityClasses(),
    )
    assert group["spec"]["minResources"] == {
        "count/pods": "2", "pods": "2", "cpu": "2", "requests.cpu": "2", "limits.cpu": "2",
        "memory": "2000Mi", "requests.memory": "2000Mi", "limits.memory": "2000Mi",
        "nvidia.com/gpu": "2", "requests.nvidia.com/gpu": "2",
    }  # fmt: skip


@pytest.mark.shows("4.5/order", "9.1/24")
def test_tasks_of_higher_priority_come_first_into_the_minimum():
    low = task("executor", 5, {"containers": [container(resources={"requests": {"cpu": "1"}})]})
    high = task(
        "driver",
        1,
        {"priorityClassName": "master-pri", "containers": [container(resources={"requests": {"cpu": "4"}})]},
    )
    assert pod_group.min_resources({"tasks": [low, high]}, 3, WORLD.priorities)["cpu"] == 6000


@cases("waits_for, circle", {
    "line": ({"a": [], "b": ["a"]}, []),
    "itself": ({"a": ["a"]}, ["a", "a"]),
    "behind a tail": ({"a": ["b"], "b": ["c"], "c": ["b"]}, ["b", "c", "b"]),
    "diamond": ({"a": ["b", "c"], "b": ["d"], "c": ["d"], "d": []}, []),
    "unknown name": ({"a": ["missing"]}, []),
})  # fmt: skip
def test_circle_of_tasks(waits_for, circle):
    assert dependencies.cycle(waits_for) == circle


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
