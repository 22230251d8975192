"""Why a job waits, or some of its pods, for its page: the sentence, the reason from the closed list, and what ends it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from cluster import access, clock
from cluster.api import backend
from cluster.consumers import behind
from cluster.consumers.behind import Unread
from cluster.runtime import registry
from cluster.store import Stored, store
from dashboard.pages.overview import HOPELESS
from jobs.lifecycle import image_waits, phases
from jobs.lifecycle.image_waits import ImageWait
from jobs.lifecycle.reading import Pod
from jobs.pages.job import event_list
from jobs.pages.job.job_record import JobRecord
from jobs.rules import remedies
from kube import lenient, pod_health
from kube.kinds.core import PodPhase
from kube.resources import PODS
from kube.volcano.pod_groups import job_of
from scheduler import rehearsal, waiting_lines
from scheduler.rehearsal import Verdict

WHOLE = ("Pending", "Restarting")
"""Phases in which the whole job waits."""
PARTLY = ("WaitingForTasks", "FailedCreate", "PluginBlocked", "NoReplicas")
"""Reasons of a running job of which a part waits."""
PROGRAMS = {"jobs": "job controller", "scheduler": "scheduler"}
LOOK_AGAIN_MS = 5000
MAX_IMAGES = 3  # named
MAX_REHEARSED = 300  # pods of a job that is to be placed on empty nodes: a larger one takes too long for a page


class Before(NamedTuple):
    """A pod group that is before one in its queue: job is "" for a group without, priority the value of its class."""

    namespace: str
    name: str
    job: str
    priority: int


class QueuePosition(NamedTuple):
    """A job's number among those that wait in its queue, of how many, and the nearest before it.

    others is how many before it are not named: further off, or not visible to the reader.
    """

    queue: str
    number: int
    of: int
    before: list[Before]
    others: int


@dataclass(frozen=True, slots=True)
class Wait:
    """Why a job waits: a sentence, "" if nothing waits; reason is from `jobs.rules.remedies`.

    volcano_text is what Volcano's scheduler would say besides. pods is how many pods of a running job wait, 0 if all of it
    waits. unread is a change that the controllers have not read yet, position its place in its queue.
    """

    why: str = ""
    reason: str = ""
    pods: int = 0
    unread: Unread | None = None
    position: QueuePosition | None = None
    volcano_text: str = ""

    @property
    def remedy(self) -> remedies.Waiting | None:
        """What the reason means, and what to do; None if another scheduler gave it."""
        return remedies.REASONS.get(self.foremost)

    @property
    def foremost(self) -> str:
        """The reason to show first: while a controller is behind, `reason` may be outdated."""
        return remedies.BEHIND if self.behind else self.reason

    @property
    def behind(self) -> str:
        """The name of the controller that is late; "" if none is."""
        return PROGRAMS[self.unread.consumer] if self.unread is not None and self.unread.is_late else ""

    @property
    def again(self) -> int | None:
        """When to look again without a change of the job, in epoch ms: other jobs change its place."""
        soon = clock.milliseconds() + LOOK_AGAIN_MS if self.position is not None or self.behind else None
        late = self.unread.late_at if self.unread is not None and not self.behind else None
        return min((due for due in (soon, late) if due is not None), default=None)


def of_job(record: JobRecord) -> Wait:
    """Return why a job, or pods of a running one, waits; a finished or deleted job waits for nothing."""
    if record.deleted:
        return Wait()
    state, health = record.job.status.state, record.health
    # What keeps bound pods from running.
    stuck = Wait(pod_health.trouble_text(health, state.reason, state.message), next(iter(health.causes), ""))
    if record.job.phase in WHOLE:
        if state.reason == phases.TASK_DEADLOCK:  # the scheduler only counts the missing pods
            return Wait(state.message, state.reason, unread=_unread(record))
        group = record.group
        text = stuck.why or ("" if state.reason == pod_health.PODS_KEPT else state.text)
        why = (group.why if group else "") or text or event_list.unschedulable_message(group)
        reason = (group.holding.reason if group and group.why else "") or stuck.reason or state.reason
        # A job that cannot start until somebody changes something has no turn to wait for.
        position = None if reason in HOPELESS else _queue_position(record.stored_group, record.sees.jobs)
        volcano_text = group.volcano_text if group else ""
        if not stuck.why and (verdict := _never(record)) is not None:
            # The engine knows the numbers, and that waiting does not help; the scheduler of the cluster has its own words.
            why, reason, volcano_text = verdict.sentence, verdict.reason, why
        return Wait(why, reason, unread=_unread(record), position=position, volcano_text=volcano_text)
    if record.job.phase == "Running" and state.reason in PARTLY:
        return Wait(state.message, state.reason)
    if record.job.phase == "Running":
        return stuck if stuck.why else _of_pods(record)
    return Wait()


def _never(record: JobRecord) -> Verdict | None:
    """Return why a job that another scheduler is to place could not start even if nothing else ran, None if it could.

    That scheduler's own plugins and arguments are not read: a rule of nodes, queues or resources that it does not have is none of it.
    """
    group = record.stored_group
    if group is None or backend.runs(registry.get("scheduler")):
        return None
    owned = store.find(PODS, namespace=record.stored.namespace, owner=record.stored.uid, limit=MAX_REHEARSED)
    pods = [stored.object for stored in owned]
    if any(lenient.text(pod, "spec", "nodeName") for pod in pods) or len(pods) == MAX_REHEARSED:
        return None
    with store.reading() as head, rehearsal.current(head) as world:
        return world.rehearse(group.object, pods, clock.milliseconds())


def _of_pods(record: JobRecord) -> Wait:
    """Return why pods beyond the minimum have no node; the scheduler tells only the first ones."""
    number = record.counts.get(PodPhase.PENDING, 0)
    if not number:
        return Wait()
    lacking = [pod for _, pod in record.pods if not pod.spec.node_name and pod.status.phase == PodPhase.PENDING]
    conditions = (each for pod in lacking for each in pod.status.conditions)
    messages = (each.message for each in conditions if each.type == "PodScheduled" and each.status == "False")
    why = next(filter(None, messages), "")
    # Some Pending pods are bound and about to start.
    return Wait(why, pods=len(lacking) if record.reads_all else number) if why else Wait()


def _unread(record: JobRecord) -> Unread | None:
    """Return a change of the job or its pod group that their controller has not read, or None."""
    unread = behind.unread("jobs", record.stored.key, record.stored.revision)
    if unread is None and record.stored_group is not None:
        unread = behind.unread("scheduler", record.stored_group.key, record.stored_group.revision)
    return unread


def _queue_position(group: Stored | None, visible: frozenset[str] | access.Everywhere) -> QueuePosition | None:
    """Return a pod group's place; None if it does not wait, or another scheduler decides.

    visible are the namespaces whose jobs the reader may see.
    """
    if group is None or not backend.runs(registry.get("scheduler")):
        return None
    with store.reading() as head, waiting_lines.current(head) as lines:
        line_position = lines.position(group.key)
        queue = lines.queue_of(group.key)
    if line_position is None:
        return None
    named = [
        Before(each.namespace, each.name, job_of(each.name), priority)
        for each, priority in line_position.before
        if isinstance(visible, access.Everywhere) or each.namespace in visible
    ]
    return QueuePosition(queue, line_position.number, line_position.of, named, line_position.number - 1 - len(named))


def images_of(pods: Iterable[Pod]) -> list[ImageWait]:
    """Return the images that pods wait for, each once, those of most pods first."""
    waits: dict[str, ImageWait] = {}
    for pod in pods:
        if pod.is_ended:
            continue
        for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
            waiting = status.state.waiting
            if waiting is not None and waiting.reason in image_waits.REASONS:
                remedy = image_waits.remedy(waiting.reason, waiting.message, elsewhere=backend.is_mirror)
                wait = ImageWait(status.image, image_waits.registry_message(waiting.message), remedy)
                before = waits.get(wait.image)
                waits[wait.image] = wait._replace(pods=before.pods + 1) if before else wait
                break
    return sorted(waits.values(), key=lambda each: (-each.pods, each.image))[:MAX_IMAGES]
