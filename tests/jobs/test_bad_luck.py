"""Each piece of bad luck that a job may have, on its own: what comes of it, and what people are told.

More of it: Commands in a burst (`test_commands`), answers whose writes fail (`test_answers`), several pieces at once
(`test_lifecycle_machine`).
"""

from __future__ import annotations

import itertools

import pytest

from cluster.store import store
from kube.resources import EVENTS, POD_GROUPS, PODS
from tests.jobs.control import job, phase, task
from tests.jobs.control import state as status
from tests.jobs.lifecycle.witness import Witness
from tests.jobs.lifecycle.world import World, is_going, node_of, phase_of
from tests.tables import cases

pytestmark = pytest.mark.django_db(transaction=True)
RESTART = {"event": "PodFailed", "action": "RestartJob"}
# Where a job gets from a phase when nothing else happens to it.
GOES_ON = {
    "Pending": "Running", "Running": "Running", "Restarting": "Running", "Aborting": "Aborted", "Aborted": "Aborted",
    "Completing": "Completed", "Completed": "Completed", "Terminating": "Terminated", "Terminated": "Terminated",
    "Failed": "Failed",
}  # fmt: skip
BY_COMMAND = {
    "Restarting": "RestartJob", "Aborting": "AbortJob", "Aborted": "AbortJob", "Completing": "CompleteJob",
    "Completed": "CompleteJob", "Terminating": "TerminateJob", "Terminated": "TerminateJob",
}  # fmt: skip


@pytest.fixture
def world(db, moved_clock):
    """A cluster without a job, each step of whose job controller is judged."""
    return World(moved_clock, Witness())


def start(world, name="demo", **spec):
    """Bring a job to Running, its pods on two nodes."""
    world.submit(job(name, **spec))
    go_on(world)
    assert phase(name) == "Running"


def go_on(world):
    """Let everybody do what is to be done, until nothing is."""
    while True:
        before = store.revision()
        world.settle()
        world.sweep()
        world.admit()
        world.settle()
        world.bind()
        for pod in pods(world, "Pending"):
            world.begin(pod)
        world.settle()
        if store.revision() == before:
            world.witness.rest(world.clock.us // 1000)
            return


def pods(world, *phases):
    return world.pods(lambda pod: phase_of(pod) in phases and node_of(pod) and not is_going(pod))


def reach(world, wanted, **spec):
    """Bring a job of three pods into a phase; where pods are left in it, one of them has succeeded."""
    if wanted == "Pending":
        world.submit(job(replicas=3, **spec))
        world.settle()
        world.admit()
        world.settle()
        world.bind()
    else:
        start(world, replicas=3, **spec)
        world.end(pods(world, "Running")[0], 0)
        world.settle()
    if wanted == "Failed":
        for pod in pods(world, "Running"):
            world.end(pod, 1)
    elif wanted in BY_COMMAND:
        world.command("demo", BY_COMMAND[wanted])
        world.settle()
        if GOES_ON[wanted] == wanted:
            world.sweep()
    world.settle()
    assert phase() == wanted


def told(name="demo"):
    found = [event.object for event in store.find(EVENTS, order="created")]
    return [f"{e['reason']}: {e['message']}" for e in found if e["involvedObject"]["name"] == name]


def executed(name="demo"):
    return [line for line in told(name) if line.startswith("ExecuteAction")]


def names(world):
    return [pod.name for pod in world.pods()]


# ---- policies that fight


def test_job_that_is_restarted_for_whatever_happens_fails_with_its_retries_and_tells_its_story(world):
    world.submit(job(replicas=1, maxRetry=2, policies=[{"event": "*", "action": "RestartJob"}]))
    go_on(world)
    for _ in range(2):
        world.end(pods(world, "Running")[0], 7)
        go_on(world)
    state = status()["state"]
    assert (state["phase"], state["reason"]) == ("Failed", "RetriesUsedUp")
    assert state["message"] == (
        "Exit 7 · main-0. The job was restarted once; instead of restart 2 it failed, as maxRetry is 2."
    )
    assert [each["status"] for each in status()["conditions"]] == ["Pending", "Running", "Restarting", "Failed"]
    reasons = [reason for line in told() if not (reason := line.partition(": ")[0]).startswith("Successful")]
    run = ["PodsRunning", "PodFailed", "ExecuteAction", "RestartRequested"]
    assert reasons == [*run, "Restarted", *run, "RetriesUsedUp"]
    words = "ExecuteAction: PodFailed: demo-main-0 exited with code 7. The policy for it is RestartJob."
    assert executed() == [words] * 2


def test_of_policies_that_ask_for_opposites_at_once_the_first_decides(world):
    """The second finds the job restarting, which heeds no action (reference: volcano-job §10, Q-13)."""
    tasks = [task("a", 1, policies=[{"event": "PodFailed", "action": "RestartTask"}]), task("b", 1)]
    start(world, tasks=tasks, policies=[{"event": "PodFailed", "action": "AbortJob"}])
    for pod in pods(world, "Running"):
        world.end(pod, 1)
    world.settle()
    go_on(world)
    assert (phase(), status()["retryCount"], len(executed())) == ("Running", 1, 2)


# ---- scaled to nothing


@pytest.mark.parametrize("wanted", ["Pending", "Running"])
def test_task_that_is_scaled_to_zero_and_back(world, wanted):
    tasks = [task("a", 1), task("b", 2)]
    world.submit(job(tasks=tasks))
    go_on(world) if wanted == "Running" else world.settle()
    world.scale("demo", 1, 0)
    go_on(world)
    assert (phase(), names(world), executed()) == ("Running", ["demo-a-0"], [])
    assert status()["taskStatusCount"] == {"a": {"phase": {"Running": 1}}}
    world.scale("demo", 1, 1)
    go_on(world)
    assert names(world) == ["demo-a-0", "demo-b-0"]
    for pod in pods(world, "Running"):
        world.end(pod, 0)
    go_on(world)
    assert phase() == "Completed"


# ---- pods and nodes that are lost, in every phase


@pytest.mark.parametrize("wanted", GOES_ON)
@cases("policies, grace", {
    "by force": ([], 0),
    "with grace": ([], None),
    "where a policy answers it": ([{"event": "PodEvicted", "action": "AbortJob"}], 0),
})  # fmt: skip
def test_pods_that_somebody_deletes_which_a_policy_heeds_only_while_the_job_is_on_its_way(
    world, wanted, policies, grace
):
    reach(world, wanted, policies=policies)
    gone = {pod.uid for pod in world.pods()}
    for pod in world.pods():
        world.delete_pod(pod, grace)
    go_on(world)
    is_heeded = bool(policies) and wanted in ("Pending", "Running")
    assert (phase(), len(executed())) == ("Aborted" if is_heeded else GOES_ON[wanted], is_heeded)
    assert len(names(world)) == (3 if phase() == "Running" else 0)
    assert not gone & {pod.uid for pod in world.pods()}


@pytest.mark.parametrize("wanted", GOES_ON)
def test_nodes_that_are_lost(world, wanted):
    reach(world, wanted, policies=[RESTART], maxRetry=1 if wanted == "Failed" else 3)
    for node in ("n0", "n1"):
        world.lose(node)
    go_on(world)
    assert phase() == GOES_ON[wanted]
    is_restarted = wanted in ("Pending", "Running", "Restarting")
    assert status().get("retryCount", 0) == (is_restarted or wanted == "Failed")
    assert len(pods(world, "Running")) == 3 * is_restarted


# ---- clocks that jump


@pytest.mark.parametrize("wanted", GOES_ON)
@pytest.mark.parametrize("seconds", [3600, -3600])
def test_job_goes_on_when_the_clock_jumps(world, wanted, seconds):
    reach(world, wanted)
    world.move(seconds)
    for pod in pods(world, "Running"):
        world.end(pod, 0)
    go_on(world)
    assert phase() == ("Completed" if wanted == "Running" else GOES_ON[wanted])


# ---- a controller that dies


@pytest.mark.parametrize("asked", ["by a policy", "by a Command", "of a pod"])
def test_restart_is_whole_before_which_statement_ever_the_controller_dies(world, asked):
    action = "RestartPod" if asked == "of a pod" else "RestartJob"
    policies = [] if asked == "by a Command" else [{**RESTART, "action": action}]
    for at in itertools.count():
        name = f"job-{at}"
        start(world, name, replicas=2, policies=policies)
        before = {pod.name: pod.uid for pod in world.pods()}
        if asked == "by a Command":
            world.command(name, "RestartJob")
        else:
            world.end(pods(world, "Running")[0], 1)
        is_dead = world.settle_dying(at)
        go_on(world)
        whole = status(name)
        made_anew = [pod.name for pod in world.pods() if before[pod.name] != pod.uid]
        assert (phase(name), whole["retryCount"]) == ("Running", 1)
        assert len(made_anew) == (1 if asked == "of a pod" else 2)
        assert whole.get("version", 0) == (0 if asked == "of a pod" else 1)
        asked_for = [line for line in told(name) if line.startswith(("ExecuteAction: ", "CommandIssued: "))]
        assert [action in line for line in asked_for] == [True]
        world.delete_job(name, "Background")
        go_on(world)
        if not is_dead:
            break
    assert at > 20, "it died somewhere"


def end_a_pod(world):
    world.end(pods(world, "Running")[0], 1)


def end_all_pods(world):
    for pod in pods(world, "Running"):
        world.end(pod, 0)


def restart_a_container(world):
    name = pods(world, "Running")[0].name
    for _ in range(3):
        world.restart_container(store.get(PODS, "default", name))


@cases("event, happens", {
    "a pod fails": ("PodFailed", end_a_pod),
    "a pod is deleted": ("PodEvicted", lambda world: world.delete_pod(world.pods()[0], 0)),
    "the group loses its place": ("Unknown", lambda world: world.tell_group(store.find(POD_GROUPS)[0], "Unknown")),
    "a task completes": ("TaskCompleted", end_all_pods),
    "a task fails": ("TaskFailed", restart_a_container),
    "pods wait": ("PodPending", None),
})  # fmt: skip
def test_what_happens_while_every_controller_is_down_is_answered_once(world, event, happens):
    policies = [{"event": event, "action": "RestartJob", **({} if happens else {"timeout": "1m"})}]
    if happens:
        start(world, policies=policies)
        happens(world)
    else:
        world.submit(job(policies=policies))
        world.settle()
        world.admit()
        world.settle()
    world.move(300)
    for _ in range(2):
        world.start_anew()
        go_on(world)
    assert (phase(), status()["retryCount"], len(executed())) == ("Running", 1, 1)


def test_all_that_happens_while_every_controller_is_down_ends_well(world):
    """A pod fails and is deleted, the job is scaled, suspended and resumed, and nobody sees any of it."""
    start(world, replicas=3, policies=[RESTART])
    failed = pods(world, "Running")[0]
    world.end(failed, 1)
    world.delete_pod(failed, 0)
    world.scale("demo", 0, 2)
    for action in ("AbortJob", "ResumeJob"):
        world.command("demo", action)
    world.tell_group(store.find(POD_GROUPS)[0], "Unknown")
    world.start_anew()
    go_on(world)
    assert (phase(), len(pods(world, "Running")), executed()) == ("Running", 2, [])
