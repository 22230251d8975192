"""What is read of one job for its page, and what a reader may see of it: seeing a job does not imply seeing its pods."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, Self

from cluster import access
from cluster.access import Actor
from cluster.store import Stored, store
from jobs.history import record
from jobs.history.record import History
from jobs.lifecycle.reading import Job, PodGroup
from jobs.pages import objects
from jobs.pages.job import mirrored, past_runs, pods, timeline
from jobs.pages.job.pods import Read
from kube import pod_health
from kube.errors import NotFound
from kube.pod_health import Health
from kube.resources import EVENTS, JOBS, POD_GROUPS, PODS


class Sees(NamedTuple):
    """Whether a reader may list the pods, pod groups and events of a namespace, and read logs there.

    jobs are the namespaces whose jobs they may list.
    """

    pods: bool = True
    groups: bool = True
    events: bool = True
    logs: bool = True
    jobs: frozenset[str] | access.Everywhere = access.ALL

    @classmethod
    def of(cls, actor: Actor, namespace: str) -> Sees:
        """Return what an actor sees in a namespace."""
        pods, groups, events = (access.allowed(actor, "list", kind, namespace) for kind in (PODS, POD_GROUPS, EVENTS))
        logs = access.allowed(actor, "get", f"{PODS.id}/log", namespace)
        return cls(pods, groups, events, logs, access.namespaces(actor, JOBS))

    @property
    def lacking(self) -> str:
        """What is not visible, in words; "" if all is."""
        words = {"pods": self.pods, "pod groups": self.groups, "events": self.events}
        *some, last = [word for word, is_visible in words.items() if not is_visible] or [""]
        return f"{', '.join(some)} and {last}" if some else last


@dataclass(frozen=True)
class JobRecord:
    """One job with everything that belongs to it; each part is read on first use.

    `run` is the number of the displayed run, 0 for the newest. `deleted` is when the job was deleted, in ms, 0 while
    it lives; `deleted_history` is the record of a deleted job. `sees` is what the reader may see.
    """

    stored: Stored
    run: int = 0
    deleted: int = 0
    deleted_history: History = field(default_factory=History)
    sees: Sees = field(default_factory=Sees)

    @classmethod
    def of(cls, actor: Actor, namespace: str, name: str, run: int = 0) -> Self:
        """Read the job; raise Forbidden or NotFound if there is none to show."""
        return cls(objects.read(actor, JOBS, namespace, name), run, sees=Sees.of(actor, namespace))

    @classmethod
    def of_deleted(cls, actor: Actor, namespace: str, name: str, uid: str = "", run: int = 0) -> Self:
        """Read the record of a deleted job, by its uid or, if "", the last one of the name.

        Raise Forbidden if the actor may not see the job, NotFound if there is no record.
        """
        access.require(actor, "get", JOBS, namespace, name)
        deleted = past_runs.of_deleted(namespace, name, uid)
        if deleted is None:
            raise NotFound.of(JOBS.id, name)
        history, sees = record.read(deleted.history), Sees.of(actor, namespace)
        return cls(past_runs.stored_of(deleted), run, deleted.deleted, history, sees)

    @cached_property
    def job(self) -> Job:
        return self.stored.read(Job) if self.deleted else mirrored.of(self.stored)

    @cached_property
    def _counts(self) -> pods.TroubleCounts:
        return {} if self.deleted else pods.counts(self.stored)

    @cached_property
    def counts(self) -> dict[str, int]:
        by_phase: Counter[str] = Counter()
        for (phase, _), number in self._counts.items() if self.sees.pods else ():
            by_phase[phase] += number
        return dict(by_phase)

    @cached_property
    def health(self) -> Health:
        """How many pods run, and how many do not although they are bound."""
        troubled = {key: number for key, number in self._counts.items() if key[1] in pods.CAUSES}
        return pod_health.health(self.job.status.running, troubled)

    @property
    def reads_all(self) -> bool:
        """Whether there are few enough pods to read all of them."""
        return sum(self.counts.values()) <= timeline.MAX_BARS

    @cached_property
    def pods(self) -> Read:
        """The existing pods; if too many, the most important."""
        if not self.counts:
            return []
        return pods.every(self.stored) if self.reads_all else pods.most_important(self.stored, self.counts)

    @cached_property
    def every_pod(self) -> Read:
        return self.pods if self.reads_all else pods.every(self.stored)

    @cached_property
    def history(self) -> History:
        """The job's record: of a deleted job all of it, of a living one what `past_runs.of_living` returns."""
        return self.deleted_history if self.deleted else past_runs.of_living(self.stored, self.job)

    @cached_property
    def stored_group(self) -> Stored | None:
        if self.deleted or not self.sees.groups:
            return None
        groups = store.find(POD_GROUPS, namespace=self.stored.namespace, owner=self.stored.uid, limit=1)
        return groups[0] if groups else None

    @cached_property
    def group(self) -> PodGroup | None:
        return self.stored_group.read(PodGroup) if self.stored_group else None
