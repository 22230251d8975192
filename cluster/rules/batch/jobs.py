"""Jobs of `batch/v1`: defaults in their order, the generated selector, validation (§1.2 to §1.5).

They are stored and served; no controller runs them yet, so their status stays empty. What an update may change is in
`job_updates`, the policies for failure and success in `job_policies`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from cluster.rules.batch import job_policies, job_updates
from cluster.rules.checks import RulesView, check_selector, not_negative, one_of
from cluster.rules.pod import pod_defaults, pods, templates
from kube import lenient, names, selector
from kube.errors import Cause, invalid, not_supported, required
from kube.kinds.workloads import CompletionMode, PodReplacementPolicy
from kube.meta import Object
from kube.resources import BATCH_JOBS

ORPHAN_WARNING = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background"
    " to remove them or set propagationPolicy=Orphan to suppress this warning"
)
NOT_RUN = (
    "jobs of batch/v1 are stored and served, and no controller of this cluster runs them yet;"
    " submit a Job of batch.volcano.sh/v1alpha1 to run pods"
)
JOB_NAME, LEGACY_JOB_NAME = "batch.kubernetes.io/job-name", "job-name"
JOB_UID, LEGACY_JOB_UID = "batch.kubernetes.io/controller-uid", "controller-uid"
MAX_RETRIES = 2**31 - 1
DEFAULT_RETRIES = 6
MAX_INDEXES_AT_ONCE = 100_000  # parallelism of an Indexed job, and failed indexes
MANY_INDEXES = 100_000  # completions beyond which failures are bounded more strictly
MAX_WHEN_MANY = 10_000
LONGEST_MANAGER = 63
COUNTS = (
    *("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished"),
    *("backoffLimitPerIndex", "maxFailedIndexes"),
)
_MANAGER_PATH = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")


def default(job: Object, old: Object | None, view: RulesView) -> None:
    """Fill in what a job leaves open, in Kubernetes' order (§1.3); a new one gets its selector and labels (§1.4)."""
    spec, template = job["spec"], job["spec"]["template"]
    if spec.get("parallelism") is None:
        spec["parallelism"] = 1
        if spec.get("completions") is None:
            spec["completions"] = 1
    if spec.get("backoffLimit") is None:
        per_index = spec.get("backoffLimitPerIndex") is not None
        spec["backoffLimit"] = MAX_RETRIES if per_index else DEFAULT_RETRIES
    spec["completionMode"] = spec.get("completionMode") or CompletionMode.NON_INDEXED.value
    spec["suspend"] = bool(spec.get("suspend"))
    spec["manualSelector"] = bool(spec.get("manualSelector"))
    if not spec.get("podReplacementPolicy"):
        failed = spec.get("podFailurePolicy") is not None
        policy = PodReplacementPolicy.FAILED if failed else PodReplacementPolicy.TERMINATING_OR_FAILED
        spec["podReplacementPolicy"] = policy.value
    job_policies.default(lenient.mapping(spec, "podFailurePolicy"))
    pod_defaults.fill_template(template["spec"])
    metadata = job["metadata"]
    if old is None:
        job["status"] = {}
        if not metadata.get("name"):  # which becomes a label of the pods
            metadata["name"] = view.free_name(BATCH_JOBS, metadata["namespace"], metadata["generateName"])
        if not spec["manualSelector"]:
            _generate_selector(job)
    # A job without labels has those of its pods, generated ones included.
    labels = lenient.mapping(template, "metadata", "labels")
    if labels and not metadata.get("labels"):
        metadata["labels"] = dict(labels)


def _generate_selector(job: Object) -> None:
    """Tie the pods to the job; what the user wrote stays, and is refused where it disagrees."""
    spec, metadata = job["spec"], job["metadata"]
    written = spec["template"]["metadata"] = dict(spec["template"].get("metadata") or {})
    written["labels"] = {**_generated(metadata), **(written.get("labels") or {})}
    chosen = spec["selector"] = dict(spec.get("selector") or {})
    chosen["matchLabels"] = {JOB_UID: metadata.get("uid") or "", **(chosen.get("matchLabels") or {})}


def _generated(metadata: Object) -> dict[str, str]:
    uid, name = metadata.get("uid") or "", metadata["name"]
    return {LEGACY_JOB_NAME: name, JOB_NAME: name, LEGACY_JOB_UID: uid, JOB_UID: uid}


def validate(job: Object, old: Object | None, view: RulesView) -> list[Cause]:
    """Return everything that is wrong with a job that is created, or that changes from old."""
    causes = list(_check_spec(job["spec"], view))
    if old is not None:
        return [*causes, *job_updates.check(job, old)]
    # The pods of an Indexed job have host names of job and index.
    spec, name = job["spec"], job["metadata"]["name"]
    hostname = f"{name}-{(spec.get('completions') or 0) - 1}"
    has_indexes = spec["completionMode"] == CompletionMode.INDEXED and (spec.get("completions") or 0) > 0
    if has_indexes and (problem := names.dns_label(hostname)):
        detail = f"will not able to create pod with invalid DNS label {hostname!r}: {problem}"
        causes.append(invalid("metadata.name", name, detail))
    return [*causes, *_check_generated(job)]


def warn(job: Object, old: Object | None, view: RulesView) -> list[str]:
    """Return what a person should know about a job although it is accepted."""
    if old is not None:
        return []
    spec, warnings = job["spec"], [NOT_RUN]
    name = job["metadata"].get("name") or ""
    if problem := names.dns_label(name):
        text = "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior;"
        warnings.append(f"{text} a DNS label is recommended: [{problem}]")
    many = (spec.get("completions") or 0) > MANY_INDEXES and spec["parallelism"] > MAX_WHEN_MANY
    if spec["completionMode"] == CompletionMode.INDEXED and many:
        warnings.append(
            "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4,"
            " Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
        )
    return warnings + pods.command_warnings(spec["template"]["spec"], "spec.template.spec", view)


def _check_spec(spec: Object, view: RulesView) -> Iterator[Cause]:
    yield from not_negative(spec, COUNTS, "spec")
    yield from one_of(spec["completionMode"], CompletionMode, "spec.completionMode")
    if spec["completionMode"] == CompletionMode.INDEXED:
        yield from _check_indexed(spec)
    else:
        for field in ("backoffLimitPerIndex", "maxFailedIndexes", "successPolicy"):
            if spec.get(field) is not None:
                yield invalid(f"spec.{field}", spec[field], "requires indexed completion mode")
    replacement, path = spec["podReplacementPolicy"], "spec.podReplacementPolicy"
    policy = spec.get("podFailurePolicy")
    if policy is None:
        yield from one_of(replacement, PodReplacementPolicy, path)
    elif replacement != PodReplacementPolicy.FAILED:
        yield not_supported(path, replacement, [PodReplacementPolicy.FAILED])
    yield from _check_manager(spec.get("managedBy"))
    if policy is not None:
        yield from job_policies.check_failure(policy, spec)
    yield from _check_template(spec, elsewhere=view.runs_images())
    yield from _check_selector(spec)


def _check_indexed(spec: Object) -> Iterator[Cause]:
    completions, most_failed = spec.get("completions"), spec.get("maxFailedIndexes")
    if completions is None:
        yield required("spec.completions", "when completion mode is Indexed")
    if spec["parallelism"] > MAX_INDEXES_AT_ONCE:
        detail = "must be less than or equal to 100000 when completion mode is Indexed"
        yield invalid("spec.parallelism", spec["parallelism"], detail)
    if most_failed is not None:
        yield from _check_most_failed(spec, most_failed, completions)
    if completions is not None and completions > MANY_INDEXES and _per_index(spec):
        if most_failed is None:
            yield required("spec.maxFailedIndexes", f"must be specified when completions is above {MANY_INDEXES}")
        for field in ("parallelism", "maxFailedIndexes"):
            if (spec.get(field) or 0) > MAX_WHEN_MANY:
                detail = (
                    f"must be less than or equal to {MAX_WHEN_MANY} when completions are above {MANY_INDEXES}"
                    " and used with backoff limit per index"
                )
                yield invalid(f"spec.{field}", spec[field], detail)
    if spec.get("successPolicy") is not None:
        yield from job_policies.check_success(spec["successPolicy"], completions)


def _per_index(spec: Object) -> bool:
    return spec.get("backoffLimitPerIndex") is not None


def _check_most_failed(spec: Object, most_failed: int, completions: int | None) -> Iterator[Cause]:
    if not _per_index(spec):
        yield required("spec.backoffLimitPerIndex", "when maxFailedIndexes is specified")
    if completions is not None and most_failed > completions:
        yield invalid("spec.maxFailedIndexes", most_failed, "must be less than or equal to completions")
    if most_failed > MAX_INDEXES_AT_ONCE:
        detail = f"must be less than or equal to {MAX_INDEXES_AT_ONCE}"
        yield invalid("spec.maxFailedIndexes", most_failed, detail)


def _check_manager(manager: str | None) -> Iterator[Cause]:
    """A controller is named by a path below a domain: `example.com/name`."""
    path = "spec.managedBy"
    if manager is None:
        return
    if len(manager) > LONGEST_MANAGER:
        yield Cause("FieldValueTooLong", f"Too long: may not be more than {LONGEST_MANAGER} bytes", path)
    domain, slash, rest = manager.partition("/")
    if not manager:
        yield required(path)
    elif not slash or not domain or not rest:
        yield invalid(path, manager, 'must be a domain-prefixed path (such as "acme.io/foo")')
    elif problem := names.dns_subdomain(domain):
        yield invalid(path, domain, problem)
    elif not _MANAGER_PATH.fullmatch(rest):
        yield invalid(path, rest, f"Invalid path (regex used for validation is '{_MANAGER_PATH.pattern}')")


def _check_template(spec: Object, *, elsewhere: bool) -> Iterator[Cause]:
    template, path = spec["template"], "spec.template"
    where = f"{path}.spec.restartPolicy"
    for cause in templates.check(template, path, elsewhere=elsewhere):
        if cause.field != where:
            yield cause
    policy = lenient.mapping(template, "spec").get("restartPolicy")
    if policy in ("Always", "", None):
        yield required(where, 'valid values: "OnFailure", "Never"')
    elif policy not in ("OnFailure", "Never"):
        yield not_supported(where, policy, ["OnFailure", "Never"])
    elif policy != "Never":
        for field in ("podFailurePolicy", "backoffLimitPerIndex"):
            if spec.get(field) is not None:
                yield invalid(where, policy, f'only "Never" is supported when {field} is specified')


def _check_selector(spec: Object) -> Iterator[Cause]:
    written = spec.get("selector")
    if written is None:
        yield required("spec.selector")
        return
    problems = list(check_selector(written, "spec.selector"))
    yield from problems
    labels = lenient.mapping(spec["template"], "metadata", "labels")
    if not problems and not selector.from_object(written).matches(labels):
        detail = "`selector` does not match template `labels`"
        yield invalid("spec.template.metadata.labels", labels, detail)


def _check_generated(job: Object) -> Iterator[Cause]:
    """The labels and the selector are those of this job, unless the user keeps them (manualSelector)."""
    spec = job["spec"]
    if spec["manualSelector"]:
        return
    expected = _generated(job["metadata"])
    labels: dict[str, Any] = lenient.mapping(spec["template"], "metadata", "labels")
    for key, value in expected.items():
        if labels.get(key) != value:
            yield invalid(f"spec.template.metadata.labels[{key}]", labels, f"must be '{value}'")
    if not list(check_selector(spec["selector"], "")) and not selector.from_object(spec["selector"]).matches(expected):
        yield invalid("spec.selector", spec["selector"], "`selector` not auto-generated")
