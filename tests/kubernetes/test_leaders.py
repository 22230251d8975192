"""Two installations of ours on one kube-apiserver, of which the one that leads is killed while it binds gangs.

A gate lets as many bindings through as the seed says and holds the others; there the leader is killed with all its
programs. It comes back, who leads then is killed again, and the other one takes over when the Lease is over.
"""

import json
import os
import random
import signal
import sys
from collections import defaultdict

import pytest

from cluster.models import MirroredCluster
from cluster.remote.leader_election import lease
from kube.kinds.pod import ENDED
from kube.quantity import parse
from kube.resources import JOBS, LEASES
from proof.harness.waiting import until
from proof.kubernetes import world
from proof.kubernetes.cluster import PROGRAMS
from proof.kubernetes.program import Program
from proof.systems.parts import kill
from scheduler.gangs.half_bound import GIVEN_BACK
from tests.kubernetes.gate import Gate
from tests.kubernetes.objects import comes_to, release, staying

pytestmark = pytest.mark.system
NAMESPACE = "kube-system"  # of the Lease
GANG, GANGS, CPU = 8, 2, 4  # pods of a gang, gangs of a round, cores of a pod
ROOM = 24  # so many such pods fill the three nodes


@pytest.fixture(scope="module")
def systems(kubernetes, tmp_path_factory):
    """The two installations, each with a database of its own."""
    works = {"VOLCANO_UI_WAY": "in-place", "VOLCANO_UI_LEASE_NAMESPACE": NAMESPACE}
    folder = tmp_path_factory.mktemp("leaders")
    kubernetes.clear(JOBS)  # jobs that other tests left would start among the gangs
    with (
        world.showing(folder / "one", kubernetes.config, **works) as one,
        world.showing(folder / "other", kubernetes.config, **works) as other,
    ):
        yield one, other
        kubernetes.clear(JOBS)
        until(lambda: not kubernetes.get("pods", "-l", "volcano.sh/job-name")["items"], what="the end of all")


@pytest.fixture
def gate(kubernetes):
    with Gate(kubernetes, "gang-") as webhook:
        yield webhook


@pytest.fixture
def told(kubernetes, tmp_path):
    """What the cluster tells of all pods while a test runs: a function that returns the changes so far."""
    version = json.loads(kubernetes.kubectl("get", "--raw", "/api/v1/pods?limit=1"))["metadata"]
    path = f"/api/v1/pods?watch=1&resourceVersion={version['resourceVersion']}&timeoutSeconds=3600"
    command = [PROGRAMS["kubectl"], f"--kubeconfig={kubernetes.config}", "get", "--raw", path]
    watch = Program("watch", command, tmp_path)
    watch.start()
    yield lambda: [json.loads(line) for line in watch.log.read_text().rpartition("\n")[0].splitlines()]
    watch.stop(signal.SIGKILL)


@pytest.mark.parametrize("room", ["free", "taken"])
def test_gangs_are_whole_and_jobs_end_however_often_the_leader_is_killed(room, kubernetes, systems, gate, told):
    """Where pods of Kubernetes' own scheduler have taken the room meanwhile, half a gang gives back what it holds."""
    names = [f"gang-{room}-{number}" for number in range(GANGS)]
    first, second = moments()
    gate.let_through(first)
    kubernetes.make(JOBS, [staying(name, replicas=GANG, cpu=str(CPU)) for name in names])
    stopped_amid(kubernetes, gate, names, first)
    leader = leading(kubernetes, systems)
    kill(leader)
    gate.let_through(second - first)
    leader.start()
    holders = stopped_amid(kubernetes, gate, names, second)
    leader = leading(kubernetes, systems)  # who came back, unless that took longer than the Lease lasts
    if room == "taken":
        intrude(kubernetes, ROOM - second)
    kill(leader)
    gate.open()
    until(lambda: leading(kubernetes, systems) is not leader, every_s=0.2, what="another leader")
    leader.start()
    if room == "taken":
        reasons = lambda: {each["reason"] for each in kubernetes.get("events")["items"]}  # noqa: E731
        until(lambda: GIVEN_BACK in reasons(), every_s=0.2, what="that the nodes are given back")
        kubernetes.kubectl("delete", "deployment", "intruders")
    all_end(kubernetes, names)
    made = uids(told())
    assert {name for name, many in made.items() if len(many) > 1} == (holders if room == "taken" else set())
    assert made.keys() == {f"{name}-main-{number}" for name in names for number in range(GANG)}
    assert_room(kubernetes, told())


def moments():
    """After how many bindings the leader is killed, twice: in each the first gang at least is a half one."""
    seed = int(os.environ.get("KILL_SEED") or random.SystemRandom().randrange(10**6))
    sys.stdout.write(f"KILL_SEED={seed}\n")  # shown where the test fails
    return sorted(random.Random(seed).sample(range(1, GANG), 2))


def stopped_amid(kubernetes, gate, names, number):
    """Wait until so many pods have nodes and others wait at the gate; return the names of those that have."""
    until(lambda: len(holding(kubernetes, names)) == number and gate.held, what=f"{number} bindings")
    return holding(kubernetes, names)


def bound(kubernetes, selector):
    """The names of pods that have nodes."""
    found = kubernetes.get("pods", "-l", selector)["items"]
    return {each["metadata"]["name"] for each in found if each["spec"].get("nodeName")}


def holding(kubernetes, names):
    return bound(kubernetes, f"volcano.sh/job-name in ({','.join(names)})")


def leading(kubernetes, systems):
    """The installation that the Lease names."""
    holder = kubernetes.get(LEASES.id, lease.NAME, "-n", NAMESPACE)["spec"]["holderIdentity"]
    for each in systems:
        with each.store() as store:
            if MirroredCluster.objects.using(store.using).get().identity == holder:
                return each
    raise AssertionError(f"{holder} is none of them")


def intrude(kubernetes, room):
    """Have Kubernetes' own scheduler fill what room there is; more of its pods wait for more."""
    kubernetes.kubectl("create", "deployment", "intruders", "--image=any", "--replicas=0")
    kubernetes.kubectl("set", "resources", "deployment", "intruders", f"--requests=cpu={CPU}")
    kubernetes.kubectl("scale", "deployment", "intruders", f"--replicas={ROOM}")
    until(lambda: len(bound(kubernetes, "app=intruders")) == room, what="that the room is taken")


def all_end(kubernetes, names):
    """Jobs start whole, and are Completed when their pods are let go."""
    for name in names:
        comes_to(kubernetes, name, "Running")
    until(lambda: len(holding(kubernetes, names)) == GANG * GANGS, what="nodes of all pods")
    for name in names:
        release(kubernetes, name)
        comes_to(kubernetes, name, "Completed")
        assert kubernetes.get(JOBS.id, name)["status"]["succeeded"] == GANG


def uids(changes):
    """The uids that pods of the gangs have had, by name."""
    found = defaultdict(set)
    for change in changes:
        metadata = change["object"]["metadata"]
        if metadata["name"].startswith("gang-"):
            found[metadata["name"]].add(metadata["uid"])
    return found


def assert_room(kubernetes, changes):
    """At no moment have the pods of a node requested more cores than it has."""
    nodes = {each["metadata"]["name"]: each for each in kubernetes.get("nodes")["items"]}
    cores = {name: parse(node["status"]["allocatable"]["cpu"]) for name, node in nodes.items()}
    held = {}  # uid → node and cores
    for change in changes:
        pod = change["object"]
        uid, node = pod["metadata"]["uid"], pod["spec"].get("nodeName")
        if change["type"] == "DELETED" or pod["status"].get("phase") in ENDED or not node:
            held.pop(uid, None)
            continue
        requests = (each["resources"].get("requests", {}) for each in pod["spec"]["containers"])
        held[uid] = node, sum(parse(each.get("cpu", 0)) for each in requests)
        used = sum(amount for where, amount in held.values() if where == node)
        assert used <= cores[node], f"{node} has pods of {used} cores at {pod['metadata']['name']}"
