"""Jobs of batch/v1: what is refused, what may change, and what is filled in beside the defaults of Kubernetes (test_kinds.py)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cluster.api import admission
from cluster.rules import job_policies
from cluster.rules.jobs import ORPHAN_WARNING
from tests.tables import cases

from .known import DROP, JOBS, Known, admit, admitted, causes, changed, indexed, job, messages

INVALID, REQUIRED, UNSUPPORTED = "FieldValueInvalid", "FieldValueRequired", "FieldValueNotSupported"


LABELS = "spec.template.metadata.labels"


def test_labels_and_a_selector_of_ones_own_stay_and_a_generated_name_is_a_label():
    own = changed(changed(job(), LABELS, {"app": "x"}), "metadata.labels", {"own": "y"})
    assert admitted(JOBS, own)["metadata"]["labels"] == {"own": "y"}
    selector = {"matchLabels": {"app": "x"}}
    stored = admitted(JOBS, changed(job(manualSelector=True, selector=selector), LABELS, {"app": "x"}))["spec"]
    assert (stored["selector"], stored["template"]["metadata"]["labels"]) == (selector, {"app": "x"})
    stored = admitted(JOBS, job("", generateName="pi-"))
    assert stored["metadata"]["name"] == "pi-00001"
    assert stored["spec"]["template"]["metadata"]["labels"]["job-name"] == "pi-00001"


def rule(**fields):
    return {"podFailurePolicy": {"rules": [{"action": "FailJob", **fields}]}}


def codes(operator="In", values=(1,), **fields):
    return rule(onExitCodes={"operator": operator, "values": list(values), **fields})


def success(**fields):
    return {"successPolicy": {"rules": [fields]}}


RULES, RESTART = "spec.podFailurePolicy.rules[0]", "spec.template.spec.restartPolicy"
SUCCESS, CODES = "spec.successPolicy.rules[0]", f"{RULES}.onExitCodes"


@cases("obj, field, reason", {
    "negative parallelism": (job(parallelism=-1), "spec.parallelism", INVALID),
    "negative completions": (job(completions=-1), "spec.completions", INVALID),
    "negative deadline": (job(activeDeadlineSeconds=-1), "spec.activeDeadlineSeconds", INVALID),
    "negative retries": (job(backoffLimit=-1), "spec.backoffLimit", INVALID),
    "negative time to live": (job(ttlSecondsAfterFinished=-1), "spec.ttlSecondsAfterFinished", INVALID),
    "an unknown mode": (job(completionMode="Sorted"), "spec.completionMode", UNSUPPORTED),
    "indexed without completions": (indexed(completions=None), "spec.completions", REQUIRED),
    "too many at once": (indexed(completions=100_001, parallelism=100_001), "spec.parallelism", INVALID),
    "retries per index without indexes": (job(backoffLimitPerIndex=1), "spec.backoffLimitPerIndex", INVALID),
    "negative retries per index": (indexed(backoffLimitPerIndex=-1), "spec.backoffLimitPerIndex", INVALID),
    "failed indexes without a limit": (indexed(maxFailedIndexes=1), "spec.backoffLimitPerIndex", REQUIRED),
    "more failed indexes than there are": (indexed(backoffLimitPerIndex=1, maxFailedIndexes=5), "spec.maxFailedIndexes", INVALID),
    "many indexes without a bound": (indexed(completions=100_001, backoffLimitPerIndex=1), "spec.maxFailedIndexes", REQUIRED),
    "many indexes with a high bound": (indexed(completions=100_001, backoffLimitPerIndex=1, maxFailedIndexes=10_001), "spec.maxFailedIndexes", INVALID),
    "many indexes and many at once": (indexed(completions=100_001, backoffLimitPerIndex=1, maxFailedIndexes=1, parallelism=10_001), "spec.parallelism", INVALID),
    "a success policy without indexes": (job(**success(succeededCount=1)), "spec.successPolicy", INVALID),
    "an unknown replacement policy": (job(podReplacementPolicy="Never"), "spec.podReplacementPolicy", UNSUPPORTED),
    "replacement beside a failure policy": (job(podReplacementPolicy="TerminatingOrFailed", **codes()), "spec.podReplacementPolicy", UNSUPPORTED),
    "a manager without domain": (job(managedBy="me"), "spec.managedBy", INVALID),
    "a long manager": (job(managedBy="example.com/" + "x" * 64), "spec.managedBy", "FieldValueTooLong"),
    "an always restarting pod": (changed(job(), RESTART, "Always"), RESTART, REQUIRED),
    "no restart policy": (changed(job(), RESTART, DROP), RESTART, REQUIRED),
    "a failure policy and restarts": (changed(job(**codes()), RESTART, "OnFailure"), RESTART, INVALID),
    "retries per index and restarts": (changed(indexed(backoffLimitPerIndex=1), RESTART, "OnFailure"), RESTART, INVALID),
    "no container": (changed(job(), "spec.template.spec.containers", []), "spec.template.spec.containers", INVALID),
    "a selector of ones own": (job(selector={"matchLabels": {"app": "x"}}), LABELS, INVALID),
    "another's uid": (changed(job(), LABELS, {"controller-uid": "old"}), "spec.template.metadata.labels[controller-uid]", INVALID),
    "another's name": (changed(job(), LABELS, {"job-name": "old"}), "spec.template.metadata.labels[job-name]", INVALID),
    "a manual selector left out": (job(manualSelector=True), "spec.selector", REQUIRED),
    "a manual selector that does not match": (job(manualSelector=True, selector={"matchLabels": {"a": "b"}}), LABELS, INVALID),
    "an indexed job with a long name": (changed(indexed(), "metadata.name", "x" * 62), "metadata.name", INVALID),
    "an unknown action": (job(podFailurePolicy={"rules": [{"action": "Shrug", "onExitCodes": {"operator": "In", "values": [1]}}]}), f"{RULES}.action", UNSUPPORTED),
    "FailIndex without a limit": (job(podFailurePolicy={"rules": [{"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [1]}}]}), f"{RULES}.action", INVALID),
    "a rule without requirement": (job(**rule()), RULES, INVALID),
    "a rule with two requirements": (job(**rule(onExitCodes={"operator": "In", "values": [1]}, onPodConditions=[{"type": "A"}])), RULES, INVALID),
    "an unknown operator": (job(**codes("Like")), f"{CODES}.operator", UNSUPPORTED),
    "no exit code": (job(**codes(values=())), f"{CODES}.values", INVALID),
    "too many exit codes": (job(**codes(values=range(1, 257))), f"{CODES}.values", "FieldValueTooMany"),
    "exit code 0": (job(**codes(values=(0, 1))), f"{CODES}.values[0]", INVALID),
    "an exit code twice": (job(**codes(values=(1, 1))), f"{CODES}.values[1]", "FieldValueDuplicate"),
    "exit codes out of order": (job(**codes(values=(2, 1))), f"{CODES}.values", INVALID),
    "an unknown container": (job(**codes(containerName="none")), f"{CODES}.containerName", INVALID),
    "a bad condition type": (job(**rule(onPodConditions=[{"type": "a b"}])), f"{RULES}.onPodConditions[0].type", INVALID),
    "a bad condition status": (job(**rule(onPodConditions=[{"type": "A", "status": "Maybe"}])), f"{RULES}.onPodConditions[0].status", UNSUPPORTED),
    "too many failure rules": (job(podFailurePolicy={"rules": [{"action": "Count", "onPodConditions": [{"type": "A"}]}] * 21}), "spec.podFailurePolicy.rules", "FieldValueTooMany"),
    "no success rule": (indexed(successPolicy={"rules": []}), "spec.successPolicy.rules", REQUIRED),
    "an empty success rule": (indexed(**success()), SUCCESS, REQUIRED),
    "too high a count": (indexed(**success(succeededCount=5)), f"{SUCCESS}.succeededCount", INVALID),
    "a count above the set": (indexed(**success(succeededCount=3, succeededIndexes="0,2")), f"{SUCCESS}.succeededCount", INVALID),
    "an index that is not there": (indexed(**success(succeededIndexes="0-4")), f"{SUCCESS}.succeededIndexes", INVALID),
    "indexes that are no numbers": (indexed(**success(succeededIndexes="a")), f"{SUCCESS}.succeededIndexes", INVALID),
})  # fmt: skip
def test_refusals(obj, field, reason):
    assert (field, reason) in causes(JOBS, obj)


@cases("obj", {
    "a plain job": job(),
    "zero at once": job(parallelism=0, completions=0),
    "a work queue": job(parallelism=5),
    "indexed": indexed(backoffLimitPerIndex=0, maxFailedIndexes=4),
    "a long deadline": job(activeDeadlineSeconds=2**40),
    "a failure policy": job(**codes("NotIn", (0, 3), containerName="main")),
    "a condition without status": job(**rule(onPodConditions=[{"type": "DisruptionTarget"}])),
    "a success policy": indexed(**success(succeededIndexes="0,2-3", succeededCount=2)),
    "a manager": job(managedBy="example.com/controller"),
    "no restarts": changed(job(), RESTART, "OnFailure"),
})  # fmt: skip
def test_acceptances(obj):
    stored = admitted(JOBS, obj)
    # What is stored is accepted again as it is.
    assert causes(JOBS, stored, stored) == []
    assert admit(JOBS, stored, stored).object == stored


STORED = admitted(JOBS, job(parallelism=2, completions=4))
INDEXED = admitted(JOBS, indexed(completions=4, parallelism=4))
SUSPENDED = changed(STORED, "spec.suspend", True)
RUNNING = changed(STORED, "status.startTime", "2026-01-01T00:00:00Z")
STOPPED = {
    **SUSPENDED,
    "status": {"startTime": "2026-01-01T00:00:00Z", "conditions": [{"type": "Suspended", "status": "True"}]},
}
STOPPING = changed(STOPPED, "status.active", 1)
SELECTOR = "spec.template.spec.nodeSelector"


@cases("old, path, value, field", {
    "parallelism": (STORED, "spec.parallelism", 7, None),
    "suspend": (STORED, "spec.suspend", True, None),
    "deadline": (STORED, "spec.activeDeadlineSeconds", 9, None),
    "retries": (STORED, "spec.backoffLimit", 9, None),
    "time to live": (STORED, "spec.ttlSecondsAfterFinished", 9, None),
    "replacement": (STORED, "spec.podReplacementPolicy", "Failed", None),
    "labels": (STORED, "metadata.labels", {"a": "b"}, None),
    "completions": (STORED, "spec.completions", 5, "spec.completions"),
    "completions taken away": (STORED, "spec.completions", None, "spec.completions"),
    "indexed completions alone": (INDEXED, "spec.completions", 5, "spec.completions"),
    "mode": (STORED, "spec.completionMode", "Indexed", "spec.completionMode"),
    "selector": (STORED, "spec.selector", {"matchLabels": {"job-name": "pi"}}, "spec.selector"),
    "failure policy": (STORED, "spec.podFailurePolicy", {"rules": []}, "spec.podFailurePolicy"),
    "manager": (STORED, "spec.managedBy", "example.com/x", "spec.managedBy"),
    "image": (STORED, "spec.template.spec.containers.0.image", "other", "spec.template"),
    "node selector of a running job": (RUNNING, SELECTOR, {"a": "b"}, "spec.template"),
    "node selector of a suspended job": (SUSPENDED, SELECTOR, {"a": "b"}, None),
    "node selector of a stopped job": (STOPPED, SELECTOR, {"a": "b"}, None),
    "node selector of a stopping job": (STOPPING, SELECTOR, {"a": "b"}, "spec.template"),
    "tolerations of a suspended job": (SUSPENDED, "spec.template.spec.tolerations", [{"key": "a", "operator": "Exists"}], None),
    "annotations of a suspended job": (SUSPENDED, "spec.template.metadata.annotations", {"a": "b"}, None),
    "gates of a suspended job": (SUSPENDED, "spec.template.spec.schedulingGates", [{"name": "a"}], None),
    "requests of a suspended job": (SUSPENDED, "spec.template.spec.containers.0.resources", {"requests": {"cpu": "1"}}, None),
    "image of a suspended job": (SUSPENDED, "spec.template.spec.containers.0.image", "other", "spec.template"),
})  # fmt: skip
def test_updates(old, path, value, field):
    found = causes(JOBS, changed(old, path, value), old)
    assert found == ([] if field is None else found)
    assert field is None or (field, INVALID) in found


def test_an_indexed_job_grows_in_tandem():
    grown = changed(changed(INDEXED, "spec.completions", 6), "spec.parallelism", 6)
    assert causes(JOBS, grown, INDEXED) == []


def test_a_refusal_is_in_kubernetes_words():
    negative = "spec.parallelism: Invalid value: -1: must be greater than or equal to 0"
    assert messages(JOBS, job(parallelism=-1)) == [negative]
    fixed = "spec.completions: Invalid value: 5: field is immutable"
    assert messages(JOBS, changed(STORED, "spec.completions", 5), STORED) == [fixed]


BEGUN = {"startTime": "2026-01-01T00:00:00Z", "active": 1, "failed": 2, "succeeded": 1}


def conditions(*types):
    return [{"type": name, "status": "True"} for name in types]


DONE = {
    "startTime": "2026-01-01T00:00:00Z",
    "completionTime": "2026-01-01T00:01:00Z",
    "succeeded": 4,
    "conditions": conditions("SuccessCriteriaMet", "Complete"),
}


@cases("stored, before, after, refusal", {
    "the beginning": (STORED, {}, BEGUN, None),
    "the end": (STORED, BEGUN, {**DONE, "failed": 2}, None),
    "a negative counter": (STORED, {}, {"active": -1}, "status.active"),
    "fewer failures": (STORED, BEGUN, {**BEGUN, "failed": 1}, "status.failed"),
    "fewer successes": (STORED, BEGUN, {**BEGUN, "succeeded": 0}, "status.succeeded"),
    "fewer successes of a shrinking job": (INDEXED, BEGUN, {**BEGUN, "succeeded": 0}, None),
    "more ready than active": (STORED, {}, {"active": 1, "ready": 2}, "status.ready"),
    "an end taken back": (STORED, DONE, {**DONE, "conditions": conditions("SuccessCriteriaMet")}, "status.conditions"),
    "complete and failed": (STORED, {}, {**DONE, "conditions": conditions("SuccessCriteriaMet", "Complete", "FailureTarget", "Failed")}, "status.conditions"),
    "failed without a target": (STORED, BEGUN, {**BEGUN, "active": 0, "conditions": conditions("Failed")}, "status.conditions"),
    "complete without criteria": (STORED, BEGUN, {**DONE, "failed": 2, "conditions": conditions("Complete")}, "status.conditions"),
    "failed": (STORED, BEGUN, {**BEGUN, "active": 0, "conditions": conditions("FailureTarget", "Failed")}, None),
    "complete without time": (STORED, BEGUN, {**DONE, "failed": 2, "completionTime": None}, "status.completionTime"),
    "a time without being complete": (STORED, BEGUN, {**BEGUN, "completionTime": "2026-01-01T00:01:00Z"}, "status.completionTime"),
    "an end before the start": (STORED, BEGUN, {**DONE, "failed": 2, "completionTime": "2025-01-01T00:00:00Z"}, "status.completionTime"),
    "a start that moves": (STORED, BEGUN, {**BEGUN, "startTime": "2026-01-02T00:00:00Z"}, "status.startTime: Invalid value: \"2026-01-02T00:00:00Z\": field is immutable"),
    "a start that goes": (STORED, BEGUN, {**BEGUN, "startTime": None}, "status.startTime: Required value: startTime cannot be removed for unsuspended job"),
    "a start that goes while suspended": (SUSPENDED, BEGUN, {**BEGUN, "startTime": None}, None),
    "an end with active pods": (STORED, BEGUN, {**DONE, "failed": 2, "active": 1}, "status.active"),
    "an end with uncounted pods": (STORED, BEGUN, {**DONE, "failed": 2, "uncountedTerminatedPods": {"failed": ["a"]}}, "status.uncountedTerminatedPods"),
    "indexes of a plain job": (STORED, {}, {"completedIndexes": "1"}, "status.completedIndexes"),
    "indexes": (INDEXED, {}, {"completedIndexes": "0,2-3"}, None),
    "indexes out of order": (INDEXED, {}, {"completedIndexes": "2,1"}, "status.completedIndexes"),
    "an index that is not there": (INDEXED, {}, {"completedIndexes": "4"}, "status.completedIndexes"),
    "failed indexes without a limit": (INDEXED, {}, {"failedIndexes": "1"}, "status.failedIndexes"),
    "indexes that overlap": (changed(INDEXED, "spec.backoffLimitPerIndex", 1), {}, {"failedIndexes": "1", "completedIndexes": "0-2"}, "status.failedIndexes"),
    "an empty uid": (STORED, {}, {"uncountedTerminatedPods": {"failed": [""]}}, "status.uncountedTerminatedPods.failed[0]"),
    "a uid twice": (STORED, {}, {"uncountedTerminatedPods": {"failed": ["a"], "succeeded": ["a"]}}, "status.uncountedTerminatedPods.failed[0]"),
})  # fmt: skip
def test_statuses(stored, before, after, refusal):
    old = {**stored, "status": before}
    shaped = admission.shape(JOBS, {**stored, "status": after}, old)
    found = [str(cause) for cause in admission.judge_status(shaped, old, Known()).causes]
    assert bool(found) is bool(refusal)
    assert refusal is None or any(f"{text}: ".startswith(f"{refusal}: ") for text in found)


def test_a_person_is_told_that_nothing_runs_the_job_yet():
    warnings = admit(JOBS, job(), warnings=True).warnings
    assert any("no controller" in text for text in warnings)
    assert ORPHAN_WARNING.startswith("child pods are preserved by default")


@given(st.sets(st.integers(0, 60)))
def test_an_index_text_is_read_as_the_set_that_it_describes(indexes):
    pieces = []
    for index in sorted(indexes):
        if pieces and pieces[-1][1] == index - 1:
            pieces[-1][1] = index
        else:
            pieces.append([index, index])
    text = ",".join(str(a) if a == b else f"{a}-{b}" for a, b in pieces)
    read = job_policies.read_indexes(text, 61)
    assert {i for first, until in read for i in range(first, until + 1)} == indexes
    assert job_policies.size(read) == len(indexes)
