"""The overview: first the troubles that need a person, then how full the cluster is and what its jobs do."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from django.template.loader import render_to_string
from django.utils.http import urlencode

from cluster import access, clock
from cluster.access import Actor
from cluster.api import backend
from cluster.runtime import idle_room, registry
from cluster.store import Stored, store
from dashboard import cluster_usage, live, reserved_room
from dashboard.cluster_usage import Picture
from dashboard.live import Parts, TopicRequest
from dashboard.pages import nodes as nodes_page
from dashboard.pages import offers
from dashboard.parts import not_run, phases, pod_group_reasons, scope, svg, usage_bar, visibility
from kube import pod_health
from kube.kinds.batch import JobState
from kube.kinds.fields import View
from kube.kinds.meta import Condition
from kube.kinds.scheduling import PodGroupStatus
from kube.resources import JOBS, NODES, POD_GROUPS, PODS, QUEUES
from kube.usage import queue_named
from kube.volcano import pod_groups

TOPIC = "dashboard:overview"
WAITS_LONG_MS = 60_000
LATELY_MS = 24 * 3600 * 1000
MOST = 6  # of each sort of trouble; the rest is a link with a number
MAX_FAILED = 200  # the newest failed jobs, among which those that failed alike are one line
MAX_ROWS = 8  # queues and nodes
MAX_WAITING = 200  # the oldest waiting jobs, among which those that wait alike are one line
MAX_JUDGED = 50  # the newest waiting jobs, which are checked for whether they can start at all
WAITING = ("Pending", "")
# Reasons of a pod group's condition Unschedulable that do not pass by themselves, of scheduler.engine.cause.Reason.
HOPELESS = frozenset(
    {
        "NeverFits",
        "NoMatchingNode",
        "UntoleratedTaint",
        "QueueTooSmall",
        "ParentQueueTooSmall",
        "QueueNotFound",
        "QueueClosed",
        "QueueHasChildren",
        "UnknownConstraint",
    }
)
DEADLOCK = "TaskDeadlock"  # likewise the reason of a job's state, written by its controller
FAILED = ("Failed", "Terminated")


class _Status(View):
    state: JobState = JobState()
    waiting_reason: str = ""
    exit_codes: list[int] = []


class _Spec(View):
    queue: str = ""


class _Job(View):
    """The fields of a job that the overview reads."""

    spec: _Spec = _Spec()
    status: _Status = _Status()


class _Group(View):
    """The fields of a pod group that say why it waits."""

    status: PodGroupStatus = PodGroupStatus()


class Trouble(NamedTuple):
    """One line of the panel "Needs attention": a phase, the page of the object, and a sentence."""

    phase: str
    page: str
    namespace: str
    name: str
    sentence: str
    since: str | int
    more: int = 0  # how many other jobs have the same trouble
    alike: Alike | None = None  # what these jobs have in common, if the list of jobs can filter by it


class Alike(NamedTuple):
    """Jobs of a queue that failed with the same exit code, or that wait for the same cause in one namespace."""

    phase: str
    queue: str
    exit_code: int | None = None
    cause: str = ""
    namespace: str = ""
    is_least: bool = False  # more jobs wait than were read, so there may be others

    @property
    def query(self) -> str:
        """The filters by which the list of jobs shows them all."""
        code = "" if self.exit_code is None else str(self.exit_code)
        filters = {"namespace": self.namespace, "phase": self.phase, "cause": self.cause, "exit": code, "queue": self.queue}  # fmt: skip
        return urlencode({name: value for name, value in filters.items() if value})


@live.topic(TOPIC)
def overview_topic(request: TopicRequest) -> Parts:
    """Everything that the overview shows."""
    return overview(request.actor, request.params.get("namespace", ""))[1]


def overview(actor: Actor, namespace: str) -> tuple[int, Parts]:
    """Return the revision, and the overview's parts at it, for one namespace or ("") for all."""
    visible = access.namespaces(actor, JOBS)
    chosen = scope.namespaces_of(namespace, visible)
    sees_cluster = access.allowed(actor, "list", NODES, "")
    now = clock.milliseconds()
    with store.reading() as head, cluster_usage.current(head) as picture:
        counts = _by_phase(store.count(JOBS, namespace=chosen))
        legend = [(word, counts[word], phases.appearance(word).hue) for word in phases.JOB_PHASES if counts.get(word)]
        failed = store.find(JOBS, namespace=chosen, phase=FAILED, order="-revision", limit=MAX_FAILED)
        waiting = store.find(JOBS, namespace=chosen, phase=WAITING, order="created", limit=MAX_WAITING)
        newest = store.find(JOBS, namespace=chosen, phase=WAITING, order="-created", limit=MAX_JUDGED)
        hopeless = _hopeless(newest)
        not_running = _not_running(chosen)
        rooms = reserved_room.rows(actor, picture.reservations(), visible)
        idle = _passed_over(chosen)
        stuck = [each for each in hopeless if each.uid not in {*not_running, *idle}]
        listed = {*not_running, *idle, *(job.uid for job in hopeless)}
        patient = [each for each in waiting if each.uid not in listed and each.created <= now - WAITS_LONG_MS]
        is_least = len(waiting) == MAX_WAITING
        troubles = [
            *(_node_troubles(picture) if sees_cluster else ()),
            *idle.values(),
            *_failures(failed, now),
            *not_running.values(),
            *_waits(stuck, patient, is_least=is_least),
        ]
        context = {
            "troubles": troubles,
            "counts": legend,
            "stack": svg.stack(svg.Share(count, hue, word) for word, count, hue in legend),
            "not_run": not_run.line(actor, "overview-not-run", namespace=namespace),
            "total": sum(counts.values()),
            "namespace": namespace,
            "sees_cluster": sees_cluster,
            "sees_queues": access.allowed(actor, "list", QUEUES, ""),
            "visibility": visibility.of(visible),
            "is_mirror": backend.is_mirror,
            "rooms": [room for room in rooms if namespace in ("", room.namespace)],
            "offers": offers.current() if not counts and may_submit(actor, namespace) else [],
            "waiting": counts.get("Pending", 0),
            "failed": sum(counts.get(word, 0) for word in FAILED),
            **_cluster(picture),
        }
    parts = {
        f"overview-{part}": render_to_string(f"dashboard/_overview_{part}.html", context)
        for part in ("start", "attention", "room", "tiles", "jobs", "queues", "nodes")
    }
    watches = [*scope.watches(JOBS.id, namespace, visible), *not_run.watches(actor, namespace), *cluster_usage.WATCHES]
    # Stale when the next job has waited for long and, while jobs wait, after each check for idle room.
    young = [each.created + WAITS_LONG_MS for each in waiting if each.created > now - WAITS_LONG_MS]
    again = min([*young, now + idle_room.EVERY_MS]) if waiting else None
    return head, Parts(parts, watches=watches, again=again)


def may_submit(actor: Actor, namespace: str) -> bool:
    """Return whether the actor may submit jobs in the overview's namespace or, if that is "", in any."""
    if namespace:
        return access.allowed(actor, "create", JOBS, namespace)
    return access.somewhere(actor, "create", JOBS)


def _by_phase(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the counts with jobs that have no phase yet, before a controller has seen them, counted as Pending."""
    by_phase: dict[str, int] = {}
    for phase, count in counts.items():
        by_phase[phase or "Pending"] = by_phase.get(phase or "Pending", 0) + count
    return by_phase


def _hopeless(waiting: list[Stored]) -> list[Stored]:
    """Return the jobs that cannot start until somebody changes something, however long they wait."""
    jobs = {f"{stored.namespace}/{stored.name}-{stored.uid}": stored for stored in waiting}
    hopeless = {
        key
        for key, group in store.by_keys(POD_GROUPS, list(jobs)).items()
        for each in group.read(_Group).status.conditions
        if each.type == "Unschedulable" and each.status == "True" and each.reason in HOPELESS
    }
    return [job for key, job in jobs.items() if key in hopeless or job.read(_Job).status.state.reason == DEADLOCK]


def _node_troubles(picture: Picture) -> list[Trouble]:
    troubles = []
    for node in [node for node in picture.nodes.values() if node.state in ("NotReady", "Unknown")][:MOST]:
        ready = next((each for each in node.node.status.conditions if each.type == "Ready"), None)
        why = (ready.message or ready.reason if ready else "") or "The node does not say why."
        since = ready.last_transition_time if ready else ""
        troubles.append(Trouble(node.state, "dashboard:node", "", node.name, why, since))
    return troubles


def _failures(failed: list[Stored], now: int) -> list[Trouble]:
    """Return the newest failures; jobs that failed alike are one trouble.

    Alike are jobs of a queue that failed with the same exit code, and other jobs of a namespace with the same message
    but for their names.
    """
    troubles: dict[tuple[str, ...] | Alike, Trouble] = {}
    for stored in failed:
        job = stored.read(_Job)
        state = job.status.state
        if cluster_usage.moment(state.last_transition_time, stored.created) <= now - LATELY_MS:
            continue
        sentence = state.message or state.reason or "It gives no reason."
        sentence = sentence.replace(f"{stored.name}-", "")
        codes = job.status.exit_codes
        alike = Alike(state.phase, queue_named(job.spec.queue), codes[0]) if len(codes) == 1 else None
        key = alike or (stored.namespace, state.phase, sentence)
        if key in troubles:
            troubles[key] = troubles[key]._replace(more=troubles[key].more + 1, alike=alike)
            continue
        since = state.last_transition_time or stored.created
        troubles[key] = Trouble(state.phase, "jobs:detail", stored.namespace, stored.name, sentence, since)
    return list(troubles.values())[:MOST]


def _not_running(namespaces: str | Collection[str] | None) -> dict[str, Trouble]:
    """Return by uid the jobs in these namespaces with the most pods that have a node and do not run."""
    phases_of: dict[str, dict[tuple[str, str], int]] = {}
    causes = tuple(pod_health.TEXTS)
    for (owner, phase, cause), number in store.tally(
        PODS, ("owner", "phase", "trouble"), trouble=causes, namespace=namespaces
    ).items():
        phases_of.setdefault(owner, {})[phase, cause] = number
    most = sorted(phases_of, key=lambda uid: (-sum(phases_of[uid].values()), uid))[:MOST]
    troubles = {}
    for stored in store.find(JOBS, namespace=namespaces, uid=most) if most else ():
        state = stored.read(_Job).status.state
        sentence = pod_health.trouble_text(pod_health.health(0, phases_of[stored.uid]), state.reason, state.message)
        since = state.last_transition_time or stored.created
        phase = state.phase or "Pending"
        troubles[stored.uid] = Trouble(phase, "jobs:detail", stored.namespace, stored.name, sentence, since)
    return troubles


def _passed_over(namespaces: str | Collection[str] | None) -> dict[str, Trouble]:
    """Return by uid the jobs in these namespaces that wait although there is idle room for them, the longest first."""
    check = idle_room.last()
    waits = check.waits({namespaces} if isinstance(namespaces, str) else namespaces) if check else []
    groups = {}
    for each in waits:
        namespace, _, name = each.group.partition("/")
        if job := pod_groups.job_of(name):  # others are no job's
            groups[f"{namespace}/{job}"] = each
    troubles = {}
    for key, stored in store.by_keys(JOBS, list(groups)[:MOST]).items():
        wait = groups[key]
        pods = f"its {wait.pods} pods" if wait.pods != 1 else "its pod"
        sentence = (
            f"There is room for {pods} that nobody uses, and the scheduler does not start it. That is a fault: its log,"
            " logs/scheduler.log in the state directory, says more; ending the program “scheduler”, which is started again at"
            " once, lets it look at everything anew."
        )
        troubles[stored.uid] = Trouble("Pending", "jobs:detail", stored.namespace, stored.name, sentence, wait.since)
    return troubles


def _waits(*sorts: Iterable[Stored], is_least: bool) -> list[Trouble]:
    """Return why jobs wait, at most MOST of each sort; jobs of a queue and a namespace with the same cause are one trouble.

    `is_least` says that more jobs wait than these.
    """
    troubles: dict[tuple[str, ...], Trouble] = {}
    for jobs in map(list, sorts):
        most, conditions = len(troubles) + MOST, pod_group_reasons.of(jobs)
        for stored in sorted(jobs, key=lambda each: (each.created, each.name)):
            job, condition = stored.read(_Job), conditions.get(stored.uid, Condition())
            state = job.status.state
            sentence = state.message or condition.message or _unexplained(state.phase)
            searched = job.status.waiting_reason or state.reason
            cause = searched or condition.reason
            key = (stored.namespace, queue_named(job.spec.queue), cause or sentence)
            if (first := troubles.get(key)) is not None:
                alike = Alike("Pending", queue_named(job.spec.queue), None, searched, stored.namespace, is_least)
                troubles[key] = first._replace(more=first.more + 1, alike=alike if searched else None)
            elif len(troubles) < most:
                troubles[key] = Trouble(
                    "Pending", "jobs:detail", stored.namespace, stored.name, sentence, stored.created
                )
    return list(troubles.values())


def _unexplained(phase: str) -> str:
    """Return what to say of a job that waits and of which neither its controller nor the scheduler says why."""
    if backend.runs(registry.get("jobs")):
        return "No controller has looked at it yet. Is the worker running?"
    if not phase:
        return "No controller of the cluster has looked at it yet. Does Volcano's controller manager run?"
    return "The cluster's scheduler has not said why yet. Does Volcano's scheduler run?"


def _cluster(picture: Picture) -> dict[str, Any]:
    capacity, used = picture.capacity(), picture.used()
    busiest = sorted(
        (queue for queue in picture.queues.values() if queue.name != cluster_usage.ROOT),
        key=lambda queue: (-picture.in_queue.get(queue.name, {}).get("cpu", 0), queue.name),
    )
    # Real machines first: they are few, and matter more than simulated ones.
    nodes = sorted(picture.nodes.values(), key=lambda node: (node.simulated, node.name))
    return {
        "uses": [usage_bar.of(name, used.get(name, 0), capacity.get(name, 0)) for name in usage_bar.FIRST],
        "ready": sum(node.state in nodes_page.UP for node in nodes),
        "ready_bar": nodes_page.ready_bar(picture),
        "nodes_total": len(nodes),
        "nodes": [_node(picture, node) for node in nodes[:MAX_ROWS]],
        "queues": [_queue(picture, queue, capacity) for queue in busiest[:MAX_ROWS]],
        "queues_total": len(busiest),
    }


def _node(picture: Picture, node: cluster_usage.NodeFacts) -> dict[str, Any]:
    taken = picture.on_node.get(node.name, {})
    uses = [usage_bar.of(name, taken.get(name, 0), node.allocatable.get(name, 0)) for name in ("cpu", "memory")]
    return {"facts": node, "uses": uses, "pods": taken.get("pods", 0)}


def _queue(picture: Picture, queue: cluster_usage.QueueFacts, capacity: Mapping[str, int]) -> dict[str, Any]:
    taken = picture.subtree_use(queue.name)
    limits = picture.limits(queue.name, capacity)
    return {
        "facts": queue,
        "uses": [usage_bar.of(name, taken.get(name, 0), limits.get(name, 0)) for name in ("cpu", "memory")],
    }
