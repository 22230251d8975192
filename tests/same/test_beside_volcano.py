"""How far a job has come and why it waits, beside Volcano, which leaves both out of the job's status: the same to everybody who tells it."""

import pytest

from cluster.api import backend
from cluster.remote import recorder
from cluster.remote.backend import Remote
from cluster.remote.http.target import Target
from cluster.remote.leader_election import volcano
from cluster.store import Patch, store
from jobs.rules import remedies
from kube import resources
from tests.builders import container
from tests.dashboard.pages.conftest import HOUR_MS, admin, node, page, put  # noqa: F401  admin is a fixture
from tests.jobs.pages import world
from tests.same import differing
from tests.tables import cases

T = world.START
VOLCANOS = "2/3 tasks in gang unschedulable: pod group is not ready, 2 Unschedulable, 3 minAvailable"
NOT_SEEN = "No controller of the cluster has looked at it yet. Does Volcano's controller manager run?"
DOWN = "Volcano's scheduler has not renewed its Lease since 12:23 UTC."
NOT_SAID = "The cluster's scheduler has not said why yet. Does Volcano's scheduler run?"


@pytest.fixture(autouse=True)
def beside(monkeypatch, db):
    world.base()
    monkeypatch.setattr(backend, "runs", Remote().runs)


def pods(*phases):
    return [
        {
            "task": "w" if at else "ps",
            "index": max(at - 1, 0),
            "phase": phase,
            "scheduled": T - 50_000,
            "started": T - 40_000,
        }
        for at, phase in enumerate(phases)
    ]


def gang_in_list(browser):
    row = page(browser, "/jobs/").one(id="table-rows")
    cell = row.xpath(".//td[svg]")[0]
    return cell.get("title") or " ".join(cell.text_content().split())


def gang_on_page(browser):
    return page(browser, "/jobs/default/train/").text(id="job-head")


def tasks_on_page(browser):
    return page(browser, "/jobs/default/train/").text(id="job-tasks")


@cases("phase, phases, sentence, tasks", {
    "it has finished": (
        "Completed", ["Succeeded"] * 3, "3 of 3 pods succeeded", "ps 1 of 1 pod succeeded w 2 of 2 pods succeeded",
    ),
    "one of its pods failed": (
        "Failed", ["Succeeded", "Failed", "Succeeded"], "2 of 3 pods succeeded, 1 failed", "1 of 2 pods succeeded, 1 failed",
    ),
    "it runs": (
        "Running", ["Running", "Running", "Succeeded"], "3 of 3 needed are running or have succeeded", "w 1 succeeded, 1 running",
    ),
})  # fmt: skip
def test_pods_are_counted_where_the_status_has_no_counters(admin, phase, phases, sentence, tasks):  # noqa: F811
    world.make("train", phase, began=T - 30_000, tasks=[("ps", 1), ("w", 2)], minimum=3, pods=pods(*phases))
    assert sentence in gang_on_page(admin)
    assert gang_in_list(admin) in (sentence, "3/3")
    assert tasks in tasks_on_page(admin)


def test_counters_that_are_written_hold_as_they_leave_out_pods_that_are_being_deleted(admin):  # noqa: F811
    world.make(
        "train", "Running", began=T - 30_000, tasks=[("w", 3)], minimum=1, pods=pods(*["Running"] * 3),
        counts={"running": 1, "terminating": 2},
    )  # fmt: skip
    assert "1 of 1 needed is running" in gang_on_page(admin)
    assert gang_in_list(admin) in ("1 of 1 needed is running", "1/1")


def why_in_list(browser):
    (row,) = (row for row in page(browser, "/jobs/").one(id="table-rows") if row.tag == "tr")
    return row.xpath("./td")[-1].text_content().strip() or None


def why_on_page(browser):
    text = page(browser, "/jobs/default/train/").text(id="job-why")
    return next((each for each in (VOLCANOS, DOWN) if each in text), None)


def why_on_overview(browser):
    text = page(browser, "/").text(id="overview-attention")
    return next((each for each in (VOLCANOS, DOWN, NOT_SEEN, NOT_SAID) if each in text), text)


def why_in_queue(browser):
    (row,) = (row for row in page(browser, "/queues/default/").one(id="table-rows") if row.tag == "tr")
    return next(cell for cell in row if cell.get("data-label") == "Why").text_content().strip() or None


PLACES = {
    "list of jobs": why_in_list,
    "page of the job": why_on_page,
    "overview": why_on_overview,
    "queue": why_in_queue,
}


@cases("phase, says, absence, why", {
    "Volcano's scheduler says why": ("Pending", VOLCANOS, "", VOLCANOS),
    "it said why before it ended": ("Pending", VOLCANOS, DOWN, VOLCANOS),
    "it has not said why": ("Pending", "", "", NOT_SAID),
    "it has ended": ("Pending", "", DOWN, DOWN),
    "its controller has not seen the job": ("", "", "", NOT_SEEN),
    "nobody has seen the job, and the scheduler has ended": ("", "", DOWN, DOWN),
})  # fmt: skip
def test_why_a_job_waits_is_told_by_its_pod_group(admin, settings, phase, says, absence, why):  # noqa: F811
    settings.TARGET, settings.WAY = Target("one", "https://one", ""), "beside"
    recorder.claim("https://one")
    volcano.note(absence)
    world.make("train", "Pending", tasks=[("w", 3)], minimum=3, now=T - HOUR_MS, why=says)
    status = {"state": {"phase": phase, "reason": None, "message": None}}
    store.write(Patch(resources.JOBS, "default", "train", {"status": status}, subresource="status"))
    assert differing(PLACES, why, admin) == {}


def test_a_job_that_can_never_start_is_told_so_with_numbers_and_not_to_wait(admin):  # noqa: F811
    put(node("n1", cpu="32"))
    waiting = [{"task": "w", "index": index, "phase": "Pending", "node": None} for index in range(2)]
    job = world.make("train", "Pending", tasks=[("w", 2)], minimum=2, pods=waiting, why=VOLCANOS)
    of_group = {"annotations": {"scheduling.k8s.io/group-name": f"train-{job.uid}"}}

    def shown(cpu):
        spec = {"schedulerName": "volcano", "containers": [container("main", requests={"cpu": cpu})]}
        for index in range(2):
            store.write(Patch(resources.PODS, job.namespace, f"train-w-{index}", {"metadata": of_group, "spec": spec}))
        return page(admin, "/jobs/default/train/").text(id="job-why")

    assert "16 CPU" not in shown("16"), "it fits once others have ended"
    text = shown("64")
    assert "64 CPU" in text
    assert remedies.REASONS["NeverFits"].remedy in text
    assert VOLCANOS in text, "in the scheduler's own words"


def test_a_job_that_its_queue_can_never_hold_is_told_so_before_it_has_pods(admin):  # noqa: F811
    put(node("n1", cpu="64"))
    store.write(Patch(resources.QUEUES, "", "default", {"spec": {"capability": {"cpu": "20"}}}))
    job = world.make("train", "Pending", tasks=[("w", 4)], why="queue resource quota insufficient: insufficient cpu")
    group = {"spec": {"minResources": {"cpu": "32"}}}
    store.write(Patch(resources.POD_GROUPS, job.namespace, f"train-{job.uid}", group))
    text = page(admin, "/jobs/default/train/").text(id="job-why")
    assert "20 CPU" in text
    assert remedies.REASONS["QueueTooSmall"].remedy in text


def test_of_a_job_whose_creator_is_not_known_the_program_is_told_that_wrote_it(admin):  # noqa: F811
    fields = [
        {"manager": "vc-controller-manager", "operation": "Update", "time": "2026-05-28T10:00:02Z", "subresource": "status"},
        {"manager": "kubectl-edit", "operation": "Update", "time": "2026-05-28T11:00:00Z"},
        {"manager": "kubectl-create", "operation": "Update", "time": "2026-05-28T10:00:00Z"},
    ]  # fmt: skip
    world.make("train", "Pending", annotations={}, managedFields=fields)
    for text in (page(admin, "/jobs/").text(id="table-rows"), gang_on_page(admin)):
        assert "by kubectl-create" in text
