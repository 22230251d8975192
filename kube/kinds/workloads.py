"""Job of `batch/v1` (seed: the batch/v1 Job reference; reference: kubernetes-api §1).

Bounds that Kubernetes words in its own way are rules of admission
(`cluster.rules.jobs`); here stand the types.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from kube.kinds.core import PodTemplateSpec
from kube.kinds.fields import REQUIRED, AnyObject, Int32, Int64, Time, View
from kube.meta import Condition, ObjectMeta


class CompletionMode(StrEnum):
    """Whether the pods of a job are alike or each stands for an index."""

    NON_INDEXED = "NonIndexed"
    INDEXED = "Indexed"


class PodReplacementPolicy(StrEnum):
    """When a pod is replaced: as soon as it goes, or when it has failed."""

    TERMINATING_OR_FAILED = "TerminatingOrFailed"
    FAILED = "Failed"


class FailureAction(StrEnum):
    """What a rule of a pod failure policy does about a failed pod."""

    FAIL_JOB = "FailJob"
    FAIL_INDEX = "FailIndex"
    IGNORE = "Ignore"
    COUNT = "Count"


class ExitCodeOperator(StrEnum):
    """How exit codes are compared with the values of a rule."""

    IN = "In"
    NOT_IN = "NotIn"


class JobConditionType(StrEnum):
    """What the conditions of a job tell."""

    SUSPENDED = "Suspended"
    COMPLETE = "Complete"
    FAILED = "Failed"
    FAILURE_TARGET = "FailureTarget"
    SUCCESS_CRITERIA_MET = "SuccessCriteriaMet"


class OnExitCodes(View):
    """Which exit codes a rule is about."""

    container_name: str | None = None
    operator: Annotated[str, REQUIRED] = ""
    values: Annotated[list[Int32], REQUIRED] = []


class OnPodCondition(View):
    """Which condition of a pod a rule is about."""

    type: Annotated[str, REQUIRED] = ""
    status: str = ""


class PodFailurePolicyRule(View):
    """What happens to a failed pod that meets the requirement."""

    action: Annotated[str, REQUIRED] = ""
    on_exit_codes: OnExitCodes | None = None
    on_pod_conditions: list[OnPodCondition] = []


class PodFailurePolicy(View):
    """How failed pods count; the first rule that matches decides."""

    rules: Annotated[list[PodFailurePolicyRule], REQUIRED] = []


class SuccessPolicyRule(View):
    """Which indexes, or how many, are enough for a job to succeed."""

    succeeded_indexes: str | None = None
    succeeded_count: Int32 | None = None


class SuccessPolicy(View):
    """When a job has succeeded although not every index has."""

    rules: Annotated[list[SuccessPolicyRule], REQUIRED] = []


class JobSpec(View):
    """What is wished of a job."""

    parallelism: Int32 | None = None
    completions: Int32 | None = None
    active_deadline_seconds: Int64 | None = None
    pod_failure_policy: PodFailurePolicy | None = None
    success_policy: SuccessPolicy | None = None
    backoff_limit: Int32 | None = None
    backoff_limit_per_index: Int32 | None = None
    max_failed_indexes: Int32 | None = None
    selector: AnyObject | None = None
    manual_selector: bool | None = None
    template: Annotated[PodTemplateSpec, REQUIRED] = PodTemplateSpec()
    ttl_seconds_after_finished: Int32 | None = None
    completion_mode: str | None = None
    suspend: bool | None = None
    pod_replacement_policy: str | None = None
    managed_by: str | None = None


class UncountedTerminatedPods(View):
    """Pods that have ended and are not in the counters yet, by uid."""

    succeeded: list[str] = []
    failed: list[str] = []


class JobStatus(View):
    """How a job is doing."""

    conditions: list[Condition] = []
    start_time: Time | None = None
    completion_time: Time | None = None
    active: Int32 = 0
    succeeded: Int32 = 0
    failed: Int32 = 0
    terminating: Int32 | None = None
    completed_indexes: str = ""
    failed_indexes: str | None = None
    uncounted_terminated_pods: UncountedTerminatedPods | None = None
    ready: Int32 | None = None


class Job(View):
    """Pods that run to their end."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[JobSpec, REQUIRED] = JobSpec()
    status: JobStatus = JobStatus()
