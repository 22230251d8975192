"""What a request is one of: a verb on a resource, in a form. Recordings and tests are told apart by it."""

from __future__ import annotations

from typing import NamedTuple

from apiserver.http import path as paths
from proof.traffic.exchange import is_watch

OTHER = "(other paths)"
BODIES = {
    "application/strategic-merge-patch+json": "strategic merge",
    "application/merge-patch+json": "merge",
    "application/json-patch+json": "JSON patch",
    "application/apply-patch+yaml": "apply",
    "application/vnd.kubernetes.protobuf": "protobuf",
    "application/json": "JSON",
    "application/yaml": "YAML",
}
REPRESENTATIONS = {"as=Table": "Table", "as=PartialObjectMetadata": "metadata", "as=APIGroupDiscovery": "aggregated"}


class Use(NamedTuple):
    """One row of the table."""

    resource: str  # with its group, and its subresource after a slash; or OTHER
    verb: str
    form: str  # of the body, or of the answer to a read

    @property
    def key(self) -> str:
        """Return it as a text, which the tests are kept under."""
        return " ".join((self.verb, self.resource, self.form))


def of(method: str, path: str, content_type: str, accept: str, *, has_body: bool) -> Use:
    """Return what a request is one of."""
    plain = path.partition("?")[0]
    info = paths.parse(method, plain, watch=is_watch(path) and method == "GET")
    form = BODIES.get(content_type.partition(";")[0].strip(), content_type) if has_body else _answer(accept)
    if info is None or not info.is_resource:
        return Use(OTHER, f"{method} {_stem(plain)}", form)
    verb = "watch" if info.verb in {"get", "list"} and is_watch(path) else info.verb or method
    group = f".{info.group}" if info.group else ""
    part = f"/{info.subresource}" if info.subresource else ""
    return Use(f"{info.plural}{group}{part}", verb, form)


def _answer(accept: str) -> str:
    first = accept.partition(",")[0]
    for mark, name in REPRESENTATIONS.items():
        if mark in first:
            return name
    return BODIES.get(first.partition(";")[0], "") if "protobuf" in first or "yaml" in first else "JSON"


def _stem(path: str) -> str:
    """Return a path of no resource without what is of one group or version."""
    parts = path.strip("/").split("/")
    if parts[0] == "openapi":
        return "/" + "/".join([*parts[:2], *(["…"] if len(parts) > 2 else [])])
    if parts[0] in {"api", "apis"}:
        return "/" + "/".join([parts[0], *(["…"] if len(parts) > 1 else [])])
    return f"/{parts[0]}"
