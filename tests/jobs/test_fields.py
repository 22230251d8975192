"""The bounds and defaults of a job's fields, whoever writes it (reference: volcano-job §1, §7.1)."""

from __future__ import annotations

import copy

import msgspec
import pytest

from jobs.controller import facts
from jobs.controller.facts import Dependency
from jobs.rules import admission
from tests.jobs.builders import CLUSTER, container, defaulted, job, refusals, task


def bound(obj, field, text, *items):
    """A row of what is refused, named for the field, and the items of the reference that it shows."""
    return pytest.param(obj, field, text, id=f"{field}: {text}", marks=pytest.mark.shows(*items))


def partitions(**fields):
    return job(task(replicas=1, partitionPolicy={"totalPartitions": 1, "partitionSize": 1, **fields}))


def without(field):
    made = partitions()
    del made["spec"]["tasks"][0]["partitionPolicy"][field]
    return made


def volume(**fields):
    return job(volumes=[fields])


TOPOLOGY = "spec.networkTopology"
PARTS = "spec.tasks[0].partitionPolicy"
LEAST = "greater than or equal to"
BOUNDS = [
    bound(job(schedulerName="s" * 64), "spec.schedulerName", "63", "1.1/schedulerName"),
    bound(job(minAvailable=-1), "spec.minAvailable", f"should be {LEAST} 0", "1.1/minAvailable bounds", "7.1/words"),
    bound(job(minAvailable=2), "spec.minAvailable", "not be greater than total replicas", "1.1/minAvailable bounds"),
    bound(job() | {"spec": {"tasks": []}}, "spec.tasks", "at least 1 items", "1.1/tasks"),
    bound(job(plugins={"nope": []}), "spec.plugins[nope]", "unable to find", "1.1/plugins", "5.1/unknown"),
    bound(job(runningEstimate="soon"), "spec.runningEstimate", "duration", "1.1/runningEstimate"),
    bound(job(queue="Not_A_Name"), "spec.queue", "should match", "1.1/queue"),
    bound(job(queue="q" * 254), "spec.queue", "253", "1.1/queue"),
    bound(job(maxRetry=-1), "spec.maxRetry", f"should be {LEAST} 0", "1.1/maxRetry", "7.1/words"),
    bound(job(ttlSecondsAfterFinished=-1), "spec.ttlSecondsAfterFinished", f"should be {LEAST} 0", "1.1/ttlSecondsAfterFinished", "7.1/words"),
    bound(job(priorityClassName="No Name"), "spec.priorityClassName", "should match", "1.1/priorityClassName"),
    bound(job(priorityClassName="p" * 254), "spec.priorityClassName", "253", "1.1/priorityClassName"),
    bound(job(minSuccess=0), "spec.minSuccess", f"{LEAST} 1", "1.1/minSuccess"),
    bound(job(networkTopology={"mode": "firm"}), f"{TOPOLOGY}.mode", "soft", "1.1/networkTopology"),
    bound(job(networkTopology={"highestTierAllowed": -1}), f"{TOPOLOGY}.highestTierAllowed", f"{LEAST} 0", "1.1/networkTopology"),
    bound(job(networkTopology={"highestTierName": "n" * 254}), f"{TOPOLOGY}.highestTierName", "253", "1.1/networkTopology"),
    bound(job(task(name="No Good")), "spec.tasks[0].name", "should match", "1.2/name", "7.1/words"),
    bound(job(task(name="t" * 64)), "spec.tasks[0].name", "63", "1.2/name"),
    bound(job(task(replicas=-1)), "spec.tasks[0].replicas", f"should be {LEAST} 0", "1.2/replicas", "7.1/words"),
    bound(job(task(minAvailable=-1)), "spec.tasks[0].minAvailable", f"should be {LEAST} 0", "1.2/minAvailable", "7.1/words"),
    bound(job(task(minAvailable=2)), "spec.tasks[0].minAvailable", "greater than 'replicas'", "1.2/minAvailable"),
    bound(job({"name": "a", "replicas": 1, "template": {"spec": {}}}), "spec.tasks[0].template.spec.containers", "Required", "1.2/template"),
    bound(job(task(topologyPolicy="tight")), "spec.tasks[0].topologyPolicy", "single-numa-node", "1.2/topologyPolicy"),
    bound(job(task(maxRetry=-1)), "spec.tasks[0].maxRetry", f"{LEAST} 0", "1.2/maxRetry"),
    bound(without("totalPartitions"), f"{PARTS}.totalPartitions", "Required", "1.2/partitionPolicy.totalPartitions"),
    bound(partitions(totalPartitions=0), f"{PARTS}.totalPartitions", f"{LEAST} 1", "1.2/partitionPolicy.totalPartitions"),
    bound(without("partitionSize"), f"{PARTS}.partitionSize", "Required", "1.2/partitionPolicy.partitionSize"),
    bound(partitions(partitionSize=0), f"{PARTS}.partitionSize", f"{LEAST} 1", "1.2/partitionPolicy.partitionSize"),
    bound(partitions(minPartitions=-1), f"{PARTS}.minPartitions", f"{LEAST} 0", "1.2/partitionPolicy.minPartitions"),
    bound(partitions(networkTopology={"mode": "firm"}), f"{PARTS}.networkTopology.mode", "soft", "1.2/partitionPolicy.networkTopology"),
    bound(job(policies=[{"event": "PodFailed", "action": "Dance"}]), "spec.policies[0].action", "RestartJob", "1.3/action"),
    bound(job(policies=[{"event": "Earthquake", "action": "AbortJob"}]), "spec.policies[0].event", "PodEvicted", "1.3/event"),
    bound(job(policies=[{"events": ["Earthquake"], "action": "AbortJob"}]), "spec.policies[0].events[0]", "PodEvicted", "1.3/events"),
    bound(job(policies=[{"exitCode": 0, "action": "AbortJob"}]), "spec.policies[0].exitCode", "0 is not a valid error code", "1.3/exitCode"),
    bound(job(policies=[{"exitCode": 1, "event": "PodFailed", "action": "AbortJob"}]), "spec.policies[0]", "simultaneously", "1.3/exitCode"),
    bound(job(policies=[{"event": "PodFailed", "action": "AbortJob", "timeout": "soon"}]), "spec.policies[0].timeout", "duration", "1.3/timeout"),
    bound(volume(volumeClaimName="c"), "spec.volumes[0].mountPath", "Required", "1.4/mountPath"),
    bound(volume(mountPath=""), "spec.volumes[0].mountPath", "should be at least 1 chars long", "1.4/mountPath", "7.1/words"),
    bound(volume(mountPath="/a:/b"), "spec.volumes[0].mountPath", "should match", "1.4/mountPath"),
    bound(volume(mountPath="/a", volumeClaimName="C_"), "spec.volumes[0].volumeClaimName", "RFC 1123", "1.4/volumeClaimName"),
    bound(volume(mountPath="/a", volumeClaimName="c" * 254), "spec.volumes[0].volumeClaimName", "253", "1.4/volumeClaimName"),
    bound(volume(mountPath="/a", volumeClaimName="c", volumeClaim={"storageClassName": "s"}), "spec.volumes[0]", "not both", "1.4/volumeClaim"),
]  # fmt: skip


@pytest.mark.parametrize(("obj", "field", "text"), BOUNDS)
def test_out_of_bounds_is_refused_at_its_field(obj, field, text):
    assert text in refusals(obj)[field]


def filled(obj, path, value, *items):
    """A row of what is filled in: where, what, and the items of the reference that it shows."""
    return pytest.param(obj, path, value, id=f"{path}: {value}", marks=pytest.mark.shows(*items))


HOST = {"hostNetwork": True}
PARTED = job(task(replicas=4, partitionPolicy={"totalPartitions": 2, "partitionSize": 2, "networkTopology": {}}))
FILLED = [
    filled(job(), "schedulerName", "volcano", "1.1/schedulerName", "7.2/2"),
    filled(job(task(replicas=3), task("b", 2, minAvailable=1)), "minAvailable", 4, "1.1/minAvailable", "7.2/8"),
    filled(job(task(replicas=3), minAvailable=0), "minAvailable", 3, "1.1/minAvailable", "7.2/8"),
    filled(job(), "queue", "default", "1.1/queue", "7.1/queue", "7.2/1"),
    filled(job(), "maxRetry", 3, "1.1/maxRetry", "7.1/maxRetry", "7.2/3"),
    filled(job(maxRetry=0), "maxRetry", 3, "1.1/maxRetry", "7.2/3"),
    filled(job(), "ttlSecondsAfterFinished", None, "1.1/ttlSecondsAfterFinished"),
    filled(job(), "minSuccess", None, "1.1/minSuccess"),
    filled(job(networkTopology={"highestTierAllowed": 1}), "networkTopology.mode", "hard", "1.1/networkTopology", "7.1/networkTopology.mode"),
    filled(job(networkTopology={"mode": "soft"}), "networkTopology.mode", "soft", "1.1/networkTopology"),
    filled(job(task(), task(name="")), "tasks.1.name", "default1", "1.2/name", "7.2/4"),
    filled(job(task(replicas=3)), "tasks.0.minAvailable", 3, "1.2/minAvailable", "7.2/6"),
    filled(job(task(replicas=4, partitionPolicy={"totalPartitions": 2, "partitionSize": 2, "minPartitions": 1})), "tasks.0.minAvailable", 2, "1.2/minAvailable", "7.2/6"),
    filled(PARTED, "tasks.0.minAvailable", 4, "1.2/minAvailable", "7.2/6"),
    filled(job(task(pod=HOST)), "tasks.0.template.spec.dnsPolicy", "ClusterFirstWithHostNet", "7.2/5"),
    filled(job(task(pod=HOST | {"dnsPolicy": "Default"})), "tasks.0.template.spec.dnsPolicy", "Default", "7.2/5"),
    filled(job(), "tasks.0.template.spec.dnsPolicy", None, "7.2/5"),
    filled(job(), "tasks.0.maxRetry", 3, "1.2/maxRetry", "7.2/7"),
    filled(job(task(maxRetry=0)), "tasks.0.maxRetry", 3, "1.2/maxRetry", "7.2/7"),
    filled(PARTED, "tasks.0.partitionPolicy.minPartitions", 0, "1.2/partitionPolicy.minPartitions", "7.1/partitionPolicy.minPartitions"),
    filled(PARTED, "tasks.0.partitionPolicy.networkTopology.mode", "hard", "1.2/partitionPolicy.networkTopology", "7.1/networkTopology.mode"),
]  # fmt: skip


def at(obj, path):
    """What stands at a path of the spec; None where nothing does."""
    found = obj["spec"]
    for key in path.split("."):
        found = found[int(key)] if isinstance(found, list) else found.get(key)
    return found


@pytest.mark.parametrize(("obj", "path", "value"), FILLED)
def test_what_is_left_open_is_filled_in(obj, path, value):
    made = defaulted(obj)
    assert at(made, path) == value
    assert admission.validate(made, None, CLUSTER) == []
    again = copy.deepcopy(obj)
    admission.default(again, made, CLUSTER)
    assert admission.validate(again, made, CLUSTER) == [], "the same file is applied again"


@pytest.mark.shows("1.2/replicas")
def test_a_task_without_replicas_has_no_pods():
    made = job({"name": "a", "template": task()["template"]})
    assert refusals(made) == {}
    assert defaulted(made)["spec"]["minAvailable"] == 0


@pytest.mark.shows("7.1/networkTopology.mode", "7.1/partitionPolicy.minPartitions")
@pytest.mark.parametrize(
    "written",
    [
        job(networkTopology={"highestTierAllowed": 1}),
        job(task(replicas=2, partitionPolicy={"totalPartitions": 1, "partitionSize": 2})),
    ],
    ids=["mode", "minPartitions"],
)
def test_a_job_that_was_stored_without_a_default_keeps_being_without_it(written):
    old = defaulted(written)
    old["spec"].get("networkTopology", {}).pop("mode", None)
    old["spec"]["tasks"][0].get("partitionPolicy", {}).pop("minPartitions", None)
    again = copy.deepcopy(old)
    admission.default(again, old, CLUSTER)
    assert again == old


@pytest.mark.shows("1.2/topologyPolicy", "7.3/9")
@pytest.mark.parametrize(
    ("kind", "resources", "is_refused"),
    [
        ("containers", {"requests": {"cpu": "2"}}, False),
        ("containers", {"limits": {"cpu": "2"}}, False),
        ("containers", {"limits": {"cpu": "2"}, "requests": {"memory": "1Gi"}}, True),
        ("containers", {"requests": {"cpu": "0"}}, True),
        ("containers", {"requests": {"cpu": "1500m"}}, True),
        ("containers", {}, True),
        ("initContainers", {}, True),
    ],
)
def test_a_topology_policy_needs_whole_cpus_of_every_container(kind, resources, is_refused):
    whole = container(resources={"requests": {"cpu": "1"}})
    pod = {"containers": [whole]} | {kind: [container("own", resources=resources)]}
    found = refusals(job(task(topologyPolicy="restricted", pod=pod)))
    expected = f"spec.tasks[0].template.spec.{kind}[0].resources.requests[cpu]"
    assert list(found) == ([expected] if is_refused else [])
    assert refusals(job(task(topologyPolicy="none", pod=pod))) == {}


@pytest.mark.shows("1.2/dependsOn.iteration", "4.2/any", "4.2/all")
@pytest.mark.parametrize(
    ("names", "iteration", "is_any"),
    [
        (["a", "c"], "any", True),
        (["a"], "any", False),
        (["a", "c"], "all", False),
        (["a", "c"], "", False),
        (["a", "c"], "some", False),
    ],
)
def test_any_of_two_tasks_is_enough_where_that_is_written(names, iteration, is_any):
    depends = {"name": names, "iteration": iteration}
    made = job(task("a"), task("b", dependsOn=depends), task("c"))
    assert refusals(made) == {}
    found = facts.read_job(msgspec.json.encode(defaulted(made))).dependencies
    assert found == {"b": Dependency(tuple(names), any=is_any)}
