"""Consumers that make jobs for objects of one kind.

A change of an object, or of a job that was made for it, makes the object stale. It is then read again with all its
jobs, at one revision, and its rule is asked: nothing else is remembered, so nothing can be wrong after a crash. What is
read is never older than the changes, and includes everything that this consumer wrote.

Only a deleted job cannot be read again. The rule gets it from the change that deleted it, which shows how the job ended.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import msgspec

from cluster.consumers.consumer import RETRY, Consumer, Plan
from cluster.runtime import retries
from cluster.store import Change, Group, Stored, store
from cluster.store.types import read
from cluster.writes import Timer
from jobs.consumers.gather import Owned
from jobs.made.jobs import COMPONENT, OwnedJob
from kube.errors import ApiError
from kube.meta import Object
from kube.resources import JOBS, Resource

AGAIN, DUE = "again", "due"  # kinds of timers: a refused job is tried again; a scheduled time has come
AGAIN_MS = 10_000
CHUNK = 500  # objects in one query
log = logging.getLogger(__name__)
T = TypeVar("T")


class Family(NamedTuple):
    """An object and the jobs that were made for it, by name; `deleted` are those deleted since the last plan."""

    owner: Stored
    jobs: Mapping[str, OwnedJob]
    deleted: Mapping[str, OwnedJob]


@dataclass(slots=True)
class MakerState:
    """The objects to plan, and what their planning needs to remember."""

    stale: dict[str, None] = field(default_factory=dict)  # keys of objects
    # Key of an object → deleted jobs that its rule has not seen yet.
    deleted_jobs: dict[str, dict[str, OwnedJob]] = field(default_factory=dict)
    # Key of a job that occupies a name → key of the object that wants the name for its own job.
    blocked: dict[str, str] = field(default_factory=dict)
    waiting: dict[str, None] = field(default_factory=dict)  # keys of objects whose jobs cannot be made now
    last_notices: dict[str, str] = field(default_factory=dict)  # key of an object → what its last event was about


class Maker(Consumer[MakerState]):
    """Looks after all objects of `kind`."""

    kind: Resource

    @abstractmethod
    def unfinished(self) -> list[str]:
        """Return the keys of the objects that may need work."""

    @abstractmethod
    def plan_families(self, state: MakerState, families: Sequence[Family], now: int) -> Iterator[Group | Timer]:
        """Return what to write for objects, and the timers to look at them again."""

    def load(self, shard: int, revision: int) -> MakerState:
        return MakerState(stale=dict.fromkeys(self.unfinished()))

    def apply(self, state: MakerState, change: Change) -> None:
        """Do nothing: plan() handles all changes, also those since a load."""

    def plan(self, state: MakerState, changes: Sequence[Change], timers: Sequence[Timer], now: int) -> Plan:
        """Plan each object that something happened to."""
        for change in changes:
            self.note(state, change)
        state.stale |= dict.fromkeys(timer.key for timer in timers if timer.kind in (RETRY, AGAIN, DUE))
        keys, state.stale = list(state.stale), {}
        results: list[Group | Timer] = []
        for start in range(0, len(keys), CHUNK):
            results += self.plan_families(state, self._read(state, keys[start : start + CHUNK]), now)

        def about(key: str) -> Object | None:
            owner = store.by_keys(self.kind, [key]).get(key)
            return None if owner is None else owner.object

        failures = retries.event_groups(timers, about, now, COMPONENT)
        return Plan(
            [*failures, *(each for each in results if isinstance(each, Group))],
            [each for each in results if isinstance(each, Timer)],
        )

    def committed(
        self, state: MakerState, groups: Sequence[Group], outcomes: Sequence[list[Stored] | ApiError]
    ) -> None:
        """Forget deleted jobs, except of objects whose writes failed: their next plan needs them again."""
        failed = {group.key for group, outcome in zip(groups, outcomes, strict=True) if isinstance(outcome, ApiError)}
        state.deleted_jobs = {key: jobs for key, jobs in state.deleted_jobs.items() if key in failed}

    def note(self, state: MakerState, change: Change) -> None:
        """Note which object a change is about."""
        if change.resource == self.kind.id:
            state.stale[change.key] = None
            if change.verb == "DELETED":
                state.last_notices.pop(change.key, None)
                state.waiting.pop(change.key, None)
        if change.resource != JOBS.id:
            return
        is_deleted = change.verb == "DELETED"
        if is_deleted and change.key in state.blocked:
            state.stale[state.blocked.pop(change.key)] = None
        key = self._owner_of(change)
        if key:
            state.stale[key] = None
            for job in _readable([change] if is_deleted else []):
                state.deleted_jobs.setdefault(key, {})[job.name] = job

    def key_of(self, change: Change) -> str:
        """Return the key of the object that a change is about, "" for what several objects depend on."""
        if change.resource == self.kind.id:
            return change.key
        return self._owner_of(change) if change.resource == JOBS.id else ""

    def _owner_of(self, change: Change) -> str:
        """Return the key of the object that a job was made for, "" when no object of this kind made it."""
        if self.kind.kind.encode() not in change.body:
            return ""  # most jobs; decoding them all would cost more than the rest of the plan
        try:
            owners = change.read(Owned).metadata.owner_references
        except msgspec.ValidationError:
            return ""
        ours = self.kind.api_version, self.kind.kind
        names = (one.name for one in owners if one.controller and (one.api_version, one.kind) == ours)
        return next((f"{change.namespace}/{name}" for name in names), "")

    def _read(self, state: MakerState, keys: Sequence[str]) -> list[Family]:
        with store.reading():
            owners = store.by_keys(self.kind, keys)
            jobs: dict[str, dict[str, OwnedJob]] = {owner.uid: {} for owner in owners.values()}
            for job in _readable(store.find(JOBS, owner=list(jobs))) if jobs else ():
                jobs[_controller(job)][job.name] = job
        families = []
        for key, owner in owners.items():
            deleted = state.deleted_jobs.get(key, {})
            of_this_one = {name: job for name, job in deleted.items() if _controller(job) == owner.uid}
            families.append(Family(owner, jobs[owner.uid], of_this_one))
        return families


def readable(families: Sequence[Family], model: type[T]) -> Iterator[tuple[Family, T]]:
    """Yield the families whose owner can be read as a model, with the model; the others are logged as errors."""
    for family in families:
        try:
            yield family, family.owner.read(model)
        except msgspec.ValidationError as error:
            log.error("ignored %s %s, which cannot be read: %s", family.owner.resource, family.owner.key, error)


def holders(wanted: Sequence[str], state: MakerState, of: Mapping[str, str]) -> frozenset[str]:
    """Return which keys of jobs are taken; `of` maps each to the object that wants it, which is planned when it is free."""
    occupied = frozenset(store.by_keys(JOBS, wanted))
    state.blocked |= {key: of[key] for key in occupied}
    return occupied


def _controller(job: OwnedJob) -> str:
    return next((one.uid for one in job.metadata.owner_references if one.controller), "")


def _readable(jobs: Sequence[Stored | Change]) -> Iterator[OwnedJob]:
    """Yield the jobs that can be read; the others are logged as errors."""
    for each in jobs:
        try:
            yield read(each.body, OwnedJob)
        except msgspec.ValidationError as error:
            log.error("ignored job %s, which cannot be read: %s", each.key, error)
