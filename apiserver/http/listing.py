"""Lists: one state, page by page, narrowed by selectors (reference: kubernetes-api §2.2, §2.6, §4.2)."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from apiserver.http.query import ListOptions, revision
from cluster.store import Change, Stored, pages, store
from cluster.store.types import key_of
from kube import resources
from kube.errors import BadRequest, Expired, Timeout
from kube.meta import Object
from kube.resources import Resource

TOKENS_KIND = "meta.k8s.io/v1"
EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result."
    " You can start a new list without the continue parameter, or use the continue token in this response"
    " to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent"
    " list - objects that were created, modified, or deleted between the time the first chunk was returned"
    " and now may show up in the list."
)
NEWEST = -1  # a token's revision when its list may go on from a newer state
# Which field of a kind is which column of the store's index.
COLUMNS = {
    (resources.PODS.id, "spec.nodeName"): "node",
    (resources.PODS.id, "status.phase"): "phase",
    (resources.NAMESPACES.id, "status.phase"): "phase",
    (resources.EVENTS.id, "involvedObject.uid"): "owner",
}


class _Labelled(msgspec.Struct):
    class Metadata(msgspec.Struct):
        labels: dict[str, str] = {}

    metadata: Metadata


@dataclass(frozen=True)
class ListPage:
    """One answer to a list: `token` is empty on the last page, `remaining` unknown where a selector hides it."""

    items: list[Stored]
    revision: int
    token: str = ""
    remaining: int | None = None

    @property
    def metadata(self) -> Object:
        """The metadata of the list."""
        meta: Object = {"resourceVersion": str(self.revision)}
        if self.token:
            meta["continue"] = self.token
            if self.remaining is not None:
                meta["remainingItemCount"] = self.remaining
        return meta


class ExpiredToken(Expired):
    """A token whose state is gone; with the new one a client may go on from a newer state."""

    def __init__(self, token: str) -> None:
        super().__init__(EXPIRED)
        self._token = token

    def status(self) -> dict[str, Any]:
        """Return the Status with the new token."""
        return {**super().status(), "metadata": {"continue": self._token}}


def find(resource: Resource, namespace: str, options: ListOptions) -> ListPage:
    """Return the objects that the options ask for, at most `options.limit` of them.

    Raise BadRequest for a token that is none, Expired when its state is gone, Timeout for a revision of the future.
    """
    at, start = _from(options)
    with store.reading() as head:
        if at is not None and at > head:
            raise Timeout.too_large_resource_version(at, head)
        exact = at if _exact(options) and at != NEWEST else None
        try:
            after = f"{resource.id}/{start}" if start else ""
            filters = {} if exact is not None else _filters(resource, options)
            objects = pages.read(store, resource, namespace=namespace, after=after, at=exact, filters=filters)
            if options.labels is not None or options.fields is not None:
                objects = (stored for stored in objects if matches(stored, options))
            return _cut(resource, namespace, options, objects, head if exact is None else exact)
        except Expired:
            if not options.continue_:
                raise
            raise ExpiredToken(_token(NEWEST, start)) from None


def _exact(options: ListOptions) -> bool:
    """Whether the list must be of one named revision and not of a newer one."""
    if options.continue_:
        return True
    named = options.resource_version not in ("", "0")
    return named and (options.match == "Exact" or (not options.match and options.limit > 0))


def _from(options: ListOptions) -> tuple[int | None, str]:
    """Return revision and start key ("" for the beginning)."""
    if options.continue_:
        if options.resource_version not in ("", "0"):
            raise BadRequest("specifying resource version is not allowed when using continue")
        return _read_token(options.continue_)
    return revision(options.resource_version) or None, ""


def _cut(resource: Resource, namespace: str, options: ListOptions, objects: Iterator[Stored], state: int) -> ListPage:
    if not options.limit:
        return ListPage(list(objects), state)
    items: list[Stored] = []
    for stored in objects:
        if len(items) == options.limit:
            last = items[-1]
            remaining = None
            if options.labels is None and options.fields is None:
                key = key_of(last.resource, last.namespace, last.name)
                remaining = max(pages.remaining(store, resource, namespace, key), 1)
            return ListPage(items, state, _token(state, last.key), remaining)
        items.append(stored)
    return ListPage(items, state)


def _filters(resource: Resource, options: ListOptions) -> dict[str, str]:
    """Return what of the field selector the store's index can answer."""
    filters = {}
    for path, equal, value in options.fields.terms if options.fields else ():
        if not equal or not value:
            continue
        if path in ("metadata.name", "metadata.namespace"):
            filters[path.removeprefix("metadata.")] = value
        elif column := COLUMNS.get((resource.id, path)):
            filters[column] = value
    return filters


def matches(subject: Stored | Change, options: ListOptions) -> bool:
    """Say whether an object is selected."""
    if options.labels is not None and not options.labels.matches(subject.read(_Labelled).metadata.labels):
        return False
    return options.fields is None or all(
        (_field(subject, path) == value) is equal for path, equal, value in options.fields.terms
    )


def _field(subject: Stored | Change, path: str) -> str:
    if path == "metadata.name":
        return subject.name
    if path == "metadata.namespace":
        return subject.namespace
    return resources.of_stored(subject.resource, subject.object).field_text(subject.object, path)


def _token(state: int, key: str) -> str:
    body = msgspec.json.encode({"v": TOKENS_KIND, "rv": state, "start": f"{key}\0"})
    return base64.urlsafe_b64encode(body).rstrip(b"=").decode()


class _Token(msgspec.Struct):
    v: str
    rv: int
    start: str


def _read_token(text: str) -> tuple[int, str]:
    try:
        body = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        token = msgspec.json.decode(body, type=_Token)
    except (msgspec.DecodeError, binascii.Error, ValueError):
        raise BadRequest("continue key is not valid: it is what an earlier page of the same list gave") from None
    start = token.start.removesuffix("\0")
    if token.v != TOKENS_KIND or not NEWEST <= token.rv < 2**63 or token.rv == 0 or "\0" in start:
        raise BadRequest("continue key is not valid: it is what an earlier page of the same list gave")
    return token.rv, start
