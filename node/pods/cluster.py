"""What an agent asks of its cluster: the store of this machine (`node.pods.local_cluster`), or an API (`node.joined`)."""

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
    """The cluster does not know this node any more: its token was revoked, or has expired. The message says so."""


class Following(Protocol):
    """Where an agent is in its cluster's log, and what wakes it when there is more."""

    position: int

    @property
    def subscription(self) -> Any:
        """What is registered at the selector beside the descriptor that becomes readable when there is news."""

    def subscribe(self) -> None:
        """Have news wake the process, before it waits."""

    def hear(self) -> None:
        """Take note that the descriptor is readable."""

    def due(self) -> float:
        """Return the monotonic time at which `read` must be called although nothing was heard."""

    def hurry(self) -> None:
        """Have `read` ask the cluster at once."""

    def read(self, apply: Callable[[Change], None], reload: Callable[[], None]) -> None:
        """Hand on every change after the position, in order; `reload` is called where history does not reach back to it."""

    def close(self) -> None:
        """Hear no more."""


class Cluster(Protocol):
    """A cluster as an agent sees it. Every method may raise one of AWAY, and Dismissed.

    What was asked of a cluster that did not answer may have been done all the same.
    """

    @property
    def listener(self) -> Following:
        """What is heard of it."""

    @property
    def lookup(self) -> Lookup:
        """What containers are given from it."""

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
