"""The flow controller on the real store: jobs in their order, phases, and what survives a crash."""

from __future__ import annotations

import pytest

from cluster.bootstrap import bootstrap
from cluster.store import Create, Delete, Patch, store
from kube.resources import CREATOR_ANNOTATION, EVENTS, JOB_FLOWS, JOB_TEMPLATES, JOBS, QUEUES
from tests.builders import of, queue
from tests.jobs.builders import task
from tests.jobs.flows.control import flow, state, status, step, submit, template
from tests.jobs.made import PLACE, end, job_names, runner, settle, told
from tests.tables import cases

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("runner_mode")]
DIAMOND = (step("a"), step("b", "a"), step("c", "a"), step("d", "b", "c"))
LINE, ONE = (step("a"), step("b", "a")), (step("a"),)


@pytest.fixture
def controller():
    bootstrap()
    return runner("jobflows")


def servers(running):
    return {"taskStatusCount": {"server": {"phase": {"Running": running, "Pending": 2 - running}}}}


# What happens in a line of a story, besides a job that comes to a phase.
HAPPENS = {
    "delete": lambda name: store.write(Delete(JOBS, PLACE, f"f-{name}")),
    "foreign": lambda name: store.write(Create(JOBS, of(JOBS, f"f-{name}"))),
    "template": lambda name: store.write(Create(JOB_TEMPLATES, template(name))),
    "retain": lambda policy: store.write(Patch(JOB_FLOWS, PLACE, "f", {"spec": {"jobRetainPolicy": policy}})),
    "serve": lambda number: end("f-a", "Running", **servers(int(number))),
}  # fmt: skip


@cases("obj, templates, story", {
    "jobs are made in the order of their dependencies": (flow(*DIAMOND), "abcd", """
                    | a       | Pending InProgress
        a Running   | a       | Running InProgress
        a Completed | a b c   | Running InProgress
        b Completed | a b c   | Running InProgress
        c Completed | a b c d | Running InProgress
        d Completed | a b c d | Succeed AllCompleted"""),
    "a failed job ends the flow, and those that run are still followed": (
        flow(step("a"), step("b"), step("c", "b")), "abc", """
                            | a b | Pending InProgress
        a Failed, b Running | a b | Failed JobFailed
        b Completed         | a b | Failed JobFailed"""),
    "jobs of a flow that has succeeded are deleted on request and never made again": (
        flow(*LINE, jobRetainPolicy="delete"), "ab", """
        a Completed | a b | Running InProgress
        b Completed |     | Succeed AllCompleted
        restart     |     | Succeed AllCompleted"""),
    "retained jobs go when the policy becomes delete": (flow(*ONE), "a", """
        a Completed   | a | Succeed AllCompleted
        retain delete |   | Succeed AllCompleted"""),
    "a job that completed and was deleted counts as completed": (flow(*LINE), "ab", """
        a Completed, delete a | b | Running InProgress
        b Completed           | b | Succeed AllCompleted"""),
    "and while nobody was there": (flow(*LINE), "ab", """
        a Completed, delete a, restart | b | Running InProgress
        b Completed                    | b | Succeed AllCompleted"""),
    "a missing template is waited for": (flow(step("a"), step("b")), "b", """
                   | b   | Pending TemplateNotFound
        template a | a b | Pending InProgress"""),
    "a probe lets a job start before its target has completed": (
        flow(step("a"), step("b", "a", probe=[("server", "Running")])),
        (template("a", task("server", replicas=2)), template("b")), """
        serve 1 | a   | Running InProgress
        serve 2 | a b | Running InProgress"""),
    "a flow without jobs has succeeded": (flow(), "", """
                | | Succeed AllCompleted"""),
})  # fmt: skip
def test_a_flow_goes_on_as_its_jobs_do(controller, obj, templates, story):
    submit(obj, *templates)
    settle(controller)
    for line in story.strip("\n").split("\n"):
        happens, jobs, wanted = (each.strip() for each in line.split("|"))
        for what, *about in (each.split() for each in happens.split(", ") if each):
            if what == "restart":
                controller = runner("jobflows")
            elif what in HAPPENS:
                HAPPENS[what](*about)
            else:
                end(f"f-{what}", *about)
        settle(controller)
        assert (job_names(), " ".join(state())) == ([f"f-{each}" for each in jobs.split()], wanted), line
    if state()[0] == "Succeed":
        assert told().count("Created") == len(obj["spec"]["flows"])


def test_a_job_says_whose_it_is_and_what_it_was_made_from(controller):
    obj = flow(step("a"))
    obj["metadata"]["annotations"] = {CREATOR_ANNOTATION: "alice"}
    stored = submit(obj, template("a", priorityClassName="high"))
    settle(controller)
    job = store.get(JOBS, PLACE, "f-a").object
    labels = {"volcano.sh/createdByJobTemplate": "default.a", "volcano.sh/createdByJobFlow": "default.f"}
    assert job["metadata"]["labels"] == labels
    assert job["metadata"]["annotations"] == {**labels, CREATOR_ANNOTATION: "alice"}
    owner = job["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("JobFlow", stored.uid, True)
    assert (job["spec"]["queue"], job["spec"]["priorityClassName"]) == ("default", "high")


@cases("foreign, phase", {"that was deleted before its end": (False, "Running"), "of somebody else": (True, "Pending")})
def test_a_job_is_made_when_the_one_of_its_name_is_gone(controller, foreign, phase):
    if foreign:
        HAPPENS["foreign"]("a")
    submit(flow(step("a")), "a")
    settle(controller)
    assert state()[1] == ("NameTaken" if foreign else "InProgress")
    first = store.get(JOBS, PLACE, "f-a").uid
    end("f-a", phase)
    settle(controller)
    store.write(Delete(JOBS, PLACE, "f-a"))
    settle(controller)
    assert store.get(JOBS, PLACE, "f-a").uid != first


def test_a_closed_queue_holds_a_job_back_until_it_is_open(controller, moved_clock):
    store.write(Create(QUEUES, queue("night", "Closed")))
    submit(flow(step("a")), template("a", queue="night"))
    settle(controller)
    assert state() == ("Pending", "JobRefused")
    assert "queue `night` status is `Closed`" in status()["state"]["message"]
    store.write(Patch(QUEUES, "", "night", {"status": {"state": "Open"}}, "status"))
    moved_clock.move(11)
    settle(controller)
    assert job_names() == ["f-a"]


def test_a_flow_that_is_being_deleted_makes_nothing(controller):
    submit(flow(step("a")), "a")
    store.write(Delete(JOB_FLOWS, PLACE, "f", propagation="Foreground"))
    settle(controller)
    assert (job_names(), state()) == ([], ("Terminating", "Deleted"))


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
    before = store.revision()
    settle(runner("jobflows"))
    assert store.revision() == before, "who is asked again writes nothing"


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
