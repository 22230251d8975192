"""What the node reads from the store beside pods, and how it goes on when the store does not answer."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from django.db import connections

from cluster.access import hostpaths, joining, makers
from cluster.runtime.outage import Outage
from cluster.store import store
from kube.errors import NotFound
from kube.kinds.core import ConfigMap, Pod, Secret
from kube.resources import CLAIMS, CONFIGMAPS, SECRETS
from node.pods.environment import Claim, claim_of, decoded


def refused(outage: Outage, what: str, error: Exception) -> None:
    """Note a failure of the database, and have the next try begin with a new connection."""
    outage.lasts(f"{what}: {error}")
    connections.close_all()


class StoreLookup:
    """The `Lookup` that reads the store each time: what a container gets is what is there when it starts."""

    def config_map(self, namespace: str, name: str) -> Mapping[str, bytes] | None:
        try:
            obj = store.get(CONFIGMAPS, namespace, name).read(ConfigMap)
        except NotFound:
            return None
        return decoded(obj.data, obj.binary_data)

    def secret(self, namespace: str, name: str) -> Mapping[str, bytes] | None:
        try:
            obj = store.get(SECRETS, namespace, name).read(Secret)
        except NotFound:
            return None
        return decoded(obj.string_data, obj.data)

    def claim(self, namespace: str, name: str) -> Claim | None:
        try:
            return claim_of(store.get(CLAIMS, namespace, name).object)
        except NotFound:
            return None

    def existing_claims(self, uids: Collection[str]) -> set[str]:
        return {claim.uid for claim in store.find(CLAIMS, uid=uids)}

    def cluster(self) -> str:
        """Return the cluster's uid, "" in a store without namespaces."""
        try:
            return joining.cluster()
        except NotFound:
            return ""

    def host_paths(self, pod: Pod) -> tuple[str, ...]:
        return hostpaths.within(pod)

    def is_administrators(self, pod: Pod) -> bool:
        return makers.all_administrators(pod)
