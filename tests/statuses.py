"""What controllers write into statuses and the definitions of their kinds lack: an API server drops that."""

from cluster.store import store
from kube import definitions, schema
from kube.resources import CRON_JOBS, JOB_FLOWS, JOBS, POD_GROUPS, QUEUES

KINDS = {kind.id: kind for kind in (JOBS, POD_GROUPS, QUEUES, JOB_FLOWS, CRON_JOBS)}


def dropped(after=0):
    """The fields of statuses written after a revision that their definitions lack, with the kind of each."""
    changes = store.changes(after, [*KINDS.values()])
    return sorted({f"{each.resource} {path}" for each in changes for path in lost(KINDS[each.resource], each.object)})


def lost(kind, obj):
    return schema.unknown_fields({"status": obj.get("status") or {}}, definitions.of(kind))
