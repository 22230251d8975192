"""The kinds of cluster, as everything above them sees one (design: architecture, "Backends").

Whoever asks for a change to the cluster asks a `Backend`: the pages and the Kubernetes API for people and programs,
controllers and scheduler with their plans. Whoever wants to know what only a node knows (a container's output, a
command beside it, what it uses) asks its `nodes`. Which backend this process works with is `settings.BACKEND`;
`cluster.api` hands on its functions.

Reads are no part of it: every backend keeps its objects in the store, as the truth or as a mirror of it.
"""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, TypedDict, Unpack

from cluster.access import Actor
from cluster.access.authorizer import Authorizer
from cluster.runtime.registry import Registration
from cluster.store import Group, Store, Stored
from cluster.writes import Propagation
from kube import lenient
from kube.errors import ApiError, Cause, Invalid
from kube.meta import Object
from kube.resources import Resource

How = Literal["merge", "json", "strategic"]
Part = Literal["", "status", "finalize", "scale"]


class Options(TypedDict, total=False):
    """How a change is made; all of it may be left out.

    manager is noted to manage the fields that change (server-side apply). dry_run: do everything, store nothing and
    audit nothing. warn is called with what is merely odd about the object.
    """

    manager: str
    dry_run: bool
    warn: Callable[[str], None] | None


class PartOptions(Options, total=False):
    """The same, for a change that may be of one part of an object."""

    subresource: Part


class DeleteOptions(TypedDict, total=False):
    """How an object is deleted; all of it may be left out.

    uid and version (a resourceVersion) are preconditions. grace in seconds overrides the pod's own. propagation says what
    becomes of dependents; without it the kind's default holds.
    """

    uid: str
    version: str
    grace: int | None
    propagation: Propagation | None
    dry_run: bool


class EvictOptions(TypedDict, total=False):
    """How a pod is evicted: the preconditions and the grace of a deletion."""

    uid: str
    version: str
    grace: int | None
    dry_run: bool


class Creation(NamedTuple):
    """A new object that somebody asks for, with what `Options` says of it."""

    actor: Actor
    resource: Resource
    object: Object
    manager: str = ""
    warn: Callable[[str], None] | None = None


@dataclass(frozen=True)
class Admitted:
    """The outcome: the object with its defaults, what is wrong with it, and what is merely odd."""

    resource: Resource
    object: Object
    causes: tuple[Cause, ...] = ()
    warnings: tuple[str, ...] = ()
    error: ApiError | None = None
    dropped: tuple[str, ...] = ()  # fields of a custom resource that its schema does not know

    def checked(self) -> Object:
        """Return the object, or raise the error that says all that is wrong."""
        if self.error is not None:
            raise self.error
        if self.causes:
            raise Invalid.of(self.resource.group_kind, lenient.text(self.object, "metadata", "name"), self.causes)
        return self.object


class OwnedRefused(ApiError):
    """Nothing was stored, because some of what an object was to own was refused.

    refusals are the errors by the index of the object that was refused; code and reason are the first one's.
    """

    @classmethod
    def check(cls, outcomes: Sequence[object]) -> None:
        """Raise it when errors are among the outcomes."""
        refusals = {index: each for index, each in enumerate(outcomes) if isinstance(each, ApiError)}
        if refusals:
            raise cls(refusals, len(outcomes))

    def __init__(self, refusals: Mapping[int, ApiError], number: int) -> None:
        first = next(iter(refusals.values()))
        self.refusals = refusals
        self.code, self.reason = first.code, first.reason
        super().__init__(
            f"{len(refusals):,} of {number:,} were refused, so none is stored. {first.message}",
            noted=f"{len(refusals):,} of {number:,} were refused. {first.noted}",
        )


class Backend(Protocol):
    """One kind of cluster: who carries out changes and requests, and which controllers belong to it.

    Every change checks the actor's right first and leaves an audit row, done or
    not. What is wrong is an `ApiError`, with field paths in its causes.
    """

    @property
    def nodes(self) -> Nodes:
        """What answers for the nodes."""

    def nodes_for(self, actor: Actor) -> Nodes:
        """What answers for the nodes when an actor asks, whose right to what he asks for was checked before."""

    @property
    def authorizer(self) -> Authorizer | None:
        """Who decides about the cluster's objects in place of people's roles here; None where these hold."""

    @property
    def batch(self) -> int:
        """How many changes of one call may be made while the log's lock is held, so that others wait some 100 ms."""

    @property
    def schedulers(self) -> Collection[str]:
        """What pods that Volcano's scheduler places, be it ours or its own, name as their scheduler."""

    @property
    def is_mirror(self) -> bool:
        """Whether the objects in the store are a mirror, which only mirroring may change."""

    def create(self, actor: Actor, resource: Resource, obj: Object, **options: Unpack[Options]) -> Stored:
        """Store a new object."""

    def create_each(
        self, creations: Sequence[Creation], more: Callable[[], Sequence[Creation]]
    ) -> list[Stored | Exception]:
        """Store the objects of several requests, all of one kind; an outcome is that of `create`, or what it raises.

        `more` returns what came to these meanwhile. Its outcomes come last, when it is called at all.
        """

    def create_many(self, actor: Actor, resource: Resource, objs: Sequence[Object]) -> list[Stored | ApiError]:
        """Store many new objects of one kind; return the outcome of each, in the order given."""

    def create_with_owned(
        self, actor: Actor, resource: Resource, obj: Object, owned: Resource, objs: Sequence[Object]
    ) -> Stored:
        """Store a new object and many of one kind that it owns, or nothing of it (OwnedRefused); return the owner."""

    def update(self, actor: Actor, resource: Resource, obj: Object, **options: Unpack[PartOptions]) -> Stored:
        """Replace an object; a resourceVersion in it must be the stored one."""

    def patch(
        self,
        actor: Actor,
        resource: Resource,
        namespace: str,
        name: str,
        patch: Object | list[Object],
        *,
        how: How = "merge",
        **options: Unpack[PartOptions],
    ) -> Stored:
        """Change parts of an object."""

    def scale(
        self,
        actor: Actor,
        verb: str,
        resource: Resource,
        namespace: str,
        name: str,
        change: Callable[[Object], Object],
        **options: Unpack[Options],
    ) -> Stored:
        """Change how many replicas an object wants."""

    def apply(
        self,
        actor: Actor,
        resource: Resource,
        namespace: str,
        name: str,
        config: Object,
        *,
        manager: str,
        force: bool = False,
        subresource: Part = "",
        dry_run: bool = False,
        warn: Callable[[str], None] | None = None,
    ) -> tuple[Stored, bool]:
        """Lay what a manager wants over an object; say whether that created it."""

    def delete(
        self, actor: Actor, resource: Resource, namespace: str, name: str, **how: Unpack[DeleteOptions]
    ) -> Stored:
        """Delete an object; return its last state, or the one in which it waits to go."""

    def delete_many(
        self,
        actor: Actor,
        resource: Resource,
        keys: Sequence[tuple[str, str]],
        *,
        uids: Sequence[str] = (),
        grace: int | None = None,
        propagation: Propagation | None = None,
        dry_run: bool = False,
    ) -> list[Stored | ApiError]:
        """Delete objects of one kind by (namespace, name); return the outcome of each, in the order given.

        uids are preconditions, one for each key; "" stands for whichever object has the name.
        """

    def bind(
        self, actor: Actor, namespace: str, name: str, node: str, *, uid: str = "", dry_run: bool = False
    ) -> Stored:
        """Give an unscheduled pod its node."""

    def evict(self, actor: Actor, namespace: str, name: str, **how: Unpack[EvictOptions]) -> Stored:
        """Delete a pod if its disruption budget lets it go."""

    def review(self, actor: Actor, resource: Resource, obj: Object, *, update: bool = False) -> Admitted:
        """Say what would happen to an object, with causes and warnings, without changing or auditing anything."""

    def commit(
        self, cursor: str, groups: Sequence[Group], now: int, using: Store
    ) -> list[list[Stored] | ApiError] | None:
        """Carry out a controller's plan inside the transaction that moves its cursor, in the store it reads.

        A group that fails is left out whole, with its error as the outcome. None says that the plan is only
        written down: `carry_out` does it once the transaction has ended, and until then it is `owed`.
        """

    def may_plan(self, registration: Registration, shard: int, using: Store) -> bool:
        """Whether a consumer's shard may make a plan now: what it reads is whole, and nobody else does its work."""

    def owes(self, registration: Registration, shard: int, using: Store) -> bool:
        """Whether a plan of a shard is written down and not done; until it is, the shard makes no other."""

    def carry_out(self, registration: Registration, shard: int, using: Store) -> Carried | float:
        """Go on with the plan that is owed, outside any transaction; while some of it is on its way, say after how many seconds to look again.

        What was begun before is begun again where nobody knows what came of it, so that a crash loses nothing.
        """

    def runs(self, registration: Registration) -> bool:
        """Whether a consumer of the log runs in this kind of cluster."""

    def refusal(self, verb: str, resource: str) -> str:
        """Say why nobody may do a verb to a resource (by its id) in this cluster; "" leaves it to people's roles."""


class Carried(Protocol):
    """A plan that was carried out after its transaction."""

    @property
    def groups(self) -> Sequence[Group]:
        """The groups of the plan."""

    def settle(self) -> list[list[Stored] | ApiError]:
        """Note in the store what became of each group, and that the plan is not owed any more; call it inside a transaction."""


class NoLog(Exception):
    """There is no log to read; the message says why, for people."""


class NodeAway(NoLog):
    """The node that has the log cannot be asked now; the message says since when."""


class Line(NamedTuple):
    """One entry of a log, and the offset at which it begins. When it is not whole, the line goes on in the next entry of its stream."""

    time: str
    stream: str
    data: bytes
    whole: bool
    offset: int


class LogChunk(NamedTuple):
    """A stretch of a log: its entries, where it begins, and where the next read begins.

    Only the backend knows what an offset counts; it grows with the log and stays valid while the log rotates.
    """

    attempt: int
    lines: tuple[Line, ...]
    start: int
    next: int
    ended: bool  # the attempt is over and this is the end of its log
    skipped: int = 0  # bytes before `start` that were asked for and are gone, as far as the backend can tell

    @property
    def data(self) -> bytes:
        """What the container wrote, both streams together."""
        return b"".join(line.data + b"\n" * line.whole for line in self.lines)

    @property
    def text(self) -> str:
        """`data` as text; what is not UTF-8 is shown as replacement characters."""
        return self.data.decode(errors="replace")


class LogExtent(NamedTuple):
    """From where to where an instance's log is stored for now, in offsets."""

    uid: str
    container: str
    attempt: int
    first: int
    end: int
    ended: bool  # the attempt is over, so nothing is written behind `end`


class LogText(NamedTuple):
    """Which part of a log is requested as text; None where nothing limits it."""

    follow: bool = False
    timestamps: bool = False
    since_us: int | None = None
    tail_lines: int | None = None
    limit_bytes: int | None = None
    stream: str = ""  # "stdout", "stderr" or both


class Nodes(Protocol):
    """Requests to the node that runs a pod, as an API server sends them to a kubelet.

    A container's instance is a pod's uid, the container's name and the number of the attempt to run it, from 0; without a
    number the latest is meant. NoLog says that an instance has no log, or has none any more, NodeAway that its node
    cannot be asked.
    """

    @property
    def answer_at_once(self) -> bool:
        """Whether no node has to be asked over a network, so that nobody waits for an answer."""

    def on(self, node: str) -> Nodes:
        """Return what answers for one node, by its name."""

    def away(self, node: str) -> str:
        """Say in a sentence that a node cannot be asked now, and since when; "" when it can."""

    @property
    def offsets_are_bytes(self) -> bool:
        """Whether the difference of two offsets says how many bytes lie between them."""

    def log_attempts(self, uid: str, container: str) -> list[int]:
        """Return the attempts of a container that have a log, in order."""

    def log_extents(self, pods: Mapping[str, str]) -> list[LogExtent]:
        """Return what is kept of the logs of pods, given by uid and the name of their node: of each container each attempt, in order.

        Of a node that is away there is nothing. The pods' other logs are found by their uids from then on. It is asked several times a second for hundreds of pods, so it must cost next to nothing where
        nothing was written.
        """

    def read_log(
        self, uid: str, container: str, attempt: int | None = None, *, since_offset: int = 0, most: int | None = None
    ) -> LogChunk:
        """Return a stretch of a log from an offset on, of at most about so many bytes."""

    def tail_log(
        self,
        uid: str,
        container: str,
        attempt: int | None = None,
        *,
        lines: int,
        most: int | None = None,
        before: int | None = None,
    ) -> LogChunk:
        """Return the last lines of a log, or of its part before an offset, of at most so many bytes."""

    def log_offset(self, uid: str, container: str, attempt: int, since_us: int) -> int:
        """Return the offset at which the entries of a time (epoch µs) and later begin."""

    def why_no_log(self, pod: Object) -> str:
        """Say in a sentence why a pod has no log."""

    async def log_text(self, uid: str, container: str, attempt: int, wanted: LogText) -> AsyncIterator[bytes]:
        """Return the wanted part of a log, as it comes; when it is followed, until the instance ends."""

    async def log_output(self, uid: str, container: str, attempt: int) -> AsyncIterator[list[tuple[str, bytes]]]:
        """Return what an instance writes from now on, as (stream, bytes), until it ends."""

    def connect(self, request: dict[str, Any], fds: list[int]) -> socket.socket:
        """Hand a request (exec, attach) and descriptors to the node; answers come as lines of JSON.

        OSError when nobody answers there. What was asked for ends with the socket. Where an answer has
        `"tells": "sizes"`, whoever changes the size of a terminal says so on the socket: `{"size": [width, height]}`.
        """

    def usage(self, now: int) -> list[dict[str, Any]]:
        """Return the latest figures of what nodes and their containers use, of each node that has some."""
