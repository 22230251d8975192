"""The life of a Volcano job (reference: volcano-job §1.5 and §2)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from kube.kinds.meta import OwnerReference
from proof.invariants.invariant import Invariant
from proof.invariants.picture import Picture, Step
from proof.invariants.views import ENDED, JOBS, PODS, QUOTAS, RANGES, Group, Job, Pod, Range, key_of

# Reference: volcano-job §2.7, with the first sync of a new job.
NEXT: dict[str, set[str]] = {
    "": {"Pending"},
    "Pending": {"Running", "Restarting", "Aborting", "Terminating", "Completing"},
    "Running": {"Pending", "Completed", "Failed", "Restarting", "Aborting", "Terminating", "Completing"},
    "Restarting": {"Pending", "Failed"},
    "Aborting": {"Aborted", "Restarting"},
    "Aborted": {"Restarting"},
    "Completing": {"Completed"},
    "Terminating": {"Terminated"},
}
_Kind = tuple[str, str]  # a task, and a phase of its pods
FINISHED = ("Completed", "Failed", "Terminated")
SYNCED = ("Pending", "Running", "Restarting")  # the phases in which pods are made and surplus ones deleted
# Plugin → kind and ending of the name of what it makes (reference: volcano-job, appendix).
MADE = {
    "svc": (("configmaps", "-svc"), ("services", "")),
    "ssh": (("secrets", "-ssh"),),
    "ray": (("services", "-head-svc"),),
}
COUNTED = {"Pending": "pending", "Running": "running", "Succeeded": "succeeded", "Failed": "failed"}


class PhasesFollow(Invariant):
    """Source: reference volcano-job §2.7. No transition leaves Completed, Failed or Terminated."""

    name = "job phase follows the table"
    meaning = "A job's phase changes only as the table of transitions says; one that is finished stays so."
    kinds = (JOBS,)

    def take(self, step: Step) -> None:
        if type(step.before) is not Job or type(step.seen) is not Job:
            return
        before, seen = step.before.phase, step.seen.phase
        if before != seen and seen not in NEXT.get(before, ()):
            raise self.broken(key_of(step.change), f"went from {before or 'new'} to {seen or 'none'}")


class RetriesCount(Invariant):
    """Source: reference volcano-job §1.5 and §2.6: "rc+1" goes with Restarting; §10, Q-7: a resume is no retry.

    In Pending and Running a job has retries left, so that the last restart
    takes it to maxRetry; one without any retry may still be restarted once,
    which makes it Failed.
    """

    name = "retries are counted"
    meaning = "retryCount grows by one with a restart, never falls and never exceeds maxRetry (1 where that is 0)."
    kinds = (JOBS,)

    def take(self, step: Step) -> None:
        if type(step.before) is not Job or type(step.seen) is not Job:
            return
        before, seen = step.before.status.retry_count, step.seen.status.retry_count
        if before == seen:
            return
        most = max(step.seen.spec.max_retry, 1)
        if seen != before + 1 or step.seen.phase != "Restarting":
            text = f"retryCount went from {before} to {seen} in {step.seen.phase}"
            raise self.broken(key_of(step.change), text)
        if seen > most:
            raise self.broken(key_of(step.change), f"retryCount is {seen}, the job has {most}")


class VersionGrows(Invariant):
    """Source: reference volcano-job §1.5, status.version; §10, Q-10: "any strictly growing value"."""

    name = "job version never falls"
    meaning = "status.version, which counts how often all pods were ended, never falls."
    kinds = (JOBS,)

    def take(self, step: Step) -> None:
        if type(step.before) is Job and type(step.seen) is Job:
            before, seen = step.before.status.version, step.seen.status.version
            if seen < before:
                raise self.broken(key_of(step.change), f"status.version went from {before} to {seen}")


class Settled(Invariant):
    """Source: reference volcano-job §1.5, §2.4 and §10, Q-1: retained pods stay counted.

    A finished job is not counted again: pods that were retained and are
    deleted or disowned afterwards, or while its end was being written, may still be in its numbers. Ended pods beyond the
    replicas of a job that was scaled down stay where it makes no pods any
    more, and count or do not (§2.4, step 7: they are not the job's any more).
    A job that is being deleted is left as it is.
    """

    name = "job tells of its pods"
    meaning = "At rest a job's counters equal its pods, minAvailable is copied, and it is in no phase that is over."
    kinds = (JOBS, PODS)

    def __init__(self, picture: Picture) -> None:
        super().__init__(picture)
        # Uid of a finished job → its ended pods that were deleted since.
        self._retained: defaultdict[str, Counter[_Kind]] = defaultdict(Counter)
        self._finished: set[str] = set()
        # Uid of another job → when its ended pods were deleted, and which.
        self._going: defaultdict[str, list[tuple[int, _Kind]]] = defaultdict(list)

    def take(self, step: Step) -> None:
        if step.change.resource == JOBS:
            self._job(step)
        elif type(step.before) is Pod and type(step.seen) is Pod:
            pod, seen = step.before, step.seen
            goes = step.after is None or seen.deleting or seen.owner != pod.owner
            if not goes or pod.phase not in ENDED or pod.deleting:
                return
            if pod.owner in self._finished:
                self._retained[pod.owner][pod.role, pod.phase] += 1
            else:
                self._going[pod.owner].append((self.picture.at, (pod.role, pod.phase)))

    def _job(self, step: Step) -> None:
        if step.after is None:
            self._finished.discard(step.change.uid)
            self._retained.pop(step.change.uid, None)
            self._going.pop(step.change.uid, None)
        elif type(step.after) is Job and step.after.phase in FINISHED:
            self._finished.add(step.change.uid)
            for at, pod in self._going.pop(step.change.uid, ()):
                if at == self.picture.at or self.picture.is_recent(at):
                    self._retained[step.change.uid][pod] += 1

    def settle(self, now: int) -> None:
        pods: defaultdict[str, list[Pod]] = defaultdict(list)
        for pod in self.picture.pods.values():
            if type(pod) is Pod and pod.owner:
                pods[pod.owner].append(pod)
        for key, job in self.picture.jobs.items():
            if type(job) is Job and not job.metadata.deletion_timestamp:
                self._judge(f"{JOBS}/{key}", job, pods[job.metadata.uid])

    def _judge(self, key: str, job: Job, pods: Sequence[Pod]) -> None:
        if not job.phase:
            raise self.broken(key, "no controller has taken it up")
        terminating = sum(pod.deleting for pod in pods)
        by_task, surplus = _count(job, pods)
        optional = surplus + self._retained.get(job.metadata.uid, Counter())
        self._judge_counts(key, job, by_task, optional, terminating)
        if beyond := [pod for pod in pods if _is_beyond(job, pod)]:
            raise self.broken(key, f"has {len(beyond)} pods beyond its replicas")
        if job.phase not in FINISHED and job.status.min_available != job.spec.min_available:
            text = f"status.minAvailable is {job.status.min_available}, the spec says {job.spec.min_available}"
            raise self.broken(key, text)
        if problem := _overdue(job, by_task, terminating):
            raise self.broken(key, problem)

    def _judge_counts(
        self, key: str, job: Job, by_task: Counter[_Kind], optional: Counter[_Kind], terminating: int
    ) -> None:
        status = job.status
        reported = Counter(
            {(t, phase): n for t, of in status.task_status_count.items() for phase, n in of.phase.items()}
        )
        if not by_task <= reported <= by_task + optional:
            raise self.broken(key, f"taskStatusCount says {_listed(reported)}, its pods are {_listed(by_task)}")
        for phase, field in COUNTED.items():
            number = sum(n for (_, each), n in by_task.items() if each == phase)
            most = number + sum(n for (_, each), n in optional.items() if each == phase)
            if not number <= getattr(status, field) <= most:
                text = f"status.{field} is {getattr(status, field)}, {number} of its pods are {phase}"
                raise self.broken(key, text)
        if status.terminating != terminating:
            text = f"status.terminating is {status.terminating}, {terminating} of its pods are being deleted"
            raise self.broken(key, text)


def _count(job: Job, pods: Sequence[Pod]) -> tuple[Counter[_Kind], Counter[_Kind]]:
    """Return how many pods of each task are in which phase, and apart from them those beyond the replicas."""
    replicas = {task.name: task.replicas for task in job.spec.tasks}
    counted: Counter[_Kind] = Counter()
    surplus: Counter[_Kind] = Counter()
    for pod in pods:
        beyond = _index(pod) >= replicas.get(pod.role, 0)
        is_surplus = job.phase not in SYNCED and pod.phase in ENDED and beyond
        if not pod.deleting:
            (surplus if is_surplus else counted)[pod.role, pod.phase] += 1
    return counted, surplus


def _is_beyond(job: Job, pod: Pod) -> bool:
    """Say whether a job that makes pods and takes surplus ones away (§2.4, step 7) has left one."""
    replicas = {task.name: task.replicas for task in job.spec.tasks}
    return job.phase in ("Pending", "Running") and not pod.deleting and _index(pod) >= replicas.get(pod.role, 0)


def _index(pod: Pod) -> int:
    notes = pod.metadata.annotations
    return int(notes.index) if notes is not None and notes.index.isdigit() else 0


def _overdue(job: Job, by_task: Counter[_Kind], terminating: int) -> str:
    """Say why a job should have gone on to another phase (§2.5); "" when it should not."""
    phases: Counter[str] = Counter()
    for (_, phase), number in by_task.items():
        phases[phase] += number
    ended = phases["Succeeded"] + phases["Failed"]
    alive = phases["Pending"] + phases["Running"]
    match job.phase:
        case "Running" if 0 < job.replicas == ended:
            return "is Running, and all its pods have ended"
        case "Running" if phases["Pending"] > job.replicas - job.spec.min_available:
            return f"is Running, and {phases['Pending']} of its pods are Pending"
        case "Pending" if job.spec.min_available <= phases["Running"] + ended:
            return "is Pending, and enough of its pods have started"
        case "Restarting" if not terminating:
            return "is Restarting, and no pod is left to end"
        case "Aborting" | "Completing" | "Terminating" if not alive and not terminating:
            return f"is {job.phase}, and all its pods have ended"
    return ""


def _listed(counts: Counter[_Kind]) -> str:
    return ", ".join(f"{n} {phase} of {task}" for (task, phase), n in sorted(counts.items()) if n) or "none"


class HasPods(Invariant):
    """Source: reference volcano-job §2.4, steps 5 and 6: what is missing is made once the scheduler lets it be.

    A pod of somebody else may have the name. Bounds of the namespace may be
    against it, a task may wait for others, and a plugin for a name that
    somebody else has (docs of jobs/controller/plugin_objects.py): none of it is judged.
    """

    name = "job has its pods"
    meaning = "At rest a pod has each of the names that a job which runs on wants."
    kinds = (JOBS,)

    def settle(self, now: int) -> None:
        ranges = (key for key, each in self.picture.things[RANGES].items() if type(each) is not Range or each.refuses)
        bounded = {key.partition("/")[0] for key in (*self.picture.things[QUOTAS], *ranges)}
        for key, job in self.picture.jobs.items():
            if type(job) is Job and job.phase in ("Pending", "Running") and not job.metadata.deletion_timestamp:
                namespace = key.partition("/")[0]
                if namespace not in bounded and self._is_let_in(key, job) and not self._has_name_conflict(key, job):
                    self._judge(key, job)

    def _has_name_conflict(self, key: str, job: Job) -> bool:
        """Say whether somebody else has the name of a file that every container of the job mounts."""
        things = [
            self.picture.things[kind].get(f"{key}{suffix}")
            for plugin, made in MADE.items()
            for kind, suffix in made
            if plugin in job.spec.plugins and kind in ("configmaps", "secrets")
        ]
        owners = [thing.metadata.controller for thing in things if thing is not None]
        return any(owner is None or owner.uid != job.metadata.uid for owner in owners)

    def _is_let_in(self, key: str, job: Job) -> bool:
        group = self.picture.groups.get(f"{key}-{job.metadata.uid}")
        return type(group) is Group and group.phase not in ("", "Pending")

    def _judge(self, key: str, job: Job) -> None:
        for task in job.spec.tasks:
            for index in range(0 if task.depends_on else task.replicas):
                name = f"{key}-{task.name}-{index}"
                if name not in self.picture.pods:
                    raise self.broken(f"{JOBS}/{key}", f"is {job.phase}, and there is no pod {name}")


class HasPluginObjects(Invariant):
    """Source: reference volcano-job §2.2, step 10, §2.4, step 4, and §5.

    The object of somebody else may have the name. What an argument can leave out is not judged.
    """

    name = "job has what its plugins make"
    meaning = "At rest there is what the plugins of a job make while it runs on, and it is gone once the job is over."
    kinds = (JOBS,)

    def settle(self, now: int) -> None:
        for key, job in self.picture.jobs.items():
            if type(job) is not Job or job.metadata.deletion_timestamp:
                continue
            for plugin, made in MADE.items():
                if plugin in job.spec.plugins:
                    self._judge(key, job, made)

    def _judge(self, key: str, job: Job, made: Iterable[tuple[str, str]]) -> None:
        for kind, suffix in made:
            thing = self.picture.things[kind].get(f"{key}{suffix}")
            if thing is None:
                if job.phase in ("Pending", "Running"):
                    text = f"is {job.phase}, and there is no {kind}/{key}{suffix}"
                    raise self.broken(f"{JOBS}/{key}", text)
            elif job.phase in (*FINISHED, "Aborted") and not thing.metadata.deletion_timestamp:
                controller = thing.metadata.controller
                if controller is not None and controller.uid == job.metadata.uid:
                    raise self.broken(f"{JOBS}/{key}", f"is {job.phase}, and {kind}/{key}{suffix} is left")


class TasksFollow(Invariant):
    """Source: reference volcano-job §4.2: a task's pods are made when enough of the tasks that it waits for are ready.

    A pod that is ready runs or has run, and what the controller knew when it
    planned was true once: so pods are counted that ever ran, also in a run of
    the job that was ended since. Who changes a job's tasks meanwhile is not
    judged, and neither is a pod that somebody else makes.
    """

    name = "tasks wait for tasks"
    meaning = "No pod of a task is made before enough pods of the tasks that it depends on have run."
    kinds = (JOBS, PODS)

    def __init__(self, picture: Picture) -> None:
        super().__init__(picture)
        # Uid of a job → task → uids of pods that ran.
        self._ran: defaultdict[str, defaultdict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        self._changed: set[str] = set()  # uids of jobs whose spec became another one

    def take(self, step: Step) -> None:
        if step.change.resource == JOBS:
            if step.after is None:
                self._ran.pop(step.change.uid, None)
                self._changed.discard(step.change.uid)
            elif step.before is not None and step.before.metadata.generation != step.seen.metadata.generation:
                self._changed.add(step.change.uid)
        elif type(step.seen) is Pod and (controller := step.seen.metadata.controller) is not None:
            if step.seen.phase in ("Running", "Succeeded"):
                self._ran[controller.uid][step.seen.role].add(step.change.uid)
            if step.change.verb == "ADDED" and controller.uid not in self._changed:
                self._judge(step, step.seen.role, controller)

    def _judge(self, step: Step, role: str, controller: OwnerReference) -> None:
        job = self.picture.jobs.get(f"{step.change.namespace}/{controller.name}")
        if type(job) is not Job or job.metadata.uid != controller.uid:
            return
        tasks = {task.name: task for task in job.spec.tasks}
        wanted = tasks[role].depends_on if role in tasks else None
        if wanted is None or not wanted.name:
            return
        ran = {name: len(self._ran[controller.uid][name]) for name in wanted.name}
        short = [name for name in wanted.name if name not in tasks or ran[name] < tasks[name].needed]
        if short and (wanted.iteration != "any" or len(short) == len(wanted.name)):
            text = f"is made, and only {ran[short[0]]} pods of task {short[0]}, for which it waits, have run"
            raise self.broken(key_of(step.change), text)


class SubmittersOwn(Invariant):
    """Source: design §3, rights; docs of cluster/api/rights.py: the controller notes on what it makes whose it is."""

    name = "pods are their submitter's"
    meaning = "A pod that a job's controller makes names as its creator whoever created the job."
    kinds = (PODS,)

    def take(self, step: Step) -> None:
        pod = step.after
        if step.change.verb != "ADDED" or type(pod) is not Pod or not pod.role or pod.metadata.controller is None:
            return
        job = self.picture.jobs.get(f"{step.change.namespace}/{pod.metadata.controller.name}")
        if type(job) is not Job or job.metadata.uid != pod.owner:
            return
        noted, creator = (each.annotations.creator if each.annotations else "" for each in (pod.metadata, job.metadata))
        if noted != creator:
            text = f"is {noted or 'nobody'}'s, and its job is {creator or 'nobody'}'s"
            raise self.broken(key_of(step.change), text)


INVARIANTS = (PhasesFollow, RetriesCount, VersionGrows, TasksFollow, SubmittersOwn, Settled, HasPods, HasPluginObjects)
