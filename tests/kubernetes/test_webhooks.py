"""Our rules, asked by a kube-apiserver: what kubectl is told, what is filled in, and what happens while nobody answers."""

import html
import json

import pytest

from cluster.remote.door import calls
from cluster.remote.http.request import MANAGER
from cluster.remote.webhooks import hooks
from kube.errors import InternalError
from kube.resources import COMMANDS, JOBS, QUEUES
from proof.harness.ports import free_port
from proof.harness.waiting import until
from proof.kubernetes import world
from proof.kubernetes.cluster import DEPLOY
from proof.kubernetes.webhooks import CONFIGURATIONS, forget, queue
from proof.systems.parts import stopped
from proof.systems.work import Person, job, shell
from tests.builders import owner
from tests.kubernetes.objects import comes_to, refused, there
from tests.kubernetes.test_deploy import ACCOUNT, NAMESPACE, USER

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def system(kubernetes, tmp_path_factory):
    """A system that works on the cluster and answers its API server, with the rights that deploy/kubernetes gives."""
    kubernetes.kubectl("apply", "-k", DEPLOY / "in-place")
    config = kubernetes.account_kubeconfig(NAMESPACE, ACCOUNT)
    port = free_port()
    variables = {"VOLCANO_UI_WEBHOOKS": f"127.0.0.1:{port}", "VOLCANO_UI_WEBHOOK_PORT": str(port)}
    with world.showing(tmp_path_factory.mktemp("webhooks"), config, VOLCANO_UI_WAY="in-place", **variables) as running:
        world.live(running)
        until(lambda: is_published(kubernetes), what="that the API server is told of the webhooks")
        yield running
        until(lambda: not kubernetes.get(COMMANDS.id)["items"], what="that each Command is carried out")
    forget(kubernetes, "one-file", "asked-about")
    kubernetes.kubectl("delete", "deployment", "volcano-ui", "-n", NAMESPACE)
    until(lambda: not kubernetes.get("pods", "-n", NAMESPACE)["items"], what="the end of its pod")
    bindings = ("volcano-ui-changes", "volcano-ui-works", "volcano-ui-webhooks")
    kubernetes.kubectl("delete", "clusterrolebinding", *bindings)
    kubernetes.clear(JOBS)


def is_published(kubernetes):
    return all(kubernetes.get(plural, hooks.NAME).get("webhooks") for plural in CONFIGURATIONS)


def create(kubernetes, obj, *options):
    """Create an object as who sits at a terminal; return what kubectl prints."""
    return kubernetes.kubectl("create", "-f", "-", *options, stdin=json.dumps(obj))


def complaint(kubernetes, obj):
    """Return what kubectl complains of when an object is created."""
    return kubernetes.kubectl.fails("create", "-f", "-", stdin=json.dumps(obj))


def test_wrong_job_is_refused_with_each_cause(kubernetes, system):
    wrong = job("wrong", {**shell("true"), "minAvailable": 3}, queue="none", plugins={"nope": []})
    message = complaint(kubernetes, wrong)
    assert 'The Job "wrong" is invalid' in message
    for cause in (
        "spec.tasks[0].minAvailable: Invalid value: 3: 'minAvailable' is greater than 'replicas' in task main",
        'spec.queue: Invalid value: "none": unable to find job queue: queue none not found; choose one that exists.',
        'spec.plugins[nope]: Invalid value: "nope": unable to find job plugin nope',
    ):
        assert cause in message


def test_what_a_job_leaves_open_is_filled_in_and_it_runs_to_its_end(kubernetes, system):
    before = len(kubernetes.requests_by(USER))
    plain = job("plain", shell("true"), plugins={"mpi": ["--master=main"]})
    del plain["spec"]["minAvailable"]
    create(kubernetes, plain)
    spec = kubernetes.get(JOBS.id, "plain")["spec"]
    assert (spec["queue"], spec["minAvailable"], spec["maxRetry"]) == ("default", 1, 3)
    assert set(spec["plugins"]) == {"mpi", "svc", "ssh"}
    with Person(system) as person:
        person.create(job("formed", shell("true")))
    for name in ("plain", "formed"):
        comes_to(kubernetes, name, "Completed")
    assert refused(kubernetes.requests_by(USER)[before:]) == []


def test_queue_and_job_of_one_file_are_taken(kubernetes, system):
    """The job comes before the mirror has heard of its queue."""
    both = [queue("one-file", weight=2), job("of-one-file", shell("true"), queue="one-file")]
    create(kubernetes, {"apiVersion": "v1", "kind": "List", "items": both})
    made = kubernetes.get(QUEUES.id, "one-file")["spec"]
    assert (made["weight"], made["parent"], made["reclaimable"]) == (2, "root", True)
    comes_to(kubernetes, "of-one-file", "Completed")


def test_queue_is_closed_before_it_is_deleted(kubernetes, system):
    create(kubernetes, queue("team"))
    create(kubernetes, queue("below", parent="team"))
    assert "close it first and wait until it is empty" in kubernetes.kubectl.fails("delete", QUEUES.id, "team")
    assert "the cluster needs it" in kubernetes.kubectl.fails("delete", QUEUES.id, "default")
    with Person(system) as person:
        until(lambda: person.get("/queues/team/").status_code == 200, what="the queue in the mirror")
        answer = person.post("/queues/team/delete/")
        assert "close it first and wait until it is empty" in person.get(answer.headers["location"]).text
    for name in ("team", "below"):
        kubernetes.kubectl("patch", QUEUES.id, name, "--type=merge", "-p", '{"spec": {"state": "Closed"}}')
        until(lambda name=name: state(kubernetes, name) == "Closed", what=f"that {name} is closed")
    late = job("late", shell("true"), queue="below")
    assert "status is `Closed`; open it or choose another" in complaint(kubernetes, late)
    assert "it has 1 child queues: below" in kubernetes.kubectl.fails("delete", QUEUES.id, "team")
    kubernetes.kubectl("delete", QUEUES.id, "below")
    until(lambda: "deleted" in kubernetes.kubectl.run("delete", QUEUES.id, "team").stdout, what="the end of the queue")


def state(kubernetes, name):
    return (there(kubernetes, QUEUES, name).get("status") or {}).get("state")


def test_while_nobody_answers_only_volcanos_kinds_are_held_up(kubernetes, system):
    create(kubernetes, job("there", shell("true")))
    there = kubernetes.get(JOBS.id, "there")
    system.stop()
    try:
        message = complaint(kubernetes, job("unasked", shell("true")))
        kubernetes.kubectl("run", "plain-pod", "--image=any")
        kubernetes.kubectl("delete", "pod", "plain-pod", "--wait=false")
        kubernetes.set_status(JOBS.id, "there", {"running": 1})
        metadata = {"generateName": "late-", "namespace": "default"}
        command = {"apiVersion": COMMANDS.api_version, "kind": "Command", "metadata": metadata, "action": "RestartJob"}
        create(kubernetes, {**command, "target": owner(there)})
        ours = kubernetes.kubectl_as(system.environment["VOLCANO_UI_KUBECONFIG"])
        sent = ("create", "-f", "-", f"--field-manager={MANAGER}")
        ours(*sent, stdin=json.dumps(job("sent-from-here", shell("true"))))
        by_hand = ours.fails("create", "-f", "-", stdin=json.dumps(job("by-hand", shell("true"))))
        posing = kubernetes.kubectl.fails(*sent, stdin=json.dumps(job("posing", shell("true"))))
    finally:
        system.start()
        world.live(system)
    for each in (message, by_hand, posing):
        assert 'failed calling webhook "mutatejob.volcano.sh"' in each
    error = calls.unasked("test-cluster", InternalError(message))
    assert "asks the admission webhook mutatejob.volcano.sh about such changes, which does not answer" in error.message
    assert "connection refused), so nothing was changed. Try again" in error.message
    create(kubernetes, job("asked", shell("true")))


def test_page_names_the_webhook_that_does_not_answer(kubernetes, system):
    # The page itself refuses to delete an open queue, and asks nobody.
    create(kubernetes, queue("asked-about", state="Closed"))
    with stopped(system, "webhooks"), system.store() as here, Person(system) as person:
        until(lambda: here.find(QUEUES, name="asked-about", phase="Closed"), what="the closed queue here")
        answer = person.post("/queues/asked-about/delete/")
        page = html.unescape(person.get(answer.headers["location"]).text)
    assert "asks the admission webhook validatequeue.volcano.sh about such changes, which does not answer" in page
    assert "so nothing was changed. Try again in a moment" in page
