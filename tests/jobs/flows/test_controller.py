"""The flow controller on the real store: jobs in their order, phases, and what survives a crash."""

from __future__ import annotations

from contextlib import suppress

import pytest

from cluster.bootstrap import bootstrap
from cluster.store import Create, Delete, store
from kube.resources import CREATOR_ANNOTATION, JOB_FLOWS, JOB_TEMPLATES, JOBS
from tests.jobs.builders import task
from tests.jobs.control import messages
from tests.jobs.flows.control import Story, flow, state, step, submit, template
from tests.jobs.made import PLACE, Killed, dying, end, runner, settle
from tests.tables import cases

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("runner_mode")]
DIAMOND = (step("a"), step("b", "a"), step("c", "a"), step("d", "b", "c"))
LINE, ONE = (step("a"), step("b", "a")), (step("a"),)
SERVERS = (template("a", task("server", replicas=2)), template("b"))


@pytest.fixture
def controller():
    bootstrap()
    return runner("jobflows")


@cases("obj, templates, story", {
    "jobs are made in the order of their dependencies": (flow(*DIAMOND), "abcd", """
        → jobs a; state Pending InProgress
        a Running → jobs a; state Running InProgress
        a Completed → jobs a b c; state Running InProgress
        b Completed → jobs a b c; state Running InProgress
        c Completed → jobs a b c d; state Running InProgress
        d Completed → jobs a b c d; state Succeed AllCompleted"""),
    "a failed job ends the flow, and those that run are still followed": (flow(step("a"), step("b"), step("c", "b")), "abc", """
        → jobs a b; state Pending InProgress
        a Failed, b Running → jobs a b; state Failed JobFailed
        b Completed → jobs a b; state Failed JobFailed"""),
    "jobs of a flow that has succeeded are deleted on request and never made again": (
        flow(*LINE, jobRetainPolicy="delete"), "ab", """
        →
        a Completed → jobs a b; state Running InProgress
        b Completed → jobs; state Succeed AllCompleted
        restart → jobs; state Succeed AllCompleted"""),
    "retained jobs go when the policy becomes delete": (flow(*ONE), "a", """
        →
        a Completed → jobs a; state Succeed AllCompleted
        retain delete → jobs; state Succeed AllCompleted"""),
    **{
        f"a job that completed and was deleted counts as completed{words}": (flow(*LINE), "ab", f"""
        →
        a Completed, delete a{then} → jobs b; state Running InProgress
        b Completed → jobs b; state Succeed AllCompleted""")
        for words, then in (("", ""), (", also while nobody was there", ", restart"))
    },
    "a missing template is waited for": (flow(step("a"), step("b")), "b", """
        → jobs b; state Pending TemplateNotFound
        template a → jobs a b; state Pending InProgress"""),
    "a probe lets a job start before its target has completed": (
        flow(step("a"), step("b", "a", probe=[("server", "Running")])), SERVERS, """
        →
        serve 1 → jobs a; state Running InProgress
        serve 2 → jobs a b; state Running InProgress"""),
    "a flow without jobs has succeeded": (flow(), "", "→ jobs; state Succeed AllCompleted"),
    "a job that was deleted before its end is made anew": (flow(*ONE), "a", """
        → state Pending InProgress
        a Running →
        wait 1, delete a → anew a"""),
    "a job of somebody else has the name until it is gone": (flow(*ONE), "a", """
        foreign a → state Pending NameTaken
        delete a → anew a"""),
    "a closed queue holds a job back until it is open": (flow(*ONE), [template("a", queue="night")], """
        queue Closed → jobs; state Pending JobRefused; says queue `night` status is `Closed`
        queue Open, wait 11 → jobs a"""),
    "a flow that is being deleted makes nothing": (flow(*ONE), "a", "going → jobs; state Terminating Deleted"),
})  # fmt: skip
def test_a_flow_goes_on_as_its_jobs_do(controller, moved_clock, obj, templates, story):
    submit(obj, *templates)
    Story(controller, moved_clock).goes(story)
    if state()["phase"] == "Succeed":
        assert len(messages("Created")) == len(obj["spec"]["flows"])


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


def test_a_template_lists_the_jobs_that_were_made_from_it(controller):
    def made():
        settle(controller)
        return store.get(JOB_TEMPLATES, PLACE, "a").object["status"]["jobDependsOnList"]

    submit(flow(step("a")), "a")
    submit(flow(step("a"), name="g.h"))
    assert made() == ["f-a", "g.h-a"]
    store.write(Delete(JOB_FLOWS, PLACE, "f"), Delete(JOBS, PLACE, "f-a"))
    assert made() == ["g.h-a"]
    store.write(Delete(JOB_TEMPLATES, PLACE, "a"), Create(JOB_TEMPLATES, template("a")))
    assert made() == ["g.h-a"]
    before = store.revision()
    settle(runner("jobflows"))
    assert store.revision() == before, "who is asked again writes nothing"


@pytest.mark.parametrize("at", range(1, 8))
def test_a_controller_that_is_killed_loses_no_job_and_makes_none_twice(controller, monkeypatch, at):
    """Whichever step the process dies in, and whether that was before or after the commit, the next one goes on."""
    submit(flow(*DIAMOND), "a", "b", "c", "d")
    steps = 0
    for name in ("f-a", "f-b", "f-c", "f-d"):
        while True:
            steps += 1
            if steps == at:
                with suppress(Killed), dying(controller, monkeypatch, "_wake_for" if at % 2 == 0 else "_set_timers"):
                    controller.step()
                controller = runner("jobflows")
            if not controller.step():
                break
        end(name, "Completed")
    settle(controller)
    assert (state()["phase"], state()["reason"]) == ("Succeed", "AllCompleted")
    assert sorted(messages("Created")) == [f"Created job f-{each} from template {each}." for each in "abcd"]
    generations = {job.name: job.object["metadata"]["generation"] for job in store.find(JOBS)}
    assert generations == dict.fromkeys(("f-a", "f-b", "f-c", "f-d"), 1)
