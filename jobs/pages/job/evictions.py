"""Evictions of a job's pods by the scheduler, for the job's page: how many, when, why and for whom.

They are read from the stored decisions (`cluster.store.decisions`), because an event or a condition of a pod is about one pod, is
deleted with it or with the log, and does not name the beneficiary. The pods' last status says which pods it were (`Pod.evicted`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from cluster.store import Stored, decisions
from jobs.lifecycle.progress import ENDING, STOPPED
from jobs.lifecycle.reading import Job, Pod
from jobs.pages.job.fired_policies import Row
from jobs.pages.job.timeline import Mark
from kube.kinds.batch import JobEvent, JobPhase
from kube.volcano.pod_groups import job_of
from scheduler.decided import ZONE_CLOSED, Kind
from scheduler.gangs.min_runtime import stays_until, whole_until
from scheduler.policy.actions import Action
from scheduler.policy.policy import Policy

MAX_NAMED = 3
MOST = 50  # newest of a job that are read
SECOND_MS = 1000
REASON = "Evict"
_FOR_NOBODY = {
    ZONE_CLOSED: ("the revocable zone of their nodes has closed", "as its zone closed"),
    Action.SHUFFLE: ("more of their nodes was asked for than the target, and others have room", "to be moved"),
}
"""Why pods are evicted for no other group: as a clause, and as what follows the word "evicted"."""
_ENDED_WELL = (JobPhase.COMPLETING, JobPhase.COMPLETED)
_WHY = {
    Action.PREEMPT: "has a higher priority and gets the room",
    Action.RECLAIM: "gets the room back that its own queue deserves",
}


class Eviction(NamedTuple):
    """Pods of a job that one cycle evicted for one other group.

    `at` is when, in ms; `other` is the pod group that gets the room, as namespace/name, "" if none does.
    """

    at: int
    pods: int
    reason: str
    other: str
    nodes: frozenset[str]

    @property
    def namespace(self) -> str:
        return self.other.partition("/")[0]

    @property
    def job(self) -> str:
        """The name of the job that gets the room; "" for a pod group without one."""
        return job_of(self.other.partition("/")[2])

    @property
    def whom(self) -> str:
        """Who gets the room: `job default/urgent`."""
        return f"job {self.namespace}/{self.job}" if self.job else f"pod group {self.other}"

    @property
    def then(self) -> str:
        """Why `whom` gets the room, as the end of a sentence."""
        return _WHY[Action(self.reason)] if self.reason in _WHY else "gets the room"

    @property
    def counted(self) -> str:
        """`2 pods were evicted`."""
        return f"{self.pods:,} pod{' was' if self.pods == 1 else 's were'} evicted"

    @property
    def sentence(self) -> str:
        """What happened, in a sentence."""
        return f"{self.counted}: {self.cause}."

    @property
    def cause(self) -> str:
        """Why, as a clause."""
        if self.reason in _FOR_NOBODY:
            return _FOR_NOBODY[self.reason][0]
        return f"{self.whom} {self.then}"

    @property
    def short(self) -> str:
        """Why, as the words after "evicted" beside a bar."""
        return _FOR_NOBODY[self.reason][1] if self.reason in _FOR_NOBODY else f"for {self.whom}"


class Notice(NamedTuple):
    """The notice near the top of the page: the evictions of the last cycle that evicted pods of the job."""

    at: int
    pods: int
    evictions: Sequence[Eviction]


class Share(NamedTuple):
    """How often pods of a job were evicted for one other group, or for one reason without a group; `eviction` is the last one.

    queue is that of the group, "" if it is no longer known.
    """

    times: int
    eviction: Eviction
    queue: str

    @property
    def often(self) -> str:
        """`twice`."""
        return often(self.times)


class Summary(NamedTuple):
    """How often pods of a job were evicted, for whom mostly, how often for others, and until when reclaim spares it (ms)."""

    times: int
    shares: Sequence[Share]
    others: int
    until: int | None

    @property
    def often(self) -> str:
        """`3 times`; if very many, at least that."""
        return often(self.times)


def often(times: int) -> str:
    """Return `once`, `twice` or `3 times`."""
    return {1: "once", 2: "twice"}.get(times, f"{times} times")


def summary(evictions: Sequence[Eviction], until: int | None) -> Summary | None:
    """Return how often pods of a job were evicted and for whom, the most frequent first; None if none were."""
    if not evictions:
        return None
    by_other: dict[tuple[str, str], list[Eviction]] = defaultdict(list)
    for each in evictions:
        by_other[each.reason, each.other].append(each)
    groups = sorted(by_other.values(), key=lambda some: (-_times(some), -some[-1].at))
    shares = []
    for some in groups[:MAX_NAMED]:
        # The last decision about the group names its queue.
        namespace, _, name = some[-1].other.partition("/")
        newest = decisions.find(decisions.Filters(namespaces=namespace, name=name), limit=1) if name else []
        shares.append(Share(_times(some), some[-1], newest[0].decision.queue if newest else ""))
    others = _times([each for some in groups[MAX_NAMED:] for each in some])
    return Summary(_times(evictions), shares, others, until)


def left_alone_until(first: int | None, started: Iterable[int], policy: Policy, *, needed: int) -> int | None:
    """Return until when reclaim spares pods that have had nodes since `started`, in ms; None if it does not.

    first is when the job's group was first evicted; needed is how many pods are only evicted together.
    """
    least = policy.min_runtime_ms if Action.RECLAIM in policy.actions else 0
    if first is None or not least:
        return None
    every = [stays_until(each, first, least) for each in started]
    stays = [each for each in every if each]
    return (whole_until(stays) if len(every) <= needed else max(stays)) if stays else None


def _times(evictions: Sequence[Eviction]) -> int:
    """Return in how many cycles pods were evicted."""
    return len({each.at for each in evictions})


def of_job(job: Stored) -> list[Eviction]:
    """Return the newest evictions of a job's pods, in all of its runs, the oldest first."""
    group = f"{job.name}-{job.uid}"
    about = decisions.Filters(namespaces=job.namespace, name=group, kind=Kind.EVICT)
    evict_decisions = [stored.decision for stored in reversed(decisions.find(about, limit=MOST))]
    return [
        Eviction(each.at, each.pods, each.reason, each.other, frozenset(node for node, _ in each.nodes))
        for each in evict_decisions
    ]


def marks(evictions: Iterable[Eviction]) -> list[Mark]:
    """Return evictions as marks for the job's timeline."""
    return [Mark(each.at, REASON, each.sentence) for each in evictions]


def cause_of(pod: Pod, evictions: Sequence[Eviction]) -> str:
    """Return why a pod was evicted, in a few words; "" if it was in none of these evictions.

    A decision and its pods' condition have the same time, which a cluster may keep in whole seconds.
    """
    at = pod.evicted
    if at is None:
        return ""
    matching = (
        each
        for each in reversed(evictions)
        if each.at // SECOND_MS == at // SECOND_MS and pod.spec.node_name in each.nodes
    )
    return next((each.short for each in matching), "")


def notice(job: Job, evictions: Sequence[Eviction], fired: Iterable[Row], *, misses: bool) -> Notice | None:
    """Return the last evictions while the job is still affected by them; None once it has its pods again.

    fired is what policies did in its newest run, misses whether it runs without some of its evicted pods.
    """
    if not evictions:
        return None
    at = evictions[-1].at
    if job.phase in ENDING:
        matters = any(row.event == JobEvent.POD_EVICTED for row in fired) and job.phase not in _ENDED_WELL
    elif job.phase == JobPhase.RUNNING:
        matters = misses
    else:
        since = job.since(JobPhase.RUNNING, *STOPPED)
        matters = since is None or at >= since // SECOND_MS * SECOND_MS
    if not matters:
        return None
    last = [each for each in evictions if each.at == at]
    return Notice(at, sum(each.pods for each in last), last)
