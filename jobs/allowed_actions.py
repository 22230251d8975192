"""What a reader may do with a job: one table, asked by pages and by whoever carries the action out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cluster import access
from cluster.roles import EVERYWHERE
from kube.resources import JOBS

if TYPE_CHECKING:
    from cluster.access import Actor
    from jobs.reading import Job


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that can be done with a job: verb is the right that it takes."""

    name: str
    verb: str


DEFAULT = "default"  # the namespace of who may submit in all of them
ACTIONS = (Action("copy", "create"), Action("delete", "delete"))


def home(actor: Actor) -> str | None:
    """Return the namespace that a new job of the actor's begins in; None when the actor may submit nowhere."""
    places = {DEFAULT if place == EVERYWHERE else place for place in access.grants(actor).roles}
    return next(
        (place for place in (DEFAULT, *sorted(places)) if access.allowed(actor, "create", JOBS, place)), None
    )


def allowed(actor: Actor, job: Job) -> frozenset[str]:
    """Return the names of the actions that the actor may do with the job as it is."""
    namespace, owner = job.metadata.namespace, job.creator or None
    return frozenset(
        action.name
        for action in ACTIONS
        if access.allowed(actor, action.verb, JOBS, namespace, owner=owner)
        and not (action.name == "delete" and job.metadata.deletion_timestamp)
    )
