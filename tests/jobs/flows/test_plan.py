"""The phase of a flow, the lists of its jobs, who may start, patches, and where jobs stand in its graph: tables."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.flows import graph, plan, status, steps
from jobs.flows.plan import Known
from jobs.made.jobs import MadeJob
from kube.kinds.batch import JobPhase
from kube.kinds.flow import Flow, JobFlow
from kube.patch import PatchError
from tests.jobs.builders import container, task
from tests.jobs.flows.control import CLUSTER, flow, step, template
from tests.tables import cases

NOW = 1_772_323_200_000  # 2026-03-01T00:00:00Z
TEMPLATES = {name: template(name) for name in "abcd"}


def made(name, phase, uid="u", *tasks, **told):
    """A job of the flow f as it is stored."""
    state = {"state": {"phase": phase, "lastTransitionTime": "2026-03-01T00:00:05.000000Z"}} if phase else {}
    metadata = {"name": f"f-{name}", "namespace": "default", "uid": uid, "creationTimestamp": "2026-03-01T00:00:00Z"}
    return msgspec.convert({"metadata": metadata, "spec": {"tasks": list(tasks)}, "status": {**state, **told}}, MadeJob)


def look(obj, before=None, *, gone=(), taken=(), templates=TEMPLATES, now=NOW, **phases):
    """Ask the rule: (status afterwards, names of jobs that are made, names of jobs that are deleted)."""
    before = before or {}
    read = msgspec.convert({**obj, "metadata": {**obj["metadata"], "uid": "u"}, "status": before}, JobFlow)
    jobs = {f"f-{name}": made(name, phase) for name, phase in phases.items()}
    left = {f"f-{name}": jobs.pop(f"f-{name}") for name in gone}
    outcome = plan.reconcile(Known(read, before, jobs, left, templates, taken), CLUSTER, now)
    writes = [write for group in outcome.groups for write in group.writes]
    after = next((write.object["status"] for write in writes if hasattr(write, "subresource")), before)
    created = [
        write.object["metadata"]["name"]
        for write in writes
        if hasattr(write, "object") and write.resource.kind == "Job"
    ]
    return after, created, [write.name for write in writes if hasattr(write, "propagation")]


PAIR = flow(step("a"), step("b", "a"))


@cases("before, phases, expected, created", {
    "new": ("", {}, "Pending", ["f-a"]),
    "the first waits": ("Pending", {"a": "Pending"}, "Pending", []),
    "no controller has seen the first": ("Pending", {"a": ""}, "Pending", []),
    "the first runs": ("Pending", {"a": "Running"}, "Running", []),
    "the first is restarted": ("Running", {"a": "Restarting"}, "Running", []),
    "nothing runs any more": ("Running", {"a": "Pending"}, "Running", []),
    "the first is about to complete": ("Running", {"a": "Completing"}, "Running", []),
    "the first has completed": ("Running", {"a": "Completed"}, "Running", ["f-b"]),
    "the first was aborted": ("Pending", {"a": "Aborted"}, "Pending", []),
    "the first has failed": ("Pending", {"a": "Failed"}, "Failed", []),
    "the first was terminated": ("Running", {"a": "Terminated"}, "Failed", []),
    "the first is being terminated": ("Running", {"a": "Terminating"}, "Running", []),
    "all have completed": ("Running", {"a": "Completed", "b": "Completed"}, "Succeed", []),
    "all have completed at once": ("Pending", {"a": "Completed", "b": "Completed"}, "Succeed", []),
    "over, and the jobs are gone": ("Succeed", {}, "Succeed", []),
    "over, whatever comes of it": ("Failed", {"a": "Completed"}, "Failed", []),
})  # fmt: skip
def test_phases(before, phases, expected, created):
    after, names, deleted = look(PAIR, {"state": {"phase": before}} if before else {}, **phases)
    assert (after["state"]["phase"], names, deleted) == (expected, created, [])


TWICE = flow(step("a"), step("b", "a"), step("c", "b"), step("c", "a", patch={"jobSpec": {"maxRetry": 9}}))


@cases("obj, phases, expected, created", {
    "both may start": (flow(step("a"), step("a")), {}, "Pending", ["f-a"]),
    "the one job has completed": (flow(step("a"), step("a")), {"a": "Completed"}, "Succeed", []),
    "the second may start": (TWICE, {"a": "Completed"}, "Running", ["f-b", "f-c"]),
    "the first might start later": (TWICE, {"a": "Completed", "b": "Completed", "c": "Running"}, "Running", []),
    "all have completed": (TWICE, dict.fromkeys("abc", "Completed"), "Succeed", []),
})  # fmt: skip
def test_of_a_template_that_comes_twice_one_job_is_made(obj, phases, expected, created):
    after, names, _ = look(obj, **phases)
    assert (after["state"]["phase"], names) == (expected, created)
    total = len({each["name"] for each in obj["spec"]["flows"]})
    assert f"of {total}" in after["state"]["message"]


def test_the_step_that_may_start_first_says_how_the_job_is():
    read = msgspec.convert({**TWICE, "metadata": {**TWICE["metadata"], "uid": "u"}}, JobFlow)
    jobs = {"f-a": made("a", "Completed")}
    groups = plan.reconcile(Known(read, {}, jobs, {}, TEMPLATES, ()), CLUSTER, NOW).groups
    written = [write.object for group in groups for write in group.writes if write.resource.kind == "Job"]
    assert {job["metadata"]["name"]: job["spec"].get("maxRetry") for job in written} == {"f-b": 3, "f-c": 9}


@cases("options, reason, told", {
    "failed": ({"a": "Failed"}, "JobFailed", "because of f-a (Failed)"),
    "all completed": ({"a": "Completed", "b": "Completed"}, "AllCompleted", "2 of 2"),
    "in progress": ({"a": "Running"}, "InProgress", "0 of 2 jobs have completed"),
    "aborted": ({"a": "Aborted"}, "JobAborted", "Waiting for f-a, which was aborted; resume it"),
    "no template": ({"templates": {}}, "TemplateNotFound", "There is no job template a"),
    "a name that is taken": ({"taken": {"f-a"}}, "NameTaken", "A job named f-a exists"),
    "no queue": ({"templates": {"a": template("a", queue="x")}}, "JobRefused", "queue x not found"),
    "no tasks": ({"templates": {"a": {"spec": {}}}}, "JobRefused", "No task specified"),
})  # fmt: skip
def test_why(options, reason, told):
    state = look(PAIR, **options)[0]["state"]
    assert state["reason"] == reason
    assert told in state["message"]


@pytest.mark.parametrize("phase", ["", *JobPhase])
def test_each_job_is_in_one_list(phase):
    after = look(PAIR, a=phase)[0]
    lists = [name for name in dict.fromkeys(status.LIST_OF.values()) if after.get(name) == ["f-a"]]
    assert len(lists) == 1
    assert lists[0] == status.LIST_OF[JobPhase(phase or "Pending")]


def test_the_status_tells_each_job_with_its_history():
    told = {}
    for minutes, phase in enumerate(("Pending", "Running", "Completed")):
        told = look(PAIR, told, now=NOW + minutes * 60_000, a=phase)[0]
    ((entry,), minute) = told["jobStatusList"], "2026-03-01T00:0{}:00Z".format
    assert (entry["name"], entry["state"], entry["restartCount"]) == ("f-a", "Completed", 0)
    assert (entry["startTimestamp"], entry["endTimestamp"]) == (minute(0), "2026-03-01T00:00:05Z")
    assert entry["runningHistories"] == [
        {"state": "Pending", "startTimestamp": minute(0), "endTimestamp": minute(1)},
        {"state": "Running", "startTimestamp": minute(1), "endTimestamp": minute(2)},
        {"state": "Completed", "startTimestamp": minute(2)},
    ]
    assert told["conditions"] == {"f-a": {"phase": "Completed", "createTime": minute(0)}}


def test_the_status_follows_pods_and_durations():
    counts = {"main": {"phase": {"Succeeded": 1}}}
    job = made("a", "Completed", runningDuration="5s", taskStatusCount=counts, retryCount=2)
    group = plan.reconcile(
        Known(msgspec.convert(PAIR, JobFlow), {}, {"f-a": job}, {}, TEMPLATES, ()), CLUSTER, NOW
    ).groups[0]
    told = group.writes[0].object["status"]
    assert told["conditions"]["f-a"].items() >= {"runningDuration": "5s", "taskStatusCount": counts}.items()
    assert told["jobStatusList"][0]["restartCount"] == 2


@pytest.mark.parametrize(
    ("phase", "created"), [("Completed", ["f-b"]), ("Failed", []), ("Running", ["f-a"]), ("Aborted", ["f-a"])]
)
def test_of_a_deleted_job_its_end_counts(phase, created):
    after, names, _ = look(PAIR, gone=("a",), a=phase)
    assert names == created
    assert look(PAIR, after)[1] == created
    assert ("jobStatusList" in after) == (phase in ("Completed", "Failed"))


phases = st.dictionaries(st.sampled_from("abcd"), st.sampled_from(["", *JobPhase]))
diamonds = st.sampled_from(
    [
        flow(step("a"), step("b", "a"), step("c", "a"), step("d", "b", "c")),
        flow(*(step(name) for name in "abcd"), jobRetainPolicy="delete"),
        PAIR,
    ]
)


@given(diamonds, phases, phases)
def test_who_is_asked_again_changes_nothing_of_the_status(obj, earlier, later):
    before = look(obj, **earlier)[0]
    after, created, _ = look(obj, before, **later)
    assert look(obj, after, **later)[0] == after
    names = {f"f-{each['name']}": each.get("dependsOn", {}).get("targets", ()) for each in obj["spec"]["flows"]}
    over = {entry["name"] for entry in after.get("jobStatusList", ()) if entry["state"] == "Completed"}
    for name in created:
        assert name.removeprefix("f-") not in later
        assert {f"f-{target}" for target in names[name]} <= over


@cases("asked, phase, counts, expected", {
    "as many as the minimum": ([("main", "Running")], "Running", {"main": {"Running": 2}}, True),
    "too few": ([("main", "Running")], "Running", {"main": {"Running": 1}}, False),
    "who has succeeded has been running": ([("main", "Running")], "Running", {"main": {"Running": 1, "Succeeded": 1}},
        True),
    "who runs has not succeeded": ([("main", "Succeeded")], "Running", {"main": {"Running": 2}}, False),
    "failures": ([("main", "Failed")], "Running", {"main": {"Failed": 2}}, True),
    "all tasks that are named": ([("main", "Running"), ("side", "Running")], "Running", {"main": {"Running": 2}},
        False),
    "one pod where no minimum is": ([("main", "Running"), ("side", "Running")], "Running",
        {"main": {"Running": 2}, "side": {"Running": 1}}, True),
    "a task of nobody": ([("other", "Running")], "Running", {"main": {"Running": 2}}, False),
    "no pods": ([("main", "Running")], "Running", {}, False),
    "nothing is asked": ([], "Running", {"main": {"Running": 2}}, False),
    "completed is enough": ([("main", "Running")], "Completed", {}, True),
})  # fmt: skip
def test_probes(asked, phase, counts, expected):
    tasks = ({"name": "main", "minAvailable": 2}, {"name": "side", "minAvailable": 0})
    told = {"taskStatusCount": {name: {"phase": count} for name, count in counts.items()}}
    job = made("a", phase, "u", *tasks, **told)
    waiting = msgspec.convert(step("b", "a", probe=asked), Flow)
    assert steps.may_start(waiting, {"a": job}, {"a": job.phase}) is expected
    assert steps.may_start(waiting, {}, {}) is False


SPEC = {
    "queue": "q",
    "plugins": {"svc": [], "env": []},
    "tasks": [task("x", pod={"containers": [container(env=[{"name": "A", "value": "1"}])]}), task("y")],
    "volumes": [{"mountPath": "/a", "volumeClaimName": "one"}],
}


@cases("changes, path, expected", {
    "nothing": ({}, (), SPEC),
    "a field": ({"queue": "r"}, ("queue",), "r"),
    "a field that is taken away": ({"queue": None}, ("queue",), None),
    "plugins by name": ({"plugins": {"ssh": []}}, ("plugins",), {"svc": [], "env": [], "ssh": []}),
    "a task by name": ({"tasks": [{"name": "y", "replicas": 5}]}, ("tasks", 1, "replicas"), 5),
    "another task": ({"tasks": [{"name": "z", "replicas": 5}]}, ("tasks", 2), {"name": "z", "replicas": 5}),
    "a volume by its path": ({"volumes": [{"mountPath": "/a", "volumeClaimName": "two"}]}, ("volumes",),
        [{"mountPath": "/a", "volumeClaimName": "two"}]),
    "a container by name, a variable beside another": (
        {"tasks": [{"name": "x", "template": {"spec": {"containers": [{"name": "main", "env": [{"name": "B", "value": "2"}]}]}}}]},
        ("tasks", 0, "template", "spec", "containers"),
        [container(env=[{"name": "B", "value": "2"}, {"name": "A", "value": "1"}])]),
})  # fmt: skip
def test_patches(changes, path, expected):
    found = steps.patched(SPEC, changes)
    for each in path:
        found = found.get(each) if isinstance(found, dict) else found[each]
    if path and path[-1] == "containers":
        found = [{**each, "env": sorted(each["env"], key=lambda one: one["name"], reverse=True)} for each in found]
    assert found == expected


@pytest.mark.parametrize("changes", [{"tasks": [{}]}, {"tasks": [5]}, {"volumes": [{"name": "v"}]}])
def test_patches_that_name_nothing(changes):
    with pytest.raises(PatchError, match="by which it is found"):
        steps.patched(SPEC, changes)


def test_a_long_name_is_in_the_annotations_alone():
    obj = flow(step("a"), name="f" * 60)
    job = steps.job_for(msgspec.convert(obj, JobFlow), msgspec.convert(step("a"), Flow), TEMPLATES["a"])
    assert list(job["metadata"]["labels"]) == [steps.BY_TEMPLATE]
    assert job["metadata"]["annotations"][steps.BY_FLOW] == "default." + "f" * 60


def drawn(*steps, **status):
    return graph.of(msgspec.convert(flow(*steps), JobFlow), status)


def places(found):
    """Column and row of each job."""
    return {
        node.step: (
            (node.x - graph.MARGIN) // (graph.WIDTH + graph.GAP_X),
            (node.y - graph.MARGIN) // (graph.HEIGHT + graph.GAP_Y),
        )
        for node in found.nodes
    }


@cases("steps, expected, lines", {
    "nothing": ((), {}, 0),
    "beside each other": ((step("a"), step("b")), {"a": (0, 0), "b": (0, 1)}, 0),
    "one after the other": ((step("b", "a"), step("a")), {"a": (0, 0), "b": (1, 0)}, 1),
    "a diamond": ((step("a"), step("b", "a"), step("c", "a"), step("d", "b", "c")),
        {"a": (0, 0), "b": (1, 0), "c": (1, 1), "d": (2, 0)}, 4),
    "behind the last of its targets": ((step("a"), step("b", "a"), step("c", "a", "b")),
        {"a": (0, 0), "b": (1, 0), "c": (2, 0)}, 3),
    "a template that comes twice is one job": ((step("a"), step("b", "a"), step("c", "a"), step("c", "b", "b")),
        {"a": (0, 0), "b": (1, 0), "c": (2, 0)}, 3),
})  # fmt: skip
def test_places(steps, expected, lines):
    found = drawn(*steps)
    assert places(found) == expected
    assert len(found.lines) == lines
    assert all(node.x + graph.WIDTH <= found.width and node.y + graph.HEIGHT <= found.height for node in found.nodes)


def test_a_job_is_told_as_the_status_tells_it():
    told = [{"name": "f-a", "state": "Completed", "startTimestamp": "x", "endTimestamp": "y"}]
    made, waiting = drawn(step("a"), step("b", "a"), jobStatusList=told).nodes
    assert (made.phase, made.is_made, made.started, made.ended) == ("Completed", True, "x", "y")
    assert (waiting.phase, waiting.is_made, waiting.job) == (graph.WAITING, False, "f-b")


def test_a_stored_circle_is_drawn_in_one_column():
    assert places(drawn(step("a", "b"), step("b", "a"))) == {"a": (0, 0), "b": (0, 1)}


@given(st.lists(st.sets(st.integers(0, 11), max_size=3), max_size=12))
def test_nothing_stands_on_something_else_and_all_lines_lead_to_the_right(targets):
    steps = [
        step(f"s{number}", *(f"s{each}" for each in wanted if each < number)) for number, wanted in enumerate(targets)
    ]
    found = places(drawn(*steps))
    assert len(set(found.values())) == len(found)
    for each in steps:
        for target in each.get("dependsOn", {}).get("targets", ()):
            assert found[target][0] < found[each["name"]][0]
