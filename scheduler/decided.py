"""What a cycle decided, as stored for later questions: one row per gang, cycle and kind of decision, whatever the gang's size.

Stored are: pods that got nodes, pods that were evicted, a changed reason to wait, a gang admitted to its queue after it had
waited, and pods of half a gang that were taken back. An unchanged reason is not written again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum

from cluster.writes import Decision
from kube.volcano.pod_groups import job_of
from scheduler.decisions import Eviction, GroupDecision
from scheduler.policy.actions import Action
from scheduler.records.records import Pod


class Kind(StrEnum):
    """What was decided. The reason of a refusal is a `scheduler.engine.cause.Reason`, that of an eviction its action."""

    BIND = "bind"
    EVICT = "evict"
    REFUSE = "refuse"
    ENTER = "enter"
    RETURN = "return"


class Bound(StrEnum):
    """Why pods got nodes."""

    GANG = "MinimumFits"
    REST = "BeyondMinimum"


NAMED_PODS = 4
LET_IN = "LetIn"
HALF_BOUND = "HalfBound"
ZONE_CLOSED = "RevocableZoneClosed"


def about_group(decision: GroupDecision, now: int) -> Iterator[Decision]:
    """Yield what was decided about one pod group."""
    if decision.refusal is not None:
        yield _decision(decision, now, Kind.REFUSE, *decision.refusal, pods=decision.needed)
    if decision.let_in:
        text = "It was let into its queue after it had waited, so that its pods are made."
        yield _decision(decision, now, Kind.ENTER, LET_IN, text, pods=decision.needed)
    if decision.binds:
        yield _bound(decision, now)
    if decision.given_back:
        pods = decision.given_back
        names = _pods([pod.name for pod in pods])
        text = f"{names} must be made again: the other pods of the gang did not get their nodes."
        yield _decision(decision, now, Kind.RETURN, HALF_BOUND, text, len(pods), _counted(pod.node for pod in pods))


def evicted(evictions: Iterable[Eviction], now: int) -> Iterator[Decision]:
    """Yield what was decided about the groups that lose pods: one decision per group, queue, action and beneficiary."""
    by_group: dict[tuple[str, str, str, Action | None, str], list[Pod]] = {}
    for each in evictions:
        pod = each.pod
        name = pod.group.partition("/")[2]
        key = pod.namespace, name, each.queue, each.action, each.beneficiary
        by_group.setdefault(key, []).append(pod)
    for (namespace, name, queue, action, beneficiary), pods in by_group.items():
        nodes = _counted(pod.node for pod in pods)
        text = f"{_pods([pod.name for pod in pods])} {'was' if len(pods) == 1 else 'were'} asked to end, because of"
        if action is Action.SHUFFLE:
            text += f" {action}: more of {_called_nodes(nodes)} is asked for than its target."
            reason, other = str(action), ""
        elif action is None:
            text += " tdm: the revocable zone is closed now."
            reason, other = ZONE_CLOSED, ""
        else:
            # People call a pod group by its job, if it has one.
            other_namespace, _, other_name = beneficiary.partition("/")
            job = job_of(other_name)
            called = f"job {other_namespace}/{job}" if job else f"pod group {beneficiary}"
            text += f" {action}: {called} gets the room."
            reason, other = str(action), beneficiary
        yield Decision(now, Kind.EVICT, reason, namespace, name, queue, len(pods), text, other, nodes)


def _called_nodes(nodes: Sequence[tuple[str, int]]) -> str:
    """Return `node a`, or `each of nodes a, b and 3 more`."""
    names = ", ".join(node for node, _ in nodes[:NAMED_PODS])
    if len(nodes) == 1:
        return f"node {names}"
    more = len(nodes) - NAMED_PODS
    return f"each of nodes {names}" + (f" and {more:,} more" if more > 0 else "")


def _bound(decision: GroupDecision, now: int) -> Decision:
    """Return the decision by which pods got nodes; its message names at most NAMED_PODS of them."""
    binds = decision.binds
    reason = Bound.REST if decision.started else Bound.GANG
    if len(binds) == 1:
        text = f"{binds[0].pod.name} got node {binds[0].node}."
        return _decision(decision, now, Kind.BIND, reason, text, 1, ((binds[0].node, 1),))
    nodes = _counted(bind.node for bind in binds)
    if len(binds) <= NAMED_PODS:
        where = ", ".join(f"{bind.pod.name} on {bind.node}" for bind in binds)
    else:
        where = ", ".join(f"{count:,} on {node}" for node, count in nodes[:NAMED_PODS])
        where += f" and others on {len(nodes) - NAMED_PODS:,} more" if len(nodes) > NAMED_PODS else ""
    text = f"{len(binds):,} pods got nodes: {where}"
    text += " beyond the minimum." if decision.started else f"; the minimum is {decision.needed:,}."
    return _decision(decision, now, Kind.BIND, reason, text, len(binds), nodes)


def _pods(names: Sequence[str]) -> str:
    """Return `a-0, a-1 and 3 more pods`."""
    if len(names) <= NAMED_PODS:
        return ", ".join(names)
    return f"{', '.join(names[:NAMED_PODS])} and {len(names) - NAMED_PODS:,} more pods"


def _counted(nodes: Iterable[str]) -> tuple[tuple[str, int], ...]:
    """Return how often each node occurs, most frequent first."""
    return tuple(sorted(Counter(filter(None, nodes)).items(), key=lambda pair: (-pair[1], pair[0])))


def _decision(
    decision: GroupDecision,
    now: int,
    kind: Kind,
    reason: str,
    message: str,
    pods: int,
    nodes: Sequence[tuple[str, int]] = (),
) -> Decision:
    key = decision.namespace, decision.name
    return Decision(now, kind, str(reason), *key, decision.queue, pods, message, nodes=nodes)
