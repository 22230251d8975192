"""What is said of a job that is accepted and cannot work: each rule has rows that it speaks of, and rows that it leaves alone."""

from __future__ import annotations

import copy
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.controller import dependencies
from jobs.controller.facts import Dependency
from jobs.lifecycle.situation import Task
from jobs.rules import admission
from kube.resources import SECRETS
from tests.campaign import examples
from tests.jobs.builders import CLUSTER, Cluster, container, defaulted, job, refusals, task
from tests.scheduler import world

ALWAYS, ON_FAILURE, NEVER = ({"restartPolicy": name} for name in ("Always", "OnFailure", "Never"))
PARTITIONS = {"totalPartitions": 2, "partitionSize": 1}


def policies(*written, **spec):
    return job(*spec.pop("tasks", ()), policies=list(written), **spec)


def on(event, action="AbortJob", **more):
    return {"event": event, "action": action, **more}


def code(number, action="AbortJob"):
    return {"exitCode": number, "action": action}


def told(obj, cluster=CLUSTER, old=None):
    """What the rules of this module say: path → sentence."""
    assert refusals(obj, cluster, old) == {}
    made = copy.deepcopy(obj)
    admission.default(made, old, cluster)
    return dict(text.split(": ", 1) for text in admission.warn(made, old, cluster))


def noted(*names, near="", apart="", order=""):
    """A job of these tasks with annotations about their topology."""
    obj = job(*(task(name) for name in names))
    texts = {"affinity": near, "anti-affinity": apart, "task-order": order}
    obj["metadata"]["annotations"] = {f"volcano.sh/task-topology-{name}": text for name, text in texts.items() if text}
    return obj


NOTE = "metadata.annotations[volcano.sh/task-topology-"
ALWAYS_PATH = "spec.tasks[0].template.spec.restartPolicy"
COMPLETES_ON_5 = {"exitCode": 5, "action": "CompleteJob"}
FIRST, TASK = "spec.policies[0]", "spec.tasks[0].policies[0]"
REMEDY = r"[;.,] [^;]*\b(add|choose|Create|give|leave|lower|make|move|name|put|remove|set|use|write|exit codes are)\b"
ODD = [
    pytest.param(policies(on("JobUpdated")), f"{FIRST}.event", "never happens", id="JobUpdated", marks=pytest.mark.shows("3.1/JobUpdated")),
    pytest.param(
        policies({"events": ["PodFailed", "JobUpdated"], "action": "AbortJob"}),
        f"{FIRST}.events[1]", "remove it", id="JobUpdated among others",
    ),
    pytest.param(policies(on("PodPending")), f"{FIRST}.event", "timeout: 10m", id="PodPending without timeout"),
    pytest.param(policies(on("PodPending", timeout="0s")), f"{FIRST}.event", "only after a timeout", id="PodPending at once"),
    pytest.param(policies(on("PodFailed", timeout="-5m")), f"{FIRST}.timeout", "negative", id="negative timeout"),
    pytest.param(
        policies(on("PodFailed"), code(3)), "spec.policies[1].exitCode", "spec.policies[0] stands before it", id="exit code behind PodFailed",
    ),
    pytest.param(
        policies(on("*", "CompleteJob"), code(3)), "spec.policies[1].exitCode", "put this policy first", id="exit code behind *",
    ),
    pytest.param(
        job(task(policies=[on("PodFailed"), code(3)])), "spec.tasks[0].policies[1].exitCode", "never acts", id="the same of a task",
    ),
    pytest.param(
        policies(on("PodFailed"), tasks=[task("a", policies=[on("*", "CompleteJob")]), task("b", policies=[on("PodFailed")])]),
        f"{FIRST}.event", "policies of every task answer PodFailed first", id="overruled by every task",
    ),
    pytest.param(
        policies(code(3), tasks=[task("a", policies=[code(3)])]), f"{FIRST}.exitCode", "every task answer", id="exit code overruled",
    ),
    pytest.param(job(task(policies=[on("Unknown")])), f"{TASK}.event", "move the policy to spec.policies", id="Unknown of a task"),
    pytest.param(policies(on("Unknown", "RestartPod")), f"{FIRST}.action", "use RestartJob", id="Unknown names no pod"),
    pytest.param(policies(on("PodFailed", "ResumeJob")), f"{FIRST}.action", "changes nothing", id="ResumeJob"),
    pytest.param(
        policies(on("PodFailed", "RestartPartition")), f"{FIRST}.action", "main are in no partition", id="RestartPartition",
    ),
    pytest.param(
        policies(on("PodFailed", "RestartPartition"), tasks=[task("a"), task("b", 2, partitionPolicy=PARTITIONS), task("c")]),
        f"{FIRST}.action", "a and c are in no partition", id="RestartPartition of some tasks",
    ),
    pytest.param(policies(on("TaskFailed")), f"{FIRST}.event", "restartPolicy Never", id="TaskFailed and Never"),
    pytest.param(
        job(task(pod=ALWAYS, policies=[on("TaskCompleted", "CompleteJob")])), f"{TASK}.event", "no pod succeeds", id="TaskCompleted and Always",
    ),
    pytest.param(policies(code(300)), f"{FIRST}.exitCode", "no process ends with 300", id="exit code above 255"),
    pytest.param(policies(code(-1)), f"{FIRST}.exitCode", "no process ends with -1", id="exit code below 0"),
    pytest.param(
        policies(code(3), tasks=[task(pod=ON_FAILURE)]), f"{FIRST}.exitCode", "start again in their pods", id="exit code and OnFailure",
    ),
    pytest.param(
        policies(on("*", "RestartJob")), f"{FIRST}.event", "starts again also when the task has completed", id="* restarts what completed",
    ),
    pytest.param(
        policies(COMPLETES_ON_5, on("*", "TerminateJob"), tasks=[task("a"), task("b", pod=ALWAYS)]),
        "spec.policies[1].event", "terminated also when a task has completed", id="* terminates what completed",
    ),
    pytest.param(
        policies(on("PodFailed", "RestartJob"), maxRetry=1), f"{FIRST}.action", "maxRetry 1", id="no restart is left",
    ),
    pytest.param(job(task(replicas=3), minSuccess=4), "spec.minSuccess", "3 together", id="minSuccess above replicas"),
    pytest.param(job(task(replicas=0), minSuccess=1), "spec.minSuccess", "add replicas", id="minSuccess without replicas"),
    pytest.param(job(ttlSecondsAfterFinished=0), "spec.ttlSecondsAfterFinished", "as soon as it ends", id="ttl 0"),
    pytest.param(
        job(task("a", 0), task("b", dependsOn={"name": ["a"]})), "spec.tasks[1].dependsOn.name", "a has 0 replicas", id="nothing to wait for",
    ),
    pytest.param(
        job(task("a"), task("b", dependsOn={"name": ["a"], "iteration": "first"}), minAvailable=1),
        "spec.tasks[1].dependsOn.iteration", "any or all", id="unknown iteration",
    ),
    pytest.param(
        job(task("prep"), task("train", dependsOn={"name": ["prep"]})),
        "spec.tasks[1].dependsOn", "train waits for prep, and nothing starts without train", id="deadlock",
    ),
    pytest.param(
        job(task("a"), task("b", dependsOn={"name": ["a", "c"], "iteration": "any"}), task("c", 2), minAvailable=4),
        "spec.tasks[1].dependsOn", "waits for a or c", id="deadlock with any",
    ),
    pytest.param(
        job(task("a", 3), task("b", 1, minAvailable=0, dependsOn={"name": ["a"]}), minAvailable=4),
        "spec.tasks[1].dependsOn", "set spec.minAvailable to 3", id="deadlock by the number alone",
    ),
    pytest.param(job(task(pod=ALWAYS)), ALWAYS_PATH, "the job cannot complete", id="Always"),
    pytest.param(
        job(task("a", pod=ALWAYS), task("b"), minSuccess=2), ALWAYS_PATH, "choose OnFailure or Never", id="Always and minSuccess of all",
    ),
    pytest.param(
        job(volumes=[{"mountPath": "/data", "volumeClaimName": "lost"}]),
        "spec.volumes[0].volumeClaimName", "no claim lost in namespace default", id="missing claim",
    ),
    pytest.param(
        job(volumes=[{"mountPath": "/data", "volumeClaimName": ""}]),
        "spec.volumes[0].volumeClaimName", "names no claim", id="claim without a name",
    ),
    pytest.param(
        job(task(pod={"volumes": [{"name": "a", "emptyDir": {}}, {"name": "b", "persistentVolumeClaim": {"claimName": "lost"}}]})),
        "spec.tasks[0].template.spec.volumes[1].persistentVolumeClaim.claimName",
        "no claim lost in namespace default", id="missing claim of the pods",
    ),
    pytest.param(
        job(task(pod={"containers": [container(envFrom=[{"prefix": "A"}, {"secretRef": {"name": "lost"}}])]})),
        "spec.tasks[0].template.spec.containers[0].envFrom[1].secretRef.name", "no Secret lost in namespace default", id="missing Secret",
    ),
    pytest.param(
        job(task(pod={"containers": [container(env=[{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "lost", "key": "a"}}}])]})),
        "spec.tasks[0].template.spec.containers[0].env[0].valueFrom.configMapKeyRef.name", "no ConfigMap lost", id="missing ConfigMap",
    ),
    pytest.param(
        job(task(pod={"volumes": [{"name": "a", "secret": {"secretName": "lost"}}]})),
        "spec.tasks[0].template.spec.volumes[0].secret.secretName", "Create it first", id="missing Secret of a volume",
    ),
    pytest.param(
        job(task(pod={"volumes": [{"name": "a", "projected": {"sources": [{"configMap": {"name": "lost"}}]}}]})),
        "spec.tasks[0].template.spec.volumes[0].projected.sources[0].configMap.name", "no ConfigMap lost", id="missing source",
    ),
    pytest.param(
        job(networkTopology={"highestTierAllowed": 0}), "spec.networkTopology.highestTierAllowed", "tier 0 or a lower one, so the pods wait until there is one; set it to 1", id="no HyperNode",
    ),
    pytest.param(
        job(task(replicas=2, partitionPolicy={**PARTITIONS, "networkTopology": {"highestTierName": "rack"}})),
        "spec.tasks[0].partitionPolicy.networkTopology.highestTierName", "no HyperNode has the tier rack", id="no HyperNode for partitions",
    ),
    pytest.param(
        noted("a", "b", near="a,b;b,c"), f"{NOTE}affinity]", "no task c, so this has no effect; name tasks of the job (a, b)",
        id="a task that there is not is drawn", marks=pytest.mark.shows("scheduler 3.11 task-topology/bad annotations"),
    ),
    pytest.param(noted("a", apart="x"), f"{NOTE}anti-affinity]", "no task x", id="a task that there is not is parted"),
    pytest.param(noted("a", order="a,x,y"), f"{NOTE}task-order]", "no task x or y", id="tasks that there are not come first"),
    pytest.param(
        noted("a", "b", near="a,b", apart="b,a"), f"{NOTE}anti-affinity]", "a and b are wanted on one node and apart", id="both ways",
        marks=pytest.mark.shows("scheduler 3.11 task-topology/bad annotations"),
    ),
    pytest.param(noted("a", near="a", apart="a"), f"{NOTE}anti-affinity]", "pods of a are wanted", id="both ways of one task"),
]  # fmt: skip


@pytest.mark.parametrize(("obj", "path", "words"), ODD)
def test_said_at_its_field(obj, path, words):
    found = told(obj)
    assert list(found) == [path]
    assert words in found[path]
    assert re.search(REMEDY, found[path])


class Network(Cluster):
    """A cluster with two tiers."""

    hyper_nodes = (
        {"metadata": {"name": "a"}, "spec": {"tier": 2, "tierName": "rack"}},
        {"metadata": {"name": "b"}, "spec": {"tier": 3}},
    )


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        pytest.param({"highestTierAllowed": 1}, "set it to 2 or more", id="too low a tier"),
        pytest.param({"highestTierAllowed": 2}, "", id="the lowest tier"),
        pytest.param({"highestTierAllowed": 9}, "", id="above all tiers"),
        pytest.param({"highestTierName": "hall"}, "choose rack", id="an unknown name"),
        pytest.param({"highestTierName": "rack"}, "", id="a tier by its name"),
    ],
)
def test_tiers_that_no_hyper_node_has_are_told_with_those_that_there_are(asked, words):
    found = " ".join(told(job(networkTopology=asked), Network()).values())
    assert bool(found) == bool(words)
    assert words in found


FINE = [
    pytest.param(noted("a", "b", near="a,b", apart="b", order="b,a"), id="tasks on one node"),
    pytest.param(job(networkTopology={"mode": "soft", "highestTierAllowed": 1}), id="a wish of the network"),
    pytest.param(job(networkTopology={"mode": "hard"}), id="any tier of the network"),
    pytest.param(job(networkTopology={"highestTierAllowed": 1}), id="the whole cluster where there is no HyperNode"),
    pytest.param(policies(on("PodPending", timeout="10m")), id="PodPending with timeout"),
    pytest.param(policies(code(3), on("PodFailed")), id="exit code first"),
    pytest.param(
        policies(on("PodFailed"), tasks=[task("a", policies=[on("*", "CompleteJob")]), task("b")]), id="not overruled for every task"
    ),
    pytest.param(
        policies(on("PodPending", timeout="1m"), tasks=[task("a", policies=[on("*", "CompleteJob")])]), id="* without timeout answers no PodPending"
    ),
    pytest.param(policies(on("Unknown", "RestartJob")), id="Unknown of the job"),
    pytest.param(
        policies(on("Unknown", "RestartJob"), tasks=[task(policies=[on("*", "CompleteJob")])]), id="no task answers Unknown"
    ),
    pytest.param(
        job(task(replicas=2, partitionPolicy=PARTITIONS, policies=[on("PodFailed", "RestartPartition")])), id="partitions"
    ),
    pytest.param(policies(on("TaskFailed"), tasks=[task(pod=ON_FAILURE)]), id="TaskFailed and OnFailure"),
    pytest.param(
        policies(on("TaskFailed"), tasks=[task(pod={"initContainers": [container("side", restartPolicy="Always")]})]),
        id="TaskFailed and a sidecar that starts again",
    ),
    pytest.param(policies(on("TaskCompleted", "CompleteJob"), tasks=[task("a"), task("b", pod=ALWAYS)]), id="TaskCompleted of one task"),
    pytest.param(
        policies(code(137), tasks=[task(pod={**ON_FAILURE, "activeDeadlineSeconds": 9})]), id="exit code of a pod out of time"
    ),
    pytest.param(policies(on("*", "CompleteJob")), id="* completes"),
    pytest.param(
        job(task("ps", pod=ALWAYS), task("worker", policies=[on("TaskCompleted", "CompleteJob")])), id="Always until another task completes"
    ),
    pytest.param(job(task("a", pod=ALWAYS), task("b"), minSuccess=1), id="Always and minSuccess of the others"),
    pytest.param(
        policies(on("*", "RestartJob"), tasks=[task(pod=ALWAYS, policies=[on("PodFailed", "CompleteJob")])]), id="* where nothing completes"
    ),
    pytest.param(policies(on("PodFailed"), maxRetry=1), id="maxRetry without a restart"),
    pytest.param(job(task(replicas=3), minSuccess=3), id="minSuccess of all"),
    pytest.param(job(task("a"), task("b", dependsOn={"name": ["a"]}), minAvailable=1), id="minimum of the first task"),
    pytest.param(
        job(task("a"), task("b", 2, minAvailable=0, dependsOn={"name": ["a"]})), id="the second task is no part of the gang"
    ),
    pytest.param(
        job(task(pod={"containers": [container(envFrom=[{"secretRef": {"name": "lost", "optional": True}}])]})), id="optional Secret"
    ),
    pytest.param(job(task(pod={"imagePullSecrets": [{"name": "lost"}]})), id="credentials that are not there"),
    pytest.param(
        job(task(pod={"volumes": [{"name": "a", "configMap": {"name": "demo-svc"}}, {"name": "b", "secret": {"secretName": "demo-ssh"}}]}),
            plugins={"svc": [], "ssh": []}), id="what plugins make",
    ),
    pytest.param(job(volumes=[{"mountPath": "/data"}]), id="volume that names no claim"),
    pytest.param(job(volumes=[{"mountPath": "/d", "volumeClaim": {"accessModes": ["ReadWriteOnce"]}}]), id="claim that is made"),
]  # fmt: skip


@pytest.mark.parametrize("obj", FINE)
def test_left_alone(obj):
    assert told(obj) == {}


def test_a_claim_that_exists_is_left_alone():
    class WithClaims(Cluster):
        def claim(self, namespace, name):
            return {"metadata": {"name": name, "namespace": namespace}}

    assert told(job(volumes=[{"mountPath": "/data", "volumeClaimName": "known"}]), WithClaims()) == {}


NAMING = job(task(pod={"containers": [container(envFrom=[{"secretRef": {"name": "a"}}])]}))


class Elsewhere(Cluster):
    """A cluster with an API of its own, whose Secrets are not known here."""

    def runs_images(self):
        return True


class WithSecrets(Cluster):
    def get(self, resource, namespace, name):
        return {"metadata": {"name": name}} if (resource, namespace) == (SECRETS, "default") else None


@pytest.mark.parametrize("cluster", [Elsewhere(), WithSecrets()], ids=["another cluster's", "exists"])
def test_a_secret_that_may_be_there_is_left_alone(cluster):
    assert told(NAMING, cluster) == {}


def test_a_change_is_told_what_it_brings_and_nothing_else():
    old = defaulted(job(task("a", 2), task("b", dependsOn={"name": ["a"]}), minAvailable=1, minSuccess=4))
    changed = copy.deepcopy(old)
    changed["spec"]["minAvailable"] = 3
    assert list(told(changed, old=old)) == ["spec.tasks[1].dependsOn"]
    assert told(copy.deepcopy(old), old=old) == {}


NAMES = ("a", "b", "c", "d")


@st.composite
def gangs(draw):
    """Tasks that may wait for tasks before them, and a minimum of the job."""
    tasks, waits = [], {}
    for number, name in enumerate(NAMES[: draw(st.integers(1, 4))]):
        replicas = draw(st.integers(0, 3))
        tasks.append(Task(name, replicas, draw(st.integers(0, replicas))))
        before = draw(st.lists(st.sampled_from(NAMES[:number]), unique=True)) if number else []
        if before:
            waits[name] = Dependency(tuple(before), len(before) > 1 and draw(st.booleans()))
    return tasks, waits, draw(st.integers(0, sum(each.replicas for each in tasks)))


def play(tasks, waits, minimum):
    """Make the pods that may be made, schedule them with room for all, let them run; return those that ran."""
    roles = {each.name: each.needed for each in tasks}
    cluster = world.World(
        world.node("n", cpu="100", pods=100), world.queue(), world.group(minimum=minimum, minTaskMember=roles)
    )
    by_name = {each.name: each for each in tasks}
    ran = {}
    for _ in range(len(tasks) + 1):
        ready = {name: sum(role == name for role in ran.values()) for name in by_name}
        allowed = [each for each in tasks if dependencies.may_start(each.name, waits, by_name, ready)]
        for each in allowed:
            for index in range(each.replicas):
                if (name := f"{each.name}-{index}") not in ran:
                    cluster.put(world.pod(name, role=each.name))
        cluster.cycle(seconds=1)
        for name, node in cluster.where().items():
            ran[name] = name[0]
            cluster.put(world.pod(name, role=name[0], node=node, phase="Running"))
    return set(ran)


@given(gangs())
@examples(200)
def test_a_job_that_never_starts_is_one_of_which_the_scheduler_places_nothing(gang):
    tasks, waits, minimum = gang
    every = {f"{each.name}-{index}" for each in tasks for index in range(each.replicas)}
    ran = play(tasks, waits, minimum)
    if dependencies.never_starts(tasks, waits, minimum):
        assert ran == set()
        enough = sum(each.needed for each in dependencies.first_tasks(tasks, waits))
        assert enough
        assert play(tasks, waits, enough) == every, "the remedy"
    else:
        assert ran == every
