"""The cluster whose store is on this machine, as its agent sees it."""

from __future__ import annotations

from collections.abc import Sequence

from cluster.store import Group, Stored, Write, store
from kube.errors import ApiError
from kube.resources import CONFIGMAPS, EVENTS, PODS, SECRETS, Resource
from node.listen import Listener, Subscription
from node.pods.lookup import StoreLookup

WATCHED = (PODS, CONFIGMAPS, SECRETS)


class LocalCluster:
    """The store as `node.pods.cluster.Cluster`: a commit is one transaction, and the log is read in place."""

    def __init__(self, subscription: Subscription) -> None:
        self.listener = Listener(WATCHED, subscription)
        self.lookup = StoreLookup()

    def pods(self, node: str) -> tuple[int, list[Stored]]:
        with store.reading() as revision:
            return revision, store.find(PODS, node=node)

    def get(self, resource: Resource, namespace: str, name: str) -> Stored:
        return store.get(resource, namespace, name)

    def events_about(self, namespace: str, uid: str) -> list[Stored]:
        return store.find(EVENTS, namespace=namespace, owner=uid, order="-revision")

    def write(self, *writes: Write) -> list[Stored]:
        """Do all the writes in one transaction or raise the first ApiError."""
        return store.write(*writes)

    def commit(self, groups: Sequence[Group]) -> list[list[Stored] | ApiError]:
        """Do groups of writes in one transaction."""
        return store.commit(groups)
