"""Every rule for job flows and job templates has a row here."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.flows import admission
from tests.jobs.builders import task
from tests.jobs.flows.control import CLUSTER, Cluster, flow, refusals, step, template

PROBE = "spec.flows[1].dependsOn.probe"


def probing(**probe):
    return flow(step("a"), {"name": "b", "dependsOn": {"targets": ["a"], "probe": probe}})


@pytest.mark.parametrize(
    ("obj", "field", "told"),
    [
        pytest.param(flow(step("")), "spec.flows[0].name", "at least 1 chars", id="no name"),
        pytest.param(flow(step("A b")), "spec.flows[0].name", "must be the name of a job template", id="no name of a template"),
        pytest.param(flow(step("a" * 40), name="f" * 23), "spec.flows[0].name", "64 characters long", id="a long name of a job"),
        pytest.param(flow(step("a", "b")), "spec.flows[0].dependsOn.targets[0]", "vertex is not defined", id="an unknown target"),
        pytest.param(flow(step("a", "a")), "spec.flows", "a → a", id="a job that waits for itself"),
        pytest.param(flow(step("a", "c"), step("b", "a"), step("c", "b")), "spec.flows", "break the circle", id="a circle"),
        pytest.param(flow(step("a"), step("b", "a"), step("a", "b")), "spec.flows", "break the circle", id="a circle by the last step of a template"),
        pytest.param(probing(httpGetList=[{"port": 80}]), f"{PROBE}.httpGetList", "no requests are sent", id="a request"),
        pytest.param(probing(tcpSocketList=[{"port": 80}]), f"{PROBE}.tcpSocketList", "no requests are sent", id="a port"),
        pytest.param(probing(taskStatusList=[{"phase": "Running"}]), f"{PROBE}.taskStatusList[0].taskName", "name a task", id="no task"),
        pytest.param(probing(taskStatusList=[{"taskName": "t"}]), f"{PROBE}.taskStatusList[0].phase", "such as Running", id="no phase"),
        pytest.param(flow(step("a", probe=[("t", "Running")])), "spec.flows[0].dependsOn.targets", "name the jobs", id="nobody to ask"),
    ],
)  # fmt: skip
def test_refusals(obj, field, told):
    found = refusals(obj)
    assert list(found) == [field]
    assert told in found[field]


@pytest.mark.parametrize(
    ("obj", "field", "told"),
    [
        pytest.param(flow(step("a"), name="f" * 55), "spec.flows[0].name", "at spec.tasks[0].name of job", id="long names of pods"),
        pytest.param(
            flow(step("a", patch={"jobSpec": {"minAvailable": 9}})),
            "spec.flows[0].patch.jobSpec", "at spec.minAvailable of job f-a", id="a patch that breaks a rule",
        ),
        pytest.param(
            flow(step("a", patch={"jobSpec": {"tasks": [{"replicas": 9}]}})),
            "spec.flows[0].patch.jobSpec", "a name, by which it is found", id="a patch of no task",
        ),
        pytest.param(
            flow(step("a"), step("b", "a", probe=[("boss", "Running")])),
            f"{PROBE}.taskStatusList[0].taskName", "choose one of main", id="a task that no target has",
        ),
    ],
)  # fmt: skip
def test_refusals_by_the_templates_that_are_there(obj, field, told):
    found = refusals(obj, Cluster(template("a"), template("b")))
    assert list(found) == [field]
    assert told in found[field]
    assert refusals(obj) == {}


def test_a_diamond_is_accepted_and_keeps_its_jobs():
    obj = flow(step("a"), step("b", "a"), step("c", "a"), step("d", "b", "c"))
    assert refusals(obj) == {}
    assert obj["spec"]["jobRetainPolicy"] == "retain"
    assert refusals(flow()) == {}


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param((step("a"), step("a"), step("b", "a")), id="a template twice"),
        pytest.param(
            (step("a"), step("b", "a"), step("c", "a"), step("c", "b")), id="a template twice, waiting for others"
        ),
        pytest.param((step("a", "b"), step("b", "a"), step("a")), id="a circle that the last step of a template opens"),
        pytest.param((step("a"), step("b", "a", "a")), id="a target twice"),
    ],
)
def test_what_comes_twice_is_accepted(steps):
    assert refusals(flow(*steps)) == {}


def test_a_template_that_comes_twice_is_told():
    (told,) = admission.warn(flow(step("a"), step("a")), None, Cluster(template("a")))
    assert told == (
        "spec.flows[1].name: spec.flows[0] names a too; a flow makes one job of each template, by the first"
        " of these that may start. For a second job make another template."
    )


def test_missing_templates_are_told_and_not_refused():
    told = admission.warn(flow(step("a"), step("b")), None, Cluster(template("a")))
    assert told == [
        "spec.flows[1].name: there is no job template b in namespace default; the job is made when there is one."
    ]


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


@pytest.mark.parametrize(
    ("obj", "fields"),
    [
        pytest.param(template(), [], id="a template"),
        pytest.param({"metadata": {"name": "a"}}, ["spec"], id="no spec"),
        pytest.param(
            template("a", task(minAvailable=2), minAvailable=1), ["spec.tasks[0].minAvailable"], id="a job's own rules"
        ),
        pytest.param(template("a", queue="nowhere"), [], id="a queue that comes later"),
        pytest.param(template("a" * 60), ["spec.tasks[0].name"], id="long names of pods"),
    ],
)
def test_a_template_is_judged_as_a_job(obj, fields):
    assert wrong(obj) == fields


def test_a_template_may_change_and_is_judged_again():
    old = template("a")
    assert wrong(template("a", task(replicas=5)), old) == []
    assert wrong(template("a", task(), task()), old) == ["spec.tasks[1].name"]


def test_a_template_keeps_open_what_it_leaves_open_and_gets_todays_spellings():
    obj = {"metadata": {"name": "a", "namespace": "default"}, "spec": {"taskSpecs": [task()]}}
    admission.default_template(obj, None, CLUSTER)
    assert obj["spec"] == {"tasks": [task()]}


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
