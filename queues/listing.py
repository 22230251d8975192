"""The list of queues as a tree, and the parts of one queue's page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from django.template.loader import render_to_string

from cluster import access
from cluster.access import Actor
from cluster.api import backend
from cluster.runtime import registry
from cluster.store import Stored, store
from dashboard import cluster_usage, live, reserved_room
from dashboard.cluster_usage import ROOT, Picture, QueueFacts
from dashboard.parts import bulk, paging, phases, pod_group_reasons, scope, usage_bar, visibility
from dashboard.parts.filters import Filter
from dashboard.parts.table import Column, Spec, Table, TableView
from dashboard.queue_room import WAITING, jobs_by_queue
from kube import amounts
from kube.amounts import Amounts
from kube.errors import NotFound
from kube.kinds.batch import Job
from kube.kinds.meta import Condition
from kube.kinds.scheduling import QueueAffinity
from kube.resources import JOBS, NODES, PODS, QUEUES
from kube.usage import queue_named
from queues import holders_panel, share_bars, share_table, waiting_panel
from queues.rules import states
from queues.rules.shares import FairShare

STATE = f"{QUEUES.id}/state"
SPEC = Spec(
    name="queues:list",
    columns=(
        Column("Queue", sort="name", kind="name"),
        Column("State", sort="phase"),
        Column("Running jobs", sort="running", kind="number"),
        Column("Waiting jobs", sort="waiting", kind="number"),
        Column("CPU", sort="cpu", kind="bar"),
        Column("Memory", sort="memory", kind="bar"),
        Column("Fair share", sort="share", kind="bar"),
        Column("Weight", sort="weight", kind="number", priority="low"),
    ),
    filters=(Filter("phase", "State", choices=phases.QUEUE_STATES, hidden=True),),
    search="Part of a queue's name",
    noun="queue",
    plural="queues",
)
JOBS_SPEC = Spec(
    name="queues:jobs",
    columns=(
        Column("Job", sort="name", kind="name"),
        Column("Phase", sort="phase"),
        Column("Why", kind="message"),
        Column("Age", sort="created", kind="time"),
    ),
    filters=(Filter("phase", "Phase", choices=phases.JOB_PHASES, hidden=True),),
    order="-created",
    noun="job",
    plural="jobs",
)


class Line(NamedTuple):
    """A queue in the list: its depth, and how many jobs it has, with those below it, and what they use.

    `share` is None if another scheduler works, which may divide the cluster by another rule.
    """

    facts: QueueFacts
    depth: int
    running: int
    waiting: int
    used: Amounts
    limits: Amounts
    share: FairShare | None


def table(actor: Actor, view: TableView) -> Table:
    """Return a page of the queues; in the order of names they form a tree."""
    access.require(actor, "list", QUEUES, "")
    visible = access.namespaces(actor, JOBS)
    with store.reading() as head:
        running, waiting = jobs_by_queue(visible, "Running"), jobs_by_queue(visible, WAITING)
        with cluster_usage.current(head) as picture:
            shares = _shares(picture)
            lines = [_line(picture, *each, running, waiting, shares) for each in _tree(picture, "", 0)]
    lines = [line for line in lines if view.q.lower() in line.facts.name]
    counts = Counter(line.facts.state for line in lines)
    if state := view.get("phase"):
        lines = [line for line in lines if line.facts.state == state]
    if view.sort != SPEC.order:
        lines.sort(key=_ORDERS[view.sort.removeprefix("-")], reverse=view.sort.startswith("-"))
    page = paging.Page(view.page, view.per, len(lines))
    is_tree = view.sort == SPEC.order and not view.filtered
    page_lines = lines[page.offset : page.offset + page.size]
    return Table(
        view=view,
        rows={
            f"queue-{line.facts.name}": _row(line, is_tree=is_tree, visible=visibility.of(visible))
            for line in page_lines
        },
        page=page,
        watches=[*cluster_usage.WATCHES, *scope.watches(JOBS.id, "", visible)],
        counts=counts,
        phases=phases.QUEUE_STATES,
        revision=head,
        empty={
            "symbol": "list-tree",
            "title": "There are no queues",
            "text": (
                "The cluster has none, or these pages may not read them; the strip at the top says so then."
                if backend.is_mirror
                else "The controllers make the queue “default” when they start."
            ),
        },
    )


def _tree(picture: Picture, name: str, depth: int) -> Iterator[tuple[QueueFacts, int]]:
    """Yield the queues below a queue ("" for root) with their depth, each followed by those below it; lost ones come last.

    Lost are queues whose parent does not exist.
    """
    for queue in picture.children(name):
        yield queue, depth
        if depth < MAX_LEVELS:
            yield from _tree(picture, queue.name, depth + 1)
    if not name:
        lost = [queue for queue in picture.queues.values() if queue.parent and queue.parent not in picture.queues]
        yield from ((queue, 0) for queue in sorted(lost, key=lambda queue: queue.name))


MAX_LEVELS = 8  # admission allows fewer; a circle of parents must not hang the page


def _shares(picture: Picture) -> dict[str, FairShare]:
    is_ours = backend.runs(registry.get("scheduler"))
    return share_bars.of_queues(picture) if is_ours else {}


def _line(
    picture: Picture,
    facts: QueueFacts,
    depth: int,
    running: dict[str, int],
    waiting: dict[str, int],
    shares: dict[str, FairShare],
) -> Line:
    limits = picture.limits(facts.name, picture.capacity())
    names = picture.subtree(facts.name)
    run, wait = (sum(counts.get(name, 0) for name in names) for counts in (running, waiting))
    used = picture.subtree_use(facts.name)
    return Line(facts, depth, run, wait, used, limits, shares.get(facts.name))


def _node_groups(affinity: QueueAffinity) -> str:
    """Return a queue's affinity to node groups in words: `only red, rather blue, never green`."""
    uses, avoids = affinity.node_group_affinity, affinity.node_group_anti_affinity
    rules = (
        ("only", uses.required_during_scheduling_ignored_during_execution),
        ("rather", uses.preferred_during_scheduling_ignored_during_execution),
        ("rather not", avoids.preferred_during_scheduling_ignored_during_execution),
        ("never", avoids.required_during_scheduling_ignored_during_execution),
    )
    return ", ".join(f"{how} {' or '.join(names)}" for how, names in rules if names)


_ORDERS: dict[str, Any] = {
    "name": lambda line: line.facts.name,
    "phase": lambda line: (line.facts.state, line.facts.name),
    "running": lambda line: line.running,
    "waiting": lambda line: line.waiting,
    "cpu": lambda line: line.used.get("cpu", 0),
    "memory": lambda line: line.used.get("memory", 0),
    "share": lambda line: (line.share.part if line.share else None) or 0.0,
    "weight": lambda line: line.facts.queue.spec.weight,
}


def _row(line: Line, *, is_tree: bool, visible: visibility.Visibility) -> str:
    uses = [usage_bar.of(name, line.used.get(name, 0), line.limits.get(name, 0)) for name in ("cpu", "memory")]
    context = {
        "line": line,
        "depth": min(line.depth, 4) if is_tree else 0,
        "uses": uses,
        "share": share_bars.summary(line.share) if line.share else None,
        "is_tree": is_tree,
        "visibility": visible,
    }
    return render_to_string("queues/_row.html", context)


# One queue.


def parts(actor: Actor, name: str) -> tuple[str, dict[str, str]]:
    """Return a queue's uid and the parts about it; raise NotFound if there is none of that name."""
    access.require(actor, "get", QUEUES, "", name)
    visible = access.namespaces(actor, JOBS)
    with store.reading() as head:
        running, waiting = jobs_by_queue(visible, "Running"), jobs_by_queue(visible, WAITING)
        with cluster_usage.current(head) as picture:
            facts = picture.queues.get(name)
            if facts is None:
                raise NotFound.of(QUEUES.id, name)
            line = _line(picture, facts, 0, running, waiting, _shares(picture))
            children = picture.children("" if name == ROOT else name)
            below = [queue.name for queue in picture.below(name)]
            remaining = states.what_is_left(picture.groups_in(name), picture.loose_in(name))
            rooms = [room for room in picture.reservations() if name == ROOT or room.queue in (name, *below)]
            holders = holders_panel.of_queue(picture.holders(name), access.namespaces(actor, PODS))
    spec = facts.queue.spec
    share = line.share if name != ROOT else None
    waiting_line = waiting_panel.of_queue(head, name, below, visible) if line.share else None
    pending = waiting_line.pending if waiting_line else {}
    context = {
        "line": line,
        "facts": facts,
        "visibility": visibility.of(visible),
        "spec": spec,
        "node_groups": _node_groups(spec.affinity),
        "children": children,
        "below": below,
        "remaining": remaining,
        "holders": holders,
        "rooms": reserved_room.rows(actor, rooms, visible),
        "sees_cluster": access.allowed(actor, "list", NODES, ""),
        "uses": usage_bar.table(line.used, line.limits),
        "share": share,
        "share_rows": share_table.rows(share, pending, line.limits) if share else [],
        "share_text": share_table.summary(share, pending, waiting_line.total if waiting_line else 0) if share else "",
        "waiting_line": waiting_line,
        "shares": [
            (title, text, [amounts.show(*each) for each in cluster_usage.amounts_of(quantities).items()])
            for title, text, quantities in (
                ("Capability", "the most it may take", spec.capability),
                ("Deserved", "its fair share of these resources, in place of one by its weight", spec.deserved),
                ("Guarantee", "what is kept for it and lent to nobody", spec.guarantee.resource),
            )
        ],
        "may_change": access.allowed(actor, "patch", QUEUES, ""),
        "may_open": access.allowed(actor, "update", STATE, ""),
        "may_submit": facts.state == "Open" and not children and access.somewhere(actor, "create", JOBS),
        "may_delete": access.allowed(actor, "delete", QUEUES, ""),
        "is_builtin": name in ("default", "root"),
    }
    html: dict[str, str] = {
        f"queue-{part}": render_to_string(f"queues/_{part}.html", context)
        for part in ("actions", "head", "use", "share", "room", "line", "holders")
    }
    return facts.uid, html


def job_table(actor: Actor, name: str, view: TableView) -> Table:
    """Return a page of the jobs in a queue and in those below it that the actor may see."""
    visible = access.namespaces(actor, JOBS)
    chosen = view.get("phase")
    phase = ("Pending", "") if chosen == "Pending" else chosen or None
    with store.reading() as head:
        with cluster_usage.current(head) as picture:
            queues = picture.subtree(name)
        filters: dict[str, Any] = {
            "queue": queues,
            "namespace": scope.namespaces_of("", visible),
            "text": view.q or None,
        }
        counts: dict[str, int] = {}
        for word, count in store.count(JOBS, **filters).items():
            counts[word or "Pending"] = counts.get(word or "Pending", 0) + count
        page = paging.Page(view.page, view.per, counts.get(chosen, 0) if chosen else sum(counts.values()))
        jobs = store.find(JOBS, phase=phase, order=view.order, **page.span, **filters)
        reasons = pod_group_reasons.of(jobs)
    whose = "" if visibility.of(visible) is visibility.Visibility.ALL else " of your namespaces"
    # A bulk operation's filter names one queue.
    offer = bulk.offered(JOBS.id, actor) if len(queues) == 1 else None
    return Table(
        view=view,
        rows={
            f"job-{each.uid}": _job_row(each, name, reasons.get(each.uid), selectable=offer is not None)
            for each in jobs
        },
        page=page,
        watches=[live.Watch(QUEUES.id), *scope.watches(JOBS.id, "", visible)],
        counts=counts,
        phases=phases.JOB_PHASES,
        revision=head,
        fixed={"name": name},
        bulk=offer,
        bulk_fixed={"queue": name},
        empty={
            "symbol": "layers",
            "title": f"No job{whose} is in this queue{' or below it' if len(queues) > 1 else ''}",
            "text": "A job's spec names its queue; a job without one goes to default.",
        },
    )


def _job_row(stored: Stored, name: str, reason: Condition | None, *, selectable: bool) -> str:
    """Return the row of a job on the page of the queue with this name. reason: why it waits if its status does not say it."""
    job = stored.read(Job)
    state = job.status.state
    context = {
        "stored": stored,
        "id": f"job-{stored.uid}",
        "phase": state.phase,
        "why": state.message or (reason.message if reason else "") or state.reason,
        "below": queue if (queue := queue_named(job.spec.queue)) != name else "",
        "selectable": selectable,
    }
    return render_to_string("queues/_job_row.html", context)
