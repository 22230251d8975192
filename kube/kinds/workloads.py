"""Job of `batch/v1` (seed: the batch/v1 Job reference; reference: kubernetes-api §1).

Bounds that Kubernetes words in its own way are rules of admission
(`cluster.rules.batch.jobs`); here stand the types.
"""

from __future__ import annotations

from enum import StrEnum


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
    """The conditions of a job."""

    SUSPENDED = "Suspended"
    COMPLETE = "Complete"
    FAILED = "Failed"
    FAILURE_TARGET = "FailureTarget"
    SUCCESS_CRITERIA_MET = "SuccessCriteriaMet"
