"""What a reader may do with a job: the table of `jobs.rules.actions` and the reader's rights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cluster import access
from cluster.access.roles import EVERYWHERE
from jobs.rules import actions
from kube.resources import JOBS

if TYPE_CHECKING:
    from cluster.access import Actor
    from jobs.pages.reading import Job
    from jobs.rules.actions import Action

DEFAULT = "default"  # the namespace of who may submit in all of them


def home(actor: Actor) -> str | None:
    """Return the namespace that a new job of the actor's begins in; None when the actor may submit nowhere."""
    places = {DEFAULT if place == EVERYWHERE else place for place in access.grants(actor).roles}
    return next(
        (place for place in (DEFAULT, *sorted(places)) if access.allowed(actor, "create", JOBS, place)), None
    )


def has_right(actor: Actor, action: Action, job: Job) -> bool:
    """Say whether the actor has the right to an action on a job, whatever phase that is in."""
    namespace, owner = job.metadata.namespace, job.creator or None
    return access.allowed(actor, action.verb, action.resource, namespace, owner=owner)


def allowed(actor: Actor, job: Job) -> list[Action]:
    """Return the actions that the actor may do with the job as it is, in the order of the table."""
    return [
        action
        for action in actions.ACTIONS
        if not actions.problem(action, job) and has_right(actor, action, job)
    ]


def in_bulk(actor: Actor) -> list[Action]:
    """Return the actions that the actor may do with many jobs: those that are allowed somewhere on one's own."""
    places = access.grants(actor).roles
    return [
        action
        for action in actions.BULK
        if access.is_system(actor)
        or any(
            access.allowed(actor, action.verb, action.resource, place, owner=actor.name) for place in places
        )
    ]
