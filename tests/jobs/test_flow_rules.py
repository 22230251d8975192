"""Rules of flows and templates: phases, lists of jobs, who may start, patches, the graph, and what is refused."""

import copy
from functools import partial

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.flows import admission, graph, plan, status, steps
from jobs.flows.plan import ObservedFlow
from jobs.made.jobs import OwnedJob
from kube.kinds.batch import JobPhase
from kube.kinds.flow import Flow, JobFlow
from kube.patch import PatchError
from tests.jobs import builders
from tests.jobs.builders import CLUSTER, Cluster, container, listed, task
from tests.jobs.made import flow, step, template
from tests.tables import cases

NOW = 1_772_323_200_000  # 2026-03-01T00:00:00Z
refusals = partial(builders.refusals, rules=admission)
TEMPLATES = {name: template(name) for name in "abcd"}
A, B, C = step("a"), step("b", "a"), step("c", "a")
PAIR, DIAMOND = flow(A, B), flow(A, B, C, step("d", "b", "c"))
TWICE = flow(A, B, step("c", "b"), step("c", "a", patch={"jobSpec": {"maxRetry": 9}}))
TWO_A = flow(A, A)
phases = st.dictionaries(st.sampled_from("abcd"), st.sampled_from(["", *JobPhase]))
flows = st.sampled_from([DIAMOND, flow(*(step(name) for name in "abcd"), jobRetainPolicy="delete"), PAIR])
MAIN, SUCCEEDED, FAILED = (("main", phase) for phase in ("Running", "Succeeded", "Failed"))
SIDE, OTHER = ("side", "Running"), ("other", "Running")
TWO = {"main": {"Running": 2}}
names = st.sampled_from("abcdef")
graphs = st.dictionaries(names, st.sets(names, max_size=3), max_size=6)
FIELDS = st.sampled_from(["flows", "name", "dependsOn", "targets", "probe"])


def made(name, phase, *tasks, **status):
    state = {"state": {"phase": phase, "lastTransitionTime": "2026-03-01T00:00:05.000000Z"}} if phase else {}
    metadata = {"name": f"f-{name}", "namespace": "default", "uid": "u", "creationTimestamp": "2026-03-01T00:00:00Z"}
    return msgspec.convert({"metadata": metadata, "spec": {"tasks": [*tasks]}, "status": state | status}, OwnedJob)


def planned(obj, before, jobs, gone=(), taken=(), templates=TEMPLATES, now=NOW):
    read = msgspec.convert({**obj, "metadata": {**obj["metadata"], "uid": "u"}, "status": before}, JobFlow)
    left = {name: jobs.pop(name) for name in [f"f-{each}" for each in gone]}
    groups = plan.reconcile(ObservedFlow(read, before, jobs, left, templates, taken), CLUSTER, now).groups
    return [write for group in groups for write in group.writes]


def look(obj, before=None, *, gone=(), taken=(), templates=TEMPLATES, now=NOW, **phases):
    """Ask the rule: (status afterwards, names of jobs that are made, names of jobs that are deleted)."""
    jobs = {f"f-{name}": made(name, phase) for name, phase in phases.items()}
    writes = planned(obj, before or {}, jobs, gone, taken, templates, now)
    after = next((write.object["status"] for write in writes if hasattr(write, "subresource")), before or {})
    objects = [write.object for write in writes if hasattr(write, "object") and write.resource.kind == "Job"]
    created = [each["metadata"]["name"] for each in objects]
    return after, created, [write.name for write in writes if hasattr(write, "propagation")]


@cases("obj, before, phases, expected, created", {
    "new": (PAIR, "", {}, "Pending", "f-a"),
    "the first waits": (PAIR, "Pending", {"a": "Pending"}, "Pending", ""),
    "no controller has seen the first": (PAIR, "Pending", {"a": ""}, "Pending", ""),
    "the first runs": (PAIR, "Pending", {"a": "Running"}, "Running", ""),
    "the first is restarted": (PAIR, "Running", {"a": "Restarting"}, "Running", ""),
    "nothing runs any more": (PAIR, "Running", {"a": "Pending"}, "Running", ""),
    "the first is about to complete": (PAIR, "Running", {"a": "Completing"}, "Running", ""),
    "the first has completed": (PAIR, "Running", {"a": "Completed"}, "Running", "f-b"),
    "the first was aborted": (PAIR, "Pending", {"a": "Aborted"}, "Pending", ""),
    "the first has failed": (PAIR, "Pending", {"a": "Failed"}, "Failed", ""),
    "the first was terminated": (PAIR, "Running", {"a": "Terminated"}, "Failed", ""),
    "the first is being terminated": (PAIR, "Running", {"a": "Terminating"}, "Running", ""),
    "all have completed": (PAIR, "Running", {"a": "Completed", "b": "Completed"}, "Succeed", ""),
    "all have completed at once": (PAIR, "Pending", {"a": "Completed", "b": "Completed"}, "Succeed", ""),
    "over, and the jobs gone": (PAIR, "Succeed", {}, "Succeed", ""), "no jobs": (flow(), "Pending", {}, "Succeed", ""),
    "over, whatever comes of it": (PAIR, "Failed", {"a": "Completed"}, "Failed", ""),
    "a template that comes twice: both may start": (TWO_A, "", {}, "Pending", "f-a"),
    "and the one job has completed": (TWO_A, "", {"a": "Completed"}, "Succeed", ""),
    "and the second may start": (TWICE, "", {"a": "Completed"}, "Running", "f-b f-c"),
    "and the first might start later": (TWICE, "", {"a": "Completed", "b": "Completed", "c": "Running"}, "Running", ""),
    "and all have completed": (TWICE, "", dict.fromkeys("abc", "Completed"), "Succeed", ""),
})  # fmt: skip
def test_phases(obj, before, phases, expected, created):
    after, names, deleted = look(obj, {"state": {"phase": before}} if before else {}, **phases)
    assert (after["state"]["phase"], names, deleted) == (expected, created.split(), [])
    if not before:
        assert f"of {len({each['name'] for each in obj['spec']['flows']})}" in after["state"]["message"]


def test_the_step_that_may_start_first_says_how_the_job_is():
    writes = planned(TWICE, {}, {"f-a": made("a", "Completed")})
    jobs = [write.object for write in writes if write.resource.kind == "Job"]
    assert {job["metadata"]["name"]: job["spec"].get("maxRetry") for job in jobs} == {"f-b": 3, "f-c": 9}


@cases("options, reason, words", {
    "failed": ({"a": "Failed"}, "JobFailed", "because of f-a (Failed)"),
    "all completed": ({"a": "Completed", "b": "Completed"}, "AllCompleted", "2 of 2"),
    "in progress": ({"a": "Running"}, "InProgress", "0 of 2 jobs have completed"),
    "aborted": ({"a": "Aborted"}, "JobAborted", "Waiting for f-a, which was aborted; resume it"),
    "no template": ({"templates": {}}, "TemplateNotFound", "There is no job template a"),
    "a name that is taken": ({"taken": {"f-a"}}, "NameTaken", "A job named f-a exists"),
    "no queue": ({"templates": {"a": template("a", queue="x")}}, "JobRefused", "queue x not found"),
    "no tasks": ({"templates": {"a": {"spec": {}}}}, "JobRefused", "No task specified"),
})  # fmt: skip
def test_why(options, reason, words):
    state = look(PAIR, **options)[0]["state"]
    assert (state["reason"], words in state["message"]) == (reason, True)


@pytest.mark.parametrize("phase", ["", *JobPhase])
def test_each_job_is_in_one_list(phase):
    after = look(PAIR, a=phase)[0]
    lists = [name for name in dict.fromkeys(status.LIST_OF.values()) if after.get(name) == ["f-a"]]
    assert lists == [status.LIST_OF[JobPhase(phase or "Pending")]]


def test_the_status_has_each_job_with_its_history_pods_and_duration(golden):
    found = {}
    for minutes, phase in enumerate(("Pending", "Running", "Completed")):
        found = look(PAIR, found, now=NOW + minutes * 60_000, a=phase)[0]
    counts = {"main": {"phase": {"Succeeded": 1}}}
    job = made("a", "Completed", runningDuration="5s", taskStatusCount=counts, retryCount=2)
    golden("status", [found, planned(PAIR, {}, {"f-a": job})[0].object["status"]])


@cases("phase, created", {
    "completed": ("Completed", ["f-b"]), "failed": ("Failed", []),
    "runs": ("Running", ["f-a"]), "aborted": ("Aborted", ["f-a"]),
})  # fmt: skip
def test_of_a_deleted_job_its_end_counts(phase, created):
    after, names, _ = look(PAIR, gone=("a",), a=phase)
    assert names == created == look(PAIR, after)[1]
    assert ("jobStatusList" in after) == (phase in ("Completed", "Failed"))


@given(flows, phases, phases)
def test_who_is_asked_again_changes_nothing_of_the_status(obj, earlier, later):
    before = look(obj, **earlier)[0]
    after, created, _ = look(obj, before, **later)
    assert look(obj, after, **later)[0] == after
    names = {f"f-{each['name']}": each.get("dependsOn", {}).get("targets", ()) for each in obj["spec"]["flows"]}
    over = {entry["name"] for entry in after.get("jobStatusList", ()) if entry["state"] == "Completed"}
    for name in created:
        assert name.removeprefix("f-") not in later
        assert {f"f-{target}" for target in names[name]} <= over


@cases("probe, phase, counts, expected", {
    "as many as the minimum": ([MAIN], "Running", TWO, True),
    "too few": ([MAIN], "Running", {"main": {"Running": 1}}, False),
    "who has succeeded has been running": ([MAIN], "Running", {"main": {"Running": 1, "Succeeded": 1}}, True),
    "who runs has not succeeded": ([SUCCEEDED], "Running", TWO, False),
    "failures": ([FAILED], "Running", {"main": {"Failed": 2}}, True),
    "all tasks that are named": ([MAIN, SIDE], "Running", TWO, False),
    "one pod where no minimum is": ([MAIN, SIDE], "Running", TWO | {"side": {"Running": 1}}, True),
    "a task of nobody": ([OTHER], "Running", TWO, False),
    "no pods": ([MAIN], "Running", {}, False),
    "nothing is asked": ([], "Running", TWO, False),
    "completed is enough": ([MAIN], "Completed", {}, True),
})  # fmt: skip
def test_probes(probe, phase, counts, expected):
    tasks = ({"name": "main", "minAvailable": 2}, {"name": "side", "minAvailable": 0})
    job = made("a", phase, *tasks, taskStatusCount={name: {"phase": count} for name, count in counts.items()})
    waiting = msgspec.convert(step("b", "a", probe=probe), Flow)
    assert steps.may_start(waiting, {"a": job}, {"a": job.phase}) is expected
    assert steps.may_start(waiting, {}, {}) is False


ONE, OF_B = {"name": "A", "value": "1"}, {"name": "B", "value": "2"}
SPEC = {"queue": "q", "plugins": {"svc": [], "env": []}, "volumes": [{"mountPath": "/a", "volumeClaimName": "one"}]}
SPEC["tasks"] = [task("x", pod={"containers": [container(env=[ONE])]}), task("y")]
ANOTHER = [{"mountPath": "/a", "volumeClaimName": "two"}]
WITH_B = {"name": "x", "template": {"spec": {"containers": [{"name": "main", "env": [OF_B]}]}}}
IN_X = ("tasks", 0, "template", "spec", "containers")


@cases("changes, path, expected", {
    "nothing": ({}, (), SPEC),
    "a field": ({"queue": "r"}, ("queue",), "r"),
    "a field that is taken away": ({"queue": None}, ("queue",), None),
    "plugins by name": ({"plugins": {"ssh": []}}, ("plugins",), {"svc": [], "env": [], "ssh": []}),
    "a task by name": ({"tasks": [{"name": "y", "replicas": 5}]}, ("tasks", 1, "replicas"), 5),
    "another task": ({"tasks": [{"name": "z", "replicas": 5}]}, ("tasks", 2), {"name": "z", "replicas": 5}),
    "a volume by its path": ({"volumes": ANOTHER}, ("volumes",), ANOTHER),
    "a container by name": ({"tasks": [WITH_B]}, (*IN_X, 0, "name"), "main"),
    "a variable beside another": ({"tasks": [WITH_B]}, (*IN_X, 0, "env"), [OF_B, ONE]),
})  # fmt: skip
def test_patches(changes, path, expected):
    found = steps.patched(SPEC, changes)
    for each in path:
        found = found.get(each) if isinstance(found, dict) else found[each]
    if path and path[-1] == "env":
        found = sorted(found, key=lambda one: one["name"], reverse=True)
    assert found == expected


@pytest.mark.parametrize("changes", [{"tasks": [{}]}, {"tasks": [5]}, {"volumes": [{"name": "v"}]}])
def test_patches_that_name_nothing(changes):
    with pytest.raises(PatchError, match="by which it is found"):
        steps.patched(SPEC, changes)


def test_a_long_name_is_in_the_annotations_alone():
    obj = flow(A, name="f" * 60)
    job = steps.job_for(msgspec.convert(obj, JobFlow), msgspec.convert(A, Flow), TEMPLATES["a"])
    assert list(job["metadata"]["labels"]) == [steps.BY_TEMPLATE]
    assert job["metadata"]["annotations"][steps.BY_FLOW] == "default." + "f" * 60


def drawn(*steps, **status):
    return graph.of(msgspec.convert(flow(*steps), JobFlow), status)


def places(found):
    width, height = graph.WIDTH + graph.GAP_X, graph.HEIGHT + graph.GAP_Y
    return {each.step: ((each.x - graph.MARGIN) // width, (each.y - graph.MARGIN) // height) for each in found.nodes}


@cases("steps, expected, lines", {
    "nothing": ((), {}, 0),
    "beside each other": ((A, step("b")), {"a": (0, 0), "b": (0, 1)}, 0),
    "one after the other": ((B, A), {"a": (0, 0), "b": (1, 0)}, 1),
    "a diamond": ((A, B, C, step("d", "b", "c")), {"a": (0, 0), "b": (1, 0), "c": (1, 1), "d": (2, 0)}, 4),
    "behind the last of its targets": ((A, B, step("c", "a", "b")), {"a": (0, 0), "b": (1, 0), "c": (2, 0)}, 3),
    "a template that comes twice is one job": ((A, B, C, step("c", "b", "b")), {"a": (0, 0), "b": (1, 0), "c": (2, 0)}, 3),
    "a stored circle": ((step("a", "b"), B), {"a": (0, 0), "b": (0, 1)}, None),
})  # fmt: skip
def test_places(steps, expected, lines):
    found = drawn(*steps)
    assert places(found) == expected
    assert lines in (None, len(found.lines))
    assert all(node.x + graph.WIDTH <= found.width and node.y + graph.HEIGHT <= found.height for node in found.nodes)


@given(st.lists(st.sets(st.integers(0, 11), max_size=3), max_size=12))
def test_nothing_stands_on_something_else_and_all_lines_lead_to_the_right(targets):
    before = [sorted(f"s{each}" for each in wanted if each < number) for number, wanted in enumerate(targets)]
    found = places(drawn(*(step(f"s{number}", *wanted) for number, wanted in enumerate(before))))
    assert len(set(found.values())) == len(found)
    assert all(found[each][0] < found[f"s{number}"][0] for number, wanted in enumerate(before) for each in wanted)


# ---- admission
def probing(**probe):
    return flow(step("a"), {"name": "b", "dependsOn": {"targets": ["a"], "probe": probe}})


@cases("obj", {
    "no name": flow(step("")),
    "no name of a template": flow(step("A b")),
    "a long name of a job": flow(step("a" * 40), name="f" * 23),
    "an unknown target": flow(step("a", "b")),
    "a job that waits for itself": flow(step("a", "a")),
    "a circle": flow(step("a", "c"), step("b", "a"), step("c", "b")),
    "a circle by the last step of a template": flow(step("a"), step("b", "a"), step("a", "b")),
    "a request": probing(httpGetList=[{"port": 80}]),
    "a port": probing(tcpSocketList=[{"port": 80}]),
    "no task": probing(taskStatusList=[{"phase": "Running"}]),
    "no phase": probing(taskStatusList=[{"taskName": "t"}]),
    "nobody to ask": flow(step("a", probe=[("t", "Running")])),
})  # fmt: skip
def test_refusals(golden, obj):
    golden("flows", listed(refusals(obj)))


@cases("obj", {
    "long names of pods": flow(step("a"), name="f" * 55),
    "a patch that breaks a rule": flow(step("a", patch={"jobSpec": {"minAvailable": 9}})),
    "a patch of no task": flow(step("a", patch={"jobSpec": {"tasks": [{"replicas": 9}]}})),
    "a task that no target has": flow(step("a"), step("b", "a", probe=[("boss", "Running")])),
})  # fmt: skip
def test_refusals_by_the_templates_that_are_there(golden, obj):
    assert refusals(obj) == {}
    golden("flows", listed(refusals(obj, Cluster(template("a"), template("b")))))


@cases("steps", {
    "nothing": (), "a diamond": (step("a"), step("b", "a"), step("c", "a"), step("d", "b", "c")),
    "a template twice": (step("a"), step("a"), step("b", "a")),
    "a template twice, waiting for others": (step("a"), step("b", "a"), step("c", "a"), step("c", "b")),
    "a circle that the last step of a template opens": (step("a", "b"), step("b", "a"), step("a")),
    "a target twice": (step("a"), step("b", "a", "a")),
})  # fmt: skip
def test_what_is_accepted_keeps_its_jobs(steps):
    obj = flow(*steps)
    assert refusals(obj) == {}
    assert obj["spec"]["jobRetainPolicy"] == "retain"


@cases("second, words", {
    "a template that comes twice": ("a", "spec.flows[1].name: spec.flows[0] names a too; a flow makes one job of each template, "
        "by the first of these that may start. For a second job make another template."),
    "a template that is missing": ("b",
        "spec.flows[1].name: there is no job template b in namespace default; the job is made when there is one."),
})  # fmt: skip
def test_a_warning_tells_of(second, words):
    assert admission.warn(flow(step("a"), step(second)), None, Cluster(template("a"))) == [words]


@cases("phase, refused", {
    "runs": ("Running", []), "over": ("Succeed", ["spec.flows"]), "failed": ("Failed", ["spec.flows"]),
})  # fmt: skip
def test_a_flow_that_is_over_keeps_its_jobs(phase, refused):
    old = flow(step("a")) | {"status": {"state": {"phase": phase}}}
    assert list(refusals(flow(step("a"), step("b")), old=old)) == refused
    assert refusals(flow(step("a"), jobRetainPolicy="delete"), old=old) == {}


def wrong(obj, old=None):
    written = copy.deepcopy(obj)
    admission.default_template(written, old, CLUSTER)
    return [cause.field for cause in admission.validate_template(written, old, CLUSTER)]


@cases("obj, fields", {
    "a template": (template(), []),
    "no spec": ({"metadata": {"name": "a"}}, ["spec"]),
    "a job's own rules": (template("a", task(minAvailable=2), minAvailable=1), ["spec.tasks[0].minAvailable"]),
    "a queue that comes later": (template("a", queue="nowhere"), []),
    "long names of pods": (template("a" * 60), ["spec.tasks[0].name"]),
})  # fmt: skip
def test_a_template_is_judged_as_a_job_also_when_it_changes(obj, fields):
    assert wrong(obj) == fields
    assert wrong(template("a", task(), task()), template("a")) == ["spec.tasks[1].name"]


def test_what_a_template_leaves_open_stays_open_in_todays_spelling():
    obj = {"metadata": {"name": "a", "namespace": "default"}, "spec": {"taskSpecs": [task()]}}
    admission.default_template(obj, None, CLUSTER)
    assert obj["spec"] == {"tasks": [task()]}


@given(graphs)
def test_a_flow_is_accepted_when_its_jobs_can_be_put_in_an_order(graph):
    done, left = set(), dict(graph)
    while ready := [name for name, targets in left.items() if targets <= done]:
        done.update(ready)
        left = {name: targets for name, targets in left.items() if name not in ready}
    found = refusals(flow(*(step(name, *sorted(targets)) for name, targets in graph.items())))
    assert (found == {}) == (not left)


@given(st.recursive(st.none() | st.integers() | st.text(), lambda each: st.lists(each) | st.dictionaries(FIELDS, each)))
def test_any_input_is_judged(part):
    assert isinstance(refusals({"metadata": {"name": "f"}, "spec": {"flows": [part]}}), dict)
