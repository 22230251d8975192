"""What a reader may do with a job: the table of `jobs.rules.actions` and the reader's rights."""

from __future__ import annotations

from cluster import access
from cluster.access import Actor
from cluster.api import backend
from jobs.lifecycle.reading import Job
from jobs.rules import actions
from jobs.rules.actions import Action
from kube.errors import Forbidden
from kube.resources import JOBS, Resource

DEFAULT = "default"  # the namespace of who may submit in all of them


def home(actor: Actor, resource: Resource = JOBS) -> str | None:
    """Return the namespace that a new job, or template, of the actor's begins in; None when the actor may make it nowhere."""
    allowed = access.namespaces(actor, resource, "create")
    if isinstance(allowed, access.Everywhere) or DEFAULT in allowed:
        return DEFAULT
    return min(allowed, default=None)


def nowhere(what: str, resource: Resource = JOBS) -> Forbidden:
    """Return why somebody may submit nowhere, which `what` begins with: the cluster's refusal, or the role that it takes."""
    why = backend.refusal("create", resource.id)
    return Forbidden(why or f"{what} you need the right somewhere. {access.remedy('create', resource)}")


def has_right(actor: Actor, action: Action, job: Job) -> bool:
    """Say whether the actor has the right to an action on a job, whatever phase that is in."""
    namespace, owner = job.metadata.namespace, job.creator or None
    return access.allowed(actor, action.verb, action.resource, namespace, owner=owner)


def allowed(actor: Actor, job: Job) -> list[Action]:
    """Return the actions that the actor may do with the job as it is, in the order of the table."""
    return [action for action in actions.ACTIONS if not actions.problem(action, job) and has_right(actor, action, job)]


def nothing(action: Action) -> Forbidden:
    """Return why somebody may do an action to no job: the cluster's refusal, or the lack of a right."""
    why = backend.refusal(action.verb, action.resource.id)
    remedy = access.remedy(action.verb, action.resource)
    return Forbidden(why or f"Nowhere may you {action.infinitive} jobs. {remedy}")


def in_bulk(actor: Actor) -> list[Action]:
    """Return the actions that the actor may do with many jobs: those that are allowed somewhere on one's own."""
    return [action for action in actions.BULK if access.somewhere(actor, action.verb, action.resource)]
