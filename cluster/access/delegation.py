"""Who decides in place of the roles here about the objects of a cluster that has rights of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Hashable

    from cluster.access.authorizer import Actor
    from cluster.access.roles import Everywhere


class Authorizer(Protocol):
    """Decides what people may do with the objects of a cluster.

    Its methods may ask that cluster, so none is called in an event loop. Where nothing is known of
    somebody's rights because the cluster does not answer, ServiceUnavailable says so.
    """

    def decides(self, resource: str) -> bool:
        """Say whether a resource (by its id, perhaps with a subresource) is of that cluster."""

    def allowed(self, actor: Actor, verb: str, resource: str, namespace: str) -> bool:
        """Say whether the actor may do the verb, as far as it was last told."""

    def require(self, actor: Actor, verb: str, resource: str, namespace: str, name: str) -> None:
        """Raise Forbidden unless the actor may do the verb; for a change what was told some time ago does not do."""

    def namespaces(self, actor: Actor, verb: str, resource: str) -> frozenset[str] | Everywhere:
        """Return where the actor may do the verb."""

    def scope(self, actor: Actor) -> Hashable:
        """Return a value that is the same for actors who may do the same, and another one when that changes; never raises."""

    @property
    def remedy(self) -> str:
        """Whom to ask for a right, in a sentence."""
