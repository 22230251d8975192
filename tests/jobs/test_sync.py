"""What becomes of pods, pod group, claims and status as things change (reference: volcano-job §1.5, §2.4)."""

from __future__ import annotations

import re

import pytest

from cluster.store import Create, Delete, Patch, store
from jobs.controller import dependencies
from jobs.lifecycle import fired
from kube.resources import CLAIMS, EVENTS, JOBS, POD_GROUPS, PODS
from tests.builders import pod_group
from tests.jobs.builders import pod_fact, terminated
from tests.jobs.control import CLAIM, Controller, job, messages, phase, pods, state, task
from tests.tables import cases

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("runner_mode")]


@pytest.mark.shows("2.8/scale", "3.3/job", "4.4/minMember", "4.4/minTaskMember", "4.4/minResources", "1.5/minAvailable")
def test_pod_group_and_status_follow_the_numbers_of_the_job(controller):
    controller.start(replicas=2)
    assert state()["minAvailable"] == 2
    controller.resize(5, minAvailable=4)
    spec = store.find(POD_GROUPS)[0].object["spec"]
    assert (spec["minMember"], spec["minTaskMember"], spec["minResources"]["pods"]) == (4, {"main": 4}, "4")
    assert state()["minAvailable"] == 4


@pytest.mark.shows("4.4/priorityClassName", "1.6/spec.priorityClassName", "1.6/metadata")
def test_of_the_other_fields_the_pod_group_follows_the_priority_class_alone(controller):
    controller.start(replicas=1)
    changes = {"spec": {"priorityClassName": "high"}, "metadata": {"labels": {"team": "a"}}}
    store.write(Patch(JOBS, "default", "demo", changes))
    controller.settle()
    group = store.find(POD_GROUPS)[0].object
    assert (group["spec"]["priorityClassName"], group["metadata"].get("labels")) == ("high", None)
    pod = store.get(PODS, "default", "demo-main-0").object
    assert ("team" in pod["metadata"]["labels"], pod["spec"].get("priorityClassName")) == (False, None)


@pytest.mark.shows("2.4/2", "10/Q-8")
@pytest.mark.embedded  # an API server refuses the group
def test_a_job_whose_queue_is_gone_waits_and_is_not_ended(controller, moved_clock):
    controller.submit(job(queue="gone"))
    moved_clock.move(3600)
    controller.settle()
    assert (phase(), store.find(POD_GROUPS)[0].object["spec"]["queue"]) == ("Pending", "gone")


@pytest.mark.shows("10/Q-8", "3.6/tried again", "3.6/given up", "2.7/gave up",
                   "3.7/PodGroupError, JobStatusError, FailedDelete")  # fmt: skip
def test_what_cannot_be_written_is_tried_again_for_as_long_as_it_takes(controller, moved_clock):
    stored = store.write(Create(JOBS, job()))[0]
    name = f"demo-{stored.uid}"
    store.write(Create(POD_GROUPS, pod_group(name)))
    for _ in range(30):
        controller.settle()
        moved_clock.move(31)
    assert "status" not in store.get(JOBS, "default", "demo").object
    assert {each.object["reason"] for each in store.find(EVENTS)} == {"WriteRefused"}
    # The third try comes half a minute after the first, so it is news already; from then on each power of two is.
    tries = {each.partition(":")[0] for each in messages()}
    assert tries == {f"Tried {times} times" for times in (3, 4, 8, 16)}
    store.write(Delete(POD_GROUPS, "default", name))
    moved_clock.move(31)
    controller.settle()
    controller.admit()
    assert (phase(), len(pods())) == ("Pending", 2)


@pytest.mark.shows("3.7/PodGroupPending")
def test_why_the_pod_group_waits_is_told_once(controller):
    controller.submit(job())
    waits = {"type": "Unschedulable", "status": "True", "message": "0/1 nodes have 2 CPU free."}
    controller.group_is("Inqueue", {**waits, "lastTransitionTime": "2026-01-01T00:00:00Z"})
    Controller().settle()
    (event,) = (each.object for each in store.find(EVENTS) if each.object["reason"] == "PodGroupPending")
    assert (event["type"], waits["message"] in event["message"]) == ("Warning", True)


@pytest.mark.shows("4.2/ready")
@cases("of_pod, containers, is_ready", {
    "succeeded": ("Succeeded", [False], True),
    "all containers are ready": ("Running", [True, True], True),
    "one container is not": ("Running", [True, False], False),
    "no container yet": ("Running", [], False),
    "pending": ("Pending", [True], False),
    "failed": ("Failed", [True], False),
})  # fmt: skip
def test_a_pod_that_others_wait_for_is_ready(of_pod, containers, is_ready):
    statuses = [{"name": str(n), "ready": ready} for n, ready in enumerate(containers)]
    assert dependencies.is_ready(pod_fact(phase=of_pod, containerStatuses=statuses)) is is_ready


@pytest.mark.shows("9.1/3", "1.4/a claim", "4.3/named", "3.7/PVCError", "7.3/15 no claim")
def test_volume_without_claim_is_an_empty_directory_and_an_event_says_so(controller):
    controller.submit(job(replicas=1, volumes=[{"mountPath": "/a"}, {"mountPath": "/b", "volumeClaimName": "none"}]))
    controller.admit()
    found = store.get(PODS, "default", "demo-main-0").object["spec"]["volumes"]
    assert [volume["emptyDir"] for volume in found] == [{}, {}]
    assert any("There is no claim none" in message for message in messages())


@pytest.mark.shows(
    "1.4/volumeClaim", "4.3/made", "4.3/name", "1.5/controlledResources", "4.3/noted", "4.3/restart", "2.2/12"
)
def test_described_claim_is_made_once_mounted_and_listed_beside_the_one_that_is_named(controller):
    described, named = {"mountPath": "/a", "volumeClaim": CLAIM}, {"mountPath": "/b", "volumeClaimName": "data"}
    stored = controller.start(bound=True, volumes=[described, named, {"mountPath": "/c"}])
    (claim,) = store.find(CLAIMS)
    assert re.fullmatch("demo-pvc-[0-9a-z]{12}", claim.name)
    assert claim.object["metadata"]["ownerReferences"][0]["uid"] == stored.uid
    assert claim.object["spec"]["accessModes"] == ["ReadWriteOnce"]
    assert store.get(JOBS, "default", "demo").object["spec"]["volumes"][0]["volumeClaimName"] == claim.name
    volume = store.get(PODS, "default", "demo-main-0").object["spec"]["volumes"][0]
    assert volume["persistentVolumeClaim"] == {"claimName": claim.name}
    assert state()["controlledResources"] == {f"volume-pvc-{claim.name}": claim.name, "volume-pvc-data": "data"}
    controller.issue("RestartJob")
    controller.sweep()
    controller.run()
    assert (phase(), [each.uid for each in store.find(CLAIMS)]) == ("Running", [claim.uid])


@pytest.mark.shows("10/Q-17", "3.3/pod failed")
@cases("codes, init, listed, answered", {
    "the only container": ((3,), (), [3], [3]),
    "the second of two": ((0, 3), (), [3], [3]),
    "the second of two that failed": ((1, 3), (), [1, 3], [3]),
    "an init container": ((), (3,), [3], [3]),
    "beside a sidecar that was ended": ((3,), (0, 143), [3, 143], [3]),
    "another code": ((1, 0), (0,), [1], []),
    "none": ((0,), (), [], []),
})  # fmt: skip
def test_what_is_told_of_exit_codes_is_what_policies_answer(controller, codes, init, listed, answered):
    controller.start(replicas=2, minAvailable=1, policies=[{"exitCode": 3, "action": "AbortJob"}])
    ended = {"containerStatuses": terminated(*codes), "initContainerStatuses": terminated(*init)}
    controller.become("Failed", "demo-main-0", **ended)
    assert (phase() == "Aborted") is bool(answered)
    assert [each for each in range(1, 256) if store.find(JOBS, exit_code=each)] == listed
    assert [each.exit_code for each in map(fired.read, messages()) if each] == answered


# ---- the status


@pytest.mark.shows("1.5/taskStatusCount", "1.5/pending, running, succeeded, failed, unknown")
def test_pods_are_counted_by_phase_in_all_and_of_each_task(controller):
    controller.submit(job(tasks=[task("ps", 1), task("worker", 4)], minAvailable=1))
    controller.admit()
    reached = {"ps-0": "Running", "worker-0": "Succeeded", "worker-1": "Failed", "worker-2": "Unknown"}
    for name, of_pod in reached.items():
        controller.become(of_pod, f"demo-{name}")
    of_worker = {"Failed": 1, "Pending": 1, "Succeeded": 1, "Unknown": 1}
    assert state()["taskStatusCount"] == {"ps": {"phase": {"Running": 1}}, "worker": {"phase": of_worker}}
    assert [state()[name] for name in ("pending", "running", "succeeded", "failed", "unknown")] == [1] * 5
