"""Writes of controllers and scheduler about an object that are refused, on the object's page: by whom, and since when."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType

from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from cluster import access
from cluster.models import Refusal
from cluster.runtime import retries
from cluster.store import Stored, store
from dashboard import live
from dashboard.live import Parts, TopicRequest, Watch
from dashboard.live.topics import address
from kube import resources
from kube.errors import NotFound
from kube.resources import CRON_JOBS, EVENTS, JOB_FLOWS, JOBS, POD_GROUPS, QUEUES, Resource

TOPIC = "refusals"
SOON_MS = 1000  # after the next try its outcome is known
# The consumer that writes about each kind with a page, beside the scheduler.
CONSUMERS = MappingProxyType({JOBS.id: "jobs", QUEUES.id: "queues", JOB_FLOWS.id: "jobflows", CRON_JOBS.id: "cronjobs"})


def html(kind: Resource, namespace: str, name: str, revision: int) -> SafeString:
    """Return the live container on the page of an object, which was rendered at a revision."""
    topic = address(TOPIC, {"kind": kind.id, "namespace": namespace, "name": name})
    content = _content(kind, _current_refusals(kind, namespace, name))
    context = {"topic": topic, "revision": revision, "content": content}
    return render_to_string("partials/_refusals.html", context)


@live.topic(TOPIC)
def refusals_topic(request: TopicRequest) -> Parts:
    """The writes about one object that are refused, for readers who may see the object."""
    kind_id, namespace, name = (request.params.get(each, "") for each in ("kind", "namespace", "name"))
    if kind_id not in CONSUMERS:
        raise NotFound.of(kind_id, name)
    kind = resources.by_id(kind_id)
    access.require(request.actor, "get", kind, namespace, name)
    refusals = _current_refusals(kind, namespace, name)
    again = min(each.due for each in refusals) + SOON_MS if refusals else None
    watches = [Watch(kind.id, namespace=namespace, name=name)]
    watches += [Watch(EVENTS.id, owner=uid) for uid in _uids(kind, namespace, name)]
    return Parts({"refusals": _content(kind, refusals)}, watches=watches, again=again)


def _content(kind: Resource, refusals: Sequence[Refusal]) -> str:
    return render_to_string("partials/_refusals_list.html", {"refusals": refusals, "kind": kind.kind})


def _current_refusals(kind: Resource, namespace: str, name: str) -> list[Refusal]:
    """Return the refusals of writes about an object, and about the pod groups of a job."""
    key = f"{namespace}/{name}" if namespace else name
    if kind != JOBS:
        return retries.current_refusals({CONSUMERS[kind.id]: key})
    refusals = retries.current_refusals({CONSUMERS[kind.id]: key, "scheduler": f"{namespace}/*"})
    if any(each.consumer == "scheduler" for each in refusals):  # rare: most pages need not query the groups
        groups = {group.key for group in _groups(namespace, name)}
        # If only the status of a pod group is refused, the key has a third part behind the name.
        refusals = [
            each for each in refusals if each.consumer != "scheduler" or "/".join(each.key.split("/")[:2]) in groups
        ]
    return refusals


def _uids(kind: Resource, namespace: str, name: str) -> list[str]:
    """Return the uids of an object and of the pod groups of a job: refusals come with events about them."""
    key = f"{namespace}/{name}" if namespace else name
    uids = [each.uid for each in store.by_keys(kind, [key]).values()]
    return [*uids, *(group.uid for group in _groups(namespace, name))] if kind == JOBS else uids


def _groups(namespace: str, name: str) -> list[Stored]:
    jobs = store.by_keys(JOBS, [f"{namespace}/{name}"]).values()
    return [group for job in jobs for group in store.find(POD_GROUPS, namespace=namespace, owner=job.uid)]
