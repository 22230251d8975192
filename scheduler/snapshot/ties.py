"""What a profile means to the engine: marks, and rules over them (`scheduler.engine.relations`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from scheduler.engine.cause import Reason
from scheduler.engine.relations import OWN_NODE, Apart, NodeSet, Rule, Spread, Ties, Together
from scheduler.records.demands import Demands
from scheduler.records.profiles import Profile, Repels, Subject, port_conflicts


class Eligible(NamedTuple):
    """The nodes that a spread may count, as functions: those that the pods select, those they tolerate, and those with given labels."""

    selected: Callable[[], NodeSet]
    tolerated: Callable[[], NodeSet]
    labelled: Callable[[tuple[str, ...]], NodeSet]


def ties_of(profile: Profile, repelled: Mapping[Subject, Mapping[str, int]], eligible: Eligible) -> Ties:
    """Return the ties of pods with a profile; repelled are the subjects of other pods' anti-affinities."""
    own = profile.demands
    rules = [] if own is None else list(_own_rules(own, profile))
    rules += _repelled(profile, repelled)
    if own is not None:
        rules += _spread(own, profile, eligible)
    return Ties(profile.marks, tuple(rules))


def _own_rules(own: Demands, profile: Profile) -> Iterator[Rule]:
    """Yield the rules that pods demand themselves: free host ports, affinity and anti-affinity."""
    text = "node(s) didn't have free ports for the requested pod ports"
    for port in sorted(own.ports, key=str):
        for mark in port_conflicts(port):
            yield Apart(mark, OWN_NODE, Reason.HOST_PORT_TAKEN, str(port), text)
    if own.affinity:
        subject = tuple(term.pods for term in own.affinity)
        topologies = tuple(dict.fromkeys(term.topology for term in own.affinity))
        display = " and ".join(dict.fromkeys(map(str, subject)))
        text = "node(s) didn't match pod affinity rules"
        yield Together(subject, topologies, subject in profile.selected, Reason.POD_AFFINITY, display, text)
    text = "node(s) didn't match pod anti-affinity rules"
    for term in own.anti_affinity:
        yield Apart((term.pods,), term.topology, Reason.POD_ANTI_AFFINITY, str(term.pods), text)


def _repelled(profile: Profile, repelled: Mapping[Subject, Mapping[str, int]]) -> Iterator[Rule]:
    found = [
        (subject, topology)
        for subject in profile.selected
        for topology, pods in repelled.get(subject, {}).items()
        if pods
    ]
    text = "node(s) didn't satisfy existing pods anti-affinity rules"
    for subject, topology in sorted(found, key=repr):
        yield Apart(Repels(subject, topology), topology, Reason.REPELLED, str(subject[0]), text)


def _spread(own: Demands, profile: Profile, eligible: Eligible) -> Iterator[Rule]:
    keys = tuple(dict.fromkeys(each.topology for each in own.spread))
    for each in own.spread:
        nodes = eligible.labelled(keys)
        if each.honors_selector:
            nodes = nodes & eligible.selected()
        if each.honors_taints:
            nodes = nodes & eligible.tolerated()
        subject = (each.pods,)
        yield Spread(
            subject,
            each.topology,
            each.skew,
            each.least,
            subject in profile.selected,
            nodes,
            Reason.TOPOLOGY_SPREAD,
            each.topology,
            "node(s) didn't match pod topology spread constraints",
            none_stands=not each.pods.labels.requirements and not each.pods.labels.nothing,
        )
