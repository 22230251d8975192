"""Bringing records of jobs up to date: the stored record, and what the log holds since then.

Everything is found by names, so the cost depends on the jobs and not on the length of the log: a pod's name consists of
its job's name, its task's and an index, a pod group's of the job's name and uid. Call it inside `store.reading()`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from msgspec.structs import replace

from cluster.store import Change, log, records, sql, store
from cluster.store.types import read
from cluster.writes import Record
from jobs.history import record as kept
from jobs.history.fold import fold
from jobs.history.record import History, Phase
from jobs.lifecycle.progress import of_tasks
from jobs.lifecycle.reading import Job
from kube.kinds.core import Event
from kube.kinds.fields import View
from kube.kinds.meta import OwnerReference
from kube.resources import EVENTS, JOBS, POD_GROUPS, PODS, Resource


class OwnedMetadata(View):
    owner_references: list[OwnerReference] = []


class Owned(View):
    """The part of an object that names its owners."""

    metadata: OwnedMetadata = OwnedMetadata()


@dataclass(frozen=True, slots=True)
class Ref:
    """A job by its place and uid."""

    namespace: str
    name: str
    uid: str


class _Gathered:
    """What is known of one job while it is gathered."""

    def __init__(self, ref: Ref, old: Record | None) -> None:
        self.ref = ref
        self.old = old
        self.history: History = kept.read(old.history if old else b"")
        self.revision = old.revision if old else 0
        self.last: Change | None = None
        self.sizes: dict[str, int] = {}  # task → the most pods that it has had
        if old:
            self._measure(read(old.object, Job))

    def fold(self, changes: Iterable[Change]) -> None:
        """Fold the changes that are newer than the record."""
        self.history = fold(self.history, [each for each in changes if each.revision > self.revision])

    def fold_job(self, changes: Sequence[Change]) -> None:
        """Fold changes of the job and its pod groups."""
        own = [each for each in changes if each.resource == JOBS.id]
        for change in own:
            self._measure(change.read(Job))
        self.last = own[-1] if own else None
        self.fold(changes)

    def _measure(self, job: Job) -> None:
        for task, progress in of_tasks(job):
            self.sizes[task] = max(self.sizes.get(task, 0), progress.total)

    def pod_names(self) -> set[str]:
        """Return the names of the job's pods, including those it had before it was scaled."""
        recorded = {span.pod.metadata.name for run in self.history.runs for span in run.pods.values()}
        return recorded | {f"{self.ref.name}-{task}-{n}" for task, size in self.sizes.items() for n in range(size)}

    def uids(self) -> set[str]:
        """Return the uids of the job, its pod groups and its pods, by which their events are found."""
        groups = {run.group for run in self.history.runs if run.group}
        return {self.ref.uid, *groups, *(uid for run in self.history.runs for uid in run.pods)}

    def record(self, revision: int) -> Record | None:
        """Return the job's record as of a revision; None when there is neither a record nor a change of the job."""
        last = self.last
        if last is None:
            return self.old and replace(self.old, revision=revision, history=kept.write(self.history))
        index = JOBS.index(last.object)
        return Record(
            JOBS,
            last.namespace,
            last.name,
            last.uid,
            index.phase,
            index.queue,
            index.creator,
            created=self.history.runs[0].begun,
            deleted=last.at if last.verb == "DELETED" else 0,
            revision=revision,
            object=last.body,
            history=kept.write(self.history),
            trouble=index.trouble,
            terms=index.terms,
        )


def up_to(revision: int, refs: Sequence[Ref]) -> dict[str, Record]:
    """Return the records of jobs by uid, as of `revision`, at which the store is read.

    A job with neither a record nor a change in the log is left out.
    """
    old = records.by_uid(JOBS, [ref.uid for ref in refs])
    gathered = {ref.uid: _Gathered(ref, old.get(ref.uid)) for ref in refs}
    rows: dict[str, list[Change]] = defaultdict(list)
    for change in _changes(JOBS, gathered, lambda each: {each.ref.name}):
        rows[change.uid].append(change)
    for change in _changes(POD_GROUPS, gathered, lambda each: {f"{each.ref.name}-{each.ref.uid}"}):
        rows[_owner_of(change)].append(change)
    for uid, each in gathered.items():
        each.fold_job(sorted(rows[uid], key=lambda change: change.revision))
    for chunk in _chunks(PODS, gathered, _Gathered.pod_names):
        rows = defaultdict(list)
        for change in chunk:
            rows[_owner_of(change)].append(change)
        for uid in rows.keys() & gathered.keys():
            gathered[uid].fold(rows[uid])
    _fold_events(gathered)
    brought_up = {uid: each.record(revision) for uid, each in gathered.items()}
    return {uid: record for uid, record in brought_up.items() if record is not None}


def phases(refs: Sequence[Ref]) -> dict[str, list[Phase]]:
    """Return the phases that jobs have been in, by uid; pods, pod groups and events are not read."""
    old = records.by_uid(JOBS, [ref.uid for ref in refs])
    gathered = {ref.uid: _Gathered(ref, old.get(ref.uid)) for ref in refs}
    for change in _changes(JOBS, gathered, lambda each: {each.ref.name}):
        if change.uid in gathered:
            gathered[change.uid].fold([change])
    return {uid: each.history.phases for uid, each in gathered.items()}


def _fold_events(gathered: dict[str, _Gathered]) -> None:
    """Fold the events about jobs; they are read from the store, since they outlive the objects they are about."""
    about = {uid: each for each in gathered.values() for uid in each.uids()}
    uids = sorted(about)
    for start in range(0, len(uids), sql.CHUNK):
        rows: dict[str, list[Change]] = defaultdict(list)
        for stored in store.find(EVENTS, owner=uids[start : start + sql.CHUNK], order="revision"):
            each = about[stored.read(Event).involved_object.uid]
            key = stored.resource, stored.namespace, stored.name, stored.uid
            rows[each.ref.uid].append(Change(stored.revision, *key, "MODIFIED", stored.created, stored.body))
        for uid, changes in rows.items():
            gathered[uid].fold(changes)


def _changes(
    kind: Resource, gathered: dict[str, _Gathered], names: Callable[[_Gathered], set[str]]
) -> Iterator[Change]:
    """Return the log's changes of a kind to objects with the jobs' names; changes of one name are in order."""
    return chain.from_iterable(_chunks(kind, gathered, names))


def _chunks(
    kind: Resource, gathered: dict[str, _Gathered], names: Callable[[_Gathered], set[str]]
) -> Iterator[list[Change]]:
    wanted: dict[str, set[str]] = defaultdict(set)
    for each in gathered.values():
        wanted[each.ref.namespace] |= names(each)
    after = min((each.revision for each in gathered.values()), default=0)
    for namespace, every in wanted.items():
        ordered = sorted(every)
        for start in range(0, len(ordered), sql.CHUNK):
            chunk = ordered[start : start + sql.CHUNK]
            yield log.of_names(kind, namespace, chunk, after=after)


def _owner_of(change: Change) -> str:
    owners = change.read(Owned).metadata.owner_references
    return next((each.uid for each in owners if each.controller), "")
