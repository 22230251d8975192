"""Which job flows and job templates are accepted, and their defaults (reference: volcano-queue-podgroup-cli §7.1, §7.2)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from jobs.flows import steps
from jobs.flows.plan import FINISHED
from jobs.lifecycle import dependencies
from jobs.made import jobs
from jobs.rules.admission import LONGEST_POD_NAME, JobRulesView
from kube import definitions, lenient, names, schema
from kube.errors import Cause, forbidden, invalid, required
from kube.kinds.flow import Flow, JobFlow, RetainPolicy
from kube.meta import Object
from kube.patch import PatchError
from kube.resources import JOB_FLOWS, JOB_TEMPLATES

UNSENT = (
    "no requests are sent to pods to find out whether a job may start; wait for the phase of a task with"
    " taskStatusList, or leave the probe out to wait until the targets have completed."
)


def default(flow: Object, _old: Object | None, _view: JobRulesView) -> None:
    """Fill in a flow's defaults."""
    spec = flow.get("spec")
    if isinstance(spec, dict) and not spec.get("jobRetainPolicy"):
        spec["jobRetainPolicy"] = str(RetainPolicy.RETAIN)


def validate(flow: Object, old: Object | None, view: JobRulesView) -> list[Cause]:
    """Return everything that is wrong with a flow that is created or changed.

    What depends on templates is checked against those that exist; a flow may be created before its templates.
    """
    if schema_problems := schema.check(flow, definitions.of(JOB_FLOWS)):
        return schema_problems
    if old is not None:
        if lenient.sequence(flow, "spec", "flows") == lenient.sequence(old, "spec", "flows"):
            return []
        phase = lenient.text(old, "status", "state", "phase")
        if phase in FINISHED:
            detail = f"the flow is over ({phase}), and nothing is run of it any more; create another."
            return [forbidden("spec.flows", detail)]
    causes: list[Cause] = []
    for rule in (_check_steps, _check_graph, _check_probes):
        causes += rule(flow)
    return causes or [*_check_templates(flow, view)]


def warn(flow: Object, old: Object | None, view: JobRulesView) -> list[str]:
    """Return warnings about a new flow that is accepted; none for a change."""
    if old is not None:
        return []
    namespace = lenient.text(flow, "metadata", "namespace")
    first: dict[str, str] = {}
    warnings = []
    for path, step in _steps(flow):
        name = lenient.text(step, "name")
        if name in first:
            warnings.append(
                f"{path}.name: {first[name]} names {name} too; a flow makes one job of each template, by the first"
                " of these that may start. For a second job make another template."
            )
        elif name and view.get(JOB_TEMPLATES, namespace, name) is None:
            warnings.append(
                f"{path}.name: there is no job template {name} in namespace {namespace}; the job is made when there is one."
            )
        first.setdefault(name, path)
    return warnings


def default_template(template: Object, old: Object | None, _view: JobRulesView) -> None:
    """Replace the seeds' spellings with today's; a template's defaults are filled in when a job is made."""
    jobs.default_spec(template, old)


def validate_template(template: Object, old: Object | None, view: JobRulesView) -> list[Cause]:
    """Return everything that is wrong with a template, by the rules for a job of this spec."""
    spec = lenient.mapping(template, "spec")
    if old is not None and spec == lenient.mapping(old, "spec"):
        return []
    if not spec:
        return [required("spec", "describe the jobs that are made from the template: add tasks.")]
    return jobs.check_spec(_name(template), lenient.text(template, "metadata", "namespace"), spec, view, "spec")


def warn_template(template: Object, old: Object | None, view: JobRulesView) -> list[str]:
    """Return warnings about a new template that is accepted; none for a change."""
    if old is not None:
        return []
    namespace = lenient.text(template, "metadata", "namespace")
    return jobs.warnings(_name(template), namespace, lenient.mapping(template, "spec"), view, "spec")


def _name(owner: Object) -> str:
    return lenient.text(owner, "metadata", "name") or lenient.text(owner, "metadata", "generateName") + "x" * 5


def _steps(flow: Object) -> Iterator[tuple[str, Any]]:
    """Yield the path and content of each of a flow's steps."""
    for number, step in enumerate(lenient.sequence(flow, "spec", "flows")):
        yield f"spec.flows[{number}]", step


def _check_steps(flow: Object) -> Iterator[Cause]:
    """Check that each step names a template, and that its job's name is short enough for pods."""
    for path, step in _steps(flow):
        name = lenient.text(step, "name")
        if problem := names.dns_subdomain(name):
            yield invalid(f"{path}.name", name, f"must be the name of a job template: {problem}")
            continue
        job = steps.job_name(_name(flow), name)
        if len(job) > LONGEST_POD_NAME:
            detail = (
                f"makes the job name {job}, {len(job)} characters long; {LONGEST_POD_NAME} are allowed:"
                " shorten the name of the flow or of the template."
            )
            yield invalid(f"{path}.name", name, detail)


def _check_graph(flow: Object) -> Iterator[Cause]:
    """Check that jobs only wait for others of the flow, and never in a circle (reference: §7.1).

    If two steps name one template, the last counts, as in Volcano: without a circle among these, every job can start.
    """
    waits_for = {lenient.text(step, "name"): lenient.texts(step, "dependsOn", "targets") for _, step in _steps(flow)}
    for path, step in _steps(flow):
        for number, target in enumerate(lenient.texts(step, "dependsOn", "targets")):
            if target not in waits_for:
                detail = "jobflow Flow is not DAG: vertex is not defined; name one of spec.flows, or add it there."
                yield invalid(f"{path}.dependsOn.targets[{number}]", target, detail)
    circle = dependencies.cycle(waits_for)
    if circle:
        detail = "jobflow Flow is not DAG: these wait for each other; break the circle."
        yield invalid("spec.flows", " → ".join(circle), detail)


def _check_probes(flow: Object) -> Iterator[Cause]:
    """Check that probes use only what can be evaluated here, are complete, and have targets."""
    for path, step in _steps(flow):
        probe, where = lenient.mapping(step, "dependsOn", "probe"), f"{path}.dependsOn.probe"
        for field in ("httpGetList", "tcpSocketList"):
            if lenient.sequence(probe, field):
                yield forbidden(f"{where}.{field}", UNSENT)
        statuses = lenient.sequence(probe, "taskStatusList")
        if statuses and not lenient.texts(step, "dependsOn", "targets"):
            detail = "a probe asks about the tasks of targets; name the jobs that have them."
            yield required(f"{path}.dependsOn.targets", detail)
        for number, each in enumerate(statuses):
            for field, remedy in (
                ("taskName", "name a task of a target."),
                ("phase", "say which phase its pods must have come to, such as Running."),
            ):
                if not lenient.text(each, field):
                    yield required(f"{where}.taskStatusList[{number}].{field}", remedy)


def _check_templates(flow: Object, view: JobRulesView) -> Iterator[Cause]:
    """Check that patches fit the existing templates and give valid jobs, and that probes name tasks of their targets."""
    namespace = lenient.text(flow, "metadata", "namespace")
    whole = msgspec.convert({key: value for key, value in flow.items() if key != "status"}, JobFlow)
    templates = {step.name: view.get(JOB_TEMPLATES, namespace, step.name) for step in whole.spec.flows}
    for number, step in enumerate(whole.spec.flows):
        path, template = f"spec.flows[{number}]", templates[step.name]
        if template is not None:
            yield from _check_job(whole, step, template, view, path)
        probe, targets = step.depends_on.probe, [templates.get(name) for name in step.depends_on.targets]
        if probe is None or any(target is None for target in targets):
            continue
        tasks = {lenient.text(task, "name") for each in targets for task in lenient.sequence(each, "spec", "tasks")}
        for index, status in enumerate(probe.task_status_list):
            if status.task_name not in tasks:
                detail = f"no target has this task; choose one of {', '.join(sorted(tasks))}."
                yield invalid(f"{path}.dependsOn.probe.taskStatusList[{index}].taskName", status.task_name, detail)


def _check_job(flow: JobFlow, step: Flow, template: Object, view: JobRulesView, path: str) -> Iterator[Cause]:
    written = f"{path}.patch.jobSpec" if step.patch.job_spec else f"{path}.name"
    try:
        job = steps.job_for(flow, step, template)
    except PatchError as error:
        yield invalid(written, step.name, f"the patch does not fit the template: {error}")
        return
    job_name = steps.job_name(flow.metadata.name or "x" * 5, step.name)
    for cause in jobs.check_spec(job_name, flow.metadata.namespace, job["spec"], view, "spec"):
        yield cause._replace(field=written, message=f"{cause.message} (at {cause.field} of job {job_name})")
