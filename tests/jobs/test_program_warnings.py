"""What is said of a job whose plugins need programs that nodes do not have: rows that are spoken of, and rows that are left alone."""

from __future__ import annotations

import copy

import pytest

from cluster.rules.simulation import SIMULATED
from jobs.plugins.table import PLUGINS
from jobs.rules import admission
from tests.jobs.builders import Cluster, container, defaulted, job, task

NOTHING, EVERYTHING = "", "mpirun,ray,ssh,sshd"
CORDON = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}


class Machines(Cluster):
    """A cluster with nodes."""

    def __init__(self, *nodes):
        super().__init__()
        self.nodes = nodes
        self.asked = 0

    def machines(self):
        self.asked += 1
        return copy.deepcopy(list(self.nodes))


def node(name="here", programs=NOTHING, labels=None, ready="True", engine="", **spec):
    """A node; None for programs: it says nothing of them."""
    annotations = {} if programs is None else {"ui.volcano.sh/programs": programs}
    if engine:
        annotations["ui.volcano.sh/engine"] = engine
    return {
        "metadata": {"name": name, "labels": labels or {}, "annotations": annotations},
        "spec": spec,
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    }


def mpi(pod=None, **plugins):
    return job(task("master", pod=pod), task("worker", 2, pod=pod), plugins={"mpi": [], **plugins})


def as_processes(obj):
    for each in obj["spec"]["tasks"]:
        each["template"]["metadata"] = {"annotations": {"ui.volcano.sh/runtime": "process"}}
    return obj


def ray(pod=None, worker="worker"):
    head = {"containers": [container("head")], **(pod or {})}
    return job(
        task("head", pod=head), task(worker, pod={**head, "containers": [container("worker")]}), plugins={"ray": []}
    )  # fmt: skip


def told(obj, *nodes):
    """What is said of programs: (plugin, sentence) in the order in which it is said."""
    found = admission.warn(defaulted(obj), None, Machines(*nodes))
    split = [text.removeprefix("spec.plugins[").split("]: ", 1) for text in found if WHY in text]
    return [(plugin, sentence) for plugin, sentence in split]


WHY = "and containers run the programs of their node, whatever their image; install"
NO_SSH = ("ssh", f"node here has no ssh, {WHY} Debian's openssh-client there.")
NO_SSHD = ("ssh", f"node here has no sshd, {WHY} Debian's openssh-server there.")
NO_MPIRUN = ("mpi", f"node here has no mpirun, {WHY} Debian's openmpi-bin there.")
NO_RAY = ("ray", f"node here has no ray, {WHY} the Python package ray[default] there.")


@pytest.mark.parametrize(
    ("obj", "nodes", "sentences"),
    [
        pytest.param(job(plugins={"ssh": []}), [node()], [NO_SSH, NO_SSHD], id="ssh"),
        pytest.param(job(plugins={"ssh": []}), [node(programs="ssh")], [NO_SSHD], id="ssh without a server"),
        pytest.param(mpi(), [node()], [NO_SSH, NO_SSHD, NO_MPIRUN], id="mpi brings ssh"),
        pytest.param(mpi(), [node(engine="none: not installed")], [NO_SSH, NO_SSHD, NO_MPIRUN], id="no engine"),
        pytest.param(as_processes(ray()), [node(engine="podman 4.3.1")], [NO_RAY], id="processes beside an engine"),
        pytest.param(mpi(), [node(programs="ssh,sshd")], [NO_MPIRUN], id="mpi"),
        pytest.param(ray(), [node()], [NO_RAY], id="ray"),
        pytest.param(ray(), [node(programs="xray,rays")], [NO_RAY], id="programs of like names"),
        pytest.param(ray(), [node(), node("there", EVERYTHING), node("sim", None)], [NO_RAY], id="one node of several"),
        pytest.param(
            ray(), [node("b"), node("a")], [("ray", NO_RAY[1].replace("node here has", "nodes a and b have"))], id="two nodes"
        ),
        pytest.param(
            ray(), [node(name) for name in "dcba"], [("ray", NO_RAY[1].replace("node here has", "4 nodes, such as a, have"))], id="many nodes"
        ),
        pytest.param(ray({"nodeName": "here"}), [node(ready="False"), node("b")], [NO_RAY], id="the node that pods name"),
        pytest.param(ray({"nodeSelector": {"a": "b"}}), [node(labels={"a": "b"}), node("other")], [NO_RAY], id="the node that pods select"),
        pytest.param(ray({"tolerations": [CORDON]}), [node(unschedulable=True)], [NO_RAY], id="a cordoned node that pods bear"),
        pytest.param(
            mpi({"containers": [container(command=["sh", "-c", "exec /usr/sbin/sshd -D"])]}), [node(programs="ssh,mpirun")], [NO_SSHD],
            id="the path of the system's program",
        ),
        pytest.param(
            mpi({"containers": [container(command=["/opt/bin/mpirun-wrapper"])]}), [node(programs="ssh,sshd")], [NO_MPIRUN],
            id="the path of another program",
        ),
    ],
)  # fmt: skip
def test_a_program_that_a_node_lacks_is_said_with_the_node_and_the_remedy(obj, nodes, sentences):
    assert told(obj, *nodes) == sentences


LEFT_ALONE = [
    pytest.param(mpi(), [node(programs=EVERYTHING)], id="the node has them"),
    pytest.param(mpi(), [], id="no node"),
    pytest.param(mpi(), [node(engine="podman 4.3.1")], id="a node with an engine"),
    pytest.param(mpi(), [node(programs=None)], id="a node whose containers run images"),
    pytest.param(mpi({"nodeSelector": {SIMULATED: "true"}}), [node()], id="pods for simulated nodes"),
    pytest.param(mpi(), [node(taints=[{"key": "a", "value": "b", "effect": "NoSchedule"}])], id="a taint"),
    pytest.param(mpi(), [node(unschedulable=True)], id="a cordoned node"),
    pytest.param(mpi(), [node(ready="Unknown")], id="a node that is silent"),
    pytest.param(mpi({"nodeName": "other"}), [node()], id="pods that name another node"),
    pytest.param(mpi({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}}}), [node()], id="affinity"),
    pytest.param(job(task("master", 0), task("worker", 0), plugins={"mpi": []}), [node()], id="no pods"),
    pytest.param(mpi({"containers": [container(env=[{"name": "PATH", "value": "/opt"}])]}), [node()], id="a search path of their own"),
    pytest.param(mpi({"containers": [container(args=["export PATH=/opt:$PATH; x"])]}), [node()], id="a search path in the script"),
    pytest.param(
        mpi({"containers": [container(command=["sh", "-c", "/opt/mpi/bin/mpirun x"])]}), [node(programs="ssh,sshd")], id="a path of their own"
    ),
    pytest.param(
        job(task("head"), task("worker"), plugins={"ray": []}), [node()], id="no container in which ray is started"
    ),
    pytest.param(job(plugins={"svc": [], "env": [], "pytorch": []}), [node()], id="plugins that need no program"),
]  # fmt: skip


@pytest.mark.parametrize(("obj", "nodes"), LEFT_ALONE)
def test_left_alone(obj, nodes):
    assert told(obj, *nodes) == []


def test_a_job_whose_plugins_need_no_program_asks_for_no_nodes():
    view = Machines(node())
    admission.warn(defaulted(job(plugins={name: [] for name in PLUGINS.keys() - {"mpi", "ssh", "ray"}})), None, view)
    assert view.asked == 0


def test_a_change_is_told_only_what_it_brings():
    view = Machines(node())
    old = defaulted(ray())
    assert admission.warn(copy.deepcopy(old), old, view) == []
