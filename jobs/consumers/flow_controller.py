"""The flow controller: makes the jobs of flows in their order, and keeps the status of flows and of job templates.

Reads flows, templates and the jobs that were made from them. A template's status lists the jobs that were made from it:
the list follows each job's creation and deletion, and is built from all jobs of the namespace when the template is new.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

from cluster.api.cluster_view import ClusterView
from cluster.consumers.consumer import Plan
from cluster.store import Change, Group, Stored, Update, store
from cluster.writes import Timer
from jobs.consumers import maker
from jobs.consumers.maker import AGAIN, AGAIN_MS, Family, Maker, MakerState
from jobs.flows import plan, steps
from jobs.flows.plan import ObservedFlow
from kube import lenient
from kube.kinds.flow import FlowPhase, JobFlow
from kube.resources import JOB_FLOWS, JOB_TEMPLATES, JOBS

NAME = "jobflows"
UNFINISHED = ("", *(phase.value for phase in FlowPhase if phase not in plan.FINISHED))
log = logging.getLogger(__name__)


class FlowConsumer(Maker):
    name = NAME
    kind = JOB_FLOWS

    def unfinished(self) -> list[str]:
        return list(store.names(JOB_FLOWS, phase=UNFINISHED).values())

    def plan(self, state: MakerState, changes: Sequence[Change], timers: Sequence[Timer], now: int) -> Plan:
        """Look at each flow and each template that something happened to."""
        plan_ = super().plan(state, changes, timers, now)
        plan_.groups = [*plan_.groups, *_lists_of_jobs(changes)]
        return plan_

    def note(self, state: MakerState, change: Change) -> None:
        """Note which flow a change is about; a change of a template concerns the waiting flows of its namespace."""
        if change.resource == JOB_TEMPLATES.id:
            prefix = f"{change.namespace}/"
            state.stale |= dict.fromkeys(key for key in state.waiting if key.startswith(prefix))
        else:
            super().note(state, change)

    def plan_families(self, state: MakerState, families: Sequence[Family], now: int) -> Iterator[Group | Timer]:
        """Make the jobs whose turn it is, and keep the status."""
        flows = {family.owner.key: (family, flow) for family, flow in maker.readable(families, JobFlow)}
        wanted = {
            f"{flow.metadata.namespace}/{name}": key
            for key, (family, flow) in flows.items()
            for step in flow.spec.flows
            if (name := steps.job_name(flow.metadata.name, step.name)) not in family.jobs
        }
        occupied = maker.holders(list(wanted), state, wanted)
        named = {f"{flow.metadata.namespace}/{step.name}" for _, flow in flows.values() for step in flow.spec.flows}
        templates = {key: stored.object for key, stored in store.by_keys(JOB_TEMPLATES, sorted(named)).items()}
        view = ClusterView()
        for family, flow in flows.values():
            prefix = f"{flow.metadata.namespace}/"
            observed = ObservedFlow(
                flow,
                family.owner.object.get("status") or {},
                family.jobs,
                family.deleted,
                {key.removeprefix(prefix): each for key, each in templates.items() if key.startswith(prefix)},
                {key.removeprefix(prefix) for key in occupied if key.startswith(prefix)},
            )
            yield from _plan_one(state, observed, view, now)


def _plan_one(state: MakerState, observed: ObservedFlow, view: ClusterView, now: int) -> Iterator[Group | Timer]:
    """Plan one flow; if that raises, it is left as it is and the others are planned all the same."""
    key = plan.key_of(observed.flow)
    try:
        outcome = plan.reconcile(observed, view, now)
    except Exception:
        log.exception("flow %s cannot be planned; it waits until something about it changes", key)
        return
    yield from outcome.groups
    state.waiting.pop(key, None)
    if outcome.waits:
        state.waiting[key] = None
    if outcome.refused:
        yield Timer(AGAIN, key, now + AGAIN_MS)


def _lists_of_jobs(changes: Sequence[Change]) -> Iterator[Group]:
    """Yield the updates of the list of jobs in the status of templates."""
    happened: dict[str, dict[str, bool]] = {}  # key of a template → name of a job → whether it is there
    new: set[str] = set()
    for change in changes:
        if change.resource == JOB_TEMPLATES.id and change.verb == "ADDED":
            new.add(change.key)
        elif change.resource == JOBS.id and change.verb != "MODIFIED" and (key := _template_of(change)):
            happened.setdefault(key, {})[change.name] = change.verb == "ADDED"
    for key, template in store.by_keys(JOB_TEMPLATES, sorted({*happened, *new})).items():
        before = lenient.texts(template.object, "status", "jobDependsOnList")
        names = set(before)
        if key in new:  # an earlier template of this name may have jobs
            names = {job.name for job in store.find(JOBS, namespace=template.namespace) if _template_of(job) == key}
        for name, is_there in happened.get(key, {}).items():
            (names.add if is_there else names.discard)(name)
        if sorted(names) != before:
            metadata = {"namespace": template.namespace, "name": template.name, "uid": template.uid}
            about = {"apiVersion": JOB_TEMPLATES.api_version, "kind": JOB_TEMPLATES.kind, "metadata": metadata}
            status = {**(template.object.get("status") or {}), "jobDependsOnList": sorted(names)}
            yield Group([Update(JOB_TEMPLATES, {**about, "status": status}, "status")])


def _template_of(job: Stored | Change) -> str:
    """Return the key of the template that a job was made from, by its annotations or labels; "" for none."""
    if steps.BY_TEMPLATE.encode() not in job.body:
        return ""
    for field in ("annotations", "labels"):
        namespace, _, name = lenient.text(job.object, "metadata", field, steps.BY_TEMPLATE).partition(".")
        if name and namespace == job.namespace:
            return f"{namespace}/{name}"
    return ""
