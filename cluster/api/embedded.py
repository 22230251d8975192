"""The embedded cluster: the store is the truth, and a change is one transaction in it."""

from __future__ import annotations

from functools import cached_property, partial
from typing import TYPE_CHECKING

from django.utils.module_loading import import_string

from cluster.api import creation, owned, pods, preview, quota_room, verbs
from cluster.api.cluster_view import ClusterView

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cluster.backend import Backend, Nodes
    from cluster.runtime.registry import Registration
    from cluster.store import Group, Store, Stored
    from kube.errors import ApiError

NODES = "node.local_nodes.LocalNodes"  # by its path: nodes stand above the cluster


class Embedded:
    """The backend whose objects, controllers and nodes are all here."""

    create = staticmethod(creation.create)
    create_each = staticmethod(creation.create_each)
    create_many = staticmethod(creation.create_many)
    create_with_owned = staticmethod(owned.create_with_owned)
    update = staticmethod(verbs.update)
    patch = staticmethod(verbs.patch)
    scale = staticmethod(verbs.scale)
    apply = staticmethod(verbs.apply)
    delete = staticmethod(verbs.delete)
    delete_many = staticmethod(verbs.delete_many)
    bind = staticmethod(pods.bind)
    evict = staticmethod(pods.evict)
    review = staticmethod(preview.review)

    @cached_property
    def nodes(self) -> Nodes:
        """This machine's agent and the files that it keeps; simulated nodes have neither."""
        nodes: Nodes = import_string(NODES)()
        return nodes

    def commit(self, groups: Sequence[Group], now: int, using: Store) -> list[list[Stored] | ApiError]:
        """Write a plan to the store; the quotas are asked with the log's lock held."""
        return using.commit(groups, now=now, judge=partial(quota_room.check, ClusterView(using)))

    def runs(self, registration: Registration) -> bool:
        """Every controller runs here."""
        return True


if TYPE_CHECKING:
    _is_a_backend: Backend = Embedded()
