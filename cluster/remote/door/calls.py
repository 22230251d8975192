"""Changes as calls of a cluster's API: one request each, pinned to the object that the rights were looked up for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from cluster.backend import DeleteOptions, How
from cluster.remote.http import paths
from cluster.remote.http.request import JSON, MANAGER, MEDIA_TYPES, Impersonation, Unreachable, decode, delete_options
from cluster.store import Stored
from kube.errors import ApiError, InternalError, ServiceUnavailable, Timeout, Unauthorized
from kube.meta import Object
from kube.resources import Resource

if TYPE_CHECKING:  # it brings the official client, which is 900 modules
    from cluster.remote.connection import Connection

# How an API server says that it had to ask a webhook and got no answer.
NO_WEBHOOK = re.compile(
    r'failed calling webhook "(?P<name>[^"]+)": (?:failed to call webhook: )?(?:Post "[^"]*": )?(?P<cause>.+)',
    re.DOTALL,
)
AT_ONCE = 4  # requests of one bulk change that are under way at a time
R = TypeVar("R")


class Calls:
    """Changes by requests to an API server, for one person. Errors are ApiErrors, also when it is away."""

    def __init__(self, connection: Connection, impersonation: Impersonation | None) -> None:
        self._connection = connection
        self._impersonation = impersonation

    def read(self, resource: Resource, namespace: str, name: str) -> Object:
        """Read an object as it is now."""
        return self._call("GET", paths.one(resource, namespace, name), None, {})

    def create(self, resource: Resource, obj: Object, *, manager: str = "", dry_run: bool = False) -> Object:
        """Create an object."""
        path = paths.collection(resource, obj["metadata"].get("namespace") or "")
        return self._call("POST", path, obj, _query(manager, dry_run))

    def replace(self, resource: Resource, obj: Object, *, manager: str = "", dry_run: bool = False) -> Object:
        """Replace an object, whose resourceVersion must be the newest."""
        metadata = obj["metadata"]
        path = paths.one(resource, metadata.get("namespace") or "", metadata["name"])
        return self._call("PUT", path, obj, _query(manager, dry_run))

    def patch(
        self,
        resource: Resource,
        old: Stored,
        change: Object | list[Object],
        how: How,
        *,
        manager: str = "",
        dry_run: bool = False,
    ) -> Object:
        """Change parts of an object, if it is still the one with that uid."""
        path = paths.one(resource, old.namespace, old.name)
        return self._call("PATCH", path, pinned(change, old.uid), _query(manager, dry_run), MEDIA_TYPES[how])

    def delete(self, resource: Resource, namespace: str, name: str, **how: Unpack[DeleteOptions]) -> Object:
        """Delete the object with that uid; return it while it waits to go, otherwise a Status."""
        uid, version = how.get("uid", ""), how.get("version", "")
        options = delete_options(uid, version, how.get("grace"), how.get("propagation"))
        if how.get("dry_run"):  # beside a body the query would not count
            options["dryRun"] = ["All"]
        return self._call("DELETE", paths.one(resource, namespace, name), options, {})

    def _call(self, method: str, path: str, body: Any, query: dict[str, str], media_type: str = JSON) -> Object:
        try:
            answer = self._connection.request(
                method, path, query=query, body=body, media_type=media_type, impersonation=self._impersonation
            )
            return decode(answer)
        except Unreachable as error:
            raise away(self._connection.target.name, error) from None
        except InternalError as error:
            raise unasked(self._connection.target.name, error) from None
        except Unauthorized as error:
            raise ServiceUnavailable(
                f"The cluster {self._connection.target.name} does not know the user of the kubeconfig"
                f" ({error.message}), so nothing was changed. Whoever runs these pages can renew it."
            ) from None


def unasked(cluster: str, error: ApiError) -> ApiError:
    """Return an error for people where the cluster could not reach one of its webhooks, otherwise the error itself."""
    match = NO_WEBHOOK.search(error.message)
    if match is None:
        return error
    return ServiceUnavailable(
        f"The cluster {cluster} asks the admission webhook {match['name']} about such changes, which does not answer"
        f" ({match['cause'].strip()}), so nothing was changed. Try again in a moment; if that does not help, whoever"
        " administers the cluster can see to that webhook."
    )


def away(cluster: str, error: Unreachable) -> ApiError:
    """Return the error for a change to which there was no answer; what was sent may have been done."""
    if error.sent:
        return Timeout(
            f"The cluster {cluster} was asked and did not answer ({error.cause}). Whether the change was made"
            " shows once it answers again; look before you ask for it a second time."
        )
    return ServiceUnavailable(
        f"The cluster {cluster} does not answer ({error.cause}), so nothing was changed. Try again later."
    )


def pinned(change: Object | list[Object], uid: str) -> Object | list[Object]:
    """Return a patch that the server refuses for an object with another uid."""
    if isinstance(change, list):
        return [{"op": "test", "path": "/metadata/uid", "value": uid}, *change]
    return {**change, "metadata": {**(change.get("metadata") or {}), "uid": uid}}


def _query(manager: str, dry_run: bool) -> dict[str, str]:
    return {"fieldManager": manager or MANAGER, **({"dryRun": "All"} if dry_run else {})}


def each(function: Callable[[Any], R], items: Iterable[Any]) -> list[R | ApiError]:
    """Call the function for each item, a few at a time, and return what it returns or refuses, in their order."""

    def attempt(item: Any) -> R | ApiError:
        if isinstance(item, ApiError):
            return item
        try:
            return function(item)
        except ApiError as error:
            return error

    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="calls") as threads:
        return list(threads.map(attempt, items))
