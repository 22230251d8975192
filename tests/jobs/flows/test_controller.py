"""The flow controller on the real store: jobs in their order, phases, and what survives a crash."""

from __future__ import annotations

import pytest

from cluster.bootstrap import bootstrap
from cluster.store import Create, Delete, Patch, store
from kube.resources import CREATOR_ANNOTATION, EVENTS, JOB_FLOWS, JOB_TEMPLATES, JOBS, QUEUES
from tests.jobs.builders import task
from tests.jobs.flows.control import flow, state, status, step, submit, template
from tests.jobs.made import PLACE, end, job_names, runner, settle, told

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("runner_mode")]
DIAMOND = (step("a"), step("b", "a"), step("c", "a"), step("d", "b", "c"))


@pytest.fixture
def controller():
    bootstrap()
    return runner("jobflows")


def test_jobs_are_made_in_the_order_of_their_dependencies(controller):
    submit(flow(*DIAMOND), "a", "b", "c", "d")
    settle(controller)
    assert (job_names(), state()) == (["f-a"], ("Pending", "InProgress"))
    end("f-a", "Running")
    settle(controller)
    assert (job_names(), state()) == (["f-a"], ("Running", "InProgress"))
    end("f-a", "Completed")
    settle(controller)
    assert job_names() == ["f-a", "f-b", "f-c"]
    end("f-b", "Completed")
    settle(controller)
    assert job_names() == ["f-a", "f-b", "f-c"]
    end("f-c", "Completed")
    settle(controller)
    assert job_names() == ["f-a", "f-b", "f-c", "f-d"]
    end("f-d", "Completed")
    settle(controller)
    assert state() == ("Succeed", "AllCompleted")
    assert told().count("Created") == 4


def test_a_job_says_whose_it_is_and_what_it_was_made_from(controller):
    obj = flow(step("a"))
    obj["metadata"]["annotations"] = {CREATOR_ANNOTATION: "alice"}
    stored = submit(obj, template("a", priorityClassName="high"))
    settle(controller)
    job = store.get(JOBS, PLACE, "f-a").object
    assert job["metadata"]["labels"] == {
        "volcano.sh/createdByJobTemplate": "default.a",
        "volcano.sh/createdByJobFlow": "default.f",
    }
    assert job["metadata"]["annotations"] == {**job["metadata"]["labels"], CREATOR_ANNOTATION: "alice"}
    owner = job["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("JobFlow", stored.uid, True)
    assert (job["spec"]["queue"], job["spec"]["priorityClassName"]) == ("default", "high")


def test_a_failed_job_ends_the_flow_and_those_that_run_are_still_followed(controller):
    submit(flow(step("a"), step("b"), step("c", "b")), "a", "b", "c")
    settle(controller)
    end("f-a", "Failed")
    end("f-b", "Running")
    settle(controller)
    assert state() == ("Failed", "JobFailed")
    assert (status()["failedJobs"], status()["runningJobs"]) == (["f-a"], ["f-b"])
    end("f-b", "Completed")
    settle(controller)
    assert (state(), status()["completedJobs"]) == (("Failed", "JobFailed"), ["f-b"])
    assert job_names() == ["f-a", "f-b"]


def test_jobs_of_a_flow_that_has_succeeded_are_deleted_on_request_and_never_made_again(controller):
    submit(flow(step("a"), step("b", "a"), jobRetainPolicy="delete"), "a", "b")
    settle(controller)
    end("f-a", "Completed")
    settle(controller)
    end("f-b", "Completed")
    settle(controller)
    assert (job_names(), state()) == ([], ("Succeed", "AllCompleted"))
    assert status()["completedJobs"] == ["f-a", "f-b"]
    settle(runner("jobflows"))
    assert job_names() == []


def test_retained_jobs_go_when_the_policy_becomes_delete(controller):
    submit(flow(step("a")), "a")
    settle(controller)
    end("f-a", "Completed")
    settle(controller)
    assert job_names() == ["f-a"]
    store.write(Patch(JOB_FLOWS, PLACE, "f", {"spec": {"jobRetainPolicy": "delete"}}))
    settle(controller)
    assert job_names() == []


@pytest.mark.parametrize("is_away", [False, True], ids=["at once", "while nobody was there"])
def test_a_job_that_completed_and_was_deleted_counts_as_completed(controller, is_away):
    submit(flow(step("a"), step("b", "a")), "a", "b")
    settle(controller)
    end("f-a", "Completed")
    store.write(Delete(JOBS, PLACE, "f-a"))
    settle(runner("jobflows") if is_away else controller)
    assert job_names() == ["f-b"]
    assert status()["completedJobs"] == ["f-a"]
    end("f-b", "Completed")
    settle(controller)
    assert state() == ("Succeed", "AllCompleted")


def test_a_job_that_was_deleted_before_its_end_is_made_again(controller):
    submit(flow(step("a")), "a")
    settle(controller)
    first = store.get(JOBS, PLACE, "f-a").uid
    end("f-a", "Running")
    settle(controller)
    store.write(Delete(JOBS, PLACE, "f-a"))
    settle(controller)
    assert store.get(JOBS, PLACE, "f-a").uid != first


def test_a_missing_template_is_waited_for(controller):
    submit(flow(step("a"), step("b")), "b")
    settle(controller)
    assert (job_names(), state()) == (["f-b"], ("Pending", "TemplateNotFound"))
    assert status()["state"]["message"] == "There is no job template a in namespace default; create it."
    store.write(Create(JOB_TEMPLATES, template("a")))
    settle(controller)
    assert (job_names(), state()) == (["f-a", "f-b"], ("Pending", "InProgress"))


def test_a_name_that_somebody_else_has_is_waited_for(controller):
    store.write(Create(JOBS, {"metadata": {"name": "f-a", "namespace": PLACE}, "spec": {}}))
    submit(flow(step("a")), "a")
    settle(controller)
    assert state() == ("Pending", "NameTaken")
    stranger = store.get(JOBS, PLACE, "f-a").uid
    store.write(Delete(JOBS, PLACE, "f-a"))
    settle(controller)
    assert store.get(JOBS, PLACE, "f-a").uid != stranger


def test_a_closed_queue_holds_a_job_back_until_it_is_open(controller, moved_clock):
    closed = {"metadata": {"name": "night"}, "spec": {"weight": 1}, "status": {"state": "Closed"}}
    store.write(Create(QUEUES, closed))
    submit(flow(step("a")), template("a", queue="night"))
    settle(controller)
    assert state() == ("Pending", "JobRefused")
    assert "queue `night` status is `Closed`" in status()["state"]["message"]
    store.write(Patch(QUEUES, "", "night", {"status": {"state": "Open"}}, "status"))
    moved_clock.move(11)
    settle(controller)
    assert job_names() == ["f-a"]


def test_a_probe_lets_a_job_start_before_its_target_has_completed(controller):
    templates = (template("a", task("server", replicas=2)), template("b"))
    submit(flow(step("a"), step("b", "a", probe=[("server", "Running")])), *templates)
    settle(controller)
    end("f-a", "Running", taskStatusCount={"server": {"phase": {"Running": 1, "Pending": 1}}})
    settle(controller)
    assert job_names() == ["f-a"]
    end("f-a", "Running", taskStatusCount={"server": {"phase": {"Running": 2}}})
    settle(controller)
    assert job_names() == ["f-a", "f-b"]


def test_a_patch_changes_what_the_template_says(controller):
    patch = {"jobSpec": {"tasks": [{"name": "main", "replicas": 1}], "queue": "default"}}
    submit(flow(step("a", patch=patch)), template("a", task(replicas=3)))
    settle(controller)
    job = store.get(JOBS, PLACE, "f-a").object["spec"]
    main = job["tasks"][0]
    assert (main["replicas"], main["minAvailable"], job["minAvailable"]) == (1, 1, 1)
    assert main["template"]["spec"]["containers"][0]["command"] == ["true"]


def test_a_flow_that_is_being_deleted_makes_nothing(controller):
    submit(flow(step("a")), "a")
    store.write(Delete(JOB_FLOWS, PLACE, "f", propagation="Foreground"))
    settle(controller)
    assert (job_names(), state()) == ([], ("Terminating", "Deleted"))


def test_a_flow_without_jobs_has_succeeded(controller):
    submit(flow())
    settle(controller)
    assert state() == ("Succeed", "AllCompleted")


def test_a_template_lists_the_jobs_that_were_made_from_it(controller):
    def made():
        return store.get(JOB_TEMPLATES, PLACE, "a").object["status"]["jobDependsOnList"]

    submit(flow(step("a")), "a")
    submit(flow(step("a"), name="g.h"))
    settle(controller)
    assert made() == ["f-a", "g.h-a"]
    store.write(Delete(JOB_FLOWS, PLACE, "f"), Delete(JOBS, PLACE, "f-a"))
    settle(controller)
    assert made() == ["g.h-a"]
    store.write(Delete(JOB_TEMPLATES, PLACE, "a"), Create(JOB_TEMPLATES, template("a")))
    settle(controller)
    assert made() == ["g.h-a"]


def test_who_is_asked_again_writes_nothing(controller):
    submit(flow(*DIAMOND), "a", "b", "c", "d")
    settle(controller)
    end("f-a", "Completed")
    settle(controller)
    before = store.revision()
    settle(runner("jobflows"))
    assert store.revision() == before


class Killed(BaseException):
    """Ends a process where it stands."""


@pytest.mark.parametrize("at", range(1, 8))
def test_a_controller_that_is_killed_loses_no_job_and_makes_none_twice(controller, monkeypatch, at):
    """Whichever step the process dies in, and whether that was before or after the commit, the next one goes on."""
    submit(flow(*DIAMOND), "a", "b", "c", "d")
    steps = 0
    for name in ("f-a", "f-b", "f-c", "f-d"):
        while True:
            steps += 1
            if steps == at:
                controller = _die(controller, monkeypatch, is_after=at % 2 == 0)
            if not controller.step():
                break
        end(name, "Completed")
    settle(controller)
    assert state() == ("Succeed", "AllCompleted")
    created = [event.object["message"] for event in store.find(EVENTS) if event.object["reason"] == "Created"]
    assert sorted(created) == [f"Created job f-{each} from template {each}." for each in "abcd"]
    generations = {job.name: job.object["metadata"]["generation"] for job in store.find(JOBS)}
    assert generations == dict.fromkeys(("f-a", "f-b", "f-c", "f-d"), 1)


def _die(controller, monkeypatch, *, is_after):
    """Kill a process in its next step, before its transaction ends or right after; return its successor."""
    point = "_wake_for" if is_after else "_set_timers"

    def killed(*_):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(controller, point, killed)
        try:
            controller.step()
        except Killed:
            pass
    return runner("jobflows")
