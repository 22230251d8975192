"""The embedded cluster: the store is the truth, and a change is one transaction in it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial

from django.utils.module_loading import import_string

from cluster.access import Actor
from cluster.api import bulk, creation, owned, pods, preview, quota_room, verbs
from cluster.api.cluster_view import ClusterView
from cluster.backend import Backend, Carried, Nodes
from cluster.runtime.registry import Registration
from cluster.store import Group, Store, Stored
from kube import usage
from kube.errors import ApiError

NODES = "node.link.all_nodes.AllNodes"  # by its path: nodes stand above the cluster


class Embedded:
    """The backend whose objects, controllers and nodes are all here."""

    batch = bulk.BATCH
    is_mirror = False
    authorizer = None
    schedulers = usage.VOLCANO_ALONE
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
        """This machine's agent and the files that it keeps, and those of linked machines; simulated nodes have neither."""
        nodes: Nodes = import_string(NODES)()
        return nodes

    def nodes_for(self, actor: Actor) -> Nodes:
        """The same for everybody: they do what this process asks of them."""
        return self.nodes

    def commit(self, cursor: str, groups: Sequence[Group], now: int, using: Store) -> list[list[Stored] | ApiError]:
        """Write a plan to the store; the quotas are asked with the log's lock held."""
        return using.commit(groups, now=now, judge=partial(quota_room.check, ClusterView(using)))

    def may_plan(self, registration: Registration, shard: int, using: Store) -> bool:
        """Always: the store is the cluster."""
        return True

    def owes(self, registration: Registration, shard: int, using: Store) -> bool:
        """Never: a plan is done with its commit."""
        return False

    def carry_out(self, registration: Registration, shard: int, using: Store) -> Carried:
        """Never asked: nothing is owed."""
        raise NotImplementedError

    def runs(self, registration: Registration) -> bool:
        """Every controller runs here."""
        return True

    def refusal(self, verb: str, resource: str) -> str:
        """Nothing is refused for everybody."""
        return ""


_is_a_backend: Backend = Embedded()
