"""What the form shows where a text has no value, or one that counts as another, is what the server stores."""

from __future__ import annotations

import copy

from hypothesis import HealthCheck, assume, given
from hypothesis import strategies as st

from cluster import access, api
from cluster.store import Create, store
from jobs.editor import editor, yaml_write
from kube.resources import JOBS, PRIORITY_CLASSES
from tests.campaign import examples
from tests.jobs.builders import job, task
from tests.tables import cases

OF_JOB = {
    "queue": ["default", "", None],
    "maxRetry": [0, 3, 7, None],
    "minAvailable": [0, 1, None],
    "minSuccess": [1, None],
    "schedulerName": ["", "volcano", None],
    "networkTopology": [{}, {"mode": "soft"}, {"highestTierAllowed": 2}, None],
    "plugins": [{"mpi": []}, {"svc": []}, None],
}
OF_TASK = {
    "name": ["", None],
    "replicas": [2, 4],
    "minAvailable": [0, 1, None],
    "maxRetry": [0, 5, None],
    "partitionPolicy": [{"totalPartitions": 2, "partitionSize": 1}, None],
}


def some(table):
    """Any of the fields of a table, each with one of its values; None is written as well as left out."""
    return st.fixed_dictionaries({}, optional={key: st.sampled_from(values) for key, values in table.items()})


@st.composite
def written(draw):
    tasks = []
    for _ in range(draw(st.integers(1, 2))):
        fields = draw(some(OF_TASK))
        if fields.get("partitionPolicy"):
            fields |= {"replicas": 2}
        made = {**task(), "replicas": 2, **fields}
        made.pop("name") if "name" not in fields else None
        tasks.append(made)
    return job(*tasks, **draw(some(OF_JOB)))


def leaves(value, path):
    if isinstance(value, dict):
        return {at: leaf for key, each in value.items() for at, leaf in leaves(each, f"{path}.{key}").items()}
    if isinstance(value, list):
        return {at: leaf for n, each in enumerate(value) for at, leaf in leaves(each, f"{path}[{n}]").items()}
    return {} if value is None else {path: str(value)}


@given(obj=written())
@examples(60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_what_the_form_shows_is_what_is_stored(alice, obj):
    actor = access.for_user(alice)
    report = editor.check(actor, yaml_write.dump(obj))
    assume(report.accepted)
    shown = leaves(obj["spec"], "spec") | report.held
    stored = api.create(actor, JOBS, {**copy.deepcopy(obj), "metadata": {"generateName": "a-", "namespace": "default"}})
    assert {path: value for path, value in shown.items() if path != "metadata.namespace"} == leaves(
        store.get(JOBS, "default", stored.name).object["spec"], "spec"
    )


@cases("fields, held", {
    "left out": ({}, {"spec.maxRetry": "3", "spec.minAvailable": "1", "spec.queue": "default"}),
    "counts as another": ({"maxRetry": 0, "minAvailable": 0}, {"spec.maxRetry": "3", "spec.minAvailable": "1"}),
    "written": ({"maxRetry": 5, "queue": "default"}, {"spec.maxRetry": None, "spec.queue": None}),
    "a job that is refused": ({"queue": "nowhere"}, {"spec.maxRetry": "3", "spec.queue": None}),
})  # fmt: skip
def test_rows(alice, fields, held):
    found = editor.check(access.for_user(alice), yaml_write.dump(job(**fields))).held
    assert {path: found.get(path) for path in held} == held


def test_the_class_of_pods_that_name_none_is_shown(alice):
    kind = {"apiVersion": PRIORITY_CLASSES.api_version, "kind": PRIORITY_CLASSES.kind}
    store.write(Create(PRIORITY_CLASSES, {**kind, "metadata": {"name": "usual"}, "value": 5, "globalDefault": True}))
    actor = access.for_user(alice)
    assert editor.check(actor, yaml_write.dump(job())).held["spec.priorityClassName"] == "usual"
    chosen = editor.check(actor, yaml_write.dump(job(priorityClassName="other"))).held
    assert "spec.priorityClassName" not in chosen
