"""Figures of queues and of the pod groups that wait in them, for Prometheus, under Volcano's names (reference:
volcano-scheduler §4.3, volcano-queue-podgroup-cli §2.7).

They are the figures of the pages, at the revision of the scrape: use and pod groups are counted in the queue and below
it, and what a queue deserves is computed as if every queue wanted more. Units are Volcano's: thousandths of a CPU, bytes,
and thousandths of everything else but pods.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from cluster import access
from cluster.access import Actor
from cluster.api import backend
from cluster.exposition import Family
from cluster.runtime import registry
from cluster.store import store
from dashboard import cluster_usage
from dashboard.cluster_usage import Picture, amounts_of, moment
from kube import amounts
from kube.amounts import Amounts
from kube.kinds.scheduling import PodGroupPhase
from kube.resources import POD_GROUPS, QUEUES
from kube.usage import queue_named
from queues import share_bars
from queues.rules.shares import FairShare
from scheduler import waiting_lines
from scheduler.records.reading import GroupView
from scheduler.waiting_lines import WAITING

MAX_GROUPS = 1000
"""The newest pod groups alone have series of their own, at most this many: names come and go, and so would series."""
COUNTS = ("pending", "inqueue", "running", "unknown", "completed")
AMOUNTS = {
    "allocated": "What pods of the queue and of those below it use",
    "request": "What they use, and what the minima of groups that wait ask for",
    "deserved": "The queue's fair share, as if every queue wanted more",
    "capacity": "The queue's own capability",
    "real_capacity": "The most that the queue may use: the cluster, or the least capability of it and of those above it",
}


class Figures(NamedTuple):
    """The figures of one queue."""

    name: str
    weight: int
    counts: Mapping[str, int]
    amounts: Mapping[str, Amounts]
    share: FairShare | None


def families(actor: Actor) -> Iterator[Family]:
    """Yield the metric families that an actor may see: of all queues, and of the pod groups of his namespaces."""
    if access.allowed(actor, "list", QUEUES, ""):
        with store.reading() as head, cluster_usage.current(head) as picture, waiting_lines.current(head) as lines:
            shares = share_bars.of_queues(picture) if backend.runs(registry.get("scheduler")) else {}
            capacity = picture.capacity()
            requests = {name: lines.requested(name) for name in picture.queues}
            figures = [
                _of_queue(picture, name, shares.get(name), capacity, requests) for name in sorted(picture.queues)
            ]
        yield from _of_queues(figures)
    visible = access.namespaces(actor, POD_GROUPS)
    if visible:
        yield from _of_groups(None if isinstance(visible, access.Everywhere) else sorted(visible))


def _of_queue(
    picture: Picture, name: str, share: FairShare | None, capacity: Amounts, requests: Mapping[str, Amounts]
) -> Figures:
    queue = picture.queues[name].queue
    used = picture.subtree_use(name)
    request = used
    for each in picture.subtree(name):
        request = amounts.add(request, requests[each])
    figures = {
        "allocated": used,
        "request": request,
        "deserved": share.deserved if share else {},
        "capacity": amounts_of(queue.spec.capability),
        "real_capacity": picture.limits(name, capacity),
    }
    groups = picture.groups_in(name)
    counts = {each: groups[each.capitalize()] for each in COUNTS}
    return Figures(name, queue.spec.weight, counts, figures, share)


def _of_queues(queues: Sequence[Figures]) -> Iterator[Family]:
    for what, text in AMOUNTS.items():
        yield from _amounts(f"volcano_queue_{what}", text, [(one.name, one.amounts[what]) for one in queues])
    yield _gauge("volcano_queue_weight", "Its weight", ((one.name, one.weight) for one in queues))
    parts = [(one.name, one.share.part) for one in queues if one.share and one.share.part is not None]
    yield _gauge("volcano_queue_share", "The largest part of what it deserves that it uses; 1 is all", parts)
    over = ((name, int(part > 1)) for name, part in parts)
    yield _gauge("volcano_queue_overused", "1 where it uses more than it deserves of something", over)
    for each in COUNTS:
        name = f"volcano_queue_pod_group_{each}_count"
        text = f"Pod groups of the queue and of those below it in the phase {each.capitalize()}"
        yield _gauge(name, text, ((one.name, one.counts[each]) for one in queues))


def _gauge(name: str, text: str, samples: Iterable[tuple[str, float]]) -> Family:
    return Family(name, "gauge", text, [({"queue_name": queue}, value) for queue, value in samples])


def _amounts(name: str, text: str, queues: Sequence[tuple[str, Amounts]]) -> Iterator[Family]:
    """Yield the families for CPU, for memory and for all other resources."""
    for resource, ending in (("cpu", "milli_cpu"), ("memory", "memory_bytes")):
        samples = [(queue, some[resource]) for queue, some in queues if resource in some]
        yield _gauge(f"{name}_{ending}", f"{text}, {resource}", samples)
    others = [
        ({"queue_name": queue, "resource": each}, amount if each == "pods" else 1000 * amount)
        for queue, some in queues
        for each, amount in sorted(some.items())
        if each not in ("cpu", "memory")
    ]
    yield Family(f"{name}_scalar_resources", "gauge", f"{text}, by resource", others)


def _of_groups(namespaces: list[str] | None) -> Iterator[Family]:
    phases = [str(phase) for phase in WAITING]
    count = sum(store.count(POD_GROUPS, namespace=namespaces, phase=phases).values())
    yield Family("volcano_unschedule_job_count", "gauge", "Pod groups whose minimum does not run", [({}, count)])
    waiting = _newest(namespaces, phases)
    tasks = [({"job_id": key}, _missing(group)) for key, group in waiting if _since(group, "Unschedulable")]
    text = f"Pods of the minimum that have no place, by pod group; of the {MAX_GROUPS} newest that wait"
    yield Family("volcano_unschedule_task_count", "gauge", text, tasks)
    text = f"Milliseconds from a pod group's creation until its minimum had nodes; of the {MAX_GROUPS} newest that run"
    running = _newest(namespaces, [str(PodGroupPhase.RUNNING)])
    durations = []
    for key, group in running:
        if since := _since(group, "Scheduled"):
            namespace, _, name = key.partition("/")
            labels = {"job_name": name, "queue": queue_named(group.spec.queue), "job_namespace": namespace}
            durations.append((labels, max(since - moment(group.metadata.creation_timestamp), 0)))
    yield Family("volcano_e2e_job_scheduling_duration", "gauge", text, durations)


def _newest(namespaces: list[str] | None, phases: list[str]) -> list[tuple[str, GroupView]]:
    """Return the newest pod groups in some phases, each with its key `namespace/name`."""
    groups = store.find(POD_GROUPS, namespace=namespaces, phase=phases, order="-created", limit=MAX_GROUPS)
    return [(stored.key, stored.read(GroupView)) for stored in groups]


def _missing(group: GroupView) -> int:
    spec = group.spec
    least = next((each for each in (spec.min_member, spec.min_members, spec.num_member) if each is not None), 0)
    return max(least - group.status.running - group.status.succeeded, 0)


def _since(group: GroupView, kind: str) -> int:
    """Return since when a condition is True, in epoch ms; 0 if it is not."""
    conditions = (one for one in group.status.conditions or () if one.type == kind and one.status == "True")
    return next((moment(one.last_transition_time) for one in conditions), 0)
