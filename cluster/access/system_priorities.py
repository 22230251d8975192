"""Who may give pods a priority class of the system's own: administrators of all namespaces.

Classes whose names begin with "system-" are above all that people can make, so what has one preempts everybody.
Kubernetes keeps them to some namespaces by a quota that comes with it (reference: kubernetes-api §6.3); here roles say
it. In a cluster that decides about rights itself its own admission judges them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cluster import access
from cluster.access.authorizer import Actor
from cluster.access.makers import is_administrator
from cluster.rules.priorities import RESERVED
from kube import lenient, resources
from kube.errors import Forbidden
from kube.meta import Object
from kube.resources import Resource

# What is run as it is written. Everything else makes pods later, and a change of it decides which.
ITSELF = (resources.PODS, resources.POD_GROUPS, resources.JOBS)


def may_use(actor: Actor, name: str) -> bool:
    """Say whether what an actor makes may have the class of a name."""
    return not name.startswith(RESERVED) or access.decides_elsewhere(resources.JOBS) or is_administrator(actor)


def check_create(actor: Actor, resource: Resource, obj: Object) -> None:
    """Raise Forbidden for an object that has such a class, or gives it to its pods, by somebody who may not."""
    _refuse(actor, resource, obj, map(_class_of, _specs(obj)))


def check_change(actor: Actor, resource: Resource, old: Object, new: Object) -> None:
    """Raise Forbidden when a change brings such a class; of what makes pods later, when it changes anything of these pods."""
    before = [*_specs(old)]
    if resource in ITSELF:
        names = set(map(_class_of, before))
        added = [name for name in map(_class_of, _specs(new)) if name not in names]
    else:
        added = [_class_of(spec) for spec in _specs(new) if spec not in before]
    _refuse(actor, resource, new, added)


def _class_of(spec: Object) -> str:
    return lenient.text(spec, "priorityClassName")


def _refuse(actor: Actor, resource: Resource, obj: Object, names: Iterable[str]) -> None:
    if access.decides_elsewhere(resource):
        return
    for name in names:
        if not may_use(actor, name):
            detail = (
                f'priorityClassName "{name}" is not allowed. Classes whose names begin with "{RESERVED}" are for'
                " administrators of all namespaces; use another class, or ask an administrator to make one."
            )
            raise Forbidden.of(resource.id, lenient.text(obj, "metadata", "name"), detail)


def _specs(obj: Object) -> Iterator[Object]:
    """Yield all in an object that may name a priority class: pods, jobs, pod groups, and what they are made from."""
    spec = lenient.mapping(obj, "spec")
    job_template = lenient.mapping(spec, "jobTemplate", "spec")
    patches = [lenient.mapping(flow, "patch", "jobSpec") for flow in lenient.sequence(spec, "flows")]
    for each in (spec, job_template, *patches):
        yield each
        yield lenient.mapping(each, "template", "spec")
        for task in lenient.sequence(each, "tasks"):
            yield lenient.mapping(task, "template", "spec")
