"""What an update may change of a `batch/v1` Job (§1.5)."""

from __future__ import annotations

from collections.abc import Iterator

from cluster.rules.checks import IMMUTABLE, fixed
from kube import lenient
from kube.errors import Cause, invalid
from kube.kinds.workloads import CompletionMode
from kube.meta import Object

FIXED = (
    *("selector", "completionMode", "podFailurePolicy", "successPolicy", "backoffLimitPerIndex"),
    *("managedBy", "manualSelector"),
)
# Directives for where pods run, which may change while the job stands still.
SCHEDULING = ("nodeSelector", "tolerations", "schedulingGates")


def check(job: Object, old: Object) -> Iterator[Cause]:
    """Refuse changes of what stays as it was created."""
    new, before = job["spec"], old.get("spec") or {}
    if new.get("completions") != before.get("completions"):
        is_indexed = new["completionMode"] == CompletionMode.INDEXED
        if not is_indexed or None in (new.get("completions"), before.get("completions")):
            yield invalid("spec.completions", new.get("completions"), IMMUTABLE)
        elif new["completions"] != new["parallelism"]:
            detail = "can only be modified in tandem with spec.parallelism"
            yield invalid("spec.completions", new["completions"], detail)
    yield from fixed(new, before, FIXED)
    written, old_template = new["template"], before.get("template") or {}
    if written == old_template:
        return
    if stands_still(job, old):
        written, old_template = _without_directives(written), _without_directives(old_template)
    if written != old_template:
        yield invalid("spec.template", new["template"], IMMUTABLE)


def stands_still(job: Object, old: Object) -> bool:
    """Whether a job is suspended and none of its pods runs, so that its template may still be directed elsewhere."""
    status = old.get("status") or {}
    was_suspended = bool(lenient.mapping(old, "spec").get("suspend"))
    if not was_suspended:
        return False
    if not status.get("startTime"):
        return True
    conditions = {each.get("type"): each.get("status") for each in status.get("conditions") or ()}
    return conditions.get("Suspended") == "True" and not status.get("active")


def _without_directives(template: Object) -> Object:
    metadata = {**lenient.mapping(template, "metadata"), "labels": None, "annotations": None}
    spec = {key: value for key, value in lenient.mapping(template, "spec").items() if key not in SCHEDULING}
    affinity = {key: value for key, value in lenient.mapping(spec, "affinity").items() if key != "nodeAffinity"}
    spec.pop("affinity", None)
    for kind in ("containers", "initContainers"):
        if kind in spec:
            spec[kind] = [{k: v for k, v in each.items() if k != "resources"} for each in spec[kind] or ()]
    return {"metadata": metadata, "spec": spec, "affinity": affinity}
