"""Jobs with real processes, from the form to their end."""

import os
import re
import signal

import pytest

from kube.resources import QUEUES
from proof.harness.waiting import until
from proof.systems.work import held, job, problems, shell, task

pytestmark = [pytest.mark.system, pytest.mark.both_modes]


@pytest.fixture
def mark(request):
    """A command that never ends, and that only this test's processes run."""
    return f"sleep 35{abs(hash(request.node.name)) % 10**6}.{os.getpid()}"


def ended(pod):
    return pod["status"]["containerStatuses"][0]["state"]["terminated"]


def test_four_workers_succeed_and_the_fifth_task_fails_on_purpose(person, watcher):
    def log(pod):
        answer = person.get("/jobs/default/primes/log/", pod=f"primes-{pod}")
        assert answer.status_code == 200, answer.text[:300]
        return answer.text

    worker = shell("echo worker $VC_TASK_INDEX", name="worker", replicas=4)
    broken = shell("sleep 1; echo gave up >&2; exit 3", name="broken", minAvailable=0)
    person.create(job("primes", worker, broken, minimum=4, maxRetry=0, plugins={"env": []}))
    done = watcher.reaches("primes", "Completed", "Failed")["status"]
    assert (done["succeeded"], done["failed"]) == (4, 1), done
    assert ended(watcher.pods("primes")["primes-broken-0"])["exitCode"] == 3
    assert ("gave up" in log("broken-0"), "worker 2\n" in log("worker-2")) == (True, True)


def test_gang_larger_than_the_machine_waits_with_numbers_and_starts_when_there_is_room(person, watcher):
    cores = os.cpu_count()
    person.create(job("holder", shell("sleep 3600", cpu=str(cores - 0.5), terminationGracePeriodSeconds=0)))
    watcher.reaches("holder", "Running")
    person.create(job("gang", shell("exit 0", replicas=2, cpu="500m")))
    watcher.reaches("gang", "Pending")
    until(
        lambda: re.search(r"\d.*CPU|CPU.*\d", watcher.state("gang").get("message") or ""), what="a reason with numbers"
    )
    assert all(not pod["spec"].get("nodeName") for pod in watcher.pods("gang").values()), "none starts alone"
    person.post("/jobs/default/holder/delete/")
    assert watcher.reaches("gang", "Completed")["status"]["succeeded"] == 2


def test_failing_command_fails_its_job_and_the_reason_is_said(person, watcher, cluster, mark):
    commands = {
        "unknown": (["no-such-program-anywhere"], "no-such-program-anywhere"),
        "own-code": (["sh", "-c", "exit 7"], "'exitCode': 7"),
        "by-a-signal": (["sh", "-c", f"exec {mark}"], "'exitCode': 137"),
    }
    for name, (command, _) in commands.items():
        person.create(job(name, task(command), maxRetry=0))
    watcher.reaches("by-a-signal", "Running")
    pid = until(lambda: next((p for p, line in cluster.processes(mark).items() if line.strip() == mark), None))
    os.kill(pid, signal.SIGKILL)
    for name, (_, words) in commands.items():
        watcher.reaches(name, "Failed")
        (pod,) = watcher.pods(name).values()
        assert words in str(ended(pod)), ended(pod)


def test_of_a_job_that_is_deleted_or_ends_no_process_is_left(person, watcher, cluster, mark):
    fork = f"for i in 1 2 3; do setsid nohup {mark} >/dev/null 2>&1 & done; exit 0"
    person.create(job("forks", shell(fork)))
    ignores = f"trap '' TERM; while :; do {mark}; done"
    person.create(job("stubborn", shell(ignores, terminationGracePeriodSeconds=2)))
    watcher.reaches("forks", "Completed")
    watcher.reaches("stubborn", "Running")
    until(lambda: marked(cluster, mark).count(mark) == 1, what="the end of the daemons, and the process of the other")
    assert person.post("/jobs/default/stubborn/delete/").status_code == 302
    until(lambda: watcher.job("stubborn") is None, what="the end of the job")
    until(lambda: not marked(cluster, mark), what="the end of its processes")


def marked(cluster, mark):
    return [line.strip() for line in cluster.processes(mark).values() if mark in line]


def test_closing_a_queue_lets_running_work_end_and_refuses_new_work(person, watcher, shown, go):
    def becomes(state):
        def found():
            return (shown.store.get(QUEUES, "", "batch").object.get("status") or {}).get("state") == state

        until(found, what=state)

    assert person.post("/queues/-/new/", name="batch", weight="1").status_code == 302
    becomes("Open")
    person.create(job("inside", held(go), queue="batch"))
    watcher.reaches("inside", "Running")
    person.post("/queues/batch/close/")
    becomes("Closing")
    refused = person.submit(job("outside", shell("exit 0"), queue="batch"))
    assert (refused.status_code, "batch" in problems(refused)) == (422, True)
    go.touch()
    watcher.reaches("inside", "Completed")
    becomes("Closed")
    person.post("/queues/batch/open/")
    becomes("Open")
    person.create(job("outside", shell("exit 0"), queue="batch"))
    watcher.reaches("outside", "Completed")
