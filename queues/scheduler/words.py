"""A policy in words, for people who do not know Volcano's configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kube.meta import duration_text
from scheduler.policy.known import PLUGINS, Standing
from scheduler.policy.policy import Action

if TYPE_CHECKING:
    from scheduler.policy.policy import Policy, Scoring

STARTER = """\
actions: "enqueue, allocate, backfill, reclaim, preempt"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
  - name: pdb
  - name: cdp
- plugins:
  - name: overcommit
    arguments:
      overcommit-factor: 1.2
  - name: drf
  - name: predicates
  - name: proportion
"""
"""A configuration that says what holds without one, to begin with."""


class Said(NamedTuple):
    """One thing that a policy decides: what, how, and the words of the configuration for it."""

    title: str
    text: str
    written: str


def said(policy: Policy) -> list[Said]:
    """Return what a policy decides."""
    return [
        Said("Jobs are let in", _entry(policy), "enqueue, overcommit"),
        Said(
            "Pods get nodes",
            "yes" if Action.ALLOCATE in policy.actions else "no: no waiting pod starts",
            "allocate",
        ),
        Said("Running pods are evicted", _evictions(policy), "preempt, reclaim"),
        Said("Pods with a disruption budget", _budgets(policy), "pdb"),
        Said("Pods that have just started", _cooldown(policy), "cdp"),
        Said("Jobs that wait long", _wait(policy), "sla"),
        Said("Nodes are chosen", _choice(policy.scoring), "nodeorder, binpack"),
    ]


def always() -> list[tuple[str, str]]:
    """Return the plugins that are at work whatever is configured, with what they do."""
    return [(name, each.words) for name, each in PLUGINS.items() if each.standing is Standing.ALWAYS]


def _entry(policy: Policy) -> str:
    if Action.ENQUEUE not in policy.actions:
        return "at once, whatever room there is"
    if policy.overcommit is None:
        return "whatever room the cluster has, up to the capability of their queues"
    return f"for {policy.overcommit / 1000:g} times the cluster, up to the capability of their queues"


def _evictions(policy: Policy) -> str:
    for_whom = {
        Action.PREEMPT: "for more urgent jobs of their queue",
        Action.RECLAIM: "for queues that have less than they deserve",
    }
    found = [words for action, words in for_whom.items() if action in policy.actions]
    return ", and ".join(found) or "for nobody"


def _budgets(policy: Policy) -> str:
    if policy.budgets:
        return "are not evicted beyond what it allows"
    return "are evicted beyond what it allows only where nobody else can be"


def _cooldown(policy: Policy) -> str:
    if policy.cooldown:
        return "are not evicted for as long as they ask for (volcano.sh/cooldown-time)"
    return "are evicted like others"


def _wait(policy: Policy) -> str:
    if not policy.sla:
        return "wait like others"
    if policy.waits_ms is None:
        return "are let in after the time that they state themselves"
    return f"are let in after {duration_text(policy.waits_ms)}, or the time that they state themselves"


def _choice(scoring: Scoring | None) -> str:
    if scoring is None:
        return "the fullest of what the pod asks for first"
    packed = ", ".join(f"{name} {weight}" for name, weight in scoring.resources)
    parts = [
        (scoring.binpack, f"full of certain resources ({packed})"),
        (scoring.least, "little CPU and memory used"),
        (scoring.most, "much CPU and memory used"),
        (scoring.balanced, "CPU and memory used alike"),
    ]
    return "by weights: " + "; ".join(f"{text} × {weight}" for weight, text in parts if weight)
