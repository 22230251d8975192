"""Who may do what where people act as themselves: the cluster decides, and is asked in their names.

So its roles are all that counts for its objects, in what is shown, in what is offered and in what is done. Ours count for
accounts and the audit. While the cluster is away, what it said last counts for reading; changes are refused.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import partial
from typing import TypeVar

from cluster import clock
from cluster.access import Actor, authorizer, roles
from cluster.access.authorizer import Authorizer
from cluster.access.roles import Everywhere
from cluster.api.rights import QUEUE_STATE
from cluster.remote.door import reviews, server, viewer
from cluster.remote.door.access_rules import Question
from cluster.remote.door.reviews import Unanswered
from cluster.remote.door.viewer import Reviews, Viewer
from cluster.remote.http.request import Impersonation, Unreachable
from cluster.remote.mirroring import ways
from cluster.store import store
from kube import resources
from kube.errors import ServiceUnavailable
from kube.resources import COMMANDS, NAMESPACES
from kube.volcano.commands import NAMESPACE_OF_QUEUES

T = TypeVar("T")

AWAY_S = 2.0  # for which nothing is requested of a cluster that did not answer
NAMES_S = 1.0  # for which the names of namespaces are remembered
MAX_VIEWERS = 1000


class ClusterAuthorizer:
    """The rights of a cluster with an API of its own. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._viewers: OrderedDict[Impersonation, Viewer] = OrderedDict()
        self._away_until, self._away = 0.0, ""
        self._names: tuple[float, list[str]] = (float("-inf"), [])

    def decides(self, resource: str) -> bool:
        """Say whether a resource is of the cluster."""
        return ways.is_of_cluster(resource)

    def allowed(self, actor: Actor, verb: str, resource: str, namespace: str) -> bool:
        """Say whether the cluster allows it, by its last answer."""
        person = self._viewer(actor)
        return person is not None and self._answer(person.allows, _question(verb, resource, namespace))

    def require(self, actor: Actor, verb: str, resource: str, namespace: str, name: str) -> None:
        """Raise Forbidden unless the cluster allows it; a change needs an answer of now."""
        question, person = _question(verb, resource, namespace, name), self._viewer(actor)
        is_allowed = person is not None and self._answer(person.allows, question)
        if person is not None and verb not in ways.READS and not person.is_fresh(question):
            raise self._unanswered(f"{self._away}, so whether you may do this is not known, and nothing was changed")
        if not is_allowed:
            who = server.impersonation(actor)
            user = who.user if who else actor.name
            why = person.refusal(question) if person else ""
            way = f"The cluster does not tell what {user} may do: {why}" if why else self.remedy
            text = authorizer.cannot(user, question.verb, question.resource, question.namespace, question.name)
            raise authorizer.refused(f"{text}. {way}", resource, name)

    def namespaces(self, actor: Actor, verb: str, resource: str) -> frozenset[str] | Everywhere:
        """Return where the cluster allows it, among the namespaces that the mirror shows."""
        person = self._viewer(actor)
        if person is None:
            return frozenset()
        base = resources.by_id(resource.partition("/")[0])
        names = self._namespaces() if base.namespaced or base == NAMESPACES else []
        return self._answer(person.namespaces, verb, resource, names)

    def scope(self, actor: Actor) -> Hashable:
        """Return what the cluster allows, as a value to compare."""
        person = self._viewer(actor)
        return None if person is None else person.scope(self._namespaces())

    @property
    def remedy(self) -> str:
        """Who can give a right."""
        return f"The cluster {server.target().name} decides this; ask who administers it for a role there."

    def _answer(self, ask: Callable[..., T], *arguments: object) -> T:
        try:
            return ask(*arguments)
        except Unanswered as error:
            raise self._unanswered(f"{error}, and what you may see and do there is not known yet") from None

    def _unanswered(self, why: str) -> ServiceUnavailable:
        name = server.target().name
        return ServiceUnavailable(f"The cluster {name} does not answer: {why}. Try again later.")

    def _viewer(self, actor: Actor) -> Viewer | None:
        """Return an actor as the cluster sees him; None for somebody who has no user there."""
        who = server.impersonation(actor)
        if who is None:
            return None
        with self._lock:
            reviews_of = Reviews(partial(self._ask, reviews.rules, who), partial(self._ask, reviews.access, who))
            person = self._viewers.pop(who, None) or Viewer(who, reviews_of)
            self._viewers[who] = person
            if len(self._viewers) > MAX_VIEWERS:
                self._viewers.popitem(last=False)
        return person

    def _ask(self, review: Callable[..., T], who: Impersonation, about: object) -> T:
        """Ask the cluster, unless it has just not answered: each question would wait as long for that."""
        if clock.monotonic() < self._away_until:
            raise Unanswered(self._away)
        try:
            return review(server.connection(), who, about)
        except (Unanswered, Unreachable) as error:
            why = error.cause if isinstance(error, Unreachable) else str(error)
            self._away_until, self._away = clock.monotonic() + AWAY_S, why
            raise Unanswered(why) from None

    def _namespaces(self) -> list[str]:
        until, names = self._names
        if until < clock.monotonic():
            names = sorted(key.partition("/")[2] for key in store.names(NAMESPACES).values())
            self._names = clock.monotonic() + NAMES_S, names
        return names


def _question(verb: str, resource: str, namespace: str, name: str = "") -> Question:
    """Return the cluster's question for a right of ours; Volcano's queues are opened and closed by Commands."""
    if resource == QUEUE_STATE:
        return viewer.question("create", COMMANDS.id, NAMESPACE_OF_QUEUES)
    return viewer.question(verb, resource, "" if namespace == roles.EVERYWHERE else namespace, name)


_decides: Authorizer = ClusterAuthorizer()
