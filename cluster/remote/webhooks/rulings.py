"""What our rules say to an API server's question, over the mirror.

Nothing is filled in at an UPDATE, as in Volcano, so an object is judged as it would be stored. What was wrong with it before
may stay: who takes a finalizer away, or scales a job, must not be told of what came in before there were webhooks.
"""

from __future__ import annotations

from dataclasses import replace

from cluster import backend
from cluster.api import admission
from cluster.api.cluster_view import ClusterView
from cluster.remote import recorder
from cluster.remote.door import server
from cluster.remote.http import paths
from cluster.remote.http.request import Unreachable, look_up
from cluster.remote.mirroring import kinds, reflection
from cluster.remote.webhooks.hooks import Webhook
from cluster.remote.webhooks.review import Question, Ruling
from cluster.store.types import Stored
from kube import patch
from kube.errors import ApiError, Forbidden, ServiceUnavailable
from kube.meta import Object
from kube.resources import POD_GROUPS, QUEUES, RESOURCE_QUOTAS, Resource

ANSWER_S = 3.0
MAX_LOOKED_UP = 10  # pod groups; a queue that has more is not empty for some time


class WebhookView(ClusterView):
    """The cluster as rules see it while an API server waits for them.

    The mirror is some milliseconds behind, and people write an object right after those that it names. So what the mirror does not
    have of Volcano's kinds is looked for in the cluster, and so are the pod groups that it has in a queue: people delete a queue right
    after what is in it. What the API server judges by itself, namespaces and quotas, refuses nothing.
    """

    def get(self, resource: Resource, namespace: str, name: str) -> Object | None:
        """Return an object, None when there is none."""
        key = (resource.id, namespace, name)
        if key not in self._objects and super().get(resource, namespace, name) is None:
            self._objects[key] = _look_up(resource, namespace, name) if resource in kinds.VOLCANOS else None
        return self._objects[key]

    def _pod_groups(self, queue: str) -> list[Stored]:
        groups = super()._pod_groups(queue)
        if len(groups) > MAX_LOOKED_UP:
            return groups
        return [each for each in groups if _look_up(POD_GROUPS, each.namespace, each.name, each.object) is not None]

    def namespace(self, name: str) -> Object | None:
        """Return a namespace; the API server asks about nothing in one that is missing."""
        return super().namespace(name) or {"metadata": {"name": name}}

    def listed(self, resource: Resource, namespace: str) -> list[Object]:
        """Return all objects of a kind in a namespace, but no quotas: the API server counts by itself."""
        return [] if resource == RESOURCE_QUOTAS else super().listed(resource, namespace)


def _look_up(resource: Resource, namespace: str, name: str, mirrored: Object | None = None) -> Object | None:
    """Return an object as it is in the cluster; ServiceUnavailable when nobody says whether there is one."""
    try:
        return look_up(server.connection(), paths.one(resource, namespace, name), ANSWER_S)
    except Forbidden:  # what may not be read is what the mirror says
        return mirrored
    except (ApiError, Unreachable) as error:
        raise ServiceUnavailable(
            f"Whether there is {resource.singular} {name} could not be looked up: {error}. Try again in a moment."
        ) from None


def rule(webhook: Webhook, question: Question) -> Ruling:
    """Say what becomes of what somebody asks for."""
    view = WebhookView()
    if webhook.verb == "mutate":
        obj = question.object or {}
        filled = admission.completed(webhook.resource, obj, None, view)
        # The API server drops what a status is given with.
        return Ruling(patch=patch.difference(_without_status(obj), _without_status(filled)))
    if reflection.incomplete(recorder.statuses([QUEUES]), [QUEUES.id]):
        return Ruling(ServiceUnavailable("The queues of the cluster are still being read. Try again in a moment."))
    try:
        if question.object is None:
            admission.release(webhook.resource, question.old or {}, view)
            return Ruling()
        return Ruling(warnings=_judged(webhook.resource, question.object, question.old, view))
    except ApiError as error:
        return Ruling(error)


def _without_status(obj: Object) -> Object:
    return {key: value for key, value in obj.items() if key != "status"}


def _judged(resource: Resource, obj: Object, old: Object | None, view: WebhookView) -> list[str]:
    """Return what is odd about an object; its error is raised."""
    judged = _judge(resource, obj, old, view)
    if judged.causes and old is not None:
        before = _judge(resource, old, old, view).causes
        new = tuple(cause for cause in judged.causes if cause not in before)
        judged = replace(judged, causes=new, error=judged.error if new else None)
    return list(admission.oddities(resource, judged.checked(), old, view))


def _judge(resource: Resource, obj: Object, old: Object | None, view: WebhookView) -> backend.Admitted:
    return admission.judge(admission.shape(resource, obj, old), old, view, fill=False)
