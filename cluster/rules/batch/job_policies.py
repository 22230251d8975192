"""The failure and success policies of `batch/v1` Jobs (§1.12, §1.13), and the text of index sets (§1.15)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from cluster.rules.checks import one_of
from kube.errors import Cause, duplicate, invalid, required, too_long, too_many
from kube.kinds.workloads import ExitCodeOperator, FailureAction
from kube.meta import Object

MAX_RULES = 20
MAX_PATTERNS = 20
MAX_CODES = 255
LONGEST_INDEXES = 64 * 1024
CONDITION_STATUSES = ("True", "False", "Unknown")
_CONDITION_TYPE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_INTERVAL = re.compile(r"(\d+)(?:-(\d+))?", re.ASCII)


class IndexesError(ValueError):
    """The text does not describe a set of indexes."""


def default(policy: Object) -> None:
    """A pattern that names no status means True."""
    for rule in policy.get("rules") or ():
        for pattern in rule.get("onPodConditions") or ():
            pattern["status"] = pattern.get("status") or "True"


def read_indexes(text: str, completions: int | None) -> list[tuple[int, int]]:
    """Read a set of indexes, `0,2-4,7`, as intervals; IndexesError says what is wrong with it."""
    intervals: list[tuple[int, int]] = []
    last = -1
    for piece in text.split(",") if text else ():
        match = _INTERVAL.fullmatch(piece)
        if match is None:
            raise IndexesError(f"cannot convert string to integer for index: {piece[:64]!r}")
        first = int(match[1])
        until = int(match[2]) if match[2] is not None else first
        if match[2] is not None and until <= first:
            raise IndexesError(f"non-increasing order, previous: {first}, current: {until}")
        if first <= last:
            raise IndexesError(f"non-increasing order, previous: {last}, current: {first}")
        if completions is not None and until >= completions:
            raise IndexesError(f"too large index: {piece!r}")
        intervals.append((first, until))
        last = until
    return intervals


def size(intervals: list[tuple[int, int]]) -> int:
    """Return how many indexes there are."""
    return sum(until - first + 1 for first, until in intervals)


def check_failure(policy: Object, spec: Object) -> Iterator[Cause]:
    """Return what is wrong with a pod failure policy."""
    path, rules = "spec.podFailurePolicy.rules", policy.get("rules") or []
    if len(rules) > MAX_RULES:
        yield too_many(path, len(rules), MAX_RULES)
    pod = spec["template"].get("spec") or {}
    containers = {each.get("name") for kind in ("containers", "initContainers") for each in pod.get(kind) or ()}
    for number, rule in enumerate(rules):
        where, action = f"{path}[{number}]", rule.get("action")
        yield from one_of(action, FailureAction, f"{where}.action")
        if action == FailureAction.FAIL_INDEX and spec.get("backoffLimitPerIndex") is None:
            yield invalid(f"{where}.action", action, "requires the backoffLimitPerIndex to be set")
        codes, patterns = rule.get("onExitCodes"), rule.get("onPodConditions") or []
        if codes and patterns:
            yield invalid(where, rule, "specifying both OnExitCodes and OnPodConditions is not supported")
        elif codes is not None:
            yield from _check_codes(codes, f"{where}.onExitCodes", containers)
        elif patterns:
            if len(patterns) > MAX_PATTERNS:
                yield too_many(f"{where}.onPodConditions", len(patterns), MAX_PATTERNS)
            for at, pattern in enumerate(patterns):
                kind = pattern.get("type") or ""
                if not _CONDITION_TYPE.fullmatch(kind):
                    yield invalid(f"{where}.onPodConditions[{at}].type", kind, "must be a qualified name")
                yield from one_of(pattern.get("status"), CONDITION_STATUSES, f"{where}.onPodConditions[{at}].status")
        else:
            yield invalid(where, rule, "specifying one of OnExitCodes and OnPodConditions is required")


def _check_codes(codes: Object, path: str, containers: set[Any]) -> Iterator[Cause]:
    operator, values = codes.get("operator"), codes.get("values") or []
    yield from one_of(operator, ExitCodeOperator, f"{path}.operator")
    name = codes.get("containerName")
    if name is not None and name not in containers:
        detail = "must be one of the container or initContainer names in the pod template"
        yield invalid(f"{path}.containerName", name, detail)
    if not values:
        yield invalid(f"{path}.values", values, "at least one value is required")
    elif len(values) > MAX_CODES:
        yield too_many(f"{path}.values", len(values), MAX_CODES)
    seen: set[int] = set()
    for number, code in enumerate(values):
        if code == 0 and operator == ExitCodeOperator.IN:
            yield invalid(f"{path}.values[{number}]", code, "must not be 0 for the In operator")
        if code in seen:
            yield duplicate(f"{path}.values[{number}]", code)
        seen.add(code)
    if values != sorted(values):
        yield invalid(f"{path}.values", values, "must be ordered")


def check_success(policy: Object, completions: int | None) -> Iterator[Cause]:
    """Return what is wrong with a success policy."""
    path, rules = "spec.successPolicy.rules", policy.get("rules") or []
    if not rules:
        yield required(path, "at least one rules must be specified when the successPolicy is specified")
    if len(rules) > MAX_RULES:
        yield too_many(path, len(rules), MAX_RULES)
    for number, rule in enumerate(rules):
        yield from _check_success_rule(rule, f"{path}[{number}]", completions)


def _check_success_rule(rule: Object, path: str, completions: int | None) -> Iterator[Cause]:
    indexes, count = rule.get("succeededIndexes"), rule.get("succeededCount")
    if indexes is None and count is None:
        yield required(path, "at least one of succeededCount or succeededIndexes must be specified")
    among = None
    if indexes is not None:
        where = f"{path}.succeededIndexes"
        if len(indexes) > LONGEST_INDEXES:
            yield too_long(where, LONGEST_INDEXES)
        else:
            try:
                among = size(read_indexes(indexes, completions))
            except IndexesError as error:
                yield invalid(where, indexes, f"error parsing succeededIndexes: {error}")
    if count is None:
        return
    where = f"{path}.succeededCount"
    if count < 0:
        yield invalid(where, count, "must be greater than or equal to 0")
    if completions is not None and count > completions:
        detail = f"must be less than or equal to {completions} (the number of specified completions)"
        yield invalid(where, count, detail)
    if among is not None and count > among:
        what = "the number of indexes in the specified succeededIndexes field"
        yield invalid(where, count, f"must be less than or equal to {among} ({what})")
