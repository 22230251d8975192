"""Every rule for job flows and job templates has a row here."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.flows import admission
from tests.jobs.builders import task
from tests.jobs.flows.control import CLUSTER, Cluster, flow, refusals, step, template
from tests.tables import cases

PROBE = "spec.flows[1].dependsOn.probe"


def probing(**probe):
    return flow(step("a"), {"name": "b", "dependsOn": {"targets": ["a"], "probe": probe}})


@cases("obj, field, told", {
    "no name": (flow(step("")), "spec.flows[0].name", "at least 1 chars"),
    "no name of a template": (flow(step("A b")), "spec.flows[0].name", "must be the name of a job template"),
    "a long name of a job": (flow(step("a" * 40), name="f" * 23), "spec.flows[0].name", "64 characters long"),
    "an unknown target": (flow(step("a", "b")), "spec.flows[0].dependsOn.targets[0]", "vertex is not defined"),
    "a job that waits for itself": (flow(step("a", "a")), "spec.flows", "a → a"),
    "a circle": (flow(step("a", "c"), step("b", "a"), step("c", "b")), "spec.flows", "break the circle"),
    "a circle by the last step of a template": (flow(step("a"), step("b", "a"), step("a", "b")), "spec.flows",
        "break the circle"),
    "a request": (probing(httpGetList=[{"port": 80}]), f"{PROBE}.httpGetList", "no requests are sent"),
    "a port": (probing(tcpSocketList=[{"port": 80}]), f"{PROBE}.tcpSocketList", "no requests are sent"),
    "no task": (probing(taskStatusList=[{"phase": "Running"}]), f"{PROBE}.taskStatusList[0].taskName", "name a task"),
    "no phase": (probing(taskStatusList=[{"taskName": "t"}]), f"{PROBE}.taskStatusList[0].phase", "such as Running"),
    "nobody to ask": (flow(step("a", probe=[("t", "Running")])), "spec.flows[0].dependsOn.targets", "name the jobs"),
})  # fmt: skip
def test_refusals(obj, field, told):
    found = refusals(obj)
    assert list(found) == [field]
    assert told in found[field]


@cases("obj, field, told", {
    "long names of pods": (flow(step("a"), name="f" * 55), "spec.flows[0].name", "at spec.tasks[0].name of job"),
    "a patch that breaks a rule": (flow(step("a", patch={"jobSpec": {"minAvailable": 9}})),
        "spec.flows[0].patch.jobSpec", "at spec.minAvailable of job f-a"),
    "a patch of no task": (flow(step("a", patch={"jobSpec": {"tasks": [{"replicas": 9}]}})),
        "spec.flows[0].patch.jobSpec", "a name, by which it is found"),
    "a task that no target has": (flow(step("a"), step("b", "a", probe=[("boss", "Running")])),
        f"{PROBE}.taskStatusList[0].taskName", "choose one of main"),
})  # fmt: skip
def test_refusals_by_the_templates_that_are_there(obj, field, told):
    found = refusals(obj, Cluster(template("a"), template("b")))
    assert list(found) == [field]
    assert told in found[field]
    assert refusals(obj) == {}


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


@cases("second, told", {
    "a template that comes twice": ("a",
        "spec.flows[1].name: spec.flows[0] names a too; a flow makes one job of each template, by the first"
        " of these that may start. For a second job make another template."),
    "a template that is missing": ("b",
        "spec.flows[1].name: there is no job template b in namespace default; the job is made when there is one."),
})  # fmt: skip
def test_a_warning_tells_of(second, told):
    assert admission.warn(flow(step("a"), step(second)), None, Cluster(template("a"))) == [told]


@pytest.mark.parametrize(
    ("phase", "refused"), [("Running", []), ("Succeed", ["spec.flows"]), ("Failed", ["spec.flows"])]
)
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
def test_a_template_is_judged_as_a_job(obj, fields):
    assert wrong(obj) == fields


def test_a_template_may_change_and_is_judged_again():
    old = template("a")
    assert wrong(template("a", task(replicas=5)), old) == []
    assert wrong(template("a", task(), task()), old) == ["spec.tasks[1].name"]
    obj = {"metadata": {"name": "a", "namespace": "default"}, "spec": {"taskSpecs": [task()]}}
    admission.default_template(obj, None, CLUSTER)
    assert obj["spec"] == {"tasks": [task()]}, "what it leaves open stays open, in today's spelling"


names = st.sampled_from("abcdef")
graphs = st.dictionaries(names, st.sets(names, max_size=3), max_size=6)


@given(graphs)
def test_a_flow_is_accepted_when_its_jobs_can_be_put_in_an_order(graph):
    done, left = set(), dict(graph)
    while ready := [name for name, targets in left.items() if targets <= done]:
        done.update(ready)
        left = {name: targets for name, targets in left.items() if name not in ready}
    found = refusals(flow(*(step(name, *sorted(targets)) for name, targets in graph.items())))
    assert (found == {}) == (not left)


@given(
    st.recursive(
        st.none() | st.integers() | st.text(),
        lambda each: (
            st.lists(each) | st.dictionaries(st.sampled_from(["flows", "name", "dependsOn", "targets", "probe"]), each)
        ),
    )
)
def test_any_input_is_judged(part):
    assert isinstance(refusals({"metadata": {"name": "f"}, "spec": {"flows": [part]}}), dict)
