"""What a LimitRange asks of each pod, container and claim: the plug-in LimitRanger (reference: kubernetes-api §6.3).

It acts on what is created; claims keep to it when they grow, too. Texts are Kubernetes'.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from cluster.rules.checks import RulesView, amount
from kube import amounts, lenient, quantity
from kube.amounts import Amounts
from kube.errors import Cause, Forbidden
from kube.kinds.limits import LimitType
from kube.meta import Object
from kube.resources import CLAIMS, LIMIT_RANGES, PODS

ANNOTATION = "kubernetes.io/limit-ranger"
KINDS = (("containers", "container"), ("initContainers", "init container"))


class _Compute(NamedTuple):
    """What one thing requests and is limited to, as written."""

    requests: dict[str, Any]
    limits: dict[str, Any]


def fill_pod(pod: Object, view: RulesView) -> None:
    """Fill in what the limit ranges of a new pod's namespace say that its containers ask for."""
    fill(pod, view.listed(LIMIT_RANGES, pod["metadata"]["namespace"]))


def bound_pod(pod: Object, old: Object | None, view: RulesView) -> list[Cause]:
    """Raise Forbidden when a new pod is out of its namespace's bounds."""
    if old is None:
        ranges = view.listed(LIMIT_RANGES, pod["metadata"]["namespace"])
        if problem := refusal(pod, ranges):
            raise Forbidden.of(PODS.id, _name(pod), problem)
    return []


def bound_claim(claim: Object, old: Object | None, view: RulesView) -> list[Cause]:
    """Raise Forbidden when a claim is out of its namespace's bounds."""
    if old is not None and claim.get("spec") == old.get("spec"):
        return []
    for each in view.listed(LIMIT_RANGES, claim["metadata"]["namespace"]):
        if problem := _aggregated(_claim_problems(claim, each)):
            raise Forbidden.of(CLAIMS.id, _name(claim), problem)
    return []


def fill(pod: Object, ranges: Sequence[Object]) -> None:
    """Give each container what it leaves open, and note that in an annotation; nested values are replaced, not changed."""
    for each in ranges:
        requests: dict[str, Any] = {}
        limits: dict[str, Any] = {}
        for item in _items(each, LimitType.CONTAINER):
            requests |= item.get("defaultRequest") or {}
            limits |= item.get("default") or {}
        if not requests and not limits:
            continue
        notes: list[str] = []
        for kind, called in KINDS:
            if pod["spec"].get(kind):
                pod["spec"][kind] = [
                    _filled(container, requests, limits, called, notes) for container in pod["spec"][kind]
                ]
        if notes:
            before = pod["metadata"].get("annotations") or {}
            text = f"LimitRanger plugin set: {'; '.join(notes)}"
            pod["metadata"]["annotations"] = {**before, ANNOTATION: text}


def bounds(limits: Object) -> bool:
    """Whether a limit range can refuse anything; one that only has defaults cannot."""
    items = lenient.mapping(limits, "spec").get("limits") or ()
    return any(item.get(field) for item in items for field in ("min", "max", "maxLimitRequestRatio"))


def refusal(pod: Object, ranges: Sequence[Object]) -> str:
    """Say in Kubernetes' words how a pod breaks the first limit range that it breaks; "" when it keeps to all."""
    return next((text for each in ranges if (text := _aggregated(_pod_problems(pod, each)))), "")


def _filled(
    container: Object, requests: dict[str, Any], limits: dict[str, Any], called: str, notes: list[str]
) -> Object:
    resources = container.get("resources") or {}
    own_limits = resources.get("limits") or {}
    # What is limited and not asked for is asked for, before any default (§1.3).
    requested = {**own_limits, **(resources.get("requests") or {})}
    for word, has, defaults in (("request", requested, requests), ("limit", own_limits, limits)):
        if added := sorted(set(defaults) - set(has)):
            notes.append(f"{', '.join(added)} {word} for {called} {container.get('name') or ''}")
    # Who asks for more than the default limit may use what it asked for; Kubernetes refuses it.
    raised = {
        name: requested[name] if name in requested and amount(requested[name]) > amount(most) else most
        for name, most in limits.items()
    }
    filled = {**resources, "requests": {**requests, **requested}, "limits": {**raised, **own_limits}}
    return {**container, "resources": {key: value for key, value in filled.items() if value}}


def _pod_problems(pod: Object, limits: Object) -> Iterator[str]:
    for item in lenient.mapping(limits, "spec").get("limits") or ():
        if item.get("type") == LimitType.CONTAINER:
            for kind, _ in KINDS:
                for container in pod["spec"].get(kind) or ():
                    resources = container.get("resources") or {}
                    bounds = resources.get("limits") or {}
                    yield from _problems(item, _Compute({**bounds, **(resources.get("requests") or {})}, bounds))
        elif item.get("type") == LimitType.POD:
            # Init containers count where they are more.
            requests, bounds = amounts.pod_request(pod["spec"]), amounts.pod_limits(pod["spec"])
            yield from _problems(item, _Compute(_written(requests), _written(bounds)))


def _claim_problems(claim: Object, limits: Object) -> Iterator[str]:
    """Judge what a claim requests; a claim has no limits to speak of."""
    resources = lenient.mapping(claim, "spec", "resources")
    compute = _Compute(resources.get("requests") or {}, resources.get("limits") or {})
    for item in _items(limits, LimitType.CLAIM):
        yield from _out_of_bounds(item, compute, "min", "request", "limit")
        yield from _out_of_bounds(item, compute, "max", "request")


def _items(limits: Object, kind: str) -> list[Object]:
    return [item for item in lenient.mapping(limits, "spec").get("limits") or () if item.get("type") == kind]


def _out_of_bounds(item: Object, compute: _Compute, field: str, *kinds: str) -> Iterator[str]:
    """Yield what is below a `min` or above a `max`, by the first of the kinds (request, limit), which must be given."""
    for name, bound in sorted((item.get(field) or {}).items()):
        word = "minimum" if field == "min" else "maximum"
        start = f"{word} {name} usage per {item['type']} is {_canonical(bound)}"
        amounts_by_kind = {"request": compute.requests.get(name), "limit": compute.limits.get(name)}
        if amounts_by_kind[kinds[0]] is None:
            yield f"{start}.  No {kinds[0]} is specified"
            continue
        for kind in kinds:
            written, limit = amounts_by_kind[kind], amount(bound)
            if written is not None and (amount(written) < limit if field == "min" else amount(written) > limit):
                yield f"{start}, but {kind} is {_canonical(written)}"
                break


def _problems(item: Object, compute: _Compute) -> Iterator[str]:
    yield from _out_of_bounds(item, compute, "min", "request", "limit")
    yield from _out_of_bounds(item, compute, "max", "limit", "request")
    for name, most in sorted((item.get("maxLimitRequestRatio") or {}).items()):
        request = amount(compute.requests.get(name, "0"))
        limit = amount(compute.limits.get(name, "0"))
        start = f"{name} max limit to request ratio per {item['type']} is {_canonical(most)}"
        if not request:
            yield f"{start}, but no request is specified or request is 0"
        elif not limit:
            yield f"{start}, but no limit is specified or limit is 0"
        elif limit / request > amount(most):
            yield f"{start}, but provided ratio is {float(limit / request):f}"


def _written(of: Amounts) -> dict[str, Any]:
    return amounts.resource_list({name: value for name, value in of.items() if name != "pods"})


def _aggregated(problems: Iterator[str]) -> str:
    """Write problems as Kubernetes writes an aggregate of errors."""
    texts = list(dict.fromkeys(problems))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]" if texts else ""


def _canonical(written: Any) -> str:
    return quantity.canonical(written if isinstance(written, str) else Fraction(written))


def _name(obj: Object) -> str:
    return obj["metadata"].get("name") or obj["metadata"].get("generateName") or ""
