"""The jobs that the design of Volcano Jobs prints, as it prints them: accepted, and carried out to what they ask for.

Their images do not exist. As they are they end, and say why. With a command in each container, which is the remedy that
they are told, their pods run and their policies act: it tries the manifests, not TensorFlow, Spark or MPI.
"""

import json
import re

import pytest

from kube.resources import EVENTS
from proof.harness.waiting import until
from proof.systems import seed
from tests.system import drill
from tests.tables import cases

pytestmark = [pytest.mark.system, pytest.mark.both_modes]
ENDLESS = ["sh", "-c", "exec sleep 3600"]

MANIFESTS = {
    "tf-job of several templates": (seed.TEMPLATES, 7, 7, 0),
    "tf-job that restarts": (seed.TF_JOB, 6, 6, 3),
    "spark-job whose driver restarts it": (seed.SPARK_JOB, 6, 6, 3),
    "tf-job with a minimum": (seed.GANG, 6, 6, 0),
    "spark-job with priorities": (seed.PRIORITY, 6, 3, 0),
    "mpi-job": (seed.PLUGINS, 3, 2, 0),
}
NAMES = ("tf-job", "spark-job", "mpi-job")


@pytest.fixture(scope="module")
def api(system, tmp_path_factory):
    with drill.client(system.cluster, tmp_path_factory.mktemp("kubeconfig")) as client:
        yield client


def with_command(text, command):
    """Return a manifest with a command below each image."""
    return re.sub(r"^( *)image: .*$", rf"\g<0>\n\1command: {json.dumps(command)}", text, flags=re.MULTILINE)


@pytest.fixture(autouse=True)
def _nothing_left(person, watcher):
    """Delete what a test submitted, as the next job may have its name."""
    yield
    for name in NAMES:
        if watcher.job(name) is not None:
            person.post(f"/jobs/default/{name}/delete/")
            until(lambda name=name: watcher.job(name) is None, what="the end of the job")


def events_of(watcher, name):
    found = [each.object for each in watcher.store.find(EVENTS, namespace="default")]
    return [each["message"] for each in found if each["involvedObject"]["name"] == name]


@cases("text, pods, minimum, retries", MANIFESTS)
def test_manifest_as_printed_says_what_is_missing(person, watcher, cluster, system, text, pods, minimum, retries):
    name = person.create(text)
    done = watcher.reaches(name, "Failed")
    assert done["spec"]["minAvailable"] == minimum
    status, made = done["status"], watcher.pods(name)
    names = {f"{name}-{task['name']}-{index}" for task in done["spec"]["tasks"] for index in range(task["replicas"])}
    # Elsewhere pods start one by one, and the first that fails ends the others.
    least = pods if cluster is system or not retries else 1
    assert len(names) == pods
    assert made.keys() == names if least == pods else made.keys() <= names
    assert least <= status["failed"] <= pods
    assert status.get("retryCount", 0) == retries
    containers = [each["name"] for task in done["spec"]["tasks"] for each in task["template"]["spec"]["containers"]]
    remedies = [f"give container {container} a command" for container in containers]
    if least == pods:  # otherwise it is a container of whichever pod was first
        del remedies[1:]
    assert any(each in status["state"]["message"] for each in remedies), status
    until(lambda: any(each in message for each in remedies for message in events_of(watcher, name)))
    ended = [pod["status"] for pod in made.values() if pod["status"]["phase"] == "Failed"]
    assert {each["reason"] for each in ended} == {"NoCommand"}
    assert len(ended) >= least


def evict(api, pod):
    path = f"/api/v1/namespaces/default/pods/{pod}"
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}}
    answer = api.post(f"{path}/eviction", json=eviction)
    assert answer.status_code == 201, answer.text


def uids(watcher, name):
    """Return the uids of a job's pods by name, once all that it wants run."""
    wanted = sum(task["replicas"] for task in watcher.job(name)["spec"]["tasks"])

    def all_run():
        pods = watcher.pods(name)
        phases = [pod["status"]["phase"] for pod in pods.values() if not pod["metadata"].get("deletionTimestamp")]
        return phases.count("Running") == wanted and {each: pod["metadata"]["uid"] for each, pod in pods.items()}

    return until(all_run, what=lambda: f"all pods of {name} ({watcher.story(name)})")


@cases("text, victim, event", {
    # Of the events that * means, the end of its process comes before its own.
    "tf-job": (seed.TF_JOB, "tf-job-worker-3", "PodFailed"),
    "spark-job": (seed.SPARK_JOB, "spark-job-driver-0", "PodFailed"),
    "mpi-job": (seed.PLUGINS, "mpi-job-mpiworker-1", "PodEvicted"),
})  # fmt: skip
def test_evicted_pod_restarts_the_whole_job(person, watcher, api, text, victim, event):
    name = person.create(with_command(text, ENDLESS))
    before = uids(watcher, name)
    evict(api, victim)
    until(lambda: watcher.job(name)["status"].get("retryCount") == 1, what="the restart")
    after = uids(watcher, name)
    assert before.keys() == after.keys()
    assert not set(before.values()) & set(after.values())
    done = [each for each in events_of(watcher, name) if "RestartJob" in each]
    assert any(event in each and victim in each for each in done), events_of(watcher, name)


def test_executor_that_fails_starts_again_in_its_pod_and_one_that_is_evicted_is_made_again(person, watcher, api):
    """The driver's task has a policy, the executors' has none: the job goes on."""
    once = "mkdir begun 2>/dev/null && case $HOSTNAME in *executor-1) exit 3;; esac; exec sleep 3600"
    name = person.create(with_command(seed.SPARK_JOB, ["sh", "-c", once]))
    before, victim = uids(watcher, name), "spark-job-executor-2"

    def restarted():
        (status,) = watcher.pods(name)["spark-job-executor-1"]["status"]["containerStatuses"]
        return status["restartCount"] == 1 and "running" in status["state"] and status

    ended = until(restarted, what="the restart of the container")["lastState"]["terminated"]
    assert ended["exitCode"] == 3
    assert uids(watcher, name) == before
    evict(api, victim)
    until(lambda: watcher.pods(name).get(victim, {"metadata": before})["metadata"].get("uid") != before[victim])
    after = uids(watcher, name)
    assert {each for each in before if before[each] != after[each]} == {victim}
    assert not watcher.job(name)["status"].get("retryCount")
