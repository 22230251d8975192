"""The writes that a plan consists of: data, without the store that carries them out.

Rules return them, so nothing here may need Django.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol

from msgspec import Struct, field

from kube.kinds.pod import OUT_OF_SYNC
from kube.meta import Object
from kube.resources import PODS, Resource

Propagation = Literal["Background", "Foreground", "Orphan"]


class Create(Struct, frozen=True):
    """Make a new object. `generateName` is honoured; uid, timestamps and versions are the store's.

    `uid` is for admission alone, which has to write it into the object.
    """

    resource: Resource
    object: Object
    uid: str = ""


class Update(Struct, frozen=True):
    """Replace an object. A resourceVersion or uid in it is a precondition.

    With subresource "status" only `status` is taken, and `managed` as the managedFields if given, with "finalize" only
    a namespace's `spec.finalizers`; otherwise, for kinds with a status subresource, the stored status stays.
    """

    resource: Resource
    object: Object
    subresource: Literal["", "status", "finalize"] = ""
    managed: list[Object] | None = None


class Patch(Struct, frozen=True):
    """Apply a JSON merge patch (RFC 7396).

    "status" touches only `status`. "binding" places a pod: it may set `spec.nodeName` and `status.conditions`, and is a
    Conflict when the pod is bound already or being deleted. `uid` and `version` (a resourceVersion) are preconditions
    when given.
    """

    resource: Resource
    namespace: str
    name: str
    patch: Object
    subresource: Literal["", "status", "binding"] = ""
    uid: str = ""
    version: str = ""


class Delete(Struct, frozen=True):
    """Delete an object, gracefully where its kind and finalizers ask for it.

    `grace` in seconds overrides the pod's own; 0 removes it at once.
    `uid` and `version` (a resourceVersion) are preconditions when given.
    """

    resource: Resource
    namespace: str
    name: str
    uid: str = ""
    version: str = ""
    grace: int | None = None
    propagation: Propagation = "Background"


class Mirror(Struct, frozen=True):
    """Keep an object of another cluster's API server as it came, but for fields that are null.

    Its uid, times, generation, managedFields and resourceVersion stay; only the log's revision is ours. It is ADDED
    when its name is free and MODIFIED when its version is another than the stored one; with the same version nothing
    happens. Only mirroring should change it: another write gives it a number of ours as its version. When something
    else has the name, by its uid, that is DELETED first. With `deleted` the object is DELETED as it last was; when it
    is not here (any more), nothing happens and what comes back has revision 0.

    `at` is the version of the cluster that shows the object so, its own one unless given: what is stored of a newer
    version stays. With `anew` versions count for nothing, because those of the cluster have begun anew.
    """

    resource: Resource
    object: Object
    deleted: bool = False
    at: str = ""
    anew: bool = False


Write = Create | Update | Patch | Delete | Mirror


class Timer(Struct, frozen=True):
    """Ask to look at `key` again at `due` (epoch ms), for the reason that `kind` names.

    A consumer has one timer for a kind and key: of two the sooner time stays, and the newer payload.
    """

    kind: str
    key: str
    due: int
    payload: dict[str, Any] = field(default_factory=dict)


class Minimum(Struct, frozen=True):
    """At least `need` of the writes at these indexes of a group."""

    need: int
    among: Sequence[int]


class Decision(Struct, frozen=True):
    """What the scheduler decided about a pod group, kept for whoever asks later (`cluster.store.decisions`).

    `at` is in epoch ms. kind is a word of `scheduler.decided.Kind`, reason a word of a closed list of that kind, message a
    sentence with numbers. pods is how many it is about and nodes are theirs, each with how many of them; other is the
    pod group, as namespace/name, for which pods of this one go.
    """

    at: int
    kind: str
    reason: str
    namespace: str
    name: str
    queue: str
    pods: int
    message: str
    other: str = ""
    nodes: Sequence[tuple[str, int]] = ()


class Group(Struct, frozen=True):
    """Writes that are done all or not at all; `key` names the group to whoever planned it.

    With `within_quota` the group fails unless the ResourceQuotas of their namespace have room for all pods that it
    creates, at the moment of the writing. The timers of a consumer that `cancel` names, by kind and key, go with the
    group, and then `timers` are set: neither happens if it fails. Nor are its `decisions` kept then.

    A cluster with an API of its own takes one write after the other. There `announced` is written before
    the rest, for whoever goes on if this process cannot, and the bindings that were made are taken back
    unless they fulfil all `minima`: the gang would be below its minimum.
    """

    writes: Sequence[Write]
    key: str = ""
    within_quota: bool = False
    timers: Sequence[Timer] = ()
    cancel: Sequence[tuple[str, str]] = ()
    minima: Sequence[Minimum] = ()
    announced: Sequence[Write] = ()
    decisions: Sequence[Decision] = ()


class Record(Struct, frozen=True):
    """What is stored of an object beyond its life; it replaces an older record of the object.

    `trouble` and `terms` are those of its `kube.resource.Index`. `revision` is the place in the log up to which
    `history` tells everything, `deleted` is in epoch ms and 0 while the object lives. `object` is its last JSON; what `history` is, the object's own package knows.
    """

    resource: Resource
    namespace: str
    name: str
    uid: str
    phase: str
    queue: str
    creator: str
    created: int
    deleted: int
    revision: int
    object: bytes
    history: bytes = b""
    trouble: str = ""
    terms: str = ""


class Named(Protocol):
    """Something with the namespace, name and uid of a pod."""

    @property
    def namespace(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def uid(self) -> str: ...


def removal(pods: Sequence[Named]) -> list[Write]:
    """Return the writes that have pods made again by their controllers."""
    mark = {"metadata": {"annotations": {OUT_OF_SYNC: "true"}}}
    return [
        *(Patch(PODS, pod.namespace, pod.name, mark, uid=pod.uid) for pod in pods),
        *(Delete(PODS, pod.namespace, pod.name, uid=pod.uid) for pod in pods),
    ]
