"""The job controller: keeps every job's pods, pod group and status as its spec says, and deletes it when its TTL is over.

Reads jobs, pods, pod groups, Commands, and what pods depend on beside their
job: claims, priority classes, limit ranges and quotas. It remembers
the unfinished jobs as compact facts (`jobs.controller.facts`), and asks `jobs.controller.plan` about
each job that something happened to. A job whose last writes have not come
back through the log yet is left alone until they have (`jobs.controller.expectations`).

Commands to one job are carried out one after the other, in the order in which
they were stored; each is deleted together with what it does.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

import msgspec

from cluster.api import quota_room
from cluster.rules import quotas
from cluster.rules.quota_accounts import Account
from cluster.runtime import registry
from cluster.runtime.consumer import RETRY, Consumer, Plan, Timer
from cluster.store import Change, Create, Delete, Group, Stored, Update, Write, store
from jobs.controller import commands as of_jobs
from jobs.controller import facts, plan, pod_events
from jobs.controller.expectations import Sent
from jobs.controller.plan import Known, World
from jobs.controller.pod_events import Happening
from jobs.lifecycle.phases import FINISHED, phase_of
from kube import commands, events, meta
from kube.errors import ApiError
from kube.kinds.batch import JobPhase
from kube.kinds.pod import UNENDED
from kube.resources import (
    CLAIMS,
    COMMANDS,
    EVENTS,
    JOBS,
    LIMIT_RANGES,
    POD_GROUPS,
    PODS,
    PRIORITY_CLASSES,
    RESOURCE_QUOTAS,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from cluster.rules.quotas import Quota
    from jobs.controller.facts import JobFact, PodFact
    from kube.commands import CommandFact
    from kube.kinds.batch import JobEvent
    from kube.meta import Object

T = TypeVar("T")
NAME = "jobs"
ROOM = 3000  # writes of one transaction; what is left follows in the next
CHUNK = 500  # names in one query
UNFINISHED = ("", *(phase.value for phase in JobPhase if phase not in FINISHED))
# Kinds of timers: the end of a finished job; what is left to do for one that has just finished; writes that should have
# come back; more to plan than one transaction takes.
TTL, LEFT, LOST, MORE = "ttl", "left", "lost", "more"
LEFT_MS = 60_000  # after which a finished job is looked at again, unless nothing is left to do for it
log = logging.getLogger(__name__)


@dataclass(slots=True)
class JobEntry:
    """A job in memory."""

    known: Known
    again: bool = False  # to be planned once its last writes have come back


@dataclass(slots=True)
class JobsState:
    """The unfinished jobs of one shard, and what all pods depend on."""

    shard: int
    shards: int
    entries: dict[str, JobEntry] = field(default_factory=dict)
    priorities: dict[str, int] = field(default_factory=dict)
    claims: dict[str, set[str]] = field(default_factory=dict)
    commands: dict[str, dict[str, CommandFact]] = field(
        default_factory=dict
    )  # key of a job → Commands to it by their names, in their order
    ranges: dict[str, dict[str, Object]] = field(default_factory=dict)  # namespace → name → limit range
    quotas: dict[str, dict[str, Quota]] = field(default_factory=dict)  # namespace → name → quota
    refused: dict[str, str] = field(
        default_factory=dict
    )  # key of a job that lacks pods for these → namespace
    touched: dict[str, None] = field(default_factory=dict)  # keys to plan, in the order of what happened
    position: int = 0  # the revision up to which the log is in this state
    sent: dict[str, Sent] = field(default_factory=dict)  # key of a job → its last writes, until they are seen
    ahead: dict[str, int] = field(
        default_factory=dict
    )  # key of a job that was read beside the log → the revision at which, until the position gets there

    def has_read(self, key: str, revision: int) -> bool:
        """Say whether a change of a job, or of what was made for it, was in what was read of the job already."""
        return revision <= self.ahead.get(key, 0)

    def has_sent(self, key: str, revision: int) -> bool:
        """Say whether a change is what this controller wrote for a job."""
        return key in self.sent and self.sent[key].has(revision)

    def holds(self, key: str) -> bool:
        """Say whether a job belongs to this shard."""
        return registry.shard_of(key, self.shards) == self.shard

    def world(self) -> World:
        """Return what pods depend on; the accounts have counted nothing."""
        ranges = {place: list(found.values()) for place, found in self.ranges.items()}
        accounts = {place: Account(list(found.values())) for place, found in self.quotas.items()}
        return World(self.priorities, self.claims, ranges, accounts)

    def forget(self, key: str) -> None:
        """Drop what is known of a job."""
        for known in (self.entries, self.sent, self.refused):
            known.pop(key, None)

    def look_again(self, namespace: str) -> None:
        """Plan the jobs of a namespace that lack pods for its bounds."""
        for key, place in self.refused.items():
            if place == namespace:
                self.touched[key] = None


class JobConsumer(Consumer[JobsState]):
    """Reconciles Volcano Jobs; one of `shards` by the job's namespace and name."""

    name = NAME

    def load(self, shard: int, revision: int) -> JobsState:
        """Read the unfinished jobs, and finished ones that still have pods to end."""
        state = JobsState(shard, registry.get(NAME).shards, position=revision)
        for stored in sorted(store.find(COMMANDS), key=lambda stored: stored.revision):
            try:
                _note_command(state, stored.body, stored.revision)
            except msgspec.ValidationError as error:
                log.error("ignored command %s, which cannot be read: %s", stored.key, error)
        for stored in store.find(PRIORITY_CLASSES):
            _note_priority(state, stored.body)
        for stored in store.find(CLAIMS):
            state.claims.setdefault(stored.namespace, set()).add(stored.name)
        for stored in store.find(LIMIT_RANGES):
            state.ranges.setdefault(stored.namespace, {})[stored.name] = stored.object
        for stored in store.find(RESOURCE_QUOTAS):
            state.quotas.setdefault(stored.namespace, {})[stored.name] = quotas.read(stored.object)
        ending = {facts.job_key_of_pod(stored.body) for stored in store.find(PODS, phase=UNENDED)} - {""}
        jobs = {stored.key: stored for stored in store.find(JOBS, phase=UNFINISHED)}
        jobs |= store.by_keys(JOBS, sorted(ending - jobs.keys()))
        _remember(state, [stored for key, stored in jobs.items() if state.holds(key)])
        state.touched = dict.fromkeys([*state.entries, *state.commands])
        return state

    def apply(self, state: JobsState, change: Change) -> None:
        """Note one change; what it may lead to is planned later, once for all of a batch."""
        state.position = change.revision
        try:
            _APPLY[change.resource](state, change)
        except msgspec.ValidationError as error:
            log.error("ignored %s %s, which cannot be read: %s", change.resource, change.key, error)

    def plan(self, state: JobsState, changes: Sequence[Change], timers: Sequence[Timer], now: int) -> Plan:
        """Plan every job that something happened to, as far as one transaction should reach."""
        groups = [_expiry(timer) for timer in timers if timer.kind == TTL]
        lost = _look_back(state, now)
        failed = [timer.key for timer in timers if timer.kind == RETRY and state.holds(timer.key)]
        left = {timer.key: None for timer in timers if timer.kind == LEFT and state.holds(timer.key)}
        _refresh(state, [*lost, *failed, *(key for key in left if key not in state.entries)])
        state.touched |= left
        groups += _look_for_targets(state)
        groups += _tell_of_pods(state, changes, now)
        deadlines: list[Timer] = []
        over: list[tuple[str, str]] = []
        world = state.world()
        room = ROOM
        while state.touched and room > 0:
            key = next(iter(state.touched))
            del state.touched[key]
            entry = state.entries.get(key)
            if entry is None:
                continue
            if key in state.sent:
                entry.again = True
            elif _is_over(entry.known) and key not in state.commands:
                del state.entries[key]
                deadlines += _deadline(entry.known.job)
                over.append((LEFT, key))
                left.pop(key, None)
            elif writes := _plan_one(state, entry, world, now):
                if _finishes(writes):
                    left[key] = None
                groups.append(Group(writes, key, within_quota=_makes_pods(writes)))
                room -= len(writes)
                state.sent[key] = Sent(now)
        more = [Timer(MORE, "", now)] if state.touched else []
        if state.sent:
            more.append(Timer(LOST, "", min(sent.expires for sent in state.sent.values())))
        looks = [Timer(LEFT, key, now + LEFT_MS) for key in left if key in state.entries]
        return Plan(groups, [*more, *deadlines, *looks], over)

    def key_of(self, change: Change) -> str:
        """Return the key of the job that a change is about; none for what many jobs depend on."""
        try:
            return _KEY[change.resource](change) if change.resource in _KEY else ""
        except msgspec.ValidationError:
            return ""  # whoever hears of it cannot read it either

    def committed(
        self, state: JobsState, groups: Sequence[Group], outcomes: Sequence[list[Stored] | ApiError]
    ) -> None:
        """Note by which revisions the writes for each job will be known."""
        for group, outcome in zip(groups, outcomes, strict=True):
            sent = state.sent.get(group.key)
            if sent is None:
                continue
            if isinstance(outcome, ApiError):
                sent.failed = True
            else:
                sent.revisions = frozenset(row.revision for row in outcome if row.resource in _APPLY)


def _plan_one(state: JobsState, entry: JobEntry, world: World, now: int) -> list[Write]:
    """Plan one job; one that cannot be planned is left as it is, and never stops the others."""
    known = entry.known
    requests = [of_jobs.request(each, known.job) for each in state.commands.get(known.job.key, {}).values()]
    account = world.accounts.get(known.job.namespace)
    if account is not None and plan.lacks_pods(known):
        quota_room.count_into(account, PODS, known.job.namespace)
    try:
        outcome = plan.reconcile(known, world, now, requests=requests)
        writes, entry.again = outcome.writes, outcome.again or bool(outcome.waiting)
    except Exception:
        log.exception("job %s cannot be planned; it waits until something about it changes", known.job.key)
        return []
    if outcome.refused:
        state.refused[known.job.key] = known.job.namespace
    else:
        state.refused.pop(known.job.key, None)
    known.group_in_step = known.group is not None and not _touches_group(writes)
    return writes


def _makes_pods(writes: Sequence[Write]) -> bool:
    return any(isinstance(write, Create) and write.resource == PODS for write in writes)


def _look_back(state: JobsState, now: int) -> list[str]:
    """Forget the writes that the log has shown; return the keys of jobs whose writes never came."""
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
        if key in state.commands:
            state.touched[key] = None
        return
    job = facts.read_job(change.body)
    entry = state.entries.get(key)
    if entry is None or entry.known.job.uid != job.uid:
        if not job.is_finished:
            state.forget(key)
            state.entries[key] = JobEntry(Known(job))
            state.touched[key] = None
        return
    before, entry.known.job = entry.known.job, job
    has_new_spec = job.generation != before.generation
    entry.known.group_in_step &= not has_new_spec
    if has_new_spec or not state.has_sent(key, change.revision):
        state.touched[key] = None


def _apply_pod(state: JobsState, change: Change) -> None:
    key, pod = facts.read_pod(change.body)
    if state.refused and (change.verb == "DELETED" or pod.has_ended):
        state.look_again(change.namespace)
    if change.verb != "ADDED":
        _follow_elsewhere(state, change, pod, key)
    entry = state.entries.get(key)
    if entry is None or state.has_read(key, change.revision):
        return
    pods = entry.known.pods
    if change.verb == "DELETED":
        pods.pop(change.name, None)
        state.touched[key] = None
        return
    before, pods[change.name] = pods.get(change.name), pod
    is_news = before is None or not pod.counts_like(before)
    if is_news and not state.has_sent(key, change.revision):
        state.touched[key] = None


def _follow_elsewhere(state: JobsState, change: Change, pod: PodFact, own: str) -> None:
    """Follow a pod for other jobs than its own that know it: one that it was taken from, or that waits for its name.

    A job's pods have names that begin with the job's.
    """
    name = change.name
    while (end := name.rfind("-")) > 0:
        name = name[:end]
        key = f"{change.namespace}/{name}"
        entry = state.entries.get(key)
        if entry is None or key == own or state.has_read(key, change.revision):
            continue
        pods = entry.known.pods
        if change.name not in pods or (change.verb != "DELETED" and pods[change.name].owner == pod.owner):
            continue
        if change.verb == "DELETED":
            del pods[change.name]
        else:
            pods[change.name] = pod  # it only holds its name
        state.touched[key] = None


def _apply_group(state: JobsState, change: Change) -> None:
    key = facts.job_key_of_group(change.body)
    entry = state.entries.get(key)
    if entry is None or change.name != entry.known.job.group_name or state.has_read(key, change.revision):
        return
    known, is_expected = entry.known, state.has_sent(key, change.revision)
    if change.verb == "DELETED":
        known.group = None
        # A job that is not over needs another one.
        is_expected &= known.job.is_finished
    else:
        before, known.group = known.group, facts.read_group(change.body)
        known.group_in_step &= before is not None and before.spec == known.group.spec
    if not is_expected:
        state.touched[key] = None


def _apply_claim(state: JobsState, change: Change) -> None:
    names = state.claims.setdefault(change.namespace, set())
    if change.verb == "DELETED":
        names.discard(change.name)
    else:
        names.add(change.name)


def _apply_range(state: JobsState, change: Change) -> None:
    _keep(state.ranges, change, change.object)
    state.look_again(change.namespace)


def _apply_quota(state: JobsState, change: Change) -> None:
    """Look again when what a quota bounds changes; what its status says is nothing new."""
    quota = quotas.read(change.object)
    if change.verb == "DELETED" or state.quotas.get(change.namespace, {}).get(change.name) != quota:
        _keep(state.quotas, change, quota)
        state.look_again(change.namespace)


def _keep(known: dict[str, dict[str, T]], change: Change, value: T) -> None:
    found = known.setdefault(change.namespace, {})
    if change.verb == "DELETED":
        found.pop(change.name, None)
    else:
        found[change.name] = value
    if not found:
        del known[change.namespace]


def _apply_priority(state: JobsState, change: Change) -> None:
    if change.verb == "DELETED":
        state.priorities.pop(change.name, None)
    else:
        _note_priority(state, change.body)


def _apply_command(state: JobsState, change: Change) -> None:
    _note_command(state, change.body, change.revision, is_gone=change.verb == "DELETED")


_APPLY = {
    JOBS.id: _apply_job,
    COMMANDS.id: _apply_command,
    PODS.id: _apply_pod,
    POD_GROUPS.id: _apply_group,
    CLAIMS.id: _apply_claim,
    LIMIT_RANGES.id: _apply_range,
    RESOURCE_QUOTAS.id: _apply_quota,
    PRIORITY_CLASSES.id: _apply_priority,
}


_KEY: dict[str, Callable[[Change], str]] = {
    JOBS.id: lambda change: change.key,
    PODS.id: lambda change: facts.job_key_of_pod(change.body),
    POD_GROUPS.id: lambda change: facts.job_key_of_group(change.body),
}


def _note_command(state: JobsState, body: bytes, revision: int, *, is_gone: bool = False) -> None:
    """Note a Command to a job of this shard until it is gone."""
    command = commands.read(body, revision)
    key = command.target_key
    if command.target != JOBS.id or not state.holds(key):
        return
    waiting = state.commands.setdefault(key, {})
    if is_gone or command.deleting:
        waiting.pop(command.name, None)
    else:
        waiting[command.name] = command
    if not waiting:
        del state.commands[key]
    state.touched[key] = None


def _look_for_targets(state: JobsState) -> list[Group]:
    """Remember the finished jobs that Commands are for; return the end of Commands to jobs that are gone."""
    unknown = [key for key in state.commands if key in state.touched and key not in state.entries]
    if unknown:
        _read(state, unknown)
    groups = []
    for key in [key for key in state.commands if key in state.touched]:
        entry = state.entries.get(key)
        dropped = [
            command
            for command in state.commands[key].values()
            if entry is None or not command.is_for(entry.known.job.uid)
        ]
        for command in dropped:
            log.info("command %s is for a job that is gone: %s", command.key, command.target_name)
            del state.commands[key][command.name]
            groups.append(Group([Delete(COMMANDS, command.namespace, command.name, uid=command.uid)]))
        if not state.commands[key]:
            del state.commands[key]
    return groups


def _tell_of_pods(state: JobsState, changes: Sequence[Change], now: int) -> list[Group]:
    """Tell once for each job, and for each kind of it, what happened to pods in these changes.

    The events are groups of their own: they are told also while the job waits
    for its last writes, and when its plan cannot be written.
    """
    happened = _happenings(state, changes)
    keys = [key for key in happened if key not in state.entries]
    jobs = {job.key: job for job in _readable(store.by_keys(JOBS, keys).values())}
    jobs |= {key: state.entries[key].known.job for key in happened if key in state.entries}
    groups = []
    for key, job in jobs.items():
        by_event: dict[JobEvent, list[PodFact]] = {}
        for happening in happened[key]:
            if pod_events.concerns(happening, job):
                by_event.setdefault(happening.event, []).append(happening.pod)
        for event, pods in by_event.items():
            told = plan.event(job, event, pod_events.told(event, pods), now, kind=events.WARNING)
            groups.append(Group([Create(EVENTS, told)]))
    return groups


def _happenings(state: JobsState, changes: Sequence[Change]) -> dict[str, list[Happening]]:
    """Return what happened to pods of this shard's jobs, by the keys of the jobs."""
    found: dict[str, list[Happening]] = {}
    for change in changes:
        is_gone = change.verb == "DELETED"
        if change.resource != PODS.id or not pod_events.is_worth_a_look(change.body, is_gone=is_gone):
            continue
        try:
            key, pod = facts.read_pod(change.body)
            before = None if is_gone or change.previous is None else facts.read_pod(change.previous)[1]
        except msgspec.ValidationError:
            continue  # `apply` has said so
        event = pod_events.happened(before, pod, is_gone=is_gone)
        if key and event is not None and state.holds(key):
            found.setdefault(key, []).append(Happening(event, pod))
    return found


def _note_priority(state: JobsState, body: bytes) -> None:
    name, value, is_default = facts.read_priority(body)
    state.priorities[name] = value
    if is_default:
        state.priorities[""] = value


def _readable(jobs: Iterable[Stored]) -> Iterator[JobFact]:
    """Yield what can be read of stored jobs; of the others the log tells."""
    for stored in jobs:
        try:
            yield facts.read_job(stored.body)
        except msgspec.ValidationError as error:
            log.error("ignored job %s, which cannot be read: %s", stored.key, error)


def _remember(state: JobsState, jobs: Iterable[Stored]) -> None:
    """Put stored jobs into the state, with their pods and pod groups."""
    entries = {job.uid: JobEntry(Known(job)) for job in _readable(jobs)}
    uids = list(entries)
    for start in range(0, len(uids), CHUNK):
        owners = uids[start : start + CHUNK]
        for stored in store.find(PODS, owner=owners):
            _, pod = facts.read_pod(stored.body)
            entries[pod.owner].known.pods[pod.name] = pod
        for stored in store.find(POD_GROUPS, owner=owners):
            group = facts.read_group(stored.body)
            known = entries[group.owner].known
            if group.name == known.job.group_name:
                known.group = group
    state.entries |= {entry.known.job.key: entry for entry in entries.values()}


def _refresh(state: JobsState, keys: Sequence[str]) -> None:
    """Read jobs again for which the store holds something that this state does not show."""
    if not keys:
        return
    for key in keys:
        state.forget(key)
        state.touched[key] = None
    with store.reading():
        for key in _read(state, keys):
            _note_strangers(state.entries[key].known)


def _read(state: JobsState, keys: Sequence[str]) -> list[str]:
    """Read jobs beside the log; return which could be read.

    What the log still has to tell of them up to that moment is not applied any more.
    """
    with store.reading() as revision:
        found = store.by_keys(JOBS, keys)
        _remember(state, found.values())
    state.ahead |= dict.fromkeys(keys, revision)
    return [key for key in found if key in state.entries]


def _note_strangers(known: Known) -> None:
    """Note pods of somebody else, such as an earlier job of the same name, that hold the names of missing ones."""
    job = known.job
    names = [f"{job.name}-{task.name}-{index}" for task in job.tasks for index in range(task.replicas)]
    missing = [f"{job.namespace}/{name}" for name in names if name not in known.pods]
    for stored in store.by_keys(PODS, missing[: 2 * plan.ROOM]).values():
        _, known.pods[stored.name] = facts.read_pod(stored.body)


def _touches_group(writes: Sequence[Write]) -> bool:
    return any(write.resource == POD_GROUPS for write in writes)


def _is_over(known: Known) -> bool:
    """Say whether nothing is left to be done for a job: it is finished, and so are its pods."""
    if not known.job.is_finished or known.group is not None or known.job.status.get("terminating"):
        return False
    return not any(
        pod.owner == known.job.uid and (pod.deleting or not pod.has_ended) for pod in known.pods.values()
    )


def _finishes(writes: Sequence[Write]) -> bool:
    """Say whether a job's status is written in which it is finished: what is left to do must outlive this process.

    Its pods may still have to end, and its time to live begins when they have.
    """
    statuses = (
        each.object["status"] for each in writes if isinstance(each, Update) and each.resource == JOBS
    )
    return any(phase_of((status.get("state") or {}).get("phase", "")) in FINISHED for status in statuses)


def _deadline(job: JobFact) -> list[Timer]:
    """Return the timer that deletes a finished job (reference: volcano-job §6.2).

    It is the job's own and not its name's: a later job of the name has later times, and the sooner of two timers stays.
    """
    since = (job.status.get("state") or {}).get("lastTransitionTime")
    if job.ttl_s is None or not since or job.deleting:
        return []
    return [Timer(TTL, f"{job.key}/{job.uid}", meta.parse_time(since) + job.ttl_s * 1000, {"uid": job.uid})]


def _expiry(timer: Timer) -> Group:
    """Delete a job and what it made; without a key, since a job that is gone already needs no second look."""
    namespace, name, *_ = timer.key.split("/")
    return Group([Delete(JOBS, namespace, name, uid=timer.payload["uid"], propagation="Foreground")])
