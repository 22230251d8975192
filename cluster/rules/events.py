"""Events that people and programs write (§4.7).

Who writes the `events.k8s.io` form knows the newer rules and is held to them: an event is complete when it is created,
and from then on only its series changes. Paths in causes are those of the core form, whichever form was sent, as
Kubernetes has it.
"""

from __future__ import annotations

from collections.abc import Iterator

from cluster.rules.checks import IMMUTABLE, RulesView
from kube import conversion, lenient, names
from kube.errors import Cause, invalid, required
from kube.kinds.core import EventType
from kube.meta import Object, parse_time
from kube.resources import EVENTS_VIEW

LONGEST_MESSAGE = 1024
LONGEST_TEXT = 128
# What old clients write, beside the source; newer ones say it by eventTime and series.
_DEPRECATED = ("firstTimestamp", "lastTimestamp", "count")
_TIMES = ("eventTime", "firstTimestamp", "lastTimestamp")
_FIXED = (
    *("involvedObject", "reason", "message", "source", "count", "type", "action", "related"),
    *("reportingComponent", "reportingInstance", *_TIMES),
)


def validate(event: Object, old: Object | None, view: RulesView) -> list[Cause]:
    """Return what is wrong with an event, in either form."""
    if event.get("apiVersion") != EVENTS_VIEW.api_version:
        return _check(event)
    core = conversion.stored(EVENTS_VIEW, event)
    if old is None:
        return [*_check(core), *_check_new(core)]
    before = conversion.stored(EVENTS_VIEW, old)
    causes = [*_check(core), *(_check_series(core) if core.get("series") != before.get("series") else ())]
    changed = [field for field in _FIXED if _meaning(core, field) != _meaning(before, field)]
    return [*causes, *(invalid(field, core.get(field), IMMUTABLE) for field in changed)]


def _check(event: Object) -> list[Cause]:
    """An event lies where the object lies that it is about.

    What is about an object of no namespace lies in `default` (or `kube-system`).
    """
    about = lenient.mapping(event, "involvedObject")
    own_namespace, namespace = event["metadata"].get("namespace") or "", about.get("namespace") or ""
    causes: list[Cause] = []
    if own_namespace not in ((namespace,) if namespace else ("default", "kube-system")):
        causes.append(invalid("involvedObject.namespace", namespace, "does not match event.namespace"))
    if event.get("eventTime"):
        causes += _check_new_style(event)
    return causes


def _check_new_style(event: Object) -> Iterator[Cause]:
    """An event with an eventTime says who reports it, and what was done."""
    for field in ("reportingComponent", "reportingInstance", "action", "reason"):
        if not event.get(field):
            yield required(field)
    reporter = event.get("reportingComponent") or ""
    if reporter and (wrong := names.qualified_name(reporter)):
        yield invalid("reportingComponent", reporter, wrong)
    for field, limit in (("reportingInstance", LONGEST_TEXT), ("action", LONGEST_TEXT), ("message", LONGEST_MESSAGE)):
        # Kubernetes counts bytes, and says characters.
        if len((event.get(field) or "").encode()) > limit:
            yield invalid(field, "", f"can have at most {limit} characters")


def _check_new(event: Object) -> Iterator[Cause]:
    yield from _check_series(event)
    if not event.get("eventTime"):
        yield required("eventTime")
    if event.get("type") not in tuple(EventType):
        yield invalid("type", "", f"has invalid value: {event.get('type') or ''}")
    for field in _DEPRECATED:
        if event.get(field):
            yield invalid(field, "", "needs to be unset")
    if any(lenient.mapping(event, "source").values()):
        yield invalid("source", "", "needs to be unset")


def _check_series(event: Object) -> Iterator[Cause]:
    series = event.get("series")
    if series is None:
        return
    if (lenient.whole(series, "count") or 0) < 2:
        yield invalid("series.count", "", "should be at least 2")
    if not lenient.text(series, "lastObservedTime"):
        yield required("series.lastObservedTime")


def _meaning(event: Object, field: str) -> object:
    """Return the value of a field, the same for all that clients write for it: empty is absent, and a time is a moment."""
    value = event.get(field) or None
    return parse_time(value) if field in _TIMES and isinstance(value, str) else value
