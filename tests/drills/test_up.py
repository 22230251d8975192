"""The whole system through a machine's day: started, used, stopped, hung, cut off, put to sleep, with several workers."""

import contextlib
import os
import signal
import subprocess
import time
from collections import Counter

import httpx
import pytest
import redis

from cluster.api.bulk import BATCH
from cluster.runtime.registry import shard_of
from cluster.writes import Create, Group
from jobs.models import Operation, OperationItem
from kube.resources import COMMANDS, JOBS
from node.shim import tree
from proof.harness.waiting import HANG_S, until
from proof.systems.parts import stopped
from proof.systems.system import NAMES, PROJECT, UP, System, running
from proof.systems.work import Person, Watcher, job, shell
from tests.jobs import control
from volcano_ui import valkey

pytestmark = pytest.mark.system
LEASE_S = 40


def endless(own):
    """Return a mark that only this test's processes carry, and a job whose command never ends by itself."""
    mark = f"sleep 3517.{own.port}"
    script = f"trap '' TERM; echo started; while :; do {mark}; done"
    return mark, job("endless", shell(script, name="stubborn", terminationGracePeriodSeconds=1))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_stopping_leaves_no_process_of_any_job(own, number):
    with own, Person(own) as person, own.store() as store:
        mark, stubborn = endless(own)
        person.create(stubborn)
        Watcher(store).reaches("endless", "Running")
        until(lambda: mark in " ".join(own.processes(mark).values()), what="the job's process")
        own.stop(number)
        assert own.process.returncode == 0
        own.assert_gone(mark)


def test_closing_the_terminal_stops_everything(own):
    reader, writer = os.pipe()
    process = subprocess.Popen(UP, cwd=PROJECT, env=own.environment, stdout=writer, stderr=writer)
    os.close(writer)
    with os.fdopen(reader) as terminal:
        assert any(line.startswith("Open ") for line in iter(terminal.readline, ""))
    process.send_signal(signal.SIGHUP)
    assert process.wait(HANG_S) == 0
    own.assert_gone()


def test_state_and_logs_survive_a_restart(own):
    with own, Person(own) as person, own.store() as store:
        watcher = Watcher(store)
        fails = shell("sleep 1; exit 3", name="fails", minAvailable=0)
        person.create(job("kept", shell("echo kept words; exit 0"), fails, minimum=1))
        before = watcher.reaches("kept", "Completed", "Failed")["status"]
        own.stop()
        own.start()
        after = watcher.job("kept")["status"]
        assert [after.get(key) for key in ("state", "succeeded", "failed")] == [
            before.get(key) for key in ("state", "succeeded", "failed")
        ]
        assert "kept words" in person.get("/jobs/default/kept/log/", pod="kept-main-0").text
        person.create(job("after", shell("exit 0")))
        watcher.reaches("after", "Completed")


def test_redis_gone_for_a_while_delays_and_loses_nothing(own):
    with own, Person(own) as person, own.store() as store:
        watcher = Watcher(store)
        pid = own.children()["redis"]
        os.kill(pid, signal.SIGSTOP)
        client = redis.Redis.from_url(valkey.url(own.data), socket_timeout=0.2)
        with client, pytest.raises(redis.RedisError):
            client.ping()
        for number in range(5):
            person.create(job(f"silent-{number}", shell("exit 0")))
        tree.send(pid, signal.SIGKILL)  # or the supervisor has done it already
        until(lambda: own.children().get("redis", pid) != pid, what="a new Redis")
        for number in range(5):
            watcher.reaches(f"silent-{number}", "Completed")


def test_machine_that_slept_for_longer_than_a_lease_loses_nothing(own):
    with own, Person(own) as person, own.store() as store:
        watcher = Watcher(store)
        person.create(job("sleeper", shell("for i in 1 2 3 4 5 6 7 8; do echo tick; sleep 1; done")))
        watcher.reaches("sleeper", "Running")
        frozen = list(own.processes())
        for pid in frozen:
            tree.send(pid, signal.SIGSTOP)
        time.sleep(LEASE_S + 5)  # what the machine sleeps, not a wait for something
        for pid in reversed(frozen):
            tree.send(pid, signal.SIGCONT)
        done = watcher.reaches("sleeper", "Completed")
        assert done["status"]["succeeded"] == 1
        assert not done["status"].get("retryCount"), "its pod ran once"
        ready = [
            condition["status"]
            for change in watcher.everything()
            if change.resource == "nodes" and change.verb != "DELETED"
            for condition in change.object.get("status", {}).get("conditions", [])
            if condition["type"] == "Ready"
        ]
        assert set(ready) == {"True"}, "no node was called lost at any time"


def test_each_program_that_stands_still_is_replaced(tmp_path):
    with running(tmp_path / "data", nodes=1) as system:
        before = system.children()
        assert set(before) == set(NAMES)
        for pid in before.values():
            os.kill(pid, signal.SIGSTOP)

        def replaced():
            now = system.children()
            return set(now) == set(before) and not set(now.values()) & set(before.values())

        def healthy():
            with contextlib.suppress(httpx.TransportError):
                return httpx.get(f"{system.base}/healthz", trust_env=False).status_code == 200
            return False

        until(replaced, what=lambda: f"{before} → {system.children()}")
        until(healthy, what="a web server that is well")
        assert "".join(system.output).count("gave no sign of life for 20 s; killing it") == len(NAMES)


def test_jobs_of_both_workers_complete_also_after_one_was_killed(tmp_path):
    names = [f"shared-{number}" for number in range(6)]
    assert {shard_of(f"default/{name}", 2) for name in names} == {0, 1}
    with running(tmp_path / "data", VOLCANO_UI_JOB_WORKERS="2") as two, Person(two) as person, two.store() as store:
        watcher = Watcher(store)
        for name in names:
            person.create(job(name, shell("exit 0")))
            if name == names[2]:
                os.kill(two.children()["jobs-1"], signal.SIGKILL)
        for name in names:
            watcher.reaches(name, "Completed")
        assert all(watcher.job(name)["status"]["succeeded"] == 1 for name in names)


def test_controllers_that_do_not_come_to_their_work_delay_no_job(own):
    with own, Person(own) as person, own.store() as store:
        watcher = Watcher(store)
        with stopped(own, "controllers"):
            # Its end is asked for by a timer, which only a tick finds.
            person.create(job("quick", shell("exit 0"), ttlSecondsAfterFinished=3))
            watcher.reaches("quick", "Completed")
            until(
                lambda: (found := watcher.job("quick")) is None or "deletionTimestamp" in found["metadata"],
                what="the end of the finished job",
            )


def test_number_of_workers_that_is_none_is_refused_by_its_name(tmp_path):
    system = System(tmp_path / "data", VOLCANO_UI_JOB_WORKERS="0")
    with pytest.raises(AssertionError, match="VOLCANO_UI_JOB_WORKERS is '0'; set it to a whole number from 1 to 64"):
        system.start()


JOBS_COUNT = 2000


def kill_worker(system):
    before = until(lambda: system.children().get("controllers"))
    os.kill(before, signal.SIGKILL)
    until(lambda: system.children().get("controllers", before) != before)


def restart(system):
    system.stop()
    system.start()


@pytest.mark.parametrize("interrupt", [kill_worker, restart])
def test_an_interrupted_bulk_operation_loses_no_job_and_asks_none_twice(tmp_path, interrupt):
    with System(tmp_path / "data") as system, system.store() as store, Person(system) as person:
        (container,) = (task := control.task("main", 1))["template"]["spec"]["containers"]
        container["resources"] = {"requests": {"cpu": "6400"}}  # no node has so much
        giants = [control.job(f"giant-{number:04d}", tasks=[task]) for number in range(JOBS_COUNT)]
        store.commit([Group([Create(JOBS, each)]) for each in giants])
        page = person.post("/jobs/-/operations/", action="suspend", which="all", q="giant-").headers["location"]
        number = int(page.strip("/").rpartition("/")[2])
        assert person.post(f"{page}confirm/").status_code == 302
        operations = Operation.objects.using(store.using).filter(pk=number)
        items = OperationItem.objects.using(store.using).filter(operation=number)
        for batches in range(3):
            until(lambda least=batches * BATCH: items.exclude(result="Not begun").count() > least)
            interrupt(system)
        until(lambda: operations.get().over, what="the operation's end")
        # A machine that takes longer than 30 s to start again has the jobs of that time looked at by people.
        results = Counter(items.values_list("result", flat=True))
        assert results["Done"] + results["Timed out"] == JOBS_COUNT, results
        until(lambda: store.count(JOBS) == {"Aborted": JOBS_COUNT}, what=lambda: store.count(JOBS))
        commands = [each for each in Watcher(store).everything() if each.resource == COMMANDS.id]
        orders = Counter(each.object["target"]["name"] for each in commands if each.verb == "ADDED")
        assert (len(orders), set(orders.values())) == (JOBS_COUNT, {1})
        assert f"{JOBS_COUNT} of {JOBS_COUNT} jobs have a result" in person.get(page).text
