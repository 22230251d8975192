"""Query parameters and DeleteOptions: what they mean, and how they are refused (reference: kubernetes-api §2.2)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, cast

from starlette.datastructures import QueryParams

from cluster.writes import Propagation
from kube import conversion, errors, selector
from kube.errors import BadRequest, Cause, Invalid
from kube.meta import Object
from kube.resources import Resource
from kube.selector import FieldSelector, LabelSelector

Match = Literal["", "Exact", "NotOlderThan"]
Validation = Literal["Ignore", "Warn", "Strict"]
VALIDATIONS = ("Ignore", "Strict", "Warn")
PROPAGATIONS = ("Foreground", "Background", "Orphan")
MATCH, MATCHES = "resourceVersionMatch", ("Exact", "NotOlderThan")
UNREADABLE = "unable to parse requirement: "
OPTIONS = {"POST": "CreateOptions", "PUT": "UpdateOptions", "PATCH": "PatchOptions"}
LONGEST_MANAGER = 128
INT64_MAX = 2**63 - 1


@dataclass(frozen=True)
class ListOptions:
    """What a list, a watch or a delete of a collection is limited to. Selectors are None when they select all."""

    labels: LabelSelector | None = None
    fields: FieldSelector | None = None
    limit: int = 0
    continue_: str = ""
    resource_version: str = ""
    match: Match = ""
    send_initial_events: bool | None = None
    allow_bookmarks: bool = False
    timeout_seconds: int | None = None
    watch: bool = False


@dataclass(frozen=True)
class WriteOptions:
    """How a create, update or patch is to be done."""

    dry_run: bool = False
    manager: str = ""
    validation: Validation = "Warn"
    force: bool = False


@dataclass(frozen=True)
class DeleteOptions:
    """How an object goes; `grace` None and `propagation` "" mean the kind's own."""

    dry_run: bool = False
    grace: int | None = None
    propagation: Propagation | Literal[""] = ""
    uid: str = ""
    version: str = ""


def flag(query: QueryParams, name: str) -> bool:
    """Read a boolean as the API server does: present and neither 0 nor false."""
    value = query.get(name)
    return value is not None and value.lower() not in ("0", "false")


def list_options(query: QueryParams, resource: Resource) -> ListOptions:
    """Read the options of a list or watch; BadRequest for what cannot be read, Invalid for what does not go together."""
    initial = query.get("sendInitialEvents")
    return ListOptions(
        labels=_labels(query.get("labelSelector", "")),
        fields=_fields(query.get("fieldSelector", ""), resource),
        limit=_number(query, "limit") or 0,
        continue_=query.get("continue", ""),
        resource_version=query.get("resourceVersion", ""),
        match=cast("Match", query.get(MATCH, "")),
        send_initial_events=None if initial is None else flag(query, "sendInitialEvents"),
        allow_bookmarks=flag(query, "allowWatchBookmarks"),
        timeout_seconds=_number(query, "timeoutSeconds"),
        watch=flag(query, "watch"),
    )


def check_list(options: ListOptions, *, watch: bool) -> None:
    """Raise Invalid for options that do not go together."""
    causes = _watch_causes(options) if watch else _list_causes(options)
    if causes:
        raise Invalid.of("ListOptions.meta.k8s.io", "", causes)


def _match_causes(options: ListOptions) -> list[Cause]:
    if options.match and options.match not in MATCHES:
        return [errors.not_supported(MATCH, options.match, (*MATCHES, ""))]
    return []


def _list_causes(options: ListOptions) -> list[Cause]:
    causes = _match_causes(options)
    if options.match and not options.resource_version:
        causes.append(errors.forbidden(MATCH, f"{MATCH} is forbidden unless resourceVersion is provided"))
    if options.match and options.continue_:
        causes.append(errors.forbidden(MATCH, f"{MATCH} is forbidden with continue"))
    if options.match == "Exact" and options.resource_version == "0":
        causes.append(errors.forbidden(MATCH, f'{MATCH} "exact" is forbidden for resourceVersion "0"'))
    if options.send_initial_events is not None:
        causes.append(errors.forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    return causes


def _watch_causes(options: ListOptions) -> list[Cause]:
    causes = _match_causes(options)
    if options.send_initial_events is not None and options.match != "NotOlderThan":
        causes.append(errors.forbidden(MATCH, f"sendInitialEvents requires setting {MATCH} to NotOlderThan"))
    if options.match and options.send_initial_events is None:
        causes.append(errors.forbidden(MATCH, f"{MATCH} is forbidden for watch unless sendInitialEvents is provided"))
    if options.match == "Exact":
        causes.append(errors.not_supported(MATCH, options.match, ("NotOlderThan",)))
    if options.match and options.continue_:
        causes.append(errors.forbidden(MATCH, f"{MATCH} is forbidden with continue"))
    return causes


def revision(text: str) -> int:
    """Return a resourceVersion as a number, 0 for none; BadRequest when it is none of ours."""
    if not text:
        return 0
    if not text.isascii() or not text.isdigit() or len(text) > 19:
        raise BadRequest(f"resourceVersion: Invalid value: {errors.quoted(text)}: must be a number")
    return int(text)


def write_options(query: QueryParams, user_agent: str, method: str) -> WriteOptions:
    """Read the options of a POST, PUT or PATCH; Invalid for values that are not allowed."""
    causes = []
    validation = query.get("fieldValidation") or "Warn"
    if validation not in VALIDATIONS:
        causes.append(errors.not_supported("fieldValidation", validation, ("", *VALIDATIONS)))
    manager = query.get("fieldManager", "")
    if len(manager) > LONGEST_MANAGER:
        causes.append(errors.too_long("fieldManager", LONGEST_MANAGER))
    elif not manager.isprintable():
        causes.append(errors.invalid("fieldManager", manager, "should only contain printable characters"))
    dry_run = _dry_run(query.getlist("dryRun"), causes)
    if causes:
        raise Invalid.of(f"{OPTIONS.get(method, 'PatchOptions')}.meta.k8s.io", "", causes)
    # Without a name the program's own is used, as its user agent gives it (§2.2).
    default = user_agent.partition("/")[0][:LONGEST_MANAGER]
    return WriteOptions(
        dry_run,
        manager or (default if default.isprintable() else ""),
        cast("Validation", validation),
        flag(query, "force"),
    )


def _dry_run(values: list[str], causes: list[Cause]) -> bool:
    if any(value not in ("All", "") for value in values):
        causes.append(errors.not_supported("dryRun", values, ("All",)))
    return "All" in values


def delete_options(query: QueryParams, body: Object | None) -> DeleteOptions:
    """Read how to delete: a body wins over the query as a whole."""
    options = _options_of_query(query) if body is None else body
    causes: list[Cause] = []
    propagation = options.get("propagationPolicy") or ""
    orphan = options.get("orphanDependents")
    if propagation and orphan is not None:
        both = "orphanDependents and deletionPropagation cannot be both set"
        causes.append(errors.invalid("propagationPolicy", propagation, both))
    if propagation and propagation not in PROPAGATIONS:
        causes.append(errors.not_supported("propagationPolicy", propagation, (*PROPAGATIONS, "nil")))
    if orphan is not None and not propagation:
        propagation = "Orphan" if orphan is True else "Background"
    dry_run = options.get("dryRun") or []
    dry = _dry_run([str(value) for value in dry_run] if isinstance(dry_run, list) else [str(dry_run)], causes)
    grace = _grace(options.get("gracePeriodSeconds"), causes)
    uid, version = _preconditions(options.get("preconditions"))
    if causes:
        raise Invalid.of("DeleteOptions.meta.k8s.io", "", causes)
    return DeleteOptions(dry, grace, cast("Propagation", propagation), uid, version)


def _options_of_query(query: QueryParams) -> Object:
    options: Object = {"dryRun": query.getlist("dryRun")}
    if policy := query.get("propagationPolicy"):
        options["propagationPolicy"] = policy
    if query.get("orphanDependents") is not None:
        options["orphanDependents"] = flag(query, "orphanDependents")
    if query.get("gracePeriodSeconds"):
        options["gracePeriodSeconds"] = _number(query, "gracePeriodSeconds", least=-INT64_MAX)
    return options


def _grace(value: object, causes: list[Cause]) -> int | None:
    """Return the seconds of grace; a negative number counts as one second, as upstream."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > INT64_MAX:
        causes.append(errors.invalid("gracePeriodSeconds", value, "must be a whole number of seconds"))
        return None
    return 1 if value < 0 else value


def _preconditions(preconditions: object) -> tuple[str, str]:
    if not isinstance(preconditions, dict):
        return "", ""
    uid, version = preconditions.get("uid"), str(preconditions.get("resourceVersion") or "")
    revision(version)  # what is no number was never a version here
    return (uid if isinstance(uid, str) else ""), version


def _number(query: QueryParams, name: str, *, least: int = 0) -> int | None:
    value = query.get(name)
    if not value:
        return None
    digits = value.removeprefix("-")
    if not digits.isascii() or not digits.isdigit() or len(digits) > 19:
        raise BadRequest(f"{name}: Invalid value: {errors.quoted(value)}: must be a whole number")
    return max(int(value), least)


def _labels(text: str) -> LabelSelector | None:
    if not text.strip():
        return None
    try:
        return selector.parse_labels(text)
    except selector.SelectorError as error:
        text = str(error).removeprefix(UNREADABLE)
        raise BadRequest(f"{UNREADABLE}{text}") from None


def _fields(text: str, resource: Resource) -> FieldSelector | None:
    if not text.strip():
        return None
    try:
        parsed = selector.parse_fields(text)
    except selector.SelectorError as error:
        raise BadRequest(f"invalid field selector: {error}") from None
    allowed = {"metadata.name", "metadata.namespace", *resource.fields}
    for path, _, _ in parsed.terms:
        if path not in allowed:
            raise BadRequest(f"field label not supported: {path[:200]}; supported are {', '.join(sorted(allowed))}")
    terms = ((conversion.stored_path(resource, path), equal, value) for path, equal, value in parsed.terms)
    return replace(parsed, terms=tuple(terms))
