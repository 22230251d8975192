"""Whether a pod runs, and otherwise what keeps it from running, is the same to everybody who asks about it or its job."""

import re

import pytest

from cluster.store import Patch, store
from kube import pod_health, resources
from kube.printing.pods import Summary
from tests.dashboard.pages.conftest import admin, node, page, put  # noqa: F401  admin is a fixture
from tests.jobs import control
from tests.jobs.conftest import controller  # noqa: F401  a fixture
from tests.same import differing

RUNS = {"running": {"startedAt": "2026-11-20T08:00:00Z"}}
ENDED = {"terminated": {"exitCode": 3, "reason": "Error", "finishedAt": "2026-11-20T08:01:00Z"}}


def waits(reason, message=""):
    return {"waiting": {"reason": reason, "message": message}}


CONFIG = "CreateContainerConfigError"
SITUATIONS = [
    # what it shows                          phase        its containers                               run  kept from it
    ("it runs",                              "Running",   [RUNS],                                       1, ""),
    ("both containers run",                  "Running",   [RUNS, RUNS],                                 1, ""),
    ("no container is told of",              "Running",   [],                                           1, ""),
    ("it starts",                            "Pending",   [waits("ContainerCreating")],                 0, ""),
    ("it starts again and again",            "Running",   [waits("CrashLoopBackOff")],                  0, "crash-looping"),
    ("one container does beside one that runs", "Running", [RUNS, waits("CrashLoopBackOff")],           0, "crash-looping"),
    ("all containers are dead",              "Running",   [ENDED],                                      0, "between two starts"),
    ("its image is missing",                 "Pending",   [waits("ImagePullBackOff")],                  0, "without an image"),
    ("its image is missing at a restart",    "Running",   [waits("ErrImagePull")],                      0, "without an image"),
    ("a Secret is missing",                  "Pending",   [waits(CONFIG, 'secret "s" not found')],      0, "without a Secret"),
    ("a ConfigMap is missing",               "Pending",   [waits(CONFIG, 'configmap "c" not found')],   0, "without a ConfigMap"),
    ("its command cannot be started",        "Running",   [waits("RunContainerError")],                 0, "not startable"),
    ("somebody else's reason",               "Running",   [waits("TheirOwn")],                          0, "not started"),
]  # fmt: skip


class ObservedJob:
    """A job of one pod on node n, and who may look."""

    def __init__(self, browser):
        self.browser = browser
        self.pod = store.get(resources.PODS, "default", "demo-main-0")
        self.status = control.state()

    @property
    def row(self):
        return self._row("/jobs/")

    def _row(self, address):
        return next(row for row in page(self.browser, address).one(id="table-rows") if row.tag == "tr")

    @property
    def head(self):
        return page(self.browser, "/jobs/default/demo/").one(id="job-head")

    @property
    def row_of_node(self):
        return self._row("/nodes/n/")


def tag(element):
    """Return what the red tags of a part of a page say, without the number of pods."""
    found = [
        " ".join(each.itertext())
        for each in element.iter("span")
        if each.get("class") == "tag" and each.get("data-hue") == "red"
    ]
    return re.sub(r"^\d+ ", "", " ".join(" ".join(found).split()))


def number(pattern, text):
    return int(re.search(pattern, text)[1])


def kubectl(observed):
    return int(Summary(observed.pod.object).reason == "Running")


def filtered(observed):
    causes = [cause for cause in pod_health.Cause if store.find(resources.JOBS, cause=cause)]
    return " ".join(
        pod_health.TEXTS[cause] for cause in causes if page(observed.browser, f"/jobs/?cause={cause}").rows()
    )


TELL_HOW_MANY_RUN = {
    "message of the job": lambda answers_of_all: number(r"(\d) of 1 pod", answers_of_all.status["state"]["message"]),
    "list of jobs": lambda asked: number(r"^(\d)/1", "".join(list(asked.row)[4].itertext()).strip()),
    "page of the job": lambda asked: number(r"(\d) of 1 needed", " ".join("".join(asked.head.itertext()).split())),
    "kubectl get pods": kubectl,
}
TELL_WHY_NOT = {
    "index of the pod": lambda asked: pod_health.TEXTS.get(resources.PODS.index(asked.pod.object).trouble, ""),
    "status of the job": lambda asked: pod_health.TEXTS.get(asked.status.get("waitingReason"), ""),
    "list of jobs": lambda asked: tag(asked.row),
    "list of jobs, by the cause": filtered,
    "page of the job": lambda asked: tag(asked.head),
    "page of the node": lambda asked: tag(asked.row_of_node),
    "page of the job, its pods": lambda asked: tag(
        page(asked.browser, "/jobs/default/demo/?tab=pods").one(id="table-rows")
    ),
}


@pytest.fixture
def asked(controller, admin):  # noqa: F811
    def have(phase, containers):
        put(node("n"))
        control.submit(controller, control.job(replicas=1, minAvailable=1))
        control.admit(controller)
        statuses = [{"name": f"c{n}", "state": state, "lastState": ENDED} for n, state in enumerate(containers)]
        store.write(Patch(resources.PODS, "default", "demo-main-0", {"spec": {"nodeName": "n"}}))
        store.write(
            Patch(
                resources.PODS,
                "default",
                "demo-main-0",
                {"status": {"phase": phase, "containerStatuses": statuses}},
                "status",
            )
        )
        controller.settle()
        return ObservedJob(admin)

    return have


@pytest.mark.parametrize(
    ("phase", "containers", "running", "why"), [pytest.param(*row, id=what) for what, *row in SITUATIONS]
)
def test_everybody_says_the_same_of_whether_a_pod_runs(asked, phase, containers, running, why):
    found = asked(phase, containers)
    assert differing(TELL_HOW_MANY_RUN, running, found) == {}
    assert differing(TELL_WHY_NOT, why, found) == {}
