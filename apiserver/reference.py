"""docs/kubernetes-api.md: what the API serves, written from the tables that serve it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from apiserver import handlers  # noqa: F401  handlers registers the paths
from apiserver.discovery import Discovery
from apiserver.health import MAJOR, MINOR
from apiserver.http import routes
from apiserver.openapi import parameters
from kube import resources
from kube.meta import Object
from kube.resource import Resource

VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")

_HEAD = f"""# The Kubernetes API

What the embedded cluster serves to kubectl, client libraries and vcctl, written by `manage.py apidocs` from the
tables that serve it; `make check` says when it is out of date. It answers as Kubernetes {MAJOR}.{MINOR} does, but for the
[differences](#differences), which are written by hand in [kubernetes-api-differences.md](kubernetes-api-differences.md).
Custom resources are served beside what is listed here, as their CustomResourceDefinitions say."""
_MEDIA = [
    ("Answers", "`application/json`, `application/yaml`"),
    (
        "Answers to reads",
        "the same as Table or PartialObjectMetadata: `;as=Table;g=meta.k8s.io;v=v1`, `;as=PartialObjectMetadata;…`",
    ),
    ("Watches", "one JSON event a line"),
    ("Bodies", "`application/json`, `application/yaml`, `application/vnd.kubernetes.protobuf`"),
    ("Patches", "`application/json-patch+json`, `application/merge-patch+json`, `application/apply-patch+yaml`"),
    ("Patches of all but custom resources", "also `application/strategic-merge-patch+json`"),
    (
        "`/api`, `/apis`",
        "also aggregated: `application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList`, and v2beta1",
    ),
    ("`/openapi/v2`", "also `application/com.github.proto-openapi.spec.v2@v1.0+protobuf`"),
]


def text(differences: str) -> str:
    """Return the whole page; differences is the part that is written by hand, without its title."""
    media = "## Media types", table(("Where", "Which"), _MEDIA)
    parts = [_HEAD, *_groups(), *_printed(), *_paths(), *media, *_parameters()]
    return "\n\n".join((*parts, "## Differences", differences.strip())) + "\n"


def _groups() -> Iterator[str]:
    yield "## Resources"
    yield "A row below a resource is one of its subresources."
    for group in Discovery(resources.BUILT_IN).groups.values():
        for version, served in group.versions.items():
            yield f"### {group.name}/{version}" if group.name else f"### {version}"
            rows = [row for resource in sorted(served, key=lambda one: one.plural) for row in _resource(resource)]
            yield table(("Resource", "Kind", "Short", "Scope", *VERBS), rows)


def _resource(resource: Resource) -> Iterator[Sequence[str]]:
    scope = "namespace" if resource.namespaced else "cluster"
    short = ", ".join(resource.short_names)
    yield (f"`{resource.plural}`", resource.kind, short, scope, *_marks(resource.verbs))
    for part in sorted(resource.parts, key=lambda part: part.name):
        yield (f"`{resource.plural}/{part.name}`", part.kind, "", "", *_marks(part.verbs))


def _marks(verbs: Iterable[str]) -> list[str]:
    return ["✓" if verb in verbs else "" for verb in VERBS]


def _printed() -> Iterator[str]:
    yield "## Columns and field selectors"
    yield "Columns in brackets are shown by `-o wide`. Every kind can be selected by metadata.name and metadata.namespace."
    rows = [
        (f"`{resource.full_name}`", _columns(resource), ", ".join(f"`{field}`" for field in resource.fields))
        for resource in (*resources.ALL, *resources.VIEWS)
    ]
    yield table(("Resource", "Columns", "Fields"), rows)


def _columns(resource: Resource) -> str:
    always = [column.name for column in resource.columns if not column.priority]
    wide = [column.name for column in resource.columns if column.priority]
    return ", ".join(always) + (f" [{', '.join(wide)}]" if wide else "")


def _paths() -> Iterator[str]:
    yield "## Other paths"
    rows = [
        (f"`{where}`", ", ".join(method for method in path.methods), "everybody" if path.anonymous else "users")
        for where, path in routes.listed()
    ]
    yield table(("Path", "Methods", "For"), rows)


def _parameters() -> Iterator[str]:
    yield "## Query parameters"
    rows_by_name: dict[str, tuple[Object, list[str]]] = {"pretty": (parameters.PRETTY, ["all"])}
    spoken = [
        *(("list, watch" if verb == "list" else verb, listed) for verb, listed in parameters.OF_VERB.items()),
        *((f"pods/{name}", listed) for name, listed in parameters.OF_PART.items()),
    ]
    for where, listed in spoken:
        for parameter in listed:
            rows_by_name.setdefault(parameter["name"], (parameter, []))[1].append(where)
    rows = [
        (f"`{name}`", ", ".join(dict.fromkeys(places)), parameter["description"])
        for name, (parameter, places) in sorted(rows_by_name.items())
    ]
    yield table(("Parameter", "On", "Meaning"), rows)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
