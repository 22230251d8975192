"""Storing what another cluster reports: objects, and how far the mirror of their kind is, in one transaction.

So whoever starts again goes on where the store is, and no update is lost, or stored twice where that would matter.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

import msgspec
from django.conf import settings
from django.db import transaction

from cluster import clock
from cluster.models import MirroredCluster, MirroredKind
from cluster.remote.mirroring import kinds, reflection
from cluster.remote.mirroring.reflection import KindStatus, Phase, Step, Update
from cluster.remote.mirroring.ways import Way
from cluster.store import Group, Mirror, Stored, sql, store
from kube.errors import ApiError
from kube.meta import Object, parse_time
from kube.resources import Resource

log = logging.getLogger(__name__)


def record(updates: Sequence[Update]) -> None:
    """Store updates, in their order."""
    now = clock.milliseconds()
    with transaction.atomic():
        sql.lock_head(store.using)
        by_kind = statuses({each.kind for each in updates})
        pending: list[Mirror] = []
        for each in updates:
            pending += each.writes
            if each.step in (Step.LISTED, Step.ABSENT):
                _write(pending, now)
                _write(_gone(each), now)
                pending = []
            before = by_kind.get(each.kind.id, KindStatus())
            by_kind[each.kind.id] = reflection.status_after(before, each, now)
        _write(pending, now)
        for resource, status in by_kind.items():
            fields = {name: getattr(status, name) for name in KindStatus.__struct_fields__}
            MirroredKind.objects.update_or_create(resource=resource, defaults=fields)


def works() -> bool:
    """Whether controllers of ours work on the cluster."""
    return bool(settings.WAY == Way.IN_PLACE)


def followed() -> tuple[Resource, ...]:
    """Return the kinds that are mirrored."""
    return kinds.mirrored(works=works())


def statuses(wanted: Iterable[Resource] | None = None) -> dict[str, KindStatus]:
    """Return the status of the wanted kinds (None: of all mirrored ones) by their ids; kinds never read have none."""
    ids = [kind.id for kind in (followed() if wanted is None else wanted)]
    rows = MirroredKind.objects.filter(resource__in=ids)
    return {
        row.resource: KindStatus(row.version, row.anew, Phase(row.phase), row.since, row.reason, row.objects_read)
        for row in rows
    }


def _write(writes: Sequence[Mirror], now: int) -> None:
    outcomes = store.commit([Group([write]) for write in writes], now=now)
    for write, outcome in zip(writes, outcomes, strict=True):
        if isinstance(outcome, ApiError):
            log.warning("not mirrored", extra={"kind": write.resource.id, "error": outcome.message})


def _gone(update: Update) -> list[Mirror]:
    """Return the deletions of all that a whole list did not name."""
    stored = store.names(update.kind)
    missing = [key for uid, key in stored.items() if uid not in update.uids]
    unlisted = {one.uid: one for one in store.by_keys(update.kind, missing).values()}
    versions = {uid: one.version for uid, one in unlisted.items()}
    gone = reflection.vanished({uid: stored[uid] for uid in unlisted}, update.uids, versions, update)
    return [Mirror(update.kind, unlisted[uid].object, deleted=True) for uid in gone]


def confirm(kind: Resource, objects: Sequence[Object]) -> list[Stored]:
    """Store what the API answered to changes made here, where the store has nothing newer; return what it has then.

    Of a kind that is not mirrored nothing is kept.
    """
    if kind not in followed():
        return [unsaved(kind, obj) for obj in objects]
    objects = [kinds.stored_part(kind, obj) for obj in objects]
    with transaction.atomic():
        sql.lock_head(store.using)
        status = statuses([kind]).get(kind.id, KindStatus())
        fresh = [obj for obj in objects if reflection.is_newer(obj["metadata"]["resourceVersion"], status)]
        _write([Mirror(kind, obj) for obj in fresh], clock.milliseconds())
        return [_newest(kind, obj) for obj in objects]


def stored_answer(kind: Resource, answer: Object, is_dry: bool = False) -> Stored:
    """Return one object that the API answered with, as `confirm` does; that of a dry run is not stored."""
    return unsaved(kind, answer) if is_dry else confirm(kind, [answer])[0]


def stored_answers(kind: Resource, answers: Sequence[Object | ApiError]) -> list[Stored | ApiError]:
    """Do the same with many answers, of which some are refusals."""
    done = iter(confirm(kind, [one for one in answers if not isinstance(one, ApiError)]))
    return [one if isinstance(one, ApiError) else next(done) for one in answers]


def _newest(kind: Resource, obj: Object) -> Stored:
    """Return an object from the store when it is there, otherwise as it is."""
    metadata = obj["metadata"]
    stored = store.get_or_none(kind, metadata.get("namespace") or "", metadata["name"])
    return stored if stored is not None and stored.uid == metadata["uid"] else unsaved(kind, obj)


def unsaved(kind: Resource, obj: Object) -> Stored:
    """Return an object in the store's form, with the revision 0 of what has no place in the log, as a dry run has none."""
    metadata = obj["metadata"]
    created = parse_time(metadata["creationTimestamp"]) if metadata.get("creationTimestamp") else 0
    name, uid = metadata.get("name") or "", metadata.get("uid") or ""
    return Stored(kind.id, metadata.get("namespace") or "", name, uid, 0, created, msgspec.json.encode(obj))


def cluster() -> MirroredCluster | None:
    """Return the row of the mirrored cluster, None before the mirror first ran."""
    return MirroredCluster.objects.first()


def claim(server: str) -> None:
    """Note that this store mirrors the cluster of a server."""
    MirroredCluster.objects.get_or_create(id=1, defaults={"server": server})


def choose() -> None:
    """Note whether controllers of ours work on the cluster: then more of some kinds is mirrored, so all are listed again."""
    way = Way.IN_PLACE.value if works() else ""
    with transaction.atomic():
        if MirroredCluster.objects.filter(id=1).exclude(way=way).update(way=way):
            MirroredKind.objects.update(version="")


def identify(uid: str) -> bool:
    """Say whether the cluster that answers is the one that was mirrored so far, by its uid; "" is not known.

    Another one's versions mean something else: each kind is listed again.
    """
    with transaction.atomic():
        previous = MirroredCluster.objects.get(id=1).uid
        if not uid or uid == previous:
            return True
        MirroredCluster.objects.filter(id=1).update(uid=uid)
        if previous:
            MirroredKind.objects.update(version="", anew=True)
    return not previous


def note_answer() -> None:
    """Note that the cluster answers."""
    MirroredCluster.objects.filter(id=1).update(heard=clock.milliseconds(), away=0, reason="")


def note_silence(reason: str) -> None:
    """Note that the cluster does not answer."""
    row = MirroredCluster.objects.get(id=1)
    if not row.away or row.reason != reason:
        MirroredCluster.objects.filter(id=1).update(away=row.away or clock.milliseconds(), reason=reason)
