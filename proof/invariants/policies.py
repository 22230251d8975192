"""What happens to pods is answered as the policies of their job say, and nothing is done for no reason."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from kube.kinds.meta import OwnerReference
from proof.invariants.invariant import Invariant
from proof.invariants.picture import Picture, Step
from proof.invariants.views import COMMANDS, ENDED, GROUPS, JOBS, PODS, Command, Group, Job, Pod, Policy, key_of

ALIVE = ("Pending", "Running")
RESTARTS = ("RestartJob", "RestartTask", "RestartPod", "RestartPartition")
# Actions that change the phase of every job that is alive, whatever is left of the pod (reference: volcano-job §2.6).
CERTAIN = ("RestartJob", "RestartTask", "RestartPod", "AbortJob", "TerminateJob", "CompleteJob")
ANY = ("PodFailed", "PodEvicted", "Unknown", "TaskCompleted", "TaskFailed")  # what * stands for


def policy_for(job: Job, pod: Pod, event: str) -> Policy | None:
    """Return the policy that answers what happened to a pod, None where none does (reference: volcano-job §3.4)."""
    task = next((task for task in job.spec.tasks if task.name == pod.role), None)
    codes = _exit_codes(pod) if event == "PodFailed" else set()
    of_task = task.policies if task else []
    for policy in [*of_task, *job.spec.policies]:
        named = policy.event_names
        if event in named or ("*" in named and event in ANY):
            return policy
        if policy.exit_code in codes:
            return policy
    return None


def _exit_codes(pod: Pod) -> set[int]:
    """Return the exit codes of the containers that ended badly, init containers too (docs/differences.md)."""
    statuses = (*pod.status.container_statuses, *pod.status.init_container_statuses)
    ended = (each.state.terminated for each in statuses)
    return {each.exit_code for each in ended if each and each.exit_code}


def _happened(step: Step) -> tuple[Pod, OwnerReference, str] | None:
    """Return the pod, who made it and the event of a change; None where nothing has a policy."""
    pod, before = step.seen, step.before
    if type(pod) is not Pod or (maker := pod.metadata.controller) is None:
        return None
    if pod.metadata.annotations is None or pod.metadata.annotations.out_of_sync == "true":
        return None
    if step.after is None:
        return pod, maker, "PodEvicted"
    if type(before) is Pod and pod.phase == "Failed" and before.phase != "Failed":
        return pod, maker, "PodFailed"
    return None


class Answered(Invariant):
    """Source: reference volcano-job §3.3 to §3.5; §10, Q-14: a policy goes before what would come of it by itself.

    Judged are pods that fail or go in the run that is on while their job is
    Pending or Running, and answers that are given at once. A job that leaves
    these phases has done something else first, which the answer may not
    concern any more; only Failed it becomes knowing of every pod, but for what
    happened while its end was being written.
    """

    name = "what happens is answered"
    meaning = (
        "A pod that fails or is evicted leads to what its job's policies say, also when nobody was there to see it."
    )
    kinds = (JOBS, PODS)

    def __init__(self, picture: Picture) -> None:
        super().__init__(picture)
        # Uid of a job → what waits for its answer: since when, name, event and action.
        self._open: defaultdict[str, list[tuple[int, str, str, str]]] = defaultdict(list)

    def take(self, step: Step) -> None:
        if step.change.resource == JOBS:
            self._job(step)
            return
        found = _happened(step)
        if found is None:
            return
        pod, maker, event = found
        job = self.picture.jobs.get(f"{step.change.namespace}/{maker.name}")
        if type(job) is not Job or not self._is_judged(job, pod):
            return
        policy = policy_for(job, pod, event)
        if policy is not None and not policy.timeout and policy.action in CERTAIN:
            self._open[pod.owner].append((self.picture.at, step.change.name, event, policy.action))

    def _is_judged(self, job: Job, pod: Pod) -> bool:
        version = pod.metadata.annotations.version if pod.metadata.annotations else ""
        is_of_run = not version.isdigit() or int(version) >= job.status.version
        alive = job.phase in ALIVE and not job.metadata.deletion_timestamp
        return alive and is_of_run and job.metadata.uid == pod.owner

    def _job(self, step: Step) -> None:
        uid = step.change.uid
        if uid not in self._open:
            return
        job = step.after
        if type(job) is not Job or job.metadata.deletion_timestamp:
            del self._open[uid]
        elif job.phase not in ALIVE:
            overdue = [each for each in self._open.pop(uid) if not self.picture.is_recent(each[0])]
            if job.phase == "Failed" and overdue:
                _, name, event, action = overdue[0]
                text = f"is Failed, and {event} of {name} was to be answered with {action}"
                raise self.broken(key_of(step.change), text)

    def settle(self, now: int) -> None:
        for key, job in self.picture.jobs.items():
            if type(job) is Job and (waiting := self._open.get(job.metadata.uid)):
                _, name, event, action = waiting[0]
                text = f"is {job.phase}, and {event} of {name} was not answered with {action}"
                raise self.broken(f"{JOBS}/{key}", text)


class Caused(Invariant):
    """Source: reference volcano-job §2.6 and §3: retries are used up by restarts, and these by events and Commands.

    Each event and each Command leads to one restart at most. A pod is Pending
    for too long once, a task completes with one of its pods, and fails when a
    container is started again.
    """

    name = "retries have causes"
    meaning = "A job is restarted no more often than something happened that a policy answers so, or a Command asked."
    kinds = (JOBS, PODS, GROUPS, COMMANDS)

    def __init__(self, picture: Picture) -> None:
        super().__init__(picture)
        self._causes: Counter[str] = Counter()  # uid of a job → what may have led to a restart

    def take(self, step: Step) -> None:
        kind = step.change.resource
        if kind == JOBS:
            self._job(step)
        elif kind == COMMANDS:
            if step.after is None and type(step.before) is Command and step.before.action in RESTARTS:
                self._causes[self._target(step, step.before)] += 1
        elif kind == GROUPS:
            maker = step.seen.metadata.controller
            if type(step.seen) is Group and maker is not None and step.seen.phase == "Unknown":
                self._count(step, maker, "", "Unknown")
        elif type(step.seen) is Pod and (maker := step.seen.metadata.controller) is not None:
            for event in self._events(step, step.seen):
                self._count(step, maker, step.seen.role, event)

    def _target(self, step: Step, command: Command) -> str:
        """Return the uid of the job that a Command is for."""
        target = command.target
        job = self.picture.jobs.get(f"{step.change.namespace}/{target.name}")
        return target.uid or (job.metadata.uid if job is not None else "")

    def _events(self, step: Step, pod: Pod) -> Iterator[str]:
        before = step.before
        if step.after is None:
            yield "PodEvicted"
        elif type(before) is not Pod:
            yield "PodPending"
        elif pod.phase != before.phase and pod.phase in ENDED:
            yield "PodFailed" if pod.phase == "Failed" else "TaskCompleted"
        elif _restarts(pod) > _restarts(before):
            yield "TaskFailed"

    def _count(self, step: Step, controller: OwnerReference, role: str, event: str) -> None:
        job = self.picture.jobs.get(f"{step.change.namespace}/{controller.name}")
        if type(job) is not Job or job.metadata.uid != controller.uid:
            return
        lists = [job.spec.policies, *(task.policies for task in job.spec.tasks if task.name == role)]
        for policy in (policy for policies in lists for policy in policies if policy.action in RESTARTS):
            named = policy.event_names
            if event in named or "*" in named or (event == "PodFailed" and policy.exit_code is not None):
                self._causes[controller.uid] += 1
                return

    def _job(self, step: Step) -> None:
        uid = step.change.uid
        if step.after is None:
            self._causes.pop(uid, None)
        elif type(step.before) is Job and type(step.seen) is Job:
            before, seen = step.before.status.retry_count, step.seen.status.retry_count
            # A Command goes in the transaction that restarts the job, before its status is written.
            if seen > before and seen > self._causes[uid]:
                text = (
                    f"is restarted for the {seen}. time, and {self._causes[uid]} things that lead to it have happened"
                )
                raise self.broken(key_of(step.change), text)


def _restarts(pod: Pod) -> int:
    statuses = (*pod.status.container_statuses, *pod.status.init_container_statuses)
    return sum(each.restart_count for each in statuses)


INVARIANTS = (Answered, Caused)
