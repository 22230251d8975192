"""Our controllers and scheduler on a cluster that has an API of its own: a system that works on another one."""

import os
import signal
from collections import Counter

import pytest

from cluster.remote import outbox
from cluster.remote.connection import Connection
from cluster.remote.http import paths, target
from cluster.store import Create, Delete
from kube.resources import COMMANDS, CRON_JOBS, EVENTS, JOB_FLOWS, JOB_TEMPLATES, JOBS, PODS
from proof import invariants
from proof.harness.proxy import CuttingProxy
from proof.harness.waiting import until
from proof.systems.system import System, running
from proof.systems.work import Person, held, job, shell
from tests.builders import of, pod
from tests.system.pair import BARE, here, in_place, kubeconfig, person, strip, there

__all__ = ["here", "kubeconfig", "person", "there"]  # fixtures
pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """The cluster: an API server, an agent, and the controllers that Kubernetes has itself."""
    with running(tmp_path_factory.mktemp("first") / "data", **BARE) as started:
        yield started


@pytest.fixture(scope="module")
def proxy(first):
    """The network between the two."""
    with CuttingProxy(first.api_port) as between:
        yield between


@pytest.fixture(scope="module")
def second(first, proxy, kubeconfig, tmp_path_factory):
    """The system that works on it."""
    config = tmp_path_factory.mktemp("by-proxy") / "config"
    config.write_text(kubeconfig.read_text().replace(f":{first.api_port}", f":{proxy.port}"))
    with running(tmp_path_factory.mktemp("second") / "data", **in_place(config)) as started:
        yield started


def test_only_controllers_of_kubernetes_run_there(first, second):
    theirs = {"redis", "web", "controllers", "beat", "apiserver", "agent"}
    ours = {"redis", "web", "jobs", "controllers", "scheduler", "beat", "mirror"}
    # One that was killed before may be about to come back.
    for system, wanted in ((first, theirs), (second, ours)):
        until(
            lambda system=system, wanted=wanted: set(system.children()) == wanted,
            what=lambda system=system: system.children(),
        )


def test_flow_and_cron_job_make_their_jobs(kubeconfig, second, there, tmp_path):
    """Of objects that clients of the cluster create."""
    connection = Connection.of(target.find(str(kubeconfig), ""), tmp_path / "certificates")

    def create(kind, name, **spec):
        connection.request("POST", paths.collection(kind, "default"), body=of(kind, name, **spec))

    spec = job("any", shell("true"))["spec"]
    create(CRON_JOBS, "minutely", schedule="* * * * *", jobTemplate={"spec": spec})
    for name in ("one", "two"):
        create(JOB_TEMPLATES, name, **spec)
    create(JOB_FLOWS, "line", flows=[{"name": "one"}, {"name": "two", "dependsOn": {"targets": ["one"]}}])
    there.reaches("line-one", "Completed")
    there.reaches("line-two", "Completed")
    made = until(lambda: there.store.find(JOBS, text="minutely-"), what="the first minute")
    there.reaches(made[0].name, "Completed")


def test_nothing_is_lost_nor_doubled_however_often_who_works_is_killed(second, person, here, there, tmp_path):
    ran = tmp_path / "out" / "ran"
    names = [f"killed-{number}" for number in range(12)]
    for number, name in enumerate(names):
        person.create(job(name, telling(ran, 1 + number % 3)))
        kill_while_sending(second, here, ("jobs/", "scheduler/", "queues/")[number % 3])
    check(names, ran, here, there)


def test_nothing_is_lost_nor_doubled_when_connections_are_cut(proxy, first, second, here, there, tmp_path):
    ran = tmp_path / "out" / "ran"
    names = [f"cut-{number}" for number in range(6)]
    before = proxy.cuts
    proxy.cutting = True
    try:
        with Person(first) as other:
            for number, name in enumerate(names):
                other.create(job(name, telling(ran, 1 + number % 3)))
                there.reaches(name, "Completed", "Failed")
    finally:
        proxy.cutting = False
    assert proxy.cuts > before + 6
    check(names, ran, here, there)


def telling(file, replicas):
    """A task whose pods write down who they are."""
    found = shell(f'echo "$POD" >> {file}; sleep 0.2', sees=file.parent, replicas=replicas)
    (container,) = found["template"]["spec"]["containers"]
    container["env"] = [{"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}}]
    return found


def check(names, ran, here, there):
    """Each job has run once and whole."""
    for number, name in enumerate(names):
        status = there.reaches(name, "Completed", "Failed")["status"]
        assert (status["state"]["phase"], status.get("succeeded")) == ("Completed", 1 + number % 3)
    ran = Counter(ran.read_text().split())
    assert set(ran.values()) == {1}, "a pod ran twice"
    assert len(ran) == sum(1 + number % 3 for number in range(len(names))), "a pod was made twice"
    until(lambda: not outgoing(here), what="the last answer")
    judged(there)


def judged(watcher):
    """Hold the cluster's log against all that must be true of it."""
    changes = watcher.everything()
    invariants.check(changes, by_requests=True)
    taken = [each for each in changes if each.resource == COMMANDS.id and each.verb == "DELETED"]
    events = [each for each in changes if each.resource == EVENTS.id and each.verb == "ADDED"]
    issued = [each for each in events if each.object.get("reason") == "CommandIssued"]
    assert len(taken) == len(issued), "a Command is carried out once"


def outgoing(watcher):
    """The cursors of the plans that are written down and not done."""
    return set(outbox.cursors(watcher.store.using))


def kill_while_sending(system, watcher, cursors):
    """Kill the worker of a plan that is on its way."""
    begun = lambda: next((each for each in outgoing(watcher) if each.startswith(cursors)), "")  # noqa: E731
    queue, _, shard = until(begun, every_s=0.001, what="a plan").partition("/")
    program = {"queues": "controllers"}.get(queue, queue if shard == "0" else f"{queue}-{shard}")
    os.kill(until(lambda: system.children().get(program), what="its process"), signal.SIGKILL)


def test_who_works_gives_way_to_volcano_and_says_so(person, there):
    """To a pod of its scheduler, which no node takes here; by its Lease: tests/cluster/remote/test_leading.py."""
    theirs = {"namespace": "kube-system", "labels": {"app": "volcano-scheduler"}, "schedulerName": "nobody"}
    there.store.write(Create(PODS, pod("volcano-scheduler", **theirs)))
    until(lambda: "Volcano's own controllers or scheduler work there" in strip(person), what="the word")
    person.create(job("hindered", shell("true")))
    assert "VOLCANO_UI_WAY" in strip(person)
    there.store.write(Delete(PODS, "kube-system", "volcano-scheduler"))
    there.reaches("hindered", "Completed")
    until(lambda: "of these pages work there" in strip(person), what="the word that it works again")


def test_another_installation_stands_by_and_goes_on_when_the_first_is_gone(
    second, person, there, kubeconfig, go, tmp_path
):
    third = System(tmp_path / "data", **in_place(kubeconfig))
    try:
        third.start()
        with Person(third) as other:
            until(lambda: "Another installation" in strip(other), what="the word who works")
            person.create(job("handed", held(go, terminationGracePeriodSeconds=0)))
            there.reaches("handed", "Running")
            second.stop()
            go.touch()
            there.reaches("handed", "Completed", "Failed")
            until(lambda: "of these pages work there" in strip(other), what="the word that it works")
            other.create(job("afterwards", shell("true")))
            there.reaches("afterwards", "Completed")
        judged(there)
    finally:
        third.stop()
        if second.process.poll() is not None:
            second.start()
    third.assert_gone()
