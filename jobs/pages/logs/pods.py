"""The pods whose logs are read: one pod, all of a task, or all of a run of a job, living or gone.

A log is found by the pod's uid. The uid comes from the browser, so it is used only if the store, the change
log or the record of a job has a pod with that uid and name in a namespace whose logs the reader may see.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import msgspec

from cluster import access
from cluster.access import Actor
from cluster.api import backend
from cluster.backend import LogExtent
from cluster.store import store
from jobs.lifecycle.reading import Pod
from jobs.pages.job import past_runs
from jobs.pages.job.detail import Detail
from kube.errors import ApiError, NotFound
from kube.resources import JOBS, PODS

EVERY = "*"  # chooses all pods of the run
TASK = "task/"  # prefix that chooses all pods of a task
_TURN = {"Failed": 0, "Running": 1}  # the most useful logs come first


class Absent(NamedTuple):
    """Why there is no log, as a sentence, and the names of the pods without it."""

    why: str
    names: list[str]


class LogQuery(NamedTuple):
    """Whose logs a reader requests, as the parameters of the address; a parameter that is not given is empty.

    `pod` is a pod's name, `task/NAME` for all pods of a task or `*` for all of the run. `of` is the job's uid.
    """

    namespace: str
    job: str
    of: str
    run: str
    pod: str
    uid: str
    container: str
    attempt: int | None

    @classmethod
    def read(cls, namespace: str, job: str, params: Mapping[str, str]) -> LogQuery:
        """Read the query of an address or a subscription."""
        words = {name: params.get(name) or "" for name in ("of", "run", "pod", "uid", "container")}
        return cls(namespace=namespace, job=job, attempt=number(params.get("attempt") or ""), **words)

    @property
    def is_together(self) -> bool:
        """Whether the logs of several pods are requested."""
        return self.pod == EVERY or self.pod.startswith(TASK)

    def includes(self, pod: Pod) -> bool:
        """Whether a pod of the run is one of the requested ones."""
        return self.pod in (EVERY, f"{TASK}{pod.task}") if self.is_together else self.pod == pod.metadata.name

    def wants(self, extent: LogExtent) -> bool:
        """Whether a log of such a pod is one of the requested ones."""
        return self.container in ("", extent.container) and self.attempt in (None, extent.attempt)


@dataclass(frozen=True)
class LogPod:
    """A pod whose logs are read, living or gone."""

    pod: Pod
    is_gone: bool

    @property
    def name(self) -> str:
        return self.pod.metadata.name

    @property
    def uid(self) -> str:
        return self.pod.metadata.uid

    @property
    def node(self) -> str:
        """The name of its node, "" if it has none."""
        return self.pod.spec.node_name

    @property
    def is_over(self) -> bool:
        """Whether nothing will be written any more."""
        return self.is_gone or self.pod.is_ended

    @cached_property
    def containers(self) -> list[str]:
        """The names of its containers, init containers first."""
        starting = [each.name for each in self.pod.status.init_container_statuses]
        return [*starting, *(each.name for each in self.pod.spec.containers)]

    def why_absent(self) -> str:
        """Say why there is no log."""
        if away := backend.nodes.away(self.node):
            return away
        if self.is_gone and not self.pod.is_simulated:  # a simulated pod never had a log
            return "The pod is gone, and its log has been removed."
        return backend.nodes.why_no_log(msgspec.to_builtins(self.pod))


def require(actor: Actor, namespace: str, name: str) -> None:
    """Raise Forbidden unless the actor may read the log of a pod."""
    access.require(actor, "get", f"{PODS.id}/log", namespace, name)


def of_job(actor: Actor, query: LogQuery) -> Detail:
    """Return the living or deleted job whose logs are requested, at the requested run."""
    run = number(query.run) or 0
    if query.of:
        living = store.find(JOBS, namespace=query.namespace, name=query.job, uid=query.of, limit=1)
        if not living:
            return Detail.of_deleted(actor, query.namespace, query.job, query.of, run)
    return Detail.of(actor, query.namespace, query.job, run)


def chosen(actor: Actor, query: LogQuery, detail: Detail | None = None) -> list[LogPod]:
    """Return the requested pods, the most useful logs first; raise Forbidden or NotFound if there are none.

    detail is the job's page, if it has been read already.
    """
    require(actor, query.namespace, query.pod)
    if query.is_together:
        detail = detail or of_job(actor, query)
        matching = [pod for pod in [*of_run(detail), *_replaced(detail)] if query.includes(pod.pod)]
        if not matching:
            whose = f"The task {query.pod.removeprefix(TASK)}" if query.pod != EVERY else f"The job {query.job}"
            raise NotFound(f"{whose} has no pods, so there is no output.")
    else:
        matching = [find(query.namespace, query.pod, query.uid, query.of)]
    containers = list(dict.fromkeys(name for pod in matching for name in pod.containers))
    if query.container and query.container not in containers:
        whose = "None of the pods has a" if query.is_together else f"The pod {query.pod} has no"
        raise NotFound(f"{whose} container of that name; there is {', '.join(containers)}.")
    return matching


def of_run(detail: Detail) -> list[LogPod]:
    """Return all pods of the displayed run: failed ones first, then running ones."""
    if not detail.shows_living:
        pods = [LogPod(bar.pod, is_gone=True) for bar in detail.recorded_bars]
    else:
        pods = [LogPod(pod, is_gone=False) for _, pod in detail.every_pod]
    return sorted(pods, key=lambda each: _turn(each.pod))


def _turn(pod: Pod) -> int:
    return _TURN.get(pod.status.phase, 2)


def _replaced(detail: Detail) -> list[LogPod]:
    """Return the pods of a living run that are gone because others of their names replaced them.

    They are found by the names of the existing pods; none are returned if there are too many of those.
    """
    if not detail.shows_living or not detail.reads_all:
        return []
    living = {stored.uid: stored.name for stored, _ in detail.pods}
    spans = past_runs.replaced(detail.stored, list(living.values()), living, detail.chapter.times.begun)
    return [LogPod(span.pod, is_gone=True) for span in spans]


def find(namespace: str, name: str, uid: str, job_uid: str) -> LogPod:
    """Return a pod, living or gone, by its name and, if not "", its uid; raise NotFound if it is unknown."""
    living = store.find(PODS, namespace=namespace, name=name, limit=1)
    if living and uid in ("", living[0].uid):
        return LogPod(living[0].read(Pod), is_gone=False)
    if uid:
        for change in store.history(PODS, namespace, name, limit=500):
            if change.uid == uid:
                return LogPod(change.read(Pod), is_gone=True)
        if (recorded := past_runs.pod(namespace, name, uid, job_uid)) is not None:
            return LogPod(recorded, is_gone=True)
    raise NotFound(f"There is no pod {name} in the namespace {namespace}, and no record of one.")


def absent(actor: Actor, query: LogQuery, pods: Iterable[LogPod], present: Collection[str]) -> list[Absent]:
    """Return the pods without a log by the reason why; present are the uids of those with one."""
    lacking = [pod for pod in pods if pod.uid not in present]
    waiting = {pod.uid for pod in lacking if not pod.is_gone and not pod.pod.spec.node_name}
    why = ""
    if waiting:
        with suppress(ApiError):  # deleted meanwhile, or not visible
            why = of_job(actor, query).reasons[0]
    names: dict[str, list[str]] = {}
    for pod in lacking:
        waits = why and pod.uid in waiting
        text = f"This pod waits for a node, so there is no output yet. {why}" if waits else pod.why_absent()
        names.setdefault(text, []).append(pod.name)
    return [Absent(*each) for each in names.items()]


def interesting(detail: Detail) -> str:
    """Return the choice to begin with: the failed pod, or all of its task if several failed; else all of a running pod's task.

    For a task of one pod, that is the pod; "" if there is no pod.
    """
    pods = sorted((bar.pod for bar in detail.bars), key=_turn)
    if not pods:
        return ""
    failed = [pod for pod in pods if pod.status.phase == "Failed"]
    tasks = Counter(pod.task for pod in failed or pods)
    task = tasks.most_common(1)[0][0] if failed else pods[0].task
    return f"{TASK}{task}" if task and tasks[task] > 1 else pods[0].metadata.name


def number(text: str) -> int | None:
    """Read a number in an address; None for anything else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None
