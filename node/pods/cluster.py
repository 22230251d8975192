"""An agent's cluster: the store of this machine (`node.pods.local_cluster`), or an API (`node.joined`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from django.db import Error as DatabaseError

from cluster.remote.http.request import Unreachable
from cluster.store import Change, Group, Stored, Write
from kube.errors import ApiError
from kube.resources import Resource
from node.pods.environment import Lookup

AWAY = (DatabaseError, Unreachable)  # what a cluster raises that does not answer now


class Dismissed(Exception):
    """The cluster refuses this node: its token was revoked, or has expired. The message says so."""


class Following(Protocol):
    """Where an agent is in its cluster's log, and what wakes it when there is more."""

    position: int

    @property
    def subscription(self) -> Any:
        """What is registered at the selector beside the descriptor that becomes readable when there are changes."""

    def subscribe(self) -> None:
        """Have changes wake the process, before it waits."""

    def hear(self) -> None:
        """Handle that the descriptor is readable."""

    def due(self) -> float:
        """Return the monotonic time at which `read` must be called although the descriptor was not readable."""

    def hurry(self) -> None:
        """Have the next `read` query the cluster at once."""

    def read(self, apply: Callable[[Change], None], reload: Callable[[], None]) -> None:
        """Hand on every change after the position, in order; `reload` is called where history does not reach back to it."""

    def close(self) -> None:
        """End the subscription."""


class Cluster(Protocol):
    """A cluster as an agent sees it. Every method may raise one of AWAY, and Dismissed.

    A request that a cluster did not answer may have been carried out all the same.
    """

    @property
    def listener(self) -> Following:
        """Where the agent is in its log."""

    @property
    def lookup(self) -> Lookup:
        """Where ConfigMaps, Secrets and claims for containers are read."""

    def pods(self, node: str) -> tuple[int, list[Stored]]:
        """Return the pods that are bound to a node, and the revision at which they were so."""

    def get(self, resource: Resource, namespace: str, name: str) -> Stored:
        """Return one object or raise NotFound."""

    def events_about(self, namespace: str, uid: str) -> list[Stored]:
        """Return the events about an object that this node may add to, newest first."""

    def write(self, *writes: Write) -> list[Stored]:
        """Do all the writes or raise the first ApiError."""

    def commit(self, groups: Sequence[Group]) -> list[list[Stored] | ApiError]:
        """Do groups of writes; of one that fails its error stands in its place, and nothing of the rest is done."""
