"""Discovery: which groups, versions and resources are served, in the legacy and the aggregated form.

Everything comes from the resource table, so a custom resource appears and
disappears with it (reference: kubernetes-api §3.1). A client that asks for the
aggregated form gets everything in two answers, `/api` and `/apis`; an older one
asks for each group and version. kubectl tries resources of the same name in
the order of the groups, which is why that order is Kubernetes' own.
"""

from __future__ import annotations

import base64
import hashlib
import re
from functools import lru_cache
from operator import is_
from typing import Any, NamedTuple

import msgspec
from starlette.responses import Response

from apiserver.http import forms, routes
from apiserver.http.request import Request
from kube import resources
from kube.errors import NotAcceptable, NotFound
from kube.meta import Object
from kube.resources import Resource, Subresource

# The order in which Kubernetes lists its own groups; custom groups follow, and metrics come last.
GROUPS = (
    "", "apps", "events.k8s.io", "authentication.k8s.io", "authorization.k8s.io", "autoscaling", "batch",
    "networking.k8s.io", "policy", "rbac.authorization.k8s.io", "storage.k8s.io", "apiextensions.k8s.io",
    "scheduling.k8s.io", "coordination.k8s.io", "discovery.k8s.io",
)  # fmt: skip
LAST_GROUP = "metrics.k8s.io"
AGGREGATED = "apidiscovery.k8s.io"
AGGREGATED_VERSIONS = ("v2", "v2beta1")

_VERSION = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")
_STAGES = {"alpha": 0, "beta": 1, None: 2}


class Document(NamedTuple):
    """A document as it is sent, and by what a client knows that its copy is still right."""

    body: bytes
    etag: str


class Group(NamedTuple):
    """A group, its versions in order of preference and the resources of each."""

    name: str
    versions: dict[str, list[Resource]]


class Discovery:
    """All documents for one state of the resource table; each is made when first asked for."""

    def __init__(self, served: tuple[Resource, ...]) -> None:
        self.served = served
        by_group: dict[str, dict[str, list[Resource]]] = {}
        for resource in served:
            by_group.setdefault(resource.group, {}).setdefault(resource.version, []).append(resource)
        ranks = {name: rank for rank, name in enumerate(GROUPS)}
        names = sorted(by_group, key=lambda name: (name == LAST_GROUP, ranks.get(name, len(ranks))))
        self.groups = {
            name: Group(name, {version: by_group[name][version] for version in sorted(by_group[name], key=rank)})
            for name in names
        }
        self._documents: dict[tuple[str, str], Document] = {}

    def of(self, path: str, form: str) -> Document | None:
        """Return the document at path, `/api` or `/apis` or below; form is `v2`, `v2beta1` or empty for legacy."""
        form = form if path in ("/api", "/apis") else ""
        if (path, form) not in self._documents:
            content = self._aggregated(path, form) if form else self._legacy(path)
            if content is None:
                return None
            body = msgspec.json.encode(content) + b"\n"
            self._documents[path, form] = Document(body, f'"{hashlib.sha512(body).hexdigest().upper()}"')
        return self._documents[path, form]

    def _aggregated(self, path: str, version: str) -> Object:
        groups = [group for group in self.groups.values() if (path == "/api") == (not group.name)]
        return {
            "kind": "APIGroupDiscoveryList",
            "apiVersion": f"{AGGREGATED}/{version}",
            "metadata": {},
            "items": [_group_discovery(group) for group in groups],
        }

    def _legacy(self, path: str) -> Object | None:
        names = path.removeprefix("/").split("/")
        if names == ["apis"]:
            groups = [_api_group(group) for group in self.groups.values() if group.name]
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
        if names[0] == "api":
            names.insert(1, "")
        group = self.groups.get(names[1]) if len(names) in (2, 3) else None
        if group is None:
            return None
        if len(names) == 3:
            served = group.versions.get(names[2])
            return None if served is None else _api_resources(group.name, names[2], served)
        if group.name:
            return {"kind": "APIGroup", "apiVersion": "v1", **_api_group(group)}
        return {"kind": "APIVersions", "versions": list(group.versions), "serverAddressByClientCIDRs": []}


_latest: Discovery | None = None


def current() -> Discovery:
    """Return the documents for what is served at the moment."""
    global _latest
    served = resources.served()
    # Resources are equal by their id, so that only identity shows a change of one of them.
    if _latest is None or len(served) != len(_latest.served) or not all(map(is_, served, _latest.served)):
        _latest = Discovery(served)
    return _latest


def rank(version: str) -> tuple[int, int, int, str]:
    """Return a key that sorts versions as Kubernetes prefers them: v2, v1, v1beta2, v1beta1, v1alpha1, others."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return (1, 0, 0, version)
    return (-_STAGES[match[2]], -int(match[1]), -int(match[3] or 0), "")


def storage_hash(resource: Resource) -> str:
    """Return by what clients see that objects are stored in another version than before; Kubernetes' formula."""
    if not resource.stored:
        return ""
    form = resource.view_of or resource
    text = f"{form.group}/{form.version}/{form.kind}"
    return base64.b64encode(hashlib.sha256(text.encode()).digest()[:8]).decode()


def _without_empty(content: Object) -> Object:
    return {key: value for key, value in content.items() if value not in ("", [], ())}


def _group_version(group: str, version: str) -> str:
    return f"{group}/{version}" if group else version


def _api_group(group: Group) -> Object:
    versions = [{"groupVersion": _group_version(group.name, version), "version": version} for version in group.versions]
    return {"name": group.name, "versions": versions, "preferredVersion": versions[0]}


def _api_resources(group: str, version: str, served: list[Resource]) -> Object:
    listed = []
    for resource in sorted(served, key=lambda resource: resource.plural):
        content = {
            "name": resource.plural,
            "singularName": resource.singular,
            "namespaced": resource.namespaced,
            "kind": resource.kind,
            "verbs": sorted(resource.verbs),
            "shortNames": resource.short_names,
            "categories": resource.categories,
            "storageVersionHash": storage_hash(resource),
        }
        listed.append(_without_empty(content))
        listed += [_api_subresource(resource, part) for part in _parts(resource)]
    head = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": _group_version(group, version)}
    return {**head, "resources": listed}


def _parts(resource: Resource) -> list[Subresource]:
    return sorted(resource.parts, key=lambda part: part.name)


def _api_subresource(resource: Resource, part: Subresource) -> Object:
    content = {
        "name": f"{resource.plural}/{part.name}",
        "group": part.group if part.kind else "",
        "version": part.version if part.kind else "",
        "namespaced": resource.namespaced,
        "kind": part.kind or resource.kind,
        "verbs": sorted(part.verbs),
    }
    return {"singularName": "", **_without_empty(content)}


def _group_discovery(group: Group) -> Object:
    versions = [
        {
            "version": version,
            "resources": [
                _resource_discovery(resource) for resource in sorted(served, key=lambda resource: resource.plural)
            ],
            "freshness": "Current",
        }
        for version, served in group.versions.items()
    ]
    # The name of the core group is empty, and Go leaves what is empty out.
    return {"metadata": _without_empty({"name": group.name}), "versions": versions}


def _kind(group: str, version: str, kind: str) -> Object:
    return {"group": group, "version": version, "kind": kind}


def _resource_discovery(resource: Resource) -> Object:
    content = {
        "resource": resource.plural,
        "responseKind": _kind(resource.group, resource.version, resource.kind),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": sorted(resource.verbs),
        "shortNames": resource.short_names,
        "categories": resource.categories,
        "subresources": [_subresource_discovery(resource, part) for part in _parts(resource)],
    }
    return _without_empty(content)


def _subresource_discovery(resource: Resource, part: Subresource) -> Object:
    kind = (part.group, part.version, part.kind) if part.kind else ()
    return {
        "subresource": part.name,
        "responseKind": _kind(*(kind or (resource.group, resource.version, resource.kind))),
        "verbs": sorted(part.verbs),
    }


@lru_cache(maxsize=256)
def wanted(accept: str) -> str:
    """Return the form that an Accept header asks for: `v2`, `v2beta1`, or empty for legacy; NotAcceptable else."""
    for media_type, parameters in forms.clauses(accept):
        if media_type not in ("application/json", "application/*", "*/*"):
            continue
        if "as" not in parameters:
            return ""
        requested = (parameters["as"], parameters.get("g"))
        if requested == ("APIGroupDiscoveryList", AGGREGATED) and parameters.get("v") in AGGREGATED_VERSIONS:
            return parameters["v"]
    raise NotAcceptable.of(("application/json",))


@routes.path("/api", prefix=True)
async def api(request: Request) -> Response:
    """Answer with the versions and resources of the core group."""
    return _answer(request)


@routes.path("/apis", prefix=True)
async def apis(request: Request) -> Response:
    """Answer with the groups, their versions and resources."""
    return _answer(request)


def _answer(request: Request) -> Response:
    path = request.path.rstrip("/")
    form = wanted(request.headers.get("accept", ""))
    document = current().of(path, form)
    if document is None:
        raise NotFound()
    if path not in ("/api", "/apis"):
        return Response(document.body, media_type="application/json")
    return cached(request, document, media_type(form))


def media_type(form: str) -> str:
    """Return the Content-Type of `/api` and `/apis`; only by its parameters do clients know the aggregated form."""
    return f"application/json;g={AGGREGATED};v={form};as=APIGroupDiscoveryList" if form else "application/json"


def cached(request: Request, document: Document, content_type: str, **headers: Any) -> Response:
    """Answer with a document, or with 304 when the client has it already."""
    head = {"ETag": document.etag, "Vary": "Accept", "Cache-Control": "public", **headers}
    etags = request.headers.get("if-none-match", "")
    if etags == "*" or document.etag in (tag.strip().removeprefix("W/") for tag in etags.split(",")):
        return Response(status_code=304, headers=head)
    return Response(document.body, headers={**head, "Content-Type": content_type})
