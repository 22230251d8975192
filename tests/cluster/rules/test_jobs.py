"""Jobs of batch/v1: what is filled in, what is refused, what may change."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cluster.api import admission
from cluster.rules import job_policies
from cluster.rules.jobs import ORPHAN_WARNING
from tests.tables import cases

from .known import DROP, JOBS, UID, Known, admit, admitted, causes, changed, indexed, job, messages

INVALID, REQUIRED, UNSUPPORTED = "FieldValueInvalid", "FieldValueRequired", "FieldValueNotSupported"


@cases("spec, filled", {
    "nothing given": ({}, {"parallelism": 1, "completions": 1, "backoffLimit": 6}),
    "a work queue": ({"parallelism": 3}, {"parallelism": 3, "completions": None}),
    "completions alone": ({"completions": 5}, {"parallelism": 1, "completions": 5}),
    "mode and flags": ({}, {"completionMode": "NonIndexed", "suspend": False, "manualSelector": False}),
    "replacement": ({}, {"podReplacementPolicy": "TerminatingOrFailed"}),
    "replacement with a failure policy": ({"podFailurePolicy": {"rules": []}}, {"podReplacementPolicy": "Failed"}),
    "retries per index": ({"completionMode": "Indexed", "completions": 2, "backoffLimitPerIndex": 1},
        {"backoffLimit": 2147483647}),
})  # fmt: skip
def test_defaults(spec, filled):
    stored = admitted(JOBS, job(**spec))["spec"]
    assert {field: stored.get(field) for field in filled} == filled


def test_the_pod_template_is_filled_in():
    spec = admitted(JOBS, job())["spec"]["template"]["spec"]
    assert spec["terminationGracePeriodSeconds"] == 30
    assert (spec["dnsPolicy"], spec["schedulerName"], spec["securityContext"]) == (
        "ClusterFirst",
        "default-scheduler",
        {},
    )
    container = spec["containers"][0]
    assert container["imagePullPolicy"] == "IfNotPresent"
    assert (container["terminationMessagePath"], container["terminationMessagePolicy"]) == (
        "/dev/termination-log",
        "File",
    )


def test_labels_of_the_template_become_those_of_a_job_without_any():
    with_labels = changed(job(), "spec.template.metadata.labels", {"app": "x"})
    stored = admitted(JOBS, with_labels)
    assert stored["metadata"]["labels"] == stored["spec"]["template"]["metadata"]["labels"]
    assert stored["metadata"]["labels"].items() >= {"app": "x", "job-name": "pi"}.items()
    own = changed(with_labels, "metadata.labels", {"own": "y"})
    assert admitted(JOBS, own)["metadata"]["labels"] == {"own": "y"}


def test_the_selector_and_the_labels_are_generated():
    stored = admitted(JOBS, job())
    assert stored["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": UID}}
    assert stored["spec"]["template"]["metadata"]["labels"] == {
        "job-name": "pi",
        "batch.kubernetes.io/job-name": "pi",
        "controller-uid": UID,
        "batch.kubernetes.io/controller-uid": UID,
    }


def test_a_generated_name_is_in_the_labels():
    named = job("")
    named["metadata"] = {"generateName": "pi-", "namespace": "default"}
    stored = admitted(JOBS, named)
    assert stored["metadata"]["name"] == "pi-00001"
    assert stored["spec"]["template"]["metadata"]["labels"]["job-name"] == "pi-00001"


def test_a_selector_of_ones_own_stays():
    own = job(manualSelector=True, selector={"matchLabels": {"app": "x"}})
    own = changed(own, "spec.template.metadata.labels", {"app": "x"})
    stored = admitted(JOBS, own)
    assert stored["spec"]["selector"] == {"matchLabels": {"app": "x"}}
    assert stored["spec"]["template"]["metadata"]["labels"] == {"app": "x"}


def rule(**fields):
    return {"podFailurePolicy": {"rules": [{"action": "FailJob", **fields}]}}


def codes(operator="In", values=(1,), **fields):
    return rule(onExitCodes={"operator": operator, "values": list(values), **fields})


def success(**fields):
    return {"successPolicy": {"rules": [fields]}}


RULES = "spec.podFailurePolicy.rules[0]"
REFUSED = {
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
    "an always restarting pod": (changed(job(), "spec.template.spec.restartPolicy", "Always"), "spec.template.spec.restartPolicy", REQUIRED),
    "no restart policy": (changed(job(), "spec.template.spec.restartPolicy", DROP), "spec.template.spec.restartPolicy", REQUIRED),
    "a failure policy and restarts": (changed(job(**codes()), "spec.template.spec.restartPolicy", "OnFailure"), "spec.template.spec.restartPolicy", INVALID),
    "retries per index and restarts": (changed(indexed(backoffLimitPerIndex=1), "spec.template.spec.restartPolicy", "OnFailure"), "spec.template.spec.restartPolicy", INVALID),
    "no container": (changed(job(), "spec.template.spec.containers", []), "spec.template.spec.containers", INVALID),
    "a selector of ones own": (job(selector={"matchLabels": {"app": "x"}}), "spec.template.metadata.labels", INVALID),
    "another's uid": (changed(job(), "spec.template.metadata.labels", {"controller-uid": "old"}), "spec.template.metadata.labels[controller-uid]", INVALID),
    "another's name": (changed(job(), "spec.template.metadata.labels", {"job-name": "old"}), "spec.template.metadata.labels[job-name]", INVALID),
    "a manual selector left out": (job(manualSelector=True), "spec.selector", REQUIRED),
    "a manual selector that does not match": (job(manualSelector=True, selector={"matchLabels": {"a": "b"}}), "spec.template.metadata.labels", INVALID),
    "an indexed job with a long name": (changed(indexed(), "metadata.name", "x" * 62), "metadata.name", INVALID),
    "an unknown action": (job(podFailurePolicy={"rules": [{"action": "Shrug", "onExitCodes": {"operator": "In", "values": [1]}}]}), f"{RULES}.action", UNSUPPORTED),
    "FailIndex without a limit": (job(podFailurePolicy={"rules": [{"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [1]}}]}), f"{RULES}.action", INVALID),
    "a rule without requirement": (job(**rule()), RULES, INVALID),
    "a rule with two requirements": (job(**rule(onExitCodes={"operator": "In", "values": [1]}, onPodConditions=[{"type": "A"}])), RULES, INVALID),
    "an unknown operator": (job(**codes("Like")), f"{RULES}.onExitCodes.operator", UNSUPPORTED),
    "no exit code": (job(**codes(values=())), f"{RULES}.onExitCodes.values", INVALID),
    "too many exit codes": (job(**codes(values=range(1, 257))), f"{RULES}.onExitCodes.values", "FieldValueTooMany"),
    "exit code 0": (job(**codes(values=(0, 1))), f"{RULES}.onExitCodes.values[0]", INVALID),
    "an exit code twice": (job(**codes(values=(1, 1))), f"{RULES}.onExitCodes.values[1]", "FieldValueDuplicate"),
    "exit codes out of order": (job(**codes(values=(2, 1))), f"{RULES}.onExitCodes.values", INVALID),
    "an unknown container": (job(**codes(containerName="none")), f"{RULES}.onExitCodes.containerName", INVALID),
    "a bad condition type": (job(**rule(onPodConditions=[{"type": "a b"}])), f"{RULES}.onPodConditions[0].type", INVALID),
    "a bad condition status": (job(**rule(onPodConditions=[{"type": "A", "status": "Maybe"}])), f"{RULES}.onPodConditions[0].status", UNSUPPORTED),
    "too many failure rules": (job(podFailurePolicy={"rules": [{"action": "Count", "onPodConditions": [{"type": "A"}]}] * 21}), "spec.podFailurePolicy.rules", "FieldValueTooMany"),
    "no success rule": (indexed(successPolicy={"rules": []}), "spec.successPolicy.rules", REQUIRED),
    "an empty success rule": (indexed(**success()), "spec.successPolicy.rules[0]", REQUIRED),
    "too high a count": (indexed(**success(succeededCount=5)), "spec.successPolicy.rules[0].succeededCount", INVALID),
    "a count above the set": (indexed(**success(succeededCount=3, succeededIndexes="0,2")), "spec.successPolicy.rules[0].succeededCount", INVALID),
    "an index that is not there": (indexed(**success(succeededIndexes="0-4")), "spec.successPolicy.rules[0].succeededIndexes", INVALID),
    "indexes that are no numbers": (indexed(**success(succeededIndexes="a")), "spec.successPolicy.rules[0].succeededIndexes", INVALID),
}  # fmt: skip


@cases("obj, field, reason", REFUSED)
def test_refusals(obj, field, reason):
    assert (field, reason) in causes(JOBS, obj)


ACCEPTED = {
    "a plain job": job(),
    "zero at once": job(parallelism=0, completions=0),
    "a work queue": job(parallelism=5),
    "indexed": indexed(backoffLimitPerIndex=0, maxFailedIndexes=4),
    "a long deadline": job(activeDeadlineSeconds=2**40),
    "a failure policy": job(**codes("NotIn", (0, 3), containerName="main")),
    "a condition without status": job(**rule(onPodConditions=[{"type": "DisruptionTarget"}])),
    "a success policy": indexed(**success(succeededIndexes="0,2-3", succeededCount=2)),
    "a manager": job(managedBy="example.com/controller"),
    "no restarts": changed(job(), "spec.template.spec.restartPolicy", "OnFailure"),
}


@cases("obj", ACCEPTED)
def test_acceptances(obj):
    stored = admitted(JOBS, obj)
    # What is stored is accepted again as it is.
    assert causes(JOBS, stored, stored) == []
    assert admit(JOBS, stored, stored).object == stored


def test_a_refusal_is_in_kubernetes_words():
    assert messages(JOBS, job(parallelism=-1)) == [
        "spec.parallelism: Invalid value: -1: must be greater than or equal to 0"
    ]


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
UPDATES = {
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
}  # fmt: skip


@cases("old, path, value, field", UPDATES)
def test_updates(old, path, value, field):
    found = causes(JOBS, changed(old, path, value), old)
    assert found == ([] if field is None else found)
    assert field is None or (field, INVALID) in found


def test_an_indexed_job_grows_in_tandem():
    grown = changed(changed(INDEXED, "spec.completions", 6), "spec.parallelism", 6)
    assert causes(JOBS, grown, INDEXED) == []


def test_what_is_fixed_says_so():
    assert messages(JOBS, changed(STORED, "spec.completions", 5), STORED) == [
        "spec.completions: Invalid value: 5: field is immutable"
    ]


BEGUN = {"startTime": "2026-01-01T00:00:00Z", "active": 1, "failed": 2, "succeeded": 1}


def conditions(*types):
    return [{"type": name, "status": "True"} for name in types]


DONE = {
    "startTime": "2026-01-01T00:00:00Z",
    "completionTime": "2026-01-01T00:01:00Z",
    "succeeded": 4,
    "conditions": conditions("SuccessCriteriaMet", "Complete"),
}
STATUSES = {
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
    "a start that moves": (STORED, BEGUN, {**BEGUN, "startTime": "2026-01-02T00:00:00Z"}, "status.startTime"),
    "a start that goes": (STORED, BEGUN, {**BEGUN, "startTime": None}, "status.startTime"),
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
}  # fmt: skip


@cases("stored, before, after, field", STATUSES)
def test_statuses(stored, before, after, field):
    old = {**stored, "status": before}
    shaped = admission.shape(JOBS, {**stored, "status": after}, old)
    found = [cause.field for cause in admission.judge_status(shaped, old, Known()).causes]
    assert found == ([] if field is None else found)
    assert field is None or field in found


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
