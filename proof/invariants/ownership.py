"""What belongs to something that is gone, goes too (reference: kubernetes-api-and-batch-job §4.6)."""

from __future__ import annotations

from collections.abc import Collection

from proof.invariants.invariant import Invariant
from proof.invariants.picture import Picture, Step
from proof.invariants.views import NAMESPACES, NODES, PODS, Meta, Namespace

FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"
OF_NAMESPACES = "kubernetes"  # the finalizer in the spec of a namespace that is not empty
AFTER_MS = 15_000  # a namespace is looked into once more so long after its end


class NoOrphans(Invariant):
    """Source: reference kubernetes-api-and-batch-job §4.6, garbage collection.

    What is being deleted may be held by others than the collector. An object
    of the cluster that names an owner inside a namespace is told of and left.
    """

    name = "nothing outlives its owners"
    meaning = "At rest no object is left all of whose owners are gone, and no owner waits for dependents that are."
    kinds = ()

    def settle(self, now: int) -> None:
        everything = {
            f"{kind}/{key}".replace("//", "/"): thing.metadata
            for kind, things in self.picture.things.items()
            for key, thing in things.items()
        }
        living = {metadata.uid for metadata in everything.values()}
        blocked = {
            owner.uid
            for metadata in everything.values()
            for owner in metadata.owner_references
            if owner.block_owner_deletion
        }
        for name, metadata in everything.items():
            if metadata.deletion_timestamp:
                self._judge_going(name, metadata, blocked)
            elif metadata.owner_references and not any(owner.uid in living for owner in metadata.owner_references):
                gone = metadata.owner_references[0]
                raise self.broken(name, f"is left, and its owner {gone.kind} {gone.name} is gone")

    def _judge_going(self, name: str, metadata: Meta, blocked: Collection[str]) -> None:
        if ORPHAN in metadata.finalizers:
            raise self.broken(name, "is being deleted, and still has the finalizer orphan")
        if FOREGROUND in metadata.finalizers and metadata.uid not in blocked:
            raise self.broken(name, "is being deleted in the foreground, and no dependent holds it")
        kind = name.partition("/")[0]
        if not metadata.finalizers and kind not in (PODS, NODES, NAMESPACES):
            raise self.broken(name, "is being deleted, and nothing holds it")


class EmptyAfterwards(Invariant):
    """Source: reference kubernetes-api-and-batch-job §4.6: a namespace goes when nothing is left in it.

    Only namespaces whose end the log shows: others may never have been objects.
    What is made in one while it goes is found a while afterwards.
    """

    name = "nothing in a namespace that is gone"
    meaning = "At rest nothing is left in a namespace that was deleted."
    kinds = (NAMESPACES,)

    def __init__(self, picture: Picture) -> None:
        super().__init__(picture)
        self._gone: dict[str, int] = {}  # name → when

    def take(self, step: Step) -> None:
        if step.after is None:
            self._gone[step.change.name] = self.picture.at
        else:
            self._gone.pop(step.change.name, None)

    def settle(self, now: int) -> None:
        gone = {name for name, at in self._gone.items() if at + AFTER_MS <= now}
        if not gone:
            return
        for kind, things in self.picture.things.items():
            for key in things:
                if (namespace := key.partition("/")[0]) in gone:
                    raise self.broken(f"{kind}/{key}", f"is left, and namespace {namespace} is gone")


class EmptyGoes(Invariant):
    """Source: reference kubernetes-api-and-batch-job §4.6: a namespace goes when nothing is left in it.

    Finalizers of others may hold it.
    """

    name = "empty namespaces go"
    meaning = "At rest no namespace is left that is being deleted and in which there is nothing."
    kinds = ()

    def settle(self, now: int) -> None:
        going = {
            key.removeprefix("/")
            for key, namespace in self.picture.namespaces.items()
            if type(namespace) is Namespace
            and namespace.metadata.deletion_timestamp
            and not namespace.metadata.finalizers
            and namespace.spec.finalizers == [OF_NAMESPACES]
        }
        if not going:
            return
        for things in self.picture.things.values():
            going -= {key.partition("/")[0] for key in things}
        for name in sorted(going):
            raise self.broken(f"{NAMESPACES}/{name}", "is being deleted, and nothing is left in it")


INVARIANTS = (NoOrphans, EmptyAfterwards, EmptyGoes)
