"""What becomes of pods, pod group and status as things change, against the real store (reference: volcano-job §2.4)."""

from __future__ import annotations

import re

import msgspec
import pytest

from cluster.store import Create, Delete, Patch, store
from jobs.controller import dependencies, facts
from jobs.lifecycle import fired
from kube.resources import CLAIMS, EVENTS, JOBS, POD_GROUPS, PODS
from tests.jobs.control import CLAIM, Controller, admit, become, job, messages, pods, state, submit, task

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("runner_mode")]


def started(controller, **spec):
    stored = submit(controller, job(**spec))
    admit(controller)
    become(controller, "Running")
    return stored


def group_is(controller, phase, *conditions):
    (group,) = store.find(POD_GROUPS)
    status = {"phase": phase, "conditions": list(conditions)}
    store.write(Patch(POD_GROUPS, "default", group.name, {"status": status}, "status"))
    controller.settle()


def bound(name):
    """Give a pod a node, so that it goes only when the node says so."""
    store.write(Patch(PODS, "default", name, {"spec": {"nodeName": "n"}}, "binding"))


def change(controller, **fields):
    """Change the numbers of the job's only task, and of the job."""
    (task_,) = store.get(JOBS, "default", "demo").object["spec"]["tasks"]
    spec = {"tasks": [{**task_, **fields}], "minAvailable": fields["minAvailable"]}
    store.write(Patch(JOBS, "default", "demo", {"spec": spec}))
    controller.settle()


def phase():
    return state()["state"]["phase"]


@pytest.mark.shows("2.4/4 later", "3.3/group otherwise")
def test_a_pod_group_that_somebody_deletes_is_made_again_and_the_pods_stay(controller):
    started(controller)
    before = [each.uid for each in store.find(PODS)]
    (group,) = store.find(POD_GROUPS)
    store.write(Delete(POD_GROUPS, "default", group.name))
    controller.settle()
    (again,) = store.find(POD_GROUPS)
    assert (again.name, again.uid != group.uid) == (group.name, True)
    assert [each.uid for each in store.find(PODS)] == before
    assert phase() == "Running"


@pytest.mark.shows("2.4/6", "2.4/5", "10/Q-20")
def test_while_the_pod_group_waits_pods_are_counted_and_none_is_made(controller):
    started(controller, replicas=3, minAvailable=1)
    group_is(controller, "Pending")
    become(controller, "Succeeded", "demo-main-0", code=0)
    store.write(Delete(PODS, "default", "demo-main-1", grace=0))
    controller.settle()
    assert pods() == ["demo-main-0", "demo-main-2"]
    assert (state()["succeeded"], state()["running"]) == (1, 1)
    group_is(controller, "Inqueue")
    assert pods() == ["demo-main-0", "demo-main-1", "demo-main-2"]


@pytest.mark.shows("2.4/5", "4.4/made")
@pytest.mark.parametrize(
    ("of_group", "number"), [("Pending", 0), ("Inqueue", 2), ("Running", 2), ("Unknown", 2), ("Completed", 2)]
)
def test_pods_are_made_when_the_scheduler_let_the_group_in(controller, of_group, number):
    submit(controller, job())
    group_is(controller, of_group)
    assert len(pods()) == number


@pytest.mark.shows("2.4/7 terminating", "1.5/terminating")
def test_a_pod_that_is_being_deleted_holds_its_name_until_it_is_gone(controller):
    started(controller, minAvailable=1)
    bound("demo-main-1")
    uid = store.get(PODS, "default", "demo-main-1").uid
    store.write(Delete(PODS, "default", "demo-main-1"))
    controller.settle()
    assert (store.get(PODS, "default", "demo-main-1").uid, state()["terminating"]) == (uid, 1)
    store.write(Delete(PODS, "default", "demo-main-1", grace=0))
    controller.settle()
    assert store.get(PODS, "default", "demo-main-1").uid != uid
    assert "terminating" not in state()


@pytest.mark.shows("2.4/7 ended")
@pytest.mark.parametrize("ended", ["Failed", "Succeeded"])
def test_a_pod_that_ended_is_not_made_again(controller, ended):
    started(controller, replicas=3, minAvailable=1)
    before = [each.uid for each in store.find(PODS)]
    become(controller, ended, "demo-main-1", code=int(ended == "Failed"))
    assert [each.uid for each in store.find(PODS)] == before
    assert (phase(), state()[ended.lower()]) == ("Running", 1)


@pytest.mark.shows("2.8/scale", "3.3/job", "4.4/minMember", "4.4/minTaskMember", "4.4/minResources")
def test_the_pod_group_follows_the_numbers_of_the_job(controller):
    started(controller, replicas=2)
    change(controller, replicas=5, minAvailable=4)
    spec = store.find(POD_GROUPS)[0].object["spec"]
    assert (spec["minMember"], spec["minTaskMember"], spec["minResources"]["pods"]) == (4, {"main": 4}, "4")


@pytest.mark.shows("4.4/priorityClassName", "1.6/spec.priorityClassName", "1.6/metadata")
def test_of_the_other_fields_the_pod_group_follows_the_priority_class_alone(controller):
    started(controller, replicas=1)
    changes = {"spec": {"priorityClassName": "high"}, "metadata": {"labels": {"team": "a"}}}
    store.write(Patch(JOBS, "default", "demo", changes))
    controller.settle()
    group = store.find(POD_GROUPS)[0].object
    assert (group["spec"]["priorityClassName"], group["metadata"].get("labels")) == ("high", None)
    pod = store.get(PODS, "default", "demo-main-0").object
    assert ("team" in pod["metadata"]["labels"], pod["spec"].get("priorityClassName")) == (False, None)


@pytest.mark.shows("2.8/scale to 0", "2.5/Running 1")
def test_a_job_that_is_scaled_to_nothing_keeps_running(controller):
    started(controller)
    change(controller, replicas=0, minAvailable=0)
    assert (phase(), state()["state"]["reason"], pods()) == ("Running", "NoReplicas", [])
    change(controller, replicas=1, minAvailable=1)
    assert pods() == ["demo-main-0"]


@pytest.mark.shows("2.5/Pending, minAvailable 0")
def test_a_job_that_needs_no_pod_runs_before_its_group_is_let_in(controller):
    submit(controller, job(tasks=[task("main", 2, minAvailable=0)], minAvailable=0))
    assert (phase(), pods()) == ("Running", [])


@pytest.mark.shows("2.4/2", "10/Q-8")
@pytest.mark.embedded  # an API server refuses the group
def test_a_job_whose_queue_is_gone_waits_and_is_not_ended(controller, moved_clock):
    submit(controller, job(queue="gone"))
    moved_clock.move(3600)
    controller.settle()
    (group,) = store.find(POD_GROUPS)
    assert (phase(), group.object["spec"]["queue"]) == ("Pending", "gone")


@pytest.mark.shows(
    "10/Q-8", "3.6/tried again", "3.6/given up", "2.7/gave up", "3.7/PodGroupError, JobStatusError, FailedDelete"
)
def test_what_cannot_be_written_is_tried_again_for_as_long_as_it_takes(controller, moved_clock):
    stored = store.write(Create(JOBS, job()))[0]
    name = f"demo-{stored.uid}"
    store.write(Create(POD_GROUPS, {"metadata": {"namespace": "default", "name": name}, "spec": {}}))
    for _ in range(30):
        controller.settle()
        moved_clock.move(31)
    assert "status" not in store.get(JOBS, "default", "demo").object
    told = [each.object for each in store.find(EVENTS)]
    assert {each["reason"] for each in told} == {"WriteRefused"}
    # The third try comes half a minute after the first, so it is news already; from then on each power of two is.
    tries = {each["message"].partition(":")[0] for each in told}
    assert tries == {f"Tried {times} times" for times in (3, 4, 8, 16)}
    store.write(Delete(POD_GROUPS, "default", name))
    moved_clock.move(31)
    controller.settle()
    admit(controller)
    assert (phase(), len(pods())) == ("Pending", 2)


@pytest.mark.shows("3.7/PodGroupPending")
def test_why_the_pod_group_waits_is_told_once(controller):
    submit(controller, job())
    waits = {
        "type": "Unschedulable",
        "status": "True",
        "message": "0/1 nodes have 2 CPU free.",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    group_is(controller, "Inqueue", waits)
    Controller().settle()
    told = [each.object for each in store.find(EVENTS) if each.object["reason"] == "PodGroupPending"]
    assert [(each["type"], waits["message"] in each["message"]) for each in told] == [("Warning", True)]


@pytest.mark.shows("4.2/ready")
@pytest.mark.parametrize(
    ("of_pod", "containers", "is_ready"),
    [
        ("Succeeded", [False], True),
        ("Running", [True, True], True),
        ("Running", [True, False], False),
        ("Running", [], False),
        ("Pending", [True], False),
        ("Failed", [True], False),
    ],
)
def test_a_pod_that_others_wait_for_is_ready(of_pod, containers, is_ready):
    statuses = [{"name": str(n), "ready": ready} for n, ready in enumerate(containers)]
    pod = {"metadata": {"name": "p"}, "status": {"phase": of_pod, "containerStatuses": statuses}}
    assert dependencies.is_ready(facts.read_pod(msgspec.json.encode(pod))[1]) is is_ready


@pytest.mark.shows("4.2/ready", "1.2/dependsOn.name", "4.2/pod group")
def test_a_task_waits_for_the_minimum_of_another(controller):
    first = task("first", 3, minAvailable=2)
    submit(controller, job(tasks=[first, task("then", 1, dependsOn={"name": ["first"]})], minAvailable=2))
    assert store.find(POD_GROUPS)[0].object["spec"]["minTaskMember"] == {"first": 2, "then": 1}
    admit(controller)
    become(controller, "Succeeded", "demo-first-0", code=0)
    assert pods() == ["demo-first-0", "demo-first-1", "demo-first-2"]
    become(controller, "Succeeded", "demo-first-1", code=0)
    assert pods()[-1] == "demo-then-0"


@pytest.mark.shows("4.3/name")
def test_a_claim_that_is_made_has_the_jobs_name_and_twelve_characters(controller):
    submit(controller, job(volumes=[{"mountPath": "/a", "volumeClaim": CLAIM}]))
    (claim,) = store.find(CLAIMS)
    assert re.fullmatch("demo-pvc-[0-9a-z]{12}", claim.name)


ENDS = {"Completed": ("CompleteJob", True), "Terminated": ("TerminateJob", True), "Aborted": ("AbortJob", False)}


@pytest.mark.shows("6.2/which", "6.2/since")
@pytest.mark.parametrize("ended", [*ENDS, "Failed"])
def test_which_jobs_have_a_time_to_live(controller, moved_clock, ended):
    action, goes = ENDS.get(ended, ("", True))
    policies = [{"event": "PodFailed", "action": action}] if action else []
    started(controller, replicas=1, ttlSecondsAfterFinished=100, policies=policies)
    moved_clock.move(1000)
    become(controller, "Failed", code=1)
    assert phase() == ended
    moved_clock.move(99)
    controller.settle()
    assert "deletionTimestamp" not in store.get(JOBS, "default", "demo").object["metadata"]
    moved_clock.move(2)
    controller.settle()
    assert ("deletionTimestamp" in store.get(JOBS, "default", "demo").object["metadata"]) is goes


@pytest.mark.shows("10/Q-4", "3.1/Unknown")
def test_unknown_is_answered_in_every_run(controller):
    started(controller, policies=[{"event": "Unknown", "action": "RestartJob"}])
    for number in (1, 2):
        group_is(controller, "Unknown")
        assert (state()["version"], state()["retryCount"]) == (number, number)
        admit(controller)
        become(controller, "Running")


ENDED = [
    # exit codes of containers and init containers; those that are told, and the one that the event names
    pytest.param((3,), (), [3], 3, id="the only container"),
    pytest.param((0, 3), (), [3], 3, id="the second of two"),
    pytest.param((1, 3), (), [1, 3], 3, id="the second of two that failed"),
    pytest.param((), (3,), [3], 3, id="an init container"),
    pytest.param((3,), (0, 143), [3, 143], 3, id="beside a sidecar that was ended"),
    pytest.param((1, 0), (0,), [1], None, id="another code"),
    pytest.param((0,), (), [], None, id="none"),
]


@pytest.mark.shows("10/Q-17", "3.3/pod failed")
@pytest.mark.parametrize(("codes", "init", "told", "answered"), ENDED)
def test_what_is_told_of_exit_codes_is_what_policies_answer(controller, codes, init, told, answered):
    started(controller, replicas=2, minAvailable=1, policies=[{"exitCode": 3, "action": "AbortJob"}])

    def ended(codes):
        return [{"name": str(n), "state": {"terminated": {"exitCode": code}}} for n, code in enumerate(codes)]

    status = {"phase": "Failed", "containerStatuses": ended(codes), "initContainerStatuses": ended(init)}
    store.write(Patch(PODS, "default", "demo-main-0", {"status": status}, "status"))
    controller.settle()
    assert (phase() == "Aborted") is (answered is not None)
    assert [each for each in range(1, 256) if store.find(JOBS, exit_code=each)] == told
    fired_ = [fired.read(each) for each in messages()]
    assert [each.exit_code for each in fired_ if each] == ([] if answered is None else [answered])


@pytest.mark.shows("10/Q-17", "3.1/PodEvicted", "3.3/pod deleted")
def test_a_pod_that_had_succeeded_may_be_evicted(controller):
    started(controller, replicas=2, minAvailable=1, policies=[{"event": "PodEvicted", "action": "AbortJob"}])
    become(controller, "Succeeded", "demo-main-0", code=0)
    store.write(Delete(PODS, "default", "demo-main-0", grace=0))
    controller.settle()
    assert phase() == "Aborted"


@pytest.mark.shows("10/Q-19", "2.5/Restarting, no retries")
def test_the_third_restart_of_three_makes_no_pods(controller):
    started(controller, policies=[{"event": "PodFailed", "action": "RestartJob"}])
    for _ in range(2):
        become(controller, "Failed", "demo-main-0", code=1)
        admit(controller)
        become(controller, "Running")
    before = store.revision()
    become(controller, "Failed", "demo-main-0", code=1)
    admit(controller)
    assert (phase(), state()["retryCount"]) == ("Failed", 3)
    assert [c.name for c in store.changes(before, [PODS]) if c.verb == "ADDED"] == []
