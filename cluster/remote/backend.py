"""The backend of a cluster with an API of its own: a change is a call of that API, and the store is its mirror.

A change passes, in this order: the right, as everywhere (`cluster.api.rights`); the call, in which the cluster's own
admission decides; the mirror, so that who wrote reads what he wrote; the audit. What goes away is taken out of the
mirror by the watch alone, and waited for: only it knows what else happened before.

Controllers do not run here but history, which only reads: the cluster has its
own. What belongs to them (status, bindings) is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Unpack

from django.conf import settings

from cluster.access import Actor
from cluster.access.authorizer import Authorizer
from cluster.backend import Backend, Carried, Creation, EvictOptions, Nodes
from cluster.remote.door import changing, creation, deletion, preview, server
from cluster.remote.door.authorizer import ClusterAuthorizer
from cluster.remote.logs.nodes import RemoteNodes
from cluster.remote.mirroring.ways import READERS
from cluster.runtime.registry import Registration
from cluster.store import Group, Store, Stored
from kube import usage
from kube.errors import ApiError
from kube.resources import Resource


class Remote:
    """The backend that asks a cluster's API server."""

    batch = 20
    is_mirror = True
    schedulers = usage.VOLCANO
    create = staticmethod(creation.create)
    create_many = staticmethod(creation.create_many)
    create_with_owned = staticmethod(creation.create_with_owned)
    update = staticmethod(changing.update)
    patch = staticmethod(changing.patch)
    delete = staticmethod(deletion.delete)
    delete_many = staticmethod(deletion.delete_many)
    review = staticmethod(preview.review)

    @cached_property
    def nodes(self) -> RemoteNodes:
        """The cluster's nodes, asked by way of its API."""
        return RemoteNodes()

    def nodes_for(self, actor: Actor) -> Nodes:
        """The same nodes, asked in the name of the actor where people act as themselves."""
        return self.nodes.acting_as(server.acting_as(actor))

    @cached_property
    def authorizer(self) -> Authorizer | None:
        """The cluster itself where people act as themselves there; otherwise the roles here hold."""
        return ClusterAuthorizer() if settings.IMPERSONATE else None

    def create_each(
        self, creations: Sequence[Creation], more: Callable[[], Sequence[Creation]]
    ) -> list[Stored | Exception]:
        """Refused: requests to our own API, which is not served beside another one."""
        return [server.not_here("creating for several clients") for _ in creations]

    def scale(self, actor: Actor, verb: str, resource: Resource, *_: Any, **__: Any) -> Stored:
        """Refused, as `create_each`."""
        raise server.not_here("scaling")

    def apply(self, actor: Actor, resource: Resource, *_: Any, **__: Any) -> tuple[Stored, bool]:
        """Refused, as `create_each`."""
        raise server.not_here("server-side apply")

    def bind(self, actor: Actor, namespace: str, name: str, node: str, **_: Any) -> Stored:
        """Refused: the cluster's scheduler places pods."""
        raise server.not_here("binding pods")

    def evict(self, actor: Actor, namespace: str, name: str, **how: Unpack[EvictOptions]) -> Stored:
        """Refused, as `create_each`."""
        raise server.not_here("evicting pods")

    def commit(
        self, cursor: str, groups: Sequence[Group], now: int, using: Store
    ) -> list[list[Stored] | ApiError] | None:
        """Refuse a controller's plan: the cluster has controllers of its own."""
        return [server.not_here("a controller of ours") for _ in groups]

    def may_plan(self, registration: Registration, shard: int, using: Store) -> bool:
        """Always: what runs here only reads."""
        return True

    def owes(self, registration: Registration, shard: int, using: Store) -> bool:
        """Never: nothing is written."""
        return False

    def carry_out(self, registration: Registration, shard: int, using: Store) -> Carried | float:
        """Never asked: nothing is owed."""
        raise NotImplementedError

    def runs(self, registration: Registration) -> bool:
        """Only history runs, which writes nothing into the cluster."""
        return registration.name in READERS

    def refusal(self, verb: str, resource: str) -> str:
        """Say why nobody may do a verb to a resource here; "" leaves it to people's roles."""
        return server.permits().refusal(verb, resource)


_is_a_backend: Backend = Remote()
