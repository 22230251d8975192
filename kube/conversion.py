"""The forms of one kind: how an object is written where it is stored in another form.

The versions of a custom kind differ in nothing but their apiVersion. A view
of another resource (`Resource.view_of`) also has other names for some fields,
of the object itself and not of what is in them. So one table of names covers
all: how an object is shown and stored, what a field selector means, and who
manages which field. A field that has no name in the other form is left out, as
every unknown field of a kind is.

Objects are in the form of the requested resource from the
request's body to what `cluster.api` hands to the store, and in the stored form
everywhere else; `apiserver.http.forms` shows what leaves.
"""

from __future__ import annotations

from collections.abc import Mapping

from kube.meta import Object
from kube.resource import Resource

FIELD = "f:"  # before the name of a field in managedFields


def converted(resource: Resource, obj: Object) -> Object:
    """Return a stored object in the form of a resource; one that is in that form already as it is."""
    if not resource.converts or obj.get("apiVersion") == resource.api_version:
        return obj
    return {**_renamed(obj, _back(resource.renamed)), "apiVersion": resource.api_version}


def stored(resource: Resource, obj: Object) -> Object:
    """Return an object in a resource's form as the one in which it is stored; the versions of a custom kind stay."""
    if resource.view_of is None:
        return obj
    return {**_renamed(obj, resource.renamed), "apiVersion": resource.view_of.api_version}


def stored_path(resource: Resource, path: str) -> str:
    """Return where a field of a resource's form, such as `regarding.name`, is in the stored one."""
    first, dot, rest = path.partition(".")
    return f"{resource.renamed.get(first, first)}{dot}{rest}"


def fields(managed: Object, of: Resource, to: Resource) -> Object:
    """Return the `fieldsV1` of one form of a kind as those of another."""
    if of.renamed == to.renamed:
        return managed
    names = of.renamed or _back(to.renamed)
    return _renamed(managed, {f"{FIELD}{name}": f"{FIELD}{other}" for name, other in names.items()})


def _back(names: Mapping[str, str]) -> dict[str, str]:
    return {other: name for name, other in names.items()}


def _renamed(content: Object, names: Mapping[str, str]) -> Object:
    """Return an object with other names; what has one of those already is no field of its form, and goes."""
    foreign = set(names.values())
    return {names.get(key, key): value for key, value in content.items() if key not in foreign}
