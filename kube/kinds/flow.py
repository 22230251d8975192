"""JobFlow and JobTemplate of `flow.volcano.sh/v1alpha1` (reference: volcano-queue-podgroup-cli §7.1, §7.2)."""

from __future__ import annotations

from enum import StrEnum

from kube.kinds.fields import View
from kube.kinds.meta import ObjectMeta


class FlowPhase(StrEnum):
    """Where a flow is in its life."""

    SUCCEED = "Succeed"
    TERMINATING = "Terminating"
    FAILED = "Failed"
    RUNNING = "Running"
    PENDING = "Pending"


class RetainPolicy(StrEnum):
    """What becomes of a flow's jobs when all of them have completed."""

    RETAIN = "retain"
    DELETE = "delete"


class TaskStatus(View):
    """A phase that the pods of a task must have come to."""

    task_name: str = ""
    phase: str = ""


class Probe(View):
    """What is enough of the targets before they have completed."""

    task_status_list: list[TaskStatus] = []


class DependsOn(View):
    """What a job of a flow waits for."""

    targets: list[str] = []
    probe: Probe | None = None


class Patch(View):
    """What of a job is different from its template."""

    job_spec: dict[str, object] = {}


class Flow(View):
    """One job of a flow."""

    name: str = ""
    depends_on: DependsOn = DependsOn()
    patch: Patch = Patch()


class JobFlowSpec(View):
    """Which templates are run, and what each waits for."""

    flows: list[Flow] = []
    job_retain_policy: str = ""


class State(View):
    """The phase of a flow, and why."""

    phase: str = ""
    reason: str = ""
    message: str = ""


class JobFlowStatus(View):
    """How far a flow has come."""

    state: State = State()


class JobFlow(View):
    """Jobs that are made from templates, one after the other as they depend on each other."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: JobFlowSpec = JobFlowSpec()
    status: JobFlowStatus = JobFlowStatus()
