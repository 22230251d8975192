"""Commands are carried out once, and what happens to pods is told once."""

from __future__ import annotations

import re
from collections import Counter, defaultdict

from proof.invariants.invariant import Broken, Invariant
from proof.invariants.jobs import FINISHED
from proof.invariants.picture import Picture, Step
from proof.invariants.views import (
    COMMANDS,
    EVENTS,
    JOBS,
    PODS,
    QUEUES,
    ROOT_QUEUE,
    Command,
    Event,
    Job,
    Pod,
    PodNotes,
    Queue,
    key_of,
)

# Reference: volcano-job §2.6, what an action does at once to a job in a phase.
LEADS = {"AbortJob": "Aborting", "TerminateJob": "Terminating", "CompleteJob": "Completing", "RestartJob": "Restarting"}
ALIVE = ("Pending", "Running")
STOPPED = ("Aborting", "Aborted")
WISHES = {"OpenQueue": "Open", "CloseQueue": "Closed"}
REASON = "CommandIssued"


class CarriedOut(Invariant):
    """Source: reference volcano-job §2.6 and §6.3, volcano-queue-podgroup-cli §2.2; docs of kube/volcano/commands.py.

    A controller deletes a Command in the transaction that carries it out: what
    it does has the same time in the log. Not judged where somebody else may
    have deleted it: its target is gone or going, or its namespace is. A person
    who deletes a Command by hand before it is taken breaks this, too. A job or
    queue is told of a Command only if that was for it, by its uid: not for
    another one that had the name before. Of several Commands with the same words that are taken together it is told once.
    A Command to a queue that already has the wish does nothing, also where somebody changes the wish
    between its being read and its going: so the wish must have held at some moment while the Command was there.
    """

    name = "command is carried out once"
    meaning = (
        "A Command goes together with the event that tells of it and with what it does; Aborted is left by one alone."
    )
    kinds = None

    def __init__(self, picture: Picture) -> None:
        super().__init__(picture)
        self._at = 0
        # What has to be seen before time goes on → the error otherwise.
        self._wanted: dict[tuple[str, ...], Broken] = {}
        self._resumed: set[str] = set()  # keys of the jobs for which a ResumeJob was taken at this time
        self._served: set[str] = set()  # uids of the targets of the Commands that were taken at this time
        # Uid of a job → what it was told of Commands at this time.
        self._messages: defaultdict[str, list[str]] = defaultdict(list)
        self._made: dict[str, int] = {}  # key of a Command → the revision that made it
        # (uid of a queue, a wish) → the last revision that changed it to another.
        self._left: dict[tuple[str, str], int] = {}

    def take(self, step: Step) -> None:
        change = step.change
        if change.at != self._at:
            if self._wanted:
                self.finish()
            self._at = change.at
            self._resumed.clear()
            self._served.clear()
            self._messages.clear()
        kind = change.resource
        if kind == COMMANDS:
            if step.before is None:
                self._made[step.key] = change.revision
            if step.after is None and type(step.before) is Command:
                self._served.add(self._target(step, step.before))
                self._gone(step, step.before)
        elif kind == JOBS:
            self._job(step)
        elif kind == EVENTS:
            self._event(step)
        elif kind == QUEUES:
            self._queue(step)

    def finish(self) -> None:
        wanted, self._wanted = self._wanted, {}
        for error in wanted.values():
            raise error

    def _target(self, step: Step, command: Command) -> str:
        """Return the uid of the job or queue that a Command is for."""
        target = command.target
        if target.uid:
            return target.uid
        if target.kind == "Job":
            thing = self.picture.jobs.get(f"{step.change.namespace}/{target.name}")
        else:
            thing = self.picture.queues.get(f"/{target.name}")
        return thing.metadata.uid if thing is not None else ""

    def _gone(self, step: Step, command: Command) -> None:
        namespace = step.change.namespace
        existing = self.picture.namespaces.get(f"/{namespace}")
        if existing is not None and existing.metadata.deletion_timestamp:
            return
        if command.target.kind == "Job":
            self._of_job(step, f"{namespace}/{command.target.name}", command)
        elif command.target.kind == "Queue":
            self._of_queue(step, command.target.name, command)

    def _of_job(self, step: Step, key: str, command: Command) -> None:
        job = self.picture.jobs.get(key)
        if type(job) is not Job or not _is_for(command, job):
            return
        if not any(command.action in text for text in self._messages[job.metadata.uid]):
            self._want(step, ("event", job.metadata.uid), f"{command.action} was taken, and no event says so")
        if command.action == "ResumeJob":
            self._resumed.add(key)
        phase = "Restarting" if command.action == "ResumeJob" else LEADS.get(command.action)
        if phase and job.phase in (STOPPED if command.action == "ResumeJob" else ALIVE):
            self._want(step, (JOBS, key, phase), f"{command.action} was taken, and the job stayed {job.phase}")

    def _of_queue(self, step: Step, name: str, command: Command) -> None:
        queue = self.picture.queues.get(f"/{name}")
        if type(queue) is not Queue or not _is_for(command, queue):
            return
        self._want(step, ("event", queue.metadata.uid), f"{command.action} was taken, and no event says so")
        wish = WISHES.get(command.action, "")
        had = self._left.get((queue.metadata.uid, wish), -1) > self._made.get(step.key, -1)
        if wish and queue.spec.state != wish and not had and not (name == ROOT_QUEUE and wish == "Closed"):
            self._want(step, (QUEUES, f"/{name}", wish), f"{command.action} was taken, and the wish stayed")

    def _want(self, step: Step, what: tuple[str, ...], text: str) -> None:
        self._wanted[what] = self.broken(key_of(step.change), text)

    def _job(self, step: Step) -> None:
        if type(step.seen) is not Job:
            return
        self._wanted.pop((JOBS, step.key, step.seen.phase), None)
        was = step.before.phase if type(step.before) is Job else ""
        if was == "Aborted" and step.seen.phase == "Restarting" and step.key not in self._resumed:
            raise self.broken(key_of(step.change), "was Aborted and restarts, and no Command asked for it")

    def _event(self, step: Step) -> None:
        if type(step.after) is not Event or step.after.reason != REASON:
            return
        about = step.after.involved_object
        self._wanted.pop(("event", about.uid), None)
        self._messages[about.uid].append(step.after.message)
        if step.change.verb == "ADDED" and about.uid not in self._served:
            text = f"{about.kind} {about.name} is told of a Command, and none was for it"
            raise self.broken(key_of(step.change), text)

    def _queue(self, step: Step) -> None:
        if type(step.seen) is not Queue:
            return
        wish = step.seen.spec.state
        self._wanted.pop((QUEUES, step.key, wish), None)
        if type(step.before) is Queue and step.before.spec.state != wish:
            self._left[step.before.metadata.uid, step.before.spec.state] = step.change.revision


def _is_for(command: Command, target: Job | Queue) -> bool:
    return command.target.uid in ("", target.metadata.uid) and not target.metadata.deletion_timestamp


class HasTarget(Invariant):
    """Source: reference volcano-job §2.6; docs of cluster/api/rights.py: the target must exist under its uid.

    Who creates a Command holds the log's lock, so that there is no moment in
    between. A Command whose target goes afterwards is dropped.
    """

    name = "command has a target"
    meaning = "A Command to a job or a queue comes in while that exists, under the uid that it names."
    kinds = (COMMANDS,)

    def take(self, step: Step) -> None:
        command = step.after
        if step.change.verb != "ADDED" or type(command) is not Command:
            return
        namespace = {"Job": step.change.namespace, "Queue": ""}.get(command.target.kind)
        objects = self.picture.jobs if command.target.kind == "Job" else self.picture.queues
        if namespace is None:
            return
        target = objects.get(f"{namespace}/{command.target.name}")
        if target is None or command.target.uid not in ("", target.metadata.uid):
            text = f"orders {command.action} of {command.target.kind} {command.target.name}, which is not there"
            raise self.broken(key_of(step.change), text)


class Failures:
    """The failures of a job's pods: how many there were, how many were told, and how many have to be."""

    __slots__ = ("certain", "names", "reported", "seen")

    def __init__(self) -> None:
        self.seen = self.reported = self.certain = 0
        self.names: Counter[str] = Counter()


class FailuresReported(Invariant):
    """Source: docs of jobs/controller/pod_events.py: each failure is told once, whoever fails when.

    A failure is told on the job that stands when it is read: not where that is
    being deleted, and not where the job has started again since, when the pod
    is of a run that was ended. So never more are told than failed; and at rest
    no fewer than failed since the last restart. A sentence says how many
    failed and names three: the number and the first name are compared.
    """

    name = "failures are told once"
    meaning = "The PodFailed events of a job tell of each of its failed pods once."
    kinds = (PODS, JOBS, EVENTS)

    _SENTENCE = re.compile(r"(\d+) pods? failed: (\S+) ")

    def __init__(self, picture: Picture) -> None:
        super().__init__(picture)
        self._of: defaultdict[str, Failures] = defaultdict(Failures)

    def take(self, step: Step) -> None:
        kind = step.change.resource
        if kind == PODS:
            self._pod(step)
        elif kind == JOBS:
            self._job(step)
        elif type(step.after) is Event and step.after.reason == "PodFailed" and step.change.verb == "ADDED":
            self._event(step, step.after)

    def _pod(self, step: Step) -> None:
        before, seen = step.before, step.seen
        if not (type(before) is Pod and type(seen) is Pod) or seen.phase != "Failed" or before.phase == "Failed":
            return
        owner = seen.metadata.controller
        notes = seen.metadata.annotations
        if owner is None or owner.kind != "Job" or (notes is not None and notes.out_of_sync == "true"):
            return
        job = self.picture.jobs.get(f"{step.change.namespace}/{owner.name}")
        if type(job) is Job and job.metadata.uid == owner.uid:
            failures = self._of[owner.uid]
            failures.seen += 1
            failures.names[step.change.name] += 1
            failures.certain += _is_of_this_run(notes, job)

    def _job(self, step: Step) -> None:
        if step.after is None:
            self._of.pop(step.change.uid, None)
        elif step.change.uid in self._of and type(step.after) is Job:
            failures = self._of[step.change.uid]
            if step.after.phase == "Restarting":
                failures.certain = failures.reported  # what failed before may be left untold

    def _event(self, step: Step, event: Event) -> None:
        found = self._SENTENCE.match(event.message)
        if found is None or event.involved_object.uid not in self._alive(event, step):
            return
        failures = self._of[event.involved_object.uid]
        failures.reported += int(found[1])
        if failures.reported > failures.seen:
            text = f"{failures.reported} failures are told of {event.involved_object.name}, and {failures.seen} pods failed"
            raise self.broken(key_of(step.change), text)
        if not failures.names[found[2]]:
            raise self.broken(key_of(step.change), f"tells that {found[2]} failed, which it did not")

    def _alive(self, event: Event, step: Step) -> tuple[str, ...]:
        job = self.picture.jobs.get(f"{step.change.namespace}/{event.involved_object.name}")
        return (job.metadata.uid,) if type(job) is Job else ()

    def settle(self, now: int) -> None:
        for key, job in self.picture.jobs.items():
            failures = self._of.get(job.metadata.uid) if type(job) is Job else None
            if failures is not None and not job.metadata.deletion_timestamp and failures.reported < failures.certain:
                text = f"{failures.certain} of its pods failed, and {failures.reported} failures are told"
                raise self.broken(f"{JOBS}/{key}", text)


def _is_of_this_run(notes: PodNotes | None, job: Job) -> bool:
    """Say whether a failed pod is not of a run that was ended, or no run follows, so that it must be told."""
    version = notes.version if notes is not None else ""
    return not version.isdigit() or int(version) >= job.status.version or job.phase in FINISHED


INVARIANTS = (CarriedOut, HasTarget, FailuresReported)
