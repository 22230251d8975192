"""Causes in words: one sentence for people, and the text that Volcano writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from kube.amounts import show
from kube.meta import moment_of
from kube.usage import ROOT_QUEUE
from kube.volcano.pod_groups import job_of
from scheduler.engine.cause import Cause, Constraint, ExclusionKind, Obstacle, Reason
from scheduler.reasons import arrangement_words


def fit_errors(cause: Cause) -> str:
    """Return Volcano's FitErrors text: `0/3 nodes are unavailable: 3 Insufficient cpu.` (§5.3)."""
    if not cause.tally:
        return "all nodes are unavailable"
    listed = ", ".join(f"{count} {text}" for count, text in cause.tally)
    return f"0/{cause.nodes} nodes are unavailable: {listed}."


def sentence(cause: Cause) -> str:
    """Return the cause for people: `2 of 4 pods fit; each needs 8 CPU, the most free on one node then is …`."""
    if (template := _TEXTS.get(cause.reason)) is not None:
        text = template.format(
            cause=cause,
            group=_called(cause.group),
            limit=show(cause.resource, cause.whole),
            taints=_tainted(cause),
            others=_others(cause),
        )
    elif cause.reason in _CLOSED_TO_ALL:
        kind, template = _CLOSED_TO_ALL[cause.reason]
        rest = cause.nodes - sum(n for n, e in cause.excluded if e.kind == kind)
        besides = f"; {_nodes(rest)} more {'does' if rest == 1 else 'do'} not suit the pods" if rest else ""
        text = template.format(f"{_of_kind(cause, kind)}{besides}")
    else:
        text = _SENTENCES[cause.reason](cause)
    if cause.reason in _NAMING_OTHERS:
        if tainted := _tainted(cause):
            text += f" Other nodes have taints that the pods do not tolerate: {tainted}."
        for kind, template in _OTHER_NODES.items():
            if closed := _of_kind(cause, kind):
                text += template.format(closed)
    return text + _withholding(cause) + _protected(cause)


def enumeration(items: Sequence[str]) -> str:
    """Return `a, b and c`, "" for nothing."""
    return f"{', '.join(items[:-1])} and {items[-1]}" if len(items) > 1 else "".join(items)


def amounts(pairs: Sequence[tuple[str, int]]) -> str:
    """Return `8 CPU, 2 GiB memory and 1 nvidia.com/gpu`."""
    return enumeration([show(name, amount) for name, amount in pairs]) or "nothing"


def _nodes_unavailable(cause: Cause) -> str:
    if cause.entering:
        return (
            f"Waits for nodes: its minimum needs {show(cause.resource, cause.requested)}, those that take pods have "
            f"{show(cause.resource, cause.whole)}; {show(cause.resource, cause.free)} more are on nodes that are not "
            "ready or closed to new pods."
        )
    listed = ", ".join(f"{n} {'is' if n == 1 else 'are'} {e.kind}" for n, e in cause.excluded if e.kind in _PASSING)
    return f"No node takes pods: {listed}{_others(cause)}."


def _no_matching_node(cause: Cause) -> str:
    looked = f"({_nodes(cause.nodes)} looked at)"
    if cause.lacking is None:
        return f"No node has the labels that the pods select {looked}."
    key, values, similar = cause.lacking
    wanted = [f"{key}={each}" for each in values[:_NAMED_VALUES]] or [key]
    if (more := len(values) - len(wanted)) > 0:
        wanted.append(f"{more} other value{'s' if more > 1 else ''}")
    have = ", ".join(f"{key}={each}" for each in similar)
    meant = f" Nodes have {have}: is that what was meant?" if have else ""
    return f"No node has the label {' or '.join(wanted)} {looked}.{meant}"


def _never_fits(cause: Cause) -> str:
    if cause.entering:
        return (
            f"This can never start: its minimum needs {show(cause.resource, cause.requested)}, "
            f"the whole cluster has {show(cause.resource, cause.whole)}."
        )
    if cause.resource and not cause.whole:
        return f"This can never start: a pod needs {show(cause.resource, cause.requested)}, and no node that it may use has any."
    if cause.resource:
        return (
            f"This can never start: a pod needs {show(cause.resource, cause.requested)}, the largest node that it "
            f"may use has {show(cause.resource, cause.whole)} ({cause.whole_node})."
        )
    if cause.fit or cause.needed > 1:
        return (
            f"This can never start: of the {cause.needed} pods that must start together only {cause.fit} fit, "
            "even on empty nodes."
        )
    return f"This can never start: no single node that a pod may use has {amounts(cause.request)}."


def _not_enough_resources(cause: Cause) -> str:
    if cause.entering:
        return (
            f"Waits for room in the cluster: its minimum needs {show(cause.resource, cause.requested)}, "
            f"{show(cause.resource, cause.free)} can still be given out.{_promised(cause)}"
        )
    if cause.fit >= cause.needed:
        return "The gang fits and is tried again."
    then = " then" if cause.fit and not cause.started else ""  # the pods that fit have no nodes yet
    if cause.resource:
        most = f"the most free on one node{then} is {show(cause.resource, cause.free)} ({cause.free_node})"
        beside = f", beside what is kept for idle {cause.spared}" if cause.spared else ""
        return f"{_fits(cause)} needs {show(cause.resource, cause.requested)}, {most}{beside}."
    return f"{_fits(cause)} needs {amounts(cause.request)}, which no node has free at once{then}."


def _queue_over_deserved(cause: Cause) -> str:
    used, due = show(cause.resource, cause.used), show(cause.resource, cause.deserved)
    return (
        f"{_not_enough_resources(cause)} With this queue {cause.queue} would use {used}, and it deserves {due}: nothing is "
        "taken back from other queues for it, so it waits for what they leave."
    )


def _queue_limit(cause: Cause) -> str:
    short = show(cause.resource, cause.requested)
    limit = show(cause.resource, cause.whole)
    above = ", which is above its own" if cause.reason is Reason.PARENT_LIMIT else ""
    if cause.entering:
        return (
            f"Waits for room in queue {cause.queue}{above}: its minimum needs {short}, "
            f"{show(cause.resource, cause.free)} of {limit} can still be given out.{_promised(cause)}"
        )
    above = f"{above}," if above else ""
    if part := _part_that_fits(cause):
        return f"Queue {cause.queue}{above} {part}."
    return (
        f"Queue {cause.queue}{above} is at its limit: this needs {short} more, "
        f"{show(cause.resource, cause.free)} of {limit} left."
    )


def _part_that_fits(cause: Cause) -> str:
    """Return how many pods of a gang fit, and what is left after them; "" unless some but not all of its minimum fit."""
    if cause.started or not 0 < cause.fit < cause.needed:
        return ""
    one = show(cause.resource, dict(cause.request).get(cause.resource, 1))
    return (
        f"has room for {cause.fit} of the {cause.needed} pods that must start together: the next one needs {one}, "
        f"and {show(cause.resource, cause.free)} of {show(cause.resource, cause.whole)} is left then"
    )


def _queue_guarantees(cause: Cause) -> str:
    where = "the cluster" if cause.queue == ROOT_QUEUE else f"queue {cause.queue}"
    wanted, whole = show(cause.resource, cause.requested), show(cause.resource, cause.whole)
    if cause.never:
        return (
            f"This can never start: it needs {wanted}, and of {whole} in {where} "
            f"all but {show(cause.resource, cause.free)} are kept for the guarantees of other queues."
        )
    why = f"as guarantees keep {_guaranteed_to(cause)}.{_promised(cause)}"
    if not cause.entering and (part := _part_that_fits(cause)):
        return f"{where[0].upper()}{where[1:]} {part}, {why}"
    what = "its minimum needs" if cause.entering else "this needs"
    more = "" if cause.entering else " more"
    return (
        f"Waits for room in {where}: {what} {wanted}{more}, {show(cause.resource, cause.free)} of {whole} can be "
        f"given out, {why}"
    )


def _guaranteed_to(cause: Cause) -> str:
    """Return how much is unused under the guarantees of which queues: `6 CPU for queue research and 2 CPU for queue ops`."""
    return enumeration(
        [
            f"{show(cause.resource, amount)} for {f'queue {queue}' if queue else 'others'}"
            for queue, amount in cause.keepers
        ]
    )


def _quota_exceeded(cause: Cause) -> str:
    prefixed = cause.resource.startswith(("requests.", "limits.", "count/"))
    name = cause.resource.replace("/", ".", 1).partition(".")[2] if prefixed else cause.resource
    needed = show(name, cause.requested) + (f" ({cause.resource})" if prefixed else "")
    if cause.never:
        return (
            f"This can never start: its minimum needs {needed}, and quota {cause.quota} of its namespace allows {show(name, cause.whole)}. "
            "Ask for less, or have the quota raised."
        )
    left = f"{show(name, cause.free)} of {show(name, cause.whole)} left"
    return f"Waits for quota {cause.quota} of its namespace: its minimum needs {needed}, {left}."


def _host_port_taken(cause: Cause) -> str:
    about = cause.obstacle or _OTHER_PODS
    return f"{_fits(cause)} needs port {about.display} of its node, and {_roomy(about, 'has', 'have')} it taken."


def _pod_anti_affinity(cause: Cause) -> str:
    about = cause.obstacle or _OTHER_PODS
    has = _roomy(about, "has", "have")
    return f"{_fits(cause)} must be apart from pods with {about.display}, and {has} one{_near(about)}."


def _repelled(cause: Cause) -> str:
    about = cause.obstacle or _OTHER_PODS
    has = _roomy(about, "has", "have")
    return f"{_fits(cause)} is kept away: {has} a pod{_near(about)} that repels it by {about.display}."


def _pod_affinity(cause: Cause) -> str:
    about = cause.obstacle or _OTHER_PODS
    where = " and ".join(about.topologies)
    return (
        f"{_fits(cause)} needs a pod with {about.display} in the same {where}; {_roomy(about, 'is', 'are')} elsewhere."
    )


def _topology_spread(cause: Cause) -> str:
    about = cause.obstacle or _OTHER_PODS
    spread = f"{_fits(cause)} is spread over {about.display}"
    if not about.domain:
        return f"{spread}, and {_roomy(about, 'is', 'are')} in no part of it that counts."
    excess = f"{spread}: {about.domain} would have {about.more:,} more than"
    if about.least:
        return f"{excess} none, {about.allowed:,} allowed while there are {about.domains} of the {about.least} parts that it wants."
    return f"{excess} {about.fewest}, {about.allowed:,} allowed."


def _near(about: Obstacle) -> str:
    return "" if about.topologies == (HOSTNAME,) else f" in the same {' and '.join(about.topologies)}"


def _roomy(about: Obstacle, one: str, many: str) -> str:
    """Return how many of the nodes with room an obstacle closes, with the verb for one or for many of them."""
    if about.nodes < about.roomy:
        return f"{about.nodes} of {about.roomy} nodes with room {one if about.nodes == 1 else many}"
    return f"all {about.roomy} nodes with room {many}" if about.roomy > 1 else f"the only node with room {one}"


def _waiting_for_victims(cause: Cause) -> str:
    if not cause.victims:
        return "Pods are asked to end, so that this can start."
    parts = [
        f"{n} {'pod' if n == 1 else 'pods'} of {_called(group)}" if group else f"{n} of others"
        for group, n in cause.victims
    ]
    is_one = sum(n for _, n in cause.victims) == 1
    return f"{enumeration(parts)} {'is' if is_one else 'are'} asked to end, so that this can start."


def _reserved(cause: Cause) -> str:
    nodes = [name or f"{_nodes(n)} more" for name, n in cause.places]
    reservation = f"Room is kept for this since {clock(cause.since)} on {enumeration(nodes)}"
    if cause.expected is None:
        return f"{reservation}; it starts when enough of what runs there has ended."
    return f"{reservation}; by what the jobs there say of themselves it can start at {clock(cause.expected)}."


def clock(time: int) -> str:
    """Return a moment (ms) for people: `2026-01-01 12:40:00 UTC`."""
    return f"{moment_of(time):%Y-%m-%d %H:%M:%S} UTC"


def _withholding(cause: Cause) -> str:
    """Return which queues have too much and are not reclaimable: ` Queue batch has more than it deserves, and gives nothing back …`."""
    if not cause.withholding:
        return ""
    named = [queue or f"{n} more" for queue, n in cause.withholding]
    if len(named) == 1:
        return f" Queue {named[0]} has more than it deserves, and gives nothing back (reclaimable: false)."
    return f" Queues {enumeration(named)} have more than they deserve, and give nothing back (reclaimable: false)."


def _protected(cause: Cause) -> str:
    """Return what protects pods from eviction: ` Protected from being evicted for it: 6 pods by disruption budget ns/web.`."""
    if not cause.protected:
        return ""
    named = [f"{n} {'pod' if n == 1 else 'pods'} by {what or 'others'}" for what, n in cause.protected]
    return f" Protected from being evicted for it: {', '.join(named)}."


def _room_reserved(cause: Cause) -> str:
    named = [_called(group) if group else f"{n} more" for group, n in cause.keeping]
    groups = enumeration(named)
    if cause.since:
        return (
            f"The room that this needs is kept for job group {groups}, which has waited long (reservation). "
            "A job that states a runningEstimate, and ends before that one can start, may use it meanwhile."
        )
    if len(cause.keeping) == 1:
        return f"The room that this needs is kept for job group {groups}, which goes first and waits for pods to end."
    return f"The room that this needs is kept for job groups {groups}, which go first and wait for pods to end."


def unknown(constraint: Constraint | None) -> str:
    """Return what the scheduler does not know or cannot read, with the remedy."""
    return f"the scheduler {_DEMANDS[constraint]}."


def _promised(cause: Cause) -> str:
    """Return which queue may still take most of what was given out; "" where none may."""
    if cause.promise is None:
        return ""
    amount, queue, groups = cause.promise
    jobs = "1 job" if groups == 1 else f"{groups:,} jobs"
    return f" Queue {queue} may still take {show(cause.resource, amount)} for {jobs} that entered before."


def _not_enough_tasks(cause: Cause) -> str:
    if cause.gated:
        gates = f"{cause.gated} {'is' if cause.gated == 1 else 'are'} held back by scheduling gates"
        return f"{cause.fit} of {cause.needed} pods may be scheduled; {gates}."
    return f"{cause.fit} of {cause.needed} pods exist; waiting for the others to be created."


def _fits(cause: Cause) -> str:
    if cause.started:
        return f"{cause.fit} of {cause.needed} pods have a node; each of the others"
    if cause.needed == 1:
        return "The pod does not fit yet: it"
    return f"{cause.fit} of {cause.needed} pods fit; each"


def _called(group: str) -> str:
    """Return the name that people know a pod group by: its job's, if it has one."""
    return job_of(group) or group


def _nodes(count: int) -> str:
    return f"{count} node" if count == 1 else f"{count} nodes"


def _tainted(cause: Cause) -> str:
    return ", ".join(f"{e.display} on {_nodes(n)}" for n, e in cause.excluded if e.kind == ExclusionKind.TAINT)


def _of_kind(cause: Cause, kind: ExclusionKind) -> str:
    """Return how many nodes are closed in one way: `2 are of node group gpu, 1 is of no node group`."""
    closed = Counter[str]()
    for n, each in cause.excluded:
        if each.kind == kind:
            closed[each.display] += n
    return ", ".join(f"{n} {'is' if n == 1 else 'are'} {display}" for display, n in closed.most_common())


def _others(cause: Cause) -> str:
    other = sum(n for n, e in cause.excluded if e.kind == ExclusionKind.SELECTOR)
    return f"; {other} more {'does' if other == 1 else 'do'} not have the labels that the pods select" if other else ""


HOSTNAME = "kubernetes.io/hostname"
_NAMED_VALUES = 3
_DEMANDS = {
    None: "does not know what the pods demand",
    Constraint.POD_AFFINITY: "cannot read the required podAffinity: each term has a topologyKey and a label selector",
    Constraint.POD_ANTI_AFFINITY: "cannot read the required podAntiAffinity: each term has a topologyKey and a label selector",
    Constraint.TOPOLOGY_SPREAD: (
        "cannot read the topologySpreadConstraints: each has a topologyKey, a maxSkew of at least 1, "
        "whenUnsatisfiable (DoNotSchedule or ScheduleAnyway) and a label selector"
    ),
    Constraint.HOST_PORT: "cannot read the ports of the containers: hostPort is a number",
    Constraint.RESOURCE_CLAIMS: "does not know resourceClaims yet; ask for devices among the resources of containers",
}
_PASSING = (ExclusionKind.NOT_READY, ExclusionKind.UNSCHEDULABLE)
_OTHER_PODS = Obstacle("other pods", 0, 0, ())
_NAMING_OTHERS = (Reason.NODES_UNAVAILABLE, Reason.NEVER_FITS, Reason.NOT_ENOUGH_RESOURCES)
_OTHER_NODES = {
    ExclusionKind.NODE_GROUP: " Other nodes are not for the queue: {}.",
    ExclusionKind.BUSY: " Other nodes are too busy: {}.",
    ExclusionKind.REVOCABLE: " Of other nodes {}.",
}
_CLOSED_TO_ALL = {
    Reason.NODE_GROUP: (
        ExclusionKind.NODE_GROUP,
        "No node is for the queue: {}. Name one of their groups in spec.affinity of the queue, or choose another queue.",
    ),
    Reason.NODES_BUSY: (ExclusionKind.BUSY, "All nodes are too busy: {}. This starts when their load falls."),
    Reason.REVOCABLE_ZONE: (ExclusionKind.REVOCABLE, "No node takes these pods now: {}."),
}
NAMING_NODES = frozenset({Reason.UNTOLERATED_TAINT, *_NAMING_OTHERS, *_CLOSED_TO_ALL})
"""Reasons whose sentence says what closes nodes."""
_TEXTS = {
    Reason.NO_NODES: "The cluster has no nodes.",
    Reason.UNTOLERATED_TAINT: "The pods do not tolerate the taints of the nodes: {taints}{others}.",
    Reason.QUEUE_TOO_SMALL: "This can never start in queue {cause.queue}: it needs more than the queue's limit of {limit}.",
    Reason.PARENT_TOO_SMALL: "This can never start below queue {cause.queue}: it needs more than that queue's limit of {limit}.",
    Reason.QUEUE_ORDER: (
        "Queue {cause.queue} is first in, first out: this waits until job group {group}, which is before it, can start."
    ),
    Reason.QUEUE_NOT_FOUND: "Queue {cause.queue} does not exist; create it or choose another.",
    Reason.QUEUE_CLOSED: "Queue {cause.queue} is closed; open it or choose another.",
    Reason.QUEUE_HAS_CHILDREN: "Queue {cause.queue} has queues below it, so it takes no pods itself; choose one of those.",
    Reason.CLAIM_NOT_BOUND: (
        "The claim {cause.claim} has no volume yet. If its class waits for the first pod that uses it (WaitForFirstConsumer), "
        "choose one that makes volumes at once: the scheduler does not know where volumes can be made."
    ),
    Reason.NOT_ALLOCATING: (
        "No waiting pod gets a node: the scheduler's configuration does not name the action allocate. Add it to actions."
    ),
    Reason.GROUP_NOT_FOUND: (
        "Pod group {cause.group} does not exist; create it, or create the pod without naming a group."
    ),
}
_SENTENCES: dict[Reason, Callable[[Cause], str]] = {
    Reason.NODES_UNAVAILABLE: _nodes_unavailable,
    Reason.NO_MATCHING_NODE: _no_matching_node,
    Reason.NEVER_FITS: _never_fits,
    Reason.NOT_ENOUGH_RESOURCES: _not_enough_resources,
    Reason.QUEUE_LIMIT: _queue_limit,
    Reason.PARENT_LIMIT: _queue_limit,
    Reason.QUEUE_OVER_DESERVED: _queue_over_deserved,
    Reason.QUEUE_GUARANTEES: _queue_guarantees,
    Reason.QUOTA_EXCEEDED: _quota_exceeded,
    Reason.NOT_ENOUGH_TASKS: _not_enough_tasks,
    Reason.SCHEDULING_GATED: _not_enough_tasks,
    Reason.HOST_PORT_TAKEN: _host_port_taken,
    Reason.POD_AFFINITY: _pod_affinity,
    Reason.POD_ANTI_AFFINITY: _pod_anti_affinity,
    Reason.REPELLED: _repelled,
    Reason.TOPOLOGY_SPREAD: _topology_spread,
    Reason.NETWORK_TOPOLOGY: arrangement_words.network_topology,
    Reason.SUB_GROUPS: arrangement_words.sub_groups,
    Reason.UNKNOWN_CONSTRAINT: lambda cause: f"This cannot start here: {unknown(cause.constraint)}",
    Reason.WAITING_FOR_VICTIMS: _waiting_for_victims,
    Reason.RESERVED: _reserved,
    Reason.ROOM_KEPT: _room_reserved,
}
