"""Who may mount directories of the machine into a pod, and have the pod in the machine's network.

Administrators of everything may mount any that is not the cluster's own; everybody else those below the directories of
VOLCANO_UI_HOST_PATHS, of which there are none unless it is set. The network of the machine (hostNetwork) only
administrators of everything may have. In a cluster that decides about rights itself its own admission judges paths. In
the jobs of a flow several people have a hand, who made its templates and who made it, so an administrator's word does
not count for them. The door refuses what it can tell from the text of a path. The node asks anew before it starts a
container, because roles change and controllers make pods, and judges the directory that it opened.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from django.conf import settings

from cluster import access
from cluster.access import makers
from cluster.access.authorizer import Actor
from kube import lenient
from kube.errors import Forbidden
from kube.kinds.core import Pod
from kube.meta import Object
from kube.resources import JOB_FLOWS, JOB_TEMPLATES, JOBS, Resource

HOST_NETWORK = (
    "hostNetwork is not allowed: only pods of administrators of all namespaces have the network of their machine, and those of "
    "flows never; leave it out, and reach a pod by kubectl port-forward."
)
EVERYTHING = ("/",)
SHARED = (JOB_TEMPLATES, JOB_FLOWS)  # what several people make jobs with


def remedy() -> str:
    """Return a sentence: who may mount what, and what others can do."""
    below = " or ".join(settings.HOST_PATHS)
    rule = f"directories of this machine only below {below}" if below else "no directories of this machine"
    return (
        f"Pods may mount {rule}"
        ", except those of administrators of all namespaces; use a persistentVolumeClaim, "
        "or ask an administrator to add the directory to VOLCANO_UI_HOST_PATHS."
    )


def check_create(actor: Actor, resource: Resource, obj: Object) -> None:
    """Raise Forbidden for a pod, or an object with a pod template, with something of the machine that its creator may not have."""
    if access.decides_elsewhere(resource):
        return
    is_administrators = makers.is_administrator(actor) and resource not in SHARED
    name = lenient.text(obj, "metadata", "name")
    if not is_administrators and any(pod.get("hostNetwork") is True for pod in pod_specs(obj)):
        raise Forbidden.of(resource.id, name, HOST_NETWORK)
    path = next((path for path in _paths(obj) if not _lies_below(path, settings.HOST_PATHS)), "")
    if path and not is_administrators:
        of_flows = "The jobs of flows may mount only directories below those of VOLCANO_UI_HOST_PATHS."
        rule = of_flows if resource in SHARED else remedy()
        raise Forbidden.of(resource.id, name, f'hostPath "{path}" is not allowed. {rule}')


def within(pod: Pod) -> tuple[str, ...]:
    """Return the directories below which a pod may mount paths of this machine.

    Everybody who had a hand in it must be allowed; a pod of nobody's may mount what everybody may.
    """
    return EVERYTHING if makers.all_administrators(pod) else tuple(settings.HOST_PATHS)


def may_mount_some(actor: Actor) -> bool:
    """Say whether there is a directory of the machine that pods of an actor may mount."""
    return bool(settings.HOST_PATHS) or access.decides_elsewhere(JOBS) or makers.is_administrator(actor)


def _paths(obj: Object) -> Iterator[str]:
    for pod in pod_specs(obj):
        for volume in lenient.sequence(pod, "volumes"):
            if lenient.mapping(volume, "hostPath"):
                yield lenient.text(volume, "hostPath", "path")


def pod_specs(obj: Object) -> Iterator[dict[str, Any]]:
    """Yield the specs of all pods that an object is, or describes."""
    spec = lenient.mapping(obj, "spec")
    flows = lenient.sequence(spec, "flows")
    jobs = (
        spec,
        lenient.mapping(spec, "jobTemplate", "spec"),
        *(lenient.mapping(flow, "patch", "jobSpec") for flow in flows),
    )
    yield from (spec, lenient.mapping(spec, "template", "spec"))
    yield from (lenient.mapping(task, "template", "spec") for job in jobs for task in lenient.sequence(job, "tasks"))


def _lies_below(path: str, directories: list[str]) -> bool:
    parts = os.path.normpath(path).split("/")
    return any(parts[: len(above)] == above for above in (one.rstrip("/").split("/") for one in directories))
