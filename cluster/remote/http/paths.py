"""Where the API serves what: paths of collections, objects and their parts."""

from __future__ import annotations

from urllib.parse import quote

from kube.resources import Resource


def version(resource: Resource) -> str:
    """Return the path of a kind's group and version, which lists the kinds served there."""
    root = "apis" if resource.group else "api"
    return f"/{root}/{resource.api_version}"


def collection(resource: Resource, namespace: str = "") -> str:
    """Return the path of all objects of a kind, or of those in one namespace."""
    prefix = f"/namespaces/{quote(namespace, safe='')}" if resource.namespaced and namespace else ""
    return f"{version(resource)}{prefix}/{resource.plural}"


def one(resource: Resource, namespace: str, name: str, part: str = "") -> str:
    """Return the path of an object, or of a subresource of it."""
    path = f"{collection(resource, namespace)}/{quote(name, safe='')}"
    return f"{path}/{part}" if part else path
