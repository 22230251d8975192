"""The jobs that the design of Volcano Jobs prints, as it prints them: accepted, and carried out to what they ask for.

Their images do not exist, and are not used on this machine. As they are they
end, and say why. With a command in each container, which is the remedy that
they are told, their pods run and their policies act; these commands stand in
for the programs of the images and try the manifests, not TensorFlow, Spark or
MPI. Those run in tests/programs.
"""

from __future__ import annotations

import json
import re
import ssl
import subprocess
import sys

import httpx
import pytest
import yaml

from jobs.editor import job_text
from kube.resources import EVENTS
from proof.harness.waiting import HANG_S, until
from proof.systems import seed
from proof.systems.system import PROJECT

pytestmark = [pytest.mark.system, pytest.mark.both_modes]
ENDLESS = ["sh", "-c", "exec sleep 3600"]
JOBS_PATH = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"

MANIFESTS = [
    pytest.param(seed.TEMPLATES, 7, 7, 0, id="tf-job of several templates"),
    pytest.param(seed.TF_JOB, 6, 6, 3, id="tf-job that restarts"),
    pytest.param(seed.SPARK_JOB, 6, 6, 3, id="spark-job whose driver restarts it"),
    pytest.param(seed.GANG, 6, 6, 0, id="tf-job with a minimum"),
    pytest.param(seed.PRIORITY, 6, 3, 0, id="spark-job with priorities"),
    pytest.param(seed.PLUGINS, 3, 2, 0, id="mpi-job"),
]
NAMES = ("tf-job", "spark-job", "mpi-job")
NOT_YAML = (seed.TF_JOB, seed.SPARK_JOB)


@pytest.fixture(scope="module")
def api(system):
    """The Kubernetes API as the administrator's kubeconfig opens it."""
    command = [sys.executable, "manage.py", "kubeconfig"]
    text = subprocess.run(command, cwd=PROJECT, env=system.cluster.environment, capture_output=True, check=True).stdout
    token = yaml.safe_load(text)["users"][0]["user"]["token"]
    context = ssl.create_default_context(cafile=str(system.cluster.ca))
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=system.cluster.api, headers=headers, verify=context, timeout=HANG_S) as client:
        yield client


def with_command(text, command):
    """Return a manifest with a command below each image."""
    return re.sub(r"^( *)image: .*$", rf"\g<0>\n\1command: {json.dumps(command)}", text, flags=re.MULTILINE)


def name_of(text):
    return re.search(r"name: (\S+-job)", text)[1]


@pytest.fixture(autouse=True)
def _nothing_left(person, watcher):
    """Delete what a test submitted, as the next job may have its name."""
    yield
    for name in NAMES:
        if watcher.job(name) is not None:
            person.post(f"/jobs/default/{name}/delete/")
            until(lambda name=name: watcher.job(name) is None, what="the end of the job")


def containers(job):
    """Return the names of a job's containers, in the order of its tasks."""
    tasks = (task["template"]["spec"] for task in job["spec"]["tasks"])
    return [container["name"] for spec in tasks for container in spec["containers"]]


def told(watcher, name):
    """Return what the events of a job say."""
    found = [each.object for each in watcher.store.find(EVENTS, namespace="default")]
    return [each["message"] for each in found if each["involvedObject"]["name"] == name]


@pytest.mark.parametrize(("text", "pods", "minimum", "retries"), MANIFESTS)
def test_manifest_as_printed_ends_and_says_what_is_missing(
    person, watcher, cluster, system, text, pods, minimum, retries
):
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
    remedies = [f"give container {container} a command" for container in containers(done)]
    if least == pods:  # otherwise it is a container of whichever pod was first
        del remedies[1:]
    assert any(each in status["state"]["message"] for each in remedies), status
    until(lambda: any(each in message for each in remedies for message in told(watcher, name)))
    ended = [pod["status"] for pod in made.values() if pod["status"]["phase"] == "Failed"]
    assert {each["reason"] for each in ended} == {"NoCommand"}
    assert len(ended) >= least


@pytest.mark.parametrize(("text", "pods", "minimum", "retries"), MANIFESTS)
def test_manifest_is_accepted_by_the_api(person, watcher, api, text, pods, minimum, retries):
    """As printed where that is YAML, and as the editor reads it where it is not."""
    headers = {"Content-Type": "application/yaml"}
    if text in NOT_YAML:
        assert api.post(JOBS_PATH, content=text, headers=headers).status_code == 400
    if text in NOT_YAML or text == seed.PLUGINS:
        answer = api.post(JOBS_PATH, json=job_text.read(text).object)
    else:
        answer = api.post(JOBS_PATH, content=text, headers=headers)
    assert answer.status_code == 201, answer.text
    assert "a command" in str(answer.headers.get_list("warning")), "what is missing is said at once"
    watcher.reaches(name_of(text), "Failed")


def evict(api, pod):
    path = f"/api/v1/namespaces/default/pods/{pod}"
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}}
    answer = api.post(f"{path}/eviction", json=eviction)
    assert answer.status_code == 201, answer.text


def uids(watcher, name):
    """Return the uids of a job's pods by name, once all that it wants run."""
    job = watcher.job(name)
    wanted = sum(task["replicas"] for task in job["spec"]["tasks"])

    def all_run():
        pods = watcher.pods(name)
        runs = [
            pod
            for pod in pods.values()
            if pod["status"]["phase"] == "Running" and not pod["metadata"].get("deletionTimestamp")
        ]
        return len(runs) == wanted and {each: pod["metadata"]["uid"] for each, pod in pods.items()}

    return until(all_run, what=lambda: f"all pods of {name} ({watcher.story(name)})")


@pytest.mark.parametrize(
    ("text", "victim", "event"),
    [
        # Of the events that * means, the end of its process comes before its own.
        pytest.param(seed.TF_JOB, "tf-job-worker-3", "PodFailed", id="tf-job"),
        pytest.param(seed.SPARK_JOB, "spark-job-driver-0", "PodFailed", id="spark-job"),
        pytest.param(seed.PLUGINS, "mpi-job-mpiworker-1", "PodEvicted", id="mpi-job"),
    ],
)
def test_evicted_pod_restarts_the_whole_job(person, watcher, api, text, victim, event):
    name = person.create(with_command(text, ENDLESS))
    before = uids(watcher, name)
    evict(api, victim)
    until(lambda: watcher.job(name)["status"].get("retryCount") == 1, what="the restart")
    after = uids(watcher, name)
    assert before.keys() == after.keys()
    assert not set(before.values()) & set(after.values())
    done = [each for each in told(watcher, name) if "RestartJob" in each]
    assert any(event in each and victim in each for each in done), told(watcher, name)


def test_evicted_executor_is_made_again_and_the_job_goes_on(person, watcher, api):
    """The driver's task has a policy, the executors' has none."""
    name = person.create(with_command(seed.SPARK_JOB, ENDLESS))
    before = uids(watcher, name)
    victim = "spark-job-executor-2"
    evict(api, victim)
    until(lambda: watcher.pods(name).get(victim, {"metadata": before})["metadata"].get("uid") != before[victim])
    after = uids(watcher, name)
    assert {each for each in before if before[each] != after[each]} == {victim}
    assert not watcher.job(name)["status"].get("retryCount")


def test_executor_that_fails_starts_again_in_its_pod(person, watcher):
    once = "mkdir begun 2>/dev/null && case $HOSTNAME in *executor-1) exit 3;; esac; exec sleep 3600"
    name = person.create(with_command(seed.SPARK_JOB, ["sh", "-c", once]))
    before = uids(watcher, name)

    def restarted():
        (status,) = watcher.pods(name)["spark-job-executor-1"]["status"]["containerStatuses"]
        return status["restartCount"] == 1 and "running" in status["state"] and status

    ended = until(restarted, what="the restart of the container")["lastState"]["terminated"]
    assert ended["exitCode"] == 3
    assert uids(watcher, name) == before
    assert not watcher.job(name)["status"].get("retryCount")


def test_pods_of_the_mpi_job_have_what_its_plugins_give(person, watcher):
    look = "cat /etc/volcano/mpiworker.host; echo; echo $VK_TASK_INDEX; ls $VOLUME_MPI_JOB_SSH; exec sleep 3600"
    name = person.create(with_command(seed.PLUGINS, ["sh", "-c", look]))
    uids(watcher, name)

    def log():
        answer = person.get(f"/jobs/default/{name}/log/", pod="mpi-job-mpiworker-1")
        return answer.status_code == 200 and "id_rsa.pub" in answer.text and answer.text.split()

    workers = ["mpi-job-mpiworker-0.mpi-job", "mpi-job-mpiworker-1.mpi-job"]
    assert until(log, what="what a pod sees") == [
        *workers, "1", "authorized_keys", "config", "id_rsa", "id_rsa.pub",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "command", [["spark-submit", "--version"], ["sh", "-c", "spark-submit --version"]], ids=["by itself", "in a shell"]
)
def test_program_that_is_missing_is_named_with_its_node_and_the_remedy(person, watcher, command):
    text = with_command(seed.SPARK_JOB, command)
    name = person.create(re.sub(r"^( *)containers:", r"\1restartPolicy: Never\n\g<0>", text, flags=re.MULTILINE)
                         .replace("        restartPolicy: OnFailure\n", ""))  # fmt: skip
    state = watcher.reaches(name, "Failed")["status"]["state"]
    (node,) = {pod["spec"]["nodeName"] for pod in watcher.pods(name).values()}
    for part in ("spark-submit", "give another command", f"install it on node {node}"):
        assert part in state["message"]
        assert any(part in each for each in told(watcher, name))
