"""What a reader may do with a job: one table, asked by pages and by whoever carries the action out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cluster import access
from cluster.access.roles import EVERYWHERE
from kube.resources import COMMANDS, JOBS

if TYPE_CHECKING:
    from cluster.access import Actor
    from jobs.pages.reading import Job
    from kube.resources import Resource


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that can be done with a job: the right that it takes, and the phases in which it makes sense."""

    name: str
    verb: str
    resource: Resource = JOBS
    phases: frozenset[str] | None = None  # None: all
    on_deleted: bool = False  # also while the job is being deleted


DEFAULT = "default"  # the namespace of who may submit in all of them
ACTIONS = (
    Action("copy", "create", on_deleted=True),
    Action("suspend", "create", COMMANDS, frozenset({"Pending", "Running"})),
    Action("resume", "create", COMMANDS, frozenset({"Aborting", "Aborted"})),
    Action("delete", "delete"),
)


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
        if access.allowed(actor, action.verb, action.resource, namespace, owner=owner)
        and (action.phases is None or job.phase in action.phases)
        and (action.on_deleted or not job.metadata.deletion_timestamp)
    )
