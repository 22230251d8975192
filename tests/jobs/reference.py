"""Which phase follows from what a job counts, as volcano-job §2 tells it: plain values in, plain values out.

Written from the reference and the decisions of docs/differences.md, and nothing of it is imported from the product: what both
got wrong together would look right. Objects are as they stand in the log.
"""

ALIVE = ("Pending", "Running")
FINISHED = ("Completed", "Failed", "Terminated")


def replicas_of(spec):
    return sum(task.get("replicas", 0) for task in spec["tasks"])


def by_itself(phase, spec, status, group):
    """Return the phase that follows from what a status counts and the phase of the job's group, or the one that there is (§2.5).

    Pods that are missing while their group waits for its queue count as pending (docs/differences.md).
    """
    wanted, least = replicas_of(spec), spec.get("minAvailable", 0)
    names = ("pending", "running", "succeeded", "failed", "terminating", "unknown")
    pending, running, succeeded, failed, terminating, unknown = (status.get(name, 0) for name in names)
    match phase:
        case "":
            return "Pending"
        case "Pending":
            return "Running" if least <= running + succeeded + failed else "Pending"
        case "Running":
            there = pending + running + succeeded + failed + terminating + unknown
            missing = max(wanted - there, 0) if group in ("", "Pending") else 0
            return _after_running(spec, status, wanted, least, pending + missing, succeeded, failed)
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
    if least < sum(task.get("minAvailable", task.get("replicas", 0)) for task in spec["tasks"]):
        return False
    counts = status.get("taskStatusCount", {})
    return any(
        counts[task["name"]]["phase"].get("Succeeded", 0) < task["minAvailable"]
        for task in spec["tasks"]
        if task["name"] in counts and "minAvailable" in task
    )
