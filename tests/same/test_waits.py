"""Why a job waits is the same to everybody who asks: the scheduler says it once, and the others tell it on."""

import pytest

from cluster.runtime import registry
from cluster.store import Create, Patch, decisions, store
from jobs.rules import reasons
from kube.resources import JOBS, POD_GROUPS, PODS
from proof.modes.mode import Runner
from scheduler.consumer import SchedulerConsumer
from tests.dashboard.pages.conftest import admin, node, page, put, queue  # noqa: F401  admin is a fixture
from tests.jobs import control
from tests.jobs.conftest import controller  # noqa: F401  a fixture
from tests.same import differing

FAR = {"nodeSelector": {"disk": "none"}}
SITUATIONS = [
    # what it shows                      its queue              CPU of a pod  of its pod  the reason          what is said
    ("its queue is full",                {"capability": {"cpu": "1"}}, "1",   {},         "QueueLimit",       "Waits for room in queue team"),
    ("it is larger than its queue",      {"capability": {"cpu": "1"}}, "3",   {},         "QueueTooSmall",    "This can never start"),
    ("its queue is closed",              {"state": "Closed"},   "1",          {},         "QueueClosed",      "Queue team is closed"),
    ("it is larger than every node",     {},                    "99",         {},         "NeverFits",        "This can never start"),
    ("no node has its labels",           {},                    "1",          FAR,        "NoMatchingNode",   "No node has the label"),
]  # fmt: skip


class ObservedJob:
    """A job that waits in queue team, of which another job runs, and who may look."""

    def __init__(self, browser):
        self.browser = browser
        self.status = control.state()
        (self.group,) = (each for each in store.find(POD_GROUPS) if each.name.startswith("demo-"))

    def page(self, address, part):
        return page(self.browser, address).text(id=part)

    @property
    def condition(self):
        found = self.group.object["status"]["conditions"]
        return next(each for each in found if each["type"] == "Unschedulable")


def cell_of_list(observed):
    row = next(each for each in page(observed.browser, "/jobs/?q=demo").one(id="table-rows") if each.tag == "tr")
    return " ".join("".join(list(row)[-1].itertext()).split())


def found_by_cause(observed):
    found = [cause for cause in reasons.WAITING if store.find(JOBS, cause=cause)]
    return " ".join(cause for cause in found if page(observed.browser, f"/jobs/?cause={cause}&q=demo").rows())


def decided(observed):
    about = decisions.Filters(namespaces=observed.group.namespace, name=observed.group.name, kind="refuse")
    return decisions.find(about, limit=1)[0].decision


def attention(observed):
    """The overview names who cannot start at once, and others only when they have waited long."""
    text = observed.page("/", "overview-attention")
    return text if "demo" in text else None


def reason_on_its_page(observed):
    words = observed.page("/jobs/default/demo/", "job-why").split()
    return " ".join(word for word in words if word in reasons.WAITING)


TELL_THE_REASON = {
    "pod group": lambda asked: asked.condition["reason"],
    "status of the job": lambda asked: asked.status.get("waitingReason"),
    "index of the job": lambda asked: JOBS.index(store.get(JOBS, "default", "demo").object).trouble,
    "list of jobs, by the cause": found_by_cause,
    "page of the job": reason_on_its_page,
    "decisions": lambda asked: decided(asked).reason,
}
TELL_IN_WORDS = {
    "pod group": lambda asked: asked.condition["message"],
    "message of the job": lambda asked: asked.status["state"]["message"],
    "list of jobs": cell_of_list,
    "page of the job": lambda asked: asked.page("/jobs/default/demo/", "job-why"),
    "decisions": lambda asked: decided(asked).message,
    "overview": attention,
}


def furnish(team):
    put(node("n", cpu="8"))
    limits = {name: value for name, value in team.items() if name != "state"}
    store.write(Create(*queue("team", **limits, state=team.get("state", "Open"))))


def submit(name, cpu, **of_pod):
    containers = [{"name": "main", "image": "img", "command": ["true"], "resources": {"requests": {"cpu": cpu}}}]
    task = {"name": "main", "replicas": 1, "template": {"spec": {"containers": containers, **of_pod}}}
    store.write(Create(JOBS, control.job(name, tasks=[task], minAvailable=1, queue="team")))


@pytest.fixture
def settle(controller, moved_clock):  # noqa: F811
    """Have job controller and scheduler do what is to do, and all that they put off by some seconds."""
    scheduler = Runner(registry.get("scheduler"), 0, SchedulerConsumer())

    def run():
        for _ in range(4):
            while controller.step() or scheduler.step():
                pass
            moved_clock.move(3)

    return run


@pytest.mark.parametrize(
    ("team", "cpu", "of_pod", "reason", "words"), [pytest.param(*row, id=what) for what, *row in SITUATIONS]
)
def test_everybody_says_the_same_of_why_a_job_waits(admin, settle, team, cpu, of_pod, reason, words):  # noqa: F811
    furnish(team)
    submit("runs", "1")
    settle()
    if team.get("state") != "Closed":
        store.write(Patch(PODS, "default", "runs-main-0", {"status": {"phase": "Running"}}, "status"))
    submit("demo", cpu, **of_pod)
    settle()
    observed = ObservedJob(admin)
    assert differing(TELL_THE_REASON, reason, observed) == {}
    texts = {name: tell(observed) for name, tell in TELL_IN_WORDS.items()}
    assert {name: text for name, text in texts.items() if text is not None and words not in text} == {}
