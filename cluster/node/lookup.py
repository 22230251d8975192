"""ConfigMaps and Secrets from the store, as containers need them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cluster.node.environment import decoded
from cluster.store import store
from kube.errors import NotFound
from kube.kinds.core import ConfigMap, Secret
from kube.resources import CONFIGMAPS, SECRETS

if TYPE_CHECKING:
    from collections.abc import Mapping


class StoreLookup:
    """Reads the store each time: what a container gets is what is there when it starts."""

    def config_map(self, namespace: str, name: str) -> Mapping[str, bytes] | None:
        """Return the values of a ConfigMap by key, None when there is no such ConfigMap."""
        try:
            found = store.get(CONFIGMAPS, namespace, name).read(ConfigMap)
        except NotFound:
            return None
        return decoded(found.data, found.binary_data)

    def secret(self, namespace: str, name: str) -> Mapping[str, bytes] | None:
        """Return the values of a Secret by key, None when there is no such Secret."""
        try:
            found = store.get(SECRETS, namespace, name).read(Secret)
        except NotFound:
            return None
        return decoded(found.string_data, found.data)
