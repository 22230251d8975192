"""What the job controller remembers: the unfinished jobs of a shard, and what their pods depend on."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from cluster.rules.quota_accounts import Account
from cluster.rules.quotas import Quota
from cluster.runtime import registry
from cluster.store import Stored, store
from jobs.controller import facts, late_defaults, plan, plugin_objects
from jobs.controller.expectations import PendingWrites
from jobs.controller.facts import JobFact
from jobs.controller.observed import ObservedJob, World
from jobs.controller.pending_actions import PendingAction
from jobs.controller.status_throttle import UnreportedJob
from kube.kinds.batch import JobEvent
from kube.meta import Object
from kube.priorities import PriorityClasses
from kube.resources import JOBS, POD_GROUPS, PODS
from kube.volcano.commands import CommandFact

CHUNK = 500  # names in one query
log = logging.getLogger(__name__)


@dataclass(slots=True)
class JobEntry:
    """A job in memory."""

    observed: ObservedJob
    again: bool = False  # to be planned once its last writes have come back
    pending_until: int | None = None  # when the first of its pods will have been Pending for too long
    remaining_actions: tuple[PendingAction, ...] = ()  # what is still pending once its last writes are carried out


@dataclass(slots=True)
class JobsState:
    """The unfinished jobs of one shard, and what all pods depend on."""

    shard: int
    shards: int
    entries: dict[str, JobEntry] = field(default_factory=dict)
    priorities: PriorityClasses = field(default_factory=PriorityClasses)
    claims: dict[str, set[str]] = field(default_factory=dict)
    # Key of a job → Commands to it by their names, in their order.
    commands: dict[str, dict[str, CommandFact]] = field(default_factory=dict)
    ranges: dict[str, dict[str, Object]] = field(default_factory=dict)  # namespace → name → limit range
    quotas: dict[str, dict[str, Quota]] = field(default_factory=dict)  # namespace → name → quota
    refused: dict[str, str] = field(default_factory=dict)  # key of a job whose pods these two refused → namespace
    unreported: dict[str, UnreportedJob] = field(default_factory=dict)  # by key: jobs without their first status
    touched: dict[str, None] = field(default_factory=dict)  # keys to plan, in the order of what happened
    # Key of a job with policies → the events they answer.
    answered: dict[str, frozenset[JobEvent]] = field(default_factory=dict)
    answering: Counter[JobEvent] = field(default_factory=Counter)  # event → how many jobs answer it; see `heeded`
    position: int = 0  # the revision up to which the log has been applied
    sent: dict[str, PendingWrites] = field(default_factory=dict)  # key of a job → its last writes, until they are seen
    # Key of a job → actions that policies asked for and that are not carried out yet.
    pending_actions: dict[str, tuple[PendingAction, ...]] = field(default_factory=dict)
    is_behind: bool = False  # changes have yet to be delivered; see Consumer.lags
    # Key of a job that was read from the store → the revision of that read, until `position` reaches it.
    ahead: dict[str, int] = field(default_factory=dict)

    def has_read(self, key: str, revision: int) -> bool:
        """Tell whether the state of a job and its objects already includes the change with this revision."""
        return revision <= self.ahead.get(key, 0)

    def has_sent(self, key: str, revision: int) -> bool:
        """Tell whether a change is one that this controller wrote for a job."""
        return key in self.sent and self.sent[key].has(revision)

    def holds(self, key: str) -> bool:
        """Tell whether a job belongs to this shard."""
        return registry.shard_of(key, self.shards) == self.shard

    def world(self) -> World:
        """Return what pods depend on; the quota accounts are empty: no object has been counted into them."""
        ranges = {namespace: list(objects.values()) for namespace, objects in self.ranges.items()}
        accounts = {namespace: Account(list(objects.values())) for namespace, objects in self.quotas.items()}
        return World(self.priorities, self.claims, ranges, accounts)

    def add(self, entry: JobEntry) -> None:
        """Remember a job."""
        job = entry.observed.job
        self.entries[job.key] = entry
        self._note_answered(job.key, job.answered)

    def forget(self, key: str) -> None:
        """Drop what is known of a job, except its Commands and pending actions."""
        self._note_answered(key, frozenset())
        for by_key in (self.entries, self.sent, self.refused, self.unreported):
            by_key.pop(key, None)

    def _note_answered(self, key: str, events: frozenset[JobEvent]) -> None:
        """Note which events a job's policies answer; the counter saves going through all jobs in each step."""
        before = self.answered.pop(key, frozenset())
        if events:
            self.answered[key] = events
        if events != before:
            self.answering.update(events)
            self.answering.subtract(before)

    @property
    def heeded(self) -> set[JobEvent]:
        """The events that a policy of any job answers."""
        return {event for event, jobs in self.answering.items() if jobs}

    def set_pending_actions(self, key: str, wanted: tuple[PendingAction, ...]) -> None:
        """Replace the pending actions of a job."""
        if wanted:
            self.pending_actions[key] = wanted
        else:
            self.pending_actions.pop(key, None)

    def plan_refused(self, namespace: str) -> None:
        """Touch the jobs of a namespace whose pods its limit ranges or quotas refused."""
        for key, bounded_by in self.refused.items():
            if bounded_by == namespace:
                self.touched[key] = None


def readable(jobs: Iterable[Stored]) -> Iterator[JobFact]:
    """Yield the stored jobs that can be read; the others are logged as errors."""
    for stored in jobs:
        try:
            yield facts.read_job(late_defaults.filled_in(stored.body))
        except msgspec.ValidationError as error:
            log.error("ignored job %s, which cannot be read: %s", stored.key, error)


def remember(state: JobsState, jobs: Iterable[Stored]) -> None:
    """Put stored jobs into the state, with their pods, pod groups and plugin objects."""
    entries = {job.uid: JobEntry(ObservedJob(job)) for job in readable(jobs)}
    uids = list(entries)
    for start in range(0, len(uids), CHUNK):
        owners = uids[start : start + CHUNK]
        for stored in store.find(PODS, owner=owners):
            _, pod = facts.read_pod(stored.body)
            entries[pod.owner].observed.pods[pod.name] = pod
        for stored in store.find(POD_GROUPS, owner=owners):
            group = facts.read_group(stored.body)
            observed = entries[group.owner].observed
            if group.name == observed.job.group_name:
                observed.group = group
    _remember_plugin_objects([entry.observed for entry in entries.values()])
    for entry in entries.values():
        state.add(entry)


def _remember_plugin_objects(jobs: Sequence[ObservedJob]) -> None:
    """Note the stored objects that have the names of jobs' plugin objects; two jobs may want the same name."""
    stored_objects: dict[plugin_objects.Id, Stored] = {}
    for kind, resource in plugin_objects.RESOURCES.items():
        names = {
            f"{observed.job.namespace}/{name}": None
            for observed in jobs
            for id_, name in plugin_objects.ids(observed.job)
            if id_ == kind
        }
        stored_objects |= {(kind, key): stored for key, stored in store.by_keys(resource, list(names)).items()}
    for observed in jobs:
        for (kind, name), product in plugin_objects.ids(observed.job).items():
            if stored := stored_objects.get((kind, f"{observed.job.namespace}/{name}")):
                observed.plugin_objects[kind, name] = plugin_objects.read(product, stored.body)


def refresh(state: JobsState, keys: Sequence[str]) -> None:
    """Read jobs again whose state lacks something that the store holds, and touch them."""
    if not keys:
        return
    for key in keys:
        state.forget(key)
        state.touched[key] = None
    with store.reading():
        for key in read_beside_log(state, keys):
            # Other owners' pods, such as those of an earlier job of the same name, may occupy the missing pods' names.
            observed = state.entries[key].observed
            job, pods = observed.job, observed.pods
            names = [f"{job.name}-{task.name}-{index}" for task in job.tasks for index in range(task.replicas)]
            missing = [f"{job.namespace}/{name}" for name in names if name not in pods]
            for stored in store.by_keys(PODS, missing[: 2 * plan.ROOM]).values():
                _, pods[stored.name] = facts.read_pod(stored.body)


def read_beside_log(state: JobsState, keys: Sequence[str]) -> list[str]:
    """Read jobs at the store's newest revision; return the keys of those that could be read.

    Later deliveries of changes up to that revision are not applied to them.
    """
    with store.reading() as revision:
        stored_jobs = store.by_keys(JOBS, keys)
        remember(state, stored_jobs.values())
    state.ahead |= dict.fromkeys(keys, revision)
    return [key for key in stored_jobs if key in state.entries]
