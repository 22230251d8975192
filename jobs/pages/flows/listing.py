"""The lists of flows and of job templates, the details of one, and the topics of their pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.template.loader import render_to_string
from django.urls import reverse

from cluster import access
from cluster.access import Actor
from cluster.store import Stored, store
from dashboard import live
from dashboard.live import Parts, TopicRequest, Watch
from dashboard.live.topics import address
from dashboard.parts import phases
from dashboard.parts.buttons import no_buttons
from dashboard.parts.filters import Filter
from dashboard.parts.table import Column, Spec, Table, TableView
from jobs.flows import graph, steps
from jobs.operations import allowed_actions
from jobs.pages import objects
from jobs.parameterized.declaration import ANNOTATION
from jobs.rules import yaml_write
from kube import lenient
from kube.errors import NotFound
from kube.kinds.batch import JobPhase
from kube.kinds.flow import JobFlow
from kube.resources import CREATOR_ANNOTATION, JOB_FLOWS, JOB_TEMPLATES, JOBS, Resource
from kube.usage import queue_named

SPEC = Spec(
    name="flows:list",
    columns=(
        Column("Flow", sort="name", kind="name"),
        Column("Namespace"),
        Column("Phase", sort="phase"),
        Column("Completed", kind="number"),
        Column("Why", kind="message"),
        Column("Owner", sort="creator", priority="low"),
        Column("Age", sort="created", kind="time"),
    ),
    filters=(Filter("namespace", "Namespace"), Filter("phase", "Phase", choices=phases.FLOW_PHASES, hidden=True)),
    order="-created",
    search="Part of a flow's name",
    noun="flow",
    plural="flows",
)
TEMPLATES_SPEC = Spec(
    name="flows:templates",
    columns=(
        Column("Template", sort="name", kind="name"),
        Column("Namespace"),
        Column("Queue"),
        Column("Pods", kind="number"),
        Column("Jobs made", kind="number"),
        Column("Owner", sort="creator", priority="low"),
        Column("Age", sort="created", kind="time"),
    ),
    filters=(Filter("namespace", "Namespace"),),
    search="Part of a template's name",
    noun="template",
    plural="templates",
)
MAX_JOBS = 50  # made from a template and named on its page


def table(actor: Actor, view: TableView) -> Table:
    """Return a page of the flows that the actor may see."""
    empty = {
        "symbol": "workflow",
        "title": "There are no flows yet",
        "text": "A JobFlow of flow.volcano.sh/v1alpha1 runs jobs in their order. Make templates of its jobs first.",
        "url": reverse("flows:templates"),
        "label": "Templates",
    }
    return objects.table(actor, view, JOB_FLOWS, _row, name="row", empty=empty, phases=phases.FLOW_PHASES)


def template_table(actor: Actor, view: TableView) -> Table:
    """Return a page of the job templates that the actor may see."""
    empty = {
        "symbol": "file-code",
        "title": "There are no job templates yet",
        "text": "A JobTemplate of flow.volcano.sh/v1alpha1 holds the spec of a job. Write one here, or give it to kubectl apply.",
    }
    if allowed_actions.home(actor, JOB_TEMPLATES) is not None:
        empty |= {"url": reverse("jobs:template-new"), "label": "New template"}
    return objects.table(actor, view, JOB_TEMPLATES, _template_row, name="row", empty=empty)


def _row(stored: Stored) -> str:
    flow = stored.read(JobFlow)
    statuses = lenient.sequence(stored.object, "status", "jobStatusList")
    return render_to_string(
        "flows/_row.html",
        {
            "stored": stored,
            "state": flow.status.state,
            "completed": sum(lenient.text(each, "state") == JobPhase.COMPLETED for each in statuses),
            "total": len(steps.templates(flow)),
            "owner": owner_of(stored),
        },
    )


def _template_row(stored: Stored) -> str:
    return render_to_string("flows/_template_row.html", {"stored": stored, **_template_facts(stored)})


def _template_facts(stored: Stored) -> dict[str, Any]:
    spec = lenient.mapping(stored.object, "spec")
    tasks = lenient.sequence(spec, "tasks")
    return {
        "tasks": tasks,
        "pods": sum(lenient.whole(task, "replicas") or 0 for task in tasks),
        "queue": queue_named(lenient.text(spec, "queue")),
        "made": lenient.texts(stored.object, "status", "jobDependsOnList"),
        "owner": owner_of(stored),
    }


def owner_of(stored: Stored) -> str:
    """Return who created an object, "" for the system."""
    return lenient.text(stored.object, "metadata", "annotations", CREATOR_ANNOTATION)


def topic(name: str, stored: Stored) -> str:
    """Return the canonical spelling of the topic of a flow or a template."""
    return address(name, {"namespace": stored.namespace, "name": stored.name})


def parts(actor: Actor, stored: Stored) -> Parts:
    """Return the parts of a flow's page: its buttons, its facts, its graph and its jobs."""
    flow = stored.read(JobFlow)
    drawn = graph.of(flow, lenient.mapping(stored.object, "status"))
    sees_jobs = access.allowed(actor, "list", JOBS, stored.namespace)
    keys = store.names(JOBS, namespace=stored.namespace, owner=stored.uid).values() if sees_jobs else ()
    context = {
        "stored": stored,
        "state": flow.status.state,
        "policy": flow.spec.job_retain_policy or "retain",
        "graph": drawn,
        "size": {"width": graph.WIDTH, "height": graph.HEIGHT},
        "there": {key.partition("/")[2] for key in keys},
        "completed": sum(node.phase == JobPhase.COMPLETED for node in drawn.nodes),
        "may_delete": _may_delete(actor, JOB_FLOWS, stored),
    }
    watches = [Watch(JOB_FLOWS.id, stored.namespace, stored.name), Watch(JOBS.id, stored.namespace, owner=stored.uid)]
    return Parts(_render(context, "flow", "actions", "head", "graph", "jobs"), watches=watches)


def template_parts(actor: Actor, stored: Stored) -> Parts:
    """Return the parts of a template's page: its buttons, its facts and its text."""
    facts = _template_facts(stored)
    job_names = facts["made"]
    sees_jobs = access.allowed(actor, "list", JOBS, stored.namespace)
    wanted = [f"{stored.namespace}/{name}" for name in job_names[-MAX_JOBS:]]
    there = store.by_keys(JOBS, wanted if sees_jobs else ())
    # Only what its author writes.
    whole = stored.object
    metadata = {key: value for key in ("name", "namespace", "labels") if (value := whole["metadata"].get(key))}
    written = {
        "apiVersion": whole["apiVersion"],
        "kind": whole["kind"],
        "metadata": metadata,
        "spec": whole.get("spec"),
    }
    context = {
        **facts,
        "stored": stored,
        "jobs": [(job.name, lenient.text(job.object, "status", "state", "phase")) for job in there.values()],
        "more": max(len(job_names) - MAX_JOBS, 0),
        "text": yaml_write.dump(written),
        "may_run": access.allowed(actor, "create", JOBS, stored.namespace),
        "has_parameters": bool(lenient.text(stored.object, "metadata", "annotations", ANNOTATION)),
        "may_delete": _may_delete(actor, JOB_TEMPLATES, stored),
    }
    watches = [
        Watch(JOB_TEMPLATES.id, stored.namespace, stored.name),
        *(Watch(JOBS.id, stored.namespace, name) for name in job_names[-MAX_JOBS:]),
    ]
    return Parts(_render(context, "template", "actions", "head", "text"), watches=watches)


def _may_delete(actor: Actor, resource: Resource, stored: Stored) -> bool:
    return access.allowed(actor, "delete", resource, stored.namespace, owner=owner_of(stored) or None)


def _render(context: dict[str, Any], what: str, *pieces: str) -> dict[str, str]:
    return {f"{what}-{piece}": render_to_string(f"flows/_{what}_{piece}.html", context) for piece in pieces}


@live.topic(SPEC.name)
def flow_list(request: TopicRequest) -> Parts:
    """The list of flows."""
    return table(request.actor, SPEC.read(request.params)).parts()


@live.topic(TEMPLATES_SPEC.name)
def template_list(request: TopicRequest) -> Parts:
    """The list of job templates."""
    return template_table(request.actor, TEMPLATES_SPEC.read(request.params)).parts()


@live.topic("flows:detail")
def flow_detail(request: TopicRequest) -> Parts:
    """One flow: its buttons, its facts, its graph and its jobs."""
    return _parts_of(request, JOB_FLOWS, parts, "flow-head")


@live.topic("flows:template")
def template_detail(request: TopicRequest) -> Parts:
    """One job template: its buttons, its facts and its text."""
    return _parts_of(request, JOB_TEMPLATES, template_parts, "template-head")


def _parts_of(request: TopicRequest, resource: Resource, show: Callable[[Actor, Stored], Parts], head: str) -> Parts:
    """Return the parts of an object, or say that it was deleted meanwhile."""
    namespace, name = (request.params.get(each, "") for each in ("namespace", "name"))
    try:
        return show(request.actor, objects.read(request.actor, resource, namespace, name))
    except NotFound:
        html = render_to_string("flows/_gone.html", {"id": head, "namespace": namespace, "name": name})
        actions = head.replace("-head", "-actions")
        return Parts({head: html, actions: no_buttons(actions)}, watches=[Watch(resource.id, namespace, name)])
