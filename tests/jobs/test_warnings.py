"""What is said of a job that is accepted and cannot work: what each rule speaks of, and what it leaves alone."""

import copy
import re

from hypothesis import given
from hypothesis import strategies as st

from cluster.rules.simulation import SIMULATED
from jobs.lifecycle import dependencies
from jobs.lifecycle.dependencies import Dependency
from jobs.lifecycle.situation import Task
from jobs.rules import admission
from kube.resources import CLAIMS, HYPER_NODES, SECRETS
from tests.builders import node as built_node
from tests.builders import of
from tests.campaign import examples
from tests.jobs.builders import CLUSTER, Cluster, container, defaulted, job, listed, refusals, task, warnings
from tests.scheduler import world
from tests.tables import cases

ALWAYS, ON_FAILURE = ({"restartPolicy": name} for name in ("Always", "OnFailure"))
PARTITIONS = {"totalPartitions": 2, "partitionSize": 1}
REMEDY = r"[;.,] [^;]*\b(add|choose|Create|give|leave|lower|make|move|name|put|remove|set|use|write|exit codes are)\b"
BARE = {"name": "head", "image": "img"}
ON_SIMULATED = {"nodeSelector": {SIMULATED: "true"}}
BEARS_SIMULATED = {"tolerations": [{"key": SIMULATED, "operator": "Exists"}]}
SIMULATION = {"ui.volcano.sh/duration-seconds": "6", "ui.volcano.sh/note": "x"}
SPREAD = {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "Perhaps"}]}
NOTHING, EVERYTHING = "", "mpirun,ray,ssh,sshd"
CORDON = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}
AFFINITY = {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}}}
NAMES = ("a", "b", "c", "d")


def warnings_of(obj, cluster=CLUSTER, old=None):
    assert refusals(obj, cluster, old) == {}
    return warnings(obj, cluster, old)


def policies(*written, **spec):
    return job(*spec.pop("tasks", ()), policies=list(written), **spec)


def on(event, action="AbortJob", **more):
    return {"event": event, "action": action, **more}


def code(number, action="AbortJob"):
    return {"exitCode": number, "action": action}


def answering(*written, name="main", **fields):
    return task(name, policies=[*written], **fields)


def after(name, *others, replicas=1, iteration=None, **fields):
    how = {"iteration": iteration} if iteration else {}
    return task(name, replicas, dependsOn={"name": [*others], **how}, **fields)


def claimed(name):
    return job(volumes=[{"mountPath": "/data", "volumeClaimName": name}])


def volumes(*sources):
    return {"volumes": [{"name": f"v{number}", **each} for number, each in enumerate(sources)]}


def containers(**fields):
    return {"containers": [container(**fields)]}


def of_pod(**fields):
    return job(task(pod=fields))


def noted(*names, near="", apart="", order=""):
    texts = {"affinity": near, "anti-affinity": apart, "task-order": order}
    notes = {f"volcano.sh/task-topology-{name}": text for name, text in texts.items() if text}
    return job(*(task(name) for name in names), annotations=notes)


A, ON_COMPLETED = task("a"), on("TaskCompleted", "CompleteJob")
RESTARTS_PARTS = on("PodFailed", "RestartPartition")
MIXED = [A, task("b", 2, partitionPolicy=PARTITIONS), task("c")]
ONE_ALWAYS = [A, task("b", pod=ALWAYS)]
OVERRULING = [answering(on("*", "CompleteJob"), name="a"), answering(on("PodFailed"), name="b")]
RACKS = task(replicas=2, partitionPolicy={**PARTITIONS, "networkTopology": {"highestTierName": "rack"}})
LOST = {"name": "lost"}
# A cluster that has a claim and a Secret of the namespace, and one with two tiers.
STOCKED = Cluster(of(SECRETS, "a"), of(CLAIMS, "known"))
NETWORK = Cluster(of(HYPER_NODES, "a", tier=2, tierName="rack"), of(HYPER_NODES, "b", tier=3))
OF_CONFIG_MAP = {"name": "A", "valueFrom": {"configMapKeyRef": {**LOST, "key": "a"}}}
LOST_CLAIM = {"persistentVolumeClaim": {"claimName": "lost"}}
PROJECTED = {"projected": {"sources": [{"configMap": LOST}]}}
ANY_OF_TWO = [A, after("b", "a", "c", iteration="any"), task("c", 2)]
COMPLETES = policies(code(5, "CompleteJob"), on("*", "TerminateJob"), tasks=ONE_ALWAYS)


@cases("obj", {
    "JobUpdated | 3.1/JobUpdated": policies(on("JobUpdated")),
    "JobUpdated among others": policies(on("PodFailed", events=["JobUpdated"])),
    "PodPending without timeout": policies(on("PodPending")),
    "PodPending at once": policies(on("PodPending", timeout="0s")),
    "negative timeout": policies(on("PodFailed", timeout="-5m")),
    "exit code behind PodFailed": policies(on("PodFailed"), code(3)),
    "exit code behind *": policies(on("*", "CompleteJob"), code(3)),
    "overruled by all": policies(on("PodFailed"), tasks=OVERRULING),
    "exit code overruled": policies(code(3), tasks=[answering(code(3))]),
    "Unknown names no pod": policies(on("Unknown", "RestartPod")),
    "ResumeJob": policies(on("PodFailed", "ResumeJob")),
    "RestartPartition": policies(RESTARTS_PARTS),
    "of some tasks": policies(RESTARTS_PARTS, tasks=MIXED),
    "TaskFailed and Never": policies(on("TaskFailed")),
    "exit code above 255": policies(code(300)),
    "exit code below 0": policies(code(-1)),
    "and OnFailure": policies(code(3), tasks=[task(pod=ON_FAILURE)]),
    "* restarts what completed": policies(on("*", "RestartJob")),
    "* terminates what completed": COMPLETES,
    "no restart is left": policies(on("PodFailed", "RestartJob"), maxRetry=1),
    "exit code behind a task's PodFailed": job(answering(on("PodFailed"), code(3))),
    "a task's Unknown": job(answering(on("Unknown"))),
    "TaskCompleted and Always": job(answering(ON_COMPLETED, pod=ALWAYS)),
    "minSuccess above replicas": job(task(replicas=3), minSuccess=4),
    "minSuccess without replicas": job(task(replicas=0), minSuccess=1),
    "ttl 0": job(ttlSecondsAfterFinished=0),
    "nothing to wait for": job(task("a", 0), after("b", "a")),
    "unknown iteration": job(A, after("b", "a", iteration="first", minAvailable=0)),
    "deadlock": job(A, after("train", "a")),
    "deadlock with any": job(*ANY_OF_TWO, minAvailable=4),
    "deadlock by the number alone": job(task("a", 3), after("b", "a", minAvailable=0), minAvailable=4),
    "Always": of_pod(**ALWAYS),
    "Always and minSuccess of all": job(task("a", pod=ALWAYS), task("b"), minSuccess=2),
    "missing claim": claimed("lost"),
    "claim without a name": claimed(""),
    "no HyperNode": job(networkTopology={"highestTierAllowed": 0}),
    "no HyperNode for partitions": job(RACKS),
    "claim": of_pod(**volumes({"emptyDir": {}}, LOST_CLAIM)),
    "Secret": of_pod(**containers(envFrom=[{"prefix": "A"}, {"secretRef": LOST}])),
    "ConfigMap": of_pod(**containers(env=[OF_CONFIG_MAP])),
    "Secret of a volume": of_pod(**volumes({"secret": {"secretName": "lost"}})),
    "source of a volume": of_pod(**volumes(PROJECTED)),
    "a task that there is not is drawn | scheduler 3.11 task-topology/bad annotations": noted("a", "b", near="a,b;b,c"),
    "a task that there is not is parted": noted("a", apart="x"),
    "tasks that there are not come first": noted("a", order="a,x,y"),
    "both ways | scheduler 3.11 task-topology/bad annotations": noted("a", "b", near="a,b", apart="b,a"),
    "both ways of one task": noted("a", near="a", apart="a"),
})  # fmt: skip
def test_said_at_its_field_with_a_remedy(golden, obj):
    ((path, text),) = warnings_of(obj).items()
    assert re.search(REMEDY, text)
    golden("warnings", f"{path}: {text}")


ELSEWHERE = Cluster()  # a cluster with an API of its own, whose Secrets are not known here
ELSEWHERE.runs_images = lambda: True
SIDECAR = {"initContainers": [container("side", **ALWAYS)]}
COMPLETED_BY_FAILURE = answering(on("PodFailed", "CompleteJob"), pod=ALWAYS)
BY_PLUGINS = volumes({"configMap": {"name": "demo-svc"}}, {"secret": {"secretName": "demo-ssh"}})
OF_SECRET = of_pod(**containers(envFrom=[{"secretRef": {"name": "a"}}]))
MADE_CLAIM = {"mountPath": "/d", "volumeClaim": {"accessModes": ["ReadWriteOnce"]}}


@cases("obj, cluster", {
    "a Secret that exists": (OF_SECRET, STOCKED), "another cluster's Secret": (OF_SECRET, ELSEWHERE),
    "a claim that exists": (claimed("known"), STOCKED),
    **{words: (obj, CLUSTER) for words, obj in {
        "tasks on one node": noted("a", "b", near="a,b", apart="b", order="b,a"),
        "a wish of the network": job(networkTopology={"mode": "soft", "highestTierAllowed": 1}),
        "any tier of the network": job(networkTopology={"mode": "hard"}),
        "the whole cluster where there is no HyperNode": job(networkTopology={"highestTierAllowed": 1}),
        "PodPending with timeout": policies(on("PodPending", timeout="10m")),
        "exit code first": policies(code(3), on("PodFailed")),
        "not overruled for every task": policies(on("PodFailed"), tasks=[OVERRULING[0], task("b")]),
        "* without timeout answers no PodPending": policies(on("PodPending", timeout="1m"), tasks=OVERRULING[:1]),
        "Unknown of the job": policies(on("Unknown", "RestartJob")),
        "no task answers Unknown": policies(on("Unknown", "RestartJob"), tasks=OVERRULING[:1]),
        "partitions": job(answering(RESTARTS_PARTS, replicas=2, partitionPolicy=PARTITIONS)),
        "TaskFailed and OnFailure": policies(on("TaskFailed"), tasks=[task(pod=ON_FAILURE)]),
        "TaskFailed and a sidecar that starts again": policies(on("TaskFailed"), tasks=[task(pod=SIDECAR)]),
        "TaskCompleted of one task": policies(on("TaskCompleted", "CompleteJob"), tasks=ONE_ALWAYS),
        "of a pod out of time": policies(code(137), tasks=[task(pod={**ON_FAILURE, "activeDeadlineSeconds": 9})]),
        "* completes": policies(on("*", "CompleteJob")),
        "Always until another task completes": job(task("ps", pod=ALWAYS), answering(ON_COMPLETED, name="worker")),
        "Always and minSuccess of the others": job(task("a", pod=ALWAYS), task("b"), minSuccess=1),
        "* where nothing completes": policies(on("*", "RestartJob"), tasks=[COMPLETED_BY_FAILURE]),
        "maxRetry without a restart": policies(on("PodFailed"), maxRetry=1),
        "minSuccess of all": job(task(replicas=3), minSuccess=3),
        "minimum of the first task": job(A, after("b", "a"), minAvailable=1),
        "the second task is no part of the gang": job(A, after("b", "a", replicas=2, minAvailable=0)),
        "optional Secret": of_pod(**containers(envFrom=[{"secretRef": {**LOST, "optional": True}}])),
        "credentials that are not there": of_pod(imagePullSecrets=[LOST]),
        "what plugins make": job(task(pod=BY_PLUGINS), plugins={"svc": [], "ssh": []}),
        "volume that names no claim": job(volumes=[{"mountPath": "/data"}]),
        "claim that is made": job(volumes=[MADE_CLAIM]),
    }.items()},
})  # fmt: skip
def test_left_alone(obj, cluster):
    assert warnings_of(obj, cluster) == {}


def test_a_change_is_told_what_it_brings_and_nothing_else():
    old = defaulted(job(task("a", 2), after("b", "a"), minAvailable=1, minSuccess=4))
    changed = copy.deepcopy(old)
    changed["spec"]["minAvailable"] = 3
    assert ([*warnings_of(changed, old=old)], warnings_of(old, old=old)) == (["spec.tasks[1].dependsOn"], {})
    needing = defaulted(ray())
    assert warnings(needing, Cluster(node()), needing) == {}


# ---- commands, simulated nodes and what pods demand
def bare(plugins=None, **pod):
    return job(task("head", pod={"containers": [BARE], **pod}), plugins=plugins or {})


def simulated(**pod):
    obj = of_pod(**pod)
    obj["spec"]["tasks"][0]["template"]["metadata"] = {"annotations": SIMULATION}
    return obj


def placed(**topology):
    return job(networkTopology=topology)


@cases("obj, cluster", {
    "no command": (bare(), CLUSTER),
    "no command in an init container": (bare(initContainers=[BARE]), CLUSTER),
    "options are no command": (bare(containers=[{**BARE, "args": ["-v"]}]), CLUSTER),
    "arguments that are one": (bare(containers=[{**BARE, "args": ["sh", "-c", "true"]}]), CLUSTER),
    "of a pod to be simulated": (bare(**ON_SIMULATED), CLUSTER),
    "of a pod that may be simulated": (bare(**BEARS_SIMULATED), CLUSTER),
    "whose command a plugin gives": (bare({"ray": []}), CLUSTER),
    "beside one whose command a plugin gives": (bare({"ray": ["--headContainer=main"]}), CLUSTER),
    "annotations for simulated nodes": (simulated(), CLUSTER),
    "and pods that ask for one": (simulated(**ON_SIMULATED), CLUSTER),
    "and pods that may be on one": (simulated(**BEARS_SIMULATED), CLUSTER),
    "a demand that keeps pods waiting": (of_pod(**SPREAD), CLUSTER),
    "a restart policy that is left out": (of_pod(restartPolicy=""), CLUSTER),
    "an unknown priority class": (of_pod(priorityClassName="none"), CLUSTER),
    # ---- tiers that no HyperNode has are told with those that there are
    "too low a tier": (placed(highestTierAllowed=1), NETWORK),
    "the lowest tier": (placed(highestTierAllowed=2), NETWORK),
    "above all tiers": (placed(highestTierAllowed=9), NETWORK),
    "an unknown tier": (placed(highestTierName="hall"), NETWORK),
    "a tier by its name": (placed(highestTierName="rack"), NETWORK),
})  # fmt: skip
def test_said_of_commands_simulated_nodes_demands_and_tiers(golden, obj, cluster):
    golden("warnings", listed(warnings(obj, cluster)))


# ---- programs that plugins need
def node(name="here", programs=NOTHING, engine=None, **fields):
    """A node; None for programs: it says nothing of them."""
    notes = {"ui.volcano.sh/programs": programs, "ui.volcano.sh/engine": engine}
    return built_node(name, annotations={key: text for key, text in notes.items() if text is not None}, **fields)


def mpi(pod=None, **plugins):
    return job(task("master", pod=pod), task("worker", 2, pod=pod), plugins={"mpi": [], **plugins})


def ray(pod=None):
    head, worker = ({"containers": [container(name)], **(pod or {})} for name in ("head", "worker"))
    return job(task("head", pod=head), task("worker", pod=worker), plugins={"ray": []})


def as_processes(obj):
    for each in obj["spec"]["tasks"]:
        each["template"]["metadata"] = {"annotations": {"ui.volcano.sh/runtime": "process"}}
    return obj


@cases("obj, nodes", {
    "ssh": (job(plugins={"ssh": []}), [node()]),
    "ssh without a server": (job(plugins={"ssh": []}), [node(programs="ssh")]),
    "mpi brings ssh": (mpi(), [node()]),
    "no engine": (mpi(), [node(engine="none: not installed")]),
    "processes beside an engine": (as_processes(ray()), [node(engine="podman 4.3.1")]),
    "mpi": (mpi(), [node(programs="ssh,sshd")]),
    "ray": (ray(), [node()]),
    "programs of like names": (ray(), [node(programs="xray,rays")]),
    "one node of several": (ray(), [node(), node("there", EVERYTHING), node("sim", None)]),
    "two nodes": (ray(), [node("b"), node("a")]),
    "many nodes": (ray(), [node(name) for name in "dcba"]),
    "the node that pods name": (ray({"nodeName": "here"}), [node(ready="False"), node("b")]),
    "the node that pods select": (ray({"nodeSelector": {"a": "b"}}), [node(labels={"a": "b"}), node("c")]),
    "a cordoned node that pods bear": (ray({"tolerations": [CORDON]}), [node(unschedulable=True)]),
    "the path of the system's program": (
        mpi(containers(command=["sh", "-c", "exec /usr/sbin/sshd -D"])), [node(programs="ssh,mpirun")]),
    "the path of another program": (mpi(containers(command=["/opt/mpirun-x"])), [node(programs="ssh,sshd")]),
    "the node has them": (mpi(), [node(programs=EVERYTHING)]),
    "no node": (mpi(), []),
    "a node with an engine": (mpi(), [node(engine="podman 4.3.1")]),
    "a node whose containers run images": (mpi(), [node(programs=None)]),
    "pods for simulated nodes": (mpi(ON_SIMULATED), [node()]),
    "a taint": (mpi(), [node(taints=[{"key": "a", "value": "b", "effect": "NoSchedule"}])]),
    "a cordoned node": (mpi(), [node(unschedulable=True)]),
    "a node that is silent": (mpi(), [node(ready="Unknown")]),
    "pods that name another node": (mpi({"nodeName": "other"}), [node()]),
    "affinity": (mpi(AFFINITY), [node()]),
    "no pods": (job(task("master", 0), task("worker", 0), plugins={"mpi": []}), [node()]),
    "a search path of their own": (mpi(containers(env=[{"name": "PATH", "value": "/opt"}])), [node()]),
    "a search path in the script": (mpi(containers(args=["export PATH=/opt:$PATH; x"])), [node()]),
    "a path of their own": (mpi(containers(args=["/opt/mpi/bin/mpirun x"])), [node(programs="ssh,sshd")]),
    "no container in which ray is started": (job(task("head"), task("worker"), plugins={"ray": []}), [node()]),
    "plugins that need no program": (job(plugins={"svc": [], "env": [], "pytorch": []}), [node()]),
})  # fmt: skip
def test_a_program_that_a_node_lacks_is_said_with_the_node_and_the_remedy(golden, obj, nodes):
    found = admission.warn(defaulted(obj), None, Cluster(*nodes))
    golden("programs", "\n".join(text for text in found if "containers run the programs of their node" in text))


# ---- tasks that wait for each other
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
    group = world.group(minimum=minimum, minTaskMember=roles)
    cluster = world.World(world.node("n", cpu="100", pods=100), world.queue(), group)
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
