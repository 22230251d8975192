"""What a request asks for, read from its method and path alone (reference: kubernetes-api §2.1)."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote

from kube import resources
from kube.resources import Resource

LONGEST_PATH = 8192  # characters; names are far shorter
NAMESPACE_PARTS = frozenset({"status", "finalize"})  # below /namespaces/x these are not resources
COLLECTION_VERBS = {"GET": "list", "HEAD": "list", "POST": "create", "DELETE": "deletecollection"}
OBJECT_VERBS = {"GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


@dataclass(frozen=True)
class RequestInfo:
    """The parts of a path.

    A path outside /api/<version>/… and /apis/<group>/<version>/… asks for no
    resource: then only `verb` (the method in lower case) and `path` are set.
    `resource` is None when nothing is served under that name. `verb` is ""
    when the method means nothing there.
    """

    verb: str
    path: str
    is_resource: bool = False
    group: str = ""
    version: str = ""
    plural: str = ""
    resource: Resource | None = None
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def target(self) -> str:
        """The target of the right: the resource's id, with the subresource after a slash."""
        if self.resource is not None:
            base = self.resource.id
        else:
            base = f"{self.plural}.{self.group}" if self.group else self.plural
        return f"{base}/{self.subresource}" if self.subresource else base


def parse(method: str, raw_path: str, *, watch: bool = False) -> RequestInfo | None:
    """Return what a request is about; None for a path that cannot name anything.

    raw_path is percent-encoded: a slash in it that was encoded belongs to a name, and no name holds one.
    """
    parts = _segments(raw_path)
    if parts is None:
        return None
    path = "/" + "/".join(parts)
    if len(parts) >= 3 and parts[0] == "api":
        group, version, rest = "", parts[1], parts[2:]
    elif len(parts) >= 4 and parts[0] == "apis":
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return RequestInfo(method.lower(), path)
    if rest and rest[0] == "watch" and len(rest) > 1:  # the deprecated form of watch
        rest, watch = rest[1:], True
    return _resource_info(method, path, group, version, rest, watch=watch)


def _segments(raw_path: str) -> list[str] | None:
    if len(raw_path) > LONGEST_PATH or not raw_path.startswith("/"):
        return None
    try:
        parts = [unquote(part, errors="strict") for part in raw_path.strip("/").split("/")]
    except UnicodeDecodeError:
        return None
    if parts == [""]:
        return []
    odd = any(part in ("", ".", "..") or "/" in part or not part.isprintable() for part in parts)
    return None if odd else parts


def _resource_info(
    method: str, path: str, group: str, version: str, parts: list[str], *, watch: bool
) -> RequestInfo | None:
    namespace = ""
    if parts[0] == "namespaces" and len(parts) > 2 and parts[2] not in NAMESPACE_PARTS:
        namespace, parts = parts[1], parts[2:]
    if len(parts) > 3:
        return None
    plural, name, subresource = (*parts, "", "")[:3]
    verbs = OBJECT_VERBS if name else COLLECTION_VERBS
    verb = verbs.get(method, "")
    if subresource and method == "POST":
        verb = "create"
    if watch and verb in ("get", "list"):
        verb = "watch"
    return RequestInfo(
        verb,
        path,
        is_resource=True,
        group=group,
        version=version,
        plural=plural,
        resource=resources.by_path(group, version, plural),
        namespace=namespace,
        name=name,
        subresource=subresource,
    )
