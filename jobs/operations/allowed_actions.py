"""What an actor may do with a job: the table of `jobs.rules.actions` filtered by the actor's rights."""

from __future__ import annotations

from cluster import access
from cluster.access import Actor
from cluster.api import backend
from jobs.lifecycle.reading import Job
from jobs.rules import actions
from jobs.rules.actions import Action
from kube.errors import Forbidden
from kube.resources import JOBS, Resource

DEFAULT = "default"  # the namespace offered to an actor who may submit in it


def home(actor: Actor, resource: Resource = JOBS) -> str | None:
    """Return the namespace first offered for an actor's new job or template; None if the actor may create it nowhere."""
    allowed = access.namespaces(actor, resource, "create")
    if isinstance(allowed, access.Everywhere) or DEFAULT in allowed:
        return DEFAULT
    return min(allowed, default=None)


def nowhere(what: str, resource: Resource = JOBS) -> Forbidden:
    """Return the error for an actor who may create nowhere: the cluster's refusal, or `what` and the role that it takes."""
    why = backend.refusal("create", resource.id)
    return Forbidden(why or f"{what} you need the right somewhere. {access.remedy('create', resource)}")


def has_right(actor: Actor, action: Action, job: Job) -> bool:
    """Tell whether the actor has the right to an action on a job, in whatever phase the job is."""
    namespace, owner = job.metadata.namespace, job.creator or None
    return access.allowed(actor, action.verb, action.resource, namespace, owner=owner)


def allowed(actor: Actor, job: Job) -> list[Action]:
    """Return the actions that the actor may do with the job in its current phase, in the order of the table."""
    return [action for action in actions.ACTIONS if not actions.problem(action, job) and has_right(actor, action, job)]


def nothing(action: Action) -> Forbidden:
    """Return the error for an actor who may do an action on no job: the cluster's refusal, or the missing right."""
    why = backend.refusal(action.verb, action.resource.id)
    remedy = access.remedy(action.verb, action.resource)
    return Forbidden(why or f"Nowhere may you {action.infinitive} jobs. {remedy}")


def in_bulk(actor: Actor) -> list[Action]:
    """Return the bulk actions that the actor has the right to in some namespace, at least on own jobs."""
    return [action for action in actions.BULK if access.somewhere(actor, action.verb, action.resource)]
