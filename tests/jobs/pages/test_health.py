"""What list, page, overview, filter and message say of one job's health, asked together: none contradicts another."""

import itertools
import re

import pytest
from django.contrib.auth.models import User
from django.utils.http import urlencode
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st

from cluster.store import Delete, Patch, store
from cluster.writes import Mirror
from jobs.rules import reasons
from kube import pod_health
from kube.resources import JOBS, POD_GROUPS, PODS
from tests.campaign import examples
from tests.jobs import control
from tests.jobs.pages.job_page import JobPage, words

NUMBERS = itertools.count()
PULL = 'Back-off pulling image "a:1": ErrImagePull: failed to pull image "a:1": manifest unknown'
RUNS = {"running": {"startedAt": "2026-11-20T08:00:00Z"}}
ENDED = {"terminated": {"exitCode": 3, "reason": "Error", "finishedAt": "2026-11-20T08:01:00Z"}}


def waiting(reason, message=""):
    return {"waiting": {"reason": reason, "message": message}}


def misconfigured(message):
    return waiting("CreateContainerConfigError", message)


# Of each cause how a container waits.
CAUSES = {
    "ImageMissing": waiting("ImagePullBackOff", PULL),
    "SecretMissing": misconfigured('secret "nokey" not found'),
    "ConfigMapMissing": misconfigured('configmap "c" has no key "k"'),
    "VolumeMissing": misconfigured('persistentvolumeclaim "x" not found'),
    "DeviceMissing": misconfigured("the device GPU-1, which the pod has, is gone"),
    "ConfigurationWrong": misconfigured("no port named x"),
    "CommandNotStarted": waiting("RunContainerError", "no such file"),
    "CrashLoop": waiting("CrashLoopBackOff", "back-off 20s"), "ContainersEnded": ENDED,
    "ContainerWaits": waiting("SomebodysOwnReason", "it says so"),
}  # fmt: skip
NOT_PULLED = waiting("ErrImagePull", PULL)
STARTS = waiting("ContainerCreating")
states = st.sampled_from([RUNS, STARTS, NOT_PULLED, *CAUSES.values()])


def status_of(phase, *containers):
    named = zip(("main", "side"), containers, strict=False)
    statuses = [{"name": name, "state": state, "lastState": ENDED} for name, state in named]
    return {"phase": phase, "containerStatuses": statuses}


@st.composite
def statuses(draw):
    """A pod's status: each of two containers does something, and the phase is one that a node could write for it."""
    containers = draw(states), draw(states)
    phases = ["Pending", "Running", *(["Failed"] if all("terminated" in each for each in containers) else [])]
    return status_of(draw(st.sampled_from(phases)), *containers)


def runs(status):
    """Whether a container runs and none waits for something, and whether something keeps the pod."""
    states = [each["state"] for each in status["containerStatuses"]]
    waits = any(each.get("waiting", {}).get("reason", "ContainerCreating") != "ContainerCreating" for each in states)
    has_begun, is_on = status["phase"] == "Running", any("running" in each for each in states)
    return has_begun and is_on and not waits, status["phase"] != "Failed" and (waits or (has_begun and not is_on))


def tags(element):
    return [words(tag) for tag in element.xpath(".//span[@class='tag']")]


class JobView:
    def __init__(self, controller, client, pods):
        self.client, self.name = client, f"job-{next(NUMBERS)}"
        others = [(kind, each) for kind in (PODS, POD_GROUPS, JOBS) for each in store.find(kind)]
        store.write(*(Delete(kind, each.namespace, each.name) for kind, each in others))
        control.submit(controller, control.job(self.name, replicas=len(pods)))
        control.admit(controller)
        for number, status in enumerate(pods):
            store.write(Patch(PODS, "default", f"{self.name}-main-{number}", {"status": status}, "status"))
        controller.settle()
        self.status = control.state(self.name)
        self.message = self.status["state"]["message"]
        (row,) = self.rows()
        self.why, self.gang = row[-1].text or "", row[4].text_content()
        head = JobPage(client, self.name).tree.get_element_by_id("job-head")
        self.head, self.row_tags, self.head_tags = words(head), tags(row), tags(head)
        attention = JobPage(client, address="/").tree.get_element_by_id("overview-attention")
        self.attention = [line for line in map(str, attention.xpath(".//li/span/a[last()]/@href")) if self.name in line]

    def rows(self, **query):
        rows = JobPage.of_list(self.client, f"?{urlencode({'q': self.name, **query})}").rows
        return [row for row in rows if row.find("th/a").text == self.name]

    def is_found_by(self, cause):
        return bool(self.rows(cause=cause))


@pytest.fixture
def page_texts(controller, client):
    client.force_login(User.objects.create_superuser("root"))
    return lambda pods: JobView(controller, client, pods)


@examples(200, here=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pods=st.lists(statuses(), min_size=3, max_size=3))
@example(pods=[status_of("Pending", each) for each in (STARTS, CAUSES["SecretMissing"], NOT_PULLED)])
def test_nobody_contradicts_another(page_texts, pods):
    if all(status["phase"] == "Failed" for status in pods):
        return
    view = page_texts(pods)
    running, blocked = map(sum, zip(*map(runs, pods), strict=True))
    assert f"{running} of 3 pods {'is' if running == 1 else 'are'} running" in view.message
    assert f"{running} of 3 needed {'is' if running == 1 else 'are'} running" in view.head
    assert view.gang == f"{running}/3"
    assert view.row_tags == view.head_tags
    assert sum(int(tag.split()[0]) for tag in view.row_tags) == blocked
    cause = view.status.get("waitingReason", "")
    assert (cause in reasons.START_OBSTACLES) == bool(blocked)
    assert bool(view.attention) == bool(blocked)
    of_tag = {text: each for each, text in pod_health.TEXTS.items()}
    causes = {of_tag[tag.split(maxsplit=1)[1]] for tag in view.row_tags}
    assert {each for each in reasons.START_OBSTACLES if store.count(JOBS, cause=each)} == causes
    if blocked:
        assert cause in causes
        assert view.is_found_by(cause)
        assert view.why
        assert view.message.lower().startswith(re.split(r" · |: ", view.why)[0].lower())
        assert view.message in view.head or causes == {"ImageMissing"}


@pytest.mark.parametrize("cause", [*pod_health.Cause])
def test_a_mirrored_job_is_found_by_what_keeps_its_pods_whoever_writes_its_status(cluster, alice, client, cause):
    def mirrored(kind, name, status, **metadata):
        identity = {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": "7"}
        store.write(Mirror(kind, {"metadata": identity | metadata, "status": status}))

    for name in ("kept", "well"):
        mirrored(JOBS, name, {"state": {"phase": "Running"}, "running": 1})
        owner = [{"controller": True, "kind": "Job", "name": name, "uid": f"uid-{name}"}]
        state = RUNS if name == "well" else CAUSES[cause]
        pod_status = {"phase": "Running", "containerStatuses": [{"name": "main", "state": state}]}
        mirrored(PODS, f"{name}-main-0", pod_status, ownerReferences=owner)
    page = JobPage.of_list(client, f"?cause={cause}")
    assert (page.names, tags(page.rows[0])) == (["kept"], [f"1 {pod_health.TEXTS[cause]}"])
    assert "Running 1" in page.text("table-chips")


def test_what_is_mended_is_told_no_more(page_texts, controller):
    view = page_texts([status_of("Running", CAUSES["CrashLoop"])] * 3)
    status = {"containerStatuses": [{"name": "main", "state": {**RUNS, "waiting": None}}]}
    for number in range(3):
        store.write(Patch(PODS, "default", f"{view.name}-main-{number}", {"status": status}, "status"))
    controller.settle()
    now = store.get(JOBS, "default", view.name).object["status"]
    assert (now["state"]["reason"], now.get("waitingReason")) == ("PodsRunning", None)
    assert now["state"]["message"] == "3 of 3 pods are running; minAvailable is 3."
    assert not view.is_found_by("CrashLoop")
