"""Jobs with real processes, from the form to their end."""

from __future__ import annotations

import os
import signal

import pytest

from kube.resources import QUEUES
from proof.harness.waiting import until
from proof.systems.work import Person, held, job, problems, shell, task
from tests.tables import cases

pytestmark = [pytest.mark.system, pytest.mark.both_modes]

PRIMES = """
import os
worker = int(os.environ["VC_TASK_INDEX"])
found = 0
for number in range(worker * 5000, worker * 5000 + 5000):
    found += number > 1 and all(number % d for d in range(2, int(number ** 0.5) + 1))
    if number % 1000 == 999:
        print(f"worker {worker}: {found} primes up to {number}", flush=True)
"""

PAGES = ("/", "/jobs/", "/jobs/new/", "/queues/", "/nodes/", "/events/", "/audit/", "/access/", "/password/")


@pytest.fixture
def mark(request):
    """A command that never ends, and that only this test's processes run."""
    return f"sleep 35{abs(hash(request.node.name)) % 10**6}.{os.getpid()}"


def log(person, name, pod):
    answer = person.get(f"/jobs/default/{name}/log/", pod=pod)
    assert answer.status_code == 200, answer.text[:300]
    return answer.content


def ended(pod):
    """The terminated state of a pod's container."""
    return pod["status"]["containerStatuses"][0]["state"]["terminated"]


def test_link_logs_in_and_every_page_answers(system):
    with Person(system) as person:
        for page in PAGES:
            answer = person.get(page)
            assert answer.status_code == 200, (page, answer.text[:300])
            assert answer.url.path == page, f"{page} leads to {answer.url.path}"


def test_four_workers_succeed_and_the_fifth_task_fails_on_purpose(person, watcher):
    worker = task(["python3", "-c", PRIMES], name="worker", replicas=4)
    broken = shell("sleep 1; echo gave up >&2; exit 3", name="broken", minAvailable=0)
    person.create(job("primes", worker, broken, minimum=4, maxRetry=0, plugins={"env": []}))
    done = watcher.reaches("primes", "Completed", "Failed")["status"]
    assert (done["succeeded"], done["failed"]) == (4, 1), done
    pods = watcher.pods("primes")
    assert ended(pods["primes-broken-0"])["exitCode"] == 3
    assert b"gave up" in log(person, "primes", "primes-broken-0")
    assert b"worker 2: 525 primes up to 14999" in log(person, "primes", "primes-worker-2")


def test_gang_larger_than_the_machine_waits_with_numbers_and_starts_when_there_is_room(person, watcher):
    cores = os.cpu_count()
    person.create(job("holder", shell("sleep 3600", cpu=str(cores - 0.5), terminationGracePeriodSeconds=0)))
    watcher.reaches("holder", "Running")
    person.create(job("gang", shell("exit 0", replicas=2, cpu="500m")))

    def why():
        message = watcher.state("gang").get("message") or ""
        return message if "CPU" in message and any(c.isdigit() for c in message) else None

    watcher.reaches("gang", "Pending")
    until(why, what="a reason with numbers")
    assert all(not pod["spec"].get("nodeName") for pod in watcher.pods("gang").values()), "none starts alone"
    person.post("/jobs/default/holder/delete/")
    assert watcher.reaches("gang", "Completed")["status"]["succeeded"] == 2


@cases("command, code, words", {
    "unknown command": (["no-such-program-anywhere"], None, "no-such-program-anywhere"),
    "own exit code": (["sh", "-c", "exit 7"], 7, "7"),
    "killed by a signal": (["sh", "-c", "kill -9 $$$$"], 137, "137"),
})  # fmt: skip
def test_failing_command_fails_its_job_and_the_reason_is_said(person, watcher, request, command, code, words):
    name = "fails-" + request.node.callspec.id.replace(" ", "-")
    person.create(job(name, task(command), maxRetry=0))
    watcher.reaches(name, "Failed")
    (pod,) = watcher.pods(name).values()
    state = ended(pod)
    assert code is None or state["exitCode"] == code
    assert words in str(state), state


@cases("name, script", {
    "a command that ignores SIGTERM": ("stubborn", "trap '' TERM; while :; do {}; done"),
    "a command that never stops": ("endless", "while :; do {}; done"),
})  # fmt: skip
def test_of_a_job_that_is_deleted_no_process_is_left_after_its_grace(person, watcher, cluster, mark, name, script):
    person.create(job(name, shell(script.format(mark), terminationGracePeriodSeconds=2)))
    watcher.reaches(name, "Running")
    until(lambda: marked(cluster, mark), what="its process")
    assert person.post(f"/jobs/default/{name}/delete/").status_code == 302
    until(lambda: watcher.job(name) is None, what="the end of the job")
    until(lambda: not marked(cluster, mark), what="the end of its processes")


def test_daemons_that_a_command_forks_end_with_its_pod(person, watcher, cluster, mark):
    fork = f"for i in 1 2 3; do setsid nohup {mark} >/dev/null 2>&1 & done; exit 0"
    person.create(job("forks", shell(fork)))
    watcher.reaches("forks", "Completed")
    until(lambda: not marked(cluster, mark), what="the end of its daemons")


def marked(cluster, mark):
    return [line for line in cluster.processes(mark).values() if mark in line]


@pytest.mark.embedded  # rotation is a node's business; by the API of a cluster so much takes minutes
def test_flooded_log_is_rotated_and_its_newest_lines_are_kept(person, watcher, cluster):
    flood = "i=0; yes 'a line of the flood that is repeated over and over' | head -c 60000000; echo the last line"
    person.create(job("flood", shell(flood)))
    watcher.reaches("flood", "Completed")
    assert log(person, "flood", "flood-main-0").rstrip().endswith(b"the last line")
    uid = watcher.pods("flood")["flood-main-0"]["metadata"]["uid"]
    kept = sum(f.stat().st_size for f in (cluster.data / "node" / "pods" / uid).rglob("*") if f.is_file())
    assert kept < 56_000_000


def test_binary_output_does_not_harm_the_log(person, watcher):
    script = r"head -c 100000 /dev/urandom; printf '\000\033[2J\377\n<script>alert(1)</script>\nend\n'"
    person.create(job("binary", shell(script)))
    watcher.reaches("binary", "Completed")
    assert log(person, "binary", "binary-main-0").rstrip().endswith(b"end")
    page = person.get("/jobs/default/binary/", tab="logs", pod="binary-main-0")
    assert page.status_code == 200
    assert "<script>alert(1)</script>" not in page.text


def test_closing_a_queue_lets_running_work_end_and_refuses_new_work(person, watcher, shown, tmp_path):
    assert person.post("/queues/-/new/", name="batch", weight="1").status_code == 302
    until(lambda: queue(shown, "batch") == "Open")
    person.create(job("inside", held(tmp_path / "out" / "go"), queue="batch"))
    watcher.reaches("inside", "Running")
    person.post("/queues/batch/close/")
    until(lambda: queue(shown, "batch") == "Closing", what="Closing")
    refused = person.submit(job("outside", shell("exit 0"), queue="batch"))
    assert refused.status_code == 422
    assert "batch" in problems(refused)
    (tmp_path / "out" / "go").touch()
    watcher.reaches("inside", "Completed")
    until(lambda: queue(shown, "batch") == "Closed", what="Closed")
    person.post("/queues/batch/open/")
    until(lambda: queue(shown, "batch") == "Open", what="Open again")
    person.create(job("outside", shell("exit 0"), queue="batch"))
    watcher.reaches("outside", "Completed")


def queue(watcher, name):
    return (watcher.store.get(QUEUES, "", name).object.get("status") or {}).get("state")


def test_killed_pod_process_is_reported_with_its_signal(person, watcher, cluster, mark):
    person.create(job("victim", shell(f"exec {mark}"), maxRetry=0))
    watcher.reaches("victim", "Running")
    pid = until(
        lambda: next((p for p, line in cluster.processes(mark).items() if line.strip() == mark), None),
        what="its process",
    )
    os.kill(pid, signal.SIGKILL)
    watcher.reaches("victim", "Failed")
    (pod,) = watcher.pods("victim").values()
    assert ended(pod)["exitCode"] == 137
