"""What a status of a `batch/v1` Job may say, and how it may change (§1.6).

Most rules hold only for what changes, so that old objects stay changeable.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

from cluster.rules.batch import job_policies
from cluster.rules.checks import IMMUTABLE, RulesView, not_negative
from kube import lenient
from kube.errors import Cause, duplicate, forbidden, invalid, required
from kube.kinds.workloads import CompletionMode
from kube.kinds.workloads import JobConditionType as Type
from kube.meta import Object, parse_time

COUNTERS = ("active", "succeeded", "failed", "ready", "terminating")
LASTING = (Type.FAILED, Type.COMPLETE, Type.FAILURE_TARGET, Type.SUCCESS_CRITERIA_MET)
EXCLUSIVE = tuple(product((Type.COMPLETE, Type.SUCCESS_CRITERIA_MET), (Type.FAILED, Type.FAILURE_TARGET)))
NEEDS = ((Type.FAILED, Type.FAILURE_TARGET), (Type.COMPLETE, Type.SUCCESS_CRITERIA_MET))


def check(job: Object, old: Object | None, view: RulesView) -> list[Cause]:
    """Return what is wrong with the status of a job that replaces the one of old."""
    spec, new, before = (lenient.mapping(old, "spec"), lenient.mapping(job, "status"), lenient.mapping(old, "status"))
    return [
        *not_negative(new, COUNTERS, "status"),
        *_check_counters(new, before, spec),
        *_check_conditions(_true(new), _true(before)),
        *_check_times(new, before, spec),
        *_check_end(new, before),
        *_check_indexes(new, before, spec),
        *_check_uncounted(new),
    ]


def _true(status: Object) -> set[str]:
    """Return the types of the conditions that hold."""
    return {each.get("type") or "" for each in status.get("conditions") or () if each.get("status") == "True"}


def _changed(new: Object, before: Object, field: str) -> bool:
    return (new.get(field) or None) != (before.get(field) or None)


def _check_counters(new: Object, before: Object, spec: Object) -> Iterator[Cause]:
    elastic = (
        spec.get("completionMode") == CompletionMode.INDEXED
        and spec.get("completions") is not None
        and spec.get("completions") == spec.get("parallelism")
    )
    for field in ("failed", "succeeded"):
        value, least = new.get(field) or 0, before.get(field) or 0
        if value < least and not (field == "succeeded" and elastic):
            yield invalid(f"status.{field}", value, f"cannot decrease the {field} counter")
    changed = _changed(new, before, "ready") or _changed(new, before, "active")
    if changed and (new.get("ready") or 0) > max(new.get("active") or 0, 0):
        yield invalid("status.ready", new["ready"], "cannot set more ready pods than active")


def _check_conditions(new: set[str], before: set[str]) -> Iterator[Cause]:
    path = "status.conditions"
    for kind in LASTING:
        if kind in before and kind not in new:
            yield invalid(path, kind, f"cannot disable the terminal {kind}=True condition")
    if new == before:
        return
    for one, other in EXCLUSIVE:
        if one in new and other in new:
            yield invalid(path, one, f"cannot set {one}=True and {other}=true conditions")
    for one, first in NEEDS:
        if one in new and one not in before and first not in new:
            yield invalid(path, one, f"cannot set {one}=True condition without the {first}=true condition")


def _check_times(new: Object, before: Object, spec: Object) -> Iterator[Cause]:
    start, end = new.get("startTime"), new.get("completionTime")
    if before.get("startTime") and start != before["startTime"] and not spec.get("suspend"):
        if start:
            yield invalid("status.startTime", start, IMMUTABLE)
        else:
            yield required("status.startTime", "startTime cannot be removed for unsuspended job")
    if before.get("completionTime") and end != before["completionTime"]:
        yield invalid("status.completionTime", end, IMMUTABLE)
    complete = Type.COMPLETE in _true(new)
    if complete and not end:
        yield required("status.completionTime", "completionTime is required for Complete jobs")
    if end and not complete:
        detail = "completionTime cannot be set when there is no Complete=True condition"
        yield invalid("status.completionTime", end, detail)
    if start and end and parse_time(end) < parse_time(start):
        yield invalid("status.completionTime", end, "completionTime cannot be set before startTime")


def _check_end(new: Object, before: Object) -> Iterator[Cause]:
    """A finished job has no pods left, and has begun."""
    ended = {Type.COMPLETE, Type.FAILED} & _true(new)
    if not ended or ended <= _true(before):
        return
    for field in ("active", "terminating"):
        if (new.get(field) or 0) > 0:
            yield invalid(f"status.{field}", new[field], f"{field}>0 is invalid for finished job")
    if not new.get("startTime"):
        yield required("status.startTime", "startTime is required for finished job")
    if any(lenient.mapping(new, "uncountedTerminatedPods").get(field) for field in ("succeeded", "failed")):
        detail = "uncountedTerminatedPods needs to be empty for finished job"
        yield invalid("status.uncountedTerminatedPods", new["uncountedTerminatedPods"], detail)


def _check_indexes(new: Object, before: Object, spec: Object) -> Iterator[Cause]:
    is_indexed = spec.get("completionMode") == CompletionMode.INDEXED
    intervals: dict[str, list[tuple[int, int]]] = {}
    for field in ("completedIndexes", "failedIndexes"):
        text = new.get(field) or ""
        if not _changed(new, before, field) and not is_indexed:
            continue
        if text and not is_indexed:
            yield invalid(f"status.{field}", text, f"cannot set non-empty {field} when non-indexed completion mode")
            continue
        if text and field == "failedIndexes" and spec.get("backoffLimitPerIndex") is None:
            detail = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
            yield invalid(f"status.{field}", text, detail)
        try:
            intervals[field] = job_policies.read_indexes(text, spec.get("completions"))
        except job_policies.IndexesError as error:
            yield invalid(f"status.{field}", text, f"error parsing {field}: {error}")
    if len(intervals) == 2 and _overlap(intervals["completedIndexes"], intervals["failedIndexes"]):
        detail = "failedIndexes and completedIndexes overlap"
        yield invalid("status.failedIndexes", new.get("failedIndexes"), detail)


def _overlap(one: list[tuple[int, int]], other: list[tuple[int, int]]) -> bool:
    """Whether two sorted lists of intervals have an index in common."""
    first = second = 0
    while first < len(one) and second < len(other):
        if one[first][1] < other[second][0]:
            first += 1
        elif other[second][1] < one[first][0]:
            second += 1
        else:
            return True
    return False


def _check_uncounted(new: Object) -> Iterator[Cause]:
    seen: set[Any] = set()
    for field in ("succeeded", "failed"):
        path = f"status.uncountedTerminatedPods.{field}"
        for number, uid in enumerate(lenient.mapping(new, "uncountedTerminatedPods").get(field) or ()):
            if not uid:
                yield forbidden(f"{path}[{number}]", "must not be empty")
            elif uid in seen:
                yield duplicate(f"{path}[{number}]", uid)
            seen.add(uid)
