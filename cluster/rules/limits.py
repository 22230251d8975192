"""ResourceQuotas and LimitRanges as objects; how they bound what is created is elsewhere (§6.3)."""

from __future__ import annotations

from collections.abc import Iterator

from cluster.rules.checks import IMMUTABLE, NOT_NEGATIVE, RulesView, amount, one_of
from kube import lenient, names
from kube.errors import Cause, duplicate, forbidden, invalid, required
from kube.kinds.limits import LimitType, QuotaScope
from kube.meta import Object

OPERATORS = ("DoesNotExist", "Exists", "In", "NotIn")
CONFLICTS = ({QuotaScope.TERMINATING, QuotaScope.NOT_TERMINATING}, {QuotaScope.BEST_EFFORT, QuotaScope.NOT_BEST_EFFORT})
BOUNDS = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
# In each pair the first may not be more than the second.
ORDER = (
    *(("min", "max"), ("min", "defaultRequest"), ("defaultRequest", "default")),
    *(("default", "max"), ("defaultRequest", "max"), ("min", "default")),
)


def default_quota(quota: Object, old: Object | None, view: RulesView) -> None:
    """Nothing is counted of a new quota yet."""
    if old is None:
        quota["status"] = {}


def validate_quota(quota: Object, old: Object | None, view: RulesView) -> list[Cause]:
    """Return what is wrong with a quota; its scopes stay."""
    spec = quota.get("spec") or {}
    causes: list[Cause] = []
    for name, written in (spec.get("hard") or {}).items():
        path, value = f"spec.hard[{name}]", amount(written)
        if problem := names.qualified_name(name):
            causes.append(invalid(path, name, problem))
        if value < 0:
            causes.append(invalid(path, written, NOT_NEGATIVE))
        elif value.denominator != 1 and (name == "pods" or name.startswith(("count/", "services"))):
            causes.append(invalid(path, written, "must be an integer"))
    causes += _check_scopes(spec)
    if old is not None:
        before = lenient.mapping(old, "spec").get("scopes") or []
        if sorted(spec.get("scopes") or []) != sorted(before):
            causes.append(invalid("spec.scopes", spec.get("scopes"), IMMUTABLE))
    return causes


def _check_scopes(spec: Object) -> Iterator[Cause]:
    scopes = spec.get("scopes") or []
    for number, scope in enumerate(scopes):
        path = f"spec.scopes[{number}]"
        if scope in scopes[:number]:
            yield duplicate(path, scope)
        if scope not in tuple(QuotaScope):
            yield invalid(path, scope, "unsupported scope")
    for pair in CONFLICTS:
        if pair <= set(scopes):
            yield invalid("spec.scopes", scopes, "conflicting scopes")
    yield from _check_scope_selector(spec)


def _check_scope_selector(spec: Object) -> Iterator[Cause]:
    for number, each in enumerate(lenient.mapping(spec, "scopeSelector").get("matchExpressions") or ()):
        path = f"spec.scopeSelector.matchExpressions[{number}]"
        name, operator = each.get("scopeName"), each.get("operator")
        if name not in tuple(QuotaScope):
            yield invalid(f"{path}.scopeName", name, "unsupported scope")
        elif name != QuotaScope.PRIORITY_CLASS and operator != "Exists":
            detail = "must be 'Exist' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
            yield invalid(f"{path}.operator", operator, detail)
        yield from one_of(operator, OPERATORS, f"{path}.operator")
        needs = operator in ("In", "NotIn")
        if needs and not each.get("values"):
            detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
            yield required(f"{path}.values", detail)
        elif each.get("values") and not needs:
            detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
            yield invalid(f"{path}.values", each["values"], detail)


def default_range(limits: Object, old: Object | None, view: RulesView) -> None:
    """For containers, the bounds stand in for the defaults (LimitRange's own defaulting)."""
    for item in lenient.mapping(limits, "spec").get("limits") or ():
        if item.get("type") != LimitType.CONTAINER:
            continue
        default = dict(item.get("default") or {})
        for name, value in (item.get("max") or {}).items():
            default.setdefault(name, value)
        requests = dict(item.get("defaultRequest") or {})
        for source in (default, item.get("min") or {}):
            for name, value in source.items():
                requests.setdefault(name, value)
        item.update({key: value for key, value in (("default", default), ("defaultRequest", requests)) if value})


def validate_range(limits: Object, old: Object | None, view: RulesView) -> list[Cause]:
    """Return what is wrong with a limit range."""
    causes: list[Cause] = []
    seen: set[str] = set()
    for number, item in enumerate(lenient.mapping(limits, "spec").get("limits") or ()):
        path, kind = f"spec.limits[{number}]", item.get("type") or ""
        if kind in seen:
            causes.append(duplicate(f"{path}.type", kind))
        seen.add(kind)
        if kind not in tuple(LimitType) and names.qualified_name(kind):
            causes.append(invalid(f"{path}.type", kind, "must be a standard limit type or fully qualified"))
        causes += _check_item(item, path)
    return causes


def _check_item(item: Object, path: str) -> Iterator[Cause]:
    kind = item.get("type")
    for field in ("default", "defaultRequest"):
        if kind == LimitType.POD and item.get(field):
            yield forbidden(f"{path}.{field}", f"may not be specified when `type` is '{kind}'")
    if kind == LimitType.CLAIM and not any("storage" in (item.get(each) or {}) for each in ("min", "max")):
        yield required(path, "either minimum or maximum storage value is required, but neither was provided")
    for field in BOUNDS:
        for name, written in (item.get(field) or {}).items():
            if problem := names.qualified_name(name):
                yield invalid(f"{path}.{field}[{name}]", name, problem)
            if amount(written) < 0:
                yield invalid(f"{path}.{field}[{name}]", written, NOT_NEGATIVE)
    yield from _check_order(item, path)
    yield from _check_ratio(item, path)


def _check_order(item: Object, path: str) -> Iterator[Cause]:
    for low, high in ORDER:
        for name, written in (item.get(low) or {}).items():
            above = (item.get(high) or {}).get(name)
            if above is not None and amount(written) > amount(above):
                detail = f"{_FIELD_NAMES[low]} value {written} is greater than {_FIELD_NAMES[high]} value {above}"
                yield invalid(f"{path}.{low}[{name}]", written, detail)


def _check_ratio(item: Object, path: str) -> Iterator[Cause]:
    for name, written in (item.get("maxLimitRequestRatio") or {}).items():
        where, ratio = f"{path}.maxLimitRequestRatio[{name}]", amount(written)
        if ratio < 1:
            yield invalid(where, written, f"ratio {written} is less than 1")
        low, high = (item.get("min") or {}).get(name), (item.get("max") or {}).get(name)
        if low is not None and high is not None and amount(low) > 0 and ratio > amount(high) / amount(low):
            most = float(amount(high) / amount(low))
            yield invalid(where, written, f"ratio {written} is greater than max/min = {most:f}")


_FIELD_NAMES = {"min": "min", "max": "max", "default": "default", "defaultRequest": "default request"}
