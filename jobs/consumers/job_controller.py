"""The job controller: keeps every job's pods, pod group and status as its spec says, and deletes it when its TTL is over.

It reads jobs, pods, pod groups, plugin objects, Commands, and what pods depend on besides their job: claims, priority
classes, limit ranges and quotas. It remembers the unfinished jobs as compact facts (`jobs.controller.facts`), and asks
`jobs.controller.plan` about each job that something happened to. A job is not planned until its last writes have come
back through the log (`jobs.controller.expectations`).

Commands to one job are carried out one at a time, in the order in which they were stored; each is deleted in the
transaction that carries it out.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from cluster.api import backend, quota_room
from cluster.consumers.consumer import RETRY, Consumer, Plan, timers_of
from cluster.rules import quotas
from cluster.runtime import division, registry, retries
from cluster.store import Change, Create, Delete, Group, Stored, Update, Write, store
from cluster.writes import Timer
from jobs.consumers import policy_events
from jobs.consumers.state import JobEntry, JobsState, read_beside_log, refresh, remember
from jobs.controller import commands as of_jobs
from jobs.controller import (
    facts,
    job_events,
    late_defaults,
    pending_actions,
    plan,
    plugin_objects,
    policy_engine,
    ssh_keys,
    status_throttle,
)
from jobs.controller.expectations import PendingWrites
from jobs.controller.facts import JobFact, PodFact
from jobs.controller.observed import ObservedJob, World
from jobs.controller.pending_actions import PENDING_ACTION
from jobs.lifecycle.phases import FINISHED, phase_of
from jobs.plugins.contract import KeyPair
from kube import meta
from kube.errors import ApiError
from kube.kinds.batch import JobEvent, JobPhase
from kube.kinds.pod import UNENDED
from kube.meta import Object
from kube.resources import CLAIMS, COMMANDS, JOBS, LIMIT_RANGES, POD_GROUPS, PODS, PRIORITY_CLASSES, RESOURCE_QUOTAS
from kube.volcano import commands

NAME = "jobs"
ROOM = 3000  # writes in one transaction; the rest follow in the next
KEY_COST = 150  # how many writes a key pair counts for, by the time it takes
UNFINISHED = ("", *(phase.value for phase in JobPhase if phase not in FINISHED))
# Kinds of timers, by what happens when one is due. There are also PENDING_ACTION (what policies ask for),
# status_throttle.STATUS_TIMER, and RETRY for a group of writes that failed, whose job is read again.
TTL = "ttl"  # a finished job is deleted
LEFT = "left"  # a job that has just finished is looked at again, unless nothing is left to do for it
LOST = "lost"  # writes should have come back: a job whose writes have not is read again
MORE = "more"  # jobs that did not fit into the last transaction are planned
PENDING = "pending"  # pods of a job have been Pending for too long
LEFT_MS = 60_000  # how long after a job finished the LEFT timer is due
log = logging.getLogger(__name__)


class JobConsumer(Consumer[JobsState]):
    """Reconciles Volcano Jobs; one of `shards` by the job's namespace and name."""

    name = NAME

    def load(self, shard: int, revision: int) -> JobsState:
        """Read the unfinished jobs, and finished ones that still have pods to end."""
        state = JobsState(shard, registry.get(NAME).shards)
        for kind in (COMMANDS, PRIORITY_CLASSES, CLAIMS, LIMIT_RANGES, RESOURCE_QUOTAS):
            for stored in sorted(store.find(kind), key=lambda each: each.revision):
                key = stored.resource, stored.namespace, stored.name, stored.uid
                self.apply(state, Change(stored.revision, *key, "ADDED", stored.created, stored.body))
        state.position = revision
        ending = {facts.job_key_of(stored.body) for stored in store.find(PODS, phase=UNENDED)} - {""}
        jobs = {stored.key: stored for stored in store.find(JOBS, phase=UNFINISHED)}
        jobs |= store.by_keys(JOBS, sorted(ending - jobs.keys()))
        remember(state, [stored for key, stored in jobs.items() if state.holds(key)])
        for timer in timers_of(NAME, shard, PENDING_ACTION):
            if timer.key in state.entries:  # actions for a job that is gone or finished are dropped
                state.set_pending_actions(timer.key, pending_actions.read(timer))
        state.touched = dict.fromkeys([*state.entries, *state.commands])
        return state

    def lags(self, state: JobsState, *, is_behind: bool) -> None:
        """Plan no job until all changes are delivered: a policy acts before the job's default reaction (§10, Q-14)."""
        state.is_behind = is_behind

    def apply(self, state: JobsState, change: Change) -> None:
        """Note one change; planning happens later, once per batch."""
        state.position = change.revision
        try:
            _APPLY[change.resource](state, change)
        except msgspec.ValidationError as error:
            log.error("ignored %s %s, which cannot be read: %s", change.resource, change.key, error)

    def plan(self, state: JobsState, changes: Sequence[Change], timers: Sequence[Timer], now: int) -> Plan:
        """Plan the jobs that something happened to, up to the size of one transaction."""
        groups, deadlines, left = _wake(state, changes, timers, now)
        over: list[tuple[str, str]] = []
        world = state.world()
        room, is_unheard, is_large_batch = ROOM, False, len(state.touched) > status_throttle.LARGE_BATCH
        while state.touched and room > 0 and not state.is_behind:
            key = next(iter(state.touched))
            del state.touched[key]
            entry = state.entries.get(key)
            if entry is None:
                continue
            if key in state.sent:
                entry.again = True
                continue
            if _is_over(entry.observed) and key not in state.commands:
                state.forget(key)
                state.set_pending_actions(key, ())
                deadlines += _deadline(entry.observed.job)
                over += [(LEFT, key), (PENDING_ACTION, key), (PENDING, key)]
                left.pop(key, None)
                continue
            keys = ssh_keys.make() if plan.lacks_keys(entry.observed) else None
            room -= KEY_COST if keys else 0
            if writes := _plan_one(state, entry, world, keys, now, is_large_batch=is_large_batch):
                if _finishes(writes):
                    left[key] = None
                groups.append(_group(state, entry, writes, now))
                room -= len(writes)
                state.sent[key] = PendingWrites(now)
                is_unheard |= not any(write.resource.id in _APPLY for write in writes)
            if entry.pending_until is not None:
                deadlines.append(Timer(PENDING, key, entry.pending_until))
        # Writes of kinds that are not read here, such as events, do not come back, so a timer starts the next round.
        more = [Timer(MORE, "", now)] if state.touched or is_unheard else []
        if state.sent:
            more.append(Timer(LOST, "", min(sent.expires for sent in state.sent.values())))
        looks = [Timer(LEFT, key, now + LEFT_MS) for key in left if key in state.entries]
        more += status_throttle.timers(state.unreported, now)
        # A retried group that did not fit into this transaction keeps its count of failures.
        put_off = [
            Timer(RETRY, timer.key, now, {**timer.payload, "news": False})
            for timer in timers
            if timer.kind == RETRY and timer.key in state.touched
        ]
        return Plan(groups, [*more, *deadlines, *looks, *put_off], over)

    def key_of(self, change: Change) -> str:
        """Return the key of the job that a change is about, "" for objects that many jobs depend on."""
        if change.resource == JOBS.id:
            return change.key
        try:
            return facts.job_key_of(change.body) if change.resource in (PODS.id, POD_GROUPS.id) else ""
        except msgspec.ValidationError:
            return ""  # no shard can read it

    def committed(self, state: JobsState, groups: Sequence[Group], outcomes: Sequence[list[Stored] | ApiError]) -> None:
        """Note the revisions of each job's writes, by which they are recognized in the log."""
        for group, outcome in zip(groups, outcomes, strict=True):
            sent = state.sent.get(group.key)
            if sent is None:
                continue
            if isinstance(outcome, ApiError):
                sent.failed = True
            else:
                state.set_pending_actions(group.key, state.entries[group.key].remaining_actions)
                sent.revisions = frozenset(row.revision for row in outcome if row.resource in _APPLY)


def _wake(
    state: JobsState, changes: Sequence[Change], timers: Sequence[Timer], now: int
) -> tuple[list[Group], list[Timer], dict[str, None]]:
    """Touch the jobs that something happened to or that have a due timer.

    Return the groups and timers that do not depend on the jobs' plans, and the keys of jobs that have just finished.
    """

    def about(key: str) -> Object | None:
        return job_events.about(state.entries[key].observed.job) if key in state.entries else None

    groups = [_expiry(timer) for timer in timers if timer.kind == TTL]
    groups += retries.event_groups(timers, about, now, job_events.COMPONENT)
    lost = _settle_writes(state, now)
    failed = [timer.key for timer in timers if timer.kind == RETRY and state.holds(timer.key)]
    left = {timer.key: None for timer in timers if timer.kind == LEFT and state.holds(timer.key)}
    refresh(state, [*lost, *failed, *(key for key in left if key not in state.entries)])
    state.touched |= left
    state.touched |= dict.fromkeys(status_throttle.take_due(state.unreported, now, _scheduler_position))
    groups += _find_targets(state)
    handled = policy_events.handle(state, changes, now)
    deadlines = [*handled.timers]
    for timer in timers:
        if timer.kind == PENDING_ACTION and timer.key in state.pending_actions:
            # Pending actions stay in the job's timer until they are carried out.
            deadlines += pending_actions.timers(timer.key, state.pending_actions[timer.key], now)
            state.touched[timer.key] = None
        elif timer.kind == PENDING and timer.key in state.entries:
            state.touched[timer.key] = None
    return [*groups, *handled.groups], deadlines, left


def _scheduler_position() -> int:
    """Return the revision up to which the scheduler has read; sys.maxsize where our scheduler does not run."""
    scheduler = registry.get("scheduler")
    if not backend.runs(scheduler):
        return sys.maxsize
    cursor = division.read(scheduler, store.using).get(scheduler.cursor_of(0))
    return cursor.position if cursor is not None else 0


def _plan_one(
    state: JobsState, entry: JobEntry, world: World, keys: KeyPair | None, now: int, *, is_large_batch: bool
) -> list[Write]:
    """Plan one job; if that raises, the job is left as it is and the others are planned all the same."""
    observed, key = entry.observed, entry.observed.job.key
    state.set_pending_actions(key, waiting := pending_actions.current(state.pending_actions.get(key, ()), observed.job))
    overdue = policy_engine.to_pending(observed.job, observed.pods.values(), now)
    requests = [of_jobs.request(each, observed.job) for each in state.commands.get(key, {}).values()]
    requests += [*pending_actions.due(waiting, now), *(each.request() for each in overdue.pending_actions)]
    account = world.accounts.get(observed.job.namespace)
    if account is not None and plan.lacks_pods(observed):
        quota_room.count_into(account, PODS, observed.job.namespace)
    try:
        may_wait = is_large_batch and not status_throttle.is_due(state.unreported, key, now)
        outcome = plan.reconcile(observed, world, now, requests=requests, keys=keys, is_large_batch=may_wait)
        writes, entry.again = outcome.writes, outcome.again or bool(outcome.waiting)
        entry.remaining_actions = pending_actions.after(waiting, requests[: len(requests) - len(outcome.waiting)])
    except Exception:
        log.exception("job %s cannot be planned; it waits until something about it changes", observed.job.key)
        state.unreported.pop(key, None)
        return []
    if outcome.refused:
        state.refused[observed.job.key] = observed.job.namespace
    else:
        state.refused.pop(observed.job.key, None)
    if outcome.is_unreported:
        status_throttle.add(state.unreported, key, now)
    else:
        state.unreported.pop(key, None)
    observed.in_step = outcome.in_step
    # New pods will be Pending, perhaps for longer than a policy allows.
    makes_pods = any(isinstance(write, Create) and write.resource == PODS for write in writes)
    entry.again |= makes_pods and JobEvent.POD_PENDING in state.answered.get(key, ())
    entry.pending_until = overdue.next
    return writes


def _group(state: JobsState, entry: JobEntry, writes: Sequence[Write], now: int) -> Group:
    """Return the group of a job's writes, which also replaces its PENDING_ACTION timer if they carry out actions in it."""
    key = entry.observed.job.key
    within_quota = any(isinstance(write, Create) and write.resource == PODS for write in writes)
    if entry.remaining_actions == state.pending_actions.get(key, ()):
        return Group(writes, key, within_quota)
    timers = pending_actions.timers(key, entry.remaining_actions, now)
    return Group(writes, key, within_quota, timers, [(PENDING_ACTION, key)])


def _settle_writes(state: JobsState, now: int) -> list[str]:
    """Forget the writes that the log has shown; return the keys of jobs whose writes did not appear in time."""
    for key, sent in list(state.sent.items()):
        if sent.is_seen(state.position):
            del state.sent[key]
            entry = state.entries.get(key)
            if entry is not None and entry.again:
                state.touched[key] = None
    if state.ahead:
        state.ahead = {key: at for key, at in state.ahead.items() if at > state.position}
    lost = [key for key, sent in state.sent.items() if sent.expires <= now]
    for key in lost:
        log.warning("what was written for job %s has not been seen in the log; the job is read anew", key)
    return lost


def _apply_job(state: JobsState, change: Change) -> None:
    key = change.key
    if not state.holds(key) or state.has_read(key, change.revision):
        return
    if change.verb == "DELETED":
        state.forget(key)
        state.set_pending_actions(key, ())
        if key in state.commands:
            state.touched[key] = None
        return
    job = facts.read_job(late_defaults.filled_in(change.body))
    entry = state.entries.get(key)
    if entry is None or entry.observed.job.uid != job.uid:
        if not job.is_finished:
            state.forget(key)
            state.add(JobEntry(ObservedJob(job)))
            state.touched[key] = None
        return
    before, entry.observed.job = entry.observed.job, job
    has_new_spec = job.generation != before.generation
    entry.observed.in_step &= not has_new_spec
    if has_new_spec or not state.has_sent(key, change.revision):
        state.touched[key] = None


def _apply_pod(state: JobsState, change: Change) -> None:
    key, pod = facts.read_pod(change.body)
    if state.refused and (change.verb == "DELETED" or pod.has_ended):
        state.plan_refused(change.namespace)
    if change.verb != "ADDED":
        _follow_elsewhere(state, change, pod, key)
    entry = state.entries.get(key)
    if entry is None or state.has_read(key, change.revision):
        return
    pods = entry.observed.pods
    if change.verb == "DELETED":
        pods.pop(change.name, None)
        state.touched[key] = None
        return
    before, pods[change.name] = pods.get(change.name), pod
    is_change = before is None or not pod.counts_like(before)
    if is_change and not state.has_sent(key, change.revision):
        state.touched[key] = None


def _follow_elsewhere(state: JobsState, change: Change, pod: PodFact, own: str) -> None:
    """Update a pod in other jobs that know it: one that it was taken from, or one that waits for its name.

    Those jobs are found by the pod's name, which begins with the job's.
    """
    name = change.name
    while (end := name.rfind("-")) > 0:
        name = name[:end]
        key = f"{change.namespace}/{name}"
        entry = state.entries.get(key)
        if entry is None or key == own or state.has_read(key, change.revision):
            continue
        pods = entry.observed.pods
        if change.name not in pods or (change.verb != "DELETED" and pods[change.name].owner == pod.owner):
            continue
        if change.verb == "DELETED":
            del pods[change.name]
        else:
            pods[change.name] = pod  # another job's pod that only occupies the name
        state.touched[key] = None


def _apply_group(state: JobsState, change: Change) -> None:
    group = facts.read_group(change.body)
    key = group.job
    entry = state.entries.get(key)
    if entry is None or change.name != entry.observed.job.group_name or state.has_read(key, change.revision):
        return
    observed, is_own = entry.observed, state.has_sent(key, change.revision)
    if change.verb == "DELETED":
        observed.group = None
        # An unfinished job needs a new group.
        is_change = not (is_own and observed.job.is_finished)
    else:
        before, observed.group = observed.group, group
        if key in state.unreported:
            state.unreported[key] = state.unreported[key]._replace(group_revision=change.revision)
        observed.in_step &= is_own or (before is not None and before.spec == group.spec)
        is_change = not is_own and (before is None or not group.means_like(before))
    if is_change:
        state.touched[key] = None


def _apply_plugin_object(state: JobsState, change: Change) -> None:
    """Note an object that has the name of a plugin object, whoever owns it."""
    id_ = change.resource, change.name
    for name in plugin_objects.jobs_named(*id_):
        key = f"{change.namespace}/{name}"
        entry = state.entries.get(key)
        if entry is None or state.has_read(key, change.revision):
            continue
        observed = entry.observed
        product = plugin_objects.ids(observed.job).get(id_)
        fact = None if product is None or change.verb == "DELETED" else plugin_objects.read(product, change.body)
        if observed.plugin_objects.get(id_) == fact:
            continue
        if fact is None:
            del observed.plugin_objects[id_]
        else:
            observed.plugin_objects[id_] = fact
        if not state.has_sent(key, change.revision):
            observed.in_step = False
            state.touched[key] = None


def _apply_command(state: JobsState, change: Change) -> None:
    """Note a Command to a job of this shard until it is gone."""
    command = commands.read(change.body, change.revision)
    key = command.target_key
    if command.target != JOBS.id or not state.holds(key):
        return
    waiting = state.commands.setdefault(key, {})
    if change.verb == "DELETED" or command.deleting:
        waiting.pop(command.name, None)
    else:
        waiting[command.name] = command
    if not waiting:
        del state.commands[key]
    state.touched[key] = None


def _apply_claim(state: JobsState, change: Change) -> None:
    names = state.claims.setdefault(change.namespace, set())
    (names.discard if change.verb == "DELETED" else names.add)(change.name)


def _apply_bound(state: JobsState, change: Change) -> None:
    """Plan refused jobs again when a limit range or a quota's bounds change; a quota's status is ignored."""
    is_quota = change.resource == RESOURCE_QUOTAS.id
    bounds: dict[str, dict[str, Any]] = state.quotas if is_quota else state.ranges
    of_namespace = bounds.setdefault(change.namespace, {})
    if change.verb == "DELETED":
        of_namespace.pop(change.name, None)
    elif of_namespace.get(change.name) != (bound := quotas.read(change.object) if is_quota else change.object):
        of_namespace[change.name] = bound
    else:
        return
    if not of_namespace:
        del bounds[change.namespace]
    state.plan_refused(change.namespace)


_APPLY: dict[str, Callable[[JobsState, Change], None]] = {
    JOBS.id: _apply_job,
    COMMANDS.id: _apply_command,
    PODS.id: _apply_pod,
    POD_GROUPS.id: _apply_group,
    **dict.fromkeys(plugin_objects.RESOURCES, _apply_plugin_object),
    CLAIMS.id: _apply_claim,
    LIMIT_RANGES.id: _apply_bound,
    RESOURCE_QUOTAS.id: _apply_bound,
    PRIORITY_CLASSES.id: lambda state, change: state.priorities.put(
        change.name, None if change.verb == "DELETED" else change.body
    ),
}


def _find_targets(state: JobsState) -> list[Group]:
    """Read the finished jobs that Commands are for; return groups that delete the Commands to jobs that are gone."""
    unknown = [key for key in state.commands if key in state.touched and key not in state.entries]
    if unknown:
        read_beside_log(state, unknown)
    groups = []
    for key in [key for key in state.commands if key in state.touched]:
        entry = state.entries.get(key)
        dropped = [
            command
            for command in state.commands[key].values()
            if entry is None or not command.is_for(entry.observed.job.uid)
        ]
        for command in dropped:
            log.info("command %s is for a job that is gone: %s", command.key, command.target_name)
            del state.commands[key][command.name]
            groups.append(Group([Delete(COMMANDS, command.namespace, command.name, uid=command.uid)]))
        if not state.commands[key]:
            del state.commands[key]
    return groups


def _is_over(observed: ObservedJob) -> bool:
    """Tell whether nothing is left to do for a job: it is finished, its pods ended, its other objects are gone."""
    job = observed.job
    if not job.is_finished or observed.group is not None or job.status.get("terminating"):
        return False
    if any(product.owner == job.uid for product in observed.plugin_objects.values()):
        return False
    return not any(pod.owner == job.uid and (pod.deleting or not pod.has_ended) for pod in observed.pods.values())


def _finishes(writes: Sequence[Write]) -> bool:
    """Tell whether these writes finish a job: a timer then keeps the rest of the work if this process dies.

    Its pods may still have to end, and its TTL timer is set after that.
    """
    statuses = (each.object["status"] for each in writes if isinstance(each, Update) and each.resource == JOBS)
    return any(phase_of((status.get("state") or {}).get("phase", "")) in FINISHED for status in statuses)


def _deadline(job: JobFact) -> list[Timer]:
    """Return the timer that deletes a finished job (reference: volcano-job §6.2).

    Its key holds the job's uid: with two timers of one key the sooner stays, so a later job of the name needs its own.
    """
    since = (job.status.get("state") or {}).get("lastTransitionTime")
    if job.ttl_s is None or not since or job.deleting:
        return []
    return [Timer(TTL, f"{job.key}/{job.uid}", meta.parse_time(since) + job.ttl_s * 1000, {"uid": job.uid})]


def _expiry(timer: Timer) -> Group:
    """Return the group that deletes a job and what it made; it has no key, since a job that is gone already needs no retry."""
    namespace, name, *_ = timer.key.split("/")
    return Group([Delete(JOBS, namespace, name, uid=timer.payload["uid"], propagation="Foreground")])
