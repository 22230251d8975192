"""What a job does, as volcano-job §2 and §3 tell it: plain values in, plain values out.

Written from the reference and the decisions of docs/differences.md, and
nothing of it is imported from the product: what both got wrong together would
look right. Objects are as they stand in the log.
"""

from __future__ import annotations

from kube.meta import parse_duration

ALIVE = ("Pending", "Running")
HEEDING = (*ALIVE, "Restarting")  # phases in which what happens may still lead to something
FINISHED = ("Completed", "Failed", "Terminated")
ENDED = ("Succeeded", "Failed")
RESTARTS_OF_PARTS = ("RestartTask", "RestartPod", "RestartPartition")
# §2.6: where an action takes a job that is Pending or Running.
LEADS = {
    "RestartJob": "Restarting",
    **dict.fromkeys(RESTARTS_OF_PARTS, "Restarting"),
    "AbortJob": "Aborting",
    "TerminateJob": "Terminating",
    "CompleteJob": "Completing",
}
# §2.7: what somebody has to ask for, from where.
ASKED = {
    **{(phase, to): {action for action, end in LEADS.items() if end == to} for phase in ALIVE for to in LEADS.values()},
    ("Aborting", "Restarting"): {"ResumeJob"},
    ("Aborted", "Restarting"): {"ResumeJob"},
}  # fmt: skip
# §3.1 and §3.4: what `*` stands for; PodPending only with a timeout.
WILD = ("PodFailed", "PodEvicted", "PodPending", "Unknown", "TaskCompleted", "TaskFailed")


def replicas_of(spec):
    """Return how many pods a job wants."""
    return sum(task.get("replicas", 0) for task in spec["tasks"])


def task_of(spec, name):
    """Return a task, {} when there is none of the name."""
    return next((task for task in spec["tasks"] if task["name"] == name), {})


def is_let_in(group):
    """Say whether the pods of a group in a phase may exist, "" for one that is not there yet (§2.4)."""
    return group not in ("", "Pending")


def by_itself(phase, spec, status, group):
    """Return the phase that follows from what a status counts and the phase of the job's group, or the one that there is (§2.5).

    Pods that are missing while their group waits for its queue count as pending (docs/differences.md).
    """
    wanted, least = replicas_of(spec), spec.get("minAvailable", 0)
    succeeded, failed = status.get("succeeded", 0), status.get("failed", 0)
    pending, running = status.get("pending", 0), status.get("running", 0)
    terminating = status.get("terminating", 0)
    match phase:
        case "":
            return "Pending"
        case "Pending":
            return "Running" if least <= running + succeeded + failed else "Pending"
        case "Running":
            there = pending + running + succeeded + failed + terminating + status.get("unknown", 0)
            waiting = pending if is_let_in(group) else pending + max(wanted - there, 0)
            return _after_running(spec, status, wanted, least, waiting, succeeded, failed)
        case "Restarting":
            if status.get("retryCount", 0) >= spec.get("maxRetry", 3):
                return "Failed"
            return "Pending" if wanted - terminating >= least else "Restarting"
        case "Aborting" | "Completing" | "Terminating":
            follows = {"Aborting": "Aborted", "Completing": "Completed", "Terminating": "Terminated"}
            return phase if terminating or pending or running else follows[phase]
    return phase


def _after_running(spec, status, wanted, least, pending, succeeded, failed):
    enough = spec.get("minSuccess")
    if wanted == 0:
        return "Running"
    if enough is not None and succeeded >= enough:
        return "Completed"
    if succeeded + failed == wanted:
        if _is_short_of_a_task(spec, status, least) or enough is not None:
            return "Failed"
        return "Completed" if succeeded >= least else "Failed"
    return "Pending" if pending > wanted - least else "Running"


def _is_short_of_a_task(spec, status, least):
    """Say whether a task has too few successes, where the job asks for the minimum of each."""
    needed = {task["name"]: task.get("minAvailable", task.get("replicas", 0)) for task in spec["tasks"]}
    if least < sum(needed.values()):
        return False
    told = status.get("taskStatusCount", {})
    return any(
        told[task["name"]]["phase"].get("Succeeded", 0) < task["minAvailable"]
        for task in spec["tasks"]
        if task["name"] in told and "minAvailable" in task
    )


def answer(spec, event, task="", codes=()):
    """Return the policy that answers an event: those of the task first, then the job's, in their order (§3.4)."""
    for policy in (*task_of(spec, task).get("policies", ()), *spec.get("policies", ())):
        named = {policy.get("event"), *policy.get("events", ())}
        if event == "PodPending" and not delay_ms(policy):
            continue
        if event in named or ("*" in named and event in WILD):
            return policy
        if event == "PodFailed" and policy.get("exitCode") in codes:
            return policy
    return None


def delay_ms(policy):
    """Return how long an answer waits, in milliseconds (§3.5)."""
    return parse_duration(policy["timeout"]) if policy.get("timeout") else 0


def scope(action, task, pod, partition):
    """Return what an action is about: of what waits, whatever has the same goes with it (§3.5)."""
    parts = {
        "RestartTask": ("task", task),
        "RestartPod": ("pod", pod),
        "RestartPartition": ("partition", task, partition),
    }
    return parts.get(action, ("job",))


def changes_nothing(action, partition):
    """Say whether an action would leave a pod that waits as it is: it would be given again and again."""
    return action == "ResumeJob" or (action == "RestartPartition" and partition is None)


def is_completed(spec, task, pods):
    """Say whether as many pods of a task succeeded as it has replicas (§3.3)."""
    wanted = task_of(spec, task).get("replicas", 0)
    return 0 < wanted <= sum(pod["status"].get("phase") == "Succeeded" for pod in pods)


def is_failed(spec, task, pods):
    """Say whether the containers of a task's living pods were started again as often as its maxRetry says (§3.3)."""
    most = task_of(spec, task).get("maxRetry") or 3
    alive = [pod for pod in pods if pod["status"].get("phase", "Pending") in ALIVE]
    return -1 < most <= sum(restarts(pod) for pod in alive)


def restarts(pod):
    """Return how often a pod's containers were started again."""
    told = pod["status"]
    return sum(
        each.get("restartCount", 0)
        for each in (*told.get("containerStatuses", ()), *told.get("initContainerStatuses", ()))
    )


def exit_codes(pod):
    """Return the exit codes of the containers that ended badly, init containers too (docs/differences.md)."""
    told = pod["status"]
    ended = [
        each.get("state", {}).get("terminated") or {}
        for each in (*told.get("containerStatuses", ()), *told.get("initContainerStatuses", ()))
    ]
    return {each["exitCode"] for each in ended if each.get("exitCode")}


def is_held_back(spec, task, ready):
    """Say whether the pods of a task have to wait for those of others (§4.2); `ready` counts these by task."""
    wanted = task_of(spec, task).get("dependsOn") or {}
    names = wanted.get("name") or []
    if not names:
        return False
    answers = [ready.get(n, 0) >= task_of(spec, n).get("minAvailable", 0) for n in names]
    is_any = wanted.get("iteration") == "any" and len(names) > 1
    return not (any(answers) if is_any else all(answers))
