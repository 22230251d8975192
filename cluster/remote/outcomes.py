"""What became of a plan in the cluster, and how that is stored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cluster.remote import outbox, recorder
from cluster.remote.dispatch import gangs, order
from cluster.remote.dispatch.progress import Progress
from cluster.remote.dispatch.verdicts import Done
from cluster.remote.http import encoding
from cluster.remote.outbox import Row
from cluster.store import Delete, Group, Patch, Store, Write
from cluster.store.types import Stored
from kube.errors import ApiError, ServiceUnavailable
from kube.kinds.pod import ENDED
from kube.meta import Object
from kube.resources import PODS, Resource


class Answered:
    """A plan to all of which the cluster has answered."""

    def __init__(self, progress: Sequence[Progress], rows: Sequence[Row], using: Store) -> None:
        self.groups: Sequence[Group] = [each.group for each in progress]
        self._progress, self._rows, self._using = progress, rows, using

    def settle(self) -> list[list[Stored] | ApiError]:
        """Mirror the answers and empty the outbox; an outcome has revision 0 where the store shows more than was answered."""
        outbox.remove(self._rows, self._using.using)
        by_kind: dict[Resource, list[tuple[int, int, Object]]] = {}
        for at, each in enumerate(self._progress):
            for number, obj in each.objects():
                by_kind.setdefault(each.group.writes[number].resource, []).append((at, number, obj))
            if each.rollback is not None:
                # Numbers below 0 tell them from the others, since no write of a group has one.
                for number, obj in each.rollback.objects():
                    kind = each.rollback.group.writes[number].resource
                    by_kind.setdefault(kind, []).append((at, -1 - number, obj))
        rows: dict[tuple[int, int], Stored] = {}
        for kind, answers in by_kind.items():
            stored = recorder.confirm(kind, [obj for _, _, obj in answers])
            for (at, number, obj), row in zip(answers, stored, strict=True):
                is_exact = row.version == obj["metadata"]["resourceVersion"]
                rows[at, number] = row if is_exact else recorder.unsaved(kind, obj)
        return [
            each.error or [rows.get((at, i)) or _nothing(write) for i, write in enumerate(each.group.writes)]
            for at, each in enumerate(self._progress)
        ]


class Dropped:
    """A plan that is not sent any more; each of its groups is planned anew."""

    def __init__(self, rows: Sequence[Row], using: Store, error: ApiError | None = None) -> None:
        self.groups: Sequence[Group] = [encoding.decode(row.body) for row in rows]
        self._rows, self._using = rows, using
        self._error = error or ServiceUnavailable("Others may have worked on the cluster since this was planned.")

    def settle(self) -> list[list[Stored] | ApiError]:
        """Empty the outbox."""
        outbox.remove(self._rows, self._using.using)
        return [self._error for _ in self.groups]


def _nothing(write: Write) -> Stored:
    """Return the outcome of a write whose answer has no object: it has no place in the log."""
    _, namespace, name = order.key_of(write)
    return recorder.unsaved(write.resource, {"metadata": {"namespace": namespace, "name": name}})


def _gone(progress: Progress) -> Iterator[str]:
    """Yield the uids of deleted objects that do not wait for finalizers or their grace."""
    for number, write in enumerate(progress.group.writes):
        verdict = progress.verdicts.get(number)
        if isinstance(write, Delete) and isinstance(verdict, Done) and verdict.object is None and write.uid:
            yield write.uid


def ended(using: Store, groups: Sequence[Group]) -> set[str]:
    """Return the uids of those pods which groups bind and which have ended."""
    keys = [
        f"{write.namespace}/{write.name}"
        for group in groups
        for write in group.writes
        if isinstance(write, Patch) and write.subresource == "binding"
    ]
    pods = using.by_keys(PODS, keys).values()
    return {one.uid for one in pods if (one.object.get("status") or {}).get("phase") in ENDED}


def unseen(progress: Sequence[Progress], using: Store) -> bool:
    """Whether the mirror has yet to show a write whose answer has no object: a binding, a deletion.

    Planning before it does would do it twice.
    """
    gone: list[str] = []
    bound: list[str] = []
    for each in progress:
        undone = each.rollback.group.writes if each.rollback is not None else ()
        gone += [*_gone(each), *(_gone(each.rollback) if each.rollback is not None else ())]
        if not undone:
            bound += [write.uid for write in gangs.bound(each.group, each.verdicts)]
    return bool(using.living(gone)) or bool(using.unbound(bound))
