"""Which pods that name no group are given one (reference/volcano-queue-podgroup §3.6)."""

from __future__ import annotations

from kube.kinds.scheduling import QueueState
from scheduler.cycle.status import Writer
from scheduler.decisions import Adoption, Decisions
from scheduler.engine.cause import Cause, Reason
from scheduler.records.records import Orphan
from scheduler.snapshot.snapshot import Snapshot

CLOSED_TO_NEW = (QueueState.CLOSED, QueueState.CLOSING)


def adopt(snapshot: Snapshot, decisions: Decisions, writer: Writer) -> None:
    """Give groups to pods that have none; pods that would be new work in a closed queue are told that they wait."""
    for adoption in _adoptions(snapshot):
        if cause := _closed_to(snapshot, adoption):
            writer.keep_out(adoption, cause)
        else:
            decisions.adoptions.append(adoption)


def _closed_to(snapshot: Snapshot, adoption: Adoption) -> Cause | None:
    """Return the cause if a queue takes no new work; pods of a group that exists already are none."""
    queue = snapshot.queues.get(adoption.queue)
    if not adoption.create or queue is None or queue.state not in CLOSED_TO_NEW:
        return None
    return Cause(Reason.QUEUE_CLOSED, queue=adoption.queue)


def _adoptions(snapshot: Snapshot) -> list[Adoption]:
    """Return the groups to be made for pods that name none (queue-podgroup §3.6).

    Pods of one controller share a group, named after its uid; a pod without
    controller gets a group of its own.
    """
    found: dict[tuple[str, str], list[Orphan]] = {}
    for key in sorted(snapshot.orphans):
        orphan = snapshot.orphans[key]
        name = f"podgroup-{orphan.owner.uid if orphan.owner else orphan.pod.uid}"
        found.setdefault((orphan.pod.namespace, name), []).append(orphan)
    adoptions = []
    for (namespace, name), pods in found.items():
        group = snapshot.groups.get(f"{namespace}/{name}")
        queue = snapshot.usage.queue_of(pods[0].pod)
        adoptions.append(Adoption(namespace, name, queue, group is None or not group.exists, pods))
    return adoptions
