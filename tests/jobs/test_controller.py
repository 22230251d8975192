"""What the job controller makes of a job and keeps in step, in each backend (reference: volcano-job §1.5, §2.4)."""

import re
from pathlib import Path

import pytest
import yaml
from django.db import connection

from cluster import access, api, tasks
from cluster.bootstrap import bootstrap
from cluster.consumers import consumer
from cluster.store import Create, Delete, Patch, store
from jobs.lifecycle import policy_firings
from kube.kinds.core import Event
from kube.resources import CLAIMS, EVENTS, JOBS, NODES, POD_GROUPS, PODS
from tests import statuses
from tests.builders import node, pod_group
from tests.jobs.builders import terminated
from tests.jobs.control import CLAIM, Controller, job, messages, phase, pods, report, state, task
from tests.jobs.made import runner, settle
from tests.tables import cases

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("runner_mode")]
SEEDS = Path(__file__).parents[1] / "golden" / "jobs"
NO_REPLICAS, NO_MINIMUM = ({"tasks": [task("main", n, minAvailable=0)], "minAvailable": 0} for n in (0, 2))
THEN = task("then", 1, dependsOn={"name": ["first"]})
TWO_WAIT = {"tasks": [task("first", 3, minAvailable=2), THEN], "minAvailable": 2}
TOGETHER = {"tasks": [task("first", 1), task("second", 1, dependsOn={"name": ["first"]})], "minAvailable": 2}
ANY_OF_TWO = {"name": ["first", "other"], "iteration": "any"}
IN_VAIN = [task("first", 1), task("other", 0), task("second", 1, dependsOn=ANY_OF_TWO)]


@cases("spec, story", {
    "events tell of all pods at once | 3.7/SuccessfulCreate, SuccessfulDelete": ({"replicas": 30}, """
        admit → reasons SuccessfulCreate; tells Created 30 pods.
        starts → reasons PodsRunning; tells Running: 30 of 30 pods
        succeed → reasons AllPodsEnded; tells Completed: All 30 pods succeeded."""),
    "replicas that are lowered end marked pods with the highest index, and raised ones make more | 2.4/7 surplus + 2.4/9"
    " + 2.8/scale + 10/Q-3 + 2.2/4 + 4.1/annotation volcano.sh/controller-out-of-sync": (
        {"replicas": 4, "minAvailable": 1}, """
        run, scale 2 1 → pods main-0 main-1; running 2; marked main-2 main-3; group 1 main=1 pods=1
        scale 3 → pods main-0 main-1 main-2"""),
    "pod group and status follow the numbers of the job | 2.8/scale + 3.3/job + 4.4/minMember + 4.4/minTaskMember"
    " + 4.4/minResources + 1.5/minAvailable": ({}, """
        run → minAvailable 2
        scale 5 4 → group 4 main=4 pods=4; minAvailable 4"""),
    "pods are counted by phase in all and of each task | 1.5/taskStatusCount"
    " + 1.5/pending, running, succeeded, failed, unknown": ({"tasks": [task("ps", 1), task("w", 4)], "minAvailable": 1}, """
        admit, starts ps-0, succeed w-0, fail w-1, report Unknown w-2 → pending 1; running 1; succeeded 1; failed 1; unknown 1
        → tasks ps Running=1 w Failed=1,Pending=1,Succeeded=1,Unknown=1"""),
    "a task waits for the minimum of another | 1.2/dependsOn.name + 2.4/8 dependsOn + 4.2/pod group + 4.2/ready": (TWO_WAIT, """
        → group 2 first=2,then=1 pods=2
        admit, succeed first-0 → pods first-0 first-1 first-2
        succeed first-1 → pods first-0 first-1 first-2 then-0"""),
    **{
        f"tasks that must start together and wait for each other are named, {words}": (TOGETHER, f"""
        admit, group Inqueue {counted} → pods first-0; reason TaskDeadlock
        → says This can never start: second waits for first, and nothing starts without second, as minAvailable 2 needs them
        → says them at the same time; set minAvailable to 1. 0 of 2 pods are running; minAvailable is 2.""")
        for words, counted in (
            ("though the scheduler has not counted", ""),
            ("whatever the scheduler counts", "NotEnoughTasks 1 of 2 pods exist; waiting for the others to be created."),
        )
    },
    "tasks that wait for others are named, and what to do when their turn never comes": (
        {"tasks": [{**each, "minAvailable": 1} for each in IN_VAIN], "minAvailable": 1}, """
        admit → reason WaitingForTasks; says 0 of 2 pods are running; minAvailable is 1. Task second waits for first or other.
        fail first-0 → says 0 of 2 pods are running, 1 failed; minAvailable is 1. Task second waits for first or other.
        → says No pod is left that could become ready: restart the job, or terminate it."""),
    "a job without replicas runs before its group is let in": (
        NO_REPLICAS, "→ conditions Pending Running; reason NoReplicas; pods"),
    "a job that needs no pod runs before its group is let in | 2.5/Pending, minAvailable 0": (
        NO_MINIMUM, "→ conditions Pending Running; reason PodsRunning; pods"),
    "a name that a stranger holds is waited for | 2.1/leftover pods": ({}, """
        !hold main-0, admit → pods main-0 main-1; pending 1; reason NamesTaken
        evict main-0 → pods main-0 main-1; pending 2"""),
    "why the pod group waits is told once | 3.7/PodGroupPending": ({}, """
        group Inqueue NotEnoughResources 0/1 nodes have 2 CPU free., next → reasons SuccessfulCreate PodGroupPending; warnings 1
        group Inqueue NotEnoughResources 0/1 nodes have 2 CPU free. → reasons"""),
    "a new process goes on where the last one stopped": ({}, "admit, starts main-0, !starts main-1, next → phase Running"),
    "a finished job is deleted after its time | 1.1/ttlSecondsAfterFinished + 6.2/0": (
        {"replicas": 1, "ttlSecondsAfterFinished": 0}, "run, succeed → finalizers foregroundDeletion"),
    "a later job of a name has its own time | 6.2/since + 6.2/how": ({"replicas": 1, "ttlSecondsAfterFinished": 100}, """
        run, succeed, again, wait 60, run, succeed → going no
        wait 50 → going no
        wait 51 → going yes"""),
    "of a finished job without pods nothing is kept": ({}, "run, command TerminateJob, sweep → phase Terminated; pods; kept 0"),
})  # fmt: skip
def test_story(tell, spec, story):
    tell(spec, story)


@pytest.mark.embedded  # as many requests would take half a minute
def test_many_pods_are_made_in_rounds(controller):
    controller.submit(job(replicas=2500))
    controller.admit()
    assert (len(pods()), state()["pending"]) == (2500, 2500)
    assert messages() == [f"Created {number} of 2500 pods." for number in (1000, 1000, 500)]


@pytest.mark.each_backend
@cases("change", {
    "unreadable": lambda bad: bad | {"spec": {"tasks": "no"}},
    "unreadable quantity": lambda bad: bad["spec"]["tasks"][0]["template"]["spec"]["containers"][0].update(
        resources={"requests": {"cpu": "x"}}),
})  # fmt: skip
def test_job_that_cannot_be_planned_does_not_stop_the_others(controller, change):
    bad = job("bad")
    store.write(Create(JOBS, change(bad) or bad))
    controller.submit(job())
    assert phase() == "Pending"
    Controller().settle()


@pytest.mark.each_backend
@pytest.mark.shows("3.6/tried again", "2.4/8 errors", "2.2/6")
def test_a_full_disk_puts_the_controller_off_and_loses_nothing(
    request, controller, caplog, monkeypatch, redis_url, settings
):
    store.write(*(Create(JOBS, job(f"job-{number}")) for number in range(30)))
    request.getfixturevalue("full_disk")
    settings.REDIS_URL = redis_url
    monkeypatch.setattr(consumer, "_runners", {})
    tasks.consume("jobs", 0)
    assert "database or disk is full" in caplog.text
    assert not [record for record in caplog.records if record.exc_info]
    assert store.find(POD_GROUPS) == []
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA max_page_count = 1073741823")
    tasks.consume("jobs", 0)
    assert len(store.find(POD_GROUPS)) == 30


@pytest.mark.shows("4.4/priorityClassName", "1.6/spec.priorityClassName", "1.6/metadata")
def test_of_the_other_fields_the_pod_group_follows_the_priority_class_alone(controller):
    controller.start(replicas=1)
    changes = {"spec": {"priorityClassName": "high"}, "metadata": {"labels": {"team": "a"}}}
    store.write(Patch(JOBS, "default", "demo", changes))
    controller.settle()
    group, pod = store.find(POD_GROUPS)[0].object, store.get(PODS, "default", "demo-main-0").object
    assert (group["spec"]["priorityClassName"], group["metadata"].get("labels")) == ("high", None)
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
    assert {each.partition(":")[0] for each in messages()} == {f"Tried {times} times" for times in (3, 4, 8, 16)}
    store.write(Delete(POD_GROUPS, "default", name))
    moved_clock.move(31)
    controller.settle()
    controller.admit()
    assert (phase(), len(pods())) == ("Pending", 2)


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
    firings = [policy_firings.of_event(each.read(Event)) for each in store.find(EVENTS)]
    assert [each.exit_code for each in firings if each] == answered


def test_a_field_that_a_definition_lacks_is_found():
    status = {"running": 1, "keptBefore": "x", "state": {"phase": "Failed", "mood": "low"}}
    assert statuses.lost(JOBS, {"status": status}) == ["status.keptBefore", "status.state.mood"]


@pytest.mark.shows("6.1/owners", "coscheduling 2/owner")
@pytest.mark.parametrize("name", ["tf-job", "spark-job", "mpi-job"])
def test_job_of_the_seed_runs_to_its_end_and_goes_with_all_it_made(name):
    """With scheduler, queue controller and garbage collector, through the one door."""
    bootstrap()
    store.write(Create(NODES, node("n1", allocatable={"cpu": "8", "memory": "32Gi"})))
    system = [runner(each) for each in ("jobs", "scheduler", "queues", "garbage")]
    api.create(access.SYSTEM, JOBS, yaml.safe_load((SEEDS / f"{name}.in.yaml").read_text()))
    settle(*system)
    assert all(pod.object["spec"].get("nodeName") == "n1" for pod in store.find(PODS))
    report("Running")
    settle(*system)
    assert phase(name) == "Running"
    report("Succeeded")
    settle(*system)
    assert (phase(name), store.find(POD_GROUPS)) == ("Completed", [])
    assert statuses.dropped() == []
    api.delete(access.SYSTEM, JOBS, "default", name)
    settle(*system)
    assert store.find(JOBS) == store.find(PODS) == []
