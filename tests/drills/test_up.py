"""The whole system through a machine's day: started, used, stopped, killed, cut off and put to sleep."""

from __future__ import annotations

import os
import signal
import subprocess
import time

import pytest
import redis

from node.shim import tree
from proof.harness.waiting import HANG_S, until
from proof.systems.system import PROJECT, UP
from proof.systems.work import Person, Watcher, job, shell
from volcano_ui import valkey

pytestmark = pytest.mark.system


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


def test_killing_up_itself_leaves_nothing_but_pods_and_the_next_start_goes_on(own):
    with own, Person(own) as person, own.store() as store:
        watcher = Watcher(store)
        mark, stubborn = endless(own)
        person.create(stubborn)
        person.create(job("short", shell("echo said before; exit 0")))
        watcher.reaches("endless", "Running")
        watcher.reaches("short", "Completed")
        own.kill()
        left = {below for shim in own.shims() for below in (shim, *tree.below(shim))} | {own.holder()}
        until(lambda: set(own.processes(mark)) <= left, what=f"pods and their holder ({own.processes(mark)})")
        own.start()
        assert watcher.phase("short") == "Completed"
        assert person.get("/jobs/default/short/").status_code == 200, "the session is known after the restart"
        assert watcher.phase("endless") == "Running"


def test_state_survives_a_restart(own):
    with own, Person(own) as person, own.store() as store:
        watcher = Watcher(store)
        person.create(
            job(
                "kept",
                shell("echo kept words; exit 0"),
                shell("sleep 1; exit 3", name="fails", minAvailable=0),
                minimum=1,
            )
        )
        watcher.reaches("kept", "Completed", "Failed")
        before = watcher.job("kept")["status"]
        own.stop()
        own.start()
        after = watcher.job("kept")["status"]
        assert {key: after.get(key) for key in ("state", "succeeded", "failed")} == {
            key: before.get(key) for key in ("state", "succeeded", "failed")
        }
        assert "kept words" in log_of(person, watcher, "kept", "kept-main-0")
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
        assert lost_nodes(watcher) == []


LEASE_S = 40


def lost_nodes(watcher):
    """The nodes that were called lost at any time."""
    ready = [
        (change.name, condition["status"])
        for change in watcher.everything()
        if change.resource == "nodes" and change.verb != "DELETED"
        for condition in change.object.get("status", {}).get("conditions", [])
        if condition["type"] == "Ready"
    ]
    return [each for each in ready if each[1] != "True"]


def log_of(person, watcher, name, pod):
    """Return the log that the job's page offers for a pod."""
    answer = person.get(f"/jobs/default/{name}/log/", pod=pod)
    assert answer.status_code == 200, answer.text[:300]
    return answer.text
