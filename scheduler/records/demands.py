"""What pods demand of their place because of other pods: host ports, affinity, anti-affinity, spreading.

Semantics are kube-scheduler's (reference/volcano-scheduler §3.7, filters NodePorts, InterPodAffinity,
PodTopologySpread; §3.8 for preferences). Where an API server has not merged matchLabelKeys and
mismatchLabelKeys into the selector, that is done here. A required demand that cannot be read makes pods
wait; a preference that cannot be read is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec

from kube import selector as selecting
from kube.kinds.fields import View
from kube.selector import LabelSelector, Requirement
from kube.usage import NOTHING
from scheduler.engine.cause import Constraint
from scheduler.records.reading import PodSpecView

ANYWHERE = "0.0.0.0"  # noqa: S104 - an address that pods name, not one to listen on
HONOR, ANYWAY = "Honor", "ScheduleAnyway"
NONE = LabelSelector(nothing=True)


@dataclass(frozen=True, slots=True)
class PodSelector:
    """Selects pods by labels, in these namespaces or in those whose labels of_namespaces matches.

    leaving: pods that are being deleted are selected too.
    """

    labels: LabelSelector
    namespaces: frozenset[str]
    of_namespaces: LabelSelector = NONE
    leaving: bool = True

    def __str__(self) -> str:
        return str(self.labels) or ("labels that none has" if self.labels.nothing else "any labels")


@dataclass(frozen=True, slots=True)
class HostPort:
    """A port of the node. address is ANYWHERE for all of its addresses."""

    address: str
    protocol: str
    port: int

    def __str__(self) -> str:
        return str(self.port) if self.protocol == "TCP" else f"{self.port}/{self.protocol}"


@dataclass(frozen=True, slots=True)
class PodTerm:
    """The selected pods, and the topology key: pods in one of its domains are near."""

    pods: PodSelector
    topology: str


@dataclass(frozen=True, slots=True)
class Leaning:
    """A preference to be near the selected pods or, with a negative weight, away from them."""

    term: PodTerm
    weight: int


@dataclass(frozen=True, slots=True)
class Spreading:
    """One topology spread constraint."""

    pods: PodSelector
    topology: str
    skew: int
    least: int
    honors_selector: bool
    honors_taints: bool


@dataclass(frozen=True, slots=True)
class Demands:
    """Everything that pods demand because of other pods; leanings and even (ScheduleAnyway) are preferences."""

    ports: frozenset[HostPort] = frozenset()
    affinity: tuple[PodTerm, ...] = ()
    anti_affinity: tuple[PodTerm, ...] = ()
    spread: tuple[Spreading, ...] = ()
    leanings: tuple[Leaning, ...] = ()
    even: tuple[Spreading, ...] = ()

    def lasting(self) -> Demands | None:
        """Return what still counts once the pods have nodes: ports, anti-affinity and leanings; None where there are none."""
        if not self.ports and not self.anti_affinity and not self.leanings:
            return None
        return Demands(self.ports, anti_affinity=self.anti_affinity, leanings=self.leanings)


class UnreadableError(ValueError):
    """A demand that cannot be read; `constraint` says which."""

    def __init__(self, constraint: Constraint) -> None:
        super().__init__(constraint)
        self.constraint = constraint


def demands_of(spec: PodSpecView, namespace: str, labels: msgspec.Raw) -> Demands | None:
    """Return the demands of a pod, None when it has none; raise UnreadableError when they cannot be read."""
    affinity, spread = bytes(spec.affinity), bytes(spec.topology_spread_constraints)
    ports = tuple(
        bytes(each.ports)
        for each in (*spec.containers, *(one for one in spec.init_containers or () if one.restart_policy == "Always"))
        if b'"hostPort"' in bytes(each.ports)
    )
    if b'"podA' not in affinity:
        affinity = b""
    if not affinity and not spread and not ports:
        return None
    own = bytes(labels) if b'atchLabelKeys"' in affinity + spread else b""
    return _read(affinity, spread, ports, namespace, own)


class _Selector(View):
    match_labels: dict[str, str] | None = None
    match_expressions: list[dict[str, Any]] | None = None


class _Term(View):
    topology_key: str
    label_selector: _Selector | None = None
    namespaces: list[str] | None = None
    namespace_selector: _Selector | None = None
    match_label_keys: list[str] | None = None
    mismatch_label_keys: list[str] | None = None


class _Weighted(View):
    pod_affinity_term: _Term
    weight: int = 0


class _Terms(View):
    required_during_scheduling_ignored_during_execution: list[_Term] | None = None
    preferred_during_scheduling_ignored_during_execution: msgspec.Raw = NOTHING


class _Affinity(View):
    pod_affinity: msgspec.Raw = NOTHING
    pod_anti_affinity: msgspec.Raw = NOTHING


class _Spread(View):
    topology_key: str = ""
    when_unsatisfiable: str = ""
    max_skew: int = 0
    min_domains: int | None = None
    label_selector: _Selector | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: list[str] | None = None


class _Port(View):
    host_port: int | None = None
    host_ip: str | None = None
    protocol: str | None = None


_decode_affinity = msgspec.json.Decoder(_Affinity | None).decode
_decode_terms = msgspec.json.Decoder(_Terms | None).decode
_decode_weighted = msgspec.json.Decoder(list[_Weighted] | None).decode
_decode_spread = msgspec.json.Decoder(list[_Spread] | None).decode
_decode_ports = msgspec.json.Decoder(list[_Port] | None).decode
_decode_labels = msgspec.json.Decoder(dict[str, str] | None).decode
_WRONG = (msgspec.DecodeError, selecting.SelectorError)


# Pods of one template demand the same: it is read once.
@lru_cache(maxsize=4096)
def _read(affinity: bytes, spread: bytes, ports: tuple[bytes, ...], namespace: str, labels: bytes) -> Demands | None:
    own = labels_of(labels)
    near, apart, leanings = _read_affinity(affinity, namespace, own)
    firm, even = _read_spread(spread, namespace, own)
    found = Demands(_read_ports(ports), near, apart, firm, leanings, even)
    return found if found != Demands() else None


def labels_of(raw: bytes | msgspec.Raw) -> Mapping[str, str]:
    """Return the labels of a pod; none where they cannot be read."""
    data = bytes(raw)
    try:
        return (_decode_labels(data) if data else None) or {}
    except msgspec.DecodeError:
        return {}


def _read_affinity(
    raw: bytes, namespace: str, own: Mapping[str, str]
) -> tuple[tuple[PodTerm, ...], tuple[PodTerm, ...], tuple[Leaning, ...]]:
    """Return the required affinity, the required anti-affinity, and the preferences of both."""
    constraint = Constraint.POD_AFFINITY
    try:
        affinity = (_decode_affinity(raw) if raw else None) or _Affinity()
        near = _terms(affinity.pod_affinity)
        needed = _required(near, namespace, own)
        constraint = Constraint.POD_ANTI_AFFINITY
        apart = _terms(affinity.pod_anti_affinity)
        return needed, _required(apart, namespace, own), _leanings(near, apart, namespace, own)
    except _WRONG as error:
        raise UnreadableError(constraint) from error


def _terms(raw: msgspec.Raw) -> _Terms:
    return (_decode_terms(raw) if bytes(raw) else None) or _Terms()


def _required(terms: _Terms, namespace: str, own: Mapping[str, str]) -> tuple[PodTerm, ...]:
    listed = terms.required_during_scheduling_ignored_during_execution or ()
    return tuple(_term(term, namespace, own) for term in listed)


def _leanings(near: _Terms, apart: _Terms, namespace: str, own: Mapping[str, str]) -> tuple[Leaning, ...]:
    """Return the preferences; a term that is repeated appears once, with the sum of its weights."""
    found: dict[PodTerm, int] = {}
    for terms, sign in ((near, 1), (apart, -1)):
        raw = bytes(terms.preferred_during_scheduling_ignored_during_execution)
        try:
            for each in (_decode_weighted(raw) if raw else None) or ():
                term = _term(each.pod_affinity_term, namespace, own)
                found[term] = found.get(term, 0) + sign * each.weight
        except _WRONG:
            continue
    return tuple(Leaning(term, weight) for term, weight in found.items() if weight)


def _term(term: _Term, namespace: str, own: Mapping[str, str]) -> PodTerm:
    _checked_topology(term.topology_key)
    merged = [*_own_values(term.match_label_keys, own, "In"), *_own_values(term.mismatch_label_keys, own, "NotIn")]
    names = term.namespaces or ([] if term.namespace_selector is not None else [namespace])
    selector = PodSelector(
        _with(_selector(term.label_selector), merged), frozenset(names), _selector(term.namespace_selector)
    )
    return PodTerm(selector, term.topology_key)


def _read_spread(
    raw: bytes, namespace: str, own: Mapping[str, str]
) -> tuple[tuple[Spreading, ...], tuple[Spreading, ...]]:
    """Return the constraints that must hold, and those that are preferred."""
    firm, even = [], []
    try:
        for each in (_decode_spread(raw) if raw else None) or ():
            if each.when_unsatisfiable != ANYWAY:
                firm.append(_spreading(each, namespace, own))
            elif each.topology_key and each.max_skew >= 1:
                even.append(_spreading(each, namespace, own))
    except _WRONG as error:
        raise UnreadableError(Constraint.TOPOLOGY_SPREAD) from error
    return tuple(firm), tuple(even)


def _spreading(each: _Spread, namespace: str, own: Mapping[str, str]) -> Spreading:
    _checked_topology(each.topology_key)
    if each.max_skew < 1 or each.when_unsatisfiable not in ("DoNotSchedule", ANYWAY, ""):
        raise selecting.SelectorError("maxSkew is at least 1, whenUnsatisfiable DoNotSchedule or ScheduleAnyway.")
    labels = _with(_selector(each.label_selector), list(_own_values(each.match_label_keys, own, "In")))
    return Spreading(
        PodSelector(labels, frozenset((namespace,)), leaving=False),
        each.topology_key,
        each.max_skew,
        each.min_domains or 1,
        (each.node_affinity_policy or HONOR) == HONOR,
        each.node_taints_policy == HONOR,
    )


def _read_ports(listed: tuple[bytes, ...]) -> frozenset[HostPort]:
    try:
        ports = [port for raw in listed for port in _decode_ports(raw) or ()]
    except _WRONG as error:
        raise UnreadableError(Constraint.HOST_PORT) from error
    return frozenset(
        HostPort(each.host_ip or ANYWHERE, each.protocol or "TCP", each.host_port)
        for each in ports
        if each.host_port is not None and each.host_port > 0
    )


def _selector(written: _Selector | None) -> LabelSelector:
    """Read a label selector; None selects nothing, one without conditions everything."""
    if written is None:
        return selecting.from_object(None)
    return selecting.from_object({"matchLabels": written.match_labels, "matchExpressions": written.match_expressions})


def _own_values(keys: list[str] | None, own: Mapping[str, str], operator: selecting.Operator) -> Iterator[Requirement]:
    """Yield requirements that a pod's labels have the values of the demanding pod (In), or other ones (NotIn)."""
    for key in keys or ():
        if key in own:
            yield Requirement(key, operator, frozenset((own[key],)))


def _with(selector: LabelSelector, more: list[Requirement]) -> LabelSelector:
    left = tuple(each for each in more if each not in selector.requirements)
    return LabelSelector((*selector.requirements, *left), selector.nothing)


def _checked_topology(key: str) -> None:
    if not key:
        raise selecting.SelectorError("A topology key is the name of a label of nodes.")
