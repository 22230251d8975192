"""What controllers read of a Command: an order to a job or a queue (reference: volcano-job §6.3).

A controller deletes a Command in the transaction that carries it out, so it
is carried out once and never lost.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from kube import resources
from kube.kinds.batch import Action
from kube.kinds.fields import View
from kube.meta import Object
from kube.owners import controller_reference
from kube.resources import COMMANDS, CREATOR_ANNOTATION, Resource

REASON = "CommandIssued"  # of the event for a Command that was accepted
NAMESPACE_OF_QUEUES = "default"  # where vcctl puts Commands to queues, which have no namespace


class CommandFact(Struct, frozen=True, kw_only=True):
    """A stored version of a Command."""

    namespace: str
    name: str
    uid: str
    revision: int
    action: str
    target: str  # the id of the target's resource; empty for an unknown kind
    target_name: str
    target_uid: str  # empty: whichever object has the name
    by: str  # who created it
    deleting: bool

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def target_key(self) -> str:
        """`namespace/name` of the target, if that lies in the Command's namespace."""
        return f"{self.namespace}/{self.target_name}"

    @property
    def request_text(self) -> str:
        """`alice asked for AbortJob`"""
        return f"{self.by} asked for {self.action}" if self.by else f"{self.action} was asked for"

    def is_for(self, uid: str) -> bool:
        """Whether the object with a uid is the target, not another one that had its name."""
        return self.target_uid in ("", uid)


def order(resource: Resource, namespace: str, name: str, uid: str, action: Action) -> Object:
    """Return a Command to an object, as vcctl makes it; namespace is the Command's own."""
    target = controller_reference(resource, name, uid)
    metadata = {"generateName": f"{name}-{action.lower()}-", "namespace": namespace, "ownerReferences": [target]}
    return {
        "apiVersion": COMMANDS.api_version,
        "kind": COMMANDS.kind,
        "metadata": metadata,
        "action": str(action),
        "target": target,
    }


class _Target(View):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""


class _Metadata(View):
    namespace: str = ""
    name: str = ""
    uid: str = ""
    deletion_timestamp: str = ""
    annotations: dict[str, str] = {}


class _Command(View):
    metadata: _Metadata = _Metadata()
    action: str = ""
    target: _Target = _Target()


_decode = msgspec.json.Decoder(_Command).decode


def read(body: bytes, revision: int) -> CommandFact:
    """Read what matters of a Command; msgspec.ValidationError if it is not one."""
    command = _decode(body)
    metadata, target = command.metadata, command.target
    resource = resources.by_kind(target.api_version, target.kind)
    return CommandFact(
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        revision=revision,
        action=command.action,
        target=resource.id if resource else "",
        target_name=target.name,
        target_uid=target.uid,
        by=metadata.annotations.get(CREATOR_ANNOTATION, ""),
        deleting=bool(metadata.deletion_timestamp),
    )
