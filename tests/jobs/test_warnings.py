"""What is said of a job that is accepted and cannot work: what each rule speaks of, and what it leaves alone."""

from __future__ import annotations

import copy
import re

from hypothesis import given
from hypothesis import strategies as st

from cluster.rules.simulation import SIMULATED
from jobs.controller import dependencies
from jobs.controller.facts import Dependency
from jobs.lifecycle.situation import Task
from jobs.plugins.table import PLUGINS
from jobs.rules import admission
from kube.resources import SECRETS
from tests.builders import node as built_node
from tests.campaign import examples
from tests.jobs.builders import CLUSTER, Cluster, container, defaulted, job, refusals, task, warnings
from tests.scheduler import world
from tests.tables import cases

ALWAYS, ON_FAILURE, NEVER = ({"restartPolicy": name} for name in ("Always", "OnFailure", "Never"))
PARTITIONS = {"totalPartitions": 2, "partitionSize": 1}
REMEDY = r"[;.,] [^;]*\b(add|choose|Create|give|leave|lower|make|move|name|put|remove|set|use|write|exit codes are)\b"


def said(obj, cluster=CLUSTER, old=None):
    assert refusals(obj, cluster, old) == {}
    return warnings(obj, cluster, old)


def assert_said(obj, path, words):
    found = said(obj)
    assert [*found] == [path]
    assert words in found[path]
    assert re.search(REMEDY, found[path])


# ---- policies


def policies(*written, **spec):
    return job(*spec.pop("tasks", ()), policies=list(written), **spec)


def on(event, action="AbortJob", **more):
    return {"event": event, "action": action, **more}


def code(number, action="AbortJob"):
    return {"exitCode": number, "action": action}


def answering(*written, name="main", **fields):
    return task(name, policies=[*written], **fields)


ON_COMPLETED = on("TaskCompleted", "CompleteJob")
RESTARTS_PARTS = on("PodFailed", "RestartPartition")
MIXED = [task("a"), task("b", 2, partitionPolicy=PARTITIONS), task("c")]
ONE_ALWAYS = [task("a"), task("b", pod=ALWAYS)]
OVERRULING = [answering(on("*", "CompleteJob"), name="a"), answering(on("PodFailed"), name="b")]


@cases("obj, path, words", {
    "JobUpdated | 3.1/JobUpdated": (policies(on("JobUpdated")), "[0].event", "never happens"),
    "JobUpdated among others": (policies(on("PodFailed", events=["JobUpdated"])), "[0].events[0]", "remove it"),
    "PodPending without timeout": (policies(on("PodPending")), "[0].event", "timeout: 10m"),
    "PodPending at once": (policies(on("PodPending", timeout="0s")), "[0].event", "only after a timeout"),
    "negative timeout": (policies(on("PodFailed", timeout="-5m")), "[0].timeout", "negative"),
    "exit code behind PodFailed": (policies(on("PodFailed"), code(3)), "[1].exitCode", "stands before it"),
    "exit code behind *": (policies(on("*", "CompleteJob"), code(3)), "[1].exitCode", "put this policy first"),
    "overruled by every task": (
        policies(on("PodFailed"), tasks=OVERRULING), "[0].event", "every task answer PodFailed"),
    "exit code overruled": (policies(code(3), tasks=[answering(code(3))]), "[0].exitCode", "every task answer"),
    "Unknown names no pod": (policies(on("Unknown", "RestartPod")), "[0].action", "use RestartJob"),
    "ResumeJob": (policies(on("PodFailed", "ResumeJob")), "[0].action", "changes nothing"),
    "RestartPartition": (policies(RESTARTS_PARTS), "[0].action", "main are in no partition"),
    "RestartPartition of some tasks": (
        policies(RESTARTS_PARTS, tasks=MIXED), "[0].action", "a and c are in no partition"),
    "TaskFailed and Never": (policies(on("TaskFailed")), "[0].event", "restartPolicy Never"),
    "exit code above 255": (policies(code(300)), "[0].exitCode", "no process ends with 300"),
    "exit code below 0": (policies(code(-1)), "[0].exitCode", "no process ends with -1"),
    "exit code and OnFailure": (
        policies(code(3), tasks=[task(pod=ON_FAILURE)]), "[0].exitCode", "start again in their"),
    "* restarts what completed": (policies(on("*", "RestartJob")), "[0].event", "also when the task has completed"),
    "* terminates what completed": (policies(code(5, "CompleteJob"), on("*", "TerminateJob"), tasks=ONE_ALWAYS),
        "[1].event", "also when a task has completed"),
    "no restart is left": (policies(on("PodFailed", "RestartJob"), maxRetry=1), "[0].action", "maxRetry 1"),
})  # fmt: skip
def test_said_of_a_policy_of_the_job(obj, path, words):
    assert_said(obj, f"spec.policies{path}", words)


@cases("obj, path, words", {
    "exit code behind PodFailed": (answering(on("PodFailed"), code(3)), "[1].exitCode", "never acts"),
    "Unknown": (answering(on("Unknown")), "[0].event", "move the policy to spec.policies"),
    "TaskCompleted and Always": (answering(ON_COMPLETED, pod=ALWAYS), "[0].event", "no pod succeeds"),
})  # fmt: skip
def test_said_of_a_policy_of_a_task(obj, path, words):
    assert_said(job(obj), f"spec.tasks[0].policies{path}", words)


# ---- numbers, dependencies, what is not there


def after(name, *others, replicas=1, iteration=None, **fields):
    return task(
        name, replicas, dependsOn={"name": [*others]} | ({"iteration": iteration} if iteration else {}), **fields
    )


def claimed(name):
    return {"mountPath": "/data", "volumeClaimName": name}


RACKS = {**PARTITIONS, "networkTopology": {"highestTierName": "rack"}}


@cases("obj, path, words", {
    "minSuccess above replicas": (job(task(replicas=3), minSuccess=4), "minSuccess", "3 together"),
    "minSuccess without replicas": (job(task(replicas=0), minSuccess=1), "minSuccess", "add replicas"),
    "ttl 0": (job(ttlSecondsAfterFinished=0), "ttlSecondsAfterFinished", "as soon as it ends"),
    "nothing to wait for": (job(task("a", 0), after("b", "a")), "tasks[1].dependsOn.name", "a has 0 replicas"),
    "unknown iteration": (
        job(task("a"), after("b", "a", iteration="first", minAvailable=0)), "tasks[1].dependsOn.iteration", "any or"),
    "deadlock": (job(task("prep"), after("train", "prep")), "tasks[1].dependsOn", "train waits for prep, and nothing"),
    "deadlock with any": (
        job(task("a"), after("b", "a", "c", iteration="any"), task("c", 2), minAvailable=4), "tasks[1].dependsOn",
        "waits for a or c"),
    "deadlock by the number alone": (
        job(task("a", 3), after("b", "a", minAvailable=0), minAvailable=4), "tasks[1].dependsOn",
        "set spec.minAvailable to 3"),
    "Always": (job(task(pod=ALWAYS)), "tasks[0].template.spec.restartPolicy", "the job cannot complete"),
    "Always and minSuccess of all": (
        job(task("a", pod=ALWAYS), task("b"), minSuccess=2), "tasks[0].template.spec.restartPolicy",
        "choose OnFailure or Never"),
    "missing claim": (
        job(volumes=[claimed("lost")]), "volumes[0].volumeClaimName", "no claim lost in namespace default"),
    "claim without a name": (job(volumes=[claimed("")]), "volumes[0].volumeClaimName", "names no claim"),
    "no HyperNode": (job(networkTopology={"highestTierAllowed": 0}), "networkTopology.highestTierAllowed", "tier 0"),
    "no HyperNode for partitions": (
        job(task(replicas=2, partitionPolicy=RACKS)), "tasks[0].partitionPolicy.networkTopology.highestTierName",
        "no HyperNode has the tier rack"),
})  # fmt: skip
def test_said_at_its_field(obj, path, words):
    assert_said(obj, f"spec.{path}", words)


def volumes(*sources):
    return {"volumes": [{"name": f"v{number}", **each} for number, each in enumerate(sources)]}


def containers(**fields):
    return {"containers": [container(**fields)]}


LOST = {"name": "lost"}
OF_CONFIG_MAP = {"name": "A", "valueFrom": {"configMapKeyRef": {**LOST, "key": "a"}}}


@cases("pod, path, words", {
    "claim": (volumes({"emptyDir": {}}, {"persistentVolumeClaim": {"claimName": "lost"}}),
        "volumes[1].persistentVolumeClaim.claimName", "no claim lost in namespace default"),
    "Secret": (
        containers(envFrom=[{"prefix": "A"}, {"secretRef": LOST}]), "containers[0].envFrom[1].secretRef.name",
        "no Secret lost in namespace default"),
    "ConfigMap": (
        containers(env=[OF_CONFIG_MAP]), "containers[0].env[0].valueFrom.configMapKeyRef.name", "no ConfigMap"),
    "Secret of a volume": (volumes({"secret": {"secretName": "lost"}}), "volumes[0].secret.secretName", "Create it"),
    "source of a volume": (
        volumes({"projected": {"sources": [{"configMap": LOST}]}}), "volumes[0].projected.sources[0].configMap.name",
        "no ConfigMap lost"),
})  # fmt: skip
def test_said_of_what_is_missing_where_a_pod_names_it(pod, path, words):
    assert_said(job(task(pod=pod)), f"spec.tasks[0].template.spec.{path}", words)


def noted(*names, near="", apart="", order=""):
    """A job of these tasks with annotations about their topology."""
    texts = {"affinity": near, "anti-affinity": apart, "task-order": order}
    notes = {f"volcano.sh/task-topology-{name}": text for name, text in texts.items() if text}
    return job(*(task(name) for name in names), annotations=notes)


@cases("obj, note, words", {
    "a task that there is not is drawn | scheduler 3.11 task-topology/bad annotations": (
        noted("a", "b", near="a,b;b,c"), "affinity", "no task c, so this has no effect; name tasks of the job (a, b)"),
    "a task that there is not is parted": (noted("a", apart="x"), "anti-affinity", "no task x"),
    "tasks that there are not come first": (noted("a", order="a,x,y"), "task-order", "no task x or y"),
    "both ways | scheduler 3.11 task-topology/bad annotations": (
        noted("a", "b", near="a,b", apart="b,a"), "anti-affinity", "a and b are wanted on one node and apart"),
    "both ways of one task": (noted("a", near="a", apart="a"), "anti-affinity", "pods of a are wanted"),
})  # fmt: skip
def test_said_of_the_topology_of_tasks(obj, note, words):
    assert_said(obj, f"metadata.annotations[volcano.sh/task-topology-{note}]", words)


class Network(Cluster):
    """A cluster with two tiers."""

    hyper_nodes = (
        {"metadata": {"name": "a"}, "spec": {"tier": 2, "tierName": "rack"}},
        {"metadata": {"name": "b"}, "spec": {"tier": 3}},
    )


@cases("topology, words", {
    "too low a tier": ({"highestTierAllowed": 1}, "set it to 2 or more"),
    "the lowest tier": ({"highestTierAllowed": 2}, ""),
    "above all tiers": ({"highestTierAllowed": 9}, ""),
    "an unknown name": ({"highestTierName": "hall"}, "choose rack"),
    "a tier by its name": ({"highestTierName": "rack"}, ""),
})  # fmt: skip
def test_tiers_that_no_hyper_node_has_are_told_with_those_that_there_are(topology, words):
    found = " ".join(said(job(networkTopology=topology), Network()).values())
    assert bool(found) == bool(words)
    assert words in found


SIDECAR = {"initContainers": [container("side", **ALWAYS)]}
COMPLETED_BY_FAILURE = answering(on("PodFailed", "CompleteJob"), pod=ALWAYS)
BY_PLUGINS = volumes({"configMap": {"name": "demo-svc"}}, {"secret": {"secretName": "demo-ssh"}})


@cases("obj", {
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
    "partitions": job(answering(on("PodFailed", "RestartPartition"), replicas=2, partitionPolicy=PARTITIONS)),
    "TaskFailed and OnFailure": policies(on("TaskFailed"), tasks=[task(pod=ON_FAILURE)]),
    "TaskFailed and a sidecar that starts again": policies(on("TaskFailed"), tasks=[task(pod=SIDECAR)]),
    "TaskCompleted of one task": policies(on("TaskCompleted", "CompleteJob"), tasks=ONE_ALWAYS),
    "exit code of a pod out of time": policies(code(137), tasks=[task(pod={**ON_FAILURE, "activeDeadlineSeconds": 9})]),
    "* completes": policies(on("*", "CompleteJob")),
    "Always until another task completes": job(task("ps", pod=ALWAYS), answering(ON_COMPLETED, name="worker")),
    "Always and minSuccess of the others": job(task("a", pod=ALWAYS), task("b"), minSuccess=1),
    "* where nothing completes": policies(on("*", "RestartJob"), tasks=[COMPLETED_BY_FAILURE]),
    "maxRetry without a restart": policies(on("PodFailed"), maxRetry=1),
    "minSuccess of all": job(task(replicas=3), minSuccess=3),
    "minimum of the first task": job(task("a"), after("b", "a"), minAvailable=1),
    "the second task is no part of the gang": job(task("a"), after("b", "a", replicas=2, minAvailable=0)),
    "optional Secret": job(task(pod=containers(envFrom=[{"secretRef": {**LOST, "optional": True}}]))),
    "credentials that are not there": job(task(pod={"imagePullSecrets": [LOST]})),
    "what plugins make": job(task(pod=BY_PLUGINS), plugins={"svc": [], "ssh": []}),
    "volume that names no claim": job(volumes=[{"mountPath": "/data"}]),
    "claim that is made": job(volumes=[{"mountPath": "/d", "volumeClaim": {"accessModes": ["ReadWriteOnce"]}}]),
})  # fmt: skip
def test_left_alone(obj):
    assert said(obj) == {}


class Stocked(Cluster):
    """A cluster that has every claim and Secret of the namespace."""

    def get(self, resource, namespace, name):
        return {"metadata": {"name": name}} if (resource, namespace) == (SECRETS, "default") else None

    def claim(self, namespace, name):
        return {"metadata": {"name": name, "namespace": namespace}}


class Elsewhere(Cluster):
    """A cluster with an API of its own, whose Secrets are not known here."""

    def runs_images(self):
        return True


@cases("cluster", {"another cluster's": Elsewhere(), "exists": Stocked()})
def test_a_secret_that_may_be_there_is_left_alone(cluster):
    assert said(job(task(pod=containers(envFrom=[{"secretRef": {"name": "a"}}]))), cluster) == {}


def test_a_claim_that_exists_is_left_alone():
    assert said(job(volumes=[{"mountPath": "/data", "volumeClaimName": "known"}]), Stocked()) == {}


def test_a_change_is_told_what_it_brings_and_nothing_else():
    old = defaulted(job(task("a", 2), after("b", "a"), minAvailable=1, minSuccess=4))
    changed = copy.deepcopy(old)
    changed["spec"]["minAvailable"] = 3
    assert [*said(changed, old=old)] == ["spec.tasks[1].dependsOn"]
    assert said(old, old=old) == {}


# ---- commands, simulated nodes and what pods demand

BARE = {"name": "head", "image": "img"}
ON_SIMULATED = {"nodeSelector": {SIMULATED: "true"}}
BEARS_SIMULATED = {"tolerations": [{"key": SIMULATED, "operator": "Exists"}]}


@cases("pod, plugins, named", {
    "a container": ({}, {}, ["containers[0]"]),
    "an init container": ({"initContainers": [BARE]}, {}, ["initContainers[0]", "containers[0]"]),
    "options are no command": ({"containers": [{**BARE, "args": ["-v"]}]}, {}, ["containers[0]"]),
    "arguments that are one": ({"containers": [{**BARE, "args": ["sh", "-c", "true"]}]}, {}, []),
    "of a pod to be simulated": (ON_SIMULATED, {}, []),
    "of a pod that may be simulated": (BEARS_SIMULATED, {}, []),
    "whose command a plugin gives": ({}, {"ray": []}, []),
    "beside one whose command a plugin gives": ({}, {"ray": ["--headContainer=main"]}, ["containers[0]"]),
})  # fmt: skip
def test_containers_that_nothing_gives_a_command_are_named(pod, plugins, named):
    found = warnings(job(task("head", pod={"containers": [BARE], **pod}), plugins=plugins))
    without = {path: text for path, text in found.items() if path.endswith(".command")}
    assert [*without] == [f"spec.tasks[0].template.spec.{each}.command" for each in named]
    assert all("give container head a command" in text for text in without.values())


@cases("pod, words", {
    "pods that ask for no simulated node": ({}, 'nodeSelector ui.volcano.sh/simulated: "true"'),
    "pods that ask for one": (ON_SIMULATED, ""),
    "pods that may be on one": (BEARS_SIMULATED, ""),
})  # fmt: skip
def test_annotations_for_simulated_nodes_need_a_pod_that_asks_for_them(pod, words):
    obj = job(task(pod=pod))
    notes = {"ui.volcano.sh/duration-seconds": "6", "ui.volcano.sh/note": "x"}
    obj["spec"]["tasks"][0]["template"]["metadata"] = {"annotations": notes}
    path = "spec.tasks[0].template.metadata.annotations[ui.volcano.sh/duration-seconds]"
    found = warnings(obj)
    assert [*found] == [path] * bool(words)
    assert words in found.get(path, "")


CONSTRAINT = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "Perhaps"}
SPREAD = {"topologySpreadConstraints": [CONSTRAINT]}


@cases("pod, path, words", {
    "a demand that keeps pods waiting": (SPREAD, "topologySpreadConstraints", "the pods will wait: "),
    "its remedy": (SPREAD, "topologySpreadConstraints", "whenUnsatisfiable (DoNotSchedule or ScheduleAnyway)"),
    "a restart policy that is left out": ({"restartPolicy": ""}, "restartPolicy", "containers start again"),
    "an unknown priority class": ({"priorityClassName": "none"}, "priorityClassName", "no priority class none"),
})  # fmt: skip
def test_said_of_the_spec_of_a_pod(pod, path, words):
    assert words in warnings(job(task(pod=pod)))[f"spec.tasks[0].template.spec.{path}"]


# ---- programs that plugins need

NOTHING, EVERYTHING = "", "mpirun,ray,ssh,sshd"
CORDON = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}
INSTALL = "and containers run the programs of their node, whatever their image; install"
PACKAGES = {  # program → the plugin that needs it, and what brings it
    "ssh": ("ssh", "Debian's openssh-client"),
    "sshd": ("ssh", "Debian's openssh-server"),
    "mpirun": ("mpi", "Debian's openmpi-bin"),
    "ray": ("ray", "the Python package ray[default]"),
}


class Machines(Cluster):
    """A cluster with nodes."""

    def __init__(self, *nodes):
        super().__init__()
        self.nodes, self.reads = nodes, 0

    def machines(self):
        self.reads += 1
        return copy.deepcopy([*self.nodes])


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


AFFINITY = {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}}}
HERE, A_AND_B, FOUR = "node here has", "nodes a and b have", "4 nodes, such as a, have"


@cases("obj, nodes, who, programs", {
    "ssh": (job(plugins={"ssh": []}), [node()], HERE, "ssh sshd"),
    "ssh without a server": (job(plugins={"ssh": []}), [node(programs="ssh")], HERE, "sshd"),
    "mpi brings ssh": (mpi(), [node()], HERE, "ssh sshd mpirun"),
    "no engine": (mpi(), [node(engine="none: not installed")], HERE, "ssh sshd mpirun"),
    "processes beside an engine": (as_processes(ray()), [node(engine="podman 4.3.1")], HERE, "ray"),
    "mpi": (mpi(), [node(programs="ssh,sshd")], HERE, "mpirun"),
    "ray": (ray(), [node()], HERE, "ray"),
    "programs of like names": (ray(), [node(programs="xray,rays")], HERE, "ray"),
    "one node of several": (ray(), [node(), node("there", EVERYTHING), node("sim", None)], HERE, "ray"),
    "two nodes": (ray(), [node("b"), node("a")], A_AND_B, "ray"),
    "many nodes": (ray(), [node(name) for name in "dcba"], FOUR, "ray"),
    "the node that pods name": (ray({"nodeName": "here"}), [node(ready="False"), node("b")], HERE, "ray"),
    "the node that pods select": (ray({"nodeSelector": {"a": "b"}}), [node(labels={"a": "b"}), node("c")], HERE, "ray"),
    "a cordoned node that pods bear": (ray({"tolerations": [CORDON]}), [node(unschedulable=True)], HERE, "ray"),
    "the path of the system's program": (
        mpi(containers(command=["sh", "-c", "exec /usr/sbin/sshd -D"])), [node(programs="ssh,mpirun")], HERE, "sshd"),
    "the path of another program": (
        mpi(containers(command=["/opt/mpirun-x"])), [node(programs="ssh,sshd")], HERE, "mpirun"),
    "the node has them": (mpi(), [node(programs=EVERYTHING)], "", ""),
    "no node": (mpi(), [], "", ""),
    "a node with an engine": (mpi(), [node(engine="podman 4.3.1")], "", ""),
    "a node whose containers run images": (mpi(), [node(programs=None)], "", ""),
    "pods for simulated nodes": (mpi(ON_SIMULATED), [node()], "", ""),
    "a taint": (mpi(), [node(taints=[{"key": "a", "value": "b", "effect": "NoSchedule"}])], "", ""),
    "a cordoned node": (mpi(), [node(unschedulable=True)], "", ""),
    "a node that is silent": (mpi(), [node(ready="Unknown")], "", ""),
    "pods that name another node": (mpi({"nodeName": "other"}), [node()], "", ""),
    "affinity": (mpi(AFFINITY), [node()], "", ""),
    "no pods": (job(task("master", 0), task("worker", 0), plugins={"mpi": []}), [node()], "", ""),
    "a search path of their own": (mpi(containers(env=[{"name": "PATH", "value": "/opt"}])), [node()], "", ""),
    "a search path in the script": (mpi(containers(args=["export PATH=/opt:$PATH; x"])), [node()], "", ""),
    "a path of their own": (mpi(containers(args=["/opt/mpi/bin/mpirun x"])), [node(programs="ssh,sshd")], "", ""),
    "no container in which ray is started": (job(task("head"), task("worker"), plugins={"ray": []}), [node()], "", ""),
    "plugins that need no program": (job(plugins={"svc": [], "env": [], "pytorch": []}), [node()], "", ""),
})  # fmt: skip
def test_a_program_that_a_node_lacks_is_said_with_the_node_and_the_remedy(obj, nodes, who, programs):
    found = [text for text in admission.warn(defaulted(obj), None, Machines(*nodes)) if INSTALL in text]
    needed = [(program, *PACKAGES[program]) for program in programs.split()]
    assert found == [
        f"spec.plugins[{plugin}]: {who} no {program}, {INSTALL} {package} there." for program, plugin, package in needed
    ]


def test_a_job_whose_plugins_need_no_program_asks_for_no_nodes():
    view = Machines(node())
    warnings(job(plugins={name: [] for name in PLUGINS.keys() - {"mpi", "ssh", "ray"}}), view)
    assert view.reads == 0


def test_of_a_job_that_does_not_change_no_program_is_said():
    old = defaulted(ray())
    assert warnings(old, Machines(node()), old) == {}


# ---- tasks that wait for each other

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
