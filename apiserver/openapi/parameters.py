"""The query and path parameters of operations, as OpenAPI 3.0 parameters (reference: kubernetes-api §2.2)."""

from __future__ import annotations

from kube.meta import Object


def _query(name: str, kind: str, text: str, **schema: object) -> Object:
    return {"name": name, "in": "query", "description": text, "schema": {"type": kind, **schema}}


def _path(name: str, text: str) -> Object:
    return {"name": name, "in": "path", "required": True, "description": text, "schema": {"type": "string"}}


def name(kind: str) -> Object:
    """Return the parameter that names an object."""
    return _path("name", f"name of the {kind}")


NAMESPACE = _path("namespace", "The namespace of the objects.")
PRETTY = _query("pretty", "string", "If true, the answer is indented.")

_DRY_RUN = _query(
    "dryRun", "string", "All: everything is checked and answered as if it were done, but nothing is stored."
)
_MANAGER = _query(
    "fieldManager",
    "string",
    "The name of who makes the change, up to 128 printable characters; server-side apply requires it.",
)
_VALIDATION = _query(
    "fieldValidation",
    "string",
    "What happens to unknown and duplicate fields: Ignore, Warn (the default) answers with warnings, Strict refuses.",
)
_FORCE = _query("force", "boolean", "With server-side apply: take over fields that others own.")
_GRACE = _query("gracePeriodSeconds", "integer", "How many seconds the object has to end; 0 means at once.", minimum=0)
_ORPHAN = _query("orphanDependents", "boolean", "Deprecated: use propagationPolicy. Whether dependents are left alone.")
_PROPAGATION = _query(
    "propagationPolicy",
    "string",
    "What becomes of dependents: Orphan leaves them, Background deletes them afterwards, Foreground before.",
)
_SELECTION = (
    _query("fieldSelector", "string", "Only objects with these values of fields: metadata.name=x."),
    _query("labelSelector", "string", "Only objects with these labels: a=b, a!=b, a in (b,c), a, !a."),
    _query("limit", "integer", "At most so many objects; the answer's metadata.continue leads to the rest."),
    _query("continue", "string", "Go on where the answer with this metadata.continue ended."),
    _query("resourceVersion", "string", "How recent the answer must be, or where a watch starts."),
    _query("resourceVersionMatch", "string", "How resourceVersion is meant: Exact, or NotOlderThan."),
    _query("timeoutSeconds", "integer", "After how many seconds a list or watch ends."),
)
_WATCHING = (
    _query("watch", "boolean", "Answer with changes as they happen instead of a list."),
    _query("allowWatchBookmarks", "boolean", "Allow events that only say how far the watch has come."),
    _query(
        "sendInitialEvents",
        "boolean",
        "Begin a watch with all objects, then a bookmark; resourceVersionMatch must be NotOlderThan.",
    ),
)
_DELETION = (_DRY_RUN, _GRACE, _ORPHAN, _PROPAGATION)

OF_VERB: dict[str, tuple[Object, ...]] = {
    "list": (*_SELECTION, *_WATCHING),
    "create": (_DRY_RUN, _MANAGER, _VALIDATION),
    "update": (_DRY_RUN, _MANAGER, _VALIDATION),
    "patch": (_DRY_RUN, _MANAGER, _VALIDATION, _FORCE),
    "delete": _DELETION,
    "deletecollection": (*_DELETION, *_SELECTION),
}

_CONTAINER = _query("container", "string", "Which container; the first, or the one that an annotation names.")
_STREAMS = (
    _CONTAINER,
    _query("stdin", "boolean", "Send standard input to the process."),
    _query("stdout", "boolean", "Receive standard output."),
    _query("stderr", "boolean", "Receive standard error."),
    _query("tty", "boolean", "Give the process a terminal."),
)
# Parameters of subresources that are no objects.
OF_PART: dict[str, tuple[Object, ...]] = {
    "log": (
        _CONTAINER,
        _query("follow", "boolean", "Go on as the log grows."),
        _query("previous", "boolean", "The log of the container before it was last restarted."),
        _query("sinceSeconds", "integer", "Only lines of the last so many seconds."),
        _query("sinceTime", "string", "Only lines after this moment.", format="date-time"),
        _query("tailLines", "integer", "Only the last so many lines."),
        _query("limitBytes", "integer", "At most so many bytes."),
        _query("timestamps", "boolean", "Begin each line with its moment."),
        _query("insecureSkipTLSVerifyBackend", "boolean", "Accepted; there is no connection to verify."),
        _query("stream", "string", "All, Stdout or Stderr."),
    ),
    "attach": _STREAMS,
    "portforward": (_query("ports", "integer", "A port that has channels of its own; may be given more than once."),),
    "exec": (
        *_STREAMS,
        {
            "name": "command",
            "in": "query",
            "description": "The command and its arguments, each a parameter of its own.",
            "schema": {"type": "array", "items": {"type": "string"}},
        },
    ),
}
