"""What must be written so that a job's pods, pod group and status are as they should be.

`reconcile` looks at a job and everything made for it, and returns writes; it does nothing by itself. Asked again after
its writes were carried out, it returns nothing. A large job is brought about in several rounds: no round makes or
deletes more pods than it has room for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

from msgspec import Struct, field

from cluster.rules import ranges as limit_ranges
from cluster.rules.quota_accounts import Account
from cluster.writes import Create, Delete, Patch, Update, Write
from jobs.controller import namespace_limits, plugin_objects, pod_diff, pod_group, status
from jobs.controller.facts import GroupFact, JobFact, PodFact
from jobs.controller.plugin_objects import Id, PluginObjectFact
from jobs.controller.pod_diff import PodDiff
from jobs.controller.pods import Blueprint, claim_name
from jobs.controller.requests import Request, pods_named, together
from jobs.lifecycle import causes, dependencies, messages, phases, policy_firings, requester
from jobs.lifecycle.causes import MOST_FAILURES, Causes
from jobs.lifecycle.phases import Decision, Procedure
from jobs.lifecycle.policy_firings import PolicyFiring
from jobs.lifecycle.requester import Requester
from jobs.lifecycle.situation import Situation
from jobs.plugins.contract import KeyPair
from kube import events, pod_health
from kube.kinds.batch import Action, JobPhase
from kube.kinds.pod import OUT_OF_SYNC
from kube.meta import Object
from kube.priorities import PriorityClasses
from kube.resources import CLAIMS, COMMANDS, EVENTS, JOBS, POD_GROUPS, PODS
from kube.volcano.evictions import FIRST_EVICTED

COMPONENT = "vc-controller-manager"
MOST_EXIT_CODES = 32  # that a status lists
ROOM = 1000  # pods made or deleted in one round: a transaction of about a tenth of a second
_EVENT_REASONS = {  # reason → that of the event
    phases.UNSCHEDULABLE: "PodGroupPending",
    "FailedCreate": "FailedCreate",
    "PluginBlocked": "PluginError",
    phases.TASK_DEADLOCK: phases.TASK_DEADLOCK,
}
_UNHAPPY = (JobPhase.FAILED, JobPhase.TERMINATED, JobPhase.ABORTED)


class ObservedJob(Struct):
    """The stored versions of one job and of what was made for it, as last read."""

    job: JobFact
    pods: dict[str, PodFact] = field(default_factory=dict)
    group: GroupFact | None = None
    plugin_objects: dict[Id, PluginObjectFact] = field(default_factory=dict)  # what plugins made, see there
    # The pod group and the products are as this version of the job wants them, once they are seen.
    in_step: bool = False


class World(NamedTuple):
    """What a job's pods depend on beside the job."""

    priorities: PriorityClasses
    claims: Mapping[str, Collection[str]]  # namespace → names
    ranges: Mapping[str, Sequence[Object]] = {}  # namespace → limit ranges
    accounts: Mapping[str, Account] = {}  # namespace → what its quotas leave, where it has some, see `lacks_pods`


class Outcome(NamedTuple):
    """The writes, all or none to be carried out, and whether to ask again when they have been.

    `refused` says that pods are missing which the namespace's bounds do not let exist. `waiting` are the requests that
    the writes do not carry out: they are to be made again. With the writes, pod group and products are `in_step` with
    this version of the job. `is_unreported`: its first status was left out.
    """

    writes: list[Write]
    again: bool = False
    refused: bool = False
    waiting: Sequence[Request] = ()
    in_step: bool = False
    is_unreported: bool = False


def lacks_pods(observed: ObservedJob) -> bool:
    """Say whether a job may be given pods: before it is, the account of its namespace has to have counted them."""
    return observed.group is not None and observed.group.is_admitted and pod_diff.lacks(observed.job, observed.pods)


def lacks_keys(observed: ObservedJob) -> bool:
    """Return whether a job lacks its key pair; then `reconcile` needs a new one."""
    return plugin_objects.lacks_keys(observed.job, observed.plugin_objects)


def reconcile(
    observed: ObservedJob,
    world: World,
    now: int,
    *,
    requests: Sequence[Request] = (),
    keys: KeyPair | None = None,
    room: int = ROOM,
    is_large_batch: bool = False,
) -> Outcome:
    """Return what brings a job one step further: the first of what is asked for, or else what its spec says.

    In a crowd of jobs that come at once, a new one is not told that it waits for its queue: that is likely to
    be over before anybody could read it.
    """
    # A job that no controller has seen is Pending first.
    current = () if observed.job.is_new else together(requests)
    round_ = _Round(observed, world, now, keys, room, current, is_large_batch=is_large_batch)
    if round_.kill_part():
        return Outcome(round_.writes, again=True, waiting=requests, in_step=round_.in_step)
    round_.take_requests()
    is_idle = bool(current) and (observed.job.is_finished or current[0].action is None)
    if not (is_idle or observed.job.deleting):
        round_.act()
    again = round_.again or bool(current)
    postponed = requests[len(current) :]
    return Outcome(round_.writes, again, bool(round_.refusal), postponed, round_.in_step, round_.is_unreported)


class _Round:
    """One round of work on a job: it reads, decides, and collects the writes.

    What is read is set once, in `__init__`. `writes`, `room` (how many more pods may be made or deleted), `counts`, `again`, `in_step`,
    `refusal`, `is_unreported` and `sent_events` are what comes of the round.
    """

    def __init__(
        self,
        observed: ObservedJob,
        world: World,
        now: int,
        keys: KeyPair | None,
        room: int,
        requests: Sequence[Request],
        *,
        is_large_batch: bool,
    ) -> None:
        self.observed, self.job, self.world, self.now, self.room = observed, observed.job, world, now, room
        self.keys, self.requests, self.is_large_batch, self.is_unreported = keys, requests, is_large_batch, False
        self.step = phases.step_for(self.job.phase, (requests and requests[0].action) or Action.SYNC_JOB)
        self.writes: list[Write] = []
        self.again = False
        self.in_step = observed.in_step
        self.refusal = ""
        self.sent_events: set[tuple[str, str]] = set()
        self.is_admitted = observed.group is not None and observed.group.is_admitted
        self.blocked = plugin_objects.blocking(self.job, observed.plugin_objects)
        self.diff = pod_diff.compare(self.job, observed.pods.values())
        self.counts = self.diff.counts
        self.own = [pod for pod in observed.pods.values() if pod.owner == self.job.uid]
        self.by = _requester(self.job, requests)

    @cached_property
    def whole(self) -> Object:
        return self.job.whole()

    def take_requests(self) -> None:
        """Say which requests are heeded, and delete the Commands that made them."""
        for request in self.requests:
            command = request.source
            if command is not None:
                self.writes.append(Delete(COMMANDS, command.namespace, command.name, uid=command.uid))
            kind = events.WARNING if request.action is None else events.NORMAL
            self._send_event(request.reason, request.why, kind, request.firing)

    def act(self) -> None:
        """Do what is asked for, or what a job does that nothing is asked of."""
        if self.step.procedure is Procedure.SYNC:
            self.sync(self.step.rules)
        elif self.step.procedure is Procedure.KILL:
            self.kill()
        else:
            self.kill_target()

    def sync(self, rules: tuple[phases.PhaseRule, ...]) -> None:
        """Bring group, products and pods in line with the spec, then decide (reference: volcano-job §2.4)."""
        if not self.job.is_new and any(rule.phase in phases.FINISHED for rule in rules):
            decision = self._decide(rules, self.is_admitted)
            if decision.phase in phases.FINISHED:
                # What still runs ends in the same round; a job without retries left makes no pods (§10, Q-19).
                changes = self._end(phases.SOFT, "the job is over")
                self._write_status(decision, **changes, **self._duration(decision))
                return
        self._keep_in_step()
        self._remove(self.diff.leftovers.values(), "they belong to a run that was ended")
        if self.is_admitted:
            if not self.blocked:
                self._make()
            self._remove(self.diff.surplus, "they are more than the job's replicas", is_surplus=True)
        self.again = self.room == 0
        decision = self._decide(rules, self.is_admitted)
        self._write_status(decision, runningDuration=None)

    def kill(self) -> None:
        """End the pods that are not to be retained, then decide (reference: volcano-job §2.2)."""
        changes = self._end(_retained(self.job, self.step), self.step.why)
        decision = self._decide(self.step.rules, is_admitted=True)
        changes |= self._duration(decision) | _retry(self.job, self.step)
        self._write_status(decision, **changes)

    def kill_target(self) -> None:
        """End the pods that are asked about and keep the pod group, then decide (reference: volcano-job §2.3).

        A partition without pods changes nothing; a task or a pod that is not there restarts the job all the same.
        """
        named = pods_named(self.requests, self.job, self.own)
        if not named and all(request.action is Action.RESTART_PARTITION for request in self.requests):
            return
        self._remove(_ending(named, _retained(self.job, self.step)), self.step.why)
        self._write_status(self._decide(self.step.rules, is_admitted=True), **_retry(self.job, self.step))

    def kill_part(self) -> bool:
        """End some of the pods that are asked about if they are more than there is room for; say whether they are.

        The phase stays: it changes with the last of them.
        """
        if self.step.procedure is not Procedure.KILL_TARGET or self.job.deleting:
            return False
        ending = _ending(pods_named(self.requests, self.job, self.own), _retained(self.job, self.step))
        if len(ending) <= self.room:
            return False
        self._remove(ending, self.step.why)
        self._write_status(self._decide(phases.UNCHANGED, is_admitted=True))
        return True

    def _duration(self, decision: Decision) -> dict[str, Any]:
        """Return how long the job took when its pods are ended, from its creation to this phase (§2.2, step 9)."""
        is_next = decision.phase != self.job.phase
        return {"runningDuration": status.running_duration(self.job, self.now)} if is_next else {}

    def _end(self, retain: Collection[str], why: str) -> dict[str, Any]:
        """Delete unretained pods, the products and the pod group (reference: volcano-job §2.2).

        Retained pods stay counted (§10, Q-1).
        """
        ending = _ending(self.own, retain)
        self.again = len(ending) > self.room
        self._remove(ending, why)
        self.writes += plugin_objects.end(self.job, self.observed.plugin_objects)
        self.in_step = False
        group = self.observed.group
        if group is not None:
            self.writes.append(Delete(POD_GROUPS, self.job.namespace, group.name, uid=group.uid))
            # The job is to know when its pods were first evicted for others, as the group goes that says it.
            noted = (self.whole["metadata"].get("annotations") or {}).get(FIRST_EVICTED)
            if group.first_evicted not in ("", noted):
                patch = {"metadata": {"annotations": {FIRST_EVICTED: group.first_evicted}}}
                self.writes.append(Patch(JOBS, self.job.namespace, self.job.name, patch, uid=self.job.uid))
        if not ending and group is None:
            return {}
        return {"version": self.job.version + 1}

    def _keep_in_step(self) -> None:
        group = self.observed.group
        if group is not None and self.observed.in_step:
            return
        self.in_step = True
        whole = self.whole
        self.writes += plugin_objects.in_step(self.job, whole, self.observed.plugin_objects, self.keys)
        if group is None:
            self.writes += _claims(self.job, whole, self.world.claims.get(self.job.namespace, ()))
            for name in plugin_objects.left_alone(self.job, whole, self.observed.plugin_objects):
                text = f"{name} was there before and is left as it is; delete it to have the plugin's."
                self._send_event("PluginError", text, events.WARNING)
            self.writes.append(Create(POD_GROUPS, pod_group.pod_group(self.job, whole, self.world.priorities)))
            return
        changes = pod_group.spec_changes(self.job, whole, group.spec, self.world.priorities)
        if changes:
            self.writes.append(Patch(POD_GROUPS, self.job.namespace, group.name, {"spec": changes}, uid=group.uid))

    def _make(self) -> None:
        """Make missing pods."""
        missing = pod_diff.missing(self.job, self.observed.pods, self.diff)
        namespace = self.job.namespace
        ranges, account = self.world.ranges.get(namespace, ()), self.world.accounts.get(namespace)
        bounds = [each for each in ranges if limit_ranges.bounds(each)]
        is_bound = bool(bounds) or account is not None
        wanted = list(missing if is_bound else islice(missing, self.room))
        if not wanted:
            return
        whole = self.whole
        claims = self.world.claims.get(namespace, ())
        blueprints: dict[int, Blueprint] = {}

        def pod(position: namespace_limits.PodPosition) -> Object:
            task, index = position
            if task not in blueprints:
                blueprints[task] = Blueprint(self.job, whole, task, self.world.priorities, claims, ranges)
            return blueprints[task].pod(index)

        if is_bound:
            alive = self.counts.pending + self.counts.started
            wanted, self.refusal = namespace_limits.choose(self.job, wanted, alive, pod, bounds, account)
            wanted = wanted[: self.room]
        self.room -= len(wanted)
        if wanted:
            self.writes.extend(Create(PODS, pod(position)) for position in wanted)
            self._report_created(wanted, whole, claims)

    def _report_created(
        self, wanted: Sequence[namespace_limits.PodPosition], whole: Object, claims: Collection[str]
    ) -> None:
        for task, number in Counter(task for task, _ in wanted).items():
            self.counts.add_pending(self.job.tasks[task].name, number)
        for volume in whole["spec"].get("volumes") or () if not self.observed.pods else ():
            name = volume.get("volumeClaimName")
            if name and name not in claims:
                text = f"There is no claim {name} in namespace {self.job.namespace}; the pods get an empty directory at {volume['mountPath']}."
                self._send_event("ClaimMissing", text, events.WARNING)
        if self.job.replicas == 1:
            return  # the pod itself says as much
        total = f" of {self.job.replicas}" if len(wanted) < self.job.replicas else ""
        self._send_event("SuccessfulCreate", f"Created {len(wanted)}{total} pods.")

    def _remove(self, unwanted: Iterable[PodFact], why: str, *, is_surplus: bool = False) -> None:
        """Delete as many pods as there is room for, marked first: it is no eviction (reference: volcano-job §10, Q-3)."""
        removed = list(islice(unwanted, self.room))
        self.room -= len(removed)
        for pod in removed:
            if not pod.out_of_sync:
                mark = {"metadata": {"annotations": {OUT_OF_SYNC: "true"}}}
                self.writes.append(Patch(PODS, self.job.namespace, pod.name, mark, uid=pod.uid))
            self.writes.append(Delete(PODS, self.job.namespace, pod.name, uid=pod.uid))
            if pod.name not in self.diff.leftovers:
                self.counts.end("" if is_surplus else pod.task, pod.phase)
        self.counts.sum_up()
        if removed:
            self._send_event("SuccessfulDelete", f"Deleted {messages.pods(len(removed))}: {why}.")

    def _decide(self, rules: tuple[phases.PhaseRule, ...], is_admitted: bool) -> Decision:
        situation = self._situation(is_admitted)
        if self.job.is_new and not is_admitted:
            # Every job is Pending first, also one that needs no pod to be Running: that follows at once.
            self.again |= rules[0].when(situation)
            return phases.decide(JobPhase.PENDING, rules[1:], situation)
        return phases.decide(self.job.phase, rules, situation)

    def _situation(self, is_admitted: bool) -> Situation:
        group = self.observed.group
        tasks = {task.name: task for task in self.job.tasks}
        deadlock = dependencies.deadlock(self.job.tasks, self.job.dependencies, self.job.min_available)
        failed = self.diff.failed[:MOST_FAILURES]
        return Situation(
            tasks=self.job.tasks,
            counts=self.counts,
            min_available=self.job.min_available,
            min_success=self.job.min_success,
            by=self.by,
            retry_count=self.job.retry_count,
            max_retry=self.job.max_retry,
            admitted=is_admitted,
            waiting=group.waiting if group else "",
            failures=tuple(pod.how_failed for pod in failed),
            obstacles=tuple(pod.obstacle for pod in self.diff.stuck[:MOST_FAILURES] if pod.obstacle is not None),
            stuck_pods=len(self.diff.stuck),
            obstacles_before=causes.in_status(self.job.status) if self.job.phase in phases.STOPPING else Causes(),
            foreign_names=tuple(self.diff.foreign),
            waiting_tasks=tuple(
                dependencies.waiting_tasks(self.job.dependencies, tasks, self.diff.named, self.diff.ready)
            ),
            deadlock=f"{deadlock.why}; set minAvailable to {deadlock.enough}" if deadlock is not None else "",
            blocked=self.blocked,
            refused=self.refusal,
        )

    def _write_status(self, decision: Decision, **changes: Any) -> None:
        if self.is_large_batch and self.job.is_new and decision.reason == phases.WAITING_FOR_QUEUE:
            self.is_unreported = True
            return
        if self.job.is_new:
            changes["controlledResources"] = status.controlled_resources(self.job, self.whole) or None
        changes |= _searched(self.job, self.observed.group, self.diff, decision) | self._while_ending(decision)
        wanted = status.status_after(self.job, decision, self.counts, self.now, **changes)
        if wanted == self.job.status:
            return
        before = (self.job.status.get("state") or {}).get("reason")
        if decision.phase != self.job.phase:
            # What holds in the next phase may lead further at once, unless the job has come to run and has no more to say.
            following = None
            if decision.phase is JobPhase.RUNNING:
                situation = self._situation(self.is_admitted)
                following = phases.decide(decision.phase, phases.RUNNING_RULES, situation)
            self.again |= following != decision
            kind = events.WARNING if decision.phase in _UNHAPPY else events.NORMAL
            self._send_event(decision.reason, f"{decision.phase}: {decision.text.whole}", kind)
        elif decision.reason in _EVENT_REASONS and decision.reason != before:
            self._send_event(_EVENT_REASONS[decision.reason], decision.text.whole, events.WARNING)
        self.writes.append(Update(JOBS, {**about(self.job), "status": wanted}, "status"))

    def _while_ending(self, decision: Decision) -> dict[str, Any]:
        """Return what a status holds while the job ends its pods, for the message of the end: later nobody knows it.

        That is who asked for it, and what kept pods from running when it began.
        """
        if decision.phase not in phases.STOPPING:
            return {requester.FIELD: None}
        obstacles = causes.in_status(self.job.status)
        if decision.phase != self.job.phase:
            obstacles = messages.obstacles(self._situation(self.is_admitted))
        return {requester.FIELD: requester.written(self.by), causes.FIELD: causes.written(obstacles)}

    def _send_event(
        self, reason: str, message: str, kind: str = events.NORMAL, firing: PolicyFiring | None = None
    ) -> None:
        """Write an Event; the same reason and message twice in one round is one Event."""
        if (reason, message) in self.sent_events:
            return
        self.sent_events.add((reason, message))
        self.writes.append(Create(EVENTS, event(self.job, reason, message, self.now, kind=kind, firing=firing)))


def _requester(job: JobFact, requests: Sequence[Request]) -> Requester | None:
    """Return who requested what the job does now; while it ends its pods its status says that."""
    if requests and job.phase is not JobPhase.RESTARTING:
        request = requests[0]
        # Who asks to look at a job asks for none of what it does.
        if request.action in phases.STEPS[job.phase] and request.action is not Action.SYNC_JOB:
            return request.by
    return requester.of_status(job.status) if job.phase in phases.STOPPING else None


def _retained(job: JobFact, step: phases.Step) -> Collection[str]:
    """Return the phases of the pods that stay; those that ended do when no other run follows, for their logs."""
    is_last = job.retry_count + step.is_retry >= job.max_retry
    return phases.SOFT if is_last and step.why == phases.AGAIN else step.retain


def _ending(pods: Iterable[PodFact], retain: Collection[str]) -> list[PodFact]:
    """Return the pods that are to be deleted: those that nobody has deleted yet, but for the phases to retain."""
    return [pod for pod in pods if not pod.deleting and pod.phase not in retain]


def _retry(job: JobFact, step: phases.Step) -> dict[str, Any]:
    """Return the changes of a status by which a step counts as a retry."""
    return {"retryCount": job.retry_count + 1} if step.is_retry else {}


def _claims(job: JobFact, whole: Object, existing: Collection[str]) -> Iterator[Write]:
    """Yield the claims that volumes describe and do not exist, and the job with their names (reference: volcano-job §4.3)."""
    volumes = whole["spec"].get("volumes") or []
    named = []
    for number, volume in enumerate(volumes):
        if not volume.get("volumeClaim"):
            named.append(volume)
            continue
        name = volume.get("volumeClaimName") or claim_name(job, number)
        named.append({**volume, "volumeClaimName": name})
        if name not in existing:
            yield Create(CLAIMS, plugin_objects.owned(job, whole, CLAIMS, name, {"spec": volume["volumeClaim"]}))
    if named != volumes:
        yield Patch(JOBS, job.namespace, job.name, {"spec": {"volumes": named}}, uid=job.uid)


def _searched(job: JobFact, group: GroupFact | None, diff: PodDiff, decision: Decision) -> dict[str, Any]:
    """Return the fields of a status by which jobs are searched: why a job waits, and how its pods ended."""
    codes = sorted({code for pod in diff.failed for code in pod.exit_codes})
    why = group.waiting_reason if group and decision.reason == phases.UNSCHEDULABLE else ""
    if decision.reason == pod_health.PODS_KEPT:
        why = Counter(pod.obstacle.obstacle for pod in diff.stuck if pod.obstacle is not None).most_common(1)[0][0]
    changes: dict[str, Any] = {"waitingReason": why or None}
    if decision.reason:
        changes[causes.FIELD] = causes.written(decision.text.causes)
    # Pods that a job which is over does without have ended all the same.
    if codes or job.phase not in phases.FINISHED:
        changes["exitCodes"] = codes[:MOST_EXIT_CODES] or None
    return changes


def event(
    job: JobFact, reason: str, message: str, now: int, *, kind: str, firing: PolicyFiring | None = None
) -> Object:
    """Return an Event by which the controller tells people of a job, with the policy firing that it tells of."""
    annotations = policy_firings.as_annotations(firing)
    return events.event(about(job), reason, message, now, component=COMPONENT, kind=kind, annotations=annotations)


def about(job: JobFact) -> Object:
    """Return as much of a job as an Event names."""
    metadata = {"namespace": job.namespace, "name": job.name, "uid": job.uid}
    return {"apiVersion": JOBS.api_version, "kind": JOBS.kind, "metadata": metadata}
