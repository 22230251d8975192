"""How pods relate to other pods, as far as that makes them differ from each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from scheduler.engine.relations import Mark
from scheduler.records.demands import ANYWHERE, Demands, HostPort, PodSelector

Subject = tuple[PodSelector, ...]
"""Pods that all of these select: all terms of a pod's affinity form one subject (kube-scheduler), every other term its own."""


class Repels(NamedTuple):
    """The mark of pods with an anti-affinity to a subject, which keep it out of their domain."""

    subject: Subject
    topology: str


class Leans(NamedTuple):
    """The mark of pods that prefer a subject to be in their domain or, with a negative weight, elsewhere."""

    subject: Subject
    topology: str
    weight: int


class UsesPort(NamedTuple):
    """The mark of pods that use a port at an address of their node; "" means at any address."""

    address: str
    protocol: str
    port: int


@dataclass(frozen=True, slots=True)
class Profile:
    """Pods' demands about other pods, and the subjects in use that they belong to."""

    demands: Demands | None
    selected: frozenset[Subject]
    marks: tuple[Mark, ...] = field(init=False, compare=False)
    """The marks with which these pods count on their node."""

    def __post_init__(self) -> None:
        marks: set[Mark] = set(self.selected)
        if self.demands is not None:
            marks |= {Repels((term.pods,), term.topology) for term in self.demands.anti_affinity}
            marks |= {Leans((each.term.pods,), each.term.topology, each.weight) for each in self.demands.leanings}
            marks |= {mark for port in self.demands.ports for mark in port_marks(port)}
        object.__setattr__(self, "marks", tuple(marks))


def port_marks(port: HostPort) -> tuple[UsesPort, UsesPort]:
    """Return the marks of pods that use a port."""
    return UsesPort("", port.protocol, port.port), UsesPort(port.address, port.protocol, port.port)


def port_conflicts(port: HostPort) -> tuple[UsesPort, ...]:
    """Return the marks of pods that conflict with a port: those at its address and at ANYWHERE; at any for ANYWHERE itself."""
    if port.address == ANYWHERE:
        return (UsesPort("", port.protocol, port.port),)
    return tuple(UsesPort(address, port.protocol, port.port) for address in (ANYWHERE, port.address))


def subjects_of(demands: Demands) -> Iterator[Subject]:
    """Yield the subjects of demands."""
    if demands.affinity:
        yield tuple(term.pods for term in demands.affinity)
    yield from ((term.pods,) for term in demands.anti_affinity)
    yield from ((each.pods,) for each in demands.spread)
    yield from ((each.term.pods,) for each in demands.leanings)
    yield from ((each.pods,) for each in demands.even)
