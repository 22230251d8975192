"""What a kind of object is to the API: names, scope, columns, subresources, where the store finds it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from kube.meta import Object
from kube.selector import field_text


class Index(NamedTuple):
    """By what the store finds an object; empty where the kind has no such thing.

    `trouble` is why a pod that has its node does not get on, or why a job waits or failed, in one word such as
    CrashLoop (`kube.pod_health`) or QueueClosed. `terms` is what else an object is found by, as `kube.terms.join` writes it.
    """

    phase: str = ""
    queue: str = ""
    node: str = ""
    owner: str = ""
    creator: str = ""
    trouble: str = ""
    terms: str = ""


class Column(NamedTuple):
    """A printed column: the value at `path` in the object, or what the printer's function named `cell` returns.

    Priority 0 is always printed, 1 only in wide output. `missing` is what a
    built-in kind prints for an absent text; description and format are those
    of a custom resource's column.
    """

    name: str
    path: str = ""
    cell: str = ""
    type: str = "string"
    priority: int = 0
    missing: str = ""
    description: str = ""
    format: str = ""


VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
READ_VERBS = ("get", "list", "watch")


class Subresource(NamedTuple):
    """A part of an object with a path of its own, such as `pods/log`.

    group, version and kind are what its body is when that is not the
    resource's own kind: `pods/eviction` takes a policy/v1 Eviction.
    """

    name: str
    verbs: tuple[str, ...]
    kind: str = ""
    group: str = ""
    version: str = ""


STATUS = Subresource("status", ("get", "patch", "update"))


class ScalePaths(NamedTuple):
    """Where the values of a custom kind's `scale` are; paths such as `.spec.replicas`, selector "" for none."""

    spec: str
    status: str
    selector: str = ""


@dataclass(frozen=True)
class Resource:
    """One kind of object and how the API serves it.

    `index` returns an object's index columns; it does dict lookups only.
    `fields` are what a field selector may name beside metadata.name and
    metadata.namespace: paths, and names for which `computed` has a function.
    `default_propagation` is what becomes of dependents when a deletion names
    no policy. `stored` is false for what is computed at each
    request, such as an access review. `schema` is the structural schema of a
    custom resource; the other kinds are described in `kube.definitions`.
    A custom kind with several versions has one resource for each, with one
    id: objects are stored in the version that is `storage`. `deprecation` is
    the warning for users of a version that goes away.

    A view shows the objects of another resource in another form: `view_of` is
    the resource that stores them, and `renamed` has the stored name of each
    field that is called otherwise (`kube.conversion`). It has that resource's
    id, so rights, rules, watches and quotas are the same, and `fields` of its own.
    """

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    short_names: tuple[str, ...]
    namespaced: bool
    status_subresource: bool
    columns: tuple[Column, ...]
    index: Callable[[Object], Index]
    fields: tuple[str, ...] = ()
    computed: Mapping[str, Callable[[Object], str]] = field(default_factory=dict)
    verbs: tuple[str, ...] = VERBS
    subresources: tuple[Subresource, ...] = ()  # beside status
    categories: tuple[str, ...] = ()
    stored: bool = True
    schema: Object | None = None
    scale: ScalePaths | None = None
    served: bool = True
    storage: bool = True
    view_of: Resource | None = None
    renamed: Mapping[str, str] = field(default_factory=dict)
    deprecation: str = ""
    has_generation: bool = True  # metadata.generation counts the changes of what is wanted
    lists_as: str = ""  # the kind of a list where it is not the kind with List behind it
    default_propagation: Literal["Background", "Foreground", "Orphan"] = "Background"
    id: str = field(init=False)
    api_version: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", self.full_name if self.view_of is None else self.view_of.id)
        object.__setattr__(self, "api_version", f"{self.group}/{self.version}" if self.group else self.version)

    # The id identifies a resource; hashing all fields would cost in every dict lookup.
    def __hash__(self) -> int:
        return hash(self.id)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Resource) and other.id == self.id

    def __repr__(self) -> str:
        return f"<Resource {self.id}>"

    @property
    def is_custom(self) -> bool:
        """Whether a cluster would have this kind from a CustomResourceDefinition, as it has Volcano's."""
        return self.schema is not None or self.group.endswith(".volcano.sh")

    @property
    def full_name(self) -> str:
        """`jobs.batch.volcano.sh` or `pods`: its unambiguous name for people; the id, but of a view."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def converts(self) -> bool:
        """Whether its objects may be stored in another form than its own."""
        return self.schema is not None or self.view_of is not None

    @property
    def parts(self) -> tuple[Subresource, ...]:
        """All subresources, status included."""
        return (*self.subresources, *((STATUS,) if self.status_subresource else ()))

    @property
    def list_kind(self) -> str:
        """The kind of a list of these objects."""
        return self.lists_as or f"{self.kind}List"

    @property
    def group_kind(self) -> str:
        """`Job.batch.volcano.sh` or `Pod`: the name of the kind in messages."""
        return f"{self.kind}.{self.group}" if self.group else self.kind

    def field_text(self, obj: Object, name: str) -> str:
        """Return what a field selector compares for one of `fields`."""
        compute = self.computed.get(name)
        return field_text(obj, name) if compute is None else compute(obj)
