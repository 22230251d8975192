"""How objects are written in an answer: as themselves, as a table, or as their metadata (§2.6, §3.3, §4.4).

A form is a value that can be a dict's key, so that one written event can be
sent to everybody who wants it in the same form. Stored objects are JSON
already: an object in its plain form is sent as its stored bytes.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import msgspec
import yaml
from starlette.datastructures import QueryParams

from cluster.store import Change, Stored
from kube import conversion, printing
from kube.errors import NotAcceptable
from kube.meta import Object
from kube.resources import Resource

Kind = Literal["", "Table", "PartialObjectMetadata"]
Include = Literal["None", "Metadata", "Object"]
META = "meta.k8s.io"
META_VERSIONS = ("v1", "v1beta1")
AS_KINDS: dict[str, Kind] = {
    "Table": "Table",
    "PartialObjectMetadata": "PartialObjectMetadata",
    "PartialObjectMetadataList": "PartialObjectMetadata",
}
BROWSERS = ("curl/", "wget/", "mozilla/")  # whose users read what they get, so it is indented (§2.2)
LONGEST_CACHED = 512  # characters of a header whose meaning is kept
_encode = msgspec.json.Encoder().encode


class Form(NamedTuple):
    """One way to write objects. `version` is that of the meta.k8s.io kind asked for."""

    kind: Kind = ""
    include: Include = "Metadata"
    yaml: bool = False
    pretty: bool = False
    version: str = "v1"

    @property
    def content_type(self) -> str:
        """The Content-Type of an answer in this form."""
        return "application/yaml" if self.yaml else "application/json"


PLAIN = Form()


def negotiate(accept: str, query: QueryParams, user_agent: str = "") -> Form:
    """Choose a form by the Accept header; NotAcceptable when it allows none that there is."""
    pretty = query.get("pretty")
    indented = pretty.lower() not in ("0", "false") if pretty is not None else user_agent.lower().startswith(BROWSERS)
    requested = query.get("includeObject")
    include: Include = requested if requested in ("None", "Metadata", "Object") else "Metadata"  # type: ignore[assignment]
    form = _chosen(accept) if len(accept) <= LONGEST_CACHED else _choose(accept)
    if form is not None:
        return form._replace(pretty=indented, include=include if form.kind == "Table" else "Metadata")
    raise NotAcceptable(
        "only the following media types are accepted: application/json, application/yaml,"
        " application/json;as=Table;g=meta.k8s.io;v=v1, application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
    )


def _choose(accept: str) -> Form | None:
    chosen = (_form_of(media, params) for media, params in clauses(accept))
    return next((form for form in chosen if form is not None), None)


_chosen = functools.lru_cache(256)(_choose)  # a program sends the same few headers again and again


def clauses(accept: str) -> Iterable[tuple[str, dict[str, str]]]:
    """Return the media types of an Accept header with their parameters, the most wanted first."""
    ranked = []
    for clause in [part for part in accept.split(",")[:50] if part.strip()] or ["*/*"]:
        media, *rest = (part.strip() for part in clause.split(";"))
        params = {k.strip().lower(): v.strip() for k, _, v in (part.partition("=") for part in rest)}
        try:
            quality = float(params.pop("q", "1"))
        except ValueError:
            quality = 0.001  # comes last
        if quality > 0:
            ranked.append((quality, media.lower(), params))
    ranked.sort(key=lambda item: -item[0])
    return [(media, params) for _, media, params in ranked]


def _form_of(media: str, params: dict[str, str]) -> Form | None:
    if media not in ("application/json", "application/yaml", "application/*", "*/*"):
        return None
    wanted = params.get("as", "")
    if not wanted:
        return Form(yaml=media == "application/yaml")
    kind = AS_KINDS.get(wanted)
    if kind is None or params.get("g", META) != META or params.get("v", "v1") not in META_VERSIONS:
        return None
    return Form(kind, yaml=media == "application/yaml", version=params.get("v", "v1"))


def dump(form: Form, value: Any) -> bytes:
    """Write any JSON value as the form wants it: compact, indented or as YAML."""
    if form.yaml:
        return yaml.dump(value, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True).encode()
    body = _encode(value)
    return msgspec.json.format(body, indent=2) + b"\n" if form.pretty else body


def as_stored(form: Form, resource: Resource) -> bool:
    """Whether objects are sent as their stored bytes, so that to write many of them costs little."""
    return form == PLAIN and not resource.converts


def plain(resource: Resource, stored: Stored | Change) -> bytes:
    """Return an object's JSON in the form that `resource` serves."""
    if not resource.converts:
        return stored.body
    obj = conversion.converted(resource, stored.object)
    return stored.body if obj is stored.object else _encode(obj)


def metadata_only(form: Form, obj: Object) -> Object:
    """Return the object's metadata as an object of its own."""
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": f"{META}/{form.version}",
        "metadata": obj.get("metadata") or {},
    }


def write(form: Form, resource: Resource, subject: Stored | Object, now: int) -> bytes:
    """Write one object."""
    if form == PLAIN and isinstance(subject, Stored):
        return plain(resource, subject)
    obj = _object(resource, subject)
    if form.kind == "Table":
        meta = obj.get("metadata") or {}
        return dump(form, table(form, resource, [obj], now, {"resourceVersion": meta.get("resourceVersion", "")}))
    if form.kind == "PartialObjectMetadata":
        obj = metadata_only(form, obj)
    return dump(form, obj)


def _object(resource: Resource, subject: Stored | Object) -> Object:
    return conversion.converted(resource, subject.object) if isinstance(subject, Stored) else subject


def write_list(form: Form, resource: Resource, items: Sequence[Stored], metadata: Object, now: int) -> Iterator[bytes]:
    """Write a list in pieces; metadata is the list's own."""
    if form == PLAIN:
        head = {"kind": resource.list_kind, "apiVersion": resource.api_version, "metadata": metadata}
        yield _encode(head)[:-1] + b',"items":['
        for index, item in enumerate(items):
            yield b"," + plain(resource, item) if index else plain(resource, item)
        yield b"]}\n"
        return
    objs = [_object(resource, item) for item in items]
    yield dump(form, as_list(form, resource, objs, metadata, now))


def as_list(form: Form, resource: Resource, objs: Sequence[Object], metadata: Object, now: int) -> Object:
    """Return a list of objects as one object."""
    if form.kind == "Table":
        return table(form, resource, objs, now, metadata)
    if form.kind == "PartialObjectMetadata":
        return {
            "kind": "PartialObjectMetadataList",
            "apiVersion": f"{META}/{form.version}",
            "metadata": metadata,
            "items": [metadata_only(form, obj) for obj in objs],
        }
    return {"kind": resource.list_kind, "apiVersion": resource.api_version, "metadata": metadata, "items": list(objs)}


def table(
    form: Form, resource: Resource, objs: Sequence[Object], now: int, metadata: Object, *, headed: bool = True
) -> Object:
    """Return objects as rows of a table; one that is not `headed` follows another in a watch."""
    return {
        "kind": "Table",
        "apiVersion": f"{META}/{form.version}",
        "metadata": metadata,
        "columnDefinitions": printing.columns(resource) if headed else [],
        "rows": [_row(form, resource, obj, now) for obj in objs],
    }


def _row(form: Form, resource: Resource, obj: Object, now: int) -> Object:
    row: Object = {"cells": printing.row(resource, obj, now)}
    conditions = printing.completed(resource, obj)
    if conditions:
        row["conditions"] = conditions
    if form.include == "Object":
        row["object"] = obj
    elif form.include == "Metadata":
        row["object"] = metadata_only(form, obj)
    else:
        row["object"] = None
    return row


def event(
    form: Form, resource: Resource, verb: str, subject: Stored | Change, now: int, *, first: bool = False
) -> bytes:
    """Write one event of a watch as a line. Only the `first` one of a table names its columns."""
    if form.kind == "":
        return b'{"type":"%b","object":%b}\n' % (verb.encode(), plain(resource, subject))
    obj = conversion.converted(resource, subject.object)
    if form.kind == "Table":
        version = {"resourceVersion": obj["metadata"].get("resourceVersion", "")}
        content = table(form, resource, [obj], now, version, headed=first)
    else:
        content = metadata_only(form, obj)
    return _encode({"type": verb, "object": content}) + b"\n"
