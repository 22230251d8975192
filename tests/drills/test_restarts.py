"""Running pods while the system is stopped, killed, or goes down with its machine: none of their jobs fails for it."""

import contextlib
import os
import signal

import pytest

from kube.resources import EVENTS, NODES
from node.shim import tree
from proof.harness.waiting import HANG_S, until
from proof.systems.system import System
from proof.systems.work import Person, Watcher, held, job, shell
from tests.tables import cases

pytestmark = pytest.mark.system


@pytest.fixture
def own(tmp_path, request):
    """A system of this test's own, which does with running pods as the test's parameter says, or by default."""
    system = System(tmp_path / "data", VOLCANO_UI_RUNNING=getattr(request, "param", ""))
    yield system
    system.environment["VOLCANO_UI_RUNNING"] = "end"
    system.kill() if system.process.poll() is None else None
    system.end_pods()
    system.assert_gone()


def stops(running):
    return pytest.mark.parametrize("own", [running], indirect=True)


@contextlib.contextmanager
def at_work(own, *jobs):
    """Start a system and have jobs run on it; yields who looks at it, and the uids of the first one's pods."""
    with own, Person(own) as person, own.store() as store:
        watcher = Watcher(store)
        for each in jobs:
            person.create(each)
        for each in jobs:
            watcher.reaches(each["metadata"]["name"], "Running")
        yield watcher, uids(watcher, jobs[0]["metadata"]["name"])


def output_of(own):
    return "".join(own.output)


def uids(watcher, name):
    return {pod["metadata"]["uid"] for pod in watcher.pods(name).values()}


def ends(watcher, name):
    """See a job to its end."""
    done = watcher.reaches(name, "Completed", "Failed", "Terminated", "Aborted")
    assert done["status"]["state"]["phase"] == "Completed", (name, watcher.story(name))
    return done


def ran_on(watcher, before, go):
    """Have the only pod end after a restart, and see that it is the one from before."""
    go.touch()
    assert not ends(watcher, "held")["status"].get("retryCount")
    assert uids(watcher, "held") == before


@cases("end", {
    "Ctrl-C": lambda own: own.stop(signal.SIGINT),
    "SIGTERM": lambda own: own.stop(signal.SIGTERM),
    "the terminal is closed": lambda own: own.stop(signal.SIGHUP),
    "up is killed": lambda own: own.kill(),
})  # fmt: skip
def test_running_pod_goes_on_while_the_system_is_stopped_and_started(own, go, end):
    with at_work(own, job("held", held(go))) as (watcher, before):
        end(own)
        assert set(own.shims().values()) == before
        own.start()
        assert watcher.phase("held") == "Running"
        ran_on(watcher, before, go)


def test_pod_that_ends_while_nobody_looks_has_ended(own, go):
    with at_work(own, job("held", held(go))) as (watcher, before):
        own.stop()
        until(lambda: "1 running pod (default/held-main-0) goes on until the next start takes over" in output_of(own))
        go.touch()
        until(lambda: not own.shims(), what="the end of the pod")
        own.start()
        ran_on(watcher, before, go)


def test_killed_agent_costs_nothing(own, go):
    with at_work(own, job("held", held(go))) as (watcher, before):
        agent = own.children()["agent"]
        os.kill(agent, signal.SIGKILL)
        until(lambda: own.children().get("agent", agent) != agent, what="another agent")
        ran_on(watcher, before, go)


def power_is_lost(own):
    """All at once, so that nobody can write down anything."""
    own.process.send_signal(signal.SIGSTOP)
    everybody = [*own.tree(), *own.shims()]
    for pid in everybody:
        tree.send(pid, signal.SIGSTOP)
    own.end_pods()
    for pid in everybody:
        tree.send(pid, signal.SIGKILL)
    own.process.wait()


def machine_goes_down(own):
    """Everybody is asked to end, in the order of their ids, as systemd asks what is left at the end."""
    for pid in sorted({*own.processes(), *own.shims()}):
        tree.send(pid, signal.SIGTERM)
    own.process.wait(HANG_S)
    until(lambda: not own.processes(), what="the end of all")


def is_rebooted(own):
    """The system was stopped in order, and pods that went on end with the machine."""
    own.stop()
    own.end_pods()


@pytest.mark.parametrize("end", [power_is_lost, machine_goes_down, is_rebooted])
def test_job_whose_pods_ended_with_the_machine_runs_again(own, go, end):
    """One without policies makes its pods anew; one with a policy for PodEvicted does what that says."""

    def policy(event, action):
        return [{"event": event, "action": action}]

    jobs = (
        job("plain", held(go, replicas=2)),
        job("restarts", held(go), policies=policy("PodEvicted", "RestartJob")),
        job("aborts", held(go), policies=policy("PodEvicted", "AbortJob")),
        job("fails", held(go), policies=policy("PodFailed", "TerminateJob")),
        job("stays", held(go, restartPolicy="OnFailure")),
    )
    others = ("plain", "restarts", "fails")  # whose pods are made anew
    with at_work(own, *jobs) as (watcher, _):
        before = {name: uids(watcher, name) for name in (*others, "stays")}
        end(own)
        go.touch()
        own.start()
        for name in before:
            ends(watcher, name)
        watcher.reaches("aborts", "Aborted")
        assert [name for name in others if before[name] & uids(watcher, name)] == []
        assert uids(watcher, "stays") == before["stays"], "the same pod began again in its place"
        events = [each.object for each in watcher.store.find(EVENTS)]
        assert "NodeShutdown" in {each["reason"] for each in events if each["involvedObject"]["kind"] == "Pod"}


@stops("end")
def test_stop_that_ends_pods_has_their_jobs_run_them_again(own, go):
    checks = shell(f"trap 'exit 0' TERM; until [ -e {go} ]; do sleep 0.05; done", sees=go.parent)
    ending = "Stopping, and ending 3 running pods (default/checks-main-0, default/held-main-0, default/held-main-1)"
    with at_work(own, job("held", held(go, replicas=2)), job("checks", checks)) as (watcher, before):
        before |= uids(watcher, "checks")
        own.stop()
        assert ending in output_of(own)
        until(lambda: "everything is stopped" in output_of(own))
        own.assert_gone()
        go.touch()
        own.start()
        for name in ("held", "checks"):
            ends(watcher, name)
            assert not before & uids(watcher, name)


@stops("wait")
def test_stop_that_waits_lets_pods_end_and_starts_no_others(own, go):
    with at_work(own, job("held", held(go))) as (watcher, _):
        own.process.send_signal(signal.SIGINT)
        until(lambda: "Stopping once 1 running pod (default/held-main-0) has ended" in output_of(own))
        with Person(own) as person:
            person.create(job("later", shell("exit 0")))
        go.touch()
        assert own.process.wait(HANG_S) == 0
        (pod,) = watcher.pods("held").values()
        assert pod["status"]["phase"] == "Succeeded", "its end was heard"
        assert watcher.phase("later") != "Completed"
        own.assert_gone()
        own.start()
        for name in ("held", "later"):
            watcher.reaches(name, "Completed")


@stops("wait")
def test_second_signal_ends_the_waiting_and_leaves_the_pod(own, go):
    with at_work(own, job("held", held(go))) as (watcher, before):
        own.process.send_signal(signal.SIGINT)
        until(lambda: "Stopping once" in output_of(own))
        until(lambda: not watcher.store.count(NODES).get("Ready", 0))
        own.stop()
        assert set(own.shims().values()) == before
        own.start()
        ran_on(watcher, before, go)
